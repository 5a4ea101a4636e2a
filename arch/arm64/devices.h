/* SPDX-License-Identifier: GPL-2.0-only */
/* Accesses of a guest outside its RAM: emulated devices, or an external abort. */
#ifndef ARM64_DEVICES_H
#define ARM64_DEVICES_H

#include <stdint.h>

#include "hyp/types.h"

struct vcpu;

/* Stage 2 refused a fetch or an access, as `esr` says. On v's pCPU, v loaded. */
enum verdict devices_abort(struct vcpu *v, uint64_t esr);

#endif
