/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/timer.h"

#include <stddef.h>

#include "core/port.h"
#include "core/spinlock.h"
#include "hyp/arch.h"
#include "hyp/mem.h"

/* A line of its own for each pCPU: others touch it only to take back a vCPU's timer. */
struct queue {
    struct spinlock lock;
    struct timer *first;
    uint64_t next; /* its deadline, or TIMER_NEVER; atomic: read without the lock */
} __attribute__((aligned(64)));

static struct queue *queues;

void timer_init_cpus(unsigned cpus) {
    queues = mem_alloc(cpus * sizeof(*queues));
    for (unsigned i = 0; i < cpus; i++) {
        queues[i].next = TIMER_NEVER;
    }
}

void timer_init(struct timer *t, void (*fire)(struct timer *)) {
    *t = (struct timer){.cpu = -1, .fire = fire, .deadline = TIMER_NEVER};
}

/* After a change at the front. */
static void set_next(struct queue *q) {
    uint64_t next = q->first != NULL ? q->first->deadline : TIMER_NEVER;

    __atomic_store_n(&q->next, next, __ATOMIC_RELAXED);
}

static void unlink_timer(struct queue *q, struct timer *t) {
    if (t->prev != NULL) {
        t->prev->next = t->next;
    } else {
        q->first = t->next;
        set_next(q);
    }
    if (t->next != NULL) {
        t->next->prev = t->prev;
    }
    t->next = t->prev = NULL;
    __atomic_store_n(&t->cpu, -1, __ATOMIC_RELEASE);
}

static void link_timer(struct queue *q, struct timer *t, unsigned cpu) {
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
        set_next(q);
    }
    __atomic_store_n(&t->cpu, (int)cpu, __ATOMIC_RELEASE);
}

/* timer_set() where there is something to do: it comes from queue `cpu`, -1: from none. */
__attribute__((noinline)) static void move_timer(struct timer *t, int cpu, uint64_t deadline) {
    unsigned here = this_pcpu()->index;

    if (cpu != -1) {
        /* It may fire meanwhile, there: then it is out of that queue when we hold the lock. */
        struct queue *q = &queues[cpu];
        spin_lock(&q->lock);
        if (t->cpu == cpu) {
            unlink_timer(q, t);
        }
        spin_unlock(&q->lock);
    }
    if (deadline != TIMER_NEVER) {
        struct queue *q = &queues[here];
        spin_lock(&q->lock);
        t->deadline = deadline;
        link_timer(q, t, here);
        spin_unlock(&q->lock);
    }
}

void timer_set(struct timer *t, uint64_t deadline) {
    int cpu = __atomic_load_n(&t->cpu, __ATOMIC_ACQUIRE);

    if (cpu == -1 ? deadline != TIMER_NEVER
                  : cpu != (int)this_pcpu()->index || t->deadline != deadline) {
        move_timer(t, cpu, deadline);
    }
}

void timer_run(void) {
    struct queue *q = &queues[this_pcpu()->index];
    uint64_t now = port_clock();

    while (__atomic_load_n(&q->next, __ATOMIC_RELAXED) <= now) { /* others may take some out */
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
    uint64_t next = __atomic_load_n(&queues[p->index].next, __ATOMIC_RELAXED);
    uint64_t deadline = next < slice_end ? next : slice_end;

    /* An alarm for what is no longer wanted comes once and does no harm: setting it takes longer.
     */
    if (deadline < p->armed) {
        p->armed = deadline;
        arch_timer_arm(deadline);
    }
}
