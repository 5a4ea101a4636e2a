/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One virtual machine and its life: OFF -> LOADING -> RUNNING -> STOPPING -> OFF or LOADING. A
 * RUNNING one may be paused: its vCPUs that are on stand in run state OFF then.
 *
 * Locks: vm->lock guards state, power of the vCPUs and the reason for the end. Order: vm->lock
 * before any scheduler queue, interrupt controller or console lock.
 */
#ifndef HYP_VM_H
#define HYP_VM_H

#include <arch/vm.h>
#include <stdatomic.h>

#include "core/config.h"
#include "core/smccc.h"
#include "core/spinlock.h"
#include "core/vmid.h"
#include "hyp/console.h"
#include "hyp/load.h"
#include "hyp/pl011.h"
#include "hyp/types.h"
#include "hyp/vcpu.h"

#define VM_MAX_VCPUS 256u

enum vm_state { VM_OFF, VM_LOADING, VM_RUNNING, VM_STOPPING };

/* Why a VM ends; the first reason given counts. */
enum vm_end { VM_END_NONE, VM_END_OFF, VM_END_RESET, VM_END_CRASH };

struct vm {
    struct arch_vm arch;
    struct vmid vmid; /* under which number TLBs know it */
    const struct vm_config *config;
    unsigned index;      /* 0.. in the order of machine.conf */
    struct vcpu **vcpus; /* config->vcpus of them */
    ipa_t ram_ipa;       /* guest RAM, one piece for the guest */
    uint8_t *ram;        /* the same for the hypervisor, whatever pieces of memory are behind it */
    uint64_t ram_size;   /* bytes, multiple of PAGE_SIZE */
    struct spinlock lock;
    _Atomic uint32_t state; /* enum vm_state */
    enum vm_end end;
    const char *crash;           /* what happened, for VM_END_CRASH */
    struct console_port console; /* what it prints */
    unsigned alive;              /* vCPUs that are not yet out, while STOPPING */
    enum vm_end stop_wanted;     /* asked for while LOADING; NONE: nothing was */
    enum vm_end last_end;        /* how its last life ended */
    _Atomic uint32_t spin;       /* setting: enum config_spin */
    bool paused;
    bool clock_stands;    /* setting: its clocks stand while it is paused */
    bool stands_now;      /* the same, of the pause that is on */
    uint64_t paused_at;   /* when the last of its vCPUs went off for that, ticks */
    struct load_job load; /* scrubbing and loading, in small steps */
    struct vpl011 uart;
    struct smccc_features features; /* what its guest is offered */
};

/*
 * Creates the VM `config` with memory, tables and vCPUs, all of them off. Boot pCPU only. Panics
 * with a message when the machine has too little memory: nothing runs yet.
 */
struct vm *vm_create(const struct vm_config *config, unsigned index);

/* How many VMs are not OFF. The machine is turned off when none is left, unless somebody is there.
 */
extern _Atomic unsigned vms_running;

/* The monitor is open: the machine stays on without VMs, as they can be started again.
 */
extern _Atomic uint32_t vm_operator;

/* Says how the VMs ended, and turns the machine off. Any pCPU, no locks held. */
_Noreturn void vm_machine_off(void);

/* Begins to load and then run an OFF VM. Any pCPU. */
void vm_start(struct vm *vm);

/*
 * Ends a VM: each vCPU leaves at its next exit, which is made to come at once. Only the first
 * reason counts; a second call changes nothing. One that is LOADING ends as soon as its loader
 * looks. Any pCPU, vm->lock not held.
 */
void vm_stop(struct vm *vm, enum vm_end reason);

/*
 * Stops all its vCPUs where they stand. False: it is not RUNNING, or paused already. Any pCPU,
 * vm->lock not held. They leave their pCPUs soon after: vm_pausing().
 */
bool vm_pause(struct vm *vm);

/* `v` has left its guest because its VM pauses. On its pCPU. */
void vm_vcpu_paused(struct vcpu *v);

/* Whether a vCPU of a paused VM is still on its way out. Any pCPU. */
bool vm_pausing(const struct vm *vm);

/*
 * They go on. If its clocks stand (vm->clock_stands), the time since it stopped has not been for
 * it. False: it is not paused, or vm_pausing(). A vCPU that waited for an interrupt may go on
 * without one, as the architecture allows. Any pCPU, vm->lock not held.
 */
bool vm_resume(struct vm *vm);

/*
 * Stops `v`'s VM because of what that vCPU did, with a report on the console: the reason, PC, ESR,
 * FAR and registers. On the pCPU that runs v; v must not enter its guest again (return POWER_DOWN).
 */
void vm_crash(struct vcpu *v, const char *reason);

/*
 * CPU_ON as PSCI defines it: SUCCESS 0, ALREADY_ON -4, ON_PENDING -5 (DEN0022 5.6). Any pCPU.
 */
int vm_vcpu_on(struct vcpu *target, uint64_t pc, uint64_t arg);

/* CPU_OFF for the calling vCPU; its handler returns POWER_DOWN afterwards. */
void vm_vcpu_off(struct vcpu *v);

/*
 * A vCPU that is ON_PENDING begins: resets its registers, ON from now on. False when it is not (any
 * more) to start. On the pCPU that picked it.
 */
bool vm_vcpu_started(struct vcpu *v);

/* `v` has seen REQUEST_STOP: it is off from now on; the last one ends the VM. On its pCPU. */
void vm_vcpu_stopped(struct vcpu *v);

/*
 * One step of filling, or of cleaning up, the memory of a LOADING VM. True when that is finished:
 * then vCPU 0 is to be started, or the VM is OFF. On the pCPU that has vCPU 0.
 */
bool vm_load_step(struct vm *vm);

/*
 * Where the hypervisor sees `size` bytes of guest RAM at `ipa`, or NULL when
 * they are not all RAM of this VM. Any pCPU.
 */
void *vm_ram(const struct vm *vm, ipa_t ipa, uint64_t size);

/* All VMs, in the order of machine.conf. */
extern struct vm **vms;
extern unsigned vm_count;

#endif
