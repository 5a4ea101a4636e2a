/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* link: core/pvlock.c core/steal.c */
/*
 * Translations that outlive their owner: the real switch and reset code over a TLB that forgets
 * nothing by itself. A stale entry that is used is a fault of the machine (fake_faults()).
 */
#include "arch/fake/expect.h"

#define ROUNDS 60u

static void touch_all(struct vcpu *v) {
    for (unsigned page = 0; page < FAKE_PAGES; page++) {
        guest_access(v, page);
    }
}

/* Each vCPU has tables of its own under the same ASID, and looks at all pages in short turns. */
static void private_tables(struct vcpu *v) {
    guest_use_space(v, v->index);
    for (unsigned i = 0; i < ROUNDS; i++) {
        touch_all(v);
        guest_run(v, 700);
        if (i % 8 == 7) {
            guest_sleep(v, 300);
        }
    }
}

static void boot_private_tables(struct vcpu *v) {
    for (unsigned i = 1; i < v->vm->config->vcpus; i++) {
        guest_cpu_on(v, i, private_tables, 0);
    }
    private_tables(v);
    guest_sleep(v, 400000);
    guest_system_off(v);
}

/* Siblings of one VM in turn on one pCPU, each with another translation of the same address. */
static void siblings_share_a_cpu(void **state) {
    struct fake_setup s = {
        .cpus = 1, .vms = 1, .vm = {{.program = boot_private_tables, .vcpus = 4}}};

    (void)state;
    expect_run(&s, FAKE_OFF);
    assert_true(vms[0]->vcpus[1]->sibling_flushes > ROUNDS / 4);
}

/* The same with two VMs, so that siblings follow each other with a stranger between them. */
static void siblings_and_strangers(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 3, .seed = seed, .noise = 60, .vms = 2};
        s.vm[0] = (struct fake_vm){.program = boot_private_tables, .vcpus = 3};
        s.vm[1] = (struct fake_vm){.program = boot_private_tables, .vcpus = 4};
        expect_run(&s, FAKE_OFF);
    }
}

/* One vCPU with a pCPU for itself has nobody's leavings to flush. */
static void alone_needs_no_flush(void **state) {
    struct fake_setup s = {
        .cpus = 1, .vms = 1, .vm = {{.program = boot_private_tables, .vcpus = 1}}};

    (void)state;
    expect_run(&s, FAKE_OFF);
    assert_int_equal(vms[0]->vcpus[0]->sibling_flushes, 0);
    assert_int_equal(vms[0]->vcpus[0]->sibling_skips, 1);
}

/* ---- A local invalidate, and then another pCPU ---- */

/*
 * Changes a page of its own tables and invalidates it as Linux does not but an unaware kernel may:
 * on this CPU only. It sleeps in between, and comes back on whatever pCPU is free.
 */
static void local_invalidates(struct vcpu *v) {
    guest_use_space(v, v->index);
    for (uint32_t i = 0; i < 4 * ROUNDS; i++) {
        unsigned page = i % FAKE_PAGES;
        guest_access(v, page);
        guest_access(v, (page + 1) % FAKE_PAGES);
        guest_map(v, v->index, page, (i * 5 + 3) % FAKE_PAGES, GUEST_TLBI_LOCAL);
        guest_access(v, page);
        guest_run(v, 1 + fake_roll(300));
        guest_sleep(v, 1 + fake_roll(200));
        guest_access(v, page);
        if (i % 16 == 15) {
            guest_use_space(v, v->index + 8);
            guest_invalidate_all(v, GUEST_TLBI_LOCAL);
            touch_all(v);
            guest_use_space(v, v->index);
            guest_invalidate_all(v, GUEST_TLBI_LOCAL);
        }
    }
    guest_system_off(v);
}

static struct fake_setup migrating(uint64_t seed) {
    struct fake_setup s = {
        .cpus = 3, .seed = seed, .noise = 80, .vms = 6, .limit = 5 * FAKE_SECOND};

    for (unsigned i = 0; i < s.vms; i++) {
        s.vm[i] = (struct fake_vm){.program = i < 5 ? local_invalidates : guest_spins, .vcpus = 1};
    }
    return s;
}

static void local_invalidate_then_migration(void **state) {
    uint64_t migrations = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct fake_setup s = migrating(seed);
        expect_run(&s, FAKE_LIMIT);
        migrations += vms[0]->vcpus[0]->sched.migrations;
    }
    assert_true(migrations > 500);
}

/* The model itself: on hardware without the broadcast the same guests do find stale entries. */
static void without_broadcast_it_fails(void **state) {
    struct fake_setup s = migrating(1);

    (void)state;
    fake_broken.no_broadcast = true;
    fake_run(&s);
    fake_broken.no_broadcast = false;
    assert_true(fake_faults() != 0);
}

/* ---- A VM that starts again ---- */

static void touches_and_idles(struct vcpu *v) {
    guest_use_space(v, v->index);
    touch_all(v);
    guest_idles(v);
}

/* Its new life has other tables, made before any invalidate; on each pCPU where it was. */
static void reset_three_times(struct vcpu *v) {
    touch_all(v);
    guest_cpu_on(v, 1, touches_and_idles, 0);
    guest_run(v, 2500);
    touch_all(v);
    if (v->vm->arch.loads < 4) {
        guest_system_reset(v);
    }
    guest_system_off(v);
}

static void restarted_vm_finds_nothing_old(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed <= 30; seed++) {
        struct fake_setup s = {.cpus = 2, .seed = seed};
        s.noise = seed == 0 ? 0 : 40;
        /* Alone, vCPUs often come back to the pCPU where they were. */
        s.vms = seed % 3 == 0 ? 1 : 2;
        s.vm[0] = (struct fake_vm){.program = reset_three_times, .vcpus = 2};
        s.vm[1] = (struct fake_vm){.program = boot_private_tables, .vcpus = 2};
        expect_run(&s, FAKE_OFF);
        assert_int_equal(vms[0]->arch.loads, 4);
    }
}

/* ---- Several VMs ---- */

static void vmids_are_unique(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = FAKE_VMS};

    (void)state;
    for (unsigned i = 0; i < FAKE_VMS; i++) {
        s.vm[i] = (struct fake_vm){.program = boot_private_tables, .vcpus = 1};
    }
    expect_run(&s, FAKE_OFF);
    for (unsigned i = 0; i < FAKE_VMS; i++) {
        assert_int_not_equal(vms[i]->arch.vmid, 0);
        for (unsigned n = 0; n < i; n++) {
            assert_int_not_equal(vms[i]->arch.vmid, vms[n]->arch.vmid);
        }
    }
}

static void with_one_vmid_it_fails(void **state) {
    struct fake_setup s = {.cpus = 1, .vms = 2};

    (void)state;
    s.vm[0] = s.vm[1] = (struct fake_vm){.program = boot_private_tables, .vcpus = 1};
    fake_broken.same_vmid = true;
    fake_run(&s);
    fake_broken.same_vmid = false;
    assert_true(fake_faults() != 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(siblings_share_a_cpu),
        cmocka_unit_test(siblings_and_strangers),
        cmocka_unit_test(alone_needs_no_flush),
        cmocka_unit_test(local_invalidate_then_migration),
        cmocka_unit_test(without_broadcast_it_fails),
        cmocka_unit_test(restarted_vm_finds_nothing_old),
        cmocka_unit_test(vmids_are_unique),
        cmocka_unit_test(with_one_vmid_it_fails),
    };

    choose_test();
    return cmocka_run_group_tests_name("tlb", tests, NULL, free_machine);
}
