/* SPDX-License-Identifier: GPL-2.0-only */
/* Console output, a small formatter, and the results protocol. */
#include <stdarg.h>

#include "guest.h"

#define UART_DR (UART_BASE + 0x00)
#define UART_FR (UART_BASE + 0x18)
#define FR_TXFF 0x20u

static struct spinlock console_lock;
static unsigned passed, failed, skipped;

void uart_putc(char c) {
    while (read32(UART_FR) & FR_TXFF) {
    }
    write32(UART_DR, (uint8_t)c);
}

struct out {
    char *buf;
    size_t size, used;
};

static void put(struct out *o, char c) {
    if (o->used + 1 < o->size)
        o->buf[o->used++] = c;
}

static void put_number(struct out *o, uint64_t v, unsigned base, bool negative, int width,
                       char pad) {
    char digits[24];
    int n = 0;

    do {
        digits[n++] = "0123456789abcdef"[v % base];
        v /= base;
    } while (v);
    if (negative && pad == '0') {
        put(o, '-');
        width--;
    }
    for (int i = n + (negative && pad == ' '); i < width; i++)
        put(o, pad);
    if (negative && pad == ' ')
        put(o, '-');
    while (n)
        put(o, digits[--n]);
}

/* %d %u %x %c %s %p %%, with l, width and zero padding */
static size_t vformat(char *buf, size_t size, const char *fmt, va_list ap) {
    struct out o = {buf, size, 0};

    for (; *fmt; fmt++) {
        if (*fmt != '%') {
            put(&o, *fmt);
            continue;
        }
        char pad = ' ';
        int width = 0;
        bool wide = false;

        fmt++;
        if (*fmt == '0')
            pad = '0';
        for (; *fmt >= '0' && *fmt <= '9'; fmt++)
            width = width * 10 + (*fmt - '0');
        for (; *fmt == 'l'; fmt++)
            wide = true;
        switch (*fmt) {
        case 'd': {
            int64_t v = wide ? va_arg(ap, long) : va_arg(ap, int);
            put_number(&o, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, 10, v < 0, width, pad);
            break;
        }
        case 'u':
        case 'x': {
            uint64_t v = wide ? va_arg(ap, unsigned long) : va_arg(ap, unsigned);
            put_number(&o, v, *fmt == 'u' ? 10 : 16, false, width, pad);
            break;
        }
        case 'p':
            put_number(&o, (uintptr_t)va_arg(ap, void *), 16, false, 16, '0');
            break;
        case 'c':
            put(&o, (char)va_arg(ap, int));
            break;
        case 's': {
            const char *s = va_arg(ap, const char *);
            int n = 0;

            for (; *s; s++, n++)
                put(&o, *s);
            for (; n < width; n++)
                put(&o, ' ');
            break;
        }
        default:
            put(&o, *fmt);
        }
    }
    if (size)
        buf[o.used] = 0;
    return o.used;
}

int format(char *buf, size_t size, const char *fmt, ...) {
    va_list ap;

    va_start(ap, fmt);
    size_t n = vformat(buf, size, fmt, ap);
    va_end(ap);
    return (int)n;
}

/* One call prints whole: other CPUs wait. Without the MMU there is only one CPU. */
static void vprint(const char *fmt, va_list ap) {
    char buf[256];
    size_t n = vformat(buf, sizeof(buf), fmt, ap);
    bool lock = mmu_is_on();
    uint64_t daif = read_sysreg(daif);

    __asm__ volatile("msr daifset, #3");
    if (lock)
        spin_lock(&console_lock);
    for (size_t i = 0; i < n; i++)
        uart_putc(buf[i]);
    if (lock)
        spin_unlock(&console_lock);
    write_sysreg(daif, daif);
}

void print(const char *fmt, ...) {
    va_list ap;

    va_start(ap, fmt);
    vprint(fmt, ap);
    va_end(ap);
}

void tap_note(const char *fmt, ...) {
    char buf[200];
    va_list ap;

    va_start(ap, fmt);
    vformat(buf, sizeof(buf), fmt, ap);
    va_end(ap);
    print("# %s\n", buf);
}

bool tap_check(bool good, const char *name, uint64_t found, uint64_t expected) {
    __atomic_add_fetch(good ? &passed : &failed, 1, __ATOMIC_RELAXED);
    if (good)
        print("ok %s\n", name);
    else
        print("not ok %s: found 0x%lx expected 0x%lx\n", name, found, expected);
    return good;
}

bool check_range(const char *name, uint64_t found, uint64_t lo, uint64_t hi) {
    bool good = found >= lo && found <= hi;

    __atomic_add_fetch(good ? &passed : &failed, 1, __ATOMIC_RELAXED);
    if (good)
        print("ok %s\n", name);
    else
        print("not ok %s: found %lu expected %lu..%lu\n", name, found, lo, hi);
    return good;
}

void tap_skip(const char *name, const char *reason) {
    __atomic_add_fetch(&skipped, 1, __ATOMIC_RELAXED);
    print("skip %s: %s\n", name, reason);
}

_Noreturn void tap_done(void) {
    print("TESTS DONE: %u passed, %u failed, %u skipped\n", passed, failed, skipped);
    system_off();
}

_Noreturn void die(const char *fmt, ...) {
    char buf[200];
    va_list ap;

    va_start(ap, fmt);
    vformat(buf, sizeof(buf), fmt, ap);
    va_end(ap);
    /* The lock may be held by the CPU that died. */
    __atomic_store_n(&console_lock.locked, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
    print("\nnot ok %s-died: found %s expected none\n", test_name, buf);
    tap_done();
}
