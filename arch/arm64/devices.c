/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/devices.h"

#include "arch/arm64/esr.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/guest_map.h"
#include "arch/arm64/inject.h"
#include "arch/arm64/sysreg_access.h"
#include "hyp/console.h"
#include "hyp/exits.h"
#include "hyp/vm.h"

/*
 * The interrupt controller's functions want the truth in memory, and the list registers filled
 * later, where pending or active state is concerned.
 */
static void gic_prepare(struct vcpu *v, uint64_t offset, bool write) {
    if (vgic_mmio_needs_fold(offset, write)) {
        gic_virt_fold(v);
        vcpu_request(v, REQUEST_IRQ);
    }
}

static bool redist_access(struct vcpu *v, uint64_t offset, unsigned width, bool write,
                          uint64_t *value) {
    gic_prepare(v, offset, write);
    return vgic_mmio_redist(&v->vm->arch.vgic, &v->arch.vgic, offset, width, write, value) !=
           VGIC_MMIO_ABORT;
}

/* False: nobody there, or it answers with an external abort. */
static bool access_ipa(struct vcpu *v, uint64_t ipa, unsigned width, bool write, uint64_t *value) {
    struct vm *vm = v->vm;

    if (ipa - GUEST_UART < GUEST_UART_SIZE) {
        if (write) {
            vpl011_write(vm, (uint32_t)(ipa - GUEST_UART), width, *value);
        } else {
            *value = vpl011_read(vm, (uint32_t)(ipa - GUEST_UART), width);
        }
        return true;
    }
    if (ipa - GUEST_GICD < GUEST_GICD_SIZE) {
        gic_prepare(v, ipa - GUEST_GICD, write);
        return vgic_mmio_dist(&vm->arch.vgic, &v->arch.vgic, ipa - GUEST_GICD, width, write,
                              value) != VGIC_MMIO_ABORT;
    }
    if (ipa - GUEST_GICR0 < vm->arch.gicr0_size) {
        return redist_access(v, ipa - GUEST_GICR0, width, write, value);
    }
    if (ipa - GUEST_GICR1 < vm->arch.gicr1_size) {
        return redist_access(v, ipa - GUEST_GICR1 + GUEST_GICR0_SIZE, width, write, value);
    }
    return false;
}

/* What a load puts into its register: sign- or zero-extended to its width (ESR_EL2.SSE, SF). */
static uint64_t extend(uint64_t value, unsigned width, uint64_t esr) {
    unsigned bits = 8 * width;

    if (bits < 64) {
        value &= (1ull << bits) - 1;
        if ((esr & ABORT_SSE) != 0 && (value >> (bits - 1) & 1u) != 0) {
            value |= ~0ull << bits;
        }
    }
    return (esr & ABORT_SF) != 0 ? value : (uint32_t)value;
}

static bool access_device(struct vcpu *v, uint64_t ipa, uint64_t esr) {
    unsigned width = 1u << (esr >> ABORT_SAS & 3u), rt = esr >> ABORT_SRT & 31u;
    bool write = (esr & ABORT_WNR) != 0;
    uint64_t value = write && rt != 31 ? v->arch.x[rt] & (~0ull >> (64 - 8 * width)) : 0;

    if (!access_ipa(v, ipa, width, write, &value)) {
        return false;
    }
    if (!write && rt != 31) {
        v->arch.x[rt] = extend(value, width, esr);
    }
    return true;
}

enum verdict devices_abort(struct vcpu *v, uint64_t esr) {
    uint64_t far = read_sysreg(FAR_EL2);
    uint64_t ipa = (read_sysreg(HPFAR_EL2) >> 4 & 0xfffffffffffull) << 12 | (far & 0xfff);
    bool data = esr_class(esr) == EC_DATA_LOWER;

    if (data && (esr & (ABORT_ISV | ABORT_S1PTW)) == ABORT_ISV) {
        exit_reason(v, EXIT_MMIO);
        if (access_device(v, ipa, esr)) {
            skip_instruction(v, esr);
            return RESUME;
        }
    } else {
        exit_reason(v, EXIT_ABORT);
        if (data && (esr & ABORT_CM) != 0 && (esr & ABORT_S1PTW) == 0) {
            skip_instruction(v,
                             esr); /* cache maintenance where there is no memory: nothing to do */
            return RESUME;
        }
    }
    console_printf_limited(v->vm,
                           "vm %s vcpu %u: external abort: pc=%lx esr=%lx address=%lx ipa=%lx",
                           v->vm->config->name, v->index, v->arch.pc, esr, far, ipa);
    inject_abort(v, esr, far, ipa);
    return RESUME;
}
