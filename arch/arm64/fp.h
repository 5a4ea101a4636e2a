/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's SIMD and floating-point registers; the hypervisor itself never uses them.
 *
 * Moving them is a fourth of all registers' work, and many turns of a vCPU end before it touched
 * them. So a vCPU comes without them: its first use in a turn traps (CPTR_EL2.TFP) and brings them.
 * A trap costs about three times as much as it can save, so whoever did use them gets them at once
 * in its next FP_TURNS_MIN turns, and then is asked again: if it uses them in that turn too, it
 * gets them in twice as many as the last time, up to FP_TURNS_MAX. Until its own are loaded it
 * can't see what another vCPU left there.
 */
#ifndef ARM64_FP_H
#define ARM64_FP_H

#include <arch/vcpu.h>

struct vcpu;

#define FP_TURNS_MIN 8u
#define FP_TURNS_MAX 128u /* then the traps are one instruction in a turn */

/*
 * `a` comes to this pCPU, and leaves it. On its pCPU at each switch of registers; the state of TFP
 * is that of the vCPU that came last.
 */
void fp_switch_in(struct arch_vcpu *a);
void fp_switch_out(struct arch_vcpu *a);

/* It trapped: brings its registers, and returns true; false: they are there. On its pCPU. */
bool fp_enable(struct arch_vcpu *a);

/* V0..V31, FPCR, FPSR of this pCPU into memory, or from there. TFP is clear. */
void fp_save(struct fp_state *state);
void fp_load(const struct fp_state *state);

#endif
