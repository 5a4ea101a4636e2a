/* SPDX-License-Identifier: GPL-2.0-only */
/* Stage-1 walk in software (DDI 0487 D8.2), 48-bit addresses, as far as the guest's tables are in
 * RAM. */
#include "arch/arm64/guest_walk.h"

#include "arch/arm64/sysreg_access.h"
#include "hyp/vm.h"

#define LAST_LEVEL   3u
#define DESC_TABLE   3u
#define ADDRESS_MASK 0x0000fffffffff000ull
#define PAGE_MASK    (~4095ull)

/* log2 of the granule: TCR_EL1.TG0 and TG1 number them differently. */
static unsigned granule_shift(uint64_t tcr, bool upper) {
    static const uint8_t tg0[4] = {12, 16, 14, 12}, tg1[4] = {12, 14, 12, 16};
    return upper ? tg1[tcr >> 30 & 3u] : tg0[tcr >> 14 & 3u];
}

unsigned guest_walk_level(const struct vcpu *v, uint64_t va, uint64_t ipa) {
    uint64_t tcr = read_sysreg(TCR_EL1);
    bool upper = (va >> 55 & 1u) != 0;
    uint64_t table = upper ? read_sysreg(TTBR1_EL1) : read_sysreg(TTBR0_EL1);
    unsigned size = (unsigned)(tcr >> (upper ? 16 : 0)) & 63u;
    unsigned bits = 64u - (size < 16 ? 16u : size), granule = granule_shift(tcr, upper);
    unsigned stride = granule - 3;
    unsigned levels = bits > granule ? (bits - granule + stride - 1) / stride : 1;

    table &= ADDRESS_MASK;
    for (unsigned level = levels > 4 ? 0 : 4u - levels; level < LAST_LEVEL; level++) {
        unsigned shift = granule + (LAST_LEVEL - level) * stride;
        unsigned index_bits = bits - shift < stride ? bits - shift : stride;
        uint64_t at = table + (va >> shift & ((1ull << index_bits) - 1)) * 8;
        const uint64_t *descriptor = vm_ram(v->vm, (ipa_t){at}, 8);

        if ((at & PAGE_MASK) == ipa || descriptor == NULL || (*descriptor & 3u) != DESC_TABLE) {
            return level;
        }
        table = *descriptor & ADDRESS_MASK & ~((1ull << granule) - 1);
    }
    return LAST_LEVEL;
}
