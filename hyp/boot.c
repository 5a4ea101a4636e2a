/* SPDX-License-Identifier: GPL-2.0-only */
/* The order of things at start, on one page. */
#include "hyp/boot.h"

#include "core/config.h"
#include "core/cpio.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/stats.h"
#include "hyp/trace.h"
#include "hyp/vm.h"
#include "hyp/vmids.h"

#define DEFAULT_SLICE_NS 2000000u

struct pcpu *pcpus[PCPU_MAX];
unsigned pcpu_count;

static struct vm_config *vm_configs;
static unsigned config_count;
static struct machine_config machine;

/* Reads machine.conf out of the boot archive. A fault in it is the user's: say so and stop. */
static void read_config(const struct boot_info *info) {
    struct config_error error;
    struct cpio_error cpio_error;
    struct cpio_entry file;
    size_t count;
    char line[512];

    if (info->archive == NULL) {
        panic("no boot archive: found no initrd, expected a cpio archive with machine.conf");
    }
    switch (cpio_find(info->archive, info->archive_size, "machine.conf", &file, &cpio_error)) {
    case CPIO_FOUND:
        break;
    case CPIO_NO_ENTRY:
        panic("boot archive: found no machine.conf in it");
    default:
        panic("boot archive: at byte %lu: %s", cpio_error.offset, cpio_error.text);
    }
    if (!config_parse(file.data, file.size, &machine, NULL, 0, &count, &error)) {
        config_format_error(&error, "machine.conf", line, sizeof(line));
        panic("%s", line);
    }
    vm_configs = mem_alloc(count * sizeof(*vm_configs));
    config_parse(file.data, file.size, &machine, vm_configs, count, &count, &error);
    config_count = (unsigned)count;
}

static void create_vms(const struct boot_info *info) {
    vms = mem_alloc(config_count * sizeof(struct vm *));
    for (unsigned i = 0; i < config_count; i++) {
        if (cpu_set_empty_below(&vm_configs[i].cpus, pcpu_count)) {
            panic("machine.conf: vm %s: cpus: found none of this machine's %u CPUs in the list",
                  vm_configs[i].name, pcpu_count);
        }
        vms[i] = vm_create(&vm_configs[i], i);
        vm_count = i + 1; /* the console looks at all that there are */
        console_printf("vm %s: %u vCPUs, %lu MiB%s", vm_configs[i].name, vm_configs[i].vcpus,
                       vm_configs[i].memory >> 20, vm_configs[i].autostart ? "" : ", not started");
        const char *error = load_prepare(vms[i], info->archive, info->archive_size);
        if (error != NULL) {
            panic("vm %s: %s", vm_configs[i].name, error);
        }
    }
}

static void start_vms(void) {
    unsigned started = 0;

    atomic_store(&vms_running, 1); /* none may turn the machine off before all have begun */
    for (unsigned i = 0; i < vm_count; i++) {
        if (vm_configs[i].autostart) {
            vm_start(vms[i]);
            started++;
        }
    }
    if (started == 0) {
        panic("machine.conf: no VM has autostart = yes");
    }
    atomic_fetch_sub(&vms_running, 1);
}

_Noreturn void boot_main(void *firmware) {
    struct boot_info info;
    uint64_t slice;

    arch_boot_init(firmware, &info);
    console_printf("Paravane, %u CPUs, %lu MiB of memory free", pcpu_count, mem_free() >> 20);
    read_config(&info);
    slice = stats_ticks(machine.slice_ns != 0 ? machine.slice_ns : DEFAULT_SLICE_NS);
    vmids_init(machine.vmid_bits);
    sched_init(pcpu_count, slice);
    timer_init_cpus(pcpu_count);
    advance_clock(arch_clock_hz());
    for (unsigned i = 0; i < pcpu_count; i++) {
        pcpus[i]->last_vcpu = mem_alloc(config_count * sizeof(struct vcpu *));
        pcpus[i]->armed = TIMER_NEVER;
    }
    create_vms(&info);
    trace_boot(machine.trace);
    arch_start_cpus();
    console_printf("own memory %lu KiB", (arch_image_size() + mem_own() + 1023) >> 10);
    start_vms();
    boot_cpu_main(pcpus[0]);
}

_Noreturn void boot_cpu_main(struct pcpu *p) {
    arch_cpu_init(p);
    sched_cpu_online(p->index);
    struct vcpu *v = vcpu_first();
    trace_vcpu(TRACE_ENTER, v, 0);
    arch_enter(v);
}
