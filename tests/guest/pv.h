/* SPDX-License-Identifier: GPL-2.0-only */
/* The hypervisor's own calls, for the tests of stolen time and of the preempted flag. */
#ifndef GUEST_PV_H
#define GUEST_PV_H

#include "abi/pvlock.h"
#include "abi/pvspin.h"
#include "abi/pvtime.h"
#include "guest.h"

#define PV_TIME_REGION 0x090a0000ul /* records that the hypervisor sets aside: read only */
#define PV_LOCK_REGION 0x090c0000ul

static inline int64_t pv_call(uint32_t id, uint64_t argument) {
    return hvc4(id, argument, 0, 0);
}

/* The records lie among devices: makes the page of this one ordinary memory. CPU 0, before others.
 */
static inline void pv_map(uint64_t ipa) {
    uint64_t page = ipa & ~(PAGE - 1);

    mmu_map_page(page, page, PTE_NORMAL | PTE_UXN | PTE_PXN);
}

#endif
