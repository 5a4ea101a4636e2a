# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Sourced by lab/setup: private apt trees, and the errors worth telling apart.
#
# Why private trees: the lab needs an emulator newer than the machine's Debian and binaries of a
# foreign architecture. Both are fetched with an apt configuration of their own (state, cache and
# sources), so that the machine's apt and dpkg never hear of them. The machine's proxy, credentials
# and certificates still apply, because "-c" is read on top of the machine's own configuration.

log() { printf 'lab: %s\n' "$*"; }
die() {
	for line; do printf 'lab: error: %s\n' "$line" >&2; done
	exit 1
}

# Free space, in MiB, of the file system that holds the folder $1.
free_mib() { df -Pm "$1" | awk 'NR == 2 { print $4 }'; }

need_space() { # MIB
	have=$(free_mib "$CACHE")
	[ "$have" -ge "$1" ] || die "not enough disk space in $CACHE: $have MiB free, $1 MiB needed" \
		"free some space, or set XDG_CACHE_HOME to a folder with more room"
}

# Says in one line what went wrong with an apt call whose output is in file $1.
explain_apt() {
	sed 's/^/lab:   /' "$1" | tail -n 15 >&2
	if grep -qiE 'no space left|not enough free space|disk full|quota exceeded' "$1"; then
		die "no disk space left while fetching into $CACHE"
	elif grep -qiE 'BADSIG|NO_PUBKEY|EXPKEYSIG|REVKEYSIG|not signed|signature|Hash Sum mismatch' "$1"; then
		die "the mirror's files do not match their signatures: nothing from it was used" \
			"try again later, or use another mirror in this machine's apt sources"
	elif grep -qE '404  *Not Found' "$1"; then
		die "the mirror ($MIRROR) lacks files that its own index names" \
			"try again later, or use another mirror in this machine's apt sources"
	elif grep -qiE 'could not resolve|could not connect|cannot initiate|unable to connect|timed out|unreachable|refused|failed to fetch|temporary failure' "$1"; then
		die "no network, or the Debian mirror ($MIRROR) can't be reached" \
			"the lab needs it once; later runs use $CACHE and fetch nothing"
	fi
	die "apt failed, see the lines above"
}

# Sets MIRROR and SECURITY (its URI, or empty) from the machine's own apt sources, of any format.
find_mirror() {
	[ -z "${MIRROR:-}" ] || return 0
	uris=$(apt-get update --print-uris 2>/dev/null | sed -n "s|^'\(.*\)/dists/\([^/]*\)/InRelease'.*|\1 \2|p")
	MIRROR=${PARAVANE_MIRROR:-$(echo "$uris" | awk '$2 ~ /^(bookworm|trixie|stable|oldstable)(-updates|-backports)?$/ { print $1; exit }')}
	SECURITY=${PARAVANE_SECURITY_MIRROR:-$(echo "$uris" | awk '$2 ~ /^(bookworm|trixie|stable|oldstable)-security$/ { print $1; exit }')}
	[ -n "$MIRROR" ] || die "this machine's apt sources name no Debian 12 or 13 mirror" \
		"add one, or set PARAVANE_MIRROR (and PARAVANE_SECURITY_MIRROR) to its URI"
	if [ -z "$SECURITY" ]; then
		log "no security mirror in this machine's apt sources: going on without it"
	fi
}

# A private apt tree: apt_tree NAME ARCH KEYRING LINE...   LINE: "deb SUITE" or "deb-src SUITE"
apt_tree() {
	arch=$2 keyring=$3 tree=$CACHE/apt/$1
	shift 3
	find_mirror
	[ -r "$keyring" ] || die "no Debian archive keyring at $keyring: install debian-archive-keyring"
	mkdir -p "$tree/state/lists/partial" "$tree/cache/archives/partial"
	: >"$tree/state/status"
	for line; do
		suite=${line#* } uri=$MIRROR
		case $suite in *-security) uri=$SECURITY ;; esac
		[ -n "$uri" ] || continue
		echo "${line%% *} [signed-by=$keyring] $uri $suite main"
	done >"$tree/sources.list"
	cat >"$tree/apt.conf" <<-END
		#clear APT::Update::Pre-Invoke;
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear APT::Architectures;
		#clear DPkg;
		#clear Dir::Ignore-Files-Silently;
		Dir::State "$tree/state";
		Dir::State::status "$tree/state/status";
		Dir::Cache "$tree/cache";
		Dir::Cache::archives "$tree/cache/archives";
		Dir::Cache::pkgcache "pkgcache.bin";
		Dir::Cache::srcpkgcache "srcpkgcache.bin";
		Dir::Etc::sourcelist "$tree/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferences "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::Log "$tree";
		APT::Architecture "$arch";
		APT::Architectures { "$arch"; };
		APT::Sandbox::User "";
		APT::Install-Recommends "false";
		APT::Get::AllowUnauthenticated "false";
		APT::Update::Error-Mode "any";
		Acquire::AllowInsecureRepositories "false";
		Acquire::Languages "none";
		Acquire::Retries "3";
	END
	log "reading the package lists of $(sed 's/.*\] //; s/^[^ ]* //; s/ main//' "$tree/sources.list" | sort -u | paste -sd' ') ($arch)"
	apt-get -c "$tree/apt.conf" -q update >"$tree/log" 2>&1 || explain_apt "$tree/log"
}

tapt_try() { # TREE apt-get arguments; runs in the current folder
	t=$1
	shift
	apt-get -c "$CACHE/apt/$t/apt.conf" -q -y "$@" >"$CACHE/apt/$t/log" 2>&1
}
tapt() { tapt_try "$@" || explain_apt "$CACHE/apt/$1/log"; }

newest_first() { # lines of "VERSION ..." sorted as dpkg compares versions
	sorted=
	while read -r line; do
		before='' after=$sorted
		while [ -n "$after" ] && dpkg --compare-versions "${line%% *}" lt "${after%%[ "$NL"]*}"; do
			before=$before${after%%"$NL"*}$NL after=${after#*"$NL"}
		done
		sorted=$before$line$NL$after
	done
	printf %s "$sorted"
}
NL='
'

# The binary packages of a tree whose names match a pattern: "VERSION NAME", newest first,
# whatever the suites' priorities.
candidates() { # TREE EXTENDED-REGEX
	names=$(apt-cache -c "$CACHE/apt/$1/apt.conf" pkgnames | grep -xE "$2" | sort) || true
	[ -n "$names" ] || return 0
	# shellcheck disable=SC2086
	apt-cache -c "$CACHE/apt/$1/apt.conf" show $names |
		awk '/^Package: / { p = $2 } /^Version: / { v = $2 } /^$/ { if (p != "") print v, p; p = "" } END { if (p != "") print v, p }' |
		sort -u | newest_first
}

# Downloads the newest package that matches into a folder. A mirror may lack a file that its own
# index names (while it is being updated, say), so the next older version is tried before giving up.
fetch_deb() { # TREE FOLDER EXTENDED-REGEX; sets $got_package and $got_version
	mkdir -p "$2"
	candidates "$1" "$3" >"$2/candidates"
	[ -s "$2/candidates" ] || die "the mirror has no package like $3"
	while read -r got_version got_package; do
		log "fetching $got_package $got_version"
		if (cd "$2" && tapt_try "$1" download "$got_package=$got_version"); then return 0; fi
		grep -q '404  *Not Found' "$CACHE/apt/$1/log" || break
		log "the mirror lacks that file"
	done <"$2/candidates"
	explain_apt "$CACHE/apt/$1/log"
}

# The same for the upstream archive of a source package.
fetch_source() { # TREE FOLDER PACKAGE; sets $got_version
	mkdir -p "$2"
	apt-cache -c "$CACHE/apt/$1/apt.conf" showsrc "$3" | sed -n 's/^Version: //p' | sort -u | newest_first >"$2/candidates"
	[ -s "$2/candidates" ] || die "the mirror has no source package $3"
	while read -r got_version; do
		log "fetching the source of $3 $got_version"
		if (cd "$2" && tapt_try "$1" --download-only --tar-only source "$3=$got_version"); then return 0; fi
		grep -q '404  *Not Found' "$CACHE/apt/$1/log" || break
		log "the mirror lacks that file"
	done <"$2/candidates"
	explain_apt "$CACHE/apt/$1/log"
}
