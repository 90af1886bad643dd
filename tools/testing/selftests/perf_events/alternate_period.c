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
#include <stdio.h>
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

/* Events between an overflow and the moment at which its sample is taken. */
#ifndef SKID
#define SKID		10000ULL
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

	self->attr.alternative_sample_period = ~0ULL;
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

	self->attr.jitter_alternate_period = ~0U;
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
	self->attr.alternative_sample_period = 0;
	self->attr.__reserved_4 = 1;
	EXPECT_EQ(EINVAL, try_open(&self->attr));

	self->attr.__reserved_4 = 0;
	self->attr.config4 = 1;
	EXPECT_EQ(EINVAL, try_open(&self->attr));

	self->attr.size = PERF_ATTR_SIZE_VER9;
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

	EXPECT_EQ(PERF_ATTR_SIZE_VER10, sizeof(self->attr));

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

TEST_F(rules, tracepoint_refuses)
{
	FILE *file = fopen("/sys/kernel/tracing/events/sched/sched_switch/id", "r");
	int id = -1;

	if (file) {
		if (fscanf(file, "%d", &id) != 1)
			id = -1;
		fclose(file);
	}
	if (id < 0)
		SKIP(return, "no tracepoint in /sys/kernel/tracing");

	self->attr.type = PERF_TYPE_TRACEPOINT;
	self->attr.config = id;
	self->attr.exclude_kernel = 0;
	expect_refused(_metadata, &self->attr);
}

/* A group of cycles, which samples with alternate periods, and instructions. */
FIXTURE(event) {
	struct perf_event_attr attr;
	int cpu;
	int leader;
	int member;
	struct perf_event_mmap_page *page;
	__u64 position;		/* in the ring buffer, which never wraps here */
	pid_t tid;		/* whose samples are looked at */
	bool toggle;		/* disable and enable the group meanwhile */
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
	if (self->leader < 0 && errno == E2BIG)
		SKIP(return, "kernel without alternate sample periods");
	if (self->leader < 0)
		SKIP(return, "no cycles event with alternate sample periods: %s",
		     strerror(errno));
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
	self->member = perf_event_open(&attr, self->cpu, self->leader);
	ASSERT_LE(0, self->member);

	self->page = mmap(NULL, (DATA_PAGES + 1) * getpagesize(),
			  PROT_READ | PROT_WRITE, MAP_SHARED, self->leader, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
}

/* The next sample of self->tid; NULL if none comes. */
static struct sample *next_sample(EVENT *self)
{
	for (int i = 0; i < 50000; i++) {
		while (self->position < __atomic_load_n(&self->page->data_head,
							__ATOMIC_ACQUIRE)) {
			struct sample *sample = (void *)self->page +
						self->page->data_offset +
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

	return NULL;
}

#define EXPECT_WITHIN(value, nominal, width) do {	\
	EXPECT_GE(value, (nominal) - (width));		\
	EXPECT_LE(value, (nominal) + (width));		\
} while (0)

/*
 * The next samples alternate from the beginning on: a long interval, one more
 * if the driver reloads before it calls the overflow handler, a window, a long
 * interval, a window, ... Each is as long as its sample says.
 */
static void expect_alternation(struct __test_metadata *_metadata, EVENT *self)
{
	__u64 half, nominal, last[2] = { 0 };
	bool window = false;

	for (int i = 0; i < SAMPLES; i++) {
		struct sample *sample = next_sample(self);

		ASSERT_NE(NULL, sample) TH_LOG("no sample %d", i);
		ASSERT_EQ(2, sample->nr);

		nominal = window ? self->attr.alternative_sample_period :
				   self->attr.sample_period;
		half = 0;
		if (self->attr.jitter_alternate_period) {
			half = 1ULL << self->attr.jitter_alternate_period;
			if (half > nominal / 2)
				half = nominal / 2;
		}
		EXPECT_WITHIN(sample->period, nominal, half)
			TH_LOG("period of sample %d", i);

		if (i) {
			EXPECT_WITHIN(sample->value[0] - last[0] + SKID,
				      sample->period + SKID, SKID);
			EXPECT_LT(last[1], sample->value[1]);
		}
		memcpy(last, sample->value, sizeof(last));

		window = i && !window;
	}
}
