/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/trace.c */
/* A trace's ring, one thread: order, wrap, exact loss, half written records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/port.h"
#include "core/trace.h"

#define SIZE 16u

static struct trace_record memory[SIZE], got[4 * SIZE];
static struct trace_ring rings[2];
static uint64_t clock_now;
static unsigned here;

uint64_t port_clock(void) {
    return clock_now;
}

unsigned port_this_cpu(void) {
    return here;
}

static int fresh(void **state) {
    (void)state;
    memset(memory, 0xee, sizeof(memory));
    trace_ring_init(&rings[0], memory, SIZE);
    return 0;
}

static void put(uint64_t from, uint64_t below) {
    for (uint64_t i = from; i < below; i++) {
        trace_put(&rings[0], 1000 + i, ~i);
    }
}

/* All up to `end`, in steps of `max`; record i must be the one that put() made. */
static size_t read_all(struct trace_reader *reader, uint64_t end, size_t max) {
    size_t sum = 0, n;

    do {
        n = trace_get(&rings[0], reader, end, got, max);
        for (size_t i = 0; i < n; i++) {
            uint64_t number = reader->next - n + i;
            assert_int_equal(got[i].time, 1000 + number);
            assert_int_equal(got[i].what, ~number);
        }
        sum += n;
    } while (n != 0);
    return sum;
}

static void every_fill_level(void **state) {
    (void)state;
    for (uint64_t n = 0; n < 5 * SIZE; n++) {
        for (size_t max = 1; max < SIZE + 2; max += 5) {
            struct trace_reader reader = {0, 0};

            fresh(NULL);
            put(0, n);
            assert_int_equal(trace_ring_end(&rings[0]), n);
            assert_int_equal(read_all(&reader, UINT64_MAX, max), n < SIZE ? n : SIZE);
            assert_int_equal(reader.lost, n < SIZE ? 0 : n - SIZE);
            assert_int_equal(reader.next, n);
        }
    }
}

/* A reader that comes back: what was overwritten in between is counted, once. */
static void late_reader(void **state) {
    struct trace_reader reader = {0, 0};
    uint64_t written = 0, seen = 0;

    (void)state;
    for (unsigned round = 1; round < 50; round++) {
        put(written, written + round);
        written += round;
        seen += read_all(&reader, UINT64_MAX, 3);
        assert_int_equal(seen + reader.lost, written);
        assert_int_equal(reader.lost != 0, round > SIZE);
    }
}

/* An end that was taken earlier is kept, also when all before it is gone. */
static void up_to_an_end(void **state) {
    struct trace_reader reader = {0, 0};

    (void)state;
    put(0, 10);
    assert_int_equal(read_all(&reader, 7, 100), 7);
    assert_int_equal(reader.next, 7);
    put(10, 60);
    assert_int_equal(read_all(&reader, 10, 100), 0);
    assert_int_equal(reader.next, 10);
    assert_int_equal(reader.lost, 3);
}

/* The writer has begun with a record and not ended: its place is the oldest one's, which is lost.
 */
static void half_written(void **state) {
    struct trace_reader reader = {0, 0};

    (void)state;
    put(0, SIZE);
    rings[0].begun++;
    memory[0].time = 1;
    assert_int_equal(trace_get(&rings[0], &reader, UINT64_MAX, got, 100), SIZE - 1);
    assert_int_equal(got[0].time, 1001);
    assert_int_equal(reader.lost, 1);
    assert_int_equal(reader.next, SIZE);
}

static void events(void **state) {
    static struct trace_record second[SIZE];
    struct trace_reader reader = {0, 0};

    (void)state;
    trace_ring_init(&rings[1], second, SIZE);
    trace_use(rings);
    trace(TRACE_TIMER, TRACE_WHO(1, 2), 3); /* off */
    assert_int_equal(trace_ring_end(&rings[0]), 0);
    trace_switch(true);
    assert_true(trace_active());
    clock_now = 77;
    here = 1;
    trace(TRACE_INJECT, TRACE_WHO(0xffff, 255), UINT32_MAX);
    trace_at(99, TRACE_VM, TRACE_WHO(0, 1), 0);
    trace_switch(false);
    trace(TRACE_TIMER, 0, 0);
    assert_int_equal(trace_ring_end(&rings[0]), 0);
    assert_int_equal(trace_get(&rings[1], &reader, UINT64_MAX, got, 100), 2);
    assert_int_equal(got[0].time, 77);
    assert_int_equal(got[0].what, (uint64_t)TRACE_INJECT << 56 | 0xffffffffffffffull);
    assert_int_equal(got[1].time, 99);
    assert_int_equal(got[1].what, (uint64_t)TRACE_VM << 56 | 1ull << 32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_fill_level, fresh),
        cmocka_unit_test_setup(late_reader, fresh),
        cmocka_unit_test_setup(up_to_an_end, fresh),
        cmocka_unit_test_setup(half_written, fresh),
        cmocka_unit_test_setup(events, fresh),
    };

    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
