/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest that is paused by the monitor while it looks at its clocks, for `for_us` (5 s) of them.
 * With `stands` they must not have gone on meanwhile, without it both must have, by `least_us` (1
 * s) at least. M06: a timer that was set by TVAL to 1 s before has expired after a pause of
 * `least_us`, however long that is, and interrupts once.
 */
#include "irq.h"

const char *const test_name = "paused";

static void stop_timer(uint32_t id) {
    if (id == INTID_VTIMER) {
        write_sysreg(cntv_ctl_el0, TIMER_ENABLE | 2); /* masked, so that ISTATUS can be read */
        isb();
    }
}

static void take(void) {
    irq_enable();
    isb();
    irq_disable();
}

void test_main(void) {
    uint64_t stands = bootarg("stands", 0), least = us_to_ticks(bootarg("least_us", 1000000));
    uint64_t gap = 0, pgap = 0, apart, worst_apart = 0;

    gic_init();
    gic_cpu_init();
    struct irq_state *irq = irq_install();

    irq->during = stop_timer;
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    write_sysreg(cntv_tval_el0, us_to_ticks(1000000));
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    print("# clocks: ready\n");
    uint64_t last = counter(), plast = pcounter(),
             end = last + us_to_ticks(bootarg("for_us", 5000000));
    uint64_t base = plast - last;

    while (last < end) {
        uint64_t t = counter(), p = pcounter(), again = counter();

        gap = t - last > gap ? t - last : gap;
        pgap = p - plast > pgap ? p - plast : pgap;
        apart = p - t > base ? p - t - base : base - (p - t);
        if (again - t < us_to_ticks(50000)) /* else the pause lay in between */
            worst_apart = apart > worst_apart ? apart : worst_apart;
        last = t;
        plast = p;
        take();
    }
    tap_note("largest step %lu us, of the physical counter %lu us, %lu us apart", ticks_to_us(gap),
             ticks_to_us(pgap), ticks_to_us(worst_apart));
    if (stands) {
        check_true("clocks-stand", gap < us_to_ticks(100000) && pgap < us_to_ticks(100000));
    } else {
        check_true("clocks-go-on", gap >= least && pgap >= least);
    }
    check_true("clocks-agree", worst_apart < us_to_ticks(50000));
    check_eq("M06-one-interrupt", irq->count[INTID_VTIMER], 1);
    check_eq("M06-ISTATUS", read_sysreg(cntv_ctl_el0) & 4, 4);
}
