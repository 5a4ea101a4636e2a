/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whatever is not in one of the switches below is undefined to the guest: the PMU, RAS, MPAM, AMU,
 * SPE, TRBE, BRBE, trace, LORegions, MTE, SME, SCXTNUM, S1PIE, POE, TCR2, SCTLR2, GCS, LS64, what a
 * CPU's maker defined, and what the architecture will get. The ID registers say that none of it is
 * there.
 */
#include "arch/arm64/sysreg.h"

#include "arch/arm64/debug.h"
#include "arch/arm64/guest_timer.h"
#include "arch/arm64/id_regs.h"
#include "arch/arm64/setway.h"
#include "arch/arm64/vgic.h"
#include "arch/arm64/vm_regs.h"
#include "hyp/vcpu.h"

#define ACTLR_EL1     SYSREG(3, 0, 1, 0, 1)
#define REVIDR_EL1    SYSREG(3, 0, 0, 0, 6)
#define AIDR_EL1      SYSREG(3, 1, 0, 0, 7)
#define CNTPCT_EL0    SYSREG(3, 3, 14, 0, 1)
#define CNTPCTSS_EL0  SYSREG(3, 3, 14, 0, 5)
#define CNTP_TVAL_EL0 SYSREG(3, 3, 14, 2, 0)
#define CNTP_CTL_EL0  SYSREG(3, 3, 14, 2, 1)
#define CNTP_CVAL_EL0 SYSREG(3, 3, 14, 2, 2)
#define ICC_DIR_EL1   SYSREG(3, 0, 12, 11, 1)
#define ICC_SGI1R     SYSREG(3, 0, 12, 11, 5)
#define ICC_ASGI1R    SYSREG(3, 0, 12, 11, 6)
#define ICC_SGI0R     SYSREG(3, 0, 12, 11, 7)
#define ICC_SRE_EL1   SYSREG(3, 0, 12, 12, 5)
#define DC_ISW        SYSREG(1, 0, 7, 6, 2)
#define DC_CSW        SYSREG(1, 0, 7, 10, 2)
#define DC_CISW       SYSREG(1, 0, 7, 14, 2)
#define SCTLR         SYSREG(3, 0, 1, 0, 0)

#define ICC_SRE_VALUE 7u        /* SRE, DFB, DIB: system registers only, no bypass */
#define DIR_INTID     0xffffffu /* ICC_DIR_EL1.INTID */

#define OP0_DEBUG 2u

static unsigned key_op0(uint16_t key) {
    return key >> 14;
}

static unsigned key_crm(uint16_t key) {
    return key >> 3 & 15u;
}

static unsigned key_op2(uint16_t key) {
    return key & 7u;
}

/* HCR_EL2.TID3: op0 = 3, op1 = 0, CRn = 0, CRm = 1..7. */
static bool is_id_register(uint16_t key) {
    return (key & ~(15u << 3 | 7u)) == SYSREG(3, 0, 0, 0, 0) && key_crm(key) >= ID_CRM_FIRST &&
           key_crm(key) <= ID_CRM_LAST;
}

/* True: *value is what the guest reads. */
static bool read_register(struct vcpu *v, uint16_t key, uint64_t *value) {
    if (is_id_register(key)) {
        *value = id_reg_guest(key_crm(key), key_op2(key));
        return true;
    }
    if (key_op0(key) == OP0_DEBUG) {
        return debug_read(v, key, value);
    }
    switch (key) {
    case CNTP_TVAL_EL0:
    case CNTP_CTL_EL0:
    case CNTP_CVAL_EL0:
        *value = guest_ptimer_read(v, (enum guest_timer_reg)key_op2(key));
        return true;
    case CNTPCT_EL0:
    case CNTPCTSS_EL0: /* where there is one, or it would not have trapped */
        *value = guest_physical_count(v);
        return true;
    case ICC_SRE_EL1:
        *value = ICC_SRE_VALUE;
        return id_has_gic();
    case ACTLR_EL1:
        /*
         * Reads as zero: what is in there differs from one kind of CPU to the next, is for firmware
         * to set, and must not change under a guest that moves.
         */
        *value = 0;
        return true;
    case REVIDR_EL1:
        *value = vm_reg_revidr();
        return true;
    case AIDR_EL1:
        *value = vm_reg_aidr();
        return true;
    default:
        return false;
    }
}

/* The guest turns its MMU or caches on or off, perhaps: HCR_EL2.TVM is set only while that matters.
 */
static enum sysreg_result write_vm_register(struct vcpu *v, uint16_t key, uint64_t value) {
    if (key == SCTLR && !setway_control(v, vm_reg_read(SCTLR), value)) {
        return SYSREG_AGAIN;
    }
    vm_reg_write(key, value);
    return SYSREG_DONE;
}

static bool write_gic(struct vcpu *v, uint16_t key, uint64_t value) {
    if (!id_has_gic()) {
        return false;
    }
    switch (key) {
    case ICC_SGI1R:
        vgic_send_sgi(&v->arch.vgic, value, VGIC_SGI1R);
        return true;
    case ICC_ASGI1R:
        vgic_send_sgi(&v->arch.vgic, value, VGIC_ASGI1R);
        return true;
    case ICC_SGI0R:
        vgic_send_sgi(&v->arch.vgic, value, VGIC_SGI0R);
        return true;
    case ICC_DIR_EL1:
        vgic_trapped_dir(&v->arch.vgic, (unsigned)value & DIR_INTID);
        return true;
    case ICC_SRE_EL1:
        return true; /* all bits are read-only in effect */
    default:
        return false;
    }
}

static enum sysreg_result done_if(bool known) {
    return known ? SYSREG_DONE : SYSREG_UNDEFINED;
}

static enum sysreg_result write_register(struct vcpu *v, uint16_t key, uint64_t value) {
    if (key_op0(key) == OP0_DEBUG) {
        return done_if(debug_write(v, key, value));
    }
    switch (key) {
    case CNTP_TVAL_EL0:
    case CNTP_CTL_EL0:
    case CNTP_CVAL_EL0:
        guest_ptimer_write(v, (enum guest_timer_reg)key_op2(key), value);
        return SYSREG_DONE;
    case ICC_SGI1R:
    case ICC_ASGI1R:
    case ICC_SGI0R:
    case ICC_DIR_EL1:
    case ICC_SRE_EL1:
        return done_if(write_gic(v, key, value));
    case ACTLR_EL1:
        return SYSREG_DONE;
    case DC_ISW:
    case DC_CSW:
    case DC_CISW:
        return setway_access(v) ? SYSREG_DONE : SYSREG_AGAIN;
#define VM_REG(name, encoding) case encoding:
        VM_REGS(VM_REG)
#undef VM_REG
        return write_vm_register(v, key, value);
    default:
        return SYSREG_UNDEFINED;
    }
}

enum sysreg_result sysreg_access(struct vcpu *v, uint32_t iss) {
    uint16_t key = sysreg_iss_key(iss);
    unsigned rt = sysreg_iss_rt(iss);
    uint64_t value = 0;

    if (!sysreg_iss_is_read(iss)) {
        return write_register(v, key, rt < 31 ? v->arch.x[rt] : 0);
    }
    if (!read_register(v, key, &value)) {
        return SYSREG_UNDEFINED;
    }
    if (rt < 31) {
        v->arch.x[rt] = value;
    }
    return SYSREG_DONE;
}
