/* SPDX-License-Identifier: GPL-2.0-only */
/* The socket of `run --monitor`: what its client sends is typed, and it gets what the console says.
 */
#include "tools/paravane.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* A client that lets more than this wait is dropped: the machine never waits for one. */
enum { UNREAD_MAX = 4 << 20 };

struct monitor_socket {
    const char *path;
    int listener;
    int client; /* -1: none */
    char *unread;
    size_t used, room;
};

bool monitor_address(const char *path, struct sockaddr_un *address) {
    size_t n = strlen(path);

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (n == 0 || n >= sizeof(address->sun_path)) {
        complain("the socket's name has %zu bytes, expected 1 to %zu: %s", n,
                 sizeof(address->sun_path) - 1, path);
        return false;
    }
    memcpy(address->sun_path, path, n + 1);
    return true;
}

/* Is this the socket of a run that was killed? Then nobody takes a connection. */
static bool abandoned(const struct sockaddr_un *address) {
    struct stat status;
    int fd;

    if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return false;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool refused = connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
                   errno == ECONNREFUSED;
    close(fd);
    return refused;
}

/* Only its owner may use it: it types into every VM. */
static int bind_privately(int fd, const struct sockaddr_un *address) {
    mode_t before = umask(0177);
    int result = bind(fd, (const struct sockaddr *)address, sizeof(*address));
    int why = errno;

    umask(before);
    errno = why;
    return result;
}

struct monitor_socket *monitor_open(const char *path) {
    struct sockaddr_un address;
    int fd, result;

    if (!monitor_address(path, &address)) {
        return NULL;
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    result = fd < 0 ? -1 : bind_privately(fd, &address);
    if (result != 0 && errno == EADDRINUSE && abandoned(&address)) {
        unlink(path);
        result = bind_privately(fd, &address);
    }
    if (result != 0 || listen(fd, 4) != 0) {
        complain("cannot make the socket %s: %s", path, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    struct monitor_socket *m = must_realloc(NULL, 1, sizeof(*m));
    *m = (struct monitor_socket){.path = path, .listener = fd, .client = -1};
    return m;
}

static void drop_client(struct monitor_socket *m) {
    if (m->client >= 0) {
        close(m->client);
    }
    m->client = -1;
    m->used = 0;
}

void monitor_close(struct monitor_socket *m) {
    if (m != NULL) {
        drop_client(m);
        close(m->listener);
        unlink(m->path);
        free(m->unread);
        free(m);
    }
}

void monitor_poll(const struct monitor_socket *m, bool typing, struct pollfd fds[MONITOR_FDS]) {
    fds[0] = fds[1] = (struct pollfd){.fd = -1};
    if (m == NULL) {
        return;
    }
    fds[0] = (struct pollfd){.fd = m->listener, .events = POLLIN};
    if (m->client >= 0 && (typing || m->used > 0)) {
        fds[1].fd = m->client;
        fds[1].events = (short)((typing ? POLLIN : 0) | (m->used > 0 ? POLLOUT : 0));
    }
}

/* Two clients would type into each other's commands. */
static void take_client(struct monitor_socket *m) {
    static const char taken[] = "paravane: monitor: has a client already\r\n";
    int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        return;
    }
    if (m->client < 0) {
        m->client = fd;
        return;
    }
    (void)send(fd, taken, sizeof(taken) - 1, MSG_NOSIGNAL);
    close(fd);
}

static bool would_wait(void) {
    return errno == EAGAIN || errno == EINTR;
}

static void send_unread(struct monitor_socket *m) {
    ssize_t n = send(m->client, m->unread, m->used, MSG_NOSIGNAL);

    if (n > 0) {
        m->used -= (size_t)n;
        memmove(m->unread, m->unread + n, m->used);
    } else if (n < 0 && !would_wait()) {
        drop_client(m);
    }
}

size_t monitor_serve(struct monitor_socket *m, const struct pollfd fds[MONITOR_FDS], char *typed,
                     size_t max) {
    size_t got = 0;

    if (m == NULL) {
        return 0;
    }
    /* the old client's end comes before the next one's beginning */
    if ((fds[1].events & POLLIN) != 0 && fds[1].revents != 0 && max > 0) {
        ssize_t n = recv(m->client, typed, max, 0);
        if (n > 0) {
            got = (size_t)n;
        } else if (n == 0 || !would_wait()) {
            drop_client(m);
        }
    }
    if (m->client >= 0 && m->used > 0 && fds[1].revents != 0) {
        send_unread(m);
    }
    if (fds[0].revents != 0) {
        take_client(m);
    }
    return got;
}

void monitor_feed(struct monitor_socket *m, const char *bytes, size_t n) {
    if (m == NULL || m->client < 0) {
        return;
    }
    if (m->used + n > UNREAD_MAX) {
        complain("the monitor's client does not read, and has been dropped");
        drop_client(m);
        return;
    }
    if (m->used + n > m->room) {
        m->room = (m->used + n) * 2;
        m->unread = must_realloc(m->unread, m->room, 1);
    }
    memcpy(m->unread + m->used, bytes, n);
    m->used += n;
    send_unread(m);
}
