/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Reads "newc" cpio archives that lie in memory: magic 070701, or 070702 with a checksum over each
 * file's bytes, which is then checked. The archive may hold anything, also on purpose: nothing
 * outside [archive, archive + size) is ever read, whatever its fields say.
 *
 * Reading ends at the entry TRAILER!!!; bytes behind it do not matter. Zero bytes between entries
 * are padding. Nothing is allocated or changed. Any context, any pCPU, no locks.
 */
#ifndef CORE_CPIO_H
#define CORE_CPIO_H

#include <stddef.h>
#include <stdint.h>

#define CPIO_NAME_MAX 4096u /* bytes in a name, its NUL included */

enum cpio_result {
    CPIO_FOUND,    /* *entry is set */
    CPIO_NO_ENTRY, /* no such file; for cpio_next(): the end of the archive */
    CPIO_MALFORMED,
};

/* What is wrong with an archive. */
struct cpio_error {
    size_t offset;    /* of the entry that is at fault, from the start of the archive */
    const char *text; /* a phrase of static text, such as "the archive ends inside a file" */
};

/* One entry. The pointers point into the archive. */
struct cpio_entry {
    const char *name; /* ends in NUL, not empty; as stored, but for "./" in front */
    const void *data; /* `size` bytes at a multiple of 4 from the start of the archive */
    size_t size;
    uint32_t mode; /* file type and permissions, as in stat(2) */
    uint32_t ino, dev_major, dev_minor, links;
};

/* Where an iteration stands. */
struct cpio_reader {
    const unsigned char *archive;
    size_t size;
    size_t offset;
};

/* A reader that stands before the first entry. */
struct cpio_reader cpio_start(const void *archive, size_t size);

/*
 * Reads the next entry, of whatever type. After CPIO_NO_ENTRY or CPIO_MALFORMED the same answer
 * comes again. *err is set only with CPIO_MALFORMED.
 */
enum cpio_result cpio_next(struct cpio_reader *reader, struct cpio_entry *entry,
                           struct cpio_error *err);

/*
 * Finds the first regular file of this name; "./" in front does not count on either side. Hard
 * links are followed: of several names for one file newc gives the bytes to the last. Damage behind
 * the file is not seen; before it, it is reported. Time grows with the number of entries, and for
 * 070702 with the bytes before the file as well.
 */
enum cpio_result cpio_find(const void *archive, size_t size, const char *name,
                           struct cpio_entry *entry, struct cpio_error *err);

#endif
