#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: deb.sh kernel ARCH [small]     linux-image-VERSION-alt-period
#        deb.sh perf ARCH               linux-perf-alt-period
# Builds Debian packages of the prepared tree in build/BASE/deb, with a cross compiler if ARCH is
# not this machine's. They install beside Debian's own packages, whose files they do not touch. The
# kernel has Debian's configuration for ARCH without debug information, or that of the emulated
# machine (small). perf has a folder of its own; the command is perf-alt-period.
set -euo pipefail
umask 022	# of the folders in the package
cd "$(dirname "$0")/../.."

what=$1 arch=$2 config=${3:-} base=${BASE:-6.12}
build=build/$base
name=alt-period${config:+-$config}
out=$build/deb/$arch/$what${config:+-$config}
tree=$build/linux

machine() {
	scripts/vm.py --arch "$arch" --get "$1"
}
debian=$(machine debian)
maintainer=$(sed -n 's/^M:\t//p' MAINTAINERS | head -n 1)
email=${maintainer##*<}
email=${email%>}
linux=$(make -s -C "$tree" kernelversion)
# the minute of the newest commit, so that a package of a later one is an upgrade
version=$linux+$(scripts/version)-$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y%m%d%H%M)

debian_config() {
	local dir=$out/debian suite
	local file=$dir/usr/src/linux-config-$base/config.${debian}_none_$debian.xz
	suite=$(machine suite)-security
	[ "$base" = 6.12 ] || suite=sid
	scripts/debian/fetch.sh "$dir" "$suite" "$debian" "linux-config-$base" > /dev/null
	[ -e "$file" ] || {
		echo "deb: Debian has no configuration ${file##*/}: CONFIG=small has" \
			"that of the emulated machine" >&2
		exit 1
	}
	xz -dc "$file"
	# debug information would be most of what the build writes
	echo CONFIG_DEBUG_INFO_NONE=y
}

kernel() {
	local free profiles=(pkg.linux-upstream.nokernelheaders pkg.linux-upstream.nokerneldbg)
	mkdir -p "$out"
	if [ "$config" != small ]; then
		free=$(($(df --output=avail -k "$out" | tail -n 1) / 1024 / 1024))
		[ "$free" -ge 5 ] || {
			echo "deb: $free GB free in $out, 5 GB are needed: free some," \
				"or take CONFIG=small" >&2
			exit 1
		}
		debian_config > "$out/config"
		export KCONFIG=$out/config
	fi
	rm -f "$out"/*.deb
	# compressed images do not start from UEFI on arm64; libc's headers stay Debian's
	LOCALVERSION=-$name KDEB_PKGVERSION=$version KDEB_CHANGELOG_DIST=$(machine suite) \
		DEBFULLNAME=${maintainer% <*} DEBEMAIL=$email \
		DEB_BUILD_PROFILES="${profiles[*]}" \
		scripts/build.sh kernel "$tree" "$out/linux" "$arch" bindeb-pkg \
		KBUILD_IMAGE="$(machine image)"
	rm -f "$build"/deb/linux-image-*-"${name}_"*"_$debian.deb"
	mv "$out"/linux-image-*.deb "$build/deb/"
}

# prints the packages that programs need, by the libraries in the system root that they link
depends() {
	local sysroot=$PWD/build/sysroot/$arch file
	mkdir -p "$sysroot/DEBIAN" "$out/debian"
	for file in symbols shlibs; do
		cat "$sysroot"/var/lib/dpkg/info/*."$file" > "$sysroot/DEBIAN/$file"
	done
	printf 'Source: linux\n\nPackage: %s\nArchitecture: any\n' "$package" \
		> "$out/debian/control"
	(cd "$out" && DEB_HOST_ARCH=$debian dpkg-shlibdeps -O -S"$sysroot" "$@") |
		sed 's/^shlibs:Depends=//'
}

perf() {
	local package=linux-perf-$name home=/usr/lib/perf-$name root=$PWD/$out/root programs needs
	local own=$root$home doc=$root/usr/share/doc/$package
	local completions=$root/usr/share/bash-completion/completions
	PREFIX=$home scripts/build.sh perf "$tree" "$out" "$arch"
	mkdir -p "$out/Documentation"
	make -C "$tree/tools/perf/Documentation" OUTPUT="$PWD/$out/Documentation/" \
		USE_ASCIIDOCTOR=1 prefix="$home" DESTDIR="$root" install-man
	gzip -9n "$own"/share/man/man1/*

	# `perf trace` is the same program; the benchmark's functions keep their names
	rm "$own/bin/trace"
	programs=("$own/bin/perf" "$own"/libexec/perf-core/dlfilters/*.so)
	"$(machine cross_compile)strip" --strip-debug "${programs[@]}"

	mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/man/man1" "$doc" "$completions"
	printf '#!/bin/sh\nexec %s/bin/perf "$@"\n' "$home" > "$root/usr/bin/perf-$name"
	chmod 755 "$root/usr/bin/perf-$name"
	ln -s "../../../lib/perf-$name/share/man/man1/perf.1.gz" \
		"$root/usr/share/man/man1/perf-$name.1.gz"
	sed -E "s/_perf/_perf_alt_period/g; s/(type|_perf_alt_period) perf\\b/\\1 perf-$name/" \
		"$own/etc/bash_completion.d/perf" > "$completions/perf-$name"
	rm -r "${own:?}/etc"
	cat > "$doc/copyright" <<- END
		Linux, its perf and this package's patches are under the GNU General Public License
		version 2: /usr/share/common-licenses/GPL-2. The sources are Debian's
		linux-source-$base and the series of patches that this package was built from.
	END

	needs=$(depends "${programs[@]}")
	cat > "$root/DEBIAN/control" <<- END
		Package: $package
		Version: $version
		Architecture: $debian
		Maintainer: $maintainer
		Installed-Size: $(du -sk --exclude DEBIAN "$root" | cut -f 1)
		Depends: $needs
		Suggests: linux-image-$linux-$name, man-db, bash-completion
		Section: devel
		Priority: optional
		Description: perf with alternate sample periods and metrics of functions
		 perf of Linux with the event terms of alternate periods, the command perf
		 functions and the script generate-function-metrics. It is started by
		 perf-$name and may be installed beside Debian's linux-perf.
	END
	(cd "$root" && find usr -type f -print0 | LC_ALL=C sort -z |
		xargs -0 md5sum > DEBIAN/md5sums)
	rm -f "$build/deb/${package}_"*"_$debian.deb"
	dpkg-deb --root-owner-group --build "$root" "$build/deb"
}

"$what"
