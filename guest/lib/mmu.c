/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage 1: one identity map with 4 KiB granule and 39-bit addresses. RAM is normal write-back in
 * 2 MiB blocks, all else device memory in blocks of 1 GiB; single pages on demand.
 */
#include "guest.h"

#define VALID      1ul
#define TABLE      3ul
#define PAGE_DESC  3ul
#define AF         (1ul << 10)
#define SH_INNER   (3ul << 8)
#define ADDR_MASK  0x0000fffffffff000ul
#define POOL_PAGES 64
#define CLEAN_LINE 16ul

static uint64_t pool[POOL_PAGES][512] __attribute__((aligned(4096)));
static unsigned pool_used;
static uint64_t next_page;
static struct spinlock pool_lock;
uint64_t mmu_root, ram_base, ram_size;

static uint64_t new_table(void) {
    if (pool_used == POOL_PAGES)
        die("no page table left");
    return (uintptr_t)pool[pool_used++];
}

/* A leaf descriptor; device memory is never executable unless PTE_PXN is absent on purpose. */
static uint64_t leaf(uint64_t pa, uint64_t attr, bool page) {
    return pa | attr | AF | SH_INNER | (page ? PAGE_DESC : VALID);
}

uint64_t *mmu_entry(uint64_t root, uint64_t va, unsigned level) {
    uint64_t *table = (uint64_t *)root;

    for (unsigned l = 1;; l++) {
        unsigned shift = 39 - 9 * l;
        uint64_t *e = &table[va >> shift & 511];

        if (l == level)
            return e;
        if ((*e & TABLE) != TABLE) {
            /* Split a block (or fill a hole) with entries of the same meaning. */
            uint64_t *t = (uint64_t *)new_table(), step = 1ul << (shift - 9);

            for (uint64_t i = 0; i < 512; i++)
                t[i] = *e & VALID ? (*e + i * step) | (l == 2 ? PAGE_DESC : VALID) : 0;
            dsb();
            uint64_t old = *e;

            *e = 0;
            if (old & VALID && mmu_is_on())
                tlb_flush_all();
            *e = (uintptr_t)t | TABLE;
            dsb();
        }
        table = (uint64_t *)(*e & ADDR_MASK);
    }
}

void tlb_flush_all(void) {
    __asm__ volatile("dsb ishst\n\ttlbi vmalle1is\n\tdsb ish\n\tisb" : : : "memory");
}

void cache_clean(const void *p, size_t n) {
    uintptr_t a = (uintptr_t)p & ~(CLEAN_LINE - 1);

    for (; a < (uintptr_t)p + n; a += CLEAN_LINE)
        __asm__ volatile("dc civac, %0" : : "r"(a) : "memory");
    dsb();
}

void code_sync(const void *p, size_t n) {
    uintptr_t a = (uintptr_t)p & ~(CLEAN_LINE - 1);

    for (; a < (uintptr_t)p + n; a += CLEAN_LINE)
        __asm__ volatile("dc cvau, %0" : : "r"(a) : "memory");
    __asm__ volatile("dsb ish" : : : "memory");
    for (a = (uintptr_t)p & ~(CLEAN_LINE - 1); a < (uintptr_t)p + n; a += CLEAN_LINE)
        __asm__ volatile("ic ivau, %0" : : "r"(a) : "memory");
    __asm__ volatile("dsb ish\n\tisb" : : : "memory");
}

void mmu_map_page_in(uint64_t root, uint64_t va, uint64_t pa, uint64_t attr) {
    uint64_t *e = mmu_entry(root, va, 3);

    if (*e & VALID) {
        *e = 0;
        if (mmu_is_on())
            tlb_flush_all();
    }
    *e = leaf(pa, attr, true);
    dsb();
    isb();
}

void mmu_map_page(uint64_t va, uint64_t pa, uint64_t attr) {
    mmu_map_page_in(mmu_root, va, pa, attr);
}

void mmu_unmap_page(uint64_t va) {
    *mmu_entry(mmu_root, va, 3) = 0;
    tlb_flush_all();
}

uint64_t mmu_new_root(void) {
    uint64_t root = new_table();

    memcpy((void *)root, (void *)mmu_root, PAGE);
    return root;
}

void mmu_init(void) {
    uint64_t end = ram_base + ram_size;

    mmu_root = new_table();
    for (uint64_t a = 0; a < 1ul << 39; a += 1ul << 30) {
        uint64_t *e = mmu_entry(mmu_root, a, 1);

        if (a >= ram_base && a + (1ul << 30) <= end)
            *e = leaf(a, PTE_NORMAL, false);
        else
            *e = leaf(a, PTE_DEVICE | PTE_UXN | PTE_PXN, false);
        if (a + (1ul << 30) <= ram_base || a >= end || *e == leaf(a, PTE_NORMAL, false))
            continue;
        for (uint64_t b = a; b < a + (1ul << 30); b += 1ul << 21) {
            if (b >= ram_base && b + (1ul << 21) <= end)
                *mmu_entry(mmu_root, b, 2) = leaf(b, PTE_NORMAL, false);
        }
    }
    for (uintptr_t a = (uintptr_t)_el0_start; a < (uintptr_t)_el0_end; a += PAGE)
        *mmu_entry(mmu_root, a, 3) = leaf(a, PTE_NORMAL | PTE_USER | PTE_RO, true);
}

bool mmu_is_on(void) {
    return read_sysreg(sctlr_el1) & 1;
}

void mmu_on(void) {
    /* T0SZ 25, write-back inner shareable walks, TTBR1 off, 40-bit output or what there is */
    uint64_t pa = read_sysreg(id_aa64mmfr0_el1) & 7;
    uint64_t tcr = 25 | 1ul << 8 | 1ul << 10 | 3ul << 12 | 1ul << 23 | (pa > 2 ? 2 : pa) << 32;

    write_sysreg(mair_el1, 0x4400ffUL);
    write_sysreg(tcr_el1, tcr);
    write_sysreg(ttbr0_el1, mmu_root);
    write_sysreg(ttbr1_el1, 0);
    isb();
    __asm__ volatile("dsb ish\n\ttlbi vmalle1\n\tdsb ish\n\tic iallu\n\tdsb ish\n\tisb"
                     :
                     :
                     : "memory");
    write_sysreg(sctlr_el1, read_sysreg(sctlr_el1) | 1 | 1ul << 2 | 1ul << 12);
    isb();
}

void mmu_off(void) {
    write_sysreg(sctlr_el1, read_sysreg(sctlr_el1) & ~(1ul | 1ul << 2));
    isb();
    __asm__ volatile("dsb ish\n\ttlbi vmalle1\n\tdsb ish\n\tisb" : : : "memory");
}

uint64_t ram_free_start(void) {
    uint64_t a = (uintptr_t)_end, tree = (uintptr_t)fdt;

    if (tree >= a && tree + fdt_size() > a)
        a = tree + fdt_size();
    return (a + 0xffff) & ~0xfffful;
}

uint64_t alloc_pages(unsigned n) {
    spin_lock(&pool_lock);
    if (!next_page)
        next_page = ram_free_start();
    uint64_t p = next_page;

    next_page += n * PAGE;
    spin_unlock(&pool_lock);
    if (next_page > ram_base + ram_size)
        die("no memory for %u pages", n);
    memset((void *)p, 0, n * PAGE);
    return p;
}
