/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What core/ needs from whoever hosts it: this is the whole list. CI links core/ alone and compares
 * its undefined symbols with this file (tests/unit/check-core-symbols).
 */
#ifndef CORE_PORT_H
#define CORE_PORT_H

#include <stdint.h>

/*
 * The clock that all of core/ counts in: ticks of a counter that is the same on every pCPU and
 * never goes back. Any context.
 */
uint64_t port_clock(void);

/*
 * Makes pCPU `cpu` look at its scheduler soon: leave its guest or its idle wait. Any context, any
 * locks held; may be called for the calling pCPU itself.
 */
void port_kick_cpu(unsigned cpu);

/* The number of the calling pCPU, from 0. Any context, interrupts masked. */
unsigned port_this_cpu(void);

/* A hint that the caller spins for another pCPU. Any context. */
void port_relax(void);

#endif
