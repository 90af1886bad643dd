#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# usage: demo.sh ARCH OUT [OPTION...]
# Records $WORKLOAD with the events $EVENTS in the emulated machine and prints
# its table per function; leaves perf.data and functions.txt in the folder OUT.
# Unless they are set, both are the machine's own. Options are for perf record.
# With a core model, $MODEL, it prints the true values, and under them those of each source, and
# leaves the truth in OUT, too, as a recording: truth.data. If $SHOW is truth, it prints only the
# table of the truth.
# Some events have no truth: then the reason is printed in its place.
set -euo pipefail
cd "$(dirname "$0")/.."

arch=$1
out=$2
export SHOW=${SHOW:-}
export NO_TRUTH=3	# exit status of truth.py
shift 2
new=$out.new
machine() {
	scripts/vm.py --arch "$arch" --get "$1"
}
truth=()
events=events workload=workload
[ "$ACCEL" = tcg ] || events=hardware_events
[ "$MODEL" = none ] ||
	events=model_events workload=model_workload truth=(--truth "$new/truth.txt")
# the driver of the model's branch records
[ "$MODEL" = none ] || [ -n "${EVENTS:-}" ] ||
	! grep -qs ^CONFIG_ARM64_BRBE=y "build/$BASE/kernel/$arch/.config" || set -- -b "$@"
# A program may have loops in step with fixed periods. The benchmark has none: it needs no jitter,
# and so its runs are the same.
jitter=
[ -z "${WORKLOAD:-}" ] || jitter='s,\(period=[0-9]*\)/,\1\,alt-period-jitter=16/,g'
# the model's CPU can follow operations
operations=
[ "$MODEL" = none ] || operations=,arm_spe_0/jitter=1,event_filter=2,period=4096/u
EVENTS=${EVENTS:-$(machine $events | sed "$jitter")$operations}
WORKLOAD=${WORKLOAD:-$(machine $workload)}
record="perf record -T --sample-cpu ${*:+$* }-e '$EVENTS' -- $WORKLOAD"
symbols=(--symfs "build/$BASE/root/$arch" --kallsyms "build/$BASE/kernel/$arch/System.map")
perf=build/$BASE/perf/perf
input=(-i "$new/perf.data" "${symbols[@]}")
script=("$perf" script "${input[@]}"
	-s tools/perf/scripts/python/generate-function-metrics.py -- -s discard)
table=("$perf" functions report "${input[@]}" --percent-limit 0.1)
[ "$MODEL" != none ] || table=("${script[@]}")
# The other two of the three commands that this project began with; the first one has recorded.
show_others() {
	[ "$MODEL" = none ] || {
		printf '\nThis command prints the table of windows with a script:\n\n '
		printf ' %s' "${script[@]/#"$new/"/"$out/"}"
		echo
	}
	printf '\nThis command tests the event terms:\n\n'
	printf "  (cd build/%s/linux/tools/perf && ../../../perf/perf" "$BASE"
	printf " test attr 'alternate periods')\n\n"
}

trap 'rm -rf "$new"' EXIT
rm -rf "$new"
mkdir -p "$new"

# The program is looked for first: perf's own message comes after a page of others.
# The recording goes to the guest's memory, then to the shared folder.
scripts/step "record in the emulated machine" scripts/vm.py --arch "$arch" --timeout "$TIMEOUT" \
	--share "$new" --model "$MODEL" --accel "$ACCEL" "${truth[@]}" "
program=(${WORKLOAD%% *})
command -v \"\$program\" > /dev/null || {
	echo \"demo: there is no program '\$program' in the emulated machine:\" \\
		'give another WORKLOAD'
	exit 127
}
cd /tmp && settle && $record && cp perf.data /share/"

# shellcheck disable=SC2016 # it is bash that expands these
scripts/step "table of metrics" bash -c '"$@" > "$0"' "$new/functions.txt" "${table[@]}"
if [ "$MODEL" != none ]; then
	# shellcheck disable=SC2016
	scripts/step "truth of the core model" bash -ec '
	emulator/truth.py "$0/perf.data" "$0/truth.txt" "$0/truth.data" 2> "$0/compared.txt" || {
		status=$?
		cat "$0/compared.txt"
		[ "$SHOW $status" = " $NO_TRUTH" ]
		exit
	}
	"$@" -i "$0/truth.data" > "$0/true.json"
	tables=()
	for source in windows samples operations branches; do
		"$@" -i "$0/perf.data" --source $source > "$0/$source.json" 2> /dev/null &&
			tables+=("$0/$source.json")
	done
	emulator/compare.py "$0/true.json" "${tables[@]}" > "$0/compared.txt"
	' "$new" "$perf" functions report -j "${symbols[@]}"
	rm -f "$new"/{truth.txt,*.json}
fi
mkdir -p "$out"
# files of an earlier recording
rm -f "$out"/{truth.data,compared.txt,report.html}
mv "$new"/* "$out/"

if [ "$SHOW" = truth ]; then
	echo
	# Counts are exact, however few samples they are made of: no marks, sources or advice.
	"$perf" functions report -i "$out/truth.data" "${symbols[@]}" \
		--percent-limit 0.1 | grep -v '^#' | tr '?~' ' '
	exit
fi
printf '\nThis command recorded in the emulated machine:\n\n  %s\n\n' "$record"
printf 'This command read the recording on this computer:\n\n '
printf ' %s' "${table[@]/#"$new/"/"$out/"}"
printf '\n\n'
cat "$out/functions.txt"
if [ "$MODEL" != none ]; then
	printf '\nThe truth, which the core model counts, and under it the values of each source.\n'
	printf 'A ? marks a weak value, a ! one whose 95 %% interval misses the truth:\n\n'
	cat "$out/compared.txt"
	show_others
	machine model_about
	[[ $MODEL = *kernel=on* ]] || machine no_kernel_about
	exit
fi
echo
[ "$ACCEL" = kvm ] || machine about
printf '\nThis command prints the table of perf functions. A ? marks a weak value:\n\n '
printf ' %s' "$perf" functions report -i "$out/perf.data" "${symbols[@]}"
echo
show_others
