/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Filling a VM's memory before its first instruction: scrub, kernel, initrd, boot data. Done in
 * steps of bounded length, in the VM's own CPU time, so that a VM that starts holds up no other.
 */
#ifndef HYP_LOAD_H
#define HYP_LOAD_H

#include <stdbool.h>
#include <stdint.h>

struct vm;

enum load_phase { LOAD_IDLE, LOAD_SCRUB, LOAD_KERNEL, LOAD_INITRD, LOAD_BOOT_DATA, LOAD_DONE };

struct load_job {
    enum load_phase phase;
    uint64_t done;         /* bytes of the present phase that are finished */
    const uint8_t *kernel; /* as it lies in the boot archive, perhaps gzip */
    uint64_t kernel_size;
    const uint8_t *initrd; /* NULL: none */
    uint64_t initrd_size;
    const uint8_t *dtb; /* NULL: one is generated */
    uint64_t dtb_size;
    uint64_t kernel_ipa; /* where the kernel begins: its entry point */
    uint64_t kernel_end; /* first byte after it, image_size (BSS) included */
    uint64_t initrd_ipa;
    uint64_t dtb_ipa;
    void *inflate;     /* state of a gzip kernel's decompressor, NULL if there is none */
    const char *error; /* why it failed, NULL if it did not */
};

/* Finds the VM's files in the boot archive. NULL, or a sentence that says what is wrong. Boot pCPU.
 */
const char *load_prepare(struct vm *vm, const void *archive, uint64_t archive_size);

/* Begins anew: everything of the VM's memory will be scrubbed first. */
void load_begin(struct vm *vm);

/*
 * Does one step (at most about 100 us on slow machines). True when there is nothing more to do:
 * job->error is set or the VM can run, its boot vCPU to be started at job->kernel_ipa with
 * job->dtb_ipa as argument. On one pCPU at a time.
 */
bool load_step(struct vm *vm);

#endif
