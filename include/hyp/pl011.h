/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's serial port: an Arm PL011 (DDI 0183) as QEMU's virt has it, one per VM.
 */
#ifndef HYP_PL011_H
#define HYP_PL011_H

#include <stdbool.h>
#include <stdint.h>

#include "core/spinlock.h"

struct vm;

#define VPL011_FIFO  16u   /* bytes, each direction */
#define VPL011_TYPED 1024u /* bytes that wait outside */

struct vpl011 {
    struct spinlock lock;
    uint32_t cr, lcr_h, ibrd, fbrd, ifls, imsc, ris, dmacr, ilpr, rsr;
    uint8_t rx[VPL011_FIFO];
    unsigned rx_head, rx_count;
    uint8_t typed[VPL011_TYPED]; /* for the FIFO, when there is room: a paste must not overrun it */
    unsigned typed_head, typed_count;
    /*
     * Bytes that the console had no room for. As deep as the hardware's FIFO: a driver may write as
     * many as fit above the trigger level without a look at TXFF, and Linux does.
     */
    uint8_t tx[VPL011_FIFO];
    unsigned tx_head, tx_count;
    bool line; /* level of its interrupt line as last told to the interrupt controller */
};

/* As after power-on. */
void vpl011_reset(struct vm *vm);

/*
 * An access at byte `offset` of the 4 KiB register page, 1, 2, 4 or 8 bytes wide. Reserved offsets
 * and odd widths read as zero and ignore writes, as QEMU's model does. Takes uart->lock; on the
 * accessing vCPU's pCPU. Output goes to console_guest_putc().
 */
uint64_t vpl011_read(struct vm *vm, uint32_t offset, unsigned width);
void vpl011_write(struct vm *vm, uint32_t offset, unsigned width, uint64_t value);

/*
 * A byte typed for this VM: it waits until the receive FIFO has room. False, and it is lost, when
 * VPL011_TYPED others wait already. Any pCPU; takes uart->lock.
 */
bool vpl011_receive(struct vm *vm, uint8_t byte);

/* The console has room again for this VM's output. Any pCPU. */
void vpl011_tx_room(struct vm *vm);

#endif
