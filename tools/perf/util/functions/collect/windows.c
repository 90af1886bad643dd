// SPDX-License-Identifier: GPL-2.0
/*
 * Collects samples of groups and makes sums of functions.
 *
 * - A stream is one leader on one thread, or on one CPU where the counts are not
 *   inherited. Its samples end its intervals, of which the first is not known.
 * - With alternate periods an interval is a window if it is nearer to the longest
 *   window than to the shortest long interval. Without, each one is a window.
 * - A window is matched if the sample before it in its stream was in the same
 *   function and thread, and nothing was throttled or lost since then. That sample
 *   ended a long interval, or was the first one, or ended another window of the
 *   burst. A sample at address 0 is in no known function and so matches no other.
 * - Windows of a burst that count for one function count as one in the products,
 *   because they are adjacent and so not independent.
 * - In share mode auto a window counts a second time, apart from the matched ones: for
 *   the function in which it begins, wherever it ends.
 * - With alternate periods a sample that ends no window ends a long interval, and so
 *   does the first one of a stream. Such samples are a plain profile, whatever happens
 *   to the windows after them: in share mode auto shares come from their number.
 * - In share mode auto, the totals of all windows of a group and of all other intervals
 *   show how many events the interrupt before each adds.
 * - With call chains, a window counts for all functions that were on the stack from
 *   its start to its end: those of the frames that the chains at its ends have in
 *   common, from the root on. It is a sample of each function of the chain at its end.
 * - An event that samples itself needs no window: each sample adds its period to the
 *   function, or to all functions of its chain. A window in which such an event
 *   interrupted is none.
 * - The branch records of a sample are one window for each function of their path.
 * - A sample stands for its period. So a sample that ends a long interval, and the path of
 *   a sample, have this period as weight.
 * - Events that did not count all the time are scaled, where all that they counted is known.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../../hashmap.h"
#include "../events.h"
#include "u192.h"
#include "windows.h"

#define RECENT_BITS	6

/* The largest weight of a path: counts times weight have to fit into 64 bits. */
#define MOST_WEIGHT	BIT_ULL(38)

/* Sums of more than a million functions, each with five events; a crafted recording has more. */
#define MOST_MEMORY	(4ULL << 30)

/* The first event of its name in the recording. */
struct metrics_event {
	struct metrics_event *next;
	struct perf_event_attr attr;
	char name[];
};

/* How long an event was to count, and has counted: in all, or in a thread so far. */
struct collect_time {
	u64 id;
	u64 thread;
	const struct collect_group *group;
	u64 enabled;
	u64 running;
};

struct collect_group {
	struct collect_group *next;
	struct window_collector *metrics;
	unsigned int index;
	struct function_group_desc desc;
	bool alternates;
	bool is_hidden;		/* it is not in the table */
	/* Shorter intervals are windows. */
	u64 limit;
	/* Names of the events. The index of an event is the slot of its counts. */
	char **names;
	unsigned int nr_slots;
	u64 precise;		/* by slot, a bit: its samples are not late */
	/* By slot, or of the first one for the whole group. */
	struct collect_time *times;
	/*
	 * All windows and all other intervals. The values of a window that counts for the function
	 * at its end are in the sums of the function instead, so that they are added once.
	 */
	struct function_intervals windows;
	struct function_intervals longs;
	/* By how many events windows have ended late, see note_skid(). */
	u64 *skids;
	unsigned int nr_skids;
	/* By slot: what all streams have counted, see window_collector__count(). */
	double *counted;
	/* By slot: the factor of all values, NULL: 1. */
	double *scales;
};

/* Classes of a function's windows. Most matched windows also begin in it. */
enum window_class {
	WINDOWS_BOTH,
	WINDOWS_MATCHED,	/* they begin at a sample that the user does not want to see */
	/*
	 * They begin in the function and end elsewhere. With branch records: all, with weights.
	 * Without alternate periods: the first periods, which are no windows.
	 */
	WINDOWS_BEGUN,
	NR_CLASSES,
};

/*
 * Sums of a function in a group: by class of windows, totals by slot and products of slots
 * a <= b. Then the same without totals: by how much the products of bursts are larger than those
 * of their windows.
 */
struct collect_sums {
	u64 opened;
	struct u192 weight, squares;
	u64 samples;
	u64 matched;
	u64 bursts;
	u64 begun;
	u64 begun_bursts;
	struct u192 values[];
};

struct collect_function {
	struct collect_function *next;
	char *symbol;
	char *dso;
	u64 address;
	/* By index of the group. */
	struct collect_sums **sums;
	unsigned int nr_sums;
	/* With chains: the time of the last added window, so that a recursion counts once. */
	u64 added;
};

/* An event on a CPU, or in a thread. */
struct metrics_counter {
	u64 id;
	struct metrics_counter *leader;	/* of its group, maybe itself; NULL: not known */
	/* The last place of a throttle record: of this event, or if it leads, of the group. */
	u64 throttled;
	bool is_still;			/* it is throttled, while its leader samples */
	u32 thread;			/* with which it ends, if that was throttled; else 0 */
	unsigned int nr_still;		/* number of members that are */
};

struct collect_stream {
	u64 id;
	u64 thread;		/* 0 for the stream of a CPU */
	struct metrics_counter *leader;
	struct collect_group *group;
	struct collect_value *values;	/* by slot */
	/*
	 * By slot: what was counted up to the last sample of any event of the group, and before
	 * the recording.
	 */
	u64 *counted;
	u64 *before;
	/* Bits by slot: events that have sampled once, and again. */
	u64 sampled;
	u64 resampled;
	/* Events of the leader since its last overflow, if known. */
	s64 skid;
	bool has_no_skid;
	/* The last sample: its position in the order of records, and its function. */
	u64 seen;
	u64 last_thread;
	struct collect_function *last_function;	/* NULL if unknown */
	struct function_chain last_chain;
	/* By frame and slot, the counts of the burst so far. */
	u64 *bursts;
	unsigned int nr_bursts;
	unsigned int nr_allocated;
	bool last_filtered;
	bool is_interrupted;	/* another event has sampled since the last sample */
	bool in_burst;		/* the last sample ended a window that counts */
	struct collect_function *run;	/* where a window that has begun counts */
	/* By slot, the counts of the burst so far: matched windows, then begun ones. */
	bool one_burst;		/* the first counts serve both classes */
	u64 burst[];
};

struct window_collector {
	enum function_share share;
	struct collect_group *groups, **last_group;
	unsigned int nr_groups;
	struct metrics_event *events;
	struct collect_function *functions;
	struct hashmap *counters;
	struct hashmap *streams;
	struct hashmap *times;
	struct hashmap *exits;	/* when each thread has ended, once an event is throttled */
	/* Successive samples often come from the same stream. */
	struct collect_stream *last_stream;
	/* By hash, because others come in turn, such as one for each CPU. */
	struct collect_stream *recent[1 << RECENT_BITS];
	/* Counts samples and interruptions, so that it gives their order. */
	u64 now;
	u64 lost;
	u64 looked;	/* when idle streams were last searched */
	u64 allocated;	/* bytes of all sums, here and in a table */
	bool has_throttled;	/* an event was throttled at some time */
};

static size_t hash_counter(long key, void *ctx __maybe_unused)
{
	const struct metrics_counter *counter = (const struct metrics_counter *)key;

	return counter->id;
}

static bool equal_counter(long key1, long key2, void *ctx __maybe_unused)
{
	const struct metrics_counter *a = (const struct metrics_counter *)key1;
	const struct metrics_counter *b = (const struct metrics_counter *)key2;

	return a->id == b->id;
}

static size_t hash_stream(long key, void *ctx __maybe_unused)
{
	const struct collect_stream *stream = (const struct collect_stream *)key;

	return stream->id * 31 + stream->thread;
}

static bool equal_stream(long key1, long key2, void *ctx __maybe_unused)
{
	const struct collect_stream *a = (const struct collect_stream *)key1;
	const struct collect_stream *b = (const struct collect_stream *)key2;

	return a->id == b->id && a->thread == b->thread && a->group == b->group;
}

static size_t hash_time(long key, void *ctx __maybe_unused)
{
	const struct collect_time *time = (const struct collect_time *)key;

	return time->id * 31 + time->thread;
}

static bool equal_time(long key1, long key2, void *ctx __maybe_unused)
{
	const struct collect_time *a = (const struct collect_time *)key1;
	const struct collect_time *b = (const struct collect_time *)key2;

	return a->id == b->id && a->thread == b->thread && a->group == b->group;
}

static size_t hash_thread(long key, void *ctx __maybe_unused)
{
	return key;
}

static bool equal_thread(long key1, long key2, void *ctx __maybe_unused)
{
	return key1 == key2;
}

/**
 * window_collector__new - begin to collect
 * @share: which windows count
 *
 * Return: the collector, NULL without memory.
 */
struct window_collector *window_collector__new(enum function_share share)
{
	struct window_collector *metrics = zalloc(sizeof(*metrics));

	if (!metrics)
		return NULL;

	metrics->share = share;
	metrics->last_group = &metrics->groups;
	metrics->counters = hashmap__new(hash_counter, equal_counter, NULL);
	metrics->streams = hashmap__new(hash_stream, equal_stream, NULL);
	metrics->times = hashmap__new(hash_time, equal_time, NULL);
	metrics->exits = hashmap__new(hash_thread, equal_thread, NULL);
	if (IS_ERR(metrics->counters) || IS_ERR(metrics->streams) || IS_ERR(metrics->times) ||
	    IS_ERR(metrics->exits)) {
		window_collector__delete(metrics);
		return NULL;
	}
	return metrics;
}

static void free_chain(struct collect_stream *stream)
{
	free(stream->last_chain.frames);
	free(stream->bursts);
}

/* Frees the chains of streams. */
static void free_chains(struct hashmap *streams)
{
	struct hashmap_entry *entry;
	size_t bucket;

	if (IS_ERR_OR_NULL(streams))
		return;
	hashmap__for_each_entry(streams, entry, bucket)
		free_chain(entry->pvalue);
}

static void delete_values(struct hashmap *map)
{
	struct hashmap_entry *entry;
	size_t bucket;

	if (IS_ERR_OR_NULL(map))
		return;
	hashmap__for_each_entry(map, entry, bucket)
		free(entry->pvalue);
	hashmap__free(map);
}

/**
 * window_collector__delete - free a collector
 * @metrics: the collector, may be NULL
 */
void window_collector__delete(struct window_collector *metrics)
{
	struct collect_function *function;
	struct collect_group *group;
	struct metrics_event *event;

	if (!metrics)
		return;

	while ((event = metrics->events) != NULL) {
		metrics->events = event->next;
		free(event);
	}
	while ((group = metrics->groups) != NULL) {
		metrics->groups = group->next;
		for (unsigned int i = 0; i < group->nr_slots; i++)
			free(group->names[i]);
		free(group->names);
		free(group->windows.values);
		free(group->longs.values);
		free(group->skids);
		free(group->counted);
		free(group->scales);
		free(group->times);
		free(group);
	}
	while ((function = metrics->functions) != NULL) {
		metrics->functions = function->next;
		for (unsigned int i = 0; i < function->nr_sums; i++)
			free(function->sums[i]);
		free(function->sums);
		free(function->symbol);
		free(function->dso);
		free(function);
	}
	free_chains(metrics->streams);
	delete_values(metrics->streams);
	delete_values(metrics->counters);
	delete_values(metrics->times);
	hashmap__free(metrics->exits);
	free(metrics);
}

/**
 * window_collector__add_group - add a group of the recording
 * @metrics: the collector
 * @leader: attr of its leader, whose event is to be added next
 *
 * Return: the group, NULL without memory.
 */
struct collect_group *window_collector__add_group(struct window_collector *metrics,
						  const struct perf_event_attr *leader)
{
	struct collect_group *group = zalloc(sizeof(*group));
	struct function_group_desc *desc;
	u64 period, alternate, longest, shortest;

	if (!group)
		return NULL;

	alternate = leader->alternative_sample_period;
	/*
	 * With a frequency the long period changes, and only the kernel knows it. A window is meant
	 * to be at most a quarter of it. An interval that is as short as a window is as useful,
	 * whichever of the two it was.
	 */
	period = leader->freq ? 4 * min_t(u64, alternate, UINT64_MAX / 4) : leader->sample_period;
	/* Equal periods mean one period with jitter. */
	group->alternates = alternate && alternate != period;
	/*
	 * The limit is halfway between the longest window and the shortest long interval, rounded
	 * up.
	 */
	longest = alternate + min(function_jitter(leader->jitter_alternate_period, alternate),
				  UINT64_MAX - alternate);
	shortest = period - function_jitter(leader->jitter_alternate_period, period);
	group->limit = shortest / 2 + longest / 2 + ((shortest | longest) & 1);

	desc = &group->desc;
	desc->share = metrics->share == FUNCTION_SHARE_AUTO && !group->alternates ?
		      FUNCTION_SHARE_NONE : metrics->share;
	desc->inherit = leader->inherit;
	desc->sample_period = leader->freq ? 0 : leader->sample_period;
	desc->sample_freq = leader->freq ? leader->sample_freq : 0;
	desc->alternative_sample_period = alternate;
	desc->alternative_sample_count = leader->alternative_sample_count;
	desc->jitter_alternate_period = leader->jitter_alternate_period;

	group->metrics = metrics;
	group->index = metrics->nr_groups++;
	*metrics->last_group = group;
	metrics->last_group = &group->next;
	return group;
}

/**
 * window_collector__add_samples - add a group of events that sample themselves
 * @metrics: the collector
 * @first: attr of the event that is to be added next
 * @share: where the functions of the samples are known from
 *
 * Return: the group, NULL without memory.
 */
struct collect_group *window_collector__add_samples(struct window_collector *metrics,
						    const struct perf_event_attr *first,
						    enum function_share share)
{
	struct collect_group *group = window_collector__add_group(metrics, first);

	if (!group)
		return NULL;
	group->alternates = false;
	group->desc.share = share;
	return group;
}

/**
 * window_collector__add_paths - add a group of cycles and instructions that branch records tell
 * @metrics: the collector
 * @cycles: attr of the event whose samples have the records
 * @horizon: how many cycles before a sample count
 * @guard: how many cycles are between them and the overflow
 *
 * Return: the group, NULL without memory.
 */
struct collect_group *window_collector__add_paths(struct window_collector *metrics,
						  const struct perf_event_attr *cycles,
						  unsigned int horizon, unsigned int guard)
{
	static const char *const names[] = { "cycles", "instructions" };
	struct collect_group *group = window_collector__add_samples(metrics, cycles,
								    FUNCTION_SHARE_BRANCHES);

	if (!group)
		return NULL;
	group->desc.alternative_sample_period = horizon;
	group->desc.alternative_sample_count = guard;
	group->desc.jitter_alternate_period = 0;
	group->names = calloc(ARRAY_SIZE(names), sizeof(*group->names));
	for (size_t i = 0; group->names && i < ARRAY_SIZE(names); i++) {
		group->names[i] = strdup(names[i]);
		if (!group->names[i])
			return NULL;
		group->nr_slots++;
	}
	return group->names ? group : NULL;
}

/**
 * collect_group__hide - keep a group out of the table
 * @group: the group
 * @is_hidden: whether it is out
 */
void collect_group__hide(struct collect_group *group, bool is_hidden)
{
	group->is_hidden = is_hidden;
}

static bool collect_group__has_event(const struct collect_group *group, const char *name)
{
	for (unsigned int i = 0; i < group->nr_slots; i++) {
		if (!strcmp(group->names[i], name))
			return true;
	}
	return false;
}

/*
 * Returns true if another event of the group has the name, or an event of the recording that counts
 * something else; or -ENOMEM.
 */
static int is_taken(struct collect_group *group, const char *name,
		    const struct perf_event_attr *attr, const char *cpu)
{
	struct window_collector *metrics = group->metrics;
	struct metrics_event *event = metrics->events;
	const size_t size = strlen(name) + 1;

	if (collect_group__has_event(group, name))
		return true;

	while (event && strcmp(event->name, name))
		event = event->next;
	if (event)
		return fn_event__differs(attr, &event->attr, cpu);

	event = malloc(sizeof(*event) + size);
	if (!event)
		return -ENOMEM;
	event->attr = *attr;
	memcpy(event->name, name, size);
	event->next = metrics->events;
	metrics->events = event;
	return false;
}

/**
 * collect_group__add_event - add an event to a group
 * @group: the group, before its first sample
 * @attr: attr of the event
 * @name: name that perf gave it
 * @cpu: the CPU as perf_env__describe_cpu() gives it, or NULL
 *
 * A second event of the same meaning (cycles:u and cycles:k, say) goes by the
 * name that perf gave it, and so does one of another group that counts something
 * else than the first of that name in the recording.
 *
 * Return: the slot that the event has in the counts of a sample, -E2BIG for one too
 * many, or -ENOMEM.
 */
int collect_group__add_event(struct collect_group *group, const struct perf_event_attr *attr,
			     const char *name, const char *cpu)
{
	char **names, *own;
	int taken;

	if (group->nr_slots == FUNCTION_MAX_EVENTS)
		return -E2BIG;
	names = realloc(group->names, (group->nr_slots + 1) * sizeof(*names));
	if (!names)
		return -ENOMEM;
	group->names = names;

	own = fn_event__name(attr, name, cpu);
	taken = own ? is_taken(group, own, attr, cpu) : -ENOMEM;
	if (taken) {
		free(own);
		if (taken < 0)
			return taken;
		if (!collect_group__has_event(group, name) && !fn_event__is_reserved(name))
			own = strdup(name);
		else if (asprintf(&own, "%s#%u", name, group->nr_slots) < 0)
			own = NULL;
	}
	if (!own)
		return -ENOMEM;

	names[group->nr_slots] = own;
	if (attr->precise_ip || group->desc.share == FUNCTION_SHARE_RECORDED)
		group->precise |= 1ULL << group->nr_slots;
	return group->nr_slots++;
}

/**
 * collect_group__nr_events - number of events in a group
 * @group: the group
 *
 * Return: number of events.
 */
unsigned int collect_group__nr_events(const struct collect_group *group)
{
	return group->nr_slots;
}

/**
 * collect_group__event - name an event of a group
 * @group: the group
 * @slot: slot of the event
 *
 * Return: its name.
 */
const char *collect_group__event(const struct collect_group *group, unsigned int slot)
{
	return group->names[slot];
}

/**
 * collect_group__alternates - whether its leader has two periods
 * @group: the group
 *
 * Return: whether an interval has to be near the short one to be a window.
 */
bool collect_group__alternates(const struct collect_group *group)
{
	return group->alternates;
}

/**
 * window_collector__add_function - add a function, or another kind of row
 * @metrics: the collector
 * @symbol: its name, "" if it has none
 * @dso: path of its DSO, "" if it is not known
 * @address: its address in the DSO
 *
 * Return: the function, different from all others, NULL without memory.
 */
struct collect_function *window_collector__add_function(struct window_collector *metrics,
							const char *symbol, const char *dso,
							u64 address)
{
	struct collect_function *function = zalloc(sizeof(*function));

	if (!function)
		return NULL;

	function->symbol = strdup(symbol);
	function->dso = strdup(dso);
	if (!function->symbol || !function->dso) {
		free(function->symbol);
		free(function->dso);
		free(function);
		return NULL;
	}
	function->address = address;
	function->next = metrics->functions;
	metrics->functions = function;
	return function;
}

/**
 * window_collector__find - find the function that sums in the table are of
 * @metrics: the collector
 * @sums: the sums
 *
 * Return: the function, NULL if it is one of another collector.
 */
struct collect_function *window_collector__find(const struct window_collector *metrics,
						const struct function_sums *sums)
{
	struct collect_function *function = metrics->functions;

	while (function && (strcmp(function->symbol, sums->symbol) ||
			    strcmp(function->dso, sums->dso) ||
			    (sums->has_address && function->address != sums->address)))
		function = function->next;
	return function;
}

/**
 * collect_function__name - say what a function is called
 * @function: the function
 *
 * Return: its name, as long as it is not renamed.
 */
struct function_name collect_function__name(const struct collect_function *function)
{
	return (struct function_name){ function->symbol, function->dso, function->address };
}

/**
 * collect_function__rename - change the name of a function
 * @function: the function
 * @symbol: its name
 *
 * Return: 0, or -ENOMEM.
 */
int collect_function__rename(struct collect_function *function, const char *symbol)
{
	char *own;

	if (!strcmp(function->symbol, symbol))
		return 0;
	own = strdup(symbol);
	if (!own)
		return -ENOMEM;
	free(function->symbol);
	function->symbol = own;
	return 0;
}

static struct metrics_counter *window_collector__counter(const struct window_collector *metrics,
							 u64 id)
{
	struct metrics_counter key = { .id = id }, *counter;

	return hashmap__find(metrics->counters, &key, &counter) ? counter : NULL;
}

static struct metrics_counter *window_collector__findnew_counter(struct window_collector *metrics,
								 u64 id)
{
	struct metrics_counter *counter = window_collector__counter(metrics, id);

	if (counter)
		return counter;

	counter = zalloc(sizeof(*counter));
	if (!counter)
		return NULL;
	counter->id = id;
	if (hashmap__add(metrics->counters, counter, counter)) {
		free(counter);
		return NULL;
	}
	return counter;
}

static void metrics_counter__set_still(struct metrics_counter *counter, bool is_still)
{
	if (counter->leader) {
		/* A leader that stands still has no samples. */
		is_still &= counter->leader != counter;
		counter->leader->nr_still += is_still - counter->is_still;
	}
	counter->is_still = is_still;
}

static void metrics_counter__join(struct metrics_counter *counter, struct metrics_counter *leader)
{
	bool is_still = counter->is_still;

	if (counter->leader == leader)
		return;
	metrics_counter__set_still(counter, false);
	counter->leader = leader;
	metrics_counter__set_still(counter, is_still);
}

/* A new stream has not seen a sample. */
static struct collect_stream *window_collector__new_stream(struct window_collector *metrics,
							   struct collect_group *group,
							   u64 id, u64 thread)
{
	struct collect_stream *stream = zalloc(sizeof(*stream) + group->nr_slots *
					       (4 * sizeof(*stream->burst) +
						sizeof(*stream->values)));

	if (!stream)
		return NULL;
	stream->counted = stream->burst + 2 * group->nr_slots;
	stream->before = stream->burst + 3 * group->nr_slots;
	stream->values = (struct collect_value *)(stream->burst + 4 * group->nr_slots);
	stream->id = id;
	stream->thread = thread;
	stream->group = group;
	stream->leader = window_collector__findnew_counter(metrics, id);
	if (!stream->leader || hashmap__add(metrics->streams, stream, stream)) {
		free(stream);
		return NULL;
	}
	metrics_counter__join(stream->leader, stream->leader);
	return stream;
}

/* Not inline, because most samples are of the same stream as the one before. */
static noinline struct collect_stream *
window_collector__change_stream(struct window_collector *metrics, struct collect_group *group,
				u64 id, u64 thread)
{
	struct collect_stream key = { .id = id, .thread = thread, .group = group };
	struct collect_stream **recent = &metrics->recent[hash_64(id ^ thread, RECENT_BITS)];

	if ((!*recent || !equal_stream((long)*recent, (long)&key, NULL)) &&
	    !hashmap__find(metrics->streams, &key, recent))
		*recent = window_collector__new_stream(metrics, group, id, thread);
	metrics->last_stream = *recent;
	return *recent;
}

/**
 * window_collector__findnew_stream - find the stream of a sample, or begin one
 * @metrics: the collector
 * @group: the group
 * @id: id of the leader
 * @thread: a unique number of the thread
 * @values: set to the values of the events in its last sample: as many as the group has events,
 *	    by slot, for the caller to set
 *
 * Return: the stream, valid until window_collector__forget_idle(); NULL without memory.
 */
struct collect_stream *window_collector__findnew_stream(struct window_collector *metrics,
							struct collect_group *group, u64 id,
							u64 thread, struct collect_value **values)
{
	struct collect_stream *stream = metrics->last_stream;

	if (!group->desc.inherit)
		thread = 0;
	if (!stream || stream->id != id || stream->thread != thread || stream->group != group)
		stream = window_collector__change_stream(metrics, group, id, thread);
	if (stream)
		*values = stream->values;
	return stream;
}

/**
 * collect_stream__add_member - tell which events are read with the samples of a stream
 * @stream: the stream
 * @id: id of one of them
 *
 * Return: 0, or -ENOMEM.
 */
int collect_stream__add_member(struct collect_stream *stream, u64 id)
{
	struct metrics_counter *counter =
		window_collector__findnew_counter(stream->group->metrics, id);

	if (!counter)
		return -ENOMEM;
	/* In a damaged file, it may lead another group. */
	if (counter->leader != counter)
		metrics_counter__join(counter, stream->leader);
	return 0;
}

/* Returns the number of totals and products of a class of windows. */
static unsigned int nr_values(const struct collect_group *group)
{
	return group->nr_slots + group->nr_slots * (group->nr_slots + 1) / 2;
}

static struct u192 *collect_sums__values(struct collect_sums *sums,
					 const struct collect_group *group, enum window_class class)
{
	return sums->values + class * nr_values(group);
}

static struct u192 *collect_sums__bursts(struct collect_sums *sums,
					 const struct collect_group *group, enum window_class class)
{
	return sums->values + (NR_CLASSES + class) * nr_values(group);
}

static size_t sums_size(const struct collect_group *group)
{
	return sizeof(struct collect_sums) +
	       2 * NR_CLASSES * nr_values(group) * sizeof(struct u192);
}

/* Returns true if a function has no samples yet. */
static bool collect_sums__is_empty(const struct collect_sums *sums)
{
	return !sums->opened && !sums->samples && !sums->begun;
}

static struct collect_sums *collect_function__new_sums(struct collect_function *function,
						       const struct collect_group *group)
{
	struct window_collector *metrics = group->metrics;
	const unsigned int nr = max(function->nr_sums, group->index + 1);

	/* A row of a table has the values of two classes. */
	metrics->allocated += sums_size(group) + 2 * nr_values(group) * sizeof(struct u192) +
			      (nr - function->nr_sums) * sizeof(*function->sums);
	if (window_collector__is_full(metrics))
		return NULL;
	if (group->index >= function->nr_sums) {
		struct collect_sums **all = realloc(function->sums, nr * sizeof(*all));

		if (!all)
			return NULL;
		function->sums = all;
		while (function->nr_sums <= group->index)
			all[function->nr_sums++] = NULL;
	}
	function->sums[group->index] = zalloc(sums_size(group));
	return function->sums[group->index];
}

/* It is inline because each sample needs it once or twice. */
static inline struct collect_sums *collect_function__sums(struct collect_function *function,
							  const struct collect_group *group)
{
	if (group->index < function->nr_sums && function->sums[group->index])
		return function->sums[group->index];
	return collect_function__new_sums(function, group);
}

/* Adds a sample that stands for @weight events of the leader. */
static void add_opened(struct collect_sums *sums, u64 weight)
{
	sums->opened++;
	u192__add_product(&sums->weight, weight, 1);
	u192__add_product(&sums->squares, weight, weight);
}

static void add_alone(struct u192 *values, const struct collect_group *group, const u64 *counts)
{
	const u64 *end = counts + group->nr_slots;
	struct u192 *product = values + group->nr_slots;

	for (; counts < end; counts++, values++) {
		const u64 count = *counts;

		if (!count) {
			product += end - counts;
			continue;
		}
		u192__add_product(values, count, 1);
		for (const u64 *other = counts; other < end;)
			u192__add_product(product++, count, *other++);
	}
}

/*
 * The counts of a burst grow from x to x + n by a window. The product of two events grows by
 * n_i n_j + x_i n_j + n_i x_j, of which add_alone() adds the first.
 */
static void add_to_burst(struct u192 *values, const struct collect_group *group,
			 const u64 *counts, u64 *burst)
{
	struct u192 *product = values + group->nr_slots;

	for (unsigned int i = 0; i < group->nr_slots; i++) {
		if (!burst[i] && !counts[i]) {
			product += group->nr_slots - i;
			continue;
		}
		for (unsigned int j = i; j < group->nr_slots; j++, product++) {
			u192__add_product(product, burst[i], counts[j]);
			u192__add_product(product, counts[i], burst[j]);
		}
	}
	for (unsigned int i = 0; i < group->nr_slots; i++)
		burst[i] += counts[i];
}

/* Adds a window to its class. */
static void collect_sums__add(struct collect_sums *sums, const struct collect_group *group,
			      enum window_class class, const u64 *counts, u64 *burst,
			      bool in_burst)
{
	add_alone(collect_sums__values(sums, group, class), group, counts);
	if (in_burst)
		add_to_burst(collect_sums__bursts(sums, group, class), group, counts, burst);
	else
		memcpy(burst, counts, group->nr_slots * sizeof(*burst));
	if (class != WINDOWS_BEGUN) {
		sums->matched++;
		sums->bursts += !in_burst;
	}
	if (class != WINDOWS_MATCHED) {
		sums->begun++;
		sums->begun_bursts += !in_burst;
	}
}

static int function_chain__reserve(struct function_chain *chain, unsigned int nr)
{
	struct function_frame *frames;

	if (nr <= chain->allocated)
		return 0;
	nr = max(nr, 2 * chain->allocated);
	frames = realloc(chain->frames, nr * sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	chain->frames = frames;
	chain->allocated = nr;
	return 0;
}

/**
 * function_chain__add - add a frame to a call chain
 * @chain: the chain, {} if it is empty
 * @function: the function
 * @ip: the return address of what it called, or the sample's address
 *
 * Return: 0, or -ENOMEM.
 */
int function_chain__add(struct function_chain *chain, struct collect_function *function, u64 ip)
{
	if (function_chain__reserve(chain, chain->nr + 1))
		return -ENOMEM;
	chain->frames[chain->nr++] = (struct function_frame){ .function = function, .ip = ip };
	return 0;
}

static int function_chain__copy(struct function_chain *chain, const struct function_chain *from)
{
	if (function_chain__reserve(chain, from->nr))
		return -ENOMEM;
	memcpy(chain->frames, from->frames, from->nr * sizeof(*from->frames));
	chain->nr = from->nr;
	return 0;
}

/*
 * Returns how many frames are the same calls in both chains. Frames of the same function match if
 * their callers match; the last ones may have different addresses.
 */
static unsigned int nr_common(const struct function_chain *a, const struct function_chain *b)
{
	unsigned int nr = 0;

	while (nr < a->nr && nr < b->nr && a->frames[nr].function == b->frames[nr].function) {
		if (a->frames[nr].ip != b->frames[nr].ip)
			return nr + 1;
		nr++;
	}
	return nr;
}

/*
 * Notes the chain of a sample. Returns how many of its frames are the same calls as before, or
 * -ENOMEM.
 */
static noinline int follow_chain(struct collect_stream *stream, const struct function_chain *chain,
				 bool is_same)
{
	int common = is_same ? nr_common(&stream->last_chain, chain) : 0;

	return function_chain__copy(&stream->last_chain, chain) ?: common;
}

static int collect_stream__reserve_bursts(struct collect_stream *stream, unsigned int nr)
{
	const size_t size = stream->group->nr_slots * sizeof(*stream->bursts);
	u64 *bursts;

	if (nr <= stream->nr_allocated)
		return 0;
	nr = max(nr, 2 * stream->nr_allocated);
	bursts = realloc(stream->bursts, nr * size);
	if (!bursts)
		return -ENOMEM;
	stream->bursts = bursts;
	stream->nr_allocated = nr;
	return 0;
}

/*
 * Adds a window to each function of its chain. It counts for the first @common frames, which is 0
 * if the window is broken. A recursion counts once, for its first frame, which is there all the
 * time.
 */
static noinline int add_to_chain(struct collect_stream *stream, const u64 *counts,
				 const struct collect_sample *sample, unsigned int common)
{
	const struct collect_group *group = stream->group;
	unsigned int nr_bursts = stream->nr_bursts;

	stream->nr_bursts = 0;
	if (collect_stream__reserve_bursts(stream, common))
		return -ENOMEM;

	for (unsigned int i = 0; i < sample->chain->nr; i++) {
		struct collect_function *function = sample->chain->frames[i].function;
		struct collect_sums *sums;

		if (function->added == stream->seen)
			continue;
		function->added = stream->seen;
		sums = collect_function__sums(function, group);
		if (!sums)
			return -ENOMEM;
		if (sample->outside)
			continue;
		sums->samples++;
		if (i < common)
			collect_sums__add(sums, group, WINDOWS_MATCHED, counts,
					  stream->bursts + (size_t)i * group->nr_slots,
					  i < nr_bursts);
	}
	if (group->alternates && !sample->outside)
		stream->nr_bursts = common;
	return 0;
}

/* Adds the values of an interval to those of its kind. */
static int add_interval(const struct collect_group *group, struct function_intervals *intervals,
			const u64 *counts)
{
	if (!intervals->values)
		intervals->values = calloc(nr_values(group), sizeof(*intervals->values));
	if (!intervals->values)
		return -ENOMEM;
	add_alone(intervals->values, group, counts);
	return 0;
}

/*
 * Adds a window to the function at its end, if it counts there, and to the function in which it
 * begins. As long as both get the same windows, they share one burst and its sums.
 */
static int add_to_functions(struct collect_stream *stream, const struct collect_interval *interval,
			    const struct collect_sample *sample)
{
	const struct collect_group *group = stream->group;
	struct collect_function *begin = interval->is_same ? stream->last_function : NULL;
	const enum function_share share = group->desc.share;
	bool is_matched = !sample->nowhere && begin == sample->function;
	bool counts = !interval->is_broken && !sample->filtered && !sample->outside &&
		      !sample->chain && (is_matched || share == FUNCTION_SHARE_NONE);
	bool in_burst = is_matched && stream->in_burst, in_run, is_both;
	struct collect_sums *sums;
	u64 *begun_burst;

	if (share != FUNCTION_SHARE_AUTO || stream->last_filtered || sample->outside)
		begin = NULL;	/* the window does not count there */
	in_run = begin && stream->run == begin;
	stream->in_burst = counts && group->alternates;
	stream->run = begin;
	if (!counts && !begin)
		return 0;

	begun_burst = stream->burst + (stream->one_burst && in_run ? 0 : group->nr_slots);
	is_both = counts && begin && in_burst == in_run && (stream->one_burst || !in_run);
	stream->one_burst = is_both;
	if (counts) {
		sums = collect_function__sums(sample->function, group);
		if (!sums)
			return -ENOMEM;
		collect_sums__add(sums, group, is_both ? WINDOWS_BOTH : WINDOWS_MATCHED,
				  interval->counts, stream->burst, in_burst);
		sums->begun += share == FUNCTION_SHARE_NONE && is_matched;
	}
	if (begin && !is_both) {
		sums = collect_function__sums(begin, group);
		if (!sums)
			return -ENOMEM;
		collect_sums__add(sums, group, WINDOWS_BEGUN, interval->counts, begun_burst,
				  in_run);
	}
	return 0;
}

/*
 * A counter continues after its overflow until the handler reads it. The next interval is shorter
 * by these events, unless nothing would remain of it.
 */
static int note_skid(struct collect_stream *stream, const struct collect_interval *interval)
{
	struct collect_group *group = stream->group;

	if (stream->has_no_skid)
		return 0;
	/* The periods of lost samples are unknown. */
	stream->has_no_skid = !interval->period || (stream->seen && interval->is_broken);
	if (stream->has_no_skid)
		return 0;
	if (stream->skid >= (s64)interval->period)
		stream->skid = 0;
	stream->skid += interval->counts[0] - interval->period;
	if (!interval->is_window || stream->skid < 0 || group->nr_skids == FUNCTION_MOST_SKIDS)
		return 0;
	if (!group->skids)
		group->skids = calloc(FUNCTION_MOST_SKIDS, sizeof(*group->skids));
	if (!group->skids)
		return -ENOMEM;
	group->skids[group->nr_skids++] = stream->skid;
	return 0;
}

/*
 * Returns true if a member is throttled and the leader is not. If a member has counted since then,
 * the record of the end was lost. If its thread has ended, no record says so.
 */
static noinline bool has_still_member(const struct collect_stream *stream,
				      const struct collect_interval *interval)
{
	const struct window_collector *metrics = stream->group->metrics;

	for (unsigned int i = 0; i < stream->group->nr_slots; i++) {
		struct metrics_counter *counter =
			window_collector__counter(metrics, stream->values[i].id);
		unsigned long end;

		if (counter &&
		    ((interval->counts[i] && counter->throttled < stream->seen) ||
		     (counter->thread && hashmap__find(metrics->exits, counter->thread, &end) &&
		      end > counter->throttled)))
			metrics_counter__set_still(counter, false);
	}
	return stream->leader->nr_still;
}

/**
 * collect_stream__measure - find out what an interval is
 * @stream: the stream
 * @interval: its thread, counts and period; the rest is set. Those of a stream come in the order
 *	      of time, each before the sample at its end.
 *
 * Return: 0, or -ENOMEM.
 */
int collect_stream__measure(struct collect_stream *stream, struct collect_interval *interval)
{
	const struct collect_group *group = stream->group;

	/* The interval of the first sample is unknown. */
	interval->is_window = stream->seen &&
			      (!group->alternates || interval->counts[0] < group->limit);
	interval->is_interrupted = interval->is_window && stream->is_interrupted;
	/*
	 * Members may have counted while the leader was throttled, so never use such an interval.
	 */
	interval->is_broken = stream->seen <= group->metrics->lost ||
			      stream->seen <= stream->leader->throttled ||
			      (stream->leader->nr_still && has_still_member(stream, interval));
	interval->is_same = !interval->is_broken && stream->last_thread == interval->thread;
	stream->is_interrupted = false;
	return group->alternates ? note_skid(stream, interval) : 0;
}

/*
 * Returns how many events of the leader a long interval stands for. With a frequency only its
 * sample tells. Else jitter changes it by chance, whatever runs.
 */
static u64 weight_of(const struct collect_group *group, const struct collect_interval *interval)
{
	if (!group->desc.sample_freq)
		return group->desc.sample_period;
	return interval->period ?: interval->counts[0];
}

/*
 * The first period of a stream is no window, as its begin is unknown. But where sums have all that
 * was counted, it belongs to them, unless the recording began within the stream.
 */
static int add_first(const struct collect_group *group, const struct collect_interval *interval,
		     const struct collect_sample *sample)
{
	const u64 period = interval->period ?: group->desc.sample_period;
	struct collect_sums *sums;

	if (sample->filtered || sample->outside || sample->chain || group->metrics->looked ||
	    interval->counts[0] / 2 > period)
		return 0;
	sums = collect_function__sums(sample->function, group);
	if (!sums)
		return -ENOMEM;
	add_alone(collect_sums__values(sums, group, WINDOWS_BEGUN), group, interval->counts);
	sums->begun_bursts++;
	return 0;
}

/**
 * collect_stream__sample - take a sample of a group
 * @stream: the stream
 * @interval: the interval that it ends
 * @sample: the sample
 *
 * Return: 0, or -ENOMEM.
 */
int collect_stream__sample(struct collect_stream *stream, const struct collect_interval *interval,
			   const struct collect_sample *sample)
{
	struct collect_group *group = stream->group;
	const bool is_auto = group->desc.share == FUNCTION_SHARE_AUTO;
	const bool is_window = interval->is_window;
	struct collect_sums *sums;
	int common = 0;

	if (!stream->seen && group->desc.share == FUNCTION_SHARE_NONE && !group->alternates &&
	    add_first(group, interval, sample))
		return -ENOMEM;
	if (sample->chain)
		common = follow_chain(stream, sample->chain, interval->is_same);
	if (common < 0)
		return common;

	if (!is_window || interval->is_interrupted) {
		stream->in_burst = false;
		stream->run = NULL;
	} else if (add_to_functions(stream, interval, sample)) {
		return -ENOMEM;
	}
	stream->seen = ++group->metrics->now;
	stream->last_function = sample->nowhere ? NULL : sample->function;
	stream->last_filtered = sample->filtered;
	stream->last_thread = interval->thread;
	if (interval->is_interrupted) {
		stream->nr_bursts = 0;
		return 0;
	}

	/* An interrupt adds the same to an interval, whichever function is at its end. */
	if (is_auto && !interval->is_broken && !sample->outside && !sample->foreign) {
		struct function_intervals *intervals = is_window ? &group->windows : &group->longs;

		intervals->number++;
		/* Windows that count for a function are added by add_matched(), at the end. */
		if (!stream->in_burst && add_interval(group, intervals, interval->counts))
			return -ENOMEM;
	}
	if ((!is_window && !is_auto) || sample->filtered) {
		stream->nr_bursts = 0;
		return 0;
	}
	if (sample->chain)
		return add_to_chain(stream, interval->counts, sample, common);

	sums = collect_function__sums(sample->function, group);
	if (!sums)
		return -ENOMEM;
	/* The function exists even so, so that names agree and spans of a recording add up. */
	if (sample->outside)
		return 0;
	if (is_window)
		sums->samples++;
	else
		add_opened(sums, weight_of(group, interval));
	return 0;
}

static void add_period(struct collect_sums *sums, const struct collect_group *group,
		       unsigned int slot, u64 period)
{
	struct u192 *values = collect_sums__values(sums, group, WINDOWS_MATCHED);
	struct u192 *square = values + group->nr_slots;

	for (unsigned int i = 0; i < slot; i++)
		square += group->nr_slots - i;
	u192__add_product(&values[slot], period, 1);
	u192__add_product(square, period, period);
	sums->samples++;
	sums->matched++;
	sums->bursts++;
}

/**
 * collect_group__event_sample - take a sample of an event that samples itself
 * @group: the group, of window_collector__add_samples()
 * @slot: the slot of the event
 * @period: how often the event has happened since its sample before
 * @sample: the sample; samples may come in any order
 *
 * Return: 0, or -ENOMEM.
 */
int collect_group__event_sample(struct collect_group *group, unsigned int slot, u64 period,
				const struct collect_sample *sample)
{
	const struct function_frame frame = { .function = sample->function };
	const struct function_frame *frames = sample->chain ? sample->chain->frames : &frame;
	const unsigned int nr = sample->chain ? sample->chain->nr : 1;

	if (sample->filtered)
		return 0;
	group->metrics->now++;
	for (unsigned int i = 0; i < nr; i++) {
		struct collect_function *function = frames[i].function;
		struct collect_sums *sums;

		/* A recursion counts once. */
		if (function->added == group->metrics->now)
			continue;
		function->added = group->metrics->now;
		sums = collect_function__sums(function, group);
		if (!sums)
			return -ENOMEM;
		if (!sample->outside)
			add_period(sums, group, slot, period);
	}
	return 0;
}

/**
 * collect_group__path - take what a sample's branch records tell of a function
 * @group: the group, of window_collector__add_paths()
 * @function: the function
 * @counts: its cycles and instructions
 * @weight: how many events the sample stands for
 *
 * Return: 0, or -ENOMEM.
 */
int collect_group__path(struct collect_group *group, struct collect_function *function,
			const u64 *counts, u64 weight)
{
	struct collect_sums *sums = collect_function__sums(function, group);
	u64 weighted[FUNCTION_MAX_EVENTS];

	if (!sums)
		return -ENOMEM;
	for (unsigned int i = 0; i < group->nr_slots; i++)
		weighted[i] = counts[i] * min_t(u64, weight, MOST_WEIGHT);
	add_alone(collect_sums__values(sums, group, WINDOWS_MATCHED), group, counts);
	add_alone(collect_sums__values(sums, group, WINDOWS_BEGUN), group, weighted);
	sums->samples++;
	sums->matched++;
	sums->bursts++;
	sums->begun++;
	sums->begun_bursts++;
	return 0;
}

/**
 * collect_group__path_end - take the function that a sample's last branch has entered
 * @group: the group, of window_collector__add_paths()
 * @function: the function
 * @weight: how many events the sample stands for
 *
 * Return: 0, or -ENOMEM.
 */
int collect_group__path_end(struct collect_group *group, struct collect_function *function,
			    u64 weight)
{
	struct collect_sums *sums = collect_function__sums(function, group);

	if (!sums)
		return -ENOMEM;
	add_opened(sums, min_t(u64, weight, MOST_WEIGHT));
	return 0;
}

/**
 * collect_group__run - note how long an event was to count, and has counted
 * @group: the group
 * @slot: the slot of the event that samples itself; 0: all events of the group
 * @id: its id
 * @thread: the thread in which it counts
 * @enabled: time that it was to count in the thread so far, in ns
 * @running: the part of it in which it had a counter
 *
 * Return: 0, or -ENOMEM.
 */
int collect_group__run(struct collect_group *group, unsigned int slot, u64 id, u64 thread,
		       u64 enabled, u64 running)
{
	struct collect_time key = {
		.id = id, .thread = group->desc.inherit ? thread : 0, .group = group,
	};
	struct hashmap *times = group->metrics->times;
	struct collect_time *last, *all;

	if (!group->times)
		group->times = calloc(FUNCTION_MAX_EVENTS, sizeof(*group->times));
	if (!group->times)
		return -ENOMEM;
	all = &group->times[slot];
	if (!hashmap__find(times, &key, &last)) {
		last = malloc(sizeof(*last));
		if (!last)
			return -ENOMEM;
		*last = key;
		if (hashmap__add(times, last, last)) {
			free(last);
			return -ENOMEM;
		}
	}
	/* A time below the one before belongs to a new thread. */
	if (enabled < last->enabled || running < last->running)
		*last = key;
	all->enabled += enabled - last->enabled;
	all->running += running - last->running;
	last->enabled = enabled;
	last->running = running;
	return 0;
}

/**
 * collect_group__stretch - say what the counts of an event have to be multiplied by
 * @group: the group
 * @slot: the slot of the event
 *
 * Return: 1 if it always counted, if that is not known, or if the group has only a part of what
 * was counted anyway, which is as good without it.
 */
double collect_group__stretch(const struct collect_group *group, unsigned int slot)
{
	const bool is_of_windows = function_share__source(group->desc.share) ==
				   FUNCTION_SOURCE_WINDOWS;
	const struct collect_time *time = group->times;

	if (!time || group->alternates ||
	    (is_of_windows && group->desc.share != FUNCTION_SHARE_NONE))
		return 1;
	time += is_of_windows ? 0 : slot;
	return time->running && time->enabled > time->running ?
	       (double)time->enabled / time->running : 1;
}

/**
 * collect_stream__interrupt - note that another event has interrupted a stream
 * @stream: the stream
 */
void collect_stream__interrupt(struct collect_stream *stream)
{
	stream->is_interrupted = true;
}

/**
 * collect_stream__place - note a sample of an event
 * @stream: the stream
 * @slot: slot of the event
 *
 * Return: how many samples of the event the stream had before, at most 2.
 */
unsigned int collect_stream__place(struct collect_stream *stream, unsigned int slot)
{
	const u64 bit = 1ULL << slot;
	const unsigned int place = !!(stream->sampled & bit) + !!(stream->resampled & bit);

	stream->resampled |= stream->sampled & bit;
	stream->sampled |= bit;
	return place;
}

/**
 * collect_stream__counted - what each event has counted in a stream
 * @stream: the stream
 *
 * Return: the counts by slot, for the caller to set at each sample.
 */
u64 *collect_stream__counted(struct collect_stream *stream)
{
	return stream->counted;
}

/**
 * collect_stream__begin_late - leave out what a stream has counted so far
 * @stream: the stream, whose counts are set
 */
void collect_stream__begin_late(struct collect_stream *stream)
{
	memcpy(stream->before, stream->counted, stream->group->nr_slots * sizeof(u64));
}

/**
 * window_collector__count - add up what all streams have counted
 * @metrics: the collector
 */
void window_collector__count(struct window_collector *metrics)
{
	struct hashmap_entry *entry;
	size_t bucket;

	for (struct collect_group *group = metrics->groups; group; group = group->next) {
		free(group->counted);
		group->counted = calloc(group->nr_slots ?: 1, sizeof(*group->counted));
	}
	hashmap__for_each_entry(metrics->streams, entry, bucket) {
		const struct collect_stream *stream = entry->pvalue;

		for (unsigned int i = 0; stream->group->counted && i < stream->group->nr_slots; i++)
			stream->group->counted[i] += stream->counted[i] - stream->before[i];
	}
}

/**
 * collect_group__counted - what an event has counted
 * @group: its group
 * @slot: its slot
 *
 * Return: the sum of all streams at the last window_collector__count(), 0 if it is not known.
 */
double collect_group__counted(const struct collect_group *group, unsigned int slot)
{
	return group->counted ? group->counted[slot] : 0;
}

/**
 * collect_group__scale - multiply the values of an event
 * @group: the group, of window_collector__add_samples()
 * @slot: the slot of the event
 * @scale: the factor for the tables from now on
 *
 * Return: 0, or -ENOMEM.
 */
int collect_group__scale(struct collect_group *group, unsigned int slot, double scale)
{
	if (!group->scales) {
		group->scales = calloc(group->nr_slots, sizeof(*group->scales));
		if (!group->scales)
			return -ENOMEM;
		for (unsigned int i = 0; i < group->nr_slots; i++)
			group->scales[i] = 1;
	}
	/* A crafted file may have any values. */
	group->scales[slot] = scale;
	return 0;
}

/**
 * window_collector__throttle - an event is throttled, or no longer
 * @metrics: the collector
 * @id: id of the event
 * @thread: the thread that ran, 0 if the event counts on after its end
 * @is_throttled: whether it is
 *
 * This affects all threads of its group, because the record may name another thread.
 *
 * Return: 0, or -ENOMEM.
 */
int window_collector__throttle(struct window_collector *metrics, u64 id, u32 thread,
			       bool is_throttled)
{
	struct metrics_counter *counter = window_collector__findnew_counter(metrics, id);

	if (!counter)
		return -ENOMEM;
	metrics->has_throttled = true;
	counter->throttled = metrics->now;
	counter->thread = thread;
	if (counter->leader)
		counter->leader->throttled = metrics->now;
	metrics_counter__set_still(counter, is_throttled);
	return 0;
}

/**
 * window_collector__exit - a thread ends
 * @metrics: the collector
 * @thread: the thread
 *
 * No record says that its events are not throttled any more.
 *
 * Return: 0, or -ENOMEM.
 */
int window_collector__exit(struct window_collector *metrics, u32 thread)
{
	if (!metrics->has_throttled)
		return 0;
	metrics->now++;
	return hashmap__set(metrics->exits, thread, (unsigned long)metrics->now, NULL, NULL);
}

/**
 * window_collector__is_full - say why there is no memory
 * @metrics: the collector
 *
 * Return: true if the sums would take more than 4 GB.
 */
bool window_collector__is_full(const struct window_collector *metrics)
{
	return metrics->allocated > MOST_MEMORY;
}

/**
 * window_collector__lost - note that records of unknown streams are lost here
 * @metrics: the collector
 */
void window_collector__lost(struct window_collector *metrics)
{
	metrics->lost = metrics->now;
}

static void restart_intervals(const struct collect_group *group,
			      struct function_intervals *intervals)
{
	intervals->number = 0;
	if (intervals->values)
		memset(intervals->values, 0, nr_values(group) * sizeof(*intervals->values));
}

/**
 * window_collector__restart - begin to count anew
 * @metrics: the collector
 *
 * The state of streams is kept, and so are functions, without windows, so that their names
 * do not change. A burst ends here.
 */
void window_collector__restart(struct window_collector *metrics)
{
	struct hashmap_entry *entry;
	size_t bucket;

	for (struct collect_function *function = metrics->functions; function;
	     function = function->next) {
		for (const struct collect_group *group = metrics->groups; group;
		     group = group->next) {
			struct collect_sums *sums = group->index < function->nr_sums ?
						    function->sums[group->index] : NULL;

			if (sums && !collect_sums__is_empty(sums))
				memset(sums, 0, sums_size(group));
		}
	}
	for (struct collect_group *group = metrics->groups; group; group = group->next) {
		restart_intervals(group, &group->windows);
		restart_intervals(group, &group->longs);
		group->nr_skids = 0;
		zfree(&group->times);
	}
	hashmap__for_each_entry(metrics->streams, entry, bucket) {
		struct collect_stream *stream = entry->pvalue;

		stream->in_burst = false;
		stream->run = NULL;
		stream->nr_bursts = 0;
	}
}

/**
 * window_collector__forget_idle - forget what had no sample since the call before
 * @metrics: the collector
 *
 * So threads that have ended take no memory. If a thread goes on, its next interval is
 * unknown, like its first one.
 */
void window_collector__forget_idle(struct window_collector *metrics)
{
	struct hashmap_entry *entry, *next;
	size_t bucket;

	hashmap__for_each_entry_safe(metrics->streams, entry, next, bucket) {
		struct collect_stream *stream = entry->pvalue;

		if (stream->seen > metrics->looked)
			continue;
		hashmap__delete(metrics->streams, stream, NULL, NULL);
		free_chain(stream);
		free(stream);
	}
	metrics->last_stream = NULL;
	memset(metrics->recent, 0, sizeof(metrics->recent));
	metrics->looked = metrics->now;
}

static int windows_compare_names(const void *one, const void *other, void *names)
{
	const unsigned int *a = one, *b = other;
	char *const *name = names;

	return strcmp(name[*a], name[*b]);
}

/* Returns the slots of a group in the order of its set. Slot 0 is the leader's. */
static unsigned int *collect_group__order(const struct collect_group *group)
{
	unsigned int *order = calloc(group->nr_slots, sizeof(*order));

	if (!order)
		return NULL;
	for (unsigned int i = 0; i < group->nr_slots; i++)
		order[i] = i;
	qsort_r(order + 1, group->nr_slots - 1, sizeof(*order), windows_compare_names,
		group->names);
	return order;
}

static struct event_set *collect_group__set(const struct collect_group *group,
					    const unsigned int *order,
					    struct function_table *table)
{
	const char **events = calloc(group->nr_slots, sizeof(*events));
	struct event_set *set = NULL;

	if (events) {
		for (unsigned int i = 0; i < group->nr_slots; i++)
			events[i] = group->names[order[i]];
		set = function_table__findnew_set(table, events, group->nr_slots,
						  function_share__source(group->desc.share));
	}
	free(events);
	for (unsigned int i = 0; set && i < group->nr_slots; i++) {
		if (!(group->precise & 1ULL << order[i]))
			set->precise &= ~(1ULL << i);
	}
	return set && !event_set__add_desc(set, &group->desc) ? set : NULL;
}

/* Adds the totals and products of a group, in the order of its set. */
static bool windows_add_values(const struct collect_group *group, const unsigned int *order,
			       const struct event_set *set, const struct u192 *from,
			       struct u192 *to)
{
	bool fits = true;

	for (unsigned int i = 0; i < group->nr_slots; i++) {
		fits = u192__add(&to[i], &from[order[i]]) && fits;
		for (unsigned int j = i; j < group->nr_slots; j++) {
			unsigned int first = min(order[i], order[j]);
			unsigned int second = max(order[i], order[j]);
			const struct u192 *product = &from[event_set__product(set, first, second)];

			/* Most functions have no window of some class, or no burst. */
			if (product->w[0] || product->w[1] || product->w[2])
				fits = u192__add(&to[event_set__product(set, i, j)], product) &&
				       fits;
		}
	}
	return fits;
}

/* Adds the values of a class, with the products of its bursts. */
static void add_class(const struct collect_group *group, const unsigned int *order,
		      const struct event_set *set, struct collect_sums *from,
		      enum window_class class, struct u192 *to)
{
	windows_add_values(group, order, set, collect_sums__values(from, group, class), to);
	windows_add_values(group, order, set, collect_sums__bursts(from, group, class), to);
}

/* Returns what the values of an event have to be multiplied by. */
static double factor_of(const struct collect_group *group, unsigned int slot)
{
	return collect_group__stretch(group, slot) * (group->scales ? group->scales[slot] : 1);
}

/*
 * Scales the values of a row to what the events have counted, and to the time in which they were to
 * count.
 */
static void stretch_values(const struct collect_group *group, const unsigned int *order,
			   const struct event_set *set, struct u192 *values)
{
	for (unsigned int i = 0; (group->times || group->scales) && i < group->nr_slots; i++) {
		const double own = factor_of(group, order[i]);

		if (own != 1)
			u192__stretch(&values[i], own);
		for (unsigned int j = i; j < group->nr_slots; j++) {
			const double both = own * factor_of(group, order[j]);

			if (both != 1)
				u192__stretch(&values[event_set__product(set, i, j)], both);
		}
	}
}

static int add_to_table(const struct collect_group *group, const unsigned int *order,
			const struct event_set *set, const struct collect_function *function,
			struct function_table *table)
{
	struct collect_sums *from = function->sums[group->index];
	struct function_sums *sums = function_table__add_sums(table, set, function->symbol,
							      function->dso, &function->address);
	struct u192 *begun;

	if (!sums)
		return -ENOMEM;
	/* Many functions of earlier spans have no window in this one. */
	if (collect_sums__is_empty(from))
		return 0;

	sums->opened = from->opened;
	sums->weight = from->weight;
	sums->squares = from->squares;
	sums->samples = from->samples;
	sums->matched = from->matched;
	sums->bursts = from->bursts;
	add_class(group, order, set, from, WINDOWS_BOTH, sums->values);
	add_class(group, order, set, from, WINDOWS_MATCHED, sums->values);
	stretch_values(group, order, set, sums->values);
	/* With windows of share mode auto in the set, only these begin. */
	if (group->desc.share == FUNCTION_SHARE_NONE && !event_set__counts_all(set))
		return 0;
	sums->begun = from->begun;
	sums->begun_bursts = from->begun_bursts;
	begun = sums->values + event_set__nr_values(set);
	add_class(group, order, set, from, WINDOWS_BOTH, begun);
	add_class(group, order, set, from, WINDOWS_BEGUN, begun);
	stretch_values(group, order, set, begun);
	return 0;
}

static bool windows_add_intervals(const struct collect_group *group, const unsigned int *order,
				  const struct event_set *set,
				  const struct function_intervals *from,
				  struct function_intervals *to)
{
	to->number += from->number;
	return !from->values || windows_add_values(group, order, set, from->values, to->values);
}

/* Adds the windows that count for a function to all windows. */
static bool add_matched(const struct collect_group *group, const unsigned int *order,
			struct event_set *set, const struct collect_function *function)
{
	struct collect_sums *sums = function->sums[group->index];
	const struct u192 *both = collect_sums__values(sums, group, WINDOWS_BOTH);
	const struct u192 *matched = collect_sums__values(sums, group, WINDOWS_MATCHED);
	struct u192 *to = set->windows.values;

	return group->desc.share != FUNCTION_SHARE_AUTO ||
	       (windows_add_values(group, order, set, both, to) &&
		windows_add_values(group, order, set, matched, to));
}

static int add_group(const struct window_collector *metrics, const struct collect_group *group,
		     struct function_table *table)
{
	unsigned int *order = collect_group__order(group);
	struct event_set *set = order ? collect_group__set(group, order, table) : NULL;
	int err = set ? 0 : -ENOMEM;

	for (const struct collect_function *function = metrics->functions; !err && function;
	     function = function->next) {
		if (group->index >= function->nr_sums || !function->sums[group->index])
			continue;
		err = add_to_table(group, order, set, function, table);
		if (!err && !add_matched(group, order, set, function))
			err = -ERANGE;
	}
	if (!err && (!windows_add_intervals(group, order, set, &group->windows, &set->windows) ||
		     !windows_add_intervals(group, order, set, &group->longs, &set->longs)))
		err = -ERANGE;
	free(order);
	return err ?: event_set__add_skids(set, group->skids, group->nr_skids);
}

static bool is_same_name(const struct function_sums *a, const struct function_sums *b)
{
	return !strcmp(a->symbol, b->symbol) && !strcmp(a->dso, b->dso);
}

/* A name that is unique in its DSO needs no address. */
static void windows_drop_addresses(struct function_table *table)
{
	for (size_t i = 0, next; i < table->nr_sums; i = next) {
		bool is_one = *table->sums[i]->symbol;

		for (next = i + 1; next < table->nr_sums; next++) {
			if (!is_same_name(table->sums[i], table->sums[next]))
				break;
			is_one &= table->sums[i]->address == table->sums[next]->address;
		}
		for (size_t j = i; is_one && j < next; j++) {
			table->sums[j]->has_address = false;
			table->sums[j]->address = 0;
		}
	}
}

/**
 * window_collector__table - make a table of all sums
 * @metrics: the collector
 * @table: empty; the table
 *
 * Return: 0, -ENOMEM, or -ERANGE if the sums are too large.
 */
int window_collector__table(const struct window_collector *metrics, struct function_table *table)
{
	/* Groups of the same events share a set, which has to know all of them first. */
	for (const struct collect_group *group = metrics->groups; group; group = group->next) {
		unsigned int *order;
		struct event_set *set;

		if (group->is_hidden)
			continue;
		order = collect_group__order(group);
		set = order ? collect_group__set(group, order, table) : NULL;
		free(order);
		if (!set)
			return -ENOMEM;
	}
	for (const struct collect_group *group = metrics->groups; group; group = group->next) {
		int err = group->is_hidden ? 0 : add_group(metrics, group, table);

		if (err)
			return err;
	}
	if (function_table__sort(table))
		return -ERANGE;
	windows_drop_addresses(table);
	function_table__drop_empty(table);
	return 0;
}
