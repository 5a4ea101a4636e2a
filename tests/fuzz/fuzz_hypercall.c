/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/trap.c arch/arm64/devices.c arch/arm64/inject.c arch/arm64/guest_walk.c */
/* link: arch/arm64/hypercall.c arch/arm64/psci.c core/smccc.c arch/arm64/sysreg.c */
/* link: arch/arm64/paravirt.c core/pvlock.c core/steal.c core/trace.c core/config.c */
/* link: core/config_keys.c */
/* link: arch/arm64/debug.c arch/arm64/guest_timer.c arch/arm64/id_regs.c */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c hyp/pl011.c */
/* Calls by HVC and SMC: any id, any arguments, any immediate. */
#include "tests/fuzz/machine.h"

#define KEPT 0x1234567812345678ull

/* The vCPU is switched out and in: its records are where they may be, and the values in them. */
static void machine_switch(struct vcpu *v) {
    struct pvlock *p = &v->sched.pvlock;

    if (p->record != NULL) {
        uint32_t *flag = p->record;

        must(p->used_ipa % 64 == 0 &&
             ((void *)p->record == (void *)p->own) == (p->dialect == PVLOCK_PV_LOCK));
        must((void *)p->record == (void *)p->own ||
             p->record == vm_ram(&vm, (ipa_t){p->used_ipa}, sizeof(struct pvsched_record)));
        must(*flag == 0);
        pvlock_state(p, false, true);
        must(*flag == 1);
        pvlock_state(p, true, false);
    }
    if (v->sched.steal.record != NULL) {
        steal_update(&v->sched.steal, now);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    machine_reset(data, size);
    for (unsigned calls = 0; in.left != 0 && calls < 64; calls++) {
        uint64_t how = fuzz_take(&in, 1);
        struct vcpu *v = &vcpus[how % VCPUS];
        uint64_t esr = (uint64_t)(how & 0x40 ? EC_SMC64 : EC_HVC64) << ESR_EC_SHIFT | ESR_IL;

        machine_registers(v, 31);
        for (unsigned i = 4; i < 31; i++) {
            v->arch.x[i] = KEPT * i;
        }
        v->power = (uint32_t)(how >> 4 & 3) % 3;
        v->arch.pstate = 5;
        machine_exit(v, esr | (how & 0x80 ? fuzz_take(&in, 2) : 0));
        for (unsigned i = 4; i < 31; i++) {
            must(v->arch.x[i] == KEPT * i);
        }
        machine_switch(v);
    }
    return 0;
}
