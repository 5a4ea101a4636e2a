/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* link: core/pvlock.c core/steal.c */
/* Who gets the CPU and when: preemption, idle guests, timers, exact accounts. */
#include "arch/fake/expect.h"

#include "hyp/arch.h"

static uint64_t running(unsigned vm, unsigned vcpu) {
    return time_in(vms[vm]->vcpus[vcpu], RUN_RUNNING);
}

/* ---- P16: a guest that wants no interrupts and never leaves ---- */

static void spinners_share(void **state) {
    (void)state;
    for (unsigned cpus = 1; cpus <= 2; cpus++) {
        struct fake_setup s = {.cpus = cpus, .vms = 3 * cpus, .limit = FAKE_SECOND};
        for (unsigned i = 0; i < s.vms; i++) {
            s.vm[i] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
        }
        expect_run(&s, FAKE_LIMIT);
        for (unsigned i = 0; i < s.vms; i++) {
            assert_in_range(running(i, 0), FAKE_SECOND / 3 - 6000, FAKE_SECOND / 3 + 6000);
        }
    }
}

/* The very first entry of a pCPU must have its timer set already: no second exit helps later. */
static void first_guest_is_preempted_too(void **state) {
    struct fake_setup s = {.cpus = 2, .vms = 2, .limit = FAKE_SECOND};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = guest_spins, .vcpus = 1, .load_steps = 1, .cpus = 2};
    s.vm[1] = s.vm[0];
    expect_run(&s, FAKE_LIMIT);
    assert_in_range(running(1, 0), FAKE_SECOND / 2 - 6000, FAKE_SECOND / 2 + 6000);
}

static void stop_vm(uint64_t index) {
    vm_stop(vms[index], VM_END_OFF);
}

static void stop_first_later(void) {
    fake_at(fake_started() + 500000, 1, stop_vm, 0);
}

static void spinner_can_be_stopped(void **state) {
    struct fake_setup s = {.cpus = 2, .vms = 2, .limit = FAKE_SECOND};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = guest_spins, .vcpus = 2, .cpus = 1};
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1, .cpus = 1};
    fake_prepare = stop_first_later;
    expect_run(&s, FAKE_LIMIT);
    fake_prepare = NULL;
    assert_int_equal(vms[0]->state, VM_OFF);
    assert_int_equal(vms[1]->state, VM_RUNNING);
    assert_in_range(running(1, 0), 700000, 760000);
}

static void weights_are_shares(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 2, .limit = FAKE_SECOND};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = guest_spins, .vcpus = 1, .weight = 768};
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1, .weight = 256};
    expect_run(&s, FAKE_LIMIT);
    assert_in_range(running(0, 0), 742000, 758000);
}

/* ---- P17: an idle guest gives up the CPU ---- */

static void ticks(struct vcpu *v) {
    for (;;) {
        guest_run(v, 5);
        guest_sleep(v, 4000);
    }
}

static void boot_ticks(struct vcpu *v) {
    for (unsigned i = 1; i < v->vm->config->vcpus; i++) {
        guest_cpu_on(v, i, ticks, 0);
    }
    ticks(v);
}

static void idle_guest_leaves_the_cpu(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 2, .limit = FAKE_SECOND};
    uint64_t idle = 0;

    (void)state;
    s.vm[0] = (struct fake_vm){.program = boot_ticks, .vcpus = 4};
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
    expect_run(&s, FAKE_LIMIT);
    for (unsigned i = 0; i < 4; i++) {
        idle += running(0, i);
        assert_true(vms[0]->vcpus[i]->arch.taken[0] > 150);
    }
    assert_true(idle < FAKE_SECOND / 20);
    assert_true(running(1, 0) > FAKE_SECOND / 10 * 9);
}

/* WFI waits although a wake came while the guest still ran: that one is over. */
static void sgi_then_sleep(struct vcpu *v) {
    for (unsigned i = 0; i < 100; i++) {
        guest_run(v, 900); /* vcpu 1's interrupt comes in here */
        guest_sleep(v, 1100);
    }
    guest_system_off(v);
}

static void sends_sgis(struct vcpu *v) {
    guest_run(v, v->arch.arg - guest_clock());
    for (;;) {
        guest_sgi(v, 0);
        guest_run(v, 2000);
    }
}

static void boot_sgi_then_sleep(struct vcpu *v) {
    guest_cpu_on(v, 1, sends_sgis, guest_clock() + 400);
    sgi_then_sleep(v);
}

static void old_wakes_do_not_end_a_wait(void **state) {
    struct fake_setup s = {.cpus = 2, .vms = 1};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = boot_sgi_then_sleep, .vcpus = 2};
    expect_run(&s, FAKE_OFF);
    assert_in_range(vms[0]->vcpus[0]->arch.taken[2], 98, 101);
    assert_int_equal(vms[0]->vcpus[0]->exits[EXIT_WFI].count, 100);
    assert_in_range(time_in(vms[0]->vcpus[0], RUN_BLOCKED), 109000, 110000);
}

/* ---- P19: timers of a vCPU that is parked ---- */

static void sleeps_1000(struct vcpu *v) {
    for (unsigned i = 0; i < 1000; i++) {
        guest_sleep(v, 1000);
    }
    guest_system_off(v);
}

static void parked_timer_wakes(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 3, .limit = 3 * FAKE_SECOND};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = sleeps_1000, .vcpus = 1};
    s.vm[1] = s.vm[2] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
    expect_run(&s, FAKE_LIMIT);
    assert_int_equal(vms[0]->state, VM_OFF);
    /* Before it has slept enough to be owed the CPU it may wait for the end of one slice. */
    assert_in_range(vms[0]->vcpus[0]->arch.latest[0], 0, FAKE_SLICE);
    assert_true(vms[0]->vcpus[0]->sched.since - fake_started() < FAKE_SECOND * 12 / 10);
}

static void parked_timer_is_exact_on_a_free_cpu(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 1, .limit = 3 * FAKE_SECOND};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = sleeps_1000, .vcpus = 1};
    expect_run(&s, FAKE_OFF);
    assert_int_equal(vms[0]->vcpus[0]->arch.latest[0], 0);
    assert_true(elapsed() < 1010000);
}

/* Parked on one pCPU with its timer there, woken on another, and so on. */
static void moves_about(struct vcpu *v) {
    for (unsigned i = 0; i < 1000; i++) {
        guest_run(v, fake_roll(200));
        guest_sleep(v, 1 + fake_roll(400));
        if (fake_roll(4) == 0) {
            guest_ptimer(v, 1 + fake_roll(300));
            guest_wfi(v);
        }
    }
    guest_system_off(v);
}

static void timer_follows_its_vcpu(void **state) {
    uint64_t migrations = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fake_setup s = {.cpus = 3, .seed = seed, .noise = 60, .vms = 5};
        for (unsigned i = 0; i < s.vms; i++) {
            s.vm[i] = (struct fake_vm){.program = moves_about, .vcpus = 1};
        }
        expect_run(&s, FAKE_OFF);
        for (unsigned i = 0; i < s.vms; i++) {
            const struct vcpu *v = vms[i]->vcpus[0];
            migrations += v->sched.migrations;
            assert_true(v->arch.latest[0] < FAKE_SLICE && v->arch.latest[1] < FAKE_SLICE);
            assert_true(v->arch.taken[0] == 1000 && v->arch.taken[1] > 150);
        }
    }
    assert_true(migrations > 5000);
}

/* The physical timer is all software: it must also fire while its vCPU runs or waits for a CPU. */
static void ptimer_while_running(struct vcpu *v) {
    for (unsigned i = 0; i < 200; i++) {
        guest_ptimer(v, 700);
        guest_run(v, 1500);
    }
    guest_system_off(v);
}

static void software_timer_interrupts_its_own_guest(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 1};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = ptimer_while_running, .vcpus = 1};
    expect_run(&s, FAKE_OFF);
    assert_int_equal(vms[0]->vcpus[0]->arch.taken[1], 200);
    assert_int_equal(vms[0]->vcpus[0]->arch.latest[1], 0);

    s.vms = 2;
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
    s.limit = FAKE_SECOND * 2;
    expect_run(&s, FAKE_LIMIT);
    assert_int_equal(vms[0]->state, VM_OFF);
    assert_in_range(vms[0]->vcpus[0]->arch.taken[1], 100, 200);
    assert_true(vms[0]->vcpus[0]->arch.latest[1] < 2 * FAKE_SLICE);
}

/* Due while it runs again after another one's turn: the timer has to be set anew at each entry. */
static void waits_by_running(struct vcpu *v) {
    for (unsigned i = 0; i < 300; i++) {
        uint64_t before = v->arch.taken[1];
        guest_ptimer(v, 2000 + fake_roll(6000));
        while (v->arch.taken[1] == before) {
            guest_run(v, 50);
        }
    }
    guest_system_off(v);
}

static void software_timer_is_set_at_each_entry(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 2, .limit = 5 * FAKE_SECOND};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = waits_by_running, .vcpus = 1};
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
    expect_run(&s, FAKE_LIMIT);
    assert_int_equal(vms[0]->vcpus[0]->arch.taken[1], 300);
    assert_in_range(vms[0]->vcpus[0]->arch.latest[1], 0, FAKE_SLICE);
}

/* Blocked on CPU 0, which another one takes; woken on CPU 1, where its timer is due while it runs.
 */
static void woken_elsewhere(struct vcpu *v) {
    guest_ptimer(v, 5000);
    guest_wfi(v);
    guest_run(v, 20000);
    guest_system_off(v);
}

static void wake_first(uint64_t virq) {
    fake_post(vms[0]->vcpus[0], (uint32_t)virq);
}

static void wake_first_later(void) {
    fake_at(fake_started() + 2000, 1, wake_first, FAKE_VIRQ_SGI);
}

static void software_timer_moves_to_a_running_vcpu(void **state) {
    struct fake_setup s = {.cpus = 2, .vms = 3, .limit = FAKE_SECOND / 10};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = woken_elsewhere, .vcpus = 1};
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1, .cpus = 1};
    s.vm[2] =
        (struct fake_vm){.program = guest_idles, .vcpus = 1, .cpus = 2}; /* was there before */
    fake_prepare = wake_first_later;
    expect_run(&s, FAKE_LIMIT);
    fake_prepare = NULL;
    assert_int_equal(vms[0]->vcpus[0]->sched.last_cpu, 1);
    assert_int_equal(vms[0]->vcpus[0]->arch.taken[1], 1);
    assert_int_equal(vms[0]->vcpus[0]->arch.latest[1], 0);
    /* The hardware was set for nothing else, but for one alarm of before that came too early. */
    assert_in_range(vms[0]->vcpus[0]->exits[EXIT_IRQ].count, 1, 2);
}

/* ---- P21: an interrupt reaches its vCPU whatever that one does ---- */

static void runs_on(struct vcpu *v) {
    guest_run(v, UINT64_MAX);
}

static void boots_two(struct vcpu *v) {
    guest_cpu_on(v, 1, runs_on, 0);
    guest_cpu_on(v, 2, guest_idles, 0);
    for (unsigned i = 0; i < 100; i++) {
        guest_run(v, 700);
        for (unsigned n = 1; n < 4; n++) {
            guest_sgi(v, n);
        }
    }
    if (v->vm->vcpus[3]->sched.state != RUN_OFF || v->vm->vcpus[3]->sched.switches != 0) {
        fake_fault("an interrupt started a vCPU that was off");
    }
    guest_cpu_on(v, 3, guest_idles, 0);
    guest_run(v, 5000);
    guest_system_off(v);
}

static void interrupts_reach_running_waiting_blocked_and_off(void **state) {
    (void)state;
    for (unsigned cpus = 1; cpus <= 4; cpus++) {
        struct fake_setup s = {.cpus = cpus, .vms = 1};
        uint64_t late = cpus >= 3 ? 0 : 3 * FAKE_SLICE;
        s.vm[0] = (struct fake_vm){.program = boots_two, .vcpus = 4};
        expect_run(&s, FAKE_OFF);
        for (unsigned n = 1; n < 3; n++) {
            const struct arch_vcpu *a = &vms[0]->vcpus[n]->arch;
            assert_in_range(a->latest[2], 0, late);
            assert_in_range(a->taken[2], cpus >= 3 ? 99 : 10, 100);
        }
        if (cpus >= 3) {
            assert_int_equal(vms[0]->vcpus[3]->arch.taken[2], 1); /* it was pending all the time */
        }
    }
}

/* ---- Accounts ---- */

/* fake_run() compares all times with what the pCPUs saw; this makes all kinds of them. */
static void busy(struct vcpu *v) {
    for (;;) {
        switch (fake_roll(8)) {
        case 0:
            guest_sleep(v, fake_roll(3000));
            break;
        case 1:
            guest_wfe(v);
            break;
        case 2:
            guest_sgi(v, fake_roll(v->vm->config->vcpus));
            break;
        case 3:
            guest_cpu_on(v, fake_roll(v->vm->config->vcpus), busy, 0);
            break;
        case 4:
            if (v->index != 0) {
                guest_cpu_off(v);
            }
            break;
        default:
            guest_run(v, fake_roll(4000));
        }
    }
}

static void times_add_up(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 5, .seed = seed, .vms = 3};
        s.limit = FAKE_SECOND;
        s.noise = seed % 2 != 0 ? 0 : 40;
        for (unsigned i = 0; i < s.vms; i++) {
            s.vm[i] = (struct fake_vm){.program = busy, .vcpus = 4, .weight = 100 + i * 100};
        }
        expect_run(&s, FAKE_LIMIT);
        for (unsigned i = 0; i < 12; i++) {
            uint64_t times[RUN_STATES];
            sched_times(&vms[i / 4]->vcpus[i % 4]->sched, times);
            assert_int_equal(times[0] + times[1] + times[2] + times[3], elapsed());
        }
    }
}

/* ---- Storms: a vCPU that others send interrupts to without a pause gets on all the same ---- */

static uint64_t storm_gap;

static void storms(struct vcpu *v) {
    for (;;) {
        guest_sgi(v, 0);
        guest_run(v, storm_gap);
    }
}

static void is_stormed(struct vcpu *v) {
    for (unsigned i = 1; i < v->vm->config->vcpus; i++) {
        guest_cpu_on(v, i, storms, 0);
    }
    for (;;) {
        uint64_t before = v->arch.taken[2];

        guest_sgi(v, 0);
        if (v->arch.taken[2] == before) {
            fake_fault("an interrupt that it sent to itself waits");
        }
        guest_run(v, 40);
    }
}

static void storm_leaves_time(void **state) {
    (void)state;
    for (unsigned cpus = 2; cpus <= 4; cpus++) {
        for (storm_gap = 1; storm_gap <= 7; storm_gap++) {
            struct fake_setup s = {.cpus = cpus, .vms = 1, .limit = FAKE_SECOND / 10};
            const struct arch_vcpu *a;

            s.refill_ticks = 5;
            s.vm[0] = (struct fake_vm){.program = is_stormed, .vcpus = cpus};
            expect_run(&s, FAKE_LIMIT);
            a = &vms[0]->vcpus[0]->arch;
            assert_in_range(a->ran, FAKE_SECOND / 10 / 5, FAKE_SECOND / 10);
            assert_in_range(a->taken[2], 500, FAKE_SECOND / 10); /* 100 us is the longest hold */
            assert_in_range(a->latest[2], 0, 150);
            assert_in_range(vms[0]->vcpus[0]->exits[EXIT_IRQ].count, 1, a->taken[2] * 2);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spinners_share), /* P16 */
        cmocka_unit_test(first_guest_is_preempted_too),
        cmocka_unit_test(spinner_can_be_stopped),
        cmocka_unit_test(weights_are_shares),
        cmocka_unit_test(idle_guest_leaves_the_cpu), /* P17 */
        cmocka_unit_test(old_wakes_do_not_end_a_wait),
        cmocka_unit_test(parked_timer_wakes), /* P19 */
        cmocka_unit_test(parked_timer_is_exact_on_a_free_cpu),
        cmocka_unit_test(timer_follows_its_vcpu),
        cmocka_unit_test(software_timer_interrupts_its_own_guest),
        cmocka_unit_test(software_timer_is_set_at_each_entry),
        cmocka_unit_test(software_timer_moves_to_a_running_vcpu),           /* P19 */
        cmocka_unit_test(interrupts_reach_running_waiting_blocked_and_off), /* P21 */
        cmocka_unit_test(storm_leaves_time),
        cmocka_unit_test(times_add_up),
    };

    choose_test();
    return cmocka_run_group_tests_name("time", tests, NULL, free_machine);
}
