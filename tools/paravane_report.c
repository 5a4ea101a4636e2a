/* SPDX-License-Identifier: GPL-2.0-only */
/* The command `report`: a table from the console of a run. */
#include "tools/paravane.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REASONS = 64, MAX_WORD = 64 };

/* Counters of one vCPU: the last that the hypervisor told. */
struct vcpu_counts {
    bool seen;
    uint64_t running, runnable; /* ns */
    uint64_t exits[MAX_REASONS];
};

struct vm_lines {
    char *name;
    const char *end;
    char *kernel; /* version; NULL: not seen */
    struct vcpu_counts *vcpus;
    size_t n_vcpus;
    size_t announced;    /* vCPUs, at boot; their counters come when the VM ends */
    uint64_t *hackbench; /* us */
    size_t n_hackbench;
};

struct report {
    struct vm_lines *vms; /* in the order in which the log names them */
    size_t n_vms;
    char reasons[MAX_REASONS][MAX_WORD];
    size_t n_reasons;
    unsigned cpus; /* of the machine; 0: not known */
    char *run;     /* how it was started; NULL: not known */
};

static const char *after(const char *text, const char *prefix) {
    size_t n = strlen(prefix);

    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static struct vm_lines *vm_named(struct report *r, const char *name, size_t n) {
    for (size_t i = 0; i < r->n_vms; i++) {
        if (strlen(r->vms[i].name) == n && memcmp(r->vms[i].name, name, n) == 0) {
            return &r->vms[i];
        }
    }
    r->vms = must_realloc(r->vms, r->n_vms + 1, sizeof(*r->vms));
    r->vms[r->n_vms] = (struct vm_lines){.name = must_printf("%.*s", (int)n, name), .end = "?"};
    return &r->vms[r->n_vms++];
}

/* ---- reading ---- */

/* "wfi:123,hvc:4" */
static void read_exits(struct report *r, struct vcpu_counts *vcpu, const char *text) {
    while (*text != '\0' && *text != ' ') {
        size_t n = strcspn(text, ":, ");
        size_t i = 0;

        if (text[n] != ':' || n == 0 || n >= MAX_WORD) {
            return;
        }
        while (i < r->n_reasons &&
               (strlen(r->reasons[i]) != n || memcmp(r->reasons[i], text, n) != 0)) {
            i++;
        }
        if (i == r->n_reasons) {
            if (i == MAX_REASONS) {
                return;
            }
            snprintf(r->reasons[i], MAX_WORD, "%.*s", (int)n, text);
            r->n_reasons++;
        }
        char *end;
        vcpu->exits[i] = strtoull(text + n + 1, &end, 10);
        text = *end == ',' ? end + 1 : end;
        if (*end != ',' && *end != ' ' && *end != '\0') {
            return;
        }
    }
}

/* "vm=NAME vcpu=I running=NS runnable=NS ... exits=..." */
static void read_stats(struct report *r, const char *text) {
    const char *name = after(text, "vm=");
    uint64_t index;

    if (name == NULL) {
        return;
    }
    size_t n = strcspn(name, " ");
    const char *vcpu_text = after(name + n, " vcpu=");
    if (n == 0 || vcpu_text == NULL) {
        return;
    }
    index = strtoull(vcpu_text, NULL, 10);
    if (index >= CONFIG_VCPUS_MAX) {
        return;
    }
    struct vm_lines *vm = vm_named(r, name, n);
    if (index >= vm->n_vcpus) {
        vm->vcpus = must_realloc(vm->vcpus, index + 1, sizeof(*vm->vcpus));
        memset(vm->vcpus + vm->n_vcpus, 0, (index + 1 - vm->n_vcpus) * sizeof(*vm->vcpus));
        vm->n_vcpus = index + 1;
    }
    struct vcpu_counts *vcpu = &vm->vcpus[index];
    *vcpu = (struct vcpu_counts){.seen = true};
    for (const char *word = strchr(vcpu_text, ' '); word != NULL; word = strchr(word, ' ')) {
        const char *value;
        word++;
        if ((value = after(word, "running=")) != NULL) {
            vcpu->running = strtoull(value, NULL, 10);
        } else if ((value = after(word, "runnable=")) != NULL) {
            vcpu->runnable = strtoull(value, NULL, 10);
        } else if ((value = after(word, "exits=")) != NULL) {
            read_exits(r, vcpu, value);
        }
    }
}

/* "NAME: off", "NAME: reset" or "NAME: crashed..." */
static void read_vm_event(struct report *r, const char *text) {
    size_t n = strcspn(text, ":");
    const char *event = after(text + n, ": ");

    if (event == NULL || n == 0 || memchr(text, ' ', n) != NULL) {
        return;
    }
    struct vm_lines *vm =
        vm_named(r, text, n); /* at boot each is named, in the order of the description */
    char *rest;
    unsigned long vcpus = strtoul(event, &rest, 10);
    if (after(rest, " vCPUs") != NULL && vcpus <= CONFIG_VCPUS_MAX) {
        vm->announced = vcpus;
    } else if (strcmp(event, "off") == 0) {
        vm->end = "off";
    } else if (strcmp(event, "reset") == 0) {
        vm->end = "?";
    } else if (after(event, "crashed") != NULL) {
        vm->end = "crashed";
    }
}

/* Seconds with a fraction, in us; digits behind the sixth do not count. */
static bool read_seconds(const char *text, uint64_t *us) {
    uint64_t scale = 100000;
    char *end;

    if (*text < '0' || *text > '9') {
        return false;
    }
    uint64_t seconds = strtoull(text, &end, 10);
    if (seconds > UINT32_MAX) {
        return false;
    }
    *us = seconds * 1000000;
    if (*end == '.') {
        for (end++; *end >= '0' && *end <= '9'; end++) {
            *us += (uint64_t)(*end - '0') * scale;
            scale /= 10;
        }
    }
    return *end == '\0' || *end == ' ';
}

/* "NAME] text" of a guest: the VM gets its row, whatever it says. */
static void read_guest(struct report *r, const char *line) {
    static const char name_characters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    static const char linux_version[] = "Linux version ";
    size_t n = strspn(line, name_characters);
    const char *text = after(line + n, "] ");
    const char *value;
    uint64_t us;

    if (text == NULL || n == 0 || n > CONFIG_NAME_MAX) {
        return;
    }
    struct vm_lines *vm = vm_named(r, line, n);
    if ((value = after(text, "GUEST: hackbench ")) != NULL && read_seconds(value, &us)) {
        vm->hackbench = must_realloc(vm->hackbench, vm->n_hackbench + 1, sizeof(us));
        vm->hackbench[vm->n_hackbench++] = us;
    } else if ((value = strstr(text, linux_version)) != NULL && vm->kernel == NULL) {
        value += strlen(linux_version);
        vm->kernel = must_printf("%.*s", (int)strcspn(value, " "), value);
    }
}

static void read_line(struct report *r, const char *line) {
    const char *text;

    if (line[0] == '[') {
        read_guest(r, line + 1);
    } else if ((text = after(line, "paravane: stats ")) != NULL) {
        read_stats(r, text);
    } else if ((text = after(line, "paravane: vm ")) != NULL) {
        read_vm_event(r, text);
    } else if ((text = after(line, "# run: ")) != NULL && r->run == NULL) {
        const char *cpus = after(text, "cpus=");
        r->run = must_printf("%s", text);
        r->cpus = cpus != NULL ? (unsigned)strtoul(cpus, NULL, 10) : 0;
    }
}

/* ---- printing ---- */

enum { COLUMNS = 7 };

/* A table whose columns are as wide as their widest cell. */
struct row {
    char *cells[COLUMNS];
};
struct table {
    struct row *rows;
    size_t n;
};

static void print_table(const struct table *t) {
    static const bool left[COLUMNS] = {true, false, true, false, false, false, true};
    int width[COLUMNS] = {0};

    for (size_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < COLUMNS; k++) {
            int n = (int)strlen(t->rows[i].cells[k]);
            width[k] = n > width[k] ? n : width[k];
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        for (size_t k = 0; k < COLUMNS - 1; k++) {
            printf("%*s  ", left[k] ? -width[k] : width[k], t->rows[i].cells[k]);
        }
        printf("%s\n", t->rows[i].cells[COLUMNS - 1]);
    }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static char *median_text(struct vm_lines *vm) {
    size_t n = vm->n_hackbench;

    if (n == 0) {
        return must_printf("-");
    }
    qsort(vm->hackbench, n, sizeof(*vm->hackbench), by_value);
    uint64_t us =
        n % 2 == 1 ? vm->hackbench[n / 2] : (vm->hackbench[n / 2 - 1] + vm->hackbench[n / 2]) / 2;
    uint64_t ms = (us + 500) / 1000;
    return must_printf("%llu.%03llu", (unsigned long long)(ms / 1000),
                       (unsigned long long)(ms % 1000));
}

static uint64_t running_of(const struct vm_lines *vm) {
    uint64_t sum = 0;

    for (size_t i = 0; i < vm->n_vcpus; i++) {
        sum += vm->vcpus[i].running;
    }
    return sum;
}

static size_t vcpus_of(const struct vm_lines *vm) {
    size_t n = 0;

    for (size_t i = 0; i < vm->n_vcpus; i++) {
        n += vm->vcpus[i].seen;
    }
    return n > vm->announced ? n : vm->announced;
}

static bool counted(const struct vm_lines *vm) {
    return vm->n_vcpus > 0;
}

/* "wfi=123 hvc=4", the reasons in the order of the log; *total gets their sum. */
static char *exits_text(const struct report *r, const struct vm_lines *vm, uint64_t *total) {
    char *text = must_printf("%s", "");

    *total = 0;
    for (size_t k = 0; k < r->n_reasons; k++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < vm->n_vcpus; i++) {
            sum += vm->vcpus[i].exits[k];
        }
        if (sum > 0) {
            char *longer = must_printf("%s%s%s=%llu", text, text[0] != '\0' ? " " : "",
                                       r->reasons[k], (unsigned long long)sum);
            free(text);
            text = longer;
            *total += sum;
        }
    }
    return text;
}

static void add_row(struct table *t, struct row row) {
    t->rows = must_realloc(t->rows, t->n + 1, sizeof(*t->rows));
    t->rows[t->n++] = row;
}

static void add_vm_row(struct table *t, const struct report *r, struct vm_lines *vm,
                       uint64_t all_running) {
    uint64_t total;
    size_t vcpus = vcpus_of(vm);
    char *reasons = exits_text(r, vm, &total);
    char *share = must_printf("-");

    if (counted(vm) && all_running > 0) {
        /* in tenths of a percent; as floating point, for the product may not fit */
        double tenths = (double)running_of(vm) * 1000.0 / (double)all_running;
        unsigned rounded = (unsigned)(tenths + 0.5);
        free(share);
        share = must_printf("%u.%u %%", rounded / 10, rounded % 10);
    }
    add_row(t, (struct row){
                   {must_printf("%s", vm->name),
                    vcpus > 0 ? must_printf("%zu", vcpus) : must_printf("-"),
                    must_printf("%s", vm->end), median_text(vm), share,
                    counted(vm) ? must_printf("%llu", (unsigned long long)total) : must_printf("-"),
                    reasons}});
}

/* Each kernel version once, with the VMs that ran it. */
static void print_kernels(const struct report *r) {
    for (size_t i = 0; i < r->n_vms; i++) {
        const char *kernel = r->vms[i].kernel;
        bool first = kernel != NULL;

        for (size_t k = 0; k < i && first; k++) {
            first = r->vms[k].kernel == NULL || strcmp(r->vms[k].kernel, kernel) != 0;
        }
        if (!first) {
            continue;
        }
        printf("kernel %s:", kernel);
        for (size_t k = i; k < r->n_vms; k++) {
            if (r->vms[k].kernel != NULL && strcmp(r->vms[k].kernel, kernel) == 0) {
                printf(" %s", r->vms[k].name);
            }
        }
        printf("\n");
    }
}

static void print_report(struct report *r) {
    struct table t = {0};
    uint64_t all_running = 0;
    size_t vcpus = 0;

    for (size_t i = 0; i < r->n_vms; i++) {
        all_running += running_of(&r->vms[i]);
        vcpus += vcpus_of(&r->vms[i]);
    }
    add_row(&t, (struct row){{must_printf("VM"), must_printf("vCPUs"), must_printf("end"),
                              must_printf("hackbench s"), must_printf("CPU share"),
                              must_printf("exits"), must_printf("by reason")}});
    for (size_t i = 0; i < r->n_vms; i++) {
        add_vm_row(&t, r, &r->vms[i], all_running);
    }
    print_table(&t);
    printf("\n%zu VM%s, %zu vCPU%s", r->n_vms, r->n_vms == 1 ? "" : "s", vcpus,
           vcpus == 1 ? "" : "s");
    if (r->cpus > 0 && vcpus > 0) {
        size_t tenths = (vcpus * 10 + r->cpus / 2) / r->cpus;
        printf(" on %u CPU%s: overcommit %zu.%zu", r->cpus, r->cpus == 1 ? "" : "s", tenths / 10,
               tenths % 10);
    }
    printf("\n");
    if (r->run != NULL) {
        printf("run: %s\n", r->run);
    }
    print_kernels(r);
    for (size_t i = 0; i < t.n; i++) {
        for (size_t k = 0; k < COLUMNS; k++) {
            free(t.rows[i].cells[k]);
        }
    }
    free(t.rows);
}

static void free_report(struct report *r) {
    for (size_t i = 0; i < r->n_vms; i++) {
        free(r->vms[i].name);
        free(r->vms[i].kernel);
        free(r->vms[i].vcpus);
        free(r->vms[i].hackbench);
    }
    free(r->vms);
    free(r->run);
}

int command_report(int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    struct report r = {0};
    char *line = NULL;
    size_t room = 0;
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option != 'h') {
            return bad_usage(argv[0], NULL);
        }
        fputs(help_report, stdout);
        return EXIT_OK;
    }
    if (argc - optind != 1) {
        return bad_usage(argv[0], "one LOG is expected, found %d", argc - optind);
    }
    FILE *log = fopen(argv[optind], "re");
    if (log == NULL) {
        complain("cannot read %s: %s", argv[optind], strerror(errno));
        return EXIT_BAD_USAGE;
    }
    while (getline(&line, &room, log) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        read_line(&r, line);
    }
    int code = EXIT_OK;
    if (ferror(log)) {
        complain("cannot read %s: %s", argv[optind], strerror(errno));
        code = EXIT_BAD_USAGE;
    } else if (r.n_vms == 0) {
        complain("%s: found no line about a VM, expected the console.log of a run", argv[optind]);
        code = EXIT_FAILED;
    } else {
        print_report(&r);
    }
    fclose(log);
    free(line);
    free_report(&r);
    return code;
}
