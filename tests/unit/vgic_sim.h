/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A guest's CPU interface over list registers, and the glue around the virtual GIC, for its tests.
 *
 * The CPU interface does what IHI 0069H section 4 and the pseudocode of ICV_* say, with 8-bit group
 * priorities: acknowledge, EOI, DIR, EOImode, priority mask, group enables, maintenance interrupts,
 * and the physical timer interrupt behind PPI 27.
 */
#ifndef TESTS_UNIT_VGIC_SIM_H
#define TESTS_UNIT_VGIC_SIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arm64/vgic.h"

#define SPURIOUS 1023u
#define TIMER    27u

struct sim {
    struct vgic_vcpu v;        /* first */
    uint64_t lr[VGIC_MAX_LRS]; /* the hardware's */
    uint64_t hcr;
    uint64_t vmcr;
    uint32_t ap[8]; /* active priorities, one bit for each of 256 */
    uint8_t ap_group1[256];
    uint32_t request; /* atomic */
    unsigned notified;
    /* The physical timer interrupt of the CPU that has this vCPU. */
    bool timer_line, phys_active;
    unsigned phys_deactivated, maintenance;
};

static struct sim *sim_of(struct vgic_vcpu *v) {
    return (struct sim *)v;
}

/* --- The glue --- */

static inline void sim_read(struct sim *s) {
    for (unsigned i = 0; i < s->v.n_lr; i++) {
        if (((s->v.lr_used & ~s->v.lr_write) >> i & 1u) != 0) {
            s->v.lr[i] = s->lr[i];
        }
    }
    s->v.hcr_in = (s->v.ich_hcr & VGIC_HCR_LRENPIE) != 0 ? s->hcr : 0;
    s->v.ich_vmcr = s->vmcr;
}

static inline void sim_sync(struct sim *s) {
    sim_read(s);
    vgic_fold(&s->v);
}

/* The end of every exit. */
static inline void sim_enter(struct sim *s) {
    __atomic_store_n(&s->request, 0u, __ATOMIC_SEQ_CST);
    if (!vgic_dirty(&s->v)) {
        return;
    }
    sim_read(s);
    if (vgic_hw_held(&s->v, TIMER) && !s->timer_line) {
        vgic_set_level(&s->v, TIMER, false);
    }
    vgic_refill(&s->v);
    for (unsigned i = 0; i < s->v.n_lr; i++) {
        if ((s->v.lr_write >> i & 1u) != 0) {
            s->lr[i] = s->v.lr[i];
        }
    }
    s->v.lr_write = 0;
    if (s->v.hcr_write) {
        s->hcr = s->v.ich_hcr;
        s->v.hcr_write = false;
    }
}

/* Is the maintenance interrupt asserted (ICH_MISR_EL2)? */
static inline bool sim_maintenance(const struct sim *s) {
    bool pending = false;

    for (unsigned i = 0; i < s->v.n_lr; i++) {
        if ((s->lr[i] & (VGIC_LR_PENDING | VGIC_LR_ACTIVE | VGIC_LR_HW | VGIC_LR_EOI)) ==
            VGIC_LR_EOI) {
            return true;
        }
        pending = pending || (s->lr[i] & (VGIC_LR_PENDING | VGIC_LR_ACTIVE)) == VGIC_LR_PENDING;
    }
    return ((s->hcr & VGIC_HCR_NPIE) != 0 && !pending) ||
           ((s->hcr & VGIC_HCR_LRENPIE) != 0 && s->hcr >> VGIC_HCR_EOICOUNT_SHIFT != 0) ||
           ((s->hcr & VGIC_HCR_VGRP0EIE) != 0 && (s->vmcr & VGIC_VMCR_VENG0) != 0) ||
           ((s->hcr & VGIC_HCR_VGRP1EIE) != 0 && (s->vmcr & VGIC_VMCR_VENG1) != 0) ||
           ((s->hcr & VGIC_HCR_VGRP0DIE) != 0 && (s->vmcr & VGIC_VMCR_VENG0) == 0) ||
           ((s->hcr & VGIC_HCR_VGRP1DIE) != 0 && (s->vmcr & VGIC_VMCR_VENG1) == 0);
}

/* What interrupts a running guest, until nothing does. */
static inline void sim_irqs(struct sim *s) {
    unsigned storm = 0;

    for (;;) {
        if (s->timer_line && !s->phys_active) {
            s->phys_active = true; /* acknowledge and priority drop */
            vgic_hw_fired(&s->v, TIMER);
            sim_enter(s);
        } else if (sim_maintenance(s)) {
            s->maintenance++;
            if (++storm > 8) {
                fail_msg("storm of maintenance interrupts");
            }
            vgic_maintenance(&s->v);
            sim_enter(s);
        } else if (__atomic_load_n(&s->request, __ATOMIC_SEQ_CST) != 0 || vgic_dirty(&s->v)) {
            sim_enter(s);
            storm = 0;
        } else {
            return;
        }
    }
}

/* --- The guest's CPU interface --- */

static inline unsigned sim_running(const struct sim *s) {
    for (unsigned i = 0; i < 8; i++) {
        if (s->ap[i] != 0) {
            return i * 32u + (unsigned)__builtin_ctz(s->ap[i]);
        }
    }
    return 0xff;
}

static inline unsigned lr_prio(uint64_t lr) {
    return (unsigned)(lr >> VGIC_LR_PRIO_SHIFT & 0xffu);
}

/* The list register with the highest pending interrupt of an enabled group, or -1. */
static inline int sim_hppi(const struct sim *s) {
    int best = -1;

    for (unsigned i = 0; i < s->v.n_lr; i++) {
        uint64_t lr = s->lr[i];
        uint64_t enable = (lr & VGIC_LR_GROUP1) != 0 ? VGIC_VMCR_VENG1 : VGIC_VMCR_VENG0;

        if ((lr & (VGIC_LR_PENDING | VGIC_LR_ACTIVE)) == VGIC_LR_PENDING &&
            (s->vmcr & enable) != 0 && (best < 0 || lr_prio(lr) < lr_prio(s->lr[best]))) {
            best = (int)i;
        }
    }
    return best;
}

/* Is an interrupt of group `g` signalled? */
static inline bool sim_signalled(struct sim *s, unsigned g) {
    int i = sim_hppi(s);

    return i >= 0 && ((s->lr[i] & VGIC_LR_GROUP1) != 0) == (g == 1) &&
           lr_prio(s->lr[i]) < (s->vmcr >> VGIC_VMCR_VPMR_SHIFT & 0xffu) &&
           lr_prio(s->lr[i]) < sim_running(s);
}

/* ICC_IAR<g>_EL1 without a look at what else interrupts the guest. */
static inline unsigned sim_iar_raw(struct sim *s, unsigned g) {
    int i = sim_hppi(s);

    if (!sim_signalled(s, g)) {
        return SPURIOUS;
    }
    s->lr[i] = (s->lr[i] & ~VGIC_LR_PENDING) | VGIC_LR_ACTIVE;
    s->ap[lr_prio(s->lr[i]) / 32u] |= 1u << lr_prio(s->lr[i]) % 32u;
    return VGIC_LR_VINTID(s->lr[i]);
}

/* ICC_IAR<g>_EL1, as a guest with interrupts masked reads it. */
static inline unsigned sim_iar(struct sim *s, unsigned g) {
    unsigned id;

    sim_irqs(s);
    id = sim_iar_raw(s, g);
    sim_irqs(s);
    return id;
}

static inline void sim_deactivate(struct sim *s, unsigned id) {
    for (unsigned i = 0; i < s->v.n_lr; i++) {
        if (VGIC_LR_VINTID(s->lr[i]) == id && (s->lr[i] & VGIC_LR_ACTIVE) != 0) {
            s->lr[i] &= ~VGIC_LR_ACTIVE;
            if ((s->lr[i] & VGIC_LR_HW) != 0) {
                assert_int_equal(s->lr[i] >> VGIC_LR_PINTID_SHIFT & 0x1fff, TIMER);
                s->phys_active = false;
            }
            return;
        }
    }
    s->hcr += 1ull << VGIC_HCR_EOICOUNT_SHIFT;
}

/* ICC_EOIR<g>_EL1. */
static inline void sim_eoi_raw(struct sim *s, unsigned id) {
    unsigned prio = sim_running(s);

    s->ap[prio / 32u] &= ~(1u << prio % 32u);
    if ((s->vmcr & VGIC_VMCR_VEOIM) == 0) {
        sim_deactivate(s, id);
    }
}

static inline void sim_eoi(struct sim *s, unsigned id) {
    sim_irqs(s);
    sim_eoi_raw(s, id);
    sim_irqs(s);
}

/* ICC_DIR_EL1. */
static inline void sim_dir(struct sim *s, unsigned id) {
    sim_irqs(s);
    if ((s->hcr & (VGIC_HCR_TDIR | VGIC_HCR_TC)) != 0) {
        sim_sync(s);
        vgic_trapped_dir(&s->v, id);
        sim_enter(s);
    } else {
        sim_deactivate(s, id);
    }
    sim_irqs(s);
}

/* --- The guest's memory-mapped registers --- */

static inline uint64_t sim_mmio(struct sim *s, bool redist, uint64_t off, unsigned width,
                                bool write, uint64_t value) {
    sim_irqs(s);
    sim_sync(s);
    if (redist) {
        (void)vgic_mmio_redist(s->v.vm, &s->v, off, width, write, &value);
    } else {
        (void)vgic_mmio_dist(s->v.vm, &s->v, off, width, write, &value);
    }
    sim_enter(s);
    sim_irqs(s);
    return value;
}

static inline void gicd_w(struct sim *s, uint64_t off, uint64_t value) {
    (void)sim_mmio(s, false, off, 4, true, value);
}

static inline uint32_t gicd_r(struct sim *s, uint64_t off) {
    return (uint32_t)sim_mmio(s, false, off, 4, false, 0);
}

/* Of vCPU `t`'s frames. */
static inline void gicr_w(struct sim *s, unsigned t, uint64_t off, uint64_t value) {
    (void)sim_mmio(s, true, t * (uint64_t)VGIC_REDIST_SIZE + off, 4, true, value);
}

static inline uint32_t gicr_r(struct sim *s, unsigned t, uint64_t off) {
    return (uint32_t)sim_mmio(s, true, t * (uint64_t)VGIC_REDIST_SIZE + off, 4, false, 0);
}

/* The bit for `id` in its register of a per-interrupt file: vCPU t's frame for SGIs and PPIs. */
static inline void irq_w(struct sim *s, unsigned t, unsigned id, uint64_t file) {
    if (id < 32) {
        gicr_w(s, t, 0x10000 + file, 1u << id);
    } else {
        gicd_w(s, file + id / 32u * 4u, 1u << id % 32u);
    }
}

static inline unsigned irq_r(struct sim *s, unsigned t, unsigned id, uint64_t file) {
    uint32_t word = id < 32 ? gicr_r(s, t, 0x10000 + file) : gicd_r(s, file + id / 32u * 4u);

    return word >> id % 32u & 1u;
}

static inline void irq_prio(struct sim *s, unsigned t, unsigned id, uint8_t prio) {
    uint64_t off = 0x400u + id;

    if (id < 32) {
        off += t * (uint64_t)VGIC_REDIST_SIZE + 0x10000u;
    }
    (void)sim_mmio(s, id < 32, off, 1, true, prio);
}

static inline void irq_edge(struct sim *s, unsigned t, unsigned id, bool edge) {
    uint64_t off = 0xc00u + id / 16u * 4u;
    uint32_t bit = 2u << id % 16u * 2u;
    uint32_t word = id < 32 ? gicr_r(s, t, 0x10000 + off) : gicd_r(s, off);

    word = edge ? word | bit : word & ~bit;
    if (id < 32) {
        gicr_w(s, t, 0x10000 + off, word);
    } else {
        gicd_w(s, off, word);
    }
}

enum {
    IGROUP = 0x80,
    ISENABLE = 0x100,
    ICENABLE = 0x180,
    ISPEND = 0x200,
    ICPEND = 0x280,
    ISACTIVE = 0x300,
    ICACTIVE = 0x380
};

/* ICC_SGI1R_EL1 as trapped; the value for one target. */
static inline void sim_sgi(struct sim *s, uint64_t value, enum vgic_sgi_reg reg) {
    vgic_send_sgi(&s->v, value, reg);
    sim_enter(s);
}

static inline uint64_t sgi_to(unsigned target, unsigned id) {
    return (uint64_t)id << 24 | (uint64_t)(target / 16u) << 16 | 1u << target % 16u;
}

/* --- A machine --- */

struct machine {
    struct vgic_vm vm;
    struct sim *cpu;
    unsigned n;
};

/* `n` vCPUs in memory from the caller, in reset state. */
static inline void machine_init(struct machine *m, struct sim *cpus, unsigned n, unsigned n_lr) {
    memset(cpus, 0, n * sizeof(*cpus));
    m->cpu = cpus;
    m->n = n;
    assert_true(vgic_vm_init(&m->vm, n, 256, VGIC_VIRT_REGION0, 5));
    for (unsigned i = 0; i < n; i++) {
        assert_true(vgic_vcpu_init(&m->vm, &cpus[i].v, i, n_lr, true));
        vgic_hw_link(&cpus[i].v, TIMER, TIMER);
    }
}

/* What Linux does first: all interrupts group 1, groups on, PMR 0xf0. */
static inline void machine_guest_setup(struct machine *m) {
    struct sim *s = &m->cpu[0];

    gicd_w(s, 0, 3);
    for (unsigned w = 1; w <= 8; w++) {
        gicd_w(s, IGROUP + w * 4, ~0u);
    }
    for (unsigned i = 0; i < m->n; i++) {
        gicr_w(s, i, 0x14, 0);
        gicr_w(s, i, 0x10000 + IGROUP, ~0u);
        m->cpu[i].vmcr = VGIC_VMCR_VENG0 | VGIC_VMCR_VENG1 | 0xf0ull << VGIC_VMCR_VPMR_SHIFT;
        sim_enter(&m->cpu[i]);
    }
}

#endif
