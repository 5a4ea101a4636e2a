/* SPDX-License-Identifier: GPL-2.0-only */
/* A vCPU's registers onto the pCPU and off it. */
#include "arch/arm64/debug.h"
#include "arch/arm64/el2_state.h"
#include "arch/arm64/fp.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/guest_timer.h"
#include "arch/arm64/id_regs.h"
#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/timer.h"
#include "hyp/arch.h"
#include "hyp/string.h"
#include "hyp/vm.h"

#define HCR_API        (1ull << 41) /* pointer authentication is there */
#define PSTATE_RESET   0x3c5u       /* EL1 with its own stack, all exceptions masked */
#define SCTLR_EL1_RESET 0x30d50838u /* RES1 bits; MMU and caches off */
#define MPIDR_RES1     (1ull << 31)

#define EACH_EL1_REGISTER(X)                                                                       \
    X(sctlr, SCTLR_EL1)                                                                            \
    X(cpacr, CPACR_EL1)                                                                            \
    X(ttbr0, TTBR0_EL1)                                                                            \
    X(ttbr1, TTBR1_EL1)                                                                            \
    X(tcr, TCR_EL1)                                                                                \
    X(esr, ESR_EL1)                                                                                \
    X(afsr0, AFSR0_EL1)                                                                            \
    X(afsr1, AFSR1_EL1)                                                                            \
    X(far, FAR_EL1)                                                                                \
    X(mair, MAIR_EL1)                                                                              \
    X(amair, AMAIR_EL1)                                                                            \
    X(vbar, VBAR_EL1)                                                                              \
    X(contextidr, CONTEXTIDR_EL1)                                                                  \
    X(tpidr_el0, TPIDR_EL0)                                                                        \
    X(tpidrro, TPIDRRO_EL0)                                                                        \
    X(tpidr_el1, TPIDR_EL1)                                                                        \
    X(sp_el0, SP_EL0)                                                                              \
    X(sp_el1, SP_EL1)                                                                              \
    X(elr, ELR_EL1)                                                                                \
    X(spsr, SPSR_EL1)                                                                              \
    X(par, PAR_EL1)                                                                                \
    X(csselr, CSSELR_EL1)                                                                          \
    X(cntkctl, CNTKCTL_EL1)

/* APIA, APIB, APDA, APDB, APGA: low, high. */
#define EACH_KEY(X)                                                                                \
    X(0, S3_0_C2_C1_0)                                                                             \
    X(1, S3_0_C2_C1_1)                                                                             \
    X(2, S3_0_C2_C1_2)                                                                             \
    X(3, S3_0_C2_C1_3)                                                                             \
    X(4, S3_0_C2_C2_0)                                                                             \
    X(5, S3_0_C2_C2_1)                                                                             \
    X(6, S3_0_C2_C2_2)                                                                             \
    X(7, S3_0_C2_C2_3)                                                                             \
    X(8, S3_0_C2_C3_0)                                                                             \
    X(9, S3_0_C2_C3_1)

static void save_registers(struct arch_vcpu *a) {
#define SAVE(field, name) a->el1.field = read_sysreg(name);
    EACH_EL1_REGISTER(SAVE)
#undef SAVE
    if ((a->hcr & HCR_API) != 0) {
#define SAVE(i, name) a->el1.pauth_keys[i] = read_sysreg(name);
        EACH_KEY(SAVE)
#undef SAVE
    }
    fp_save(&a->fp);
}

static void load_registers(struct arch_vcpu *a) {
#define LOAD(field, name) write_sysreg(name, a->el1.field);
    EACH_EL1_REGISTER(LOAD)
#undef LOAD
    if ((a->hcr & HCR_API) != 0) {
#define LOAD(i, name) write_sysreg(name, a->el1.pauth_keys[i]);
        EACH_KEY(LOAD)
#undef LOAD
    }
    fp_load(&a->fp);
}

/* ID_AA64PFR0_EL1.RAS. Guests see none, but their DISR_EL1 is there all the same. */
static bool has_ras(void) {
    return (read_sysreg(ID_AA64PFR0_EL1) >> 28 & 15u) != 0;
}

void arch_vcpu_load(struct vcpu *v, bool registers_present) {
    if (!registers_present) {
        write_sysreg(VTTBR_EL2, v->vm->arch.vttbr);
        write_sysreg(HCR_EL2, v->arch.hcr);
        write_sysreg(VMPIDR_EL2, v->arch.mpidr);
        load_registers(&v->arch);
    }
    if (has_ras()) {
        write_sysreg(S3_4_C12_C1_1, 0); /* VDISR_EL2: the guest's DISR_EL1, which can't be trapped */
    }
    debug_load(v);
    timer_load(v); /* may find an interrupt due, so before the list registers are filled */
    gic_virt_load(v);
}

void arch_vcpu_quiesce(struct vcpu *v) {
    debug_unload(v);
    gic_virt_save(v);
    timer_save(v); /* knows from the folded list registers whether PPI 27 is active */
}

void arch_vcpu_save(struct vcpu *v) {
    save_registers(&v->arch);
}

void arch_vcpu_init(struct vcpu *v) {
    v->arch.hcr = el2_hcr_guest();
    v->arch.mpidr = MPIDR_RES1 | vgic_mpidr(v->index);
}

void arch_vcpu_reset(struct vcpu *v, uint64_t pc, uint64_t arg) {
    struct arch_vcpu *a = &v->arch;

    memset(a->x, 0, sizeof(a->x));
    memset(&a->el1, 0, sizeof(a->el1));
    memset(&a->fp, 0, sizeof(a->fp));
    a->x[0] = arg;
    a->pc = pc;
    a->pstate = PSTATE_RESET;
    a->el1.sctlr = SCTLR_EL1_RESET;
    a->hcr = el2_hcr_guest();
    a->cleaned = 0;
    a->vtimer = (struct guest_timer){0, 0};
    guest_ptimer_reset(v);
    debug_reset(v);
    vgic_cpuif_reset(&a->vgic);
}
