/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's PL011. Section numbers are those of its manual, Arm DDI 0183G; "QEMU" is
 * hw/char/pl011.c.
 *
 * Sending takes no time: a byte goes to the console at once, and only while the console's ring is
 * full do bytes stay in the transmit FIFO. So FR.BUSY is never set: nobody has to wait for the
 * host.
 *
 * The two FIFO interrupts. The hardware raises TXRIS when the FIFO *falls* to its trigger level
 * (2.8.3), RXRIS when it rises to it, and RTRIS after a pause of 32 bit times; ICR takes each away
 * until the next time. There is no time here in which a byte leaves, so each of them is set, while
 * its condition is true, by every event that a driver might wait after:
 *
 *   - a write of DR (QEMU does the same) and room in the console: TX
 *   - unmasking TX: hardware and QEMU stay silent, and a driver that unmasks first and waits for
 * its interrupt before it sends hangs. Linux' amba-pl011 sends by polling first, so it lives with
 * both
 *   - a byte that comes in, and a read of DR that leaves bytes behind: RX
 *
 * and ends when its condition ends or ICR is written. Linux writes to ICR what it found, but for
 * TX and RX, which it expects to end by themselves; other drivers write all of it and would be
 * called for ever if ICR did nothing.
 */
#include "hyp/pl011.h"

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/vm.h"

/* Table 3-1. */
enum {
    UART_DR = 0x000,
    UART_RSR_ECR = 0x004,
    UART_FR = 0x018,
    UART_ILPR = 0x020,
    UART_IBRD = 0x024,
    UART_FBRD = 0x028,
    UART_LCR_H = 0x02c,
    UART_CR = 0x030,
    UART_IFLS = 0x034,
    UART_IMSC = 0x038,
    UART_RIS = 0x03c,
    UART_MIS = 0x040,
    UART_ICR = 0x044,
    UART_DMACR = 0x048,
    UART_ID = 0xfe0, /* PeriphID0..3, PCellID0..3 */
    UART_PAGE = 0x1000,
};

#define FR_RXFE (1u << 4)
#define FR_TXFF (1u << 5)
#define FR_RXFF (1u << 6)
#define FR_TXFE (1u << 7)

#define LCR_FEN (1u << 4)
#define CR_LBE  (1u << 7)
#define DR_OE   (1u << 11)
#define RSR_OE  (1u << 3)

/* Our own bit in rsr: the next read of DR reports the overrun (3.3.1), RSR until ECR is written. */
#define RSR_OE_NEXT (1u << 31)

#define INT_RX  (1u << 4)
#define INT_TX  (1u << 5)
#define INT_OE  (1u << 10)
#define INT_ALL 0x7ffu

#define CR_RESET   0x300u /* TXE, RXE (3.3.8) */
#define IFLS_RESET 0x12u  /* both half full (3.3.9) */

/* Part 0x011, designer Arm, revision 1 (3.3.14): Linux takes its FIFOs to have 16 bytes. */
static const uint8_t ids[8] = {0x11, 0x10, 0x14, 0x00, 0x0d, 0xf0, 0x05, 0xb1};

/* FIFOs or, with FEN = 0, one holding register each (3.3.7). */
static unsigned depth(const struct vpl011 *uart) {
    return uart->lcr_h & LCR_FEN ? 16 : 1;
}

/* IFLS (3.3.9): eighths 1, 2, 4, 6, 7; the values that are reserved count as the highest. */
static unsigned trigger(unsigned select) {
    static const uint8_t level[8] = {2, 4, 8, 12, 14, 14, 14, 14};

    return level[select & 7];
}

static unsigned tx_trigger(const struct vpl011 *uart) {
    return uart->lcr_h & LCR_FEN ? trigger(uart->ifls) : 0;
}

/* ---- Interrupts; all with the lock held ---- */

/* Tells the interrupt controller, if the line changed. */
static void update_line(struct vm *vm) {
    struct vpl011 *uart = &vm->uart;
    bool line = (uart->ris & uart->imsc) != 0;

    if (line != uart->line) {
        uart->line = line;
        arch_vm_uart_line(vm, line);
    }
}

/* An event that TX is raised at, if it is true; too many bytes end it at any time. */
static void raise_tx(struct vm *vm) {
    if (vm->uart.tx_count <= tx_trigger(&vm->uart)) {
        vm->uart.ris |= INT_TX;
    } else {
        vm->uart.ris &= ~INT_TX;
    }
}

/*
 * RX stands while a byte waits, whatever IFLS says, as in QEMU: there is no pause that RT could be
 * raised by, and a program for virt may listen to RX alone. RT is never raised.
 */
static void lower_rx(struct vpl011 *uart) {
    if (uart->rx_count == 0) {
        uart->ris &= ~INT_RX;
    }
}

static void raise_rx(struct vpl011 *uart) {
    if (uart->rx_count != 0) {
        uart->ris |= INT_RX;
    }
}

/* ---- Data ---- */

/* False, and an overrun (2.4.2): no room. */
static bool push_rx(struct vpl011 *uart, uint8_t byte) {
    if (uart->rx_count >= depth(uart)) {
        uart->rsr |= RSR_OE | RSR_OE_NEXT;
        uart->ris |= INT_OE;
        return false;
    }
    uart->rx[(uart->rx_head + uart->rx_count++) % VPL011_FIFO] = byte;
    raise_rx(uart);
    return true;
}

/* What was typed, as far as there is room: as if the sender had waited. */
static void take_typed(struct vpl011 *uart) {
    while (uart->typed_count != 0 && uart->rx_count < depth(uart)) {
        (void)push_rx(uart, uart->typed[uart->typed_head]);
        uart->typed_head = (uart->typed_head + 1) % VPL011_TYPED;
        uart->typed_count--;
    }
}

static uint32_t read_data(struct vpl011 *uart) {
    uint32_t data = uart->rsr & RSR_OE_NEXT ? DR_OE : 0;

    if (uart->rx_count == 0) {
        return 0;
    }
    data |= uart->rx[uart->rx_head];
    uart->rx_head = (uart->rx_head + 1) % VPL011_FIFO;
    uart->rx_count--;
    uart->rsr &= ~RSR_OE_NEXT;
    take_typed(uart);
    lower_rx(uart);
    raise_rx(uart);
    return data;
}

/* Sends what waits, as far as the console takes it. */
static void drain(struct vm *vm) {
    struct vpl011 *uart = &vm->uart;
    unsigned before = uart->tx_count;

    while (uart->tx_count != 0 && console_guest_putc(vm, uart->tx[uart->tx_head])) {
        uart->tx_head = (uart->tx_head + 1) % VPL011_FIFO;
        uart->tx_count--;
    }
    if (uart->tx_count < before) {
        raise_tx(vm);
    }
}

/*
 * Sends also while CR says that the UART or its transmitter is off, as QEMU does: many a small
 * program for virt never turns it on.
 */
static void send(struct vm *vm, uint8_t byte) {
    struct vpl011 *uart = &vm->uart;

    if (uart->cr & CR_LBE) {
        (void)push_rx(uart, byte);
        return;
    }
    drain(vm);
    if (uart->tx_count != 0 || !console_guest_putc(vm, byte)) {
        if (uart->tx_count < depth(uart)) { /* else it is lost, as from the hardware's full FIFO */
            uart->tx[(uart->tx_head + uart->tx_count++) % VPL011_FIFO] = byte;
        }
    }
}

/*
 * A guest that polls TXFF makes progress by this alone: the console gives up waiting for a port
 * that takes nothing, but only when it is asked.
 */
static uint32_t read_flags(struct vm *vm) {
    const struct vpl011 *uart = &vm->uart;
    uint32_t fr = 0;

    drain(vm);
    unsigned waiting = vm->uart.tx_count;
    fr |= uart->rx_count == 0 ? FR_RXFE : 0;
    fr |= uart->rx_count >= depth(uart) ? FR_RXFF : 0;
    fr |= waiting == 0 ? FR_TXFE : 0;
    fr |= waiting >= depth(uart) ? FR_TXFF : 0;
    return fr;
}

/* ---- Registers; lock held ---- */

static uint32_t read_register(struct vm *vm, uint32_t offset) {
    struct vpl011 *uart = &vm->uart;

    switch (offset) {
    case UART_DR:
        return read_data(uart);
    case UART_RSR_ECR:
        return uart->rsr & RSR_OE;
    case UART_FR:
        return read_flags(vm);
    case UART_ILPR:
        return uart->ilpr;
    case UART_IBRD:
        return uart->ibrd;
    case UART_FBRD:
        return uart->fbrd;
    case UART_LCR_H:
        return uart->lcr_h;
    case UART_CR:
        return uart->cr;
    case UART_IFLS:
        return uart->ifls;
    case UART_IMSC:
        return uart->imsc;
    case UART_RIS:
        return uart->ris;
    case UART_MIS:
        return uart->ris & uart->imsc;
    case UART_DMACR:
        return uart->dmacr;
    default:
        return offset >= UART_ID ? ids[(offset - UART_ID) / 4] : 0;
    }
}

/* A change of FEN empties the receive FIFO, as in QEMU. Bytes that wait to be sent are still sent.
 */
static void write_lcr_h(struct vm *vm, uint32_t value) {
    struct vpl011 *uart = &vm->uart;

    if ((uart->lcr_h ^ value) & LCR_FEN) {
        uart->rx_count = 0;
    }
    uart->lcr_h = value & 0xff;
    take_typed(uart);
    lower_rx(uart);
}

static void write_imsc(struct vm *vm, uint32_t value) {
    uint32_t unmasked = value & ~vm->uart.imsc;

    vm->uart.imsc = value & INT_ALL;
    if (unmasked & INT_TX) {
        raise_tx(vm);
    }
}

static void write_register(struct vm *vm, uint32_t offset, uint32_t value) {
    struct vpl011 *uart = &vm->uart;

    switch (offset) {
    case UART_DR:
        send(vm, (uint8_t)value);
        raise_tx(vm);
        break;
    case UART_RSR_ECR: /* any value */
        uart->rsr = 0;
        break;
    case UART_ILPR:
        uart->ilpr = value & 0xff;
        break;
    case UART_IBRD:
        uart->ibrd = value & 0xffff;
        break;
    case UART_FBRD:
        uart->fbrd = value & 0x3f;
        break;
    case UART_LCR_H:
        write_lcr_h(vm, value);
        break;
    case UART_CR:
        uart->cr = value & 0xffff;
        break;
    case UART_IFLS:
        uart->ifls = value & 0x3f;
        lower_rx(uart);
        raise_rx(uart);
        break;
    case UART_IMSC:
        write_imsc(vm, value);
        break;
    case UART_ICR:
        uart->ris &= ~value;
        break;
    case UART_DMACR: /* kept, but there is no DMA */
        uart->dmacr = value & 7;
        break;
    default:
        break;
    }
}

/* ---- To the outside ---- */

/* Registers are 32 bits wide at multiples of 4; anything in between is nothing. */
static bool is_register(uint32_t offset, unsigned width) {
    return offset % 4 == 0 && offset < UART_PAGE && (width == 1 || width == 2 || width == 4);
}

uint64_t vpl011_read(struct vm *vm, uint32_t offset, unsigned width) {
    if (width == 8) { /* as a bus of 32 bits does it */
        uint64_t low = vpl011_read(vm, offset, 4);
        return low | vpl011_read(vm, offset + 4, 4) << 32;
    }
    if (!is_register(offset, width)) {
        return 0;
    }
    spin_lock(&vm->uart.lock);
    uint64_t value = read_register(vm, offset);
    update_line(vm);
    spin_unlock(&vm->uart.lock);
    return value & ((1ull << (8 * width)) - 1);
}

void vpl011_write(struct vm *vm, uint32_t offset, unsigned width, uint64_t value) {
    if (width == 8) {
        vpl011_write(vm, offset, 4, (uint32_t)value);
        vpl011_write(vm, offset + 4, 4, value >> 32);
        return;
    }
    if (!is_register(offset, width)) {
        return;
    }
    spin_lock(&vm->uart.lock);
    write_register(vm, offset, (uint32_t)(value & ((1ull << (8 * width)) - 1)));
    update_line(vm);
    spin_unlock(&vm->uart.lock);
}

bool vpl011_receive(struct vm *vm, uint8_t byte) {
    struct vpl011 *uart = &vm->uart;

    spin_lock(&uart->lock);
    bool room = uart->typed_count < VPL011_TYPED;
    if (room) {
        uart->typed[(uart->typed_head + uart->typed_count++) % VPL011_TYPED] = byte;
        take_typed(uart);
        update_line(vm);
    }
    spin_unlock(&uart->lock);
    return room;
}

void vpl011_tx_room(struct vm *vm) {
    spin_lock(&vm->uart.lock);
    drain(vm);
    update_line(vm);
    spin_unlock(&vm->uart.lock);
}

void vpl011_reset(struct vm *vm) {
    struct vpl011 *uart = &vm->uart;

    spin_lock(&uart->lock);
    drain(vm); /* what an earlier life of the VM could not print; then it is too late */
    vm->uart.tx_count = 0;
    uart->cr = CR_RESET;
    uart->ifls = IFLS_RESET;
    uart->lcr_h = uart->ibrd = uart->fbrd = uart->ilpr = uart->dmacr = 0;
    uart->imsc = uart->ris = uart->rsr = 0;
    uart->rx_head = uart->rx_count = 0;
    uart->typed_head = uart->typed_count = 0;
    update_line(vm);
    spin_unlock(&uart->lock);
}
