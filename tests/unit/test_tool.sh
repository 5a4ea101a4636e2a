#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The command `paravane` against scripted emulators: output, exit codes, logs, report. Prints TAP.
# usage: test_tool.sh [PARAVANE]     (default: $PARAVANE_TOOL, else build/paravane)
set -u
cd "$(dirname "$0")/../.." || exit 1
tool=$(realpath "${1:-${PARAVANE_TOOL:-build/paravane}}")
[ -x "$tool" ] || { echo "Bail out! no program $tool" && exit 1; }

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
mkdir tmp sub
export TMPDIR=$dir/tmp HOME=$dir XDG_CACHE_HOME=$dir/cache PARAVANE_QEMU=$dir/qemu PARAVANE_IMAGE=$dir/image
export LC_ALL=C
unset FAKE_VERSION

count=0 failed=0
ok() { # NAME: the exit code of the command before decides
	local rc=$?
	count=$((count + 1))
	if [ $rc -eq 0 ]; then
		echo "ok $count - $1"
	else
		failed=$((failed + 1))
		echo "not ok $count - $1"
		sed 's/^/# out: /' out
		sed 's/^/# err: /' err
	fi
}
# Runs the tool: output in out and err; says whether the exit code is the one expected.
t() {
	local want=$1 rc
	shift
	"$tool" "$@" >out 2>err </dev/null
	rc=$?
	[ $rc -eq "$want" ] || { echo "exit code $rc instead of $want" >>err && return 1; }
}
# A blank at the end of a line is written as "<", so that editors leave it alone.
is() { # FILE holds exactly standard input
	sed 's/<$/ /' | diff - "$1" >diff.txt || { cat diff.txt >>err && return 1; }
}
err_has() { grep -qF -- "$1" err; }
out_has() { grep -qF -- "$1" out; }
no_leftovers() { [ -z "$(ls -A tmp)" ]; }

# ---- files for the descriptions ----
u64() { # N as 8 bytes, little-endian
	local n=$1
	for _ in 1 2 3 4 5 6 7 8; do
		# shellcheck disable=SC2059 # the format is the byte
		printf "\\x$(printf %02x $((n & 255)))"
		n=$((n >> 8))
	done
}
make_image() { # FILE IMAGE_SIZE
	{
		printf 'MZ\0\0\0\0\0\0'
		u64 0
		u64 "$2"
		head -c 32 /dev/zero
		printf 'ARMd\0\0\0\0'
	} >"$1"
}
make_image kernel $((3 << 20))
printf 'raw program' >raw
printf 'initrd' >initrd
printf '\xd0\x0d\xfe\xed\0\0\0\x0c1234' >good.dtb
printf '\xd0\x0d\xfe\xed\0\0\0\x0d1234' >short.dtb
printf '\x7fELF rest of it' >elf
printf 'MZ\0\0zimg' >zboot
{
	printf '\x1f\x8b rest of a compressed kernel'
	u64 $((5 << 20)) | head -c 4
} >kernel.gz
printf '\x1f\x8b' >cut.gz
: >empty
printf 'another' >sub/raw
echo image >image
cp raw 'name with spaces'
cat >two.conf <<-'END'
	# two machines
	[machine]
	slice = 1ms
	[vm a]
	kernel = kernel   # the Image
	initrd=initrd
	cmdline = kernel # initrd
	memory = 64M
	vcpus = 4
	[vm b]
	kernel = ./sub/../kernel
	initrd = sub/raw
	dtb = good.dtb
	memory = 32M
	vcpus = 1
	weight = 512
	cpus = 0,2-5
	autostart = yes
END
one() { # a description of one VM "a", with these further or other lines
	printf '[vm a]\nkernel = raw\nmemory = 1M\nvcpus = 2\n'
	printf '%s\n' "$@"
}
one >one.conf

# ---- help and usage ----
t 0 --help && out_has 'usage: paravane COMMAND'
ok 'help'
for command in check pack run report; do
	t 0 $command --help && out_has "usage: paravane $command" && [ ! -s err ]
	ok "help of $command"
done
t 0 --version && grep -qE '^paravane [0-9]' out
ok 'version'
t 2 && err_has 'a command is missing'
ok 'no command'
t 2 chekc && err_has "found 'chekc', expected a command"
ok 'unknown command'
for command in check pack run report; do
	t 2 $command && err_has "paravane $command: one " && err_has 'found 0'
	ok "$command without its argument"
	t 2 $command one.conf two.conf && err_has 'found 2'
	ok "$command with two of them"
	t 2 $command --colour one.conf && err_has "unrecognized option '--colour'" && err_has "paravane $command --help"
	ok "$command with an unknown option"
done

# ---- check ----
t 0 check two.conf && [ ! -s err ] && is out <<-'END'
	vm a: 4 vcpus, 64M, weight 256, cpus all, kernel Image 0.1K, initrd 0.1K
	vm b: 1 vcpu, 32M, weight 512, cpus 0,2-5, kernel Image 0.1K, initrd 0.1K, dtb 0.1K
	total: 2 VMs, 5 vcpus, 96M
END
ok 'check prints a summary'
{ one 'autostart = no' 'cpus = 127' && one | sed 's/vm a/vm b/'; } >idle.conf
t 0 check idle.conf && is out <<-'END'
	vm a: 2 vcpus, 1M, weight 256, cpus 127, kernel raw 0.1K, not started
	vm b: 2 vcpus, 1M, weight 256, cpus all, kernel raw 0.1K
	total: 2 VMs, 4 vcpus, 2M
END
ok 'check of a raw kernel'
printf '[vm a]\nkernel = kernel.gz\nmemory = 5M\nvcpus = 1\n' >c.conf
t 0 check c.conf && out_has 'kernel gzip 0.1K'
ok 'check of a gzip kernel'
mkdir deep && one | sed "s,raw,../raw," >deep/c.conf && t 0 check deep/c.conf
ok 'file names count from the folder of the description'
one | sed "s,raw,$dir/raw," >deep/c.conf && t 0 check deep/c.conf
ok 'absolute file names'
one | sed 's/= raw/= name with spaces/' >c.conf && t 0 check c.conf
ok 'file names with spaces'
t 2 check no.conf && err_has 'cannot read no.conf: No such file'
ok 'no such description'
t 2 check sub && err_has 'cannot read sub: Is a directory'
ok 'a folder as description'
t 2 check empty && err_has 'empty: found nothing, expected at least one [vm NAME] section'
ok 'an empty description'
head -c 300000 /dev/zero | tr '\0' '\n' >c.conf && t 2 check c.conf && err_has 'File too large'
ok 'a description that is too large'
one 'autostart = no' >c.conf && t 2 check c.conf && err_has 'c.conf: found autostart = no in each [vm NAME], expected yes in at least one'
ok 'check refuses a machine that starts nothing'
one 'colour = red' >c.conf && t 2 check c.conf && err_has "c.conf:5: [vm a]: found unknown key 'colour'"
ok 'the error names file and line'

bad_file() { # KEY FILE PART-OF-THE-MESSAGE
	one "$1 = $2" | { if [ "$1" = kernel ]; then sed '/= raw/d'; else cat; fi; } >c.conf
	t 2 check c.conf && [ ! -s out ] && err_has "[vm a] $1: found '$2' ($2: $3" && grep -qE '^c.conf:[45]: ' err
	ok "check refuses $1 = $2"
}
bad_file kernel nothing 'No such file or directory), expected a file that can be read'
bad_file kernel sub 'is a folder), expected'
bad_file kernel empty 'is empty), expected'
bad_file kernel elf 'is an ELF file), expected an arm64 Image'
bad_file kernel zboot 'is a self-extracting EFI program (zboot)), expected'
bad_file kernel cut.gz 'is cut short), expected'
bad_file initrd nothing 'No such file or directory), expected'
bad_file initrd empty 'is empty), expected'
bad_file initrd /dev/null 'is not a regular file), expected'
bad_file dtb raw 'is not a device tree blob), expected a device tree blob'
bad_file dtb short.dtb 'is cut short), expected a device tree blob'
mkfifo fifo
bad_file kernel fifo 'is not a regular file'
printf '[vm a]\nkernel = kernel\nmemory = 2M\nvcpus = 1\n' >c.conf
t 2 check c.conf && err_has "c.conf:3: [vm a] memory: found '2M', expected at least 3M"
ok 'check refuses a kernel that does not fit'
printf '[vm a]\nkernel = kernel.gz\nmemory = 4M\nvcpus = 1\n' >c.conf
t 2 check c.conf && err_has "expected at least 5M"
ok 'check refuses a gzip kernel that does not fit'
truncate -s 2M big && one 'initrd = big' >c.conf
t 2 check c.conf && err_has "c.conf:3: [vm a] memory: found '1M', expected at least 2.1M"
ok 'check refuses an initrd that does not fit'
{ one 'initrd = nothing' && one | sed 's/vm a/vm b/;s/raw/elf/'; } >c.conf
t 2 check c.conf && [ "$(wc -l <err)" -eq 2 ]
ok 'check reports every bad file'

# ---- pack ----
t 0 pack two.conf -o boot.cpio && [ ! -s out ] && [ ! -s err ]
ok 'pack'
cpio --quiet -t <boot.cpio >out 2>err && is out <<-'END'
	machine.conf
	kernel
	initrd
	raw
	good.dtb
END
ok 'the archive has each file once, the description first'
mkdir x && (cd x && cpio --quiet -i <../boot.cpio) 2>err && cmp x/kernel kernel && cmp x/initrd initrd &&
	cmp x/raw sub/raw && cmp x/good.dtb good.dtb && sed 's,\./sub/\.\./,,;s,sub/raw,raw,' two.conf | is x/machine.conf
ok 'files as they were, only file names changed'
t 0 pack two.conf -o again.cpio && cmp boot.cpio again.cpio
ok 'packing again gives the same bytes'
touch -d 2001-01-01 kernel initrd && chmod 600 initrd && t 0 pack -o again.cpio two.conf && cmp boot.cpio again.cpio
ok 'times and permissions do not matter'
[ "$(stat -c %a boot.cpio)" = "$(printf %o $((0666 & ~$(umask))))" ]
ok 'the archive has ordinary permissions'
mkdir p && printf conf >p/machine.conf
{ one 'initrd = sub/raw' && one 'initrd = p/machine.conf' | sed 's/vm a/vm b/'; } >c.conf
t 0 pack c.conf -o c.cpio && cpio --quiet -t <c.cpio >out 2>err && is out <<-'END'
	machine.conf
	raw
	2-raw
	2-machine.conf
END
ok 'equal names of unlike files are told apart'
cpio --quiet -i --to-stdout machine.conf <c.cpio 2>err | sed -n '5p;10p' >out && is out <<-'END'
	initrd = 2-raw
	initrd = 2-machine.conf
END
ok 'and the description uses those names'
printf '\xef\xbb\xbf[vm a]\r\nkernel = sub/raw # x\r\nmemory=1M\r\nvcpus=1' >c.conf
t 0 pack c.conf -o c.cpio && cpio --quiet -i --to-stdout machine.conf <c.cpio 2>err >out &&
	printf '\xef\xbb\xbf[vm a]\r\nkernel = raw # x\r\nmemory=1M\r\nvcpus=1' | cmp - out
ok 'line ends and byte order mark stay'
ln -f raw hardlink && one 'initrd = hardlink' >c.conf && t 0 pack c.conf -o c.cpio && cpio --quiet -t <c.cpio >out 2>err &&
	printf 'machine.conf\nraw\n' | is out
ok 'two names of one file are one file'
t 2 pack one.conf && err_has '-o FILE is missing'
ok 'pack needs -o'
t 2 pack c.conf -o && err_has 'requires an argument'
ok 'pack -o needs a name'
one 'initrd = nothing' >c.conf && t 2 pack c.conf -o none.cpio && [ ! -e none.cpio ]
ok 'a bad description is not packed'
t 1 pack one.conf -o nowhere/x && err_has 'cannot write nowhere/x: No such file'
ok 'no such folder to write to'
t 1 pack one.conf -o sub && err_has 'is not a regular file' && t 1 pack one.conf -o /dev/null && [ -c /dev/null ]
ok 'pack replaces regular files only'
one 'initrd = big' | sed 's/1M/4M/' >c.conf && echo before >full.cpio
(ulimit -f 1024 && t 1 pack c.conf -o full.cpio) && err_has 'cannot write full.cpio: File too large' &&
	echo before | is full.cpio && [ -z "$(ls full.cpio.* 2>/dev/null)" ]
ok 'when there is no room, the old file stays and nothing else'

# ---- run ----
# The emulator: it answers --version, notes its arguments, and runs the script in "play".
cat >qemu <<-'END'
	#!/bin/bash
	if [ "$1" = --version ]; then
		echo "QEMU emulator version ${FAKE_VERSION:-11.1.3 (Debian 1:11.1.3+ds-1)}"
		echo 'Copyright'
		exit 0
	fi
	printf '%s\n' "$@" >args
	while [ "$1" != -initrd ]; do shift; done
	cp "$2" packed.cpio
	. ./play
END
chmod +x qemu
play() { cat >play; }
play_good() {
	play <<-'EOF'
		printf 'paravane: 2 CPUs\r\n[a] hello\r\n[b] [a] not a\n[a] \n[b] last'
		printf ' words\n'
		echo 'other'
		echo 'paravane: vm a: off'
		echo 'paravane: vm b: off'
		echo 'paravane: machine off: 2 off, 0 crashed'
	EOF
}
play_good
t 0 run two.conf && [ ! -s err ] && printf 'paravane: 2 CPUs\r\n[a] hello\r\n[b] [a] not a\n[a] \n[b] last words\nother\n%s\n%s\n%s\n' \
	'paravane: vm a: off' 'paravane: vm b: off' 'paravane: machine off: 2 off, 0 crashed' | is out
ok 'run: all powered off'
cmp packed.cpio boot.cpio && no_leftovers
ok 'run hands over the boot archive and removes it'
mapfile -t args <args
archive=${args[-1]}
echo "${args[*]:0:${#args[@]}-1}" >out && is out <<-END
	-M virt,virtualization=on,gic-version=3,dtb-randomness=off -cpu max -smp 2 -m 256M -icount shift=1,sleep=off -seed 1 -rtc base=2026-01-01,clock=vm -netdev user,id=n0 -object filter-buffer,id=f0,netdev=n0,queue=rx,interval=5 -display none -monitor none -serial stdio -no-reboot -kernel $dir/image -initrd
END
ok 'run: the emulator command'
[ ! -e "$archive" ]
ok 'run: the archive is gone afterwards'
for pair in 1: 3:7 4:10 8:20 16:40 64:100 128:100; do
	t 0 run two.conf --cpus ${pair%:*} && if [ -n "${pair#*:}" ]; then
		grep -qx "filter-buffer,id=f0,netdev=n0,queue=rx,interval=${pair#*:}" args
	else
		! grep -q filter args && grep -qx none args
	fi
	ok "run --cpus ${pair%:*}: turns"
done
t 0 run two.conf --mode threads --cpus 4 --cpu max,cntfrq=24000000 --memory 1G && grep -qx tcg,thread=multi args && ! grep -q icount args &&
	grep -qx max,cntfrq=24000000 args && grep -qx 1024M args && grep -qx 4 args
ok 'run --mode threads --cpu --memory'
t 0 run two.conf --memory 300 --mode deterministic && grep -qx 300M args
ok 'run --memory in MiB'
sed 's/32M/1G/' two.conf >c.conf && t 0 run c.conf && grep -qx 1280M args
ok 'run: memory follows the VMs'

t 0 run two.conf --log-dir logs/deep && printf 'hello\n\n' | is logs/deep/a.log && printf '[a] not a\nlast words\n' | is logs/deep/b.log &&
	printf '%s\n' '2 CPUs' 'vm a: off' 'vm b: off' 'machine off: 2 off, 0 crashed' | is logs/deep/paravane.log
ok 'run --log-dir: a log for each'
{ echo '# run: cpus=2 memory=256M cpu=max mode=deterministic qemu=11.1.3' && cat out; } | is logs/deep/console.log
ok 'run --log-dir: everything in console.log'
t 0 run two.conf --log-dir logs/deep && [ "$(wc -l <logs/deep/console.log)" -eq 10 ]
ok 'run --log-dir: logs are replaced'
t 2 run two.conf --log-dir raw/x && err_has 'cannot make the folder raw/x' && no_leftovers
ok 'run --log-dir: a folder that cannot be'
one | sed 's/vm a/vm console/' >c.conf && play <<<"echo '[console] x'; echo 'paravane: vm console: off'" &&
	t 0 run c.conf --log-dir logs && echo x | is logs/console.vm.log && [ "$(wc -l <logs/console.log)" -eq 3 ]
ok 'a VM called console does not take the log of all'

judged() { # EXIT-CODE DESCRIPTION NAME, the play on standard input
	play
	t "$1" run "$2" --log-dir logs && no_leftovers
	ok "$3"
}
judged 1 two.conf 'run: a VM crashed' <<<"echo 'paravane: vm a: off'; echo 'paravane: vm b: crashed: undefined'; echo 'paravane: machine off: 1 off, 1 crashed'"
err_has 'vm b crashed: undefined'
ok 'and which one is said'
judged 1 two.conf 'run: a VM did not end' <<<"echo 'paravane: vm a: off'"
err_has 'vm b did not power off' && ! err_has 'vm a did'
ok 'and which one is said'
judged 0 one.conf 'run: a reboot is no end' <<<"echo 'paravane: vm a: reset'; echo 'paravane: vm a: off'"
judged 1 one.conf 'run: a reboot after an end' <<<"echo 'paravane: vm a: off'; echo 'paravane: vm a: reset'"
judged 1 one.conf 'run: a guest cannot pretend' <<<"echo '[a] paravane: vm a: off'; echo '[b] paravane: vm a: off'"
judged 1 two.conf 'run: names are compared whole' <<<"echo 'paravane: vm a: off'; echo 'paravane: vm bb: off'; echo 'paravane: vm b: offside'"
judged 0 one.conf 'run: the last line may lack its end' <<<"printf 'paravane: vm a: off'"
judged 1 one.conf 'run: the emulator fails' <<<"echo 'paravane: vm a: off'; exit 3"
err_has 'the emulator ended with exit code 3'
ok 'and its exit code is said'
judged 1 one.conf 'run: the emulator is killed' <<<"echo 'paravane: vm a: off'; kill -KILL \$\$"
err_has 'the emulator was ended by signal 9'
ok 'and its signal is said'
judged 1 one.conf 'run: a panic' <<<"echo 'paravane: vm a: off'; echo 'paravane: panic: assertion'"
err_has 'the hypervisor panicked'
ok 'and it is said'
sed -i 's/cpus = 127/cpus = 1/' idle.conf
judged 0 idle.conf 'run: a VM that is not started need not end' <<<"echo 'paravane: vm b: off'"
judged 1 idle.conf 'run: but it may not crash' <<<"echo 'paravane: vm b: off'; echo 'paravane: vm a: crashed: PC 0'"
judged 0 one.conf 'run: very long lines' <<<"printf '[a] '; head -c 100000 /dev/zero | tr '\\0' x; echo; echo 'paravane: vm a: off'"
[ "$(wc -c <logs/a.log)" -eq 100001 ] && ! grep -q '[^x]' logs/a.log
ok 'and they arrive whole'
judged 0 one.conf 'run: any bytes' <<<"head -c 20000 /dev/urandom | tr -d '\\n'; echo; printf '[a] \\0\\377\\n'; echo 'paravane: vm a: off'"
printf '\0\377\n' | cmp - logs/a.log
ok 'and they are logged as they came'

start=$SECONDS
play <<<"echo '[a] x'; sleep 60"
t 1 run one.conf --timeout 1 && err_has 'the time of --timeout is over' && [ $((SECONDS - start)) -lt 40 ] && no_leftovers
ok 'run --timeout'
start=$SECONDS
play <<<"trap '' TERM; echo 'paravane: panic: x'; while :; do sleep 1; done"
t 1 run one.conf && err_has 'the hypervisor panicked' && [ $((SECONDS - start)) -lt 60 ] && no_leftovers
ok 'run: an emulator that hangs after a panic is ended'
for signal in INT TERM HUP; do
	play <<<"echo \$\$ >pid; sleep 60"
	rm -f pid
	# a background command of a shell without job control would ignore SIGINT
	env --default-signal=INT "$tool" run one.conf >out 2>err </dev/null &
	run=$!
	for _ in $(seq 50); do [ -s pid ] || sleep 0.1; done
	kill -$signal $run
	wait $run
	[ $? -eq 1 ] && err_has 'the machine was ended: it was' && ! kill -0 "$(cat pid)" 2>>err && no_leftovers
	ok "run: SIG$signal ends the emulator"
done
play <<<"read -r line; echo \"[a] got \$line\"; read -r line; echo \"[a] got \$line\"; echo 'paravane: vm a: off'"
printf 'one\ntwo\n' | "$tool" run one.conf >out 2>err && printf '[a] got one\n[a] got two\nparavane: vm a: off\n' | is out
ok 'run: input goes to the machine'
play <<<"for i in {1..20000}; do echo '[a] many'; done; echo 'paravane: vm a: off'"
"$tool" run one.conf 2>err </dev/null | head -n 1 >out
[ "${PIPESTATUS[0]}" -eq 1 ] && err_has 'cannot write to standard output' && no_leftovers
ok 'run: closed output'

play_good
FAKE_VERSION=11.0.9 t 2 run two.conf && err_has 'is QEMU 11.0.9, expected 11.1 or later'
ok 'run refuses an old emulator'
FAKE_VERSION=9.2.0 t 2 run two.conf && err_has 'is QEMU 9.2.0'
ok 'run compares versions as numbers'
FAKE_VERSION=12.0 t 0 run two.conf
ok 'run takes a newer emulator'
FAKE_VERSION=x t 2 run two.conf && err_has 'does not say'
ok 'run refuses an emulator without a version'
PARAVANE_QEMU=$dir/nothing t 2 run two.conf && err_has 'there is no such program'
ok 'run without an emulator'
PARAVANE_IMAGE=$dir/nothing t 2 run two.conf && err_has "cannot read the hypervisor's image $dir/nothing"
ok 'run without the hypervisor'
mkdir -p cache/paravane/qemu/bin && cp qemu cache/paravane/qemu/bin/qemu-system-aarch64
PARAVANE_QEMU='' t 0 run two.conf
ok 'run finds the emulator in the cache'
(unset XDG_CACHE_HOME && mkdir .cache && mv cache/paravane .cache/ && PARAVANE_QEMU='' t 0 run two.conf)
ok 'run finds the emulator in the home folder'
rm -r .cache && mkdir bin && cp qemu bin/qemu-system-aarch64
PARAVANE_QEMU='' PATH=$dir/bin:$PATH t 0 run two.conf
ok 'run finds the emulator in PATH'
TMPDIR=$dir/nowhere t 2 run two.conf && err_has 'cannot make a folder'
ok 'run without a temporary folder'
t 2 run two.conf --cpus 0 && err_has "found '0', expected --cpus: a number from 1 to 128"
ok 'run --cpus 0'
for bad in '--cpus 129' '--cpus x' '--memory 0' '--memory 1T' '--memory 63' '--memory -1' '--memory G' '--memory 256G' \
	'--mode fast' '--timeout 0' '--timeout 1.5' '--timeout 1000001'; do
	# shellcheck disable=SC2086
	t 2 run two.conf $bad && err_has "found '${bad#* }', expected ${bad% *}:"
	ok "run $bad"
done
one 'cpus = 2-3' >c.conf && t 2 run c.conf && err_has "c.conf:5: [vm a] cpus: found no CPU below 2"
ok 'run: a VM without a CPU'
one 'initrd = nothing' >c.conf && t 2 run c.conf && err_has 'c.conf:5:'
ok 'run: a bad description'

# ---- report ----
cat >log <<-'END'
	# run: cpus=2 memory=384M cpu=max mode=deterministic qemu=11.1.3
	paravane: 2 CPUs
	paravane: vm a: 2 vCPUs, 128 MiB
	paravane: vm bravo: 1 vCPUs, 128 MiB
	paravane: vm hung_1: 4 vCPUs, 128 MiB
	[a] [    0.000000] Linux version 6.12.9-cloud-arm64 (x@y) gcc
	[bravo] [    0.000000] Linux version 6.12.9-cloud-arm64 (x@y) gcc
	[a] GUEST: hackbench 0.300
	[bravo] GUEST: hackbench 1.25
	[a] GUEST: hackbench 0.1004
	[a] GUEST: hackbench 0.2
	[bravo] GUEST: hackbench 1.3505
	[a] GUEST: hackbench nonsense
	[x GUEST: hackbench 1
	[hung_1] hello
	[   12.345] no VM
	[12.345] no VM
	paravane: stats vm=a vcpu=0 running=1000 runnable=5 blocked=6 off=0 exits=wfi:1,hvc:2
	paravane: stats vm=a vcpu=1 running=2000 runnable=5 blocked=6 off=0 exits=wfi:10,sysreg:5
	paravane: vm a: off
	paravane: stats vm=bravo vcpu=0 running=5000 runnable=5 blocked=6 off=0 exits=wfi:100,timer:0
	paravane: stats vm=bravo vcpu=300 running=5000 runnable=5 blocked=6 off=0 exits=wfi:100
	paravane: stats vm= vcpu=1
	paravane: stats vm=bravo
	paravane: vm bravo: crashed: data abort
	paravane: machine off: 1 off, 1 crashed
END
t 0 report log && is out <<-'END'
	VM      vCPUs  end      hackbench s  CPU share  exits  by reason
	a           2  off            0.200     37.5 %     18  wfi=11 hvc=2 sysreg=5
	bravo       1  crashed        1.300     62.5 %    100  wfi=100
	hung_1      4  ?                  -          -      - <

	3 VMs, 7 vCPUs on 2 CPUs: overcommit 3.5
	run: cpus=2 memory=384M cpu=max mode=deterministic qemu=11.1.3
	kernel 6.12.9-cloud-arm64: a bravo
END
ok 'report'
sed 's/$/\r/;/# run/d;/stats/d;/hung/d;/vCPUs/d' log >log2 && t 0 report log2 && is out <<-'END'
	VM     vCPUs  end      hackbench s  CPU share  exits  by reason
	a          -  off            0.200          -      - <
	bravo      -  crashed        1.300          -      - <

	2 VMs, 0 vCPUs
	kernel 6.12.9-cloud-arm64: a bravo
END
ok 'report without statistics'
t 1 report raw && err_has 'found no line about a VM'
ok 'report of something else'
t 2 report nothing && err_has 'cannot read nothing'
ok 'report of no file'
head -c 300000 /dev/urandom >noise && "$tool" report noise >out 2>err
[ $? -le 1 ]
ok 'report of noise'
"$tool" report log >/dev/full 2>err
[ $? -eq 1 ] && err_has 'cannot write to standard output'
ok 'a full disk is not success'

echo "1..$count"
[ $failed -eq 0 ]
