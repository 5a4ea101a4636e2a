/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * System register accesses of a guest that trap (exception class 0x18: MSR, MRS, SYS). What is not
 * known here is undefined to the guest; nothing that a guest can name stops the hypervisor.
 */
#ifndef ARM64_SYSREG_H
#define ARM64_SYSREG_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/* An encoding in 16 bits: as bits 20:5 of the instruction. */
#define SYSREG(op0, op1, crn, crm, op2)                                                            \
    (uint16_t)((op0) << 14 | (op1) << 11 | (crn) << 7 | (crm) << 3 | (op2))

/* ISS of class 0x18 (DDI 0487, ESR_EL2). */
static inline uint16_t sysreg_iss_key(uint32_t iss) {
    return SYSREG(iss >> 20 & 3u, iss >> 14 & 7u, iss >> 10 & 15u, iss >> 1 & 15u, iss >> 17 & 7u);
}

static inline unsigned sysreg_iss_rt(uint32_t iss) {
    return iss >> 5 & 31u;
}

static inline bool sysreg_iss_is_read(uint32_t iss) {
    return (iss & 1u) != 0;
}

/* The fields of the ISS that say which register it is, and an encoding in these. */
#define SYSREG_ISS_KEY 0x3ffc1eu
#define SYSREG_ISS(op0, op1, crn, crm, op2)                                                        \
    ((op0) << 20 | (op2) << 17 | (op1) << 14 | (crn) << 10 | (crm) << 1)

/* Whether the access may look at, or change, what is in the vCPU's list registers: ICC_DIR_EL1. */
static inline bool sysreg_needs_fold(uint32_t iss) {
    return (iss & SYSREG_ISS_KEY) == SYSREG_ISS(3u, 0u, 12u, 11u, 1u);
}

/* Whether it is a write of ICC_SGI1R_EL1: the one access that guests make all the time. */
static inline bool sysreg_sends_sgi(uint32_t iss) {
    return (iss & (SYSREG_ISS_KEY | 1u)) == SYSREG_ISS(3u, 0u, 12u, 11u, 5u);
}

/* Whether it is one of the pointer authentication keys (op0 = 3, op1 = 0, CRn = 2, CRm = 1..3). */
static inline bool sysreg_is_pauth_key(uint32_t iss) {
    unsigned crm = iss >> 1 & 15u;

    return (iss & SYSREG_ISS(3u, 7u, 15u, 0u, 0u)) == SYSREG_ISS(3u, 0u, 2u, 0u, 0u) && crm >= 1 &&
           crm <= 3;
}

enum sysreg_result {
    SYSREG_DONE,      /* emulated: go on behind the instruction */
    SYSREG_UNDEFINED, /* the guest gets an Undefined Instruction exception there */
    SYSREG_AGAIN,     /* a part of it is done: the instruction is executed again */
};

/*
 * Emulates the access that ESR_EL2's `iss` describes, on v->arch.x. The caller moves the PC, or
 * injects the exception and logs. On v's pCPU, v loaded, its vgic folded if sysreg_needs_fold(); no
 * locks held.
 */
enum sysreg_result sysreg_access(struct vcpu *v, uint32_t iss);

#endif
