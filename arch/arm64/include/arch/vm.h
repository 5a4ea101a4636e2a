/* SPDX-License-Identifier: GPL-2.0-only */
/* The arm64 part of a VM. */
#ifndef ARCH_VM_H
#define ARCH_VM_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/arm64/vgic.h"

struct arch_vm {
    uint64_t vttbr;   /* VTTBR_EL2: stage-2 root and VMID */
    uint64_t cntvoff; /* CNTVOFF_EL2, one value for all vCPUs of the VM */
    struct vgic_vm vgic;
};

#endif
