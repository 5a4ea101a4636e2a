/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The virtual GICv3 of one VM: distributor, redistributors, and what is in the list registers.
 *
 * The guest sees one security state (GICD_CTLR.DS = 1), affinity routing always on, no LPIs, no
 * ITS; group 0 arrives as FIQ and group 1 as IRQ. Section numbers are those of the GIC architecture
 * specification, Arm IHI 0069H.
 *
 * Nothing in here touches a system register: the glue (gic_cpu.c) copies between the hardware and
 * the fields marked "glue" below, and gives the four callbacks at the end. So all of it runs in
 * unit tests.
 *
 * Where the truth is. While a vCPU's list registers are *live* (loaded into a CPU that may run the
 * guest) they know best. vgic_fold() takes their content back into the bitmaps, after which the
 * bitmaps know best, until vgic_fill() makes new list register values of them. So the glue's order
 * is always
 *
 *     read list registers, vgic_fold(), (handlers), vgic_fill(), write list registers, enter
 *
 * (vgic_refill() is fold and fill in one) and all of it may be left out at an exit and entry where
 * !vgic_dirty(v) and no handler needs the truth. vgic_fold() sets dirty, so that no fold is left
 * without its fill.
 *
 * Locks: vgic_vm.lock, then vgic_vcpu.lock; never two vCPUs' locks at once. Callbacks are called
 * with neither held. All functions want physical interrupts masked, as everything at EL2 does.
 */
#ifndef ARCH_ARM64_VGIC_H
#define ARCH_ARM64_VGIC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/spinlock.h"

#define VGIC_MAX_VCPUS 256u
#define VGIC_MAX_SPIS  256u
#define VGIC_MAX_LRS   16u

#define VGIC_FIRST_PPI 16u
#define VGIC_FIRST_SPI 32u

#define VGIC_SPI_BANKS (VGIC_MAX_SPIS / 32u)

/* Sizes of the guest's register windows (12.1.1): one distributor frame, two frames per vCPU. */
#define VGIC_DIST_SIZE   0x10000u
#define VGIC_REDIST_SIZE 0x20000u

/* How many vCPUs have their frames in the first redistributor region of QEMU's virt. */
#define VGIC_VIRT_REGION0 123u

/* No vCPU: in the places that hold a vCPU's number. */
#define VGIC_NOBODY 0xffffu

/* ICH_LR<n>_EL2 (12.4.10). */
#define VGIC_LR_VINTID(lr)   ((uint32_t)(lr))
#define VGIC_LR_PINTID_SHIFT 32
#define VGIC_LR_EOI          (1ull << 41) /* maintenance interrupt on EOI; with HW = 0 only */
#define VGIC_LR_PRIO_SHIFT   48
#define VGIC_LR_GROUP1       (1ull << 60)
#define VGIC_LR_HW           (1ull << 61)
#define VGIC_LR_PENDING      (1ull << 62)
#define VGIC_LR_ACTIVE       (1ull << 63)

/* ICH_HCR_EL2 (12.4.7). */
#define VGIC_HCR_EN             (1ull << 0)
#define VGIC_HCR_LRENPIE        (1ull << 2)
#define VGIC_HCR_NPIE           (1ull << 3)
#define VGIC_HCR_VGRP0EIE       (1ull << 4)
#define VGIC_HCR_VGRP0DIE       (1ull << 5)
#define VGIC_HCR_VGRP1EIE       (1ull << 6)
#define VGIC_HCR_VGRP1DIE       (1ull << 7)
#define VGIC_HCR_TC             (1ull << 10)
#define VGIC_HCR_TDIR           (1ull << 14)
#define VGIC_HCR_EOICOUNT_SHIFT 27 /* bits 31:27 */

/* ICH_VMCR_EL2 (12.4.12). */
#define VGIC_VMCR_VENG0      (1ull << 0)
#define VGIC_VMCR_VENG1      (1ull << 1)
#define VGIC_VMCR_VEOIM      (1ull << 9)
#define VGIC_VMCR_VPMR_SHIFT 24

/*
 * 32 interrupts: a vCPU's own ones, or 32 SPIs. One bit each, bit n for INTID base + n.
 * Guarded by the vCPU's lock or the VM's; `group` is also read without (an SGI's sender).
 */
struct vgic_bank {
    uint32_t group; /* 1: group 1 */
    uint32_t enable;
    uint32_t on;      /* enabled, and their group is on in GICD_CTLR: vgic_bank_on() */
    uint32_t edge;    /* 1: edge-triggered, 0: level-sensitive */
    uint32_t line;    /* the input, as last set */
    uint32_t latch;   /* pending by an edge, a write or an SGI; not what moved to a list register */
    uint32_t active;  /* as of the last fold */
    uint32_t in_lr;   /* in a live list register, which knows best */
    uint32_t lr_soft; /* of those: pending there on behalf of the latch */
    uint32_t act_ovr; /* of those: `active` was written since; the list register's is void */
    uint8_t prio[32];
};

/* Whether list registers may be in use by a running guest. */
enum vgic_liveness {
    VGIC_FOLDED,
    VGIC_LIVE,
    VGIC_LIVE_SIMPLE /* the same, with at most one own interrupt, in number 0, and none outside */
};

struct vgic_vm;

struct vgic_vcpu {
    /* Written by other CPUs, without the lock: a cache line for itself. */
    uint32_t dirty __attribute__((aligned(64))); /* something changed: fill before entry */
    uint32_t new_latch;                          /* SGIs that arrived since the last look */
    uint32_t spi_any; /* bit w: spi_cand[w] | spi_held[w] is not 0; written under vm->lock */

    /*
     * Glue: written or read by the CPU that has the vCPU, and nobody else, without the lock.
     * Before vgic_fold():  lr[i] of each bit in lr_used as ICH_LR<i> has it now (those in lr_write,
     *                      if any, stay: they were never written), hcr_in, ich_vmcr.
     * After vgic_fill():   write ICH_LR<i> = lr[i] of each bit in lr_write, and ICH_HCR = ich_hcr
     *                      if hcr_write; then clear both marks.
     * At switch-out/-in:   ich_vmcr, ap0r[], ap1r[] (as many as the hardware has).
     */
    uint64_t lr[VGIC_MAX_LRS] __attribute__((aligned(64)));
    uint64_t ich_hcr; /* to be written; EOIcount 0 */
    uint64_t hcr_in;  /* as read: for EOIcount. May be 0 where !(ich_hcr & VGIC_HCR_LRENPIE) */
    uint64_t ich_vmcr;
    uint64_t ap0r[4];
    uint64_t ap1r[4];
    uint32_t lr_used;  /* bit i: LR i has an interrupt */
    uint32_t lr_write; /* bit i: LR i in hardware is not lr[i] */
    bool hcr_write;

    /* The rest is vgic's. */
    uint64_t hcr_base; /* ich_hcr when all fits */
    uint32_t lr_all;   /* a bit for each list register */
    uint8_t n_lr;
    bool tds;          /* ICH_VTR_EL2.TDS: ICH_HCR_EL2.TDIR works */
    bool awake;        /* !GICR_WAKER.ProcessorSleep */
    uint16_t index;    /* number in its VM = GICR_TYPER.Processor_Number */
    uint32_t live;     /* enum vgic_liveness; atomic, see below */
    uint32_t fold_seq; /* counts folds; atomic */
    struct vgic_vm *vm;

    struct spinlock lock; /* for all below */
    struct vgic_bank own; /* SGIs and PPIs */
    uint32_t hw;          /* linked to a physical interrupt; `line` then means: it fired, and
                           * the guest did not acknowledge it yet */
    uint32_t hw_new;      /* fired since the last fold; like the next, of the CPU that has it */
    uint32_t hw_low;      /* lowered since then */
    uint32_t hw_phys;     /* the physical interrupt is active on behalf of this vCPU */
    uint16_t hw_pintid[32];

    /* Guarded by vm->lock. */
    uint32_t spi_cand[VGIC_SPI_BANKS]; /* SPIs to deliver here, in no list register, not active */
    uint32_t spi_held[VGIC_SPI_BANKS]; /* SPIs in a list register of this vCPU, or active here */
};

struct vgic_vm {
    struct spinlock lock; /* for all but the constant part */
    uint32_t ctlr;        /* EnableGrp0, EnableGrp1; also read without the lock */
    struct vgic_bank spi[VGIC_SPI_BANKS];
    uint32_t cand[VGIC_SPI_BANKS]; /* SPIs that stand in their target's spi_cand */
    uint64_t irouter[VGIC_MAX_SPIS];
    uint16_t target[VGIC_MAX_SPIS]; /* whom cand stands for */
    uint16_t holder[VGIC_MAX_SPIS]; /* who has it in a list register, or active */

    /* Constant from vgic_vm_init() and vgic_vcpu_init() on. */
    uint16_t n_vcpus;
    uint16_t n_spis;   /* a multiple of 32 */
    uint16_t region0;  /* vCPUs in the first redistributor region */
    uint8_t prio_mask; /* the implemented bits of a priority */
    struct vgic_vcpu *vcpu[VGIC_MAX_VCPUS];
};

/* Which register an SGI was sent with (12.2.18, 12.2.19, 12.2.7). */
enum vgic_sgi_reg { VGIC_SGI0R, VGIC_SGI1R, VGIC_ASGI1R };

/* What became of a guest's register access; *value is defined in every case (0 for reads). */
enum vgic_mmio_result {
    VGIC_MMIO_OK,      /* done */
    VGIC_MMIO_IGNORED, /* reserved offset or unsupported width: read as zero, write ignored */
    VGIC_MMIO_ABORT    /* misaligned, or outside the window: an external abort for the guest */
};

/* --- Set-up and reset --- */

/*
 * Makes `vm` an interrupt controller for `n_vcpus` (1..256) vCPUs and `n_spis` SPIs (rounded up to
 * a multiple of 32, at most 256; INTIDs 32..), in reset state. `region0` vCPUs have their frames in
 * the first redistributor region, the rest in a second (GICR_TYPER.Last ends each;
 * VGIC_VIRT_REGION0). `pri_bits` is ICH_VTR_EL2.PRIbits + 1, the smallest of all pCPUs (4..8).
 * Before any vCPU runs; follow with vgic_vcpu_init() for every vCPU. False, and nothing done: a
 * number is out of range.
 */
bool vgic_vm_init(struct vgic_vm *vm, unsigned n_vcpus, unsigned n_spis, unsigned region0,
                  unsigned pri_bits);

/*
 * Makes `v` vCPU `index` of `vm`, in reset state, with `n_lr` list registers (ICH_VTR_EL2.ListRegs
 * + 1, the smallest of all pCPUs, 1..16) and `tds` = ICH_VTR_EL2.TDS of all of them. Its affinity
 * is vgic_mpidr(index). Before any vCPU of the VM runs. False, and nothing done: a number is out of
 * range.
 */
bool vgic_vcpu_init(struct vgic_vm *vm, struct vgic_vcpu *v, unsigned index, unsigned n_lr,
                    bool tds);

/*
 * Links the PPI `intid` (16..31) of `v` to the physical interrupt `pintid`: its list register entry
 * gets HW = 1, so that the guest's deactivation deactivates that one too. Level-sensitive from then
 * on, whatever the guest writes to GICR_ICFGR1. Survives resets. After vgic_vcpu_init(), before `v`
 * runs.
 */
void vgic_hw_link(struct vgic_vcpu *v, unsigned intid, unsigned pintid);

/*
 * Back to the state after the inits, for a reboot of the VM: as QEMU's virt without security
 * extensions (everything group 0, disabled, priority 0, level except SGIs; GICD_CTLR enables 0;
 * asleep). Input lines of SPIs and unlinked PPIs are kept, as wires are. All vCPUs stopped and off
 * the CPUs, no lock held; no callback is called.
 */
void vgic_vm_reset(struct vgic_vm *vm);

/*
 * Resets the CPU interface of `v` (VMCR, active priorities), as power-down and -up of a PE do: for
 * PSCI CPU_ON. The redistributor keeps its state, pending and active interrupts too. `v` off the
 * CPU and folded. Takes no lock.
 */
void vgic_cpuif_reset(struct vgic_vcpu *v);

/* MPIDR_EL1 affinity fields of vCPU `index`: Aff0 = index % 16, Aff1 = index / 16. Any context. */
static inline uint64_t vgic_mpidr(unsigned index) {
    return ((uint64_t)(index / 16u) << 8) | (index % 16u);
}

/* --- Making interrupts pending: from any CPU, no vgic lock held, ends in vgic_notify() --- */

/*
 * The input line of interrupt `intid` (PPI: of vCPU `v`; SPI: of v's VM) is now `level`.
 * Edge-triggered: a rise makes it pending. No change, no effect. SGIs and unknown INTIDs: ignored.
 *
 * A linked PPI (vgic_hw_link): true says that the physical interrupt fired and was acknowledged and
 * priority-dropped but not deactivated, or that a software timer found it due while `v` is off the
 * CPU. False says that its cause went away (the glue looked at the timer); when the guest has not
 * acknowledged it, the next vgic_fill() calls vgic_phys_deactivate(). It notifies nobody: say it on
 * the CPU that has `v`, right before a fill.
 */
void vgic_set_level(struct vgic_vcpu *v, unsigned intid, bool level);

/* Makes `intid` (PPI of `v`, or SPI) pending once, as a write of GICD_ISPENDR does. */
void vgic_pulse(struct vgic_vcpu *v, unsigned intid);

/*
 * `src` wrote `value` to ICC_SGI1R_EL1, ICC_SGI0R_EL1 or ICC_ASGI1R_EL1. With DS = 1, SGI1R sends
 * to SGIs of either group as configured at the target, the other two to those of group 0 only.
 * Targets that don't exist get nothing. No lock taken: one atomic OR for each target. On the CPU
 * that runs `src`.
 */
void vgic_send_sgi(struct vgic_vcpu *src, uint64_t value, enum vgic_sgi_reg reg);

/*
 * --- Around a guest entry: on the CPU that has `v`, no lock held; takes vm->lock if SPIs are in
 * --- play, and v->lock ---
 */

/* Is there anything to do before `v` is entered? Any CPU; a hint if another one has `v`. */
static inline bool vgic_dirty(const struct vgic_vcpu *v) {
    return __atomic_load_n(&v->dirty, __ATOMIC_RELAXED) != 0;
}

/*
 * Takes back what the guest did to the list registers; see the glue fields for what must be read
 * before. May call vgic_notify() for other vCPUs (an SPI that goes elsewhere now). Nothing to do
 * when not live.
 */
void vgic_fold(struct vgic_vcpu *v);

/*
 * Puts what is pending or active into list registers, and v->ich_hcr to what lets the guest exit
 * when it has room for more. Never while live: fold first. May call vgic_phys_deactivate().
 *
 * When not all fit: the pending interrupt with the highest priority goes first, then active ones,
 * then other pending ones. Left-over pending ones raise a maintenance interrupt as soon as none is
 * pending in a list register (ICH_HCR_EL2.NPIE: works with a single list register too, unlike UIE);
 * an interrupt that is active outside is deactivated through EOIcount (LRENPIE), or
 * vgic_trapped_dir().
 */
void vgic_fill(struct vgic_vcpu *v);

/*
 * vgic_fold() if live, and vgic_fill(), in one and cheaper: for the entry after an exit whose
 * handler did not need the truth. Quick for a vCPU with no SPI and at most one own interrupt.
 */
void vgic_refill(struct vgic_vcpu *v);

/*
 * `v` comes to this CPU, whose list registers and ICH_HCR hold somebody else's values: everything
 * will be written after the next vgic_fill(). Call at switch-in, before vgic_fill(); `v` is folded,
 * and dirty since then.
 * At switch-out vgic_fold() is all there is to do for vgic (and ICH_HCR = 0 if no guest runs next).
 */
static inline void vgic_switch_in(struct vgic_vcpu *v) {
    v->lr_write = v->lr_all;
    v->hcr_write = true;
}

/*
 * A maintenance interrupt came for `v`: its list registers want a look. After this the usual fold
 * and fill; they remove the cause, so the physical line falls when the list registers and ICH_HCR
 * are written.
 */
static inline void vgic_maintenance(struct vgic_vcpu *v) {
    __atomic_store_n(&v->dirty, 1u, __ATOMIC_RELAXED);
}

/*
 * Would WFI of `v` end now: is an interrupt pending, enabled, not active, its group enabled in
 * GICD_CTLR and ich_vmcr, its priority higher than ich_vmcr's PMR? PSTATE masks don't count, nor
 * does the running priority (a WFI inside a handler may then end early, which the architecture
 * allows). Exact when `v` is folded and ich_vmcr current. Any CPU; takes v->lock, and vm->lock when
 * SPIs are in play.
 */
bool vgic_pending(struct vgic_vcpu *v);

/* vgic_fold() and vgic_pending() in one and cheaper: for WFI. What must be read before: see
 * vgic_fold(). */
bool vgic_fold_pending(struct vgic_vcpu *v);

/*
 * The guest wrote `intid` to ICC_DIR_EL1 and ICH_HCR_EL2.TDIR (or TC) trapped it: deactivates it,
 * in whatever list register of the VM it is. Ignored when ich_vmcr says EOImode 0, and for INTIDs
 * that don't exist or are not active. `v` folded, ich_vmcr current; fill before entry. May call
 * vgic_sync_remote().
 */
void vgic_trapped_dir(struct vgic_vcpu *v, unsigned intid);

/* --- Linked interrupts --- */

/*
 * Must the physical interrupt behind linked PPI `intid` be active while `v` has the CPU: is it
 * pending or active in `v`? The glue writes the physical active state accordingly when it switches
 * `v` in (before vgic_refill()). On the CPU that has `v`, folded; no lock: another CPU that clears
 * the state meanwhile, by a write to this redistributor, asks for a refill, which deactivates.
 */
static inline bool vgic_hw_active(const struct vgic_vcpu *v, unsigned intid) {
    return ((v->hw_phys & (v->own.line | v->own.active)) >> intid & 1u) != 0;
}

/*
 * Is the physical interrupt behind linked PPI `intid` held active on behalf of `v`? Then, before
 * vgic_refill() or vgic_fill(), the glue looks at its real line (for the timer: CNTV_CTL_EL0) and
 * calls vgic_set_level(v, intid, false) if that is low: the guest has reprogrammed the timer, and
 * an interrupt that it did not acknowledge yet must not come any more. No harm if it is active. On
 * the CPU that has `v`; no lock.
 */
static inline bool vgic_hw_held(const struct vgic_vcpu *v, unsigned intid) {
    return ((v->hw_phys | v->hw_new) >> intid & 1u) != 0;
}

/*
 * The physical interrupt behind linked PPI `intid` fired and was acknowledged and priority-dropped,
 * or the glue found its line high at switch-in: what vgic_set_level(v, intid, true) says, for the
 * CPU that has `v`. Takes no lock and notifies nobody: a fill follows.
 */
static inline void vgic_hw_fired(struct vgic_vcpu *v, unsigned intid) {
    v->hw_new |= 1u << intid;
    v->hw_low &= ~(1u << intid);
    __atomic_store_n(&v->dirty, 1u, __ATOMIC_RELAXED);
}

/* --- Registers --- */

/*
 * Whether an access at `offset` has to do with what list registers hold: all writes, and reads of
 * pending and active state (GICx_ISPENDR to GICx_ICACTIVER, 0x200 to 0x3ff in either frame). For
 * others `v` need not be folded, and nothing is to be filled afterwards.
 */
static inline bool vgic_mmio_needs_fold(uint64_t offset, bool is_write) {
    return is_write || (offset & 0xfe00u) == 0x200;
}

/*
 * Guest accesses of vCPU `v`, `width` 1, 2, 4 or 8 bytes, at `offset` into the distributor, or into
 * the redistributor frames of all vCPUs in order of number (the glue adds region0 *
 * VGIC_REDIST_SIZE for the second region). Reads put the value, zero-extended, into *value; writes
 * take it from there.
 *
 * `v` is folded before and filled before its entry, if vgic_mmio_needs_fold(). The change is in
 * force on return, also where another vCPU has the interrupt in a list register:
 * vgic_sync_remote() is called then. No lock held.
 *
 * Widths (12.1.3): 32 bits everywhere; 8 bits for priorities; 64 bits for GICD_IROUTER, GICR_TYPER
 * and the LPI base registers. Another width is CONSTRAINED UNPREDICTABLE: here RAZ/WI, as in QEMU.
 * So are reserved offsets. Misaligned accesses get an external abort, as on a bus without unaligned
 * support and in QEMU.
 */
enum vgic_mmio_result vgic_mmio_dist(struct vgic_vm *vm, struct vgic_vcpu *v, uint64_t offset,
                                     unsigned width, bool is_write, uint64_t *value);
enum vgic_mmio_result vgic_mmio_redist(struct vgic_vm *vm, struct vgic_vcpu *v, uint64_t offset,
                                       unsigned width, bool is_write, uint64_t *value);

/* --- For the glue's vgic_sync_remote() --- */

/* Are the list registers of `v` live? Any CPU, no lock. */
static inline bool vgic_live(const struct vgic_vcpu *v) {
    return __atomic_load_n(&v->live, __ATOMIC_ACQUIRE) != 0;
}

/* The number of the last fold of `v`. Any CPU, no lock. */
static inline uint32_t vgic_fold_seq(const struct vgic_vcpu *v) {
    return __atomic_load_n(&v->fold_seq, __ATOMIC_ACQUIRE);
}

/* --- Callbacks: the glue or the test gives them. No vgic lock is held --- */

/*
 * Something changed for `v`, and v->dirty is set: when `v` runs on another CPU make that CPU leave
 * the guest, when it is blocked wake it, when it runs here or is runnable or off do next to
 * nothing. All functions that make an interrupt pending end in this one.
 */
void vgic_notify(struct vgic_vcpu *v);

/*
 * Returns when the list registers of `v` (never the caller's own) have been folded since the call,
 * or are not live: with s = vgic_fold_seq(v), kick its CPU and wait while vgic_live(v) &&
 * vgic_fold_seq(v) == s. No deadlock between two that wait for each other, because both have folded
 * before they wait.
 */
void vgic_sync_remote(struct vgic_vcpu *v);

/*
 * Deactivate physical interrupt `pintid` on this CPU, which has `v`: nobody else will, and it can't
 * fire before. Called by vgic_fill() only.
 */
void vgic_phys_deactivate(struct vgic_vcpu *v, unsigned pintid);

#endif
