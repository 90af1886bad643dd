#!/bin/sh
# perf script generate-function-metrics test
# SPDX-License-Identifier: GPL-2.0

# Records the benchmark with alternate periods and checks the table that the
# script makes of it against what the benchmark says of itself.

set -e

script=$(dirname "$0")/../../scripts/python/generate-function-metrics.py
temp_dir=$(mktemp -d /tmp/perf-test-function-metrics.XXXXXXXXXX)
perf_data="${temp_dir}/perf.data"
truth="${temp_dir}/truth"
table="${temp_dir}/table.csv"
errors="${temp_dir}/errors"

cleanup()
{
	trap - EXIT TERM INT
	rm -rf "${temp_dir}"
}

trap 'cleanup; exit 1' EXIT TERM INT

skip()
{
	echo "perf script generate-function-metrics test [Skipped: $1]"
	cleanup
	exit 2
}

fail()
{
	echo "perf script generate-function-metrics test [Failed: $1]"
	cat "${errors}"
	cleanup
	exit 1
}

perf check feature -q libpython || skip "perf has no Python"

perf test -w benchmark -- --truth 0 1 > "${truth}" 2> "${errors}" ||
	skip "the benchmark does not know its truth: $(tail -n 1 "${errors}")"

perf record -o "${perf_data}" -T --sample-cpu \
	-e '{cycles/period=199700,alt-period=300/,instructions}:uS' \
	-- perf test -w benchmark 0 1 > /dev/null 2> "${errors}" || {
	reason=$(grep -m 1 "alternate\|not supported\|No permission\|is limited" "${errors}") ||
		fail "cannot record"
	skip "${reason}"
}

perf script -i "${perf_data}" -s "${script}" -- -s discard --csv > "${table}" 2> "${errors}" ||
	fail "the script ended with status $?"

# Shares of instructions: the seven functions have all but a few of some 4000 windows.
# Each share is right within five standard errors and what discarding moves.
awk -F '[ ,]+' '
	NR == FNR && !/^#/ { share[$1] = $5 }
	NR == FNR { next }
	FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
	$1 in share {
		n = $column["#"]
		measured[$1] = $column["%I"]
		windows += n
	}
	END {
		for (name in share) {
			p = share[name] / 100
			error = 100 * sqrt(p * (1 - p) / windows)
			off = measured[name] - share[name]
			if (off < 0)
				off = -off
			if (off > 5 * error + 0.1 * share[name]) {
				printf "%s has %.2f %% of the instructions, not %.2f\n",
				       name, measured[name], share[name]
				bad = 1
			}
		}
		exit bad || windows < 1000
	}' "${truth}" "${table}" >> "${errors}" || fail "the table is not what the benchmark does"

cleanup
exit 0
