// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test for the logic of alternate sample periods.
 *
 * The rules are stated here a second time, in another way than the code under
 * test does, and compared with it over the whole range of the arguments.
 */

#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/perf_alt_period.h>
#include <linux/prandom.h>

#define TEST_PERIOD_LIMIT	BIT_ULL(63)	/* the first invalid period */
#define TEST_SEED		0x6a09e667f3bcc908ULL
#define TEST_DRAWS		100		/* per value, for chi-square */

static const u64 test_odd_periods[] = {
	5, 6, 7, 11, 300, 1000, 4099, 27034, 999700, 1000000, 37 * 27034,
	4294968296, 123456789012345, TEST_PERIOD_LIMIT / 3 * 2,
	TEST_PERIOD_LIMIT - (1 << 30) - 1, TEST_PERIOD_LIMIT - (1 << 30),
	TEST_PERIOD_LIMIT - (1 << 29), TEST_PERIOD_LIMIT - 3,
	TEST_PERIOD_LIMIT - 2,
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

static bool test_period_valid(u64 period)
{
	return period && period < TEST_PERIOD_LIMIT;
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

/* In each round: the long interval, then as many windows. */
static void test_alternation(struct kunit *test)
{
	int c, i, j, k;

	for (c = 0; c < ARRAY_SIZE(test_counts); c++) {
		u32 count = test_counts[c], round = 1 + (count ?: 1);

		for (i = c; i < TEST_NR_PERIODS; i += 5) {
			for (j = 0; j < TEST_NR_PERIODS; j += 7) {
				u64 period = test_period(i), window = test_period(j);
				u16 phase = PERF_ALT_OFF;

				for (k = 0; k < 3 * round + 1; k++) {
					u64 next = perf_alt_period_next(&phase, period, window,
									count);

					KUNIT_ASSERT_EQ(test, next,
							k % round ? window : period);
					KUNIT_ASSERT_EQ(test, phase == PERF_ALT_LONG,
							k % round == 0);
					KUNIT_ASSERT_EQ(test, phase == PERF_ALT_WINDOW,
							k % round == 1);
					KUNIT_ASSERT_NE(test, phase, PERF_ALT_OFF);
				}
			}
		}
	}
}

/* Jitter alone: the period is the same for ever. */
static void test_no_window(struct kunit *test)
{
	u16 phase = PERF_ALT_OFF;
	int i;

	for (i = 0; i < TEST_NR_PERIODS; i++) {
		u64 period = test_period(i);

		KUNIT_ASSERT_EQ(test, period, perf_alt_period_next(&phase, period, 0, 0));
		KUNIT_ASSERT_EQ(test, phase, PERF_ALT_LONG);
		KUNIT_ASSERT_EQ(test, period, perf_alt_period_long(period, 0, 0));
	}
}

static void test_no_jitter(struct kunit *test)
{
	int i;

	for (i = 0; i < TEST_NR_PERIODS; i++) {
		u64 period = test_period(i);

		KUNIT_ASSERT_EQ(test, period, perf_alt_period_jitter(period, 0, 0));
		KUNIT_ASSERT_EQ(test, period, perf_alt_period_jitter(period, 0, ~0));
	}
}

static void test_jitter_smallest(struct kunit *test)
{
	u32 n;

	for (n = 1; n <= PERF_ALT_JITTER_MAX; n++) {
		KUNIT_EXPECT_EQ(test, 1, perf_alt_period_jitter(1, n, 0));
		KUNIT_EXPECT_EQ(test, 1, perf_alt_period_jitter(1, n, ~0));
		KUNIT_EXPECT_EQ(test, 1, perf_alt_period_jitter(2, n, 0));
		KUNIT_EXPECT_EQ(test, 2, perf_alt_period_jitter(2, n, 1U << 31));
		KUNIT_EXPECT_EQ(test, 3, perf_alt_period_jitter(2, n, ~0));
		KUNIT_EXPECT_EQ(test, 2, perf_alt_period_jitter(3, n, 0));
		KUNIT_EXPECT_EQ(test, 3, perf_alt_period_jitter(3, n, 1U << 31));
		KUNIT_EXPECT_EQ(test, 4, perf_alt_period_jitter(3, n, ~0));
	}
}

/* Both ends are reached, and nothing beyond; the mean is the nominal length. */
static void test_jitter_range(struct kunit *test)
{
	struct rnd_state rnd;
	int i, k;
	u32 n;

	prandom_seed_state(&rnd, TEST_SEED);

	for (i = 0; i < TEST_NR_PERIODS; i++) {
		u64 period = test_period(i);

		KUNIT_ASSERT_TRUE(test, test_period_valid(period));

		for (n = 1; n <= PERF_ALT_JITTER_MAX; n++) {
			u64 half = test_half(period, n);
			u64 low = perf_alt_period_jitter(period, n, 0);
			u64 high = perf_alt_period_jitter(period, n, U32_MAX);

			KUNIT_ASSERT_EQ(test, low, period - half);
			KUNIT_ASSERT_EQ(test, high, period + half);
			KUNIT_ASSERT_TRUE(test, test_period_valid(low));
			KUNIT_ASSERT_TRUE(test, test_period_valid(high));
			KUNIT_ASSERT_GE(test, low, period - period / 2);
			KUNIT_ASSERT_LE(test, high, period + period / 2);

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

/* The smallest random number that gives an interval of at least @length. */
static u64 test_first_random(u64 period, u32 n, u64 length)
{
	u64 low = 0, high = 1ULL << 32;

	while (low < high) {
		u64 mid = (low + high) / 2;

		if (perf_alt_period_jitter(period, n, mid) < length)
			low = mid + 1;
		else
			high = mid;
	}

	return low;
}

/* The numbers of random values that give each interval differ by one at most. */
static void test_jitter_uniform(struct kunit *test)
{
	static const u64 periods[] = { 1, 2, 3, 4, 5, 300, 1001, 999700, 1ULL << 62 };
	int i;
	u32 n;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		for (n = 1; n <= 11; n++) {
			u64 period = periods[i], half = test_half(period, n);
			u64 share = div64_u64(1ULL << 32, 2 * half + 1);
			u64 length, first = 0, next;

			for (length = period - half; length <= period + half; length++) {
				next = test_first_random(period, n, length + 1);
				KUNIT_ASSERT_GE(test, next - first, share);
				KUNIT_ASSERT_LE(test, next - first, share + 1);
				first = next;
			}
			KUNIT_ASSERT_EQ(test, first, 1ULL << 32);
		}
	}
}

/* Intervals drawn with the kernel's generator pass a chi-square test. */
static void test_jitter_chi_square(struct kunit *test)
{
	static const struct {
		u64 period;
		u32 jitter;
	} cases[] = {
		{ 300, 1 }, { 300, 7 }, { 300, 12 }, { 999700, 7 }, { 999700, 10 },
	};
	struct rnd_state rnd;
	int i, k;

	prandom_seed_state(&rnd, TEST_SEED);

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u64 period = cases[i].period;
		int half = test_half(period, cases[i].jitter);
		int values = 2 * half + 1;
		s64 sum = 0, squares = 0, chi_square;
		int *count;

		count = kunit_kcalloc(test, values, sizeof(*count), GFP_KERNEL);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, count);

		for (k = 0; k < values * TEST_DRAWS; k++) {
			s64 offset = perf_alt_period_jitter(period, cases[i].jitter,
							    prandom_u32_state(&rnd)) - period;

			KUNIT_ASSERT_TRUE(test, offset >= -half && offset <= half);
			count[offset + half]++;
			sum += offset;
		}

		for (k = 0; k < values; k++)
			squares += (count[k] - TEST_DRAWS) * (count[k] - TEST_DRAWS);

		/*
		 * There are values - 1 degrees of freedom, and the variance is twice that number.
		 * Allow 4 standard deviations, for the mean, too: one draw has the variance
		 * (values^2 - 1) / 12.
		 */
		chi_square = div_s64(squares, TEST_DRAWS);
		chi_square -= values - 1;
		KUNIT_EXPECT_LE(test, chi_square * chi_square, 16 * 2 * (values - 1));
		KUNIT_EXPECT_LE(test, 12 * sum * sum,
				16LL * values * TEST_DRAWS * ((s64)values * values - 1));
	}
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

/* The number of random numbers, of 2^64, that give a first interval of less than @length. */
static u64 test_first_below(u64 period, u64 window, u32 count, u64 length)
{
	u64 low = 0, high = U64_MAX;

	while (low < high) {
		u64 mid = low + (high - low) / 2;

		if (perf_alt_period_first(period, window, count, mid) < length)
			low = mid + 1;
		else
			high = mid;
	}

	return low;
}

/* Each length from 1 to the whole round has the same share. */
static void test_first_uniform(struct kunit *test)
{
	static const u64 periods[] = { 1, 2, 10, 299, 1000 };
	int i, j, c;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		for (j = 0; j < ARRAY_SIZE(periods); j++) {
			for (c = 0; c < 5; c++) {
				u64 period = periods[i], window = periods[j];
				u32 count = test_counts[c];
				u64 lengths = test_round(period, window, count);
				u64 share = div64_u64(U64_MAX, lengths);
				u64 length, first = 0, next;

				for (length = 1; length < lengths; length++) {
					next = test_first_below(period, window, count,
								length + 1);
					KUNIT_ASSERT_GE(test, next - first, share);
					KUNIT_ASSERT_LE(test, next - first, share + 1);
					first = next;
				}
				KUNIT_ASSERT_GE(test, U64_MAX - first + 1, share);
				KUNIT_ASSERT_LE(test, U64_MAX - first, share);
				KUNIT_ASSERT_EQ(test, lengths,
						perf_alt_period_first(period, window, count,
								      U64_MAX));
			}
		}
	}
}

/* Calls @check for each count of windows, with many periods and windows. */
static void test_rounds(struct kunit *test,
			void (*check)(struct kunit *test, u64 period, u64 window, u32 count))
{
	int c, i, j;

	for (c = 0; c < ARRAY_SIZE(test_counts); c++)
		for (i = 0; i < TEST_NR_PERIODS; i++)
			for (j = 0; j < TEST_NR_PERIODS; j += 7)
				check(test, test_period(i), test_period(j), test_counts[c]);
}

static void check_first_range(struct kunit *test, u64 period, u64 window, u32 count)
{
	u64 longest = min(test_round(period, window, count), TEST_PERIOD_LIMIT - 1);

	KUNIT_ASSERT_EQ(test, 1, perf_alt_period_first(period, window, count, 0));
	KUNIT_ASSERT_EQ(test, longest, perf_alt_period_first(period, window, count, U64_MAX));
}

static void test_first_range(struct kunit *test)
{
	test_rounds(test, check_first_range);
}

/* The long interval and its windows add up to the requested length, or it has one event. */
static void check_long_and_windows(struct kunit *test, u64 period, u64 window, u32 count)
{
	u64 length = perf_alt_period_long(period, window, count);

	if (length > 1)
		KUNIT_ASSERT_EQ(test, period, test_round(length, window, count));
	else
		KUNIT_ASSERT_GE(test, test_round(1, window, count), period);
	KUNIT_ASSERT_TRUE(test, test_period_valid(length));
}

static void test_long_and_windows(struct kunit *test)
{
	test_rounds(test, check_long_and_windows);
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

/* Skipping rounds gives the same result as going through all intervals. */
static void test_skip(struct kunit *test)
{
	static const u64 periods[] = { 1, 2, 3, 10, 299, 1000 };
	int c, i, j;
	u32 k;

	for (c = 0; c < 4; c++) {
		for (i = 0; i < ARRAY_SIZE(periods); i++) {
			for (j = 0; j < ARRAY_SIZE(periods); j++) {
				u64 period = periods[i], window = periods[j], events;
				u32 count = test_counts[c];

				for (events = 0; events < 4100; events += 1 + c) {
					u64 left = perf_alt_period_skip(events, period, window,
									count);

					KUNIT_ASSERT_LT(test, left,
							test_round(period, window, count));
					for (k = PERF_ALT_LONG; k <= 1 + (count ?: 1); k++) {
						u16 slow = k, fast = k;

						KUNIT_ASSERT_EQ(test,
								test_walk(&slow, events, period,
									  window, count),
								test_walk(&fast, left, period,
									  window, count));
						KUNIT_ASSERT_EQ(test, slow, fast);
					}
				}
			}
		}
	}
}

static void test_skip_extremes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_skip(0, 1, 1, 0));
	KUNIT_EXPECT_EQ(test, 1, perf_alt_period_skip(S64_MAX, 1, 1, 1));
	KUNIT_EXPECT_EQ(test, 255, perf_alt_period_skip(S64_MAX, 1, 1, 255));
	KUNIT_EXPECT_EQ(test, S64_MAX, perf_alt_period_skip(S64_MAX, S64_MAX, 1, 0));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_skip(S64_MAX, S64_MAX - 1, 1, 0));
	KUNIT_EXPECT_EQ(test, S64_MAX, perf_alt_period_skip(S64_MAX, S64_MAX - 1, 1, 2));
	KUNIT_EXPECT_EQ(test, S64_MAX, perf_alt_period_skip(S64_MAX, S64_MAX, S64_MAX, 0));
	KUNIT_EXPECT_EQ(test, S64_MAX, perf_alt_period_skip(S64_MAX, 1, S64_MAX, 255));
	KUNIT_EXPECT_EQ(test, 775807, perf_alt_period_skip(S64_MAX, 999700, 300, 0));
}

static const u64 test_check_periods[] = {
	0, 1, 2, 300, 4000, 1000000, U32_MAX, 1ULL << 32, TEST_PERIOD_LIMIT - 1,
	TEST_PERIOD_LIMIT, TEST_PERIOD_LIMIT + 300, U64_MAX,
};

static const u32 test_check_jitters[] = {
	0, 1, 7, 30, 31, 32, 63, 64, 1U << 31, U32_MAX,
};

static const u32 test_check_counts[] = {
	0, 1, 2, 255, 256, 257, 1U << 31, U32_MAX,
};

static int test_check(u64 period, u64 window, u32 count, u32 jitter)
{
	if (window == 0 && count == 0 && jitter == 0)
		return 0;		/* as if the fields did not exist */
	if (window >> 63)
		return -EINVAL;
	if (period == 0 || period >> 63)
		return -EINVAL;		/* nothing to alternate with, or to jitter */
	if (count && !window)
		return -EINVAL;		/* nothing to count */
	if (jitter >= 31 || count >= 256)
		return -EINVAL;

	return 0;
}

static void test_validity(struct kunit *test)
{
	int p, w, c, j;

	for (p = 0; p < ARRAY_SIZE(test_check_periods); p++)
		for (w = 0; w < ARRAY_SIZE(test_check_periods); w++)
			for (c = 0; c < ARRAY_SIZE(test_check_counts); c++)
				for (j = 0; j < ARRAY_SIZE(test_check_jitters); j++) {
					u64 period = test_check_periods[p];
					u64 window = test_check_periods[w];
					u32 count = test_check_counts[c];
					u32 jitter = test_check_jitters[j];

					KUNIT_EXPECT_EQ_MSG(test,
							    perf_alt_period_check(period, window,
										  count, jitter),
							    test_check(period, window, count,
								       jitter),
							    "period %llu window %llu count %u jitter %u",
							    period, window, count, jitter);
				}
}

/* One line per rule, as documentation. */
static void test_validity_examples(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(999700, 300, 0, 0));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(999700, 300, 0, 30));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(999700, 300, 1, 0));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(999700, 300, 255, 0));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(300, 300, 0, 7));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(300, 999700, 0, 7));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(1, 1, 0, 1));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(999700, 0, 0, 7));
	KUNIT_EXPECT_EQ(test, 0, perf_alt_period_check(0, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, perf_alt_period_check(0, 300, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, perf_alt_period_check(1000, 1ULL << 63, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, perf_alt_period_check(1ULL << 63, 300, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, perf_alt_period_check(0, 0, 0, 7));
	KUNIT_EXPECT_EQ(test, -EINVAL, perf_alt_period_check(999700, 0, 1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, perf_alt_period_check(999700, 300, 0, 31));
	KUNIT_EXPECT_EQ(test, -EINVAL, perf_alt_period_check(999700, 300, 256, 0));
}

/* A burst does not reach what throttles, and whole bursts fit into a second. */
static void test_rate(struct kunit *test)
{
	static const u32 rates[] = { 1, 2, 999, 1000, 1001, 100000, S32_MAX, U32_MAX };
	static const u32 ticks[] = { 1, 2, 3, 4, 5, 256, 257, U32_MAX };
	static const u64 others[] = { 0, 1, 1ULL << 32, 1ULL << 56, U64_MAX };
	int r, t, c, f;

	for (r = 0; r < ARRAY_SIZE(rates); r++)
		for (t = 0; t < ARRAY_SIZE(ticks); t++)
			for (c = 0; c < ARRAY_SIZE(test_check_counts); c++)
				for (f = -1; f < (int)ARRAY_SIZE(others); f++) {
					u32 count = test_check_counts[c];
					u64 burst = 1ULL + (count ?: 1);
					u64 most = div64_u64(rates[r], burst);
					u64 freq = f < 0 ? most : others[f];
					bool valid = freq <= most && burst < ticks[t];

					KUNIT_ASSERT_EQ(test, valid ? 0 : -EINVAL,
							perf_alt_period_check_rate(freq, count,
										   rates[r],
										   ticks[t]));
					KUNIT_ASSERT_EQ(test, -EINVAL,
							perf_alt_period_check_rate(most + 1, count,
										   rates[r],
										   ticks[t]));
				}
}

static struct kunit_case alt_period_test_cases[] = {
	KUNIT_CASE(test_alternation),
	KUNIT_CASE(test_no_window),
	KUNIT_CASE(test_no_jitter),
	KUNIT_CASE(test_jitter_smallest),
	KUNIT_CASE(test_jitter_range),
	KUNIT_CASE(test_jitter_uniform),
	KUNIT_CASE(test_jitter_chi_square),
	KUNIT_CASE(test_first_uniform),
	KUNIT_CASE(test_first_range),
	KUNIT_CASE(test_long_and_windows),
	KUNIT_CASE(test_skip),
	KUNIT_CASE(test_skip_extremes),
	KUNIT_CASE(test_validity),
	KUNIT_CASE(test_validity_examples),
	KUNIT_CASE(test_rate),
	{},
};

static struct kunit_suite alt_period_test_suite = {
	.name = "perf_alt_period",
	.test_cases = alt_period_test_cases,
};

kunit_test_suites(&alt_period_test_suite);

MODULE_DESCRIPTION("KUnit test for the logic of alternate sample periods");
MODULE_LICENSE("GPL");
