/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* link: core/pvlock.c core/steal.c */
/* O05: a machine's trace tells the same story as its counters, from the boot or from the middle. */
#include "arch/fake/expect.h"

#include "hyp/stats.h"
#include "hyp/trace.h"

/* Times by state of each vCPU as the records tell them. */
static struct {
    uint64_t times[FAKE_VMS][4][RUN_STATES], since[FAKE_VMS][4];
    uint32_t state[FAKE_VMS][4];
    unsigned changes, breaks, counts[TRACE_EVENT_COUNT], whys[TRACE_WHY_COUNT];
    uint64_t lost, before;
} story;

static uint64_t ring_size, start_at, stop_at;

static unsigned base64_digit(char c) {
    return c >= 'A' && c <= 'Z'   ? (unsigned)(c - 'A')
           : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 26
           : c >= '0' && c <= '9' ? (unsigned)(c - '0') + 52
           : c == '+'             ? 62
                                  : 63;
}

static size_t decode(uint8_t *out, const char *text) {
    size_t n = 0;
    uint32_t bits = 0;

    for (unsigned i = 0; text[i] != '\r'; i++) {
        if (text[i] == '=') {
            break;
        }
        bits = bits << 6 | base64_digit(text[i]);
        if (i % 4 != 0) {
            out[n++] = (uint8_t)(bits >> (6 - i % 4 * 2));
        }
    }
    return n;
}

static uint64_t varint(const uint8_t **p) {
    uint64_t value = 0;
    unsigned shift = 0;

    do {
        value |= (uint64_t)(**p & 0x7f) << shift;
        shift += 7;
    } while ((*(*p)++ & 0x80) != 0);
    return value;
}

/* A pCPU's records one after another; other pCPUs' come later: only one-pCPU machines have states
 * in order. */
static void tell(uint64_t time, uint32_t event, uint32_t who, uint32_t arg) {
    unsigned vm = who >> 8, vcpu = who & 0xff;

    assert_in_range(event, 0, TRACE_EVENT_COUNT - 1);
    story.counts[event]++;
    assert_true(time >= story.before);
    story.before = time;
    if (event == TRACE_STATE) {
        story.changes++;
        story.whys[arg >> 8]++;
        story.breaks += (arg & 15) != story.state[vm][vcpu];
        story.times[vm][vcpu][arg & 15] += time - story.since[vm][vcpu];
        story.since[vm][vcpu] = time;
        story.state[vm][vcpu] = arg >> 4 & 15;
    }
}

static uint64_t number_after(const char *line, const char *key) {
    const char *at = strstr(line, key);

    assert_non_null(at);
    return strtoull(at + strlen(key), NULL, 10);
}

/* Reads what came out of the serial port. The counters' totals come first. */
static void read_dump(void) {
    static uint64_t to[FAKE_VMS][4], totals[FAKE_VMS][4][RUN_STATES];
    static const char *const names[] = {" off=", " blocked=", " runnable=", " running="};
    unsigned ends = 0;

    memset(&story, 0, sizeof(story));
    for (const char *l = fake_output(); *l != '\0'; l = strchr(l, '\n') + 1) {
        if (strncmp(l, "paravane: trace vcpu ", 21) == 0) {
            uint64_t vm = number_after(l, "vm="), vcpu = number_after(l, " vcpu=");
            story.since[vm][vcpu] = number_after(l, " from=");
            to[vm][vcpu] = number_after(l, " to=");
            for (unsigned s = 0; s < RUN_STATES; s++) {
                totals[vm][vcpu][s] = number_after(l, names[s]);
            }
            story.state[vm][vcpu] = start_at == 0 ? RUN_OFF : UINT32_MAX;
        } else if (strncmp(l, "paravane: trace data ", 21) == 0) {
            uint8_t bytes[256] = {0};
            const uint8_t *p = bytes;
            uint64_t time = number_after(l, " time=");
            const char *text = strchr(strstr(l, " time=") + 1, ' ') + 1;
            size_t n = decode(bytes, text);
            while (p < bytes + n) {
                uint32_t event = *p++, who = (uint32_t)varint(&p), arg = (uint32_t)varint(&p);
                uint64_t step = varint(&p);
                time += step >> 1 ^ (0 - (step & 1));
                if (event == TRACE_STATE && story.state[who >> 8][who & 0xff] == UINT32_MAX) {
                    story.state[who >> 8][who & 0xff] = arg & 15;
                }
                tell(time, event, who, arg);
            }
        } else if (strncmp(l, "paravane: trace end records", 27) == 0) {
            ends++;
            story.lost = number_after(l, " lost=");
        }
    }
    assert_int_equal(ends, 1);
    for (unsigned m = 0; m < vm_count && story.lost == 0; m++) {
        for (unsigned i = 0; i < vms[m]->config->vcpus; i++) {
            if (story.state[m][i] == UINT32_MAX) { /* nothing happened to it */
                story.state[m][i] = RUN_OFF;
            }
            story.times[m][i][story.state[m][i]] += to[m][i] - story.since[m][i];
            for (unsigned s = 0; s < RUN_STATES; s++) {
                assert_int_equal(story.times[m][i][s], totals[m][i][s]);
            }
        }
    }
}

static void works_then_off(struct vcpu *v) {
    for (unsigned i = 0; i < 60; i++) {
        guest_run(v, i % 3 == 0 ? 3 * FAKE_SLICE : 500);
        guest_sleep(v, 1500);
        guest_wfe(v);
    }
    guest_system_off(v);
}

static void start_or_stop(uint64_t start) {
    if (start != 0) {
        assert_true(trace_start());
        assert_false(trace_start());
    } else {
        assert_true(trace_stop());
        assert_false(trace_stop());
        while (trace_dump_step()) {
        }
        assert_true(trace_dump_step()); /* it can be had again */
    }
}

static void prepare(void) {
    trace_boot(ring_size);
    if (start_at != 0) {
        assert_true(trace_stop());
        fake_at(fake_started() + start_at, 0, start_or_stop, 1);
        fake_at(fake_started() + stop_at, 0, start_or_stop, 0);
    }
}

static void run(uint64_t size, uint64_t start, uint64_t stop) {
    struct fake_setup s = {.cpus = 1, .vms = 3, .seed = 3};

    for (unsigned i = 0; i < s.vms; i++) {
        s.vm[i] = (struct fake_vm){.program = works_then_off, .vcpus = 1 + i};
    }
    ring_size = size;
    start_at = start;
    stop_at = stop;
    fake_prepare = prepare;
    expect_run(&s, FAKE_OFF);
    fake_prepare = NULL;
}

static void whole_run(void **state) {
    uint64_t switches = 0;

    (void)state;
    run(1u << 20, 0, 0);
    read_dump();
    assert_int_equal(story.lost, 0);
    assert_int_equal(story.breaks, 0);
    for (unsigned m = 0; m < vm_count; m++) {
        switches += vms[m]->vcpus[0]->sched.switches;
    }
    /* onto the pCPU, off it, and runnable in between for all but the last */
    assert_in_range(story.changes, 2 * switches, 3 * switches);
    assert_int_equal(story.counts[TRACE_EXIT], story.counts[TRACE_ENTER]);
    assert_in_range(story.counts[TRACE_YIELD], 3 * 59, 3 * 60);
    assert_in_range(story.counts[TRACE_TIMER], 1, 3 * 60);
    assert_int_equal(story.counts[TRACE_VM], 3 * 5); /* loading, running, stopping, loading, off */
    assert_true(story.whys[TRACE_WHY_SLICE] > 10 && story.whys[TRACE_WHY_PREEMPTION] > 10);
    assert_true(story.whys[TRACE_WHY_YIELD] > 10 && story.whys[TRACE_WHY_BLOCK] > 10);
    assert_int_equal(story.whys[TRACE_WHY_MIGRATION], 0);
}

static void from_the_middle(void **state) {
    (void)state;
    run(1u << 20, 50000, 150000);
    read_dump();
    assert_int_equal(story.lost, 0);
    assert_int_equal(story.breaks, 0);
    assert_true(story.changes > 50);
}

/* Too small a ring: the number of records and of those that were lost say how much. */
static void small_ring(void **state) {
    unsigned all, kept = 0;

    (void)state;
    run(1u << 20, 0, 0);
    read_dump();
    all = story.changes + story.counts[TRACE_EXIT] + story.counts[TRACE_ENTER];
    for (unsigned i = 0; i < TRACE_EVENT_COUNT; i++) {
        kept += story.counts[i];
    }
    assert_true(kept >= all);
    all = kept;
    run(1000, 0, 0); /* 32 records */
    read_dump();
    kept = 0;
    for (unsigned i = 0; i < TRACE_EVENT_COUNT; i++) {
        kept += story.counts[i];
    }
    assert_int_equal(kept, 32);
    assert_int_equal(story.lost, all - 32);
}

static void none(void **state) {
    (void)state;
    run(0, 0, 0);
    assert_null(strstr(fake_output(), "trace"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(none, free_machine), /* first: rings stay once they are there */
        cmocka_unit_test_teardown(whole_run, free_machine),
        cmocka_unit_test_teardown(from_the_middle, free_machine),
        cmocka_unit_test_teardown(small_ring, free_machine),
    };

    choose_test();
    return cmocka_run_group_tests_name("hyp_trace", tests, NULL, NULL);
}
