/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stolen time, Arm DEN0057A: how long a vCPU was ready to run and did not. The guest asks for its
 * record once for each vCPU and then only reads it.
 */
#ifndef ABI_PVTIME_H
#define ABI_PVTIME_H

#include <stddef.h>
#include <stdint.h>

/* Owner 5, standard hypervisor services; 64-bit convention. */
#define PVTIME_ID_FEATURES 0xc5000020 /* X1: an id; 0 if it is offered, else NOT_SUPPORTED */
#define PVTIME_ID_ST       0xc5000021 /* IPA of the caller's record, or NOT_SUPPORTED */

#define PVTIME_ALIGN 64

/* Little-endian. The guest refuses a record whose first two words are not 0. */
struct pvtime_record {
    uint32_t revision;
    uint32_t attributes;
    uint64_t stolen_ns; /* written, and to be read, by one access of 64 bits */
    uint8_t reserved[48];
};

_Static_assert(offsetof(struct pvtime_record, attributes) == 4, "DEN0057A 3.2.2");
_Static_assert(offsetof(struct pvtime_record, stolen_ns) == 8, "DEN0057A 3.2.2");
_Static_assert(sizeof(struct pvtime_record) == PVTIME_ALIGN, "one record in each slot");

#endif
