/* SPDX-License-Identifier: GPL-2.0-only */
/* The engine says which fake pCPU is at work. Included by hyp/pcpu.h. */
#ifndef ARCH_THIS_PCPU_H
#define ARCH_THIS_PCPU_H

struct pcpu;
extern struct pcpu *fake_this;

static inline struct pcpu *this_pcpu(void) {
    return fake_this;
}

#endif
