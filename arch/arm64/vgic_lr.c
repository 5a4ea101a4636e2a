/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtual GIC's list registers: taking back what the guest did (fold), choosing what goes in
 * (fill), and whether anything waits (pending).
 */
#include "arch/arm64/vgic_priv.h"

#define LR_STATE (VGIC_LR_PENDING | VGIC_LR_ACTIVE)

/* What the short way of one interrupt is made of: each call there would cost as much as what it
 * does. */
#define SHORT static inline __attribute__((always_inline))

/* --- Fold --- */

/* What the guest left of one interrupt in list register value `lr`; sets b->active and b->latch. */
static inline void fold_bank(struct vgic_bank *b, uint32_t bit, uint64_t lr) {
    if ((lr & VGIC_LR_PENDING) != 0 && (b->lr_soft & bit) != 0) {
        b->latch |= bit;
    }
    if ((b->act_ovr & bit) == 0) {
        b->active &= ~bit;
        if ((lr & VGIC_LR_ACTIVE) != 0) {
            b->active |= bit;
        }
    }
    b->in_lr &= ~bit;
    b->lr_soft &= ~bit;
    b->act_ovr &= ~bit;
}

/* A linked one. */
SHORT void fold_link(struct vgic_vcpu *v, uint32_t bit, uint64_t lr) {
    if ((lr & VGIC_LR_PENDING) == 0) {
        v->own.line &= ~bit; /* acknowledged: hardware tells when it fires again */
        if ((lr & VGIC_LR_ACTIVE) == 0) {
            v->hw_phys &= ~bit; /* the guest's deactivation was the physical one's too */
        }
    }
}

static inline void fold_own(struct vgic_vcpu *v, unsigned id, uint64_t lr) {
    uint32_t bit = 1u << id;

    if ((lr & VGIC_LR_HW) != 0) {
        fold_link(v, bit, lr);
    }
    fold_bank(&v->own, bit, lr);
}

/* Returns the bit of the bank that has changed. vm->lock held. */
static uint32_t fold_spi(struct vgic_vcpu *v, unsigned id, uint64_t lr) {
    struct vgic_vm *vm = v->vm;
    unsigned w = (id - VGIC_FIRST_SPI) / 32u;
    unsigned n = id % 32u;
    struct vgic_bank *b = &vm->spi[w];

    if ((b->in_lr >> n & 1u) == 0 || vm->holder[w * 32u + n] != v->index) {
        return 0; /* what was left of it in the register is done */
    }
    fold_bank(b, 1u << n, lr);
    if ((b->active >> n & 1u) == 0) {
        vgic_unhold(vm, w, n);
    }
    return 1u << w;
}

/* All list registers of `v`; returns the SPI banks that have changed. */
static inline uint32_t fold_all(struct vgic_vcpu *v, bool spi) {
    uint32_t touched = 0;

    if ((v->ich_hcr & VGIC_HCR_LRENPIE) != 0 && v->hcr_in >> VGIC_HCR_EOICOUNT_SHIFT != 0) {
        touched = vgic_fold_outside(v, (unsigned)(v->hcr_in >> VGIC_HCR_EOICOUNT_SHIFT & 0x1fu));
        v->hcr_write = true; /* the count in hardware is not 0 */
    }
    for (uint32_t used = v->lr_used; used != 0; used &= used - 1u) {
        unsigned i = vgic_ctz(used);
        unsigned id = VGIC_LR_VINTID(v->lr[i]);

        if (id < VGIC_FIRST_SPI) {
            fold_own(v, id, v->lr[i]);
        } else if (spi) {
            touched |= fold_spi(v, id, v->lr[i]);
        }
    }
    return touched;
}

/* No SPI is to be delivered to `v` nor held by it. One that comes in later marks `v` dirty, so
 * another fill follows. */
static inline bool no_spi(const struct vgic_vcpu *v) {
    return __atomic_load_n(&v->spi_any, __ATOMIC_ACQUIRE) == 0;
}

/* fold_all() and what goes with it for VGIC_LIVE_SIMPLE. v->lock held. */
SHORT void fold_simple(struct vgic_vcpu *v) {
    struct vgic_bank *b = &v->own;
    uint32_t bit = b->in_lr;

    if (bit != 0) {
        uint64_t lr = v->lr[0];

        if ((lr & VGIC_LR_HW) != 0) {
            fold_link(v, bit, lr);
        }
        if ((lr & VGIC_LR_PENDING) != 0) {
            b->latch |= b->lr_soft;
        }
        if (b->act_ovr == 0) {
            b->active = (b->active & ~bit) | ((lr & VGIC_LR_ACTIVE) != 0 ? bit : 0);
        }
        b->in_lr = 0;
        b->lr_soft = 0;
        b->act_ovr = 0;
    }
    vgic_merge_hw(v);
}

/* The list registers are folded: memory knows best. v->lock held. */
static inline void end_fold(struct vgic_vcpu *v) {
    __atomic_store_n(&v->dirty, 1u, __ATOMIC_RELAXED);
    __atomic_store_n(&v->live, VGIC_FOLDED, __ATOMIC_RELEASE);
}

static inline void count_fold(struct vgic_vcpu *v) {
    __atomic_store_n(&v->fold_seq, v->fold_seq + 1u, __ATOMIC_RELEASE);
}

__attribute__((noinline)) void vgic_fold(struct vgic_vcpu *v) {
    struct vgic_vm *vm = v->vm;
    bool spi = __atomic_load_n(&v->spi_any, __ATOMIC_ACQUIRE) != 0;
    struct vgic_kicks kicks;

    if (__atomic_load_n(&v->live, __ATOMIC_RELAXED) == 0) {
        return;
    }
    if (spi) {
        vgic_kicks_init(&kicks, vm);
        spin_lock(&vm->lock);
    }
    spin_lock(&v->lock);
    uint32_t touched = fold_all(v, spi);
    vgic_merge_hw(v);
    end_fold(v);
    spin_unlock(&v->lock);
    if (spi) {
        for (; touched != 0; touched &= touched - 1u) {
            vgic_update(vm, vgic_ctz(touched), &kicks);
        }
        spin_unlock(&vm->lock);
        kicks.kick[v->index / 64u] &= ~(1ull << (v->index % 64u)); /* dirty already */
    }
    count_fold(v);
    if (spi) {
        vgic_kicks_run(vm, &kicks, v);
    }
}

/* --- Fill --- */

/* While a vCPU's list registers are filled. */
struct fill {
    struct vgic_vcpu *v;
    uint32_t forward;   /* of the own interrupts: vgic_forward() */
    uint32_t own;       /* own interrupts that want a list register */
    uint32_t spi_words; /* SPIs that do: which words of */
    uint32_t spi[VGIC_SPI_BANKS];
};

/* Why an interrupt is chosen before another one, best first. */
enum rank { RANK_BEST, RANK_ACTIVE, RANK_PENDING, RANK_GROUP_OFF };

/* A choice: rank, priority and INTID in one number, so that the smallest is the best. */
struct choice {
    uint32_t key[VGIC_MAX_LRS];
    unsigned n;
    bool left_active, left_pending;
    uint32_t left_off; /* VGIC_HCR_VGRP?EIE for what is left of groups that are off */
};

static uint32_t make_key(enum rank rank, uint8_t prio, unsigned id) {
    return (uint32_t)rank << 24 | (uint32_t)prio << 16 | id;
}

/*
 * The list register value for interrupt `id` of bank `b`, of which `forward` are forwarded; moves
 * its latch. `link`: HW and pINTID. `here`: it may be active and pending in the list register; if
 * not, and it is pending, its EOI is told.
 */
SHORT uint64_t take(struct vgic_bank *b, unsigned id, uint32_t forward, uint64_t link, bool here) {
    uint32_t bit = 1u << id % 32u;
    uint64_t lr = id | (uint64_t)b->prio[id % 32u] << VGIC_LR_PRIO_SHIFT | link;
    uint32_t pending = forward & bit;
    uint32_t again = b->edge & bit; /* may be active and pending */

    if (!here && pending != 0) {
        again = 0;
    }
    if ((b->group & bit) != 0) {
        lr |= VGIC_LR_GROUP1;
    }
    if (link == 0 && again == 0) {
        lr |= VGIC_LR_EOI; /* look at the line, or for whom it is, again then */
    }
    if ((b->active & bit) != 0) {
        lr |= VGIC_LR_ACTIVE;
        pending &= again; /* a level waits for that EOI; linked ones can't be both (12.4.10) */
    }
    if (pending != 0) {
        lr |= VGIC_LR_PENDING;
        b->lr_soft |= b->latch & bit;
        b->latch &= ~bit;
    }
    b->in_lr |= bit;
    return lr;
}

SHORT void set_lr(struct vgic_vcpu *v, unsigned i, uint64_t lr) {
    if (v->lr[i] != lr) {
        v->lr[i] = lr;
        v->lr_write |= 1u << i;
    }
}

/*
 * Puts own interrupt `id` into list register `i`. A linked one that the guest made pending by
 * register goes without its link: the EOI has to be seen, as it may be pending again then, and
 * vgic_fill() does what the link does in hardware (hw_phys).
 */
SHORT void place_own(const struct fill *f, unsigned i, unsigned id, bool here) {
    struct vgic_vcpu *v = f->v;
    uint64_t link = 0;

    if (((v->hw & ~v->own.latch) >> id & 1u) != 0) {
        link = VGIC_LR_HW | (uint64_t)v->hw_pintid[id] << VGIC_LR_PINTID_SHIFT;
    }
    set_lr(v, i, take(&v->own, id, f->forward, link, here));
}

/* Puts SPI bit `n` of bank `w` into list register `i`. */
static void place_spi(const struct fill *f, unsigned i, unsigned w, unsigned n, bool here) {
    struct vgic_vm *vm = f->v->vm;
    struct vgic_bank *b = &vm->spi[w];
    uint32_t forward = vgic_forward(b);

    if ((b->active >> n & 1u) != 0 && vgic_route(vm, w * 32u + n) != f->v->index) {
        here = false; /* the route changed since */
    }
    vgic_unassign(vm, w, n);
    vgic_hold(f->v, w, n);
    set_lr(f->v, i, take(b, VGIC_FIRST_SPI + w * 32u + n, forward, 0, here));
}

/* Empties list register `i`, in hardware only where something would be seen of it. */
static void drop_lr(struct vgic_vcpu *v, unsigned i) {
    uint64_t lr = v->lr[i];

    if ((lr & LR_STATE) != 0 || (lr & (VGIC_LR_HW | VGIC_LR_EOI)) == VGIC_LR_EOI) {
        v->lr_write |= 1u << i;
    }
    v->lr[i] = 0;
}

/* Do all wanted interrupts fit? */
static bool all_fit(const struct fill *f) {
    unsigned room = f->v->n_lr;

    for (uint32_t m = f->own; m != 0; m &= m - 1u) {
        if (room-- == 0) {
            return false;
        }
    }
    for (uint32_t words = f->spi_words; words != 0; words &= words - 1u) {
        for (uint32_t m = f->spi[vgic_ctz(words)]; m != 0; m &= m - 1u) {
            if (room-- == 0) {
                return false;
            }
        }
    }
    return true;
}

/* The usual case, in order of INTID. Returns how many list registers are in use. */
static unsigned fill_all(const struct fill *f) {
    unsigned i = 0;

    for (uint32_t m = f->own; m != 0; m &= m - 1u) {
        place_own(f, i++, vgic_ctz(m), true);
    }
    for (uint32_t words = f->spi_words; words != 0; words &= words - 1u) {
        unsigned w = vgic_ctz(words);

        for (uint32_t m = f->spi[w]; m != 0; m &= m - 1u) {
            place_spi(f, i++, w, vgic_ctz(m), true);
        }
    }
    return i;
}

/* `key`, of group 1 or not, has no place. */
static void left_over(struct choice *c, uint32_t key, bool group1) {
    switch ((enum rank)(key >> 24)) {
    case RANK_ACTIVE:
        c->left_active = true;
        break;
    case RANK_GROUP_OFF:
        c->left_off |= (uint32_t)(group1 ? VGIC_HCR_VGRP1EIE : VGIC_HCR_VGRP0EIE);
        break;
    case RANK_BEST:
    case RANK_PENDING:
        c->left_pending = true;
        break;
    }
}

static bool is_group1(const struct vgic_vcpu *v, unsigned id) {
    const struct vgic_bank *b = &v->own;

    if (id >= VGIC_FIRST_SPI) {
        b = &v->vm->spi[(id - VGIC_FIRST_SPI) / 32u];
    }
    return (b->group >> id % 32u & 1u) != 0;
}

/* Keeps the n_lr best of all keys that it is given. */
static void choose(struct choice *c, const struct vgic_vcpu *v, uint32_t key) {
    unsigned i = c->n;

    if (c->n == v->n_lr) {
        uint32_t last = c->key[c->n - 1u];

        if (key > last) {
            left_over(c, key, is_group1(v, key & 0xffffu));
            return;
        }
        left_over(c, last, is_group1(v, last & 0xffffu));
        i--;
    } else {
        c->n++;
    }
    for (; i > 0 && c->key[i - 1u] > key; i--) {
        c->key[i] = c->key[i - 1u];
    }
    c->key[i] = key;
}

/* The wanted ones of a bank; the best pending one is kept back in *best for the end. */
static void choose_bank(struct choice *c, const struct vgic_vcpu *v, const struct vgic_bank *b,
                        uint32_t wanted, unsigned base, uint32_t *best) {
    uint32_t on = vgic_groups_on(b, (uint32_t)v->ich_vmcr); /* VENG0, VENG1 */

    for (; wanted != 0; wanted &= wanted - 1u) {
        unsigned n = vgic_ctz(wanted);
        enum rank rank = (on >> n & 1u) != 0 ? RANK_PENDING : RANK_GROUP_OFF;
        uint32_t key;

        if ((b->active >> n & 1u) != 0) {
            rank = RANK_ACTIVE;
        }
        key = make_key(rank, b->prio[n], base + n);
        if (rank == RANK_PENDING && key < *best) {
            uint32_t second = *best;

            *best = key;
            key = second;
        }
        if (key != UINT32_MAX) {
            choose(c, v, key);
        }
    }
}

/*
 * More than list registers. The best pending one always gets in, so that what runs can be preempted
 * and NPIE makes progress; then active ones, whose EOI is cheap only there. Pending ones of a group
 * that the guest has off in its CPU interface come last: they must not block others (G19).
 */
static uint64_t fill_best(const struct fill *f) {
    struct vgic_vcpu *v = f->v;
    struct choice c = {.n = 0};
    uint32_t best = UINT32_MAX;
    uint64_t hcr = 0;

    choose_bank(&c, v, &v->own, f->own, 0, &best);
    for (uint32_t words = f->spi_words; words != 0; words &= words - 1u) {
        unsigned w = vgic_ctz(words);

        choose_bank(&c, v, &v->vm->spi[w], f->spi[w], VGIC_FIRST_SPI + w * 32u, &best);
    }
    if (best != UINT32_MAX) {
        choose(&c, v, best & 0x00ffffffu); /* RANK_BEST */
    }
    for (unsigned i = 0; i < c.n; i++) {
        unsigned id = c.key[i] & 0xffffu;
        bool active = c.key[i] >> 24 == RANK_ACTIVE;

        /*
         * Not active and pending here: that may become pending without an exit, while its group is
         * off, and then NPIE would be silent.
         */
        if (id < VGIC_FIRST_SPI) {
            place_own(f, i, id, !active);
        } else {
            place_spi(f, i, (id - VGIC_FIRST_SPI) / 32u, id % 32u, !active);
        }
        if (!active) {
            hcr |= is_group1(v, id) ? VGIC_HCR_VGRP1DIE : VGIC_HCR_VGRP0DIE;
        }
    }
    /* If the guest turns off the group of those inside, others have to get in: the DIE bits. */
    hcr = c.left_pending ? hcr | VGIC_HCR_NPIE : 0;
    if (c.left_active) {
        hcr |= VGIC_HCR_LRENPIE | (v->tds ? VGIC_HCR_TDIR : VGIC_HCR_TC);
    }
    return hcr | c.left_off;
}

static uint32_t wanted_spis(struct fill *f) {
    /* cppcheck-suppress ctuuninitvar ; vgic_fill() has set f->v, all that is read here */
    struct vgic_vcpu *v = f->v;
    uint32_t words = v->spi_any;

    for (uint32_t m = words; m != 0; m &= m - 1u) {
        unsigned w = vgic_ctz(m);

        f->spi[w] = v->spi_cand[w] | v->spi_held[w];
    }
    return words;
}

/* Both locks held as needed. */
static inline void fill_locked(struct fill *f) {
    struct vgic_vcpu *v = f->v;
    uint64_t hcr = v->hcr_base;
    unsigned used = v->n_lr;

    vgic_merge_hw(v);
    vgic_take_new(v);
    f->forward = vgic_forward(&v->own);
    f->own = f->forward | v->own.active;
    if (all_fit(f)) {
        used = fill_all(f);
    } else {
        hcr |= fill_best(f);
    }
    for (uint32_t gone = v->lr_used >> used; gone != 0; gone &= gone - 1u) {
        drop_lr(v, used + vgic_ctz(gone));
    }
    v->lr_used = (1u << used) - 1u;
    if (v->ich_hcr != hcr) {
        v->ich_hcr = hcr;
        v->hcr_write = true;
    }
    __atomic_store_n(&v->live, VGIC_LIVE, __ATOMIC_RELEASE);
}

/* The linked interrupts whose physical ones nobody else deactivates. v->lock held, filled. */
SHORT uint32_t take_release(struct vgic_vcpu *v) {
    uint32_t release = v->hw_phys;

    if (release != 0) {
        release &= ~(v->own.line | v->own.active);
        v->hw_phys &= ~release;
    }
    return release;
}

static inline void deactivate(struct vgic_vcpu *v, uint32_t release) {
    for (; release != 0; release &= release - 1u) {
        vgic_phys_deactivate(v, v->hw_pintid[vgic_ctz(release)]);
    }
}

/* take() for one that is pending by an edge, not active and the only one. */
SHORT uint64_t take_edge(struct vgic_bank *b, uint32_t bit) {
    unsigned id = vgic_ctz(bit);
    uint64_t lr = id | (uint64_t)b->prio[id] << VGIC_LR_PRIO_SHIFT | VGIC_LR_PENDING;

    b->latch &= ~bit;
    b->in_lr = bit;
    b->lr_soft = bit;
    return (b->group & bit) != 0 ? lr | VGIC_LR_GROUP1 : lr;
}

/*
 * fill_locked() for at most one own interrupt in number 0, where others are empty and ich_hcr is
 * hcr_base; false, and nothing done, if more than one is wanted. v->lock held, no_spi().
 */
SHORT bool fill_simple(struct vgic_vcpu *v) {
    struct fill f = {.v = v};

    vgic_take_new(v);
    f.forward = vgic_forward(&v->own);
    f.own = f.forward | v->own.active;
    if ((f.own & (f.own - 1u)) != 0) {
        return false;
    }
    if ((f.own & v->own.edge & ~v->own.active) != 0) {
        set_lr(v, 0, take_edge(&v->own, f.own));
        v->lr_used = 1;
    } else if (f.own != 0) {
        place_own(&f, 0, vgic_ctz(f.own), true);
        v->lr_used = 1;
    } else if (v->lr_used != 0) {
        drop_lr(v, 0);
        v->lr_used = 0;
    }
    return true;
}

/* Any number of interrupts. The mark is taken. */
__attribute__((noinline)) static void fill_any(struct vgic_vcpu *v) {
    struct vgic_vm *vm = v->vm;
    bool spi = !no_spi(v);
    struct fill f;
    uint32_t release;

    f.v = v;
    f.spi_words = 0;
    if (spi) {
        spin_lock(&vm->lock);
        f.spi_words = wanted_spis(&f);
    }
    spin_lock(&v->lock);
    fill_locked(&f);
    release = take_release(v);
    spin_unlock(&v->lock);
    if (spi) {
        spin_unlock(&vm->lock);
    }
    deactivate(v, release);
}

/* First the mark is taken, then the look: a sender does it the other way round. */
static inline void take_mark(struct vgic_vcpu *v) {
    (void)__atomic_exchange_n(&v->dirty, 0u, __ATOMIC_ACQ_REL);
}

void vgic_fill(struct vgic_vcpu *v) {
    if (__atomic_load_n(&v->live, __ATOMIC_RELAXED) != VGIC_FOLDED) {
        return;
    }
    take_mark(v);
    if (v->lr_used <= 1u && v->ich_hcr == v->hcr_base && no_spi(v)) {
        spin_lock(&v->lock);
        vgic_merge_hw(v);
        if (fill_simple(v)) {
            uint32_t release = take_release(v);

            __atomic_store_n(&v->live, VGIC_LIVE_SIMPLE, __ATOMIC_RELEASE);
            spin_unlock(&v->lock);
            deactivate(v, release);
            return;
        }
        spin_unlock(&v->lock);
    }
    fill_any(v);
}

void vgic_refill(struct vgic_vcpu *v) {
    if (__atomic_load_n(&v->live, __ATOMIC_RELAXED) != VGIC_LIVE_SIMPLE || !no_spi(v)) {
        vgic_fold(v);
        vgic_fill(v);
        return;
    }
    take_mark(v);
    spin_lock(&v->lock);
    fold_simple(v);
    if (fill_simple(v)) {
        uint32_t release = take_release(v);

        spin_unlock(&v->lock);
        count_fold(v);
        deactivate(v, release);
    } else {
        __atomic_store_n(&v->live, VGIC_FOLDED, __ATOMIC_RELEASE);
        spin_unlock(&v->lock);
        count_fold(v);
        fill_any(v);
    }
}

/* --- Fold and look --- */

bool vgic_fold_pending(struct vgic_vcpu *v) {
    bool pending;

    if (__atomic_load_n(&v->live, __ATOMIC_RELAXED) != VGIC_LIVE_SIMPLE || !no_spi(v)) {
        vgic_fold(v);
        return vgic_pending(v);
    }
    spin_lock(&v->lock);
    fold_simple(v);
    vgic_take_new(v);
    end_fold(v);
    pending = vgic_bank_pending(&v->own, vgic_forward(&v->own) & ~v->own.active, v->ich_vmcr);
    spin_unlock(&v->lock);
    count_fold(v);
    return pending; /* an SPI that comes meanwhile wakes `v` afterwards: vgic_notify() */
}
