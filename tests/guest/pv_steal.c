/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stolen time: S03 (it never goes back nor jumps, through moves between pCPUs, CPU_OFF and CPU_ON
 * and further calls), S05 (it is what others took, and what this guest missed), S10 (words 0 and 1,
 * no torn values). Waiting in WFI is not stolen; what a vCPU waits for its pCPU after a WFE is.
 * Boot arguments: for_us (400000) of spinning; percent, what must be stolen of that, and within
 * (2) how many points; host: the emulated CPUs are not always there either (threads). Or: readers,
 * with samples (100000); waits.
 */
#include "irq.h"
#include "pv.h"

const char *const test_name = "pv_steal";

#define MAX 8u

static uint64_t record[MAX];
static volatile uint32_t stop, ready;

static uint64_t stolen(unsigned cpu) {
    return read64(record[cpu] + 8);
}

static uint64_t ns(uint64_t ticks) {
    return ticks / freq() * 1000000000 + ticks % freq() * 1000000000 / freq();
}

static void set_up(void) {
    int64_t at = pv_call(PVTIME_ID_ST, 0);

    if (at <= 0)
        die("no stolen time");
    record[this_cpu()->index] = (uint64_t)at;
}

/* ---- S05: spins and looks at what it missed ---- */

static void s05_spin(void) {
    uint64_t last = counter(), from = last,
             end = from + us_to_ticks(scaled(bootarg("for_us", 400000)));
    uint64_t before = stolen(0), missed = 0, most = us_to_ticks(20);

    while (last < end) {
        uint64_t now = counter();

        if (now - last > most)
            missed += now - last;
        last = now;
    }
    uint64_t wall = ns(last - from), took = stolen(0) - before, gap = ns(missed);
    uint64_t percent = bootarg("percent", 0), within = bootarg("within", 2);

    if (wall == 0)
        die("no time has passed");
    tap_note("stolen %lu us, missed %lu us, of %lu us", took / 1000, gap / 1000, wall / 1000);
    check_range("S05-share-stolen", took * 1000 / wall,
                percent > within ? (percent - within) * 10 : 0, (percent + within) * 10);
    /* run + stolen = wall: what was not stolen it ran, but for the hypervisor's own work */
    uint64_t least = gap > wall / 100 && !bootarg("host", 0) ? gap - wall / 100 : 0;

    check_range("S05-run-and-stolen-are-all", took, least, gap + wall / 100);
}

/* ---- S03, S10: readers while it grows ---- */

static volatile uint64_t back[MAX], jumps[MAX], words[MAX], reads[MAX];

/* Looks at all records; each value is compared with the last one that this vCPU saw. */
static void watch(uint64_t samples) {
    unsigned me = this_cpu()->index;
    uint64_t seen[MAX], at;

    set_up();
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&ready, __ATOMIC_ACQUIRE) < cpu_count) {
    }
    for (unsigned i = 0; i < cpu_count; i++)
        seen[i] = stolen(i);
    at = counter();
    seen[me] = stolen(me);
    for (uint64_t n = 0; n < samples || !__atomic_load_n(&stop, __ATOMIC_ACQUIRE); n++) {
        for (unsigned i = 0; i < cpu_count; i++) {
            uint64_t before = counter(), value = stolen(i);

            words[me] += read32(record[i]) != 0 || read32(record[i] + 4) != 0;
            back[me] += value < seen[i];
            if (i == me) { /* others' are written at the end of a wait, all of it at once */
                jumps[me] += value - seen[i] > ns(counter() - at) + 1000;
                at = before;
            }
            seen[i] = value;
        }
        reads[me]++;
    }
}

/* A vCPU that comes and goes, and asks for its record each time. */
static volatile uint64_t last_stolen, lives, went_back;

static void live_briefly(uint64_t arg) {
    (void)arg;
    set_up();
    uint64_t now = stolen(this_cpu()->index);

    went_back += now < last_stolen;
    spin_us(3000);
    set_up();
    now = stolen(this_cpu()->index);
    went_back += now < last_stolen;
    last_stolen = now;
    lives++;
}

static void s03_readers(void) {
    uint64_t samples = scaled(bootarg("samples", 100000)), sum[4] = {0};
    unsigned last = cpu_count - 1; /* this one comes and goes at the end */

    stop = ready = 0;
    smp_start_all(watch, samples);
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    watch(samples);
    smp_wait_all_off();
    for (unsigned i = 0; i < cpu_count; i++) {
        sum[0] += back[i];
        sum[1] += jumps[i];
        sum[2] += words[i];
        sum[3] += reads[i];
    }
    tap_note("%lu reads of %u records", sum[3], cpu_count);
    check_eq("S03-never-goes-back", sum[0], 0);
    check_eq("S03-no-jump", sum[1], 0);
    check_eq("S10-words-0-and-1", sum[2], 0);
    if (cpu_count < 2)
        return;
    last_stolen = stolen(last);
    for (unsigned i = 0; i < 20; i++) {
        smp_start(last, live_briefly, 0);
        if (!smp_wait_off(last))
            break;
    }
    check_eq("S03-lives", lives, 20);
    check_eq("S03-over-CPU_OFF-and-CPU_ON", went_back, 0);
}

/* ---- Waits ---- */

static void stop_timer(uint32_t id) {
    if (id == INTID_VTIMER)
        write_sysreg(cntv_ctl_el0, 0);
    isb();
}

/* Alone on its pCPUs, sleeping for 100 ms: nothing was stolen. */
static void sleeping_is_not_stolen(void) {
    gic_init();
    gic_cpu_init();
    struct irq_state *irq = irq_install();

    irq->during = stop_timer;
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    uint64_t before = stolen(0), from = counter();

    for (unsigned i = 0; i < 100; i++) {
        uint32_t count = irq->count[INTID_VTIMER];

        write_sysreg(cntv_tval_el0, us_to_ticks(1000));
        write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
        isb();
        while (irq->count[INTID_VTIMER] == count) {
            wfi();
            irq_enable();
            isb();
            irq_disable();
        }
    }
    uint64_t slept = ns(counter() - from), took = stolen(0) - before;

    tap_note("slept %lu us, stolen %lu us", slept / 1000, took / 1000);
    check_range("S05-sleep-is-not-stolen", took, 0, slept / 50);
}

void test_main(void) {
    pv_map(PV_TIME_REGION);
    set_up();
    if (bootarg("waits", 0)) {
        sleeping_is_not_stolen();
    } else if (bootarg("readers", 0)) {
        s03_readers();
    } else {
        s05_spin();
        /* The others are to be there until the last one has measured. */
        spin_us(bootarg("after_us", 100000));
    }
}
