// SPDX-License-Identifier: GPL-2.0
/*
 * Tests quiet windows with perf_event_open(2) and the ring buffer: the sample that opens a window
 * is not written before the window ends, and is written once, in its order, however it ends.
 */
#define _GNU_SOURCE
#define __SANE_USERSPACE_TYPES__	/* __u64 is unsigned long long everywhere */

#include <asm/types.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define LONG		1000000ULL
#define WINDOW		100000ULL

/* Work between two looks at the event, well below WINDOW. */
#define STEP		1000

/* The tick writes a kept sample, too: try again, in another window. */
#define ATTEMPTS	20

#define DATA_SIZE	(512 * 1024)

#define RATE		"/proc/sys/kernel/perf_event_max_sample_rate"
#define PERCENT		"/proc/sys/kernel/perf_cpu_time_max_percent"

struct sample {
	struct perf_event_header header;
	__u32 pid;
	__u32 tid;
	__u64 time;
	__u64 period;
	__u64 value;
};

FIXTURE(quiet) {
	struct perf_event_attr attr;
	int cpu, fd;
	pid_t pid;
	struct perf_event_mmap_page *page;
	__u64 position;		/* in the ring buffer, which never wraps here */
	__u64 closed;		/* the count at the last end of a window */
	int offline;		/* CPU to be brought back */
	char rate[16], percent[16];	/* limits to be written back */
};

#define EVENT struct _test_data_quiet

static int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return syscall(__NR_perf_event_open, attr, pid, cpu, -1, 0UL);
}

static void work(unsigned int loops)
{
	while (loops--)
		asm volatile("" : "+r" (loops) : : "memory");
}

static bool pin_to(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);

	return !sched_setaffinity(0, sizeof(cpus), &cpus);
}

static bool write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	bool done = file && fputs(text, file) >= 0;

	return file && !fclose(file) && done;
}

static bool read_text(const char *path, char text[16])
{
	FILE *file = fopen(path, "r");
	bool found = file && fgets(text, 16, file);

	if (file)
		fclose(file);

	return found;
}

FIXTURE_SETUP(quiet)
{
	self->cpu = sched_getcpu();
	ASSERT_TRUE(pin_to(self->cpu));
	self->offline = -1;
	self->attr.type = PERF_TYPE_HARDWARE;
	self->attr.config = PERF_COUNT_HW_CPU_CYCLES;
	self->attr.size = sizeof(self->attr);
	self->attr.sample_period = LONG;
	self->attr.alternative_sample_period = WINDOW;
	self->attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
				 PERF_SAMPLE_READ;
	self->attr.exclude_kernel = 1;
	self->attr.exclude_hv = 1;
	self->attr.disabled = 1;
	self->fd = perf_event_open(&self->attr, 0, -1);
	if (self->fd < 0 && errno == E2BIG)
		SKIP(return, "kernel without alternate sample periods");
	if (self->fd < 0)
		SKIP(return, "no hardware event that alternates: %s", strerror(errno));
	close(self->fd);
}

FIXTURE_TEARDOWN_PARENT(quiet)
{
	char path[64];

	if (self->offline >= 0) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", self->offline);
		write_text(path, "1");
	}
	if (self->percent[0]) {
		write_text(PERCENT, "25");
		write_text(RATE, self->rate);
		write_text(PERCENT, self->percent);
	}
}

/* Changes the limit of samples, without that of time, until the test ends. */
static bool limit_rate(EVENT *self, const char *rate)
{
	if (!read_text(RATE, self->rate) || !read_text(PERCENT, self->percent))
		return false;

	/* The rate cannot be written without a limit of time. */
	return write_text(PERCENT, "25") && write_text(RATE, rate) && write_text(PERCENT, "0");
}

static void open_event(struct __test_metadata *_metadata, EVENT *self)
{
	self->fd = perf_event_open(&self->attr, self->pid, self->cpu);
	ASSERT_LE(0, self->fd);
	self->page = mmap(NULL, getpagesize() + DATA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
}

/* Returns the next record that is there already, or NULL. */
static struct sample *next_record(EVENT *self)
{
	struct sample *record = (void *)self->page + getpagesize() + self->position;

	if (self->position == __atomic_load_n(&self->page->data_head, __ATOMIC_ACQUIRE))
		return NULL;
	self->position += record->header.size;

	return record;
}

static struct sample *next_sample(EVENT *self)
{
	struct sample *record;

	do {
		record = next_record(self);
	} while (record && record->header.type != PERF_RECORD_SAMPLE);
	if (record && record->period == self->attr.alternative_sample_period)
		self->closed = record->value;

	return record;
}

/* Runs until a window is open: the count says it. Returns false if that cannot be read. */
static bool run_into_window(EVENT *self)
{
	__u64 count;

	do {
		work(STEP);
		if (read(self->fd, &count, sizeof(count)) != sizeof(count))
			return false;
	} while (count < self->closed + LONG + WINDOW / 4);

	return true;
}

/* Runs into a window whose sample has not been written. */
static bool run_into_quiet_window(EVENT *self)
{
	for (int i = 0; i < ATTEMPTS; i++) {
		while (next_sample(self))
			;
		if (!run_into_window(self))
			return false;
		if (!next_sample(self))
			return true;
		/* The tick or another task was there. Leave the window. */
		work(WINDOW);
	}

	return false;
}

static void expect_opening(struct __test_metadata *_metadata, EVENT *self)
{
	struct sample *sample = next_sample(self);

	ASSERT_NE(NULL, sample);
	EXPECT_EQ(LONG, sample->period);
	EXPECT_EQ(NULL, next_sample(self));
}

TEST_F(quiet, closes)
{
	struct sample *opens, *closes;

	open_event(_metadata, self);
	for (int i = 0; i < 5; i++) {
		ASSERT_TRUE(run_into_quiet_window(self));
		work(WINDOW);
		opens = next_sample(self);
		closes = next_sample(self);
		ASSERT_NE(NULL, opens);
		ASSERT_NE(NULL, closes);
		EXPECT_EQ(LONG, opens->period);
		EXPECT_EQ(WINDOW, closes->period);
		EXPECT_LT(opens->time, closes->time);
		EXPECT_LT(opens->value, closes->value);
		EXPECT_EQ(getpid(), opens->tid);
	}
}

/* Without a time the records have to be in their order. */
TEST_F(quiet, not_without_time)
{
	self->attr.sample_type &= ~PERF_SAMPLE_TIME;
	open_event(_metadata, self);
	ASSERT_TRUE(run_into_window(self));
	EXPECT_NE(NULL, next_sample(self));
}

/* Whoever waits for each sample gets it. */
TEST_F(quiet, not_with_wakeup)
{
	self->attr.wakeup_events = 1;
	open_event(_metadata, self);
	ASSERT_TRUE(run_into_window(self));
	EXPECT_NE(NULL, next_sample(self));
}

TEST_F(quiet, disable)
{
	open_event(_metadata, self);
	ASSERT_TRUE(run_into_quiet_window(self));
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	expect_opening(_metadata, self);
}

TEST_F(quiet, ioc_period)
{
	__u64 period = 2 * LONG;

	open_event(_metadata, self);
	ASSERT_TRUE(run_into_quiet_window(self));
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PERIOD, &period));
	expect_opening(_metadata, self);
}

TEST_F(quiet, switch_out)
{
	open_event(_metadata, self);
	ASSERT_TRUE(run_into_quiet_window(self));
	usleep(1);
	expect_opening(_metadata, self);
}

/* The tick writes what waits for long. */
TEST_F(quiet, tick)
{
	self->attr.alternative_sample_period = 1000 * LONG;
	open_event(_metadata, self);
	ASSERT_TRUE(run_into_quiet_window(self));
	for (int i = 0; i < 100 && self->position == self->page->data_head; i++)
		work(LONG);
	expect_opening(_metadata, self);
}

/* The event is closed, and its sample is in the buffer of another one. */
TEST_F(quiet, close)
{
	struct perf_event_attr attr = self->attr;
	int other;

	open_event(_metadata, self);
	attr.alternative_sample_period = 0;
	attr.sample_period = 1ULL << 62;
	other = perf_event_open(&attr, 0, self->cpu);
	ASSERT_LE(0, other);
	ASSERT_NE(MAP_FAILED, mmap(NULL, getpagesize() + DATA_SIZE, PROT_READ | PROT_WRITE,
				   MAP_SHARED, other, 0));
	munmap(self->page, getpagesize() + DATA_SIZE);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_SET_OUTPUT, other));
	self->page = mmap(NULL, getpagesize() + DATA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			  other, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	ASSERT_TRUE(run_into_quiet_window(self));
	ASSERT_EQ(0, close(self->fd));
	expect_opening(_metadata, self);
}

/* A child runs into a window, and calls exec() or ends there: its sample comes before that. */
static void expect_before(struct __test_metadata *_metadata, EVENT *self, __u32 type, bool exec)
{
	struct sample *record;
	int opened = 0, status;
	pid_t child;

	self->attr.inherit = 1;
	self->attr.comm = 1;
	self->attr.comm_exec = 1;
	self->attr.task = 1;
	open_event(_metadata, self);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	while (next_record(self))
		;
	/* The child's event is enabled when the child is made. */
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
	child = fork();
	ASSERT_LE(0, child);
	if (!child) {
		/* one instruction of the loop or more for each event */
		work((LONG + WINDOW / 4) / 2);
		if (exec)
			execl("/proc/self/exe", "quiet_windows", "exit", NULL);
		_exit(0);
	}
	ASSERT_EQ(child, waitpid(child, &status, 0));
	while ((record = next_record(self))) {
		if (record->header.type == PERF_RECORD_SAMPLE && record->tid == child &&
		    record->period == LONG)
			opened++;
		if (record->header.type == type && (!exec || record->header.misc))
			break;
	}
	EXPECT_EQ(!type, !record);
	EXPECT_EQ(1, opened);
}

TEST_F(quiet, exit_of_child)
{
	expect_before(_metadata, self, PERF_RECORD_EXIT, false);
}

TEST_F(quiet, exec_of_child)
{
	expect_before(_metadata, self, PERF_RECORD_COMM, true);
}

TEST_F(quiet, remove_on_exec)
{
	self->attr.remove_on_exec = 1;
	/* It writes no record of exec(). */
	expect_before(_metadata, self, 0, true);
}

/* Samples that alternate; the first one is at the end of a long interval. */
static void expect_alternation(struct __test_metadata *_metadata, EVENT *self, int number)
{
	int count = self->attr.alternative_sample_count ?: 1, at = 0;
	__u64 time = 0, value = 0;
	struct sample *sample;

	for (int i = 0; i < 20000 && at < number; i++) {
		work(10 * STEP);
		for (; (sample = next_sample(self)); at++) {
			EXPECT_EQ(at % (count + 1) ? self->attr.alternative_sample_period :
						     self->attr.sample_period, sample->period);
			EXPECT_LT(time, sample->time);
			EXPECT_LT(value, sample->value);
			time = sample->time;
			value = sample->value;
		}
	}
	EXPECT_LE(number, at);
}

TEST_F(quiet, none_is_lost)
{
	self->attr.sample_period = 20000;
	self->attr.alternative_sample_period = 1000;
	open_event(_metadata, self);
	expect_alternation(_metadata, self, 2000);
}

static void expect_burst(struct __test_metadata *_metadata, EVENT *self, int windows)
{
	self->attr.alternative_sample_count = windows;
	self->attr.alternative_sample_period = 1000;
	self->fd = perf_event_open(&self->attr, 0, -1);
	if (self->fd < 0)
		SKIP(return, "perf_event_max_sample_rate is too low for the burst");
	close(self->fd);
	open_event(_metadata, self);
	expect_alternation(_metadata, self, 5 * (windows + 1));
}

TEST_F(quiet, burst)
{
	expect_burst(_metadata, self, 3);
}

TEST_F(quiet, longest_burst)
{
	limit_rate(self, "1000000");
	expect_burst(_metadata, self, 255);
}

/* Each sample is in the buffer, or is counted as lost. */
TEST_F(quiet, full_buffer)
{
	__u64 now[2], samples = 0, lost;
	size_t size = 2 * getpagesize();

	self->attr.sample_period = 20000;
	self->attr.alternative_sample_period = 1000;
	self->attr.read_format = PERF_FORMAT_LOST;
	self->fd = perf_event_open(&self->attr, 0, self->cpu);
	ASSERT_LE(0, self->fd);
	self->page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->page);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0));
	do {
		work(STEP);
		ASSERT_EQ(sizeof(now), read(self->fd, now, sizeof(now)));
		lost = now[1];
	} while (lost < 101);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(sizeof(now), read(self->fd, now, sizeof(now)));
	while (next_sample(self))
		samples++;
	/* the intervals that the count has room for */
	EXPECT_EQ(now[0] / 21000 * 2 + (now[0] % 21000 >= 20000), samples + now[1]);
}

/* Between two samples lies the period of the later one, also where the kernel has throttled. */
TEST_F(quiet, throttle)
{
	int throttled = 0, samples = 0;
	struct sample *record;
	__u64 value = 0;

	/* An odd number in a tick of 100, 250, 300 and 1000 Hz: the last one may open a window. */
	if (!limit_rate(self, "2700"))
		SKIP(return, "the limit of samples cannot be written");
	self->attr.sample_period = 20000;
	self->attr.alternative_sample_period = 1000;
	open_event(_metadata, self);
	while (throttled < 20 && samples < 10000) {
		work(10 * STEP);
		while ((record = next_record(self))) {
			throttled += record->header.type == PERF_RECORD_THROTTLE;
			if (record->header.type != PERF_RECORD_SAMPLE)
				continue;
			/* The interrupt comes a little after the overflow. */
			EXPECT_GT(record->period + self->attr.sample_period / 2,
				  record->value - value);
			value = record->value;
			samples++;
		}
	}
	EXPECT_EQ(20, throttled);
}

/* The kernel times each interrupt, also those of a burst that never ends. */
TEST_F(quiet, interrupts_are_timed)
{
	const char *most = "1000000";
	__u64 period = 20000;
	char rate[16];

	if (!limit_rate(self, most))
		SKIP(return, "the limit of samples cannot be written");
	self->attr.sample_period = period;
	self->attr.alternative_sample_period = period;
	self->attr.alternative_sample_count = 255;
	open_event(_metadata, self);
	/* Into the burst: the interrupt that begins it was timed ever since. */
	work(2 * period);
	/* An interrupt takes longer than 1 % of 1 us. */
	ASSERT_TRUE(write_text(PERCENT, "1"));
	for (int i = 0; i < 10; i++) {
		work(40 * period);
		ASSERT_TRUE(read_text(RATE, rate));
		if (atoi(rate) < atoi(most))
			return;
		ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_PERIOD, &period));
	}
	EXPECT_LT(atoi(rate), atoi(most));
}

/*
 * Attaches a program to the event that drops each sample if @pass is 0, and otherwise each one with
 * an address.
 */
static bool attach_program(EVENT *self, int pass)
{
	struct bpf_insn program[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_1,
		  .off = offsetof(struct bpf_perf_event_data, addr) },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = pass },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_2, .off = 1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (__u64)(unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (__u64)(unsigned long)"GPL",
	};
	int fd = syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	return fd >= 0 && !ioctl(self->fd, PERF_EVENT_IOC_SET_BPF, fd);
}

/* The sample has no address, and the program finds nothing of the kernel's stack there. */
TEST_F(quiet, program_passes)
{
	open_event(_metadata, self);
	if (!attach_program(self, 1))
		SKIP(return, "no BPF: %s", strerror(errno));
	ASSERT_TRUE(run_into_quiet_window(self));
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	expect_opening(_metadata, self);
}

/* What the event has kept comes, and no more. */
TEST_F(quiet, program_drops)
{
	open_event(_metadata, self);
	ASSERT_TRUE(run_into_quiet_window(self));
	if (!attach_program(self, 0))
		SKIP(return, "no BPF: %s", strerror(errno));
	work(10 * LONG);
	ASSERT_EQ(0, ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0));
	expect_opening(_metadata, self);
}

/* The CPU of the event goes offline in the window. */
TEST_F(quiet, hotplug)
{
	char path[64];
	int cpu = 1;

	if (!pin_to(cpu))
		SKIP(return, "needs two CPUs");
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	self->pid = -1;
	self->cpu = cpu;
	open_event(_metadata, self);
	ASSERT_TRUE(run_into_quiet_window(self));
	if (!write_text(path, "0"))
		SKIP(return, "CPU %d cannot go offline", cpu);
	self->offline = cpu;
	ASSERT_NE(NULL, next_sample(self));
}

#define main test_main
TEST_HARNESS_MAIN
#undef main

/* What the child becomes after exec(). */
int main(int argc, char **argv)
{
	return argc == 2 && !strcmp(argv[1], "exit") ? 0 : test_main(argc, argv);
}
