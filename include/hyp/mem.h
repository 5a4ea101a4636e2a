/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machine memory: free ranges found at boot, given out and never taken back (VMs are created once).
 * Boot pCPU only, before the others start, unless stated.
 */
#ifndef HYP_MEM_H
#define HYP_MEM_H

#include "hyp/types.h"

/* Adds a range of RAM that is free. */
void mem_add(phys_t base, uint64_t size);

/* Takes a range out again: it holds something (image, device tree, archive). */
void mem_reserve(phys_t base, uint64_t size);

/*
 * Takes `size` bytes aligned to `align` (a power of two >= PAGE_SIZE) in one piece. False: no such
 * range is left. The memory is not mapped for the hypervisor and not cleared.
 */
bool mem_take(uint64_t size, uint64_t align, phys_t *base);

/*
 * Takes `size` bytes if they are there in one piece, else the largest piece of whole multiples of
 * `align`. Returns how many bytes, 0 when there is not one multiple left. Otherwise as mem_take.
 */
uint64_t mem_take_piece(uint64_t size, uint64_t align, phys_t *base);

/* Bytes that are still free. */
uint64_t mem_free(void);

/*
 * `size` bytes of zeroed memory for the hypervisor itself, mapped writable, aligned to 64 bytes (or
 * to a page for sizes of a page and more). Panics when there is none: only called while the machine
 * boots.
 */
void *mem_alloc(uint64_t size);

/* Bytes that mem_alloc has taken from the machine. */
uint64_t mem_own(void);

#endif
