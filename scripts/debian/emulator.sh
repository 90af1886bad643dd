#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: emulator.sh DIR
# Fetches the sources of emulator/build.sh into the folder DIR: QEMU 10, of this Debian or its
# backports, and, in DIR/tools, the Python packages that build it. Nothing is installed.
set -euo pipefail

needed=10
apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$1"
dir=$(realpath "$1")
fail() {
	echo "emulator: $1" >&2
	exit 1
}

# shellcheck source=/dev/null
. /etc/os-release
suites=("$VERSION_CODENAME" "$VERSION_CODENAME-backports")
"$(dirname "$0")/apt.sh" "$apt" "$(dpkg --print-architecture)" "${suites[@]}"
sed 's/^deb /deb-src /' "$apt/sources.list" > "$apt/sources"
cat "$apt/sources" >> "$apt/sources.list"
export APT_CONFIG=$apt/apt.conf
apt-get --quiet --quiet --option APT::Update::Error-Mode=any update ||
	fail "Debian's packages cannot be looked up: check the network"

# the first suite whose QEMU is new enough
for suite in "${suites[@]}"; do
	version=$(apt-cache madison qemu |
		sed -n "s,^ *qemu | *\([^ ]*\) | .* $suite/main Sources.*,\1,p" | head -n 1)
	major=${version#*:} major=${major%%.*}
	[ "${major:-0}" -lt $needed ] || break
done
[ "${major:-0}" -ge $needed ] ||
	fail "${suites[*]} have no source of QEMU $needed: use a newer Debian"

mkdir -p "$apt/new/tools"
cd "$apt/new"
# the patches and build rules of Debian's package are not needed
{
	apt-get --quiet --quiet --tar-only --download-only source "qemu=$version" &&
		apt-get --quiet --quiet --target-release "$suite" download meson python3-pycotap
} || fail "the source of QEMU cannot be fetched: check the network"
for package in *.deb; do
	dpkg-deb --extract "$package" tools
done
rm ./*.deb
rm -rf "$dir"
mv "$apt/new" "$dir"
