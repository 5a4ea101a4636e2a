/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/inject.h"

#include "arch/arm64/esr.h"
#include "arch/arm64/guest_walk.h"
#include "arch/arm64/sysreg_access.h"
#include "hyp/vm.h"

/* PSTATE in SPSR form (DDI 0487 C5.2.19). */
#define PSTATE_MODE   0x1full
#define PSTATE_T32    (1ull << 5)
#define PSTATE_EL1H   5u
#define PSTATE_DAIF   (15ull << 6)
#define PSTATE_SSBS   (1ull << 12)
#define PSTATE_ALLINT (1ull << 13)
#define PSTATE_IL     (1ull << 20)
#define PSTATE_PAN    (1ull << 22)
#define PSTATE_UAO    (1ull << 23)
#define PSTATE_TCO    (1ull << 25)
#define PSTATE_IT     (3ull << 25 | 63ull << 10) /* AArch32: IT[1:0], IT[7:2] */
#define PSTATE_DIT    (1ull << 24)
#define PSTATE_NZCV   (15ull << 28)
#define SCTLR_SPAN    (1ull << 23)
#define SCTLR_DSSBS   (1ull << 44)

/* The IT block of T32 code moves on by one (F1.2.3): condition bits shift, the block ends at 0. */
static uint64_t advance_it(uint64_t pstate) {
    uint64_t it = (pstate >> 25 & 3u) | (pstate >> 10 & 63u) << 2;

    it = (it & 7u) == 0 ? 0 : (it & 0xe0u) | (it << 1 & 0x1fu);
    return (pstate & ~PSTATE_IT) | (it & 3u) << 25 | (it >> 2) << 10;
}

void skip_aarch32(struct vcpu *v, uint64_t esr) {
    struct arch_vcpu *a = &v->arch;

    a->pc += (esr & ESR_IL) != 0 ? 4 : 2;
    a->pstate = advance_it(a->pstate) & ~PSTATE_SS;
}

/* Which quarter of the vector table: current EL with SP_EL0, with SP_EL1, lower EL 64 or 32 bits.
 */
static uint64_t vector_offset(uint64_t pstate) {
    if ((pstate & PSTATE_M32) != 0) {
        return 0x600;
    }
    switch (pstate & PSTATE_MODE) {
    case 0:
        return 0x400;
    case 4:
        return 0x000;
    default:
        return 0x200;
    }
}

/* Takes a synchronous exception to EL1 as AArch64.TakeException does (DDI 0487 J1.1.1). */
static void enter_el1(struct vcpu *v, uint64_t esr) {
    struct arch_vcpu *a = &v->arch;
    uint64_t old = a->pstate, sctlr = read_sysreg(SCTLR_EL1);
    uint64_t kept = PSTATE_NZCV | ((old & PSTATE_M32) != 0 ? 0 : PSTATE_PAN | PSTATE_DIT);
    uint64_t pstate = (old & kept) | PSTATE_DAIF | PSTATE_EL1H;

    if ((sctlr & SCTLR_SPAN) == 0) {
        pstate |= PSTATE_PAN;
    }
    if ((sctlr & SCTLR_DSSBS) != 0) {
        pstate |= PSTATE_SSBS;
    }
    write_sysreg(ELR_EL1, a->pc);
    write_sysreg(SPSR_EL1, old);
    write_sysreg(ESR_EL1, esr);
    a->pc = read_sysreg(VBAR_EL1) + vector_offset(old);
    a->pstate = pstate;
}

void inject_undefined(struct vcpu *v, uint64_t esr) {
    enter_el1(v, (uint64_t)EC_UNKNOWN << ESR_EC_SHIFT | (esr & ESR_IL));
}

void inject_abort(struct vcpu *v, uint64_t esr, uint64_t far, uint64_t ipa) {
    unsigned class = esr_class(esr);
    bool fetch = class == EC_INSTRUCTION_LOWER;
    bool from_el1 =
        (v->arch.pstate & (PSTATE_M32 | PSTATE_MODE)) >= 4 && (v->arch.pstate & PSTATE_M32) == 0;
    uint64_t status = 0x10;
    uint64_t new = (uint64_t)((fetch ? EC_INSTRUCTION_LOWER : EC_DATA_LOWER) + (from_el1 ? 1u : 0u))
                   << ESR_EC_SHIFT;

    if ((esr & ABORT_S1PTW) != 0) {
        status = 0x14u | guest_walk_level(v, far, ipa & ~4095ull);
    }
    new |= fetch ? (esr & ESR_IL) : ESR_IL | (esr & (ABORT_WNR | ABORT_CM));
    write_sysreg(FAR_EL1, far);
    enter_el1(v, new | status);
}
