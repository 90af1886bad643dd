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
#include <linux/types.h>

/* The widest jitter: its random offset is drawn from 2^31 + 1 integers. */
#define PERF_ALT_JITTER_MAX	30

/**
 * enum perf_alt_phase - position of an event in its alternation
 * @PERF_ALT_OFF: the event does not alternate, or has not begun to
 * @PERF_ALT_LONG: the chosen period is the long one
 * @PERF_ALT_WINDOW: the chosen period is the window
 */
enum perf_alt_phase {
	PERF_ALT_OFF,
	PERF_ALT_LONG,
	PERF_ALT_WINDOW,
};

/**
 * perf_alt_period_check() - validate the periods of an event
 * @freq: the event has a target frequency, not a period
 * @period: the long period
 * @alt_period: the window, 0 if the event does not alternate
 * @jitter: width exponent of the jitter, 0 for none
 *
 * An event that does not alternate is none of this function's business,
 * unless it asks for jitter.
 *
 * Return: 0 or -EINVAL.
 */
static inline int perf_alt_period_check(bool freq, u64 period, u64 alt_period,
					u32 jitter)
{
	if (!alt_period)
		return jitter ? -EINVAL : 0;

	/* Drivers count a period down in a signed 64-bit integer. */
	if (freq || !period || period > S64_MAX || alt_period > S64_MAX)
		return -EINVAL;

	return jitter > PERF_ALT_JITTER_MAX ? -EINVAL : 0;
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
 * @phase: position of the event, an enum perf_alt_phase; updated
 * @period: the long period
 * @alt_period: the window
 * @jitter: width exponent of the jitter, 0 for none
 * @random: 32 uniformly distributed bits, not used without jitter
 *
 * From PERF_ALT_OFF the alternation begins, with a long interval.
 *
 * Return: the length of the next interval.
 */
static inline u64 perf_alt_period_next(u32 *phase, u64 period, u64 alt_period,
				       u32 jitter, u32 random)
{
	bool window = *phase == PERF_ALT_LONG;

	*phase = window ? PERF_ALT_WINDOW : PERF_ALT_LONG;

	return perf_alt_period_jitter(window ? alt_period : period, jitter,
				      random);
}

/**
 * perf_alt_period_skip() - take whole pairs of intervals off a count
 * @count: events which came after the end of an interval
 * @period: the long period
 * @alt_period: the window
 *
 * After a pair the alternation is where it was.  So an event which may not
 * deliver the samples of a huge @count gets along with what is left: less than
 * one pair, of a handful of intervals even if they are jittered.
 *
 * Return: the events which belong to the next intervals.
 */
static inline u64 perf_alt_period_skip(u64 count, u64 period, u64 alt_period)
{
	u64 left;

	div64_u64_rem(count, period + alt_period, &left);

	return left;
}

#endif /* _LINUX_PERF_ALT_PERIOD_H */
