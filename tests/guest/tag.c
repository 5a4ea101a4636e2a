/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * T03: more VMs than the machine has VMIDs. Each VM fills pages at addresses that all VMs have with
 * a tag of its own, and its CPUs look at them again and again, `rounds` times, running and sleeping
 * in between so that others come. A tag of another VM is one that was read through its
 * translations.
 */
#include "irq.h"

const char *const test_name = "tag";

#define PAGES 16u

static uint64_t pages, tag;
static uint32_t rounds;
static volatile uint32_t wrong[MAX_CPUS], looks[MAX_CPUS], finished;

static void stop_timer(uint32_t id) {
    if (id == INTID_VTIMER)
        write_sysreg(cntv_ctl_el0, 0);
    isb();
}

static void sleep_us(uint64_t us) {
    struct irq_state *s = &irqs[this_cpu()->index];
    uint32_t seen = s->count[INTID_VTIMER];

    write_sysreg(cntv_cval_el0, counter() + us_to_ticks(us));
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    while (s->count[INTID_VTIMER] == seen) {
        wfi();
        irq_enable();
        isb();
        irq_disable();
    }
}

static void look(unsigned me) {
    for (unsigned i = 0; i < PAGES; i++) {
        volatile uint64_t *page = (volatile uint64_t *)(pages + i * PAGE);
        wrong[me] += page[0] != (tag ^ i);
        page[1 + me] = tag + looks[me];
        wrong[me] += page[1 + me] != tag + looks[me];
    }
    looks[me]++;
}

static void work(uint64_t arg) {
    unsigned me = this_cpu()->index;
    struct rng r = {tag + me};

    (void)arg;
    gic_cpu_init();
    irq_install()->during = stop_timer;
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t x = rng_next(&r);
        look(me);
        if ((x & 3) == 0)
            spin_us(x >> 8 & 63);
        else
            sleep_us(x >> 8 & 127);
        look(me);
    }
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

void test_main(void) {
    uint32_t other = 0;

    tag = counter() * 0x9e3779b97f4a7c15ul; /* no two VMs begin in the same tick */
    rounds = (uint32_t)scaled(bootarg("rounds", 100));
    gic_init();
    pages = alloc_pages(PAGES);
    for (unsigned i = 0; i < PAGES; i++)
        *(uint64_t *)(pages + i * PAGE) = tag ^ i;
    smp_start_all(work, 0);
    work(0);
    check_true("T03-all-finished", wait_for(finished == cpu_count, 20000000));
    for (unsigned i = 0; i < cpu_count; i++)
        other += wrong[i];
    tap_note("tag %lx, %u looks", tag, looks[0]);
    check_eq("T03-no-tag-of-another-vm", other, 0);
    smp_wait_all_off();
}
