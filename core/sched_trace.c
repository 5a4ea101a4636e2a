/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Changes of run state as events of a trace. */
#include "core/port.h"
#include "core/sched_queue.h"

/* What only the queue or the entity knows about the reason. */
static enum trace_why refined(const struct run_queue *q, const struct sched_entity *e,
                              enum trace_why why) {
    uint64_t end = __atomic_load_n(&q->slice_end, __ATOMIC_RELAXED);

    switch (why) {
    case TRACE_WHY_SLICE:
        return end == 0 ? TRACE_WHY_PREEMPTION : e->since >= end ? why : TRACE_WHY_GIVE_WAY;
    case TRACE_WHY_PICK:
        return e->switches != 0 && e->last_cpu != q->cpu ? TRACE_WHY_MIGRATION : why;
    default:
        return why;
    }
}

void sched_trace(const struct run_queue *q, const struct sched_entity *e, enum run_state to,
                 enum trace_why why) {
    trace_at(e->since, TRACE_STATE, e->id, trace_state_arg(e->state, to, refined(q, e, why)));
}
