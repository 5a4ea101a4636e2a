/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers of the SMC Calling Convention, Arm DEN0028, as far as Paravane answers them. Constants
 * only: for C and assembly.
 */
#ifndef ABI_SMCCC_H
#define ABI_SMCCC_H

/* The parts of a function identifier (W0). */
#define SMCCC_ID_FAST   0x80000000 /* a fast call; clear: a yielding one, of which there is none */
#define SMCCC_ID_64     0x40000000 /* 64-bit convention; clear: arguments are 32 bits wide */
#define SMCCC_ID_OWNER  0x3f000000
#define SMCCC_ID_NUMBER 0x0000ffff

/* Owner 0: the architecture. */
#define SMCCC_ID_VERSION       0x80000000
#define SMCCC_ID_ARCH_FEATURES 0x80000001

#define SMCCC_VERSION_1_1 0x10001

/* Owner 6, vendor specific hypervisor services: whose they are, and a bitmap of what is offered
 * (X0..X3). */
#define SMCCC_ID_VENDOR_UID      0x8600ff01
#define SMCCC_ID_VENDOR_FEATURES 0x86000000

/* The UID 6b1f4c2e-9a53-4d07-b8c1-504152564e45 of Paravane in W0..W3: its bytes in order,
 * little-endian. */
#define PARAVANE_UID_0 0x2e4c1f6b
#define PARAVANE_UID_1 0x074d539a
#define PARAVANE_UID_2 0x4150c1b8
#define PARAVANE_UID_3 0x454e5652

/* The same of KVM: 28b46fb6-2ec5-11e9-a9ca-4b564d003a74. */
#define KVM_UID_0 0xb66fb428
#define KVM_UID_1 0xe911c52e
#define KVM_UID_2 0x564bcaa9
#define KVM_UID_3 0x743a004d

#define SMCCC_E_SUCCESS           0
#define SMCCC_E_NOT_SUPPORTED     (-1)
#define SMCCC_E_NOT_REQUIRED      (-2)
#define SMCCC_E_INVALID_PARAMETER (-3)

#endif
