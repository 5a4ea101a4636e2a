/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * P25: one message goes round all CPUs by SGI. Each keeps it for 0..100 us, asleep until its timer
 * or, now and then, spinning; all others sleep. Boot arguments: `seed`, `messages`. None may take
 * more than a second.
 */
#include "irq.h"

const char *const test_name = "ring";

#define SGI_MESSAGE 1u
#define SGI_STOP    2u
#define LATE_US     1000000u

static volatile uint32_t stop, ready;
static volatile uint64_t passed, sent_at, worst;
static uint64_t wanted;
static struct rng rngs[MAX_CPUS];
static volatile bool mine[MAX_CPUS], due[MAX_CPUS];

static unsigned next_cpu(unsigned i) {
    return i + 1 < cpu_count ? i + 1 : 0;
}

static void take(uint32_t id) {
    unsigned me = this_cpu()->index;

    if (id == SGI_MESSAGE) {
        uint64_t took = counter() - sent_at;

        worst = took > worst ? took : worst;
        mine[me] = true;
    } else if (id == INTID_VTIMER) {
        write_sysreg(cntv_ctl_el0, 0);
        isb();
        due[me] = true;
    }
}

static void open_window(void) {
    irq_enable();
    isb();
    irq_disable();
}

static void keep_for_a_while(unsigned me) {
    uint64_t n = rng_next(&rngs[me]), us = (n >> 8) % 101;

    if (n % 32 == 0) {
        spin_us(us);
    } else if (us) {
        due[me] = false;
        write_sysreg(cntv_cval_el0, counter() + us_to_ticks(us));
        write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
        isb();
        while (!due[me]) {
            wfi();
            open_window();
        }
    }
}

/* Takes part in the ring until all messages are through. */
static void pass_on(unsigned me) {
    while (!stop) {
        if (mine[me]) {
            mine[me] = false;
            keep_for_a_while(me);
            if (++passed >= wanted) {
                stop = 1;
                write_sysreg(icc_sgi1r_el1, 1ul << 40 | (uint64_t)SGI_STOP << 24);
                isb();
                break;
            }
            sent_at = counter();
            gic_sgi(SGI_MESSAGE, cpus[next_cpu(me)].mpidr);
        }
        if (!mine[me] && !stop)
            wfi();
        open_window();
    }
}

static void begin(void) {
    unsigned me = this_cpu()->index;

    gic_cpu_init();
    irq_install()->during = take;
    irqs[me].limit = ~0u;
    rngs[me].s = 0x9e3779b9ul * (me + 1) ^ bootarg("seed", 1) << 32;
    write32(this_cpu()->gicr + GICR_SGI + GICD_ISENABLER, 0xffff | 1u << INTID_VTIMER);
}

static void worker(uint64_t arg) {
    begin();
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    pass_on((unsigned)arg);
}

void test_main(void) {
    wanted = bootarg("messages", 20000);
    gic_init();
    begin();
    for (unsigned i = 1; i < cpu_count; i++) {
        if (smp_start(i, worker, i))
            die("CPU_ON failed");
    }
    check_true("P25-all-online", wait_for(ready == cpu_count - 1, 5000000));
    uint64_t from = counter();

    sent_at = from;
    mine[0] = true;
    pass_on(
        0); /* a message that is lost: nobody ever wakes, and the run ends without its last line */
    smp_wait_all_off();
    check_eq("P25-messages", passed, wanted);
    check_range("P25-none-late-us", ticks_to_us(worst), 0, LATE_US);
    tap_note("%lu messages in %lu us, worst %lu us", passed, ticks_to_us(counter() - from),
             ticks_to_us(worst));
}
