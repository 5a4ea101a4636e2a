/* SPDX-License-Identifier: GPL-2.0-only */
/* What one vCPU alone on one pCPU can measure: calls, accesses, its own interrupts and timer. */
#include "bench.h"

const char *const test_name = "fixed";

#define UART_FR  0x18u
#define TIMER_NS 30000u /* so far ahead that arming it is long over */

static struct samples s;
static uint64_t own, rounds;

static void begin(const char *name) {
    memset(&s, 0, sizeof(s));
    s.name = name;
}

static void add(uint64_t before, uint64_t after) {
    s.value[s.n++] = after - before;
}

/* `action` between two readings of the clock. */
#define TIME(name, action)                                                                         \
    for (begin(name); s.n < rounds;) {                                                             \
        uint64_t before = now();                                                                   \
        action;                                                                                    \
        add(before, now());                                                                        \
    }                                                                                              \
    bench_report(&s, own)

static void traps(void) {
    TIME("hypercall", hvc4(SMCCC_VERSION, 0, 0, 0));
    TIME("mmio", (void)read32(GICD_BASE + GICD_TYPER));
    TIME("mmio_uart", (void)read32(UART_BASE + UART_FR));
    TIME("mmio_redist", (void)read32(this_cpu()->gicr + GICR_CTLR));
    TIME("sysreg_id", (void)read_sysreg(id_aa64pfr0_el1));
}

/* Until the handler has counted one more. */
static void wait_handler(bool sleep) {
    volatile uint64_t *count = &bench_cpus[0].count;

    for (uint64_t old = *count; *count == old;) {
        if (sleep) {
            wfi();
        }
    }
}

/* Until acknowledged: the handler is entered between two instructions of the loop. */
static void self_sgi(void) {
    volatile struct bench_cpu *b = &bench_cpus[0];

    irq_enable();
    for (begin("self_sgi"); s.n < rounds;) {
        uint64_t count = b->count, before = now();

        write_sysreg(icc_sgi1r_el1, 1ul << 24 | 1);
        while (b->count == count) {
        }
        add(before, b->ack);
    }
    irq_disable();
    bench_report(&s, own);
}

static uint64_t arm(void) {
    uint64_t deadline = now() + TIMER_NS;

    write_sysreg(cntv_cval_el0, deadline);
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    return deadline;
}

static void disarm(void) {
    uint32_t id = gic_iar1();

    write_sysreg(cntv_ctl_el0, 0);
    isb();
    gic_eoi1(id);
    if (id != INTID_VTIMER) {
        die("woke for interrupt %u, expected the timer's", id);
    }
}

/* Lateness: what the counter says past the deadline. Masked: WFI returns, and nothing else does. */
static void timer(void) {
    volatile struct bench_cpu *b = &bench_cpus[0];

    for (begin("wfi_timer"); s.n < rounds; disarm()) {
        uint64_t deadline = arm();

        wfi();
        add(deadline, now());
    }
    bench_report(&s, own);
    irq_enable();
    for (begin("wfi_timer_handler"); s.n < rounds;) {
        uint64_t deadline = arm();

        wait_handler(true);
        add(deadline, b->entry);
    }
    bench_report(&s, own);
    for (begin("timer_running"); s.n < rounds;) {
        uint64_t deadline = arm();

        wait_handler(false);
        add(deadline, b->entry);
    }
    irq_disable();
    bench_report(&s, own);
}

void test_main(void) {
    rounds = bootarg("rounds", SAMPLES);
    gic_init();
    bench_cpu_init();
    gic_set(1, GICD_ISENABLER);
    gic_set(2, GICD_ISENABLER);
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    own = bench_own();
    print("bench: own %lu %lu %lu 33\n", own, own, own);
    traps();
    self_sgi();
    timer();
}
