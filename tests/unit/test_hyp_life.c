/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* link: core/pvlock.c core/steal.c */
/*
 * The end of VMs: off, reset and crash at any moment, with vCPUs in every state, while others go
 * on. Much is checked by the fake machine itself: that no vCPU is inside while its VM's memory is
 * filled, that nothing of a vCPU that is off is left in a queue, that all times add up.
 */
#include <stdio.h>

#include "arch/fake/expect.h"
#include "hyp/pcpu.h"

#define MACHINES 2500u

static struct {
    unsigned ends;                        /* VMs that ended, resets included */
    unsigned states[RUN_STATES], pending; /* of vCPUs at the moment that somebody ended their VM */
    unsigned done;                        /* units of work of the witness */
    uint64_t until;                       /* when the wild ones are to be off for good */
} life;

static void note_states(const struct vm *vm) {
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        life.states[vm->vcpus[i]->sched.state]++;
        life.pending += vm->vcpus[i]->power == VCPU_ON_PENDING;
    }
    life.ends++;
}

static void end_it(struct vcpu *v) {
    if (v->vm->state == VM_RUNNING) {
        note_states(v->vm);
    }
    switch (fake_roll(guest_clock() > life.until ? 2 : 6)) {
    case 0:
        guest_system_off(v);
    case 1:
        guest_crash(v);
    default:
        guest_system_reset(v);
    }
}

/* Does anything that a guest can do; one of its vCPUs ends the VM sooner or later. */
static void wild(struct vcpu *v) {
    unsigned vcpus = v->vm->config->vcpus;

    guest_use_space(v, v->index);
    for (;;) {
        guest_access(v, fake_roll(FAKE_PAGES));
        switch (fake_roll(16)) {
        case 0:
        case 1:
            guest_sleep(v, fake_roll(400));
            break;
        case 2:
            guest_ptimer(v, fake_roll(300));
            break;
        case 3:
            guest_vtimer(v, fake_roll(500));
            guest_wfi(v);
            break;
        case 4:
            guest_sgi(v, fake_roll(vcpus));
            break;
        case 5:
            guest_map(v, v->index, fake_roll(FAKE_PAGES), fake_roll(FAKE_PAGES), GUEST_TLBI_LOCAL);
            break;
        case 6:
        case 7:
        case 8:
            guest_cpu_on(v, fake_roll(vcpus), wild, 0);
            break;
        case 9:
            if (fake_roll(3) == 0) {
                guest_cpu_off(v);
            }
            break;
        case 10:
            guest_wfe(v);
            break;
        case 11:
            if (fake_roll(8) == 0 || guest_clock() > life.until) {
                end_it(v);
            }
            break;
        default:
            guest_run(v, fake_roll(500));
        }
    }
}

/* The one that is not to notice anything: does its work and counts it. */
static void witness(struct vcpu *v) {
    for (unsigned i = 0; i < 20; i++) {
        for (unsigned page = 0; page < FAKE_PAGES; page++) {
            if (guest_access(v, page) == UINT64_MAX) {
                fake_fault("the witness lost a page");
            }
        }
        guest_run(v, 200);
        guest_sleep(v, 300);
        life.done++;
    }
    guest_system_off(v);
}

/* A monitor's stop, again and again; one that loads just then sees it when its loader looks. */
static void stop_from_outside(uint64_t index) {
    struct vm *vm = vms[index];

    if (vm->state == VM_OFF) {
        return;
    }
    if (vm->state == VM_RUNNING) {
        note_states(vm);
    }
    vm_stop(vm, guest_clock() < life.until ? VM_END_RESET : VM_END_OFF);
    fake_at(guest_clock() + 1 + fake_roll(3000), fake_roll(pcpu_count), stop_from_outside, index);
}

/* A device that goes on interrupting whatever becomes of its VM (L03). */
static void device(uint64_t index) {
    struct vcpu *v = vms[index]->vcpus[fake_roll(vms[index]->config->vcpus)];

    fake_post(v, FAKE_VIRQ_SGI);
    fake_at(guest_clock() + 1 + fake_roll(500), fake_roll(pcpu_count), device, index);
}

static void prepare(void) {
    life.until = fake_started() + 6000;
    fake_at(fake_started() + fake_roll(6000), fake_roll(pcpu_count), stop_from_outside, 0);
    fake_at(fake_started() + 6000 + fake_roll(4000), fake_roll(pcpu_count), stop_from_outside, 1);
    fake_at(fake_started() + fake_roll(500), fake_roll(pcpu_count), device, 0);
    fake_at(fake_started() + fake_roll(500), fake_roll(pcpu_count), device, 2);
}

static void check_machine_off(unsigned vm_total) {
    unsigned off, crashed;
    const char *line = strstr(fake_output(), "machine off: ");

    assert_non_null(line);
    assert_int_equal(sscanf(line, "machine off: %u off, %u crashed", &off, &crashed), 2);
    assert_int_equal(off + crashed, vm_total);
    for (unsigned i = 0; i < vm_total; i++) {
        assert_int_equal(vms[i]->state, VM_OFF);
        for (unsigned n = 0; n < vms[i]->config->vcpus; n++) {
            assert_int_equal(vms[i]->vcpus[n]->power, VCPU_OFF);
        }
    }
}

static void ends_at_any_moment(void **state) {
    (void)state;
    fake_prepare = prepare;
    memset(&life, 0, sizeof(life));
    for (uint64_t seed = 1; seed <= MACHINES; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 4, .seed = seed, .vms = 3};
        s.limit = FAKE_SECOND;
        s.slice = 300;
        s.noise = seed % 8 == 0 ? 0 : 5 + (unsigned)seed % 60;
        s.vm[0] = (struct fake_vm){.program = wild, .vcpus = 1 + (unsigned)seed % 5};
        s.vm[1] = (struct fake_vm){.program = wild, .vcpus = 1 + (unsigned)seed % 3};
        s.vm[2] = (struct fake_vm){.program = witness, .vcpus = 1};
        life.done = 0;
        expect_run(&s, FAKE_OFF);
        assert_int_equal(life.done, 20);
        check_machine_off(3);
    }
    fake_prepare = NULL;
    print_message(
        "# %u ends; vCPUs then: %u off, %u blocked, %u runnable, %u running, %u pending\n",
        life.ends, life.states[RUN_OFF], life.states[RUN_BLOCKED], life.states[RUN_RUNNABLE],
        life.states[RUN_RUNNING], life.pending);
    assert_true(life.ends > 10000 && life.pending > 100);
    for (unsigned i = 0; i < RUN_STATES; i++) {
        assert_true(life.states[i] > 1000);
    }
}

/* ---- The simple cases, one by one ---- */

static void off_at_once(struct vcpu *v) {
    guest_system_off(v);
}

static void crashes(struct vcpu *v) {
    guest_run(v, 1000);
    guest_crash(v);
}

static void the_last_one_turns_the_machine_off(void **state) {
    struct fake_setup s = {.cpus = 2, .vms = 3};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = off_at_once, .vcpus = 2};
    s.vm[1] = (struct fake_vm){.program = crashes, .vcpus = 2};
    s.vm[2] = (struct fake_vm){.program = witness, .vcpus = 1};
    expect_run(&s, FAKE_OFF);
    assert_non_null(strstr(fake_output(), "vm vm0: off"));
    assert_non_null(strstr(fake_output(), "vm vm1: crashed: it wanted to"));
    assert_non_null(strstr(fake_output(), "stats vm=vm2 vcpu=0 running="));
    assert_non_null(strstr(fake_output(), "machine off: "));
    assert_true(elapsed() > 20 * 500);
}

/* With one that never ends the machine stays. */
static void the_machine_stays_for_others(void **state) {
    struct fake_setup s = {.cpus = 2, .vms = 2, .limit = FAKE_SECOND};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = crashes, .vcpus = 2};
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
    expect_run(&s, FAKE_LIMIT);
    assert_int_equal(vms[0]->state, VM_OFF);
    assert_int_equal(vms_running, 1);
}

/* Only the first reason counts. */
static void two_reasons(uint64_t index) {
    vm_stop(vms[index], VM_END_OFF);
    vm_stop(vms[index], VM_END_RESET);
}

static void stop_twice(void) {
    fake_at(fake_started() + 5000, 0, two_reasons, 0);
}

static void the_first_reason_counts(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 1, .vm = {{.program = guest_spins, .vcpus = 3}}};

    (void)state;
    fake_prepare = stop_twice;
    expect_run(&s, FAKE_OFF);
    fake_prepare = NULL;
    assert_int_equal(vms[0]->end, VM_END_OFF);
    assert_int_equal(vms[0]->arch.loads, 1);
}

/* A bus error that comes after the guest was left is its VM's, not that of whoever runs next. */
static unsigned hit;

static void works_and_sleeps(struct vcpu *v) {
    for (;;) {
        guest_run(v, 300);
        guest_sleep(v, 100);
    }
}

static void bus_error(uint64_t arg) {
    (void)arg;
    hit = this_pcpu()->current->vm->index;
    this_pcpu()->arch.serror = true;
}

static void bus_error_soon(void) {
    fake_at(fake_started() + 3000 + fake_roll(20000), 0, bus_error, 0);
}

static void serror_is_of_the_one_that_leaves(void **state) {
    fake_guest *const programs[] = {guest_spins, works_and_sleeps};

    (void)state;
    fake_prepare = bus_error_soon;
    for (unsigned seed = 0; seed < 200; seed++) {
        struct fake_setup s = {.cpus = 1, .vms = 2, .seed = seed, .limit = FAKE_SECOND / 10};

        s.vm[0] = (struct fake_vm){.program = programs[seed % 2], .vcpus = 1};
        s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 2};
        expect_run(&s, FAKE_LIMIT);
        assert_int_equal(vms[hit]->end, VM_END_CRASH);
        assert_int_equal(vms[1 - hit]->state, VM_RUNNING);
    }
    fake_prepare = NULL;
}

/* Nothing but the end itself wakes them. */
static void starts_sleepers(struct vcpu *v) {
    for (unsigned i = 1; i < v->vm->config->vcpus; i++) {
        guest_cpu_on(v, i, guest_idles, 0);
    }
    guest_run(v, 20000);
    if (v->vm->arch.loads == 1) {
        guest_system_reset(v);
    }
    guest_system_off(v);
}

static void sleepers_end_too(void **state) {
    (void)state;
    for (unsigned cpus = 1; cpus <= 4; cpus++) {
        struct fake_setup s = {.cpus = cpus, .vms = 1};
        s.vm[0] = (struct fake_vm){.program = starts_sleepers, .vcpus = 5};
        expect_run(&s, FAKE_OFF);
    }
}

/* ---- L03: nothing of the old life reaches the new one ---- */

static unsigned lives;

/* Leaves timers set and interrupts pending behind; its next life must not see them. */
static void leaves_timers_behind(struct vcpu *v) {
    if (v->arch.visible != 0 || v->arch.posted != 0 || v->arch.taken[0] + v->arch.taken[1] != 0) {
        fake_fault("life %u begins with an interrupt", lives);
    }
    guest_run(v, 1500);
    if (v->arch.taken[0] + v->arch.taken[1] != 0) {
        fake_fault("life %u: a timer that it did not set", lives);
    }
    if (++lives == 1000) {
        guest_system_off(v);
    }
    guest_vtimer(v, 200 + fake_roll(900));
    guest_ptimer(v, 200 + fake_roll(900));
    guest_system_reset(v);
}

static void old_timers_do_not_fire_in_a_new_life(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct fake_setup s = {.cpus = 2, .seed = seed, .vms = 2};
        s.noise = seed == 0 ? 0 : 30;
        s.vm[0] = (struct fake_vm){.program = leaves_timers_behind, .vcpus = 1};
        s.vm[1] = (struct fake_vm){.program = witness, .vcpus = 1};
        lives = 0;
        expect_run(&s, FAKE_OFF);
        assert_int_equal(lives, 1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_one_turns_the_machine_off),
        cmocka_unit_test(the_machine_stays_for_others),
        cmocka_unit_test(the_first_reason_counts),
        cmocka_unit_test(serror_is_of_the_one_that_leaves),
        cmocka_unit_test(sleepers_end_too),
        cmocka_unit_test(old_timers_do_not_fire_in_a_new_life), /* L03 */
        cmocka_unit_test(ends_at_any_moment),
    };

    choose_test();
    return cmocka_run_group_tests_name("life", tests, NULL, free_machine);
}
