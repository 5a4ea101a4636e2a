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

/* One call. */
struct smccc_call {
    uint32_t id;
    uint32_t found_by; /* SMCCC_FOUND_BY_* */
    smccc_handler handle;
};

/* All calls, in ascending order of id. SMCCC_VERSION and ARCH_FEATURES are not in it: smccc.c's
 * own. */
struct smccc_table {
    const struct smccc_call *calls;
    size_t count;
};

/* One value as the whole result. */
static inline void smccc_return(struct smccc_result *result, int64_t value) {
    result->count = 1;
    result->x[0] = (uint64_t)value;
}

/*
 * Does the call in regs[0..SMCCC_ARGS] (X0..X6). `context` goes to the handler. NOT_SUPPORTED for
 * all that is unknown. *result is always set.
 */
void smccc_dispatch(const struct smccc_table *table, void *context, const uint64_t *regs,
                    struct smccc_result *result);

/* Whether the call `id` is offered and one of `found_by` finds it. */
bool smccc_offers(const struct smccc_table *table, uint32_t id, uint32_t found_by);

/* Whether the table is in order, without duplicates: for tests and start-up checks. */
bool smccc_table_valid(const struct smccc_table *table);

#endif
