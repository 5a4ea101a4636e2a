/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: arm64 */
/* The feature ID registers that guests see. Includes the source, to begin anew in each test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arm64/id_regs.c"

#define PFR0  4, 0
#define PFR1  4, 1
#define DFR0  5, 0
#define ISAR0 6, 0
#define ISAR1 6, 1
#define ISAR2 6, 2
#define ISAR3 6, 3
#define MMFR0 7, 0
#define MMFR1 7, 1
#define MMFR2 7, 2
#define MMFR3 7, 3

/* The machine: registers of the pCPU that is asked. */
static uint64_t hardware[REGS];

static uint64_t read_fake(unsigned crm, unsigned op2) {
    return hardware[REG(crm, op2)];
}

uint64_t id_read_hardware(unsigned crm, unsigned op2) {
    return read_fake(crm, op2);
}

static void set(unsigned crm, unsigned op2, uint64_t value) {
    hardware[REG(crm, op2)] = value;
}

static int fresh(void **state) {
    (void)state;
    atomic_store(&first_done, false);
    for (unsigned i = 0; i < REGS; i++) {
        atomic_store(&shown[i], 0);
        hardware[i] = 0;
    }
    return 0;
}

static void fill(uint64_t value) {
    for (unsigned i = 0; i < REGS; i++) {
        hardware[i] = value;
    }
}

static void cortex_a57(void) {
    fill(0);
    set(PFR0, 0x01002222);
    set(DFR0, 0x10305106);
    set(ISAR0, 0x00011120);
    set(MMFR0, 0x00001124);
    set(1, 0, 0x00000131);
    set(1, 4, 0x10101105);
    set(2, 0, 0x02101110);
    set(3, 0, 0x10110222);
}

static void neoverse_n1(void) {
    fill(0);
    set(PFR0, 0x1100000011111112);
    set(PFR1, 0x20);
    set(DFR0, 0x0000000110305408);
    set(ISAR0, 0x0000100010211120);
    set(ISAR1, 0x0000000000100001);
    set(MMFR0, 0x0000000000101125);
    set(MMFR1, 0x0000000010212122);
    set(MMFR2, 0x0000000000001011);
}

/* Levels of EL3 and EL2 are gone, the rest is as the CPU says. */
static void test_B06_cortex_a57(void **state) {
    (void)state;
    cortex_a57();
    assert_true(id_regs_init(read_fake));
    assert_int_equal(id_reg_guest(PFR0), 0x01000012);
    assert_int_equal(id_reg_guest(PFR1), 0);
    /* no PMU; 6 breakpoints, 4 watchpoints; no double lock */
    assert_int_equal(id_reg_guest(DFR0), 0xf010305006);
    assert_int_equal(id_reg_guest(ISAR0), 0x00011120);
    assert_int_equal(id_reg_guest(MMFR0), 0x00001122); /* 40 bits */
    assert_int_equal(id_reg_guest(1, 0), 0x131);
    assert_int_equal(id_reg_guest(2, 0), 0x02101110);
    assert_int_equal(id_reg_guest(3, 0), 0x10110222);
    assert_int_equal(id_breakpoints(), 6);
    assert_int_equal(id_watchpoints(), 4);
    assert_true(id_has_gic());
}

static void test_B06_neoverse_n1(void **state) {
    (void)state;
    neoverse_n1();
    assert_true(id_regs_init(read_fake));
    /* no RAS, EL1 and EL2 in AArch64 only: RAS 28, EL3, EL2 gone */
    assert_int_equal(id_reg_guest(PFR0), 0x1100000001110012);
    assert_int_equal(id_reg_guest(PFR1), 0x20);
    assert_int_equal(id_reg_guest(DFR0), 0xf010305008);
    assert_int_equal(id_reg_guest(ISAR0), 0x0000100010211120);
    assert_int_equal(id_reg_guest(ISAR1), 0x0000000000100001);
    assert_int_equal(id_reg_guest(MMFR0), 0x0000000000101122);
    assert_int_equal(id_reg_guest(MMFR1), 0x0000000000202002); /* PAN, HPDS, HAFDBS */
    assert_int_equal(id_reg_guest(MMFR2), 0x0000000000000011); /* no IESB */
}

/* A CPU with everything, also what does not exist yet: no field beyond what was thought about. */
static void test_B06_cpu_of_the_future(void **state) {
    (void)state;
    fill(0x7777777777777777);
    assert_true(id_regs_init(read_fake));
    assert_int_equal(id_reg_guest(PFR0), 0x1101000001110012);
    assert_int_equal(id_reg_guest(PFR1), 0x0000000100000021);
    assert_int_equal(id_reg_guest(4, 2), 0); /* PFR2: FPMR, MTE parts */
    assert_int_equal(id_reg_guest(4, 4), 0); /* ZFR0 */
    assert_int_equal(id_reg_guest(4, 5), 0); /* SMFR0 */
    assert_int_equal(id_reg_guest(4, 7), 0); /* FPFR0 */
    assert_int_equal(id_reg_guest(DFR0), 0x000000f070707007);
    assert_int_equal(id_reg_guest(5, 1), 0);
    assert_int_equal(id_reg_guest(5, 2), 0);
    assert_int_equal(id_reg_guest(ISAR0), 0x1221111110312120);
    assert_int_equal(id_reg_guest(ISAR1), 0x0111221111311552);
    assert_int_equal(id_reg_guest(ISAR2), 0x0121000011105110);
    assert_int_equal(id_reg_guest(ISAR3), 0x0000000010010010);
    assert_int_equal(id_reg_guest(MMFR0), 0x1000100000111122);
    assert_int_equal(id_reg_guest(MMFR1), 0x1001103000302002);
    assert_int_equal(id_reg_guest(MMFR2), 0x1021001110110111);
    assert_int_equal(id_reg_guest(MMFR3), 0x1000000000000000);
    assert_int_equal(id_reg_guest(7, 4), 0); /* MMFR4: E2H0, NV, ASID2 */
    for (unsigned op2 = 5; op2 < 8; op2++) {
        assert_int_equal(id_reg_guest(7, op2), 0);
        assert_int_equal(id_reg_guest(6, op2), 0);
    }
}

/* 15 is "not implemented" in the signed fields, which must not turn into a feature. */
static void test_B06_signed_fields_keep_not_implemented(void **state) {
    (void)state;
    fill(UINT64_MAX);
    assert_true(id_regs_init(read_fake));
    assert_int_equal(id_field_guest(PFR0, 16), 15);  /* FP */
    assert_int_equal(id_field_guest(PFR0, 20), 15);  /* AdvSIMD */
    assert_int_equal(id_field_guest(MMFR0, 24), 15); /* TGran64 */
    assert_int_equal(id_field_guest(MMFR0, 28), 15); /* TGran4 */
    assert_int_equal(id_field_guest(DFR0, 36), 15);  /* DoubleLock */
    assert_int_equal(id_field_guest(DFR0, 8), 0);    /* PMUVer */
    assert_int_equal(id_breakpoints(), 16);
    assert_int_equal(id_watchpoints(), 16);
}

/* FP = 0 and AdvSIMD = 0 say that they are there. */
static void test_B06_nothing_but_fp(void **state) {
    (void)state;
    assert_true(id_regs_init(read_fake));
    assert_int_equal(id_reg_guest(PFR0), 0x10);
    assert_int_equal(id_reg_guest(DFR0), 0xf000000000);
    assert_false(id_has_gic());
    for (unsigned i = 0; i < 64; i++) {
        if (i != REG(4, 0) && i != REG(5, 0)) {
            assert_int_equal(id_reg_guest(i / 8, i % 8), 0);
        }
    }
}

static void test_B06_outside_of_the_space_reads_zero(void **state) {
    (void)state;
    fill(UINT64_MAX);
    assert_true(id_regs_init(read_fake));
    for (unsigned op2 = 0; op2 < 8; op2++) {
        assert_int_equal(id_reg_guest(0, op2), 0);
        assert_int_equal(id_reg_guest(8, op2), 0);
        assert_int_equal(id_reg_guest(15, op2), 0);
    }
    assert_int_equal(id_reg_guest(4, 8), 0);
}

static void test_B06_aarch32_only_where_el0_has_it(void **state) {
    (void)state;
    cortex_a57();
    set(PFR0, 0x01002221);
    assert_true(id_regs_init(read_fake));
    for (unsigned crm = 1; crm < 4; crm++) {
        for (unsigned op2 = 0; op2 < 8; op2++) {
            assert_int_equal(id_reg_guest(crm, op2), 0);
        }
    }
}

static void test_B06_aarch32_is_cleaned_too(void **state) {
    (void)state;
    fill(0x2222222222222222);
    assert_true(id_regs_init(read_fake));
    assert_int_equal(id_reg_guest(1, 0), 0x01012222); /* no RAS, no AMU */
    assert_int_equal(id_reg_guest(1, 1), 0x10020001); /* no Security, no Virtualization */
    assert_int_equal(id_reg_guest(1, 2), 0x00000002); /* no PMU, no trace */
    assert_int_equal(id_reg_guest(1, 3), 0);
    assert_int_equal(id_reg_guest(2, 7), 0x22222222);
    assert_int_equal(id_reg_guest(3, 3), 0);
    assert_int_equal(id_reg_guest(3, 5), 0);
    assert_int_equal(id_reg_guest(3, 7), 0);
}

/* Guests see what every pCPU has, whichever came first. */
static void test_B06_weakest_of_all_pcpus(void **state) {
    uint64_t one_way[REGS];

    neoverse_n1();
    assert_true(id_regs_init(read_fake));
    assert_true(id_regs_init(read_fake)); /* a second one of the same kind changes nothing */
    cortex_a57();
    assert_false(id_regs_init(read_fake));
    for (unsigned i = 0; i < REGS; i++) {
        one_way[i] = atomic_load(&shown[i]);
    }
    assert_int_equal(id_field_guest(ISAR0, 20), 0); /* LSE */
    assert_int_equal(id_field_guest(ISAR0, 16), 1); /* CRC32 */
    assert_int_equal(id_field_guest(PFR0, 16), 0);  /* FP, without FP16 */

    fresh(state);
    cortex_a57();
    assert_true(id_regs_init(read_fake));
    neoverse_n1();
    id_regs_init(read_fake);
    for (unsigned i = 0; i < REGS; i++) {
        assert_int_equal(atomic_load(&shown[i]), one_way[i]);
    }
}

static void test_B06_pcpu_without_fp_hides_fp(void **state) {
    (void)state;
    neoverse_n1();
    assert_true(id_regs_init(read_fake));
    set(PFR0, 0x1100000011ff1112);
    assert_false(id_regs_init(read_fake));
    assert_int_equal(id_field_guest(PFR0, 16), 15);
    assert_int_equal(id_field_guest(PFR0, 20), 15);
}

/* The list itself: no field twice, none across another, all within the space. */
static void test_B06_list_is_sound(void **state) {
    uint64_t used[REGS] = {0};

    (void)state;
    for (unsigned i = 0; i < FIELDS; i++) {
        uint64_t mask = 15ull << fields[i].shift;

        assert_true(fields[i].reg >= REG(1, 0) && fields[i].reg < REGS);
        assert_int_equal(fields[i].shift % 4, 0);
        assert_true(fields[i].shift < 64 && fields[i].limit <= 15);
        assert_int_equal(used[fields[i].reg] & mask, 0);
        used[fields[i].reg] |= mask;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_B06_cortex_a57, fresh),
        cmocka_unit_test_setup(test_B06_neoverse_n1, fresh),
        cmocka_unit_test_setup(test_B06_cpu_of_the_future, fresh),
        cmocka_unit_test_setup(test_B06_signed_fields_keep_not_implemented, fresh),
        cmocka_unit_test_setup(test_B06_nothing_but_fp, fresh),
        cmocka_unit_test_setup(test_B06_outside_of_the_space_reads_zero, fresh),
        cmocka_unit_test_setup(test_B06_aarch32_only_where_el0_has_it, fresh),
        cmocka_unit_test_setup(test_B06_aarch32_is_cleaned_too, fresh),
        cmocka_unit_test_setup(test_B06_weakest_of_all_pcpus, fresh),
        cmocka_unit_test_setup(test_B06_pcpu_without_fp_hides_fp, fresh),
        cmocka_unit_test_setup(test_B06_list_is_sound, fresh),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
