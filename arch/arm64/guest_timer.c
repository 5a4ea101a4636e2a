/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/guest_timer.h"

#include "arch/arm64/vgic.h"
#include "core/port.h"
#include "hyp/timer.h"
#include "hyp/vm.h"

uint64_t guest_timer_deadline(uint64_t ctl, uint64_t cval, uint64_t offset) {
    uint64_t deadline = cval + offset;

    if ((ctl & (GUEST_TIMER_ENABLE | GUEST_TIMER_IMASK)) != GUEST_TIMER_ENABLE) {
        return TIMER_NEVER;
    }
    if ((int64_t)offset >= 0) {
        return deadline < cval ? TIMER_NEVER : deadline;
    }
    /* The count runs ahead of the clock: a compare value before the clock's zero has passed. */
    return cval < (uint64_t)0 - offset ? 0 : deadline;
}

uint64_t guest_physical_count(const struct vcpu *v) {
    return port_clock() - v->vm->arch.cntpoff;
}

uint64_t guest_ptimer_read(struct vcpu *v, enum guest_timer_reg reg) {
    const struct guest_timer *t = &v->arch.ptimer;
    uint64_t now = guest_physical_count(v);

    switch (reg) {
    case GUEST_TIMER_TVAL:
        return (uint32_t)(t->cval - now);
    case GUEST_TIMER_CTL:
        /* ISTATUS does not look at IMASK; without ENABLE it is UNKNOWN, 0 here. */
        if ((t->ctl & GUEST_TIMER_ENABLE) != 0 && now >= t->cval) {
            return t->ctl | GUEST_TIMER_ISTATUS;
        }
        return t->ctl;
    case GUEST_TIMER_CVAL:
        return t->cval;
    }
    return 0;
}

void guest_ptimer_write(struct vcpu *v, enum guest_timer_reg reg, uint64_t value) {
    struct guest_timer *t = &v->arch.ptimer;

    switch (reg) {
    case GUEST_TIMER_TVAL:
        t->cval = guest_physical_count(v) + (uint64_t)(int64_t)(int32_t)(uint32_t)value;
        break;
    case GUEST_TIMER_CTL:
        t->ctl = value & (GUEST_TIMER_ENABLE | GUEST_TIMER_IMASK);
        break;
    case GUEST_TIMER_CVAL:
        t->cval = value;
        break;
    }
    guest_ptimer_update_line(v);
    vcpu_timer_update(v, false);
}

void guest_ptimer_update_line(struct vcpu *v) {
    guest_ptimer_line_at(v, port_clock());
}

void guest_ptimer_line_at(struct vcpu *v, uint64_t clock) {
    const struct guest_timer *t = &v->arch.ptimer;
    bool level = guest_timer_line(t->ctl, t->cval, clock - v->vm->arch.cntpoff);

    /* Only this function writes that line, so it can be compared without a lock. */
    if (level != ((v->arch.vgic.own.line >> GUEST_PTIMER_INTID & 1u) != 0)) {
        vgic_set_level(&v->arch.vgic, GUEST_PTIMER_INTID, level);
    }
}

void guest_ptimer_reset(struct vcpu *v) {
    v->arch.ptimer = (struct guest_timer){0, 0};
    guest_ptimer_update_line(v);
}
