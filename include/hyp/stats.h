/* SPDX-License-Identifier: GPL-2.0-only */
/* What is counted, in words. */
#ifndef HYP_STATS_H
#define HYP_STATS_H

#include <stdint.h>

struct vm;

/* Ticks of the clock in nanoseconds, exact for any clock up to 1 GHz and 500 years. */
uint64_t stats_ns(uint64_t ticks);

/* Nanoseconds in ticks, rounded up. */
uint64_t stats_ticks(uint64_t ns);

/* Prints one line for each vCPU of the VM: run-state times in ns, exits by reason. Any pCPU. */
void stats_print(struct vm *vm);

#endif
