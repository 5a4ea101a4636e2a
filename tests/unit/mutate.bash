# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by scripts that put faults into core/ on purpose, each of which the named case of the named
# test must find. A change that changes nothing fails too: then the code has moved on. Prints TAP.
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
CC=${HOSTCC:-gcc}
# shellcheck source=tests/tap.sh
. tests/tap.sh

# build TEST: of the sources that it names, those in $dir where there are some.
build() {
	local file
	local -a link=()
	for file in $(sed -n '1,20s|.*/\* *link:\(.*\)\*/.*|\1|p' "tests/unit/$1.c"); do
		[ ! -e "$dir/$file" ] || file=$dir/$file
		link+=("$file")
	done
	"$CC" -std=gnu11 -O1 -w -I"$dir" -I. -Iinclude -Itests/unit -o "$dir/program" "tests/unit/$1.c" "${link[@]}" -lcmocka
}

run() { # CASE: what it said is in $said
	said=$(FAKE_ONLY=${1:-*} CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 100 "$dir/program" 2>&1)
}

# mutation NAME TEST CASE FILE SED...: FILE is in core/
mutation() {
	local name=$1 test=$2 case=$3 file=$4 expression
	local -a args=()
	shift 4
	for expression; do args+=(-e "$expression"); done
	rm -rf "$dir/core"
	mkdir "$dir/core"
	sed "${args[@]}" "core/$file" >"$dir/core/$file"
	if cmp -s "core/$file" "$dir/core/$file" || ! build "$test" 2>"$dir/errors"; then
		false
		ok "$name: changes core/$file and builds" || note "$dir/errors"
		return
	fi
	run "$case"
	status=$?
	if [ $status -ge 128 ]; then true; else [ $status -ne 0 ] && grep -q "^not ok .*$case" <<<"$said"; fi
	ok "$name" || echo "# $case passed"
}

# unmutated TEST...
unmutated() {
	local test
	for test; do
		build "$test" && run ''
		ok "$test passes without a mutation" || note <(echo "$said")
	done
}
