/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A machine's start and its memory, for tests: instead of hyp/boot.c, hyp/load.c and hyp/mem.c.
 * The order is that of boot.c.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/fake/private.h"
#include "core/trace.h"
#include "hyp/arch.h"
#include "hyp/boot.h"
#include "hyp/mem.h"
#include "hyp/vmids.h"

#define PIECES     1024u
#define RAM_SIZE   (FAKE_PAGES * PAGE_SIZE)
#define FIRST_PAGE 0x100000000ull

struct pcpu *pcpus[PCPU_MAX];
unsigned pcpu_count;
void (*fake_prepare)(void);

static void *pieces[PIECES];
static unsigned piece_count;
static uint64_t next_ram;
static struct vm_config configs[FAKE_VMS];
static const struct fake_setup *setup;

/* ---- Memory ---- */

void *boot_alloc(uint64_t size) {
    size_t room = (size_t)(size + 127) & ~(size_t)127;
    void *piece = aligned_alloc(128, room);

    if (piece == NULL || piece_count == PIECES) {
        abort();
    }
    memset(piece, 0, room);
    pieces[piece_count++] = piece;
    return piece;
}

void *mem_alloc(uint64_t size) {
    return boot_alloc(size);
}

/* Nobody but the TLB model ever looks at guest memory, so that addresses are enough. */
bool mem_take(uint64_t size, uint64_t align, phys_t *base) {
    base->v = next_ram;
    next_ram = (next_ram + size + align - 1) & ~(align - 1);
    return true;
}

uint64_t mem_free(void) {
    return UINT64_MAX;
}

uint64_t mem_take_piece(uint64_t size, uint64_t align, phys_t *base) {
    return mem_take(size, align, base) ? size : 0;
}

void fake_free(void) {
    for (unsigned i = 0; i < vm_count; i++) {
        for (unsigned n = 0; n < vms[i]->config->vcpus; n++) {
            fiber_free(vms[i]->vcpus[n]->arch.fiber);
        }
    }
    engine_free();
    for (unsigned i = 0; i < piece_count; i++) {
        free(pieces[i]);
    }
    piece_count = 0;
    vm_count = 0;
    core_watch = 0; /* records that were in use when it ended */
}

/* ---- Loading: what vm.c expects, in time only ---- */

void load_begin(struct vm *vm) {
    vm->load.phase = LOAD_SCRUB;
    vm->load.done = 0;
    vm->load.error = NULL;
}

static void nobody_inside(const struct vm *vm) {
    for (unsigned i = 0; i < pcpu_count; i++) {
        const struct vcpu *v = pcpus[i]->loaded;
        if (v != NULL && v->vm == vm && v->on_pcpu) {
            fake_fault("vm %u: memory is filled while vcpu %u is on a pCPU", vm->index, v->index);
        }
    }
}

bool load_step(struct vm *vm) {
    struct load_job *job = &vm->load;

    nobody_inside(vm);
    fake_spend(vm->arch.load_ticks);
    vm->arch.loading += vm->arch.load_ticks;
    nobody_inside(vm);
    if (++job->done < vm->arch.load_steps) {
        return false;
    }
    job->done = 0;
    if (job->phase == LOAD_SCRUB) {
        job->phase = LOAD_KERNEL;
        return false;
    }
    vm->arch.loads++;
    tlb_vm_loaded(vm);
    job->phase = LOAD_DONE;
    job->kernel_ipa = (uint64_t)(uintptr_t)vm->arch.program;
    job->dtb_ipa = vm->arch.arg;
    return true;
}

/* ---- The end ---- */

/* The scheduler's times against each other and against what the fake pCPUs saw. */
static void check_times(const struct vcpu *v, uint64_t now) {
    const struct sched_entity *e = &v->sched;
    uint64_t sum = now - e->since, running = e->times[RUN_RUNNING], seen = v->arch.ran;

    for (unsigned state = 0; state < RUN_STATES; state++) {
        sum += e->times[state];
    }
    if (sum != now - fake_started()) {
        fake_fault("vm %u vcpu %u: its times add up to %lu of %lu", v->vm->index, v->index, sum,
                   now - fake_started());
    }
    running += e->state == RUN_RUNNING ? now - e->since : 0;
    seen += v->arch.run_from != UINT64_MAX ? now - v->arch.run_from : 0;
    seen += v->index == 0 ? v->vm->arch.loading : 0;
    if (running < seen || (engine_exact() && running != seen)) {
        fake_fault("vm %u vcpu %u: ran %lu, but was seen running %lu", v->vm->index, v->index,
                   running, seen);
    }
}

/* Nothing of a vCPU that is off may be left anywhere; one that runs now is not yet out. */
static void check_off(const struct vcpu *v) {
    if (v->power != VCPU_OFF || v->sched.state != RUN_OFF || v->sched.on_cpu) {
        return;
    }
    if (v->on_pcpu || v->timer.queue != NULL) {
        fake_fault("vm %u vcpu %u: off, but on_pcpu is %d and its timer set: %d", v->vm->index,
                   v->index, v->on_pcpu, v->timer.queue != NULL);
    }
    for (unsigned i = 0; i < pcpu_count; i++) {
        if (pcpus[i]->current == v) {
            fake_fault("vm %u vcpu %u: off, but on CPU %u", v->vm->index, v->index, i);
        }
    }
}

/* A vCPU that waits for a CPU beside an idle one that it may use. */
static void check_idle(const struct vcpu *v) {
    for (unsigned i = 0; i < pcpu_count && v->sched.state == RUN_RUNNABLE; i++) {
        if (pcpus[i]->current == NULL && cpu_set_has(&v->sched.allowed, i)) {
            fake_fault("vm %u vcpu %u waits beside the idle CPU %u", v->vm->index, v->index, i);
        }
    }
}

static void check_end(enum fake_end end) {
    uint64_t now = guest_clock();

    for (unsigned i = 0; i < vm_count; i++) {
        for (unsigned n = 0; n < vms[i]->config->vcpus; n++) {
            check_times(vms[i]->vcpus[n], now);
            check_off(vms[i]->vcpus[n]);
            if (end == FAKE_LIMIT) { /* all pCPUs have settled */
                check_idle(vms[i]->vcpus[n]);
            }
        }
    }
}

/* ---- Start ---- */

uint64_t fake_switch_ticks(void) {
    return setup->switch_ticks;
}

uint64_t fake_refill_ticks(void) {
    return setup->refill_ticks;
}

static void create_vm(unsigned i) {
    const struct fake_vm *from = &setup->vm[i];
    struct vm_config *config = &configs[i];

    memset(config, 0, sizeof(*config));
    snprintf(config->name, sizeof(config->name), "vm%u", i);
    config->vcpus = from->vcpus;
    config->weight = from->weight != 0 ? from->weight : CONFIG_WEIGHT_DEFAULT;
    config->advance_ns = from->advance_ns;
    config->cpus = cpu_set_all();
    if (from->cpus != 0) {
        config->cpus = cpu_set_none();
        config->cpus.bits[0] = from->cpus;
    }
    config->memory = RAM_SIZE;
    vms[i] = vm_create(config, i);
    vms[i]->arch.program = from->program;
    vms[i]->arch.arg = from->arg;
    vms[i]->arch.load_steps = from->load_steps != 0 ? from->load_steps : 4;
    vms[i]->arch.load_ticks = from->load_ticks != 0 ? from->load_ticks : 10;
}

static void start_vms(void) {
    atomic_store(&vms_running, 1);
    for (unsigned i = 0; i < setup->vms; i++) {
        if (!setup->vm[i].off) {
            vm_start(vms[i]);
        }
    }
    atomic_fetch_sub(&vms_running, 1);
}

static void cpu_main(void *p) {
    struct pcpu *self = p;

    if (self->index == 0) {
        start_vms();
    } else {
        fake_spend(20u * self->index);
        self->arch.kicked = false; /* its interrupt controller is set up only now */
    }
    sched_cpu_online(self->index);
    arch_enter(vcpu_first());
}

enum fake_end fake_run(const struct fake_setup *what) {
    uint64_t slice = what->slice != 0 ? what->slice : FAKE_SLICE;
    enum fake_end end;

    fake_free();
    setup = what;
    next_ram = FIRST_PAGE;
    engine_reset(what);
    pcpu_count = what->cpus;
    sched_init(pcpu_count, slice);
    advance_clock(arch_clock_hz());
    vms = boot_alloc(what->vms * sizeof(struct vm *));
    for (unsigned i = 0; i < pcpu_count; i++) {
        struct pcpu *p = boot_alloc(sizeof(*p));
        p->index = i;
        p->last_vcpu = boot_alloc(what->vms * sizeof(struct vcpu *));
        p->armed = p->arch.hyp_timer = TIMER_NEVER;
        p->arch.tlb = tlb_new();
        pcpus[i] = p;
        engine_start_cpu(p, cpu_main);
    }
    timer_init_cpus(pcpu_count);
    fake_this = pcpus[0];
    vmids_init(what->vmid_bits);
    for (unsigned i = 0; i < what->vms; i++) {
        create_vm(i);
        vm_count = i + 1;
    }
    if (fake_prepare != NULL) {
        fake_prepare();
    }
    end = engine_run();
    check_end(end);
    return end;
}
