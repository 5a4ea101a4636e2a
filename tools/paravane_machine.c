/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads a machine description with the files that it names; the command `check`. */
#include "tools/paravane.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const vm_file_keys[VM_FILES] = {"kernel", "initrd", "dtb"};

static const char *vm_file_name(const struct vm_config *vm, int which) {
    return which == VM_KERNEL ? vm->kernel : which == VM_INITRD ? vm->initrd : vm->dtb;
}

/* "CONF:LINE: [vm NAME] KEY: found 'VALUE'" and the rest of the sentence. */
__attribute__((format(printf, 5, 6))) static void complain_key(const struct machine *m,
                                                               const struct vm_config *vm,
                                                               const char *key, const char *value,
                                                               const char *format, ...) {
    va_list args;

    fprintf(stderr, "%s:%u: [vm %s] %s: found '%s'", m->path, config_vm_key_line(vm, key), vm->name,
            key, value);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

static uint64_t little_endian(const unsigned char *p, unsigned bytes) {
    uint64_t n = 0;

    for (unsigned i = bytes; i-- > 0;) {
        n = n << 8 | p[i];
    }
    return n;
}

/* The first and the last bytes of a file; what is not there reads as zero. */
struct file_ends {
    unsigned char head[64];
    unsigned char tail[4];
};

/* Opens a regular file, and reads its ends. Returns NULL, or what is wrong with it. */
static const char *look_at_file(const char *path, struct stat *st, struct file_ends *ends) {
    const char *fault = NULL;

    memset(ends, 0, sizeof(*ends));
    /* not blocking, so that a FIFO can't hold us up before its type is known */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return strerror(errno);
    }
    if (fstat(fd, st) != 0 || (S_ISREG(st->st_mode) && st->st_size > 0 &&
                               pread(fd, ends->head, sizeof(ends->head), 0) < 0)) {
        fault = strerror(errno);
    } else if (!S_ISREG(st->st_mode)) {
        fault = S_ISDIR(st->st_mode) ? "is a folder" : "is not a regular file";
    } else if (st->st_size == 0) {
        fault = "is empty";
    } else if (st->st_size > UINT32_MAX) {
        fault = "is 4 GiB or more";
    } else if (st->st_size >= 4 && pread(fd, ends->tail, 4, st->st_size - 4) < 0) {
        fault = strerror(errno);
    }
    close(fd);
    return fault;
}

/*
 * Recognises the kernel and tells how much memory it takes at least. Returns NULL, or what is wrong
 * with it.
 */
static const char *look_at_kernel(const struct file_ends *ends, uint64_t size,
                                  enum kernel_format *format, uint64_t *in_memory) {
    const unsigned char *head = ends->head;

    *format = KERNEL_RAW;
    *in_memory = size;
    if (memcmp(head, "MZ", 2) == 0 && memcmp(head + 4, "zimg", 4) == 0) {
        return "is a self-extracting EFI program (zboot)";
    }
    if (size >= 64 && memcmp(head + 56, "ARM\x64", 4) == 0) {
        uint64_t text_offset = little_endian(head + 8, 8);
        uint64_t image_size = little_endian(head + 16, 8);
        *format = KERNEL_IMAGE;
        if (image_size > CONFIG_MEMORY_MAX || text_offset > CONFIG_MEMORY_MAX) {
            return "has an Image header with impossible sizes";
        }
        *in_memory = text_offset + (image_size > size ? image_size : size);
    } else if (head[0] == 0x1f && head[1] == 0x8b) {
        *format = KERNEL_GZIP;
        if (size < 18) {
            return "is cut short";
        }
        *in_memory = little_endian(ends->tail, 4);
    } else if (memcmp(head,
                      "\x7f"
                      "ELF",
                      4) == 0) {
        return "is an ELF file";
    }
    return NULL;
}

static const char *look_at_dtb(const struct file_ends *ends, uint64_t size) {
    const unsigned char *head = ends->head;
    uint64_t total =
        (uint64_t)head[4] << 24 | (uint64_t)head[5] << 16 | (uint64_t)head[6] << 8 | head[7];

    if (memcmp(head, "\xd0\x0d\xfe\xed", 4) != 0) {
        return "is not a device tree blob";
    }
    return total > size ? "is cut short" : NULL;
}

/* The source for a file, made when it is new. Takes over `path`. */
static int add_source(struct machine *m, char *path, const struct stat *st) {
    for (size_t i = 0; i < m->n_sources; i++) {
        if (m->sources[i].dev == st->st_dev && m->sources[i].ino == st->st_ino) {
            free(path);
            return (int)i;
        }
    }
    m->sources = must_realloc(m->sources, m->n_sources + 1, sizeof(*m->sources));
    m->sources[m->n_sources] = (struct source){
        .path = path, .dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size};
    return (int)m->n_sources++;
}

/* A file name in the description counts from the description's folder. */
static char *resolve(const struct machine *m, const char *name) {
    const char *slash = strrchr(m->path, '/');

    if (name[0] == '/' || slash == NULL) {
        return must_printf("%s", name);
    }
    return must_printf("%.*s/%s", (int)(slash - m->path), m->path, name);
}

/* Checks one file of VM i and adds the memory it takes to *needed. */
static bool load_file(struct machine *m, size_t i, int which, uint64_t *needed) {
    const struct vm_config *vm = &m->vms[i];
    const char *name = vm_file_name(vm, which);
    struct file_ends ends;
    struct stat st = {0};
    uint64_t in_memory;
    char *path = resolve(m, name);
    const char *fault = look_at_file(path, &st, &ends);
    const char *expected = "a file that can be read and is not empty";

    if (fault == NULL) {
        in_memory = (uint64_t)st.st_size;
        if (which == VM_KERNEL) {
            fault = look_at_kernel(&ends, (uint64_t)st.st_size, &m->formats[i], &in_memory);
            expected = "an arm64 Image, plain or gzip, or a raw binary";
        } else if (which == VM_DTB) {
            fault = look_at_dtb(&ends, (uint64_t)st.st_size);
            expected = "a device tree blob";
        }
    }
    if (fault != NULL) {
        complain_key(m, vm, vm_file_keys[which], name, " (%s: %s), expected %s", path, fault,
                     expected);
        free(path);
        return false;
    }
    *needed += in_memory;
    m->files[i][which] = add_source(m, path, &st);
    return true;
}

/* The hypervisor has nothing to do otherwise. */
static bool check_autostart(const struct machine *m) {
    for (size_t i = 0; i < m->n_vms; i++) {
        if (m->vms[i].autostart) {
            return true;
        }
    }
    fprintf(stderr, "%s: found autostart = no in each [vm NAME], expected yes in at least one\n",
            m->path);
    return false;
}

static bool load_files(struct machine *m) {
    bool ok = true;

    m->files = must_realloc(NULL, m->n_vms, sizeof(*m->files));
    m->formats = must_realloc(NULL, m->n_vms, sizeof(*m->formats));
    for (size_t i = 0; i < m->n_vms; i++) {
        const struct vm_config *vm = &m->vms[i];
        uint64_t needed = 0;
        bool all = true;

        m->formats[i] = KERNEL_RAW;
        for (int which = 0; which < VM_FILES; which++) {
            m->files[i][which] = -1;
            if (vm_file_name(vm, which)[0] != '\0') {
                all = load_file(m, i, which, &needed) && all;
            }
        }
        if (all && needed > vm->memory) {
            complain_key(m, vm, "memory", size_text(vm->memory).text,
                         ", expected at least %s: the VM's files need that much",
                         size_text(needed).text);
            all = false;
        }
        ok = ok && all;
    }
    return ok;
}

bool machine_load(struct machine *m, const char *path) {
    struct config_error err;
    char line[512];

    *m = (struct machine){.path = path};
    m->text = read_file(path, CONFIG_TEXT_MAX + 1, &m->len);
    if (m->text == NULL) {
        complain("cannot read %s: %s", path, strerror(errno));
        return false;
    }
    bool ok = config_parse(m->text, m->len, &m->config, NULL, 0, &m->n_vms, &err);
    if (ok) {
        m->vms = must_realloc(NULL, m->n_vms, sizeof(*m->vms));
        ok = config_parse(m->text, m->len, &m->config, m->vms, m->n_vms, &m->n_vms, &err);
    }
    if (!ok) {
        config_format_error(&err, path, line, sizeof(line));
        fprintf(stderr, "%s\n", line);
        m->n_vms = 0;
        return false;
    }
    ok = check_autostart(m);
    return load_files(m) && ok;
}

void machine_free(struct machine *m) {
    for (size_t i = 0; i < m->n_sources; i++) {
        free(m->sources[i].path);
        free(m->sources[i].archive_name);
    }
    free(m->sources);
    free(m->formats);
    free(m->files);
    free(m->vms);
    free(m->text);
    *m = (struct machine){0};
}

uint64_t machine_memory(const struct machine *m) {
    uint64_t sum = 0;

    for (size_t i = 0; i < m->n_vms; i++) {
        sum += m->vms[i].memory;
    }
    return sum;
}

uint64_t machine_vcpus(const struct machine *m) {
    uint64_t sum = 0;

    for (size_t i = 0; i < m->n_vms; i++) {
        sum += m->vms[i].vcpus;
    }
    return sum;
}

static void print_cpus(const struct cpu_set *set) {
    const char *separator = "";

    if (set->bits[0] == UINT64_MAX && set->bits[1] == UINT64_MAX) {
        printf("all");
        return;
    }
    for (unsigned first = 0; first < CPU_SET_MAX; first++) {
        unsigned last = first;

        if (!cpu_set_has(set, first)) {
            continue;
        }
        while (cpu_set_has(set, last + 1)) {
            last++;
        }
        printf(first == last ? "%s%u" : "%s%u-%u", separator, first, last);
        separator = ",";
        first = last;
    }
}

static void print_vm(const struct machine *m, size_t i) {
    static const char *const formats[] = {"Image", "gzip", "raw"};
    const struct vm_config *vm = &m->vms[i];

    printf("vm %s: %u vcpu%s, %s, weight %u, cpus ", vm->name, vm->vcpus, vm->vcpus == 1 ? "" : "s",
           size_text(vm->memory).text, vm->weight);
    print_cpus(&vm->cpus);
    for (int which = 0; which < VM_FILES; which++) {
        if (m->files[i][which] >= 0) {
            printf(", %s%s%s %s", vm_file_keys[which], which == VM_KERNEL ? " " : "",
                   which == VM_KERNEL ? formats[m->formats[i]] : "",
                   size_text(m->sources[m->files[i][which]].size).text);
        }
    }
    printf("%s\n", vm->autostart ? "" : ", not started");
}

int command_check(int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
    struct machine m;
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option != 'h') {
            return bad_usage(argv[0], NULL);
        }
        fputs(help_check, stdout);
        return EXIT_OK;
    }
    if (argc - optind != 1) {
        return bad_usage(argv[0], "one CONF is expected, found %d", argc - optind);
    }
    bool ok = machine_load(&m, argv[optind]);
    if (ok) {
        for (size_t i = 0; i < m.n_vms; i++) {
            print_vm(&m, i);
        }
        printf("total: %zu VM%s, %llu vcpu%s, %s\n", m.n_vms, m.n_vms == 1 ? "" : "s",
               (unsigned long long)machine_vcpus(&m), machine_vcpus(&m) == 1 ? "" : "s",
               size_text(machine_memory(&m)).text);
    }
    machine_free(&m);
    return ok ? EXIT_OK : EXIT_BAD_USAGE;
}
