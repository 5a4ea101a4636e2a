/* SPDX-License-Identifier: GPL-2.0-only */
/* A vCPU's virtual interrupts in this pCPU's list registers. All: on the vCPU's pCPU, no vgic lock
 * held. */
#ifndef ARM64_GIC_VIRT_H
#define ARM64_GIC_VIRT_H

#include <stdbool.h>

struct vcpu;

/* What the hardware offers (ICH_VTR_EL2). */
struct gic_virt_features {
    unsigned list_registers, priority_bits;
    bool trap_dir;
};

/* Reads them. Boot pCPU, before the first vCPU is created. */
void gic_virt_features(struct gic_virt_features *f);

/* Takes back what the guest did. Ask for a refill (REQUEST_IRQ) before the guest is entered again.
 */
void gic_virt_fold(struct vcpu *v);

/* The same, and whether an interrupt is pending that ends a WFI. */
bool gic_virt_fold_pending(struct vcpu *v);

/* Takes back what the guest did, if that is not done yet, and fills the list registers anew. */
void gic_virt_refill(struct vcpu *v);

/* The maintenance interrupt came. */
void gic_virt_maintenance(struct vcpu *v);

/* At switch-out and switch-in; registers_present: as in arch_vcpu_load(). */
void gic_virt_save(struct vcpu *v);
void gic_virt_load(struct vcpu *v, bool registers_present);

#endif
