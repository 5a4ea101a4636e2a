/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As many CPUs as the device tree lists: numbering (C02), redistributors (G21), remote
 * redistributor and routing registers (G03), SGI affinity (G08), wake-ups in every state of the
 * target (P21).
 */
#include "irq.h"

const char *const test_name = "smp";

#define SGI_RING  1u
#define SGI_STOP  2u
#define SGI_HELLO 3u
#define SPI       60u
#define PPI       20u

static volatile uint32_t stop, ready, busy;
static volatile uint32_t laps, laps_wanted;
static volatile uint64_t mpidr_seen[MAX_CPUS];

static unsigned next_cpu(unsigned i) {
    return i + 1 < cpu_count ? i + 1 : 0;
}

static void pass_on(uint32_t id) {
    unsigned me = this_cpu()->index;

    if (id != SGI_RING)
        return;
    if (me == 0 && ++laps >= laps_wanted)
        return;
    gic_sgi(SGI_RING, cpus[next_cpu(me)].mpidr);
}

static void worker(uint64_t arg) {
    unsigned me = this_cpu()->index;

    mpidr_seen[me] = read_sysreg(mpidr_el1) & 0xff00fffffful;
    gic_cpu_init();
    irq_install()->during = pass_on;
    (void)arg;
    write32(this_cpu()->gicr + GICR_SGI + GICD_ISENABLER, 0xffff);
    __atomic_add_fetch(&ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
        irq_enable();
        if (busy)
            continue;
        irq_disable();
        if (!stop && !busy)
            wfi();
    }
    irq_disable();
}

static void c02_numbers(void) {
    unsigned mpidr_wrong = 0, typer_wrong = 0, number_wrong = 0;
    uint64_t seen_numbers = 0;

    mpidr_seen[0] = read_sysreg(mpidr_el1) & 0xff00fffffful;
    for (unsigned i = 0; i < cpu_count; i++) {
        mpidr_wrong += mpidr_seen[i] != cpus[i].mpidr;
        typer_wrong += gic_redist[i] == 0;
        uint64_t typer = read64(gic_redist[i] + GICR_TYPER);
        uint64_t number = typer >> 8 & 0xffff;

        number_wrong +=
            number >= cpu_count || (i < 64 && (seen_numbers >> (number & 63) & 1) && number < 64);
        if (number < 64)
            seen_numbers |= 1ul << number;
    }
    check_eq("C02-mpidr-is-device-tree-reg", mpidr_wrong, 0);
    check_eq("C02-redistributor-for-each", typer_wrong, 0);
    check_eq("C02-processor-numbers-unique", number_wrong, 0);
    for (unsigned i = 0, twice = 0; i < cpu_count; i++) {
        for (unsigned j = 0; j < i; j++)
            twice += cpus[i].mpidr == cpus[j].mpidr;
        if (i == cpu_count - 1)
            check_eq("C02-mpidrs-unique", twice, 0);
    }
    /* no more than 16 in a cluster: SGI target lists have 16 bits */
    unsigned wide = 0;

    for (unsigned i = 0; i < cpu_count; i++)
        wide += (cpus[i].mpidr & 0xff) > 15;
    check_eq("C02-aff0-below-16", wide, 0);
}

static void g21_redistributors(void) {
    check_eq("G21-frames-until-last", gic_frames, cpu_count);
    if (native()) {
        tap_skip("G21-region-length", "the emulator's region has room for more");
        return;
    }
    int node = fdt_find("/intc", 0);
    uint32_t len = 0;

    if (node < 0)
        node = fdt_find("/interrupt-controller", 0);
    const uint8_t *reg = fdt_prop(node, "reg", &len);
    uint64_t total = 0;

    for (uint32_t i = 1; 16 * (i + 1) <= len; i++)
        total += fdt_cells(reg + (size_t)16 * i + 8, 2);
    check_eq("G21-region-length", total, cpu_count * 0x20000ul);
    check_eq("G21-regions-counted", fdt_u32(node, "#redistributor-regions", 0, 1), len / 16 - 1);
}

static void g03_remote_registers(void) {
    unsigned target = cpu_count > 2 ? 2 : cpu_count - 1, wrong = 0;
    static uint32_t enabled[MAX_CPUS];
    static uint8_t priority[MAX_CPUS];

    for (unsigned i = 0; i < cpu_count; i++) {
        enabled[i] = read32(gic_redist[i] + GICR_SGI + GICD_ISENABLER);
        priority[i] = read8(gic_redist[i] + GICR_SGI + GICD_IPRIORITYR + PPI);
    }
    uint64_t frame = gic_redist[target] + GICR_SGI;

    write8(frame + GICD_IPRIORITYR + PPI, 0x38);
    write32(frame + GICD_ISENABLER, 1u << PPI);
    for (unsigned i = 0; i < cpu_count; i++) {
        uint32_t e = read32(gic_redist[i] + GICR_SGI + GICD_ISENABLER);
        uint8_t p = read8(gic_redist[i] + GICR_SGI + GICD_IPRIORITYR + PPI);

        if (i == target)
            wrong += e != (enabled[i] | 1u << PPI) || p != 0x38;
        else
            wrong += e != enabled[i] || p != priority[i];
    }
    check_eq("G03-only-the-target-frame-changes", wrong, 0);

    /* PPI made pending from outside: arrives there and nowhere else */
    uint32_t before = irqs[target].count[PPI];

    write32(frame + GICD_ISPENDR, 1u << PPI);
    check_true("G03-remote-ppi-arrives", wait_for(irqs[target].count[PPI] == before + 1, 1000000));
    write32(frame + GICD_ICENABLER, 1u << PPI);
}

static void g03_remote_routes(void) {
    unsigned target = cpu_count > 2 ? 2 : cpu_count - 1;
    uint64_t router = GICD_BASE + GICD_IROUTER + 8 * SPI, value = cpus[target].mpidr;
    uint32_t before;

    gic_config(SPI, true);
    for (unsigned way = 0; way < 3; way++) {
        char name[40];

        write64(router, cpus[0].mpidr);
        if (way == 0) {
            write64(router, value);
        } else if (way == 1) {
            write32(router, (uint32_t)value);
            write32(router + 4, (uint32_t)(value >> 32));
        } else {
            write32(router + 4, (uint32_t)(value >> 32));
            write32(router, (uint32_t)value);
        }
        format(name, sizeof(name), "G03-irouter-way-%u-reads-back", way);
        check_eq(name, read64(router), value);
        format(name, sizeof(name), "G03-irouter-way-%u-halves", way);
        check_eq(name, read32(router) | (uint64_t)read32(router + 4) << 32, value);
        gic_enable(SPI);
        before = irqs[target].count[SPI];
        gic_set(SPI, GICD_ISPENDR);
        format(name, sizeof(name), "G03-irouter-way-%u-spi-arrives", way);
        check_true(name, wait_for(irqs[target].count[SPI] == before + 1, 1000000));
    }
    /* the upper half alone: Aff3 is kept apart from the mode bit in the lower half */
    write64(router, 0);
    write32(router + 4, 0x5);
    check_eq("G03-irouter-aff3", read64(router) >> 32, 5);
    write32(router + 4, 0);
    /* pending for one CPU, then routed to another one while that is disabled */
    gic_disable(SPI);
    gic_set(SPI, GICD_ISPENDR);
    write64(router, cpus[next_cpu(target)].mpidr);
    before = irqs[next_cpu(target)].count[SPI];
    irq_enable();
    gic_enable(SPI);
    check_true("G03-pending-follows-new-route",
               wait_for(irqs[next_cpu(target)].count[SPI] == before + 1, 1000000));
    irq_disable();
    gic_disable(SPI);
}

static uint32_t hellos(void) {
    uint32_t sum = 0;

    for (unsigned i = 0; i < cpu_count; i++)
        sum += irqs[i].count[SGI_HELLO];
    return sum;
}

static void g08_affinity(void) {
    uint32_t before;

    /* each CPU alone, and nobody else */
    unsigned wrong = 0;

    for (unsigned i = 1; i < cpu_count; i++) {
        uint32_t sum = hellos(), own = irqs[i].count[SGI_HELLO];

        gic_sgi(SGI_HELLO, cpus[i].mpidr);
        wrong += !wait_for(irqs[i].count[SGI_HELLO] == own + 1, 1000000) || hellos() != sum + 1;
    }
    check_eq("G08-sgi-to-each-alone", wrong, 0);

    /* affinities that do not exist: Aff1 = 0x7f, Aff2 = 3, Aff3 = 9 */
    before = hellos();
    gic_sgi(SGI_HELLO, 0x7f00);
    gic_sgi(SGI_HELLO, 0x30000);
    gic_sgi(SGI_HELLO, 0x900000000ul);
    write_sysreg(icc_sgi1r_el1, (uint64_t)SGI_HELLO << 24); /* empty list */
    spin_us(500);
    check_eq("G08-nobody-by-wrong-affinity", hellos() + gic_get(SGI_HELLO, GICD_ISPENDR), before);

    /* the whole first cluster by list: all but this CPU have interrupts on */
    uint32_t first = 0;

    for (unsigned i = 1; i < cpu_count; i++)
        first += (cpus[i].mpidr & ~0xful) == 0;
    before = hellos();
    write_sysreg(icc_sgi1r_el1, (uint64_t)SGI_HELLO << 24 | 0xfffe);
    isb();
    check_true("G08-list-of-cluster-0", wait_for(hellos() == before + first, 1000000));
    /* all others by the routing mode bit, and not oneself */
    before = hellos();
    write_sysreg(icc_sgi1r_el1, 1ul << 40 | (uint64_t)SGI_HELLO << 24);
    isb();
    check_true("G08-all-others", wait_for(hellos() == before + cpu_count - 1, 1000000));
    check_true("G08-not-oneself", !gic_get(SGI_HELLO, GICD_ISPENDR));
    if (cpu_count < 17) {
        tap_skip("G08-other-cluster", "fewer than 17 CPUs");
        return;
    }
    uint32_t cpu16 = irqs[16].count[SGI_HELLO];

    before = hellos();
    write_sysreg(icc_sgi1r_el1, 1ul << 16 | (uint64_t)SGI_HELLO << 24 | 1);
    isb();
    check_true("G08-other-cluster", wait_for(irqs[16].count[SGI_HELLO] == cpu16 + 1, 1000000));
    spin_us(200);
    check_eq("G08-other-cluster-alone", hellos(), before + 1);
}

/* SGIs in a ring: each target is asleep, or spins with interrupts on. */
static void ring(const char *name) {
    irq_reset(&irqs[0]);
    irqs[0].during = pass_on;
    laps = 0;
    /* A CPU that spins may have to wait for its turn at each hop. */
    uint32_t busy_laps = cpu_count <= 4 ? 5 : cpu_count <= 8 ? 2 : 1;

    laps_wanted = (uint32_t)scaled(busy ? busy_laps : cpu_count <= 16 ? 100 : 10);
    gic_sgi_self(SGI_RING);
    uint64_t end = counter() + us_to_ticks(30000000); /* with threads that is the machine's time */

    while (laps < laps_wanted && counter() < end) {
        if (!busy)
            wfi();
        irq_enable();
        isb();
        irq_disable();
    }
    check_eq(name, laps, laps_wanted);
}

static void p21_states(void) {
    unsigned last = cpu_count - 1;
    uint32_t before;

    /* (c) blocked: it had time enough to take what was sent to all before, and to reach WFI */
    spin_us(20000);
    before = irqs[last].count[SGI_HELLO];
    gic_sgi(SGI_HELLO, cpus[last].mpidr);
    check_true("P21-sgi-wakes-blocked",
               wait_for(irqs[last].count[SGI_HELLO] == before + 1, 1000000));
    spin_us(500);
    gic_config(SPI, true);
    gic_route(SPI, cpus[last].mpidr);
    gic_enable(SPI);
    before = irqs[last].count[SPI];
    gic_set(SPI, GICD_ISPENDR);
    check_true("P21-spi-wakes-blocked", wait_for(irqs[last].count[SPI] == before + 1, 1000000));
    /* a level line goes up for a blocked target: UART transmit interrupt */
    spin_us(500);
    gic_route(INTID_UART, cpus[last].mpidr);
    gic_config(INTID_UART, false);
    before = irqs[last].count[INTID_UART];
    irqs[last].during = NULL;
    gic_enable(INTID_UART);
    write32(UART_BASE + 0x38, 0x20);
    check_true("P21-uart-wakes-blocked", wait_for(irqs[last].count[INTID_UART] != before, 1000000));
    write32(UART_BASE + 0x38, 0);
    gic_disable(INTID_UART);
    irqs[last].during = pass_on;
    /* (a), (b): running or runnable */
    busy = 1;
    gic_sgi(SGI_HELLO, cpus[last].mpidr);
    spin_us(100);
    before = irqs[last].count[SGI_HELLO];
    gic_sgi(SGI_HELLO, cpus[last].mpidr);
    check_true("P21-sgi-reaches-running",
               wait_for(irqs[last].count[SGI_HELLO] == before + 1, 1000000));
    before = irqs[last].count[SPI];
    gic_set(SPI, GICD_ISPENDR);
    check_true("P21-spi-reaches-running", wait_for(irqs[last].count[SPI] == before + 1, 1000000));
    gic_disable(SPI);
    busy = 0;
}

static void stop_all(void) {
    __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
    write_sysreg(icc_sgi1r_el1, 1ul << 40 | (uint64_t)SGI_STOP << 24);
    isb();
    smp_wait_all_off();
}

static void p21_powered_off(void) {
    unsigned last = cpu_count - 1;

    /* (d): to a CPU that is off: nothing happens, and it still starts */
    gic_sgi(SGI_HELLO, cpus[last].mpidr);
    gic_route(SPI, cpus[last].mpidr);
    gic_enable(SPI);
    gic_set(SPI, GICD_ISPENDR);
    spin_us(200);
    check_eq("P21-off-stays-off", psci(PSCI_AFFINITY_INFO64, cpus[last].mpidr, 0, 0), 1);
    stop = 0;
    ready = 0;
    if (smp_start(last, worker, 0))
        die("CPU_ON failed");
    wait_for(ready == 1, 2000000);
    check_true("P21-spi-waits-for-power-on", wait_for(irqs[last].count[SPI] == 1, 1000000));
    gic_disable(SPI);
    stop_all();
}

void test_main(void) {
    gic_init();
    gic_cpu_init();
    write32(this_cpu()->gicr + GICR_SGI + GICD_ISENABLER, 0xffff);
    irq_install();
    g21_redistributors();
    if (cpu_count < 2) {
        tap_skip("C02-G03-G08-P21", "one CPU");
        return;
    }
    uint64_t from = counter();

    smp_start_all(worker, 0);
    check_true("C02-all-online", wait_for(ready == cpu_count - 1, 5000000));
    tap_note("%u CPUs online after %lu us", cpu_count, ticks_to_us(counter() - from));
    c02_numbers();
    g03_remote_registers();
    g03_remote_routes();
    g08_affinity();
    ring("C02-sgi-ring-asleep");
    busy = 1;
    gic_sgi(SGI_HELLO, cpus[1].mpidr);
    write_sysreg(icc_sgi1r_el1, 1ul << 40 | (uint64_t)SGI_HELLO << 24);
    ring("C02-sgi-ring-spinning");
    busy = 0;
    p21_states();
    stop_all();
    p21_powered_off();
}
