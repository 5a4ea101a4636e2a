/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * T07: the V registers, FPCR and FPSR of each CPU are its own over exits, sleep, preemption and
 * migration, also over many turns in a row in which it does not touch them. Every CPU holds a
 * pattern of its own in all of them and looks again and again. Before its first use they are 0.
 */
#include "irq.h"

const char *const test_name = "fp";

struct fp_state {
    uint64_t v[64];
    uint64_t fpcr, fpsr;
};

static struct fp_state want[MAX_CPUS], got[MAX_CPUS];
static volatile uint32_t wrong[MAX_CPUS], dirty[MAX_CPUS], finished;
static volatile uint64_t rounds[MAX_CPUS];
static uint64_t limit_us;

#define LEAST 3

#define UNTOUCHED 40u /* more turns than the hypervisor brings them unasked, mostly */

#define PAIR(op, n, m, off) op " q" #n ", q" #m ", [%0, #" #off "]\n\t"
#define ALL(op)                                                                                    \
    PAIR(op, 0, 1, 0)                                                                              \
    PAIR(op, 2, 3, 32)                                                                             \
    PAIR(op, 4, 5, 64)                                                                             \
    PAIR(op, 6, 7, 96)                                                                             \
    PAIR(op, 8, 9, 128)                                                                            \
    PAIR(op, 10, 11, 160)                                                                          \
    PAIR(op, 12, 13, 192)                                                                          \
    PAIR(op, 14, 15, 224)                                                                          \
    PAIR(op, 16, 17, 256)                                                                          \
    PAIR(op, 18, 19, 288)                                                                          \
    PAIR(op, 20, 21, 320)                                                                          \
    PAIR(op, 22, 23, 352)                                                                          \
    PAIR(op, 24, 25, 384) PAIR(op, 26, 27, 416) PAIR(op, 28, 29, 448) PAIR(op, 30, 31, 480)

static void fp_load(const struct fp_state *s) {
    __asm__ volatile(".arch_extension fp\n\t.arch_extension simd\n\t" ALL("ldp")
                     :
                     : "r"(s)
                     : "memory");
    write_sysreg(fpcr, s->fpcr);
    write_sysreg(fpsr, s->fpsr);
}

static void fp_store(struct fp_state *s) {
    __asm__ volatile(".arch_extension fp\n\t.arch_extension simd\n\t" ALL("stp")
                     :
                     : "r"(s)
                     : "memory");
    s->fpcr = read_sysreg(fpcr);
    s->fpsr = read_sysreg(fpsr);
}

static void stop_timer(uint32_t id) {
    if (id == INTID_VTIMER)
        write_sysreg(cntv_ctl_el0, 0);
    isb();
}

static void sleep_us(uint64_t us) {
    struct irq_state *s = &irqs[this_cpu()->index];
    uint32_t seen = s->count[INTID_VTIMER];

    write_sysreg(cntv_cval_el0, counter() + us_to_ticks(us));
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    while (s->count[INTID_VTIMER] == seen) {
        wfi();
        irq_enable();
        isb();
        irq_disable();
    }
}

static void hold(uint64_t arg) {
    unsigned me = this_cpu()->index;
    struct rng r = {1000 + me + arg};
    uint64_t end = counter() + us_to_ticks(limit_us);

    gic_cpu_init();
    fp_store(&got[me]);
    dirty[me] = memcmp(&want[me], &got[me], sizeof(want[me])) != 0;
    irq_install()->during = stop_timer;
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    while (counter() < end || rounds[me] < LEAST) { /* the machine may be busy with other things */
        for (unsigned i = 0; i < 64; i++)
            want[me].v[i] = rng_next(&r);
        want[me].fpcr = (rng_next(&r) & 3) << 22; /* rounding mode */
        want[me].fpsr = (rng_next(&r) & 0x1f) | 1ul << 27;
        fp_load(&want[me]);
        switch (rng_next(&r) % 6) {
        case 0:
            spin_us(rng_next(&r) % 2000);
            break;
        case 1:
            psci(PSCI_VERSION, 0, 0, 0);
            break;
        case 2:
            (void)read32(UART_BASE + 0x18);
            (void)read_sysreg(id_aa64pfr0_el1);
            break;
        case 3:
            sleep_us(rng_next(&r) % 1000);
            break;
        case 4:
            for (unsigned i = 0; i < UNTOUCHED; i++)
                sleep_us(20);
            break;
        default:
            gic_sgi_self(3);
            spin_us(20);
        }
        fp_store(&got[me]);
        wrong[me] += memcmp(&want[me], &got[me], sizeof(want[me])) != 0;
        rounds[me]++;
    }
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

void test_main(void) {
    uint32_t bad = 0, used = 0;
    uint64_t least = ~0ul;

    limit_us = scaled(bootarg("for_us", 100000));
    gic_init();
    smp_start_all(hold, 0);
    hold(0);
    check_true("T07-all-finished", wait_for(finished == cpu_count, limit_us * 4 + 10000000));
    for (unsigned i = 0; i < cpu_count; i++) {
        bad += wrong[i];
        used += dirty[i];
        least = rounds[i] < least ? rounds[i] : least;
    }
    tap_note("at least %lu looks per CPU", least);
    check_eq("T07-v-registers-kept", bad, 0);
    check_eq("T07-v-registers-zero-at-first", used, 0);
    check_true("T07-looked-often", least >= LEAST);
    smp_wait_all_off();
}
