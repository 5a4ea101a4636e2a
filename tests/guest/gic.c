/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interrupt controller as one CPU sees it: SGIs, PPIs, redistributor handshake, groups,
 * register file. SPIs are in gic_spi.c, more CPUs in smp.c.
 */
#include "irq.h"

const char *const test_name = "gic";

#define RD        (this_cpu()->gicr)
#define SGI_FRAME (RD + GICR_SGI)
#define QUIET_US  200

static struct irq_state *irq;

/* All 16 SGIs to self, in groups 0 and 1, enabled and disabled. */
static void g10_all_sgis(void) {
    unsigned wrong = 0, fiq_wrong = 0;

    write_sysreg(icc_igrpen0_el1, 1);
    write32(GICD_BASE + GICD_CTLR, read32(GICD_BASE + GICD_CTLR) | 3);
    for (unsigned group = 0; group < 2; group++) {
        write32(SGI_FRAME + GICD_IGROUPR, group ? ~0u : 0xffff0000);
        for (unsigned i = 0; i < 16; i++) {
            irq_reset(irq);
            /* disabled: pending only */
            gic_disable(i);
            uint64_t value = 1ul << (cpus[0].mpidr & 15) | (uint64_t)i << 24;

            if (group)
                write_sysreg(icc_sgi1r_el1, value);
            else
                write_sysreg(icc_sgi0r_el1, value);
            isb();
            irq_enable();
            fiq_enable();
            spin_us(5);
            if (irq->total || irq->fiqs || !gic_get(i, GICD_ISPENDR))
                wrong++;
            gic_enable(i);
            if (group)
                wrong += !wait_for(irq->total == 1 && irq->count[i] == 1, 100000);
            else
                fiq_wrong += !wait_for(irq->fiqs == 1 && irq->fiq_last == i, 100000);
            spin_us(5);
            wrong += irq->total + irq->fiqs != 1 || gic_get(i, GICD_ISPENDR);
            irq_disable();
            fiq_disable();
            gic_disable(i);
        }
    }
    check_eq("G10-all-sgis-to-self", wrong, 0);
    check_eq("G10-group-0-sgis-as-fiq", fiq_wrong, 0);
    write32(SGI_FRAME + GICD_IGROUPR, ~0u);
    write_sysreg(icc_igrpen0_el1, 0);
    isb();
    write32(GICD_BASE + GICD_CTLR, read32(GICD_BASE + GICD_CTLR) & ~1u);
}

static void g15_waker(void) {
    unsigned wrong = 0;

    write_sysreg(icc_igrpen1_el1, 0);
    isb();
    for (unsigned i = 0; i < cpu_count; i++) {
        uint64_t waker = gic_redist[i] + GICR_WAKER;
        uint32_t first = read32(waker);

        uint64_t other = gic_redist[(i + 1) % cpu_count] + GICR_WAKER;
        uint32_t others = read32(other);

        write32(waker, 2);
        wrong += !wait_for((read32(waker) & 6) == 6, 1000);
        wrong += cpu_count > 1 && read32(other) != others;
        write32(waker, 0);
        wrong += !wait_for((read32(waker) & 6) == 0, 1000);
        wrong += cpu_count > 1 && read32(other) != others;
        write32(waker, first);
    }
    check_eq("G15-waker-handshake", wrong, 0);
    write32(RD + GICR_WAKER, 0);
    write_sysreg(icc_igrpen1_el1, 1);
    isb();
}

/* Drivers initialise with all-ones and all-zero writes. */
static void g17_bulk_writes(void) {
    static const struct {
        unsigned block;
        const char *name;
        uint32_t sgi_zero, sgi_ones; /* expected after the writes, where it is defined */
        bool exact;
    } blocks[] = {
        {GICD_ICENABLER, "icenabler", 0, 0, true},
        {GICD_ICPENDR, "icpendr", 0, 0, false},
        {GICD_ICACTIVER, "icactiver", 0, 0, true},
        {GICD_IGROUPR, "igroupr", 0, ~0u, true},
    };
    char name[48];

    irq_disable();
    for (unsigned b = 0; b < ARRAY_SIZE(blocks); b++) {
        exc_expect();
        for (unsigned i = 0; i < 64; i += 32) {
            write32(gic_reg(i, blocks[b].block), 0);
            write32(gic_reg(i, blocks[b].block), ~0u);
        }
        format(name, sizeof(name), "G17-%s-no-exception", blocks[b].name);
        check_eq(name, exc_end().count, 0);
        if (!blocks[b].exact)
            continue;
        format(name, sizeof(name), "G17-%s-ones", blocks[b].name);
        check_eq(name, read32(gic_reg(0, blocks[b].block)) & 0xffff, blocks[b].sgi_ones & 0xffff);
        format(name, sizeof(name), "G17-%s-spi-ones", blocks[b].name);
        check_eq(name, read32(gic_reg(32, blocks[b].block)), blocks[b].sgi_ones);
    }
    exc_expect();
    for (unsigned i = 0; i < 64; i += 4) {
        uint64_t base = i < 32 ? SGI_FRAME : GICD_BASE;

        write32(base + GICD_IPRIORITYR + i, 0);
        write32(base + GICD_IPRIORITYR + i, ~0u);
    }
    uint32_t ones = read32(GICD_BASE + GICD_IPRIORITYR + 32);

    check_eq("G17-ipriorityr-no-exception", exc_end().count, 0);
    check_true("G17-ipriorityr-has-5-bits", (ones & 0xf8f8f8f8) == 0xf8f8f8f8);
    for (unsigned i = 0; i < 64; i++)
        gic_priority(i, 0xa0);
    check_eq("G17-ipriorityr-by-byte", read32(GICD_BASE + GICD_IPRIORITYR + 60), 0xa0a0a0a0);

    uint32_t old = read32(GICD_BASE + GICD_ICFGR + 12);

    exc_expect();
    for (unsigned i = 0; i < 4; i++) {
        uint64_t base = i < 2 ? SGI_FRAME : GICD_BASE;

        write32(base + GICD_ICFGR + 4 * i, 0);
        write32(base + GICD_ICFGR + 4 * i, ~0u);
    }
    check_eq("G17-icfgr-no-exception", exc_end().count, 0);
    check_eq("G17-icfgr-sgis-edge", read32(SGI_FRAME + GICD_ICFGR), 0xaaaaaaaa);
    check_eq("G17-icfgr-spis-edge", read32(GICD_BASE + GICD_ICFGR + 12), 0xaaaaaaaa);
    write32(GICD_BASE + GICD_ICFGR + 8, 0);
    write32(GICD_BASE + GICD_ICFGR + 12, old);
    write32(SGI_FRAME + GICD_ICFGR + 4, 0);
}

/* A pending interrupt of a disabled group is not acknowledged and blocks nobody. */
static void g19_group_gating(void) {
    irq_reset(irq);
    write32(SGI_FRAME + GICD_IGROUPR, ~1u);
    gic_priority(0, 0x10);
    write_sysreg(icc_igrpen0_el1, 0);
    isb();
    gic_set(0, GICD_ISENABLER);
    write32(SGI_FRAME + GICD_ISENABLER, 0xffff);
    write_sysreg(icc_sgi0r_el1, 1ul << (cpus[0].mpidr & 15));
    for (unsigned i = 1; i < 16; i++)
        gic_sgi_self(i);
    irq_enable();
    fiq_enable();
    check_true("G19-group-1-sgis-arrive", wait_for(irq->total == 15, 100000));
    unsigned once = 0;

    for (unsigned i = 1; i < 16; i++)
        once += irq->count[i] == 1;
    check_eq("G19-each-once", once, 15);
    check_eq("G19-sgi0-not-taken", irq->fiqs + irq->count[0], 0);
    check_true("G19-sgi0-still-pending", gic_get(0, GICD_ISPENDR));
    irq_disable();
    fiq_disable();
    check_eq("G19-iar1-spurious", gic_iar1(), INTID_NONE);
    write32(GICD_BASE + GICD_CTLR, read32(GICD_BASE + GICD_CTLR) | 1);
    write_sysreg(icc_igrpen0_el1, 1);
    isb();
    check_true("G19-fiq-shown", wait_for(read_sysreg(isr_el1) & 0x40, 100000));
    fiq_enable();
    check_true("G19-group-0-arrives-as-fiq", wait_for(irq->fiqs == 1, 100000));
    check_eq("G19-group-0-intid", irq->fiq_last, 0);
    fiq_disable();
    write_sysreg(icc_igrpen0_el1, 0);
    write32(GICD_BASE + GICD_CTLR, read32(GICD_BASE + GICD_CTLR) & ~1u);
    write32(SGI_FRAME + GICD_IGROUPR, ~0u);
    gic_priority(0, 0xa0);
}

static volatile uint32_t order[16];

static void note_order(uint32_t id) {
    if (irq->total <= 16)
        order[irq->total - 1] = id;
}

/* More pending than there are list registers, each with its own priority: highest first. */
static void g19_priority_order(void) {
    irq_reset(irq);
    irq->during = note_order;
    irq_disable();
    for (unsigned i = 0; i < 16; i++) {
        gic_priority(i, (uint8_t)(0xf0 - 8 * i)); /* SGI 15 is the most urgent */
        gic_sgi_self(i);
    }
    write_sysreg(icc_pmr_el1, 0xb8); /* lets only SGIs 8..15 through (priority < 0xb8) */
    isb();
    irq_enable();
    wait_for(irq->total >= 8, 100000);
    spin_us(QUIET_US);
    check_eq("G06-pmr-holds-back", irq->total, 8);
    write_sysreg(icc_pmr_el1, 0xff);
    isb();
    check_true("G06-more-than-list-registers", wait_for(irq->total == 16, 100000));
    irq_disable();
    unsigned right = 0;

    for (unsigned i = 0; i < 16; i++)
        right += order[i] == 15 - i;
    check_eq("G06-priority-order", right, 16);
    for (unsigned i = 0; i < 16; i++)
        gic_priority(i, 0xa0);
    irq->during = NULL;
}

/* Nested: a more urgent SGI interrupts the handler of another one when that handler lets it. */
static void urgent_inside(uint32_t id) {
    if (id != 1)
        return;
    gic_sgi_self(3); /* same priority: waits */
    gic_sgi_self(2); /* more urgent: now */
    irq_enable();
    wait_for(irq->count[2] == 1, 100000);
    spin_us(20);
    irq_disable();
    order[0] = irq->count[2];
    order[1] = irq->count[3];
    order[2] = (uint32_t)read_sysreg(icc_rpr_el1);
}

static void nested(void) {
    irq_reset(irq);
    irq->during = urgent_inside;
    gic_priority(2, 0x40);
    gic_sgi_self(1);
    irq_enable();
    wait_for(irq->count[3] == 1, 100000);
    irq_disable();
    check_eq("G06-nested-urgent-taken", order[0], 1);
    check_eq("G06-nested-equal-waits", order[1], 0);
    check_eq("G06-nested-running-priority", order[2], 0xa0);
    check_eq("G06-nested-equal-after", irq->count[3], 1);
    check_eq("G06-idle-priority-after", read_sysreg(icc_rpr_el1) & 0xff, 0xff);
    irq->during = NULL;
    gic_priority(2, 0xa0);
}

/* ---- G04: which registers change by a write ---- */

enum { BLOCKS = 9, MAX_REGS = 160 };

struct reg {
    uint64_t addr;
    unsigned block, intid;
};

static struct reg regs[MAX_REGS];
static unsigned reg_count;
static uint32_t before[MAX_REGS];

static const unsigned block_offset[BLOCKS] = {
    GICD_IGROUPR,   GICD_ISENABLER, GICD_ICENABLER,  GICD_ISPENDR, GICD_ICPENDR,
    GICD_ISACTIVER, GICD_ICACTIVER, GICD_IPRIORITYR, GICD_ICFGR,
};

static void list_registers(void) {
    reg_count = 0;
    for (unsigned b = 0; b < BLOCKS; b++) {
        unsigned per = b < 7 ? 32 : b == 7 ? 4 : 16;

        for (unsigned i = 0; i < 64; i += per) {
            uint64_t base = i < 32 ? SGI_FRAME : GICD_BASE;

            regs[reg_count++] = (struct reg){base + block_offset[b] + 4ul * (i / per), b, i};
        }
    }
    for (unsigned i = 60; i < 64; i++)
        regs[reg_count++] = (struct reg){GICD_BASE + GICD_IROUTER + 8ul * i, 9, i};
}

/* Set and clear registers of the same kind show the same bits. */
static bool same_state(const struct reg *a, const struct reg *b) {
    if (a->intid != b->intid)
        return false;
    if (a->block == b->block)
        return true;
    return a->block >= 1 && a->block <= 6 && b->block <= 6 &&
           (a->block + 1) / 2 == (b->block + 1) / 2;
}

static void g04_register_walk(void) {
    unsigned strange = 0, dead = 0;

    irq_disable();
    write_sysreg(icc_igrpen1_el1, 0);
    isb();
    list_registers();
    for (unsigned r = 0; r < reg_count; r++) {
        /* SGI configuration is fixed, and a level PPI's pending bit may be its line. */
        uint32_t pattern = regs[r].block == 7 ? 0x20406080 : regs[r].block == 9 ? 0 : 0x80002a08;

        if (regs[r].block == 8)
            pattern = 0xa0a0aaaa;
        for (unsigned i = 0; i < reg_count; i++)
            before[i] = read32(regs[i].addr);
        /* Clearing registers need something to clear: their setting twin comes two before. */
        if (regs[r].block == 2 || regs[r].block == 4 || regs[r].block == 6) {
            write32(regs[r - 2].addr, pattern);
            for (unsigned i = 0; i < reg_count; i++)
                before[i] = read32(regs[i].addr);
        }
        write32(regs[r].addr, pattern);
        dsb();
        bool moved = false;

        for (unsigned i = 0; i < reg_count; i++) {
            if (read32(regs[i].addr) == before[i])
                continue;
            if (same_state(&regs[r], &regs[i])) {
                moved = true;
            } else if (strange++ < 4) {
                tap_note("write of 0x%x to 0x%lx changed 0x%lx: 0x%x", pattern, regs[r].addr,
                         regs[i].addr, before[i]);
            }
        }
        if (!moved && regs[r].block != 9 && !(regs[r].block == 8 && regs[r].intid < 32) &&
            !(regs[r].block == 0 && before[r] == pattern)) {
            if (dead++ < 4)
                tap_note("write of 0x%x to 0x%lx changed nothing (0x%x)", pattern, regs[r].addr,
                         before[r]);
        }
    }
    check_eq("G04-only-documented-registers-change", strange, 0);
    check_eq("G04-each-register-is-wired", dead, 0);
}

/* Active bits; then all is as before the walk again. */
static void g04_active_bits(void) {
    write32(SGI_FRAME + GICD_ICACTIVER, ~0u);
    write32(SGI_FRAME + GICD_ISACTIVER, 0x04008081);
    check_eq("G04-isactiver0", read32(SGI_FRAME + GICD_ISACTIVER), 0x04008081);
    write32(SGI_FRAME + GICD_ICACTIVER, 0x00008000);
    check_eq("G04-icactiver0", read32(SGI_FRAME + GICD_ISACTIVER), 0x04000081);
    write32(SGI_FRAME + GICD_ICACTIVER, ~0u);
    for (unsigned i = 0; i < 64; i += 32) {
        write32(gic_reg(i, GICD_ICENABLER), ~0u);
        write32(gic_reg(i, GICD_ICPENDR), ~0u);
        write32(gic_reg(i, GICD_ICACTIVER), ~0u);
        write32(gic_reg(i, GICD_IGROUPR), ~0u);
    }
    for (unsigned i = 0; i < 64; i++)
        gic_priority(i, 0xa0);
    write32(GICD_BASE + GICD_ICFGR + 8, 0);
    write32(GICD_BASE + GICD_ICFGR + 12, 0);
    write32(SGI_FRAME + GICD_ICFGR + 4, 0);
    write_sysreg(icc_igrpen1_el1, 1);
    isb();
}

static void identification(void) {
    check_eq("G14-gicd-pidr2-arch-3", read32(GICD_BASE + GICD_PIDR2) >> 4 & 0xf, 3);
    check_eq("G14-gicr-pidr2-arch-3", read32(RD + GICD_PIDR2) >> 4 & 0xf, 3);
    check_eq("G14-gicd-ds", read32(GICD_BASE + GICD_CTLR) >> 6 & 1, 1);
    check_eq("G14-gicd-are", read32(GICD_BASE + GICD_CTLR) >> 4 & 1, 1);
    if (native()) {
        tap_skip("G14-no-lpis", "the emulator's own controller has LPIs");
    } else {
        check_eq("G14-no-lpis", read32(GICD_BASE + GICD_TYPER) >> 17 & 1, 0);
        check_eq("G14-no-plpis", read64(RD + GICR_TYPER) & 1, 0);
    }
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    irq = irq_install();
    identification();
    g15_waker();
    g10_all_sgis();
    g19_group_gating();
    g19_priority_order();
    nested();
    g17_bulk_writes();
    g04_register_walk();
    g04_active_bits();
    /* The controller still works after all that. */
    irq_reset(irq);
    gic_set(5, GICD_ISENABLER);
    gic_sgi_self(5);
    irq_enable();
    check_true("G04-sgi-works-afterwards", wait_for(irq->count[5] == 1, 100000));
    irq_disable();
}
