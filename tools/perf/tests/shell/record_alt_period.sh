#!/bin/sh
# perf record alternate periods tests
# SPDX-License-Identifier: GPL-2.0

set -e

period=999700
window=300

perfdata=$(mktemp /tmp/__perf_test.perf.data.XXXXX)
errors=$(mktemp /tmp/__perf_test.perf.err.XXXXX)

cleanup()
{
    rm -f "${perfdata}" "${perfdata}.old" "${errors}"
    trap - EXIT TERM INT
}

trap 'cleanup; exit 1' EXIT TERM INT

fail()
{
    echo "$1 [Failed]"
    cat "${errors}"
    cleanup
    exit 1
}

# record TERMS COMMAND...
# A group, in which only the leader has TERMS, of one thread: there is one event
# per CPU otherwise, and each alternates by itself.
record()
{
    terms=$1
    shift
    perf record -o "${perfdata}" --per-thread \
        -e "{cycles/name=leader,${terms}/,page-faults}:u" -- "$@" > /dev/null 2> "${errors}"
}

# The periods of the leader's samples, one per line.
periods()
{
    perf script -i "${perfdata}" -F event,period 2> "${errors}" |
        while read -r p event
        do
            case ${event} in
            leader*) echo "${p}" ;;
            esac
        done
}

# refused MESSAGE OPTIONS...
refused()
{
    message=$1
    shift
    if perf record -o "${perfdata}" "$@" true > /dev/null 2> "${errors}" ||
       ! grep -q "${message}" "${errors}"
    then
        fail "perf record $* is not refused with \"${message}\""
    fi
}

test_options()
{
    refused "'alt-period' needs 'period' or 'freq'" -e "page-faults/alt-period=300/"
    refused "'alt-period-count' needs 'alt-period'" -F 99 -e "page-faults/alt-period-count=2/"
    refused "takes a number" --alt-period=0
    refused "takes a number" --alt-period=many
    refused "less than the period, which is 300" --alt-period -c 300 -e page-faults
}

# Without one of these reasons a failure is not the fault of the kernel.
skip_if_not_supported()
{
    record "period=${period},alt-period=${window}" true && return

    for reason in "does not know alternate sample periods" "cannot alternate" \
                  "is not supported" "doesn't support sampling" "No permission" "is limited"
    do
        if line=$(grep -m 1 "${reason}" "${errors}")
        then
            echo "record alternate periods test [Skipped: ${line}]"
            cleanup
            exit 2
        fi
    done
    fail "cannot record with alternate periods"
}

# alternate LOW HIGH WINDOW_LOW WINDOW_HIGH
# Long intervals are from LOW to HIGH events, windows from WINDOW_LOW to
# WINDOW_HIGH. They alternate, and the first one is long. With jitter it has any
# length up to that of both.
alternate()
{
    nr=0
    previous=
    different=0
    first=
    for p in $(periods)
    do
        nr=$((nr + 1))
        if [ ${nr} -eq 1 ] && [ "$1" != "$2" ]
        then
            [ "${p}" -le $((period + window)) ] || fail "the first interval is ${p} long"
            previous=long
            continue
        fi
        if [ "${p}" -ge "$1" ] && [ "${p}" -le "$2" ]
        then
            kind=long
            first=${first:-${p}}
            [ "${p}" = "${first}" ] || different=$((different + 1))
        elif [ "${p}" -ge "$3" ] && [ "${p}" -le "$4" ]
        then
            kind=window
        else
            fail "sample ${nr} has the period ${p}"
        fi
        if [ ${nr} -eq 1 ] && [ ${kind} != long ]
        then
            fail "the first interval is not long"
        fi
        if [ ${kind} = "${previous}" ]
        then
            fail "samples $((nr - 1)) and ${nr} are both ${kind}"
        fi
        previous=${kind}
    done
    [ ${nr} -ge 20 ] || fail "only ${nr} samples"
}

test_alternation()
{
    record "alt-period=${window},period=${period}" perf test -w noploop 1 ||
        fail "cannot record"
    alternate ${period} ${period} ${window} ${window}
    perf evlist -v -i "${perfdata}" > "${errors}"
    grep -q "alternative_sample_period: ${window}" "${errors}" || fail "not in perf evlist -v"
}

# 2^14 is more than half a window.
test_jitter()
{
    record "alt-period-jitter=14,alt-period=${window},period=${period}" \
        perf test -w noploop 1 || fail "cannot record with jitter"
    alternate $((period - 16384)) $((period + 16384)) $((window / 2)) $((window + window / 2))
    [ ${different} -gt 0 ] || fail "jitter does not vary the period"
}

# Each long interval has three windows.
test_burst()
{
    record "alt-period-count=3,alt-period=${window},period=${period}" perf test -w noploop 1 ||
        fail "cannot record bursts"
    burst="${period} ${window} ${window} ${window} "
    [ "$(periods | head -n 12 | tr '\n' ' ')" = "${burst}${burst}${burst}" ] ||
        fail "no burst of three windows"
}

# The kernel chooses the long intervals, but not the windows between them.
test_frequency()
{
    record "alt-period=${window},freq=200" perf test -w noploop 1 ||
        fail "cannot record at a frequency"
    [ "$(periods | sed -n 'n;p' | sort -u)" = ${window} ] || fail "windows of other lengths"
    [ "$(periods | sed -n 'p;n' | sort -u | wc -l)" -gt 5 ] || fail "the long period is fixed"
}

# The option needs neither a period nor a frequency.
test_option()
{
    perf record -o "${perfdata}" --per-thread --alt-period -e cycles/name=leader/u \
        -- perf test -w noploop 1 > /dev/null 2> "${errors}" || fail "cannot use --alt-period"
    [ "$(periods | sed -n 'n;p' | sort -u)" = 300 ] || fail "other windows by --alt-period"
    [ "$(periods | sed -n 'p;n' | sort -u | wc -l)" -gt 5 ] || fail "--alt-period at a fixed period"
}

test_options
skip_if_not_supported
test_alternation
test_jitter
test_burst
test_frequency
test_option

cleanup
exit 0
