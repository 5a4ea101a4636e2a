/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the loader stands on, for its tests: the memory of the VM is a block of the test's, filled
 * with a pattern beforehand, with a map of what was synchronised; boot archives and kernels are
 * made here.
 */
#ifndef TESTS_UNIT_LOAD_RIG_H
#define TESTS_UNIT_LOAD_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/load.h"
#include "hyp/mem.h"
#include "hyp/vm.h"

#define MIB      (1ull << 20)
#define RAM_BASE 0x40000000ull
#define PATTERN  0xa5

static struct vm guest;
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

void *vm_ram(const struct vm *vm, ipa_t ipa, uint64_t size) {
    if (ipa.v < vm->ram_ipa.v || size > vm->ram_size ||
        ipa.v - vm->ram_ipa.v > vm->ram_size - size) {
        return NULL;
    }
    return ram + (ipa.v - vm->ram_ipa.v);
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
    uint8_t *larger = realloc(archive, archive_size + size + 4);

    assert_non_null(larger);
    archive = larger;
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

/* ---- One VM ---- */

static void make_vm(uint64_t base, uint64_t size) {
    memset(&guest, 0, sizeof(guest));
    memset(&config, 0, sizeof(config));
    strcpy(config.name, "a");
    strcpy(config.kernel, "kernel");
    config.memory = size;
    config.vcpus = 1;
    guest.config = &config;
    guest.ram_ipa.v = base;
    guest.ram_size = size;
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
    load_begin(&guest);
    for (unsigned steps = 0; steps < 1000000; steps++) {
        this_step = 0;
        bool over = load_step(&guest);
        longest_step = this_step > longest_step ? this_step : longest_step;
        if (over) {
            return guest.load.error;
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
    return load_prepare(&guest, archive, archive_size);
}

/* All memory: what was loaded, and zeroes; and all of it made visible to the guest. */
static void assert_loaded(const uint8_t *kernel, size_t size, const void *initrd,
                          size_t initrd_size) {
    struct load_job *job = &guest.load;
    uint8_t *expected = calloc(1, guest.ram_size);

    memcpy(expected + (job->kernel_ipa - guest.ram_ipa.v), kernel, size);
    memcpy(expected + (job->initrd_ipa - guest.ram_ipa.v), initrd != NULL ? initrd : "",
           initrd_size);
    memcpy(expected + (job->dtb_ipa - guest.ram_ipa.v), "DEVICE TREE", 12);
    assert_memory_equal(ram, expected, guest.ram_size);
    memset(expected, 1, guest.ram_size);
    assert_memory_equal(synced, expected, guest.ram_size);
    free(expected);
    assert_true(longest_step <= 256 << 10);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

#endif
