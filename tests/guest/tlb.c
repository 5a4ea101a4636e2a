/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage-1 translations under a hypervisor that moves vCPUs about (ARCHITECTURE.md: local TLB
 * maintenance, siblings on one CPU).
 *   1. All CPUs use tables of their own with one ASID: the same address is another page on each.
 *   2. Each CPU remaps a page and invalidates locally only, as one that owns the mapping may.
 *   3. Each CPU changes code and invalidates its own instruction cache only.
 */
#include "irq.h"

const char *const test_name = "tlb";

#define SHARED_VA  0x3d00000000ul /* differs by table, same ASID */
#define PRIVATE_VA 0x3c00000000ul /* one 64 KiB slot per CPU in the common table */
#define ASID       1ul

static uint64_t roots[MAX_CPUS], pages[MAX_CPUS][2], limit_us;
static volatile uint32_t wrong_sibling[MAX_CPUS], wrong_local[MAX_CPUS], wrong_code[MAX_CPUS];
static volatile uint64_t looks[MAX_CPUS];
static volatile uint32_t finished;

static void local_flush_all(void) {
    __asm__ volatile("dsb nshst\n\ttlbi vmalle1\n\tdsb nsh\n\tisb" : : : "memory");
}

static void local_flush_page(uint64_t va) {
    __asm__ volatile("dsb nshst\n\ttlbi vaae1, %0\n\tdsb nsh\n\tisb" : : "r"(va >> 12) : "memory");
}

static void stop_timer(uint32_t id) {
    if (id == INTID_VTIMER)
        write_sysreg(cntv_ctl_el0, 0);
    isb();
}

/* Lets others have the CPU, in one of the ways a vCPU can. */
static void rest(struct rng *r) {
    uint64_t x = rng_next(r);
    struct irq_state *s = &irqs[this_cpu()->index];
    uint32_t seen = s->count[INTID_VTIMER];

    if ((x & 7) > 1) {
        spin_us(x >> 8 & 127);
        return;
    }
    write_sysreg(cntv_cval_el0, counter() + us_to_ticks(x >> 8 & 255));
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    isb();
    while (s->count[INTID_VTIMER] == seen) {
        wfi();
        irq_enable();
        isb();
        irq_disable();
    }
}

static void local_remap(unsigned me, unsigned turn) {
    uint64_t va = PRIVATE_VA + 0x10000ul * me;
    uint64_t *e = mmu_entry(roots[me], va, 3);

    *e = 0;
    local_flush_page(va);
    *e = pages[me][turn & 1] | PTE_NG | 1ul << 10 | 3ul << 8 | 3;
    __asm__ volatile("dsb nshst\n\tisb" : : : "memory");
}

/* mov w0, #turn; ret: changed, cleaned, and only this CPU's instruction cache invalidated */
static bool local_code(unsigned me, unsigned turn) {
    static uint32_t code[MAX_CPUS][16] __attribute__((aligned(64)));
    uint32_t *p = code[me];

    p[0] = 0x52800000u | (turn & 0xffff) << 5;
    p[1] = 0xd65f03c0u;
    __asm__ volatile("dc cvau, %0\n\tdsb ish\n\tic iallu\n\tdsb nsh\n\tisb" : : "r"(p) : "memory");
    return ((uint32_t(*)(void))(uintptr_t)p)() == (turn & 0xffff);
}

static void work(uint64_t arg) {
    unsigned me = this_cpu()->index;
    struct rng r = {77 + me};
    uint64_t end = counter() + us_to_ticks(limit_us);
    volatile uint64_t *shared = (volatile uint64_t *)SHARED_VA;
    volatile uint64_t *mine = (volatile uint64_t *)(PRIVATE_VA + 0x10000ul * me);

    (void)arg;
    gic_cpu_init();
    irq_install()->during = stop_timer;
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    write_sysreg(ttbr0_el1, roots[me] | ASID << 48);
    isb();
    local_flush_all();
    for (unsigned turn = 0; counter() < end; turn++) {
        local_remap(me, turn);
        wrong_local[me] += mine[0] != (0x4000 | me << 1 | (turn & 1));
        for (unsigned i = 0; i < 4; i++) {
            wrong_sibling[me] += shared[0] != (0x8000 | me);
            shared[1 + me] = turn;
            rest(&r);
            wrong_sibling[me] += shared[0] != (0x8000 | me) || shared[1 + me] != turn;
            wrong_local[me] += mine[0] != (0x4000 | me << 1 | (turn & 1));
            looks[me]++;
        }
        wrong_code[me] += !local_code(me, turn);
    }
    write_sysreg(ttbr0_el1, mmu_root);
    isb();
    local_flush_all();
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

void test_main(void) {
    uint32_t siblings = 0, local = 0, code = 0;
    uint64_t least = ~0ul;

    limit_us = scaled(bootarg("for_us", 100000));
    if (cpu_count > 16)
        die("more CPUs than there are page tables for");
    gic_init();
    for (unsigned i = 0; i < cpu_count; i++) {
        roots[i] = mmu_new_root();
        uint64_t page = alloc_pages(3);

        *(uint64_t *)page = 0x8000 | i;
        for (unsigned k = 0; k < 2; k++) {
            pages[i][k] = page + (k + 1) * PAGE;
            *(uint64_t *)pages[i][k] = 0x4000 | i << 1 | k;
        }
        mmu_map_page_in(roots[i], SHARED_VA, page, PTE_NORMAL | PTE_NG | PTE_UXN | PTE_PXN);
        mmu_map_page_in(roots[i], PRIVATE_VA + 0x10000ul * i, pages[i][0], PTE_NORMAL | PTE_NG);
    }
    smp_start_all(work, 0);
    work(0);
    check_true("T-TLB-all-finished", wait_for(finished == cpu_count, limit_us * 4 + 2000000));
    for (unsigned i = 0; i < cpu_count; i++) {
        siblings += wrong_sibling[i];
        local += wrong_local[i];
        code += wrong_code[i];
        least = looks[i] < least ? looks[i] : least;
    }
    tap_note("at least %lu looks per CPU", least);
    check_eq("T-TLB-siblings-with-one-asid", siblings, 0);
    check_eq("T-TLB-local-invalidate", local, 0);
    check_eq("T-TLB-local-instruction-invalidate", code, 0);
    check_true("T-TLB-looked-often", least >= 8);
    smp_wait_all_off();
}
