/* SPDX-License-Identifier: GPL-2.0-only */
#include "arch/arm64/stage2.h"

#include "arch/arm64/sysreg_access.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/vm.h"
#include "hyp/vmids.h"

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

    if (vmids.numbers > 1u << arch_vmid_bits()) {
        panic("CPU %u: found 8-bit VMIDs, CPU 0 has 16 bits: set vmid_bits = 8 in machine.conf",
              this_pcpu()->index);
    }
    if (pa_range < 2) {
        panic("CPU %u: found fewer than 40 physical address bits", this_pcpu()->index);
    }
    write_sysreg(VTCR_EL2,
                 VTCR_FIXED | (pa_range > 5 ? 5 : pa_range) << 16 | (wide_vmids() ? VTCR_VS : 0));
    isb();
}

unsigned arch_vmid_bits(void) {
    return wide_vmids() ? 16 : 8;
}

void stage2_init(struct vm *vm) {
    vm->arch.stage2 = (uint64_t)mem_alloc(PAGE_SIZE);
}

static uint64_t *next_level(uint64_t *entry) {
    if (*entry == 0) {
        *entry = (uint64_t)mem_alloc(PAGE_SIZE) | TABLE;
    }
    return (uint64_t *)(*entry & ADDRESS_MASK);
}

void stage2_map_ram(struct vm *vm, ipa_t ipa, phys_t base, uint64_t size) {
    uint64_t *root = (uint64_t *)(vm->arch.stage2);
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
    uint64_t *root = (uint64_t *)(vm->arch.stage2);

    for (uint64_t done = 0; done < size; done += PAGE_SIZE) {
        uint64_t at = ipa.v + done;
        uint64_t *entry = &next_level(&root[at >> 30 & 511])[at >> 21 & 511];

        next_level(entry)[at >> 12 & 511] = (base.v + done) | RECORD_ATTRIBUTES | TABLE;
    }
    __asm__ volatile("dsb ishst" : : : "memory");
}

void arch_vm_translate(const struct vm *vm, uint32_t number) {
    write_sysreg(VTTBR_EL2, vm->arch.stage2 | (uint64_t)number << 48);
}

/* CTR_EL0.L1Ip: an instruction cache whose lines are found by VMID forgets with the TLB. */
static bool icache_has_vmids(void) {
    return (read_sysreg(CTR_EL0) >> 14 & 3u) < 2;
}

void arch_tlb_flush_cpu(void) {
    __asm__ volatile("dsb nshst\n tlbi alle1" : : : "memory");
    if (icache_has_vmids()) {
        __asm__ volatile("ic iallu" : : : "memory");
    }
    __asm__ volatile("dsb nsh\n isb" : : : "memory");
}

void arch_tlb_flush_stage1(void) {
    isb(); /* the instruction takes the VMID from VTTBR_EL2 */
    __asm__ volatile("dsb nshst\n tlbi vmalle1\n dsb nsh\n isb" : : : "memory");
}
