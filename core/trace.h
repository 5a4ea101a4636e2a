/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Traces: a ring of fixed-size records for each pCPU.
 *
 * Only its own pCPU writes a ring, with interrupts masked, and never waits; the newest records push
 * out the oldest. Any one other pCPU may read it meanwhile: the reader gets whole records in order,
 * and the exact number of those that were overwritten before it came.
 *
 * While no trace is taken an event costs one load and one branch. No function here takes a lock.
 */
#ifndef CORE_TRACE_H
#define CORE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/trace.h"

struct trace_record {
    uint64_t time; /* ticks of port_clock() */
    uint64_t what; /* trace_what() */
};

/* What is in record->what: bits 63:56 event, 55:32 who (TRACE_WHO), 31:0 argument. */
static inline uint64_t trace_what(uint32_t event, uint32_t who, uint32_t arg) {
    return (uint64_t)event << 56 | (uint64_t)(who & 0xffffffu) << 32 | arg;
}

/* Counters of records since trace_ring_init(): they never wrap. A line of its own for each pCPU. */
struct trace_ring {
    _Alignas(64) uint64_t begun; /* atomic: the record below this one may be half written */
    uint64_t done;               /* atomic: all records below this one are whole, or overwritten */
    uint64_t mask;
    struct trace_record *records;
};

/* Where a reader is: set `next` to a value that trace_ring_end() gave, or 0, and `lost` to 0. */
struct trace_reader {
    uint64_t next; /* number of the record to read next */
    uint64_t lost; /* how many were overwritten before they could be read */
};

/* Gives a ring its memory: `count` records, a power of two. Before anybody writes. */
void trace_ring_init(struct trace_ring *r, struct trace_record *memory, uint64_t count);

/* Adds a record. On the ring's pCPU, interrupts masked. */
void trace_put(struct trace_ring *r, uint64_t time, uint64_t what);

/* The number of the record that will be written next. Any pCPU. */
uint64_t trace_ring_end(const struct trace_ring *r);

/*
 * Copies up to `max` records below number `end` from where the reader is, and moves it on; adds
 * what it came too late for to reader->lost. Those of one call follow each other without a gap: the
 * first is number reader->next less what is returned. 0: there are none. Any pCPU, one at a time
 * for a reader.
 */
size_t trace_get(const struct trace_ring *r, struct trace_reader *reader, uint64_t end,
                 struct trace_record *records, size_t max);

/* The rings, by pCPU, for trace_at(). Before tracing is switched on for the first time. */
void trace_use(struct trace_ring *rings);

/* Switches events on or off, for all pCPUs; another one may see that a little later. Any pCPU. */
void trace_switch(bool on);

/* Records an event, at a time that lies not before that of this pCPU's event before it. */
void trace_at(uint64_t time, enum trace_event event, uint32_t who, uint32_t arg);

/* The same, now. */
__attribute__((cold)) void trace_event_now(enum trace_event event, uint32_t who, uint32_t arg);

/*
 * What wants to know of changes: WATCH_TRACE while events are recorded, and WATCH_RECORD for each
 * record in guest memory (pvlock.h, steal.h) that is in use. One word, so that what changes a run
 * state asks for all of them at once. Hidden: or its address would be loaded first.
 */
#define WATCH_TRACE  1u
#define WATCH_RECORD 2u
extern uint32_t core_watch __attribute__((visibility("hidden")));

/* Volatile is all the atomicity that one aligned word needs here, and costs two instructions less
 * than an atomic load on arm64 (GCC does not fold its address). */
static inline uint32_t watch_word(void) {
    return *(const volatile uint32_t *)&core_watch;
}

/* A record begins to be used, or no longer is: see WATCH_RECORD. Before its user can be seen; after
 * the last use. Any pCPU. */
static inline void watch_record(bool used) {
    __atomic_fetch_add(&core_watch, used ? WATCH_RECORD : -WATCH_RECORD, __ATOMIC_RELAXED);
}

/* Whether events are recorded. */
static inline bool trace_active(void) {
    return __builtin_expect((watch_word() & WATCH_TRACE) != 0, false);
}

/* Records an event if a trace is being taken. Any pCPU, interrupts masked. */
static inline void trace(enum trace_event event, uint32_t who, uint32_t arg) {
    if (trace_active()) {
        trace_event_now(event, who, arg);
    }
}

#endif
