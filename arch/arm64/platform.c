/* SPDX-License-Identifier: GPL-2.0-only */
/* Start of the machine: what hyp/boot.c asks of arm64. */
#include <libfdt.h>

#include "arch/arm64/el2_state.h"
#include "arch/arm64/gic.h"
#include "arch/arm64/gic_virt.h"
#include "arch/arm64/guest_map.h"
#include "arch/arm64/host.h"
#include "arch/arm64/id_regs.h"
#include "arch/arm64/mmu.h"
#include "arch/arm64/platform.h"
#include "arch/arm64/stage2.h"
#include "arch/arm64/sysreg_access.h"
#include "arch/arm64/timer.h"
#include "arch/arm64/trap.h"
#include "arch/arm64/uart.h"
#include "core/port.h"
#include "hyp/arch.h"
#include "hyp/boot.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/vm.h"

#define STACK_SIZE      8192u
#define PSCI_CPU_ON     0xc4000003u
#define PSCI_SYSTEM_OFF 0x84000008u
#define START_SECONDS   2u /* a CPU that is not up by then will never be */

extern char _start_of_image[], _end_of_image[], _boot_stack_top[], secondary_entry[];

static struct pcpu boot_pcpu;
static _Atomic unsigned cpus_up;
static struct gic_virt_features features;

/* The device tree is the loader's: mapped read-only, kept out of what we give away. */
static void map_tree(const void *fdt) {
    uint64_t base = (uint64_t)fdt, first = base & ~(uint64_t)(PAGE_SIZE - 1);

    mmu_map(first, PAGE_SIZE, MMU_READ_ONLY, true);
    uint64_t end = base + (fdt_check_header(fdt) == 0 ? fdt_totalsize(fdt) : 0);
    if (end > first + PAGE_SIZE) {
        mmu_map(first + PAGE_SIZE, (end - first - 1) & ~(uint64_t)(PAGE_SIZE - 1), MMU_READ_ONLY,
                true);
    }
}

void arch_boot_init(void *firmware, struct boot_info *info) {
    boot_pcpu.stack_top = _boot_stack_top;
    pcpus[0] = &boot_pcpu;
    pcpu_count = 1;
    write_sysreg(TPIDR_EL2, (uint64_t)&boot_pcpu);
    map_tree(firmware);
    if (fdt_check_header(firmware) != 0) {
        arch_halt(); /* no tree, no console to say so */
    }
    host_read_tree(firmware);
    mem_reserve((phys_t){(uint64_t)_start_of_image}, (uint64_t)(_end_of_image - _start_of_image));
    mem_reserve((phys_t){(uint64_t)firmware}, fdt_totalsize(firmware));
    mmu_tables_from_memory();

    const char *why = el2_state_check();
    if (why != NULL) {
        panic("this CPU can't run us: %s", why);
    }
    host_read_cpus();
    if (host.archive_size != 0) {
        uint64_t first = host.archive & ~(uint64_t)(PAGE_SIZE - 1);
        mmu_map(first,
                (host.archive + host.archive_size - first + PAGE_SIZE - 1) &
                    ~(uint64_t)(PAGE_SIZE - 1),
                MMU_READ_ONLY, false);
        info->archive = (const void *)host.archive;
    } else {
        info->archive = NULL;
    }
    info->archive_size = host.archive_size;
    gic_init();
    gic_virt_features(&features);
    id_regs_init(id_read_hardware);
    el2_state_init();
}

void arch_cpu_init(struct pcpu *p) {
    const char *why = el2_state_check();

    if (why != NULL) {
        panic("CPU %u can't run us: %s", p->index, why);
    }
    if (p->index != 0 && !id_regs_init(id_read_hardware)) {
        panic("CPU %u lacks a feature that CPU 0 has", p->index);
    }
    el2_state_init();
    stage2_cpu_init();
    gic_cpu_init(p);
    traced_apply();
    timer_cpu_init();
    if (p->index == 0) {
        gic_enable_spi(host.uart_intid);
        uart_enable_interrupts();
    }
    atomic_fetch_add(&cpus_up, 1);
}

void secondary_main(struct pcpu *p) {
    write_sysreg(TPIDR_EL2, (uint64_t)p);
    boot_cpu_main(p);
}

void arch_start_cpus(void) {
    uint64_t deadline;

    for (unsigned i = 1; i < pcpu_count; i++) {
        char *stack = mem_alloc(PAGE_SIZE + STACK_SIZE);
        arch_unmap_page(stack);
        pcpus[i]->stack_top = stack + PAGE_SIZE + STACK_SIZE;
        int64_t result = host_psci(PSCI_CPU_ON, pcpus[i]->arch.mpidr, (uint64_t)secondary_entry,
                                   (uint64_t)pcpus[i]);
        if (result != 0) {
            panic("CPU %u (MPIDR %lx): firmware answered %ld to CPU_ON", i, pcpus[i]->arch.mpidr,
                  result);
        }
    }
    /* What guests see of the CPUs is settled when all have been looked at. */
    deadline = port_clock() + START_SECONDS * arch_clock_hz();
    while (atomic_load(&cpus_up) != pcpu_count - 1) {
        if (port_clock() > deadline) {
            panic("found %u of %u CPUs up after %u s", atomic_load(&cpus_up) + 1, pcpu_count,
                  START_SECONDS);
        }
        port_relax();
    }
}

uint64_t arch_image_size(void) {
    return (uint64_t)(_end_of_image - _start_of_image);
}

_Noreturn void arch_power_off(void) {
    host_psci(PSCI_SYSTEM_OFF, 0, 0, 0);
    arch_halt();
}

_Noreturn void arch_halt(void) {
    for (;;) {
        __asm__ volatile("wfi");
    }
}

ipa_t arch_vm_ram_base(void) {
    return (ipa_t){GUEST_RAM};
}

void arch_vm_init(struct vm *vm) {
    unsigned vcpus = vm->config->vcpus;
    uint64_t frames = (uint64_t)vcpus * VGIC_REDIST_SIZE;

    vm->arch.gicr0_size = frames < GUEST_GICR0_SIZE ? frames : GUEST_GICR0_SIZE;
    vm->arch.gicr1_size = frames - vm->arch.gicr0_size;
    stage2_init(vm);
    if (vm->index >= MMU_WINDOWS / MMU_WINDOW_SIZE) {
        panic("vm %s: found %u VMs, expected at most %lu", vm->config->name, vm->index + 1,
              MMU_WINDOWS / MMU_WINDOW_SIZE);
    }
    vm->ram = (uint8_t *)(MMU_WINDOWS + vm->index * MMU_WINDOW_SIZE);
    if (!vgic_vm_init(&vm->arch.vgic, vcpus, VGIC_MAX_SPIS, VGIC_VIRT_REGION0,
                      features.priority_bits)) {
        panic("vm %s: the interrupt controller can't serve %u vCPUs", vm->config->name, vcpus);
    }
    for (unsigned i = 0; i < vcpus; i++) {
        struct vgic_vcpu *g = &vm->vcpus[i]->arch.vgic;
        vgic_vcpu_init(&vm->arch.vgic, g, i, features.list_registers, features.trap_dir);
        vgic_hw_link(g, GIC_PPI_VTIMER, GIC_PPI_VTIMER);
    }
}

void arch_vm_map_ram(struct vm *vm, uint64_t offset, phys_t piece, uint64_t size) {
    mmu_map_window((uint64_t)vm->ram + offset, piece.v, size);
    stage2_map_ram(vm, (ipa_t){vm->ram_ipa.v + offset}, piece, size);
}

void arch_vm_reset(struct vm *vm) {
    vm->arch.cntvoff = vm->arch.cntpoff = 0; /* a pause of its last life is over */
    vgic_vm_reset(&vm->arch.vgic);
}

void arch_vm_clock_stood(struct vm *vm, uint64_t ticks) {
    vm->arch.cntvoff += ticks;
    vm->arch.cntpoff += ticks; /* from now on the guest's reads of CNTPCT are trapped */
}

void arch_vm_uart_line(struct vm *vm, bool level) {
    vgic_set_level(&vm->vcpus[0]->arch.vgic, VGIC_FIRST_SPI + GUEST_SPI_UART, level);
}
