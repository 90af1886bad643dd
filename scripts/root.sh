#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: root.sh sysroot|guest ARCH
#
# sysroot: Debian's headers and libraries of ARCH, for building perf with the
#          cross compiler, in build/sysroot/ARCH
# guest:   the emulated machine's root file system, in build/root/ARCH.cpio:
#          Debian's packages, perf and its tests, the benchmark
#
# Nothing of the other architecture is run, and the host's package database
# is not touched.
set -euo pipefail
cd "$(dirname "$0")/.."

what=$1 arch=$2
debian=$(scripts/vm.py --arch "$arch" --get debian)

sysroot_packages=libc6-dev,libelf-dev,libdw-dev,libtraceevent-dev,libzstd-dev,libslang2-dev,libpython3-dev
guest_packages=bash,coreutils,busybox-static,grep,sed,mawk,findutils,diffutils,procps,python3,perl-base
guest_packages+=,libelf1,libdw1,libtraceevent1,libzstd1,libslang2,libpython3.11

# extract DIR PACKAGE,PACKAGE...: once for a list of packages
extract() {
	local dir=$1 packages=$2
	[ "$(cat "$dir/.packages" 2> /dev/null)" != "$packages" ] || return 0
	rm -rf "$dir"
	mkdir -p "$dir"
	"${SUDO[@]}" mmdebstrap --quiet --variant=extract --architectures="$debian" \
		--include="$packages" bookworm - | tar -x -C "$dir" --exclude='./dev/*'
	echo "$packages" > "$dir/.packages"
}

sysroot() {
	local dir=build/sysroot/$arch link
	extract "$dir" "$sysroot_packages"
	# a linker given --sysroot does not follow absolute links into it
	find "$dir" -type l -lname '/*' | while read -r link; do
		ln -sfn -r "$dir$(readlink "$link")" "$link"
	done
}

guest() {
	local dir=build/root/$arch perf=build/perf-$arch
	extract "build/debian/$arch" "$guest_packages"
	rm -rf "$dir"
	mkdir -p "$(dirname "$dir")"
	cp -a "build/debian/$arch" "$dir"
	ln -sf bash "$dir/bin/sh"
	ln -sf mawk "$dir/usr/bin/awk"
	mkdir -p "$dir"/{proc,sys,dev,run,tmp,root,share}
	cp -a "$perf/root/." "$dir/"
	install -m 755 "$perf/benchmark" "$dir/usr/bin/benchmark"
	install -m 755 scripts/vm/init "$dir/init"
	(cd "$dir" && find . -type d \( -path ./usr/share/doc -o -path ./usr/share/locale -o -path ./usr/share/man \
		-o -path '*/gconv' -o -path './usr/lib/*/perl' \) -prune -o -print0 | LC_ALL=C sort -z |
		cpio --quiet --null --create --format=newc --owner=0:0 --reproducible) > "build/root/$arch.cpio.new"
	mv "build/root/$arch.cpio.new" "build/root/$arch.cpio"
}

SUDO=()
[ "$(id -u)" = 0 ] || SUDO=(sudo)
"$what"
