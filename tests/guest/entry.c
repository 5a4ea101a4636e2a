/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of a fresh vCPU at its first instruction (B03, T05), where the image was put (B01), and the
 * nodes of the device tree (B05). Built three times: entry, entry-offset (text_offset 0x80000), and
 * entry-raw (no Image header).
 */
#include "guest.h"

const char *const test_name = "entry";

static void boot_protocol(void) {
    const struct entry_state *e = &entry_state;

    check_eq("B03-x0-is-dtb", e->x[0], (uintptr_t)fdt);
    check_true("B03-dtb-aligned-8", (e->x[0] & 7) == 0);
    check_range("B03-dtb-size", fdt_size(), 64, 2ul << 20);
    check_true("B03-dtb-in-ram",
               e->x[0] >= ram_base && e->x[0] + fdt_size() <= ram_base + ram_size);
    check_true("B03-dtb-not-in-image",
               e->x[0] + fdt_size() <= (uintptr_t)_image || e->x[0] >= (uintptr_t)_end);
    check_eq("B03-x1-zero", e->x[1], 0);
    check_eq("B03-x2-zero", e->x[2], 0);
    check_eq("B03-x3-zero", e->x[3], 0);
    check_eq("B03-current-el", e->CurrentEL >> 2, 1);
    check_eq("B03-daif-masked", e->daif, 0x3c0);
    check_eq("B03-mmu-off", e->sctlr_el1 & 1, 0);
    check_eq("B03-dcache-off", e->sctlr_el1 >> 2 & 1, 0);
    check_eq("B03-little-endian", e->sctlr_el1 >> 24 & 3, 0);
    check_eq("B03-spsel", e->spsel, 1);

    int chosen = fdt_find("/chosen", 0);
    uint32_t len;
    const uint8_t *start = fdt_prop(chosen, "linux,initrd-start", &len);

    if (!start) {
        tap_skip("B03-initrd-window", "no initrd in this run");
    } else {
        uint64_t from = fdt_cells(start, len / 4);
        const uint8_t *stop = fdt_prop(chosen, "linux,initrd-end", &len);
        uint64_t to = stop ? fdt_cells(stop, len / 4) : 0;

        check_true("B03-initrd-window", from < to && from >= ram_base &&
                                            to <= ram_base + ram_size &&
                                            (to <= (uintptr_t)_image || from >= (uintptr_t)_end));
        tap_note("initrd 0x%lx..0x%lx", from, to);
    }

    /* Code that was written through the cache and synchronised is what runs. */
    uint64_t regs[31] = {7, 35};
    struct exc_info x = insn_exec(0x8b010000u, regs); /* add x0, x0, x1 */

    check_eq("B03-execute-after-sync", x.count ? 0 : regs[0], 42);
}

static void no_inherited_state(void) {
    const struct entry_state *e = &entry_state;
    uint64_t bits = 0;

    for (unsigned i = 4; i < 31; i++)
        bits |= e->x[i];
    /* Natively QEMU's boot stub leaves the entry address in x4. */
    if (native())
        tap_skip("T05-x4-x30-zero", "QEMU enters through a stub that uses x4");
    else
        check_eq("T05-x4-x30-zero", bits, 0);
    bits = 0;
    for (unsigned i = 0; i < 64; i++)
        bits |= e->v[i];
    check_eq("T05-v-registers-zero", bits, 0);
    check_eq("T05-fpcr-zero", e->fpcr, 0);
    check_eq("T05-fpsr-zero", e->fpsr, 0);
    check_eq("T05-icache-off", e->sctlr_el1 >> 12 & 1, 0);
    check_eq("T05-sctlr-sa-a-zero", e->sctlr_el1 & 0x2, 0);
    check_eq("T05-vbar", e->vbar_el1, 0);
    check_eq("T05-ttbr0", e->ttbr0_el1, 0);
    check_eq("T05-ttbr1", e->ttbr1_el1, 0);
    check_eq("T05-tcr", e->tcr_el1, 0);
    check_eq("T05-mair", e->mair_el1, 0);
    check_eq("T05-amair", e->amair_el1, 0);
    check_eq("T05-cpacr", e->cpacr_el1, 0);
    check_eq("T05-esr", e->esr_el1, 0);
    check_eq("T05-far", e->far_el1, 0);
    check_eq("T05-elr", e->elr_el1, 0);
    check_eq("T05-spsr", e->spsr_el1, 0);
    check_eq("T05-afsr", e->afsr0_el1 | e->afsr1_el1, 0);
    check_eq("T05-contextidr", e->contextidr_el1, 0);
    check_eq("T05-tpidr", e->tpidr_el0 | e->tpidrro_el0 | e->tpidr_el1, 0);
    check_eq("T05-sp-el0", e->sp_el0, 0);
    check_eq("T05-par-faultless", e->par_el1 & 1, 0);
    check_eq("T05-cntkctl", e->cntkctl_el1, 0);
    check_eq("T05-cntv-off", e->cntv_ctl_el0 & 3, 0);
    check_eq("T05-cntp-off", e->cntp_ctl_el0 & 3, 0);
    check_eq("T05-no-pending-exception", e->isr_el1, 0);
    check_eq("T05-csselr", e->csselr_el1, 0);
}

/* State that an earlier guest may have left in registers which start.S does not record. */
static void no_inherited_late_state(void) {
    uint64_t v, bits = 0;

    for (unsigned i = 0; i < 4; i++) {
        /* breakpoints and watchpoints: DBGBCR.E and DBGWCR.E clear */
        if (sysreg_get(SYSREG(2, 0, 0, i, 5), &v))
            bits |= v & 1;
        if (sysreg_get(SYSREG(2, 0, 0, i, 7), &v))
            bits |= v & 1;
    }
    check_eq("T05-no-breakpoints", bits, 0);
    if (sysreg_get(SYSREG(2, 0, 0, 2, 2), &v))
        check_eq("T05-mdscr-no-debug", v & 0xa001, 0);
    bits = 0;
    if ((read_sysreg(id_aa64isar1_el1) & 0xff0) != 0) {
        static const uint32_t keys[] = {
            SYSREG(3, 0, 2, 1, 0), SYSREG(3, 0, 2, 1, 1), SYSREG(3, 0, 2, 1, 2),
            SYSREG(3, 0, 2, 1, 3), SYSREG(3, 0, 2, 2, 0), SYSREG(3, 0, 2, 2, 1),
            SYSREG(3, 0, 2, 2, 2), SYSREG(3, 0, 2, 2, 3), SYSREG(3, 0, 2, 3, 0),
            SYSREG(3, 0, 2, 3, 1),
        };
        bool fine = true;

        for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
            fine = sysreg_get(keys[i], &v) && fine;
            bits |= v;
        }
        check_true("T05-pauth-keys-readable", fine);
        check_eq("T05-pauth-keys-zero", bits, 0);
    } else {
        tap_skip("T05-pauth-keys-zero", "no pointer authentication in the ID registers");
    }
    check_eq("T05-icc-sre", read_sysreg(icc_sre_el1) & 1, 1);
    check_eq("T05-icc-pmr", read_sysreg(icc_pmr_el1), 0);
    check_eq("T05-icc-groups-off", read_sysreg(icc_igrpen0_el1) | read_sysreg(icc_igrpen1_el1), 0);
    check_eq("T05-icc-eoimode", read_sysreg(icc_ctlr_el1) & 2, 0);
    check_eq("T05-icc-active-priorities", read_sysreg(icc_ap1r0_el1) | read_sysreg(icc_ap0r0_el1),
             0);
    check_eq("T05-icc-nothing-pending", read_sysreg(icc_hppir1_el1) & 0xffffff, INTID_NONE);
    check_eq("T05-gicd-off", read32(GICD_BASE + GICD_CTLR) & 3, 0);
    bits = 0;
    for (unsigned i = 1; i < 4; i++) {
        bits |= read32(GICD_BASE + GICD_ISENABLER + 4 * i);
        bits |= read32(GICD_BASE + GICD_ISACTIVER + 4 * i);
    }
    check_eq("T05-no-spi-enabled-or-active", bits, 0);
    bits = read32(GICR_BASE + GICR_SGI + GICD_ISACTIVER);
    bits |= read32(GICR_BASE + GICR_SGI + GICD_ISPENDR);
    check_eq("T05-no-ppi-pending-or-active", bits, 0);
}

static void placement(void) {
    /* The header's text_offset and magic, as this very image has them */
    uint64_t text_offset = *(const uint64_t *)(const void *)(_head + 8);
    uint32_t magic = *(const uint32_t *)(const void *)(_head + 56);
    uint64_t base = (uintptr_t)_head;

    check_true("B01-image-in-ram", base >= ram_base && (uintptr_t)_end <= ram_base + ram_size);
    if (magic == 0x644d5241)
        check_eq("B01-placed-at-2M-plus-text-offset", base & 0x1fffff, text_offset);
    else
        check_true("B01-raw-placed", base == ram_base || base == ram_base + 0x80000);

    /* BSS was ours alone: nobody's bytes in the part that the header counts but the file lacks */
    uint64_t bits = 0;

    for (const uint64_t *p = (const uint64_t *)((uintptr_t)_end - 200 * STACK_SIZE);
         p < (const uint64_t *)(const void *)_end; p++)
        bits |= *p;
    check_eq("B01-memory-after-image-zero", bits, 0);

    /* Memory that nobody loaded anything into is scrubbed. */
    bits = 0;
    uint64_t from = ram_free_start(), to = ram_base + ram_size;

    if (native() || fdt_prop(fdt_find("/chosen", 0), "linux,initrd-start", NULL)) {
        tap_skip("T05-memory-scrubbed", "an initrd or native boot data may lie in memory");
    } else {
        for (uint64_t a = from; a < to; a += 512)
            bits |= *(const volatile uint64_t *)a;
        check_eq("T05-memory-scrubbed", bits, 0);
    }
}

/* `found` one's position of the PPI in /timer: order sec, phys, virt, hyp */
static void timer_node(void) {
    static const uint32_t ppis[] = {13, 14, 11, 10};
    int node = fdt_find("/timer", 0);

    check_true("B05-timer", node >= 0 && fdt_compatible(node, "arm,armv8-timer"));
    for (unsigned i = 0; i < 4; i++) {
        char name[40];

        format(name, sizeof(name), "B05-timer-ppi-%u", ppis[i]);
        uint32_t type = fdt_u32(node, "interrupts", 3 * i, 99);
        uint32_t number = fdt_u32(node, "interrupts", 3 * i + 1, 99);
        uint32_t flags = fdt_u32(node, "interrupts", 3 * i + 2, 99) & 0xf;

        /* level: active high or low */
        tap_check(type == 1 && number == ppis[i] && (flags == 4 || flags == 8), name,
                  type << 16 | number << 8 | flags, 1u << 16 | ppis[i] << 8 | 4);
    }
}

static int by_compatible(const char *path, const char *what) {
    for (unsigned i = 0;; i++) {
        int node = fdt_find(path, i);

        if (node < 0 || fdt_compatible(node, what))
            return node;
    }
}

static void device_tree(void) {
    check_eq("B05-root-cells",
             fdt_u32(fdt_find("/", 0), "#address-cells", 0, 0) << 8 |
                 fdt_u32(fdt_find("/", 0), "#size-cells", 0, 0),
             0x202);
    timer_node();

    int node = by_compatible("/psci", "arm,psci-1.0");

    check_true("B05-psci-1.0", node >= 0);
    check_true("B05-psci-0.2", node >= 0 && fdt_compatible(node, "arm,psci-0.2"));
    check_true("B05-psci-method-hvc", !strcmp(fdt_string(node, "method"), "hvc"));

    node = by_compatible("/intc", "arm,gic-v3");
    if (node < 0)
        node = by_compatible("/interrupt-controller", "arm,gic-v3");
    check_true("B05-gic-v3", node >= 0);
    check_true("B05-gic-controller", fdt_prop(node, "interrupt-controller", NULL) != NULL);
    check_eq("B05-gic-cells", fdt_u32(node, "#interrupt-cells", 0, 0), 3);
    check_eq("B05-gic-distributor", fdt_u32(node, "reg", 1, 0), GICD_BASE);
    check_eq("B05-gic-redistributors", fdt_u32(node, "reg", 5, 0), GICR_BASE);
    check_eq("B05-interrupt-parent", fdt_u32(fdt_find("/", 0), "interrupt-parent", 0, 0),
             fdt_u32(node, "phandle", 0, 1));

    node = fdt_find("/memory", 0);
    check_true("B05-memory-type", !strcmp(fdt_string(node, "device_type"), "memory"));
    check_eq("B05-memory-base", ram_base, RAM_BASE);

    bool all = true;

    for (unsigned i = 0; i < cpu_count; i++) {
        node = fdt_find("/cpus/cpu", i);
        all = all && !strcmp(fdt_string(node, "device_type"), "cpu");
        all = all && (cpu_count == 1 || !strcmp(fdt_string(node, "enable-method"), "psci"));
    }
    check_true("B05-cpus-psci", all);
    check_eq("B05-cpu0-mpidr", cpus[0].mpidr, read_sysreg(mpidr_el1) & 0xff00fffffful);
}

static void device_tree_devices(void) {
    int node = fdt_find("/chosen", 0);

    check_true("B05-chosen", node >= 0);
    check_true("B05-stdout-path", fdt_string(node, "stdout-path")[0] != 0);
    node = by_compatible("/pl011", "arm,pl011");
    if (node < 0)
        node = by_compatible("/serial", "arm,pl011");
    if (node < 0)
        node = by_compatible("/uart", "arm,pl011");
    check_true("B05-pl011", node >= 0 && fdt_compatible(node, "arm,primecell"));
    check_eq("B05-pl011-base", fdt_u32(node, "reg", 1, 0), UART_BASE);
    check_eq("B05-pl011-spi",
             fdt_u32(node, "interrupts", 0, 99) << 16 | fdt_u32(node, "interrupts", 1, 99) << 8 |
                 fdt_u32(node, "interrupts", 2, 99),
             0x000104);
    uint32_t len = 0;

    fdt_prop(node, "clocks", &len);
    check_eq("B05-pl011-two-clocks", len, 8);
    check_true("B05-pl011-clock-names", !strcmp(fdt_string(node, "clock-names"), "uartclk"));
    node = by_compatible("/apb-pclk", "fixed-clock");
    if (node < 0)
        node = by_compatible("/clock", "fixed-clock");
    check_eq("B05-clock-24MHz", fdt_u32(node, "clock-frequency", 0, 0), 24000000);

    if (native()) {
        tap_skip("B05-no-its-no-pmu", "the emulator's own tree has both");
    } else {
        bool its = fdt_find("/intc/its", 0) >= 0 || fdt_find("/intc/msi-controller", 0) >= 0 ||
                   fdt_find("/interrupt-controller/msi-controller", 0) >= 0;

        check_true("B05-no-its-no-pmu", !its && fdt_find("/pmu", 0) < 0);
    }
}

void test_main(void) {
    boot_protocol();
    no_inherited_state();
    no_inherited_late_state();
    placement();
    device_tree();
    device_tree_devices();
}
