/* SPDX-License-Identifier: GPL-2.0-only */
/* What C and assembly share: offsets in struct bench_cpu. */
#ifndef BENCH_ASM_H
#define BENCH_ASM_H

#define BENCH_ENTRY 0
#define BENCH_ACK   8
#define BENCH_INTID 16
#define BENCH_COUNT 24

#endif
