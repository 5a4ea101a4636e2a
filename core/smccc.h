/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The SMC Calling Convention (Arm DEN0028), version 1.1: finds the handler of a call in one table
 * of everything that is offered, and answers for what is not in there. What a call gives to the
 * guest (struct smccc_result) has nothing to do with what becomes of the caller afterwards:
 * handlers tell that through their context.
 *
 * Knows no architecture: registers are numbers in an array. No locks, any context.
 */
#ifndef CORE_SMCCC_H
#define CORE_SMCCC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/smccc.h"

/* Arguments that handlers can see. */
#define SMCCC_ARGS 6u

struct smccc_args {
    uint32_t id;
    uint64_t arg[SMCCC_ARGS]; /* X1..; of a 32-bit call the upper halves are zero */
};

/* What the guest gets: X0..X<count-1>; the other registers keep their values. 0: it never returns.
 */
struct smccc_result {
    unsigned count;
    uint64_t x[4];
};

typedef void (*smccc_handler)(void *context, const struct smccc_args *args,
                              struct smccc_result *result);

/* Which discovery call says that a call is there. */
#define SMCCC_FOUND_BY_ARCH 1u /* SMCCC ARCH_FEATURES */
#define SMCCC_FOUND_BY_PSCI 2u /* PSCI_FEATURES */
#define SMCCC_FOUND_BY_OWN  4u /* the features call of its own interface */

/*
 * What a VM may be offered or not, by bits, as KVM's firmware registers have it: standard services
 * (owner 4), standard hypervisor services (owner 5), those of the vendor (owner 6).
 */
enum smccc_bitmap { SMCCC_STD, SMCCC_STD_HYP, SMCCC_VENDOR_HYP, SMCCC_BITMAPS };

#define SMCCC_STD_HYP_PV_TIME     (1ull << 0)
#define SMCCC_STD_HYP_PV_SCHED    (1ull << 32) /* openEuler's range; KVM knows no bit for it */
#define SMCCC_VENDOR_HYP_FEATURES (1ull << 0)
#define SMCCC_VENDOR_HYP_PV_LOCK  (1ull << 2)
#define SMCCC_VENDOR_HYP_PV_YIELD (1ull << 48) /* PV_YIELD_FEATURE_BIT */

/* One VM's bitmaps. */
struct smccc_features {
    uint64_t possible[SMCCC_BITMAPS]; /* bits that may be set */
    uint64_t offered[SMCCC_BITMAPS];  /* bits that are */
    bool fixed;                       /* its first vCPU has run */
};

/* A bitmap as it is: 0, or -PV_ENOENT for a number that no bitmap has. */
int smccc_features_get(const struct smccc_features *f, unsigned bitmap, uint64_t *value);

/*
 * Offers exactly the bits of `value`: 0; -PV_ENOENT as above; -PV_EINVAL for a bit that can't be
 * offered; -PV_EBUSY once a vCPU of the VM has run.
 */
int smccc_features_set(struct smccc_features *f, unsigned bitmap, uint64_t value);

/* One call. */
struct smccc_call {
    uint32_t id;
    smccc_handler handle;
    uint32_t found_by; /* SMCCC_FOUND_BY_* */
    enum smccc_bitmap
        bitmap; /* with `feature`: the bits one of which must be offered; 0: always there */
    uint64_t feature;
};

/* All calls, in ascending order of id. SMCCC_VERSION and ARCH_FEATURES are not in it: smccc.c's
 * own. */
struct smccc_table {
    const struct smccc_call *calls;
    size_t count;
};

/* Whether this VM has the call. */
static inline bool smccc_call_there(const struct smccc_call *c, const struct smccc_features *f) {
    return c->feature == 0 || (f->offered[c->bitmap] & c->feature) != 0;
}

/* One value as the whole result. */
static inline void smccc_return(struct smccc_result *result, int64_t value) {
    result->count = 1;
    result->x[0] = (uint64_t)value;
}

/* smccc_dispatch() of all but SMCCC_VERSION. */
void smccc_dispatch_other(const struct smccc_table *table, const struct smccc_features *features,
                          void *context, const uint64_t *regs, struct smccc_result *result);

/*
 * Does the call in regs[0..SMCCC_ARGS] (X0..X6). `context` goes to the handler. NOT_SUPPORTED for
 * all that is unknown. *result is always set.
 */
static inline void smccc_dispatch(const struct smccc_table *table,
                                  const struct smccc_features *features, void *context,
                                  const uint64_t *regs, struct smccc_result *result) {
    if ((uint32_t)regs[0] == SMCCC_ID_VERSION) { /* by which guests see what a call costs */
        smccc_return(result, SMCCC_VERSION_1_1);
    } else {
        smccc_dispatch_other(table, features, context, regs, result);
    }
}

/* Whether the call `id` is offered and one of `found_by` finds it. */
bool smccc_offers(const struct smccc_table *table, const struct smccc_features *features,
                  uint32_t id, uint32_t found_by);

/* Whether the table is in order, without duplicates: for tests and start-up checks. */
bool smccc_table_valid(const struct smccc_table *table);

#endif
