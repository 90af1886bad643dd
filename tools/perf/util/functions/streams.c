// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the counts of groups. A stream is one group in one thread, or on one CPU where counts are
 * not inherited. Each sample of its sampler ends an interval, of which the first is not known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>

#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../hashmap.h"
#include "../sample.h"
#include "functions.h"

#define RECENT_BITS	6

/* A stream that begins with the recording has counted less than this before its first sample. */
#define MOST_BEFORE_SAMPLE	1000000

/* An event on a CPU, or in a thread. */
struct fn_counter {
	u64 id;
	struct fn_counter *leader;	/* of its group, maybe itself; NULL: not known */
	u64 throttled;			/* the last record of it, or in a leader's group */
	bool is_still;			/* it is throttled, while its leader samples */
	u32 thread;			/* with which it ends, if that was throttled; else 0 */
	unsigned int nr_still;		/* number of members that are */
};

/* The times of an event in a thread so far. */
struct times {
	const void *owner;
	u64 id, thread;
	u64 values[2];
};

struct fn_streams {
	struct hashmap *counters, *streams, *times;
	struct hashmap *ends;		/* when each thread has ended, once an event is throttled */
	struct fn_stream *recent[1 << RECENT_BITS];
	u64 now;			/* counts samples and ends of threads: their order */
	u64 lost;
	u64 looked;			/* when idle streams were last searched */
	bool has_throttled;
};

static size_t hash_counter(long key, void *ctx __maybe_unused)
{
	return ((const struct fn_counter *)key)->id;
}

static bool equal_counters(long key1, long key2, void *ctx __maybe_unused)
{
	return ((const struct fn_counter *)key1)->id == ((const struct fn_counter *)key2)->id;
}

static size_t hash_stream(long key, void *ctx __maybe_unused)
{
	const struct fn_stream *stream = (const struct fn_stream *)key;

	return stream->id * 31 + stream->thread;
}

static bool is_stream(const struct fn_stream *stream, const void *owner, u64 id, u64 thread)
{
	return stream->id == id && stream->thread == thread && stream->owner == owner;
}

static bool equal_streams(long key1, long key2, void *ctx __maybe_unused)
{
	const struct fn_stream *b = (const struct fn_stream *)key2;

	return is_stream((const struct fn_stream *)key1, b->owner, b->id, b->thread);
}

static size_t hash_times(long key, void *ctx __maybe_unused)
{
	const struct times *times = (const struct times *)key;

	return times->id * 31 + times->thread;
}

static bool equal_times(long key1, long key2, void *ctx __maybe_unused)
{
	const struct times *a = (const struct times *)key1, *b = (const struct times *)key2;

	return a->id == b->id && a->thread == b->thread && a->owner == b->owner;
}

static size_t hash_thread(long key, void *ctx __maybe_unused)
{
	return key;
}

static bool equal_threads(long key1, long key2, void *ctx __maybe_unused)
{
	return key1 == key2;
}

struct fn_streams *fn_streams__new(void)
{
	struct fn_streams *streams = zalloc(sizeof(*streams));

	if (!streams)
		return NULL;
	streams->counters = hashmap__new(hash_counter, equal_counters, NULL);
	streams->streams = hashmap__new(hash_stream, equal_streams, NULL);
	streams->times = hashmap__new(hash_times, equal_times, NULL);
	streams->ends = hashmap__new(hash_thread, equal_threads, NULL);
	if (IS_ERR(streams->counters) || IS_ERR(streams->streams) || IS_ERR(streams->times) ||
	    IS_ERR(streams->ends)) {
		fn_streams__delete(streams);
		return NULL;
	}
	return streams;
}

static void delete_stream(struct fn_stream *stream)
{
	free(stream->last_chain.frames);
	free(stream->burst);
	free(stream);
}

static void delete_values(struct hashmap *map, void (*delete)(void *value))
{
	struct hashmap_entry *entry;
	size_t bucket;

	if (IS_ERR_OR_NULL(map))
		return;
	hashmap__for_each_entry(map, entry, bucket)
		delete(entry->pvalue);
	hashmap__free(map);
}

static void delete_stream_value(void *value)
{
	delete_stream(value);
}

void fn_streams__delete(struct fn_streams *streams)
{
	if (!streams)
		return;
	delete_values(streams->streams, delete_stream_value);
	delete_values(streams->counters, free);
	delete_values(streams->times, free);
	hashmap__free(streams->ends);
	free(streams);
}

static struct fn_counter *find_counter(const struct fn_streams *streams, u64 id)
{
	struct fn_counter key = { .id = id }, *counter;

	return hashmap__find(streams->counters, &key, &counter) ? counter : NULL;
}

static struct fn_counter *findnew_counter(struct fn_streams *streams, u64 id)
{
	struct fn_counter *counter = find_counter(streams, id);

	if (counter)
		return counter;
	counter = zalloc(sizeof(*counter));
	if (!counter)
		return NULL;
	counter->id = id;
	if (hashmap__add(streams->counters, counter, counter)) {
		free(counter);
		return NULL;
	}
	return counter;
}

static void set_still(struct fn_counter *counter, bool is_still)
{
	if (counter->leader) {
		/* A leader that stands still has no samples. */
		is_still &= counter->leader != counter;
		counter->leader->nr_still += is_still - counter->is_still;
	}
	counter->is_still = is_still;
}

static void join_group(struct fn_counter *counter, struct fn_counter *leader)
{
	bool is_still = counter->is_still;

	if (counter->leader == leader)
		return;
	set_still(counter, false);
	counter->leader = leader;
	set_still(counter, is_still);
}

/* A new stream has not seen a sample. */
static struct fn_stream *new_stream(struct fn_streams *streams, struct fn_sampler *sampler,
				    const void *owner, u64 id, u64 thread)
{
	const unsigned int nr = sampler ? sampler->nr : 1;
	const unsigned int nr_events = sampler && sampler->set ? sampler->set->nr_events : 0;
	struct fn_stream *stream = zalloc(sizeof(*stream) + nr +
					  (5 * nr + nr_events) * sizeof(u64));

	if (!stream)
		return NULL;
	stream->ids = (u64 *)(stream + 1);
	stream->last = stream->ids + nr;
	stream->counted = stream->last + nr;
	stream->before = stream->counted + nr;
	stream->counts = (double *)(stream->before + nr);
	stream->sums = stream->counts + nr;
	stream->places = (u8 *)(stream->sums + nr_events);
	stream->id = id;
	stream->thread = thread;
	stream->owner = owner;
	stream->sampler = sampler;
	stream->leader = findnew_counter(streams, id);
	if (!stream->leader || hashmap__add(streams->streams, stream, stream)) {
		free(stream);
		return NULL;
	}
	join_group(stream->leader, stream->leader);
	return stream;
}

static struct fn_stream *findnew_stream(struct fn_streams *streams, struct fn_sampler *sampler,
					const void *owner, u64 id, u64 thread)
{
	struct fn_stream **recent = &streams->recent[hash_64(id ^ thread, RECENT_BITS)];
	struct fn_stream key = { .id = id, .thread = thread, .owner = owner };

	if ((!*recent || !is_stream(*recent, owner, id, thread)) &&
	    !hashmap__find(streams->streams, &key, recent))
		*recent = new_stream(streams, sampler, owner, id, thread);
	return *recent;
}

bool fn_sample__has_values(const union perf_event *event, const struct perf_sample *sample,
			   u64 read_format)
{
	const size_t begin = (size_t)sample->read.group.values - (size_t)event;
	const u64 nr = sample->read.group.nr;

	return begin <= event->header.size && nr <= event->header.size &&
	       begin + nr * sample_read_value_size(read_format) <= event->header.size;
}

/* Returns the id of the sampler, though another member may sample; 0 if it has no value. */
static u64 find_sampler_id(struct evlist *evlist, const union perf_event *event,
			   const struct fn_sample *sample)
{
	const struct perf_event_attr *attr = &sample->evsel->core.attr;
	const struct fn_sampler *sampler = sample->own->sampler;
	struct sample_read_value *v = sample->sample->read.group.values;

	if (!(attr->read_format & PERF_FORMAT_GROUP) ||
	    (sampler->evsel == sample->evsel &&
	     attr->sample_type & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID)))
		return sample->sample->id;
	if (!fn_sample__has_values(event, sample->sample, attr->read_format))
		return 0;
	sample_read_group__for_each(v, sample->sample->read.group.nr, attr->read_format) {
		if (evlist__id2evsel_strict(evlist, v->id) == sampler->evsel)
			return v->id;
	}
	return 0;
}

/* Returns the number of a member, -ENOENT if the id is of no event of the group, or -ESRCH. */
static int find_member(struct fn_streams *streams, struct fn_stream *stream, struct evlist *evlist,
		       u64 id)
{
	struct evsel *evsel = evlist__id2evsel_strict(evlist, id);
	const struct fn_evsel *own = evsel ? evsel->priv : NULL;
	struct fn_counter *counter;

	if (!evsel)
		return -ENOENT;
	if (evsel->core.leader != stream->sampler->evsel->core.leader)
		return -ESRCH;
	if (!own || !own->sampler)
		return -ENOENT;
	if (own->sampler != stream->sampler)
		return -ESRCH;
	if (stream->ids[own->member] == id)
		return own->member;
	stream->ids[own->member] = id;
	stream->last[own->member] = 0;
	counter = findnew_counter(streams, id);
	if (!counter)
		return -ENOMEM;
	/* In a damaged file, it may lead another group. */
	if (counter->leader != counter)
		join_group(counter, stream->leader);
	return own->member;
}

/* Sets what each member has counted; others stay as after the last sample. */
static int read_values(struct fn_streams *streams, struct fn_stream *stream, struct evlist *evlist,
		       u64 read_format, struct perf_sample *sample)
{
	struct sample_read_value *v = sample->read.group.values;
	const unsigned int nr = stream->sampler->nr;
	unsigned int member = 0;

	sample_read_group__for_each(v, sample->read.group.nr, read_format) {
		/* Most samples have all events, in their order. */
		if (member >= nr || !v->id || stream->ids[member] != v->id) {
			int found = find_member(streams, stream, evlist, v->id);

			if (found == -ENOENT)
				continue;
			/* The sampler's own value is the first one. */
			if (found < 0)
				return stream->ids[0] == stream->id ? found : -EINVAL;
			member = found;
		}
		stream->counted[member++] = v->value;
	}
	return 0;
}

/* The recording of a process that runs may be one of several files. */
static void note_first(struct fn_stream *stream, const struct fn_sample *sample)
{
	const u64 counted = stream->counted[sample->own->member], period = sample->sample->period;

	if (counted / 2 > period && counted - period > MOST_BEFORE_SAMPLE)
		memcpy(stream->before, stream->counted, stream->sampler->nr * sizeof(u64));
}

/*
 * Returns true if a member is throttled and the leader is not. If a member has counted since then,
 * the record of the end was lost. If its thread has ended, no record says so.
 */
static noinline bool has_still_member(const struct fn_streams *streams,
				      const struct fn_stream *stream)
{
	for (unsigned int i = 0; i < stream->sampler->nr; i++) {
		struct fn_counter *counter = find_counter(streams, stream->ids[i]);
		unsigned long end;

		if (counter &&
		    ((stream->counts[i] && counter->throttled < stream->seen) ||
		     (counter->thread && hashmap__find(streams->ends, counter->thread, &end) &&
		      end > counter->throttled)))
			set_still(counter, false);
	}
	return stream->leader->nr_still;
}

/*
 * Sets the counts since the last sample. Returns false if the sampler has counted nothing, or if
 * time has gone back: the values of a thread only grow, so the last interval has others in it.
 */
static bool count_interval(struct fn_stream *stream)
{
	const unsigned int nr = stream->sampler->nr;
	const u64 *values = stream->counted;
	bool grows = values[0] > stream->last[0];

	for (unsigned int i = 0; i < nr; i++) {
		grows &= values[i] >= stream->last[i];
		stream->counts[i] = values[i] - stream->last[i];
	}
	for (unsigned int i = 0; grows && i < nr; i++)
		stream->last[i] = values[i];
	if (values[0] < stream->last[0])
		stream->nr_burst = 0;
	return grows;
}

static int read_one(struct fn_stream *stream, struct fn_sample *sample)
{
	const struct sample_read_value *v = &sample->sample->read.one;
	const unsigned int member = sample->own->member;

	if (sample->evsel->core.attr.read_format & PERF_FORMAT_ID && v->id != stream->id)
		return -EINVAL;
	memset(stream->counts, 0, stream->sampler->nr * sizeof(*stream->counts));
	sample->ends_interval = v->value > stream->last[member];
	stream->counts[member] = v->value - stream->last[member];
	stream->last[member] = v->value;
	return 0;
}

static int read_group(struct fn_streams *streams, struct fn_stream *stream, struct evlist *evlist,
		      const union perf_event *event, struct fn_sample *sample)
{
	const u64 read_format = sample->evsel->core.attr.read_format;
	const bool is_first = !stream->counted[sample->own->member];
	const size_t size = stream->sampler->nr * sizeof(u64);
	u64 counted[FN_MOST_EVENTS];
	int err;

	if (!fn_sample__has_values(event, sample->sample, read_format))
		return -EINVAL;
	if (sample->is_outside)
		memcpy(counted, stream->counted, size);
	err = read_values(streams, stream, evlist, read_format, sample->sample);
	if (err)
		return err;
	/* What was counted outside of the spans of time is not to be sampled. */
	for (unsigned int i = 0; sample->is_outside && i < stream->sampler->nr; i++)
		stream->before[i] += stream->counted[i] - counted[i];
	if (stream->ids[0] != stream->id)
		return -EINVAL;
	if (is_first)
		note_first(stream, sample);
	if (sample->evsel != stream->sampler->evsel && stream->sampler->alternates) {
		stream->is_interrupted = true;
		return 0;
	}
	sample->ends_interval = count_interval(stream);
	return 0;
}

int fn_streams__read(struct fn_streams *streams, struct evlist *evlist,
		     const union perf_event *event, struct fn_sample *sample)
{
	struct fn_sampler *sampler = sample->own->sampler;
	const struct perf_event_attr *attr = &sample->evsel->core.attr;
	const bool inherits = sampler ? sampler->inherits : attr->inherit;
	struct fn_stream *stream;
	u8 *place;
	int err;

	stream = findnew_stream(streams, sampler, sampler ?: (const void *)sample->evsel,
				sampler ? find_sampler_id(evlist, event, sample) :
					  sample->sample->id,
				inherits ? sample->thread : 0);
	if (!stream)
		return -ENOMEM;
	sample->stream = stream;
	place = &stream->places[sampler ? sample->own->member : 0];
	sample->place = *place;
	*place += *place < 2;
	if (!sampler)
		return 0;
	err = attr->read_format & PERF_FORMAT_GROUP ?
	      read_group(streams, stream, evlist, event, sample) : read_one(stream, sample);
	/* Members may have counted while the leader was throttled. */
	sample->is_broken = stream->seen <= streams->lost ||
			    stream->seen <= stream->leader->throttled ||
			    (stream->leader->nr_still && has_still_member(streams, stream));
	return err;
}

void fn_streams__see(struct fn_streams *streams, struct fn_stream *stream)
{
	stream->seen = ++streams->now;
	stream->is_interrupted = false;
}

/* This affects all threads of the group, because the record may name another thread. */
int fn_streams__throttle(struct fn_streams *streams, u64 id, u32 thread, bool begins)
{
	struct fn_counter *counter = findnew_counter(streams, id);

	if (!counter)
		return -ENOMEM;
	streams->has_throttled = true;
	counter->throttled = streams->now;
	counter->thread = thread;
	if (counter->leader)
		counter->leader->throttled = streams->now;
	set_still(counter, begins);
	return 0;
}

int fn_streams__end_thread(struct fn_streams *streams, u32 thread)
{
	if (!streams->has_throttled)
		return 0;
	streams->now++;
	return hashmap__set(streams->ends, thread, (unsigned long)streams->now, NULL, NULL);
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
		delete_stream(stream);
	}
	memset(streams->recent, 0, sizeof(streams->recent));
	streams->looked = streams->now;
}

static int restart_count(void *data __maybe_unused, struct fn_stream *stream)
{
	if (stream->sampler)
		memcpy(stream->before, stream->counted, stream->sampler->nr * sizeof(u64));
	return 0;
}

void fn_streams__restart(struct fn_streams *streams)
{
	fn_streams__for_each(streams, restart_count, NULL);
}

static int begin_count(void *data __maybe_unused, struct fn_stream *stream)
{
	struct fn_sampler *sampler = stream->sampler;

	if (!sampler)
		return 0;
	free(sampler->counted);
	sampler->counted = calloc(sampler->nr, sizeof(*sampler->counted));
	return sampler->counted ? 0 : -ENOMEM;
}

static int count_stream(void *data __maybe_unused, struct fn_stream *stream)
{
	struct fn_sampler *sampler = stream->sampler;

	for (unsigned int i = 0; sampler && i < sampler->nr; i++)
		sampler->counted[i] += stream->counted[i] - stream->before[i];
	return 0;
}

int fn_streams__count(struct fn_streams *streams)
{
	return fn_streams__for_each(streams, begin_count, NULL) ?:
	       fn_streams__for_each(streams, count_stream, NULL);
}

int fn_streams__add_times(struct fn_streams *streams, const void *owner, u64 id, u64 thread,
			  u64 enabled, u64 running, double times[2])
{
	const struct times key = { .owner = owner, .id = id, .thread = thread };
	const u64 values[] = { enabled, running };
	struct times *last;

	if (!hashmap__find(streams->times, &key, &last)) {
		last = malloc(sizeof(*last));
		if (!last)
			return -ENOMEM;
		*last = key;
		if (hashmap__add(streams->times, last, last)) {
			free(last);
			return -ENOMEM;
		}
	}
	/* A time below the one before belongs to a new thread. */
	if (enabled < last->values[0] || running < last->values[1])
		*last = key;
	for (int i = 0; i < 2; i++) {
		times[i] += values[i] - last->values[i];
		last->values[i] = values[i];
	}
	return 0;
}
