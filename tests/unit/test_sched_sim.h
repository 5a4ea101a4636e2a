/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plays up to SIM_CPUS pCPUs in virtual time for the tests of core/sched.c: deterministic, one
 * thread, an event at a time. Defines the port. One tick is one microsecond.
 */
#ifndef TEST_SCHED_SIM_H
#define TEST_SCHED_SIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/port.h"
#include "core/sched.h"

#define SIM_CPUS     16u
#define SIM_ENTITIES 64u
#define SIM_SLICE    2000u
#define SIM_SECOND   1000000u

enum sim_end { SIM_BLOCKS, SIM_YIELDS };

/* What an entity does: runs for `run` ticks (0: for ever), then blocks for `sleep` or yields. */
struct sim_entity {
    struct sched_entity e;
    uint64_t run, sleep;
    enum sim_end end;
    uint64_t left;       /* of this run */
    uint64_t wake_at;    /* UINT64_MAX: not asleep */
    uint64_t woken_at;   /* UINT64_MAX: ran since the last wake */
    uint64_t worst_late; /* longest time from a wake to the CPU */
    uint64_t born;
};

static struct {
    uint64_t now;
    unsigned cpus, entities;
    struct sim_entity *cur[SIM_CPUS];
    uint64_t started[SIM_CPUS]; /* since when cur's `left` counts */
    bool kicked[SIM_CPUS];
    uint64_t kicks, picks;
    struct sim_entity all[SIM_ENTITIES];
} sim;

uint64_t port_clock(void) {
    return sim.now;
}

void port_kick_cpu(unsigned cpu) {
    assert_true(cpu < sim.cpus);
    sim.kicked[cpu] = true;
    sim.kicks++;
}

unsigned port_this_cpu(void) {
    return 0; /* asked for by traces only, and none is taken here */
}

void port_relax(void) {
    fail_msg("a lock was not free in a single thread");
}

static inline void sim_init(unsigned cpus) {
    memset(&sim, 0, sizeof sim);
    sim.now = 12345;
    sim.cpus = cpus;
    sched_init(cpus, SIM_SLICE);
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        sched_cpu_online(cpu);
        assert_null(sched_pick(cpu, NULL, RUN_RUNNABLE));
    }
}

static inline struct cpu_set sim_set(uint64_t mask) {
    struct cpu_set set = cpu_set_none();

    set.bits[0] = mask;
    return set;
}

/* An entity that is OFF. */
static inline struct sim_entity *sim_add(uint32_t weight, struct cpu_set allowed) {
    struct sim_entity *s = &sim.all[sim.entities++];

    assert_true(sim.entities <= SIM_ENTITIES);
    sched_entity_init(&s->e, weight, allowed);
    s->wake_at = UINT64_MAX;
    s->woken_at = UINT64_MAX;
    s->born = sim.now;
    return s;
}

static inline void sim_wake(struct sim_entity *s) {
    bool asleep = s->e.state == RUN_OFF || s->e.state == RUN_BLOCKED;

    s->wake_at = UINT64_MAX;
    if (asleep) {
        s->woken_at = sim.now;
    }
    sched_wake(&s->e);
}

/* A spinner that is runnable at once. */
static inline struct sim_entity *sim_spinner(uint32_t weight, struct cpu_set allowed) {
    struct sim_entity *s = sim_add(weight, allowed);

    sim_wake(s);
    return s;
}

/* What must hold whenever an entity was picked. */
static inline void sim_check_pick(unsigned cpu, const struct sched_entity *e) {
    assert_int_equal(e->state, RUN_RUNNING);
    assert_true(cpu_set_has(&e->allowed, cpu));
    assert_true(e->on_cpu);
    assert_int_equal(e->cpu, cpu);
    for (unsigned other = 0; other < sim.cpus; other++) {
        assert_true(other == cpu || sim.cur[other] == NULL || &sim.cur[other]->e != e);
    }
}

static inline void sim_pick(unsigned cpu, enum run_state state) {
    struct sim_entity *prev = sim.cur[cpu];
    struct sim_entity *next;

    if (prev != NULL && prev->run != 0) {
        prev->left -= sim.now - sim.started[cpu];
    }
    sim.picks++;
    sim.kicked[cpu] = false;
    next = (struct sim_entity *)sched_pick(cpu, prev != NULL ? &prev->e : NULL, state);
    if (next != NULL) {
        sim_check_pick(cpu, &next->e);
        if (next->woken_at != UINT64_MAX) {
            uint64_t late = sim.now - next->woken_at;

            next->worst_late = late > next->worst_late ? late : next->worst_late;
            next->woken_at = UINT64_MAX;
        }
        if (next->run != 0 && next->left == 0) {
            next->left = next->run;
        }
    }
    sim.cur[cpu] = next;
    sim.started[cpu] = sim.now;
    if (prev != NULL && prev != next) {
        sched_released(&prev->e);
    }
}

/* No runnable entity may wait while a pCPU where it may run has nothing to do. */
static inline void sim_check_idle(void) {
    for (unsigned cpu = 0; cpu < sim.cpus; cpu++) {
        for (unsigned i = 0; sim.cur[cpu] == NULL && i < sim.entities; i++) {
            const struct sched_entity *e = &sim.all[i].e;

            if (e->state == RUN_RUNNABLE && cpu_set_has(&e->allowed, cpu)) {
                fail_msg("entity %u waits on pCPU %u while pCPU %u is idle", i, e->cpu, cpu);
            }
        }
    }
}

/* Lets every pCPU react until nothing is left to do at this moment. */
static inline void sim_settle(void) {
    for (unsigned rounds = 0;; rounds++) {
        bool busy = false;

        assert_true(rounds < 1000);
        for (unsigned cpu = 0; cpu < sim.cpus; cpu++) {
            bool idle = sim.cur[cpu] == NULL;

            if ((idle && sim.kicked[cpu]) || sched_need_pick(cpu)) {
                sim_pick(cpu, RUN_RUNNABLE);
                busy = true;
            }
            sim.kicked[cpu] = false;
        }
        if (!busy) {
            break;
        }
    }
    sim_check_idle();
}

static inline uint64_t sim_next_event(void) {
    uint64_t next = UINT64_MAX;

    for (unsigned cpu = 0; cpu < sim.cpus; cpu++) {
        const struct sim_entity *s = sim.cur[cpu];
        uint64_t end = sched_slice_end(cpu);

        if (s != NULL && s->run != 0 && sim.started[cpu] + s->left < end) {
            end = sim.started[cpu] + s->left;
        }
        next = s != NULL && end < next ? end : next;
    }
    for (unsigned i = 0; i < sim.entities; i++) {
        next = sim.all[i].wake_at < next ? sim.all[i].wake_at : next;
    }
    return next;
}

/* Runs for `ticks`. */
static inline void sim_run(uint64_t ticks) {
    uint64_t end = sim.now + ticks;

    sim_settle();
    for (;;) {
        uint64_t next = sim_next_event();

        if (next > end) {
            break;
        }
        assert_true(next >= sim.now);
        sim.now = next;
        for (unsigned i = 0; i < sim.entities; i++) {
            if (sim.all[i].wake_at <= sim.now) {
                sim_wake(&sim.all[i]);
            }
        }
        for (unsigned cpu = 0; cpu < sim.cpus; cpu++) {
            struct sim_entity *s = sim.cur[cpu];

            if (s != NULL && s->run != 0 && sim.started[cpu] + s->left <= sim.now) {
                if (s->end == SIM_YIELDS) {
                    sim_pick(cpu, RUN_RUNNABLE);
                } else {
                    s->wake_at = sim.now + s->sleep;
                    sched_block_prepare(&s->e);
                    sim_pick(cpu, RUN_BLOCKED);
                }
            }
        }
        sim_settle();
    }
    sim.now = end;
}

static inline uint64_t sim_ran(struct sim_entity *s) {
    uint64_t times[RUN_STATES];

    sched_times(&s->e, times);
    return times[RUN_RUNNING];
}

/* Every entity's times add up to its age, and all run times to what the pCPUs gave. */
static inline void sim_check_times(void) {
    for (unsigned i = 0; i < sim.entities; i++) {
        uint64_t times[RUN_STATES];

        sched_times(&sim.all[i].e, times);
        assert_int_equal(times[RUN_OFF] + times[RUN_BLOCKED] + times[RUN_RUNNABLE] +
                             times[RUN_RUNNING],
                         sim.now - sim.all[i].born);
    }
}

/* Run time since `from` in permille of a second. */
static inline int64_t sim_permille(struct sim_entity *s, uint64_t from) {
    return (int64_t)((sim_ran(s) - from) * 1000 / SIM_SECOND);
}

static inline void check_near(int64_t found, int64_t wanted, int64_t margin) {
    if (found < wanted - margin || found > wanted + margin) {
        fail_msg("found %lld, wanted %lld +- %lld", (long long)found, (long long)wanted,
                 (long long)margin);
    }
}

#endif
