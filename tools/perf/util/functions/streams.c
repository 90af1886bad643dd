// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the counts of groups. A stream is one group in one thread, or on one CPU where counts are
 * not inherited. Each sample of its sampler ends an interval, of which the first is not known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>

#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../hashmap.h"
#include "../intlist.h"
#include "../sample.h"
#include "functions.h"

#define TIMES		(PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/* A stream that begins with the recording has counted less than this before its first sample. */
#define MOST_BEFORE_SAMPLE	1000000

struct fn_streams {
	struct hashmap *streams;
	struct intlist *throttles;	/* by id, see throttle_of() */
	u64 now;			/* counts samples and ends of threads: their order */
	u64 lost;
	u64 looked;			/* when idle streams were last searched */
};

static size_t hash_stream(long key, void *ctx __maybe_unused)
{
	const struct fn_stream *stream = (const struct fn_stream *)key;

	return stream->id * 31 + stream->thread;
}

static bool equal_streams(long key1, long key2, void *ctx __maybe_unused)
{
	const struct fn_stream *a = (const struct fn_stream *)key1;
	const struct fn_stream *b = (const struct fn_stream *)key2;

	return a->id == b->id && a->thread == b->thread && a->owner == b->owner;
}

struct fn_streams *fn_streams__new(void)
{
	struct fn_streams *streams = zalloc(sizeof(*streams));

	if (!streams)
		return NULL;
	streams->streams = hashmap__new(hash_stream, equal_streams, NULL);
	streams->throttles = intlist__new(NULL);
	if (IS_ERR(streams->streams) || !streams->throttles) {
		fn_streams__delete(streams);
		return NULL;
	}
	return streams;
}

void fn_streams__delete(struct fn_streams *streams)
{
	struct hashmap_entry *entry;
	size_t bucket;

	if (!streams)
		return;
	if (!IS_ERR_OR_NULL(streams->streams)) {
		hashmap__for_each_entry(streams->streams, entry, bucket)
			free(entry->pvalue);
	}
	hashmap__free(streams->streams);
	intlist__delete(streams->throttles);
	free(streams);
}

/* A new stream has not seen a sample. */
static struct fn_stream *new_stream(struct fn_streams *streams, struct fn_evsel *owner, u64 id,
				    u64 thread)
{
	const unsigned int nr = max(owner->nr_members, 1U);
	const unsigned int nr_counts = owner->windows ? owner->windows->nr_events : 0;
	struct fn_stream *stream = zalloc(sizeof(*stream) + nr * sizeof(struct fn_member) +
					  2 * nr_counts * sizeof(double));

	if (!stream)
		return NULL;
	stream->members = (struct fn_member *)(stream + 1);
	stream->counts = (double *)(stream->members + nr);
	stream->nr_counts = nr_counts;
	stream->sums = stream->counts + nr_counts;
	for (unsigned int i = 0; i < owner->nr_members; i++)
		stream->members[i].slot = owner->members[i]->slot;
	stream->id = id;
	stream->thread = thread;
	stream->owner = owner;
	if (hashmap__add(streams->streams, stream, stream)) {
		free(stream);
		return NULL;
	}
	return stream;
}

static struct fn_stream *findnew_stream(struct fn_streams *streams, struct fn_evsel *owner, u64 id,
					u64 thread)
{
	struct fn_stream key = { .id = id, .thread = thread, .owner = owner }, *stream;

	return hashmap__find(streams->streams, &key, &stream) ? stream :
	       new_stream(streams, owner, id, thread);
}

/* Returns the id of the sampler, though another member may sample; 0 if it has no value. */
static u64 find_sampler_id(struct evlist *evlist, const struct fn_sample *sample)
{
	const struct perf_event_attr *attr = &sample->evsel->core.attr;
	const struct fn_evsel *sampler = sample->own->sampler;
	struct sample_read_value *v = sample->sample->read.group.values;

	if (!(attr->read_format & PERF_FORMAT_GROUP) ||
	    (sampler == sample->own &&
	     attr->sample_type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return sample->sample->id;
	sample_read_group__for_each(v, sample->sample->read.group.nr, attr->read_format) {
		if (evlist__id2evsel_strict(evlist, v->id) == sampler->evsel)
			return v->id;
	}
	return 0;
}

/* Returns a member, NULL if the id is of no event of the group, or an error. */
static struct fn_member *find_member(struct fn_stream *stream, struct evlist *evlist, u64 id)
{
	struct evsel *evsel = evlist__id2evsel_strict(evlist, id);
	const struct fn_evsel *own = evsel ? evsel->priv : NULL;
	struct fn_member *member;

	if (!evsel)
		return NULL;
	if (evsel->core.leader != stream->owner->evsel->core.leader ||
	    (own && own->sampler && own->sampler != stream->owner))
		return ERR_PTR(-EINVAL);
	if (!own || !own->sampler)
		return NULL;
	member = &stream->members[own->member];
	if (member->id != id)
		member->counted = 0;
	member->id = id;
	return member;
}

/* Adds what each member has counted since the last sample. */
static int read_values(struct fn_stream *stream, struct evlist *evlist,
		       const struct fn_sample *sample)
{
	const u64 read_format = sample->evsel->core.attr.read_format;
	const bool is_group = read_format & PERF_FORMAT_GROUP;
	struct sample_read *read = &sample->sample->read;
	struct sample_read_value *v = is_group ? read->group.values : &read->one;
	const u64 nr = is_group ? read->group.nr : 1;
	const struct fn_member *end = stream->members + stream->owner->nr_members;
	struct fn_member *member = stream->members;
	const u64 before = member->counted;

	sample_read_group__for_each(v, nr, read_format) {
		/* Most samples have all events, in their order. */
		if (member == end || !v->id || member->id != v->id) {
			struct fn_member *found = find_member(stream, evlist, v->id);

			if (!found)
				continue;
			if (IS_ERR(found))
				return PTR_ERR(found);
			member = found;
		}
		/* What was counted outside of the spans of time is not to be sampled. */
		if (sample->is_outside)
			member->before += v->value - member->counted;
		stream->counts[member->slot] += (s64)(v->value - member->counted);
		member->counted = v->value;
		member++;
	}
	stream->length += (s64)(stream->members->counted - before);
	return stream->members->id == stream->id ? 0 : -EINVAL;
}

/* What was counted up to now is not to be sampled. */
static void forget_counted(struct fn_stream *stream)
{
	for (unsigned int i = 0; i < stream->owner->nr_members; i++)
		stream->members[i].before = stream->members[i].counted;
}

/*
 * The last record of throttling of an id: when, in which thread (0: not an inherited event), and
 * whether it begins. The kernel's thread numbers are below 2^22.
 */
static void *throttle_of(u64 now, u32 tid, bool begins)
{
	return (void *)(unsigned long)(now << 24 | (tid & 0x7fffff) << 1 | begins);
}

/*
 * Returns true if an event of a group was throttled since the last sample, or still is, while the
 * leader is not: a leader that stands still has no samples. If the event has counted since then,
 * the record of the end was lost.
 */
static noinline bool is_throttled(const struct fn_streams *streams, const struct fn_stream *stream)
{
	bool found = false;

	for (unsigned int i = 0; i < stream->owner->nr_members; i++) {
		const struct fn_member *member = &stream->members[i];
		struct int_node *node = intlist__find(streams->throttles, member->id);
		const unsigned long throttle = node ? (unsigned long)node->priv : 0;

		if (node && throttle >> 24 >= stream->seen)
			found = true;
		else if (i && throttle & 1 && stream->counts[member->slot])
			node->priv = (void *)(throttle & ~1UL);
		else if (i && throttle & 1)
			found = true;
	}
	return found;
}

/*
 * The values of a thread only grow. If one does not, time has gone back: the interval then ends
 * with a later sample.
 */
static bool has_grown(struct fn_stream *stream)
{
	bool grows = stream->length > 0;

	for (unsigned int i = 0; i < stream->nr_counts; i++)
		grows &= stream->counts[i] >= 0;
	if (stream->length < 0)
		stream->burst = NULL;
	return grows;
}

static int read_counts(struct fn_stream *stream, struct evlist *evlist, struct fn_sample *sample)
{
	const struct fn_member *own = &stream->members[sample->own->member];
	const u64 period = sample->sample->period;
	const bool is_first = !own->counted;
	int err = read_values(stream, evlist, sample);

	if (err)
		return err;
	/*
	 * The recording of a process that runs may be one of several files. A group tells all that
	 * was counted, and one event does not.
	 */
	if (!(sample->evsel->core.attr.read_format & PERF_FORMAT_GROUP) ||
	    (is_first && own->counted / 2 > period && own->counted - period > MOST_BEFORE_SAMPLE))
		forget_counted(stream);
	if (sample->own != stream->owner && stream->owner->alternates)
		stream->is_interrupted = true;
	else
		sample->ends_interval = has_grown(stream);
	return 0;
}

/*
 * Adds the times in which an event was to count in a stream, and has counted, to those of all. A
 * task has an event for each CPU, and all of them are enabled wherever it runs.
 */
static int add_times(struct fn_streams *streams, struct fn_stream *stream, u64 task, u64 enabled,
		     u64 running, double times[2])
{
	struct fn_stream *all = task ? findnew_stream(streams, stream->owner, 0, task) : stream;

	if (!all)
		return -ENOMEM;
	times[0] += max(enabled, all->times[0]) - all->times[0];
	times[1] += max(running, stream->times[1]) - stream->times[1];
	all->times[0] = max(enabled, all->times[0]);
	stream->times[1] = max(running, stream->times[1]);
	if (task)	/* to be forgotten with the others */
		all->seen = streams->now + 1;
	return 0;
}

int fn_streams__read(struct fn_streams *streams, struct evlist *evlist, struct fn_sample *sample)
{
	struct fn_evsel *sampler = sample->own->sampler, *owner = sampler ?: sample->own;
	const struct perf_event_attr *attr = &sample->evsel->core.attr;
	const struct sample_read *read = &sample->sample->read;
	struct fn_stream *stream;
	struct fn_member *own;
	double outside[2] = {};
	int err = 0;

	stream = findnew_stream(streams, owner,
				sampler ? find_sampler_id(evlist, sample) : sample->sample->id,
				owner->evsel->core.attr.inherit ? sample->place.thread : 0);
	if (!stream)
		return -ENOMEM;
	sample->stream = stream;
	own = &stream->members[sample->own->member];
	sample->order = own->nr_samples;
	own->nr_samples += own->nr_samples < 2;
	if (!sampler)
		return 0;
	if ((attr->read_format & TIMES) == TIMES)
		err = add_times(streams, stream, sample->is_of_task ? sample->place.thread : 0,
				read->time_enabled, read->time_running,
				sample->is_outside ? outside : sampler->times);
	if (err)
		return err;
	err = read_counts(stream, evlist, sample);
	/* Members may have counted while the leader was throttled. */
	sample->is_broken = stream->seen <= streams->lost ||
			    (!intlist__empty(streams->throttles) && is_throttled(streams, stream));
	return err;
}

void fn_streams__see(struct fn_streams *streams, struct fn_stream *stream)
{
	stream->seen = ++streams->now;
	stream->is_interrupted = false;
	stream->length = 0;
	for (unsigned int i = 0; i < stream->nr_counts; i++)
		stream->counts[i] = 0;
}

/* This affects all threads of the group, because the record may name another thread. */
int fn_streams__throttle(struct fn_streams *streams, u64 id, u32 tid, bool begins)
{
	struct int_node *node = intlist__findnew(streams->throttles, id);

	if (!node)
		return -ENOMEM;
	node->priv = throttle_of(streams->now, tid, begins);
	return 0;
}

/* No record says that an inherited event ends with its thread while it stands still. */
void fn_streams__end_thread(struct fn_streams *streams, u32 tid)
{
	struct int_node *node;

	intlist__for_each_entry(node, streams->throttles) {
		const unsigned long throttle = (unsigned long)node->priv;

		if ((throttle >> 1 & 0x7fffff) == tid)
			node->priv = (void *)(throttle & ~1UL);
	}
}

void fn_streams__lose(struct fn_streams *streams)
{
	streams->lost = streams->now;
}

int fn_streams__for_each(struct fn_streams *streams,
			 int (*call)(void *data, struct fn_stream *stream), void *data)
{
	struct hashmap_entry *entry;
	size_t bucket;
	int err = 0;

	hashmap__for_each_entry(streams->streams, entry, bucket)
		err = err ?: call(data, entry->pvalue);
	return err;
}

/*
 * Forgets the streams that had no sample since the call before, so that threads that have ended
 * take no memory. If a thread goes on, its next interval is unknown, like its first one.
 */
void fn_streams__forget_idle(struct fn_streams *streams)
{
	struct hashmap_entry *entry, *next;
	size_t bucket;

	hashmap__for_each_entry_safe(streams->streams, entry, next, bucket) {
		struct fn_stream *stream = entry->pvalue;

		if (stream->seen > streams->looked)
			continue;
		hashmap__delete(streams->streams, stream, NULL, NULL);
		free(stream);
	}
	streams->looked = streams->now;
}

void fn_streams__restart(struct fn_streams *streams)
{
	struct hashmap_entry *entry;
	size_t bucket;

	hashmap__for_each_entry(streams->streams, entry, bucket)
		forget_counted(entry->pvalue);
}

void fn_streams__count(struct fn_streams *streams)
{
	struct hashmap_entry *entry;
	size_t bucket;

	hashmap__for_each_entry(streams->streams, entry, bucket) {
		const struct fn_stream *stream = entry->pvalue;
		const struct fn_member *member = stream->members;

		for (unsigned int i = 0; i < stream->owner->nr_members; i++, member++)
			stream->owner->members[i]->counted += member->counted - member->before;
	}
}

int fn_streams__read_times(struct fn_streams *streams, struct fn_evsel *own, u64 id, u64 thread,
			   u64 enabled, u64 running)
{
	struct fn_stream *stream = findnew_stream(streams, own, id, thread);

	if (!stream)
		return -ENOMEM;
	return add_times(streams, stream, thread, enabled, running, own->times);
}
