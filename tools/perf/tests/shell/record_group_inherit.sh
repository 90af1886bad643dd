#!/bin/sh
# perf record inherited group sampling test
# SPDX-License-Identifier: GPL-2.0

# With :S the threads and children of a program are sampled too, and what perf
# script shows for each of them is what the kernel counted for it.

set -e

temp_dir=$(mktemp -d /tmp/perf-test-group-inherit.XXXXXXXXXX)
perf_data="${temp_dir}/perf.data"
group='{cpu-clock/period=1000000,name=clock/,page-faults/name=faults/}:uS'

cleanup()
{
	trap - EXIT TERM INT
	rm -rf "${temp_dir}"
}

trap 'cleanup; exit 1' EXIT TERM INT

skip()
{
	echo "SKIP: $1"
	cleanup
	exit 2
}

fail()
{
	echo "FAIL: $1"
	cleanup
	exit 1
}

# Record two children, one after the other, of which one has two threads, each
# for some seconds.
record()
{
	seconds=$1
	shift
	perf record "$@" -o "${perf_data}" -e "${group}" -- \
		sh -c "perf test -w noploop ${seconds}; perf test -w thloop ${seconds}; true" \
		> "${temp_dir}/log" 2>&1
}

# Print "tid event sum" of the periods that perf script shows.
sum_of_periods()
{
	perf script -i "${perf_data}" -F tid,event,period | awk '
		{
			sub(":", "", $3)
			sum[$1 " " $3] += $2
		}
		END { for (key in sum) printf "%s %.0f\n", key, sum[key] }' | sort
}

# Print the same from the last values that the kernel gave for a thread. There
# is one per id, and so one per CPU that the thread was on.
last_values()
{
	perf script -D -i "${perf_data}" 2> /dev/null | awk '
		function hex(text,  i, n)
		{
			n = 0
			for (i = 1; i <= length(text); i++)
				n = n * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
			return n
		}
		/PERF_RECORD_SAMPLE\(/ {
			match($0, /[0-9]+\/[0-9]+:/)
			tid = substr($0, RSTART, RLENGTH - 1)
			sub(".*/", "", tid)
			member = 0
		}
		/^\.+ id [0-9a-f]+, value / {
			event = member++ ? "faults" : "clock"
			sub(",", "", $5)
			last[tid " " event " " $3] = hex($5)
		}
		END {
			for (key in last) {
				split(key, part, " ")
				sum[part[1] " " part[2]] += last[key]
			}
			for (key in sum)
				if (sum[key])
					printf "%s %.0f\n", key, sum[key]
		}' | sort
}

# Count the threads that have some number of samples or more.
count_threads()
{
	perf script -i "${perf_data}" -F tid | sort | uniq -c |
		awk -v least="$1" '$1 >= least { threads++ } END { print threads + 0 }'
}

# A busy machine may leave a second of a workload little of its processors: it
# gets longer then. noploop and the two threads of thloop shall have run; the
# shell may have no sample.
for seconds in 1 4 16
do
	if ! record "${seconds}"
	then
		cat "${temp_dir}/log"
		skip "cannot record software events"
	fi
	if ! perf evlist -v -i "${perf_data}" | grep -q "inherit: 1"
	then
		skip "the kernel has no PERF_SAMPLE_READ for inherited events (Linux 6.12 has it)"
	fi
	threads=$(count_threads 100)
	[ "${threads}" -lt 3 ] || break
done

sum_of_periods > "${temp_dir}/periods"
last_values > "${temp_dir}/values"

[ "${threads}" -ge 3 ] || fail "only ${threads} threads in the recording, expected 3 or more"

diff "${temp_dir}/values" "${temp_dir}/periods" ||
	fail "the periods of a thread do not add up to what was counted for it"

# The first child's page faults, all of which it has before it loops. The shell
# is named perf, too, for the few samples that it may have before its exec ends.
perf stat -x, -o "${temp_dir}/stat" -e page-faults:u perf test -w noploop 1 > /dev/null 2>&1
expected=$(sed -n 's/^\([0-9]*\),.*page-faults.*/\1/p' "${temp_dir}/stat")
child=$(perf script -i "${perf_data}" -F tid,comm |
	awk '$1 ~ /^perf/ && ++n[$2] == 50 { print $2; exit }')
found=$(sed -n "s/^${child} faults //p" "${temp_dir}/periods")
found=${found:-0}
echo "page faults of the first child: ${found}, perf stat counts ${expected}"
if [ "${found}" -lt $((expected * 3 / 4)) ] || [ "${found}" -gt $((expected * 5 / 4)) ]
then
	fail "not the page faults of the child"
fi

# Without inheritance it is as before: only the shell, if it has a sample.
record 1 --no-inherit
threads=$(count_threads 1)
[ "${threads}" -le 1 ] || fail "${threads} threads with --no-inherit"

cleanup
exit 0
