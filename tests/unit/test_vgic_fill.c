/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c */
/* The virtual GIC: who is notified, more interrupts than list registers, reset. */
#include "tests/unit/vgic_machine.h"

/* --- P21 --- */

static unsigned told(unsigned i) {
    unsigned n = cpus[i].notified;

    cpus[i].notified = 0;
    return n;
}

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

/* Comes out of vCPU 0's list register while routed to vCPU 1 by now. */
static void p21_moved(struct sim *a, struct sim *b, bool live) {
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
        p21_moved(a, b, live);
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

/* Hardware without ICH_VTR_EL2.TDS: TC traps DIR, only while something is active outside. */
static void overflow_without_tdir(void **state) {
    (void)state;
    machine_init(&m, cpus, 1, 1);
    assert_true(vgic_vcpu_init(&m.vm, &cpus[0].v, 0, 1, false));
    machine_guest_setup(&m);
    struct sim *s = &cpus[0];

    s->vmcr |= VGIC_VMCR_VEOIM;
    irq_prio(s, 0, 3, 0x80);
    irq_prio(s, 0, 4, 0x40);
    on(s, 3);
    on(s, 4);
    irq_w(s, 0, 3, ISPEND);
    assert_int_equal(sim_iar(s, 1), 3);
    assert_int_equal(s->hcr, VGIC_HCR_EN);
    irq_w(s, 0, 4, ISPEND);
    assert_int_equal(s->hcr, VGIC_HCR_EN | VGIC_HCR_LRENPIE | VGIC_HCR_TC);
    assert_int_equal(sim_iar(s, 1), 4);
    sim_eoi(s, 4);
    sim_eoi(s, 3);
    sim_dir(s, 3);
    sim_dir(s, 4);
    assert_int_equal(gicr_r(s, 0, 0x10000 + ISACTIVE), 0);
    assert_int_equal(s->hcr, VGIC_HCR_EN);
}

/* --- Other things --- */

/* vgic_pending() = would WFI end: table of what must hold. */
static void pending_wakes_wfi(void **state) {
    static const unsigned ids[] = {3, 20, 40};
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

/* A used machine after vgic_vm_reset() is a new one, but for the locks and counters in it. */
static void reset_is_like_new(void **state) {
    static struct vgic_vm vm;
    static struct vgic_vcpu v[2];
    (void)state;

    boot(2, 2);
    for (unsigned id = 0; id < 288; id++) {
        irq_w(&cpus[0], 1, id, ISENABLE);
        irq_w(&cpus[0], 1, id, ISPEND);
        irq_prio(&cpus[0], 1, id, (uint8_t)id);
        if (id % 5 == 0) {
            irq_w(&cpus[0], 1, id, ISACTIVE);
        }
        if (id >= 32 && id % 3 == 0) {
            gicd_w(&cpus[0], 0x6000 + id * 8, 1);
        }
    }
    (void)sim_iar(&cpus[0], 1);
    (void)sim_iar(&cpus[1], 1);
    vgic_send_sgi(&cpus[0].v, sgi_to(1, 3), VGIC_SGI1R);
    vgic_set_level(&cpus[1].v, TIMER, true);
    vgic_set_level(&cpus[1].v, TIMER, false);
    sim_sync(&cpus[0]);
    sim_sync(&cpus[1]);
    vgic_set_level(&cpus[1].v, TIMER, true);
    vgic_vm_reset(&m.vm);
    vm = m.vm;
    memset(&vm.lock, 0, sizeof(vm.lock));
    for (unsigned i = 0; i < 2; i++) {
        v[i] = cpus[i].v;
        memset(&v[i].lock, 0, sizeof(v[i].lock));
        v[i].fold_seq = 0;
    }
    machine_init(&m, cpus, 2, 2);
    assert_memory_equal(&vm, &m.vm, sizeof(vm));
    assert_memory_equal(&v[0], &cpus[0].v, sizeof(v[0]));
    assert_memory_equal(&v[1], &cpus[1].v, sizeof(v[1]));
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
    irq_edge(a, 0, 40, true);
    irq_w(a, 0, 40, ISENABLE);
    vgic_pulse(&a->v, 40);
    assert_int_equal(drain(a, 1), 1);
    sim_sync(a);
    sim_enter(a);
    assert_int_equal(a->v.spi_any, 0); /* back on the quick way */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p21_every_way_notifies),
        cmocka_unit_test(overflow_highest_priority_first),
        cmocka_unit_test(overflow_nested_active),
        cmocka_unit_test(overflow_priority_change),
        cmocka_unit_test(overflow_without_tdir),
        cmocka_unit_test(pending_wakes_wfi),
        cmocka_unit_test(one_of_n),
        cmocka_unit_test(init_and_reset),
        cmocka_unit_test(reset_is_like_new),
        cmocka_unit_test(quiet_paths_write_nothing),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
