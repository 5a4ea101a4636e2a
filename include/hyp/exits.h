/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exits counted and timed. An exit of a vCPU lasts from the moment it leaves its guest until it is
 * back there, whatever lies between (other vCPUs, sleep in WFI); a pCPU is in the hypervisor from
 * each exit to the next entry, except while it waits for an interrupt. All on the pCPU that runs
 * the vCPU, interrupts masked; times in ticks of port_clock().
 */
#ifndef HYP_EXITS_H
#define HYP_EXITS_H

#include <stdint.h>

#include "hyp/pcpu.h"
#include "hyp/vcpu.h"

/* A guest was left on this pCPU at `now`: first thing in the handler. */
static inline void exit_begin(struct pcpu *p, uint64_t now) {
    p->hyp_since = p->exit_since = now;
}

/* What the exit that has begun is for. */
static inline void exit_reason(struct vcpu *v, enum exit_reason reason) {
    v->exit = &v->exits[reason];
}

static inline void exit_add(struct exit_counter *c, uint64_t spent) {
    c->count++;
    c->total += spent;
    if (spent > c->max) {
        c->max = spent;
    }
}

static inline uint64_t hyp_end(struct pcpu *p, uint64_t now) {
    uint64_t spent = now - p->hyp_since;

    p->hyp_time += spent;
    p->hyp_since = 0;
    return spent;
}

/* The same vCPU goes back into its guest, and never left this pCPU. */
static inline void exit_end(struct pcpu *p, struct vcpu *v, uint64_t now) {
    exit_add(v->exit, hyp_end(p, now));
}

/* `v` goes into its guest, and may have been away in between. */
static inline void exit_end_switched(struct pcpu *p, struct vcpu *v, uint64_t now) {
    hyp_end(p, now);
    exit_add(v->exit, now - p->exit_since);
}

/* The exit in which `v` goes off: over, as no entry will end it. The next entry is a start. */
static inline void exit_last(const struct pcpu *p, struct vcpu *v, uint64_t now) {
    exit_add(v->exit, now - p->exit_since);
    v->exit = &v->exits[EXIT_REASONS];
}

/* `v` leaves this pCPU; exit_resumed: it is here, or on another one, again. */
static inline void exit_left(const struct pcpu *p, struct vcpu *v) {
    v->exit_since = p->exit_since;
}

static inline void exit_resumed(struct pcpu *p, const struct vcpu *v) {
    p->exit_since = v->exit_since;
}

#endif
