#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: qemu.sh ARCH
# Provides an emulator for ARCH: this machine's own if it is new enough (qemu_version in
# scripts/vm/ARCH.py), else Debian's backport, unpacked in build/qemu with its libraries and started
# by build/qemu/bin/NAME. Nothing is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

arch=$1
machine() {
	scripts/vm.py --arch "$arch" --get "$1"
}
needed=$(machine qemu_version)
name=$(machine emulator)
bin=$PWD/build/qemu/bin
dir=$PWD/build/qemu/debian

version() {
	{ "$name" --version 2> /dev/null || true; } |
		sed -n 's/^QEMU emulator version \([0-9]*\)\..*/\1/p'
}
have=$(version)
rm -f "$bin/$name"
[ "${have:-0}" -lt "${needed:-0}" ] || exit 0

# shellcheck source=/dev/null
. /etc/os-release
backports=$VERSION_CODENAME-backports
debian=$(dpkg --print-architecture)
scripts/debian/fetch.sh "$dir" "$backports" "$debian" qemu-system-riscv,qemu-system-ppc || {
	echo "qemu: $arch needs $name $needed or newer, this machine has ${have:-none}," \
		"and $backports cannot be fetched" >&2
	exit 1
}

# use its own libraries and their loader, which need not fit this machine's
loader=$(readlink -f "$(find "$dir"/lib*/ -name 'ld-linux*.so*' | head -n 1)")
libraries=$dir/usr/lib/$(gcc -dumpmachine)
# With this folder beside it, QEMU does not look into this machine's folders, whose modules
# belong to another QEMU.
mkdir -p "$bin" "$(dirname "$loader")/qemu-bundle"
cat > "$bin/$name" << END
#!/bin/sh
QEMU_MODULE_DIR="$libraries/qemu" exec "$loader" --library-path "$libraries" \\
	"$dir/usr/bin/$name" -L "$dir/usr/share/qemu" "\$@"
END
chmod +x "$bin/$name"
have=$(PATH=$bin:$PATH version)
[ "${have:-0}" -ge "$needed" ] || {
	rm -f "$bin/$name"
	echo "qemu: $arch needs $name $needed or newer," \
		"and that of $backports does not run here" >&2
	exit 1
}
