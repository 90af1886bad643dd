#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: root.sh sysroot|guest|debian|programs ARCH
#
# sysroot: Debian's headers and libraries of ARCH, for building perf with the
#          cross compiler, in build/sysroot/ARCH
# guest:   the emulated machine's root file system, in build/BASE/root/ARCH.cpio:
#          Debian's packages, perf and its tests, the benchmark
# debian:  the same without ours, but with dpkg, in build/BASE/root/ARCH-debian.cpio
# programs: guest, and programs to record, in build/BASE/root/ARCH-programs.cpio
#
# No program of the other architecture runs, and the host's package database is not touched.
set -euo pipefail
cd "$(dirname "$0")/../.."

what=$1 arch=$2 build=build/${BASE:-6.12}
debian=$(scripts/vm.py --arch "$arch" --get debian)
suite=$(scripts/vm.py --arch "$arch" --get suite)

sysroot_packages=libc6-dev,libelf-dev,libdw-dev,libbz2-dev,liblzma-dev,libtraceevent-dev,libzstd-dev,libslang2-dev,libpython3-dev
sysroot_packages+=,libstdc++6
guest_packages=bash,coreutils,busybox-static,grep,sed,mawk,findutils,diffutils,procps,python3,perl-base
guest_packages+=,libtraceevent1,libzstd1,libslang2,libstdc++6,libatomic1
case $suite in
bookworm) guest_packages+=,libelf1,libdw1,libpython3.11 ;;
trixie) guest_packages+=,libelf1t64,libdw1t64,libpython3.13 ;;
esac

sysroot() {
	local dir=build/sysroot/$arch link
	scripts/debian/fetch.sh "$dir" "$suite" "$debian" "$sysroot_packages"
	# a linker given --sysroot does not follow absolute links into it
	find "$dir" -type l -lname '/*' | while read -r link; do
		ln -sfn -r "$dir$(readlink "$link")" "$link"
	done
}

# makes a folder with Debian's packages, and what a running system has beside them
unpack() {
	local dir=$build/root/$1
	scripts/debian/fetch.sh "build/debian/$1" "$suite" "$debian" "$2"
	rm -rf "$dir"
	mkdir -p "$(dirname "$dir")"
	cp -a "build/debian/$1" "$dir"
	ln -sf bash "$dir/bin/sh"
	ln -sf mawk "$dir/usr/bin/awk"
	mkdir -p "$dir"/{proc,sys,dev,run,tmp,root,share}
	install -m 755 scripts/vm/init "$dir/init"
}

pack() {
	(cd "$build/root/$1" && find . -type d \( -path ./usr/share/doc \
		-o -path ./usr/share/locale -o -path ./usr/share/man -o -path '*/gconv' \
		-o -path './usr/lib/*/perl' -o -path ./usr/share/perl \) \
		-prune -o -print0 | LC_ALL=C sort -z |
		cpio --quiet --null --create --format=newc --owner=0:0 --reproducible) \
		> "$build/root/$1.cpio.new"
	mv "$build/root/$1.cpio.new" "$build/root/$1.cpio"
}

guest() {
	local dir=$build/root/$arch perf=$build/perf-$arch
	unpack "$arch" "$guest_packages"
	rm -r "$dir/var/lib/dpkg"
	cp -a "$perf/root/." "$dir/"
	install -m 755 "$perf/benchmark" "$dir/usr/bin/benchmark"
	pack "$arch"
}

programs() {
	local dir=$build/root/$arch-programs
	unpack "$arch-programs" "$guest_packages,gzip,xz-utils,sqlite3,pigz,gcc"
	rm -r "$dir/var/lib/dpkg"
	cp -a "$build/perf-$arch/root/." "$dir/"
	scripts/debian/name-functions.py "$dir"
	pack "$arch-programs"
}

debian() {
	unpack "$arch-debian" "$guest_packages,dpkg,debianutils,libc-bin,tar"
	pack "$arch-debian"
}

"$what"
