# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by bench/run: running a machine, keeping figures, writing them down.

out=$(realpath -m "${BENCH_DIR:-build/bench}")
images=$PWD/build/bench/guest
reference=bench/results/arm64.json
missing= # not empty: something could not be measured
eval "$(lab/env)" # KERNEL_6_12 and its like

# A section of a machine description: vm NAME IMAGE MEMORY VCPUS [COMMAND LINE]. Timers are not
# advanced, as what that hides is what is measured, unless ADVANCE_NS says so.
vm() {
	printf '[vm %s]\nkernel = %s\nmemory = %s\nvcpus = %s\nadvance_ns = %s\n' \
		"$1" "$(realpath "$images/$2")" "$3" "$4" "${ADVANCE_NS:-0}"
	[ -z "${5:-}" ] || printf 'cmdline = %s\n' "$5"
}

# Says that figure $1 is not there, and why.
lacks() {
	# shellcheck disable=SC2034 # bench/run looks at it
	missing=1
	echo "bench: $1 could not be measured: $2" >&2
}

# machine NAME PCPUS [CONF]: runs $out/CONF.conf (default NAME), logs to $out/NAME. With TURNS set to
# nothing the emulated CPUs take no turns by time.
machine() {
	local emulator=${PARAVANE_QEMU:-$QEMU_ARM64} log=$out/$1
	rm -rf "$log"
	mkdir -p "$log"
	if [ -z "${TURNS-yes}" ]; then
		cat >"$log/emulator" <<-END
			#!/bin/bash
			[ "\$1" != --version ] || exec "$emulator" --version
			a=(-nic none)
			while [ \$# -gt 0 ]; do
				case \$1 in -netdev | -object) shift ;; *) a+=("\$1") ;; esac
				shift
			done
			exec "$emulator" "\${a[@]}"
		END
		chmod +x "$log/emulator"
		emulator=$log/emulator
	fi
	if ! PARAVANE_QEMU=$emulator build/paravane run "$out/${3:-$1}.conf" --cpus "$2" --memory 512M \
		--timeout 120 --log-dir "$log" </dev/null >"$log/out" 2>&1; then
		lacks "what run $1 measures" "it failed, see $log/out"
		tail -n 5 "$log/out" >&2
		return 1
	fi
}

# figure NAME VALUE UNIT RUNS MIN MAX CONFIGURATION: keeps it if it is wanted.
figure() {
	# shellcheck disable=SC2053,SC2154 # bench/run sets it, and a pattern is wanted
	[[ $1 == $pattern ]] || return 0
	printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$@" >>"$out/figures"
	echo "$1 $2 $3"
}

# exact NAME VALUE UNIT CONFIGURATION: one run, which is enough.
exact() {
	figure "$1" "$2" "$3" 1 "$2" "$2" "$4"
}

# guest_figures RUN NAME... CONFIGURATION: lines `bench: NAME MEDIAN MIN MAX COUNT` of its VM a.
guest_figures() {
	local run=$1 configuration=${*: -1}
	shift
	while [ $# -gt 1 ]; do
		median_value "$run" "$1" "fixed.$1" "$configuration"
		shift
	done
}

# median_value RUN LINE FIGURE CONFIGURATION
median_value() {
	local median min max n
	read -r median min max n < <(tr -d '\r' <"$out/$1/a.log" | sed -n "s/^bench: $2 //p") ||
		{ lacks "$3" "no line \"bench: $2\" in $out/$1/a.log" && return; }
	figure "$3" "$median" ns "$n" "$min" "$max" "$4"
}

# first_value RUN LINE FIGURE FIELD CONFIGURATION: its smallest value stands for it.
first_value() {
	local median min max n
	read -r median min max n < <(tr -d '\r' <"$out/$1/a.log" | sed -n "s/^bench: $2 //p") ||
		{ lacks "$3" "no line \"bench: $2\" in $out/$1/a.log" && return; }
	figure "$3" "$min" ns "$n" "$min" "$max" "$5"
}

# sorted_value FILE FIGURE CONFIGURATION [UNIT]: a file of sorted samples, one a line.
sorted_value() {
	local median min max n
	read -r median min max n < <(
		awk '{ a[NR] = $1 } END { if (NR) print a[int(NR / 2) + 1], a[1], a[NR], NR }' "$1"
	) ||
		{ lacks "$2" "no samples in $1" && return; }
	figure "$2" "$median" "${4:-ns}" "$n" "$min" "$max" "$3"
}

# build/bench/results.json from the figures. Names and versions have no quotes or backslashes in them.
write_results() {
	lab/host-versions | tr -d "\"\\134" >"$out/versions"
	awk -F '\t' -v versions="$out/versions" '
	BEGIN {
		while ((getline line < versions) > 0) {
			at = index(line, " ")
			all = all (all == "" ? "" : ", ") \
				sprintf("\"%s\": \"%s\"", substr(line, 1, at - 1), substr(line, at + 1))
		}
		print "["
	}
	{
		printf "%s  {\"name\": \"%s\", \"value\": %s, \"unit\": \"%s\", \"runs\": %s, ", \
			(NR > 1 ? ",\n" : ""), $1, $2, $3, $4
		printf "\"spread\": [%s, %s],\n", $5, $6
		printf "   \"configuration\": \"deterministic, -cpu max; %s\",\n   \"versions\": {%s}}", $7, all
	}
	END { print "\n]" }' "$out/figures" >"$out/results.json"
}

# The figures against bench/targets.
report() {
	awk -F '\t' -v targets=bench/targets '
	BEGIN {
		while ((getline line < targets) > 0) {
			n = split(line, f, " ")
			if (n < 6 || f[1] == "#") continue
			target[f[1]] = f[3]; kvm[f[1]] = f[4]; xen[f[1]] = f[5]
		}
		row = "%-25s %12s %-13s %10s %-8s %11s %11s  %s\n"
		printf "\n" row, "figure", "value", "unit", "target", "", "KVM 6.12", "Xen 4.17",
			"min..max (samples)"
	}
	{
		t = ($1 in target) ? target[$1] : "-"
		verdict = (t == "-") ? "" : (($2 + 0 <= t + 0) ? "met" : "not met")
		printf row, $1, $2, $3, t, verdict, kvm[$1], xen[$1], $5 ".." $6 " (" $4 ")"
		if (verdict != "") all++
		if (verdict == "met") met++
	}
	END { printf "%d of %d targets met\n", met, all }' "$out/figures"
}

# name value, one a line, of a results file as write_results() makes it.
values() {
	sed -n 's/.*{"name": "\([^"]*\)", "value": \([^,]*\),.*/\1 \2/p' "$1"
}

# Whether build/bench/results.json is as good as the reference.
check() {
	[ -r "$reference" ] || { echo "bench: no $reference to compare with" >&2 && return 1; }
	[ -r "$out/results.json" ] || { echo "bench: run make bench first" >&2 && return 1; }
	values "$reference" >"$out/old"
	values "$out/results.json" >"$out/new"
	awk '
	FILENAME ~ /targets$/ { if (NF == 6 && $1 != "#" && $6 != "-") gate[$1] = $6; next }
	FILENAME ~ /old$/ { old[$1] = $2; order[++all] = $1; next }
	{ new[$1] = $2 }
	END {
		for (i = 1; i <= all; i++) {
			name = order[i]
			if (!(name in gate)) continue
			if (!(name in new)) { printf "%s %s (not measured now)\n", name, old[name]; bad = 1 }
			else if (new[name] > old[name] * (1 + gate[name] / 100)) {
				printf "%s %s %s worse by %.1f %%\n", name, old[name], new[name], (new[name] / old[name] - 1) * 100
				bad = 1
			} else n++
		}
		printf "%d figures are as good as in the reference\n", n
		exit bad
	}' bench/targets "$out/old" "$out/new"
}
