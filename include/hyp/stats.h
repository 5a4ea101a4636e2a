/* SPDX-License-Identifier: GPL-2.0-only */
/* What is counted, in words. */
#ifndef HYP_STATS_H
#define HYP_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/sched.h"

struct pcpu;
struct vcpu;
struct vm;

/* What a pCPU did since it came online, in ticks; the three add up to that time. */
struct cpu_times {
    uint64_t guest, hypervisor, idle;
};

/* Ticks of the clock in nanoseconds, exact for any clock up to 1 GHz and 500 years. */
uint64_t stats_ns(uint64_t ticks);

/* Nanoseconds in ticks, rounded up. */
uint64_t stats_ticks(uint64_t ns);

/* Of a pCPU that is online, up to now. Any pCPU. */
struct cpu_times stats_cpu_times(const struct pcpu *p);

/* The name of an exit reason (enum exit_reason). */
const char *stats_exit_name(unsigned reason);

/*
 * What is said of each vCPU, a line each: run-state times in ns, entries on which translations of a
 * sibling were forgotten, or needed not be, and exits by reason; how long these took in ns, all and
 * the longest (hyp/exits.h says what that includes); its timer advancement (core/advance.h), in ns.
 * Exits that are not over yet are not in there.
 */
enum stats_line { STATS_TIMES, STATS_EXITS, STATS_ADVANCE, STATS_LINES };

/* Prints them for all vCPUs of the VM; of its timers only if there was any expiry. Any pCPU. */
void stats_print(struct vm *vm);

/*
 * One of those lines, or one of stats_print_cpus(), for the monitor: false if there is no room for
 * it now. Any pCPU.
 */
bool stats_vcpu_line(struct vcpu *v, enum stats_line which);
bool stats_cpu_line(unsigned cpu);
bool stats_vmids_line(void);

/*
 * Prints a line for each pCPU: guest, hypervisor and idle time in ns; entries that took the lock of
 * the VMIDs, and those that forgot all translations. Then one: VMIDs, and roll-overs. Any pCPU.
 */
void stats_print_cpus(void);

/* Stolen time as its guest is told, up to now, in ns: 0 if it did not ask. `times`: sched_times().
 */
uint64_t stats_stolen_ns(const struct vcpu *v, const uint64_t times[RUN_STATES]);

/* The dialect of the preempted flag that it speaks: "pv-lock", "pv-sched", "-" for none. */
const char *stats_flag_name(const struct vcpu *v);

#endif
