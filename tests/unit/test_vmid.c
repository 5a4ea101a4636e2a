/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/vmid.c */
/*
 * Ids for more VMs than there are numbers: random histories against TLBs that forget nothing by
 * themselves, limits, pins, and what a roll-over keeps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/vmid.h"

#define CPUS 16u
#define VMS  64u
#define NONE UINT32_MAX

uint64_t port_clock(void) {
    return 0;
}

void port_kick_cpu(unsigned cpu) {
    (void)cpu;
    fail_msg("a CPU was forced out of its guest");
}

unsigned port_this_cpu(void) {
    return 0;
}

void port_relax(void) {
    fail_msg("one thread only, and it waits for a lock");
}

/* What a translation belongs to: the VM's number here and which of its lives; 0: there is none. */
static uint32_t tlb[CPUS][1u << VMID_BITS_MAX];
static struct vmid_space space;
static struct vmid_cpu cpus[CPUS];
static struct vmid vms[VMS];
static uint32_t life[VMS], inside[CPUS], number_on[CPUS], pinned_number[VMS], pins[VMS];
static uint32_t cpu_count, vm_count, pinned_vms;
static uint64_t seed;

static uint32_t roll(uint32_t limit) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % limit;
}

static void begin(unsigned bits, unsigned n_cpus, unsigned n_vms) {
    memset(tlb, 0, sizeof(tlb));
    memset(vms, 0, sizeof(vms));
    memset(life, 0, sizeof(life));
    memset(pins, 0, sizeof(pins));
    memset(&space, 0xa5, sizeof(space));
    cpu_count = n_cpus;
    vm_count = n_vms;
    pinned_vms = 0;
    assert_true(vmid_init(&space, bits, n_cpus));
    for (unsigned i = 0; i < n_cpus; i++) {
        memset(tlb[i], 0xff, sizeof(tlb[i])); /* what was in there before us */
        vmid_add_cpu(&space, &cpus[i]);
        inside[i] = NONE;
    }
}

/* Everyone inside has the number that all vCPUs of its VM have, and nobody else has it. */
static void check_inside(void) {
    for (unsigned a = 0; a < cpu_count; a++) {
        for (unsigned b = 0; b < cpu_count; b++) {
            if (inside[a] != NONE && inside[b] != NONE) {
                assert_int_equal(inside[a] == inside[b], number_on[a] == number_on[b]);
            }
        }
    }
}

static uint32_t enter(unsigned cpu, unsigned vm) {
    uint32_t answer = vmid_enter(&space, &cpus[cpu], &vms[vm]);
    uint32_t number = answer & VMID_NUMBER, mine = vm << 16 | (life[vm] + 1);

    assert_in_range(number, 1, space.numbers - 1);
    assert_int_equal(answer & ~(VMID_NUMBER | VMID_FLUSH), 0);
    if ((answer & VMID_FLUSH) != 0) {
        memset(tlb[cpu], 0, sizeof(tlb[cpu][0]) * space.numbers);
    }
    if (tlb[cpu][number] != 0) {
        assert_int_equal(tlb[cpu][number], mine);
    }
    tlb[cpu][number] = mine;
    if (pins[vm] != 0) {
        assert_int_equal(number, pinned_number[vm]);
    }
    inside[cpu] = vm;
    number_on[cpu] = number;
    check_inside();
    return number;
}

static void leave(unsigned cpu) {
    inside[cpu] = NONE;
    vmid_leave(&cpus[cpu]);
}

static bool is_inside(unsigned vm) {
    for (unsigned i = 0; i < cpu_count; i++) {
        if (inside[i] == vm) {
            return true;
        }
    }
    return false;
}

static void end(unsigned vm) {
    if (!is_inside(vm)) {
        bool forgotten = vmid_forget(&space, &vms[vm]);
        assert_int_equal(forgotten, pins[vm] == 0);
        if (!forgotten) { /* as the caller must */
            for (unsigned i = 0; i < cpu_count; i++) {
                tlb[i][pinned_number[vm]] = 0;
            }
        }
        life[vm]++;
    }
}

static void pin(unsigned vm) {
    uint32_t number = vmid_pin(&space, &vms[vm]);

    if (pins[vm] == 0 && pinned_vms == vmid_pin_limit(&space)) {
        assert_int_equal(number, 0);
        return;
    }
    assert_in_range(number, 1, space.numbers - 1);
    if (pins[vm]++ != 0) {
        assert_int_equal(number, pinned_number[vm]);
    } else {
        pinned_number[vm] = number;
        pinned_vms++;
    }
    for (unsigned i = 0; i < cpu_count; i++) {
        assert_true(inside[i] != vm || number_on[i] == number);
    }
}

static void unpin(unsigned vm) {
    if (pins[vm] != 0) {
        vmid_unpin(&space, &vms[vm]);
        pinned_vms -= --pins[vm] == 0;
    }
}

/* ---- Random histories ---- */

static void history(unsigned bits, unsigned n_cpus, unsigned n_vms, unsigned steps) {
    begin(bits, n_cpus, n_vms);
    for (unsigned i = 0; i < steps; i++) {
        unsigned cpu = roll(n_cpus), vm = roll(n_vms);
        switch (roll(24)) {
        case 0:
            end(vm);
            break;
        case 1:
            pin(vm);
            break;
        case 2:
        case 3:
            unpin(vm);
            break;
        case 4:
        case 5:
        case 6:
        case 7:
            leave(cpu);
            break;
        case 8: /* out, and somebody else comes, or nobody has said so yet */
            inside[cpu] = NONE;
            break;
        case 9: /* the same VM again: its sibling, or after an interrupt */
            if (inside[cpu] != NONE) {
                enter(cpu, inside[cpu]);
            }
            break;
        default:
            enter(cpu, vm);
        }
    }
}

static void random_histories(void **state) {
    (void)state;
    for (seed = 1; seed <= 20; seed++) {
        uint64_t keep = seed;
        history(4, 1 + roll(14), VMS, 20000);
        assert_true(vmid_rollovers(&space) > 100);
        history(4, 14, 15 + roll(40), 20000);
        history(5, 8, VMS, 20000);
        history(8, CPUS, VMS, 20000);
        seed = keep;
    }
}

static void histories_with_wide_numbers(void **state) {
    (void)state;
    seed = 7;
    history(16, 3, VMS, 600000);
    begin(16, 3, VMS);
    for (unsigned i = 0; i < 3 * 65536; i++) { /* each life burns a number */
        enter(roll(3), i % VMS);
        leave(0);
        leave(1);
        leave(2);
        end(i % VMS);
    }
    assert_int_equal(vmid_rollovers(&space), 3);
}

/* ---- Limits ---- */

static void needs_a_number_for_each_cpu(void **state) {
    static const struct {
        unsigned bits, cpus;
        bool good;
    } cases[] = {{3, 1, false},   {4, 0, false},   {4, 1, true},    {4, 14, true},
                 {4, 15, false},  {4, 16, false},  {5, 30, true},   {5, 31, false},
                 {7, 126, true},  {7, 127, false}, {7, 128, false}, {8, 128, true},
                 {8, 129, false}, {16, 128, true}, {17, 1, false},  {32, 1, false},
                 {16, 129, false}};

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(vmid_init(&space, cases[i].bits, cases[i].cpus), cases[i].good);
    }
}

static void pins_have_a_limit(void **state) {
    (void)state;
    for (unsigned n = 1; n <= 14; n++) {
        begin(4, n, VMS);
        assert_int_equal(vmid_pin_limit(&space), 16 - n - 2);
        for (unsigned vm = 0; vm < 16 - n - 2; vm++) {
            assert_int_not_equal(vmid_pin(&space, &vms[vm]), 0);
        }
        assert_int_equal(vmid_pin(&space, &vms[20]), 0);
        assert_int_equal(vms[20].pins, 0);
        if (n < 14) { /* one that is pinned may be pinned again, and counts once */
            assert_int_not_equal(vmid_pin(&space, &vms[0]), 0);
            vmid_unpin(&space, &vms[0]);
            assert_int_equal(vmid_pin(&space, &vms[20]), 0);
            vmid_unpin(&space, &vms[0]);
            assert_int_not_equal(vmid_pin(&space, &vms[20]), 0);
        }
    }
}

/* Every CPU has a VM, as many as can be are pinned, and still everybody else gets in. */
static void a_roll_over_leaves_room(void **state) {
    (void)state;
    for (unsigned n = 1; n <= 14; n++) {
        begin(4, n, VMS);
        for (unsigned vm = 0; vm < vmid_pin_limit(&space); vm++) {
            pin(VMS - 1 - vm);
        }
        for (unsigned i = 0; i < 4000; i++) {
            enter(i % n, i % (VMS - 16)); /* nobody ever leaves but for another */
        }
        for (unsigned i = 0; i < 4000; i++) {
            enter(roll(n), roll(VMS));
        }
        assert_true(vmid_rollovers(&space) > 100);
    }
}

/* ---- What is kept, and what is not ---- */

/* VMs that get in on CPU `cpu` one after the other until somebody rolls over. */
static unsigned fill(unsigned cpu, unsigned first_vm) {
    uint64_t before = vmid_rollovers(&space);
    unsigned count = 0;

    while (vmid_rollovers(&space) == before) {
        enter(cpu, first_vm + count++);
    }
    return count - 1; /* the last of them belongs to the next generation */
}

static void the_running_keep_their_number(void **state) {
    uint32_t numbers[8];

    (void)state;
    begin(4, 9, VMS);
    for (unsigned i = 0; i < 8; i++) {
        numbers[i] = enter(i, i);
    }
    for (unsigned round = 0; round < 50; round++) {
        fill(8, 10);
        for (unsigned i = 0; i < 8; i++) {
            assert_int_equal(vms[i].id & VMID_NUMBER, numbers[i]);
        }
    }
    /* The sibling of one of them, after all that time, on another CPU. */
    assert_int_equal(enter(8, 3), numbers[3]);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(cpus[i].slow, 1); /* nobody else had to do anything */
    }
}

/* A CPU that was left, before or after a roll-over, keeps nothing for anybody. */
static void the_idle_keep_nothing(void **state) {
    (void)state;
    begin(4, 9, VMS);
    fill(8, 10);
    assert_int_equal(fill(8, 40), 14); /* 15 numbers, of which the roll-over gave out one */
    for (unsigned i = 0; i < 8; i++) {
        enter(i, i);
    }
    fill(8, 10);
    assert_int_equal(fill(8, 40), 6); /* eight are kept */
    for (unsigned i = 0; i < 4; i++) {
        leave(i); /* marked by the last roll-over */
    }
    fill(8, 10);
    assert_int_equal(fill(8, 40), 10);
    for (unsigned i = 4; i < 8; i++) {
        enter(i, i);
        leave(i); /* not marked */
    }
    fill(8, 10);
    assert_int_equal(fill(8, 40), 14);
}

/* One flush for each CPU and roll-over, at its next entry of another VM, and not before. */
static void flushes_are_counted(void **state) {
    uint64_t flushes;

    (void)state;
    begin(4, 2, VMS);
    enter(0, 0);
    assert_int_equal(cpus[0].flushes, 1); /* what was there before us */
    fill(1, 10);
    fill(1, 10);
    flushes = cpus[1].flushes;
    assert_int_equal(flushes, 3);
    assert_int_equal(cpus[0].flushes, 1);
    enter(0, 0);
    assert_int_equal(cpus[0].flushes, 2); /* for two roll-overs */
    enter(0, 1);
    leave(0);
    enter(0, 0);
    assert_int_equal(cpus[0].flushes, 2);
    assert_int_equal(cpus[1].flushes, flushes);
}

static void the_fast_path_is_taken(void **state) {
    (void)state;
    begin(8, 4, VMS);
    for (unsigned vm = 0; vm < VMS; vm++) {
        enter(0, vm);
    }
    for (unsigned cpu = 1; cpu < 4; cpu++) {
        enter(cpu, 0);
    }
    spin_lock(&space.lock); /* whoever wants it now waits, and port_relax() fails */
    for (unsigned i = 0; i < 1000; i++) {
        unsigned cpu = i % 4;
        enter(cpu, roll(VMS));
        if (i % 3 == 0) {
            leave(cpu);
        }
    }
    spin_unlock(&space.lock);
    assert_int_equal(cpus[0].slow, VMS);
    assert_int_equal(cpus[1].slow, 1);
}

/* A VM that begins anew has no old number, whoever still remembers it. */
static void forgotten_is_forgotten(void **state) {
    uint32_t before;

    (void)state;
    begin(4, 3, VMS);
    enter(0, 5);
    enter(1, 5);
    inside[0] = inside[1] = NONE; /* out of the guest, but nobody has said so */
    end(5);
    fill(2, 10); /* a roll-over finds it nowhere */
    fill(2, 10);
    assert_int_equal(vms[5].id, 0);
    enter(0, 5);
    begin(4, 3, VMS);
    before = enter(0, 5);
    inside[0] = NONE;
    end(5);
    assert_int_not_equal(enter(0, 5), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories),
        cmocka_unit_test(histories_with_wide_numbers),
        cmocka_unit_test(needs_a_number_for_each_cpu),
        cmocka_unit_test(pins_have_a_limit),
        cmocka_unit_test(a_roll_over_leaves_room),
        cmocka_unit_test(the_running_keep_their_number),
        cmocka_unit_test(the_idle_keep_nothing),
        cmocka_unit_test(flushes_are_counted),
        cmocka_unit_test(the_fast_path_is_taken),
        cmocka_unit_test(forgotten_is_forgotten),
    };

    if (getenv("FAKE_ONLY") != NULL) {
        cmocka_set_test_filter(getenv("FAKE_ONLY"));
    }
    return cmocka_run_group_tests_name("vmid", tests, NULL, NULL);
}
