/* SPDX-License-Identifier: GPL-2.0-only */
/* VMs and their life: create, start, stop, restart; power of their vCPUs. */
#include "hyp/vm.h"

#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/stats.h"
#include "hyp/trace.h"
#include "hyp/vmids.h"

struct vm **vms;
unsigned vm_count;
_Atomic unsigned vms_running;

_Atomic uint32_t vm_operator;

/* Whole blocks, from wherever there are some. */
static void give_memory(struct vm *vm) {
    uint64_t free = mem_free(), size;
    phys_t piece;

    for (uint64_t done = 0; done < vm->ram_size; done += size) {
        size = mem_take_piece(vm->ram_size - done, BLOCK_SIZE, &piece);
        if (size == 0) {
            panic("vm %s: memory: found %lu MiB free in the machine, expected %lu MiB in blocks of "
                  "2 MiB",
                  vm->config->name, free >> 20, vm->ram_size >> 20);
        }
        arch_vm_map_ram(vm, done, piece, size);
    }
}

struct vm *vm_create(const struct vm_config *config, unsigned index) {
    struct vm *vm = mem_alloc(sizeof(*vm));

    vm->config = config;
    vm->index = index;
    atomic_store(&vm->spin, config->spin);
    vm->ram_ipa = arch_vm_ram_base();
    vm->ram_size = config->memory;
    vm->vcpus = mem_alloc(config->vcpus * sizeof(*vm->vcpus));
    for (unsigned i = 0; i < config->vcpus; i++) {
        vm->vcpus[i] = mem_alloc(sizeof(struct vcpu));
    }
    arch_vm_init(vm);
    give_memory(vm);
    for (unsigned i = 0; i < config->vcpus; i++) {
        vcpu_init(vm->vcpus[i], vm, i);
    }
    arch_vm_offer(vm);
    return vm;
}

/* vCPU 0 loads, or cleans up, in its own time. vm->lock held. */
static void begin_loading(struct vm *vm) {
    load_begin(vm);
    atomic_store(&vm->state, VM_LOADING);
    trace_vm(vm, VM_LOADING);
    sched_wake(&vm->vcpus[0]->sched);
}

void vm_start(struct vm *vm) {
    spin_lock(&vm->lock);
    if (atomic_load(&vm->state) == VM_OFF) {
        vm->end = vm->stop_wanted = VM_END_NONE;
        atomic_fetch_add(&vms_running, 1);
        begin_loading(vm);
    }
    spin_unlock(&vm->lock);
}

/* All vCPUs are out: says so, and has the memory scrubbed (and loaded again for a reset). */
static void vm_ended(struct vm *vm) {
    const char *name = vm->config->name;

    spin_lock(&vm->uart.lock);
    console_guest_flush(vm);
    spin_unlock(&vm->uart.lock);
    if (vm->end == VM_END_RESET) {
        console_printf("vm %s: reset", name);
    } else {
        stats_print(vm);
        if (vm->end == VM_END_CRASH) {
            console_printf("vm %s: crashed: %s", name, vm->crash);
        } else {
            console_printf("vm %s: off", name);
        }
    }
    spin_lock(&vm->lock);
    begin_loading(vm);
    spin_unlock(&vm->lock);
}

_Noreturn void vm_machine_off(void) {
    unsigned off = 0, crashed = 0;

    for (unsigned i = 0; i < vm_count; i++) {
        off += vms[i]->last_end == VM_END_OFF;
        crashed += vms[i]->last_end == VM_END_CRASH;
    }
    stats_print_cpus();
    trace_finish();
    console_printf("machine off: %u off, %u crashed", off, crashed);
    console_drain();
    arch_power_off();
}

/* The VM's memory is clean and nothing of it is left. The last one turns the machine off. */
static void vm_gone(struct vm *vm) {
    vm->last_end = vm->end;
    trace_vm(vm, VM_OFF);
    atomic_store(&vm->state, VM_OFF);
    if (atomic_fetch_sub(&vms_running, 1) == 1) {
        if (!atomic_load(&vm_operator)) {
            vm_machine_off();
        }
        console_printf("no VM runs: `start VM` or `off` in the monitor");
    }
}

/* Somebody wanted a VM to stop while it was loading: what was loaded so far goes. */
static void stop_loading(struct vm *vm) {
    spin_lock(&vm->lock);
    vm->end = vm->stop_wanted;
    vm->stop_wanted = VM_END_NONE;
    spin_unlock(&vm->lock);
    load_begin(vm);
    if (vm->end != VM_END_RESET) {
        console_printf("vm %s: off", vm->config->name);
    }
}

/* Whether all its vCPUs are off their pCPUs, vCPU 0, whose time this is, excepted. */
static bool all_released(const struct vm *vm) {
    for (unsigned i = 1; i < vm->config->vcpus; i++) {
        if (__atomic_load_n(&vm->vcpus[i]->sched.on_cpu, __ATOMIC_ACQUIRE)) {
            return false;
        }
    }
    return true;
}

bool vm_load_step(struct vm *vm) {
    bool cleaning = vm->end == VM_END_OFF || vm->end == VM_END_CRASH;

    if (!all_released(vm)) {
        return false;
    }
    if (vm->stop_wanted != VM_END_NONE && !cleaning) {
        stop_loading(vm);
        return false;
    }
    if (cleaning && vm->load.phase != LOAD_SCRUB) {
        vm_gone(vm);
        return true;
    }
    if (!load_step(vm)) {
        return false;
    }
    if (vm->load.error != NULL) {
        console_printf("vm %s: crashed: %s", vm->config->name, vm->load.error);
        vm->end = VM_END_CRASH;
        vm->stop_wanted = VM_END_NONE; /* it stops anyway */
        load_begin(vm);                /* what was loaded so far goes */
        return false;
    }
    arch_vm_reset(vm);
    vmid_forget(&vmids, &vm->vmid); /* what its last life translated: no other place forgets that */
    vpl011_reset(vm);
    spin_lock(&vm->lock);
    if (vm->stop_wanted != VM_END_NONE) {
        spin_unlock(&vm->lock);
        return false;
    }
    vm->end = VM_END_NONE;
    vm->vcpus[0]->start_pc = vm->load.kernel_ipa;
    vm->vcpus[0]->start_arg = vm->load.dtb_ipa;
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        struct vcpu *v = vm->vcpus[i];
        atomic_store(&v->requests, 0);
        steal_begin(&v->sched.steal, sched_waited(&v->sched));
    }
    vm->features.fixed = true;
    atomic_store(&vm->vcpus[0]->power, VCPU_ON_PENDING);
    atomic_store(&vm->state, VM_RUNNING);
    trace_vm(vm, VM_RUNNING);
    spin_unlock(&vm->lock);
    return true;
}

void vm_stop(struct vm *vm, enum vm_end reason) {
    bool ended = false;

    spin_lock(&vm->lock);
    if (atomic_load(&vm->state) == VM_RUNNING) {
        atomic_store(&vm->state, VM_STOPPING);
        trace_vm(vm, VM_STOPPING);
        vm->end = reason;
        vm->alive = 0;
        vm->paused = false;
        for (unsigned i = 0; i < vm->config->vcpus; i++) {
            struct vcpu *v = vm->vcpus[i];
            if (atomic_load(&v->power) >= VCPU_ON) {
                atomic_store(&v->power, VCPU_ON);
                vm->alive++;
                vcpu_request_off(v, REQUEST_STOP);
            } else {
                atomic_store(&v->power, VCPU_OFF);
            }
        }
        ended = vm->alive == 0;
    } else if (atomic_load(&vm->state) != VM_OFF && vm->end != VM_END_OFF &&
               vm->end != VM_END_CRASH && vm->stop_wanted != VM_END_OFF) {
        vm->stop_wanted = reason; /* LOADING, or on its way there: the loader sees it */
    }
    spin_unlock(&vm->lock);
    if (ended) {
        vm_ended(vm);
    }
}

void vm_vcpu_stopped(struct vcpu *v) {
    struct vm *vm = v->vm;

    spin_lock(&vm->lock);
    atomic_store(&v->power, VCPU_OFF);
    pvlock_end(&v->sched.pvlock); /* its record's memory is scrubbed next */
    steal_end(&v->sched.steal);
    bool last = --vm->alive == 0;
    spin_unlock(&vm->lock);
    if (last) {
        vm_ended(vm);
    }
}

bool vm_pause(struct vm *vm) {
    spin_lock(&vm->lock);
    bool can = atomic_load(&vm->state) == VM_RUNNING && !vm->paused;
    if (can) {
        vm->paused = true;
        vm->stands_now = vm->clock_stands;
        for (unsigned i = 0; i < vm->config->vcpus; i++) {
            struct vcpu *v = vm->vcpus[i];
            if (atomic_load(&v->power) == VCPU_ON) {
                atomic_store(&v->pausing, 1u);
                atomic_store(&v->power, VCPU_PAUSED);
                vcpu_request_off(v, REQUEST_PAUSE);
            }
        }
        vm->paused_at = port_clock();
    }
    spin_unlock(&vm->lock);
    return can;
}

void vm_vcpu_paused(struct vcpu *v) {
    if (atomic_load_explicit(&v->pausing, memory_order_relaxed) != 0) {
        spin_lock(&v->vm->lock);
        v->vm->paused_at = port_clock();
        atomic_store(&v->pausing, 0u);
        spin_unlock(&v->vm->lock);
    }
}

bool vm_pausing(const struct vm *vm) {
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        const struct vcpu *v = vm->vcpus[i];
        bool waits = atomic_load(&v->pausing) != 0 && atomic_load(&v->power) == VCPU_PAUSED;

        if (waits || __atomic_load_n(&v->sched.state, __ATOMIC_ACQUIRE) == RUN_RUNNING) {
            return true;
        }
    }
    return false;
}

bool vm_resume(struct vm *vm) {
    spin_lock(&vm->lock);
    bool can = vm->paused && !vm_pausing(vm);
    if (can) {
        vm->paused = false;
        if (vm->stands_now) {
            arch_vm_clock_stood(vm, port_clock() - vm->paused_at);
        }
        for (unsigned i = 0; i < vm->config->vcpus; i++) {
            struct vcpu *v = vm->vcpus[i];
            if (atomic_load(&v->power) == VCPU_PAUSED) {
                atomic_store(&v->power, VCPU_ON);
                sched_wake(&v->sched);
            }
        }
    }
    spin_unlock(&vm->lock);
    return can;
}

void vm_crash(struct vcpu *v, const char *reason) {
    struct vm *vm = v->vm;

    console_printf("vm %s vcpu %u: stopped: %s", vm->config->name, v->index, reason);
    arch_vcpu_report(v);
    spin_lock(&vm->lock);
    if (vm->crash == NULL || atomic_load(&vm->state) == VM_RUNNING) {
        vm->crash = reason;
    }
    spin_unlock(&vm->lock);
    vm_stop(vm, VM_END_CRASH);
}

int vm_vcpu_on(struct vcpu *target, uint64_t pc, uint64_t arg) {
    struct vm *vm = target->vm;
    int result = 0;

    spin_lock(&vm->lock);
    switch ((enum vcpu_power)atomic_load(&target->power)) {
    case VCPU_ON:
    case VCPU_PAUSED:
        result = -4;
        break;
    case VCPU_ON_PENDING:
        result = -5;
        break;
    default:
        if (atomic_load(&vm->state) != VM_RUNNING) {
            break; /* the caller is on its way out and never sees the answer */
        }
        target->start_pc = pc;
        target->start_arg = arg;
        atomic_store(&target->power, VCPU_ON_PENDING);
        sched_wake(&target->sched);
    }
    spin_unlock(&vm->lock);
    return result;
}

bool vm_vcpu_started(struct vcpu *v) {
    struct vm *vm = v->vm;

    spin_lock(&vm->lock);
    bool start = atomic_load(&v->power) == VCPU_ON_PENDING;
    if (start) {
        arch_vcpu_reset(v, v->start_pc, v->start_arg);
        atomic_store(&v->power, vm->paused ? VCPU_PAUSED : VCPU_ON);
    }
    spin_unlock(&vm->lock);
    return start;
}

void vm_vcpu_off(struct vcpu *v) {
    struct vm *vm = v->vm;

    /* A CPU_ON from now on must not be lost, one from before must not linger. */
    sched_block_prepare(&v->sched);
    spin_lock(&vm->lock);
    if (atomic_load(&vm->state) == VM_RUNNING) {
        atomic_store(&v->power, VCPU_OFF);
        pvlock_end(&v->sched.pvlock);
    }
    spin_unlock(&vm->lock);
}

void *vm_ram(const struct vm *vm, ipa_t ipa, uint64_t size) {
    if (ipa.v < vm->ram_ipa.v || size > vm->ram_size ||
        ipa.v - vm->ram_ipa.v > vm->ram_size - size) {
        return NULL;
    }
    return vm->ram + (ipa.v - vm->ram_ipa.v);
}
