/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Timer advancement: how much earlier than a guest's deadline the hypervisor's own alarm is set, so
 * that the guest is there when the deadline is, and not the hypervisor's overhead later.
 *
 * One struct advance for each vCPU. An expiry goes through it like this:
 *
 *     if (advance_news(a)) advance_learn(a);      the vCPU leaves its pCPU; what came before
 *     alarm = advance_arm(a, deadline, now)       it goes to sleep; the alarm is set
 *     advance_count(a)                            the alarm woke it: counters of the last time,
 *     advance_woken(a, deadline, now)             bound to the deadline, or not
 *     a->arrived = port_clock(); wait for a->due  last before the guest: see arch_enter_at()
 *
 * Learning is not done between the wait and the guest, where it would be lateness of its own.
 *
 * The rule, per expiry with `error` = arrival less deadline: too early, the advance becomes smaller
 * by min(-error, advance / 8); too late, larger by min(error, advance / 8). An arrival that is
 * early by less than 100 cycles is good as it is: the wait costs less than that. One that is late
 * by as little is not, as nothing makes up for it. It never stops learning: an overhead that
 * changes is followed. Who comes more than 10 us too late, or waited for others to run, teaches
 * nothing. Above 5000 ns something is wrong: no advance (0) until the lateness itself, 64 times in
 * a row, shows that it is over.
 *
 * All values are in ticks of port_clock(), the advance with 8 bits after the point. A cycle is a
 * tick, but at most a nanosecond (arm64's counter may be slow). No function here takes a lock, and
 * all are for the pCPU that has the vCPU, interrupts masked, except where it says any pCPU.
 */
#ifndef CORE_ADVANCE_H
#define CORE_ADVANCE_H

#include <stdbool.h>
#include <stdint.h>

/* Settings: these, or a fixed number of nanoseconds up to ADVANCE_FIXED_MAX. */
#define ADVANCE_ADAPTIVE  (-1)
#define ADVANCE_OFF       0
#define ADVANCE_FIXED_MAX 50000 /* below the least turn that a vCPU is given, 125 us */

/* Numbers of the adaptive rule. */
#define ADVANCE_START_NS       1000u
#define ADVANCE_LEAST_NS       100u /* from here 40 steps of an eighth reach all that is allowed */
#define ADVANCE_MOST_NS        5000u
#define ADVANCE_SETTLED_CYCLES 100u
#define ADVANCE_OUTLIER_NS     10000u
#define ADVANCE_RECOVERY       64u

/* Longer in a run queue, and others ran meanwhile. In the lab a switch takes 0.7 us of it. */
#define ADVANCE_QUEUED_NS 1500u

/* What is waited for in any case: the way round by the guest's own timer costs more. */
#define ADVANCE_SHORT_NS 1000u

#define ADVANCE_NEVER UINT64_MAX /* no deadline */
#define ADVANCE_POINT 8u         /* bits after the point */

struct advance {
    int32_t setting; /* atomic: written from any pCPU */
    int32_t adopted; /* what `value` is for */
    uint64_t value;  /* the advance, ticks << 8 */
    uint64_t used;   /* that of the alarm that was set last, ticks */
    uint64_t due;    /* the deadline, while `bound` or `entered` */
    uint64_t arrived;
    bool bound;    /* it is on its way into its guest, not to be there before `due` */
    bool entered;  /* it went, `arrived` says when it could have: to be learned from */
    bool in_time;  /* its alarm was set in time, and no other vCPU delayed it */
    bool fair;     /* the same of the last entry's alarm */
    bool counted;  /* the last entry is in the counters below */
    bool waits;    /* it waited for `due`, if it was early */
    bool stopped;  /* adaptive, and something is wrong */
    uint32_t good; /* since it stopped: expiries in a row with an overhead that is allowed */
    /* What the monitor shows; atomic for it. Errors are signed: negative is early. */
    int64_t last_error, most_early, most_late; /* ticks; those that are no outliers */
    uint64_t expiries, outliers, stops;
    uint64_t waited; /* ticks, all together */
};

/* How many ticks are in a second, 1..2^33. Once, before any other call. Any pCPU. */
void advance_clock(uint64_t hz);

/* Prepares one: setting is ADVANCE_ADAPTIVE, ADVANCE_OFF or 1..ADVANCE_FIXED_MAX ns. Any pCPU. */
void advance_init(struct advance *a, int32_t setting);

/* Another setting: from the next advance_learn() on. Any pCPU. */
void advance_set(struct advance *a, int32_t setting);

/*
 * Whether there is anything to do: if not, it is not bound, and the functions below need not be
 * called. When it is switched off, one more advance_learn() is to see that.
 */
static inline bool advance_on(const struct advance *a) {
    return (__atomic_load_n(&a->setting, __ATOMIC_RELAXED) | a->adopted) != ADVANCE_OFF;
}

/*
 * When to set the alarm for a deadline: at it or earlier, ADVANCE_NEVER for ADVANCE_NEVER. A vCPU
 * that was bound is no longer. Inline, like all that others have to wait for.
 */
static inline uint64_t advance_arm(struct advance *a, uint64_t deadline, uint64_t now) {
    a->bound = false;
    if (deadline != ADVANCE_NEVER) {
        a->used = a->value >> ADVANCE_POINT;
        deadline = deadline > a->used ? deadline - a->used : 0;
        a->in_time = now < deadline;
    }
    return deadline;
}

/*
 * The alarm has brought the vCPU back; `deadline` is its earliest now. If that is past or nearer
 * than the advance, the vCPU is bound to it; otherwise (it is another deadline) the guest's own
 * timer will do.
 */
void advance_woken(struct advance *a, uint64_t deadline, uint64_t now);

/*
 * It waited in a run queue, for `ticks` since the alarm: if that is more than it takes to change
 * vCPUs, others ran first, and its arrival will teach nothing.
 */
void advance_queued(struct advance *a, uint64_t ticks);

/* It is not bound any more: it goes into its guest now, or elsewhere. */
static inline void advance_unbind(struct advance *a) {
    a->bound = false;
}

/* The clock as the guest will first see it: `now`, but not before what the vCPU is bound to. */
static inline uint64_t advance_entry_time(const struct advance *a, uint64_t now) {
    return a->bound && now < a->due ? a->due : now;
}

/* Whether no more than ADVANCE_SHORT_NS is left at `now` of what the vCPU is bound to. */
bool advance_short(const struct advance *a, uint64_t now);

/*
 * It goes into its guest; `waits`: and not before a->due. From now on it is not bound but entered:
 * a->arrived is to be set.
 */
void advance_enter(struct advance *a, bool waits);

/* Whether the setting has changed, or there was an entry that changes the next alarm. */
bool advance_news(const struct advance *a);

/*
 * Takes the last entry into account, if there was one, and a change of the setting. True: it has
 * just stopped advancing.
 */
bool advance_learn(struct advance *a);

/*
 * The counters for the last entry, if they do not have it yet. Before the next entry, at a time
 * that the advance covers; always, so that what it covers is the same each time.
 */
void advance_count(struct advance *a);

/* The present advance in nanoseconds, and any number of ticks, signed. Any pCPU. */
uint32_t advance_ns(const struct advance *a);
int64_t advance_ticks_ns(int64_t ticks);

#endif
