/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Vectors that only know interrupts, and read the counter before anything else. The measurement's
 * own cost from the exception to the counter's value is stp, isb, mrs.
 */
/* Offsets in struct bench_cpu; bench.c asserts them. */
#include "bench_asm.h"

    .text
    .balign 2048
    .global bench_vectors
bench_vectors:
    .rept 5
    b       unexpected
    .balign 128
    .endr
    stp     x0, x1, [sp, #-16]!
    isb
    mrs     x0, cntvct_el0
    mrs     x1, tpidr_el0
    str     x0, [x1, #BENCH_ENTRY]
    mrs     x0, S3_0_C12_C12_0      /* ICC_IAR1_EL1 */
    isb
    str     x0, [x1, #BENCH_INTID]
    mrs     x0, cntvct_el0
    str     x0, [x1, #BENCH_ACK]
    ldr     x0, [x1, #BENCH_INTID]
    cmp     x0, #27
    b.ne    1f
    msr     cntv_ctl_el0, xzr       /* its level has to fall before its end */
    isb
1:  msr     S3_0_C12_C12_1, x0      /* ICC_EOIR1_EL1 */
    isb
    ldr     x0, [x1, #BENCH_COUNT]
    add     x0, x0, #1
    str     x0, [x1, #BENCH_COUNT]
    ldp     x0, x1, [sp], #16
    eret
    .balign 128
    .rept 10
    b       unexpected
    .balign 128
    .endr

unexpected:
    adrp    x0, vectors
    add     x0, x0, :lo12:vectors
    msr     vbar_el1, x0            /* the library's say what it was */
    isb
    brk     #0
