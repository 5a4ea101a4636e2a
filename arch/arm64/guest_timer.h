/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of a guest's timers (Arm ARM DDI 0487, D12.2), and its EL1 physical timer, which
 * is all software. Compare values and counts are unsigned 64-bit numbers; the 32-bit view (TVAL) is
 * signed.
 */
#ifndef ARM64_GUEST_TIMER_H
#define ARM64_GUEST_TIMER_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

#define GUEST_TIMER_ENABLE  (1u << 0)
#define GUEST_TIMER_IMASK   (1u << 1)
#define GUEST_TIMER_ISTATUS (1u << 2)

/* INTIDs of the timers' PPIs, as in QEMU's virt. */
#define GUEST_VTIMER_INTID 27u
#define GUEST_PTIMER_INTID 30u

/* Whether the timer's interrupt line is high; `now` is the count that this timer compares with. */
static inline bool guest_timer_line(uint64_t ctl, uint64_t cval, uint64_t now) {
    return (ctl & (GUEST_TIMER_ENABLE | GUEST_TIMER_IMASK)) == GUEST_TIMER_ENABLE && now >= cval;
}

/*
 * When the line will rise, in ticks of port_clock(), of which the timer's count is `offset` behind;
 * in the past if it is high. TIMER_NEVER if it will not: off, masked, or beyond the clock's range.
 */
uint64_t guest_timer_deadline(uint64_t ctl, uint64_t cval, uint64_t offset);

/* Registers of a timer, by the op2 of their encoding. */
enum guest_timer_reg { GUEST_TIMER_TVAL, GUEST_TIMER_CTL, GUEST_TIMER_CVAL };

/* The guest reads or writes CNTP_*_EL0. On v's pCPU, no locks held; a write may raise PPI 30. */
uint64_t guest_ptimer_read(struct vcpu *v, enum guest_timer_reg reg);
void guest_ptimer_write(struct vcpu *v, enum guest_timer_reg reg, uint64_t value);

/*
 * Sets PPI 30 to what the physical timer says now: when its deadline has come, and at a switch. On
 * v's pCPU or while v is on none, no locks held.
 */
void guest_ptimer_update_line(struct vcpu *v);

/* The same at `clock`, a time of port_clock(): when v's guest will be entered. */
void guest_ptimer_line_at(struct vcpu *v, uint64_t clock);

/* CNTPCT_EL0 as the guest reads it: the machine's own, unless its VM was paused and its clocks
 * stood. */
uint64_t guest_physical_count(const struct vcpu *v);

/* As after a reset: off. Takes PPI 30 down. */
void guest_ptimer_reset(struct vcpu *v);

#endif
