/* SPDX-License-Identifier: GPL-2.0-only */
/* Exceptions that the guest gets from us, and the end of an emulated instruction. */
#ifndef ARM64_INJECT_H
#define ARM64_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "hyp/vcpu.h"

/* PSTATE in SPSR form (DDI 0487 C5.2.19): AArch32, and what the end of an A64 instruction clears.
 */
#define PSTATE_M32   (1ull << 4)
#define PSTATE_BTYPE (3ull << 10)
#define PSTATE_SS    (1ull << 21)

/* skip_instruction() for AArch32. */
void skip_aarch32(struct vcpu *v, uint64_t esr);

/* Moves the guest's PC behind the instruction that trapped with `esr`; single step sees it
 * executed. */
static inline void skip_aarch64(struct vcpu *v) {
    v->arch.pc += 4;
    v->arch.pstate &= ~(PSTATE_BTYPE | PSTATE_SS);
}

static inline void skip_instruction(struct vcpu *v, uint64_t esr) {
    if ((v->arch.pstate & PSTATE_M32) != 0) {
        skip_aarch32(v, esr);
    } else {
        skip_aarch64(v);
    }
}

/* All: on v's pCPU, v loaded; the guest's PC goes to its own vector. */

/* An Undefined Instruction exception at the present PC; `esr` tells the instruction's length. */
void inject_undefined(struct vcpu *v, uint64_t esr);

/*
 * A synchronous external abort for the fetch or access that trapped with `esr` at guest-virtual
 * address `far`; if esr says so, for a walk of the guest's own tables, whose descriptor was to be
 * read at `ipa`.
 */
void inject_abort(struct vcpu *v, uint64_t esr, uint64_t far, uint64_t ipa);

#endif
