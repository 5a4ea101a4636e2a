/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic timer: the hypervisor's own (CNTHP, PPI 26) and the guests' virtual one (CNTV, PPI
 * 27). */
#ifndef ARM64_TIMER_H
#define ARM64_TIMER_H

#include <stdbool.h>

struct vcpu;

/* Whether the loaded guest's virtual timer asks for an interrupt now: enabled, not masked, expired.
 */
bool timer_virtual_line(void);

/*
 * Whether that of `v`, which is loaded, will when it is entered, because the entry is bound to a
 * deadline (core/advance.h).
 */
__attribute__((noinline, cold)) bool timer_virtual_line_at_entry(const struct vcpu *v);

/* The hypervisor's timer fired: turns it off until it is armed anew. */
void timer_acknowledge(void);

/* All of this pCPU's timers off. */
void timer_cpu_init(void);

/* The virtual timer fired: pending for the vCPU that runs here, or dropped when none does. */
void timer_virtual_interrupt(struct vcpu *v);

/*
 * At switch-out and switch-in, on the vCPU's pCPU: the virtual timer's registers and the active
 * state of PPI 27. Save after the list registers were folded, load before they are filled.
 */
void timer_save(struct vcpu *v);
void timer_load(struct vcpu *v);

#endif
