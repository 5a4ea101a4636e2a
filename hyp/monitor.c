/* SPDX-License-Identifier: GPL-2.0-only */
/* The monitor: the line that is typed, and the commands. */
#include "hyp/monitor.h"

#include "core/port.h"
#include "core/rare.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/pcpu.h"
#include "hyp/spin.h"
#include "hyp/stats.h"
#include "hyp/string.h"
#include "hyp/timer.h"
#include "hyp/trace.h"

#define PROMPT        "paravane> "
#define STEP_LINES    8u       /* at a time */
#define STEP_PAUSE_NS 1000000u /* between them */

static bool open, greeted;
static bool answered; /* by an answer that prints the next prompt itself */
static char line[MONITOR_LINE_MAX];
static unsigned used;
static struct monitor_answer answer;
static struct {
    uint8_t byte[256]; /* typed while an answer is under way; what does not fit is lost */
    unsigned head, tail;
} typed;
static struct timer
    timer; /* while an answer is under way; its fields are for the pCPU that has it */

static void edit(uint8_t byte);

/* ---- Answers of many lines ---- */

static void set_open(bool now) {
    open = now;
    atomic_store(&vm_operator, now);
}

static void prompt(void) {
    if (open) {
        console_monitor_text(PROMPT);
    }
}

static void go_on(struct timer *t) {
    enum monitor_step step = MONITOR_MORE;

    for (unsigned i = 0; i < STEP_LINES && step == MONITOR_MORE; i++) {
        step = answer.step(&answer);
    }
    if (step == MONITOR_DONE) {
        answer.step = NULL;
        prompt();
        while (answer.step == NULL && typed.tail != typed.head) {
            edit(typed.byte[typed.tail++ % sizeof(typed.byte)]);
        }
        return;
    }
    timer_set(t, port_clock() + stats_ticks(STEP_PAUSE_NS));
    timer_program(sched_slice_end(this_pcpu()->index));
}

static void begin(enum monitor_step (*step)(struct monitor_answer *), unsigned first,
                  unsigned last) {
    answered = true;
    answer = (struct monitor_answer){.step = step, .first = first, .last = last, .vm = first};
    go_on(&timer);
}

/* ---- Arguments ---- */

/* The VM of that name, or NULL after a message. */
static struct vm *find_vm(const char *name) {
    for (unsigned i = 0; i < vm_count; i++) {
        if (strcmp(vms[i]->config->name, name) == 0) {
            return vms[i];
        }
    }
    console_monitor_line("found '%s', expected the name of a VM: see `vms`", name);
    return NULL;
}

/* A listing of one VM, or of all. */
static void list(const struct monitor_words *w,
                 enum monitor_step (*step)(struct monitor_answer *)) {
    const struct vm *vm = w->count > 1 ? find_vm(w->word[1]) : NULL;

    if (w->count == 1) {
        begin(step, 0, vm_count - 1);
    } else if (vm != NULL) {
        begin(step, vm->index, vm->index);
    }
}

/* 1..max, or 0. */
static uint32_t read_number(const char *text, uint32_t max) {
    uint64_t n = 0;

    for (; *text >= '0' && *text <= '9' && n <= max; text++) {
        n = n * 10 + (uint64_t)(*text - '0');
    }
    return *text == '\0' && n <= max ? (uint32_t)n : 0;
}

/* ---- Commands ---- */

static void do_vms(const struct monitor_words *w) {
    list(w, monitor_vms);
}

static void do_vcpus(const struct monitor_words *w) {
    list(w, monitor_vcpus);
}

static void do_timers(const struct monitor_words *w) {
    list(w, monitor_timers);
}

static void do_exits(const struct monitor_words *w) {
    list(w, monitor_exits);
}

static void do_cpus(const struct monitor_words *w) {
    (void)w;
    begin(monitor_cpus, 0, 0);
}

static void do_stats(const struct monitor_words *w) {
    list(w, monitor_stats);
}

static void do_log(const struct monitor_words *w) {
    (void)w;
    begin(monitor_log, 0, 0);
}

/* What a VM's state must be for a command, or a message. */
static bool must(bool can, const struct vm *vm, const char *expected) {
    if (!can) {
        console_monitor_line("vm %s: expected it to be %s: see `vms`", vm->config->name, expected);
    }
    return can;
}

static void do_start(const struct monitor_words *w) {
    struct vm *vm = find_vm(w->word[1]);

    if (vm != NULL && must(atomic_load(&vm->state) == VM_OFF, vm, "off")) {
        vm_start(vm);
    }
}

static void stop_as(const struct monitor_words *w, enum vm_end end) {
    struct vm *vm = find_vm(w->word[1]);

    if (vm != NULL && must(atomic_load(&vm->state) != VM_OFF, vm, "on")) {
        vm_stop(vm, end);
    }
}

static void do_stop(const struct monitor_words *w) {
    stop_as(w, VM_END_OFF);
}

static void do_reset(const struct monitor_words *w) {
    stop_as(w, VM_END_RESET);
}

static void do_pause(const struct monitor_words *w) {
    struct vm *vm = find_vm(w->word[1]);

    if (vm != NULL) {
        (void)must(vm_pause(vm), vm, "running");
    }
}

/* Its vCPUs may still be on their way out. */
static enum monitor_step resume(struct monitor_answer *a) {
    struct vm *vm = vms[a->vm];

    if (vm->paused && vm_pausing(vm)) {
        return MONITOR_AGAIN;
    }
    (void)must(vm_resume(vm), vm, "paused");
    return MONITOR_DONE;
}

static void do_resume(const struct monitor_words *w) {
    const struct vm *vm = find_vm(w->word[1]);

    if (vm != NULL) {
        begin(resume, vm->index, vm->index);
    }
}

static void do_focus(const struct monitor_words *w) {
    const struct vm *vm;

    if (strcmp(w->word[1], "none") == 0) {
        console_focus(CONSOLE_NOBODY);
    } else if ((vm = find_vm(w->word[1])) != NULL) {
        console_focus(vm->index);
        set_open(false);
        console_monitor_line("vm %s has the focus; Ctrl-] comes back here", vm->config->name);
    }
}

/* What can be set while the machine runs. */
static bool set_weight(struct vm *vm, const char *value) {
    uint32_t weight = read_number(value, CONFIG_WEIGHT_MAX);

    for (unsigned i = 0; weight != 0 && i < vm->config->vcpus; i++) {
        sched_set_weight(&vm->vcpus[i]->sched, weight);
    }
    return weight != 0;
}

static bool set_pause_clock(struct vm *vm, const char *value) {
    bool stands = strcmp(value, "stop") == 0;

    if (!stands && strcmp(value, "run") != 0) {
        return false;
    }
    vm->clock_stands = stands;
    return true;
}

RARE static bool set_advance(struct vm *vm, const char *value) {
    uint32_t ns = read_number(value, ADVANCE_FIXED_MAX);
    int32_t setting = strcmp(value, "-1") == 0 ? ADVANCE_ADAPTIVE : (int32_t)ns;

    if (setting == 0 && strcmp(value, "0") != 0) {
        return false;
    }
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        advance_set(&vm->vcpus[i]->advance, setting);
    }
    return true;
}

RARE static bool set_spin(struct vm *vm, const char *value) {
    uint32_t spin = SPIN_IGNORE;

    while (spin <= SPIN_AUTO && strcmp(value, spin_name(spin)) != 0) {
        spin++;
    }
    if (spin > SPIN_AUTO) {
        return false;
    }
    atomic_store(&vm->spin, spin);
    for (unsigned i = 0; i < vm->config->vcpus; i++) {
        vcpu_request(vm->vcpus[i], REQUEST_SPIN);
    }
    return true;
}

static const struct setting {
    const char *key, *expected;
    bool (*set)(struct vm *vm, const char *value);
} settings[] = {
    {"weight", "a number from 1 to 65535", set_weight},
    {"pause_clock", "run or stop", set_pause_clock},
    {"advance_ns", "-1 (adaptive), 0 (off) or nanoseconds up to 50000", set_advance},
    {"spin", "ignore, yield, directed or auto", set_spin},
};

static void do_set(const struct monitor_words *w) {
    struct vm *vm = find_vm(w->word[1]);

    if (vm == NULL) {
        return;
    }
    for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (strcmp(w->word[2], settings[i].key) == 0) {
            if (!settings[i].set(vm, w->word[3])) {
                console_monitor_line("%s: found '%s', expected %s", w->word[2], w->word[3],
                                     settings[i].expected);
            }
            return;
        }
    }
    console_monitor_line("found '%s', expected weight, pause_clock, advance_ns or spin",
                         w->word[2]);
}

static enum monitor_step dump_trace(struct monitor_answer *a) {
    (void)a;
    return trace_dump_step() ? MONITOR_MORE : MONITOR_DONE;
}

static void do_trace(const struct monitor_words *w) {
    if (strcmp(w->word[1], "on") == 0) {
        if (!trace_start()) {
            console_monitor_line(
                "trace: expected rings ([machine] trace = SIZE) and none being taken");
        }
    } else if (strcmp(w->word[1], "off") == 0) {
        if (!trace_stop()) {
            console_monitor_line("trace: expected one to be taken");
        }
    } else if (strcmp(w->word[1], "dump") == 0) {
        if (trace_active()) {
            console_monitor_line("trace: expected `trace off` first");
        } else {
            begin(dump_trace, 0, 0);
        }
    } else {
        console_monitor_line("found '%s', expected on, off or dump", w->word[1]);
    }
}

static void do_off(const struct monitor_words *w) {
    (void)w;
    if (atomic_load(&vms_running) != 0) {
        console_monitor_line("%u VMs are on, expected none: `stop` them first",
                             atomic_load(&vms_running));
        return;
    }
    vm_machine_off();
}

static void do_quit(const struct monitor_words *w) {
    (void)w;
    set_open(false);
}

static void do_help(const struct monitor_words *w);

static const struct command {
    const char *name, *arguments, *help;
    unsigned least, most; /* words after it */
    void (*run)(const struct monitor_words *w);
} commands[] = {
    {"help", "", "this list", 0, 0, do_help},
    {"vms", "[VM]", "VMs: state, vCPUs, weight, memory, CPU time", 0, 1, do_vms},
    {"vcpus", "[VM]", "vCPUs: what they do, and their times", 0, 1, do_vcpus},
    {"timers", "[VM]", "timer advancement: setting, advance now, errors", 0, 1, do_timers},
    {"exits", "[VM]", "why guests were left, how often and for how long", 0, 1, do_exits},
    {"cpus", "", "CPUs: time in guests, in the hypervisor, idle", 0, 0, do_cpus},
    {"stats", "[VM]", "all counters, for programs", 0, 1, do_stats},
    {"start", "VM", "loads and starts a VM that is off", 1, 1, do_start},
    {"stop", "VM", "ends it at once", 1, 1, do_stop},
    {"reset", "VM", "ends it, loads it again and starts it", 1, 1, do_reset},
    {"pause", "VM", "stops its vCPUs where they stand", 1, 1, do_pause},
    {"resume", "VM", "lets them go on", 1, 1, do_resume},
    {"focus", "VM|none", "its console, raw; the keys go there", 1, 1, do_focus},
    {"set", "VM KEY VALUE",
     "weight 1..65535; pause_clock run|stop; advance_ns -1..50000; spin MODE", 3, 3, do_set},
    {"trace", "on|off|dump", "takes a trace, prints it", 1, 1, do_trace},
    {"log", "", "the hypervisor's last lines", 0, 0, do_log},
    {"off", "", "turns the machine off, when no VM is on", 0, 0, do_off},
    {"quit", "", "closes the monitor, as Ctrl-] does", 0, 0, do_quit},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static enum monitor_step help_line(struct monitor_answer *a) {
    const struct command *c = &commands[a->item];

    if (a->item == COMMANDS) {
        return MONITOR_DONE;
    }
    if (!console_monitor_line("%-6s %-13s %s", c->name, c->arguments, c->help)) {
        return MONITOR_AGAIN;
    }
    a->item++;
    return MONITOR_MORE;
}

static void do_help(const struct monitor_words *w) {
    (void)w;
    begin(help_line, 0, 0);
}

/* ---- The line ---- */

/* Cuts the line into words. False: too many. */
static bool split(struct monitor_words *w) {
    w->count = 0;
    for (char *p = line; *p != '\0';) {
        if (*p == ' ') {
            *p++ = '\0';
            continue;
        }
        if (w->count == MONITOR_WORDS) {
            return false;
        }
        w->word[w->count++] = p;
        while (*p != '\0' && *p != ' ') {
            p++;
        }
    }
    return true;
}

static void execute(void) {
    struct monitor_words w;
    bool fits = split(&w);

    if (w.count == 0) {
        return;
    }
    for (unsigned i = 0; i < COMMANDS; i++) {
        const struct command *c = &commands[i];
        if (strcmp(w.word[0], c->name) == 0) {
            if (!fits || w.count - 1 < c->least || w.count - 1 > c->most) {
                console_monitor_line("expected: %s %s", c->name, c->arguments);
            } else {
                c->run(&w);
            }
            return;
        }
    }
    console_monitor_line("found '%s', expected a command: see `help`", w.word[0]);
}

static void end_line(void) {
    console_monitor_text("\r\n");
    line[used] = '\0';
    used = 0;
    answered = false;
    execute();
    if (!answered) {
        prompt();
    }
}

/* One byte of a line: echo, backspace, Ctrl-U, Ctrl-C. */
static void edit(uint8_t byte) {
    char echo[2] = {(char)byte, '\0'};

    if (byte == '\r' || byte == '\n') {
        end_line();
    } else if ((byte == 0x7f || byte == '\b') && used != 0) {
        used--;
        console_monitor_text("\b \b");
    } else if (byte == 0x15 || byte == 0x03) {
        used = 0;
        console_monitor_text("\r\n");
        prompt();
    } else if (byte >= ' ' && byte < 0x7f && used < MONITOR_LINE_MAX - 1) {
        line[used++] = (char)byte;
        console_monitor_text(echo);
    }
}

bool monitor_typed(uint8_t byte) {
    if (byte == MONITOR_KEY) {
        set_open(!open);
        used = 0;
        console_monitor_text("\r\n");
        if (open && !greeted) {
            greeted = true;
            timer_init(&timer, go_on);
            console_monitor_text("the monitor: `help` lists its commands, Ctrl-] closes it\r\n");
        }
        if (answer.step == NULL) {
            prompt();
        }
        return true;
    }
    if (open && answer.step == NULL) {
        edit(byte);
    } else if (open && byte == 0x03) {
        answer.step = NULL; /* Ctrl-C ends a long answer */
        typed.tail = typed.head;
        timer_set(&timer, TIMER_NEVER);
        console_monitor_text("\r\n");
        prompt();
    } else if (open && typed.head - typed.tail < sizeof(typed.byte)) {
        typed.byte[typed.head++ % sizeof(typed.byte)] = byte;
    }
    return open;
}
