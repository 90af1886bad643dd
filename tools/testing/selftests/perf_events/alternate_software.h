/* SPDX-License-Identifier: GPL-2.0 */
/* Tests of software events: an event whose samples carry its count, and its ring buffer. */
#ifndef ALTERNATE_SOFTWARE_H
#define ALTERNATE_SOFTWARE_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest_harness.h"

#define TRACING		"/sys/kernel/tracing/events/"

#define DATA_PAGES	128

#define SHORTEST	10000LL	/* the shortest period of a clock that the kernel allows */
#define NSEC_PER_SEC	1000000000LL

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
static inline int perf_event_open(struct perf_event_attr *attr, int cpu, int group)
{
	return syscall(__NR_perf_event_open, attr, cpu < 0 ? 0 : -1, cpu, group,
		       PERF_FLAG_FD_CLOEXEC);
}

/* 0 or the errno of opening an event, which is closed again. */
static inline int try_open(struct perf_event_attr *attr)
{
	int fd = perf_event_open(attr, -1, -1);

	if (fd < 0)
		return errno;

	close(fd);

	return 0;
}

/* Enables the event after its ring buffer exists, so that no sample is missing. */
static inline int event_open_on(struct event *event, struct perf_event_attr *attr, int cpu)
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

static inline int event_open(struct event *event, struct perf_event_attr *attr)
{
	return event_open_on(event, attr, -1);
}

static inline void event_close(struct event *event)
{
	munmap(event->page, (DATA_PAGES + 1) * getpagesize());
	close(event->fd);
}

static inline int event_set_period(struct event *event, __u64 period)
{
	return ioctl(event->fd, PERF_EVENT_IOC_PERIOD, &period) ? errno : 0;
}

static inline __u64 event_count(struct event *event)
{
	__u64 count;

	return read(event->fd, &count, sizeof(count)) == sizeof(count) ? count : 0;
}

/* Returns the next sample in the ring buffer, or NULL; valid until the next call. */
static inline struct sample *event_sample(struct event *event)
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
static inline long long read_number(const char *path, const char *format)
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

/* Fills in the common members; returns 0 or the reason why the test cannot run. */
static inline const char *common_attr(struct perf_event_attr *attr)
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
	attr->sample_type = PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
	attr->sample_period = 50;
	attr->alternative_sample_period = 3;
	attr->exclude_hv = 1;

	return NULL;
}

static inline long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);

	return time.tv_sec * NSEC_PER_SEC + time.tv_nsec;
}

/* Stays in user mode for some time, in nanoseconds. */
static inline void spin(long long time)
{
	for (long long start = now(); now() - start < time;)
		;
}

#endif /* ALTERNATE_SOFTWARE_H */
