#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: install.sh PURPOSE... (lint, build, ARCH, compiler-ARCH, emulator, report, check, all,
# bench, deb, static, fresh)
# Installs the Debian packages that the named purposes need and that are not
# there yet, after it has checked that this machine can do the work.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
	echo "install: $*" >&2
	exit 1
}

need_gb=0	# 4 for builds, and 2 for each machine

# Prints the packages that emulate a machine and compile for it; g++ and libc6-dev do for this kind.
machine() {
	local own
	own=$(dpkg --print-architecture)
	sed -n 's/.*"packages": "\(.*\)",/\1/p' "scripts/vm/$1.py" |
		if grep -q "\"debian\": \"$own\"" "scripts/vm/$1.py"; then
			sed -E 's/(g\+\+|libc6-dev)-\S+//g'
		else
			cat
		fi
}

# the compilers of the table of tests/series/test_builds.py
compilers() {
	sed -n 's/^[a-z0-9-]* | \(\(gcc\|clang\)[a-z0-9 -]*\) | ARCH=.*/\1/p' \
		tests/series/test_builds.py
}

declare -A packages_for=(
	[build]="linux-source-6.12 gcc g++ libc6-dev make git bc bison flex cpio kmod xz-utils
		pkg-config python3 python3-setuptools libpython3-dev libelf-dev libdw-dev
		libtraceevent-dev libzstd-dev libslang2-dev zlib1g-dev"
	[emulator]="bzip2 ninja-build patch python3-venv libglib2.0-dev libfdt-dev libattr1-dev"
	# pprof's profile.proto, its compiler for Python, and the writer of OpenMetrics; Debian's
	# npm conflicts with one from elsewhere
	[report]="python3-argcomplete golang-github-google-pprof-dev protobuf-compiler
		python3-protobuf python3-prometheus-client
		$(command -v npm > /dev/null || echo nodejs npm)"
	# checkpatch.pl comes with Linux; pylint reads what the scripts import
	[lint]="linux-source-6.12 xz-utils git python3 black isort mypy pylint shellcheck codespell
		perl
		$(command -v node > /dev/null || echo nodejs)
		python3-argcomplete python3-selenium python3-matplotlib python3-distributed
		python3-psycopg2 python3-git python3-ply python3-prometheus-client
		python3-jsonschema python3-pyte python3-pytest python3-pytest-xdist"
	[check]="bzip2 patch man-db chromium chromium-driver python3-jsonschema python3-pyte
		python3-pytest python3-pytest-timeout python3-pytest-xdist postgresql"
	[bench]="python3-numpy chromium chromium-driver python3-selenium"
	[deb]="build-essential debhelper dpkg-dev rsync openssl libssl-dev asciidoctor"
	[static]="asciidoctor"
	# golang-go has pprof
	[all]="mmdebstrap sparse python3-sphinx python3-yaml clang libclang-rt-dev
		golang-go $(compilers)"
	[fresh]="ca-certificates mmdebstrap"
)

words=
for purpose; do
	[ "$purpose" != build ] || need_gb=$((need_gb + 4))
	if [ "${packages_for[$purpose]:-}" ]; then
		words+=" ${packages_for[$purpose]}"
	elif [[ $purpose = compiler-* ]]; then
		words+=" $(machine "${purpose#*-}" | sed -E 's/qemu-\S+//')"
	else
		words+=" $(machine "$purpose")"
		need_gb=$((need_gb + 2))
	fi
done
mapfile -t packages < <(xargs -n 1 <<< "$words" | sort -u)

installed() {
	dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2> /dev/null | sort -u |
		grep -c ' installed$'
}

# shellcheck source=/dev/null
. /etc/os-release 2> /dev/null || fail "no /etc/os-release: this needs Debian 12 or 13"
case "${ID:-}-${VERSION_ID:-}" in
debian-12 | debian-13) ;;
*)
	fail "this is ${PRETTY_NAME:-an unknown distribution};" \
		"the packages are those of Debian 12 (bookworm) and 13 (trixie)"
	;;
esac

if [ ! -e "build/${BASE:-6.12}/linux/.git" ]; then
	free=$(($(df --output=avail -k . | tail -n 1) / 1024 / 1024))
	[ "$free" -ge $need_gb ] ||
		fail "$free GB free in $PWD, about $need_gb GB are needed: free some," \
			"or clone on a larger disk"
fi

[ "$(installed "${packages[@]}")" = ${#packages[@]} ] && exit 0

SUDO=()
if [ "$(id -u)" != 0 ]; then
	SUDO=(sudo)
	# sudo -v would ask users for a password that they do not need for commands
	sudo true || fail "packages are missing, and sudo does not work:" \
		"have root run: apt-get install ${packages[*]}"
fi
scripts/step "Debian packages" "${SUDO[@]}" env DEBIAN_FRONTEND=noninteractive sh -ec \
	'apt-get update && apt-get install --yes --no-install-recommends "$@"' sh "${packages[@]}"
