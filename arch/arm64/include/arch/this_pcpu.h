/* SPDX-License-Identifier: GPL-2.0-only */
/* TPIDR_EL2 holds the address of this CPU's struct pcpu. Included by hyp/pcpu.h. */
#ifndef ARCH_THIS_PCPU_H
#define ARCH_THIS_PCPU_H

struct pcpu;

static inline struct pcpu *this_pcpu(void) {
    struct pcpu *p;
    __asm__("mrs %0, tpidr_el2" : "=r"(p));
    return p;
}

#endif
