#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: source.sh BASE FILE
# Fetches the archive of Debian's newest package linux-source-BASE, of whatever
# suite, into FILE. Nothing is installed.
set -euo pipefail

base=$1 package=linux-source-$1 file=$2
apt=$(mktemp -d)
trap 'rm -rf "$apt" "$file.new"' EXIT
fail() {
	echo "source: $1; give a tree of Linux $base with LINUX=/path" >&2
	exit 1
}

"$(dirname "$0")/apt.sh" "$apt" "$(dpkg --print-architecture)" trixie-backports sid ||
	fail "Debian's packages cannot be looked up"
export APT_CONFIG=$apt/apt.conf
apt-get --quiet --quiet --option APT::Update::Error-Mode=any update ||
	fail "Debian's packages cannot be looked up"
# `make check-all` knows these words
apt-get --quiet --quiet --print-uris download "$package" > /dev/null 2>&1 ||
	fail "Debian has no $package any more"
(cd "$apt" && apt-get --quiet --quiet download "$package") || fail "$package cannot be fetched"
mkdir -p "$(dirname "$file")"
dpkg-deb --fsys-tarfile "$apt/$package"_*.deb | tar -xO "./usr/src/$package.tar.xz" > "$file.new"
mv "$file.new" "$file"
