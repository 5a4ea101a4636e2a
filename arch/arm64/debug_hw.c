/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/debug.h"
#include "arch/arm64/id_regs.h"
#include "arch/arm64/sysreg_access.h"
#include "core/rare.h"
#include "hyp/vcpu.h"

/* X(n) for each number of a breakpoint or watchpoint. */
#define NUMBERS(X)                                                                                 \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

static void write_breakpoint(unsigned n, uint64_t bvr, uint64_t bcr) {
    switch (n) {
#define WRITE(number)                                                                              \
    case number:                                                                                   \
        write_sysreg(DBGBVR##number##_EL1, bvr);                                                   \
        write_sysreg(DBGBCR##number##_EL1, bcr);                                                   \
        break;
        NUMBERS(WRITE)
#undef WRITE
    default:
        break;
    }
}

static void write_watchpoint(unsigned n, uint64_t wvr, uint64_t wcr) {
    switch (n) {
#define WRITE(number)                                                                              \
    case number:                                                                                   \
        write_sysreg(DBGWVR##number##_EL1, wvr);                                                   \
        write_sysreg(DBGWCR##number##_EL1, wcr);                                                   \
        break;
        NUMBERS(WRITE)
#undef WRITE
    default:
        break;
    }
}

/* No barriers: the return to the guest is one, and at EL2 nothing of this has an effect (TDE = 0).
 */
RARE static void load_points(const struct debug_state *d) {
    for (unsigned n = 0; n < id_breakpoints(); n++) {
        write_breakpoint(n, d->bvr[n], d->bcr[n]);
    }
    for (unsigned n = 0; n < id_watchpoints(); n++) {
        write_watchpoint(n, d->wvr[n], d->wcr[n]);
    }
}

RARE static void clear_points(void) {
    for (unsigned n = 0; n < id_breakpoints(); n++) {
        write_breakpoint(n, 0, 0);
    }
    for (unsigned n = 0; n < id_watchpoints(); n++) {
        write_watchpoint(n, 0, 0);
    }
}

void debug_load(struct vcpu *v) {
    write_sysreg(MDSCR_EL1, v->arch.debug.mdscr);
    if (v->arch.debug.armed) {
        load_points(&v->arch.debug);
    }
}

void debug_unload(struct vcpu *v) {
    if (v->arch.debug.armed) {
        clear_points();
    }
}
