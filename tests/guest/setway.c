/* SPDX-License-Identifier: GPL-2.0-only */
/* T08: cache maintenance by set and way with the MMU off, then memory is right with the MMU on. */
#include "guest.h"

const char *const test_name = "setway";

#define STRIDE 256ul

static uint64_t operations;

/* DC CISW or CSW over every set and way of every level, also of those beyond the level of
 * coherency. */
static void by_set_and_way(bool invalidate) {
    uint64_t clidr = read_sysreg(clidr_el1);
    uint64_t mmfr2;
    bool wide = sysreg_get(SYSREG(3, 0, 0, 7, 2), &mmfr2) && (mmfr2 >> 20 & 0xf) == 1;

    for (uint64_t level = 0; level < 7; level++) {
        if ((clidr >> (3 * level) & 7) < 2)
            continue;
        write_sysreg(csselr_el1, level << 1);
        isb();
        uint64_t ccsidr = read_sysreg(ccsidr_el1);
        unsigned line = (unsigned)(ccsidr & 7) + 4;
        uint64_t ways = (wide ? ccsidr >> 3 & 0x1fffff : ccsidr >> 3 & 0x3ff) + 1;
        uint64_t sets = (wide ? ccsidr >> 32 & 0xffffff : ccsidr >> 13 & 0x7fff) + 1;
        unsigned shift = 32;

        for (uint64_t w = ways - 1; w; w >>= 1)
            shift--;
        for (uint64_t w = 0; w < ways; w++) {
            for (uint64_t s = 0; s < sets; s++) {
                uint64_t v = (ways > 1 ? w << shift : 0) | s << line | level << 1;

                if (invalidate)
                    __asm__ volatile("dc cisw, %0" : : "r"(v) : "memory");
                else
                    __asm__ volatile("dc csw, %0" : : "r"(v) : "memory");
                operations++;
            }
        }
    }
    dsb();
}

static unsigned check_memory(uint64_t from, uint64_t to, uint64_t salt) {
    unsigned wrong = 0;

    for (uint64_t a = from; a < to; a += STRIDE)
        wrong += *(volatile uint64_t *)a != (a ^ salt);
    return wrong;
}

static void fill_memory(uint64_t from, uint64_t to, uint64_t salt) {
    for (uint64_t a = from; a < to; a += STRIDE)
        *(volatile uint64_t *)a = a ^ salt;
}

void test_main(void) {
    uint64_t from = ram_free_start(), to = ram_base + ram_size, start = counter();

    if (to - from > 16ul << 20)
        to = from + (16ul << 20);
    fill_memory(from, to, 1); /* through the caches */
    by_set_and_way(true);
    mmu_off();
    check_eq("T08-written-with-mmu-read-without", check_memory(from, to, 1), 0);
    fill_memory(from, to, 2);
    by_set_and_way(true);
    by_set_and_way(false);
    mmu_on();
    check_eq("T08-written-without-mmu-read-with", check_memory(from, to, 2), 0);
    tap_note("T08: CLIDR 0x%lx, %lu KiB, %lu operations by set and way, %lu us",
             read_sysreg(clidr_el1), (to - from) >> 10, operations, ticks_to_us(counter() - start));
    check_range("T08-completes-us", ticks_to_us(counter() - start), 0, bootarg("t08_us", 2000000));

    /* off and on again, with code changed meanwhile */
    uint64_t regs[31] = {1, 2};

    mmu_off();
    struct exc_info e = insn_exec(0x8b010000u, regs); /* add x0, x0, x1 */

    mmu_on();
    check_eq("T08-code-with-mmu-off", e.count ? 0 : regs[0], 3);
}
