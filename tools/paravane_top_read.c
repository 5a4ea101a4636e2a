/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the lines that the monitor's `stats` prints. */
#include "tools/paravane_top.h"

#include <stdlib.h>
#include <string.h>

static const char prompt[] = "paravane> ";

/* One word of a line, "KEY=VALUE": cut in two, in place. */
struct pair {
    char *key, *value;
};

/* false at the end of the line. A word without "=" has an empty value. */
static bool next_pair(char **rest, struct pair *pair) {
    char *word = strsep(rest, " ");

    while (word != NULL && *word == '\0') {
        word = strsep(rest, " ");
    }
    if (word == NULL) {
        return false;
    }
    pair->key = word;
    pair->value = strchr(word, '=');
    if (pair->value != NULL) {
        *pair->value++ = '\0';
    } else {
        pair->value = word + strlen(word);
    }
    return true;
}

static uint64_t number(const char *text) {
    return strtoull(text, NULL, 10);
}

/* The reason's number; TOP_REASONS when there are too many. */
static size_t reason_of(struct top_reasons *r, const char *name) {
    for (size_t i = 0; i < r->n; i++) {
        if (strcmp(r->name[i], name) == 0) {
            return i;
        }
    }
    if (r->n == TOP_REASONS || strlen(name) >= sizeof(r->name[0])) {
        return TOP_REASONS;
    }
    strcpy(r->name[r->n], name);
    return r->n++;
}

const struct top_vcpu *top_find_vcpu(const struct top_sample *s, const char *vm, unsigned index,
                                     size_t hint) {
    for (size_t i = 0; i < s->n_vcpus; i++) {
        const struct top_vcpu *v = &s->vcpus[(hint + i) % s->n_vcpus];
        if (v->index == index && strcmp(v->vm, vm) == 0) {
            return v;
        }
    }
    return NULL;
}

const struct top_cpu *top_find_cpu(const struct top_sample *s, unsigned index, size_t hint) {
    for (size_t i = 0; i < s->n_cpus; i++) {
        const struct top_cpu *c = &s->cpus[(hint + i) % s->n_cpus];
        if (c->index == index) {
            return c;
        }
    }
    return NULL;
}

/* The vCPU of a line that begins with "vm=NAME vcpu=I", made if it is new; NULL: none. */
static struct top_vcpu *vcpu_of(struct top_sample *s, char **rest) {
    struct pair vm, vcpu;

    if (!next_pair(rest, &vm) || strcmp(vm.key, "vm") != 0 || !next_pair(rest, &vcpu) ||
        strcmp(vcpu.key, "vcpu") != 0 || strlen(vm.value) >= sizeof(s->vcpus->vm)) {
        return NULL;
    }
    unsigned index = (unsigned)number(vcpu.value);
    /* its second line follows the first: look at the last one first */
    const struct top_vcpu *known =
        top_find_vcpu(s, vm.value, index, s->n_vcpus > 0 ? s->n_vcpus - 1 : 0);
    if (known == NULL) {
        s->vcpus = must_realloc(s->vcpus, s->n_vcpus + 1, sizeof(*s->vcpus));
        known = &s->vcpus[s->n_vcpus++];
        s->vcpus[s->n_vcpus - 1] = (struct top_vcpu){.index = index};
        strcpy(s->vcpus[s->n_vcpus - 1].vm, vm.value);
    }
    return &s->vcpus[known - s->vcpus];
}

/* "wfi:3,hvc:4" */
static void read_counts(struct top_vcpu *v, struct top_reasons *reasons, char *list) {
    char *item;

    while ((item = strsep(&list, ",")) != NULL) {
        char *colon = strchr(item, ':');
        if (colon == NULL) {
            continue;
        }
        *colon = '\0';
        size_t reason = reason_of(reasons, item);
        if (reason < TOP_REASONS) {
            v->exits[reason].count = number(colon + 1);
        }
    }
}

static void read_vcpu(struct top_vcpu *v, struct top_reasons *reasons, char *rest) {
    struct {
        const char *key;
        uint64_t *value;
    } fields[] = {{"running", &v->running},           {"runnable", &v->runnable},
                  {"blocked", &v->blocked},           {"off", &v->off},
                  {"longest_wait", &v->longest_wait}, {"switches", &v->switches},
                  {"migrations", &v->migrations}};
    struct pair p;

    while (next_pair(&rest, &p)) {
        if (strcmp(p.key, "exits") == 0) {
            read_counts(v, reasons, p.value);
        }
        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
            if (strcmp(p.key, fields[i].key) == 0) {
                *fields[i].value = number(p.value);
            }
        }
    }
}

/* "wfi=TOTAL,LONGEST ..." */
static void read_times(struct top_vcpu *v, struct top_reasons *reasons, char *rest) {
    struct pair p;

    while (next_pair(&rest, &p)) {
        size_t reason = reason_of(reasons, p.key);
        if (reason < TOP_REASONS) {
            v->exits[reason].total = number(p.value);
        }
    }
}

/* "I guest=NS hypervisor=NS idle=NS" */
static void read_cpu(struct top_sample *s, char *rest) {
    struct top_cpu cpu = {.index = (unsigned)number(rest)};
    struct pair p;

    while (next_pair(&rest, &p)) {
        if (strcmp(p.key, "guest") == 0) {
            cpu.guest = number(p.value);
        } else if (strcmp(p.key, "hypervisor") == 0) {
            cpu.hypervisor = number(p.value);
        } else if (strcmp(p.key, "idle") == 0) {
            cpu.idle = number(p.value);
        }
    }
    const struct top_cpu *known = top_find_cpu(s, cpu.index, 0);
    if (known == NULL) {
        s->cpus = must_realloc(s->cpus, s->n_cpus + 1, sizeof(*s->cpus));
        known = &s->cpus[s->n_cpus++];
    }
    s->cpus[known - s->cpus] = cpu;
}

/* Where the text goes on after a prefix; NULL when it does not begin with it. */
static char *after(char *text, const char *prefix) {
    size_t n = strlen(prefix);

    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

const char *top_after_prompts(const char *line) {
    while (strncmp(line, prompt, sizeof(prompt) - 1) == 0) {
        line += sizeof(prompt) - 1;
    }
    return line;
}

void top_line(struct top_sample *s, struct top_reasons *reasons, const char *line) {
    char *copy = must_printf("%s", top_after_prompts(line));
    struct top_vcpu *v;
    char *rest;

    if ((rest = after(copy, "paravane: stats end clock=")) != NULL) {
        s->clock = number(rest);
        s->whole = true;
    } else if ((rest = after(copy, "paravane: stats cpu=")) != NULL) {
        read_cpu(s, rest);
    } else if ((rest = after(copy, "paravane: stats ")) != NULL) {
        if ((v = vcpu_of(s, &rest)) != NULL && rest != NULL) {
            read_vcpu(v, reasons, rest);
        }
    } else if ((rest = after(copy, "paravane: exit-times ")) != NULL) {
        if ((v = vcpu_of(s, &rest)) != NULL && rest != NULL) {
            read_times(v, reasons, rest);
        }
    }
    free(copy);
}

void top_clear(struct top_sample *s) {
    free(s->vcpus);
    free(s->cpus);
    *s = (struct top_sample){0};
}
