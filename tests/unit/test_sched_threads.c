/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/sched.c core/sched_yield.c core/sched_watch.c core/trace.c */
/*
 * The scheduler on real threads, one for each pCPU: nobody runs twice at once, no wake is lost, no
 * pCPU sleeps beside work. Made for the thread and address sanitizers as much as for itself.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "core/port.h"
#include "core/sched.h"

#define CPUS     4u
#define ENTITIES 16u
#define PICKS    1000000u
#define SLICE    40u
#define NOBODY   UINT32_MAX

struct job {
    struct sched_entity e;
    uint32_t owner;     /* atomic: pCPU that has its registers, or NOBODY */
    uint32_t pending;   /* atomic: why it must not block */
    uint64_t registers; /* plain: only whoever runs it may touch this */
    uint64_t born;
};

struct pcpu {
    _Alignas(128) uint32_t kicked; /* atomic */
    uint32_t idle;                 /* atomic */
    struct job *cur;
    uint64_t random;
    uint64_t work;
    unsigned number;
};

static struct job jobs[ENTITIES];
static struct pcpu pcpus[CPUS];
static uint64_t ticks;  /* atomic */
static uint32_t picks;  /* atomic */
static uint32_t faults; /* atomic: a thread can't fail a test */
static uint32_t drain;  /* atomic: no new wakes; whoever runs blocks */
static uint32_t stop;   /* atomic */

uint64_t port_clock(void) {
    return __atomic_add_fetch(&ticks, 1, __ATOMIC_RELAXED);
}

void port_kick_cpu(unsigned cpu) {
    __atomic_store_n(&pcpus[cpu].kicked, 1, __ATOMIC_RELEASE);
}

unsigned port_this_cpu(void) {
    return 0; /* asked for by traces only, and none is taken here */
}

/* Whom we wait for may need this CPU; but to ask for that each time costs more than the waiting. */
void port_relax(void) {
    static _Thread_local unsigned asked;

    if (++asked % 64 == 0) {
        sched_yield();
    }
}

static uint32_t roll(struct pcpu *p, uint32_t limit) {
    p->random = p->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(p->random >> 33) % limit;
}

static void fault_unless(bool good) {
    if (!good) {
        __atomic_add_fetch(&faults, 1, __ATOMIC_RELAXED);
    }
}

static void take(struct pcpu *p, struct job *job) {
    uint32_t nobody = NOBODY;

    fault_unless(__atomic_compare_exchange_n(&job->owner, &nobody, p->number, false,
                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    fault_unless(cpu_set_has(&job->e.allowed, p->number));
    job->registers++;
}

static void pick(struct pcpu *p, enum run_state state) {
    struct job *prev = p->cur;
    struct job *next;

    next = (struct job *)sched_pick(p->number, prev != NULL ? &prev->e : NULL, state);
    __atomic_add_fetch(&picks, 1, __ATOMIC_RELAXED);
    if (prev != NULL && prev != next) {
        prev->registers++;
        __atomic_store_n(&prev->owner, NOBODY, __ATOMIC_RELAXED);
        sched_released(&prev->e);
    }
    if (next != NULL && next != prev) {
        take(p, next);
    }
    p->cur = next;
    __atomic_store_n(&p->idle, next == NULL, __ATOMIC_RELEASE);
}

static void wake(struct job *job) {
    __atomic_store_n(&job->pending, 1, __ATOMIC_RELAXED);
    sched_wake(&job->e);
}

static void block(struct pcpu *p) {
    sched_block_prepare(&p->cur->e);
    if (__atomic_exchange_n(&p->cur->pending, 0, __ATOMIC_RELAXED) == 0) {
        pick(p, RUN_BLOCKED);
    }
}

static void play(struct pcpu *p) {
    bool draining = __atomic_load_n(&drain, __ATOMIC_ACQUIRE) != 0;
    bool kicked = __atomic_exchange_n(&p->kicked, 0, __ATOMIC_ACQUIRE) != 0;

    if (p->cur == NULL) {
        if (kicked || sched_need_pick(p->number)) {
            pick(p, RUN_RUNNABLE);
        } else if (!draining && roll(p, 4) == 0) {
            wake(&jobs[roll(p, ENTITIES)]);
        } else {
            sched_yield();
        }
        return;
    }
    p->cur->registers++;
    p->work++;
    if (sched_need_pick(p->number) || roll(p, 64) == 0) {
        pick(p, RUN_RUNNABLE);
    } else if (draining || roll(p, 4) == 0) {
        block(p);
    } else if (roll(p, 3) == 0) {
        wake(&jobs[roll(p, ENTITIES)]);
    } else if (roll(p, 16) == 0) {
        uint64_t times[RUN_STATES];

        sched_times(&jobs[roll(p, ENTITIES)].e, times);
    }
}

static void *pcpu_main(void *arg) {
    struct pcpu *p = arg;

    sched_cpu_online(p->number);
    pick(p, RUN_RUNNABLE);
    while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0) {
        play(p);
    }
    return NULL;
}

static bool all_at_rest(void) {
    for (unsigned i = 0; i < CPUS; i++) {
        if (__atomic_load_n(&pcpus[i].idle, __ATOMIC_ACQUIRE) == 0 ||
            __atomic_load_n(&pcpus[i].kicked, __ATOMIC_ACQUIRE) != 0) {
            return false;
        }
    }
    for (unsigned i = 0; i < ENTITIES; i++) {
        if (__atomic_load_n(&jobs[i].pending, __ATOMIC_RELAXED) != 0) {
            return false;
        }
    }
    return true;
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void begin(void) {
    ticks = picks = faults = drain = stop = 0;
    sched_init(CPUS, SLICE);
    for (unsigned i = 0; i < ENTITIES; i++) {
        struct cpu_set set = cpu_set_all();

        if (i % 4 == 3) {
            set = cpu_set_none();
            cpu_set_add(&set, i / 4);
            cpu_set_add(&set, (i / 2) % CPUS);
        }
        jobs[i] = (struct job){.owner = NOBODY};
        sched_entity_init(&jobs[i].e, 64u << i % 5, set);
        jobs[i].born = __atomic_load_n(&ticks, __ATOMIC_RELAXED);
    }
    for (unsigned i = 0; i < CPUS; i++) {
        pcpus[i] = (struct pcpu){.number = i, .random = i + 1};
    }
}

static void check_end(void) {
    uint64_t work = 0;

    for (unsigned i = 0; i < ENTITIES; i++) {
        uint64_t times[RUN_STATES];
        uint64_t age;

        sched_times(&jobs[i].e, times);
        age = __atomic_load_n(&ticks, __ATOMIC_RELAXED) - jobs[i].born;
        assert_int_equal(
            times[RUN_OFF] + times[RUN_BLOCKED] + times[RUN_RUNNABLE] + times[RUN_RUNNING], age);
        assert_int_equal(jobs[i].e.state, RUN_BLOCKED);
        assert_int_equal(jobs[i].owner, NOBODY);
        work += jobs[i].registers - 2 * jobs[i].e.switches; /* two for coming and going */
    }
    for (unsigned i = 0; i < CPUS; i++) {
        work -= pcpus[i].work;
    }
    assert_int_equal(work, 0);
}

static void test_threads(void **state) {
    pthread_t threads[CPUS];
    unsigned naps = 0;

    (void)state;
    begin();
    for (unsigned i = 0; i < CPUS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, pcpu_main, &pcpus[i]), 0);
    }
    while (__atomic_load_n(&picks, __ATOMIC_RELAXED) < PICKS) {
        nap();
    }
    __atomic_store_n(&drain, 1, __ATOMIC_RELEASE);
    /* If a wake or a kick was lost, somebody waits for ever here. */
    while (!all_at_rest() && naps < 20000) {
        nap();
        naps++;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < CPUS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(all_at_rest());
    assert_int_equal(faults, 0);
    check_end();
}

/* --- a wake on one pCPU at the very moment when another goes idle --- */

#define ROUNDS 20000u

static struct job *tied[2]; /* the one that stays on each pCPU */
static struct job *guest;   /* the one that is woken */
static uint32_t arrived;    /* atomic */

/* Both threads go on together, or nearly. */
static void meet(uint32_t round) {
    unsigned spins = 0;

    __atomic_add_fetch(&arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < 2 * (round + 1)) {
        if (++spins > 1000) {
            sched_yield();
        }
    }
}

static void delay(struct pcpu *p) {
    for (uint32_t left = roll(p, 64); left > 0; left--) {
        __asm__ volatile("" ::: "memory");
    }
}

/* Waits until the guest runs here, which is woken while we go idle; then all is as before. */
static void receive_guest(struct pcpu *p) {
    struct timespec from, now;

    pick(p, RUN_BLOCKED);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (unsigned spins = 0; p->cur != guest; spins++) {
        if (__atomic_exchange_n(&p->kicked, 0, __ATOMIC_ACQUIRE) != 0) {
            pick(p, RUN_RUNNABLE);
        } else if (spins % 1024 == 1023) {
            clock_gettime(CLOCK_MONOTONIC, &now);
            if (now.tv_sec - from.tv_sec > 10) {
                fault_unless(false); /* it waits on the other pCPU, and nobody told us */
                return;
            }
            sched_yield();
        }
    }
    sched_block_prepare(&guest->e);
    pick(p, RUN_BLOCKED);
    sched_wake(&tied[p->number]->e);
    pick(p, RUN_RUNNABLE);
    __atomic_store_n(&p->kicked, 0, __ATOMIC_RELAXED);
}

static void *duel_main(void *arg) {
    struct pcpu *p = arg;

    for (uint32_t round = 0; round < ROUNDS; round++) {
        meet(2 * round);
        if (__atomic_load_n(&faults, __ATOMIC_RELAXED) != 0) {
            break;
        }
        delay(p);
        if (round % 2 == p->number) {
            sched_wake(&guest->e); /* it was here last, but we are busy */
        } else {
            receive_guest(p);
        }
        meet(2 * round + 1);
    }
    return NULL;
}

static void test_wake_meets_idle(void **state) {
    pthread_t threads[2];

    (void)state;
    ticks = picks = faults = arrived = 0;
    sched_init(2, 1ull << 40); /* no slices */
    for (unsigned i = 0; i < 2; i++) {
        struct cpu_set set = cpu_set_none();

        cpu_set_add(&set, i);
        pcpus[i] = (struct pcpu){.number = i, .random = i + 1};
        jobs[i] = (struct job){.owner = NOBODY};
        tied[i] = &jobs[i];
        sched_entity_init(&jobs[i].e, 256, set);
        sched_cpu_online(i);
        sched_wake(&jobs[i].e);
        pick(&pcpus[i], RUN_RUNNABLE);
    }
    guest = &jobs[2];
    *guest = (struct job){.owner = NOBODY};
    sched_entity_init(&guest->e, 256, cpu_set_all()); /* begins as one that was on pCPU 0 */
    guest->e.switches = 1;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, duel_main, &pcpus[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(faults, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_wake_meets_idle),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
