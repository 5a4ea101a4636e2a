/* SPDX-License-Identifier: GPL-2.0-only */
/* What the measuring guests share: clock, samples, an interrupt handler that notes the time. */
#ifndef BENCH_H
#define BENCH_H

#include "bench_asm.h"
#include "guest.h"

/* One for each CPU, in TPIDR_EL0: what the last interrupt left (handler.S). */
struct bench_cpu {
    uint64_t entry; /* counter at the handler's first instruction but one */
    uint64_t ack;   /* and once it was acknowledged */
    uint64_t intid;
    uint64_t count;
} __attribute__((aligned(64)));

extern struct bench_cpu bench_cpus[MAX_CPUS];
extern char bench_vectors[];

/* Inline: a call would be measured too. */
static inline uint64_t now(void) {
    isb();
    return read_sysreg(cntvct_el0);
}

#define SAMPLES 256u

struct samples {
    const char *name;
    unsigned n;
    uint64_t value[SAMPLES];
};

/* Prints `bench: NAME MEDIAN MIN MAX COUNT` (ns), each less `own`, the measurement's own cost. */
void bench_report(struct samples *s, uint64_t own);
/* What now() - now() itself takes. */
uint64_t bench_own(void);
/* This CPU's interrupt controller, and the vectors of handler.S in place of the library's. */
void bench_cpu_init(void);

#endif
