/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/vm_regs.h"

#include "arch/arm64/sysreg_access.h"

uint64_t vm_reg_read(uint16_t key) {
    switch (key) {
#define READ(name, encoding)                                                                       \
    case encoding:                                                                                 \
        return read_sysreg(name);
        VM_REGS(READ)
    default:
        return 0;
    }
}

void vm_reg_write(uint16_t key, uint64_t value) {
    switch (key) {
#define WRITE(name, encoding)                                                                      \
    case encoding:                                                                                 \
        write_sysreg(name, value);                                                                 \
        break;
        VM_REGS(WRITE)
    default:
        break;
    }
}

uint64_t vm_reg_revidr(void) {
    return read_sysreg(REVIDR_EL1);
}

uint64_t vm_reg_aidr(void) {
    return read_sysreg(AIDR_EL1);
}
