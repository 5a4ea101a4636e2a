/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the virtual GIC share; not for others. */
#ifndef ARCH_ARM64_VGIC_PRIV_H
#define ARCH_ARM64_VGIC_PRIV_H

#include <stddef.h>

#include "arch/arm64/vgic.h"

#define VGIC_SGI_MASK 0xffffu

/* GICD_CTLR (12.9.4) with DS = 1: the enables, and what reads as one. */
#define VGIC_CTLR_GRP0 (1u << 0)
#define VGIC_CTLR_GRP1 (1u << 1)
#define VGIC_CTLR_RAO  ((1u << 4) | (1u << 6)) /* ARE, DS */

/* GICD_IROUTER<n> (12.9.22): IRM. */
#define VGIC_IROUTER_IRM (1ull << 31)

/*
 * vCPUs to tell, and vCPUs whose list registers to wait for, once the locks are given back. Only
 * the first `words` words are used, so that a small VM pays for one.
 */
struct vgic_kicks {
    uint64_t kick[VGIC_MAX_VCPUS / 64u];
    uint64_t sync[VGIC_MAX_VCPUS / 64u];
    uint32_t words;
};

static inline void vgic_kicks_init(struct vgic_kicks *k, const struct vgic_vm *vm) {
    k->words = (vm->n_vcpus + 63u) / 64u;
    for (uint32_t i = 0; i < k->words; i++) {
        k->kick[i] = 0;
        k->sync[i] = 0;
    }
}

static inline void vgic_kicks_add(struct vgic_kicks *k, unsigned index) {
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): index < n_vcpus, see init */
    k->kick[index / 64u] |= 1ull << (index % 64u);
}

static inline void vgic_kicks_add_sync(struct vgic_kicks *k, unsigned index) {
    vgic_kicks_add(k, index);
    k->sync[index / 64u] |= 1ull << (index % 64u);
}

/* Notifies everybody in `k`, then waits for those to wait for, except `self`. No lock held. */
void vgic_kicks_run(struct vgic_vm *vm, struct vgic_kicks *k, const struct vgic_vcpu *self);

/* The one place that tells a vCPU about a change (P21). No lock held. */
void vgic_kick(struct vgic_vcpu *v);

/*
 * Brings vm->cand and the targets' spi_cand of SPI bank `w` up to date after any change in it; new
 * targets go into `k`. vm->lock held.
 */
void vgic_update(struct vgic_vm *vm, unsigned w, struct vgic_kicks *k);

/* Takes SPI bit `n` of bank `w` from its target; vgic_update() chooses again. vm->lock held. */
void vgic_unassign(struct vgic_vm *vm, unsigned w, unsigned n);

/* Brings bit `w` of v->spi_any up to date. vm->lock held. */
void vgic_spi_any(struct vgic_vcpu *v, unsigned w);

/* SPI bit `n` of bank `w` is held by nobody now. vm->lock held. */
void vgic_unhold(struct vgic_vm *vm, unsigned w, unsigned n);

/* SPI bit `n` of bank `w` is held by `v` now. vm->lock held. */
void vgic_hold(struct vgic_vcpu *v, unsigned w, unsigned n);

/* The vCPU that SPI `spi` (INTID - 32) goes to, or VGIC_NOBODY. vm->lock held. */
unsigned vgic_route(const struct vgic_vm *vm, unsigned spi);

/* Deactivates `bits` of the vCPU's own interrupts or of SPI bank `w`; locks as for the bank. */
void vgic_clear_active_own(struct vgic_vcpu *t, uint32_t bits, struct vgic_kicks *k);
void vgic_clear_active_spi(struct vgic_vm *vm, unsigned w, uint32_t bits, struct vgic_kicks *k);

/*
 * The guest ended `count` interrupts that are active but in no list register. Which ones is not
 * said; with EOImode 0 they end in order of priority, so it was the highest (ICH_HCR_EL2.EOIcount,
 * 12.4.7). v->lock and vm->lock held, before in_lr changes; returns the SPI banks that have
 * changed.
 */
uint32_t vgic_fold_outside(struct vgic_vcpu *v, unsigned count);

static inline unsigned vgic_ctz(uint32_t bits) {
    return (unsigned)__builtin_ctz(bits);
}

static inline uint32_t vgic_ctlr(const struct vgic_vm *vm) {
    return __atomic_load_n(&vm->ctlr, __ATOMIC_RELAXED);
}

/* The interrupts of a bank whose group is on in GICD_CTLR or VMCR: bit 0 group 0, bit 1 group 1. */
static inline uint32_t vgic_groups_on(const struct vgic_bank *b, uint32_t enables) {
    uint32_t group1 = 0u - (enables >> 1 & 1u), group0 = 0u - (enables & 1u);

    return (b->group & group1) | (~b->group & group0);
}

/* Brings b->on up to date, after each change of what it is made of. */
static inline void vgic_bank_on(struct vgic_bank *b, uint32_t ctlr) {
    b->on = b->enable & vgic_groups_on(b, ctlr);
}

/* Pending, enabled, and their group is on: what the distributor forwards unless active (4.1). */
static inline uint32_t vgic_forward(const struct vgic_bank *b) {
    return (b->latch | (b->line & ~b->edge)) & b->on;
}

/* What linked interrupts did while the list registers were live. v->lock held, folded. */
static inline void vgic_merge_hw(struct vgic_vcpu *v) {
    if ((v->hw_low | v->hw_new) != 0) {
        v->own.line = (v->own.line | v->hw_new) & ~v->hw_low;
        v->hw_phys |= v->hw_new;
        v->hw_low = 0;
        v->hw_new = 0;
    }
}

/* Takes SGIs that arrived without the lock into the bank. v->lock held. */
static inline void vgic_take_new(struct vgic_vcpu *v) {
    if (__atomic_load_n(&v->new_latch, __ATOMIC_RELAXED) != 0) {
        v->own.latch |= __atomic_exchange_n(&v->new_latch, 0u, __ATOMIC_ACQUIRE);
    }
}

/* Is one of `pending` in a group that is on in `vmcr`, and above its priority mask? */
static inline bool vgic_bank_pending(const struct vgic_bank *b, uint32_t pending, uint64_t vmcr) {
    uint32_t pmr = (uint32_t)(vmcr >> VGIC_VMCR_VPMR_SHIFT & 0xffu);

    if (pending == 0) {
        return false;
    }
    pending &= vgic_groups_on(b, (uint32_t)vmcr); /* VENG0, VENG1 */
    for (; pending != 0; pending &= pending - 1u) {
        if (b->prio[vgic_ctz(pending)] < pmr) {
            return true;
        }
    }
    return false;
}

/* What of a bank would be delivered now, list registers included. */
static inline uint32_t vgic_deliverable(const struct vgic_bank *b) {
    return (vgic_forward(b) | (b->lr_soft & b->on)) & ~b->active;
}

#endif
