/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading and writing system registers of the CPU that this runs on. */
#ifndef ARM64_SYSREG_ACCESS_H
#define ARM64_SYSREG_ACCESS_H

#include <stdint.h>

/* `name` is an assembler name: CNTV_CTL_EL0, or S3_4_C12_C11_0 where old assemblers know none. */
#define read_sysreg(name)                                                                          \
    __extension__({                                                                                \
        uint64_t mrs_;                                                                             \
        __asm__ volatile("mrs %0, " #name : "=r"(mrs_));                                           \
        mrs_;                                                                                      \
    })
#define write_sysreg(name, value)                                                                  \
    do {                                                                                           \
        uint64_t msr_ = (value);                                                                   \
        __asm__ volatile("msr " #name ", %x0" : : "rZ"(msr_) : "memory");                          \
    } while (0)

static inline void isb(void) {
    __asm__ volatile("isb" : : : "memory");
}

/* Takes an SError that is pending, which EL2 masks otherwise. */
static inline void let_serror_in(void) {
    __asm__ volatile("msr daifclr, #4\n\tisb\n\tmsr daifset, #4" : : : "memory");
}

#endif
