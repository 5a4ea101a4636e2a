/* SPDX-License-Identifier: GPL-2.0-only */
/* link: hyp/load.c hyp/image.c hyp/print.c core/cpio.c */
/* libs: -lz */
/*
 * Kernels: the input is one, raw, an Image or gzip, that a VM of 1 to 4 MiB is loaded with.
 * Whatever it says of itself, nothing outside the VM's memory is written and loading ends.
 */
#include "tests/fuzz/fuzz.h"

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/load.h"
#include "hyp/mem.h"
#include "hyp/vm.h"

#define RAM_BASE 0x40000000ull
#define STEPS    100000u

#define RAM_MAX (4ull << 20)

static uint8_t *memory, *ram; /* the VM has the last bytes of it */
static void *allocated;

void *mem_alloc(uint64_t size) {
    must(allocated == NULL);
    return allocated = calloc(1, size);
}

void *vm_ram(const struct vm *vm, ipa_t ipa, uint64_t size) {
    if (ipa.v < vm->ram_ipa.v || size > vm->ram_size ||
        ipa.v - vm->ram_ipa.v > vm->ram_size - size) {
        return NULL;
    }
    return ram + (ipa.v - vm->ram_ipa.v);
}

void arch_sync_guest_memory(void *start, uint64_t size) {
    (void)start;
    (void)size;
}

const char *arch_vm_boot_data(struct vm *vm) {
    must(vm_ram(vm, (ipa_t){vm->load.dtb_ipa}, 64u << 10) != NULL);
    return NULL;
}

void panic(const char *format, ...) {
    (void)format;
    must(!"panic");
    abort();
}

static size_t put_file(uint8_t *to, const char *name, const uint8_t *data, size_t size) {
    int n = sprintf((char *)to, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s", 1u,
                    0100644u, 0u, 0u, 1u, 0u, (unsigned)size, 0u, 0u, 0u, 0u,
                    (unsigned)strlen(name) + 1, 0u, name);
    size_t at = ((size_t)n + 1 + 3) & ~3ull;

    if (size != 0) {
        memcpy(to + at, data, size);
    }
    return (at + size + 3) & ~3ull;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct vm vm;
    static struct vm_config config;
    struct fuzz_input in = {data, size};
    uint64_t mib = 1 + fuzz_take(&in, 1) % 4, initrd = fuzz_take(&in, 2);
    uint8_t *archive = calloc(1, in.left + initrd + 1024);
    size_t used = put_file(archive, "k", in.at, in.left);

    used += put_file(archive + used, "i", data, initrd < size ? initrd : size);
    used += put_file(archive + used, "TRAILER!!!", NULL, 0);
    memset(&vm, 0, sizeof(vm));
    strcpy(config.name, "fuzz");
    strcpy(config.kernel, "k");
    strcpy(config.initrd, initrd != 0 ? "i" : "");
    vm.config = &config;
    vm.ram_ipa.v = RAM_BASE;
    vm.ram_size = mib << 20;
    memory = memory != NULL ? memory : malloc(RAM_MAX);
    must(archive != NULL && memory != NULL);
    ram = memory + RAM_MAX - vm.ram_size;
    if (load_prepare(&vm, archive, used) == NULL) {
        unsigned steps = 0;

        load_begin(&vm);
        while (!load_step(&vm)) {
            must(++steps < STEPS);
        }
        must(vm.load.error != NULL || vm.load.kernel_ipa - RAM_BASE < vm.ram_size);
    }
    free(archive);
    free(allocated);
    allocated = NULL;
    return 0;
}
