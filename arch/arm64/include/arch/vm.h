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
    uint64_t cntpoff; /* how far its physical count is behind; not 0: its reads are trapped */
    uint64_t gicr0_size, gicr1_size; /* bytes of redistributors in either region */
    struct vgic_vm vgic;
    uint8_t *pvlock_records; /* the hypervisor's view of those pages; NULL: not offered */
};

#endif
