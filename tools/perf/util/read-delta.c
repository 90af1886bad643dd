// SPDX-License-Identifier: GPL-2.0
/*
 * Deltas of counter values that are kept per thread. With attr.inherit and PERF_SAMPLE_READ a
 * sample carries the values of the sampled thread, under ids that all threads share. So the
 * previous value is found by thread and id.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/zalloc.h>

#include "read-delta.h"

#define THREAD_HASH_BITS	12
#define FIRST_VALUE_BITS	3

/* A free place has the id 0: the kernel counts ids from 1. */
struct prev_value {
	u64 id;
	u64 value;
};

/* One thread, with a hash table by id (linear probing) of its values. */
struct read_thread {
	struct hlist_node node;
	u32 machine_pid;
	u32 tid;
	unsigned int nr;
	unsigned int bits;
	struct prev_value *values;
};

struct read_deltas {
	/* Values come in groups, so mostly for the same thread as the previous value. */
	struct read_thread *last;
	struct hlist_head threads[1 << THREAD_HASH_BITS];
};

/**
 * read_deltas__new - start without any thread.
 *
 * Return: the new table, or NULL without memory.
 */
struct read_deltas *read_deltas__new(void)
{
	return zalloc(sizeof(struct read_deltas));
}

static void read_thread__delete(struct read_thread *thread)
{
	hlist_del(&thread->node);
	zfree(&thread->values);
	free(thread);
}

/**
 * read_deltas__delete - free the table with all its threads.
 * @deltas: the table, may be NULL
 */
void read_deltas__delete(struct read_deltas *deltas)
{
	struct read_thread *thread;
	struct hlist_node *next;

	if (!deltas)
		return;

	for (size_t i = 0; i < ARRAY_SIZE(deltas->threads); i++) {
		hlist_for_each_entry_safe(thread, next, &deltas->threads[i], node)
			read_thread__delete(thread);
	}
	free(deltas);
}

static struct read_thread *read_deltas__find(struct read_deltas *deltas,
					     u32 machine_pid, u32 tid)
{
	struct read_thread *thread = deltas->last;

	if (thread && thread->tid == tid && thread->machine_pid == machine_pid)
		return thread;

	hlist_for_each_entry(thread, &deltas->threads[hash_32(tid, THREAD_HASH_BITS)], node) {
		if (thread->tid == tid && thread->machine_pid == machine_pid) {
			deltas->last = thread;
			return thread;
		}
	}
	return NULL;
}

static struct read_thread *read_deltas__findnew(struct read_deltas *deltas,
						u32 machine_pid, u32 tid)
{
	struct read_thread *thread = read_deltas__find(deltas, machine_pid, tid);

	if (thread)
		return thread;

	thread = zalloc(sizeof(*thread));
	if (!thread)
		return NULL;

	thread->bits = FIRST_VALUE_BITS;
	thread->values = calloc(1 << thread->bits, sizeof(*thread->values));
	if (!thread->values) {
		free(thread);
		return NULL;
	}

	thread->machine_pid = machine_pid;
	thread->tid = tid;
	hlist_add_head(&thread->node, &deltas->threads[hash_32(tid, THREAD_HASH_BITS)]);
	deltas->last = thread;
	return thread;
}

/* Returns the place of @id, or a free one for it. There is always a free one. */
static struct prev_value *prev_value__find(struct prev_value *values,
					   unsigned int bits, u64 id)
{
	unsigned int mask = (1 << bits) - 1;
	unsigned int i = hash_64(id, bits);

	while (values[i].id && values[i].id != id)
		i = (i + 1) & mask;

	return &values[i];
}

/* Keep a quarter free, so that searches stay short. */
static bool read_thread__is_full(const struct read_thread *thread)
{
	return thread->nr >= (3U << thread->bits) / 4;
}

static int read_thread__grow(struct read_thread *thread)
{
	unsigned int bits = thread->bits + 1;
	struct prev_value *values = calloc(1 << bits, sizeof(*values));

	if (!values)
		return -ENOMEM;

	for (unsigned int i = 0; i < 1U << thread->bits; i++) {
		struct prev_value *prev = &thread->values[i];

		if (prev->id)
			*prev_value__find(values, bits, prev->id) = *prev;
	}

	free(thread->values);
	thread->values = values;
	thread->bits = bits;
	return 0;
}

/**
 * read_deltas__next - what was counted since the thread's previous value.
 * @deltas: the table
 * @machine_pid: the guest machine's pid, 0 for the host
 * @tid: the thread
 * @id: the id of the value, not 0
 * @value: the value
 * @delta: set to the difference
 *
 * A thread's first value was all counted since the thread started. That is
 * also so for a value below the previous one: it is from a new thread with the
 * same tid, the end of the former one being lost.
 *
 * Return: 0, or -ENOMEM.
 */
int read_deltas__next(struct read_deltas *deltas, u32 machine_pid, u32 tid,
		      u64 id, u64 value, u64 *delta)
{
	struct read_thread *thread = read_deltas__findnew(deltas, machine_pid, tid);
	struct prev_value *prev;

	if (!thread)
		return -ENOMEM;

	prev = prev_value__find(thread->values, thread->bits, id);
	if (!prev->id) {
		if (read_thread__is_full(thread)) {
			if (read_thread__grow(thread))
				return -ENOMEM;
			prev = prev_value__find(thread->values, thread->bits, id);
		}
		prev->id = id;
		thread->nr++;
	}

	*delta = value < prev->value ? value : value - prev->value;
	prev->value = value;
	return 0;
}

/**
 * read_deltas__forget - forget a thread that starts or has ended.
 * @deltas: the table, may be NULL
 * @machine_pid: the guest machine's pid, 0 for the host
 * @tid: the thread
 *
 * The next value of the same tid is then the first one of a new thread.
 */
void read_deltas__forget(struct read_deltas *deltas, u32 machine_pid, u32 tid)
{
	struct read_thread *thread;

	if (!deltas)
		return;

	thread = read_deltas__find(deltas, machine_pid, tid);
	if (!thread)
		return;

	deltas->last = NULL;
	read_thread__delete(thread);
}
