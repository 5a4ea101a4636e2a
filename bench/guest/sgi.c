/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SGIs between two vCPUs. `pingpong`: on one pCPU, both wait in WFI. Otherwise on two pCPUs: the
 * receiver runs, the sender goes to WFI at once, and so takes no turns from the other pCPU.
 */
#include "bench.h"

const char *const test_name = "sgi";

#define SGI      1u
#define ROUNDS   128u
#define PAUSE_NS 40000u /* between two SGIs: the receiver is long back in its loop */

static struct samples s;
static volatile uint32_t receiver_ready, finished;
static uint64_t rounds;

static inline void send(uint64_t affinity) {
    write_sysreg(icc_sgi1r_el1, (uint64_t)SGI << 24 | 1ul << affinity);
    isb();
}

static void take(void) {
    uint32_t id = gic_iar1();

    if (id != SGI) {
        die("woke for interrupt %u, expected %u", id, SGI);
    }
    gic_eoi1(id);
}

static void receiver(uint64_t arg) {
    (void)arg;
    bench_cpu_init();
    gic_set(SGI, GICD_ISENABLER);
    receiver_ready = 1;
    irq_enable();
    while (!finished) {
        __asm__ volatile("yield"); /* the emulator lets the other CPU go on here */
    }
    irq_disable();
}

static void sleep_ns(uint64_t ns) {
    write_sysreg(cntv_cval_el0, now() + ns);
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    wfi();
    uint32_t id = gic_iar1();
    write_sysreg(cntv_ctl_el0, 0);
    isb();
    gic_eoi1(id);
}

/* A function of its own: bench/run finds its two exits in the profile by this name. */
static __attribute__((noinline)) uint64_t sgi_then_wfi(void) {
    uint64_t t0 = now();

    write_sysreg(icc_sgi1r_el1, (uint64_t)SGI << 24 | 2);
    __asm__ volatile("wfi" : : : "memory");
    return t0;
}

/* The timer that ends the sender's WFI is armed before; the receiver's handler noted the time. */
static void one_way(uint64_t own) {
    volatile struct bench_cpu *b = &bench_cpus[1];

    s = (struct samples){.name = "sgi"};
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t count = b->count;

        sleep_ns(PAUSE_NS + 101 * i); /* not in step with the emulator's turns */
        write_sysreg(cntv_cval_el0, now() + PAUSE_NS);
        write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
        isb();
        uint64_t t0 = sgi_then_wfi();
        uint32_t id = gic_iar1();
        write_sysreg(cntv_ctl_el0, 0);
        isb();
        gic_eoi1(id);
        if (b->count != count + 1) {
            die("round %u: %lu interrupts at the receiver, expected 1", i, b->count - count);
        }
        s.value[s.n++] = b->entry - t0;
    }
    bench_report(&s, own);
}

static void answer(uint64_t arg) {
    (void)arg;
    bench_cpu_init();
    gic_set(SGI, GICD_ISENABLER);
    receiver_ready = 1;
    for (unsigned i = 0; i < rounds; i++) {
        wfi();
        take();
        send(0);
    }
    finished = 1;
}

static void ping_pong(uint64_t own) {
    s = (struct samples){.name = "sgi_pingpong"};
    sleep_ns(PAUSE_NS); /* the other one is in its WFI */
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t t0 = now();

        send(1);
        wfi();
        take();
        s.value[s.n++] = now() - t0;
    }
    bench_report(&s, own);
}

void test_main(void) {
    bool pingpong = bootarg("pingpong", 0);
    uint64_t own = bench_own();

    rounds = bootarg("rounds", ROUNDS);

    gic_init();
    bench_cpu_init();
    gic_set(SGI, GICD_ISENABLER);
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    smp_start_all(pingpong ? answer : receiver, 0);
    while (!receiver_ready) {
    }
    if (pingpong) {
        ping_pong(own);
    } else {
        one_way(own);
    }
    finished = 1;
    smp_wait_all_off();
}
