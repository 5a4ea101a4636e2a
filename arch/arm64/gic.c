/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/gic.h"

#include "arch/arm64/host.h"
#include "arch/arm64/mmio.h"
#include "arch/arm64/mmu.h"
#include "arch/arm64/sysreg_access.h"
#include "hyp/arch.h"
#include "hyp/console.h"

/* Register offsets: IHI 0069 12.8, 12.10. */
#define GICD_CTLR       0x0000u
#define GICD_TYPER      0x0004u
#define GICD_IGROUPR    0x0080u
#define GICD_ISENABLER  0x0100u
#define GICD_ICENABLER  0x0180u
#define GICD_IPRIORITYR 0x0400u
#define GICD_IROUTER    0x6000u
#define CTLR_RWP        (1u << 31)
#define CTLR_DS         (1u << 6)
/* With DS = 1: EnableGrp0, EnableGrp1, ARE; with DS = 0, as we see it: EnableGrp1A is bit 1, ARE_NS
 * bit 4. */
#define CTLR_ENABLE ((1u << 1) | (1u << 4))

#define GICR_TYPER     0x0008u
#define GICR_WAKER     0x0014u
#define WAKER_SLEEP    (1u << 1)
#define WAKER_ASLEEP   (1u << 2)
#define TYPER_LAST     (1u << 4)
#define TYPER_VLPIS    (1u << 1)
#define FRAME          0x10000u
#define SGI_IGROUPR    (FRAME + 0x080u)
#define SGI_ISENABLER  (FRAME + 0x100u)
#define SGI_ICENABLER  (FRAME + 0x180u)
#define SGI_ISACTIVER  (FRAME + 0x300u)
#define SGI_ICACTIVER  (FRAME + 0x380u)
#define SGI_IPRIORITYR (FRAME + 0x400u)

#define PRIORITY 0x80808080u
#define EOIMODE  (1u << 1) /* ICC_CTLR_EL1.EOImode: drop and deactivate are two things */

static void wait_for_distributor(void) {
    while ((mmio_read32(host.gicd + GICD_CTLR) & CTLR_RWP) != 0) {
    }
}

void gic_init(void) {
    mmu_map(host.gicd, host.gicd_size, MMU_DEVICE, false);
    for (unsigned i = 0; i < host.gicr_regions; i++) {
        mmu_map(host.gicr[i].base, host.gicr[i].size, MMU_DEVICE, false);
    }
    uint64_t d = host.gicd;
    unsigned lines = 32u * ((mmio_read32(d + GICD_TYPER) & 31u) + 1u);

    mmio_write32(d + GICD_CTLR, 0);
    wait_for_distributor();
    for (unsigned i = 32; i < lines; i += 32) {
        mmio_write32(d + GICD_ICENABLER + i / 8, ~0u);
        mmio_write32(d + GICD_IGROUPR + i / 8, ~0u);
    }
    for (unsigned i = 32; i < lines; i += 4) {
        mmio_write32(d + GICD_IPRIORITYR + i, PRIORITY);
    }
    wait_for_distributor();
    mmio_write32(d + GICD_CTLR, CTLR_ENABLE);
    wait_for_distributor();
}

/* The redistributor whose affinity is this pCPU's (GICR_TYPER bits 63:32). */
static uint64_t find_redistributor(uint64_t mpidr) {
    uint64_t affinity = (mpidr >> 32 & 0xff) << 24 | (mpidr & 0xffffff);

    for (unsigned i = 0; i < host.gicr_regions; i++) {
        uint64_t at = host.gicr[i].base, typer;
        do {
            typer = mmio_read64(at + GICR_TYPER);
            if (typer >> 32 == affinity) {
                return at;
            }
            at += (typer & TYPER_VLPIS) != 0 ? 4 * FRAME : 2 * FRAME;
        } while ((typer & TYPER_LAST) == 0 && at < host.gicr[i].base + host.gicr[i].size);
    }
    panic("interrupt controller: found no redistributor for the CPU with MPIDR %lx", mpidr);
}

void gic_cpu_init(struct pcpu *p) {
    uint64_t r = find_redistributor(p->arch.mpidr);
    uint32_t ours = 1u << GIC_SGI_KICK | 1u << GIC_SGI_TRACE | 1u << GIC_PPI_MAINTENANCE |
                    1u << GIC_PPI_HYP_TIMER | 1u << GIC_PPI_VTIMER;

    p->arch.gicr = r;
    p->arch.lrs = ~0u; /* what firmware left in them is not known */
    mmio_write32(r + GICR_WAKER, mmio_read32(r + GICR_WAKER) & ~WAKER_SLEEP);
    while ((mmio_read32(r + GICR_WAKER) & WAKER_ASLEEP) != 0) {
    }
    mmio_write32(r + SGI_ICENABLER, ~0u);
    mmio_write32(r + SGI_ICACTIVER, ~0u);
    mmio_write32(r + SGI_IGROUPR, ~0u);
    for (unsigned i = 0; i < 32; i += 4) {
        mmio_write32(r + SGI_IPRIORITYR + i, PRIORITY);
    }
    mmio_write32(r + SGI_ISENABLER, ours);

    write_sysreg(S3_4_C12_C9_5,
                 read_sysreg(S3_4_C12_C9_5) | 1u | 8u); /* ICC_SRE_EL2: SRE, Enable */
    isb();
    write_sysreg(S3_0_C4_C6_0, 0xff);      /* ICC_PMR_EL1: all priorities */
    write_sysreg(S3_0_C12_C12_4, EOIMODE); /* ICC_CTLR_EL1 */
    write_sysreg(S3_0_C12_C12_7, 1);       /* ICC_IGRPEN1_EL1 */
    isb();
}

void gic_enable_spi(unsigned intid) {
    if (intid < 32) {
        return;
    }
    uint64_t mpidr = pcpus[0]->arch.mpidr;
    mmio_write64(host.gicd + GICD_IROUTER + 8ull * intid, mpidr);
    mmio_write32(host.gicd + GICD_ISENABLER + intid / 32 * 4, 1u << (intid % 32));
}

unsigned gic_acknowledge(void) {
    unsigned intid = (unsigned)read_sysreg(S3_0_C12_C12_0) & 0xffffffu; /* ICC_IAR1_EL1 */
    if (intid < GIC_SPURIOUS) {
        write_sysreg(S3_0_C12_C12_1, intid); /* ICC_EOIR1_EL1: priority drop only */
    }
    return intid;
}

void gic_deactivate(unsigned intid) {
    write_sysreg(S3_0_C12_C11_1, intid); /* ICC_DIR_EL1 */
}

void gic_set_ppi_active(unsigned intid, bool active) {
    mmio_write32(this_pcpu()->arch.gicr + (active ? SGI_ISACTIVER : SGI_ICACTIVER), 1u << intid);
}

uint64_t gic_kick_value(uint64_t mpidr) {
    uint64_t aff0 = mpidr & 0xff;
    /* ICC_SGI1R_EL1 (12.2.19): Aff3 55:48, RS 47:44, Aff2 39:32, INTID 27:24, Aff1 23:16, targets.
     */
    return (mpidr >> 32 & 0xff) << 48 | (aff0 / 16) << 44 | (mpidr >> 16 & 0xff) << 32 |
           (uint64_t)GIC_SGI_KICK << 24 | (mpidr >> 8 & 0xff) << 16 | 1u << (aff0 % 16);
}

void gic_kick(const struct pcpu *p) {
    gic_send_sgi(p, GIC_SGI_KICK);
}

void gic_send_sgi(const struct pcpu *p, unsigned intid) {
    __asm__ volatile("dsb ishst" : : : "memory"); /* what it is to see comes first */
    write_sysreg(S3_0_C12_C11_5, p->arch.kick + ((uint64_t)(intid - GIC_SGI_KICK) << 24));
    isb();
}
