/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ARM64_GUEST_WALK_H
#define ARM64_GUEST_WALK_H

#include <stdint.h>

struct vcpu;

/*
 * The level, 0..3, at which the guest's own translation of `va` read its descriptor from the page
 * at guest-physical `ipa`: stage 2's syndrome does not say, and an external abort on a walk must.
 * The guest's tables are only read, and only inside its RAM. On v's pCPU, v loaded.
 */
unsigned guest_walk_level(const struct vcpu *v, uint64_t va, uint64_t ipa);

#endif
