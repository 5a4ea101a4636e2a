/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whom to run when a vCPU spins: of its VM's other vCPUs the one for which it most likely waits.
 *
 * A vCPU that spins gives up its pCPU for a sibling, a vCPU of the same VM, that can run and does
 * not. One that waits in memory too is none of them while what it waits for has not come; as soon
 * as it has, it is the best of them: the others queue up behind it.
 */
#ifndef CORE_SPIN_H
#define CORE_SPIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/relaxed.h"

struct sched_entity;

/*
 * What a vCPU waits for in its guest's memory: that (*word & mask) is no longer `value`. Of the
 * turn on its pCPU that has number `turn` (sched_entity.switches): once it has another, this is
 * over. Written by its pCPU while it runs, read by any: what a reader gets may be of two waits,
 * but `word` is always NULL or aligned, in memory that stays mapped.
 */
struct spin_wait {
    const uint64_t *word; /* NULL: nobody knows for what it waits */
    uint64_t mask, value;
    uint64_t turn; /* SPIN_NO_TURN: it waits for nothing */
};

#define SPIN_NO_TURN UINT64_MAX

/* How likely it is that others wait for a vCPU which could run: the first is out of question. */
enum spin_rank {
    SPIN_WAITS,   /* it waits itself */
    SPIN_SPUN,    /* gave up its pCPU as it spun, nobody knows for what */
    SPIN_USER,    /* runs a program, which holds no lock of its kernel */
    SPIN_KERNEL,  /* was preempted in the kernel */
    SPIN_WANTED,  /* an interrupt is pending for it: others may wait for its answer */
    SPIN_MASKED,  /* was preempted in the kernel, with interrupts masked */
    SPIN_RELEASED /* what it waited for has come */
};

/* Whether what `w` is about has come. Any pCPU. */
static inline bool spin_wait_over(const struct spin_wait *w) {
    const uint64_t *word = load_relaxed(&w->word);

    return word != NULL && (load_relaxed(word) & load_relaxed(&w->mask)) != load_relaxed(&w->value);
}

/* What a look at the siblings of one that spins found. */
struct spin_choice {
    struct sched_entity *best; /* who should run in its place; NULL: nobody */
    uint32_t waiting;          /* how many wait for a pCPU; */
    uint32_t here;             /* of those, for this one */
};

/*
 * Looks at the siblings of `self`, which spins on pCPU `cpu`. `rank` tells about one that did not
 * spin: SPIN_USER or above. Without locks: whoever is chosen may run elsewhere by now. Among equals
 * one that waits for this pCPU is better, then the next one in the ring. On `cpu`.
 */
struct spin_choice spin_choose(const struct sched_entity *self, unsigned cpu,
                               enum spin_rank (*rank)(const struct sched_entity *));

#endif
