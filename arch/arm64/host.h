/* SPDX-License-Identifier: GPL-2.0-only */
/* What the boot loader's device tree says about this machine. */
#ifndef ARM64_HOST_H
#define ARM64_HOST_H

#include <stdint.h>

#define HOST_GICR_REGIONS 4u

struct host {
    uint64_t uart;
    unsigned uart_intid;
    uint64_t gicd, gicd_size;
    struct {
        uint64_t base, size;
    } gicr[HOST_GICR_REGIONS];
    unsigned gicr_regions;
    uint64_t archive, archive_size;
};

extern struct host host;

/*
 * Reads the tree at `fdt` (mapped): console first, so that faults can be told; then memory
 * (mem_add, mem_reserve), interrupt controller, PSCI, archive. Panics with what is missing. Boot
 * pCPU.
 */
void host_read_tree(const void *fdt);

/* The CPUs of the same tree: pcpus[], pcpu_count. When mem_alloc works. Boot pCPU. */
void host_read_cpus(void);

/* Firmware calls, DEN0022: result in x0. */
int64_t host_psci(uint32_t function, uint64_t a, uint64_t b, uint64_t c);

#endif
