/* SPDX-License-Identifier: GPL-2.0-only */
/* The fake part of a vCPU: its program, and its registers while it is off the CPU. */
#ifndef ARCH_VCPU_H
#define ARCH_VCPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <arch/pcpu.h>

#include "core/spin.h"

struct fiber;
struct vcpu;

/* A guest program; its address is the "pc" that the boot vCPU or a CPU_ON starts at. */
typedef void fake_guest(struct vcpu *v);

/* Interrupts of a fake guest, one bit each. */
enum { FAKE_VIRQ_VTIMER = 1u << 0, FAKE_VIRQ_PTIMER = 1u << 1, FAKE_VIRQ_SGI = 1u << 2 };
#define FAKE_VIRQS 3u

/* Why the guest gave the pCPU back. */
enum fake_op { FAKE_RUN, FAKE_WFI, FAKE_WFE, FAKE_HVC };

/* What it wants from the hypervisor with FAKE_HVC, and what it got. */
struct fake_call {
    int (*handler)(struct vcpu *v, const struct fake_call *c, int *verdict);
    struct vcpu *target;
    fake_guest *entry;
    uint64_t arg;
    int result;
};

struct arch_vcpu {
    struct fake_registers reg;      /* in memory */
    struct fake_registers true_reg; /* what the guest must find in the pCPU */
    struct fake_timer vtimer;       /* as saved */
    struct fake_timer ptimer;       /* always in software */
    bool vtimer_active;             /* as saved */
    _Atomic uint32_t posted;        /* interrupts that others made pending */
    uint32_t visible;               /* those that the guest can see: its "list registers" */
    bool live;             /* they are in the pCPU: what the guest would find there is up to date */
    struct spin_wait wait; /* what it waits for with FAKE_WFE; word NULL: nobody knows */
    bool masked;           /* the guest takes no interrupts (but WFI ends) */

    struct fiber *fiber; /* the guest program */
    struct fiber *host;  /* the pCPU that it gives back */
    fake_guest *entry;
    uint64_t arg;
    enum fake_op op;
    uint64_t left; /* ticks of FAKE_RUN to go */
    struct fake_call call;

    /* What tests look at. */
    uint64_t starts;   /* times that it began at an entry point */
    uint64_t ran;      /* ticks in the guest, finished turns */
    uint64_t run_from; /* when the present turn began, UINT64_MAX: it is not in the guest */
    uint64_t loads;    /* times that it was brought onto a pCPU */
    uint64_t taken[FAKE_VIRQS];  /* interrupts that the guest took */
    uint64_t since[FAKE_VIRQS];  /* when the oldest untaken one became due, UINT64_MAX: none */
    uint64_t latest[FAKE_VIRQS]; /* the longest time from due to taken */
};

#endif
