/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/fake/fiber.c */
/*
 * The real core/vmid.c with two or three CPUs in it at once, which can be stopped before each
 * access that others may see: every interleaving of short scenes, one after the other. After each
 * entry: the number is nobody else's, the CPU does not remember another VM under it, and it is the
 * same for all vCPUs of the VM.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "arch/fake/fiber.h"
#include "core/spinlock.h"

static void step_at(const void *word);
static void take_lock(struct spinlock *lock);
static void give_lock(struct spinlock *lock);

/* A macro does not expand inside itself: the inner names are the compiler's. */
#define __atomic_load_n(p, o)       (step_at(p), __atomic_load_n(p, o))
#define __atomic_store_n(p, v, o)   (step_at(p), __atomic_store_n(p, v, o))
#define __atomic_fetch_or(p, v, o)  (step_at(p), __atomic_fetch_or(p, v, o))
#define __atomic_fetch_and(p, v, o) (step_at(p), __atomic_fetch_and(p, v, o))
#define __atomic_compare_exchange_n(p, e, v, w, s, f)                                              \
    (step_at(p), __atomic_compare_exchange_n(p, e, v, w, s, f))
/* Whoever waits for the lock can't go on before it is free: else there were no end of choices. */
#define spin_lock(l)   take_lock(l)
#define spin_unlock(l) give_lock(l)

#include "core/vmid.c"

#define CPUS    3u
#define VMS     20u
#define NOBODY  UINT32_MAX
#define DEEPEST 200u

/* ---- The machine ---- */

static struct vmid_space space;
static struct vmid_cpu cpus[CPUS];
static struct vmid vms[VMS];
static uint32_t tlb[CPUS][16], life[VMS], inside[CPUS], number_on[CPUS], pinned[VMS];

static void enter(unsigned cpu, unsigned vm) {
    uint32_t answer = vmid_enter(&space, &cpus[cpu], &vms[vm]), number = answer & VMID_NUMBER;

    assert_in_range(number, 1, 15);
    if ((answer & VMID_FLUSH) != 0) {
        memset(tlb[cpu], 0, sizeof(tlb[cpu]));
    }
    if (tlb[cpu][number] != 0) {
        assert_int_equal(tlb[cpu][number], vm << 8 | (life[vm] + 1));
    }
    tlb[cpu][number] = vm << 8 | (life[vm] + 1);
    inside[cpu] = vm;
    number_on[cpu] = number;
    assert_true(pinned[vm] == 0 || pinned[vm] == number);
    for (unsigned i = 0; i < CPUS; i++) {
        if (i != cpu && inside[i] != NOBODY) {
            assert_int_equal(inside[i] == vm, number_on[i] == number);
        }
    }
}

/*
 * What a CPU does: a letter each. a..t: enters that VM. A..T: that VM begins anew. '.': out of the
 * guest, '-': and idle from then on. '+' and '=': VM t is pinned, and no longer.
 */
static void act(unsigned cpu, const char *script) {
    for (; *script != '\0'; script++) {
        char c = *script;
        inside[cpu] = NOBODY;
        if (c >= 'a') {
            enter(cpu, (unsigned)(c - 'a'));
        } else if (c >= 'A' && c < 'A' + (int)VMS) {
            assert_true(vmid_forget(&space, &vms[c - 'A']));
            life[c - 'A']++;
        } else if (c == '-') {
            vmid_leave(&cpus[cpu]);
        } else if (c == '+') {
            pinned[VMS - 1] = vmid_pin(&space, &vms[VMS - 1]);
            assert_int_not_equal(pinned[VMS - 1], 0);
        } else if (c == '=') {
            pinned[VMS - 1] = 0;
            vmid_unpin(&space, &vms[VMS - 1]);
        }
    }
}

/* ---- One after the other, as the choices say ---- */

struct actor {
    struct fiber fiber;
    const char *script;
    bool done, waits;
};

/* Who went on at a point of a run, whom else could be chosen, and who has been. Sets of actors. */
struct choice {
    unsigned who, able, tried;
};

static struct actor actors[CPUS];
static struct fiber stage;
static unsigned actor_count, acting = CPUS; /* CPUS: nobody, the test itself */
static struct choice choices[DEEPEST];
static unsigned recorded, most_switches;

static void step(void) {
    if (acting < CPUS) {
        fiber_switch(&actors[acting].fiber, &stage);
    }
}

/* Nobody without the lock looks at the generation, or at another CPU's word. */
static void step_at(const void *word) {
    bool alone = space.lock.tickets == acting + 1 && acting < CPUS && word == &cpus[acting].active;

    if (!alone && word != &space.generation) {
        step();
    }
}

static void take_lock(struct spinlock *lock) {
    step();
    while (lock->tickets != 0) {
        assert_true(acting < CPUS);
        actors[acting].waits = true;
        step();
    }
    lock->tickets = acting + 1;
}

static void give_lock(struct spinlock *lock) {
    lock->tickets = 0;
    for (unsigned i = 0; i < CPUS; i++) {
        actors[i].waits = false;
    }
}

static void actor_main(void *arg) {
    struct actor *a = arg;

    act((unsigned)(a - actors), a->script);
    a->done = true;
    for (;;) {
        step();
    }
}

static void play(void) {
    unsigned last = 0, switches = 0;

    for (unsigned depth = 0;; depth++) {
        struct choice *c = &choices[depth];
        assert_true(depth < DEEPEST);
        if (depth == recorded) {
            *c = (struct choice){0, 0, 0};
            for (unsigned i = 0; i < actor_count; i++) {
                c->able |= !actors[i].done && !actors[i].waits ? 1u << i : 0;
            }
            if (c->able == 0) {
                return;
            }
            if ((c->able >> last & 1u) != 0 && switches == most_switches) {
                c->able = 1u << last; /* it goes on until it is done or must wait */
            }
            c->who = (unsigned)__builtin_ctz(c->able);
            c->tried = 1u << c->who;
            recorded++;
        }
        switches += c->who != last && !actors[last].done && !actors[last].waits;
        last = acting = c->who;
        fiber_switch(&stage, &actors[acting].fiber);
        acting = CPUS;
    }
}

/* The next run is the same up to the last point at which somebody was not yet chosen. */
static bool next_run(void) {
    while (recorded > 0) {
        struct choice *c = &choices[recorded - 1];
        unsigned left = c->able & ~c->tried;
        if (left != 0) {
            c->who = (unsigned)__builtin_ctz(left);
            c->tried |= 1u << c->who;
            return true;
        }
        recorded--;
    }
    return false;
}

struct scene {
    unsigned used, cpus;
    const char *first; /* have the lowest numbers: what is given out next after a roll-over */
    const char *before[CPUS], *then[CPUS];
};

/* The first VMs, and `used` others from s down, get numbers; then each CPU does what it did before.
 */
static void set_up(const struct scene *s) {
    memset(vms, 0, sizeof(vms));
    memset(tlb, 0xff, sizeof(tlb));
    memset(life, 0, sizeof(life));
    memset(pinned, 0, sizeof(pinned));
    assert_true(vmid_init(&space, 4, CPUS));
    for (unsigned i = 0; i < CPUS; i++) {
        vmid_add_cpu(&space, &cpus[i]);
        inside[i] = NOBODY;
    }
    for (unsigned i = 0; i < CPUS; i++) {
        act(i, s->first);
        for (unsigned k = 0; k < s->used; k++) {
            enter(i, VMS - 2 - k);
        }
        act(i, "-");
    }
    for (unsigned i = 0; i < CPUS; i++) {
        act(i, s->before[i]);
    }
}

/* Plays all of its runs. Returns how many times somebody rolled over in the midst of one. */
static uint64_t play_all(const struct scene *s, unsigned switches) {
    uint64_t runs = 0, rolled = 0;

    actor_count = s->cpus;
    recorded = 0;
    most_switches = switches;
    do {
        set_up(s);
        uint64_t before = vmid_rollovers(&space);
        for (unsigned i = 0; i < s->cpus; i++) {
            actors[i].script = s->then[i];
            actors[i].done = actors[i].waits = false;
            fiber_begin(&actors[i].fiber, actor_main, &actors[i]);
        }
        play();
        for (unsigned i = 0; i < s->cpus; i++) {
            assert_true(actors[i].done);
        }
        rolled += vmid_rollovers(&space) - before;
        runs++;
    } while (next_run());
    print_message("# %s | %s | %s: %lu runs, %lu roll-overs\n", s->then[0], s->then[1],
                  s->cpus > 2 ? s->then[2] : "", runs, rolled);
    assert_true(runs > 50);
    return rolled;
}

static void play_scenes(const struct scene *scenes, unsigned count, unsigned switches) {
    for (unsigned i = 0; i < count; i++) {
        assert_true(play_all(&scenes[i], switches) > 0);
    }
}

/* CPU 0 rolls over while CPU 1 switches, goes idle, comes back, stays. */
static void a_roll_over_against_another_cpu(void **state) {
    static const struct scene scenes[] = {
        {13, 2, "ab", {"", "a", "b"}, {"c", "-a"}}, {13, 2, "ab", {"", "ab", ""}, {"c", "aa"}},
        {13, 2, "ab", {"a", "b", ""}, {"c", "ab"}}, {14, 2, "a", {"", "a", ""}, {"b", "c"}},
        {14, 2, "a", {"a", "", ""}, {"b", "a-"}},   {13, 2, "ba", {"", "a", "b"}, {".c", "b-b"}},
        {13, 2, "ba", {"", "a", ""}, {"c", "b"}},
    };

    (void)state;
    play_scenes(scenes, sizeof(scenes) / sizeof(scenes[0]), UINT_MAX);
}

/* A VM begins anew, or is pinned, while another CPU rolls over or replaces its vCPU. */
static void ends_and_pins(void **state) {
    static const struct scene scenes[] = {
        {13, 2, "ab", {"a", ".", "b"}, {".A", "cd"}}, {14, 2, "a", {"", "a.", "s"}, {"Aa", ".b"}},
        {12, 2, "ab", {"", "a", "t"}, {"+", ".bc"}},  {13, 2, "a", {"t", "a", "t"}, {"+t=", "bc"}},
        {13, 2, "ba", {"", "a.", ""}, {"Aac", "b"}},  {13, 2, "ab", {"", "ba.", "b"}, {"Aac", "b"}},
    };

    (void)state;
    play_scenes(scenes, sizeof(scenes) / sizeof(scenes[0]), UINT_MAX);
}

/* Three at once, all runs in which up to four times one that could go on must not: one rolls over,
 * one enters what the other has just left. */
static void three_cpus(void **state) {
    static const struct scene scenes[] = {
        {13, 3, "ab", {"", "ab", "b"}, {"d", "a", "a"}},
        {13, 3, "ab", {"", "a", "a"}, {"d", "-", "a"}},
        {13, 3, "ab", {"", "ab", "b"}, {"d", "a", "-"}},
    };

    (void)state;
    play_scenes(scenes, sizeof(scenes) / sizeof(scenes[0]), 4);
}

uint64_t port_clock(void) {
    return 0;
}

void port_kick_cpu(unsigned cpu) {
    (void)cpu;
    fail_msg("a CPU was forced out of its guest");
}

unsigned port_this_cpu(void) {
    return 0;
}

void port_relax(void) {
    fail_msg("the real lock is not used here");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_roll_over_against_another_cpu),
        cmocka_unit_test(ends_and_pins),
        cmocka_unit_test(three_cpus),
    };
    int failed;

    for (unsigned i = 0; i < CPUS; i++) {
        fiber_init(&actors[i].fiber, 256u << 10);
    }
    if (getenv("FAKE_ONLY") != NULL) {
        cmocka_set_test_filter(getenv("FAKE_ONLY"));
    }
    failed = cmocka_run_group_tests_name("vmid_interleave", tests, NULL, NULL);
    for (unsigned i = 0; i < CPUS; i++) {
        fiber_free(&actors[i].fiber);
    }
    return failed;
}
