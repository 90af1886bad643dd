// SPDX-License-Identifier: GPL-2.0
/*
 * Deltas of counter values that are kept per thread. With attr.inherit and PERF_SAMPLE_READ a
 * sample carries the values of the sampled thread, under ids that all threads share. So the
 * previous value is found by thread and id.
 */
#include <errno.h>
#include <stdlib.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/types.h>

#include "hashmap.h"
#include "read-delta.h"

struct prev_value {
	u64 id;
	u64 value;
};

/* The key of a thread, which has several values; guests of 32-bit hosts are not told apart. */
static long key_of(u32 machine_pid, u32 tid)
{
	return (u64)machine_pid << 32 | tid;
}

static size_t hash_thread(long key, void *ctx __maybe_unused)
{
	return key ^ (u64)key >> 32;
}

static bool equal_threads(long key1, long key2, void *ctx __maybe_unused)
{
	return key1 == key2;
}

struct hashmap *read_deltas__new(void)
{
	struct hashmap *deltas = hashmap__new(hash_thread, equal_threads, NULL);

	return IS_ERR(deltas) ? NULL : deltas;
}

void read_deltas__delete(struct hashmap *deltas)
{
	struct hashmap_entry *entry;
	size_t bucket;

	if (!deltas)
		return;
	hashmap__for_each_entry(deltas, entry, bucket)
		free(entry->pvalue);
	hashmap__free(deltas);
}

/* Returns the thread's value, 0 before the first one. NULL without memory. */
static struct prev_value *find_value(struct hashmap *deltas, long key, u64 id)
{
	struct hashmap_entry *entry;
	struct prev_value *prev;

	hashmap__for_each_key_entry(deltas, entry, key) {
		prev = entry->pvalue;
		if (prev->id == id)
			return prev;
	}
	prev = calloc(1, sizeof(*prev));
	if (!prev || hashmap__append(deltas, key, prev)) {
		free(prev);
		return NULL;
	}
	prev->id = id;
	return prev;
}

/**
 * read_deltas__next - what was counted since the thread's previous value.
 * @deltas: the table
 * @machine_pid: the guest machine's pid, 0 for the host
 * @tid: the thread
 * @id: the id of the value
 * @value: the value
 * @delta: set to the difference
 *
 * A thread's first value was all counted since the thread started. That is
 * also so for a value below the previous one: it is from a new thread with the
 * same tid, the end of the former one being lost.
 *
 * Return: 0, or -ENOMEM.
 */
int read_deltas__next(struct hashmap *deltas, u32 machine_pid, u32 tid, u64 id, u64 value,
		      u64 *delta)
{
	struct prev_value *prev = find_value(deltas, key_of(machine_pid, tid), id);

	if (!prev)
		return -ENOMEM;
	*delta = value < prev->value ? value : value - prev->value;
	prev->value = value;
	return 0;
}

/* A thread starts or has ended: the next value of the tid is the first one of a new thread. */
void read_deltas__forget(struct hashmap *deltas, u32 machine_pid, u32 tid)
{
	struct prev_value *prev;

	while (deltas && hashmap__delete(deltas, key_of(machine_pid, tid), NULL, &prev))
		free(prev);
}
