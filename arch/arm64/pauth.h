/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pointer authentication. A vCPU's ten key registers are switched from its first use of them on:
 * until then they trap, and so do the instructions that its SCTLR_EL1 turns on (HCR_EL2.APK, API).
 */
#ifndef ARM64_PAUTH_H
#define ARM64_PAUTH_H

#include <stdbool.h>

struct vcpu;

/*
 * `v` trapped at a key register or an instruction: gives it both, with the keys as after a reset,
 * and returns true: the instruction is to be executed again. False: it has them already, or this
 * machine has none. On v's pCPU, v loaded.
 */
bool pauth_enable(struct vcpu *v);

#endif
