// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test for the logic of alternate sample periods.
 *
 * The rules are stated here a second time, in another way than the code under
 * test does, and compared with it over the whole range of the arguments.
 */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/perf_alt_period.h>
#include <linux/prandom.h>

#define TEST_PERIOD_LIMIT	BIT_ULL(63)	/* the first invalid period */

static const u64 test_odd_periods[] = {
	11, 300, 999700, 37 * 27034, 123456789012345, TEST_PERIOD_LIMIT - (1 << 30) - 1,
	TEST_PERIOD_LIMIT - (1 << 30), TEST_PERIOD_LIMIT - (1 << 29), TEST_PERIOD_LIMIT - 3,
};

#define TEST_NR_POWERS	(3 * 62 + 1)
#define TEST_NR_PERIODS	(TEST_NR_POWERS + (int)ARRAY_SIZE(test_odd_periods))

/*
 * Each power of two with its neighbours, up to the longest valid period
 * (1, 2, 3, 3, 4, 5, 7, 8, 9 ... 2^63 - 1), then the list above.
 */
static u64 test_period(int i)
{
	if (i >= TEST_NR_POWERS)
		return test_odd_periods[i - TEST_NR_POWERS];

	return (2ULL << (i / 3)) + i % 3 - 1;
}

/* The largest deviation of an interval from its nominal length, in either direction. */
static u64 test_half(u64 period, u32 jitter)
{
	u64 half = 1;

	while (jitter--)
		half *= 2;
	while (2 * half > period)
		half = period / 2;
	if (period + half >= TEST_PERIOD_LIMIT)
		half = TEST_PERIOD_LIMIT - 1 - period;

	return half;
}

static const u32 test_counts[] = { 0, 1, 2, 3, 8, 254, 255 };

/* In each round: the long interval, then as many windows, or none. */
static void test_alternation(struct kunit *test)
{
	int c, i, j, k;

	for (c = 0; c < ARRAY_SIZE(test_counts); c++) {
		u32 count = test_counts[c];

		for (i = c; i < TEST_NR_PERIODS; i += 5) {
			for (j = 0; j < TEST_NR_PERIODS; j += 7) {
				u64 period = test_period(i), window = j ? test_period(j) : 0;
				u32 round = window ? 1 + (count ?: 1) : 1;
				u16 phase = PERF_ALT_OFF;

				for (k = 0; k < 3 * round + 1; k++) {
					u64 next = perf_alt_period_next(&phase, period, window,
									count);

					KUNIT_ASSERT_EQ(test, next, k % round ? window : period);
					KUNIT_ASSERT_EQ(test, phase, PERF_ALT_LONG + k % round);
				}
			}
		}
	}
}

/* Both ends are reached, and nothing beyond; the mean is the nominal length. */
static void test_jitter_range(struct kunit *test)
{
	struct rnd_state rnd;
	int i, k;
	u32 n;

	prandom_seed_state(&rnd, 0x6a09e667f3bcc908ULL);

	for (i = 0; i < TEST_NR_PERIODS; i++) {
		u64 period = test_period(i);

		KUNIT_ASSERT_EQ(test, period, perf_alt_period_jitter(period, 0, ~0));

		for (n = 1; n <= PERF_ALT_JITTER_MAX; n++) {
			u64 half = test_half(period, n);
			u64 low = perf_alt_period_jitter(period, n, 0);
			u64 high = perf_alt_period_jitter(period, n, U32_MAX);

			KUNIT_ASSERT_EQ(test, low, period - half);
			KUNIT_ASSERT_EQ(test, high, period + half);
			for (k = 0; k < 20; k++) {
				u32 random = prandom_u32_state(&rnd);
				u64 a = perf_alt_period_jitter(period, n, random);
				u64 b = perf_alt_period_jitter(period, n, ~random);

				KUNIT_ASSERT_GE(test, a, low);
				KUNIT_ASSERT_LE(test, a, high);
				KUNIT_ASSERT_EQ(test, a + b, 2 * period);
			}
		}
	}
}

/* Random numbers at equal distances give each interval equally often, but for the ends. */
static void test_jitter_uniform(struct kunit *test)
{
	static const u64 periods[] = { 2, 3, 5, 300, 1001, 999700, 1ULL << 62 };
	static u8 count[2 * 512 + 1];
	int i, k;
	u32 n;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		for (n = 1; n <= 9; n++) {
			u64 period = periods[i], half = test_half(period, n);
			int values = 2 * half + 1;
			u32 distance = U32_MAX / (100 * values);

			memset(count, 0, sizeof(count));
			for (k = 0; k < 100 * values; k++)
				count[perf_alt_period_jitter(period, n, k * distance) -
				      (period - half)]++;
			for (k = 0; k < values; k++)
				KUNIT_ASSERT_TRUE(test, count[k] >= 98 && count[k] <= 102);
		}
	}
}

/* The first interval is any part of the long one, from 1 on; each has the same share. */
static void test_first(struct kunit *test)
{
	int i;
	u32 k;

	for (i = 0; i < TEST_NR_PERIODS; i++) {
		KUNIT_ASSERT_EQ(test, 1, perf_alt_period_first(test_period(i), 0));
		KUNIT_ASSERT_LE(test, perf_alt_period_first(test_period(i), ~0), test_period(i));
	}
	/* the middle of the k-th of 1000 equal parts of the random numbers */
	for (k = 0; k < 1000; k++)
		KUNIT_ASSERT_EQ(test, k + 1, perf_alt_period_first(1000, k * 4294967U + 2147483));
}

/* The sum of a long interval and its windows, at most the longest valid period. */
static u64 test_round(u64 period, u64 window, u32 count)
{
	u64 sum = period;

	do {
		sum = window < TEST_PERIOD_LIMIT - sum ? sum + window : TEST_PERIOD_LIMIT;
	} while (count-- > 1 && sum < TEST_PERIOD_LIMIT);

	return sum;
}

/* The long interval and its windows add up to the requested length, or it has one event. */
static void test_long_and_windows(struct kunit *test)
{
	int c, i, j;

	for (c = 0; c < ARRAY_SIZE(test_counts); c++)
		for (i = 0; i < TEST_NR_PERIODS; i++)
			for (j = 0; j < TEST_NR_PERIODS; j += 7) {
				u64 period = test_period(i), window = test_period(j);
				u32 count = test_counts[c];
				u64 length = perf_alt_period_long(period, window, count);

				KUNIT_ASSERT_GE(test, length, 1);
				KUNIT_ASSERT_GE(test, test_round(length, window, count), period);
				if (length > 1)
					KUNIT_ASSERT_EQ(test, period,
							test_round(length, window, count));
			}
}

/* The position in the alternation @events events after an interval began. */
static u64 test_walk(u16 *phase, u64 events, u64 period, u64 window, u32 count)
{
	u64 next = *phase == PERF_ALT_LONG ? period : window;

	while (events >= next) {
		events -= next;
		next = perf_alt_period_next(phase, period, window, count);
	}

	return events;
}

/* Skipping rounds gives the same result as going through all intervals, from any one of them. */
static void test_skip(struct kunit *test)
{
	static const u64 cases[][3] = {	/* period, window, count */
		{ 1, 1, 0 }, { 2, 1, 1 }, { 10, 3, 3 }, { 3, 299, 2 }, { 1000, 1000, 1 },
	};
	u64 events, left;
	int i;
	u16 k;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 period = cases[i][0], window = cases[i][1], count = cases[i][2];

		for (events = 0; events < 4100; events++) {
			left = perf_alt_period_skip(events, period, window, count);
			KUNIT_ASSERT_LT(test, left, test_round(period, window, count));
			for (k = PERF_ALT_LONG; k <= 1 + (count ?: 1); k++) {
				u16 slow = k, fast = k;

				KUNIT_ASSERT_EQ(test,
						test_walk(&slow, events, period, window, count),
						test_walk(&fast, left, period, window, count));
				KUNIT_ASSERT_EQ(test, slow, fast);
			}
		}
	}
}

static void test_validity(struct kunit *test)
{
	static const struct {
		u64 period, window;
		u32 count, jitter;
		int err;
	} cases[] = {
		{ 999700, 300, 0, 0, 0 },
		{ 999700, 300, 1, 30, 0 },
		{ 999700, 300, 255, 7, 0 },
		{ 300, 999700, 0, 7, 0 },
		{ 1, 1, 0, 1, 0 },
		{ TEST_PERIOD_LIMIT - 1, TEST_PERIOD_LIMIT - 1, 0, 0, 0 },
		{ 999700, 0, 0, 7, 0 },
		{ 0, 0, 0, 0, 0 },
		{ TEST_PERIOD_LIMIT, 0, 0, 0, 0 },
		/* nothing to alternate with, to jitter, or to count */
		{ 0, 300, 0, 0, -EINVAL },
		{ 0, 0, 0, 7, -EINVAL },
		{ 999700, 0, 1, 0, -EINVAL },
		/* too much */
		{ TEST_PERIOD_LIMIT, 300, 0, 0, -EINVAL },
		{ 1000, TEST_PERIOD_LIMIT, 0, 0, -EINVAL },
		{ 999700, 300, 0, 31, -EINVAL },
		{ 999700, 300, 256, 0, -EINVAL },
		{ 999700, 300, U32_MAX, U32_MAX, -EINVAL },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, cases[i].err,
				    perf_alt_period_check(cases[i].period, cases[i].window,
							  cases[i].count, cases[i].jitter),
				    "case %d", i);
}

static struct kunit_case alt_period_test_cases[] = {
	KUNIT_CASE(test_alternation),
	KUNIT_CASE(test_jitter_range),
	KUNIT_CASE(test_jitter_uniform),
	KUNIT_CASE(test_first),
	KUNIT_CASE(test_long_and_windows),
	KUNIT_CASE(test_skip),
	KUNIT_CASE(test_validity),
	{},
};

static struct kunit_suite alt_period_test_suite = {
	.name = "perf_alt_period",
	.test_cases = alt_period_test_cases,
};

kunit_test_suites(&alt_period_test_suite);

MODULE_DESCRIPTION("KUnit test for the logic of alternate sample periods");
MODULE_LICENSE("GPL");
