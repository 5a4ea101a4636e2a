/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c */
/* The virtual GIC: groups that are off, and the timer interrupt linked to hardware. */
#include "tests/unit/vgic_machine.h"

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
                assert_int_equal(s->hcr & (VGIC_HCR_TDIR | VGIC_HCR_TC), VGIC_HCR_TDIR);
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
        if (i % 2 == 0) {
            vgic_set_level(&s->v, TIMER, true);
            assert_true(vgic_pending(&s->v));
            s->phys_active = vgic_hw_active(&s->v, TIMER); /* switch-in */
        } else {                                           /* found due at the switch-in itself */
            vgic_hw_fired(&s->v, TIMER);
            s->phys_active = vgic_hw_held(&s->v, TIMER);
        }
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

/* What happens to a linked interrupt while the list registers are live is merged in order. */
static void g20_linked_line_while_live(void **state) {
    (void)state;
    boot(1, 4);
    struct sim *s = &cpus[0];

    on(s, TIMER);
    sim_irqs(s);
    s->timer_line = true;
    s->phys_active = true;
    vgic_set_level(&s->v, TIMER, false);
    vgic_set_level(&s->v, TIMER, true);
    assert_int_equal(sim_iar(s, 1), TIMER);
    s->timer_line = false;
    sim_eoi(s, TIMER);
    assert_false(s->phys_active);
    s->phys_active = true; /* fired, and reprogrammed before the guest saw it */
    vgic_set_level(&s->v, TIMER, true);
    vgic_set_level(&s->v, TIMER, false);
    assert_int_equal(sim_iar(s, 1), SPURIOUS);
    assert_false(s->phys_active);
    vgic_pulse(&s->v, 22);
    assert_int_equal(sim_iar(s, 1), SPURIOUS);
    on(s, 22);
    assert_int_equal(drain(s, 1), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(g19_group_of_distributor_off),
        cmocka_unit_test(g19_group_of_cpu_interface_off),
        cmocka_unit_test(g20_timer_with_trapped_dir),
        cmocka_unit_test(g20_timer_active_outside),
        cmocka_unit_test(g20_linked_interrupt_by_mmio),
        cmocka_unit_test(g20_timer_off_the_cpu),
        cmocka_unit_test(g20_dir_on_another_vcpu),
        cmocka_unit_test(g20_linked_line_while_live),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
