/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: arm64 */
/* link: arch/arm64/debug.c arch/arm64/id_regs.c */
/* Debug registers of a guest: what is stored, what is refused, and when the hardware is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arm64/debug.h"
#include "arch/arm64/id_regs.h"
#include "arch/arm64/sysreg.h"
#include "hyp/vcpu.h"

#define DBGBVR(n)   SYSREG(2, 0, 0, n, 4)
#define DBGBCR(n)   SYSREG(2, 0, 0, n, 5)
#define DBGWVR(n)   SYSREG(2, 0, 0, n, 6)
#define DBGWCR(n)   SYSREG(2, 0, 0, n, 7)
#define MDSCR       SYSREG(2, 0, 0, 2, 2)
#define OSLAR       SYSREG(2, 0, 1, 0, 4)
#define OSLSR       SYSREG(2, 0, 1, 1, 4)
#define MDRAR       SYSREG(2, 0, 1, 0, 0)
#define DBGCLAIMSET SYSREG(2, 0, 7, 8, 6)
#define DBGCLAIMCLR SYSREG(2, 0, 7, 9, 6)

#define BREAKPOINTS 6u
#define WATCHPOINTS 4u

static struct vcpu vcpu;
static unsigned loads, armed_loads, unloads;
static uint64_t mdscr_in_hardware;

void debug_load(struct vcpu *v) {
    loads++;
    armed_loads += v->arch.debug.armed;
    mdscr_in_hardware = v->arch.debug.mdscr;
}

void debug_unload(struct vcpu *v) {
    assert_true(v->arch.debug.armed);
    unloads++;
}

static uint64_t read_id(unsigned crm, unsigned op2) {
    return crm == 5 && op2 == 0 ? (WATCHPOINTS - 1) << 20 | (BREAKPOINTS - 1) << 12 | 6 : 0;
}

static int fresh(void **state) {
    (void)state;
    id_regs_init(read_id);
    memset(&vcpu, 0xff, sizeof(vcpu));
    debug_reset(&vcpu);
    loads = armed_loads = unloads = 0;
    return 0;
}

static uint64_t get(uint16_t key) {
    uint64_t value = 0xabad1dea;

    assert_true(debug_read(&vcpu, key, &value));
    return value;
}

static void put(uint16_t key, uint64_t value) {
    assert_true(debug_write(&vcpu, key, value));
}

static void test_reset_state(void **state) {
    (void)state;
    assert_int_equal(get(OSLSR), 0xa); /* implemented, locked */
    assert_int_equal(get(MDSCR), 0);
    assert_int_equal(get(DBGCLAIMCLR), 0);
    assert_false(vcpu.arch.debug.armed);
    for (uint16_t n = 0; n < BREAKPOINTS; n++) {
        assert_int_equal(get(DBGBVR(n)), 0);
        assert_int_equal(get(DBGBCR(n)), 0);
    }
}

/* Linux' way: unlock, then use. */
static void test_os_lock(void **state) {
    (void)state;
    put(MDSCR, 0xb001);
    assert_int_equal(get(MDSCR), 0xb001);
    assert_int_equal(mdscr_in_hardware, 0x1000); /* locked: no debug exceptions */
    put(OSLAR, 0);
    assert_int_equal(get(OSLSR), 0x8);
    assert_int_equal(mdscr_in_hardware, 0xb001);
    put(OSLAR, 0xfffffffe);
    assert_int_equal(get(OSLSR), 0x8); /* bit 0 counts */
    put(OSLAR, 1);
    assert_int_equal(get(OSLSR), 0xa);
    assert_int_equal(get(MDSCR), 0xb001);
    assert_int_equal(mdscr_in_hardware, 0x1000);
}

/* Nothing of the external debugger's can be set, such as HDE, which could stop the machine. */
static void test_mdscr_stores_four_bits(void **state) {
    (void)state;
    put(OSLAR, 0);
    put(MDSCR, UINT64_MAX);
    assert_int_equal(get(MDSCR), 0xb001);
    assert_int_equal(mdscr_in_hardware, 0xb001);
}

static void test_values_are_stored_with_reserved_bits_zero(void **state) {
    (void)state;
    for (uint16_t n = 0; n < BREAKPOINTS; n++) {
        put(DBGBVR(n), 0xffffffffffff0000u + n);
        put(DBGBCR(n), UINT64_MAX);
    }
    for (uint16_t n = 0; n < WATCHPOINTS; n++) {
        put(DBGWVR(n), 0xffffffffffff0003u + 8u * n);
        put(DBGWCR(n), UINT64_MAX);
    }
    for (uint16_t n = 0; n < BREAKPOINTS; n++) {
        assert_int_equal(get(DBGBVR(n)), 0xffffffffffff0000u + n);
        assert_int_equal(get(DBGBCR(n)), 0x00ffe1e7);
    }
    for (uint16_t n = 0; n < WATCHPOINTS; n++) {
        assert_int_equal(get(DBGWVR(n)), 0xffffffffffff0000u + 8u * n);
        assert_int_equal(get(DBGWCR(n)), 0x1f1fffff);
    }
}

static void test_B06_only_the_registers_that_id_shows(void **state) {
    uint64_t value;

    (void)state;
    for (uint16_t n = 0; n < 16; n++) {
        assert_int_equal(debug_read(&vcpu, DBGBVR(n), &value), n < BREAKPOINTS);
        assert_int_equal(debug_write(&vcpu, DBGBCR(n), 0), n < BREAKPOINTS);
        assert_int_equal(debug_read(&vcpu, DBGWVR(n), &value), n < WATCHPOINTS);
        assert_int_equal(debug_write(&vcpu, DBGWCR(n), 0), n < WATCHPOINTS);
    }
}

/* The hardware is written while an enable bit is set, and cleaned when the last one goes. */
static void test_armed(void **state) {
    (void)state;
    put(DBGBVR(1), 0x1000);
    put(DBGBCR(1), 0x1e6);
    assert_false(vcpu.arch.debug.armed);
    assert_int_equal(armed_loads, 0);
    put(DBGBCR(1), 0x1e7);
    assert_true(vcpu.arch.debug.armed);
    assert_int_equal(armed_loads, 1);
    put(DBGWCR(3), 0x1001);
    assert_int_equal(armed_loads, 2);
    put(DBGBCR(1), 0);
    assert_true(vcpu.arch.debug.armed);
    assert_int_equal(unloads, 0);
    put(DBGWCR(3), 0x1000);
    assert_false(vcpu.arch.debug.armed);
    assert_int_equal(unloads, 1);
}

static void test_claim_tags(void **state) {
    (void)state;
    assert_int_equal(get(DBGCLAIMSET), 0xff);
    put(DBGCLAIMSET, 0xfff0f);
    assert_int_equal(get(DBGCLAIMCLR), 0x0f);
    put(DBGCLAIMSET, 0x30);
    put(DBGCLAIMCLR, 0x11);
    assert_int_equal(get(DBGCLAIMCLR), 0x2e);
    assert_int_equal(get(DBGCLAIMSET), 0xff);
}

/* The communication channel, the ROM table, the double lock: zero, and writes vanish. */
static void test_external_debugger_is_absent(void **state) {
    static const uint16_t zero[] = {
        SYSREG(2, 0, 0, 0, 2), /* OSDTRRX_EL1 */
        SYSREG(2, 0, 0, 3, 2), /* OSDTRTX_EL1 */
        SYSREG(2, 0, 0, 2, 0), /* MDCCINT_EL1 */
        SYSREG(2, 0, 0, 6, 2), /* OSECCR_EL1 */
        SYSREG(2, 0, 1, 3, 4), /* OSDLR_EL1 */
        SYSREG(2, 0, 1, 4, 4), /* DBGPRCR_EL1 */
        SYSREG(2, 3, 0, 4, 0), /* DBGDTR_EL0 */
        SYSREG(2, 3, 0, 5, 0), /* DBGDTRRX_EL0, DBGDTRTX_EL0 */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(zero) / sizeof(zero[0]); i++) {
        put(zero[i], UINT64_MAX);
        assert_int_equal(get(zero[i]), 0);
    }
    assert_int_equal(get(MDRAR), 0);
    assert_int_equal(get(SYSREG(2, 0, 7, 14, 6)), 0); /* DBGAUTHSTATUS_EL1 */
    assert_int_equal(get(SYSREG(2, 3, 0, 1, 0)), 0);  /* MDCCSR_EL0 */
}

/* Wrong directions, and all encodings that are no registers. */
static void test_B06_everything_else_is_refused(void **state) {
    unsigned readable = 0, writable = 0;
    uint64_t value;

    (void)state;
    assert_false(debug_read(&vcpu, OSLAR, &value));
    assert_int_equal(value, 0);
    assert_false(debug_write(&vcpu, OSLSR, 0));
    assert_false(debug_write(&vcpu, MDRAR, 0));
    for (unsigned key = 0; key <= UINT16_MAX; key++) {
        readable += debug_read(&vcpu, (uint16_t)key, &value);
        writable += debug_write(&vcpu, (uint16_t)key, 0);
    }
    assert_int_equal(readable, 2 * (BREAKPOINTS + WATCHPOINTS) + 15);
    assert_int_equal(writable, 2 * (BREAKPOINTS + WATCHPOINTS) + 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_reset_state, fresh),
        cmocka_unit_test_setup(test_os_lock, fresh),
        cmocka_unit_test_setup(test_mdscr_stores_four_bits, fresh),
        cmocka_unit_test_setup(test_values_are_stored_with_reserved_bits_zero, fresh),
        cmocka_unit_test_setup(test_B06_only_the_registers_that_id_shows, fresh),
        cmocka_unit_test_setup(test_armed, fresh),
        cmocka_unit_test_setup(test_claim_tags, fresh),
        cmocka_unit_test_setup(test_external_debugger_is_absent, fresh),
        cmocka_unit_test_setup(test_B06_everything_else_is_refused, fresh),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
