/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Atomic loads and stores that order nothing else: memory_order_relaxed, of an aligned object of at
 * most 8 bytes. On arm64 volatile is all that takes, and GCC makes one instruction of it, other
 * than of its atomic operations, which compute an address first.
 */
#ifndef CORE_RELAXED_H
#define CORE_RELAXED_H

#ifdef __aarch64__
#define load_relaxed(p)         (*(const volatile __typeof__(*(p)) *)(p))
#define store_relaxed(p, value) (*(volatile __typeof__(*(p)) *)(p) = (value))
#else
#define load_relaxed(p)         __atomic_load_n(p, __ATOMIC_RELAXED)
#define store_relaxed(p, value) __atomic_store_n(p, value, __ATOMIC_RELAXED)
#endif

#endif
