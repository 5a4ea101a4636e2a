/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/spin.h"

#include "core/sched.h"

static enum spin_rank rank_of(const struct sched_entity *e,
                              enum spin_rank (*rank)(const struct sched_entity *)) {
    if (load_relaxed(&e->wait.turn) != load_relaxed(&e->switches)) {
        return rank(e);
    }
    if (load_relaxed(&e->wait.word) == NULL) {
        return SPIN_SPUN;
    }
    return spin_wait_over(&e->wait) ? SPIN_RELEASED : SPIN_WAITS;
}

struct spin_choice spin_choose(const struct sched_entity *self, unsigned cpu,
                               enum spin_rank (*rank)(const struct sched_entity *)) {
    struct spin_choice choice = {0};
    unsigned best_points = 2u * SPIN_WAITS + 1u;

    for (struct sched_entity *e = self->sibling; e != self; e = e->sibling) {
        unsigned here, points;

        if (load_relaxed(&e->state) != RUN_RUNNABLE) {
            continue;
        }
        choice.waiting++;
        here = load_relaxed(&e->cpu) == cpu;
        choice.here += here;
        if (!sched_may_take(e, cpu)) {
            continue;
        }
        points = 2u * (unsigned)rank_of(e, rank) + here;
        if (points > best_points) {
            best_points = points;
            choice.best = e;
        }
    }
    return choice;
}
