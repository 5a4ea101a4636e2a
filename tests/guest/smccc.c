/* SPDX-License-Identifier: GPL-2.0-only */
/* Calling convention: discovery (C08), unknown calls (C09), the other conduit (C10), P15 with
 * calls. */
#include "guest.h"

const char *const test_name = "smccc";

#define ADD_1(reg) (0x91000400u | (reg) << 5 | (reg)) /* add xN, xN, #1 */

/* x20 and x21 count what runs after the call; the call itself is the first instruction. */
static struct exc_info call(uint32_t insn, uint64_t regs[31]) {
    const uint32_t code[] = {insn, ADD_1(20u), ADD_1(21u)};

    return code_exec(code, ARRAY_SIZE(code), regs);
}

static void fill(uint64_t regs[31], struct rng *r) {
    for (unsigned i = 0; i < 31; i++)
        regs[i] = rng_next(r);
}

/* Numbers that some call may have: PSCI, architecture, vendor and standard hypervisor services. */
static bool may_be_known(uint32_t id) {
    uint32_t owner = id >> 24 & 0x3f;

    return (owner == 0 || owner == 4 || owner == 5 || owner == 6) && (id & 0xffff) < 0x100;
}

static void c08_discovery(void) {
    int64_t version = psci(PSCI_VERSION, 0, 0, 0);
    int64_t known = psci(PSCI_FEATURES, SMCCC_VERSION, 0, 0);

    check_range("C08-psci-version", (uint64_t)version, 0x10001, 0x10003);
    if (native()) {
        tap_skip("C08-smccc-version", "the emulator's PSCI has no SMCCC calls");
        return;
    }
    check_eq("C08-psci-features-of-smccc-version", known, 0);
    check_range("C08-smccc-version", (uint64_t)hvc4(SMCCC_VERSION, 0, 0, 0), 0x10001, 0x10010);
    check_eq("C08-arch-features-of-itself", hvc4(SMCCC_ARCH_FEATURES, SMCCC_ARCH_FEATURES, 0, 0),
             0);
    check_eq("C08-arch-features-of-version", hvc4(SMCCC_ARCH_FEATURES, SMCCC_VERSION, 0, 0), 0);
    check_eq("C08-arch-features-of-unknown", hvc4(SMCCC_ARCH_FEATURES, 0x80001234, 0, 0), -1);
    check_eq("C09-function-id-is-w0", hvc4(0xdeadbeef84000000, 0, 0, 0), version);

    /* What is said to exist works, what is not gives -1. */
    uint64_t uid[31] = {0x8600ff01};

    call(INSN_HVC(0), uid);
    tap_note("vendor hypervisor UID %x %x %x %x", (uint32_t)uid[0], (uint32_t)uid[1],
             (uint32_t)uid[2], (uint32_t)uid[3]);
}

static uint64_t state_sum(void) {
    uint64_t regs[] = {
        read_sysreg(sctlr_el1),     read_sysreg(vbar_el1),  read_sysreg(ttbr0_el1),
        read_sysreg(ttbr1_el1),     read_sysreg(tcr_el1),   read_sysreg(mair_el1),
        read_sysreg(cpacr_el1),     read_sysreg(tpidr_el0), read_sysreg(tpidr_el1),
        read_sysreg(sp_el0),        read_sysreg(elr_el1),   read_sysreg(spsr_el1),
        read_sysreg(esr_el1),       read_sysreg(far_el1),   read_sysreg(cntkctl_el1),
        read_sysreg(cntv_cval_el0), read_sysreg(daif),      read_sysreg(contextidr_el1),
        read_sysreg(par_el1),
    };
    uint64_t sum = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(regs); i++)
        sum = (sum << 7 | sum >> 57) ^ regs[i];
    return sum;
}

static void unknown_calls(const char *conduit, uint32_t base_insn, unsigned times) {
    struct rng r = {0x5eed + base_insn};
    unsigned bad_result = 0, changed = 0, stepped = 0, exceptions = 0, state = 0;
    char name[64];

    write_sysreg(elr_el1, 0x1234);
    write_sysreg(esr_el1, 0x5678);
    write_sysreg(far_el1, 0x9abc);
    uint64_t sum = state_sum();

    for (unsigned n = 0; n < times; n++) {
        static const uint32_t edges[] = {
            0,           1,           0x7fffffff,  0x80000000u + 0xffff, 0x84001000u, 0xc4001000u,
            0xbfffffffu, 0xffffffffu, 0x86001000u, 0x82000000u,          0xb2000000u,
        };
        uint64_t regs[31], want[31];

        fill(regs, &r);
        if (n < ARRAY_SIZE(edges))
            regs[0] = edges[n];
        if (may_be_known((uint32_t)regs[0]))
            continue;
        memcpy(want, regs, sizeof(want));
        uint32_t imm = n & 1 ? (uint32_t)rng_next(&r) & 0xffff : 0;
        struct exc_info e = call(base_insn | imm << 5, regs);

        exceptions += e.count != 0;
        bad_result += regs[0] != ~0ul;
        for (unsigned i = 4; i < 30; i++)
            changed += i != 20 && i != 21 && regs[i] != want[i];
        stepped += regs[20] != want[20] + 1 || regs[21] != want[21] + 1;
    }
    format(name, sizeof(name), "C09-%s-no-exception", conduit);
    check_eq(name, exceptions, 0);
    format(name, sizeof(name), "C09-%s-not-supported", conduit);
    check_eq(name, bad_result, 0);
    format(name, sizeof(name), "C09-%s-x4-x29-kept", conduit);
    check_eq(name, changed, 0);
    format(name, sizeof(name), "C09-%s-pc-moves-by-4", conduit);
    check_eq(name, stepped, 0);
    state += state_sum() != sum;
    format(name, sizeof(name), "C09-%s-no-state-change", conduit);
    check_eq(name, state, 0);
}

/* NZCV goes through a call unchanged: set flags, call, read them. */
static void flags_kept(void) {
    for (uint64_t nzcv = 0; nzcv < 16; nzcv += 5) {
        const uint32_t code[] = {
            0xd51b4200u | 19,              /* msr nzcv, x19 */
            INSN_HVC(0), 0xd53b4200u | 20, /* mrs x20, nzcv */
        };
        uint64_t regs[31] = {native() ? PSCI_VERSION : 0x84001000u};

        regs[19] = nzcv << 28;
        code_exec(code, ARRAY_SIZE(code), regs);
        if (regs[20] != nzcv << 28) {
            check_eq("C09-flags-kept", regs[20], nzcv << 28);
            return;
        }
    }
    check_true("C09-flags-kept", true);
}

static void c10_other_conduit(void) {
    struct rng r = {77};
    uint64_t regs[31], want[31];

    fill(regs, &r);
    memcpy(want, regs, sizeof(want));
    regs[0] = want[0] = PSCI_VERSION;
    struct exc_info e = call(INSN_SMC(0), regs);
    unsigned changed = 0;

    for (unsigned i = 4; i < 30; i++)
        changed += i != 20 && i != 21 && regs[i] != want[i];
    check_eq("C10-smc-registers-kept", changed, 0);
    check_eq("C10-smc-goes-on-once", regs[20] - want[20], 1);
    if (e.count) {
        tap_note("SMC is undefined here");
        check_eq("C10-smc-undefined", ESR_EC(e.esr), EC_UNKNOWN);
        check_eq("C10-smc-elr", e.elr, 0);
        check_eq("C10-smc-vector", e.vector, 4);
    } else {
        int64_t version = psci(PSCI_VERSION, 0, 0, 0);

        tap_note("SMC answers 0x%lx", regs[0]);
        check_true("C10-smc-same-as-hvc-or-not-supported",
                   (int32_t)regs[0] == -1 || (int32_t)regs[0] == version);
        unknown_calls("smc", INSN_SMC(0), (unsigned)scaled(2000));
    }
    check_true("C10-method-hvc", !strcmp(fdt_string(fdt_find("/psci", 0), "method"), "hvc"));
    check_range("C10-hvc-works", (uint64_t)psci(PSCI_VERSION, 0, 0, 0), 0x10001, 0x10003);
}

static uint64_t EL0_TEXT el0_hvc(uint64_t arg) {
    register uint64_t x0 __asm__("x0") = arg;

    __asm__ volatile("hvc #0" : "+r"(x0) : : "memory");
    return x0;
}

void test_main(void) {
    c08_discovery();
    flags_kept();
    if (native())
        tap_skip("C09-hvc", "the emulator gives UNDEF for unknown calls");
    else
        unknown_calls("hvc", INSN_HVC(0), (unsigned)scaled(5000)); /* the case: 10,000 */
    c10_other_conduit();

    /* HVC is undefined at EL0, and no hypercall. */
    exc_expect();
    uint64_t r = el0_run(el0_hvc, PSCI_VERSION);
    struct exc_info e = exc_end();

    check_eq("C09-hvc-at-el0-undefined", e.count, 1);
    check_eq("C09-hvc-at-el0-class", ESR_EC(e.esr), EC_UNKNOWN);
    check_eq("C09-hvc-at-el0-vector", e.vector, 8);
    check_eq("C09-hvc-at-el0-no-result", r, PSCI_VERSION);
}
