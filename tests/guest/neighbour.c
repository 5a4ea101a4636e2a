/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The neighbour of a hostile guest: fills its memory with a pattern, keeps values in all registers
 * that it may write, takes timer interrupts and SGIs, and checks all the time that nothing of it
 * changes. It works a tenth of the time and sleeps otherwise; now and then it stays on the CPU to
 * see whether somebody else wants it. When nobody does any more (`alone` times in a row), or after
 * `for_us`, it is through.
 */
#include "irq.h"

const char *const test_name = "neighbour";

#define SECRET      (0x4e454947ul << 32)
#define CHUNK       (64ul * 1024)
#define PERIOD_US   2000
#define PROBE_EVERY 64
#define PROBE_US    6000
#define GAP_US      300

static uint64_t from, to, at; /* memory with the pattern; what is checked next */
static uint64_t wrong_words, wrong_regs, wrong_fp, wrong_sgis, late_max, rounds;
static unsigned alone;

struct kept {
    uint32_t reg;
    uint64_t mask, value;
};

static struct kept kept[] = {
    {SYSREG(3, 0, 13, 0, 1), 0xffffffff, 0},      /* CONTEXTIDR */
    {SYSREG(3, 3, 13, 0, 2), ~0ul, 0},            /* TPIDR_EL0 */
    {SYSREG(3, 3, 13, 0, 3), ~0ul, 0},            /* TPIDRRO_EL0 */
    {SYSREG(3, 0, 4, 1, 0), ~0xful, 0},           /* SP_EL0 */
    {SYSREG(3, 0, 2, 0, 1), 0xfffffffff000ul, 0}, /* TTBR1 */
    {SYSREG(3, 0, 14, 1, 0), 0x3ff, 0},           /* CNTKCTL */
    {SYSREG(3, 0, 2, 1, 0), ~0ul, 0},             /* keys, where there are */
    {SYSREG(3, 0, 2, 1, 3), ~0ul, 0},
    {SYSREG(3, 0, 2, 2, 1), ~0ul, 0},
    {SYSREG(3, 0, 2, 3, 1), ~0ul, 0},
    {SYSREG(2, 0, 0, 0, 4), 0x7ffffffffffcul, 0}, /* DBGBVR0, not enabled */
    {SYSREG(2, 0, 0, 0, 6), 0x7ffffffffffcul, 0},
    {SYSREG(3, 2, 0, 0, 0), 0xf, 0}, /* CSSELR */
};

static uint64_t word_at(uint64_t a) {
    return SECRET | (uint32_t)a;
}

static void fill(void) {
    for (uint64_t a = from; a < to; a += 8)
        *(volatile uint64_t *)a = word_at(a);
}

static void check_memory(void) {
    for (uint64_t end = at + CHUNK; at < end; at += 8) {
        uint64_t found = *(volatile uint64_t *)at;

        if (found != word_at(at) && wrong_words++ < 5)
            tap_note("memory at 0x%lx: 0x%lx", at, found);
    }
    if (at >= to)
        at = from;
}

static void keep_registers(void) {
    struct rng r = {0x1234567};

    for (unsigned i = 0; i < ARRAY_SIZE(kept); i++) {
        uint64_t now;

        if (!sysreg_set(kept[i].reg, rng_next(&r) & kept[i].mask) ||
            !sysreg_get(kept[i].reg, &now)) {
            kept[i].reg = 0;
            continue;
        }
        kept[i].value = now;
    }
}

static void check_registers(void) {
    for (unsigned i = 0; i < ARRAY_SIZE(kept); i++) {
        uint64_t now;

        if (kept[i].reg == 0)
            continue;
        if ((!sysreg_get(kept[i].reg, &now) || now != kept[i].value) && wrong_regs++ < 5)
            tap_note("register 0x%x: 0x%lx instead of 0x%lx", kept[i].reg, now, kept[i].value);
    }
}

#define EACH_V                                                                                     \
    ".arch_extension fp\n\t.arch_extension simd\n\t"                                               \
    ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, "   \
    "23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"

static void set_fp(void) {
    __asm__ volatile(EACH_V "movi v\\n\\().16b, #(0x60 + \\n)\n\t.endr" : : : "memory");
}

static void check_fp(void) {
    uint64_t v[32];

    __asm__ volatile(EACH_V "umov x9, v\\n\\().d[1]\n\tstr x9, [%[at], #(8 * \\n)]\n\t.endr"
                     : "=m"(v)
                     : [at] "r"(v)
                     : "x9", "memory");
    for (unsigned i = 0; i < 32; i++) {
        if (v[i] != 0x0101010101010101ul * (0x60 + i) && wrong_fp++ < 5)
            tap_note("v%u: 0x%lx", i, v[i]);
    }
}

/* Sleeps for a period; general registers must come back from it as they were. */
static void sleep_and_check(void) {
    struct irq_state *s = &irqs[this_cpu()->index];
    uint64_t until = counter() + us_to_ticks(PERIOD_US);
    uint32_t before = s->count[INTID_VTIMER];

    write_sysreg(cntv_cval_el0, until);
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    while (s->count[INTID_VTIMER] == before) {
        irq_disable();
        if (s->count[INTID_VTIMER] == before) {
            uint64_t a = 0xa5a5000011112222ul, b = ~a;

            __asm__ volatile("mov x19, %2\n\tmov x20, %3\n\tmov x27, %2\n\tdsb sy\n\twfi\n\t"
                             "eor %0, x19, x27\n\teor %1, x20, %3"
                             : "=&r"(a), "=&r"(b)
                             : "r"(a), "r"(b)
                             : "x19", "x20", "x27", "memory");
            wrong_regs += a != 0 || b != 0;
        }
        irq_enable();
    }
    uint64_t late = counter() - until;

    if (late > late_max)
        late_max = late;
}

static void timer_off(uint32_t id) {
    if (id == INTID_VTIMER)
        write_sysreg(cntv_ctl_el0, 0);
}

static void check_sgis(void) {
    struct irq_state *s = &irqs[this_cpu()->index];

    for (unsigned id = 1; id < 8; id++) {
        uint32_t before = s->count[id];

        gic_sgi_self(id);
        wrong_sgis += !wait_for(s->count[id] == before + 1, 100000);
    }
}

/* Nobody else wants this CPU: no gap in a time in which others would have had a turn. */
static void probe(void) {
    uint64_t now = counter(), end = now + us_to_ticks(PROBE_US), gap = 0;

    while (now < end) {
        uint64_t t = counter();

        gap = t - now > gap ? t - now : gap;
        now = t;
    }
    alone = ticks_to_us(gap) < GAP_US ? alone + 1 : 0;
}

/* Where instructions are counted the same work takes the same time, and only there are times exact.
 */
static bool deterministic(void) {
    uint64_t took[16], least = ~0ul;
    unsigned same = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(took); i++) {
        uint64_t start = counter();

        for (unsigned n = 0; n < 20000; n++)
            __asm__ volatile("");
        took[i] = counter() - start;
        least = took[i] < least ? took[i] : least;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(took); i++)
        same += took[i] <= least + 1;
    return same > ARRAY_SIZE(took) / 2;
}

void test_main(void) {
    uint64_t end = counter() + us_to_ticks(bootarg("for_us", 30000000));
    uint64_t enough = bootarg("alone", 4);
    bool exact = deterministic();

    gic_init();
    gic_cpu_init();
    irq_install()->during = timer_off;
    for (unsigned id = 1; id < 8; id++)
        gic_enable(id);
    gic_enable(INTID_VTIMER);
    from = at = (ram_free_start() + CHUNK - 1) & ~(CHUNK - 1);
    to = (ram_base + ram_size) & ~(CHUNK - 1);
    fill();
    keep_registers();
    set_fp();
    irq_enable();
    while (counter() < end && alone < enough) {
        check_memory();
        check_registers();
        check_fp();
        check_sgis();
        sleep_and_check();
        if (++rounds % PROBE_EVERY == 0)
            probe();
    }
    at = from;
    for (uint64_t n = (to - from) / CHUNK; n; n--)
        check_memory();
    irq_disable();
    tap_note("%lu rounds, latest wake-up %lu us late, %s", rounds, ticks_to_us(late_max),
             alone >= enough ? "alone at the end" : "time over");
    check_eq("neighbour-memory", wrong_words, 0);
    check_eq("neighbour-registers", wrong_regs, 0);
    check_eq("neighbour-fp", wrong_fp, 0);
    check_eq("neighbour-sgis", wrong_sgis, 0);
    check_eq("neighbour-serrors-and-spurious", irqs[0].spurious > rounds, 0);
    if (!exact) {
        tap_skip("neighbour-late-us", "real time: the machine may be busy with other things");
        return;
    }
    check_range("neighbour-late-us", ticks_to_us(late_max), 0, bootarg("late_us", 20000));
    check_true("neighbour-outlived-the-other", alone >= enough);
}
