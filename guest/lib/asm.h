/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants shared by the assembly and the C parts of the guest library.
 * Every offset here is checked against the C structures in exc.c.
 */
#ifndef GUEST_ASM_H
#define GUEST_ASM_H

#define MAX_CPUS   256
#define STACK_SIZE 4096

/* struct cpu */
#define CPU_STACK_TOP 0
#define CPU_FN        8
#define CPU_ENTRY     24
#define CPU_ENTRY_TAG 120

/* struct exc_frame */
#define FRAME_SP   248
#define FRAME_ELR  256
#define FRAME_ESR  272
#define FRAME_SIZE 288

/* struct entry_state: x0-x30, then the list below, then FPCR, FPSR, v0-v31 */
/* clang-format off */
#define ENTRY_SYSREGS(X) \
    X(CurrentEL) X(daif) X(spsel) X(sctlr_el1) X(cpacr_el1) X(ttbr0_el1) X(ttbr1_el1) \
    X(tcr_el1) X(mair_el1) X(amair_el1) X(vbar_el1) X(esr_el1) X(far_el1) X(elr_el1) \
    X(spsr_el1) X(afsr0_el1) X(afsr1_el1) X(contextidr_el1) X(tpidr_el0) X(tpidrro_el0) \
    X(tpidr_el1) X(sp_el0) X(par_el1) X(cntkctl_el1) X(cntv_ctl_el0) X(cntp_ctl_el0) \
    X(csselr_el1) X(isr_el1)

/* struct cpu's record of how a secondary was entered */
#define SECONDARY_SYSREGS(X) \
    X(CurrentEL) X(daif) X(sctlr_el1) X(vbar_el1) X(cpacr_el1) X(ttbr0_el1) X(tcr_el1) \
    X(cntkctl_el1) X(cntv_ctl_el0) X(isr_el1) X(tpidr_el1) X(spsel)
/* clang-format on */

#endif
