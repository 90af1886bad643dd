#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: build.sh perf TREE OUT        perf for this machine: OUT/perf
#        build.sh perf TREE OUT ARCH   perf for a guest: OUT/perf, installed under OUT/root,
#                                      and the benchmark: OUT/benchmark
#        build.sh kernel TREE OUT ARCH [TARGET...]
#                                      kernel for an emulated machine (default target: its image);
#                                      DEBUG=1: one that checks itself, see vm/debug.config
# TREE is a Linux tree; only OUT is written.
set -euo pipefail

# what was said to our make (ARCH=...) is not for Linux's
unset MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL ARCH CROSS_COMPILE LINUX O KBUILD_OUTPUT

top=$(realpath "$(dirname "$0")/..")
what=$1 tree=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
arch=${4:-}
jobs=-j$(nproc)

machine() {
	"$top/scripts/vm.py" --arch "$arch" --get "$1"
}

# Everything that this project does not use stays out, so that the build is the
# same whatever else is installed; python is Debian's, whatever is first in PATH.
perf_options=(BUILD_BPF_SKEL=0 NO_CAPSTONE=1 NO_JVMTI=1 NO_LIBBABELTRACE=1 NO_LIBCAP=1
	NO_LIBCRYPTO=1 NO_LIBDEBUGINFOD=1 NO_LIBLLVM=1 NO_LIBNUMA=1 NO_LIBPERL=1 NO_LIBPFM4=1
	NO_LIBUNWIND=1 NO_SDT=1 PYTHON=/usr/bin/python3)

perf() {
	make -C "$tree/tools/perf" O="$out" "$jobs" "${perf_options[@]}" "$@"
}

build_perf() {
	if [ -z "$arch" ]; then
		perf PYTHON_CONFIG="/usr/bin/$(gcc -dumpmachine)-python3-config"
		return
	fi
	local cross sysroot triplet
	cross=$(machine cross_compile)
	triplet=$(machine multiarch)
	sysroot=$top/build/sysroot/$arch
	export PKG_CONFIG_LIBDIR=$sysroot/usr/lib/$triplet/pkgconfig PKG_CONFIG_SYSROOT_DIR=$sysroot
	rm -rf "$out/root"
	perf ARCH="$(machine kernel_arch)" CROSS_COMPILE="$cross" CC="${cross}gcc --sysroot=$sysroot" \
		PKG_CONFIG=pkg-config PYTHON_CONFIG="$sysroot/usr/bin/$triplet-python3-config" \
		prefix=/usr DESTDIR="$out/root" install-bin
	if [ -e "$tree/tools/perf/tests/workloads/benchmark.c" ]; then
		"${cross}gcc" -O2 -g -static -pthread -DBENCHMARK_MAIN -o "$out/benchmark" \
			"$tree/tools/perf/tests/workloads/benchmark.c"
	fi
}

build_kernel() {
	local image make=(make -C "$tree" O="$out" "$jobs" ARCH="$(machine kernel_arch)"
		CROSS_COMPILE="$(machine cross_compile)")
	machine kconfig > "$out/allnoconfig.fragment"
	if [ -n "${DEBUG:-}" ]; then
		cat "$top/scripts/vm/debug.config" >> "$out/allnoconfig.fragment"
	fi
	KCONFIG_ALLCONFIG="$out/allnoconfig.fragment" "${make[@]}" allnoconfig
	image=$(machine image)
	shift 4
	"${make[@]}" "${@:-${image##*/}}"
}

"build_$what" "$@"
