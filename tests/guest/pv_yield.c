/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PV_YIELD_TO: who is named and waits for a CPU gets the caller's and keeps it for a slice (P10);
 * who runs, sleeps or is off changes nothing, and nonsense is answered. On one CPU for 3 vCPUs.
 * Boot arguments: off: it is not offered.
 */
#include "abi/smccc.h"
#include "irq.h"
#include "pv.h"

const char *const test_name = "pv_yield";

#define SLICE_US 2000
#define ROUNDS   20u

static volatile uint64_t beats[MAX_CPUS];
static volatile uint32_t stop;

static int64_t yield_to(uint64_t vcpu) {
    return pv_call(PV_YIELD_TO_ID, vcpu);
}

static void beat(uint64_t arg) {
    (void)arg;
    while (!stop)
        beats[this_cpu()->index]++;
}

static void sleep_for_ever(uint64_t arg) {
    (void)arg;
    while (!stop)
        wfi();
}

static void nonsense(void) {
    static const uint64_t others[] = {1ul << 32, ~0ul, 1ul << 63, 255, 256, 1ul << 32 | 1};
    unsigned wrong = yield_to(cpu_count) != SMCCC_E_INVALID_PARAMETER;

    for (unsigned i = 0; i < ARRAY_SIZE(others); i++)
        wrong += yield_to(others[i]) != SMCCC_E_INVALID_PARAMETER;
    check_eq("nonsense-is-answered", wrong, 0);
    check_eq("not-to-oneself", yield_to(0), SMCCC_E_INVALID_PARAMETER);
    check_eq("not-to-who-is-off", yield_to(1), PV_YIELD_NOT_WAITING);
    check_eq("not-by-the-32-bit-twin", pv_call(PV_YIELD_TO_ID & ~0x40000000u, 1), -1);
}

/* Turns of vCPU `to` that came of yields to it, and how long they were. */
static void yields(unsigned to, unsigned other) {
    uint64_t least = ~0ul, most = 0, others = 0;
    unsigned done = 0;

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t from, ours = beats[to], theirs = beats[other];
        int64_t answer;

        from = counter();
        answer = yield_to(to);
        if (answer == PV_YIELD_NOT_WAITING)
            continue;
        uint64_t took = (counter() - from) * 1000 / us_to_ticks(1000);

        done += answer == 0 && beats[to] != ours;
        others += beats[other] != theirs;
        least = took < least ? took : least;
        most = took > most ? took : most;
    }
    tap_note("away for %lu to %lu us, the third one ran in %lu of them", least, most, others);
    check_eq("it-runs", done, ROUNDS);
    check_range("P10-for-a-slice-at-least", least, SLICE_US * 95 / 100, SLICE_US * 3);
}

void test_main(void) {
    if (bootarg("off", 0) != 0) {
        check_eq("not-offered", yield_to(1), -1);
        return;
    }
    nonsense();
    smp_start(2, sleep_for_ever, 0);
    wait_for(cpus[2].online != 0, 1000000);
    wait_for(false, 10000);
    check_eq("not-to-who-sleeps", yield_to(2), PV_YIELD_NOT_WAITING);
    smp_start(1, beat, 0);
    wait_for(beats[1] != 0, 1000000);
    yields(1, 2);
    stop = 1;
}
