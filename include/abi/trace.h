/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a trace holds: shared by the hypervisor, which writes it, and `paravane trace`, which reads
 * it. docs/trace.md describes the text in which a trace leaves the machine.
 */
#ifndef ABI_TRACE_H
#define ABI_TRACE_H

#include <stdint.h>

#define TRACE_VERSION 1u

/*
 * Every kind of event: X(NAME, "name", "what its argument means"). Another one is another line, at
 * the end; `paravane trace` then shows it as an instant of its vCPU.
 */
#define TRACE_EVENTS(X)                                                                            \
    X(STATE, "state", "trace_state_arg()")                                                         \
    X(EXIT, "exit", "bits 7:0 TRACE_EXIT_*, 31:8 detail: arm64 ESR_EL2[23:0]")                     \
    X(ENTER, "enter", "0: its guest runs again")                                                   \
    X(IDLE, "idle", "1: the pCPU begins to wait for an interrupt, 0: it has one")                  \
    X(YIELD, "yield", "who runs then, as TRACE_WHO")                                               \
    X(INJECT, "inject", "INTID that becomes pending for the guest")                                \
    X(TIMER, "timer", "0: the software timer of the vCPU has expired")                             \
    X(FLUSH, "flush", "0: translations of a sibling were thrown away")                             \
    X(VM, "vm", "TRACE_VM_*: what becomes of the VM; the vCPU is 0")                               \
    X(DEADLINE, "deadline",                                                                        \
      "how many ticks ago the deadline was that the vCPU was last woken for")                      \
    X(ARRIVAL, "arrival", "int32: ticks by which it was late then; negative: early, so it waited") \
    X(ADVANCE, "advance", "ns, bits 31:16 how early its alarm was then, 15:0 what the next is")

#define TRACE_EVENT_ENUM(name, text, arg) TRACE_##name,
enum trace_event { TRACE_EVENTS(TRACE_EVENT_ENUM) TRACE_EVENT_COUNT };
#undef TRACE_EVENT_ENUM

/* Why a vCPU changed its state. */
#define TRACE_WHYS(X)                                                                              \
    X(WAKE, "wake")                     /* blocked or off, and somebody wants it */                \
    X(PICK, "pick")                     /* it was its turn, where it ran last */                   \
    X(MIGRATION, "migration")           /* the same, on another pCPU */                            \
    X(SLICE, "slice end")               /* its slice was over */                                   \
    X(PREEMPTION, "wake-up preemption") /* one came that is owed the pCPU more */                  \
    X(YIELD, "yield")                   /* it gave the pCPU up */                                  \
    X(GIVE_WAY, "woken late")           /* a wake kept it from blocking, but another goes first */ \
    X(BLOCK, "block")                   /* it waits for an interrupt */                            \
    X(STOP, "stop")                     /* it is off, or waits for its VM to be loaded */

#define TRACE_WHY_ENUM(name, text) TRACE_WHY_##name,
enum trace_why { TRACE_WHYS(TRACE_WHY_ENUM) TRACE_WHY_COUNT };
#undef TRACE_WHY_ENUM

/* Why a guest was left: the same as the counters' names. */
#define TRACE_EXITS(X)                                                                             \
    X(WFI, "wfi")                                                                                  \
    X(WFE, "wfe")                                                                                  \
    X(HVC, "hvc")                                                                                  \
    X(SMC, "smc")                                                                                  \
    X(SYSREG, "sysreg")                                                                            \
    X(MMIO, "mmio")                                                                                \
    X(IRQ, "irq")                                                                                  \
    X(ABORT, "abort")                                                                              \
    X(SETWAY, "setway")                                                                            \
    X(OTHER, "other")

#define TRACE_EXIT_ENUM(name, text) TRACE_EXIT_##name,
enum trace_exit { TRACE_EXITS(TRACE_EXIT_ENUM) TRACE_EXIT_COUNT };
#undef TRACE_EXIT_ENUM

/* Run states, and the life of a VM. */
enum { TRACE_OFF, TRACE_BLOCKED, TRACE_RUNNABLE, TRACE_RUNNING, TRACE_STATES };
enum { TRACE_VM_OFF, TRACE_VM_LOADING, TRACE_VM_RUNNING, TRACE_VM_STOPPING, TRACE_VM_STATES };

/* Whose event it is: VM number (16 bits) and vCPU number (8 bits). */
#define TRACE_WHO(vm, vcpu) ((uint32_t)(vm) << 8 | (uint32_t)(vcpu))

/* The argument of a STATE event: from and to (TRACE_OFF..), and enum trace_why. */
static inline uint32_t trace_state_arg(uint32_t from, uint32_t to, uint32_t why) {
    return from | to << 4 | why << 8;
}

#endif
