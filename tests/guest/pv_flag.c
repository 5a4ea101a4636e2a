/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The preempted flag, seen from its guest, in the dialect that `lock` chooses (PV lock; PV sched
 * without): P04 (a running vCPU is never told that it is not), P06 (values and the rest of the
 * record), waiting vCPUs, a guest that scribbles, records that are given back, and (PV sched)
 * kicks. Boot arguments: pcpus, of the machine; blocked: what the flag of a vCPU in WFI says (0);
 * samples (100000) of each vCPU; rounds (10000) of kicks.
 */
#include "irq.h"
#include "pv.h"

const char *const test_name = "pv_flag";

#define PATTERN 0xa5
#define MAX     8u

static bool lock;
static unsigned pcpus;
static _Alignas(64) uint8_t blocks[2 * MAX][64]; /* PV sched: two of each vCPU */
static uint64_t record[MAX];                     /* address in use */
static volatile uint32_t stop, ready;

static uint32_t flag(unsigned cpu) {
    return read32(record[cpu]);
}

/* This vCPU's record; a new one of PV sched in its block `n`. */
static void set_up(unsigned n) {
    unsigned me = this_cpu()->index;
    uint64_t at = (uintptr_t)blocks[2 * me + n];

    if (lock) {
        at = (uint64_t)pv_call(PVLOCK_ID, 0);
    } else {
        memset((void *)at, PATTERN, 64);
        if (pv_call(PVSCHED_ID_INIT, at) != 0)
            die("PV sched refuses 0x%lx", at);
    }
    __atomic_store_n(&record[me], at, __ATOMIC_RELEASE);
}

/* ---- P04, P06: all of them spin and look ---- */

static volatile uint64_t own_set[MAX], strange[MAX], looks[MAX], exact[MAX];

static void look(unsigned me) {
    unsigned zeros = 0;

    for (unsigned i = 0; i < cpu_count; i++) {
        uint32_t f = flag(i);

        zeros += f == 0;
        if (i == me)
            own_set[me] += f != 0;
        if (f > 1)
            strange[me]++;
    }
    looks[me]++;
    exact[me] += zeros == (pcpus < cpu_count ? pcpus : cpu_count);
}

static void meet(void) {
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < cpu_count) {
    }
}

static void look_often(uint64_t samples) {
    unsigned me = this_cpu()->index;

    set_up(0);
    meet();
    for (uint64_t i = 0; i < samples; i++)
        look(me);
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < 2 * cpu_count) {
    }
}

static void p04_running_is_zero(void) {
    uint64_t samples = scaled(bootarg("samples", 100000)), all = 0, own = 0, odd = 0, good = 0;

    ready = 0;
    smp_start_all(look_often, samples);
    look_often(samples);
    smp_wait_all_off();
    for (unsigned i = 0; i < cpu_count; i++) {
        all += looks[i];
        own += own_set[i];
        odd += strange[i];
        good += exact[i];
    }
    check_eq("P04-own-flag-is-0", own, 0);
    check_eq("P06-values-0-and-1", odd, 0);
    tap_note("%lu looks, in %lu as many zeros as pCPUs", all, good);
    if (pcpus == 1) /* who looks has the only one */
        check_eq("P04-one-zero-for-the-only-pcpu", good, all);
    else
        check_range("P04-as-many-zeros-as-pcpus", good, all - all / 20, all);
}

/* ---- Records that are given back ---- */

static void spin_until_stop(uint64_t arg) {
    (void)arg;
    set_up(0);
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    }
}

/* Others want the CPU, so that this vCPU is switched out and in for `us`. */
static void be_switched(uint64_t us) {
    stop = ready = 0;
    smp_start_all(spin_until_stop, 0);
    wait_for(__atomic_load_n(&ready, __ATOMIC_ACQUIRE) == cpu_count - 1, 10000000);
    spin_us(us);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    smp_wait_all_off();
}

static unsigned not_pattern(const uint8_t *block, unsigned from) {
    unsigned n = 0;

    for (unsigned i = from; i < 64; i++)
        n += block[i] != PATTERN;
    return n;
}

static void given_back(void) {
    set_up(0);
    be_switched(20000);
    check_eq("P06-rest-of-the-block", not_pattern(blocks[0], 4), 0);
    set_up(1); /* moves it */
    memset(blocks[0], PATTERN, 64);
    be_switched(20000);
    check_eq("P06-old-block-after-a-second-init", not_pattern(blocks[0], 0), 0);
    check_eq("P06-new-block-in-use", flag(0), 0);
    check_eq("P06-release", pv_call(PVSCHED_ID_RELEASE, 0), 0);
    memset(blocks[1], PATTERN, 64);
    memset(blocks[2], PATTERN, 64); /* of a vCPU that is off */
    unsigned changed = 0;

    stop = ready = 0;
    for (unsigned i = 2; i < cpu_count; i++)
        smp_start(i, spin_until_stop, 0);
    spin_us(20000);
    changed = not_pattern(blocks[1], 0);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    smp_wait_all_off();
    check_eq("P06-released-block", changed, 0);
    check_eq("P06-block-of-one-that-went-off", not_pattern(blocks[2], 0), 0);
}

/* A vCPU writes nonsense into its own record all the time: others see that, and nothing else. */
static void scribble(uint64_t arg) {
    struct rng r = {arg};

    set_up(0);
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE))
        write64(record[this_cpu()->index], rng_next(&r));
}

static void scribbled(void) {
    uint64_t own = 0;

    set_up(0);
    stop = ready = 0;
    for (unsigned i = 1; i < cpu_count; i++)
        smp_start(i, scribble, i);
    uint64_t end = counter() + us_to_ticks(30000);

    while (counter() < end)
        own += flag(0) != 0;
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    smp_wait_all_off();
    check_eq("P04-own-flag-beside-scribblers", own, 0);
}

/* ---- Waiting, and kicks ---- */

static volatile uint32_t turn, waits, asleep;

/* Waits for its turn with interrupts masked, as a spinlock's waiter does. */
static void wait_turns(uint64_t rounds) {
    set_up(0);
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    for (uint32_t i = 1; i <= rounds; i++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != i) {
            wfi();
            waits++;
        }
        __atomic_store_n(&asleep, i, __ATOMIC_RELEASE);
    }
}

/* One that waits: its flag is as the policy says, long after it began to wait. */
static void waiting_flag(void) {
    unsigned wrong = 0;

    spin_us(10000);
    for (unsigned i = 0; i < 1000; i++)
        wrong += flag(1) != bootarg("blocked", 0);
    check_eq("P04-flag-in-wfi", wrong, 0);
}

static void kicks(void) {
    uint64_t rounds = scaled(bootarg("rounds", 10000)), lost = 0;

    turn = asleep = waits = ready = 0;
    smp_start(1, wait_turns, rounds);
    wait_for(ready == 1, 10000000);
    waiting_flag();
    for (uint32_t i = 1; i <= rounds; i++) {
        __atomic_store_n(&turn, i, __ATOMIC_RELEASE);
        while (pv_call(PVSCHED_ID_KICK, 1) != 0 ||
               !wait_for(__atomic_load_n(&asleep, __ATOMIC_ACQUIRE) == i, 2000000))
            lost++;
    }
    check_eq("P04-no-kick-is-lost", lost, 0);
    check_true("P04-kicked-one-goes-off", smp_wait_off(1));
    tap_note("%u waits for %lu kicks", waits, rounds);
    /* Each kick ends one wait; it leaves nothing behind that ends another. */
    check_range("P04-waits-for-kicks", waits, 1, rounds + rounds / 10);
}

static void waiting_only(void) {
    turn = ready = 0;
    smp_start(1, wait_turns, 1);
    wait_for(ready == 1, 10000000);
    waiting_flag(); /* and the end of the VM ends the wait */
}

/* ---- */

void test_main(void) {
    lock = bootarg("lock", 0) != 0;
    pcpus = (unsigned)bootarg("pcpus", 1);
    if (cpu_count > MAX)
        die("at most %u vCPUs", MAX);
    if (lock)
        pv_map(PV_LOCK_REGION);
    p04_running_is_zero();
    if (lock) {
        waiting_only();
        return;
    }
    given_back();
    scribbled();
    set_up(0);
    kicks();
}
