/* SPDX-License-Identifier: GPL-2.0-only */
/* PSCI and SMCCC calls through HVC. */
#include "guest.h"

int64_t hvc4(uint64_t fn, uint64_t a1, uint64_t a2, uint64_t a3) {
    register uint64_t x0 __asm__("x0") = fn;
    register uint64_t x1 __asm__("x1") = a1;
    register uint64_t x2 __asm__("x2") = a2;
    register uint64_t x3 __asm__("x3") = a3;

    /* SMCCC before 1.1 may change x4-x17; the results are in x0-x3. */
    __asm__ volatile("hvc #0"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                     :
                     : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
                       "x16", "x17", "memory");
    return (int64_t)x0;
}

int64_t psci(uint64_t fn, uint64_t a1, uint64_t a2, uint64_t a3) {
    return (int32_t)hvc4(fn, a1, a2, a3);
}

_Noreturn void system_off(void) {
    hvc4(PSCI_SYSTEM_OFF, 0, 0, 0);
    for (;;)
        wfi();
}
