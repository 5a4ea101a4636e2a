/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine's own GICv3 (Arm IHI 0069): distributor, redistributors, CPU interface. */
#ifndef ARM64_GIC_H
#define ARM64_GIC_H

#include <stdbool.h>
#include <stdint.h>

struct pcpu;

#define GIC_SGI_KICK        0u
#define GIC_SGI_TRACE       1u
#define GIC_PPI_MAINTENANCE 25u
#define GIC_PPI_HYP_TIMER   26u
#define GIC_PPI_VTIMER      27u
#define GIC_SPURIOUS        1020u /* 1020..1023: nothing to acknowledge */

/* Maps and starts the distributor; all SPIs off. Boot pCPU. */
void gic_init(void);

/* This pCPU's redistributor and CPU interface; our PPIs on. Panics when it finds no redistributor.
 */
void gic_cpu_init(struct pcpu *p);

/* Lets SPI `intid` come to the boot pCPU. */
void gic_enable_spi(unsigned intid);

/* Acknowledges the highest pending interrupt and drops its priority (it stays active): its INTID.
 */
unsigned gic_acknowledge(void);

/* Deactivates it: it may come again. */
void gic_deactivate(unsigned intid);

/* Sets or clears the active state of one of this pCPU's PPIs. */
void gic_set_ppi_active(unsigned intid, bool active);

/* struct arch_pcpu's `kick` for this affinity. */
uint64_t gic_kick_value(uint64_t mpidr);

/* Sends SGI_KICK to another pCPU. */
void gic_kick(const struct pcpu *p);

/* Sends another SGI of ours to another pCPU. */
void gic_send_sgi(const struct pcpu *p, unsigned intid);

#endif
