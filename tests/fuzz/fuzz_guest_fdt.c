/* SPDX-License-Identifier: GPL-2.0-only */
/* link: arch/arm64/guest_fdt.c hyp/print.c */
/* libs: -lfdt */
/* A user's device tree: it is refused, or is one that fits afterwards. */
#include "tests/fuzz/fuzz.h"

#include <libfdt.h>

#include "arch/arm64/guest_fdt.h"
#include "hyp/arch.h"
#include "hyp/boot_data.h"
#include "hyp/vm.h"

void *vm_ram(const struct vm *vm, ipa_t ipa, uint64_t size) {
    (void)vm;
    (void)ipa;
    (void)size;
    return NULL;
}

void arch_sync_guest_memory(void *start, uint64_t size) {
    (void)start;
    (void)size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char cmdline[1024];
    struct fuzz_input in = {data, size};
    struct guest_fdt guest = {.cmdline = cmdline, .ram_base = 0x40000000, .ram_size = 1u << 28};
    struct load_job job = {.dtb = data};
    size_t length = fuzz_take(&in, 2) % sizeof(cmdline);

    memset(cmdline, 'x', sizeof(cmdline));
    cmdline[length] = '\0';
    guest.initrd_end = fuzz_take(&in, 1);
    job.dtb_size = in.left;
    size_t room = boot_data_room(&job);
    uint8_t *buf = malloc(room);

    must(buf != NULL);
    memcpy(buf, in.at, in.left);
    uint32_t start = in.left >= sizeof(struct fdt_header) ? fdt_off_dt_struct(buf) : 0;
    if (guest_fdt_adapt(buf, in.left, room, &guest) == 0) {
        must(fdt_totalsize(buf) <= room && fdt_check_full(buf, room) == 0);
        must(start % 4 == 0);
    }
    free(buf);
    return 0;
}
