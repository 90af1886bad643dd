// SPDX-License-Identifier: GPL-2.0
#include <limits.h>
#include <linux/kernel.h>
#include <linux/types.h>

#include "debug.h"
#include "tests.h"
#include "util/read-delta.h"

#define NR_THREADS	5000
#define NR_IDS		50

static int delta_of(struct hashmap *deltas, u32 machine_pid, u32 tid, u64 id, u64 value)
{
	u64 delta;

	if (read_deltas__next(deltas, machine_pid, tid, id, value, &delta))
		return -1;
	return delta > INT_MAX ? -1 : (int)delta;
}

static int check_one_value(struct hashmap *deltas)
{
	TEST_ASSERT_EQUAL("first value", delta_of(deltas, 0, 1, 7, 100), 100);
	TEST_ASSERT_EQUAL("second value", delta_of(deltas, 0, 1, 7, 130), 30);
	TEST_ASSERT_EQUAL("same value", delta_of(deltas, 0, 1, 7, 130), 0);
	TEST_ASSERT_EQUAL("other thread", delta_of(deltas, 0, 2, 7, 90), 90);
	TEST_ASSERT_EQUAL("other id", delta_of(deltas, 0, 1, 8, 80), 80);
	TEST_ASSERT_EQUAL("same tid in a guest", delta_of(deltas, 5, 1, 7, 70), 70);
	TEST_ASSERT_EQUAL("first thread again", delta_of(deltas, 0, 1, 7, 131), 1);
	return TEST_OK;
}

static int check_new_thread(struct hashmap *deltas)
{
	TEST_ASSERT_EQUAL("smaller value", delta_of(deltas, 0, 1, 7, 40), 40);
	TEST_ASSERT_EQUAL("value after it", delta_of(deltas, 0, 1, 7, 50), 10);

	read_deltas__forget(deltas, 0, 1);
	TEST_ASSERT_EQUAL("greater value of a new thread", delta_of(deltas, 0, 1, 7, 60), 60);
	TEST_ASSERT_EQUAL("other thread is kept", delta_of(deltas, 0, 2, 7, 91), 1);
	TEST_ASSERT_EQUAL("guest's thread is kept", delta_of(deltas, 5, 1, 7, 71), 1);

	read_deltas__forget(deltas, 0, 3);
	TEST_ASSERT_EQUAL("forget an unknown thread", delta_of(deltas, 0, 2, 7, 93), 2);
	return TEST_OK;
}

static int check_many(struct hashmap *deltas)
{
	for (u64 round = 1; round <= 3; round++) {
		for (u32 tid = 10; tid < 10 + NR_THREADS; tid++) {
			for (u64 id = 1; id <= NR_IDS; id++) {
				/* Each pair has its own step in every round. */
				int step = tid * NR_IDS + id;

				TEST_ASSERT_EQUAL("many threads and ids",
						  delta_of(deltas, 0, tid, id, round * step), step);
			}
		}
	}
	return TEST_OK;
}

static int test__read_delta(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct hashmap *deltas = read_deltas__new();
	int ret;

	TEST_ASSERT_VAL("no memory", deltas);
	read_deltas__forget(deltas, 0, 1);

	ret = check_one_value(deltas);
	if (ret == TEST_OK)
		ret = check_new_thread(deltas);
	if (ret == TEST_OK)
		ret = check_many(deltas);

	read_deltas__delete(deltas);
	read_deltas__forget(NULL, 0, 1);
	read_deltas__delete(NULL);
	return ret;
}

DEFINE_SUITE("Deltas of sample reads per thread", read_delta);
