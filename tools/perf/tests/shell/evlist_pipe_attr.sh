#!/bin/sh
# perf evlist -v of a shorter attr in a pipe
# SPDX-License-Identifier: GPL-2.0

set -e

output=$(mktemp /tmp/__perf_test.perf.out.XXXXX)

cleanup()
{
    rm -f "${output}"
    trap - EXIT TERM INT
}
trap 'cleanup; exit 1' EXIT TERM INT

little=$(printf '\001\000' | od -An -tu2 | tr -d ' ')

# number BITS VALUE...: the values as numbers of this machine
number()
{
    bits=$1
    shift
    for value
    do
        shift_by=0
        while [ ${shift_by} -lt "${bits}" ]
        do
            byte=${shift_by}
            [ "${little}" = 1 ] || byte=$((bits - 8 - shift_by))
            # shellcheck disable=SC2059 # the format is the byte
            printf "\\$(printf '%03o' $((value >> byte & 255)))"
            shift_by=$((shift_by + 8))
        done
    done
}

# A recording of a perf that knew only the first 64 bytes of an attr: the ids, which
# follow, are where today's attr has config2 to sig_data and more.
recording()
{
    number 64 $((0x32454c4946524550)) 16    # PERFILE2, size of this header
    number 32 64                            # PERF_RECORD_HEADER_ATTR: type,
    number 16 0 $((8 + 64 + 16 * 8))        # misc, size
    number 32 1 64                          # type, size
    number 64 0 100000 263 4                # config, sample_period, sample_type, read_format
    number 64 0                             # flags
    number 32 0 0                           # wakeup_events, bp_type
    number 64 0                             # config1
    number 64 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26
}

recording | perf evlist -v -i - > "${output}"

if ! grep -q "size: 64, .*sample_freq }: 100000, .*read_format: ID" "${output}" ||
   grep -q "config2\|branch_sample_type\|sample_regs\|clockid\|aux\|config3\|alternat" "${output}"
then
    echo "Ids are taken for members of the attr [Failed]"
    cat "${output}"
    cleanup
    exit 1
fi

cleanup
exit 0
