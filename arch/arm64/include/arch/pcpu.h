/* SPDX-License-Identifier: GPL-2.0-only */
/* The arm64 part of a pCPU. */
#ifndef ARCH_PCPU_H
#define ARCH_PCPU_H

#include <stdbool.h>
#include <stdint.h>

struct arch_pcpu {
    uint64_t mpidr;       /* affinity bits of MPIDR_EL1 */
    uint64_t kick;        /* what to write to ICC_SGI1R_EL1 to kick it */
    uint64_t gicr;        /* address of its redistributor: RD and SGI frames */
    uint32_t lrs;         /* bit i: list register i was in use by whoever left it last */
    bool counter_trapped; /* reads of CNTPCT_EL0 are */
    bool fp_on;           /* FP and SIMD instructions do not trap (fp.h) */
    bool vtimer_active;   /* PPI 27 is active in the interrupt controller */
};

#endif
