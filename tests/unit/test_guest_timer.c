/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: arm64 */
/* link: arch/arm64/guest_timer.c */
/* The guests' timers: when a line is high, when it will be, and the registers of the physical one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arm64/guest_timer.h"
#include "arch/arm64/vgic.h"
#include "core/port.h"
#include "hyp/vcpu.h"
#include "hyp/vm.h"

#define ENABLE  GUEST_TIMER_ENABLE
#define IMASK   GUEST_TIMER_IMASK
#define ISTATUS GUEST_TIMER_ISTATUS

static struct vcpu vcpu;
static struct vm vm;
static uint64_t now;
static bool line;
static unsigned rises, updates;

uint64_t port_clock(void) {
    return now;
}

void vgic_set_level(struct vgic_vcpu *v, unsigned intid, bool level) {
    assert_ptr_equal(v, &vcpu.arch.vgic);
    assert_int_equal(intid, 30);
    rises += level && !line;
    line = level;
    v->own.line = level ? 1u << 30 : 0;
}

void vcpu_timer_update(struct vcpu *v, bool blocked) {
    assert_ptr_equal(v, &vcpu);
    assert_false(blocked);
    updates++;
}

static int fresh(void **state) {
    (void)state;
    memset(&vcpu, 0, sizeof(vcpu));
    memset(&vm, 0, sizeof(vm));
    vcpu.vm = &vm;
    now = 1000;
    line = false;
    rises = updates = 0;
    return 0;
}

static uint64_t get(enum guest_timer_reg reg) {
    return guest_ptimer_read(&vcpu, reg);
}

static void put(enum guest_timer_reg reg, uint64_t value) {
    guest_ptimer_write(&vcpu, reg, value);
}

/* ENABLE, IMASK, expired in all combinations: the line, ISTATUS and the deadline. */
static void test_M03_all_combinations(void **state) {
    (void)state;
    for (unsigned ctl = 0; ctl < 4; ctl++) {
        for (unsigned expired = 0; expired < 2; expired++) {
            uint64_t cval = expired ? now : now + 1;
            bool due = ctl == ENABLE && expired;

            fresh(NULL);
            assert_int_equal(guest_timer_line(ctl, cval, now), due);
            assert_int_equal(guest_timer_deadline(ctl, cval, 0),
                             ctl == ENABLE ? cval : TIMER_NEVER);
            put(GUEST_TIMER_CVAL, cval);
            put(GUEST_TIMER_CTL, ctl);
            assert_int_equal(line, due);
            assert_int_equal(get(GUEST_TIMER_CTL),
                             ctl | ((ctl & ENABLE) != 0 && expired ? ISTATUS : 0));
        }
    }
}

static void test_M03_unmask_delivers_at_once(void **state) {
    (void)state;
    put(GUEST_TIMER_CVAL, now - 1);
    put(GUEST_TIMER_CTL, ENABLE | IMASK);
    assert_false(line);
    assert_int_equal(get(GUEST_TIMER_CTL), ENABLE | IMASK | ISTATUS);
    put(GUEST_TIMER_CTL, ENABLE);
    assert_true(line);
    put(GUEST_TIMER_CTL, ENABLE | IMASK);
    assert_false(line);
    assert_int_equal(rises, 1);
}

/* ISTATUS and the reserved bits can't be written. */
static void test_M03_only_two_bits_of_ctl_are_stored(void **state) {
    (void)state;
    put(GUEST_TIMER_CVAL, UINT64_MAX);
    put(GUEST_TIMER_CTL, UINT64_MAX);
    assert_int_equal(get(GUEST_TIMER_CTL), ENABLE | IMASK);
    assert_int_equal(vcpu.arch.ptimer.ctl, ENABLE | IMASK);
}

static void test_M04_deadlines_in_the_past_and_zero(void **state) {
    static const uint64_t past[] = {0, 1, 999, 1000};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        fresh(NULL);
        put(GUEST_TIMER_CTL, ENABLE);
        put(GUEST_TIMER_CVAL, past[i]);
        assert_true(line);
        assert_true(guest_timer_deadline(ENABLE, past[i], 0) <= now);
    }
    fresh(NULL);
    put(GUEST_TIMER_TVAL, 0);
    put(GUEST_TIMER_CTL, ENABLE);
    assert_true(line);
    assert_int_equal(get(GUEST_TIMER_CVAL), 1000);
}

static void test_M04_tval_is_signed(void **state) {
    (void)state;
    put(GUEST_TIMER_TVAL, 0xffffffff);
    assert_int_equal(get(GUEST_TIMER_CVAL), 999);
    put(GUEST_TIMER_TVAL, 0x80000000);
    assert_int_equal(get(GUEST_TIMER_CVAL), (uint64_t)1000 - 0x80000000u);
    put(GUEST_TIMER_TVAL, 0x7fffffff);
    assert_int_equal(get(GUEST_TIMER_CVAL), 1000 + 0x7fffffffull);
    put(GUEST_TIMER_TVAL, 0xdeadbeef00000005); /* the upper half does not count */
    assert_int_equal(get(GUEST_TIMER_CVAL), 1005);
}

/* Reads go on downward through zero, 32 bits wide with nothing above. */
static void test_M04_tval_counts_down_past_zero(void **state) {
    (void)state;
    put(GUEST_TIMER_TVAL, 2);
    put(GUEST_TIMER_CTL, ENABLE);
    assert_int_equal(get(GUEST_TIMER_TVAL), 2);
    now += 2;
    assert_int_equal(get(GUEST_TIMER_TVAL), 0);
    now += 1;
    assert_int_equal(get(GUEST_TIMER_TVAL), 0xffffffff);
    now += 9;
    assert_int_equal(get(GUEST_TIMER_TVAL), 0xfffffff6);
}

static void test_M04_far_deadlines_do_not_fire(void **state) {
    (void)state;
    put(GUEST_TIMER_CTL, ENABLE);
    put(GUEST_TIMER_CVAL, now + 0x180000000); /* beyond the 32-bit view, which says "negative" */
    assert_false(line);
    assert_int_equal(get(GUEST_TIMER_CTL), ENABLE);
    assert_int_equal(get(GUEST_TIMER_TVAL), 0x80000000);
    put(GUEST_TIMER_CVAL, now + (1ull << 63)); /* unsigned: not in the past */
    assert_false(line);
    put(GUEST_TIMER_CVAL, UINT64_MAX);
    assert_false(line);
    assert_int_equal(guest_timer_deadline(ENABLE, UINT64_MAX, 0), TIMER_NEVER);
    now = UINT64_MAX;
    guest_ptimer_update_line(&vcpu);
    assert_true(line);
}

/* A virtual count that is behind the clock, and one that is ahead. */
static void test_M04_deadline_with_offset(void **state) {
    (void)state;
    assert_int_equal(guest_timer_deadline(ENABLE, 50, 1000), 1050);
    assert_int_equal(guest_timer_deadline(ENABLE, 0, 1000), 1000);
    assert_int_equal(guest_timer_deadline(ENABLE, UINT64_MAX, 1000), TIMER_NEVER);
    assert_int_equal(guest_timer_deadline(ENABLE, UINT64_MAX - 1000, 1000), TIMER_NEVER);
    assert_int_equal(guest_timer_deadline(ENABLE, UINT64_MAX - 1001, 1000), UINT64_MAX - 1);
    assert_int_equal(guest_timer_deadline(ENABLE, 5000, (uint64_t)-1000), 4000);
    assert_int_equal(guest_timer_deadline(ENABLE, 999, (uint64_t)-1000), 0);
    assert_int_equal(guest_timer_deadline(ENABLE | IMASK, 50, 1000), TIMER_NEVER);
    assert_int_equal(guest_timer_deadline(0, 0, 0), TIMER_NEVER);
}

/* Shorter and longer again; each write re-arms the software timer. */
static void test_M04_reprogramming(void **state) {
    (void)state;
    put(GUEST_TIMER_CVAL, 2000);
    put(GUEST_TIMER_CTL, ENABLE);
    put(GUEST_TIMER_CVAL, 1500);
    now = 1500;
    guest_ptimer_update_line(&vcpu);
    assert_true(line);
    put(GUEST_TIMER_CVAL, 3000);
    assert_false(line);
    now = 2000;
    guest_ptimer_update_line(&vcpu);
    assert_false(line);
    now = 3000;
    guest_ptimer_update_line(&vcpu);
    guest_ptimer_update_line(&vcpu);
    assert_true(line);
    assert_int_equal(rises, 2);
    assert_int_equal(updates, 4);
}

/* A long pause: the 32-bit view has wrapped, the timer is expired all the same. */
static void test_M06_long_pause(void **state) {
    static const uint64_t pauses[] = {40000000000, 0x80000000, 0x100000000, 0x17fffffff};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        fresh(NULL);
        put(GUEST_TIMER_TVAL, 1000000000);
        put(GUEST_TIMER_CTL, ENABLE);
        assert_false(line);
        now += 1000000000 + pauses[i];
        assert_int_equal(get(GUEST_TIMER_CTL), ENABLE | ISTATUS);
        guest_ptimer_update_line(&vcpu);
        guest_ptimer_update_line(&vcpu);
        assert_true(line);
        assert_int_equal(rises, 1);
    }
}

/* 10 hours at 1 GHz and at 24 MHz: no overflow. */
static void test_M02_long_deadline(void **state) {
    (void)state;
    put(GUEST_TIMER_CTL, ENABLE);
    put(GUEST_TIMER_CVAL, now + 36000ull * 1000000000);
    assert_false(line);
    assert_int_equal(guest_timer_deadline(ENABLE, vcpu.arch.ptimer.cval, 0),
                     now + 36000ull * 1000000000);
    now += 36000ull * 1000000000 - 1;
    guest_ptimer_update_line(&vcpu);
    assert_false(line);
    now += 1;
    guest_ptimer_update_line(&vcpu);
    assert_true(line);
}

static void test_reset_takes_the_line_down(void **state) {
    (void)state;
    put(GUEST_TIMER_CTL, ENABLE);
    assert_true(line);
    guest_ptimer_reset(&vcpu);
    assert_false(line);
    assert_int_equal(get(GUEST_TIMER_CTL), 0);
    assert_int_equal(get(GUEST_TIMER_CVAL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_M03_all_combinations, fresh),
        cmocka_unit_test_setup(test_M03_unmask_delivers_at_once, fresh),
        cmocka_unit_test_setup(test_M03_only_two_bits_of_ctl_are_stored, fresh),
        cmocka_unit_test_setup(test_M04_deadlines_in_the_past_and_zero, fresh),
        cmocka_unit_test_setup(test_M04_tval_is_signed, fresh),
        cmocka_unit_test_setup(test_M04_tval_counts_down_past_zero, fresh),
        cmocka_unit_test_setup(test_M04_far_deadlines_do_not_fire, fresh),
        cmocka_unit_test_setup(test_M04_deadline_with_offset, fresh),
        cmocka_unit_test_setup(test_M04_reprogramming, fresh),
        cmocka_unit_test_setup(test_M06_long_pause, fresh),
        cmocka_unit_test_setup(test_M02_long_deadline, fresh),
        cmocka_unit_test_setup(test_reset_takes_the_line_down, fresh),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
