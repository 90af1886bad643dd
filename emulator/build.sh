#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: build.sh qemu FETCHED OUT | model OUT
# qemu: builds qemu-system-aarch64 with our patches in the folder OUT, from what
# scripts/debian/emulator.sh has fetched into the folder FETCHED. model: builds
# OUT/model.so, the core model, a plugin for it. Nothing is installed.
set -euo pipefail

here=$(realpath "$(dirname "$0")")

qemu() {
	local fetched out work
	fetched=$(realpath "$1")
	mkdir -p "$2"
	out=$(realpath "$2")
	work=$out/work
	rm -rf "$work"
	mkdir -p "$work/source"
	tar -xf "$fetched"/qemu_*.orig.tar.xz --strip-components=1 -C "$work/source"
	while read -r name; do
		patch --silent --strip=1 --directory="$work/source" < "$here/patches/$name"
	done < "$here/patches/series"
	cp "$here/devices.mak" "$work/source/configs/devices/aarch64-softmmu/model.mak"
	# Debian's source has no firmware, and the machine needs none
	echo 'roms = []' > "$work/source/pc-bios/meson.build"

	export PYTHONPATH=$fetched/tools/usr/lib/python3/dist-packages
	export PATH=$fetched/tools/usr/bin:$PATH
	mkdir "$work/build"
	cd "$work/build"
	../source/configure --target-list=aarch64-softmmu --without-default-features \
		--without-default-devices --with-devices-aarch64=model --enable-system \
		--enable-tcg --enable-plugins --enable-virtfs --enable-attr --enable-fdt=system \
		--enable-trace-backends=nop --disable-docs --disable-tools --disable-guest-agent \
		--disable-debug-info
	# scripts/step reads how far this is
	ninja qemu-system-aarch64 | sed -u 's|^\[\([0-9]*\)/\([0-9]*\)\]|step: \1 of \2 files\n&|'
	mkdir -p "$out/bin" "$out/include"
	mv qemu-system-aarch64 "$out/bin/"
	cp ../source/include/qemu/qemu-plugin.h "$out/include/"
	rm -rf "$work"
}

model() {
	local flags
	read -ra flags <<< "$(pkg-config --cflags glib-2.0)"
	gcc -std=gnu11 -O3 -flto=auto -Wall -Werror -fPIC -shared -fvisibility=hidden \
		-I "$1/include" "${flags[@]}" -o "$1/model.so.new" "$here"/model/*.c
	mv "$1/model.so.new" "$1/model.so"
}

"$@"
