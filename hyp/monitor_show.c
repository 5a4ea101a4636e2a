/* SPDX-License-Identifier: GPL-2.0-only */
/* What the monitor shows: answers of many lines, one line a step. */
#include "core/port.h"
#include "core/rare.h"
#include "hyp/console.h"
#include "hyp/exits.h"
#include "hyp/monitor.h"
#include "hyp/spin.h"
#include "hyp/stats.h"
#include "hyp/trace.h"

static enum monitor_step more_if(bool printed) {
    return printed ? MONITOR_MORE : MONITOR_AGAIN;
}

/* The heading, once. */
static bool heading(struct monitor_answer *a, const char *text) {
    if (!a->begun && !console_monitor_line("%s", text)) {
        return false;
    }
    a->begun = true;
    return true;
}

/* On to the next vCPU of the VMs that are asked for. */
static void next_vcpu(struct monitor_answer *a) {
    if (++a->item == vms[a->vm]->config->vcpus) {
        a->item = 0;
        a->vm++;
    }
}

/* A percentage with a decimal, of parts that may be large. */
static unsigned permille(uint64_t part, uint64_t whole) {
    while (whole > UINT64_MAX / 1000) {
        whole >>= 1;
        part >>= 1;
    }
    return whole == 0 ? 0 : (unsigned)(part * 1000 / whole);
}

static const char *state_name(const struct vm *vm) {
    static const char *const names[] = {[VM_OFF] = "off",
                                        [VM_LOADING] = "loading",
                                        [VM_RUNNING] = "running",
                                        [VM_STOPPING] = "stopping"};

    if (atomic_load(&vm->state) == VM_LOADING &&
        (vm->end == VM_END_OFF || vm->end == VM_END_CRASH)) {
        return "ending";
    }
    return vm->paused ? "paused" : names[atomic_load(&vm->state)];
}

enum monitor_step monitor_vms(struct monitor_answer *a) {
    if (!heading(a, "VM                               state    on/vCPUs weight  MiB        running "
                    "s  last end  flag      flagged      stolen s  spin")) {
        return MONITOR_AGAIN;
    }
    if (a->vm > a->last) {
        return MONITOR_DONE;
    }
    struct vm *vm = vms[a->vm];
    static const char *const ends[] = {[VM_END_NONE] = "-",
                                       [VM_END_OFF] = "off",
                                       [VM_END_RESET] = "reset",
                                       [VM_END_CRASH] = "crash"};
    uint64_t running = 0, flagged = 0, stolen = 0, times[RUN_STATES];
    const char *flag = "-";
    unsigned on = 0;

    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        const struct vcpu *v = vm->vcpus[i];
        sched_times(&vm->vcpus[i]->sched, times);
        running += times[RUN_RUNNING];
        flagged += v->sched.pvlock.flagged;
        stolen += stats_stolen_ns(v, times) / 1000000;
        flag = v->sched.pvlock.dialect != PVLOCK_NONE ? stats_flag_name(v) : flag;
        on += atomic_load(&vm->vcpus[i]->power) >= VCPU_ON;
    }
    uint64_t ms = stats_ns(running) / 1000000;
    bool printed = console_monitor_line(
        "%-32s %-8s %3u/%-5u %6u %5lu %12lu.%03lu  %-8s  %-8s %8lu %9lu.%03lu  %-8s%s",
        vm->config->name, state_name(vm), on, vm->config->vcpus, vm->vcpus[0]->sched.weight,
        vm->ram_size >> 20, ms / 1000, ms % 1000, ends[vm->last_end], flag, flagged, stolen / 1000,
        stolen % 1000, spin_name(atomic_load(&vm->spin)),
        vm->index == console_focused() ? "  (focus)" : "");
    a->vm += printed;
    return more_if(printed);
}

static const char *power_name(const struct vcpu *v) {
    static const char *const powers[] = {"off", "starting", "on", "paused"};
    static const char *const states[] = {[RUN_OFF] = "off",
                                         [RUN_BLOCKED] = "blocked",
                                         [RUN_RUNNABLE] = "waiting",
                                         [RUN_RUNNING] = "running"};
    unsigned power = atomic_load(&v->power);

    return power == VCPU_ON ? states[v->sched.state] : powers[power];
}

enum monitor_step monitor_vcpus(struct monitor_answer *a) {
    if (!heading(a, "VM/vCPU              state    CPU    running us    waiting us    blocked us   "
                    "     off us  longest wait us  switches  moves  flag      record    flagged   "
                    "stolen us")) {
        return MONITOR_AGAIN;
    }
    if (a->vm > a->last) {
        return MONITOR_DONE;
    }
    struct vcpu *v = vms[a->vm]->vcpus[a->item];
    uint64_t t[RUN_STATES];

    sched_times(&v->sched, t);
    bool printed = console_monitor_line(
        "%-16s %3u %-8s %3u %13lu %13lu %13lu %13lu %16lu %9lu %6lu  %-8s %9lx %8lu %11lu",
        v->vm->config->name, v->index, power_name(v), v->sched.last_cpu,
        stats_ns(t[RUN_RUNNING]) / 1000, stats_ns(t[RUN_RUNNABLE]) / 1000,
        stats_ns(t[RUN_BLOCKED]) / 1000, stats_ns(t[RUN_OFF]) / 1000,
        stats_ns(v->sched.longest_wait) / 1000, v->sched.switches, v->sched.migrations,
        stats_flag_name(v), v->sched.pvlock.used_ipa, v->sched.pvlock.flagged,
        stats_stolen_ns(v, t) / 1000);
    if (printed) {
        next_vcpu(a);
    }
    return more_if(printed);
}

RARE enum monitor_step monitor_timers(struct monitor_answer *a) {
    if (!heading(a,
                 "VM/vCPU              setting   now ns   last ns  earliest    latest   expiries  "
                 "outliers     waited us  stops")) {
        return MONITOR_AGAIN;
    }
    if (a->vm > a->last) {
        return MONITOR_DONE;
    }
    const struct vcpu *v = vms[a->vm]->vcpus[a->item];
    const struct advance *t = &v->advance;
    bool printed = console_monitor_line(
        "%-16s %3u %8d %8u %9ld %9ld %9ld %10lu %9lu %13lu %6lu", v->vm->config->name, v->index,
        t->setting, advance_on(t) ? advance_ns(t) : 0, advance_ticks_ns(t->last_error),
        advance_ticks_ns(t->most_early), advance_ticks_ns(t->most_late), t->expiries, t->outliers,
        stats_ns(t->waited) / 1000, t->stops);

    if (printed) {
        next_vcpu(a);
    }
    return more_if(printed);
}

/* Of all vCPUs of a VM together. */
static struct exit_counter exits_of(const struct vm *vm, unsigned reason) {
    struct exit_counter sum = {0, 0, 0};

    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        const struct exit_counter *c = &vm->vcpus[i]->exits[reason];
        sum.count += c->count;
        sum.total += c->total;
        sum.max = c->max > sum.max ? c->max : sum.max;
    }
    return sum;
}

enum monitor_step monitor_exits(struct monitor_answer *a) {
    if (!heading(a, "VM               exit        count  % of all      total us  % of all        "
                    "mean ns         max ns")) {
        return MONITOR_AGAIN;
    }
    if (a->vm > a->last) {
        return MONITOR_DONE;
    }
    const struct vm *vm = vms[a->vm];
    struct exit_counter c = exits_of(vm, a->item);
    bool printed = true;

    if (a->item == 0) {
        a->count = a->total = 0;
        for (unsigned r = 0; r < EXIT_REASONS; r++) {
            struct exit_counter one = exits_of(vm, r);
            a->count += one.count;
            a->total += one.total;
        }
    }
    if (c.count != 0) {
        unsigned n = permille(c.count, a->count), t = permille(c.total, a->total);
        printed = console_monitor_line("%-16s %-7s %10lu %7u.%u %13lu %7u.%u %14lu %14lu",
                                       vm->config->name, stats_exit_name(a->item), c.count, n / 10,
                                       n % 10, stats_ns(c.total) / 1000, t / 10, t % 10,
                                       stats_ns(c.total / c.count), stats_ns(c.max));
    }
    if (printed && ++a->item == EXIT_REASONS) {
        a->item = 0;
        a->vm++;
    }
    return more_if(printed);
}

enum monitor_step monitor_cpus(struct monitor_answer *a) {
    if (!heading(a, "CPU       guest us  %      hypervisor us  %            idle us  %    runs")) {
        return MONITOR_AGAIN;
    }
    if (a->item == pcpu_count) {
        return MONITOR_DONE;
    }
    const struct pcpu *p = pcpus[a->item];
    struct cpu_times t = stats_cpu_times(p);
    uint64_t all = t.guest + t.hypervisor + t.idle;
    const struct vcpu *v = __atomic_load_n(&p->current, __ATOMIC_RELAXED);
    bool printed = console_monitor_line(
        "%3u %14lu %3u %16lu %3u %16lu %3u    %s %u", a->item, stats_ns(t.guest) / 1000,
        permille(t.guest, all) / 10, stats_ns(t.hypervisor) / 1000,
        permille(t.hypervisor, all) / 10, stats_ns(t.idle) / 1000, permille(t.idle, all) / 10,
        v != NULL ? v->vm->config->name : "-", v != NULL ? v->index : 0);
    a->item += printed;
    return more_if(printed);
}

/* For programs: the lines that a VM ends with, then those of the pCPUs. */
enum monitor_step monitor_stats(struct monitor_answer *a) {
    bool printed;

    if (a->vm <= a->last) {
        printed = stats_vcpu_line(vms[a->vm]->vcpus[a->item], (enum stats_line)a->count);
        a->count += printed;
        if (a->count == STATS_LINES) {
            a->count = 0;
            next_vcpu(a);
        }
        return more_if(printed);
    }
    if (a->item < pcpu_count) {
        printed = stats_cpu_line(a->item);
        a->item += printed;
        return more_if(printed);
    }
    if (a->item == pcpu_count) {
        printed = stats_vmids_line();
        a->item += printed;
        return more_if(printed);
    }
    return console_monitor_line("paravane: stats end clock=%lu", stats_ns(port_clock()))
               ? MONITOR_DONE
               : MONITOR_AGAIN;
}

enum monitor_step monitor_log(struct monitor_answer *a) {
    char text[CONSOLE_LOG_LINE];
    uint32_t at = a->item;

    if (!console_log_line(&at, text, sizeof(text))) {
        return MONITOR_DONE;
    }
    if (!console_monitor_line("%s", text)) {
        return MONITOR_AGAIN;
    }
    a->item = at;
    return MONITOR_MORE;
}
