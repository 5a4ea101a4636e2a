/* SPDX-License-Identifier: GPL-2.0-only */
/* Timer advancement of vCPUs: the alarm, the wait, and what is told of them (core/advance.h). */
#include "core/port.h"
#include "core/rare.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/exits.h"
#include "hyp/trace.h"
#include "hyp/vm.h"

static uint32_t at_most(uint64_t value, uint32_t most) {
    return value < most ? (uint32_t)value : most;
}

/* The last expiry, for a trace: written only now, as nothing may come between the wait and the
 * guest. */
static void record(const struct vcpu *v) {
    const struct advance *a = &v->advance;
    uint64_t now = port_clock();
    uint32_t used = (uint32_t)advance_ticks_ns((int64_t)a->used);

    trace_at(now, TRACE_DEADLINE, trace_who(v), at_most(now - a->due, UINT32_MAX));
    trace_at(now, TRACE_ARRIVAL, trace_who(v), (uint32_t)(a->arrived - a->due));
    trace_at(now, TRACE_ADVANCE, trace_who(v), used << 16 | at_most(advance_ns(a), UINT16_MAX));
}

static void learn(struct vcpu *v) {
    bool entered = v->advance.entered, stopped = advance_learn(&v->advance);

    if (entered && trace_active()) {
        record(v);
    }
    if (stopped && v->advance.stops == 1) { /* it may go on for ever: `timers` counts the others */
        console_printf_limited(v->vm,
                               "vm %s vcpu %u: timer advancement: found an overhead above %u ns: "
                               "off until it is lower",
                               v->vm->config->name, v->index, ADVANCE_MOST_NS);
    }
}

RARE static uint64_t learn_first(struct vcpu *v, uint64_t deadline) {
    learn(v);
    return advance_arm(&v->advance, deadline, port_clock());
}

/* Others may be waiting for what comes after this, so it does no more than it must. */
uint64_t vcpu_alarm(struct vcpu *v, uint64_t deadline) {
    v->queued = v->sched.times[RUN_RUNNABLE]; /* stands until it has run again */
    if (trace_active() || advance_news(&v->advance)) {
        return learn_first(v, deadline);
    }
    return advance_arm(&v->advance, deadline, port_clock());
}

/* Here there is time: what this takes is part of what the alarm was early for. */
void vcpu_woken(struct vcpu *v) {
    struct advance *a = &v->advance;

    advance_count(a);
    advance_queued(a, v->sched.times[RUN_RUNNABLE] - v->queued);
    advance_woken(a, arch_vcpu_deadline(v, true), port_clock());
}

/*
 * Who may wait. The wait is never longer than the advance, and it is this vCPU's own running time:
 * it is charged for it. While nobody else is to run here it costs nobody anything; who comes in
 * the middle waits for its end as for that of any other work of ours. If somebody waits already, it
 * goes into its guest at once, where its own timer interrupts it at the deadline; but that is an
 * exit more, and two switches if the guest sleeps again meanwhile, so that a short rest, as all are
 * once the overhead is known, is waited for all the same: it takes less from the others.
 */
void vcpu_enter_bound(struct pcpu *p, struct vcpu *v) {
    struct advance *a = &v->advance;
    uint64_t now = port_clock();

    if (!advance_short(a, now) && sched_slice_end(p->index) != UINT64_MAX) {
        a->arrived = now;
        advance_enter(a, false);
        vcpu_request(v, REQUEST_TIMER | REQUEST_IRQ); /* its timers as they really are */
        return;
    }
    exit_end_switched(p, v, advance_entry_time(a, now));
    advance_enter(a, true);
    arch_enter_at(v, a->due, &a->arrived);
}
