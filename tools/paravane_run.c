/* SPDX-License-Identifier: GPL-2.0-only */
/* The command `run`: packs, starts the emulator, carries its console, judges the end. */
#include "tools/paravane.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* Seconds that the emulator gets to end by itself. */
enum { GRACE_AFTER_TERM = 5, GRACE_AFTER_PANIC = 3, GRACE_AFTER_OFF = 10 };

/* A machine that runs. */
struct session {
    pid_t child; /* also the number of its process group */
    bool ended;
    int status; /* as from waitpid(), once ended */
    int input;  /* to its console; -1: closed */
    int output; /* from its console; -1: closed */
    bool read_terminal;
    size_t pending; /* bytes in typed[] that it has not taken yet */
    char typed[512];
    struct timespec stop_at; /* when to end it by force; tv_sec 0: never */
    const char *stop_reason; /* NULL: somebody asked for it */
    int stops;               /* signals sent for that */
    struct console *console;
    struct monitor_socket *monitor; /* NULL: none */
};

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
    if (number != SIGCHLD) {
        stop_signal = number;
    }
}

static const int handled[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};

/*
 * The signals stay blocked but while the session waits, so none is lost and the temporary folder
 * never stays behind. *normal gets the mask for waiting and for the emulator.
 */
static void take_signals(sigset_t *normal) {
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t mask;

    sigemptyset(&mask);
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++) {
        sigaddset(&mask, handled[i]);
        sigaction(handled[i], &action, NULL);
    }
    sigprocmask(SIG_BLOCK, &mask, normal);
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++) {
        sigdelset(normal, handled[i]);
    }
    signal(SIGTTOU, SIG_IGN);
}

/* ---- the terminal ---- */

static struct termios terminal_before;
static bool terminal_changed;

static void restore_terminal(void) {
    if (terminal_changed) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal_before);
        terminal_changed = false;
    }
}

/* Every key goes to the machine as it is typed, but for Ctrl-C, which ends it. */
static void prepare_terminal(struct session *s) {
    struct termios raw;

    s->read_terminal = fcntl(STDIN_FILENO, F_GETFD) >= 0;
    if (tcgetattr(STDIN_FILENO, &terminal_before) != 0) {
        return;
    }
    if (tcgetpgrp(STDIN_FILENO) != getpgrp()) {
        s->read_terminal = false; /* in the background */
        return;
    }
    raw = terminal_before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(ICRNL | IGNCR | INLCR | ISTRIP | IXON);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VQUIT] = _POSIX_VDISABLE;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    terminal_changed = true;
    atexit(restore_terminal);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

/* ---- the emulator ---- */

/* In the child: becomes the emulator, or says why not. */
static void become(char **command, int input, int output, const sigset_t *normal) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGTTOU, SIG_DFL);
    sigprocmask(SIG_SETMASK, normal, NULL);
    execvp(command[0], command);
    complain("cannot run %s: %s", command[0], strerror(errno));
    _exit(127);
}

/*
 * Starts the emulator in a process group of its own: a signal to that group reaches it even when
 * the command is a script around it.
 */
static bool start(struct session *s, char **command, const sigset_t *normal) {
    int in[2], out[2];

    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
        complain("cannot make a pipe: %s", strerror(errno));
        return false;
    }
    s->child = fork();
    if (s->child < 0) {
        complain("cannot start a process: %s", strerror(errno));
        return false;
    }
    if (s->child == 0) {
        become(command, in[0], out[1], normal);
    }
    setpgid(s->child, s->child);
    close(in[0]);
    close(out[1]);
    s->input = in[1];
    s->output = out[0];
    fcntl(s->input, F_SETFL, O_NONBLOCK);
    fcntl(s->output, F_SETFL, O_NONBLOCK);
    return true;
}

static struct timespec in_seconds(unsigned seconds) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)seconds;
    return t;
}

/* Of several, the earliest counts; once the end has begun, none. */
static void stop_in(struct session *s, unsigned seconds, const char *reason) {
    struct timespec at = in_seconds(seconds);

    if (s->stops == 0 && (s->stop_at.tv_sec == 0 || at.tv_sec < s->stop_at.tv_sec)) {
        s->stop_at = at;
        s->stop_reason = reason;
    }
}

static bool due(const struct session *s) {
    struct timespec now = in_seconds(0);

    return s->stop_at.tv_sec != 0 &&
           (now.tv_sec > s->stop_at.tv_sec ||
            (now.tv_sec == s->stop_at.tv_sec && now.tv_nsec >= s->stop_at.tv_nsec));
}

/* Asks the emulator to end the first time, and ends it the second time. */
static void stop_now(struct session *s) {
    if (!s->ended) {
        kill(-s->child, s->stops == 0 ? SIGTERM : SIGKILL);
    }
    s->stops++;
    s->stop_at = in_seconds(GRACE_AFTER_TERM);
}

/* Notices the emulator's end; what is left of its process group goes with it. */
static void look_for_end(struct session *s) {
    siginfo_t info = {0};

    if (s->ended || waitid(P_PID, (id_t)s->child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != s->child) {
        return;
    }
    kill(-s->child, SIGKILL); /* the number is not reused before waitpid() */
    waitpid(s->child, &s->status, 0);
    s->ended = true;
}

/* Carries console output; closes the pipe at its end. */
static void carry_output(struct session *s) {
    char buffer[65536];
    ssize_t n = read(s->output, buffer, sizeof(buffer));

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        close(s->output);
        s->output = -1;
        return;
    }
    monitor_feed(s->monitor, buffer, (size_t)n);
    if (!console_feed(s->console, buffer, (size_t)n)) {
        stop_in(s, 0, "its console could not be written");
    }
    if (console_panicked(s->console)) {
        stop_in(s, GRACE_AFTER_PANIC, "the hypervisor panicked");
    } else if (console_machine_off(s->console)) {
        stop_in(s, GRACE_AFTER_OFF, "the machine is off, and the emulator did not end");
    }
}

static void carry_input(struct session *s, bool readable, bool writable) {
    if (readable && s->pending == 0) {
        ssize_t n = read(STDIN_FILENO, s->typed, sizeof(s->typed));
        if (n > 0) {
            s->pending = (size_t)n;
        } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
            s->read_terminal = false;
        }
    }
    if (writable && s->pending > 0) {
        ssize_t n = write(s->input, s->typed, s->pending);
        if (n > 0) {
            s->pending -= (size_t)n;
            memmove(s->typed, s->typed + n, s->pending);
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            close(s->input);
            s->input = -1;
            s->read_terminal = false;
            s->pending = 0;
        }
    }
}

static void wait_and_carry(struct session *s, const sigset_t *normal) {
    struct pollfd fds[] = {
        {.fd = s->output, .events = POLLIN},
        {.fd = s->read_terminal && s->pending == 0 ? STDIN_FILENO : -1, .events = POLLIN},
        {.fd = s->pending > 0 ? s->input : -1, .events = POLLOUT},
        {.fd = -1},
        {.fd = -1},
    };
    enum { OWN_FDS = 3 };
    /* once the emulator has ended, only what is still in the pipe counts */
    struct timespec second = {.tv_sec = s->ended ? 0 : 1};

    monitor_poll(s->monitor, s->input >= 0 && s->pending == 0, fds + OWN_FDS);
    int n = ppoll(fds, OWN_FDS + MONITOR_FDS, &second, normal);
    if (n < 0) {
        return;
    }
    if (fds[0].revents != 0) {
        carry_output(s);
    } else if (s->ended && s->output >= 0) {
        close(s->output);
        s->output = -1;
    }
    carry_input(s, fds[1].revents != 0, fds[2].revents != 0);
    s->pending += monitor_serve(s->monitor, fds + OWN_FDS, s->typed + s->pending,
                                sizeof(s->typed) - s->pending);
}

static void carry_until_end(struct session *s, const sigset_t *normal) {
    int seen = 0;

    while (!s->ended || s->output >= 0) {
        wait_and_carry(s, normal);
        if (stop_signal != seen) {
            seen = stop_signal;
            s->stop_reason = s->stops > 0     ? s->stop_reason
                             : seen == SIGINT ? "it was interrupted"
                                              : "it was asked to end";
            stop_now(s);
        } else if (due(s) && !s->ended) {
            stop_now(s);
        }
        look_for_end(s);
    }
    if (s->input >= 0) {
        close(s->input);
    }
}

/* The exit code; says on standard error why it is not 0. */
static int judge(const struct session *s) {
    bool ok = console_finish(s->console);

    if (s->stops > 0) {
        complain("the machine was ended: %s", s->stop_reason);
        ok = false;
    } else if (WIFSIGNALED(s->status)) {
        complain("the emulator was ended by signal %d (%s)", WTERMSIG(s->status),
                 strsignal(WTERMSIG(s->status)));
        ok = false;
    } else if (WEXITSTATUS(s->status) != 0) {
        complain("the emulator ended with exit code %d", WEXITSTATUS(s->status));
        ok = false;
    }
    if (console_panicked(s->console) && s->stops == 0) {
        complain("the hypervisor panicked");
        ok = false;
    }
    ok = console_report_ends(s->console) == 0 && ok;
    return ok ? EXIT_OK : EXIT_FAILED;
}

/* ---- the command ---- */

/* Each VM needs a CPU that the machine has. */
static bool cpus_suffice(const struct machine *m, unsigned cpus) {
    for (size_t i = 0; i < m->n_vms; i++) {
        if (cpu_set_empty_below(&m->vms[i].cpus, cpus)) {
            complain(
                "%s:%u: [vm %s] cpus: found no CPU below %u, expected one that --cpus %u gives",
                m->path, config_vm_key_line(&m->vms[i], "cpus"), m->vms[i].name, cpus, cpus);
            return false;
        }
    }
    return true;
}

/* The VMs' memory, the archive, traces, and 128 MiB for the hypervisor; in steps of 64 MiB. */
static uint64_t default_memory_mib(const struct machine *m, unsigned cpus, uint64_t archive_size) {
    uint64_t own = m->config.trace * cpus + archive_size;
    uint64_t mib = (machine_memory(m) + own + MIB - 1) / MIB + 128;

    mib = (mib + 63) / 64 * 64;
    return mib < 256 ? 256 : mib;
}

/* Everything from the archive to the exit code; the archive and its folder are there only
 * meanwhile. */
static int run_machine(const struct machine *m, struct run_options *o,
                       const struct emulator *emulator, const char *image, const char *archive,
                       const sigset_t *normal) {
    struct session s = {.input = -1, .output = -1};
    uint64_t archive_size;
    int code = EXIT_FAILED;

    if (!machine_pack(m, archive, &archive_size)) {
        return EXIT_FAILED;
    }
    if (o->memory_mib == 0) {
        o->memory_mib = default_memory_mib(m, o->cpus, archive_size);
    }
    char *header = must_printf("# run: cpus=%u memory=%lluM cpu=%s mode=%s qemu=%s", o->cpus,
                               (unsigned long long)o->memory_mib, o->cpu,
                               o->threads ? "threads" : "deterministic", emulator->version);
    s.console = console_open(m, o->log_dir, header);
    free(header);
    if (s.console == NULL) {
        return EXIT_BAD_USAGE;
    }
    if (o->monitor != NULL && (s.monitor = monitor_open(o->monitor)) == NULL) {
        console_free(s.console);
        return EXIT_BAD_USAGE;
    }
    char **command = emulator_command(emulator, o, image, archive);
    if (start(&s, command, normal)) {
        prepare_terminal(&s);
        if (o->timeout > 0) {
            stop_in(&s, o->timeout, "the time of --timeout is over");
        }
        carry_until_end(&s, normal);
        restore_terminal();
        code = judge(&s);
    }
    monitor_close(s.monitor);
    console_free(s.console);
    for (size_t i = 0; command[i] != NULL; i++) {
        free(command[i]);
    }
    free(command);
    return code;
}

static int run_in_folder(const struct machine *m, struct run_options *o, const sigset_t *normal) {
    const char *temporary = getenv("TMPDIR");
    struct emulator emulator = {0};
    int code = EXIT_BAD_USAGE;
    char *image = hypervisor_image();

    if (image != NULL && emulator_find(&emulator)) {
        char *folder = must_printf("%s/paravane-XXXXXX",
                                   temporary != NULL && temporary[0] != '\0' ? temporary : "/tmp");
        if (mkdtemp(folder) == NULL) {
            complain("cannot make a folder in %s: %s", folder, strerror(errno));
        } else {
            char *archive = must_printf("%s/boot.cpio", folder);
            code = run_machine(m, o, &emulator, image, archive, normal);
            unlink(archive);
            rmdir(folder);
            free(archive);
        }
        free(folder);
    }
    free(image);
    free(emulator.path);
    free(emulator.version);
    return code;
}

/* "512" and "512M" are MiB, "2G" is GiB. */
static bool read_memory(const char *text, uint64_t *mib) {
    size_t n = strlen(text);
    uint64_t unit = n > 0 && (text[n - 1] == 'G' || text[n - 1] == 'g') ? 1024 : 1;
    bool suffix = n > 0 && strchr("MmGg", text[n - 1]) != NULL;
    char *digits = must_printf("%.*s", (int)(suffix ? n - 1 : n), text);
    bool ok = read_number(digits, 1, 262144, mib);

    free(digits);
    *mib *= unit;
    return ok && *mib >= 64 && *mib <= 261120;
}

/* Takes one option's value; what was expected when it is something else, else NULL. */
static const char *take_option(struct run_options *o, int option, const char *value) {
    bool given = value[0] != '\0';
    uint64_t number;

    switch (option) {
    case 'c':
        if (!read_number(value, 1, 128, &number)) {
            return "--cpus: a number from 1 to 128";
        }
        o->cpus = (unsigned)number;
        return NULL;
    case 't':
        if (!read_number(value, 1, 1000000, &number)) {
            return "--timeout: seconds from 1 to 1000000";
        }
        o->timeout = (unsigned)number;
        return NULL;
    case 'm':
        return read_memory(value, &o->memory_mib)
                   ? NULL
                   : "--memory: MiB, or a number with suffix M or G, from 64M to 255G";
    case 'M':
        o->threads = strcmp(value, "threads") == 0;
        return o->threads || strcmp(value, "deterministic") == 0
                   ? NULL
                   : "--mode: deterministic or threads";
    case 'C':
        o->cpu = value;
        return given ? NULL : "--cpu: a CPU model such as max";
    case 'l':
        o->log_dir = value;
        return given ? NULL : "--log-dir: a folder";
    default:
        o->monitor = value;
        return given ? NULL : "--monitor: the name of a socket";
    }
}

static bool read_options(int argc, char **argv, struct run_options *o, int *code) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"cpus", required_argument, NULL, 'c'},
                                            {"memory", required_argument, NULL, 'm'},
                                            {"cpu", required_argument, NULL, 'C'},
                                            {"mode", required_argument, NULL, 'M'},
                                            {"log-dir", required_argument, NULL, 'l'},
                                            {"timeout", required_argument, NULL, 't'},
                                            {"monitor", required_argument, NULL, 's'},
                                            {0}};
    int option;

    *code = EXIT_BAD_USAGE;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help_run, stdout);
            *code = EXIT_OK;
            return false;
        }
        if (option == '?') {
            bad_usage(argv[0], NULL);
            return false;
        }
        const char *expected = take_option(o, option, optarg);
        if (expected != NULL) {
            bad_usage(argv[0], "found '%s', expected %s", optarg, expected);
            return false;
        }
    }
    if (argc - optind != 1) {
        bad_usage(argv[0], "one CONF is expected, found %d", argc - optind);
        return false;
    }
    o->conf = argv[optind];
    return true;
}

int command_run(int argc, char **argv) {
    struct run_options o = {.cpus = 2, .cpu = "max"};
    struct machine m;
    sigset_t normal;
    int code;

    if (!read_options(argc, argv, &o, &code)) {
        return code;
    }
    code = EXIT_BAD_USAGE;
    if (machine_load(&m, o.conf) && cpus_suffice(&m, o.cpus)) {
        take_signals(&normal);
        code = run_in_folder(&m, &o, &normal);
    }
    machine_free(&m);
    return code;
}
