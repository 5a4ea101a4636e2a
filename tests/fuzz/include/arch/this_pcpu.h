/* SPDX-License-Identifier: GPL-2.0-only */
/* In place of arch/arm64's: the targets have one pCPU. */
#ifndef ARCH_THIS_PCPU_H
#define ARCH_THIS_PCPU_H

struct pcpu;
extern struct pcpu *pcpus[]; /* NOLINT(readability-redundant-declaration): stands alone */

static inline struct pcpu *this_pcpu(void) {
    return pcpus[0];
}

#endif
