/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c */
/*
 * The virtual GIC with a thread for each vCPU (P25, G24, P21): messages in a ring by SGI, SPIs,
 * remote register accesses and switches in between. Clean under ThreadSanitizer.
 */
#include "tests/unit/vgic_sim.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define N 4u

static struct machine m;
static struct sim cpus[N];
static uint32_t stop;
static uint64_t messages, goal;
static uint32_t sent[N], received[N];
static uint64_t spi_raised, spi_taken;
static uint32_t spi_owed;

/* Whom we wait for may need this CPU; but to ask for that each time costs more than the waiting. */
void port_relax(void) {
    static _Thread_local unsigned asked;

    if (++asked % 64 == 0) {
        sched_yield();
    }
}

void vgic_notify(struct vgic_vcpu *v) {
    __atomic_store_n(&sim_of(v)->request, 1u, __ATOMIC_SEQ_CST);
}

void vgic_sync_remote(struct vgic_vcpu *v) {
    uint32_t seq = vgic_fold_seq(v);

    vgic_notify(v);
    while (vgic_live(v) && vgic_fold_seq(v) == seq) {
        port_relax();
    }
}

void vgic_phys_deactivate(struct vgic_vcpu *v, unsigned pintid) {
    (void)pintid;
    sim_of(v)->phys_active = false;
}

/* vCPU `i`'s work: `extra` adds SPIs and remote register accesses to the ring. */
struct worker {
    unsigned i;
    bool extra;
    uint32_t seed;
};

static uint32_t rnd(struct worker *w) {
    w->seed = w->seed * 1664525u + 1013904223u;
    return w->seed >> 8;
}

static void extra_work(struct worker *w, struct sim *s) {
    uint32_t r = rnd(w) & 0xff;

    if (r < 8) {
        /* An edge SPI, when the last one has arrived. */
        uint32_t none = 0;

        if (__atomic_compare_exchange_n(&spi_owed, &none, 1u, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
            __atomic_fetch_add(&spi_raised, 1u, __ATOMIC_RELAXED);
            vgic_pulse(&s->v, 40);
        }
    } else if (r < 12) {
        gicd_w(s, 0x6000 + 40 * 8, rnd(w) % N);
    } else if (r < 14) {
        irq_w(s, 0, 40, ICENABLE);
        irq_w(s, 0, 40, ISENABLE);
    } else if (r < 16) {
        irq_prio(s, rnd(w) % N, 40, (uint8_t)(rnd(w) & 0x78));
    } else if (r < 18) {
        irq_prio(s, rnd(w) % N, 1, (uint8_t)(rnd(w) & 0x78));
    } else if (r < 20) {
        (void)irq_r(s, rnd(w) % N, r & 1 ? 1 : 40, ISPEND);
    } else if (r < 21) {
        sim_sync(s); /* off and on again */
        sched_yield();
        vgic_switch_in(&s->v);
        sim_enter(s);
    }
}

static void *vcpu_thread(void *arg) {
    struct worker *w = arg;
    struct sim *s = &cpus[w->i];
    unsigned next = (w->i + 1) % N;
    unsigned idle = 0;

    while (__atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0) {
        unsigned id = sim_iar(s, 1);

        if (id == SPURIOUS) {
            if (w->extra) {
                extra_work(w, s);
            }
            if (++idle % 16 == 0) {
                sched_yield();
            }
            continue;
        }
        sim_eoi(s, id);
        if (id == 40) {
            __atomic_fetch_add(&spi_taken, 1u, __ATOMIC_RELAXED);
            __atomic_store_n(&spi_owed, 0u, __ATOMIC_SEQ_CST);
            continue;
        }
        /* A message: at least one interrupt after the last send. */
        uint32_t n = __atomic_load_n(&sent[w->i], __ATOMIC_ACQUIRE);

        while (received[w->i] != n) {
            received[w->i]++;
            __atomic_fetch_add(&sent[next], 1u, __ATOMIC_RELEASE);
            vgic_send_sgi(&s->v, sgi_to(next, 1), VGIC_SGI1R);
            if (__atomic_add_fetch(&messages, 1u, __ATOMIC_RELAXED) >= goal) {
                __atomic_store_n(&stop, 1u, __ATOMIC_RELEASE);
                break;
            }
        }
    }
    /* Nobody may wait for this one's list registers any more. */
    sim_sync(s);
    return NULL;
}

/* `tokens` messages go round until `count` were passed; a lost one is a time-out. */
static void ring(uint64_t count, unsigned tokens, unsigned n_lr, bool extra) {
    pthread_t threads[N];
    struct worker workers[N];

    machine_init(&m, cpus, N, n_lr);
    machine_guest_setup(&m);
    irq_edge(&cpus[0], 0, 40, true);
    irq_w(&cpus[0], 0, 40, ISENABLE);
    for (unsigned i = 0; i < N; i++) {
        irq_w(&cpus[0], i, 1, ISENABLE);
        sim_irqs(&cpus[i]);
        sent[i] = received[i] = 0;
    }
    stop = 0;
    messages = 0;
    goal = count;
    spi_raised = spi_taken = 0;
    spi_owed = 0;
    for (unsigned i = 0; i < tokens; i++) {
        sent[i % N]++;
        vgic_send_sgi(&cpus[0].v, sgi_to(i % N, 1), VGIC_SGI1R);
    }
    for (unsigned i = 0; i < N; i++) {
        workers[i] = (struct worker){.i = i, .extra = extra, .seed = i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, vcpu_thread, &workers[i]), 0);
    }
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(messages >= count);
    if (extra) {
        assert_true(spi_raised > 0);
        assert_true(spi_raised - spi_taken <= 1);
    }
}

/* How long the runs are: VGIC_STRESS=10 is ten times as long as in `make test`. */
static uint64_t scale(uint64_t n) {
    const char *text = getenv("VGIC_STRESS");

    return text != NULL ? n * strtoul(text, NULL, 10) : n;
}

static void p25_sgi_ring_one_token(void **state) {
    (void)state;
    ring(scale(100000), 1, 4, false);
}

static void p25_sgi_ring_a_million(void **state) {
    (void)state;
    ring(scale(1000000), N * 8, 4, false);
}

static void p25_sgi_ring_with_spis_and_remote_registers(void **state) {
    (void)state;
    ring(scale(50000), N, 4, true);
    ring(scale(50000), N, 1, true);
}

/* All send the same SGI to vCPU 0 at once: one interrupt at least after the last send (G24). */
static void *sender(void *arg) {
    struct sim *s = arg;

    for (unsigned i = 0; i < 20000; i++) {
        __atomic_fetch_add(&sent[0], 1u, __ATOMIC_SEQ_CST);
        vgic_send_sgi(&s->v, sgi_to(0, 2), VGIC_SGI1R);
    }
    __atomic_fetch_add(&stop, 1u, __ATOMIC_SEQ_CST);
    return NULL;
}

static void g24_concurrent_senders(void **state) {
    pthread_t threads[N];
    uint32_t seen = 0;
    struct sim *s = &cpus[0];
    (void)state;

    machine_init(&m, cpus, N, 4);
    machine_guest_setup(&m);
    irq_w(s, 0, 2, ISENABLE);
    stop = 0;
    sent[0] = 0;
    for (unsigned i = 1; i < N; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, sender, &cpus[i]), 0);
    }
    while (seen != (N - 1) * 20000u) {
        if (sim_iar(s, 1) == 2) {
            seen = __atomic_load_n(&sent[0], __ATOMIC_SEQ_CST);
            sim_eoi(s, 2);
        } else if (__atomic_load_n(&stop, __ATOMIC_SEQ_CST) == N - 1) {
            break; /* all are sent: the last one is there or was seen */
        }
    }
    for (unsigned i = 1; i < N; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    if (sim_iar(s, 1) == 2) {
        seen = sent[0];
    }
    assert_int_equal(seen, (N - 1) * 20000u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p25_sgi_ring_one_token),
        cmocka_unit_test(p25_sgi_ring_a_million),
        cmocka_unit_test(p25_sgi_ring_with_spis_and_remote_registers),
        cmocka_unit_test(g24_concurrent_senders),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
