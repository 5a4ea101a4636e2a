/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of `paravane top` share: counters as the monitor's `stats` prints them. */
#ifndef TOOLS_PARAVANE_TOP_H
#define TOOLS_PARAVANE_TOP_H

#include "tools/paravane.h"

#include <stdio.h>

enum { TOP_REASONS = 16 };

/* The names of exit reasons, in the order in which they were first seen. */
struct top_reasons {
    char name[TOP_REASONS][16];
    size_t n;
};

/* Times are nanoseconds since the machine began. */
struct top_exits {
    uint64_t count, total;
};

struct top_vcpu {
    char vm[CONFIG_NAME_MAX + 1];
    unsigned index;
    uint64_t running, runnable, blocked, off, longest_wait, switches, migrations;
    struct top_exits exits[TOP_REASONS];
};

struct top_cpu {
    unsigned index;
    uint64_t guest, hypervisor, idle;
};

/* One answer to `stats`. */
struct top_sample {
    struct top_vcpu *vcpus;
    struct top_cpu *cpus;
    size_t n_vcpus, n_cpus;
    bool whole; /* its last line has been seen */
    uint64_t clock;
};

/* ---- paravane_top_read.c ---- */

/* Takes a line of the console without its end; lines that are no counters change nothing. */
void top_line(struct top_sample *s, struct top_reasons *reasons, const char *line);

/* The same vCPU or CPU in another sample, or NULL; `hint`: where it probably is. */
const struct top_vcpu *top_find_vcpu(const struct top_sample *s, const char *vm, unsigned index,
                                     size_t hint);
const struct top_cpu *top_find_cpu(const struct top_sample *s, unsigned index, size_t hint);

/* Where a line goes on after the monitor's prompts. */
const char *top_after_prompts(const char *line);

/* Forgets what it holds. */
void top_clear(struct top_sample *s);

/* ---- paravane_top_show.c ---- */

/* Prints what happened between two samples as a table. */
void top_show(FILE *out, const struct top_sample *from, const struct top_sample *to,
              const struct top_reasons *reasons, bool vcpus);

#endif
