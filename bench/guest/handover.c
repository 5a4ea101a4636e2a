/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From one VM to another on the same pCPU. VM `sleeper` notes the time and executes WFI, with a
 * timer that is far off; VM `spinner`, which was displaced by the sleeper's wake-up and so can run
 * at once, comes back and sees a gap in its readings of the counter: no interrupt is taken on the
 * way. Both print the physical counter, which is the same for both; bench/run pairs them. `flag`,
 * `steal`: with the preempted flag (PV sched), with stolen time.
 */
#include "abi/pvlock.h"
#include "abi/pvtime.h"
#include "bench.h"

const char *const test_name = "handover";

#define ROUNDS 64u
#define PAUSE  100000u /* ns of sleep */
#define GAP    400u    /* ns: more than one trip through the loop */

static uint64_t at[4 * ROUNDS], rounds;
static _Alignas(64) struct pvsched_record record;

static inline uint64_t pnow(void) {
    isb();
    return read_sysreg(cntpct_el0);
}

__attribute__((noinline)) static void sleeper(void) { /* a name in bench/profile */
    for (unsigned i = 0; i < rounds; i++) {
        write_sysreg(cntv_cval_el0, now() + PAUSE + 37 * i);
        write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
        isb();
        at[i] = pnow();
        __asm__ volatile("wfi" : : : "memory");
        uint32_t id = gic_iar1();
        write_sysreg(cntv_ctl_el0, 0);
        isb();
        gic_eoi1(id);
    }
    for (unsigned i = 0; i < rounds; i++) {
        print("bench: left %lu\n", at[i]);
    }
}

static void spinner(void) {
    uint64_t end = pnow() + 12000000, last = pnow();
    unsigned n = 0;

    while (last < end && n < ARRAY_SIZE(at)) {
        uint64_t t = pnow();

        if (t - last > GAP) {
            at[n++] = t;
        }
        last = t;
    }
    for (unsigned i = 0; i < n; i++) {
        print("bench: came %lu\n", at[i]);
    }
}

void test_main(void) {
    if (bootarg("flag", 0) && hvc4(PVSCHED_ID_INIT, (uintptr_t)&record, 0, 0) != 0) {
        die("no preempted flag");
    }
    if (bootarg("steal", 0) && hvc4(PVTIME_ID_ST, 0, 0, 0) <= 0) {
        die("no stolen time");
    }
    rounds = bootarg("rounds", ROUNDS);
    gic_init();
    bench_cpu_init();
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    if (bootarg("spinner", 0)) {
        spinner();
    } else {
        sleeper();
    }
}
