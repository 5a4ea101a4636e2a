/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: core/pvlock.c core/steal.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/*
 * The preempted flag in whole machines: what a record says at any moment, kicks, pauses, the end of
 * VMs. That no vCPU runs with its flag set is checked at each entry, in every test of this machine.
 */
#include "arch/fake/expect.h"
#include "core/sched_queue.h"

#define VCPUS   6u
#define PATTERN 0x5a5a5a5au

static struct flags { _Alignas(64) struct pvsched_record record[VCPUS]; } flags[FAKE_VMS];

static unsigned inspections, lives, kicked;

static struct pvsched_record *own_record(const struct vcpu *v) {
    return &flags[v->vm->index].record[v->index];
}

/* ---- At any moment ---- */

/* Nobody changes the state of a vCPU while we hold the lock of its queue: its flag must agree. */
static void inspect_vcpu(struct vcpu *v) {
    struct sched_entity *e = &v->sched;
    struct run_queue *q = sched_lock_queue_of(e);

    if (e->pvlock.record != NULL) {
        uint32_t flag = *(uint32_t *)e->pvlock.record;
        bool blocked_counts = v->vm->index % 2 == 1;

        if (flag != (e->state != RUN_RUNNING && (e->state != RUN_BLOCKED || blocked_counts))) {
            fake_fault("vm %u vcpu %u: flag %u in state %u", v->vm->index, v->index, flag,
                       e->state);
        }
        inspections++;
    }
    spin_unlock(&q->lock);
}

static void inspect(uint64_t cpu) {
    for (unsigned i = 0; i < vm_count; i++) {
        for (unsigned n = 0; n < vms[i]->config->vcpus; n++) {
            inspect_vcpu(vms[i]->vcpus[n]);
        }
    }
    fake_at(guest_clock() + 1 + fake_roll(60), (unsigned)cpu, inspect, cpu);
}

static void prepare(void) {
    for (unsigned i = 0; i < vm_count; i++) {
        for (unsigned n = 0; n < vms[i]->config->vcpus; n++) {
            pvlock_init(&vms[i]->vcpus[n]->sched.pvlock, i % 2 == 1);
        }
    }
    inspect(0);
}

static void anything(struct vcpu *v) {
    unsigned vcpus = v->vm->config->vcpus;

    for (;;) {
        switch (fake_roll(12)) {
        case 0:
            guest_sleep(v, fake_roll(500));
            break;
        case 1:
            guest_wfe(v);
            break;
        case 2:
            guest_kick(v, fake_roll(vcpus));
            break;
        case 3:
            guest_cpu_on(v, fake_roll(vcpus), anything, 0);
            break;
        case 4:
            if (v->index != 0 && fake_roll(4) == 0) {
                return;
            }
            break;
        case 5:
        case 6:
            guest_flag(v, fake_roll(8) == 0 ? NULL : own_record(v));
            break;
        case 7:
            if (v->index == 0 && fake_roll(30) == 0) {
                guest_system_reset(v);
            }
            break;
        default:
            guest_run(v, fake_roll(300));
        }
    }
}

static void pause_or_resume(uint64_t vm) {
    if (!vm_pause(vms[vm])) {
        (void)vm_resume(vms[vm]);
    }
    fake_at(guest_clock() + 1 + fake_roll(3000), fake_roll(pcpu_count), pause_or_resume, vm);
}

static void prepare_with_pauses(void) {
    prepare();
    pause_or_resume(0);
}

/* P04 */
static void flags_agree_at_any_moment(void **state) {
    (void)state;
    inspections = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 4, .seed = seed, .slice = 200};
        s.limit = 60000;
        s.noise = 3 + (unsigned)seed % 30;
        s.vms = 1 + (unsigned)seed % 3;
        for (unsigned i = 0; i < s.vms; i++) {
            s.vm[i] =
                (struct fake_vm){.program = anything, .vcpus = 1 + (unsigned)(seed + i) % VCPUS};
        }
        fake_prepare = seed % 2 == 0 ? prepare_with_pauses : prepare;
        expect_run(&s, FAKE_LIMIT);
    }
    fake_prepare = NULL;
    assert_true(inspections > 10000);
}

/* ---- Pauses ---- */

static void spins_with_flag(struct vcpu *v) {
    guest_flag(v, own_record(v));
    guest_spins(v);
}

static void waits_with_flag(struct vcpu *v) {
    guest_flag(v, own_record(v));
    guest_idles(v);
}

static void boots_spinner_and_waiter(struct vcpu *v) {
    guest_cpu_on(v, 1, spins_with_flag, 0);
    guest_cpu_on(v, 2, waits_with_flag, 0);
    spins_with_flag(v);
}

static void pause_now(uint64_t vm) {
    (void)vm_pause(vms[vm]);
}

static void look_at_paused(uint64_t vm) {
    for (unsigned n = 0; n < 3; n++) {
        if (flags[vm].record[n].preempted == 0) {
            fake_fault("vcpu %u of a paused VM seems to run", n);
        }
    }
    if (!vm_resume(vms[vm])) {
        fake_fault("it was not paused");
    }
}

static void prepare_pause(void) {
    fake_at(guest_clock() + 20000, 0, pause_now, 0);
    fake_at(guest_clock() + 25000, 0, look_at_paused, 0);
}

/* P04: within a slice of the pause all say so, waiting ones too; they go on with 0. */
static void paused_ones_do_not_run(void **state) {
    (void)state;
    for (unsigned cpus = 1; cpus <= 3; cpus++) {
        struct fake_setup s = {.cpus = cpus, .vms = 1, .limit = 40000};
        s.vm[0] = (struct fake_vm){.program = boots_spinner_and_waiter, .vcpus = 3};
        fake_prepare = prepare_pause;
        expect_run(&s, FAKE_LIMIT);
        fake_prepare = NULL;
        unsigned running = 0;
        for (unsigned n = 0; n < 2; n++) {
            running += flags[0].record[n].preempted == 0;
        }
        assert_int_equal(running, cpus < 2 ? cpus : 2);
    }
}

/* ---- The end of a VM ---- */

static void runs_without_flag(struct vcpu *v) {
    for (unsigned i = 0; i < 50; i++) {
        guest_run(v, 50);
        guest_sleep(v, 50);
    }
    guest_cpu_off(v);
}

/* Its first life leaves records in its memory, its second one uses that for something else. */
static void lives_twice(struct vcpu *v) {
    if (++lives == 1) {
        for (unsigned i = 1; i < VCPUS; i++) {
            guest_cpu_on(v, i, i % 2 == 0 ? spins_with_flag : waits_with_flag, 0);
        }
        guest_flag(v, own_record(v));
        guest_run(v, 3000 + fake_roll(1000));
        guest_system_reset(v);
    }
    for (unsigned i = 0; i < VCPUS; i++) {
        flags[0].record[i].preempted = PATTERN;
    }
    for (unsigned i = 1; i < VCPUS; i++) {
        guest_cpu_on(v, i, runs_without_flag, 0);
    }
    guest_sleep(v, 40000);
    for (unsigned i = 0; i < VCPUS; i++) {
        if (flags[0].record[i].preempted != PATTERN) {
            fake_fault("vcpu %u: a record of its last life is written", i);
        }
    }
    guest_system_off(v);
}

/* S03, P06 */
static void nobody_writes_to_old_records(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 3, .seed = seed, .vms = 1};
        s.noise = 3 + (unsigned)seed % 30;
        s.vm[0] = (struct fake_vm){.program = lives_twice, .vcpus = VCPUS};
        lives = 0;
        expect_run(&s, FAKE_OFF);
        assert_int_equal(lives, 2);
        assert_int_equal(core_watch, 0);
    }
}

/* One that goes off has no record any more, also when it comes back. */
static void has_flag_and_goes_off(struct vcpu *v) {
    guest_flag(v, own_record(v));
    guest_run(v, 500);
    guest_cpu_off(v);
}

static void starts_one_twice(struct vcpu *v) {
    uint32_t *flag = &own_record(v->vm->vcpus[1])->preempted;

    guest_cpu_on(v, 1, has_flag_and_goes_off, 0);
    guest_sleep(v, 10000);
    if (*flag != 0) {
        fake_fault("its record was written after its last life");
    }
    *flag = PATTERN;
    guest_cpu_on(v, 1, runs_without_flag, 0);
    guest_sleep(v, 20000);
    if (*flag != PATTERN) {
        fake_fault("it was not asked to use its record");
    }
    guest_system_off(v);
}

static void off_gives_the_record_back(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 1};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = starts_one_twice, .vcpus = 2};
    expect_run(&s, FAKE_OFF);
    assert_int_equal(core_watch, 0);
}

/* ---- Kicks ---- */

static bool turn[VCPUS];

/* A ring: each waits for its turn without any timer or interrupt. A lost kick ends it all. */
static void passes_on(struct vcpu *v) {
    unsigned next = (v->index + 1) % v->vm->config->vcpus;

    for (;;) {
        while (!turn[v->index]) {
            guest_wfi(v);
        }
        turn[v->index] = false;
        kicked++;
        guest_run(v, fake_roll(3));
        turn[next] = true;
        guest_kick(v, next);
    }
}

static void kick_ring(struct vcpu *v) {
    for (unsigned i = 1; i < v->vm->config->vcpus; i++) {
        guest_cpu_on(v, i, passes_on, 0);
    }
    turn[0] = true;
    passes_on(v);
}

static void kick_is_never_lost(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 4, .seed = seed, .vms = 1};
        s.limit = 200000;
        s.noise = 3 + (unsigned)seed % 30;
        s.vm[0] = (struct fake_vm){.program = kick_ring, .vcpus = 1 + (unsigned)seed % VCPUS};
        memset(turn, 0, sizeof(turn));
        kicked = 0;
        expect_run(&s, FAKE_LIMIT);
        assert_true(kicked > 1000);
    }
}

static unsigned wakes, waiter;
static bool counting;

/* Both come out of the same wait at the same tick; vCPU 0 goes first then. */
static void kicks_or_waits(struct vcpu *v) {
    guest_run(v, v->arch.arg - guest_clock());
    if (!counting) {
        counting = true;
        fake_explore_start();
    }
    if (v->index == waiter) {
        while (!turn[waiter]) {
            guest_wfi(v);
            wakes++;
        }
        kicked++;
    } else {
        turn[waiter] = true;
        guest_kick(v, waiter);
    }
    guest_run(v, 3000);
    if (v->index == 0) {
        fake_explore_stop();
        guest_system_off(v);
    }
}

static void boot_two(struct vcpu *v) {
    v->arch.arg = guest_clock() + 5000;
    guest_cpu_on(v, 1, kicks_or_waits, v->arch.arg);
    kicks_or_waits(v);
}

/* All runs in which kicker and waiter are interrupted at most twice, after any step. */
static void every_interleaving_of_kick_and_wait(void **state) {
    struct fake_setup s = {.cpus = 2, .vms = 1, .vm = {{.program = boot_two, .vcpus = 2}}};
    unsigned at[2], steps, runs = 0, waits = 0;

    (void)state;
    for (waiter = 0; waiter < 2; waiter++) {
        steps = 200;
        for (at[0] = 0; at[0] < steps; at[0]++) {
            for (at[1] = at[0] + 1; at[1] <= steps; at[1]++) {
                memset(turn, 0, sizeof(turn));
                kicked = wakes = 0;
                counting = false;
                fake_explore(at, 2);
                expect_run(&s, FAKE_OFF);
                if (kicked != 1 || wakes > 1) {
                    fail_msg("turns at %u, %u: %u woke, %u waits", at[0], at[1], kicked, wakes);
                }
                waits += wakes;
                if (fake_explore_steps() < steps) {
                    steps = fake_explore_steps();
                }
                runs++;
            }
        }
    }
    fake_explore(NULL, 0);
    assert_true(runs > 300 && waits > 50);
}

/* A kick of one that waits is over with that wait: the next wait lasts. */
static void waits_again(struct vcpu *v) {
    while (!turn[1]) {
        guest_wfi(v);
        wakes++;
    }
    v->arch.masked = true;
    for (;;) {
        guest_wfi(v);
        wakes++;
    }
}

static void kicks_a_sleeper(struct vcpu *v) {
    guest_cpu_on(v, 1, waits_again, 0);
    guest_sleep(v, 5000);
    turn[1] = true;
    guest_kick(v, 1);
    guest_sleep(v, 5000);
    if (wakes != 1) {
        fake_fault("one kick ended %u waits", wakes);
    }
    guest_system_off(v);
}

static void a_kick_ends_one_wait(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 1};

    (void)state;
    memset(turn, 0, sizeof(turn));
    wakes = 0;
    s.vm[0] = (struct fake_vm){.program = kicks_a_sleeper, .vcpus = 2};
    expect_run(&s, FAKE_OFF);
}

/* Paused between its look and its wait, and kicked meanwhile: the wait ends. */
static void looks_then_waits(struct vcpu *v) {
    guest_run(v, 10000); /* it has looked; the pause and the kick come in here */
    guest_wfi(v);
    wakes++;
    guest_system_off(v);
}

static bool kick_first;

static void kick_it(uint64_t arg) {
    (void)arg;
    sched_kick(&vms[0]->vcpus[0]->sched);
}

static void resume_now(uint64_t vm) {
    (void)vm_resume(vms[vm]);
}

static void prepare_kick_in_pause(void) {
    fake_at(guest_clock() + 2000 + 2000 * kick_first, 0, pause_now, 0);
    fake_at(guest_clock() + 3000, 0, kick_it, 0);
    fake_at(guest_clock() + 7000, 0, resume_now, 0);
}

static void kick_survives_a_pause(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 1};

    (void)state;
    s.vm[0] = (struct fake_vm){.program = looks_then_waits, .vcpus = 1};
    fake_prepare = prepare_kick_in_pause;
    for (unsigned n = 0; n < 2; n++) {
        kick_first = n == 0;
        wakes = 0;
        expect_run(&s, FAKE_OFF);
        assert_int_equal(wakes, 1);
    }
    fake_prepare = NULL;
}

/* S03: a clock that stands does so while nothing is stolen, whenever in its neighbour's turn the
 * pause came. */
static uint64_t pause_at;

static void pause_with_clock(uint64_t vm) {
    vms[vm]->clock_stands = true;
    (void)vm_pause(vms[vm]);
}

static void resume_again(uint64_t vm) {
    if (vms[vm]->paused && !vm_resume(vms[vm])) {
        fake_at(guest_clock() + 1, 0, resume_again, vm);
    }
}

static void prepare_clock(void) {
    fake_at(guest_clock() + pause_at, 0, pause_with_clock, 0);
    fake_at(guest_clock() + pause_at + 30000, 0, resume_again, 0);
}

static void waits_then_spins(struct vcpu *v) {
    guest_sleep(v, 19000);
    guest_spins(v);
}

static void clock_stands_while_all_are_off(void **state) {
    (void)state;
    fake_prepare = prepare_clock;
    for (pause_at = 18000; pause_at < 18000 + 3 * FAKE_SLICE; pause_at += 501) {
        struct fake_setup s = {.cpus = 1, .vms = 2, .limit = 90000};
        const struct sched_entity *e;

        s.vm[0] = (struct fake_vm){.program = waits_then_spins, .vcpus = 1};
        s.vm[1] = (struct fake_vm){.program = guest_spins, .vcpus = 1};
        expect_run(&s, FAKE_LIMIT);
        e = &vms[0]->vcpus[0]->sched;
        assert_in_range(vms[0]->arch.stood, 20000, time_in(vms[0]->vcpus[0], RUN_OFF));
        assert_true(e->times[RUN_RUNNABLE] > FAKE_SLICE / 2);
    }
    fake_prepare = NULL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flags_agree_at_any_moment),
        cmocka_unit_test(paused_ones_do_not_run),
        cmocka_unit_test(nobody_writes_to_old_records),
        cmocka_unit_test(off_gives_the_record_back),
        cmocka_unit_test(kick_is_never_lost),
        cmocka_unit_test(every_interleaving_of_kick_and_wait),
        cmocka_unit_test(a_kick_ends_one_wait),
        cmocka_unit_test(kick_survives_a_pause),
        cmocka_unit_test(clock_stands_while_all_are_off), /* S03 */
    };

    choose_test();
    return cmocka_run_group_tests_name("records", tests, NULL, free_machine);
}
