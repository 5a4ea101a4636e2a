/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lateness of deadlines that are slept for: what the counter says past the deadline once WFI has
 * returned, with interrupts masked. Arguments: rounds; period (ns) of the sleeps, which become
 * longer by 37 ns each so that they meet every phase of what else there is. `spinner`: a VM that
 * keeps the pCPU busy for so many ns instead.
 */
#include "bench.h"

const char *const test_name = "deadline";

#define MOST 4096u

static uint32_t late[MOST], sorted[MOST];

static void sort(uint32_t *v, unsigned n) {
    for (unsigned i = 1; i < n; i++) {
        uint32_t x = v[i];
        unsigned j = i;

        for (; j > 0 && v[j - 1] > x; j--) {
            v[j] = v[j - 1];
        }
        v[j] = x;
    }
}

static void spinner(uint64_t ns) {
    uint64_t end = now() + ns;

    while (now() < end) {
    }
}

/* Asleep until the timer's interrupt is there; early if that is so before its deadline. */
static unsigned sleep_until(uint64_t deadline) {
    uint64_t woken;

    write_sysreg(cntv_cval_el0, deadline);
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    do {
        wfi();
        woken = now();
    } while ((read_sysreg(isr_el1) & 0x80) == 0);
    uint64_t seen = now();
    uint32_t id = gic_iar1();

    write_sysreg(cntv_ctl_el0, 0);
    isb();
    gic_eoi1(id);
    if (id != INTID_VTIMER) {
        die("woke for interrupt %u, expected the timer's", id);
    }
    sorted[0] = woken > deadline ? (uint32_t)(woken - deadline) : 0;
    return seen < deadline;
}

void test_main(void) {
    uint64_t rounds = bootarg("rounds", 1000), period = bootarg("period", 50000);
    unsigned early = 0;

    gic_init();
    bench_cpu_init();
    if (bootarg("spinner", 0) != 0) {
        spinner(bootarg("spinner", 0));
        return;
    }
    if (rounds > MOST || freq() != 1000000000) {
        die("at most %u rounds, and a counter of 1 GHz", MOST);
    }
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    for (unsigned i = 0; i < rounds; i++) {
        early += sleep_until(now() + period + 37 * i);
        late[i] = sorted[0];
    }
    memcpy(sorted, late, sizeof(late));
    sort(sorted, (unsigned)rounds);
    print("bench: timer %u %u %u %u %lu\n", sorted[rounds / 2], sorted[rounds * 99 / 100],
          sorted[0], sorted[rounds - 1], rounds);
    print("bench: early %u\n", early);
    for (unsigned i = 0; i < 40; i++) {
        print("bench: step %u %u\n", i, late[i]);
    }
}
