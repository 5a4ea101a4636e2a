/* SPDX-License-Identifier: GPL-2.0-only */
#include "hyp/trace.h"

#include "hyp/arch.h"
#include "hyp/console.h"
#include "hyp/mem.h"
#include "hyp/print.h"
#include "hyp/stats.h"

#define LINE_BYTES  222u /* of records in a line, before base64 makes 4 of 3 */
#define RECORD_MAX  20u  /* bytes of one record: an event, and varints of 24, 32 and 64 bits */
#define BATCH       32u  /* records looked at for a line: about as many as fit */
#define RECORDS_MIN 4u

/* Counters and traces call things by the same numbers. */
#define SAME_EXIT(name, text)                                                                      \
    _Static_assert((int)TRACE_EXIT_##name == (int)EXIT_##name, "exit reasons");
TRACE_EXITS(SAME_EXIT)
_Static_assert((int)TRACE_EXIT_COUNT == (int)EXIT_REASONS, "exit reasons");
_Static_assert((int)TRACE_OFF == RUN_OFF && (int)TRACE_BLOCKED == RUN_BLOCKED &&
                   (int)TRACE_RUNNABLE == RUN_RUNNABLE && (int)TRACE_RUNNING == RUN_RUNNING,
               "run states");
_Static_assert((int)TRACE_VM_OFF == VM_OFF && (int)TRACE_VM_LOADING == VM_LOADING &&
                   (int)TRACE_VM_RUNNING == VM_RUNNING && (int)TRACE_VM_STOPPING == VM_STOPPING,
               "VM states");
_Static_assert(VM_MAX_VCPUS <= 256, "TRACE_WHO has 8 bits for the vCPU");

/* The counters of a vCPU when the trace began and when it ended. */
struct totals {
    uint64_t from, to; /* ticks: of these very moments */
    uint64_t begun[RUN_STATES], ended[RUN_STATES];
};

static struct trace_ring *rings;
static struct trace_reader *first; /* where the trace begins in each ring */
static struct totals *totals;      /* of all vCPUs of all VMs, one after another */
static uint64_t from, to;
static bool taken; /* there is one to dump */

/* The dump: what the next step prints. */
static struct {
    enum { DUMP_BEGIN, DUMP_VMS, DUMP_VCPUS, DUMP_DATA, DUMP_CPU_END, DUMP_END } phase;
    unsigned vm, vcpu, cpu;
    struct totals *totals;
    struct trace_reader reader;
    uint64_t records, lost;
} dump;

void trace_boot(uint64_t size) {
    uint64_t count = RECORDS_MIN, vcpus = 0;

    if (size == 0) {
        return;
    }
    while (2 * count * sizeof(struct trace_record) <= size) {
        count *= 2;
    }
    rings = mem_alloc(pcpu_count * sizeof(*rings));
    first = mem_alloc(pcpu_count * sizeof(*first));
    for (unsigned i = 0; i < pcpu_count; i++) {
        trace_ring_init(&rings[i], mem_alloc(count * sizeof(struct trace_record)), count);
    }
    for (unsigned i = 0; i < vm_count; i++) {
        vcpus += vms[i]->config->vcpus;
    }
    totals = mem_alloc(vcpus * sizeof(*totals));
    trace_use(rings);
    trace_start();
}

/*
 * The counters of all vCPUs, each at a moment of its own, which is noted: a vCPU's events before
 * (after) that moment are left out of the account. Events must be recorded meanwhile.
 */
static void take_totals(bool end) {
    struct totals *t = totals;

    for (unsigned m = 0; m < vm_count; m++) {
        for (unsigned i = 0; i < vms[m]->config->vcpus; i++, t++) {
            *(end ? &t->to : &t->from) =
                sched_times(&vms[m]->vcpus[i]->sched, end ? t->ended : t->begun);
        }
    }
}

bool trace_start(void) {
    if (rings == NULL || trace_active()) {
        return false;
    }
    taken = false;
    for (unsigned i = 0; i < pcpu_count; i++) {
        first[i] = (struct trace_reader){.next = trace_ring_end(&rings[i])};
    }
    from = port_clock();
    trace_switch(true);
    take_totals(false);
    arch_trace_changed();
    return true;
}

bool trace_stop(void) {
    if (!trace_active()) {
        return false;
    }
    take_totals(true);
    to = port_clock();
    trace_switch(false);
    arch_trace_changed();
    taken = true;
    dump.phase = DUMP_BEGIN;
    return true;
}

/* ---- The dump ---- */

/* Seven bits a byte, the lowest first; bit 7: more follow. */
static size_t put_varint(uint8_t *out, uint64_t value) {
    size_t n = 0;

    for (; value >= 0x80; value >>= 7) {
        out[n++] = (uint8_t)(value | 0x80);
    }
    out[n++] = (uint8_t)value;
    return n;
}

/* Event, who, argument, and how many ticks after the one before: signed, the sign in bit 0. */
static size_t put_record(uint8_t *out, const struct trace_record *r, uint64_t before) {
    uint64_t step = r->time - before;
    size_t n = 0;

    out[n++] = (uint8_t)(r->what >> 56);
    n += put_varint(out + n, r->what >> 32 & 0xffffffu);
    n += put_varint(out + n, (uint32_t)r->what);
    return n + put_varint(out + n, step << 1 ^ (0 - (step >> 63)));
}

static void put_base64(char *out, const uint8_t *in, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t bits = (uint32_t)in[i] << 16 | (i + 1 < n ? (uint32_t)in[i + 1] << 8 : 0) |
                        (i + 2 < n ? in[i + 2] : 0u);
        *out++ = digits[bits >> 18];
        *out++ = digits[bits >> 12 & 63];
        *out++ = i + 1 < n ? digits[bits >> 6 & 63] : '=';
        *out++ = i + 2 < n ? digits[bits & 63] : '=';
    }
    *out = '\0';
}

/* As many of this pCPU's records as a line takes. False: there are none left. */
static bool dump_data(void) {
    struct trace_record got[BATCH];
    uint8_t bytes[LINE_BYTES + RECORD_MAX];
    char text[(sizeof(bytes) + 2) / 3 * 4 + 1];
    size_t n = trace_get(&rings[dump.cpu], &dump.reader, UINT64_MAX, got, BATCH);
    size_t used = 0, taken_now = 0;

    if (n == 0) {
        return false;
    }
    while (taken_now < n && used <= LINE_BYTES - RECORD_MAX) {
        used += put_record(bytes + used, &got[taken_now],
                           taken_now == 0 ? got[0].time : got[taken_now - 1].time);
        taken_now++;
    }
    put_base64(text, bytes, used);
    dump.reader.next -= n - taken_now;
    console_printf("trace data cpu=%u first=%lu time=%lu %s", dump.cpu,
                   dump.reader.next - taken_now - first[dump.cpu].next, got[0].time, text);
    return true;
}

/* How the vCPU's time was spent between two moments, in ticks, by the scheduler's account. */
static void dump_vcpu(void) {
    const struct totals *t = dump.totals++;
    uint64_t spent[RUN_STATES];

    for (unsigned s = 0; s < RUN_STATES; s++) {
        spent[s] = t->ended[s] - t->begun[s];
    }
    console_printf(
        "trace vcpu vm=%u vcpu=%u from=%lu to=%lu off=%lu blocked=%lu runnable=%lu running=%lu",
        dump.vm, dump.vcpu, t->from, t->to, spent[RUN_OFF], spent[RUN_BLOCKED], spent[RUN_RUNNABLE],
        spent[RUN_RUNNING]);
    if (++dump.vcpu == vms[dump.vm]->config->vcpus) {
        dump.vcpu = 0;
        if (++dump.vm == vm_count) {
            dump.phase = DUMP_DATA;
            dump.cpu = 0;
            dump.reader = first[0];
        }
    }
}

static void dump_cpu_end(void) {
    uint64_t records = dump.reader.next - first[dump.cpu].next;

    console_printf("trace end cpu=%u records=%lu lost=%lu", dump.cpu, records, dump.reader.lost);
    dump.records += records;
    dump.lost += dump.reader.lost;
    if (++dump.cpu < pcpu_count) {
        dump.phase = DUMP_DATA;
        dump.reader = first[dump.cpu];
    } else {
        dump.phase = DUMP_END;
    }
}

static void dump_begin(void) {
    console_printf("trace begin version=%u hz=%lu cpus=%u vms=%u from=%lu to=%lu", TRACE_VERSION,
                   arch_clock_hz(), pcpu_count, vm_count, from, to);
    dump.phase = DUMP_VMS;
    dump.vm = dump.vcpu = 0;
    dump.totals = totals;
    dump.records = dump.lost = 0;
}

bool trace_dump_step(void) {
    if (!taken) {
        return false;
    }
    switch (dump.phase) {
    case DUMP_BEGIN:
        dump_begin();
        break;
    case DUMP_VMS:
        console_printf("trace vm vm=%u vcpus=%u name=%s", dump.vm, vms[dump.vm]->config->vcpus,
                       vms[dump.vm]->config->name);
        if (++dump.vm == vm_count) {
            dump.vm = 0;
            dump.phase = DUMP_VCPUS;
        }
        break;
    case DUMP_VCPUS:
        dump_vcpu();
        break;
    case DUMP_DATA:
        if (dump_data()) {
            break;
        }
        dump.phase = DUMP_CPU_END;
        /* fall through */
    case DUMP_CPU_END:
        dump_cpu_end();
        break;
    case DUMP_END:
        if (dump.cpu == pcpu_count) {
            dump.cpu++;
            console_printf("trace end records=%lu lost=%lu", dump.records, dump.lost);
            break;
        }
        dump.phase = DUMP_BEGIN;
        return false;
    }
    return true;
}

void trace_finish(void) {
    if (trace_stop()) {
        while (trace_dump_step()) {
        }
    }
}
