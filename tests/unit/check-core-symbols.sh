#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# core/ asks nothing of whoever hosts it but what core/port.h lists: all of it is linked alone, and what
# stays undefined is compared with that list. Prints TAP.
set -u
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# shellcheck source=tests/tap.sh
. tests/tap.sh

compilers=(gcc "${CROSS_COMPILE:-aarch64-linux-gnu-}gcc")
# The functions of port.h, and the four that any C compiler may call by itself.
{
	grep -o '\bport_[a-z_0-9]*(' core/port.h | tr -d '('
	printf '%s\n' memcmp memcpy memmove memset
} | sort -u >"$dir/allowed"
[ "$(wc -l <"$dir/allowed")" -gt 4 ]
ok "core/port.h lists functions"

for cc in "${compilers[@]}"; do
	objects=() built=0
	case $cc in *aarch64*) arch=-mno-outline-atomics ;; *) arch= ;; esac
	for source in core/*.c; do
		object=$dir/$(basename "$source" .c).o
		# shellcheck disable=SC2086 # empty is nothing
		"$cc" -std=gnu11 -O2 -ffreestanding -nostdlib -nostdinc -isystem "$("$cc" -print-file-name=include)" \
			$arch -fno-stack-protector -Wall -Wextra -Werror -I. -Iinclude -c -o "$object" "$source" || built=1
		objects+=("$object")
	done
	[ $built -eq 0 ]
	ok "core/ compiles without any library header: $cc"
	ld=ld
	case $cc in *-gcc) ld=${cc%gcc}ld ;; esac
	"$ld" -r -o "$dir/core.o" "${objects[@]}" && "${ld%ld}nm" -u "$dir/core.o" | awk '{ print $2 }' | sort -u >"$dir/undefined"
	extra=$(comm -23 "$dir/undefined" "$dir/allowed")
	test -s "$dir/undefined" -a -z "$extra"
	ok "core/ calls nothing that core/port.h does not list: $cc"
	[ -z "$extra" ] || echo "# undefined:" "${extra//$'\n'/ }"
done
plan
