/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * P17: an idle guest. Every CPU (only the first one with `single`, so that the rest is never
 * started: L02) sleeps in WFI with a timer tick of 10 ms, as an idle kernel does, for `for_us`
 * microseconds (default 200000). How much CPU it used is for the monitor to say; here the ticks are
 * counted and each CPU must have come up and slept.
 */
#include "irq.h"

const char *const test_name = "idle";

static uint64_t limit_us;
static volatile uint32_t ticks[MAX_CPUS], wakes[MAX_CPUS], finished;

static void on_tick(uint32_t id) {
    if (id == INTID_VTIMER) {
        ticks[this_cpu()->index]++;
        write_sysreg(cntv_cval_el0, read_sysreg(cntv_cval_el0) + us_to_ticks(10000));
        isb();
    }
}

static void idle(uint64_t arg) {
    unsigned me = this_cpu()->index;
    uint64_t end = counter() + us_to_ticks(limit_us);

    (void)arg;
    gic_cpu_init();
    irq_install()->during = on_tick;
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    write_sysreg(cntv_cval_el0, counter() + us_to_ticks(10000));
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    while (counter() < end) {
        wfi();
        wakes[me]++;
        irq_enable();
        isb();
        irq_disable();
    }
    write_sysreg(cntv_ctl_el0, 0);
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

void test_main(void) {
    bool single = bootarg("single", 0);
    unsigned running = single ? 1 : cpu_count;
    uint64_t least = ~0ul, most = 0;

    limit_us = bootarg("for_us", 200000);
    gic_init();
    if (!single)
        smp_start_all(idle, 0);
    idle(0);
    check_true("P17-all-cpus-idled", wait_for(finished == running, 1000000));
    for (unsigned i = 0; i < running; i++) {
        least = ticks[i] < least ? ticks[i] : least;
        most = wakes[i] > most ? wakes[i] : most;
    }
    tap_note("at least %lu ticks per CPU, at most %lu wake-ups", least, most);
    /* late ticks come at once, so the number is right though each may be late */
    check_range("P17-ticks", least, limit_us / 10000 / 2, limit_us / 10000 + 1);
    if (native())
        check_range("P17-wakes-by-ticks-only", most, 1, 2 * limit_us / 10000 + 10);
    else
        check_range("P17-wfi-does-not-return-at-once", most, 1, 20 * limit_us / 10000 + 100);
    if (!single) {
        smp_wait_all_off();
        return;
    }
    unsigned off = 0;

    for (unsigned i = 1; i < cpu_count; i++)
        off += psci(PSCI_AFFINITY_INFO64, cpus[i].mpidr, 0, 0) == 1;
    check_eq("L02-others-stay-off", off, cpu_count - 1);
}
