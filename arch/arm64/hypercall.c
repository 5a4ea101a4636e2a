/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/hypercall.h"

#include "abi/psci.h"
#include "abi/pvlock.h"
#include "abi/pvspin.h"
#include "abi/pvtime.h"
#include "abi/smccc.h"
#include "arch/arm64/paravirt.h"
#include "arch/arm64/psci.h"
#include "hyp/vm.h"

#define ARCH SMCCC_FOUND_BY_ARCH
#define PSCI SMCCC_FOUND_BY_PSCI
#define OWN  SMCCC_FOUND_BY_OWN

#define STD_HYP    SMCCC_STD_HYP
#define VENDOR_HYP SMCCC_VENDOR_HYP

/* In ascending order: smccc_table_valid(). Those without a bitmap and bit are there for every VM.
 */
static const struct smccc_call calls[] = {
    {PSCI_ID_VERSION, psci_version, PSCI, 0, 0},
    {PSCI_ID_CPU_SUSPEND, psci_cpu_suspend, PSCI, 0, 0},
    {PSCI_ID_CPU_OFF, psci_cpu_off, PSCI, 0, 0},
    {PSCI_ID_CPU_ON, psci_cpu_on, PSCI, 0, 0},
    {PSCI_ID_AFFINITY_INFO, psci_affinity_info, PSCI, 0, 0},
    {PSCI_ID_MIGRATE_INFO_TYPE, psci_migrate_info_type, PSCI, 0, 0},
    {PSCI_ID_SYSTEM_OFF, psci_system_off, PSCI, 0, 0},
    {PSCI_ID_SYSTEM_RESET, psci_system_reset, PSCI, 0, 0},
    {PSCI_ID_FEATURES, psci_features, PSCI, 0, 0},
    {PSCI_ID_SYSTEM_RESET2, psci_system_reset2, PSCI, 0, 0},
    {SMCCC_ID_VENDOR_FEATURES, pv_vendor_features, 0, VENDOR_HYP, SMCCC_VENDOR_HYP_FEATURES},
    {SMCCC_ID_VENDOR_UID, pv_vendor_uid, 0, 0, 0},
    {PSCI_ID_CPU_SUSPEND_64, psci_cpu_suspend, PSCI, 0, 0},
    {PSCI_ID_CPU_ON_64, psci_cpu_on, PSCI, 0, 0},
    {PSCI_ID_AFFINITY_INFO_64, psci_affinity_info, PSCI, 0, 0},
    {PSCI_ID_SYSTEM_RESET2_64, psci_system_reset2, PSCI, 0, 0},
    {PVTIME_ID_FEATURES, pv_time_features, ARCH | OWN, STD_HYP, SMCCC_STD_HYP_PV_TIME},
    {PVTIME_ID_ST, pv_time_st, OWN, STD_HYP, SMCCC_STD_HYP_PV_TIME},
    {PVSCHED_ID_FEATURES, pv_sched_features, ARCH | OWN, STD_HYP, SMCCC_STD_HYP_PV_SCHED},
    {PVSCHED_ID_INIT, pv_sched_init, OWN, STD_HYP, SMCCC_STD_HYP_PV_SCHED},
    {PVSCHED_ID_RELEASE, pv_sched_release, OWN, STD_HYP, SMCCC_STD_HYP_PV_SCHED},
    {PVSCHED_ID_KICK, pv_sched_kick, OWN, STD_HYP, SMCCC_STD_HYP_PV_SCHED},
    {PVLOCK_ID, pv_lock, 0, VENDOR_HYP, SMCCC_VENDOR_HYP_PV_LOCK},
    {PV_YIELD_TO_ID, pv_yield_to, 0, VENDOR_HYP, SMCCC_VENDOR_HYP_PV_YIELD},
};

const struct smccc_table hypercall_table = {calls, sizeof(calls) / sizeof(calls[0])};

#define ISS_IMM16 0xffffu /* ESR_EL2: the instruction's immediate */

enum verdict hypercall(struct vcpu *v) {
    struct hypercall call = {.v = v, .verdict = RESUME};
    struct smccc_result result;

    if ((v->arch.esr & ISS_IMM16) != 0) {
        v->arch.x[0] = (uint64_t)SMCCC_E_NOT_SUPPORTED; /* DEN0028: it must be zero */
        return RESUME;
    }
    smccc_dispatch(&hypercall_table, &v->vm->features, &call, v->arch.x, &result);
    for (unsigned i = 0; i < result.count; i++) {
        v->arch.x[i] = result.x[i];
    }
    return call.verdict;
}
