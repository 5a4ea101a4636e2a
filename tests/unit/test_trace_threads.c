/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/trace.c */
/*
 * A ring that is read while it is written, by two threads: every record that the reader gets is
 * whole and the right one, and those it got and those it lost are all. Records are the same on both
 * sides: both words follow from the number.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/port.h"
#include "core/trace.h"

#define SIZE    64u
#define RECORDS 400000u

static struct trace_record memory[SIZE];
static struct trace_ring ring;
static uint32_t pause_every; /* how often the writer lets the reader come up */
static uint64_t read_up_to;  /* atomic */

uint64_t port_clock(void) {
    return 0;
}

unsigned port_this_cpu(void) {
    return 0;
}

static uint64_t mixed(uint64_t number) {
    return (number + 1) * 0x9e3779b97f4a7c15ull;
}

static void *write_all(void *unused) {
    for (uint64_t i = 0; i < RECORDS; i++) {
        trace_put(&ring, i, mixed(i));
        if (pause_every != 0 && i % pause_every == 0) {
            while (__atomic_load_n(&read_up_to, __ATOMIC_ACQUIRE) < i) {
                sched_yield();
            }
        }
    }
    return unused;
}

static uint64_t run(uint32_t every, uint64_t *lost) {
    struct trace_record got[16];
    struct trace_reader reader = {0, 0};
    uint64_t seen = 0, wrong = 0;
    pthread_t writer;

    pause_every = every;
    read_up_to = 0;
    trace_ring_init(&ring, memory, SIZE);
    assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
    while (reader.next < RECORDS) {
        size_t n = trace_get(&ring, &reader, UINT64_MAX, got, 16);

        for (size_t i = 0; i < n; i++) {
            uint64_t number = reader.next - n + i;
            wrong += got[i].time != number || got[i].what != mixed(number);
        }
        seen += n;
        __atomic_store_n(&read_up_to, reader.next, __ATOMIC_RELEASE);
    }
    assert_int_equal(pthread_join(writer, NULL), 0);
    if (wrong != 0 || seen + reader.lost != RECORDS) {
        fail_msg("%lu of %lu wrong, %lu lost", wrong, seen, reader.lost);
    }
    *lost = reader.lost;
    return seen;
}

/* The writer runs away: much is lost, and much is overwritten while it is read. */
static void fast_writer(void **state) {
    uint64_t lost;

    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        run(0, &lost);
    }
}

/* The reader comes up once in a while: a good part is read, also around the wrap. */
static void patient_writer(void **state) {
    uint64_t lost;

    (void)state;
    assert_true(run(48, &lost) > RECORDS / 2);
    assert_int_equal(lost, 0);
    assert_true(run(2 * SIZE, &lost) >= RECORDS / (2 * SIZE));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_writer),
        cmocka_unit_test(patient_writer),
    };

    return cmocka_run_group_tests_name("trace_threads", tests, NULL, NULL);
}
