/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_SUMS_H
#define __PERF_FUNCTIONS_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/types.h>

#include "../events.h"
#include "u192.h"

struct strlist;

/* More events than any group has. Each function has a product of each pair. */
#define FUNCTION_MAX_EVENTS	64

/* Rows of FUNCTION_BY_CHILDREN that are no functions: the roots of call chains. */
#define FUNCTION_ALL	"[all]"	/* chains that are complete */
#define FUNCTION_CUT	"[cut]"	/* chains that were too long to be recorded */

/* The DSO of all code of JITs, and the function of that without a name. */
#define FUNCTION_JIT		"[JIT]"
#define FUNCTION_UNNAMED	"[unnamed JIT code]"

/* This number of windows is enough to know how late windows end. */
#define FUNCTION_MOST_SKIDS	10000

/* Names of events are compared for each value of a table. Most differ in the first character. */
static inline bool equal_names(const char *one, const char *other)
{
	return one == other || (*one == *other && !strcmp(one, other));
}

/* Adds numbers, up to the largest one. */
static inline u64 add_saturated(u64 a, u64 b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* The keys that distinguish the rows of a table. */
enum function_by {
	FUNCTION_BY_SYMBOL,
	FUNCTION_BY_DSO,
	FUNCTION_BY_COMM,
	FUNCTION_BY_THREAD,
	FUNCTION_BY_PROCESS,
	FUNCTION_BY_CPU,
	FUNCTION_BY_PMU,
	FUNCTION_BY_SRCLINE,
	FUNCTION_BY_CALLCHAIN,
	FUNCTION_BY_CGROUP,
	FUNCTION_BY_CHILDREN,	/* functions, each with all its callees */
	FUNCTION_BY_MAX,
};

/* Room for the names of all keys, with a comma or NUL after each. */
#define FUNCTION_BY_SIZE	80

/* Selects the windows that count and the origin of shares. */
enum function_share {
	FUNCTION_SHARE_AUTO,	/* as discard, but shares of the samples that end a long interval */
	FUNCTION_SHARE_NONE,	/* all windows count */
	FUNCTION_SHARE_DISCARD,	/* windows with the same function at both ends count */
	FUNCTION_SHARE_CHOICES,
	/* No windows: each event samples itself, and a sample counts its period of the event. */
	FUNCTION_SHARE_SAMPLES = FUNCTION_SHARE_CHOICES,
	FUNCTION_SHARE_RECORDED,	/* the same, in the function of the last branch record */
	FUNCTION_SHARE_BRANCHES,	/* no windows: the path that branch records describe */
	FUNCTION_SHARE_MAX,
};

/* The origin of counts. */
enum function_source {
	FUNCTION_SOURCE_WINDOWS,
	FUNCTION_SOURCE_SAMPLES,	/* each event samples itself */
	FUNCTION_SOURCE_BRANCHES,	/* records of the last branches before a sample */
	FUNCTION_SOURCE_BEST,		/* a choice: the last of these that has a value */
	FUNCTION_SOURCE_MAX,
};

/* The way a group was recorded, and the share mode, which chooses the windows that count. */
struct function_group_desc {
	enum function_share share;	/* auto only if the group alternates */
	bool inherit;
	u64 sample_period;
	u64 sample_freq;
	/* Of branch records: the cycles that count, and those between them and the overflow. */
	u64 alternative_sample_period;
	u32 alternative_sample_count;
	u32 jitter_alternate_period;
};

/* Returns the largest change of an interval by jitter. */
static inline u64 function_jitter(u32 width, u64 period)
{
	const u32 bits = min(width, 63U);

	return bits ? min_t(u64, 1ULL << bits, period / 2) : 0;
}

/*
 * All intervals of one kind in all functions, except those with a throttle or lost record: totals
 * of the events, then products of pairs. Functions that the user does not want to see have theirs
 * here, too.
 */
struct function_intervals {
	u64 number;
	struct u192 *values;
};

/*
 * Events of a group: the leader, then the members by name. If each event samples itself, their
 * sums are those of windows that each counted the period of one event and nothing of the others.
 * If they are of branch records, a sample is a window for each function of its path.
 */
struct event_set {
	enum function_source source;
	char **events;
	unsigned int nr_events;
	struct function_group_desc *descs;
	unsigned int nr_descs;
	/* In share mode auto. */
	struct function_intervals windows;
	struct function_intervals longs;
	/* The delays of the ends of windows, up to FUNCTION_MOST_SKIDS; sums files have none. */
	u64 *skids;
	unsigned int nr_skids;
	/* By event, set by function_table__set_effects(). */
	struct function_effect *effects;
	/* By event, a bit: no group has samples of it that are late. Sums files do not tell. */
	u64 precise;
};

int event_set__find(const struct event_set *set, const char *event);
/* Values of pairs of events are found by the events' places, first <= second. */
unsigned int event_set__product(const struct event_set *set, unsigned int first,
				unsigned int second);
/* The number of values in function_intervals, in a reading, and before the begun ones in a row. */
unsigned int event_set__nr_values(const struct event_set *set);
/* The number of values in function_sums. */
unsigned int event_set__nr_row_values(const struct event_set *set);
bool event_set__has_share(const struct event_set *set, enum function_share share);
bool event_set__counts_all(const struct event_set *set);
bool event_set__is_complete(const struct event_set *set);

/*
 * Sums over the windows of a function that counted the events of a set. An address (in the DSO)
 * distinguishes functions of one name in one DSO. Without a symbol it stands for the name, which is
 * then empty. A row that is no function has its name in place of the symbol, and a DSO if it is in
 * one.
 */
struct function_sums {
	const struct event_set *set;
	char *symbol;
	char *dso;
	bool has_address;
	/* In a comparison: many windows leave the function on one side. */
	bool is_left;
	u64 address;
	/*
	 * In share mode auto: samples that end a long interval. So do all with branch records. Each
	 * has its period as weight: the sums of the weights and of their squares.
	 */
	u64 opened;
	struct u192 weight;
	struct u192 squares;
	u64 samples;
	u64 matched;
	/* Matched windows; successive ones of a burst count as one. */
	u64 bursts;
	/*
	 * In share mode auto: the windows that begin in the function, wherever they end, except
	 * those with a throttle or lost record; and their bursts. In share mode none: how
	 * many of the matched windows, which end in the function, begin there, too; and the first
	 * periods that end there, which are no windows. With branch records: the matched windows
	 * once more.
	 */
	u64 begun;
	u64 begun_bursts;
	/*
	 * Over the matched windows: the total of each event, then the product of each pair. Then
	 * the same over the windows that begin in the function. In share mode none: over the first
	 * periods. With branch records: over the matched windows, whose counts are multiplied by
	 * the weights of their samples.
	 */
	struct u192 values[];
};

/* All sums of a recording or of several, sorted by function, then by set. */
struct function_table {
	/* Names of keys, separated by commas; the name of a row has a part for each key. */
	char by[FUNCTION_BY_SIZE];
	/* Inlined functions have rows of their own. */
	bool inlines;
	struct event_set **sets;
	unsigned int nr_sets;
	struct function_sums **sums;
	size_t nr_sums;
	size_t allocated;
	u64 lost;
	u64 throttled;
	/* Sums of auto were added to sums of discard, so the result has the latter only. */
	bool was_mixed;
	/* By source: some of the inputs that were added up have it, others do not. */
	bool is_partial[FUNCTION_SOURCE_BEST];
	/* A recording lacks the threads and children that its tasks have started. */
	bool lacks_children;
	/* Events that have few samples for the number of new threads; NULL: none. */
	struct strlist *scarce;
	/* The sums of event samples were far from what the events have counted (recordings). */
	bool is_scaled;
	/* A process whose JIT has no map of its functions; 0: none, or not known (sums files). */
	int unmapped;
	struct strlist *builds;	/* files with rows, each with a tab and its build-id; NULL: none */
	/* The kinds of CPUs that counted, as perf_env__describe_cpu() has them; sorted. */
	char **cpus;
	unsigned int nr_cpus;
};

const char *function_source__name(enum function_source source);
int function_source__find(const char *name);
const char *function_share__name(enum function_share share);
int function_share__find(const char *name);
enum function_source function_share__source(enum function_share share);
const char *function_by__name(enum function_by by);
int function_by__parse(const char *by, enum function_by keys[FUNCTION_BY_MAX]);
void function_by__write(char *by, const enum function_by *keys, int nr);
bool function_by__has(const char *by, enum function_by key);
bool function_by__is(const char *by, enum function_by key);

struct event_set *function_table__findnew_set(struct function_table *table,
					      const char *const *events, unsigned int nr_events,
					      enum function_source source);
int event_set__add_desc(struct event_set *set, const struct function_group_desc *desc);
int event_set__add_skids(struct event_set *set, const u64 *skids, unsigned int nr);
int function_table__add_cpu(struct function_table *table, const char *cpu);
enum fn_vendor function_table__vendor(const struct function_table *table);
int function_table__add_scarce(struct function_table *table, const char *event);
int function_table__add_build(struct function_table *table, const char *build);
struct function_sums *function_table__add_sums(struct function_table *table,
					       const struct event_set *set, const char *symbol,
					       const char *dso, const u64 *address);
int function_table__sort(struct function_table *table);
int function_table__cut_chains(struct function_table *table, unsigned int depth);
int function_table__drop_addresses(struct function_table *table,
				   const struct function_table *other);
void function_table__drop_empty(struct function_table *table);
bool function_table__has_share(const struct function_table *table, enum function_share share);
void function_table__discard(struct function_table *table);
bool function_table__has_window(const struct function_table *table);
bool function_table__has_source(const struct function_table *table, enum function_source source);
int function_table__choose_source(struct function_table *table, enum function_source source);
void function_table__mark_left(struct function_table *table, const struct function_sums *function);
const char *function_table__add(struct function_table *table, const struct function_table *other);
const char *function_table__add_part(struct function_table *table,
				     const struct function_table *other);
void function_table__exit(struct function_table *table);

u64 function_sums__inside(const struct function_sums *sums);
bool function_sums__add(struct function_sums *sums, const struct function_sums *other);
bool function_sums__is_root(const struct function_sums *sums, const char *root);
bool function_sums__same_function(const struct function_sums *a, const struct function_sums *b);

#endif /* __PERF_FUNCTIONS_SUMS_H */
