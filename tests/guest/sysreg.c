/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System registers (B06): the whole ID space reads without exception; what must be hidden is
 * hidden; the registers of a feature that the ID registers do not show are undefined (T07 for SVE);
 * debug registers hold what is written to them.
 */
#include "guest.h"

const char *const test_name = "sysreg";

#define ID(crm, op2) SYSREG(3, 0, 0, crm, op2)
#define PFR0         ID(4, 0)
#define PFR1         ID(4, 1)
#define PFR2         ID(4, 2)
#define DFR0         ID(5, 0)
#define ISAR0        ID(6, 0)
#define ISAR1        ID(6, 1)
#define ISAR2        ID(6, 2)
#define MMFR1        ID(7, 1)
#define MMFR2        ID(7, 2)
#define MMFR3        ID(7, 3)

struct feature {
    const char *name;
    uint32_t id;
    uint8_t shift;
    bool hide; /* the hypervisor must not show it */
};

enum {
    SVE,
    RAS,
    AMU,
    MPAM,
    EL2,
    MTE,
    SME,
    GCS,
    MPAM_FRAC,
    FPMR,
    PMU,
    SPE,
    TRACE,
    TRF,
    TRBE,
    BRBE,
    MOPS,
    RNDR,
    TCRX,
    SCTLRX,
    S1PIE,
    S1POE,
    S2PIE,
    S2POE,
    NV,
    VH,
    HCX,
    LOR,
    PAUTH,
    NMI,
    THE,
    FEATURES
};

static const struct feature features[FEATURES] = {
    [SVE] = {"sve", PFR0, 32, true},
    [RAS] = {"ras", PFR0, 28, false},
    [AMU] = {"amu", PFR0, 44, true},
    [MPAM] = {"mpam", PFR0, 40, true},
    [EL2] = {"el2", PFR0, 8, true},
    [MTE] = {"mte", PFR1, 8, true},
    [SME] = {"sme", PFR1, 24, true},
    [GCS] = {"gcs", PFR1, 44, true},
    [MPAM_FRAC] = {"mpam-frac", PFR1, 16, true},
    [FPMR] = {"fpmr", PFR2, 32, true},
    [PMU] = {"pmu", DFR0, 8, true},
    [SPE] = {"spe", DFR0, 32, true},
    [TRACE] = {"trace", DFR0, 4, true},
    [TRF] = {"trace-filter", DFR0, 40, true},
    [TRBE] = {"trbe", DFR0, 44, true},
    [BRBE] = {"brbe", DFR0, 52, true},
    [MOPS] = {"mops", ISAR2, 16, false},
    [RNDR] = {"rndr", ISAR0, 60, false},
    [TCRX] = {"tcr2", MMFR3, 0, true},
    [SCTLRX] = {"sctlr2", MMFR3, 4, true},
    [S1PIE] = {"s1pie", MMFR3, 8, true},
    [S1POE] = {"s1poe", MMFR3, 16, true},
    [S2PIE] = {"s2pie", MMFR3, 12, true},
    [S2POE] = {"s2poe", MMFR3, 20, true},
    [NV] = {"nv", MMFR2, 24, true},
    [VH] = {"vh", MMFR1, 8, true},
    [HCX] = {"hcx", MMFR1, 40, true},
    [LOR] = {"lor", MMFR1, 16, false},
    [PAUTH] = {"pauth", ISAR1, 4, false},
    [NMI] = {"nmi", PFR1, 36, true},
    [THE] = {"the", PFR1, 48, true},
};

static const struct {
    const char *name;
    uint32_t reg;
    uint8_t feature;
} hidden[] = {
    {"zcr_el1", SYSREG(3, 0, 1, 2, 0), SVE},
    {"smcr_el1", SYSREG(3, 0, 1, 2, 6), SME},
    {"smpri_el1", SYSREG(3, 0, 1, 2, 4), SME},
    {"smidr_el1", SYSREG(3, 1, 0, 0, 6), SME},
    {"svcr", SYSREG(3, 3, 4, 2, 2), SME},
    {"tpidr2_el0", SYSREG(3, 3, 13, 0, 5), SME},
    {"gcr_el1", SYSREG(3, 0, 1, 0, 6), MTE},
    {"rgsr_el1", SYSREG(3, 0, 1, 0, 5), MTE},
    {"tfsr_el1", SYSREG(3, 0, 5, 6, 0), MTE},
    {"tfsre0_el1", SYSREG(3, 0, 5, 6, 1), MTE},
    {"gmid_el1", SYSREG(3, 1, 0, 0, 4), MTE},
    {"pmcr_el0", SYSREG(3, 3, 9, 12, 0), PMU},
    {"pmcntenset_el0", SYSREG(3, 3, 9, 12, 1), PMU},
    {"pmovsclr_el0", SYSREG(3, 3, 9, 12, 3), PMU},
    {"pmselr_el0", SYSREG(3, 3, 9, 12, 5), PMU},
    {"pmceid0_el0", SYSREG(3, 3, 9, 12, 6), PMU},
    {"pmccntr_el0", SYSREG(3, 3, 9, 13, 0), PMU},
    {"pmxevtyper_el0", SYSREG(3, 3, 9, 13, 1), PMU},
    {"pmuserenr_el0", SYSREG(3, 3, 9, 14, 0), PMU},
    {"pmintenset_el1", SYSREG(3, 0, 9, 14, 1), PMU},
    {"pmmir_el1", SYSREG(3, 0, 9, 14, 6), PMU},
    {"pmevcntr0_el0", SYSREG(3, 3, 14, 8, 0), PMU},
    {"pmccfiltr_el0", SYSREG(3, 3, 14, 15, 7), PMU},
    {"pmscr_el1", SYSREG(3, 0, 9, 9, 0), SPE},
    {"pmsidr_el1", SYSREG(3, 0, 9, 9, 7), SPE},
    {"pmblimitr_el1", SYSREG(3, 0, 9, 10, 0), SPE},
    {"trcidr0", SYSREG(2, 1, 0, 8, 7), TRACE},
    {"trcprgctlr", SYSREG(2, 1, 0, 1, 0), TRACE},
    {"trfcr_el1", SYSREG(3, 0, 1, 2, 1), TRF},
    {"trblimitr_el1", SYSREG(3, 0, 9, 11, 0), TRBE},
    {"trbptr_el1", SYSREG(3, 0, 9, 11, 1), TRBE},
    {"brbcr_el1", SYSREG(2, 1, 9, 0, 0), BRBE},
    {"brbfcr_el1", SYSREG(2, 1, 9, 0, 1), BRBE},
    {"brbinf0_el1", SYSREG(2, 1, 8, 0, 0), BRBE},
    {"mpam1_el1", SYSREG(3, 0, 10, 5, 0), MPAM},
    {"mpam0_el1", SYSREG(3, 0, 10, 5, 1), MPAM},
    {"mpamidr_el1", SYSREG(3, 0, 10, 4, 4), MPAM},
    {"amcr_el0", SYSREG(3, 3, 13, 2, 0), AMU},
    {"amcfgr_el0", SYSREG(3, 3, 13, 2, 1), AMU},
    {"amevcntr00_el0", SYSREG(3, 3, 13, 4, 0), AMU},
    {"erridr_el1", SYSREG(3, 0, 5, 3, 0), RAS},
    {"errselr_el1", SYSREG(3, 0, 5, 3, 1), RAS},
    {"erxfr_el1", SYSREG(3, 0, 5, 4, 0), RAS},
    {"pire0_el1", SYSREG(3, 0, 10, 2, 2), S1PIE},
    {"pir_el1", SYSREG(3, 0, 10, 2, 3), S1PIE},
    {"por_el1", SYSREG(3, 0, 10, 2, 4), S1POE},
    {"por_el0", SYSREG(3, 3, 10, 2, 4), S1POE},
    {"s2por_el1", SYSREG(3, 0, 10, 2, 5), S2POE},
    {"tcr2_el1", SYSREG(3, 0, 2, 0, 3), TCRX},
    {"sctlr2_el1", SYSREG(3, 0, 1, 0, 3), SCTLRX},
    {"fpmr", SYSREG(3, 3, 4, 4, 2), FPMR},
    {"gcscr_el1", SYSREG(3, 0, 2, 5, 0), GCS},
    {"gcspr_el1", SYSREG(3, 0, 2, 5, 1), GCS},
    {"gcspr_el0", SYSREG(3, 3, 2, 5, 1), GCS},
    {"rndr", SYSREG(3, 3, 2, 4, 0), RNDR},
    {"lorc_el1", SYSREG(3, 0, 10, 4, 3), LOR},
    {"lorid_el1", SYSREG(3, 0, 10, 4, 7), LOR},
    {"rcwmask_el1", SYSREG(3, 0, 13, 0, 6), THE},
    {"hcr_el2", SYSREG(3, 4, 1, 1, 0), EL2},
    {"vttbr_el2", SYSREG(3, 4, 2, 1, 0), EL2},
    {"esr_el2", SYSREG(3, 4, 5, 2, 0), EL2},
    {"cnthctl_el2", SYSREG(3, 4, 14, 1, 0), EL2},
    {"cntvoff_el2", SYSREG(3, 4, 14, 0, 3), EL2},
    {"ich_hcr_el2", SYSREG(3, 4, 12, 11, 0), EL2},
    {"icc_sre_el2", SYSREG(3, 4, 12, 9, 5), EL2},
    {"sctlr_el12", SYSREG(3, 5, 1, 0, 0), EL2},
    {"cntv_ctl_el02", SYSREG(3, 5, 14, 3, 1), EL2},
    {"scr_el3", SYSREG(3, 6, 1, 1, 0), EL2},
};

static uint64_t field(unsigned feature) {
    uint64_t v;

    if (!sysreg_get(features[feature].id, &v))
        return ~0ul;
    return v >> features[feature].shift & 0xf;
}

static void id_space(void) {
    unsigned faults = 0;
    char name[48];

    for (unsigned crm = 1; crm < 8; crm++) {
        for (unsigned op2 = 0; op2 < 8; op2++) {
            uint64_t v;

            if (!sysreg_get(ID(crm, op2), &v)) {
                faults++;
                tap_note("s3_0_c0_c%u_%u takes an exception", crm, op2);
            }
        }
    }
    check_eq("B06-id-space-reads", faults, 0);
    uint64_t v;

    check_true("B06-midr-mpidr-revidr-read",
               sysreg_get(ID(0, 0), &v) && sysreg_get(ID(0, 5), &v) && sysreg_get(ID(0, 6), &v));
    /* writes to it are undefined */
    check_true("B06-id-space-not-writable", !sysreg_set(PFR0, 0) && !sysreg_set(ID(7, 7), 0));
    for (unsigned i = 0; i < FEATURES; i++) {
        if (!features[i].hide)
            continue;
        format(name, sizeof(name), "B06-hidden-%s", features[i].name);
        if (native())
            continue;
        uint64_t f = field(i);

        /* trace absent, or for MTPMU-like fields "not implemented" as 0xf, never a feature */
        tap_check(f == 0 || (i == PMU && f == 0xf), name, f, 0);
    }
    if (native())
        tap_skip("B06-hidden-features", "the emulator shows what it has");
    else
        check_range("B06-ras-at-most-1", field(RAS), 0, 1);
    sysreg_get(PFR0, &v);
    check_range("B06-gic-shown", v >> 24 & 0xf, 1, 3);
    check_range("B06-el1-aarch64", v >> 4 & 0xf, 1, 2);
    sysreg_get(ID(7, 0), &v);
    check_range("B06-parange", v & 0xf, 0, 7);
    check_true("B06-4k-granule", (v >> 28 & 0xf) != 0xf);
    if (!native()) {
        sysreg_get(ID(4, 4), &v);
        check_eq("B06-zfr0-zero", v, 0);
        sysreg_get(ID(4, 5), &v);
        check_eq("B06-smfr0-zero", v, 0);
    }
}

/* With FEAT_IDST, reads that are undefined in the ID space give the class of a trapped read. */
static bool id_space_class(uint32_t reg, struct exc_info e) {
    uint64_t mmfr2;

    return (reg >> 19 & 3) == 3 && (reg >> 12 & 15) == 0 && (reg >> 16 & 7) < 4 &&
           sysreg_get(MMFR2, &mmfr2) && (mmfr2 >> 36 & 0xf) == 1 && e.count == 1 &&
           ESR_EC(e.esr) == EC_SYSREG && (e.esr & 1);
}

static bool undefined(struct exc_info e) {
    return e.count == 1 && ESR_EC(e.esr) == EC_UNKNOWN && e.elr == 0 && e.vector == 4 &&
           (e.esr & 0x3ffffff) == 0x2000000;
}

/*
 * What has no trap to EL2 is not in the table: DISR_EL1 under RAS, and MTE's tag instructions,
 * which work on untagged memory when the hypervisor keeps tags off.
 */
static void hidden_registers(void) {
    /* Without this, SVE and SME would be trapped to EL1 itself before EL2 is asked. */
    uint64_t cpacr = read_sysreg(cpacr_el1);

    write_sysreg(cpacr_el1, cpacr | 3ul << 16 | 3ul << 24);
    isb();
    unsigned tried = 0, shown = 0;
    char name[48];

    for (unsigned i = 0; i < ARRAY_SIZE(hidden); i++) {
        if (field(hidden[i].feature) != 0) {
            shown++;
            continue;
        }
        uint64_t regs[31] = {0};
        struct exc_info r = insn_exec(INSN_MRS(hidden[i].reg, 0), regs);
        struct exc_info w = insn_exec(INSN_MSR(hidden[i].reg, 0), regs);

        format(name, sizeof(name), "B06-undef-%s", hidden[i].name);
        if (id_space_class(hidden[i].reg, r) && r.elr == 0)
            r.esr = 0x2000000; /* as good as undefined */
        if (!undefined(r) || !undefined(w))
            tap_note("%s: read: %u exceptions, esr 0x%lx; write: %u, 0x%lx", hidden[i].name,
                     r.count, r.esr, w.count, w.esr);
        tap_check(undefined(r) && undefined(w), name,
                  undefined(r) ? (w.count ? w.esr : 0) : (r.count ? r.esr : 0), 0x2000000);
        tried++;
    }
    tap_note("%u registers of hidden features tried, %u belong to features shown", tried, shown);

    static const struct {
        const char *name;
        uint32_t insn;
        uint8_t feature;
    } insns[] = {
        {"T07-undef-rdvl", 0x04bf5020u, SVE}, /* rdvl x0, #1 */
        {"T07-undef-ptrue", 0x2518e3e0u, SVE},  {"T07-undef-sve-add", 0x04200000u, SVE},
        {"T07-undef-rdsvl", 0x04bf5820u, SME},  {"T07-undef-smstart", 0xd503477fu, SME},
        {"B06-undef-cpyfp", 0x19010440u, MOPS}, /* cpyfp [x0]!, [x1]!, x2! */
    };

    for (unsigned i = 0; i < ARRAY_SIZE(insns); i++) {
        if (field(insns[i].feature) != 0)
            continue;
        static uint64_t buffer[4];
        uint64_t regs[31] = {(uintptr_t)buffer, (uintptr_t)(buffer + 2), 8};
        struct exc_info e = insn_exec(insns[i].insn, regs);

        tap_check(e.count == 1 && ESR_EC(e.esr) == EC_UNKNOWN, insns[i].name, e.esr, 0x2000000);
    }
    write_sysreg(cpacr_el1, cpacr);
    isb();
}

/* Features that are shown must work. */
static void shown_features(void) {
    uint64_t v;

    if (field(RNDR) != 0) {
        check_true("B06-rndr-works", sysreg_get(SYSREG(3, 3, 2, 4, 0), &v));
    }
    sysreg_get(ISAR1, &v);
    bool address = (v >> 4 & 0xff) != 0;
    uint64_t v2;

    sysreg_get(ISAR2, &v2);
    address = address || (v2 >> 12 & 0xf) != 0;
    if (address) {
        bool fine = true;

        for (unsigned i = 0; i < 10; i++) {
            uint32_t reg = SYSREG(3, 0, 2, 1 + i / 4, i % 4);
            uint64_t back = 0;

            fine = fine && sysreg_set(reg, 0x123456789abcdef0ul + i) && sysreg_get(reg, &back) &&
                   back == 0x123456789abcdef0ul + i;
            if (i == 9)
                break;
        }
        check_true("B06-pauth-keys-hold", fine);
        uint64_t sctlr = read_sysreg(sctlr_el1);

        write_sysreg(sctlr_el1, sctlr | 1ul << 31); /* EnIA */
        isb();
        const uint32_t code[] = {0xdac10020u, 0xaa0003e2u, 0xdac11020u};
        /* pacia x0, x1; mov x2, x0; autia x0, x1 */
        uint64_t regs[31] = {0x40001000, 0x77};
        struct exc_info e = code_exec(code, 3, regs);

        write_sysreg(sctlr_el1, sctlr);
        isb();
        check_true("B06-pauth-works", !e.count && regs[0] == 0x40001000 && regs[2] != 0x40001000);
    } else {
        check_true("B06-pauth-keys-undefined", !sysreg_get(SYSREG(3, 0, 2, 1, 0), &v));
    }
    if (field(MOPS) != 0) {
        static uint64_t from[4] = {1, 2, 3, 4}, to[4];
        /* cpyfp/cpyfm/cpyfe [x0]!, [x1]!, x2! */
        const uint32_t code[] = {0x19010440u, 0x19410440u, 0x19810440u};
        uint64_t regs[31] = {(uintptr_t)to, (uintptr_t)from, sizeof(to)};
        struct exc_info e = code_exec(code, 3, regs);

        check_true("B06-mops-works", !e.count && to[3] == 4);
    }
}

/* Random reads: any register at all gives a value or UNDEF, and the guest goes on. */
static void random_reads(void) {
    struct rng r = {31337};
    unsigned fine = 0, undef = 0, other = 0;

    for (unsigned i = 0; i < scaled(3000); i++) {
        uint64_t x = rng_next(&r), regs[31] = {0};
        uint32_t reg = SYSREG(2 + (x & 1), x >> 1 & 7, x >> 8 & 15, x >> 12 & 15, x >> 16 & 7);
        struct exc_info e = insn_exec(INSN_MRS(reg, 0), regs);

        if (!e.count)
            fine++;
        else if (ESR_EC(e.esr) == EC_UNKNOWN || id_space_class(reg, e))
            undef++;
        else if (!native() && other++ < 8)
            tap_note("read of s%u_%u_c%u_c%u_%u: esr 0x%lx", reg >> 19 & 3, reg >> 16 & 7,
                     reg >> 12 & 15, reg >> 8 & 15, reg >> 5 & 7, e.esr);
    }
    tap_note("random reads: %u values, %u undefined", fine, undef);
    check_eq("B06-random-reads", other, 0);
}

static void debug_registers(void) {
    uint64_t dfr0, v;
    unsigned wrong = 0;

    sysreg_get(DFR0, &dfr0);
    unsigned breakpoints = (unsigned)(dfr0 >> 12 & 0xf) + 1;
    unsigned watchpoints = (unsigned)(dfr0 >> 20 & 0xf) + 1;

    check_true("B06-os-lock-writable", sysreg_set(SYSREG(2, 0, 1, 0, 4), 0)); /* OSLAR */
    check_true("B06-os-lock-open", sysreg_get(SYSREG(2, 0, 1, 1, 4), &v) && !(v & 2));
    for (unsigned i = 0; i < breakpoints; i++) {
        wrong += !sysreg_set(SYSREG(2, 0, 0, i, 4), 0x40001000ul + 8 * i);
        wrong += !sysreg_set(SYSREG(2, 0, 0, i, 5), 0x1e4); /* disabled, EL1, BAS f */
    }
    for (unsigned i = 0; i < watchpoints; i++) {
        wrong += !sysreg_set(SYSREG(2, 0, 0, i, 6), 0x40002000ul + 8 * i);
        wrong += !sysreg_set(SYSREG(2, 0, 0, i, 7), 0x1ff8 & ~1u);
    }
    check_eq("B06-debug-registers-writable", wrong, 0);
    for (unsigned i = 0; i < breakpoints; i++) {
        wrong += !sysreg_get(SYSREG(2, 0, 0, i, 4), &v) || v != 0x40001000ul + 8 * i;
        wrong += !sysreg_get(SYSREG(2, 0, 0, i, 5), &v) || v != 0x1e4;
    }
    for (unsigned i = 0; i < watchpoints; i++) {
        wrong += !sysreg_get(SYSREG(2, 0, 0, i, 6), &v) || v != 0x40002000ul + 8 * i;
        wrong += !sysreg_get(SYSREG(2, 0, 0, i, 7), &v) || v != 0x1ff8;
    }
    if (breakpoints >= 2)
        check_eq("B06-debug-registers-read-back", wrong, 0);
    check_true("B06-mdscr-writable", sysreg_set(SYSREG(2, 0, 0, 2, 2), 1ul << 12));
    sysreg_get(SYSREG(2, 0, 0, 2, 2), &v);
    check_eq("B06-mdscr-reads-back", v & 1ul << 12, 1ul << 12);
    sysreg_set(SYSREG(2, 0, 0, 2, 2), 0);

    /* A breakpoint and a watchpoint at EL1 fire, if what was written really is in the hardware. */
    static uint64_t watched;

    sysreg_set(SYSREG(2, 0, 0, 0, 6), (uintptr_t)&watched);
    sysreg_set(SYSREG(2, 0, 0, 0, 7), 0x1ff3u | 0x8);         /* E, EL1, load and store, 8 bytes */
    sysreg_set(SYSREG(2, 0, 0, 2, 2), 1ul << 15 | 1ul << 13); /* MDE, KDE */
    /* msr daifclr, #8; ldr x0, [x1]; msr daifset, #8 */
    const uint32_t code[] = {0xd50348ffu, 0xf9400020u, 0xd50348dfu};
    uint64_t regs[31] = {0, (uintptr_t)&watched};
    struct exc_info e = code_exec(code, 3, regs);

    sysreg_set(SYSREG(2, 0, 0, 0, 7), 0);
    sysreg_set(SYSREG(2, 0, 0, 2, 2), 0);
    check_eq("B06-watchpoint-fires", e.count ? ESR_EC(e.esr) : 0, 0x35);
    check_eq("B06-watchpoint-far", e.far, (uintptr_t)&watched);
    e = insn_exec(0xd4200aa0u, regs); /* brk #0x55 */
    check_eq("B06-brk", e.esr & 0xfc00ffff, 0xf0000055);
    for (unsigned i = 0; i < breakpoints; i++)
        sysreg_set(SYSREG(2, 0, 0, i, 5), 0);
    for (unsigned i = 0; i < watchpoints; i++)
        sysreg_set(SYSREG(2, 0, 0, i, 7), 0);
}

/* Registers of the guest's own that must hold any value, trapped or not. */
static void plain_registers(void) {
    static const struct {
        const char *name;
        uint32_t reg;
        uint64_t mask;
    } own[] = {
        {"tpidr_el0", SYSREG(3, 3, 13, 0, 2), ~0ul},
        {"tpidrro_el0", SYSREG(3, 3, 13, 0, 3), ~0ul},
        {"contextidr_el1", SYSREG(3, 0, 13, 0, 1), 0xffffffff},
        {"sp_el0", SYSREG(3, 0, 4, 1, 0), ~0ul},
        {"far_el1", SYSREG(3, 0, 6, 0, 0), ~0ul},
        {"esr_el1", SYSREG(3, 0, 5, 2, 0), 0xffffffff},
        {"elr_el1", SYSREG(3, 0, 4, 0, 1), ~0ul},
        {"ttbr1_el1", SYSREG(3, 0, 2, 0, 1), 0x0000fffffffff000ul},
        {"amair_el1", SYSREG(3, 0, 10, 3, 0), 0},
        {"par_el1", SYSREG(3, 0, 7, 4, 0), 1},
        {"cntkctl_el1", SYSREG(3, 0, 14, 1, 0), 0x3ff},
        {"csselr_el1", SYSREG(3, 2, 0, 0, 0), 0xf},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(own); i++) {
        uint64_t old, back = 0, pattern = 0x0123456789abcdefull & own[i].mask;
        char name[40];
        bool fine = sysreg_get(own[i].reg, &old) && sysreg_set(own[i].reg, pattern);

        /* far, esr and elr change with any exception: none may come in between */
        fine = fine && sysreg_get(own[i].reg, &back);
        sysreg_set(own[i].reg, old);
        format(name, sizeof(name), "B06-holds-%s", own[i].name);
        tap_check(fine && (back & own[i].mask) == pattern, name, back, pattern);
    }
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    id_space();
    hidden_registers();
    shown_features();
    plain_registers();
    debug_registers();
    random_reads();
}
