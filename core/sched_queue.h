/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * One pCPU's run queue: the list, vtimes and times. Private to core/sched.c, which explains the
 * ideas; tests may look inside too. No function here takes a lock: the lock of the queue (for an
 * entity: of the queue it belongs to) must be held, except for what is named peek.
 */
#ifndef CORE_SCHED_QUEUE_H
#define CORE_SCHED_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rare.h"
#include "core/relaxed.h"
#include "core/sched.h"
#include "core/spinlock.h"
#include "core/trace.h"

struct run_queue {
    _Alignas(128) struct spinlock lock; /* guards what is not marked atomic, and all writes */
    uint32_t waiting;                   /* atomic: length of the list */
    uint32_t seen_weight;               /* atomic hint: weight of cur, 0 without one */
    struct sched_entity *head, *tail;   /* RUNNABLE ones by vtime, first come first among equals */
    struct sched_entity *cur;           /* the RUNNING one */
    uint64_t floor;                     /* vtime below which nobody comes in, never goes back */
    uint64_t turn;                      /* when cur began its turn */
    uint64_t balance_at;                /* when to look at the other pCPUs again */
    uint64_t slice_end;              /* atomic: when to pick; 0: at once; written by others too */
    uint64_t seen_vtime, seen_since; /* atomic hints: vtime of cur, and when it had that */
    uint64_t seen_head;              /* atomic hint: vtime of head, if somebody waits */
    uint16_t cpu;                    /* its own number */
    bool offered; /* atomic: it was kicked, while idle, and somebody may wait whom it leaves */
};

/* Whether vtime `a` is smaller than `b`, while they are less than 2^63 apart. */
static inline bool before(uint64_t a, uint64_t b) {
    return (int64_t)(a - b) < 0;
}

/* `ticks` of run time as vtime for this weight; no overflow on the way, rounded down. */
static inline uint64_t scaled(uint64_t ticks, uint32_t weight) {
    return ticks / weight * SCHED_DEFAULT_WEIGHT + ticks % weight * SCHED_DEFAULT_WEIGHT / weight;
}

/* After a change of the list: what the others look at without the lock. */
static inline void list_changed(struct run_queue *q, uint32_t waiting) {
    if (q->head != NULL) {
        store_relaxed(&q->seen_head, q->head->vtime);
    }
    __atomic_store_n(&q->waiting, waiting, __ATOMIC_SEQ_CST);
}

/* Adds an entity behind those with the same vtime. Then list_changed() is due. */
static inline void list_insert(struct run_queue *q, struct sched_entity *e) {
    struct sched_entity *left = q->tail;

    while (left != NULL && before(e->vtime, left->vtime)) {
        left = left->prev;
    }
    e->prev = left;
    e->next = left != NULL ? left->next : q->head;
    *(left != NULL ? &left->next : &q->head) = e;
    *(e->next != NULL ? &e->next->prev : &q->tail) = e;
}

/* Takes an entity out; its next and prev are left as they were. Then list_changed() is due. */
static inline void list_remove(struct run_queue *q, struct sched_entity *e) {
    *(e->prev != NULL ? &e->prev->next : &q->head) = e->next;
    *(e->next != NULL ? &e->next->prev : &q->tail) = e->prev;
}

/* A waiting entity of q belongs to pCPU `cpu` from now on; in whose queue it is not yet. */
static inline void list_hand_over(struct run_queue *q, struct sched_entity *e, unsigned cpu) {
    list_remove(q, e);
    list_changed(q, q->waiting - 1);
    __atomic_store_n(&e->cpu, (uint16_t)cpu, __ATOMIC_RELEASE);
}

/* Takes the first one out. list_changed() is due only for the length. */
static inline void list_remove_head(struct run_queue *q) {
    struct sched_entity *next = q->head->next;

    q->head = next;
    if (next != NULL) {
        next->prev = NULL;
        store_relaxed(&q->seen_head, next->vtime);
    } else {
        q->tail = NULL;
    }
}

/*
 * Takes the lock of the queue that the entity belongs to, which may change until we have it.
 * Acquire and release on `cpu`: who moves an entity has one lock at a time.
 */
struct run_queue *sched_lock_queue_of(struct sched_entity *e);

#define LAG_SLICES 4u /* how far behind a vtime may be when it meets another queue */

/* Parts of sched.c for sched_yield.c; the queue's lock is held but for the first. */
struct run_queue *sched_queue_of(unsigned cpu);
/* Adds one that comes from another queue, at most `credit` behind the floor here. */
void sched_add_moved(struct run_queue *q, struct sched_entity *e, uint64_t credit);

/* Whom a yield of `stay`, who runs on q, brings on; NULL: nobody. Somebody waits there. */
struct sched_entity *sched_yield_target(const struct run_queue *q, struct sched_entity *stay);

/* Records that `e`, of q, is in state `to` from e->since on. While a trace is taken. */
RARE void sched_trace(const struct run_queue *q, const struct sched_entity *e, enum run_state to,
                      bool yield);

/* Tells the guest, by the records of `e` that are in use, that it is in state `to`. */
static inline void tell_guest(struct sched_entity *e, enum run_state to) {
    if (e->pvlock.record != NULL) {
        bool waits = to == RUN_BLOCKED && !e->pvlock.flag_blocked;

        pvlock_state(&e->pvlock, to == RUN_RUNNING, to != RUN_RUNNING && !waits);
    }
    if (to == RUN_RUNNING && e->steal.record != NULL) {
        steal_update(&e->steal, e->times[RUN_RUNNABLE]);
    }
}

/*
 * Another state; the time in the present one has been added up to e->since. `yield`: the entity
 * gives the pCPU up though its slice is not over. The one place where a guest's records change: so
 * its flag is 0 before its first instruction here, and set before another runs.
 */
static inline void enter_state(const struct run_queue *q, struct sched_entity *e,
                               enum run_state state, bool yield) {
    uint32_t watch = watch_word();

    if (__builtin_expect(watch != 0, false)) {
        if ((watch & WATCH_TRACE) != 0) {
            sched_trace(q, e, state, yield);
        }
        tell_guest(e, state);
    }
    e->state = (uint8_t)state;
}

/*
 * Whether `e`, which runs and is to be BLOCKED or OFF, goes on instead, as e->wakes is not 0. A
 * kick ends a block only, and with any block that ends it is over.
 */
static inline bool called_off(struct sched_entity *e, enum run_state state) {
    bool off = load_relaxed(&e->wake_pending);

    if (state == RUN_BLOCKED) {
        off |= e->kicked;
        e->kicked = false;
    }
    return off;
}

/* Ends the entity's stay in its present state. */
static inline void set_state(const struct run_queue *q, struct sched_entity *e,
                             enum run_state state, uint64_t now) {
    uint64_t spent = now > e->since ? now - e->since : 0;

    e->times[e->state] += spent;
    e->since += spent;
    if (e->state == RUN_RUNNABLE && spent > e->longest_wait) {
        e->longest_wait = spent;
    }
    enter_state(q, e, state, false);
}

/* A RUNNABLE one gets the pCPU: set_state() without questions. */
static inline void begin_running(const struct run_queue *q, struct sched_entity *e, uint64_t now) {
    uint64_t spent = now > e->since ? now - e->since : 0;

    e->times[RUN_RUNNABLE] += spent;
    e->since += spent;
    if (spent > e->longest_wait) {
        e->longest_wait = spent;
    }
    enter_state(q, e, RUN_RUNNING, false);
}

/* Charges a RUNNING entity for what it ran up to now: its RUNNING state begins anew. */
static inline void charge(struct sched_entity *e, uint64_t now) {
    if (now > e->since) {
        uint64_t ran = now - e->since;

        e->times[RUN_RUNNING] += ran;
        e->since = now;
        if (e->weight == SCHED_DEFAULT_WEIGHT) {
            e->vtime += ran;
        } else {
            uint64_t rest = ran % e->weight * SCHED_DEFAULT_WEIGHT + e->vtime_rest;

            e->vtime += ran / e->weight * SCHED_DEFAULT_WEIGHT + rest / e->weight;
            e->vtime_rest = (uint16_t)(rest % e->weight);
        }
    }
}

/* Moves the floor up to `vtime` if it is lower. */
static inline void raise_floor(struct run_queue *q, uint64_t vtime) {
    if (before(q->floor, vtime)) {
        q->floor = vtime;
    }
}

/* The one with the smallest vtime here, the running one included; NULL if nobody is here. */
static inline struct sched_entity *lowest(const struct run_queue *q) {
    return q->cur != NULL && (q->head == NULL || before(q->cur->vtime, q->head->vtime)) ? q->cur
                                                                                        : q->head;
}

/* Brings the running entity's vtime and the floor up to now. */
static inline void refresh(struct run_queue *q, uint64_t now) {
    if (q->cur != NULL) {
        charge(q->cur, now);
    }
    if (lowest(q) != NULL) {
        raise_floor(q, lowest(q)->vtime);
    }
}

/* Shows others, who do not take the lock, how far this pCPU's entity, `cur`, is. */
static inline void publish(struct run_queue *q, const struct sched_entity *cur) {
    if (cur != NULL) {
        store_relaxed(&q->seen_vtime, cur->vtime);
        store_relaxed(&q->seen_since, cur->since);
    }
    store_relaxed(&q->seen_weight, cur != NULL ? cur->weight : 0);
}

/*
 * The smallest vtime on q, about, without the lock; *weight is that of the one that runs there, 0
 * when nobody does.
 */
static inline uint64_t peek_low(const struct run_queue *q, uint64_t now, uint32_t *weight) {
    uint64_t since = load_relaxed(&q->seen_since);
    uint64_t vtime = load_relaxed(&q->seen_vtime);
    uint64_t head = load_relaxed(&q->seen_head);

    *weight = load_relaxed(&q->seen_weight);
    if (*weight != 0 && now > since) {
        vtime += scaled(now - since, *weight);
    }
    if (load_relaxed(&q->waiting) != 0 && before(head, vtime)) {
        vtime = head;
    }
    return vtime;
}

#endif
