#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# `paravane run --monitor` and `paravane top` with a scripted machine. Prints TAP.
set -u
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
tool=$PWD/build/paravane
dir=$(mktemp -d)
run=
trap '[ -z "$run" ] || kill $run 2>/dev/null; exec 8>&-; wait; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export PARAVANE_QEMU=$dir/qemu PARAVANE_IMAGE=$dir/image TMPDIR=$dir
unset MUTE BROKEN

# The machine: one key opens and closes its monitor, which knows `stats`. What it is sent while the monitor is
# closed is in the file guest. Its clock runs two seconds between two answers.
cat >qemu <<-'END'
	#!/bin/bash
	[ "$1" = --version ] && echo 'QEMU emulator version 11.1.3' && exit 0
	LC_ALL=C n=0 open= line=
	echo 'paravane: hello'
	stats() {
		echo "paravane: stats vm=a vcpu=0 running=$((n * 1000000000)) runnable=$((n * 500000000)) blocked=$((n * 500000000)) off=0 longest_wait=1234500 switches=$((n * 200)) migrations=$((n * 20)) exits=wfi:$((n * 100)),hvc:7,irq:$((n * 50))"
		echo "paravane: exit-times vm=a vcpu=0 wfi=$((n * 450000)),9000 hvc=70,10 irq=$((n * 100000)),8000"
		echo "[a] paravane: stats vm=a vcpu=0 running=1"
		echo "paravane: stats vm=a vcpu=1 running=0 runnable=0 blocked=$((n * 1000000000)) off=$((n * 1000000000)) longest_wait=7 switches=0 migrations=0 exits=wfi:0,hvc:0,irq:0"
		echo "paravane: exit-times vm=a vcpu=1"
		echo "paravane: stats vm=long-name-of-31-bytes_012345678 vcpu=0 running=$((n * 2000000000)) runnable=0 blocked=0 off=0 longest_wait=0 switches=0 migrations=0 exits=wfi:0,hvc:$n,irq:0"
		echo "paravane: stats cpu=0 guest=$((n * 1000000000)) hypervisor=$((n * 500000000)) idle=$((n * 500000000))"
		echo "paravane: stats cpu=1 guest=$((n * 2000000000)) hypervisor=0 idle=0"
		[ -z "$BROKEN" ] || exit 0
		echo "paravane: stats end clock=$((n * 2000000000))"
	}
	while IFS= read -r -d '' -n 1 key; do
		if [ "$key" = $'\x1d' ]; then
			[ -z "$open" ] && open=y || open=
			[ -n "$MUTE" ] || echo $'\r'
			[ -z "$open" ] || [ -n "$MUTE" ] || printf 'the monitor\r\nparavane> '
		elif [ -z "$open" ]; then
			printf %s "$key" >>guest
			[ "$key" != Q ] || { echo 'paravane: vm a: off' && exit 0; }
		elif [ "$key" = $'\r' ]; then
			echo $'\r'
			[ "$line" != stats ] || { n=$((n + 1)) && stats | sed 's/$/\r/'; }
			[ -z "$BROKEN" ] || [ "$line" != stats ] || exit 0
			line=
			printf 'paravane> '
		else
			line+=$key
			printf %s "$key"
		fi
	done
END
chmod +x qemu
echo image >image
printf '[vm a]\nkernel = image\nmemory = 1M\nvcpus = 1\n' >a.conf

machine() { # starts it; its keys are descriptor 8
	rm -f keys guest
	mkfifo keys
	"$tool" run a.conf --monitor sock --timeout 100 <keys >run.out 2>run.err &
	run=$!
	exec 8>keys
	until_in 'paravane: hello' run.out
}
until_in() { # TEXT FILE
	for _ in $(seq 100); do
		grep -qsF -- "$1" "$2" && return 0
		sleep 0.1
	done
	return 1
}
t() { # CODE ARGUMENTS: runs it, output in out and err
	local want=$1 rc
	shift
	"$tool" top "$@" >out 2>err </dev/null
	rc=$?
	[ $rc -eq "$want" ] || { echo "exit code $rc" >>err && return 1; }
}
err_has() { grep -qF -- "$1" err; }
ended() { # CODE: the run, with this exit code
	wait "$run"
	local rc=$?
	run=
	exec 8>&-
	[ $rc -eq "$1" ]
}

t 0 --help && grep -q '^usage: paravane top SOCKET' out
ok 'help'
t 2 && err_has 'one SOCKET is expected, found 0' && t 2 a b && err_has 'found 2'
ok 'top without its argument, and with two'
for interval in 0 0.05 -1 nan inf 4000 1x ''; do
	t 2 sock --interval "$interval" && err_has "found '$interval', expected --interval"
	ok "top refuses --interval '$interval'"
done
t 2 none && err_has 'cannot reach a machine by none: No such file'
ok 'no such socket'
t 2 "$(printf %0200d 0)" && err_has 'expected 1 to 107'
ok 'a name that is too long'
"$tool" run a.conf --monitor no/sock >out 2>err </dev/null
[ $? -eq 2 ] && err_has 'cannot make the socket no/sock: No such file'
ok 'run: a socket that cannot be made'
"$tool" run a.conf --monitor image >out 2>err </dev/null
[ $? -eq 2 ] && err_has 'cannot make the socket image: Address already in use' && [ "$(cat image)" = image ]
ok 'run: a file in its place is left alone'

machine && [ "$(stat -c %a sock)" = 600 ]
ok 'run: only the owner may use the socket'
t 0 sock --once --interval 0.1 --vcpus && [ ! -s err ] && sed 's/ *$//' out | diff - <(sed 's/^X$//' <<-'END'
	machine's clock: 4.000 s; shown: the last 2.000 s
	X
	VM                              vCPUs   CPU %  WAIT % BLOCK % LONGEST us  SWITCH/s  MIGR/s    EXIT/s  REASON=N/s(mean us)
	a                                   2    50.0    25.0    75.0     1234.5       100      10        75  wfi=50(4.5) irq=25(2.0)
	                                   #0    50.0    25.0    25.0     1234.5       100      10        75  wfi=50(4.5) irq=25(2.0)
	                                   #1     0.0     0.0    50.0        0.0         0       0         0
	long-name-of-31-bytes_012345678     1   100.0     0.0     0.0        0.0         0       0         0  hvc=0(0.0)
	                                   #0   100.0     0.0     0.0        0.0         0       0         0  hvc=0(0.0)
	total                               3   150.0    25.0    75.0     1234.5       100      10        76  wfi=50(4.5) hvc=0(0.0) irq=25(2.0)
	X
	CPU   GUEST % HYPERVISOR %  IDLE %
	0        50.0         25.0    25.0
	1       100.0          0.0     0.0
	total   150.0         25.0    25.0
END
) >diff.txt
ok 'one table, with vCPUs: every figure' || note diff.txt
t 0 sock --once --interval 0.1 && ! grep -q '#0' out && grep -q '^a  *2 ' out
ok 'again, without vCPUs' || note err
printf x >&8
until_in x guest && [ "$(cat guest)" = x ]
ok 'top leaves the monitor closed: nothing it sent came to the guest' || note guest
printf '\x1d' >&8
sleep 1 # Ctrl-] toggles: it must be there before top's
t 0 sock --once --interval 0.1 && printf 'y\r' >&8 && until_in 'paravane> y' run.out && [ "$(cat guest)" = x ]
ok 'a monitor that is open is found open, and left open' || note err
printf '\x1d' >&8
sleep 0.5

timeout --preserve-status -s INT 4 "$tool" top sock --interval 0.1 >out 2>err </dev/null &&
	[ "$(grep -c '^total  *3 ' out)" -gt 2 ] && ! grep -q $'\033' out
ok 'table after table until SIGINT, and no controls when it is no terminal' || note err
if command -v script >/dev/null; then
	(sleep 2 && printf q) | timeout 20 script -qec "stty rows 10 cols 60; stty -g; '$tool' top sock --interval 0.1; echo rc \$?; stty -g" typed >out 2>err
	tr -d '\r' <out >plain
	grep -q 'rc 0$' plain && grep -q $'\033\\[H' plain &&
		[ "$(head -n 1 plain)" = "$(tail -n 1 plain)" ] && ! grep -q REASON plain
	ok 'on a terminal: q ends it, the terminal is as before, long lines are cut' || note plain
else
	skip 'on a terminal' 'needs script'
fi

"$tool" top sock --interval 100 >first.out 2>first.err </dev/null &
first=$!
sleep 1
t 1 sock --once && err_has 'another program uses the monitor' && [ "$(wc -l <err)" -eq 1 ]
ok 'one program at a time' || note err
{ kill -KILL $first && wait $first; } 2>/dev/null
sleep 0.5
printf '\x1d' >&8 # it could not
t 0 sock --once --interval 0.1
ok 'the next one comes when it is gone, however it went' || note err
"$tool" top sock --interval 100 >first.out 2>first.err </dev/null &
first=$!
sleep 1
printf '\x1dQ' >&8
wait $first
[ $? -eq 1 ] && grep -qF 'the machine has ended' first.err
ok 'the machine ends: top says so' || note first.err
ended 0 && [ ! -e sock ]
ok 'run: the socket is gone, and nothing else has changed' || note run.err

MUTE=1 machine
t 1 sock --once && err_has 'has not answered for 10 s'
ok 'a machine that does not answer' || note err
"$tool" run a.conf --monitor sock >out 2>err </dev/null
[ $? -eq 2 ] && err_has 'Address already in use' && [ -S sock ]
ok 'run: a socket in use is left alone' || note err
{ kill -KILL $run && wait $run; } 2>/dev/null
run=
exec 8>&-
t 2 sock && err_has 'its run has ended'
ok 'the socket of a run that was killed' || note err
BROKEN=1 machine
ok 'run: it is replaced' || note run.err
t 1 sock --once && err_has 'the machine has ended' && [ ! -s out ]
ok 'a machine that ends within an answer' || note err
ended 1 && [ ! -e sock ]
ok 'run: the socket is gone after a failure' || note run.err

# ---- what run's own terminal lets through ----
if command -v script >/dev/null; then
	(sleep 2 && printf '\x11a\x1c\x1a\x1d' && sleep 1 && printf 'z\r\x1dQ') |
		timeout 20 script -qec "stty -g; '$tool' run a.conf; echo rc \$?; stty -g" typed >out 2>err
	tr -d '\r' <out >plain
	# Ctrl-Q, a, Ctrl-\, Ctrl-Z to the guest; Ctrl-] and the line to the monitor
	[ "$(tail -c 5 guest)" = $'\x11a\x1c\x1aQ' ] && grep -q 'paravane> z' plain && grep -q 'rc 0$' plain &&
		[ "$(head -n 1 plain)" = "$(tail -n 1 plain)" ]
	ok "run: a terminal's keys arrive raw, Ctrl-] too, and it is as before" || note plain
else
	skip "run: a terminal's keys" 'needs script'
fi
plan
