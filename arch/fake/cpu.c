/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract of include/hyp/arch.h but for the machine (engine.c) and the TLB (tlb.c). Where
 * arm64 has a choice of when to do something, this does it as arm64 does.
 */
#include "arch/fake/private.h"
#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/exits.h"
#include "hyp/trace.h"

/* ---- Timers and interrupts of the pCPU ---- */

static bool line(const struct fake_timer *t, uint64_t now) {
    return t->on && now >= t->at;
}

bool cpu_interrupt_pending(const struct pcpu *p) {
    uint64_t now = engine_clock();

    return p->arch.kicked || now >= p->arch.hyp_timer ||
           (!p->arch.vtimer_active && line(&p->arch.vtimer, now));
}

uint64_t cpu_next_interrupt(const struct pcpu *p) {
    uint64_t next = p->arch.hyp_timer;

    if (p->arch.vtimer.on && !p->arch.vtimer_active && p->arch.vtimer.at < next) {
        next = p->arch.vtimer.at;
    }
    return next;
}

void arch_timer_arm(uint64_t deadline) {
    fake_step();
    this_pcpu()->arch.hyp_timer = deadline;
}

/* Remembers when the interrupt became due, for how late it is taken. */
static void due(struct vcpu *v, unsigned virq, uint64_t when) {
    if (v->arch.since[virq] == UINT64_MAX) {
        v->arch.since[virq] = when;
    }
}

void fake_post(struct vcpu *v, uint32_t virq) {
    for (unsigned i = 0; i < FAKE_VIRQS; i++) {
        if ((virq >> i & 1u) != 0 && v->power == VCPU_ON) { /* one that is off may take its time */
            due(v, i, engine_clock());
        }
    }
    fake_step();
    atomic_fetch_or(&v->arch.posted, virq);
    vcpu_request_and_wake(v, REQUEST_IRQ);
}

static void show_vtimer(struct vcpu *v) {
    v->arch.visible |= FAKE_VIRQ_VTIMER;
    due(v, 0, this_pcpu()->arch.vtimer.at);
}

/* It goes on being active until the guest has dealt with it, also while the guest is elsewhere. */
static void vtimer_interrupt(struct pcpu *p) {
    struct vcpu *v = p->current;

    p->arch.vtimer_active = true;
    if (v == NULL || !v->on_pcpu) {
        fake_fault("CPU %u: the virtual timer of nobody fired", p->index);
        p->arch.vtimer.on = false;
        return;
    }
    show_vtimer(v);
    vcpu_request(v, REQUEST_IRQ);
}

void arch_handle_interrupts(void) {
    struct pcpu *p = this_pcpu();

    fake_step();
    for (;;) {
        if (p->arch.kicked) {
            p->arch.kicked = false; /* that we are here is all it wanted */
        } else if (port_clock() >= p->arch.hyp_timer) {
            p->arch.hyp_timer = TIMER_NEVER;
            p->armed = TIMER_NEVER;
            timer_run();
        } else if (!p->arch.vtimer_active && line(&p->arch.vtimer, engine_clock())) {
            vtimer_interrupt(p);
        } else if (!engine_device()) {
            break;
        }
    }
    uint64_t end = sched_slice_end(p->index);

    if (end != 0) { /* at 0 another is picked next, and that sets the timer: as arm64 does it */
        timer_program(end);
    }
}

/* ---- vCPUs ---- */

void arch_vcpu_init(struct vcpu *v) {
    v->arch.fiber = boot_alloc(sizeof(struct fiber));
    fiber_init(v->arch.fiber, 64u << 10);
    v->arch.run_from = UINT64_MAX;
}

void arch_vcpu_reset(struct vcpu *v, uint64_t pc, uint64_t arg) {
    struct arch_vcpu *a = &v->arch;

    fake_step();
    if (v->on_pcpu) {
        fake_fault("vm %u vcpu %u: reset while it is on a pCPU", v->vm->index, v->index);
    }
    a->reg = a->true_reg = (struct fake_registers){0, 0};
    a->vtimer = a->ptimer = (struct fake_timer){false, 0};
    a->vtimer_active = false;
    a->visible &= FAKE_VIRQ_SGI;
    a->masked = false;
    for (unsigned i = 0; i < 2; i++) {
        a->since[i] = UINT64_MAX;
    }
    a->left = 0;
    a->entry = (fake_guest *)(uintptr_t)pc;
    a->arg = arg;
    a->starts++;
    a->op = FAKE_HVC;
    a->host = NULL; /* guest_enter begins the program anew */
}

/* Timers that are not due: the entry that they were looked at for is not bound any more. */
static void withdraw(struct vcpu *v) {
    struct arch_pcpu *p = &this_pcpu()->arch;
    uint64_t entry = advance_entry_time(&v->advance, engine_clock());

    if ((v->arch.visible & FAKE_VIRQ_VTIMER) != 0 && !line(&p->vtimer, entry)) {
        p->vtimer_active = false;
        v->arch.visible &= ~(uint32_t)FAKE_VIRQ_VTIMER;
        v->arch.since[0] = UINT64_MAX;
    }
    if ((v->arch.visible & FAKE_VIRQ_PTIMER) != 0 && !line(&v->arch.ptimer, entry)) {
        v->arch.visible &= ~(uint32_t)FAKE_VIRQ_PTIMER;
        v->arch.since[1] = UINT64_MAX;
    }
}

void arch_vcpu_load(struct vcpu *v, bool registers_present) {
    struct arch_pcpu *p = &this_pcpu()->arch;
    struct arch_vcpu *a = &v->arch;

    fake_step();
    fake_spend(fake_switch_ticks());
    a->loads++;
    if (!registers_present) {
        p->reg = a->reg;
    }
    p->vtimer = a->vtimer;
    p->vtimer_active = a->vtimer_active;
    withdraw(v);
    uint64_t entry = advance_entry_time(&v->advance, port_clock());
    if (!p->vtimer_active && line(&p->vtimer, entry)) {
        p->vtimer_active = true; /* no interrupt and no exit needed to see that */
        show_vtimer(v);
    }
    if (line(&a->ptimer, entry)) {
        a->visible |= FAKE_VIRQ_PTIMER;
        due(v, 1, a->ptimer.at);
    }
    a->visible |= atomic_exchange(&a->posted, 0);
    a->live = true;
}

void arch_vcpu_save(struct vcpu *v) {
    fake_step();
    v->arch.reg = this_pcpu()->arch.reg;
}

void arch_vcpu_quiesce(struct vcpu *v) {
    struct arch_pcpu *p = &this_pcpu()->arch;

    fake_step();
    v->arch.vtimer = p->vtimer;
    v->arch.vtimer_active = p->vtimer_active;
    p->vtimer.on = false;
    p->vtimer_active = false;
    v->arch.live = false;
}

void arch_vcpu_requests(struct vcpu *v, uint32_t requests) {
    fake_step();
    if ((requests & REQUEST_TIMER) != 0) {
        withdraw(v);
        if (line(&v->arch.ptimer, advance_entry_time(&v->advance, port_clock()))) {
            v->arch.visible |= FAKE_VIRQ_PTIMER;
            due(v, 1, v->arch.ptimer.at);
        }
        timer_set(&v->timer, arch_vcpu_deadline(v, false));
    }
    if ((requests & (REQUEST_IRQ | REQUEST_IRQ_SYNC)) != 0) {
        fake_spend(fake_refill_ticks());
        v->arch.visible |= atomic_exchange(&v->arch.posted, 0);
        v->arch.live = true;
    }
}

bool arch_vcpu_serror(struct vcpu *v) {
    struct arch_pcpu *hw = &this_pcpu()->arch;

    if (!v->on_pcpu || !hw->serror) {
        return false;
    }
    hw->serror = false;
    vm_crash(v, "SError");
    return true;
}

bool arch_vcpu_pending(struct vcpu *v) {
    fake_step();
    v->arch.live = false; /* as arm64 takes them out of the list registers to look at them */
    if (v->arch.visible == 0 && atomic_load(&v->arch.posted) == 0) {
        return false;
    }
    vcpu_request(v, REQUEST_IRQ);
    return true;
}

uint64_t arch_vcpu_deadline(struct vcpu *v, bool blocked) {
    const struct arch_vcpu *a = &v->arch;
    uint64_t first = TIMER_NEVER;

    fake_step();
    if (a->ptimer.on && (a->visible & FAKE_VIRQ_PTIMER) == 0) {
        first = a->ptimer.at;
    }
    if (blocked && a->vtimer.on && a->vtimer.at < first) {
        first = a->vtimer.at;
    }
    return first;
}

void arch_vcpu_report(struct vcpu *v) {
    console_printf("  count=%lu", v->arch.true_reg.count);
}

void arch_trace_changed(void) {
    /* nothing to change: arch_enter() asks each time */
}

_Noreturn void arch_enter(struct vcpu *v) {
    struct arch_pcpu *hw = &this_pcpu()->arch;

    hw->entering = v;
    hw->looping = true;
    (void)setjmp(hw->loop);
    v = this_pcpu()->arch.entering;
    for (;;) {
        fake_step();
        guest_check(v);
        trace_vcpu(TRACE_ENTER, v, 0);
        guest_enter(v);
        exit_begin(this_pcpu(), port_clock());
        trace_vcpu(TRACE_EXIT, v, v->arch.op == FAKE_RUN ? EXIT_IRQ : EXIT_OTHER);
        if (v->arch.op == FAKE_RUN) {
            exit_reason(v, EXIT_IRQ);
            vcpu_count_irq(this_pcpu(), v);
            arch_handle_interrupts();
            v = vcpu_next(this_pcpu(), v, RESUME);
        } else {
            v = vcpu_next_handled(this_pcpu(), v, guest_trap(v));
        }
    }
}

_Noreturn void arch_enter_at(struct vcpu *v, uint64_t when, uint64_t *arrived) {
    struct arch_pcpu *hw = &this_pcpu()->arch;

    fake_step();
    *arrived = engine_clock();
    if (*arrived < when) {
        engine_sleep(when - *arrived, false);
    }
    if (!hw->looping) {
        arch_enter(v);
    }
    hw->entering = v;
    longjmp(hw->loop, 1);
}

/* ---- VMs ---- */

ipa_t arch_vm_ram_base(void) {
    return (ipa_t){0x40000000};
}

void arch_vm_init(struct vm *vm) {
    (void)vm; /* its tables are made when it gets its memory */
}

void arch_vm_offer(struct vm *vm) {
    (void)vm;
}

void arch_vm_map_ram(struct vm *vm, uint64_t offset, phys_t piece, uint64_t size) {
    (void)size;
    if (offset == 0) {
        vm->ram = (uint8_t *)piece.v; /* never looked into */
        tlb_vm_init(vm, piece);
    }
}

void arch_vm_reset(struct vm *vm) {
    fake_step();
    vm->arch.resets++;
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        struct arch_vcpu *a = &vm->vcpus[i]->arch;
        if (vm->vcpus[i]->on_pcpu) {
            fake_fault("vm %u: reset while vcpu %u is on a pCPU", vm->index, i);
        }
        if (i != 0 && vm->vcpus[i]->timer.queue != NULL) { /* vCPU 0 is at work here */
            fake_fault("vm %u: reset while a timer of vcpu %u is set", vm->index, i);
        }
        atomic_store(&a->posted, 0);
        a->visible = 0;
        for (unsigned n = 0; n < FAKE_VIRQS; n++) {
            a->since[n] = UINT64_MAX;
        }
    }
}

const char *arch_vm_boot_data(struct vm *vm) {
    (void)vm;
    return NULL;
}

void arch_sync_guest_memory(void *start, uint64_t size) {
    (void)start;
    (void)size;
}

void arch_vm_clock_stood(struct vm *vm, uint64_t ticks) {
    vm->arch.stood += ticks;
}

void arch_vm_uart_line(struct vm *vm, bool level) {
    (void)vm;
    (void)level;
}
