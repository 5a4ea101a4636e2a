/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/image.h"

#include <zlib.h>

#include "hyp/string.h"

/* Linux' Documentation/arch/arm64/booting.rst, "Call the kernel image": all fields little-endian.
 */
#define IMAGE_TEXT_OFFSET 8u
#define IMAGE_SIZE        16u
#define IMAGE_FLAGS       24u
#define IMAGE_MAGIC       56u
#define IMAGE_FLAG_BE     1u

static uint64_t read_le(const uint8_t *p, unsigned bytes) {
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes; i++) {
        value |= (uint64_t)p[i] << (8 * i);
    }
    return value;
}

static bool begins(const uint8_t *head, size_t size, size_t offset, const char *magic, size_t n) {
    return size >= offset + n && memcmp(head + offset, magic, n) == 0;
}

const char *image_parse(const uint8_t *head, size_t size, struct image *image) {
    *image = (struct image){IMAGE_DEFAULT_OFFSET, 0};
    if (size == 0) {
        return "is empty, expected an arm64 Image or a raw binary";
    }
    if (begins(head, size, 0,
               "\x7f"
               "ELF",
               4)) {
        return "is an ELF file, expected an arm64 Image or a raw binary (objcopy -O binary makes "
               "one)";
    }
    if (begins(head, size, 4, "zimg", 4) && begins(head, size, 0, "MZ", 2)) {
        return "is a self-unpacking EFI program (zboot), expected an arm64 Image, gzip or not, or "
               "a "
               "raw binary";
    }
    if (gunzip_is_gzip(head, size)) {
        return "is gzip inside gzip, expected an arm64 Image or a raw binary inside";
    }
    if (!begins(head, size, IMAGE_MAGIC, "ARM\x64", 4)) {
        return NULL; /* a raw binary */
    }
    if (size < IMAGE_HEADER_SIZE) {
        return "ends inside its arm64 Image header, expected at least 64 bytes";
    }
    if (read_le(head + IMAGE_FLAGS, 8) & IMAGE_FLAG_BE) {
        return "is a big-endian arm64 Image, expected a little-endian one (flags bit 0 = 0)";
    }
    image->size = read_le(head + IMAGE_SIZE, 8);
    if (image->size != 0) { /* otherwise text_offset has no meaning: 0x80000 (booting.rst) */
        image->text_offset = read_le(head + IMAGE_TEXT_OFFSET, 8);
    }
    if (image->text_offset % 4096 != 0) {
        return "has a text_offset in its arm64 Image header that is not a multiple of 4096";
    }
    return NULL;
}

/* What inflate asks for is its state (7 KiB) and a window of 32 KiB, each once. */
#define ARENA_SIZE (48u << 10)

struct gunzip {
    _Alignas(16) uint8_t arena[ARENA_SIZE];
    size_t used; /* of the arena */
    z_stream stream;
};

size_t gunzip_state_size(void) {
    return sizeof(struct gunzip);
}

bool gunzip_is_gzip(const uint8_t *data, uint64_t size) {
    return size >= 2 && data[0] == 0x1f && data[1] == 0x8b;
}

uint64_t gunzip_claimed_size(const uint8_t *data, uint64_t size) {
    return size < 4 ? 0 : read_le(data + size - 4, 4);
}

static voidpf arena_alloc(voidpf opaque, uInt items, uInt size) {
    struct gunzip *g = opaque;
    uint64_t bytes = ((uint64_t)items * size + 15) & ~15ull;

    if (bytes > ARENA_SIZE - g->used) {
        return Z_NULL;
    }
    g->used += bytes;
    return g->arena + g->used - bytes;
}

/* The arena is emptied as a whole, by gunzip_begin. */
static void arena_free(voidpf opaque, voidpf address) {
    (void)opaque;
    (void)address;
}

void gunzip_begin(struct gunzip *g, const uint8_t *data, uint64_t size) {
    g->used = 0;
    memset(&g->stream, 0, sizeof(g->stream));
    g->stream.zalloc = arena_alloc;
    g->stream.zfree = arena_free;
    g->stream.opaque = g;
    g->stream.next_in = (z_const Bytef *)(uintptr_t)data;
    g->stream.avail_in = (uInt)size;
    if (inflateInit2(&g->stream, 16 + MAX_WBITS) != Z_OK) { /* 16: gzip and nothing else */
        g->stream.state = Z_NULL;                           /* the first step says so */
    }
}

enum gunzip_result gunzip_step(struct gunzip *g, uint8_t *out, size_t room, size_t *made,
                               const char **why) {
    g->stream.next_out = out;
    g->stream.avail_out = (uInt)room;
    int result = inflate(&g->stream, Z_NO_FLUSH);
    *made = room - g->stream.avail_out;
    switch (result) {
    case Z_OK:
        if (*made != 0 || g->stream.avail_in != 0) {
            return GUNZIP_MORE;
        }
        *why = "ends too early: its gzip data is cut off";
        return GUNZIP_BAD;
    case Z_STREAM_END:
        return GUNZIP_END;
    case Z_BUF_ERROR:
        *why = "ends too early: its gzip data is cut off";
        return GUNZIP_BAD;
    case Z_MEM_ERROR:
        *why = "can't be unpacked: gunzip needs more memory than it has";
        return GUNZIP_BAD;
    default:
        *why = "has damaged gzip data, or a wrong checksum";
        return GUNZIP_BAD;
    }
}
