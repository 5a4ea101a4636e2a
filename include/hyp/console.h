/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one physical serial port: all VMs' lines and the hypervisor's own share it, whole lines at a time.
 *
 * Lines go into a ring in memory and from there to the port as fast as it takes them, so no writer
 * waits for another. A guest's line is printed as "[NAME] line", ours as "paravane: line".
 */
#ifndef HYP_CONSOLE_H
#define HYP_CONSOLE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

struct vm;

#define CONSOLE_LINE_MAX 256u

/* A guest's output since its last newline. */
struct console_line {
    uint16_t used;
    bool waiting; /* it was told that there is no room */
    char text[CONSOLE_LINE_MAX];
};

/* Prints one line of the hypervisor's own (no newline at the end). Any pCPU, any lock but ours held. */
void console_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As console_printf, but at most 20 lines a second of all of these; says how many were left out. */
void console_printf_limited(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * One byte of a VM's output. False: the ring is full, the byte was not taken and vpl011_tx_room will be
 * called later. A line is printed when its newline comes, when it is as long as the buffer, or at
 * console_flush_guest. On any pCPU; calls for one VM must not overlap.
 */
bool console_guest_putc(struct vm *vm, uint8_t byte);

/* Whether console_guest_putc would take a byte now. */
bool console_guest_room(struct vm *vm);

/* Prints what the VM has written of an unfinished line. */
void console_guest_flush(struct vm *vm);

/* Moves bytes from the ring to the port, and typed ones to the VM in focus. From the port's interrupt. */
void console_interrupt(void);

/* Waits until all is out: for the end of the machine and for panic. */
void console_drain(void);

/* Stops the machine because of a bug of ours, with a message. Any context. */
_Noreturn void panic(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
