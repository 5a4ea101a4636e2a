/* SPDX-License-Identifier: GPL-2.0-only */
/* A vCPU's registers onto the pCPU and off it. */
#include "arch/arm64/debug.h"
#include "arch/arm64/el2_state.h"
#include "arch/arm64/fp.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/guest_timer.h"
#include "arch/arm64/id_regs.h"
#include "arch/arm64/pauth.h"
#include "arch/arm64/spin_trap.h"
#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/timer.h"
#include "hyp/arch.h"
#include "hyp/string.h"
#include "hyp/vm.h"

#define HCR_TERR        (1ull << 36) /* set where there is FEAT_RAS (el2_state.c) */
#define HCR_PAUTH       (3ull << 40) /* APK, API: pointer authentication does not trap */
#define PSTATE_RESET    0x3c5u       /* EL1 with its own stack, all exceptions masked */
#define SCTLR_EL1_RESET 0x30d50838u  /* RES1 bits; MMU and caches off */
#define MPIDR_RES1      (1ull << 31)

/* X(field, register, field, register): two at a time are one STP or LDP, as the fields lie side by
 * side. */
#define EACH_EL1_PAIR(X)                                                                           \
    X(sctlr, SCTLR_EL1, cpacr, CPACR_EL1)                                                          \
    X(ttbr0, TTBR0_EL1, ttbr1, TTBR1_EL1)                                                          \
    X(tcr, TCR_EL1, esr, ESR_EL1)                                                                  \
    X(afsr0, AFSR0_EL1, afsr1, AFSR1_EL1)                                                          \
    X(far, FAR_EL1, mair, MAIR_EL1)                                                                \
    X(amair, AMAIR_EL1, vbar, VBAR_EL1)                                                            \
    X(contextidr, CONTEXTIDR_EL1, tpidr_el0, TPIDR_EL0)                                            \
    X(tpidrro, TPIDRRO_EL0, tpidr_el1, TPIDR_EL1)                                                  \
    X(sp_el0, SP_EL0, sp_el1, SP_EL1)                                                              \
    X(elr, ELR_EL1, spsr, SPSR_EL1)                                                                \
    X(par, PAR_EL1, csselr, CSSELR_EL1)

/* APIA, APIB, APDA, APDB, APGA: low, high. */
#define EACH_KEY_PAIR(X)                                                                           \
    X(pauth_keys[0], S3_0_C2_C1_0, pauth_keys[1], S3_0_C2_C1_1)                                    \
    X(pauth_keys[2], S3_0_C2_C1_2, pauth_keys[3], S3_0_C2_C1_3)                                    \
    X(pauth_keys[4], S3_0_C2_C2_0, pauth_keys[5], S3_0_C2_C2_1)                                    \
    X(pauth_keys[6], S3_0_C2_C2_2, pauth_keys[7], S3_0_C2_C2_3)                                    \
    X(pauth_keys[8], S3_0_C2_C3_0, pauth_keys[9], S3_0_C2_C3_1)

#define SAVE(field1, name1, field2, name2)                                                         \
    do {                                                                                           \
        uint64_t first = read_sysreg(name1), second = read_sysreg(name2);                          \
        a->el1.field1 = first;                                                                     \
        a->el1.field2 = second;                                                                    \
    } while (0);
#define LOAD(field1, name1, field2, name2)                                                         \
    do {                                                                                           \
        uint64_t first = a->el1.field1, second = a->el1.field2;                                    \
        write_sysreg(name1, first);                                                                \
        write_sysreg(name2, second);                                                               \
    } while (0);

static void save_registers(struct arch_vcpu *a) {
    EACH_EL1_PAIR(SAVE)
    a->el1.cntkctl = read_sysreg(CNTKCTL_EL1);
    if ((a->hcr & HCR_PAUTH) != 0) {
        EACH_KEY_PAIR(SAVE)
    }
    fp_switch_out(a);
}

static void load_registers(struct arch_vcpu *a) {
    EACH_EL1_PAIR(LOAD)
    write_sysreg(CNTKCTL_EL1, a->el1.cntkctl);
    if ((a->hcr & HCR_PAUTH) != 0) {
        EACH_KEY_PAIR(LOAD)
    }
    fp_switch_in(a);
}

bool pauth_enable(struct vcpu *v) {
    struct arch_vcpu *a = &v->arch;
    uint64_t bits = el2_hcr_guest() & HCR_PAUTH;

    if ((bits & ~a->hcr) == 0) {
        return false;
    }
    a->hcr |= bits;
    EACH_KEY_PAIR(LOAD) /* others' keys are in there */
    write_sysreg(HCR_EL2, a->hcr);
    return true;
}

void arch_vcpu_load(struct vcpu *v, bool registers_present) {
    if (!registers_present) {
        uint64_t hcr = v->arch.hcr;

        write_sysreg(HCR_EL2, hcr);
        write_sysreg(VMPIDR_EL2, v->arch.mpidr);
        load_registers(&v->arch);
        if ((hcr & HCR_TERR) != 0) { /* FEAT_RAS: guests see none, but they have a DISR_EL1,
                                      * which can't be trapped: it is VDISR_EL2 */
            write_sysreg(S3_4_C12_C1_1, 0);
        }
    }
    if (!registers_present || v->arch.debug.armed) {
        debug_load(v);
    }
    timer_load(v); /* may find an interrupt due, so before the list registers are filled */
    gic_virt_load(v, registers_present);
}

void arch_vcpu_quiesce(struct vcpu *v) {
    debug_unload(v);
    gic_virt_save(v);
    timer_save(v); /* knows from the folded list registers whether PPI 27 is active */
}

void arch_vcpu_save(struct vcpu *v) {
    save_registers(&v->arch);
}

static uint64_t hcr_at_start(const struct vcpu *v) {
    return spin_hcr(v, el2_hcr_guest() & ~HCR_PAUTH);
}

void arch_vcpu_init(struct vcpu *v) {
    v->arch.hcr = hcr_at_start(v);
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
    a->hcr = hcr_at_start(v);
    a->fp_here = false; /* it may have ended without being saved */
    a->cleaned = 0;
    a->vtimer = (struct guest_timer){0, 0};
    guest_ptimer_reset(v);
    debug_reset(v);
    vgic_cpuif_reset(&a->vgic);
}
