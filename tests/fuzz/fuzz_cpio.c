/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/cpio.c */
/* Boot archives: every entry lies in the archive, and a search ends. */
#include "tests/fuzz/fuzz.h"

#include "core/cpio.h"

static void check_entry(const uint8_t *archive, size_t size, const struct cpio_entry *e) {
    const uint8_t *data = e->data;
    const char *name = e->name;

    must(data >= archive && e->size <= size && (size_t)(data - archive) <= size - e->size);
    must(name[0] != '\0' && strlen(name) < CPIO_NAME_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *archive = fuzz_exact(data, size);
    struct cpio_reader reader = cpio_start(archive, size);
    struct cpio_entry e;
    struct cpio_error error;
    char wanted[64] = "machine.conf";

    for (size_t last = 0; cpio_next(&reader, &e, &error) == CPIO_FOUND; last = reader.offset) {
        must(reader.offset > last && reader.offset <= size);
        check_entry(archive, size, &e);
        snprintf(wanted, sizeof(wanted), "%s", e.name);
    }
    if (cpio_find(archive, size, wanted, &e, &error) == CPIO_FOUND) {
        check_entry(archive, size, &e);
    }
    free(archive);
    return 0;
}
