/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/sched.c core/sched_yield.c core/sched_watch.c core/trace.c */
/* The scheduler in virtual time: shares, waits, wakes, states and times in named situations. */
#include "test_sched_sim.h"

/* --- shares on one pCPU --- */

static void test_weights_1_to_3(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());
    struct sim_entity *b = sim_spinner(768, cpu_set_all());

    sim_run(SIM_SECOND);
    check_near(sim_permille(a, 0), 250, 10);
    check_near(sim_permille(b, 0), 750, 10);
    sim_check_times();
}

static void test_extreme_weights(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *light = sim_spinner(1, cpu_set_all());
    struct sim_entity *heavy = sim_spinner(65535, cpu_set_all());

    sim_run(200 * (uint64_t)SIM_SECOND);
    assert_true(sim_ran(light) >= SIM_SLICE);
    assert_true(sim_ran(light) <= 4 * SIM_SLICE);
    assert_int_equal(sim_ran(light) + sim_ran(heavy), 200 * (uint64_t)SIM_SECOND);
    sim_check_times();
}

/* Nothing is lost by rounding: at weight 3 every charge of one tick leaves a remainder. */
static void test_vtime_carries_the_remainder(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(3, cpu_set_all());
    uint64_t first;

    sim_settle();
    first = a->e.vtime;
    for (unsigned i = 0; i < 3 * 1000; i++) {
        sim.now++;
        sim_pick(0, RUN_RUNNABLE);
    }
    assert_int_equal(a->e.vtime - first, 1000 * SCHED_DEFAULT_WEIGHT);
    assert_int_equal(a->e.vtime_rest, 0);
}

/* A run of years in one piece does not overflow on the way. */
static void test_vtime_of_a_very_long_run(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(512, cpu_set_all());
    uint64_t first;

    sim_settle();
    first = a->e.vtime;
    sim.now += 1ull << 60;
    sim_pick(0, RUN_RUNNABLE);
    assert_int_equal(a->e.vtime - first, 1ull << 59);
    assert_int_equal(sim_ran(a), 1ull << 60);
}

/* At 8:1 the light one waits for eight slices of the heavy one, and no longer. */
static void test_worst_wait_8_to_1(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *light = sim_spinner(256, cpu_set_all());
    struct sim_entity *heavy = sim_spinner(2048, cpu_set_all());

    sim_run(SIM_SECOND);
    check_near(sim_permille(light, 0), 111, 3);
    check_near(sim_permille(heavy, 0), 889, 3);
    assert_true(light->e.longest_wait <= 9 * SIM_SLICE);
    assert_true(heavy->e.longest_wait <= 1 * SIM_SLICE);
}

static void test_worst_wait_of_equals(void **state) {
    (void)state;
    sim_init(1);
    for (unsigned i = 0; i < 8; i++) {
        sim_spinner(256, cpu_set_all());
    }
    sim_run(SIM_SECOND);
    for (unsigned i = 0; i < 8; i++) {
        assert_true(sim.all[i].e.longest_wait <= 8 * SIM_SLICE);
    }
}

/* P14: who yields or sleeps just before the end of each slice gains nothing. */
static void p14(enum sim_end end, uint64_t run, uint64_t sleep, uint64_t margin) {
    sim_init(1);
    struct sim_entity *attacker = sim_add(256, cpu_set_all());
    struct sim_entity *victim = sim_spinner(256, cpu_set_all());
    uint64_t total = 30 * (uint64_t)SIM_SECOND;

    attacker->run = run;
    attacker->sleep = sleep;
    attacker->end = end;
    sim_wake(attacker);
    sim_run(total);
    check_near((int64_t)(sim_ran(attacker) * 1000 / total), 500, (int64_t)margin);
    assert_true(sim_ran(attacker) <= total / 2 + 4 * SIM_SLICE);
    assert_true(sim_ran(attacker) + sim_ran(victim) == total);
    sim_check_times();
}

static void test_p14_yield_before_slice_end(void **state) {
    (void)state;
    p14(SIM_YIELDS, SIM_SLICE * 95 / 100, 0, 10);
}

static void test_p14_sleep_before_slice_end(void **state) {
    (void)state;
    p14(SIM_BLOCKS, SIM_SLICE * 95 / 100, 10, 10);
}

static void test_p14_yield_all_the_time(void **state) {
    (void)state;
    p14(SIM_YIELDS, SIM_SLICE / 40, 0, 10);
}

static void test_yield_lets_the_other_run(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());
    struct sim_entity *b = sim_spinner(256, cpu_set_all());

    sim_settle();
    assert_ptr_equal(sim.cur[0], a);
    sim.now += 100;
    sim_pick(0, RUN_RUNNABLE);
    assert_ptr_equal(sim.cur[0], b);
    /* b gives it back at once, although it has run less. */
    sim.now += 50;
    sim_pick(0, RUN_RUNNABLE);
    assert_ptr_equal(sim.cur[0], a);
}

static void test_yield_alone_changes_nothing(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());

    sim_settle();
    sim_pick(0, RUN_RUNNABLE);
    assert_ptr_equal(sim.cur[0], a);
    assert_int_equal(a->e.switches, 1);
    assert_int_equal(sched_slice_end(0), UINT64_MAX);
}

/* --- slices and wake-ups --- */

static void test_slice_end_only_with_company(void **state) {
    (void)state;
    sim_init(1);
    sim_spinner(256, cpu_set_all());
    sim_settle();
    assert_int_equal(sched_slice_end(0), UINT64_MAX);
    assert_false(sched_need_pick(0));

    /* Counted from the beginning of the turn; and the pCPU is told, to set its timer. */
    uint64_t turn = sim.now;
    struct sim_entity *b = sim_add(256, cpu_set_all());

    sim.now += 300;
    sim_wake(b);
    assert_int_equal(sched_slice_end(0), turn + SIM_SLICE);
    assert_true(sim.kicked[0]);
    assert_false(sched_need_pick(0));
    sim.now = turn + SIM_SLICE;
    assert_true(sched_need_pick(0));
    sim_pick(0, RUN_RUNNABLE);
    assert_ptr_equal(sim.cur[0], b);
    assert_int_equal(sched_slice_end(0), sim.now + SIM_SLICE);

    /* b goes: the other is alone again. */
    sim_pick(0, RUN_OFF);
    assert_int_equal(sched_slice_end(0), UINT64_MAX);
}

/* A newcomer does not cut off one who has run alone for long at once; a sleeper may. */
static void test_wake_preempts_who_is_ahead(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *sleeper = sim_add(256, cpu_set_all());
    struct sim_entity *spinner;

    sleeper->run = 100;
    sleeper->sleep = 50 * SIM_SLICE;
    sim_wake(sleeper);
    spinner = sim_spinner(256, cpu_set_all());
    sim_run(10 * SIM_SECOND);
    assert_int_equal(sleeper->worst_late, 0);
    assert_true(sim_ran(sleeper) > 90 * 100);

    /* But not one that is hardly behind: it waits for the slice. */
    struct sim_entity *fresh = sim_add(256, cpu_set_all());

    sim_settle();
    assert_ptr_equal(sim.cur[0], spinner);
    sim_wake(fresh);
    assert_false(sched_need_pick(0));
    sim.now += SIM_SLICE / 4;
    assert_true(sched_need_pick(0));
}

/* One that sleeps for moments at a time can't cut the other's turns to pieces (P14's kind). */
static void test_no_turn_is_cut_short(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *sleeper = sim_add(256, cpu_set_all());
    struct sim_entity *spinner;

    sleeper->run = 2;
    sleeper->sleep = 5;
    sim_wake(sleeper);
    spinner = sim_spinner(256, cpu_set_all());
    sim_run(SIM_SECOND);
    assert_in_range(spinner->e.switches, SIM_SECOND / SIM_SLICE, SIM_SECOND / (SIM_SLICE / 16) + 1);
    assert_true(sleeper->e.longest_wait <= SIM_SLICE);
}

static void test_sleep_saves_up_one_slice_at_most(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());
    struct sim_entity *b = sim_spinner(256, cpu_set_all());

    sim_run(SIM_SECOND);
    sim_pick(0, RUN_BLOCKED);
    sim_run(10 * SIM_SECOND);
    uint64_t from_a = sim_ran(a);
    uint64_t from_b = sim_ran(b);

    sim_wake(a->e.state == RUN_BLOCKED ? a : b);
    sim_run(SIM_SECOND);
    check_near(sim_permille(a, from_a), 500, 3);
    check_near(sim_permille(b, from_b), 500, 3);
}

static void test_spinner_with_seven_wakers(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *spinner = sim_spinner(256, cpu_set_all());

    for (unsigned i = 0; i < 7; i++) {
        struct sim_entity *s = sim_add(256, cpu_set_all());

        s->run = 100;
        s->sleep = 1900 + 37 * i;
        sim_wake(s);
    }
    sim_run(5 * SIM_SLICE); /* all began at the same moment */
    for (unsigned i = 0; i < 8; i++) {
        sim.all[i].worst_late = 0;
        sim.all[i].e.longest_wait = 0;
    }
    sim_run(SIM_SECOND);
    /* The wakers want about a third together, less than their shares: they get it, and soon. */
    for (unsigned i = 1; i < 8; i++) {
        assert_true(sim_ran(&sim.all[i]) > 42000);
        assert_true(sim.all[i].worst_late < SIM_SLICE / 4);
    }
    assert_true(sim_ran(spinner) > 640000);
    assert_true(spinner->e.longest_wait <= 700);
    sim_check_times();
}

/* Seven that would like to run nearly always, in short pieces, leave the spinner its eighth. */
static void test_spinner_with_seven_greedy_wakers(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *spinner = sim_spinner(256, cpu_set_all());

    for (unsigned i = 0; i < 7; i++) {
        struct sim_entity *s = sim_add(256, cpu_set_all());

        s->run = 300 + 11 * i;
        s->sleep = 20;
        sim_wake(s);
    }
    sim_run(SIM_SECOND);
    check_near(sim_permille(spinner, 0), 125, 5);
    for (unsigned i = 1; i < 8; i++) {
        check_near(sim_permille(&sim.all[i], 0), 125, 5);
    }
}

/* --- states --- */

/* L02: a vCPU that was never started is in no queue and costs nothing. */
static void test_l02_off_costs_nothing(void **state) {
    (void)state;
    sim_init(2);
    sim_spinner(256, cpu_set_all());
    for (unsigned i = 0; i < 7; i++) {
        sim_add(256, cpu_set_all());
    }
    sim_run(SIM_SECOND);
    for (unsigned i = 1; i < 8; i++) {
        uint64_t times[RUN_STATES];

        sched_times(&sim.all[i].e, times);
        assert_int_equal(times[RUN_OFF], SIM_SECOND);
        assert_int_equal(times[RUN_RUNNING] + times[RUN_RUNNABLE] + times[RUN_BLOCKED], 0);
        assert_null(sim.all[i].e.next);
        assert_null(sim.all[i].e.prev);
        assert_int_equal(sim.all[i].e.switches, 0);
    }
    assert_int_equal(sched_slice_end(0), UINT64_MAX);
    assert_int_equal(sched_slice_end(1), UINT64_MAX);
    assert_int_equal(sim_ran(&sim.all[0]), SIM_SECOND);
}

static void test_off_and_on_again(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());
    uint64_t times[RUN_STATES];

    sim_run(1000);
    sched_wake(&a->e);
    sched_block_prepare(&a->e); /* earlier wakes do not keep it from going off */
    sim_pick(0, RUN_OFF);
    assert_null(sim.cur[0]);
    assert_int_equal(a->e.state, RUN_OFF);
    sim_run(500);
    sim_wake(a);
    sim_run(100);
    sched_times(&a->e, times);
    assert_int_equal(times[RUN_RUNNING], 1100);
    assert_int_equal(times[RUN_OFF], 500);
}

/* Turned on again before it is off: that is no lost wake either. */
static void test_on_while_going_off(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());

    sim_settle();
    sched_block_prepare(&a->e);
    sched_wake(&a->e);
    sim_pick(0, RUN_OFF);
    assert_ptr_equal(sim.cur[0], a);
    assert_false(a->e.wake_pending);
}

static void test_times_of_each_state(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_add(256, cpu_set_all());
    uint64_t times[RUN_STATES];

    sim.now += 7;
    sim_wake(a);
    sim.now += 20;
    sim_pick(0, RUN_RUNNABLE);
    sim.now += 300;
    sim_pick(0, RUN_BLOCKED);
    sim.now += 4000;
    sched_times(&a->e, times);
    assert_int_equal(times[RUN_OFF], 7);
    assert_int_equal(times[RUN_RUNNABLE], 20);
    assert_int_equal(times[RUN_RUNNING], 300);
    assert_int_equal(times[RUN_BLOCKED], 4000);
    assert_int_equal(a->e.longest_wait, 20);
    assert_int_equal(a->e.switches, 1);
    assert_int_equal(a->e.migrations, 0);
}

/* The race between blocking and a wake: one test with the wake at each place of the sequence. */
static void test_no_wake_is_lost_while_blocking(void **state) {
    (void)state;
    for (unsigned place = 0; place < 6; place++) {
        for (unsigned company = 0; company < 2; company++) {
            bool pending = false;

            sim_init(1);
            struct sim_entity *a = sim_spinner(256, cpu_set_all());

            sim_settle();
            assert_ptr_equal(sim.cur[0], a);
            if (company != 0) {
                sim_spinner(256, cpu_set_all());
            }
            sim.now += 10;
#define WAKE_AT(n)                                                                                 \
    if (place == (n)) {                                                                            \
        pending = true;                                                                            \
        sched_wake(&a->e);                                                                         \
    }
            WAKE_AT(0)
            sched_block_prepare(&a->e);
            WAKE_AT(1)
            bool seen = pending;

            WAKE_AT(2)
            if (seen) {
                continue; /* does not block */
            }
            struct sched_entity *next = sched_pick(0, &a->e, RUN_BLOCKED);

            WAKE_AT(3)
            if (next != &a->e) {
                sched_released(&a->e);
            }
            WAKE_AT(4)
            sim.cur[0] = (struct sim_entity *)next;
            sim.now += 10;
            WAKE_AT(5)
            assert_int_not_equal(a->e.state, RUN_BLOCKED);
            sim.now += 2 * SIM_SLICE;
            sim_settle();
            assert_true(sim.cur[0] == a || a->e.switches > 1);
        }
    }
}

/* Not yet saved, it stays where its registers are, even if others are idle; then it moves. */
static void test_wake_before_release_stays(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());

    sim_settle();
    assert_ptr_equal(sim.cur[0], a);
    struct sim_entity *b = sim_spinner(256, sim_set(1));
    struct sched_entity *next = sched_pick(0, &a->e, RUN_BLOCKED);

    assert_ptr_equal(next, &b->e);
    sim.cur[0] = b;
    sched_wake(&a->e);
    assert_int_equal(a->e.cpu, 0);
    sim_pick(1, RUN_RUNNABLE);
    assert_null(sim.cur[1]);
    sim.kicked[1] = false;
    sched_released(&a->e);
    assert_true(sim.kicked[1]);
    sim_settle();
    assert_ptr_equal(sim.cur[1], a);
    assert_int_equal(a->e.migrations, 1);
}

/* The same while its own pCPU is idle: it may run there again without being brought onto it. */
static void test_wake_before_release_on_idle_cpu(void **state) {
    (void)state;
    sim_init(1);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());

    sim_settle();
    assert_null(sched_pick(0, &a->e, RUN_BLOCKED));
    sim.cur[0] = NULL;
    sched_wake(&a->e);
    assert_true(sim.kicked[0]);
    assert_true(sched_need_pick(0));
    sched_released(&a->e);
    sim_settle();
    assert_ptr_equal(sim.cur[0], a);
    assert_int_equal(a->e.switches, 2);
    assert_int_equal(a->e.migrations, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_weights_1_to_3),
        cmocka_unit_test(test_extreme_weights),
        cmocka_unit_test(test_vtime_carries_the_remainder),
        cmocka_unit_test(test_vtime_of_a_very_long_run),
        cmocka_unit_test(test_worst_wait_8_to_1),
        cmocka_unit_test(test_worst_wait_of_equals),
        cmocka_unit_test(test_p14_yield_before_slice_end),
        cmocka_unit_test(test_p14_sleep_before_slice_end),
        cmocka_unit_test(test_p14_yield_all_the_time),
        cmocka_unit_test(test_yield_lets_the_other_run),
        cmocka_unit_test(test_yield_alone_changes_nothing),
        cmocka_unit_test(test_slice_end_only_with_company),
        cmocka_unit_test(test_wake_preempts_who_is_ahead),
        cmocka_unit_test(test_no_turn_is_cut_short),
        cmocka_unit_test(test_sleep_saves_up_one_slice_at_most),
        cmocka_unit_test(test_spinner_with_seven_wakers),
        cmocka_unit_test(test_spinner_with_seven_greedy_wakers),
        cmocka_unit_test(test_l02_off_costs_nothing),
        cmocka_unit_test(test_off_and_on_again),
        cmocka_unit_test(test_on_while_going_off),
        cmocka_unit_test(test_times_of_each_state),
        cmocka_unit_test(test_no_wake_is_lost_while_blocking),
        cmocka_unit_test(test_wake_before_release_stays),
        cmocka_unit_test(test_wake_before_release_on_idle_cpu),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
