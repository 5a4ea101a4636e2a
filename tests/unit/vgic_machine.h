/* SPDX-License-Identifier: GPL-2.0-only */
/* The virtual GIC's callbacks and a machine, for tests in which all vCPUs are one thread. */
#ifndef TESTS_UNIT_VGIC_MACHINE_H
#define TESTS_UNIT_VGIC_MACHINE_H

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
static inline void boot(unsigned n, unsigned n_lr) {
    machine_init(&m, cpus, n, n_lr);
    machine_guest_setup(&m);
}

/* Acknowledges what comes until nothing does; ends each; returns how many. */
static inline unsigned drain(struct sim *s, unsigned g) {
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

static inline void on(struct sim *s, unsigned id) {
    irq_w(s, s->v.index, id, ISENABLE);
}

static inline void off(struct sim *s, unsigned id) {
    irq_w(s, s->v.index, id, ICENABLE);
}

#endif
