/* SPDX-License-Identifier: GPL-2.0-only */
/* One virtual CPU. */
#ifndef HYP_VCPU_H
#define HYP_VCPU_H

#include <arch/vcpu.h>
#include <stdatomic.h>

#include "core/advance.h"
#include "core/sched.h"
#include "hyp/pcpu.h"
#include "hyp/timer.h"
#include "hyp/types.h"

struct pcpu;
struct vm;

/* Why the guest was left: a counter each (hyp/exits.h). The names printed are in hyp/stats.c. */
enum exit_reason {
    EXIT_WFI,
    EXIT_WFE,
    EXIT_HVC,
    EXIT_SMC,
    EXIT_SYSREG,
    EXIT_MMIO,
    EXIT_IRQ,
    EXIT_ABORT,
    EXIT_SETWAY,
    EXIT_OTHER,
    EXIT_REASONS
};

/* Exits of one kind that are over, and how long they took: all together, and the longest; ticks. */
struct exit_counter {
    uint64_t count, total, max;
};

/* What became of the times that it spun: gave up its pCPU, of that for a sibling; went on at once.
 */
struct spin_counters {
    uint64_t yielded, directed, stayed;
};

/* PSCI's view (DEN0022 5.7): AFFINITY_INFO answers with it. Changed under vm->lock only. */
enum vcpu_power { VCPU_OFF, VCPU_ON_PENDING, VCPU_ON, VCPU_PAUSED /* on, to the guest */ };

/* Things that others ask of a vCPU; it looks at them before each entry into the guest. */
enum {
    REQUEST_IRQ = 1u << 0,      /* its pending interrupts changed: fill the list registers */
    REQUEST_IRQ_SYNC = 1u << 1, /* somebody waits to see its list registers in memory */
    REQUEST_STOP = 1u << 2,     /* its VM ends */
    REQUEST_TIMER = 1u << 3,    /* one of its timers is due: look which */
    REQUEST_PAUSE = 1u << 5,    /* its VM pauses */
    REQUEST_SLICE = 1u << 4,    /* others came to wait for its pCPU: its slice is over, look */
    REQUEST_SPIN = 1u << 6,     /* what its VM does when it spins was changed */
};

struct vcpu {
    struct arch_vcpu arch; /* first: entry.S knows the offsets inside */
    struct sched_entity sched;
    struct vm *vm;
    unsigned index;            /* number in its VM, 0.. */
    _Atomic uint32_t requests; /* REQUEST_* */
    _Atomic uint32_t power;    /* enum vcpu_power */
    uint64_t start_pc;         /* where and with what argument to start: valid in ON_PENDING */
    uint64_t start_arg;
    struct timer timer;     /* wakes it for its own timers while the hardware can't */
    struct advance advance; /* how much earlier than the deadline that timer is set */
    uint64_t queued;        /* how long it had been runnable when that timer was set, ticks */
    bool on_pcpu;           /* interrupts and timers are in a pCPU too; changed by that pCPU only */
    _Atomic uint32_t pausing; /* its VM is paused, and it has yet to go off the CPU for that */
    uint64_t irq_held; /* until then others' REQUEST_IRQ waits, ticks; 0: none (hyp/vcpu.c) */
    struct spin_counters spin;
    struct exit_counter *exit; /* of the exit that it is in, in exits[] */
    uint64_t exit_since;       /* when that began, while it is on no pCPU (hyp/exits.h) */
    struct exit_counter exits[EXIT_REASONS + 1]; /* the last: not an exit but a start */
    uint64_t sibling_flushes;                    /* entries that had to flush what a sibling left */
    uint64_t sibling_skips;                      /* entries on which that was provably needless */
};

/* The vCPU that contains a scheduler entity. */
static inline struct vcpu *vcpu_of_entity(struct sched_entity *e) {
    return (struct vcpu *)((char *)e - offsetof(struct vcpu, sched));
}

/* The vCPU that contains its architecture part. */
static inline struct vcpu *vcpu_of_arch(struct arch_vcpu *a) {
    return (struct vcpu *)((char *)a - offsetof(struct vcpu, arch));
}

/* Prepares vCPU `index` of `vm`, off. Boot pCPU. */
void vcpu_init(struct vcpu *v, struct vm *vm, unsigned index);

/*
 * Asks vCPU `v` for `request` (REQUEST_*): it sees it before it next enters its guest, and if it
 * runs on another pCPU that pCPU is kicked. Does not wake a blocked one. Any pCPU, any lock held.
 */
static inline void vcpu_request(struct vcpu *v, uint32_t request);
void vcpu_request_other(struct vcpu *v, uint32_t request);

/*
 * The same, and a blocked vCPU becomes runnable; one that is off stays off. Any pCPU, no queue lock
 * held.
 */
static inline void vcpu_request_and_wake(struct vcpu *v, uint32_t request);
void vcpu_wake_other(struct vcpu *v, uint32_t request);

/*
 * The same for REQUEST_STOP and REQUEST_PAUSE of a vCPU that is not off: reaches also one that is
 * about to be off, or paused, and looks at no request any more.
 */
void vcpu_request_off(struct vcpu *v, uint32_t request);

/* The functions with "other" in their names are for vCPUs that do not run here. One that does looks
 * at its requests before it enters its guest or waits. */
static inline bool vcpu_request_here(struct vcpu *v, uint32_t request) {
    if (this_pcpu()->current != v) {
        return false;
    }
    v->irq_held = 0;
    atomic_fetch_or_explicit(&v->requests, request, memory_order_relaxed);
    return true;
}

static inline void vcpu_request(struct vcpu *v, uint32_t request) {
    if (!vcpu_request_here(v, request)) {
        vcpu_request_other(v, request);
    }
}

static inline void vcpu_request_and_wake(struct vcpu *v, uint32_t request) {
    if (!vcpu_request_here(v, request)) {
        vcpu_wake_other(v, request);
    }
}

/*
 * First thing in an exit of `v` for a physical interrupt: every IRQ_EXITS of them it looks whether
 * they come so fast that the guest does not get on. On its pCPU, `p`.
 */
static inline void vcpu_count_irq(struct pcpu *p, struct vcpu *v);
void vcpu_look_for_storm(struct pcpu *p, struct vcpu *v);
#define IRQ_EXITS 64u

static inline void vcpu_count_irq(struct pcpu *p, struct vcpu *v) {
    if (__builtin_expect(++p->irq_exits % IRQ_EXITS == 0, false)) {
        vcpu_look_for_storm(p, v);
    }
}

/*
 * Sets the software timer for what the vCPU's own timers need now (arch_vcpu_deadline). On the pCPU
 * that runs it.
 */
void vcpu_timer_update(struct vcpu *v, bool blocked);

/*
 * The end of every exit: decides which vCPU this pCPU, `p`, enters next and brings it on. `v` is
 * the one that just exited, with what its handler said. Does not return before there is somebody to
 * run. On the pCPU that ran `v`, no locks held, interrupts masked. The order of a switch stands in
 * here.
 */
struct vcpu *vcpu_next(struct pcpu *p, struct vcpu *v, enum verdict verdict);

/*
 * The same and shorter, for an exit whose handler took no physical interrupt. Whether the slice is
 * over need not be asked then: the timer's interrupt, or the one of whoever wants this pCPU, is
 * pending and takes us out again at once, or a request says so.
 */
struct vcpu *vcpu_next_handled(struct pcpu *p, struct vcpu *v, enum verdict verdict);

/*
 * Timer advancement (hyp/advance.c): when to set the software timer of `v`, which leaves its pCPU,
 * for `deadline`. On that pCPU.
 */
__attribute__((noinline)) uint64_t vcpu_alarm(struct vcpu *v, uint64_t deadline);

/*
 * That timer, and nothing else, has brought `v` back: if its deadline is as near as it should be,
 * the entry is bound to it. On its pCPU, before it is loaded.
 */
__attribute__((noinline)) void vcpu_woken(struct vcpu *v);

/*
 * The last step of an entry that is bound to a deadline: enters the guest when that has come, and
 * does not return. Or it must not wait for that: returns, and the vCPU has new requests. On its
 * pCPU, `p`.
 */
__attribute__((noinline)) void vcpu_enter_bound(struct pcpu *p, struct vcpu *v);

/* The first vcpu_next of a pCPU, when none ran there yet. */
struct vcpu *vcpu_first(void);

#endif
