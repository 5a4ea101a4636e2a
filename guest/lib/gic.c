/* SPDX-License-Identifier: GPL-2.0-only */
/* GICv3: what the tests need of distributor, redistributors and CPU interface. */
#include "guest.h"

uint64_t gic_redist[MAX_CPUS];
unsigned gic_frames;

#define RWP_DIST (1u << 31)

static void wait_rwp(uint64_t addr, uint32_t bit) {
    while (read32(addr) & bit) {
    }
}

/* Walks all redistributor regions that the device tree names. */
static void find_redists(void) {
    int node = -1;
    uint32_t len = 0;

    for (unsigned i = 0; node < 0 && fdt_find("/intc", i) >= 0; i++)
        node = fdt_find("/intc", i);
    if (node < 0)
        node = fdt_find("/interrupt-controller", 0);
    const uint8_t *reg = fdt_prop(node, "reg", &len);

    if (!fdt_compatible(node, "arm,gic-v3"))
        die("no GICv3 in the device tree");
    uint32_t regions = fdt_u32(node, "#redistributor-regions", 0, 1);

    for (uint32_t r = 0; r < regions && 16 * (r + 2) <= len; r++) {
        uint64_t base = fdt_cells(reg + (size_t)16 * (r + 1), 2);
        uint64_t end = base + fdt_cells(reg + (size_t)16 * (r + 1) + 8, 2);
        uint64_t typer;

        do {
            typer = read64(base + GICR_TYPER);
            uint64_t aff = (typer >> 32 & 0xffffff) | (typer >> 56) << 32;

            gic_frames++;
            for (unsigned i = 0; i < cpu_count; i++) {
                if (cpus[i].mpidr == aff)
                    gic_redist[i] = base;
            }
            base += 0x20000;
        } while (!(typer & 0x10) && base < end);
    }
}

void gic_init(void) {
    find_redists();
    write32(GICD_BASE + GICD_CTLR, 0);
    wait_rwp(GICD_BASE + GICD_CTLR, RWP_DIST);
    uint32_t lines = 32 * ((read32(GICD_BASE + GICD_TYPER) & 31) + 1);

    if (lines > 1020)
        lines = 1020;
    for (unsigned i = 32; i < lines; i += 32) {
        write32(gic_reg(i, GICD_ICENABLER), ~0u);
        write32(gic_reg(i, GICD_ICPENDR), ~0u);
        write32(gic_reg(i, GICD_ICACTIVER), ~0u);
        write32(gic_reg(i, GICD_IGROUPR), ~0u);
    }
    for (unsigned i = 32; i < lines; i++)
        gic_priority(i, 0xa0);
    wait_rwp(GICD_BASE + GICD_CTLR, RWP_DIST);
    /* ARE, and with it group 1 (DS = 1: bit 1; a non-secure view of two states: bit 1 too) */
    write32(GICD_BASE + GICD_CTLR, 0x10 | 0x2);
    wait_rwp(GICD_BASE + GICD_CTLR, RWP_DIST);
}

void gic_cpu_init(void) {
    struct cpu *c = this_cpu();
    uint64_t rd = gic_redist[c->index];

    if (!rd)
        die("no redistributor for cpu %u", c->index);
    c->gicr = rd;
    write32(rd + GICR_WAKER, 0);
    if (!wait_for(!(read32(rd + GICR_WAKER) & 4), 1000000))
        die("redistributor of cpu %u does not wake", c->index);
    write32(rd + GICR_SGI + GICD_ICENABLER, ~0u);
    write32(rd + GICR_SGI + GICD_ICPENDR, ~0u);
    write32(rd + GICR_SGI + GICD_ICACTIVER, ~0u);
    write32(rd + GICR_SGI + GICD_IGROUPR, ~0u);
    for (unsigned i = 0; i < 32; i++)
        gic_priority(i, 0xa0);
    wait_rwp(rd + GICR_CTLR, 1u << 3);
    write_sysreg(icc_sre_el1, 7);
    isb();
    write_sysreg(icc_pmr_el1, 0xff);
    write_sysreg(icc_bpr1_el1, 0);
    write_sysreg(icc_ctlr_el1, 0);
    write_sysreg(icc_igrpen1_el1, 1);
    isb();
}

uint64_t gic_reg(unsigned intid, unsigned block) {
    uint64_t base = intid < 32 ? gic_redist[this_cpu()->index] + GICR_SGI : GICD_BASE;

    return base + block + 4ul * (intid / 32);
}

void gic_set(unsigned intid, unsigned block) {
    write32(gic_reg(intid, block), 1u << (intid % 32));
    dsb();
}

bool gic_get(unsigned intid, unsigned block) {
    return read32(gic_reg(intid, block)) >> (intid % 32) & 1;
}

void gic_priority(unsigned intid, uint8_t priority) {
    uint64_t base = intid < 32 ? gic_redist[this_cpu()->index] + GICR_SGI : GICD_BASE;

    write8(base + GICD_IPRIORITYR + intid, priority);
}

void gic_config(unsigned intid, bool edge) {
    uint64_t base = intid < 32 ? gic_redist[this_cpu()->index] + GICR_SGI : GICD_BASE;
    uint64_t addr = base + GICD_ICFGR + 4ul * (intid / 16);
    uint32_t bit = 2u << (intid % 16 * 2), v = read32(addr);

    write32(addr, edge ? v | bit : v & ~bit);
}

void gic_route(unsigned spi, uint64_t mpidr) {
    write64(GICD_BASE + GICD_IROUTER + 8ul * spi, mpidr);
}

void gic_enable(unsigned intid) {
    gic_set(intid, GICD_ISENABLER);
}

void gic_disable(unsigned intid) {
    gic_set(intid, GICD_ICENABLER);
    if (intid >= 32)
        wait_rwp(GICD_BASE + GICD_CTLR, RWP_DIST);
    else
        wait_rwp(gic_redist[this_cpu()->index] + GICR_CTLR, 1u << 3);
}

void gic_sgi(unsigned sgi, uint64_t mpidr) {
    uint64_t v = (mpidr >> 32 & 0xff) << 48 | (mpidr >> 16 & 0xff) << 32 | (uint64_t)sgi << 24 |
                 (mpidr >> 8 & 0xff) << 16 | (mpidr >> 4 & 0xf) << 44 | 1ul << (mpidr & 0xf);

    __asm__ volatile("dsb ishst" : : : "memory");
    write_sysreg(icc_sgi1r_el1, v);
    isb();
}

void gic_sgi_self(unsigned sgi) {
    gic_sgi(sgi, cpus[this_cpu()->index].mpidr);
}
