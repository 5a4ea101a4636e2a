/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What others see of run states: the trace, and the times. */
#include "core/port.h"
#include "core/relaxed.h"
#include "core/sched_queue.h"

static enum trace_why reason(const struct run_queue *q, const struct sched_entity *e,
                             enum run_state to, bool yield) {
    uint64_t end = load_relaxed(&q->slice_end);

    switch (to) {
    case RUN_OFF:
        return TRACE_WHY_STOP;
    case RUN_BLOCKED:
        return TRACE_WHY_BLOCK;
    case RUN_RUNNING:
        return e->switches != 0 && e->last_cpu != q->cpu ? TRACE_WHY_MIGRATION : TRACE_WHY_PICK;
    default:
        break;
    }
    if (e->state != RUN_RUNNING) {
        return TRACE_WHY_WAKE;
    }
    if (end == 0) {
        return TRACE_WHY_PREEMPTION;
    }
    return yield ? TRACE_WHY_YIELD : e->since >= end ? TRACE_WHY_SLICE : TRACE_WHY_GIVE_WAY;
}

void sched_trace(const struct run_queue *q, const struct sched_entity *e, enum run_state to,
                 bool yield) {
    trace_at(e->since, TRACE_STATE, e->id, trace_state_arg(e->state, to, reason(q, e, to, yield)));
}

uint64_t sched_times(struct sched_entity *e, uint64_t times[RUN_STATES]) {
    struct run_queue *q = sched_lock_queue_of(e);
    uint64_t now = port_clock();

    for (unsigned state = 0; state < RUN_STATES; state++) {
        times[state] = e->times[state];
    }
    now = now > e->since ? now : e->since;
    times[e->state] += now - e->since;
    spin_unlock(&q->lock);
    return now;
}
