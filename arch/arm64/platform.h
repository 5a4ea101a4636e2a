/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ARM64_PLATFORM_H
#define ARM64_PLATFORM_H

struct pcpu;

/* Where head.S goes with a secondary CPU, on its own stack, MMU on. */
_Noreturn void secondary_main(struct pcpu *p);

#endif
