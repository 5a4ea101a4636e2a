/* SPDX-License-Identifier: GPL-2.0-only */
/* Exception handling: hooks, expected exceptions, and a report for the rest. */
#include "guest.h"

#define A(what) _Static_assert(what, #what)
A(offsetof(struct cpu, stack_top) == CPU_STACK_TOP);
A(offsetof(struct cpu, fn) == CPU_FN);
A(offsetof(struct cpu, entry) == CPU_ENTRY);
A(offsetof(struct cpu, entry_tag) == CPU_ENTRY_TAG);
A(offsetof(struct exc_frame, sp) == FRAME_SP);
A(offsetof(struct exc_frame, elr) == FRAME_ELR);
A(offsetof(struct exc_frame, esr) == FRAME_ESR);
A(sizeof(struct exc_frame) == FRAME_SIZE);
A(sizeof(struct entry_state) <= 1024);

struct cpu cpus[MAX_CPUS];

void exc_dispatch(struct exc_frame *f, unsigned vector);
void el0_resume(void);

static bool recorded(struct cpu *c, struct exc_frame *f, unsigned vector) {
    if (!c->expect)
        return false;
    c->info.count++;
    c->info.vector = vector;
    c->info.esr = f->esr;
    c->info.far = f->far;
    c->info.elr = f->elr;
    c->info.spsr = f->spsr;
    if ((vector & 3) == 3)
        return true;
    if (ESR_EC(f->esr) == EC_IABT)
        f->elr = f->x[30];
    else if (ESR_EC(f->esr) != EC_STEP)
        f->elr += 4;
    return true;
}

void exc_dispatch(struct exc_frame *f, unsigned vector) {
    struct cpu *c = this_cpu();
    unsigned kind = vector & 3;

    if (kind == 1 && c->irq_hook) {
        c->irq_hook(f);
        return;
    }
    if (kind == 2 && c->fiq_hook) {
        c->fiq_hook(f);
        return;
    }
    if (kind == 0 && c->sync_hook && c->sync_hook(f, vector))
        return;
    if (kind == 0 && vector == 8 && ESR_EC(f->esr) == EC_SVC64 && ESR_ISS(f->esr) == 0x10) {
        f->elr = (uintptr_t)el0_resume;
        f->spsr = 0x3c5;
        return;
    }
    if ((kind == 0 || kind == 3) && recorded(c, f, vector))
        return;
    static const char *const kinds[] = {"sync", "irq", "fiq", "serror"};

    die("%s vector %u cpu %u esr 0x%lx elr 0x%lx (image+0x%lx) far 0x%lx spsr 0x%lx lr 0x%lx",
        kinds[kind], vector, c->index, f->esr, f->elr, f->elr - (uintptr_t)_head, f->far, f->spsr,
        f->x[30]);
}

void exc_expect(void) {
    struct cpu *c = this_cpu();

    c->info = (struct exc_info){0};
    __asm__ volatile("" : : : "memory");
    c->expect = true;
    __asm__ volatile("" : : : "memory");
}

struct exc_info exc_end(void) {
    struct cpu *c = this_cpu();

    dsb();
    isb();
    c->expect = false;
    return c->info;
}

struct exc_info code_exec(const uint32_t *insns, unsigned n, uint64_t regs[31]) {
    static uint32_t code[MAX_CPUS][16] __attribute__((aligned(64)));
    uint32_t *p = code[this_cpu()->index];

    for (unsigned i = 0; i < n && i < 15; i++)
        p[i] = insns[i];
    p[n < 15 ? n : 15] = 0xd65f03c0u; /* ret */
    code_sync(p, 64);
    exc_expect();
    insn_trampoline(regs, p);
    struct exc_info e = exc_end();

    e.elr -= (uintptr_t)p;
    return e;
}

struct exc_info insn_exec(uint32_t insn, uint64_t regs[31]) {
    const uint32_t code[] = {insn};

    return code_exec(code, ARRAY_SIZE(code), regs);
}

bool sysreg_get(uint32_t reg, uint64_t *value) {
    uint64_t regs[31] = {0};
    struct exc_info e = insn_exec(INSN_MRS(reg, 0), regs);

    *value = regs[0];
    return e.count == 0;
}

bool sysreg_set(uint32_t reg, uint64_t value) {
    uint64_t regs[31] = {value};
    struct exc_info e = insn_exec(INSN_MSR(reg, 0), regs);

    return e.count == 0;
}

uint64_t el0_run(uint64_t (*fn)(uint64_t), uint64_t arg) {
    static uint8_t stack[PAGE] __attribute__((aligned(4096)));
    static bool mapped;

    if (!mapped) {
        mmu_map_page((uintptr_t)stack, (uintptr_t)stack, PTE_NORMAL | PTE_USER | PTE_PXN);
        mapped = true;
    }
    return el0_call(fn, arg, (uintptr_t)stack + PAGE);
}
