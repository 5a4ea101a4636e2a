/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the ID space of the CPU that this runs on: all of its 56 encodings, also those without a
 * name. */
#include "arch/arm64/id_regs.h"
#include "arch/arm64/sysreg_access.h"

#define READ(crm, op2)                                                                             \
    case (crm) << 3 | (op2):                                                                       \
        return read_sysreg(S3_0_C0_C##crm##_##op2)
#define READ_CRM(crm)                                                                              \
    READ(crm, 0);                                                                                  \
    READ(crm, 1);                                                                                  \
    READ(crm, 2);                                                                                  \
    READ(crm, 3);                                                                                  \
    READ(crm, 4);                                                                                  \
    READ(crm, 5);                                                                                  \
    READ(crm, 6);                                                                                  \
    READ(crm, 7)

uint64_t id_read_hardware(unsigned crm, unsigned op2) {
    switch (crm << 3 | op2) {
        READ_CRM(1);
        READ_CRM(2);
        READ_CRM(3);
        READ_CRM(4);
        READ_CRM(5);
        READ_CRM(6);
        READ_CRM(7);
    default:
        return 0;
    }
}
