/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a guest is told of the hypervisor beyond PSCI: whose it is, stolen time, the preempted flag
 * in both dialects. The handlers of the calls: on the caller's pCPU, no locks; the context is a
 * struct hypercall.
 */
#ifndef ARM64_PARAVIRT_H
#define ARM64_PARAVIRT_H

#include "core/smccc.h"

void pv_vendor_uid(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_vendor_features(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_time_features(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_time_st(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_sched_features(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_sched_init(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_sched_release(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_sched_kick(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_lock(void *context, const struct smccc_args *args, struct smccc_result *result);
void pv_yield_to(void *context, const struct smccc_args *args, struct smccc_result *result);

#endif
