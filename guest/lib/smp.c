/* SPDX-License-Identifier: GPL-2.0-only */
/* Start of the library on CPU 0 and on secondaries. */
#include "guest.h"

unsigned cpu_count;

void guest_start(const uint8_t *tree);
void secondary_start(struct cpu *c);

static void find_machine(void) {
    int memory = fdt_find("/memory", 0), parent = fdt_find("/cpus", 0);
    const uint8_t *reg = fdt_prop(memory, "reg", NULL);
    unsigned cells = fdt_u32(parent, "#address-cells", 0, 1);

    if (!reg)
        die("no memory in the device tree");
    ram_base = fdt_cells(reg, 2);
    ram_size = fdt_cells(reg + 8, 2);
    for (cpu_count = 0; cpu_count < MAX_CPUS; cpu_count++) {
        int node = fdt_find("/cpus/cpu", cpu_count);

        reg = fdt_prop(node, "reg", NULL);
        if (!reg)
            break;
        cpus[cpu_count].mpidr = fdt_cells(reg, cells);
        cpus[cpu_count].index = cpu_count;
        cpus[cpu_count].stack_top = cpus[0].stack_top + STACK_SIZE * (uint64_t)cpu_count;
    }
    if (!cpu_count)
        die("no cpu in the device tree");
}

void guest_start(const uint8_t *tree) {
    extern char stacks[];

    cpus[0].stack_top = (uintptr_t)stacks + STACK_SIZE;
    cpus[0].online = 1;
    fdt = tree;
    if (!fdt_valid())
        die("no device tree at 0x%lx", (uintptr_t)tree);
    find_machine();
    mmu_init();
    mmu_on();
    print("# %s: %u cpus, %lu MiB at 0x%lx, image at 0x%lx, counter %lu Hz\n", test_name, cpu_count,
          ram_size >> 20, ram_base, (uintptr_t)_head, freq());
    test_main();
    tap_done();
}

void secondary_start(struct cpu *c) {
    mmu_on();
    __atomic_add_fetch(&c->online, 1, __ATOMIC_RELEASE);
    c->fn(c->arg);
    psci(PSCI_CPU_OFF, 0, 0, 0);
    die("CPU_OFF came back on cpu %u", c->index);
}

void smp_prepare(unsigned index, void (*fn)(uint64_t), uint64_t arg) {
    struct cpu *c = &cpus[index];

    c->fn = fn;
    c->arg = arg;
    c->online_before = c->online;
    c->expect = false;
    c->sync_hook = NULL;
    c->irq_hook = c->fiq_hook = NULL;
    /* The new CPU reads these before its MMU is on. */
    cache_clean(c, sizeof(*c));
    cache_clean(&mmu_root, sizeof(mmu_root));
}

int64_t smp_start(unsigned index, void (*fn)(uint64_t), uint64_t arg) {
    smp_prepare(index, fn, arg);
    return psci(PSCI_CPU_ON64, cpus[index].mpidr, (uintptr_t)secondary_entry,
                (uintptr_t)&cpus[index]);
}

void smp_start_all(void (*fn)(uint64_t), uint64_t arg) {
    for (unsigned i = 1; i < cpu_count; i++) {
        uint32_t before = cpus[i].online;
        int64_t r = smp_start(i, fn, arg);

        if (r)
            die("CPU_ON of cpu %u (mpidr 0x%lx) gave %ld", i, cpus[i].mpidr, r);
        if (!wait_for(__atomic_load_n(&cpus[i].online, __ATOMIC_ACQUIRE) != before, 5000000))
            die("cpu %u did not come in 5 s", i);
    }
}

bool smp_wait_off(unsigned index) {
    struct cpu *c = &cpus[index];

    /* QEMU's own PSCI says "off" until a CPU that was started really runs. */
    return wait_for(__atomic_load_n(&c->online, __ATOMIC_ACQUIRE) != c->online_before, 5000000) &&
           wait_for(psci(PSCI_AFFINITY_INFO64, cpus[index].mpidr, 0, 0) == 1, 5000000);
}

void smp_wait_all_off(void) {
    for (unsigned i = 1; i < cpu_count; i++) {
        if (!smp_wait_off(i))
            die("cpu %u is not off after 5 s", i);
    }
}
