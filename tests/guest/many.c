/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As many CPUs as there may be: every frame of all redistributor regions, SGIs to each CPU and to
 * whole clusters, an SPI to the last one, and all sending to one at a time (G24). Boot argument:
 * `rounds` of G24.
 */
#include "irq.h"

const char *const test_name = "many";

#define SGI_PING 2u
#define SGI_ALL  5u
#define SGI_STOP 7u
#define SPI      70u
#define FRAME    0x20000ul

static volatile uint32_t ready, stop, go;
static volatile uint32_t sent, seen; /* G24: messages sent, as the receiver last saw them */
static uint32_t rounds;

static void look_at_sent(uint32_t id) {
    if (id == SGI_ALL)
        seen = __atomic_load_n(&sent, __ATOMIC_SEQ_CST);
}

static void worker(uint64_t arg) {
    uint32_t done = 0;

    (void)arg;
    gic_cpu_init();
    irq_install();
    write32(this_cpu()->gicr + GICR_SGI + GICD_ISENABLER, 0xffff);
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&go, __ATOMIC_ACQUIRE) != done) {
            done++;
            __atomic_add_fetch(&sent, 1, __ATOMIC_SEQ_CST);
            gic_sgi(SGI_ALL, cpus[0].mpidr);
            continue;
        }
        wfi();
        irq_enable();
        isb();
        irq_disable();
    }
}

/* Each frame is the next CPU's, and Last is said by the last frame of each region and by no other.
 */
static unsigned frames_of_region(uint64_t base, uint64_t size, unsigned first) {
    unsigned count = (unsigned)(size / FRAME), wrong_last = 0, wrong_affinity = 0;
    unsigned wrong_number = 0, wrong_width = 0;
    char name[48];

    for (unsigned i = 0; i < count; i++) {
        uint64_t at = base + i * FRAME, typer = read64(at + GICR_TYPER);
        uint64_t affinity = (typer >> 32 & 0xffffff) | (typer >> 56) << 32;

        wrong_last += (typer >> 4 & 1) != (i == count - 1);
        wrong_number += (typer >> 8 & 0xffff) != first + i;
        wrong_affinity += first + i >= cpu_count || affinity != cpus[first + i].mpidr;
        wrong_width +=
            (read32(at + GICR_TYPER) | (uint64_t)read32(at + GICR_TYPER + 4) << 32) != typer;
    }
    format(name, sizeof(name), "G21-last-of-%u-from-cpu-%u", count, first);
    check_eq(name, wrong_last, 0);
    format(name, sizeof(name), "G21-affinities-from-cpu-%u", first);
    check_eq(name, wrong_affinity, 0);
    format(name, sizeof(name), "G21-numbers-from-cpu-%u", first);
    check_eq(name, wrong_number, 0);
    format(name, sizeof(name), "G21-halves-from-cpu-%u", first);
    check_eq(name, wrong_width, 0);
    if (base + size == UART_BASE) /* as on QEMU's virt, where the first region ends */
        return count;
    exc_expect();
    (void)read64(base + size + GICR_TYPER);
    format(name, sizeof(name), "G21-nothing-behind-cpu-%u", first + count - 1);
    check_eq(name, exc_end().count, 1);
    return count;
}

static void g21_regions(void) {
    static const uint64_t bases[] = {GICR_BASE, 0x4000000000ul};
    int node = fdt_find("/intc", 0);
    uint32_t len = 0, regions = fdt_u32(node, "#redistributor-regions", 0, 1);
    const uint8_t *reg = fdt_prop(node, "reg", &len);
    unsigned count = 0;

    check_eq("G21-regions", regions, cpu_count > 123 ? 2 : 1);
    check_eq("G21-reg-length", len, 16 * (regions + 1));
    for (uint32_t r = 0; r < regions && r < 2; r++) {
        uint64_t base = fdt_cells(reg + 16 * (r + 1ul), 2);

        check_eq(r ? "G21-second-region-at" : "G21-first-region-at", base, bases[r]);
        count += frames_of_region(base, fdt_cells(reg + 16 * (r + 1ul) + 8, 2), count);
    }
    check_eq("G21-a-frame-for-each-cpu", count, cpu_count);
}

static uint32_t pings(void) {
    uint32_t sum = 0;

    for (unsigned i = 1; i < cpu_count; i++)
        sum += irqs[i].count[SGI_PING];
    return sum;
}

static void sgis(void) {
    unsigned lost = 0;

    for (unsigned i = 1; i < cpu_count; i++) {
        gic_sgi(SGI_PING, cpus[i].mpidr);
        lost += !wait_for(irqs[i].count[SGI_PING] == 1, 1000000);
    }
    check_eq("C02-sgi-to-each-cpu", lost, 0);
    check_eq("C02-and-to-nobody-else", pings(), cpu_count - 1);

    /* each cluster of 16 as a whole; CPU 0 leaves itself out */
    for (unsigned first = 0; first < cpu_count; first += 16) {
        uint64_t mpidr = cpus[first].mpidr;

        write_sysreg(icc_sgi1r_el1, (mpidr >> 32 & 0xff) << 48 | (mpidr >> 16 & 0xff) << 32 |
                                        (uint64_t)SGI_PING << 24 | (mpidr >> 8 & 0xff) << 16 |
                                        (first ? 0xffff : 0xfffe));
    }
    isb();
    check_true("C02-sgi-to-each-cluster", wait_for(pings() == 2 * (cpu_count - 1), 5000000));
    write_sysreg(icc_sgi1r_el1, 1ul << 40 | (uint64_t)SGI_PING << 24);
    isb();
    check_true("C02-sgi-to-all-others", wait_for(pings() == 3 * (cpu_count - 1), 5000000));
    lost = 0;
    for (unsigned i = 1; i < cpu_count; i++)
        lost += irqs[i].count[SGI_PING] != 3;
    check_eq("C02-three-for-each", lost, 0);
}

static void spi_to_the_last(void) {
    unsigned last = cpu_count - 1;

    gic_config(SPI, true);
    gic_route(SPI, cpus[last].mpidr);
    check_eq("C02-route-to-the-last", read64(GICD_BASE + GICD_IROUTER + 8 * SPI), cpus[last].mpidr);
    gic_enable(SPI);
    gic_set(SPI, GICD_ISPENDR);
    check_true("C02-spi-arrives-there", wait_for(irqs[last].count[SPI] == 1, 1000000));
    gic_disable(SPI);
}

/*
 * G24: all send the same SGI to one CPU. They may merge, but one comes after the last was sent:
 * what was written before each SGI is seen by the handler of it or of a later one.
 */
static void g24_same_sgi(void) {
    unsigned missed = 0;
    uint32_t before = irqs[0].total;

    for (uint32_t round = 1; round <= rounds; round++) {
        uint32_t want = round * (cpu_count - 1);
        uint64_t end = counter() + us_to_ticks(2000000);

        __atomic_store_n(&go, round, __ATOMIC_RELEASE);
        write_sysreg(icc_sgi1r_el1, 1ul << 40 | (uint64_t)SGI_PING << 24);
        isb();
        while (seen != want && counter() < end) {
            irq_enable();
            isb();
            irq_disable();
        }
        if (seen != want && missed++ < 4)
            tap_note("round %u: %u of %u seen", round, seen, want);
    }
    check_eq("G24-one-after-the-last-of-many-senders", missed, 0);
    tap_note("G24: %u sent, %u taken", sent, irqs[0].total - before);
}

void test_main(void) {
    rounds = (uint32_t)bootarg("rounds", 20);
    gic_init();
    gic_cpu_init();
    write32(this_cpu()->gicr + GICR_SGI + GICD_ISENABLER, 0xffff);
    irq_install()->during = look_at_sent;
    g21_regions();
    smp_start_all(worker, 0);
    check_true("C02-all-online", wait_for(ready == cpu_count - 1, 5000000));
    sgis();
    spi_to_the_last();
    g24_same_sgi();
    stop = 1;
    write_sysreg(icc_sgi1r_el1, 1ul << 40 | (uint64_t)SGI_STOP << 24);
    isb();
    smp_wait_all_off();
    check_eq("C02-all-off", psci(PSCI_AFFINITY_INFO64, cpus[cpu_count - 1].mpidr, 0, 0), 1);
}
