/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The pCPUs that found nothing to run. Private to core/sched.c, whose head says how who joins, and
 * who looks, miss each other never: all accesses but the hint are sequentially consistent. Any
 * pCPU.
 */
#ifndef CORE_IDLE_SET_H
#define CORE_IDLE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cpu_set.h"
#include "core/relaxed.h"

#define IDLE_NONE UINT32_MAX

struct idle_set {
    _Alignas(128) uint64_t bits[CPU_SET_MAX / 64]; /* atomic */
};

/* Whether somebody is in there. */
static inline bool idle_any(const struct idle_set *s) {
    return (__atomic_load_n(&s->bits[0], __ATOMIC_SEQ_CST) |
            __atomic_load_n(&s->bits[1], __ATOMIC_SEQ_CST)) != 0;
}

/* The same as a hint: it may be old. */
static inline bool idle_any_hint(const struct idle_set *s) {
    return (load_relaxed(&s->bits[0]) | load_relaxed(&s->bits[1])) != 0;
}

static inline void idle_add(struct idle_set *s, unsigned cpu) {
    __atomic_fetch_or(&s->bits[cpu / 64], 1ull << (cpu % 64), __ATOMIC_SEQ_CST);
}

/* Takes `cpu` out; whether it was in there. The caller must kick it if so. */
static inline bool idle_claim(struct idle_set *s, unsigned cpu) {
    uint64_t bit = 1ull << (cpu % 64);
    uint64_t *word = &s->bits[cpu / 64];

    return (__atomic_load_n(word, __ATOMIC_SEQ_CST) & bit) != 0 &&
           (__atomic_fetch_and(word, ~bit, __ATOMIC_SEQ_CST) & bit) != 0;
}

/* Claims the one with the lowest number out of `allowed`, or returns IDLE_NONE. */
static inline unsigned idle_claim_any(struct idle_set *s, const struct cpu_set *allowed) {
    for (unsigned word = 0; word < CPU_SET_MAX / 64; word++) {
        uint64_t bits;

        while ((bits = __atomic_load_n(&s->bits[word], __ATOMIC_SEQ_CST) & allowed->bits[word]) !=
               0) {
            unsigned cpu = word * 64 + (unsigned)__builtin_ctzll(bits);

            if (idle_claim(s, cpu)) {
                return cpu;
            }
        }
    }
    return IDLE_NONE;
}

#endif
