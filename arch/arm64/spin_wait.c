/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For what a guest waits that executes WFE. Kernels wait for a change in memory with a load that
 * arms the exclusive monitor, a comparison, and WFE; Linux's is "ldxr t, [a]; eor t, t, value; cbnz
 * t, 1f; wfe; 1:" in one piece. From the instructions and registers we know what would end it.
 */
#include "arch/arm64/el2_state.h"
#include "arch/arm64/inject.h"
#include "arch/arm64/sysreg_access.h"
#include "core/spin.h"
#include "hyp/arch.h"
#include "hyp/vm.h"

#define PAR_F       1ull
#define PAR_ADDRESS 0x000ffffffffff000ull
#define PAGE_OFFSET 0xfffull
#define PSTATE_M    0xfull /* SPSR_EL2 (DDI 0487 C5.2.19): 0 is EL0, AArch32's too */
#define PSTATE_I    (1ull << 7)

/* Instructions (DDI 0487 C6.2): what is fixed of them, and its value. */
#define LDXR_MASK 0x3fff7c00u /* LDXR, LDAXR of 1, 2, 4 or 8 bytes */
#define LDXR      0x085f7c00u
#define EOR_MASK  0x7fe0fc00u /* EOR (shifted register), not shifted */
#define EOR       0x4a000000u
#define CBNZ_MASK 0x7f000000u
#define CBNZ      0x35000000u

/* `size` bytes of its RAM at virtual address `va`, for reading; NULL: there is none. */
static const void *guest_at(const struct vcpu *v, uint64_t va, uint64_t size) {
    uint64_t guests = read_sysreg(PAR_EL1), par;

    if ((v->arch.pstate & PSTATE_M) == 0) {
        __asm__ volatile("at s1e0r, %0\n\tisb" : : "r"(va));
    } else {
        __asm__ volatile("at s1e1r, %0\n\tisb" : : "r"(va));
    }
    par = read_sysreg(PAR_EL1);
    write_sysreg(PAR_EL1, guests);
    return (par & PAR_F) != 0
               ? NULL
               : vm_ram(v->vm, (ipa_t){(par & PAR_ADDRESS) | (va & PAGE_OFFSET)}, size);
}

static uint64_t value_of(const struct vcpu *v, uint32_t reg) {
    return reg < 31 ? v->arch.x[reg] : 0;
}

/* The operand of `eor` that is not `loaded`, or 32. */
static uint32_t other_operand(uint32_t eor, uint32_t loaded) {
    uint32_t n = eor >> 5 & 31u, m = eor >> 16 & 31u;

    return n == loaded ? m : m == loaded ? n : 32u;
}

void arch_spin_wait(const struct vcpu *v, struct spin_wait *w) {
    uint64_t wfe = v->arch.pc - 4;
    const uint32_t *code;
    uint32_t ldxr, eor, cbnz, value_reg, result;
    uint64_t at, bits, mask;
    const uint8_t *word;

    store_relaxed(&w->word, NULL);
    if ((v->arch.pstate & PSTATE_M32) != 0 || (wfe & PAGE_OFFSET) < 12 ||
        (code = guest_at(v, wfe - 12, 12)) == NULL) {
        return;
    }
    ldxr = code[0];
    eor = code[1];
    cbnz = code[2];
    value_reg = other_operand(eor, ldxr & 31u);
    result = eor & 31u;
    if ((ldxr & LDXR_MASK) != LDXR || (eor & EOR_MASK) != EOR || (cbnz & CBNZ_MASK) != CBNZ ||
        (cbnz & 31u) != result || value_reg == 32 || value_reg == result ||
        (ldxr >> 5 & 31u) == result) {
        return;
    }
    at = value_of(v, ldxr >> 5 & 31u);
    bits = 8ull << (ldxr >> 30);
    if ((at & (bits / 8 - 1)) != 0 || (word = guest_at(v, at & ~7ull, 8)) == NULL) {
        return;
    }
    mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
    store_relaxed(&w->mask, mask << (at & 7u) * 8);
    store_relaxed(&w->value, (value_of(v, value_reg) & mask) << (at & 7u) * 8);
    store_relaxed(&w->word, (const uint64_t *)(const void *)word);
}

enum spin_rank arch_spin_rank(const struct vcpu *v) {
    if ((v->arch.pstate & PSTATE_M) == 0) {
        return SPIN_USER;
    }
    return (v->arch.pstate & PSTATE_I) != 0 ? SPIN_MASKED : SPIN_KERNEL;
}

void arch_spin_untrap(struct vcpu *v) {
    v->arch.wfe_free = true;
    write_sysreg(HCR_EL2, v->arch.hcr & ~HCR_TWE);
}
