/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage-2 translation: what a guest's physical addresses mean. 4 KiB granule, 39 bits, levels 1..3.
 */
#ifndef ARM64_STAGE2_H
#define ARM64_STAGE2_H

#include "hyp/types.h"

struct vm;

#define STAGE2_IPA_BITS 39u

/* A root table for the VM, nothing mapped, and its VMID. Boot pCPU. */
void stage2_init(struct vm *vm);

/* Maps RAM: blocks where alignment allows, pages elsewhere. Boot pCPU, before the VM runs. */
void stage2_map_ram(struct vm *vm, ipa_t ipa, phys_t base, uint64_t size);

/* Maps whole pages that the guest may only read. Boot pCPU, before the VM runs. */
void stage2_map_records(struct vm *vm, ipa_t ipa, phys_t base, uint64_t size);

/* VTCR_EL2 of this pCPU. Each pCPU, once. */
void stage2_cpu_init(void);

#endif
