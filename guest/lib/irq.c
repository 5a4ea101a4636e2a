/* SPDX-License-Identifier: GPL-2.0-only */
/* An interrupt handler that counts, for the tests. */
#include "irq.h"

struct irq_state irqs[MAX_CPUS];

static void handle_irq(struct exc_frame *f) {
    struct irq_state *s = &irqs[this_cpu()->index];
    uint32_t id = gic_iar1();

    (void)f;
    if (id >= 1020) {
        s->spurious++;
        return;
    }
    s->last = id;
    if (id < ARRAY_SIZE(s->count))
        s->count[id]++;
    s->total++;
    if (s->total > s->limit)
        die("interrupt %u storms: %u taken", id, s->total);
    if (s->during)
        s->during(id);
    if (s->eoi_done) {
        s->eoi_done = false;
        return;
    }
    gic_eoi1(id);
    if (s->split)
        gic_dir(id);
}

static void handle_fiq(struct exc_frame *f) {
    struct irq_state *s = &irqs[this_cpu()->index];
    uint32_t id = (uint32_t)read_sysreg(icc_iar0_el1) & 0xffffff;

    (void)f;
    dsb();
    if (id >= 1020) {
        s->spurious++;
        return;
    }
    s->fiq_last = id;
    s->fiqs++;
    write_sysreg(icc_eoir0_el1, id);
    isb();
}

struct irq_state *irq_install(void) {
    struct irq_state *s = &irqs[this_cpu()->index];

    irq_reset(s);
    this_cpu()->irq_hook = handle_irq;
    this_cpu()->fiq_hook = handle_fiq;
    return s;
}

void irq_reset(struct irq_state *s) {
    memset(s, 0, sizeof(*s));
    s->limit = 1000000;
}
