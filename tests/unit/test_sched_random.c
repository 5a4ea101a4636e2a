/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/sched.c core/sched_watch.c core/trace.c */
/*
 * The scheduler under random operations in a random order: what must hold, holds after each of
 * them.
 */
#include <stdlib.h>

#include "test_sched_sim.h"

#define OPERATIONS 100000u
#define CPUS       4u
#define ENTITIES   16u

static uint64_t seed;

/* xorshift64*: the same numbers everywhere. */
static uint32_t roll(uint32_t limit) {
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (uint32_t)((seed * 0x2545f4914f6cdd1dull) >> 32) % limit;
}

/* What we know of an entity on our own, without the scheduler. */
struct shadow {
    uint64_t since, times[RUN_STATES];
    enum run_state state;
    bool wake_pending;
};

static struct shadow shadow[ENTITIES];
static struct sim_entity *unreleased[CPUS]; /* prev whose registers are not saved yet */

static void enter(unsigned i, enum run_state state) {
    struct shadow *s = &shadow[i];

    s->times[s->state] += sim.now - s->since;
    s->since = sim.now;
    s->state = state;
}

static unsigned index_of(const struct sim_entity *s) {
    return (unsigned)(s - sim.all);
}

static void release(unsigned cpu) {
    if (unreleased[cpu] != NULL) {
        sched_released(&unreleased[cpu]->e);
        unreleased[cpu] = NULL;
    }
}

static void wake(unsigned i) {
    if (shadow[i].state == RUN_RUNNING) {
        shadow[i].wake_pending = true;
    } else if (shadow[i].state != RUN_RUNNABLE) {
        enter(i, RUN_RUNNABLE);
    }
    sched_wake(&sim.all[i].e);
}

static void pick(unsigned cpu, enum run_state state) {
    struct sim_entity *prev = sim.cur[cpu];
    struct sim_entity *next;

    release(cpu);
    sim.kicked[cpu] = false;
    next = (struct sim_entity *)sched_pick(cpu, prev != NULL ? &prev->e : NULL, state);
    if (prev != NULL) {
        bool woken = state != RUN_RUNNABLE && shadow[index_of(prev)].wake_pending;

        enter(index_of(prev), woken ? RUN_RUNNABLE : state);
    }
    sim.cur[cpu] = next;
    if (next != NULL) {
        sim_check_pick(cpu, &next->e);
        assert_int_equal(shadow[index_of(next)].state, RUN_RUNNABLE);
        enter(index_of(next), RUN_RUNNING);
        shadow[index_of(next)].wake_pending = false;
        for (unsigned other = 0; other < CPUS; other++) {
            assert_true(other == cpu || unreleased[other] != next);
        }
    }
    if (prev != NULL && prev != next) {
        unreleased[cpu] = prev;
    }
}

static void check_entity(unsigned i) {
    struct sim_entity *s = &sim.all[i];
    uint64_t times[RUN_STATES];

    assert_int_equal(s->e.state, shadow[i].state);
    assert_true(cpu_set_has(&s->e.allowed, s->e.cpu));
    sched_times(&s->e, times);
    for (unsigned state = 0; state < RUN_STATES; state++) {
        uint64_t extra = state == shadow[i].state ? sim.now - shadow[i].since : 0;

        assert_int_equal(times[state], shadow[i].times[state] + extra);
    }
    if (shadow[i].state == RUN_RUNNING) {
        assert_int_equal(s->e.wake_pending, shadow[i].wake_pending);
    }
}

/* Every pCPU answers its kicks; then nobody who could run may wait, and each runs whom we think. */
static void settle(void) {
    for (unsigned cpu = 0; cpu < CPUS; cpu++) {
        release(cpu);
    }
    for (unsigned rounds = 0; rounds < 100; rounds++) {
        bool busy = false;

        for (unsigned cpu = 0; cpu < CPUS; cpu++) {
            release(cpu);
            if ((sim.cur[cpu] == NULL && sim.kicked[cpu]) || sched_need_pick(cpu)) {
                pick(cpu, RUN_RUNNABLE);
                release(cpu);
                busy = true;
            }
            sim.kicked[cpu] = false;
        }
        if (!busy) {
            sim_check_idle();
            return;
        }
    }
    fail_msg("the pCPUs never come to rest");
}

static void step(void) {
    unsigned cpu = roll(CPUS);
    unsigned what = roll(100);

    sim.now += roll(4) == 0 ? roll(3 * SIM_SLICE) : roll(50);
    if (what < 40) {
        wake(roll(ENTITIES));
    } else if (what < 60) {
        pick(cpu, RUN_RUNNABLE);
    } else if (what < 85 && sim.cur[cpu] != NULL) {
        if (roll(2) == 0) {
            sched_block_prepare(&sim.cur[cpu]->e);
            shadow[index_of(sim.cur[cpu])].wake_pending = false;
        }
        if (roll(4) == 0) {
            wake(index_of(sim.cur[cpu]));
        }
        pick(cpu, roll(8) == 0 ? RUN_OFF : RUN_BLOCKED);
    } else if (what < 95) {
        release(cpu);
    } else {
        settle();
    }
}

static void run(uint64_t start, unsigned max_cpus) {
    static const uint32_t weights[] = {1, 128, 256, 256, 768, 65535};

    seed = start;
    sim_init(CPUS);
    memset(shadow, 0, sizeof shadow);
    memset(unreleased, 0, sizeof unreleased);
    for (unsigned i = 0; i < ENTITIES; i++) {
        uint64_t mask = 1 + roll((1u << max_cpus) - 1);

        sim_add(weights[roll(6)], roll(2) == 0 ? cpu_set_all() : sim_set(mask));
        shadow[i] = (struct shadow){.since = sim.now, .state = RUN_OFF};
    }
    for (unsigned i = 0; i < OPERATIONS; i++) {
        step();
        check_entity(roll(ENTITIES));
    }
    settle();
    for (unsigned i = 0; i < ENTITIES; i++) {
        check_entity(i);
    }
}

static void test_random_operations(void **state) {
    (void)state;
    for (uint64_t start = 1; start <= 3; start++) {
        run(start, CPUS);
    }
}

/* With more sets that leave pCPUs idle beside waiting entities. */
static void test_random_operations_with_affinity(void **state) {
    (void)state;
    for (uint64_t start = 11; start <= 13; start++) {
        run(start, 2);
    }
}

/* A random load in virtual time: the run times of all are exactly what the pCPUs were busy. */
static void test_random_load_is_work_conserving(void **state) {
    (void)state;
    for (uint64_t start = 21; start <= 30; start++) {
        unsigned n = 1 + (unsigned)start % 6;

        seed = start;
        sim_init(n);
        for (unsigned i = 0; i < 2 * n + 3; i++) {
            struct sim_entity *s = sim_add(64u << roll(6), cpu_set_all());

            s->run = i < n ? 0 : 1 + roll(3 * SIM_SLICE);
            s->sleep = 1 + roll(3 * SIM_SLICE);
            s->end = roll(4) == 0 ? SIM_YIELDS : SIM_BLOCKS;
            sim_wake(s);
        }
        uint64_t sum = 0;

        sim_run(SIM_SECOND);
        sim_check_times();
        for (unsigned i = 0; i < sim.entities; i++) {
            sum += sim_ran(&sim.all[i]);
        }
        assert_int_equal(sum, (uint64_t)n * SIM_SECOND); /* n spinners keep all busy */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations),
        cmocka_unit_test(test_random_operations_with_affinity),
        cmocka_unit_test(test_random_load_is_work_conserving),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
