# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# For tests that are scripts: results as TAP. Source it, call `ok` after each check, `plan` at the end.
number=0

ok() { # NAME: the exit code of the command before decides
	local rc=$?
	number=$((number + 1))
	[ $rc -eq 0 ] || printf 'not '
	echo "ok $number - $1"
	return $rc
}

skip() { # NAME REASON
	number=$((number + 1))
	echo "ok $number - $1 # skip $2"
}

# A file (default: standard input) as an explanation of the result before: its last lines.
note() {
	tail -n 12 "$@" | cut -c1-200 | sed 's/^/# /'
}

# Without it, the test counts as one that died.
plan() {
	echo "1..$number"
}
