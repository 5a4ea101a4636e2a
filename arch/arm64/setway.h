/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cache maintenance by set and way (DC ISW, CSW, CISW), which can't be let through: it works on one
 * pCPU's caches, and ours are other pCPUs' at any time. A guest that uses it wants all of its
 * memory cleaned, around a time with its caches off. So the first such operation cleans all of the
 * VM's RAM by address, further ones are then empty, and the guest's SCTLR_EL1 is watched
 * (HCR_EL2.TVM): when its caches go on or off, all is cleaned once more.
 */
#ifndef ARM64_SETWAY_H
#define ARM64_SETWAY_H

#include <stdbool.h>
#include <stdint.h>

struct vcpu;

/*
 * The guest executed a set/way operation. False: some of the RAM is cleaned, the guest must execute
 * it again (so that others get their turn). On v's pCPU, v loaded.
 */
bool setway_access(struct vcpu *v);

/*
 * The guest writes `new` to SCTLR_EL1, which holds `old`, while TVM traps it. False: cleaning goes
 * on, the guest must execute the write again, which must not have been done. On v's pCPU, v loaded.
 */
bool setway_control(struct vcpu *v, uint64_t old, uint64_t new);

#endif
