/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/psci.h"

#include "abi/psci.h"
#include "arch/arm64/hypercall.h"
#include "hyp/vcpu.h"
#include "hyp/vm.h"

/* Aff3, Aff2, Aff1, Aff0 in an MPIDR and in the calls' target_cpu; all other bits are zero there.
 */
#define AFFINITY_MASK      0xff00ffffffull
#define AFFINITY_LEVEL_MAX 3u

/* The fields from `level` up. */
static uint64_t affinity_mask(unsigned level) {
    static const uint64_t masks[] = {0xff00ffffffull, 0xff00ffff00ull, 0xff00ff0000ull,
                                     0xff00000000ull};

    return masks[level];
}

static struct vcpu *find_vcpu(const struct vm *vm, uint64_t affinity) {
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        if ((vm->vcpus[i]->arch.mpidr & AFFINITY_MASK) == affinity) {
            return vm->vcpus[i];
        }
    }
    return NULL;
}

void psci_version(void *context, const struct smccc_args *args, struct smccc_result *result) {
    (void)context;
    (void)args;
    smccc_return(result, PSCI_VERSION_1_1);
}

/*
 * 0 for what is there. For CPU_SUSPEND the zero also says: original format of power_state, no OS
 * initiated mode.
 */
void psci_features(void *context, const struct smccc_args *args, struct smccc_result *result) {
    const struct hypercall *call = context;
    bool there = smccc_offers(&hypercall_table, &call->v->vm->features, (uint32_t)args->arg[0],
                              SMCCC_FOUND_BY_PSCI);

    smccc_return(result, there ? PSCI_E_SUCCESS : PSCI_E_NOT_SUPPORTED);
}

/*
 * Every suspend is a standby, a WFI: it ends with an interrupt, in the caller, registers kept. For
 * a power-down state DEN0022 wants the caller to cope with that: it is what happens when a wake-up
 * event comes before the power goes.
 */
void psci_cpu_suspend(void *context, const struct smccc_args *args, struct smccc_result *result) {
    struct hypercall *call = context;

    if ((args->arg[0] & PSCI_POWER_STATE_RESERVED) != 0) {
        smccc_return(result, PSCI_E_INVALID_PARAMETERS);
        return;
    }
    smccc_return(result, PSCI_E_SUCCESS);
    call->verdict = BLOCK;
}

void psci_cpu_off(void *context, const struct smccc_args *args, struct smccc_result *result) {
    struct hypercall *call = context;

    (void)args;
    result->count = 0;
    vm_vcpu_off(call->v);
    call->verdict = POWER_DOWN;
}

void psci_cpu_on(void *context, const struct smccc_args *args, struct smccc_result *result) {
    struct hypercall *call = context;
    struct vm *vm = call->v->vm;
    uint64_t entry = args->arg[1];
    struct vcpu *target = find_vcpu(vm, args->arg[0]);

    if (target == NULL) {
        smccc_return(result, PSCI_E_INVALID_PARAMETERS);
        return;
    }
    if ((entry & 3u) != 0 || vm_ram(vm, (ipa_t){entry}, 4) == NULL) {
        smccc_return(result, PSCI_E_INVALID_ADDRESS);
        return;
    }
    smccc_return(result, vm_vcpu_on(target, entry, args->arg[2]));
}

/* ON when any vCPU of that part of the machine is, OFF when all are. */
void psci_affinity_info(void *context, const struct smccc_args *args, struct smccc_result *result) {
    struct hypercall *call = context;
    const struct vm *vm = call->v->vm;
    uint32_t level = (uint32_t)args->arg[1];
    bool found = false, on = false, pending = false;
    uint64_t mask;

    smccc_return(result, PSCI_E_INVALID_PARAMETERS);
    if (level > AFFINITY_LEVEL_MAX || (args->arg[0] & ~AFFINITY_MASK) != 0) {
        return;
    }
    mask = affinity_mask(level);
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        const struct vcpu *v = vm->vcpus[i];
        uint32_t power;

        if (((v->arch.mpidr ^ args->arg[0]) & mask) != 0) {
            continue;
        }
        power = atomic_load_explicit(&v->power, memory_order_acquire);
        found = true;
        on = on || power >= VCPU_ON;
        pending = pending || power == VCPU_ON_PENDING;
    }
    if (found) {
        smccc_return(result, on        ? PSCI_AFFINITY_ON
                             : pending ? PSCI_AFFINITY_ON_PENDING
                                       : PSCI_AFFINITY_OFF);
    }
}

void psci_migrate_info_type(void *context, const struct smccc_args *args,
                            struct smccc_result *result) {
    (void)context;
    (void)args;
    smccc_return(result, PSCI_MIGRATE_NOT_NEEDED);
}

static void end_vm(struct hypercall *call, enum vm_end reason, struct smccc_result *result) {
    result->count = 0;
    vm_stop(call->v->vm, reason);
    call->verdict = POWER_DOWN;
}

void psci_system_off(void *context, const struct smccc_args *args, struct smccc_result *result) {
    (void)args;
    end_vm(context, VM_END_OFF, result);
}

void psci_system_reset(void *context, const struct smccc_args *args, struct smccc_result *result) {
    (void)args;
    end_vm(context, VM_END_RESET, result);
}

/* A warm reset is the only type there is, and the same as a cold one; the cookie means nothing. */
void psci_system_reset2(void *context, const struct smccc_args *args, struct smccc_result *result) {
    if ((uint32_t)args->arg[0] != PSCI_RESET_TYPE_WARM) {
        smccc_return(result, PSCI_E_INVALID_PARAMETERS);
        return;
    }
    end_vm(context, VM_END_RESET, result);
}
