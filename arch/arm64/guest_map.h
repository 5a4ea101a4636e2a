/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a guest has at which guest-physical address (IPA), and its interrupts: QEMU's virt machine
 * (hw/arm/virt.c), as far as there is something of it here. Anything else is an external abort.
 */
#ifndef ARM64_GUEST_MAP_H
#define ARM64_GUEST_MAP_H

#include <stdint.h>

#include "arch/arm64/vgic.h"
#include "core/config.h"

/* The stage-2 address space: the second redistributor region lies at 2^38. */
#define GUEST_IPA_BITS 39u

#define GUEST_GICD      0x08000000ull
#define GUEST_GICD_SIZE ((uint64_t)VGIC_DIST_SIZE)

/* Redistributors: 123 fit below the UART, the others have a region above RAM. */
#define GUEST_GICR0       0x080a0000ull
#define GUEST_GICR0_VCPUS VGIC_VIRT_REGION0
#define GUEST_GICR0_SIZE  ((uint64_t)GUEST_GICR0_VCPUS * VGIC_REDIST_SIZE)
#define GUEST_GICR1       0x4000000000ull
#define GUEST_GICR1_VCPUS (VGIC_MAX_VCPUS - VGIC_VIRT_REGION0)
#define GUEST_GICR1_SIZE  ((uint64_t)GUEST_GICR1_VCPUS * VGIC_REDIST_SIZE)

#define GUEST_UART      0x09000000ull
#define GUEST_UART_SIZE 0x1000ull

/*
 * Records that the hypervisor writes and the guest reads, in no memory node: stolen time (DEN0057;
 * virt has it here too) and PV lock. Normal memory, read-only for the guest, and 64 KiB so that no
 * guest page size mixes them with something else.
 */
#define GUEST_STEAL       0x090a0000ull
#define GUEST_STEAL_SIZE  0x10000ull
#define GUEST_PVLOCK      0x090c0000ull
#define GUEST_PVLOCK_SIZE 0x10000ull

#define GUEST_RAM     0x40000000ull
#define GUEST_RAM_MAX ((uint64_t)CONFIG_MEMORY_MAX)

/* Interrupts: PPI n is INTID 16 + n, SPI n is INTID 32 + n. */
#define GUEST_PPI_TIMER_SECURE 13u
#define GUEST_PPI_TIMER_PHYS   14u
#define GUEST_PPI_TIMER_VIRT   11u
#define GUEST_PPI_TIMER_HYP    10u
#define GUEST_SPI_UART         1u

#define GUEST_CLOCK_HZ 24000000u /* of the UART */

/* In this order, each ends before the next begins. */
_Static_assert(GUEST_GICD + GUEST_GICD_SIZE <= GUEST_GICR0, "distributor, redistributors");
_Static_assert(GUEST_GICR0 + GUEST_GICR0_SIZE <= GUEST_UART, "redistributors, UART");
_Static_assert(GUEST_UART + GUEST_UART_SIZE <= GUEST_STEAL, "UART, stolen time");
_Static_assert(GUEST_STEAL + GUEST_STEAL_SIZE <= GUEST_PVLOCK, "stolen time, PV lock");
_Static_assert(GUEST_PVLOCK + GUEST_PVLOCK_SIZE <= GUEST_RAM, "PV lock, RAM");
_Static_assert(GUEST_RAM + GUEST_RAM_MAX <= GUEST_GICR1, "RAM, second redistributor region");
_Static_assert(GUEST_GICR1 + GUEST_GICR1_SIZE <= 1ull << GUEST_IPA_BITS, "end of the IPA space");

_Static_assert(GUEST_STEAL % 0x10000 == 0 && GUEST_PVLOCK % 0x10000 == 0, "64 KiB aligned");
_Static_assert(GUEST_STEAL_SIZE == 0x10000 && GUEST_PVLOCK_SIZE == 0x10000, "64 KiB long");
_Static_assert(GUEST_RAM % 0x200000 == 0, "a kernel needs a 2 MiB aligned base");

#endif
