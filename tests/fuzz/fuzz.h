/* SPDX-License-Identifier: GPL-2.0-only */
/* What the libFuzzer targets share. Each is a program of its own: LLVM, LibFuzzer. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A condition that must hold for every input. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: must: %s\n", __FILE__, __LINE__, #condition);                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The bytes of an input, one number after the other; zeroes when they are used up. */
struct fuzz_input {
    const uint8_t *at;
    size_t left;
};

static inline uint64_t fuzz_take(struct fuzz_input *in, unsigned bytes) {
    uint64_t value = 0;

    for (unsigned i = 0; i < bytes && in->left != 0; i++, in->left--) {
        value |= (uint64_t)*in->at++ << (8 * i);
    }
    return value;
}

/* A copy without a byte more than there is, so that reading beyond it is found. Free it. */
static inline void *fuzz_exact(const uint8_t *data, size_t size) {
    void *copy = malloc(size != 0 ? size : 1);

    must(copy != NULL);
    if (size != 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

#endif
