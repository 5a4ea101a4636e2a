/* SPDX-License-Identifier: GPL-2.0-only */
/* link: hyp/load.c hyp/image.c hyp/print.c core/cpio.c */
/* libs: -lz */
/* Loading a VM: placement (B01, B03), what is in its memory afterwards, scrubbing. */
#include "load_rig.h"

static void B01_text_offset_0(void **state) {
    uint8_t *kernel = make_image(300000, 0, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 32 * MIB);
    assert_null(prepare(kernel, 300000, NULL, 0));
    assert_int_equal(guest.load.kernel_ipa, RAM_BASE);
    assert_null(run());
    assert_loaded(kernel, 300000, NULL, 0);
    free(kernel);
}

static void B01_text_offset_512k(void **state) {
    uint8_t *kernel = make_image(300001, 0x80000, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 32 * MIB);
    assert_null(prepare(kernel, 300001, NULL, 0));
    assert_int_equal(guest.load.kernel_ipa, RAM_BASE + 0x80000);
    assert_null(run());
    assert_loaded(kernel, 300001, NULL, 0);
    free(kernel);
}

static void B01_odd_ram_base(void **state) {
    uint8_t *kernel = make_image(5000, 0x80000, 1 << 20);

    (void)state;
    make_vm(RAM_BASE + 0x35000, 32 * MIB);
    assert_null(prepare(kernel, 5000, "initrd", 6));
    assert_int_equal(guest.load.kernel_ipa, RAM_BASE + 0x200000 + 0x80000);
    assert_null(run());
    assert_loaded(kernel, 5000, "initrd", 6);
    free(kernel);
}

static void B01_no_image_size_is_the_old_offset(void **state) {
    uint8_t *kernel = make_image(5000, 0x1000, 0);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_null(prepare(kernel, 5000, NULL, 0));
    assert_int_equal(guest.load.kernel_ipa, RAM_BASE + 0x80000);
    free(kernel);
}

static void B01_bss_is_free_of_initrd_and_tree(void **state) {
    uint8_t *kernel = make_image(5000, 0, 20 * MIB + 123);

    (void)state;
    make_vm(RAM_BASE, 32 * MIB);
    assert_null(prepare(kernel, 5000, "initrd", 6));
    assert_int_equal(guest.load.kernel_end, RAM_BASE + 20 * MIB + 123);
    assert_true(guest.load.initrd_ipa >= guest.load.kernel_end);
    assert_true(guest.load.dtb_ipa >= guest.load.initrd_ipa + 6);
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
        struct load_job *job = &guest.load;
        assert_int_equal(job->initrd_ipa % PAGE_SIZE, 0);
        assert_int_equal(job->dtb_ipa % BLOCK_SIZE, 0);
        assert_true(job->initrd_ipa >= job->kernel_end);
        assert_true(job->dtb_ipa >= job->initrd_ipa + job->initrd_size);
        assert_true(job->dtb_ipa + (64 << 10) <= RAM_BASE + guest.ram_size);
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
    assert_int_equal(guest.load.kernel_ipa, RAM_BASE + 0x80000);
    assert_int_equal(guest.load.dtb_ipa, RAM_BASE + 128 * MIB);
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

/* A guest's own writes do not survive a restart, wherever it made them. */
static void load_again_after_reset(void **state) {
    uint8_t *kernel = make_image(5000, 0, 1 << 20);

    (void)state;
    make_vm(RAM_BASE, 16 * MIB);
    assert_null(prepare(kernel, 5000, "initrd", 6));
    assert_null(run());
    memset(ram, 0x77, guest.ram_size);
    memset(synced, 0, guest.ram_size);
    guest.end = VM_END_RESET;
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
        uint8_t *zero = calloc(1, guest.ram_size);
        memset(ram, 0x77, guest.ram_size);
        guest.end = ends[i];
        load_begin(&guest);
        while (guest.load.phase == LOAD_SCRUB) {
            assert_false(load_step(&guest));
        }
        assert_memory_equal(ram, zero, guest.ram_size);
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
    assert_true(load_step(&guest)); /* and stays so */
    assert_string_equal(guest.load.error, "no tree");
    free(kernel);
}

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
        TEST(load_again_after_reset),
        TEST(scrub_of_a_vm_that_is_gone_is_complete),
        TEST(load_tells_boot_data_errors),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
