/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The preempted flag, in two dialects. PV lock: the hypervisor sets a record aside for each vCPU,
 * which the guest only reads. PV sched: the guest gives a record of its own memory. docs/abi.md
 * explains both.
 */
#ifndef ABI_PVLOCK_H
#define ABI_PVLOCK_H

#include <stddef.h>
#include <stdint.h>

#define PVLOCK_ALIGN 64

/* ---- PV lock: owner 6, vendor specific hypervisor services ---- */

#define PVLOCK_ID                                                                                  \
    0xc6000002 /* IPA of the caller's record, which is zeroed first; or NOT_SUPPORTED */

/* The bit of the features call (abi/smccc.h: SMCCC_ID_VENDOR_FEATURES) that says that it is
 * offered. */
#define PVLOCK_FEATURE_BIT 2

/* Little-endian. 0: its vCPU runs; anything else: it is preempted. */
struct pvlock_record {
    uint64_t preempted;
    uint8_t padding[56];
};

_Static_assert(offsetof(struct pvlock_record, preempted) == 0, "the first word");
_Static_assert(sizeof(struct pvlock_record) == PVLOCK_ALIGN, "one record in each slot");

/* Where a record is, as an attribute of its vCPU that is set from outside the guest. */
#define PVLOCK_CTRL 3 /* group */
#define PVLOCK_IPA  0 /* attribute: 64-bit base address */

/* What PVLOCK_IPA reads as before it is set. */
#define PVLOCK_IPA_UNSET UINT64_MAX

/* ---- PV sched, as openEuler's guests speak it: owner 5, 64-bit convention ---- */

#define PVSCHED_ID_FEATURES 0xc5000090 /* X1: an id; 0 if it is offered, else NOT_SUPPORTED */
#define PVSCHED_ID_INIT                                                                            \
    0xc5000091 /* X1: IPA of the caller's record, in its RAM; 0 or NOT_SUPPORTED */
#define PVSCHED_ID_RELEASE 0xc5000092 /* 0: the record is the guest's again */
#define PVSCHED_ID_KICK    0xc5000093 /* X1: number of a vCPU, whose WFI ends; 0 or NOT_SUPPORTED */

/* Little-endian. 0: its vCPU runs; anything else: it does not. */
struct pvsched_record {
    uint32_t preempted;
    uint8_t padding[60];
};

_Static_assert(offsetof(struct pvsched_record, preempted) == 0, "the first word");
_Static_assert(sizeof(struct pvsched_record) == PVLOCK_ALIGN, "one record in each slot");

#endif
