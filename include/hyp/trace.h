/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking a trace, and getting it out of the machine (docs/trace.md). Where events come from is in
 * core/trace.h. Start, stop and dump are one caller's business at a time.
 */
#ifndef HYP_TRACE_H
#define HYP_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/trace.h"
#include "hyp/vm.h"

/* Whose event it is. */
static inline uint32_t trace_who(const struct vcpu *v) {
    return TRACE_WHO(v->vm->index, v->index);
}

/* Records an event of a vCPU if a trace is being taken. */
static inline void trace_vcpu(enum trace_event event, const struct vcpu *v, uint32_t arg) {
    if (trace_active()) {
        trace_event_now(event, trace_who(v), arg);
    }
}

/* The VM is in another state (enum vm_state) from now on. vm->lock may be held. */
static inline void trace_vm(const struct vm *vm, enum vm_state state) {
    if (trace_active()) {
        trace_event_now(TRACE_VM, TRACE_WHO(vm->index, 0), state);
    }
}

/*
 * Makes rings of up to `size` bytes for each pCPU (a power of two of them is used, 64 at least) and
 * begins to trace; 0: no rings, nothing can be traced. Boot pCPU, once all VMs are created.
 */
void trace_boot(uint64_t size);

/*
 * Begins a new trace; what the last one left is forgotten. False: there are no rings, or a trace
 * is being taken. Any pCPU, no locks held.
 */
bool trace_start(void);

/* Ends it: from now on it can be dumped. False: none is being taken. Any pCPU, no locks held. */
bool trace_stop(void);

/*
 * Prints one line of the trace that was taken, of at most 400 bytes; waits for the serial port
 * only when console_printf() does. False: all is out, nothing was printed; the next call would
 * begin anew. After trace_stop(). Any pCPU, no locks held.
 */
bool trace_dump_step(void);

/* At the end of the machine: stops and dumps a trace that is being taken. */
void trace_finish(void);

#endif
