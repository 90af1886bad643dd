/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Alternate sample periods: the decision which period comes next, and the
 * rules which periods are valid.
 *
 * Everything here is pure: it depends on its arguments alone and neither
 * sleeps nor takes locks, so the overflow handler can call it in NMI context
 * and a KUnit test can check it over its whole range.
 */
#ifndef _LINUX_PERF_ALT_PERIOD_H
#define _LINUX_PERF_ALT_PERIOD_H

#include <linux/bits.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/types.h>

/* The widest jitter: its random offset is drawn from 2^31 + 1 integers. */
#define PERF_ALT_JITTER_MAX	30

/* The longest burst, in windows after a long interval. */
#define PERF_ALT_COUNT_MAX	255

/**
 * enum perf_alt_phase - position of an interval in the alternation
 * @PERF_ALT_OFF: the event has neither window nor jitter, or has not begun
 * @PERF_ALT_LONG: the long interval
 * @PERF_ALT_WINDOW: the first window after it; the second is one more, and so on
 */
enum perf_alt_phase {
	PERF_ALT_OFF,
	PERF_ALT_LONG,
	PERF_ALT_WINDOW,
};

/**
 * perf_alt_period_check() - validate the periods of an event
 * @period: the long period, or the target frequency
 * @alt_period: the window, 0 for none
 * @count: windows after each long interval, 0 for one
 * @jitter: width exponent of the jitter, 0 for none
 *
 * An event with neither window nor jitter is none of this function's business,
 * unless it asks for a burst.
 *
 * Return: 0 or -EINVAL.
 */
static inline int perf_alt_period_check(u64 period, u64 alt_period, u32 count,
					u32 jitter)
{
	if (!alt_period && count)
		return -EINVAL;

	if (!alt_period && !jitter)
		return 0;

	/* Drivers count a period down in a signed 64-bit integer. */
	if (!period || period > S64_MAX || alt_period > S64_MAX)
		return -EINVAL;

	if (count > PERF_ALT_COUNT_MAX || jitter > PERF_ALT_JITTER_MAX)
		return -EINVAL;

	return 0;
}

/**
 * perf_alt_period_jitter() - draw an interval around its nominal length
 * @period: nominal length, valid as by perf_alt_period_check()
 * @jitter: width exponent, 0 for none
 * @random: 32 uniformly distributed bits, not used without jitter
 *
 * The interval is one of the 2h + 1 integers from @period - h to @period + h,
 * with h = min(1 << @jitter, @period / 2): it is never shorter than half and
 * never longer than one and a half of its nominal length.  Where @period + h
 * would not be a valid period, h is what is left up to the longest one.
 *
 * Scaling @random by the odd number 2h + 1 leaves every remainder modulo 2^32
 * equally often.  Adding h before the remainder is dropped makes the result
 * exactly symmetric, @random and ~@random give intervals which add up to
 * 2 * @period, so the mean is @period and not a fraction less.
 *
 * Return: the length of the interval, 1 to S64_MAX.
 */
static inline u64 perf_alt_period_jitter(u64 period, u32 jitter, u32 random)
{
	u64 half;

	if (!jitter)
		return period;

	half = min(period / 2, BIT_ULL(jitter));
	half = min(half, (u64)S64_MAX - period);

	return period - half + ((random * (2 * half + 1) + half) >> 32);
}

/**
 * perf_alt_period_next() - advance the alternation by one interval
 * @phase: position of the event, see enum perf_alt_phase; updated
 * @period: the long period
 * @alt_period: the window, 0 for none: then each interval is a long one
 * @count: windows after each long interval, 0 for one
 *
 * From PERF_ALT_OFF the alternation begins, with a long interval.
 *
 * Return: the nominal length of the next interval.
 */
static inline u64 perf_alt_period_next(u16 *phase, u64 period, u64 alt_period,
				       u32 count)
{
	u32 windows = alt_period ? max(count, 1U) : 0;

	*phase = *phase > windows ? PERF_ALT_LONG : *phase + 1;

	return *phase == PERF_ALT_LONG ? period : alt_period;
}

/**
 * perf_alt_period_windows() - nominal length of all windows of a burst
 * @alt_period: the window
 * @count: windows after each long interval, 0 for one
 *
 * Return: the sum, S64_MAX if it is longer.
 */
static inline u64 perf_alt_period_windows(u64 alt_period, u32 count)
{
	u64 sum;

	if (check_mul_overflow(alt_period, (u64)max(count, 1U), &sum))
		return S64_MAX;

	return min_t(u64, sum, S64_MAX);
}

/**
 * perf_alt_period_first() - draw the first interval of an event with jitter
 * @period: the long period
 * @random: 32 uniformly distributed bits
 *
 * An event with jitter begins at a random place of a long interval.  So the
 * windows of many tasks which end after one interval or less lie evenly over
 * their lives.
 *
 * Return: the length of the interval, 1 to @period.
 */
static inline u64 perf_alt_period_first(u64 period, u32 random)
{
	return mul_u64_u32_shr(period, random, 32) + 1;
}

/**
 * perf_alt_period_long() - take the windows off the period of a frequency
 * @period: from the start of one long interval to that of the next
 * @alt_period: the window
 * @count: windows after each long interval, 0 for one
 *
 * Return: the long period, 1 if the windows leave nothing.
 */
static inline u64 perf_alt_period_long(u64 period, u64 alt_period, u32 count)
{
	u64 windows = perf_alt_period_windows(alt_period, count);

	return period > windows ? period - windows : 1;
}

/**
 * perf_alt_period_skip() - take whole rounds of intervals off a count
 * @events: events which came after the end of an interval
 * @period: the long period
 * @alt_period: the window
 * @count: windows after each long interval, 0 for one
 *
 * After a long interval and its windows the alternation is where it was.  So
 * an event which may not deliver the samples of a huge number of @events gets
 * along with what is left: less than one round, even if it is jittered.
 *
 * Return: the events which belong to the next intervals.
 */
static inline u64 perf_alt_period_skip(u64 events, u64 period, u64 alt_period,
				       u32 count)
{
	u64 left;

	div64_u64_rem(events, period + perf_alt_period_windows(alt_period, count),
		      &left);

	return left;
}

#endif /* _LINUX_PERF_ALT_PERIOD_H */
