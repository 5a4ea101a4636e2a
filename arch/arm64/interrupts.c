/* SPDX-License-Identifier: GPL-2.0-only */
/* Physical interrupts: who handles which. */
#include "arch/arm64/gic.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/guest_timer.h"
#include "arch/arm64/host.h"
#include "arch/arm64/spin_trap.h"
#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/timer.h"
#include "arch/arm64/trap.h"
#include "arch/arm64/uart.h"
#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/vm.h"

/* Whether the end of the slice may have come nearer, or the alarm that watched it is over. */
static inline bool handle(struct vcpu *current, unsigned intid) {
    bool look = false;

    switch (intid) {
    case GIC_SGI_KICK: /* that we are here is all it wanted */
        look = true;
        break;
    case GIC_SGI_TRACE:
        traced_apply();
        break;
    case GIC_PPI_VTIMER:
        timer_virtual_interrupt(current);
        return false; /* stays active until the guest deactivates it */
    case GIC_PPI_HYP_TIMER:
        timer_acknowledge();
        timer_run();
        look = true;
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
    return look;
}

void arch_handle_interrupts(void) {
    struct pcpu *p = this_pcpu();
    bool look = false;

    for (unsigned intid = gic_acknowledge(); intid < GIC_SPURIOUS; intid = gic_acknowledge()) {
        look |= handle(p->current, intid);
    }
    if (look) {
        uint64_t end = sched_slice_end(p->index);

        if (end != 0) { /* at 0 another is picked next, and that sets the timer */
            timer_program(end);
        }
    }
}

bool arch_interrupt_pending(void) {
    return read_sysreg(ISR_EL1) != 0;
}

/* bench/profile finds it by its name. */
__attribute__((noinline)) void arch_wait_for_interrupt(void) {
    __asm__ volatile("dsb sy\n wfi" : : : "memory");
}

void port_kick_cpu(unsigned cpu) {
    struct pcpu *p = this_pcpu();

    if (cpu != p->index) {
        gic_kick(pcpus[cpu]);
    } else if (p->current != NULL) { /* an idle pCPU looks again anyway */
        uint64_t end = sched_slice_end(cpu);

        if (end != 0) {
            timer_program(end);
        } else {
            atomic_fetch_or_explicit(&p->current->requests, REQUEST_SLICE, memory_order_relaxed);
        }
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
        guest_ptimer_line_at(v, advance_entry_time(&v->advance, port_clock()));
        timer_set(&v->timer, arch_vcpu_deadline(v, false));
    }
    if ((requests & (REQUEST_IRQ | REQUEST_IRQ_SYNC)) != 0 || vgic_dirty(&v->arch.vgic)) {
        gic_virt_refill(v);
    }
    if ((requests & REQUEST_SPIN) != 0) {
        spin_trap_by_setting(v);
    }
}

bool arch_vcpu_pending(struct vcpu *v) {
    if (!gic_virt_fold_pending(v)) {
        return false; /* the switch that follows fills again */
    }
    vcpu_request(v, REQUEST_IRQ);
    return true;
}
