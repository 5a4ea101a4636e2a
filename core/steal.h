/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stolen time (abi/pvtime.h): the time in which a vCPU was runnable and not on a CPU. The scheduler
 * adds that up exactly; this writes it where the guest reads it, each time the vCPU comes onto a
 * CPU. It never goes back, also when the vCPU goes off and on or asks for its record again.
 *
 * Locks: as in pvlock.h.
 */
#ifndef CORE_STEAL_H
#define CORE_STEAL_H

#include <stddef.h>
#include <stdint.h>

#include "abi/pvtime.h"

/* One vCPU's. All 0: not offered. */
struct steal {
    struct pvtime_record *record; /* in use; NULL: the guest has not asked for it */
    struct pvtime_record *own;    /* its slot, or NULL: not offered */
    uint64_t ipa;                 /* of that slot */
    uint64_t hz;                  /* ticks in a second */
    uint64_t waited_before;       /* ticks of waiting that were before this life of its VM */
};

/* Ticks of a clock of `hz` in nanoseconds, rounded down; no overflow for 500 years up to 1 GHz. */
static inline uint64_t ticks_to_ns(uint64_t ticks, uint64_t hz) {
    return ticks / hz * 1000000000u + ticks % hz * 1000000000u / hz;
}

/* `waited`: ticks that the vCPU has been runnable in all, up to now; it runs. A record is in use.
 */
static inline void steal_update(const struct steal *s, uint64_t waited) {
    __atomic_store_n(&s->record->stolen_ns, ticks_to_ns(waited - s->waited_before, s->hz),
                     __ATOMIC_RELAXED);
}

/* Offers it, by the record `own`, which is at `ipa` for the guest. Before the VM runs. */
void steal_offer(struct steal *s, struct pvtime_record *own, uint64_t ipa, uint64_t hz);

/* PVTIME_ID_ST: the record is in use from now on; its IPA, or -1 if none is offered. */
int64_t steal_call(struct steal *s, uint64_t waited);

/* The VM ends: nobody uses the record. */
void steal_end(struct steal *s);

/* The VM begins a new life: what was stolen before is forgotten. The record is not in use. */
void steal_begin(struct steal *s, uint64_t waited);

#endif
