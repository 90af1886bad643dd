/* SPDX-License-Identifier: GPL-2.0 */
/* Tests of alternate sample periods: a group of events, and what its ring buffer must contain. */
#ifndef ALTERNATE_PERIOD_H
#define ALTERNATE_PERIOD_H

#include <asm/types.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define LONG		1000000ULL
#define WINDOW		100000ULL
#define OTHER_LONG	700000ULL

/* The number of samples that a test looks at, and a ring buffer with room for them. */
#define SAMPLES		20
#define DATA_SIZE	(512 * 1024)

/* The work between two checks, well below WINDOW events. */
#define STEP		1000

/* The most events in the system calls around the start of an interval. */
#define CALLS		(WINDOW / 20)

/*
 * The number of events that may pass between an overflow and its sample; the next interval lacks
 * them. Unless it is defined, each test measures it first. Emulated machines have none, or one.
 */
#ifdef SKID
#define MEASURE_SKID	false
#else
#define MEASURE_SKID	true
#define SKID		0
#endif

/* Long intervals at the start: one if the kernel alternates, two if the module does. */
#ifndef LONGS
#define LONGS		1
#endif

static inline int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu, int group)
{
	return syscall(__NR_perf_event_open, attr, pid, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

/* 0 or the errno of opening an event, which is closed again. */
static inline int try_open(struct perf_event_attr *attr)
{
	int fd = perf_event_open(attr, 0, -1, -1);

	if (fd < 0)
		return errno;

	close(fd);

	return 0;
}

/* Returns the number in a file of /proc or /sys, -1 if there is none. */
static inline int read_number(const char *path)
{
	FILE *file = fopen(path, "r");
	int number = -1;

	if (file && fscanf(file, "%d", &number) != 1)
		number = -1;
	if (file)
		fclose(file);

	return number;
}

static inline bool write_number(const char *path, int number)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = dprintf(fd, "%d\n", number) > 0;
	close(fd);

	return done;
}

#define MAX_RATE "/proc/sys/kernel/perf_event_max_sample_rate"

/* A few instructions for each loop, which the compiler must not join with others. */
static inline void work(unsigned int loops)
{
	while (loops--)
		asm volatile("" : "+r" (loops) : : "memory");
}

struct sample {
	struct perf_event_header header;
	__u32 pid;
	__u32 tid;
	__u64 period;
	__u64 nr;
	__u64 value[2];
};

#define EVENT struct _test_data_event

/*
 * A group of cycles, which samples with alternate periods, and instructions, or the other way round
 * if only instructions can sample.
 */
FIXTURE(event) {
	struct perf_event_attr attr;
	int cpu;		/* of the event, -1 for all */
	pid_t target;		/* the pid argument of perf_event_open() */
	pid_t tid;		/* the thread whose samples are checked, 0 for all */
	int leader;
	struct perf_event_mmap_page *page;
	__u64 position;		/* in the ring buffer, which never wraps here */
	int throttled;		/* records up to position */
	int unthrottled;
	int while_throttled;	/* samples between the two */
	void (*step)(EVENT *self);	/* makes the target work a little */
	char changed[64];	/* file of /proc or /sys, and what the end restores in it */
	int before;
	__u64 skid;		/* most difference of a counted interval to its period */
};

/* Changes a number until the test ends. */
static inline bool change_number(EVENT *self, const char *path, int number)
{
	self->before = read_number(path);
	if (self->before < 0 || !write_number(path, number))
		return false;
	snprintf(self->changed, sizeof(self->changed), "%s", path);

	return true;
}

static inline void step_here(EVENT *self)
{
	work(STEP);
}

static inline bool pin_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);

	return !sched_setaffinity(0, sizeof(cpus), &cpus);
}

/* Opens an event which only counts, in the group or outside of it (-1). */
static inline int open_counter(EVENT *self, int group)
{
	struct perf_event_attr attr = {
		.type = self->attr.type,
		.config = self->attr.config == PERF_COUNT_HW_CPU_CYCLES ?
			  PERF_COUNT_HW_INSTRUCTIONS : PERF_COUNT_HW_CPU_CYCLES,
		.size = sizeof(attr),
		.read_format = self->attr.read_format,
		.sample_type = self->attr.sample_type,
		.inherit = self->attr.inherit,
		.remove_on_exec = self->attr.remove_on_exec,
		.exclude_kernel = self->attr.exclude_kernel,
		.exclude_hv = self->attr.exclude_hv,
	};

	return perf_event_open(&attr, self->target, self->cpu, group);
}

static inline void open_leader(struct __test_metadata *_metadata, EVENT *self)
{
	self->leader = perf_event_open(&self->attr, self->target, self->cpu, -1);
	ASSERT_LE(0, self->leader);
	self->page = mmap(NULL, getpagesize() + DATA_SIZE, PROT_READ | PROT_WRITE,
			  MAP_SHARED, self->leader, 0);
	ASSERT_NE(MAP_FAILED, self->page);
}

/* Opens the group as self->attr says. */
static inline void open_group(struct __test_metadata *_metadata, EVENT *self)
{
	open_leader(_metadata, self);
	ASSERT_LE(0, open_counter(self, self->leader));
}

/* Opens the group and lets it count. */
static inline void start(struct __test_metadata *_metadata, EVENT *self)
{
	open_group(_metadata, self);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
}

/* Returns the next sample of self->tid that is there already, or NULL. */
static inline struct sample *poll_sample(EVENT *self)
{
	while (self->position < __atomic_load_n(&self->page->data_head, __ATOMIC_ACQUIRE)) {
		struct sample *sample = (void *)self->page + self->page->data_offset +
					self->position;

		self->position += sample->header.size;
		self->throttled += sample->header.type == PERF_RECORD_THROTTLE;
		self->unthrottled += sample->header.type == PERF_RECORD_UNTHROTTLE;
		if (sample->header.type != PERF_RECORD_SAMPLE)
			continue;

		self->while_throttled += self->throttled != self->unthrottled;
		if (!self->tid || sample->tid == self->tid)
			return sample;
	}

	return NULL;
}

/* Runs until there is another sample of self->tid. */
static inline struct sample *next_sample(struct __test_metadata *_metadata, EVENT *self)
{
	struct sample *sample;

	for (int i = 0; i < 200000; i++) {
		sample = poll_sample(self);
		if (sample)
			return sample;

		self->step(self);
	}

	ASSERT_TRUE(false)
		TH_LOG("no sample for too long");

	return NULL;
}

/* Sets the skid to twice the largest deviation of a plain event from its period. */
static inline void measure_skid(struct __test_metadata *_metadata, EVENT *self)
{
	struct perf_event_attr attr = self->attr;
	__u64 last = 0;

	self->attr.sample_period = WINDOW;
	self->attr.alternative_sample_period = 0;
	open_leader(_metadata, self);
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_ENABLE, 0));
	for (int i = 0; i < 5 * SAMPLES; i++) {
		__u64 now = next_sample(_metadata, self)->value[0];
		__u64 counted = now - last;
		__u64 skid = counted > WINDOW ? counted - WINDOW : WINDOW - counted;

		if (self->skid < 2 * skid)
			self->skid = 2 * skid;
		last = now;
	}
	close(self->leader);
	munmap(self->page, getpagesize() + DATA_SIZE);
	self->attr = attr;
	self->position = 0;
}

/* Makes a plain event of cycles, or of instructions if only these can sample. */
static inline bool choose_event(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_HARDWARE;
	attr->size = sizeof(*attr);
	attr->sample_period = LONG;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	attr->disabled = 1;
	attr->config = PERF_COUNT_HW_INSTRUCTIONS;
	if (try_open(attr))
		return false;
	attr->config = PERF_COUNT_HW_CPU_CYCLES;
	if (try_open(attr))
		attr->config = PERF_COUNT_HW_INSTRUCTIONS;

	return true;
}

FIXTURE_SETUP(event)
{
	int err;

	/* The ring buffer of inherited events must belong to a CPU. */
	self->cpu = sched_getcpu();
	ASSERT_TRUE(pin_to(self->cpu));

	self->tid = getpid();
	self->step = step_here;
	self->attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
	self->attr.read_format = PERF_FORMAT_GROUP;
	if (!choose_event(&self->attr))
		SKIP(return, "no hardware event that samples");

	self->attr.alternative_sample_period = WINDOW;
	err = try_open(&self->attr);
	if (err == E2BIG)
		SKIP(return, "kernel without alternate sample periods");
	if (err == EOPNOTSUPP)
		SKIP(return, "no PMU of the CPUs alternates");
	ASSERT_EQ(0, err);

	self->skid = SKID;
	if (MEASURE_SKID)
		measure_skid(_metadata, self);
	if (self->skid >= WINDOW / 2)
		SKIP(return, "the skid of %llu is too large", self->skid / 2);
}

/* The parent does this: it is root even if the test no longer is. */
FIXTURE_TEARDOWN_PARENT(event)
{
	if (*self->changed)
		write_number(self->changed, self->before);
}

static inline bool near(__u64 value, __u64 nominal, __u64 width)
{
	return value + width >= nominal && value <= nominal + width;
}

/* Is this an interval of the nominal length, jittered as self->attr says? */
static inline bool is_interval(EVENT *self, __u64 period, __u64 nominal)
{
	__u32 jitter = self->attr.jitter_alternate_period;
	__u64 width = jitter ? 1ULL << jitter : 0;

	return near(period, nominal, width < nominal / 2 ? width : nominal / 2);
}

static inline void expect_counted(struct __test_metadata *_metadata, struct sample *sample,
				  __u64 begin, __u64 width)
{
	EXPECT_TRUE(near(sample->value[0] - begin, sample->period, width))
		TH_LOG("period %llu, counted %llu", sample->period, sample->value[0] - begin);
}

/* Expects a sample at the end of the interval that began with last. */
static inline struct sample *expect_interval(struct __test_metadata *_metadata, EVENT *self,
					     struct sample *last, bool window)
{
	__u64 nominal = window ? self->attr.alternative_sample_period : self->attr.sample_period;
	struct sample *sample = next_sample(_metadata, self);

	EXPECT_TRUE(is_interval(self, sample->period, nominal))
		TH_LOG("period %llu instead of %llu", sample->period, nominal);
	expect_counted(_metadata, sample, last->value[0], self->skid);
	EXPECT_LT(last->value[1], sample->value[1]);

	return sample;
}

/* Expects that the next samples alternate, beginning with the interval after last. */
static inline struct sample *expect_intervals(struct __test_metadata *_metadata, EVENT *self,
					      struct sample *last, bool window)
{
	for (int i = 0; i < SAMPLES; i++, window = !window)
		last = expect_interval(_metadata, self, last, window);

	return last;
}

#define UNKNOWN	(~0ULL)

/* Expects that the next samples alternate from the beginning on, where the event had this count. */
static inline struct sample *expect_alternation(struct __test_metadata *_metadata, EVENT *self,
						__u64 begin)
{
	struct sample *first = next_sample(_metadata, self);

	EXPECT_LE(first->period, self->attr.sample_period * 3 / 2);
	if (!self->attr.jitter_alternate_period)
		EXPECT_EQ(self->attr.sample_period, first->period);
	if (begin != UNKNOWN)
		expect_counted(_metadata, first, begin, self->skid + (begin ? CALLS : 0));
	for (int i = 1; i < LONGS; i++)
		first = expect_interval(_metadata, self, first, false);

	return expect_intervals(_metadata, self, first, true);
}

static inline int set_period(EVENT *self, __u64 period)
{
	if (ioctl(self->leader, PERF_EVENT_IOC_PERIOD, &period))
		return errno;

	self->attr.sample_period = period;

	return 0;
}

static inline __u64 now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);

	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Returns the count of the event. */
static inline __u64 count(struct __test_metadata *_metadata, EVENT *self)
{
	__u64 now[3];	/* nr, the event, its sibling unless it has left */

	ASSERT_LE(2 * sizeof(*now), read(self->leader, now, sizeof(now)));

	return now[1];
}

/*
 * Runs until well inside an interval: a window, or the long one after a window. The interval begins
 * with the returned sample.
 */
static inline struct sample *run_into(struct __test_metadata *_metadata, EVENT *self,
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

/* Ends a group, so that the test can start another one. */
static inline void stop(struct __test_metadata *_metadata, EVENT *self)
{
	ASSERT_EQ(0, ioctl(self->leader, PERF_EVENT_IOC_DISABLE, 0));
	munmap(self->page, getpagesize() + DATA_SIZE);
	self->position = 0;
}

#endif /* ALTERNATE_PERIOD_H */
