/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/pvlock.c core/steal.c core/smccc.c core/trace.c */
/* The records of the preempted flag and of stolen time; what a VM is offered (MISSION.md row 1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "abi/smccc.h"
#include "core/pv_error.h"
#include "core/pvlock.h"
#include "core/smccc.h"
#include "core/port.h"
#include "core/steal.h"
#include "core/trace.h"

#define RAM      0x40000000ull
#define RECORDS  0x090c0000ull
#define SIZE     4096u
#define NOT_SUPP ((int64_t)SMCCC_E_NOT_SUPPORTED)

static _Alignas(64) uint8_t ram[SIZE], records[SIZE];
static bool unreadable;
static unsigned fetches;

static void *in(uint8_t *memory, uint64_t base, uint64_t ipa, uint64_t size) {
    return ipa >= base && ipa - base <= SIZE - size ? memory + (ipa - base) : NULL;
}

static void *find_ram(void *context, uint64_t ipa, uint64_t size) {
    (void)context;
    return in(ram, RAM, ipa, size);
}

static void *find_memory(void *context, uint64_t ipa, uint64_t size) {
    void *there = find_ram(context, ipa, size);

    return there != NULL ? there : in(records, RECORDS, ipa, size);
}

static bool fetch(void *context, const uint64_t *from, uint64_t *value) {
    (void)context;
    fetches++;
    if (unreadable) {
        return false;
    }
    *value = *from;
    return true;
}

static struct pvlock_vm vm = {
    .offers_pv_lock = true, .memory = find_memory, .ram = find_ram, .fetch = fetch};

static int start(void **unused) {
    (void)unused;
    memset(ram, 0xa5, sizeof(ram));
    memset(records, 0xa5, sizeof(records));
    unreadable = false;
    fetches = 0;
    vm.offers_pv_lock = true;
    return 0;
}

/* What core/trace.c asks for; nothing is traced here. */
uint64_t port_clock(void) {
    return 0;
}

unsigned port_this_cpu(void) {
    return 0;
}

static int set(struct pvlock *p, uint64_t ipa) {
    return pvlock_attr_set(p, &vm, PVLOCK_CTRL, PVLOCK_IPA, &ipa);
}

static uint64_t get(const struct pvlock *p) {
    uint64_t ipa = 1;

    assert_int_equal(pvlock_attr_get(p, &vm, PVLOCK_CTRL, PVLOCK_IPA, &ipa), 0);
    return ipa;
}

/* As the scheduler does it. */
static void state(struct pvlock *p, bool runs, bool blocked) {
    if (p->record != NULL) {
        pvlock_state(p, runs, !runs && (!blocked || p->flag_blocked));
    }
}

static void attribute_is_set_once(void **unused) {
    struct pvlock p;

    (void)unused;
    pvlock_init(&p, false);
    assert_int_equal(pvlock_attr_has(&vm, PVLOCK_CTRL, PVLOCK_IPA), 0);
    assert_int_equal(get(&p), UINT64_MAX);
    assert_int_equal(set(&p, RECORDS + 64), 0);
    assert_int_equal(get(&p), RECORDS + 64);
    assert_int_equal(set(&p, RECORDS + 64), -PV_EEXIST);
    assert_int_equal(set(&p, RECORDS + 128), -PV_EEXIST);
    assert_int_equal(get(&p), RECORDS + 64);
    assert_int_equal(records[64], 0xa5); /* nobody asked for it yet */
}

/* Each fault alone, and all that come after it in the order at once (S07). */
static void attribute_errors_in_their_order(void **unused) {
    struct pvlock p, taken;
    uint64_t ipa = 3;

    (void)unused;
    pvlock_init(&p, false);
    pvlock_init(&taken, false);
    assert_int_equal(set(&taken, RECORDS), 0);
    fetches = 0;
    unreadable = true;
    assert_int_equal(pvlock_attr_set(&taken, &vm, PVLOCK_CTRL + 1, PVLOCK_IPA, NULL), -PV_ENXIO);
    assert_int_equal(pvlock_attr_set(&taken, &vm, PVLOCK_CTRL, PVLOCK_IPA + 1, NULL), -PV_ENXIO);
    assert_int_equal(pvlock_attr_set(&taken, &vm, PVLOCK_CTRL, 1ull << 32, NULL), -PV_ENXIO);
    vm.offers_pv_lock = false;
    assert_int_equal(pvlock_attr_set(&taken, &vm, PVLOCK_CTRL, PVLOCK_IPA, NULL), -PV_ENXIO);
    assert_int_equal(pvlock_attr_has(&vm, PVLOCK_CTRL, PVLOCK_IPA), -PV_ENXIO);
    assert_int_equal(pvlock_attr_get(&taken, &vm, PVLOCK_CTRL, PVLOCK_IPA, &ipa), -PV_ENXIO);
    vm.offers_pv_lock = true;
    assert_int_equal(fetches, 0);

    assert_int_equal(pvlock_attr_set(&taken, &vm, PVLOCK_CTRL, PVLOCK_IPA, NULL), -PV_EFAULT);
    assert_int_equal(pvlock_attr_get(&taken, &vm, PVLOCK_CTRL, PVLOCK_IPA, NULL), -PV_EFAULT);
    assert_int_equal(set(&taken, RECORDS + 1), -PV_EFAULT);
    unreadable = false;
    for (unsigned n = 0; n < 6; n++) {
        assert_int_equal(set(&taken, RECORDS + (1u << n)),
                         -PV_EINVAL); /* not aligned, though taken */
    }
    assert_int_equal(set(&taken, 0), -PV_EEXIST); /* outside, though taken */
    assert_int_equal(set(&p, 0), -PV_EINVAL);
    assert_int_equal(set(&p, RECORDS + SIZE), -PV_EINVAL);
    assert_int_equal(set(&p, UINT64_MAX - 63), -PV_EINVAL);
    assert_int_equal(get(&p), UINT64_MAX);
    assert_int_equal(set(&p, RAM), 0);
}

static uint64_t word(const void *at, unsigned bytes) {
    uint64_t v = 0;

    memcpy(&v, at, bytes);
    return v;
}

/* The rest of the block is the guest's, or at least nobody's (P06). */
static void rest_is_untouched(const uint8_t *block, unsigned from) {
    for (unsigned i = from; i < 64; i++) {
        assert_int_equal(block[i], 0xa5);
    }
}

static void pv_lock_record(void **unused) {
    struct pvlock p;

    (void)unused;
    pvlock_init(&p, false);
    assert_int_equal(pvlock_call(&p, &vm), NOT_SUPP); /* no record */
    assert_int_equal(set(&p, RECORDS), 0);
    state(&p, false, false);
    assert_int_equal(records[0], 0xa5); /* not before the guest asked */
    vm.offers_pv_lock = false;
    assert_int_equal(pvlock_call(&p, &vm), NOT_SUPP);
    vm.offers_pv_lock = true;
    assert_int_equal(pvlock_call(&p, &vm), RECORDS);
    assert_int_equal(word(records, 8), 0);
    state(&p, false, false);
    assert_int_equal(word(records, 8), 1);
    state(&p, true, false);
    assert_int_equal(word(records, 8), 0);
    state(&p, false, true);
    assert_int_equal(word(records, 8), 0); /* it waits: the policy's default */
    state(&p, false, false);
    assert_int_equal(word(records, 8), 1);
    state(&p, true, false);
    assert_int_equal(p.flagged, 2);
    assert_int_equal(core_watch, WATCH_RECORD);
    memset(records, 0x77, 4); /* the guest scribbles */
    state(&p, false, false);
    assert_int_equal(word(records, 8), 1);
    pvlock_end(&p);
    state(&p, true, false);
    assert_int_equal(word(records, 8), 1);
    assert_int_equal(core_watch, 0);
    assert_int_equal(get(&p), RECORDS);
    for (unsigned i = 8; i < 64; i++) {
        assert_int_equal(records[i], 0); /* the call zeroed all of it */
    }
    assert_int_equal(records[64], 0xa5);
    assert_int_equal(pvlock_call(&p, &vm), RECORDS); /* as after a reset */
    assert_int_equal(word(records, 8), 0);
    pvlock_end(&p);
}

static void pv_sched_record(void **unused) {
    struct pvlock p;

    (void)unused;
    pvlock_init(&p, true);
    assert_int_equal(pvsched_init(&p, &vm, UINT64_MAX), NOT_SUPP);
    assert_int_equal(pvsched_init(&p, &vm, RAM + 4), NOT_SUPP);
    assert_int_equal(pvsched_init(&p, &vm, RAM + SIZE), NOT_SUPP);
    assert_int_equal(pvsched_init(&p, &vm, RECORDS), NOT_SUPP); /* the guest can't write there */
    assert_null(p.record);
    assert_int_equal(pvsched_init(&p, &vm, RAM), 0);
    assert_int_equal(word(ram, 4), 0);
    state(&p, false, true);
    assert_int_equal(word(ram, 4), 1);                          /* the other policy */
    assert_int_equal(pvsched_init(&p, &vm, RAM + 1), NOT_SUPP); /* changes nothing */
    state(&p, true, false);
    assert_int_equal(word(ram, 4), 0);
    assert_int_equal(pvsched_init(&p, &vm, RAM + 64), 0);
    state(&p, false, false);
    assert_int_equal(word(ram, 4), 0);
    assert_int_equal(word(ram + 64, 4), 1);
    assert_int_equal(pvsched_release(&p), 0);
    state(&p, true, false);
    assert_int_equal(word(ram + 64, 4), 1);
    rest_is_untouched(ram, 4);
    rest_is_untouched(ram + 64, 4);
    assert_int_equal(pvsched_release(&p), 0); /* harmless */
}

/* The last call counts; the other dialect's release does not end it. */
static void one_dialect_at_a_time(void **unused) {
    struct pvlock p;

    (void)unused;
    pvlock_init(&p, false);
    assert_int_equal(set(&p, RECORDS), 0);
    assert_int_equal(pvsched_init(&p, &vm, RAM), 0);
    assert_int_equal(p.dialect, PVLOCK_PV_SCHED);
    assert_int_equal(pvlock_call(&p, &vm), RECORDS);
    assert_int_equal(p.dialect, PVLOCK_PV_LOCK);
    assert_int_equal(p.used_ipa, RECORDS);
    pvsched_release(&p);
    state(&p, false, false);
    assert_int_equal(word(records, 8), 1);
    assert_int_equal(word(ram, 4), 0);
    pvlock_end(&p);
}

/* S03, S10, S15: it never goes back, whatever the guest does, and has no other words. */
static void stolen_time(void **unused) {
    struct pvtime_record slot;
    struct steal s = {.record = NULL};

    (void)unused;
    memset(&slot, 0xa5, sizeof(slot));
    assert_int_equal(steal_call(&s, 1000), NOT_SUPP);
    steal_offer(&s, &slot, RECORDS, 1000000000);
    steal_begin(&s, 1000);
    assert_null(s.record);
    assert_int_equal(slot.revision, 0xa5a5a5a5u); /* not asked for yet */
    assert_int_equal(steal_call(&s, 3000), RECORDS);
    assert_int_equal(slot.revision, 0);
    assert_int_equal(slot.attributes, 0);
    assert_int_equal(slot.stolen_ns, 2000);
    steal_update(&s, 1000 + (1ull << 32));
    assert_int_equal(slot.stolen_ns, 1ull << 32);
    assert_int_equal(steal_call(&s, 1001 + (1ull << 32)), RECORDS); /* CPU_OFF, CPU_ON */
    assert_int_equal(slot.stolen_ns, 1 + (1ull << 32));
    assert_int_equal(core_watch, WATCH_RECORD);
    steal_end(&s);
    assert_int_equal(core_watch, 0);
    assert_null(s.record); /* the next life asks anew */
    steal_end(&s);
    assert_int_equal(core_watch, 0);
}

/* Any clock, a year on: exact, rounded down. */
static void stolen_time_of_other_clocks(void **unused) {
    struct pvtime_record slot;
    struct steal s;

    (void)unused;
    steal_offer(&s, &slot, RECORDS, 24000000);
    steal_begin(&s, 1000);
    assert_int_equal(steal_call(&s, 1000 + 3), RECORDS);
    assert_int_equal(slot.stolen_ns, 125);
    steal_update(&s, 1000 + 24000000ull * 86400 * 365);
    assert_int_equal(slot.stolen_ns, 1000000000ull * 86400 * 365);
    steal_end(&s);
}

static void yes(void *context, const struct smccc_args *args, struct smccc_result *result) {
    (void)context;
    (void)args;
    smccc_return(result, 0);
}

static int64_t ask(const struct smccc_table *t, const struct smccc_features *f, uint64_t id,
                   uint64_t argument) {
    uint64_t regs[SMCCC_ARGS + 1] = {id, argument};
    struct smccc_result result;

    smccc_dispatch(t, f, NULL, regs, &result);
    return (int64_t)result.x[0];
}

/* P08, S09: what is not offered is not found and not answered, and nothing else is touched by that.
 */
static void calls_follow_the_features(void **unused) {
    static const struct smccc_call calls[] = {
        {0x80000010, yes, SMCCC_FOUND_BY_ARCH, SMCCC_STD, 0},
        {0xc5000020, yes, SMCCC_FOUND_BY_ARCH, SMCCC_STD_HYP, SMCCC_STD_HYP_PV_TIME},
        {0xc6000002, yes, 0, SMCCC_VENDOR_HYP, SMCCC_VENDOR_HYP_PV_LOCK},
    };
    const struct smccc_table t = {calls, 3};
    struct smccc_features f = {.possible = {0, SMCCC_STD_HYP_PV_TIME,
                                            SMCCC_VENDOR_HYP_FEATURES | SMCCC_VENDOR_HYP_PV_LOCK}};

    (void)unused;
    for (unsigned n = 0; n < 4; n++) {
        bool time = (n & 1) != 0, lock = (n & 2) != 0;

        assert_int_equal(smccc_features_set(&f, SMCCC_STD_HYP, time ? SMCCC_STD_HYP_PV_TIME : 0),
                         0);
        assert_int_equal(
            smccc_features_set(&f, SMCCC_VENDOR_HYP, lock ? SMCCC_VENDOR_HYP_PV_LOCK : 0), 0);
        assert_int_equal(ask(&t, &f, 0x80000010, 0), 0);
        assert_int_equal(ask(&t, &f, SMCCC_ID_ARCH_FEATURES, 0x80000010), 0);
        assert_int_equal(ask(&t, &f, 0xc5000020, 0), time ? 0 : NOT_SUPP);
        assert_int_equal(ask(&t, &f, SMCCC_ID_ARCH_FEATURES, 0xc5000020), time ? 0 : NOT_SUPP);
        assert_int_equal(ask(&t, &f, 0xc6000002, 0), lock ? 0 : NOT_SUPP);
        assert_int_equal(ask(&t, &f, SMCCC_ID_ARCH_FEATURES, 0xc6000002), NOT_SUPP);
        assert_int_equal(ask(&t, &f, 0x85000020, 0), NOT_SUPP); /* the 32-bit twin */
    }
}

static void features_are_fixed_once_it_ran(void **unused) {
    struct smccc_features f = {.possible = {0, SMCCC_STD_HYP_PV_TIME, SMCCC_VENDOR_HYP_PV_LOCK}};
    uint64_t value = 9;

    (void)unused;
    assert_int_equal(smccc_features_get(&f, SMCCC_BITMAPS, &value), -PV_ENOENT);
    assert_int_equal(smccc_features_set(&f, SMCCC_BITMAPS, 0), -PV_ENOENT);
    assert_int_equal(smccc_features_set(&f, SMCCC_STD, 1), -PV_EINVAL);
    assert_int_equal(smccc_features_set(&f, SMCCC_VENDOR_HYP, 5), -PV_EINVAL);
    assert_int_equal(smccc_features_set(&f, SMCCC_VENDOR_HYP, 4), 0);
    f.fixed = true;
    assert_int_equal(smccc_features_get(&f, SMCCC_VENDOR_HYP, &value), 0);
    assert_int_equal(value, 4);
    assert_int_equal(smccc_features_set(&f, SMCCC_VENDOR_HYP, 0), -PV_EBUSY);
    assert_int_equal(smccc_features_set(&f, SMCCC_STD_HYP, 1), -PV_EBUSY);
    assert_int_equal(smccc_features_set(&f, SMCCC_VENDOR_HYP, 8), -PV_EINVAL);
    assert_int_equal(smccc_features_set(&f, SMCCC_VENDOR_HYP, 4), -PV_EBUSY); /* as it is */
    assert_int_equal(smccc_features_get(&f, SMCCC_STD_HYP, &value), 0);
    assert_int_equal(value, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(attribute_is_set_once, start),
        cmocka_unit_test_setup(attribute_errors_in_their_order, start),
        cmocka_unit_test_setup(pv_lock_record, start),
        cmocka_unit_test_setup(pv_sched_record, start),
        cmocka_unit_test_setup(one_dialect_at_a_time, start),
        cmocka_unit_test_setup(stolen_time, start),
        cmocka_unit_test_setup(stolen_time_of_other_clocks, start),
        cmocka_unit_test_setup(calls_follow_the_features, start),
        cmocka_unit_test_setup(features_are_fixed_once_it_ran, start),
    };

    return cmocka_run_group_tests_name("pvlock", tests, NULL, NULL);
}
