/* SPDX-License-Identifier: GPL-2.0-only */
/* The PL011: transmit interrupt (D01), BUSY (D02), level line (D04), register set (D05), P15 load.
 */
#include "irq.h"

const char *const test_name = "uart";

#define DR      0x00u
#define RSR     0x04u
#define FR      0x18u
#define ILPR    0x20u
#define IBRD    0x24u
#define FBRD    0x28u
#define LCR_H   0x2cu
#define CR      0x30u
#define IFLS    0x34u
#define IMSC    0x38u
#define RIS     0x3cu
#define MIS     0x40u
#define ICR     0x44u
#define DMACR   0x48u
#define INT_TX  0x20u
#define FR_BUSY 0x08u
#define FR_RXFE 0x10u
#define FR_TXFE 0x80u

static struct irq_state *irq;

static uint32_t get(unsigned reg) {
    return read32(UART_BASE + reg);
}

static void set(unsigned reg, uint32_t v) {
    write32(UART_BASE + reg, v);
    dsb();
}

static void d05_registers(void) {
    static const uint8_t ids[] = {0x11, 0x10, 0x04, 0x00, 0x0d, 0xf0, 0x05, 0xb1};
    unsigned wrong = 0;

    for (unsigned i = 0; i < 8; i++) {
        /* PeriphID2's upper half is the revision */
        uint32_t mask = i == 2 ? 0x0f : 0xff;

        wrong += (get(0xfe0 + 4 * i) & mask) != ids[i];
    }
    check_eq("D05-primecell-ids", wrong, 0);
    check_eq("D05-fr-idle", get(FR) & (FR_BUSY | FR_RXFE | FR_TXFE), FR_RXFE | FR_TXFE);

    static const struct {
        unsigned reg;
        uint32_t a, b, mask;
        const char *name;
    } rw[] = {
        {IBRD, 0xa5a5, 0x0001, 0xffff, "ibrd"}, {FBRD, 0x2a, 0x15, 0x3f, "fbrd"},
        {LCR_H, 0x70, 0x1e, 0xff, "lcr_h"},     {CR, 0x0301, 0x4b01, 0xff87, "cr"},
        {IFLS, 0x12, 0x24, 0x3f, "ifls"},       {IMSC, 0x7d0, 0x050, 0x7ff, "imsc"},
        {DMACR, 0x4, 0x0, 0x7, "dmacr"},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rw); i++) {
        uint32_t old = get(rw[i].reg);
        char name[32];

        set(rw[i].reg, rw[i].a);
        uint32_t a = get(rw[i].reg);

        set(rw[i].reg, rw[i].b);
        uint32_t b = get(rw[i].reg);

        set(rw[i].reg, old);
        format(name, sizeof(name), "D05-%s-reads-back", rw[i].name);
        check_eq(name, (uint64_t)a << 32 | b,
                 (uint64_t)(rw[i].a & rw[i].mask) << 32 | (rw[i].b & rw[i].mask));
    }
    set(RSR, 0xff);
    check_eq("D05-rsr-cleared", get(RSR) & 0xf, 0);
}

/* How drivers bring the port up; each must leave it working. */
static void d05_init_sequences(void) {
    /* amba-pl011: clear errors and interrupts, baud rate, FIFO on, enable, mask */
    set(ICR, 0xffff);
    set(IFLS, 0x12);
    set(CR, 0);
    set(FBRD, 4);
    set(IBRD, 0xd);
    set(LCR_H, 0x70);
    set(CR, 0x301);
    set(IMSC, 0x50);
    print("# after a Linux-like start\n");
    set(IMSC, 0);
    check_eq("D05-linux-like", get(CR) & 0x301, 0x301);
    /* disable, flush the FIFO by LCR_H, then by fields */
    set(CR, get(CR) & ~1u);
    set(LCR_H, get(LCR_H) & ~0x10u);
    set(IBRD, 1);
    set(FBRD, 0x28);
    set(LCR_H, 0x60);
    set(LCR_H, get(LCR_H) | 0x10);
    set(IMSC, 0);
    set(ICR, 0x7ff);
    set(DMACR, 0);
    set(CR, get(CR) & ~0xf800u);
    set(CR, get(CR) | 0x301);
    print("# after a Zephyr-like start\n");
    check_eq("D05-zephyr-like", get(LCR_H), 0x70);
    set(CR, 0);
    while (get(FR) & FR_BUSY) {
    }
    set(IBRD, 13);
    set(FBRD, 1);
    set(LCR_H, 0x70);
    set(CR, 0x301);
    print("# after a U-Boot-like start\n");
    check_eq("D05-u-boot-like", get(IBRD) << 8 | get(FBRD), 13u << 8 | 1);
    set(CR, 0);
    set(LCR_H, 0x60 | 0x10);
    set(IFLS, 0x24);
    set(CR, 0x301);
    set(IMSC, 0);
    set(ICR, 0x7ff);
    print("# after a FreeBSD-like start\n");
    check_eq("D05-freebsd-like", get(IFLS), 0x24);
    set(IFLS, 0x12);
}

static void d02_busy(void) {
    uint64_t worst = 0;

    print("# ");
    for (unsigned i = 0; i < 40; i++) {
        set(DR, '.');
        uint64_t from = counter();
        bool clear = wait_for(!(get(FR) & FR_BUSY), 1000000);
        uint64_t took = counter() - from;

        worst = !clear ? ~0ul : took > worst ? took : worst;
    }
    print("\n");
    check_range("D02-busy-clears-us", ticks_to_us(worst), 0, bootarg("slack_us", 30100));

    /* earlycon style output: wait for room, write, wait for BUSY (the case: 100 KB) */
    uint32_t lines = (uint32_t)scaled(50), stuck = 0;

    for (uint32_t i = 0; i < lines && !stuck; i++) {
        const char *s = "# earlycon-style line, each character waiting until the port is idle\n";

        for (; *s && !stuck; s++) {
            stuck = !wait_for(!(get(FR) & 0x20), 1000000);
            set(DR, (uint8_t)*s);
            stuck |= !wait_for(!(get(FR) & FR_BUSY), 1000000);
        }
    }
    check_eq("D02-earlycon-output-finishes", stuck, 0);
}

static volatile uint32_t to_send;

static void send_one(uint32_t id) {
    if (id != INTID_UART)
        return;
    if (!to_send) {
        set(IMSC, 0);
        return;
    }
    to_send--;
    if (to_send % 50 == 0)
        set(DR, '\n');
    else
        set(DR, to_send % 50 == 49 ? '#' : '.');
}

static void d01_transmit_interrupt(void) {
    irq_reset(irq);
    gic_enable(INTID_UART);
    set(IMSC, 0);
    check_eq("D01-raw-when-idle", get(RIS) & INT_TX, INT_TX);
    set(IMSC, INT_TX);
    check_eq("D01-mis-at-once", get(MIS), INT_TX);
    check_true("D01-line-at-once", wait_for(read_sysreg(isr_el1) & 0x80, 10000));
    set(IMSC, 0);

    uint64_t from = counter();

    to_send = 1000;
    irq->during = send_one;
    irq->limit = 100000;
    set(IMSC, INT_TX);
    irq_enable();
    bool all = wait_for(to_send == 0, 1000000);

    spin_us(100);
    irq_disable();
    set(IMSC, 0);
    check_eq("D01-1000-bytes-by-interrupt", all ? 0 : to_send, 0);
    check_range("D01-in-less-than-1s-us", ticks_to_us(counter() - from), 0, 1000000);

    /* clear lowers the line; the next byte raises it again, each time */
    uint32_t missed = 0, kept = 0;

    print("# ");
    for (unsigned i = 0; i < 50; i++) {
        set(ICR, INT_TX);
        set(IMSC, INT_TX);
        kept += get(RIS) & INT_TX ? 1 : 0;
        set(DR, '.');
        missed += !wait_for(get(MIS) == INT_TX, 100000);
        set(IMSC, 0);
    }
    print("\n");
    check_eq("D01-each-byte-raises-after-clear", missed, 0);
    tap_note("TX interrupt after clear with an empty FIFO: %s",
             kept ? "stays" : "low until a byte");
}

static void d04_line(void) {
    struct rng r = {4242};
    uint32_t wrong_mis = 0, wrong_line = 0, rounds = (uint32_t)scaled(1500);

    irq_disable();
    gic_disable(INTID_UART);
    gic_set(INTID_UART, GICD_ICPENDR);
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t x = rng_next(&r);
        uint32_t v = (uint32_t)(x >> 32) & 0x7ff;

        switch (x % 6) {
        case 0:
        case 1:
            set(IMSC, v);
            break;
        case 2:
            set(ICR, v);
            break;
        case 3:
            set(IFLS, v & 0x24);
            break;
        case 4:
            set(LCR_H, 0x60 | (v & 0x10));
            break;
        case 5:
            (void)get(v & 1 ? FR : MIS);
            break;
        }
        uint32_t raw = get(RIS), mask = get(IMSC), masked = get(MIS);

        wrong_mis += masked != (raw & mask);
        wrong_line += gic_get(INTID_UART, GICD_ISPENDR) != (masked != 0);
    }
    check_eq("D04-mis-is-raw-and-mask", wrong_mis, 0);
    check_eq("D04-line-is-mis", wrong_line, 0);
    set(LCR_H, 0x70);
    set(IFLS, 0x12);
    set(IMSC, 0x7ff);
    set(ICR, 0x7ff);
    check_true("D04-clear-lowers", gic_get(INTID_UART, GICD_ISPENDR) == (get(RIS) != 0));
    set(IMSC, 0);
    check_true("D04-mask-lowers", !gic_get(INTID_UART, GICD_ISPENDR));
    /* reading an empty receiver gives something and no interrupt */
    exc_expect();
    (void)get(DR);
    check_eq("D04-read-of-empty-receiver", exc_end().count, 0);
    check_eq("D04-no-receive-interrupt", get(RIS) & 0x50, 0);
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    irq = irq_install();
    gic_config(INTID_UART, false);
    gic_route(INTID_UART, cpus[0].mpidr);
    d05_registers();
    d05_init_sequences();
    d01_transmit_interrupt();
    d04_line();
    d02_busy();
}
