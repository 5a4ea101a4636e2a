/* SPDX-License-Identifier: GPL-2.0-only */
/* Formatted text into a buffer. */
#ifndef HYP_PRINT_H
#define HYP_PRINT_H

#include <stdarg.h>
#include <stddef.h>

/*
 * A part of C's snprintf: %s %c %% and %d %u %x with l or ll (both 64 bits), width, '0' and '-'.
 * Always ends in NUL (size >= 1). Returns the bytes written without it: at most size - 1. Any
 * context.
 */
size_t print_to_v(char *buffer, size_t size, const char *format, va_list arguments);
size_t print_to(char *buffer, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
