/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Called by entry.S, on the vCPU's pCPU, interrupts masked; `now` is when the guest was left, in
 * ticks. Each returns the vCPU to enter.
 */
#ifndef ARM64_TRAP_H
#define ARM64_TRAP_H

#include <stdint.h>

struct vcpu;

struct vcpu *trap_sync(struct vcpu *v, uint64_t now);
struct vcpu *trap_irq(struct vcpu *v, uint64_t now);
struct vcpu *trap_serror(struct vcpu *v, uint64_t now);

/* The same while a trace is taken: with a record of each exit, and of each entry (traced.c). */
struct vcpu *traced_sync(struct vcpu *v, uint64_t now);
struct vcpu *traced_irq(struct vcpu *v, uint64_t now);
struct vcpu *traced_serror(struct vcpu *v, uint64_t now);

/* Has this pCPU's exits traced or not, as trace_active() says. On each pCPU, interrupts masked. */
void traced_apply(void);

/* An exception of the hypervisor's own: a bug of ours. */
_Noreturn void trap_own_fault(uint64_t kind, uint64_t esr, uint64_t elr, uint64_t far, uint64_t sp,
                              uint64_t lr);

#endif
