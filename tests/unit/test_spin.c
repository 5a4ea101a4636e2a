/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/sched.c core/sched_yield.c core/spin.c core/sched_watch.c core/trace.c */
/*
 * Whom a spinning vCPU makes room for (P09), how long that lasts (P10), and what other VMs keep
 * (P14): the picker with scripted states, and yields in the scheduler in virtual time.
 */
#include "core/spin.h"

#include "test_sched_sim.h"

static enum spin_rank script[SIM_ENTITIES];

static enum spin_rank scripted(const struct sched_entity *e) {
    return script[(const struct sim_entity *)e - sim.all];
}

/* A spinner of the VM whose first vCPU is `vm`; NULL: of a new one. */
static struct sim_entity *vcpu_of(struct sim_entity *vm, uint64_t cpus) {
    struct sim_entity *s = sim_add(256, sim_set(cpus));

    if (vm != NULL) {
        sched_entity_join(&s->e, &vm->e);
    }
    sim_wake(s);
    return s;
}

static uint64_t memory[2];

/* It waits for a change of memory[word], as of its present turn. */
static void waits_for(struct sim_entity *s, unsigned word) {
    s->e.wait = (struct spin_wait){.word = &memory[word],
                                   .mask = 0xff00,
                                   .value = memory[word] & 0xff00,
                                   .turn = s->e.switches};
}

static struct sched_entity *choice(struct sim_entity *self, unsigned cpu) {
    return spin_choose(&self->e, cpu, scripted).best;
}

/* Four vCPUs of a VM on pCPU 0, the first of which runs. */
static struct sim_entity *four_on_one(void) {
    struct sim_entity *first;

    sim_init(1);
    memset(memory, 0, sizeof memory);
    first = vcpu_of(NULL, 1);
    sim_settle();
    for (unsigned i = 1; i < 4; i++) {
        vcpu_of(first, 1);
        script[i] = SPIN_KERNEL;
    }
    assert_ptr_equal(sim.cur[0], first);
    return first;
}

static void best_rank_wins(void **state) {
    (void)state;
    struct sim_entity *self = four_on_one();

    for (unsigned best = 1; best < 4; best++) {
        for (unsigned i = 1; i < 4; i++) {
            script[i] = i == best ? SPIN_MASKED : i % 2 != 0 ? SPIN_KERNEL : SPIN_USER;
        }
        assert_ptr_equal(choice(self, 0), &sim.all[best].e);
        script[best] = SPIN_WANTED;
        assert_ptr_equal(choice(self, 0), &sim.all[best].e);
    }
}

/* P09: not one that spins itself while another can run; nobody while all wait. */
static void spinners_come_last(void **state) {
    (void)state;
    struct sim_entity *self = four_on_one();

    sim.all[1].e.wait.turn = sim.all[1].e.switches; /* nobody knows for what */
    waits_for(&sim.all[2], 0);
    script[3] = SPIN_USER;
    assert_ptr_equal(choice(self, 0), &sim.all[3].e);
    waits_for(&sim.all[3], 1);
    assert_ptr_equal(choice(self, 0), &sim.all[1].e);
    waits_for(&sim.all[1], 1);
    assert_null(choice(self, 0));
    assert_int_equal(spin_choose(&self->e, 0, scripted).waiting, 3);

    memory[0] = 0xff; /* bits that nobody waits for */
    assert_null(choice(self, 0));
    memory[0] = 0x100;
    assert_ptr_equal(choice(self, 0), &sim.all[2].e);
    script[3] = SPIN_MASKED;
    sim.all[3].e.wait.turn = SPIN_NO_TURN;
    assert_ptr_equal(choice(self, 0), &sim.all[2].e);
}

/* Who had a turn since it spun waits no longer. */
static void a_turn_ends_a_wait(void **state) {
    (void)state;
    struct sim_entity *self = four_on_one();

    for (unsigned i = 1; i < 4; i++) {
        waits_for(&sim.all[i], 0);
    }
    sim.all[2].e.switches++;
    assert_ptr_equal(choice(self, 0), &sim.all[2].e);
}

static void near_ones_and_affinity(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *a = vcpu_of(NULL, 1), *b = sim_spinner(256, sim_set(2));

    sim_settle();
    struct sim_entity *near = vcpu_of(a, 1), *far = vcpu_of(a, 2), *both = vcpu_of(a, 3);
    unsigned n = (unsigned)(near - sim.all), f = (unsigned)(far - sim.all);

    script[n] = script[f] = script[both - sim.all] = SPIN_KERNEL;
    assert_ptr_equal(sim.cur[1], b);
    both->e.wait.turn = both->e.switches;
    assert_ptr_equal(choice(a, 0), &near->e);
    script[f] = SPIN_MASKED; /* better, but must not come here */
    assert_ptr_equal(choice(a, 0), &near->e);
    far->e.allowed = sim_set(3); /* as good as the near one, and looked at before */
    script[f] = SPIN_KERNEL;
    assert_ptr_equal(choice(a, 0), &near->e);
    script[f] = SPIN_MASKED;
    assert_ptr_equal(choice(a, 0), &far->e);
    far->e.allowed = sim_set(2);
    near->e.wait.turn = near->e.switches;
    memory[0] = 0;
    waits_for(near, 0);
    waits_for(both, 0);
    assert_null(choice(a, 0));
    /* a vCPU of another VM is none of ours */
    assert_null(spin_choose(&b->e, 1, scripted).best);
}

static void spins(unsigned cpu, struct sim_entity *to) {
    assert_true(sched_yield_to(cpu, &sim.cur[cpu]->e, &to->e));
    sim_pick(cpu, RUN_RUNNABLE);
}

/* P10: the target keeps the pCPU for a slice, also if it was far ahead; the claims only move. */
static void the_yield_lasts(void **state) {
    (void)state;
    for (unsigned ahead = 0; ahead < 2; ahead++) {
        struct sim_entity *self, *to;

        four_on_one();
        sim_run(20 * SIM_SLICE + 100);
        self = sim.cur[0];
        to = self == &sim.all[3] ? &sim.all[2] : &sim.all[3];
        if (ahead) {
            to->e.vtime += 3 * SIM_SLICE; /* it has waited since: it is the last in the queue */
        }
        uint64_t sum = self->e.vtime + to->e.vtime, before = sim_ran(to), spun = self->e.switches;

        spins(0, to);
        assert_ptr_equal(sim.cur[0], to);
        assert_true(self->e.vtime + to->e.vtime >= sum);
        assert_true(self->e.vtime + to->e.vtime <= sum + SIM_SLICE); /* what self ran meanwhile */
        assert_true((int64_t)(self->e.vtime - to->e.vtime) >= 0);
        sim_run(SIM_SLICE - 10);
        assert_ptr_equal(sim.cur[0], to);
        assert_int_equal(sim_ran(to) - before, SIM_SLICE - 10);
        assert_int_equal(self->e.switches, spun);
    }
}

/* One in another queue is brought here; the spinner's pCPU runs it at once. */
static void fetches_from_elsewhere(void **state) {
    (void)state;
    sim_init(2);
    struct sim_entity *a = vcpu_of(NULL, 3), *b = vcpu_of(a, 3);

    sim_settle();
    struct sim_entity *c = vcpu_of(a, 3), *d = vcpu_of(a, 3);
    unsigned here = sim.cur[0] == a ? 0u : 1u, there = 1u - here;
    struct sim_entity *to = c->e.cpu == there ? c : d;

    assert_true(sim.cur[there] == b);
    assert_int_equal(to->e.cpu, there);
    spins(here, to);
    assert_ptr_equal(sim.cur[here], to);
    assert_int_equal(to->e.cpu, here);
    sim_settle();
    sim_run(50 * SIM_SLICE);
    sim_check_times();
    /* it runs: nobody can have it */
    assert_false(sched_yield_to(0, &sim.cur[0]->e, &sim.cur[1]->e));
}

/* P14, P10: a VM whose vCPUs do nothing but yield to each other has its share, and no more. */
static void yields_for_ever_beside(unsigned vcpus) {
    sim_init(1);
    struct sim_entity *first = vcpu_of(NULL, 1), *victim = sim_spinner(256 * vcpus, sim_set(1));
    uint64_t end, others;

    for (unsigned i = 1; i < vcpus; i++) {
        vcpu_of(first, 1);
    }
    sim_settle();
    for (end = sim.now + 10u * SIM_SECOND; sim.now < end;) {
        sim_run(SIM_SLICE / 50);
        if (sim.cur[0] != victim) {
            struct sim_entity *self = sim.cur[0];
            struct spin_choice c = spin_choose(&self->e, 0, scripted);

            if (c.best == NULL) {
                sched_yield_to_other(&self->e);
            } else {
                assert_true(sched_yield_to(0, &self->e, c.best));
            }
            sim_pick(0, RUN_RUNNABLE);
        }
    }
    others = sim_ran(victim);
    check_near((int64_t)(others * 1000 / (10u * SIM_SECOND)), 500, 10);
    assert_true(victim->e.longest_wait <= (vcpus + 1) * SIM_SLICE); /* vcpus: without yields */
    sim_check_times();
}

static void shares_hold(void **state) {
    (void)state;
    for (unsigned i = 0; i < SIM_ENTITIES; i++) {
        script[i] = SPIN_KERNEL;
    }
    yields_for_ever_beside(1);
    yields_for_ever_beside(2);
    yields_for_ever_beside(5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_rank_wins),     cmocka_unit_test(spinners_come_last),
        cmocka_unit_test(a_turn_ends_a_wait), cmocka_unit_test(near_ones_and_affinity),
        cmocka_unit_test(the_yield_lasts),    cmocka_unit_test(fetches_from_elsewhere),
        cmocka_unit_test(shares_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
