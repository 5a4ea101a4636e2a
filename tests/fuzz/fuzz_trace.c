/* SPDX-License-Identifier: GPL-2.0-only */
/* link: tools/paravane_trace_read.c tools/paravane_trace_json.c tools/paravane_util.c */
/* Traces as text: whatever it is, times and indices stay where they belong, and JSON is written. */
#include "tools/paravane_trace.h"

#include "tests/fuzz/fuzz.h"

static void check(const struct trace_file *t) {
    uint64_t last = t->from;

    for (size_t i = 0; i < t->n_entries; i++) {
        const struct trace_entry *e = &t->entries[i];
        must(e->time >= last && e->time <= t->to);
        must(e->cpu < t->cpus && e->vcpu < t->n_vcpus && e->event < TRACE_EVENT_COUNT);
        last = e->time;
    }
    for (size_t i = 0; i < t->n_vcpus; i++) {
        const struct trace_vcpu *v = &t->vcpus[i];
        uint64_t sum = 0;
        for (unsigned s = 0; s < TRACE_STATES; s++) {
            sum += v->times[s];
        }
        must(sum == v->to - v->from);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *text = fuzz_exact(data, size);
    struct trace_file t;
    char *wrong = trace_file_read(&t, (const char *)text, size);

    if (wrong == NULL) {
        FILE *out = fopen("/dev/null", "w");
        check(&t);
        must(out != NULL && trace_write_json(&t, out));
        fclose(out);
    }
    free(wrong);
    trace_file_free(&t);
    free(text);
    return 0;
}
