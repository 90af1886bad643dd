// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods of software events, tracepoints, probes and breakpoints: the
 * periods in the samples are compared with the count of the event, which the samples carry, too.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <linux/hw_breakpoint.h>

#include "alternate_software.h"

#define DEVICES		"/sys/bus/event_source/devices/"

/* The offset of the raw data in a sample: after the value and its own size. */
#define RAW		(sizeof(__u64) + sizeof(__u32))

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
	static const struct {
		__u64 period, window;
		__u32 count, jitter;
	} any[] = {
		{ 50, 3 },
		{ 50, 3, .count = 5 },
		{ 1, 1 },
		{ 40, 20, .jitter = 4 },
	};

	for (int i = 0; i < ARRAY_SIZE(any); i++) {
		self->attr.sample_period = any[i].period;
		self->attr.alternative_sample_period = any[i].window;
		self->attr.alternative_sample_count = any[i].count;
		self->attr.jitter_alternate_period = any[i].jitter;
		counting_start(_metadata, self);
		for (int k = 0; k < 40; k++)
			expect_next(_metadata, self, variant->happen);
		event_close(&self->event);
	}
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

TEST_HARNESS_MAIN
