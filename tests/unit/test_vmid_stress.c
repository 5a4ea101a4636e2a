/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/vmid.c */
/*
 * Ids on real threads, one for each CPU, 4-bit numbers and more VMs than these: 10^7 entries (or
 * $VMID_ENTRIES), and VMs that begin anew and are pinned meanwhile. Made for the sanitizers as much
 * as for itself.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/vmid.h"

#define CPUS    8u
#define VMS     24u
#define NUMBERS 16u

struct cpu {
    struct vmid_cpu vmid;
    pthread_t thread;
    uint64_t random;
    uint64_t entries;
    uint64_t tlb[NUMBERS]; /* what it remembers: VM and life; 0: nothing */
    unsigned index;
};

/* How many of its vCPUs are in, and one more while it begins anew: nobody gets in then. */
#define ENDING (1u << 16)

struct vm {
    struct vmid vmid;
    uint32_t inside; /* atomic */
    uint64_t life;   /* written while ENDING only */
};

static struct vmid_space space;
static struct cpu cpus[CPUS];
static struct vm vms[VMS];
static uint32_t owner[NUMBERS]; /* atomic: VM << 16 | how many CPUs use the number for it */
static uint32_t faults;         /* atomic: a thread can't fail a test */
static uint64_t each;           /* entries of a thread */
static uint64_t pins;           /* atomic */

uint64_t port_clock(void) {
    return 0;
}

void port_kick_cpu(unsigned cpu) {
    (void)cpu;
    __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED); /* nobody is forced out */
}

unsigned port_this_cpu(void) {
    return 0;
}

/* Whom we wait for may need this CPU; but to ask for that each time costs more than the waiting. */
void port_relax(void) {
    static _Thread_local unsigned asked;

    if (++asked % 64 == 0) {
        sched_yield();
    }
}

static uint32_t roll(struct cpu *c, uint32_t limit) {
    c->random = c->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(c->random >> 33) % limit;
}

static void fault_unless(bool good) {
    if (!good) {
        __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
    }
}

static bool get_in(struct vm *vm) {
    uint32_t seen = __atomic_load_n(&vm->inside, __ATOMIC_RELAXED);

    return (seen & ENDING) == 0 && __atomic_compare_exchange_n(&vm->inside, &seen, seen + 1, false,
                                                               __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* This CPU uses the number for VM `vm` from now on: no other VM may. */
static void claim(uint32_t number, uint32_t vm) {
    uint32_t seen = __atomic_load_n(&owner[number], __ATOMIC_RELAXED), mine;

    do {
        bool free = (seen & 0xffffu) == 0;
        fault_unless(free || seen >> 16 == vm);
        mine = free ? vm << 16 | 1u : seen + 1;
    } while (!__atomic_compare_exchange_n(&owner[number], &seen, mine, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
}

/* A few turns of one VM's vCPUs, as long as nobody else comes: its number must not change. */
static void run(struct cpu *c, uint32_t which) {
    struct vm *vm = &vms[which];
    uint64_t mine = (uint64_t)which << 32 | (vm->life + 1);
    uint32_t claimed = 0;

    for (uint32_t turns = 1 + roll(c, 3); turns > 0; turns--) {
        uint32_t answer = vmid_enter(&space, &c->vmid, &vm->vmid), number = answer & VMID_NUMBER;
        c->entries++;
        fault_unless(number != 0 && number < NUMBERS && (claimed == 0 || number == claimed));
        if ((answer & VMID_FLUSH) != 0) {
            memset(c->tlb, 0, sizeof(c->tlb));
        }
        fault_unless(c->tlb[number % NUMBERS] == 0 || c->tlb[number % NUMBERS] == mine);
        c->tlb[number % NUMBERS] = mine;
        if (claimed == 0) {
            claimed = number % NUMBERS;
            claim(claimed, which);
        }
    }
    __atomic_sub_fetch(&owner[claimed], 1, __ATOMIC_RELAXED);
}

/* If nobody is in, it begins anew. */
static void end(struct vm *vm) {
    uint32_t nobody = 0;

    if (__atomic_compare_exchange_n(&vm->inside, &nobody, ENDING, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
        fault_unless(vmid_forget(&space, &vm->vmid));
        vm->life++;
        __atomic_store_n(&vm->inside, 0, __ATOMIC_RELEASE);
    }
}

/* The last three VMs are pinned now and then and never end. */
static void pin(struct cpu *c) {
    struct vm *vm = &vms[VMS - 1 - roll(c, 3)];
    uint32_t number = vmid_pin(&space, &vm->vmid);

    if (number != 0) {
        __atomic_add_fetch(&pins, 1, __ATOMIC_RELAXED);
        for (uint32_t i = roll(c, 20); i > 0; i--) {
            fault_unless((__atomic_load_n(&vm->vmid.id, __ATOMIC_RELAXED) & VMID_NUMBER) == number);
        }
        vmid_unpin(&space, &vm->vmid);
    }
}

static void *cpu_main(void *arg) {
    struct cpu *c = arg;

    while (c->entries < each) {
        uint32_t which = roll(c, VMS), what = roll(c, 64);
        if (what == 0) {
            end(&vms[which % (VMS - 3)]);
        } else if (what == 1) {
            pin(c);
        } else if (get_in(&vms[which])) {
            run(c, which);
            if (what < 16) {
                vmid_leave(&c->vmid);
            }
            __atomic_sub_fetch(&vms[which].inside, 1, __ATOMIC_RELEASE);
        }
    }
    return NULL;
}

static void entries_of_eight_cpus(void **state) {
    uint64_t entries = 0, slow = 0, flushes = 0, rollovers, wanted = 10000000;
    const char *chosen = getenv("VMID_ENTRIES");

    (void)state;
    if (chosen != NULL) {
        wanted = strtoull(chosen, NULL, 10);
    }
    each = wanted / CPUS;
    assert_true(vmid_init(&space, 4, CPUS));
    for (unsigned i = 0; i < CPUS; i++) {
        cpus[i].index = i;
        cpus[i].random = 77 + i;
        vmid_add_cpu(&space, &cpus[i].vmid);
    }
    for (unsigned i = 0; i < CPUS; i++) {
        assert_int_equal(pthread_create(&cpus[i].thread, NULL, cpu_main, &cpus[i]), 0);
    }
    for (unsigned i = 0; i < CPUS; i++) {
        pthread_join(cpus[i].thread, NULL);
        entries += cpus[i].entries;
        slow += cpus[i].vmid.slow;
        flushes += cpus[i].vmid.flushes;
    }
    rollovers = vmid_rollovers(&space);
    print_message("# %lu entries, %lu slow, %lu flushes, %lu roll-overs, %lu pins\n", entries, slow,
                  flushes, rollovers, pins);
    assert_int_equal(faults, 0);
    assert_true(entries >= wanted && entries > slow && pins > 1000);
    assert_true(rollovers > wanted / 1000 && flushes <= (rollovers + 1) * CPUS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(entries_of_eight_cpus)};

    return cmocka_run_group_tests_name("vmid_stress", tests, NULL, NULL);
}
