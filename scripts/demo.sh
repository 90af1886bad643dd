#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: demo.sh ARCH OUT [OPTION...]
# Records $WORKLOAD with the events $EVENTS in the emulated machine and prints
# its table per function; leaves perf.data and functions.txt in the folder OUT.
# Unless they are set, both are the machine's own. Options are for perf record.
set -euo pipefail
cd "$(dirname "$0")/.."

arch=$1
out=$2
shift 2
new=$out.new
machine() {
	scripts/vm.py --arch "$arch" --get "$1"
}
EVENTS=${EVENTS:-$(machine events)}
WORKLOAD=${WORKLOAD:-$(machine workload)}
script=tools/perf/scripts/python/generate-function-metrics.py
record="perf record -T --sample-cpu ${*:+$* }-e '$EVENTS' -- $WORKLOAD"
table=("build/$BASE/perf/perf" script -i "$new/perf.data" --symfs "build/$BASE/root/$arch"
	--kallsyms "build/$BASE/kernel/$arch/System.map" -s "$script" -- -s discard)

trap 'rm -rf "$new"' EXIT
rm -rf "$new"
mkdir -p "$new"

# The program is looked for first: perf's own message comes after a page of others.
# The recording goes to the guest's memory, then to the shared folder.
scripts/step "record in the emulated machine" scripts/vm.py --arch "$arch" --timeout "$TIMEOUT" \
	--share "$new" "
program=(${WORKLOAD%% *})
command -v \"\$program\" > /dev/null || {
	echo \"demo: there is no program '\$program' in the emulated machine:\" \\
		'give another WORKLOAD'
	exit 127
}
cd /tmp && $record && cp perf.data /share/"

# shellcheck disable=SC2016 # it is bash that expands these
scripts/step "table of metrics" bash -c '"$@" > "$0"' "$new/functions.txt" "${table[@]}"
mkdir -p "$out"
mv "$new/perf.data" "$new/functions.txt" "$out/"

printf '\nRecorded, in the emulated machine, by\n\n  %s\n\nand read, on this one, by\n\n ' "$record"
printf ' %s' "${table[@]/#"$new/"/"$out/"}"
printf '\n\n'
cat "$out/functions.txt"
echo
machine about
