/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/stats.h"

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/print.h"
#include "hyp/vm.h"

static const char *const exit_names[EXIT_REASONS] = {
    [EXIT_WFI] = "wfi",       [EXIT_WFE] = "wfe",     [EXIT_HVC] = "hvc", [EXIT_SMC] = "smc",
    [EXIT_SYSREG] = "sysreg", [EXIT_MMIO] = "mmio",   [EXIT_IRQ] = "irq", [EXIT_ABORT] = "abort",
    [EXIT_SETWAY] = "setway", [EXIT_OTHER] = "other",
};

uint64_t stats_ns(uint64_t ticks) {
    uint64_t hz = arch_clock_hz();
    return ticks / hz * 1000000000u + ticks % hz * 1000000000u / hz;
}

uint64_t stats_ticks(uint64_t ns) {
    uint64_t hz = arch_clock_hz();
    return ns / 1000000000u * hz + (ns % 1000000000u * hz + 999999999u) / 1000000000u;
}

void stats_print(struct vm *vm) {
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        struct vcpu *v = vm->vcpus[i];
        uint64_t times[RUN_STATES];
        char exits[160];
        size_t used = 0;

        sched_times(&v->sched, times);
        for (unsigned r = 0; r < EXIT_REASONS; r++) {
            used += print_to(exits + used, sizeof(exits) - used, "%s%s:%lu", r == 0 ? "" : ",",
                             exit_names[r], v->exits[r]);
        }
        console_printf("stats vm=%s vcpu=%u running=%lu runnable=%lu blocked=%lu off=%lu "
                       "switches=%lu migrations=%lu exits=%s",
                       vm->config->name, i, stats_ns(times[RUN_RUNNING]),
                       stats_ns(times[RUN_RUNNABLE]), stats_ns(times[RUN_BLOCKED]),
                       stats_ns(times[RUN_OFF]), v->sched.switches, v->sched.migrations, exits);
    }
}
