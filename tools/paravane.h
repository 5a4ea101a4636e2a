/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the command `paravane` share. Single-threaded host program. */
#ifndef TOOLS_PARAVANE_H
#define TOOLS_PARAVANE_H

/* Included before any other header. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/config.h"

/* Exit codes. For `run`, OK means that every VM powered off by itself. */
enum { EXIT_OK = 0, EXIT_FAILED = 1, EXIT_BAD_USAGE = 2 };

#define MIB (1ull << 20)

/* ---- paravane.c ---- */

/* One subcommand: its arguments as main() gets them, argv[0] being "paravane NAME". */
typedef int command_fn(int argc, char **argv);
command_fn command_check, command_pack, command_run, command_report, command_trace, command_top;

/* The usage text of a command. */
extern const char help_check[], help_pack[], help_run[], help_report[], help_trace[], help_top[];

/* Prints "COMMAND: MESSAGE" and where to find help to standard error; returns EXIT_BAD_USAGE. */
int bad_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- paravane_util.c ---- */

/* Prints "paravane: MESSAGE" to standard error. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Like malloc, realloc and asprintf, but ends the program when there is no memory. */
void *must_realloc(void *p, size_t count, size_t size);
char *must_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "256M", "1.5G", "37.2M": rounded up to a tenth of the unit. */
struct size_text {
    char text[32];
};
struct size_text size_text(uint64_t bytes);

/* A whole number from min to max; false when text is anything else. */
bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *number);

/* Writes all n bytes to a blocking fd; false with errno set. */
bool write_all(int fd, const void *bytes, size_t n);

/* Reads at most `max` bytes of a file into memory; more are EFBIG. NULL with errno set. */
char *read_file(const char *path, size_t max, size_t *size);

/* Makes a folder and those above it that are missing; false with errno set. */
bool make_folders(const char *path);

/* ---- paravane_machine.c ---- */

enum kernel_format { KERNEL_IMAGE, KERNEL_GZIP, KERNEL_RAW };

/* A file that the description names; files named twice are one source. */
struct source {
    char *path;
    dev_t dev;
    ino_t ino;
    uint64_t size;      /* bytes in the file */
    char *archive_name; /* its name in the boot archive */
};

enum vm_file { VM_KERNEL, VM_INITRD, VM_DTB, VM_FILES };
extern const char *const vm_file_keys[VM_FILES];

/* A description that has been read and checked together with the files it names. */
struct machine {
    const char *path; /* of the description */
    char *text;
    size_t len;
    struct machine_config config;
    struct vm_config *vms;
    size_t n_vms;
    int (*files)[VM_FILES]; /* for each VM, indices into sources; -1: not given */
    enum kernel_format *formats;
    struct source *sources;
    size_t n_sources;
};

/*
 * Reads the description and looks at every file that it names. Prints what is wrong; true when
 * nothing is.
 */
bool machine_load(struct machine *m, const char *path);
void machine_free(struct machine *m);
uint64_t machine_memory(const struct machine *m);
uint64_t machine_vcpus(const struct machine *m);

/* ---- paravane_pack.c ---- */

/*
 * Writes the boot archive to `path`: all or nothing. *size gets its bytes. Prints what is wrong.
 */
bool machine_pack(const struct machine *m, const char *path, uint64_t *size);

/* ---- paravane_qemu.c ---- */

struct run_options {
    const char *conf;
    unsigned cpus;
    uint64_t memory_mib; /* 0: as much as the VMs need */
    const char *cpu;
    bool threads;
    const char *log_dir; /* NULL: no logs */
    unsigned timeout;    /* seconds; 0: none */
    const char *monitor; /* name of a socket to make; NULL: none */
};

/* The emulator found, new enough. Strings are allocated. */
struct emulator {
    char *path;
    char *version; /* such as "11.1.3" */
};

/* Finds the emulator and asks its version. Prints what is wrong. */
bool emulator_find(struct emulator *emulator);

/* The hypervisor's image, allocated; NULL, after a message, when there is none. */
char *hypervisor_image(void);

/* The command that starts the machine: allocated strings, ended with NULL. */
char **emulator_command(const struct emulator *emulator, const struct run_options *options,
                        const char *image, const char *archive);

/* ---- paravane_monitor.c ---- */

/* A stream socket whose one client types into the console and gets what comes from it. */
struct monitor_socket;
struct sockaddr_un;
enum { MONITOR_FDS = 2 };

/* The address of a socket's name; false, after a message, when that is too long. */
bool monitor_address(const char *path, struct sockaddr_un *address);

/*
 * Makes it; `path` must last. NULL after a message. The other functions do nothing (serve: return
 * 0) without one, NULL. None of them waits.
 */
struct monitor_socket *monitor_open(const char *path);

/* Says what to poll for; `typing`: the console takes keys. */
void monitor_poll(const struct monitor_socket *m, bool typing, struct pollfd fds[MONITOR_FDS]);

/* After poll(): takes clients; puts at most `max` bytes from one into typed[], returns how many. */
size_t monitor_serve(struct monitor_socket *m, const struct pollfd fds[MONITOR_FDS], char *typed,
                     size_t max);

/* n bytes that the console said. */
void monitor_feed(struct monitor_socket *m, const char *bytes, size_t n);

/* Ends the connection and removes the socket. */
void monitor_close(struct monitor_socket *m);

/* ---- paravane_console.c ---- */

enum vm_end { VM_RUNNING, VM_OFF, VM_CRASHED };

/* What the console has told so far, and where its copies go. */
struct console;

/* log_dir may be NULL; header is the first line of console.log. NULL after a message. */
struct console *console_open(const struct machine *m, const char *log_dir, const char *header);

/* Takes n bytes from the machine: terminal, logs, verdicts. false when they can't be written. */
bool console_feed(struct console *c, const char *bytes, size_t n);

/* Takes the last unfinished line as a line and closes the logs. false as above. */
bool console_finish(struct console *c);

bool console_panicked(const struct console *c);
bool console_machine_off(const struct console *c);

/* Prints each VM that crashed, or should have ended and has not; returns how many. */
size_t console_report_ends(const struct console *c);
void console_free(struct console *c);

#endif
