/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small library for bare-metal arm64 guests at EL1 on a machine like QEMU's virt.
 * A test image defines `const char *const test_name` and `void test_main(void)`; the library enters
 * test_main on CPU 0 with the MMU on (identity map), prints the summary and powers off after it.
 */
#ifndef GUEST_H
#define GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "asm.h"

#define UART_BASE 0x09000000ul
#define GICD_BASE 0x08000000ul
#define GICR_BASE 0x080a0000ul
#define RAM_BASE  0x40000000ul
#define PAGE      4096ul

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define STRINGIFY_(x) #x
#define STRINGIFY(x)  STRINGIFY_(x)

#define read_sysreg(reg)                                                                           \
    ({                                                                                             \
        uint64_t value_;                                                                           \
        __asm__ volatile("mrs %0, " STRINGIFY(reg) : "=r"(value_) : : "memory");                   \
        value_;                                                                                    \
    })
#define write_sysreg(reg, value)                                                                   \
    __asm__ volatile("msr " STRINGIFY(reg) ", %0" : : "r"((uint64_t)(value)) : "memory")
#define isb()         __asm__ volatile("isb" : : : "memory")
#define dsb()         __asm__ volatile("dsb sy" : : : "memory")
#define wfi()         __asm__ volatile("dsb sy\n\twfi" : : : "memory")
#define irq_enable()  __asm__ volatile("msr daifclr, #2" : : : "memory")
#define irq_disable() __asm__ volatile("msr daifset, #2\n\tisb" : : : "memory")
#define fiq_enable()  __asm__ volatile("msr daifclr, #1" : : : "memory")
#define fiq_disable() __asm__ volatile("msr daifset, #1\n\tisb" : : : "memory")

static inline uint8_t read8(uint64_t a) {
    uint8_t v;
    __asm__ volatile("ldrb %w0, [%1]" : "=r"(v) : "r"(a) : "memory");
    return v;
}

static inline uint16_t read16(uint64_t a) {
    uint16_t v;
    __asm__ volatile("ldrh %w0, [%1]" : "=r"(v) : "r"(a) : "memory");
    return v;
}

static inline uint32_t read32(uint64_t a) {
    uint32_t v;
    __asm__ volatile("ldr %w0, [%1]" : "=r"(v) : "r"(a) : "memory");
    return v;
}

static inline uint64_t read64(uint64_t a) {
    uint64_t v;
    __asm__ volatile("ldr %0, [%1]" : "=r"(v) : "r"(a) : "memory");
    return v;
}

static inline void write8(uint64_t a, uint8_t v) {
    __asm__ volatile("strb %w0, [%1]" : : "r"(v), "r"(a) : "memory");
}

static inline void write16(uint64_t a, uint16_t v) {
    __asm__ volatile("strh %w0, [%1]" : : "r"(v), "r"(a) : "memory");
}

static inline void write32(uint64_t a, uint32_t v) {
    __asm__ volatile("str %w0, [%1]" : : "r"(v), "r"(a) : "memory");
}

static inline void write64(uint64_t a, uint64_t v) {
    __asm__ volatile("str %0, [%1]" : : "r"(v), "r"(a) : "memory");
}

/* ---- state at the first instruction (start.S) ---- */

#define X(reg) uint64_t reg;
struct entry_state {
    uint64_t x[31];
    ENTRY_SYSREGS(X)
    uint64_t fpcr, fpsr;
    _Alignas(16) uint64_t v[64];
};
struct secondary_state {
    SECONDARY_SYSREGS(X)
};
#undef X
extern struct entry_state entry_state;
extern char _head[], _image[], _end[], _el0_start[], _el0_end[];

/* ---- exceptions (exc.c) ---- */

struct exc_frame {
    uint64_t x[31];
    uint64_t sp, elr, spsr, esr, far;
};

struct exc_info {
    unsigned count;  /* exceptions taken since exc_expect() */
    unsigned vector; /* 0..15: 4 = synchronous from the current EL with SP_EL1 */
    uint64_t esr, far, elr, spsr;
};

#define ESR_EC(esr)   (((esr) >> 26) & 0x3f)
#define ESR_ISS(esr)  ((esr)&0x1ffffff)
#define EC_UNKNOWN    0x00u
#define EC_SVC64      0x15u
#define EC_SYSREG     0x18u
#define EC_IABT_LOWER 0x20u
#define EC_IABT       0x21u
#define EC_DABT       0x25u
#define EC_STEP       0x33u

typedef bool (*sync_hook_t)(struct exc_frame *f, unsigned vector);
typedef void (*irq_hook_t)(struct exc_frame *f);

struct cpu {
    uint64_t stack_top;
    void (*fn)(uint64_t arg);
    uint64_t arg;
    struct secondary_state entry;
    uint64_t entry_tag;
    unsigned index;
    uint64_t mpidr;           /* affinity fields only */
    uint64_t gicr;            /* RD_base of this CPU, set by gic_cpu_init() */
    volatile uint32_t online; /* counts entries into secondary_start() */
    uint32_t online_before;   /* its value when smp_prepare() was called last */
    bool expect;
    struct exc_info info;
    sync_hook_t sync_hook;
    irq_hook_t irq_hook, fiq_hook;
};

extern struct cpu cpus[MAX_CPUS];

static inline struct cpu *this_cpu(void) {
    struct cpu *c;
    __asm__ volatile("mrs %0, tpidr_el1" : "=r"(c));
    return c;
}

/*
 * From exc_expect() to exc_end(), a synchronous exception or SError on this CPU is recorded and the
 * instruction skipped (a failed fetch returns to the link register) instead of ending the guest.
 */
void exc_expect(void);
struct exc_info exc_end(void);

/*
 * Runs up to 15 instructions with x0-x29 from regs (x0-x29 are stored back); exceptions are
 * recorded, with ELR as an offset from the first instruction.
 */
struct exc_info code_exec(const uint32_t *insns, unsigned n, uint64_t regs[31]);
struct exc_info insn_exec(uint32_t insn, uint64_t regs[31]);
void insn_trampoline(uint64_t regs[31], const uint32_t *code);
uint64_t el0_call(uint64_t (*fn)(uint64_t), uint64_t arg, uint64_t stack_top);
uint64_t el0_run(uint64_t (*fn)(uint64_t), uint64_t arg);
#define EL0_TEXT __attribute__((section(".el0text"), noinline))

/* Encodings for insn_exec(): MRS Xt, <reg> and MSR <reg>, Xt */
#define SYSREG(op0, op1, crn, crm, op2)                                                            \
    ((uint32_t)(op0) << 19 | (uint32_t)(op1) << 16 | (uint32_t)(crn) << 12 |                       \
     (uint32_t)(crm) << 8 | (uint32_t)(op2) << 5)
#define INSN_MRS(reg, rt) (0xd5200000u | (reg) | (uint32_t)(rt))
#define INSN_MSR(reg, rt) (0xd5000000u | (reg) | (uint32_t)(rt))
#define INSN_HVC(imm)     (0xd4000002u | (uint32_t)(imm) << 5)
#define INSN_SMC(imm)     (0xd4000003u | (uint32_t)(imm) << 5)
/* Reads (writes) a system register named by its encoding; false if that took an exception. */
bool sysreg_get(uint32_t reg, uint64_t *value);
bool sysreg_set(uint32_t reg, uint64_t value);

/* ---- console and results (print.c) ---- */

void uart_putc(char c);
void print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int format(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

extern const char *const test_name;
void test_main(void);
bool tap_check(bool good, const char *name, uint64_t found, uint64_t expected);
#define check_eq(name, found, expected)                                                            \
    ({                                                                                             \
        uint64_t found_ = (uint64_t)(found), expected_ = (uint64_t)(expected);                     \
        tap_check(found_ == expected_, name, found_, expected_);                                   \
    })
#define check_true(name, cond) tap_check(cond, name, 0, 1)
/* found within lo..hi */
bool check_range(const char *name, uint64_t found, uint64_t lo, uint64_t hi);
void tap_skip(const char *name, const char *reason);
void tap_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void tap_done(void);
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- helpers (util.c) ---- */

void *memset(void *d, int c, size_t n);
void *memcpy(void *d, const void *s, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

struct rng {
    uint64_t s;
};
uint64_t rng_next(struct rng *r);

struct spinlock {
    uint32_t locked;
};
void spin_lock(struct spinlock *l);
void spin_unlock(struct spinlock *l);

struct barrier {
    uint32_t count, round;
};
/* Waits (polling) until n CPUs have come here. */
void barrier_wait(struct barrier *b, uint32_t n);

/* ---- device tree and boot arguments (fdt.c) ---- */

extern const uint8_t *fdt; /* as given in x0 */
bool fdt_valid(void);
uint32_t fdt_size(void);
/*
 * Nodes are positions in the structure block; -1 is none. fdt_find() gives the n-th node whose path
 * matches: components are compared with the node name, up to its '@' when the component has none.
 */
int fdt_find(const char *path, unsigned n);
const uint8_t *fdt_prop(int node, const char *name, uint32_t *len);
uint32_t fdt_u32(int node, const char *name, unsigned index, uint32_t otherwise);
uint64_t fdt_cells(const uint8_t *p, unsigned cells);
bool fdt_compatible(int node, const char *what);
/* A string property's first string, or "" */
const char *fdt_string(int node, const char *name);
/* value of `name=NUMBER` on the kernel command line (a bare `name` counts as 1) */
uint64_t bootarg(const char *name, uint64_t otherwise);
bool native(void);           /* `native` given: QEMU itself, no hypervisor */
uint64_t scaled(uint64_t n); /* n times the `long` boot argument */

extern uint64_t ram_base, ram_size;
extern unsigned cpu_count;

/* ---- memory (mmu.c) ---- */

#define PTE_NORMAL (0ul << 2)
#define PTE_DEVICE (1ul << 2)
#define PTE_NC     (2ul << 2)
#define PTE_USER   (1ul << 6)
#define PTE_RO     (1ul << 7)
#define PTE_NG     (1ul << 11)
#define PTE_PXN    (1ul << 53)
#define PTE_UXN    (1ul << 54)

void mmu_init(void); /* builds the identity map */
void mmu_on(void);
void mmu_off(void);
bool mmu_is_on(void);
/* Maps one 4 KiB page in the identity table (attr from above; 0 unmaps with invalid entry). */
void mmu_map_page(uint64_t va, uint64_t pa, uint64_t attr);
void mmu_unmap_page(uint64_t va);
/* A second, empty root whose table entries come from the same pool; shares the identity map. */
uint64_t mmu_new_root(void);
void mmu_map_page_in(uint64_t root, uint64_t va, uint64_t pa, uint64_t attr);
uint64_t *mmu_entry(uint64_t root, uint64_t va, unsigned level);
extern uint64_t mmu_root;
void tlb_flush_all(void); /* inner shareable */
void cache_clean(const void *p, size_t n);
void code_sync(const void *p, size_t n);
uint64_t alloc_pages(unsigned n); /* RAM above image and DTB; dies when there is none */
uint64_t ram_free_start(void);    /* first byte that neither image nor DTB uses */

/* ---- PSCI and SMCCC (psci.c) ---- */

#define PSCI_VERSION           0x84000000u
#define PSCI_CPU_SUSPEND       0x84000001u
#define PSCI_CPU_SUSPEND64     0xc4000001u
#define PSCI_CPU_OFF           0x84000002u
#define PSCI_CPU_ON            0x84000003u
#define PSCI_CPU_ON64          0xc4000003u
#define PSCI_AFFINITY_INFO     0x84000004u
#define PSCI_AFFINITY_INFO64   0xc4000004u
#define PSCI_MIGRATE           0x84000005u
#define PSCI_MIGRATE_INFO_TYPE 0x84000006u
#define PSCI_SYSTEM_OFF        0x84000008u
#define PSCI_SYSTEM_RESET      0x84000009u
#define PSCI_FEATURES          0x8400000au
#define PSCI_SYSTEM_RESET2     0x84000012u
#define PSCI_SYSTEM_RESET2_64  0xc4000012u
#define SMCCC_VERSION          0x80000000u
#define SMCCC_ARCH_FEATURES    0x80000001u

#define PSCI_SUCCESS            0
#define PSCI_NOT_SUPPORTED      (-1)
#define PSCI_INVALID_PARAMETERS (-2)
#define PSCI_DENIED             (-3)
#define PSCI_ALREADY_ON         (-4)
#define PSCI_ON_PENDING         (-5)
#define PSCI_INVALID_ADDRESS    (-9)

int64_t hvc4(uint64_t fn, uint64_t a1, uint64_t a2, uint64_t a3);
/* PSCI through HVC; results are the sign-extended 32-bit codes */
int64_t psci(uint64_t fn, uint64_t a1, uint64_t a2, uint64_t a3);
_Noreturn void system_off(void);

/* ---- more CPUs (smp.c) ---- */

void secondary_entry(void);
void secondary_entry_a(void);
void secondary_entry_b(void);
void secondary_entry_wfi(void);
/* Prepares cpus[index] to run fn(arg) and calls CPU_ON; fn's return ends in CPU_OFF. */
void smp_prepare(unsigned index, void (*fn)(uint64_t), uint64_t arg);
int64_t smp_start(unsigned index, void (*fn)(uint64_t), uint64_t arg);
/* Starts every other CPU and waits until all run. */
void smp_start_all(void (*fn)(uint64_t), uint64_t arg);
/* Waits until the CPU has run and is off by AFFINITY_INFO; false after a timeout. */
bool smp_wait_off(unsigned index);
void smp_wait_all_off(void);

/* ---- interrupt controller (gic.c) ---- */

#define GICD_CTLR       0x0
#define GICD_TYPER      0x4
#define GICD_IIDR       0x8
#define GICD_TYPER2     0xc
#define GICD_IGROUPR    0x80
#define GICD_ISENABLER  0x100
#define GICD_ICENABLER  0x180
#define GICD_ISPENDR    0x200
#define GICD_ICPENDR    0x280
#define GICD_ISACTIVER  0x300
#define GICD_ICACTIVER  0x380
#define GICD_IPRIORITYR 0x400
#define GICD_ITARGETSR  0x800
#define GICD_ICFGR      0xc00
#define GICD_IGRPMODR   0xd00
#define GICD_IROUTER    0x6000
#define GICD_PIDR2      0xffe8
#define GICR_CTLR       0x0
#define GICR_TYPER      0x8
#define GICR_WAKER      0x14
#define GICR_SGI        0x10000

#define INTID_VTIMER 27u
#define INTID_PTIMER 30u
#define INTID_UART   33u
#define INTID_NONE   1023u

extern uint64_t gic_redist[MAX_CPUS]; /* RD_base by CPU index, 0 if not found */
extern unsigned gic_frames;
void gic_init(void);     /* distributor, redistributor list; once, on CPU 0 */
void gic_cpu_init(void); /* this CPU's redistributor and CPU interface */
uint64_t gic_reg(unsigned intid, unsigned block); /* address of its 1-bit register's word */
void gic_set(unsigned intid, unsigned block);     /* writes its bit to a 1-bit block */
bool gic_get(unsigned intid, unsigned block);
void gic_priority(unsigned intid, uint8_t priority);
void gic_config(unsigned intid, bool edge);
void gic_route(unsigned spi, uint64_t mpidr);
void gic_enable(unsigned intid);
void gic_disable(unsigned intid);
void gic_sgi(unsigned sgi, uint64_t mpidr); /* group 1 SGI to one CPU */
void gic_sgi_self(unsigned sgi);
static inline uint32_t gic_iar1(void) {
    uint32_t id = (uint32_t)read_sysreg(icc_iar1_el1) & 0xffffff;
    dsb();
    return id;
}
static inline void gic_eoi1(uint32_t id) {
    write_sysreg(icc_eoir1_el1, id);
    isb();
}
static inline void gic_dir(uint32_t id) {
    write_sysreg(icc_dir_el1, id);
    isb();
}

/* ---- time (timer.c) ---- */

#define TIMER_ENABLE  1u
#define TIMER_IMASK   2u
#define TIMER_ISTATUS 4u

uint64_t counter(void);  /* CNTVCT, ordered */
uint64_t pcounter(void); /* CNTPCT, ordered */
uint64_t freq(void);
uint64_t us_to_ticks(uint64_t us);
uint64_t ticks_to_us(uint64_t ticks);
void spin_us(uint64_t us);
/* Polls `cond` until true or the time is over; gives whether it became true. */
#define wait_for(cond, us)                                                                         \
    ({                                                                                             \
        uint64_t end_ = counter() + us_to_ticks(us);                                               \
        bool done_;                                                                                \
        while (!(done_ = (cond)) && counter() < end_) {                                            \
        }                                                                                          \
        done_ || (cond);                                                                           \
    })

#endif
