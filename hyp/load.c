/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a VM's kernel, initrd and boot data go, and how they get there.
 *
 * The layout is QEMU's for virt (hw/arm/boot.c), so that bare-metal programs that were made for it
 * find as much room above themselves as there, with one exception: text_offset 0 is honoured.
 *
 *     RAM base, up to 2 MiB   kernel at + text_offset (raw binary: + 512 KiB), image_size bytes
 *     RAM/2, at most 128 MiB  initrd, or the first page after the kernel if that comes later
 *     the next 2 MiB border   boot data (device tree)
 */
#include "hyp/load.h"

#include "core/cpio.h"
#include "hyp/arch.h"
#include "hyp/boot_data.h"
#include "hyp/console.h"
#include "hyp/image.h"
#include "hyp/mem.h"
#include "hyp/print.h"
#include "hyp/string.h"
#include "hyp/vm.h"

/* A step's worth, about 100 us at 2 ns per instruction: see the costs in arch/.../string.S. */
#define SCRUB_STEP   (256u << 10)
#define COPY_STEP    (128u << 10)
#define INFLATE_STEP (8u << 10) /* 6 to 10 instructions a byte */

#define INITRD_PREFERRED (128ull << 20)
#define GIB              (1ull << 30)

static char sentence[512]; /* what load_prepare and placing say; boot pCPU */

static uint64_t align_up(uint64_t value, uint64_t align) {
    return (value + align - 1) & ~(align - 1);
}

/* ---- Before the VM ever starts ---- */

/* A file that the description names. An empty name is no file. */
static const char *find_file(const struct vm *vm, const void *archive, uint64_t size,
                             const char *key, const char *name, const uint8_t **data,
                             uint64_t *data_size) {
    struct cpio_entry entry;
    struct cpio_error error;

    *data = NULL;
    *data_size = 0;
    if (name[0] == '\0') {
        return NULL;
    }
    switch (cpio_find(archive, size, name, &entry, &error)) {
    case CPIO_FOUND:
        *data = entry.data;
        *data_size = entry.size;
        return NULL;
    case CPIO_NO_ENTRY:
        print_to(sentence, sizeof(sentence),
                 "vm %s: %s: found no file '%s' in the boot archive, expected one",
                 vm->config->name, key, name);
        return sentence;
    default:
        print_to(sentence, sizeof(sentence),
                 "vm %s: %s: looking for '%s': the boot archive is damaged at byte %lu: %s",
                 vm->config->name, key, name, (uint64_t)error.offset, error.text);
        return sentence;
    }
}

static const char *kernel_error(const struct vm *vm, const char *why) {
    print_to(sentence, sizeof(sentence), "vm %s: kernel: '%s' %s", vm->config->name,
             vm->config->kernel, why);
    return sentence;
}

/* Unpacks just the header of a gzip kernel; *size is how much of it there is. */
static const char *peek_gzip(struct load_job *job, uint8_t head[IMAGE_HEADER_SIZE], size_t *size) {
    const char *why = NULL;
    enum gunzip_result result = GUNZIP_MORE;

    if (job->kernel_size > UINT32_MAX) {
        return "is larger than 4 GiB, expected less";
    }
    if (job->inflate == NULL) {
        job->inflate = mem_alloc(gunzip_state_size());
    }
    gunzip_begin(job->inflate, job->kernel, job->kernel_size);
    for (*size = 0; *size < IMAGE_HEADER_SIZE && result == GUNZIP_MORE;) {
        size_t made = 0;
        result = gunzip_step(job->inflate, head + *size, IMAGE_HEADER_SIZE - *size, &made, &why);
        *size += made;
    }
    return result == GUNZIP_BAD ? why : NULL;
}

/* The kernel's own wishes and the bytes that it has when unpacked. */
static const char *read_kernel(struct load_job *job, struct image *image, uint64_t *bytes) {
    uint8_t head[IMAGE_HEADER_SIZE];
    size_t size = IMAGE_HEADER_SIZE;

    if (!gunzip_is_gzip(job->kernel, job->kernel_size)) {
        *bytes = job->kernel_size;
        size = job->kernel_size < size ? (size_t)job->kernel_size : size;
        return image_parse(job->kernel, size, image);
    }
    *bytes = gunzip_claimed_size(job->kernel, job->kernel_size);
    const char *why = peek_gzip(job, head, &size);
    return why != NULL ? why : image_parse(head, size, image);
}

static const char *no_room(const struct vm *vm, const char *what, uint64_t size, uint64_t at) {
    const struct load_job *job = &vm->load;

    print_to(sentence, sizeof(sentence),
             "vm %s: memory: %s (%lu bytes) does not fit at 0x%lx, expected it to end below 0x%lx, "
             "the end of memory = %lu KiB; the kernel takes 0x%lx to 0x%lx, initrd %lu bytes",
             vm->config->name, what, size, at, vm->ram_ipa.v + vm->ram_size, vm->ram_size >> 10,
             job->kernel_ipa, job->kernel_end, job->initrd_size);
    return sentence;
}

/* The kernel at the lowest 2 MiB border + text_offset. */
static const char *place_kernel(struct vm *vm, const struct image *image, uint64_t bytes) {
    struct load_job *job = &vm->load;
    uint64_t end = vm->ram_ipa.v + vm->ram_size;
    uint64_t base = align_up(vm->ram_ipa.v, BLOCK_SIZE);
    uint64_t size = image->size > bytes ? image->size : bytes;

    job->kernel_ipa = base;
    job->kernel_end = base;
    if (base > end || image->text_offset > end - base || size > end - base - image->text_offset) {
        return no_room(vm, "the kernel with its BSS", size, base + image->text_offset);
    }
    job->kernel_ipa = base + image->text_offset;
    job->kernel_end = job->kernel_ipa + size;
    return NULL;
}

/*
 * Initrd from `from` on and boot data behind it, aligned to `align`: whether both fit. booting.rst
 * wants the initrd in one window with the kernel that is 32 GiB long and begins at a multiple of 1
 * GiB.
 */
static bool place_rest(struct vm *vm, uint64_t from, uint64_t align, uint64_t room) {
    struct load_job *job = &vm->load;
    uint64_t end = vm->ram_ipa.v + vm->ram_size;
    uint64_t window_end = (job->kernel_ipa & ~(GIB - 1)) + 32 * GIB;

    job->initrd_ipa = align_up(from, PAGE_SIZE);
    if (job->initrd_ipa > end || job->initrd_size > end - job->initrd_ipa ||
        job->initrd_ipa + job->initrd_size > window_end) {
        return false;
    }
    job->dtb_ipa = align_up(job->initrd_ipa + job->initrd_size, align);
    return job->dtb_ipa <= end && room <= end - job->dtb_ipa;
}

static const char *place(struct vm *vm, const struct image *image, uint64_t bytes) {
    struct load_job *job = &vm->load;
    uint64_t room = boot_data_room(job);
    uint64_t half = vm->ram_size / 2;
    uint64_t from = vm->ram_ipa.v + (half < INITRD_PREFERRED ? half : INITRD_PREFERRED);
    const char *error = place_kernel(vm, image, bytes);

    if (error != NULL) {
        return error;
    }
    if (room > BLOCK_SIZE) { /* booting.rst: a device tree has less than 2 MiB */
        print_to(sentence, sizeof(sentence), "vm %s: dtb: '%s' has %lu bytes, expected at most %lu",
                 vm->config->name, vm->config->dtb, job->dtb_size,
                 job->dtb_size - (room - BLOCK_SIZE));
        return sentence;
    }
    /* A small machine: close together, and where no 2 MiB are left, on any page (Linux >= 4.2). */
    if ((from >= job->kernel_end && place_rest(vm, from, BLOCK_SIZE, room)) ||
        place_rest(vm, job->kernel_end, BLOCK_SIZE, room) ||
        place_rest(vm, job->kernel_end, PAGE_SIZE, room)) {
        return NULL;
    }
    return no_room(vm, job->initrd_size != 0 ? "initrd with the device tree" : "the device tree",
                   job->initrd_size + room, align_up(job->kernel_end, PAGE_SIZE));
}

const char *load_prepare(struct vm *vm, const void *archive, uint64_t archive_size) {
    const struct vm_config *config = vm->config;
    struct load_job *job = &vm->load;
    struct image image;
    uint64_t bytes;
    const char *error;

    if ((error = find_file(vm, archive, archive_size, "kernel", config->kernel, &job->kernel,
                           &job->kernel_size)) != NULL ||
        (error = find_file(vm, archive, archive_size, "initrd", config->initrd, &job->initrd,
                           &job->initrd_size)) != NULL ||
        (error = find_file(vm, archive, archive_size, "dtb", config->dtb, &job->dtb,
                           &job->dtb_size)) != NULL) {
        return error;
    }
    if ((error = read_kernel(job, &image, &bytes)) != NULL) {
        return kernel_error(vm, error);
    }
    return place(vm, &image, bytes);
}

/* ---- Each time it starts ---- */

void load_begin(struct vm *vm) {
    struct load_job *job = &vm->load;

    job->phase = LOAD_SCRUB;
    job->done = 0;
    job->error = NULL;
}

/* Guest RAM that the placement above, or the RAM's size, says is there. */
static uint8_t *ram_at(const struct vm *vm, uint64_t ipa, uint64_t size) {
    uint8_t *p = vm_ram(vm, (ipa_t){ipa}, size);

    if (p == NULL) {
        panic("vm %s: loading outside its memory: 0x%lx, %lu bytes", vm->config->name, ipa, size);
    }
    return p;
}

static void next_phase(struct load_job *job, enum load_phase phase) {
    job->phase = phase;
    job->done = 0;
}

/*
 * If `ipa` lies in [start, start + size) it goes to its end; otherwise *end is cut so as not to
 * reach into it.
 */
static uint64_t skip_range(uint64_t ipa, uint64_t *end, uint64_t start, uint64_t size) {
    if (ipa >= start && ipa < start + size) {
        return start + size;
    }
    if (ipa<start && * end> start && size != 0) {
        *end = start;
    }
    return ipa;
}

/*
 * One piece of zeroes. What a copy is going to cover needs none, unless the VM is gone and nothing
 * will be copied. A gzip kernel's real size is not known before its end, so that it is no such
 * copy.
 */
static void step_scrub(struct vm *vm) {
    struct load_job *job = &vm->load;
    uint64_t ram_end = vm->ram_ipa.v + vm->ram_size;
    uint64_t ipa = vm->ram_ipa.v + job->done;
    uint64_t end = ram_end - ipa > SCRUB_STEP ? ipa + SCRUB_STEP : ram_end;

    if (vm->end != VM_END_OFF && vm->end != VM_END_CRASH) {
        ipa = skip_range(ipa, &end, job->kernel_ipa, job->inflate == NULL ? job->kernel_size : 0);
        ipa = skip_range(ipa, &end, job->initrd_ipa, job->initrd_size);
    }
    if (ipa < end) {
        uint8_t *p = ram_at(vm, ipa, end - ipa);
        memset(p, 0, end - ipa);
        arch_sync_guest_memory(p, end - ipa);
        ipa = end;
    }
    job->done = ipa - vm->ram_ipa.v;
    if (ipa >= ram_end) {
        next_phase(job, LOAD_KERNEL);
        if (job->inflate != NULL) {
            gunzip_begin(job->inflate, job->kernel, job->kernel_size);
        }
    }
}

/* One piece of a copy; true when it was the last. */
static bool step_copy(struct vm *vm, uint64_t to, const uint8_t *from, uint64_t size) {
    uint64_t done = vm->load.done;
    uint64_t piece = size - done > COPY_STEP ? COPY_STEP : size - done;

    if (piece != 0) {
        uint8_t *p = ram_at(vm, to + done, piece);
        memcpy(p, from + done, piece);
        arch_sync_guest_memory(p, piece);
        vm->load.done += piece;
    }
    return vm->load.done == size;
}

/* One piece of a gzip kernel; true when it was the last, or with job->error set. */
static bool step_gunzip(struct vm *vm) {
    struct load_job *job = &vm->load;
    uint64_t room = job->kernel_end - job->kernel_ipa - job->done;
    uint64_t piece = room > INFLATE_STEP ? INFLATE_STEP : room;
    uint8_t beyond = 0;
    uint8_t *p = piece != 0 ? ram_at(vm, job->kernel_ipa + job->done, piece) : &beyond;
    size_t made = 0;
    const char *why = NULL;
    /* With all room used its checksum is still to come, but not one byte more of data. */
    enum gunzip_result result = gunzip_step(job->inflate, p, piece != 0 ? piece : 1, &made, &why);

    if (piece == 0 && made != 0) {
        result = GUNZIP_BAD;
        why = "unpacks to more bytes than its header or trailer says";
    } else if (made != 0) {
        arch_sync_guest_memory(p, made);
        job->done += made;
    }
    if (result == GUNZIP_BAD) {
        job->error = why;
    }
    return result != GUNZIP_MORE;
}

bool load_step(struct vm *vm) {
    struct load_job *job = &vm->load;

    switch (job->phase) {
    case LOAD_SCRUB:
        step_scrub(vm);
        break;
    case LOAD_KERNEL:
        if (job->inflate != NULL ? step_gunzip(vm)
                                 : step_copy(vm, job->kernel_ipa, job->kernel, job->kernel_size)) {
            next_phase(job, LOAD_INITRD);
        }
        break;
    case LOAD_INITRD:
        if (step_copy(vm, job->initrd_ipa, job->initrd, job->initrd_size)) {
            next_phase(job, LOAD_BOOT_DATA);
        }
        break;
    case LOAD_BOOT_DATA:
        job->error = arch_vm_boot_data(vm);
        next_phase(job, LOAD_DONE);
        break;
    default:
        break;
    }
    if (job->error != NULL) {
        job->phase = LOAD_IDLE;
        return true;
    }
    return job->phase == LOAD_DONE || job->phase == LOAD_IDLE;
}
