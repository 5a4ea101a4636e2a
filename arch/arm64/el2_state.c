/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control state of EL2. Registers and bits are named as in the Arm ARM, DDI 0487, chapter
 * "AArch64 System Register Descriptions" (D24), where each register has a section under its name;
 * those of the GIC are in IHI 0069H 12.4. Encodings are raw where an assembler for Armv8.0 knows no
 * name.
 *
 * The rule for features that are new to this file: an extension's trap bits are "0 traps" when they
 * came after Armv8.6 (nXXX in the fine-grained traps, XXXEn in HCRX_EL2), so that zero hides them;
 * the older ones are "1 traps" and are listed.
 */
#include "arch/arm64/el2_state.h"

#include <stdbool.h>
#include <stddef.h>

#include "arch/arm64/regs.h"
#include "arch/arm64/sysreg_access.h"

/* One more macro layer, so that the names below are replaced before they become text. */
#define read_named(name)         read_sysreg(name)
#define write_named(name, value) write_sysreg(name, value)

/* ID registers: D24.2. */
#define AA64PFR0  S3_0_C0_C4_0
#define AA64PFR1  S3_0_C0_C4_1
#define AA64DFR0  S3_0_C0_C5_0
#define AA64ISAR1 S3_0_C0_C6_1
#define AA64ISAR2 S3_0_C0_C6_2
#define AA64MMFR0 S3_0_C0_C7_0
#define AA64MMFR1 S3_0_C0_C7_1
#define AA64MMFR4 S3_0_C0_C7_4

#define PFR0_GIC       24
#define PFR0_RAS       28
#define PFR0_SVE       32
#define PFR0_MPAM      40
#define PFR0_AMU       44
#define PFR1_MTE       8
#define PFR1_MPAM_FRAC 16
#define PFR1_SME       24
#define PFR1_NMI       36
#define DFR0_PMUVER    8
#define DFR0_PMSVER    32
#define DFR0_TRACEFILT 40
#define DFR0_TRACEBUF  44
#define ISAR1_APA      4
#define ISAR1_API      8
#define ISAR1_GPA      24
#define ISAR1_GPI      28
#define ISAR2_GPA3     8
#define ISAR2_APA3     12
#define MMFR0_FGT      56
#define MMFR0_ECV      60
#define MMFR1_LO       16
#define MMFR1_HCX      40
#define MMFR4_E2H0     24

/* HCR_EL2 */
#define HCR_VM     (1ull << 0)  /* stage 2 on */
#define HCR_SWIO   (1ull << 1)  /* an invalidate by set/way also cleans */
#define HCR_PTW    (1ull << 2)  /* no stage-1 table walk through device memory */
#define HCR_FMO    (1ull << 3)  /* FIQ to EL2, virtual FIQ on */
#define HCR_IMO    (1ull << 4)  /* IRQ to EL2, virtual IRQ on, writes of ICC_SGI*R trapped */
#define HCR_AMO    (1ull << 5)  /* SError to EL2 */
#define HCR_FB     (1ull << 9)  /* local TLB and I-cache maintenance is broadcast */
#define HCR_BSU_IS (1ull << 10) /* barriers are at least inner shareable */
#define HCR_TWI    (1ull << 13) /* WFI */
#define HCR_TID1   (1ull << 16) /* REVIDR_EL1, AIDR_EL1, SMIDR_EL1 */
#define HCR_TID3   (1ull << 18) /* the feature ID space */
#define HCR_TSC    (1ull << 19) /* SMC */
#define HCR_TIDCP  (1ull << 20) /* what the CPU's maker defined */
#define HCR_TACR   (1ull << 21) /* ACTLR_EL1 */
#define HCR_TSW    (1ull << 22) /* cache maintenance by set/way */
#define HCR_RW64   (1ull << 31) /* EL1 is AArch64 */
#define HCR_E2H    (1ull << 34)
#define HCR_TLOR   (1ull << 35) /* LORegions */
#define HCR_TERR   (1ull << 36) /* RAS error records */
#define HCR_APK    (1ull << 40) /* pointer authentication keys: 1 does not trap */
#define HCR_API    (1ull << 41) /* pointer authentication instructions: 1 does not trap */
#define HCR_TID5   (1ull << 58) /* GMID_EL1 */

/*
 * HCRX_EL2. Its enable bits stay 0: LS64, TCR2, SCTLR2, D128, MOPS, GCS, FPMR, PACM, SRMASK are
 * hidden. FnXS and FGTnXS stay 0 too: TLBI without nXS waits for XS accesses, as natively.
 */
#define HCRX_EL2     S3_4_C1_C2_2
#define HCRX_TALLINT (1ull << 6) /* writes of PSTATE.ALLINT */

/* Fine-grained traps. */
#define HFGRTR_EL2     S3_4_C1_C1_4
#define HFGWTR_EL2     S3_4_C1_C1_5
#define HFGITR_EL2     S3_4_C1_C1_6
#define HDFGRTR_EL2    S3_4_C3_C1_4
#define HDFGWTR_EL2    S3_4_C3_C1_5
#define HAFGRTR_EL2    S3_4_C3_C1_6
#define HFGRTR2_EL2    S3_4_C3_C1_2
#define HFGWTR2_EL2    S3_4_C3_C1_3
#define HDFGRTR2_EL2   S3_4_C3_C1_0
#define HDFGWTR2_EL2   S3_4_C3_C1_1
#define HFGITR2_EL2    S3_4_C3_C1_7
#define HDFGRTR_TRBIDR (1ull << 51)
#define HDFGRTR_PMBIDR (1ull << 63)

/* CPTR_EL2, the format for E2H = 0. */
#define CPTR_RES1 0x32ffull    /* bits 13, 9, 7:0 */
#define CPTR_TZ   (1ull << 8)  /* SVE; RES1 without */
#define CPTR_TSM  (1ull << 12) /* SME; RES1 without */
#define CPTR_TTA  (1ull << 20) /* trace registers */
#define CPTR_TAM  (1ull << 30) /* activity monitors */

/* MDCR_EL2; E2PB (13:12) and E2TB (25:24) are 0: the buffers are EL2's, accesses trap. */
#define MDCR_HPMN_MASK 0x1full
#define MDCR_TPMCR     (1ull << 5)  /* PMCR_EL0 */
#define MDCR_TPM       (1ull << 6)  /* all PMU registers */
#define MDCR_TDA       (1ull << 9)  /* debug registers */
#define MDCR_TDOSA     (1ull << 10) /* OS lock registers */
#define MDCR_TDRA      (1ull << 11) /* debug ROM registers */
#define MDCR_TPMS      (1ull << 14) /* SPE's controls */
#define MDCR_TTRF      (1ull << 19) /* TRFCR_EL1 */

#define CNTPOFF_EL2   S3_4_C14_C0_6
#define ICC_SRE_EL2   S3_4_C12_C9_5
#define ICC_SRE_ALL   0xfull /* SRE, DFB, DIB, Enable */
#define ICH_HCR_EL2   S3_4_C12_C11_0
#define VSESR_EL2     S3_4_C5_C2_3
#define VDISR_EL2     S3_4_C12_C1_1
#define LORC_EL1      S3_0_C10_C4_3
#define PMCR_EL0      S3_3_C9_C12_0
#define PMBIDR_EL1    S3_0_C9_C10_7
#define PMBLIMITR_EL1 S3_0_C9_C10_0
#define PMSCR_EL2     S3_4_C9_C9_0
#define TRBIDR_EL1    S3_0_C9_C11_7
#define TRBLIMITR_EL1 S3_0_C9_C11_0
#define BUFFER_FOREIGN                                                                             \
    (1ull << 4) /* PMBIDR_EL1.P, TRBIDR_EL1.P: EL3 keeps the buffer for itself                     \
                 */

/* MPAM: DDI 0598. */
#define MPAMIDR_EL1     S3_0_C10_C4_4
#define MPAM1_EL1       S3_0_C10_C5_0
#define MPAM0_EL1       S3_0_C10_C5_1
#define MPAM2_EL2       S3_4_C10_C5_0
#define MPAMHCR_EL2     S3_4_C10_C4_0
#define MPAMIDR_HCR     (1ull << 17)
#define MPAMIDR_TIDR    (1ull << 58)
#define MPAM2_TRAP_EL1  (1ull << 48)
#define MPAM2_TRAP_EL0  (1ull << 49)
#define MPAM2_TIDR      (1ull << 58)
#define MPAMHCR_TRAP_ID (1ull << 31)

static unsigned field(uint64_t id, unsigned shift) {
    return (unsigned)(id >> shift) & 15u;
}

static bool has_pauth(void) {
    uint64_t isar1 = read_named(AA64ISAR1);
    uint64_t isar2 = read_named(AA64ISAR2);

    return field(isar1, ISAR1_APA) != 0 || field(isar1, ISAR1_API) != 0 ||
           field(isar1, ISAR1_GPA) != 0 || field(isar1, ISAR1_GPI) != 0 ||
           field(isar2, ISAR2_APA3) != 0 || field(isar2, ISAR2_GPA3) != 0;
}

const char *el2_state_check(void) {
    /* Signed: -1 and -2 say that E2H can't be 0. */
    if ((field(read_named(AA64MMFR4), MMFR4_E2H0) & 8u) != 0) {
        return "this CPU cannot run EL2 with HCR_EL2.E2H = 0 (no FEAT_E2H0)";
    }
    if ((read_named(HCR_EL2) & HCR_E2H) != 0) {
        return "HCR_EL2.E2H is 1 and does not let itself be cleared";
    }
    if (field(read_named(AA64PFR0), PFR0_GIC) == 0) {
        return "this CPU has no GICv3 system registers";
    }
    return NULL;
}

uint64_t el2_hcr_guest(void) {
    uint64_t pfr0 = read_named(AA64PFR0);
    uint64_t pfr1 = read_named(AA64PFR1);
    uint64_t hcr = HCR_VM | HCR_SWIO | HCR_PTW | HCR_FMO | HCR_IMO | HCR_AMO | HCR_FB | HCR_BSU_IS |
                   HCR_TWI | HCR_TID3 | HCR_TSC | HCR_TIDCP | HCR_TACR | HCR_TSW | HCR_RW64;

    if (has_pauth()) {
        hcr |= HCR_APK | HCR_API;
    }
    if (field(read_named(AA64MMFR1), MMFR1_LO) != 0) {
        hcr |= HCR_TLOR;
    }
    if (field(pfr0, PFR0_RAS) != 0) {
        hcr |= HCR_TERR;
    }
    if (field(pfr1, PFR1_SME) != 0) {
        hcr |= HCR_TID1; /* for SMIDR_EL1; sysreg.c answers the other two */
    }
    if (field(pfr1, PFR1_MTE) >= 2) {
        hcr |= HCR_TID5;
    }
    return hcr;
}

static void init_fine_grained(void) {
    unsigned fgt = field(read_named(AA64MMFR0), MMFR0_FGT);
    uint64_t dfr0 = read_named(AA64DFR0);
    uint64_t debug = 0;

    if (fgt == 0) {
        return;
    }
    /* The buffers' ID registers are the only ones of them that MDCR_EL2 does not trap. */
    if (field(dfr0, DFR0_PMSVER) != 0) {
        debug |= HDFGRTR_PMBIDR;
    }
    if (field(dfr0, DFR0_TRACEBUF) != 0) {
        debug |= HDFGRTR_TRBIDR;
    }
    write_named(HFGRTR_EL2, 0);
    write_named(HFGWTR_EL2, 0);
    write_named(HFGITR_EL2, 0);
    write_named(HDFGRTR_EL2, debug);
    write_named(HDFGWTR_EL2, 0);
    if (field(read_named(AA64PFR0), PFR0_AMU) != 0) {
        write_named(HAFGRTR_EL2, 0); /* CPTR_EL2.TAM traps it all */
    }
    if (fgt >= 2) {
        write_named(HFGRTR2_EL2, 0);
        write_named(HFGWTR2_EL2, 0);
        write_named(HFGITR2_EL2, 0);
        write_named(HDFGRTR2_EL2, 0);
        write_named(HDFGWTR2_EL2, 0);
    }
}

/* PMU, profiling, trace and self-hosted debug. */
static void init_debug(void) {
    uint64_t dfr0 = read_named(AA64DFR0);
    unsigned pmu = field(dfr0, DFR0_PMUVER);
    uint64_t mdcr = MDCR_TDRA | MDCR_TDOSA | MDCR_TDA;

    if (pmu != 0 && pmu != 15) {
        /* HPMN: no counter is set aside for EL2, or the event counters would be ours to look after.
         */
        mdcr |= MDCR_TPM | MDCR_TPMCR | (read_named(PMCR_EL0) >> 11 & MDCR_HPMN_MASK);
    }
    if (field(dfr0, DFR0_PMSVER) != 0) {
        mdcr |= MDCR_TPMS;
        if ((read_named(PMBIDR_EL1) & BUFFER_FOREIGN) == 0) {
            write_named(PMSCR_EL2, 0);
            write_named(PMBLIMITR_EL1, 0);
        }
    }
    if (field(dfr0, DFR0_TRACEBUF) != 0 && (read_named(TRBIDR_EL1) & BUFFER_FOREIGN) == 0) {
        write_named(TRBLIMITR_EL1, 0);
    }
    if (field(dfr0, DFR0_TRACEFILT) != 0) {
        mdcr |= MDCR_TTRF;
    }
    write_sysreg(MDCR_EL2, mdcr);
    /*
     * The locks are open in hardware: closed, no debug exception could reach a guest. Each guest
     * has an OS lock of its own (debug.c).
     */
    write_sysreg(OSLAR_EL1, 0);
    write_sysreg(OSDLR_EL1, 0);
    write_sysreg(MDSCR_EL1, 0);
    write_sysreg(MDCCINT_EL1, 0);
}

static void init_mpam(void) {
    uint64_t id, trap = MPAM2_TRAP_EL1 | MPAM2_TRAP_EL0;

    if (field(read_named(AA64PFR0), PFR0_MPAM) == 0 &&
        field(read_named(AA64PFR1), PFR1_MPAM_FRAC) == 0) {
        return;
    }
    id = read_named(MPAMIDR_EL1);
    if ((id & MPAMIDR_TIDR) != 0) {
        trap |= MPAM2_TIDR;
    }
    /* All that a guest does is in partition 0, as what we do. */
    write_named(MPAM0_EL1, 0);
    write_named(MPAM1_EL1, 0);
    if ((id & MPAMIDR_HCR) != 0) {
        write_named(MPAMHCR_EL2, MPAMHCR_TRAP_ID);
    }
    write_named(MPAM2_EL2, trap);
}

static void init_traps(void) {
    uint64_t pfr0 = read_named(AA64PFR0);
    uint64_t cptr = CPTR_RES1 | CPTR_TZ | CPTR_TSM | CPTR_TTA | CPTR_TFP;

    if (field(pfr0, PFR0_AMU) != 0) {
        cptr |= CPTR_TAM;
    }
    write_sysreg(CPTR_EL2, cptr);
    write_sysreg(HSTR_EL2, 0);
    write_sysreg(HACR_EL2, 0);
    if (field(read_named(AA64MMFR1), MMFR1_HCX) != 0) {
        uint64_t pfr1 = read_named(AA64PFR1);

        write_named(HCRX_EL2, field(pfr1, PFR1_NMI) != 0 ? HCRX_TALLINT : 0);
    }
    if (field(pfr0, PFR0_RAS) != 0) {
        write_named(VSESR_EL2, 0);
        write_named(VDISR_EL2, 0);
    }
    if (field(read_named(AA64MMFR1), MMFR1_LO) != 0) {
        write_named(LORC_EL1, 0);
    }
}

void el2_state_init(void) {
    uint64_t midr = read_sysreg(MIDR_EL1);

    /* Without VM: there is no stage 2 before a vCPU comes. First of all, as E2H changes other
     * formats. */
    write_sysreg(HCR_EL2, el2_hcr_guest() & ~HCR_VM);
    isb();
    init_traps();
    init_fine_grained();
    init_debug();
    init_mpam();
    /* ECV's traps and EVNTEN are 0: the virtual counter and CNTPCT are the guest's to read. */
    write_sysreg(CNTHCTL_EL2, CNTHCTL_EL1PCTEN);
    if (field(read_named(AA64MMFR0), MMFR0_ECV) >= 2) {
        write_named(CNTPOFF_EL2, 0);
    }
    write_sysreg(VPIDR_EL2, midr);
    write_named(ICC_SRE_EL2, ICC_SRE_ALL);
    isb(); /* SRE before the other GIC registers */
    write_named(ICH_HCR_EL2, 0);
    isb();
}
