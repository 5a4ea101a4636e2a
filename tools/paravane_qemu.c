/* SPDX-License-Identifier: GPL-2.0-only */
/* Which emulator, which hypervisor image, and the command line that starts them. */
#include "tools/paravane.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first version that traps WFE to EL2. */
enum { MIN_MAJOR = 11, MIN_MINOR = 1 };

static const char program[] = "qemu-system-aarch64";

/* Runs `path --version` and returns the first 255 bytes of its output; NULL after a message. */
static char *ask_version(const char *path) {
    int ends[2];
    char text[256];
    size_t used = 0;
    ssize_t n;
    int status;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        complain("cannot make a pipe: %s", strerror(errno));
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        dup2(ends[1], STDOUT_FILENO);
        execlp(path, path, "--version", (char *)NULL);
        _exit(errno == ENOENT ? 127 : 126);
    }
    close(ends[1]);
    while (used < sizeof(text) - 1 &&
           ((n = read(ends[0], text + used, sizeof(text) - 1 - used)) > 0 ||
            (n < 0 && errno == EINTR))) {
        used += n > 0 ? (size_t)n : 0;
    }
    text[used] = '\0';
    close(ends[0]);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return must_printf("%s", text);
    }
    complain("cannot run the emulator %s%s", path,
             pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127
                 ? ": there is no such program (lab/setup fetches it, or set PARAVANE_QEMU)"
                 : " --version");
    return NULL;
}

/* PARAVANE_QEMU, else what lab/setup has fetched, else what PATH has. */
static char *emulator_path(void) {
    const char *given = getenv("PARAVANE_QEMU");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *path;

    if (given != NULL && given[0] != '\0') {
        return must_printf("%s", given);
    }
    if (cache != NULL && cache[0] == '/') {
        path = must_printf("%s/paravane/qemu/bin/%s", cache, program);
    } else {
        path = must_printf("%s/.cache/paravane/qemu/bin/%s", home != NULL ? home : "", program);
    }
    if (access(path, X_OK) != 0) {
        free(path);
        path = must_printf("%s", program);
    }
    return path;
}

bool emulator_find(struct emulator *emulator) {
    static const char before[] = "QEMU emulator version ";
    unsigned major, minor;

    *emulator = (struct emulator){.path = emulator_path()};
    char *answer = ask_version(emulator->path);
    if (answer == NULL) {
        return false;
    }
    char *version = strstr(answer, before);
    if (version == NULL || sscanf(version += strlen(before), "%u.%u", &major, &minor) != 2) {
        complain("%s --version does not say \"%sX.Y\"", emulator->path, before);
        free(answer);
        return false;
    }
    version[strspn(version, "0123456789.")] = '\0';
    emulator->version = must_printf("%s", version);
    free(answer);
    if (major < MIN_MAJOR || (major == MIN_MAJOR && minor < MIN_MINOR)) {
        complain("the emulator %s is QEMU %s, expected %d.%d or later", emulator->path,
                 emulator->version, MIN_MAJOR, MIN_MINOR);
        return false;
    }
    return true;
}

char *hypervisor_image(void) {
    const char *given = getenv("PARAVANE_IMAGE");
    char self[4096];
    char *image;

    if (given != NULL && given[0] != '\0') {
        image = must_printf("%s", given);
    } else {
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        self[n > 0 ? n : 0] = '\0';
        char *slash = strrchr(self, '/');
        image =
            must_printf("%.*s/arm64/paravane.img", slash != NULL ? (int)(slash - self) : 0, self);
    }
    if (access(image, R_OK) != 0) {
        complain(
            "cannot read the hypervisor's image %s: %s (make builds it, or set PARAVANE_IMAGE)",
            image, strerror(errno));
        free(image);
        return NULL;
    }
    return image;
}

struct arguments {
    char **list;
    size_t n;
};

static void add(struct arguments *a, const char *text) {
    a->list = must_realloc(a->list, a->n + 2, sizeof(*a->list));
    a->list[a->n++] = must_printf("%s", text);
    a->list[a->n] = NULL;
}

static void add_pair(struct arguments *a, const char *option, char *value) {
    add(a, option);
    add(a, value);
    free(value);
}

static void add_time(struct arguments *a, const struct run_options *options) {
    if (options->threads) {
        add_pair(a, "-accel", must_printf("tcg,thread=multi"));
        add_pair(a, "-nic", must_printf("none"));
        return;
    }
    add_pair(a, "-icount", must_printf("shift=1,sleep=off"));
    add_pair(a, "-seed", must_printf("1"));
    add_pair(a, "-rtc", must_printf("base=2026-01-01,clock=vm"));
    if (options->cpus == 1) {
        add_pair(a, "-nic", must_printf("none"));
        return;
    }
    /*
     * The emulated CPUs take turns that only a timer ends: this one, about 2 us for each CPU.
     * Without it a CPU that spins for a lock holds up the lock's owner for milliseconds.
     */
    unsigned interval = options->cpus * 5 / 2;
    add_pair(a, "-netdev", must_printf("user,id=n0"));
    add_pair(a, "-object",
             must_printf("filter-buffer,id=f0,netdev=n0,queue=rx,interval=%u",
                         interval > 100 ? 100 : interval));
}

char **emulator_command(const struct emulator *emulator, const struct run_options *options,
                        const char *image, const char *archive) {
    struct arguments a = {0};

    add(&a, emulator->path);
    add_pair(&a, "-M", must_printf("virt,virtualization=on,gic-version=3,dtb-randomness=off"));
    add_pair(&a, "-cpu", must_printf("%s", options->cpu));
    add_pair(&a, "-smp", must_printf("%u", options->cpus));
    add_pair(&a, "-m", must_printf("%lluM", (unsigned long long)options->memory_mib));
    add_time(&a, options);
    add_pair(&a, "-display", must_printf("none"));
    add_pair(&a, "-monitor", must_printf("none"));
    add_pair(&a, "-serial", must_printf("stdio"));
    add(&a, "-no-reboot");
    add_pair(&a, "-kernel", must_printf("%s", image));
    add_pair(&a, "-initrd", must_printf("%s", archive));
    return a.list;
}
