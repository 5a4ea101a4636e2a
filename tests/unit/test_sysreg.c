/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: arm64 */
/* link: arch/arm64/sysreg.c arch/arm64/debug.c arch/arm64/guest_timer.c arch/arm64/id_regs.c */
/* Trapped system registers: what is emulated, and that all else is undefined to the guest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arm64/debug.h"
#include "arch/arm64/guest_timer.h"
#include "arch/arm64/id_regs.h"
#include "arch/arm64/setway.h"
#include "arch/arm64/sysreg.h"
#include "arch/arm64/vm_regs.h"
#include "core/port.h"
#include "hyp/vcpu.h"
#include "hyp/vm.h"

#define SCTLR_EL1  SYSREG(3, 0, 1, 0, 0)
#define ACTLR_EL1  SYSREG(3, 0, 1, 0, 1)
#define CNTP_TVAL  SYSREG(3, 3, 14, 2, 0)
#define CNTP_CTL   SYSREG(3, 3, 14, 2, 1)
#define CNTP_CVAL  SYSREG(3, 3, 14, 2, 2)
#define ICC_DIR    SYSREG(3, 0, 12, 11, 1)
#define ICC_SGI1R  SYSREG(3, 0, 12, 11, 5)
#define ICC_ASGI1R SYSREG(3, 0, 12, 11, 6)
#define ICC_SGI0R  SYSREG(3, 0, 12, 11, 7)
#define ICC_SRE    SYSREG(3, 0, 12, 12, 5)
#define DC_ISW     SYSREG(1, 0, 7, 6, 2)
#define DC_CSW     SYSREG(1, 0, 7, 10, 2)
#define DC_CISW    SYSREG(1, 0, 7, 14, 2)
#define AA64PFR0   SYSREG(3, 0, 0, 4, 0)
#define AA64DFR0   SYSREG(3, 0, 0, 5, 0)
#define UNTOUCHED  0x5a5a5a5a5a5a5a5au
#define ZERO_REG   31u

static struct vcpu vcpu;
static struct vm vm;
static uint64_t now;
static unsigned calls; /* of whatever stands behind an access */
static uint64_t last_value;
static unsigned last_reg;
static uint64_t real_sctlr;
static bool setway_finished;

uint64_t port_clock(void) {
    return now;
}

void vcpu_timer_update(struct vcpu *v, bool blocked) {
    (void)v;
    (void)blocked;
    calls++;
}

void vgic_set_level(struct vgic_vcpu *v, unsigned intid, bool level) {
    (void)v;
    (void)intid;
    (void)level;
}

void vgic_send_sgi(struct vgic_vcpu *src, uint64_t value, enum vgic_sgi_reg reg) {
    assert_ptr_equal(src, &vcpu.arch.vgic);
    calls++;
    last_value = value;
    last_reg = reg;
}

void vgic_trapped_dir(struct vgic_vcpu *v, unsigned intid) {
    assert_ptr_equal(v, &vcpu.arch.vgic);
    calls++;
    last_value = intid;
}

bool setway_access(struct vcpu *v) {
    assert_ptr_equal(v, &vcpu);
    calls++;
    return setway_finished;
}

bool setway_control(struct vcpu *v, uint64_t old, uint64_t new) {
    assert_ptr_equal(v, &vcpu);
    assert_int_equal(old, real_sctlr);
    assert_int_equal(new, 0x1005);
    calls++;
    return setway_finished;
}

uint64_t vm_reg_read(uint16_t key) {
    assert_int_equal(key, SCTLR_EL1);
    return real_sctlr;
}

void vm_reg_write(uint16_t key, uint64_t value) {
    last_reg = key;
    last_value = value;
}

uint64_t vm_reg_revidr(void) {
    return 0x1234;
}

uint64_t vm_reg_aidr(void) {
    return 0x5678;
}

void debug_load(struct vcpu *v) {
    (void)v;
    calls++;
}

void debug_unload(struct vcpu *v) {
    (void)v;
}

/* A machine with all features, and more. */
static uint64_t read_id_max(unsigned crm, unsigned op2) {
    (void)crm;
    (void)op2;
    return 0x3333333333333333;
}

static uint64_t read_id_without_gic(unsigned crm, unsigned op2) {
    return crm == 4 && op2 == 0 ? 0x3333333330333333 : 0x3333333333333333;
}

static int set_up(void **state) {
    (void)state;
    id_regs_init(read_id_max);
    return 0;
}

static int fresh(void **state) {
    (void)state;
    memset(&vcpu, 0, sizeof(vcpu));
    memset(&vm, 0, sizeof(vm));
    vcpu.vm = &vm;
    for (unsigned i = 0; i < 31; i++) {
        vcpu.arch.x[i] = UNTOUCHED;
    }
    now = 1000;
    calls = 0;
    last_value = last_reg = 0;
    real_sctlr = 0x30d50838;
    setway_finished = true;
    return 0;
}

static uint32_t iss(uint16_t key, unsigned rt, bool read) {
    uint32_t k = key;

    return (k >> 14) << 20 | (k & 7u) << 17 | (k >> 11 & 7u) << 14 | (k >> 7 & 15u) << 10 |
           rt << 5 | (k >> 3 & 15u) << 1 | read;
}

static enum sysreg_result mrs(uint16_t key, unsigned rt) {
    return sysreg_access(&vcpu, iss(key, rt, true));
}

static enum sysreg_result msr(uint16_t key, uint64_t value) {
    vcpu.arch.x[7] = value;
    return sysreg_access(&vcpu, iss(key, 7, false));
}

static uint64_t value_of(uint16_t key) {
    assert_int_equal(mrs(key, 3), SYSREG_DONE);
    return vcpu.arch.x[3];
}

static void test_iss_is_decoded(void **state) {
    /* "mrs x5, CNTP_CTL_EL0" and "msr ICC_SGI1R_EL1, x0", put together by hand. */
    (void)state;
    assert_int_equal(sysreg_iss_key(0x32f8a5), CNTP_CTL);
    assert_int_equal(sysreg_iss_rt(0x32f8a5), 5);
    assert_true(sysreg_iss_is_read(0x32f8a5));
    assert_int_equal(sysreg_iss_key(0x3a3016), ICC_SGI1R);
    assert_int_equal(sysreg_iss_rt(0x3a3016), 0);
    assert_false(sysreg_iss_is_read(0x3a3016));
    for (unsigned key = 0; key <= UINT16_MAX; key++) {
        assert_int_equal(sysreg_iss_key(iss((uint16_t)key, 9, true)), key);
    }
}

static void test_B06_id_registers_read_as_listed(void **state) {
    (void)state;
    for (unsigned crm = 1; crm < 8; crm++) {
        for (unsigned op2 = 0; op2 < 8; op2++) {
            assert_int_equal(value_of(SYSREG(3, 0, 0, crm, op2)), id_reg_guest(crm, op2));
        }
    }
    assert_int_equal(value_of(AA64PFR0) >> 32 & 15u, 0); /* SVE */
    assert_int_equal(value_of(AA64DFR0) >> 8 & 15u, 0);  /* PMU */
}

/* Encodings of the space that have no name yet read as zero; those beside it are undefined. */
static void test_B06_id_space_has_no_holes(void **state) {
    (void)state;
    assert_int_equal(value_of(SYSREG(3, 0, 0, 7, 7)), 0);
    assert_int_equal(value_of(SYSREG(3, 0, 0, 6, 5)), 0);
    assert_int_equal(value_of(SYSREG(3, 0, 0, 3, 7)), 0);
    for (unsigned crm = 8; crm < 16; crm++) {
        assert_int_equal(mrs(SYSREG(3, 0, 0, crm, 0), 3), SYSREG_UNDEFINED);
    }
    assert_int_equal(mrs(SYSREG(3, 0, 0, 0, 1), 3), SYSREG_UNDEFINED);
    assert_int_equal(mrs(SYSREG(3, 1, 0, 4, 0), 3), SYSREG_UNDEFINED);
    assert_int_equal(msr(AA64PFR0, 0), SYSREG_UNDEFINED);
}

static void test_zero_register(void **state) {
    (void)state;
    now = 77;
    assert_int_equal(mrs(AA64PFR0, ZERO_REG), SYSREG_DONE);
    for (unsigned i = 0; i < 31; i++) {
        assert_int_equal(vcpu.arch.x[i], UNTOUCHED);
    }
    vcpu.arch.ptimer.cval = 5;
    assert_int_equal(sysreg_access(&vcpu, iss(CNTP_CVAL, ZERO_REG, false)), SYSREG_DONE);
    assert_int_equal(vcpu.arch.ptimer.cval, 0);
    assert_int_equal(mrs(AA64PFR0, 30), SYSREG_DONE);
    assert_int_equal(vcpu.arch.x[30], id_reg_guest(4, 0));
}

/* Each of these belongs to a feature that the ID registers hide, on a machine that has it. */
static void test_B06_hidden_features_are_undefined(void **state) {
    static const uint16_t hidden[] = {
        SYSREG(3, 1, 0, 0, 6),   /* SMIDR_EL1 */
        SYSREG(3, 0, 1, 2, 4),   /* SMPRI_EL1 */
        SYSREG(3, 0, 1, 2, 6),   /* SMCR_EL1 */
        SYSREG(3, 3, 13, 0, 5),  /* TPIDR2_EL0 */
        SYSREG(3, 3, 4, 2, 2),   /* SVCR */
        SYSREG(3, 0, 1, 2, 0),   /* ZCR_EL1 */
        SYSREG(3, 3, 4, 4, 2),   /* FPMR */
        SYSREG(3, 0, 10, 2, 2),  /* PIRE0_EL1 */
        SYSREG(3, 0, 10, 2, 3),  /* PIR_EL1 */
        SYSREG(3, 0, 10, 2, 4),  /* POR_EL1 */
        SYSREG(3, 3, 10, 2, 4),  /* POR_EL0 */
        SYSREG(3, 0, 2, 0, 3),   /* TCR2_EL1 */
        SYSREG(3, 0, 1, 0, 3),   /* SCTLR2_EL1 */
        SYSREG(3, 0, 2, 5, 0),   /* GCSCR_EL1 */
        SYSREG(3, 3, 2, 5, 1),   /* GCSPR_EL0 */
        SYSREG(3, 0, 1, 0, 5),   /* RGSR_EL1 */
        SYSREG(3, 0, 1, 0, 6),   /* GCR_EL1 */
        SYSREG(3, 0, 5, 6, 0),   /* TFSR_EL1 */
        SYSREG(3, 1, 0, 0, 4),   /* GMID_EL1 */
        SYSREG(3, 3, 9, 12, 0),  /* PMCR_EL0 */
        SYSREG(3, 3, 9, 13, 0),  /* PMCCNTR_EL0 */
        SYSREG(3, 3, 9, 14, 0),  /* PMUSERENR_EL0 */
        SYSREG(3, 3, 14, 8, 0),  /* PMEVCNTR0_EL0 */
        SYSREG(3, 3, 14, 15, 7), /* PMCCFILTR_EL0 */
        SYSREG(3, 0, 9, 14, 1),  /* PMINTENSET_EL1 */
        SYSREG(3, 0, 9, 9, 0),   /* PMSCR_EL1 */
        SYSREG(3, 0, 9, 10, 7),  /* PMBIDR_EL1 */
        SYSREG(3, 0, 9, 11, 0),  /* TRBLIMITR_EL1 */
        SYSREG(3, 0, 1, 2, 1),   /* TRFCR_EL1 */
        SYSREG(2, 1, 9, 0, 0),   /* BRBCR_EL1 */
        SYSREG(2, 1, 0, 1, 0),   /* TRCPRGCTLR */
        SYSREG(3, 0, 10, 4, 0),  /* LORSA_EL1 */
        SYSREG(3, 0, 10, 4, 7),  /* LORID_EL1 */
        SYSREG(3, 0, 10, 5, 0),  /* MPAM1_EL1 */
        SYSREG(3, 0, 10, 4, 4),  /* MPAMIDR_EL1 */
        SYSREG(3, 3, 13, 2, 0),  /* AMCR_EL0 */
        SYSREG(3, 3, 13, 4, 0),  /* AMEVCNTR00_EL0 */
        SYSREG(3, 0, 5, 3, 0),   /* ERRIDR_EL1 */
        SYSREG(3, 0, 5, 4, 2),   /* ERXSTATUS_EL1 */
        SYSREG(3, 0, 13, 0, 7),  /* SCXTNUM_EL1 */
        SYSREG(3, 0, 13, 0, 5),  /* ACCDATA_EL1 */
        SYSREG(3, 0, 4, 3, 0),   /* ALLINT */
        SYSREG(3, 0, 15, 2, 0),  /* the maker's own */
        SYSREG(3, 1, 11, 0, 2),  /* L2CTLR_EL1 */
        SYSREG(1, 0, 7, 6, 4),   /* DC IGSW */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
        assert_int_equal(mrs(hidden[i], 3), SYSREG_UNDEFINED);
        assert_int_equal(vcpu.arch.x[3], UNTOUCHED);
        assert_int_equal(msr(hidden[i], 1), SYSREG_UNDEFINED);
    }
    assert_int_equal(calls, 0);
}

/* All encodings: each has a result, and those that are known are as many as we think. */
static void test_B06_every_encoding_has_an_answer(void **state) {
    unsigned readable = 0, writable = 0, debug_readable = 0, debug_writable = 0;

    (void)state;
    real_sctlr = 0;
    for (unsigned key = 0; key <= UINT16_MAX; key++) {
        unsigned is_debug = key >> 14 == 2;
        unsigned done = mrs((uint16_t)key, 1) == SYSREG_DONE;

        readable += done;
        debug_readable += done & is_debug;
        done = msr((uint16_t)key, 0x1005) == SYSREG_DONE;
        writable += done;
        debug_writable += done & is_debug;
    }
    assert_int_equal(debug_readable, 4 * 4 + 15); /* 4 breakpoints, 4 watchpoints */
    assert_int_equal(debug_writable, 4 * 4 + 12);
    assert_int_equal(readable - debug_readable,
                     56 + 3 + 2 + 4); /* IDs, CNTP, CNTPCT*, SRE ACTLR REVIDR AIDR */
    assert_int_equal(writable - debug_writable, 3 + 5 + 1 + 3 + 11);
}

static void test_physical_timer(void **state) {
    (void)state;
    assert_int_equal(msr(CNTP_CVAL, 1500), SYSREG_DONE);
    assert_int_equal(msr(CNTP_CTL, 1), SYSREG_DONE);
    assert_int_equal(calls, 2);
    assert_int_equal(value_of(CNTP_CVAL), 1500);
    assert_int_equal(value_of(CNTP_TVAL), 500);
    assert_int_equal(value_of(CNTP_CTL), 1);
    now = 1501;
    assert_int_equal(value_of(CNTP_CTL), 5);
    assert_int_equal(value_of(CNTP_TVAL), 0xffffffff);
    assert_int_equal(msr(CNTP_TVAL, 10), SYSREG_DONE);
    assert_int_equal(value_of(CNTP_CVAL), 1511);
}

static void test_interrupts_between_cpus(void **state) {
    (void)state;
    assert_int_equal(msr(ICC_SGI1R, 0x1000001), SYSREG_DONE);
    assert_int_equal(last_value, 0x1000001);
    assert_int_equal(last_reg, VGIC_SGI1R);
    assert_int_equal(msr(ICC_ASGI1R, 2), SYSREG_DONE);
    assert_int_equal(last_reg, VGIC_ASGI1R);
    assert_int_equal(msr(ICC_SGI0R, 3), SYSREG_DONE);
    assert_int_equal(last_reg, VGIC_SGI0R);
    assert_int_equal(calls, 3);
    assert_int_equal(mrs(ICC_SGI1R, 3), SYSREG_UNDEFINED); /* write-only */
    assert_int_equal(vcpu.arch.x[3], UNTOUCHED);
}

static void test_deactivation(void **state) {
    (void)state;
    assert_int_equal(msr(ICC_DIR, 0xff00000000000021u), SYSREG_DONE);
    assert_int_equal(last_value, 0x21);
    assert_int_equal(calls, 1);
    assert_true(sysreg_needs_fold(iss(ICC_DIR, 0, false)));
    assert_false(sysreg_needs_fold(iss(ICC_SGI1R, 0, false)));
    assert_false(sysreg_needs_fold(iss(CNTP_CTL, 0, false)));
    assert_int_equal(mrs(ICC_DIR, 3), SYSREG_UNDEFINED);
}

static void test_icc_sre_is_fixed(void **state) {
    (void)state;
    assert_int_equal(value_of(ICC_SRE), 7);
    assert_int_equal(msr(ICC_SRE, 0), SYSREG_DONE);
    assert_int_equal(value_of(ICC_SRE), 7);
}

static void test_actlr_reads_zero_and_ignores_writes(void **state) {
    (void)state;
    assert_int_equal(msr(ACTLR_EL1, UINT64_MAX), SYSREG_DONE);
    assert_int_equal(value_of(ACTLR_EL1), 0);
}

static void test_revision_registers(void **state) {
    (void)state;
    assert_int_equal(value_of(SYSREG(3, 0, 0, 0, 6)), 0x1234);
    assert_int_equal(value_of(SYSREG(3, 1, 0, 0, 7)), 0x5678);
    assert_int_equal(msr(SYSREG(3, 0, 0, 0, 6), 0), SYSREG_UNDEFINED);
}

static void test_set_way_may_take_several_rounds(void **state) {
    static const uint16_t operations[] = {DC_ISW, DC_CSW, DC_CISW};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        setway_finished = false;
        assert_int_equal(msr(operations[i], 0), SYSREG_AGAIN);
        setway_finished = true;
        assert_int_equal(msr(operations[i], 0), SYSREG_DONE);
        assert_int_equal(mrs(operations[i], 3), SYSREG_UNDEFINED);
    }
    assert_int_equal(calls, 6);
}

/* While TVM traps them: SCTLR_EL1 only after the cleaning, the others at once. */
static void test_vm_controls(void **state) {
    static const uint16_t others[] = {
        SYSREG(3, 0, 2, 0, 0),  SYSREG(3, 0, 2, 0, 1),  SYSREG(3, 0, 2, 0, 2),
        SYSREG(3, 0, 5, 1, 0),  SYSREG(3, 0, 5, 1, 1),  SYSREG(3, 0, 5, 2, 0),
        SYSREG(3, 0, 6, 0, 0),  SYSREG(3, 0, 10, 2, 0), SYSREG(3, 0, 10, 3, 0),
        SYSREG(3, 0, 13, 0, 1),
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(msr(others[i], i + 1), SYSREG_DONE);
        assert_int_equal(last_reg, others[i]);
        assert_int_equal(last_value, i + 1);
    }
    assert_int_equal(calls, 0);
    last_reg = 0;
    setway_finished = false;
    assert_int_equal(msr(SCTLR_EL1, 0x1005), SYSREG_AGAIN);
    assert_int_equal(last_reg, 0); /* not written yet */
    setway_finished = true;
    assert_int_equal(msr(SCTLR_EL1, 0x1005), SYSREG_DONE);
    assert_int_equal(last_reg, SCTLR_EL1);
    assert_int_equal(last_value, 0x1005);
}

static void test_debug_registers_go_to_debug(void **state) {
    (void)state;
    assert_int_equal(msr(SYSREG(2, 0, 0, 2, 2), 0x8000), SYSREG_DONE); /* MDSCR_EL1 */
    assert_int_equal(value_of(SYSREG(2, 0, 0, 2, 2)), 0x8000);
    assert_int_equal(mrs(SYSREG(2, 0, 1, 0, 4), 3), SYSREG_UNDEFINED); /* OSLAR_EL1 */
    assert_int_equal(msr(SYSREG(2, 0, 1, 1, 4), 0), SYSREG_UNDEFINED); /* OSLSR_EL1 */
}

/* Last: a pCPU without GIC registers joins, and from then on no guest sees one. */
static void test_G26_no_gic_no_gic_registers(void **state) {
    static const uint16_t registers[] = {ICC_SGI1R, ICC_ASGI1R, ICC_SGI0R, ICC_DIR, ICC_SRE};

    (void)state;
    id_regs_init(read_id_without_gic);
    assert_int_equal(value_of(AA64PFR0) >> 24 & 15u, 0);
    vcpu.arch.x[3] = UNTOUCHED;
    for (unsigned i = 0; i < sizeof(registers) / sizeof(registers[0]); i++) {
        assert_int_equal(msr(registers[i], 1), SYSREG_UNDEFINED);
        assert_int_equal(mrs(registers[i], 3), SYSREG_UNDEFINED);
    }
    assert_int_equal(vcpu.arch.x[3], UNTOUCHED);
    assert_int_equal(calls, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_iss_is_decoded, fresh),
        cmocka_unit_test_setup(test_B06_id_registers_read_as_listed, fresh),
        cmocka_unit_test_setup(test_B06_id_space_has_no_holes, fresh),
        cmocka_unit_test_setup(test_zero_register, fresh),
        cmocka_unit_test_setup(test_B06_hidden_features_are_undefined, fresh),
        cmocka_unit_test_setup(test_B06_every_encoding_has_an_answer, fresh),
        cmocka_unit_test_setup(test_physical_timer, fresh),
        cmocka_unit_test_setup(test_interrupts_between_cpus, fresh),
        cmocka_unit_test_setup(test_deactivation, fresh),
        cmocka_unit_test_setup(test_icc_sre_is_fixed, fresh),
        cmocka_unit_test_setup(test_actlr_reads_zero_and_ignores_writes, fresh),
        cmocka_unit_test_setup(test_revision_registers, fresh),
        cmocka_unit_test_setup(test_set_way_may_take_several_rounds, fresh),
        cmocka_unit_test_setup(test_vm_controls, fresh),
        cmocka_unit_test_setup(test_debug_registers_go_to_debug, fresh),
        cmocka_unit_test_setup(test_G26_no_gic_no_gic_registers, fresh),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, set_up, NULL);
}
