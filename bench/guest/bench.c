/* SPDX-License-Identifier: GPL-2.0-only */
#include "bench.h"

#define A(what) _Static_assert(what, #what)
A(offsetof(struct bench_cpu, entry) == BENCH_ENTRY);
A(offsetof(struct bench_cpu, ack) == BENCH_ACK);
A(offsetof(struct bench_cpu, intid) == BENCH_INTID);
A(offsetof(struct bench_cpu, count) == BENCH_COUNT);

struct bench_cpu bench_cpus[MAX_CPUS];

static void sort(uint64_t *v, unsigned n) {
    for (unsigned i = 1; i < n; i++) {
        uint64_t x = v[i];
        unsigned j = i;

        for (; j > 0 && v[j - 1] > x; j--) {
            v[j] = v[j - 1];
        }
        v[j] = x;
    }
}

void bench_report(struct samples *s, uint64_t own) {
    uint64_t hz = freq();

    if (hz != 1000000000) {
        die("the counter has %lu Hz, expected 1 GHz: ticks are taken for nanoseconds", hz);
    }
    if (s->n == 0) {
        die("%s: no samples", s->name);
    }
    sort(s->value, s->n);
    print("bench: %s %lu %lu %lu %u\n", s->name, s->value[s->n / 2] - own, s->value[0] - own,
          s->value[s->n - 1] - own, s->n);
}

uint64_t bench_own(void) {
    static struct samples s = {.name = "own", .n = 33};

    for (unsigned i = 0; i < s.n; i++) {
        uint64_t before = now();

        s.value[i] = now() - before;
    }
    sort(s.value, s.n);
    return s.value[s.n / 2];
}

void bench_cpu_init(void) {
    write_sysreg(tpidr_el0, (uintptr_t)&bench_cpus[this_cpu()->index]);
    gic_cpu_init();
    write_sysreg(vbar_el1, (uintptr_t)bench_vectors);
    isb();
}
