/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A machine on an ordinary host: include/hyp/arch.h and core/port.h with fake pCPUs in virtual
 * time, under the real hyp/ and core/.
 *
 * Each pCPU and each guest program is a fiber. One runs at a time; time passes only while all
 * sleep: in a guest's guest_run(), in an idle wait, in fake_spend(). With `noise` every lock,
 * atomic access and port or arch call of the code under test (arch/fake/steps.c) may let other
 * pCPUs go first or take some ticks, by a random sequence that the seed alone determines: the same
 * seed, the same run.
 *
 * A test fills a fake_setup, calls fake_run(), and looks at what is left until the next fake_run().
 * What must hold on any machine is checked all the time; fake_faults() says what did not.
 */
#ifndef FAKE_FAKE_H
#define FAKE_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "hyp/vm.h"

#define FAKE_CPUS   16u
#define FAKE_VMS    24u
#define FAKE_SECOND 1000000u /* ticks; one is a microsecond */
#define FAKE_SLICE  2000u

/* How a run ended. */
enum fake_end {
    FAKE_OFF,   /* the last VM was gone */
    FAKE_LIMIT, /* the time was up */
    FAKE_STUCK, /* nothing will ever happen again, or time stands still */
    FAKE_PANIC, /* the hypervisor said so */
};

struct fake_vm {
    fake_guest *program; /* what the boot vCPU runs */
    uint64_t arg;
    uint32_t vcpus;
    uint32_t weight;     /* 0: the default */
    int32_t advance_ns;  /* a tick is 1000 ns */
    uint64_t cpus;       /* mask of pCPUs, 0: all */
    bool off;            /* not started with the machine */
    unsigned load_steps; /* 0: 4 */
    uint64_t load_ticks; /* per step; 0: 10 */
};

struct fake_setup {
    unsigned cpus;
    uint64_t slice; /* 0: FAKE_SLICE */
    uint64_t limit; /* ticks that the run may take; 0: 10 s */
    uint64_t seed;
    unsigned vmid_bits;    /* 0: 16 */
    uint64_t switch_ticks; /* what it takes to bring a vCPU onto a pCPU */
    uint64_t refill_ticks; /* and to show it interrupts that others made pending */
    unsigned noise;        /* one in so many steps is disturbed; 0: none */
    unsigned vms;
    struct fake_vm vm[FAKE_VMS];
};

/* Boots the machine and runs it to its end. What the last one left is freed first. */
enum fake_end fake_run(const struct fake_setup *what);

/* Frees what the last run left. */
void fake_free(void);

/* How many things went wrong, and the first of them in words ("" if none did). */
unsigned fake_faults(void);
const char *fake_first_fault(void);

/* Records that something is wrong. Any fiber. */
void fake_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What came out of the serial port, ending in NUL. */
const char *fake_output(void);

/* When the last fake_run() began, in ticks; port_clock() says when it ended. */
uint64_t fake_started(void);

/*
 * Has `act` called on a pCPU, in its interrupt handler, at `when`: a device, a monitor. During a
 * run, or before it from a test's `fake_prepare`.
 */
void fake_at(uint64_t when, unsigned cpu, void (*act)(uint64_t arg), uint64_t arg);

/* If set, called once the machine is set up and before its first pCPU starts. */
extern void (*fake_prepare)(void);

/* Makes an interrupt (FAKE_VIRQ_*) of the vCPU pending and wakes it. On a pCPU, no locks held. */
void fake_post(struct vcpu *v, uint32_t virq);

/* The machine's random sequence. */
uint32_t fake_roll(uint32_t below);

/* The pCPU is busy for so long, in the hypervisor. */
void fake_spend(uint64_t ticks);

/* Before each access to memory that others may change, in the code under test. */
void fake_step(void);

/*
 * Instead of noise: one pCPU at a time, and at the steps `at[0..count)`, counted from the next
 * fake_explore_start() on, another one goes on, until fake_explore_stop(). fake_explore_steps()
 * says how many were counted.
 */
void fake_explore(const unsigned *at, unsigned count);
void fake_explore_start(void);
void fake_explore_stop(void);
unsigned fake_explore_steps(void);

/* Hardware faults for tests that must fail. */
struct fake_broken {
    bool no_broadcast; /* HCR_EL2.FB = 0: a local invalidate stays local */
    bool same_vmid;    /* all VMs get one VMID */
};
extern struct fake_broken fake_broken;

/* How often a translation came out of a TLB that the tables did not make, and hits in all. */
struct fake_tlb_counts {
    uint64_t hits, misses, stale, flushes, all_flushes;
};
extern struct fake_tlb_counts fake_tlb_counts;

/* ---- What a guest program can do. On its own fiber; v is the vCPU that it runs on ---- */

uint64_t guest_clock(void);
void guest_run(struct vcpu *v, uint64_t ticks); /* UINT64_MAX: for ever */
void guest_wfi(struct vcpu *v);
void guest_wfe(struct vcpu *v);
int guest_cpu_on(struct vcpu *v, unsigned target, fake_guest *entry, uint64_t arg);
_Noreturn void guest_cpu_off(struct vcpu *v);
_Noreturn void guest_system_off(struct vcpu *v);
_Noreturn void guest_system_reset(struct vcpu *v);
_Noreturn void guest_crash(struct vcpu *v);
void guest_sgi(struct vcpu *v, unsigned target);
int guest_flag(struct vcpu *v, struct pvsched_record *record); /* PV sched; NULL: release */
void guest_kick(struct vcpu *v, unsigned target);
void guest_vtimer(struct vcpu *v, uint64_t ticks); /* from now; UINT64_MAX: off */
void guest_ptimer(struct vcpu *v, uint64_t ticks);

/* Sleeps in WFI for so long, by the virtual timer; other interrupts do not end it. */
void guest_sleep(struct vcpu *v, uint64_t ticks);

/* Whom an invalidate of the guest reaches, as the instruction says. */
enum guest_tlbi { GUEST_TLBI_LOCAL, GUEST_TLBI_SHARED };

/* The machine page behind virtual page `page`; UINT64_MAX if there is none. Looks into the TLB. */
uint64_t guest_access(struct vcpu *v, unsigned page);
void guest_use_space(struct vcpu *v, unsigned space);
void guest_set_asid(struct vcpu *v, unsigned space, uint32_t asid);
void guest_map(struct vcpu *v, unsigned space, unsigned page, uint32_t ipage, enum guest_tlbi how);
void guest_invalidate_all(struct vcpu *v, enum guest_tlbi how);

#endif
