/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exits and entries as events of a trace. They are recorded around the ordinary handlers, which
 * know nothing of it: the table of vectors that VBAR_EL2 points to decides.
 */
#include "arch/arm64/esr.h"
#include "arch/arm64/gic.h"
#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/trap.h"
#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/trace.h"

#define DETAIL_BITS 24u

/* entry.S */
_Noreturn void enter_guest_at(struct vcpu *v, uint64_t when, uint64_t *arrived);

extern const char vectors[], traced_vectors[]; /* entry.S */

/* What trap_sync() will count the exit as. Set/way operations show as what they are, registers. */
static enum exit_reason reason_of(uint64_t esr) {
    switch (esr_class(esr)) {
    case EC_HVC64:
        return EXIT_HVC;
    case EC_SMC64:
        return EXIT_SMC;
    case EC_WFX:
        return (esr & WFX_TI) == 0 ? EXIT_WFI : EXIT_WFE;
    case EC_SYSREG:
        return EXIT_SYSREG;
    case EC_DATA_LOWER:
        return (esr & (ABORT_ISV | ABORT_S1PTW)) == ABORT_ISV ? EXIT_MMIO : EXIT_ABORT;
    case EC_INSTRUCTION_LOWER:
        return EXIT_ABORT;
    default:
        return EXIT_OTHER;
    }
}

static void left(struct vcpu *v, uint64_t now, enum exit_reason reason, uint64_t esr) {
    if (trace_active()) { /* this pCPU may not know yet that it is over */
        uint32_t detail = (uint32_t)esr & ((1u << DETAIL_BITS) - 1);
        trace_at(now, TRACE_EXIT, trace_who(v), (uint32_t)reason | detail << 8);
    }
}

static struct vcpu *entered(struct vcpu *v) {
    trace_vcpu(TRACE_ENTER, v, 0);
    return v;
}

struct vcpu *traced_sync(struct vcpu *v, uint64_t now) {
    uint64_t esr = read_sysreg(ESR_EL2);

    left(v, now, reason_of(esr), esr);
    return entered(trap_sync(v, now));
}

struct vcpu *traced_irq(struct vcpu *v, uint64_t now) {
    left(v, now, EXIT_IRQ, 0);
    return entered(trap_irq(v, now));
}

struct vcpu *traced_serror(struct vcpu *v, uint64_t now) {
    left(v, now, EXIT_OTHER, read_sysreg(ESR_EL2));
    return entered(trap_serror(v, now));
}

/* With its entry in the trace before the wait, as of its end: nothing may come after that. */
void arch_enter_at(struct vcpu *v, uint64_t when, uint64_t *arrived) {
    if (trace_active() && read_sysreg(VBAR_EL2) == (uint64_t)traced_vectors) {
        uint64_t now = port_clock();

        trace_at(now < when ? when : now, TRACE_ENTER, trace_who(v), 0);
    }
    enter_guest_at(v, when, arrived);
}

void traced_apply(void) {
    write_sysreg(VBAR_EL2, (uint64_t)(trace_active() ? traced_vectors : vectors));
    isb();
}

void arch_trace_changed(void) {
    traced_apply();
    for (unsigned i = 0; i < pcpu_count; i++) {
        /* one that is not set up yet looks afterwards */
        if (i != port_this_cpu() && __atomic_load_n(&pcpus[i]->arch.gicr, __ATOMIC_SEQ_CST) != 0) {
            gic_send_sgi(pcpus[i], GIC_SGI_TRACE);
        }
    }
}
