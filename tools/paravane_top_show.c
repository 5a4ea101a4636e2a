/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of `paravane top`: differences of two samples. */
#include "tools/paravane_top.h"

#include <string.h>

/* What some vCPUs did between two samples. */
struct sum {
    size_t vcpus;
    uint64_t running, runnable, blocked, all; /* ns; all: with the time off */
    uint64_t longest_wait;                    /* of the whole run */
    uint64_t switches, migrations;
    struct top_exits exits[TOP_REASONS];
};

/* What a table is made of. */
struct view {
    FILE *out;
    const struct top_sample *from, *to;
    const struct top_reasons *reasons;
    uint64_t ns;    /* between the two, by the machine's clock */
    int name_width; /* of the longest name */
};

/* Counters never go back, but a machine may be another one. */
static uint64_t grown(uint64_t from, uint64_t to) {
    return to > from ? to - from : 0;
}

static double percent(uint64_t part, uint64_t all) {
    return all == 0 ? 0 : 100.0 * (double)part / (double)all;
}

static double per_second(uint64_t count, uint64_t ns) {
    return ns == 0 ? 0 : (double)count * 1e9 / (double)ns;
}

static void add_vcpu(struct sum *sum, const struct top_vcpu *from, const struct top_vcpu *to) {
    static const struct top_vcpu none;

    from = from != NULL ? from : &none;
    uint64_t running = grown(from->running, to->running);
    uint64_t runnable = grown(from->runnable, to->runnable);
    uint64_t blocked = grown(from->blocked, to->blocked);
    sum->vcpus++;
    sum->running += running;
    sum->runnable += runnable;
    sum->blocked += blocked;
    sum->all += running + runnable + blocked + grown(from->off, to->off);
    if (to->longest_wait > sum->longest_wait) {
        sum->longest_wait = to->longest_wait;
    }
    sum->switches += grown(from->switches, to->switches);
    sum->migrations += grown(from->migrations, to->migrations);
    for (size_t i = 0; i < TOP_REASONS; i++) {
        sum->exits[i].count += grown(from->exits[i].count, to->exits[i].count);
        sum->exits[i].total += grown(from->exits[i].total, to->exits[i].total);
    }
}

static void add_sum(struct sum *sum, const struct sum *other) {
    sum->vcpus += other->vcpus;
    sum->running += other->running;
    sum->runnable += other->runnable;
    sum->blocked += other->blocked;
    sum->all += other->all;
    if (other->longest_wait > sum->longest_wait) {
        sum->longest_wait = other->longest_wait;
    }
    sum->switches += other->switches;
    sum->migrations += other->migrations;
    for (size_t i = 0; i < TOP_REASONS; i++) {
        sum->exits[i].count += other->exits[i].count;
        sum->exits[i].total += other->exits[i].total;
    }
}

/*
 * Shares are of the vCPUs' own time, not of the clock's: the lines of one answer were not printed
 * at one time.
 */
static void show_sum(const struct view *view, const char *name, const char *vcpus,
                     const struct sum *sum) {
    double scale = (double)sum->vcpus;
    uint64_t exits = 0;

    for (size_t i = 0; i < TOP_REASONS; i++) {
        exits += sum->exits[i].count;
    }
    fprintf(view->out, "%-*s %5s %7.1f %7.1f %7.1f %10.1f %9.0f %7.0f %9.0f ", view->name_width,
            name, vcpus, scale * percent(sum->running, sum->all),
            scale * percent(sum->runnable, sum->all), scale * percent(sum->blocked, sum->all),
            (double)sum->longest_wait / 1e3, per_second(sum->switches, view->ns),
            per_second(sum->migrations, view->ns), per_second(exits, view->ns));
    for (size_t i = 0; i < view->reasons->n; i++) {
        const struct top_exits *e = &sum->exits[i];
        if (e->count > 0) {
            fprintf(view->out, " %s=%.0f(%.1f)", view->reasons->name[i],
                    per_second(e->count, view->ns), (double)e->total / (double)e->count / 1e3);
        }
    }
    fputc('\n', view->out);
}

static struct sum vcpu_sum(const struct view *view, size_t i) {
    const struct top_vcpu *v = &view->to->vcpus[i];
    struct sum sum = {0};

    add_vcpu(&sum, top_find_vcpu(view->from, v->vm, v->index, i), v);
    return sum;
}

/* The VM whose first vCPU is to->vcpus[first]; its sum is returned. */
static struct sum show_vm(const struct view *view, size_t first, bool vcpus) {
    const struct top_sample *to = view->to;
    const char *name = to->vcpus[first].vm;
    struct sum whole = {0};
    char text[16];

    for (size_t i = first; i < to->n_vcpus; i++) {
        if (strcmp(to->vcpus[i].vm, name) == 0) {
            struct sum sum = vcpu_sum(view, i);
            add_sum(&whole, &sum);
        }
    }
    snprintf(text, sizeof(text), "%zu", whole.vcpus);
    show_sum(view, name, text, &whole);
    for (size_t i = first; vcpus && i < to->n_vcpus; i++) {
        if (strcmp(to->vcpus[i].vm, name) == 0) {
            struct sum sum = vcpu_sum(view, i);
            snprintf(text, sizeof(text), "#%u", to->vcpus[i].index);
            show_sum(view, "", text, &sum);
        }
    }
    return whole;
}

static void show_cpu_line(FILE *out, const char *name, uint64_t guest, uint64_t hypervisor,
                          uint64_t idle, size_t cpus) {
    uint64_t all = guest + hypervisor + idle;
    double scale = (double)cpus;

    fprintf(out, "%-5s %7.1f %12.1f %7.1f\n", name, scale * percent(guest, all),
            scale * percent(hypervisor, all), scale * percent(idle, all));
}

static void show_cpus(FILE *out, const struct top_sample *from, const struct top_sample *to) {
    static const struct top_cpu none;
    uint64_t guest = 0, hypervisor = 0, idle = 0;

    fprintf(out, "%-5s %7s %12s %7s\n", "CPU", "GUEST %", "HYPERVISOR %", "IDLE %");
    for (size_t i = 0; i < to->n_cpus; i++) {
        const struct top_cpu *b = &to->cpus[i];
        const struct top_cpu *a = top_find_cpu(from, b->index, i);
        char name[16];
        a = a != NULL ? a : &none;
        uint64_t g = grown(a->guest, b->guest), h = grown(a->hypervisor, b->hypervisor);
        uint64_t d = grown(a->idle, b->idle);
        snprintf(name, sizeof(name), "%u", b->index);
        show_cpu_line(out, name, g, h, d, 1);
        guest += g;
        hypervisor += h;
        idle += d;
    }
    show_cpu_line(out, "total", guest, hypervisor, idle, to->n_cpus);
}

/* Is this the first of its VM's vCPUs? */
static bool begins_vm(const struct top_sample *s, size_t i) {
    /* a VM's vCPUs stand together, so the one before decides nearly always */
    for (size_t j = i; j-- > 0;) {
        if (strcmp(s->vcpus[j].vm, s->vcpus[i].vm) == 0) {
            return false;
        }
    }
    return true;
}

void top_show(FILE *out, const struct top_sample *from, const struct top_sample *to,
              const struct top_reasons *reasons, bool vcpus) {
    struct view view = {.out = out,
                        .from = from,
                        .to = to,
                        .reasons = reasons,
                        .ns = grown(from->clock, to->clock),
                        .name_width = 8};
    struct sum all = {0};
    char count[16];

    for (size_t i = 0; i < to->n_vcpus; i++) {
        int n = (int)strlen(to->vcpus[i].vm);
        view.name_width = n > view.name_width ? n : view.name_width;
    }
    fprintf(out, "machine's clock: %.3f s; shown: the last %.3f s\n\n", (double)to->clock / 1e9,
            (double)view.ns / 1e9);
    fprintf(out, "%-*s %5s %7s %7s %7s %10s %9s %7s %9s  %s\n", view.name_width, "VM", "vCPUs",
            "CPU %", "WAIT %", "BLOCK %", "LONGEST us", "SWITCH/s", "MIGR/s", "EXIT/s",
            "REASON=N/s(mean us)");
    for (size_t i = 0; i < to->n_vcpus; i++) {
        if (begins_vm(to, i)) {
            struct sum vm = show_vm(&view, i, vcpus);
            add_sum(&all, &vm);
        }
    }
    snprintf(count, sizeof(count), "%zu", all.vcpus);
    show_sum(&view, "total", count, &all);
    fputc('\n', out);
    show_cpus(out, from, to);
}
