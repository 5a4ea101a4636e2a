/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * C13: SYSTEM_RESET (how=0) and SYSTEM_RESET2 of type 0 (how=1: 32-bit call, how=2: 64-bit) start
 * the VM again from its image. A guest whose memory is scrubbed cannot know that it ran before, so
 * the runner counts the "# reset: start" lines and ends the run at the second; where memory is
 * kept, the marker ends it.
 */
#include "guest.h"

const char *const test_name = "reset";

void test_main(void) {
    uint64_t *marker = (uint64_t *)(ram_base + ram_size - 4096), how = bootarg("how", 0);

    print("# reset: start\n");
    check_eq("C13-fresh-entry-mmu-off", entry_state.sctlr_el1 & 1, 0);
    check_eq("C13-fresh-entry-x0", entry_state.x[0], (uintptr_t)fdt);
    if (*marker == 0x7e5e70de1eedul) {
        check_true("C13-came-back", true);
        return;
    }
    *marker = 0x7e5e70de1eedul;
    cache_clean(marker, sizeof(*marker));
    int64_t r;

    if (how == 0)
        r = psci(PSCI_SYSTEM_RESET, 0, 0, 0);
    else if (how == 1)
        r = psci(PSCI_SYSTEM_RESET2, 0, 0, 0);
    else
        r = psci(PSCI_SYSTEM_RESET2_64, 0, 0, 0);
    if (native() && how != 0 && r == PSCI_NOT_SUPPORTED)
        tap_skip("C13-reset2", "not in the emulator");
    else
        check_eq("C13-reset-does-not-return", r, 0);
}
