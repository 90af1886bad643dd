#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: source.sh BASE FILE
# Fetches the archive of Debian's newest package linux-source-BASE, of whatever
# suite, into FILE. Nothing is installed.
set -euo pipefail

package=linux-source-$1 file=$2
apt=$(mktemp -d)
trap 'rm -rf "$apt" "$file.new"' EXIT
"$(dirname "$0")/apt.sh" "$apt" "$(dpkg --print-architecture)" trixie-backports sid
export APT_CONFIG=$apt/apt.conf
apt-get --quiet --quiet update
(cd "$apt" && apt-get --quiet --quiet download "$package") || {
	echo "source: Debian has no $package any more: give a tree with LINUX=/path" >&2
	exit 1
}
mkdir -p "$(dirname "$file")"
dpkg-deb --fsys-tarfile "$apt/$package"_*.deb | tar -xO "./usr/src/$package.tar.xz" > "$file.new"
mv "$file.new" "$file"
