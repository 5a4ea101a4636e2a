/* SPDX-License-Identifier: GPL-2.0-only */
/* A trace that has been read, for the files of `paravane trace`. docs/trace.md has its text form.
 */
#ifndef TOOLS_PARAVANE_TRACE_H
#define TOOLS_PARAVANE_TRACE_H

#include "tools/paravane.h"

#include <stdio.h>

#include "abi/trace.h"

struct trace_entry {
    uint64_t time;  /* ticks, from..to of the trace */
    uint64_t order; /* as it came: within a pCPU, as it happened */
    uint32_t arg;
    uint32_t vcpu; /* index into trace_file.vcpus */
    uint16_t cpu;
    uint8_t event; /* enum trace_event */
};

struct trace_vm {
    char name[CONFIG_NAME_MAX + 1];
    uint32_t vcpus, first; /* their number, and the index of vCPU 0 in trace_file.vcpus */
};

struct trace_vcpu {
    uint32_t vm, number;
    bool told;                      /* what the counters say is known: */
    uint64_t from, to;              /* ticks: between these moments */
    uint64_t counted[TRACE_STATES]; /* ticks in each state, by the hypervisor's account */
    uint64_t times[TRACE_STATES];   /* the same, by the trace */
    uint64_t exits, changes;
    uint32_t begins_as; /* TRACE_OFF..: its state when the trace began */
    int32_t begins_on;  /* the pCPU where it ran then, or -1 */
};

struct trace_file {
    uint64_t hz, from, to;
    uint32_t cpus;
    struct trace_vm *vms;
    size_t n_vms;
    struct trace_vcpu *vcpus;
    size_t n_vcpus;
    struct trace_entry *entries; /* by time, over all pCPUs */
    size_t n_entries, room;
    uint64_t *next_record; /* for each pCPU: the number that the next record should have */
    uint64_t lost;         /* overwritten in the machine */
    uint64_t missing;      /* lost on the way from there */
    uint64_t breaks; /* changes of state that begin in another state than the last one ended */
    bool complete;   /* the trace has its end */
};

/*
 * Reads the trace in text[0..size), the last one if there are several; lines of other things are
 * passed over. NULL, or what is wrong, allocated. trace_file_free() in either case.
 */
char *trace_file_read(struct trace_file *t, const char *text, size_t size);
void trace_file_free(struct trace_file *t);

/* Nanoseconds from the beginning of the trace to `time`. */
uint64_t trace_ns(const struct trace_file *t, uint64_t time);

/* Writes the trace in Chrome's trace event format. False when that can't be written. */
bool trace_write_json(const struct trace_file *t, FILE *out);

#endif
