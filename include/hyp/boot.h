/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYP_BOOT_H
#define HYP_BOOT_H

struct pcpu;

/* Where the boot pCPU comes from the architecture's entry code; `firmware` as the loader passed it.
 */
_Noreturn void boot_main(void *firmware);

/* What each pCPU does when it is up. On that pCPU. */
_Noreturn void boot_cpu_main(struct pcpu *p);

#endif
