/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * String functions in plain C; memset, memcpy and memmove are the architecture's (they have to be
 * fast). What works on long texts here is called at boot only.
 */
#include "hyp/string.h"

#include <stdint.h>

/* Or gcc makes a call of strlen() from the loop in strlen(). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

int memcmp(const void *a, const void *b, size_t size) {
    const uint8_t *x = a, *y = b;

    for (size_t i = 0; i < size; i++) {
        if (x[i] != y[i]) {
            return x[i] < y[i] ? -1 : 1;
        }
    }
    return 0;
}

void *memchr(const void *s, int byte, size_t size) {
    const uint8_t *p = s;

    for (size_t i = 0; i < size; i++) {
        if (p[i] == (uint8_t)byte) {
            return (void *)(uintptr_t)(p + i);
        }
    }
    return NULL;
}

size_t strlen(const char *s) {
    size_t n = 0;

    while (s[n] != '\0') {
        n++;
    }
    return n;
}

size_t strnlen(const char *s, size_t max) {
    size_t n = 0;

    while (n < max && s[n] != '\0') {
        n++;
    }
    return n;
}

int strncmp(const char *a, const char *b, size_t max) {
    for (size_t i = 0; i < max; i++) {
        uint8_t x = (uint8_t)a[i], y = (uint8_t)b[i];

        if (x != y) {
            return x < y ? -1 : 1;
        }
        if (x == 0) {
            break;
        }
    }
    return 0;
}

int strcmp(const char *a, const char *b) {
    return strncmp(a, b, SIZE_MAX);
}

char *strchr(const char *s, int c) {
    for (;; s++) {
        if (*s == (char)c) {
            return (char *)(uintptr_t)s;
        }
        if (*s == '\0') {
            return NULL;
        }
    }
}

char *strrchr(const char *s, int c) {
    const char *last = NULL;

    for (;; s++) {
        if (*s == (char)c) {
            last = s;
        }
        if (*s == '\0') {
            return (char *)(uintptr_t)last;
        }
    }
}
