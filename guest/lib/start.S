/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entry of every guest image. The image starts with the 64-byte arm64 Image header whose first
 * word is a branch, so the same bytes also work as a raw binary entered at offset 0. It may be
 * loaded at any 4 KiB aligned address: it is linked at 0 as PIE and relocates itself.
 *
 * Nothing is set up or changed before the state at the first instruction has been recorded in
 * entry_state: tests compare it with what a fresh vCPU must look like.
 */
#include "asm.h"

#ifndef TEXT_OFFSET
#define TEXT_OFFSET 0
#endif

    .section .head, "ax"
    .global _head
_head:
    b       primary_entry
    .long   0
    .quad   TEXT_OFFSET
    .long   _image_size_lo          /* the image with BSS and stacks */
    .long   0
    .quad   0xa                     /* little endian, 4 KiB pages, anywhere in memory */
    .quad   0, 0, 0
#ifdef RAW_IMAGE
    .long   0                       /* no magic: a loader must treat this as a raw binary */
#else
    .long   0x644d5241              /* "ARM\x64" */
#endif
    .long   0

    .text
primary_entry:
    mov     sp, x30                 /* SP_EL1 is the one register that is not recorded */
    adrp    x30, entry_state
    add     x30, x30, :lo12:entry_state
    stp     x0, x1, [x30, #0]
    stp     x2, x3, [x30, #16]
    stp     x4, x5, [x30, #32]
    stp     x6, x7, [x30, #48]
    stp     x8, x9, [x30, #64]
    stp     x10, x11, [x30, #80]
    stp     x12, x13, [x30, #96]
    stp     x14, x15, [x30, #112]
    stp     x16, x17, [x30, #128]
    stp     x18, x19, [x30, #144]
    stp     x20, x21, [x30, #160]
    stp     x22, x23, [x30, #176]
    stp     x24, x25, [x30, #192]
    stp     x26, x27, [x30, #208]
    stp     x28, x29, [x30, #224]
    mov     x29, sp
    str     x29, [x30, #240]
    mov     x28, x0                 /* DTB */
    add     x8, x30, #248
#define X(reg) mrs x9, reg; str x9, [x8], #8;
    ENTRY_SYSREGS(X)
#undef X

    mov     x9, #(3 << 20)          /* CPACR_EL1.FPEN: no traps */
    msr     cpacr_el1, x9
    isb
    mrs     x9, fpcr
    mrs     x10, fpsr
    stp     x9, x10, [x8], #16
    add     x8, x8, #15
    and     x8, x8, #-16
    stp     q0, q1, [x8], #32
    stp     q2, q3, [x8], #32
    stp     q4, q5, [x8], #32
    stp     q6, q7, [x8], #32
    stp     q8, q9, [x8], #32
    stp     q10, q11, [x8], #32
    stp     q12, q13, [x8], #32
    stp     q14, q15, [x8], #32
    stp     q16, q17, [x8], #32
    stp     q18, q19, [x8], #32
    stp     q20, q21, [x8], #32
    stp     q22, q23, [x8], #32
    stp     q24, q25, [x8], #32
    stp     q26, q27, [x8], #32
    stp     q28, q29, [x8], #32
    stp     q30, q31, [x8], #32

    /* Apply the R_AARCH64_RELATIVE relocations. */
    adrp    x9, _head
    add     x9, x9, :lo12:_head
    adrp    x10, _rela_start
    add     x10, x10, :lo12:_rela_start
    adrp    x11, _rela_end
    add     x11, x11, :lo12:_rela_end
1:  cmp     x10, x11
    b.hs    2f
    ldp     x12, x13, [x10], #16
    ldr     x14, [x10], #8
    cmp     x13, #1027
    b.ne    1b
    add     x14, x14, x9
    str     x14, [x9, x12]
    b       1b

    /* Clear BSS. Stacks and entry_state lie outside. */
2:  adrp    x10, _bss_start
    add     x10, x10, :lo12:_bss_start
    adrp    x11, _bss_end
    add     x11, x11, :lo12:_bss_end
3:  cmp     x10, x11
    b.hs    4f
    stp     xzr, xzr, [x10], #16
    b       3b

4:  adrp    x10, stacks + STACK_SIZE
    add     sp, x10, #0
    adrp    x10, vectors
    add     x10, x10, :lo12:vectors
    msr     vbar_el1, x10
    adrp    x10, cpus
    add     x10, x10, :lo12:cpus
    msr     tpidr_el1, x10
    isb
    mov     x29, xzr
    mov     x30, xzr
    mov     x0, x28
    bl      guest_start
5:  wfi
    b       5b

/*
 * Secondary entries: x0 is the struct cpu of the new CPU. The variants tell tests which of several
 * entry addresses was used; one waits for an interrupt before anything is set up.
 */
    .global secondary_entry, secondary_entry_a, secondary_entry_b, secondary_entry_wfi
secondary_entry_a:
    mov     x9, #0xa
    b       secondary_common
secondary_entry_b:
    mov     x9, #0xb
    b       secondary_common
secondary_entry_wfi:
    mov     x9, #0xff
    msr     S3_0_C4_C6_0, x9        /* ICC_PMR_EL1 */
    mov     x9, #1
    msr     S3_0_C12_C12_7, x9      /* ICC_IGRPEN1_EL1 */
    isb
    wfi
    mov     x9, #0xf
    b       secondary_common
secondary_entry:
    mov     x9, #1
secondary_common:
    add     x10, x0, #CPU_ENTRY
#define X(reg) mrs x11, reg; str x11, [x10], #8;
    SECONDARY_SYSREGS(X)
#undef X
    str     x9, [x0, #CPU_ENTRY_TAG]
    msr     tpidr_el1, x0
    ldr     x9, [x0, #CPU_STACK_TOP]
    mov     sp, x9
    adrp    x10, vectors
    add     x10, x10, :lo12:vectors
    msr     vbar_el1, x10
    mov     x9, #(3 << 20)
    msr     cpacr_el1, x9
    isb
    mov     x29, xzr
    mov     x30, xzr
    bl      secondary_start
6:  wfi
    b       6b

/* Exception vectors: one frame layout for all sixteen, the number of the vector goes to C. */
    .macro  vector number
    .balign 128
    sub     sp, sp, #FRAME_SIZE
    stp     x0, x1, [sp]
    mov     x1, #\number
    b       exc_common
    .endm

    .balign 2048
    .global vectors
vectors:
    vector  0
    vector  1
    vector  2
    vector  3
    vector  4
    vector  5
    vector  6
    vector  7
    vector  8
    vector  9
    vector  10
    vector  11
    vector  12
    vector  13
    vector  14
    vector  15

    .balign 128
exc_common:
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x19, [sp, #144]
    stp     x20, x21, [sp, #160]
    stp     x22, x23, [sp, #176]
    stp     x24, x25, [sp, #192]
    stp     x26, x27, [sp, #208]
    stp     x28, x29, [sp, #224]
    add     x2, sp, #FRAME_SIZE
    stp     x30, x2, [sp, #240]
    mrs     x2, elr_el1
    mrs     x3, spsr_el1
    stp     x2, x3, [sp, #FRAME_ELR]
    mrs     x2, esr_el1
    mrs     x3, far_el1
    stp     x2, x3, [sp, #FRAME_ESR]
    mov     x0, sp
    bl      exc_dispatch
    ldp     x2, x3, [sp, #FRAME_ELR]
    msr     elr_el1, x2
    msr     spsr_el1, x3
    ldp     x2, x3, [sp, #16]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x9, [sp, #64]
    ldp     x10, x11, [sp, #80]
    ldp     x12, x13, [sp, #96]
    ldp     x14, x15, [sp, #112]
    ldp     x16, x17, [sp, #128]
    ldp     x18, x19, [sp, #144]
    ldp     x20, x21, [sp, #160]
    ldp     x22, x23, [sp, #176]
    ldp     x24, x25, [sp, #192]
    ldp     x26, x27, [sp, #208]
    ldp     x28, x29, [sp, #224]
    ldr     x30, [sp, #240]
    ldp     x0, x1, [sp]
    add     sp, sp, #FRAME_SIZE
    eret

/*
 * void insn_trampoline(uint64_t regs[31], const uint32_t *code)
 * Loads x0-x29 from regs, branches to code (which ends in `ret`), stores x0-x29 back. The frame is
 * found again through SP, which the code must leave alone.
 */
    .global insn_trampoline
insn_trampoline:
    stp     x29, x30, [sp, #-112]!
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    str     x0, [sp, #96]
    mov     x30, x1
    mov     x29, x0
    ldp     x0, x1, [x29, #0]
    ldp     x2, x3, [x29, #16]
    ldp     x4, x5, [x29, #32]
    ldp     x6, x7, [x29, #48]
    ldp     x8, x9, [x29, #64]
    ldp     x10, x11, [x29, #80]
    ldp     x12, x13, [x29, #96]
    ldp     x14, x15, [x29, #112]
    ldp     x16, x17, [x29, #128]
    ldp     x18, x19, [x29, #144]
    ldp     x20, x21, [x29, #160]
    ldp     x22, x23, [x29, #176]
    ldp     x24, x25, [x29, #192]
    ldp     x26, x27, [x29, #208]
    ldp     x28, x29, [x29, #224]
    blr     x30
    ldr     x30, [sp, #96]
    stp     x0, x1, [x30, #0]
    stp     x2, x3, [x30, #16]
    stp     x4, x5, [x30, #32]
    stp     x6, x7, [x30, #48]
    stp     x8, x9, [x30, #64]
    stp     x10, x11, [x30, #80]
    stp     x12, x13, [x30, #96]
    stp     x14, x15, [x30, #112]
    stp     x16, x17, [x30, #128]
    stp     x18, x19, [x30, #144]
    stp     x20, x21, [x30, #160]
    stp     x22, x23, [x30, #176]
    stp     x24, x25, [x30, #192]
    stp     x26, x27, [x30, #208]
    stp     x28, x29, [x30, #224]
    ldp     x19, x20, [sp, #16]
    ldp     x21, x22, [sp, #32]
    ldp     x23, x24, [sp, #48]
    ldp     x25, x26, [sp, #64]
    ldp     x27, x28, [sp, #80]
    ldp     x29, x30, [sp], #112
    ret

/*
 * uint64_t el0_call(uint64_t (*fn)(uint64_t), uint64_t arg, uint64_t stack_top)
 * Runs fn at EL0 with interrupts masked there; fn returns into el0_exit, whose SVC comes back here
 * by way of exc_dispatch. fn must lie in the .el0text section.
 */
    .global el0_call, el0_resume
el0_call:
    stp     x29, x30, [sp, #-96]!
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    msr     sp_el0, x2
    msr     elr_el1, x0
    mov     x3, #0x3c0              /* EL0t, DAIF set */
    msr     spsr_el1, x3
    adrp    x30, el0_exit
    add     x30, x30, :lo12:el0_exit
    mov     x0, x1
    eret
el0_resume:
    ldp     x19, x20, [sp, #16]
    ldp     x21, x22, [sp, #32]
    ldp     x23, x24, [sp, #48]
    ldp     x25, x26, [sp, #64]
    ldp     x27, x28, [sp, #80]
    ldp     x29, x30, [sp], #96
    ret

    .section .el0text, "ax"
el0_exit:
    svc     #0x10

    .section .noinit, "aw", %nobits
    .balign 16
    .global entry_state
entry_state:
    .skip   1024
    .balign 4096
    .global stacks
stacks:
    .skip   MAX_CPUS * STACK_SIZE
