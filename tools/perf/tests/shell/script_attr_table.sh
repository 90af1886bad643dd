#!/bin/sh
# perf script python attr_table test
# SPDX-License-Identifier: GPL-2.0

# The attr of each event that a script gets is the one perf evlist -v shows,
# and the leader is right.

set -e

temp_dir=$(mktemp -d /tmp/perf-test-attr-table.XXXXXXXXXX)
perf_data="${temp_dir}/perf.data"
script="${temp_dir}/attr_table.py"
evlist="${temp_dir}/evlist"

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
import re
import sys

perf_db_export_mode = True

SAMPLE_TYPE = '''IP TID TIME ADDR READ CALLCHAIN ID CPU PERIOD STREAM_ID RAW
	BRANCH_STACK REGS_USER STACK_USER WEIGHT DATA_SRC IDENTIFIER'''.split()
READ_FORMAT = 'TOTAL_TIME_ENABLED TOTAL_TIME_RUNNING ID GROUP LOST'.split()

names = {}
attrs = {}
leaders = {}
sampled = set()
order = []

def flags(text, known):
    return sum(1 << known.index(name) for name in text.split('|'))

def read_evlist(path):
    """Return {event: {member: value}} of the members that are not 0."""
    events = {}
    for line in open(path):
        if ': type: ' not in line:
            continue
        name, text = line.strip().split(': type: ', 1)
        found = re.findall(r'(\{ \w+, \w+ \}|\w+): (\S+?)(?: \([^)]*\))?(?:, |$)',
                           'type: ' + text)
        fields = {}
        for key, value in found:
            if key == 'sample_type':
                fields[key] = flags(value, SAMPLE_TYPE)
            elif key == 'read_format':
                fields[key] = flags(value, READ_FORMAT)
            else:
                fields[key] = int(value, 0)
        both = fields.pop('{ sample_period, sample_freq }', 0)
        fields['sample_freq' if fields.get('freq') else 'sample_period'] = both
        both = fields.pop('{ wakeup_events, wakeup_watermark }', 0)
        fields['wakeup_watermark' if fields.get('watermark') else 'wakeup_events'] = both
        events[name] = {key: value for key, value in fields.items() if value}
    return events

def evsel_table(evsel_id, name, *x):
    names[evsel_id] = name
    order.append(('evsel', evsel_id))

def attr_table(evsel_id, leader_id, attr, cpu, *x):
    assert cpu.split(' ')[0] == sys.argv[2], cpu
    attrs[evsel_id] = attr
    leaders[evsel_id] = leader_id
    order.append(('attr', evsel_id))

def sample_table(sample_id, evsel_id, *x):
    sampled.add(evsel_id)
    assert evsel_id in attrs, 'a sample came before the attr'

def trace_end():
    expected = read_evlist(sys.argv[1])
    found = {}
    for evsel_id, attr in attrs.items():
        found[names[evsel_id]] = {key: value for key, value in attr.items() if value}
    assert set(found) == set(expected), (set(found), set(expected))
    for name, fields in expected.items():
        assert found[name] == fields, (name, found[name], fields)
    for index in range(0, len(order), 2):
        assert order[index] == ('evsel', order[index + 1][1]), order
        assert order[index + 1][0] == 'attr', order
    by_name = {name: evsel_id for evsel_id, name in names.items()}
    leader = by_name['leader']
    assert leaders[leader] == leader, leaders
    assert leaders[by_name['member']] == leader, leaders
    assert leaders[by_name['never']] == leader, leaders
    assert leader < by_name['member'], by_name
    assert leaders[by_name['single']] == by_name['single'], leaders
    single = attrs[by_name['single']]
    assert single['freq'] == 1 and single['sample_freq'] == 1000, single
    assert single['sample_period'] == 0, single
    never = attrs[by_name['never']]
    assert never['freq'] == 0 and 'sample_freq' not in never, never
    assert by_name['never'] not in sampled, 'expected no sample of alignment-faults'
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

perf evlist -v -i "${perf_data}" > "${evlist}"
cpuid=$(perf report --header-only -i "${perf_data}" | sed -n 's/^# cpuid : //p')

# Disable lsan to avoid warnings about python memory leaks.
if ! ASAN_OPTIONS=detect_leaks=0 perf script -i "${perf_data}" -s "${script}" "${evlist}" \
	"${cpuid}" |
	grep -q "attr_table ok"
then
	echo "FAIL: attr_table does not give the attr of perf evlist -v"
	cat "${evlist}"
	cleanup
	exit 1
fi

cleanup
exit 0
