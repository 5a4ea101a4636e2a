/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A lock whose holder is preempted, on one CPU for all vCPUs: who waits in WFE must make room for
 * the holder (P09), and that must last until the release or the end of a slice (P10). vCPU 0 holds
 * the lock for longer than a slice, again and again; the others wait for it as Linux does.
 * Boot arguments: rounds (20); hold_us (5000); slice_us (2000); lasts=0: they only have to finish,
 * as where vCPUs run side by side nobody can tell who ran before.
 */
#include "irq.h"

const char *const test_name = "holder";

#define NOBODY MAX_CPUS

static volatile uint32_t lock, stop;
static volatile uint32_t last; /* who ran last, on the one CPU */
static volatile uint64_t returns[MAX_CPUS], after_spinner[MAX_CPUS];

/* Until *at is not `value`, or something happens. */
static inline void wait_while(const volatile uint32_t *at, uint32_t value) {
    uint32_t t;

    __asm__ volatile("sevl\n\twfe\n\tldxr %w0, [%1]\n\teor %w0, %w0, %w2\n\tcbnz %w0, 1f\n\twfe\n1:"
                     : "=&r"(t)
                     : "r"(at), "r"(value)
                     : "memory");
}

static void spinner(uint64_t arg) {
    unsigned me = this_cpu()->index;

    (void)arg;
    while (!stop) {
        uint32_t held = lock;

        last = me;
        wait_while(&lock, held);
        if (held != 0) {
            returns[me]++;
            /* After the release one waiter may well make room for the next. */
            after_spinner[me] += last != me && last != 0 && lock == held;
        }
    }
}

static void hold(uint32_t value, uint64_t us) {
    uint64_t end = counter() + us_to_ticks(us);

    lock = value;
    while (counter() < end)
        last = 0;
}

void test_main(void) {
    uint64_t rounds = bootarg("rounds", 20), hold_us = bootarg("hold_us", 5000), all = 0, bad = 0;
    uint64_t slices = hold_us / bootarg("slice_us", 2000) + 2;
    unsigned spinners = cpu_count - 1;

    last = NOBODY;
    smp_start_all(spinner, 0);
    for (uint64_t i = 0; i < rounds; i++) {
        hold(1, hold_us);
        hold(0, 200);
    }
    stop = 1;
    smp_wait_all_off();
    for (unsigned i = 1; i < cpu_count; i++) {
        all += returns[i];
        bad += after_spinner[i];
    }
    tap_note("%lu rounds, %lu returns from a wait, %lu of them after another spinner", rounds, all,
             bad);
    check_true("P09-there-were-waits", all >= rounds / 2);
    if (bootarg("lasts", 1) != 0) {
        check_range("P09-not-to-another-spinner", bad, 0, all / 5);
        check_range("P10-the-yield-lasts", all, 0, rounds * slices * spinners);
    }
}
