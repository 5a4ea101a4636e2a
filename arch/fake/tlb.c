/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A tagged TLB per pCPU, of the kind that the architecture allows and emulators do not have: what
 * it has learned it believes until somebody tells it to forget, whoever runs meanwhile. Two sorts
 * of entries (DDI 0487, D8.13): combined ones, (VMID, ASID, virtual page) to machine page, and
 * those of stage 2 alone, (VMID, guest page) to machine page. It never forgets by itself, which is
 * the worst case; an access whose answer is not that of the tables is counted as stale and is a
 * fault.
 */
#include <stdlib.h>
#include <string.h>

#include "arch/fake/private.h"
#include "hyp/arch.h"

#define ENTRIES 128u

struct entry {
    bool valid;
    uint32_t vmid, asid, page;
    uint64_t machine_page;
};

struct fake_tlb {
    struct entry combined[ENTRIES];
    struct entry stage2[ENTRIES]; /* page is the guest page, asid 0 */
};

/* What an invalidate says: these and all others of the VMID where it says `any`. */
struct pattern {
    uint32_t vmid, asid, page;
    bool any_asid, any_page, stage2_too;
};

struct fake_tlb_counts fake_tlb_counts;

struct fake_tlb *tlb_new(void) {
    return boot_alloc(sizeof(struct fake_tlb));
}

/* ---- The tables ---- */

void tlb_vm_init(struct vm *vm, phys_t ram) {
    for (unsigned i = 0; i < FAKE_PAGES; i++) {
        vm->arch.stage2[i] = ram.v / PAGE_SIZE + i;
    }
    tlb_vm_loaded(vm);
}

void tlb_vm_loaded(struct vm *vm) {
    for (unsigned s = 0; s < FAKE_SPACES; s++) {
        vm->arch.space[s].asid = 1;
        for (unsigned page = 0; page < FAKE_PAGES; page++) {
            vm->arch.space[s].ipage[page] = (page + s + vm->arch.loads) % FAKE_PAGES;
        }
    }
}

static uint64_t stage2_walk(const struct vm *vm, uint32_t ipage) {
    return ipage < FAKE_PAGES ? vm->arch.stage2[ipage] : UINT64_MAX;
}

/* ---- Looking up and learning ---- */

static struct entry *find(struct entry *entries, uint32_t vmid, uint32_t asid, uint32_t page) {
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct entry *e = &entries[i];
        if (e->valid && e->vmid == vmid && e->asid == asid && e->page == page) {
            return e;
        }
    }
    return NULL;
}

static void learn(struct entry *entries, struct entry what) {
    for (unsigned i = 0; i < ENTRIES; i++) {
        if (!entries[i].valid) {
            entries[i] = what;
            return;
        }
    }
    entries[fake_roll(ENTRIES)] = what;
}

/* Through the TLB's stage 2; `ipage` comes from the guest's tables. */
static uint64_t translate_guest_page(struct fake_tlb *tlb, const struct vm *vm, uint32_t vmid,
                                     uint32_t ipage) {
    const struct entry *e = find(tlb->stage2, vmid, 0, ipage);
    uint64_t machine_page;

    if (e != NULL) {
        return e->machine_page;
    }
    machine_page = stage2_walk(vm, ipage);
    if (machine_page != UINT64_MAX) {
        learn(tlb->stage2, (struct entry){true, vmid, 0, ipage, machine_page});
    }
    return machine_page;
}

uint64_t guest_access(struct vcpu *v, unsigned page) {
    struct pcpu *p = this_pcpu();
    struct fake_tlb *tlb = p->arch.tlb;
    const struct vm *vm = v->vm;
    const struct fake_space *space = &vm->arch.space[p->arch.reg.space];
    const struct entry *e = find(tlb->combined, p->arch.vmid, space->asid, page);
    uint64_t truth = stage2_walk(vm, space->ipage[page]);
    uint64_t answer;

    if (e != NULL) {
        fake_tlb_counts.hits++;
        answer = e->machine_page;
    } else {
        fake_tlb_counts.misses++;
        answer = translate_guest_page(tlb, vm, p->arch.vmid, space->ipage[page]);
        if (answer != UINT64_MAX) {
            learn(tlb->combined, (struct entry){true, p->arch.vmid, space->asid, page, answer});
        }
    }
    if (answer != truth) {
        fake_tlb_counts.stale++;
        fake_fault("CPU %u: vm %u vcpu %u: stale TLB entry for page %u of space %u: %lx, not %lx",
                   p->index, vm->index, v->index, page, p->arch.reg.space, answer, truth);
    }
    p->arch.reg.count++;
    v->arch.true_reg.count++;
    return answer;
}

/* ---- Forgetting ---- */

static void forget_in(struct entry *entries, const struct pattern *what) {
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct entry *e = &entries[i];
        if (e->vmid == what->vmid && (what->any_asid || e->asid == what->asid) &&
            (what->any_page || e->page == what->page)) {
            e->valid = false;
        }
    }
}

static void forget(struct pcpu *p, const struct pattern *what) {
    forget_in(p->arch.tlb->combined, what);
    if (what->stage2_too) {
        forget_in(p->arch.tlb->stage2, what);
    }
    fake_tlb_counts.flushes++;
}

static void forget_everywhere(const struct pattern *what) {
    for (unsigned i = 0; i < pcpu_count; i++) {
        forget(pcpus[i], what);
    }
}

unsigned arch_vmid_bits(void) {
    return 16;
}

void arch_vm_translate(const struct vm *vm, uint32_t number) {
    struct arch_pcpu *p = &this_pcpu()->arch;

    fake_step();
    p->vmid = fake_broken.same_vmid ? 1 : number;
    p->translates = vm;
}

void arch_tlb_flush_cpu(void) {
    struct fake_tlb *tlb = this_pcpu()->arch.tlb;

    fake_step();
    memset(tlb, 0, sizeof(*tlb));
    fake_tlb_counts.all_flushes++;
}

void arch_tlb_flush_stage1(void) {
    struct pattern stage1 = {this_pcpu()->arch.vmid, 0, 0, true, true, false};

    fake_step();
    forget(this_pcpu(), &stage1);
}

/* ---- What guests do ---- */

static void guest_forget(struct vcpu *v, const struct pattern *what, enum guest_tlbi how) {
    if (how == GUEST_TLBI_SHARED || !fake_broken.no_broadcast) {
        forget_everywhere(what);
    } else {
        forget(this_pcpu(), what);
    }
    this_pcpu()->arch.reg.count++;
    v->arch.true_reg.count++;
}

void guest_use_space(struct vcpu *v, unsigned space) {
    this_pcpu()->arch.reg.space = space;
    v->arch.true_reg.space = space;
}

void guest_set_asid(struct vcpu *v, unsigned space, uint32_t asid) {
    v->vm->arch.space[space].asid = asid;
}

void guest_map(struct vcpu *v, unsigned space, unsigned page, uint32_t ipage, enum guest_tlbi how) {
    struct fake_space *s = &v->vm->arch.space[space];
    struct pattern one = {this_pcpu()->arch.vmid, s->asid, page, false, false, false};

    s->ipage[page] = ipage;
    guest_forget(v, &one, how);
}

void guest_invalidate_all(struct vcpu *v, enum guest_tlbi how) {
    struct pattern all = {this_pcpu()->arch.vmid, 0, 0, true, true, false};

    guest_forget(v, &all, how);
}
