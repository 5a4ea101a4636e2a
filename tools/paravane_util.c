/* SPDX-License-Identifier: GPL-2.0-only */
#include "tools/paravane.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void complain(const char *format, ...) {
    va_list args;

    fputs("paravane: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void *must_realloc(void *p, size_t count, size_t size) {
    void *bigger = reallocarray(p, count == 0 ? 1 : count, size);

    if (bigger == NULL) {
        complain("out of memory");
        exit(EXIT_FAILED);
    }
    return bigger;
}

char *must_printf(const char *format, ...) {
    va_list args;

    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = must_realloc(NULL, (size_t)n + 1, 1);
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

struct size_text size_text(uint64_t bytes) {
    static const char units[] = "KMG";
    struct size_text s;
    uint64_t unit = 1024;
    size_t i = 0;

    while (i < 2 && bytes >= unit * 1024) {
        unit *= 1024;
        i++;
    }
    uint64_t whole = bytes / unit;
    uint64_t tenths = (bytes % unit * 10 + unit - 1) / unit;
    whole += tenths / 10;
    tenths %= 10;
    if (tenths == 0) {
        snprintf(s.text, sizeof(s.text), "%llu%c", (unsigned long long)whole, units[i]);
    } else {
        snprintf(s.text, sizeof(s.text), "%llu.%llu%c", (unsigned long long)whole,
                 (unsigned long long)tenths, units[i]);
    }
    return s;
}

bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *number) {
    char *end;

    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && *number >= min && *number <= max;
}

bool write_all(int fd, const void *bytes, size_t n) {
    const char *p = bytes;

    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return false;
        }
        p += done;
        n -= (size_t)done;
    }
    return true;
}

char *read_file(const char *path, size_t max, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t used = 0, room = 0;
    ssize_t n = -1;

    if (fd < 0) {
        return NULL;
    }
    for (;;) {
        if (used == room) {
            room = room == 0 ? 65536 : room * 2;
            text = must_realloc(text, room, 1);
        }
        n = read(fd, text + used, room - used);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        used += (size_t)n;
        if (used > max) {
            errno = EFBIG;
            n = -1;
            break;
        }
    }
    int why = errno;
    close(fd);
    if (n < 0) {
        free(text);
        errno = why;
        return NULL;
    }
    *size = used;
    return text;
}

bool make_folders(const char *path) {
    char *copy = must_printf("%s", path);
    bool ok = true;

    for (char *p = copy; ok && *p != '\0'; p++) {
        if (p[0] == '/' && p > copy) {
            *p = '\0';
            ok = mkdir(copy, 0777) == 0 || errno == EEXIST;
            *p = '/';
        }
    }
    ok = ok && (mkdir(copy, 0777) == 0 || errno == EEXIST);
    free(copy);
    return ok;
}
