/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* link: core/pvlock.c core/steal.c */
/* O02: what vCPUs and pCPUs did, counted and timed, adds up. In this machine only loading takes
 * time. */
#include "arch/fake/expect.h"

#include "hyp/arch.h"
#include "hyp/stats.h"

#define SMALL 20u /* ticks for what else there is to do before a VM runs */

static uint64_t waited_before_start, reported_idle;

static struct cpu_times all_cpus(void) {
    struct cpu_times sum = {0, 0, 0};

    for (unsigned i = 0; i < pcpu_count; i++) {
        struct cpu_times t = stats_cpu_times(pcpus[i]);
        sum.guest += t.guest;
        sum.hypervisor += t.hypervisor;
        sum.idle += t.idle;
    }
    return sum;
}

static uint64_t loading(void) {
    uint64_t sum = 0;

    for (unsigned m = 0; m < vm_count; m++) {
        sum += vms[m]->arch.loading;
    }
    return sum;
}

/* pCPUs come online one after another. */
static uint64_t all_late(void) {
    uint64_t sum = 0;

    for (unsigned i = 0; i < pcpu_count; i++) {
        sum += pcpus[i]->online_at - fake_started();
    }
    return sum;
}

static uint64_t all_running(void) {
    uint64_t sum = 0;

    for (unsigned m = 0; m < vm_count; m++) {
        for (unsigned i = 0; i < vms[m]->config->vcpus; i++) {
            sum += time_in(vms[m]->vcpus[i], RUN_RUNNING);
        }
    }
    return sum;
}

static void sleeps(struct vcpu *v) {
    for (;;) {
        guest_run(v, 300);
        guest_sleep(v, 700);
    }
}

static void yields(struct vcpu *v) {
    for (;;) {
        guest_run(v, 50);
        guest_wfe(v);
    }
}

/* Idle, half idle, one vCPU to a pCPU and many of them. */
static void pcpu_times_add_up(void **state) {
    static const struct {
        unsigned cpus, sleepers, spinners, yielders;
    } mix[] = {{1, 1, 0, 0}, {2, 1, 1, 0}, {2, 0, 2, 0}, {2, 2, 3, 2}, {4, 1, 0, 1}};

    (void)state;
    for (unsigned k = 0; k < sizeof(mix) / sizeof(mix[0]); k++) {
        struct fake_setup s = {.cpus = mix[k].cpus, .limit = FAKE_SECOND};

        for (unsigned i = 0; i < mix[k].sleepers; i++) {
            s.vm[s.vms++] = (struct fake_vm){.program = sleeps, .vcpus = 1};
        }
        for (unsigned i = 0; i < mix[k].spinners; i++) {
            s.vm[s.vms++] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
        }
        for (unsigned i = 0; i < mix[k].yielders; i++) {
            s.vm[s.vms++] = (struct fake_vm){.program = yields, .vcpus = 1};
        }
        expect_run(&s, FAKE_LIMIT);
        struct cpu_times t = all_cpus();
        assert_in_range(t.hypervisor, loading(), loading() + SMALL * s.vms);
        assert_int_equal(t.guest + t.hypervisor, all_running());
        assert_int_equal(t.guest + t.hypervisor + t.idle, s.cpus * elapsed() - all_late());
    }
}

static void sleeps_then_off(struct vcpu *v) {
    waited_before_start = v->sched.times[RUN_RUNNABLE];
    for (unsigned i = 0; i < 100; i++) {
        guest_run(v, i % 10 == 0 ? 3 * FAKE_SLICE : 100);
        guest_sleep(v, i == 50 ? 30000 : 1000);
    }
    guest_system_off(v);
}

/* A vCPU is in its guest or in an exit, whatever else its pCPU does meanwhile. */
static void exit_times_add_up(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 2, .limit = FAKE_SECOND};
    uint64_t total = 0;

    (void)state;
    s.vm[0] = (struct fake_vm){.program = sleeps_then_off, .vcpus = 1};
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
    expect_run(&s, FAKE_LIMIT);
    const struct vcpu *v = vms[0]->vcpus[0];

    assert_int_equal(vms[0]->state, VM_OFF);
    for (unsigned r = 0; r < EXIT_REASONS; r++) {
        total += v->exits[r].total;
        assert_true(v->exits[r].max <= v->exits[r].total);
        assert_true(v->exits[r].count == 0 ||
                    v->exits[r].max >= v->exits[r].total / v->exits[r].count);
    }
    /* the time in which its VM was scrubbed after the last exit is no part of an exit */
    uint64_t waiting = v->sched.times[RUN_RUNNABLE] - waited_before_start;
    assert_in_range(total, v->sched.times[RUN_BLOCKED] + waiting - 2 * FAKE_SLICE,
                    v->sched.times[RUN_BLOCKED] + waiting);
    assert_int_equal(v->exits[EXIT_WFI].count, 100);
    assert_in_range(v->exits[EXIT_WFI].max, 30000, 30000 + FAKE_SLICE);
    assert_in_range(v->exits[EXIT_WFI].total, 99 * 1000 + 30000,
                    99 * 1000 + 30000 + 100 * FAKE_SLICE);
    assert_int_equal(v->exits[EXIT_HVC].count,
                     1); /* SYSTEM_OFF: ended, though never entered again */
    assert_in_range(v->sched.longest_wait, 1, 2 * FAKE_SLICE);
}

/* Another pCPU reads while the first one sleeps, and while it is in its guest. */
static void look_at_other(uint64_t cpu) {
    reported_idle = stats_cpu_times(pcpus[cpu]).idle;
}

static void look_later(void) {
    fake_at(fake_started() + 10500, 1, look_at_other, 0);
}

static void sleeps_long(struct vcpu *v) {
    guest_run(v, 500);
    guest_sleep(v, 900000);
}

static void open_waits_count(void **state) {
    struct fake_setup s = {.cpus = 2, .vms = 2, .limit = FAKE_SECOND / 50};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = sleeps_long, .vcpus = 1, .cpus = 1};
    s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1, .cpus = 2};
    fake_prepare = look_later;
    expect_run(&s, FAKE_LIMIT);
    fake_prepare = NULL;
    assert_in_range(reported_idle, 9800, 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(pcpu_times_add_up, free_machine),
        cmocka_unit_test_teardown(exit_times_add_up, free_machine),
        cmocka_unit_test_teardown(open_waits_count, free_machine),
    };

    choose_test();
    return cmocka_run_group_tests_name("hyp_counters", tests, NULL, NULL);
}
