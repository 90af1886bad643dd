#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: fresh.sh SUITE [TESTS]
# Runs each make command that README prints, as a newcomer would: in a clean Debian root that has
# only git, make and sudo beside what the installer leaves, as a user with sudo, in a clone of the
# committed repository. `make demo` runs twice. `make deb`, which takes hours, is left out. Then the
# commands of HARDWARE.md follow that a root without a kernel of its own can run. Those that need
# KVM or a PMU may fail: their messages are in the log.
# The log is build/fresh-SUITE.log. TESTS are arguments of pytest: `make check` runs only these. A
# BASE other than 6.12 is passed to make. The logs of the clone, which messages of failures name,
# are kept in build/fresh-SUITE.logs/.
set -euo pipefail
cd "$(dirname "$0")/../.."

suite=$1
tests=${2:-}
root=$PWD/build/fresh-$suite
log=$root.log
base=
[ "${BASE:-6.12}" = 6.12 ] || base=" BASE=$BASE"
SUDO=()
[ "$(id -u)" = 0 ] || SUDO=(sudo)

leave() {
	local logs
	if [ -d "$root/home/newcomer/clone/build/log" ]; then
		rm -rf "$root.logs" && mkdir "$root.logs"
		logs=("$root"/home/newcomer/clone/build/log/*.log)
		cp "${logs[@]}" "$root.logs/" 2> /dev/null || true
	fi
	"${SUDO[@]}" umount -lq "$root"/{proc,sys,dev/shm,dev/pts,dev,} 2> /dev/null || true
	"${SUDO[@]}" rm -rf --one-file-system "$root"
}
trap leave EXIT

leave
mkdir -p "${root%/*}"
"${SUDO[@]}" mmdebstrap --quiet --variant=important \
	--include=ca-certificates,git,make,sudo "$suite" "$root"
# pivot_root takes a mount point only
"${SUDO[@]}" mount --bind "$root" "$root"
for dir in proc sys dev dev/pts dev/shm; do
	"${SUDO[@]}" mount --bind "/$dir" "$root/$dir"
done
"${SUDO[@]}" git clone --quiet --no-hardlinks . "$root/clone"

# package managers need the servers and certificates of this machine
for file in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt; do
	"${SUDO[@]}" cp "$file" "$root$file"
done
"${SUDO[@]}" chroot "$root" /bin/sh -eu << 'END'
useradd --create-home --shell /bin/bash --groups sudo newcomer
echo 'newcomer ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/newcomer
mv /clone /home/newcomer/clone
chown -R newcomer: /home/newcomer
echo 'APT::Get::Assume-Yes "true";' > /etc/apt/apt.conf.d/yes
END
# not in a chroot, where the kernel lets nobody but root have namespaces
newcomer() {
	# shellcheck disable=SC2016
	"${SUDO[@]}" unshare --mount /bin/sh -euc '
		cd "$1"
		/sbin/pivot_root . mnt
		/bin/umount -l /mnt
		exec /usr/bin/env -i HOME=/home/newcomer USER=newcomer TERM=dumb \
			PATH=/usr/local/bin:/usr/bin:/bin:/usr/games su newcomer -c "$2"
	' sh "$root" "cd ~/clone && $1"
}

# commands FILE: those that a page prints, without comments
commands() {
	sed -n 's/^    \([a-z][^#]*[^# ]\)\( *#.*\)\?$/\1/p' "$1"
}
mapfile -t visit < <(commands README.md | grep '^make' | grep -v '^make deb')
mapfile -t hardware < <(commands HARDWARE.md | grep -x -e 'make demo .*' -e 'make dkms perf' \
	-e 'sudo apt install ./build/.*' -e 'bench/reproduce')
{
	echo "# $suite, commit $(git rev-parse HEAD)"
	for command in "${visit[@]}" "make demo" "${hardware[@]}"; do
		[[ $command != make* ]] || command+=$base
		[[ $command != "make check"* ]] || command+=" T=$(printf %q "$tests")"
		start=$SECONDS
		echo "\$ $command"
		newcomer "$command" || {
			status=$?
			[[ $command = *kvm* || $command = bench/reproduce ]] || exit "$status"
			echo "# status $status"
		}
		echo "# $command: $((SECONDS - start)) s"
	done
} 2>&1 | tee "$log"
