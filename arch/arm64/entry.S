/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exceptions into EL2 and the way back. While a guest runs, TPIDR_EL2 points to this CPU's struct pcpu
 * and SP_EL2 to the top of its stack. trap_*() in C get the vCPU that was left and the time of that, and
 * return the vCPU to go on with.
 */
#include "arch/arm64/regs.h"

.macro from_guest handler
    .balign 128
    stp x0, x1, [sp, #-16]!
    mrs x0, tpidr_el2
    mrs x1, cntpct_el0          /* when the exit began */
    ldr x0, [x0, #PCPU_CURRENT]
    b   \handler
.endm

.macro from_hypervisor kind
    .balign 128
    stp x0, x1, [sp, #-16]!
    mov x0, #\kind
    b   own_fault
.endm

/* A table of vectors: who gets the exits. */
.macro vector_table sync, irq, serror
    from_hypervisor 0           /* EL2 with SP_EL0: never used */
    from_hypervisor 1
    from_hypervisor 2
    from_hypervisor 3
    from_hypervisor 4           /* EL2 with SP_EL2: a bug of ours, or a stack that ran into its guard */
    from_hypervisor 5
    from_hypervisor 6
    .balign 128
    eret                        /* an SError, let through by arch_vcpu_serror(): nothing but that */
    from_guest \sync            /* a guest in AArch64 */
    from_guest \irq
    from_guest \irq
    from_guest \serror
    from_guest \sync            /* a guest's EL0 in AArch32 */
    from_guest \irq
    from_guest \irq
    from_guest \serror
.endm

    .text
    .balign 2048
    .global vectors
vectors:
    vector_table exit_sync, exit_irq, exit_serror
    .balign 2048
    .global traced_vectors      /* while a trace is taken: otherwise exits need not even ask */
traced_vectors:
    vector_table traced_exit_sync, traced_exit_irq, traced_exit_serror

.macro save_guest
    stp x2, x3, [x0, #VCPU_X + 16]
    stp x4, x5, [x0, #VCPU_X + 32]
    stp x6, x7, [x0, #VCPU_X + 48]
    stp x8, x9, [x0, #VCPU_X + 64]
    stp x10, x11, [x0, #VCPU_X + 80]
    stp x12, x13, [x0, #VCPU_X + 96]
    stp x14, x15, [x0, #VCPU_X + 112]
    stp x16, x17, [x0, #VCPU_X + 128]
    stp x18, x19, [x0, #VCPU_X + 144]
    stp x20, x21, [x0, #VCPU_X + 160]
    stp x22, x23, [x0, #VCPU_X + 176]
    stp x24, x25, [x0, #VCPU_X + 192]
    stp x26, x27, [x0, #VCPU_X + 208]
    stp x28, x29, [x0, #VCPU_X + 224]
    ldp x2, x3, [sp], #16
    mrs x4, elr_el2
    mrs x5, spsr_el2
    stp x30, x4, [x0, #VCPU_X + 240]
    str x5, [x0, #VCPU_PSTATE]
    stp x2, x3, [x0, #VCPU_X]
.endm

/* All registers of the guest of vCPU x0 but x0 to x3. */
.macro load_guest
    ldp x30, x4, [x0, #VCPU_X + 240]
    ldr x5, [x0, #VCPU_PSTATE]
    msr elr_el2, x4
    msr spsr_el2, x5
    ldp x4, x5, [x0, #VCPU_X + 32]
    ldp x6, x7, [x0, #VCPU_X + 48]
    ldp x8, x9, [x0, #VCPU_X + 64]
    ldp x10, x11, [x0, #VCPU_X + 80]
    ldp x12, x13, [x0, #VCPU_X + 96]
    ldp x14, x15, [x0, #VCPU_X + 112]
    ldp x16, x17, [x0, #VCPU_X + 128]
    ldp x18, x19, [x0, #VCPU_X + 144]
    ldp x20, x21, [x0, #VCPU_X + 160]
    ldp x22, x23, [x0, #VCPU_X + 176]
    ldp x24, x25, [x0, #VCPU_X + 192]
    ldp x26, x27, [x0, #VCPU_X + 208]
    ldp x28, x29, [x0, #VCPU_X + 224]
.endm

exit_sync:
    save_guest
    bl  trap_sync
    b   enter_guest

exit_irq:
    save_guest
    bl  trap_irq
    b   enter_guest

traced_exit_sync:
    save_guest
    bl  traced_sync
    b   enter_guest

traced_exit_irq:
    save_guest
    bl  traced_irq
    b   enter_guest

traced_exit_serror:
    save_guest
    bl  traced_serror
    b   enter_guest

exit_serror:
    save_guest
    bl  trap_serror
    /* fall through */

/* x0 = vCPU to enter. */
enter_guest:
    load_guest
    ldp x2, x3, [x0, #VCPU_X + 16]
    ldp x0, x1, [x0, #VCPU_X]
    eret
    dsb nsh                     /* no speculation past the return */
    isb

/*
 * enter_guest_at(vcpu, when, arrived): arch_enter_at(). The one place where the order of a wait for a
 * deadline, and of what is done to caches and predictors for safety before a guest, is fixed: such a
 * flush belongs right before the clock is read for `arrived`, so that the wait covers what it takes,
 * and the wait can't undo it. After it, nothing is read or written but the vCPU's own time of arrival
 * and its guest's x0 to x3; no call, no stack, no data of the hypervisor's or of other guests.
 */
    .global enter_guest_at
enter_guest_at:
    mrs x3, tpidr_el2
    ldr x3, [x3, #PCPU_STACK_TOP]
    mov sp, x3
    load_guest
    mrs x3, cntpct_el0          /* speculated at most too early: that is waiting longer */
    str x3, [x2]
1:  cmp x3, x1
    b.hs 2f
    mrs x3, cntpct_el0
    b   1b
2:  ldp x2, x3, [x0, #VCPU_X + 16]
    ldp x0, x1, [x0, #VCPU_X]
    eret
    dsb nsh
    isb

/* arch_enter(vcpu): the first entry of a pCPU; its stack begins anew. */
    .global arch_enter
arch_enter:
    mrs x1, tpidr_el2
    ldr x2, [x1, #PCPU_STACK_TOP]
    mov sp, x2
    b   enter_guest

/*
 * Our own fault: the stack may be the reason, so report on a stack of its own. x0 = kind; one CPU at a
 * time is enough for a last message.
 */
own_fault:
    mrs x1, esr_el2
    mrs x2, elr_el2
    mrs x3, far_el2
    mov x4, sp
    adrp x5, fault_stack_top
    add x5, x5, :lo12:fault_stack_top
    mov sp, x5
    mov x5, x30
    b   trap_own_fault

    .bss
    .balign 16
    .skip 4096
fault_stack_top:
