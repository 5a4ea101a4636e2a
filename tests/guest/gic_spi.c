/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared interrupts: edge ones driven by GICD_ISPENDR, a level one by the UART, whose transmit
 * interrupt is raw-asserted while nothing waits to be sent: its mask register moves the line.
 */
#include "irq.h"

const char *const test_name = "gic_spi";

#define EDGE      60u /* an SPI that no device drives */
#define EDGE2     61u
#define UART_IMSC (UART_BASE + 0x38)
#define UART_RIS  (UART_BASE + 0x3c)
#define UART_MIS  (UART_BASE + 0x40)
#define UART_TX   0x20u
#define QUIET_US  100

static struct irq_state *irq;
static uint32_t scratch;

static void line_up(void) {
    write32(UART_IMSC, UART_TX);
    dsb();
}

static void line_down(void) {
    write32(UART_IMSC, 0);
    dsb();
}

static void fire(unsigned intid) {
    gic_set(intid, GICD_ISPENDR);
}

/* Runs with interrupts on until `runs` of intid came (0: none awaited), then long enough for more.
 */
static uint32_t let_come(unsigned intid, uint32_t runs) {
    irq_enable();
    wait_for(irq->count[intid] >= runs, 100000);
    spin_us(QUIET_US);
    irq_disable();
    return irq->count[intid];
}

static void start(void (*during)(uint32_t)) {
    irq_reset(irq);
    irq->during = during;
    irq->limit = 100000;
}

static void disable_enable(uint32_t id) {
    gic_disable(id);
    gic_enable(id);
}

static void disable_eoi_enable(uint32_t id) {
    gic_disable(id);
    gic_eoi1(id);
    gic_enable(id);
    irq->eoi_done = true;
}

static void disable_lower_eoi_enable(uint32_t id) {
    gic_disable(id);
    line_down();
    gic_eoi1(id);
    gic_enable(id);
    irq->eoi_done = true;
}

static uint32_t fire_many(unsigned intid, void (*during)(uint32_t), uint32_t times) {
    uint32_t stuck = 0;

    start(during);
    irq_enable();
    for (uint32_t i = 1; i <= times && !stuck; i++) {
        fire(intid);
        stuck = !wait_for(irq->count[intid] >= i, 100000);
    }
    irq_disable();
    return stuck ? 0 : irq->count[intid];
}

static void g01_disable_while_active(void) {
    /* the case proposes 10,000 */
    uint32_t times = (uint32_t)scaled(1000);

    check_eq("G01-disable-enable-eoi", fire_many(EDGE, disable_enable, times), times);
    check_eq("G01-disable-eoi-enable", fire_many(EDGE, disable_eoi_enable, times), times);

    uint32_t stuck = 0;

    start(disable_lower_eoi_enable);
    irq_enable();
    for (uint32_t i = 1; i <= times && !stuck; i++) {
        line_up();
        stuck = !wait_for(irq->count[INTID_UART] >= i, 100000);
    }
    irq_disable();
    check_eq("G01-level-disable-lower-eoi-enable", irq->count[INTID_UART], times);
    check_eq("G01-nothing-active",
             gic_get(EDGE, GICD_ISACTIVER) || gic_get(INTID_UART, GICD_ISACTIVER), 0);

    /* Disabled while active and left so: stays quiet until enabled, then works. */
    start(gic_disable);
    fire(EDGE);
    let_come(EDGE, 1);
    fire(EDGE);
    check_eq("G01-disabled-stays-quiet", let_come(EDGE, 0), 1);
    irq->during = NULL;
    gic_enable(EDGE);
    check_eq("G01-enabled-again-arrives", let_come(EDGE, 2), 2);
}

static void fire_again_once(uint32_t id) {
    if (irq->count[id] == 1)
        fire(id);
}

static void fire_again_twice(uint32_t id) {
    if (irq->count[id] == 1) {
        fire(id);
        scratch = gic_get(id, GICD_ISPENDR) && gic_get(id, GICD_ISACTIVER);
        fire(id);
    }
}

static void g06_pending_bookkeeping(void) {
    start(NULL);
    fire(EDGE);
    isb();
    fire(EDGE);
    check_eq("G06-fired-while-pending", let_come(EDGE, 1), 1);
    start(fire_again_once);
    fire(EDGE);
    check_eq("G06-fired-while-active", let_come(EDGE, 2), 2);
    start(fire_again_twice);
    scratch = 0;
    fire(EDGE);
    check_eq("G06-fired-while-active-and-pending", let_come(EDGE, 2), 2);
    check_eq("G06-active-and-pending-shown", scratch, 1);
}

/* Random firing, masking and clearing of four SPIs; the case proposes 1e6. */
static void g06_random(void) {
    struct rng r = {12345};
    uint32_t rounds = (uint32_t)scaled(2000), stuck = 0, early = 0;

    start(NULL);
    for (unsigned i = 0; i < 4; i++) {
        gic_config(EDGE + i, true);
        gic_enable(EDGE + i);
    }
    for (uint32_t i = 0; i < rounds && !stuck; i++) {
        uint64_t x = rng_next(&r);
        unsigned spi = EDGE + (x >> 8 & 3);
        uint32_t seen = irq->count[spi];

        switch (x & 7) {
        case 0: /* masked at the CPU */
            irq_disable();
            fire(spi);
            early += irq->count[spi] != seen;
            irq_enable();
            break;
        case 1: /* disabled, then enabled */
            gic_disable(spi);
            fire(spi);
            early += irq->count[spi] != seen;
            gic_enable(spi);
            break;
        case 2: /* taken back while masked: must not come */
            irq_disable();
            fire(spi);
            gic_set(spi, GICD_ICPENDR);
            irq_enable();
            isb();
            early += irq->count[spi] != seen;
            continue;
        default:
            irq_enable();
            fire(spi);
        }
        stuck = !wait_for(irq->count[spi] != seen, 100000);
    }
    irq_disable();
    check_eq("G06-random-never-stuck", stuck, 0);
    check_eq("G06-random-never-early", early, 0);
    for (unsigned i = 1; i < 4; i++)
        gic_disable(EDGE + i);
}

static void g07_raised_while_disabled(void) {
    start(NULL);
    gic_disable(EDGE);
    fire(EDGE);
    check_eq("G07-edge-disabled-not-delivered", let_come(EDGE, 0), 0);
    check_true("G07-edge-ispendr", gic_get(EDGE, GICD_ISPENDR));
    gic_enable(EDGE);
    check_eq("G07-edge-delivered-once-enabled", let_come(EDGE, 1), 1);
    check_true("G07-edge-not-pending-after", !gic_get(EDGE, GICD_ISPENDR));

    start(NULL);
    gic_disable(INTID_UART);
    line_up();
    check_true("G07-level-ispendr-follows-line", gic_get(INTID_UART, GICD_ISPENDR));
    line_down();
    check_true("G07-level-ispendr-lowered", !gic_get(INTID_UART, GICD_ISPENDR));
    gic_enable(INTID_UART);
    check_eq("G07-level-lowered-not-delivered", let_come(INTID_UART, 0), 0);
    /* A software-pended level interrupt stays until taken or cleared, though the line is low. */
    fire(INTID_UART);
    check_eq("G07-level-software-pended", let_come(INTID_UART, 1), 1);
    gic_disable(INTID_UART);
    fire(INTID_UART);
    gic_set(INTID_UART, GICD_ICPENDR);
    gic_enable(INTID_UART);
    check_eq("G07-level-software-cleared", let_come(INTID_UART, 0), 1);
}

static void lower_at_third(uint32_t id) {
    if (irq->count[id] == 3)
        line_down();
}

static void lower_now(uint32_t id) {
    (void)id;
    line_down();
}

static void lower_and_raise(uint32_t id) {
    line_down();
    if (irq->count[id] == 1)
        line_up();
}

static void g12_level_after_eoi(void) {
    start(lower_at_third);
    line_up();
    check_eq("G12-line-high-through-eoi", let_come(INTID_UART, 3), 3);
    start(lower_now);
    line_up();
    check_eq("G12-lowered-before-eoi", let_come(INTID_UART, 1), 1);
    start(lower_and_raise);
    line_up();
    check_eq("G12-lowered-and-raised", let_come(INTID_UART, 2), 2);

    /* Many times, always two per raise: the resampling must not be lost once. */
    uint32_t times = (uint32_t)scaled(300), wrong = 0;

    for (uint32_t i = 0; i < times && !wrong; i++) {
        start(lower_and_raise);
        line_up();
        irq_enable();
        wrong = !wait_for(irq->count[INTID_UART] == 2, 100000);
        irq_disable();
    }
    check_eq("G12-repeated", wrong, 0);

    /* The line goes up while masked and is looked at by polling only: acknowledge without exception
     */
    start(NULL);
    line_up();
    check_true("G12-isr-shows-line", wait_for(read_sysreg(isr_el1) & 0x80, 100000));
    line_down();
    check_true("G12-isr-follows-line-down", wait_for(!(read_sysreg(isr_el1) & 0x80), 100000));
    check_eq("G12-iar-spurious-after-lowering", gic_iar1(), INTID_NONE);
}

static void rearm(uint32_t id) {
    if (id == INTID_VTIMER)
        write_sysreg(cntv_ctl_el0, 0);
    isb();
}

/* EOImode 1 with an SPI pending below: the timer's deactivation must not be lost. */
static void g20_timer_with_pending_spi(void) {
    uint32_t times = (uint32_t)scaled(1000), stuck = 0, early = 0;

    for (unsigned variant = 0; variant < 2; variant++) {
        start(rearm);
        irq->split = true;
        write_sysreg(icc_ctlr_el1, 2);
        gic_priority(INTID_VTIMER, 0x40);
        gic_priority(EDGE, 0xc0);
        gic_set(INTID_VTIMER, GICD_ISENABLER);
        write_sysreg(icc_pmr_el1, 0x80); /* the SPI stays pending */
        isb();
        fire(EDGE);
        /* variant 1: an active SPI that waits for its DIR as well */
        if (variant)
            gic_set(EDGE2, GICD_ISACTIVER);
        irq_enable();
        for (uint32_t i = 1; i <= times && !stuck; i++) {
            uint64_t deadline = counter() + us_to_ticks(5);

            write_sysreg(cntv_cval_el0, deadline);
            write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
            isb();
            stuck = !wait_for(irq->count[INTID_VTIMER] >= i, 100000);
            early += counter() < deadline;
        }
        irq_disable();
        char name[40];

        format(name, sizeof(name), "G20-timer-fires-again-%u", variant);
        check_eq(name, irq->count[INTID_VTIMER], times);
        check_eq("G20-never-early", early, 0);
        check_eq("G20-spi-waits", irq->count[EDGE], 0);
        if (variant) {
            check_true("G20-other-spi-still-active", gic_get(EDGE2, GICD_ISACTIVER));
            gic_dir(EDGE2);
            check_true("G20-dir-deactivates", !gic_get(EDGE2, GICD_ISACTIVER));
        }
        write_sysreg(icc_pmr_el1, 0xff);
        isb();
        check_eq("G20-spi-comes-last", let_come(EDGE, 1), 1);
    }
    write_sysreg(icc_ctlr_el1, 0);
    isb();
    irq->split = false;
    gic_disable(INTID_VTIMER);
    gic_priority(INTID_VTIMER, 0xa0);
    gic_priority(EDGE, 0xa0);
}

/* P21: an SPI wakes a CPU that waits, by either way of making it pending. */
static void p21_wakes(void) {
    start(lower_now);
    line_down();
    irq_enable();
    /* WFI with an interrupt pending but masked at the CPU returns at once. */
    irq_disable();
    fire(EDGE);
    uint64_t before = counter();

    wfi();
    check_range("P21-wfi-with-pending-spi-us", ticks_to_us(counter() - before), 0, 500000);
    check_eq("P21-pending-spi-taken", let_come(EDGE, 1), 1);
    line_up();
    wfi();
    check_eq("P21-uart-line-taken", let_come(INTID_UART, 1), 1);
}

/* More SPIs at once than list registers, in priority order. */
static volatile uint32_t order[12];

static void note_order(uint32_t id) {
    if (irq->total <= ARRAY_SIZE(order))
        order[irq->total - 1] = id;
}

static void overflow(void) {
    unsigned right = 0;

    start(note_order);
    for (unsigned i = 0; i < ARRAY_SIZE(order); i++) {
        unsigned spi = 63 - i;

        gic_config(spi, true);
        gic_priority(spi, (uint8_t)(0x20 + 8 * i));
        gic_route(spi, cpus[0].mpidr);
        gic_enable(spi);
    }
    for (unsigned i = ARRAY_SIZE(order); i-- > 0;)
        fire(63 - i);
    irq_enable();
    check_true("G06-twelve-spis-arrive", wait_for(irq->total == ARRAY_SIZE(order), 100000));
    irq_disable();
    for (unsigned i = 0; i < ARRAY_SIZE(order); i++)
        right += order[i] == 63 - i;
    check_eq("G06-spis-in-priority-order", right, ARRAY_SIZE(order));
    for (unsigned i = 0; i < ARRAY_SIZE(order); i++)
        gic_disable(63 - i);
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    irq = irq_install();
    uint32_t lines = 32 * ((read32(GICD_BASE + GICD_TYPER) & 31) + 1);

    if (lines < 64)
        die("only %u interrupt lines", lines);
    if (!check_eq("D01-uart-tx-raw-asserted-when-idle", read32(UART_RIS) & UART_TX, UART_TX))
        return;
    line_down();
    for (unsigned i = EDGE; i <= EDGE2; i++) {
        gic_config(i, true);
        gic_route(i, cpus[0].mpidr);
    }
    gic_config(INTID_UART, false);
    gic_route(INTID_UART, cpus[0].mpidr);
    gic_enable(EDGE);
    gic_enable(INTID_UART);
    g01_disable_while_active();
    g06_pending_bookkeeping();
    g06_random();
    g07_raised_while_disabled();
    g12_level_after_eoi();
    g20_timer_with_pending_spi();
    p21_wakes();
    overflow();
}
