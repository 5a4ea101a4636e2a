/* SPDX-License-Identifier: GPL-2.0-only */
/* link: hyp/load.c hyp/image.c hyp/print.c core/cpio.c */
/* libs: -lz */
/*
 * Loading a VM: kernel formats, placement (B01, B03), scrubbing, damaged files. The memory of the
 * VM is a block of the test's, filled with a pattern beforehand, with a map of what was
 * synchronised.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/load.h"
#include "hyp/mem.h"
#include "hyp/vm.h"

#define MIB      (1ull << 20)
#define RAM_BASE 0x40000000ull
#define PATTERN  0xa5

static struct vm vm;
static struct vm_config config;
static uint8_t *ram, *synced;
static uint8_t *archive;
static size_t archive_size;
static void *allocated[8];
static unsigned allocations;
static const char *boot_data_error;
static uint64_t longest_step, this_step;

/* ---- The contract, as the loader sees it ---- */

void *mem_alloc(uint64_t size) {
    assert_true(allocations < 8);
    return allocated[allocations++] = calloc(1, size);
}

void *vm_ram(const struct vm *v, ipa_t ipa, uint64_t size) {
    if (ipa.v < v->ram_ipa.v || size > v->ram_size || ipa.v - v->ram_ipa.v > v->ram_size - size) {
        return NULL;
    }
    return ram + (ipa.v - v->ram_ipa.v);
}

void arch_sync_guest_memory(void *start, uint64_t size) {
    memset(synced + ((uint8_t *)start - ram), 1, size);
    this_step += size;
}

const char *arch_vm_boot_data(struct vm *v) {
    uint8_t *p = vm_ram(v, (ipa_t){v->load.dtb_ipa}, 64 << 10);

    assert_non_null(p);
    assert_int_equal(v->load.dtb_ipa % 8, 0);
    memcpy(p, "DEVICE TREE", 12);
    return boot_data_error;
}

void panic(const char *format, ...) {
    print_error("panic: %s\n", format);
    abort();
}

/* ---- Boot archives ---- */

static void archive_put(const void *data, size_t size) {
    archive = realloc(archive, archive_size + size + 4);
    memcpy(archive + archive_size, data, size);
    archive_size += size;
    while (archive_size % 4 != 0) {
        archive[archive_size++] = 0;
    }
}

static void archive_add(const char *name, const void *data, size_t size) {
    char header[512];
    int length =
        snprintf(header, sizeof(header),
                 "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s", 1u, 0100644u, 0u,
                 0u, 1u, 0u, (unsigned)size, 0u, 0u, 0u, 0u, (unsigned)strlen(name) + 1, 0u, name);

    archive_put(header, (size_t)length + 1);
    archive_put(data, size);
}

static void archive_begin(void) {
    free(archive);
    archive = NULL;
    archive_size = 0;
}

static void archive_end(void) {
    archive_add("TRAILER!!!", "", 0);
}

/* ---- Kernels ---- */

static void put_le(uint8_t *p, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; i++) {
        p[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Bytes that do not compress to nothing and differ from their neighbours. */
static uint8_t *noise(size_t size) {
    uint8_t *p = malloc(size + 1);
    uint32_t x = 12345;

    for (size_t i = 0; i < size; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (uint8_t)(i % 3 == 0 ? x >> 24 : i >> 8);
    }
    return p;
}

static uint8_t *make_image(size_t size, uint64_t text_offset, uint64_t image_size) {
    uint8_t *p = noise(size);

    put_le(p, 0x14000010, 4);
    put_le(p + 8, text_offset, 8);
    put_le(p + 16, image_size, 8);
    put_le(p + 24, 0xa, 8);
    memcpy(p + 56, "ARM\x64", 4);
    return p;
}

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

/* ---- One VM ---- */

static void make_vm(uint64_t base, uint64_t size) {
    memset(&vm, 0, sizeof(vm));
    memset(&config, 0, sizeof(config));
    strcpy(config.name, "a");
    strcpy(config.kernel, "kernel");
    config.memory = size;
    config.vcpus = 1;
    vm.config = &config;
    vm.ram_ipa.v = base;
    vm.ram_size = size;
    if (size <= 64 * MIB) { /* larger ones are only planned */
        ram = malloc(size);
        synced = calloc(1, size);
        memset(ram, PATTERN, size);
    }
    boot_data_error = NULL;
    longest_step = 0;
}

static int teardown(void **state) {
    (void)state;
    free(ram);
    free(synced);
    ram = synced = NULL;
    archive_begin();
    while (allocations != 0) {
        free(allocated[--allocations]);
    }
    return 0;
}

/* All steps; the reason when it did not end well. */
static const char *run(void) {
    load_begin(&vm);
    for (unsigned steps = 0; steps < 1000000; steps++) {
        this_step = 0;
        bool over = load_step(&vm);
        longest_step = this_step > longest_step ? this_step : longest_step;
        if (over) {
            return vm.load.error;
        }
    }
    fail_msg("loading has no end");
    return NULL;
}

static const char *prepare(const uint8_t *kernel, size_t size, const char *initrd,
                           size_t initrd_size) {
    archive_begin();
    archive_add("machine.conf", "x", 1);
    archive_add("kernel", kernel, size);
    if (initrd != NULL) {
        strcpy(config.initrd, "initrd");
        archive_add("initrd", initrd, initrd_size);
    }
    archive_end();
    return load_prepare(&vm, archive, archive_size);
}

/* All memory: what was loaded, and zeroes; and all of it made visible to the guest. */
static void assert_loaded(const uint8_t *kernel, size_t size, const void *initrd,
                          size_t initrd_size) {
    struct load_job *job = &vm.load;
    uint8_t *expected = calloc(1, vm.ram_size);

    memcpy(expected + (job->kernel_ipa - vm.ram_ipa.v), kernel, size);
    memcpy(expected + (job->initrd_ipa - vm.ram_ipa.v), initrd != NULL ? initrd : "", initrd_size);
    memcpy(expected + (job->dtb_ipa - vm.ram_ipa.v), "DEVICE TREE", 12);
    assert_memory_equal(ram, expected, vm.ram_size);
    memset(expected, 1, vm.ram_size);
    assert_memory_equal(synced, expected, vm.ram_size);
    free(expected);
    assert_true(longest_step <= 256 << 10);
}

static void assert_says(const char *sentence, const char *part) {
    if (sentence == NULL || strstr(sentence, part) == NULL) {
        fail_msg("found '%s', expected something with '%s'", sentence, part);
    }
}

/* ---- Tests ---- */

static void B01_text_offset_0(void **state) {
    uint8_t *kernel = make_image(300000, 0, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 32 * MIB);
    assert_null(prepare(kernel, 300000, NULL, 0));
    assert_int_equal(vm.load.kernel_ipa, RAM_BASE);
    assert_null(run());
    assert_loaded(kernel, 300000, NULL, 0);
    free(kernel);
}

static void B01_text_offset_512k(void **state) {
    uint8_t *kernel = make_image(300001, 0x80000, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 32 * MIB);
    assert_null(prepare(kernel, 300001, NULL, 0));
    assert_int_equal(vm.load.kernel_ipa, RAM_BASE + 0x80000);
    assert_null(run());
    assert_loaded(kernel, 300001, NULL, 0);
    free(kernel);
}

static void B01_odd_ram_base(void **state) {
    uint8_t *kernel = make_image(5000, 0x80000, 1 << 20);

    (void)state;
    make_vm(RAM_BASE + 0x35000, 32 * MIB);
    assert_null(prepare(kernel, 5000, "initrd", 6));
    assert_int_equal(vm.load.kernel_ipa, RAM_BASE + 0x200000 + 0x80000);
    assert_null(run());
    assert_loaded(kernel, 5000, "initrd", 6);
    free(kernel);
}

static void B01_no_image_size_is_the_old_offset(void **state) {
    uint8_t *kernel = make_image(5000, 0x1000, 0);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_null(prepare(kernel, 5000, NULL, 0));
    assert_int_equal(vm.load.kernel_ipa, RAM_BASE + 0x80000);
    free(kernel);
}

static void B01_bss_is_free_of_initrd_and_tree(void **state) {
    uint8_t *kernel = make_image(5000, 0, 20 * MIB + 123);

    (void)state;
    make_vm(RAM_BASE, 32 * MIB);
    assert_null(prepare(kernel, 5000, "initrd", 6));
    assert_int_equal(vm.load.kernel_end, RAM_BASE + 20 * MIB + 123);
    assert_true(vm.load.initrd_ipa >= vm.load.kernel_end);
    assert_true(vm.load.dtb_ipa >= vm.load.initrd_ipa + 6);
    assert_null(run());
    assert_loaded(kernel, 5000, "initrd", 6);
    free(kernel);
}

/* booting.rst: tree 8-byte aligned, in one 2 MiB block; initrd in the window of the kernel. */
static void B03_initrd_and_tree_lie_as_linux_wants(void **state) {
    static const uint64_t sizes[] = {16, 24, 64, 128, 256, 300, 512};
    uint8_t *kernel = make_image(70000, 0x80000, 9 * MIB);
    uint8_t *initrd = noise(3 * MIB + 5);

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        make_vm(RAM_BASE, sizes[i] * MIB);
        assert_null(prepare(kernel, 70000, (const char *)initrd, 3 * MIB + 5));
        struct load_job *job = &vm.load;
        assert_int_equal(job->initrd_ipa % PAGE_SIZE, 0);
        assert_int_equal(job->dtb_ipa % BLOCK_SIZE, 0);
        assert_true(job->initrd_ipa >= job->kernel_end);
        assert_true(job->dtb_ipa >= job->initrd_ipa + job->initrd_size);
        assert_true(job->dtb_ipa + (64 << 10) <= RAM_BASE + vm.ram_size);
        if (sizes[i] == 64) {
            assert_null(run());
            assert_loaded(kernel, 70000, initrd, 3 * MIB + 5);
        }
        teardown(state);
    }
    free(kernel);
    free(initrd);
}

static void B03_raw_binary_as_on_virt(void **state) {
    uint8_t *kernel = noise(12345);

    (void)state;
    make_vm(RAM_BASE, 512 * MIB);
    assert_null(prepare(kernel, 12345, NULL, 0));
    assert_int_equal(vm.load.kernel_ipa, RAM_BASE + 0x80000);
    assert_int_equal(vm.load.dtb_ipa, RAM_BASE + 128 * MIB);
    free(kernel);
}

static void load_raw_binary_smaller_than_a_header(void **state) {
    const uint8_t loop[4] = {0, 0, 0, 0x14}; /* b . */

    (void)state;
    make_vm(RAM_BASE, 1 * MIB);
    assert_null(prepare(loop, 4, NULL, 0));
    assert_null(run());
    assert_loaded(loop, 4, NULL, 0);
}

static void load_smallest_memory(void **state) {
    uint8_t *kernel = noise(100000);

    (void)state;
    make_vm(RAM_BASE, 1 * MIB);
    assert_null(prepare(kernel, 100000, "initrd", 6));
    assert_null(run());
    assert_loaded(kernel, 100000, "initrd", 6);
    free(kernel);
}

static void load_gzip_image(void **state) {
    size_t size = 3 * MIB + 17, packed;
    uint8_t *kernel = make_image(size, 0, 5 * MIB);
    uint8_t *gz = gzip(kernel, size, &packed);

    (void)state;
    make_vm(RAM_BASE, 32 * MIB);
    assert_null(prepare(gz, packed, "initrd", 6));
    assert_int_equal(vm.load.kernel_ipa, RAM_BASE);
    assert_int_equal(vm.load.kernel_end, RAM_BASE + 5 * MIB);
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
    assert_int_equal(vm.load.kernel_end, RAM_BASE + 0x80000 + size);
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
    assert_null(load_prepare(&vm, archive, archive_size));
    strcpy(config.dtb, "bigger.dtb");
    assert_says(load_prepare(&vm, archive, archive_size), "expected at most 2093056");
    free(kernel);
    free(dtb);
}

/* A guest's own writes do not survive a restart, wherever it made them. */
static void load_again_after_reset(void **state) {
    uint8_t *kernel = make_image(5000, 0, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_null(prepare(kernel, 5000, "initrd", 6));
    assert_null(run());
    memset(ram, 0x77, vm.ram_size);
    memset(synced, 0, vm.ram_size);
    vm.end = VM_END_RESET;
    assert_null(run());
    assert_loaded(kernel, 5000, "initrd", 6);
    free(kernel);
}

/* A VM that is gone leaves nothing, also where kernel and initrd would be copied. */
static void scrub_of_a_vm_that_is_gone_is_complete(void **state) {
    static const enum vm_end ends[] = {VM_END_OFF, VM_END_CRASH};
    uint8_t *kernel = make_image(500000, 0, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_null(prepare(kernel, 500000, "initrd", 6));
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *zero = calloc(1, vm.ram_size);
        memset(ram, 0x77, vm.ram_size);
        vm.end = ends[i];
        load_begin(&vm);
        while (vm.load.phase == LOAD_SCRUB) {
            assert_false(load_step(&vm));
        }
        assert_memory_equal(ram, zero, vm.ram_size);
        free(zero);
    }
    free(kernel);
}

static void load_tells_boot_data_errors(void **state) {
    uint8_t *kernel = make_image(5000, 0, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_null(prepare(kernel, 5000, NULL, 0));
    boot_data_error = "no tree";
    assert_string_equal(run(), "no tree");
    assert_true(load_step(&vm)); /* and stays so */
    assert_string_equal(vm.load.error, "no tree");
    free(kernel);
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

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(B01_text_offset_0),
        TEST(B01_text_offset_512k),
        TEST(B01_odd_ram_base),
        TEST(B01_no_image_size_is_the_old_offset),
        TEST(B01_bss_is_free_of_initrd_and_tree),
        TEST(B03_initrd_and_tree_lie_as_linux_wants),
        TEST(B03_raw_binary_as_on_virt),
        TEST(load_raw_binary_smaller_than_a_header),
        TEST(load_smallest_memory),
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
        TEST(load_again_after_reset),
        TEST(scrub_of_a_vm_that_is_gone_is_complete),
        TEST(load_tells_boot_data_errors),
        TEST(load_any_damage),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
