/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A VM of a few vCPUs behind trap_sync(), for the targets that decode what a guest did: the real
 * decoders and devices, with the scheduler, the hardware's list registers and time played here.
 */
#ifndef TESTS_FUZZ_MACHINE_H
#define TESTS_FUZZ_MACHINE_H

#include "tests/fuzz/fuzz.h"

#include <setjmp.h>
#include <sys/mman.h>

#include "arch/arm64/debug.h"
#include "arch/arm64/esr.h"
#include "arch/arm64/fp.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/guest_map.h"
#include "arch/arm64/id_regs.h"
#include "arch/arm64/pauth.h"
#include "arch/arm64/setway.h"
#include "arch/arm64/stage2.h"
#include "arch/arm64/trap.h"
#include "arch/arm64/vm_regs.h"
#include "core/port.h"
#include "core/trace.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/spin.h"
#include "hyp/vm.h"
#include "tests/fuzz/no_sysreg.h"

#define VCPUS    3u
#define RAM_SIZE (64u << 10)

static struct vm vm;
static struct vm_config config;
static struct vcpu vcpus[VCPUS], *vcpu_table[VCPUS];
static uint8_t ram[RAM_SIZE];
static struct fuzz_input in;
static uint64_t now, esr_el2, far_el2, hpfar_el2, el1[4]; /* el1: TCR, TTBR0, TTBR1, SCTLR */
static bool ended, room = true;
static unsigned setway_calls;
static struct pcpu pcpu;
struct pcpu *pcpus[PCPU_MAX] = {&pcpu};
unsigned pcpu_count;

/* ---- hardware ---- */

uint64_t fuzz_read_sysreg(const char *name) {
    static const char *const names[] = {"TCR_EL1", "TTBR0_EL1", "TTBR1_EL1", "SCTLR_EL1"};

    if (strcmp(name, "ESR_EL2") == 0) {
        return esr_el2;
    }
    if (strcmp(name, "FAR_EL2") == 0) {
        return far_el2;
    }
    if (strcmp(name, "HPFAR_EL2") == 0) {
        return hpfar_el2;
    }
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(name, names[i]) == 0) {
            return el1[i];
        }
    }
    return 0;
}

void fuzz_write_sysreg(const char *name, uint64_t value) {
    (void)name;
    (void)value;
}

uint64_t port_clock(void) {
    return now;
}

void port_relax(void) {
    must(!"a lock is taken twice");
}

/* The guest acknowledged and ended some of what is in its list registers. */
void gic_virt_fold(struct vcpu *v) {
    struct vgic_vcpu *g = &v->arch.vgic;

    if (!vgic_live(g)) {
        return;
    }
    for (unsigned i = 0; i < g->n_lr; i++) {
        if ((g->lr_used >> i & 1u) != 0) {
            uint64_t left = fuzz_take(&in, 1), was = g->lr[i];

            g->lr[i] = was & ~((left & 3u) << 62);
            if ((left & 4u) != 0 && (was & VGIC_LR_PENDING) != 0) {
                g->lr[i] = (was & ~VGIC_LR_PENDING) | VGIC_LR_ACTIVE;
            }
            g->lr_write &= ~(1u << i);
        }
    }
    g->ich_vmcr = fuzz_take(&in, 1) * 0x01010101u;
    g->hcr_in = fuzz_take(&in, 1) << VGIC_HCR_EOICOUNT_SHIFT & ~0ull;
    vgic_fold(g);
}

void vgic_notify(struct vgic_vcpu *g) {
    struct vcpu *v = (struct vcpu *)((char *)g - offsetof(struct vcpu, arch.vgic));

    vcpu_request(v, REQUEST_IRQ);
}

void vgic_sync_remote(struct vgic_vcpu *g) {
    gic_virt_fold((struct vcpu *)((char *)g - offsetof(struct vcpu, arch.vgic)));
    must(!vgic_live(g));
}

void vgic_phys_deactivate(struct vgic_vcpu *v, unsigned pintid) {
    (void)v;
    must(pintid == 27);
}

void debug_load(struct vcpu *v) {
    (void)v;
}

void debug_unload(struct vcpu *v) {
    (void)v;
}

bool setway_access(struct vcpu *v) {
    (void)v;
    return ++setway_calls % 4 == 0;
}

bool setway_control(struct vcpu *v, uint64_t old, uint64_t new) {
    (void)v;
    return ++setway_calls % 4 == 0 && old != new;
}

uint64_t vm_reg_read(uint16_t key) {
    return key;
}

void vm_reg_write(uint16_t key, uint64_t value) {
    (void)key;
    (void)value;
}

uint64_t vm_reg_revidr(void) {
    return 1;
}

uint64_t vm_reg_aidr(void) {
    return 2;
}

/* ---- hyp/ ---- */

bool console_guest_putc(struct vm *v, uint8_t byte) {
    (void)v;
    (void)byte;
    return room;
}

void console_printf(const char *format, ...) {
    (void)format;
}

void console_printf_limited(struct vm *v, const char *format, ...) {
    (void)v;
    (void)format;
}

void panic(const char *format, ...) {
    (void)format;
    must(!"panic");
    abort();
}

void arch_vm_uart_line(struct vm *v, bool level) {
    vgic_set_level(&v->vcpus[0]->arch.vgic, VGIC_FIRST_SPI + GUEST_SPI_UART, level);
}

void arch_handle_interrupts(void) {
}

/* Once a turn at most: what traps then is no use of FP registers. */
bool fp_enable(struct arch_vcpu *a) {
    (void)a;
    return false;
}

bool pauth_enable(struct vcpu *v) {
    (void)v;
    return false;
}

void vcpu_request_other(struct vcpu *v, uint32_t request) {
    atomic_fetch_or(&v->requests, request);
}

void vcpu_timer_update(struct vcpu *v, bool blocked) {
    (void)v;
    (void)blocked;
}

void vcpu_look_for_storm(struct pcpu *p, struct vcpu *v) {
    (void)p;
    (void)v;
}

enum verdict vcpu_spins(struct pcpu *p, struct vcpu *v) {
    (void)p;
    (void)v;
    return YIELD;
}

enum verdict vcpu_yield_to(struct pcpu *p, struct vcpu *v, struct vcpu *to) {
    (void)p;
    if (to == v || to->vm != v->vm) {
        abort();
    }
    return YIELD;
}

uint64_t sched_slice_end(unsigned cpu) {
    (void)cpu;
    return UINT64_MAX;
}

unsigned port_this_cpu(void) {
    return 0;
}

uint64_t arch_clock_hz(void) {
    return 1000000000;
}

/* Records for all vCPUs; what stage 2 does with them is not seen here. */
void *mem_alloc(uint64_t size) {
    static _Alignas(PAGE_SIZE) uint8_t pages[2][PAGE_SIZE];
    static unsigned taken;

    must(size == PAGE_SIZE);
    return pages[taken++ % 2];
}

void stage2_map_records(struct vm *v, ipa_t ipa, phys_t base, uint64_t size) {
    (void)v;
    must(ipa.v % PAGE_SIZE == 0 && base.v % PAGE_SIZE == 0 && size == PAGE_SIZE);
}

void sched_kick(struct sched_entity *e) {
    must(e >= &vcpus[0].sched && e <= &vcpus[VCPUS - 1].sched);
    e->kicked = true;
}

struct vcpu *vcpu_next_handled(struct pcpu *p, struct vcpu *v, enum verdict verdict) {
    (void)p;
    ended = ended || verdict == POWER_DOWN;
    return v;
}

struct vcpu *vcpu_next(struct pcpu *p, struct vcpu *v, enum verdict verdict) {
    return vcpu_next_handled(p, v, verdict);
}

int vm_vcpu_on(struct vcpu *target, uint64_t pc, uint64_t arg) {
    (void)arg;
    must(target >= vcpus && target < vcpus + VCPUS && pc % 4 == 0);
    must(pc - GUEST_RAM < RAM_SIZE);
    return 0;
}

void vm_vcpu_off(struct vcpu *v) {
    (void)v;
}

void vm_stop(struct vm *v, enum vm_end reason) {
    (void)v;
    must(reason == VM_END_OFF || reason == VM_END_RESET);
}

void vm_crash(struct vcpu *v, const char *reason) {
    (void)v;
    (void)reason;
}

void *vm_ram(const struct vm *v, ipa_t ipa, uint64_t size) {
    (void)v;
    if (ipa.v < GUEST_RAM || size > RAM_SIZE || ipa.v - GUEST_RAM > RAM_SIZE - size) {
        return NULL;
    }
    return ram + (ipa.v - GUEST_RAM);
}

static uint64_t read_id(unsigned crm, unsigned op2) {
    return crm == 4 && op2 == 0 ? 0x1001111122 : 0x1111111111111111u * (op2 + 1);
}

/* ---- the target's side ---- */

static void machine_reset(const uint8_t *data, size_t size) {
    static bool started;

    in = (struct fuzz_input){data, size};
    memset(vcpus, 0, sizeof(vcpus));
    memset(&vm, 0, sizeof(vm));
    memset(ram, 0, sizeof(ram));
    if (!started) {
        started = id_regs_init(read_id);
    }
    config.vcpus = VCPUS;
    config.pvtime = config.pvlock = config.pvsched = true;
    vm.config = &config;
    vm.vcpus = vcpu_table;
    vm.arch.gicr0_size = VCPUS * (uint64_t)VGIC_REDIST_SIZE;
    must(vgic_vm_init(&vm.arch.vgic, VCPUS, 96, VGIC_VIRT_REGION0, 5));
    for (unsigned i = 0; i < VCPUS; i++) {
        struct vcpu *v = &vcpus[i];

        vcpu_table[i] = v;
        v->vm = &vm;
        v->index = i;
        v->arch.mpidr = 1u << 31 | vgic_mpidr(i);
        v->arch.pstate = 5;
        v->power = VCPU_ON;
        v->exit = &v->exits[EXIT_REASONS];
        must(vgic_vcpu_init(&vm.arch.vgic, &v->arch.vgic, i, 4, true));
        vgic_hw_link(&v->arch.vgic, 27, 27);
    }
    core_watch = 0;
    arch_vm_offer(&vm);
    vpl011_reset(&vm);
    setway_calls = 0;
    ended = false;
    room = true;
}

/*
 * One exit of vCPU `v` with registers from the input. The PC went on by one instruction, stayed, or
 * went to a vector; memory behind the registers is as it was (ASan sees the rest).
 */
static void machine_exit(struct vcpu *v, uint64_t esr) {
    const uint64_t pc = 0x40001000;

    v->arch.pc = pc;
    gic_virt_fold(v);
    vgic_refill(&v->arch.vgic);
    v->arch.vgic.lr_write = 0;
    esr_el2 = esr;
    must(trap_sync(v, now) == v);
    must(v->arch.pc == pc || v->arch.pc == pc + 4 || v->arch.pc == pc + 2 || v->arch.pc < 0x800);
    must((v->arch.pstate & 0x1f) == 5 || (v->arch.pstate & 0xf) == 0);
    v->arch.pstate = fuzz_take(&in, 1) % 2 != 0 ? 5 : 0x10;
    atomic_store(&v->requests, 0);
}

/* Registers x0 to x3 and one more. */
static void machine_registers(struct vcpu *v, unsigned also) {
    for (unsigned i = 0; i < 4; i++) {
        v->arch.x[i] = fuzz_take(&in, 8);
    }
    if (also < 31) {
        v->arch.x[also] = fuzz_take(&in, 8);
    }
}

#endif
