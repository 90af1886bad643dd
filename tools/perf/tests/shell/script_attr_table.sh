#!/bin/sh
# perf script python attr_table test
# SPDX-License-Identifier: GPL-2.0

# The attr and the leader of each event that a script gets are those of the
# recorded events, also of one that never counts.

set -e

temp_dir=$(mktemp -d /tmp/perf-test-attr-table.XXXXXXXXXX)
perf_data="${temp_dir}/perf.data"
script="${temp_dir}/attr_table.py"

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
import struct
import sys

perf_db_export_mode = True

names = {}
attrs = {}
leaders = {}

def evsel_table(evsel_id, name, *x):
    names[evsel_id] = name

def attr_table(evsel_id, leader_id, attr, cpu, *x):
    assert cpu.split(' ')[0] == sys.argv[1], cpu
    # type, config, sample_period or sample_freq
    attrs[names[evsel_id]] = struct.unpack_from('=I4xQQ', attr)
    leaders[names[evsel_id]] = names[leader_id]

def sample_table(sample_id, evsel_id, *x):
    assert names[evsel_id] in attrs, 'a sample came before the attr'

def trace_end():
    assert attrs == {
        'leader': (1, 0, 100000),
        'member': (1, 2, 0),
        'never': (1, 7, 0),
        'single': (1, 1, 1000),
    }, attrs
    assert leaders == {
        'leader': 'leader', 'member': 'leader', 'never': 'leader', 'single': 'single',
    }, leaders
    assert [*names.values()].index('leader') < [*names.values()].index('member'), names
    print('attr_table ok')
_end_of_file_

group="cpu-clock/period=100000,name=leader/"
group="${group},page-faults/name=member/,alignment-faults/name=never/"
if ! perf record -o "${perf_data}" -e "{${group}}:uS" -e task-clock/freq=1000,name=single/u \
	-- perf test -w noploop 1 > "${temp_dir}/log" 2>&1
then
	cat "${temp_dir}/log"
	skip "cannot record software events"
fi

cpuid=$(perf report --header-only -i "${perf_data}" | sed -n 's/^# cpuid : //p')

# Disable lsan to avoid warnings about python memory leaks.
if ! ASAN_OPTIONS=detect_leaks=0 perf script -i "${perf_data}" -s "${script}" "${cpuid}" |
	grep -q "attr_table ok"
then
	echo "FAIL: attr_table does not give the attr of the events"
	cleanup
	exit 1
fi

cleanup
exit 0
