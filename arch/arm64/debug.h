/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Self-hosted debug for guests (Arm ARM DDI 0487, D2): hardware breakpoints, watchpoints and single
 * step. All debug registers trap (MDCR_EL2.TDA, TDOSA, TDRA). A vCPU's breakpoints and watchpoints
 * live in memory; the hardware gets them while one is enabled, so vCPUs that debug nothing cost
 * nothing.
 *
 * There is no external debugger for a guest: the debug communication channel, the debug ROM and the
 * authentication registers read as zero and ignore writes. There is no double lock.
 */
#ifndef ARM64_DEBUG_H
#define ARM64_DEBUG_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* Encodings are op0 << 14 | op1 << 11 | CRn << 7 | CRm << 3 | op2 (sysreg.h). */

/*
 * The guest reads or writes the debug register (op0 = 2) `key`. False: no such register, or not in
 * this direction. A write is in force when the guest goes on. On v's pCPU, v loaded; no locks.
 */
bool debug_read(struct vcpu *v, uint16_t key, uint64_t *value);
bool debug_write(struct vcpu *v, uint16_t key, uint64_t value);

/* As after a reset: nothing enabled, OS lock locked. v is on no pCPU. */
void debug_reset(struct vcpu *v);

/* ---- The hardware's part: debug_hw.c, or a test's ---- */

/*
 * Writes MDSCR_EL1, and while one is enabled the breakpoints and watchpoints, of the vCPU that
 * comes. On its pCPU at each switch-in. MDSCR_EL1 needs no saving: v->arch.el1.mdscr is always
 * true.
 */
void debug_load(struct vcpu *v);

/* The vCPU leaves: nothing stays enabled. On its pCPU at each switch-out. */
void debug_unload(struct vcpu *v);

#endif
