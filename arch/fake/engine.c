/* SPDX-License-Identifier: GPL-2.0-only */
/* Virtual time: which fake pCPU goes on, and when. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/fake/private.h"
#include "core/port.h"
#include "hyp/arch.h"

#define HYP_STACK  (128u << 10)
#define EVENTS     64u
#define SAME_TIME  2000000u /* so many turns without a tick: something goes round in circles */
#define OUTPUT_MAX 65536u

struct cpu {
    struct fiber fiber;
    struct pcpu *pcpu;
    bool started, sleeping;
    bool wakes; /* an interrupt ends the sleep */
    uint64_t until;
};

struct event {
    bool used;
    uint64_t when;
    unsigned cpu;
    void (*act)(uint64_t arg);
    uint64_t arg;
};

struct pcpu *fake_this;
struct fake_broken fake_broken;

static struct cpu cpus[FAKE_CPUS];
static struct fiber stage; /* the test's own stack */
static struct event events[EVENTS];
static unsigned events_used;
static struct cpu *at_work; /* NULL: the test itself */
static uint64_t now_ticks = 12345, started, limit, random_state;
static unsigned noise, turns;
static bool ended, exact;
static enum fake_end ended_how;

static unsigned faults;
static char first_fault[256];
static char output[OUTPUT_MAX];
static size_t output_used;

static struct {
    const unsigned *at;
    unsigned count, next, steps;
    bool on, counting;
} explore;

/* ---- What tests ask ---- */

uint32_t fake_roll(uint32_t below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(random_state >> 33) % below;
}

void fake_fault(const char *format, ...) {
    va_list arguments;

    if (faults++ == 0) {
        va_start(arguments, format);
        vsnprintf(first_fault, sizeof(first_fault), format, arguments);
        va_end(arguments);
    }
}

unsigned fake_faults(void) {
    return faults;
}

const char *fake_first_fault(void) {
    return first_fault;
}

const char *fake_output(void) {
    return output;
}

uint64_t fake_started(void) {
    return started;
}

void fake_at(uint64_t when, unsigned cpu, void (*act)(uint64_t arg), uint64_t arg) {
    for (unsigned i = 0; i < EVENTS; i++) {
        if (!events[i].used) {
            events[i] = (struct event){true, when, cpu, act, arg};
            events_used++;
            return;
        }
    }
    fake_fault("more than %u events at once", EVENTS);
}

/* ---- Turns ---- */

static void to_stage(void) {
    struct cpu *self = at_work;

    fiber_switch(&self->fiber, &stage);
}

uint64_t engine_sleep(uint64_t ticks, bool wakes) {
    uint64_t from = now_ticks;

    at_work->sleeping = true;
    at_work->wakes = wakes;
    at_work->until = ticks > UINT64_MAX - now_ticks ? UINT64_MAX : now_ticks + ticks;
    to_stage();
    return now_ticks - from;
}

void fake_spend(uint64_t ticks) {
    if (at_work != NULL && ticks != 0) {
        engine_sleep(ticks, false);
    }
}

void fake_step(void) {
    if (at_work == NULL) {
        return;
    }
    if (explore.on) {
        if (explore.counting) {
            unsigned step = explore.steps++;
            if (explore.next < explore.count && step == explore.at[explore.next]) {
                explore.next++;
                to_stage();
            }
        }
    } else if (noise != 0 && fake_roll(noise) == 0) {
        if (fake_roll(4) == 0) {
            engine_sleep(fake_roll(20) + 1, false);
        } else {
            to_stage();
        }
    }
}

void fake_explore(const unsigned *at, unsigned count) {
    memset(&explore, 0, sizeof(explore));
    explore.on = at != NULL;
    explore.at = at;
    explore.count = count;
}

void fake_explore_start(void) {
    explore.counting = true;
    explore.steps = explore.next = 0;
}

void fake_explore_stop(void) {
    explore.counting = false;
}

unsigned fake_explore_steps(void) {
    return explore.steps;
}

bool engine_exact(void) {
    return exact;
}

struct fiber *engine_fiber(void) {
    return &at_work->fiber;
}

_Noreturn void engine_end(enum fake_end how) {
    ended = true;
    ended_how = how;
    to_stage();
    abort();
}

static bool event_due(const struct event *e, const struct pcpu *p) {
    return e->used && e->cpu == p->index && e->when <= now_ticks;
}

static struct event *find_event(const struct pcpu *p) {
    for (unsigned i = 0; i < EVENTS && events_used != 0; i++) {
        if (event_due(&events[i], p)) {
            return &events[i];
        }
    }
    return NULL;
}

bool engine_device(void) {
    struct event *e = find_event(fake_this);

    if (e == NULL) {
        return false;
    }
    e->used = false;
    events_used--;
    e->act(e->arg);
    return true;
}

static bool interrupted(const struct cpu *c) {
    return cpu_interrupt_pending(c->pcpu) || find_event(c->pcpu) != NULL;
}

bool engine_interrupted(void) {
    return interrupted(at_work);
}

bool arch_interrupt_pending(void) {
    return interrupted(at_work);
}

static bool ready(const struct cpu *c) {
    return c->started && (!c->sleeping || c->until <= now_ticks || (c->wakes && interrupted(c)));
}

/* Somebody whose turn it is: at random with noise; while exploring another one than `last` first.
 */
static struct cpu *choose(const struct cpu *last) {
    unsigned first = noise != 0     ? fake_roll(FAKE_CPUS)
                     : last != NULL ? (unsigned)(last - cpus) + 1
                                    : 0;

    for (unsigned i = 0; i < FAKE_CPUS; i++) {
        struct cpu *c = &cpus[(first + i) % FAKE_CPUS];
        if (ready(c)) {
            return c;
        }
    }
    return NULL;
}

/* To when the next thing happens; false when nothing will. */
static bool advance(void) {
    uint64_t next = UINT64_MAX;

    for (unsigned i = 0; i < FAKE_CPUS; i++) {
        const struct cpu *c = &cpus[i];
        if (c->started) {
            uint64_t interrupt = c->wakes ? cpu_next_interrupt(c->pcpu) : UINT64_MAX;
            next = c->until < next ? c->until : next;
            next = interrupt < next ? interrupt : next;
        }
    }
    for (unsigned i = 0; i < EVENTS; i++) {
        if (events[i].used && events[i].when > now_ticks && events[i].when < next) {
            next = events[i].when;
        }
    }
    if (next == UINT64_MAX) {
        return false;
    }
    if (now_ticks < limit && next > limit) {
        next = limit;
    }
    turns = 0;
    now_ticks = next > now_ticks ? next : now_ticks + 1;
    return true;
}

/* All pCPUs are in a guest or idle. */
static bool settled(void) {
    for (unsigned i = 0; i < FAKE_CPUS; i++) {
        if (cpus[i].started && (ready(&cpus[i]) || !cpus[i].wakes)) {
            return false;
        }
    }
    return true;
}

enum fake_end engine_run(void) {
    struct cpu *last = NULL;

    while (!ended) {
        struct cpu *c;

        if (now_ticks >= limit && settled()) {
            return FAKE_LIMIT;
        }
        c = choose(last);
        if (c == NULL) {
            if (!advance()) {
                return FAKE_STUCK;
            }
            if (now_ticks >= limit) {
                noise = 0; /* and let everybody come out of the hypervisor */
            }
            continue;
        }
        if (++turns > SAME_TIME) {
            return FAKE_STUCK;
        }
        c->sleeping = false;
        at_work = last = c;
        fake_this = c->pcpu;
        fiber_switch(&stage, &c->fiber);
        at_work = NULL;
    }
    return ended_how;
}

void engine_start_cpu(struct pcpu *p, void (*main)(void *p)) {
    struct cpu *c = &cpus[p->index];

    if (c->fiber.stack == NULL) {
        fiber_init(&c->fiber, HYP_STACK);
    }
    c->pcpu = p;
    c->started = true;
    c->sleeping = false;
    fiber_begin(&c->fiber, main, p);
}

void engine_reset(const struct fake_setup *setup) {
    for (unsigned i = 0; i < FAKE_CPUS; i++) {
        cpus[i].started = false;
    }
    memset(events, 0, sizeof(events));
    events_used = 0;
    started = now_ticks;
    limit = now_ticks + (setup->limit != 0 ? setup->limit : 10u * FAKE_SECOND);
    random_state = setup->seed * 0x9e3779b97f4a7c15ull + 1;
    noise = setup->noise;
    exact = noise == 0 && setup->switch_ticks == 0 && setup->refill_ticks == 0 && !explore.on;
    ended = false;
    turns = faults = 0;
    first_fault[0] = '\0';
    output_used = 0;
    output[0] = '\0';
}

void engine_free(void) {
    for (unsigned i = 0; i < FAKE_CPUS; i++) {
        fiber_free(&cpus[i].fiber);
    }
}

/* ---- port.h, and the machine ---- */

uint64_t port_clock(void) {
    fake_step();
    return now_ticks;
}

uint64_t engine_clock(void) {
    return now_ticks;
}

unsigned port_this_cpu(void) {
    return this_pcpu()->index;
}

void port_relax(void) {
    if (at_work == NULL) {
        fake_fault("the test itself waits for a lock");
        abort();
    }
    engine_sleep(1, false);
}

void port_kick_cpu(unsigned cpu) {
    struct pcpu *p = this_pcpu();

    fake_step();
    if (cpu != p->index) {
        pcpus[cpu]->arch.kicked = true;
    } else if (p->current != NULL) { /* as arm64 does it */
        uint64_t end = sched_slice_end(cpu);

        if (end != 0) {
            timer_program(end);
        } else {
            atomic_fetch_or(&p->current->requests, REQUEST_SLICE);
        }
    }
}

uint64_t arch_clock_hz(void) {
    return FAKE_SECOND;
}

void arch_wait_for_interrupt(void) {
    fake_step();
    if (!interrupted(at_work)) {
        engine_sleep(UINT64_MAX, true);
    }
}

_Noreturn void arch_power_off(void) {
    engine_end(strstr(output, "panic: ") != NULL ? FAKE_PANIC : FAKE_OFF);
}

_Noreturn void arch_halt(void) {
    engine_end(FAKE_PANIC);
}

bool arch_uart_putc(uint8_t byte) {
    if (output_used + 1 < OUTPUT_MAX) {
        output[output_used++] = (char)byte;
        output[output_used] = '\0';
    }
    return true;
}

int arch_uart_getc(void) {
    return -1;
}

void arch_uart_tx_interrupt(bool on) {
    (void)on;
}
