/* SPDX-License-Identifier: GPL-2.0-only */
/* link: build/fuzz/host_tree.c */
/* libs: -lfdt */
/* The machine's device tree, as far as its header is right: it is read, or something is missing. */
#include "tests/fuzz/fuzz.h"

#include <libfdt.h>
#include <setjmp.h>

#include "arch/arm64/gic.h"
#include "arch/arm64/host.h"
#include "arch/arm64/uart.h"
#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "tests/fuzz/no_sysreg.h"

static jmp_buf refused;
static struct pcpu boot;
static void *blocks[PCPU_MAX];
static unsigned block_count;
struct pcpu *pcpus[PCPU_MAX];
unsigned pcpu_count;

uint64_t fuzz_read_sysreg(const char *name) {
    (void)name;
    return 0;
}

void mem_add(phys_t base, uint64_t size) {
    (void)base;
    (void)size;
}

void mem_reserve(phys_t base, uint64_t size) {
    (void)base;
    (void)size;
}

uint64_t gic_kick_value(uint64_t mpidr) {
    return mpidr;
}

void *mem_alloc(uint64_t size) {
    must(block_count < PCPU_MAX);
    return blocks[block_count++] = calloc(1, size);
}

void uart_init(uint64_t base) {
    (void)base;
}

void arch_halt(void) {
    longjmp(refused, 1);
}

void panic(const char *format, ...) {
    (void)format;
    longjmp(refused, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *tree = fuzz_exact(data, size);

    pcpus[0] = &boot;
    /* arch_boot_init() looks at the header too; of the size, the loader's word is all there is */
    if (size >= sizeof(struct fdt_header) && fdt_check_header(tree) == 0 &&
        fdt_totalsize(tree) <= size && setjmp(refused) == 0) {
        host_read_tree(tree);
        host_read_cpus();
        must(host.gicr_regions <= HOST_GICR_REGIONS && pcpu_count <= PCPU_MAX);
    }
    while (block_count != 0) {
        free(blocks[--block_count]);
    }
    free(tree);
    return 0;
}
