// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods of hardware events with perf_event_open(2) and the ring buffer:
 * which attrs are refused, in which order the periods of the samples come, and that each interval
 * is as long as its sample says, whatever becomes of event and task.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <errno.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define LONG		1000000ULL
#define WINDOW		100000ULL
#define STEP		1000	/* the work between two checks, well below WINDOW events */
#define SAMPLES		20	/* the least number that a test looks at */
#define DATA_SIZE	(512 * 1024)

/*
 * The most events between an overflow and its sample, which the next interval lacks, and in the
 * system calls around the start of an interval. Emulated machines have no skid, or one event.
 */
#ifndef SKID
#define SKID		(WINDOW / 20)
#endif
#define CALLS		(WINDOW / 20)
#define MAX_RATE "/proc/sys/kernel/perf_event_max_sample_rate"

struct sample {
	struct perf_event_header header;
	__u32 pid;
	__u32 tid;
	__u64 period;
	__u64 nr;
	__u64 value[2];
};

static pid_t child;	/* it may share the fixture with its parent */

/* A group of cycles, which samples, and instructions, or the other way round. */
FIXTURE(event) {
	struct perf_event_attr attr;
	int cpu;
	pid_t tid;		/* the thread whose samples are checked */
	int leader, sibling;
	struct perf_event_mmap_page *page;
	__u64 position;		/* in the ring buffer, which never wraps here */
	int throttled;		/* records up to position */
	int rate;		/* the limit, which the end restores; -1 if it cannot */
};

#define EVENT struct _test_data_event

static int event_open(EVENT *self, struct perf_event_attr *attr, int group)
{
	return syscall(__NR_perf_event_open, attr, 0, self->cpu, group, PERF_FLAG_FD_CLOEXEC);
}

/* Returns 0 or the errno of opening the event, which does not count. */
static int try_open(EVENT *self)
{
	return event_open(self, &self->attr, -1) < 0 ? errno : 0;
}

/* Returns the limit of samples per second, or -1; sets it if @rate is positive. */
static int max_rate(int rate)
{
	FILE *file = fopen(MAX_RATE, "r+");
	int before = -1;

	if (!file || fscanf(file, "%d", &before) != 1)
		return -1;
	rewind(file);
	if (rate > 0)
		fprintf(file, "%d\n", rate);
	fclose(file);

	return before;
}

/* A few instructions for each loop, which the compiler must not join with others. */
static void work(unsigned int loops)
{
	while (loops--)
		asm volatile("" : "+r" (loops) : : "memory");
}

static __u64 now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);

	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Opens the group and lets it count; a sibling counts the other event. */
static void start(struct __test_metadata *_metadata, EVENT *self)
{
	struct perf_event_attr sibling = self->attr;

	/* the group before, if there is one */
	if (self->page) {
		munmap(self->page, getpagesize() + DATA_SIZE);
		close(self->leader);
		close(self->sibling);
	}
	self->leader = event_open(self, &self->attr, -1);
	ASSERT_LE(0, self->leader);
	self->position = 0;
	self->throttled = 0;
	self->page = mmap(NULL, getpagesize() + DATA_SIZE, PROT_READ | PROT_WRITE,
			  MAP_SHARED, self->leader, 0);
	ASSERT_NE(MAP_FAILED, self->page);

	sibling.config ^= PERF_COUNT_HW_CPU_CYCLES ^ PERF_COUNT_HW_INSTRUCTIONS;
	sibling.sample_period = 0;
	sibling.size = PERF_ATTR_SIZE_VER8;	/* without the members behind */
	sibling.freq = 0;
	sibling.disabled = 0;
	self->sibling = event_open(self, &sibling, self->leader);
	ASSERT_LE(0, self->sibling);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
}

/* Returns the next sample of self->tid that is there already, or NULL. */
static struct sample *poll_sample(EVENT *self)
{
	while (self->position < __atomic_load_n(&self->page->data_head, __ATOMIC_ACQUIRE)) {
		struct sample *sample = (void *)self->page + self->page->data_offset +
					self->position;

		self->position += sample->header.size;
		self->throttled += sample->header.type == PERF_RECORD_THROTTLE;
		if (sample->header.type == PERF_RECORD_SAMPLE && sample->tid == self->tid)
			return sample;
	}

	return NULL;
}

/* Runs until there is another sample. */
static struct sample *next_sample(struct __test_metadata *_metadata, EVENT *self)
{
	struct sample *sample;

	for (int i = 0; i < 200000; i++) {
		sample = poll_sample(self);
		if (sample)
			return sample;

		work(STEP);
	}

	ASSERT_TRUE(false)
		TH_LOG("no sample for too long");

	return NULL;
}

static bool near(__u64 value, __u64 nominal, __u64 width)
{
	return value + width >= nominal && value <= nominal + width;
}

/* Expects a sample at the end of a window or a long interval; returns the count that it has. */
static __u64 expect_interval(struct __test_metadata *_metadata, EVENT *self,
			     __u64 begin, __u64 nominal)
{
	__u64 width = (1ULL << self->attr.jitter_alternate_period) & ~1ULL;
	struct sample *sample = next_sample(_metadata, self);

	EXPECT_TRUE(near(sample->period, nominal, width < nominal / 2 ? width : nominal / 2));
	EXPECT_TRUE(near(sample->value[0] - begin, sample->period, SKID))
		TH_LOG("period %llu of %llu, counted %llu", sample->period, nominal,
		       sample->value[0] - begin);

	return sample->value[0];
}

/* Expects whole rounds, from the next interval on: the n-th window, or with 0 the long one. */
static void expect_rounds(struct __test_metadata *_metadata, EVENT *self, __u64 begin, __u32 n)
{
	struct perf_event_attr *attr = &self->attr;
	__u32 windows = attr->alternative_sample_period ? attr->alternative_sample_count ?: 1 : 0;

	for (int i = 0; i < SAMPLES + 2 * windows; i++, n++) {
		n %= 1 + windows;
		begin = expect_interval(_metadata, self, begin,
					n ? attr->alternative_sample_period : attr->sample_period);
	}
}

/* Expects that the event alternates from the beginning on, where it had this count. */
static void expect_alternation(struct __test_metadata *_metadata, EVENT *self, __u64 begin)
{
	struct sample *sample = next_sample(_metadata, self);

	/* Jitter draws the first interval. */
	EXPECT_GE(self->attr.sample_period, sample->period);
	if (!self->attr.jitter_alternate_period)
		EXPECT_EQ(self->attr.sample_period, sample->period);
	EXPECT_TRUE(near(sample->value[0] - begin, sample->period, SKID + CALLS));
	expect_rounds(_metadata, self, sample->value[0], 1);
}

/* Returns the count of the event. */
static __u64 count(struct __test_metadata *_metadata, EVENT *self)
{
	__u64 now[3];	/* nr, the event, its sibling */

	ASSERT_EQ(sizeof(now), read(self->leader, now, sizeof(now)));

	return now[1];
}

/* Runs until well inside a window, or a long interval; it begins with the returned sample. */
static struct sample *run_into(struct __test_metadata *_metadata, EVENT *self, bool window)
{
	struct sample *sample;

	while (((sample = next_sample(_metadata, self))->period != WINDOW) != window)
		;
	work(5 * STEP);

	return sample;
}

static int set_period(EVENT *self, __u64 period)
{
	if (ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period))
		return errno;
	self->attr.sample_period = period;

	return 0;
}

FIXTURE_SETUP(event)
{
	struct perf_event_attr *attr = &self->attr;
	cpu_set_t cpus = {};
	int err;

	/* The ring buffer of inherited events must belong to a CPU. */
	self->cpu = sched_getcpu();
	CPU_SET(self->cpu, &cpus);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(cpus), &cpus));

	self->tid = getpid();
	self->rate = max_rate(0);
	attr->type = PERF_TYPE_HARDWARE;
	attr->size = sizeof(*attr);
	attr->sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
	attr->read_format = PERF_FORMAT_GROUP;
	attr->sample_period = LONG;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->disabled = 1;
	attr->config = PERF_COUNT_HW_CPU_CYCLES;
	if (try_open(self))
		attr->config = PERF_COUNT_HW_INSTRUCTIONS;
	if (try_open(self))
		SKIP(return, "no hardware event that samples");

	attr->alternative_sample_period = WINDOW;
	err = try_open(self);
	if (err == E2BIG || err == EOPNOTSUPP)
		SKIP(return, "%s without alternate sample periods",
		     err == E2BIG ? "kernel" : "PMU");
	ASSERT_EQ(0, err);
}

FIXTURE_TEARDOWN_PARENT(event)
{
	max_rate(self->rate);
}

TEST_F(event, alternates)
{
	static const struct {
		__u64 period, window;
		__u32 jitter, count;
		int err;
	} any[] = {
		{ LONG, WINDOW },
		{ WINDOW, LONG },
		{ LONG, WINDOW, 10 },
		{ LONG, WINDOW, 30 },	/* half of each period */
		{ LONG, 0, 16 },
		{ LONG, WINDOW / 10, 12, 5 },
		{ LONG, WINDOW / 10, 0, 255 },
		{ LONG, WINDOW, 31, 0, EINVAL },
		{ LONG, WINDOW, 0, 256, EINVAL },
		{ LONG, 1ULL << 63, 0, 0, EINVAL },
		{ LONG, 0, 0, 1, EINVAL },
		{ 0, WINDOW, 0, 0, EINVAL },
	};

	for (int i = 0; i < ARRAY_SIZE(any); i++) {
		self->attr.sample_period = any[i].period;
		self->attr.alternative_sample_period = any[i].window;
		self->attr.jitter_alternate_period = any[i].jitter;
		self->attr.alternative_sample_count = any[i].count;
		EXPECT_EQ(any[i].err, try_open(self));
		if (any[i].err)
			continue;
		start(_metadata, self);
		expect_alternation(_metadata, self, 0);
	}

	/* Its samples do not come from a period. */
	self->attr.type = PERF_TYPE_SOFTWARE;
	self->attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	self->attr.sample_period = 1;
	self->attr.alternative_sample_period = 1;
	EXPECT_EQ(EOPNOTSUPP, try_open(self));
	self->attr.alternative_sample_period = 0;
	EXPECT_EQ(0, try_open(self));
	self->attr.jitter_alternate_period = 1;
	EXPECT_EQ(EOPNOTSUPP, try_open(self));
}

/* With a new period the event starts anew; otherwise it keeps the rest of its interval. */
TEST_F(event, disable_and_ioc_period)
{
	start(_metadata, self);
	for (int i = 0; i < 6; i++) {
		bool window = i & 1, disable = i < 4;
		struct sample *sample = run_into(_metadata, self, window);
		__u64 begin;

		if (disable)
			ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));
		begin = count(_metadata, self);
		if (i > 1)
			ASSERT_EQ(0, set_period(self, LONG + i));
		ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
		if (i > 1)
			expect_alternation(_metadata, self, begin);
		else
			expect_rounds(_metadata, self, sample->value[0], window);
	}
}

/* An interval ends, and the next begins, even if a BPF program drops the sample. */
TEST_F(event, bpf_drops_windows)
{
	struct bpf_insn program[] = {	/* returns sample_period >> 17, 0 of a window */
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .src_reg = BPF_REG_1,
		  .off = offsetof(struct bpf_perf_event_data, sample_period) },
		{ .code = BPF_ALU64 | BPF_RSH | BPF_K, .imm = 17 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
	};
	int fd = syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	__u64 begin;

	if (fd < 0)
		SKIP(return, "no BPF program: %s", strerror(errno));

	start(_metadata, self);
	begin = run_into(_metadata, self, false)->value[0];
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_SET_BPF, fd));
	begin = expect_interval(_metadata, self, begin, LONG);
	for (int i = 0; i < SAMPLES; i++)
		begin = expect_interval(_metadata, self, begin + WINDOW, LONG);
}

/* A child starts at the beginning, although its parent is in a window. Both take turns. */
TEST_F(event, child)
{
	self->attr.inherit = 1;
	start(_metadata, self);
	run_into(_metadata, self, true);
	child = fork();
	if (!child) {
		alarm(10);
		work(~0U);
		_exit(0);
	}
	self->tid = child;
	expect_alternation(_metadata, self, 0);
	kill(self->tid, SIGKILL);
}

/*
 * Throttling may stop an event in each interval, and it goes on with the next. A limit which has
 * fallen refuses neither a new period nor a child.
 */
TEST_F(event, limit)
{
	static const struct {
		int samples;	/* in a tick */
		__u32 count;
	} any[] = { { 1, 0 }, { 2, 0 }, { 4, 8 } };
	struct timespec tick;
	__u64 begin;

	if (self->rate < 0)
		SKIP(return, "cannot write " MAX_RATE);

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	self->attr.inherit = 1;
	for (int i = 0; i < ARRAY_SIZE(any); i++) {
		max_rate(any[i].samples * (1000000000 / tick.tv_nsec));
		self->attr.alternative_sample_count = any[i].count;
		self->attr.sample_period = LONG;
		start(_metadata, self);
		expect_alternation(_metadata, self, 0);
		EXPECT_LT(0, self->throttled);
		max_rate(1);
		self->position = self->page->data_head;
		begin = count(_metadata, self);
		EXPECT_EQ(0, set_period(self, 2 * LONG));
		expect_alternation(_metadata, self, begin);
		child = fork();
		if (!child)
			_exit(0);
		EXPECT_EQ(child, waitpid(child, NULL, 0));
	}
}

/* There are as many long intervals per second as the frequency says, each with its windows. */
static void expect_frequency(struct __test_metadata *_metadata, EVENT *self, int frequency)
{
	int longs = 0, windows = 0;
	struct sample *sample;
	__u64 begin;

	for (begin = now(); now() - begin < 300000000;)
		work(STEP);
	while (poll_sample(self))
		;
	for (begin = now(); now() - begin < 500000000; work(STEP)) {
		while ((sample = poll_sample(self))) {
			windows += sample->period == 300;
			longs += sample->period != 300;
		}
	}
	EXPECT_TRUE(near(longs, frequency / 2, frequency / 20));
	EXPECT_TRUE(near(windows, 2 * longs, 2));
}

TEST_F(event, frequency)
{
	self->attr.freq = 1;
	self->attr.alternative_sample_count = 2;
	self->attr.alternative_sample_period = 300;
	if (self->rate < 10000)
		SKIP(return, "limit of %d samples per second", self->rate);

	/* Each window has a sample, too. */
	self->attr.sample_freq = self->rate / 3 + 1;
	EXPECT_EQ(EINVAL, try_open(self));
	self->attr.sample_freq = self->rate / 3;
	EXPECT_EQ(0, try_open(self));

	self->attr.sample_freq = 1000;
	start(_metadata, self);
	expect_frequency(_metadata, self, 1000);
	ASSERT_EQ(0, set_period(self, 400));
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_RESET, 0));
	expect_frequency(_metadata, self, 400);

	/* The time while the event is throttled does not matter. */
	max_rate(1000);
	for (__u64 begin = now(); now() - begin < 300000000;)
		work(STEP);
	max_rate(self->rate);
	expect_frequency(_metadata, self, 400);
	EXPECT_LT(0, self->throttled);
}

TEST_HARNESS_MAIN
