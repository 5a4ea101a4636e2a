/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Small helpers for reading pieces of text that do not end in NUL and for writing text into a
 * buffer of fixed size. No state, no calls, any context.
 */
#ifndef CORE_TEXT_H
#define CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n bytes of text at p; p may be anything when n is 0. */
struct span {
    const char *p;
    size_t n;
};

static inline size_t text_length(const char *s) {
    size_t n = 0;

    while (s[n] != '\0') {
        n++;
    }
    return n;
}

static inline struct span span_of(const char *s) {
    return (struct span){s, text_length(s)};
}

static inline bool span_equal(struct span a, struct span b) {
    if (a.n != b.n) {
        return false;
    }
    for (size_t i = 0; i < a.n; i++) {
        if (a.p[i] != b.p[i]) {
            return false;
        }
    }
    return true;
}

static inline bool span_is(struct span s, const char *word) {
    return span_equal(s, span_of(word));
}

/* Where the first `c` is; s.n when there is none. */
static inline size_t span_find(struct span s, char c) {
    size_t i = 0;

    while (i < s.n && s.p[i] != c) {
        i++;
    }
    return i;
}

/* Without its first n bytes, n <= s.n. */
static inline struct span span_from(struct span s, size_t n) {
    return n == 0 ? s : (struct span){s.p + n, s.n - n};
}

/* Takes the part up to the first `c`, or all of it, off the front of *s; `c` itself is dropped. */
static inline struct span span_take(struct span *s, char c) {
    size_t n = span_find(*s, c);
    struct span head = {s->p, n};

    *s = span_from(*s, n < s->n ? n + 1 : n);
    return head;
}

static inline bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* Without spaces and tabs at both ends. */
static inline struct span span_trim(struct span s) {
    while (s.n > 0 && is_blank(s.p[0])) {
        s = span_from(s, 1);
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

/*
 * Takes decimal digits off the front of *s. false, with *s unchanged, when it does not begin with a
 * digit or the number does not fit.
 */
static inline bool span_take_number(struct span *s, uint64_t *number) {
    uint64_t n = 0;
    size_t i = 0;

    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++) {
        unsigned digit = (unsigned)(s->p[i] - '0');
        if (n > (UINT64_MAX - digit) / 10) {
            return false;
        }
        n = n * 10 + digit;
    }
    if (i == 0) {
        return false;
    }
    *s = span_from(*s, i);
    *number = n;
    return true;
}

/* Text being written to buf: always ended with NUL; what does not fit is dropped. */
struct text_out {
    char *buf;
    size_t size, used;
};

/* Begins with the empty text; size >= 1. */
static inline struct text_out text_out(char *buf, size_t size) {
    buf[0] = '\0';
    return (struct text_out){buf, size, 0};
}

static inline void out_char(struct text_out *o, char c) {
    if (o->used + 1 < o->size) {
        o->buf[o->used++] = c;
        o->buf[o->used] = '\0';
    }
}

static inline void out_text(struct text_out *o, const char *s) {
    while (*s != '\0') {
        out_char(o, *s++);
    }
}

/* Every byte that is not printable ASCII becomes '?'. */
static inline void out_span(struct text_out *o, struct span s) {
    for (size_t i = 0; i < s.n; i++) {
        out_char(o, s.p[i] >= 0x20 && s.p[i] < 0x7f ? s.p[i] : '?');
    }
}

/* 'text' in quotes, cut with dots after 60 bytes. */
static inline void out_quoted(struct text_out *o, struct span s) {
    const size_t limit = 60;

    out_char(o, '\'');
    out_span(o, (struct span){s.p, s.n < limit ? s.n : limit});
    out_text(o, s.n > limit ? "...'" : "'");
}

static inline void out_number(struct text_out *o, uint64_t n) {
    char digits[20];
    size_t i = sizeof(digits);

    do {
        digits[--i] = (char)('0' + n % 10);
        n /= 10;
    } while (n != 0);
    while (i < sizeof(digits)) {
        out_char(o, digits[i++]);
    }
}

#endif
