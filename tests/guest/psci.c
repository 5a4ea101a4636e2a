/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PSCI: arguments (C13), the on/off cycle and its state (C03), success means that the CPU comes
 * (C06), two callers at once (C01), WFI as a CPU's first act (C12). Wants 3 CPUs for all of it.
 * Boot argument rounds: how often each of C03 and C01 is done (default 40 and 100).
 */
#include "irq.h"

const char *const test_name = "psci";

static volatile uint32_t stay; /* secondaries stay on while this is set */
static volatile uint32_t arrived;

static void wait_released(uint64_t arg) {
    (void)arg;
    __atomic_add_fetch(&arrived, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&stay, __ATOMIC_ACQUIRE))
        __asm__ volatile("yield");
}

static int64_t affinity(unsigned cpu) {
    return psci(PSCI_AFFINITY_INFO64, cpus[cpu].mpidr, 0, 0);
}

static void c13_features(void) {
    static const struct {
        uint32_t fn;
        const char *name;
    } calls[] = {
        {PSCI_VERSION, "version"},
        {PSCI_CPU_SUSPEND, "cpu-suspend"},
        {PSCI_CPU_SUSPEND64, "cpu-suspend64"},
        {PSCI_CPU_OFF, "cpu-off"},
        {PSCI_CPU_ON, "cpu-on"},
        {PSCI_CPU_ON64, "cpu-on64"},
        {PSCI_AFFINITY_INFO, "affinity-info"},
        {PSCI_AFFINITY_INFO64, "affinity-info64"},
        {PSCI_MIGRATE_INFO_TYPE, "migrate-info-type"},
        {PSCI_SYSTEM_OFF, "system-off"},
        {PSCI_SYSTEM_RESET, "system-reset"},
        {PSCI_FEATURES, "features"},
    };
    char name[48];

    for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
        format(name, sizeof(name), "C13-features-%s", calls[i].name);
        int64_t r = psci(PSCI_FEATURES, calls[i].fn, 0, 0);
        bool suspend = calls[i].fn == PSCI_CPU_SUSPEND || calls[i].fn == PSCI_CPU_SUSPEND64;

        tap_check(r == 0 || (suspend && r > 0 && r < 4), name, (uint64_t)r, 0);
    }
    check_eq("C13-features-unknown", psci(PSCI_FEATURES, 0x8400ffff, 0, 0), -1);
    check_eq("C13-features-unknown-64", psci(PSCI_FEATURES, 0xc4000000, 0, 0), -1);
    check_eq("C13-features-of-nonsense", psci(PSCI_FEATURES, 0x12345678, 0, 0), -1);
    check_eq("C13-migrate-info-type", psci(PSCI_MIGRATE_INFO_TYPE, 0, 0, 0), 2);
}

static void c13_arguments(void) {
    uint64_t entry = (uintptr_t)secondary_entry;

    check_eq("C13-on-unknown-mpidr", psci(PSCI_CPU_ON64, 0x00ffffff, entry, 0),
             PSCI_INVALID_PARAMETERS);
    check_eq("C13-on-self", psci(PSCI_CPU_ON64, cpus[0].mpidr, entry, 0), PSCI_ALREADY_ON);
    check_eq("C13-affinity-of-self", affinity(0), 0);
    check_eq("C13-affinity-unknown", psci(PSCI_AFFINITY_INFO64, 0x00ffffff, 0, 0),
             PSCI_INVALID_PARAMETERS);
    if (native()) {
        tap_skip("C13-affinity-levels", "the emulator calls every level above 0 on");
        tap_skip("C13-on-reserved-bits", "not checked by the emulator");
        tap_skip("C13-on-entry-outside-ram", "not checked by the emulator");
        tap_skip("C13-reset2-reserved-type", "not in the emulator");
    } else {
        unsigned on = 0;

        for (uint64_t level = 1; level < 4; level++)
            on += psci(PSCI_AFFINITY_INFO64, cpus[0].mpidr, level, 0) == 0;
        check_eq("C13-affinity-levels-combine", on, 3);
        check_eq("C13-affinity-level-4", psci(PSCI_AFFINITY_INFO64, cpus[0].mpidr, 4, 0),
                 PSCI_INVALID_PARAMETERS);
        /* MPIDR's U and MT bits and RES1 are no part of the argument. */
        check_eq("C13-on-reserved-bits", psci(PSCI_CPU_ON64, cpus[0].mpidr | 1ul << 31, entry, 0),
                 PSCI_INVALID_PARAMETERS);
        if (psci(PSCI_FEATURES, PSCI_SYSTEM_RESET2_64, 0, 0) == 0) {
            check_eq("C13-reset2-reserved-type", psci(PSCI_SYSTEM_RESET2_64, 1, 0, 0),
                     PSCI_INVALID_PARAMETERS);
            check_eq("C13-reset2-reserved-type-32", psci(PSCI_SYSTEM_RESET2, 1, 0, 0),
                     PSCI_INVALID_PARAMETERS);
        } else {
            check_true("C13-reset2-present", false);
        }
    }
}

static void c13_arguments_of_another(void) {
    static const uint64_t outside[] = {0, UART_BASE, 0x20000000, 1ul << 38, ~0xffful};

    if (cpu_count < 2)
        return;
    check_eq("C13-affinity-of-off", affinity(1), 1);
    if (native())
        return;
    for (unsigned i = 0; i < ARRAY_SIZE(outside) + 1; i++) {
        uint64_t at = i < ARRAY_SIZE(outside) ? outside[i] : ram_base + ram_size;
        int64_t r = psci(PSCI_CPU_ON64, cpus[1].mpidr, at, 0);
        char name[48];

        format(name, sizeof(name), "C13-on-entry-outside-ram-%lx", at);
        tap_check(r == PSCI_INVALID_ADDRESS || r == PSCI_INVALID_PARAMETERS, name, (uint64_t)r,
                  (uint64_t)PSCI_INVALID_ADDRESS);
    }
    check_eq("C13-still-off-after-bad-entry", affinity(1), 1);

    /* The 32-bit call looks at the low halves only. */
    stay = 0;
    smp_prepare(1, wait_released, 0);
    uint32_t seen = cpus[1].online;
    uint64_t junk = 0xdead00000000ul;

    check_eq("C13-on-32-bit-truncates",
             psci(PSCI_CPU_ON, cpus[1].mpidr | junk, (uintptr_t)secondary_entry | junk,
                  (uintptr_t)&cpus[1] | junk),
             0);
    check_true("C13-on-32-bit-comes", wait_for(cpus[1].online != seen, 1000000));
    check_true("C13-on-32-bit-off", smp_wait_off(1));
}

static void dirty_and_leave(uint64_t arg) {
    (void)arg;
    write_sysreg(cntkctl_el1, 0x3);
    write_sysreg(cntv_cval_el0, 0);
    write_sysreg(cntv_ctl_el0, 3);
    write_sysreg(contextidr_el1, 0x77);
    __asm__ volatile("msr daifclr, #0xf");
}

static bool not_fresh(const struct secondary_state *s) {
    return s->CurrentEL != 4 || s->daif != 0x3c0 || (s->sctlr_el1 & 0x1005) || s->vbar_el1 ||
           s->cpacr_el1 || s->ttbr0_el1 || s->tcr_el1 || s->cntkctl_el1 || (s->cntv_ctl_el0 & 3) ||
           s->isr_el1 || s->tpidr_el1 || s->spsel != 1;
}

static void c03_cycles(void) {
    struct rng r = {2024};
    /* the case: 500 */
    unsigned rounds = (unsigned)scaled(bootarg("rounds", 40)), bad_on = 0, bad_state = 0,
             bad_off = 0, stale = 0;

    for (unsigned i = 0; i < rounds; i++) {
        unsigned cpu = 1 + (unsigned)(i < rounds / 2 ? i : rng_next(&r) >> 32) % (cpu_count - 1);

        stay = 1;
        arrived = 0;
        int64_t code = smp_start(cpu, wait_released, 0);

        bad_on += code != 0;
        if (code)
            tap_note("C03: CPU_ON of cpu %u gave %ld", cpu, code);
        if (!wait_for(arrived == 1, 1000000))
            die("cpu %u did not come within 1 s", cpu);
        bad_state += affinity(cpu) != 0;
        code = psci(PSCI_CPU_ON64, cpus[cpu].mpidr, (uintptr_t)secondary_entry, 0);
        bad_on += code != PSCI_ALREADY_ON;
        if (code != PSCI_ALREADY_ON)
            tap_note("C03: CPU_ON of running cpu %u gave %ld", cpu, code);
        __atomic_store_n(&stay, 0, __ATOMIC_RELEASE);
        bad_off += !smp_wait_off(cpu);
        bad_state += affinity(cpu) != 1;
        code = smp_start(cpu, dirty_and_leave, 0);
        bad_on += code != 0;
        if (code)
            tap_note("C03: CPU_ON of off cpu %u gave %ld", cpu, code);
        bad_off += !smp_wait_off(cpu);
        stale += not_fresh(&cpus[cpu].entry);
    }
    check_eq("C03-on", bad_on, 0);
    check_eq("C03-off", bad_off, 0);
    check_eq("C03-affinity-info", bad_state, 0);
    /* once more, now after the dirtying run */
    for (unsigned cpu = 1; cpu < cpu_count; cpu++) {
        stay = 0;
        bad_on += smp_start(cpu, wait_released, 0) != 0;
        bad_off += !smp_wait_off(cpu);
        stale += not_fresh(&cpus[cpu].entry);
    }
    check_eq("C03-fresh-state-at-each-on", stale, 0);
    check_eq("C03-all-back", bad_on + bad_off, 0);
}

static void c06_comes_soon(void) {
    uint64_t worst = 0, limit = bootarg("slack_us", 100000);

    for (unsigned cpu = 1; cpu < cpu_count; cpu++) {
        stay = 0;
        arrived = 0;
        uint64_t from = counter();

        if (smp_start(cpu, wait_released, 0))
            die("CPU_ON failed");
        wait_for(arrived, 2000000);
        uint64_t took = ticks_to_us(counter() - from);

        worst = took > worst ? took : worst;
        smp_wait_off(cpu);
    }
    check_range("C06-executes-within-100ms-us", worst, 0, limit);

    /* on-pending never lasts, polled while the target has much to do */
    unsigned pending = 0, said_off = 0;

    stay = 1;
    arrived = 0;
    for (unsigned cpu = 1; cpu < cpu_count; cpu++) {
        if (smp_start(cpu, wait_released, 0))
            die("CPU_ON failed");
        said_off += affinity(cpu) == 1;
        pending += !wait_for(affinity(cpu) == 0, 1000000);
    }
    if (native())
        tap_skip("C06-not-off-after-success", "the emulator says off until the CPU has started");
    else
        check_eq("C06-not-off-after-success", said_off, 0);
    check_eq("C06-affinity-reaches-on", pending, 0);
    wait_for(arrived == cpu_count - 1, 2000000);
    check_eq("C06-all-execute", arrived, cpu_count - 1);
    __atomic_store_n(&stay, 0, __ATOMIC_RELEASE);
    smp_wait_all_off();
}

/* ---- C01 ---- */

static struct cpu other_context;
static struct barrier gate;
static volatile int64_t results[2];
static struct cpu *volatile seen_context;
static volatile uint32_t seen_tag;
static unsigned race_rounds;

static void raced(uint64_t arg) {
    (void)arg;
    seen_context = this_cpu();
    seen_tag = (uint32_t)this_cpu()->entry_tag;
    wait_released(0);
}

static void race(unsigned caller) {
    const uint64_t entry = (uintptr_t)(caller ? secondary_entry_b : secondary_entry_a);
    const uint64_t context = (uintptr_t)(caller ? &other_context : &cpus[2]);

    barrier_wait(&gate, 2);
    results[caller] = psci(PSCI_CPU_ON64, cpus[2].mpidr, entry, context);
    barrier_wait(&gate, 2);
}

static void second_caller(uint64_t arg) {
    (void)arg;
    for (unsigned i = 0; i < race_rounds; i++)
        race(1);
}

static void c01_two_callers(void) {
    unsigned both = 0, none = 0, bad_code = 0, wrong_entry = 0, wins[2] = {0, 0};

    /* the case: 1e5 */
    race_rounds = (unsigned)scaled(bootarg("rounds", 100));
    smp_start(1, second_caller, 0);
    for (unsigned i = 0; i < race_rounds; i++) {
        smp_prepare(2, raced, 0);
        other_context = cpus[2];
        cache_clean(&other_context, sizeof(other_context));
        seen_context = NULL;
        arrived = 0;
        __atomic_store_n(&stay, 1, __ATOMIC_RELEASE);
        race(0);
        bool won[2] = {results[0] == 0, results[1] == 0};
        int64_t other = won[0] ? results[1] : results[0];

        both += won[0] && won[1];
        none += !won[0] && !won[1];
        bad_code += other != PSCI_ALREADY_ON && other != PSCI_ON_PENDING;
        wins[0] += won[0];
        wins[1] += won[1];
        if (!wait_for(arrived == 1, 2000000))
            die("the target of a CPU_ON race did not come");
        struct cpu *want = won[0] ? &cpus[2] : &other_context;

        wrong_entry += seen_context != want || seen_tag != (won[0] ? 0xau : 0xbu);
        __atomic_store_n(&stay, 0, __ATOMIC_RELEASE);
        if (!wait_for(affinity(2) == 1, 5000000))
            die("the target of a CPU_ON race does not go off");
    }
    smp_wait_off(1);
    tap_note("C01: %u and %u wins in %u rounds", wins[0], wins[1], race_rounds);
    if (native() && both) {
        tap_skip("C01-both-won", "the emulator's own PSCI has this very fault in threads mode");
        return;
    }
    check_eq("C01-both-won", both, 0);
    check_eq("C01-none-won", none, 0);
    check_eq("C01-loser-gets-already-on-or-pending", bad_code, 0);
    check_eq("C01-starts-at-winners-address-and-context", wrong_entry, 0);
}

/* The CPU waits in WFI, with vectors, stack and MMU not yet set up, until an SGI comes. */
static void c12_wfi_first(void) {
    unsigned early = 0, off = 0, lost = 0;

    for (unsigned cpu = 1; cpu < cpu_count; cpu++) {
        uint64_t rd = gic_redist[cpu];

        write32(rd + GICR_WAKER, 0);
        wait_for(!(read32(rd + GICR_WAKER) & 4), 1000);
        write32(rd + GICR_SGI + GICD_IGROUPR, ~0u);
        write32(rd + GICR_SGI + GICD_ICPENDR, 0xffff);
        write32(rd + GICR_SGI + GICD_ISENABLER, 1u << 7);
        smp_prepare(cpu, wait_released, 0);
        stay = 0;
        arrived = 0;
        uint32_t seen = cpus[cpu].online;

        if (psci(PSCI_CPU_ON64, cpus[cpu].mpidr, (uintptr_t)secondary_entry_wfi,
                 (uintptr_t)&cpus[cpu]))
            die("CPU_ON failed");
        off += !wait_for(affinity(cpu) == 0, 1000000);
        spin_us(500);
        early += cpus[cpu].online != seen;
        off += affinity(cpu) != 0;
        gic_sgi(7, cpus[cpu].mpidr);
        lost += !wait_for(cpus[cpu].online != seen, 1000000);
        smp_wait_off(cpu);
        write32(rd + GICR_SGI + GICD_ICPENDR, 0xffff);
        write32(rd + GICR_SGI + GICD_ICENABLER, ~0u);
    }
    /* WFI may end for no reason: that would be no fault, so it is only told. */
    tap_note("C12: %u of %u left WFI before the SGI", early, cpu_count - 1);
    check_eq("C12-idling-cpu-is-on", off, 0);
    check_eq("C12-sgi-wakes", lost, 0);
}

static void suspend(void) {
    for (unsigned variant = 0; variant < 2; variant++) {
        uint64_t deadline = counter() + us_to_ticks(500);

        write_sysreg(cntv_cval_el0, deadline);
        write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
        isb();
        int64_t r = psci(variant ? PSCI_CPU_SUSPEND64 : PSCI_CPU_SUSPEND, 0, 0, 0);

        check_eq(variant ? "C13-suspend-standby-64" : "C13-suspend-standby", r, 0);
        if (counter() < deadline)
            tap_note("came back %lu us before the timer", ticks_to_us(deadline - counter()));
        write_sysreg(cntv_ctl_el0, 0);
    }
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    c13_features();
    c13_arguments();
    c13_arguments_of_another();
    suspend();
    if (cpu_count < 2) {
        tap_skip("C03-C06-C12", "one CPU");
        return;
    }
    c03_cycles();
    c06_comes_soon();
    c12_wfi_first();
    if (cpu_count < 3)
        tap_skip("C01-two-callers", "fewer than 3 CPUs");
    else
        c01_two_callers();
}
