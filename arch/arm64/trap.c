/* SPDX-License-Identifier: GPL-2.0-only */
/* Why a guest was left, and what is done about it. */
#include "arch/arm64/trap.h"

#include "arch/arm64/devices.h"
#include "arch/arm64/el2_state.h"
#include "arch/arm64/esr.h"
#include "arch/arm64/fp.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/hypercall.h"
#include "arch/arm64/inject.h"
#include "arch/arm64/pauth.h"
#include "arch/arm64/spin_trap.h"
#include "arch/arm64/sysreg.h"
#include "arch/arm64/sysreg_access.h"
#include "core/rare.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/exits.h"
#include "hyp/spin.h"
#include "hyp/vm.h"

#define PSTATE_T32 (1ull << 5)
#define ISR_A      (1ull << 8) /* an SError is pending */

static enum verdict undefined(struct vcpu *v, uint64_t esr) {
    console_printf_limited(v->vm, "vm %s vcpu %u: undefined to the guest: pc=%lx esr=%lx",
                           v->vm->config->name, v->index, v->arch.pc, esr);
    inject_undefined(v, esr);
    return RESUME;
}

/* Condition `cond` (F1.3.1) against the flags in pstate. */
static bool condition_holds(unsigned cond, uint64_t pstate) {
    bool n = (pstate >> 31 & 1u) != 0, z = (pstate >> 30 & 1u) != 0;
    bool c = (pstate >> 29 & 1u) != 0, o = (pstate >> 28 & 1u) != 0;
    bool base;

    switch (cond >> 1) {
    case 0:
        base = z;
        break;
    case 1:
        base = c;
        break;
    case 2:
        base = n;
        break;
    case 3:
        base = o;
        break;
    case 4:
        base = c && !z;
        break;
    case 5:
        base = n == o;
        break;
    case 6:
        base = n == o && !z;
        break;
    default:
        return true;
    }
    return base != ((cond & 1u) != 0);
}

/* An AArch32 instruction may trap although its condition fails; then it is an empty one. */
static bool condition_failed(const struct vcpu *v, uint64_t esr) {
    uint64_t pstate = v->arch.pstate;
    unsigned cond = (unsigned)(esr >> ESR_COND_SHIFT) & 15u;

    if ((pstate & PSTATE_M32) == 0) {
        return false;
    }
    if ((esr & ESR_CV) == 0) { /* T32: the IT block says (IT[7:4], or always outside one) */
        uint64_t it = (pstate >> 25 & 3u) | (pstate >> 10 & 63u) << 2;
        cond = (pstate & PSTATE_T32) == 0 || it == 0 ? 14u : (unsigned)(it >> 4);
    }
    return !condition_holds(cond, pstate);
}

static enum verdict trap_wfx(struct vcpu *v, uint64_t esr) {
    if ((v->arch.pstate & PSTATE_M32) != 0 && condition_failed(v, esr)) {
        skip_instruction(v, esr);
        return RESUME;
    }
    skip_instruction(v, esr);
    if ((esr & WFX_TI) == 0) {
        exit_reason(v, EXIT_WFI);
        return BLOCK;
    }
    /* Waits with an end that the guest set, or for an event: to go on is always allowed, and to
     * give up the CPU is. */
    exit_reason(v, EXIT_WFE);
    return vcpu_spins(this_pcpu(), v);
}

static enum verdict trap_sysreg(struct vcpu *v, uint64_t esr) {
    uint32_t iss = (uint32_t)esr & 0x1ffffffu;

    exit_reason(v, EXIT_SYSREG);
    if (sysreg_sends_sgi(iss)) { /* as sysreg_access() does, and quicker */
        unsigned rt = sysreg_iss_rt(iss);

        vgic_send_sgi(&v->arch.vgic, rt < 31 ? v->arch.x[rt] : 0, VGIC_SGI1R);
        skip_aarch64(v);
        return RESUME;
    }
    if (sysreg_needs_fold(iss)) {
        gic_virt_fold(v);
        vcpu_request(v, REQUEST_IRQ);
    }
    switch (sysreg_access(v, iss)) {
    case SYSREG_DONE:
        skip_aarch64(v);
        return RESUME;
    case SYSREG_AGAIN:
        return RESUME;
    default:
        if (sysreg_is_pauth_key(iss) && pauth_enable(v)) {
            return RESUME;
        }
        return undefined(v, esr);
    }
}

/* The first FP instruction of a turn, or a coprocessor access of an AArch32 program: nothing of
 * that kind is emulated. */
static enum verdict trap_coprocessor(struct vcpu *v, uint64_t esr) {
    exit_reason(v, EXIT_OTHER);
    if (esr_class(esr) == EC_FP && fp_enable(&v->arch)) {
        return RESUME; /* whatever its condition */
    }
    if (condition_failed(v, esr)) {
        skip_instruction(v, esr);
        return RESUME;
    }
    return undefined(v, esr);
}

struct vcpu *trap_sync(struct vcpu *v, uint64_t now) {
    struct pcpu *p = this_pcpu();
    uint64_t esr = read_sysreg(ESR_EL2);
    enum verdict verdict;

    exit_begin(p, now);
    v->arch.esr = esr;
    switch (esr_class(esr)) {
    case EC_HVC64:
        exit_reason(v, EXIT_HVC);
        verdict = hypercall(v);
        break;
    case EC_WFX:
        verdict = trap_wfx(v, esr);
        break;
    case EC_SYSREG:
        verdict = trap_sysreg(v, esr);
        break;
    case EC_DATA_LOWER:
    case EC_INSTRUCTION_LOWER:
        verdict = devices_abort(v, esr);
        break;
    case EC_SMC64:
        exit_reason(v, EXIT_SMC);
        skip_instruction(v,
                         esr); /* the trap came instead of the instruction, other than with HVC */
        verdict = hypercall(v);
        break;
    case EC_PAUTH:
        exit_reason(v, EXIT_OTHER);
        verdict = pauth_enable(v) ? RESUME : undefined(v, esr);
        break;
    case EC_CP15_32:
    case EC_CP15_64:
    case EC_CP14_32:
    case EC_CP14_LS:
    case EC_CP14_64:
    case EC_CP10:
    case EC_FP:
        verdict = trap_coprocessor(v, esr);
        break;
    default:
        exit_reason(v, EXIT_OTHER);
        verdict = undefined(v, esr);
    }
    /* The common end: nobody wants anything. */
    if (verdict == RESUME && atomic_load_explicit(&v->requests, memory_order_acquire) == 0) {
        exit_end(p, v, port_clock());
        return v;
    }
    return vcpu_next_handled(p, v, verdict);
}

struct vcpu *trap_irq(struct vcpu *v, uint64_t now) {
    struct pcpu *p = this_pcpu();

    exit_begin(p, now);
    exit_reason(v, EXIT_IRQ);
    spin_trap_again(v);
    vcpu_count_irq(p, v);
    arch_handle_interrupts();
    return vcpu_next(p, v, RESUME);
}

static const char serror[] = "SError: a bus error that its memory accesses caused";

/* Masked in EL2 but here. Its vector does nothing: to have been taken is the end of it. */
RARE static void take_serror(struct vcpu *v) {
    let_serror_in();
    vm_crash(v, serror);
}

bool arch_vcpu_serror(struct vcpu *v) {
    if (!v->on_pcpu || (read_sysreg(ISR_EL1) & ISR_A) == 0) {
        return false;
    }
    take_serror(v);
    return true;
}

struct vcpu *trap_serror(struct vcpu *v, uint64_t now) {
    struct pcpu *p = this_pcpu();

    exit_begin(p, now);
    exit_reason(v, EXIT_OTHER);
    v->arch.esr = read_sysreg(ESR_EL2);
    vm_crash(v, serror);
    return vcpu_next(p, v, POWER_DOWN);
}

void trap_own_fault(uint64_t kind, uint64_t esr, uint64_t elr, uint64_t far, uint64_t sp,
                    uint64_t lr) {
    panic("exception in the hypervisor: kind %lu esr=%lx pc=%lx far=%lx sp=%lx lr=%lx cpu=%u", kind,
          esr, elr, far, sp, lr, this_pcpu() != NULL ? this_pcpu()->index : 0);
}

void arch_vcpu_report(struct vcpu *v) {
    const struct arch_vcpu *a = &v->arch;

    console_printf("  pc=%lx pstate=%lx esr=%lx far=%lx", a->pc, a->pstate, a->esr,
                   read_sysreg(FAR_EL2));
    console_printf("  el1: esr=%lx far=%lx elr=%lx spsr=%lx vbar=%lx sctlr=%lx",
                   read_sysreg(ESR_EL1), read_sysreg(FAR_EL1), read_sysreg(ELR_EL1),
                   read_sysreg(SPSR_EL1), read_sysreg(VBAR_EL1), read_sysreg(SCTLR_EL1));
    for (unsigned i = 0; i < 28; i += 4) {
        console_printf("  x%u=%lx x%u=%lx x%u=%lx x%u=%lx", i, a->x[i], i + 1, a->x[i + 1], i + 2,
                       a->x[i + 2], i + 3, a->x[i + 3]);
    }
    console_printf("  x28=%lx x29=%lx x30=%lx", a->x[28], a->x[29], a->x[30]);
}
