// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods with perf_event_open(2) and the ring buffer: which attrs are
 * refused, in which order the periods of the samples come, and that each interval is as long as its
 * sample says.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include "alternate_period.h"

/* The rules that the kernel checks before it asks a PMU. */
FIXTURE(rules) {
	struct perf_event_attr attr;
};

FIXTURE_SETUP(rules)
{
	int err = choose_event(&self->attr) ? 0 : EOPNOTSUPP;

	self->attr.alternative_sample_period = WINDOW;
	if (!err)
		err = try_open(&self->attr);
	if (err == EOPNOTSUPP) {
		self->attr.type = PERF_TYPE_SOFTWARE;
		self->attr.config = PERF_COUNT_SW_CPU_CLOCK;
		err = try_open(&self->attr);
	}
	if (err == E2BIG)
		SKIP(return, "kernel without alternate sample periods");
	ASSERT_EQ(0, err);
}

FIXTURE_TEARDOWN(rules)
{
}

TEST_F(rules, values)
{
	self->attr.alternative_sample_count = 1;
	self->attr.jitter_alternate_period = 30;
	EXPECT_EQ(0, try_open(&self->attr));
	self->attr.jitter_alternate_period = 31;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
	self->attr.jitter_alternate_period = 0;
	self->attr.alternative_sample_count = 256;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
	self->attr.alternative_sample_count = 0;
	self->attr.alternative_sample_period = 1ULL << 63;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
	self->attr.alternative_sample_period = WINDOW;
	self->attr.sample_period = 0;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
}

TEST_F(rules, jitter_needs_no_window)
{
	self->attr.alternative_sample_period = 0;
	self->attr.alternative_sample_count = 1;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
	self->attr.alternative_sample_count = 0;
	self->attr.jitter_alternate_period = 30;
	EXPECT_EQ(0, try_open(&self->attr));
	self->attr.sample_period = 0;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
	self->attr.jitter_alternate_period = 0;
	EXPECT_EQ(0, try_open(&self->attr));
}

/* Each window has a sample, too. */
TEST_F(rules, frequency_times_samples)
{
	int rate = read_number(MAX_RATE);

	ASSERT_LT(0, rate);
	self->attr.freq = 1;
	for (__u32 count = 0; count < 4; count++) {
		self->attr.alternative_sample_count = count;
		self->attr.sample_freq = rate / (1 + (count ?: 1));
		EXPECT_EQ(0, try_open(&self->attr));
		self->attr.sample_freq++;
		EXPECT_EQ(EINVAL, try_open(&self->attr));
	}
	/* Times 4 it is 0. */
	self->attr.sample_freq = 1ULL << 62;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
	self->attr.sample_freq = 0;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
}

TEST_F(event, alternates)
{
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
}

TEST_F(event, jitter_stays_in_bounds)
{
	int jittered = 0;

	self->attr.jitter_alternate_period = 10;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);

	self->position = 0;
	for (int i = 0; i < SAMPLES; i++) {
		__u64 period = next_sample(_metadata, self)->period;

		jittered += period != LONG && period != WINDOW;
	}
	EXPECT_LT(SAMPLES / 2, jittered);
}

TEST_F(event, jitter_without_window)
{
	struct sample *sample;
	int jittered = 0;

	self->attr.alternative_sample_period = 0;
	self->attr.jitter_alternate_period = 16;
	start(_metadata, self);
	sample = next_sample(_metadata, self);
	for (int i = 0; i < SAMPLES; i++) {
		sample = expect_interval(_metadata, self, sample, false);
		jittered += sample->period != LONG;
	}
	EXPECT_LT(SAMPLES / 2, jittered);
}

/* At a limit of 4 samples in a tick, the longest burst that opens has all its windows. */
TEST_F(event, longest_burst)
{
	struct timespec tick;
	struct sample *sample;
	__u32 count = 8;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	if (!change_number(self, MAX_RATE, 4 * ((1000000000 + tick.tv_nsec / 2) / tick.tv_nsec)))
		SKIP(return, "cannot write " MAX_RATE);

	self->attr.sample_period = 20 * LONG;
	do {
		self->attr.alternative_sample_count = --count;
	} while (try_open(&self->attr) == EINVAL);
	EXPECT_EQ(2, count);
	start(_metadata, self);
	sample = next_sample(_metadata, self);
	for (int i = 1; i < 3 * SAMPLES; i++)
		sample = expect_interval(_metadata, self, sample, i % 3);
	EXPECT_EQ(0, self->throttled);
}

TEST_F(event, ioc_period)
{
	start(_metadata, self);
	EXPECT_EQ(EINVAL, set_period(self, 0));
	EXPECT_EQ(EINVAL, set_period(self, 1ULL << 63));
	expect_alternation(_metadata, self, 0);
	ASSERT_EQ(0, set_period(self, OTHER_LONG));
	expect_alternation(_metadata, self, UNKNOWN);
}

/* There are as many long intervals per second as the frequency says. */
TEST_F(event, frequency)
{
	__u64 begin, longs = 0, windows = 0;
	struct sample *sample;

	self->attr.freq = 1;
	self->attr.sample_freq = 1000;
	self->attr.alternative_sample_period = 300;
	start(_metadata, self);
	for (begin = now(); now() - begin < 300000000;)
		self->step(self);
	while (poll_sample(self))
		;
	for (begin = now(); now() - begin < 500000000; self->step(self)) {
		while ((sample = poll_sample(self))) {
			windows += sample->period == 300;
			longs += sample->period != 300;
		}
	}
	EXPECT_TRUE(near(longs, 500, 50));
	EXPECT_TRUE(near(windows, longs, 1));
}

TEST_HARNESS_MAIN
