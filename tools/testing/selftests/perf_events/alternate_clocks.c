// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods of cpu-clock and task-clock: the periods in the samples must add
 * up to the time that the event ran, which the samples carry, too.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <fcntl.h>
#include <sched.h>
#include <stdint.h>

#include "alternate_software.h"

#define LONG		1000000LL
#define WINDOW		130000LL
#define SAMPLES		40

/* The values of a group come after their number. */
#define GROUP_LEADER	1

FIXTURE(clock) {
	struct perf_event_attr attr;
	struct event event;
	__u64 sum;		/* sum of the periods */
	int exact;		/* number of samples of their own period */
	__s64 ahead, behind;	/* difference of the periods' sum to the count */
};

FIXTURE_VARIANT(clock) {
	__u64 config;
};

FIXTURE_VARIANT_ADD(clock, cpu) {
	.config = PERF_COUNT_SW_CPU_CLOCK,
};

FIXTURE_VARIANT_ADD(clock, task) {
	.config = PERF_COUNT_SW_TASK_CLOCK,
};

FIXTURE_SETUP(clock)
{
	const char *why = common_attr(&self->attr);

	if (why)
		SKIP(return, "%s", why);

	self->attr.type = PERF_TYPE_SOFTWARE;
	self->attr.config = variant->config;
	self->attr.sample_period = LONG;
	self->attr.alternative_sample_period = WINDOW;
	if (try_open(&self->attr) == EACCES)
		SKIP(return, "may not sample the kernel");
}

FIXTURE_TEARDOWN(clock)
{
}

#define CLOCK struct _test_data_clock

static bool pin_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);

	return !sched_setaffinity(0, sizeof(cpus), &cpus);
}

/*
 * Takes samples of a long interval and a window in turn. An interval is longer than its period if
 * the timer is late or the event is taken off the CPU when the timer is due.
 */
static void take_samples(CLOCK *self, __u64 period, __u64 window, bool toggle)
{
	int leader = self->attr.read_format & PERF_FORMAT_GROUP ? GROUP_LEADER : 0;
	__u64 nominal[2] = { period, window };
	struct sample *sample;

	self->exact = 0;
	self->ahead = INT64_MIN;
	self->behind = INT64_MAX;
	for (int i = 0; i < SAMPLES; i++) {
		__s64 behind;

		while (!(sample = event_sample(&self->event)))
			if (toggle) {
				ioctl(self->event.fd, PERF_EVENT_IOC_DISABLE, 0);
				ioctl(self->event.fd, PERF_EVENT_IOC_ENABLE, 0);
				spin(5 * SHORTEST); /* a few of them */
			}

		self->exact += sample->period == nominal[i % 2];
		self->sum += sample->period;
		behind = sample->value[leader] - self->sum;
		if (-behind > self->ahead)
			self->ahead = -behind;
		if (i >= SAMPLES / 2 && behind < self->behind)
			self->behind = behind;
	}
}

/*
 * Expects that the timer is sometimes late, but never early, and catches up. It need not without a
 * window: an interrupt of a debug kernel takes longer than the shortest period.
 */
static void expect_elapsed(struct __test_metadata *_metadata, CLOCK *self)
{
	EXPECT_LE(SAMPLES * 9 / 10, self->exact);
	EXPECT_GT(LONG / 100, self->ahead);
	if (self->attr.alternative_sample_period)
		EXPECT_GT(LONG / 2, self->behind);
}

TEST_F(clock, alternates)
{
	static const struct {
		__u64 period, window;	/* of the attr, a frequency with freq */
		__u64 nominal[2];	/* of the samples */
		bool freq;
	} any[] = {
		{ LONG, WINDOW, { LONG, WINDOW } },
		/* a period below the shortest */
		{ LONG, 300, { LONG, SHORTEST } },
		{ 300, 0, { SHORTEST, SHORTEST } },
		/* the long interval and its window take as long as the frequency says */
		{ 1000, WINDOW, { NSEC_PER_SEC / 1000 - WINDOW, WINDOW }, true },
	};

	for (int i = 0; i < ARRAY_SIZE(any); i++) {
		self->attr.freq = any[i].freq;
		self->attr.sample_period = any[i].period;
		self->attr.alternative_sample_period = any[i].window;
		self->sum = 0;
		ASSERT_EQ(0, event_open(&self->event, &self->attr));
		take_samples(self, any[i].nominal[0], any[i].nominal[1], false);
		expect_elapsed(_metadata, self);
		event_close(&self->event);
	}
}

/*
 * In an emulator, reading so many siblings takes longer than the period. The timer skips the
 * periods that have passed, and a sample still has the weight of one.
 */
TEST_F(clock, late_timer)
{
	struct perf_event_attr sibling = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(sibling),
		.read_format = PERF_FORMAT_GROUP,
	};

	self->attr.sample_period = SHORTEST;
	self->attr.alternative_sample_period = 0;
	self->attr.read_format = PERF_FORMAT_GROUP;
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	ASSERT_EQ(0, ioctl(self->event.fd, PERF_EVENT_IOC_DISABLE, 0));
	for (int i = 0; i < 400; i++)
		ASSERT_LE(0, perf_event_open(&sibling, -1, self->event.fd));
	ASSERT_EQ(0, ioctl(self->event.fd, PERF_EVENT_IOC_ENABLE, 0));
	take_samples(self, SHORTEST, SHORTEST, false);
	EXPECT_LE(SAMPLES * 9 / 10, self->exact);
	event_close(&self->event);
}

/*
 * A window that ends in the kernel has no sample there. Repeating it until it ends in user mode
 * would cause an interrupt every 10 us.
 */
TEST_F(clock, window_ends_in_excluded_mode)
{
	struct perf_event_attr timer = {
		.type = PERF_TYPE_TRACEPOINT,
		.config = read_number(TRACING "timer/hrtimer_expire_entry/id", "%lld"),
		.size = sizeof(timer),
	};
	int zero = open("/dev/zero", O_RDONLY), timers, cpu = sched_getcpu();
	static char zeros[4 << 20];
	struct sample *sample;

	ASSERT_TRUE(pin_to(cpu));
	timers = perf_event_open(&timer, cpu, -1);
	if (timers < 0)
		SKIP(return, "cannot count timers: %s", strerror(errno));

	self->attr.exclude_kernel = 1;
	self->attr.alternative_sample_period = SHORTEST;
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	for (int i = 0; i < 10; i++) {
		__u64 before, after;
		long long start;

		/* A window begins. */
		while (!(sample = event_sample(&self->event)) || sample->period != LONG)
			;
		ASSERT_EQ(sizeof(before), read(timers, &before, sizeof(before)));
		for (start = now(); now() - start < 5 * LONG;)
			ASSERT_EQ(sizeof(zeros), read(zero, zeros, sizeof(zeros)));
		ASSERT_EQ(sizeof(after), read(timers, &after, sizeof(after)));
		EXPECT_GT(100, after - before);
	}
	event_close(&self->event);
	close(timers);
	close(zero);
}

TEST_F(clock, disabling_keeps_phase)
{
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	take_samples(self, LONG, WINDOW, true);
	EXPECT_LE(SAMPLES / 2, self->exact);
	EXPECT_GT(LONG / 100, self->ahead);
	event_close(&self->event);
}

TEST_F(clock, ioc_period)
{
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	take_samples(self, LONG, WINDOW, false);
	/* The interval is cut off; a late sample may remain. */
	ASSERT_EQ(0, ioctl(self->event.fd, PERF_EVENT_IOC_DISABLE, 0));
	while (event_sample(&self->event))
		;
	ASSERT_EQ(0, event_set_period(&self->event, 700000));
	self->sum = event_count(&self->event);
	ASSERT_EQ(0, ioctl(self->event.fd, PERF_EVENT_IOC_ENABLE, 0));
	take_samples(self, 700000, WINDOW, false);
	expect_elapsed(_metadata, self);
	event_close(&self->event);
}

TEST_F(clock, plain_ioc_period)
{
	self->attr.alternative_sample_period = 0;
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	take_samples(self, LONG, LONG, false);
	ASSERT_EQ(0, event_set_period(&self->event, 700000));
	while (event_sample(&self->event))
		;
	take_samples(self, 700000, 700000, false);
	EXPECT_LE(SAMPLES * 9 / 10, self->exact);
	event_close(&self->event);
}

/* A window that is open when the CPU becomes idle belongs to nobody. */
TEST_F(clock, idle_cpu)
{
	const struct timespec pause = { .tv_nsec = 5 * LONG };
	int cpu = sched_getcpu(), windows = 0;
	struct sample *sample;
	__u64 value = 0;
	int err;

	ASSERT_TRUE(pin_to(cpu));
	self->attr.exclude_kernel = 1;
	err = event_open_on(&self->event, &self->attr, cpu);
	if (err == EACCES)
		SKIP(return, "may not sample a CPU");
	ASSERT_EQ(0, err);

	for (int i = 0; i < 300; i++) {
		spin(LONG + i * 4999);
		nanosleep(&pause, NULL);
		while ((sample = event_sample(&self->event))) {
			if (sample->period == WINDOW) {
				EXPECT_GT(pause.tv_nsec, sample->value[0] - value);
				windows++;
			}
			value = sample->value[0];
		}
	}
	EXPECT_LT(100, windows);
	event_close(&self->event);
}

TEST_HARNESS_MAIN
