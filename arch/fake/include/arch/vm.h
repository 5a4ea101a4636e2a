/* SPDX-License-Identifier: GPL-2.0-only */
/* The fake part of a VM: its stage 2 and the page tables that its guest keeps. */
#ifndef ARCH_VM_H
#define ARCH_VM_H

#include <stdbool.h>
#include <stdint.h>

#include <arch/vcpu.h>

#define FAKE_SPACES   16u /* address spaces: what a TTBR can point to */
#define FAKE_PAGES    8u  /* pages of a space, and of a VM */
#define FAKE_UNMAPPED UINT32_MAX

/* Stage 1 of one address space. */
struct fake_space {
    uint32_t asid;
    uint32_t ipage[FAKE_PAGES]; /* guest page behind each virtual page */
};

struct arch_vm {
    uint64_t stage2[FAKE_PAGES]; /* machine page behind each guest page */
    struct fake_space space[FAKE_SPACES];
    fake_guest *program; /* what the boot vCPU runs */
    uint64_t arg;
    unsigned resets;     /* arch_vm_reset so far */
    unsigned loads;      /* times that its memory was filled */
    unsigned load_steps; /* how many steps that takes */
    uint64_t load_ticks; /* ticks of one step */
    uint64_t loading;    /* ticks spent in it */
    uint64_t stood;      /* ticks that its clocks stood */
};

#endif
