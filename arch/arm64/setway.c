/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/setway.h"

#include "arch/arm64/sysreg_access.h"
#include "hyp/arch.h"
#include "hyp/vm.h"

#define STEP    0x100000u /* bytes a time: some 10 us */
#define HCR_TVM (1ull << 26)
#define SCTLR_M (1ull << 0)
#define SCTLR_C (1ull << 2)

static void clean_and_invalidate(uint64_t start, uint64_t size) {
    uint64_t line = 4ull << (read_sysreg(CTR_EL0) >> 16 & 15u);

    uint64_t at = start & ~(line - 1), end = start + size;

    /* 16 lines a round: two instructions each are all that it takes. */
    for (uint64_t rounds = at < end ? (end - at) / (16 * line) : 0; rounds != 0; rounds--) {
        __asm__ volatile(".rept 16\n"
                         "dc civac, %0\n"
                         "add %0, %0, %1\n"
                         ".endr"
                         : "+r"(at)
                         : "r"(line)
                         : "memory");
    }
    for (; at < end; at += line) {
        __asm__ volatile("dc civac, %0" : : "r"(at) : "memory");
    }
    __asm__ volatile("dsb sy" : : : "memory");
}

void arch_sync_guest_memory(void *start, uint64_t size) {
    clean_and_invalidate((uint64_t)start, size);
    __asm__ volatile("ic ialluis\n dsb ish\n isb" : : : "memory");
}

/* Cleans the next part of the VM's RAM; true when all is done. */
static bool clean_step(struct vcpu *v) {
    uint64_t left = v->vm->ram_size - v->arch.cleaned, size = left < STEP ? left : STEP;

    clean_and_invalidate((uint64_t)v->vm->ram + v->arch.cleaned, size);
    v->arch.cleaned += size;
    if (v->arch.cleaned < v->vm->ram_size) {
        return false;
    }
    v->arch.cleaned = 0;
    return true;
}

static void set_hcr(struct vcpu *v, uint64_t hcr) {
    v->arch.hcr = hcr;
    write_sysreg(HCR_EL2, hcr);
    isb();
}

bool setway_access(struct vcpu *v) {
    if ((v->arch.hcr & HCR_TVM) != 0) {
        return true; /* all is clean since the first one */
    }
    if (!clean_step(v)) {
        return false;
    }
    set_hcr(v, v->arch.hcr | HCR_TVM);
    return true;
}

bool setway_control(struct vcpu *v, uint64_t old, uint64_t new) {
    bool was_on = (~old & (SCTLR_M | SCTLR_C)) == 0;
    bool is_on = (~new &(SCTLR_M | SCTLR_C)) == 0;

    if (was_on != is_on && !clean_step(v)) {
        return false;
    }
    if (is_on) {
        set_hcr(v, v->arch.hcr & ~HCR_TVM);
    }
    return true;
}
