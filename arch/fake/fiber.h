/* SPDX-License-Identifier: GPL-2.0-only */
/* Contexts with a stack of their own, of which one runs at a time. */
#ifndef FAKE_FIBER_H
#define FAKE_FIBER_H

#include <stddef.h>
#include <ucontext.h>

struct fiber {
    ucontext_t context;
    void (*main)(void *arg); /* must not return */
    void *arg;
    void *stack; /* NULL: the thread's own */
    size_t size;
    void *shadow; /* what the address sanitizer keeps for it */
};

/* Memory for the stack. Aborts when there is none. */
void fiber_init(struct fiber *f, size_t stack_size);

/* The next switch to it begins at main(arg); what it did before is forgotten. */
void fiber_begin(struct fiber *f, void (*main)(void *arg), void *arg);

/* Goes on with `to`; returns when somebody switches back to `from`, which must be the caller's. */
void fiber_switch(struct fiber *from, struct fiber *to);

void fiber_free(struct fiber *f);

#endif
