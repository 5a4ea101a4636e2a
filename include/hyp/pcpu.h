/* SPDX-License-Identifier: GPL-2.0-only */
/* One physical CPU. */
#ifndef HYP_PCPU_H
#define HYP_PCPU_H

#include <stdint.h>
#include <arch/pcpu.h>

#include "core/vmid.h"

struct timer_queue;
struct vcpu;
struct vm;

struct pcpu {
    struct vcpu *current;    /* the vCPU that runs here, NULL when idle; entry.S reads it: first */
    void *stack_top;         /* entry.S */
    unsigned index;          /* 0.. */
    struct vcpu *loaded;     /* whose registers are here and not in memory, or NULL */
    struct vcpu **last_vcpu; /* per VM: its vCPU that ran here last, NULL when none did */
    struct timer_queue *timers; /* its software timers */
    uint64_t armed;             /* what the hardware timer is set to, ticks */
    uint64_t exit_since; /* when the exit began that the vCPU here is in, wherever that was */
    uint64_t hyp_since;  /* since when it is in the hypervisor, ticks; 0: it is not */
    uint64_t hyp_time;   /* ticks in the hypervisor before that */
    uint64_t idle_since; /* the same for waiting until there is something to do */
    uint64_t idle_time;
    uint32_t irq_exits;   /* exits for interrupts: every so many, hyp/vcpu.c looks what they took */
    uint64_t irq_since;   /* when it looked last, ticks */
    uint64_t irq_hyp;     /* hyp_time then */
    uint64_t online_at;   /* when it began to take part, ticks; 0: not yet */
    struct vmid_cpu vmid; /* which VM is here, for the TLBs */
    struct arch_pcpu arch;
};

#define PCPU_MAX 128u

extern struct pcpu *pcpus[PCPU_MAX];
extern unsigned pcpu_count;

/* The pCPU that this runs on: this_pcpu() is in <arch/this_pcpu.h>. */
static inline struct pcpu *this_pcpu(void);
#include <arch/this_pcpu.h>

#endif
