/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a guest may say about a vCPU that spins: Paravane's own, owner 6 (vendor specific hypervisor
 * services), not offered under another identity. docs/abi.md explains it. Constants only: for C and
 * assembly.
 */
#ifndef ABI_PVSPIN_H
#define ABI_PVSPIN_H

/*
 * X1: number of a vCPU, from 0 in the order of the device tree: the caller waits for it. X0:
 * SMCCC_E_SUCCESS, it waited for a CPU and got the caller's, which has one again by now;
 * PV_YIELD_NOT_WAITING at once if it runs, sleeps or is off; SMCCC_E_INVALID_PARAMETER if there is
 * none, or it is the caller itself.
 */
#define PV_YIELD_TO_ID       0xc6000030
#define PV_YIELD_NOT_WAITING 1

/* The bit of the features call (abi/smccc.h: SMCCC_ID_VENDOR_FEATURES) that says that it is
 * offered: bit 16 of X1. */
#define PV_YIELD_FEATURE_BIT 48

#endif
