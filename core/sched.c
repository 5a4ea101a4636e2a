/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The scheduler: see core/sched.h for the contract.
 *
 * Virtual time. Each entity has a vtime: its run time scaled by SCHED_DEFAULT_WEIGHT / weight,
 * exact (the remainder of the division is carried). Whoever has the smallest vtime is owed the CPU
 * most. The vtimes of all pCPUs are on one scale: a move between queues leaves vtime as it is, so
 * that what an entity got too much on one pCPU is paid back on another. A vtime moves forward, and
 * besides running it does so only where a debt towards an entity must stay bounded. The floor of a
 * queue is the smallest vtime that was in it and never goes back:
 *
 * - who slept comes back at most a slice behind its queue's floor;
 * - who moves comes at most LAG_SLICES behind the floor of the new queue;
 * - who has a pCPU alone and yet falls behind those who could come there (its weight is worth more
 *   than a pCPU) is moved up to LAG_SLICES behind them: it can't save up what it can't use.
 *
 * Only a sleeper that finds its pCPU taken, comes into another queue and is far ahead of it (whose
 * scale is another, because affinity keeps the two apart) is moved back, to LAG_SLICES ahead.
 *
 * Across the pCPUs. A pCPU that goes idle takes a waiting entity from another queue. Where somebody
 * waits, the pCPU looks once per slice at the others: if everybody on one of them is ahead of our
 * first in the queue by more than a slice, that first one is sent there, displaces the one that
 * runs there, and the next of ours runs here. So no queue falls behind another by more than about
 * two slices where affinity and weights allow, which makes shares fair over all pCPUs. After a move
 * the lead has to grow anew, a slice of it, so that moves are rare; queues that advance equally
 * fast move nobody; a pCPU where nobody waits does nothing of this.
 *
 * No waiting entity is overlooked by an idle pCPU: who queues one looks at the idle set afterwards;
 * who goes idle joins it and looks at the queues afterwards; all four accesses are sequentially
 * consistent, so at least one sees the other. Whoever kicks an idle pCPU takes it out of the set.
 */
#include "core/sched.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/idle_set.h"
#include "core/port.h"
#include "core/relaxed.h"
#include "core/sched_queue.h"
#include "core/spinlock.h"

#define TURN_PARTS 16u /* a turn lasts at least this part of a slice, whoever wakes up */

static struct run_queue queues[SCHED_MAX_CPUS];

static struct {
    struct idle_set idle; /* pCPUs that found nothing to run */
    _Alignas(128) unsigned cpus;
    uint64_t slice;
    uint64_t online[CPU_SET_MAX / 64]; /* atomic */
} sched;

/* Compilers, if they saw what array that is, would compute the address of each field anew. */
static inline struct run_queue *queue_of(unsigned cpu) {
    struct run_queue *q = queues;

    __asm__("" : "+r"(q));
    return q + cpu;
}

/* How far vtimes may lie apart between two entities: the lighter one moves in larger steps. */
static uint64_t slices_for(unsigned slices, uint32_t weight, uint32_t other) {
    return scaled(slices * sched.slice, weight < other ? weight : other);
}

struct run_queue *sched_queue_of(unsigned cpu) {
    return queue_of(cpu);
}

struct run_queue *sched_lock_queue_of(struct sched_entity *e) {
    for (;;) {
        struct run_queue *q = queue_of(__atomic_load_n(&e->cpu, __ATOMIC_ACQUIRE));

        spin_lock(&q->lock);
        if (__atomic_load_n(&e->cpu, __ATOMIC_ACQUIRE) == q->cpu) {
            return q;
        }
        spin_unlock(&q->lock);
    }
}

/* --- an entity comes into a queue; the queue's lock is held --- */

/* Makes the pCPU pick at `when` at the latest, and look at that at once. */
static void pick_by(struct run_queue *q, uint64_t when) {
    if (when < load_relaxed(&q->slice_end)) {
        __atomic_store_n(&q->slice_end, when, __ATOMIC_RELEASE);
        port_kick_cpu(q->cpu);
    }
}

/* If somebody is here it may not be too far ahead either: it would wait for ever. */
void sched_add_moved(struct run_queue *q, struct sched_entity *e, uint64_t credit) {
    uint64_t ahead = LAG_SLICES * e->slice_vtime;

    if (lowest(q) != NULL && before(q->floor + ahead, e->vtime)) {
        e->vtime = q->floor + ahead;
    }
    if (before(e->vtime, q->floor - credit)) {
        e->vtime = q->floor - credit;
    }
    list_insert(q, e);
    list_changed(q, q->waiting + 1);
}

/*
 * Tells the pCPU that `e` was queued. The one that runs there is displaced only by one who is
 * behind it by a quarter of a slice, or two that wake each other would switch at each turn; and
 * not before the least turn is over, or one that sleeps for microseconds at a time would leave it
 * hardly more than the costs of switching. Otherwise it keeps what is left of its slice, and a
 * quarter at least.
 */
static void announce(struct run_queue *q, const struct sched_entity *e, uint64_t now) {
    const struct sched_entity *cur = q->cur;

    if (cur == NULL) {
        idle_claim(&sched.idle, q->cpu);
        if (q->waiting > 1) { /* it can take one of them only */
            store_relaxed(&q->offered, true);
        }
        pick_by(q, 0);
    } else if (before(e->vtime + e->slice_vtime / 4, cur->vtime)) {
        uint64_t least = q->turn + sched.slice / TURN_PARTS;

        pick_by(q, now < least ? least : 0);
    } else if (load_relaxed(&q->slice_end) == UINT64_MAX) {
        uint64_t least = now + sched.slice / 4;

        pick_by(q, q->turn + sched.slice > least ? q->turn + sched.slice : least);
    }
}

/* Makes an idle pCPU that may run the waiting `e` look for it. */
RARE static void offer(const struct sched_entity *e) {
    if (!__atomic_load_n(&e->on_cpu, __ATOMIC_SEQ_CST)) {
        unsigned cpu = idle_claim_any(&sched.idle, &e->allowed);

        if (cpu != IDLE_NONE) {
            __atomic_store_n(&queue_of(cpu)->offered, true, __ATOMIC_RELEASE);
            __atomic_store_n(&queue_of(cpu)->slice_end, 0, __ATOMIC_RELEASE);
            port_kick_cpu(cpu);
        }
    }
}

/* The same for all in a queue, whose lock is taken here if there is anything to do. */
static void offer_queue(struct run_queue *q) {
    if (__atomic_load_n(&q->waiting, __ATOMIC_SEQ_CST) != 0 && idle_any(&sched.idle)) {
        spin_lock(&q->lock);
        for (const struct sched_entity *e = q->head; e != NULL && idle_any(&sched.idle);
             e = e->next) {
            offer(e);
        }
        spin_unlock(&q->lock);
    }
}

/*
 * The same for all queues. Only after an idle pCPU found something to run: it may have been kicked
 * for something else, which waits on while others are idle.
 */
RARE static void offer_all(void) {
    for (unsigned cpu = 0; cpu < sched.cpus; cpu++) {
        offer_queue(queue_of(cpu));
    }
}

/* --- between pCPUs --- */

/* Moves an entity that has `to` alone up to `vtime`, if it is behind. Another lock is held. */
static void move_up_lone(struct run_queue *to, uint64_t vtime, uint64_t now) {
    if (spin_trylock(&to->lock)) {
        if (to->cur != NULL && to->head == NULL) {
            refresh(to, now);
            if (before(to->cur->vtime, vtime)) {
                to->cur->vtime = vtime;
                raise_floor(to, vtime);
            }
            publish(to, to->cur);
        }
        spin_unlock(&to->lock);
    }
}

/*
 * The pCPU where everybody is further ahead than on the others, out of those where `e` may run;
 * NULL if none. Moves up the lone ones that are too far behind on the way.
 */
static struct run_queue *furthest_ahead(const struct run_queue *q, const struct sched_entity *e,
                                        uint64_t now) {
    struct run_queue *best = NULL;
    uint64_t best_low = 0;

    for (unsigned cpu = 0; cpu < sched.cpus; cpu++) {
        struct run_queue *other = queue_of(cpu);
        uint32_t weight;
        uint64_t low;

        if (other == q || !cpu_set_has(&e->allowed, cpu)) {
            continue;
        }
        low = peek_low(other, now, &weight);
        if (weight == 0) {
            continue; /* idle, and knows that somebody waits here */
        }
        if (load_relaxed(&other->waiting) == 0) {
            uint64_t least = e->vtime - slices_for(LAG_SLICES, e->weight, weight);

            if (before(low, least)) {
                move_up_lone(other, least, now);
                continue;
            }
        }
        if (best == NULL || before(best_low, low)) {
            best = other;
            best_low = low;
        }
    }
    return best;
}

/*
 * Sends `e`, the first in q, to another pCPU if everybody there is ahead of it by more than a
 * slice, and not behind `second`, who runs here instead. Whether it went.
 */
RARE static bool send_away(struct run_queue *q, struct sched_entity *e,
                           const struct sched_entity *second, uint64_t now) {
    struct run_queue *to = furthest_ahead(q, e, now);
    bool sent = false;

    if (to == NULL || __atomic_load_n(&e->on_cpu, __ATOMIC_ACQUIRE) || !spin_trylock(&to->lock)) {
        return false;
    }
    if (to->cur != NULL) {
        uint32_t weight = to->cur->weight;
        uint64_t low;

        refresh(to, now);
        low = lowest(to)->vtime;
        if (before(e->vtime + slices_for(1, e->weight, weight), low) &&
            !before(low, second->vtime)) {
            list_hand_over(q, e, to->cpu);
            sched_add_moved(to, e, slices_for(LAG_SLICES, e->weight, weight));
            announce(to, e, now);
            sent = true;
        }
    }
    spin_unlock(&to->lock);
    return sent;
}

/* Takes one that may run on `cpu` out of another queue, the next neighbour's first; or NULL. */
static struct sched_entity *steal(unsigned cpu) {
    for (unsigned step = 1; step < sched.cpus; step++) {
        unsigned victim = cpu + step < sched.cpus ? cpu + step : cpu + step - sched.cpus;
        struct run_queue *q = queue_of(victim);
        struct sched_entity *e;

        if (__atomic_load_n(&q->waiting, __ATOMIC_SEQ_CST) == 0) {
            continue;
        }
        spin_lock(&q->lock);
        for (e = q->head; e != NULL; e = e->next) {
            if (cpu_set_has(&e->allowed, cpu) && !__atomic_load_n(&e->on_cpu, __ATOMIC_SEQ_CST)) {
                list_hand_over(q, e, cpu);
                break;
            }
        }
        spin_unlock(&q->lock);
        if (e != NULL) {
            return e;
        }
    }
    return NULL;
}

/* --- picking; the queue's lock is held --- */

/*
 * Who runs next: the first in the queue or `stay`, who runs here now and could go on
 * (NULL if nobody does). With `yield` it is somebody else than `stay`, if fairness allows.
 */
static struct sched_entity *choose(struct run_queue *q, struct sched_entity *stay, bool yield,
                                   uint64_t now) {
    struct sched_entity *head = q->head;
    struct sched_entity *second;
    bool stay_first;

    if (head == NULL) {
        if (stay != NULL) {
            raise_floor(q, stay->vtime);
        }
        return stay;
    }
    stay_first = stay != NULL && before(stay->vtime, head->vtime);
    raise_floor(q, stay_first ? stay->vtime : head->vtime);
    second = stay_first ? head : head->next;
    if (!stay_first && stay != NULL && (second == NULL || before(stay->vtime, second->vtime))) {
        second = stay;
    }
    if (second != NULL && now >= q->balance_at) {
        q->balance_at = now + sched.slice;
        if (send_away(q, head, second, now)) {
            return second != head ? second : stay;
        }
    }
    if (yield) {
        struct sched_entity *to = sched_yield_target(q, stay);

        return to != NULL ? to : stay;
    }
    return stay_first ? stay : head;
}

/* `next`, who is not in the list, runs on q from now on. */
static void start(struct run_queue *q, struct sched_entity *next, uint64_t now) {
    if (next->state != RUN_RUNNING) { /* NOLINT(*.NullDereference): a stolen one is the head */
        begin_running(q, next, now);
    }
    store_relaxed(&next->wake_pending, false);
    if (!load_relaxed(&next->on_cpu)) {
        if (next->last_cpu != q->cpu) {
            next->migrations += next->switches != 0;
            next->last_cpu = q->cpu;
        }
        next->switches++;
        store_relaxed(&next->on_cpu, true);
    }
    q->cur = next;
    q->turn = now;
    store_relaxed(&q->slice_end, q->waiting != 0 ? now + sched.slice : UINT64_MAX);
    publish(q, next);
}

/*
 * The queue is empty: gives its lock back and joins the idle set; if another queue has something,
 * takes that into this queue and returns true with the lock held again.
 */
RARE static bool look_elsewhere(struct run_queue *q) {
    struct sched_entity *e;

    q->cur = NULL;
    publish(q, NULL);
    store_relaxed(&q->slice_end, UINT64_MAX);
    store_relaxed(&q->offered, false);
    idle_add(&sched.idle, q->cpu);
    spin_unlock(&q->lock);

    e = steal(q->cpu);
    if (e == NULL) {
        return false;
    }
    idle_claim(&sched.idle, q->cpu);
    spin_lock(&q->lock);
    sched_add_moved(q, e, LAG_SLICES * e->slice_vtime);
    raise_floor(q, q->head->vtime); /* not always e: somebody may have come in meanwhile */
    store_relaxed(&q->offered, true);
    return true;
}

struct sched_entity *sched_pick(unsigned cpu, struct sched_entity *prev,
                                enum run_state prev_state) {
    struct run_queue *q = queue_of(cpu);
    struct sched_entity *stay = NULL;
    struct sched_entity *next;
    bool yield = false;
    uint64_t now;

    spin_lock(&q->lock);
    now = port_clock();
    if (prev != NULL) {
        charge(prev, now);
        if (prev_state == RUN_RUNNABLE) {
            yield = now < load_relaxed(&q->slice_end);
            stay = prev;
        } else if (load_relaxed(&prev->wakes) != 0 && called_off(prev, prev_state)) {
            stay = prev;
        } else {
            enter_state(q, prev, prev_state, false);
        }
    }
    next = choose(q, stay, yield, now);
    if (next == NULL) {
        if (!look_elsewhere(q)) {
            return NULL;
        }
        next = q->head;
        now = port_clock();
    }
    if (next != stay) {
        if (next == q->head) {
            list_remove_head(q);
        } else {
            list_remove(q, next);
        }
        if (stay != NULL) {
            enter_state(q, stay, RUN_RUNNABLE, yield);
            list_insert(q, stay);
            list_changed(q, q->waiting);
        } else {
            __atomic_store_n(&q->waiting, q->waiting - 1, __ATOMIC_SEQ_CST);
        }
    }
    start(q, next, now);
    spin_unlock(&q->lock);
    if (load_relaxed(&q->offered)) {
        store_relaxed(&q->offered, false);
        offer_all();
    }
    return next;
}

void sched_released(struct sched_entity *prev) {
    struct run_queue *q = queue_of(load_relaxed(&prev->cpu));

    __atomic_store_n(&prev->on_cpu, false, __ATOMIC_SEQ_CST);
    offer_queue(q);
}

/* --- waking --- */

/* Where an entity that has no pCPU to go back to begins: where it may run and fewest are. */
RARE static unsigned find_home(const struct sched_entity *e) {
    unsigned best = load_relaxed(&e->cpu);
    uint32_t best_load = UINT32_MAX;

    for (unsigned cpu = 0; cpu < sched.cpus; cpu++) {
        uint64_t online = __atomic_load_n(&sched.online[cpu / 64], __ATOMIC_ACQUIRE);

        if (cpu_set_has(&e->allowed, cpu) && (online >> (cpu % 64) & 1u) != 0) {
            uint32_t load = load_relaxed(&queue_of(cpu)->waiting) +
                            (load_relaxed(&queue_of(cpu)->seen_weight) != 0);

            if (load < best_load) {
                best_load = load;
                best = cpu;
            }
        }
    }
    return best;
}

/* The pCPU that a woken entity goes to. One that was idle is claimed. The lock of q is held. */
static unsigned choose_cpu(const struct run_queue *q, const struct sched_entity *e) {
    unsigned cpu = q->cpu;

    if (__atomic_load_n(&e->on_cpu, __ATOMIC_SEQ_CST)) {
        return cpu; /* its registers are still there: nobody else could run it */
    }
    if (idle_any_hint(&sched.idle)) {
        unsigned idle =
            idle_claim(&sched.idle, cpu) ? cpu : idle_claim_any(&sched.idle, &e->allowed);

        if (idle != IDLE_NONE) {
            return idle;
        }
    }
    return e->switches != 0 ? cpu : find_home(e);
}

__attribute__((flatten)) void sched_wake(struct sched_entity *e) {
    struct run_queue *q = sched_lock_queue_of(e);
    uint64_t now = port_clock();
    uint64_t credit = e->slice_vtime; /* the most that a sleep may save up */
    unsigned cpu;

    if (e->state == RUN_RUNNING || e->state == RUN_RUNNABLE) {
        if (e->state == RUN_RUNNING) {
            __atomic_store_n(&e->wake_pending, true, __ATOMIC_RELEASE);
        }
        spin_unlock(&q->lock);
        return;
    }
    cpu = choose_cpu(q, e);
    set_state(q, e, RUN_RUNNABLE, now);
    refresh(q, now);
    if (cpu != q->cpu) { /* from here on it is RUNNABLE: nobody else touches it */
        if (before(e->vtime, q->floor - credit)) {
            e->vtime = q->floor - credit;
        }
        __atomic_store_n(&e->cpu, (uint16_t)cpu, __ATOMIC_RELEASE);
        spin_unlock(&q->lock);
        q = queue_of(cpu);
        spin_lock(&q->lock);
        now = port_clock();
        refresh(q, now);
    }
    if (e->switches == 0) {
        e->vtime = q->floor; /* it begins in the middle of the others */
    }
    sched_add_moved(q, e, credit);
    announce(q, e, now);
    if (q->cur != NULL && idle_any(&sched.idle)) {
        offer(e);
    }
    spin_unlock(&q->lock);
}

void sched_kick(struct sched_entity *e) {
    struct run_queue *q = sched_lock_queue_of(e);
    bool blocked = e->state == RUN_BLOCKED;

    if (!blocked) {
        e->kicked = true;
    }
    spin_unlock(&q->lock);
    if (blocked) {
        sched_wake(e); /* if somebody did meanwhile, its wait is over all the same */
    }
}

void sched_block_prepare(struct sched_entity *e) {
    /* Acquire: if this takes away a wake, then what led to that wake is visible after it. */
    if (load_relaxed(&e->wake_pending)) { /* an exchange of false for false would order nothing */
        (void)__atomic_exchange_n(&e->wake_pending, false, __ATOMIC_ACQUIRE);
    }
}

/* --- the rest --- */

uint64_t sched_slice_end(unsigned cpu) {
    return __atomic_load_n(&queue_of(cpu)->slice_end, __ATOMIC_ACQUIRE);
}

bool sched_need_pick(unsigned cpu) {
    uint64_t end = sched_slice_end(cpu);

    return end != UINT64_MAX && (end == 0 || port_clock() >= end);
}

void sched_set_weight(struct sched_entity *e, uint32_t weight) {
    struct run_queue *q = sched_lock_queue_of(e);

    refresh(q, port_clock()); /* what it ran so far counts by the old one */
    e->weight = weight;
    e->vtime_rest = 0;
    e->slice_vtime = scaled(sched.slice, weight);
    publish(q, q->cur);
    spin_unlock(&q->lock);
}

void sched_init(unsigned cpus, uint64_t slice) {
    sched.cpus = cpus;
    sched.slice = slice;
    for (unsigned word = 0; word < CPU_SET_MAX / 64; word++) {
        sched.idle.bits[word] = 0;
        sched.online[word] = 0;
    }
    for (unsigned cpu = 0; cpu < cpus; cpu++) {
        struct run_queue *q = queue_of(cpu);
        *q = (struct run_queue){.cpu = (uint16_t)cpu, .slice_end = UINT64_MAX};
        publish(q, q->cur);
    }
}

void sched_cpu_online(unsigned cpu) {
    __atomic_fetch_or(&sched.online[cpu / 64], 1ull << (cpu % 64), __ATOMIC_ACQ_REL);
}

void sched_entity_init(struct sched_entity *e, uint32_t weight, struct cpu_set allowed) {
    unsigned cpu = 0;

    while (cpu + 1 < sched.cpus && !cpu_set_has(&allowed, cpu)) {
        cpu++;
    }
    *e = (struct sched_entity){.weight = weight, .allowed = allowed, .cpu = (uint16_t)cpu};
    e->state = RUN_OFF;
    e->slice_vtime = scaled(sched.slice, weight);
    e->since = port_clock();
    e->group = e->sibling = e;
    e->wait.turn = SPIN_NO_TURN;
}

void sched_entity_join(struct sched_entity *e, struct sched_entity *sibling) {
    e->group = sibling->group;
    e->sibling = sibling->sibling;
    sibling->sibling = e;
}
