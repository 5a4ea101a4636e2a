/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * M11: `count` deadlines on each CPU, slept for in WFI, of all kinds that a hypervisor which sets
 * its own alarm early could get wrong. No interrupt may come before its deadline by the guest's own
 * counter, none may be lost, none may come for a deadline that was moved or cancelled. With more
 * than one CPU each is woken by SGIs of the next one now and then, also right before its deadline.
 *
 * Boot arguments: count (2000 a CPU), seed, period_us (60: the longest sleep), median_ns: half of
 * the plain deadlines may be later than that at most (0: not asked).
 */
#include "irq.h"

const char *const test_name = "deadline";

#define SGI       3u
#define BUCKET_NS 8u
#define BUCKETS   4096u

struct state {
    uint64_t random;
    volatile uint64_t deadline[2]; /* of the virtual and the physical timer; ~0: none */
    bool stale[2]; /* it was moved when it had expired: its interrupt may come all the same */
    volatile uint32_t fired[2], early, unwanted, spurious, masked_early, timeouts;
    uint32_t late[BUCKETS]; /* plain ones */
    uint32_t plain;
    uint64_t worst_ns;
} __attribute__((aligned(64)));

static struct state states[MAX_CPUS];
static uint64_t count, period_ns;
static volatile uint32_t finished;

static struct state *mine(void) {
    return &states[this_cpu()->index];
}

static uint32_t roll(uint32_t below) {
    struct state *s = mine();

    s->random = s->random * 6364136223846793005ul + 1442695040888963407ul;
    return (uint32_t)(s->random >> 33) % below;
}

static uint64_t ns_to_ticks(uint64_t ns) {
    return ns * freq() / 1000000000;
}

static uint64_t now(unsigned timer) {
    return timer != 0 ? pcounter() : counter();
}

static void set(unsigned timer, uint64_t deadline) {
    struct state *s = mine();

    uint64_t before = s->deadline[timer];

    s->deadline[timer] = deadline;
    if (timer != 0) {
        write_sysreg(cntp_cval_el0, deadline);
        write_sysreg(cntp_ctl_el0, deadline != ~0ul);
    } else {
        write_sysreg(cntv_cval_el0, deadline);
        write_sysreg(cntv_ctl_el0, deadline != ~0ul);
    }
    isb();
    s->stale[timer] |= now(timer) >= before;
}

static void set_in(unsigned timer, uint64_t ns) {
    set(timer, now(timer) + ns_to_ticks(ns));
}

static void on_interrupt(uint32_t id) {
    struct state *s = mine();

    if (id != INTID_VTIMER && id != INTID_PTIMER) {
        return;
    }
    unsigned timer = id == INTID_PTIMER;

    if (now(timer) >= s->deadline[timer]) {
        s->fired[timer]++;
        set(timer, ~0ul);
        s->stale[timer] = false;
    } else if (s->stale[timer]) {
        s->spurious++;
        s->stale[timer] = false;
    } else if (s->deadline[timer] == ~0ul) {
        s->unwanted++;
    } else {
        s->early++;
    }
}

static void take(void) {
    irq_enable();
    isb();
    irq_disable();
}

/* In WFI until `timer` has fired once more. While interrupts are masked, one that is pending must
 * have a deadline that is over. */
static void sleep_for(unsigned timer) {
    struct state *s = mine();
    uint32_t before = s->fired[timer];
    uint64_t since = counter();

    while (s->fired[timer] == before) {
        bool pending;

        wfi();
        pending = (read_sysreg(isr_el1) & 0x80) != 0;
        isb();
        if (cpu_count == 1 && pending && !s->stale[0] && !s->stale[1] &&
            counter() < s->deadline[0] && pcounter() < s->deadline[1])
            s->masked_early++;
        take();
        if (counter() - since > us_to_ticks(30000000)) {
            tap_note("CPU %u timer %u: %lu us after its deadline, %lu us asleep, control %lx %lx, "
                     "isr %lx, stale %u %u",
                     this_cpu()->index, timer, ticks_to_us(now(timer) - s->deadline[timer]),
                     ticks_to_us(counter() - since), read_sysreg(cntv_ctl_el0),
                     read_sysreg(cntp_ctl_el0), read_sysreg(isr_el1), s->stale[0], s->stale[1]);
            s->timeouts++;
            set(timer, ~0ul);
            return;
        }
    }
}

static void plain(void) {
    struct state *s = mine();
    uint32_t before = s->fired[0];
    uint64_t deadline;
    int64_t late = 0;

    set_in(0, 8000 + roll((uint32_t)period_ns));
    deadline = s->deadline[0];
    while (s->fired[0] == before) {
        wfi();
        isb();
        late = (int64_t)(counter() - deadline); /* below 0: it came after this */
        take();
    }
    uint64_t ns = late < 0 ? 0 : (uint64_t)late * 1000000000 / freq();

    s->late[ns / BUCKET_NS < BUCKETS ? ns / BUCKET_NS : BUCKETS - 1]++;
    s->worst_ns = ns > s->worst_ns ? ns : s->worst_ns;
    s->plain++;
}

/* Two deadlines with less than an advance between them: each for itself. */
static void both(void) {
    unsigned first = roll(2);
    uint64_t ns = 8000 + roll((uint32_t)period_ns);
    uint32_t before = mine()->fired[!first];

    set_in(!first, ns + roll(3000));
    set_in(first, ns);
    sleep_for(first);
    if (mine()->fired[!first] == before)
        sleep_for(!first);
}

/* Woken by one timer shortly before the other is due, which is moved or cancelled then. */
static void moved(void) {
    unsigned first = roll(2);
    uint64_t ns = 8000 + roll((uint32_t)period_ns);

    set_in(first, ns);
    set_in(!first, ns + 500 + roll(8000));
    sleep_for(first);
    if (roll(2) != 0) {
        set(!first, ~0ul);
        take();
    } else if (mine()->deadline[!first] != ~0ul) {
        set_in(!first, roll(20000));
        sleep_for(!first);
    }
}

/* So near, or past, that there is no time to set an alarm early. */
static void near(void) {
    unsigned timer = roll(2);

    if (roll(3) == 0)
        set(timer, now(timer) - roll(1u << 16));
    else
        set_in(timer, roll(6000));
    sleep_for(timer);
}

/* One for which there is no hurry, and one at the top of the counter; the other timer wakes. */
static void far(void) {
    unsigned timer = roll(2);

    set(!timer, roll(2) != 0 ? ~0ul - 1 : now(!timer) + (1ul << 50));
    set_in(timer, 8000 + roll((uint32_t)period_ns));
    sleep_for(timer);
    set(!timer, ~0ul);
}

/* Woken by an SGI of its own or of nobody; it works a little, with the deadline still to come. */
static void works(void) {
    unsigned timer = roll(2);
    uint32_t before = mine()->fired[timer];

    set_in(timer, 3000 + roll((uint32_t)period_ns));
    while (roll(4) != 0) {
        irq_enable();
        spin_us(roll(10));
        irq_disable();
    }
    if (cpu_count > 1)
        gic_sgi(SGI, cpus[(this_cpu()->index + 1) % cpu_count].mpidr);
    if (mine()->fired[timer] == before)
        sleep_for(timer);
}

static void run(uint64_t arg) {
    struct state *s = mine();

    (void)arg;
    s->random = bootarg("seed", 1) * 977 + this_cpu()->index;
    s->deadline[0] = s->deadline[1] = ~0ul;
    gic_cpu_init();
    irq_install()->during = on_interrupt;
    irqs[this_cpu()->index].limit = ~0u;
    gic_set(SGI, GICD_ISENABLER);
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    gic_set(INTID_PTIMER, GICD_ISENABLER);
    for (uint64_t i = 0; i < count; i++) {
        switch (roll(12)) {
        case 0:
            both();
            break;
        case 1:
            moved();
            break;
        case 2:
            near();
            break;
        case 3:
            far();
            break;
        case 4:
            works();
            break;
        default:
            plain();
        }
    }
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

/* The lateness that half of the plain ones of all CPUs do not exceed. */
static uint64_t median(uint64_t plain_ones) {
    uint64_t n = 0;

    for (unsigned b = 0; b < BUCKETS; b++) {
        for (unsigned i = 0; i < cpu_count; i++)
            n += states[i].late[b];
        if (n * 2 >= plain_ones)
            return (b + 1) * BUCKET_NS;
    }
    return BUCKETS * BUCKET_NS;
}

void test_main(void) {
    static struct state sum;

    count = bootarg("count", 2000);
    period_ns = bootarg("period_us", 60) * 1000;
    gic_init();
    smp_start_all(run, 0);
    run(0);
    check_true("M11-all-deadlines-came", wait_for(finished == cpu_count, 100000000));
    smp_wait_all_off();
    for (unsigned i = 0; i < cpu_count; i++) {
        struct state *s = &states[i];

        sum.early += s->early;
        sum.unwanted += s->unwanted;
        sum.spurious += s->spurious;
        sum.masked_early += s->masked_early;
        sum.timeouts += s->timeouts;
        sum.fired[0] += s->fired[0];
        sum.fired[1] += s->fired[1];
        sum.plain += s->plain;
        sum.worst_ns = s->worst_ns > sum.worst_ns ? s->worst_ns : sum.worst_ns;
    }
    tap_note("%u virtual, %u physical; %u for deadlines that were moved after they had come",
             sum.fired[0], sum.fired[1], sum.spurious);
    tap_note("median below %lu ns, worst %lu ns", median(sum.plain), sum.worst_ns);
    check_eq("M11-none-early", sum.early, 0);
    check_eq("M11-none-pending-early", sum.masked_early, 0);
    check_eq("M11-none-for-a-cancelled-deadline", sum.unwanted, 0);
    check_eq("M11-none-lost", sum.timeouts, 0);
    check_true("M11-as-many-as-asked", sum.fired[0] + sum.fired[1] >= count * cpu_count);
    if (bootarg("median_ns", 0) != 0)
        check_range("M11-median-ns", median(sum.plain), 0, bootarg("median_ns", 0));
}
