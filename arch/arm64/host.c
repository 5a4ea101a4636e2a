/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/host.h"

#include <libfdt.h>

#include "arch/arm64/gic.h"
#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/uart.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/string.h"

#define MPIDR_AFFINITY 0xff00ffffffull
#define MAX_DEPTH      8
#define MAX_NODES      32u /* memory and reserved memory nodes */

struct host host;
static const void *tree;

/* A node of interest, and how many cells addresses and sizes in its reg have. */
struct node {
    int offset; /* 0: there is none (it would be the root) */
    int address_cells, size_cells;
};

/* What one walk through the tree found. */
static struct {
    struct node chosen, uart, gic, psci;
    struct node memory[MAX_NODES], reserved[MAX_NODES], cpus[PCPU_MAX];
    unsigned memories, reserveds, cpu_count;
} found;

/* `cells` 32-bit cells at p as one number. */
static uint64_t read_cells(const fdt32_t *p, int cells) {
    uint64_t value = 0;
    for (int i = 0; i < cells; i++) {
        value = value << 32 | fdt32_to_cpu(p[i]);
    }
    return value;
}

/* Entry `index` of a node's reg. False: there is none. */
static bool read_reg(const struct node *node, unsigned index, uint64_t *base, uint64_t *size) {
    int na = node->address_cells, ns = node->size_cells, length;
    const fdt32_t *reg = fdt_getprop(tree, node->offset, "reg", &length);

    if (reg == NULL || na < 1 || na > 2 || ns < 0 || ns > 2 ||
        (unsigned)length < (index + 1) * (unsigned)(na + ns) * sizeof(fdt32_t)) {
        return false;
    }
    reg += index * (unsigned)(na + ns);
    *base = read_cells(reg, na);
    *size = read_cells(reg + na, ns);
    return true;
}

/* What a node says of itself, as far as we want to know. */
struct properties {
    const char *name;   /* the node's */
    const char *parent; /* its parent's name */
    const char *compatible, *type, *status;
    int compatible_length;
};

/* A node that is there for others (the secure world, say) has a status other than "okay". */
static bool usable(const struct properties *p) {
    return p->status == NULL || strcmp(p->status, "okay") == 0 || strcmp(p->status, "ok") == 0;
}

static bool is_type(const struct properties *p, const char *type) {
    return p->type != NULL && strcmp(p->type, type) == 0;
}

static bool is_compatible(const struct properties *p, const char *wanted) {
    return p->compatible != NULL &&
           fdt_stringlist_contains(p->compatible, p->compatible_length, wanted) != 0;
}

static void add_node(struct node *nodes, unsigned *count, unsigned max, const struct node *node) {
    if (*count < max) {
        nodes[(*count)++] = *node;
    }
}

/* Takes note of a node that is interesting. */
static void visit(const struct node *node, int depth, const struct properties *p) {
    if (depth == 1 && strcmp(p->name, "chosen") == 0) {
        found.chosen = *node;
    } else if (depth == 2 && strcmp(p->parent, "reserved-memory") == 0) {
        add_node(found.reserved, &found.reserveds, MAX_NODES, node);
    } else if (is_type(p, "memory") && usable(p)) {
        add_node(found.memory, &found.memories, MAX_NODES, node);
    } else if (depth == 2 && is_type(p, "cpu")) {
        add_node(found.cpus, &found.cpu_count, PCPU_MAX, node);
    } else if (is_compatible(p, "arm,gic-v3")) {
        found.gic = *node;
    } else if (is_compatible(p, "arm,psci-1.0") || is_compatible(p, "arm,psci-0.2")) {
        found.psci = *node;
    } else if (found.uart.offset == 0 && is_compatible(p, "arm,pl011") && usable(p)) {
        found.uart = *node;
    }
}

/* A property's value as a string, NULL if it is none. */
static const char *text_value(const fdt32_t *value, uint32_t length) {
    const char *text = (const char *)value;
    return length != 0 && text[length - 1] == '\0' ? text : NULL;
}

/* The value of #address-cells or #size-cells; one that read_reg() refuses if it is no such number.
 */
static int cells_value(const fdt32_t *value, uint32_t length) {
    return length == sizeof(*value) && fdt32_to_cpu(*value) <= 2 ? (int)fdt32_to_cpu(*value) : -1;
}

static void take_property(const char *name, const fdt32_t *value, uint32_t length,
                          struct properties *p, struct node *children) {
    if (strcmp(name, "compatible") == 0) {
        p->compatible = text_value(value, length);
        p->compatible_length = (int)length;
    } else if (strcmp(name, "device_type") == 0) {
        p->type = text_value(value, length);
    } else if (strcmp(name, "status") == 0) {
        p->status = text_value(value, length);
    } else if (strcmp(name, "#address-cells") == 0) {
        children->address_cells = cells_value(value, length);
    } else if (strcmp(name, "#size-cells") == 0) {
        children->size_cells = cells_value(value, length);
    }
}

/* The structure block, and what names in it refer to (Devicetree Specification 0.4, 5.4, 5.5). */
struct block {
    const fdt32_t *words;
    uint32_t count;      /* of words */
    const char *strings; /* ends in a zero byte */
    uint32_t strings_size;
};

static bool find_block(struct block *b) {
    const char *base = tree;
    uint32_t start = fdt_off_dt_struct(tree), total = fdt_totalsize(tree);

    b->words = (const fdt32_t *)(base + start);
    b->count = (fdt_version(tree) >= 17 ? fdt_size_dt_struct(tree) : total - start) / 4;
    b->strings = base + fdt_off_dt_strings(tree);
    b->strings_size = fdt_size_dt_strings(tree);
    return start % 4 == 0 && b->strings_size != 0 && b->strings[b->strings_size - 1] == '\0';
}

/* Bytes to words, rounded up; more than any block has if there is an overflow. */
static uint32_t words_of(uint64_t bytes) {
    return (uint32_t)((bytes + 3) / 4);
}

/*
 * One walk over the tokens: libfdt's functions each walk anew, and most of our start would be that.
 * A node's properties come before its children, so that it is known when the first child begins or
 * it ends. Stops at what makes no sense.
 */
static void walk_tree(void) {
    struct node level[MAX_DEPTH + 1] = {{0, 2, 1}};
    const char *names[MAX_DEPTH] = {""};
    struct properties p = {0};
    struct block b;
    int depth = -1;
    bool open = false; /* properties of the node at level `depth` are still coming */

    if (!find_block(&b)) {
        return;
    }
    for (uint32_t at = 0; at < b.count;) {
        uint32_t token = fdt32_to_cpu(b.words[at]), left = b.count - ++at;

        if (token != FDT_PROP && token != FDT_NOP && open) {
            visit(&level[depth], depth, &p);
            open = false;
        }
        if (token == FDT_BEGIN_NODE) {
            const char *name = (const char *)&b.words[at];
            const char *end = memchr(name, '\0', 4ull * left);

            if (end == NULL) {
                return;
            }
            if (++depth < MAX_DEPTH) {
                level[depth].offset = (int)(4 * (at - 1));
                level[depth + 1].address_cells = 2;
                level[depth + 1].size_cells = 1;
                names[depth] = name;
                p = (struct properties){.name = name, .parent = depth > 0 ? names[depth - 1] : ""};
                open = depth > 0;
            }
            at += words_of((uint64_t)(end - name) + 1);
        } else if (token == FDT_END_NODE) {
            if (depth-- < 0) {
                return;
            }
        } else if (token == FDT_PROP) {
            uint32_t length, name;

            if (left < 2) {
                return;
            }
            length = fdt32_to_cpu(b.words[at]);
            name = fdt32_to_cpu(b.words[at + 1]);
            if (words_of(length) > left - 2 || name >= b.strings_size) {
                return;
            }
            if (depth >= 0 && depth < MAX_DEPTH) {
                take_property(b.strings + name, &b.words[at + 2], length, &p, &level[depth + 1]);
            }
            at += 2 + words_of(length);
        } else if (token != FDT_NOP) {
            return; /* FDT_END */
        }
    }
}

/* INTID of a three-cell GIC interrupt specifier: type 0 is an SPI, 1 a PPI. */
static unsigned read_intid(const struct node *node) {
    int length;
    const fdt32_t *cells = fdt_getprop(tree, node->offset, "interrupts", &length);
    if (cells == NULL || (unsigned)length < 3 * sizeof(fdt32_t)) {
        return 0;
    }
    return fdt32_to_cpu(cells[1]) + (fdt32_to_cpu(cells[0]) == 0 ? 32u : 16u);
}

/* A string of a node; NULL if there is none. */
static const char *read_text(const struct node *node, const char *name) {
    int length;
    const fdt32_t *value = fdt_getprop(tree, node->offset, name, &length);

    return value != NULL ? text_value(value, (uint32_t)length) : NULL;
}

/* Only a PL011 can be our console, the one that stdout-path names or else the first. */
static void find_console(void) {
    const char *path = NULL;
    int node = -1;
    uint64_t size;

    if (found.chosen.offset != 0) {
        path = read_text(&found.chosen, "stdout-path");
    }
    if (path != NULL) {
        const char *options = memchr(path, ':', strlen(path));
        node = options != NULL ? fdt_path_offset_namelen(tree, path, (int)(options - path))
                               : fdt_path_offset(tree, path);
    }
    if (node > 0 && node != found.uart.offset &&
        fdt_node_check_compatible(tree, node, "arm,pl011") == 0) {
        int parent = fdt_parent_offset(tree, node);
        found.uart =
            (struct node){node, fdt_address_cells(tree, parent), fdt_size_cells(tree, parent)};
    }
    if (found.uart.offset == 0 || !read_reg(&found.uart, 0, &host.uart, &size)) {
        arch_halt(); /* nowhere to say so */
    }
    host.uart_intid = read_intid(&found.uart);
    uart_init(host.uart);
}

static void find_memory(void) {
    uint64_t base, size;

    for (unsigned n = 0; n < found.memories; n++) {
        for (unsigned i = 0; read_reg(&found.memory[n], i, &base, &size); i++) {
            mem_add((phys_t){base}, size);
        }
    }
    for (int i = 0; i < fdt_num_mem_rsv(tree); i++) {
        if (fdt_get_mem_rsv(tree, i, &base, &size) == 0) {
            mem_reserve((phys_t){base}, size);
        }
    }
    for (unsigned n = 0; n < found.reserveds; n++) {
        for (unsigned i = 0; read_reg(&found.reserved[n], i, &base, &size); i++) {
            mem_reserve((phys_t){base}, size);
        }
    }
}

/* linux,initrd-start and -end may have one or two cells. */
static bool read_chosen(const char *name, uint64_t *value) {
    int length;
    const fdt32_t *cells;

    if (found.chosen.offset == 0) {
        return false;
    }
    cells = fdt_getprop(tree, found.chosen.offset, name, &length);
    if (cells == NULL || (length != 4 && length != 8)) {
        return false;
    }
    *value = read_cells(cells, length / 4);
    return true;
}

static void find_archive(void) {
    uint64_t end;
    if (read_chosen("linux,initrd-start", &host.archive) && read_chosen("linux,initrd-end", &end) &&
        end > host.archive) {
        host.archive_size = end - host.archive;
        mem_reserve((phys_t){host.archive}, host.archive_size);
    }
}

static void find_gic(void) {
    int length;
    const fdt32_t *regions;

    if (found.gic.offset == 0 || !read_reg(&found.gic, 0, &host.gicd, &host.gicd_size)) {
        panic("device tree: found no arm,gic-v3 with a register range");
    }
    regions = fdt_getprop(tree, found.gic.offset, "#redistributor-regions", &length);
    host.gicr_regions = regions != NULL && length == 4 ? fdt32_to_cpu(*regions) : 1;
    if (host.gicr_regions > HOST_GICR_REGIONS) {
        panic("device tree: found %u redistributor regions, expected at most %u", host.gicr_regions,
              HOST_GICR_REGIONS);
    }
    for (unsigned i = 0; i < host.gicr_regions; i++) {
        if (!read_reg(&found.gic, 1 + i, &host.gicr[i].base, &host.gicr[i].size)) {
            panic("device tree: arm,gic-v3: found no register range for redistributor region %u",
                  i);
        }
    }
}

static void find_psci(void) {
    const char *method = NULL;

    if (found.psci.offset != 0) {
        method = read_text(&found.psci, "method");
    }
    if (method == NULL) {
        panic("device tree: found no PSCI 0.2 or later firmware");
    }
    if (strcmp(method, "smc") != 0) {
        panic("device tree: psci: found method %s, expected smc at EL2", method);
    }
}

void host_read_tree(const void *fdt) {
    tree = fdt;
    walk_tree();
    find_console();
    find_memory();
    find_archive();
    find_gic();
    find_psci();
}

/* The boot pCPU is number 0 whatever the tree's order; others as the tree lists them. */
void host_read_cpus(void) {
    uint64_t boot = read_sysreg(MPIDR_EL1) & MPIDR_AFFINITY;

    pcpus[0]->arch.mpidr = boot;
    pcpus[0]->arch.kick = gic_kick_value(boot);
    pcpu_count = 1;
    for (unsigned n = 0; n < found.cpu_count && pcpu_count < PCPU_MAX; n++) {
        int length, cells = found.cpus[n].address_cells;
        const fdt32_t *reg = fdt_getprop(tree, found.cpus[n].offset, "reg", &length);
        if (reg == NULL || cells < 1 || length < 4 * cells || read_cells(reg, cells) == boot) {
            continue;
        }
        struct pcpu *p = mem_alloc(sizeof(*p));
        p->index = pcpu_count;
        p->arch.mpidr = read_cells(reg, cells);
        p->arch.kick = gic_kick_value(p->arch.mpidr);
        pcpus[pcpu_count++] = p;
    }
}

int64_t host_psci(uint32_t function, uint64_t a, uint64_t b, uint64_t c) {
    register uint64_t x0 __asm__("x0") = function;
    register uint64_t x1 __asm__("x1") = a;
    register uint64_t x2 __asm__("x2") = b;
    register uint64_t x3 __asm__("x3") = c;

    __asm__ volatile("smc #0"
                     : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
                     :
                     : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15",
                       "x16", "x17", "memory");
    return (int64_t)x0;
}
