#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Faults put into core/vmid.[ch] on purpose, each of which the named case of the named test must find.
# A change that changes nothing fails too: then the code has moved on. See mutations.sh. Prints TAP.
cd "$(dirname "$0")/../.." || exit 2
# shellcheck source=tests/unit/mutate.bash
. tests/unit/mutate.bash
unmutated test_vmid test_vmid_interleave

# ---- The fast path ----
mutation "entry without compare-exchange" test_vmid_interleave a_roll_over_against_another_cpu vmid.h \
	's/__atomic_compare_exchange_n(&cpu->active, &active, (uintptr_t)vm, false, __ATOMIC_RELAXED,/(__atomic_store_n(\&cpu->active, (uintptr_t)vm, 0), true)))) {/' \
	'/^ *__ATOMIC_RELAXED)))) {/d'
mutation "entry does not ask for the mark" test_vmid random_histories vmid.h \
	's/((active & VMID_ROLLED) == 0 &&/(true \&\&/'
mutation "entry does not ask for the generation" test_vmid random_histories vmid.h \
	's/vmid_generation(id) == cpu->generation, 1/id != 0, 1/'
mutation "leaving takes the mark away" test_vmid random_histories vmid.h \
	's/__atomic_fetch_and(&cpu->active, VMID_ROLLED, /__atomic_fetch_and(\&cpu->active, 0, /'
mutation "leaving leaves the VM there" test_vmid the_idle_keep_nothing vmid.h \
	'/^ *__atomic_fetch_and(&cpu->active, /d'

# ---- The roll-over ----
mutation "no mark at a roll-over" test_vmid random_histories vmid.c \
	's/__atomic_fetch_or(&s->cpu\[i\]->active, VMID_ROLLED,/__atomic_fetch_or(\&s->cpu[i]->active, 0,/'
mutation "looked at, and marked only then" test_vmid_interleave a_roll_over_against_another_cpu vmid.c \
	's/uintptr_t active = __atomic_fetch_or(&s->cpu\[i\]->active, VMID_ROLLED, __ATOMIC_RELAXED);/uintptr_t active = __atomic_load_n(\&s->cpu[i]->active, 0); __atomic_fetch_or(\&s->cpu[i]->active, VMID_ROLLED, 0);/'
mutation "a running VM loses its number" test_vmid the_running_keep_their_number vmid.c \
	'/^static void roll_over/,/^}/s/renew(s, vm);//'
mutation "a kept number is given out" test_vmid random_histories vmid.c \
	'/^static void renew/,/^}/{/add_to_map/d}'
mutation "only one CPU is looked at" test_vmid the_running_keep_their_number vmid.c \
	's/i < s->cpu_count; i++) {$/i < 1; i++) {/'
mutation "nothing is freed" test_vmid random_histories vmid.c \
	's/s->taken\[i\] = s->kept\[i\];//'
mutation "number 0 is given out" test_vmid random_histories vmid.c \
	'/add_to_map(s->kept, 0);/d' 's/if (number == 0) { .*/if (false) {/'
mutation "no lock" test_vmid_interleave ends_and_pins vmid.c \
	'/^uint32_t vmid_enter_slow/,/^}/{/spin_\(un\)\?lock(/d}'

# ---- The flush ----
mutation "no flush" test_vmid random_histories vmid.c \
	's/answer = VMID_FLUSH;//'
mutation "a flush each time" test_vmid flushes_are_counted vmid.c \
	's/^ *cpu->generation = s->generation;//'
mutation "no flush at the first entry" test_vmid flushes_are_counted vmid.c \
	's/cpu->generation = cpu->slow = cpu->flushes = 0;/cpu->generation = 1; cpu->slow = cpu->flushes = 0;/'
mutation "what was here is kept" test_vmid the_idle_keep_nothing vmid.c \
	'/__atomic_store_n(&cpu->active, 0, __ATOMIC_RELAXED);/d'
mutation "the CPU is not said to have it" test_vmid random_histories vmid.c \
	'/__atomic_store_n(&cpu->active, (uintptr_t)vm, __ATOMIC_RELAXED);/d'

# ---- Beginning anew, pins, limits ----
mutation "the old number stays" test_vmid random_histories vmid.c \
	'/__atomic_store_n(&vm->id, 0, __ATOMIC_RELAXED);/d'
mutation "CPUs still have it" test_vmid forgotten_is_forgotten vmid.c \
	's/active & VMID_ROLLED, false,/active, false,/'
mutation "forgetting takes the mark away" test_vmid random_histories vmid.c \
	's/active & VMID_ROLLED, false,/0, false,/'
mutation "forgetting overwrites who came meanwhile" test_vmid_interleave ends_and_pins vmid.c \
	's/__atomic_compare_exchange_n(word, &active, active & VMID_ROLLED, false,/__atomic_store_n(word, active \& VMID_ROLLED, 0);/' \
	'/^ *__ATOMIC_RELAXED, __ATOMIC_RELAXED);/d'
mutation "a pinned number is freed" test_vmid random_histories vmid.c \
	's/add_to_map(s->kept, number);//'
mutation "a pinned VM gets another number" test_vmid random_histories vmid.c \
	's/if (vm->pins != 0) {$/if (false) {/'
mutation "a number stays pinned" test_vmid random_histories vmid.c \
	'/take_from_map(s->kept, number_of(vm));/d'
mutation "no limit of pins" test_vmid pins_have_a_limit vmid.c \
	's/vm->pins != 0 || s->pinned < vmid_pin_limit(s)/true/'
mutation "one pin too many" test_vmid pins_have_a_limit vmid.h \
	's/s->numbers - s->cpu_limit - 2;/s->numbers - s->cpu_limit - 1;/'
mutation "as many numbers as CPUs" test_vmid needs_a_number_for_each_cpu vmid.c \
	's/(1u << bits) - 1 <= cpus/(1u << bits) - 1 < cpus/'
plan
