/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hypervisor's own address space. Below MMU_WINDOWS virtual = machine address, and only what it
 * owns or reads is there; above, each VM's RAM in one piece, whatever pieces of the machine's
 * memory it is. Entries are added while the machine boots (boot pCPU), never changed later except
 * that pages are taken away to be guards.
 */
#ifndef ARM64_MMU_H
#define ARM64_MMU_H

#include <stdbool.h>
#include <stdint.h>

#define MMU_WINDOWS     (1ul << 47)
#define MMU_WINDOW_SIZE (1ul << 38) /* more than the largest VM's RAM: 512 of them */

enum mmu_kind { MMU_CODE, MMU_READ_ONLY, MMU_DATA, MMU_DEVICE };

/* Maps [base, base + size), whole pages, identity. `by_page`: no blocks, so that pages can be taken
 * away. */
void mmu_map(uint64_t base, uint64_t size, enum mmu_kind kind, bool by_page);

/* Maps RAM of a VM at `at`, which is in its window. */
void mmu_map_window(uint64_t at, uint64_t base, uint64_t size);

/* Takes a page away that was mapped by page. Also flushes it from the TLBs of all pCPUs. */
void mmu_unmap_page(uint64_t address);

/* From here on mmu_map may take memory from mem_alloc. */
void mmu_tables_from_memory(void);

/* With the MMU still off: tables for the image itself, MMU registers. Called by head.S. */
void mmu_early_init(void);

#endif
