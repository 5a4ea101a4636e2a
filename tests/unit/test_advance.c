/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/advance.c */
/* Timer advancement: the rule, step by step; that it converges, stays in its bounds, recovers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/advance.h"

#define GHZ       1000000000u
#define HISTORIES 100000u

static uint64_t random_state;

static uint32_t roll(uint32_t below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % below;
}

/* Ticks of `ns`, rounded down. */
static uint64_t ticks(uint64_t hz, uint64_t ns) {
    return ns * hz / GHZ;
}

/* What 100 cycles are. */
static int64_t settled(uint64_t hz) {
    uint64_t n = ticks(hz, 100);

    return n > 100 ? 100 : n == 0 ? 1 : (int64_t)n;
}

/* As who leaves its pCPU does it. */
static uint64_t arm(struct advance *a, uint64_t deadline, uint64_t now) {
    if (advance_news(a)) {
        advance_learn(a);
    }
    return advance_arm(a, deadline, now);
}

/* One expiry whose overhead is `overhead` ticks. What it arrives with, before any wait. */
static int64_t expire(struct advance *a, uint64_t deadline, uint64_t overhead) {
    uint64_t alarm = arm(a, deadline, deadline - 1000000);

    advance_woken(a, deadline, alarm);
    assert_true(a->bound);
    a->arrived = alarm + overhead;
    advance_enter(a, true);
    advance_count(a);
    (void)advance_learn(a);
    return (int64_t)(a->arrived - deadline);
}

static struct advance made(uint64_t hz, int32_t setting) {
    struct advance a;

    advance_clock(hz);
    advance_init(&a, setting);
    return a;
}

/* ---- The rule ---- */

static void steps_of_an_eighth(void **state) {
    struct advance a = made(GHZ, ADVANCE_ADAPTIVE);

    (void)state;
    assert_int_equal(advance_ns(&a), 1000);
    assert_int_equal(expire(&a, 1u << 30, 3000), 2000); /* too late by more than an eighth */
    assert_int_equal(advance_ns(&a), 1125);
    assert_int_equal(expire(&a, 1u << 30, 1145), 20); /* too late by less */
    assert_int_equal(advance_ns(&a), 1145);
    assert_int_equal(expire(&a, 1u << 30, 1145), 0);
    assert_int_equal(advance_ns(&a), 1145);
    assert_int_equal(expire(&a, 1u << 30, 1046), -99); /* early by less than 100 cycles: good */
    assert_int_equal(advance_ns(&a), 1145);
    assert_int_equal(expire(&a, 1u << 30, 1045), -100);
    assert_int_equal(advance_ns(&a), 1045);
    assert_int_equal(expire(&a, 1u << 30, 245), -800);
    assert_int_equal(a.value, (1045u << 8) - (1045u << 8) / 8);
    assert_int_equal(a.last_error, -800);
    assert_int_equal(a.most_early, -800);
    assert_int_equal(a.most_late, 2000);
    assert_int_equal(a.expiries, 6);
    assert_int_equal(a.waited, 99 + 100 + 800);
}

static void what_is_news(void **state) {
    static const struct {
        uint64_t overhead;
        bool news;
    } all[] = {{901, false},  {900, true},    {1000, false}, {1001, true},
               {11000, true}, {11001, false}, {0, true}};
    struct advance a = made(GHZ, ADVANCE_ADAPTIVE);

    (void)state;
    assert_false(advance_news(&a));
    for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        a = made(GHZ, ADVANCE_ADAPTIVE);
        advance_woken(&a, 10000, arm(&a, 10000, 0));
        a.arrived = 9000 + all[i].overhead;
        assert_false(advance_news(&a)); /* it is not there yet */
        advance_enter(&a, true);
        assert_int_equal(advance_news(&a), all[i].news);
        if (!all[i].news) { /* put off: the next alarm is the same, with or without it */
            uint64_t before = a.value;
            advance_learn(&a);
            assert_int_equal(a.value, before);
            advance_enter(&a, true);
            advance_set(&a, 7);
            assert_true(advance_news(&a));
            assert_true(advance_on(&a));
        }
        advance_learn(&a);
        assert_false(advance_news(&a));
    }
}

static void outliers_teach_nothing(void **state) {
    struct advance a = made(GHZ, ADVANCE_ADAPTIVE);

    (void)state;
    assert_int_equal(expire(&a, 1u << 30, 11001), 10001);
    assert_int_equal(expire(&a, 1u << 30, 1u << 25), (1 << 25) - 1000);
    assert_int_equal(advance_ns(&a), 1000);
    assert_int_equal(a.outliers, 2);
    assert_int_equal(a.most_late, 0);
    assert_int_equal(expire(&a, 1u << 30, 11000), 10000);
    assert_int_equal(advance_ns(&a), 1125);

    /* An alarm that was set too late is no measure of anything. */
    arm(&a, 5000, 4500);
    advance_woken(&a, 5000, 4600);
    assert_true(a.bound);
    a.arrived = 6000;
    advance_enter(&a, true);
    advance_arm(&a, 90000, 0); /* an alarm in time does not change what that one was */
    assert_false(advance_learn(&a));
    advance_count(&a);
    advance_count(&a);
    assert_int_equal(advance_ns(&a), 1125);
    assert_int_equal(a.outliers, 3);
}

/* Others ran between the alarm and it. */
static void who_queued_teaches_nothing(void **state) {
    struct advance a = made(GHZ, ADVANCE_ADAPTIVE);

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        advance_arm(&a, 1u << 30, 0);
        advance_queued(&a, 1501 - i);
        advance_woken(&a, 1u << 30, (1u << 30) + 900);
        a.arrived = (1u << 30) + 1500;
        advance_enter(&a, true);
        assert_int_equal(advance_news(&a), i);
        advance_count(&a);
        (void)advance_learn(&a);
        assert_int_equal(advance_ns(&a), 1000 + 125 * i);
    }
    assert_int_equal(a.outliers, 1);
}

static void stops_and_recovers(void **state) {
    struct advance a = made(GHZ, ADVANCE_ADAPTIVE);
    unsigned said = 0;

    (void)state;
    for (unsigned i = 0; i < 40 && !a.stopped; i++) {
        uint64_t alarm = arm(&a, 1u << 30, 0);
        advance_woken(&a, 1u << 30, alarm);
        a.arrived = alarm + 7000;
        advance_enter(&a, true);
        said += advance_learn(&a);
    }
    assert_true(a.stopped);
    assert_int_equal(said, 1);
    assert_int_equal(a.stops, 1);
    assert_int_equal(advance_ns(&a), 0);
    /* As long as it is wrong, and now and then is enough, nothing is advanced. */
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t overhead = i % ADVANCE_RECOVERY == ADVANCE_RECOVERY - 1 ? 5001 : 2000;
        assert_int_equal(expire(&a, 1u << 30, overhead), overhead);
        assert_int_equal(advance_ns(&a), 0);
    }
    while (a.good != 0) {
        expire(&a, 1u << 30, 6000);
    }
    for (unsigned i = 0; i < ADVANCE_RECOVERY; i++) {
        assert_int_equal(advance_ns(&a), 0);
        expire(&a, 1u << 30, 2000);
    }
    assert_int_equal(advance_ns(&a), 1000);
    assert_false(a.stopped);
    for (unsigned i = 0; i < 40; i++) {
        expire(&a, 1u << 30, 2000);
    }
    assert_int_equal(advance_ns(&a), 2000);
}

static void fixed_stays(void **state) {
    struct advance a = made(2 * GHZ, 3000);

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t overhead = 2 * roll(9000);
        assert_int_equal(expire(&a, 1u << 30, overhead), (int64_t)overhead - 6000);
        assert_int_equal(a.used, 6000);
        assert_int_equal(advance_ns(&a), 3000);
    }
    assert_true(a.most_early < -5000 && a.most_late > 10000);
}

static void settings_change_at_an_alarm(void **state) {
    struct advance a = made(GHZ, ADVANCE_ADAPTIVE);

    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        expire(&a, 1u << 30, 1700);
    }
    advance_set(&a, ADVANCE_ADAPTIVE); /* no change: what it knows stays */
    expire(&a, 1u << 30, 1700);
    assert_int_equal(a.used, 1700);
    advance_set(&a, 50);
    assert_int_equal(a.value >> 8, 1700);
    assert_int_equal(arm(&a, 10000, 0), 9950);
    assert_int_equal(advance_ns(&a), 50);
    assert_true(advance_on(&a));
    advance_set(&a, ADVANCE_OFF);
    assert_true(advance_on(&a)); /* once more, to see it */
    assert_int_equal(arm(&a, 10000, 0), 10000);
    assert_false(advance_on(&a));
    advance_set(&a, ADVANCE_ADAPTIVE);
    assert_int_equal(arm(&a, 10000, 0), 9000);
    assert_int_equal(advance_ns(&a), 1000);
}

/* ---- Deadlines of all kinds ---- */

static void deadlines(void **state) {
    struct advance a = made(GHZ, ADVANCE_ADAPTIVE);
    const uint64_t last = UINT64_MAX - 1;

    (void)state;
    assert_true(arm(&a, ADVANCE_NEVER, 5) == ADVANCE_NEVER);
    assert_int_equal(arm(&a, 0, 5), 0);
    assert_int_equal(arm(&a, 999, 0), 0);
    assert_true(arm(&a, last, 5) == last - 1000);

    advance_woken(&a, ADVANCE_NEVER, UINT64_MAX - 5); /* cancelled */
    assert_false(a.bound);
    advance_woken(&a, 10000, 8999); /* moved: too far */
    assert_false(a.bound);
    advance_woken(&a, last, 5);
    assert_false(a.bound);
    advance_woken(&a, 10000, 9000);
    assert_true(a.bound);
    assert_int_equal(advance_entry_time(&a, 9500), 10000);
    assert_int_equal(advance_entry_time(&a, 10000), 10000);
    assert_int_equal(advance_entry_time(&a, 10001), 10001);
    assert_false(advance_short(&a, 8999));
    assert_true(advance_short(&a, 9000));
    assert_true(advance_short(&a, 20000));
    advance_unbind(&a);
    assert_int_equal(advance_entry_time(&a, 9500), 9500);
    advance_woken(&a, 0, 5); /* long past */
    assert_true(a.bound);
    assert_int_equal(advance_entry_time(&a, 5), 5);
    advance_woken(&a, last, last - 1);
    assert_true(a.bound && advance_entry_time(&a, last - 1) == last);

    arm(&a, 20000, 0); /* it left again before it was in its guest */
    assert_false(a.bound);
    assert_false(advance_learn(&a));
    assert_int_equal(a.expiries, 0);
}

static void nanoseconds(void **state) {
    (void)state;
    advance_clock(24000000);
    assert_int_equal(advance_ticks_ns(24), 1000);
    assert_int_equal(advance_ticks_ns(-48), -2000);
    assert_int_equal(advance_ticks_ns(INT64_C(24000000) * 86400 * 365), INT64_C(31536000000000000));
    advance_clock(1ull << 33);
    assert_int_equal(advance_ticks_ns(-(INT64_C(1) << 33)), -1000000000);
}

/* ---- Convergence ---- */

static const uint64_t rates[] = {1000000,    24000000,   62500000,   100000000,
                                 1000000000, 2100000000, 5000000000, 1ull << 33};

static void converges_within_40(void **state) {
    (void)state;
    for (unsigned r = 2; r < sizeof(rates) / sizeof(rates[0]); r++) {
        uint64_t hz = rates[r];
        for (uint64_t start = ADVANCE_LEAST_NS; start <= ADVANCE_MOST_NS; start += 70) {
            for (uint64_t overhead = 100; overhead <= 4000; overhead += 37) {
                struct advance a = made(hz, ADVANCE_ADAPTIVE);

                a.value = (start * hz << 8) / GHZ;
                for (unsigned i = 0; i < 40; i++) {
                    expire(&a, 1ull << 40, ticks(hz, overhead));
                }
                for (unsigned i = 0; i < 20; i++) {
                    assert_in_range(expire(&a, 1ull << 40, ticks(hz, overhead)) + settled(hz), 0,
                                    settled(hz));
                }
            }
        }
    }
}

/* ---- Any history ---- */

/* What the machine, or somebody who wants to harm, makes of the overhead. */
enum kind { CONSTANT, UNIFORM, STEPS, LATE_TAIL, CONTRARY, FAR_APART, KINDS };

static uint64_t overhead_of(enum kind kind, const struct advance *a, uint64_t base, unsigned i) {
    switch (kind) {
    case CONSTANT:
        return base;
    case UNIFORM:
        return roll(12000);
    case STEPS:
        return i / 25 % 2 == 0 ? base : base + 2500;
    case LATE_TAIL:
        return roll(20) == 0 ? base + roll(3000000) : base;
    case CONTRARY: /* late when it advances little, early when it advances much */
        return advance_ns(a) < 3000 ? 12000 : 0;
    default:
        return roll(2) == 0 ? roll(100) : 15000;
    }
}

static void stays_in_bounds(const struct advance *a, uint64_t hz) {
    uint64_t ns = advance_ns(a), rounding = GHZ / hz / 256 + 1;

    if (a->adopted == ADVANCE_ADAPTIVE) {
        assert_true(a->stopped ? ns == 0
                               : ns + rounding >= ADVANCE_LEAST_NS && ns <= ADVANCE_MOST_NS);
    } else {
        assert_in_range(ns + rounding, (uint64_t)a->adopted, (uint64_t)a->adopted + 2 * rounding);
    }
}

/* An expiry, with all that may come between. */
static void live_through(struct advance *a, uint64_t hz, uint64_t overhead) {
    uint64_t deadline = (1ull << 40) + roll(1u << 30);
    uint64_t set = deadline - ticks(hz, roll(8) == 0 ? roll(6000) : 1000000);
    uint64_t alarm = arm(a, deadline, set), waited = a->waited;
    uint64_t came = (alarm > set ? alarm : set) + overhead / 2;

    stays_in_bounds(a, hz);
    assert_true(alarm <= deadline && deadline - alarm == a->used);
    assert_true(a->used <= ticks(hz, a->adopted > 0 ? (uint64_t)a->adopted : ADVANCE_MOST_NS));
    if (roll(16) == 0) {
        deadline += roll(2) == 0 ? (uint64_t)roll(1u << 20) : 0 - (uint64_t)roll(1u << 20);
    }
    advance_woken(a, deadline, came);
    assert_int_equal(a->bound, deadline <= came || deadline - came <= a->used);
    if (a->bound) {
        assert_true(advance_entry_time(a, came) >= deadline);
        assert_true(advance_entry_time(a, came) - came <= a->used || came > deadline);
        if (roll(16) == 0) {
            return; /* taken off again */
        }
        a->arrived = came + overhead / 2;
        advance_enter(a, roll(8) != 0);
    }
    advance_learn(a);
    advance_count(a);
    assert_true(a->waited - waited <= a->used);
    stays_in_bounds(a, hz);
}

static void any_history(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        uint64_t hz, overhead;
        enum kind kind;
        struct advance a;

        random_state = seed * 0x9e3779b97f4a7c15ull;
        hz = rates[roll(sizeof(rates) / sizeof(rates[0]))];
        kind = (enum kind)roll(KINDS);
        overhead = roll(7000);
        a = made(hz, roll(4) != 0 ? ADVANCE_ADAPTIVE : (int32_t)roll(ADVANCE_FIXED_MAX + 1));
        for (unsigned i = 0, n = 1 + roll(80); i < n; i++) {
            if (roll(100) == 0) {
                advance_set(&a, (int32_t)roll(3) - 1);
            }
            live_through(&a, hz, ticks(hz, overhead_of(kind, &a, overhead, i)));
        }
        /* Whatever it was, it is over. */
        advance_set(&a, ADVANCE_ADAPTIVE);
        overhead = ticks(hz, 100 + roll(3900));
        for (unsigned i = 0; i < ADVANCE_RECOVERY + 40; i++) {
            expire(&a, 1ull << 40, overhead);
        }
        assert_false(a.stopped);
        assert_in_range(expire(&a, 1ull << 40, overhead) + settled(hz), 0, settled(hz));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_an_eighth),
        cmocka_unit_test(what_is_news),
        cmocka_unit_test(outliers_teach_nothing),
        cmocka_unit_test(who_queued_teaches_nothing),
        cmocka_unit_test(stops_and_recovers),
        cmocka_unit_test(fixed_stays),
        cmocka_unit_test(settings_change_at_an_alarm),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(nanoseconds),
        cmocka_unit_test(converges_within_40),
        cmocka_unit_test(any_history),
    };

    return cmocka_run_group_tests_name("advance", tests, NULL, NULL);
}
