/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef CORE_SPINLOCK_H
#define CORE_SPINLOCK_H

/*
 * A ticket lock: first come, first served. It is held for short times, by code that can't be
 * preempted; a waiter calls port_relax() between two looks at the lock.
 *
 * A zeroed lock is a free lock, so that no static object needs an initialiser.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/port.h"
#include "core/relaxed.h"

struct spinlock {
    union {
        uint32_t tickets; /* both: drawing one tells at once whether it may go in */
        struct {
            uint16_t owner; /* the ticket that may go in */
            uint16_t next;  /* the ticket that the next arrival draws */
        };
    };
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "owner is the lower half of tickets");

#define SPINLOCK_INIT                                                                              \
    {                                                                                              \
        { 0 }                                                                                      \
    }

#define SPIN_NEXT (1u << 16)

static inline uint32_t spin_next(uint32_t tickets) {
    return tickets >> 16;
}

static inline uint32_t spin_owner(uint32_t tickets) {
    return tickets & 0xffffu;
}

/* Whether both halves are the same: compared with itself, turned by a half, is two instructions. */
static inline bool spin_free(uint32_t tickets) {
    return (tickets ^ (tickets << 16 | tickets >> 16)) == 0;
}

/* Make `lock` free. Before any other CPU can see it. Never fails. */
static inline void spin_init(struct spinlock *lock) {
    lock->tickets = 0;
}

/* Take `lock`, waiting as long as needed; any CPU, not twice by the same one. Acquire. */
static inline void spin_lock(struct spinlock *lock) {
    uint32_t seen = __atomic_fetch_add(&lock->tickets, SPIN_NEXT, __ATOMIC_ACQUIRE);

    if (__builtin_expect(!spin_free(seen), 0)) {
        uint32_t ticket = spin_next(seen);

        do {
            port_relax();
        } while (spin_owner(__atomic_load_n(&lock->tickets, __ATOMIC_ACQUIRE)) != ticket);
    }
}

/* Take `lock` if that needs no wait: true when it is now ours. Acquire on success. */
static inline bool spin_trylock(struct spinlock *lock) {
    uint32_t seen = load_relaxed(&lock->tickets);

    return spin_free(seen) &&
           __atomic_compare_exchange_n(&lock->tickets, &seen, seen + SPIN_NEXT, false,
                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Give `lock` back; only by its holder. Release. */
static inline void spin_unlock(struct spinlock *lock) {
    uint32_t seen = load_relaxed(&lock->tickets); /* only we change `owner` */

    __atomic_store_n(&lock->owner, (uint16_t)(seen + 1u), __ATOMIC_RELEASE);
}

/* Does anybody hold `lock`? For assertions only: the answer may be old when it arrives. */
static inline bool spin_is_locked(const struct spinlock *lock) {
    uint32_t seen = load_relaxed(&lock->tickets);

    return !spin_free(seen);
}

#endif /* CORE_SPINLOCK_H */
