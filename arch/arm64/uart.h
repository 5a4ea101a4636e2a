/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine's own PL011 (Arm DDI 0183), as the firmware left it: line settings are not touched.
 */
#ifndef ARM64_UART_H
#define ARM64_UART_H

#include <stdint.h>

/* Maps the port at `base`. Boot pCPU. */
void uart_init(uint64_t base);

/* From now on it interrupts when something was typed. After the interrupt controller is up. */
void uart_enable_interrupts(void);

/* Clears what made it interrupt. */
void uart_acknowledge(void);

#endif
