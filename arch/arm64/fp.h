/* SPDX-License-Identifier: GPL-2.0-only */
/* The guest's SIMD and floating-point registers; the hypervisor itself never uses them. */
#ifndef ARM64_FP_H
#define ARM64_FP_H

#include <arch/vcpu.h>

/* V0..V31, FPCR, FPSR of this pCPU into memory, or from there. */
void fp_save(struct fp_state *state);
void fp_load(const struct fp_state *state);

#endif
