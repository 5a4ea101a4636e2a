/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * P19: sleeps by WFI with no other interrupt source, next to whatever else runs on the CPU; P15:
 * each kind of exit in a loop on one vCPU while the others must go on; lost wake-ups between vCPUs.
 * Boot arguments: slack_us (how late one wake-up may be), sleeps (default 100), sleep_us (1000).
 */
#include "irq.h"

const char *const test_name = "sched";

static struct irq_state *irq;

static void stop_timer(uint32_t id) {
    if (id == INTID_VTIMER)
        write_sysreg(cntv_ctl_el0, 0);
    else if (id == INTID_PTIMER)
        write_sysreg(cntp_ctl_el0, 0);
    isb();
}

static void p19_sleeps(bool phys) {
    uint64_t sleeps = scaled(bootarg("sleeps", 100)), us = bootarg("sleep_us", 1000);
    uint64_t slack = bootarg("slack_us", 30100), worst = 0, early = 0, from = counter();
    unsigned id = phys ? INTID_PTIMER : INTID_VTIMER;
    char name[48];

    irq_reset(irq);
    irq->during = stop_timer;
    gic_set(id, GICD_ISENABLER);
    for (uint64_t i = 0; i < sleeps; i++) {
        uint64_t deadline = (phys ? pcounter() : counter()) + us_to_ticks(us);
        uint32_t seen = irq->count[id];

        if (phys) {
            write_sysreg(cntp_cval_el0, deadline);
            write_sysreg(cntp_ctl_el0, TIMER_ENABLE);
        } else {
            write_sysreg(cntv_cval_el0, deadline);
            write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
        }
        isb();
        while (irq->count[id] == seen) {
            wfi();
            irq_enable();
            isb();
            irq_disable();
        }
        int64_t late = (int64_t)((phys ? pcounter() : counter()) - deadline);

        if (late < 0)
            early++;
        else if ((uint64_t)late > worst)
            worst = (uint64_t)late;
    }
    uint64_t took = ticks_to_us(counter() - from);
    const char *kind = phys ? "phys" : "virt";

    tap_note("%lu sleeps of %lu us: %lu us, worst %lu us late (%s)", sleeps, us, took,
             ticks_to_us(worst), kind);
    format(name, sizeof(name), "P19-%s-never-early", kind);
    check_eq(name, early, 0);
    format(name, sizeof(name), "P19-%s-worst-late-us", kind);
    check_range(name, ticks_to_us(worst), 0, slack);
    format(name, sizeof(name), "P19-%s-total-us", kind);
    check_range(name, took, sleeps * us, bootarg("total_us", sleeps * (us + slack)));
    gic_disable(id);
}

/* ---- P15: one vCPU exits in a loop, the other ones count ---- */

static volatile uint32_t stop, started;
static volatile uint64_t counted[MAX_CPUS], gap[MAX_CPUS];

static void count(uint64_t arg) {
    unsigned me = this_cpu()->index;
    uint64_t last = counter();

    (void)arg;
    __atomic_add_fetch(&started, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        uint64_t t = counter();

        if (t - last > gap[me])
            gap[me] = t - last;
        last = t;
        counted[me]++;
    }
}

static void exit_once(unsigned kind) {
    switch (kind) {
    case 0:
        (void)read32(UART_BASE + 0x18);
        break;
    case 1:
        (void)read_sysreg(id_aa64pfr0_el1);
        break;
    case 2:
        if (!native())
            hvc4(0x84001234, 0, 0, 0);
        break;
    case 3:
        gic_sgi_self(9);
        break;
    default:
        write_sysreg(cntp_ctl_el0, 2);
    }
}

static void p15_exits(void) {
    static const char *const kinds[] = {"mmio", "sysreg", "hvc", "sgi-self", "cntp"};
    uint64_t for_us = scaled(bootarg("p15_us", 20000));

    gic_set(9, GICD_ICENABLER);
    for (unsigned k = 0; k < ARRAY_SIZE(kinds); k++) {
        char name[48];
        uint64_t least = ~0ul, worst = 0, own = 0;

        stop = 0;
        started = 0;
        for (unsigned i = 1; i < cpu_count; i++)
            counted[i] = gap[i] = 0;
        smp_start_all(count, 0);
        wait_for(started == cpu_count - 1, 2000000);
        uint64_t end = counter() + us_to_ticks(for_us);

        while (counter() < end) {
            exit_once(k);
            own++;
        }
        __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
        smp_wait_all_off();
        for (unsigned i = 1; i < cpu_count; i++) {
            least = counted[i] < least ? counted[i] : least;
            worst = gap[i] > worst ? gap[i] : worst;
        }
        tap_note("%s: %lu exits; the others counted at least %lu, worst gap %lu us", kinds[k], own,
                 least, ticks_to_us(worst));
        format(name, sizeof(name), "P15-%s-others-progress", kinds[k]);
        check_true(name, least > 100 && own > 10);
        format(name, sizeof(name), "P15-%s-worst-gap-us", kinds[k]);
        check_range(name, ticks_to_us(worst), 0, bootarg("gap_us", 200000));
    }
    gic_set(9, GICD_ICPENDR);
}

/* ---- messages between sleeping vCPUs, with random delays: none may be lost (P25's kind) ---- */

static volatile uint32_t token;

static void answer(uint64_t arg) {
    struct rng r = {7 + this_cpu()->index};

    (void)arg;
    gic_cpu_init();
    struct irq_state *s = irq_install();

    gic_set(10, GICD_ISENABLER);
    __atomic_add_fetch(&started, 1, __ATOMIC_RELEASE);
    uint32_t seen = 0;

    while (!stop) {
        if (s->count[10] == seen) {
            wfi();
            irq_enable();
            isb();
            irq_disable();
            continue;
        }
        seen = s->count[10];
        if (stop)
            break;
        spin_us(rng_next(&r) % 20);
        __atomic_add_fetch(&token, 1, __ATOMIC_RELEASE);
        gic_sgi(10, cpus[0].mpidr);
    }
}

static void messages(void) {
    uint32_t rounds = (uint32_t)scaled(300), lost = 0;
    struct rng r = {5};

    stop = 0;
    started = 0;
    irq_reset(irq);
    irq->during = stop_timer; /* the line of a timer that ended a sleep must fall */
    gic_set(10, GICD_ISENABLER);
    smp_start_all(answer, 0);
    wait_for(started == cpu_count - 1, 2000000);
    for (uint32_t i = 0; i < rounds && !lost; i++) {
        uint32_t seen = token;
        uint64_t until = counter() + us_to_ticks(1000000);

        spin_us(rng_next(&r) % 20);
        gic_sgi(10, cpus[1 + i % (cpu_count - 1)].mpidr);
        /* asleep until the answer; the timer ends a sleep for ever */
        write_sysreg(cntv_cval_el0, until);
        write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
        isb();
        while (token == seen && counter() < until) {
            wfi();
            irq_enable();
            isb();
            irq_disable();
        }
        lost = token == seen;
    }
    write_sysreg(cntv_ctl_el0, 0);
    isb();
    check_eq("P21-no-message-lost", lost, 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (unsigned i = 1; i < cpu_count; i++)
        gic_sgi(10, cpus[i].mpidr);
    smp_wait_all_off();
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    irq = irq_install();
    p19_sleeps(false);
    p19_sleeps(true);
    if (cpu_count < 2) {
        tap_skip("P15-P21", "one CPU");
        return;
    }
    p15_exits();
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    messages();
}
