#!/bin/sh
# perf evlist -v of a big-endian attr
# SPDX-License-Identifier: GPL-2.0

set -e

perfdata=$(mktemp /tmp/__perf_test.perf.data.XXXXX)
output=$(mktemp /tmp/__perf_test.perf.out.XXXXX)

cleanup()
{
    rm -f "${perfdata}" "${output}"
    trap - EXIT TERM INT
}
trap 'cleanup; exit 1' EXIT TERM INT

# be BITS VALUE...: the values as big-endian numbers
be()
{
    bits=$1
    shift
    for value
    do
        shift_by=$((bits - 8))
        while [ ${shift_by} -ge 0 ]
        do
            # shellcheck disable=SC2059 # the format is the byte
            printf "\\$(printf '%03o' $((value >> shift_by & 255)))"
            shift_by=$((shift_by - 8))
        done
    done
}

# The members of struct perf_event_attr in their order, with values that differ.
attr()
{
    be 32 0 160             # type, size
    be 64 0 1000 263 4      # config, sample_period, sample_type, read_format
    be 64 0                 # flags
    be 32 0 0               # wakeup_events, bp_type
    be 64 17 18 0 19        # config1, config2, branch_sample_type, sample_regs_user
    be 32 20 4              # sample_stack_user, clockid
    be 64 21                # sample_regs_intr
    be 32 22                # aux_watermark
    be 16 23 0              # sample_max_stack, reserved
    be 32 24 0              # aux_sample_size, reserved
    be 64 25 26 27 28       # sig_data, config3, config4, alternative_sample_period
    be 32 29 30             # jitter_alternate_period, alternative_sample_count
}

# A perf.data file with one attr, no ids, no features and no data.
perf_data()
{
    printf '2ELIFREP'       # PERFILE2
    be 64 104 176           # sizes: of this header, of an entry of attrs
    be 64 104 176           # attrs: offset, size
    be 64 280 0             # data: offset, size
    be 64 0 0               # event types, not used
    be 64 0 0 0 0           # features
    attr
    be 64 0 0               # ids: offset, size
}

case $(be 32 1 | od -An -td4) in
*16777216*) ;;
*)
    echo "perf evlist -v of a big-endian attr [Skipped: nothing to swap on this machine]"
    cleanup
    exit 2
esac

perf_data > "${perfdata}"
perf evlist -v -i "${perfdata}" > "${output}" 2> /dev/null || true

for member in "size: 160" "sample_freq }: 1000" "sample_type: IP|TID|TIME|PERIOD" \
              "read_format: ID" "config1 }: 0x11" "config2 }: 0x12" \
              "sample_regs_user: 0x13" "sample_stack_user: 20" "clockid: 4" \
              "sample_regs_intr: 0x15" "aux_watermark: 22" "sample_max_stack: 23" \
              "aux_sample_size: 24" "sig_data: 25" "config3: 0x1a" "config4: 0x1b" \
              "alternative_sample_period: 28" "jitter_alternate_period: 29" \
              "alternative_sample_count: 30"
do
    if ! grep -q -F "${member}" "${output}"
    then
        echo "'${member}' is not in the output [Failed]"
        cat "${output}"
        cleanup
        exit 1
    fi
done

cleanup
exit 0
