/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PSCI 1.1 (Arm DEN0022) for guests: the handlers of its calls, for the table in hypercall.c. All:
 * on the caller's pCPU, no locks held; the context is a struct hypercall.
 */
#ifndef ARM64_PSCI_H
#define ARM64_PSCI_H

#include "core/smccc.h"

void psci_version(void *context, const struct smccc_args *args, struct smccc_result *result);
void psci_features(void *context, const struct smccc_args *args, struct smccc_result *result);
void psci_cpu_suspend(void *context, const struct smccc_args *args, struct smccc_result *result);
void psci_cpu_off(void *context, const struct smccc_args *args, struct smccc_result *result);
void psci_cpu_on(void *context, const struct smccc_args *args, struct smccc_result *result);
void psci_affinity_info(void *context, const struct smccc_args *args, struct smccc_result *result);
void psci_migrate_info_type(void *context, const struct smccc_args *args,
                            struct smccc_result *result);
void psci_system_off(void *context, const struct smccc_args *args, struct smccc_result *result);
void psci_system_reset(void *context, const struct smccc_args *args, struct smccc_result *result);
void psci_system_reset2(void *context, const struct smccc_args *args, struct smccc_result *result);

#endif
