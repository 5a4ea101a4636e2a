/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/paravirt.h"

#include "abi/pvlock.h"
#include "abi/pvspin.h"
#include "abi/pvtime.h"
#include "abi/smccc.h"
#include "arch/arm64/guest_map.h"
#include "arch/arm64/hypercall.h"
#include "arch/arm64/stage2.h"
#include "hyp/arch.h"
#include "hyp/mem.h"
#include "hyp/spin.h"
#include "hyp/vm.h"

_Static_assert(VM_MAX_VCPUS * sizeof(struct pvtime_record) <= GUEST_STEAL_SIZE,
               "a record for each");
_Static_assert(VM_MAX_VCPUS * sizeof(struct pvlock_record) <= GUEST_PVLOCK_SIZE,
               "a record for each");

/* ---- The VM's memory ---- */

static void *find_ram(void *context, uint64_t ipa, uint64_t size) {
    return vm_ram(context, (ipa_t){ipa}, size);
}

static void *find_memory(void *context, uint64_t ipa, uint64_t size) {
    struct vm *vm = context;
    uint64_t room = vm->config->vcpus * sizeof(struct pvlock_record);

    if (vm->arch.pvlock_records != NULL && ipa >= GUEST_PVLOCK && ipa - GUEST_PVLOCK < room &&
        size <= room - (ipa - GUEST_PVLOCK)) {
        return vm->arch.pvlock_records + (ipa - GUEST_PVLOCK);
    }
    return find_ram(context, ipa, size);
}

static struct pvlock_vm pvlock_vm(struct vm *vm) {
    return (struct pvlock_vm){
        .offers_pv_lock = (vm->features.offered[SMCCC_VENDOR_HYP] & SMCCC_VENDOR_HYP_PV_LOCK) != 0,
        .context = vm,
        .memory = find_memory,
        .ram = find_ram,
    };
}

/* ---- Setting up ---- */

/* Pages with a record for each vCPU, at `ipa`. */
static uint8_t *records(struct vm *vm, uint64_t ipa, uint64_t record) {
    uint64_t size = (vm->config->vcpus * record + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    uint8_t *memory = mem_alloc(size);

    stage2_map_records(vm, (ipa_t){ipa}, (phys_t){(uint64_t)memory}, size);
    return memory;
}

/* What a key says; if it is not given: with our own identity only. */
static bool said_or_own(const struct vm_config *c, const char *key, bool said) {
    return config_vm_key_line(c, key) != 0 ? said : c->identity == IDENTITY_PARAVANE;
}

static void set_features(struct vm *vm) {
    const struct vm_config *c = vm->config;
    bool pvlock = said_or_own(c, "pvlock", c->pvlock);
    bool pvyield = said_or_own(c, "pvyield", c->pvyield);
    struct smccc_features *f = &vm->features;

    f->possible[SMCCC_STD_HYP] = SMCCC_STD_HYP_PV_TIME | SMCCC_STD_HYP_PV_SCHED;
    f->possible[SMCCC_VENDOR_HYP] =
        SMCCC_VENDOR_HYP_FEATURES | SMCCC_VENDOR_HYP_PV_LOCK | SMCCC_VENDOR_HYP_PV_YIELD;
    smccc_features_set(f, SMCCC_STD_HYP,
                       (c->pvtime ? SMCCC_STD_HYP_PV_TIME : 0) |
                           (c->pvsched ? SMCCC_STD_HYP_PV_SCHED : 0));
    smccc_features_set(f, SMCCC_VENDOR_HYP,
                       SMCCC_VENDOR_HYP_FEATURES | (pvlock ? SMCCC_VENDOR_HYP_PV_LOCK : 0) |
                           (pvyield ? SMCCC_VENDOR_HYP_PV_YIELD : 0));
}

void arch_vm_offer(struct vm *vm) {
    uint8_t *time = NULL;

    set_features(vm);
    if (vm->config->pvtime) {
        time = records(vm, GUEST_STEAL, sizeof(struct pvtime_record));
    }
    struct pvlock_vm of = pvlock_vm(vm);
    if (of.offers_pv_lock) {
        vm->arch.pvlock_records = records(vm, GUEST_PVLOCK, sizeof(struct pvlock_record));
    }
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        struct vcpu *v = vm->vcpus[i];
        uint64_t ipa = GUEST_PVLOCK + i * sizeof(struct pvlock_record);

        pvlock_init(&v->sched.pvlock, vm->config->flag_blocked);
        if (of.offers_pv_lock) {
            (void)pvlock_attr_set(&v->sched.pvlock, &of, PVLOCK_CTRL, PVLOCK_IPA, &ipa);
        }
        if (time != NULL) {
            steal_offer(&v->sched.steal, (struct pvtime_record *)time + i,
                        GUEST_STEAL + i * sizeof(struct pvtime_record), arch_clock_hz());
        }
    }
}

/* ---- Calls ---- */

static struct vcpu *caller(void *context) {
    return ((struct hypercall *)context)->v;
}

void pv_vendor_uid(void *context, const struct smccc_args *args, struct smccc_result *result) {
    static const uint32_t uid[2][4] = {
        [IDENTITY_PARAVANE] = {PARAVANE_UID_0, PARAVANE_UID_1, PARAVANE_UID_2, PARAVANE_UID_3},
        [IDENTITY_KVM] = {KVM_UID_0, KVM_UID_1, KVM_UID_2, KVM_UID_3},
    };

    (void)args;
    result->count = 4;
    for (unsigned i = 0; i < 4; i++) {
        result->x[i] = uid[caller(context)->vm->config->identity][i];
    }
}

void pv_vendor_features(void *context, const struct smccc_args *args, struct smccc_result *result) {
    uint64_t offered = caller(context)->vm->features.offered[SMCCC_VENDOR_HYP];

    (void)args;
    *result = (struct smccc_result){4, {(uint32_t)offered, offered >> 32, 0, 0}};
}

/* A features call of its own: whether it knows `id`, and whether that is there. */
static void answer(void *context, uint32_t first, uint32_t last, uint64_t id,
                   struct smccc_result *result) {
    const struct smccc_features *f = &caller(context)->vm->features;
    bool there = id >= first && id <= last &&
                 smccc_offers(&hypercall_table, f, (uint32_t)id, SMCCC_FOUND_BY_OWN);

    smccc_return(result, there ? SMCCC_E_SUCCESS : SMCCC_E_NOT_SUPPORTED);
}

void pv_time_features(void *context, const struct smccc_args *args, struct smccc_result *result) {
    answer(context, PVTIME_ID_FEATURES, PVTIME_ID_ST, args->arg[0], result);
}

void pv_time_st(void *context, const struct smccc_args *args, struct smccc_result *result) {
    struct vcpu *v = caller(context);

    (void)args;
    smccc_return(result, steal_call(&v->sched.steal, sched_waited(&v->sched)));
}

void pv_sched_features(void *context, const struct smccc_args *args, struct smccc_result *result) {
    answer(context, PVSCHED_ID_FEATURES, PVSCHED_ID_KICK, args->arg[0], result);
}

void pv_sched_init(void *context, const struct smccc_args *args, struct smccc_result *result) {
    struct vcpu *v = caller(context);
    struct pvlock_vm of = pvlock_vm(v->vm);

    smccc_return(result, pvsched_init(&v->sched.pvlock, &of, args->arg[0]));
}

void pv_sched_release(void *context, const struct smccc_args *args, struct smccc_result *result) {
    (void)args;
    smccc_return(result, pvsched_release(&caller(context)->sched.pvlock));
}

void pv_sched_kick(void *context, const struct smccc_args *args, struct smccc_result *result) {
    const struct vm *vm = caller(context)->vm;
    uint64_t target = args->arg[0];

    if (target >= vm->config->vcpus) {
        smccc_return(result, SMCCC_E_NOT_SUPPORTED);
        return;
    }
    sched_kick(&vm->vcpus[target]->sched);
    smccc_return(result, SMCCC_E_SUCCESS);
}

void pv_lock(void *context, const struct smccc_args *args, struct smccc_result *result) {
    struct vcpu *v = caller(context);
    struct pvlock_vm of = pvlock_vm(v->vm);

    (void)args;
    smccc_return(result, pvlock_call(&v->sched.pvlock, &of));
}

void pv_yield_to(void *context, const struct smccc_args *args, struct smccc_result *result) {
    struct hypercall *call = context;
    struct vcpu *v = call->v;
    uint64_t target = args->arg[0];

    if (target >= v->vm->config->vcpus || target == v->index) {
        smccc_return(result, SMCCC_E_INVALID_PARAMETER);
        return;
    }
    call->verdict = vcpu_yield_to(this_pcpu(), v, v->vm->vcpus[target]);
    smccc_return(result, call->verdict == YIELD ? SMCCC_E_SUCCESS : PV_YIELD_NOT_WAITING);
}
