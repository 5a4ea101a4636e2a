/* SPDX-License-Identifier: GPL-2.0-only */
/* Between the files of arch/fake/. */
#ifndef FAKE_PRIVATE_H
#define FAKE_PRIVATE_H

#include "arch/fake/fake.h"
#include "arch/fake/fiber.h"

struct pcpu;

/* ---- engine.c ---- */

void engine_reset(const struct fake_setup *setup);
void engine_free(void);

/* Makes pCPU `p` begin in `main`. */
void engine_start_cpu(struct pcpu *p, void (*main)(void *p));

/* Runs the pCPUs until engine_end() or nothing is left to do. On the thread's own stack. */
enum fake_end engine_run(void);

/* Ends the run. On a pCPU's fiber. */
_Noreturn void engine_end(enum fake_end how);

/* Sleeps; ends early when an interrupt is pending if `wakes`. Returns the ticks that passed. */
uint64_t engine_sleep(uint64_t ticks, bool wakes);

/* What arch_vcpu_load() takes in this run, in ticks. */
uint64_t fake_switch_ticks(void);
uint64_t fake_refill_ticks(void);

/* Whether the hypervisor's own work takes no time in this run. */
bool engine_exact(void);

/* The fiber of the pCPU that is at work. */
struct fiber *engine_fiber(void);

/* A device's interrupt that is due on this pCPU: calls what it wants. False: none was. */
bool engine_device(void);

/* As port_clock(), but nobody else goes first. */
uint64_t engine_clock(void);

/* Whether an interrupt is pending on this pCPU. */
bool engine_interrupted(void);

/* ---- cpu.c ---- */

/* Whether an interrupt is pending on p; and when one will be if nobody does anything. */
bool cpu_interrupt_pending(const struct pcpu *p);
uint64_t cpu_next_interrupt(const struct pcpu *p);

/* ---- guest.c ---- */

/* What must hold when a guest is entered. On its pCPU. */
void guest_check(const struct vcpu *v);

/* Lets the guest go on until it traps (arch.op says why) or an interrupt comes (FAKE_RUN). */
void guest_enter(struct vcpu *v);

/* Handles its trap. */
enum verdict guest_trap(struct vcpu *v);

/* ---- tlb.c ---- */

struct fake_tlb *tlb_new(void);
void tlb_vm_init(struct vm *vm, phys_t ram);

/* Page tables as a freshly loaded guest makes them, other than those of its last life. */
void tlb_vm_loaded(struct vm *vm);

/* ---- boot.c ---- */

void *boot_alloc(uint64_t size);

#endif
