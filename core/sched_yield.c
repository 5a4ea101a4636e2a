/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Yields: one vCPU runs in place of another, for its sake.
 *
 * Within a VM the claims move: whoever runs in place of another takes the smaller vtime of the two,
 * and the other one the larger. So the one that was yielded to is not displaced by the one that did
 * until it has run a slice, no matter how far ahead it was; and the VM as a whole is owed as much
 * as before: to yield gains and loses nothing. Towards other VMs there are two limits: who is owed
 * more than YIELD_SLICES keeps its pCPU (or a VM that always spins would get nothing), and a target
 * must not run while another VM is owed more than a slice against it.
 */
#include "core/port.h"
#include "core/sched.h"
#include "core/sched_queue.h"

#define YIELD_SLICES 2u

static bool is_listed(const struct run_queue *q, const struct sched_entity *e) {
    const struct sched_entity *other = q->head;

    while (other != NULL && other != e) {
        other = other->next;
    }
    return other != NULL;
}

/* The first on q that is of another VM than `e`, or NULL. */
static struct sched_entity *first_other(const struct run_queue *q, const struct sched_entity *e) {
    struct sched_entity *other = q->head;

    while (other != NULL && other->group == e->group) {
        other = other->next;
    }
    return other;
}

/* The claim that `to` has when it runs in place of `from`. */
static uint64_t claim_of(const struct sched_entity *from, const struct sched_entity *to) {
    return before(from->vtime, to->vtime) ? from->vtime : to->vtime;
}

/* It takes it over. A list that one of them is in is out of order then. */
static void pass_claim(struct sched_entity *from, struct sched_entity *to) {
    uint64_t claim = claim_of(from, to);

    from->vtime += to->vtime - claim;
    to->vtime = claim;
}

/* `other`, of another VM, if it may run in place of `stay`; else NULL. */
static struct sched_entity *unless_owed(const struct sched_entity *stay,
                                        struct sched_entity *other) {
    return other == NULL || before(stay->vtime + YIELD_SLICES * stay->slice_vtime, other->vtime)
               ? NULL
               : other;
}

struct sched_entity *sched_yield_target(const struct run_queue *q, struct sched_entity *stay) {
    struct sched_entity *to = stay->yield_to, *other = first_other(q, stay);

    stay->yield_to = NULL;
    if (to == stay) {
        return unless_owed(stay, other);
    }
    if (to == NULL || !is_listed(q, to)) {
        to = q->head;
    }
    if (to == other) {
        return unless_owed(stay, other);
    }
    if (other != NULL && before(other->vtime + stay->slice_vtime, claim_of(stay, to))) {
        return other;
    }
    pass_claim(stay, to); /* one is in no list, and the other leaves it */
    return to;
}

uint32_t sched_waiting(unsigned cpu) {
    return load_relaxed(&sched_queue_of(cpu)->waiting);
}

bool sched_yield_to(unsigned cpu, struct sched_entity *prev, struct sched_entity *to) {
    struct run_queue *q = sched_queue_of(__atomic_load_n(&to->cpu, __ATOMIC_ACQUIRE));
    bool got = q->cpu == cpu;

    if (!got && load_relaxed(&q->waiting) != 0 && spin_trylock(&q->lock)) {
        got = is_listed(q, to) && !__atomic_load_n(&to->on_cpu, __ATOMIC_SEQ_CST);
        if (got) {
            list_hand_over(q, to, cpu);
        }
        spin_unlock(&q->lock);
        if (got) {
            q = sched_queue_of(cpu);
            spin_lock(&q->lock);
            sched_add_moved(q, to, LAG_SLICES * to->slice_vtime);
            spin_unlock(&q->lock);
        }
    }
    prev->yield_to = got ? to : NULL;
    return got;
}
