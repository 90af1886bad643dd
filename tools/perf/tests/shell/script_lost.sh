#!/bin/sh
# perf script python lost records test
# SPDX-License-Identifier: GPL-2.0

# A script's lost handler gets what perf script --show-lost-events shows, and
# perf script warns of the losses as without a script.

set -e

temp_dir=$(mktemp -d /tmp/perf-test-script-lost.XXXXXXXXXX)
perf_data="${temp_dir}/perf.data"
script="${temp_dir}/lost.py"

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

if perf version --build-options | grep python | grep -q OFF
then
	skip "python scripting is not supported"
fi

cat > "${script}" << "_end_of_file_"
def lost(time, id, lost, cpu, pid, tid, *x):
    if id:
        print(f'LOST {tid} [{cpu:03}] {time // 1000000000}.{time // 1000 % 1000000:06}: {lost}')
    else:
        print(f'LOST_SAMPLES {lost}')
_end_of_file_

# The program stops perf record for a second, so that its buffer gets full. One
# buffer for the thread, since the loss is only told where the next record goes.
# shellcheck disable=SC2016 # $PPID is perf record
workload='kill -STOP $PPID; (sleep 1; kill -CONT $PPID) & exec perf test -w noploop 2'
if ! perf record -m 1 --per-thread -T --sample-cpu -e cpu-clock/period=100000/u -o "${perf_data}" \
	-- sh -c "${workload}" > "${temp_dir}/log" 2>&1
then
	cat "${temp_dir}/log"
	skip "cannot record cpu-clock"
fi

# Disable lsan to avoid warnings about python memory leaks.
export ASAN_OPTIONS=detect_leaks=0

perf script --show-lost-events -i "${perf_data}" 2> /dev/null |
	sed -n 's/ PERF_RECORD_LOST lost / /p' |
	sed 's/.* \([0-9]* \[\)/LOST \1/; s/  */ /g' > "${temp_dir}/lost"
perf script -D -i "${perf_data}" 2> /dev/null |
	sed -n 's/.*PERF_RECORD_LOST_SAMPLES: .*lost samples :\([0-9]*\)$/LOST_SAMPLES \1/p' \
	> "${temp_dir}/lost_samples"
if [ ! -s "${temp_dir}/lost" ]
then
	skip "nothing was lost"
fi

perf script -i "${perf_data}" -s "${script}" > "${temp_dir}/out" 2> "${temp_dir}/err" ||
	fail "perf script -s"
perf script -i "${perf_data}" > /dev/null 2> "${temp_dir}/expected_err"

for what in lost lost_samples
do
	grep -i "^${what} " "${temp_dir}/out" > "${temp_dir}/handler" || true
	diff "${temp_dir}/${what}" "${temp_dir}/handler" ||
		fail "handler was not called as expected"
done

grep -q "lost [0-9]* chunks" "${temp_dir}/err" || fail "no warning of lost chunks"
diff "${temp_dir}/expected_err" "${temp_dir}/err" || fail "other warnings with a script"

cleanup
exit 0
