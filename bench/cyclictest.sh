# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # bench/lib.sh sets $out
# Sourced by bench/run: cyclictest in stock Linux, natively and as a guest. bench/README.md says how.

# ct_actions SLEEP LOOPS. While VM 1 sleeps all of them boot and the others begin, and they end after it.
ct_actions() { echo "console=ttyAMA0 quiet paravane.do=sleep:$1,lateness:$2:1000"; }

# The values of log $1: median, 99th percentile, least, count.
ct_values() {
	tr -d '\r' <"$1" | sed -n 's/^GUEST: lateness \([0-9].*\)/\1/p'
}

# ct_guests NAME ADVANCE_NS VMS: so many VMs of one vCPU on one pCPU, all of which do it.
ct_guests() {
	local name=$1 i
	for i in $(seq "$3"); do
		printf '[vm vm%s]\nkernel = %s\ninitrd = guest.cpio\nmemory = 128M\nvcpus = 1\nadvance_ns = %s\ncmdline = %s\n' \
			"$i" "$KERNEL_6_12" "$2" "$(if [ "$i" = 1 ]; then ct_actions 35 1000; else ct_actions 30 12000; fi)"
	done >"$out/$name.conf"
	rm -rf "${out:?}/$name"
	build/paravane run "$out/$name.conf" --cpus 1 --timeout 600 --log-dir "$out/$name" </dev/null >"$out/$name.out" 2>&1 ||
		{ lacks "what run $name measures" "see $out/$name.out" && return 1; }
}

run_cyclictest() {
	local mode load name native p50 p99 least n configuration
	lab/initramfs "$out/guest.cpio"
	lab/qemu --el1 --kernel "$KERNEL_6_12" --initrd "$out/guest.cpio" --cpus 1 --memory 128 --append "$(ct_actions 35 1000)" \
		--timeout 600 --log "$out/ct-native.log" >/dev/null 2>&1 </dev/null || :
	read -r native p99 least n < <(ct_values "$out/ct-native.log") ||
		{ lacks timer.cyclictest.native "no line \"lateness\" in $out/ct-native.log" && return; }
	figure timer.cyclictest.native.p50 "$native" ns "$n" "$least" "$p99" "Linux at EL1, 1 CPU"
	figure timer.cyclictest.native.p99 "$p99" ns "$n" "$least" "$p99" "Linux at EL1, 1 CPU"
	for mode in off:0 fixed:1500 adaptive:-1; do
		for load in 1 4; do
			name=ct-${mode%:*}-$load
			ct_guests "$name" "${mode#*:}" $load || return
			read -r p50 p99 least n < <(ct_values "$out/$name/vm1.log") ||
				{ lacks "timer.cyclictest.${mode%:*}" "no line \"lateness\" in $out/$name/vm1.log" && return; }
			name=timer.cyclictest.${mode%:*}
			[ $load = 1 ] || name=$name.${load}x
			configuration="$load VMs of 1 vCPU that do it, 1 pCPU"
			figure "$name.p50" "$p50" ns "$n" "$least" "$p99" "$configuration"
			figure "$name.p99" "$p99" ns "$n" "$least" "$p99" "$configuration"
			exact "$name.error" $((p50 - native)) ns "$configuration"
		done
	done
}
