/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Between the virtual interrupt controller (vgic.c, pure C) and the hardware's virtual CPU
 * interface: list registers, ICH_HCR, ICH_VMCR, active priorities (IHI 0069 12.4).
 */
#include "arch/arm64/gic_virt.h"

#include "arch/arm64/gic.h"
#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/timer.h"
#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/trace.h"

#define ICH_HCR  S3_4_C12_C11_0
#define ICH_VTR  S3_4_C12_C11_1
#define ICH_VMCR S3_4_C12_C11_7
/* Expands its argument first: the register names above are macros. */
#define READ(name)         read_sysreg(name)
#define WRITE(name, value) write_sysreg(name, value)

#define EACH_LR(X)                                                                                 \
    X(0, S3_4_C12_C12_0)                                                                           \
    X(1, S3_4_C12_C12_1)                                                                           \
    X(2, S3_4_C12_C12_2)                                                                           \
    X(3, S3_4_C12_C12_3)                                                                           \
    X(4, S3_4_C12_C12_4)                                                                           \
    X(5, S3_4_C12_C12_5)                                                                           \
    X(6, S3_4_C12_C12_6)                                                                           \
    X(7, S3_4_C12_C12_7)                                                                           \
    X(8, S3_4_C12_C13_0)                                                                           \
    X(9, S3_4_C12_C13_1)                                                                           \
    X(10, S3_4_C12_C13_2)                                                                          \
    X(11, S3_4_C12_C13_3)                                                                          \
    X(12, S3_4_C12_C13_4)                                                                          \
    X(13, S3_4_C12_C13_5)                                                                          \
    X(14, S3_4_C12_C13_6)                                                                          \
    X(15, S3_4_C12_C13_7)

static struct vcpu *vcpu_of_vgic(struct vgic_vcpu *g) {
    return (struct vcpu *)((char *)g - offsetof(struct vcpu, arch.vgic));
}

static unsigned ap_registers; /* ICH_AP0R<n>, ICH_AP1R<n>: 1, 2 or 4 by the preemption bits */

__attribute__((noinline)) static uint64_t read_lr(unsigned i) {
    switch (i) {
#define LR_CASE(n, name)                                                                           \
    case n:                                                                                        \
        return READ(name);
        EACH_LR(LR_CASE)
#undef LR_CASE
    default:
        return 0;
    }
}

__attribute__((noinline)) static void write_lr(unsigned i, uint64_t value) {
    switch (i) {
#define LR_CASE(n, name)                                                                           \
    case n:                                                                                        \
        WRITE(name, value);                                                                        \
        break;
        EACH_LR(LR_CASE)
#undef LR_CASE
    default:
        break;
    }
}

void gic_virt_features(struct gic_virt_features *f) {
    uint64_t vtr = READ(ICH_VTR);

    f->list_registers = (unsigned)(vtr & 31u) + 1;
    f->priority_bits = (unsigned)(vtr >> 29 & 7u) + 1;
    f->trap_dir = (vtr >> 19 & 1u) != 0;
    unsigned preemption_bits = (unsigned)(vtr >> 26 & 7u) + 1;
    ap_registers = preemption_bits <= 5 ? 1 : preemption_bits == 6 ? 2 : 4;
}

/* read_back() for all that there may be. */
__attribute__((noinline)) static void read_back_all(struct vgic_vcpu *g) {
    for (uint32_t used = g->lr_used; used != 0; used &= used - 1) {
        unsigned i = (unsigned)__builtin_ctz(used);
        g->lr[i] = read_lr(i);
    }
    if ((g->ich_hcr & VGIC_HCR_LRENPIE) != 0) {
        g->hcr_in = READ(ICH_HCR);
    }
}

/* What the guest has left in the list registers, for vgic_fold and vgic_refill. All are written
 * here, as write_out() has followed the last fill. False: that is done already. */
static inline bool read_back(struct vgic_vcpu *g) {
    uint32_t live = __atomic_load_n(&g->live, __ATOMIC_RELAXED); /* only this pCPU changes it */

    if (live == VGIC_FOLDED) {
        return false;
    }
    g->ich_vmcr = READ(ICH_VMCR);
    if (live == VGIC_LIVE_SIMPLE) {
        g->lr[0] = READ(S3_4_C12_C12_0); /* if it is not in use, this does no harm */
    } else {
        read_back_all(g);
    }
    return true;
}

void gic_virt_fold(struct vcpu *v) {
    if (read_back(&v->arch.vgic)) {
        vgic_fold(&v->arch.vgic);
    }
}

bool gic_virt_fold_pending(struct vcpu *v) {
    (void)read_back(&v->arch.vgic);
    return vgic_fold_pending(&v->arch.vgic);
}

/* Before a fill: an interrupt that the guest did not take before it reprogrammed its timer is void.
 */
static inline void look_at_timer(struct vgic_vcpu *g) {
    if (vgic_hw_held(g, GIC_PPI_VTIMER) && !timer_virtual_line() &&
        !timer_virtual_line_at_entry(vcpu_of_vgic(g))) {
        vgic_set_level(g, GIC_PPI_VTIMER, false);
    }
}

/* What becomes pending for the guest by the list registers that have changed. */
__attribute__((noinline, cold)) static void trace_injections(struct vgic_vcpu *g) {
    const struct vcpu *v = vcpu_of_vgic(g);

    for (uint32_t todo = g->lr_write & g->lr_used; todo != 0; todo &= todo - 1) {
        uint64_t lr = g->lr[__builtin_ctz(todo)];
        if ((lr & VGIC_LR_PENDING) != 0) {
            trace_event_now(TRACE_INJECT, trace_who(v), VGIC_LR_VINTID(lr));
        }
    }
}

/* After a fill: the list registers that have changed. */
static inline void write_lrs(struct vgic_vcpu *g) {
    uint32_t todo = g->lr_write;

    if (todo != 0) {
        if (trace_active()) {
            trace_injections(g);
        }
        if ((todo & 1u) != 0) {
            WRITE(S3_4_C12_C12_0, g->lr[0]);
        }
        for (todo &= ~1u; todo != 0; todo &= todo - 1) {
            unsigned i = (unsigned)__builtin_ctz(todo);
            write_lr(i, g->lr[i]);
        }
        g->lr_write = 0;
    }
}

static inline void write_hcr(struct vgic_vcpu *g) {
    g->hcr_write = false;
    WRITE(ICH_HCR, g->ich_hcr);
}

/* After a fill: all that has changed. */
static inline void write_out(struct vgic_vcpu *g) {
    write_lrs(g);
    if (g->hcr_write) {
        write_hcr(g);
    }
}

void gic_virt_refill(struct vcpu *v) {
    struct vgic_vcpu *g = &v->arch.vgic;

    (void)read_back(g);
    look_at_timer(g);
    vgic_refill(g);
    write_out(g);
}

void gic_virt_maintenance(struct vcpu *v) {
    gic_virt_fold(v);
    vgic_maintenance(&v->arch.vgic);
    /* The line must fall before the interrupt is deactivated; the fill turns it on again. */
    WRITE(ICH_HCR, 0);
    v->arch.vgic.hcr_write = true;
    vcpu_request(v, REQUEST_IRQ);
}

void gic_virt_save(struct vcpu *v) {
    struct vgic_vcpu *g = &v->arch.vgic;

    gic_virt_fold(v); /* if it is folded already, ich_vmcr was read then */
    g->ap0r[0] = READ(S3_4_C12_C8_0);
    g->ap1r[0] = READ(S3_4_C12_C9_0);
    if (ap_registers >= 2) {
        g->ap0r[1] = READ(S3_4_C12_C8_1);
        g->ap1r[1] = READ(S3_4_C12_C9_1);
    }
    if (ap_registers == 4) {
        g->ap0r[2] = READ(S3_4_C12_C8_2);
        g->ap1r[2] = READ(S3_4_C12_C9_2);
        g->ap0r[3] = READ(S3_4_C12_C8_3);
        g->ap1r[3] = READ(S3_4_C12_C9_3);
    }
    this_pcpu()->arch.lrs = g->lr_used;
    WRITE(ICH_HCR, 0);
}

static void load_active_priorities(const struct vgic_vcpu *g) {
    WRITE(S3_4_C12_C8_0, g->ap0r[0]);
    WRITE(S3_4_C12_C9_0, g->ap1r[0]);
    if (ap_registers >= 2) {
        WRITE(S3_4_C12_C8_1, g->ap0r[1]);
        WRITE(S3_4_C12_C9_1, g->ap1r[1]);
    }
    if (ap_registers == 4) {
        WRITE(S3_4_C12_C8_2, g->ap0r[2]);
        WRITE(S3_4_C12_C9_2, g->ap1r[2]);
        WRITE(S3_4_C12_C8_3, g->ap0r[3]);
        WRITE(S3_4_C12_C9_3, g->ap1r[3]);
    }
}

void gic_virt_load(struct vcpu *v, bool registers_present) {
    struct vgic_vcpu *g = &v->arch.vgic;

    if (!registers_present) {
        WRITE(ICH_VMCR, g->ich_vmcr);
        load_active_priorities(g);
        vgic_switch_in(g);
    }
    look_at_timer(g);
    vgic_fill(g);
    g->lr_write &= g->lr_used | this_pcpu()->arch.lrs; /* an empty one need not be emptied */
    write_lrs(g);
    write_hcr(g); /* gic_virt_save() turned it off */
}

void vgic_notify(struct vgic_vcpu *v) {
    vcpu_request_and_wake(vcpu_of_vgic(v), REQUEST_IRQ);
}

void vgic_sync_remote(struct vgic_vcpu *v) {
    uint32_t seq = vgic_fold_seq(v);

    vcpu_request(vcpu_of_vgic(v), REQUEST_IRQ_SYNC);
    while (vgic_live(v) && vgic_fold_seq(v) == seq) {
        port_relax();
    }
}

void vgic_phys_deactivate(struct vgic_vcpu *v, unsigned pintid) {
    (void)v;
    gic_deactivate(pintid);
}
