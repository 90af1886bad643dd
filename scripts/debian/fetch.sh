#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: fetch.sh DIR SUITE ARCH PACKAGE,PACKAGE...
# Unpacks Debian packages of any suite and architecture, with what they depend
# on, in the folder DIR, once for a list of packages. Nothing is installed, and
# nothing of this machine's package manager is touched. SUITE-backports is read
# together with SUITE. DIR/var/lib/dpkg is the database of the unpacked packages.
set -euo pipefail

dir=$1 suite=$2 arch=$3
IFS=, read -r -a packages <<< "$4"
what="$suite $4"
database=$dir/var/lib/dpkg
[ "$(cat "$dir/.packages" 2> /dev/null)" != "$what" ] || [ ! -e "$database/status" ] || exit 0

apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mapfile -t suites < <(printf '%s\n' "${suite%-backports}" "$suite" | uniq)
"$(dirname "$0")/apt.sh" "$apt" "$arch" "${suites[@]}"
export APT_CONFIG=$apt/apt.conf
apt-get --quiet --quiet --option APT::Update::Error-Mode=any update || {
	echo "fetch: Debian's packages cannot be looked up: check the network" >&2
	exit 1
}
apt-get --quiet --yes --target-release "$suite" --download-only install "${packages[@]}"

rm -rf "$dir"
mkdir -p "$database"/{info,updates}
for package in "$apt"/archives/*.deb; do
	dpkg-deb --extract "$package" "$dir"
	name=$(basename "${package%%_*}")
	[ "$(dpkg-deb --field "$package" Multi-Arch)" != same ] || name+=:$arch
	dpkg-deb --control "$package" "$apt/control"
	{
		cat "$apt/control/control"
		printf 'Status: install ok installed\n\n'
	} >> "$database/status"
	dpkg-deb --fsys-tarfile "$package" | tar -t | sed 's|^\./|/|; s|/$||; s|^$|/.|' \
		> "$database/info/$name.list"
	for file in symbols shlibs; do
		[ ! -e "$apt/control/$file" ] ||
			cp "$apt/control/$file" "$database/info/$name.$file"
	done
	rm -r "$apt/control"
done
# in suites with everything in /usr, the base system has these links, not a package
for link in bin sbin lib lib64; do
	[ -e "$dir/$link" ] || [ ! -e "$dir/usr/$link" ] || ln -s "usr/$link" "$dir/$link"
done
echo "$what" > "$dir/.packages"
