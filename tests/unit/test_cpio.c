/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/cpio.c */
/* The reader of newc archives: what it finds, and that damaged archives never lead it astray. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/cpio.h"

#define REGULAR   0100644u
#define DIRECTORY 0040755u

/* An archive being made, each entry the way it is asked for. */
struct builder {
    unsigned char bytes[4096];
    size_t size;
    unsigned ino;
    const char *magic;
    unsigned links;
    unsigned check;
};

static struct builder *fresh(void) {
    static struct builder b;

    memset(&b, 0, sizeof(b));
    b.magic = "070701";
    b.links = 1;
    b.ino = 1;
    return &b;
}

static void align(struct builder *b) {
    while (b->size % 4 != 0) {
        b->bytes[b->size++] = 0;
    }
}

static void add(struct builder *b, const char *name, unsigned mode, const void *data, size_t len) {
    char header[111];

    snprintf(header, sizeof(header), "%s%08X%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
             b->magic, b->ino, mode, 0u, 0u, b->links, 0u, (unsigned)len, 0u, 0u, 0u, 0u,
             (unsigned)strlen(name) + 1, b->check);
    memcpy(b->bytes + b->size, header, 110);
    b->size += 110;
    memcpy(b->bytes + b->size, name, strlen(name) + 1);
    b->size += strlen(name) + 1;
    align(b);
    if (len > 0) {
        memcpy(b->bytes + b->size, data, len);
        b->size += len;
    }
    align(b);
    b->ino++;
}

static void add_file(struct builder *b, const char *name, const char *text) {
    add(b, name, REGULAR, text, strlen(text));
}

static void add_trailer(struct builder *b) {
    add(b, "TRAILER!!!", 0, NULL, 0);
}

/* Overwrites one header field of the entry at offset `at` with 8 characters. */
static void patch(struct builder *b, size_t at, unsigned field, const char *digits) {
    memcpy(b->bytes + at + 6 + 8 * (size_t)field, digits, 8);
}

/* Searches a copy of exactly the archive's size on the heap, so that ASan sees every step outside.
 */
static enum cpio_result find(const unsigned char *bytes, size_t size, const char *name,
                             char *content, struct cpio_error *err) {
    unsigned char *copy = malloc(size + (size == 0));
    struct cpio_entry entry;

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    enum cpio_result result = cpio_find(copy, size, name, &entry, err);
    if (result == CPIO_FOUND) {
        const unsigned char *data = entry.data;
        assert_true(data >= copy && entry.size <= size && data + entry.size <= copy + size);
        assert_int_equal((data - copy) % 4, 0);
        if (content != NULL) {
            snprintf(content, 64, "%.*s", (int)entry.size, (const char *)entry.data);
        }
    }
    free(copy);
    return result;
}

static void expect_content(const struct builder *b, const char *name, const char *text) {
    char content[64];
    struct cpio_error err;

    assert_int_equal(find(b->bytes, b->size, name, content, &err), CPIO_FOUND);
    assert_string_equal(content, text);
}

static void expect_absent(const struct builder *b, const char *name) {
    struct cpio_error err;

    assert_int_equal(find(b->bytes, b->size, name, NULL, &err), CPIO_NO_ENTRY);
}

static void expect_malformed(const struct builder *b, size_t offset, const char *text) {
    struct cpio_error err = {0};

    assert_int_equal(find(b->bytes, b->size, "absent", NULL, &err), CPIO_MALFORMED);
    assert_string_equal(err.text, text);
    assert_int_equal(err.offset, offset);
}

static void finds_each_file(void **state) {
    struct builder *b = fresh();

    (void)state;
    add_file(b, "machine.conf", "[vm a]");
    add_file(b, "kernel", "K");
    add_file(b, "initrd", "four");
    add_trailer(b);
    expect_content(b, "machine.conf", "[vm a]");
    expect_content(b, "kernel", "K");
    expect_content(b, "initrd", "four");
    expect_absent(b, "kerne");
    expect_absent(b, "kernel2");
    expect_absent(b, "");
    expect_absent(b, "TRAILER!!!");
}

static void names_of_every_length_keep_alignment(void **state) {
    (void)state;
    for (size_t length = 1; length < 40; length++) {
        struct builder *b = fresh();
        char name[41] = {0};

        memset(name, 'n', length);
        add_file(b, name, "first");
        add_file(b, "second", "2");
        add_trailer(b);
        expect_content(b, name, "first");
        expect_content(b, "second", "2");
    }
}

static void empty_file(void **state) {
    struct builder *b = fresh();

    (void)state;
    add_file(b, "empty", "");
    add_file(b, "next", "x");
    add_trailer(b);
    expect_content(b, "empty", "");
    expect_content(b, "next", "x");
}

static void dot_slash_does_not_count(void **state) {
    struct builder *b = fresh();

    (void)state;
    add(b, ".", DIRECTORY, NULL, 0);
    add_file(b, "./kernel", "K");
    add_file(b, ".//deep/er", "D");
    add_file(b, "plain", "P");
    add_trailer(b);
    expect_content(b, "kernel", "K");
    expect_content(b, "./kernel", "K");
    expect_content(b, "deep/er", "D");
    expect_content(b, "././plain", "P");
    expect_absent(b, "/plain");
    expect_absent(b, ".");
}

static void only_regular_files_are_found(void **state) {
    struct builder *b = fresh();

    (void)state;
    add(b, "kernel", DIRECTORY, NULL, 0);
    add(b, "link", 0120777, "kernel", 6);
    add_file(b, "kernel", "the file");
    add_trailer(b);
    expect_content(b, "kernel", "the file");
    expect_absent(b, "link");
}

static void first_of_two_counts(void **state) {
    struct builder *b = fresh();

    (void)state;
    add_file(b, "f", "one");
    add_file(b, "f", "two");
    add_trailer(b);
    expect_content(b, "f", "one");
}

static void hard_links_share_the_last_ones_bytes(void **state) {
    struct builder *b = fresh();

    (void)state;
    b->links = 2;
    b->ino = 7;
    add_file(b, "a", "");
    b->links = 1;
    add_file(b, "other", "other");
    b->links = 2;
    b->ino = 7;
    add_file(b, "b", "shared");
    add_trailer(b);
    expect_content(b, "a", "shared");
    expect_content(b, "b", "shared");
    expect_content(b, "other", "other");
}

static void empty_hard_links_stay_empty(void **state) {
    struct builder *b = fresh();

    (void)state;
    b->links = 2;
    b->ino = 7;
    add_file(b, "a", "");
    b->ino = 7;
    add_file(b, "b", "");
    add_trailer(b);
    expect_content(b, "a", "");
}

static void reading_ends_at_the_trailer(void **state) {
    struct builder *b = fresh();

    (void)state;
    add_file(b, "f", "x");
    add_trailer(b);
    memset(b->bytes + b->size, 0, 300);
    b->size += 300;
    expect_absent(b, "absent");
    memcpy(b->bytes + b->size, "garbage", 7);
    b->size += 7;
    expect_absent(b, "absent");
    add_file(b, "behind", "x");
    expect_absent(b, "behind");
}

static void zeros_between_entries_are_padding(void **state) {
    struct builder *b = fresh();

    (void)state;
    add_file(b, "f", "x");
    b->size += 512;
    add_file(b, "g", "y");
    add_trailer(b);
    expect_content(b, "g", "y");
}

static void last_file_without_padding(void **state) {
    struct builder *b = fresh();

    (void)state;
    add_file(b, "f", "12345");
    b->size -= 3;
    expect_content(b, "f", "12345");
    expect_malformed(b, b->size, "the archive ends without TRAILER!!!");
}

static void iteration_shows_everything(void **state) {
    struct builder *b = fresh();
    struct cpio_reader reader;
    struct cpio_entry entry;
    struct cpio_error err;

    (void)state;
    add(b, "dir", DIRECTORY, NULL, 0);
    add_file(b, "./dir/file", "bytes");
    add(b, "./", DIRECTORY, NULL, 0);
    add_trailer(b);
    reader = cpio_start(b->bytes, b->size);
    assert_int_equal(cpio_next(&reader, &entry, &err), CPIO_FOUND);
    assert_string_equal(entry.name, "dir");
    assert_int_equal(entry.mode, DIRECTORY);
    assert_int_equal(cpio_next(&reader, &entry, &err), CPIO_FOUND);
    assert_string_equal(entry.name, "dir/file");
    assert_int_equal(entry.size, 5);
    assert_int_equal(entry.ino, 2);
    assert_int_equal(cpio_next(&reader, &entry, &err), CPIO_FOUND);
    assert_string_equal(entry.name, ".");
    assert_int_equal(cpio_next(&reader, &entry, &err), CPIO_NO_ENTRY);
    assert_int_equal(cpio_next(&reader, &entry, &err), CPIO_NO_ENTRY);
}

static void checksum_right(void **state) {
    struct builder *b = fresh();

    (void)state;
    b->magic = "070702";
    b->check = 'a' + 'b' + 0xff;
    add_file(b, "f", "ab\xff");
    b->check = 0;
    add(b, "d", DIRECTORY, NULL, 0);
    add_trailer(b);
    expect_content(b, "f", "ab\xff");
    expect_absent(b, "absent");
}

static void checksum_wrong(void **state) {
    struct builder *b = fresh();

    (void)state;
    b->magic = "070702";
    b->check = 'a' + 'b';
    add_file(b, "good", "ab");
    size_t at = b->size;
    b->check = 'a' + 'b' + 1;
    add_file(b, "bad", "ab");
    add_trailer(b);
    expect_content(b, "good", "ab");
    expect_malformed(b, at, "a file's checksum does not match its bytes");
}

static void checksum_of_070701_is_not_looked_at(void **state) {
    struct builder *b = fresh();

    (void)state;
    b->check = 12345;
    add_file(b, "f", "ab");
    add_trailer(b);
    expect_content(b, "f", "ab");
}

static void nothing_at_all(void **state) {
    struct builder *b = fresh();

    (void)state;
    expect_malformed(b, 0, "the archive ends without TRAILER!!!");
    b->size = 512;
    expect_malformed(b, 0, "the archive ends without TRAILER!!!");
}

static void not_an_archive(void **state) {
    struct builder *b = fresh();

    (void)state;
    memset(b->bytes, 'x', 200);
    b->size = 200;
    expect_malformed(b, 0, "no newc header (070701 or 070702)");
    b->size = 20;
    expect_malformed(b, 0, "the archive ends inside a header");
}

static void other_formats(void **state) {
    struct builder *b = fresh();

    (void)state;
    b->magic = "070707";
    add_file(b, "f", "old character format");
    expect_malformed(b, 0, "no newc header (070701 or 070702)");
}

/* A good file, then one whose field is `digits`. */
static void expect_bad_field(unsigned field, const char *digits, const char *text) {
    struct builder *b = fresh();

    add_file(b, "good", "1234");
    size_t at = b->size;
    add_file(b, "bad", "1234");
    add_trailer(b);
    patch(b, at, field, digits);
    expect_malformed(b, at, text);
    expect_content(b, "good", "1234");
}

static void fields_that_are_no_numbers(void **state) {
    static const char *const bad[] = {"0000000g", "0x000001", " 0000001", "+0000001", "-0000001"};

    (void)state;
    for (unsigned field = 0; field < 13; field++) {
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
            expect_bad_field(field, bad[i], "a header field is not hexadecimal");
        }
    }
}

static void sizes_past_the_end(void **state) {
    static const char *const bad[] = {"00001000", "7fffffff", "80000000", "fffffffc", "FFFFFFFF"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        expect_bad_field(6, bad[i], "the archive ends inside a file");
    }
}

static void name_sizes_that_cannot_be(void **state) {
    (void)state;
    expect_bad_field(11, "00000000", "a name has no bytes or too many");
    expect_bad_field(11, "00000001", "a name has no bytes or too many");
    expect_bad_field(11, "00001001", "a name has no bytes or too many");
    expect_bad_field(11, "ffffffff", "a name has no bytes or too many");
    expect_bad_field(11, "00001000", "the archive ends inside a name");
    expect_bad_field(11, "00000003", "a name does not end where its header says");
    expect_bad_field(11, "00000005", "a name does not end where its header says");
}

/* The archive that the next tests damage. */
static const struct builder *sample(void) {
    struct builder *b = fresh();

    add(b, ".", DIRECTORY, NULL, 0);
    add_file(b, "machine.conf", "[vm a]\nkernel = k\n");
    b->magic = "070702";
    b->check = 'k' + 'k';
    add_file(b, "./kernel", "kk");
    b->links = 2;
    b->check = 0;
    b->magic = "070701";
    add_file(b, "link", "");
    add_file(b, "wanted", "content");
    add_trailer(b);
    return b;
}

static void truncated_at_every_byte(void **state) {
    const struct builder *b = sample();
    struct cpio_error err;

    (void)state;
    /* the trailer's entry is 124 bytes: header, name of 11, padding of 3 */
    for (size_t size = 0; size < b->size - 3; size++) {
        assert_int_equal(find(b->bytes, size, "absent", NULL, &err), CPIO_MALFORMED);
        assert_true(err.offset <= size);
    }
    for (size_t size = b->size - 3; size <= b->size; size++) {
        assert_int_equal(find(b->bytes, size, "absent", NULL, &err), CPIO_NO_ENTRY);
    }
}

static uint32_t random_state = 20260101;

static uint32_t random_number(uint32_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % below;
}

static void a_hundred_thousand_mutations(void **state) {
    static const char digits[] = "0123456789abcdefF";
    const struct builder *b = sample();
    static unsigned char mutant[4096];
    struct cpio_error err;

    (void)state;
    for (int round = 0; round < 100000; round++) {
        size_t size = b->size;

        memcpy(mutant, b->bytes, size);
        for (uint32_t n = 1 + random_number(6); n > 0; n--) {
            uint32_t at = random_number((uint32_t)size);
            mutant[at] = random_number(3) != 0 ? (unsigned char)digits[random_number(17)]
                                               : (unsigned char)random_number(256);
        }
        if (random_number(4) == 0) {
            size = random_number((uint32_t)size + 1);
        }
        if (find(mutant, size, random_number(2) ? "wanted" : "link", NULL, &err) ==
            CPIO_MALFORMED) {
            assert_true(err.offset <= size && err.text != NULL);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_each_file),
        cmocka_unit_test(names_of_every_length_keep_alignment),
        cmocka_unit_test(empty_file),
        cmocka_unit_test(dot_slash_does_not_count),
        cmocka_unit_test(only_regular_files_are_found),
        cmocka_unit_test(first_of_two_counts),
        cmocka_unit_test(hard_links_share_the_last_ones_bytes),
        cmocka_unit_test(empty_hard_links_stay_empty),
        cmocka_unit_test(reading_ends_at_the_trailer),
        cmocka_unit_test(zeros_between_entries_are_padding),
        cmocka_unit_test(last_file_without_padding),
        cmocka_unit_test(iteration_shows_everything),
        cmocka_unit_test(checksum_right),
        cmocka_unit_test(checksum_wrong),
        cmocka_unit_test(checksum_of_070701_is_not_looked_at),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(not_an_archive),
        cmocka_unit_test(other_formats),
        cmocka_unit_test(fields_that_are_no_numbers),
        cmocka_unit_test(sizes_past_the_end),
        cmocka_unit_test(name_sizes_that_cannot_be),
        cmocka_unit_test(truncated_at_every_byte),
        cmocka_unit_test(a_hundred_thousand_mutations),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("cpio", tests, NULL, NULL);
}
