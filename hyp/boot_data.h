/* SPDX-License-Identifier: GPL-2.0-only */
/* How much guest RAM arch_vm_boot_data() may fill: load.c keeps it free, the architecture fits in
 * it. */
#ifndef HYP_BOOT_DATA_H
#define HYP_BOOT_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "hyp/load.h"

/* A generated tree for 256 vCPUs has 27 KiB (test_guest_fdt says so). */
#define BOOT_DATA_GENERATED 0x10000u

/* A tree that was given grows by the longest command line and some numbers. */
#define BOOT_DATA_GROWTH 0x1000u

static inline uint64_t boot_data_room(const struct load_job *job) {
    return job->dtb == NULL ? BOOT_DATA_GENERATED
                            : ((job->dtb_size + 7) & ~7ull) + BOOT_DATA_GROWTH;
}

#endif
