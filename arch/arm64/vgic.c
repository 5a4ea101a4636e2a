/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtual GIC's state: set-up, who gets an SPI, lines, pulses and SGIs.
 *
 * What is to be delivered where is kept up to date at each change (vgic_update), so that a guest
 * entry looks at a few words and never walks over interrupts.
 */
#include "arch/arm64/vgic_priv.h"

#include <string.h>

/* The bank of SPI `intid` and the bit in it: false if there is none. */
static bool spi_find(const struct vgic_vm *vm, unsigned intid, unsigned *w, unsigned *n) {
    if (intid < VGIC_FIRST_SPI || intid >= VGIC_FIRST_SPI + vm->n_spis) {
        return false;
    }
    *w = (intid - VGIC_FIRST_SPI) / 32u;
    *n = intid % 32u;
    return true;
}

void vgic_kick(struct vgic_vcpu *v) {
    __atomic_store_n(&v->dirty, 1u, __ATOMIC_RELEASE);
    vgic_notify(v);
}

void vgic_kicks_run(struct vgic_vm *vm, struct vgic_kicks *k, const struct vgic_vcpu *self) {
    for (uint32_t i = 0; i < k->words; i++) {
        for (uint64_t bits = k->kick[i]; bits != 0; bits &= bits - 1u) {
            vgic_kick(vm->vcpu[i * 64u + (unsigned)__builtin_ctzll(bits)]);
        }
    }
    for (uint32_t i = 0; i < k->words; i++) {
        for (uint64_t bits = k->sync[i]; bits != 0; bits &= bits - 1u) {
            struct vgic_vcpu *v = vm->vcpu[i * 64u + (unsigned)__builtin_ctzll(bits)];

            if (v != self) {
                vgic_sync_remote(v);
            }
        }
    }
}

/* --- Set-up --- */

/* A bank in reset state; the input lines stay. */
static void bank_reset(struct vgic_bank *b, uint32_t edge) {
    uint32_t line = b->line;

    memset(b, 0, sizeof(*b));
    b->line = line;
    b->edge = edge;
}

static void vcpu_reset(struct vgic_vcpu *v) {
    bank_reset(&v->own, VGIC_SGI_MASK);
    v->own.line &= ~v->hw;
    v->hw_new = 0;
    v->hw_low = 0;
    v->hw_phys = 0;
    v->new_latch = 0;
    v->spi_any = 0;
    v->awake = false;
    v->live = 0;
    v->lr_used = 0;
    v->lr_write = v->lr_all;
    v->ich_hcr = v->hcr_base;
    v->hcr_in = 0;
    v->hcr_write = true;
    v->dirty = 1;
    memset(v->lr, 0, sizeof(v->lr));
    memset(v->spi_cand, 0, sizeof(v->spi_cand));
    memset(v->spi_held, 0, sizeof(v->spi_held));
    vgic_cpuif_reset(v);
}

static void dist_reset(struct vgic_vm *vm) {
    vm->ctlr = 0;
    for (unsigned w = 0; w < VGIC_SPI_BANKS; w++) {
        bank_reset(&vm->spi[w], 0);
        vm->cand[w] = 0;
    }
    for (unsigned n = 0; n < VGIC_MAX_SPIS; n++) {
        vm->irouter[n] = 0;
        vm->target[n] = VGIC_NOBODY;
        vm->holder[n] = VGIC_NOBODY;
    }
}

bool vgic_vm_init(struct vgic_vm *vm, unsigned n_vcpus, unsigned n_spis, unsigned region0,
                  unsigned pri_bits) {
    if (n_vcpus == 0 || n_vcpus > VGIC_MAX_VCPUS || n_spis > VGIC_MAX_SPIS || region0 == 0 ||
        pri_bits < 4 || pri_bits > 8) {
        return false;
    }
    memset(vm, 0, sizeof(*vm));
    spin_init(&vm->lock);
    vm->n_vcpus = (uint16_t)n_vcpus;
    vm->n_spis = (uint16_t)((n_spis + 31u) / 32u * 32u);
    vm->region0 = (uint16_t)(region0 < VGIC_MAX_VCPUS ? region0 : VGIC_MAX_VCPUS);
    vm->prio_mask = (uint8_t)(0xff00u >> pri_bits);
    dist_reset(vm);
    return true;
}

bool vgic_vcpu_init(struct vgic_vm *vm, struct vgic_vcpu *v, unsigned index, unsigned n_lr,
                    bool tds) {
    if (index >= vm->n_vcpus || n_lr == 0 || n_lr > VGIC_MAX_LRS) {
        return false;
    }
    memset(v, 0, sizeof(*v));
    spin_init(&v->lock);
    v->vm = vm;
    v->index = (uint16_t)index;
    v->n_lr = (uint8_t)n_lr;
    v->lr_all = (1u << n_lr) - 1u;
    v->tds = tds;
    v->hcr_base = VGIC_HCR_EN;
    /* With EOImode 1 another vCPU than its holder may deactivate an SPI: a trap shows that. */
    if (tds && vm->n_vcpus > 1u) {
        v->hcr_base |= VGIC_HCR_TDIR;
    }
    vcpu_reset(v);
    vm->vcpu[index] = v;
    return true;
}

void vgic_hw_link(struct vgic_vcpu *v, unsigned intid, unsigned pintid) {
    if (intid < VGIC_FIRST_PPI || intid >= VGIC_FIRST_SPI) {
        return;
    }
    v->hw |= 1u << intid;
    v->hw_pintid[intid] = (uint16_t)pintid;
    v->own.edge &= ~(1u << intid);
    v->own.line &= ~(1u << intid);
}

void vgic_vm_reset(struct vgic_vm *vm) {
    spin_lock(&vm->lock);
    dist_reset(vm);
    for (unsigned i = 0; i < vm->n_vcpus; i++) {
        struct vgic_vcpu *v = vm->vcpu[i];

        spin_lock(&v->lock);
        vcpu_reset(v);
        spin_unlock(&v->lock);
    }
    spin_unlock(&vm->lock);
}

void vgic_cpuif_reset(struct vgic_vcpu *v) {
    v->ich_vmcr = 0;
    memset(v->ap0r, 0, sizeof(v->ap0r));
    memset(v->ap1r, 0, sizeof(v->ap1r));
}

/* --- Where SPIs go --- */

unsigned vgic_route(const struct vgic_vm *vm, unsigned spi) {
    uint64_t route = vm->irouter[spi];
    unsigned index = (unsigned)(route >> 8 & 0xffu) * 16u + (unsigned)(route & 0xffu);

    if ((route & VGIC_IROUTER_IRM) != 0) {
        /* 1 of N (3.1.2): the choice is ours. The first one that is awake. */
        for (unsigned i = 0; i < vm->n_vcpus; i++) {
            if (vm->vcpu[i] != NULL && vm->vcpu[i]->awake) {
                return i;
            }
        }
        return VGIC_NOBODY;
    }
    if ((route & 0xff00ff00f0ull) != 0 || index >= vm->n_vcpus || vm->vcpu[index] == NULL) {
        return VGIC_NOBODY; /* Aff3, Aff2, Aff0 > 15, or beyond the last vCPU */
    }
    return index;
}

void vgic_spi_any(struct vgic_vcpu *v, unsigned w) {
    uint32_t any = v->spi_any & ~(1u << w);

    if ((v->spi_cand[w] | v->spi_held[w]) != 0) {
        any |= 1u << w;
    }
    __atomic_store_n(&v->spi_any, any, __ATOMIC_RELEASE);
}

void vgic_unhold(struct vgic_vm *vm, unsigned w, unsigned n) {
    unsigned holder = vm->holder[w * 32u + n];

    if (holder != VGIC_NOBODY) {
        struct vgic_vcpu *v = vm->vcpu[holder];

        v->spi_held[w] &= ~(1u << n);
        vm->holder[w * 32u + n] = VGIC_NOBODY;
        vgic_spi_any(v, w);
    }
}

void vgic_hold(struct vgic_vcpu *v, unsigned w, unsigned n) {
    v->vm->holder[w * 32u + n] = v->index;
    v->spi_held[w] |= 1u << n;
    vgic_spi_any(v, w);
}

void vgic_unassign(struct vgic_vm *vm, unsigned w, unsigned n) {
    unsigned target = vm->target[w * 32u + n];

    vm->cand[w] &= ~(1u << n);
    if (target != VGIC_NOBODY) {
        struct vgic_vcpu *v = vm->vcpu[target];

        v->spi_cand[w] &= ~(1u << n);
        vm->target[w * 32u + n] = VGIC_NOBODY;
        vgic_spi_any(v, w);
    }
}

static void assign(struct vgic_vm *vm, unsigned w, unsigned n, struct vgic_kicks *k) {
    unsigned target = vgic_route(vm, w * 32u + n);

    vm->cand[w] |= 1u << n;
    if (target != VGIC_NOBODY) {
        struct vgic_vcpu *v = vm->vcpu[target];

        v->spi_cand[w] |= 1u << n;
        vm->target[w * 32u + n] = (uint16_t)target;
        vgic_spi_any(v, w);
        vgic_kicks_add(k, target);
    }
}

void vgic_update(struct vgic_vm *vm, unsigned w, struct vgic_kicks *k) {
    const struct vgic_bank *b = &vm->spi[w];
    uint32_t cand = vgic_forward(b) & ~b->active & ~b->in_lr;

    for (uint32_t changed = cand ^ vm->cand[w]; changed != 0; changed &= changed - 1u) {
        unsigned n = vgic_ctz(changed);

        if ((cand >> n & 1u) != 0) {
            assign(vm, w, n, k);
        } else {
            vgic_unassign(vm, w, n);
        }
    }
}

/* --- Making interrupts pending --- */

/* The line of SPI bit `n` of bank `w` changed to `level`. vm->lock held. */
static void spi_line(struct vgic_vm *vm, unsigned w, unsigned n, bool level, struct vgic_kicks *k) {
    struct vgic_bank *b = &vm->spi[w];
    uint32_t bit = 1u << n;
    bool edge = (b->edge & bit) != 0;

    b->line ^= bit;
    if (level && edge) {
        b->latch |= bit;
    }
    /*
     * What is in a list register: another edge has to be merged into it, and a level that fell may
     * have to go. A level that rose needs nothing: EOI brings a maintenance interrupt.
     */
    if ((b->in_lr & bit) != 0 && level == edge) {
        vgic_kicks_add(k, vm->holder[w * 32u + n]);
    }
    vgic_update(vm, w, k);
}

/* The line of PPI `bit` of `v` is now `level`: true if `v` has to know. v->lock held. */
static bool ppi_line(struct vgic_vcpu *v, uint32_t bit, bool level) {
    struct vgic_bank *b = &v->own;

    if ((v->hw & bit) != 0) {
        /* While live the list register goes first: vgic_fold() merges this after it. */
        if (level) {
            v->hw_new |= bit;
            v->hw_low &= ~bit;
        } else {
            v->hw_low |= bit; /* hw_new stays: it is active physically */
        }
        if (!vgic_live(v)) {
            vgic_merge_hw(v);
        }
        if (!level) {
            vgic_maintenance(v); /* only a fill is due, and the glue is on its way there */
        }
        return level;
    }
    if (((b->line & bit) != 0) == level) {
        return false;
    }
    b->line ^= bit;
    if (level && (b->edge & bit) != 0) {
        b->latch |= bit;
    }
    return level || (b->in_lr & bit) != 0;
}

void vgic_set_level(struct vgic_vcpu *v, unsigned intid, bool level) {
    struct vgic_vm *vm = v->vm;
    unsigned w, n;

    if (intid >= VGIC_FIRST_PPI && intid < VGIC_FIRST_SPI) {
        spin_lock(&v->lock);
        bool kick = ppi_line(v, 1u << intid, level);
        spin_unlock(&v->lock);
        if (kick) {
            vgic_kick(v);
        }
    } else if (spi_find(vm, intid, &w, &n)) {
        struct vgic_kicks kicks;

        vgic_kicks_init(&kicks, vm);
        spin_lock(&vm->lock);
        if (((vm->spi[w].line >> n & 1u) != 0) != level) {
            spi_line(vm, w, n, level, &kicks);
        }
        spin_unlock(&vm->lock);
        vgic_kicks_run(vm, &kicks, v);
    }
}

void vgic_pulse(struct vgic_vcpu *v, unsigned intid) {
    struct vgic_vm *vm = v->vm;
    unsigned w, n;

    if (intid >= VGIC_FIRST_PPI && intid < VGIC_FIRST_SPI) {
        spin_lock(&v->lock);
        v->own.latch |= 1u << intid;
        spin_unlock(&v->lock);
        vgic_kick(v);
    } else if (spi_find(vm, intid, &w, &n)) {
        struct vgic_kicks kicks;

        vgic_kicks_init(&kicks, vm);
        spin_lock(&vm->lock);
        vm->spi[w].latch |= 1u << n;
        if ((vm->spi[w].in_lr >> n & 1u) != 0) {
            vgic_kicks_add(&kicks, vm->holder[w * 32u + n]);
        }
        vgic_update(vm, w, &kicks);
        spin_unlock(&vm->lock);
        vgic_kicks_run(vm, &kicks, v);
    }
}

static inline void sgi_one(struct vgic_vcpu *t, unsigned id, enum vgic_sgi_reg reg) {
    if (reg != VGIC_SGI1R && (__atomic_load_n(&t->own.group, __ATOMIC_RELAXED) >> id & 1u) != 0) {
        return;
    }
    __atomic_fetch_or(&t->new_latch, 1u << id, __ATOMIC_RELEASE);
    vgic_kick(t);
}

/* vgic_send_sgi() for all but `src`, if `others`, else for those of `list`, from `first` on. */
__attribute__((noinline)) static void sgi_many(struct vgic_vcpu *src, unsigned id, bool others,
                                               unsigned first, uint32_t list,
                                               enum vgic_sgi_reg reg) {
    struct vgic_vm *vm = src->vm;

    if (others) {
        for (unsigned i = 0; i < vm->n_vcpus; i++) {
            if (i != src->index && vm->vcpu[i] != NULL) {
                sgi_one(vm->vcpu[i], id, reg);
            }
        }
        return;
    }
    for (; list != 0; list &= list - 1u) {
        unsigned index = first + vgic_ctz(list);

        if (index < vm->n_vcpus && vm->vcpu[index] != NULL) {
            sgi_one(vm->vcpu[index], id, reg);
        }
    }
}

/*
 * The registers' fields (12.2.18): TargetList [15:0], Aff1 [23:16], INTID [27:24], Aff2 [39:32],
 * IRM [40], RS [47:44], Aff3 [55:48]. The rule for groups with DS = 1: 12.1.10. One target is what
 * most SGIs have; its call is the last thing, so that no register is saved for it.
 */
void vgic_send_sgi(struct vgic_vcpu *src, uint64_t value, enum vgic_sgi_reg reg) {
    unsigned id = (unsigned)(value >> 24 & 0xfu);
    unsigned first = (unsigned)(value >> 16 & 0xffu) * 16u;
    uint32_t list = (uint32_t)value & 0xffffu;
    bool others = (value >> 40 & 1u) != 0;

    /* No vCPU has Aff3, Aff2, or an Aff0 above 15, that a range selector would name. */
    if (!others && (value & 0x00fff0ff00000000ull) != 0) {
        return;
    }
    if (others || (list & (list - 1u)) != 0) {
        sgi_many(src, id, others, first, list, reg);
    } else if (list != 0) {
        const struct vgic_vm *vm = src->vm;
        unsigned index = first + vgic_ctz(list);

        if (index < vm->n_vcpus && vm->vcpu[index] != NULL) {
            sgi_one(vm->vcpu[index], id, reg);
        }
    }
}

/* --- Taking active state away --- */

void vgic_clear_active_own(struct vgic_vcpu *t, uint32_t bits, struct vgic_kicks *k) {
    struct vgic_bank *b = &t->own;
    uint32_t live = bits & b->in_lr;

    bits &= b->active | b->in_lr;
    b->active &= ~bits;
    b->act_ovr |= live;
    if (live != 0) {
        vgic_kicks_add_sync(k, t->index);
    } else if (bits != 0) {
        vgic_kicks_add(k, t->index);
    }
}

void vgic_clear_active_spi(struct vgic_vm *vm, unsigned w, uint32_t bits, struct vgic_kicks *k) {
    struct vgic_bank *b = &vm->spi[w];

    bits &= b->active | b->in_lr;
    b->active &= ~bits;
    b->act_ovr |= bits & b->in_lr;
    for (; bits != 0; bits &= bits - 1u) {
        unsigned n = vgic_ctz(bits);
        unsigned holder = vm->holder[w * 32u + n];

        if ((b->in_lr >> n & 1u) != 0) {
            vgic_kicks_add_sync(k, holder);
        } else {
            if (holder != VGIC_NOBODY) {
                vgic_kicks_add(k, holder);
            }
            vgic_unhold(vm, w, n);
        }
    }
    vgic_update(vm, w, k);
}

void vgic_trapped_dir(struct vgic_vcpu *v, unsigned intid) {
    struct vgic_vm *vm = v->vm;
    struct vgic_kicks kicks;
    unsigned w, n;

    if ((v->ich_vmcr & VGIC_VMCR_VEOIM) == 0) {
        return;
    }
    vgic_kicks_init(&kicks, vm);
    if (intid < VGIC_FIRST_SPI) {
        spin_lock(&v->lock);
        vgic_clear_active_own(v, 1u << intid, &kicks);
        spin_unlock(&v->lock);
    } else if (spi_find(vm, intid, &w, &n)) {
        spin_lock(&vm->lock);
        vgic_clear_active_spi(vm, w, 1u << n, &kicks);
        spin_unlock(&vm->lock);
    }
    vgic_kicks_run(vm, &kicks, v);
}

uint32_t vgic_fold_outside(struct vgic_vcpu *v, unsigned count) {
    struct vgic_vm *vm = v->vm;
    uint32_t touched = 0;

    while (count-- != 0) {
        unsigned best = VGIC_NOBODY, best_prio = 0x100;

        for (uint32_t m = v->own.active & ~v->own.in_lr; m != 0; m &= m - 1u) {
            if (v->own.prio[vgic_ctz(m)] < best_prio) {
                best = vgic_ctz(m);
                best_prio = v->own.prio[best];
            }
        }
        for (uint32_t words = v->spi_any; words != 0; words &= words - 1u) {
            unsigned w = vgic_ctz(words);

            for (uint32_t m = v->spi_held[w] & ~vm->spi[w].in_lr; m != 0; m &= m - 1u) {
                if (vm->spi[w].prio[vgic_ctz(m)] < best_prio) {
                    best = VGIC_FIRST_SPI + w * 32u + vgic_ctz(m);
                    best_prio = vm->spi[w].prio[vgic_ctz(m)];
                }
            }
        }
        if (best < VGIC_FIRST_SPI) {
            v->own.active &= ~(1u << best);
        } else if (best != VGIC_NOBODY) {
            unsigned w = (best - VGIC_FIRST_SPI) / 32u;

            vm->spi[w].active &= ~(1u << best % 32u);
            vgic_unhold(vm, w, best % 32u);
            touched |= 1u << w;
        }
    }
    return touched;
}

/* --- Looking --- */

bool vgic_pending(struct vgic_vcpu *v) {
    struct vgic_vm *vm = v->vm;
    bool result;

    spin_lock(&v->lock);
    vgic_take_new(v);
    result = vgic_bank_pending(&v->own, vgic_deliverable(&v->own), v->ich_vmcr);
    spin_unlock(&v->lock);
    if (result || __atomic_load_n(&v->spi_any, __ATOMIC_ACQUIRE) == 0) {
        return result;
    }
    spin_lock(&vm->lock);
    for (uint32_t words = v->spi_any; words != 0 && !result; words &= words - 1u) {
        unsigned w = vgic_ctz(words);
        uint32_t in_lr = v->spi_held[w] & vgic_deliverable(&vm->spi[w]);

        result = vgic_bank_pending(&vm->spi[w], v->spi_cand[w] | in_lr, v->ich_vmcr);
    }
    spin_unlock(&vm->lock);
    return result;
}
