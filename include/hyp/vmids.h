/* SPDX-License-Identifier: GPL-2.0-only */
/* The numbers under which TLBs know the VMs (core/vmid.h): one space for the machine. */
#ifndef HYP_VMIDS_H
#define HYP_VMIDS_H

#include "core/vmid.h"

extern struct vmid_space vmids;

/*
 * Prepares the space for all pCPUs. `wanted`: bits of a number as the user has it, 0 for what the
 * hardware has; never more than that (arch_vmid_bits). Panics with a message if the pCPUs are too
 * many for so few numbers. Boot pCPU, before any VM runs.
 */
void vmids_init(unsigned wanted);

#endif
