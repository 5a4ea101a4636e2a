/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/timer.h"

#include <stddef.h>

#include "core/port.h"
#include "core/relaxed.h"
#include "core/spinlock.h"
#include "hyp/arch.h"
#include "hyp/mem.h"

/* A line of its own for each pCPU: others touch it only to take back a vCPU's timer. */
struct timer_queue {
    struct spinlock lock;
    struct timer *first;
    uint64_t next; /* its deadline, or TIMER_NEVER; atomic: read without the lock */
} __attribute__((aligned(64)));

void timer_init_cpus(unsigned cpus) {
    struct timer_queue *queues = mem_alloc(cpus * sizeof(*queues));

    for (unsigned i = 0; i < cpus; i++) {
        queues[i].next = TIMER_NEVER;
        pcpus[i]->timers = &queues[i];
    }
}

void timer_init(struct timer *t, void (*fire)(struct timer *)) {
    *t = (struct timer){.fire = fire, .deadline = TIMER_NEVER};
}

/* After a change at the front. */
static void set_next(struct timer_queue *q) {
    uint64_t next = q->first != NULL ? q->first->deadline : TIMER_NEVER;

    store_relaxed(&q->next, next);
}

static void unlink_timer(struct timer_queue *q, struct timer *t) {
    if (t->prev != NULL) {
        t->prev->next = t->next;
    } else {
        q->first = t->next;
        set_next(q);
    }
    if (t->next != NULL) {
        t->next->prev = t->prev;
    }
    __atomic_store_n(&t->queue, NULL, __ATOMIC_RELEASE);
}

static void link_timer(struct timer_queue *q, struct timer *t) {
    struct timer *after = NULL, *before = q->first;

    while (before != NULL && before->deadline <= t->deadline) {
        after = before;
        before = before->next;
    }
    t->prev = after;
    t->next = before;
    if (before != NULL) {
        before->prev = t;
    }
    if (after != NULL) {
        after->next = t;
    } else {
        q->first = t;
        store_relaxed(&q->next, t->deadline);
    }
    __atomic_store_n(&t->queue, q, __ATOMIC_RELEASE);
}

/* Takes it out. It may fire meanwhile, there: then it is out when we hold the lock. */
__attribute__((noinline)) static void take_out(struct timer_queue *q, struct timer *t) {
    spin_lock(&q->lock);
    if (t->queue == q) {
        unlink_timer(q, t);
    }
    spin_unlock(&q->lock);
}

void timer_set(struct timer *t, uint64_t deadline) {
    struct timer_queue *q = __atomic_load_n(&t->queue, __ATOMIC_ACQUIRE);
    struct timer_queue *here = this_pcpu()->timers;

    if (q != NULL) {
        if (q == here && t->deadline == deadline) {
            return;
        }
        take_out(q, t);
    }
    if (deadline != TIMER_NEVER) {
        spin_lock(&here->lock);
        t->deadline = deadline;
        link_timer(here, t);
        spin_unlock(&here->lock);
    }
}

void timer_run(void) {
    struct timer_queue *q = this_pcpu()->timers;
    uint64_t now = port_clock();

    while (load_relaxed(&q->next) <= now) { /* others may take some out */
        spin_lock(&q->lock);
        struct timer *t = q->first;
        if (t == NULL || t->deadline > now) {
            spin_unlock(&q->lock);
            return;
        }
        unlink_timer(q, t);
        spin_unlock(&q->lock);
        t->fire(t);
    }
}

void timer_program(uint64_t slice_end) {
    struct pcpu *p = this_pcpu();
    /* Only this pCPU adds to its queue, so a stale answer can be too early but never too late. */
    uint64_t next = load_relaxed(&p->timers->next);
    uint64_t deadline = next < slice_end ? next : slice_end;

    /* An alarm for what is no longer wanted comes once and does no harm: setting it takes longer.
     */
    if (deadline < p->armed) {
        p->armed = deadline;
        arch_timer_arm(deadline);
    }
}
