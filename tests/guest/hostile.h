/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the hostile guests share: exceptions that are counted, judged and skipped, and the random
 * choice of values that hurt. One CPU at a time may be `active`.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include "guest.h"

#define EC_ILLEGAL    0x0eu
#define EC_FP         0x07u
#define EC_SVE        0x19u
#define EC_SME        0x1du
#define EC_PC_ALIGN   0x22u
#define EC_SP_ALIGN   0x26u
#define EC_BKPT_LOWER 0x30u
#define EC_WATCH      0x35u
#define EC_BRK        0x3cu
#define EC_BIT(ec)    (1ul << (ec))

/* Synchronous external aborts: on the access, on a walk of level 0..3. */
#define STATUS_SEA      0x10u
#define STATUS_SEA_WALK 0x14u

struct hostile {
    struct rng rng;
    bool active;
    uint64_t allowed;     /* exception classes that may come now: EC_BIT() */
    uint64_t inputs;      /* tried so far */
    uint64_t classes[64]; /* exceptions by class */
    uint64_t wrong;       /* results that are none of the documented ones */
    const char *phase;
};

static struct hostile H;

static inline uint64_t rnd(void) {
    return rng_next(&H.rng);
}

/* 0..n-1 */
static inline uint64_t below(uint64_t n) {
    return (rnd() >> 11) % n;
}

/* Numbers at which things break, or any. */
static inline uint64_t nasty(void) {
    static const uint64_t edges[] = {0,          1,          2,          0x7f,
                                     0x80,       0xff,       0x100,      0x7fff,
                                     0xffff,     0x7fffffff, 0x80000000, 0xffffffff,
                                     1ul << 32,  1ul << 39,  1ul << 47,  1ul << 48,
                                     1ul << 63,  ~0ul,       ~0ul - 1,   ~0ul << 32,
                                     0x08000000, 0x080a0000, 0x09000000, 0x40000000,
                                     0x41000000, 0x090a0000, 1ul << 38,  0x5555555555555555ul};

    switch (below(4)) {
    case 0:
        return edges[below(ARRAY_SIZE(edges))];
    case 1:
        return 1ul << below(64);
    case 2:
        return (uint32_t)rnd();
    default:
        return rnd();
    }
}

static inline void note_wrong(const char *what, uint64_t a, uint64_t b, uint64_t c) {
    if (H.wrong++ < 10)
        tap_note("%s: input %lu: %s: 0x%lx 0x%lx 0x%lx", H.phase, H.inputs, what, a, b, c);
}

/* Counts and judges an exception of an input. */
static inline void judge(const struct exc_frame *f) {
    unsigned ec = ESR_EC(f->esr);

    H.classes[ec]++;
    if (!(H.allowed >> ec & 1))
        note_wrong("exception: esr, far, elr", f->esr, f->far, f->elr);
}

static inline void debug_off(struct exc_frame *f) {
    write_sysreg(mdscr_el1, 0);
    if (f)
        f->spsr &= ~(1ul << 21);
}

static inline void phase(const char *name, uint64_t allowed) {
    H.phase = name;
    H.allowed = allowed;
}

/* Each phase has random numbers of its own, so that `only` does the same in it as all together. */
static inline void hostile_seed(uint64_t n) {
    H.rng.s = (bootarg("seed", 1) << 8 | (n + 1)) * 0x9e3779b97f4a7c15ul;
    for (unsigned i = 0; i < 8; i++)
        rnd();
}

static inline void hostile_end(const char *name) {
    print("\n");
    for (unsigned i = 0; i < 64; i++) {
        if (H.classes[i])
            tap_note("exceptions of class 0x%x: %lu", i, H.classes[i]);
    }
    tap_note("%lu inputs", H.inputs);
    check_eq(name, H.wrong, 0);
}

/* The neighbour's memory: each 64-bit word is this with its offset in the lower half. */
#define SECRET_NOT (~0x4e454947u & 0xffffffffu) /* inverted: our own image must not hold it */

static inline bool is_secret(uint64_t word) {
    return (uint32_t)(word >> 32) == (uint32_t)~SECRET_NOT;
}

#endif
