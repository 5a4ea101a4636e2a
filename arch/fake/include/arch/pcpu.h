/* SPDX-License-Identifier: GPL-2.0-only */
/* The fake part of a pCPU: what a real one has in its registers. */
#ifndef ARCH_PCPU_H
#define ARCH_PCPU_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>

struct fake_tlb;
struct vcpu;
struct vm;

/* What a switch has to save and load. */
struct fake_registers {
    uint64_t count; /* goes up with each thing that the guest does */
    unsigned space; /* TTBR: which of the VM's address spaces is in use */
};

struct fake_timer {
    bool on;
    uint64_t at; /* ticks of port_clock() */
};

struct arch_pcpu {
    struct fake_registers reg;
    uint32_t vmid;               /* VTTBR's */
    const struct vm *translates; /* whose tables */
    struct fake_timer vtimer;    /* the guest's virtual timer while it is loaded */
    bool vtimer_active;          /* its interrupt was taken and not yet deactivated by the guest */
    uint64_t hyp_timer;          /* deadline of our own timer, TIMER_NEVER: off */
    bool kicked;                 /* the SGI is pending */
    bool serror;                 /* a bus error is pending */
    struct fake_tlb *tlb;
    struct vcpu *entering; /* by arch_enter_at(), which goes back to arch_enter() */
    jmp_buf loop;
    bool looping; /* loop is valid */
};

#endif
