/* SPDX-License-Identifier: GPL-2.0-only */
/* A sorted list of free ranges of machine memory, and a small allocator for ourselves on top of it.
 */
#include "hyp/mem.h"

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/string.h"

#define MAX_RANGES 64u
#define CHUNK      0x40000u /* what we take at a time for ourselves: keeps our own use small */

struct range {
    uint64_t base, end;
};

static struct range ranges[MAX_RANGES];
static unsigned range_count;
static uint64_t chunk_next, chunk_end, own;

static void insert_range(unsigned at, uint64_t base, uint64_t end) {
    if (range_count == MAX_RANGES) {
        panic("machine memory has more than %u separate pieces", MAX_RANGES);
    }
    for (unsigned i = range_count++; i > at; i--) {
        ranges[i] = ranges[i - 1];
    }
    ranges[at] = (struct range){base, end};
}

static void remove_range(unsigned at) {
    range_count--;
    for (unsigned i = at; i < range_count; i++) {
        ranges[i] = ranges[i + 1];
    }
}

void mem_add(phys_t base, uint64_t size) {
    uint64_t first = (base.v + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    uint64_t end = (base.v + size) & ~(uint64_t)(PAGE_SIZE - 1);
    unsigned at = 0;

    if (end <= first) {
        return;
    }
    while (at < range_count && ranges[at].base < first) {
        at++;
    }
    insert_range(at, first, end);
}

void mem_reserve(phys_t base, uint64_t size) {
    uint64_t first = base.v & ~(uint64_t)(PAGE_SIZE - 1);
    uint64_t end = (base.v + size + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);

    for (unsigned i = 0; i < range_count; i++) {
        struct range r = ranges[i];
        if (end <= r.base || first >= r.end) {
            continue;
        }
        remove_range(i);
        if (end < r.end) {
            insert_range(i, end, r.end);
        }
        if (r.base < first) {
            insert_range(i, r.base, first);
            i++;
        }
        i--;
    }
}

bool mem_take(uint64_t size, uint64_t align, phys_t *base) {
    size = (size + PAGE_SIZE - 1) & ~(uint64_t)(PAGE_SIZE - 1);
    for (unsigned i = 0; i < range_count; i++) {
        uint64_t start = (ranges[i].base + align - 1) & ~(align - 1);
        if (start >= ranges[i].base && start < ranges[i].end && ranges[i].end - start >= size) {
            base->v = start;
            mem_reserve(*base, size);
            return true;
        }
    }
    return false;
}

uint64_t mem_take_piece(uint64_t size, uint64_t align, phys_t *base) {
    uint64_t best = 0;

    if (mem_take(size, align, base)) {
        return size;
    }
    for (unsigned i = 0; i < range_count; i++) {
        uint64_t start = (ranges[i].base + align - 1) & ~(align - 1);
        uint64_t end = ranges[i].end & ~(align - 1);
        if (start >= ranges[i].base && start < end && end - start > best) {
            best = end - start;
            base->v = start;
        }
    }
    if (best != 0) {
        mem_reserve(*base, best);
    }
    return best;
}

uint64_t mem_free(void) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < range_count; i++) {
        sum += ranges[i].end - ranges[i].base;
    }
    return sum;
}

/* More memory of our own, mapped by pages because guard pages are cut out of it. */
static uint64_t take_own(uint64_t size) {
    phys_t base;
    if (!mem_take(size, PAGE_SIZE, &base)) {
        panic("machine has no %llu KiB left for the hypervisor itself",
              (unsigned long long)(size >> 10));
    }
    own += size;
    arch_map_own(base, size);
    memset((void *)base.v, 0, size);
    return base.v;
}

void *mem_alloc(uint64_t size) {
    uint64_t align = size >= PAGE_SIZE ? PAGE_SIZE : 64;
    size = (size + align - 1) & ~(align - 1);
    if (size > CHUNK / 2) {
        return (void *)take_own(size);
    }
    uint64_t start = (chunk_next + align - 1) & ~(align - 1);
    if (start + size > chunk_end) {
        uint64_t chunk = take_own(CHUNK);
        /* Mapping it may have used mem_alloc itself: the newest chunk is as good as any. */
        chunk_next = chunk;
        chunk_end = chunk + CHUNK;
        start = chunk;
    }
    chunk_next = start + size;
    return (void *)start;
}

uint64_t mem_own(void) {
    return own;
}
