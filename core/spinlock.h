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

struct spinlock {
    uint32_t next;  /* the ticket that the next arrival draws */
    uint32_t owner; /* the ticket that may go in */
};

#define SPINLOCK_INIT                                                                              \
    { 0, 0 }

/* Make `lock` free. Before any other CPU can see it. Never fails. */
static inline void spin_init(struct spinlock *lock) {
    lock->next = 0;
    lock->owner = 0;
}

/* Take `lock`, waiting as long as needed; any CPU, not twice by the same one. Acquire. */
static inline void spin_lock(struct spinlock *lock) {
    uint32_t ticket = __atomic_fetch_add(&lock->next, 1u, __ATOMIC_RELAXED);

    while (__atomic_load_n(&lock->owner, __ATOMIC_ACQUIRE) != ticket) {
        port_relax();
    }
}

/* Take `lock` if that needs no wait: true when it is now ours. Acquire on success. */
static inline bool spin_trylock(struct spinlock *lock) {
    uint32_t owner = __atomic_load_n(&lock->owner, __ATOMIC_ACQUIRE);
    uint32_t ticket = owner;

    return __atomic_compare_exchange_n(&lock->next, &ticket, owner + 1u, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Give `lock` back; only by its holder. Release. */
static inline void spin_unlock(struct spinlock *lock) {
    uint32_t owner = __atomic_load_n(&lock->owner, __ATOMIC_RELAXED);

    __atomic_store_n(&lock->owner, owner + 1u, __ATOMIC_RELEASE);
}

/* Does anybody hold `lock`? For assertions only: the answer may be old when it arrives. */
static inline bool spin_is_locked(const struct spinlock *lock) {
    return __atomic_load_n(&lock->owner, __ATOMIC_RELAXED) !=
           __atomic_load_n(&lock->next, __ATOMIC_RELAXED);
}

#endif /* CORE_SPINLOCK_H */
