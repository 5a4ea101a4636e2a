/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * WFE by the VM's `spin`: P12 (who waits where nobody else wants the CPU goes on at once), P24 (how
 * often it is left for that: tests/guest/run counts exits), and shares beside a VM that computes.
 * The first WFE of a round finds an event and never traps; the second one does, or ends at once as
 * the monitor is armed (the emulator's way).
 * Boot arguments: count (20000) of rounds; max_ns, what one may take; or for_us, how long to go on.
 */
#include "irq.h"

const char *const test_name = "wfe";

static inline void wait_once(void) {
    __asm__ volatile("sevl\n wfe\n ldxr xzr, [%0]\n wfe" : : "r"(&test_name) : "memory");
}

void test_main(void) {
    uint64_t count = bootarg("count", 20000), n = 0;
    uint64_t from = counter(), end = from + us_to_ticks(bootarg("for_us", 0));

    do {
        wait_once();
        n++;
    } while (n < count || counter() < end);
    uint64_t each = (counter() - from) * 1000000 / us_to_ticks(1000) / n;

    tap_note("%lu rounds of two WFE, %lu ns each", n, each);
    check_true("P12-goes-on", n >= count);
    if (bootarg("max_ns", 0) != 0)
        check_range("P12-ns-of-a-round", each, 0, bootarg("max_ns", 0));
}
