/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is offered and how a guest finds it: P08 (nothing else answers), S07 (bad addresses), S09
 * (the steps of discovery agree), S15 (64-bit calls only, records outside RAM). Boot arguments say
 * what the machine's description does: kvm (identity), time, lock, sched. Wants 2 CPUs.
 */
#include "pv.h"

const char *const test_name = "pv_calls";

#define UID      0x8600ff01u
#define FEATURES 0x86000000u
#define TWIN(id) ((id) & ~0x40000000u) /* the same call by the 32-bit convention */

static bool kvm, time, lock, sched;

/* X0..X3 of a call. */
static void call4(uint32_t id, uint64_t regs[31]) {
    memset(regs, 0x5a, 31 * sizeof(regs[0]));
    regs[0] = id;
    insn_exec(INSN_HVC(0), regs);
}

static void identity(void) {
    static const uint32_t uids[2][4] = {{0x2e4c1f6b, 0x074d539a, 0x4150c1b8, 0x454e5652},
                                        {0xb66fb428, 0xe911c52e, 0x564bcaa9, 0x743a004d}};
    uint64_t regs[31];
    unsigned good = 0;

    call4(UID, regs);
    for (unsigned i = 0; i < 4; i++)
        good += regs[i] == uids[kvm][i];
    check_eq("P08-uid", good, 4);
    call4(FEATURES, regs);
    check_eq("P08-features-bit-2", regs[0] >> PVLOCK_FEATURE_BIT & 1, lock);
    check_eq("P08-features-others", regs[0] & ~(1ul << PVLOCK_FEATURE_BIT), 1);
    check_true("P08-features-words", regs[1] == (kvm ? 0 : 1ul << (PV_YIELD_FEATURE_BIT - 32)) &&
                                         regs[2] == 0 && regs[3] == 0);
}

static const uint32_t own_calls[] = {PVTIME_ID_FEATURES, PVTIME_ID_ST,    PVSCHED_ID_FEATURES,
                                     PVSCHED_ID_INIT,    PVSCHED_ID_KICK, PVSCHED_ID_RELEASE,
                                     PVLOCK_ID,          PV_YIELD_TO_ID};

/* What ARCH_FEATURES must answer. */
static int64_t found(uint32_t id) {
    bool there = id == SMCCC_VERSION || id == SMCCC_ARCH_FEATURES ||
                 (time && id == PVTIME_ID_FEATURES) || (sched && id == PVSCHED_ID_FEATURES);

    return there ? 0 : -1;
}

static void discovery(void) {
    struct rng r = {0xd15c};
    unsigned wrong = 0, twins = 0;

    for (unsigned i = 0; i < ARRAY_SIZE(own_calls); i++) {
        wrong += hvc4(SMCCC_ARCH_FEATURES, own_calls[i], 0, 0) != found(own_calls[i]);
        twins += hvc4(SMCCC_ARCH_FEATURES, TWIN(own_calls[i]), 0, 0) != -1;
        twins += hvc4(TWIN(own_calls[i]), RAM_BASE, 0, 0) != -1;
    }
    check_eq("P08-own-calls-found", wrong, 0);
    check_eq("S15-no-32-bit-twins", twins, 0);
    wrong = 0;
    for (unsigned i = 0; i < 20000; i++) {
        uint32_t id = 0x80000000u | (uint32_t)rng_next(&r);

        if (i & 1) /* the ranges in which there is something */
            id &= 0xc60000ffu;
        wrong += hvc4(SMCCC_ARCH_FEATURES, id, 0, 0) != found(id);
    }
    check_eq("P08-no-other-id-found", wrong, 0);
}

/* A features call `id` of its own interface answers 0 for `first`..`last` and no others. */
static void own_discovery(const char *name, bool on, uint32_t id, uint32_t last) {
    struct rng r = {id};
    unsigned wrong = 0;

    for (uint32_t about = id - 4; about < last + 5; about++)
        wrong += pv_call(id, about) != (on && about >= id && about <= last ? 0 : -1);
    wrong += pv_call(id, 1ul << 32 | id) != -1;
    wrong += pv_call(id, TWIN(id)) != -1;
    for (unsigned i = 0; i < 200; i++) {
        uint64_t about = rng_next(&r);

        wrong += (about < id || about > last) && pv_call(id, about) != -1;
    }
    check_eq(name, wrong, 0);
}

/* Two vCPUs ask for their records. */
static volatile int64_t time_at[2], lock_at[2];

static void ask(uint64_t cpu) {
    time_at[cpu] = pv_call(PVTIME_ID_ST, 0);
    lock_at[cpu] = pv_call(PVLOCK_ID, 0);
}

static void check_records(const char *name, bool on, const volatile int64_t at[2], uint64_t base) {
    char full[64];

    format(full, sizeof(full), "S09-%s-records", name);
    if (on)
        check_true(full, (uint64_t)at[0] == base && (uint64_t)at[1] == base + 64);
    else
        check_true(full, at[0] == -1 && at[1] == -1);
}

/* The region: in no memory node; what is there may be read and not written. */
static void region(const char *name, bool on, uint64_t at) {
    char full[64];
    uint64_t regs[31] = {0, at};

    format(full, sizeof(full), "S15-%s-outside-RAM", name);
    check_true(full, at + 0x10000 <= ram_base || at >= ram_base + ram_size);
    pv_map(at);
    for (unsigned i = 0; i < 3; i++) {
        static const uint32_t stores[] = {0xf9000020u, 0x39000020u,
                                          0xf8200020u}; /* str strb ldadd */
        struct exc_info e = insn_exec(stores[i], regs);

        format(full, sizeof(full), "S15-%s-write-%u-aborts", name, i);
        if (i == 2 && ESR_EC(e.esr) == EC_UNKNOWN) {
            tap_skip(full, "this CPU has no LSE atomics");
            continue;
        }
        check_true(full, e.count == 1 && ESR_EC(e.esr) == EC_DABT && (e.esr & 0x3f) == 0x10 &&
                             e.far == at);
    }
    struct exc_info e = insn_exec(0xf9400020u, regs); /* ldr x0, [x1] */

    format(full, sizeof(full), "S15-%s-read", name);
    check_eq(full, e.count, on ? 0 : 1);
}

static void bad_addresses(void) {
    _Alignas(64) static uint8_t block[128];
    uint64_t at = (uintptr_t)block, end = ram_base + ram_size;
    const uint64_t bad[] = {
        at + 1,         at + 4, at + 8,        at + 32,        at + 63,        end,
        end - 32,       0,      ram_base - 64, UART_BASE,      GICD_BASE,      PV_TIME_REGION,
        PV_LOCK_REGION, ~0ul,   ~0ul - 63,     1ul << 63 | at, 1ul << 39 | at, 1ul << 52 | at};
    unsigned wrong = 0, changed = 0;

    memset(block, 0x5a, sizeof(block));
    for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
        wrong += pv_call(PVSCHED_ID_INIT, bad[i]) != -1;
    check_eq("S07-bad-addresses-refused", wrong, 0);
    for (unsigned i = 0; i < sizeof(block); i++)
        changed += block[i] != 0x5a;
    check_eq("S07-and-nothing-written", changed, 0);
    check_eq("S07-good-address", pv_call(PVSCHED_ID_INIT, at), sched ? 0 : -1);
    check_eq("S07-the-last-block", pv_call(PVSCHED_ID_INIT, end - 64), sched ? 0 : -1);
    check_eq("S07-release", pv_call(PVSCHED_ID_RELEASE, 0), sched ? 0 : -1);
    check_eq("P08-kick-self", pv_call(PVSCHED_ID_KICK, 0), sched ? 0 : -1);
    wrong = pv_call(PVSCHED_ID_KICK, cpu_count) != -1;
    wrong += pv_call(PVSCHED_ID_KICK, 1ul << 32) != -1;
    wrong += pv_call(PVSCHED_ID_KICK, ~0ul) != -1;
    check_eq("P08-kick-nobody", wrong, 0);
}

void test_main(void) {
    kvm = bootarg("kvm", 0) != 0;
    time = bootarg("time", 0) != 0;
    lock = bootarg("lock", 0) != 0;
    sched = bootarg("sched", 0) != 0;
    identity();
    discovery();
    own_discovery("S09-time-features", time, PVTIME_ID_FEATURES, PVTIME_ID_ST);
    own_discovery("S09-sched-features", sched, PVSCHED_ID_FEATURES, PVSCHED_ID_KICK);
    ask(0);
    smp_start(1, ask, 1);
    check_true("S09-second-vcpu", smp_wait_off(1));
    check_records("time", time, time_at, PV_TIME_REGION);
    check_records("lock", lock, lock_at, PV_LOCK_REGION);
    region("time", time, PV_TIME_REGION);
    region("lock", lock, PV_LOCK_REGION);
    bad_addresses();
}
