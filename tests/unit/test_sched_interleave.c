/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/sched_watch.c core/trace.c */
/*
 * The scheduler with two or three pCPUs inside it at once, stopped at every atomic access and port
 * call: many random interleavings of a few short scenes. After each nobody may be overlooked: no
 * lost wake, nobody who waits beside an idle pCPU, nobody who runs twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>

static void breakpoint(void);

/* A macro does not expand inside itself: the inner names are the compiler's. */
#define __atomic_load_n(p, o)        (breakpoint(), __atomic_load_n(p, o))
#define __atomic_store_n(p, v, o)    (breakpoint(), __atomic_store_n(p, v, o))
#define __atomic_fetch_add(p, v, o)  (breakpoint(), __atomic_fetch_add(p, v, o))
#define __atomic_fetch_or(p, v, o)   (breakpoint(), __atomic_fetch_or(p, v, o))
#define __atomic_fetch_and(p, v, o)  (breakpoint(), __atomic_fetch_and(p, v, o))
#define __atomic_exchange_n(p, v, o) (breakpoint(), __atomic_exchange_n(p, v, o))

#include "core/sched.c"
#include "core/sched_yield.c"

#define CPUS   3u
#define SLICE  2000u
#define STACK  65536u
#define ROUNDS 4000u

struct actor {
    ucontext_t context;
    void (*act)(unsigned cpu);
    bool done;
    unsigned char stack[STACK];
};

static struct actor actors[CPUS];
static ucontext_t stage;
static unsigned acting; /* CPUS: nobody, the test itself runs */
static uint64_t now_ticks;
static uint64_t seed;
static bool kicked[CPUS];
static struct sched_entity entity[4];
static struct sched_entity *cur[CPUS];
static bool pending[4]; /* why the entity must not block */

static uint32_t roll(uint32_t limit) {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33) % limit;
}

static void breakpoint(void) {
    if (acting < CPUS) {
        struct actor *self = &actors[acting];

        swapcontext(&self->context, &stage);
    }
}

uint64_t port_clock(void) {
    breakpoint();
    return ++now_ticks;
}

void port_kick_cpu(unsigned cpu) {
    breakpoint();
    kicked[cpu] = true;
}

unsigned port_this_cpu(void) {
    return 0; /* asked for by traces only, and none is taken here */
}

void port_relax(void) {
    assert_true(acting < CPUS);
    breakpoint();
}

static void actor_main(void) {
    unsigned self = acting;

    actors[self].act(self);
    actors[self].done = true;
    acting = CPUS;
    setcontext(&stage);
}

static void start_actor(unsigned cpu, void (*act)(unsigned cpu)) {
    struct actor *a = &actors[cpu];

    a->act = act;
    a->done = false;
    getcontext(&a->context);
    a->context.uc_stack.ss_sp = a->stack;
    a->context.uc_stack.ss_size = STACK;
    a->context.uc_link = NULL;
    makecontext(&a->context, actor_main, 0);
}

/* Lets the actors go on in random order, mostly few steps each time, until all are done. */
static void play(unsigned count) {
    for (unsigned left = count; left > 0;) {
        unsigned who = roll(count);

        for (uint32_t steps = 1 + roll(roll(4) == 0 ? 80 : 6); steps > 0 && !actors[who].done;
             steps--) {
            acting = who;
            swapcontext(&stage, &actors[who].context);
            acting = CPUS;
            left -= actors[who].done ? 1 : 0;
        }
    }
}

static void pick(unsigned cpu, enum run_state state) {
    struct sched_entity *prev = cur[cpu];
    struct sched_entity *next = sched_pick(cpu, prev, state);

    cur[cpu] = next;
    if (prev != NULL && prev != next) {
        sched_released(prev);
    }
}

static void respond(unsigned cpu) {
    if (kicked[cpu] || sched_need_pick(cpu)) {
        kicked[cpu] = false;
        if (cur[cpu] == NULL || sched_need_pick(cpu)) {
            pick(cpu, RUN_RUNNABLE);
        }
    }
}

static void act_block(unsigned cpu) {
    struct sched_entity *e = cur[cpu];

    sched_block_prepare(e);
    breakpoint();
    if (!pending[e - entity]) {
        pick(cpu, RUN_BLOCKED);
    }
}

static void wake(unsigned i) {
    pending[i] = true;
    sched_wake(&entity[i]);
}

static void act_wake0(unsigned cpu) {
    (void)cpu;
    wake(0);
}

static void act_wake2(unsigned cpu) {
    (void)cpu;
    wake(2);
}

static void act_wake3(unsigned cpu) {
    (void)cpu;
    wake(3);
}

static void act_pick(unsigned cpu) {
    pick(cpu, RUN_RUNNABLE);
}

static void act_respond(unsigned cpu) {
    respond(cpu);
    breakpoint();
    respond(cpu);
}

static void begin(uint64_t round) {
    acting = CPUS;
    seed = round * 977 + 1;
    memset(kicked, 0, sizeof kicked);
    memset(cur, 0, sizeof cur);
    memset(pending, 0, sizeof pending);
    sched_init(CPUS, SLICE);
    for (unsigned cpu = 0; cpu < CPUS; cpu++) {
        sched_cpu_online(cpu);
        pick(cpu, RUN_RUNNABLE);
    }
}

static void add(unsigned i, uint64_t mask) {
    struct cpu_set set = cpu_set_none();

    set.bits[0] = mask;
    sched_entity_init(&entity[i], 256, set);
}

/* Puts entity i on the idle pCPU `cpu`. */
static void put(unsigned i, unsigned cpu) {
    uint64_t allowed = entity[i].allowed.bits[0];

    entity[i].allowed.bits[0] = 1ull << cpu;
    entity[i].cpu = (uint16_t)cpu;
    sched_wake(&entity[i]);
    entity[i].allowed.bits[0] = allowed;
    kicked[cpu] = false;
    pick(cpu, RUN_RUNNABLE);
    assert_ptr_equal(cur[cpu], &entity[i]);
}

/* Every pCPU answers its kicks; then who was woken runs or waits where nobody is idle. */
static void check_settled(unsigned entities) {
    for (unsigned i = 0; i < 4 * CPUS; i++) {
        respond(i % CPUS);
    }
    for (unsigned i = 0; i < entities; i++) {
        unsigned running = 0;

        for (unsigned cpu = 0; cpu < CPUS; cpu++) {
            if (cur[cpu] == &entity[i]) {
                assert_int_equal(entity[i].cpu, cpu);
                running++;
            }
            if (cur[cpu] == NULL && cpu_set_has(&entity[i].allowed, cpu)) {
                assert_int_not_equal(entity[i].state, RUN_RUNNABLE);
            }
        }
        assert_int_equal(running, entity[i].state == RUN_RUNNING);
        assert_true(!pending[i] || entity[i].state >= RUN_RUNNABLE);
    }
}

/* One blocks while another pCPU wakes it. */
static void test_block_meets_wake(void **state) {
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        begin(round);
        add(0, round % 2 == 0 ? 1 : 7);
        add(1, 7);
        put(0, 0);
        if (round % 4 < 2) {
            put(1, 1);
        }
        start_actor(0, act_block);
        start_actor(1, act_wake0);
        start_actor(2, act_wake0);
        play(3);
        check_settled(2);
    }
}

/* One that was on a busy pCPU is woken while another pCPU goes idle. */
static void test_wake_meets_idle(void **state) {
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        begin(round);
        add(0, 1);
        add(1, 2);
        add(2, 3);
        put(2, 0);
        pick(0, RUN_BLOCKED);
        put(0, 0);
        put(1, 1);
        start_actor(0, act_wake2);
        start_actor(1, act_block);
        play(2);
        check_settled(3);
    }
}

/* One is displaced while another pCPU goes idle and a third one, which may not run it, as well. */
static void test_displaced_meets_idle(void **state) {
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        begin(round);
        add(0, 1);
        add(1, 2);
        add(2, 3);
        add(3, 4);
        put(0, 0);
        pick(0, RUN_BLOCKED);
        put(2, 0);
        put(1, 1);
        put(3, 2);
        now_ticks += 10 * SLICE;
        wake(0);
        start_actor(0, act_pick);
        start_actor(1, act_block);
        start_actor(2, act_block);
        play(3);
        check_settled(4);
    }
}

/* Two are woken by two pCPUs while a third one, idle, comes to look. */
static void test_two_wakes_meet_one_idle(void **state) {
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        begin(round);
        add(0, 1);
        add(1, 2);
        add(2, 7);
        add(3, round % 2 == 0 ? 7 : 6);
        put(2, 0);
        pick(0, RUN_BLOCKED);
        put(3, 1);
        pick(1, RUN_BLOCKED);
        put(0, 0);
        put(1, 1);
        start_actor(0, act_wake2);
        start_actor(1, act_wake3);
        start_actor(2, act_respond);
        play(3);
        check_settled(4);
    }
}

/* A slice ends, and the first in the queue is sent on, while a third pCPU goes idle. */
static void test_send_meets_idle(void **state) {
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        begin(round);
        add(0, 1);
        add(1, 2);
        add(2, 7);
        add(3, 4);
        put(2, 1);
        pick(1, RUN_BLOCKED);
        put(0, 0); /* the furthest ahead, by a few ticks */
        put(3, 2);
        put(1, 1);
        wake(2);
        now_ticks += 3 * SLICE;
        start_actor(0, act_respond);
        start_actor(1, act_pick);
        start_actor(2, act_block); /* looks at pCPU 0 first, where entity 2 comes to */
        if (round % 16 == 0) {
            play(2); /* to see that it is sent, if nobody comes between */
            assert_int_equal(entity[2].cpu, 0);
        } else {
            play(3);
        }
        check_settled(4);
    }
}

/* Blocks; whoever comes then deals with what it was woken for, and blocks too. */
static void act_block_all(unsigned cpu) {
    for (unsigned i = 0; i < 4 && cur[cpu] != NULL; i++) {
        act_block(cpu);
        if (cur[cpu] != NULL) {
            pending[cur[cpu] - entity] = false;
        }
    }
}

/* One is woken again and again while it moves to another pCPU, runs there, and blocks. */
static void test_wake_meets_move(void **state) {
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        begin(round);
        add(0, 1);
        add(2, 7);
        add(3, 4);
        add(1, 2);
        put(2, 0);
        pick(0, RUN_BLOCKED);
        put(0, 0);
        put(1, 1);
        put(3, 2);
        wake(2);
        pending[2] = false;
        start_actor(0, act_wake2);
        start_actor(1, act_wake2);
        start_actor(2, act_block_all);
        play(3);
        check_settled(4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_meets_wake),     cmocka_unit_test(test_wake_meets_idle),
        cmocka_unit_test(test_displaced_meets_idle), cmocka_unit_test(test_two_wakes_meet_one_idle),
        cmocka_unit_test(test_send_meets_idle),      cmocka_unit_test(test_wake_meets_move),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
