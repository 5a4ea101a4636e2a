/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A set of pCPU numbers 0..127. Plain data: no locks, any context. */
#ifndef CORE_CPU_SET_H
#define CORE_CPU_SET_H

#include <stdbool.h>
#include <stdint.h>

#define CPU_SET_MAX 128u

struct cpu_set {
    uint64_t bits[CPU_SET_MAX / 64];
};

/* Every number up to CPU_SET_MAX - 1. */
static inline struct cpu_set cpu_set_all(void) {
    return (struct cpu_set){{UINT64_MAX, UINT64_MAX}};
}

/* No number. */
static inline struct cpu_set cpu_set_none(void) {
    return (struct cpu_set){{0, 0}};
}

/* Whether `cpu` is in the set; false for cpu >= CPU_SET_MAX. */
static inline bool cpu_set_has(const struct cpu_set *set, unsigned cpu) {
    return cpu < CPU_SET_MAX && (set->bits[cpu / 64] >> (cpu % 64) & 1u) != 0;
}

/* Adds `cpu`; a number >= CPU_SET_MAX is ignored. */
static inline void cpu_set_add(struct cpu_set *set, unsigned cpu) {
    if (cpu < CPU_SET_MAX) {
        set->bits[cpu / 64] |= 1ull << (cpu % 64);
    }
}

/* Whether there is no number below `limit` in the set. */
static inline bool cpu_set_empty_below(const struct cpu_set *set, unsigned limit) {
    for (unsigned cpu = 0; cpu < limit; cpu++) {
        if (cpu_set_has(set, cpu)) {
            return false;
        }
    }
    return true;
}

#endif
