# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # bench/lib.sh sets $out
# Sourced by bench/run: hackbench in stock Linux, natively and as a guest. bench/README.md says how.

HB_BOOTS=${HB_BOOTS:-3}    # differently perturbed boots of each kind
HB_DROP=10                 # runs at the beginning of a boot that don't count
HB_RUNS=${HB_RUNS:-40}     # runs of a boot that do
HB_WORK=1:50               # hackbench -g 1 -l 50
HB_MESSAGES=$((20 * 20 * 50))
HB_PCPUS=4

# The actions of boot $1, with $2 runs.
hb_actions() {
	echo "console=ttyAMA0 quiet paravane.do=true:$((1 + 7 * $1)),hackbench:$2:$HB_WORK"
}

# hb_native BOOT: times in s, one a line, to $out/hb-native-BOOT.
hb_native() {
	lab/qemu --el1 --kernel "$KERNEL_6_12" --initrd "$out/guest.cpio" --cpus $HB_PCPUS --memory 512 \
		--append "$(hb_actions "$1" $((HB_DROP + HB_RUNS)))" --timeout 1200 \
		--log "$out/hb-native-$1.log" >/dev/null 2>&1 </dev/null || :
	hb_times "$out/hb-native-$1.log" >"$out/hb-native-$1"
}

# hb_guest NAME VCPUS BOOT RUNS [KEY=VALUE...]: one VM, further keys of its section as given.
hb_guest() {
	local name=$1 vcpus=$2 boot=$3 runs=$4 key log=$out/$1
	shift 4
	{
		printf '[vm a]\nkernel = %s\ninitrd = guest.cpio\nmemory = 512M\nvcpus = %s\n' "$KERNEL_6_12" "$vcpus"
		printf 'cmdline = %s\n' "$(hb_actions "$boot" "$runs")"
		for key; do echo "${key%%=*} = ${key#*=}"; done
	} >"$out/$name.conf"
	rm -rf "$log"
	build/paravane run "$out/$name.conf" --cpus $HB_PCPUS --timeout 2400 --log-dir "$log" \
		</dev/null >"$out/$name.out" 2>&1 || { lacks "what run $name measures" "see $out/$name.out" && return 1; }
	hb_times "$log/a.log" >"$log/times"
}

hb_times() {
	tr -d '\r' <"$1" | sed -n 's/^GUEST: hackbench //p' | tail -n +$((HB_DROP + 1))
}

# Instructions that the hypervisor took, all CPUs together, of run $1: 2 ns each.
hb_hypervisor() {
	awk '/^paravane: stats cpu=/ { for (i = 3; i <= NF; i++) if (sub(/^hypervisor=/, "", $i)) sum += $i }
		END { printf "%.0f\n", sum / 2 }' "$out/$1/console.log"
}

# hb_ratio NATIVE-FILES... -- GUEST-FILES...: ratio of the medians, and the 95 % interval of a bootstrap
# that draws boots first and then runs of these.
hb_ratio() {
	awk -v seed=1 '
	function random(n) { seed = (seed * 69069 + 1) % 4294967296; return int(seed / 4294967296 * n) }
	function sort(a, n,    i, j, x) {
		for (i = 2; i <= n; i++) {
			x = a[i]
			for (j = i - 1; j > 0 && a[j] > x; j--) a[j + 1] = a[j]
			a[j + 1] = x
		}
	}
	function median(a, n) { sort(a, n); return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2 }
	function all(kind,    b, r, n, a) {
		for (b = 1; b <= boots[kind]; b++) for (r = 1; r <= runs[kind, b]; r++) a[++n] = t[kind, b, r]
		return median(a, n)
	}
	function drawn(kind,    i, b, r, n, a) {
		for (i = 1; i <= boots[kind]; i++) {
			b = 1 + random(boots[kind])
			for (r = 1; r <= runs[kind, b]; r++) a[++n] = t[kind, b, 1 + random(runs[kind, b])]
		}
		return median(a, n)
	}
	BEGIN {
		for (i = 1; i < ARGC; i++) {
			if (ARGV[i] == "--") { kind = 1; continue }
			b = ++boots[kind + 0]
			while ((getline line < ARGV[i]) > 0) t[kind + 0, b, ++runs[kind + 0, b]] = line + 0
		}
		for (i = 1; i <= 1000; i++) ratio[i] = drawn(1) / drawn(0)
		sort(ratio, 1000)
		printf "%.3f %.3f %.3f\n", all(1) / all(0), ratio[26], ratio[975]
	}' "$@"
}

# All boots of the native machine, once: hb-native-1 ...
hb_natives() {
	local b
	[ ! -e "$out/hb-native" ] || return 0
	[ -e "$out/guest.cpio" ] || lab/initramfs "$out/guest.cpio"
	for b in $(seq "$HB_BOOTS"); do
		hb_native "$b"
		[ "$(wc -l <"$out/hb-native-$b")" -eq "$HB_RUNS" ] ||
			{ lacks hackbench.native "see $out/hb-native-$b.log" && return 1; }
	done
	sort -n "$out"/hb-native-[0-9] >"$out/hb-native"
	sorted_value "$out/hb-native" hackbench.native "$HB_PCPUS CPUs at EL1, $HB_BOOTS boots" s
}

# hb_tax CONFIGURATION FACTOR [KEY=VALUE...]: hackbench.CONFIGURATION.FACTORx and work.overhead.
hb_tax() {
	local name=hackbench.$1.$2x vcpus=$((HB_PCPUS * $2)) label="$HB_PCPUS pCPUs, $((HB_PCPUS * $2)) vCPUs" b
	local files=() tax low high overhead=work.overhead.$1.$2x least
	shift 2
	for b in $(seq "$HB_BOOTS"); do
		hb_guest "$name-$b" $vcpus "$b" $((HB_DROP + HB_RUNS)) "$@" || return
		files+=("$out/$name-$b/times")
	done
	read -r tax low high < <(hb_ratio "$out"/hb-native-[0-9] -- "${files[@]}")
	figure "$name" "$tax" tax $((HB_BOOTS * HB_RUNS)) "$low" "$high" "$label"
	figure "$name.hi" "$high" tax $((HB_BOOTS * HB_RUNS)) "$low" "$high" "$label"
	# the same boot without the work takes away what booting took
	hb_guest "$name-idle" $vcpus 1 0 "$@" || return
	least=$(hb_hypervisor "$name-idle")
	exact "$overhead" $((($(hb_hypervisor "$name-1") - least) / (HB_MESSAGES * (HB_DROP + HB_RUNS)))) \
		instructions "$label, of the hypervisor for each message"
}

run_hackbench() {
	hb_natives && hb_tax none 1 spin=ignore
}

run_spin() {
	local factor
	hb_natives || return
	for factor in 1 2 4; do hb_tax spin $factor spin=auto || return; done
}
