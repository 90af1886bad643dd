#!/bin/sh
# perf script python call_chain_table test
# SPDX-License-Identifier: GPL-2.0

# The chains that a script gets are the addresses in the recording, and only one
# that is as long as the kernel writes it is cut.

set -e

temp_dir=$(mktemp -d /tmp/perf-test-call-chain.XXXXXXXXXX)
perf_data="${temp_dir}/perf.data"
script="${temp_dir}/call_chain.py"

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

# Prints the addresses of each chain.
cat > "${script}" << "_end_of_file_"
import sys

perf_db_export_mode = True

names = {}
before = None
most = int(sys.argv[1])

def symbol_table(symbol_id, dso_id, start, end, binding, name):
    names[symbol_id] = name

def call_chain_table(sample_id, frames, is_cut, *x):
    global before
    assert before is None, 'two chains for one sample'
    before = sample_id, frames
    # the link register of arm64 is one more, which does not count; an address of 0 counts, but
    # is no frame
    assert (len(frames) > most) <= is_cut <= (len(frames) + 1 >= most), (is_cut, len(frames))
    print(*(f'{ip & (1 << 64) - 1:016x}' for _, _, ip in frames))
    for symbol_id, dso_id, _ in frames:
        assert (symbol_id in names) == (dso_id > 0), 'a symbol comes before its frame'

def sample_table(sample_id, *sample):
    global before
    if before is None:
        return  # a member's
    assert before[0] == sample_id, 'not the chain of this sample'
    assert before[1][0] == (sample[5], sample[4], sample[7]), (before[1], sample)
    before = None

def trace_end():
    assert 'noploop' in names.values(), 'no caller has its name'
_end_of_file_

# Disable lsan to avoid warnings about python memory leaks.
export ASAN_OPTIONS=detect_leaks=0

check()
{
	if ! perf record --call-graph "fp,$1" -o "${perf_data}" \
		-e "{cpu-clock/period=1000000/,page-faults}:uS" -- perf test -w noploop 1 \
		> "${temp_dir}/log" 2>&1
	then
		cat "${temp_dir}/log"
		skip "cannot record cpu-clock"
	fi

	# The link register of arm64 comes after the first address, if it is not there already.
	perf script -D --no-inline -i "${perf_data}" 2> /dev/null | awk '
		/^\.\.\. FP chain: nr:/	{ if (chain) print chain; chain = ""; in_chain = 1; next }
		in_chain && /^\.\.\.\.\. +[0-9]+: /	{
			if ($3 !~ /^(ffffffffffff|0+$)/)
				chain = chain (chain ? " " : "") $3
			next
		}
		{ in_chain = 0 }
		/^\.\.\.\. lr /	{
			lr = substr($3, 3)
			n = split(chain, ips, " ")
			if (lr ~ /^0+$/ || !n || ips[2] == lr)
				next
			chain = ips[1] " " lr substr(chain, length(ips[1]) + 1)
		}
		END { if (chain) print chain }' > "${temp_dir}/expected"
	if [ ! -s "${temp_dir}/expected" ]
	then
		skip "no sample has a call chain"
	fi

	perf script -i "${perf_data}" -s "${script}" "$1" > "${temp_dir}/chains" ||
		fail "perf script -s, of chains of $1"
	diff "${temp_dir}/expected" "${temp_dir}/chains" > "${temp_dir}/diff" || {
		head "${temp_dir}/diff"
		fail "other chains than were recorded, of $1"
	}
}

check 127
check 2

cleanup
exit 0
