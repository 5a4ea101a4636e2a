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

#define SMCCC_E_SUCCESS           0
#define SMCCC_E_NOT_SUPPORTED     (-1)
#define SMCCC_E_NOT_REQUIRED      (-2)
#define SMCCC_E_INVALID_PARAMETER (-3)

#endif
