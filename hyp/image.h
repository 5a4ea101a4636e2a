/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The formats that a guest's kernel comes in: arm64 Image, raw binary, and either of them as gzip.
 * No locks; a stream is used on one pCPU at a time.
 */
#ifndef HYP_IMAGE_H
#define HYP_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_HEADER_SIZE 64u

/*
 * Where a kernel without a header of its own goes, from RAM base: QEMU's virt loads a raw binary
 * there (hw/arm/boot.c), and Linux before 3.17, whose header did not count, was made for it
 * (booting.rst).
 */
#define IMAGE_DEFAULT_OFFSET 0x80000u

/* What a kernel says about itself. */
struct image {
    uint64_t
        text_offset; /* from a 2 MiB aligned base to its first byte, which is its entry point */
    uint64_t size;   /* memory it needs from there on, BSS included; 0: it does not say */
};

/*
 * Reads the first `size` bytes of an unpacked kernel. NULL and *image, or a phrase that says why it
 * can't be started.
 */
const char *image_parse(const uint8_t *head, size_t size, struct image *image);

/* A gzip stream (RFC 1952) that is unpacked piece by piece. */
struct gunzip;

/* Bytes that a struct gunzip takes; aligned as mem_alloc does. */
size_t gunzip_state_size(void);

bool gunzip_is_gzip(const uint8_t *data, uint64_t size);

/* The size of the unpacked data, as the stream's last four bytes say; modulo 4 GiB, and unchecked.
 */
uint64_t gunzip_claimed_size(const uint8_t *data, uint64_t size);

enum gunzip_result { GUNZIP_MORE, GUNZIP_END, GUNZIP_BAD };

/* Begins at the start of data[0..size), size < 4 GiB. */
void gunzip_begin(struct gunzip *g, const uint8_t *data, uint64_t size);

/*
 * Unpacks up to `room` bytes to `out`; *made of them were. END: that was the last piece, and its
 * checksum is right. BAD: *why says what is wrong with the stream.
 */
enum gunzip_result gunzip_step(struct gunzip *g, uint8_t *out, size_t room, size_t *made,
                               const char **why);

#endif
