/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: arm64 */
/* link: arch/arm64/hypercall.c arch/arm64/psci.c core/smccc.c */
/* Calls of a guest: PSCI and the calling convention, from registers to registers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "abi/psci.h"
#include "abi/smccc.h"
#include "arch/arm64/hypercall.h"
#include "arch/arm64/paravirt.h"
#include "hyp/vcpu.h"
#include "hyp/vm.h"

#define VCPUS      33u
#define RAM_BASE   0x40000000ull
#define RAM_SIZE   0x10000000ull
#define ENTRY      0x40080000ull
#define ESR_HVC    (0x16ull << 26 | 1u << 25)
#define ESR_SMC    (0x17ull << 26 | 1u << 25)
#define MPIDR_RES1 0x80000000ull
#define KEPT       0x1111111111111111ull /* register n holds n times that before a call */

static struct vcpu vcpus[VCPUS];
static struct vcpu *vcpu_table[VCPUS];
static struct vm_config config;
static struct vm guest;
static struct vcpu *const caller = &vcpus[0];
static enum verdict verdict; /* of the last call */
static int ons, offs, stops;
static struct vcpu *on_target;
static uint64_t on_pc, on_arg;
static enum vm_end stop_reason;
static int on_result;

/* The records' calls have tests of their own (test_pvlock, guest tests). */
static void not_there(struct smccc_result *result) {
    smccc_return(result, SMCCC_E_NOT_SUPPORTED);
}

#define PV_CALL(name)                                                                              \
    void name(void *context, const struct smccc_args *args, struct smccc_result *result) {         \
        (void)context;                                                                             \
        (void)args;                                                                                \
        not_there(result);                                                                         \
    }
PV_CALL(pv_vendor_features)
PV_CALL(pv_time_features)
PV_CALL(pv_time_st)
PV_CALL(pv_sched_features)
PV_CALL(pv_sched_init)
PV_CALL(pv_sched_release)
PV_CALL(pv_sched_kick)
PV_CALL(pv_lock)
PV_CALL(pv_yield_to)

void pv_vendor_uid(void *context, const struct smccc_args *args, struct smccc_result *result) {
    (void)context;
    (void)args;
    *result =
        (struct smccc_result){4, {PARAVANE_UID_0, PARAVANE_UID_1, PARAVANE_UID_2, PARAVANE_UID_3}};
}

int vm_vcpu_on(struct vcpu *target, uint64_t pc, uint64_t arg) {
    ons++;
    on_target = target;
    on_pc = pc;
    on_arg = arg;
    return on_result;
}

void vm_vcpu_off(struct vcpu *v) {
    assert_ptr_equal(v, caller);
    offs++;
}

void vm_stop(struct vm *vm, enum vm_end reason) {
    assert_ptr_equal(vm, &guest);
    stops++;
    stop_reason = reason;
}

void *vm_ram(const struct vm *vm, ipa_t ipa, uint64_t size) {
    static char memory;

    assert_ptr_equal(vm, &guest);
    if (ipa.v < RAM_BASE || ipa.v - RAM_BASE > RAM_SIZE - size) {
        return NULL;
    }
    return &memory;
}

/* 16 vCPUs in an Aff0, as everywhere. */
static uint64_t mpidr(unsigned index) {
    return (uint64_t)(index / 16) << 8 | index % 16;
}

static int fresh(void **state) {
    (void)state;
    memset(vcpus, 0, sizeof(vcpus));
    memset(&guest, 0, sizeof(guest));
    config.vcpus = VCPUS;
    guest.config = &config;
    guest.vcpus = vcpu_table;
    for (unsigned i = 0; i < VCPUS; i++) {
        vcpu_table[i] = &vcpus[i];
        vcpus[i].vm = &guest;
        vcpus[i].index = i;
        vcpus[i].arch.mpidr = MPIDR_RES1 | mpidr(i);
    }
    caller->power = VCPU_ON;
    ons = offs = stops = 0;
    on_result = 0;
    on_target = NULL;
    return 0;
}

static void call_by(uint64_t esr, uint64_t id, uint64_t a, uint64_t b, uint64_t c) {
    for (unsigned i = 0; i < 31; i++) {
        caller->arch.x[i] = i * KEPT;
    }
    caller->arch.x[0] = id;
    caller->arch.x[1] = a;
    caller->arch.x[2] = b;
    caller->arch.x[3] = c;
    caller->arch.pc = ENTRY;
    caller->arch.esr = esr;
    verdict = hypercall(caller);
    /* X4.. are kept by every call, and PSCI gives nothing in X1..X3. */
    assert_int_equal(caller->arch.x[1], a);
    assert_int_equal(caller->arch.x[2], b);
    assert_int_equal(caller->arch.x[3], c);
    for (unsigned i = 4; i < 31; i++) {
        assert_int_equal(caller->arch.x[i], i * KEPT);
    }
    assert_int_equal(caller->arch.pc, ENTRY);
}

/* The result of a call after which the guest goes on. */
static int64_t call(uint64_t id, uint64_t a, uint64_t b, uint64_t c) {
    call_by(ESR_HVC, id, a, b, c);
    assert_int_equal(verdict, RESUME);
    return (int64_t)caller->arch.x[0];
}

static void test_table_is_in_order(void **state) {
    (void)state;
    assert_true(smccc_table_valid(&hypercall_table));
}

/* C08: what Linux asks to find out which convention it may use. */
static void test_C08_convention_is_discovered(void **state) {
    (void)state;
    assert_int_equal(call(PSCI_ID_VERSION, 0, 0, 0), 0x10001);
    assert_int_equal(call(PSCI_ID_FEATURES, SMCCC_ID_VERSION, 0, 0), 0);
    assert_int_equal(call(SMCCC_ID_VERSION, 0, 0, 0), 0x10001);
    assert_int_equal(call(SMCCC_ID_ARCH_FEATURES, SMCCC_ID_VERSION, 0, 0), 0);
    assert_int_equal(call(SMCCC_ID_ARCH_FEATURES, SMCCC_ID_ARCH_FEATURES, 0, 0), 0);
}

/* Only what a discovery call is for: workarounds and SoC id are not there, PSCI has its own. */
static void test_C08_arch_features_of_others(void **state) {
    static const uint32_t ids[] = {0x80000002,      0x80008000,        0x80007fff, 0x80003fff,
                                   PSCI_ID_VERSION, PSCI_ID_CPU_ON_64, 0xc5000020, 0x8600ff01};

    (void)state;
    for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        assert_int_equal(call(SMCCC_ID_ARCH_FEATURES, ids[i], 0, 0), -1);
    }
    assert_int_equal(call(PSCI_ID_FEATURES, SMCCC_ID_ARCH_FEATURES, 0, 0), -1);
}

static bool is_offered(uint32_t id) {
    static const uint32_t ids[] = {
        PSCI_ID_VERSION,       PSCI_ID_CPU_SUSPEND,      PSCI_ID_CPU_SUSPEND_64,
        PSCI_ID_CPU_OFF,       PSCI_ID_CPU_ON,           PSCI_ID_CPU_ON_64,
        PSCI_ID_AFFINITY_INFO, PSCI_ID_AFFINITY_INFO_64, PSCI_ID_MIGRATE_INFO_TYPE,
        PSCI_ID_SYSTEM_OFF,    PSCI_ID_SYSTEM_RESET,     PSCI_ID_FEATURES,
        PSCI_ID_SYSTEM_RESET2, PSCI_ID_SYSTEM_RESET2_64,
    };

    for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

static void test_C13_features_of_every_psci_number(void **state) {
    (void)state;
    for (uint32_t n = 0; n < 0x40; n++) {
        uint32_t id32 = 0x84000000 + n, id64 = 0xc4000000 + n;

        assert_int_equal(call(PSCI_ID_FEATURES, id32, 0, 0), is_offered(id32) ? 0 : -1);
        assert_int_equal(call(PSCI_ID_FEATURES, id64, 0, 0), is_offered(id64) ? 0 : -1);
        if (!is_offered(id32)) {
            assert_int_equal(call(id32, 0, 0, 0), -1);
        }
        if (!is_offered(id64)) {
            assert_int_equal(call(id64, 0, 0, 0), -1);
        }
    }
}

static uint32_t random32(void) {
    static uint64_t s = 0x9e3779b97f4a7c15;

    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (uint32_t)(s >> 16);
}

/* C09: unknown numbers, by HVC and SMC; with an immediate even the known ones are unknown. */
static void test_C09_unknown_calls(void **state) {
    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        uint32_t id = random32();
        uint16_t imm = (i & 1u) != 0 ? (uint16_t)random32() : 0;
        uint64_t esr = ((i & 2u) != 0 ? ESR_HVC : ESR_SMC) | imm;

        if (imm == 0 && (is_offered(id) || id == SMCCC_ID_VERSION)) {
            continue;
        }
        call_by(esr, (uint64_t)random32() << 32 | id, random32(), random32(), random32());
        assert_int_equal(verdict, RESUME);
        if (imm != 0 || id != SMCCC_ID_ARCH_FEATURES) {
            assert_int_equal(caller->arch.x[0], UINT64_MAX);
        }
    }
    assert_int_equal(ons + offs + stops, 0);
}

static void test_C09_immediate_must_be_zero(void **state) {
    (void)state;
    call_by(ESR_HVC | 1, SMCCC_ID_VERSION, 0, 0, 0);
    assert_int_equal(caller->arch.x[0], UINT64_MAX);
    call_by(ESR_SMC | 0x8000, PSCI_ID_SYSTEM_OFF, 0, 0, 0);
    assert_int_equal(caller->arch.x[0], UINT64_MAX);
    assert_int_equal(verdict, RESUME);
    assert_int_equal(stops, 0);
}

/* The number is in W0: what stands above it does not matter. Yielding calls there are none. */
static void test_C09_upper_half_of_the_number(void **state) {
    (void)state;
    assert_int_equal(call(0xdeadbeef00000000 | SMCCC_ID_VERSION, 0, 0, 0), 0x10001);
    assert_int_equal(call(0xffffffff00000000 | PSCI_ID_VERSION, 0, 0, 0), 0x10001);
    assert_int_equal(call(PSCI_ID_VERSION & ~(uint32_t)SMCCC_ID_FAST, 0, 0, 0), -1);
}

/* C10: the other conduit means the same. */
static void test_C10_smc_is_hvc(void **state) {
    (void)state;
    call_by(ESR_SMC, PSCI_ID_VERSION, 0, 0, 0);
    assert_int_equal(caller->arch.x[0], 0x10001);
    call_by(ESR_SMC, PSCI_ID_CPU_ON_64, mpidr(1), ENTRY, 5);
    assert_int_equal(caller->arch.x[0], 0);
    assert_int_equal(ons, 1);
}

static void test_C13_cpu_on(void **state) {
    (void)state;
    assert_int_equal(call(PSCI_ID_CPU_ON_64, mpidr(17), ENTRY, 0xfedcba9876543210), 0);
    assert_ptr_equal(on_target, &vcpus[17]);
    assert_int_equal(on_pc, ENTRY);
    assert_int_equal(on_arg, 0xfedcba9876543210);
    on_result = PSCI_E_ALREADY_ON;
    assert_int_equal(call(PSCI_ID_CPU_ON_64, mpidr(17), ENTRY, 0), -4);
    on_result = PSCI_E_ON_PENDING;
    assert_int_equal(call(PSCI_ID_CPU_ON_64, mpidr(17), ENTRY, 0), -5);
}

/* Whose state decides is the target's: the decision is vm_vcpu_on's, with the target. */
static void test_C01_cpu_on_of_each_other(void **state) {
    (void)state;
    for (unsigned i = 1; i < VCPUS; i++) {
        assert_int_equal(call(PSCI_ID_CPU_ON_64, mpidr(i), ENTRY + 4 * i, i), 0);
        assert_ptr_equal(on_target, &vcpus[i]);
        assert_int_equal(on_pc, ENTRY + 4 * i);
        assert_int_equal(on_arg, i);
    }
    assert_int_equal(caller->power, VCPU_ON);
}

static void test_C13_cpu_on_of_unknown_targets(void **state) {
    static const uint64_t targets[] = {
        0x2001,        0x0201,
        0x0010,        0x10000,
        0x100000000,   0x80000000,
        0x40000000,    0x1000000,
        0x10000000000, UINT64_MAX,
        0xffff,        0x80000001,
        0xff00ffffff,  0x8000000000000001,
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        assert_int_equal(call(PSCI_ID_CPU_ON_64, targets[i], ENTRY, 0), -2);
    }
    assert_int_equal(ons, 0);
}

static void test_C13_cpu_on_with_bad_entry(void **state) {
    static const uint64_t entries[] = {
        0,         RAM_BASE - 4, RAM_BASE + RAM_SIZE, 0x09000000,
        ENTRY + 1, ENTRY + 2,    UINT64_MAX - 3,      0x8000000000000000 | ENTRY,
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        assert_int_equal(call(PSCI_ID_CPU_ON_64, mpidr(1), entries[i], 0), -9);
    }
    assert_int_equal(ons, 0);
    assert_int_equal(call(PSCI_ID_CPU_ON_64, mpidr(1), RAM_BASE + RAM_SIZE - 4, 0), 0);
}

static void test_C13_32_bit_number_cuts_arguments(void **state) {
    uint64_t junk = 0xa5a5a5a500000000;

    (void)state;
    assert_int_equal(call(PSCI_ID_CPU_ON, junk | mpidr(2), junk | ENTRY, junk | 0x89abcdef), 0);
    assert_ptr_equal(on_target, &vcpus[2]);
    assert_int_equal(on_pc, ENTRY);
    assert_int_equal(on_arg, 0x89abcdef);
    assert_int_equal(call(PSCI_ID_CPU_ON_64, junk | mpidr(2), ENTRY, 0), -2);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO, junk | mpidr(2), junk, 0), 1);
    assert_int_equal(call(PSCI_ID_FEATURES, junk | PSCI_ID_CPU_ON, 0, 0), 0);
}

static void test_C06_affinity_info_of_one(void **state) {
    (void)state;
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, mpidr(0), 0, 0), 0);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, mpidr(1), 0, 0), 1);
    vcpus[1].power = VCPU_ON_PENDING;
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, mpidr(1), 0, 0), 2);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO, mpidr(1), 0, 0), 2);
    vcpus[1].power = VCPU_ON;
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, mpidr(1), 0, 0), 0);
}

/* Any one that is on makes its cluster on; the fields below the level do not count. */
static void test_C13_affinity_info_of_levels(void **state) {
    (void)state;
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x00, 1, 0), 0);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x100, 1, 0), 1);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x1ff, 1, 0), 1);
    vcpus[20].power = VCPU_ON_PENDING;
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x100, 1, 0), 2);
    vcpus[31].power = VCPU_ON;
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x100, 1, 0), 0);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x200, 1, 0), 1);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x300, 1, 0), -2); /* nobody there */
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0xffff, 2, 0), 0);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0xffffff, 3, 0), 0);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x10000, 2, 0), -2);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x100000000, 3, 0), -2);
    caller->power = VCPU_OFF;
    vcpus[31].power = VCPU_OFF;
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0, 3, 0), 2);
}

static void test_C13_affinity_info_of_nonsense(void **state) {
    (void)state;
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0, 4, 0), -2);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0, 0xffffffff, 0), -2);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x80000000, 0, 0), -2);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x01000000, 0, 0), -2);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0x10000000000, 3, 0), -2);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, 0xffff, 0, 0), -2);
}

/* C12: a suspend is a WFI; the answer stands in the register already when the vCPU wakes. */
static void test_C12_cpu_suspend_waits(void **state) {
    (void)state;
    call_by(ESR_HVC, PSCI_ID_CPU_SUSPEND_64, 0x00010000, ENTRY, 7); /* power-down */
    assert_int_equal(verdict, BLOCK);
    assert_int_equal(caller->arch.x[0], 0);
    call_by(ESR_SMC, PSCI_ID_CPU_SUSPEND, 0x0300abcd, 0, 0); /* standby, all levels */
    assert_int_equal(verdict, BLOCK);
    assert_int_equal(caller->arch.x[0], 0);
    assert_int_equal(caller->power, VCPU_ON);
    assert_int_equal(call(PSCI_ID_AFFINITY_INFO_64, mpidr(0), 0, 0), 0);
}

static void test_C13_cpu_suspend_reserved_bits(void **state) {
    (void)state;
    for (unsigned bit = 0; bit < 32; bit++) {
        call_by(ESR_HVC, PSCI_ID_CPU_SUSPEND_64, 1ull << bit, ENTRY, 0);
        if (bit <= 16 || bit == 24 || bit == 25) {
            assert_int_equal(verdict, BLOCK);
        } else {
            assert_int_equal(verdict, RESUME);
            assert_int_equal(caller->arch.x[0], (uint64_t)-2);
        }
    }
}

static void test_C13_cpu_off_does_not_return(void **state) {
    (void)state;
    call_by(ESR_HVC, PSCI_ID_CPU_OFF, 0, 0, 0);
    assert_int_equal(verdict, POWER_DOWN);
    assert_int_equal(offs, 1);
    assert_int_equal(caller->arch.x[0], PSCI_ID_CPU_OFF); /* nothing was returned */
}

static void test_C13_system_off_and_reset(void **state) {
    static const struct {
        uint32_t id;
        uint64_t arg;
        enum vm_end reason;
    } ends[] = {
        {PSCI_ID_SYSTEM_OFF, 0, VM_END_OFF},
        {PSCI_ID_SYSTEM_RESET, 0, VM_END_RESET},
        {PSCI_ID_SYSTEM_RESET2, 0, VM_END_RESET},
        {PSCI_ID_SYSTEM_RESET2_64, 0, VM_END_RESET},
        {PSCI_ID_SYSTEM_RESET2, 0xffffffff00000000, VM_END_RESET},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        stops = 0;
        call_by(ESR_HVC, ends[i].id, ends[i].arg, 0x1234, 0);
        assert_int_equal(verdict, POWER_DOWN);
        assert_int_equal(stops, 1);
        assert_int_equal(stop_reason, ends[i].reason);
    }
}

static void test_C13_system_reset2_types(void **state) {
    static const uint32_t types[] = {1, 2, 0x7fffffff, 0x80000000, 0xffffffff};

    (void)state;
    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        assert_int_equal(call(PSCI_ID_SYSTEM_RESET2, types[i], 0, 0), -2);
        assert_int_equal(call(PSCI_ID_SYSTEM_RESET2_64, types[i], 0, 0), -2);
    }
    assert_int_equal(stops, 0);
}

static void test_C13_migrate_info_type(void **state) {
    (void)state;
    assert_int_equal(call(PSCI_ID_MIGRATE_INFO_TYPE, 0, 0, 0), 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_table_is_in_order, fresh),
        cmocka_unit_test_setup(test_C08_convention_is_discovered, fresh),
        cmocka_unit_test_setup(test_C08_arch_features_of_others, fresh),
        cmocka_unit_test_setup(test_C13_features_of_every_psci_number, fresh),
        cmocka_unit_test_setup(test_C09_unknown_calls, fresh),
        cmocka_unit_test_setup(test_C09_immediate_must_be_zero, fresh),
        cmocka_unit_test_setup(test_C09_upper_half_of_the_number, fresh),
        cmocka_unit_test_setup(test_C10_smc_is_hvc, fresh),
        cmocka_unit_test_setup(test_C13_cpu_on, fresh),
        cmocka_unit_test_setup(test_C01_cpu_on_of_each_other, fresh),
        cmocka_unit_test_setup(test_C13_cpu_on_of_unknown_targets, fresh),
        cmocka_unit_test_setup(test_C13_cpu_on_with_bad_entry, fresh),
        cmocka_unit_test_setup(test_C13_32_bit_number_cuts_arguments, fresh),
        cmocka_unit_test_setup(test_C06_affinity_info_of_one, fresh),
        cmocka_unit_test_setup(test_C13_affinity_info_of_levels, fresh),
        cmocka_unit_test_setup(test_C13_affinity_info_of_nonsense, fresh),
        cmocka_unit_test_setup(test_C12_cpu_suspend_waits, fresh),
        cmocka_unit_test_setup(test_C13_cpu_suspend_reserved_bits, fresh),
        cmocka_unit_test_setup(test_C13_cpu_off_does_not_return, fresh),
        cmocka_unit_test_setup(test_C13_system_off_and_reset, fresh),
        cmocka_unit_test_setup(test_C13_system_reset2_types, fresh),
        cmocka_unit_test_setup(test_C13_migrate_info_type, fresh),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
