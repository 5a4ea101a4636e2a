/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The feature ID registers as guests see them: an allow-list. A field that is not in the list reads
 * as "not implemented", a register without such fields as 0, now and for whatever comes later.
 */
#ifndef ARM64_ID_REGS_H
#define ARM64_ID_REGS_H

#include <stdbool.h>
#include <stdint.h>

/* CRm of the ID space (op0 = 3, op1 = 0, CRn = 0): 1..3 are AArch32's, 4..7 AArch64's. */
#define ID_CRM_FIRST 1u
#define ID_CRM_LAST  7u

/* Reads the register op0 = 3, op1 = 0, CRn = 0, `crm`, `op2` of the pCPU that this runs on. */
typedef uint64_t (*id_read_fn)(unsigned crm, unsigned op2);

/*
 * Takes this pCPU's features into account: guests see what all pCPUs have. On each pCPU before its
 * first guest; on the boot pCPU first, the others may follow at the same time. False when this pCPU
 * lacks something that guests saw until now: then nothing must have run yet.
 */
bool id_regs_init(id_read_fn read);

/* What a guest reads; 0 for what is not in the ID space. Any pCPU, no locks. */
uint64_t id_reg_guest(unsigned crm, unsigned op2);

/* The 4-bit field at `shift` of it. */
static inline unsigned id_field_guest(unsigned crm, unsigned op2, unsigned shift) {
    return (unsigned)(id_reg_guest(crm, op2) >> shift) & 15u;
}

/* How many breakpoints and watchpoints a guest has: 2..16. */
unsigned id_breakpoints(void);
unsigned id_watchpoints(void);

/* Whether guests see a GIC CPU interface: ID_AA64PFR0_EL1.GIC. */
bool id_has_gic(void);

/* The reader for real hardware (id_read.c). */
uint64_t id_read_hardware(unsigned crm, unsigned op2);

#endif
