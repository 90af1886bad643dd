#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: apt.sh DIR ARCH SUITE...
# Makes an apt of its own in the folder DIR: with APT_CONFIG=DIR/apt.conf, apt-get
# and apt-cache know these suites of Debian for ARCH, from the mirrors that this
# machine uses, and nothing of what it has installed.
set -euo pipefail

dir=$(realpath "$1") arch=$2
shift 2

# shellcheck source=/dev/null
. /etc/os-release
for suite; do
	case $suite in
	*-security) ours=$VERSION_CODENAME-security ;;
	*) ours=$VERSION_CODENAME ;;
	esac
	# shellcheck disable=SC2016 # apt-get expands it
	mirror=$(apt-get indextargets --format '$(REPO_URI)' "Origin: Debian" "Codename: $ours" \
		"Created-By: Packages" | head -n 1)
	[ -n "$mirror" ] || {
		echo "apt: no mirror of Debian's $ours: run apt-get update as root," \
			"or add it to the package sources" >&2
		exit 1
	}
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done > "$dir/sources.list"

mkdir -p "$dir"/{lists,archives}/partial
: > "$dir/status"
cat > "$dir/apt.conf" << END
APT { Architecture "$arch"; Architectures "$arch"; };
APT { Install-Recommends "false"; Sandbox::User "root"; };
Acquire::Languages "none";
Dir::State { Lists "$dir/lists"; status "$dir/status"; };
Dir::Cache "$dir";
Dir::Etc { SourceList "$dir/sources.list"; SourceParts "/dev/null"; };
Dir::Etc { Preferences "/dev/null"; PreferencesParts "/dev/null"; };
END
