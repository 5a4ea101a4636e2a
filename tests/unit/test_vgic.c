/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c */
/* The virtual GIC as a guest's interrupt handlers see it: cases of section G, and P21. */
#include "tests/unit/vgic_sim.h"

static struct machine m;
static struct sim cpus[32];

void port_relax(void) {
}

void vgic_notify(struct vgic_vcpu *v) {
    sim_of(v)->notified++;
    __atomic_store_n(&sim_of(v)->request, 1u, __ATOMIC_SEQ_CST);
}

void vgic_sync_remote(struct vgic_vcpu *v) {
    assert_false(spin_is_locked(&m.vm.lock));
    assert_false(spin_is_locked(&v->lock));
    sim_sync(sim_of(v));
    assert_false(vgic_live(v));
}

void vgic_phys_deactivate(struct vgic_vcpu *v, unsigned pintid) {
    assert_int_equal(pintid, TIMER);
    sim_of(v)->phys_active = false;
    sim_of(v)->phys_deactivated++;
}

/* A machine of `n` vCPUs with `n_lr` list registers, set up as Linux does. */
static void boot(unsigned n, unsigned n_lr) {
    machine_init(&m, cpus, n, n_lr);
    machine_guest_setup(&m);
}

/* Acknowledges what comes until nothing does; ends each; returns how many. */
static unsigned drain(struct sim *s, unsigned g) {
    unsigned count = 0;

    for (;;) {
        unsigned id = sim_iar(s, g);

        if (id == SPURIOUS) {
            return count;
        }
        count++;
        assert_true(count < 1000);
        sim_eoi(s, id);
        if ((s->vmcr & VGIC_VMCR_VEOIM) != 0) {
            sim_dir(s, id);
        }
    }
}

static void on(struct sim *s, unsigned id) {
    irq_w(s, s->v.index, id, ISENABLE);
}

static void off(struct sim *s, unsigned id) {
    irq_w(s, s->v.index, id, ICENABLE);
}

/* --- G01 --- */

/* IAR, disable, enable, EOI, in all orders that a driver's interrupt handler has. */
static void g01_disable_while_active(void **state) {
    static const char *const orders[] = { "dke", "dek", "edk", "dke-low", "dek-low" };
    static const unsigned ids[] = { 20, 40 };
    (void)state;

    boot(2, 4);
    for (unsigned k = 0; k < 5 * 2 * 2; k++) {
        struct sim *s = &cpus[0];
        unsigned id = ids[k & 1];
        const char *order = orders[k >> 2];
        bool edge = (k & 2) != 0;

        irq_edge(s, 0, id, edge);
        on(s, id);
        for (unsigned i = 0; i < 10000; i++) {
            vgic_set_level(&s->v, id, true);
            assert_int_equal(sim_iar(s, 1), id);
            if (order[3] != 0) {
                vgic_set_level(&s->v, id, false); /* the device before everything else */
            }
            for (const char *step = order; *step != 0 && *step != '-'; step++) {
                if (*step == 'd') {
                    off(s, id);
                } else if (*step == 'k') {
                    vgic_set_level(&s->v, id, false);
                    on(s, id);
                } else {
                    sim_eoi(s, id);
                }
            }
            assert_int_equal(irq_r(s, 0, id, ISACTIVE), 0);
            assert_int_equal(sim_iar(s, 1), SPURIOUS);
        }
    }
}

/* The line stays high: disabled it stays away, enabled it comes. */
static void g01_disable_while_active_line_high(void **state) {
    (void)state;
    boot(1, 4);
    struct sim *s = &cpus[0];

    on(s, 40);
    vgic_set_level(&s->v, 40, true);
    assert_int_equal(sim_iar(s, 1), 40);
    off(s, 40);
    sim_eoi(s, 40);
    assert_int_equal(sim_iar(s, 1), SPURIOUS);
    on(s, 40);
    assert_int_equal(sim_iar(s, 1), 40);
    vgic_set_level(&s->v, 40, false);
    sim_eoi(s, 40);
    assert_int_equal(sim_iar(s, 1), SPURIOUS);
}

/* --- G03 --- */

/* Another vCPU disables, clears, deactivates what is in a running vCPU's list register. */
static void g03_remote_writes_reach_live_list_registers(void **state) {
    static const unsigned ids[] = { 3, 20, 40 };
    (void)state;

    for (unsigned k = 0; k < 3; k++) {
        unsigned id = ids[k];

        boot(3, 4);
        struct sim *a = &cpus[0], *b = &cpus[1];

        gicd_w(a, 0x6100 + (40 - 32) * 8, 1); /* SPI 40 to vCPU 1 */
        irq_w(a, 1, id, ISENABLE);
        if (id == 40) {
            irq_edge(a, 0, id, true);
        }
        irq_w(a, 1, id, ISPEND);
        sim_irqs(b);
        assert_true(sim_signalled(b, 1));
        irq_w(a, 1, id, ICENABLE);
        assert_int_equal(sim_iar(b, 1), SPURIOUS);
        assert_int_equal(irq_r(a, 1, id, ISPEND), 1);
        irq_w(a, 1, id, ISENABLE);
        sim_irqs(b);
        assert_true(sim_signalled(b, 1));
        irq_w(a, 1, id, ICPEND);
        assert_int_equal(irq_r(a, 1, id, ISPEND), 0);
        assert_int_equal(sim_iar(b, 1), SPURIOUS);
        irq_w(a, 1, id, ISPEND);
        assert_int_equal(sim_iar(b, 1), id);
        assert_int_equal(irq_r(a, 1, id, ISACTIVE), 1);
        assert_int_equal(irq_r(a, 1, id, ISPEND), 0);
        irq_w(a, 1, id, ICACTIVE);
        assert_int_equal(irq_r(a, 1, id, ISACTIVE), 0);
        irq_w(a, 1, id, ISPEND);
        sim_eoi(b, id); /* priority drop; nothing to deactivate */
        assert_int_equal(sim_iar(b, 1), id);
        irq_w(a, 1, id, ISPEND); /* active and pending */
        assert_int_equal(irq_r(a, 1, id, ISPEND) * 2 + irq_r(a, 1, id, ISACTIVE), 3);
        sim_eoi(b, id);
        assert_int_equal(drain(b, 1), 1);
        assert_int_equal(drain(a, 1), 0);
        irq_w(a, 1, id, ISACTIVE); /* active without being acknowledged: not delivered */
        irq_w(a, 1, id, ISPEND);
        assert_int_equal(sim_iar(b, 1), SPURIOUS);
        irq_w(a, 1, id, ICACTIVE);
        assert_int_equal(drain(b, 1), 1);
    }
}

/* A route that changes while the SPI is pending in, or active on, the old target. */
static void g03_route_change(void **state) {
    (void)state;
    boot(3, 4);
    struct sim *a = &cpus[0], *b = &cpus[1], *c = &cpus[2];

    irq_edge(a, 0, 50, true);
    gicd_w(a, 0x6000 + 50 * 8, 1);
    on(a, 50);
    vgic_pulse(&a->v, 50);
    sim_irqs(b);
    assert_true(sim_signalled(b, 1));
    gicd_w(a, 0x6000 + 50 * 8, 2);
    assert_int_equal(sim_iar(b, 1), SPURIOUS);
    assert_int_equal(sim_iar(c, 1), 50);
    gicd_w(a, 0x6000 + 50 * 8, 0);
    vgic_pulse(&a->v, 50);
    assert_int_equal(sim_iar(a, 1), SPURIOUS); /* active on c */
    sim_eoi(c, 50);
    sim_irqs(c);
    assert_int_equal(drain(c, 1), 0);
    assert_int_equal(drain(a, 1), 1);
    gicd_w(a, 0x6000 + 50 * 8, 9); /* nobody */
    vgic_pulse(&a->v, 50);
    assert_int_equal(drain(a, 1) + drain(b, 1) + drain(c, 1), 0);
    gicd_w(a, 0x6000 + 50 * 8, 1);
    assert_int_equal(drain(b, 1), 1);
}

/* --- G06 --- */

static void g06_edge_bookkeeping(void **state) {
    static const unsigned ids[] = { 5, 20, 40 };
    (void)state;

    for (unsigned k = 0; k < 3; k++) {
        boot(1, 4);
        struct sim *s = &cpus[0];
        unsigned id = ids[k];

        if (id >= 16) {
            irq_edge(s, 0, id, true);
        }
        on(s, id);
        irq_w(s, 0, id, ISPEND); /* (a) pending in a list register */
        sim_irqs(s);
        irq_w(s, 0, id, ISPEND);
        assert_int_equal(drain(s, 1), 1);

        irq_w(s, 0, id, ISPEND); /* (b) active */
        assert_int_equal(sim_iar(s, 1), id);
        irq_w(s, 0, id, ISPEND);
        sim_eoi(s, id);
        assert_int_equal(1 + drain(s, 1), 2);

        irq_w(s, 0, id, ISPEND); /* (c) active and pending */
        assert_int_equal(sim_iar(s, 1), id);
        irq_w(s, 0, id, ISPEND);
        sim_irqs(s);
        irq_w(s, 0, id, ISPEND);
        sim_eoi(s, id);
        assert_int_equal(1 + drain(s, 1), 2);
    }
}

static uint32_t seed = 1;

static uint32_t rnd(uint32_t below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

/* 1e6 random firings of an edge: never lost, never stuck. */
static void g06_a_million_firings(void **state) {
    (void)state;
    boot(2, 4);
    struct sim *s = &cpus[0];
    bool owed = false, active = false;

    irq_edge(s, 0, 40, true);
    on(s, 40);
    for (unsigned i = 0; i < 1000000;) {
        switch (rnd(3)) {
        case 0:
            vgic_pulse(&s->v, 40);
            owed = true;
            i++;
            break;
        case 1:
            if (!active) {
                unsigned id = sim_iar(s, 1);

                assert_int_equal(id, owed ? 40 : SPURIOUS);
                active = owed;
                owed = false;
            }
            break;
        default:
            if (active) {
                sim_eoi(s, 40);
                active = false;
            }
        }
    }
}

/* --- G07 --- */

static void g07_raised_while_disabled(void **state) {
    static const unsigned ids[] = { 20, 40 };
    (void)state;

    for (unsigned k = 0; k < 2; k++) {
        boot(1, 4);
        struct sim *s = &cpus[0];
        unsigned id = ids[k];

        irq_edge(s, 0, id, true);
        vgic_set_level(&s->v, id, true);
        vgic_set_level(&s->v, id, false);
        assert_int_equal(irq_r(s, 0, id, ISPEND), 1);
        assert_int_equal(sim_iar(s, 1), SPURIOUS);
        on(s, id);
        assert_int_equal(drain(s, 1), 1);

        off(s, id);
        irq_edge(s, 0, id, false);
        vgic_set_level(&s->v, id, true);
        assert_int_equal(irq_r(s, 0, id, ISPEND), 1);
        vgic_set_level(&s->v, id, false);
        assert_int_equal(irq_r(s, 0, id, ISPEND), 0);
        on(s, id);
        assert_int_equal(drain(s, 1), 0);
    }
}

/* --- G08 --- */

static void g08_sgi_affinity(void **state) {
    struct {
        uint64_t value;
        int target; /* -1: nobody, -2: all but 0 */
    } t[] = {
        { sgi_to(0, 4), 0 },
        { sgi_to(15, 4), 15 },
        { sgi_to(16, 4), 16 },
        { sgi_to(17, 4), 17 },
        { sgi_to(18, 4), -1 },              /* 1.2: no such vCPU */
        { sgi_to(33, 4), -1 },              /* 2.1 */
        { sgi_to(0, 4) | 1ull << 32, -1 },  /* Aff2 */
        { sgi_to(0, 4) | 1ull << 48, -1 },  /* Aff3 */
        { sgi_to(0, 4) | 1ull << 44, -1 },  /* RS: Aff0 16.. */
        { 4ull << 24 | 1ull << 40, -2 },
        { 4ull << 24 | 1ull << 40 | 0x00ff00ff00ff0001ull, -2 }, /* IRM ignores affinity */
        { 4ull << 24, -1 },
    };
    (void)state;

    boot(18, 4);
    for (unsigned i = 0; i < 18; i++) {
        on(&cpus[i], 4);
    }
    for (unsigned k = 0; k < sizeof(t) / sizeof(t[0]); k++) {
        sim_sgi(&cpus[0], t[k].value, VGIC_SGI1R);
        for (int i = 0; i < 18; i++) {
            unsigned want = t[k].target == i || (t[k].target == -2 && i != 0);

            assert_int_equal(drain(&cpus[i], 1), want);
        }
    }
}

/* --- G10 --- */

static void g10_sgis_to_self(void **state) {
    (void)state;
    for (unsigned id = 0; id < 16; id++) {
        for (unsigned k = 0; k < 2 * 2 * 3; k++) {
            bool enabled = (k & 1) != 0;
            unsigned group = k >> 1 & 1;
            enum vgic_sgi_reg reg = (enum vgic_sgi_reg)(k >> 2);
            unsigned forwarded = reg == VGIC_SGI1R || group == 0;

            boot(1, 4);
            struct sim *s = &cpus[0];

            gicr_w(s, 0, 0x10000 + IGROUP, group != 0 ? ~0u : ~(1u << id));
            if (enabled) {
                on(s, id);
            }
            sim_sgi(s, sgi_to(0, id), reg);
            assert_int_equal(irq_r(s, 0, id, ISPEND), forwarded);
            assert_int_equal(drain(s, group), enabled && forwarded);
            assert_int_equal(drain(s, 0) + drain(s, 1), 0);
        }
    }
}

/* --- G12 --- */

static void g12_level_resampling(void **state) {
    static const unsigned ids[] = { 20, 40 };
    (void)state;

    for (unsigned k = 0; k < 4; k++) {
        boot(2, 4);
        struct sim *s = &cpus[0];
        unsigned id = ids[k & 1];

        if (k >= 2) {
            s->vmcr |= VGIC_VMCR_VEOIM;
        }
        on(s, id);
        vgic_set_level(&s->v, id, true);
        assert_int_equal(sim_iar(s, 1), id);
        sim_eoi(s, id);
        if (k >= 2) {
            sim_dir(s, id);
        }
        assert_int_equal(sim_iar(s, 1), id); /* high through EOI: again at once */
        vgic_set_level(&s->v, id, false);
        sim_eoi(s, id);
        if (k >= 2) {
            sim_dir(s, id);
        }
        assert_int_equal(drain(s, 1), 0); /* lowered before EOI: none */

        vgic_set_level(&s->v, id, true);
        assert_int_equal(sim_iar(s, 1), id);
        vgic_set_level(&s->v, id, false);
        vgic_set_level(&s->v, id, true);
        sim_eoi(s, id);
        if (k >= 2) {
            sim_dir(s, id);
        }
        assert_int_equal(sim_iar(s, 1), id); /* lowered and raised: exactly one more */
        vgic_set_level(&s->v, id, false);
        sim_eoi(s, id);
        if (k >= 2) {
            sim_dir(s, id);
        }
        assert_int_equal(drain(s, 1), 0);

        vgic_set_level(&s->v, id, true);
        sim_irqs(s);
        assert_true(sim_signalled(s, 1));
        vgic_set_level(&s->v, id, false); /* while pending in the list register: withdrawn */
        assert_int_equal(sim_iar(s, 1), SPURIOUS);
    }
}

/* --- G19 --- */

static void g19_group_of_distributor_off(void **state) {
    (void)state;
    boot(1, 4);
    struct sim *s = &cpus[0];

    gicr_w(s, 0, 0x10000 + IGROUP, 0xfffffffeu); /* SGI 0: group 0 */
    gicd_w(s, 0, 2);
    gicr_w(s, 0, 0x10000 + ISENABLE, 0xffff);
    for (unsigned id = 0; id < 16; id++) {
        irq_prio(s, 0, id, id == 0 ? 0 : 0x80);
    }
    gicr_w(s, 0, 0x10000 + ISPEND, 0xffff);
    assert_int_equal(drain(s, 1), 15);
    assert_int_equal(sim_iar(s, 0), SPURIOUS);
    assert_int_equal(gicr_r(s, 0, 0x10000 + ISPEND), 1);
    assert_int_equal(sim_iar(s, 1), SPURIOUS);
    gicd_w(s, 0, 3);
    assert_true(sim_signalled(s, 0));
    assert_int_equal(sim_iar(s, 1), SPURIOUS);
    assert_int_equal(sim_iar(s, 0), 0);
    sim_eoi(s, 0);
}

/* The same with the group off in the CPU interface, which vgic learns from VMCR only. */
static void g19_group_of_cpu_interface_off(void **state) {
    (void)state;
    for (unsigned n_lr = 1; n_lr <= 16; n_lr++) {
        boot(1, n_lr);
        struct sim *s = &cpus[0];

        gicr_w(s, 0, 0x10000 + IGROUP, 0xffffff00u); /* 8 SGIs of group 0, higher ones */
        s->vmcr &= ~VGIC_VMCR_VENG0;
        for (unsigned id = 0; id < 16; id++) {
            irq_prio(s, 0, id, id < 8 ? 0 : 0x80);
        }
        gicr_w(s, 0, 0x10000 + ISENABLE, 0xffff);
        gicr_w(s, 0, 0x10000 + ISPEND, 0xffff);
        assert_int_equal(drain(s, 1), 8);
        assert_int_equal(gicr_r(s, 0, 0x10000 + ISPEND), 0xff);
        s->vmcr |= VGIC_VMCR_VENG0; /* ICC_IGRPEN0_EL1 = 1: no exit by itself */
        assert_int_equal(drain(s, 0), 8);
        /* And off while they are inside, with others waiting outside. */
        gicr_w(s, 0, 0x10000 + ISPEND, 0xffff);
        sim_irqs(s);
        s->vmcr &= ~VGIC_VMCR_VENG0;
        assert_int_equal(drain(s, 1), 8);
        s->vmcr |= VGIC_VMCR_VENG0;
        assert_int_equal(drain(s, 0), 8);
    }
}

/* --- G20 --- */

static void fire_timer(struct sim *s, unsigned times, bool eoimode1) {
    for (unsigned i = 0; i < times; i++) {
        s->timer_line = true;
        assert_int_equal(sim_iar(s, 1), TIMER);
        assert_true(s->phys_active);
        s->timer_line = false; /* the handler re-arms */
        sim_eoi(s, TIMER);
        if (eoimode1) {
            sim_dir(s, TIMER);
        }
        assert_int_equal(sim_iar(s, 1), SPURIOUS);
        assert_false(s->phys_active);
    }
}

static void g20_timer_with_trapped_dir(void **state) {
    (void)state;
    for (unsigned n = 1; n <= 2; n++) { /* two vCPUs: TDIR always */
        for (unsigned n_lr = 1; n_lr <= 4; n_lr += 3) {
            boot(n, n_lr);
            struct sim *s = &cpus[0];

            s->vmcr = (s->vmcr & ~(0xffull << VGIC_VMCR_VPMR_SHIFT)) | VGIC_VMCR_VEOIM |
                      0x80ull << VGIC_VMCR_VPMR_SHIFT;
            irq_prio(s, 0, TIMER, 0x40);
            irq_prio(s, 0, 40, 0xa0); /* stays pending behind the mask */
            on(s, TIMER);
            on(s, 40);
            vgic_set_level(&s->v, 40, true);
            fire_timer(s, 10000, true);
            assert_int_equal(irq_r(s, 0, 40, ISPEND), 1);
        }
    }
}

/* The timer active and pushed out of the only list register by a pending interrupt. */
static void g20_timer_active_outside(void **state) {
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        boot(1, 1);
        struct sim *s = &cpus[0];

        s->vmcr |= k != 0 ? VGIC_VMCR_VEOIM : 0;
        irq_prio(s, 0, TIMER, 0x40);
        irq_prio(s, 0, 3, 0x80);
        on(s, TIMER);
        on(s, 3);
        for (unsigned i = 0; i < 100; i++) {
            s->timer_line = true;
            assert_int_equal(sim_iar(s, 1), TIMER);
            sim_sgi(s, sgi_to(0, 3), VGIC_SGI1R);
            assert_true(s->phys_active);
            s->timer_line = false;
            sim_eoi(s, TIMER);
            if (k != 0) {
                assert_true(s->phys_active);
                sim_dir(s, TIMER);
            }
            assert_false(s->phys_active);
            assert_int_equal(drain(s, 1), 1);
        }
        assert_int_equal(s->phys_deactivated, 100);
    }
}

/* What a guest may do to a linked interrupt with its registers; it must fire again afterwards. */
static void g20_linked_interrupt_by_mmio(void **state) {
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        boot(2, 4);
        struct sim *s = &cpus[0], *who = &cpus[k]; /* itself, or another vCPU */

        on(s, TIMER);
        s->timer_line = true; /* disabled while pending: kept, held active physically */
        sim_irqs(s);
        irq_w(who, 0, TIMER, ICENABLE);
        assert_int_equal(sim_iar(s, 1), SPURIOUS);
        assert_true(s->phys_active);
        assert_true(vgic_hw_active(&s->v, TIMER));
        irq_w(who, 0, TIMER, ICPEND); /* a level: no effect */
        assert_int_equal(irq_r(who, 0, TIMER, ISPEND), 1);
        on(s, TIMER);
        assert_int_equal(sim_iar(s, 1), TIMER);
        irq_w(who, 0, TIMER, ICACTIVE); /* deactivated by register: fires again, the line is high */
        sim_eoi(s, TIMER);
        assert_int_equal(sim_iar(s, 1), TIMER);
        irq_w(who, 0, TIMER, ICENABLE); /* disabled while active, ended, enabled */
        sim_eoi(s, TIMER);
        sim_irqs(s);
        irq_w(who, 0, TIMER, ISENABLE);
        assert_int_equal(sim_iar(s, 1), TIMER);
        s->timer_line = false;
        sim_eoi(s, TIMER);
        fire_timer(s, 3, false);

        off(s, TIMER); /* fired while disabled, then re-armed for later: nothing to deliver */
        s->timer_line = true;
        sim_irqs(s);
        assert_true(s->phys_active);
        s->timer_line = false;
        on(s, TIMER);
        assert_int_equal(sim_iar(s, 1), SPURIOUS);
        assert_false(s->phys_active);
        fire_timer(s, 3, false);

        irq_w(who, 0, TIMER, ISPEND); /* pending by register: delivered, does no harm */
        assert_int_equal(drain(s, 1), 1);
        irq_w(who, 0, TIMER, ISACTIVE);
        s->timer_line = true;
        assert_int_equal(sim_iar(s, 1), SPURIOUS);
        irq_w(who, 0, TIMER, ICACTIVE);
        fire_timer(s, 3, false);
        irq_edge(s, 0, TIMER, true); /* stays level-sensitive */
        fire_timer(s, 3, false);
    }
}

/* Software finds the timer due while the vCPU is off the CPU: active state travels with it. */
static void g20_timer_off_the_cpu(void **state) {
    (void)state;
    boot(1, 4);
    struct sim *s = &cpus[0];

    on(s, TIMER);
    for (unsigned i = 0; i < 10; i++) {
        sim_irqs(s);
        sim_sync(s); /* switch-out */
        assert_false(vgic_pending(&s->v));
        assert_false(vgic_hw_active(&s->v, TIMER));
        s->timer_line = true;
        vgic_set_level(&s->v, TIMER, true);
        assert_true(vgic_pending(&s->v));
        s->phys_active = vgic_hw_active(&s->v, TIMER); /* switch-in */
        assert_true(s->phys_active);
        memset(s->lr, 0xff, sizeof(s->lr)); /* somebody else's */
        vgic_switch_in(&s->v);
        sim_enter(s);
        assert_int_equal(sim_iar(s, 1), TIMER);
        sim_sync(s); /* out and in while active */
        assert_true(vgic_hw_active(&s->v, TIMER));
        vgic_switch_in(&s->v);
        sim_enter(s);
        s->timer_line = false;
        sim_eoi(s, TIMER);
        sim_sync(s);
        assert_false(vgic_hw_active(&s->v, TIMER));
        s->phys_active = false;
    }
}

/* An SPI acknowledged on one vCPU and deactivated by another (EOImode 1). */
static void g20_dir_on_another_vcpu(void **state) {
    (void)state;
    boot(2, 4);
    struct sim *a = &cpus[0], *b = &cpus[1];

    a->vmcr |= VGIC_VMCR_VEOIM;
    b->vmcr |= VGIC_VMCR_VEOIM;
    on(a, 40);
    for (unsigned i = 0; i < 100; i++) {
        vgic_set_level(&a->v, 40, true);
        assert_int_equal(sim_iar(a, 1), 40);
        vgic_set_level(&a->v, 40, false);
        sim_eoi(a, 40);
        sim_dir(b, 40);
        assert_int_equal(irq_r(a, 0, 40, ISACTIVE), 0);
        sim_dir(b, 7);
        sim_dir(b, 1000);
    }
    b->vmcr &= ~VGIC_VMCR_VEOIM; /* EOImode 0: ignored */
    vgic_set_level(&a->v, 40, true);
    assert_int_equal(sim_iar(a, 1), 40);
    sim_dir(b, 40);
    assert_int_equal(irq_r(a, 0, 40, ISACTIVE), 1);
}

/* --- P21 --- */

static unsigned told(unsigned i) {
    unsigned n = cpus[i].notified;

    cpus[i].notified = 0;
    return n;
}

/*
 * All ways to make an interrupt pending for vCPU 1 end in vgic_notify() of it, in whatever state it
 * is: the virtual GIC knows of no difference but live (running) and not.
 */
static void p21_every_way_notifies(void **state) {
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        boot(2, 4);
        struct sim *a = &cpus[0], *b = &cpus[1];
        bool live = k != 0;

#define REST(setup)                                                                                \
    do {                                                                                           \
        setup;                                                                                     \
        sim_irqs(b);                                                                               \
        (void)drain(b, 1);                                                                         \
        if (!live) {                                                                               \
            sim_sync(b);                                                                           \
        }                                                                                          \
        (void)told(0);                                                                             \
        (void)told(1);                                                                             \
    } while (0)
#define NOTIFIES_UNDO(action, undo)                                                                \
    do {                                                                                           \
        action;                                                                                    \
        assert_true(told(1) > 0);                                                                  \
        assert_true(vgic_dirty(&b->v));                                                            \
        REST(undo);                                                                                \
    } while (0)
#define NOTIFIES(action) NOTIFIES_UNDO(action, (void)0)

        for (unsigned id = 40; id < 44; id++) {
            gicd_w(a, 0x6000 + id * 8, 1);
            irq_w(a, 0, id, ISENABLE);
        }
        irq_edge(a, 0, 41, true);
        irq_edge(a, 1, 21, true);
        gicr_w(a, 1, 0x10000 + ISENABLE, ~0u);
        REST((void)0);
        NOTIFIES_UNDO(vgic_set_level(&b->v, 20, true), vgic_set_level(&b->v, 20, false));
        NOTIFIES(vgic_set_level(&b->v, 21, true));
        NOTIFIES(vgic_set_level(&b->v, TIMER, true));
        NOTIFIES(vgic_pulse(&b->v, 22));
        NOTIFIES_UNDO(vgic_set_level(&a->v, 40, true), vgic_set_level(&a->v, 40, false));
        NOTIFIES(vgic_set_level(&a->v, 41, true));
        NOTIFIES(vgic_pulse(&a->v, 42));
        NOTIFIES(sim_sgi(a, sgi_to(1, 3), VGIC_SGI1R));
        NOTIFIES(sim_sgi(a, 3ull << 24 | 1ull << 40, VGIC_SGI1R));
        NOTIFIES(irq_w(a, 1, 3, ISPEND));
        NOTIFIES(irq_w(a, 1, 42, ISPEND));
        REST(irq_w(a, 1, 3, ICENABLE); irq_w(a, 1, 3, ISPEND));
        NOTIFIES(irq_w(a, 1, 3, ISENABLE));
        REST(irq_w(a, 1, 42, ICENABLE); irq_w(a, 1, 42, ISPEND));
        NOTIFIES(irq_w(a, 1, 42, ISENABLE));
        REST(gicd_w(a, 0, 0); irq_w(a, 1, 3, ISPEND));
        NOTIFIES(gicd_w(a, 0, 3));
        REST(irq_w(a, 1, 3, ISACTIVE); irq_w(a, 1, 3, ISPEND));
        NOTIFIES(irq_w(a, 1, 3, ICACTIVE));
        REST(irq_w(a, 1, 42, ISACTIVE); irq_w(a, 1, 42, ISPEND));
        NOTIFIES(irq_w(a, 1, 42, ICACTIVE));
        REST(gicd_w(a, 0x6000 + 42 * 8, 7); irq_w(a, 1, 42, ISPEND)); /* nobody */
        NOTIFIES(gicd_w(a, 0x6000 + 42 * 8, 1));
        REST(gicr_w(a, 0, 0x14, 2); gicr_w(a, 1, 0x14, 2); gicd_w(a, 0x6000 + 42 * 8, 1u << 31);
             irq_w(a, 1, 42, ISPEND)); /* 1 of N: nobody awake */
        NOTIFIES(gicr_w(a, 1, 0x14, 0));
        REST(gicr_w(a, 0, 0x14, 0); gicd_w(a, 0x6000 + 42 * 8, 0));
        /* Comes out of vCPU 0's list register while routed to vCPU 1 by now. */
        vgic_pulse(&a->v, 42);
        assert_int_equal(sim_iar(a, 1), 42);
        gicd_w(a, 0x6000 + 42 * 8, 1);
        vgic_pulse(&a->v, 42);
        REST((void)0);
        NOTIFIES(sim_eoi(a, 42); sim_sync(a));
        a->vmcr |= VGIC_VMCR_VEOIM;
        gicd_w(a, 0x6000 + 42 * 8, 0);
        vgic_pulse(&a->v, 42);
        assert_int_equal(sim_iar(a, 1), 42);
        gicd_w(a, 0x6000 + 42 * 8, 1);
        vgic_pulse(&a->v, 42);
        sim_eoi(a, 42);
        REST((void)0);
        NOTIFIES(sim_dir(a, 42));
        assert_int_equal(drain(a, 1), 0);
    }
}

/* --- Overflow --- */

static void overflow_highest_priority_first(void **state) {
    (void)state;
    for (unsigned n_lr = 1; n_lr <= 16; n_lr++) {
        boot(1, n_lr);
        struct sim *s = &cpus[0];
        unsigned last = 0;

        for (unsigned i = 0; i < 20; i++) {
            unsigned id = i < 10 ? i : 60 + i; /* SGIs and SPIs */

            irq_prio(s, 0, id, (uint8_t)(i * 7 % 20 << 3));
            if (id >= 32) {
                irq_edge(s, 0, id, true);
            }
            on(s, id);
            irq_w(s, 0, id, ISPEND);
        }
        for (unsigned i = 0; i < 20; i++) {
            unsigned id = sim_iar(s, 1);

            assert_int_not_equal(id, SPURIOUS);
            assert_int_equal(sim_running(s), i << 3);
            assert_true(i == 0 || sim_running(s) > last);
            last = sim_running(s);
            sim_eoi(s, id);
        }
        assert_int_equal(sim_iar(s, 1), SPURIOUS);
        if (n_lr >= 4) {
            assert_true(s->maintenance <= 20 / n_lr + 1);
        }
    }
}

/* Handlers nested 20 deep, each preempted by a higher one. */
static void overflow_nested_active(void **state) {
    (void)state;
    for (unsigned k = 0; k < 2 * 16; k++) {
        boot(1 + k / 32, k % 16 + 1);
        struct sim *s = &cpus[0];
        unsigned ids[20];

        s->vmcr |= k >= 16 ? VGIC_VMCR_VEOIM : 0;
        for (unsigned i = 0; i < 20; i++) {
            unsigned id = i & 1 ? i : 40 + i;

            ids[i] = id;
            irq_prio(s, 0, id, (uint8_t)((20 - i) << 3));
            if (id >= 32) {
                irq_edge(s, 0, id, true);
            }
            on(s, id);
            irq_w(s, 0, id, ISPEND);
            assert_int_equal(sim_iar(s, 1), id);
        }
        for (unsigned i = 20; i-- > 0;) {
            assert_int_equal(irq_r(s, 0, ids[i], ISACTIVE), 1);
            sim_eoi(s, ids[i]);
            if (k >= 16) {
                assert_int_equal(irq_r(s, 0, ids[i], ISACTIVE), 1);
                sim_dir(s, ids[i]);
            }
            assert_int_equal(irq_r(s, 0, ids[i], ISACTIVE), 0);
        }
        assert_int_equal(sim_iar(s, 1), SPURIOUS);
    }
}

/* A waiting SPI that gets a higher priority overtakes those in the list registers. */
static void overflow_priority_change(void **state) {
    (void)state;
    boot(2, 2);
    struct sim *s = &cpus[0];

    for (unsigned id = 40; id < 44; id++) {
        irq_edge(s, 0, id, true);
        irq_prio(s, 0, id, (uint8_t)(id << 2 & 0xf8));
        on(s, id);
        irq_w(s, 0, id, ISPEND);
    }
    irq_prio(&cpus[1], 0, 43, 8);
    assert_int_equal(sim_iar(s, 1), 43);
    sim_eoi(s, 43);
    assert_int_equal(drain(s, 1), 3);
}

/* --- Other things --- */

/* vgic_pending() = would WFI end: table of what must hold. */
static void pending_wakes_wfi(void **state) {
    static const unsigned ids[] = { 3, 20, 40 };
    (void)state;

    for (unsigned k = 0; k < 3; k++) {
        unsigned id = ids[k];

        boot(2, 4);
        struct sim *s = &cpus[0];

#define PENDING(expect)                                                                            \
    do {                                                                                           \
        sim_irqs(s);                                                                               \
        sim_sync(s);                                                                               \
        assert_int_equal(vgic_pending(&s->v), expect);                                             \
    } while (0)

        PENDING(false);
        irq_prio(s, 0, id, 0x80);
        irq_w(s, 0, id, ISPEND);
        PENDING(false); /* disabled */
        on(s, id);
        PENDING(true);
        gicd_w(s, 0, 1);
        PENDING(false); /* group off in the distributor */
        gicd_w(s, 0, 2);
        s->vmcr &= ~VGIC_VMCR_VENG1;
        PENDING(false); /* in the CPU interface */
        s->vmcr |= VGIC_VMCR_VENG1;
        PENDING(true);
        s->vmcr &= ~(0x7full << VGIC_VMCR_VPMR_SHIFT);
        PENDING(false); /* mask 0x80: not higher */
        s->vmcr |= 0x8ull << VGIC_VMCR_VPMR_SHIFT;
        PENDING(true);
        assert_int_equal(sim_iar(s, 1), id);
        irq_w(s, 0, id, ISPEND);
        PENDING(false); /* active */
        sim_eoi(s, id);
        PENDING(true);
        irq_w(s, 0, id, ICPEND);
        PENDING(false);
    }
    sim_sync(&cpus[0]);
    vgic_send_sgi(&cpus[1].v, sgi_to(0, 3), VGIC_SGI1R); /* nobody has folded that yet */
    on(&cpus[1], 3);
    irq_w(&cpus[1], 0, 3, ISENABLE);
    assert_true(vgic_pending(&cpus[0].v));
}

/* 1 of N: the first vCPU that is awake. */
static void one_of_n(void **state) {
    (void)state;
    boot(3, 4);
    gicd_w(&cpus[0], 0x6000 + 40 * 8, 1u << 31 | 2);
    irq_edge(&cpus[0], 0, 40, true);
    on(&cpus[0], 40);
    vgic_pulse(&cpus[2].v, 40);
    assert_int_equal(drain(&cpus[0], 1), 1);
    gicr_w(&cpus[0], 0, 0x14, 2);
    vgic_pulse(&cpus[2].v, 40);
    assert_int_equal(drain(&cpus[0], 1), 0);
    assert_int_equal(drain(&cpus[1], 1), 1);
}

/* Bad numbers do nothing; reset forgets everything but wires and links. */
static void init_and_reset(void **state) {
    (void)state;
    static struct vgic_vm vm;
    static struct vgic_vcpu v;

    assert_false(vgic_vm_init(&vm, 0, 32, 123, 5));
    assert_false(vgic_vm_init(&vm, 257, 32, 123, 5));
    assert_false(vgic_vm_init(&vm, 1, 257, 123, 5));
    assert_false(vgic_vm_init(&vm, 1, 32, 123, 3));
    assert_true(vgic_vm_init(&vm, 1, 33, 123, 5));
    assert_int_equal(vm.n_spis, 64);
    assert_false(vgic_vcpu_init(&vm, &v, 1, 4, true));
    assert_false(vgic_vcpu_init(&vm, &v, 0, 17, true));
    assert_false(vgic_vcpu_init(&vm, &v, 0, 0, true));

    boot(2, 4);
    struct sim *s = &cpus[0];

    vgic_hw_link(&s->v, 5, 5);
    vgic_hw_link(&s->v, 32, 5);
    assert_int_equal(s->v.hw, 1u << TIMER);
    vgic_set_level(&s->v, 3, true);
    vgic_set_level(&s->v, 32 + 256, true);
    vgic_pulse(&s->v, 3);
    vgic_pulse(&s->v, ~0u);
    on(s, 40);
    on(s, 41);
    vgic_set_level(&s->v, 40, true);
    vgic_pulse(&s->v, 41);
    assert_int_equal(sim_iar(s, 1), 40);
    sim_sync(s);
    vgic_vm_reset(&m.vm);
    s->vmcr = s->v.ich_vmcr;
    assert_int_equal(s->vmcr, 0);
    memset(s->ap, 0, sizeof(s->ap));
    sim_enter(s);
    assert_int_equal(gicd_r(s, 0), 0x50);
    assert_int_equal(gicr_r(s, 0, 0x14), 6);
    for (unsigned w = 1; w < 9; w++) {
        assert_int_equal(gicd_r(s, ISENABLE + w * 4) | gicd_r(s, ISACTIVE + w * 4), 0);
        assert_int_equal(gicd_r(s, ISPEND + w * 4), w == 1 ? 1u << 8 : 0); /* the wire */
    }
    machine_guest_setup(&m);
    on(s, 40);
    assert_int_equal(sim_iar(s, 1), 40);
}

/* Nothing changed: no list register is written, and nothing is dirty. */
static void quiet_paths_write_nothing(void **state) {
    (void)state;
    boot(2, 4);
    struct sim *a = &cpus[0], *b = &cpus[1];

    irq_w(a, 1, 3, ISENABLE);
    sim_irqs(b);
    vgic_send_sgi(&a->v, sgi_to(1, 3), VGIC_SGI1R);
    assert_false(vgic_dirty(&a->v));
    sim_sync(b);
    vgic_fill(&b->v);
    assert_int_equal(b->v.lr_write, 1);
    assert_false(b->v.hcr_write);
    b->lr[0] = b->v.lr[0];
    b->v.lr_write = 0;
    sim_sync(b);
    vgic_fill(&b->v);
    assert_int_equal(b->v.lr_write, 0);
    assert_int_equal(sim_iar_raw(b, 1), 3);
    sim_sync(b);
    vgic_fill(&b->v);
    assert_int_equal(b->v.lr_write, 0);
    sim_eoi_raw(b, 3);
    sim_sync(b);
    vgic_fill(&b->v);
    assert_int_equal(b->v.lr_write, 0);
    assert_int_equal(b->v.lr_used, 0);
    assert_false(vgic_dirty(&b->v));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(g01_disable_while_active),
        cmocka_unit_test(g01_disable_while_active_line_high),
        cmocka_unit_test(g03_remote_writes_reach_live_list_registers),
        cmocka_unit_test(g03_route_change),
        cmocka_unit_test(g06_edge_bookkeeping),
        cmocka_unit_test(g06_a_million_firings),
        cmocka_unit_test(g07_raised_while_disabled),
        cmocka_unit_test(g08_sgi_affinity),
        cmocka_unit_test(g10_sgis_to_self),
        cmocka_unit_test(g12_level_resampling),
        cmocka_unit_test(g19_group_of_distributor_off),
        cmocka_unit_test(g19_group_of_cpu_interface_off),
        cmocka_unit_test(g20_timer_with_trapped_dir),
        cmocka_unit_test(g20_timer_active_outside),
        cmocka_unit_test(g20_linked_interrupt_by_mmio),
        cmocka_unit_test(g20_timer_off_the_cpu),
        cmocka_unit_test(g20_dir_on_another_vcpu),
        cmocka_unit_test(p21_every_way_notifies),
        cmocka_unit_test(overflow_highest_priority_first),
        cmocka_unit_test(overflow_nested_active),
        cmocka_unit_test(overflow_priority_change),
        cmocka_unit_test(pending_wakes_wfi),
        cmocka_unit_test(one_of_n),
        cmocka_unit_test(init_and_reset),
        cmocka_unit_test(quiet_paths_write_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
