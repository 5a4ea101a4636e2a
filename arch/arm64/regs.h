/* SPDX-License-Identifier: GPL-2.0-only */
/* Register bits and structure offsets that assembly and C share. Sources: Arm ARM DDI 0487, part D.
 */
#ifndef ARM64_REGS_H
#define ARM64_REGS_H

#define HCR_RW (1 << 31)

/* SCTLR_EL2 (D24.2.175): RES1 bits, MMU and caches off. */
#define SCTLR_EL2_OFF 0x30c50830
#define SCTLR_EL2_M   (1 << 0)
#define SCTLR_EL2_C   (1 << 2)
#define SCTLR_EL2_SA  (1 << 3)
#define SCTLR_EL2_I   (1 << 12)
#define SCTLR_EL2_WXN (1 << 19)

/* CPTR_EL2 (D24.2.34), as it is with E2H = 0: FP and SIMD instructions trap, EL2's own too. */
#define CPTR_TFP (1 << 10)

/* struct pcpu */
#define PCPU_CURRENT   0
#define PCPU_STACK_TOP 8

/* struct arch_vcpu */
#define VCPU_X      0
#define VCPU_PC     248
#define VCPU_PSTATE 256

#endif
