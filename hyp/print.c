/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/print.h"

#include <stdbool.h>
#include <stdint.h>

struct output {
    char *buffer;
    size_t size, used;
};

struct field {
    bool left, zeros;
    unsigned width;
    unsigned longs;
};

static void put(struct output *o, char c) {
    if (o->used + 1 < o->size) {
        o->buffer[o->used++] = c;
    }
}

static void put_padded(struct output *o, const struct field *f, const char *text, size_t length) {
    for (size_t i = length; !f->left && i < f->width; i++) {
        put(o, f->zeros ? '0' : ' ');
    }
    for (size_t i = 0; i < length; i++) {
        put(o, text[i]);
    }
    for (size_t i = length; f->left && i < f->width; i++) {
        put(o, ' ');
    }
}

static void put_number(struct output *o, const struct field *f, uint64_t n, bool negative,
                       unsigned base) {
    char digits[24];
    size_t at = sizeof(digits);

    do {
        digits[--at] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n != 0);
    if (negative) {
        digits[--at] = '-';
    }
    put_padded(o, f, digits + at, sizeof(digits) - at);
}

static const char *parse_field(const char *p, struct field *f) {
    *f = (struct field){0};
    for (; *p == '-' || *p == '0'; p++) {
        f->left = f->left || *p == '-';
        f->zeros = f->zeros || *p == '0';
    }
    for (; *p >= '0' && *p <= '9'; p++) {
        f->width = f->width * 10 + (unsigned)(*p - '0');
    }
    for (; *p == 'l'; p++) {
        f->longs++;
    }
    return p;
}

size_t print_to_v(char *buffer, size_t size, const char *format, va_list arguments) {
    struct output o = {buffer, size, 0};

    for (const char *p = format; *p != '\0'; p++) {
        struct field f;
        if (*p != '%') {
            put(&o, *p);
            continue;
        }
        p = parse_field(p + 1, &f);
        switch (*p) {
        case 's': {
            const char *s = va_arg(arguments, const char *);
            size_t length = 0;
            s = s != NULL ? s : "(none)";
            while (s[length] != '\0') {
                length++;
            }
            put_padded(&o, &f, s, length);
            break;
        }
        case 'c':
            put(&o, (char)va_arg(arguments, int));
            break;
        case 'd': {
            int64_t n = f.longs != 0 ? va_arg(arguments, int64_t) : va_arg(arguments, int);
            put_number(&o, &f, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, n < 0, 10);
            break;
        }
        case 'u':
        case 'x': {
            uint64_t n = f.longs != 0 ? va_arg(arguments, uint64_t) : va_arg(arguments, unsigned);
            put_number(&o, &f, n, false, *p == 'u' ? 10 : 16);
            break;
        }
        case '\0':
            p--;
            break;
        default:
            put(&o, *p);
        }
    }
    o.buffer[o.used] = '\0';
    return o.used;
}

size_t print_to(char *buffer, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t used = print_to_v(buffer, size, format, arguments);
    va_end(arguments);
    return used;
}
