// SPDX-License-Identifier: GPL-2.0
/*
 * Alternate sample periods as perf_event_open(2) and the ring buffer show them:
 * which attrs are refused, and in which order the periods of the samples come.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define LONG		1000000ULL
#define WINDOW		100000ULL
#define OTHER_LONG	700000ULL

/* Samples which a test looks at, and the ring buffer which has room for them. */
#define SAMPLES		20
#define DATA_PAGES	8

/*
 * How many events may pass between an overflow and its sample; they are missing
 * in the next interval. None do on an emulated machine with one processor.
 */
#ifndef SKID
#define SKID		WINDOW
#endif

struct sample {
	struct perf_event_header header;
	__u32 pid;
	__u32 tid;
	__u64 period;
	__u64 nr;
	__u64 value[2];
};

static int perf_event_open(struct perf_event_attr *attr, int cpu, int group)
{
	return syscall(__NR_perf_event_open, attr, 0, cpu, group,
		       PERF_FLAG_FD_CLOEXEC);
}

/* 0 or the errno of opening an event, which is closed again. */
static int try_open(struct perf_event_attr *attr)
{
	int fd = perf_event_open(attr, -1, -1);

	if (fd < 0)
		return errno;

	close(fd);

	return 0;
}

static void work(unsigned int loops)
{
	while (loops--)
		asm volatile("" ::: "memory");
}

/* The rules which do not need a PMU: they are checked before it is asked. */
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

TEST_F(rules, no_frequency)
{
	self->attr.freq = 1;
	self->attr.sample_freq = 100;
	EXPECT_EQ(EINVAL, try_open(&self->attr));

	self->attr.alternative_sample_period = 0;
	EXPECT_EQ(0, try_open(&self->attr));

	self->attr.jitter_alternate_period = 1;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
}

TEST_F(rules, window_without_bit_63)
{
	self->attr.alternative_sample_period = 1ULL << 63;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
}

TEST_F(rules, window_needs_sample_period)
{
	self->attr.sample_period = 0;
	EXPECT_EQ(EINVAL, try_open(&self->attr));

	self->attr.alternative_sample_period = 0;
	EXPECT_EQ(0, try_open(&self->attr));
}

TEST_F(rules, jitter_at_most_30)
{
	self->attr.jitter_alternate_period = 30;
	EXPECT_NE(EINVAL, try_open(&self->attr));

	self->attr.jitter_alternate_period = 31;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
}

TEST_F(rules, jitter_needs_window)
{
	self->attr.alternative_sample_period = 0;
	self->attr.jitter_alternate_period = 1;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
}

TEST_F(rules, reserved_members)
{
	self->attr.__reserved_4 = 1;
	EXPECT_EQ(EINVAL, try_open(&self->attr));

	self->attr.__reserved_4 = 0;
	self->attr.config4 = 1;
	EXPECT_EQ(EINVAL, try_open(&self->attr));
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
		/* What lies behind the size must not be looked at. */
		self->attr.alternative_sample_period =
			size[i] < PERF_ATTR_SIZE_VER10 ? 1ULL << 63 : 0;
		EXPECT_EQ(0, try_open(&self->attr))
			TH_LOG("attr.size %u", size[i]);
	}
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

	larger.surplus[63] = 1;
	EXPECT_EQ(E2BIG, try_open(&larger.attr));
	EXPECT_EQ(sizeof(larger.attr), larger.attr.size);

	/* The size which the kernel has told is the one to retry with. */
	EXPECT_EQ(0, try_open(&larger.attr));
}

/* An event which opens without a window must not ignore it. */
static void expect_refused(struct __test_metadata *_metadata,
			   struct perf_event_attr *attr)
{
	int err;

	attr->alternative_sample_period = 0;
	err = try_open(attr);
	if (err)
		SKIP(return, "cannot open the event: %s", strerror(err));

	attr->alternative_sample_period = WINDOW;
	EXPECT_EQ(EOPNOTSUPP, try_open(attr));
}

TEST_F(rules, software_event_refuses)
{
	expect_refused(_metadata, &self->attr);
}

TEST_F(rules, breakpoint_refuses)
{
	self->attr.type = PERF_TYPE_BREAKPOINT;
	self->attr.config = 0;
	self->attr.bp_type = HW_BREAKPOINT_W;
	self->attr.bp_addr = (unsigned long)&self->attr;
	self->attr.bp_len = HW_BREAKPOINT_LEN_4;
	expect_refused(_metadata, &self->attr);
}

/* A group of cycles, which samples with alternate periods, and instructions. */
FIXTURE(event) {
	struct perf_event_attr attr;
	int cpu;
	int leader;
	struct perf_event_mmap_page *page;
	__u64 position;		/* in the ring buffer, which never wraps here */
	pid_t tid;		/* whose samples are looked at */
	bool toggle;		/* disable and enable the group meanwhile */
	int longs;		/* intervals before the first window, if known */
};

FIXTURE_SETUP(event)
{
	cpu_set_t cpus;

	/* The ring buffer of inherited events must belong to a CPU. */
	self->cpu = sched_getcpu();
	CPU_ZERO(&cpus);
	CPU_SET(self->cpu, &cpus);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpus), &cpus));

	self->tid = getpid();
	self->attr.type = PERF_TYPE_HARDWARE;
	self->attr.config = PERF_COUNT_HW_CPU_CYCLES;
	self->attr.size = sizeof(self->attr);
	self->attr.sample_period = LONG;
	self->attr.alternative_sample_period = WINDOW;
	self->attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD |
				 PERF_SAMPLE_READ;
	self->attr.read_format = PERF_FORMAT_GROUP;
	self->attr.exclude_kernel = 1;
	self->attr.exclude_hv = 1;
	self->attr.disabled = 1;

	self->leader = perf_event_open(&self->attr, self->cpu, -1);
	if (self->leader < 0)
		SKIP(return, "no cycles event with alternate sample periods: %s",
		     errno == E2BIG ? "kernel without them" : strerror(errno));
	close(self->leader);
}

FIXTURE_TEARDOWN(event)
{
}

#define EVENT struct _test_data_event

/* Opens the group as self->attr says and lets it count. */
static void start(struct __test_metadata *_metadata, EVENT *self)
{
	struct perf_event_attr attr = self->attr;

	self->leader = perf_event_open(&attr, self->cpu, -1);
	ASSERT_LE(0, self->leader);

	attr.config = PERF_COUNT_HW_INSTRUCTIONS;
	attr.sample_period = 0;
	attr.alternative_sample_period = 0;
	attr.jitter_alternate_period = 0;
	attr.disabled = 0;
	ASSERT_LE(0, perf_event_open(&attr, self->cpu, self->leader));

	self->page = mmap(NULL, (DATA_PAGES + 1) * getpagesize(),
			  PROT_READ | PROT_WRITE, MAP_SHARED, self->leader, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
}

/* Runs until there is another sample of self->tid. */
static struct sample *next_sample(struct __test_metadata *_metadata, EVENT *self)
{
	struct sample *sample = NULL;

	for (int i = 0; i < 200000; i++) {
		while (self->position < __atomic_load_n(&self->page->data_head,
							__ATOMIC_ACQUIRE)) {
			sample = (void *)self->page + self->page->data_offset +
				 self->position;
			self->position += sample->header.size;
			if (sample->header.type == PERF_RECORD_SAMPLE &&
			    sample->tid == self->tid)
				return sample;
		}

		work(1000);
		if (self->toggle) {
			ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0);
			work(1000);
			ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0);
		}
	}

	ASSERT_TRUE(false)
		TH_LOG("no sample for too long");

	return NULL;
}

static bool near(__u64 value, __u64 nominal, __u64 width)
{
	return value + width >= nominal && value <= nominal + width;
}

/* Is this an interval of the nominal length, jittered as self->attr says? */
static bool is_interval(EVENT *self, __u64 period, __u64 nominal)
{
	__u32 jitter = self->attr.jitter_alternate_period;
	__u64 width = jitter ? 1ULL << jitter : 0;

	return near(period, nominal, width < nominal / 2 ? width : nominal / 2);
}

/*
 * The next samples alternate from the beginning on: a long interval, one more
 * if the driver reloads before it calls the overflow handler, a window, a long
 * interval, a window, ... Each is as long as its sample says.
 */
static void expect_alternation(struct __test_metadata *_metadata, EVENT *self)
{
	__u64 nominal[2] = { self->attr.sample_period,
			     self->attr.alternative_sample_period };
	struct sample *sample, *last = NULL;
	bool window = false;

	for (int i = 0; i < SAMPLES; i++, window = !window, last = sample) {
		sample = next_sample(_metadata, self);
		if (i == 1) {
			window = !is_interval(self, sample->period, nominal[0]);
			if (self->longs)
				EXPECT_EQ(self->longs, window ? 1 : 2);
		}
		EXPECT_TRUE(is_interval(self, sample->period, nominal[window]))
			TH_LOG("sample %d: period %llu", i, sample->period);
		if (!last)
			continue;
		EXPECT_TRUE(near(sample->value[0] - last->value[0],
				 sample->period, SKID))
			TH_LOG("sample %d: period %llu, counted %llu", i,
			       sample->period, sample->value[0] - last->value[0]);
		EXPECT_LT(last->value[1], sample->value[1]);
	}
}

/* Returns well inside an interval: a window, or the long one after a window. */
static void run_into(struct __test_metadata *_metadata, EVENT *self, bool window)
{
	struct sample *sample;
	__u64 now[3];	/* nr, cycles, instructions */

	while ((sample = next_sample(_metadata, self))->period != WINDOW)
		self->longs++;
	if (window)
		sample = next_sample(_metadata, self);

	work(WINDOW / 20);
	ASSERT_EQ(sizeof(now), read(self->leader, now, sizeof(now)));
	ASSERT_LT(now[1] - sample->value[0], WINDOW);
}

static int set_period(EVENT *self, __u64 period)
{
	if (ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period))
		return errno;

	self->attr.sample_period = period;

	return 0;
}

TEST_F(event, extreme_values_open)
{
	self->attr.jitter_alternate_period = 30;
	EXPECT_EQ(0, try_open(&self->attr));

	self->attr.sample_period = ~0ULL >> 1;
	self->attr.alternative_sample_period = ~0ULL >> 1;
	EXPECT_EQ(0, try_open(&self->attr));
}

TEST_F(event, alternates)
{
	start(_metadata, self);
	expect_alternation(_metadata, self);
}

TEST_F(event, window_as_long_as_period)
{
	self->attr.alternative_sample_period = LONG;
	start(_metadata, self);
	expect_alternation(_metadata, self);
}

TEST_F(event, jitter_stays_in_bounds)
{
	int jittered = 0;

	self->attr.jitter_alternate_period = 10;
	start(_metadata, self);
	expect_alternation(_metadata, self);

	self->position = 0;
	for (int i = 0; i < SAMPLES; i++) {
		__u64 period = next_sample(_metadata, self)->period;

		jittered += period != LONG && period != WINDOW;
	}
	EXPECT_LT(SAMPLES / 2, jittered);
}

TEST_F(event, widest_jitter_is_half_the_period)
{
	self->attr.jitter_alternate_period = 30;
	start(_metadata, self);
	expect_alternation(_metadata, self);
}

TEST_F(event, ioc_period_in_long_interval)
{
	start(_metadata, self);
	run_into(_metadata, self, false);
	ASSERT_EQ(0, set_period(self, OTHER_LONG));
	expect_alternation(_metadata, self);
}

TEST_F(event, ioc_period_in_window)
{
	start(_metadata, self);
	run_into(_metadata, self, true);
	ASSERT_EQ(0, set_period(self, OTHER_LONG));
	expect_alternation(_metadata, self);
}

TEST_F(event, ioc_period_while_disabled)
{
	start(_metadata, self);
	run_into(_metadata, self, true);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, set_period(self, OTHER_LONG));
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
	expect_alternation(_metadata, self);
}

TEST_F(event, ioc_period_obeys_rules)
{
	start(_metadata, self);
	EXPECT_EQ(EINVAL, set_period(self, 0));
	EXPECT_EQ(EINVAL, set_period(self, 1ULL << 63));
	/* Neither has changed anything. */
	expect_alternation(_metadata, self);
}

TEST_F(event, disabling_keeps_phase)
{
	self->toggle = true;
	start(_metadata, self);
	expect_alternation(_metadata, self);
}

/* A child starts at the beginning, whatever interval its parent is in. */
static void expect_inheritance(struct __test_metadata *_metadata, EVENT *self,
			       bool window)
{
	pid_t child;

	self->attr.inherit = 1;
	start(_metadata, self);
	run_into(_metadata, self, window);

	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		/* ends by itself if the parent does not end it */
		alarm(10);
		for (;;)
			work(1000);
	}

	/* Both run, in turns, on the same CPU. */
	self->tid = child;
	expect_alternation(_metadata, self);
	kill(child, SIGKILL);
	EXPECT_EQ(child, waitpid(child, NULL, 0));

	self->tid = getpid();
	self->position = 0;
	expect_alternation(_metadata, self);
}

TEST_F(event, child_of_long_interval)
{
	expect_inheritance(_metadata, self, false);
}

TEST_F(event, child_of_window)
{
	expect_inheritance(_metadata, self, true);
}

TEST_HARNESS_MAIN
