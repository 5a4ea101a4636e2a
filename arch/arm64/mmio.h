/* SPDX-License-Identifier: GPL-2.0-only */
/* Device registers: single accesses of the right width, with a form that a trap could decode. */
#ifndef ARM64_MMIO_H
#define ARM64_MMIO_H

#include <stdint.h>

static inline uint32_t mmio_read32(uint64_t address) {
    uint32_t value;
    __asm__ volatile("ldr %w0, [%1]" : "=r"(value) : "r"(address) : "memory");
    return value;
}

static inline uint64_t mmio_read64(uint64_t address) {
    uint64_t value;
    __asm__ volatile("ldr %0, [%1]" : "=r"(value) : "r"(address) : "memory");
    return value;
}

static inline void mmio_write32(uint64_t address, uint32_t value) {
    __asm__ volatile("str %w0, [%1]" : : "rZ"(value), "r"(address) : "memory");
}

static inline void mmio_write64(uint64_t address, uint64_t value) {
    __asm__ volatile("str %x0, [%1]" : : "rZ"(value), "r"(address) : "memory");
}

#endif
