/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/trap.c arch/arm64/devices.c arch/arm64/inject.c arch/arm64/guest_walk.c */
/* link: arch/arm64/hypercall.c arch/arm64/psci.c core/smccc.c arch/arm64/sysreg.c */
/* link: arch/arm64/paravirt.c core/pvlock.c core/steal.c core/trace.c core/config.c */
/* link: core/config_keys.c */
/* link: arch/arm64/debug.c arch/arm64/guest_timer.c arch/arm64/id_regs.c */
/* link: arch/arm64/vgic.c arch/arm64/vgic_lr.c arch/arm64/vgic_mmio.c hyp/pl011.c */
/* Trapped system registers and every other class of exit with any syndrome. */
#include "tests/fuzz/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    machine_reset(data, size);
    for (unsigned exits = 0; in.left != 0 && exits < 128; exits++) {
        uint64_t how = fuzz_take(&in, 1), iss = fuzz_take(&in, 4);
        struct vcpu *v = &vcpus[how % VCPUS];
        uint64_t class = how & 0x80 ? fuzz_take(&in, 1) & 63u : EC_SYSREG;

        if ((how & 0x40) != 0) {
            now += fuzz_take(&in, 8);
        }
        if (class == EC_SYSREG && (how & 0x20) != 0) { /* what is emulated most is op0 2 and 3 */
            iss |= 2u << 20;
        }
        machine_registers(v, iss >> 5 & 31u);
        machine_exit(v, class << ESR_EC_SHIFT | (iss & 0x3ffffff));
    }
    return 0;
}
