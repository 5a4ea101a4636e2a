/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * T05, the first of two guests: leaves patterns in every register that it may write, pending and
 * active interrupts, expired timers, and in all of its memory. The guest started next on the same
 * CPU (entry.img) must see none of it. Stays for `for_us` microseconds, so that the other one is
 * first entered while this state is live.
 */
#include "irq.h"

const char *const test_name = "dirty";

static const uint32_t regs[] = {
    SYSREG(3, 0, 2, 0, 1),
    SYSREG(3, 0, 10, 3, 0),
    SYSREG(3, 0, 5, 1, 0),
    SYSREG(3, 0, 5, 1, 1),
    SYSREG(3, 0, 13, 0, 1),
    SYSREG(3, 3, 13, 0, 2),
    SYSREG(3, 3, 13, 0, 3),
    SYSREG(3, 0, 4, 1, 0),
    SYSREG(3, 0, 7, 4, 0),
    SYSREG(3, 0, 14, 1, 0),
    SYSREG(3, 2, 0, 0, 0),
    SYSREG(3, 0, 6, 0, 0),
    SYSREG(3, 0, 5, 2, 0),
    SYSREG(3, 0, 4, 0, 1),
    SYSREG(3, 3, 4, 4, 0),
    SYSREG(3, 3, 4, 4, 1),
    /* pointer authentication keys */
    SYSREG(3, 0, 2, 1, 0),
    SYSREG(3, 0, 2, 1, 1),
    SYSREG(3, 0, 2, 1, 2),
    SYSREG(3, 0, 2, 1, 3),
    SYSREG(3, 0, 2, 2, 0),
    SYSREG(3, 0, 2, 2, 1),
    SYSREG(3, 0, 2, 2, 2),
    SYSREG(3, 0, 2, 2, 3),
    SYSREG(3, 0, 2, 3, 0),
    SYSREG(3, 0, 2, 3, 1),
    /* breakpoints and watchpoints, not enabled by MDSCR */
    SYSREG(2, 0, 0, 0, 4),
    SYSREG(2, 0, 0, 1, 4),
    SYSREG(2, 0, 0, 0, 6),
    SYSREG(2, 0, 0, 1, 6),
};

void test_main(void) {
    unsigned written = 0;

    gic_init();
    gic_cpu_init();
    for (uint64_t a = ram_free_start(); a < ram_base + ram_size; a += 512)
        *(volatile uint64_t *)a = 0xd1d1d1d1d1d1d1d1ul;
    for (unsigned i = 0; i < ARRAY_SIZE(regs); i++)
        written += sysreg_set(regs[i], 0x5a5a5a5a5a5a5a5aul);
    sysreg_set(SYSREG(2, 0, 0, 0, 5), 0x1e5); /* breakpoint 0 on, though MDSCR.MDE is off */
    sysreg_set(SYSREG(2, 0, 0, 0, 7), 0x1fe5);
    /* SGI 1 active, SGI 2 active and pending, SGI 3 pending, an SPI pending, both timers expired */
    write32(this_cpu()->gicr + GICR_SGI + GICD_ISENABLER, 0xffff);
    gic_set(INTID_VTIMER, GICD_ISENABLER);
    gic_set(INTID_PTIMER, GICD_ISENABLER);
    gic_sgi_self(1);
    (void)gic_iar1();
    gic_set(2, GICD_ISACTIVER);
    gic_sgi_self(2);
    gic_sgi_self(3);
    gic_route(60, cpus[0].mpidr);
    gic_enable(60);
    gic_set(60, GICD_ISPENDR);
    write_sysreg(cntv_cval_el0, 0);
    write_sysreg(cntv_ctl_el0, TIMER_ENABLE);
    write_sysreg(cntp_cval_el0, 0);
    write_sysreg(cntp_ctl_el0, TIMER_ENABLE);
    __asm__ volatile(
        ".arch_extension fp\n\t.arch_extension simd\n\t"
        ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, "
        "23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
        "movi v\\n\\().16b, #0xa5\n\t"
        ".endr"
        :
        :
        : "memory");
    check_true("T05-patterns-written", written >= 15);
    spin_us(bootarg("for_us", 50000));
    tap_note("leaving with %u registers dirty", written);
}
