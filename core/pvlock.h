/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The preempted flag: a record in guest memory that says whether its vCPU is on a CPU. Two dialects
 * share it (abi/pvlock.h); a vCPU speaks one at a time, the one in which it called last.
 *
 * A record's memory is resolved when the record is set up and must stay where it is until
 * pvlock_end(): the switch path only stores, and never reads guest memory or follows an address
 * again. A guest that writes to its record harms itself alone.
 *
 * Locks. While the vCPU runs, its pCPU alone touches its struct pvlock: the guest's calls,
 * pvlock_end(), and pvlock_state() when it leaves. While it does not, whoever changes its state
 * does, with pvlock_state() only, and holds the lock of its run queue. It leaves and comes back
 * under such a lock, so each of them sees what the one before did. The attribute: before its VM
 * runs.
 */
#ifndef CORE_PVLOCK_H
#define CORE_PVLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/pvlock.h"

enum pvlock_dialect { PVLOCK_NONE, PVLOCK_PV_LOCK, PVLOCK_PV_SCHED };

/* One vCPU's. */
struct pvlock {
    uint32_t *record;  /* in use: stored to at each switch; NULL: nothing is */
    uint64_t *own;     /* the record at `ipa`, NULL while that is not set */
    uint64_t ipa;      /* PVLOCK_IPA, or PVLOCK_IPA_UNSET */
    uint64_t used_ipa; /* guest address of `record` */
    uint64_t flagged;  /* how often it was non-zero before its vCPU ran */
    uint8_t dialect;   /* enum pvlock_dialect: whose record `record` is */
    bool flag_blocked; /* policy: a vCPU that waits in WFI counts as preempted too */
};

/* What pvlock must know of a VM. */
struct pvlock_vm {
    bool offers_pv_lock;
    void *context;
    /* Our address of `size` bytes of guest memory at `ipa`, all of it memory; or NULL. */
    void *(*memory)(void *context, uint64_t ipa, uint64_t size);
    /* The same, of memory that the guest may write. */
    void *(*ram)(void *context, uint64_t ipa, uint64_t size);
    /* Reads *from, the VMM's pointer, into *value. False: it can't be read. NULL: plain memory. */
    bool (*fetch)(void *context, const uint64_t *from, uint64_t *value);
};

/* No record, not set. `flag_blocked`: see there. */
void pvlock_init(struct pvlock *p, bool flag_blocked);

/*
 * The vCPU's attribute (group PVLOCK_CTRL, PVLOCK_IPA). Checked in this order: -PV_ENXIO for
 * another group or attribute, or if PV lock is not offered; -PV_EFAULT for a pointer that can't be
 * followed; -PV_EINVAL for an address that is not aligned to 64; -PV_EEXIST if it is set already;
 * -PV_EINVAL if it is not in the VM's memory. 0: done.
 */
int pvlock_attr_set(struct pvlock *p, const struct pvlock_vm *vm, uint32_t group, uint64_t attr,
                    const uint64_t *value);

/* 0 and the address, PVLOCK_IPA_UNSET before it is set; -PV_ENXIO, -PV_EFAULT (NULL) as above. */
int pvlock_attr_get(const struct pvlock *p, const struct pvlock_vm *vm, uint32_t group,
                    uint64_t attr, uint64_t *value);

/* 0 if that attribute is there, else -PV_ENXIO. */
int pvlock_attr_has(const struct pvlock_vm *vm, uint32_t group, uint64_t attr);

/* PVLOCK_ID: zeroes the caller's record, uses it from now on and returns its IPA, or -1. */
int64_t pvlock_call(struct pvlock *p, const struct pvlock_vm *vm);

/*
 * PVSCHED_ID_INIT with the guest's argument: 0, or -1 for an address that is not aligned to 64 or
 * not in RAM, which changes nothing. A second call moves the record.
 */
int64_t pvsched_init(struct pvlock *p, const struct pvlock_vm *vm, uint64_t ipa);

/* PVSCHED_ID_RELEASE: 0. Nothing is stored to the guest's record any more. */
int64_t pvsched_release(struct pvlock *p);

/*
 * The vCPU goes off, or its VM ends: no record is in use any more. PVLOCK_IPA stays. The record
 * that was says that its vCPU runs, if it did.
 */
void pvlock_end(struct pvlock *p);

/*
 * The vCPU runs from now on; or it does not and is `away`, as it waits for a CPU or its VM is
 * paused, or waits for an interrupt and the policy says so. A record is in use: that of a vCPU that
 * goes off was ended before. By whoever changes the state, with the lock of its run queue.
 *
 * One store of 32 bits for both dialects: the upper half of PV lock's word is 0 for ever.
 */
static inline void pvlock_state(struct pvlock *p, bool runs, bool away) {
    p->flagged += runs; /* who runs was away just before */
    __atomic_store_n(p->record, away, __ATOMIC_RELEASE);
}

#endif
