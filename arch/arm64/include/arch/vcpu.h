/* SPDX-License-Identifier: GPL-2.0-only */
/* The arm64 part of a vCPU. */
#ifndef ARCH_VCPU_H
#define ARCH_VCPU_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arm64/vgic.h"

/*
 * The EL1 and EL0 state that is switched between vCPUs (switch.c). ACTLR_EL1 is trapped; the
 * AArch32 registers of EL1 can't be reached, since EL1 is AArch64.
 */
struct el1_state {
    uint64_t sctlr, cpacr, ttbr0, ttbr1, tcr, esr, afsr0, afsr1, far, mair, amair, vbar;
    uint64_t contextidr, tpidr_el0, tpidrro, tpidr_el1, sp_el0, sp_el1, elr, spsr, par, csselr;
    uint64_t cntkctl;
    uint64_t mdscr;          /* always true: writes trap (debug.c) */
    uint64_t pauth_keys[10]; /* APIA, APIB, APDA, APDB, APGA: low, high of each */
};

struct fp_state {
    __uint128_t v[32];
    uint64_t fpcr, fpsr;
};

/* Break- and watchpoints: accesses trap, the hardware gets them while one is enabled (debug.c). */
struct debug_state {
    uint64_t bvr[16], bcr[16], wvr[16], wcr[16];
    uint64_t oslsr; /* OS lock: bit 1 */
    uint64_t claim;
    uint64_t mdscr; /* MDSCR_EL1 while it runs: el1.mdscr, or less while its OS lock is locked */
    bool armed;     /* an enable bit is set: load the hardware at switch-in */
};

/* The EL1 physical timer, emulated; the virtual one while the vCPU is off the CPU. */
struct guest_timer {
    uint64_t ctl; /* ENABLE bit 0, IMASK bit 1; ISTATUS is computed */
    uint64_t cval;
};

struct arch_vcpu {
    uint64_t x[31];  /* entry.S: offset 0 */
    uint64_t pc;     /* entry.S: 248 */
    uint64_t pstate; /* entry.S: 256 */
    uint64_t hcr;    /* HCR_EL2 while this vCPU runs */
    uint64_t mpidr;  /* VMPIDR_EL2 */
    bool wfe_free;   /* arch_spin_untrap() was called; maybe the trap is on again */
    struct el1_state el1;
    struct fp_state fp __attribute__((aligned(16)));
    struct debug_state debug;
    struct guest_timer vtimer; /* CNTV_* as saved at switch-out */
    struct guest_timer ptimer; /* CNTP_*, always in software */
    struct vgic_vcpu vgic;
    uint64_t esr;     /* ESR_EL2 of the exit that is being handled */
    uint64_t cleaned; /* set/way operations: bytes of RAM that are cleaned so far (setway.c) */
    uint8_t fp_turns; /* how often it still gets them at once (fp.h) */
    uint8_t fp_row;   /* and how often at first; 0: it did without them */
    bool fp_here;     /* they are on its pCPU: `fp` is old */
};

#endif
