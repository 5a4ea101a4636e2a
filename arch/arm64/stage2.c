/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/stage2.h"

#include "arch/arm64/sysreg_access.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/vm.h"

#define VALID        1ull
#define TABLE        3ull
#define ADDRESS_MASK 0x0000fffffffff000ull
/* DDI 0487 D8.5.5: normal write-back, inner shareable, accessed; read and write, or read and no
 * execute. */
#define NORMAL            (0xfull << 2 | 3ull << 8 | 1ull << 10)
#define RAM_ATTRIBUTES    (NORMAL | 3ull << 6)
#define RECORD_ATTRIBUTES (NORMAL | 1ull << 6 | 1ull << 54)

/* VTCR_EL2 (D24.2.211): RES1 bit 31, T0SZ, start at level 1, walks write-back inner shareable. */
#define VTCR_FIXED                                                                                 \
    (1ull << 31 | (64u - STAGE2_IPA_BITS) | 1ull << 6 | 1ull << 8 | 1ull << 10 | 3ull << 12)
#define VTCR_VS (1ull << 19) /* 16-bit VMIDs */

static bool wide_vmids(void) {
    return (read_sysreg(ID_AA64MMFR1_EL1) >> 4 & 15u) == 2;
}

void stage2_cpu_init(void) {
    uint64_t pa_range = read_sysreg(ID_AA64MMFR0_EL1) & 15u;

    if (pa_range < 2) {
        panic("CPU %u: found fewer than 40 physical address bits", this_pcpu()->index);
    }
    write_sysreg(VTCR_EL2,
                 VTCR_FIXED | (pa_range > 5 ? 5 : pa_range) << 16 | (wide_vmids() ? VTCR_VS : 0));
    isb();
}

/* One VMID for each VM, from 1: 0 is the hypervisor's. */
void stage2_init(struct vm *vm) {
    unsigned vmid = vm->index + 1, limit = wide_vmids() ? 65536 : 256;

    if (vmid >= limit) {
        panic("vm %s: found %u VMs, expected at most %u (this CPU's VMIDs)", vm->config->name, vmid,
              limit - 1);
    }
    vm->arch.vttbr = (uint64_t)vmid << 48 | (uint64_t)mem_alloc(PAGE_SIZE);
}

static uint64_t *next_level(uint64_t *entry) {
    if (*entry == 0) {
        *entry = (uint64_t)mem_alloc(PAGE_SIZE) | TABLE;
    }
    return (uint64_t *)(*entry & ADDRESS_MASK);
}

void stage2_map_ram(struct vm *vm, ipa_t ipa, phys_t base, uint64_t size) {
    uint64_t *root = (uint64_t *)(vm->arch.vttbr & ADDRESS_MASK);
    uint64_t at = ipa.v, to = base.v, end = ipa.v + size;

    while (at < end) {
        uint64_t *entry = &next_level(&root[at >> 30 & 511])[at >> 21 & 511];
        if ((at | to) % BLOCK_SIZE == 0 && end - at >= BLOCK_SIZE) {
            *entry = to | RAM_ATTRIBUTES | VALID;
            at += BLOCK_SIZE;
            to += BLOCK_SIZE;
        } else {
            next_level(entry)[at >> 12 & 511] = to | RAM_ATTRIBUTES | TABLE;
            at += PAGE_SIZE;
            to += PAGE_SIZE;
        }
    }
    __asm__ volatile("dsb ishst" : : : "memory");
}

void stage2_map_records(struct vm *vm, ipa_t ipa, phys_t base, uint64_t size) {
    uint64_t *root = (uint64_t *)(vm->arch.vttbr & ADDRESS_MASK);

    for (uint64_t done = 0; done < size; done += PAGE_SIZE) {
        uint64_t at = ipa.v + done;
        uint64_t *entry = &next_level(&root[at >> 30 & 511])[at >> 21 & 511];

        next_level(entry)[at >> 12 & 511] = (base.v + done) | RECORD_ATTRIBUTES | TABLE;
    }
    __asm__ volatile("dsb ishst" : : : "memory");
}

void arch_tlb_flush_vm(struct vm *vm) {
    uint64_t before = read_sysreg(VTTBR_EL2);

    write_sysreg(VTTBR_EL2, vm->arch.vttbr);
    isb();
    __asm__ volatile("dsb ishst\n tlbi vmalls12e1is\n dsb ish" : : : "memory");
    write_sysreg(VTTBR_EL2, before);
    isb();
}

void arch_tlb_flush_local(struct vm *vm) {
    write_sysreg(VTTBR_EL2, vm->arch.vttbr);
    isb();
    __asm__ volatile("dsb nshst\n tlbi vmalle1\n dsb nsh\n isb" : : : "memory");
}
