/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/config.h"
#include "core/advance.h"
#include "core/config_keys.h"
#include "core/text.h"

static const char syntax_expected[] = "key = value, [machine] or [vm NAME]";
static const char header_expected[] =
    "[machine] or [vm NAME], NAME being 1 to 31 characters of A-Z a-z 0-9 _ -";

/* What has been read so far. */
struct parser {
    struct span text;
    struct config_error *err;
    uint32_t line;                      /* being read */
    struct config_keys keys;            /* of the section being read; none before the first one */
    void *target;                       /* where its values go; NULL: nowhere */
    uint32_t *target_lines;             /* likewise its key_line[] */
    uint32_t section_line;              /* of its header */
    uint32_t machine_line;              /* of [machine]; 0: not seen yet */
    uint32_t key_line[CONFIG_KEYS_MAX]; /* of the section being read */
};

/* ---- lines ---- */

/* Without the comment: from a '#' on that is the first byte or follows white space. */
static struct span without_comment(struct span s) {
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '#' && (i == 0 || is_blank(s.p[i - 1]))) {
            s.n = i;
            break;
        }
    }
    return s;
}

/* Text without its byte order mark. */
static struct span start_of_text(const char *text, size_t len) {
    struct span s = {text, len};

    if (len >= 3 && span_is((struct span){text, 3}, "\xef\xbb\xbf")) {
        s.p += 3;
        s.n -= 3;
    }
    return s;
}

/* Takes the next line off *rest, without its LF or CR LF. */
static struct span next_line(struct span *rest) {
    struct span line = span_take(rest, '\n');

    if (line.n > 0 && line.p[line.n - 1] == '\r') {
        line.n--;
    }
    return line;
}

/* Whether '#' is an ordinary character in the value of this key. */
static bool is_text_key(struct span key) {
    struct config_keys keys = config_vm_keys();

    for (size_t i = 0; i < keys.count; i++) {
        if (keys.key[i].type == KEY_TEXT && span_is(key, keys.key[i].name)) {
            return true;
        }
    }
    return false;
}

/* "key = value": false when the line has no '='. The value is without white space and comment. */
static bool split_key_value(struct span line, struct span *key, struct span *value) {
    struct span rest = without_comment(line);
    size_t equals = span_find(rest, '=');

    if (equals == rest.n) {
        return false;
    }
    *key = span_trim((struct span){rest.p, equals});
    *value = span_trim(span_from(is_text_key(*key) ? line : rest, equals + 1));
    return true;
}

/* The name in "[vm NAME]"; false when the line is something else or the name is not allowed. */
static bool vm_header_name(struct span line, struct span *name) {
    line = span_trim(without_comment(line));
    if (line.n < 2 || line.p[0] != '[' || line.p[line.n - 1] != ']') {
        return false;
    }
    line = span_trim((struct span){line.p + 1, line.n - 2});
    if (line.n < 4 || !span_is((struct span){line.p, 2}, "vm") || !is_blank(line.p[2])) {
        return false;
    }
    *name = span_trim((struct span){line.p + 2, line.n - 2});
    for (size_t i = 0; i < name->n; i++) {
        char c = name->p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-')) {
            return false;
        }
    }
    return name->n <= CONFIG_NAME_MAX;
}

static bool is_machine_header(struct span line) {
    line = span_trim(without_comment(line));
    return line.n >= 2 && line.p[0] == '[' && line.p[line.n - 1] == ']' &&
           span_is(span_trim((struct span){line.p + 1, line.n - 2}), "machine");
}

/* ---- errors ---- */

/* Begins an error in the current section; returns where to write what was found. */
static struct text_out error_at(struct parser *p, uint32_t line, struct span key,
                                const char *expected) {
    struct config_error *err = p->err;
    struct text_out key_out = text_out(err->key, sizeof(err->key));
    struct text_out expected_out = text_out(err->expected, sizeof(err->expected));

    err->line = line;
    out_span(&key_out, key);
    out_text(&expected_out, expected);
    return text_out(err->found, sizeof(err->found));
}

static bool fail_quoted(struct parser *p, struct span key, struct span found,
                        const char *expected) {
    struct text_out o = error_at(p, p->line, key, expected);

    if (found.n == 0) {
        out_text(&o, "nothing");
    } else {
        out_quoted(&o, found);
    }
    return false;
}

/* "a second WHAT (the first is on line N)" */
static bool fail_second(struct parser *p, struct span key, struct span what, uint32_t first,
                        const char *expected) {
    struct text_out o = error_at(p, p->line, key, expected);

    out_text(&o, "a second ");
    out_span(&o, what);
    out_text(&o, " (the first is on line ");
    out_number(&o, first);
    out_char(&o, ')');
    return false;
}

static bool fail_unknown_key(struct parser *p, struct span key) {
    struct text_out found = error_at(p, p->line, (struct span){NULL, 0}, "");
    struct text_out expected = text_out(p->err->expected, sizeof(p->err->expected));

    out_text(&found, "unknown key ");
    out_quoted(&found, key);
    for (size_t i = 0; i < p->keys.count; i++) {
        out_text(&expected, i == 0 ? "one of " : ", ");
        out_text(&expected, p->keys.key[i].name);
    }
    return false;
}

/* ---- sections ---- */

static void vm_defaults(struct vm_config *vm, struct span name, uint32_t line) {
    *vm = (struct vm_config){.weight = CONFIG_WEIGHT_DEFAULT,
                             .advance_ns = ADVANCE_ADAPTIVE,
                             .cpus = cpu_set_all(),
                             .autostart = true,
                             .spin = SPIN_AUTO,
                             .pvtime = true,
                             .pvlock = true,
                             .pvyield = true,
                             .pvsched = true,
                             .line = line};
    for (size_t i = 0; i < name.n; i++) {
        vm->name[i] = name.p[i];
    }
}

/* Checks that the section just ended has all it needs, and hands out the lines of its keys. */
static bool end_section(struct parser *p) {
    for (size_t i = 0; i < p->keys.count; i++) {
        const struct config_key *spec = &p->keys.key[i];
        if (spec->required && p->key_line[i] == 0) {
            struct text_out o = error_at(p, p->section_line, span_of(spec->name), spec->expected);
            out_text(&o, "nothing");
            return false;
        }
        if (p->target_lines != NULL) {
            p->target_lines[i] = p->key_line[i];
        }
    }
    return true;
}

static void begin_section(struct parser *p, struct config_keys keys, const char *kind,
                          struct span name) {
    struct text_out o = text_out(p->err->section, sizeof(p->err->section));

    out_text(&o, kind);
    out_span(&o, name);
    p->keys = keys;
    p->target = NULL;
    p->target_lines = NULL;
    p->section_line = p->line;
    for (size_t i = 0; i < CONFIG_KEYS_MAX; i++) {
        p->key_line[i] = 0;
    }
}

/*
 * The line of the first [vm NAME] with this name. The text is read again for that, because in a
 * counting run no names are stored.
 */
static uint32_t first_line_of(const struct parser *p, struct span name) {
    struct span rest = p->text;
    struct span other;

    for (uint32_t line = 1; line < p->line; line++) {
        if (vm_header_name(next_line(&rest), &other) && span_equal(other, name)) {
            return line;
        }
    }
    return p->line;
}

static bool read_key(struct parser *p, struct span line) {
    const struct span none = {NULL, 0};
    struct span key, text;
    struct config_value v;
    size_t i = 0;

    if (!split_key_value(line, &key, &text)) {
        return fail_quoted(p, none, span_trim(line), syntax_expected);
    }
    if (p->keys.count == 0) {
        return fail_quoted(p, none, span_trim(line),
                           "a section, [machine] or [vm NAME], before any key");
    }
    while (i < p->keys.count && !span_is(key, p->keys.key[i].name)) {
        i++;
    }
    if (i == p->keys.count) {
        return fail_unknown_key(p, key);
    }
    if (p->key_line[i] != 0) {
        return fail_second(p, key, key, p->key_line[i], "each key once in a section");
    }
    if (!config_read_value(&p->keys.key[i], text, &v)) {
        return fail_quoted(p, key, text, p->keys.key[i].expected);
    }
    if (p->target != NULL) {
        config_store_value(p->target, &p->keys.key[i], &v);
    }
    p->key_line[i] = p->line;
    return true;
}

/* Only tabs and what prints; bytes from 0x80 on pass, for UTF-8 in comments and file names. */
static bool check_characters(struct parser *p, struct span line) {
    for (size_t i = 0; i < line.n; i++) {
        unsigned char c = (unsigned char)line.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            struct text_out o = error_at(p, p->line, (struct span){NULL, 0}, "a text file");
            out_text(&o, "a byte of value ");
            out_number(&o, c);
            return false;
        }
    }
    return true;
}

/* ---- the whole ---- */

/* A line that begins with '['. */
static bool read_header(struct parser *p, struct span line, struct machine_config *machine,
                        struct vm_config *vms, size_t max_vms, size_t *n_vms) {
    const struct span none = {NULL, 0};
    struct span name;
    uint32_t first;

    if (!end_section(p)) {
        return false;
    }
    if (is_machine_header(line)) {
        begin_section(p, config_machine_keys(), "machine", none);
        p->target = machine;
        if (p->machine_line != 0) {
            return fail_second(p, none, span_of("[machine]"), p->machine_line, "one such section");
        }
        p->machine_line = p->line;
        return true;
    }
    p->err->section[0] = '\0';
    if (!vm_header_name(line, &name)) {
        return fail_quoted(p, none, span_trim(line), header_expected);
    }
    begin_section(p, config_vm_keys(), "vm ", name);
    first = first_line_of(p, name);
    if (first != p->line) {
        return fail_second(p, none, span_of("VM of this name"), first,
                           "a name of its own for each VM");
    }
    if (vms != NULL) {
        if (*n_vms == max_vms) {
            struct text_out o = error_at(p, p->line, none, "fewer VMs");
            out_text(&o, "more VMs than there is room for, ");
            out_number(&o, max_vms);
            return false;
        }
        vm_defaults(&vms[*n_vms], name, p->line);
        p->target = &vms[*n_vms];
        p->target_lines = vms[*n_vms].key_line;
    }
    ++*n_vms;
    return true;
}

bool config_parse(const char *text, size_t len, struct machine_config *machine,
                  struct vm_config *vms, size_t max_vms, size_t *n_vms, struct config_error *err) {
    struct parser p = {.text = start_of_text(text, len), .err = err};
    struct span rest = p.text;

    *err = (struct config_error){0};
    *machine = (struct machine_config){0};
    *n_vms = 0;
    if (len > CONFIG_TEXT_MAX) {
        struct text_out o = error_at(&p, 0, (struct span){NULL, 0}, "at most 262144 bytes");
        out_number(&o, len);
        out_text(&o, " bytes");
        return false;
    }
    while (rest.n > 0) {
        struct span line = next_line(&rest);
        struct span shown = span_trim(line);

        p.line++;
        if (!check_characters(&p, line)) {
            return false;
        }
        if (shown.n == 0 || shown.p[0] == '#') {
            continue;
        }
        if (shown.p[0] == '[' ? !read_header(&p, shown, machine, vms, max_vms, n_vms)
                              : !read_key(&p, shown)) {
            return false;
        }
    }
    if (!end_section(&p)) {
        return false;
    }
    if (*n_vms == 0) {
        err->section[0] = '\0';
        p.line = 0;
        return fail_quoted(&p, (struct span){NULL, 0}, (struct span){NULL, 0},
                           "at least one [vm NAME] section");
    }
    return true;
}

uint32_t config_vm_key_line(const struct vm_config *vm, const char *key) {
    struct config_keys keys = config_vm_keys();

    for (size_t i = 0; i < keys.count; i++) {
        if (span_is(span_of(key), keys.key[i].name)) {
            return vm->key_line[i];
        }
    }
    return 0;
}

bool config_find_value(const char *text, size_t len, uint32_t line, size_t *offset,
                       size_t *value_len) {
    struct span rest = start_of_text(text, len);
    struct span key, value, this_line = {NULL, 0};

    for (uint32_t i = 0; i < line; i++) {
        if (rest.n == 0) {
            return false;
        }
        this_line = next_line(&rest);
    }
    this_line = span_trim(this_line);
    if (this_line.n == 0 || this_line.p[0] == '#' || this_line.p[0] == '[' ||
        !split_key_value(this_line, &key, &value) || value.n == 0) {
        return false;
    }
    *offset = (size_t)(value.p - text);
    *value_len = value.n;
    return true;
}

size_t config_format_error(const struct config_error *err, const char *filename, char *buf,
                           size_t size) {
    struct text_out o = text_out(buf, size);

    out_text(&o, filename);
    if (err->line != 0) {
        out_char(&o, ':');
        out_number(&o, err->line);
    }
    out_text(&o, ": ");
    if (err->section[0] != '\0') {
        out_char(&o, '[');
        out_text(&o, err->section);
        out_char(&o, ']');
        out_text(&o, err->key[0] != '\0' ? " " : ": ");
    }
    if (err->key[0] != '\0') {
        out_text(&o, err->key);
        out_text(&o, ": ");
    }
    out_text(&o, "found ");
    out_text(&o, err->found);
    out_text(&o, ", expected ");
    out_text(&o, err->expected);
    return o.used;
}
