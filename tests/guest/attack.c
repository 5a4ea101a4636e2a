/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * P14 and its kind: a guest that gives the CPU up and takes it back at moments of its choice, to
 * get more than its share or to leave its neighbour less. For `for_us` microseconds (1 s): kind 0
 * works for `work_us`, then sleeps in WFI for `sleep_us`, again and again kind 1   two vCPUs: one
 * wakes the other by an SGI after each `work_us`, which sleeps again at once What it gained is in
 * the hypervisor's counters, what it cost in the neighbour's work.
 */
#include "irq.h"

const char *const test_name = "attack";

static volatile uint32_t stop;

static void timer_off(uint32_t id) {
    if (id == INTID_VTIMER) {
        write_sysreg(cntv_ctl_el0, 0);
        isb();
    }
}

static struct irq_state *prepare(unsigned id) {
    struct irq_state *s;

    gic_cpu_init();
    s = irq_install();
    s->limit = UINT32_MAX;
    s->during = timer_off;
    gic_set(id, GICD_ISENABLER);
    return s;
}

static void take_one(void) {
    irq_enable();
    isb();
    irq_disable();
}

static void sleeper(uint64_t arg) {
    (void)arg;
    prepare(1);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        wfi();
        take_one();
    }
}

static void sleep_for(uint64_t us) {
    write_sysreg(cntv_cval_el0, counter() + us_to_ticks(us));
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    wfi();
    take_one();
}

void test_main(void) {
    uint64_t end = counter() + us_to_ticks(bootarg("for_us", 1000000)), rounds = 0;
    uint64_t kind = bootarg("kind", 0), work = bootarg("work_us", 0),
             rest = bootarg("sleep_us", 10);

    gic_init();
    struct irq_state *irq = prepare(INTID_VTIMER);

    if (kind == 1 && smp_start(1, sleeper, 0))
        die("CPU_ON failed");
    for (; counter() < end; rounds++) {
        spin_us(work);
        if (kind == 0)
            sleep_for(rest);
        else
            gic_sgi(1, cpus[1].mpidr);
    }
    if (kind == 1) {
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        gic_sgi(1, cpus[1].mpidr);
        smp_wait_off(1);
    }
    tap_note("%lu rounds, %u interrupts", rounds, irq->total);
    check_true("P14-rounds", rounds > 50);
}
