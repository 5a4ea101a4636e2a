/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/smccc.h"

#include "abi/smccc.h"
#include "core/pv_error.h"

static const struct smccc_call *find(const struct smccc_table *table, uint32_t id) {
    size_t low = 0, high = table->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct smccc_call *call = &table->calls[middle];

        if (call->id == id) {
            return call;
        }
        if (call->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

int smccc_features_get(const struct smccc_features *f, unsigned bitmap, uint64_t *value) {
    if (bitmap >= SMCCC_BITMAPS) {
        return -PV_ENOENT;
    }
    *value = f->offered[bitmap];
    return 0;
}

int smccc_features_set(struct smccc_features *f, unsigned bitmap, uint64_t value) {
    if (bitmap >= SMCCC_BITMAPS) {
        return -PV_ENOENT;
    }
    if ((value & ~f->possible[bitmap]) != 0) {
        return -PV_EINVAL;
    }
    if (f->fixed) {
        return -PV_EBUSY;
    }
    f->offered[bitmap] = value;
    return 0;
}

bool smccc_offers(const struct smccc_table *table, const struct smccc_features *features,
                  uint32_t id, uint32_t found_by) {
    const struct smccc_call *call = find(table, id);

    if (id == SMCCC_ID_VERSION) {
        return true; /* both find it: PSCI_FEATURES(SMCCC_VERSION) announces SMCCC 1.1 */
    }
    if (id == SMCCC_ID_ARCH_FEATURES) {
        return (found_by & SMCCC_FOUND_BY_ARCH) != 0;
    }
    return call != NULL && (call->found_by & found_by) != 0 && smccc_call_there(call, features);
}

static void arch_features(const struct smccc_table *table, const struct smccc_features *features,
                          const uint64_t *regs, struct smccc_result *result) {
    bool there = smccc_offers(table, features, (uint32_t)regs[1], SMCCC_FOUND_BY_ARCH);

    smccc_return(result, there ? SMCCC_E_SUCCESS : SMCCC_E_NOT_SUPPORTED);
}

void smccc_dispatch_other(const struct smccc_table *table, const struct smccc_features *features,
                          void *context, const uint64_t *regs, struct smccc_result *result) {
    struct smccc_args args = {.id = (uint32_t)regs[0]};
    uint64_t mask = (args.id & SMCCC_ID_64) != 0 ? UINT64_MAX : UINT32_MAX;
    const struct smccc_call *call;

    if (args.id == SMCCC_ID_ARCH_FEATURES) {
        arch_features(table, features, regs, result);
        return;
    }
    smccc_return(result, SMCCC_E_NOT_SUPPORTED);
    call = find(table, args.id);
    if (call == NULL || !smccc_call_there(call, features)) {
        return;
    }
    for (unsigned i = 0; i < SMCCC_ARGS; i++) {
        args.arg[i] = regs[i + 1] & mask;
    }
    call->handle(context, &args, result);
}

bool smccc_table_valid(const struct smccc_table *table) {
    for (size_t i = 0; i < table->count; i++) {
        uint32_t id = table->calls[i].id;

        if (id == SMCCC_ID_VERSION || id == SMCCC_ID_ARCH_FEATURES ||
            (i > 0 && table->calls[i - 1].id >= id)) {
            return false;
        }
    }
    return true;
}
