/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a reader knows that a record is whole. The writer moves `begun` past a record before it
 * touches its place, and `done` after. Each word is stored with release and loaded with acquire: a
 * reader that has seen any part of a newer record in a place also sees, afterwards, that `begun`
 * is more than a ring ahead of the one that it wanted.
 */
#include "core/trace.h"

#include "core/port.h"

uint32_t core_watch;
static struct trace_ring *trace_rings;

void trace_ring_init(struct trace_ring *r, struct trace_record *memory, uint64_t count) {
    *r = (struct trace_ring){.mask = count - 1, .records = memory};
}

void trace_put(struct trace_ring *r, uint64_t time, uint64_t what) {
    uint64_t number = __atomic_load_n(&r->done, __ATOMIC_RELAXED);
    struct trace_record *to = &r->records[number & r->mask];

    __atomic_store_n(&r->begun, number + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&to->time, time, __ATOMIC_RELEASE);
    __atomic_store_n(&to->what, what, __ATOMIC_RELEASE);
    __atomic_store_n(&r->done, number + 1, __ATOMIC_RELEASE);
}

uint64_t trace_ring_end(const struct trace_ring *r) {
    return __atomic_load_n(&r->done, __ATOMIC_ACQUIRE);
}

size_t trace_get(const struct trace_ring *r, struct trace_reader *reader, uint64_t end,
                 struct trace_record *records, size_t max) {
    uint64_t size = r->mask + 1, whole = trace_ring_end(r);
    size_t n = 0;

    if (end > whole) {
        end = whole;
    }
    while (reader->next < end && n < max) {
        const struct trace_record *from = &r->records[reader->next & r->mask];
        struct trace_record copy = {
            .time = __atomic_load_n(&from->time, __ATOMIC_ACQUIRE),
            .what = __atomic_load_n(&from->what, __ATOMIC_ACQUIRE),
        };
        uint64_t begun = __atomic_load_n(&r->begun, __ATOMIC_ACQUIRE);

        if (begun > size && reader->next < begun - size) { /* its place has been taken */
            uint64_t oldest = begun - size < end ? begun - size : end;
            if (n != 0) {
                break; /* what was read goes out first: it is in one piece */
            }
            reader->lost += oldest - reader->next;
            reader->next = oldest;
            continue;
        }
        records[n++] = copy;
        reader->next++;
    }
    return n;
}

void trace_use(struct trace_ring *rings) {
    trace_rings = rings;
}

void trace_switch(bool on) {
    if (on) {
        __atomic_fetch_or(&core_watch, WATCH_TRACE, __ATOMIC_RELEASE);
    } else {
        __atomic_fetch_and(&core_watch, ~WATCH_TRACE, __ATOMIC_RELEASE);
    }
}

void trace_at(uint64_t time, enum trace_event event, uint32_t who, uint32_t arg) {
    trace_put(&trace_rings[port_this_cpu()], time, trace_what(event, who, arg));
}

void trace_event_now(enum trace_event event, uint32_t who, uint32_t arg) {
    trace_at(port_clock(), event, who, arg);
}
