/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* link: core/pvlock.c core/steal.c */
/* vCPUs on and off: what CPU_ON promises, and what a vCPU costs that nobody started. */
#include "arch/fake/expect.h"

#define VCPUS 8u
#define POLL  7u /* ticks between two looks */

/* ---- L02: vCPUs that nobody starts cost nothing ---- */

static void unstarted_vcpus_cost_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 4, .vms = 2, .limit = FAKE_SECOND};
        s.seed = seed;
        s.noise = seed % 2 != 0 ? 50 : 0;
        s.vm[0] = (struct fake_vm){.program = guest_spins, .vcpus = VCPUS};
        s.vm[1] = (struct fake_vm){.program = guest_idles, .vcpus = 1};
        expect_run(&s, FAKE_LIMIT);
        for (unsigned i = 1; i < VCPUS; i++) {
            const struct vcpu *v = vms[0]->vcpus[i];
            assert_int_equal(v->sched.state, RUN_OFF); /* and so in no queue */
            assert_int_equal(v->sched.switches, 0);
            assert_int_equal(time_in(v, RUN_OFF), elapsed());
        }
        assert_true(time_in(vms[0]->vcpus[0], RUN_RUNNING) > elapsed() - 2000);
    }
}

/* ---- C01: two callers, one target ---- */

static struct {
    int result[3];     /* of callers 1 and 2 */
    uint64_t started;  /* the argument that the target started with */
    fake_guest *entry; /* where */
    unsigned starts;
    unsigned round, ready, done;
    bool counting;
} duel;

static void target_a(struct vcpu *v);
static void target_b(struct vcpu *v);

static void target(struct vcpu *v, fake_guest *entry) {
    duel.started = v->arch.arg;
    duel.entry = entry;
    duel.starts++;
    while (duel.done != 2) {
        guest_run(v, 3);
    }
}

static void target_a(struct vcpu *v) {
    target(v, target_a);
}

static void target_b(struct vcpu *v) {
    target(v, target_b);
}

static void check_duel(uint64_t arg) {
    unsigned winner = duel.result[1] == 0 ? 1 : 2;

    if ((duel.result[1] == 0) == (duel.result[2] == 0)) {
        fake_fault("round %u: both callers got %d", duel.round, duel.result[1]);
    }
    if (duel.result[3 - winner] != -4 && duel.result[3 - winner] != -5) {
        fake_fault("round %u: the loser got %d", duel.round, duel.result[3 - winner]);
    }
    if (duel.starts != 1 || duel.started != arg + winner ||
        duel.entry != (winner == 1 ? target_a : target_b)) {
        fake_fault("round %u: started %u times, with %lu instead of %lu", duel.round, duel.starts,
                   duel.started, arg + winner);
    }
}

static void call_at_once(struct vcpu *v, uint64_t arg) {
    duel.result[v->index] = guest_cpu_on(v, 3, v->index == 1 ? target_a : target_b, arg + v->index);
    duel.done++;
}

/* Both callers come out of the same wait at the same tick. */
static void one_duel(struct vcpu *v) {
    guest_run(v, v->arch.arg - guest_clock());
    if (!duel.counting) {
        duel.counting = true;
        fake_explore_start();
    }
    call_at_once(v, 0);
    guest_idles(v);
}

static void boot_one_duel(struct vcpu *v) {
    uint64_t when = guest_clock() + 5000;

    guest_cpu_on(v, 1, one_duel, when);
    guest_cpu_on(v, 2, one_duel, when);
    guest_run(v, 9000);
    check_duel(0);
    guest_system_off(v);
}

/* All runs in which the two are interrupted at most twice, after any step. */
static void every_interleaving_of_two_callers(void **state) {
    struct fake_setup s = {.cpus = 4, .vms = 1, .vm = {{.program = boot_one_duel, .vcpus = 4}}};
    unsigned at[2], steps = 200, runs = 0;

    (void)state;
    for (at[0] = 0; at[0] < steps; at[0]++) {
        for (at[1] = at[0] + 1; at[1] <= steps; at[1]++) {
            memset(&duel, 0, sizeof(duel));
            fake_explore(at, 2);
            expect_run(&s, FAKE_OFF);
            if (fake_explore_steps() < steps) {
                steps = fake_explore_steps();
            }
            runs++;
        }
    }
    fake_explore(NULL, 0);
    assert_true(runs > 500);
}

static void barrier(struct vcpu *v, unsigned round) {
    if (++duel.ready == 2) {
        memset(&duel.result, 0, sizeof(duel.result));
        duel.starts = duel.done = 0;
        duel.ready = 0;
        duel.round = round + 1;
    }
    while (duel.round <= round) {
        guest_run(v, POLL);
    }
    guest_run(v, fake_roll(4));
}

static void many_duels(struct vcpu *v) {
    for (unsigned round = 0; round < v->arch.arg; round++) {
        barrier(v, round);
        call_at_once(v, round * 4);
        while (duel.done != 2 || duel.starts == 0) {
            guest_run(v, POLL);
        }
        if (v->index == 1) {
            check_duel(round * 4);
        }
        while (v->vm->vcpus[3]->power != VCPU_OFF) {
            guest_run(v, POLL);
        }
    }
    if (v->index == 2) {
        guest_system_off(v);
    }
    guest_idles(v);
}

static void boot_many_duels(struct vcpu *v) {
    guest_cpu_on(v, 1, many_duels, v->arch.arg);
    guest_cpu_on(v, 2, many_duels, v->arch.arg);
    guest_idles(v);
}

static void a_hundred_thousand_duels(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fake_setup s = {.cpus = 3 + (unsigned)seed % 2, .seed = seed, .noise = 30, .vms = 1};
        s.slice = 100;
        s.limit = 600u * FAKE_SECOND;
        s.vm[0] = (struct fake_vm){.program = boot_many_duels, .arg = 10000, .vcpus = 4};
        memset(&duel, 0, sizeof(duel));
        expect_run(&s, FAKE_OFF);
        assert_int_equal(duel.round, 10000);
    }
}

/* ---- C03: off and on again, in any order ---- */

static unsigned begun[VCPUS];

static void counts_and_goes(struct vcpu *v) {
    begun[v->index]++;
    guest_run(v, fake_roll(300));
    if (fake_roll(2) == 0) {
        guest_sleep(v, 1 + fake_roll(500));
    }
}

static void cycles(struct vcpu *v) {
    unsigned on[VCPUS] = {0};

    for (unsigned i = 0; i < v->arch.arg; i++) {
        unsigned n = 1 + fake_roll(v->vm->config->vcpus - 1);
        uint32_t before = v->vm->vcpus[n]->power;
        int result = guest_cpu_on(v, n, counts_and_goes, 0);
        if (result == 0) {
            on[n]++;
        } else if (before == VCPU_OFF) {
            fake_fault("CPU_ON of vcpu %u, which is off, says %d", n, result);
        }
        guest_run(v, fake_roll(400));
    }
    for (unsigned n = 1; n < v->vm->config->vcpus; n++) {
        while (v->vm->vcpus[n]->power != VCPU_OFF) {
            guest_run(v, 10);
        }
        if (on[n] != begun[n]) {
            fake_fault("vcpu %u: %u successes, %u starts", n, on[n], begun[n]);
        }
    }
    guest_system_off(v);
}

static void on_off_cycles(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 4, .seed = seed, .noise = 40, .vms = 2};
        s.vm[0] = (struct fake_vm){.program = cycles, .arg = 2000, .vcpus = 5};
        s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
        s.limit = 20u * FAKE_SECOND;
        memset(begun, 0, sizeof(begun));
        expect_run(&s, FAKE_LIMIT);
        assert_int_equal(vms[0]->state, VM_OFF);
        assert_true(begun[1] > 100);
    }
}

/* ---- C06: after a success the target really runs ---- */

static uint64_t asked[VCPUS + 1], came[VCPUS + 1];

static void comes_and_spins(struct vcpu *v) {
    came[v->index] = guest_clock();
    guest_run(v, UINT64_MAX);
}

static void starts_all(struct vcpu *v) {
    for (unsigned n = 1; n < v->vm->config->vcpus; n++) {
        asked[n] = guest_clock();
        if (guest_cpu_on(v, n, comes_and_spins, 0) != 0) {
            fake_fault("CPU_ON of vcpu %u fails", n);
        }
        guest_run(v, 500);
    }
    guest_run(v, UINT64_MAX);
}

static void started_in_time_at_8_to_1(void **state) {
    (void)state;
    for (unsigned cpus = 1; cpus <= 4; cpus *= 2) {
        struct fake_setup s = {.cpus = cpus, .vms = cpus, .limit = FAKE_SECOND};
        for (unsigned i = 0; i < cpus; i++) {
            s.vm[i] = (struct fake_vm){.program = starts_all, .vcpus = VCPUS};
        }
        expect_run(&s, FAKE_LIMIT);
        for (unsigned n = 1; n < VCPUS; n++) {
            assert_true(came[n] > asked[n]);
            assert_true(came[n] - asked[n] < FAKE_SECOND / 10);
            assert_int_equal(vms[0]->vcpus[n]->power, VCPU_ON);
        }
    }
}

/* Its caller never leaves the CPU again of itself, and had it alone until now. */
static void starts_one_and_stays(struct vcpu *v) {
    guest_sleep(v, 5000);
    asked[1] = guest_clock();
    guest_cpu_on(v, 1, comes_and_spins, 0);
    guest_run(v, UINT64_MAX);
}

static void started_though_the_caller_stays(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 1, .limit = FAKE_SECOND};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = starts_one_and_stays, .vcpus = 2};
    came[1] = 0;
    expect_run(&s, FAKE_LIMIT);
    assert_in_range(came[1], asked[1], asked[1] + FAKE_SLICE);
}

/* ---- C12: to be idle is not to be off ---- */

static bool went_on;

/* Its first instruction is WFI, with interrupts masked. */
static void waits_first(struct vcpu *v) {
    v->arch.masked = true;
    guest_wfi(v);
    went_on = true;
    guest_idles(v);
}

static void wakes_a_sleeper(struct vcpu *v) {
    const struct vcpu *other = v->vm->vcpus[1];

    guest_cpu_on(v, 1, waits_first, 0);
    guest_sleep(v, 5000);
    if (other->power != VCPU_ON || other->sched.state != RUN_BLOCKED || went_on) {
        fake_fault("an idle vCPU: power %u, state %u", other->power, other->sched.state);
    }
    if (guest_cpu_on(v, 1, waits_first, 0) != -4) {
        fake_fault("CPU_ON of an idle vCPU");
    }
    guest_sgi(v, 1);
    guest_sleep(v, 5000);
    if (!went_on || other->power != VCPU_ON) {
        fake_fault("an interrupt did not end the wait");
    }
    guest_system_off(v);
}

static void idle_is_not_off(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 3, .seed = seed, .vms = 1};
        s.noise = seed == 0 ? 0 : 20;
        s.vm[0] = (struct fake_vm){.program = wakes_a_sleeper, .vcpus = 2};
        went_on = false;
        expect_run(&s, FAKE_OFF);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unstarted_vcpus_cost_nothing),      /* L02 */
        cmocka_unit_test(every_interleaving_of_two_callers), /* C01 */
        cmocka_unit_test(a_hundred_thousand_duels),          /* C01 */
        cmocka_unit_test(on_off_cycles),                     /* C03 */
        cmocka_unit_test(started_in_time_at_8_to_1),         /* C06 */
        cmocka_unit_test(started_though_the_caller_stays),   /* C06 */
        cmocka_unit_test(idle_is_not_off),                   /* C12 */
    };

    choose_test();
    return cmocka_run_group_tests_name("power", tests, NULL, free_machine);
}
