/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hostile guest, the half that attacks with instructions: every system register encoding (all
 * 2^16, reads and writes), calls by HVC and SMC, random words executed at EL0, EL1 and in AArch32,
 * random PSTATE. Boot arguments: `seed`, `inputs`. The same seed does the same.
 *
 * What must hold: every answer is a documented one, the guest itself goes on, and so do its
 * neighbours (neighbour.c).
 */
#include "abi/smccc.h"
#include "hostile.h"
#include "pv.h"
#include "irq.h"

const char *const test_name = "hostile";

/* ---- code that is generated ---- */

#define SLOTS   256u
#define NOP     0xd503201fu
#define RET     0xd65f03c0u
#define MARK    0x77u /* BRK that ends a sandboxed run */
#define BRK_END (0xd4200000u | MARK << 5)

static uint32_t code[1024] __attribute__((aligned(4096)));
static uint8_t outcome[SLOTS]; /* class of the exception of that slot, 0xff: none */

static bool in_sandbox;
static unsigned budget, reached;
static uint64_t sandbox_code, last_spsr;

/* ---- the sandbox: any words, any PSTATE, and a way back ---- */

/*
 * Runs at `pc` with `spsr` and x0-x30 from regs. Ends at sandbox_exit, where the exception hook
 * leads when it has seen enough; all that the caller needs is in sandbox_saved.
 */
__attribute__((visibility("hidden"))) void sandbox_run(const uint64_t regs[31], uint64_t pc,
                                                       uint64_t spsr);
__attribute__((visibility("hidden"))) void sandbox_exit(void);
uint64_t sandbox_saved[14];

__asm__(".text\n"
        "sandbox_run:\n"
        "   adrp x9, sandbox_saved\n"
        "   add x9, x9, :lo12:sandbox_saved\n"
        "   stp x19, x20, [x9]\n   stp x21, x22, [x9, #16]\n   stp x23, x24, [x9, #32]\n"
        "   stp x25, x26, [x9, #48]\n   stp x27, x28, [x9, #64]\n   stp x29, x30, [x9, #80]\n"
        "   mov x10, sp\n   str x10, [x9, #96]\n"
        "   msr elr_el1, x1\n   msr spsr_el1, x2\n   mov x30, x0\n"
        "   ldp x0, x1, [x30]\n   ldp x2, x3, [x30, #16]\n   ldp x4, x5, [x30, #32]\n"
        "   ldp x6, x7, [x30, #48]\n   ldp x8, x9, [x30, #64]\n   ldp x10, x11, [x30, #80]\n"
        "   ldp x12, x13, [x30, #96]\n   ldp x14, x15, [x30, #112]\n"
        "   ldp x16, x17, [x30, #128]\n   ldp x18, x19, [x30, #144]\n"
        "   ldp x20, x21, [x30, #160]\n   ldp x22, x23, [x30, #176]\n"
        "   ldp x24, x25, [x30, #192]\n   ldp x26, x27, [x30, #208]\n"
        "   ldp x28, x29, [x30, #224]\n   ldr x30, [x30, #240]\n"
        "   eret\n"
        "sandbox_exit:\n"
        "   adrp x9, sandbox_saved\n"
        "   add x9, x9, :lo12:sandbox_saved\n"
        "   ldr x10, [x9, #96]\n   mov sp, x10\n"
        "   ldp x19, x20, [x9]\n   ldp x21, x22, [x9, #16]\n   ldp x23, x24, [x9, #32]\n"
        "   ldp x25, x26, [x9, #48]\n   ldp x27, x28, [x9, #64]\n   ldp x29, x30, [x9, #80]\n"
        "   ret\n");

static void leave_sandbox(struct exc_frame *f) {
    f->elr = (uintptr_t)sandbox_exit;
    f->spsr = 0x3c5;
    in_sandbox = false;
}

static bool from_aarch32(const struct exc_frame *f) {
    return (f->spsr & 0x10) != 0;
}

static bool sandbox_sync(struct exc_frame *f) {
    unsigned ec = ESR_EC(f->esr), step = from_aarch32(f) && !(f->esr & 1u << 25) ? 2 : 4;
    uint64_t at = f->elr - sandbox_code;

    if (at < 4 * SLOTS && at / 4 + 1 > reached)
        reached = (unsigned)(at / 4) + 1;
    if (ec == EC_BRK && (f->esr & 0xffff) == MARK) {
        leave_sandbox(f);
        return true;
    }
    judge(f);
    if (ec >= EC_BKPT_LOWER && ec <= EC_WATCH)
        debug_off(f);
    if (at >= 4 * SLOTS || budget-- == 0 || ec == EC_ILLEGAL || ec == EC_PC_ALIGN) {
        leave_sandbox(f);
        return true;
    }
    if (ec != EC_SVC64 && ec != 0x11 && !(ec >= EC_BKPT_LOWER && ec <= EC_WATCH))
        f->elr += step;
    if ((f->spsr & 0x1f) == 5) /* ours is the only stack there */
        leave_sandbox(f);
    return true;
}

static bool hook(struct exc_frame *f, unsigned vector) {
    unsigned ec = ESR_EC(f->esr);
    uint64_t slot = (f->elr - (uintptr_t)code) / 4;

    (void)vector;
    if (in_sandbox)
        return sandbox_sync(f);
    if (!H.active) {
        tap_note("%s: input %lu: unexpected; last spsr 0x%lx pc 0x%lx", H.phase, H.inputs,
                 last_spsr, sandbox_code);
        return false;
    }
    judge(f);
    if (slot < SLOTS)
        outcome[slot] = (uint8_t)ec;
    if (ec == EC_IABT || ec == EC_PC_ALIGN)
        f->elr = f->x[30];
    else if (ec >= EC_BKPT_LOWER && ec <= EC_WATCH)
        debug_off(f);
    else
        f->elr += 4;
    return true;
}

static void irq_hook(struct exc_frame *f) {
    uint32_t id = gic_iar1();

    write_sysreg(cntv_ctl_el0, 0);
    isb();
    if (id < 1020)
        gic_eoi1(id);
    if (in_sandbox)
        leave_sandbox(f);
    else
        f->spsr |= 0x80;
}

/* ---- system registers ---- */

/* Encodings that are not written, or not executed, with the reason. */
static bool spared(uint32_t key, bool write) {
    static const struct {
        uint32_t key;
        const char *why;
    } list[] = {
        {SYSREG(3, 0, 1, 0, 0), "SCTLR: the MMU goes off or the byte order changes"},
        {SYSREG(3, 0, 2, 0, 0), "TTBR0: we run from it"},
        {SYSREG(3, 0, 2, 0, 2), "TCR: the same"},
        {SYSREG(3, 0, 10, 2, 0), "MAIR: the same"},
        {SYSREG(3, 0, 12, 0, 0), "VBAR: the way back"},
        {SYSREG(3, 0, 13, 0, 4), "TPIDR_EL1: where the library finds its CPU"},
        {SYSREG(3, 0, 4, 2, 0), "SPSel: the trampoline's stack"},
    };
    unsigned op0 = key >> 19 & 3, crn = key >> 12 & 15, crm = key >> 8 & 15, op2 = key >> 5 & 7;

    if (op0 == 0) {
        if (crn == 4 && op2 == 5)
            return true; /* SPSel */
        if (crn == 2 && crm == 0 && (op2 == 3 || op2 == 2))
            return true;                         /* WFI, WFE: tried where something wakes them */
        return (key >> 16 & 7) == 3 && crn == 1; /* WFIT, WFET */
    }
    for (unsigned i = 0; write && i < ARRAY_SIZE(list); i++) {
        if (list[i].key == key)
            return true;
    }
    return false;
}

/* What a sweep may have changed that we need. */
static void restore(void) {
    debug_off(NULL);
    write_sysreg(cntv_ctl_el0, 0);
    write_sysreg(cntp_ctl_el0, 0);
    write_sysreg(cpacr_el1, 3ul << 20);
    __asm__ volatile("msr daifset, #0xf");
    isb();
}

static void random_regs(uint64_t regs[31]) {
    for (unsigned i = 0; i < 31; i++)
        regs[i] = nasty();
}

static void run_code(unsigned n, uint64_t regs[31]) {
    code[n] = RET;
    code_sync(code, 4 * (n + 1ul));
    memset(outcome, 0xff, sizeof(outcome));
    H.active = true;
    insn_trampoline(regs, code);
    H.active = false;
    H.inputs += n;
}

static uint32_t sysreg_insn(uint32_t number, bool read, unsigned rt) {
    return 0xd5000000u | (read ? 1u << 21 : 0) | (number & 0xffff) << 5 | rt;
}

/* `n` encodings from `first` on, or random ones; reads or writes. */
static void sweep_block(uint32_t first, bool random, bool read) {
    uint64_t regs[31];

    for (unsigned i = 0; i < SLOTS; i++) {
        uint32_t number = random ? (uint32_t)rnd() & 0xffff : first + i;
        uint32_t insn = sysreg_insn(number, read, below(16) == 0 ? 31 : (unsigned)below(29));

        code[i] = spared(insn & 0x1fffe0u & ~(1u << 21), !read) ? NOP : insn;
    }
    random_regs(regs);
    run_code(SLOTS, regs);
    restore();
}

static uint64_t id_values[8][8];

/* op0 3, op1 0, CRn 0, CRm 0..7: always readable from 1 on, and always the same. */
static void id_space(bool first) {
    for (unsigned crm = 1; crm < 8; crm++) {
        for (unsigned op2 = 0; op2 < 8; op2++) {
            uint64_t regs[31] = {0};

            code[0] = INSN_MRS(SYSREG(3, 0, 0, crm, op2), 0);
            run_code(1, regs);
            if (first)
                id_values[crm][op2] = regs[0];
            if (outcome[0] != 0xff || regs[0] != id_values[crm][op2])
                note_wrong("ID space: CRm, op2, value", crm, op2, regs[0]);
        }
    }
}

#define SYSREG_CLASSES                                                                             \
    (EC_BIT(EC_UNKNOWN) | EC_BIT(EC_FP) | EC_BIT(EC_SYSREG) | EC_BIT(EC_SVE) | EC_BIT(EC_SME) |    \
     EC_BIT(EC_DABT) | EC_BIT(EC_IABT) | 0x3ful << EC_BKPT_LOWER)

static void sysregs(uint64_t until) {
    phase("system registers", SYSREG_CLASSES);
    id_space(true);
    for (uint32_t block = 0; block < 0x10000 / SLOTS; block++) {
        if (H.inputs + 0x10000 <= until) { /* once all, in order */
            sweep_block(block * SLOTS, false, true);
            sweep_block(block * SLOTS, false, false);
        }
    }
    while (H.inputs < until)
        sweep_block(0, true, below(2));
    id_space(false);
}

/* ---- calls ---- */

/* Code of a CPU that a random CPU_ON started: off again at once. */
__attribute__((visibility("hidden"))) void park(void);
__asm__(".text\n.balign 4\npark:\n   movz w0, #0x8400, lsl #16\n   movk w0, #2\n   hvc #0\n   b "
        "park\n");

static _Alignas(64) uint8_t record[64];

/* Not the calls that end us or send us to sleep; CPU_ON only where nothing runs wild. */
static void tame(uint64_t r[4]) {
    switch ((uint32_t)r[0]) {
    case PSCI_SYSTEM_OFF:
    case PSCI_SYSTEM_RESET:
    case PSCI_CPU_OFF:
    case PSCI_CPU_SUSPEND:
    case PSCI_CPU_SUSPEND64:
        r[0] += 0x100;
        break;
    case PSCI_SYSTEM_RESET2:
    case PSCI_SYSTEM_RESET2_64:
        r[1] |= 1; /* a type that there is not */
        break;
    case PVSCHED_ID_INIT: /* anywhere in our memory is allowed, and would be our own fault */
        if (r[1] - ram_base < ram_size)
            r[1] = (uintptr_t)record;
        break;
    case PSCI_CPU_ON:
    case PSCI_CPU_ON64:
        r[2] = below(2) ? (uintptr_t)park
                        : ram_base + ram_size + below(1ul << 30); /* CPU_ON has 32 bits */
        break;
    default:
        break;
    }
}

static uint64_t call_id(void) {
    static const uint32_t bases[] = {0x80000000, 0x84000000, 0xc4000000, 0xc0000000,
                                     0x86000000, 0x87000000, 0xbf000000, 0x80008000,
                                     0xc5000000, 0x8400ff00, 0x00000000, 0x8600ff00,
                                     0xc5000020, 0xc5000090, 0xc6000000, 0xc6000020};

    switch (below(4)) {
    case 0:
        return nasty();
    case 1:
        return rnd() << 32 | (uint32_t)(bases[below(ARRAY_SIZE(bases))] + below(0x20));
    default:
        return bases[below(ARRAY_SIZE(bases))] + below(0x20);
    }
}

/* Four registers of answers. */
static bool answers_four(uint32_t id, const uint64_t after[31]) {
    static const uint32_t uid[] = {PARAVANE_UID_0, PARAVANE_UID_1, PARAVANE_UID_2, PARAVANE_UID_3};
    static const uint32_t features[] = {1u << 0 | 1u << PVLOCK_FEATURE_BIT,
                                        1u << (PV_YIELD_FEATURE_BIT - 32), 0, 0};
    const uint32_t *expected = id == SMCCC_ID_VENDOR_UID ? uid : features;

    for (unsigned i = 0; i < 4; i++) {
        if (after[i] != expected[i])
            return false;
    }
    return true;
}

/* One register: a record, or done or not. */
static bool vendor_answer(uint32_t id, uint64_t x0) {
    switch (id) {
    case PVLOCK_ID:
        return x0 == PV_LOCK_REGION + 64 * this_cpu()->index;
    case PVTIME_ID_ST:
        return x0 == PV_TIME_REGION + 64 * this_cpu()->index;
    case PVTIME_ID_FEATURES:
    case PVSCHED_ID_FEATURES:
    case PVSCHED_ID_INIT:
    case PVSCHED_ID_KICK:
        return x0 == 0 || x0 == ~0ul;
    case PVSCHED_ID_RELEASE:
        return x0 == 0;
    case PV_YIELD_TO_ID:
        return x0 == 0 || x0 == PV_YIELD_NOT_WAITING || x0 == (uint64_t)SMCCC_E_INVALID_PARAMETER;
    default:
        return x0 == ~0ul;
    }
}

/* Answers of calls that exist, else -1. */
static void check_call(const uint64_t before[4], const uint64_t after[31], uint64_t r4, bool imm) {
    int64_t x0 = (int64_t)after[0];
    uint32_t id = (uint32_t)before[0];
    bool mine = id >> 24 == 0x80 || id >> 24 == 0x84 || id >> 24 == 0xc4;

    if (!imm && (id == SMCCC_ID_VENDOR_UID || id == SMCCC_ID_VENDOR_FEATURES)) {
        if (!answers_four(id, after) || after[4] != r4)
            note_wrong("call: id, x0, x1", id, after[0], after[1]);
        return;
    }
    if (imm ? x0 != -1 : !mine && !vendor_answer(id, after[0]))
        note_wrong("call: id, answer", id, after[0], imm);
    if (mine && (x0 < -9 || x0 > 0x10001))
        note_wrong("call: id, answer", id, after[0], before[1]);
    if (after[4] != r4 || after[1] != before[1] || after[2] != before[2] || after[3] != before[3])
        note_wrong("call changed x1-x4: id", id, after[1], after[4]);
}

static void calls(uint64_t until) {
    phase("calls", 0);
    while (H.inputs < until) {
        /* slot pairs: HVC or SMC, half of them with an immediate */
        for (unsigned i = 0; i < SLOTS; i += 2) {
            uint32_t imm = below(4) ? 0 : (uint32_t)(below(2) ? below(16) : below(0x10000));

            code[i] = below(2) ? INSN_HVC(imm) : INSN_SMC(imm);
            code[i + 1] = RET;
        }
        code_sync(code, sizeof(code));
        for (unsigned i = 0; i < SLOTS && H.inputs < until; i += 2) {
            uint64_t regs[31], before[4];

            random_regs(regs);
            regs[0] = call_id();
            if (below(2))
                regs[1] = below(cpu_count + 1);
            tame(regs);
            memcpy(before, regs, sizeof(before));
            uint64_t r4 = regs[4];

            H.active = true;
            insn_trampoline(regs, code + i);
            H.active = false;
            H.inputs++;
            check_call(before, regs, r4, (code[i] >> 5 & 0xffff) != 0);
        }
    }
    for (unsigned i = 1; i < cpu_count; i++) {
        if (!wait_for(psci(PSCI_AFFINITY_INFO64, cpus[i].mpidr, 0, 0) == 1, 1000000))
            note_wrong("a parked CPU is not off", i, 0, 0);
    }
}

/* ---- random words, random PSTATE ---- */

/*
 * Far from everything, so that no addition, branch or ADRP of a random word leads to our memory:
 * code and two views of the scratch pages, one for EL0 and one for EL1.
 */
#define FAR_CODE    0x2000000000ul
#define FAR_SCRATCH 0x2100000000ul
#define FAR_USER    0x2200000000ul
#define FAR_PAGES   4ul

static uint64_t scratch;

static void map_far(void) {
    scratch = alloc_pages(FAR_PAGES);
    mmu_map_page(FAR_CODE, (uintptr_t)code, PTE_NORMAL | PTE_RO | PTE_UXN);
    mmu_map_page(FAR_CODE + PAGE, (uintptr_t)code, PTE_NORMAL | PTE_RO | PTE_USER | PTE_PXN);
    mmu_map_page(0xf000, (uintptr_t)code, PTE_NORMAL | PTE_RO | PTE_USER | PTE_PXN); /* AArch32 */
    for (uint64_t i = 0; i < FAR_PAGES; i++) {
        uint64_t pa = scratch + i * PAGE;

        mmu_map_page(FAR_SCRATCH + i * PAGE, pa, PTE_NORMAL | PTE_UXN | PTE_PXN);
        mmu_map_page(FAR_USER + i * PAGE, pa, PTE_NORMAL | PTE_USER | PTE_UXN | PTE_PXN);
        mmu_map_page(0x10000 + i * PAGE, pa, PTE_NORMAL | PTE_USER | PTE_UXN | PTE_PXN);
    }
}

/*
 * A word for EL1: not one that takes away what the way back needs. What is not to be written is not
 * read either: an address of ours in a register is what the next store may go to.
 */
static uint32_t el1_word(void) {
    uint32_t w = (uint32_t)rnd();

    if (below(4) == 0)
        w = 0xd5000000u | (w & 0x3fffffu); /* more of the system class */
    if (w >> 22 == 0xd5000000u >> 22) {
        uint32_t key = w & 0x1fffe0u;
        bool gic = (key >> 19 & 3) == 3 && (key >> 12 & 15) == 12; /* the watchdog's */
        bool timer = (key >> 19 & 3) == 3 && (key >> 12 & 15) == 14;
        bool daif = (key >> 19 & 3) == 3 && (key >> 12 & 15) == 4;
        bool imm = (key >> 19 & 3) == 0 && (key >> 12 & 15) == 4; /* MSR immediate */

        if (spared(key & ~(1u << 21), true) || gic || timer || daif || imm)
            return NOP;
    }
    return w;
}

static void sandbox_once(uint64_t pc, uint64_t spsr, uint64_t base, unsigned words) {
    uint64_t regs[31];

    random_regs(regs);
    for (unsigned i = 0; i < 31; i++) {
        /* not near our memory, nor the devices: the watchdog comes through the GIC */
        if (i % 3 == 0 || regs[i] < 3 * ram_base)
            regs[i] = base + below(FAR_PAGES * PAGE);
    }
    write_sysreg(sp_el0, base + 2 * PAGE);
    sandbox_code = pc;
    last_spsr = spsr;
    budget = 2 * words;
    reached = 0;
    in_sandbox = true;
    write_sysreg(cntv_cval_el0, counter() + us_to_ticks(2000));
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    sandbox_run(regs, pc, spsr);
    restore();
    write_sysreg(ttbr1_el1, 0);
    H.inputs += reached ? reached : 1;
}

/* Not by default: of some A32 and T32 words at EL0, QEMU 11.1 itself hangs or dies. */
static bool aarch32(void) {
    return bootarg("a32", 0) && id_values[4][0] % 16 == 2;
}

static void words(uint64_t until) {
    const unsigned n = 64;
    bool a32 = aarch32();
    phase("random words", ~0ul);
    while (H.inputs < until) {
        unsigned kind = (unsigned)below(4);

        for (unsigned i = 0; i < n; i++)
            code[i] = kind == 0 ? el1_word() : (uint32_t)rnd();
        code[n] = BRK_END;
        for (unsigned i = n + 1; i < SLOTS; i++)
            code[i] = BRK_END;
        code_sync(code, 4 * SLOTS);
        uint64_t flags = (rnd() & 0xf) << 28;

        if (kind == 0)
            sandbox_once(FAR_CODE, flags | 0x304, FAR_SCRATCH, n); /* EL1 on SP_EL0 */
        else if (kind == 3 && a32)
            sandbox_once(0xf000, flags | 0x10 | (below(2) ? 0x20 : 0), 0x10000, n);
        else
            sandbox_once(FAR_CODE + PAGE, flags, FAR_USER, n);
    }
}

static void pstates(uint64_t until) {
    phase("PSTATE", ~0ul);
    for (unsigned i = 0; i < SLOTS; i++)
        code[i] = BRK_END;
    code[0] = NOP;
    code[1] = 0xd53b4200u; /* mrs x0, nzcv */
    code[2] = INSN_HVC(1);
    code_sync(code, sizeof(code));
    while (H.inputs < until) {
        static const uint64_t at[] = {FAR_CODE, FAR_CODE + PAGE, 0xf000, 0xf002, FAR_CODE + 2};
        uint64_t spsr = rnd() & 0xffffffff;

        if (below(2))
            spsr &= ~(1ul << 20); /* not IL */
        if ((spsr & 0x1f) == 0x10 && !aarch32())
            spsr ^= 0x10;
        sandbox_once(at[below(ARRAY_SIZE(at))], spsr & ~0x80ul, FAR_SCRATCH, 4);
    }
}

static void waits(uint64_t until) {
    phase("waits", EC_BIT(EC_UNKNOWN));
    while (H.inputs < until) {
        /* WFI, WFE, YIELD, SEV, SEVL, WFIT, WFET */
        static const uint32_t insns[] = {0xd503207f, 0xd503205f, 0xd503203f, 0xd503209f,
                                         0xd50320bf, 0xd5031020, 0xd5031000};
        uint64_t regs[31] = {0};

        for (unsigned i = 0; i < 32; i += 2) {
            code[i + 1] = insns[below(ARRAY_SIZE(insns))];
            code[i] = code[i + 1] == insns[1] ? insns[4] : insns[below(ARRAY_SIZE(insns)) & ~1u];
        }
        write_sysreg(cntv_cval_el0, 0); /* pending and masked: no wait lasts */
        write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
        isb();
        regs[0] = counter() + below(100);
        run_code(32, regs);
    }
    restore();
}

static void own_gic(void) {
    gic_init();
    gic_cpu_init();
    gic_enable(INTID_VTIMER);
}

/* The phases and their parts of the inputs, in 16ths. `only` chooses: bit n is phase n. */
static const struct {
    const char *name;
    void (*run)(uint64_t until);
    unsigned share;
} phases[] = {
    {"system registers", sysregs, 8}, {"calls", calls, 4},        {"waits", waits, 1},
    {"PSTATE", pstates, 1},           {"random words", words, 2},
};

void test_main(void) {
    uint64_t inputs = bootarg("inputs", 200000), only = bootarg("only", 0xff);

    tap_note("seed %lu", bootarg("seed", 1));
    this_cpu()->sync_hook = hook;
    this_cpu()->irq_hook = irq_hook;
    this_cpu()->fiq_hook = irq_hook;
    map_far();
    id_values[4][0] = read_sysreg(id_aa64pfr0_el1);
    for (unsigned i = 0; i < ARRAY_SIZE(phases); i++) {
        uint64_t before = H.inputs, start = counter();

        if (!(only >> i & 1))
            continue;
        own_gic();
        hostile_seed(i);
        phases[i].run(H.inputs + inputs * phases[i].share / 16);
        restore();
        tap_note("%s: %lu inputs in %lu us", phases[i].name, H.inputs - before,
                 ticks_to_us(counter() - start));
    }
    hostile_end("hostile-answers");
}
