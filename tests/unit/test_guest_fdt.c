/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/guest_fdt.c hyp/print.c */
/* libs: -lfdt */
/*
 * The guest's device tree: dtc finds nothing to warn of, every reference leads to a node (B04), all
 * that a kernel looks for is there (B05; the checker here reports each node that is missing), and
 * processor and redistributor numbers agree with the virtual interrupt controller's (C02, G21).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <libfdt.h>

#include "arch/arm64/guest_fdt.h"
#include "arch/arm64/guest_map.h"
#include "arch/arm64/vgic.h"
#include "hyp/arch.h"
#include "hyp/boot_data.h"
#include "hyp/vm.h"

#define RAM_SIZE (256ull << 20)

static const unsigned vcpu_counts[] = {1, 2, 5, 16, 17, 33, 123, 124, 256};
#define COUNTS (sizeof(vcpu_counts) / sizeof(vcpu_counts[0]))

static _Alignas(8) uint8_t blob[BOOT_DATA_GENERATED];
static char finding[256]; /* what the checker found */

static struct guest_fdt guest_of(unsigned vcpus) {
    return (struct guest_fdt){.cmdline = "console=ttyAMA0 earlycon root=/dev/ram0",
                              .ram_base = GUEST_RAM,
                              .ram_size = RAM_SIZE,
                              .initrd_start = 0x48000000,
                              .initrd_end = 0x48123456,
                              .vcpus = vcpus};
}

static void make(unsigned vcpus) {
    struct guest_fdt guest = guest_of(vcpus);

    assert_int_equal(guest_fdt_create(blob, sizeof(blob), &guest), 0);
    assert_int_equal(fdt_check_full(blob, sizeof(blob)), 0);
}

/* ---- The checker: NULL, or what a guest would miss ---- */

static const char *missing(const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding, sizeof(finding), format, arguments);
    va_end(arguments);
    return finding;
}

static const char *want_bytes(const void *fdt, const char *path, const char *name,
                              const void *value, int size) {
    int length = 0;
    int node = fdt_path_offset(fdt, path);
    const void *found = node < 0 ? NULL : fdt_getprop(fdt, node, name, &length);

    if (found == NULL) {
        return missing("%s: no %s", path, name);
    }
    if (size >= 0 && (length != size || memcmp(found, value, (size_t)size) != 0)) {
        return missing("%s: %s is wrong", path, name);
    }
    return NULL;
}

#define WANT(path, name, literal)                                                                  \
    do {                                                                                           \
        if (want_bytes(fdt, path, name, literal, sizeof(literal)) != NULL) {                       \
            return finding;                                                                        \
        }                                                                                          \
    } while (0)

/* Of whatever value. */
#define WANT_ANY(path, name)                                                                       \
    do {                                                                                           \
        if (want_bytes(fdt, path, name, NULL, -1) != NULL) {                                       \
            return finding;                                                                        \
        }                                                                                          \
    } while (0)

static const char *want_cells(const void *fdt, const char *path, const char *name,
                              const uint32_t *value, size_t count) {
    fdt32_t big_endian[16];

    for (size_t i = 0; i < count; i++) {
        big_endian[i] = cpu_to_fdt32(value[i]);
    }
    return want_bytes(fdt, path, name, big_endian, (int)(count * 4));
}

#define WANT_CELLS(path, name, ...)                                                                \
    do {                                                                                           \
        const uint32_t value[] = {__VA_ARGS__};                                                    \
        if (want_cells(fdt, path, name, value, sizeof(value) / 4) != NULL) {                       \
            return finding;                                                                        \
        }                                                                                          \
    } while (0)

static const char *check_cpus(const void *fdt, unsigned vcpus) {
    unsigned found = 0;
    int cpus = fdt_path_offset(fdt, "/cpus");
    int node;

    if (cpus < 0) {
        return missing("no /cpus");
    }
    WANT_CELLS("/cpus", "#address-cells", 1);
    WANT_CELLS("/cpus", "#size-cells", 0);
    fdt_for_each_subnode(node, fdt, cpus) {
        char path[64];
        uint32_t affinity = (uint32_t)vgic_mpidr(found);
        snprintf(path, sizeof(path), "/cpus/cpu@%x", affinity);
        if (fdt_path_offset(fdt, path) != node) {
            return missing("vCPU %u: not %s", found, path);
        }
        WANT(path, "device_type", "cpu");
        WANT(path, "compatible", "arm,armv8");
        WANT(path, "enable-method", "psci");
        WANT_CELLS(path, "reg", affinity);
        found++;
    }
    return found == vcpus ? NULL : missing("%u cpu nodes, expected %u", found, vcpus);
}

static const char *check_gic(const void *fdt, unsigned vcpus) {
    unsigned low = vcpus < 123 ? vcpus : 123;

    WANT("/intc@8000000", "compatible", "arm,gic-v3");
    WANT_CELLS("/intc@8000000", "#interrupt-cells", 3);
    WANT_ANY("/intc@8000000", "interrupt-controller");
    WANT_CELLS("/intc@8000000", "#address-cells", 2);
    WANT_CELLS("/intc@8000000", "#size-cells", 2);
    if (vcpus <= 123) {
        WANT_CELLS("/intc@8000000", "#redistributor-regions", 1);
        WANT_CELLS("/intc@8000000", "reg", 0, 0x8000000, 0, 0x10000, 0, 0x80a0000, 0, low << 17);
    } else {
        WANT_CELLS("/intc@8000000", "#redistributor-regions", 2);
        WANT_CELLS("/intc@8000000", "reg", 0, 0x8000000, 0, 0x10000, 0, 0x80a0000, 0, low << 17,
                   0x40, 0, 0, (vcpus - low) << 17);
    }
    return NULL;
}

static const char *check_devices(const void *fdt) {
    WANT("/psci", "compatible", "arm,psci-1.0\0arm,psci-0.2\0arm,psci");
    WANT("/psci", "method", "hvc");
    WANT("/timer", "compatible", "arm,armv8-timer\0arm,armv7-timer");
    WANT_CELLS("/timer", "interrupts", 1, 13, 4, 1, 14, 4, 1, 11, 4, 1, 10, 4);
    WANT_ANY("/timer", "always-on");
    WANT("/apb-pclk", "compatible", "fixed-clock");
    WANT_CELLS("/apb-pclk", "#clock-cells", 0);
    WANT_CELLS("/apb-pclk", "clock-frequency", 24000000);
    WANT("/pl011@9000000", "compatible", "arm,pl011\0arm,primecell");
    WANT_CELLS("/pl011@9000000", "reg", 0, 0x9000000, 0, 0x1000);
    WANT_CELLS("/pl011@9000000", "interrupts", 0, 1, 4);
    WANT_ANY("/pl011@9000000", "clocks");
    WANT("/pl011@9000000", "clock-names", "uartclk\0apb_pclk");
    return NULL;
}

/* Every property that names nodes by phandle, B04. */
static const char *check_references(const void *fdt) {
    static const struct {
        const char *name, *cells; /* `cells`: what the node that is named must have */
    } references[] = {{"interrupt-parent", "#interrupt-cells"}, {"clocks", "#clock-cells"}};

    for (int node = 0; node >= 0; node = fdt_next_node(fdt, node, NULL)) {
        for (size_t i = 0; i < 2; i++) {
            int length = 0;
            const fdt32_t *value = fdt_getprop(fdt, node, references[i].name, &length);
            for (int at = 0; value != NULL && at < length / 4; at++) {
                int target = fdt_node_offset_by_phandle(fdt, fdt32_to_cpu(value[at]));
                if (target < 0 || fdt_getprop(fdt, target, references[i].cells, NULL) == NULL) {
                    return missing("%s: %s leads nowhere", fdt_get_name(fdt, node, NULL),
                                   references[i].name);
                }
            }
        }
    }
    return NULL;
}

static const char *check(const void *fdt, const struct guest_fdt *guest) {
    const char *why;

    WANT("/", "compatible", "linux,dummy-virt");
    WANT_ANY("/", "interrupt-parent");
    WANT_CELLS("/", "#address-cells", 2);
    WANT_CELLS("/", "#size-cells", 2);
    WANT("/memory@40000000", "device_type", "memory");
    WANT_CELLS("/memory@40000000", "reg", 0, 0x40000000, (uint32_t)(guest->ram_size >> 32),
               (uint32_t)guest->ram_size);
    WANT("/chosen", "stdout-path", "/pl011@9000000");
    if (guest->initrd_end != guest->initrd_start) {
        WANT_CELLS("/chosen", "linux,initrd-start", 0, (uint32_t)guest->initrd_start);
        WANT_CELLS("/chosen", "linux,initrd-end", 0, (uint32_t)guest->initrd_end);
    }
    WANT("/aliases", "serial0", "/pl011@9000000");
    if ((why = check_cpus(fdt, guest->vcpus)) != NULL ||
        (why = check_gic(fdt, guest->vcpus)) != NULL || (why = check_devices(fdt)) != NULL) {
        return why;
    }
    return check_references(fdt);
}

/* ---- dtc as a child process ---- */

static char work_dir[] = "/tmp/test_guest_fdt.XXXXXX";

static int make_work_dir(void **state) {
    (void)state;
    return mkdtemp(work_dir) == NULL ? -1 : 0;
}

static int remove_work_dir(void **state) {
    char command[256];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", work_dir);
    return system(command);
}

static void run_in_work_dir(const char *command) {
    char full[1024];

    snprintf(full, sizeof(full),
             "cd %s && { %s; } >log 2>&1 && test ! -s log || { cat log; exit 1; }", work_dir,
             command);
    if (system(full) != 0) {
        fail_msg("'%s' failed or had something to say", command);
    }
}

static void write_blob(const void *fdt) {
    char path[256];

    snprintf(path, sizeof(path), "%s/a.dtb", work_dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(fdt, 1, fdt_totalsize(fdt), f), fdt_totalsize(fdt));
    fclose(f);
}

/*
 * To source and back, silent and with the same result. Also on: what dtc does not check by itself,
 * but for property_name_chars_strict, which the names cpu_on and cpu_off of the PSCI binding
 * offend. Back from source clocks_property is off: dtc wants `&label` there, which it does not
 * write itself; on the blob it has checked the same.
 */
#define ALSO "-W node_name_chars_strict -W unique_unit_address_if_enabled "

static void dtc_is_silent(void) {
    write_blob(blob);
    run_in_work_dir("dtc " ALSO "-I dtb -O dts -o a.dts a.dtb");
    run_in_work_dir("dtc " ALSO "-W no-clocks_property -I dts -O dtb -o b.dtb a.dts");
    run_in_work_dir("dtc " ALSO "-I dtb -O dts -o b.dts b.dtb && cmp a.dts b.dts");
}

/* ---- Tests ---- */

static void B04_dtc_finds_nothing_to_warn_of(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNTS; i++) {
        make(vcpu_counts[i]);
        dtc_is_silent();
    }
}

static void B04_no_initrd_no_command_line(void **state) {
    struct guest_fdt guest = guest_of(2);

    (void)state;
    guest.cmdline = "";
    guest.initrd_end = guest.initrd_start;
    assert_int_equal(guest_fdt_create(blob, sizeof(blob), &guest), 0);
    int chosen = fdt_path_offset(blob, "/chosen");
    assert_null(fdt_getprop(blob, chosen, "bootargs", NULL));
    assert_null(fdt_getprop(blob, chosen, "linux,initrd-start", NULL));
    assert_null(check(blob, &guest));
    dtc_is_silent();
}

static void B04_every_reference_leads_to_a_node(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNTS; i++) {
        make(vcpu_counts[i]);
        assert_null(check_references(blob));
    }
}

static void B05_tree_is_complete(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNTS; i++) {
        struct guest_fdt guest = guest_of(vcpu_counts[i]);
        make(vcpu_counts[i]);
        const char *why = check(blob, &guest);
        if (why != NULL) {
            fail_msg("%u vCPUs: %s", vcpu_counts[i], why);
        }
    }
}

static void B05_checker_reports_each_missing_node(void **state) {
    static const char *const paths[] = {
        "/timer",        "/psci",   "/intc@8000000", "/memory@40000000", "/cpus",   "/cpus/cpu@0",
        "/cpus/cpu@100", "/chosen", "/apb-pclk",     "/pl011@9000000",   "/aliases"};
    struct guest_fdt guest = guest_of(17);

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        make(17);
        int node = fdt_path_offset(blob, paths[i]);
        assert_true(node > 0);
        assert_int_equal(fdt_del_node(blob, node), 0);
        if (check(blob, &guest) == NULL) {
            fail_msg("%s is not missed", paths[i]);
        }
    }
}

/* Each property, too; all but those that a guest can do without. */
static void B05_checker_reports_each_missing_property(void **state) {
    static const char *const optional[] = {
        "model",  "bootargs", "cpu_suspend", "cpu_off",
        "cpu_on", "migrate",  "ranges",      "clock-output-names"};
    struct guest_fdt guest = guest_of(2);
    unsigned removed = 0;

    (void)state;
    for (int tag = 0;; tag++) { /* the tag-th property of the tree */
        int left = tag;
        make(2);
        for (int node = 0; node >= 0 && left >= 0; node = fdt_next_node(blob, node, NULL)) {
            int property;
            fdt_for_each_property_offset(property, blob, node) {
                if (left-- != 0) {
                    continue;
                }
                const char *name;
                bool needed = true;
                fdt_getprop_by_offset(blob, property, &name, NULL);
                for (size_t i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
                    needed = needed && strcmp(name, optional[i]) != 0;
                }
                char copy[64];
                snprintf(copy, sizeof(copy), "%s", name);
                assert_int_equal(fdt_delprop(blob, node, copy), 0);
                if (needed && check(blob, &guest) == NULL) {
                    fail_msg("property %s is not missed", copy);
                }
                removed++;
                break;
            }
        }
        if (left >= 0) {
            break;
        }
    }
    assert_true(removed > 45);
}

static void C02_reg_is_the_affinity_of_each_vcpu(void **state) {
    static const unsigned counts[] = {17, 33, 256};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        unsigned index = 0;
        int node;
        make(counts[i]);
        int cpus = fdt_path_offset(blob, "/cpus");
        fdt_for_each_subnode(node, blob, cpus) {
            const fdt32_t *reg = fdt_getprop(blob, node, "reg", NULL);
            assert_int_equal(fdt32_to_cpu(*reg), (index / 16) << 8 | index % 16);
            index++;
        }
        assert_int_equal(index, counts[i]);
    }
}

static void G21_redistributor_regions_are_as_long_as_their_frames(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNTS; i++) {
        uint64_t total = 0;
        int length;
        make(vcpu_counts[i]);
        const fdt32_t *reg =
            fdt_getprop(blob, fdt_path_offset(blob, "/intc@8000000"), "reg", &length);
        assert_int_equal(length, vcpu_counts[i] > 123 ? 48 : 32);
        for (int at = 4; at < length / 4; at += 4) {
            total += (uint64_t)fdt32_to_cpu(reg[at + 2]) << 32 | fdt32_to_cpu(reg[at + 3]);
        }
        assert_int_equal(total, vcpu_counts[i] * 0x20000ull);
    }
}

static void tree_is_smaller_than_its_room(void **state) {
    char cmdline[CONFIG_CMDLINE_MAX + 1];
    struct guest_fdt guest = guest_of(256);

    (void)state;
    memset(cmdline, 'x', sizeof(cmdline) - 1);
    cmdline[sizeof(cmdline) - 1] = '\0';
    guest.cmdline = cmdline;
    assert_int_equal(guest_fdt_create(blob, sizeof(blob), &guest), 0);
    assert_true(fdt_totalsize(blob) <= 30000);
    for (size_t room = 0; room < 30000; room += 97) { /* too small: said, and nothing behind it */
        uint8_t *small = malloc(room + 1);
        int error = guest_fdt_create(small, room, &guest);
        assert_true(error == 0 || error == -FDT_ERR_NOSPACE);
        free(small);
    }
}

static void same_vm_same_tree(void **state) {
    static _Alignas(8) uint8_t before[BOOT_DATA_GENERATED];

    (void)state;
    make(5);
    memcpy(before, blob, fdt_totalsize(blob));
    memset(blob, 0xff, sizeof(blob));
    make(5);
    assert_memory_equal(before, blob, fdt_totalsize(blob));
}

/* ---- As the loader calls it ---- */

static struct vm guest;
static struct vm_config config;
static _Alignas(8) uint8_t ram[0x40000];
static uint64_t synced;

void *vm_ram(const struct vm *vm, ipa_t ipa, uint64_t size) {
    if (ipa.v < vm->ram_ipa.v || size > sizeof(ram) || ipa.v - vm->ram_ipa.v > sizeof(ram) - size) {
        return NULL;
    }
    return ram + (ipa.v - vm->ram_ipa.v);
}

void arch_sync_guest_memory(void *start, uint64_t size) {
    assert_ptr_equal(start, ram + 0x20000);
    synced = size;
}

static void make_vm(void) {
    memset(&guest, 0, sizeof(guest));
    memset(&config, 0, sizeof(config));
    memset(ram, 0, sizeof(ram));
    strcpy(config.cmdline, "quiet");
    config.vcpus = 4;
    guest.config = &config;
    guest.ram_ipa.v = GUEST_RAM;
    guest.ram_size = RAM_SIZE;
    guest.load.dtb_ipa = GUEST_RAM + 0x20000;
    guest.load.initrd_ipa = GUEST_RAM + 0x10000;
    synced = 0;
}

static void assert_chosen(const char *bootargs, uint64_t initrd_start, uint64_t initrd_end) {
    const void *fdt = ram + 0x20000;
    int chosen = fdt_path_offset(fdt, "/chosen");
    const char *found = fdt_getprop(fdt, chosen, "bootargs", NULL);
    const fdt64_t *from = fdt_getprop(fdt, chosen, "linux,initrd-start", NULL);
    const fdt64_t *to = fdt_getprop(fdt, chosen, "linux,initrd-end", NULL);

    assert_string_equal(found, bootargs);
    if (initrd_start == initrd_end) {
        assert_null(from);
        assert_null(to);
        return;
    }
    assert_non_null(from);
    assert_non_null(to);
    assert_int_equal(fdt64_ld(from), initrd_start);
    assert_int_equal(fdt64_ld(to), initrd_end);
}

static void B03_boot_data_is_generated_and_synchronised(void **state) {
    (void)state;
    make_vm();
    guest.load.initrd_size = 12345;
    assert_null(arch_vm_boot_data(&guest));
    assert_int_equal(synced, BOOT_DATA_GENERATED);
    assert_chosen("quiet", GUEST_RAM + 0x10000, GUEST_RAM + 0x10000 + 12345);
    guest.load.dtb_ipa = GUEST_RAM + 0x38000; /* not all of its room is there */
    assert_non_null(arch_vm_boot_data(&guest));
}

/* A tree from the archive, where files are aligned to 4 only. */
static void given_tree_gets_command_line_and_initrd(void **state) {
    static _Alignas(8) uint8_t file[0x10004];

    (void)state;
    make(3);
    memcpy(file + 4, blob, fdt_totalsize(blob));
    make_vm();
    guest.load.dtb = file + 4;
    guest.load.dtb_size = fdt_totalsize(blob);
    guest.load.initrd_size = 0;
    assert_null(arch_vm_boot_data(&guest));
    assert_chosen("quiet", 0x48000000, 0x48123456); /* its own initrd values stay */
    guest.load.initrd_size = 77;
    config.cmdline[0] = '\0';
    assert_null(arch_vm_boot_data(&guest));
    assert_chosen("console=ttyAMA0 earlycon root=/dev/ram0", GUEST_RAM + 0x10000,
                  GUEST_RAM + 0x10000 + 77);
    assert_true(synced >= fdt_totalsize(ram + 0x20000));
}

static void given_tree_without_chosen(void **state) {
    (void)state;
    make(3);
    assert_int_equal(fdt_del_node(blob, fdt_path_offset(blob, "/chosen")), 0);
    make_vm();
    guest.load.dtb = blob;
    guest.load.dtb_size = fdt_totalsize(blob);
    memset(config.cmdline, 'x', CONFIG_CMDLINE_MAX); /* the longest there is */
    guest.load.initrd_size = 1;
    assert_null(arch_vm_boot_data(&guest));
    assert_chosen(config.cmdline, GUEST_RAM + 0x10000, GUEST_RAM + 0x10001);
    assert_int_equal(fdt_check_full(ram + 0x20000, 0x20000), 0);
}

static void given_tree_that_is_none(void **state) {
    (void)state;
    make(3);
    make_vm();
    guest.load.dtb = blob;
    guest.load.dtb_size = fdt_totalsize(blob) - 1;
    assert_non_null(strstr(arch_vm_boot_data(&guest), "cut off"));
    guest.load.dtb_size = 3;
    assert_non_null(arch_vm_boot_data(&guest));
    guest.load.dtb_size = fdt_totalsize(blob);
    blob[0] ^= 1;
    assert_non_null(strstr(arch_vm_boot_data(&guest), "magic"));
}

/* Damage of any kind: an answer, and not a byte written outside the room. */
static void given_tree_with_any_damage(void **state) {
    static const uint8_t zeroes[sizeof(ram)];
    uint32_t size;
    unsigned refused = 0;

    (void)state;
    srand(5);
    for (unsigned round = 0; round < 3000; round++) {
        make(2);
        make_vm();
        size = fdt_totalsize(blob);
        for (int i = rand() % 8; i >= 0; i--) {
            uint32_t range = rand() % 2 ? size : 40;
            blob[(uint32_t)rand() % range] ^= (uint8_t)(1 << rand() % 8);
        }
        guest.load.dtb = blob;
        guest.load.dtb_size = size;
        bool bad = arch_vm_boot_data(&guest) != NULL;
        refused += bad;
        assert_true(bad || fdt_check_full(ram + 0x20000, boot_data_room(&guest.load)) == 0);
        memset(ram + 0x20000, 0, boot_data_room(&guest.load));
        assert_memory_equal(ram, zeroes, sizeof(ram));
    }
    assert_true(refused > 300);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(B04_dtc_finds_nothing_to_warn_of),
        cmocka_unit_test(B04_no_initrd_no_command_line),
        cmocka_unit_test(B04_every_reference_leads_to_a_node),
        cmocka_unit_test(B05_tree_is_complete),
        cmocka_unit_test(B05_checker_reports_each_missing_node),
        cmocka_unit_test(B05_checker_reports_each_missing_property),
        cmocka_unit_test(C02_reg_is_the_affinity_of_each_vcpu),
        cmocka_unit_test(G21_redistributor_regions_are_as_long_as_their_frames),
        cmocka_unit_test(tree_is_smaller_than_its_room),
        cmocka_unit_test(same_vm_same_tree),
        cmocka_unit_test(B03_boot_data_is_generated_and_synchronised),
        cmocka_unit_test(given_tree_gets_command_line_and_initrd),
        cmocka_unit_test(given_tree_without_chosen),
        cmocka_unit_test(given_tree_that_is_none),
        cmocka_unit_test(given_tree_with_any_damage),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_work_dir, remove_work_dir);
}
