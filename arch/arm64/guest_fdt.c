/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guest's device tree: QEMU's virt with what there is here, node for node (hw/arm/virt.c), so
 * that whatever finds its way there does here. Bindings: Linux' Documentation/devicetree/bindings.
 */
#include "arch/arm64/guest_fdt.h"

#include <libfdt.h>

#include "arch/arm64/guest_map.h"
#include "arch/arm64/vgic.h"
#include "hyp/arch.h"
#include "hyp/boot_data.h"
#include "hyp/print.h"
#include "hyp/string.h"
#include "hyp/vm.h"

#define PHANDLE_GIC   1u
#define PHANDLE_CLOCK 2u

/* interrupts = <type number flags> of arm,gic-v3.yaml. */
#define GIC_SPI    0u
#define GIC_PPI    1u
#define LEVEL_HIGH 4u

/* PSCI 0.1 let the tree choose the numbers; QEMU gives those of 0.2 (DEN0022 5.1), 64 bits wide. */
#define PSCI_CPU_SUSPEND 0xc4000001u
#define PSCI_CPU_OFF     0x84000002u
#define PSCI_CPU_ON      0xc4000003u
#define PSCI_MIGRATE     0xc4000005u

/* A tree being written. The first error stays, and nothing is written after it. */
struct writer {
    void *fdt;
    int error;
};

static void begin(struct writer *w, const char *name) {
    w->error = w->error != 0 ? w->error : fdt_begin_node(w->fdt, name);
}

/* A node name with its unit address. */
static void begin_at(struct writer *w, const char *name, uint64_t address) {
    char full[40];

    print_to(full, sizeof(full), "%s@%lx", name, address);
    begin(w, full);
}

static void end(struct writer *w) {
    w->error = w->error != 0 ? w->error : fdt_end_node(w->fdt);
}

static void bytes(struct writer *w, const char *name, const void *value, size_t size) {
    w->error = w->error != 0 ? w->error : fdt_property(w->fdt, name, value, (int)size);
}

static void flag(struct writer *w, const char *name) {
    bytes(w, name, NULL, 0);
}

static void text(struct writer *w, const char *name, const char *value) {
    bytes(w, name, value, strlen(value) + 1);
}

/* Several strings: a literal with NULs between them. */
#define texts(w, name, literal) bytes(w, name, literal, sizeof(literal))

static void cells(struct writer *w, const char *name, const uint32_t *value, size_t count) {
    fdt32_t big_endian[16];

    for (size_t i = 0; i < count; i++) {
        big_endian[i] = cpu_to_fdt32(value[i]);
    }
    bytes(w, name, big_endian, count * sizeof(big_endian[0]));
}

static void cell(struct writer *w, const char *name, uint32_t value) {
    cells(w, name, &value, 1);
}

/* 64-bit values, two cells each. */
static void quads(struct writer *w, const char *name, const uint64_t *value, size_t count) {
    fdt64_t big_endian[8];

    for (size_t i = 0; i < count; i++) {
        big_endian[i] = cpu_to_fdt64(value[i]);
    }
    bytes(w, name, big_endian, count * sizeof(big_endian[0]));
}

static void address_cells(struct writer *w, uint32_t address, uint32_t size) {
    cell(w, "#address-cells", address);
    cell(w, "#size-cells", size);
}

static void write_chosen(struct writer *w, const struct guest_fdt *guest) {
    begin(w, "chosen");
    if (guest->cmdline[0] != '\0') {
        text(w, "bootargs", guest->cmdline);
    }
    if (guest->initrd_end != guest->initrd_start) {
        quads(w, "linux,initrd-start", &guest->initrd_start, 1);
        quads(w, "linux,initrd-end", &guest->initrd_end, 1);
    }
    text(w, "stdout-path", "/pl011@9000000");
    end(w);
    begin(w, "aliases");
    text(w, "serial0", "/pl011@9000000");
    end(w);
}

static void write_cpus(struct writer *w, const struct guest_fdt *guest) {
    begin(w, "cpus");
    address_cells(w, 1, 0);
    for (unsigned i = 0; i < guest->vcpus; i++) {
        uint32_t affinity = (uint32_t)vgic_mpidr(i) & 0xffffff; /* Aff2..Aff0: one cell is enough */
        begin_at(w, "cpu", affinity);
        text(w, "device_type", "cpu");
        text(w, "compatible", "arm,armv8");
        cell(w, "reg", affinity);
        text(w, "enable-method", "psci");
        end(w);
    }
    end(w);
}

static void write_memory(struct writer *w, const struct guest_fdt *guest) {
    const uint64_t reg[] = {guest->ram_base, guest->ram_size};

    begin_at(w, "memory", guest->ram_base);
    text(w, "device_type", "memory");
    quads(w, "reg", reg, 2);
    end(w);
}

static void write_firmware(struct writer *w) {
    begin(w, "psci");
    texts(w, "compatible", "arm,psci-1.0\0arm,psci-0.2\0arm,psci");
    text(w, "method", "hvc");
    cell(w, "cpu_suspend", PSCI_CPU_SUSPEND);
    cell(w, "cpu_off", PSCI_CPU_OFF);
    cell(w, "cpu_on", PSCI_CPU_ON);
    cell(w, "migrate", PSCI_MIGRATE);
    end(w);
}

static void write_timer(struct writer *w) {
    const uint32_t interrupts[] = {
        GIC_PPI, GUEST_PPI_TIMER_SECURE, LEVEL_HIGH, GIC_PPI, GUEST_PPI_TIMER_PHYS, LEVEL_HIGH,
        GIC_PPI, GUEST_PPI_TIMER_VIRT,   LEVEL_HIGH, GIC_PPI, GUEST_PPI_TIMER_HYP,  LEVEL_HIGH,
    };

    begin(w, "timer");
    texts(w, "compatible", "arm,armv8-timer\0arm,armv7-timer");
    cells(w, "interrupts", interrupts, 12);
    flag(w, "always-on"); /* it wakes a vCPU from any suspend state */
    end(w);
}

/* Regions as long as there are frames in them: a guest may walk them until GICR_TYPER.Last. */
static void write_gic(struct writer *w, const struct guest_fdt *guest) {
    unsigned low = guest->vcpus < GUEST_GICR0_VCPUS ? guest->vcpus : GUEST_GICR0_VCPUS;
    unsigned high = guest->vcpus - low;
    const uint64_t reg[] = {
        GUEST_GICD,  GUEST_GICD_SIZE,
        GUEST_GICR0, low * (uint64_t)VGIC_REDIST_SIZE,
        GUEST_GICR1, high * (uint64_t)VGIC_REDIST_SIZE,
    };

    begin_at(w, "intc", GUEST_GICD);
    text(w, "compatible", "arm,gic-v3");
    cell(w, "#interrupt-cells", 3);
    flag(w, "interrupt-controller");
    address_cells(w, 2, 2);
    flag(w, "ranges");
    cell(w, "#redistributor-regions", high != 0 ? 2 : 1);
    quads(w, "reg", reg, high != 0 ? 6 : 4);
    cell(w, "phandle", PHANDLE_GIC);
    end(w);
}

static void write_uart(struct writer *w) {
    const uint64_t reg[] = {GUEST_UART, GUEST_UART_SIZE};
    const uint32_t interrupt[] = {GIC_SPI, GUEST_SPI_UART, LEVEL_HIGH};
    const uint32_t clocks[] = {PHANDLE_CLOCK, PHANDLE_CLOCK};

    begin(w, "apb-pclk");
    text(w, "compatible", "fixed-clock");
    cell(w, "#clock-cells", 0);
    cell(w, "clock-frequency", GUEST_CLOCK_HZ);
    text(w, "clock-output-names", "clk24mhz");
    cell(w, "phandle", PHANDLE_CLOCK);
    end(w);

    begin_at(w, "pl011", GUEST_UART);
    texts(w, "compatible", "arm,pl011\0arm,primecell");
    quads(w, "reg", reg, 2);
    cells(w, "interrupts", interrupt, 3);
    cells(w, "clocks", clocks, 2);
    texts(w, "clock-names", "uartclk\0apb_pclk");
    end(w);
}

int guest_fdt_create(void *buf, size_t size, const struct guest_fdt *guest) {
    struct writer w = {buf, fdt_create(buf, (int)size)};

    w.error = w.error != 0 ? w.error : fdt_finish_reservemap(buf);
    begin(&w, "");
    text(&w, "compatible", "linux,dummy-virt");
    text(&w, "model", "linux,dummy-virt");
    address_cells(&w, 2, 2);
    cell(&w, "interrupt-parent", PHANDLE_GIC);
    write_chosen(&w, guest);
    write_memory(&w, guest);
    write_cpus(&w, guest);
    write_firmware(&w);
    write_timer(&w);
    write_gic(&w, guest);
    write_uart(&w);
    end(&w);
    return w.error != 0 ? w.error : fdt_finish(buf);
}

/* /chosen of a tree that is open for changes; made when there is none. */
static int chosen_node(void *fdt) {
    int node = fdt_path_offset(fdt, "/chosen");

    return node == -FDT_ERR_NOTFOUND ? fdt_add_subnode(fdt, 0, "chosen") : node;
}

int guest_fdt_adapt(void *buf, size_t used, size_t size, const struct guest_fdt *guest) {
    int error = fdt_check_full(buf, used);

    if (error == 0 && fdt_off_dt_struct(buf) % 4 != 0) { /* which libfdt lets pass */
        error = -FDT_ERR_ALIGNMENT;
    }
    if (error != 0 || (error = fdt_open_into(buf, buf, (int)size)) != 0) {
        return error;
    }
    int node = chosen_node(buf);
    if (node < 0) {
        return node;
    }
    if (guest->cmdline[0] != '\0' && (error = fdt_setprop(buf, node, "bootargs", guest->cmdline,
                                                          (int)strlen(guest->cmdline) + 1)) != 0) {
        return error;
    }
    if (guest->initrd_end != guest->initrd_start &&
        ((error = fdt_setprop_u64(buf, node, "linux,initrd-start", guest->initrd_start)) != 0 ||
         (error = fdt_setprop_u64(buf, node, "linux,initrd-end", guest->initrd_end)) != 0)) {
        return error;
    }
    error = fdt_pack(buf);
    /* Of a tree in an old version not all is checked before it is turned into one of today's. */
    return error != 0 ? error : fdt_check_full(buf, size);
}

static const char *explain(int error) {
    switch (-error) {
    case FDT_ERR_BADMAGIC:
        return "dtb: found no device tree blob in the file, expected magic d00dfeed at its start";
    case FDT_ERR_TRUNCATED:
        return "dtb: found a device tree blob that is cut off, expected as many bytes as it says";
    case FDT_ERR_NOSPACE:
        return "dtb: found no room in the device tree for bootargs and initrd, expected at most 4 "
               "KiB of them";
    default:
        return "dtb: found a damaged device tree blob, expected one that `dtc -I dtb` can read";
    }
}

const char *arch_vm_boot_data(struct vm *vm) {
    const struct load_job *job = &vm->load;
    const struct guest_fdt guest = {
        .cmdline = vm->config->cmdline,
        .ram_base = vm->ram_ipa.v,
        .ram_size = vm->ram_size,
        .initrd_start = job->initrd_ipa,
        .initrd_end = job->initrd_ipa + job->initrd_size,
        .vcpus = vm->config->vcpus,
    };
    uint64_t room = boot_data_room(job);
    void *buf = vm_ram(vm, (ipa_t){job->dtb_ipa}, room);
    int error;

    if (buf == NULL) {
        return "device tree: found no memory at its address (an error of the loader)";
    }
    if (job->dtb == NULL) {
        error = guest_fdt_create(buf, room, &guest);
    } else {
        memcpy(buf, job->dtb, job->dtb_size);
        error = guest_fdt_adapt(buf, job->dtb_size, room, &guest);
    }
    arch_sync_guest_memory(buf, room);
    return error == 0 ? NULL : explain(error);
}
