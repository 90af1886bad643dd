// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/types.h>

#include "debug.h"
#include "tests.h"
#include "util/functions/estimate/columns.h"
#include "util/functions/estimate/diff.h"
#include "util/functions/events.h"
#include "util/functions/estimate/interval.h"
#include "util/functions/collect/sums-file.h"
#include "util/functions/collect/sums.h"
#include "util/functions/collect/u192.h"
#include "util/functions/collect/windows.h"

#define LONG		999700
#define WINDOW		300
#define LEADER		7	/* ids */
#define OTHER_LEADER	8

/* A group of cycles and instructions, and two functions. */
struct fixture {
	struct window_collector *metrics;
	struct collect_group *group;
	struct collect_function *f, *g;
	struct function_table table;
};

static int fixture__init(struct fixture *fix, enum function_share share, u64 alternate,
			 bool freq, u32 jitter)
{
	struct perf_event_attr cycles = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = LONG,
		.freq = freq,
		.alternative_sample_period = alternate,
		.jitter_alternate_period = jitter,
		.inherit = 1,
	};
	struct perf_event_attr instructions = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_INSTRUCTIONS,
	};

	memset(fix, 0, sizeof(*fix));
	fix->metrics = window_collector__new(share);
	TEST_ASSERT_VAL("collector", fix->metrics);
	fix->group = window_collector__add_group(fix->metrics, &cycles);
	TEST_ASSERT_VAL("group", fix->group);
	TEST_ASSERT_EQUAL("leader",
			  collect_group__add_event(fix->group, &cycles, "cycles/x/", NULL), 0);
	TEST_ASSERT_EQUAL("member",
			  collect_group__add_event(fix->group, &instructions, "i", NULL), 1);
	fix->f = window_collector__add_function(fix->metrics, "f", "/prog", 0x1000);
	fix->g = window_collector__add_function(fix->metrics, "g", "/prog", 0x2000);
	TEST_ASSERT_VAL("functions", fix->f && fix->g);
	return TEST_OK;
}

static void fixture__exit(struct fixture *fix)
{
	function_table__exit(&fix->table);
	window_collector__delete(fix->metrics);
}

/* Takes a sample of the leader with this id. */
static int take_sample(struct fixture *fix, u64 id, u64 thread, const u64 *counts,
		       const struct collect_sample *sample)
{
	struct collect_interval interval = { .thread = thread, .counts = counts };
	struct collect_value *values;
	struct collect_stream *stream = window_collector__findnew_stream(fix->metrics, fix->group,
									 id, thread, &values);

	if (!stream || collect_stream__measure(stream, &interval))
		return -ENOMEM;
	return collect_stream__sample(stream, &interval, sample);
}

static int take(struct fixture *fix, u64 id, u64 thread, struct collect_function *function,
		u64 cycles, u64 instructions)
{
	const u64 counts[] = { cycles, instructions };
	const struct collect_sample sample = { .function = function };

	return take_sample(fix, id, thread, counts, &sample);
}

/* Takes a long interval and a window after it, which end in the function. */
static void take_pair(struct fixture *fix, struct collect_function *function, u64 instructions)
{
	const u64 before[] = { LONG, 5000 }, counts[] = { WINDOW, instructions };
	const struct collect_sample sample = { .function = function };

	take_sample(fix, LEADER, 1, before, &sample);
	take_sample(fix, LEADER, 1, counts, &sample);
}

static void take_at_0(struct fixture *fix, u64 cycles, u64 instructions)
{
	const u64 counts[] = { cycles, instructions };
	const struct collect_sample sample = { .function = fix->f, .nowhere = true };

	take_sample(fix, LEADER, 1, counts, &sample);
}

/* Returns the sums of a function, NULL if it has none. */
static const struct function_sums *sums_of(struct fixture *fix, const char *symbol)
{
	function_table__exit(&fix->table);
	if (window_collector__table(fix->metrics, &fix->table))
		return NULL;
	for (size_t i = 0; i < fix->table.nr_sums; i++) {
		if (!strcmp(fix->table.sums[i]->symbol, symbol))
			return fix->table.sums[i];
	}
	return NULL;
}

static int check_sums(struct fixture *fix, const char *symbol, u64 samples, u64 matched,
		      u64 cycles, u64 instructions)
{
	const struct function_sums *sums = sums_of(fix, symbol);

	TEST_ASSERT_VAL("no sums", sums);
	TEST_ASSERT_EQUAL("samples", (int)sums->samples, (int)samples);
	TEST_ASSERT_EQUAL("matched", (int)sums->matched, (int)matched);
	TEST_ASSERT_EQUAL("cycles", (int)sums->values[0].w[0], (int)cycles);
	TEST_ASSERT_EQUAL("instructions", (int)sums->values[1].w[0], (int)instructions);
	return TEST_OK;
}

static int check_matching(struct fixture *fix)
{
	/* The interval of the first sample of a stream is unknown. */
	take(fix, LEADER, 1, fix->f, 310, 1000);
	TEST_ASSERT_VAL("first sample", !sums_of(fix, "f"));

	/* A window after a long interval in the same function. */
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->f, 310, 100);
	TEST_ASSERT_EQUAL("matched", check_sums(fix, "f", 1, 1, 310, 100), TEST_OK);

	/* A window that begins elsewhere is a sample of the function at its end. */
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->g, 300, 100);
	TEST_ASSERT_EQUAL("other function", check_sums(fix, "g", 1, 0, 0, 0), TEST_OK);
	TEST_ASSERT_EQUAL("not the other", check_sums(fix, "f", 1, 1, 310, 100), TEST_OK);

	/* Another thread and another leader are streams of their own. */
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 2, fix->f, 300, 100);
	take(fix, OTHER_LEADER, 1, fix->f, 300, 100);
	TEST_ASSERT_EQUAL("new streams", check_sums(fix, "f", 1, 1, 310, 100), TEST_OK);
	take(fix, LEADER, 1, fix->f, 290, 90);
	TEST_ASSERT_EQUAL("their samples in between", check_sums(fix, "f", 2, 2, 600, 190),
			  TEST_OK);

	/* The first sample of a stream opens a window, whatever its interval is. */
	take(fix, LEADER, 3, fix->f, 310, 1000);
	take(fix, LEADER, 3, fix->f, 290, 90);
	TEST_ASSERT_EQUAL("after the first sample", check_sums(fix, "f", 3, 3, 890, 280),
			  TEST_OK);

	/* An interval is a window below half of the sum of the periods. */
	take(fix, LEADER, 1, fix->g, (LONG + WINDOW) / 2, 1);
	take(fix, LEADER, 1, fix->g, (LONG + WINDOW) / 2 - 1, 1);
	return check_sums(fix, "g", 2, 1, (LONG + WINDOW) / 2 - 1, 1);
}

static int check_opened_sums(struct fixture *fix, const char *symbol, u64 opened, u64 samples)
{
	const struct function_sums *sums = sums_of(fix, symbol);

	TEST_ASSERT_VAL("no sums", sums);
	TEST_ASSERT_EQUAL("opened", (int)sums->opened, (int)opened);
	TEST_ASSERT_EQUAL("samples", (int)sums->samples, (int)samples);
	return TEST_OK;
}

/* Checks the counts of the windows that begin in a function. */
static int check_begun_sums(struct fixture *fix, const char *symbol, u64 begun, u64 bursts,
			    u64 instructions, u64 squares)
{
	const struct function_sums *sums = sums_of(fix, symbol);
	const struct u192 *values;

	TEST_ASSERT_VAL("no sums", sums);
	values = sums->values + event_set__nr_values(sums->set);
	TEST_ASSERT_EQUAL("begun", (int)sums->begun, (int)begun);
	TEST_ASSERT_EQUAL("bursts", (int)sums->begun_bursts, (int)bursts);
	TEST_ASSERT_EQUAL("instructions", (int)values[1].w[0], (int)instructions);
	TEST_ASSERT_EQUAL("squares", (int)values[4].w[0], (int)squares);
	return TEST_OK;
}

/* A sample that ends a long interval opens a window, and so does the first one of a stream. */
static int check_opened(struct fixture *fix)
{
	take(fix, LEADER, 1, fix->f, 310, 1000);
	TEST_ASSERT_EQUAL("first sample", check_opened_sums(fix, "f", 1, 0), TEST_OK);
	take(fix, LEADER, 1, fix->f, 290, 90);
	TEST_ASSERT_EQUAL("window", check_opened_sums(fix, "f", 1, 1), TEST_OK);

	/* It does so even if the window ends elsewhere, or is lost. */
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->g, 300, 100);
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	window_collector__lost(fix->metrics);
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	TEST_ASSERT_EQUAL("opened", check_opened_sums(fix, "f", 4, 1), TEST_OK);
	return check_opened_sums(fix, "g", 0, 1);
}

/* A window counts for the function in which it begins, wherever it ends. */
static int check_begun(struct fixture *fix)
{
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->g, 300, 7);
	TEST_ASSERT_EQUAL("left", check_begun_sums(fix, "f", 1, 1, 7, 49), TEST_OK);
	TEST_ASSERT_EQUAL("not there", check_begun_sums(fix, "g", 0, 0, 0, 0), TEST_OK);

	/* Windows of a burst that begin in one function count as one. */
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->f, 300, 10);
	take(fix, LEADER, 1, fix->g, 300, 5);
	take(fix, LEADER, 1, fix->f, 300, 3);
	take(fix, LEADER, 1, fix->f, 300, 2);
	TEST_ASSERT_EQUAL("burst", check_begun_sums(fix, "f", 4, 3, 24, 49 + 225 + 4), TEST_OK);
	TEST_ASSERT_EQUAL("in between", check_begun_sums(fix, "g", 1, 1, 3, 9), TEST_OK);

	/*
	 * It does not count if something was lost, or samples are of two threads, or at address 0.
	 */
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	window_collector__lost(fix->metrics);
	take(fix, LEADER, 1, fix->g, 300, 1);
	take_at_0(fix, LONG, 5000);
	take(fix, LEADER, 1, fix->f, 300, 1);
	return check_begun_sums(fix, "f", 4, 3, 24, 49 + 225 + 4);
}

/* Squares and product of cycles and instructions. */
static int check_products(struct fixture *fix, const char *symbol, u64 cycles, u64 both,
			  u64 instructions)
{
	const struct function_sums *sums = sums_of(fix, symbol);

	TEST_ASSERT_VAL("no sums", sums);
	TEST_ASSERT_EQUAL("cycles", (int)sums->values[2].w[0], (int)cycles);
	TEST_ASSERT_EQUAL("both", (int)sums->values[3].w[0], (int)both);
	TEST_ASSERT_EQUAL("instructions", (int)sums->values[4].w[0], (int)instructions);
	return TEST_OK;
}

/* All windows and long intervals of a group, whichever function has them. */
static int check_intervals(struct fixture *fix)
{
	const struct event_set *set;

	for (int instructions = 10; instructions <= 40; instructions += 10)
		take_pair(fix, fix->f, instructions);
	take_pair(fix, fix->g, 7);
	take_pair(fix, fix->g, 5);
	TEST_ASSERT_EQUAL("opened", check_opened_sums(fix, "f", 4, 4), TEST_OK);

	set = fix->table.sets[0];
	TEST_ASSERT_EQUAL("windows", (int)set->windows.number, 6);
	TEST_ASSERT_EQUAL("their instructions", (int)set->windows.values[1].w[0],
			  10 + 20 + 30 + 40 + 7 + 5);
	TEST_ASSERT_EQUAL("their squares", (int)set->windows.values[4].w[0],
			  100 + 400 + 900 + 1600 + 49 + 25);
	/* The first interval has no known beginning. */
	TEST_ASSERT_EQUAL("long intervals", (int)set->longs.number, 5);
	TEST_ASSERT_EQUAL("their instructions", (int)set->longs.values[1].w[0], 5 * 5000);
	return TEST_OK;
}

/* Each window of a burst has its own two ends; those in one function make one product. */
static int check_bursts(struct fixture *fix)
{
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->f, 310, 100);
	take(fix, LEADER, 1, fix->f, 290, 0);
	TEST_ASSERT_EQUAL("two", check_sums(fix, "f", 2, 2, 600, 100), TEST_OK);
	TEST_ASSERT_EQUAL("one product", check_products(fix, "f", 360000, 60000, 10000), TEST_OK);

	take(fix, LEADER, 1, fix->g, 300, 7);
	take(fix, LEADER, 1, fix->g, 200, 8);
	TEST_ASSERT_EQUAL("from f to g", check_sums(fix, "g", 2, 1, 200, 8), TEST_OK);
	TEST_ASSERT_EQUAL("only the last", check_products(fix, "g", 40000, 1600, 64), TEST_OK);

	/* The next burst, in the middle of which something is lost. */
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->f, 100, 10);
	window_collector__lost(fix->metrics);
	take(fix, LEADER, 1, fix->f, 100, 10);
	take(fix, LEADER, 1, fix->f, 200, 10);
	TEST_ASSERT_EQUAL("without the lost", check_sums(fix, "f", 5, 4, 900, 120), TEST_OK);
	return check_products(fix, "f", 360000 + 10000 + 40000, 60000 + 1000 + 2000,
			      10000 + 100 + 100);
}

/* A stream keeps the values of its events, and the counts of its bursts, apart from others. */
static int check_values(struct fixture *fix)
{
	static const struct collect_value none[2], some[2] = { { 1, ~0ULL }, { 2, ~1ULL } };
	struct collect_stream *stream, *other, *again;
	struct collect_value *values, *others;

	stream = window_collector__findnew_stream(fix->metrics, fix->group, LEADER, 1, &values);
	other = window_collector__findnew_stream(fix->metrics, fix->group, LEADER, 2, &others);
	TEST_ASSERT_VAL("streams", stream && other && stream != other);
	TEST_ASSERT_VAL("no values", !memcmp(values, none, sizeof(none)));
	memcpy(values, some, sizeof(some));
	TEST_ASSERT_EQUAL("samples", check_begun(fix), TEST_OK);
	again = window_collector__findnew_stream(fix->metrics, fix->group, LEADER, 1, &values);
	TEST_ASSERT_VAL("same stream", stream == again);
	TEST_ASSERT_VAL("same values", !memcmp(values, some, sizeof(some)));
	TEST_ASSERT_VAL("other values", !memcmp(others, none, sizeof(none)));
	return TEST_OK;
}

/* The long period is unknown: an interval shorter than two and a half windows is a window. */
static int check_frequency(struct fixture *fix)
{
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->f, WINDOW * 5 / 2, 1);
	TEST_ASSERT_VAL("long", !sums_of(fix, "f"));
	take(fix, LEADER, 1, fix->f, WINDOW * 5 / 2 - 1, 2);
	return check_sums(fix, "f", 1, 1, WINDOW * 5 / 2 - 1, 2);
}

/* With the widest jitter a long interval may be half, a window one and a half as long. */
static int check_jitter(struct fixture *fix)
{
	const u64 limit = (LONG - LONG / 2 + WINDOW + WINDOW / 2) / 2;

	take(fix, LEADER, 1, fix->f, LONG - LONG / 2, 5000);
	take(fix, LEADER, 1, fix->f, LONG - LONG / 2, 5000);
	take(fix, LEADER, 1, fix->f, limit, 1);
	TEST_ASSERT_VAL("long", !sums_of(fix, "f"));
	take(fix, LEADER, 1, fix->f, limit - 1, 2);
	return check_sums(fix, "f", 1, 1, limit - 1, 2);
}

static int check_interruptions(struct fixture *fix)
{
	take(fix, LEADER, 1, fix->f, LONG, 1);
	take(fix, OTHER_LEADER, 1, fix->g, LONG, 1);

	/* No window of a throttled leader counts, but windows of others do. */
	window_collector__throttle(fix->metrics, LEADER, 1, /*is_throttled=*/true);
	window_collector__throttle(fix->metrics, 12345, 1, /*is_throttled=*/true);
	take(fix, LEADER, 1, fix->f, 300, 100);
	take(fix, OTHER_LEADER, 1, fix->g, 300, 100);
	TEST_ASSERT_EQUAL("throttled", check_sums(fix, "f", 1, 0, 0, 0), TEST_OK);
	TEST_ASSERT_EQUAL("not throttled", check_sums(fix, "g", 1, 1, 300, 100), TEST_OK);

	/* Afterwards windows count again. */
	take(fix, LEADER, 1, fix->f, LONG, 1);
	take(fix, LEADER, 1, fix->f, 300, 100);
	TEST_ASSERT_EQUAL("no longer", check_sums(fix, "f", 2, 1, 300, 100), TEST_OK);

	/* A loss affects all streams. */
	take(fix, LEADER, 1, fix->f, LONG, 1);
	take(fix, OTHER_LEADER, 1, fix->g, LONG, 1);
	window_collector__lost(fix->metrics);
	take(fix, LEADER, 1, fix->f, 300, 100);
	take(fix, OTHER_LEADER, 1, fix->g, 300, 100);
	TEST_ASSERT_EQUAL("lost", check_sums(fix, "f", 3, 1, 300, 100), TEST_OK);
	return check_sums(fix, "g", 2, 1, 300, 100);
}

/* Without alternate period each interval is a window. */
static int check_plain(struct fixture *fix)
{
	take(fix, LEADER, 1, fix->f, LONG, 10);
	take(fix, LEADER, 1, fix->f, LONG, 20);
	take(fix, LEADER, 1, fix->g, LONG, 30);
	take(fix, LEADER, 1, fix->g, LONG, 40);
	TEST_ASSERT_EQUAL("no burst", check_products(fix, "g", 2ULL * LONG * LONG, 70ULL * LONG,
						     2500), TEST_OK);
	TEST_ASSERT_EQUAL("plain", check_sums(fix, "f", 1, 1, LONG, 20), TEST_OK);
	TEST_ASSERT_EQUAL("each counts", check_sums(fix, "g", 2, 2, 2 * LONG, 70), TEST_OK);

	/* Except across a throttle record, because the members counted on. */
	window_collector__throttle(fix->metrics, LEADER, 1, /*is_throttled=*/true);
	take(fix, LEADER, 1, fix->g, LONG, 50);
	return check_sums(fix, "g", 3, 2, 2 * LONG, 70);
}

/* Two samples at address 0 need not be in one function, whatever row they are in. */
static int check_address_0(struct fixture *fix)
{
	take_at_0(fix, LONG, 5000);
	take_at_0(fix, 300, 100);
	TEST_ASSERT_EQUAL("both", check_sums(fix, "f", 1, 0, 0, 0), TEST_OK);

	take_at_0(fix, LONG, 5000);
	take(fix, LEADER, 1, fix->f, 300, 100);
	TEST_ASSERT_EQUAL("first", check_sums(fix, "f", 2, 0, 0, 0), TEST_OK);

	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take_at_0(fix, 300, 100);
	TEST_ASSERT_EQUAL("second", check_sums(fix, "f", 3, 0, 0, 0), TEST_OK);

	/* Such samples do not affect later ones. */
	take(fix, LEADER, 1, fix->f, LONG, 5000);
	take(fix, LEADER, 1, fix->f, 300, 100);
	return check_sums(fix, "f", 4, 1, 300, 100);
}

static int check_plain_address_0(struct fixture *fix)
{
	take_at_0(fix, LONG, 10);
	take_at_0(fix, LONG, 20);
	TEST_ASSERT_EQUAL("both", check_sums(fix, "f", 1, 0, 0, 0), TEST_OK);

	take(fix, LEADER, 1, fix->f, LONG, 30);
	take(fix, LEADER, 1, fix->f, LONG, 40);
	return check_sums(fix, "f", 3, 1, LONG, 40);
}

static int run(int (*check)(struct fixture *fix), enum function_share share, u64 alternate,
	       bool freq, u32 jitter)
{
	struct fixture fix;
	int ret = fixture__init(&fix, share, alternate, freq, jitter);

	if (ret == TEST_OK)
		ret = check(&fix);
	fixture__exit(&fix);
	return ret;
}

static int test__streams(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	const enum function_share discard = FUNCTION_SHARE_DISCARD;

	TEST_ASSERT_EQUAL("matching", run(check_matching, discard, WINDOW, false, 0), TEST_OK);
	TEST_ASSERT_EQUAL("opened", run(check_opened, FUNCTION_SHARE_AUTO, WINDOW, false, 0),
			  TEST_OK);
	TEST_ASSERT_EQUAL("begun", run(check_begun, FUNCTION_SHARE_AUTO, WINDOW, false, 0),
			  TEST_OK);
	TEST_ASSERT_EQUAL("intervals", run(check_intervals, FUNCTION_SHARE_AUTO, WINDOW, false, 0),
			  TEST_OK);
	TEST_ASSERT_EQUAL("bursts", run(check_bursts, discard, WINDOW, false, 0), TEST_OK);
	TEST_ASSERT_EQUAL("values", run(check_values, FUNCTION_SHARE_AUTO, WINDOW, false, 0),
			  TEST_OK);
	TEST_ASSERT_EQUAL("frequency", run(check_frequency, discard, WINDOW, true, 0), TEST_OK);
	TEST_ASSERT_EQUAL("jitter", run(check_jitter, discard, WINDOW, false, 30), TEST_OK);
	TEST_ASSERT_EQUAL("interruptions", run(check_interruptions, discard, WINDOW, false, 0),
			  TEST_OK);
	TEST_ASSERT_EQUAL("address 0", run(check_address_0, discard, WINDOW, false, 0), TEST_OK);
	TEST_ASSERT_EQUAL("address 0 with one period",
			  run(check_plain_address_0, discard, 0, false, 0), TEST_OK);
	return run(check_plain, FUNCTION_SHARE_AUTO, 0, false, 0);
}

/* Sums beyond 64 and 128 bits, against numbers computed by hand. */
static int test__numbers(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	/* 5 x (2^64 - 1)^2 */
	static const char five_squares[] = "1701411834604692317132405596421745541125";
	/* 2^192 - 1, and one more */
	static const char greatest[] =
		"6277101735386680763835789423207666416102355444464034512895";
	static const char too_great[] =
		"6277101735386680763835789423207666416102355444464034512896";
	char buf[U192_DECIMAL_SIZE];
	struct u192 sum = {}, parsed;

	TEST_ASSERT_VAL("zero", !strcmp(u192__decimal(&sum, buf), "0"));
	for (int i = 0; i < 5; i++)
		u192__add_product(&sum, ~0ULL, ~0ULL);
	TEST_ASSERT_VAL("squares", !strcmp(u192__decimal(&sum, buf), five_squares));
	TEST_ASSERT_VAL("parse", !u192__parse(&parsed, five_squares));
	TEST_ASSERT_VAL("parsed", !memcmp(&parsed, &sum, sizeof(sum)));

	u192__add(&sum, &parsed);
	TEST_ASSERT_VAL("sum", !strcmp(u192__decimal(&sum, buf),
				       "3402823669209384634264811192843491082250"));

	TEST_ASSERT_EQUAL("word", u192__parse(&parsed, "12x"), -EINVAL);
	TEST_ASSERT_EQUAL("nothing", u192__parse(&parsed, ""), -EINVAL);
	TEST_ASSERT_VAL("greatest", !u192__parse(&parsed, greatest));
	TEST_ASSERT_VAL("its digits", !strcmp(u192__decimal(&parsed, buf), greatest));
	TEST_ASSERT_EQUAL("too great", u192__parse(&parsed, too_great), -ERANGE);
	return TEST_OK;
}

static int check_name(u32 type, u64 config, const char *name, const char *cpu,
		      const char *expected)
{
	struct perf_event_attr attr = { .type = type, .config = config };
	char *result = fn_event__name(&attr, name, cpu);
	bool is_same = result && !strcmp(result, expected);

	if (!is_same)
		pr_debug("%s: %s instead of %s\n", name, result, expected);
	free(result);
	return is_same ? TEST_OK : TEST_FAIL;
}

static int test__names(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	static const char arm[] = "0x00000000410fd0c0 slots=4", intel[] = "GenuineIntel-6-8F-8";
	static const char amd[] = "AuthenticAMD-25-17-1";
	static const struct {
		u32 type;
		u64 config;
		const char *name;
		const char *expected;
		const char *cpu;
	} names[] = {
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "whatever", "cycles", NULL },
		{ PERF_TYPE_HARDWARE, 1ULL << 32 | PERF_COUNT_HW_INSTRUCTIONS, "cpu/x/",
		  "instructions", NULL },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "faults:u", "page-faults", NULL },
		{ PERF_TYPE_HW_CACHE, 0x10000, "whatever", "L1-dcache-load-misses", NULL },
		{ PERF_TYPE_HW_CACHE, 0x10003, "dTLB-load-misses:u", "dTLB-load-misses", NULL },
		{ PERF_TYPE_RAW, 0x05, "r0005:u", "r0005", NULL },
		{ PERF_TYPE_RAW, 0xc0, "inst_retired.any:u", "instructions", NULL },
		{ PERF_TYPE_RAW, 0x99, "r0099:u", "r0099", NULL },
		{ PERF_TYPE_MAX + 2, 0x11, "armv8_pmuv3_0/cpu_cycles,period=3/", "cycles", NULL },
		{ PERF_TYPE_MAX + 2, 0x11, "hisi_uncore/event=0x11/", "event=0x11", NULL },
		{ PERF_TYPE_MAX + 2, 0x77, "cpu/period=3,event=7,umask=1/u", "event=7,umask=1",
		  NULL },
		{ PERF_TYPE_MAX + 2, 1ULL << 19, "ibs_op/cnt_ctl=1/u", "ibs_op", NULL },
		{ PERF_TYPE_MAX + 2, 0x77, "cpu/INST_RETIRED,alt-period=2/", "instructions", NULL },
		{ PERF_TYPE_BREAKPOINT, 0x11, "mem:0x1000:rw", "mem:0x1000", NULL },
		{ PERF_TYPE_HW_CACHE, 0x10000, "L1-dcache-load-misses", "cache-misses", arm },
		{ PERF_TYPE_RAW, 0x05, "r5", "dTLB-load-misses", arm },
		{ PERF_TYPE_RAW, 0x1b, "r001b/period=3/u", "inst_spec", arm },
		{ PERF_TYPE_RAW, 0x99, "cycles", "event:cycles", arm },
		{ PERF_TYPE_RAW, 0x05, "r5", "r5", "0x489-0x8000000000000007-0x0" },
		{ PERF_TYPE_RAW, 0x08, "r8", "r8", "0x00000000611f0221" },
		{ PERF_TYPE_RAW, 0x11, "r11", "r11", intel },
		{ PERF_TYPE_RAW, 0x3c, "r3c", "cycles", intel },
		{ PERF_TYPE_RAW, 0xc0, "INST_RETIRED.ANY", "instructions", intel },
		{ PERF_TYPE_RAW, 0xd1, "instructions", "event:instructions", intel },
		{ PERF_TYPE_MAX + 2, 0x3c, "uncore_imc/event=0x3c/", "event=0x3c", intel },
		{ PERF_TYPE_MAX + 2, 0x3c, "cpu_atom/event=0x3c/", "cycles", intel },
		{ PERF_TYPE_RAW, 0x76, "ls_not_halted_cyc", "cycles", amd },
		{ PERF_TYPE_RAW, 0x3c, "r3c", "r3c", amd },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		TEST_ASSERT_EQUAL("name", check_name(names[i].type, names[i].config, names[i].name,
						     names[i].cpu, names[i].expected), TEST_OK);
	}
	return TEST_OK;
}

/*
 * The numbers are samples that opened windows, windows, matched ones with their bursts, begun ones
 * with theirs; sums of the events and of their products, twice.
 */
static const char sums_file[] =
	FUNCTION_SUMS_MAGIC " 5\n"
	"by\tsymbol\t0\n"
	"lost\t3\n"
	"throttled\t2\n"
	"cpu\tGenuineIntel,6,85,4 smt_on=1\n"
	"group\tauto\t999700\t0\t300\t2\t0\t1\tcycles\tinstructions\n"
	"windows\t4\t1200\t500\t400000\t160000\t70000\n"
	"long\t3\t2999100\t1500000\t2998200270000\t1499550000000\t750000000000\n"
	"sums\ta\\tb\t/prog\t-\t"
	"3\t4\t2\t1\t3\t1\t600\t300\t360000\t180000\t90000\t900\t400\t810000\t360000\t160000\n"
	"sums\tf\t/prog\t0x1000\t"
	"0\t1\t1\t1\t0\t0\t300\t100\t90000\t30000\t10000\t0\t0\t0\t0\t0\n"
	"end\n";

static int read_text(const char *text, struct function_table *table)
{
	char msg[128];
	FILE *fp = fmemopen((void *)text, strlen(text), "r");
	int ret;

	if (!fp)
		return -errno;
	ret = function_table__read(table, fp, msg, sizeof(msg));
	fclose(fp);
	return ret;
}

static int check_rewritten(const struct function_table *table, const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *fp = open_memstream(&text, &size);
	bool is_same;

	TEST_ASSERT_VAL("memory", fp);
	TEST_ASSERT_EQUAL("write", function_table__write(table, fp), 0);
	fclose(fp);
	is_same = !strcmp(text, expected);
	if (!is_same)
		pr_debug("%s", text);
	free(text);
	return is_same ? TEST_OK : TEST_FAIL;
}

static int check_refused(const char *text)
{
	struct function_table table = {};
	int ret = read_text(text, &table);

	function_table__exit(&table);
	return ret ? TEST_OK : TEST_FAIL;
}

static int test__sums_file(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	static const char doubled[] =
		FUNCTION_SUMS_MAGIC " 5\n"
		"by\tsymbol\t0\n"
		"lost\t6\n"
		"throttled\t4\n"
		"cpu\tGenuineIntel,6,85,4 smt_on=1\n"
		"group\tauto\t999700\t0\t300\t2\t0\t1\tcycles\tinstructions\n"
		"windows\t8\t2400\t1000\t800000\t320000\t140000\n"
		"long\t6\t5998200\t3000000\t5996400540000\t2999100000000\t1500000000000\n"
		"sums\ta\\tb\t/prog\t-\t"
		"6\t8\t4\t2\t6\t2\t1200\t600\t720000\t360000\t180000\t1800\t800\t1620000\t720000\t320000\n"
		"sums\tf\t/prog\t0x1000\t"
		"0\t2\t2\t2\t0\t0\t600\t200\t180000\t60000\t20000\t0\t0\t0\t0\t0\n"
		"end\n";
	static const char before[] = FUNCTION_SUMS_MAGIC " 5\nby\t";
	static const char after[] =
		"\t0\nlost\t0\nthrottled\t0\n"
		"group\tdiscard\t999700\t0\t300\t0\t0\t1\tcycles\tinstructions\n"
		"end\n";
	static const char *const bad_keys[] = {
		"name", "", "comm,", ",comm", "comm,,dso", "comm,comm", "com", "comm,children",
		"children,comm", "symbol,dso,comm,thread,cpu,srcline,callchain,symbol",
	};
	static const char by_comm[] =
		FUNCTION_SUMS_MAGIC " 5\n"
		"by\tcomm\t0\n"
		"group\tdiscard\t999700\t0\t300\t0\t0\t1\tcycles\tinstructions\n"
		"sums\tprog\t\t-\t"
		"0\t1\t1\t1\t0\t0\t300\t100\t90000\t30000\t10000\t0\t0\t0\t0\t0\n"
		"end\n";
	struct function_table table = {}, other = {};
	char cut[sizeof(sums_file)];

	TEST_ASSERT_EQUAL("read", read_text(sums_file, &table), 0);
	TEST_ASSERT_EQUAL("same file", check_rewritten(&table, sums_file), TEST_OK);
	TEST_ASSERT_EQUAL("read again", read_text(sums_file, &other), 0);
	TEST_ASSERT_VAL("add", !function_table__add(&table, &other));
	TEST_ASSERT_EQUAL("sums of two", check_rewritten(&table, doubled), TEST_OK);
	function_table__exit(&other);
	function_table__exit(&table);

	/* Cut the file at each byte. */
	for (size_t size = 0; size < strlen(sums_file); size++) {
		scnprintf(cut, size + 1, "%s", sums_file);
		TEST_ASSERT_EQUAL("cut short", check_refused(cut), TEST_OK);
	}
	scnprintf(cut, sizeof(cut), "%s", sums_file);
	cut[strlen(FUNCTION_SUMS_MAGIC " ")] = '4';
	TEST_ASSERT_EQUAL("version before", read_text(cut, &table), 0);
	function_table__exit(&table);
	TEST_ASSERT_EQUAL("version", check_refused(FUNCTION_SUMS_MAGIC " 9\nend\n"), TEST_OK);
	TEST_ASSERT_EQUAL("old version", check_refused(FUNCTION_SUMS_MAGIC " 3\nend\n"), TEST_OK);
	for (size_t i = 0; i < ARRAY_SIZE(bad_keys); i++) {
		scnprintf(cut, sizeof(cut), "%s%s%s", before, bad_keys[i], after);
		TEST_ASSERT_EQUAL(bad_keys[i], check_refused(cut), TEST_OK);
	}
	scnprintf(cut, sizeof(cut), "%s%s%s", before, "comm,symbol", after);
	TEST_ASSERT_EQUAL("two keys", read_text(cut, &table), 0);
	TEST_ASSERT_EQUAL("keys in order", check_rewritten(&table, cut), TEST_OK);
	TEST_ASSERT_VAL("first key", function_by__has(table.by, FUNCTION_BY_COMM));
	TEST_ASSERT_VAL("second key", function_by__has(table.by, FUNCTION_BY_SYMBOL));
	TEST_ASSERT_VAL("no other", !function_by__has(table.by, FUNCTION_BY_DSO));
	TEST_ASSERT_VAL("not alone", !function_by__is(table.by, FUNCTION_BY_COMM));
	function_table__exit(&table);

	/* The kind of rows is kept, and rows of two kinds do not add up. */
	TEST_ASSERT_EQUAL("read", read_text(sums_file, &table), 0);
	TEST_ASSERT_EQUAL("read another", read_text(by_comm, &other), 0);
	TEST_ASSERT_VAL("kind", function_by__is(other.by, FUNCTION_BY_COMM));
	TEST_ASSERT_VAL("two kinds", function_table__add(&table, &other));
	function_table__exit(&other);
	function_table__exit(&table);
	return TEST_OK;
}

/* Checks a column of the only function. */
static int check_column(const struct function_columns *columns, const char *name, double value,
			double error)
{
	int column = function_columns__find(columns, name, strlen(name));
	const struct function_value *is;

	TEST_ASSERT_VAL(name, column >= 0);
	is = &columns->rows[0].values[column];
	pr_debug("%s: %.17g +- %.17g\n", name, is->value, is->error);
	TEST_ASSERT_VAL("defined", is->is_defined);
	TEST_ASSERT_VAL("value", is->value == value);
	TEST_ASSERT_VAL("error", is->has_error == (error >= 0));
	TEST_ASSERT_VAL("its value", error < 0 || (is->error >= 0.999999 * error &&
						   is->error <= 1.000001 * error));
	return TEST_OK;
}

static bool is_about(double value, double expected)
{
	pr_debug("%.9g, expected %.9g\n", value, expected);
	return fabs(value - expected) < 0.00001;
}

/* Compare with tables of Student's t distribution. */
static int test__student(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	static const struct {
		double freedom;
		double t;
	} quantiles[] = {
		{ 1, 12.706205 }, { 2, 4.302653 }, { 3, 3.182446 }, { 10, 2.228139 },
		{ 30, 2.042272 }, { 1000, 1.962339 }, { 1e6, 1.959964 }, { 0, 1.959964 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(quantiles); i++) {
		TEST_ASSERT_VAL("quantile", is_about(student_t__quantile(quantiles[i].freedom),
						     quantiles[i].t));
		TEST_ASSERT_VAL("tail", is_about(student_t__tail(-quantiles[i].t,
								 quantiles[i].freedom), 0.05));
	}
	TEST_ASSERT_VAL("few", is_about(student_t__quantile(0.05) / 1.1958338e25, 1));
	TEST_ASSERT_VAL("middle", student_t__tail(0, 5) == 1);
	/* 2 / pi atan(1 / t) */
	TEST_ASSERT_VAL("near", is_about(student_t__tail(0.1, 1), 0.9365490));
	TEST_ASSERT_VAL("far", is_about(1e6 * student_t__tail(1e6, 1), 0.6366198));
	return TEST_OK;
}

static const struct function_reading_options this_run;

static int check_interval(const struct function_columns *columns, const char *name, double low,
			  double high)
{
	int column = function_columns__find(columns, name, strlen(name));
	const struct function_value *is = &columns->rows[0].values[column];

	TEST_ASSERT_VAL("interval", is->has_interval);
	TEST_ASSERT_VAL("low", is_about(is->low, low));
	TEST_ASSERT_VAL("high", is_about(is->high, high));
	return TEST_OK;
}

static int test__columns(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	/*
	 * Three windows: cycles 300, 310, 290; instructions 100, 100, 200. CPI is
	 * R = 2.25, its residuals 75, 85, -160; with n = 3 the error is
	 * sqrt(3 / 2 x (75^2 + 85^2 + 160^2)) / 400.
	 */
	static const char text[] =
		FUNCTION_SUMS_MAGIC " 5\n"
		"group\tdiscard\t999700\t0\t300\t0\t0\t1\tcycles\tinstructions\n"
		"sums\tf\t/prog\t-\t"
		"0\t4\t3\t3\t0\t0\t900\t400\t270200\t119000\t60000\t0\t0\t0\t0\t0\n"
		"end\n";
	struct function_table table = {};
	struct function_columns columns;

	TEST_ASSERT_EQUAL("read", read_text(text, &table), 0);
	TEST_ASSERT_EQUAL("columns", function_columns__init(&columns, &table, &this_run), 0);
	TEST_ASSERT_EQUAL("columns", columns.nr_columns, 5);
	TEST_ASSERT_EQUAL("windows", check_column(&columns, "#", 4, -1), TEST_OK);
	TEST_ASSERT_EQUAL("ratio", check_column(&columns, "cpi", 2.25, 0.6003904979), TEST_OK);
	TEST_ASSERT_EQUAL("share", check_column(&columns, "%CY", 100, 0), TEST_OK);
	TEST_ASSERT_EQUAL("discarded", check_column(&columns, "DIS", 25, 25), TEST_OK);
	/*
	 * (2.25 - R)^2 = (4.302653 x 0.6003905)^2 R / 2.25 gives 0.7542888 and 6.7116204.
	 * As an instruction sees it, windows hold 150, and 133.33 on average, so the low
	 * end is 2 - 134.33 / 150 times as far off by its logarithm. Of the share none
	 * else is known but that 3 windows (900^2 / 270200) had no other function.
	 */
	TEST_ASSERT_EQUAL("its interval", check_interval(&columns, "CPI", 0.6729204, 6.7116204),
			  TEST_OK);
	TEST_ASSERT_EQUAL("of the share", check_interval(&columns, "%CY", 0.0682934, 100), TEST_OK);
	TEST_ASSERT_EQUAL("of the discarded", check_interval(&columns, "DIS", 1.642968, 86.931042),
			  TEST_OK);
	TEST_ASSERT_VAL("wider than the value", columns.rows[0].values[1].is_weak);
	function_columns__exit(&columns);
	function_table__exit(&table);
	return TEST_OK;
}

static const struct function_diff_row *diff_row(const struct function_diff *diff,
						const char *symbol)
{
	for (size_t i = 0; i < diff->nr_rows; i++) {
		const struct function_diff_row *row = &diff->rows[i];

		if (!strcmp((row->before ?: row->after)->sums[0]->symbol, symbol))
			return row;
	}
	return NULL;
}

static int check_diff(const struct function_diff *diff)
{
	const struct function_diff_row *f = diff_row(diff, "f"), *g = diff_row(diff, "g");
	int cpi = function_columns__find(&diff->columns, "CPI", 3);
	const struct function_change *change = &f->changes[cpi];

	TEST_ASSERT_EQUAL("rows", (int)diff->nr_rows, 4);
	TEST_ASSERT_VAL("both", f->before && f->after && g->before && g->after);
	TEST_ASSERT_VAL("vanished", !diff_row(diff, "old")->after);
	TEST_ASSERT_VAL("appeared", !diff_row(diff, "new")->before);

	TEST_ASSERT_VAL("change", change->is_defined && is_about(change->change, 0.5));
	TEST_ASSERT_VAL("significant", change->is_significant && change->low > 0);
	TEST_ASSERT_VAL("chance", !g->changes[cpi].is_significant && g->changes[cpi].low < 0);
	TEST_ASSERT_VAL("first", &diff->rows[0] == f && f->is_significant);
	TEST_ASSERT_VAL("then", &diff->rows[1] == g && diff->rows[2].after);
	return TEST_OK;
}

/* A change from 2 to 2.5, whose interval ends at 0.486. */
static int check_limit(const char *text, const char *column, bool exceeded)
{
	static const struct function_run_variance runs = { .is_known = true };
	static const struct function_value before = { .value = 2, .low = 1.99, .high = 2.01 };
	static const struct function_value after = { .value = 2.5, .low = 2.49, .high = 2.51 };
	struct function_change change = {
		.before = &before, .after = &after, .runs = &runs, .has_interval = true,
	};
	struct function_diff_row row = { .changes = &change };
	const struct function_diff diff = { .rows = &row, .nr_rows = 1 };
	struct function_limit limit = {};
	const char *rest = function_limit__parse(&limit, text);
	bool is_exceeded;

	TEST_ASSERT_VAL(text, !!rest == !!column);
	if (rest) {
		TEST_ASSERT_VAL(text, !strcmp(limit.column, column));
		TEST_ASSERT_VAL(text, !function_diff__find_exceeded(&diff, 0, &limit, 1,
								    &is_exceeded));
		TEST_ASSERT_VAL(text, is_exceeded == exceeded);
	}
	free(limit.column);
	return TEST_OK;
}

static int test__diff(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	/* CPI of f changes from 2.5 to 3 with 40 windows, CPI of g with 3. The build has moved. */
	static const char before[] =
		FUNCTION_SUMS_MAGIC " 5\n"
		"group\tdiscard\t999700\t0\t300\t0\t0\t1\tcycles\tinstructions\n"
		"sums\tf\t/a/prog\t-\t0\t40\t40\t40\t0\t0\t12000\t4800\t3600000\t1440000\t578000\t0\t0\t0\t0\t0\n"
		"sums\tg\t/a/prog\t-\t0\t4\t3\t3\t0\t0\t900\t400\t270200\t119000\t60000\t0\t0\t0\t0\t0\n"
		"sums\told\t/a/prog\t-\t0\t1\t1\t1\t0\t0\t300\t100\t90000\t30000\t10000\t0\t0\t0\t0\t0\n"
		"end\n";
	static const char after[] =
		FUNCTION_SUMS_MAGIC " 5\n"
		"group\tdiscard\t999700\t0\t300\t0\t0\t1\tcycles\tinstructions\n"
		"sums\tf\t/b/prog\t-\t0\t40\t40\t40\t0\t0\t12000\t4000\t3600000\t1200000\t401000\t0\t0\t0\t0\t0\n"
		"sums\tg\t/b/prog\t-\t0\t4\t3\t3\t0\t0\t900\t300\t270200\t90000\t35000\t0\t0\t0\t0\t0\n"
		"sums\tnew\t/b/prog\t-\t0\t1\t1\t1\t0\t0\t300\t100\t90000\t30000\t10000\t0\t0\t0\t0\t0\n"
		"end\n";
	struct function_table old_table = {}, new_table = {};
	struct function_columns old, new;
	struct function_runs old_runs, new_runs;
	struct function_diff diff;
	int ret;

	TEST_ASSERT_EQUAL("read", read_text(before, &old_table), 0);
	TEST_ASSERT_EQUAL("read", read_text(after, &new_table), 0);
	TEST_ASSERT_EQUAL("columns", function_columns__init(&old, &old_table, &this_run), 0);
	TEST_ASSERT_EQUAL("columns", function_columns__init(&new, &new_table, &this_run), 0);
	old_runs = (struct function_runs){
		.nr = 1, .tables = &old_table, .columns = &old, .table = old_table, .all = old,
	};
	new_runs = (struct function_runs){
		.nr = 1, .tables = &new_table, .columns = &new, .table = new_table, .all = new,
	};
	TEST_ASSERT_EQUAL("diff", function_diff__init(&diff, &old_runs, &new_runs,
						      /*is_single=*/true), 0);
	function_diff__sort(&diff, function_columns__find(&diff.columns, "%CY", 3));
	ret = check_diff(&diff);
	function_diff__exit(&diff);
	function_columns__exit(&new);
	function_columns__exit(&old);
	function_table__exit(&new_table);
	function_table__exit(&old_table);
	TEST_ASSERT_EQUAL("diff", ret, TEST_OK);

	TEST_ASSERT_EQUAL("more", check_limit("CPI>24%", "CPI", true), TEST_OK);
	TEST_ASSERT_EQUAL("maybe more", check_limit("CPI>24.5%", "CPI", false), TEST_OK);
	TEST_ASSERT_EQUAL("absolute", check_limit("a,b/KI > 0.48, CPI>1", "a,b/KI", true), TEST_OK);
	TEST_ASSERT_EQUAL("maybe", check_limit("a,b/KI > 0.49, CPI>1", "a,b/KI", false), TEST_OK);
	TEST_ASSERT_EQUAL("less", check_limit("CPI<-1%", "CPI", false), TEST_OK);
	TEST_ASSERT_EQUAL("no number", check_limit("CPI>x", NULL, false), TEST_OK);
	return check_limit("CPI<5", NULL, false);
}

static struct test_case function_metrics_tests[] = {
	TEST_CASE("Function metrics: streams of samples", streams),
	TEST_CASE("Function metrics: sums of many bits", numbers),
	TEST_CASE("Function metrics: names of events", names),
	TEST_CASE("Function metrics: sums file", sums_file),
	TEST_CASE("Function metrics: Student's t", student),
	TEST_CASE("Function metrics: columns", columns),
	TEST_CASE("Function metrics: comparison", diff),
	{ .name = NULL, }
};

struct test_suite suite__function_metrics = {
	.desc = "Function metrics",
	.test_cases = function_metrics_tests,
};
