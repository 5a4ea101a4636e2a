#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# `paravane trace` on traces that are written here byte by byte. Prints TAP.
set -u
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=tests/tap.sh
. tests/tap.sh
tool=$PWD/build/paravane nesting=$PWD/tests/nesting.awk
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

t() { # CODE ARGUMENTS: runs it, output in out and err
	local want=$1
	shift
	"$tool" trace "$@" >out 2>err </dev/null
	[ $? -eq "$want" ]
}
varint() {
	local n=$1 hex=''
	while [ "$n" -ge 128 ]; do
		hex+=$(printf '\\x%02x' $((n & 127 | 128)))
		n=$((n >> 7))
	done
	# shellcheck disable=SC2059 # the format is the bytes
	printf "$hex\\x$(printf %02x "$n")"
}
# Records of "EVENT WHO ARG STEP" each, in base64; events count as in include/abi/trace.h.
records() {
	for r; do
		# shellcheck disable=SC2086 # words
		set -- $r
		varint "$1" && varint "$2" && varint "$3" && varint $(($4 * 2))
	done | base64 -w 0
}
state() { echo $(($1 | $2 << 4 | $3 << 8)); } # FROM TO WHY
off=0 blocked=1 runnable=2 running=3
wake=0 pick=1 migration=2 block=7

# vCPU 0 waits 100, runs 1000 on CPU 0 (800 in its guest), sleeps 2900, runs 6000 on CPU 0. The wake, by CPU 1,
# and the second run have the same time. vCPU 1 stays off.
whole() {
	echo "paravane: trace begin version=1 hz=1000000000 cpus=2 vms=1 from=1000 to=11000"
	echo "paravane: trace vm vm=0 vcpus=2 name=a"
	echo "paravane: trace vcpu vm=0 vcpu=0 from=1000 to=11000 off=0 blocked=2900 runnable=100 running=7000"
	echo "paravane: trace vcpu vm=0 vcpu=1 from=1000 to=11000 off=10000 blocked=0 runnable=0 running=0"
	echo "paravane: trace data cpu=0 first=0 time=1000 $(records "0 0 $(state $off $runnable $wake) 0" \
		"0 0 $(state $runnable $running $pick) 100" "2 0 0 100" "5 0 27 0" "1 0 0 800")"
	echo "paravane: trace data cpu=0 first=5 time=2100 $(records "0 0 $(state $running $blocked $block) 0" \
		"3 0 1 100" "3 0 0 2700" "0 0 $(state $runnable $running $migration) 100" "2 0 0 200")"
	echo "paravane: trace end cpu=0 records=10 lost=0"
	echo "paravane: trace data cpu=1 first=0 time=5000 $(records "0 0 $(state $blocked $runnable $wake) 0" "6 0 0 10")"
	echo "paravane: trace end cpu=1 records=2 lost=0"
	echo "paravane: trace end records=12 lost=0"
}
whole >whole.txt
t 0 whole.txt --summary && grep -q '^a 0 .* 0.007/ *0.007 .* 5 *1$' out
ok "a trace that says what the counters say" || note out
grep -qx 'largest difference 0 ppm, 0 changes that follow on none' out && grep -q '12 records, 0 lost, 0 missing$' out
ok "changes of the same time are put into their order" || note out

t 0 whole.txt -o t.json && [ ! -s out ] && [ ! -s err ]
ok "JSON is written" || note err
if command -v python3 >/dev/null; then
	python3 -m json.tool t.json >/dev/null
	ok "and it is JSON"
else
	skip "and it is JSON" "there is no python3 on this machine"
fi
awk -f "$nesting" t.json >n && [ "$(wc -l <n)" -eq 1 ]
ok "events are in order, slices nest" || note n
has() { grep -qxF "$1," t.json; }
has '{"ph":"X","pid":1,"tid":0,"ts":0.100,"dur":1.000,"name":"a vCPU 0","cat":"vcpu"}' &&
	has '{"ph":"X","pid":1,"tid":0,"ts":0.100,"dur":0.100,"name":"hypervisor","cat":"hypervisor"}' &&
	has '{"ph":"X","pid":1,"tid":0,"ts":1.200,"dur":2.700,"name":"idle","cat":"idle"}' &&
	has '{"ph":"X","pid":1,"tid":0,"ts":4.000,"dur":6.000,"name":"a vCPU 0","cat":"vcpu"}'
ok "a CPU's track: vCPU, hypervisor, idle" || note t.json
has '{"ph":"X","pid":2,"tid":0,"ts":0.100,"dur":1.000,"name":"running","cat":"state","args":{"why":"pick"}}' &&
	has '{"ph":"X","pid":2,"tid":0,"ts":1.100,"dur":2.900,"name":"blocked","cat":"state","args":{"why":"block"}}' &&
	has '{"ph":"X","pid":2,"tid":0,"ts":1.000,"dur":0.100,"name":"exit wfi","cat":"exit","args":{"detail":"0x000000"}}' &&
	has '{"ph":"X","pid":2,"tid":0,"ts":4.000,"dur":0.200,"name":"exit wfi","cat":"exit","args":{"detail":"0x000000"}}'
ok "a vCPU's track: states with reasons, an exit cut where it lost its CPU" || note t.json
has '{"ph":"i","pid":2,"tid":0,"ts":0.200,"name":"inject","cat":"event","s":"t","args":{"arg":27}}'
ok "an injection" || note t.json
has '{"ph":"M","pid":2,"tid":0,"name":"process_name","args":{"name":"VM a"}}' &&
	has '{"ph":"M","pid":2,"tid":1,"name":"thread_name","args":{"name":"a vCPU 1"}}' &&
	has '{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"CPU 1"}}'
ok "names of the tracks" || note t.json


# A deadline at 5500 for which vCPU 0 came 40 early (and one at 5700, 30 late), recorded at 6000 and after; the advance becomes 1100.
{
	sed -n 1,5p whole.txt
	echo "paravane: trace data cpu=0 first=5 time=6000 $(records "9 0 500 0" "10 0 4294967256 0" "11 0 $((1000 << 16 | 1100)) 0" \
		"9 0 400 100" "10 0 30 0" "11 0 $((1100 << 16 | 1070)) 0")"
	echo "paravane: trace end cpu=0 records=11 lost=0"
	echo "paravane: trace data cpu=1 first=0 time=7000 $(records "9 0 4294967295 0")"
	echo "paravane: trace end cpu=1 records=1 lost=0"
	echo "paravane: trace end records=12 lost=0"
} >advance.txt
t 0 advance.txt -o t.json &&
	has '{"ph":"i","pid":2,"tid":0,"ts":4.500,"name":"deadline","cat":"event","s":"t","args":{"arg":500}}' &&
	has '{"ph":"C","pid":2,"tid":0,"ts":4.500,"name":"lateness, vCPU 0","args":{"ns":-40}}' &&
	has '{"ph":"C","pid":2,"tid":0,"ts":5.000,"name":"advance, vCPU 0","args":{"ns":1100}}' &&
	has '{"ph":"C","pid":2,"tid":0,"ts":4.700,"name":"lateness, vCPU 0","args":{"ns":30}}' &&
	has '{"ph":"C","pid":2,"tid":0,"ts":5.100,"name":"advance, vCPU 0","args":{"ns":1070}}' &&
	has '{"ph":"i","pid":2,"tid":0,"ts":0.000,"name":"deadline","cat":"event","s":"t","args":{"arg":4294967295}}'
ok "timer advancement: a counter for the advance, one for the lateness at its deadline" || note t.json
awk -f "$nesting" t.json >n && [ "$(wc -l <n)" -eq 1 ]
ok "and they are in order" || note n

{ echo '[a] paravane: trace begin' && sed 's/$/\r/' whole.txt && echo 'other' && sed 's/vcpus=2/vcpus=3/' whole.txt; } >log
t 1 log --summary && grep -q '^a 2 ' out && sed 's/vcpus=2/vcpus=3/' whole.txt >three && t 1 three --summary
ok "out of a console with other lines: the last trace counts" || note out
sed 's/running=7000/running=7020/' whole.txt >w && t 1 w --summary && grep -q 'largest difference 2000 ppm' out
ok "counters that say something else" || note out
sed 's/running=7000/running=7005/' whole.txt >w && t 0 w --summary
ok "less than 0.1 % is no difference" || note out
grep -v 'first=5' whole.txt >w && t 1 w --summary && grep -q ' 7 records, 0 lost, 5 missing' out && t 0 w -o t.json && grep -q '5 missing' err
ok "a line that got lost" || note out
sed 's/first=0 time=1000/first=20 time=1000/; s/first=5/first=25/; s/records=10 lost=0/records=30 lost=20/; s/records=12 lost=0/records=32 lost=20/' whole.txt >w
t 1 w --summary && grep -q ' 12 records, 20 lost, 0 missing' out
ok "records that the machine lost" || note out
sed '$d' whole.txt >w && t 1 w --summary && grep -q 'the end is missing' out
ok "a trace without its end" || note out
grep -v 'cpu=1' whole.txt >w && t 1 w --summary && grep -q '[1-9] changes that follow on none' out
ok "a change of state that is not there" || note out

refused() { # NAME SED-SCRIPT WORDS
	sed "$2" whole.txt >w
	t 1 w --summary && [ ! -s out ] && grep -qF -- "$3" err
	ok "refused: $1" || note err
}
refused "no trace" d 'found no trace'
refused "no beginning" 1d "line 1: found 'vm=0 vcpus=2 name=a', expected 'trace begin' first"
refused "another version" 's/version=1/version=2/' 'line 1'
refused "no clock" 's/hz=1000000000/hz=0/' 'expected a clock, CPUs and a time'
refused "too many CPUs" 's/cpus=2 vms/cpus=129 vms/' ' cpus='
refused "a VM out of turn" 's/vm vm=0/vm vm=1/' 'the next VM'
refused "a name that is none" 's/name=a/name="/' "a VM's name"
refused "a vCPU that is not there" 's/vcpu=1 /vcpu=2 /' 'a vCPU that there is'
refused "a time outside" 's/vcpu=1 from=1000/vcpu=1 from=999/' 'a time in the trace'
refused "a number that is too long" 's/running=7000/running=99999999999999999999/' ' running='
refused "bytes that are no base64" '/first=5/s/.$/!/' 'base64'
refused "half a record" "/first=5/s/ [^ ]*\$/ $(printf '\0\0' | base64)/" 'whole records'
refused "an event that is not known" "/first=5/s/ [^ ]*\$/ $(records '99 0 0 0')/" 'a known event'
refused "a state that is none" "/first=5/s/ [^ ]*\$/ $(records '0 0 79 0')/" 'a known event'
refused "a record of a VM that is not there" "/first=5/s/ [^ ]*\$/ $(records '6 256 0 0')/" 'a vCPU that there is'
refused "records again" 's/first=5/first=4/' 'records after the last ones'
refused "a line of another kind" 's/trace vm vm/trace wm vm/' 'begin, vm, vcpu, data or end'
t 2 nowhere --summary && grep -q 'cannot read nowhere' err
ok "no such file" || note err
t 2 whole.txt && t 2 --summary && t 2 whole.txt whole.txt -o x && t 2 --other && t 0 --help && grep -q '^usage: paravane trace' out
ok "bad usage"
t 1 whole.txt -o no/such/folder && grep -q 'cannot write no/such/folder' err
ok "a file that cannot be written" || note err
bad=''
for n in $(seq 1 7 "$(wc -c <whole.txt)"); do
	head -c "$n" whole.txt >w
	"$tool" trace w --summary -o t.json >out 2>err
	[ $? -le 1 ] || bad=$n
done
[ -z "$bad" ]
ok "cut anywhere: said, and no crash" || echo "# at $bad"
plan
