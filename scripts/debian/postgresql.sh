#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: postgresql.sh
# Prints the folder with the commands of a PostgreSQL server (initdb, postgres):
# this machine's own if it has one, else Debian's, unpacked in build/postgresql.
# Nothing is installed, and no server started.
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=$PWD/build/postgresql
for commands in /usr/lib/postgresql/*/bin; do
	[ ! -x "$commands/initdb" ] || {
		echo "$commands"
		exit 0
	}
done

# shellcheck source=/dev/null
. /etc/os-release
debian=$(dpkg --print-architecture)
scripts/debian/fetch.sh "$dir/debian" "$VERSION_CODENAME" "$debian" postgresql > /dev/null || {
	echo "postgresql: Debian's postgresql cannot be fetched: check the network" >&2
	exit 1
}

# use the server's own libraries, but this machine's libc, which goes with its loader
dpkg-query -L libc6 | grep '\.so[.0-9]*$' | while read -r file; do
	rm -f "$dir/debian$file"
done
libraries=$dir/debian/lib/$(gcc -dumpmachine):$dir/debian/usr/lib/$(gcc -dumpmachine)
commands=("$dir"/debian/usr/lib/postgresql/*/bin)
mkdir -p "$dir/bin"
for name in initdb postgres; do
	cat > "$dir/bin/$name" <<- END
		#!/bin/sh
		LD_LIBRARY_PATH="$libraries" exec "${commands[0]}/$name" "\$@"
	END
	chmod +x "$dir/bin/$name"
done
echo "$dir/bin"
