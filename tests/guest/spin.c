/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * P16: a guest that masks everything, turns its timers off and never gives the CPU up. It counts
 * until `seconds` (default 1) of its own counter are over, in all its CPUs when `all` is given, and
 * says how much work it did. kind selects what the loop does (P15):
 *   0 branch to self   1 UART status reads   2 trapped system register   3 unknown hypercall
 *   4 SGI to itself    5 first touch of new pages   6 writes to CNTKCTL and the physical timer
 *   8 console output: lines, as fast as they go by the
 *     boot CPU (P23: that freezes neither the VM nor its neighbour)
 *   7 as 0, while all other CPUs execute a masked branch to self for ever: SYSTEM_OFF must end them
 * `for_us` limits the time in microseconds instead. `work` (kind 0, one CPU): the least share of
 * that time, in percent, that must have been the loop's own: it knows how long a turn of it takes
 * at best.
 */
#include "irq.h"

const char *const test_name = "spin";

static volatile uint64_t done_units[MAX_CPUS], worst_gap[MAX_CPUS];
static uint64_t best_turn = UINT64_MAX; /* of the loop in the boot CPU, ticks */
static uint64_t limit_us, kind;
static volatile uint32_t finished;

static void unit(uint64_t *page) {
    switch (kind) {
    case 1:
        (void)read32(UART_BASE + 0x18);
        break;
    case 2:
        (void)read_sysreg(id_aa64pfr0_el1);
        break;
    case 3:
        hvc4(0x84001234, 0, 0, 0);
        break;
    case 4:
        gic_sgi_self(1);
        break;
    case 5:
        if (*page + PAGE <= ram_base + ram_size) {
            *(volatile uint64_t *)*page = 1;
            *page += PAGE;
        }
        break;
    case 6:
        write_sysreg(cntkctl_el1, 0x2);
        write_sysreg(cntp_ctl_el0, 2);
        break;
    case 8:
        if (this_cpu()->index == 0) /* two would fight for print's lock */
            print("# 8: a line for the console, as long as a kernel's messages are\n");
        break;
    default:
        break;
    }
}

static void spin(uint64_t arg) {
    unsigned me = this_cpu()->index;

    (void)arg;
    __asm__ volatile("msr daifset, #0xf");
    write_sysreg(cntv_ctl_el0, 0);
    write_sysreg(cntp_ctl_el0, 0);
    uint64_t now = counter(), end = now + us_to_ticks(limit_us), count = 0, gap = 0,
             best = UINT64_MAX;
    uint64_t page = ram_free_start();

    while (now < end) {
        unit(&page);
        uint64_t t = counter();

        if (t - now > gap)
            gap = t - now;
        if (t - now < best)
            best = t - now;
        now = t;
        count++;
    }
    done_units[me] = count;
    worst_gap[me] = gap;
    if (me == 0)
        best_turn = best;
    __atomic_add_fetch(&finished, 1, __ATOMIC_RELEASE);
}

static volatile uint32_t locked_up;

static void for_ever(uint64_t arg) {
    (void)arg;
    __asm__ volatile("msr daifset, #0xf");
    __atomic_add_fetch(&locked_up, 1, __ATOMIC_RELEASE);
    __asm__ volatile("1: b 1b");
}

void test_main(void) {
    limit_us = bootarg("for_us", bootarg("seconds", 1) * 1000000);
    kind = bootarg("kind", 0);
    if (kind == 4) {
        gic_init();
        gic_cpu_init();
        gic_set(1, GICD_ISENABLER);
    }
    bool all = bootarg("all", 0) && kind != 4 && kind != 7;

    if (kind == 7) {
        smp_start_all(for_ever, 0);
        check_true("P16-others-locked-up", wait_for(locked_up == cpu_count - 1, 5000000));
    }

    print("# spin: kind %lu for %lu us\n", kind, limit_us);
    if (all) {
        for (unsigned i = 1; i < cpu_count; i++) {
            if (smp_start(i, spin, 0))
                die("CPU_ON failed");
        }
    }
    spin(0);
    unsigned expected = all ? cpu_count : 1;

    check_true("P16-all-finished", wait_for(finished == expected, limit_us * 4 + 1000000));
    uint64_t sum = 0, gap = 0;

    for (unsigned i = 0; i < expected; i++) {
        sum += done_units[i];
        gap = worst_gap[i] > gap ? worst_gap[i] : gap;
    }
    print("# units %lu worst gap %lu us in %lu us\n", sum, ticks_to_us(gap), limit_us);
    check_true("P15-progress", sum > 0);
    check_range(kind == 8 ? "P23-worst-gap-us" : "P15-worst-gap-us", ticks_to_us(gap), 0,
                bootarg("gap_us", 10000000));
    if (bootarg("work", 0))
        check_range("P14-work-percent", sum * best_turn * 100 / us_to_ticks(limit_us),
                    bootarg("work", 0), 100);
    if (all)
        smp_wait_all_off();
}
