/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A hostile guest, the half that attacks with addresses: device registers in every width and form,
 * the edges of its memory, far addresses, page tables outside memory or in devices, fetches from
 * there, and a scan of all that answers. Boot arguments: `seed`, `inputs`, `only`.
 *
 * What must hold: each access works or is an external abort; nothing that can be read has the
 * neighbour's pattern in it; the guest goes on.
 */
#include "hostile.h"
#include "pv.h"

const char *const test_name = "hostile_mem";

/* ---- forms of access: x1 is the address; each is one instruction and a RET ---- */

/* clang-format off */
#define FORMS(X)                                                                                   \
    X(ldrb w2, [x1]) X(ldrh w2, [x1]) X(ldr w2, [x1]) X(ldr x2, [x1]) X(ldrsb w2, [x1])            \
    X(ldrsb x2, [x1]) X(ldrsh w2, [x1]) X(ldrsh x2, [x1]) X(ldrsw x2, [x1]) X(ldr xzr, [x1])       \
    X(ldur w2, [x1]) X(ldtr w2, [x1]) X(ldar w2, [x1]) X(ldarb w2, [x1]) X(ldar x2, [x1])          \
    X(ldr w2, [x1], 4) X(ldr x2, [x1, 8]!) X(ldr x1, [x1]) X(ldp w2, w3, [x1])                   \
    X(ldp x2, x3, [x1]) X(ldp x2, x3, [x1], 16) X(ldpsw x2, x3, [x1]) X(ldnp x2, x3, [x1])        \
    X(ldxr w2, [x1]) X(ldaxr x2, [x1]) X(ldxp x2, x3, [x1]) X(ldxrb w2, [x1])                      \
    X(ldr b0, [x1]) X(ldr h0, [x1]) X(ldr s0, [x1]) X(ldr d0, [x1]) X(ldr q0, [x1])                \
    X(ldp q0, q1, [x1]) X(ld1 {v0.16b}, [x1]) X(ld4 {v0.4s-v3.4s}, [x1]) X(ld1r {v0.8b}, [x1])     \
    X(ldapr w2, [x1]) X(prfm pldl1keep, [x1]) X(prfm pstl1strm, [x1])                              \
    X(strb w2, [x1]) X(strh w2, [x1]) X(str w2, [x1]) X(str x2, [x1]) X(str wzr, [x1])             \
    X(str xzr, [x1]) X(stur x2, [x1]) X(sttr w2, [x1]) X(stlr w2, [x1]) X(stlrb w2, [x1])          \
    X(str w2, [x1], 4) X(str x2, [x1, 8]!) X(str x1, [x1]) X(stp w2, w3, [x1])                   \
    X(stp x2, x3, [x1]) X(stp x2, x3, [x1, 16]!) X(stnp x2, x3, [x1]) X(stxr w4, w2, [x1])        \
    X(stlxr w4, x2, [x1]) X(stxp w4, x2, x3, [x1]) X(str b0, [x1]) X(str d0, [x1])                 \
    X(str q0, [x1]) X(stp q0, q1, [x1]) X(st1 {v0.16b}, [x1]) X(st4 {v0.4s-v3.4s}, [x1])           \
    X(ldadd w2, w3, [x1]) X(ldaddal x2, x3, [x1]) X(swp w2, w3, [x1]) X(cas x2, x3, [x1])          \
    X(casp x2, x3, x4, x5, [x1]) X(stadd w2, [x1]) X(ldclrb w2, w3, [x1]) X(ldsmax x2, x3, [x1])   \
    X(dc cvac, x1) X(dc civac, x1) X(dc ivac, x1) X(dc cvau, x1) X(dc zva, x1) X(ic ivau, x1)      \
    X(dc cvap, x1) X(at s1e1r, x1) X(at s1e1w, x1) X(at s1e0r, x1) X(at s1e0w, x1)                 \
    X(tlbi vae1, x1) X(tlbi vaae1is, x1) X(tlbi vale1, x1) X(tlbi aside1, x1)
/* clang-format on */

extern const uint32_t forms[] __attribute__((visibility("hidden")));
extern const uint32_t forms_end[] __attribute__((visibility("hidden")));
#define FORM(...) #__VA_ARGS__ "\n\tret\n\t"
__asm__(".text\n.balign 8\n.arch armv8.4-a+lse+simd+fp\nforms:\n\t" FORMS(
    FORM) "\nforms_end:\n.arch armv8-a\n");

#define EDGE_CLASSES (EC_BIT(EC_UNKNOWN) | EC_BIT(EC_DABT) | EC_BIT(EC_IABT) | EC_BIT(EC_PC_ALIGN))

static uint64_t secrets;

/* All that an access brought is looked at. */
static void look(const uint64_t regs[31], uint64_t at) {
    for (unsigned i = 1; i < 6; i++) {
        if (is_secret(regs[i]) || is_secret(regs[i] << 32)) {
            secrets++;
            note_wrong("the neighbour's pattern: address, value", at, regs[i], 0);
        }
    }
}

static bool hook(struct exc_frame *f, unsigned vector) {
    unsigned ec = ESR_EC(f->esr);

    (void)vector;
    if (!H.active)
        return false;
    judge(f);
    if (ec == EC_DABT || ec == EC_IABT) {
        unsigned status = f->esr & 0x3f;
        bool stage1 = status < STATUS_SEA || status == 0x21 || status == 0x35;

        /* FnV never: the address is always known */
        if (f->esr & 1u << 10 || (!stage1 && (status < STATUS_SEA || status > 0x17)))
            note_wrong("abort: esr, far", f->esr, f->far, f->elr);
    }
    if (ec == EC_IABT || ec == EC_PC_ALIGN)
        f->elr = f->x[30];
    else
        f->elr += 4;
    return true;
}

static void irq_hook(struct exc_frame *f) {
    f->spsr |= 0xc0; /* not expected to be unmasked: and not any more */
}

static void access(uint64_t at, unsigned form, uint64_t value) {
    uint64_t regs[31] = {0, at, value, rnd(), rnd(), rnd()};

    if (is_secret(regs[3]) || is_secret(regs[4]) || is_secret(regs[5]))
        return;
    H.active = true;
    insn_trampoline(regs, forms + 2 * (size_t)form);
    H.active = false;
    H.inputs++;
    look(regs, at);
}

static unsigned any_form(void) {
    return (unsigned)below((uint64_t)(forms_end - forms) / 2);
}

/* ---- devices ---- */

/* What stage 1 says of the devices: as mapped (device memory), or a second view as normal memory.
 */
#define NORMAL_VIEW 0x2000000000ul
#define VIEWS       4u

static uint64_t views[VIEWS]; /* pages that are seen at NORMAL_VIEW */

static uint64_t device_offset(uint64_t size) {
    uint64_t offset = below(size);

    switch (below(4)) {
    case 0:
        return offset;
    case 1:
        return offset & ~7ul;
    default:
        return offset & ~3ul;
    }
}

static uint64_t device_value(uint64_t at) {
    if (at - UART_BASE < PAGE) {
        /* what it sends is to be harmless text, and it must not loop back our own */
        return '.' | (below(8) ? 0 : rnd() & 0xff00);
    }
    return nasty();
}

static uint64_t device(void) {
    uint64_t redists = (uint64_t)cpu_count * 0x20000;

    switch (below(8)) {
    case 0:
    case 1:
    case 2:
        return GICD_BASE + device_offset(below(4) ? 0x1000 : 0x10000);
    case 3:
    case 4:
    case 5:
        return GICR_BASE + device_offset(redists);
    case 6:
        return UART_BASE + device_offset(below(2) ? 0x60 : PAGE);
    default:
        return (below(2) ? GICD_BASE : GICR_BASE + redists) + 0x10000 + device_offset(0x10000) - 64;
    }
}

static void uart_reset(void) {
    write32(UART_BASE + 0x38, 0);
    write32(UART_BASE + 0x30, 0x301);
    write32(UART_BASE + 0x2c, 0x70);
    write32(UART_BASE + 0x44, 0x7ff);
}

static void devices(uint64_t until) {
    phase("devices", EDGE_CLASSES);
    for (unsigned i = 0; i < VIEWS; i++) {
        static const uint64_t pages[VIEWS] = {GICD_BASE, GICR_BASE, GICR_BASE + 0x10000, UART_BASE};

        views[i] = pages[i];
        mmu_map_page(NORMAL_VIEW + i * PAGE, pages[i], PTE_NORMAL | PTE_PXN | PTE_UXN);
    }
    while (H.inputs < until) {
        uint64_t at = device();

        if (below(4) == 0) {
            uint64_t view = below(VIEWS);

            at = views[view] + device_offset(PAGE);
            access(NORMAL_VIEW + view * PAGE + at % PAGE, any_form(), device_value(at));
        } else {
            access(at, any_form(), device_value(at));
        }
        if (H.inputs % 64 == 0)
            uart_reset();
    }
    uart_reset();
}

/* Each offset of each device, in each width, read and written with what was read. */
static void every_register(uint64_t until) {
    const struct {
        uint64_t base, size;
    } list[] = {{GICD_BASE, 0x10000}, {GICR_BASE, 0x20000}, {UART_BASE, PAGE}};
    uint64_t step = (until - H.inputs) / 60000 ? 4 : 64;

    phase("every register", EDGE_CLASSES);
    for (unsigned d = 0; d < ARRAY_SIZE(list); d++) {
        for (uint64_t offset = 0; offset < list[d].size && H.inputs < until; offset += step) {
            uint64_t at = list[d].base + offset;

            for (unsigned form = 0; form < 4; form++)
                access(at, form, 0);
        }
    }
}

/* ---- meanwhile, on the other CPUs ---- */

static volatile uint32_t stop;
static uint64_t beside[MAX_CPUS]; /* what they tried; not in H.inputs */

static void worker(uint64_t arg) {
    struct rng r = {0x1000193 * (arg + 1) ^ bootarg("seed", 1)};

    while (!stop) {
        uint64_t n = rng_next(&r), gicr = GICR_BASE + (n >> 40) % cpu_count * 0x20000;
        uint32_t value = (uint32_t)rng_next(&r);

        switch (n >> 32 & 7) {
        case 0:
            write_sysreg(icc_sgi1r_el1, n << 24 | 0xffff | (value & 1ul) << 40);
            break;
        case 1:
            write32(GICD_BASE + (n & 0xffc), value);
            break;
        case 2:
            write32(gicr + (n & 0x10ffc), value);
            break;
        case 3:
            (void)read32(gicr + (n & 0x10ffc));
            break;
        case 4:
            write32(GICD_BASE, value & 3);
            break;
        case 5:
            write64(GICD_BASE + 0x6100 + (n & 0x7f8), value % (2 * cpu_count));
            break;
        case 6:
            write_sysreg(cntv_cval_el0, counter() + (value & 0xfff));
            write_sysreg(cntv_ctl_el0, value >> 20 & 3);
            break;
        default:
            (void)gic_iar1();
            write_sysreg(icc_eoir1_el1, value % 64);
            (void)read32(GICD_BASE + GICD_ISPENDR + (n & 0x17c));
        }
        beside[arg]++;
    }
    write_sysreg(cntv_ctl_el0, 0);
}

static void begin_beside(void) {
    for (unsigned i = 1; i < cpu_count; i++) {
        if (smp_start(i, worker, i))
            die("CPU_ON failed");
    }
}

static void end_beside(void) {
    uint64_t sum = 0;

    stop = 1;
    smp_wait_all_off();
    for (unsigned i = 1; i < cpu_count; i++)
        sum += beside[i];
    if (cpu_count > 1)
        tap_note("%lu more on the other CPUs", sum);
}

/* ---- edges of memory, and far away ---- */

#define FAR_VIEW  0x2100000000ul
#define FAR_PAGES 64ul

static uint64_t far_ipa(void) {
    uint64_t end = ram_base + ram_size;
    const uint64_t at[] = {
        end,        end - PAGE, end + PAGE,         ram_base - PAGE,
        0,          1ul << 38,  1ul << 39,          (1ul << 39) - PAGE,
        1ul << 40,  1ul << 47,  (1ul << 48) - PAGE, 0x090a0000,
        0x090c0000, GICD_BASE,  UART_BASE,          0x4000000000ul + (uint64_t)cpu_count * 0x20000};

    if (below(2))
        return at[below(ARRAY_SIZE(at))];
    uint64_t page = rnd() >> (16 + below(28)) & ~(PAGE - 1);

    return page - ram_base < ram_size ? end : page;
}

static void edges(uint64_t until) {
    uint64_t end = ram_base + ram_size, tcr = read_sysreg(tcr_el1);
    static const uint64_t attrs[] = {PTE_NORMAL, PTE_DEVICE, PTE_NC, PTE_NORMAL | PTE_RO};

    phase("edges", EDGE_CLASSES);
    write_sysreg(tcr_el1, (tcr & ~(7ul << 32)) | 5ul << 32); /* 48 bits, whatever is there */
    isb();
    /* the last page and what follows it, side by side, as normal memory */
    mmu_map_page(NORMAL_VIEW, end - PAGE, PTE_NORMAL | PTE_PXN | PTE_UXN);
    mmu_map_page(NORMAL_VIEW + PAGE, end, PTE_NORMAL | PTE_PXN | PTE_UXN);
    while (H.inputs < until) {
        for (uint64_t i = 0; i < FAR_PAGES; i++) {
            uint64_t ipa = far_ipa(), attr = attrs[below(ARRAY_SIZE(attrs))];

            if (ipa - ram_base < ram_size)
                attr |= PTE_PXN; /* what was stored there is not to be executed */
            mmu_map_page(FAR_VIEW + i * PAGE, ipa, attr);
        }
        for (unsigned n = 0; n < 256; n++) {
            access(NORMAL_VIEW + PAGE - 32 + below(48), any_form(), 0);
            access(FAR_VIEW + below(FAR_PAGES * PAGE), any_form(), nasty());
            if (n % 16 == 0) { /* a fetch */
                uint64_t regs[31] = {0};

                H.active = true;
                insn_trampoline(regs,
                                (const uint32_t *)(FAR_VIEW + (below(FAR_PAGES * PAGE) & ~3ul)));
                H.active = false;
                H.inputs++;
            }
        }
        uart_reset();
    }
    write_sysreg(tcr_el1, tcr);
    isb();
}

/* ---- tables that are not in memory: the upper half, all our own is in the lower ---- */

static uint64_t table_address(const uint64_t *tables) {
    if (below(3) == 0)
        return (uint64_t)tables + PAGE * below(3);
    return far_ipa();
}

static void fill_tables(uint64_t *tables) {
    for (unsigned i = 0; i < 3 * 512; i++) {
        uint64_t entry = table_address(tables) | 3;

        if (below(8) == 0)
            entry = (entry & ~2ul) | 1ul << 10 | 3ul << 8 | 1ul << 7; /* a read-only block */
        if (i >= 1024)
            entry |= 1ul << 10 | 3ul << 8 | 1ul << 7; /* the last level: read-only pages */
        tables[i] = below(16) ? entry : 0;
    }
}

static void walks(uint64_t until) {
    uint64_t *tables = (uint64_t *)alloc_pages(3), tcr = read_sysreg(tcr_el1);

    phase("walks", EDGE_CLASSES);
    while (H.inputs < until) {
        uint64_t bits = 25 + below(24), granule = 1 + below(3);

        fill_tables(tables);
        write_sysreg(ttbr1_el1, table_address(tables));
        write_sysreg(tcr_el1, (tcr & 0xffff) | 5ul << 32 | (64 - bits) << 16 | 1ul << 24 |
                                  1ul << 26 | 3ul << 28 | granule << 30 |
                                  (below(4) ? 0 : 3ul << 39)); /* sometimes hardware updates */
        tlb_flush_all();
        for (unsigned n = 0; n < 128; n++) {
            uint64_t va = (~0ul << bits) | (rnd() & ((1ul << bits) - 1));
            unsigned form = any_form();

            access(below(2) ? va & ~0xffful : va, form, 0);
        }
    }
    write_sysreg(tcr_el1, tcr);
    write_sysreg(ttbr1_el1, 0);
    tlb_flush_all();
}

/* ---- the scan ---- */

static uint64_t answered;

/* What docs/abi.md lists. */
static bool documented(uint64_t at) {
    return at - GICD_BASE < 0x10000 || at - GICR_BASE < (uint64_t)cpu_count * 0x20000 ||
           at - UART_BASE < PAGE || at - PV_TIME_REGION < PAGE || at - PV_LOCK_REGION < PAGE ||
           at - ram_base < ram_size;
}

static void scan_at(uint64_t at) {
    uint64_t regs[31] = {0, at}, before = H.classes[EC_DABT];

    H.active = true;
    insn_trampoline(regs, forms + 2 * 3); /* ldr x2, [x1] */
    H.active = false;
    H.inputs++;
    look(regs, at);
    if (H.classes[EC_DABT] != before)
        return;
    answered++;
    if (!documented(at)) {
        secrets++; /* nobody's or somebody's: no place to go on to */
        note_wrong("something answers: address, value", at, regs[2], 0);
    }
}

/* Every page around devices and memory, as many others as there are inputs left, one each. */
static void scan(uint64_t until) {
    const struct {
        uint64_t from, to;
    } dense[] = {{GICD_BASE, 0x08400000},
                 {UART_BASE - 0x100000, UART_BASE + 0x100000},
                 {ram_base - 0x800000, ram_base},
                 {ram_base + ram_size, ram_base + ram_size + 0x1000000},
                 {0x4000000000ul, 0x4000400000ul}};

    phase("scan", EDGE_CLASSES);
    for (unsigned i = 0; i < ARRAY_SIZE(dense); i++) {
        for (uint64_t at = dense[i].from; at < dense[i].to && H.inputs < until; at += PAGE)
            scan_at(at);
    }
    uint64_t step = H.inputs < until ? (1ul << 39) / (until - H.inputs) & ~7ul : 0;

    for (uint64_t at = 0; H.inputs < until; at += step)
        scan_at(at + (below(step) & ~7ul));
    tap_note("%lu addresses answered", answered);
}

/* All of our memory, word by word: before anything was done, and after all. */
static void own_memory(const char *when) {
    uint64_t before = secrets;

    for (uint64_t at = ram_base; at < ram_base + ram_size; at += 8) {
        uint64_t word = *(volatile uint64_t *)at;

        if (is_secret(word)) {
            secrets++;
            note_wrong("the neighbour's pattern in our memory", at, word, 0);
        }
    }
    check_eq(when, secrets - before, 0);
}

static const struct {
    const char *name;
    void (*run)(uint64_t until);
    unsigned share;
} phases[] = {
    {"scan", scan, 3},       {"every register", every_register, 2},
    {"devices", devices, 6}, {"edges", edges, 3},
    {"walks", walks, 2},
};

void test_main(void) {
    uint64_t inputs = bootarg("inputs", 200000), only = bootarg("only", 0xff);

    tap_note("seed %lu", bootarg("seed", 1));
    this_cpu()->sync_hook = hook;
    this_cpu()->irq_hook = irq_hook;
    this_cpu()->fiq_hook = irq_hook;
    own_memory("hostile_mem-nothing-of-others-at-the-start");
    begin_beside();
    for (unsigned i = 0; i < ARRAY_SIZE(phases); i++) {
        uint64_t before = H.inputs, start = counter();

        if (!(only >> i & 1) || secrets)
            continue;
        hostile_seed(i);
        phases[i].run(H.inputs + inputs * phases[i].share / 16);
        uart_reset();
        print("\n");
        tap_note("%s: %lu inputs in %lu us", phases[i].name, H.inputs - before,
                 ticks_to_us(counter() - start));
    }
    end_beside();
    own_memory("hostile_mem-nothing-of-others-at-the-end");
    check_eq("hostile_mem-no-secret-seen", secrets, 0);
    hostile_end("hostile_mem-answers");
}
