/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * EL1 registers of the vCPU that is loaded, by encoding: those that HCR_EL2.TVM and TID1 trap
 * although the guest may have them.
 */
#ifndef ARM64_VM_REGS_H
#define ARM64_VM_REGS_H

#include <stdint.h>

#include "arch/arm64/sysreg.h"

/* X(name, encoding): the registers of HCR_EL2.TVM, without those that are hidden. */
#define VM_REGS(X)                                                                                 \
    X(SCTLR_EL1, SYSREG(3, 0, 1, 0, 0))                                                            \
    X(TTBR0_EL1, SYSREG(3, 0, 2, 0, 0))                                                            \
    X(TTBR1_EL1, SYSREG(3, 0, 2, 0, 1))                                                            \
    X(TCR_EL1, SYSREG(3, 0, 2, 0, 2))                                                              \
    X(AFSR0_EL1, SYSREG(3, 0, 5, 1, 0))                                                            \
    X(AFSR1_EL1, SYSREG(3, 0, 5, 1, 1))                                                            \
    X(ESR_EL1, SYSREG(3, 0, 5, 2, 0))                                                              \
    X(FAR_EL1, SYSREG(3, 0, 6, 0, 0))                                                              \
    X(MAIR_EL1, SYSREG(3, 0, 10, 2, 0))                                                            \
    X(AMAIR_EL1, SYSREG(3, 0, 10, 3, 0))                                                           \
    X(CONTEXTIDR_EL1, SYSREG(3, 0, 13, 0, 1))

/* Reads or writes one of them in hardware. On the pCPU that has the vCPU loaded. */
uint64_t vm_reg_read(uint16_t key);
void vm_reg_write(uint16_t key, uint64_t value);

/* REVIDR_EL1 and AIDR_EL1 of this pCPU. */
uint64_t vm_reg_revidr(void);
uint64_t vm_reg_aidr(void);

#endif
