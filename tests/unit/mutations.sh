#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Faults put into the code on purpose, each of which a test must find: a test that can't fail is none.
#
# For each mutation: the named file is changed by sed, what includes it is compiled again, the named
# test runs and must fail, in the named case. A change that changes nothing fails too: then the code
# has moved on, and the expression must follow it. Without sanitizers, so that it is quick.
#
#   mutations.sh [NAME...]   all, or those whose name begins so
cd "$(dirname "$0")/../.." || exit 2
root=$PWD
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
CC=${HOSTCC:-gcc}
flags=(-std=gnu11 -O1 -w -I. -Iinclude -Iarch/fake/include)
sources=(arch/fake/{boot,cpu,engine,fiber,guest,steps,tlb}.c core/{pvlock,steal}.c hyp/{console,monitor,monitor_show,pl011,print,stats}.c)
limit=60 # seconds that a test may take
wanted=("$@")

names=() specs=()

# mutation NAME TEST CASE FILE SED...: with sed's expressions applied to FILE, CASE of TEST fails.
# A name that ends in "(hangs)" may also run into the time limit, which is short then.
mutation() {
	local name=$1
	shift
	names+=("$name")
	specs+=("$(printf '%q ' "$@")")
}

# ---- Storms of interrupts ----
mutation "storm: requests are looked at for ever (hangs)" test_hyp_time storm_leaves_time \
	hyp/vcpu.c 's/ || ++\*rounds < IRQ_ROUNDS/ || true/'
mutation "storm: what exits take is not looked at" test_hyp_time storm_leaves_time \
	hyp/vcpu.c 's/if (hyp > (now - p->irq_since) \/ 2)/if (false)/'
mutation "storm: a hold has no end" test_hyp_time storm_leaves_time \
	hyp/vcpu.c '/^static void hold_irq/,/^}/s/timer_program(v->irq_held);/;/' \
	'/^RARE static bool irq_is_held/,/^}/s/timer_program(v->irq_held);/;/'
mutation "storm: a hold ends at the first exit (hangs)" test_hyp_time storm_leaves_time \
	hyp/vcpu.c 's/if (v->irq_held <= port_clock())/if (true)/'
mutation "storm: each interrupt kicks" test_hyp_time storm_leaves_time \
	hyp/vcpu.c 's/if (state == RUN_RUNNING && !known)/if (state == RUN_RUNNING)/'

# ---- Translations ----
mutation "sibling flush deleted" test_fake_tlb siblings_share_a_cpu \
	hyp/vcpu.c '/arch_tlb_flush_stage1();/d'
mutation "sibling flush forgets who was here" test_fake_tlb siblings_share_a_cpu \
	hyp/vcpu.c '/^ *\*last = v;/d'
mutation "sibling flush for the first vCPU only" test_fake_tlb siblings_share_a_cpu \
	hyp/vcpu.c 's/if (\*last != NULL) {/if (*last == NULL) {/'
mutation "sibling flush only when the VM changes" test_fake_tlb siblings_share_a_cpu \
	hyp/vcpu.c 's/if (\*last != v) {/if (*last != v \&\& p->loaded != NULL \&\& p->loaded->vm != v->vm) {/'
mutation "flush at restart deleted" test_fake_tlb restarted_vm_finds_nothing_old \
	hyp/vm.c '/vmid_forget(&vmids, &vm->vmid);/d'
mutation "flush at restart on one pCPU" test_fake_tlb restarted_vm_finds_nothing_old \
	hyp/vm.c 's/vmid_forget(&vmids, &vm->vmid);/arch_tlb_flush_cpu();/'
mutation "no flush after a roll-over" test_fake_tlb more_vms_than_numbers \
	hyp/vcpu.c 's/^    arch_tlb_flush_cpu();//'
mutation "a flush of stage 1 after a roll-over" test_fake_tlb more_vms_than_numbers \
	hyp/vcpu.c 's/^    arch_tlb_flush_cpu();/arch_tlb_flush_stage1();/'
mutation "another number, but not in the register" test_fake_tlb more_vms_than_numbers \
	hyp/vcpu.c 's/arch_vm_translate(vm, vmid & VMID_NUMBER);/if (p->loaded == NULL || p->loaded->vm != vm) arch_vm_translate(vm, vmid \& VMID_NUMBER);/'
mutation "idle CPUs keep a number" test_fake_tlb idle_cpus_keep_nothing \
	hyp/vcpu.c '/vmid_leave(&p->vmid);/d'
mutation "entry without asking for a number" test_fake_tlb more_vms_than_numbers \
	hyp/vcpu.c 's/uint32_t vmid = vmid_enter(.*/uint32_t vmid = vm->vmid.id != 0 ? (uint32_t)vm->vmid.id \& VMID_NUMBER : vmid_enter(\&vmids, \&p->vmid, \&vm->vmid);/'
mutation "local invalidates not broadcast" test_fake_tlb local_invalidate_then_migration \
	arch/fake/tlb.c 's/!fake_broken.no_broadcast/false/'
mutation "one VMID for two VMs" test_fake_tlb vmids_are_unique \
	arch/fake/tlb.c 's/fake_broken.same_vmid ? 1 : number/1/'

# ---- Registers ----
mutation "registers always taken for present" test_hyp_random nothing_is_lost \
	hyp/vcpu.c 's/arch_vcpu_load(v, p->loaded == v);/arch_vcpu_load(v, true);/'
mutation "registers never saved" test_hyp_random nothing_is_lost \
	hyp/vcpu.c '/arch_vcpu_save(v);/d'
mutation "registers of the last life at CPU_ON" test_hyp_power on_off_cycles \
	hyp/vcpu.c '/static enum verdict vcpu_switch/,/^}/{/p->loaded = NULL;/d}'
mutation "CPU_OFF leaves the interrupts in the pCPU" test_hyp_life ends_at_any_moment \
	hyp/vcpu.c '/static enum verdict vcpu_switch/,/^}/{/vcpu_quiesce(v, false);/d}'
mutation "kept registers are not saved when another comes" test_hyp_random nothing_is_lost \
	hyp/vcpu.c 's/if (keep && e != &v->sched)/if (false)/'

# ---- Bus errors ----
mutation "bus error left to the next guest" test_hyp_life serror_is_of_the_one_that_leaves \
	hyp/vcpu.c 's/ && !arch_vcpu_serror(v)//'

# ---- Timers ----
mutation "no timer for one that blocks" test_hyp_time parked_timer_is_exact_on_a_free_cpu \
	hyp/vcpu.c 's/timer_set(&v->timer, advance_on.*/timer_set(\&v->timer, TIMER_NEVER);/'
mutation "no software timer for one that runs" test_hyp_time software_timer_is_set_at_each_entry \
	hyp/vcpu.c '/^static void vcpu_enter_pcpu/,/^}/{/timer_set(/d}'
mutation "timer not taken out of another pCPU's queue (hangs)" test_hyp_random nothing_is_lost \
	hyp/timer.c 's/if (q != NULL) {/if (q == here) {/'
mutation "timer of an ended vCPU left queued" test_hyp_life ends_at_any_moment \
	hyp/vcpu.c 's/timer_set(&v->timer, advance_on.*/if (blocked) timer_set(\&v->timer, deadline);/'
mutation "hardware timer set for slices only" test_hyp_time parked_timer_is_exact_on_a_free_cpu \
	hyp/timer.c 's/next < slice_end ? next : slice_end/slice_end/'
mutation "hardware timer not set at the first entry" test_hyp_time first_guest_is_preempted_too \
	hyp/vcpu.c '/^struct vcpu \*vcpu_first/,/^}/{/timer_program(/d}'
mutation "hardware timer not set at a switch" test_hyp_time parked_timer_wakes \
	hyp/vcpu.c '/static enum verdict vcpu_switch/,/^}/{/timer_program(/d}'
mutation "hardware timer not set when one comes to wait" test_hyp_power started_though_the_caller_stays \
	arch/fake/engine.c '/^void port_kick_cpu/,/^}/{/timer_program(/d}'
mutation "no request when a timer fires" test_hyp_time software_timer_interrupts_its_own_guest \
	hyp/vcpu.c 's/vcpu_request_and_wake(v, REQUEST_TIMER)/sched_wake(\&v->sched)/'

# ---- Timer advancement ----
mutation "no wait for the deadline" test_hyp_advance fixed_covers_it_and_waits_for_the_rest \
	hyp/advance.c 's/arch_enter_at(v, a->due,/arch_enter_at(v, 0,/'
mutation "timers of one that does not wait stay due" test_hyp_advance does_not_wait_while_others_do \
	hyp/advance.c '/vcpu_request(v, REQUEST_TIMER | REQUEST_IRQ);/d'
mutation "a long wait while others wait" test_hyp_advance does_not_wait_while_others_do \
	hyp/advance.c 's/if (!advance_short(a, now) .*{/if (false) {/'
mutation "the wait is the guest's time" test_hyp_advance the_wait_is_the_hypervisors_time \
	hyp/advance.c 's/exit_end_switched(p, v, .*/exit_end_switched(p, v, now);/'

# ---- Counters ----
mutation "exits end when the vCPU leaves its pCPU" test_hyp_counters exit_times_add_up \
	hyp/vcpu.c '/exit_left(p, v);/d'
mutation "exits that nobody ends" test_hyp_counters exit_times_add_up \
	hyp/vcpu.c '/exit_last(p, v/d'
mutation "idle time is the hypervisor's" test_hyp_counters pcpu_times_add_up \
	hyp/vcpu.c '/p->hyp_since = until;/d'

# ---- Waking ----
mutation "a block that does not look again" test_hyp_random token_is_never_lost \
	hyp/vcpu.c '/Who saw that it still ran/,/}/s/sched_wake(&v->sched);/;/'
mutation "a block that ignores a wake" test_hyp_power on_off_cycles \
	core/sched.c 's/} else if (load_relaxed(&prev->wakes) != 0 &&/} else if (false \&\&/'
mutation "a wake that forgets the running" test_hyp_power on_off_cycles \
	core/sched.c '/__atomic_store_n(&e->wake_pending, true, __ATOMIC_RELEASE);/d'
mutation "a request that wakes nobody" test_hyp_random token_is_never_lost \
	hyp/vcpu.c '/^void vcpu_wake_other/,/^}/s/sched_wake(&v->sched);/;/'
mutation "a request that wakes who runs" test_hyp_time old_wakes_do_not_end_a_wait \
	hyp/vcpu.c '/^void vcpu_wake_other/,/^}/s/if (.* && atomic/if (atomic/'
mutation "a stop that wakes nobody" test_hyp_monitor stop_meets_pause \
	hyp/vcpu.c '/^void vcpu_request_off/,/^}/{/sched_wake(/d}'
mutation "a stop that wakes only who waits" test_hyp_monitor stop_meets_pause \
	hyp/vm.c 's/vcpu_request_off(v, REQUEST_STOP)/vcpu_request_and_wake(v, REQUEST_STOP)/'
mutation "a request that kicks nobody" test_hyp_time interrupts_reach_running_waiting_blocked_and_off \
	hyp/vcpu.c '/^static inline enum run_state leave_request/,/^}/s/port_kick_cpu(cpu);/;/'
mutation "a block called off leaves the interrupts out" test_hyp_random token_is_never_lost \
	hyp/vcpu.c '/called off/,/}/{/vcpu_request(v, REQUEST_IRQ);/d}'
mutation "an idle pCPU still counts as its last vCPU's" test_hyp_time parked_timer_is_exact_on_a_free_cpu \
	hyp/vcpu.c '/^static struct sched_entity \*wait_for_work/,/^}/{/p->current = NULL;/d}'

# ---- Who runs where ----
mutation "a vCPU that left stays on its pCPU" test_hyp_time timer_follows_its_vcpu \
	hyp/vcpu.c '/sched_released(&v->sched);/d'
mutation "a vCPU is released before it is saved" test_hyp_random nothing_is_lost \
	hyp/vcpu.c 's/arch_vcpu_save(v);/sched_released(\&v->sched); arch_vcpu_save(v);/'
mutation "a running vCPU may be taken" test_hyp_random nothing_is_lost \
	core/sched.c 's/store_relaxed(&next->on_cpu, true);/;/'
mutation "affinity ignored when stealing" test_hyp_random nothing_is_lost \
	core/sched.c '/^\(RARE \)\?static struct sched_entity \*steal/,/^}/s/cpu_set_has(&e->allowed, cpu)/true/'

# ---- Records and kicks ----
mutation "flag not cleared when its vCPU runs" test_hyp_records flags_agree_at_any_moment \
	core/sched_queue.h 's/if (e->pvlock.record != NULL) {/if (e->pvlock.record != NULL \&\& to != RUN_RUNNING) {/'
mutation "flag not set when its vCPU is displaced" test_hyp_records flags_agree_at_any_moment \
	core/sched_queue.h 's/if (e->pvlock.record != NULL) {/if (e->pvlock.record != NULL \&\& to != RUN_RUNNABLE) {/'
mutation "flag ignores waits" test_hyp_records flags_agree_at_any_moment \
	core/sched_queue.h 's/bool waits = to == RUN_BLOCKED/bool waits = false/'
mutation "flag takes paused for waiting" test_hyp_records paused_ones_do_not_run \
	core/sched_queue.h 's/bool waits = to == RUN_BLOCKED/bool waits = (to == RUN_BLOCKED || to == RUN_OFF)/'
mutation "flag hook deleted" test_hyp_records flags_agree_at_any_moment \
	core/sched_queue.h '/^static inline void enter_state/,/^}/{/tell_guest(/d}'
mutation "nobody asks for records" test_hyp_records flags_agree_at_any_moment \
	core/pvlock.c 's/watch_record(true);/;/'
mutation "record in use after the VM's end" test_hyp_records nobody_writes_to_old_records \
	hyp/vm.c '/^void vm_vcpu_stopped/,/^}/{/pvlock_end(/d}'
mutation "record in use after CPU_OFF" test_hyp_records off_gives_the_record_back \
	hyp/vm.c '/^void vm_vcpu_off/,/^}/{/pvlock_end(/d}'
mutation "a kick that is not kept" test_hyp_records kick_is_never_lost \
	core/sched.c 's/e->kicked = true;/;/'
mutation "a kick that wakes nobody" test_hyp_records kick_is_never_lost \
	core/sched.c '/^void sched_kick/,/^}/s/if (blocked) {/if (false) {/'
mutation "a wait that ignores a kick" test_hyp_records every_interleaving_of_kick_and_wait \
	core/sched_queue.h 's/off |= e->kicked;/;/'
mutation "a kick that is kept for ever" test_hyp_records a_kick_ends_one_wait \
	core/sched.c '/^void sched_kick/,/^}/s/if (!blocked) {/if (true) {/'
mutation "a pause that forgets a kick" test_hyp_records kick_survives_a_pause \
	core/sched_queue.h '/^static inline bool called_off/,/^}/s/if (state == RUN_BLOCKED) {/if (true) {/'

# ---- Accounts ----
mutation "run time not booked" test_hyp_time times_add_up \
	core/sched_queue.h '/e->times\[RUN_RUNNING\] += ran;/d'
mutation "time in other states not booked" test_hyp_time times_add_up \
	core/sched_queue.h '/e->times\[e->state\] += spent;/d'
mutation "run time not charged" test_hyp_time weights_are_shares \
	core/sched_queue.h '/e->vtime += ran/d'

# ---- Power and life ----
mutation "CPU_ON without the lock" test_hyp_power every_interleaving_of_two_callers \
	hyp/vm.c '/^int vm_vcpu_on/,/^}/{/spin_\(un\)\?lock(/d}'
mutation "CPU_ON does not mark its target" test_hyp_power every_interleaving_of_two_callers \
	hyp/vm.c '/^int vm_vcpu_on/,/^}/{/VCPU_ON_PENDING);/d}'
mutation "CPU_ON wakes nobody" test_hyp_power started_in_time_at_8_to_1 \
	hyp/vm.c '/^int vm_vcpu_on/,/^}/{/sched_wake(/d}'
mutation "CPU_OFF does not say so" test_hyp_power on_off_cycles \
	hyp/vm.c '/^void vm_vcpu_off/,/^}/{/VCPU_OFF);/d}'
mutation "all vCPUs started at boot" test_hyp_power unstarted_vcpus_cost_nothing \
	hyp/vm.c '/^static void begin_loading/,/^}/s/sched_wake(.*/for (unsigned i = 0; i < vm->config->vcpus; i++) sched_wake(\&vm->vcpus[i]->sched);/'
mutation "memory filled while vCPUs are inside" test_hyp_life ends_at_any_moment \
	hyp/vm.c 's/if (!all_released(vm)) {/if (false) {/' \
	's/bool last = --vm->alive == 0;/bool last = --vm->alive <= 1;/'
mutation "the end is not told to a sleeper" test_hyp_life sleepers_end_too \
	hyp/vm.c 's/vcpu_request_off(v, REQUEST_STOP)/vcpu_request(v, REQUEST_STOP)/'
mutation "CPU_ON survives the end of its VM" test_hyp_life ends_at_any_moment \
	hyp/vm.c '/^void vm_stop/,/^}/{/atomic_store(&v->power, VCPU_OFF);/d}'
mutation "the last reason counts" test_hyp_life the_first_reason_counts \
	hyp/vm.c '/^void vm_stop/,/^}/s/if (atomic_load(&vm->state) == VM_RUNNING) {/if (true) {/'
mutation "the machine never goes off" test_hyp_life the_last_one_turns_the_machine_off \
	hyp/vm.c 's/atomic_fetch_sub(&vms_running, 1) == 1/atomic_fetch_sub(\&vms_running, 1) == 0/'
mutation "the machine goes off too soon" test_hyp_life the_machine_stays_for_others \
	hyp/vm.c 's/atomic_fetch_sub(&vms_running, 1) == 1/atomic_fetch_sub(\&vms_running, 1) <= 2/'

# ---- Running them ----

# compile TREE SOURCE OBJECT
compile() {
	(cd "$1" && "$CC" "${flags[@]}" -c -o "$3" "$2")
}

# Whether CASE of the program fails: 0 yes, 1 no; says why in $why.
fails() {
	local program=$1 case=$2 seconds=$3 hangs=$4 out status
	out=$(FAKE_ONLY=$case CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 "$seconds" "$program" 2>&1)
	status=$?
	if [ $status = 124 ] || [ $status = 137 ]; then
		why="no end after $seconds s"
		[ -n "$hangs" ]
	elif [ $status -ge 128 ]; then
		why="signal $((status - 128))"
	elif [ $status = 0 ]; then
		why="it passed"
		grep -q "^ok .*$case" <<<"$out" || why="it was not run"
		return 1
	else
		why=$(grep -v '^\(TAP\|ok\|1\.\.\)' <<<"$out" | grep -m1 -o '[^ ].*')
		grep -q "^not ok .*$case" <<<"$out"
	fi
}

# One mutation in a tree of its own: prints "ok" or "not ok", and what was seen.
run_one() {
	local test=$1 case=$2 file=$3 name=$4 tree object expression hangs="" seconds=$limit
	local -a args=() objects=()
	shift 4
	tree=$(mktemp -d "$dir/tree.XXXXXX")
	cp -r "$dir/clean/." "$tree"
	for expression in "$@"; do
		args+=(-e "$expression")
	done
	sed -i "${args[@]}" "$tree/$file" || { echo "not ok - $name # sed failed"; return; }
	if cmp -s "$tree/$file" "$dir/clean/$file"; then
		echo "not ok - $name # the change changed nothing in $file"
		return
	fi
	case $file in
	arch/fake/*.c | core/pvlock.c | core/steal.c) object=$file ;;
	*) object=arch/fake/steps.c ;;
	esac
	for source in "${sources[@]}"; do
		[ "$source" = "$object" ] || objects+=("$dir/objects/${source//\//_}.o")
	done
	if ! compile "$tree" "$object" "$tree/changed.o" 2>"$tree/errors" ||
		! "$CC" -o "$tree/program" "$tree/changed.o" "${objects[@]}" \
			"$dir/objects/$test.o" -lcmocka 2>>"$tree/errors"; then
		echo "not ok - $name # does not build: $(head -1 "$tree/errors")"
		return
	fi
	[[ $name == *"(hangs)" ]] && { hangs=1; seconds=20; }
	if fails "$tree/program" "$case" "$seconds" "$hangs"; then
		echo "ok - $name"
	else
		echo "not ok - $name # $case: $why"
	fi
	rm -rf "$tree"
}

prepare() {
	local source
	mkdir -p "$dir/clean/arch" "$dir/clean/tests" "$dir/objects"
	cp -r core hyp include "$dir/clean/"
	cp -r arch/fake "$dir/clean/arch/"
	for source in "${sources[@]}"; do
		compile "$root" "$source" "$dir/objects/${source//\//_}.o" &
	done
	for test in test_fake_tlb test_hyp_{advance,counters,life,monitor,power,random,records,time}; do
		compile "$root" "tests/unit/$test.c" "$dir/objects/$test.o" &
	done
	wait
}

# The tests must pass where nothing was changed, or their failure says nothing.
# shellcheck disable=SC2120 # its arguments are what the eval sets
check_clean() {
	local spec program key
	local -A seen=()
	for spec in "${specs[@]}"; do
		eval "set -- $spec"
		key=$1:$2
		[ -n "${seen[$key]}" ] && continue
		seen[$key]=1
		program=$dir/$1
		[ -x "$program" ] || "$CC" -o "$program" "$dir/objects/$1.o" \
			"${sources[@]/#/$dir/objects/}" -lcmocka 2>/dev/null ||
			"$CC" -o "$program" "$dir/objects/$1.o" "$dir"/objects/*_*.c.o -lcmocka || return 1
		if fails "$program" "$2" $limit "" || [ "$why" != "it passed" ]; then
			echo "# $key without any change: $why"
			return 1
		fi
	done
}

selected() {
	local prefix
	[ ${#wanted[@]} = 0 ] && return 0
	for prefix in "${wanted[@]}"; do
		[[ $1 == "$prefix"* ]] && return 0
	done
	return 1
}

prepare
# shellcheck disable=SC2119 # none are meant
if ! check_clean; then
	echo "not ok 1 - the tests pass without a mutation"
	echo "1..1"
	exit 1
fi
echo "ok 1 - the tests pass without a mutation"
count=1 failed=0
for i in "${!names[@]}"; do
	selected "${names[i]}" || continue
	eval "set -- ${specs[i]}"
	test=$1 case=$2 file=$3
	shift 3
	line=$(run_one "$test" "$case" "$file" "${names[i]}" "$@")
	count=$((count + 1))
	echo "${line/ok -/ok $count -}"
	[[ $line == ok* ]] || failed=$((failed + 1))
done
echo "1..$count"
[ $failed = 0 ]
