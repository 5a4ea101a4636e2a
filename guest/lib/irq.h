/* SPDX-License-Identifier: GPL-2.0-only */
/* An interrupt handler that counts, for the tests: acknowledge, count, `during`, EOI. */
#ifndef GUEST_IRQ_H
#define GUEST_IRQ_H

#include "guest.h"

struct irq_state {
    volatile uint32_t count[128]; /* by INTID */
    volatile uint32_t total, spurious, last;
    volatile uint32_t fiqs, fiq_last;
    uint32_t limit;              /* more than this many interrupts: the guest ends */
    bool split;                  /* EOImode 1: DIR after EOI */
    bool eoi_done;               /* `during` did the EOI itself */
    void (*during)(uint32_t id); /* called between IAR and EOI */
};

extern struct irq_state irqs[MAX_CPUS];

/* Makes this CPU's interrupts go to the counting handler; all counts zero. */
struct irq_state *irq_install(void);
void irq_reset(struct irq_state *s);

#endif
