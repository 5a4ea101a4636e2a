/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/stats.h"

#include "core/port.h"
#include "core/rare.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/print.h"
#include "hyp/vm.h"
#include "hyp/vmids.h"

static const char *const exit_names[EXIT_REASONS] = {
    [EXIT_WFI] = "wfi",       [EXIT_WFE] = "wfe",     [EXIT_HVC] = "hvc", [EXIT_SMC] = "smc",
    [EXIT_SYSREG] = "sysreg", [EXIT_MMIO] = "mmio",   [EXIT_IRQ] = "irq", [EXIT_ABORT] = "abort",
    [EXIT_SETWAY] = "setway", [EXIT_OTHER] = "other",
};

uint64_t stats_ns(uint64_t ticks) {
    return ticks_to_ns(ticks, arch_clock_hz());
}

uint64_t stats_ticks(uint64_t ns) {
    uint64_t hz = arch_clock_hz();
    return ns / 1000000000u * hz + (ns % 1000000000u * hz + 999999999u) / 1000000000u;
}

uint64_t stats_stolen_ns(const struct vcpu *v, const uint64_t times[RUN_STATES]) {
    const struct steal *s = &v->sched.steal;

    return s->record != NULL ? stats_ns(times[RUN_RUNNABLE] - s->waited_before) : 0;
}

const char *stats_flag_name(const struct vcpu *v) {
    static const char *const names[] = {
        [PVLOCK_NONE] = "-", [PVLOCK_PV_LOCK] = "pv-lock", [PVLOCK_PV_SCHED] = "pv-sched"};

    return names[v->sched.pvlock.dialect];
}

const char *stats_exit_name(unsigned reason) {
    return exit_names[reason];
}

/*
 * Another pCPU's fields change while we read: what is open is added to what is over, and both must
 * be of the same moment. An exit or wait begins by setting `since` alone, and ends by changing
 * both.
 */
static uint64_t time_and_open(const uint64_t *time, const uint64_t *since, uint64_t now) {
    uint64_t over, begun;

    do {
        over = __atomic_load_n(time, __ATOMIC_ACQUIRE);
        begun = __atomic_load_n(since, __ATOMIC_ACQUIRE);
    } while (over != __atomic_load_n(time, __ATOMIC_ACQUIRE) ||
             begun != __atomic_load_n(since, __ATOMIC_ACQUIRE));
    return over + (begun != 0 && begun < now ? now - begun : 0);
}

struct cpu_times stats_cpu_times(const struct pcpu *p) {
    uint64_t now = port_clock();
    struct cpu_times t = {
        .hypervisor = time_and_open(&p->hyp_time, &p->hyp_since, now),
        .idle = time_and_open(&p->idle_time, &p->idle_since, now),
    };
    uint64_t all = now - p->online_at, other = t.hypervisor + t.idle;

    t.guest = all > other ? all - other : 0;
    return t;
}

/* ---- Lines ---- */

#define LINE_MAX 620u /* of ours, with a prefix */

static void cpu_text(char *text, unsigned i) {
    struct cpu_times t = stats_cpu_times(pcpus[i]);

    print_to(text, LINE_MAX,
             "stats cpu=%u guest=%lu hypervisor=%lu idle=%lu vmid_slow=%lu tlb_flushes=%lu", i,
             stats_ns(t.guest), stats_ns(t.hypervisor), stats_ns(t.idle), pcpus[i]->vmid.slow,
             pcpus[i]->vmid.flushes);
}

static void vcpu_text(char *text, struct vcpu *v) {
    uint64_t times[RUN_STATES];
    size_t used;

    sched_times(&v->sched, times);
    used = print_to(
        text, LINE_MAX,
        "stats vm=%s vcpu=%u running=%lu runnable=%lu blocked=%lu off=%lu longest_wait=%lu "
        "switches=%lu migrations=%lu flagged=%lu stolen=%lu sibling_flushes=%lu "
        "sibling_skips=%lu yields=%lu directed=%lu stayed=%lu exits=",
        v->vm->config->name, v->index, stats_ns(times[RUN_RUNNING]), stats_ns(times[RUN_RUNNABLE]),
        stats_ns(times[RUN_BLOCKED]), stats_ns(times[RUN_OFF]), stats_ns(v->sched.longest_wait),
        v->sched.switches, v->sched.migrations, v->sched.pvlock.flagged, stats_stolen_ns(v, times),
        v->sibling_flushes, v->sibling_skips, v->spin.yielded, v->spin.directed, v->spin.stayed);
    for (unsigned r = 0; r < EXIT_REASONS; r++) {
        used += print_to(text + used, LINE_MAX - used, "%s%s:%lu", r == 0 ? "" : ",", exit_names[r],
                         v->exits[r].count);
    }
}

static void exit_text(char *text, const struct vcpu *v) {
    size_t used =
        print_to(text, LINE_MAX, "exit-times vm=%s vcpu=%u", v->vm->config->name, v->index);

    for (unsigned r = 0; r < EXIT_REASONS; r++) {
        const struct exit_counter *c = &v->exits[r];
        if (c->count != 0) {
            used += print_to(text + used, LINE_MAX - used, " %s=%lu,%lu", exit_names[r],
                             stats_ns(c->total), stats_ns(c->max));
        }
    }
}

static void vmids_text(char *text) {
    print_to(text, LINE_MAX, "stats vmids numbers=%u rollovers=%lu", vmids.numbers,
             vmid_rollovers(&vmids));
}

bool stats_vmids_line(void) {
    char text[LINE_MAX];

    vmids_text(text);
    return console_monitor_line("paravane: %s", text);
}

bool stats_cpu_line(unsigned cpu) {
    char text[LINE_MAX];

    cpu_text(text, cpu);
    return console_monitor_line("paravane: %s", text);
}

RARE static void advance_text(char *text, const struct vcpu *v) {
    const struct advance *a = &v->advance;

    print_to(text, LINE_MAX,
             "advance vm=%s vcpu=%u setting=%d now=%u last=%ld early=%ld late=%ld expiries=%lu "
             "outliers=%lu waited=%lu stops=%lu",
             v->vm->config->name, v->index, a->setting, advance_ns(a),
             advance_ticks_ns(a->last_error), advance_ticks_ns(a->most_early),
             advance_ticks_ns(a->most_late), a->expiries, a->outliers, stats_ns(a->waited),
             a->stops);
}

bool stats_vcpu_line(struct vcpu *v, enum stats_line which) {
    char text[LINE_MAX];

    if (which == STATS_TIMES) {
        vcpu_text(text, v);
    } else if (which == STATS_EXITS) {
        exit_text(text, v);
    } else {
        advance_text(text, v);
    }
    return console_monitor_line("paravane: %s", text);
}

void stats_print_cpus(void) {
    char text[LINE_MAX];

    for (unsigned i = 0; i < pcpu_count; i++) {
        if (pcpus[i]->online_at != 0) {
            cpu_text(text, i);
            console_printf("%s", text);
        }
    }
    vmids_text(text);
    console_printf("%s", text);
}

void stats_print(struct vm *vm) {
    char text[LINE_MAX];

    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        vcpu_text(text, vm->vcpus[i]);
        console_printf("%s", text);
        exit_text(text, vm->vcpus[i]);
        console_printf("%s", text);
        if (vm->vcpus[i]->advance.expiries != 0) {
            advance_text(text, vm->vcpus[i]);
            console_printf("%s", text);
        }
    }
}
