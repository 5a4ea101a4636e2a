/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: core/pvlock.c core/steal.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* The monitor's line, and what it does to VMs: stop, start, reset, pause, any number of times. */
#include <stdio.h>

#include "arch/fake/expect.h"

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/monitor.h"

static const char *script; /* what is typed, a command at a time */
static uint64_t script_gap;
static unsigned rounds, injected;

static void type(const char *text) {
    for (; *text != '\0'; text++) {
        (void)monitor_typed((uint8_t)*text);
    }
}

/* Types up to the next '|', and comes again after script_gap ticks. */
static void type_next(uint64_t unused) {
    char text[256];
    size_t n = strcspn(script, "|");

    (void)unused;
    memcpy(text, script, n);
    text[n] = '\0';
    script += script[n] == '|' ? n + 1 : n;
    type(text);
    if (*script != '\0') {
        fake_at(guest_clock() + script_gap, 0, type_next, 0);
    }
}

static void prepare_script(void) {
    atomic_store(&vm_operator, false);
    fake_at(fake_started() + 5000, 0, type_next, 0);
}

/* Types `what` from 5 ms on, `gap` ticks between its parts, on a machine with these VMs. */
static void run_script(struct fake_setup *s, const char *what, uint64_t gap, enum fake_end end) {
    script = what;
    script_gap = gap;
    fake_prepare = prepare_script;
    expect_run(s, end);
    fake_prepare = NULL;
    type("\x1d"); /* open or not, the next test begins anew */
    if (monitor_typed(' ')) {
        type("\x1d");
    }
}

static bool said(const char *text) {
    return strstr(fake_output(), text) != NULL;
}

static struct fake_setup two_vms(void) {
    struct fake_setup s = {.cpus = 2, .vms = 2, .limit = FAKE_SECOND / 2};

    s.vm[0] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
    s.vm[1] = (struct fake_vm){.program = guest_idles, .vcpus = 2};
    return s;
}

static void lines_are_edited(void **state) {
    struct fake_setup s = two_vms();

    (void)state;
    run_script(&s,
               "vms\r|\x1d|hexx\x7f\blp\r|vmsvms\x15help\r|junk\x03|   set \r|a b c d e f "
               "g\r|zzz\r|\x1dvms\r",
               20000, FAKE_LIMIT);
    const char *first = strstr(fake_output(), "this list");
    assert_non_null(first);
    assert_non_null(strstr(first + 1, "this list"));
    assert_true(said("expected: set VM KEY VALUE"));
    assert_true(said("found 'a', expected a command"));
    assert_true(said("found 'zzz', expected a command"));
    assert_false(said("found 'junk'"));
    assert_false(said("weight  MiB")); /* before it was open, and after: not for the monitor */
}

static void commands_answer(void **state) {
    struct fake_setup s = two_vms();
    char name[80];

    (void)state;
    run_script(&s,
               "\x1d|vms\r|vcpus\r|exits\r|cpus\r|stats\r|log\r|stop x\r|off\r|focus x\r|set vm0 "
               "weight 3\r",
               20000, FAKE_LIMIT);
    assert_true(said("last end"));
    assert_true(said("longest wait us"));
    assert_true(said("hypervisor us"));
    assert_true(said("stats end clock="));
    assert_true(said("2 VMs are on, expected none"));
    assert_true(said("found 'x', expected the name of a VM"));
    snprintf(name, sizeof(name), "set %s weight 3\r", vms[0]->config->name);
    type("\x1d");
    type(name);
    assert_int_equal(vms[0]->vcpus[0]->sched.weight, 3);
    type("\x1d");
}

/* ---- Pause ---- */

static uint64_t ran_at_pause, paused_for;

static void pause_first(uint64_t unused) {
    (void)unused;
    assert_true(vm_pause(vms[0]));
    assert_false(vm_pause(vms[0]));
}

static void note_first(uint64_t unused) {
    (void)unused;
    assert_false(vm_pausing(vms[0]));
    ran_at_pause = time_in(vms[0]->vcpus[0], RUN_RUNNING);
}

static void resume_first(uint64_t unused) {
    (void)unused;
    assert_int_equal(time_in(vms[0]->vcpus[0], RUN_RUNNING), ran_at_pause);
    assert_int_equal(vms[0]->vcpus[0]->sched.state, RUN_OFF);
    assert_true(vm_resume(vms[0]));
    assert_false(vm_resume(vms[0]));
    paused_for = vms[0]->arch.stood;
}

static void prepare_pause(void) {
    vms[0]->clock_stands = true;
    fake_at(fake_started() + 100000, 1, pause_first, 0);
    fake_at(fake_started() + 104000, 1, note_first, 0);
    fake_at(fake_started() + 300000, 1, resume_first, 0);
}

static void paused_vm_stands(void **state) {
    struct fake_setup s = two_vms();

    (void)state;
    fake_prepare = prepare_pause;
    expect_run(&s, FAKE_LIMIT);
    fake_prepare = NULL;
    assert_in_range(paused_for, 195000, 200000);
    assert_in_range(time_in(vms[0]->vcpus[0], RUN_OFF), 195000, 202000);
    assert_in_range(time_in(vms[0]->vcpus[0], RUN_RUNNING), 280000, 305000);
}

/* Paused and resumed at any moment, with sleepers that wake meanwhile: nobody runs, nobody is lost.
 */
static void flip(uint64_t unused) {
    struct vm *vm = vms[0];

    if (!vm->paused) {
        (void)vm_pause(vm);
    } else if (!vm_pausing(vm)) {
        (void)vm_resume(vm);
    }
    fake_at(guest_clock() + 50 + fake_roll(3000), fake_roll(2), flip, unused);
}

static void prepare_flips(void) {
    fake_at(fake_started() + 1000, 0, flip, 0);
}

static void sleeps_and_counts(struct vcpu *v) {
    for (unsigned i = 0; i < 200; i++) {
        guest_run(v, 100);
        guest_sleep(v, 300);
    }
    guest_system_off(v);
}

static void pauses_lose_nothing(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct fake_setup s = {
            .cpus = 2, .vms = 2, .limit = 5 * FAKE_SECOND, .seed = seed, .noise = 20};

        s.vm[0] = (struct fake_vm){.program = sleeps_and_counts, .vcpus = 1};
        s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 2};
        fake_prepare = prepare_flips;
        expect_run(&s, FAKE_LIMIT);
        fake_prepare = NULL;
        assert_int_equal(vms[0]->state, VM_OFF);
        assert_int_equal(vms[0]->last_end, VM_END_OFF);
    }
}

/* ---- L03: events for a VM that goes off and on ---- */

static void harass(uint64_t unused) {
    struct vm *vm = vms[0];

    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        if (fake_roll(3) == 0) {
            fake_post(vm->vcpus[i], 1u << 2);
            injected++;
        }
    }
    (void)vpl011_receive(vm, 'x');
    switch (fake_roll(6)) {
    case 0:
        vm_stop(vm, VM_END_RESET);
        rounds++;
        break;
    case 1:
        vm_stop(vm, VM_END_OFF);
        rounds++;
        break;
    case 2:
        (void)vm_pause(vm);
        break;
    default:
        (void)vm_resume(vm);
        vm_start(vm);
    }
    fake_at(guest_clock() + 20 + fake_roll(200), fake_roll(2), harass, unused);
}

static void prepare_harassment(void) {
    atomic_store(&vm_operator, true);
    fake_at(fake_started() + 1000, 0, harass, 0);
}

/* The fake machine itself complains of what is left of an earlier life (arch_vm_reset). */
static void goes_on(struct vcpu *v) {
    for (;;) {
        guest_run(v, 30);
        guest_sleep(v, 70);
    }
}

static void lives_without_number(void **state) {
    (void)state;
    rounds = injected = 0;
    for (uint64_t seed = 1; rounds < 1000; seed++) {
        struct fake_setup s = {
            .cpus = 2, .vms = 2, .limit = FAKE_SECOND / 4, .seed = seed, .noise = 30};

        s.vm[0] = (struct fake_vm){.program = goes_on, .vcpus = 2};
        s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
        fake_prepare = prepare_harassment;
        expect_run(&s, FAKE_LIMIT);
        fake_prepare = NULL;
        assert_in_range(time_in(vms[1]->vcpus[0], RUN_RUNNING), FAKE_SECOND / 16,
                        FAKE_SECOND / 4 + 1000);
    }
    assert_true(injected > 1000);
}

/* Stopped while it is about to pause: it must not stay so, neither paused nor stopped. */
static void pause_it(uint64_t unused);

static void restarts(uint64_t unused) {
    (void)unused;
    assert_int_equal(vms[0]->state, VM_RUNNING);
    rounds++;
    fake_at(guest_clock() + fake_roll(500), fake_roll(2), pause_it, 0);
}

static void stop_it(uint64_t unused) {
    vm_stop(vms[0], VM_END_RESET);
    fake_at(guest_clock() + 6000, fake_roll(2), restarts, unused);
}

static void pause_it(uint64_t unused) {
    assert_true(vm_pause(vms[0]));
    fake_at(guest_clock() + fake_roll(40), fake_roll(2), stop_it, unused);
}

static void prepare_meeting(void) {
    fake_at(fake_started() + 5000, 0, pause_it, 0);
}

static void stop_meets_pause(void **state) {
    (void)state;
    rounds = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct fake_setup s = {
            .cpus = 2, .vms = 2, .limit = FAKE_SECOND / 4, .seed = seed, .noise = 30};

        s.vm[0] = (struct fake_vm){.program = goes_on, .vcpus = 3};
        s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
        fake_prepare = prepare_meeting;
        expect_run(&s, FAKE_LIMIT);
        fake_prepare = NULL;
    }
    assert_true(rounds > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(lines_are_edited, free_machine),
        cmocka_unit_test_teardown(commands_answer, free_machine),
        cmocka_unit_test_teardown(paused_vm_stands, free_machine),
        cmocka_unit_test_teardown(pauses_lose_nothing, free_machine),
        cmocka_unit_test_teardown(lives_without_number, free_machine),
        cmocka_unit_test_teardown(stop_meets_pause, free_machine), /* L03 */
    };

    choose_test();
    return cmocka_run_group_tests_name("hyp_monitor", tests, NULL, NULL);
}
