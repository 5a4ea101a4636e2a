/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/hypercall.h"

#include "abi/psci.h"
#include "abi/smccc.h"
#include "arch/arm64/psci.h"
#include "hyp/vcpu.h"

#define PSCI SMCCC_FOUND_BY_PSCI

/* In ascending order: smccc_table_valid(). */
static const struct smccc_call calls[] = {
    {PSCI_ID_VERSION, PSCI, psci_version},
    {PSCI_ID_CPU_SUSPEND, PSCI, psci_cpu_suspend},
    {PSCI_ID_CPU_OFF, PSCI, psci_cpu_off},
    {PSCI_ID_CPU_ON, PSCI, psci_cpu_on},
    {PSCI_ID_AFFINITY_INFO, PSCI, psci_affinity_info},
    {PSCI_ID_MIGRATE_INFO_TYPE, PSCI, psci_migrate_info_type},
    {PSCI_ID_SYSTEM_OFF, PSCI, psci_system_off},
    {PSCI_ID_SYSTEM_RESET, PSCI, psci_system_reset},
    {PSCI_ID_FEATURES, PSCI, psci_features},
    {PSCI_ID_SYSTEM_RESET2, PSCI, psci_system_reset2},
    {PSCI_ID_CPU_SUSPEND_64, PSCI, psci_cpu_suspend},
    {PSCI_ID_CPU_ON_64, PSCI, psci_cpu_on},
    {PSCI_ID_AFFINITY_INFO_64, PSCI, psci_affinity_info},
    {PSCI_ID_SYSTEM_RESET2_64, PSCI, psci_system_reset2},
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
    smccc_dispatch(&hypercall_table, &call, v->arch.x, &result);
    for (unsigned i = 0; i < result.count; i++) {
        v->arch.x[i] = result.x[i];
    }
    return call.verdict;
}
