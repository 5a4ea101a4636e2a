/* SPDX-License-Identifier: GPL-2.0-only */
/* arch: fake */
/* link: arch/fake/boot.c arch/fake/cpu.c arch/fake/engine.c arch/fake/fiber.c arch/fake/guest.c */
/* link: arch/fake/steps.c arch/fake/tlb.c hyp/console.c hyp/pl011.c hyp/print.c hyp/stats.c */
/* link: hyp/monitor.c hyp/monitor_show.c */
/* link: core/pvlock.c core/steal.c */
/*
 * Random machines, guests and orders of events: no interrupt, timer or wake may be lost or come
 * much too late. A failure names the seed; `test_hyp_random SEED` runs that one alone.
 */
#include <stdio.h>
#include <stdlib.h>

#include "arch/fake/expect.h"
#include "hyp/pcpu.h"

#define SEEDS 300u
#define SLICE 200u

/* A ring: each passes one token on by an SGI and sleeps without any timer. A lost wake ends it all.
 */
static unsigned passed;

static void passes_on(struct vcpu *v) {
    uint64_t before = 0; /* the token may come before our first instruction */

    for (;;) {
        while (v->arch.taken[2] == before) {
            guest_wfi(v);
        }
        before = v->arch.taken[2];
        passed++;
        guest_run(v, fake_roll(3));
        guest_sgi(v, (v->index + 1) % v->vm->config->vcpus);
    }
}

static void ring(struct vcpu *v) {
    for (unsigned i = 1; i < v->vm->config->vcpus; i++) {
        guest_cpu_on(v, i, passes_on, 0);
    }
    guest_sgi(v, 0);
    passes_on(v);
}

static void token_is_never_lost(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct fake_setup s = {.cpus = 1 + (unsigned)seed % 4, .seed = seed, .vms = 1};
        s.limit = 200000;
        s.noise = 3 + (unsigned)seed % 30;
        s.vm[0] = (struct fake_vm){.program = ring, .vcpus = 1 + (unsigned)seed % 6};
        passed = 0;
        expect_run(&s, FAKE_LIMIT);
        assert_true(passed > 1000);
    }
}

/* ---- Anything ---- */

static void anything(struct vcpu *v) {
    unsigned vcpus = v->vm->config->vcpus;

    guest_use_space(v, v->index);
    for (;;) {
        guest_access(v, fake_roll(FAKE_PAGES));
        switch (fake_roll(14)) {
        case 0:
            guest_sleep(v, fake_roll(500));
            break;
        case 1:
            guest_ptimer(v, fake_roll(700));
            break;
        case 2:
            guest_vtimer(v, fake_roll(700));
            break;
        case 3:
        case 4:
            guest_sgi(v, fake_roll(vcpus));
            break;
        case 5:
            guest_wfe(v);
            break;
        case 6:
            guest_cpu_on(v, fake_roll(vcpus), anything, 0);
            break;
        case 7: /* waits for whoever comes; the timer is the last resort */
            guest_vtimer(v, 900);
            guest_wfi(v);
            break;
        case 8:
            guest_map(v, v->index, fake_roll(FAKE_PAGES), fake_roll(FAKE_PAGES), GUEST_TLBI_LOCAL);
            break;
        default:
            guest_run(v, fake_roll(300));
        }
    }
}

static struct fake_setup random_machine(uint64_t seed) {
    struct fake_setup s = {.seed = seed, .limit = 60000, .slice = SLICE};
    uint64_t r = seed * 0x9e3779b97f4a7c15ull;

    s.cpus = 1 + (unsigned)(r >> 60) % 6;
    s.noise = (r >> 40 & 3u) == 0 ? 0 : 2 + (unsigned)(r >> 42 & 63u);
    s.vms = 1 + (unsigned)(r >> 50 & 3u);
    for (unsigned i = 0; i < s.vms; i++) {
        uint64_t cpus = r >> (8 * i) & ((1u << s.cpus) - 1);
        s.vm[i] = (struct fake_vm){.program = anything, .vcpus = 1 + (unsigned)(r >> (3 * i) & 3u)};
        s.vm[i].cpus = (r >> (30 + i) & 1u) != 0 ? cpus : 0; /* 0: all */
    }
    return s;
}

/* Everybody on one pCPU before me, for a turn each, and some more for what noise costs. */
static uint64_t bound(const struct fake_setup *s) {
    uint64_t vcpus = 0;

    for (unsigned i = 0; i < s->vms; i++) {
        vcpus += s->vm[i].vcpus;
    }
    return (vcpus + 2) * SLICE * (s->noise == 0 || s->noise > 20 ? 4 : 20);
}

static void check_vcpu(const struct fake_setup *s, const struct vcpu *v) {
    for (unsigned i = 0; i < FAKE_VIRQS; i++) {
        uint64_t open = v->arch.since[i] != UINT64_MAX ? guest_clock() - v->arch.since[i] : 0;
        if (v->power == VCPU_ON && (v->arch.latest[i] > bound(s) || open > bound(s))) {
            fail_msg("seed %lu: vm %u vcpu %u: interrupt %u came %lu ticks late, is open since %lu",
                     s->seed, v->vm->index, v->index, i, v->arch.latest[i], open);
        }
    }
}

static void run_seed(uint64_t seed) {
    struct fake_setup s = random_machine(seed);

    expect_run(&s, FAKE_LIMIT);
    for (unsigned i = 0; i < s.vms; i++) {
        for (unsigned n = 0; n < s.vm[i].vcpus; n++) {
            check_vcpu(&s, vms[i]->vcpus[n]);
        }
    }
}

static uint64_t only_seed;

static void nothing_is_lost(void **state) {
    (void)state;
    if (only_seed != 0) {
        run_seed(only_seed);
        return;
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_seed(seed);
    }
}

/* The same seed is the same run, or no failure could be looked at twice. */
static void runs_repeat(void **state) {
    static char first[65536];
    struct fake_setup s = random_machine(7);
    uint64_t exits = 0;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const struct vcpu *v;
        expect_run(&s, FAKE_LIMIT);
        v = vms[0]->vcpus[0];
        if (i == 0) {
            exits = v->exits[EXIT_HVC].count * 1000 + v->arch.loads;
            strcpy(first, fake_output());
        }
        assert_int_equal(exits, v->exits[EXIT_HVC].count * 1000 + v->arch.loads);
        assert_string_equal(first, fake_output());
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_is_never_lost),
        cmocka_unit_test(nothing_is_lost),
        cmocka_unit_test(runs_repeat),
    };

    only_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

    choose_test();
    return cmocka_run_group_tests_name("random", tests, NULL, free_machine);
}
