// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods whatever happens to the event or its task meanwhile, and the rules
 * for all sizes of the attr.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <glob.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "alternate_period.h"

#ifndef TRAP_PERF
#define TRAP_PERF	6
#endif

#define DEVICES		"/sys/bus/event_source/devices/"

/* Does the PMU with this file of sysfs say that it alternates? */
static bool says_it_alternates(const char *file)
{
	const char *name = strrchr(file, '/');
	char path[256];

	snprintf(path, sizeof(path), "%.*s/caps/alt_period", (int)(name - file), file);

	return !access(path, F_OK);
}

/* HZ of the kernel: coarse clocks advance once in a tick. */
static int ticks_per_second(void)
{
	struct timespec tick;

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);

	return (1000000000 + tick.tv_nsec / 2) / tick.tv_nsec;
}

static pid_t worker;	/* a child, which ends with this process */
static int server;	/* socket of a task that works on request */
static int cpus[2];	/* for a task that moves */

#define NOBODY	65534
#define PARANOID "/proc/sys/kernel/perf_event_paranoid"
#define CPU_ONLINE "/sys/devices/system/cpu/cpu%d/online"

static bool set_online(int cpu, bool online)
{
	char path[64];

	snprintf(path, sizeof(path), CPU_ONLINE, cpu);

	return write_number(path, online);
}

/* Returns the count of the event. */
static __u64 count(struct __test_metadata *_metadata, EVENT *self)
{
	__u64 now[3];	/* nr, the event, its sibling unless it has left */

	ASSERT_LE(2 * sizeof(*now), read(self->leader, now, sizeof(now)));

	return now[1];
}

/*
 * Runs until well inside an interval: a window, or the long one after a window. The interval begins
 * with the returned sample.
 */
static struct sample *run_into(struct __test_metadata *_metadata, EVENT *self,
			       bool window)
{
	struct sample *sample;

	do {
		while ((sample = next_sample(_metadata, self))->period != WINDOW)
			;
		if (window)
			sample = next_sample(_metadata, self);

		for (int i = 0; i < 5; i++)
			self->step(self);
	} while (poll_sample(self));

	return sample;
}

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

TEST_F(rules, frequency)
{
	self->attr.freq = 1;
	self->attr.sample_freq = 100;
	EXPECT_EQ(0, try_open(&self->attr));

	self->attr.jitter_alternate_period = 31;
	EXPECT_EQ(EINVAL, try_open(&self->attr));

	self->attr.jitter_alternate_period = 0;
	self->attr.sample_freq = 0;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
}

TEST_F(rules, count_at_most_255)
{
	int ticks = ticks_per_second();

	self->attr.alternative_sample_count = 255;
	EXPECT_EQ((read_number(MAX_RATE) + ticks - 1) / ticks > 256 ? 0 : EINVAL,
		  try_open(&self->attr));
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

/* A kernel that does not use config4 reserves it, else fdinfo shows it. */
TEST_F(rules, config4_reserved_or_shown)
{
	int fd;

	self->attr.config4 = 0x123456789abcdef0;
	fd = perf_event_open(&self->attr, 0, -1, -1);
	if (fd < 0) {
		EXPECT_EQ(EINVAL, errno);
		return;
	}

	EXPECT_EQ(self->attr.config4, shown(fd, "perf_event_attr.config4: %llx"));
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
	glob_t types;

	ASSERT_EQ(0, glob(DEVICES "*/type", 0, NULL, &types));
	for (int i = 0; i < types.gl_pathc; i++) {
		bool says = says_it_alternates(types.gl_pathv[i]);
		int plain, err;

		alternating += says;
		self->attr.type = read_number(types.gl_pathv[i]);
		self->attr.config = 0;
		self->attr.alternative_sample_period = 0;
		plain = try_open(&self->attr);
		self->attr.alternative_sample_period = WINDOW;
		err = try_open(&self->attr);
		EXPECT_EQ(plain ?: says ? 0 : EOPNOTSUPP, err)
			TH_LOG("%s", types.gl_pathv[i]);
	}
	globfree(&types);

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

/* The kernel returns its own size, with which a retry works. */
static void expect_too_big(struct __test_metadata *_metadata,
			   struct perf_event_attr *attr)
{
	EXPECT_EQ(E2BIG, try_open(attr));
	EXPECT_EQ(sizeof(*attr), attr->size);
	EXPECT_EQ(0, try_open(attr));
}

TEST_F(rules, sizes_out_of_range)
{
	self->attr.alternative_sample_period = 0;

	/* A size of 0 means the first one. */
	self->attr.size = 0;
	EXPECT_EQ(0, try_open(&self->attr));

	self->attr.size = PERF_ATTR_SIZE_VER0 - 1;
	expect_too_big(_metadata, &self->attr);

	self->attr.size = getpagesize() + 1;
	expect_too_big(_metadata, &self->attr);
}

TEST_F(rules, larger_attr)
{
	struct {
		struct perf_event_attr attr;
		__u64 surplus[64];
	} larger = { .attr = self->attr };

	larger.attr.alternative_sample_period = 0;
	larger.attr.size = sizeof(larger);
	EXPECT_EQ(0, try_open(&larger.attr));

	/* The rules hold for the members that the kernel knows. */
	larger.attr.jitter_alternate_period = 31;
	EXPECT_EQ(EINVAL, try_open(&larger.attr));
	EXPECT_EQ(sizeof(larger), larger.attr.size);

	larger.attr.jitter_alternate_period = 0;
	larger.surplus[63] = 1;
	expect_too_big(_metadata, &larger.attr);
}

TEST_F(event, extreme_values_open)
{
	self->attr.jitter_alternate_period = 30;
	EXPECT_EQ(0, try_open(&self->attr));

	self->attr.sample_period = ~0ULL >> 1;
	self->attr.alternative_sample_period = ~0ULL >> 1;
	EXPECT_EQ(0, try_open(&self->attr));
}

TEST_F(event, window_as_long_as_period)
{
	self->attr.alternative_sample_period = LONG;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
}

TEST_F(event, window_longer_than_period)
{
	self->attr.sample_period = WINDOW;
	self->attr.alternative_sample_period = LONG;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
}

TEST_F(event, widest_jitter_is_half_the_period)
{
	self->attr.jitter_alternate_period = 30;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
}

/* The windows of a burst follow one another. */
TEST_F(event, burst)
{
	static const __u32 counts[] = { 1, 2, 5, 255 };

	for (int i = 0; i < ARRAY_SIZE(counts); i++) {
		struct sample *sample;

		self->attr.alternative_sample_count = counts[i];
		self->attr.sample_period = LONG / 10;
		self->attr.alternative_sample_period = WINDOW / 10;
		self->position = 0;
		start(_metadata, self);
		sample = next_sample(_metadata, self);
		EXPECT_EQ(LONG / 10, sample->period);
		for (int k = 1; k < 3 * (1 + counts[i]); k++)
			sample = expect_interval(_metadata, self, sample,
						 k % (1 + counts[i]));
		ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));
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

static int set_frequency(EVENT *self, __u64 frequency)
{
	return set_period(self, frequency);
}

TEST_F(event, frequency)
{
	start_frequency(_metadata, self);
	ASSERT_EQ(0, set_frequency(self, 400));
	expect_frequency(_metadata, self);
	ASSERT_EQ(0, set_frequency(self, 2000));
	expect_frequency(_metadata, self);
	/* The count restarts at 0. */
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_RESET, 0));
	expect_frequency(_metadata, self);
}

TEST_F(event, frequency_times_samples)
{
	__u64 most = read_number(MAX_RATE) / 2;

	start_frequency(_metadata, self);
	EXPECT_EQ(0, set_frequency(self, most));
	EXPECT_EQ(EINVAL, set_frequency(self, most + 1));
	EXPECT_EQ(EINVAL, set_frequency(self, 1ULL << 63));
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
	__u64 begin, counted, time;
	int counter;

	self->attr.freq = 1;
	self->attr.sample_freq = 200;
	self->attr.alternative_sample_count = 2;

	counter = perf_event_open(&(struct perf_event_attr) {
			.type = self->attr.type,
			.config = self->attr.config,
			.size = sizeof(self->attr),
			.exclude_kernel = 1,
			.exclude_hv = 1,
		}, 0, -1, -1);
	ASSERT_LE(0, counter);
	ASSERT_EQ(sizeof(begin), read(counter, &begin, sizeof(begin)));
	time = now();
	for (int i = 0; i < 1000; i++)
		self->step(self);
	time = now() - time;
	ASSERT_EQ(sizeof(counted), read(counter, &counted, sizeof(counted)));
	close(counter);

	self->attr.alternative_sample_period = (counted - begin) * 1000000000 /
					       time / self->attr.sample_freq / 4;
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

static void expect_restart(struct __test_metadata *_metadata, EVENT *self)
{
	__u64 begin = count(_metadata, self);

	ASSERT_EQ(0, set_period(self, OTHER_LONG));
	expect_alternation(_metadata, self, begin);
}

TEST_F(event, ioc_period_in_long_interval)
{
	start(_metadata, self);
	run_into(_metadata, self, false);
	expect_restart(_metadata, self);
}

TEST_F(event, ioc_period_in_window)
{
	start(_metadata, self);
	run_into(_metadata, self, true);
	expect_restart(_metadata, self);
}

TEST_F(event, ioc_period_while_disabled)
{
	start(_metadata, self);
	for (int window = 0; window < 2; window++) {
		__u64 begin;

		run_into(_metadata, self, window);
		ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));
		begin = count(_metadata, self);
		ASSERT_EQ(0, set_period(self, OTHER_LONG + window));
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

TEST_F(event, ioc_period_obeys_rules)
{
	start(_metadata, self);
	EXPECT_EQ(EINVAL, set_period(self, 0));
	EXPECT_EQ(EINVAL, set_period(self, 1ULL << 63));
	/* Neither of the two has changed anything. */
	expect_alternation(_metadata, self, 0);
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

static void step_toggling(EVENT *self)
{
	work(STEP);
	ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0);
	work(STEP);
	ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0);
}

TEST_F(event, disabling_keeps_phase)
{
	self->step = step_toggling;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
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

static void work_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* ends itself if the parent does not */
	alarm(10);
	for (;;)
		work(STEP);
}

static pid_t fork_worker(EVENT *self)
{
	pid_t pid = fork();

	if (!pid)
		work_for_ever();

	worker = pid;

	return pid;
}

static pid_t fork_twice(EVENT *self)
{
	pid_t *pid = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();

	if (!child) {
		pid_t grandchild = fork();

		if (!grandchild)
			work_for_ever();
		__atomic_store_n(pid, grandchild, __ATOMIC_RELEASE);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(10);
		pause();
	}

	worker = child;
	while (!__atomic_load_n(pid, __ATOMIC_ACQUIRE))
		work(STEP);

	return *pid;
}

static void *thread(void *tid)
{
	__atomic_store_n((pid_t *)tid, syscall(__NR_gettid), __ATOMIC_RELEASE);
	for (;;)
		work(STEP);

	return NULL;
}

static pid_t create_thread(EVENT *self)
{
	static pid_t tid;
	pthread_t id;

	if (pthread_create(&id, NULL, thread, &tid))
		return -1;

	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		work(STEP);

	return tid;
}

/* Expects that a child starts at the beginning, whatever interval its parent is in. */
static void expect_inheritance(struct __test_metadata *_metadata, EVENT *self,
			       bool window, pid_t (*child)(EVENT *self))
{
	self->attr.inherit = 1;
	start(_metadata, self);
	run_into(_metadata, self, window);

	/* Both run in turns on the same CPU. */
	self->tid = child(self);
	ASSERT_LT(0, self->tid);
	expect_alternation(_metadata, self, 0);

	self->tid = getpid();
	self->position = 0;
	expect_alternation(_metadata, self, 0);
}

TEST_F(event, child_of_long_interval)
{
	expect_inheritance(_metadata, self, false, fork_worker);
}

TEST_F(event, child_of_window)
{
	expect_inheritance(_metadata, self, true, fork_worker);
}

TEST_F(event, grandchild_of_long_interval)
{
	expect_inheritance(_metadata, self, false, fork_twice);
}

TEST_F(event, thread_of_long_interval)
{
	expect_inheritance(_metadata, self, false, create_thread);
}

TEST_F(event, thread_of_window)
{
	expect_inheritance(_metadata, self, true, create_thread);
}

/*
 * Tasks with the same events may exchange them on a switch. An interval must not begin in one task
 * and end in another.
 */
TEST_F(event, tasks_do_not_exchange_events)
{
	struct sample *sample;
	__u64 last = 0;

	/* Events with counts in the sample are never exchanged. */
	self->attr.sample_type &= ~PERF_SAMPLE_READ;
	self->attr.inherit = 1;
	start(_metadata, self);
	ASSERT_LT(0, fork_worker(self));
	for (int i = 0; i < 4 * SAMPLES; i++, last = sample->period) {
		sample = next_sample(_metadata, self);
		if (i)
			EXPECT_EQ(last == LONG ? WINDOW : LONG, sample->period);
	}
}

/* Existing children keep their period, later ones have the new one. */
TEST_F(event, ioc_period_and_children)
{
	__u64 period = OTHER_LONG, position;
	struct sample *sample;

	self->attr.inherit = 1;
	start(_metadata, self);
	self->tid = fork_worker(self);
	ASSERT_LT(0, self->tid);
	sample = expect_alternation(_metadata, self, 0);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period));
	position = self->page->data_head;
	expect_intervals(_metadata, self, sample, sample->period == LONG);
	kill(worker, SIGKILL);

	self->attr.sample_period = period;
	self->tid = getpid();
	self->position = position;
	expect_alternation(_metadata, self, UNKNOWN);

	self->tid = fork_worker(self);
	ASSERT_LT(0, self->tid);
	expect_alternation(_metadata, self, 0);
}

/* A task that works when the other end of its standard input asks for it. */
#define SERVER		"server of alternate_tasks"

enum order { WORK, EXEC };

static void serve(void)
{
	char order = WORK;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The first answer says that the server is there. */
	while (write(STDIN_FILENO, &order, 1) == 1 &&
	       read(STDIN_FILENO, &order, 1) == 1) {
		if (order == EXEC) {
			execl("/proc/self/exe", SERVER, NULL);
			break;
		}
		work(STEP);
	}

	_exit(1);
}

static bool tell_server(EVENT *self, char order)
{
	return send(server, &order, 1, MSG_NOSIGNAL) == 1 &&
	       read(server, &order, 1) == 1;
}

static void step_server(EVENT *self)
{
	tell_server(self, WORK);
}

static void start_server(struct __test_metadata *_metadata, EVENT *self)
{
	pid_t pid;
	char here;
	int fd[2];

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		dup2(fd[1], STDIN_FILENO);
		close(fd[0]);
		close(fd[1]);
		serve();
	}

	close(fd[1]);
	worker = pid;
	server = fd[0];
	ASSERT_EQ(1, read(server, &here, 1));
	self->step = step_server;
	self->tid = pid;
}

static void expect_exec(struct __test_metadata *_metadata, EVENT *self)
{
	for (int window = 0; window < 2; window++) {
		struct sample *sample = run_into(_metadata, self, window);

		ASSERT_TRUE(tell_server(self, EXEC));
		expect_intervals(_metadata, self, sample, window);
	}
}

TEST_F(event, exec_keeps_rest_of_interval)
{
	start_server(_metadata, self);
	self->target = worker;
	start(_metadata, self);
	expect_exec(_metadata, self);
}

TEST_F(event, exec_of_child_keeps_rest_of_interval)
{
	self->attr.inherit = 1;
	start(_metadata, self);
	start_server(_metadata, self);
	expect_exec(_metadata, self);
}

TEST_F(event, enable_on_exec)
{
	start_server(_metadata, self);
	self->target = worker;
	self->attr.enable_on_exec = 1;
	open_group(_metadata, self);
	for (int i = 0; i < 2 * LONG / STEP; i++)
		self->step(self);
	EXPECT_EQ(0, count(_metadata, self));
	ASSERT_TRUE(tell_server(self, EXEC));
	expect_alternation(_metadata, self, 0);
}

/*
 * Can two counters count the event? QEMU's riscv64 has many counters, but only one of them counts
 * it. A counter that first only counts and samples later has a late first interrupt there, so both
 * have a period.
 */
static bool two_counters_count(EVENT *self)
{
	__u64 now[2] = {};	/* nr, the event */
	bool counted = true;
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = perf_event_open(&self->attr, self->target, self->cpu, -1);
		ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0);
	}
	work(STEP);
	for (int i = 0; i < 2; i++) {
		counted &= read(fd[i], now, sizeof(now)) == sizeof(now) && now[1];
		close(fd[i]);
	}

	return counted;
}

/* With more events than counters, they take turns, also inside of intervals. */
TEST_F(event, multiplexing_keeps_rest_of_interval)
{
	if (!two_counters_count(self))
		SKIP(return, "no two counters of one event");

	self->attr.sample_period = 8 * LONG;
	self->attr.alternative_sample_period = 3 * LONG;
	for (int i = 0; i < 40; i++)
		ASSERT_LE(0, open_counter(self, -1));
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
	EXPECT_LT(self->page->time_running, self->page->time_enabled);
}

/* The part of siginfo_t from si_addr on, which not every C library has. */
struct si_perf {
	void *addr;
	unsigned long data;
	__u32 type;
	__u32 flags;
};

/* The data of the signal handler. */
static struct {
	int fd;
	struct perf_event_attr *attr;
	int signals;
	int wrong;
	__u64 count[2 * SAMPLES];
} traps;

static void handle_trap(int signal, siginfo_t *info, void *context)
{
	const struct si_perf *perf = (void *)&info->si_addr;
	__u64 now[3];	/* nr, the event, its sibling */

	if (info->si_code != TRAP_PERF || perf->data != traps.attr->sig_data ||
	    perf->type != traps.attr->type || perf->flags ||
	    read(traps.fd, now, sizeof(now)) != sizeof(now))
		traps.wrong++;
	else if (traps.signals < ARRAY_SIZE(traps.count))
		traps.count[traps.signals] = now[1];
	traps.signals++;
}

/* Each overflow has its signal, before the task goes on. */
TEST_F(event, sigtrap)
{
	struct sigaction action = {
		.sa_flags = SA_SIGINFO,
		.sa_sigaction = handle_trap,
	};
	int samples = 0, late = 0;

	ASSERT_EQ(0, sigaction(SIGTRAP, &action, NULL));
	self->attr.remove_on_exec = 1;
	self->attr.sigtrap = 1;
	self->attr.sig_data = 0x1234;
	open_group(_metadata, self);
	traps.attr = &self->attr;
	traps.fd = self->leader;
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
	expect_alternation(_metadata, self, 0);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));

	self->position = 0;
	for (struct sample *sample; (sample = poll_sample(self)); samples++) {
		if (samples >= ARRAY_SIZE(traps.count))
			continue;
		EXPECT_LE(sample->value[0], traps.count[samples]);
		/* A tick may come in between. */
		late += traps.count[samples] >= sample->value[0] + WINDOW / 2;
	}
	EXPECT_GE(samples / 10, late);
	EXPECT_LT(SAMPLES, samples);
	EXPECT_EQ(samples, traps.signals);
	EXPECT_EQ(0, traps.wrong);
}

/* Loads a BPF program that drops the samples with a certain period. */
static int load_dropper(__s32 period)
{
	struct bpf_insn program[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW,
		  .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1,
		  .off = offsetof(struct bpf_perf_event_data, sample_period) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K,
		  .dst_reg = BPF_REG_2, .imm = period, .off = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
	};

	return syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}

/* Expects an interval without sample between two samples that are kept. */
static void expect_dropping(struct __test_metadata *_metadata, EVENT *self,
			    __u64 dropped, __u64 kept)
{
	struct sample *last, *sample;
	int program = load_dropper(dropped);

	if (program < 0)
		SKIP(return, "cannot load a BPF program: %s", strerror(errno));

	open_group(_metadata, self);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_SET_BPF, program));
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));

	for (int i = 0; i < LONGS; i++)
		last = next_sample(_metadata, self);
	for (int i = 0; i < SAMPLES; i++, last = sample) {
		sample = next_sample(_metadata, self);
		EXPECT_EQ(kept, sample->period);
		EXPECT_TRUE(near(sample->value[0] - last->value[0], LONG + WINDOW,
				 self->skid));
	}
}

TEST_F(event, bpf_drops_windows)
{
	expect_dropping(_metadata, self, WINDOW, LONG);
}

TEST_F(event, bpf_drops_long_intervals)
{
	expect_dropping(_metadata, self, LONG, WINDOW);
}

static int other_cpu(EVENT *self)
{
	int cpu = 0;

	while (cpu < CPU_SETSIZE && (cpu == self->cpu || !pin_to(cpu)))
		cpu++;
	pin_to(self->cpu);

	return cpu < CPU_SETSIZE ? cpu : -1;
}

static void step_elsewhere(EVENT *self)
{
	pin_to(cpus[0]);
	work(STEP);
	pin_to(cpus[1]);
	work(STEP);
}

TEST_F(event, migration_keeps_rest_of_interval)
{
	cpus[0] = self->cpu;
	cpus[1] = other_cpu(self);
	if (cpus[1] < 0)
		SKIP(return, "needs two CPUs");

	self->cpu = -1;
	self->step = step_elsewhere;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
}

/* Chooses a CPU for the test, and another one that stays online. */
static bool find_hotplug_cpu(EVENT *self)
{
	int other = other_cpu(self);

	/* The first CPU often cannot go offline. */
	cpus[0] = self->cpu ?: other;
	cpus[1] = self->cpu ? other : self->cpu;
	if (other < 0 || !set_online(cpus[0], true))
		return false;

	/* It is brought back at the end. */
	snprintf(self->changed, sizeof(self->changed), CPU_ONLINE, cpus[0]);
	self->before = 1;

	return pin_to(cpus[0]);
}

#define NO_HOTPLUG	"needs root and two CPUs, one of which can go offline"

/* The task has to leave the CPU, and its interval ends on another one. */
TEST_F(event, hotplug_keeps_rest_of_interval)
{
	if (!find_hotplug_cpu(self))
		SKIP(return, NO_HOTPLUG);

	self->cpu = -1;
	start(_metadata, self);
	for (int window = 0; window < 2; window++) {
		struct sample *sample = run_into(_metadata, self, window);

		ASSERT_TRUE(set_online(cpus[0], false));
		EXPECT_FALSE(pin_to(cpus[0]));
		expect_intervals(_metadata, self, sample, window);
		ASSERT_TRUE(set_online(cpus[0], true));
		ASSERT_TRUE(pin_to(cpus[0]));
	}
}

/* The events of a CPU end with it. */
TEST_F(event, hotplug_ends_event_of_cpu)
{
	__u64 period = OTHER_LONG, ended;

	if (!find_hotplug_cpu(self))
		SKIP(return, NO_HOTPLUG);

	self->cpu = cpus[0];
	self->target = -1;
	self->tid = 0;
	start(_metadata, self);
	run_into(_metadata, self, true);

	ASSERT_TRUE(pin_to(cpus[1]));
	ASSERT_TRUE(set_online(cpus[0], false));
	ended = count(_metadata, self);
	EXPECT_EQ(-1, perf_event_open(&self->attr, -1, self->cpu, -1));
	EXPECT_EQ(ENODEV, errno);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period));

	ASSERT_TRUE(set_online(cpus[0], true));
	ASSERT_TRUE(pin_to(cpus[0]));
	EXPECT_EQ(-1, perf_event_open(&self->attr, -1, self->cpu, self->leader));
	EXPECT_EQ(ENODEV, errno);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period));
	work(LONG);
	EXPECT_EQ(ended, count(_metadata, self));

	/* A new event begins at the beginning. */
	close(self->leader);
	self->position = 0;
	start(_metadata, self);
	expect_alternation(_metadata, self, 0);
}

/* With perf_event_paranoid = 2 users may sample user space only. */
TEST_F(event, unprivileged)
{
	int paranoid = read_number(PARANOID);

	if (!geteuid()) {
		ASSERT_TRUE(change_number(self, PARANOID, 2));
		if (setresuid(NOBODY, NOBODY, NOBODY))
			SKIP(return, "cannot be another user: %s", strerror(errno));
	} else if (paranoid != 2) {
		SKIP(return, "needs root or perf_event_paranoid = 2");
	}

	start(_metadata, self);
	expect_alternation(_metadata, self, 0);

	self->attr.exclude_kernel = 0;
	EXPECT_EQ(EACCES, try_open(&self->attr));
}

#define main test_main
TEST_HARNESS_MAIN
#undef main

int main(int argc, char *argv[])
{
	if (!strcmp(argv[0], SERVER))
		serve();

	return test_main(argc, argv);
}
