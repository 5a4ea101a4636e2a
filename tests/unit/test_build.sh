#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The hypervisor and the test guests, built twice in folders with names of different length: the same
# bytes. With clang too, without a warning. Prints TAP.
set -u
LC_ALL=C
export LC_ALL
cd "$(dirname "$0")/../.." || exit 1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset MAKEFLAGS MAKELEVEL

# shellcheck source=tests/tap.sh
. tests/tap.sh

copy() { # FOLDER
	mkdir -p "$1/tests" && cp -r Makefile lab core include hyp arch guest tools bench "$1" && cp -r tests/fuzz tests/guest tests/tests.mk tests/unit "$1/tests"
}
build() { # FOLDER ARGUMENTS of make
	TZ=Asia/Tokyo make -C "$1" -j1 "${@:2}" >"$dir/out" 2>&1
}

a=$dir/a b=$dir/a-much-longer/name/of/a/folder
copy "$a" && copy "$b"
build "$a" hyp
ok "gcc: it builds in another folder" || note "$dir/out"
build "$b" hyp && cmp "$a/build/arm64/paravane.img" "$b/build/arm64/paravane.img" >>"$dir/out" 2>&1
ok "gcc: the same image in any folder" || note "$dir/out"
cmp "$a/build/arm64/paravane.elf" "$b/build/arm64/paravane.elf" >>"$dir/out" 2>&1
ok "gcc: the same symbols and debug information in any folder" || note "$dir/out"
build "$a" hyp COMPILER=clang && ! grep -i warning "$dir/out"
ok "clang: it builds, without a warning" || note "$dir/out"
build "$b" hyp COMPILER=clang && cmp "$a/build/arm64-clang/paravane.img" "$b/build/arm64-clang/paravane.img" >>"$dir/out" 2>&1
ok "clang: the same image in any folder" || note "$dir/out"
touch "$a/hyp/boot.c" && build "$a" hyp && ! grep -q 'CC.*vcpu' "$dir/out" && grep -q 'CC.*hyp/boot' "$dir/out"
ok "make builds again what has changed, and no more" || note "$dir/out"
plan
