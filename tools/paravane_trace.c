/* SPDX-License-Identifier: GPL-2.0-only */
/* The command `trace`: a trace for a viewer, or held against the hypervisor's counters. */
#include "tools/paravane_trace.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (4ull << 30)

static double milliseconds(const struct trace_file *t, uint64_t ticks) {
    return (double)ticks * 1e3 / (double)t->hz;
}

/* The largest difference of a state's two times, in millionths of the vCPU's time. */
static double largest_difference(const struct trace_vcpu *v) {
    double largest = 0;

    for (unsigned s = 0; s < TRACE_STATES && v->to > v->from; s++) {
        uint64_t more = v->times[s] > v->counted[s] ? v->times[s] : v->counted[s];
        uint64_t less = v->times[s] > v->counted[s] ? v->counted[s] : v->times[s];
        double ppm = (double)(more - less) * 1e6 / (double)(v->to - v->from);
        largest = ppm > largest ? ppm : largest;
    }
    return largest;
}

/* Whether the trace is whole and says what the counters say. */
static bool summary(const struct trace_file *t) {
    static const struct {
        const char *name;
        unsigned state;
    } columns[] = {{"running", TRACE_RUNNING},
                   {"waiting", TRACE_RUNNABLE},
                   {"blocked", TRACE_BLOCKED},
                   {"off", TRACE_OFF}};
    double largest = 0;
    bool told = true;

    printf("milliseconds by the trace / by the counters\n%-20s", "VM vCPU");
    for (unsigned c = 0; c < 4; c++) {
        printf(" %23s", columns[c].name);
    }
    printf(" %9s %9s\n", "changes", "exits");
    for (size_t i = 0; i < t->n_vcpus; i++) {
        const struct trace_vcpu *v = &t->vcpus[i];
        char name[CONFIG_NAME_MAX + 8];

        snprintf(name, sizeof(name), "%s %u", t->vms[v->vm].name, v->number);
        printf("%-20s", name);
        for (unsigned c = 0; c < 4; c++) {
            printf(" %11.3f/%11.3f", milliseconds(t, v->times[columns[c].state]),
                   milliseconds(t, v->counted[columns[c].state]));
        }
        printf(" %9" PRIu64 " %9" PRIu64 "\n", v->changes, v->exits);
        told = told && v->told;
        if (largest_difference(v) > largest) {
            largest = largest_difference(v);
        }
    }
    printf("%.3f ms on %u CPUs, %zu records, %" PRIu64 " lost, %" PRIu64 " missing%s\n",
           milliseconds(t, t->to - t->from), t->cpus, t->n_entries, t->lost, t->missing,
           t->complete ? "" : ", the end is missing");
    printf("largest difference %.0f ppm, %" PRIu64 " changes that follow on none\n", largest,
           t->breaks);
    return t->complete && told && t->lost == 0 && t->missing == 0 && t->breaks == 0 &&
           largest <= 1000;
}

static int write_json(const struct trace_file *t, const char *path) {
    FILE *out = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    bool ok = out != NULL && trace_write_json(t, out);

    if (out != NULL && out != stdout && fclose(out) != 0) {
        ok = false;
    }
    if (!ok) {
        complain("cannot write %s: %s", path, strerror(errno));
        return EXIT_FAILED;
    }
    if (!t->complete || t->lost != 0 || t->missing != 0) {
        complain("the trace is not whole: %" PRIu64 " records lost, %" PRIu64 " missing%s", t->lost,
                 t->missing, t->complete ? "" : ", and its end");
    }
    return EXIT_OK;
}

static int trace_command(const char *path, const char *output, bool wants_summary) {
    struct trace_file t;
    size_t size;
    char *text = read_file(path, FILE_MAX, &size);

    if (text == NULL) {
        complain("cannot read %s: %s", path, strerror(errno));
        return EXIT_BAD_USAGE;
    }
    char *wrong = trace_file_read(&t, text, size);
    int code = EXIT_OK;
    if (wrong != NULL) {
        complain("%s: %s", path, wrong);
        code = EXIT_FAILED;
    } else {
        if (output != NULL) {
            code = write_json(&t, output);
        }
        if (wants_summary && !summary(&t) && code == EXIT_OK) {
            code = EXIT_FAILED;
        }
    }
    free(wrong);
    free(text);
    trace_file_free(&t);
    return code;
}

int command_trace(int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"summary", no_argument, NULL, 's'},
                                            {0}};
    const char *output = NULL;
    bool wants_summary = false;
    int option;

    while ((option = getopt_long(argc, argv, "ho:", options, NULL)) != -1) {
        switch (option) {
        case 'h':
            fputs(help_trace, stdout);
            return EXIT_OK;
        case 'o':
            output = optarg;
            break;
        case 's':
            wants_summary = true;
            break;
        default:
            return bad_usage(argv[0], NULL);
        }
    }
    if (argc - optind != 1) {
        return bad_usage(argv[0], "one FILE is expected, found %d", argc - optind);
    }
    if (output == NULL && !wants_summary) {
        return bad_usage(argv[0], "-o FILE or --summary is expected");
    }
    return trace_command(argv[optind], output, wants_summary);
}
