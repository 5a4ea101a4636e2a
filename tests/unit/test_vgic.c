/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c */
/* The virtual GIC as a guest's interrupt handlers see it: cases G01 to G12. */
#include "tests/unit/vgic_machine.h"

/* --- G01 --- */

/* IAR, disable, enable, EOI, in all orders that a driver's interrupt handler has. */
static void g01_disable_while_active(void **state) {
    static const char *const orders[] = {"dke", "dek", "edk", "dke-low", "dek-low"};
    static const unsigned ids[] = {20, 40};
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
    static const unsigned ids[] = {3, 20, 40};
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
    static const unsigned ids[] = {5, 20, 40};
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
    static const unsigned ids[] = {20, 40};
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
        {sgi_to(0, 4), 0},
        {sgi_to(15, 4), 15},
        {sgi_to(16, 4), 16},
        {sgi_to(17, 4), 17},
        {sgi_to(18, 4), -1},             /* 1.2: no such vCPU */
        {sgi_to(33, 4), -1},             /* 2.1 */
        {sgi_to(0, 4) | 1ull << 32, -1}, /* Aff2 */
        {sgi_to(0, 4) | 1ull << 48, -1}, /* Aff3 */
        {sgi_to(0, 4) | 1ull << 44, -1}, /* RS: Aff0 16.. */
        {4ull << 24 | 1ull << 40, -2},
        {4ull << 24 | 1ull << 40 | 0x00ff00ff00ff0001ull, -2}, /* IRM ignores affinity */
        {4ull << 24, -1},
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
    static const unsigned ids[] = {20, 40};
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
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
