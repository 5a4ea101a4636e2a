/* SPDX-License-Identifier: GPL-2.0-only */
/* Exceptions that the guest gets from us, and the end of an emulated instruction. */
#ifndef ARM64_INJECT_H
#define ARM64_INJECT_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* Moves the guest's PC behind the instruction that trapped with `esr`; single step sees it executed. */
void skip_instruction(struct vcpu *v, uint64_t esr);

/* All: on v's pCPU, v loaded; the guest's PC goes to its own vector. */

/* An Undefined Instruction exception at the present PC; `esr` tells the instruction's length. */
void inject_undefined(struct vcpu *v, uint64_t esr);

/*
 * A synchronous external abort for the fetch or access that trapped with `esr` at guest-virtual address
 * `far`; if esr says so, for a walk of the guest's own tables, whose descriptor was to be read at `ipa`.
 */
void inject_abort(struct vcpu *v, uint64_t esr, uint64_t far, uint64_t ipa);

#endif
