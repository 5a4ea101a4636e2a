/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a trace's text and brings the records of all pCPUs into one order. Trusts nothing. */
#include "tools/paravane_trace.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1024, SHOWN = 60 };

static const char prefix[] = "paravane: trace ";

/* What is left of the line being read; each take_* moves it on, or sets `bad`. */
struct line {
    const char *at;
    bool bad;
    const char *expected;
};

static void take_text(struct line *l, const char *text) {
    size_t n = strlen(text);

    if (!l->bad && strncmp(l->at, text, n) == 0) {
        l->at += n;
    } else if (!l->bad) {
        l->bad = true;
        l->expected = text;
    }
}

/* `key`, and a number up to max. */
static uint64_t take_number(struct line *l, const char *key, uint64_t max) {
    uint64_t value = 0;

    take_text(l, key);
    if (l->bad) {
        return 0;
    }
    size_t digits = strspn(l->at, "0123456789");
    l->bad = digits == 0 || digits > 20;
    for (size_t i = 0; !l->bad && i < digits; i++) {
        uint64_t digit = (uint64_t)(l->at[i] - '0');
        l->bad = value > (max - digit) / 10 || digit > max;
        value = value * 10 + digit;
    }
    l->expected = key;
    l->at += l->bad ? 0 : digits;
    return l->bad ? 0 : value;
}

static void refuse(struct line *l, const char *expected) {
    if (!l->bad) {
        l->bad = true;
        l->expected = expected;
    }
}

static void require(struct line *l, bool good, const char *expected) {
    if (!good) {
        refuse(l, expected);
    }
}

void trace_file_free(struct trace_file *t) {
    free(t->vms);
    free(t->vcpus);
    free(t->entries);
    free(t->next_record);
    *t = (struct trace_file){0};
}

/* ---- the lines ---- */

static void read_begin(struct trace_file *t, struct line *l) {
    trace_file_free(t);
    take_number(l, "version=", TRACE_VERSION);
    t->hz = take_number(l, " hz=", 10000000000u);
    t->cpus = (uint32_t)take_number(l, " cpus=", CPU_SET_MAX);
    take_number(l, " vms=", UINT16_MAX);
    t->from = take_number(l, " from=", INT64_MAX);
    t->to = take_number(l, " to=", INT64_MAX);
    require(l, t->hz != 0 && t->cpus != 0 && t->from <= t->to, "a clock, CPUs and a time");
    if (!l->bad) {
        t->next_record = must_realloc(NULL, t->cpus, sizeof(*t->next_record));
        memset(t->next_record, 0, t->cpus * sizeof(*t->next_record));
    }
}

static void read_vm(struct trace_file *t, struct line *l) {
    uint64_t index = take_number(l, "vm=", UINT16_MAX);
    uint64_t vcpus = take_number(l, " vcpus=", CONFIG_VCPUS_MAX);
    struct trace_vm vm = {.vcpus = (uint32_t)vcpus, .first = (uint32_t)t->n_vcpus};

    take_text(l, " name=");
    size_t n = strspn(l->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
    require(l, index == t->n_vms && vcpus != 0, "the next VM");
    require(l, n != 0 && n <= CONFIG_NAME_MAX && l->at[n] == '\0', "a VM's name");
    if (l->bad) {
        return;
    }
    memcpy(vm.name, l->at, n);
    l->at += n;
    t->vms = must_realloc(t->vms, t->n_vms + 1, sizeof(*t->vms));
    t->vms[t->n_vms++] = vm;
    t->vcpus = must_realloc(t->vcpus, t->n_vcpus + vcpus, sizeof(*t->vcpus));
    for (uint32_t i = 0; i < vcpus; i++) {
        t->vcpus[t->n_vcpus++] = (struct trace_vcpu){
            .vm = (uint32_t)index, .number = i, .from = t->from, .to = t->to, .begins_on = -1};
    }
}

static void read_vcpu(struct trace_file *t, struct line *l) {
    static const char *const keys[] = {" off=", " blocked=", " runnable=", " running="};
    uint64_t vm = take_number(l, "vm=", UINT16_MAX);
    uint64_t number = take_number(l, " vcpu=", CONFIG_VCPUS_MAX);
    uint64_t from = take_number(l, " from=", INT64_MAX);
    uint64_t to = take_number(l, " to=", INT64_MAX);

    require(l, vm < t->n_vms && number < t->vms[vm].vcpus, "a vCPU that there is");
    require(l, from <= to && from >= t->from && to <= t->to, "a time in the trace");
    if (l->bad) {
        return;
    }
    struct trace_vcpu *v = &t->vcpus[t->vms[vm].first + number];
    v->told = true;
    v->from = from;
    v->to = to;
    for (unsigned s = 0; s < TRACE_STATES; s++) {
        v->counted[s] = take_number(l, keys[s], INT64_MAX);
    }
}

static int base64_digit(char c) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* Everything up to the end of the line; returns how many bytes. */
static size_t take_base64(struct line *l, uint8_t *out) {
    uint32_t bits = 0;
    size_t n = 0, digits = 0;

    for (int d; (d = base64_digit(*l->at)) >= 0; l->at++, digits++) {
        bits = bits << 6 | (uint32_t)d;
        if (digits % 4 != 0) {
            out[n++] = (uint8_t)(bits >> (6 - digits % 4 * 2));
        }
    }
    while (*l->at == '=' && digits % 4 != 0) {
        l->at++;
        digits++;
    }
    require(l, digits % 4 == 0, "base64 digits, a multiple of four");
    return n;
}

static uint64_t take_varint(struct line *l, const uint8_t **at, const uint8_t *end) {
    uint64_t value = 0;

    for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
    refuse(l, "whole records");
    return 0;
}

static bool argument_is_valid(uint32_t event, uint32_t arg) {
    switch (event) {
    case TRACE_STATE:
        return (arg & 15) < TRACE_STATES && (arg >> 4 & 15) < TRACE_STATES &&
               arg >> 8 < TRACE_WHY_COUNT;
    case TRACE_EXIT:
        return (arg & 255) < TRACE_EXIT_COUNT;
    case TRACE_VM:
        return arg < TRACE_VM_STATES;
    default:
        return event < TRACE_EVENT_COUNT;
    }
}

static void add_entry(struct trace_file *t, struct line *l, struct trace_entry e, uint64_t who) {
    uint64_t vm = who >> 8, number = who & 255;

    require(l, vm < t->n_vms && number < t->vms[vm].vcpus, "a vCPU that there is");
    require(l, argument_is_valid(e.event, e.arg), "a known event with a valid argument");
    if (l->bad) {
        return;
    }
    if (t->n_entries == t->room) {
        t->room = t->room == 0 ? 4096 : t->room * 2;
        t->entries = must_realloc(t->entries, t->room, sizeof(*t->entries));
    }
    e.vcpu = t->vms[vm].first + (uint32_t)number;
    e.order = t->n_entries;
    e.time = e.time < t->from ? t->from : e.time > t->to ? t->to : e.time;
    t->entries[t->n_entries++] = e;
}

static void read_data(struct trace_file *t, struct line *l) {
    uint8_t bytes[LINE_MAX_BYTES];
    const uint8_t *at = bytes;
    uint64_t cpu = take_number(l, "cpu=", CPU_SET_MAX);
    uint64_t number = take_number(l, " first=", INT64_MAX);
    uint64_t time = take_number(l, " time=", INT64_MAX);

    require(l, cpu < t->cpus, "a CPU that there is");
    take_text(l, " ");
    size_t n = l->bad ? 0 : take_base64(l, bytes);
    require(l, cpu < t->cpus && number >= t->next_record[cpu], "records after the last ones");
    while (!l->bad && at < bytes + n) {
        struct trace_entry e = {.event = *at++, .cpu = (uint16_t)cpu};
        uint64_t who = take_varint(l, &at, bytes + n);
        e.arg = (uint32_t)take_varint(l, &at, bytes + n);
        uint64_t step = take_varint(l, &at, bytes + n);
        time += step >> 1 ^ (0 - (step & 1));
        e.time = time;
        add_entry(t, l, e, who);
        number++;
    }
    if (!l->bad) {
        t->missing += number - t->next_record[cpu]; /* end lines say how many there should be */
        t->next_record[cpu] = number;
    }
}

static void read_end(struct trace_file *t, struct line *l) {
    if (strncmp(l->at, "cpu=", 4) == 0) {
        uint64_t cpu = take_number(l, "cpu=", CPU_SET_MAX);
        uint64_t records = take_number(l, " records=", INT64_MAX);
        take_number(l, " lost=", INT64_MAX);
        require(l, cpu < t->cpus && records >= t->next_record[cpu], "all records of a CPU");
        if (!l->bad) {
            t->missing += records - t->next_record[cpu];
            t->next_record[cpu] = records;
        }
    } else {
        take_number(l, "records=", INT64_MAX);
        t->lost = take_number(l, " lost=", INT64_MAX);
        t->complete = !l->bad;
    }
}

static void read_line(struct trace_file *t, struct line *l) {
    static const struct {
        const char *word;
        void (*read)(struct trace_file *t, struct line *l);
    } kinds[] = {{"begin ", read_begin},
                 {"vm ", read_vm},
                 {"vcpu ", read_vcpu},
                 {"data ", read_data},
                 {"end ", read_end}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t n = strlen(kinds[i].word);
        if (strncmp(l->at, kinds[i].word, n) == 0) {
            l->at += n;
            require(l, i == 0 || t->cpus != 0, "'trace begin' first");
            if (!l->bad) {
                kinds[i].read(t, l);
            }
            require(l, l->bad || *l->at == '\0', "the end of the line");
            return;
        }
    }
    refuse(l, "begin, vm, vcpu, data or end");
}

/* ---- order, and what follows from it ---- */

static int by_time(const void *left, const void *right) {
    const struct trace_entry *a = left, *b = right;

    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

/*
 * Of changes of a vCPU that have the same time on several pCPUs, the one that goes on from its
 * state comes first. `at` is the first of them.
 */
static void settle_tie(struct trace_file *t, size_t at, uint32_t state) {
    struct trace_entry *e = &t->entries[at];

    for (size_t i = at + 1; i < t->n_entries && i < at + 64 && t->entries[i].time == e->time; i++) {
        struct trace_entry *other = &t->entries[i];
        if (other->event == TRACE_STATE && other->vcpu == e->vcpu && (other->arg & 15) == state) {
            struct trace_entry copy = *other;
            *other = *e;
            *e = copy;
            return;
        }
    }
}

/* Where each vCPU was at first: what its first change says, else where the counters have it. */
static void find_beginnings(struct trace_file *t) {
    for (size_t i = 0; i < t->n_vcpus; i++) {
        struct trace_vcpu *v = &t->vcpus[i];
        for (uint32_t s = 1; s < TRACE_STATES; s++) {
            v->begins_as = v->counted[s] > v->counted[v->begins_as] ? s : v->begins_as;
        }
    }
    for (size_t i = t->n_entries; i-- > 0;) {
        const struct trace_entry *e = &t->entries[i];
        struct trace_vcpu *v = &t->vcpus[e->vcpu];
        if (e->event == TRACE_STATE && e->time >= v->from) {
            v->begins_as = e->arg & 15;
            v->begins_on = v->begins_as == TRACE_RUNNING ? (int32_t)e->cpu : -1;
        }
    }
}

static void account(struct trace_file *t) {
    struct {
        uint64_t since;
        uint32_t state;
    } *now = must_realloc(NULL, t->n_vcpus, sizeof(*now));

    for (size_t i = 0; i < t->n_vcpus; i++) {
        now[i].since = t->vcpus[i].from;
        now[i].state = t->vcpus[i].begins_as;
    }
    for (size_t i = 0; i < t->n_entries; i++) {
        const struct trace_entry *e = &t->entries[i];
        struct trace_vcpu *v = &t->vcpus[e->vcpu];

        v->exits += e->event == TRACE_EXIT;
        if (e->event != TRACE_STATE || e->time < v->from || e->time > v->to) {
            continue;
        }
        if ((e->arg & 15) != now[e->vcpu].state) {
            settle_tie(t, i, now[e->vcpu].state);
            t->breaks += (e->arg & 15) != now[e->vcpu].state;
        }
        v->changes++;
        v->times[now[e->vcpu].state] += e->time - now[e->vcpu].since;
        now[e->vcpu].since = e->time;
        now[e->vcpu].state = e->arg >> 4 & 15;
    }
    for (size_t i = 0; i < t->n_vcpus; i++) {
        t->vcpus[i].times[now[i].state] += t->vcpus[i].to - now[i].since;
    }
    free(now);
}

char *trace_file_read(struct trace_file *t, const char *text, size_t size) {
    char line[LINE_MAX_BYTES];
    size_t number = 0;

    *t = (struct trace_file){0};
    for (const char *p = text, *end = text + size; p < end;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((newline != NULL ? newline : end) - p);
        size_t length = n > 0 && p[n - 1] == '\r' ? n - 1 : n;

        number++;
        if (length > sizeof(prefix) - 1 && memcmp(p, prefix, sizeof(prefix) - 1) == 0) {
            size_t kept = length < sizeof(line) ? length : sizeof(line) - 1;
            memcpy(line, p, kept);
            line[kept] = '\0';
            struct line l = {.at = line + sizeof(prefix) - 1};
            read_line(t, &l);
            if (l.bad) {
                for (char *c = line; *c != '\0'; c++) {
                    *c = *c < ' ' || *c > '~' ? '?' : *c;
                }
                return must_printf("line %zu: found '%.*s', expected %s", number, SHOWN, l.at,
                                   l.expected);
            }
        }
        p += n + (newline != NULL);
    }
    if (t->cpus == 0) {
        return must_printf("found no trace in it (lines '%s...')", prefix);
    }
    if (t->n_entries > 1) { /* the records that are there were counted as if they were missing */
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a new `begin` frees and forgets all of it */
        qsort(t->entries, t->n_entries, sizeof(*t->entries), by_time);
    }
    t->missing = t->missing > t->n_entries + t->lost ? t->missing - t->n_entries - t->lost : 0;
    find_beginnings(t);
    account(t);
    return NULL;
}

uint64_t trace_ns(const struct trace_file *t, uint64_t time) {
    uint64_t ticks = time - t->from;

    return ticks / t->hz * 1000000000u + ticks % t->hz * 1000000000u / t->hz;
}
