/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/timer.h"

#include "arch/arm64/el2_state.h"
#include "arch/arm64/gic.h"
#include "arch/arm64/guest_timer.h"
#include "arch/arm64/sysreg_access.h"
#include "core/port.h"
#include "core/rare.h"
#include "hyp/arch.h"
#include "hyp/vm.h"

uint64_t port_clock(void) {
    return read_sysreg(CNTPCT_EL0);
}

uint64_t arch_clock_hz(void) {
    return read_sysreg(CNTFRQ_EL0);
}

void arch_timer_arm(uint64_t deadline) {
    if (deadline == TIMER_NEVER) {
        write_sysreg(CNTHP_CTL_EL2, 0);
    } else {
        write_sysreg(CNTHP_CVAL_EL2, deadline);
        write_sysreg(CNTHP_CTL_EL2, GUEST_TIMER_ENABLE);
    } /* in force when the guest is entered, or soon in an idle wait */
}

void timer_acknowledge(void) {
    write_sysreg(CNTHP_CTL_EL2, 0);
    isb();
    this_pcpu()->armed = TIMER_NEVER;
}

void timer_cpu_init(void) {
    timer_acknowledge();
    write_sysreg(CNTV_CTL_EL0, 0);
    write_sysreg(CNTP_CTL_EL0, 0);
    isb();
}

bool timer_virtual_line(void) {
    return (read_sysreg(CNTV_CTL_EL0) & 7u) == (GUEST_TIMER_ENABLE | GUEST_TIMER_ISTATUS);
}

bool timer_virtual_line_at_entry(const struct vcpu *v) {
    return v->advance.bound &&
           guest_timer_line(read_sysreg(CNTV_CTL_EL0), read_sysreg(CNTV_CVAL_EL0),
                            v->advance.due - v->vm->arch.cntvoff);
}

void timer_virtual_interrupt(struct vcpu *v) {
    if (v != NULL && v->on_pcpu) {
        vgic_hw_fired(&v->arch.vgic, GIC_PPI_VTIMER);
        atomic_fetch_or_explicit(&v->requests, REQUEST_IRQ,
                                 memory_order_relaxed); /* it runs here */
    } else {
        gic_deactivate(GIC_PPI_VTIMER); /* it fired just before its vCPU left */
    }
}

void timer_save(struct vcpu *v) {
    v->arch.vtimer.ctl = read_sysreg(CNTV_CTL_EL0) & (GUEST_TIMER_ENABLE | GUEST_TIMER_IMASK);
    v->arch.vtimer.cval = read_sysreg(CNTV_CVAL_EL0);
    write_sysreg(CNTV_CTL_EL0, 0);
    this_pcpu()->arch.vtimer_active = vgic_hw_held(&v->arch.vgic, GIC_PPI_VTIMER);
}

/* Whether reads of CNTPCT_EL0 trap. */
RARE static void trap_counter(struct arch_pcpu *p, bool trapped) {
    p->counter_trapped = trapped;
    write_sysreg(CNTHCTL_EL2, trapped ? UINT64_C(0) : CNTHCTL_EL1PCTEN);
}

void timer_load(struct vcpu *v) {
    struct arch_pcpu *p = &this_pcpu()->arch;
    const struct arch_vm *vm = &v->vm->arch;
    uint64_t offset = vm->cntvoff, ctl = v->arch.vtimer.ctl, cval = v->arch.vtimer.cval;
    bool trapped = vm->cntpoff != 0;
    bool active = vgic_hw_active(&v->arch.vgic, GIC_PPI_VTIMER);

    /* What is due already needs no interrupt of the hardware's, and no exit, to say so. */
    uint64_t entry = advance_entry_time(&v->advance, port_clock());
    if (ctl == GUEST_TIMER_ENABLE && cval <= entry - offset) {
        vgic_hw_fired(&v->arch.vgic, GIC_PPI_VTIMER);
        active = true;
    }
    if (v->arch.ptimer.ctl != 0) { /* if it is off, its line is low */
        guest_ptimer_line_at(v, entry);
    }
    if (active != p->vtimer_active) {
        p->vtimer_active = active;
        gic_set_ppi_active(GIC_PPI_VTIMER, active);
    }
    if (trapped != p->counter_trapped) {
        trap_counter(p, trapped);
    }
    write_sysreg(CNTVOFF_EL2, offset);
    write_sysreg(CNTV_CVAL_EL0, cval);
    write_sysreg(CNTV_CTL_EL0, ctl);
    isb();
}

/*
 * When to look at a timer: at its deadline, or at once if it has expired and its interrupt's line
 * was not raised yet. Once that is done there is nothing to wait for: what the guest does next
 * raises or lowers the line. So a guest whose interrupt is disabled can sleep beside an expired
 * timer. Most timers are asked for before they expire: then the line need not be looked at.
 */
uint64_t arch_vcpu_deadline(struct vcpu *v, bool blocked) {
    struct arch_vcpu *a = &v->arch;
    uint64_t first = TIMER_NEVER;

    if (a->ptimer.ctl == GUEST_TIMER_ENABLE) {
        first = guest_timer_deadline(a->ptimer.ctl, a->ptimer.cval, v->vm->arch.cntpoff);
        if (first <= advance_entry_time(&v->advance, port_clock()) &&
            (a->vgic.own.line >> GUEST_PTIMER_INTID & 1u) != 0) {
            first = TIMER_NEVER;
        }
    }
    if (blocked && a->vtimer.ctl == GUEST_TIMER_ENABLE) {
        uint64_t virtual = guest_timer_deadline(a->vtimer.ctl, a->vtimer.cval, v->vm->arch.cntvoff);

        if (virtual < first && (virtual > advance_entry_time(&v->advance, port_clock()) ||
                                !vgic_hw_active(&a->vgic, GIC_PPI_VTIMER))) {
            first = virtual;
        }
    }
    return first;
}
