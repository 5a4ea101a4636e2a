/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code under test, unchanged, with a fake_step() before each atomic access and each change of a
 * lock: there another pCPU may go first. Linked instead of the files that it takes in.
 */
#include <stdatomic.h>

#include "arch/fake/fake.h"
#include "core/port.h"
#include "core/sched_queue.h"
#include "core/spinlock.h"
#include "hyp/arch.h"
#include "hyp/mem.h"
#include "hyp/stats.h"

static inline uint32_t step_load(const _Atomic uint32_t *p) {
    fake_step();
    return atomic_load(p);
}

static inline void step_store(_Atomic uint32_t *p, uint32_t value) {
    fake_step();
    atomic_store(p, value);
}

static inline uint32_t step_exchange(_Atomic uint32_t *p, uint32_t value) {
    fake_step();
    return atomic_exchange(p, value);
}

static inline uint32_t step_or(_Atomic uint32_t *p, uint32_t value) {
    fake_step();
    return atomic_fetch_or(p, value);
}

static inline uint32_t step_add(_Atomic uint32_t *p, uint32_t value) {
    fake_step();
    return atomic_fetch_add(p, value);
}

static inline uint32_t step_sub(_Atomic uint32_t *p, uint32_t value) {
    fake_step();
    return atomic_fetch_sub(p, value);
}

#undef atomic_load
#undef atomic_load_explicit
#undef atomic_store
#undef atomic_exchange
#undef atomic_fetch_or
#undef atomic_fetch_add
#undef atomic_fetch_sub
#define atomic_load(p)             step_load(p)
#define atomic_load_explicit(p, o) step_load(p)
#define atomic_store(p, v)         step_store(p, v)
#define atomic_exchange(p, v)      step_exchange(p, v)
#define atomic_fetch_or(p, v)      step_or(p, v)
#define atomic_fetch_add(p, v)     step_add(p, v)
#define atomic_fetch_sub(p, v)     step_sub(p, v)

/* A macro is not expanded inside itself: the inner names are the compiler's. */
#define spin_lock(l)                 (fake_step(), spin_lock(l))
#define spin_trylock(l)              (fake_step(), spin_trylock(l))
#define spin_unlock(l)               (fake_step(), spin_unlock(l))
#define __atomic_load_n(p, o)        (fake_step(), __atomic_load_n(p, o))
#define __atomic_store_n(p, v, o)    (fake_step(), __atomic_store_n(p, v, o))
#define __atomic_exchange_n(p, v, o) (fake_step(), __atomic_exchange_n(p, v, o))
#define __atomic_fetch_or(p, v, o)   (fake_step(), __atomic_fetch_or(p, v, o))
#define __atomic_fetch_and(p, v, o)  (fake_step(), __atomic_fetch_and(p, v, o))
#define __atomic_compare_exchange_n(p, e, v, w, s, f)                                              \
    (fake_step(), __atomic_compare_exchange_n(p, e, v, w, s, f))

#include "core/advance.c"
#include "core/sched.c"
#include "core/sched_watch.c"
#include "core/sched_yield.c"
#include "core/spin.c"
#include "core/trace.c"
#include "core/vmid.c"
#include "hyp/advance.c"
#include "hyp/spin.c"
#include "hyp/vcpu.c"
#include "hyp/vm.c"
#include "hyp/vmids.c"

#define queues timer_queues /* sched.c has that name too */
#include "hyp/timer.c"
#include "hyp/trace.c"
