/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory and string functions, locks, random numbers. */
#include "guest.h"

/* The empty asm keeps compilers from turning these loops into calls to themselves. */
void *memset(void *d, int c, size_t n) {
    uint8_t *p = d;
    uint64_t word = 0x0101010101010101ul * (uint8_t)c;

    for (; n && ((uintptr_t)p & 7); n--) {
        *p++ = (uint8_t)c;
        __asm__ volatile("" : : : "memory");
    }
    for (; n >= 8; n -= 8, p += 8) {
        *(uint64_t *)(void *)p = word;
        __asm__ volatile("" : : : "memory");
    }
    for (; n; n--) {
        *p++ = (uint8_t)c;
        __asm__ volatile("" : : : "memory");
    }
    return d;
}

void *memcpy(void *d, const void *s, size_t n) {
    uint8_t *to = d;
    const uint8_t *from = s;

    for (; n; n--) {
        *to++ = *from++;
        __asm__ volatile("" : : : "memory");
    }
    return d;
}

int memcmp(const void *a, const void *b, size_t n) {
    const uint8_t *p = a, *q = b;

    for (; n; n--, p++, q++) {
        if (*p != *q)
            return *p < *q ? -1 : 1;
    }
    return 0;
}

size_t strlen(const char *s) {
    size_t n = 0;

    while (s[n]) {
        n++;
        __asm__ volatile("");
    }
    return n;
}

int strcmp(const char *a, const char *b) {
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (uint8_t)*a - (uint8_t)*b;
}

/* xorshift64*, as described by Marsaglia and Vigna; the state must not be zero. */
uint64_t rng_next(struct rng *r) {
    r->s ^= r->s >> 12;
    r->s ^= r->s << 25;
    r->s ^= r->s >> 27;
    return r->s * 0x2545f4914f6cdd1dul;
}

void spin_lock(struct spinlock *l) {
    uint32_t old, failed;

    __asm__ volatile("1: ldaxr %w0, [%2]\n"
                     "   cbnz %w0, 1b\n"
                     "   stxr %w1, %w3, [%2]\n"
                     "   cbnz %w1, 1b\n"
                     : "=&r"(old), "=&r"(failed)
                     : "r"(&l->locked), "r"(1)
                     : "memory");
}

void spin_unlock(struct spinlock *l) {
    __atomic_store_n(&l->locked, 0, __ATOMIC_RELEASE);
}

void barrier_wait(struct barrier *b, uint32_t n) {
    uint32_t round = __atomic_load_n(&b->round, __ATOMIC_ACQUIRE);

    if (__atomic_add_fetch(&b->count, 1, __ATOMIC_ACQ_REL) == n) {
        __atomic_store_n(&b->count, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&b->round, round + 1, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&b->round, __ATOMIC_ACQUIRE) == round)
        __asm__ volatile("yield");
}
