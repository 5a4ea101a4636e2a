/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/host.h"

#include <libfdt.h>

#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/uart.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/string.h"

#define MPIDR_AFFINITY 0xff00ffffffull

struct host host;
static const void *tree;

static int node_compatible(const char *compatible) {
    return fdt_node_offset_by_compatible(tree, -1, compatible);
}

/* A node that is there for others (the secure world, say) has a status other than "okay". */
static bool usable(int node) {
    const char *status = fdt_getprop(tree, node, "status", NULL);
    return status == NULL || strcmp(status, "okay") == 0 || strcmp(status, "ok") == 0;
}

/* `cells` 32-bit cells at p as one number. */
static uint64_t read_cells(const fdt32_t *p, int cells) {
    uint64_t value = 0;
    for (int i = 0; i < cells; i++) {
        value = value << 32 | fdt32_to_cpu(p[i]);
    }
    return value;
}

/* Entry `index` of a node's reg, as its parent's cell counts say. False: there is none. */
static bool read_reg(int node, unsigned index, uint64_t *base, uint64_t *size) {
    int parent = fdt_parent_offset(tree, node);
    int na = fdt_address_cells(tree, parent), ns = fdt_size_cells(tree, parent), length;
    const fdt32_t *reg = fdt_getprop(tree, node, "reg", &length);

    if (reg == NULL || na < 1 || ns < 0 ||
        (unsigned)length < (index + 1) * (unsigned)(na + ns) * sizeof(fdt32_t)) {
        return false;
    }
    reg += index * (unsigned)(na + ns);
    *base = read_cells(reg, na);
    *size = read_cells(reg + na, ns);
    return true;
}

/* INTID of a three-cell GIC interrupt specifier: type 0 is an SPI, 1 a PPI. */
static unsigned read_intid(int node, unsigned index) {
    int length;
    const fdt32_t *cells = fdt_getprop(tree, node, "interrupts", &length);
    if (cells == NULL || (unsigned)length < (index + 1) * 3 * sizeof(fdt32_t)) {
        return 0;
    }
    cells += 3 * index;
    return fdt32_to_cpu(cells[1]) + (fdt32_to_cpu(cells[0]) == 0 ? 32u : 16u);
}

/* Only a PL011 can be our console, the one that stdout-path names or else the first. */
static void find_console(void) {
    int chosen = fdt_path_offset(tree, "/chosen"), length, node = -1;
    const char *path = fdt_getprop(tree, chosen, "stdout-path", &length);

    if (path != NULL) {
        const char *options = memchr(path, ':', (size_t)length);
        node = options != NULL ? fdt_path_offset_namelen(tree, path, (int)(options - path))
                               : fdt_path_offset(tree, path);
    }
    if (node < 0 || fdt_node_check_compatible(tree, node, "arm,pl011") != 0) {
        node = node_compatible("arm,pl011");
        while (node >= 0 && !usable(node)) {
            node = fdt_node_offset_by_compatible(tree, node, "arm,pl011");
        }
    }
    uint64_t size;
    if (node < 0 || !read_reg(node, 0, &host.uart, &size)) {
        arch_halt(); /* nowhere to say so */
    }
    host.uart_intid = read_intid(node, 0);
    uart_init(host.uart);
}

static void find_memory(void) {
    int node, root = fdt_path_offset(tree, "/reserved-memory");
    uint64_t base, size;

    for (node = fdt_node_offset_by_prop_value(tree, -1, "device_type", "memory", 7); node >= 0;
         node = fdt_node_offset_by_prop_value(tree, node, "device_type", "memory", 7)) {
        for (unsigned i = 0; usable(node) && read_reg(node, i, &base, &size); i++) {
            mem_add((phys_t){base}, size);
        }
    }
    for (int i = 0; i < fdt_num_mem_rsv(tree); i++) {
        if (fdt_get_mem_rsv(tree, i, &base, &size) == 0) {
            mem_reserve((phys_t){base}, size);
        }
    }
    if (root >= 0) {
        fdt_for_each_subnode(node, tree, root) {
            for (unsigned i = 0; read_reg(node, i, &base, &size); i++) {
                mem_reserve((phys_t){base}, size);
            }
        }
    }
}

/* linux,initrd-start and -end may have one or two cells. */
static bool read_chosen(const char *name, uint64_t *value) {
    int length;
    const fdt32_t *cells = fdt_getprop(tree, fdt_path_offset(tree, "/chosen"), name, &length);
    if (cells == NULL || (length != 4 && length != 8)) {
        return false;
    }
    *value = read_cells(cells, length / 4);
    return true;
}

static void find_archive(void) {
    uint64_t end;
    if (read_chosen("linux,initrd-start", &host.archive) &&
        read_chosen("linux,initrd-end", &end) && end > host.archive) {
        host.archive_size = end - host.archive;
        mem_reserve((phys_t){host.archive}, host.archive_size);
    }
}

static void find_gic(void) {
    int node = node_compatible("arm,gic-v3"), length;
    const fdt32_t *regions;

    if (node < 0 || !read_reg(node, 0, &host.gicd, &host.gicd_size)) {
        panic("device tree: found no arm,gic-v3 with a register range");
    }
    regions = fdt_getprop(tree, node, "#redistributor-regions", &length);
    host.gicr_regions = regions != NULL && length == 4 ? fdt32_to_cpu(*regions) : 1;
    if (host.gicr_regions > HOST_GICR_REGIONS) {
        panic("device tree: found %u redistributor regions, expected at most %u",
              host.gicr_regions, HOST_GICR_REGIONS);
    }
    for (unsigned i = 0; i < host.gicr_regions; i++) {
        if (!read_reg(node, 1 + i, &host.gicr[i].base, &host.gicr[i].size)) {
            panic("device tree: arm,gic-v3: found no register range for redistributor region %u",
                  i);
        }
    }
}

/* The boot pCPU is number 0 whatever the tree's order; others as the tree lists them. */
static void find_cpus(void) {
    uint64_t boot = read_sysreg(MPIDR_EL1) & MPIDR_AFFINITY;
    int cpus = fdt_path_offset(tree, "/cpus"), node, length;
    int cells = fdt_address_cells(tree, cpus);

    pcpus[0]->arch.mpidr = boot;
    pcpu_count = 1;
    fdt_for_each_subnode(node, tree, cpus) {
        const char *type = fdt_getprop(tree, node, "device_type", &length);
        const fdt32_t *reg = fdt_getprop(tree, node, "reg", &length);
        if (type == NULL || strcmp(type, "cpu") != 0 || reg == NULL || length < 4 * cells) {
            continue;
        }
        uint64_t mpidr = read_cells(reg, cells);
        if (mpidr == boot || pcpu_count == PCPU_MAX) {
            continue;
        }
        struct pcpu *p = mem_alloc(sizeof(*p));
        p->index = pcpu_count;
        p->arch.mpidr = mpidr;
        pcpus[pcpu_count++] = p;
    }
}

static void find_psci(void) {
    int node = node_compatible("arm,psci-1.0"), length;
    if (node < 0) {
        node = node_compatible("arm,psci-0.2");
    }
    const char *method = node < 0 ? NULL : fdt_getprop(tree, node, "method", &length);
    if (method == NULL) {
        panic("device tree: found no PSCI 0.2 or later firmware");
    }
    host.psci_smc = strcmp(method, "smc") == 0;
    if (!host.psci_smc) {
        panic("device tree: psci: found method %s, expected smc at EL2", method);
    }
}

void host_read_tree(const void *fdt) {
    tree = fdt;
    find_console();
    find_memory();
    find_archive();
    find_gic();
    find_psci();
}

void host_read_cpus(void) {
    find_cpus();
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
