/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers of the Power State Coordination Interface, Arm DEN0022, version 1.1: what Paravane
 * answers. Constants only: for C and assembly.
 */
#ifndef ABI_PSCI_H
#define ABI_PSCI_H

#define PSCI_ID_VERSION           0x84000000
#define PSCI_ID_CPU_SUSPEND       0x84000001
#define PSCI_ID_CPU_SUSPEND_64    0xc4000001
#define PSCI_ID_CPU_OFF           0x84000002
#define PSCI_ID_CPU_ON            0x84000003
#define PSCI_ID_CPU_ON_64         0xc4000003
#define PSCI_ID_AFFINITY_INFO     0x84000004
#define PSCI_ID_AFFINITY_INFO_64  0xc4000004
#define PSCI_ID_MIGRATE_INFO_TYPE 0x84000006
#define PSCI_ID_SYSTEM_OFF        0x84000008
#define PSCI_ID_SYSTEM_RESET      0x84000009
#define PSCI_ID_FEATURES          0x8400000a
#define PSCI_ID_SYSTEM_RESET2     0x84000012
#define PSCI_ID_SYSTEM_RESET2_64  0xc4000012

#define PSCI_VERSION_1_1 0x10001

#define PSCI_E_SUCCESS            0
#define PSCI_E_NOT_SUPPORTED      (-1)
#define PSCI_E_INVALID_PARAMETERS (-2)
#define PSCI_E_DENIED             (-3)
#define PSCI_E_ALREADY_ON         (-4)
#define PSCI_E_ON_PENDING         (-5)
#define PSCI_E_INTERNAL_FAILURE   (-6)
#define PSCI_E_NOT_PRESENT        (-7)
#define PSCI_E_DISABLED           (-8)
#define PSCI_E_INVALID_ADDRESS    (-9)

/* AFFINITY_INFO's answers. */
#define PSCI_AFFINITY_ON         0
#define PSCI_AFFINITY_OFF        1
#define PSCI_AFFINITY_ON_PENDING 2

/* MIGRATE_INFO_TYPE: no trusted OS that would need to migrate. */
#define PSCI_MIGRATE_NOT_NEEDED 2

/* CPU_SUSPEND's power_state in the original format: bits that must be zero. */
#define PSCI_POWER_STATE_RESERVED 0xfcfe0000

/* SYSTEM_RESET2's reset_type. */
#define PSCI_RESET_TYPE_WARM 0

#endif
