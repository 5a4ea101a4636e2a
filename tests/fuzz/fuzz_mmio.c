/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/trap.c arch/arm64/devices.c arch/arm64/inject.c arch/arm64/guest_walk.c */
/* link: arch/arm64/hypercall.c arch/arm64/psci.c core/smccc.c arch/arm64/sysreg.c */
/* link: arch/arm64/paravirt.c core/pvlock.c core/steal.c core/trace.c core/config.c */
/* link: core/config_keys.c */
/* link: arch/arm64/debug.c arch/arm64/guest_timer.c arch/arm64/id_regs.c */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c hyp/pl011.c */
/* Data and instruction aborts: all devices, any syndrome; aborts on walks of any tables. */
#include "tests/fuzz/machine.h"

static uint64_t address(uint64_t how) {
    static const uint64_t bases[8] = {GUEST_GICD,  GUEST_GICR0, GUEST_UART, GUEST_GICD,
                                      GUEST_GICR0, GUEST_GICR1, GUEST_RAM,  0};
    uint64_t base = bases[how & 7], offset = fuzz_take(&in, 2);

    if (base == GUEST_GICR0 || base == GUEST_GICR1) {
        return base + (how >> 3 & 3) * VGIC_REDIST_SIZE + (how >> 5 & 1) * 0x10000 + offset;
    }
    return base == 0 ? fuzz_take(&in, 6) : base + offset;
}

/* Stage-1 tables for an abort on a walk. */
static void tables(void) {
    for (unsigned i = 0; i < 4; i++) {
        el1[i] = fuzz_take(&in, 8);
    }
    for (unsigned i = 0; i < 8; i++) {
        uint64_t at = fuzz_take(&in, 2) & ~7ull, entry = fuzz_take(&in, 8);

        memcpy(ram + at, &entry, sizeof(entry));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    machine_reset(data, size);
    for (unsigned exits = 0; in.left != 0 && exits < 128; exits++) {
        uint64_t how = fuzz_take(&in, 1), iss = fuzz_take(&in, 4);
        struct vcpu *v = &vcpus[(how >> 6) % VCPUS];
        uint64_t ipa = address(how);
        unsigned class = iss >> 31 & 1u ? EC_INSTRUCTION_LOWER : EC_DATA_LOWER;

        if ((iss >> 30 & 1u) == 0) { /* most have a syndrome */
            iss = (iss | ABORT_ISV) & ~(uint64_t)(ABORT_S1PTW | ABORT_CM);
        } else if ((iss & ABORT_S1PTW) != 0) {
            tables();
        }
        if ((iss >> 29 & 1u) != 0) { /* time goes by, or the UART gets or loses room */
            now += iss & 0xffff;
            room = (iss & 1u) != 0;
            (void)vpl011_receive(&vm, (uint8_t)iss);
        }
        far_el2 = (how & 7) == 7 ? fuzz_take(&in, 8) : ipa;
        hpfar_el2 = ipa >> 12 << 4;
        machine_registers(v, iss >> ABORT_SRT & 31u);
        machine_exit(v, (uint64_t) class << ESR_EC_SHIFT | (iss & 0x1ffffff) | ESR_IL);
    }
    return 0;
}
