/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Software timers: per pCPU a queue sorted by deadline. The pCPU's own hardware timer is armed for
 * the first of them or for the end of the running vCPU's slice, whatever comes first.
 *
 * Locks: one per pCPU queue, innermost of all; handlers run without it.
 */
#ifndef HYP_TIMER_H
#define HYP_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#define TIMER_NEVER UINT64_MAX

struct timer_queue;

struct timer {
    struct timer_queue *queue; /* atomic: in which it is, or NULL; first, for its address */
    struct timer *next, *prev;
    uint64_t deadline;            /* ticks of port_clock(); valid while queued */
    void (*fire)(struct timer *); /* on the pCPU whose queue it was in, no locks held */
};

/* Prepares a timer; nothing is queued. */
void timer_init(struct timer *t, void (*fire)(struct timer *));

/*
 * Sets the timer to `deadline` on this pCPU's queue, or takes it out for TIMER_NEVER. A deadline in
 * the past fires at this pCPU's next timer_run. Only the pCPU that runs the timer's vCPU, or holds
 * it otherwise, may call this.
 */
void timer_set(struct timer *t, uint64_t deadline);

/* Fires everything that is due on this pCPU. On each pCPU when its hardware timer fires. */
void timer_run(void);

/*
 * Sees to it that the hardware timer fires at the earlier of this pCPU's first timer and
 * `slice_end`, at the latest: an alarm of before that comes earlier is left as it is.
 */
void timer_program(uint64_t slice_end);

/* Makes room for the queues of pCPUs 0..cpus-1. Once. */
void timer_init_cpus(unsigned cpus);

#endif
