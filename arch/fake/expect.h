/* SPDX-License-Identifier: GPL-2.0-only */
/* What tests that run machines share; cmocka. */
#ifndef FAKE_EXPECT_H
#define FAKE_EXPECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "arch/fake/fake.h"

/* Runs the machine and fails the test, with the seed, if anything went wrong in it. */
static inline void expect_run(const struct fake_setup *s, enum fake_end how) {
    static const char *const names[] = {"off", "time is up", "stuck", "panic"};
    enum fake_end end = fake_run(s);

    if (fake_faults() != 0 || end != how) {
        fail_msg("seed %lu, noise %u, %u CPUs: ended with '%s' after %lu ticks, expected '%s'; %u "
                 "faults; "
                 "first: %s",
                 s->seed, s->noise, s->cpus, names[end], guest_clock() - fake_started(), names[how],
                 fake_faults(), fake_first_fault());
    }
}

static inline uint64_t elapsed(void) {
    return guest_clock() - fake_started();
}

/* Ticks that the vCPU has been in a state up to now. */
static inline uint64_t time_in(const struct vcpu *v, enum run_state state) {
    const struct sched_entity *e = &v->sched;

    return e->times[state] + (e->state == state ? guest_clock() - e->since : 0);
}

/* With FAKE_ONLY in the environment just that test of the program runs: for mutations.sh. */
static inline void choose_test(void) {
    const char *only = getenv("FAKE_ONLY");

    if (only != NULL) {
        cmocka_set_test_filter(only);
    }
}

static inline int free_machine(void **state) {
    (void)state;
    fake_free();
    return 0;
}

/* A guest that never leaves its CPU, and one that does nothing at all. */
static inline void guest_spins(struct vcpu *v) {
    v->arch.masked = true;
    guest_run(v, UINT64_MAX);
}

static inline void guest_idles(struct vcpu *v) {
    for (;;) {
        guest_wfi(v);
    }
}

#endif
