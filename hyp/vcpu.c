/* SPDX-License-Identifier: GPL-2.0-only */
/* vCPUs on pCPUs: requests, waiting, and the one place where a pCPU changes vCPUs. */
#include "hyp/vcpu.h"

#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/exits.h"
#include "hyp/stats.h"
#include "hyp/trace.h"
#include "hyp/vm.h"

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
    arch_vcpu_init(v);
}

void vcpu_request_other(struct vcpu *v, uint32_t request) {
    atomic_fetch_or(&v->requests, request);
    /*
     * Either we see that it runs, or it sees the request before it enters its guest: both sides
     * write first and look then, with a full barrier (here) or the scheduler's lock (there) in
     * between.
     */
    atomic_thread_fence(memory_order_seq_cst);
    if (__atomic_load_n(&v->sched.state, __ATOMIC_RELAXED) == RUN_RUNNING) {
        unsigned cpu = __atomic_load_n(&v->sched.cpu, __ATOMIC_RELAXED);
        if (cpu != this_pcpu()->index) {
            port_kick_cpu(cpu);
        }
    }
}

void vcpu_wake_other(struct vcpu *v, uint32_t request) {
    vcpu_request_other(v, request);
    if (atomic_load(&v->power) != VCPU_OFF) {
        sched_wake(&v->sched);
    }
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

/*
 * Whether a vCPU that got this pCPU has a guest to run; starts it when that is due. If not,
 * `otherwise` says what becomes of it.
 */
__attribute__((noinline)) static bool make_ready(struct vcpu *v, enum verdict *otherwise) {
    if (v->index == 0 && atomic_load(&v->vm->state) == VM_LOADING && !load_vm(v)) {
        *otherwise = atomic_load(&v->vm->state) == VM_LOADING ? YIELD : POWER_DOWN;
        return false;
    }
    if (atomic_load(&v->power) != VCPU_PAUSED && !vm_vcpu_started(v)) {
        *otherwise = POWER_DOWN; /* woken although it is off, or its VM was stopped meanwhile */
        return false;
    }
    if (atomic_load(&v->power) == VCPU_PAUSED) {
        *otherwise = PAUSE; /* something woke it: it looks what when it goes on */
        return false;
    }
    return true;
}

static inline bool vcpu_ready(struct vcpu *v, enum verdict *otherwise) {
    return atomic_load(&v->power) == VCPU_ON || make_ready(v, otherwise);
}

/*
 * Brings `v` onto this pCPU. The order:
 *  1. translations that a sibling left behind, before anything can use them;
 *  2. whether it is here early for a deadline of its own (and for nothing else): then timers are
 * looked at as they will be by that time, and vcpu_enter_bound() waits for it, last of all;
 *  3. registers, then interrupts and timers (they may find that something is due), for which all
 * that others asked for until now is looked at anyway;
 *  4. its software timer, which may still stand in another pCPU's queue.
 */
static void vcpu_enter_pcpu(struct pcpu *p, struct vcpu *v) {
    struct vcpu **last = &p->last_vcpu[v->vm->index];

    if (*last != v) {
        if (*last != NULL) {
            arch_tlb_flush_local(v->vm);
            v->sibling_flushes++;
            trace_vcpu(TRACE_FLUSH, v, 0);
        } else {
            v->sibling_skips++; /* no vCPU of this VM ever ran here */
        }
        *last = v;
    }
    uint32_t requests = atomic_load(&v->requests);
    if (requests != 0) {
        if ((requests & (REQUEST_TIMER | REQUEST_IRQ)) == REQUEST_TIMER &&
            advance_on(&v->advance)) {
            vcpu_woken(v);
        }
        atomic_fetch_and(&v->requests, REQUEST_STOP | REQUEST_PAUSE);
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
    while ((e = sched_pick(p->index, NULL, RUN_OFF)) == NULL) {
        timer_program(sched_slice_end(p->index));
        idle(p);
        arch_handle_interrupts();
    }
    return e;
}

/*
 * Another one than `v` is to run here, or nobody (`e` is NULL). While nobody does, the registers of
 * one that waits are left where they are: it often is the next, and then they need not move at all.
 */
static struct vcpu *vcpu_leave(struct pcpu *p, struct vcpu *v, struct sched_entity *e,
                               enum verdict verdict) {
    bool blocked = __atomic_load_n(&v->sched.state, __ATOMIC_RELAXED) == RUN_BLOCKED;
    bool keep = e == NULL && verdict == BLOCK;

    exit_left(p, v);
    vcpu_quiesce(v, blocked);
    if (!keep) {
        vcpu_release(p, v);
    }
    if (e == NULL) {
        e = wait_for_work(p);
        if (keep && e != &v->sched) {
            vcpu_release(p, v);
        }
    }
    v = vcpu_of_entity(e);
    exit_resumed(p, v);
    p->current = v;
    return v;
}

/*
 * Somebody else may run here; out of line, as it is rare. Returns whom to go on with, loaded if it
 * has a guest to run; *verdict says what becomes of it otherwise.
 */
__attribute__((noinline)) static struct vcpu *vcpu_switch(struct pcpu *p, struct vcpu *v,
                                                          enum verdict *verdict) {
    struct sched_entity *e;

    if (*verdict == POWER_DOWN) {
        exit_last(p, v, port_clock());
        vcpu_quiesce(v, false); /* it may begin anew at once, with other registers */
        p->loaded = NULL;
    }
    e = sched_pick(p->index, &v->sched, state_after(*verdict));
    if (*verdict == YIELD) { /* then somebody runs */
        trace_vcpu(TRACE_YIELD, v, e->id);
    }
    if (e == &v->sched) {
        if (*verdict ==
            BLOCK) { /* called off: arch_vcpu_pending took its interrupts off the hardware */
            vcpu_request(v, REQUEST_IRQ);
        }
    } else {
        v = vcpu_leave(p, v, e, *verdict);
    }
    *verdict = RESUME;
    if (vcpu_ready(v, verdict) && !v->on_pcpu) {
        vcpu_enter_pcpu(p, v);
    }
    timer_program(sched_slice_end(p->index));
    return v;
}

/* What others asked of the running vCPU. */
static enum verdict take_requests(struct vcpu *v, enum verdict verdict) {
    uint32_t requests = atomic_exchange(&v->requests, 0);

    if ((requests & REQUEST_STOP) != 0) {
        vm_vcpu_stopped(v);
        return POWER_DOWN;
    }
    if ((requests & REQUEST_PAUSE) != 0 && atomic_load(&v->power) == VCPU_PAUSED) {
        vm_vcpu_paused(v);
        return PAUSE; /* what else there is waits until it goes on: it looks at all then */
    }
    arch_vcpu_requests(v, requests);
    if ((requests & (REQUEST_SLICE | REQUEST_TIMER)) != 0) {
        timer_program(sched_slice_end(this_pcpu()->index));
    }
    return verdict;
}

/* Whether `v` must really wait. Forgets old wakes first, so that none that comes from now on is
 * lost. */
static bool must_block(struct vcpu *v) {
    sched_block_prepare(&v->sched);
    return atomic_load(&v->requests) == 0 && !arch_vcpu_pending(v);
}

/*
 * The last look at a vCPU before its guest, in the rare cases. False: somebody asked for something,
 * or it may not wait for the deadline that it is bound to, and has to look at its timers again.
 */
static inline bool vcpu_may_enter(struct pcpu *p, struct vcpu *v) {
    if (atomic_load_explicit(&v->requests, memory_order_acquire) != 0) {
        return false;
    }
    if (__builtin_expect(v->advance.bound, false)) {
        vcpu_enter_bound(p, v);
        return false;
    }
    exit_end_switched(p, v, port_clock());
    return true;
}

/* vcpu_next() for all cases; `v` need not have come from its guest. */
__attribute__((noinline)) static struct vcpu *next_of_all(struct pcpu *p, struct vcpu *v,
                                                          enum verdict verdict) {
    for (;;) {
        if (atomic_load_explicit(&v->requests, memory_order_acquire) != 0 && v->on_pcpu) {
            verdict = take_requests(v, verdict);
        }
        if (verdict == BLOCK && !must_block(v)) {
            verdict = RESUME;
        } else if ((verdict != RESUME || sched_need_pick(p->index)) && !arch_vcpu_serror(v)) {
            v = vcpu_switch(p, v, &verdict);
            /* Its turn has just begun: if somebody wants this pCPU all the same, an interrupt is
             * pending and takes us out again at once. */
            if (verdict == RESUME && vcpu_may_enter(p, v)) {
                return v;
            }
        } else if (vcpu_may_enter(p, v)) {
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
    enum verdict verdict = RESUME;

    p->online_at = p->hyp_since = port_clock();
    v = vcpu_of_entity(wait_for_work(p));
    exit_resumed(p, v);
    p->current = v;
    if (vcpu_ready(v, &verdict)) {
        vcpu_enter_pcpu(p, v);
    }
    timer_program(sched_slice_end(p->index)); /* no kick need have come before: see vcpu_switch */
    return next_of_all(p, v, verdict);
}
