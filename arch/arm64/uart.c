/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/uart.h"

#include "arch/arm64/mmio.h"
#include "arch/arm64/mmu.h"
#include "hyp/arch.h"

/* Offsets and bits: DDI 0183 3.3. */
#define DR      0x00u
#define FR      0x18u
#define FR_RXFE (1u << 4)
#define FR_TXFF (1u << 5)
#define CR      0x30u
#define CR_ON   0x301u /* UARTEN, TXE, RXE */
#define IMSC    0x38u
#define ICR     0x44u
#define INT_RX  (1u << 4)
#define INT_TX  (1u << 5)
#define INT_RT  (1u << 6)

static uint64_t port;
static uint32_t mask;

void uart_init(uint64_t base) {
    mmu_map(base & ~4095ull, 4096, MMU_DEVICE, true);
    port = base;
    mmio_write32(port + IMSC, 0);
    mmio_write32(port + CR, CR_ON);
}

void uart_enable_interrupts(void) {
    mask |= INT_RX | INT_RT;
    mmio_write32(port + IMSC, mask);
}

void uart_acknowledge(void) {
    mmio_write32(port + ICR, INT_RX | INT_RT | INT_TX);
}

bool arch_uart_putc(uint8_t byte) {
    if ((mmio_read32(port + FR) & FR_TXFF) != 0) {
        return false;
    }
    mmio_write32(port + DR, byte);
    return true;
}

int arch_uart_getc(void) {
    if ((mmio_read32(port + FR) & FR_RXFE) != 0) {
        return -1;
    }
    return (int)(mmio_read32(port + DR) & 0xffu);
}

void arch_uart_tx_interrupt(bool on) {
    uint32_t wanted = on ? mask | INT_TX : mask & ~INT_TX;
    if (wanted != mask) {
        mask = wanted;
        mmio_write32(port + IMSC, mask);
    }
}
