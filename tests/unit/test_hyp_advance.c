/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* link: core/pvlock.c core/steal.c */
/* Timer advancement in the machine: a tick is a microsecond. That no timer's interrupt is taken
 * before its deadline is checked by arch/fake/guest.c all the time. */
#include "arch/fake/expect.h"

#define SLEEPS 200u

/* How late each sleep of the guest that is looked at ended. */
static uint64_t late[SLEEPS];

static uint64_t worst(unsigned from) {
    uint64_t most = 0;

    for (unsigned i = from; i < SLEEPS; i++) {
        most = late[i] > most ? late[i] : most;
    }
    return most;
}

static void sleeps(struct vcpu *v) {
    for (unsigned i = 0; i < SLEEPS; i++) {
        uint64_t until = guest_clock() + 1000 + 7 * i;

        guest_sleep(v, 1000 + 7 * i);
        late[i] = guest_clock() - until;
    }
    guest_system_off(v);
}

static const struct advance *advance_of(unsigned vm) {
    return &vms[vm]->vcpus[0]->advance;
}

static struct fake_setup alone(int32_t advance_ns, uint64_t overhead) {
    struct fake_setup s = {.cpus = 1, .vms = 1, .switch_ticks = overhead};

    s.vm[0] = (struct fake_vm){.program = sleeps, .vcpus = 1, .advance_ns = advance_ns};
    return s;
}

/* ---- Alone ---- */

static void off_is_late_by_the_overhead(void **state) {
    struct fake_setup s = alone(ADVANCE_OFF, 3);

    (void)state;
    expect_run(&s, FAKE_OFF);
    for (unsigned i = 0; i < SLEEPS; i++) {
        assert_int_equal(late[i], 3);
    }
    assert_int_equal(advance_of(0)->expiries, 0);
}

static void fixed_covers_it_and_waits_for_the_rest(void **state) {
    (void)state;
    for (int32_t ticks = 1; ticks <= 6; ticks++) {
        struct fake_setup s = alone(1000 * ticks, 3);
        uint64_t rest = ticks > 3 ? (uint64_t)ticks - 3 : 0;

        expect_run(&s, FAKE_OFF);
        for (unsigned i = 0; i < SLEEPS; i++) {
            assert_int_equal(late[i], ticks < 3 ? 3 - ticks : 0);
        }
        /* What the last one taught is asked for by none after it. */
        assert_in_range(advance_of(0)->expiries, SLEEPS - 1, SLEEPS);
        assert_int_equal(advance_of(0)->waited, rest * advance_of(0)->expiries);
    }
}

/* The wait is neither idle nor the guest's time. */
static void the_wait_is_the_hypervisors_time(void **state) {
    struct fake_setup s = alone(6000, 3);
    uint64_t hyp, with;

    (void)state;
    expect_run(&s, FAKE_OFF);
    with = pcpus[0]->hyp_time;
    s.vm[0].advance_ns = 3000;
    expect_run(&s, FAKE_OFF);
    hyp = pcpus[0]->hyp_time;
    assert_in_range(with - hyp, 3 * SLEEPS - 3, 3 * SLEEPS);
}

static void adaptive_finds_it(void **state) {
    (void)state;
    for (uint64_t overhead = 1; overhead <= 4; overhead++) {
        struct fake_setup s = alone(ADVANCE_ADAPTIVE, overhead);

        expect_run(&s, FAKE_OFF);
        assert_int_equal(late[0], overhead > 1 ? overhead - 1 : 0);
        assert_int_equal(worst(60), 0);
        assert_true(advance_of(0)->waited <= SLEEPS);
    }
}

static void too_much_is_said(void **state) {
    struct fake_setup s = alone(ADVANCE_ADAPTIVE, 8);

    (void)state;
    expect_run(&s, FAKE_OFF);
    assert_int_equal(worst(100), 8);
    assert_int_equal(advance_of(0)->stops, 1);
    assert_non_null(strstr(fake_output(), "vm vm0 vcpu 0: timer advancement: found an overhead"));
}

/* ---- With others ---- */

/* Who would keep another one waiting for long goes into its guest at once; its own timer does the
 * rest. */
static void does_not_wait_while_others_do(void **state) {
    (void)state;
    for (int32_t ticks = 1; ticks <= 20; ticks += 3) {
        struct fake_setup s = alone(1000 * ticks, 2);

        s.vms = 2;
        s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
        s.limit = FAKE_SECOND;
        expect_run(&s, FAKE_LIMIT);
        assert_int_equal(vms[0]->state, VM_OFF);
        /* The guest sleeps again at once: a second entry, near enough for a short wait. */
        assert_in_range(advance_of(0)->expiries, SLEEPS / 2, 3 * SLEEPS);
        assert_true(advance_of(0)->waited <= advance_of(0)->expiries);
        assert_in_range(worst(20), 0, FAKE_SLICE);
    }
}

static void adaptive_beside_a_spinner(void **state) {
    struct fake_setup s = alone(ADVANCE_ADAPTIVE, 3);
    unsigned exact = 0;

    (void)state;
    s.vms = 2;
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
    s.limit = FAKE_SECOND;
    expect_run(&s, FAKE_LIMIT);
    for (unsigned i = 20; i < SLEEPS; i++) {
        exact += late[i] == 0;
    }
    assert_in_range(exact, SLEEPS - 30, SLEEPS - 20);
}

/* ---- Anything, anywhere ---- */

/* Both timers, moved and cancelled, woken by others meanwhile; it is on any pCPU. */
static void all_kinds(struct vcpu *v) {
    for (unsigned i = 0; i < 400; i++) {
        guest_run(v, fake_roll(60));
        switch (fake_roll(6)) {
        case 0:
            guest_ptimer(v, 1 + fake_roll(100));
            guest_vtimer(v, 1 + fake_roll(100));
            guest_wfi(v);
            guest_ptimer(v, UINT64_MAX);
            break;
        case 1:
            guest_vtimer(v, fake_roll(8));
            guest_wfi(v);
            guest_vtimer(v, 1 + fake_roll(100));
            guest_wfi(v);
            break;
        case 2:
            guest_sgi(v, fake_roll(v->vm->config->vcpus));
            break;
        case 3:
            guest_ptimer(v, 1 + fake_roll(300));
            guest_wfi(v);
            break;
        default:
            guest_sleep(v, 1 + fake_roll(200));
        }
    }
    if (v->index == 0) {
        guest_system_off(v);
    }
}

static void boot_all_kinds(struct vcpu *v) {
    for (unsigned i = 1; i < v->vm->config->vcpus; i++) {
        guest_cpu_on(v, i, all_kinds, 0);
    }
    all_kinds(v);
}

static void set_all(uint64_t setting) {
    for (unsigned i = 0; i < vm_count; i++) {
        for (unsigned n = 0; n < vms[i]->config->vcpus; n++) {
            advance_set(&vms[i]->vcpus[n]->advance, (int32_t)setting);
        }
    }
}

static void pause_first(uint64_t resume) {
    if (resume != 0) {
        (void)vm_resume(vms[0]);
    } else {
        (void)vm_pause(vms[0]);
    }
}

static void disturb(void) {
    uint64_t from = fake_started();

    for (unsigned i = 0; i < 6; i++) {
        fake_at(from + 3000 + 4000 * i, 0, pause_first, 0);
        fake_at(from + 3700 + 4100 * i, 1, pause_first, 1);
    }
    fake_at(from + 60000, 1, pause_first, 1);
    fake_at(from + 10000, 0, set_all, (uint64_t)ADVANCE_ADAPTIVE);
    fake_at(from + 14000, 1, set_all, 7000);
    fake_at(from + 18000, 0, set_all, ADVANCE_OFF);
    fake_at(from + 20000, 0, set_all, 3000);
}

static void any_order_of_things(void **state) {
    uint64_t expiries = 0, waited = 0;

    (void)state;
    fake_prepare = disturb;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct fake_setup s = {.cpus = 2 + (unsigned)seed % 3, .seed = seed, .vms = 3};

        s.noise = seed % 4 == 0 ? 0 : 60;
        s.switch_ticks = 1 + seed % 5;
        for (unsigned i = 0; i < s.vms; i++) {
            s.vm[i] = (struct fake_vm){.program = boot_all_kinds,
                                       .vcpus = 1 + ((unsigned)seed + i) % 3,
                                       .advance_ns = 4000};
        }
        expect_run(&s, FAKE_OFF);
        for (unsigned i = 0; i < s.vms; i++) {
            expiries += advance_of(i)->expiries;
            waited += advance_of(i)->waited;
        }
    }
    fake_prepare = NULL;
    assert_true(expiries > 10000);
    assert_true(waited > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_is_late_by_the_overhead),
        cmocka_unit_test(fixed_covers_it_and_waits_for_the_rest),
        cmocka_unit_test(the_wait_is_the_hypervisors_time),
        cmocka_unit_test(adaptive_finds_it),
        cmocka_unit_test(too_much_is_said),
        cmocka_unit_test(does_not_wait_while_others_do),
        cmocka_unit_test(adaptive_beside_a_spinner),
        cmocka_unit_test(any_order_of_things),
    };

    choose_test();
    return cmocka_run_group_tests_name("advance in the machine", tests, NULL, free_machine);
}
