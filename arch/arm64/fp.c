/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/fp.h"

#include "arch/arm64/regs.h"
#include "arch/arm64/sysreg_access.h"
#include "hyp/pcpu.h"

/* Whether FP instructions work on this pCPU from now on, at EL2 too. */
static void allow(struct arch_pcpu *p, bool on) {
    uint64_t cptr = read_sysreg(CPTR_EL2);

    p->fp_on = on;
    write_sysreg(CPTR_EL2, on ? cptr & ~(uint64_t)CPTR_TFP : cptr | CPTR_TFP);
    isb();
}

void fp_switch_in(struct arch_vcpu *a) {
    struct arch_pcpu *p = &this_pcpu()->arch;

    if (a->fp_turns != 0) {
        a->fp_turns--;
        a->fp_here = true;
        if (!p->fp_on) {
            allow(p, true);
        }
        fp_load(&a->fp);
    } else if (p->fp_on) {
        allow(p, false);
    }
}

void fp_switch_out(struct arch_vcpu *a) {
    if (a->fp_here) {
        a->fp_here = false;
        fp_save(&a->fp);
    } else {
        a->fp_row = 0;
    }
}

bool fp_enable(struct arch_vcpu *a) {
    if (a->fp_here) {
        return false;
    }
    a->fp_here = true;
    a->fp_row = a->fp_row == 0             ? FP_TURNS_MIN
                : a->fp_row < FP_TURNS_MAX ? (uint8_t)(a->fp_row * 2u)
                                           : FP_TURNS_MAX;
    a->fp_turns = a->fp_row;
    allow(&this_pcpu()->arch, true);
    fp_load(&a->fp);
    return true;
}
