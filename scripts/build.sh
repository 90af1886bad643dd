#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: build.sh perf TREE OUT        perf for this machine: OUT/perf
#        build.sh perf TREE OUT ARCH   perf for a guest: OUT/perf, installed under OUT/root,
#                                      and the benchmark: OUT/benchmark; PREFIX: not in /usr
#        build.sh static TREE OUT ARCH perf that needs no libraries: OUT/perf
#        build.sh kernel TREE OUT ARCH [TARGET...]
#                                      kernel for an emulated machine (default target: its image);
#                                      DEBUG=1: one that checks itself, see vm/debug.config;
#                                      KCONFIG=FILE: with this configuration instead
# TREE is a Linux tree; only OUT is written.
set -euo pipefail

# settings of our make (ARCH=...) are not for Linux's
unset MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL ARCH CONFIG CROSS_COMPILE LINUX O KBUILD_OUTPUT
# nor are those that a user has for other programs
unset CC CXX CFLAGS CXXFLAGS LDFLAGS

top=$(realpath "$(dirname "$0")/..")
what=$1 tree=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
arch=${4:-}
jobs=-j$(nproc)

machine() {
	"$top/scripts/vm.py" --arch "$arch" --get "$1"
}

# The build uses nothing that this project does not need, so that it is the same whatever else is
# installed. Python is Debian's, whatever is first in PATH.
perf_options=(BUILD_BPF_SKEL=0 NO_CAPSTONE=1 NO_JVMTI=1 NO_LIBBABELTRACE=1 NO_LIBCAP=1
	NO_LIBCRYPTO=1 NO_LIBDEBUGINFOD=1 NO_LIBLLVM=1 NO_LIBNUMA=1 NO_LIBPERL=1 NO_LIBPFM4=1
	NO_LIBUNWIND=1 NO_RUST=1 NO_SDT=1 NO_SHELLCHECK=1 PYTHON=/usr/bin/python3
	PYTHON_CONFIG="/usr/bin/$(gcc -dumpmachine)-python3-config")

perf() {
	make -C "$tree/tools/perf" O="$out" "$jobs" "${perf_options[@]}" "$@"
}

# lets perf() build for the guest, whose C library may be older or newer than the compiler's own
cross_compile() {
	cross=$(machine cross_compile)
	triplet=$(machine multiarch)
	sysroot=$top/build/sysroot/$arch
	export PKG_CONFIG_LIBDIR=$sysroot/usr/lib/$triplet/pkgconfig PKG_CONFIG_SYSROOT_DIR=$sysroot
	local cc
	cc="${cross}gcc $(machine compiler_options) --sysroot=$sysroot"
	cc+=" -isystem $sysroot/usr/include/$triplet -isystem $sysroot/usr/include"
	cc+=" -L$sysroot/usr/lib/$triplet"
	perf_options+=(ARCH="$(machine kernel_arch)" CROSS_COMPILE="$cross" CC="$cc"
		CXX="${cross}g++ --sysroot=$sysroot" PKG_CONFIG=pkg-config)
}

build_static() {
	cross_compile
	perf NO_LIBPYTHON=1 LDFLAGS=-static "$out/perf"
}

build_perf() {
	# setup.py links Python's module only if there is none
	rm -rf "$out/python_ext_build/lib"
	if [ -z "$arch" ]; then
		# For recordings of other machines, perf needs the metrics of every CPU. Linux's
		# make keeps a file with those of this machine only, so remove it.
		local events=$out/pmu-events/pmu-events.c
		grep -q '[.]arch = "arm64"' "$events" 2> /dev/null || rm -f "$events"
		perf JEVENTS_ARCH=all
		return
	fi
	local python flags
	cross_compile
	# setuptools builds Python's binding for this machine's version. If the guest has another
	# one, hide setuptools, and perf is built without the binding.
	python=$(/usr/bin/python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
	if [ ! -d "$sysroot/usr/include/$python" ]; then
		mkdir -p "$out/without-setuptools"
		echo 'raise ImportError' > "$out/without-setuptools/setuptools.py"
		export PYTHONPATH=$out/without-setuptools
	fi
	rm -rf "$out/root"
	perf PYTHON_CONFIG="$sysroot/usr/bin/$triplet-python3-config" \
		prefix="${PREFIX:-/usr}" DESTDIR="$out/root" install-bin
	if [ -e "$tree/tools/perf/tests/workloads/benchmark.c" ]; then
		read -r -a flags <<< "$(machine benchmark)"
		"${cross}gcc" -O2 -g -static -pthread -DBENCHMARK_MAIN "${flags[@]}" \
			-o "$out/benchmark" "$tree/tools/perf/tests/workloads/benchmark.c"
	fi
}

configure_machine() {
	local missing
	machine kconfig > "$out/allnoconfig.fragment"
	if [ -n "${DEBUG:-}" ]; then
		cat "$top/scripts/vm/debug.config" >> "$out/allnoconfig.fragment"
	fi
	KCONFIG_ALLCONFIG="$out/allnoconfig.fragment" "$@" allnoconfig
	missing=$(grep '=y$' "$out/allnoconfig.fragment" | grep -vxFf "$out/.config" || true)
	[ -z "$missing" ] || {
		echo "build: this kernel has not all that scripts/vm/ asks for:" "$missing" >&2
		exit 1
	}
}

build_kernel() {
	local image make=(make -C "$tree" O="$out" "$jobs" ARCH="$(machine kernel_arch)"
		CROSS_COMPILE="$(machine cross_compile)")
	if [ -n "${KCONFIG:-}" ]; then
		cp "$KCONFIG" "$out/.config"
		"${make[@]}" olddefconfig
	else
		configure_machine "${make[@]}"
	fi
	image=$(machine image)
	shift 4
	"${make[@]}" "${@:-${image##*/}}"
}

"build_$what" "$@"
