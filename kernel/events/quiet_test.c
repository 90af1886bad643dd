// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of quiet windows: which samples are kept, and that each of them
 * comes to the ring buffer once, in its order, however its window ends.
 */
#include <kunit/test.h>
#include <linux/perf_alt_period.h>
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>

#include "internal.h"

#define TEST_ID		4711
#define TEST_PAGES	8	/* of the ring buffer */

/* What the samples of the test have after their header. */
struct test_record {
	struct perf_event_header	header;
	u64				id;
	u64				ip;
	u32				pid, tid;
	u64				time;
	u64				period;
};

#define TEST_FIELDS	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | \
			 PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD)

static u64 test_now;

/* Each sample has a time of its own. */
static u64 test_clock(void)
{
	return ++test_now;
}

static void test_wakeup(struct irq_work *work)
{
}

static struct pmu test_pmu = { .task_ctx_nr = perf_hw_context };

/* An event as perf_event_alloc() makes it, without and with a ring buffer. */
static struct perf_event *test_closed_event(struct kunit *test)
{
	struct perf_event *event = kunit_kzalloc(test, sizeof(*event), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, event);
	INIT_LIST_HEAD(&event->sibling_list);
	event->group_leader = event;
	event->pmu = &test_pmu;
	event->id = TEST_ID;
	event->clock = test_clock;
	event->ns = &init_pid_ns;
	event->overflow_handler = perf_event_output_forward;
	event->attr.sample_type = TEST_FIELDS;
	event->attr.alternative_sample_period = 300;
	event->header_size = sizeof(struct test_record) - sizeof(struct perf_event_header);
	init_irq_work(&event->pending_irq, test_wakeup);

	return event;
}

static void test_free_quiet(void *quiet)
{
	kfree(quiet);
}

static void test_free_buffer(void *buffer)
{
	rb_free(buffer);
}

static struct perf_event *test_event(struct kunit *test)
{
	struct perf_event *event = test_closed_event(test);
	struct perf_buffer *rb;

	KUNIT_ASSERT_EQ(test, 0, perf_quiet_alloc(event));
	KUNIT_ASSERT_NOT_NULL(test, event->quiet);
	kunit_add_action(test, test_free_quiet, event->quiet);

	rb = rb_alloc(TEST_PAGES, 0, -1, RING_BUFFER_WRITABLE);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	kunit_add_action(test, test_free_buffer, rb);
	rcu_assign_pointer(event->rb, rb);

	return event;
}

/* An interval of @period events ends. @phase is that of the interval after the next one. */
static void test_overflow(struct perf_event *event, u16 phase, u64 period)
{
	struct perf_sample_data data;
	struct pt_regs regs = {};

	perf_fetch_caller_regs(&regs);
	event->alt_phase = phase;
	perf_sample_data_init(&data, 0, period);
	scoped_guard(irqsave)
		event->overflow_handler(event, &data, &regs);
}

/* A window opens, and no other follows; the window closes. */
static void test_open(struct perf_event *event)
{
	test_overflow(event, PERF_ALT_LONG, 1000);
}

static void test_close(struct perf_event *event)
{
	test_overflow(event, PERF_ALT_WINDOW, 300);
}

static void test_cut(struct perf_event *event)
{
	scoped_guard(irqsave)
		perf_quiet_write(event);
}

static unsigned long test_written(struct perf_event *event)
{
	return local_read(&event->rb->head);
}

/* A record that is in the ring buffer; their sizes divide no page. */
static struct test_record test_record(struct perf_event *event, unsigned long at)
{
	struct test_record record;
	u8 *to = (u8 *)&record;
	int i;

	for (i = 0; i < sizeof(record); i++, at++)
		to[i] = ((u8 *)event->rb->data_pages[at / PAGE_SIZE % TEST_PAGES])[at % PAGE_SIZE];

	return record;
}

/* The buffer has samples with these periods, later ones with later times. */
static void test_expect(struct kunit *test, struct perf_event *event, const u64 *periods, int n)
{
	u64 time = 0;
	int i;

	KUNIT_ASSERT_EQ(test, n * sizeof(struct test_record), test_written(event));
	for (i = 0; i < n; i++) {
		struct test_record record = test_record(event, i * sizeof(record));

		KUNIT_ASSERT_EQ(test, PERF_RECORD_SAMPLE, record.header.type);
		KUNIT_ASSERT_EQ(test, PERF_RECORD_MISC_KERNEL,
				record.header.misc & PERF_RECORD_MISC_CPUMODE_MASK);
		KUNIT_ASSERT_EQ(test, sizeof(record), record.header.size);
		KUNIT_ASSERT_EQ(test, TEST_ID, record.id);
		KUNIT_ASSERT_NE(test, 0, record.ip);
		KUNIT_ASSERT_EQ(test, current->pid, record.tid);
		KUNIT_ASSERT_EQ(test, current->tgid, record.pid);
		KUNIT_ASSERT_GT(test, record.time, time);
		KUNIT_ASSERT_EQ(test, periods[i], record.period);
		time = record.time;
	}
}

static const u64 test_periods[] = { 1000, 300, 1000, 300, 1000 };

static void test_close_writes_both(struct kunit *test)
{
	struct perf_event *event = test_event(test);
	int i;

	for (i = 0; i < 2; i++) {
		test_open(event);
		test_expect(test, event, test_periods, 2 * i);
		test_close(event);
		test_expect(test, event, test_periods, 2 * i + 2);
	}
}

/* Fields that perf_output_sample() has to write; the last one is 0. */
static void test_other_fields(struct kunit *test)
{
	struct perf_event *event = test_event(test);
	struct test_record record;
	u64 weight;

	event->attr.sample_type |= PERF_SAMPLE_WEIGHT;
	event->header_size += sizeof(weight);
	event->quiet->plain = false;
	test_open(event);
	KUNIT_EXPECT_EQ(test, 0, test_written(event));
	test_close(event);
	KUNIT_ASSERT_EQ(test, 2 * (sizeof(record) + sizeof(weight)), test_written(event));
	record = test_record(event, 0);
	KUNIT_EXPECT_EQ(test, 1000, record.period);
	weight = test_record(event, sizeof(record) - offsetof(struct test_record, id)).id;
	KUNIT_EXPECT_EQ(test, 0, weight);
	record = test_record(event, sizeof(record) + sizeof(weight));
	KUNIT_EXPECT_EQ(test, 300, record.period);
}

/* What switch-out, disable, exit, exec, remove, throttle, IOC_PERIOD and the tick do. */
static void test_cut_writes_once(struct kunit *test)
{
	struct perf_event *event = test_event(test);

	test_cut(event);
	test_expect(test, event, test_periods, 0);
	test_open(event);
	test_cut(event);
	test_expect(test, event, test_periods, 1);
	test_cut(event);
	test_expect(test, event, test_periods, 1);
	test_close(event);
	test_expect(test, event, test_periods, 2);
}

static void test_throttled_keeps_nothing(struct kunit *test)
{
	struct perf_event *event = test_event(test);

	event->hw.interrupts = MAX_INTERRUPTS;
	test_open(event);
	test_expect(test, event, test_periods, 1);
}

/* An NMI while the records are written writes its own. */
static void test_busy_keeps_nothing(struct kunit *test)
{
	struct perf_event *event = test_event(test);

	test_open(event);
	event->quiet->busy = true;
	test_overflow(event, PERF_ALT_LONG, 1000);
	test_expect(test, event, test_periods, 1);
	event->quiet->busy = false;
	test_cut(event);
	KUNIT_EXPECT_EQ(test, 2 * sizeof(struct test_record), test_written(event));
}

/* More samples than the event has memory for: none is lost, and their order is kept. */
static void test_longest_burst(struct kunit *test)
{
	int n = PERF_ALT_COUNT_MAX + 1, i;
	struct perf_event *event = test_closed_event(test);
	u64 *periods = kunit_kcalloc(test, n, sizeof(*periods), GFP_KERNEL);
	struct perf_buffer *rb = rb_alloc(TEST_PAGES, 0, -1, RING_BUFFER_WRITABLE);

	KUNIT_ASSERT_NOT_NULL(test, periods);
	KUNIT_ASSERT_NOT_NULL(test, rb);
	kunit_add_action(test, test_free_buffer, rb);
	event->attr.alternative_sample_count = PERF_ALT_COUNT_MAX;
	KUNIT_ASSERT_EQ(test, 0, perf_quiet_alloc(event));
	kunit_add_action(test, test_free_quiet, event->quiet);
	rcu_assign_pointer(event->rb, rb);

	for (i = 0; i < n; i++) {
		periods[i] = i ? 300 : 1000;
		if (i < n - 2)
			test_overflow(event, PERF_ALT_WINDOW + i + 1, periods[i]);
		else if (i < n - 1)
			test_overflow(event, PERF_ALT_LONG, periods[i]);
		if (i == 50)
			KUNIT_EXPECT_EQ(test, 0, test_written(event));
	}
	KUNIT_EXPECT_GT(test, test_written(event), 0);
	test_close(event);
	test_expect(test, event, periods, n);
}

static void test_full_buffer_counts_lost(struct kunit *test)
{
	struct perf_event *event = test_event(test);
	int room = TEST_PAGES * PAGE_SIZE - 1, n = 0;

	while (room >= sizeof(struct test_record)) {
		test_close(event);
		room -= sizeof(struct test_record);
		n++;
	}
	test_open(event);
	KUNIT_EXPECT_EQ(test, 0, atomic64_read(&event->lost_samples));
	test_close(event);
	KUNIT_EXPECT_EQ(test, 2, atomic64_read(&event->lost_samples));
	KUNIT_EXPECT_EQ(test, n * sizeof(struct test_record), test_written(event));
}

/* Ids and numbers of lost samples are those of the group when the record is written. */
static void test_group(struct kunit *test)
{
	struct perf_event *event = test_event(test), *member = test_closed_event(test);
	u64 expected[] = { 2, 0, TEST_ID, 7, 0, TEST_ID + 1, 8 };
	u64 *values = (u64 *)event->quiet->records + sizeof(struct test_record) / sizeof(u64);
	int i, written = sizeof(struct test_record) + sizeof(expected);

	event->attr.sample_type |= PERF_SAMPLE_READ;
	event->attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST;
	event->header_size += sizeof(expected);
	event->nr_siblings = 1;
	list_add_tail(&member->sibling_list, &event->sibling_list);
	member->group_leader = event;
	member->id = TEST_ID + 1;
	atomic64_set(&event->lost_samples, 7);
	atomic64_set(&member->lost_samples, 8);
	test_open(event);
	KUNIT_EXPECT_EQ(test, 0, test_written(event));
	test_cut(event);
	KUNIT_EXPECT_EQ(test, written, test_written(event));
	for (i = 0; i < ARRAY_SIZE(expected); i++)
		KUNIT_EXPECT_EQ(test, expected[i], values[i]);

	/* An NMI while the group changes writes its own sample. */
	test_open(event);
	perf_quiet_hold(event);
	KUNIT_EXPECT_EQ(test, 2 * written, test_written(event));
	test_open(event);
	KUNIT_EXPECT_EQ(test, 3 * written, test_written(event));
	list_del_init(&member->sibling_list);
	perf_quiet_release(event);
	KUNIT_EXPECT_FALSE(test, event->quiet->busy);
}

static void test_without_buffer(struct kunit *test)
{
	struct perf_event *event = test_event(test);
	struct perf_buffer *rb = event->rb;

	rcu_assign_pointer(event->rb, NULL);
	test_open(event);
	test_close(event);
	test_open(event);
	rcu_assign_pointer(event->rb, rb);
	test_cut(event);
	test_expect(test, event, test_periods, 1);
}

static void test_child_writes_to_parent(struct kunit *test)
{
	struct perf_event *parent = test_event(test), *child = test_closed_event(test);

	child->parent = parent;
	child->overflow_handler = parent->overflow_handler;
	KUNIT_ASSERT_EQ(test, 0, perf_quiet_alloc(child));
	kunit_add_action(test, test_free_quiet, child->quiet);
	KUNIT_ASSERT_PTR_NE(test, parent->quiet, child->quiet);

	test_open(child);
	test_expect(test, parent, test_periods, 0);
	test_cut(parent);
	test_expect(test, parent, test_periods, 0);
	test_close(child);
	test_expect(test, parent, test_periods, 2);
}

static void test_handler(struct perf_event *event, struct perf_sample_data *data,
			 struct pt_regs *regs)
{
}

/* What has to be in its place at once, or is not in memory. */
static void test_refused(struct kunit *test)
{
	static struct pmu software = { .task_ctx_nr = perf_sw_context };
	int i;

	for (i = 0; i < 8; i++) {
		struct perf_event *event = test_closed_event(test);
		struct perf_event_attr *attr = &event->attr;

		switch (i) {
		case 0:
			attr->alternative_sample_period = 0;
			break;
		case 1:
			attr->sample_type &= ~PERF_SAMPLE_TIME;
			break;
		case 2:
			attr->sample_type |= PERF_SAMPLE_RAW;
			break;
		case 3:
			attr->sample_type |= PERF_SAMPLE_STACK_USER;
			break;
		case 4:
			attr->sample_type |= PERF_SAMPLE_AUX;
			break;
		case 5:
			attr->wakeup_events = 1;
			break;
		case 6:
			event->pmu = &software;
			break;
		case 7:
			event->overflow_handler = test_handler;
			break;
		}
		KUNIT_EXPECT_EQ(test, 0, perf_quiet_alloc(event));
		KUNIT_EXPECT_NULL(test, event->quiet);
	}
}

static struct kunit_case quiet_test_cases[] = {
	KUNIT_CASE(test_close_writes_both),
	KUNIT_CASE(test_other_fields),
	KUNIT_CASE(test_cut_writes_once),
	KUNIT_CASE(test_throttled_keeps_nothing),
	KUNIT_CASE(test_busy_keeps_nothing),
	KUNIT_CASE(test_longest_burst),
	KUNIT_CASE(test_full_buffer_counts_lost),
	KUNIT_CASE(test_group),
	KUNIT_CASE(test_without_buffer),
	KUNIT_CASE(test_child_writes_to_parent),
	KUNIT_CASE(test_refused),
	{},
};

static struct kunit_suite quiet_test_suite = {
	.name = "perf_quiet",
	.test_cases = quiet_test_cases,
};

kunit_test_suites(&quiet_test_suite);

MODULE_DESCRIPTION("KUnit test of quiet windows");
MODULE_LICENSE("GPL");
