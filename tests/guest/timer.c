/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Virtual and physical EL1 timers: units (M02), masks (M03), edges (M04), the 32-bit view over a
 * long wait (M06), the frequency (M09). Each check runs for both timers, waiting by poll and by
 * WFI.
 *
 * Boot arguments: m06 adds M06's wait of 2^31 ticks (2.1 s with a counter of 1 GHz, and far more
 * with a slow one); slack_us: how late a timer may be (one slice and 100 us; more with neighbours).
 */
#include "irq.h"

const char *const test_name = "timer";

static struct irq_state *irq;
static bool phys; /* which timer the helpers below mean */
static uint32_t ctl_in_handler;

static uint64_t now(void) {
    return phys ? pcounter() : counter();
}

static void set_ctl(uint32_t v) {
    if (phys)
        write_sysreg(cntp_ctl_el0, v);
    else
        write_sysreg(cntv_ctl_el0, v);
    isb();
}

static uint32_t ctl(void) {
    isb();
    return (uint32_t)(phys ? read_sysreg(cntp_ctl_el0) : read_sysreg(cntv_ctl_el0));
}

static void set_cval(uint64_t v) {
    if (phys)
        write_sysreg(cntp_cval_el0, v);
    else
        write_sysreg(cntv_cval_el0, v);
    isb();
}

static uint64_t cval(void) {
    return phys ? read_sysreg(cntp_cval_el0) : read_sysreg(cntv_cval_el0);
}

static void set_tval(uint32_t v) {
    if (phys)
        write_sysreg(cntp_tval_el0, v);
    else
        write_sysreg(cntv_tval_el0, v);
    isb();
}

static int64_t tval(void) {
    isb();
    return (int32_t)(phys ? read_sysreg(cntp_tval_el0) : read_sysreg(cntv_tval_el0));
}

static unsigned ppi(void) {
    return phys ? INTID_PTIMER : INTID_VTIMER;
}

static const char *named(const char *fmt) {
    static char name[80];

    format(name, sizeof(name), "%s-%s", fmt, phys ? "phys" : "virt");
    return name;
}

static void stop_timer(uint32_t id) {
    /* by the interrupt's number: `phys` may mean the other timer at this time */
    if (id == INTID_PTIMER) {
        ctl_in_handler = (uint32_t)read_sysreg(cntp_ctl_el0);
        write_sysreg(cntp_ctl_el0, 0);
    } else if (id == INTID_VTIMER) {
        ctl_in_handler = (uint32_t)read_sysreg(cntv_ctl_el0);
        write_sysreg(cntv_ctl_el0, 0);
    }
    isb();
}

static void stop_at_third(uint32_t id) {
    if (irq->count[id] == 3)
        stop_timer(id);
}

static void begin(void) {
    irq_disable();
    set_ctl(0);
    gic_set(ppi(), GICD_ICPENDR);
    irq_reset(irq);
    irq->limit = 100000;
    irq->during = stop_timer;
    ctl_in_handler = 0;
}

enum wait { POLL, WFI };

/* Waits for one timer interrupt. A timer that never fires ends with the runner's patience. */
static void wait_one(enum wait how) {
    uint32_t seen = irq->count[ppi()];

    if (how == POLL) {
        irq_enable();
        while (irq->count[ppi()] == seen) {
        }
        irq_disable();
        return;
    }
    while (irq->count[ppi()] == seen) {
        wfi();
        irq_enable();
        isb();
        irq_disable();
    }
}

static void m02_units(void) {
    static const uint32_t ms[] = {1, 10, 100};
    uint64_t slack = bootarg("slack_us", 30100);

    for (unsigned i = 0; i < ARRAY_SIZE(ms); i++) {
        for (enum wait how = POLL; how <= WFI; how++) {
            /* polling 100 ms costs half a second of the runner's time */
            if (how == POLL && ms[i] == 100 && bootarg("long", 1) == 1)
                continue;
            begin();
            uint64_t deadline = now() + us_to_ticks(ms[i] * 1000ul);
            char name[64];

            set_cval(deadline);
            set_ctl(TIMER_ENABLE);
            wait_one(how);
            uint64_t late = now() - deadline;

            format(name, sizeof(name), "M02-%u-ms-%s", ms[i], how == POLL ? "poll" : "wfi");
            /* early shows as a huge unsigned number */
            check_range(named(name), late >> 63 ? late : ticks_to_us(late), 0, slack);
        }
    }
    begin();
    /* a deadline of 10 hours must not overflow into the past */
    set_cval(now() + us_to_ticks(36000000000ul));
    set_ctl(TIMER_ENABLE);
    irq_enable();
    spin_us(500);
    irq_disable();
    check_eq(named("M02-ten-hours-does-not-fire"), irq->total, 0);
    check_eq(named("M02-ten-hours-istatus"), ctl(), TIMER_ENABLE);
    set_ctl(0);
}

static void m03_masks(void) {
    unsigned other = phys ? INTID_VTIMER : INTID_PTIMER;

    for (uint32_t combination = 0; combination < 8; combination++) {
        bool enable = combination & 1, imask = combination & 2, expired = combination & 4;
        char name[64];

        begin();
        set_cval(expired ? now() : now() + us_to_ticks(3600000000ul));
        set_ctl((enable ? TIMER_ENABLE : 0) | (imask ? TIMER_IMASK : 0));
        /* WFI ends by the other timer after 300 us when this one stays silent. */
        phys = !phys;
        set_cval(now() + us_to_ticks(300));
        set_ctl(TIMER_ENABLE);
        do { /* once at least: an emulator that stood still meanwhile finds both expired */
            wfi();
            irq_enable();
            isb();
            irq_disable();
        } while (!(ctl() & TIMER_ISTATUS) && !irq->count[other]);
        set_ctl(0);
        phys = !phys;
        bool due = enable && !imask && expired;

        format(name, sizeof(name), "M03-enable%u-imask%u-expired%u", enable, imask, expired);
        check_eq(named(name), irq->count[ppi()], due);
        if (enable && !due)
            check_eq(named("M03-istatus"), ctl() >> 2 & 1, expired);
        if (due)
            check_eq(named("M03-ctl-in-handler"), ctl_in_handler, TIMER_ENABLE | TIMER_ISTATUS);
        if (enable && imask && expired) {
            irq_enable();
            set_ctl(TIMER_ENABLE);
            check_true(named("M03-unmask-delivers"), wait_for(irq->count[ppi()] == 1, 100000));
            irq_disable();
        }
        /* masking again lowers the line before it is acknowledged */
        if (due) {
            set_cval(0);
            set_ctl(TIMER_ENABLE);
            wait_for(read_sysreg(isr_el1) & 0x80, 1000);
            set_ctl(TIMER_ENABLE | TIMER_IMASK);
            /*
             * The virtual timer's control is not trapped: the line is looked at again at the next
             * exit that has to do with interrupts, and there is one here.
             */
            (void)read32(this_cpu()->gicr + GICR_SGI + GICD_ISPENDR);
            check_true(named("M03-mask-takes-it-back"),
                       wait_for(!(read_sysreg(isr_el1) & 0x80), 1000));
            uint32_t id = gic_iar1();

            check_eq(named("M03-iar-spurious-after-mask"), id, INTID_NONE);
            if (id < 1020)
                gic_eoi1(id);
        }
    }
    set_ctl(0);
}

static void expect_fire(const char *what, enum wait how) {
    char name[64];
    uint64_t deadline = cval();

    wait_one(how);
    format(name, sizeof(name), "M04-%s-%s", what, how == POLL ? "poll" : "wfi");
    check_true(named(name), now() >= deadline);
    irq_enable();
    spin_us(50);
    irq_disable();
    format(name, sizeof(name), "M04-%s-once-%s", what, how == POLL ? "poll" : "wfi");
    check_eq(named(name), irq->count[ppi()], 1);
}

static void expect_silence(const char *what) {
    char name[64];

    irq_enable();
    spin_us(300);
    irq_disable();
    format(name, sizeof(name), "M04-%s-silent", what);
    check_eq(named(name), irq->total, 0);
    check_eq(named("M04-istatus-clear"), ctl(), TIMER_ENABLE);
    set_ctl(0);
}

static void m04_edges(void) {
    for (enum wait how = POLL; how <= WFI; how++) {
        begin();
        set_cval(now() - us_to_ticks(1000));
        set_ctl(TIMER_ENABLE);
        expect_fire("past", how);
        begin();
        set_cval(0);
        set_ctl(TIMER_ENABLE);
        expect_fire("zero", how);
        begin();
        set_tval(0);
        set_ctl(TIMER_ENABLE);
        expect_fire("tval-zero", how);
        begin();
        set_tval(0x80000000); /* the most negative countdown: long past */
        set_ctl(TIMER_ENABLE);
        if (now() > 0x80000000ul)
            expect_fire("tval-negative", how);
        begin();
        set_tval((uint32_t)us_to_ticks(200));
        set_ctl(TIMER_ENABLE);
        expect_fire("tval-200us", how);
        begin(); /* long, then shorter */
        set_cval(now() + us_to_ticks(1000000));
        set_ctl(TIMER_ENABLE);
        spin_us(20);
        set_cval(now() + us_to_ticks(200));
        expect_fire("shorter", how);
        begin(); /* short, then longer, before it fires */
        set_cval(now() + us_to_ticks(20000));
        set_ctl(TIMER_ENABLE);
        set_cval(now() + us_to_ticks(25000));
        expect_fire("longer", how);
        begin(); /* armed before it is enabled */
        set_cval(now() + us_to_ticks(100));
        spin_us(200);
        set_ctl(TIMER_ENABLE);
        expect_fire("enabled-late", how);
    }
}

static void m04_far_deadlines(void) {
    begin();
    set_cval(~0ul);
    set_ctl(TIMER_ENABLE);
    expect_silence("top-of-counter");
    begin();
    set_cval(now() + (1ul << 63) + (1ul << 62));
    set_ctl(TIMER_ENABLE);
    expect_silence("beyond-signed-64");
    begin();
    set_cval(now() + (1ul << 32) + us_to_ticks(50));
    set_ctl(TIMER_ENABLE);
    expect_silence("beyond-32-bits");
    begin();
    set_tval(0x7fffffff);
    set_ctl(TIMER_ENABLE);
    if (freq() > 10000000)
        expect_silence("tval-largest");
}

static void m04_registers(void) {
    /* TVAL and CVAL are two views of one deadline; the countdown goes on below zero. */
    begin();
    uint64_t base = now();

    set_tval(1000);
    check_range(named("M04-tval-sets-cval"), cval() - base, 1000, 1000 + us_to_ticks(1000000));
    set_cval(now() + 100);
    set_ctl(TIMER_ENABLE | TIMER_IMASK);
    spin_us(50);
    int64_t first = tval();

    spin_us(50);
    int64_t second = tval();

    check_true(named("M04-tval-below-zero"), first < 0 && second < first);
    check_eq(named("M04-istatus-while-masked"), ctl(), 7);
    set_ctl(0);

    /* CTL: only its two bits can be written; CVAL holds all 64 bits. */
    set_ctl(0xfffffff8);
    check_eq(named("M04-ctl-reserved-bits"), ctl() & ~4u, 0);
    set_cval(0xdeadbeefcafef00d);
    check_eq(named("M04-cval-64-bits"), cval(), 0xdeadbeefcafef00d);

    /* Level: not lowered in the handler, the interrupt comes again; lowered, it does not. */
    begin();
    irq->during = stop_at_third;
    set_cval(now());
    set_ctl(TIMER_ENABLE);
    irq_enable();
    wait_for(irq->count[ppi()] >= 3, 100000);
    irq_disable();
    check_eq(named("M04-level-comes-again"), irq->count[ppi()], 3);
    uint32_t count = irq->count[ppi()];

    irq_enable();
    spin_us(100);
    irq_disable();
    check_eq(named("M04-level-lowered"), irq->count[ppi()], count);
}

/* Wait 3 ms (m06: over 2^31 ticks) past a deadline set by TVAL, asleep on the other timer. */
static void m06_long_wait(void) {
    uint64_t ticks = bootarg("m06", 0) ? (1ul << 31) + us_to_ticks(2000) : us_to_ticks(3000);

    begin();
    uint64_t wake;
    unsigned wakes = 0;

    set_tval((uint32_t)us_to_ticks(1000));
    set_ctl(TIMER_ENABLE);
    gic_disable(ppi());
    phys = !phys;
    wake = now() + ticks;
    set_cval(wake);
    set_ctl(TIMER_ENABLE);
    while (!irq->count[ppi()]) {
        wfi();
        wakes++;
        irq_enable();
        isb();
        irq_disable();
    }
    check_true(named("M06-long-sleep-not-early"), now() >= wake);
    phys = !phys;
    /* The expired timer's interrupt is disabled in the controller: it is no reason to end WFI. */
    tap_note("M06: %u wake-ups", wakes);
    check_range(named("P17-wfi-beside-expired-disabled-timer"), wakes, 1, 50);
    check_eq(named("M06-istatus-after-wait"), ctl(), TIMER_ENABLE | TIMER_ISTATUS);
    gic_enable(ppi());
    irq_enable();
    check_true(named("M06-delivered"), wait_for(irq->count[ppi()] == 1, 100000));
    spin_us(50);
    irq_disable();
    check_eq(named("M06-delivered-once"), irq->count[ppi()], 1);
    set_ctl(0);
}

static uint64_t EL0_TEXT el0_frequency(uint64_t arg) {
    uint64_t v;

    (void)arg;
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(v));
    return v;
}

static uint64_t EL0_TEXT el0_counter(uint64_t arg) {
    uint64_t v;

    (void)arg;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(v) : : "memory");
    return v;
}

static volatile uint64_t other_freq, other_before, other_after, other_skew;
static volatile uint32_t others_done;

static void look_at_frequency(uint64_t arg) {
    (void)arg;
    uint64_t start = __atomic_load_n(&other_before, __ATOMIC_ACQUIRE), c = counter();

    if (freq() != other_freq)
        other_skew |= 1;
    /* CNTVOFF is one for all CPUs: this counter is not behind what CPU 0 read before. */
    if (c < start)
        other_skew |= 2;
    __atomic_store_n(&other_after, c, __ATOMIC_RELEASE);
    __atomic_add_fetch(&others_done, 1, __ATOMIC_RELEASE);
}

static void m09_frequency(void) {
    uint32_t said = fdt_u32(fdt_find("/timer", 0), "clock-frequency", 0, 0);
    uint64_t f = freq();

    check_range("M09-cntfrq", f, 1000000, 10000000000ul);
    if (said)
        check_eq("M09-cntfrq-as-in-device-tree", f, said);
    write_sysreg(cntkctl_el1, 0x3);
    isb();
    check_eq("M09-cntfrq-at-el0", el0_run(el0_frequency, 0), f);
    uint64_t a = counter(), b = el0_run(el0_counter, 0), c = counter();

    check_true("M09-cntvct-at-el0", a <= b && b <= c);
    write_sysreg(cntkctl_el1, 0);
    isb();
    exc_expect();
    el0_run(el0_counter, 0);
    struct exc_info e = exc_end();

    check_eq("M09-cntkctl-keeps-el0-out", e.count ? ESR_EC(e.esr) : 0, EC_SYSREG);

    /* both counters at one rate */
    uint64_t v = counter(), p = pcounter();

    spin_us(2000);
    int64_t drift = (int64_t)((counter() - v) - (pcounter() - p));

    tap_note("CNTPCT - CNTVCT = %ld ticks", (int64_t)(p - v));
    check_range("M09-counters-run-alike-us", ticks_to_us((uint64_t)(drift < 0 ? -drift : drift)), 0,
                bootarg("slack_us", 30100));
    uint64_t last = counter();
    unsigned back = 0;

    for (unsigned i = 0; i < 20000; i++) {
        uint64_t t = counter();

        back += t < last;
        last = t;
    }
    check_eq("M09-counter-never-back", back, 0);
    other_freq = f;
    for (unsigned i = 1; i < cpu_count; i++) {
        other_before = counter();
        if (smp_start(i, look_at_frequency, 0))
            die("CPU_ON failed");
        wait_for(others_done == i, 2000000);
        if (counter() < other_after)
            other_skew |= 4;
        smp_wait_off(i);
    }
    check_eq("M09-all-cpus-agree", other_skew, 0);
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    irq = irq_install();
    gic_enable(INTID_VTIMER);
    gic_enable(INTID_PTIMER);
    m09_frequency();
    for (unsigned i = 0; i < 2; i++) {
        phys = i;
        m02_units();
        m03_masks();
        m04_edges();
        m04_far_deadlines();
        m04_registers();
        m06_long_wait();
    }
}
