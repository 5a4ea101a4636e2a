/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The allow-list. Field names and values: Arm ARM DDI 0487, D24.2, under the registers' names.
 *
 * Not in the list, hence hidden (and trapped by el2_state.c where that can be): SVE, SME, MTE, the
 * PMU, SPE, TRBE, BRBE, MPAM, AMU, RAS, S1PIE, S1POE, TCR2, SCTLR2, FPMR, GCS, NV, VHE, MOPS,
 * LORegions, SCXTNUM (CSV2_2), NMI, TME, LS64, D128, THE, CPA, HAFT, EL2 and EL3, FGT, CNTPOFF,
 * WFxT.
 */
#include "arch/arm64/id_regs.h"

#include <stdatomic.h>

/* How a field is shown. */
enum kind {
    UNSIGNED, /* hardware's value, at most `limit`; the smallest of all pCPUs */
    SIGNED,   /* the same, as a number -8..7 */
    CONSTANT, /* always `limit` */
};

struct id_field {
    uint8_t reg; /* REG(crm, op2) */
    uint8_t shift;
    uint8_t kind;
    uint8_t limit;
};

#define REG(crm, op2) (uint8_t)((crm) << 3 | (op2))
#define REGS          64u
#define UP_TO(crm, op2, shift, limit)                                                              \
    { REG(crm, op2), shift, UNSIGNED, limit }
#define AT_MOST(crm, op2, shift, limit)                                                            \
    { REG(crm, op2), shift, SIGNED, limit }
#define ALWAYS(crm, op2, shift, value)                                                             \
    { REG(crm, op2), shift, CONSTANT, value }

/* A register of AArch32, where nothing new will come: as it is. */
#define WHOLE(crm, op2)                                                                            \
    UP_TO(crm, op2, 0, 15), UP_TO(crm, op2, 4, 15), UP_TO(crm, op2, 8, 15),                        \
        UP_TO(crm, op2, 12, 15), UP_TO(crm, op2, 16, 15), UP_TO(crm, op2, 20, 15),                 \
        UP_TO(crm, op2, 24, 15), UP_TO(crm, op2, 28, 15)

static const struct id_field fields[] = {
    /* ID_AA64PFR0_EL1 */
    UP_TO(4, 0, 0, 2),    /* EL0: AArch32 too, if there */
    ALWAYS(4, 0, 4, 1),   /* EL1: AArch64 only; no EL2, no EL3 */
    AT_MOST(4, 0, 16, 1), /* FP: 15 is "none" */
    AT_MOST(4, 0, 20, 1), /* AdvSIMD */
    UP_TO(4, 0, 24, 1),   /* GIC: v3 registers, not v4.1 */
    UP_TO(4, 0, 48, 1),   /* DIT */
    UP_TO(4, 0, 56, 1),   /* CSV2: 2 would have SCXTNUM */
    UP_TO(4, 0, 60, 1),   /* CSV3 */
    /* ID_AA64PFR1_EL1 */
    UP_TO(4, 1, 0, 1),  /* BT: branch targets */
    UP_TO(4, 1, 4, 2),  /* SSBS, with its PSTATE bit */
    UP_TO(4, 1, 32, 1), /* CSV2_frac: 2 would have SCXTNUM */
    /* ID_AA64DFR0_EL1 */
    UP_TO(5, 0, 0, 8),    /* DebugVer: up to Armv8.2, which debug.c does */
    UP_TO(5, 0, 12, 15),  /* BRPs */
    UP_TO(5, 0, 20, 15),  /* WRPs */
    UP_TO(5, 0, 28, 15),  /* CTX_CMPs */
    ALWAYS(5, 0, 36, 15), /* DoubleLock: none */
    /* ID_AA64ISAR0_EL1: instructions without state of their own */
    UP_TO(6, 0, 4, 2),  /* AES, PMULL */
    UP_TO(6, 0, 8, 1),  /* SHA1 */
    UP_TO(6, 0, 12, 2), /* SHA2 */
    UP_TO(6, 0, 16, 1), /* CRC32 */
    UP_TO(6, 0, 20, 3), /* Atomic: LSE, LSE128 */
    UP_TO(6, 0, 28, 1), /* RDM */
    UP_TO(6, 0, 32, 1), /* SHA3 */
    UP_TO(6, 0, 36, 1), /* SM3 */
    UP_TO(6, 0, 40, 1), /* SM4 */
    UP_TO(6, 0, 44, 1), /* DP */
    UP_TO(6, 0, 48, 1), /* FHM */
    UP_TO(6, 0, 52, 2), /* TS: flag manipulation */
    UP_TO(6, 0, 56, 2), /* TLB: TLBIOS, TLBIRANGE */
    UP_TO(6, 0, 60, 1), /* RNDR */
    /* ID_AA64ISAR1_EL1 */
    UP_TO(6, 1, 0, 2),  /* DPB */
    UP_TO(6, 1, 4, 5),  /* APA: keys are switched; 6 would have PSTATE.PACM */
    UP_TO(6, 1, 8, 5),  /* API */
    UP_TO(6, 1, 12, 1), /* JSCVT */
    UP_TO(6, 1, 16, 1), /* FCMA */
    UP_TO(6, 1, 20, 3), /* LRCPC */
    UP_TO(6, 1, 24, 1), /* GPA */
    UP_TO(6, 1, 28, 1), /* GPI */
    UP_TO(6, 1, 32, 1), /* FRINTTS */
    UP_TO(6, 1, 36, 1), /* SB */
    UP_TO(6, 1, 40, 2), /* SPECRES */
    UP_TO(6, 1, 44, 2), /* BF16: FPCR.EBF is switched with FPCR */
    UP_TO(6, 1, 48, 1), /* DGH */
    UP_TO(6, 1, 52, 1), /* I8MM */
    UP_TO(6, 1, 56, 1), /* XS */
    /* ID_AA64ISAR2_EL1; WFxT is hidden because a trapped WFIT would have to end in time */
    UP_TO(6, 2, 4, 1),  /* RPRES */
    UP_TO(6, 2, 8, 1),  /* GPA3 */
    UP_TO(6, 2, 12, 5), /* APA3 */
    UP_TO(6, 2, 20, 1), /* BC */
    UP_TO(6, 2, 24, 1), /* PAC_frac */
    UP_TO(6, 2, 28, 1), /* CLRBHB */
    UP_TO(6, 2, 48, 1), /* RPRFM */
    UP_TO(6, 2, 52, 2), /* CSSC, CMPBR */
    UP_TO(6, 2, 56, 1), /* LUT */
    /* ID_AA64ISAR3_EL1 */
    UP_TO(6, 3, 4, 1),  /* FAMINMAX */
    UP_TO(6, 3, 16, 1), /* LSFE */
    UP_TO(6, 3, 28, 1), /* FPRCVT */
    /* ID_AA64MMFR0_EL1; TGran*_2 stay 0: there is no stage 2 for a guest */
    UP_TO(7, 0, 0, 2),    /* PARange: 40 bits, as the IPA space has 39 */
    UP_TO(7, 0, 4, 2),    /* ASIDBits */
    UP_TO(7, 0, 8, 1),    /* BigEnd */
    UP_TO(7, 0, 12, 1),   /* SNSMem */
    UP_TO(7, 0, 16, 1),   /* BigEndEL0 */
    UP_TO(7, 0, 20, 1),   /* TGran16: without 52 bits */
    AT_MOST(7, 0, 24, 0), /* TGran64: 0 is "yes", 15 "no" */
    AT_MOST(7, 0, 28, 0), /* TGran4: without 52 bits */
    UP_TO(7, 0, 44, 1),   /* ExS */
    UP_TO(7, 0, 60, 1),   /* ECV: self-synchronised counters, which nothing traps; no CNTPOFF */
    /* ID_AA64MMFR1_EL1 */
    UP_TO(7, 1, 0, 2),  /* HAFDBS: access and dirty flag; HAFT would need TCR2 */
    UP_TO(7, 1, 12, 2), /* HPDS */
    UP_TO(7, 1, 20, 3), /* PAN */
    UP_TO(7, 1, 36, 3), /* ETS */
    UP_TO(7, 1, 44, 1), /* AFP */
    UP_TO(7, 1, 48, 1), /* nTLBPA */
    UP_TO(7, 1, 60, 1), /* ECBHB */
    /* ID_AA64MMFR2_EL1 */
    UP_TO(7, 2, 0, 1),  /* CnP */
    UP_TO(7, 2, 4, 1),  /* UAO */
    UP_TO(7, 2, 8, 1),  /* LSM */
    UP_TO(7, 2, 16, 1), /* VARange */
    UP_TO(7, 2, 20, 1), /* CCIDX */
    UP_TO(7, 2, 28, 1), /* ST: small tables */
    UP_TO(7, 2, 32, 1), /* AT: LSE2 */
    UP_TO(7, 2, 36, 1), /* IDS */
    UP_TO(7, 2, 48, 1), /* TTL */
    UP_TO(7, 2, 52, 2), /* BBM */
    UP_TO(7, 2, 60, 1), /* E0PD */
    /* ID_AA64MMFR3_EL1 */
    UP_TO(7, 3, 60, 1), /* Spec_FPACC */

    /* AArch32: shown only where EL0 has it. ID_PFR0: State0..3, CSV2, DIT; no AMU, no RAS */
    UP_TO(1, 0, 0, 15), UP_TO(1, 0, 4, 15), UP_TO(1, 0, 8, 15), UP_TO(1, 0, 12, 15),
    UP_TO(1, 0, 16, 1), UP_TO(1, 0, 24, 1),
    /* ID_PFR1: ProgMod, GenTimer, GIC; no Security, no Virtualization */
    UP_TO(1, 1, 0, 1), UP_TO(1, 1, 16, 2), UP_TO(1, 1, 28, 1),
    UP_TO(1, 2, 0, 8),                                  /* ID_DFR0: CopDbg; no PerfMon, no trace */
    WHOLE(1, 4), WHOLE(1, 5), WHOLE(1, 6), WHOLE(1, 7), /* ID_MMFR0..3 */
    WHOLE(2, 0), WHOLE(2, 1), WHOLE(2, 2), WHOLE(2, 3), WHOLE(2, 4), WHOLE(2, 5), /* ID_ISAR0..5 */
    /* ID_MMFR4: CnP, HPDS, LSM, CCIDX */
    UP_TO(2, 6, 12, 1), UP_TO(2, 6, 16, 2), UP_TO(2, 6, 20, 1), UP_TO(2, 6, 24, 1),
    WHOLE(2, 7),                           /* ID_ISAR6 */
    WHOLE(3, 0), WHOLE(3, 1), WHOLE(3, 2), /* MVFR0..2 */
    UP_TO(3, 4, 0, 1), UP_TO(3, 4, 4, 1),  /* ID_PFR2: CSV3, SSBS */
    UP_TO(3, 6, 0, 2), UP_TO(3, 6, 4, 1),  /* ID_MMFR5: ETS, nTLBPA */
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static _Atomic uint64_t shown[REGS];
static _Atomic bool first_done;

static int as_signed(unsigned value) {
    return (int)(value ^ 8u) - 8;
}

/* The weaker of two values of a field. */
static unsigned weaker(const struct id_field *f, unsigned a, unsigned b) {
    switch (f->kind) {
    case SIGNED:
        return as_signed(a) < as_signed(b) ? a : b;
    case CONSTANT:
        return f->limit;
    default:
        return a < b ? a : b;
    }
}

/* Register `reg` with each field the weaker of both; a field that is not in the list becomes 0. */
static uint64_t combine(unsigned reg, uint64_t a, uint64_t b) {
    uint64_t value = 0;

    for (unsigned i = 0; i < FIELDS; i++) {
        const struct id_field *f = &fields[i];

        if (f->reg == reg) {
            unsigned of_a = (unsigned)(a >> f->shift) & 15u;
            unsigned of_b = (unsigned)(b >> f->shift) & 15u;

            value |= (uint64_t)weaker(f, of_a, of_b) << f->shift;
        }
    }
    return value;
}

/* What this CPU has, each field limited to what the list allows. One look at each field. */
static void read_all(id_read_fn read, uint64_t mine[REGS]) {
    uint64_t hardware[REGS] = {0};

    for (unsigned reg = REG(ID_CRM_FIRST, 0); reg < REGS; reg++) {
        hardware[reg] = read(reg >> 3, reg & 7u);
        mine[reg] = 0;
    }
    for (unsigned i = 0; i < FIELDS; i++) {
        const struct id_field *f = &fields[i];
        unsigned value = (unsigned)(hardware[f->reg] >> f->shift) & 15u;

        mine[f->reg] |= (uint64_t)weaker(f, value, f->limit) << f->shift;
    }
}

bool id_regs_init(id_read_fn read) {
    bool first = !atomic_load(&first_done);
    bool same = true;
    uint64_t mine[REGS];

    read_all(read, mine);
    for (unsigned reg = REG(ID_CRM_FIRST, 0); reg < REGS; reg++) {
        uint64_t old = atomic_load(&shown[reg]);
        uint64_t both;

        do {
            both = first || old == mine[reg] ? mine[reg] : combine(reg, old, mine[reg]);
        } while (!atomic_compare_exchange_weak(&shown[reg], &old, both));
        same = same && (first || both == old);
    }
    atomic_store(&first_done, true);
    return same;
}

/* ID_AA64PFR0_EL1.EL0 */
static bool has_aarch32(void) {
    return (atomic_load_explicit(&shown[REG(4, 0)], memory_order_relaxed) & 15u) == 2;
}

uint64_t id_reg_guest(unsigned crm, unsigned op2) {
    if (crm < ID_CRM_FIRST || crm > ID_CRM_LAST || op2 > 7 || (crm < 4 && !has_aarch32())) {
        return 0;
    }
    return atomic_load_explicit(&shown[REG(crm, op2)], memory_order_relaxed);
}

unsigned id_breakpoints(void) {
    return id_field_guest(5, 0, 12) + 1;
}

unsigned id_watchpoints(void) {
    return id_field_guest(5, 0, 20) + 1;
}

bool id_has_gic(void) {
    return id_field_guest(4, 0, 24) != 0;
}
