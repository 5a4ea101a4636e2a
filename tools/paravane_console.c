/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the one console that all VMs share. The hypervisor puts "[NAME] " before each line of a
 * guest and "paravane: " before each of its own, so no guest can speak for it or for another VM.
 */
#include "tools/paravane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct console_vm {
    const char *name;
    bool autostart;
    enum vm_end end;
    char *reason; /* of a crash */
    FILE *log;
};

struct console {
    const char *log_dir;
    struct console_vm *vms;
    size_t n_vms;
    FILE *log;     /* everything, as it came */
    FILE *own_log; /* the hypervisor's lines */
    FILE *trace;   /* its traces', which go nowhere else; NULL: there are none */
    enum { LINE_UNKNOWN, LINE_TRACE, LINE_OTHER } kind; /* of the line that has begun */
    size_t held;  /* LINE_UNKNOWN: so much of trace_prefix has come, and nothing else */
    FILE *target; /* of the line being read, once that is known */
    bool known;   /* the line's beginning has been looked at */
    bool panicked, machine_off;
    bool failed;
    size_t used;
    char line[8192];
};

static const char trace_prefix[] = "paravane: trace ";

static FILE *open_log(struct console *c, const char *name, const char *suffix) {
    char *path = must_printf("%s/%s%s", c->log_dir, name, suffix);
    FILE *log = fopen(path, "we");

    if (log == NULL) {
        complain("cannot write %s: %s", path, strerror(errno));
        c->failed = true;
    }
    free(path);
    return log;
}

static void open_logs(struct console *c, bool traced) {
    if (!make_folders(c->log_dir)) {
        complain("cannot make the folder %s: %s", c->log_dir, strerror(errno));
        c->failed = true;
        return;
    }
    c->log = open_log(c, "console", ".log");
    c->own_log = open_log(c, "paravane", ".log");
    if (traced) {
        c->trace = open_log(c, "trace", ".txt");
    }
    for (size_t i = 0; i < c->n_vms && !c->failed; i++) {
        const char *name = c->vms[i].name;
        /* a dot can't be part of a VM's name, so these two stay unlike any other */
        bool taken = strcmp(name, "console") == 0 || strcmp(name, "paravane") == 0;
        c->vms[i].log = open_log(c, name, taken ? ".vm.log" : ".log");
    }
}

struct console *console_open(const struct machine *m, const char *log_dir, const char *header) {
    struct console *c = must_realloc(NULL, 1, sizeof(*c));

    memset(c, 0, sizeof(*c));
    c->log_dir = log_dir;
    c->n_vms = m->n_vms;
    c->vms = must_realloc(NULL, m->n_vms, sizeof(*c->vms));
    for (size_t i = 0; i < m->n_vms; i++) {
        c->vms[i] = (struct console_vm){.name = m->vms[i].name, .autostart = m->vms[i].autostart};
    }
    if (log_dir != NULL) {
        open_logs(c, m->config.trace != 0);
        if (!c->failed) {
            fprintf(c->log, "%s\n", header);
        }
    }
    if (c->failed) {
        console_free(c);
        return NULL;
    }
    return c;
}

/* Where the text goes on after a prefix; NULL when it does not begin with it. */
static const char *after(const char *text, const char *prefix) {
    size_t n = strlen(prefix);

    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* "NAME: off", "NAME: reset" or "NAME: crashed: REASON". */
static void note_vm(struct console *c, const char *text) {
    for (size_t i = 0; i < c->n_vms; i++) {
        struct console_vm *vm = &c->vms[i];
        const char *rest = after(text, vm->name);

        if (rest == NULL || (rest = after(rest, ": ")) == NULL) {
            continue;
        }
        if (strcmp(rest, "off") == 0) {
            vm->end = VM_OFF;
        } else if (strcmp(rest, "reset") == 0) {
            vm->end = VM_RUNNING;
        } else if ((rest = after(rest, "crashed")) != NULL) {
            vm->end = VM_CRASHED;
            free(vm->reason);
            vm->reason = must_printf("%s", rest);
        }
        return;
    }
}

/* A line has begun, or is whole: whose is it? The text behind the prefix is returned. */
static const char *classify(struct console *c) {
    const char *text;

    c->target = NULL;
    if ((text = after(c->line, "paravane: ")) != NULL) {
        const char *rest;
        c->target = c->own_log;
        if (c->trace != NULL && after(text, "trace ") != NULL) {
            c->target = NULL; /* is in its file already */
        } else if ((rest = after(text, "vm ")) != NULL) {
            note_vm(c, rest);
        } else if (after(text, "panic:") != NULL) {
            c->panicked = true;
        } else if (after(text, "machine off") != NULL) {
            c->machine_off = true;
        }
        return text;
    }
    for (size_t i = 0; c->line[0] == '[' && i < c->n_vms; i++) {
        text = after(c->line + 1, c->vms[i].name);
        if (text != NULL && text[0] == ']') {
            c->target = c->vms[i].log;
            return text[1] == ' ' ? text + 2 : text + 1;
        }
    }
    return c->line;
}

/* Hands on what is in line[]: a whole line, or a piece of a very long one. */
static void flush_line(struct console *c, bool whole) {
    const char *text = c->line;

    if (whole && c->used > 0 && c->line[c->used - 1] == '\r') {
        c->used--;
    }
    c->line[c->used] = '\0';
    if (!c->known) {
        text = classify(c);
    }
    c->known = !whole;
    if (c->target != NULL) {
        fwrite(text, 1, (size_t)(c->line + c->used - text), c->target);
        if (whole) {
            fputc('\n', c->target);
        }
    }
    c->used = 0;
}

/* Logs are written at once, so that they can be watched. */
static void check_log(struct console *c, FILE *log, const char *name) {
    if (log != NULL && (fflush(log) != 0 || ferror(log)) && !c->failed) {
        complain("cannot write the log of %s in %s: %s", name, c->log_dir, strerror(errno));
        c->failed = true;
    }
}

static void check_logs(struct console *c) {
    check_log(c, c->log, "the console");
    check_log(c, c->own_log, "the hypervisor");
    check_log(c, c->trace, "traces");
    for (size_t i = 0; i < c->n_vms; i++) {
        check_log(c, c->vms[i].log, c->vms[i].name);
    }
}

/* To the terminal and the log of everything. */
static void show(struct console *c, const char *bytes, size_t n) {
    if (n > 0 && !c->failed && !write_all(STDOUT_FILENO, bytes, n)) {
        complain("cannot write to standard output: %s", strerror(errno));
        c->failed = true;
    }
    if (c->log != NULL) {
        fwrite(bytes, 1, n, c->log);
    }
}

/*
 * The same, but lines of a trace go to their file, and only there. The beginning of a line is held
 * back while it may still be one.
 */
static void show_or_trace(struct console *c, const char *bytes, size_t n) {
    char others[4096];
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        if (c->kind == LINE_UNKNOWN) {
            if (bytes[i] == trace_prefix[c->held]) {
                if (++c->held == sizeof(trace_prefix) - 1) {
                    c->kind = LINE_TRACE;
                    fputs(trace_prefix, c->trace);
                }
                continue;
            }
            c->kind = LINE_OTHER;
            memcpy(others + used, trace_prefix, c->held);
            used += c->held;
        }
        if (c->kind == LINE_OTHER) {
            others[used++] = bytes[i];
        } else if (bytes[i] != '\r') {
            fputc(bytes[i], c->trace);
        }
        if (bytes[i] == '\n') {
            c->kind = LINE_UNKNOWN;
            c->held = 0;
        }
        if (used > sizeof(others) - sizeof(trace_prefix)) {
            show(c, others, used);
            used = 0;
        }
    }
    show(c, others, used);
}

bool console_feed(struct console *c, const char *bytes, size_t n) {
    if (c->trace != NULL) {
        show_or_trace(c, bytes, n);
    } else {
        show(c, bytes, n);
    }
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            flush_line(c, true);
        } else {
            if (c->used == sizeof(c->line) - 1) {
                flush_line(c, false);
            }
            c->line[c->used++] = bytes[i];
        }
    }
    check_logs(c);
    return !c->failed;
}

bool console_finish(struct console *c) {
    if (c->trace != NULL && c->kind == LINE_UNKNOWN) {
        show(c, trace_prefix, c->held);
    }
    if (c->used > 0 || c->known) {
        flush_line(c, true);
    }
    check_logs(c);
    return !c->failed;
}

bool console_panicked(const struct console *c) {
    return c->panicked;
}

bool console_machine_off(const struct console *c) {
    return c->machine_off;
}

size_t console_report_ends(const struct console *c) {
    size_t bad = 0;

    for (size_t i = 0; i < c->n_vms; i++) {
        const struct console_vm *vm = &c->vms[i];
        if (vm->end == VM_CRASHED) {
            complain("vm %s crashed%s", vm->name, vm->reason);
            bad++;
        } else if (vm->end == VM_RUNNING && vm->autostart) {
            complain("vm %s did not power off", vm->name);
            bad++;
        }
    }
    return bad;
}

void console_free(struct console *c) {
    for (size_t i = 0; i < c->n_vms; i++) {
        free(c->vms[i].reason);
        if (c->vms[i].log != NULL) {
            fclose(c->vms[i].log);
        }
    }
    if (c->log != NULL) {
        fclose(c->log);
    }
    if (c->own_log != NULL) {
        fclose(c->own_log);
    }
    if (c->trace != NULL) {
        fclose(c->trace);
    }
    free(c->vms);
    free(c);
}
