/* SPDX-License-Identifier: GPL-2.0-only */
/* The few string functions that freestanding code needs, as in C11 7.24. Any context. */
#ifndef HYP_STRING_H
#define HYP_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
void *memchr(const void *s, int byte, size_t size);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t max);
char *strchr(const char *s, int c);
char *strrchr(const char *s, int c);

#endif
