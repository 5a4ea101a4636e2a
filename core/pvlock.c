/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/pvlock.h"

#include "abi/smccc.h"
#include "core/pv_error.h"
#include "core/trace.h"

static bool aligned(uint64_t ipa) {
    return ipa % PVLOCK_ALIGN == 0;
}

void pvlock_init(struct pvlock *p, bool flag_blocked) {
    *p = (struct pvlock){.ipa = PVLOCK_IPA_UNSET, .flag_blocked = flag_blocked};
}

int pvlock_attr_has(const struct pvlock_vm *vm, uint32_t group, uint64_t attr) {
    return vm->offers_pv_lock && group == PVLOCK_CTRL && attr == PVLOCK_IPA ? 0 : -PV_ENXIO;
}

int pvlock_attr_set(struct pvlock *p, const struct pvlock_vm *vm, uint32_t group, uint64_t attr,
                    const uint64_t *value) {
    uint64_t ipa;
    void *record;

    if (pvlock_attr_has(vm, group, attr) != 0) {
        return -PV_ENXIO;
    }
    if (value == NULL) {
        return -PV_EFAULT;
    }
    if (vm->fetch == NULL) {
        ipa = *value;
    } else if (!vm->fetch(vm->context, value, &ipa)) {
        return -PV_EFAULT;
    }
    if (!aligned(ipa)) {
        return -PV_EINVAL;
    }
    if (p->ipa != PVLOCK_IPA_UNSET) {
        return -PV_EEXIST;
    }
    record = vm->memory(vm->context, ipa, sizeof(struct pvlock_record));
    if (record == NULL) {
        return -PV_EINVAL;
    }
    p->own = record;
    p->ipa = ipa;
    return 0;
}

int pvlock_attr_get(const struct pvlock *p, const struct pvlock_vm *vm, uint32_t group,
                    uint64_t attr, uint64_t *value) {
    if (pvlock_attr_has(vm, group, attr) != 0) {
        return -PV_ENXIO;
    }
    if (value == NULL) {
        return -PV_EFAULT;
    }
    *value = p->ipa;
    return 0;
}

/* The caller runs: so does its record say. */
static void use(struct pvlock *p, void *record, uint64_t ipa, enum pvlock_dialect dialect) {
    if (p->record == NULL) {
        watch_record(true);
    }
    p->record = record;
    p->used_ipa = ipa;
    p->dialect = (uint8_t)dialect;
    __atomic_store_n(p->record, 0, __ATOMIC_RELEASE);
}

int64_t pvlock_call(struct pvlock *p, const struct pvlock_vm *vm) {
    if (!vm->offers_pv_lock || p->own == NULL) {
        return SMCCC_E_NOT_SUPPORTED;
    }
    for (unsigned i = 0; i < sizeof(struct pvlock_record) / sizeof(uint64_t); i++) {
        __atomic_store_n(p->own + i, 0, __ATOMIC_RELAXED);
    }
    use(p, p->own, p->ipa, PVLOCK_PV_LOCK);
    return (int64_t)p->ipa;
}

int64_t pvsched_init(struct pvlock *p, const struct pvlock_vm *vm, uint64_t ipa) {
    void *record = aligned(ipa) ? vm->ram(vm->context, ipa, sizeof(struct pvsched_record)) : NULL;

    if (record == NULL) {
        return SMCCC_E_NOT_SUPPORTED;
    }
    use(p, record, ipa, PVLOCK_PV_SCHED);
    return SMCCC_E_SUCCESS;
}

int64_t pvsched_release(struct pvlock *p) {
    if (p->dialect == PVLOCK_PV_SCHED) {
        pvlock_end(p);
    }
    return SMCCC_E_SUCCESS;
}

void pvlock_end(struct pvlock *p) {
    if (p->record != NULL) {
        watch_record(false);
    }
    p->record = NULL;
    p->used_ipa = 0;
    p->dialect = PVLOCK_NONE;
}
