/* SPDX-License-Identifier: GPL-2.0-only */
/* Physical interrupts: who handles which. */
#include "arch/arm64/gic.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/guest_timer.h"
#include "arch/arm64/host.h"
#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/timer.h"
#include "arch/arm64/trap.h"
#include "arch/arm64/uart.h"
#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/vm.h"

static void handle(unsigned intid) {
    struct vcpu *current = this_pcpu()->current;

    switch (intid) {
    case GIC_SGI_KICK: /* that we are here is all it wanted */
        break;
    case GIC_SGI_TRACE:
        traced_apply();
        break;
    case GIC_PPI_VTIMER:
        timer_virtual_interrupt(current);
        return; /* stays active until the guest deactivates it */
    case GIC_PPI_HYP_TIMER:
        timer_acknowledge();
        timer_run();
        break;
    case GIC_PPI_MAINTENANCE:
        if (current != NULL && current->on_pcpu) {
            gic_virt_maintenance(current);
        }
        break;
    default:
        if (intid == host.uart_intid) {
            uart_acknowledge();
            console_interrupt();
        } else {
            console_printf_limited(NULL, "interrupt %u: found no handler for it", intid);
        }
    }
    gic_deactivate(intid);
}

void arch_handle_interrupts(void) {
    for (unsigned intid = gic_acknowledge(); intid < GIC_SPURIOUS; intid = gic_acknowledge()) {
        handle(intid);
    }
    /*
     * The timer may have fired, or who kicked us may have brought the end of the slice forward. An alarm
     * that comes too early does no harm. At 0 another is picked next, and that sets the timer.
     */
    struct pcpu *p = this_pcpu();
    uint64_t end = sched_slice_end(p->index);
    if (end != 0 && (end < p->armed || p->armed == TIMER_NEVER)) {
        timer_program(end);
    }
}

bool arch_interrupt_pending(void) {
    return read_sysreg(ISR_EL1) != 0;
}

void arch_wait_for_interrupt(void) {
    __asm__ volatile("dsb sy\n wfi" : : : "memory");
}

void port_kick_cpu(unsigned cpu) {
    struct pcpu *p = this_pcpu();

    if (cpu != p->index) {
        gic_kick(pcpus[cpu]);
    } else if (p->current != NULL) { /* an idle pCPU looks again anyway */
        atomic_fetch_or(&p->current->requests, REQUEST_SLICE);
    }
}

unsigned port_this_cpu(void) {
    return this_pcpu()->index;
}

void port_relax(void) {
    __asm__ volatile("yield" : : : "memory");
}

void arch_vcpu_requests(struct vcpu *v, uint32_t requests) {
    if ((requests & REQUEST_TIMER) != 0) {
        guest_ptimer_update_line(v);
        timer_set(&v->timer, arch_vcpu_deadline(v, false));
    }
    if ((requests & (REQUEST_IRQ | REQUEST_IRQ_SYNC)) != 0 || vgic_dirty(&v->arch.vgic)) {
        gic_virt_refill(v);
    }
}

bool arch_vcpu_pending(struct vcpu *v) {
    gic_virt_fold(v);
    if (!vgic_pending(&v->arch.vgic)) {
        return false; /* the switch that follows fills again */
    }
    vcpu_request(v, REQUEST_IRQ);
    return true;
}
