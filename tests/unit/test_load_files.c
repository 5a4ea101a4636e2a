/* SPDX-License-Identifier: GPL-2.0-only */
/* link: hyp/load.c hyp/image.c hyp/print.c core/cpio.c */
/* libs: -lz */
/* Loading a VM: compressed kernels, and files that are damaged, missing or too large. */
#include "load_rig.h"

#include <zlib.h>

static uint8_t *gzip(const uint8_t *data, size_t size, size_t *packed) {
    z_stream z = {0};
    size_t room = size + 4096;
    uint8_t *out = malloc(room);

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (z_const Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    *packed = room - z.avail_out;
    deflateEnd(&z);
    return out;
}

static void assert_says(const char *sentence, const char *part) {
    if (sentence == NULL || strstr(sentence, part) == NULL) {
        fail_msg("found '%s', expected something with '%s'", sentence, part);
    }
}

static void load_gzip_image(void **state) {
    size_t size = 3 * MIB + 17, packed;
    uint8_t *kernel = make_image(size, 0, 5 * MIB);
    uint8_t *gz = gzip(kernel, size, &packed);

    (void)state;
    make_vm(RAM_BASE, 32 * MIB);
    assert_null(prepare(gz, packed, "initrd", 6));
    assert_int_equal(guest.load.kernel_ipa, RAM_BASE);
    assert_int_equal(guest.load.kernel_end, RAM_BASE + 5 * MIB);
    assert_null(run());
    assert_loaded(kernel, size, "initrd", 6);
    free(kernel);
    free(gz);
}

static void load_gzip_image_without_bss(void **state) {
    size_t size = 1 * MIB, packed;
    uint8_t *kernel = make_image(size, 0x80000, size);
    uint8_t *gz = gzip(kernel, size, &packed);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_null(prepare(gz, packed, NULL, 0));
    assert_null(run());
    assert_loaded(kernel, size, NULL, 0);
    free(kernel);
    free(gz);
}

static void load_gzip_raw_binary(void **state) {
    size_t size = 100001, packed;
    uint8_t *kernel = noise(size);
    uint8_t *gz = gzip(kernel, size, &packed);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_null(prepare(gz, packed, NULL, 0));
    assert_int_equal(guest.load.kernel_end, RAM_BASE + 0x80000 + size);
    assert_null(run());
    assert_loaded(kernel, size, NULL, 0);
    free(kernel);
    free(gz);
}

static void load_gzip_cut_off(void **state) {
    size_t size = 200000, packed;
    uint8_t *kernel = make_image(size, 0, 5 * MIB);
    uint8_t *gz = gzip(kernel, size, &packed);
    static const size_t cut[] = {1, 4, 8, 9, 1000, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]) && cut[i] < packed; i++) {
        make_vm(RAM_BASE, 16 * MIB);
        put_le(gz + packed - cut[i] - 4, 100, 4); /* a trailer that fits into memory */
        const char *error = prepare(gz, packed - cut[i], NULL, 0);
        error = error != NULL ? error : run();
        assert_non_null(error);
        teardown(state);
    }
    make_vm(RAM_BASE, 16 * MIB);
    assert_says(prepare(gz, 12, NULL, 0), "cut off");
    free(kernel);
    free(gz);
}

static void load_gzip_larger_than_it_says(void **state) {
    size_t size = 200000, packed;
    uint8_t *kernel = make_image(size, 0, 100000);
    uint8_t *gz = gzip(kernel, size, &packed);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    put_le(gz + packed - 4, 1000, 4);
    assert_null(prepare(gz, packed, NULL, 0));
    assert_says(run(), "more bytes");
    assert_memory_equal(ram, kernel, 100000);
    assert_int_equal(ram[100000], 0);
    free(kernel);
    free(gz);
}

static void load_refuses_big_endian(void **state) {
    uint8_t *kernel = make_image(5000, 0, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    kernel[24] |= 1;
    assert_says(prepare(kernel, 5000, NULL, 0), "vm a: kernel: 'kernel' is a big-endian");
    free(kernel);
}

static void load_refuses_odd_kernels(void **state) {
    uint8_t *kernel = make_image(5000, 0x80001, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_says(prepare(kernel, 5000, NULL, 0), "text_offset");
    assert_says(prepare(kernel, 0, NULL, 0), "is empty");
    assert_says(prepare(kernel, 61, NULL, 0), "64 bytes");
    memcpy(kernel,
           "\x7f"
           "ELF",
           4);
    assert_says(prepare(kernel, 5000, NULL, 0), "ELF");
    memcpy(kernel, "MZ\0\0zimg", 8);
    assert_says(prepare(kernel, 5000, NULL, 0), "zboot");
    free(kernel);
}

static void load_says_which_file_is_missing(void **state) {
    uint8_t *kernel = make_image(5000, 0, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    strcpy(config.initrd, "rootfs.cpio");
    assert_says(prepare(kernel, 5000, NULL, 0), "vm a: initrd: found no file 'rootfs.cpio'");
    config.initrd[0] = '\0';
    strcpy(config.kernel, "vmlinuz");
    assert_says(prepare(kernel, 5000, NULL, 0), "vm a: kernel: found no file 'vmlinuz'");
    strcpy(config.kernel, "kernel");
    strcpy(config.dtb, "board.dtb");
    assert_says(prepare(kernel, 5000, NULL, 0), "vm a: dtb: found no file 'board.dtb'");
    free(kernel);
}

static void load_says_what_does_not_fit(void **state) {
    uint8_t *kernel = make_image(5000, 0, 17 * MIB);
    char *initrd = calloc(1, 9 * MIB);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_says(prepare(kernel, 5000, NULL, 0), "vm a: memory: the kernel with its BSS (17825792");
    put_le(kernel + 16, UINT64_MAX, 8);
    assert_says(prepare(kernel, 5000, NULL, 0), "does not fit");
    put_le(kernel + 16, 8 * MIB, 8);
    put_le(kernel + 8, 0xfffffffffffff000, 8);
    assert_says(prepare(kernel, 5000, NULL, 0), "does not fit");
    put_le(kernel + 8, 0, 8);
    assert_says(prepare(kernel, 5000, initrd, 9 * MIB), "initrd with the device tree");
    assert_says(prepare(kernel, 5000, initrd, 8 * MIB), "initrd with the device tree");
    assert_null(prepare(kernel, 5000, initrd, 8 * MIB - (64 << 10)));
    free(kernel);
    free(initrd);
}

static void load_refuses_a_tree_of_2_mib(void **state) {
    uint8_t *kernel = make_image(5000, 0, 1 << 20);
    char *dtb = calloc(1, 2 * MIB);

    (void)state;
    make_vm(RAM_BASE, 64 * MIB);
    archive_begin();
    archive_add("kernel", kernel, 5000);
    archive_add("big.dtb", dtb, 2 * MIB - 4096);
    archive_add("bigger.dtb", dtb, 2 * MIB - 4000);
    archive_end();
    strcpy(config.dtb, "big.dtb");
    assert_null(load_prepare(&guest, archive, archive_size));
    strcpy(config.dtb, "bigger.dtb");
    assert_says(load_prepare(&guest, archive, archive_size), "expected at most 2093056");
    free(kernel);
    free(dtb);
}

/* Any damage: an error or a loaded VM, never an access outside (ASan watches). */
static void load_any_damage(void **state) {
    size_t size = 60000, packed;
    uint8_t *kernel = make_image(size, 0, 1 << 20);
    uint8_t *gz = gzip(kernel, size, &packed);
    uint8_t *bad = malloc(packed > size ? packed : size);
    unsigned failed = 0;

    (void)state;
    srand(1);
    for (unsigned round = 0; round < 400; round++) {
        const uint8_t *good = round % 2 ? gz : kernel;
        size_t length = round % 2 ? packed : size;
        make_vm(RAM_BASE, 2 * MIB);
        memcpy(bad, good, length);
        for (int i = rand() % 6; i >= 0; i--) {
            size_t range = rand() % 3 ? length : 64;
            bad[(size_t)rand() % range] ^= (uint8_t)(1 << rand() % 8);
        }
        length = rand() % 4 == 0 ? (size_t)rand() % length + 1 : length;
        const char *error = prepare(bad, length, "initrd", 6);
        failed += error != NULL || run() != NULL;
        teardown(state);
    }
    assert_true(failed > 100);
    free(kernel);
    free(gz);
    free(bad);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(load_gzip_image),
        TEST(load_gzip_image_without_bss),
        TEST(load_gzip_raw_binary),
        TEST(load_gzip_cut_off),
        TEST(load_gzip_larger_than_it_says),
        TEST(load_refuses_big_endian),
        TEST(load_refuses_odd_kernels),
        TEST(load_says_which_file_is_missing),
        TEST(load_says_what_does_not_fit),
        TEST(load_refuses_a_tree_of_2_mib),
        TEST(load_any_damage),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
