/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/vmid.h"

#include <stddef.h>

#define WORD_BITS 64u

static void add_to_map(uint64_t *map, uint32_t number) {
    map[number / WORD_BITS] |= 1ull << number % WORD_BITS;
}

static void take_from_map(uint64_t *map, uint32_t number) {
    map[number / WORD_BITS] &= ~(1ull << number % WORD_BITS);
}

static uint32_t map_words(const struct vmid_space *s) {
    return (s->numbers + WORD_BITS - 1) / WORD_BITS;
}

static uint32_t number_of(const struct vmid *vm) {
    return (uint32_t)vm->id & VMID_NUMBER;
}

bool vmid_init(struct vmid_space *s, unsigned bits, unsigned cpus) {
    if (bits < VMID_BITS_MIN || bits > VMID_BITS_MAX || cpus == 0 || cpus > VMID_CPUS_MAX ||
        (1u << bits) - 1 <= cpus) {
        return false;
    }
    spin_init(&s->lock);
    s->numbers = 1u << bits;
    s->cpu_limit = cpus;
    s->cpu_count = s->pinned = 0;
    s->next = 0;
    s->generation = 1;
    for (uint32_t i = 0; i < map_words(s); i++) {
        s->taken[i] = s->kept[i] = 0;
    }
    add_to_map(s->kept, 0);
    add_to_map(s->taken, 0);
    return true;
}

/* Marked, and of a generation before the first: what its TLB holds at start is unknown. */
void vmid_add_cpu(struct vmid_space *s, struct vmid_cpu *cpu) {
    cpu->active = VMID_ROLLED;
    cpu->generation = cpu->slow = cpu->flushes = 0;
    s->cpu[s->cpu_count++] = cpu;
}

/* ---- With the lock held ---- */

/* vm's number counts in this generation too. */
static void renew(struct vmid_space *s, struct vmid *vm) {
    if (number_of(vm) == 0) { /* somebody enters a VM that is being forgotten */
        __builtin_trap();
    }
    __atomic_store_n(&vm->id, s->generation << VMID_BITS_MAX | number_of(vm), __ATOMIC_RELAXED);
    add_to_map(s->taken, number_of(vm));
}

/*
 * A new generation. While we go through the CPUs, one that we have not reached may still enter a VM
 * with an id of the old generation: then we find it there, and its number, which has not been given
 * to anybody, is kept.
 */
static void roll_over(struct vmid_space *s) {
    __atomic_store_n(&s->generation, s->generation + 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < map_words(s); i++) {
        s->taken[i] = s->kept[i];
    }
    for (uint32_t i = 0; i < s->cpu_count; i++) {
        uintptr_t active = __atomic_fetch_or(&s->cpu[i]->active, VMID_ROLLED, __ATOMIC_RELAXED);
        struct vmid *vm = (struct vmid *)(active & ~VMID_ROLLED);
        if (vm != NULL) {
            renew(s, vm);
        }
    }
    s->next = 0;
}

/* The first free number from s->next on; 0 if there is none. */
static uint32_t find_free(const struct vmid_space *s) {
    for (uint32_t word = s->next / WORD_BITS; word < map_words(s); word++) {
        uint64_t free = ~s->taken[word];
        if (word == s->next / WORD_BITS) {
            free &= UINT64_MAX << s->next % WORD_BITS;
        }
        if (free != 0) {
            uint32_t number = word * WORD_BITS + (uint32_t)__builtin_ctzll(free);
            return number < s->numbers ? number : 0;
        }
    }
    return 0;
}

/* A number for a VM that has none in this generation. */
static void give_number(struct vmid_space *s, struct vmid *vm) {
    uint32_t number = find_free(s);

    if (number == 0) {
        roll_over(s);
        number = find_free(s);
    }
    if (number == 0) { /* it would be the hypervisor's */
        __builtin_trap();
    }
    s->next = number + 1;
    __atomic_store_n(&vm->id, s->generation << VMID_BITS_MAX | number, __ATOMIC_RELAXED);
    add_to_map(s->taken, number);
}

/* Makes vm's id one of this generation. */
static void bring_up_to_date(struct vmid_space *s, struct vmid *vm) {
    if (vmid_generation(vm->id) == s->generation) {
        return;
    }
    if (vm->pins != 0) {
        renew(s, vm);
    } else {
        give_number(s, vm);
    }
}

/* ---- Calls ---- */

uint32_t vmid_enter_slow(struct vmid_space *s, struct vmid_cpu *cpu, struct vmid *vm) {
    uint32_t answer = 0;

    spin_lock(&s->lock);
    cpu->slow++;
    /* Who was here has left: if we roll over, its number need not be kept. */
    __atomic_store_n(&cpu->active, 0, __ATOMIC_RELAXED);
    bring_up_to_date(s, vm);
    if (cpu->generation != s->generation) {
        cpu->generation = s->generation;
        cpu->flushes++;
        answer = VMID_FLUSH;
    }
    __atomic_store_n(&cpu->active, (uintptr_t)vm, __ATOMIC_RELAXED);
    answer |= number_of(vm);
    spin_unlock(&s->lock);
    return answer;
}

bool vmid_forget(struct vmid_space *s, struct vmid *vm) {
    spin_lock(&s->lock);
    bool forgotten = vm->pins == 0;

    if (forgotten) {
        __atomic_store_n(&vm->id, 0, __ATOMIC_RELAXED);
        for (uint32_t i = 0; i < s->cpu_count; i++) {
            uintptr_t *word = &s->cpu[i]->active;
            uintptr_t active = __atomic_load_n(word, __ATOMIC_RELAXED);
            if ((active & ~VMID_ROLLED) == (uintptr_t)vm) {
                /* That CPU may replace it just now: then it need not be done. */
                __atomic_compare_exchange_n(word, &active, active & VMID_ROLLED, false,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED);
            }
        }
    }
    spin_unlock(&s->lock);
    return forgotten;
}

uint32_t vmid_pin(struct vmid_space *s, struct vmid *vm) {
    uint32_t number = 0;

    spin_lock(&s->lock);
    if (vm->pins != 0 || s->pinned < vmid_pin_limit(s)) {
        bring_up_to_date(s, vm);
        number = number_of(vm);
        if (vm->pins++ == 0) {
            s->pinned++;
            add_to_map(s->kept, number);
        }
    }
    spin_unlock(&s->lock);
    return number;
}

void vmid_unpin(struct vmid_space *s, struct vmid *vm) {
    spin_lock(&s->lock);
    if (--vm->pins == 0) {
        s->pinned--;
        take_from_map(s->kept, number_of(vm));
    }
    spin_unlock(&s->lock);
}
