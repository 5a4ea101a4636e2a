/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/console.h"

#include "core/port.h"
#include "core/rare.h"
#include "core/spinlock.h"
#include "hyp/arch.h"
#include "hyp/monitor.h"
#include "hyp/print.h"
#include "hyp/stats.h"
#include "hyp/string.h"
#include "hyp/vm.h"

#define ROOM_MIN     512u /* a guest is told to wait below this: a longest line still fits */
#define SECOND_NS    1000000000u
#define LIMIT_LINES  20u /* of console_printf_limited, a second and VM */
#define OWN_LINE_MAX 512u

static struct spinlock
    lock; /* guards all below, and all struct console_port but `line`, `used`, `last` */
static struct console_ring own;
static unsigned sent_by; /* whose byte was the last one */
static unsigned turn;    /* whose line is being sent: 0 ours, i + 1 that of VM i */
static uint64_t last_progress;
static uint32_t lost;
static struct console_budget own_budget;
static bool panicking;
static struct console_ring kept; /* our last lines, also when they are out; only its head counts */
static unsigned focus = CONSOLE_NOBODY;
static bool cr_sent;  /* the first half of an end that we give another's line */
static bool mid_line; /* the last byte that was sent ended no line */

/* ---- Rings; lock held ---- */

static uint32_t room(const struct console_ring *r) {
    return CONSOLE_RING - (r->head - r->tail);
}

static void put_text(struct console_ring *r, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        r->text[r->head++ % CONSOLE_RING] = text[i];
    }
}

/* Prefix, text and end of line; the caller knows that there is room. */
static void put_line(struct console_ring *r, const char *open, const char *name, const char *text,
                     size_t length) {
    put_text(r, open, strlen(open));
    put_text(r, name, strlen(name));
    put_text(r, open[0] == '[' ? "] " : ": ", 2);
    put_text(r, text, length);
    put_text(r, "\r\n", 2);
}

static struct console_ring *ring_of(unsigned source) {
    return source == 0 ? &own : &vms[source - 1]->console.ring;
}

/* The next source that has a line, from `turn` on; its own line first. False: there is none. */
static bool find_source(void) {
    for (unsigned i = 0; i <= vm_count; i++) {
        unsigned source = (turn + i) % (vm_count + 1);
        const struct console_ring *r = ring_of(source);
        if (r->head != r->tail) {
            turn = source;
            return true;
        }
    }
    return false;
}

/* Sends what the port takes now, a line of each in turn; its interrupt brings us back for the rest.
 */
static void pump(void) {
    bool more;

    while ((more = find_source())) {
        struct console_ring *r = ring_of(turn);
        char c = r->text[r->tail % CONSOLE_RING];
        bool ends_other = mid_line && turn != sent_by;
        if (!arch_uart_putc(ends_other ? (cr_sent ? '\n' : '\r') : (uint8_t)c)) {
            break;
        }
        last_progress = port_clock();
        if (ends_other) {
            mid_line = !cr_sent;
            cr_sent = !cr_sent;
            continue;
        }
        mid_line = c != '\n';
        sent_by = turn;
        r->tail++;
        if (c == '\n') {
            turn = (turn + 1) % (vm_count + 1);
        }
    }
    arch_uart_tx_interrupt(more);
}

/* Nobody has read for long: output is lost then, rather than that somebody hangs. */
static bool stalled(void) {
    return port_clock() - last_progress > stats_ticks(SECOND_NS);
}

/* ---- The hypervisor's own lines ---- */

/* What the monitor left without an end, ends before a line of the hypervisor's. */
static void end_own_line(void) {
    if (own.head != 0 && own.text[(own.head - 1) % CONSOLE_RING] != '\n') {
        put_text(&own, "\r\n", 2);
    }
}

/* `wait`: for the port, when the ring is full. */
static void print_line(bool wait, const char *format, va_list arguments) {
    char text[OWN_LINE_MAX];
    size_t used = print_to_v(text, sizeof(text), format, arguments);

    spin_lock(&lock);
    put_line(&kept, "", "paravane", text, used);
    while (wait && room(&own) < used + 64 && !stalled()) {
        pump();
    }
    if (room(&own) < used + 64) {
        lost++;
    } else {
        end_own_line();
        put_line(&own, "", "paravane", text, used);
        if (lost != 0 && room(&own) > CONSOLE_RING / 2) {
            used = print_to(text, sizeof(text), "console: %u lines or bytes lost", lost);
            lost = 0;
            put_line(&own, "", "paravane", text, used);
        }
    }
    pump();
    spin_unlock(&lock);
}

void console_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    print_line(true, format, arguments);
    va_end(arguments);
}

void console_printf_limited(struct vm *vm, const char *format, ...) {
    struct console_budget *b = vm != NULL ? &vm->console.budget : &own_budget;
    unsigned report = 0;

    spin_lock(&lock);
    uint64_t now = port_clock();
    if (now - b->since > stats_ticks(SECOND_NS)) {
        report = b->left_out;
        *b = (struct console_budget){.since = now};
    }
    bool allowed = b->printed < LIMIT_LINES;
    if (allowed) {
        b->printed++;
    } else {
        b->left_out++;
    }
    spin_unlock(&lock);
    if (report != 0) {
        console_printf("(%u more messages about vm %s were left out)", report,
                       vm != NULL ? vm->config->name : "?");
    }
    if (allowed) {
        va_list arguments;
        va_start(arguments, format);
        print_line(false, format, arguments);
        va_end(arguments);
    }
}

/* ---- The guests' lines ---- */

/*
 * What a terminal would act on becomes a dot: control characters, and C1 ones, alone (0x80..0x9f
 * that continue no UTF-8 character) or in their UTF-8 form (after 0xc2).
 */
static char harmless(uint8_t byte, uint8_t before) {
    bool c1 = byte >= 0x80 && byte <= 0x9f && (before < 0x80 || before == 0xc2);
    bool control = (byte < 0x20 && byte != '\t') || byte == 0x7f;

    return c1 || control ? '.' : (char)byte;
}

/* The line into the VM's ring; false: no room. */
static bool flush_line(struct vm *vm) {
    struct console_port *c = &vm->console;
    bool taken;

    spin_lock(&lock);
    taken = room(&c->ring) > ROOM_MIN;
    if (taken) {
        put_line(&c->ring, "[", vm->config->name, c->line, c->used);
        pump();
    } else if (stalled()) {
        lost += c->used;
        taken = true;
    } else {
        c->waiting = true;
    }
    spin_unlock(&lock);
    if (taken) {
        c->used = 0;
    }
    return taken;
}

/* A byte of the VM that has the focus. */
static bool put_raw(struct vm *vm, uint8_t byte) {
    struct console_port *c = &vm->console;

    spin_lock(&lock);
    bool taken = room(&c->ring) > ROOM_MIN || stalled();
    if (taken && room(&c->ring) > ROOM_MIN) {
        put_text(&c->ring, c->line, c->used); /* what it wrote before it got the focus */
        c->used = 0;
        put_text(&c->ring, (const char *)&byte, 1);
        pump();
    } else if (taken) {
        lost++;
    } else {
        c->waiting = true;
    }
    spin_unlock(&lock);
    return taken;
}

bool console_guest_putc(struct vm *vm, uint8_t byte) {
    struct console_port *c = &vm->console;

    if (__atomic_load_n(&focus, __ATOMIC_RELAXED) == vm->index) {
        return put_raw(vm, byte);
    }

    if (byte == '\r' || byte == 0) {
        return true; /* we end lines ourselves */
    }
    if (byte == '\n') {
        return flush_line(vm);
    }
    if (c->used == CONSOLE_LINE_MAX && !flush_line(vm)) {
        return false;
    }
    c->line[c->used++] = harmless(byte, c->last);
    c->last = byte;
    return true;
}

bool console_guest_room(struct vm *vm) {
    spin_lock(&lock);
    bool free = room(&vm->console.ring) > ROOM_MIN || stalled();
    if (!free) {
        vm->console.waiting = true;
    }
    spin_unlock(&lock);
    return free;
}

void console_guest_flush(struct vm *vm) {
    if (vm->console.used != 0) {
        (void)flush_line(vm);
    }
}

/* Tells the VMs that wait that there is room. Their UART's lock comes before ours: not held here.
 */
static void tell_waiting(void) {
    for (unsigned i = 0; i < vm_count; i++) {
        struct vm *vm = vms[i];
        spin_lock(&lock);
        bool tell = vm->console.waiting && room(&vm->console.ring) > CONSOLE_RING / 2;
        if (tell) {
            vm->console.waiting = false;
        }
        spin_unlock(&lock);
        if (tell) {
            vpl011_tx_room(vm);
        }
    }
}

/* For whom a typed byte is: the VM in focus, or the first one that runs. */
static struct vm *reader(void) {
    unsigned i = console_focused();

    if (i != CONSOLE_NOBODY) {
        return vms[i];
    }
    for (i = 0; i < vm_count; i++) {
        if (atomic_load(&vms[i]->state) == VM_RUNNING) {
            return vms[i];
        }
    }
    return NULL;
}

/* What is typed. */
static void receive(void) {
    for (int c = arch_uart_getc(); c >= 0; c = arch_uart_getc()) {
        struct vm *vm;

        if (!monitor_typed((uint8_t)c) && (vm = reader()) != NULL &&
            !vpl011_receive(vm, (uint8_t)c)) {
            console_monitor_text("\a"); /* it was lost: that VM does not read */
        }
    }
}

void console_focus(unsigned vm) {
    __atomic_store_n(&focus, vm, __ATOMIC_RELAXED);
}

unsigned console_focused(void) {
    return __atomic_load_n(&focus, __ATOMIC_RELAXED);
}

void console_monitor_text(const char *text) {
    size_t length = strlen(text);

    spin_lock(&lock);
    if (room(&own) > length) {
        put_text(&own, text, length);
        pump();
    }
    spin_unlock(&lock);
}

bool console_monitor_line(const char *format, ...) {
    char text[OWN_LINE_MAX];
    va_list arguments;

    va_start(arguments, format);
    size_t used = print_to_v(text, sizeof(text), format, arguments);
    va_end(arguments);
    spin_lock(&lock);
    bool fits = room(&own) > used + ROOM_MIN;
    if (fits) {
        put_text(&own, text, used);
        put_text(&own, "\r\n", 2);
        pump();
    }
    spin_unlock(&lock);
    return fits;
}

bool console_log_line(uint32_t *at, char *text, size_t size) {
    size_t n = 0;

    spin_lock(&lock);
    if (kept.head - *at > CONSOLE_RING) { /* has been overwritten: on to the next whole line */
        *at = kept.head - CONSOLE_RING;
        while (*at != kept.head && kept.text[(*at)++ % CONSOLE_RING] != '\n') {
        }
    }
    bool any = *at != kept.head;
    for (char c = '\0'; *at != kept.head && c != '\n';) {
        c = kept.text[(*at)++ % CONSOLE_RING];
        if (c != '\r' && c != '\n' && n + 1 < size) {
            text[n++] = c;
        }
    }
    text[n] = '\0';
    spin_unlock(&lock);
    return any;
}

RARE void console_interrupt(void) {
    receive();
    spin_lock(&lock);
    pump();
    spin_unlock(&lock);
    tell_waiting();
}

void console_drain(void) {
    spin_lock(&lock);
    while (find_source() && !stalled()) {
        pump();
    }
    spin_unlock(&lock);
}

_Noreturn void panic(const char *format, ...) {
    char text[OWN_LINE_MAX];
    va_list arguments;

    va_start(arguments, format);
    size_t used = print_to_v(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (__atomic_exchange_n(&panicking, true, __ATOMIC_SEQ_CST)) {
        arch_halt(); /* somebody else is at it, or we fell over ourselves */
    }
    /* The lock's holder may be us, or stopped: wait a little, then print all the same. */
    for (unsigned tries = 0; tries < 1000000u && !spin_trylock(&lock); tries++) {
        port_relax();
    }
    own.tail = room(&own) < used + 64 ? own.head : own.tail; /* of all lines this one matters */
    put_line(&own, "", "paravane: panic", text, used);
    while (find_source() && !stalled()) {
        pump();
    }
    arch_power_off();
}
