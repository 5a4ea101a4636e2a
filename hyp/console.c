/* SPDX-License-Identifier: GPL-2.0-only */
/* All output goes line by line into one ring, and from there to the port as fast as that takes it. */
#include "hyp/console.h"

#include "core/port.h"
#include "core/spinlock.h"
#include "hyp/arch.h"
#include "hyp/print.h"
#include "hyp/stats.h"
#include "hyp/string.h"
#include "hyp/vm.h"

#define RING_SIZE    65536u /* power of two */
#define ROOM_MIN     1024u  /* a guest is told to wait below this: ours and longest lines still fit */
#define STALLED_NS   1000000000u
#define LIMIT_LINES  20u
#define LIMIT_PERIOD 1000000000u

static struct spinlock lock; /* innermost but for scheduler and timer queues: guards all below */
static char ring[RING_SIZE];
static uint32_t head, tail; /* free running: bytes put in, bytes sent */
static uint64_t last_progress;
static uint32_t lost;
static bool panicking;

static uint32_t room(void) {
    return RING_SIZE - (head - tail);
}

/* Sends what the port takes now; its interrupt brings us back for the rest. */
static void pump(void) {
    uint32_t before = tail;

    while (tail != head && arch_uart_putc((uint8_t)ring[tail % RING_SIZE])) {
        tail++;
    }
    if (tail != before) {
        last_progress = port_clock();
    }
    arch_uart_tx_interrupt(tail != head);
}

static void put(char c) {
    if (room() == 0) {
        lost++;
        return;
    }
    ring[head++ % RING_SIZE] = c;
}

static void put_text(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '\n') {
            put('\r');
        }
        put(text[i]);
    }
}

static void put_string(const char *text) {
    put_text(text, strlen(text));
}

static void print_line(const char *format, va_list arguments) {
    char text[512];
    size_t used = print_to_v(text, sizeof(text), format, arguments);

    spin_lock(&lock);
    if (lost != 0 && room() > ROOM_MIN / 2) {
        char note[64];
        print_to(note, sizeof(note), "paravane: console: %u bytes lost\n", lost);
        lost = 0;
        put_string(note);
    }
    put_string("paravane: ");
    put_text(text, used);
    put_string("\n");
    pump();
    spin_unlock(&lock);
}

void console_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line(format, arguments);
    va_end(arguments);
}

void console_printf_limited(const char *format, ...) {
    static struct spinlock limit_lock;
    static uint64_t period_start;
    static unsigned printed, left_out;
    unsigned report = 0;

    spin_lock(&limit_lock);
    uint64_t now = port_clock();
    if (now - period_start > stats_ticks(LIMIT_PERIOD)) {
        report = left_out;
        period_start = now;
        printed = left_out = 0;
    }
    bool allowed = printed < LIMIT_LINES;
    if (allowed) {
        printed++;
    } else {
        left_out++;
    }
    spin_unlock(&limit_lock);
    if (report != 0) {
        console_printf("(%u more messages like these were left out)", report);
    }
    if (allowed) {
        va_list arguments;
        va_start(arguments, format);
        print_line(format, arguments);
        va_end(arguments);
    }
}

/* Moves a guest's line into the ring. Lock held. */
static void put_guest_line(struct vm *vm) {
    put_string("[");
    put_string(vm->config->name);
    put_string("] ");
    put_text(vm->line.text, vm->line.used);
    put_string("\n");
    vm->line.used = 0;
}

/* Nobody has read for long: then a guest goes on and its output is lost, rather than it hangs. */
static bool stalled(void) {
    return port_clock() - last_progress > stats_ticks(STALLED_NS);
}

bool console_guest_putc(struct vm *vm, uint8_t byte) {
    struct console_line *line = &vm->line;

    if (byte == '\r' || byte == 0) {
        return true; /* we end lines ourselves */
    }
    if (byte != '\n') {
        line->text[line->used++] = (char)byte;
        if (line->used < CONSOLE_LINE_MAX) {
            return true;
        }
    }
    spin_lock(&lock);
    bool taken = room() > ROOM_MIN;
    if (!taken && stalled()) {
        lost += line->used;
        line->used = 0;
        taken = true;
    } else if (taken) {
        put_guest_line(vm);
        pump();
    } else {
        line->waiting = true;
        if (byte != '\n') {
            line->used--; /* not taken: it will come again */
        }
    }
    spin_unlock(&lock);
    return taken;
}

bool console_guest_room(struct vm *vm) {
    spin_lock(&lock);
    bool free = room() > ROOM_MIN || stalled();
    if (!free) {
        vm->line.waiting = true;
    }
    spin_unlock(&lock);
    return free;
}

void console_guest_flush(struct vm *vm) {
    spin_lock(&lock);
    if (vm->line.used != 0) {
        put_guest_line(vm);
        pump();
    }
    spin_unlock(&lock);
}

/* Tells the VMs that wait that there is room. Their UART's lock comes before ours: not held here. */
static void tell_waiting(void) {
    for (unsigned i = 0; i < vm_count; i++) {
        struct vm *vm = vms[i];
        spin_lock(&lock);
        bool tell = vm->line.waiting && room() > RING_SIZE / 2;
        if (tell) {
            vm->line.waiting = false;
        }
        spin_unlock(&lock);
        if (tell) {
            vpl011_tx_room(vm);
        }
    }
}

/* What is typed goes to the first VM that runs. */
static void receive(void) {
    for (int c = arch_uart_getc(); c >= 0; c = arch_uart_getc()) {
        for (unsigned i = 0; i < vm_count; i++) {
            if (atomic_load(&vms[i]->state) == VM_RUNNING) {
                (void)vpl011_receive(vms[i], (uint8_t)c); /* a full FIFO loses bytes, as on a wire */
                break;
            }
        }
    }
}

void console_interrupt(void) {
    receive();
    spin_lock(&lock);
    pump();
    spin_unlock(&lock);
    tell_waiting();
}

void console_drain(void) {
    spin_lock(&lock);
    while (tail != head && !stalled()) {
        pump();
    }
    spin_unlock(&lock);
}

_Noreturn void panic(const char *format, ...) {
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    print_to_v(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (__atomic_exchange_n(&panicking, true, __ATOMIC_SEQ_CST)) {
        arch_halt(); /* somebody else is at it, or we fell over ourselves */
    }
    /* The lock's holder may be us, or stopped: wait a little, then print all the same. */
    for (unsigned tries = 0; tries < 1000000u && !spin_trylock(&lock); tries++) {
        port_relax();
    }
    put_string("paravane: panic: ");
    put_string(text);
    put_string("\n");
    while (tail != head && !stalled()) {
        pump();
    }
    arch_power_off();
}
