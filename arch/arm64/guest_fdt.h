/* SPDX-License-Identifier: GPL-2.0-only */
/* The device tree that a guest gets. */
#ifndef ARM64_GUEST_FDT_H
#define ARM64_GUEST_FDT_H

#include <stddef.h>
#include <stdint.h>

/* What the tree says that is not the same for every VM. */
struct guest_fdt {
    const char *cmdline;
    uint64_t ram_base, ram_size;
    uint64_t initrd_start, initrd_end; /* equal: there is none */
    unsigned vcpus;
};

/*
 * Writes the tree to buf, which is aligned to 8. 0 or an error of libfdt, -FDT_ERR_NOSPACE when it
 * is too small. Any pCPU, no locks.
 */
int guest_fdt_create(void *buf, size_t size, const struct guest_fdt *guest);

/*
 * Opens a tree of the user's, buf[0..used), for its guest: command line and initrd, when there are
 * any, go into /chosen. buf has `size` bytes and is aligned to 8. 0 or an error of libfdt.
 */
int guest_fdt_adapt(void *buf, size_t used, size_t size, const struct guest_fdt *guest);

#endif
