/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/advance.h"

#define POINT  ADVANCE_POINT
#define GIGA   1000000000u
#define EIGHTH 3u

/* Numbers of the rule in ticks; those with a point are compared with advance.value. */
static struct {
    uint64_t hz;
    uint64_t start, least, most; /* with a point */
    uint64_t settled, outlier, brief, queued;
} scale;

static uint64_t pointed(uint64_t ns) {
    return ((ns * scale.hz) << POINT) / GIGA;
}

void advance_clock(uint64_t hz) {
    scale.hz = hz;
    scale.start = pointed(ADVANCE_START_NS);
    scale.least = pointed(ADVANCE_LEAST_NS);
    scale.most = pointed(ADVANCE_MOST_NS);
    scale.queued = pointed(ADVANCE_QUEUED_NS) >> POINT;
    scale.brief = pointed(ADVANCE_SHORT_NS) >> POINT;
    scale.outlier = pointed(ADVANCE_OUTLIER_NS) >> POINT;
    scale.settled = hz / (GIGA / ADVANCE_SETTLED_CYCLES);
    if (scale.settled > ADVANCE_SETTLED_CYCLES) {
        scale.settled = ADVANCE_SETTLED_CYCLES;
    } else if (scale.settled == 0) {
        scale.settled = 1;
    }
}

/* What the monitor looks at. */
static void show(uint64_t *counter, uint64_t value) {
    __atomic_store_n(counter, value, __ATOMIC_RELAXED);
}

static void show_signed(int64_t *field, int64_t value) {
    __atomic_store_n(field, value, __ATOMIC_RELAXED);
}

static void begin(struct advance *a, int32_t setting) {
    a->adopted = setting;
    a->stopped = false;
    show(&a->value, setting == ADVANCE_ADAPTIVE ? scale.start : pointed((uint64_t)setting));
}

void advance_init(struct advance *a, int32_t setting) {
    *a = (struct advance){.setting = setting, .counted = true};
    begin(a, setting);
}

void advance_set(struct advance *a, int32_t setting) {
    __atomic_store_n(&a->setting, setting, __ATOMIC_RELAXED);
}

void advance_woken(struct advance *a, uint64_t deadline, uint64_t now) {
    if (deadline != ADVANCE_NEVER && (deadline <= now || deadline - now <= a->used)) {
        a->due = deadline;
        a->bound = true;
    }
}

void advance_queued(struct advance *a, uint64_t ticks) {
    if (ticks > scale.queued) {
        a->in_time = false;
    }
}

bool advance_short(const struct advance *a, uint64_t now) {
    return now >= a->due || a->due - now <= scale.brief;
}

void advance_enter(struct advance *a, bool waits) {
    a->bound = false;
    a->entered = true;
    a->counted = false;
    a->fair = a->in_time;
    a->waits = waits;
}

/* Too early or too late by so much. */
static void adapt(struct advance *a, bool early, uint64_t error) {
    uint64_t step = a->value >> EIGHTH, value;

    if (error << POINT < step) {
        step = error << POINT;
    }
    if (!early) {
        value = a->value + step;
    } else if (error < scale.settled) {
        return;
    } else {
        value = a->value - step > scale.least ? a->value - step : scale.least;
    }
    if (value > scale.most) {
        value = 0;
        a->stopped = true;
        a->good = 0;
        show(&a->stops, a->stops + 1);
    }
    show(&a->value, value);
}

/* Nothing is advanced, so the lateness is the overhead itself. */
static void recover(struct advance *a, bool early, uint64_t error) {
    if (early || error << POINT > scale.most) {
        a->good = 0;
    } else if (++a->good == ADVANCE_RECOVERY) {
        a->stopped = false;
        show(&a->value, scale.start);
    }
}

static int64_t last_error(const struct advance *a) {
    return (int64_t)(a->arrived - a->due);
}

static bool is_outlier(const struct advance *a) {
    return last_error(a) > (int64_t)scale.outlier || !a->fair;
}

bool advance_news(const struct advance *a) {
    int64_t error = last_error(a);

    if (__atomic_load_n(&a->setting, __ATOMIC_RELAXED) != a->adopted) {
        return true;
    }
    if (!a->entered || !a->fair) {
        return false;
    }
    return (error > 0 ? error <= (int64_t)scale.outlier : 0 - (uint64_t)error >= scale.settled) ||
           a->stopped;
}

void advance_count(struct advance *a) {
    int64_t error = last_error(a);

    if (a->counted) {
        return;
    }
    a->counted = true;
    show(&a->expiries, a->expiries + 1);
    show_signed(&a->last_error, error);
    if (error < 0 && a->waits) {
        show(&a->waited, a->waited + (0 - (uint64_t)error));
    }
    if (is_outlier(a)) {
        show(&a->outliers, a->outliers + 1);
        return;
    }
    if (error > a->most_late) {
        show_signed(&a->most_late, error);
    }
    if (error < a->most_early) {
        show_signed(&a->most_early, error);
    }
}

bool advance_learn(struct advance *a) {
    int32_t setting = __atomic_load_n(&a->setting, __ATOMIC_RELAXED);
    bool was_stopped = a->stopped;
    int64_t error = last_error(a);

    if (a->entered && a->adopted == ADVANCE_ADAPTIVE && !is_outlier(a)) {
        uint64_t size = error < 0 ? 0 - (uint64_t)error : (uint64_t)error;

        if (a->stopped) {
            recover(a, error < 0, size);
        } else {
            adapt(a, error < 0, size);
        }
    }
    a->entered = false;
    if (setting != a->adopted) {
        begin(a, setting);
    }
    return a->stopped && !was_stopped;
}

int64_t advance_ticks_ns(int64_t ticks) {
    uint64_t size = ticks < 0 ? 0 - (uint64_t)ticks : (uint64_t)ticks;
    uint64_t ns = size / scale.hz * GIGA + size % scale.hz * GIGA / scale.hz;

    return ticks < 0 ? -(int64_t)ns : (int64_t)ns;
}

uint32_t advance_ns(const struct advance *a) {
    uint64_t value = __atomic_load_n(&a->value, __ATOMIC_RELAXED);

    return (uint32_t)((value * GIGA / scale.hz + (1u << (POINT - 1))) >> POINT);
}
