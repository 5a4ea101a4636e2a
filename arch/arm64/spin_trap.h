/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether WFE traps: HCR_EL2.TWE (DDI 0487 D19.2.48), by what the VM's `spin` says. */
#ifndef ARM64_SPIN_TRAP_H
#define ARM64_SPIN_TRAP_H

#include "arch/arm64/el2_state.h"
#include "arch/arm64/sysreg_access.h"
#include "hyp/vm.h"

/* `hcr` with the trap as vm->spin wants it. Any pCPU. */
static inline uint64_t spin_hcr(const struct vcpu *v, uint64_t hcr) {
    return atomic_load(&v->vm->spin) == SPIN_IGNORE ? hcr & ~HCR_TWE : hcr | HCR_TWE;
}

/* After vm->spin changed. On v's pCPU, v loaded. */
static inline void spin_trap_by_setting(struct vcpu *v) {
    v->arch.hcr = spin_hcr(v, v->arch.hcr);
    write_sysreg(HCR_EL2, v->arch.hcr);
}

/* Ends what arch_spin_untrap() began. The same. */
static inline void spin_trap_again(struct vcpu *v) {
    if (__builtin_expect(v->arch.wfe_free, false)) {
        v->arch.wfe_free = false;
        write_sysreg(HCR_EL2, v->arch.hcr);
    }
}

#endif
