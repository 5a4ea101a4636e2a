/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/spin.h"

#include "core/spin.h"
#include "hyp/arch.h"
#include "hyp/vm.h"

static enum spin_rank rank(const struct sched_entity *e) {
    const struct vcpu *v = vcpu_of_entity((struct sched_entity *)(uintptr_t)e);
    enum spin_rank by_mode = arch_spin_rank(v);

    return by_mode < SPIN_WANTED && atomic_load_explicit(&v->requests, memory_order_relaxed) != 0
               ? SPIN_WANTED
               : by_mode;
}

const char *spin_name(uint32_t spin) {
    static const char *const names[] = {[SPIN_IGNORE] = "ignore",
                                        [SPIN_YIELD] = "yield",
                                        [SPIN_DIRECTED] = "directed",
                                        [SPIN_AUTO] = "auto"};

    return names[spin];
}

static enum verdict spins_on(struct vcpu *v) {
    store_relaxed(&v->sched.wait.turn, SPIN_NO_TURN);
    v->spin.stayed++;
    return RESUME;
}

static enum verdict gives_up(struct vcpu *v, bool directed) {
    v->spin.yielded++;
    v->spin.directed += directed;
    return YIELD;
}

/* To the sibling for which it most likely waits. */
static enum verdict yield_directed(struct pcpu *p, struct vcpu *v) {
    struct sched_entity *e = &v->sched;
    struct spin_choice choice = spin_choose(e, p->index, rank);
    bool others = sched_waiting(p->index) > choice.here;

    if (choice.waiting == 0 && !others) {
        if (atomic_load(&v->vm->spin) == SPIN_AUTO) {
            arch_spin_untrap(v);
        }
        return spins_on(v);
    }
    arch_spin_wait(v, &e->wait);
    store_relaxed(&e->wait.turn, e->switches);
    if (spin_wait_over(&e->wait)) {
        return spins_on(v);
    }
    if (choice.best != NULL && sched_yield_to(p->index, e, choice.best)) {
        return gives_up(v, true);
    }
    if (others) {
        sched_yield_to_other(e);
        return gives_up(v, false);
    }
    return spins_on(v);
}

enum verdict vcpu_spins(struct pcpu *p, struct vcpu *v) {
    if (atomic_load(&v->vm->spin) != SPIN_YIELD) {
        return yield_directed(p, v);
    }
    return sched_waiting(p->index) != 0 ? gives_up(v, false) : spins_on(v);
}

enum verdict vcpu_yield_to(struct pcpu *p, struct vcpu *v, struct vcpu *to) {
    const struct sched_entity *e = &to->sched;

    if (load_relaxed(&e->state) != RUN_RUNNABLE || !sched_may_take(e, p->index) ||
        !sched_yield_to(p->index, &v->sched, &to->sched)) {
        return RESUME;
    }
    return gives_up(v, true);
}
