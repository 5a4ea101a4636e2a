/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * In place of arch/arm64/sysreg_access.h, for sources of arch/arm64 that are to run on this
 * machine: registers have the values that the target says.
 */
#ifndef ARM64_SYSREG_ACCESS_H
#define ARM64_SYSREG_ACCESS_H

#include <stdint.h>

uint64_t fuzz_read_sysreg(const char *name);
void fuzz_write_sysreg(const char *name, uint64_t value);

#define read_sysreg(name)         fuzz_read_sysreg(#name)
#define write_sysreg(name, value) fuzz_write_sysreg(#name, value)

static inline void isb(void) {
}

static inline void let_serror_in(void) {
}

#endif
