// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods of software events, tracepoints, probes, breakpoints and clocks:
 * the periods in the samples are compared with the count of the event, which the samples carry,
 * too.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define TRACING		"/sys/kernel/tracing/events/"
#define DEVICES		"/sys/bus/event_source/devices/"

#define DATA_PAGES	128

/*
 * The sample of each event and the offsets in it: the values of a group come after their number,
 * the raw data comes after the value and its own size.
 */
#define SAMPLE_TYPE	(PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ)
#define GROUP_LEADER	1
#define RAW		(sizeof(__u64) + sizeof(__u32))

struct sample {
	struct perf_event_header header;
	__u64 period;
	__u64 value[];
};

/* An open event and the position in its ring buffer, which may wrap. */
struct event {
	int fd;
	struct perf_event_mmap_page *page;
	__u64 lost;
	union {
		struct sample sample;
		char bytes[4096];
	};
};

/* Opens an event of a CPU, or with -1 of this thread on any CPU. */
static int perf_event_open(struct perf_event_attr *attr, int cpu, int group)
{
	return syscall(__NR_perf_event_open, attr, cpu < 0 ? 0 : -1, cpu, group,
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

/* Enables the event after its ring buffer exists, so that no sample is missing. */
static int event_open_on(struct event *event, struct perf_event_attr *attr, int cpu)
{
	attr->disabled = 1;
	event->lost = 0;
	event->fd = perf_event_open(attr, cpu, -1);
	if (event->fd < 0)
		return errno;

	event->page = mmap(NULL, (DATA_PAGES + 1) * getpagesize(),
			   PROT_READ | PROT_WRITE, MAP_SHARED, event->fd, 0);
	if (event->page == MAP_FAILED)
		return errno;

	attr->disabled = 0;

	return ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0) ? errno : 0;
}

static int event_open(struct event *event, struct perf_event_attr *attr)
{
	return event_open_on(event, attr, -1);
}

static void event_close(struct event *event)
{
	munmap(event->page, (DATA_PAGES + 1) * getpagesize());
	close(event->fd);
}

static int event_set_period(struct event *event, __u64 period)
{
	return ioctl(event->fd, PERF_EVENT_IOC_PERIOD, &period) ? errno : 0;
}

static __u64 event_count(struct event *event)
{
	__u64 count;

	return read(event->fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

/* Returns the next sample in the ring buffer, or NULL; valid until the next call. */
static struct sample *event_sample(struct event *event)
{
	struct sample *sample = &event->sample;
	__u64 size = event->page->data_size;
	__u64 head = __atomic_load_n(&event->page->data_head, __ATOMIC_ACQUIRE);
	__u64 tail = event->page->data_tail;
	bool found = false;

	while (tail < head && !found) {
		char *data = (char *)event->page + event->page->data_offset;

		for (int i = 0; i < 8; i++)
			event->bytes[i] = data[(tail + i) % size];
		for (int i = 8; i < sample->header.size; i++)
			event->bytes[i] = data[(tail + i) % size];
		tail += sample->header.size;
		found = sample->header.type == PERF_RECORD_SAMPLE;
		event->lost += sample->header.type == PERF_RECORD_LOST;
	}
	__atomic_store_n(&event->page->data_tail, tail, __ATOMIC_RELEASE);

	return found ? sample : NULL;
}

/* Returns the number that @format finds in a file, or -1. */
static long long read_number(const char *path, const char *format)
{
	FILE *file = fopen(path, "r");
	long long number = -1;
	char line[256];

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, format, &number) == 1)
			break;
	fclose(file);

	return number;
}

/* The actions that make an event happen. */

static char *region;
static size_t touched, region_size;

static void fault(void)
{
	if (touched == region_size) {
		/* Start again with pages that are not there. */
		madvise(region, region_size, MADV_DONTNEED);
		touched = 0;
	}
	__atomic_store_n(region + touched, 1, __ATOMIC_RELAXED);
	touched += getpagesize();
}

static bool page_faults(struct perf_event_attr *attr)
{
	region_size = 256 * getpagesize();
	touched = 0;
	region = mmap(NULL, region_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(region, region_size, MADV_NOHUGEPAGE);

	attr->type = PERF_TYPE_SOFTWARE;
	attr->config = PERF_COUNT_SW_PAGE_FAULTS;
	attr->exclude_kernel = 1;

	return region != MAP_FAILED;
}

static __u32 watched[2];

static void write_word(int i)
{
	__atomic_store_n(&watched[i], 1, __ATOMIC_RELAXED);
}

static void write_watched(void)
{
	write_word(0);
}

static bool breakpoint(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_BREAKPOINT;
	attr->bp_type = HW_BREAKPOINT_W;
	attr->bp_addr = (unsigned long)&watched[0];
	attr->bp_len = HW_BREAKPOINT_LEN_4;
	/* exclude_kernel is not needed, and QEMU 10 has no such breakpoint on POWER. */

	return true;
}

static void enter_system(void)
{
	syscall(__NR_getppid);
}

static bool tracepoint(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = read_number(TRACING "raw_syscalls/sys_enter/id", "%lld");

	return attr->config != -1;
}

static void probed(void)
{
	asm volatile("nop; nop");
}

/* Returns the offset of a function in its file. */
static long long file_offset(void *function)
{
	unsigned long begin, end, offset, address = (unsigned long)function;
	FILE *maps = fopen("/proc/self/maps", "r");
	long long found = -1;
	char line[4096];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 &&
		    address >= begin && address < end)
			found = address - begin + offset;
	if (maps)
		fclose(maps);

	return found;
}

static bool user_probe(struct perf_event_attr *attr)
{
	attr->type = read_number(DEVICES "uprobe/type", "%lld");
	attr->uprobe_path = (unsigned long)"/proc/self/exe";
	attr->probe_offset = file_offset(probed);

	return attr->type != -1;
}

FIXTURE(counting) {
	struct perf_event_attr attr;
	struct event event;
	bool window;		/* the period of the next sample */
	int windows;		/* of the current burst so far */
	bool first;		/* the first interval, whose length jitter draws */
	__u64 boundary;		/* count at the end of the last interval */
};

FIXTURE_VARIANT(counting) {
	bool (*describe)(struct perf_event_attr *attr);
	void (*happen)(void);
};

FIXTURE_VARIANT_ADD(counting, page_faults) {
	.describe = page_faults,
	.happen = fault,
};

FIXTURE_VARIANT_ADD(counting, breakpoint) {
	.describe = breakpoint,
	.happen = write_watched,
};

FIXTURE_VARIANT_ADD(counting, tracepoint) {
	.describe = tracepoint,
	.happen = enter_system,
};

FIXTURE_VARIANT_ADD(counting, uprobe) {
	.describe = user_probe,
	.happen = probed,
};

/* Fills in the common members; returns 0 or the reason why the test cannot run. */
static const char *common_attr(struct perf_event_attr *attr)
{
	struct perf_event_attr dummy = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(dummy),
		.sample_period = 50,
		.alternative_sample_period = 3,
		.exclude_kernel = 1,
	};
	int err = try_open(&dummy);

	if (err == E2BIG)
		return "kernel without alternate sample periods";
	if (err == EACCES || err == EPERM)
		return strerror(err);

	attr->size = sizeof(*attr);
	attr->sample_type = SAMPLE_TYPE;
	attr->sample_period = 50;
	attr->alternative_sample_period = 3;
	attr->exclude_hv = 1;

	return NULL;
}

FIXTURE_SETUP(counting)
{
	const char *why = common_attr(&self->attr);
	struct perf_event_attr plain;
	int err;

	if (why)
		SKIP(return, "%s", why);
	if (!variant->describe(&self->attr))
		SKIP(return, "no such event");

	plain = self->attr;
	plain.alternative_sample_period = 0;
	err = try_open(&plain);
	if (err)
		SKIP(return, "cannot open the event: %s", strerror(err));
}

FIXTURE_TEARDOWN(counting)
{
}

#define COUNTING struct _test_data_counting

static void counting_start(struct __test_metadata *_metadata, COUNTING *self)
{
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	self->first = true;
	self->window = false;
	self->boundary = 0;
}

/* Expects each sample exactly when its interval ends, and intervals that alternate. */
static void expect_next(struct __test_metadata *_metadata, COUNTING *self,
			void (*happen)(void))
{
	struct perf_event_attr *attr = &self->attr;
	__u64 nominal = self->window ? attr->alternative_sample_period :
				       attr->sample_period;
	__u64 width = attr->jitter_alternate_period ?
		      1ULL << attr->jitter_alternate_period : 0;
	struct timespec moment = { .tv_nsec = 1 };
	struct sample *sample;
	int happened = 0;

	if (width > nominal / 2)
		width = nominal / 2;

	while (!(sample = event_sample(&self->event))) {
		ASSERT_GT(10 * nominal, happened);
		/* Leave the CPU in all places of an interval. */
		if (happened++ % 7 == 0)
			nanosleep(&moment, NULL);
		happen();
	}

	if (self->first && width) {
		EXPECT_LE(1, sample->period);
		EXPECT_GE(nominal + attr->alternative_sample_period, sample->period);
	} else {
		EXPECT_GE(sample->period, nominal - width);
		EXPECT_LE(sample->period, nominal + width);
	}
	EXPECT_EQ(sample->value[0], self->boundary + sample->period);

	self->boundary = sample->value[0];
	self->windows = self->window ? self->windows + 1 : 0;
	self->window = self->windows < (attr->alternative_sample_count ?: 1);
	self->first = false;
}

TEST_F(counting, alternates)
{
	counting_start(_metadata, self);
	for (int i = 0; i < 20; i++)
		expect_next(_metadata, self, variant->happen);
	EXPECT_GT(self->boundary + self->attr.sample_period,
		  event_count(&self->event));
	event_close(&self->event);
}

TEST_F(counting, burst)
{
	self->attr.alternative_sample_count = 5;
	counting_start(_metadata, self);
	for (int i = 0; i < 20; i++)
		expect_next(_metadata, self, variant->happen);
	event_close(&self->event);
}

TEST_F(counting, every_event)
{
	self->attr.sample_period = 1;
	self->attr.alternative_sample_period = 1;
	counting_start(_metadata, self);
	for (int i = 0; i < 20; i++)
		expect_next(_metadata, self, variant->happen);
	event_close(&self->event);
}

TEST_F(counting, jitters)
{
	self->attr.sample_period = 40;
	self->attr.alternative_sample_period = 20;
	self->attr.jitter_alternate_period = 4;
	counting_start(_metadata, self);
	for (int i = 0; i < 40; i++)
		expect_next(_metadata, self, variant->happen);
	event_close(&self->event);
}

/* The new period begins with the next event, whatever interval it cuts off. */
TEST_F(counting, ioc_period_in_each_interval)
{
	counting_start(_metadata, self);
	for (int samples = 4; samples < 6; samples++) {
		for (int i = 0; i < samples; i++)
			expect_next(_metadata, self, variant->happen);

		variant->happen();
		self->attr.sample_period += 10;
		ASSERT_EQ(0, event_set_period(&self->event, self->attr.sample_period));
		EXPECT_EQ(NULL, event_sample(&self->event));
		self->boundary = event_count(&self->event);
		/* Reading the counter is an event for some tracepoints. */
		self->boundary -= self->attr.type == PERF_TYPE_TRACEPOINT;
		self->first = true;
		self->window = false;
	}
	for (int i = 0; i < 6; i++)
		expect_next(_metadata, self, variant->happen);
	EXPECT_EQ(EINVAL, event_set_period(&self->event, 0));
	event_close(&self->event);
}

/* The same without alternation, where PERF_SAMPLE_PERIOD cannot be used. */
TEST_F(counting, plain_ioc_period)
{
	struct perf_event_attr attr = self->attr;
	struct {
		struct perf_event_header header;
		__u64 value;
	} *sample;
	__u64 before;

	attr.alternative_sample_period = 0;
	attr.sample_type = PERF_SAMPLE_READ;
	ASSERT_EQ(0, event_open(&self->event, &attr));
	ASSERT_EQ(0, event_count(&self->event) / 50);
	variant->happen();
	ASSERT_EQ(0, event_set_period(&self->event, 20));
	before = event_count(&self->event);
	before -= attr.type == PERF_TYPE_TRACEPOINT;
	for (int i = 0; i < 100; i++)
		variant->happen();
	for (int i = 1; i < 5; i++) {
		sample = (void *)event_sample(&self->event);
		ASSERT_NE(NULL, sample);
		EXPECT_EQ(20 * i, sample->value - before);
	}
	event_close(&self->event);
}

/* Without alternation PERF_SAMPLE_PERIOD means a sample for each event. */
TEST_F(counting, plain_event_samples_each)
{
	struct sample *sample;
	__u64 value = 0;

	self->attr.alternative_sample_period = 0;
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	for (int i = 0; i < 100; i++)
		variant->happen();
	while ((sample = event_sample(&self->event))) {
		EXPECT_EQ(1, sample->period);
		EXPECT_EQ(++value, sample->value[0]);
	}
	EXPECT_LE(100, value);
	event_close(&self->event);
}

/* The kernel chooses the periods, but the counts show them. */
TEST_F(counting, frequency_reports_elapsed_period)
{
	struct sample *sample;
	int samples = 0;
	__u64 value = 0;

	self->attr.alternative_sample_period = 0;
	self->attr.freq = 1;
	self->attr.sample_freq = 1000;
	if (event_open(&self->event, &self->attr))
		SKIP(return, "no frequency of 1000: %s", strerror(errno));

	for (int i = 0; i < 20000; i++) {
		variant->happen();
		while ((sample = event_sample(&self->event))) {
			EXPECT_EQ(sample->value[0] - value, sample->period);
			value = sample->value[0];
			samples++;
		}
	}
	EXPECT_LT(3, samples);
	event_close(&self->event);
}

FIXTURE(single) {
	struct perf_event_attr attr;
	struct event event;
};

FIXTURE_SETUP(single)
{
	const char *why = common_attr(&self->attr);

	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(single)
{
}

/* A program writes its samples, whatever the period is. */
TEST_F(single, bpf_output_refuses)
{
	self->attr.type = PERF_TYPE_SOFTWARE;
	self->attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	self->attr.exclude_kernel = 1;
	EXPECT_EQ(EOPNOTSUPP, try_open(&self->attr));

	self->attr.alternative_sample_period = 0;
	EXPECT_EQ(0, try_open(&self->attr));
}

TEST_F(single, breakpoint_modified)
{
	struct perf_event_attr *attr = &self->attr;
	struct sample *sample;

	breakpoint(attr);
	if (event_open(&self->event, attr))
		SKIP(return, "cannot open a breakpoint: %s", strerror(errno));

	for (int i = 0; i < 60; i++)
		write_word(0);

	/* The periods cannot be modified ... */
	attr->bp_addr = (unsigned long)&watched[1];
	attr->alternative_sample_period = 4;
	EXPECT_EQ(-1, ioctl(self->event.fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, attr));
	EXPECT_EQ(EINVAL, errno);

	/* ... and the interval goes on when another member is. */
	attr->alternative_sample_period = 3;
	EXPECT_EQ(0, ioctl(self->event.fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, attr));
	for (int i = 0; i < 60; i++) {
		write_word(0);
		write_word(1);
	}

	for (int i = 0; i < 4; i++) {
		static const __u64 end[] = { 50, 53, 103, 106 };

		sample = event_sample(&self->event);
		ASSERT_NE(NULL, sample);
		EXPECT_EQ(end[i], sample->value[0]);
		EXPECT_EQ(i % 2 ? 3 : 50, sample->period);
	}
	EXPECT_EQ(NULL, event_sample(&self->event));
	event_close(&self->event);
}

/* Two events count the same occurrences; each has the samples of its own intervals. */
TEST_F(single, events_of_one_kind)
{
	struct perf_event_attr *attr = &self->attr;
	struct event other, *events[] = { &self->event, &other };
	struct sample *sample;

	if (!page_faults(attr))
		SKIP(return, "no memory");
	/* The first word of a sample is then its event's ID. */
	attr->sample_type = PERF_SAMPLE_IDENTIFIER;
	for (int i = 0; i < 2; i++)
		ASSERT_EQ(0, event_open(events[i], attr));
	for (int i = 0; i < 1000; i++)
		fault();

	for (int i = 0; i < 2; i++) {
		int samples = 0;
		__u64 id;

		ASSERT_EQ(0, ioctl(events[i]->fd, PERF_EVENT_IOC_ID, &id));
		for (; (sample = event_sample(events[i])); samples++)
			ASSERT_EQ(id, sample->period);
		EXPECT_LT(10, samples);
		event_close(events[i]);
	}
}

/*
 * sched_stat_runtime counts nanoseconds, so that many intervals end at once. The count and the
 * runtime in the raw data give the count before and after. Pairs of a long interval and a window
 * follow one another.
 */
static void expect_many(struct __test_metadata *_metadata,
			struct perf_event_attr *attr, bool throttled)
{
	__u64 l = attr->sample_period, pair = l + attr->alternative_sample_period;
	__u64 value = 0, end = 0, hits = 0, cut = 0, samples = 0, most = 0;
	time_t limit = time(NULL) + 20;
	struct sample *sample;
	struct event event;
	int offset;

	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = read_number(TRACING "sched/sched_stat_runtime/id", "%lld");
	offset = read_number(TRACING "sched/sched_stat_runtime/format",
			     " field:u64 runtime; offset:%lld");
	if (attr->config == -1 || offset < 0)
		SKIP(return, "no tracepoint sched_stat_runtime");

	attr->sample_type |= PERF_SAMPLE_RAW;
	if (event_open(&event, attr))
		SKIP(return, "cannot open sched_stat_runtime: %s", strerror(errno));

	while (hits < 20 && time(NULL) < limit) {
		__u64 runtime, before, in_pair;

		sample = event_sample(&event);
		if (!sample)
			continue;

		if (sample->value[0] != value) {
			/* Did the last event have samples of all intervals that ended? */
			cut += end && end <= value;
			value = sample->value[0];
			memcpy(&runtime, (char *)sample->value + RAW + offset,
			       sizeof(runtime));
			before = value - runtime;
			in_pair = before % pair;
			end = before - in_pair + (in_pair < l ? l : pair);
			samples = 0;
			hits++;
		}

		in_pair = end % pair;
		ASSERT_LE(end, value);
		ASSERT_EQ(in_pair ? l : pair - l, sample->period)
			TH_LOG("interval ends at %llu", end);
		end += in_pair ? pair - l : l;
		most = ++samples > most ? samples : most;
	}
	EXPECT_EQ(0, event.lost);
	EXPECT_LE(20, hits);
	EXPECT_LT(2, most);
	/* If the event is throttled, intervals end without samples, but none is lost. */
	EXPECT_EQ(throttled, cut > 0);
	event_close(&event);
}

TEST_F(single, many_intervals_end_at_once)
{
	self->attr.sample_period = 200000;
	self->attr.alternative_sample_period = 30001;
	expect_many(_metadata, &self->attr, false);
}

TEST_F(single, many_intervals_throttle)
{
	long long rate = read_number("/proc/sys/kernel/perf_event_max_sample_rate",
				     "%lld");

	if (rate < 0 || rate > 200000)
		SKIP(return, "perf_event_max_sample_rate is %lld", rate);

	self->attr.sample_period = 5;
	self->attr.alternative_sample_period = 3;
	expect_many(_metadata, &self->attr, true);
}

#define LONG		1000000LL
#define WINDOW		130000LL
#define SHORTEST	10000LL	/* the shortest period that the kernel allows */
#define NSEC_PER_SEC	1000000000LL
#define SAMPLES		40

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

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

/* Stays in user mode for some time, in nanoseconds. */
static void spin(long long time)
{
	for (long long start = now(); now() - start < time;)
		;
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

/* Expects that the timer is sometimes late, but never early, and catches up. */
static void expect_elapsed(struct __test_metadata *_metadata, CLOCK *self)
{
	EXPECT_LE(SAMPLES * 9 / 10, self->exact);
	EXPECT_GT(LONG / 100, self->ahead);
	EXPECT_GT(LONG / 2, self->behind);
}

TEST_F(clock, alternates)
{
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	take_samples(self, LONG, WINDOW, false);
	expect_elapsed(_metadata, self);
	event_close(&self->event);
}

TEST_F(clock, window_below_the_shortest)
{
	self->attr.alternative_sample_period = 300;
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	take_samples(self, LONG, SHORTEST, false);
	expect_elapsed(_metadata, self);
	event_close(&self->event);
}

TEST_F(clock, plain_period_below_the_shortest)
{
	self->attr.sample_period = 300;
	self->attr.alternative_sample_period = 0;
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	take_samples(self, SHORTEST, SHORTEST, false);
	expect_elapsed(_metadata, self);
	event_close(&self->event);
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

/* The long interval and its windows take as long as the frequency says. */
TEST_F(clock, frequency)
{
	self->attr.freq = 1;
	self->attr.sample_freq = 1000;
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	take_samples(self, NSEC_PER_SEC / 1000 - WINDOW, WINDOW, false);
	expect_elapsed(_metadata, self);
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
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(here), &here));
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

#define MEASURE	(NSEC_PER_SEC / 2)

/* Expects as many long intervals as the frequency says, with this time between events. */
static void expect_frequency(struct __test_metadata *_metadata,
			     struct _test_data_single *self, long long pause)
{
	__u64 due = self->attr.sample_freq * MEASURE / NSEC_PER_SEC;
	__u64 longs, windows;

	/* In the first round the kernel adapts to the load. */
	for (int i = 0; i < 2; i++) {
		long long start = now();

		longs = 0;
		windows = 0;
		while (now() - start < MEASURE) {
			struct sample *sample;

			fault();
			spin(pause);
			while ((sample = event_sample(&self->event))) {
				if (sample->period == self->attr.alternative_sample_period)
					windows++;
				else
					longs++;
			}
		}
	}

	EXPECT_LE(due * 9 / 10, longs);
	EXPECT_GE(due * 11 / 10, longs);
	EXPECT_LE(longs, windows + 1);
	EXPECT_GE(longs + 1, windows);
}

TEST_F(single, frequency_after_change_of_load)
{
	ASSERT_TRUE(page_faults(&self->attr));
	self->attr.freq = 1;
	/* Low enough that one event is a small part of a period where page faults take long. */
	self->attr.sample_freq = 250;
	ASSERT_EQ(0, event_open(&self->event, &self->attr));
	expect_frequency(_metadata, self, 0);
	expect_frequency(_metadata, self, 2 * SHORTEST);
	expect_frequency(_metadata, self, 0);
	event_close(&self->event);
}

/* A window that is open when the CPU becomes idle belongs to nobody. */
TEST_F(single, clock_of_an_idle_cpu)
{
	const struct timespec pause = { .tv_nsec = 5 * LONG };
	int cpu = sched_getcpu(), windows = 0;
	struct sample *sample;
	__u64 value = 0;
	cpu_set_t here;
	int err;

	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	ASSERT_EQ(0, sched_setaffinity(0, sizeof(here), &here));

	self->attr.type = PERF_TYPE_SOFTWARE;
	self->attr.config = PERF_COUNT_SW_CPU_CLOCK;
	self->attr.sample_period = LONG;
	self->attr.alternative_sample_period = WINDOW;
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
