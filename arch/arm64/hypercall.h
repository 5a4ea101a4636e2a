/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of a guest, by HVC and by SMC: both mean the same here. The device tree names HVC. An SMC
 * is trapped (HCR_EL2.TSC) and answered like an HVC; it never reaches the machine's firmware.
 */
#ifndef ARM64_HYPERCALL_H
#define ARM64_HYPERCALL_H

#include "core/smccc.h"
#include "hyp/types.h"

struct vcpu;

/* What a handler gets as its context. */
struct hypercall {
    struct vcpu *v;
    enum verdict verdict; /* RESUME unless the handler says otherwise */
};

/*
 * Answers the call of exception class 0x16 or 0x17 (v->arch.esr) and says what becomes of v. The PC
 * stands behind the call already: after a trapped SMC the caller moves it first. On v's pCPU, no
 * locks.
 */
enum verdict hypercall(struct vcpu *v);

/* All that is offered. */
extern const struct smccc_table hypercall_table;

#endif
