/* SPDX-License-Identifier: GPL-2.0-only */
/* The generic timer's counters. */
#include "guest.h"

uint64_t counter(void) {
    isb();
    return read_sysreg(cntvct_el0);
}

uint64_t pcounter(void) {
    isb();
    return read_sysreg(cntpct_el0);
}

uint64_t freq(void) {
    return read_sysreg(cntfrq_el0);
}

uint64_t us_to_ticks(uint64_t us) {
    uint64_t f = freq();

    return us / 1000000 * f + us % 1000000 * f / 1000000;
}

uint64_t ticks_to_us(uint64_t ticks) {
    uint64_t f = freq();

    return ticks / f * 1000000 + ticks % f * 1000000 / f;
}

void spin_us(uint64_t us) {
    uint64_t end = counter() + us_to_ticks(us);

    while (counter() < end) {
    }
}
