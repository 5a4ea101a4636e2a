/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtual GIC's registers. Distributor and redistributor share the layout of the per-interrupt
 * ones: register file by offset, 32 interrupts to a bank, bank 0 the vCPU's own ones (in its second
 * frame) and the others SPIs (in the distributor).
 */
#include "arch/arm64/vgic_priv.h"

#define IIDR     0x5000043bu /* product 'P', implementer as QEMU's: Arm (12.9.9) */
#define SGI_BASE 0x10000u    /* the second frame of a vCPU */

/* GICR_WAKER (12.11.42). */
#define WAKER_SLEEP    (1u << 1)
#define WAKER_CHILDREN (1u << 2)

/* The per-interrupt register files, by offset / 0x80 (tables 12-25 and 12-27). */
enum file {
    FILE_GROUP = 1,
    FILE_SET_ENABLE,
    FILE_CLEAR_ENABLE,
    FILE_SET_PENDING,
    FILE_CLEAR_PENDING,
    FILE_SET_ACTIVE,
    FILE_CLEAR_ACTIVE
};

#define OFF_PRIORITY     0x400u
#define OFF_PRIORITY_END 0x7fcu /* 1020 interrupts */
#define OFF_CONFIG       0xc00u
#define OFF_CONFIG_END   0xd00u
#define OFF_GRPMOD       0xd00u /* RAZ/WI with DS = 1, as NSACR */
#define OFF_GRPMOD_END   0xd80u
#define OFF_NSACR        0xe00u
#define OFF_NSACR_END    0xf00u
#define OFF_IROUTER      0x6000u
#define OFF_IROUTER_SPI  0x6100u
#define OFF_ID           0xffd0u

/* One access: to whom, from whom. `t` is the vCPU whose bank it is, or NULL: SPI bank `w`. */
struct access {
    struct vgic_vm *vm;
    struct vgic_vcpu *self, *t;
    struct vgic_bank *b;
    unsigned w;
    uint32_t offset;
    unsigned width;
    bool is_write;
    uint64_t *value;
    struct vgic_kicks kicks;
};

static enum vgic_mmio_result ignored(struct access *a) {
    if (!a->is_write) {
        *a->value = 0;
    }
    return VGIC_MMIO_IGNORED;
}

/* A register that reads as `value`, and ignores writes. 32 bits. */
static enum vgic_mmio_result constant(struct access *a, uint32_t value) {
    if (a->width != 4) {
        return ignored(a);
    }
    if (!a->is_write) {
        *a->value = value;
    }
    return VGIC_MMIO_OK;
}

/* A 64-bit register that reads as `value` and ignores writes, whole or by halves. */
static enum vgic_mmio_result constant64(struct access *a, uint64_t value) {
    if (a->width == 8) {
        if (!a->is_write) {
            *a->value = value;
        }
        return VGIC_MMIO_OK;
    }
    return constant(a, (uint32_t)(value >> (a->offset & 4u) * 8u));
}

/*
 * The CoreSight identification registers at 0xffd0: PIDR4..7, PIDR0..3, CIDR0..3; PIDR2 says GICv3
 * (12.9.28). `part` tells distributor (0x92) and redistributor (0x93) apart, as in Arm's own.
 */
static enum vgic_mmio_result id_register(struct access *a, uint8_t part) {
    static const uint8_t id[12] = {0x44, 0, 0, 0, 0, 0xb4, 0x3b, 0, 0x0d, 0xf0, 0x05, 0xb1};
    unsigned i = ((a->offset & 0xffffu) - OFF_ID) / 4u;

    return constant(a, i == 4 ? part : id[i]);
}

/* --- Banks --- */

static void lock_bank(struct access *a) {
    spin_lock(a->t != NULL ? &a->t->lock : &a->vm->lock);
    if (a->t != NULL) {
        vgic_take_new(a->t);
    }
}

/* Ends what lock_bank() began; `changed` interrupts are new for whoever gets them. */
static void unlock_bank(struct access *a, uint32_t changed) {
    if (a->t != NULL) {
        if ((changed & a->b->in_lr) != 0) {
            vgic_kicks_add_sync(&a->kicks, a->t->index);
        } else if (changed != 0) {
            vgic_kicks_add(&a->kicks, a->t->index);
        }
        spin_unlock(&a->t->lock);
    } else {
        for (uint32_t m = changed & a->b->in_lr; m != 0; m &= m - 1u) {
            vgic_kicks_add_sync(&a->kicks, a->vm->holder[a->w * 32u + vgic_ctz(m)]);
        }
        vgic_update(a->vm, a->w, &a->kicks);
        for (uint32_t m = changed & a->vm->cand[a->w]; m != 0; m &= m - 1u) {
            unsigned target = a->vm->target[a->w * 32u + vgic_ctz(m)];

            if (target != VGIC_NOBODY) {
                vgic_kicks_add(&a->kicks, target);
            }
        }
        spin_unlock(&a->vm->lock);
    }
    vgic_kicks_run(a->vm, &a->kicks, a->self);
}

/*
 * Before a read of pending or active state: has those who have one of the bank's interrupts in a
 * live list register fold it.
 */
static void sync_bank(struct access *a) {
    struct vgic_kicks k;

    vgic_kicks_init(&k, a->vm);
    lock_bank(a);
    for (uint32_t m = a->b->in_lr; m != 0; m &= m - 1u) {
        vgic_kicks_add_sync(&k,
                            a->t != NULL ? a->t->index : a->vm->holder[a->w * 32u + vgic_ctz(m)]);
    }
    spin_unlock(a->t != NULL ? &a->t->lock : &a->vm->lock);
    vgic_kicks_run(a->vm, &k, a->self);
}

static uint32_t bank_read(struct access *a, enum file file) {
    struct vgic_bank *b = a->b;
    uint32_t value = 0;

    if (file >= FILE_SET_PENDING) {
        sync_bank(a);
    }
    lock_bank(a);
    switch (file) {
    case FILE_GROUP:
        value = b->group;
        break;
    case FILE_SET_ENABLE:
    case FILE_CLEAR_ENABLE:
        value = b->enable;
        break;
    case FILE_SET_PENDING:
    case FILE_CLEAR_PENDING:
        value = b->latch | b->lr_soft | (b->line & ~b->edge);
        break;
    case FILE_SET_ACTIVE:
    case FILE_CLEAR_ACTIVE:
        value = b->active;
        break;
    }
    spin_unlock(a->t != NULL ? &a->t->lock : &a->vm->lock);
    return value;
}

/* Sets the active state of `value`: a register write, so that no acknowledge came before. */
static uint32_t set_active(struct access *a, uint32_t value) {
    struct vgic_bank *b = a->b;
    uint32_t changed = value & (~b->active | b->in_lr);

    b->active |= changed;
    b->act_ovr |= changed & b->in_lr;
    if (a->t == NULL) {
        /* Whoever would get it is whose EOI ends it. */
        for (uint32_t m = changed & ~b->in_lr; m != 0; m &= m - 1u) {
            unsigned n = vgic_ctz(m);
            unsigned target = vgic_route(a->vm, a->w * 32u + n);

            if (target != VGIC_NOBODY) {
                vgic_hold(a->vm->vcpu[target], a->w, n);
                vgic_kicks_add(&a->kicks, target);
            }
        }
    }
    return changed;
}

/* Writes `value`; returns the interrupts that the write changed something for. Locked. */
static uint32_t bank_change(struct access *a, enum file file, uint32_t value) {
    struct vgic_bank *b = a->b;
    uint32_t changed = value;

    switch (file) {
    case FILE_GROUP:
        changed = value ^ b->group;
        __atomic_store_n(&b->group, value, __ATOMIC_RELAXED);
        vgic_bank_on(b, vgic_ctlr(a->vm));
        break;
    case FILE_SET_ENABLE:
        changed &= ~b->enable;
        b->enable |= value;
        vgic_bank_on(b, vgic_ctlr(a->vm));
        break;
    case FILE_CLEAR_ENABLE:
        changed &= b->enable;
        b->enable &= ~value;
        vgic_bank_on(b, vgic_ctlr(a->vm));
        break;
    case FILE_SET_PENDING:
        b->latch |= value;
        break;
    case FILE_CLEAR_PENDING:
        /* What is in a list register on behalf of the latch doesn't come back from there. */
        changed &= b->latch | b->lr_soft;
        b->latch &= ~value;
        b->lr_soft &= ~value;
        break;
    case FILE_SET_ACTIVE:
        changed = set_active(a, value);
        break;
    case FILE_CLEAR_ACTIVE:
        if (a->t != NULL) {
            vgic_clear_active_own(a->t, value, &a->kicks);
        } else {
            vgic_clear_active_spi(a->vm, a->w, value, &a->kicks);
        }
        changed = 0;
        break;
    }
    return changed;
}

static enum vgic_mmio_result bank_file(struct access *a, enum file file) {
    if (a->width != 4) {
        return ignored(a);
    }
    if (!a->is_write) {
        *a->value = bank_read(a, file);
        return VGIC_MMIO_OK;
    }
    lock_bank(a);
    unlock_bank(a, bank_change(a, file, (uint32_t)*a->value));
    return VGIC_MMIO_OK;
}

/* GICx_IPRIORITYR (12.9.20): four interrupts to a word, byte access too. */
static enum vgic_mmio_result bank_priority(struct access *a, unsigned first) {
    uint32_t changed = 0;
    uint64_t value = 0;

    if (a->width != 4 && a->width != 1) {
        return ignored(a);
    }
    lock_bank(a);
    for (unsigned i = 0; i < a->width; i++) {
        if (a->is_write) {
            uint8_t prio = (uint8_t)((uint8_t)(*a->value >> i * 8u) & a->vm->prio_mask);

            if (a->b->prio[first + i] != prio) {
                a->b->prio[first + i] = prio;
                changed |= 1u << (first + i);
            }
        } else {
            value |= (uint64_t)a->b->prio[first + i] << i * 8u;
        }
    }
    if (!a->is_write) {
        *a->value = value;
    }
    unlock_bank(a, changed);
    return VGIC_MMIO_OK;
}

/* GICx_ICFGR (12.9.7): 16 interrupts to a word, the upper bit of each pair says edge. */
static enum vgic_mmio_result bank_config(struct access *a, unsigned half) {
    uint32_t changed = 0, edge, fixed = 0;

    if (a->width != 4) {
        return ignored(a);
    }
    lock_bank(a);
    if (a->is_write) {
        edge = 0;
        for (unsigned i = 0; i < 16; i++) {
            edge |= (uint32_t)(*a->value >> (2u * i + 1u) & 1u) << (half * 16u + i);
        }
        if (a->t != NULL) {
            fixed = VGIC_SGI_MASK | a->t->hw;
        }
        changed = (edge ^ a->b->edge) & (0xffffu << half * 16u) & ~fixed;
        a->b->edge ^= changed;
    } else {
        edge = a->b->edge >> half * 16u;
        *a->value = 0;
        for (unsigned i = 0; i < 16; i++) {
            *a->value |= (uint64_t)(edge >> i & 1u) << (2u * i + 1u);
        }
    }
    unlock_bank(a, changed);
    return VGIC_MMIO_OK;
}

/* Makes `a` an access to bank `bank` (0: of vCPU `t`, not in the distributor); false if none. */
static bool select_bank(struct access *a, unsigned bank) {
    if (a->t != NULL) {
        a->b = &a->t->own;
        return bank == 0;
    }
    if (bank == 0 || bank > a->vm->n_spis / 32u) {
        return false;
    }
    a->w = bank - 1u;
    a->b = &a->vm->spi[a->w];
    return true;
}

/* The per-interrupt registers from 0x80 to 0xeff, at `off` in the distributor or an SGI frame. */
static enum vgic_mmio_result banks(struct access *a, uint32_t off) {
    if (off < OFF_PRIORITY) {
        return select_bank(a, off % 0x80u / 4u) ? bank_file(a, (enum file)(off / 0x80u))
                                                : ignored(a);
    }
    if (off < OFF_PRIORITY_END) {
        unsigned id = off - OFF_PRIORITY;

        return select_bank(a, id / 32u) ? bank_priority(a, id % 32u) : ignored(a);
    }
    if (off >= OFF_CONFIG && off < OFF_CONFIG_END) {
        unsigned reg = (off - OFF_CONFIG) / 4u;

        return select_bank(a, reg / 2u) ? bank_config(a, reg % 2u) : ignored(a);
    }
    if ((off >= OFF_GRPMOD && off < OFF_GRPMOD_END) || (off >= OFF_NSACR && off < OFF_NSACR_END)) {
        return constant(a, 0);
    }
    return ignored(a);
}

/* --- The distributor's own registers --- */

static void write_ctlr(struct access *a) {
    struct vgic_vm *vm = a->vm;
    uint32_t ctlr = (uint32_t)*a->value & (VGIC_CTLR_GRP0 | VGIC_CTLR_GRP1);

    spin_lock(&vm->lock);
    if (ctlr != vm->ctlr) {
        __atomic_store_n(&vm->ctlr, ctlr, __ATOMIC_RELAXED);
        for (unsigned w = 0; w < vm->n_spis / 32u; w++) {
            vgic_bank_on(&vm->spi[w], ctlr);
            vgic_update(vm, w, &a->kicks);
        }
        for (unsigned i = 0; i < vm->n_vcpus; i++) {
            struct vgic_vcpu *v = vm->vcpu[i];

            spin_lock(&v->lock);
            vgic_bank_on(&v->own, ctlr);
            spin_unlock(&v->lock);
            vgic_kicks_add_sync(&a->kicks, i);
        }
    }
    spin_unlock(&vm->lock);
    vgic_kicks_run(vm, &a->kicks, a->self);
}

/* GICD_TYPER (12.9.38): ITLinesNumber, no LPIs nor message SPIs, 10 bits of INTID, A3V, 1 of N. */
static uint32_t typer(const struct vgic_vm *vm) {
    return vm->n_spis / 32u | 9u << 19 | 1u << 24;
}

static enum vgic_mmio_result irouter(struct access *a) {
    unsigned spi = (a->offset - OFF_IROUTER_SPI) / 8u;
    struct vgic_vm *vm = a->vm;
    unsigned shift = (a->offset & 4u) * 8u;
    uint64_t mask = a->width == 8 ? ~0ull : 0xffffffffull << shift;

    if (a->width < 4 || spi >= vm->n_spis) {
        return ignored(a);
    }
    a->w = spi / 32u;
    a->b = &vm->spi[a->w];
    lock_bank(a);
    if (!a->is_write) {
        *a->value = (vm->irouter[spi] & mask) >> shift;
        unlock_bank(a, 0);
        return VGIC_MMIO_OK;
    }
    uint64_t route = (vm->irouter[spi] & ~mask) | (*a->value << shift & mask);

    route &= 0xff80ffffffull; /* Aff3, IRM, Aff2..Aff0 */
    if (route != vm->irouter[spi]) {
        vm->irouter[spi] = route;
        if ((vm->cand[a->w] >> spi % 32u & 1u) != 0) {
            vgic_unassign(vm, a->w, spi % 32u);
        }
        unlock_bank(a, 1u << spi % 32u);
    } else {
        unlock_bank(a, 0);
    }
    return VGIC_MMIO_OK;
}

static enum vgic_mmio_result dist(struct access *a) {
    uint32_t off = a->offset;

    if (off >= 0x80u && off < OFF_NSACR_END) {
        return banks(a, off);
    }
    if (off >= OFF_IROUTER_SPI && off < OFF_IROUTER + 1020u * 8u) {
        return irouter(a);
    }
    if (off >= OFF_ID) {
        return id_register(a, 0x92);
    }
    switch (off) {
    case 0x0: /* GICD_CTLR; RWP is never seen: a write is in force when it is done */
        if (a->width == 4 && a->is_write) {
            write_ctlr(a);
        }
        return constant(a, vgic_ctlr(a->vm) | VGIC_CTLR_RAO);
    case 0x4:
        return constant(a, typer(a->vm));
    case 0x8:
        return constant(a, IIDR);
    case 0xc:  /* GICD_TYPER2 */
    case 0x10: /* GICD_STATUSR */
        return constant(a, 0);
    default: /* among them GICD_SETSPI_* (no MBIS), ITARGETSR and SGIR (ARE) */
        return ignored(a);
    }
}

/* --- The first frame of a redistributor --- */

static enum vgic_mmio_result waker(struct access *a) {
    struct vgic_vm *vm = a->vm;

    if (a->width != 4) {
        return ignored(a);
    }
    spin_lock(&vm->lock);
    if (!a->is_write) {
        /* Children fall asleep and wake up at once. */
        *a->value = a->t->awake ? 0 : WAKER_SLEEP | WAKER_CHILDREN;
    } else if (a->t->awake != ((*a->value & WAKER_SLEEP) == 0)) {
        a->t->awake = !a->t->awake;
        /* SPIs that may go to any vCPU choose again. */
        for (unsigned w = 0; w < vm->n_spis / 32u; w++) {
            for (uint32_t m = vm->cand[w]; m != 0; m &= m - 1u) {
                if ((vm->irouter[w * 32u + vgic_ctz(m)] & VGIC_IROUTER_IRM) != 0) {
                    vgic_unassign(vm, w, vgic_ctz(m));
                }
            }
            vgic_update(vm, w, &a->kicks);
        }
    }
    spin_unlock(&vm->lock);
    vgic_kicks_run(vm, &a->kicks, a->self);
    return VGIC_MMIO_OK;
}

/* GICR_TYPER (12.11.37): affinity, number, Last; no LPIs. */
static uint64_t redist_typer(const struct vgic_vm *vm, unsigned index) {
    uint64_t typer = (vgic_mpidr(index) & 0xffffffu) << 32 | (uint64_t)index << 8;

    if (index + 1u == vm->region0 || index + 1u == vm->n_vcpus) {
        typer |= 1u << 4;
    }
    return typer;
}

static enum vgic_mmio_result redist(struct access *a, uint32_t off) {
    if (off >= OFF_ID) {
        return id_register(a, 0x93);
    }
    switch (off) {
    case 0x0:  /* GICR_CTLR: no LPIs to enable, no writes outstanding */
    case 0x10: /* GICR_STATUSR */
        return constant(a, 0);
    case 0x4:
        return constant(a, IIDR);
    case 0x8:
    case 0xc:
        return constant64(a, redist_typer(a->vm, a->t->index));
    case 0x14:
        return waker(a);
    case 0x70: /* GICR_PROPBASER, GICR_PENDBASER: no LPIs */
    case 0x74:
    case 0x78:
    case 0x7c:
        return constant64(a, 0);
    default:
        return ignored(a);
    }
}

/* --- The way in --- */

static bool well_formed(uint64_t offset, unsigned width, uint64_t size) {
    return (width == 1 || width == 2 || width == 4 || width == 8) && offset % width == 0 &&
           offset < size;
}

static enum vgic_mmio_result abort_access(bool is_write, uint64_t *value) {
    if (!is_write) {
        *value = 0;
    }
    return VGIC_MMIO_ABORT;
}

enum vgic_mmio_result vgic_mmio_dist(struct vgic_vm *vm, struct vgic_vcpu *v, uint64_t offset,
                                     unsigned width, bool is_write, uint64_t *value) {
    if (!well_formed(offset, width, VGIC_DIST_SIZE)) {
        return abort_access(is_write, value);
    }
    struct access a = {
        .vm = vm,
        .self = v,
        .offset = (uint32_t)offset,
        .width = width,
        .is_write = is_write,
        .value = value,
    };

    if (is_write) { /* reads have nobody to tell */
        vgic_kicks_init(&a.kicks, vm);
    }
    return dist(&a);
}

enum vgic_mmio_result vgic_mmio_redist(struct vgic_vm *vm, struct vgic_vcpu *v, uint64_t offset,
                                       unsigned width, bool is_write, uint64_t *value) {
    if (!well_formed(offset, width, (uint64_t)vm->n_vcpus * VGIC_REDIST_SIZE)) {
        return abort_access(is_write, value);
    }
    struct access a = {
        .vm = vm,
        .self = v,
        .offset = (uint32_t)offset,
        .width = width,
        .is_write = is_write,
        .value = value,
        .t = vm->vcpu[offset / VGIC_REDIST_SIZE],
    };
    uint32_t off = (uint32_t)offset % VGIC_REDIST_SIZE;

    if (is_write) {
        vgic_kicks_init(&a.kicks, vm);
    }
    if (off < SGI_BASE) {
        return redist(&a, off);
    }
    off -= SGI_BASE;
    if (off >= 0x80u && off < OFF_NSACR_END) {
        return banks(&a, off);
    }
    return ignored(&a);
}
