/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/sched.c core/sched_yield.c core/sched_watch.c core/trace.c */
/* link: core/pvlock.c core/steal.c */
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
    bool wake_pending, kicked;
    bool flagged; /* has a record of the preempted flag */
};

/* What the guest of an entity sees. In half of them one that is BLOCKED counts as preempted. */
static struct guest {
    _Alignas(64) struct pvlock_record own;
    _Alignas(64) struct pvsched_record given;
    struct pvtime_record time;
    uint64_t stolen; /* at its last look */
} guest[ENTITIES];

#define UNTOUCHED 0x5a5a5a5au /* what a guest leaves in a record that is its own */

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

static void kick(unsigned i) {
    if (shadow[i].state == RUN_BLOCKED) {
        enter(i, RUN_RUNNABLE);
    } else {
        shadow[i].kicked = true;
    }
    sched_kick(&sim.all[i].e);
}

/* Whether `s`, which is to be in `state`, goes on because of a wake or a kick. */
static bool goes_on(struct shadow *s, enum run_state state) {
    bool woken = state != RUN_RUNNABLE && s->wake_pending;

    if (state == RUN_BLOCKED) {
        woken |= s->kicked;
        s->kicked = false;
    }
    return woken;
}

static void pick(unsigned cpu, enum run_state state) {
    struct sim_entity *prev = sim.cur[cpu];
    struct sim_entity *next;

    release(cpu);
    sim.kicked[cpu] = false;
    next = (struct sim_entity *)sched_pick(cpu, prev != NULL ? &prev->e : NULL, state);
    if (prev != NULL) {
        struct shadow *s = &shadow[index_of(prev)];

        enter(index_of(prev), goes_on(s, state) ? RUN_RUNNABLE : state);
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
    assert_int_equal(s->e.kicked, shadow[i].kicked);
}

/* --- the records --- */

static void *guest_memory(void *context, uint64_t ipa, uint64_t size) {
    (void)context;
    assert_int_equal(size, 64);
    return (char *)guest + ipa;
}

static const struct pvlock_vm vm = {
    .offers_pv_lock = true, .memory = guest_memory, .ram = guest_memory};

/* Sets up what is outside the guest: the attribute and the slot of stolen time. */
static void offer_records(unsigned i) {
    struct sched_entity *e = &sim.all[i].e;
    uint64_t ipa = (uint64_t)((char *)&guest[i].own - (char *)guest);

    pvlock_init(&e->pvlock, i % 2 == 1);
    assert_int_equal(pvlock_attr_set(&e->pvlock, &vm, PVLOCK_CTRL, PVLOCK_IPA, &ipa), 0);
    steal_offer(&e->steal, &guest[i].time, 0, SIM_SECOND);
}

/* Entity `i`, which runs, makes a call, or its VM ends under it. Its own memory is scribbled on. */
static void call(unsigned i) {
    struct sched_entity *e = &sim.all[i].e;
    struct guest *g = &guest[i];

    switch (roll(6)) {
    case 0:
        assert_true(pvlock_call(&e->pvlock, &vm) >= 0);
        shadow[i].flagged = true;
        break;
    case 1:
        assert_int_equal(
            pvsched_init(&e->pvlock, &vm, (uint64_t)((char *)&g->given - (char *)guest)), 0);
        shadow[i].flagged = true;
        break;
    case 2:
        shadow[i].flagged &= e->pvlock.dialect != PVLOCK_PV_SCHED;
        (void)pvsched_release(&e->pvlock);
        break;
    case 3:
        assert_int_equal(steal_call(&e->steal, sched_waited(e)), 0);
        assert_true(g->time.stolen_ns >= g->stolen);
        g->stolen = g->time.stolen_ns;
        break;
    case 4:
        pvlock_end(&e->pvlock);
        shadow[i].flagged = false;
        break;
    default:
        g->given.preempted = e->pvlock.dialect == PVLOCK_PV_SCHED ? 0 : UNTOUCHED;
        g->own.preempted = e->pvlock.dialect == PVLOCK_PV_LOCK ? 0 : UNTOUCHED;
    }
}

/* The flag that entity `i` must show, if it has one. */
static uint32_t flag_of(unsigned i) {
    switch (shadow[i].state) {
    case RUN_RUNNING:
        return 0;
    case RUN_BLOCKED:
        return i % 2;
    default:
        return 1; /* it waits for a pCPU, or stands where its VM was paused */
    }
}

/* What holds of all records at any time (P04, S03). */
static void check_records(void) {
    unsigned zero = 0, may_be_zero = CPUS;

    for (unsigned i = 0; i < ENTITIES; i++) {
        const struct sched_entity *e = &sim.all[i].e;
        struct guest *g = &guest[i];

        assert_int_equal(e->pvlock.record != NULL, shadow[i].flagged);
        if (shadow[i].flagged) {
            bool given = e->pvlock.dialect == PVLOCK_PV_SCHED;
            uint64_t flag = given ? g->given.preempted : g->own.preempted;

            assert_int_equal(flag, flag_of(i));
            zero += flag == 0;
            may_be_zero += shadow[i].state == RUN_BLOCKED || shadow[i].state == RUN_OFF;
        }
        if (e->steal.record != NULL) {
            assert_true(g->time.stolen_ns >= g->stolen);
            if (shadow[i].state == RUN_RUNNING) {
                assert_int_equal(g->time.stolen_ns, shadow[i].times[RUN_RUNNABLE] * 1000);
            } else {
                assert_int_equal(g->time.stolen_ns, g->stolen); /* written when it comes back */
            }
            g->stolen = g->time.stolen_ns;
        }
    }
    assert_true(zero <= may_be_zero);
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
    if (what < 5) {
        kick(roll(ENTITIES));
    } else if (what < 40) {
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
        if (roll(4) == 0) {
            kick(index_of(sim.cur[cpu]));
        }
        if (roll(4) == 0) {
            call(index_of(sim.cur[cpu]));
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
    memset(guest, 0, sizeof guest);
    for (unsigned i = 0; i < ENTITIES; i++) {
        uint64_t mask = 1 + roll((1u << max_cpus) - 1);

        sim_add(weights[roll(6)], roll(2) == 0 ? cpu_set_all() : sim_set(mask));
        shadow[i] = (struct shadow){.since = sim.now, .state = RUN_OFF};
        offer_records(i);
    }
    for (unsigned i = 0; i < OPERATIONS; i++) {
        step();
        check_entity(roll(ENTITIES));
        check_records();
    }
    settle();
    check_records();
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
