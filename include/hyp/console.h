/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one physical serial port: all VMs' lines and the hypervisor's own share it, whole lines at a
 * time.
 *
 * Each VM has a ring in memory, the hypervisor too; the port takes lines from them in turn, as fast
 * as it can. So no writer waits for another, and a VM that prints without pause delays nobody
 * else's line by more than a line. A guest's line is printed as "[NAME] line", ours as "paravane:
 * line". Control characters of a guest are replaced: it can't rewrite other lines on somebody's
 * terminal.
 *
 * A VM may have the focus: what it prints goes out byte by byte as it is, and what is typed goes to
 * it. The monitor (hyp/monitor.h) is opened by Ctrl-].
 *
 * Lock: one for all of it, after any UART's lock, before none.
 */
#ifndef HYP_CONSOLE_H
#define HYP_CONSOLE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vm;

#define CONSOLE_LINE_MAX 256u
#define CONSOLE_RING     4096u /* power of two */

/* Lines that wait for the port; free running counters. */
struct console_ring {
    uint32_t head, tail;
    char text[CONSOLE_RING];
};

/* How many lines of a kind were printed lately. */
struct console_budget {
    uint64_t since;
    unsigned printed, left_out;
};

/* A VM's output. */
struct console_port {
    struct console_ring ring;
    struct console_budget budget; /* of our lines about it */
    bool waiting;                 /* it was told that there is no room */
    uint8_t last;                 /* the byte before */
    uint16_t used;                /* of the line that has no newline yet */
    char line[CONSOLE_LINE_MAX];
};

/*
 * Prints one line of the hypervisor's own (no newline at the end). Waits for the port when the ring
 * is full, unless that takes nothing for a second: then lines are lost, and counted. Any pCPU, any
 * lock but ours held.
 */
void console_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * The same for what a VM (NULL: nobody in particular) can cause as often as it likes: at most 20
 * lines a second about each VM, and none when the ring is full; says how many were left out.
 */
void console_printf_limited(struct vm *vm, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * One byte of a VM's output. False: its ring is full, the byte was not taken and vpl011_tx_room
 * will be called later. A line is printed when its newline comes, when it is as long as the buffer,
 * or at console_flush_guest. On any pCPU; calls for one VM must not overlap.
 */
bool console_guest_putc(struct vm *vm, uint8_t byte);

/* Whether console_guest_putc would take a byte now. Any pCPU. */
bool console_guest_room(struct vm *vm);

/* Prints what the VM has written of an unfinished line. The VM's uart lock held. */
void console_guest_flush(struct vm *vm);

/* No VM has the focus. */
#define CONSOLE_NOBODY UINT32_MAX

/*
 * Gives the focus to VM number `vm`, or to CONSOLE_NOBODY. Without one, what is typed goes to the
 * first VM that runs. Any pCPU, no locks held.
 */
void console_focus(unsigned vm);
unsigned console_focused(void);

/* Prints text of the monitor as it is, if there is room for it: a prompt, an echo. Any pCPU, no
 * locks. */
void console_monitor_text(const char *text);

/* A line of the monitor's, if the ring has room for it; false otherwise. Any pCPU, no locks. */
bool console_monitor_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CONSOLE_LOG_LINE 256u

/*
 * The hypervisor's own lines that are still kept: copies the one at *at (0 at first), cut to
 * `size`, and moves on. False: there are no more. Any pCPU, no locks.
 */
bool console_log_line(uint32_t *at, char *text, size_t size);

/* Moves bytes from the rings to the port, and typed ones to a VM. From the port's interrupt, no
 * locks held. */
void console_interrupt(void);

/* Waits until all is out: for the end of the machine and for panic. */
void console_drain(void);

/* Stops the machine because of a bug of ours, with a message. Any context. */
_Noreturn void panic(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
