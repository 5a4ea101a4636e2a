/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Accesses outside the guest's memory become synchronous external aborts with the right syndrome,
 * address and return address (B10); single-stepping over trapped instructions takes one step each.
 */
#include "irq.h"

const char *const test_name = "abort";

#define SEA 0x10u

static void expect_abort(const char *name, struct exc_info e, uint64_t far, bool write) {
    char full[80];

    format(full, sizeof(full), "B10-%s-one-exception", name);
    check_eq(full, e.count, 1);
    format(full, sizeof(full), "B10-%s-esr", name);
    uint64_t want = (uint64_t)EC_DABT << 26 | 1ul << 25 | (write ? 0x40 : 0) | SEA;

    /* ISV with its fields may or may not be there; FnV may not. */
    check_eq(full, e.esr & 0xfe00047f, want);
    format(full, sizeof(full), "B10-%s-far", name);
    check_eq(full, e.far, far);
    format(full, sizeof(full), "B10-%s-elr-vector", name);
    check_eq(full, e.elr << 8 | e.vector, 4);
}

static bool aborts_as_sea(struct exc_info e, uint64_t far) {
    return e.count == 1 && ESR_EC(e.esr) == EC_DABT && (e.esr & 0x3f) == SEA && e.far == far &&
           e.elr == 0;
}

static uint64_t hole;

static void data_aborts(void) {
    uint64_t regs[31] = {0x1122334455667788ul, hole};

    struct exc_info e = insn_exec(0xf9400020u, regs); /* ldr x0, [x1] */

    expect_abort("ldr", e, hole, false);
    check_eq("B10-ldr-target-kept", regs[0], 0x1122334455667788ul);
    check_eq("B10-ldr-spsr-mode-daif", e.spsr & 0x3cf, (read_sysreg(daif) & 0x3c0) | 5);
    e = insn_exec(0xf9000020u, regs); /* str x0, [x1] */
    expect_abort("str", e, hole, true);
    regs[1] = hole + 7;
    e = insn_exec(0x39400020u, regs); /* ldrb w0, [x1] */
    expect_abort("ldrb-odd", e, hole + 7, false);

    static const struct {
        const char *name;
        uint32_t insn;
        bool write;
    } others[] = {
        {"ldp", 0xa9400820u, false},      {"stp", 0xa9000820u, true},
        {"ldr-post", 0xf8408420u, false}, {"str-pre", 0xf8000c20u, true},
        {"ldr-q", 0x3dc00020u, false},    {"ldxr", 0xc85f7c20u, false},
        {"ldar", 0xc8dffc20u, false},     {"stlr", 0xc89ffc20u, true},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
        uint64_t r[31] = {1, hole, 2};

        e = insn_exec(others[i].insn, r);
        expect_abort(others[i].name, e, hole, others[i].write);
        char name[40];

        format(name, sizeof(name), "B10-%s-base-kept", others[i].name);
        check_eq(name, r[1], hole);
    }

    /* With SP_EL0 in use the vector is the other one, and SPSR says EL1t. */
    const uint32_t code[] = {0xd50040bfu, 0xf9400020u, 0xd50041bfu};
    uint64_t r[31] = {0, hole};

    e = code_exec(code, 3, r);
    check_eq("B10-sp-el0-vector", e.vector, 0);
    check_eq("B10-sp-el0-spsr", e.spsr & 0xf, 4);
    check_eq("B10-sp-el0-elr", e.elr, 4);
    /* flags survive */
    const uint32_t flags[] = {0xd51b4213u, 0xf9400020u,
                              0xd53b4214u}; /* nzcv = x19 ... x20 = nzcv */
    uint64_t f[31] = {0, hole};

    f[19] = 0xa0000000;
    e = code_exec(flags, 3, f);
    check_eq("B10-flags-in-spsr", e.spsr & 0xf0000000, 0xa0000000);
    check_eq("B10-flags-after", f[20], 0xa0000000);
}

static uint64_t EL0_TEXT el0_load(uint64_t addr) {
    uint64_t v = 0;

    __asm__ volatile("ldr %0, [%1]" : "+r"(v) : "r"(addr) : "memory");
    return v;
}

static void from_el0(void) {
    uint64_t va = 0x3f00000000ul;

    mmu_map_page(va, hole & ~(PAGE - 1), PTE_DEVICE | PTE_USER | PTE_PXN | PTE_UXN);
    exc_expect();
    el0_run(el0_load, va + 8);
    struct exc_info e = exc_end();

    check_eq("B10-el0-one-exception", e.count, 1);
    check_eq("B10-el0-class", ESR_EC(e.esr), 0x24);
    check_eq("B10-el0-status", e.esr & 0x3f, SEA);
    check_eq("B10-el0-far-is-virtual", e.far, va + 8);
    check_eq("B10-el0-vector", e.vector, 8);
    check_eq("B10-el0-spsr", e.spsr & 0xf, 0);
    mmu_unmap_page(va);
}

static void fetch(void) {
    uint64_t page = hole & ~(PAGE - 1), va = 0x3f00001000ul;

    mmu_map_page(va, page, PTE_NORMAL);
    exc_expect();
    ((void (*)(void))(va + 0x10))();
    struct exc_info e = exc_end();

    check_eq("B10-fetch-one-exception", e.count, 1);
    check_eq("B10-fetch-esr", e.esr & 0xfe00003f, (uint64_t)EC_IABT << 26 | 1ul << 25 | SEA);
    check_eq("B10-fetch-far", e.far, va + 0x10);
    check_eq("B10-fetch-elr", e.elr, va + 0x10);
    check_eq("B10-fetch-vector", e.vector, 4);
    /* a fetch from a device window: no instruction of ours, but no harm either */
    mmu_map_page(va, GICD_BASE, PTE_NORMAL);
    if (native()) {
        tap_skip("B10-fetch-from-device", "the emulator fetches from devices");
    } else {
        exc_expect();
        ((void (*)(void))va)();
        e = exc_end();
        check_true("B10-fetch-from-device", e.count == 1 && ESR_EC(e.esr) == EC_IABT);
    }
    mmu_unmap_page(va);
}

static void walk(void) {
    uint64_t va = 0x3e00000000ul;
    uint64_t *e2 = mmu_entry(mmu_root, va, 2);

    *e2 = (hole & ~(PAGE - 1)) | 3; /* a level 3 table where no memory is */
    dsb();
    isb();
    uint64_t regs[31] = {0, va + 0x123458};
    struct exc_info e = insn_exec(0xf9400020u, regs);

    check_eq("B10-walk-one-exception", e.count, 1);
    check_eq("B10-walk-class", ESR_EC(e.esr), EC_DABT);
    tap_note("external abort on a level 3 walk: status 0x%lx", e.esr & 0x3f);
    tap_check((e.esr & 0x3f) == 0x17, "B10-walk-status", e.esr & 0x3f, 0x17);
    check_eq("B10-walk-far", e.far, va + 0x123458);
    check_eq("B10-walk-elr", e.elr, 0);
    exc_expect();
    ((void (*)(void))(va + 0x1000))();
    e = exc_end();
    check_eq("B10-walk-fetch-class", e.count == 1 ? ESR_EC(e.esr) : 0, EC_IABT);
    check_eq("B10-walk-fetch-far", e.far, va + 0x1000);
    /* address translation instructions meet the same hole */
    uint64_t at[31] = {0, va};

    e = insn_exec(0xd5087801u, at); /* at s1e1r, x1 */
    tap_note("AT with the walk outside memory: %s, PAR 0x%lx",
             e.count ? "exception" : "no exception", read_sysreg(par_el1));
    check_true("B10-at-walk", e.count ? ESR_EC(e.esr) == EC_DABT : (read_sysreg(par_el1) & 1));
    *e2 = 0;
    tlb_flush_all();
    at[1] = hole;
    e = insn_exec(0xd5087801u, at);
    check_eq("B10-at-hole-is-stage-1-only", e.count ? ~0ul : read_sysreg(par_el1) & 0xfffffffff001,
             hole & ~(PAGE - 1));
}

static void every_hole(void) {
    uint64_t end = ram_base + ram_size, last = 0;
    /* between the devices of the memory map, around RAM, far above */
    const uint64_t holes[] = {
        0,
        0x1000,
        0x04000000,
        0x07fff000,
        0x08010000,
        0x0807f000,
        0x0b000000,
        0x0b800000,
        0x0f000000,
        0x10000000,
        0x3eff0000,
        0x3ffff000,
        end,
        end + 0x200000,
        end + (1ul << 30),
        0x300000000ul,
        0x2000000000ul,
        0x3fffffe000ul,
        0x5000000000ul,
        0x7ffffff000ul,
        0x09001000,
        0x09010000,
        0x09080000,
        0x090b0000,
        0x090d0000,
        0x0a000000,
        0x0a003000,
        0x0e000000,
    };
    unsigned wrong = 0, count = 0;

    if (native()) {
        tap_skip("B10-every-hole", "the emulator has devices there");
        return;
    }
    for (unsigned i = 0; i < cpu_count; i++)
        last = gic_redist[i] > last ? gic_redist[i] : last;
    for (unsigned i = 0; i < ARRAY_SIZE(holes) + 1; i++) {
        uint64_t at = i < ARRAY_SIZE(holes) ? holes[i] : last + 0x20000, va = at;

        /* the identity map ends at 39 bits, which is as far as these go */
        uint64_t regs[31] = {0xbad, va};
        bool good = aborts_as_sea(insn_exec(0xf9400020u, regs), va) &&
                    aborts_as_sea(insn_exec(0xf9000020u, regs), va) &&
                    aborts_as_sea(insn_exec(0xb9000020u, regs), va) &&
                    aborts_as_sea(insn_exec(0x39400020u, regs), va);

        if (!good)
            tap_note("hole 0x%lx: esr 0x%lx far 0x%lx count %u", at, this_cpu()->info.esr,
                     this_cpu()->info.far, this_cpu()->info.count);
        wrong += !good;
        count++;
    }
    tap_note("%u holes", count);
    check_eq("B10-every-hole", wrong, 0);
    check_eq("B10-ram-unharmed", *(volatile uint32_t *)(void *)(_head + 48), 0);
}

/* ---- single step ---- */

#define SVC_ON  (0xd4000001u | 0x20 << 5)
#define SVC_OFF (0xd4000001u | 0x21 << 5)
#define NOP     0xd503201fu

static uint64_t steps[16];
static unsigned step_count;

static bool step_hook(struct exc_frame *f, unsigned vector) {
    (void)vector;
    uint64_t ec = ESR_EC(f->esr);

    if (ec == EC_SVC64 && ESR_ISS(f->esr) == 0x20) {
        write_sysreg(mdscr_el1, 1 | 1ul << 13); /* SS, KDE */
        isb();
        f->spsr = (f->spsr & ~(1ul << 9)) | 1ul << 21;
        step_count = 0;
        return true;
    }
    if (ec == EC_SVC64 && ESR_ISS(f->esr) == 0x21) {
        write_sysreg(mdscr_el1, 0);
        isb();
        f->spsr = (f->spsr | 1ul << 9) & ~(1ul << 21);
        return true;
    }
    if (ec == EC_STEP) {
        if (step_count < ARRAY_SIZE(steps))
            steps[step_count] = f->elr;
        step_count++;
        if (step_count > 20)
            write_sysreg(mdscr_el1, 0);
        f->spsr |= 1ul << 21;
        return true;
    }
    return false;
}

static void step(const char *name, uint32_t insn, uint64_t x0, uint64_t x1) {
    const uint32_t code[] = {SVC_ON, insn, NOP, SVC_OFF};
    uint64_t regs[31] = {x0, x1};

    steps[0] = steps[1] = 0;
    step_count = 99;
    struct exc_info e = code_exec(code, 4, regs);
    char full[48];

    format(full, sizeof(full), "B10-step-%s-count", name);
    check_eq(full, step_count, 2);
    format(full, sizeof(full), "B10-step-%s-pc", name);
    check_eq(full, steps[1] - steps[0], 4);
    format(full, sizeof(full), "B10-step-%s-no-other-exception", name);
    check_eq(full, e.count, 0);
}

static void single_step(void) {
    this_cpu()->sync_hook = step_hook;
    sysreg_set(SYSREG(2, 0, 1, 0, 4), 0); /* OS lock open */
    step("add", 0x91000421u, 0, 0);
    step("hvc", INSN_HVC(0), PSCI_VERSION, 0);
    if (native())
        tap_skip("B10-step-hvc-unknown", "the emulator gives UNDEF");
    else
        step("hvc-unknown", INSN_HVC(0), 0x84001234, 0);
    uint64_t probe[31] = {PSCI_VERSION};

    if (insn_exec(INSN_SMC(0), probe).count)
        tap_skip("B10-step-smc", "SMC is undefined here");
    else
        step("smc", INSN_SMC(0), PSCI_VERSION, 0);
    step("mrs-id", INSN_MRS(SYSREG(3, 0, 0, 4, 0), 0), 0, 0);
    step("mrs-cntp-ctl", INSN_MRS(SYSREG(3, 3, 14, 2, 1), 0), 0, 0);
    step("msr-cntp-ctl", INSN_MSR(SYSREG(3, 3, 14, 2, 1), 0), 0, 0);
    step("msr-sgi1r", INSN_MSR(SYSREG(3, 0, 12, 11, 5), 0), 1ul << 40 | 0, 0);
    step("mmio-load", 0xb9400020u, 0, UART_BASE + 0x18);
    step("mmio-store", 0xb9000020u, 0, UART_BASE + 0x44);
    step("dc-cisw", 0xd5087e5fu, 0, 0); /* dc cisw, xzr */
    gic_sgi_self(4);
    wait_for(read_sysreg(isr_el1) & 0x80, 10000);
    step("wfi", 0xd503207fu, 0, 0);
    step("yield", 0xd503203fu, 0, 0);
    __asm__ volatile("sevl");
    step("wfe", 0xd503205fu, 0, 0);
    gic_eoi1(gic_iar1());
    this_cpu()->sync_hook = NULL;
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    gic_set(4, GICD_ISENABLER);
    hole = 0x0b800000;
    data_aborts();
    from_el0();
    fetch();
    walk();
    every_hole();
    single_step();
}
