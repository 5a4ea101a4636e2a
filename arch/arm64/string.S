/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memset, memcpy and memmove for memory that is mapped Normal with the MMU on (SCTLR_EL2.A = 0). A large
 * memcpy borrows some vector registers, which may be a guest's, and gives them back. Sections and numbers are those of the Arm ARM, DDI 0487.
 *
 * Cost, in instructions: clearing 2.1 for 64 bytes (DC ZVA of 64 bytes), copying 4.5 for 64 bytes.
 * Scrubbing and loading a VM's memory is nothing but this.
 */

#include "arch/arm64/regs.h"

    .arch_extension fp
    .arch_extension simd
    .text

/*
 * void *memset(x0 to, w1 byte, x2 size)
 *
 * Up to 15 single bytes align the target, then 64 bytes at a time. From ZVA_MIN zeroes on DC ZVA clears
 * whole blocks, whose size DCZID_EL0.BS tells (D24.2.32); with MMU off it would fault, so short sets,
 * which early boot code may do, never use it.
 */
#define ZVA_MIN 4096

    .global memset
    .type memset, %function
memset:
    mov x3, x0
    and x1, x1, #0xff
    mov x4, #0x0101010101010101
    mul x1, x1, x4
    cmp x2, #64
    b.lo .Lset_tail
.Lset_align:
    tst x3, #15
    b.eq .Lset_aligned
    strb w1, [x3], #1
    sub x2, x2, #1
    b .Lset_align
.Lset_aligned:
    cbnz x1, .Lset_64
    cmp x2, #ZVA_MIN
    b.lo .Lset_64
    mrs x4, dczid_el0
    tbnz x4, #4, .Lset_64       /* DZP: DC ZVA is prohibited */
    mov x5, #4
    lsl x5, x5, x4              /* block size; BS is the low bits and LSL takes the count modulo 64 */
    cmp x5, #(ZVA_MIN / 16)
    b.hi .Lset_64               /* a huge block: the alignment below might eat up all there is */

    /* Up to a block boundary with stores, 16 bytes each: both are aligned to 16. */
    sub x6, x5, #1
.Lzva_align:
    tst x3, x6
    b.eq .Lzva_aligned
    stp x1, x1, [x3], #16
    sub x2, x2, #16
    b .Lzva_align
.Lzva_aligned:
    lsl x7, x5, #5              /* 32 blocks a round */
    subs x2, x2, x7
    b.lo .Lzva_rest
.Lzva_loop:
    .rept 32
    dc zva, x3
    add x3, x3, x5
    .endr
    subs x2, x2, x7
    b.hs .Lzva_loop
.Lzva_rest:
    adds x2, x2, x7             /* what is left: less than 32 blocks */
    b.eq .Lset_end
.Lzva_one:
    subs x2, x2, x5
    b.lo .Lzva_done
    dc zva, x3
    add x3, x3, x5
    b .Lzva_one
.Lzva_done:
    add x2, x2, x5

.Lset_64:
    subs x2, x2, #64
    b.lo .Lset_64_done
.Lset_64_loop:
    stp x1, x1, [x3]
    stp x1, x1, [x3, #16]
    stp x1, x1, [x3, #32]
    stp x1, x1, [x3, #48]
    add x3, x3, #64
    subs x2, x2, #64
    b.hs .Lset_64_loop
.Lset_64_done:
    add x2, x2, #64
.Lset_tail:
    cbz x2, .Lset_end
.Lset_byte:
    strb w1, [x3], #1
    subs x2, x2, #1
    b.ne .Lset_byte
.Lset_end:
    ret
    .size memset, . - memset

/*
 * void *memmove(x0 to, x1 from, x2 size): backwards when the target begins inside the source. The rare
 * case, so it is short rather than fast.
 */
    .global memmove
    .type memmove, %function
memmove:
    sub x3, x0, x1              /* as unsigned: below size only if to is in [from, from + size) */
    cmp x3, x2
    b.hs memcpy
    cbz x2, .Lmove_end
.Lmove_byte:
    sub x2, x2, #1
    ldrb w3, [x1, x2]
    strb w3, [x0, x2]
    cbnz x2, .Lmove_byte
.Lmove_end:
    ret
    .size memmove, . - memmove

/*
 * void *memcpy(x0 to, x1 from, x2 size). Also right when the target begins before the source and
 * overlaps it: it goes upwards, and no byte of the source is overwritten before it was loaded.
 *
 * If both can be aligned to 8 together every access is aligned. Otherwise the target is, and loads of
 * 16 bytes and more from an unaligned source need Normal memory (B2.8.2).
 */
#define COPY_VECTOR_MIN 16384

    .global memcpy
    .type memcpy, %function
memcpy:
    mov x3, x0
    cmp x2, #64
    b.lo .Lcopy_small
.Lcopy_align:
    tst x3, #15
    b.eq .Lcopy_64
    ldrb w4, [x1], #1
    strb w4, [x3], #1
    sub x2, x2, #1
    b .Lcopy_align
.Lcopy_64:
    cmp x2, #COPY_VECTOR_MIN
    b.hs .Lcopy_vector
.Lcopy_less:
    subs x2, x2, #128
    b.lo .Lcopy_128_done
.Lcopy_128_loop:
    ldp x4, x5, [x1]
    ldp x6, x7, [x1, #16]
    ldp x8, x9, [x1, #32]
    ldp x10, x11, [x1, #48]
    ldp x12, x13, [x1, #64]
    ldp x14, x15, [x1, #80]
    stp x4, x5, [x3]
    ldp x4, x5, [x1, #96]
    stp x6, x7, [x3, #16]
    ldp x6, x7, [x1, #112]
    stp x8, x9, [x3, #32]
    stp x10, x11, [x3, #48]
    stp x12, x13, [x3, #64]
    stp x14, x15, [x3, #80]
    stp x4, x5, [x3, #96]
    stp x6, x7, [x3, #112]
    add x1, x1, #128
    add x3, x3, #128
    subs x2, x2, #128
    b.hs .Lcopy_128_loop
.Lcopy_128_done:
    add x2, x2, #128
.Lcopy_small:
    orr x4, x1, x3
    tst x4, #7
    b.ne .Lcopy_tail            /* with the MMU off (structures) only aligned words may be used */
.Lcopy_8:
    subs x2, x2, #8
    b.lo .Lcopy_8_done
    ldr x4, [x1], #8
    str x4, [x3], #8
    b .Lcopy_8
.Lcopy_8_done:
    add x2, x2, #8
.Lcopy_tail:
    cbz x2, .Lcopy_end
.Lcopy_byte:
    ldrb w4, [x1], #1
    strb w4, [x3], #1
    subs x2, x2, #1
    b.ne .Lcopy_byte
.Lcopy_end:
    ret

/*
 * 512 bytes a round. q0 to q7 are whoever's: back as they were at the end. No call, no interrupt between. Their
 * use may trap (fp.h), so it is allowed meanwhile.
 */
.Lcopy_vector:
    mrs x5, cptr_el2
    bic x4, x5, #CPTR_TFP
    msr cptr_el2, x4
    isb
    stp q0, q1, [sp, #-128]!
    stp q2, q3, [sp, #32]
    stp q4, q5, [sp, #64]
    stp q6, q7, [sp, #96]
    sub x2, x2, #512
.Lcopy_vector_loop:
    .rept 4
    ldp q0, q1, [x1], #32
    ldp q2, q3, [x1], #32
    ldp q4, q5, [x1], #32
    ldp q6, q7, [x1], #32
    stp q0, q1, [x3], #32
    stp q2, q3, [x3], #32
    stp q4, q5, [x3], #32
    stp q6, q7, [x3], #32
    .endr
    subs x2, x2, #512
    b.hs .Lcopy_vector_loop
    add x2, x2, #512
    ldp q2, q3, [sp, #32]
    ldp q4, q5, [sp, #64]
    ldp q6, q7, [sp, #96]
    ldp q0, q1, [sp], #128
    msr cptr_el2, x5
    isb                         /* or later uses might see it as it was */
    b .Lcopy_less
    .size memcpy, . - memcpy
