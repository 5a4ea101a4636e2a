/* SPDX-License-Identifier: GPL-2.0-only */
/* Exception syndromes, ESR_ELx (DDI 0487 D24.2.40). */
#ifndef ARM64_ESR_H
#define ARM64_ESR_H

#include <stdint.h>

#define ESR_EC_SHIFT 26
#define ESR_IL       (1ull << 25)

enum {
    EC_UNKNOWN = 0x00,
    EC_WFX = 0x01,
    EC_CP15_32 = 0x03,
    EC_CP15_64 = 0x04,
    EC_CP14_32 = 0x05,
    EC_CP14_LS = 0x06,
    EC_FP = 0x07,
    EC_CP10 = 0x08,
    EC_PAUTH = 0x09,
    EC_CP14_64 = 0x0c,
    EC_HVC64 = 0x16,
    EC_SMC64 = 0x17,
    EC_SYSREG = 0x18,
    EC_INSTRUCTION_LOWER = 0x20,
    EC_DATA_LOWER = 0x24,
};

static inline unsigned esr_class(uint64_t esr) {
    return (unsigned)(esr >> ESR_EC_SHIFT) & 63u;
}

/* Aborts */
#define ABORT_ISV    (1ull << 24)
#define ABORT_SAS    22 /* log2 of the access's bytes, two bits */
#define ABORT_SSE    (1ull << 21)
#define ABORT_SRT    16 /* register, five bits */
#define ABORT_SF     (1ull << 15)
#define ABORT_FNV    (1ull << 10)
#define ABORT_CM     (1ull << 8)
#define ABORT_S1PTW  (1ull << 7)
#define ABORT_WNR    (1ull << 6)
#define ABORT_STATUS 0x3full

/* WFx */
#define WFX_TI 3u /* 0 WFI, 1 WFE, 2 WFIT, 3 WFET */

/* Traps that AArch32 instructions may take although their condition fails. */
#define ESR_CV         (1ull << 24)
#define ESR_COND_SHIFT 20

#endif
