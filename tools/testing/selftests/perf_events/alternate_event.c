// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods whatever a user asks of the event: all sizes of its attr, any
 * periods, frequencies and calls of ioctl(), and more samples than the kernel allows.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <glob.h>
#include <stddef.h>

#include "alternate_period.h"

#define DEVICES		"/sys/bus/event_source/devices/"

/* The rules that the kernel checks before it asks a PMU. */
FIXTURE(rules) {
	struct perf_event_attr attr;
};

FIXTURE_SETUP(rules)
{
	int err;

	self->attr.type = PERF_TYPE_SOFTWARE;
	self->attr.config = PERF_COUNT_SW_CPU_CLOCK;
	self->attr.size = sizeof(self->attr);
	self->attr.sample_period = LONG;
	self->attr.exclude_kernel = 1;
	self->attr.disabled = 1;

	err = try_open(&self->attr);
	if (err)
		SKIP(return, "cannot open cpu-clock: %s", strerror(err));

	self->attr.alternative_sample_period = WINDOW;
	if (try_open(&self->attr) == E2BIG)
		SKIP(return, "kernel without alternate sample periods");
}

FIXTURE_TEARDOWN(rules)
{
}

/* The limit may become lower while the event is open. */
TEST_F(rules, limit_becomes_lower)
{
	int rate = read_number(MAX_RATE), child, fd, refused;
	__u64 period = LONG;

	self->attr.inherit = 1;
	self->attr.alternative_sample_count = 2;
	fd = perf_event_open(&self->attr, 0, -1, -1);
	ASSERT_LE(0, fd);
	if (!write_number(MAX_RATE, 1))
		SKIP(return, "cannot write " MAX_RATE);
	refused = ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) ? errno : 0;
	child = fork();
	if (!child)
		_exit(0);
	write_number(MAX_RATE, rate);

	EXPECT_EQ(EINVAL, refused);
	EXPECT_LT(0, child);
}

/* Returns a number in the fdinfo of an event, 0 if there is none. */
static __u64 shown(int fd, const char *format)
{
	char path[64], line[128];
	__u64 number = 0;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "r");
	while (info && fgets(line, sizeof(line), info))
		sscanf(line, format, &number);
	if (info)
		fclose(info);

	return number;
}

TEST_F(rules, shown_in_fdinfo)
{
	int fd;

	self->attr.jitter_alternate_period = 12;
	self->attr.alternative_sample_count = 3;
	fd = perf_event_open(&self->attr, 0, -1, -1);
	ASSERT_LE(0, fd);
	if (!shown(fd, "perf_event_attr.type: %llu"))
		SKIP(return, "kernel shows no attr in fdinfo");

	EXPECT_EQ(WINDOW, shown(fd, "perf_event_attr.alternative_sample_period: %llu"));
	EXPECT_EQ(12, shown(fd, "perf_event_attr.jitter_alternate_period: %llu"));
	EXPECT_EQ(3, shown(fd, "perf_event_attr.alternative_sample_count: %llu"));
}

/* An event that can sample alternates if its PMU says so in caps, else it is refused. */
TEST_F(rules, pmus_do_what_they_say)
{
	int alternating = 0;
	glob_t pmus;

	ASSERT_EQ(0, glob(DEVICES "*", 0, NULL, &pmus));
	for (int i = 0; i < pmus.gl_pathc; i++) {
		int plain, err;
		char path[256];
		bool says;

		snprintf(path, sizeof(path), "%s/caps/alt_period", pmus.gl_pathv[i]);
		says = !access(path, F_OK);
		alternating += says;
		snprintf(path, sizeof(path), "%s/type", pmus.gl_pathv[i]);
		self->attr.type = read_number(path);
		self->attr.config = 0;
		self->attr.alternative_sample_period = 0;
		plain = try_open(&self->attr);
		self->attr.alternative_sample_period = WINDOW;
		err = try_open(&self->attr);
		EXPECT_EQ(plain ?: says ? 0 : EOPNOTSUPP, err)
			TH_LOG("%s", pmus.gl_pathv[i]);
	}
	globfree(&pmus);

	/* At least the one whose event opens above. */
	EXPECT_LT(0, alternating);
}

TEST_F(rules, all_sizes_open)
{
	static const __u32 size[] = {
		PERF_ATTR_SIZE_VER0, PERF_ATTR_SIZE_VER1, PERF_ATTR_SIZE_VER2,
		PERF_ATTR_SIZE_VER3, PERF_ATTR_SIZE_VER4, PERF_ATTR_SIZE_VER5,
		PERF_ATTR_SIZE_VER6, PERF_ATTR_SIZE_VER7, PERF_ATTR_SIZE_VER8,
		PERF_ATTR_SIZE_VER9, PERF_ATTR_SIZE_VER10,
	};

	for (int i = 0; i < ARRAY_SIZE(size); i++) {
		self->attr.size = size[i];
		/* The kernel must ignore everything behind the size. */
		self->attr.alternative_sample_period =
			size[i] < PERF_ATTR_SIZE_VER10 ? 1ULL << 63 : 0;
		EXPECT_EQ(0, try_open(&self->attr))
			TH_LOG("attr.size %u", size[i]);
	}
}

/* A size may end inside the new members: only those that it includes count. */
TEST_F(rules, size_decides_what_is_set)
{
	self->attr.alternative_sample_period = 0;
	self->attr.jitter_alternate_period = 31;
	self->attr.size = offsetof(struct perf_event_attr, jitter_alternate_period);
	EXPECT_EQ(0, try_open(&self->attr));

	self->attr.alternative_sample_period = 1ULL << 63;
	EXPECT_EQ(EINVAL, try_open(&self->attr));

	self->attr.alternative_sample_period = 0;
	self->attr.jitter_alternate_period = 0;
	self->attr.alternative_sample_count = 1;
	self->attr.size = offsetof(struct perf_event_attr, alternative_sample_count);
	EXPECT_EQ(0, try_open(&self->attr));

	self->attr.jitter_alternate_period = 31;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
}

TEST_F(event, any_periods)
{
	static const struct {
		__u64 period, window;
		__u32 jitter;
	} any[] = {
		{ LONG, LONG },
		{ WINDOW, LONG },
		{ LONG, WINDOW, 30 },	/* the widest jitter, half of each period */
	};

	for (int i = 0; i < ARRAY_SIZE(any); i++) {
		self->attr.sample_period = any[i].period;
		self->attr.alternative_sample_period = any[i].window;
		self->attr.jitter_alternate_period = any[i].jitter;
		start(_metadata, self);
		expect_alternation(_metadata, self, 0);
		stop(_metadata, self);
	}
}

/* The windows of a burst follow one another. */
TEST_F(event, burst)
{
	static const __u32 counts[] = { 1, 2, 5, 255 };

	for (int i = 0; i < ARRAY_SIZE(counts); i++) {
		struct sample *sample;

		/* The kernel lowers the limit if its interrupts take long. */
		if (counts[i] == 255 && read_number(MAX_RATE) < 100000 &&
		    !change_number(self, MAX_RATE, 100000))
			SKIP(return, "cannot write " MAX_RATE);
		self->attr.alternative_sample_count = counts[i];
		self->attr.sample_period = LONG / 10;
		self->attr.alternative_sample_period = WINDOW / 10;
		start(_metadata, self);
		sample = next_sample(_metadata, self);
		EXPECT_EQ(LONG / 10, sample->period);
		for (int k = 1; k < 3 * (1 + counts[i]); k++)
			sample = expect_interval(_metadata, self, sample,
						 k % (1 + counts[i]));
		stop(_metadata, self);
	}
}

/* After PERF_EVENT_IOC_PERIOD a burst begins anew, with one long interval. */
TEST_F(event, ioc_period_in_burst)
{
	self->attr.alternative_sample_count = 3;
	start(_metadata, self);
	for (int k = 0; k < 4; k++) {
		struct sample *sample;
		__u64 begin;

		do {
			sample = next_sample(_metadata, self);
		} while (sample->period != self->attr.sample_period);
		for (int i = 0; i < k; i++)
			sample = expect_interval(_metadata, self, sample, true);

		begin = count(_metadata, self);
		ASSERT_EQ(0, set_period(self, OTHER_LONG + k));
		sample = next_sample(_metadata, self);
		EXPECT_EQ(OTHER_LONG + k, sample->period);
		expect_counted(_metadata, sample, begin, self->skid + CALLS);
		for (int i = 1; i < 9; i++)
			sample = expect_interval(_metadata, self, sample, i % 4);
	}
}

#define SETTLE	300000000ULL	/* ns after which a frequency is met */
#define MEASURE	500000000ULL	/* ns in which samples are counted */

/*
 * Expects as many long intervals per second as the frequency says, whatever the windows are, each
 * with its windows.
 */
static void expect_frequency(struct __test_metadata *_metadata, EVENT *self)
{
	__u64 due = self->attr.sample_freq * MEASURE / 1000000000ULL;
	__u64 window = self->attr.alternative_sample_period;
	__u32 count = self->attr.alternative_sample_count ?: 1;
	__u64 begin = now(), longs = 0, windows = 0;
	struct sample *sample;

	while (now() - begin < SETTLE)
		self->step(self);
	while (poll_sample(self))
		;
	for (begin = now(); now() - begin < MEASURE;) {
		self->step(self);
		while ((sample = poll_sample(self))) {
			windows += sample->period == window;
			longs += sample->period != window;
		}
	}

	EXPECT_LE(due * 9 / 10, longs);
	EXPECT_GE(due * 11 / 10, longs);
	EXPECT_LE((longs - 1) * count, windows);
	EXPECT_GE((longs + 1) * count, windows);
}

static void start_frequency(struct __test_metadata *_metadata, EVENT *self)
{
	self->attr.freq = 1;
	self->attr.sample_freq = 1000;
	self->attr.alternative_sample_period = 300;
	start(_metadata, self);
	expect_frequency(_metadata, self);
}

TEST_F(event, frequency)
{
	__u64 most = read_number(MAX_RATE) / 2;

	start_frequency(_metadata, self);
	EXPECT_EQ(0, set_period(self, most));
	EXPECT_EQ(EINVAL, set_period(self, most + 1));
	EXPECT_EQ(EINVAL, set_period(self, 1ULL << 63));
	ASSERT_EQ(0, set_period(self, 400));
	expect_frequency(_metadata, self);
	ASSERT_EQ(0, set_period(self, 2000));
	expect_frequency(_metadata, self);
	/* The count restarts at 0. */
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_RESET, 0));
	expect_frequency(_metadata, self);
}

/* The time while the event is throttled does not matter. */
TEST_F(event, frequency_after_throttling)
{
	int rate = read_number(MAX_RATE);
	__u64 begin;

	start_frequency(_metadata, self);
	if (rate < 10 * 1000 || !change_number(self, MAX_RATE, 1000))
		SKIP(return, "cannot write " MAX_RATE);

	for (begin = now(); now() - begin < SETTLE;)
		self->step(self);
	while (poll_sample(self))
		;
	EXPECT_LT(10, self->throttled);
	ASSERT_TRUE(write_number(MAX_RATE, rate));
	expect_frequency(_metadata, self);
}

/* Works for some time, and returns the mean of the long intervals, or 0. */
static __u64 mean_long(EVENT *self, __u64 time, bool sleeps)
{
	__u64 begin = now(), total = 0, longs = 0, pause;
	struct sample *sample;

	while (now() - begin < time) {
		self->step(self);
		while ((sample = poll_sample(self))) {
			if (sample->period == self->attr.alternative_sample_period)
				continue;
			total += sample->period;
			longs++;
		}
		if (!sleeps || self->throttled == self->unthrottled)
			continue;
		for (pause = now(); now() - pause < 1500000;)
			self->step(self);
		usleep(100);
	}

	return longs ? total / longs : 0;
}

/* If a throttled task sleeps, its event is unthrottled before the next tick. */
TEST_F(event, frequency_of_throttled_task)
{
	int rate = read_number(MAX_RATE);
	__u64 before;

	start_frequency(_metadata, self);
	before = mean_long(self, MEASURE, false);
	if (rate < 10 * 1000 || !change_number(self, MAX_RATE, 1000))
		SKIP(return, "cannot write " MAX_RATE);

	EXPECT_LT(before * 9 / 10, mean_long(self, MEASURE, true));
	EXPECT_LT(10, self->throttled);
	ASSERT_TRUE(write_number(MAX_RATE, rate));
}

/* The windows take half of the time from one long interval to the next. */
TEST_F(event, frequency_with_long_windows)
{
	__u64 second;

	start_frequency(_metadata, self);
	second = self->attr.sample_freq * mean_long(self, MEASURE, false);
	stop(_metadata, self);

	self->attr.sample_freq = 200;
	self->attr.alternative_sample_count = 2;
	self->attr.alternative_sample_period = second / 200 / 4;
	start(_metadata, self);
	expect_frequency(_metadata, self);
}

/* A count that is read within an interval lies between its two samples. */
TEST_F(event, reads_lie_between_samples)
{
	__u64 now[3] = {}, before[3] = {};	/* nr, the event, its sibling */
	struct sample *last, *sample;

	start(_metadata, self);
	last = run_into(_metadata, self, false);
	for (int i = 0, reads = 0; i < SAMPLES;) {
		sample = poll_sample(self);
		if (!sample) {
			/* So the counts in now are from before the next sample. */
			memcpy(before, now, sizeof(now));
			ASSERT_EQ(sizeof(now), read(self->leader, now, sizeof(now)));
			EXPECT_LE(last->value[0], now[1]);
			EXPECT_LE(last->value[1], now[2]);
			self->step(self);
			reads++;
			continue;
		}

		EXPECT_EQ(i++ % 2 ? WINDOW : LONG, sample->period);
		expect_counted(_metadata, sample, last->value[0], self->skid);
		EXPECT_LE(before[1], sample->value[0]);
		EXPECT_LE(before[2], sample->value[1]);
		EXPECT_LT(5, reads);
		last = sample;
		reads = 0;
	}
}

/* With a new period the event starts anew, in any interval, and also if it does not count. */
TEST_F(event, ioc_period_in_each_state)
{
	start(_metadata, self);
	for (int i = 0; i < 4; i++) {
		bool window = i & 1, disabled = i & 2;
		__u64 begin;

		run_into(_metadata, self, window);
		if (disabled)
			ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));
		begin = count(_metadata, self);
		ASSERT_EQ(0, set_period(self, OTHER_LONG + i));
		if (disabled)
			ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
		expect_alternation(_metadata, self, begin);
	}
}

/* Uses periods so short that the CPU has little time for anything else. */
static void start_hog(struct __test_metadata *_metadata, EVENT *self)
{
	self->attr.sample_period = 2000;
	self->attr.alternative_sample_period = 1000;
	start(_metadata, self);
}

/* A driver may let a throttled event go on, as riscv_pmu_sbi of Linux 6.12 does. */
static bool goes_on_throttled(EVENT *self)
{
	return self->while_throttled > self->throttled;
}

TEST_F(event, ioc_period_while_throttled)
{
	start_hog(_metadata, self);
	/* Try several times, to hit both kinds of interval. */
	for (int i = 1; i <= 4; i++) {
		int throttled;
		__u64 begin;

		do {
			do {
				next_sample(_metadata, self);
				if (goes_on_throttled(self))
					SKIP(return, "no stop when throttled");
			} while (self->throttled == self->unthrottled);
			begin = count(_metadata, self);
			self->step(self);
		} while (begin != count(_metadata, self));

		throttled = self->throttled;
		ASSERT_EQ(0, set_period(self, 2000 + i));
		expect_alternation(_metadata, self, begin);
		EXPECT_LE(throttled, self->unthrottled);
	}
}

/* An event with too many samples is stopped, and goes on later. */
TEST_F(event, throttling_keeps_phase)
{
	struct sample *sample;
	int pauses = 0;

	start_hog(_metadata, self);
	sample = expect_alternation(_metadata, self, 0);
	while (self->unthrottled < 4) {
		sample = expect_interval(_metadata, self, sample,
					 sample->period == self->attr.sample_period);
		if (goes_on_throttled(self))
			SKIP(return, "no stop when throttled");
		/* The number of samples until the next pause may be even or odd. */
		if (pauses < self->unthrottled)
			usleep(1000 + 700 * pauses++);
	}
	expect_intervals(_metadata, self, sample,
			 sample->period == self->attr.sample_period);
	/* One sample may come after the throttle record. */
	EXPECT_LE(self->while_throttled, self->throttled);
}

TEST_F(event, disabling_keeps_rest_of_interval)
{
	start(_metadata, self);
	for (int window = 0; window < 2; window++) {
		struct sample *sample = run_into(_metadata, self, window);
		__u64 disabled;

		ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));
		disabled = count(_metadata, self);
		work(2 * LONG);
		EXPECT_EQ(disabled, count(_metadata, self));
		ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
		expect_intervals(_metadata, self, sample, window);
	}
}

/* Allows one overflow for each sample. */
static void step_refresh(EVENT *self)
{
	static __u64 head = 1;

	if (head != self->page->data_head) {
		head = self->page->data_head;
		ioctl(self->leader, PERF_EVENT_IOC_REFRESH, 1);
	}
	work(STEP);
}

/* The event disables itself at each overflow, and goes on with the next interval. */
TEST_F(event, refresh_keeps_phase)
{
	int samples = 0;

	open_group(_metadata, self);
	self->step = step_refresh;
	expect_alternation(_metadata, self, 0);

	work(2 * LONG);
	EXPECT_EQ(NULL, poll_sample(self));

	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_REFRESH, 3));
	work(4 * LONG);
	while (poll_sample(self))
		samples++;
	EXPECT_EQ(3, samples);
}

TEST_HARNESS_MAIN
