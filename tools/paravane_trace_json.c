/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trace in Chrome's trace event format: a track for each pCPU and one for each vCPU. Slices of a
 * track nest: exits lie within the time in which the vCPU has a pCPU, and are cut where it loses
 * it.
 */
#include "tools/paravane_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CPU_PROCESS 1u /* VM i is process i + 2 */

enum slice_kind {
    SLICE_STATE,
    SLICE_VCPU,
    SLICE_HYPERVISOR,
    SLICE_IDLE,
    SLICE_EXIT,
    INSTANT, /* these two have no length */
    COUNTER
};

struct slice {
    uint64_t start, end; /* ns */
    uint64_t order;
    uint32_t process, track;
    uint32_t what, arg; /* state and why; vCPU; -; -; reason and detail; event and arg, twice */
    uint8_t kind, depth;
};

struct vcpu_now {
    uint64_t since, exit_since;
    uint64_t deadline; /* the one that the next ARRIVAL is for */
    uint32_t state, why, exit_arg;
    int32_t cpu; /* where it runs, or -1 */
    bool in_exit;
};

enum cpu_place { CPU_GUEST, CPU_HYPERVISOR, CPU_IDLE };

struct cpu_now {
    uint64_t since, vcpu_since; /* in its place; with its vCPU */
    enum cpu_place place;
    int64_t vcpu; /* -1: none */
};

struct writer {
    const struct trace_file *t;
    struct slice *slices;
    size_t n, room;
    struct vcpu_now *vcpus;
    struct cpu_now *cpus;
};

static const char *const state_names[] = {"off", "blocked", "waiting", "running"};
static const char *const vm_states[] = {"off", "loading", "running", "stopping"};
#define NAME(name, text) text,
static const char *const why_names[] = {TRACE_WHYS(NAME)};
static const char *const exit_names[] = {TRACE_EXITS(NAME)};
#undef NAME
#define NAME(name, text, arg) text,
static const char *const event_names[] = {TRACE_EVENTS(NAME)};
#undef NAME

/* ---- slices ---- */

static void add(struct writer *w, struct slice s) {
    if (s.end < s.start || (s.end == s.start && s.kind < INSTANT)) {
        return;
    }
    if (w->n == w->room) {
        w->room = w->room == 0 ? 4096 : w->room * 2;
        w->slices = must_realloc(w->slices, w->room, sizeof(*w->slices));
    }
    s.start = trace_ns(w->t, s.start);
    s.end = trace_ns(w->t, s.end);
    s.order = w->n;
    w->slices[w->n++] = s;
}

static void add_vcpu(struct writer *w, uint32_t vcpu, struct slice s) {
    s.process = w->t->vcpus[vcpu].vm + 2;
    s.track = w->t->vcpus[vcpu].number;
    add(w, s);
}

static void end_state(struct writer *w, uint32_t vcpu, uint64_t time) {
    struct vcpu_now *v = &w->vcpus[vcpu];

    if (v->state != TRACE_OFF) {
        add_vcpu(w, vcpu,
                 (struct slice){.start = v->since,
                                .end = time,
                                .kind = SLICE_STATE,
                                .what = v->state,
                                .arg = v->why});
    }
    v->since = time;
}

static void end_exit(struct writer *w, uint32_t vcpu, uint64_t time) {
    struct vcpu_now *v = &w->vcpus[vcpu];

    if (v->in_exit && v->state == TRACE_RUNNING) {
        add_vcpu(w, vcpu,
                 (struct slice){.start = v->exit_since,
                                .end = time,
                                .kind = SLICE_EXIT,
                                .depth = 1,
                                .what = v->exit_arg & 255,
                                .arg = v->exit_arg >> 8});
    }
}

/* The pCPU is at another place from `time` on. */
static void move_cpu(struct writer *w, uint32_t cpu, enum cpu_place place, uint64_t time) {
    struct cpu_now *c = &w->cpus[cpu];

    if (c->place != CPU_GUEST) {
        add(w, (struct slice){.start = c->since,
                              .end = time,
                              .process = CPU_PROCESS,
                              .track = cpu,
                              .depth = 1,
                              .kind = c->place == CPU_IDLE ? SLICE_IDLE : SLICE_HYPERVISOR});
    }
    c->place = place;
    c->since = time;
}

/* It has another vCPU, or none (-1): what it is doing goes on, as another slice. */
static void give_cpu(struct writer *w, uint32_t cpu, int64_t vcpu, uint64_t time) {
    struct cpu_now *c = &w->cpus[cpu];

    move_cpu(w, cpu, CPU_HYPERVISOR, time);
    if (c->vcpu >= 0) {
        add(w, (struct slice){.start = c->vcpu_since,
                              .end = time,
                              .process = CPU_PROCESS,
                              .track = cpu,
                              .kind = SLICE_VCPU,
                              .what = (uint32_t)c->vcpu});
    }
    c->vcpu = vcpu;
    c->vcpu_since = time;
}

/* ---- events ---- */

static void take_state(struct writer *w, const struct trace_entry *e) {
    struct vcpu_now *v = &w->vcpus[e->vcpu];
    uint32_t to = e->arg >> 4 & 15;

    end_exit(w, e->vcpu, e->time);
    end_state(w, e->vcpu, e->time);
    if (v->cpu >= 0 && w->cpus[v->cpu].vcpu == e->vcpu) {
        give_cpu(w, (uint32_t)v->cpu, -1, e->time);
    }
    v->cpu = -1;
    v->state = to;
    v->why = e->arg >> 8;
    if (to == TRACE_RUNNING) {
        v->cpu = e->cpu;
        v->exit_since = e->time;
        give_cpu(w, e->cpu, e->vcpu, e->time);
    } else if (to == TRACE_OFF) {
        v->in_exit = false; /* no entry ends that exit */
    }
}

/* Something at one moment. */
static void add_point(struct writer *w, const struct trace_entry *e, uint64_t time,
                      enum slice_kind kind) {
    add_vcpu(w, e->vcpu,
             (struct slice){.start = time,
                            .end = time,
                            .kind = (uint8_t)kind,
                            .depth = 2,
                            .what = e->event,
                            .arg = e->arg});
}

static void take_event(struct writer *w, const struct trace_entry *e) {
    struct vcpu_now *v = &w->vcpus[e->vcpu];

    switch ((enum trace_event)e->event) {
    case TRACE_STATE:
        take_state(w, e);
        break;
    case TRACE_EXIT:
        v->in_exit = true;
        v->exit_since = e->time;
        v->exit_arg = e->arg;
        move_cpu(w, e->cpu, CPU_HYPERVISOR, e->time);
        break;
    case TRACE_ENTER:
        end_exit(w, e->vcpu, e->time);
        v->in_exit = false;
        move_cpu(w, e->cpu, CPU_GUEST, e->time);
        break;
    case TRACE_DEADLINE: /* recorded later, shown where it was */
        v->deadline = e->time - w->t->from > e->arg ? e->time - e->arg : w->t->from;
        add_point(w, e, v->deadline, INSTANT);
        break;
    case TRACE_ARRIVAL:
        add_point(w, e, v->deadline, COUNTER);
        break;
    case TRACE_ADVANCE:
        add_point(w, e, e->time, COUNTER);
        break;
    case TRACE_IDLE:
        move_cpu(w, e->cpu, e->arg != 0 ? CPU_IDLE : CPU_HYPERVISOR, e->time);
        break;
    default:
        add_point(w, e, e->time, INSTANT);
    }
}

static void begin(struct writer *w) {
    const struct trace_file *t = w->t;

    w->vcpus = must_realloc(NULL, t->n_vcpus, sizeof(*w->vcpus));
    w->cpus = must_realloc(NULL, t->cpus, sizeof(*w->cpus));
    for (uint32_t i = 0; i < t->cpus; i++) {
        w->cpus[i] = (struct cpu_now){.since = t->from, .vcpu = -1, .place = CPU_HYPERVISOR};
    }
    for (uint32_t i = 0; i < t->n_vcpus; i++) {
        const struct trace_vcpu *v = &t->vcpus[i];
        w->vcpus[i] = (struct vcpu_now){.since = t->from,
                                        .deadline = t->from,
                                        .state = v->begins_as,
                                        .why = TRACE_WHY_COUNT,
                                        .cpu = v->begins_on};
        if (v->begins_on >= 0) {
            struct cpu_now *c = &w->cpus[v->begins_on];
            *c = (struct cpu_now){.since = t->from, .vcpu = i, .vcpu_since = t->from};
        }
    }
}

/* What is open ends with the trace. A pCPU's last wait has no end, and so no records: idle. */
static void end(struct writer *w) {
    for (uint32_t i = 0; i < w->t->n_vcpus; i++) {
        end_exit(w, i, w->t->to);
        end_state(w, i, w->t->to);
    }
    for (uint32_t i = 0; i < w->t->cpus; i++) {
        if (w->cpus[i].vcpu < 0) {
            w->cpus[i].place = CPU_IDLE;
        }
        give_cpu(w, i, -1, w->t->to);
    }
}

/* ---- text ---- */

static int by_start(const void *left, const void *right) {
    const struct slice *a = left, *b = right;

    if (a->start != b->start) {
        return a->start < b->start ? -1 : 1;
    }
    if (a->depth != b->depth) {
        return a->depth < b->depth ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

static void write_name(FILE *out, uint32_t process, int64_t track, const char *format,
                       const char *text, uint32_t number) {
    fprintf(out, "{\"ph\":\"M\",\"pid\":%u,\"tid\":%" PRId64 ",\"name\":\"%s_name\",", process,
            track < 0 ? 0 : track, track < 0 ? "process" : "thread");
    fprintf(out, "\"args\":{\"name\":\"%s%s", format, text);
    fprintf(out, track < 0 ? "\"}},\n" : "%u\"}},\n", number);
}

static void write_names(const struct trace_file *t, FILE *out) {
    write_name(out, CPU_PROCESS, -1, "CPUs", "", 0);
    for (uint32_t i = 0; i < t->cpus; i++) {
        write_name(out, CPU_PROCESS, i, "CPU ", "", i);
    }
    for (uint32_t i = 0; i < t->n_vms; i++) {
        write_name(out, i + 2, -1, "VM ", t->vms[i].name, 0);
        for (uint32_t k = 0; k < t->vms[i].vcpus; k++) {
            write_name(out, i + 2, k, t->vms[i].name, " vCPU ", k);
        }
    }
}

/* Values of a vCPU over time: one counter for each of what there is. */
static void write_counter(const struct trace_file *t, const struct slice *s, FILE *out) {
    if (s->what == TRACE_ADVANCE) {
        fprintf(out, "\"name\":\"advance, vCPU %u\",\"args\":{\"ns\":%u}", s->track,
                s->arg & 0xffffu);
    } else {
        bool early = (s->arg >> 31) != 0;
        uint64_t ns = trace_ns(t, t->from + (early ? 0u - s->arg : s->arg));

        fprintf(out, "\"name\":\"lateness, vCPU %u\",\"args\":{\"ns\":%s%" PRIu64 "}", s->track,
                early ? "-" : "", ns);
    }
}

static void write_what(const struct trace_file *t, const struct slice *s, FILE *out) {
    switch ((enum slice_kind)s->kind) {
    case SLICE_STATE:
        fprintf(out, "\"name\":\"%s\",\"cat\":\"state\"", state_names[s->what]);
        if (s->arg < TRACE_WHY_COUNT) {
            fprintf(out, ",\"args\":{\"why\":\"%s\"}", why_names[s->arg]);
        }
        break;
    case SLICE_VCPU:
        fprintf(out, "\"name\":\"%s vCPU %u\",\"cat\":\"vcpu\"", t->vms[t->vcpus[s->what].vm].name,
                t->vcpus[s->what].number);
        break;
    case SLICE_HYPERVISOR:
        fputs("\"name\":\"hypervisor\",\"cat\":\"hypervisor\"", out);
        break;
    case SLICE_IDLE:
        fputs("\"name\":\"idle\",\"cat\":\"idle\"", out);
        break;
    case SLICE_EXIT:
        fprintf(out, "\"name\":\"exit %s\",\"cat\":\"exit\",\"args\":{\"detail\":\"0x%06x\"}",
                exit_names[s->what], s->arg);
        break;
    case COUNTER:
        write_counter(t, s, out);
        break;
    case INSTANT:
        fprintf(out, "\"name\":\"%s", event_names[s->what]);
        fprintf(out, s->what == TRACE_VM ? " %s" : "%.0s", vm_states[s->arg % TRACE_VM_STATES]);
        fprintf(out, "\",\"cat\":\"event\",\"s\":\"t\",\"args\":{\"arg\":%u}", s->arg);
        break;
    }
}

bool trace_write_json(const struct trace_file *t, FILE *out) {
    struct writer w = {.t = t};

    begin(&w);
    for (size_t i = 0; i < t->n_entries; i++) {
        take_event(&w, &t->entries[i]);
    }
    end(&w);
    if (w.n > 1) {
        qsort(w.slices, w.n, sizeof(*w.slices), by_start);
    }
    fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", out);
    write_names(t, out);
    for (size_t i = 0; i < w.n; i++) {
        const struct slice *s = &w.slices[i];
        uint64_t length = s->end - s->start;

        fprintf(out, "{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64 ".%03u,",
                s->kind == INSTANT   ? "i"
                : s->kind == COUNTER ? "C"
                                     : "X",
                s->process, s->track, s->start / 1000, (unsigned)(s->start % 1000));
        if (s->kind < INSTANT) {
            fprintf(out, "\"dur\":%" PRIu64 ".%03u,", length / 1000, (unsigned)(length % 1000));
        }
        write_what(t, s, out);
        fputs("},\n", out);
    }
    /* the list has an end without a comma */
    fprintf(out, "{\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"name\":\"process_sort_index\",",
            CPU_PROCESS);
    fputs("\"args\":{\"sort_index\":-1}}\n]}\n", out);
    free(w.slices);
    free(w.vcpus);
    free(w.cpus);
    return fflush(out) == 0 && ferror(out) == 0;
}
