/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/steal.h"

#include "abi/smccc.h"
#include "core/trace.h"

void steal_offer(struct steal *s, struct pvtime_record *own, uint64_t ipa, uint64_t hz) {
    *s = (struct steal){.own = own, .ipa = ipa, .hz = hz};
}

int64_t steal_call(struct steal *s, uint64_t waited) {
    if (s->own == NULL) {
        return SMCCC_E_NOT_SUPPORTED;
    }
    if (s->record == NULL) {
        watch_record(true);
    }
    s->own->revision = 0;
    s->own->attributes = 0;
    s->record = s->own;
    steal_update(s, waited);
    return (int64_t)s->ipa;
}

void steal_end(struct steal *s) {
    if (s->record != NULL) {
        watch_record(false);
    }
    s->record = NULL;
}

void steal_begin(struct steal *s, uint64_t waited) {
    s->waited_before = waited;
}
