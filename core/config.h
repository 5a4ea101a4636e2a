/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The machine description ("machine.conf"): which virtual machines there are and what each gets.
 *
 *     # comment: a whole line, or after white space
 *     [machine]
 *     slice = 2ms
 *
 *     [vm alpha]
 *     kernel  = vmlinuz
 *     memory  = 256M
 *     vcpus   = 4
 *     cmdline = console=ttyAMA0 quiet # this '#' belongs to the command line
 *
 * One parser serves the hypervisor and `paravane check`, so both agree on every byte. It works on
 * text in memory, allocates nothing, keeps no state between calls, calls nothing and trusts
 * nothing: any bytes may come in. All functions here: any context, any pCPU, no locks.
 */
#ifndef CORE_CONFIG_H
#define CORE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cpu_set.h"

#define CONFIG_NAME_MAX    31u          /* bytes in a VM's name */
#define CONFIG_FILE_MAX    255u         /* bytes in a file name */
#define CONFIG_CMDLINE_MAX 1023u        /* bytes in a command line */
#define CONFIG_TEXT_MAX    (256u << 10) /* bytes in the whole description */
#define CONFIG_VCPUS_MAX   256u
#define CONFIG_WEIGHT_MAX  65535u
#define CONFIG_MEMORY_MIN  (1ull << 20)
#define CONFIG_MEMORY_MAX  (240ull << 30) /* guest RAM is 1 GiB up; it must end below 256 GiB */
#define CONFIG_KEYS_MAX    24u            /* room for the keys of one section */

/* The default of `weight`. */
#define CONFIG_WEIGHT_DEFAULT 256u

/* Whose UID a guest is told. */
enum config_identity { IDENTITY_PARAVANE, IDENTITY_KVM };

/* What becomes of a vCPU that waits in WFE, as spinlocks do. */
enum config_spin { SPIN_IGNORE, SPIN_YIELD, SPIN_DIRECTED, SPIN_AUTO };

/* One [vm NAME] section. All strings end in NUL; one that was not given is empty. */
struct vm_config {
    char name[CONFIG_NAME_MAX + 1];
    char kernel[CONFIG_FILE_MAX + 1];
    char initrd[CONFIG_FILE_MAX + 1];
    char dtb[CONFIG_FILE_MAX + 1];
    char cmdline[CONFIG_CMDLINE_MAX + 1];
    uint64_t memory;     /* bytes, a multiple of 4096, CONFIG_MEMORY_MIN..CONFIG_MEMORY_MAX */
    uint32_t vcpus;      /* 1..CONFIG_VCPUS_MAX */
    uint32_t weight;     /* 1..CONFIG_WEIGHT_MAX */
    int32_t advance_ns;  /* timer advancement: core/advance.h */
    struct cpu_set cpus; /* pCPUs that it may run on; all when not given; never empty */
    bool autostart;
    uint32_t spin;                      /* enum config_spin */
    uint32_t identity;                  /* enum config_identity */
    bool pvtime;                        /* stolen time is offered */
    bool pvlock;                        /* PV lock is; default: with our own identity only */
    bool pvyield;                       /* PV yield is; default: the same */
    bool pvsched;                       /* openEuler's PV sched is */
    bool flag_blocked;                  /* a vCPU that waits in WFI counts as preempted */
    uint32_t line;                      /* of the section's header, from 1 */
    uint32_t key_line[CONFIG_KEYS_MAX]; /* read by config_vm_key_line() */
};

/* The [machine] section, or the defaults when there is none. */
struct machine_config {
    uint64_t slice_ns;  /* 100'000..100'000'000; 0: the hypervisor's default */
    uint64_t trace;     /* bytes of trace ring for each pCPU, 0 (none)..256 MiB */
    uint32_t vmid_bits; /* 4..16; 0: as many as the hardware has */
};

/* What is wrong, where. `found` and `expected` are printable ASCII, whatever the input was. */
struct config_error {
    uint32_t line;      /* from 1; 0: the whole text */
    char section[40];   /* "vm NAME", "machine" or empty */
    char key[32];       /* empty when the fault belongs to no key */
    char found[96];     /* with quotes when it repeats the input, which is cut when it is long */
    char expected[256]; /* a phrase that goes on after "expected " */
};

/*
 * Reads the description text[0..len).
 *
 * vms may be NULL: then everything is checked and counted and no VM is stored, so that the caller
 * can make room and call again. Otherwise VM i goes to vms[i], in the order of the text, and more
 * than max_vms VMs are an error.
 *
 * true: *machine, vms[] and *n_vms (at least 1) are set. false: *err says why, for the first fault
 * in the text; what the other pointers point to is then unspecified. Time grows with len times the
 * number of VMs.
 */
bool config_parse(const char *text, size_t len, struct machine_config *machine,
                  struct vm_config *vms, size_t max_vms, size_t *n_vms, struct config_error *err);

/* The line, from 1, on which `key` stands in the section of `vm`; 0 when it was not given. */
uint32_t config_vm_key_line(const struct vm_config *vm, const char *key);

/*
 * Where the value of the `key = value` line number `line` (from 1) stands in text: *value_len bytes
 * at *offset, without the white space and the comment around it. For tools that rewrite a
 * description without touching the rest. false when there is no such line or it holds no value.
 */
bool config_find_value(const char *text, size_t len, uint32_t line, size_t *offset,
                       size_t *value_len);

/*
 * Writes one line without a newline, such as
 *     machine.conf:12: [vm a] memory: found '3', expected a number with suffix K, M or G, ...
 * to buf, cut at size - 1 bytes and always ended with NUL (size >= 1). Returns the bytes written
 * without the NUL.
 */
size_t config_format_error(const struct config_error *err, const char *filename, char *buf,
                           size_t size);

#endif
