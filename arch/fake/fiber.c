/* SPDX-License-Identifier: GPL-2.0-only */
#define _GNU_SOURCE
#include "arch/fake/fiber.h"

#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif

#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

static struct fiber *leaving; /* who switched to the one that runs */
static struct fiber *coming;

/* The sanitizer must know which stack is in use, or it takes a switch for a wild stack pointer. */
static void announce(struct fiber *from, const struct fiber *to) {
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(&from->shadow, to->stack, to->size);
#else
    (void)from;
    (void)to;
#endif
}

static void arrived(struct fiber *f) {
#ifdef WITH_ASAN
    const void *stack;
    size_t size;

    __sanitizer_finish_switch_fiber(f->shadow, &stack, &size);
    if (leaving->stack == NULL) { /* the thread's own stack: only the sanitizer knows where it is */
        leaving->stack = (void *)(size_t)stack;
        leaving->size = size;
    }
#else
    (void)f;
#endif
}

static void first(void) {
    struct fiber *f = coming;

    arrived(f);
    f->main(f->arg);
    abort();
}

void fiber_init(struct fiber *f, size_t stack_size) {
    *f = (struct fiber){.size = stack_size, .stack = malloc(stack_size)};
    if (f->stack == NULL) {
        abort();
    }
}

void fiber_begin(struct fiber *f, void (*main)(void *arg), void *arg) {
    f->main = main;
    f->arg = arg;
    f->shadow = NULL;
#ifdef WITH_ASAN
    __asan_unpoison_memory_region(f->stack, f->size); /* frames that were left for good */
#endif
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = f->size;
    f->context.uc_link = NULL;
    makecontext(&f->context, first, 0);
}

void fiber_switch(struct fiber *from, struct fiber *to) {
    leaving = from;
    coming = to;
    announce(from, to);
    swapcontext(&from->context, &to->context);
    arrived(from);
}

void fiber_free(struct fiber *f) {
    free(f->stack);
    f->stack = NULL;
}
