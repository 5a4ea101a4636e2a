/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The monitor: Ctrl-] on the serial port opens it, lines of commands look at the machine and change
 * it. It runs in the interrupt of the port, and long answers a few lines at a time from a timer, so
 * that it answers whatever guests do and holds no pCPU for long.
 */
#ifndef HYP_MONITOR_H
#define HYP_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hyp/vm.h"

#define MONITOR_KEY      0x1d /* Ctrl-] */
#define MONITOR_LINE_MAX 128u
#define MONITOR_WORDS    5u

/*
 * A byte was typed. False: it is not for the monitor. From the port's interrupt, one at a time, no
 * locks.
 */
bool monitor_typed(uint8_t byte);

/* A command line in words. */
struct monitor_words {
    unsigned count;
    char *word[MONITOR_WORDS];
};

/*
 * An answer of many lines: prints its next one with console_monitor_line() and moves on. MORE:
 * there are more; AGAIN: there was no room, the same line comes again; DONE.
 */
enum monitor_step { MONITOR_DONE, MONITOR_MORE, MONITOR_AGAIN };

/* What an answer that is under way has come to. */
struct monitor_answer {
    enum monitor_step (*step)(struct monitor_answer *a);
    unsigned first, last; /* VMs to go through */
    unsigned vm, item;    /* the next line's */
    bool begun;
    uint64_t count, total; /* exits: of all reasons, of this VM; stats: lines of this vCPU */
};

/* The listings (hyp/monitor_show.c). */
enum monitor_step monitor_vms(struct monitor_answer *a);
enum monitor_step monitor_vcpus(struct monitor_answer *a);
enum monitor_step monitor_timers(struct monitor_answer *a);
enum monitor_step monitor_exits(struct monitor_answer *a);
enum monitor_step monitor_cpus(struct monitor_answer *a);
enum monitor_step monitor_stats(struct monitor_answer *a);
enum monitor_step monitor_log(struct monitor_answer *a);

#endif
