// SPDX-License-Identifier: GPL-2.0
/*
 * Runs a loop in blocks of equal length, first without and then with an event
 * that samples it. Prints for each block how many samples were written and how
 * many nanoseconds it took: in an emulated machine where an instruction takes
 * one, the difference is what the overflows executed.
 *
 * usage: overflows PERIOD [ALTERNATIVE_PERIOD JITTER]
 *        overflows              the size of struct perf_event_attr in the kernel
 */
#include <err.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct sample {
	struct perf_event_header header;
	__u64 ip;
};

/* One page of samples to a block, so that all blocks turn as many pages. */
#define OVERFLOWS	(4096 / sizeof(struct sample))
#define BLOCKS		200

/* A power of two, and more than twice what is used: no reader is woken up. */
#define DATA_PAGES	512

struct block {
	unsigned long long samples;
	unsigned long long time;
};

static unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC_RAW, &time);

	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

/* Two instructions a turn. */
static void spin(unsigned long turns)
{
	for (; turns; turns--)
		asm volatile("" : "+r"(turns));
}

static unsigned long long written(struct perf_event_mmap_page *buffer)
{
	return __atomic_load_n(&buffer->data_head, __ATOMIC_ACQUIRE);
}

static void run(struct block *blocks, unsigned long turns, struct perf_event_mmap_page *buffer)
{
	unsigned long long time = now(), head = written(buffer);
	unsigned int i;

	for (i = 0; i < BLOCKS; i++) {
		spin(turns);
		blocks[i].samples = written(buffer);
		blocks[i].time = now();
	}
	while (i--) {
		blocks[i].samples -= i ? blocks[i - 1].samples : head;
		blocks[i].samples /= sizeof(struct sample);
		blocks[i].time -= i ? blocks[i - 1].time : time;
	}
}

/* Other records, of a throttled event or lost samples, would be counted as samples. */
static void check(struct perf_event_mmap_page *buffer)
{
	unsigned long at;

	for (at = 0; at < written(buffer); at += sizeof(struct sample)) {
		struct sample *sample = (void *)((char *)buffer + buffer->data_offset + at);

		if (sample->header.type != PERF_RECORD_SAMPLE)
			errx(EXIT_FAILURE, "throttled, or samples were lost");
	}
}

static int perf_event_open(struct perf_event_attr *attr)
{
	return syscall(__NR_perf_event_open, attr, 0, -1, -1, 0);
}

/* The kernel writes the size that it knows into an attr with more than it knows. */
static int print_attr_size(void)
{
	union {
		struct perf_event_attr attr;
		unsigned char byte[1024];
	} larger = { .attr.size = sizeof(larger) };

	larger.byte[sizeof(larger) - 1] = 1;
	if (perf_event_open(&larger.attr) >= 0 || errno != E2BIG)
		errx(EXIT_FAILURE, "the kernel takes any attr");
	printf("%u\n", larger.attr.size);

	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	static struct block blocks[2 * BLOCKS];
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = argc > 1 ? strtoul(argv[1], NULL, 0) : 0,
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
		.exclude_kernel = 1,
		.alternative_sample_period = argc > 2 ? strtoul(argv[2], NULL, 0) : 0,
		.jitter_alternate_period = argc > 3 ? strtoul(argv[3], NULL, 0) : 0,
	};
	unsigned long mean = attr.sample_period;
	struct perf_event_mmap_page *buffer;
	unsigned int i;
	int fd;

	if (argc == 1)
		return print_attr_size();

	if (attr.alternative_sample_period)
		mean = (attr.sample_period + attr.alternative_sample_period) / 2;

	fd = perf_event_open(&attr);
	if (fd < 0)
		err(EXIT_FAILURE, "perf_event_open");
	buffer = mmap(NULL, (1 + DATA_PAGES) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		      MAP_SHARED, fd, 0);
	if (buffer == MAP_FAILED)
		err(EXIT_FAILURE, "mmap");

	run(blocks, OVERFLOWS * mean / 2, buffer);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	run(blocks + BLOCKS, OVERFLOWS * mean / 2, buffer);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	check(buffer);

	for (i = 0; i < 2 * BLOCKS; i++)
		printf("%llu %llu\n", blocks[i].samples, blocks[i].time);

	return EXIT_SUCCESS;
}
