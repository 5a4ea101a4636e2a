/* SPDX-License-Identifier: GPL-2.0-only */
/* Guest programs: what they can do, what happens then, and what must hold while they run. */
#include "arch/fake/private.h"
#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/exits.h"
#include "hyp/spin.h"

#define FOREVER (1ull << 40) /* a guest that spins is alive: the run ends at its limit */

/* ---- Entry ---- */

static void check(bool good, const struct vcpu *v, const char *what) {
    if (!good) {
        fake_fault("CPU %u: vm %u vcpu %u enters its guest: %s", this_pcpu()->index, v->vm->index,
                   v->index, what);
    }
}

/* All vCPUs of a VM that are in their guests use one number, nobody else uses it, and never 0. */
static void check_vmid(const struct pcpu *p, const struct vcpu *v) {
    check(p->arch.translates == v->vm, v, "another VM's tables");
    check(p->arch.vmid != 0, v, "number 0");
    check(fake_broken.same_vmid || p->arch.vmid == (v->vm->vmid.id & VMID_NUMBER), v,
          "not its VM's number");
    for (unsigned i = 0; i < pcpu_count && !fake_broken.same_vmid; i++) {
        const struct vcpu *other = pcpus[i]->current;
        if (other != NULL && other->on_pcpu && other->arch.run_from != UINT64_MAX) {
            check((other->vm == v->vm) == (pcpus[i]->arch.vmid == p->arch.vmid), v,
                  "a number that another VM has");
        }
    }
}

void guest_check(const struct vcpu *v) {
    const struct pcpu *p = this_pcpu();
    const struct arch_vcpu *a = &v->arch;
    uint32_t state = v->vm->state;

    check(p->current == v && p->loaded == v && v->on_pcpu, v, "it is not the one that is loaded");
    check(v->power >= VCPU_ON, v, "it is off");
    check(a->live, v, "its interrupts are not in the pCPU");
    check(state == VM_RUNNING || state == VM_STOPPING, v, "its VM has no memory yet");
    check(v->sched.state == RUN_RUNNING && v->sched.cpu == p->index && v->sched.on_cpu, v,
          "the scheduler does not know");
    check(cpu_set_has(&v->vm->config->cpus, p->index), v, "not its pCPU");
    check_vmid(p, v);
    check(v->sched.pvlock.record == NULL || *(uint32_t *)v->sched.pvlock.record == 0, v,
          "it is told that it does not run");
    check(p->arch.reg.count == a->true_reg.count && p->arch.reg.space == a->true_reg.space, v,
          "another one's registers");
}

/* The guest takes its interrupts. On arm64 these are more exits; here they are for nothing. */
static void take_interrupts(struct vcpu *v) {
    struct arch_pcpu *p = &this_pcpu()->arch;
    struct arch_vcpu *a = &v->arch;
    uint32_t taken = a->visible;
    uint64_t now = engine_clock();

    a->visible = 0;
    for (unsigned i = 0; i < FAKE_VIRQS; i++) {
        if ((taken >> i & 1u) != 0) {
            a->taken[i]++;
            if (a->since[i] != UINT64_MAX && now - a->since[i] > a->latest[i]) {
                a->latest[i] = now - a->since[i];
            }
            a->since[i] = UINT64_MAX;
        }
    }
    if ((taken & FAKE_VIRQ_VTIMER) != 0) {
        check(p->vtimer.on && now >= p->vtimer.at, v, "a virtual timer that is not due");
        p->vtimer.on = false;
        p->vtimer_active = false;
    }
    if ((taken & FAKE_VIRQ_PTIMER) != 0) {
        check(a->ptimer.on && now >= a->ptimer.at, v, "a physical timer that is not due");
        a->ptimer.on = false;
        vcpu_timer_update(v, false);
    }
}

static void program_main(void *vcpu) {
    struct vcpu *v = vcpu;

    v->arch.entry(v);
    guest_cpu_off(v);
}

/* Lets time pass in the guest; false: an interrupt came first. */
static bool run(struct arch_vcpu *a) {
    if (!engine_interrupted()) {
        uint64_t ran;

        a->run_from = engine_clock();
        ran = engine_sleep(a->left < FOREVER ? a->left : FOREVER, true);
        a->run_from = UINT64_MAX;
        a->ran += ran;
        if (a->left != UINT64_MAX) {
            a->left -= ran;
        }
    }
    return a->left == 0;
}

void guest_enter(struct vcpu *v) {
    struct arch_vcpu *a = &v->arch;

    do {
        if (a->visible != 0 && !a->masked) {
            take_interrupts(v);
        }
        if (a->host == NULL) {
            fiber_begin(a->fiber, program_main, v);
        } else if (a->op == FAKE_RUN && !run(a)) {
            return;
        }
        a->host = engine_fiber();
        fiber_switch(a->host, a->fiber);
        if (a->op == FAKE_WFI && a->visible != 0) { /* nothing to wait for: no trap */
            a->op = FAKE_RUN;
            a->left = 1;
        }
    } while (a->op == FAKE_RUN);
}

enum verdict guest_trap(struct vcpu *v) {
    struct fake_call *c = &v->arch.call;
    int verdict = RESUME;

    switch (v->arch.op) {
    case FAKE_WFI:
        exit_reason(v, EXIT_WFI);
        return BLOCK;
    case FAKE_WFE:
        exit_reason(v, EXIT_WFE);
        return atomic_load(&v->vm->spin) == SPIN_IGNORE ? YIELD : vcpu_spins(this_pcpu(), v);
    default:
        exit_reason(v, EXIT_HVC);
        c->result = c->handler(v, c, &verdict);
        return (enum verdict)verdict;
    }
}

/* ---- What a program can do ---- */

static void did_something(struct vcpu *v) {
    this_pcpu()->arch.reg.count++;
    v->arch.true_reg.count++;
}

static void leave(struct vcpu *v, enum fake_op op) {
    did_something(v);
    v->arch.op = op;
    fiber_switch(v->arch.fiber, v->arch.host);
}

uint64_t guest_clock(void) {
    return engine_clock();
}

void guest_run(struct vcpu *v, uint64_t ticks) {
    if (ticks != 0) {
        v->arch.left = ticks;
        leave(v, FAKE_RUN);
    }
}

void guest_wfi(struct vcpu *v) {
    leave(v, FAKE_WFI);
}

void guest_wfe(struct vcpu *v) {
    leave(v, FAKE_WFE);
}

static int call(struct vcpu *v, struct fake_call c) {
    v->arch.call = c;
    leave(v, FAKE_HVC);
    return v->arch.call.result;
}

/* A call from which nobody comes back. */
static _Noreturn void last_call(struct vcpu *v, struct fake_call c) {
    for (;;) {
        call(v, c);
        fake_fault("vm %u vcpu %u: goes on after its end", v->vm->index, v->index);
        guest_run(v, UINT64_MAX);
    }
}

static int do_cpu_on(struct vcpu *v, const struct fake_call *c, int *verdict) {
    (void)v;
    (void)verdict;
    return vm_vcpu_on(c->target, (uint64_t)(uintptr_t)c->entry, c->arg);
}

int guest_cpu_on(struct vcpu *v, unsigned target, fake_guest *entry, uint64_t arg) {
    return call(v, (struct fake_call){do_cpu_on, v->vm->vcpus[target], entry, arg, 0});
}

static int do_cpu_off(struct vcpu *v, const struct fake_call *c, int *verdict) {
    (void)c;
    vm_vcpu_off(v);
    *verdict = POWER_DOWN;
    return 0;
}

_Noreturn void guest_cpu_off(struct vcpu *v) {
    last_call(v, (struct fake_call){.handler = do_cpu_off});
}

static int do_stop(struct vcpu *v, const struct fake_call *c, int *verdict) {
    vm_stop(v->vm, (enum vm_end)c->arg);
    *verdict = POWER_DOWN;
    return 0;
}

_Noreturn void guest_system_off(struct vcpu *v) {
    last_call(v, (struct fake_call){.handler = do_stop, .arg = VM_END_OFF});
}

_Noreturn void guest_system_reset(struct vcpu *v) {
    last_call(v, (struct fake_call){.handler = do_stop, .arg = VM_END_RESET});
}

static int do_crash(struct vcpu *v, const struct fake_call *c, int *verdict) {
    (void)c;
    vm_crash(v, "it wanted to");
    *verdict = POWER_DOWN;
    return 0;
}

_Noreturn void guest_crash(struct vcpu *v) {
    last_call(v, (struct fake_call){.handler = do_crash});
}

static int do_sgi(struct vcpu *v, const struct fake_call *c, int *verdict) {
    (void)v;
    (void)verdict;
    fake_post(c->target, FAKE_VIRQ_SGI);
    return 0;
}

void guest_sgi(struct vcpu *v, unsigned target) {
    call(v, (struct fake_call){.handler = do_sgi, .target = v->vm->vcpus[target]});
}

static void *any_memory(void *context, uint64_t ipa, uint64_t size) {
    (void)context;
    (void)size;
    return (void *)(uintptr_t)ipa; // NOLINT(performance-no-int-to-ptr)
}

static int do_flag(struct vcpu *v, const struct fake_call *c, int *verdict) {
    const struct pvlock_vm vm = {.ram = any_memory};

    (void)verdict;
    return (int)(c->arg != 0 ? pvsched_init(&v->sched.pvlock, &vm, c->arg)
                             : pvsched_release(&v->sched.pvlock));
}

int guest_flag(struct vcpu *v, struct pvsched_record *record) {
    return call(v, (struct fake_call){.handler = do_flag, .arg = (uintptr_t)record});
}

static int do_kick(struct vcpu *v, const struct fake_call *c, int *verdict) {
    (void)v;
    (void)verdict;
    sched_kick(&c->target->sched);
    return 0;
}

void guest_kick(struct vcpu *v, unsigned target) {
    call(v, (struct fake_call){.handler = do_kick, .target = v->vm->vcpus[target]});
}

static struct fake_timer timer_in(uint64_t ticks) {
    bool on = ticks != UINT64_MAX;

    return (struct fake_timer){on, on ? engine_clock() + ticks : 0};
}

void guest_vtimer(struct vcpu *v, uint64_t ticks) {
    struct arch_pcpu *p = &this_pcpu()->arch;

    did_something(v);
    p->vtimer = timer_in(ticks);
    p->vtimer_active = false;
    v->arch.visible &= ~(uint32_t)FAKE_VIRQ_VTIMER; /* the line falls */
    v->arch.since[0] = UINT64_MAX;
}

static int do_ptimer(struct vcpu *v, const struct fake_call *c, int *verdict) {
    (void)verdict;
    v->arch.ptimer = timer_in(c->arg);
    v->arch.visible &= ~(uint32_t)FAKE_VIRQ_PTIMER;
    v->arch.since[1] = UINT64_MAX;
    vcpu_timer_update(v, false);
    return 0;
}

void guest_ptimer(struct vcpu *v, uint64_t ticks) {
    call(v, (struct fake_call){.handler = do_ptimer, .arg = ticks});
}

void guest_sleep(struct vcpu *v, uint64_t ticks) {
    uint64_t before = v->arch.taken[0];

    guest_vtimer(v, ticks);
    while (v->arch.taken[0] == before) {
        guest_wfi(v);
    }
}

void arch_spin_wait(const struct vcpu *v, struct spin_wait *w) {
    *w = v->arch.wait;
}

enum spin_rank arch_spin_rank(const struct vcpu *v) {
    return v->arch.masked ? SPIN_MASKED : SPIN_KERNEL;
}

/* What stands for an instruction that waits is left each time. */
void arch_spin_untrap(struct vcpu *v) {
    (void)v;
}
