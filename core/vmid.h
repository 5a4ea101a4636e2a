/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which number tags a VM's translations in the TLBs: VMIDs on arm64, ASIDs on x86-64. There may be
 * more VMs than numbers.
 *
 * A VM's id is a number with the generation in which it is valid above it. When all numbers are
 * given out, the next who needs one *rolls over*: a new generation begins, in which VMs that are on
 * some CPU keep their number, and all others need a new one at their next entry. No CPU is forced
 * out of its guest: each forgets its translations at its own next entry that is not of the VM that
 * it already has.
 *
 * Each CPU has one word in a cache line of its own: the VM that is on it, and whether there was a
 * roll-over since it last looked (VMID_ROLLED, set by whoever rolls over). So
 *  - a VM that is on a CPU never loses its number: whoever rolls over finds it by that word;
 *  - a CPU whose mark is not set is up to date, and enters a VM of its own generation with one
 *    compare-exchange on that word, which fails if somebody rolls over meanwhile; with none if that
 *    VM is the one it already has;
 *  - "nobody is here" (no VM) is not the mark: a CPU that is left reserves nothing from then on.
 *
 * What must hold, and is checked by the model in tests/model/vmid.pml: number 0 is the hypervisor's
 * and is never given out; no two VMs on CPUs have one number; all vCPUs of a VM use the same one; a
 * number is not used on a CPU that remembers translations of another VM under it; a roll-over
 * always leaves a free number.
 *
 * Plain C with compiler atomics, nothing but core/spinlock.h is called.
 */
#ifndef CORE_VMID_H
#define CORE_VMID_H

#include <stdbool.h>
#include <stdint.h>

#include "core/cpu_set.h"
#include "core/spinlock.h"

#define VMID_BITS_MIN 4u
#define VMID_BITS_MAX 16u /* DDI 0487, VTTBR_EL2.VMID: 8 or 16 bits */
#define VMID_CPUS_MAX CPU_SET_MAX

/* In what vmid_enter() returns: the number, and what to do. */
#define VMID_NUMBER 0xffffu
#define VMID_FLUSH  0x10000u

#define VMID_ROLLED ((uintptr_t)1)

/* Of a VM. Zeroed: it has none yet. At an even address. */
struct vmid {
    uint64_t id;   /* atomic; generation << 16 | number; 0: none */
    uint32_t pins; /* lock */
};

/* Of a CPU. A line of its own, as others write it at a roll-over only. */
struct vmid_cpu {
    _Alignas(64) uintptr_t active; /* atomic; the struct vmid that is on it or 0, | VMID_ROLLED */
    uint64_t generation;           /* of its TLB; this CPU only, like what follows */
    uint64_t slow;                 /* entries that took the lock */
    uint64_t flushes;              /* entries that had to forget all translations */
};

struct vmid_space {
    struct spinlock lock;
    uint32_t numbers;    /* 2^bits */
    uint32_t cpu_count;  /* that were added */
    uint32_t cpu_limit;  /* that it was made for */
    uint32_t pinned;     /* VMs that are */
    uint32_t next;       /* where to look for a free number */
    uint64_t generation; /* from 1 */
    struct vmid_cpu *cpu[VMID_CPUS_MAX];
    uint64_t taken[(1u << VMID_BITS_MAX) / 64]; /* numbers of this generation that are given out */
    uint64_t kept[(1u << VMID_BITS_MAX) / 64];  /* those that no roll-over frees: 0, and pinned */
};

/*
 * Makes `s` ready for numbers of `bits` bits and up to `cpus` CPUs, which are then to be added.
 * False: not VMID_BITS_MIN..VMID_BITS_MAX bits, or not 1..VMID_CPUS_MAX CPUs, or too few numbers
 * for them: there must be more than one for each CPU beside number 0. Before anybody enters.
 */
bool vmid_init(struct vmid_space *s, unsigned bits, unsigned cpus);

/* Adds a CPU, at most as many as vmid_init() was told. Before anybody enters. */
void vmid_add_cpu(struct vmid_space *s, struct vmid_cpu *cpu);

/*
 * A vCPU of `vm` is about to run on `cpu`, in place of whatever was there. Returns the number to
 * use (in VMID_NUMBER, never 0); with VMID_FLUSH, all translations of all numbers on this CPU must
 * be forgotten before the guest is entered. On that CPU, which is in no guest; it can't be
 * preempted. Not at the same time as vmid_forget() of the same VM.
 */
static inline uint32_t vmid_enter(struct vmid_space *s, struct vmid_cpu *cpu, struct vmid *vm);
uint32_t vmid_enter_slow(struct vmid_space *s, struct vmid_cpu *cpu, struct vmid *vm);

/*
 * No guest is on `cpu` until the next vmid_enter(), which should be some time off: it is idle. On
 * that CPU. A switch from one vCPU to the next needs none.
 */
static inline void vmid_leave(struct vmid_cpu *cpu);

/*
 * What was translated for `vm` is no longer true: it begins anew, or ends. It takes another number
 * at its next entry, so that nothing need be flushed: true. A pinned one keeps its number: false,
 * and the caller must have it forgotten on all CPUs. None of its vCPUs is in its guest, nor enters
 * meanwhile. After that the memory of `vm` may be given back, if it is not pinned. Takes the lock;
 * its time grows with the number of CPUs.
 */
bool vmid_forget(struct vmid_space *s, struct vmid *vm);

/*
 * From now on `vm` keeps its number over all roll-overs, as a device's TLB needs it. Returns that
 * number; 0 if vmid_pin_limit() others are pinned already. To be undone as often as it was done.
 * Any CPU; takes the lock.
 */
uint32_t vmid_pin(struct vmid_space *s, struct vmid *vm);

/* The number may go to another VM after the next roll-over: no device uses it any more. */
void vmid_unpin(struct vmid_space *s, struct vmid *vm);

/*
 * How many VMs can be pinned at once: one number is the hypervisor's, one may be kept for each CPU,
 * and one must be free so that an entry after a roll-over succeeds.
 */
static inline uint32_t vmid_pin_limit(const struct vmid_space *s) {
    return s->numbers - s->cpu_limit - 2;
}

/* Roll-overs so far. Any CPU; may be old when it arrives. */
static inline uint64_t vmid_rollovers(const struct vmid_space *s) {
    return __atomic_load_n(&s->generation, __ATOMIC_RELAXED) - 1;
}

static inline uint64_t vmid_generation(uint64_t id) {
    return id >> VMID_BITS_MAX;
}

/*
 * Where no order is asked for, none is needed: what must not be overtaken is said about one word,
 * cpu->active, and all else that matters is read and written under the lock.
 */
static inline uint32_t vmid_enter(struct vmid_space *s, struct vmid_cpu *cpu, struct vmid *vm) {
    uint64_t id = __atomic_load_n(&vm->id, __ATOMIC_RELAXED);
    uintptr_t active = __atomic_load_n(&cpu->active, __ATOMIC_RELAXED);

    if (__builtin_expect(vmid_generation(id) == cpu->generation, 1) &&
        (active == (uintptr_t)vm ||
         ((active & VMID_ROLLED) == 0 &&
          __atomic_compare_exchange_n(&cpu->active, &active, (uintptr_t)vm, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)))) {
        return (uint32_t)id & VMID_NUMBER;
    }
    return vmid_enter_slow(s, cpu, vm);
}

static inline void vmid_leave(struct vmid_cpu *cpu) {
    __atomic_fetch_and(&cpu->active, VMID_ROLLED, __ATOMIC_RELAXED);
}

#endif
