/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Accesses to emulated devices: widths and sign extension (B09), instructions whose trap carries no
 * syndrome (G16), every offset of the register windows (G14). The UART's own behaviour is in
 * uart.c.
 */
#include "guest.h"

const char *const test_name = "mmio";

#define UART_DR   UART_BASE
#define UART_FR   (UART_BASE + 0x18)
#define UART_IBRD (UART_BASE + 0x24)

/* Rt = x0, Rn = x1 in all of these */
#define LDRB_W    0x39400020u
#define LDRH_W    0x79400020u
#define LDR_W     0xb9400020u
#define LDR_X     0xf9400020u
#define LDRSB_W   0x39c00020u
#define LDRSB_X   0x39800020u
#define LDRSH_W   0x79c00020u
#define LDRSH_X   0x79800020u
#define LDRSW_X   0xb9800020u
#define LDUR_W    0xb8400020u
#define LDR_W_REG 0xb8626820u /* [x1, x2] */
#define LDAR_W    0x88dffc20u
#define LDR_W_XZR 0xb940003fu

static __attribute__((noinline)) void load(const char *name, uint32_t insn, uint64_t addr,
                                           uint64_t expected) {
    uint64_t regs[31] = {0xa5a5a5a5a5a5a5a5ul, addr};
    struct exc_info e = insn_exec(insn, regs);

    if (e.count)
        check_eq(name, e.esr, 0);
    else
        check_eq(name, regs[0], expected);
}

static __attribute__((noinline)) void b09_widths(void) {
    uint64_t prio = GICD_BASE + GICD_IPRIORITYR + 60;

    for (unsigned i = 0; i < 4; i++)
        gic_priority(60 + i, (uint8_t)(0x80 + 0x20 * i)); /* 80 a0 c0 e0 */
    for (unsigned lane = 0; lane < 4; lane++) {
        uint64_t v = 0x80 + 0x20 * lane;
        char name[40];

        format(name, sizeof(name), "B09-ldrb-lane-%u", lane);
        load(name, LDRB_W, prio + lane, v);
        format(name, sizeof(name), "B09-ldrsb-w-lane-%u", lane);
        load(name, LDRSB_W, prio + lane, 0xffffff00 | v);
        format(name, sizeof(name), "B09-ldrsb-x-lane-%u", lane);
        load(name, LDRSB_X, prio + lane, 0xffffffffffffff00 | v);
    }
    load("B09-ldr-w-clears-upper", LDR_W, prio, 0xe0c0a080);
    load("B09-ldrsw-x", LDRSW_X, prio, 0xffffffffe0c0a080);
    load("B09-ldur-w", LDUR_W, prio, 0xe0c0a080);
    load("B09-ldar-w", LDAR_W, prio, 0xe0c0a080);

    uint64_t regs[31] = {1, prio - 16, 16};

    insn_exec(LDR_W_REG, regs);
    check_eq("B09-ldr-register-offset", regs[0], 0xe0c0a080);
    uint64_t kept[31] = {0x1234, prio};

    insn_exec(LDR_W_XZR, kept);
    check_eq("B09-ldr-to-zero-register", kept[0], 0x1234);

    uint32_t old = read32(UART_IBRD);

    write32(UART_IBRD, 0x80f1);
    load("B09-ldrh", LDRH_W, UART_IBRD, 0x80f1);
    load("B09-ldrsh-w", LDRSH_W, UART_IBRD, 0xffff80f1);
    load("B09-ldrsh-x", LDRSH_X, UART_IBRD, 0xffffffffffff80f1);
    load("B09-ldrsb-x-uart", LDRSB_X, UART_IBRD, 0xfffffffffffffff1);
    write32(UART_IBRD, old);

    /* byte and word stores reach their lane only; the zero register stores zeros */
    write8(prio + 1, 0x40);
    check_eq("B09-strb-lane-1", read32(prio), 0xe0c04080);
    write8(prio + 3, 0);
    check_eq("B09-strb-lane-3", read32(prio), 0x00c04080);
    uint64_t zero[31] = {7, prio};

    insn_exec(0xb900003fu, zero); /* str wzr, [x1] */
    check_eq("B09-str-wzr", read32(prio), 0);

    uint64_t typer = gic_redist[0] + GICR_TYPER, whole = read64(typer);

    check_eq("B09-64-bit-low-half", read32(typer), whole & 0xffffffff);
    check_eq("B09-64-bit-high-half", read32(typer + 4), whole >> 32);
    load("B09-ldr-x", LDR_X, typer, whole);
}

/* An instruction without syndrome either does its work or is an external abort: nothing between. */
static void no_syndrome(const char *name, const uint32_t *code, unsigned n, uint64_t addr,
                        uint64_t expected) {
    uint64_t regs[31] = {0, addr};
    struct exc_info e = code_exec(code, n, regs);
    char full[64];

    format(full, sizeof(full), "G16-%s", name);
    if (!e.count) {
        tap_note("%s: works", name);
        check_eq(full, regs[0], expected);
        return;
    }
    tap_note("%s: esr 0x%lx far 0x%lx", name, e.esr, e.far);
    tap_check(ESR_EC(e.esr) == EC_DABT && (e.esr & 0x3f) == 0x10, full, e.esr, 0x96000010);
    format(full, sizeof(full), "G16-%s-far-elr", name);
    tap_check(e.far >= addr && e.far < addr + 16 && e.elr < 4ul * n, full, e.far, addr);
    format(full, sizeof(full), "G16-%s-base-kept", name);
    check_eq(full, regs[1], addr);
}

#define TRY(name, addr, expected, ...)                                                             \
    do {                                                                                           \
        static const uint32_t code_[] = {__VA_ARGS__};                                             \
        no_syndrome(name, code_, ARRAY_SIZE(code_), addr, expected);                               \
    } while (0)

static __attribute__((noinline)) void g16_no_syndrome(void) {
    uint64_t gicd = GICD_BASE + GICD_TYPER, gicr = gic_redist[0] + GICR_TYPER;
    uint64_t typer = read32(gicd), rtyper = read64(gicr), fr = read32(UART_FR);
    uint64_t prio = GICD_BASE + GICD_IPRIORITYR + 56;

    TRY("ldp-w-gicd", gicd, typer, 0x29400820u); /* ldp w0, w2, [x1] */
    TRY("ldp-w-gicr", gicr, rtyper & 0xffffffff, 0x29400820u);
    TRY("ldp-x-gicr", gicr, rtyper, 0xa9400820u); /* ldp x0, x2, [x1] */
    TRY("ldp-w-uart", UART_FR, fr, 0x29400820u);
    TRY("ldr-post-gicd", gicd, typer, 0xb8404420u);    /* ldr w0, [x1], #4 */
    TRY("ldr-post-x-gicr", gicr, rtyper, 0xf8408420u); /* ldr x0, [x1], #8 */
    TRY("ldr-pre-uart", UART_FR - 4, fr, 0xb8404c20u); /* ldr w0, [x1, #4]! */
    TRY("ldr-post-uart", UART_FR, fr, 0xb8404420u);
    TRY("ldr-s-gicd", gicd, typer, 0xbd400020u, 0x1e260000u);  /* ldr s0; fmov w0, s0 */
    TRY("ldr-d-gicr", gicr, rtyper, 0xfd400020u, 0x9e660000u); /* ldr d0; fmov x0, d0 */
    TRY("ldr-q-gicr", gicr & ~15ul, read64(gicr & ~15ul), 0x3dc00020u, 0x9e660000u);
    TRY("ldr-s-uart", UART_FR, fr, 0xbd400020u, 0x1e260000u);
    TRY("ldxr-gicd", gicd, typer, 0x885f7c20u, 0xd5033f5fu); /* ldxr; clrex */
    TRY("ldnp-gicd", gicd, typer, 0x28400820u);
    TRY("ld1-gicr", gicr, rtyper & 0xffffffff, 0x0d408020u, 0x0e043c00u); /* ld1 {v0.s}[0]; umov */

    /* stores: afterwards either the new or, with an abort, the old value is there */
    static const struct {
        const char *name;
        uint32_t insn;
        uint64_t x0, expected;
    } stores[] = {
        {"str-post", 0xb8004420u, 0x10203040, 0x10203040}, /* str w0, [x1], #4 */
        {"stp-w", 0x29000820u, 0x50607080, 0x50607080},    /* stp w0, w2, [x1] */
        {"str-s", 0xbd000020u, 0, 0},                      /* str s0, [x1] */
    };

    for (unsigned i = 0; i < ARRAY_SIZE(stores); i++) {
        uint64_t regs[31] = {stores[i].x0, prio, 0x90a0b0c0};
        const uint32_t code[] = {0x2f00e400u, stores[i].insn}; /* movi d0, #0 */
        char name[40];

        write32(prio, 0xf8f8f8f8);
        struct exc_info e = code_exec(code, 2, regs);
        uint64_t got = read32(prio);

        format(name, sizeof(name), "G16-%s-gicd", stores[i].name);
        tap_note("%s: %s", name, e.count ? "abort" : "no exception");
        if (native() && i == 1) {
            tap_skip(name, "the emulator makes it one 64-bit access, which its GIC ignores");
            continue;
        }
        check_eq(name, got, e.count ? 0xf8f8f8f8 : stores[i].expected);
    }
}

/* Cache maintenance, prefetch and translation of a device address harm nobody. */
static void g16_upkeep(void) {
    static const struct {
        const char *name;
        uint32_t insn;
    } upkeep[] = {
        {"dc-civac", 0xd50b7e21u}, {"dc-cvac", 0xd50b7a21u}, {"dc-cvau", 0xd50b7b21u},
        {"dc-ivac", 0xd5087621u},  {"ic-ivau", 0xd50b7521u}, {"prfm", 0xf9800020u},
        {"at-s1e1r", 0xd5087801u}, {"dc-zva", 0xd50b7421u},
    };

    for (unsigned i = 0; i < ARRAY_SIZE(upkeep); i++) {
        uint64_t regs[31] = {0, GICD_BASE + 0x40};
        struct exc_info e = insn_exec(upkeep[i].insn, regs);
        char name[40];

        format(name, sizeof(name), "G16-%s-device", upkeep[i].name);
        tap_note("%s: %s 0x%lx", name, e.count ? "esr" : "no exception", e.esr);
        check_true(name, !e.count || ESR_EC(e.esr) == EC_DABT);
    }
}

struct sweep {
    uint64_t reads, writes, aborts, nonzero, strange;
};

/* One access; any outcome but a synchronous data abort counts as strange. */
static void poke(struct sweep *s, uint64_t addr, unsigned size, bool write, uint64_t value) {
    struct cpu *c = this_cpu();

    exc_expect();
    if (write) {
        if (size == 1)
            write8(addr, (uint8_t)value);
        else if (size == 2)
            write16(addr, (uint16_t)value);
        else if (size == 4)
            write32(addr, (uint32_t)value);
        else
            write64(addr, value);
        s->writes++;
    } else {
        uint64_t v = size == 1   ? read8(addr)
                     : size == 2 ? read16(addr)
                     : size == 4 ? read32(addr)
                                 : read64(addr);
        s->reads++;
        s->nonzero += c->info.count == 0 && v != 0;
    }
    dsb();
    c->expect = false;
    s->aborts += c->info.count;
    if (c->info.count && ESR_EC(c->info.esr) != EC_DABT)
        s->strange++;
}

/* Registers whose writes have an effect of their own that the rest of the test could not bear. */
static bool leave_alone(uint64_t addr) {
    /* the UART's data; LPI tables and commands of a controller that has them */
    return (addr >= UART_BASE && addr < UART_BASE + 8) ||
           (addr >= GICR_BASE && addr < GICR_BASE + 0x20000ul * 256 && (addr & 0x1ffff) < 0x14) ||
           (addr >= GICR_BASE && addr < GICR_BASE + 0x20000ul * 256 && (addr & 0x1ffff) >= 0x70 &&
            (addr & 0x1ffff) < 0x80);
}

static void sweep_window(const char *what, uint64_t base, uint64_t size) {
    struct sweep s = {0};
    struct rng r = {base + 1};
    bool all = bootarg("long", 1) > 1;
    char name[64];

    /* reads of each word; with long=2 each byte offset with each size */
    for (uint64_t o = 0; o < size; o += all ? 1 : 4) {
        for (unsigned width = all ? 1 : 4; width <= (all ? 8u : 4u); width *= 2) {
            if (o + width <= size && base + o != UART_DR)
                poke(&s, base + o, width, false, 0);
        }
    }
    /* random widths, offsets and values, writes mostly; also the edges of the window */
    for (unsigned i = 0; i < (all ? 200000u : 3000u); i++) {
        uint64_t x = rng_next(&r);
        unsigned width = 1u << (x & 3);
        uint64_t o = (x >> 8) % (size - 7), addr = base + (x & 0x80 ? o : o & ~7ul);
        bool write = x & 0x40;

        if (leave_alone(addr & ~7ul) || leave_alone(addr + 7))
            continue;
        poke(&s, addr, width, write, x & 0x20 ? rng_next(&r) : x & 0x10 ? ~0ul : 0);
    }
    tap_note("%s: %lu reads, %lu writes, %lu aborts, %lu reads not zero", what, s.reads, s.writes,
             s.aborts, s.nonzero);
    format(name, sizeof(name), "G14-%s-survives", what);
    check_eq(name, s.strange, 0);
}

static __attribute__((noinline)) void g14_windows(void) {
    char name[32];

    __asm__ volatile("msr daifset, #0xf");
    sweep_window("gicd", GICD_BASE, 0x10000);
    gic_init();
    for (unsigned i = 0; i < cpu_count && i < 3; i++) {
        format(name, sizeof(name), "gicr%u", i);
        sweep_window(name, gic_redist[i], 0x20000);
    }
    /* the UART's interrupt mask and control may be anything now */
    uint32_t saved[6];
    static const unsigned keep[6] = {0x24, 0x28, 0x2c, 0x30, 0x34, 0x38};

    for (unsigned i = 0; i < 6; i++)
        saved[i] = read32(UART_BASE + keep[i]);
    uint32_t reads = 0;

    exc_expect();
    for (uint64_t o = 4; o < 0x1000; o += 4)
        reads += read32(UART_BASE + o) != 0;
    struct exc_info e = exc_end();
    struct rng r = {99};

    exc_expect();
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t x = rng_next(&r), addr = UART_BASE + 0x20 + ((x >> 16) % 0xfd8 & ~3ul);

        /* not the control register: a loop-back or disabled UART would eat the results */
        if ((addr & ~3ul) != UART_BASE + 0x30)
            write32(addr, (uint32_t)(x >> 32));
    }
    struct exc_info e2 = exc_end();

    for (unsigned i = 0; i < 6; i++)
        write32(UART_BASE + keep[i], saved[i]);
    tap_note("uart: %u registers read not zero", reads);
    check_true("G14-uart-reads-survive", !e.count || ESR_EC(e.esr) == EC_DABT);
    check_true("G14-uart-writes-survive", !e2.count || ESR_EC(e2.esr) == EC_DABT);
    sweep_window("uart-other-widths", UART_BASE + 0x40, 0xfc0);
    for (unsigned i = 0; i < 6; i++)
        write32(UART_BASE + keep[i], saved[i]);
    write32(UART_BASE + 0x44, 0x7ff);

    /* and the controller still works */
    gic_cpu_init();
    gic_set(3, GICD_ISENABLER);
    gic_sgi_self(3);
    check_true("G14-sgi-still-works", wait_for(gic_iar1() == 3, 100000));
    gic_eoi1(3);
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    b09_widths();
    g16_no_syndrome();
    g16_upkeep();
    g14_windows();
}
