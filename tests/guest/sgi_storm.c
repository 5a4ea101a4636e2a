/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every other vCPU sends SGIs to vCPU 0 without a pause, for `for_us` (300 ms) of the guest's
 * counter, while vCPU 0 works: it must get on, and so must whoever else is on its pCPU (the
 * neighbour says so).
 */
#include "irq.h"

const char *const test_name = "sgi_storm";

static volatile uint32_t stop, sending;

static void send(uint64_t arg) {
    (void)arg;
    __atomic_add_fetch(&sending, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        gic_sgi(this_cpu()->index % 16, cpus[0].mpidr);
}

void test_main(void) {
    uint64_t count = 0, gap = 0;

    gic_init();
    gic_cpu_init();
    struct irq_state *irq = irq_install();

    irq->limit = UINT32_MAX;
    for (unsigned i = 1; i < cpu_count; i++) {
        gic_set(i % 16, GICD_ISENABLER);
        if (smp_start(i, send, 0))
            die("CPU_ON failed");
    }
    check_true("all-send", wait_for(sending == cpu_count - 1, 2000000));
    irq_enable();
    uint64_t last = counter(), end = last + us_to_ticks(bootarg("for_us", 300000));

    while (last < end) {
        uint64_t t = counter();

        if (t - last > gap)
            gap = t - last;
        last = t;
        count++;
    }
    irq_disable();
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    tap_note("%lu turns, %u SGIs taken, worst gap %lu us", count, irq->total, ticks_to_us(gap));
    check_true("SGIs-taken", irq->total > 0);
    check_true("receiver-goes-on", count > 1000);
    smp_wait_all_off();
}
