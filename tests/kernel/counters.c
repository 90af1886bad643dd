// SPDX-License-Identifier: GPL-2.0
/*
 * The functions of a PMU driver that no emulator runs, with a variable for a counter. DRIVER is a
 * file with their text, PMU the name of the driver's variable.
 *
 * usage: counters BITS PERIOD PARTS OVERFLOWS
 *
 * Stops and starts the event PARTS times on the way to each overflow of the counter, and prints the
 * number of events between samples.
 */
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long u64;
typedef long long s64;
typedef s64 local64_t;

#define unlikely(condition)	(condition)
static s64 local64_read(local64_t *p)
{
	return *p;
}

static void local64_set(local64_t *p, s64 value)
{
	*p = value;
}

static void local64_add(s64 value, local64_t *p)
{
	*p += value;
}

static void local64_sub(s64 value, local64_t *p)
{
	*p -= value;
}

static s64 local64_cmpxchg(local64_t *p, s64 old, s64 new)
{
	s64 before = *p;

	if (before == old)
		*p = new;

	return before;
}

struct hw_perf_event {
	local64_t period_left, prev_count;
	u64 sample_period, last_period;
	unsigned int event_base;
};

struct perf_event {
	local64_t count;
	struct hw_perf_event hw;
};

static u64 counter;

static u64 read_counter(unsigned int idx)
{
	return counter;
}

static void write_counter(unsigned int idx, u64 value)
{
	counter = value;
}

static struct {
	u64 max_period, overflow;
	u64 (*read_counter)(unsigned int idx);
	void (*write_counter)(unsigned int idx, u64 value);
} PMU = { .read_counter = read_counter, .write_counter = write_counter };

/* The MIPS driver needs these to enable a counter on one CPU. */
#define LOONGSON_PMU_TYPE2	2
#define M_PERFCTL_EVENT(event)	(event)

static int get_loongson3_pmu_type(void)
{
	return 0;
}

static void mipsxx_pmu_write_control(int idx, unsigned int value)
{
}

static void perf_event_update_userpage(struct perf_event *event)
{
}

#include DRIVER

int main(int argc, char *argv[])
{
	int bits = atoi(argv[1]), parts = atoi(argv[3]);
	u64 period = strtoull(argv[2], NULL, 0), total = 0, last = 0;
	struct perf_event event = { .hw = {
		.sample_period = period, .last_period = period, .period_left = period,
	} };

	PMU.overflow = 1ULL << (bits - 1);
	PMU.max_period = PMU.overflow - 1;
	set_period(&event, &event.hw, 0);
	for (long i = atol(argv[4]); i; i--) {
		for (int part = parts; part >= 0; part--) {
			u64 events = (PMU.overflow - counter) / (part + 1);

			counter += events;
			total += events;
			update(&event, &event.hw, 0);
			if (part)
				set_period(&event, &event.hw, 0);
		}
		if (set_period(&event, &event.hw, 0)) {
			printf("%llu\n", total - last);
			last = total;
		}
	}
	if (event.count != (s64)total)
		printf("counted %lld of %llu\n", event.count, total);

	return 0;
}
