/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/vmids.h"

#include "hyp/arch.h"
#include "hyp/console.h"

struct vmid_space vmids;

void vmids_init(unsigned wanted) {
    unsigned has = arch_vmid_bits();
    unsigned bits = wanted != 0 && wanted < has ? wanted : has;

    if (!vmid_init(&vmids, bits, pcpu_count)) {
        panic(
            "machine.conf: [machine] vmid_bits: found %u bits, which are %u numbers for guests on "
            "%u CPUs, expected more numbers than CPUs",
            bits, (1u << bits) - 1, pcpu_count);
    }
    if (wanted > has) {
        console_printf("vmid_bits: %u wanted, this machine has %u", wanted, has);
    }
    for (unsigned i = 0; i < pcpu_count; i++) {
        vmid_add_cpu(&vmids, &pcpus[i]->vmid);
    }
}
