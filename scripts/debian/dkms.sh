#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: dkms.sh DIR
# Makes a Debian package in the folder DIR whose installation builds the module for
# the kernels that the machine has, and each one that it gets: perf-alt-period-dkms.
set -euo pipefail
umask 022	# of the folders in the package
cd "$(dirname "$0")/../.."

out=$1
# shellcheck source=module/dkms.conf
dkms_tree='' kernel_source_dir='' . module/dkms.conf
name=$PACKAGE_NAME version=$PACKAGE_VERSION
sources=(module/{Makefile,dkms.conf,perf_alt_period.c} include/linux/perf_alt_period.h)
# the minute of the newest commit that changed them
minute=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M -- module "${sources[-1]}")

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
install -d "$root/DEBIAN" "$root/usr/src/$name-$version" "$root/usr/share/doc/$name-dkms"
install -m 644 "${sources[@]}" "$root/usr/src/$name-$version"
{
	echo "License: GPL-2.0"
	echo
	cat COPYING
} > "$root/usr/share/doc/$name-dkms/copyright"
cat > "$root/DEBIAN/control" << END
Package: $name-dkms
Version: $version-$minute
Architecture: all
Section: kernel
Priority: optional
Depends: dkms (>= 3.0)
Maintainer: $(sed -n '/^ALTERNATE SAMPLE PERIODS/,/^M:/s/^M:[[:space:]]*//p' MAINTAINERS)
Description: alternate sample periods of perf on unchanged kernels
 A module which lets hardware events alternate between a long and a short
 sample period on Linux 5.15 and later (on x86 5.16). perf of the series uses
 it where the kernel itself does not know how.
END
cat > "$root/DEBIAN/postinst" << END
#!/bin/sh
set -e
[ "\$1" != configure ] || /usr/lib/dkms/common.postinst $name $version "" "" "\$2"
END
cat > "$root/DEBIAN/prerm" << END
#!/bin/sh
set -e
[ -z "\$(dkms status -m $name -v $version)" ] || dkms remove -m $name -v $version --all
END
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm"

rm -rf "$out"
mkdir -p "$out"
SOURCE_DATE_EPOCH=$(date -r module/perf_alt_period.c +%s) \
	dpkg-deb --root-owner-group --build "$root" "$out" > /dev/null
