/* SPDX-License-Identifier: GPL-2.0-only */
/* Spinning vCPUs: what a VM's `spin` says is done when one of them waits in WFE (core/spin.h). */
#ifndef HYP_SPIN_H
#define HYP_SPIN_H

#include "hyp/types.h"
#include "hyp/vcpu.h"

/*
 * `v`, whose PC is behind a WFE that trapped, spins: YIELD if it is to give up its pCPU `p`, RESUME
 * if it goes on at once. `spin` is what its VM's configuration says, not SPIN_IGNORE. On its pCPU,
 * no locks held.
 */
enum verdict vcpu_spins(struct pcpu *p, struct vcpu *v);

/* The word for a value of `spin`, enum config_spin. */
const char *spin_name(uint32_t spin);

/*
 * The guest's hint that `v` waits for `to`, another vCPU of its VM: YIELD if that one waits for a
 * pCPU and gets this one, else RESUME. Whatever `spin` says. On v's pCPU, `p`, no locks held.
 */
enum verdict vcpu_yield_to(struct pcpu *p, struct vcpu *v, struct vcpu *to);

#endif
