#!/bin/sh
# perf functions test
# SPDX-License-Identifier: GPL-2.0

# Records the benchmark in windows, checks the shares in the table against what the
# benchmark says of itself; adds up its sums, and compares them.

set -e

temp_dir=$(mktemp -d /tmp/perf-test-functions.XXXXXXXXXX)
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
	echo "perf functions test [Skipped: $1]"
	cleanup
	exit 2
}

fail()
{
	echo "perf functions test [Failed: $1]"
	cat "${errors}"
	cleanup
	exit 1
}

# Needs no event that the machine can count.
test_bad_input()
{
	for input in /dev/null "$0" "${temp_dir}/missing"; do
		if perf functions report "${input}" > "${table}" 2> "${errors}" ||
		   [ -s "${table}" ] || ! [ -s "${errors}" ]; then
			fail "${input} was read"
		fi
	done
	printf 'perf-function-sums 9\nend\n' > "${temp_dir}/new.sums"
	if perf functions report "${temp_dir}/new.sums" > /dev/null 2> "${errors}" ||
	   ! grep -q 'newer perf' "${errors}"; then
		fail "sums of another version were read"
	fi
}

# The seven functions have all but a few of some 4000 windows. Each share is right
# within five standard errors and the error of its rate. A function that is shorter
# than a window has none.
test_shares()
{
	perf functions report -i "${perf_data}" -x , > "${table}" 2> "${errors}" ||
		fail "report ended with status $?"
	awk -F '[ ,]+' '
		NR == FNR && !/^#/ { share[$1] = $5 }
		NR == FNR { next }
		FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		$1 in share && $column["%I"] != "-" {
			measured[$1] = $column["%I"]
			windows += $column["#"]
			functions++
		}
		END {
			for (name in measured) {
				p = share[name] / 100
				error = 100 * sqrt(p * (1 - p) / windows)
				off = measured[name] - share[name]
				if (off < 0)
					off = -off
				if (off > 5 * error + 0.05 * share[name]) {
					printf "%s has %.2f %% of the instructions, not %.2f\n",
					       name, measured[name], share[name]
					bad = 1
				}
			}
			exit bad || functions < 7 || windows < 1000
		}' "${truth}" "${table}" >> "${errors}" ||
		fail "the table is not what the benchmark does"
}

# The sums of the recording read twice are double.
test_sums()
{
	perf functions report -i "${perf_data}" --sums "${temp_dir}/one.sums" 2> "${errors}" ||
		fail "report --sums ended with status $?"
	perf functions report "${temp_dir}/one.sums" "${perf_data}" --sums "${temp_dir}/two.sums" \
		2> "${errors}" || fail "the report of two ended with status $?"
	awk -F '\t' '
		FNR == 1 { set = 0 }
		$1 == "set" { set++ }
		$1 != "row" { next }
		{ name = set FS $2 FS $3 FS $4 }
		NR == FNR { number[name] = $5; total[name] = $9; n++; next }
		{
			n--
			off = $9 - 2 * total[name]
			if ($5 != 2 * number[name] || off * off > 1e-12 * $9 * $9)
				wrong = 1
		}
		END { exit wrong || n != 0 }' "${temp_dir}/one.sums" "${temp_dir}/two.sums" ||
		fail "the sums of two recordings are not those of both"
}

# Whatever the rows are, they have the same cycles.
test_rows()
{
	perf functions report -i "${perf_data}" -x '\t' -F cycles > "${table}" 2> "${errors}" ||
		fail "report ended with status $?"
	cycles=$(awk -F '\t' '{ n += $3 } END { print n }' "${table}")
	for by in dso comm thread cpu; do
		perf functions report -i "${perf_data}" --by "${by}" -x '\t' -F cycles \
			> "${table}" 2> "${errors}" || fail "report --by ${by} ended with status $?"
		awk -F '\t' -v by="${by}" -v cycles="${cycles}" '
			NR == 1 && $1 != by { wrong = 1 }
			{ n += $3 }
			END { off = n / cycles - 1; exit wrong || off * off > 1e-8 }' "${table}" ||
			fail "the rows by ${by} have not all cycles"
	done
	perf functions report -i "${perf_data}" --by comm -x '\t' > "${table}" 2> "${errors}"
	grep -q '^perf' "${table}" || fail "no row of the comm perf"
}

# Compares the sums with themselves, and with sums of half of the instructions.
test_diff()
{
	perf functions report --diff "${perf_data}" "${temp_dir}/one.sums" --fail-on 'CPI>0.1%' \
		--single-run -x '\t' > "${table}" 2> "${errors}" ||
		fail "report --diff ended with status $?"
	awk -F '\t' '
		NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
		$3 != "both" || $column["CPI significant"] || $column["CPI change"] + 0 {
			wrong = 1
		}
		END { exit wrong || NR < 8 }' "${table}" || fail "the same sums differ"

	# Fields of windows: 9 cycles, 10 instructions, 11 to 13 their products
	awk -F '\t' -v OFS='\t' '
		$1 == "set" { has_windows = $2 == "windows" }
		$1 == "row" && has_windows { $10 /= 2; $12 /= 2; $13 /= 4 }
		{ print }' "${temp_dir}/one.sums" > "${temp_dir}/half.sums"
	status=0
	perf functions report --diff "${temp_dir}/one.sums" "${temp_dir}/half.sums" \
		--single-run --fail-on 'CPI>50%' > /dev/null 2> "${errors}" || status=$?
	if [ "${status}" -ne 2 ] || ! grep -q 'CPI of nops .*beyond CPI>50%$' "${errors}"; then
		fail "report --fail-on ended with status ${status}"
	fi
}

# Checks a metric of a vendor, Neoverse N1's, if perf was built with its tables.
test_metrics()
{
	n1_sums="${temp_dir}/n1.sums"
	{
		printf 'perf-function-sums 7\nby\tsymbol\t0\nlost\t0\nthrottled\t0\n'
		printf 'partial\t0\ncpu\t0x00000000413fd0c1\n'
		printf 'set\twindows\t0\t0\t0\t0\tcycles\tinstructions\n'
		printf 'group\t999700\t0\t300\t0\t0\t1\n'
		printf 'row\tf\t/prog\t-\t2\t2\t2\t2\t600\t300\t180000\t90000\t50000\nend\n'
	} > "${n1_sums}"
	if perf functions report "${n1_sums}" -M ipc -F ipc -x , > "${table}" 2> "${errors}"; then
		[ "$(tail -n 1 "${table}")" = "f,/prog,0.5,ipc," ] || fail "ipc is not what it is"
	else
		grep -q "no metrics of the CPU" "${errors}" || fail "report -M ended with status $?"
	fi
	if perf functions report "${n1_sums}" -M ipc,missing > "${table}" 2> "${errors}"; then
		fail "an unknown metric was taken"
	fi
}

test_bad_input
test_metrics

perf test -w benchmark -- --truth 0 1 > "${truth}" 2> "${errors}" ||
	skip "the benchmark does not know its truth: $(tail -n 1 "${errors}")"

perf functions record -o "${perf_data}" \
	-e '{cycles/period=199700,alt-period=300/,instructions}:uS' \
	-- perf test -w benchmark 0 1 > /dev/null 2> "${errors}" || {
	reason=$(grep -m 1 "alternate\|not supported\|No permission\|is limited" "${errors}") ||
		fail "cannot record"
	skip "${reason}"
}

test_shares
test_sums
test_rows
test_diff

cleanup
exit 0
