/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A reader for the flattened device tree and the kernel command line, written from the devicetree
 * specification. It trusts the tree's structure: tests give a broken one no second chance.
 */
#include "guest.h"

#define FDT_MAGIC      0xd00dfeedu
#define FDT_BEGIN_NODE 1u
#define FDT_END_NODE   2u
#define FDT_PROP       3u
#define FDT_NOP        4u

const uint8_t *fdt;

static uint32_t be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool fdt_valid(void) {
    return fdt && ((uintptr_t)fdt & 7) == 0 && be32(fdt) == FDT_MAGIC;
}

uint32_t fdt_size(void) {
    return be32(fdt + 4);
}

static const uint8_t *structure(void) {
    return fdt + be32(fdt + 8);
}

/* Length of the token at p with everything that belongs to it. */
static uint32_t token_length(const uint8_t *p) {
    switch (be32(p)) {
    case FDT_BEGIN_NODE:
        return (uint32_t)(4 + strlen((const char *)p + 4) + 1 + 3) & ~3u;
    case FDT_PROP:
        return (12 + be32(p + 4) + 3) & ~3u;
    default:
        return 4;
    }
}

/* Does the node name match the path component of n characters? */
static bool name_matches(const char *name, const char *component, size_t n) {
    bool unit = false;

    for (size_t i = 0; i < n; i++) {
        if (component[i] == '@')
            unit = true;
        if (name[i] != component[i])
            return false;
    }
    return name[n] == 0 || (!unit && name[n] == '@');
}

int fdt_find(const char *path, unsigned n) {
    const uint8_t *base = structure();
    const char *want[8];
    size_t length[8];
    unsigned components = 0;

    while (*path == '/' && components < 8) {
        path++;
        size_t len = 0;

        while (path[len] && path[len] != '/')
            len++;
        if (len) {
            want[components] = path;
            length[components++] = len;
        }
        path += len;
    }
    unsigned depth = 0, matched = 0; /* matched: leading components equal at this place */

    for (const uint8_t *p = base;; p += token_length(p)) {
        uint32_t token = be32(p);

        if (token == FDT_BEGIN_NODE) {
            if (depth == 0 ||
                (matched == depth - 1 && depth <= components &&
                 name_matches((const char *)p + 4, want[depth - 1], length[depth - 1]))) {
                matched = depth;
                if (depth == components && n-- == 0)
                    return (int)(p - base);
            }
            depth++;
        } else if (token == FDT_END_NODE) {
            depth--;
            if (depth == 0)
                return -1;
            if (matched >= depth)
                matched = depth - 1;
        } else if (token != FDT_PROP && token != FDT_NOP) {
            return -1;
        }
    }
}

const uint8_t *fdt_prop(int node, const char *name, uint32_t *len) {
    const char *strings = (const char *)fdt + be32(fdt + 12);

    if (node < 0)
        return NULL;
    const uint8_t *p = structure() + node;

    for (p += token_length(p); be32(p) == FDT_PROP || be32(p) == FDT_NOP; p += token_length(p)) {
        if (be32(p) == FDT_PROP && !strcmp(strings + be32(p + 8), name)) {
            if (len)
                *len = be32(p + 4);
            return p + 12;
        }
    }
    return NULL;
}

uint32_t fdt_u32(int node, const char *name, unsigned index, uint32_t otherwise) {
    uint32_t len;
    const uint8_t *p = fdt_prop(node, name, &len);

    return p && len >= 4 * (index + 1) ? be32(p + (size_t)4 * index) : otherwise;
}

uint64_t fdt_cells(const uint8_t *p, unsigned cells) {
    uint64_t v = 0;

    for (; cells; cells--, p += 4)
        v = v << 32 | be32(p);
    return v;
}

bool fdt_compatible(int node, const char *what) {
    uint32_t len;
    const char *p = (const char *)fdt_prop(node, "compatible", &len);

    for (uint32_t i = 0; p && i < len; i += (uint32_t)strlen(p + i) + 1) {
        if (!strcmp(p + i, what))
            return true;
    }
    return false;
}

const char *fdt_string(int node, const char *name) {
    const char *p = (const char *)fdt_prop(node, name, NULL);

    return p ? p : "";
}

uint64_t bootarg(const char *name, uint64_t otherwise) {
    const char *p = fdt_string(fdt_find("/chosen", 0), "bootargs");
    size_t n = strlen(name);

    while (*p) {
        while (*p == ' ')
            p++;
        if (!memcmp(p, name, n) && (p[n] == 0 || p[n] == ' '))
            return 1;
        if (!memcmp(p, name, n) && p[n] == '=') {
            uint64_t v = 0;

            for (p += n + 1; *p >= '0' && *p <= '9'; p++)
                v = v * 10 + (uint64_t)(*p - '0');
            return v;
        }
        while (*p && *p != ' ')
            p++;
    }
    return otherwise;
}

bool native(void) {
    return bootarg("native", 0) != 0;
}

uint64_t scaled(uint64_t n) {
    return n * bootarg("long", 1);
}
