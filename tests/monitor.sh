# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154 # who sources it sets $dir and $mode
# For tests that drive the monitor by way of the serial port, as somebody at a terminal would. Source it
# after tap.sh.
run=
patience=120 # seconds that something may take; the machine gets four times as many, or $limit

# machine CONF PCPUS: starts it; keys go to descriptor 8.
machine() {
	rm -f "$dir/keys"
	mkfifo "$dir/keys"
	build/paravane run "$dir/$1" --cpus "$2" --mode "$mode" --log-dir "$dir/$1.log" --timeout "${limit:-$((4 * patience))}" \
		<"$dir/keys" >"$dir/out" 2>"$dir/err" &
	run=$!
	exec 8>"$dir/keys"
	log=$dir/$1.log/console.log
	trap 'kill $run 2>/dev/null; wait $run; exit 1' TERM INT HUP
}

keys() { printf '%b' "$1" >&8; }

# Waits until the log has N (1) lines that match.
sees() { # PATTERN [N]
	for _ in $(seq $((10 * patience))); do
		[ -r "$log" ] && [ "$(grep -cE "$1" "$log")" -ge "${2:-1}" ] && return 0
		kill -0 "$run" 2>/dev/null || break
		sleep 0.1
	done
	[ -r "$log" ] && [ "$(grep -cE "$1" "$log")" -ge "${2:-1}" ]
}

# How the machine ended.
ends() { # EXIT-CODE
	exec 8>&-
	wait "$run"
	[ $? -eq "$1" ]
	ok "$2" || note "$dir/err"
}

# Waits until MS milliseconds of the machine's time have passed; says how many it became. VM: one whose
# counters are asked for meanwhile.
passes() { # VM MS
	local before n t
	before=$(grep -c 'stats end' "$log")
	for n in $(seq 400); do
		keys "stats $1\\r"
		sees 'stats end' $((before + n)) || return 1
		t=$(tr -d '\r' <"$log" | sed -n 's/.*stats end clock=//p' | tail -n "$n" |
			awk 'NR == 1 { a = $1 } { b = $1 } END { printf "%d", (b - a) / 1e6 }')
		[ "$t" -lt "$2" ] || break
		sleep 0.3
	done
	echo "# $t ms of the machine's time"
	[ "$t" -ge "$2" ]
}
