/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "core/config.h"
#include "core/advance.h"
#include "core/config_keys.h"

#define VM(field)      (uint16_t) offsetof(struct vm_config, field)
#define MACHINE(field) (uint16_t) offsetof(struct machine_config, field)

/*
 * A new key is one line in a table, one field in the structure in core/config.h, and its default in
 * vm_defaults() in core/config.c when that is not 0.
 */
static const struct config_key vm_keys[] = {
    {"kernel", KEY_FILE, true, VM(kernel), 1, CONFIG_FILE_MAX, "a file name of up to 255 bytes"},
    {"initrd", KEY_FILE, false, VM(initrd), 1, CONFIG_FILE_MAX, "a file name of up to 255 bytes"},
    {"dtb", KEY_FILE, false, VM(dtb), 1, CONFIG_FILE_MAX, "a file name of up to 255 bytes"},
    {"cmdline", KEY_TEXT, false, VM(cmdline), 0, CONFIG_CMDLINE_MAX, "at most 1023 bytes"},
    {"memory", KEY_SIZE, true, VM(memory), CONFIG_MEMORY_MIN, CONFIG_MEMORY_MAX,
     "a number with suffix K, M or G, a multiple of 4K from 1M to 240G"},
    {"vcpus", KEY_NUMBER, true, VM(vcpus), 1, CONFIG_VCPUS_MAX, "a number from 1 to 256"},
    {"weight", KEY_NUMBER, false, VM(weight), 1, CONFIG_WEIGHT_MAX, "a number from 1 to 65535"},
    {"cpus", KEY_CPUS, false, VM(cpus), 0, CPU_SET_MAX - 1,
     "CPU numbers from 0 to 127 and ranges of them, such as 0-3,6"},
    {"advance_ns", KEY_ADVANCE, false, VM(advance_ns), 0, ADVANCE_FIXED_MAX,
     "-1 (adaptive), 0 (off) or nanoseconds up to 50000"},
    {"autostart", KEY_YESNO, false, VM(autostart), 0, 1, "yes or no"},
    {"identity", KEY_CHOICE, false, VM(identity), 0, 1,
     "paravane or kvm"}, /* enum config_identity */
    {"spin", KEY_CHOICE, false, VM(spin), 0, 3,
     "ignore or yield or directed or auto"}, /* enum config_spin */
    {"pvtime", KEY_YESNO, false, VM(pvtime), 0, 1, "yes or no"},
    {"pvlock", KEY_YESNO, false, VM(pvlock), 0, 1, "yes or no"},
    {"pvyield", KEY_YESNO, false, VM(pvyield), 0, 1, "yes or no"},
    {"pvsched", KEY_YESNO, false, VM(pvsched), 0, 1, "yes or no"},
    {"flag_blocked", KEY_YESNO, false, VM(flag_blocked), 0, 1, "yes or no"},
};

static const struct config_key machine_keys[] = {
    {"slice", KEY_DURATION, false, MACHINE(slice_ns), 100000, 100000000,
     "a number with suffix us or ms, from 100us to 100ms"},
    {"trace", KEY_SIZE, false, MACHINE(trace), 0, 256u << 20,
     "a number with suffix K, M or G, a multiple of 4K up to 256M"},
    {"vmid_bits", KEY_NUMBER, false, MACHINE(vmid_bits), 4, 16, "a number from 4 to 16"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
_Static_assert(COUNT(vm_keys) <= CONFIG_KEYS_MAX, "raise CONFIG_KEYS_MAX");
_Static_assert(COUNT(machine_keys) <= CONFIG_KEYS_MAX, "raise CONFIG_KEYS_MAX");
_Static_assert(sizeof(struct vm_config) <= UINT16_MAX, "offsets are 16 bits");

struct config_keys config_vm_keys(void) {
    return (struct config_keys){vm_keys, COUNT(vm_keys)};
}

struct config_keys config_machine_keys(void) {
    return (struct config_keys){machine_keys, COUNT(machine_keys)};
}

struct unit {
    char word[4];
    uint32_t factor;
};

/* A number followed by the word of one of units[], which multiplies it. */
static bool read_scaled(struct span s, const struct unit units[], size_t n, uint64_t *number) {
    if (!span_take_number(&s, number)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (span_is(s, units[i].word)) {
            if (*number > UINT64_MAX / units[i].factor) {
                return false;
            }
            *number *= units[i].factor;
            return true;
        }
    }
    return false;
}

static bool read_size(struct span s, uint64_t *bytes) {
    static const struct unit units[] = {{"K", 1u << 10}, {"M", 1u << 20}, {"G", 1u << 30},
                                        {"k", 1u << 10}, {"m", 1u << 20}, {"g", 1u << 30}};

    return read_scaled(s, units, COUNT(units), bytes) && *bytes % 4096 == 0;
}

static bool read_duration(struct span s, uint64_t *ns) {
    static const struct unit units[] = {{"us", 1000}, {"ms", 1000000}};

    return read_scaled(s, units, COUNT(units), ns);
}

/* "3" or "0-3", white space around each number allowed. */
static bool read_cpu_range(struct span s, uint64_t max, struct cpu_set *cpus) {
    bool is_range = span_find(s, '-') < s.n;
    struct span low = span_trim(span_take(&s, '-'));
    struct span high = is_range ? span_trim(s) : low;
    uint64_t first, last;

    if (!span_take_number(&low, &first) || low.n != 0 || !span_take_number(&high, &last) ||
        high.n != 0 || first > last || last > max) {
        return false;
    }
    for (; first <= last; first++) {
        cpu_set_add(cpus, (unsigned)first);
    }
    return true;
}

/* Ranges with commas between them; none may be missing. */
static bool read_cpus(struct span s, uint64_t max, struct cpu_set *cpus) {
    bool more = true;

    *cpus = cpu_set_none();
    while (more) {
        more = span_find(s, ',') < s.n;
        if (!read_cpu_range(span_take(&s, ','), max, cpus)) {
            return false;
        }
    }
    return true;
}

/* A number, or -1, which is stored as UINT64_MAX. */
static bool read_advance(struct span s, uint64_t max, uint64_t *ns) {
    if (span_is(s, "-1")) {
        *ns = (uint64_t)ADVANCE_ADAPTIVE;
        return true;
    }
    return span_take_number(&s, ns) && s.n == 0 && *ns <= max;
}

/* The number of the word `s` among those of "a or b or c". */
static bool read_choice(struct span s, struct span words, uint64_t *number) {
    for (*number = 0; words.n != 0; ++*number) {
        struct span word = span_take(&words, ' ');

        if (span_equal(word, s)) {
            return true;
        }
        (void)span_take(&words, ' '); /* "or" */
    }
    return false;
}

bool config_read_value(const struct config_key *key, struct span s, struct config_value *v) {
    v->text = s;
    v->number = s.n;
    switch ((enum config_key_type)key->type) {
    case KEY_FILE:
    case KEY_TEXT:
        break;
    case KEY_NUMBER:
        if (!span_take_number(&s, &v->number) || s.n != 0) {
            return false;
        }
        break;
    case KEY_ADVANCE:
        return read_advance(s, key->max, &v->number);
    case KEY_SIZE:
        if (!read_size(s, &v->number)) {
            return false;
        }
        break;
    case KEY_DURATION:
        if (!read_duration(s, &v->number)) {
            return false;
        }
        break;
    case KEY_CPUS:
        return read_cpus(s, key->max, &v->cpus);
    case KEY_YESNO:
        v->number = span_is(s, "yes");
        return v->number == 1 || span_is(s, "no");
    case KEY_CHOICE:
        return read_choice(s, span_of(key->expected), &v->number);
    }
    return v->number >= key->min && v->number <= key->max;
}

void config_store_value(void *target, const struct config_key *key, const struct config_value *v) {
    void *field = (char *)target + key->offset;
    char *text = field;

    switch ((enum config_key_type)key->type) {
    case KEY_FILE:
    case KEY_TEXT:
        for (size_t i = 0; i < v->text.n; i++) {
            text[i] = v->text.p[i];
        }
        text[v->text.n] = '\0';
        break;
    case KEY_NUMBER:
    case KEY_CHOICE:
        *(uint32_t *)field = (uint32_t)v->number;
        break;
    case KEY_ADVANCE:
        *(int32_t *)field = (int32_t)v->number;
        break;
    case KEY_SIZE:
    case KEY_DURATION:
        *(uint64_t *)field = v->number;
        break;
    case KEY_CPUS:
        *(struct cpu_set *)field = v->cpus;
        break;
    case KEY_YESNO:
        *(bool *)field = v->number != 0;
        break;
    }
}
