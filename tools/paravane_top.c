/* SPDX-License-Identifier: GPL-2.0-only */
/* The command `top`: asks a running machine's monitor for its counters and shows what changes. */
#include "tools/paravane_top.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

/* How long the machine may take, milliseconds. It is emulated, and may be slow. */
enum { ANSWER_MS = 10000, PROMPT_MS = 1000, LEAVE_MS = 2000 };

#define MONITOR_KEY "\x1d" /* opens the monitor, and closes it */

struct top_options {
    const char *path;
    double interval; /* seconds */
    bool once, vcpus;
};

/* The connection, and what has come of it. */
struct connection {
    int fd;
    bool opened;  /* the monitor, by us */
    bool prompt;  /* has come since that was cleared */
    bool empty;   /* so has an empty line */
    bool refused; /* another program has the connection */
    size_t used;
    char line[4096];
    struct top_reasons reasons;
    struct top_sample sample; /* being read */
};

enum wait_end { CAME, TIME_OVER, ENDED, ASKED_TO_STOP };

static volatile sig_atomic_t stop_signal;

static void on_signal(int number) {
    stop_signal = number;
}

static int64_t now_ms(void) {
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- the machine ---- */

static int connect_to(const char *path) {
    struct sockaddr_un address;
    int fd;

    if (!monitor_address(path, &address)) {
        return -1;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        complain("cannot reach a machine by %s: %s (paravane run ... --monitor makes it)", path,
                 errno == ECONNREFUSED ? "its run has ended" : strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

static void end_of_line(struct connection *c) {
    c->used -= c->used > 0 && c->line[c->used - 1] == '\r';
    c->line[c->used] = '\0';
    c->used = 0;
    if (*top_after_prompts(c->line) == '\0') {
        c->empty = true;
    } else if (strcmp(c->line, "paravane: monitor: has a client already") == 0) {
        c->refused = true;
    }
    top_line(&c->sample, &c->reasons, c->line);
}

static void take(struct connection *c, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            end_of_line(c);
            continue;
        }
        if (c->used < sizeof(c->line) - 1) { /* no line of counters is longer */
            c->line[c->used++] = bytes[i];
            c->line[c->used] = '\0';
        }
        /* a guest's lines have its name before them, so none of them says this */
        c->prompt |= bytes[i] == ' ' && *top_after_prompts(c->line) == '\0';
    }
}

/* Takes what the machine says until `ready` (NULL: nothing is awaited) or the time is over. */
static enum wait_end wait_for(struct connection *c, bool (*ready)(const struct connection *c),
                              int64_t until, bool keys) {
    struct pollfd fds[] = {{.fd = c->fd, .events = POLLIN},
                           {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN}};
    char buffer[4096];

    while (ready == NULL || !ready(c)) {
        int64_t left = until - now_ms();
        if (stop_signal != 0) {
            return ASKED_TO_STOP;
        }
        if (left <= 0) {
            return TIME_OVER;
        }
        /* in short pieces, for a signal that comes just before it */
        if (poll(fds, 2, left < 100 ? (int)left : 100) <= 0) {
            continue;
        }
        if (fds[0].revents != 0) {
            ssize_t n = recv(c->fd, buffer, sizeof(buffer), 0);
            if (n == 0 || (n < 0 && errno != EINTR)) {
                return ENDED;
            }
            take(c, buffer, n > 0 ? (size_t)n : 0);
        }
        if (fds[1].revents != 0) {
            ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));
            if (n > 0 && (memchr(buffer, 'q', (size_t)n) != NULL)) {
                return ASKED_TO_STOP;
            }
            fds[1].fd = n > 0 ? STDIN_FILENO : -1;
        }
    }
    return CAME;
}

static bool say(const struct connection *c, const char *keys) {
    size_t n = strlen(keys);

    return send(c->fd, keys, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* It does not listen any more: what it said before counts. */
static enum wait_end hear_last(struct connection *c) {
    (void)wait_for(c, NULL, now_ms() + LEAVE_MS, false);
    return ENDED;
}

static bool has_prompt(const struct connection *c) {
    return c->prompt;
}

static bool has_reacted(const struct connection *c) {
    return c->prompt || c->empty;
}

static bool has_sample(const struct connection *c) {
    return c->sample.whole;
}

/*
 * One key opens the monitor and closes it. To both it answers with an empty line; a prompt follows
 * only when it is open now. So without one the key is sent again.
 */
static enum wait_end open_monitor(struct connection *c) {
    int64_t until = now_ms() + ANSWER_MS;

    for (int i = 0; i < 2; i++) {
        c->prompt = c->empty = false;
        if (!say(c, MONITOR_KEY)) {
            return hear_last(c);
        }
        enum wait_end end = wait_for(c, has_reacted, until, true);
        if (end == CAME) {
            end = wait_for(c, has_prompt, i == 0 ? now_ms() + PROMPT_MS : until, true);
        } else if (end == TIME_OVER) {
            return end;
        }
        if (end != TIME_OVER) {
            c->opened = i == 0 && end == CAME;
            return end;
        }
    }
    return TIME_OVER;
}

static enum wait_end take_sample(struct connection *c) {
    top_clear(&c->sample);
    if (!say(c, "stats\r")) {
        return hear_last(c);
    }
    return wait_for(c, has_sample, now_ms() + ANSWER_MS, true);
}

/* Leaves the monitor as it was. What is unread when a socket is closed takes along what was sent.
 */
static void take_leave(struct connection *c, enum wait_end end) {
    if (end != ENDED) {
        if (c->opened) {
            (void)say(c, MONITOR_KEY);
        }
        shutdown(c->fd, SHUT_WR);
        stop_signal = 0;
        (void)wait_for(c, NULL, now_ms() + LEAVE_MS, false);
    }
    close(c->fd);
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

/* Keys are read as they are typed, for q; nothing else changes. */
static void prepare_terminal(void) {
    struct termios keys;

    if (tcgetattr(STDIN_FILENO, &terminal_before) != 0 || tcgetpgrp(STDIN_FILENO) != getpgrp()) {
        return;
    }
    keys = terminal_before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    terminal_changed = true;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
}

/* On a terminal in its upper left corner, what does not fit is cut; else as it is. */
static void draw(const char *text) {
    struct winsize size = {0};
    int rows = 0;

    if (!isatty(STDOUT_FILENO)) {
        fputs(text, stdout);
        fputc('\n', stdout);
        fflush(stdout);
        return;
    }
    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    int width = size.ws_col > 0 ? size.ws_col : 80;
    int height = size.ws_row > 0 ? size.ws_row : 24;
    fputs("\033[H", stdout);
    while (*text != '\0' && ++rows < height) {
        int n = (int)strcspn(text, "\n");
        printf("%.*s\033[K\n", n < width ? n : width, text);
        text += n + (text[n] == '\n');
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

/* ---- the command ---- */

static void show(const struct top_options *o, const struct top_sample *from,
                 const struct top_sample *to, const struct top_reasons *reasons) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        complain("out of memory");
        exit(EXIT_FAILED);
    }
    top_show(out, from, to, reasons, o->vcpus);
    fclose(out);
    if (o->once) {
        fputs(text, stdout);
    } else {
        draw(text);
    }
    free(text);
}

/* Samples and shows until something ends it. CAME: all that was asked for has been shown. */
static enum wait_end sample_and_show(struct connection *c, const struct top_options *o) {
    struct top_sample last = {0};
    enum wait_end end = open_monitor(c);

    while (end == CAME && (end = take_sample(c)) == CAME) {
        int64_t next = now_ms() + (int64_t)(o->interval * 1000);
        if (last.whole) {
            show(o, &last, &c->sample, &c->reasons);
            if (o->once || ferror(stdout)) {
                break;
            }
        }
        top_clear(&last);
        last = c->sample;
        c->sample = (struct top_sample){0};
        end = wait_for(c, NULL, next, true);
        end = end == TIME_OVER ? CAME : end;
    }
    top_clear(&last);
    top_clear(&c->sample);
    return end;
}

static int top(const struct top_options *o) {
    static struct connection c;
    struct sigaction action = {.sa_handler = on_signal};

    c.fd = connect_to(o->path);
    if (c.fd < 0) {
        return EXIT_BAD_USAGE;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    prepare_terminal();
    if (!o->once && isatty(STDOUT_FILENO)) {
        fputs("\033[H\033[2J", stdout);
    }
    enum wait_end end = sample_and_show(&c, o);
    take_leave(&c, end);
    restore_terminal();
    if (c.refused) {
        complain("another program uses the monitor");
    } else if (end == TIME_OVER) {
        complain("the machine's monitor has not answered for %d s", ANSWER_MS / 1000);
    } else if (end == ENDED) {
        complain("the machine has ended, or closed the connection");
    }
    return end == CAME || (end == ASKED_TO_STOP && !o->once) ? EXIT_OK : EXIT_FAILED;
}

static bool read_interval(const char *text, double *seconds) {
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*seconds) && *seconds >= 0.1 && *seconds <= 3600;
}

int command_top(int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"interval", required_argument, NULL, 'i'},
                                            {"once", no_argument, NULL, 'o'},
                                            {"vcpus", no_argument, NULL, 'v'},
                                            {0}};
    struct top_options o = {.interval = 1};
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help_top, stdout);
            return EXIT_OK;
        } else if (option == 'i') {
            if (!read_interval(optarg, &o.interval)) {
                return bad_usage(
                    argv[0], "found '%s', expected --interval: seconds from 0.1 to 3600", optarg);
            }
        } else if (option == 'o') {
            o.once = true;
        } else if (option == 'v') {
            o.vcpus = true;
        } else {
            return bad_usage(argv[0], NULL);
        }
    }
    if (argc - optind != 1) {
        return bad_usage(argv[0], "one SOCKET is expected, found %d", argc - optind);
    }
    o.path = argv[optind];
    return top(&o);
}
