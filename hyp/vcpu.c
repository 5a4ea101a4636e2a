/* SPDX-License-Identifier: GPL-2.0-only */
/* vCPUs on pCPUs: requests, waiting, and the one place where a pCPU changes vCPUs. */
#include "hyp/vcpu.h"

#include "core/port.h"
#include "core/rare.h"
#include "core/relaxed.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/exits.h"
#include "hyp/stats.h"
#include "hyp/trace.h"
#include "hyp/vm.h"
#include "hyp/vmids.h"

static enum run_state state_after(enum verdict verdict) {
    switch (verdict) {
    case BLOCK:
        return RUN_BLOCKED;
    case POWER_DOWN:
    case PAUSE:
        return RUN_OFF;
    default:
        return RUN_RUNNABLE;
    }
}

static void vcpu_timer_fired(struct timer *t) {
    struct vcpu *v = (struct vcpu *)((char *)t - offsetof(struct vcpu, timer));
    trace_vcpu(TRACE_TIMER, v, 0);
    vcpu_request_and_wake(v, REQUEST_TIMER);
}

void vcpu_init(struct vcpu *v, struct vm *vm, unsigned index) {
    v->vm = vm;
    v->index = index;
    v->exit = &v->exits[EXIT_REASONS];
    timer_init(&v->timer, vcpu_timer_fired);
    advance_init(&v->advance, vm->config->advance_ns);
    sched_entity_init(&v->sched, vm->config->weight, vm->config->cpus);
    v->sched.id = trace_who(v);
    if (index != 0) {
        sched_entity_join(&v->sched, &vm->vcpus[0]->sched);
    }
    arch_vcpu_init(v);
}

/* Leaves `request`, kicks the pCPU where `v` runs, and returns the state that `v` was seen in. */
static inline enum run_state leave_request(struct vcpu *v, uint32_t request) {
    enum run_state state;
    bool known = (atomic_fetch_or(&v->requests, request) & request) == request;

    /*
     * Either we see that it runs, or it sees the request before it enters its guest or has come to
     * wait: both sides write first and look then, with a full barrier (here, and in vcpu_switch) or
     * the scheduler's lock (there) in between. Who left the same request before us, and it is still
     * there, has kicked it.
     */
    atomic_thread_fence(memory_order_seq_cst);
    state = (enum run_state)load_relaxed(&v->sched.state);
    if (state == RUN_RUNNING && !known) {
        unsigned cpu = load_relaxed(&v->sched.cpu);
        if (cpu != this_pcpu()->index) {
            port_kick_cpu(cpu);
        }
    }
    return state;
}

void vcpu_request_other(struct vcpu *v, uint32_t request) {
    (void)leave_request(v, request);
}

/*
 * One that runs or is about to needs no wake, and so no lock of its queue: it looks before it
 * enters its guest, and once more when it has come to wait.
 */
void vcpu_wake_other(struct vcpu *v, uint32_t request) {
    enum run_state state = leave_request(v, request);

    if ((state == RUN_BLOCKED || state == RUN_OFF) && atomic_load(&v->power) != VCPU_OFF) {
        sched_wake(&v->sched);
    }
}

void vcpu_request_off(struct vcpu *v, uint32_t request) {
    (void)leave_request(v, request);
    sched_wake(&v->sched);
}

void vcpu_timer_update(struct vcpu *v, bool blocked) {
    timer_set(&v->timer, arch_vcpu_deadline(v, blocked));
    if (!blocked) {
        timer_program(sched_slice_end(this_pcpu()->index));
    }
}

/* The memory of a VM is being filled, in the time of its first vCPU. True when that is finished. */
static bool load_vm(struct vcpu *v) {
    unsigned cpu = this_pcpu()->index;

    do {
        if (vm_load_step(v->vm)) {
            return true;
        }
        if (arch_interrupt_pending()) {
            arch_handle_interrupts();
        }
    } while (!sched_need_pick(cpu));
    return false;
}

/* vcpu_ready() where it is not plain. */
__attribute__((noinline)) static enum verdict make_ready(struct vcpu *v) {
    if (v->index == 0 && atomic_load(&v->vm->state) == VM_LOADING && !load_vm(v)) {
        return atomic_load(&v->vm->state) == VM_LOADING ? YIELD : POWER_DOWN;
    }
    if (atomic_load(&v->power) != VCPU_PAUSED && !vm_vcpu_started(v)) {
        return POWER_DOWN; /* woken although it is off, or its VM was stopped meanwhile */
    }
    if (atomic_load(&v->power) == VCPU_PAUSED) {
        vm_vcpu_paused(v);
        return PAUSE; /* something woke it: it looks what when it goes on */
    }
    return RESUME;
}

/*
 * RESUME if a vCPU that got this pCPU has a guest to run; starts it when that is due. If not, what
 * becomes of it.
 */
static inline enum verdict vcpu_ready(struct vcpu *v) {
    return atomic_load(&v->power) == VCPU_ON ? RESUME : make_ready(v);
}

/* All of all VMs, and so what siblings left behind. */
__attribute__((noinline, cold)) static void forget_translations(struct pcpu *p) {
    arch_tlb_flush_cpu();
    for (unsigned i = 0; i < vm_count; i++) {
        p->last_vcpu[i] = NULL;
    }
}

/* The pCPU translates for `vm` from now on. What it remembers from before goes if numbers were
 * given to others since. */
static inline void translate_for(struct pcpu *p, struct vm *vm) {
    uint32_t vmid = vmid_enter(&vmids, &p->vmid, &vm->vmid);

    arch_vm_translate(vm, vmid & VMID_NUMBER);
    if ((vmid & VMID_FLUSH) != 0) {
        forget_translations(p);
    }
}

/*
 * Brings `v` onto this pCPU. The order:
 *  1. under which number it translates, and translations that others left behind under that
 *     number, or a sibling, before anything can use them;
 *  2. whether it is here early for a deadline of its own (and for nothing else): then timers are
 *     looked at as they will be by that time, and vcpu_enter_bound() waits for it, last of all;
 *  3. registers, then interrupts and timers (they may find that something is due), for which all
 * that others asked for until now is looked at anyway;
 *  4. its software timer, which may still stand in another pCPU's queue.
 */
static void vcpu_enter_pcpu(struct pcpu *p, struct vcpu *v) {
    struct vcpu **last = &p->last_vcpu[v->vm->index];

    translate_for(p, v->vm);
    if (*last != v) {
        if (*last != NULL) {
            arch_tlb_flush_stage1();
            v->sibling_flushes++;
            trace_vcpu(TRACE_FLUSH, v, 0);
        } else {
            v->sibling_skips++; /* none of this VM's ran here since all was forgotten */
        }
        *last = v;
    }
    uint32_t requests = atomic_load_explicit(&v->requests, memory_order_relaxed);
    if (requests != 0) {
        if ((requests & (REQUEST_TIMER | REQUEST_IRQ)) == REQUEST_TIMER &&
            advance_on(&v->advance)) {
            vcpu_woken(v);
        }
        atomic_fetch_and(&v->requests, REQUEST_STOP | REQUEST_PAUSE | REQUEST_SPIN);
    }
    arch_vcpu_load(v, p->loaded == v);
    p->loaded = v;
    v->on_pcpu = true;
    timer_set(&v->timer, arch_vcpu_deadline(v, false));
}

/*
 * Its interrupts and timers into memory, if they are in this pCPU. When it waits, its software
 * timer watches from now on; a preempted vCPU needs none: it finds out what is due when it comes
 * back.
 */
static void vcpu_quiesce(struct vcpu *v, bool blocked) {
    if (v->on_pcpu) {
        v->on_pcpu = false;
        arch_vcpu_quiesce(v);
    }
    uint64_t deadline = blocked ? arch_vcpu_deadline(v, true) : TIMER_NEVER;
    timer_set(&v->timer, advance_on(&v->advance) ? vcpu_alarm(v, deadline) : deadline);
}

/* Its registers into memory, and others may run it. Its timer is set before: see vcpu_quiesce. */
static void vcpu_release(struct pcpu *p, struct vcpu *v) {
    if (p->loaded == v) {
        arch_vcpu_save(v);
        p->loaded = NULL;
    }
    sched_released(&v->sched);
}

/* Waits for an interrupt: the only time that counts as idle. */
static void idle(struct pcpu *p) {
    uint64_t since = port_clock();

    p->hyp_time += since - p->hyp_since;
    p->hyp_since = 0;
    p->idle_since = since;
    arch_wait_for_interrupt();
    uint64_t until = port_clock();
    if (trace_active()) {
        trace_at(since, TRACE_IDLE, 0, 1);
        trace_at(until, TRACE_IDLE, 0, 0);
    }
    p->idle_time += until - since;
    p->idle_since = 0;
    p->hyp_since = until;
}

/* Runs nothing until there is something to run. */
static struct sched_entity *wait_for_work(struct pcpu *p) {
    struct sched_entity *e;

    p->current = NULL;
    vmid_leave(&p->vmid);
    while ((e = sched_pick(p->index, NULL, RUN_OFF)) == NULL) {
        timer_program(sched_slice_end(p->index));
        idle(p);
        arch_handle_interrupts();
    }
    return e;
}

/*
 * Nobody is to run here, `v` no longer. Its registers, if it waits, are left where they are until
 * another comes: it often is the next, and then they need not move at all.
 */
__attribute__((noinline)) static struct sched_entity *vcpu_idle(struct pcpu *p, struct vcpu *v,
                                                                bool keep) {
    struct sched_entity *e;

    if (!keep) {
        vcpu_release(p, v);
    }
    e = wait_for_work(p);
    if (keep && e != &v->sched) {
        vcpu_release(p, v);
    }
    return e;
}

/* Another one than `v` is to run here, or nobody (`e` is NULL). Whoever it is then. */
static struct vcpu *vcpu_leave(struct pcpu *p, struct vcpu *v, struct sched_entity *e,
                               enum verdict verdict) {
    exit_left(p, v);
    vcpu_quiesce(v, load_relaxed(&v->sched.state) == RUN_BLOCKED);
    if (e != NULL) {
        vcpu_release(p, v);
    } else {
        e = vcpu_idle(p, v, verdict == BLOCK);
    }
    v = vcpu_of_entity(e);
    exit_resumed(p, v);
    p->current = v;
    return v;
}

/* What others asked of the running vCPU. */
__attribute__((noinline)) static enum verdict take_requests(struct vcpu *v, enum verdict verdict) {
    uint32_t requests = atomic_exchange(&v->requests, 0);

    v->irq_held = 0;
    if ((requests & REQUEST_STOP) != 0) {
        vm_vcpu_stopped(v);
        return POWER_DOWN;
    }
    if ((requests & REQUEST_PAUSE) != 0 && atomic_load(&v->power) == VCPU_PAUSED) {
        vm_vcpu_paused(v);
        return PAUSE; /* what else there is waits until it goes on: it looks at all then */
    }
    arch_vcpu_requests(v, requests);
    return verdict;
}

/* Whether `v` must really wait. What others ask for from now on is found after sched_pick(). */
static bool must_block(struct vcpu *v) {
    return atomic_load(&v->requests) == 0 && !arch_vcpu_pending(v);
}

/*
 * Somebody else than `v` may run here: p->current, loaded if it has a guest to run. Returns what
 * becomes of it otherwise.
 */
static enum verdict vcpu_switch(struct pcpu *p, struct vcpu *v, enum verdict verdict) {
    enum verdict otherwise;
    struct sched_entity *e;

    if (verdict == POWER_DOWN) {
        exit_last(p, v, port_clock());
        vcpu_quiesce(v, false); /* it may begin anew at once, with other registers */
        p->loaded = NULL;
    }
    e = sched_pick(p->index, &v->sched, state_after(verdict));
    if (verdict == YIELD) { /* then somebody runs */
        trace_vcpu(TRACE_YIELD, v, e->id);
    }
    if (verdict == BLOCK) {
        if (e == &v->sched) {
            /* called off: arch_vcpu_pending took its interrupts off the hardware */
            vcpu_request(v, REQUEST_IRQ);
        } else {
            /* Who saw that it still ran has woken nobody: see leave_request(). */
            atomic_thread_fence(memory_order_seq_cst);
            if (atomic_load_explicit(&v->requests, memory_order_relaxed) != 0) {
                sched_wake(&v->sched);
            }
        }
    }
    if (e != &v->sched) {
        v = vcpu_leave(p, v, e, verdict);
    }
    otherwise = vcpu_ready(v);
    if (otherwise == RESUME && !v->on_pcpu) {
        vcpu_enter_pcpu(p, v);
    }
    timer_program(sched_slice_end(p->index));
    return otherwise;
}

/*
 * One step of vcpu_next(): p->current is whom to go on with, the result what else becomes of it.
 */
static inline enum verdict next_step(struct pcpu *p, struct vcpu *v, enum verdict verdict) {
    if (atomic_load_explicit(&v->requests, memory_order_acquire) != 0 && v->on_pcpu) {
        verdict = take_requests(v, verdict);
    }
    if (verdict == BLOCK && !must_block(v)) {
        return RESUME;
    }
    if ((verdict != RESUME || sched_need_pick(p->index)) && !arch_vcpu_serror(v)) {
        return vcpu_switch(p, v, verdict);
    }
    return verdict;
}

/*
 * Storms. Interrupts from other vCPUs can come faster than they are handled, and each brings a
 * kick: the guest would never get on. So if one comes in each of IRQ_ROUNDS looks on the way in, or
 * the last IRQ_EXITS exits for interrupts took more than half of this pCPU's time, the vCPU goes in
 * with the request left, which brings no more kicks (leave_request), and looks again after the
 * hold. What this pCPU asks of it ends that: then list registers may be in memory only.
 */
#define IRQ_ROUNDS  4u
#define IRQ_HOLD_NS 100000u /* at most */

static void hold_irq(struct vcpu *v, uint64_t ticks) {
    uint64_t most = stats_ticks(IRQ_HOLD_NS);

    v->irq_held = port_clock() + (ticks < most ? ticks : most);
    timer_program(v->irq_held);
}

RARE void vcpu_look_for_storm(struct pcpu *p, struct vcpu *v) {
    uint64_t now = port_clock(), hyp = p->hyp_time - p->irq_hyp;

    if (hyp > (now - p->irq_since) / 2) {
        hold_irq(v, hyp);
    }
    p->irq_since = now;
    p->irq_hyp = p->hyp_time;
}

/* Whether REQUEST_IRQ, all that is asked of `v`, still waits. Each exit may have used up the alarm
 * for it. */
RARE static bool irq_is_held(struct vcpu *v) {
    if (v->irq_held <= port_clock()) {
        v->irq_held = 0;
        return false;
    }
    timer_program(v->irq_held);
    return true;
}

/*
 * The last look at a vCPU before its guest, where it need not be the one that was left. False:
 * somebody asked for something, or it may not wait for the deadline that it is bound to, and has to
 * look at its timers again.
 */
static inline bool vcpu_may_enter(struct pcpu *p, struct vcpu *v, unsigned *rounds) {
    uint32_t requests = atomic_load_explicit(&v->requests, memory_order_acquire);

    if (requests != 0) {
        if (requests != REQUEST_IRQ || ++*rounds < IRQ_ROUNDS) {
            return false;
        }
        hold_irq(v, UINT64_MAX);
    }
    if (__builtin_expect(v->advance.bound, false)) {
        vcpu_enter_bound(p, v);
        return false;
    }
    exit_end_switched(p, v, port_clock());
    return true;
}

/* vcpu_next() for all cases; `v` need not have come from its guest. Flat: one function for all of
 * it saves and restores registers once. */
__attribute__((noinline, flatten)) static struct vcpu *next_of_all(struct pcpu *p, struct vcpu *v,
                                                                   enum verdict verdict) {
    unsigned rounds = 0;

    for (;;) {
        verdict = next_step(p, v, verdict);
        v = p->current;
        /* If its turn has just begun and somebody wants this pCPU all the same, an interrupt is
         * pending and takes us out again at once. */
        if (verdict == RESUME && vcpu_may_enter(p, v, &rounds)) {
            return v;
        }
        /* Others may go on asking for ever: the timer, by which all others come to run, must not
         * wait. */
        if (arch_interrupt_pending()) {
            arch_handle_interrupts();
        }
    }
}

/* Whether `v` goes on in its guest at once: at most its interrupts have changed. */
static inline bool goes_on(struct pcpu *p, struct vcpu *v) {
    if (atomic_load_explicit(&v->requests, memory_order_acquire) == REQUEST_IRQ) {
        if (v->irq_held != 0 && irq_is_held(v)) {
            exit_end(p, v, port_clock());
            return true;
        }
        atomic_fetch_and(&v->requests, ~(uint32_t)REQUEST_IRQ);
        arch_vcpu_requests(v, REQUEST_IRQ);
    }
    if (atomic_load_explicit(&v->requests, memory_order_acquire) != 0) {
        return false;
    }
    exit_end(p, v, port_clock());
    return true;
}

/* The end of most exits comes first. The call of the rest is the last thing, so that no register
 * is saved for it. */
struct vcpu *vcpu_next(struct pcpu *p, struct vcpu *v, enum verdict verdict) {
    return verdict == RESUME && !sched_need_pick(p->index) && goes_on(p, v)
               ? v
               : next_of_all(p, v, verdict);
}

struct vcpu *vcpu_next_handled(struct pcpu *p, struct vcpu *v, enum verdict verdict) {
    return verdict == RESUME && goes_on(p, v) ? v : next_of_all(p, v, verdict);
}

struct vcpu *vcpu_first(void) {
    struct pcpu *p = this_pcpu();
    struct vcpu *v;
    enum verdict verdict;

    p->online_at = p->hyp_since = port_clock();
    v = vcpu_of_entity(wait_for_work(p));
    exit_resumed(p, v);
    p->current = v;
    verdict = vcpu_ready(v);
    if (verdict == RESUME) {
        vcpu_enter_pcpu(p, v);
    }
    timer_program(sched_slice_end(p->index)); /* no kick need have come before: see vcpu_switch */
    return next_of_all(p, v, verdict);
}
