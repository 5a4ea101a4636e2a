/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c */
/*
 * The virtual GIC against a reference model: the interrupt state machine of IHI 0069H 4.1 with one
 * record for each interrupt, no list registers and no laziness. Random operations on both; after
 * each one, every vCPU must be signalled or not as the model says, and what it acknowledges must be
 * one of the best.
 */
#include "tests/unit/vgic_sim.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_CPUS 4u
#define IDS      96u /* SGIs, PPIs and 64 SPIs */

struct irq {
    bool enable, group1, edge, line, latch, active;
    uint8_t prio;
    unsigned route;
};

struct cpu {
    struct irq own[32];
    unsigned stack[64], prio[64], depth; /* acknowledged, no priority drop yet */
};

static struct machine m;
static struct sim cpus[MAX_CPUS];
static struct cpu model[MAX_CPUS];
static struct irq spi[IDS];
static unsigned n_cpus, ctlr;
static bool eoimode1;
static uint64_t seed;

void port_relax(void) {
}

void vgic_notify(struct vgic_vcpu *v) {
    __atomic_store_n(&sim_of(v)->request, 1u, __ATOMIC_SEQ_CST);
}

void vgic_sync_remote(struct vgic_vcpu *v) {
    sim_sync(sim_of(v));
}

void vgic_phys_deactivate(struct vgic_vcpu *v, unsigned pintid) {
    (void)pintid;
    sim_of(v)->phys_active = false;
}

static unsigned rnd(unsigned below) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): it takes n_cpus for 0 after a call */
    return (unsigned)(seed >> 33) % below;
}

/* --- The model --- */

static struct irq *irq_of(unsigned c, unsigned id) {
    /* cppcheck-suppress arrayIndexOutOfBoundsCond ; ids are below IDS, or SPURIOUS, tested before
     */
    return id < 32 ? &model[c].own[id] : &spi[id];
}

static bool is_pending(const struct irq *i) {
    return i->latch || (i->line && !i->edge);
}

static bool deliverable(unsigned c, unsigned id) {
    const struct irq *i = irq_of(c, id);

    return is_pending(i) && i->enable && !i->active && (ctlr >> i->group1 & 1u) != 0 &&
           (cpus[c].vmcr >> i->group1 & 1u) != 0 && (id < 32 || i->route == c);
}

/* The best priority that is deliverable; 0x100 if nothing is. */
static unsigned best_prio(unsigned c) {
    unsigned best = 0x100;

    for (unsigned id = 0; id < IDS; id++) {
        if (deliverable(c, id) && irq_of(c, id)->prio < best) {
            best = irq_of(c, id)->prio;
        }
    }
    return best;
}

static bool signalled(unsigned c) {
    unsigned best = best_prio(c), d = model[c].depth;

    return best < (cpus[c].vmcr >> VGIC_VMCR_VPMR_SHIFT & 0xff) &&
           (d == 0 || best < model[c].prio[d - 1]);
}

/* --- Operations on both --- */

static void op_line(unsigned c, unsigned id, struct irq *i) {
    bool level = rnd(2) != 0;

    if (id < 16) {
        sim_sgi(&cpus[rnd(n_cpus)], sgi_to(c, id), VGIC_SGI1R);
        i->latch = true;
        return;
    }
    if (id == TIMER) {
        cpus[c].timer_line = level;
        vgic_maintenance(&cpus[c].v); /* so that the glue looks at the line */
    } else {
        vgic_set_level(&cpus[c].v, id, level);
    }
    if (level && !i->line && i->edge) {
        i->latch = true;
    }
    i->line = level;
}

static void op_register(unsigned c, unsigned id, struct irq *i) {
    struct sim *s = &cpus[rnd(n_cpus)];

    switch (rnd(9)) {
    case 0:
    case 1:
    case 2:
        irq_w(s, c, id, ISENABLE);
        i->enable = true;
        break;
    case 3:
        irq_w(s, c, id, ICENABLE);
        i->enable = false;
        break;
    case 4:
        irq_w(s, c, id, ISPEND);
        i->latch = true;
        break;
    case 5:
        irq_w(s, c, id, ICPEND);
        i->latch = false;
        break;
    case 6:
        if (!i->active) {
            i->prio = (uint8_t)(rnd(32) << 3);
            irq_prio(s, c, id, i->prio);
        }
        break;
    case 7:
        if (id >= 32) {
            i->route = rnd(n_cpus);
            gicd_w(s, 0x6000 + id * 8, i->route);
        }
        break;
    default:
        if (id != TIMER) {
            assert_int_equal(irq_r(s, c, id, ISPEND), is_pending(i));
        }
        assert_int_equal(irq_r(s, c, id, ISACTIVE), i->active);
    }
}

static void op_ack(unsigned c) {
    unsigned best = best_prio(c);
    bool any = signalled(c);
    struct cpu *p = &model[c];
    unsigned id = SPURIOUS;

    sim_irqs(&cpus[c]);
    for (unsigned g = 0; g < 2 && id == SPURIOUS; g++) {
        id = sim_iar(&cpus[c], g);
        assert_true(id == SPURIOUS || irq_of(c, id)->group1 == (g == 1));
    }
    assert_int_equal(id != SPURIOUS, any);
    if (any) {
        struct irq *i = irq_of(c, id);

        assert_true(deliverable(c, id));
        assert_int_equal(i->prio, best);
        i->active = true;
        i->latch = false;
        p->stack[p->depth] = id;
        p->prio[p->depth++] = i->prio;
    }
}

static void op_eoi(unsigned c) {
    struct cpu *p = &model[c];

    if (p->depth != 0) {
        unsigned id = p->stack[--p->depth];

        sim_eoi(&cpus[c], id);
        if (!eoimode1) {
            irq_of(c, id)->active = false;
        }
    }
}

/* EOImode 1: deactivates one that had its priority drop, SPIs on any vCPU. */
static void op_dir(unsigned c) {
    for (unsigned id = rnd(IDS), k = 0; eoimode1 && k < IDS; k++, id = (id + 1) % IDS) {
        struct irq *i = irq_of(c, id);
        bool dropped = i->active;

        for (unsigned o = 0; o < n_cpus; o++) {
            for (unsigned d = 0; d < model[o].depth; d++) {
                dropped = dropped && !(model[o].stack[d] == id && (id >= 32 || o == c));
            }
        }
        if (dropped) {
            sim_dir(&cpus[c], id);
            i->active = false;
            return;
        }
    }
}

static void op_other(unsigned c) {
    struct sim *s = &cpus[c];

    switch (rnd(12)) {
    case 0:
        ctlr = rnd(4);
        gicd_w(s, 0, ctlr);
        break;
    case 1:
        ctlr = 3;
        gicd_w(s, 0, 3);
        break;
    case 2: /* the CPU interface's enables: no exit */
        s->vmcr ^= 1ull << rnd(2);
        break;
    case 3:
        s->vmcr |= 3;
        break;
    case 4:
        s->vmcr &= ~(0xffull << VGIC_VMCR_VPMR_SHIFT);
        s->vmcr |= (uint64_t)(rnd(4) == 0 ? rnd(32) << 3 : 0xf8) << VGIC_VMCR_VPMR_SHIFT;
        break;
    case 5: { /* off the CPU and on it again */
        bool active;

        sim_irqs(s);
        sim_sync(s);
        active = vgic_hw_active(&s->v, TIMER);
        assert_int_equal(active, s->phys_active);
        if (rnd(2) == 0) { /* somebody else was here */
            memset(s->lr, 0x5a, sizeof(s->lr));
            vgic_switch_in(&s->v);
        } else { /* nobody: the list registers are as they were left */
            s->hcr = 0;
            s->v.hcr_write = true;
        }
        sim_enter(s);
        break;
    }
    default: {
        bool pending;

        sim_irqs(s);
        sim_read(s);
        if (rnd(2) == 0) {
            pending = vgic_fold_pending(&s->v);
        } else {
            vgic_fold(&s->v);
            pending = vgic_pending(&s->v);
        }
        assert_int_equal(pending, best_prio(c) < (s->vmcr >> VGIC_VMCR_VPMR_SHIFT & 0xff));
        assert_false(vgic_live(&s->v));
        sim_enter(s);
    }
    }
}

static void start(unsigned n, unsigned n_lr, bool mode1) {
    n_cpus = n;
    eoimode1 = mode1;
    ctlr = 3;
    memset(model, 0, sizeof(model));
    memset(spi, 0, sizeof(spi));
    machine_init(&m, cpus, n, n_lr);
    machine_guest_setup(&m);
    for (unsigned c = 0; c < n; c++) {
        cpus[c].vmcr |= mode1 ? VGIC_VMCR_VEOIM : 0;
        for (unsigned id = 0; id < (c == 0 ? IDS : 32); id++) {
            struct irq *i = irq_of(c, id);

            i->edge = id < 16 || (id != TIMER && rnd(2) != 0);
            if (id >= 16 && i->edge) {
                irq_edge(&cpus[c], c, id, true);
            }
            i->group1 = rnd(3) != 0;
            i->route = 0;
        }
        for (unsigned w = 0; w < (c == 0 ? IDS / 32 : 1); w++) {
            uint32_t group = 0;

            for (unsigned id = w * 32; id < w * 32 + 32; id++) {
                group |= (uint32_t)irq_of(c, id)->group1 << id % 32;
            }
            if (w == 0) {
                gicr_w(&cpus[0], c, 0x10000 + IGROUP, group);
            } else {
                gicd_w(&cpus[0], IGROUP + w * 4, group);
            }
        }
    }
}

/* Few interrupts are used, so that they collide; `ids` of them. */
static void run(unsigned steps, unsigned ids) {
    for (unsigned step = 0; step < steps; step++) {
        unsigned c = rnd(n_cpus), id = rnd(3) == 0 ? TIMER : rnd(ids) * 37 % IDS;
        struct irq *i = irq_of(c, id);

        switch (rnd(8)) {
        case 0:
        case 1:
            op_line(c, id, i);
            break;
        case 2:
        case 3:
            op_register(c, id, i);
            break;
        case 4:
            op_ack(c);
            break;
        case 5:
            op_eoi(c);
            break;
        case 6:
            op_dir(c);
            break;
        default:
            op_other(c);
        }
        /* Twice: one vCPU's fold may send an SPI on to another. */
        for (unsigned k = 0; k < 2 * n_cpus; k++) {
            sim_irqs(&cpus[k % n_cpus]);
        }
        for (unsigned k = 0; k < n_cpus; k++) {
            assert_int_equal(sim_signalled(&cpus[k], 0) || sim_signalled(&cpus[k], 1),
                             signalled(k));
        }
    }
}

static void campaign(unsigned n, bool mode1) {
    static const unsigned lrs[] = {1, 2, 3, 4, 16};
    const char *text = getenv("VGIC_SEED");

    for (unsigned k = 0; k < 5; k++) {
        for (unsigned ids = 3; ids <= 48; ids *= 4) {
            seed = (text != NULL ? strtoull(text, NULL, 0) : 1) * 1000 + k * 100 + ids;
            start(n, lrs[k], mode1);
            run(2000, ids);
        }
    }
}

static void model_one_vcpu_eoimode0(void **state) {
    (void)state;
    campaign(1, false);
}

static void model_one_vcpu_eoimode1(void **state) {
    (void)state;
    campaign(1, true);
}

static void model_four_vcpus_eoimode0(void **state) {
    (void)state;
    campaign(4, false);
}

static void model_four_vcpus_eoimode1(void **state) {
    (void)state;
    campaign(4, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_one_vcpu_eoimode0),
        cmocka_unit_test(model_one_vcpu_eoimode1),
        cmocka_unit_test(model_four_vcpus_eoimode0),
        cmocka_unit_test(model_four_vcpus_eoimode1),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
