#!/bin/sh
# perf script python read values test
# SPDX-License-Identifier: GPL-2.0

# A script gets the sample of a group once, for the event that has sampled, with
# the values of all events.

set -e

temp_dir=$(mktemp -d /tmp/perf-test-read-values.XXXXXXXXXX)
perf_data="${temp_dir}/perf.data"
script="${temp_dir}/read_values.py"

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

if perf version --build-options | grep python | grep -q OFF
then
	skip "python scripting is not supported"
fi

cat > "${script}" << "_end_of_file_"
perf_db_export_mode = True
perf_db_export_reads = True

names = {}
samples = {}
last = {}

def evsel_table(evsel_id, name, *x):
    names[evsel_id] = name

def attr_table(evsel_id, leader_id, attr, cpu, *x):
    pass

def sample_table(sample_id, evsel_id, *x):
    name, values = names[evsel_id], x[-1]
    samples[name] = samples.get(name, 0) + 1
    if name == 'alone':
        assert values == (), values
        return
    assert [names[event] for event, _, _ in values] == ['leader', 'member', 'never'], values
    for event, number, value in values:
        assert value >= last.get(number, 0), 'a value has fallen'
        last[number] = value
    assert dict(zip(('leader', 'member', 'never'), (v[2] for v in values)))[name], values

def trace_end():
    assert samples.keys() == {'leader', 'member', 'alone'}, samples
    print('read values ok')
_end_of_file_

group="cpu-clock/period=100000,name=leader/"
group="${group},page-faults/period=1,name=member/,alignment-faults/name=never/"
if ! perf record -o "${perf_data}" -e "{${group}}:uS" -e task-clock/freq=1000,name=alone/u \
	-- perf test -w noploop 1 > "${temp_dir}/log" 2>&1
then
	cat "${temp_dir}/log"
	skip "cannot record software events"
fi

# Disable lsan to avoid warnings about python memory leaks.
if ! ASAN_OPTIONS=detect_leaks=0 perf script -i "${perf_data}" -s "${script}" |
	grep -q "read values ok"
then
	echo "FAIL: sample_table does not give the values of groups"
	cleanup
	exit 1
fi

cleanup
exit 0
