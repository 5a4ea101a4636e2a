/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/sched.c core/sched_yield.c core/sched_watch.c core/trace.c */
/* The scheduler in virtual time on several pCPUs: shares, affinity, moves, idle pCPUs. */
#include "test_sched_sim.h"

/* k spinners on n pCPUs: each gets n / k of one, +- 2 % or two slices. */
static void test_spinners_share_pcpus(void **state) {
    (void)state;
    for (unsigned n = 1; n <= 8; n++) {
        for (unsigned k = 1; k <= 20; k++) {
            uint64_t wanted = k <= n ? SIM_SECOND : SIM_SECOND * (uint64_t)n / k;
            uint64_t margin = wanted / 50 > 2 * SIM_SLICE ? wanted / 50 : 2 * SIM_SLICE;

            uint64_t moves = 0;

            sim_init(n);
            for (unsigned i = 0; i < k; i++) {
                sim_spinner(256, cpu_set_all());
            }
            sim_run(SIM_SECOND);
            for (unsigned i = 0; i < k; i++) {
                check_near((int64_t)sim_ran(&sim.all[i]), (int64_t)wanted, (int64_t)margin);
                moves += sim.all[i].e.migrations;
                if (k <= n || k % n == 0) {
                    assert_true(sim.all[i].e.migrations <= 1);
                }
            }
            /* One move on a pCPU in four slices, or fewer. */
            assert_true(moves <= n * SIM_SECOND / SIM_SLICE / 4);
            sim_check_times();
        }
    }
}

struct mix {
    unsigned cpus, entities;
    uint32_t weight[8];
    unsigned permille[8];
};

/* Weights that can be honoured, and such that can't: nobody gets more than one pCPU. */
static void test_mixed_weights_share_pcpus(void **state) {
    static const struct mix mixes[] = {
        {2, 4, {256, 256, 768, 768}, {250, 250, 750, 750}},
        {2, 5, {512, 256, 256, 256, 128}, {727, 364, 364, 364, 182}},
        {2, 3, {2048, 256, 256}, {1000, 500, 500}},
        {2, 4, {2048, 2048, 256, 256}, {889, 889, 111, 111}},
        {3, 4, {128, 512, 1024, 512}, {222, 889, 1000, 889}},
        {3, 5, {65535, 65535, 256, 512, 768}, {1000, 1000, 167, 333, 500}},
        {2, 3, {1024, 128, 1024}, {941, 118, 941}},
        {4, 6, {256, 256, 256, 256, 256, 256}, {667, 667, 667, 667, 667, 667}},
        {2, 5, {256, 128, 768, 256, 1024}, {211, 105, 632, 211, 842}},
        {3, 6, {768, 128, 1024, 128, 1024, 128}, {720, 120, 960, 120, 960, 120}},
        {3, 7, {256, 256, 128, 1024, 1024, 256, 256}, {240, 240, 120, 960, 960, 240, 240}},
    };

    (void)state;
    for (unsigned m = 0; m < sizeof mixes / sizeof mixes[0]; m++) {
        uint64_t from[8];

        sim_init(mixes[m].cpus);
        for (unsigned i = 0; i < mixes[m].entities; i++) {
            sim_spinner(mixes[m].weight[i], cpu_set_all());
        }
        sim_run(SIM_SECOND / 10);
        for (unsigned i = 0; i < mixes[m].entities; i++) {
            from[i] = sim_ran(&sim.all[i]);
        }
        sim_run(SIM_SECOND);
        for (unsigned i = 0; i < mixes[m].entities; i++) {
            check_near(sim_permille(&sim.all[i], from[i]), mixes[m].permille[i],
                       2 + mixes[m].permille[i] / 50);
        }
        sim_check_times();
    }
}

/* A light group tied to one pCPU runs on another scale: the rest must not notice. */
static void test_affinity_groups_do_not_disturb_others(void **state) {
    (void)state;
    sim_init(3);
    struct sim_entity *light[2] = {sim_spinner(16, sim_set(1)), sim_spinner(16, sim_set(1))};
    struct sim_entity *rest[3];

    for (unsigned i = 0; i < 3; i++) {
        rest[i] = sim_spinner(256, sim_set(6));
    }
    sim_run(SIM_SECOND);
    check_near(sim_permille(light[0], 0), 500, 10);
    check_near(sim_permille(light[1], 0), 500, 10);
    for (unsigned i = 0; i < 3; i++) {
        check_near(sim_permille(rest[i], 0), 667, 13);
    }
}

/* Two tied to pCPU 0 and two free ones: all get half; three tied ones: those get a third. */
static void test_free_ones_leave_a_crowded_pcpu(void **state) {
    (void)state;
    for (unsigned tied = 2; tied <= 3; tied++) {
        sim_init(2);
        for (unsigned i = 0; i < tied; i++) {
            sim_spinner(256, sim_set(1));
        }
        sim_spinner(256, cpu_set_all());
        sim_spinner(256, cpu_set_all());
        sim_run(SIM_SECOND);
        for (unsigned i = 0; i < tied + 2; i++) {
            check_near(sim_permille(&sim.all[i], 0), i < tied ? 1000 / (int)tied : 500, 15);
        }
    }
}

/* One that was alone and far ahead of others comes among them: nobody starves for its past. */
static void test_past_advantage_is_bounded(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *lone = sim_spinner(16, sim_set(2));
    struct sim_entity *a = sim_spinner(256, sim_set(1));
    struct sim_entity *b = sim_spinner(256, sim_set(1));

    sim_run(10 * (uint64_t)SIM_SECOND);
    struct sim_entity *c = sim_spinner(16, cpu_set_all());
    struct sim_entity *d = sim_spinner(256, cpu_set_all());

    sim_run(SIM_SECOND / 10);
    uint64_t from[5] = {sim_ran(lone), sim_ran(a), sim_ran(b), sim_ran(c), sim_ran(d)};

    sim_run(SIM_SECOND);
    /* On pCPU 1: 16, 16 and 256; on pCPU 0 the two of 256. */
    check_near(sim_permille(a, from[1]), 500, 20);
    check_near(sim_permille(b, from[2]), 500, 20);
    check_near(sim_permille(d, from[4]), 889, 30);
    check_near(sim_permille(lone, from[0]), 56, 20);
    check_near(sim_permille(c, from[3]), 56, 20);
}

/* A heavy one that had a pCPU alone for long may not keep it when many come. */
static void test_unused_credit_is_not_saved_up(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *heavy = sim_spinner(2048, cpu_set_all());

    sim_spinner(256, cpu_set_all());
    sim_spinner(256, cpu_set_all());
    sim_run(100 * (uint64_t)SIM_SECOND);
    check_near((int64_t)(sim_ran(heavy) / SIM_SECOND), 100, 1);
    for (unsigned i = 0; i < 14; i++) {
        sim_spinner(256, cpu_set_all());
    }
    sim_run(SIM_SECOND / 2);
    uint64_t from = sim_ran(heavy);

    sim_run(SIM_SECOND);
    check_near(sim_permille(heavy, from), 667, 20);
}

static void test_wake_prefers_last_then_idle_then_last(void **state) {
    (void)state;
    sim_init(3);
    struct sim_entity *a = sim_spinner(256, sim_set(3));

    sim_settle();
    assert_ptr_equal(sim.cur[0], a);
    sim_pick(0, RUN_BLOCKED);
    sim_wake(a);
    assert_int_equal(a->e.cpu, 0); /* where it ran, idle */
    sim_settle();
    sim_pick(0, RUN_BLOCKED);

    sim_spinner(256, sim_set(1));
    sim_settle();
    sim_wake(a);
    assert_int_equal(a->e.cpu, 1); /* another idle one */
    assert_true(sim.kicked[1]);
    sim_settle();
    assert_ptr_equal(sim.cur[1], a);
    sim_pick(1, RUN_BLOCKED);

    sim_spinner(256, sim_set(2));
    sim_settle();
    sim_wake(a);
    assert_int_equal(a->e.cpu, 1); /* pCPU 2 is idle, but not allowed */
    assert_null(sim.cur[2]);
    assert_int_equal(a->e.migrations, 0 + 1);
}

static void test_idle_pcpu_takes_a_waiting_one(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *on1 = sim_spinner(256, sim_set(2));

    sim_settle();
    sim_spinner(256, sim_set(1));
    sim_settle();
    struct sim_entity *a = sim_spinner(256, cpu_set_all());

    assert_int_equal(a->e.state, RUN_RUNNABLE);
    assert_ptr_equal(sim.cur[1], on1);
    sim_pick(1, RUN_OFF);
    sim_settle();
    assert_true(sim.cur[1] == a);
    sim_check_idle();
}

/* A displaced one goes on where it may, at once, if a pCPU is idle. */
static void test_displaced_one_moves_to_idle_pcpu(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *sleeper = sim_spinner(256, sim_set(1));
    struct sim_entity *free_one;

    sim_settle();
    sim_pick(0, RUN_BLOCKED);
    struct sim_entity *on1 = sim_spinner(256, sim_set(2));

    sim_settle();
    free_one = sim_spinner(256, cpu_set_all());
    sim_run(SIM_SECOND);
    assert_ptr_equal(sim.cur[0], free_one);
    assert_ptr_equal(sim.cur[1], on1);
    sim_pick(1, RUN_BLOCKED);
    sim_settle();
    assert_null(sim.cur[1]);
    sim_wake(sleeper);
    sim_settle();
    assert_ptr_equal(sim.cur[0], sleeper);
    assert_ptr_equal(sim.cur[1], free_one);
}

static void test_nobody_on_an_offline_pcpu(void **state) {
    (void)state;
    sim_init(2);
    sched_init(2, SIM_SLICE); /* again, with pCPU 0 offline */
    sched_cpu_online(1);
    assert_null(sched_pick(1, NULL, RUN_RUNNABLE));
    struct sim_entity *a = sim_spinner(256, cpu_set_all());
    struct sim_entity *b = sim_spinner(256, cpu_set_all());

    assert_int_equal(a->e.cpu, 1);
    assert_int_equal(b->e.cpu, 1);
    sim_pick(1, RUN_RUNNABLE);
    sim.kicked[0] = false;
    sched_cpu_online(0);
    sim_pick(0, RUN_RUNNABLE);
    assert_non_null(sim.cur[0]);
    assert_non_null(sim.cur[1]);
}

static void test_no_kicks_without_overcommit(void **state) {
    (void)state;
    sim_init(4);
    for (unsigned i = 0; i < 4; i++) {
        sim_spinner(256, cpu_set_all());
    }
    sim_run(SIM_SECOND / 100);
    uint64_t kicks = sim.kicks;
    uint64_t picks = sim.picks;

    sim_run(10 * SIM_SECOND);
    assert_int_equal(sim.kicks, kicks);
    assert_int_equal(sim.picks, picks);
}

/* Weights have no scale of their own: all light or all heavy is the same as all 256. */
static void test_spinners_of_any_one_weight(void **state) {
    static const uint32_t weights[] = {1, 8, 4096, 65535};

    (void)state;
    for (unsigned w = 0; w < sizeof weights / sizeof weights[0]; w++) {
        sim_init(3);
        for (unsigned i = 0; i < 5; i++) {
            sim_spinner(weights[w], cpu_set_all());
        }
        sim_run(SIM_SECOND);
        for (unsigned i = 0; i < 5; i++) {
            check_near(sim_permille(&sim.all[i], 0), 600, 8);
        }
    }
}

/* A new one begins among those it meets, whatever the scale of the pCPU that it might have used. */
static void test_new_one_takes_the_scale_of_its_home(void **state) {
    (void)state;
    sim_init(2);
    sim_spinner(1, sim_set(1));
    sim_spinner(1, sim_set(1));
    struct sim_entity *other = sim_spinner(256, sim_set(2));

    sim_run(10 * (uint64_t)SIM_SECOND);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());

    assert_int_equal(a->e.cpu, 1);
    assert_int_equal(a->e.vtime, other->e.vtime);
    assert_true(a->e.vtime < 20 * (uint64_t)SIM_SECOND);
}

/*
 * Two wait, one of them may use only one of the two idle pCPUs. The kick for the first goes to the
 * one pCPU that takes the second then: it must not leave the first to wait beside the other.
 */
static void test_idle_pcpu_passes_on_what_it_leaves(void **state) {
    (void)state;
    sim_init(3);
    struct sim_entity *sleeper = sim_spinner(256, sim_set(3));
    struct sim_entity *urgent = sim_spinner(256, sim_set(1));
    struct sim_entity *free_one;

    sim_settle();
    assert_ptr_equal(sim.cur[0], sleeper);
    sim_pick(0, RUN_BLOCKED);
    assert_ptr_equal(sim.cur[0], urgent);
    sim_pick(0, RUN_BLOCKED);
    free_one = sim_spinner(256, cpu_set_all());
    sim_run(SIM_SECOND);
    assert_ptr_equal(sim.cur[0], free_one);
    sim_wake(urgent);
    sim_pick(0, RUN_RUNNABLE); /* displaces free_one, which is offered to pCPU 1 */
    assert_ptr_equal(sim.cur[0], urgent);
    assert_true(sim.kicked[1]);
    assert_false(sim.kicked[2]);
    sim_wake(sleeper); /* may use 0 and 1, and nobody is left to ask */
    sim_settle();
    assert_int_equal(sleeper->e.state, RUN_RUNNING);
    assert_int_equal(free_one->e.state, RUN_RUNNING);
}

/* The same when it does not even come to look, because one of its own was woken meanwhile. */
static void test_idle_pcpu_passes_on_what_it_did_not_look_for(void **state) {
    (void)state;
    sim_init(3);
    struct sim_entity *urgent = sim_spinner(256, sim_set(1));
    struct sim_entity *own = sim_add(256, sim_set(2));
    struct sim_entity *free_one;

    sim_settle();
    sim_pick(0, RUN_BLOCKED);
    free_one = sim_spinner(256, cpu_set_all());
    sim_run(SIM_SECOND);
    assert_ptr_equal(sim.cur[0], free_one);
    sim_wake(urgent);
    sim_pick(0, RUN_RUNNABLE);
    assert_ptr_equal(sim.cur[0], urgent);
    assert_true(sim.kicked[1]);
    sim_wake(own);
    sim_settle();
    assert_ptr_equal(sim.cur[1], own);
    assert_ptr_equal(sim.cur[2], free_one);
}

/* Who slept long and comes to an idle pCPU is not owed more than if it came back to its own. */
static void test_sleep_saves_up_one_slice_on_another_pcpu(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *sleeper = sim_spinner(256, cpu_set_all());
    struct sim_entity *spinner;

    sim_settle();
    assert_ptr_equal(sim.cur[0], sleeper);
    sim_pick(0, RUN_BLOCKED);
    spinner = sim_spinner(256, sim_set(1));
    sim_run(SIM_SECOND);
    sim_wake(sleeper);
    assert_int_equal(sleeper->e.cpu, 1);
    assert_int_equal(sleeper->e.vtime, spinner->e.vtime - SIM_SLICE);
}

/* A pCPU that is idle but has somebody coming is not chosen for the next one. */
static void test_idle_pcpu_is_chosen_once(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());
    struct sim_entity *b = sim_spinner(256, cpu_set_all());

    sim_settle();
    assert_ptr_equal(sim.cur[1], b);
    sim_pick(1, RUN_BLOCKED);
    assert_null(sched_pick(0, &a->e, RUN_BLOCKED));
    sim.cur[0] = NULL;
    sim_wake(a); /* its registers are on pCPU 0: it stays there */
    struct sim_entity *c = sim_spinner(256, cpu_set_all());

    assert_int_equal(a->e.cpu, 0);
    assert_int_equal(c->e.cpu, 1);
    sched_released(&a->e);
    sim_settle();
    assert_int_equal(a->e.migrations, 0);
    assert_int_equal(c->e.migrations, 0);
}

/* It was to take one, and then one comes that can only run there: the other is passed on. */
static void test_idle_pcpu_passes_on_the_first_of_two(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *a = sim_spinner(256, cpu_set_all());

    sim_settle();
    assert_null(sched_pick(0, &a->e, RUN_BLOCKED));
    sim.cur[0] = NULL; /* its registers stay on pCPU 0 */
    struct sim_entity *b = sim_spinner(256, cpu_set_all());

    assert_int_equal(b->e.cpu, 0);
    b->e.vtime++;
    sim_wake(a);
    assert_int_equal(a->e.cpu, 0);
    assert_ptr_equal(sched_pick(0, NULL, RUN_OFF), &a->e);
    sim.cur[0] = a;
    sim_settle();
    assert_ptr_equal(sim.cur[1], b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spinners_share_pcpus),
        cmocka_unit_test(test_mixed_weights_share_pcpus),
        cmocka_unit_test(test_affinity_groups_do_not_disturb_others),
        cmocka_unit_test(test_free_ones_leave_a_crowded_pcpu),
        cmocka_unit_test(test_past_advantage_is_bounded),
        cmocka_unit_test(test_unused_credit_is_not_saved_up),
        cmocka_unit_test(test_wake_prefers_last_then_idle_then_last),
        cmocka_unit_test(test_idle_pcpu_takes_a_waiting_one),
        cmocka_unit_test(test_displaced_one_moves_to_idle_pcpu),
        cmocka_unit_test(test_nobody_on_an_offline_pcpu),
        cmocka_unit_test(test_no_kicks_without_overcommit),
        cmocka_unit_test(test_spinners_of_any_one_weight),
        cmocka_unit_test(test_new_one_takes_the_scale_of_its_home),
        cmocka_unit_test(test_idle_pcpu_passes_on_what_it_leaves),
        cmocka_unit_test(test_idle_pcpu_passes_on_what_it_did_not_look_for),
        cmocka_unit_test(test_idle_pcpu_passes_on_the_first_of_two),
        cmocka_unit_test(test_sleep_saves_up_one_slice_on_another_pcpu),
        cmocka_unit_test(test_idle_pcpu_is_chosen_once),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
