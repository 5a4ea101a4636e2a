/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/devices.h"

#include "arch/arm64/esr.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/guest_map.h"
#include "arch/arm64/inject.h"
#include "arch/arm64/sysreg_access.h"
#include "hyp/console.h"
#include "hyp/vm.h"

/* An access at `offset` into a device's window; false: it answers with an external abort. */
typedef bool (*device_access)(struct vcpu *v, uint64_t offset, unsigned width, bool write,
                              uint64_t *value);

/* The interrupt controller's functions want the truth in memory, and the list registers filled later. */
static bool gic_access(struct vcpu *v, uint64_t offset, unsigned width, bool write, uint64_t *value,
                       bool redistributor) {
    if (vgic_mmio_needs_fold(offset, write)) {
        gic_virt_fold(v);
        vcpu_request(v, REQUEST_IRQ);
    }
    return (redistributor ? vgic_mmio_redist : vgic_mmio_dist)(
               &v->vm->arch.vgic, &v->arch.vgic, offset, width, write, value) != VGIC_MMIO_ABORT;
}

static bool gicd_access(struct vcpu *v, uint64_t offset, unsigned width, bool write,
                        uint64_t *value) {
    return gic_access(v, offset, width, write, value, false);
}

static bool gicr0_access(struct vcpu *v, uint64_t offset, unsigned width, bool write,
                         uint64_t *value) {
    return gic_access(v, offset, width, write, value, true);
}

static bool gicr1_access(struct vcpu *v, uint64_t offset, unsigned width, bool write,
                         uint64_t *value) {
    return gic_access(v, offset + GUEST_GICR0_SIZE, width, write, value, true);
}

static bool uart_access(struct vcpu *v, uint64_t offset, unsigned width, bool write,
                        uint64_t *value) {
    if (write) {
        vpl011_write(v->vm, (uint32_t)offset, width, *value);
    } else {
        *value = vpl011_read(v->vm, (uint32_t)offset, width);
    }
    return true;
}

static const struct device {
    uint64_t base, size;
    device_access access;
} devices[] = {
    {GUEST_GICR0, GUEST_GICR0_SIZE, gicr0_access},
    {GUEST_UART, GUEST_UART_SIZE, uart_access},
    {GUEST_GICD, GUEST_GICD_SIZE, gicd_access},
    {GUEST_GICR1, GUEST_GICR1_SIZE, gicr1_access},
};

static uint64_t frame_bytes(const struct vm *vm) {
    return (uint64_t)vm->config->vcpus * VGIC_REDIST_SIZE;
}

/* Windows end where this VM's last redistributor does. */
static bool within(const struct vm *vm, const struct device *d, uint64_t ipa, unsigned width) {
    uint64_t size = d->size;

    if (d->base == GUEST_GICR0 && frame_bytes(vm) < size) {
        size = frame_bytes(vm);
    } else if (d->base == GUEST_GICR1) {
        size = frame_bytes(vm) > GUEST_GICR0_SIZE ? frame_bytes(vm) - GUEST_GICR0_SIZE : 0;
    }
    return ipa >= d->base && ipa - d->base < size && size - (ipa - d->base) >= width;
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
    uint64_t value = write && rt != 31 ? v->arch.x[rt] : 0;

    for (unsigned i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        const struct device *d = &devices[i];
        if (!within(v->vm, d, ipa, width)) {
            continue;
        }
        if (write && width < 8) {
            value &= (1ull << 8 * width) - 1;
        }
        if (!d->access(v, ipa - d->base, width, write, &value)) {
            return false;
        }
        if (!write && rt != 31) {
            v->arch.x[rt] = extend(value, width, esr);
        }
        return true;
    }
    return false;
}

enum verdict devices_abort(struct vcpu *v, uint64_t esr) {
    uint64_t far = read_sysreg(FAR_EL2);
    uint64_t ipa = (read_sysreg(HPFAR_EL2) >> 4 & 0xfffffffffffull) << 12 | (far & 0xfff);
    bool data = esr_class(esr) == EC_DATA_LOWER;

    if (data && (esr & (ABORT_ISV | ABORT_S1PTW)) == ABORT_ISV) {
        v->exits[EXIT_MMIO]++;
        if (access_device(v, ipa, esr)) {
            skip_instruction(v, esr);
            return RESUME;
        }
    } else {
        v->exits[EXIT_ABORT]++;
        if (data && (esr & ABORT_CM) != 0 && (esr & ABORT_S1PTW) == 0) {
            skip_instruction(v, esr); /* cache maintenance where there is no memory: nothing to do */
            return RESUME;
        }
    }
    console_printf_limited("vm %s vcpu %u: external abort: pc=%lx esr=%lx address=%lx ipa=%lx",
                           v->vm->config->name, v->index, v->arch.pc, esr, far, ipa);
    inject_abort(v, esr, far, ipa);
    return RESUME;
}
