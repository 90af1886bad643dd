#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: static.sh ARCH
# Builds a perf that needs no other file, and packs it with a README and the manuals that the
# series adds or changes: build/BASE/static/perf-functions-ARCH.tar.xz, and its checksum.
set -euo pipefail
umask 022	# of the files in the archive
cd "$(dirname "$0")/.."

arch=$1 base=${BASE:-6.12}
tree=build/$base/linux out=build/$base/static/$arch name=perf-functions-$arch
root=$out/$name

scripts/build.sh static "$tree" "$out/perf" "$arch"

rm -rf "$root" "$out/man"
mkdir -p "$root/man1" "$out/man"
cp "$out/perf/perf" "$root/"
cp "$tree/COPYING" "$root/"
pages=$(git -C "$tree" diff --name-only pristine..series -- tools/perf/Documentation/ |
	sed -n 's|.*/\(perf-.*\.txt\)$|\1|p')
make -C "$tree/tools/perf/Documentation" OUTPUT="$PWD/$out/man/" USE_ASCIIDOCTOR=1 \
	MAN1_TXT="${pages//$'\n'/ }" man
cp "$out"/man/*.1 "$root/man1/"
linux=$(make -s -C "$tree" kernelversion)
cat > "$root/README" << END
This is perf of Linux $linux with perf functions $(scripts/version) for $arch, as one program
that needs no libraries. Copy it to any machine with Linux 4.18 or later.

    ./perf functions record -- COMMAND      # or -p PID, or -a for all programs
    ./perf functions report                 # here, or on another machine with --symfs FOLDER

If it has no right to record, it says what helps. In a container: docker run --cap-add=PERFMON.
If there is no PMU, as in most virtual machines, it records the clock instead of cycles.
Source lines need addr2line, and annotated code needs objdump (binutils). This perf runs no scripts.
The manual: man -l man1/perf-functions.1
Licence: GPL-2.0 (COPYING). Source: Debian's linux-source-$base with the patches of this project.
END

date=@$(git -C "$tree" log -1 --format=%ct)
tar -C "$out" --owner=0 --group=0 --numeric-owner --sort=name --mtime="$date" -cJf \
	"$out/$name.tar.xz" "$name"
cd "$out"
sha256sum "$name.tar.xz" > "../$name.tar.xz.sha256"
mv "$name.tar.xz" ..
