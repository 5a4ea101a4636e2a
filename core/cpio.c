/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/cpio.h"

#include <stdbool.h>

#include "core/text.h"

/* A header is the magic and 13 fields of 8 hexadecimal digits, without anything between them. */
enum { MAGIC_SIZE = 6, FIELD_SIZE = 8, HEADER_SIZE = 110 };

enum field {
    F_INO,
    F_MODE,
    F_UID,
    F_GID,
    F_LINKS,
    F_MTIME,
    F_SIZE,
    F_DEV_MAJOR,
    F_DEV_MINOR,
    F_RDEV_MAJOR,
    F_RDEV_MINOR,
    F_NAME_SIZE,
    F_CHECK,
    F_COUNT
};
_Static_assert(MAGIC_SIZE + F_COUNT * FIELD_SIZE == HEADER_SIZE, "newc header");

enum { MODE_TYPE = 0170000, MODE_REGULAR = 0100000 };

static enum cpio_result malformed(struct cpio_error *err, size_t offset, const char *text) {
    *err = (struct cpio_error){offset, text};
    return CPIO_MALFORMED;
}

static bool read_hex(const unsigned char *digits, uint32_t *number) {
    uint32_t n = 0;

    for (unsigned i = 0; i < FIELD_SIZE; i++) {
        unsigned char c = digits[i];
        unsigned digit;

        if (c >= '0' && c <= '9') {
            digit = c - (unsigned)'0';
        } else if (c >= 'a' && c <= 'f') {
            digit = c - (unsigned)'a' + 10;
        } else if (c >= 'A' && c <= 'F') {
            digit = c - (unsigned)'A' + 10;
        } else {
            return false;
        }
        n = n << 4 | digit;
    }
    *number = n;
    return true;
}

/* n rounded up to a multiple of 4, or `limit` where that is less; n <= limit. */
static size_t align_within(size_t n, size_t limit) {
    size_t up = (4 - n % 4) % 4;

    return limit - n < up ? limit : n + up;
}

static const char *plain_name(const char *name) {
    while (name[0] == '.' && name[1] == '/') {
        name += 2;
        while (*name == '/') {
            name++;
        }
    }
    return name;
}

static uint32_t byte_sum(const unsigned char *p, size_t n) {
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += p[i];
    }
    return sum;
}

/* Steps over zero bytes; leaves the offset alone when only zeros, or nothing, are left. */
static bool skip_padding(struct cpio_reader *reader) {
    size_t at = reader->offset;

    while (at < reader->size && reader->archive[at] == 0) {
        at++;
    }
    if (at == reader->size) {
        return false;
    }
    reader->offset = at;
    return true;
}

/* Reads magic and fields of the header at the reader's offset; *sums: the archive has checksums. */
static enum cpio_result read_header(const struct cpio_reader *reader, uint32_t field[F_COUNT],
                                    bool *sums, struct cpio_error *err) {
    const unsigned char *header = reader->archive + reader->offset;

    if (reader->size - reader->offset < HEADER_SIZE) {
        return malformed(err, reader->offset, "the archive ends inside a header");
    }
    for (unsigned i = 0; i < MAGIC_SIZE - 1; i++) {
        if (header[i] != "07070"[i]) {
            return malformed(err, reader->offset, "no newc header (070701 or 070702)");
        }
    }
    if (header[MAGIC_SIZE - 1] != '1' && header[MAGIC_SIZE - 1] != '2') {
        return malformed(err, reader->offset, "no newc header (070701 or 070702)");
    }
    *sums = header[MAGIC_SIZE - 1] == '2';
    for (unsigned i = 0; i < F_COUNT; i++) {
        if (!read_hex(header + MAGIC_SIZE + (size_t)FIELD_SIZE * i, &field[i])) {
            return malformed(err, reader->offset, "a header field is not hexadecimal");
        }
    }
    return CPIO_FOUND;
}

/* Finds the name behind the header, of name_size bytes with its NUL. */
static enum cpio_result read_name(const struct cpio_reader *reader, uint32_t name_size,
                                  const char **name, struct cpio_error *err) {
    size_t start = reader->offset + HEADER_SIZE;

    if (name_size < 2 || name_size > CPIO_NAME_MAX) {
        return malformed(err, reader->offset, "a name has no bytes or too many");
    }
    if (reader->size - start < name_size) {
        return malformed(err, reader->offset, "the archive ends inside a name");
    }
    *name = (const char *)reader->archive + start;
    if (span_find((struct span){*name, name_size}, '\0') != name_size - 1) {
        return malformed(err, reader->offset, "a name does not end where its header says");
    }
    return CPIO_FOUND;
}

struct cpio_reader cpio_start(const void *archive, size_t size) {
    return (struct cpio_reader){archive, size, 0};
}

enum cpio_result cpio_next(struct cpio_reader *reader, struct cpio_entry *entry,
                           struct cpio_error *err) {
    uint32_t field[F_COUNT];
    const char *name;
    bool sums;

    if (!skip_padding(reader)) {
        return malformed(err, reader->offset, "the archive ends without TRAILER!!!");
    }
    size_t start = reader->offset;
    enum cpio_result result = read_header(reader, field, &sums, err);
    if (result == CPIO_FOUND) {
        result = read_name(reader, field[F_NAME_SIZE], &name, err);
    }
    if (result != CPIO_FOUND) {
        return result;
    }
    if (span_is(span_of(name), "TRAILER!!!")) {
        return CPIO_NO_ENTRY;
    }
    name = plain_name(name);
    if (*name == '\0') {
        name = "."; /* "./" */
    }
    size_t data = align_within(start + HEADER_SIZE + field[F_NAME_SIZE], reader->size);
    if (reader->size - data < field[F_SIZE]) {
        return malformed(err, start, "the archive ends inside a file");
    }
    const unsigned char *bytes = reader->archive + data;
    if (sums && (field[F_MODE] & MODE_TYPE) == MODE_REGULAR &&
        byte_sum(bytes, field[F_SIZE]) != field[F_CHECK]) {
        return malformed(err, start, "a file's checksum does not match its bytes");
    }
    *entry = (struct cpio_entry){.name = name,
                                 .data = bytes,
                                 .size = field[F_SIZE],
                                 .mode = field[F_MODE],
                                 .ino = field[F_INO],
                                 .dev_major = field[F_DEV_MAJOR],
                                 .dev_minor = field[F_DEV_MINOR],
                                 .links = field[F_LINKS]};
    reader->offset = align_within(data + field[F_SIZE], reader->size);
    return CPIO_FOUND;
}

/* Whether b is another name for a's file and holds the bytes. */
static bool holds_bytes_of(const struct cpio_entry *a, const struct cpio_entry *b) {
    return (b->mode & MODE_TYPE) == MODE_REGULAR && b->size != 0 && a->ino == b->ino &&
           a->dev_major == b->dev_major && a->dev_minor == b->dev_minor;
}

enum cpio_result cpio_find(const void *archive, size_t size, const char *name,
                           struct cpio_entry *entry, struct cpio_error *err) {
    struct cpio_reader reader = cpio_start(archive, size);
    struct span wanted = span_of(plain_name(name));
    struct cpio_entry link;
    enum cpio_result result;

    do {
        result = cpio_next(&reader, entry, err);
        if (result != CPIO_FOUND) {
            return result;
        }
    } while ((entry->mode & MODE_TYPE) != MODE_REGULAR || !span_is(wanted, entry->name));

    if (entry->size != 0 || entry->links < 2) {
        return CPIO_FOUND;
    }
    while ((result = cpio_next(&reader, &link, err)) == CPIO_FOUND) {
        if (holds_bytes_of(entry, &link)) {
            entry->data = link.data;
            entry->size = link.size;
            break;
        }
    }
    return result == CPIO_MALFORMED ? CPIO_MALFORMED : CPIO_FOUND;
}
