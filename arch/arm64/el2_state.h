/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What EL2 controls, written on each pCPU and never inherited: whatever firmware or a boot loader
 * left behind, every guest finds the same machine.
 */
#ifndef ARM64_EL2_STATE_H
#define ARM64_EL2_STATE_H

#include <stdint.h>

#define HCR_TWE (UINT64_C(1) << 14) /* HCR_EL2: a WFE that would wait traps */

/* CNTHCTL_EL2 with E2H = 0: CNTPCT_EL0 is not trapped; EL1PCEN = 0 traps CNTP_*. */
#define CNTHCTL_EL1PCTEN UINT64_C(1)

/*
 * Whether this pCPU can run us at all: NULL, or a sentence that says why not. Reads registers only.
 * On each pCPU, any time.
 */
const char *el2_state_check(void);

/*
 * Writes all of the control registers of EL2 that are not switched with vCPUs, each one only where
 * this pCPU has it. Not VBAR_EL2, MMU registers, VTCR_EL2, VMPIDR_EL2, CNTVOFF_EL2: others' work.
 * On each pCPU at its start, after el2_state_check() said NULL, before its first guest.
 */
void el2_state_init(void);

/*
 * HCR_EL2 for a vCPU (v->arch.hcr): everything trapped that the ID registers hide. TVM and VSE are
 * the owner's to add, TWE too. The same on every pCPU when the pCPUs are of one kind. Any pCPU.
 */
uint64_t el2_hcr_guest(void);

#endif
