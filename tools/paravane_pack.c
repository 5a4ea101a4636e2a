/* SPDX-License-Identifier: GPL-2.0-only */
/* Makes the boot archive: newc cpio, machine.conf first, the same bytes for the same input. */
#include "tools/paravane.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An archive being written. After the first error nothing more is done. */
struct archive {
    int fd;
    uint64_t size;
    unsigned ino;
    const char *fault_path; /* what could not be read or written; NULL: all well */
    int fault;              /* its errno; 0: the file changed while it was read */
    const char *temporary;
};

static void put(struct archive *a, const void *bytes, size_t n) {
    if (a->fault_path != NULL) {
        return;
    }
    if (!write_all(a->fd, bytes, n)) {
        a->fault_path = a->temporary;
        a->fault = errno;
    }
    a->size += n;
}

static void put_padding(struct archive *a) {
    put(a, "\0\0\0", (size_t)((4 - a->size % 4) % 4));
}

/* Owner, times and devices are zero, so that only names and contents matter. */
static void put_header(struct archive *a, const char *name, unsigned mode, uint64_t size) {
    char header[111];
    unsigned ino = mode == 0 ? 0 : ++a->ino;

    snprintf(header, sizeof(header), "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
             ino, mode, 0u, 0u, 1u, 0u, (unsigned)size, 0u, 0u, 0u, 0u, (unsigned)strlen(name) + 1,
             0u);
    put(a, header, 110);
    put(a, name, strlen(name) + 1);
    put_padding(a);
}

static void put_file(struct archive *a, const struct source *source) {
    static char buffer[1 << 16];
    uint64_t left = source->size;
    int fd = open(source->path, O_RDONLY | O_CLOEXEC);

    put_header(a, source->archive_name, S_IFREG | 0644, source->size);
    while (a->fault_path == NULL) {
        ssize_t n = fd < 0 ? -1 : read(fd, buffer, sizeof(buffer));
        if (n < 0 && fd >= 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 || (uint64_t)n > left || (n == 0 && left > 0)) {
            a->fault_path = source->path;
            a->fault = n < 0 ? errno : 0;
        }
        if (n <= 0) {
            break;
        }
        put(a, buffer, (size_t)n);
        left -= (uint64_t)n;
    }
    if (fd >= 0) {
        close(fd);
    }
    put_padding(a);
}

static bool name_taken(const struct machine *m, size_t n, const char *name) {
    if (strcmp(name, "machine.conf") == 0 || strcmp(name, "TRAILER!!!") == 0) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(m->sources[i].archive_name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Each source gets its file's own name; where that is taken, a number goes in front. */
static void name_sources(const struct machine *m) {
    for (size_t i = 0; i < m->n_sources; i++) {
        struct source *source = &m->sources[i];
        const char *slash = strrchr(source->path, '/');
        const char *base = slash == NULL ? source->path : slash + 1;
        char *name = must_printf("%s", base);

        for (unsigned n = 2; name_taken(m, i, name); n++) {
            free(name);
            name = must_printf("%u-%.*s", n, (int)CONFIG_FILE_MAX - 11, base);
        }
        free(source->archive_name);
        source->archive_name = name;
    }
}

/* A value of the description that is replaced. */
struct edit {
    size_t offset, len;
    const char *text;
};

static int by_offset(const void *a, const void *b) {
    const struct edit *x = a, *y = b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The description with the archive's file names in it, and nothing else changed. */
static char *archive_conf(const struct machine *m, size_t *size) {
    struct edit *edits = must_realloc(NULL, m->n_vms * VM_FILES, sizeof(*edits));
    size_t n = 0, room = m->len, used = 0, at = 0;

    for (size_t i = 0; i < m->n_vms; i++) {
        for (int which = 0; which < VM_FILES; which++) {
            if (m->files[i][which] >= 0) {
                uint32_t line = config_vm_key_line(&m->vms[i], vm_file_keys[which]);
                struct edit *e = &edits[n++];
                e->text = m->sources[m->files[i][which]].archive_name;
                if (!config_find_value(m->text, m->len, line, &e->offset, &e->len)) {
                    abort();
                }
                room += strlen(e->text);
            }
        }
    }
    qsort(edits, n, sizeof(*edits), by_offset);
    char *text = must_realloc(NULL, room, 1);
    for (size_t i = 0; i <= n; i++) {
        size_t until = i < n ? edits[i].offset : m->len;
        memcpy(text + used, m->text + at, until - at);
        used += until - at;
        if (i < n) {
            memcpy(text + used, edits[i].text, strlen(edits[i].text));
            used += strlen(edits[i].text);
            at = until + edits[i].len;
        }
    }
    free(edits);
    *size = used;
    return text;
}

static void put_all(struct archive *a, const struct machine *m) {
    size_t size;
    char *conf = archive_conf(m, &size);

    put_header(a, "machine.conf", S_IFREG | 0644, size);
    put(a, conf, size);
    put_padding(a);
    free(conf);
    for (size_t i = 0; i < m->n_sources; i++) {
        put_file(a, &m->sources[i]);
    }
    put_header(a, "TRAILER!!!", 0, 0);
}

/* The longest prefix may have made the description too long, or names too long for its rules. */
static bool conf_is_valid(const struct machine *m) {
    struct machine_config config;
    struct config_error err;
    size_t size, n_vms;
    char line[512];
    char *conf = archive_conf(m, &size);
    bool ok = config_parse(conf, size, &config, NULL, 0, &n_vms, &err);

    free(conf);
    if (!ok) {
        config_format_error(&err, m->path, line, sizeof(line));
        complain("with the file names of the archive: %s", line);
    }
    return ok;
}

bool machine_pack(const struct machine *m, const char *path, uint64_t *size) {
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        complain("cannot write %s: it is there and is not a regular file", path);
        return false;
    }
    name_sources(m);
    if (!conf_is_valid(m)) {
        return false;
    }
    char *temporary = must_printf("%s.XXXXXX", path);
    struct archive a = {.fd = mkostemp(temporary, O_CLOEXEC), .temporary = path};
    if (a.fd < 0) {
        complain("cannot write %s: %s", path, strerror(errno));
        free(temporary);
        return false;
    }
    put_all(&a, m);
    mode_t mask = umask(0);
    umask(mask);
    if (a.fault_path == NULL &&
        (fchmod(a.fd, 0666 & ~mask) != 0 || fsync(a.fd) != 0 || rename(temporary, path) != 0)) {
        a.fault_path = path;
        a.fault = errno;
    }
    close(a.fd);
    if (a.fault_path != NULL) {
        complain("cannot %s %s: %s", a.fault_path == path ? "write" : "read", a.fault_path,
                 a.fault != 0 ? strerror(a.fault) : "it changed at the same time");
        unlink(temporary);
    }
    free(temporary);
    *size = a.size;
    return a.fault_path == NULL;
}

int command_pack(int argc, char **argv) {
    static const struct option options[] = {
        {"help", no_argument, NULL, 'h'}, {"output", required_argument, NULL, 'o'}, {0}};
    const char *output = NULL;
    struct machine m;
    uint64_t size;
    int option;

    while ((option = getopt_long(argc, argv, "ho:", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help_pack, stdout);
            return EXIT_OK;
        }
        if (option != 'o') {
            return bad_usage(argv[0], NULL);
        }
        output = optarg;
    }
    if (argc - optind != 1) {
        return bad_usage(argv[0], "one CONF is expected, found %d", argc - optind);
    }
    if (output == NULL || output[0] == '\0') {
        return bad_usage(argv[0], "-o FILE is missing");
    }
    if (!machine_load(&m, argv[optind])) {
        machine_free(&m);
        return EXIT_BAD_USAGE;
    }
    bool ok = machine_pack(&m, output, &size);
    machine_free(&m);
    return ok ? EXIT_OK : EXIT_FAILED;
}
