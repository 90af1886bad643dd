#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: fetch.sh DIR SUITE ARCH PACKAGE,PACKAGE...
# Unpacks Debian packages of any suite and architecture, with what they depend
# on, in the folder DIR, once for a list of packages. Nothing is installed, and
# nothing of this machine's package manager is touched; the mirror is the one it
# uses. SUITE-backports is read together with SUITE.
set -euo pipefail

dir=$1 suite=$2 arch=$3 packages=$4
what="$suite $packages"
[ "$(cat "$dir/.packages" 2> /dev/null)" != "$what" ] || exit 0

# shellcheck source=/dev/null
. /etc/os-release
# shellcheck disable=SC2016 # apt-get expands it
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $VERSION_CODENAME" "Created-By: Packages" | head -n 1)
[ -n "$mirror" ] || {
	echo "fetch: no Debian mirror among this machine's package sources" >&2
	exit 1
}
sources=()
for one in "${suite%-backports}" "$suite"; do
	sources+=("deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $one main")
	[ "$one" != "$suite" ] || break
done

SUDO=()
[ "$(id -u)" = 0 ] || SUDO=(sudo)
rm -rf "$dir"
mkdir -p "$dir"
"${SUDO[@]}" mmdebstrap --quiet --variant=extract --architectures="$arch" --aptopt="APT::Default-Release \"$suite\"" \
	--include="$packages" "$suite" - "${sources[@]}" | tar -x -C "$dir" --exclude='./dev/*'
# a suite whose packages have all in /usr leaves these links to its base system
for link in bin sbin lib lib64; do
	[ -e "$dir/$link" ] || [ ! -e "$dir/usr/$link" ] || ln -s "usr/$link" "$dir/$link"
done
echo "$what" > "$dir/.packages"
