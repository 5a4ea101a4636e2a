/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Inside the parser of core/config.h: which keys a section has and what their values look like.
 * Nobody else includes this. Any context, no locks, no state.
 */
#ifndef CORE_CONFIG_KEYS_H
#define CORE_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cpu_set.h"
#include "core/text.h"

enum config_key_type {
    KEY_FILE,     /* char[max + 1], 1..max bytes */
    KEY_TEXT,     /* char[max + 1], 0..max bytes, '#' is an ordinary character */
    KEY_NUMBER,   /* uint32_t */
    KEY_ADVANCE,  /* int32_t: -1 or 0..max */
    KEY_SIZE,     /* uint64_t bytes, multiple of 4 KiB, written with K, M or G */
    KEY_DURATION, /* uint64_t nanoseconds, written with us or ms */
    KEY_CPUS,     /* struct cpu_set */
    KEY_YESNO,    /* bool */
    KEY_CHOICE,   /* uint32_t: the number of a word among those of `expected`, "a or b or c" */
};

/*
 * One key. Texts stand in the structure itself: without pointers the tables need no relocation, so
 * the hypervisor may run at any address.
 */
struct config_key {
    char name[16];
    uint8_t type; /* enum config_key_type */
    bool required;
    uint16_t offset;    /* of the field in struct vm_config or struct machine_config */
    uint64_t min, max;  /* of a number as it is stored, or of the length of a text */
    char expected[104]; /* goes on after "expected " */
};

/* The keys of one kind of section. */
struct config_keys {
    const struct config_key *key;
    size_t count; /* 1..CONFIG_KEYS_MAX */
};

struct config_keys config_vm_keys(void);
struct config_keys config_machine_keys(void);

/* A value that has been read; which member counts depends on the key's type. */
struct config_value {
    uint64_t number;
    struct cpu_set cpus;
    struct span text;
};

/* Reads text, without white space around it, as the value of a key; false when it is not one. */
bool config_read_value(const struct config_key *key, struct span text, struct config_value *value);

/* Puts a value that config_read_value() has read into its field of the structure at target. */
void config_store_value(void *target, const struct config_key *key,
                        const struct config_value *value);

#endif
