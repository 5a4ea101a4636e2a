/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The scheduler: run queues per pCPU, shares by weight, exact run-state times.
 *
 * A sched_entity is one vCPU. Its life: OFF -> (sched_wake) RUNNABLE -> (sched_pick) RUNNING ->
 * RUNNABLE | BLOCKED | OFF. Time in each state is added up at each change and never sampled, so the
 * four times add up to the time since sched_entity_init() exactly.
 *
 * Locks: one per pCPU queue, taken inside; never more than one at a time except when an entity
 * moves between queues (lower pCPU number first). No function here may be called with a queue lock
 * held. All functions may be called with interrupts masked and from any pCPU unless stated.
 *
 * Ranges: vtime is in ticks, wraps around, and is compared by signed difference. At weight 1 and
 * 1 GHz that holds while two vtimes are less than a year apart.
 */
#ifndef CORE_SCHED_H
#define CORE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cpu_set.h"
#include "core/pvlock.h"
#include "core/relaxed.h"
#include "core/spin.h"
#include "core/steal.h"

#define SCHED_MAX_CPUS       128u
#define SCHED_DEFAULT_WEIGHT 256u

enum run_state { RUN_OFF, RUN_BLOCKED, RUN_RUNNABLE, RUN_RUNNING, RUN_STATES };

/* One vCPU as the scheduler sees it. The fields belong to sched.c; others read through functions.
 */
struct sched_entity {
    struct sched_entity *next, *prev; /* place in its pCPU's queue, sorted by vtime */
    uint64_t vtime;                   /* run time in ticks scaled by DEFAULT_WEIGHT / weight */
    uint64_t slice_vtime;             /* vtime that a whole slice costs */
    uint64_t since;                   /* when the present state began, ticks */
    uint64_t times[RUN_STATES];       /* finished time in each state, ticks */
    uint64_t longest_wait;            /* longest single stay in RUNNABLE, ticks */
    uint64_t switches;                /* how often it was brought onto a pCPU */
    uint64_t migrations;              /* how often it came onto another pCPU than before */
    struct cpu_set allowed;           /* pCPUs it may run on */
    uint32_t weight;                  /* 1..65535 */
    uint32_t id;                      /* TRACE_WHO in traces; the owner sets it, 0 otherwise */
    uint16_t vtime_rest;              /* what vtime lacks, in 1 / weight ticks: nothing is lost */
    uint16_t cpu;                     /* pCPU whose queue it belongs to */
    uint16_t last_cpu;                /* pCPU it was last brought onto */
    union {
        struct {
            bool wake_pending; /* a wake came while it was RUNNING */
            bool kicked;       /* a kick came while it was not BLOCKED */
        };
        uint16_t wakes; /* both, to be looked at together */
    };
    uint8_t state; /* enum run_state */
    bool on_cpu;   /* its registers are still on `cpu`: nobody else may take it */
    const struct sched_entity *group; /* the same for all vCPUs of a VM: one of them */
    struct sched_entity *sibling;  /* the next vCPU of its VM, in a ring; itself if it is alone */
    struct sched_entity *yield_to; /* for its next yield: sched_yield_to() */
    struct spin_wait wait;         /* if it spins, what for (core/spin.h) */
    struct pvlock pvlock;          /* tells its guest whether it runs */
    struct steal steal;            /* tells its guest how long it waited for a pCPU */
};

/*
 * Starts the scheduler for pCPUs 0..cpus-1 with a time slice of `slice` ticks (> 0). Once, before
 * any other call. cpus is 1..SCHED_MAX_CPUS.
 */
void sched_init(unsigned cpus, uint64_t slice);

/*
 * Makes pCPU `cpu` take part: until then no entity is placed on it. On that pCPU, once.
 */
void sched_cpu_online(unsigned cpu);

/*
 * Prepares an entity: OFF from now on. weight is 1..65535; `allowed` must name at least one pCPU
 * below `cpus`. Nobody else may know the entity yet.
 */
void sched_entity_init(struct sched_entity *e, uint32_t weight, struct cpu_set allowed);

/*
 * `e` is a vCPU of the same VM as `sibling`; without a call it is one of its own. Both are OFF and
 * have never been woken.
 */
void sched_entity_join(struct sched_entity *e, struct sched_entity *sibling);

/* Another weight, 1..65535, from now on. Any pCPU. */
void sched_set_weight(struct sched_entity *e, uint32_t weight);

/*
 * Makes an OFF or BLOCKED entity runnable: picks a pCPU (where it ran last if that is idle, else an
 * idle one that it may use, else where it ran last), queues it there and kicks that pCPU when it is
 * idle or when the entity deserves the CPU more than the one that runs there (wake-up preemption).
 * A RUNNING entity gets `wake_pending`, so that a block that is under way does not lose the wake; a
 * RUNNABLE one is left as it is.
 */
void sched_wake(struct sched_entity *e);

/*
 * Ends the wait of a BLOCKED entity as sched_wake() does; one that is not BLOCKED does not wait the
 * next time that it wants to. So no kick is lost that comes just before a wait. An OFF one stays
 * OFF.
 */
void sched_kick(struct sched_entity *e);

/*
 * Before an entity that runs here looks for a reason not to block: forgets earlier wakes. The
 * sequence "sched_block_prepare; is anything pending?; sched_pick(BLOCKED)" loses no wake.
 */
void sched_block_prepare(struct sched_entity *e);

/*
 * The one way to change who runs on pCPU `cpu`; called on that pCPU only.
 * `prev` (may be NULL) is the entity that ran there and now is `prev_state`: RUN_RUNNABLE (its
 * slice ended, or somebody better came), RUN_BLOCKED or RUN_OFF. With `wake_pending` set a BLOCKED
 * or OFF one becomes RUNNABLE instead, and with `kicked` a BLOCKED one. Returns the entity that
 * runs here from now on (its state is RUNNING; may be prev again, and its wake_pending is then
 * cleared), or NULL: nothing to do, the pCPU counts as idle until it calls again. An idle pCPU and
 * one whose slice ended look at the other queues and take an entity that waits there when that is
 * fair (see sched.c). If the result is not prev, the caller saves prev's registers and then calls
 * sched_released(prev), before it enters the new one.
 */
struct sched_entity *sched_pick(unsigned cpu, struct sched_entity *prev, enum run_state prev_state);

/* Whether pCPU `cpu` may have `e`, if that is RUNNABLE; a hint. Any pCPU. */
static inline bool sched_may_take(const struct sched_entity *e, unsigned cpu) {
    return !load_relaxed(&e->on_cpu) && cpu_set_has(&e->allowed, cpu);
}

/*
 * For the yield that comes next, sched_pick() of `prev` as RUN_RUNNABLE before its slice ends,
 * here: whom it is for. `to` is a vCPU of the same VM that waits in the queue of `cpu` or another:
 * it runs here at once and for a slice, and takes over the claim of `prev` if that is the greater
 * one, so that the VM gets neither more nor less than without. False: it does not wait any more, or
 * its queue is busy just now; nothing has changed. Without a call, or if it is gone by then,
 * whoever is first in the queue runs. On `cpu`.
 */
bool sched_yield_to(unsigned cpu, struct sched_entity *prev, struct sched_entity *to);

/* The same for the first one of another VM: its siblings wait themselves. On prev's pCPU. */
static inline void sched_yield_to_other(struct sched_entity *prev) {
    prev->yield_to = prev;
}

/* How many wait for pCPU `cpu`; a hint. Any pCPU. */
uint32_t sched_waiting(unsigned cpu);

/* prev's registers are in memory: other pCPUs may take it from now on. On the pCPU it left. */
void sched_released(struct sched_entity *prev);

/*
 * Whether pCPU `cpu` should call sched_pick for the entity it runs: its slice is over, or a better
 * one waits. One load and no lock when there is nothing to do. On that pCPU.
 */
bool sched_need_pick(unsigned cpu);

/*
 * When pCPU `cpu` must look at sched_need_pick again at the latest, in ticks of port_clock();
 * UINT64_MAX when nobody waits for this CPU. On that pCPU.
 */
uint64_t sched_slice_end(unsigned cpu);

/* Ticks that the entity has been RUNNABLE in all. It is RUNNING here, or OFF. */
static inline uint64_t sched_waited(const struct sched_entity *e) {
    return e->times[RUN_RUNNABLE];
}

/*
 * The entity's times per state in ticks up to now, which is returned, exact: the four add up to the
 * time since sched_entity_init(). Takes the lock of its queue.
 */
uint64_t sched_times(struct sched_entity *e, uint64_t times[RUN_STATES]);

#endif
