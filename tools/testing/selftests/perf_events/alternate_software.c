// SPDX-License-Identifier: GPL-2.0
/*
 * Tests alternate sample periods of software events, tracepoints, probes, breakpoints and clocks:
 * the periods in the samples are compared with the count of the event, which the samples carry.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest_harness.h"

/* counts nanoseconds, so that many intervals end at once */
#define RUNTIME		"/sys/kernel/tracing/events/sched/sched_stat_runtime/id"
#define DATA_SIZE	(512 * 1024)
#define LONG		1000000LL	/* of a clock, in nanoseconds */
#define WINDOW		130000LL
#define SHORTEST	10000LL		/* period of a clock that the kernel allows */

struct sample {
	struct perf_event_header header;
	__u64 period;
	__u64 value;
};

FIXTURE(event) {
	struct perf_event_attr attr;
	int fd;
	struct perf_event_mmap_page *page;
	__u64 position;		/* in the ring buffer, which never wraps here */
	__u64 boundary;		/* count at the end of the last interval */
};

#define EVENT struct _test_data_event

static int read_number(const char *path)
{
	FILE *file = fopen(path, "r");
	int number = -1;

	return file && fscanf(file, "%d", &number) == 1 ? number : -1;
}

/* Opens the event of this thread; returns its descriptor. */
static int event_open(EVENT *self)
{
	return syscall(__NR_perf_event_open, &self->attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Opens the event as self->attr says, and lets it count. */
static void start(struct __test_metadata *_metadata, EVENT *self)
{
	if (self->page) {
		munmap(self->page, getpagesize() + DATA_SIZE);
		close(self->fd);
	}
	self->fd = event_open(self);
	ASSERT_LE(0, self->fd);
	self->position = 0;
	self->boundary = 0;
	self->page = mmap(NULL, getpagesize() + DATA_SIZE, PROT_READ | PROT_WRITE,
			  MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
}

static int set_period(EVENT *self, __u64 period)
{
	return ioctl(self->fd, PERF_EVENT_IOC_PERIOD, &period) ? errno : 0;
}

static __u64 count(EVENT *self)
{
	__u64 count = 0;

	return read(self->fd, &count, sizeof(count)) < 0 ? 0 : count;
}

/* Returns the next sample, or NULL. */
static struct sample *poll_sample(EVENT *self)
{
	while (self->position < __atomic_load_n(&self->page->data_head, __ATOMIC_ACQUIRE)) {
		struct sample *sample = (void *)self->page + self->page->data_offset +
					self->position;

		self->position += sample->header.size;
		if (sample->header.type == PERF_RECORD_SAMPLE)
			return sample;
	}

	return NULL;
}

static __u32 watched;

static void write_watched(void)
{
	__atomic_store_n(&watched, 1, __ATOMIC_RELAXED);
}

static void fault(void)
{
	static char *page;

	if (!page)
		page = mmap(NULL, getpagesize(), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(page, getpagesize(), MADV_DONTNEED);
	__atomic_store_n(page, 1, __ATOMIC_RELAXED);
}

FIXTURE_VARIANT(event) {
	__u32 type;
	__u64 config;
	void (*happen)(void);	/* NULL: it is a clock */
};

FIXTURE_VARIANT_ADD(event, page_faults) {
	PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, fault
};

FIXTURE_VARIANT_ADD(event, breakpoint) { PERF_TYPE_BREAKPOINT, 0, write_watched };
FIXTURE_VARIANT_ADD(event, cpu_clock) { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK };
FIXTURE_VARIANT_ADD(event, task_clock) { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK };

/* Completes the attr; returns why the event does not open, or NULL. */
static const char *prepare(EVENT *self, __u32 type, __u64 config, bool clock)
{
	struct perf_event_attr *attr = &self->attr;

	attr->type = type;
	attr->config = config;
	if (type == PERF_TYPE_BREAKPOINT) {
		attr->bp_type = HW_BREAKPOINT_W;
		attr->bp_addr = (unsigned long)&watched;
		attr->bp_len = HW_BREAKPOINT_LEN_4;
	}
	attr->exclude_kernel = config == PERF_COUNT_SW_PAGE_FAULTS;
	attr->size = sizeof(*attr);
	attr->sample_type = PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
	attr->sample_period = clock ? LONG : 50;
	attr->exclude_hv = 1;
	attr->disabled = 1;
	self->fd = event_open(self);
	if (self->fd < 0)
		return "no such event";
	close(self->fd);
	attr->alternative_sample_period = clock ? WINDOW : 3;

	self->fd = event_open(self);
	if (self->fd < 0 && errno == E2BIG)
		return "kernel without alternate sample periods";
	close(self->fd);

	return NULL;
}

FIXTURE_SETUP(event)
{
	const char *why = prepare(self, variant->type, variant->config, !variant->happen);

	if (why)
		SKIP(return, "%s", why);
}

FIXTURE_TEARDOWN(event)
{
}

/* Expects the end of whole rounds: exactly there, or for clocks later now and then. */
static void expect_alternation(struct __test_metadata *_metadata, EVENT *self,
			       void (*happen)(void), __u64 period, __u64 window)
{
	struct perf_event_attr *attr = &self->attr;
	int round = window ? 1 + (attr->alternative_sample_count ?: 1) : 1, exact = 0, i;
	__u64 width = (1ULL << attr->jitter_alternate_period) & ~1ULL;
	struct timespec moment = { .tv_nsec = 1 };

	for (i = 0; i < 40; i++) {
		__u64 nominal = i % round ? window : period;
		__u64 half = width < nominal / 2 ? width : nominal / 2;
		struct sample *sample;

		for (int events = 0; !(sample = poll_sample(self)); events++) {
			/* Leave the CPU in all places of an interval. */
			if (happen && events % 7 == 0)
				nanosleep(&moment, NULL);
			if (happen)
				happen();
		}
		/* Jitter draws the first interval. */
		EXPECT_GE(nominal + half, sample->period);
		EXPECT_LE(i || !half ? nominal - half : 1, sample->period);
		/* A timer may be late, or may have counted a little more when it was taken off. */
		EXPECT_LE(self->boundary + sample->period, sample->value + (happen ? 0 : SHORTEST));
		exact += self->boundary + sample->period == sample->value;
		self->boundary = happen ? sample->value : self->boundary + sample->period;
	}
	EXPECT_LE(happen ? i : 0, exact);
	if (!happen && window)
		EXPECT_GT(LONG, count(self) - self->boundary);
}

TEST_F(event, alternates)
{
	static const struct {
		__u64 period, window;	/* of the attr */
		__u64 nominal[2];	/* of the samples */
		__u32 count, jitter;
		bool freq;
	} events[] = {
		{ 50, 3, { 50, 3 } },
		{ 50, 3, { 50, 3 }, 5 },
		{ 1, 1, { 1, 1 } },
		{ 40, 20, { 40, 20 }, 0, 4 },
	}, clocks[] = {
		{ LONG, WINDOW, { LONG, WINDOW } },
		{ LONG, 300, { LONG, SHORTEST } },
		{ 300, 0, { SHORTEST, 0 } },
		/* A long interval and its window take as long as the frequency says. */
		{ 1000, WINDOW, { LONG - WINDOW, WINDOW }, 0, 0, true },
	};

	for (int i = 0; i < 4; i++) {
		const typeof(*events) *any = variant->happen ? &events[i] : &clocks[i];

		self->attr.sample_period = any->period;
		self->attr.alternative_sample_period = any->window;
		self->attr.alternative_sample_count = any->count;
		self->attr.jitter_alternate_period = any->jitter;
		self->attr.freq = any->freq;
		start(_metadata, self);
		expect_alternation(_metadata, self, variant->happen, any->nominal[0],
				   any->nominal[1]);
	}
}

/* The new period begins at once, whatever interval it cuts off: a long one, or a window. */
TEST_F(event, ioc_period)
{
	__u64 window = self->attr.alternative_sample_period;

	start(_metadata, self);
	for (int i = 0; i < 3; i++) {
		expect_alternation(_metadata, self, variant->happen, self->attr.sample_period,
				   window);
		while (i == 1 && !poll_sample(self))
			if (variant->happen)
				variant->happen();
		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
		while (poll_sample(self))
			;
		EXPECT_EQ(EINVAL, set_period(self, 0));
		self->attr.sample_period += 10;
		ASSERT_EQ(0, set_period(self, self->attr.sample_period));
		self->boundary = count(self);
		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
	}
}

/* Without alternation each event has a sample, or with a frequency some, which say what elapsed. */
TEST_F(event, plain)
{
	self->attr.alternative_sample_period = 0;
	for (int freq = 0; freq < 2 && variant->happen; freq++) {
		struct sample *sample;
		int samples = 0;

		self->attr.freq = freq;
		self->attr.sample_freq = freq ? 1000 : 50;
		start(_metadata, self);
		for (int i = 0; i < (freq ? 20000 : 100); i++)
			variant->happen();
		for (; (sample = poll_sample(self)); samples++) {
			EXPECT_EQ(sample->value - self->boundary, freq ? sample->period : 1);
			self->boundary = sample->value;
		}
		EXPECT_LT(freq ? 3 : 99, samples);
	}
}

/*
 * A window that ends in the kernel has no sample there, and a long interval follows. Repeating the
 * window until it ends in user mode would cause an interrupt every 10 us.
 */
TEST_F(event, window_ends_in_excluded_mode)
{
	int zero = open("/dev/zero", O_RDONLY), longs = 0;
	static char zeros[8 << 20];
	struct sample *sample;

	self->attr.exclude_kernel = 1;
	self->attr.alternative_sample_period = LONG / 4;
	start(_metadata, self);
	for (int i = 0; i < 10 && !variant->happen; i++) {
		/* A window begins. */
		while (!(sample = poll_sample(self)) || sample->period != LONG)
			;
		ASSERT_EQ(sizeof(zeros), read(zero, zeros, sizeof(zeros)));
		while (!(sample = poll_sample(self)))
			;
		longs += sample->period == LONG;
	}
	EXPECT_LE(variant->happen ? 0 : 5, longs);
}

/* Each interval that ends has a sample, and the event is not throttled. */
TEST(many_intervals_end_at_once)
{
	__u64 end = 0, value = 0, samples = 0, most = 0, length = 200000, window = 30001;
	EVENT event = {}, *self = &event;
	const char *why = prepare(self, PERF_TYPE_TRACEPOINT, read_number(RUNTIME), false);

	if (why)
		SKIP(return, "%s", why);
	self->attr.sample_period = length;
	self->attr.alternative_sample_period = window;
	start(_metadata, self);
	for (int hits = 0; hits < 20;) {
		struct sample *sample = poll_sample(self);

		if (!sample)
			continue;
		if (sample->value != value) {
			EXPECT_LT(value, end + (end % (length + window) ? window : length));
			samples = 0;
			hits++;
		}
		value = sample->value;
		EXPECT_EQ(end % (length + window) ? window : length, sample->period);
		end += sample->period;
		EXPECT_LE(end, value);
		most = ++samples > most ? samples : most;
	}
	EXPECT_LT(2, most);
}

TEST_HARNESS_MAIN
