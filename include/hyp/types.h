/* SPDX-License-Identifier: GPL-2.0-only */
/* Types that keep addresses and verdicts apart. */
#ifndef HYP_TYPES_H
#define HYP_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A machine address as the pCPU's bus sees it. */
typedef struct {
    uint64_t v;
} phys_t;

/* A guest-physical address (IPA). */
typedef struct {
    uint64_t v;
} ipa_t;

#define PAGE_SIZE  4096u
#define BLOCK_SIZE 0x200000u

/* What a trap handler tells the trap loop; never what a guest gets back. */
enum verdict {
    RESUME,     /* go on where the guest's PC stands now */
    BLOCK,      /* the vCPU waits for an interrupt */
    YIELD,      /* somebody else may run; the vCPU stays runnable */
    POWER_DOWN, /* the vCPU is off from now on */
    PAUSE,      /* it stops where it stands until vm_resume() */
};

#endif
