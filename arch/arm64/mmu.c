/* SPDX-License-Identifier: GPL-2.0-only */
/* EL2 stage-1 tables: 4 KiB granule, 48 bits, four levels (DDI 0487 D8.3). */
#include "arch/arm64/mmu.h"

#include "arch/arm64/regs.h"
#include "arch/arm64/sysreg_access.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"

#define ENTRIES      512u
#define VALID        1ull
#define TABLE        3ull /* also: a page at level 3 */
#define ADDRESS_MASK 0x0000fffffffff000ull

/* Lower and upper attributes (D8.5): AF, SH, AP[2] read-only, AttrIndx, XN. */
#define AF          (1ull << 10)
#define INNER_SHARE (3ull << 8)
#define AP_RES1     (1ull << 6) /* EL2 has one privilege level only */
#define READ_ONLY   (1ull << 7)
#define XN          (1ull << 54)
#define ATTR(i)     ((uint64_t)(i) << 2)

#define MAIR_NORMAL 0xffull /* index 0: write-back, allocate */
#define MAIR_DEVICE 0x04ull /* index 1: Device-nGnRE */

/* TCR_EL2 without E2H (D24.2.178): RES1, 48 bits, walks cacheable and inner shareable. */
#define TCR_RES1  ((1ull << 31) | (1ull << 23))
#define TCR_FIXED (TCR_RES1 | 16ull | (1ull << 8) | (1ull << 10) | (3ull << 12))

extern char _start_of_image[], _start_of_rodata[], _start_of_data[], _boot_stack_guard[],
    _end_of_image[];

struct mmu_registers {
    uint64_t mair, tcr, ttbr0, sctlr;
};
extern struct mmu_registers mmu_registers;
struct mmu_registers mmu_registers; /* read by head.S on each CPU */

/*
 * Tables come from here until there is other memory. A few are always kept back: mapping more
 * memory for tables may itself need some.
 */
#define STATIC_TABLES  12u
#define RESERVE_TABLES 3u
static uint64_t static_tables[STATIC_TABLES][ENTRIES] __attribute__((aligned(4096)));
static unsigned static_used;
static uint64_t *reserve[RESERVE_TABLES];
static unsigned reserve_count;
static bool memory_ready, refilling;
static uint64_t *root;

static uint64_t *new_table(void) {
    if (reserve_count != 0) {
        return reserve[--reserve_count];
    }
    if (static_used == STATIC_TABLES) {
        panic("out of early page tables");
    }
    return static_tables[static_used++];
}

/*
 * Called where no table is half changed: mem_alloc may come back to us to map more memory, with
 * what is left in the reserve.
 */
static void fill_reserve(void) {
    if (!memory_ready || refilling) {
        return;
    }
    refilling = true;
    while (reserve_count < RESERVE_TABLES) {
        uint64_t *table = mem_alloc(PAGE_SIZE);
        reserve[reserve_count++] = table;
    }
    refilling = false;
}

void mmu_tables_from_memory(void) {
    while (reserve_count < RESERVE_TABLES) {
        reserve[reserve_count++] = static_tables[static_used++];
    }
    memory_ready = true;
}

static uint64_t attributes(enum mmu_kind kind) {
    switch (kind) {
    case MMU_CODE:
        return AF | INNER_SHARE | AP_RES1 | READ_ONLY;
    case MMU_READ_ONLY:
        return AF | INNER_SHARE | AP_RES1 | READ_ONLY | XN;
    case MMU_DATA:
        return AF | INNER_SHARE | AP_RES1 | XN;
    default:
        return AF | AP_RES1 | XN | ATTR(1);
    }
}

static uint64_t *next_level(uint64_t *entry) {
    if ((*entry & VALID) == 0) {
        uint64_t table = (uint64_t)new_table();
        /* The table's zeroes must be seen before the entry that leads there. */
        __asm__ volatile("dsb ishst" : : : "memory");
        *entry = table | TABLE;
    }
    return (uint64_t *)(*entry & ADDRESS_MASK);
}

/* Maps [base, base + size) at `at`. */
static void map_at(uint64_t at, uint64_t base, uint64_t size, uint64_t attr, bool by_page) {
    uint64_t end = at + size, offset = base - at;

    while (at < end) {
        fill_reserve();
        uint64_t *level1 = next_level(&root[at >> 39 & 511]);
        uint64_t *level2 = next_level(&level1[at >> 30 & 511]);
        uint64_t *block = &level2[at >> 21 & 511];
        if (!by_page && (at | (at + offset)) % BLOCK_SIZE == 0 && end - at >= BLOCK_SIZE &&
            *block == 0) {
            *block = (at + offset) | attr | VALID;
            at += BLOCK_SIZE;
            continue;
        }
        if ((*block & TABLE) == VALID) { /* part of a block that is there already */
            at = (at & ~(uint64_t)(BLOCK_SIZE - 1)) + BLOCK_SIZE;
            continue;
        }
        next_level(block)[at >> 12 & 511] = (at + offset) | attr | TABLE;
        at += PAGE_SIZE;
    }
    __asm__ volatile("dsb ishst\n isb" : : : "memory");
}

void mmu_map(uint64_t base, uint64_t size, enum mmu_kind kind, bool by_page) {
    if (base + size > MMU_WINDOWS) {
        panic("machine address %lx: expected none above %lx", base + size, MMU_WINDOWS);
    }
    map_at(base, base, size, attributes(kind), by_page);
}

void mmu_map_window(uint64_t at, uint64_t base, uint64_t size) {
    map_at(at, base, size, attributes(MMU_DATA), false);
}

void mmu_unmap_page(uint64_t address) {
    uint64_t *level1 = next_level(&root[address >> 39 & 511]);
    uint64_t *level2 = next_level(&level1[address >> 30 & 511]);
    next_level(&level2[address >> 21 & 511])[address >> 12 & 511] = 0;
    __asm__ volatile("dsb ishst\n tlbi vae2is, %0\n dsb ish\n isb"
                     :
                     : "r"(address >> 12)
                     : "memory");
}

void mmu_early_init(void) {
    uint64_t image = (uint64_t)_start_of_image, rodata = (uint64_t)_start_of_rodata;
    uint64_t data = (uint64_t)_start_of_data, guard = (uint64_t)_boot_stack_guard;
    uint64_t pa_range = read_sysreg(ID_AA64MMFR0_EL1) & 15u;

    root = new_table();
    mmu_map(image, rodata - image, MMU_CODE, true);
    mmu_map(rodata, data - rodata, MMU_READ_ONLY, true);
    mmu_map(data, guard - data, MMU_DATA, true);
    mmu_map(guard + PAGE_SIZE, (uint64_t)_end_of_image - guard - PAGE_SIZE, MMU_DATA, true);
    mmu_registers = (struct mmu_registers){
        .mair = MAIR_NORMAL | MAIR_DEVICE << 8,
        .tcr = TCR_FIXED | (pa_range > 5 ? 5 : pa_range) << 16,
        .ttbr0 = (uint64_t)root,
        .sctlr =
            SCTLR_EL2_OFF | SCTLR_EL2_M | SCTLR_EL2_C | SCTLR_EL2_SA | SCTLR_EL2_I | SCTLR_EL2_WXN,
    };
}

void arch_map_own(phys_t base, uint64_t size) {
    mmu_map(base.v, size, MMU_DATA, true);
}

void arch_unmap_page(void *page) {
    mmu_unmap_page((uint64_t)page);
}
