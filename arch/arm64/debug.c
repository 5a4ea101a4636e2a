/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/debug.h"

#include "arch/arm64/id_regs.h"
#include "arch/arm64/sysreg.h"
#include "hyp/vcpu.h"

/* MDSCR_EL1 (D24.3): the bits that matter without an external debugger. */
#define MDSCR_SS     (1ull << 0)  /* single step */
#define MDSCR_TDCC   (1ull << 12) /* EL0's use of the communication channel traps to EL1 */
#define MDSCR_KDE    (1ull << 13) /* debug exceptions within EL1 */
#define MDSCR_MDE    (1ull << 15) /* breakpoints and watchpoints */
#define MDSCR_STORED (MDSCR_SS | MDSCR_TDCC | MDSCR_KDE | MDSCR_MDE)

/* DBGBCR<n>_EL1: BT, LBN, SSC, HMC, BAS, PMC, E. DBGWCR<n>_EL1: MASK, WT, LBN, SSC, HMC, BAS, LSC,
 * PAC, E. */
#define BCR_STORED 0x00ffe1e7ull
#define WCR_STORED 0x1f1fffffull
#define CR_E       (1ull << 0)
#define WVR_STORED (~3ull)

#define OSLSR_OSLK (1ull << 1)
#define OSLSR_OSLM (1ull << 3) /* OSLM = 0b10: there is a lock */
#define CLAIM_MASK 0xffull

#define MDCCINT       SYSREG(2, 0, 0, 2, 0)
#define MDSCR         SYSREG(2, 0, 0, 2, 2)
#define OSDTRRX       SYSREG(2, 0, 0, 0, 2)
#define OSDTRTX       SYSREG(2, 0, 0, 3, 2)
#define OSECCR        SYSREG(2, 0, 0, 6, 2)
#define MDRAR         SYSREG(2, 0, 1, 0, 0)
#define OSLAR         SYSREG(2, 0, 1, 0, 4)
#define OSLSR         SYSREG(2, 0, 1, 1, 4)
#define OSDLR         SYSREG(2, 0, 1, 3, 4)
#define DBGPRCR       SYSREG(2, 0, 1, 4, 4)
#define DBGCLAIMSET   SYSREG(2, 0, 7, 8, 6)
#define DBGCLAIMCLR   SYSREG(2, 0, 7, 9, 6)
#define DBGAUTHSTATUS SYSREG(2, 0, 7, 14, 6)
#define MDCCSR        SYSREG(2, 3, 0, 1, 0)
#define DBGDTR        SYSREG(2, 3, 0, 4, 0)
#define DBGDTRX       SYSREG(2, 3, 0, 5, 0)

/* Where the value of DBGBVR<n>, DBGBCR<n>, DBGWVR<n> or DBGWCR<n> is and which bits it has; or
 * NULL. */
static uint64_t *point(struct debug_state *d, uint16_t key, uint64_t *stored) {
    unsigned n = key >> 3 & 15u;

    if ((key & ~(15u << 3 | 7u)) != SYSREG(2, 0, 0, 0, 0)) {
        return NULL;
    }
    *stored = UINT64_MAX; /* of a DBGBVR, what it means depends on the DBGBCR */
    switch (key & 7u) {
    case 4:
        return n < id_breakpoints() ? &d->bvr[n] : NULL;
    case 5:
        *stored = BCR_STORED;
        return n < id_breakpoints() ? &d->bcr[n] : NULL;
    case 6:
        *stored = WVR_STORED;
        return n < id_watchpoints() ? &d->wvr[n] : NULL;
    case 7:
        *stored = WCR_STORED;
        return n < id_watchpoints() ? &d->wcr[n] : NULL;
    default:
        return NULL;
    }
}

static bool any_enabled(const struct debug_state *d) {
    uint64_t enabled = 0;

    for (unsigned i = 0; i < 16; i++) {
        enabled |= d->bcr[i] | d->wcr[i];
    }
    return (enabled & CR_E) != 0;
}

/* A register changed: the hardware follows. */
static void refresh(struct vcpu *v) {
    struct debug_state *d = &v->arch.debug;
    bool armed = any_enabled(d);

    if (d->armed && !armed) {
        debug_unload(v);
    }
    d->armed = armed;
    debug_load(v);
}

/* MDSCR_EL1 or the OS lock changed, which closed disables debug exceptions (D2). */
static void set_mdscr(struct vcpu *v) {
    struct debug_state *d = &v->arch.debug;

    d->mdscr = v->arch.el1.mdscr & ((d->oslsr & OSLSR_OSLK) != 0 ? MDSCR_TDCC : UINT64_MAX);
}

bool debug_read(struct vcpu *v, uint16_t key, uint64_t *value) {
    struct debug_state *d = &v->arch.debug;
    uint64_t stored;
    const uint64_t *p = point(d, key, &stored);

    *value = 0;
    if (p != NULL) {
        *value = *p;
        return true;
    }
    switch (key) {
    case MDSCR:
        *value = v->arch.el1.mdscr;
        return true;
    case OSLSR:
        *value = OSLSR_OSLM | (d->oslsr & OSLSR_OSLK);
        return true;
    case DBGCLAIMSET:
        *value = CLAIM_MASK;
        return true;
    case DBGCLAIMCLR:
        *value = d->claim;
        return true;
    case MDCCINT:
    case OSDTRRX:
    case OSDTRTX:
    case OSECCR:
    case MDRAR:
    case OSDLR:
    case DBGPRCR:
    case DBGAUTHSTATUS:
    case MDCCSR:
    case DBGDTR:
    case DBGDTRX:
        return true;
    default:
        return false;
    }
}

bool debug_write(struct vcpu *v, uint16_t key, uint64_t value) {
    struct debug_state *d = &v->arch.debug;
    uint64_t stored;
    uint64_t *p = point(d, key, &stored);

    if (p != NULL) {
        *p = value & stored;
        refresh(v);
        return true;
    }
    switch (key) {
    case MDSCR:
        v->arch.el1.mdscr = value & MDSCR_STORED;
        set_mdscr(v);
        debug_load(v);
        return true;
    case OSLAR:
        d->oslsr = (value & 1u) != 0 ? OSLSR_OSLK : 0;
        set_mdscr(v);
        debug_load(v);
        return true;
    case DBGCLAIMSET:
        d->claim |= value & CLAIM_MASK;
        return true;
    case DBGCLAIMCLR:
        d->claim &= ~value;
        return true;
    case MDCCINT:
    case OSDTRRX:
    case OSDTRTX:
    case OSECCR:
    case OSDLR:
    case DBGPRCR:
    case DBGDTR:
    case DBGDTRX:
        return true;
    default:
        return false;
    }
}

void debug_reset(struct vcpu *v) {
    v->arch.debug = (struct debug_state){.oslsr = OSLSR_OSLK};
    v->arch.el1.mdscr = 0;
}
