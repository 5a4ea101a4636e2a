/* SPDX-License-Identifier: GPL-2.0-only */
/* link: core/config.c core/config_keys.c */
/* machine.conf: what is accepted is within its bounds, what is not has a printable reason. */
#include "tests/fuzz/fuzz.h"

#include "core/config.h"

#define VMS 8u

static bool ends(const char *s, size_t size) {
    return memchr(s, '\0', size) != NULL;
}

static void check_vm(const char *text, size_t size, const struct vm_config *vm) {
    size_t offset, length;
    uint32_t line = config_vm_key_line(vm, "kernel");

    must(ends(vm->name, sizeof(vm->name)) && vm->name[0] != '\0');
    must(ends(vm->kernel, sizeof(vm->kernel)) && ends(vm->initrd, sizeof(vm->initrd)));
    must(ends(vm->dtb, sizeof(vm->dtb)) && ends(vm->cmdline, sizeof(vm->cmdline)));
    must(vm->memory >= CONFIG_MEMORY_MIN && vm->memory <= CONFIG_MEMORY_MAX);
    must(vm->memory % 4096 == 0 && vm->vcpus >= 1 && vm->vcpus <= CONFIG_VCPUS_MAX);
    must(vm->weight >= 1 && vm->weight <= CONFIG_WEIGHT_MAX && line != 0);
    must(config_find_value(text, size, line, &offset, &length));
    must(offset <= size && length <= size - offset);
}

static void check_error(const struct config_error *error) {
    char line[64], whole[1024];

    must(ends(error->section, sizeof(error->section)) && ends(error->key, sizeof(error->key)));
    must(config_format_error(error, "f", line, sizeof(line)) < sizeof(line));
    for (size_t n = config_format_error(error, "f", whole, sizeof(whole)), i = 0; i < n; i++) {
        must(whole[i] >= 0x20 && whole[i] < 0x7f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct vm_config vms[VMS];
    char *text = fuzz_exact(data, size);
    struct machine_config machine;
    struct config_error error;
    size_t count = 0, again = 0;

    if (config_parse(text, size, &machine, NULL, 0, &count, &error)) {
        must(count >= 1);
        bool stored = config_parse(text, size, &machine, vms, VMS, &again, &error);

        must(stored == (count <= VMS) && (!stored || again == count));
        for (size_t i = 0; stored && i < count; i++) {
            check_vm(text, size, &vms[i]);
        }
    } else {
        check_error(&error);
    }
    free(text);
    return 0;
}
