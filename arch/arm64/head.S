/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entry from the boot loader (as if we were an arm64 Linux kernel, Documentation/arch/arm64/booting.rst:
 * x0 = device tree, MMU off, EL2) and from firmware for secondary CPUs (PSCI CPU_ON).
 */
#include "arch/arm64/regs.h"

    .section .head, "ax"
    .global _start
_start:
    b   primary                 /* code0 */
    .long 0                     /* code1 */
    .quad 0                     /* text_offset: we may lie anywhere 2 MiB aligned */
    .quad _end_of_image - _start /* image_size, with BSS */
    .quad 0xa                   /* flags: little endian, 4 KiB pages, anywhere in memory */
    .quad 0, 0, 0
    .ascii "ARM\x64"
    .long 0

    .text
primary:
    mrs x1, CurrentEL
    cmp x1, #(2 << 2)
    b.ne wrong_level
    mov x19, x0
    bl  el2_reset
    adrp x1, _boot_stack_top
    mov sp, x1
    bl  relocate
    /* Clear BSS, the boot stack included (nothing is on it yet). */
    adrp x0, _start_of_bss
    add x0, x0, :lo12:_start_of_bss
    adrp x1, _end_of_bss
1:  stp xzr, xzr, [x0], #16
    cmp x0, x1
    b.lo 1b
    mov x0, x19
    bl  mmu_early_init
    /*
     * What was written with the MMU off is in memory; lines of the image that a boot loader left in the
     * caches would hide it.
     */
    adrp x0, _start
    adrp x1, _end_of_image
    bl  invalidate_range
    bl  mmu_enable
    mov x0, x19
    bl  boot_main
    b   .

/* Linux' protocol also allows EL1; there we can do nothing at all, not even print. */
wrong_level:
    wfe
    b   wrong_level

/* CPU_ON enters here; x0 = struct pcpu of this CPU. MMU off, caches coherent by mmu_enable's attributes. */
    .global secondary_entry
secondary_entry:
    mov x19, x0
    bl  el2_reset
    bl  mmu_enable
    ldr x1, [x19, #PCPU_STACK_TOP]
    mov sp, x1
    mov x0, x19
    bl  secondary_main
    b   .

/* A known state before anything else: no E2H, nothing trapped yet, MMU and caches off. */
el2_reset:
    mov x1, #HCR_RW
    msr hcr_el2, x1
    isb
    ldr x1, =SCTLR_EL2_OFF
    msr sctlr_el2, x1
    isb
    adr x1, vectors
    msr vbar_el2, x1
    isb
    ret

/* Adds the load address to each word that the linker left for us (R_AARCH64_RELATIVE only). */
relocate:
    adrp x0, _start
    adrp x1, _start_of_rela
    add x1, x1, :lo12:_start_of_rela
    adrp x2, _end_of_rela
    add x2, x2, :lo12:_end_of_rela
1:  cmp x1, x2
    b.hs 2f
    ldp x3, x4, [x1], #16
    ldr x5, [x1], #8
    cmp w4, #1027
    b.ne wrong_level
    add x5, x5, x0
    str x5, [x0, x3]
    b   1b
2:  ret

/* Invalidates the data cache by address for x0..x1. */
invalidate_range:
    mrs x2, ctr_el0
    ubfx x2, x2, #16, #4        /* DminLine: log2 of words */
    mov x3, #4
    lsl x3, x3, x2
1:  dc  ivac, x0
    add x0, x0, x3
    cmp x0, x1
    b.lo 1b
    dsb sy
    ret

/* Turns the MMU on with the tables of mmu.c; identity mapped, so the next instruction is the next. */
mmu_enable:
    adrp x1, mmu_registers
    add x1, x1, :lo12:mmu_registers
    ldp x2, x3, [x1]            /* MAIR_EL2, TCR_EL2 */
    ldp x4, x5, [x1, #16]       /* TTBR0_EL2, SCTLR_EL2 */
    msr mair_el2, x2
    msr tcr_el2, x3
    msr ttbr0_el2, x4
    isb
    tlbi alle2
    ic  iallu
    dsb sy
    isb
    msr sctlr_el2, x5
    isb
    ret
