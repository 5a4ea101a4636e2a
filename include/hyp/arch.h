/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between hyp/ and an architecture (arch/arm64, arch/x86_64, and arch/fake for tests).
 * All functions are called with interrupts masked. "On its pCPU" means: on the pCPU that runs the
 * vCPU now. None of them may sleep; none fails unless it says so.
 */
#ifndef HYP_ARCH_H
#define HYP_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "core/spin.h"
#include "hyp/pcpu.h"
#include "hyp/types.h"

struct vcpu;
struct vm;

/* What the boot loader left for us. */
struct boot_info {
    const void *archive; /* newc cpio with machine.conf; NULL: none was given */
    uint64_t archive_size;
};

/* ---- The machine ---- */

/* Ticks of the clock in a second. Any pCPU, after arch_early_init. */
uint64_t arch_clock_hz(void);

/*
 * What must be known before memory is given out: finds RAM (mem_add, mem_reserve), the pCPUs, the
 * boot archive, console and interrupt controller. `firmware` is what the boot loader passed. Boot
 * pCPU, once.
 */
void arch_boot_init(void *firmware, struct boot_info *info);

/* Prepares this pCPU for guests: traps, interrupt controller, timer. Each pCPU, once. */
void arch_cpu_init(struct pcpu *p);

/* Starts pCPUs 1..pcpu_count-1; each of them calls boot_cpu_main(). Boot pCPU, once. */
void arch_start_cpus(void);

/* Bytes of memory that the hypervisor's image takes, its data included. */
uint64_t arch_image_size(void);

/* Waits until an interrupt is pending. Does not handle it. */
void arch_wait_for_interrupt(void);

/* Handles all interrupts that are pending on this pCPU. No locks held. */
void arch_handle_interrupts(void);

/* Whether one is pending on this pCPU: then a long job should pause. */
bool arch_interrupt_pending(void);

/* Arms this pCPU's timer for `deadline` (ticks; TIMER_NEVER: off). */
void arch_timer_arm(uint64_t deadline);

/*
 * trace_active() has changed: makes all pCPUs record, or no longer record, when their guests are
 * left and entered (TRACE_EXIT, TRACE_ENTER). Others may do it a little later. Any pCPU, also
 * before the others start.
 */
void arch_trace_changed(void);

/* Turns the machine off. */
_Noreturn void arch_power_off(void);

/* Stops this pCPU for ever, after a panic. */
_Noreturn void arch_halt(void);

/* Maps machine memory for the hypervisor's own use, writable, never executable. Boot pCPU. */
void arch_map_own(phys_t base, uint64_t size);

/* Takes one page of that away again: a guard page. Boot pCPU. */
void arch_unmap_page(void *page);

/* The serial port: false from putc when its FIFO is full; -1 from getc when nothing was typed. */
bool arch_uart_putc(uint8_t byte);
int arch_uart_getc(void);

/* Whether the serial port interrupts when it has room to send. */
void arch_uart_tx_interrupt(bool on);

/* ---- VMs ---- */

/*
 * Prepares tables and virtual interrupt controller, after its vCPUs exist, and chooses vm->ram,
 * where the hypervisor will see its RAM. Boot pCPU.
 */
void arch_vm_init(struct vm *vm);

/*
 * What the VM's configuration offers its guest of the hypervisor's own services, and the records
 * for these. Boot pCPU, after its vCPUs and RAM exist.
 */
void arch_vm_offer(struct vm *vm);

/*
 * Gives the VM a piece of machine memory as its RAM from byte `offset` on, for the guest and for
 * the hypervisor at vm->ram + offset: blocks where alignment allows, pages elsewhere. Boot pCPU.
 */
void arch_vm_map_ram(struct vm *vm, uint64_t offset, phys_t piece, uint64_t size);

/* Everything of the VM as after power-on, for a start or restart; no vCPU of it is on a pCPU. */
void arch_vm_reset(struct vm *vm);

/*
 * Writes what a kernel expects to find (arm64: device tree) into the VM's RAM, at vm->load.dtb_ipa.
 * NULL, or a sentence that says why not.
 */
const char *arch_vm_boot_data(struct vm *vm);

/* Where guest RAM begins: arm64 0x40000000, as QEMU's virt. */
ipa_t arch_vm_ram_base(void);

/*
 * Guest RAM was written by us: makes it visible to a guest whose caches and MMU are off, and to its
 * instruction fetches. Any pCPU.
 */
void arch_sync_guest_memory(void *start, uint64_t size);

/*
 * The last `ticks` ticks have not been for this VM: the clocks that its guest reads go on from
 * where they were. None of its vCPUs is in its guest. Any pCPU, vm->lock held.
 */
void arch_vm_clock_stood(struct vm *vm, uint64_t ticks);

/* The virtual UART's interrupt line. Any pCPU; uart lock held. */
void arch_vm_uart_line(struct vm *vm, bool level);

/* How many bits a number has by which TLBs tell VMs apart: at most VMID_BITS_MAX. Boot pCPU. */
unsigned arch_vmid_bits(void);

/*
 * On this pCPU, guests' addresses are translated by the tables of `vm` from now on, and TLB entries
 * are made and found under `number`.
 */
void arch_vm_translate(const struct vm *vm, uint32_t number);

/* Forgets, on this pCPU only, all translations of all VMs. */
void arch_tlb_flush_cpu(void);

/*
 * Forgets, on this pCPU only, the translations that guests' own tables made (stage 1) for the VM
 * that was last given to arch_vm_translate().
 */
void arch_tlb_flush_stage1(void);

/* ---- vCPUs ---- */

/* Once per vCPU, at creation. */
void arch_vcpu_init(struct vcpu *v);

/* Registers as after power-on, to start at `pc` with `arg`. The vCPU is on no pCPU. */
void arch_vcpu_reset(struct vcpu *v, uint64_t pc, uint64_t arg);

/*
 * Brings its interrupts and timers onto this pCPU, and its registers unless they are still there
 * (`registers_present`: nobody else ran here since it left, and it ran nowhere else).
 */
void arch_vcpu_load(struct vcpu *v, bool registers_present);

/* Takes its interrupts and timers off this pCPU, into memory. Its registers stay. */
void arch_vcpu_quiesce(struct vcpu *v);

/* Its registers into memory, after arch_vcpu_quiesce. On the pCPU that has them. */
void arch_vcpu_save(struct vcpu *v);

/*
 * Acts on REQUEST_IRQ, REQUEST_IRQ_SYNC and REQUEST_TIMER, which were just taken from v->requests;
 * the vCPU is loaded. On its pCPU.
 */
void arch_vcpu_requests(struct vcpu *v, uint32_t requests);

/*
 * Whether a bus error is pending, as one can be only since the vCPU, which is loaded, was last
 * entered: it is taken, and the VM crashes for it. Asked before another vCPU runs, which it would
 * hit. On its pCPU.
 */
bool arch_vcpu_serror(struct vcpu *v);

/* Whether an interrupt is pending that ends a wait (WFI, HLT). On its pCPU. */
bool arch_vcpu_pending(struct vcpu *v);

/*
 * When a vCPU that is off the CPU must be woken for its own timers, in ticks of the clock;
 * TIMER_NEVER if never. On its pCPU; `blocked`: whether it waits for an interrupt.
 */
uint64_t arch_vcpu_deadline(struct vcpu *v, bool blocked);

/* Prints PC, syndrome, fault address and registers. On its pCPU. */
void arch_vcpu_report(struct vcpu *v);

/*
 * Enters the guest as soon as port_clock() has come to `when`, and not before. Writes to *arrived
 * what it was when only the wait was left to be done; from then on nothing is touched but the
 * guest's own registers. Forgets the stack. On its pCPU.
 */
_Noreturn void arch_enter_at(struct vcpu *v, uint64_t when, uint64_t *arrived);

/* Enters the guest; the first time on a pCPU, from its boot stack. */
_Noreturn void arch_enter(struct vcpu *v);

/*
 * For what `v` waits, which has just trapped as it waits for an event, if its registers and code
 * tell: fills `w` but for the turn; w->word is NULL if they don't. On v's pCPU, v loaded.
 */
void arch_spin_wait(const struct vcpu *v, struct spin_wait *w);

/* How likely others wait for `v`, by what it did when it was last left. It does not run. Any pCPU.
 */
enum spin_rank arch_spin_rank(const struct vcpu *v);

/*
 * Lets it wait for events without a trap until it is switched or its next exit for an interrupt,
 * whichever is first: nobody waits for a pCPU. On v's pCPU, v loaded.
 */
void arch_spin_untrap(struct vcpu *v);

#endif
