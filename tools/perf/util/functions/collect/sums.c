// SPDX-License-Identifier: GPL-2.0
/*
 * Sums of what was counted in the windows of functions.
 *
 * The sums are exact, so that those of parts of a recording, of threads or of
 * hosts give the same result in whatever order they are added.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/overflow.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../../strlist.h"
#include "../text.h"
#include "sums.h"

/* Returns the place of a name among others, -1 if it is not there. */
static int find_name(const char *const *names, int nr, const char *name)
{
	for (int i = 0; i < nr; i++) {
		if (!strcmp(name, names[i]))
			return i;
	}
	return -1;
}

static const char *const source_names[FUNCTION_SOURCE_MAX] = {
	[FUNCTION_SOURCE_WINDOWS]	= "windows",
	[FUNCTION_SOURCE_SAMPLES]	= "samples",
	[FUNCTION_SOURCE_BRANCHES]	= "branches",
	[FUNCTION_SOURCE_BEST]		= "best",
};

/**
 * function_source__name - name a source
 * @source: the source
 *
 * Return: its name.
 */
const char *function_source__name(enum function_source source)
{
	return source_names[source];
}

/**
 * function_source__find - find a source
 * @name: its name
 *
 * Return: the source, -1 if there is none of this name.
 */
int function_source__find(const char *name)
{
	return find_name(source_names, FUNCTION_SOURCE_MAX, name);
}

static const char *const share_names[FUNCTION_SHARE_MAX] = {
	[FUNCTION_SHARE_AUTO]		= "auto",
	[FUNCTION_SHARE_NONE]		= "none",
	[FUNCTION_SHARE_DISCARD]	= "discard",
	[FUNCTION_SHARE_SAMPLES]	= "samples",
	[FUNCTION_SHARE_RECORDED]	= "recorded",
	[FUNCTION_SHARE_BRANCHES]	= "branches",
};

/**
 * function_share__name - name a share mode
 * @share: the mode
 *
 * Return: its name.
 */
const char *function_share__name(enum function_share share)
{
	return share_names[share];
}

/**
 * function_share__find - find a share mode
 * @name: its name
 *
 * Return: the mode, -1 if there is none of this name.
 */
int function_share__find(const char *name)
{
	return find_name(share_names, FUNCTION_SHARE_MAX, name);
}

/**
 * function_share__source - say where the counts of a share mode come from
 * @share: the mode
 *
 * Return: the source.
 */
enum function_source function_share__source(enum function_share share)
{
	return share == FUNCTION_SHARE_BRANCHES ? FUNCTION_SOURCE_BRANCHES :
	       share >= FUNCTION_SHARE_SAMPLES ? FUNCTION_SOURCE_SAMPLES :
	       FUNCTION_SOURCE_WINDOWS;
}

static const char *const by_names[FUNCTION_BY_MAX] = {
	[FUNCTION_BY_SYMBOL]	= "symbol",
	[FUNCTION_BY_DSO]	= "dso",
	[FUNCTION_BY_COMM]	= "comm",
	[FUNCTION_BY_THREAD]	= "thread",
	[FUNCTION_BY_PROCESS]	= "process",
	[FUNCTION_BY_CPU]	= "cpu",
	[FUNCTION_BY_PMU]	= "pmu",
	[FUNCTION_BY_SRCLINE]	= "srcline",
	[FUNCTION_BY_CALLCHAIN]	= "callchain",
	[FUNCTION_BY_CGROUP]	= "cgroup",
	[FUNCTION_BY_CHILDREN]	= "children",
};

/**
 * function_by__name - name a key
 * @by: the key
 *
 * Return: its name.
 */
const char *function_by__name(enum function_by by)
{
	return by_names[by];
}

/**
 * function_by__parse - read a list of keys
 * @by: their names, separated by commas
 * @keys: set to the keys
 *
 * As in perf report, pid is another name of FUNCTION_BY_PROCESS.
 *
 * Return: the number of keys; -1 if there is an unknown one, one of them is there twice, or
 * FUNCTION_BY_CHILDREN is not alone.
 */
int function_by__parse(const char *by, enum function_by keys[FUNCTION_BY_MAX])
{
	bool is_there[FUNCTION_BY_MAX] = {};
	int nr = 0;

	for (const char *end; ; by = end + 1) {
		int key = 0;

		end = strchrnul(by, ',');
		while (key < FUNCTION_BY_MAX && (strncmp(by, by_names[key], end - by) ||
						 by_names[key][end - by]))
			key++;
		if (key == FUNCTION_BY_MAX && end - by == 3 && strstarts(by, "pid"))
			key = FUNCTION_BY_PROCESS;
		if (key == FUNCTION_BY_MAX || is_there[key])
			return -1;
		is_there[key] = true;
		keys[nr++] = key;
		if (!*end)
			return is_there[FUNCTION_BY_CHILDREN] && nr > 1 ? -1 : nr;
	}
}

/**
 * function_by__write - write a list of keys with their own names
 * @by: set to the names, separated by commas; of FUNCTION_BY_SIZE
 * @keys: the keys
 * @nr: their number
 */
void function_by__write(char *by, const enum function_by *keys, int nr)
{
	size_t length = 0;

	for (int i = 0; i < nr; i++)
		length += scnprintf(by + length, FUNCTION_BY_SIZE - length, "%s%s", i ? "," : "",
				    by_names[keys[i]]);
}

/**
 * function_by__has - say whether a key is in a list
 * @by: names of keys, separated by commas
 * @key: the key
 *
 * Return: true or false.
 */
bool function_by__has(const char *by, enum function_by key)
{
	enum function_by keys[FUNCTION_BY_MAX];
	int nr = function_by__parse(by, keys);

	while (nr > 0 && keys[nr - 1] != key)
		nr--;
	return nr > 0;
}

/**
 * function_by__is - say whether a list is of one key only
 * @by: names of keys, separated by commas
 * @key: the key
 *
 * Return: true or false.
 */
bool function_by__is(const char *by, enum function_by key)
{
	return !strcmp(by, by_names[key]);
}

/**
 * event_set__find - find an event in a set
 * @set: the set
 * @event: the name of the event
 *
 * Return: its place, -1 if it is not there.
 */
int event_set__find(const struct event_set *set, const char *event)
{
	for (unsigned int i = 0; i < set->nr_events; i++) {
		if (equal_names(set->events[i], event))
			return i;
	}
	return -1;
}

/**
 * event_set__product - find the product of two events in function_sums.values
 * @set: the set
 * @first: place of one event in the set
 * @second: place of the other, not below @first
 *
 * Return: its place.
 */
unsigned int event_set__product(const struct event_set *set, unsigned int first,
				unsigned int second)
{
	/* nr totals; then a row of nr products, one of nr - 1, ... */
	return set->nr_events + first * set->nr_events - first * (first + 1) / 2 + second;
}

static unsigned int nr_products(const struct event_set *set)
{
	return set->nr_events * (set->nr_events + 1) / 2;
}

/**
 * event_set__nr_values - count the values of intervals: totals and products
 * @set: the set
 *
 * Return: their number.
 */
unsigned int event_set__nr_values(const struct event_set *set)
{
	return set->nr_events + nr_products(set);
}

/**
 * event_set__nr_row_values - count the values of a row: function_sums.values
 * @set: the set
 *
 * Return: their number.
 */
unsigned int event_set__nr_row_values(const struct event_set *set)
{
	return 2 * event_set__nr_values(set);
}

/**
 * event_set__has_share - say whether windows of a set were chosen in a share mode
 * @set: the set
 * @share: the mode
 *
 * Return: true or false.
 */
bool event_set__has_share(const struct event_set *set, enum function_share share)
{
	for (unsigned int i = 0; i < set->nr_descs; i++) {
		if (set->descs[i].share == share)
			return true;
	}
	return false;
}

/**
 * event_set__counts_all - say whether all windows of a set count, wherever they begin
 * @set: the set
 *
 * Return: true if they do: its groups are in share mode none.
 */
bool event_set__counts_all(const struct event_set *set)
{
	return event_set__has_share(set, FUNCTION_SHARE_NONE) &&
	       !event_set__has_share(set, FUNCTION_SHARE_AUTO) &&
	       !event_set__has_share(set, FUNCTION_SHARE_DISCARD);
}

/**
 * event_set__is_complete - say whether the windows of a set have all that was counted
 * @set: the set
 *
 * Return: true if each period is a window, and counts.
 */
bool event_set__is_complete(const struct event_set *set)
{
	for (unsigned int i = 0; i < set->nr_descs; i++) {
		const struct function_group_desc *desc = &set->descs[i];

		/* Equal periods mean one period with jitter. */
		if (desc->alternative_sample_period &&
		    (desc->sample_freq || desc->alternative_sample_period != desc->sample_period))
			return false;
	}
	return event_set__counts_all(set);
}

/* Windows come first. */
static int compare_events(const struct event_set *set, const char *const *events,
			  unsigned int nr_events, enum function_source source)
{
	if (set->source != source)
		return set->source < source ? -1 : 1;
	for (unsigned int i = 0; i < set->nr_events && i < nr_events; i++) {
		int ret = strcmp(set->events[i], events[i]);

		if (ret)
			return ret;
	}
	return (int)set->nr_events - (int)nr_events;
}

static void event_set__delete(struct event_set *set)
{
	for (unsigned int i = 0; i < set->nr_events; i++)
		free(set->events[i]);
	free(set->events);
	free(set->descs);
	free(set->windows.values);
	free(set->longs.values);
	free(set->skids);
	free(set->effects);
	free(set);
}

static struct event_set *event_set__new(const char *const *events, unsigned int nr_events)
{
	struct event_set *set = zalloc(sizeof(*set));

	if (!set)
		return NULL;

	set->precise = UINT64_MAX;
	set->events = calloc(nr_events, sizeof(*set->events));
	if (!set->events)
		goto out_delete;

	for (; set->nr_events < nr_events; set->nr_events++) {
		set->events[set->nr_events] = strdup(events[set->nr_events]);
		if (!set->events[set->nr_events])
			goto out_delete;
	}
	set->windows.values = calloc(event_set__nr_values(set), sizeof(struct u192));
	set->longs.values = calloc(event_set__nr_values(set), sizeof(struct u192));
	if (set->windows.values && set->longs.values)
		return set;

out_delete:
	event_set__delete(set);
	return NULL;
}

static int compare_sets(const struct event_set *a, const struct event_set *b)
{
	return compare_events(a, (const char *const *)b->events, b->nr_events, b->source);
}

/**
 * function_table__findnew_set - find a set of events, or begin one
 * @table: the table
 * @events: names of the events: the leader, then the members by name
 * @nr_events: number of them, at least one
 * @source: where their counts come from
 *
 * Return: the set, NULL without memory. The table keeps its sets sorted.
 */
struct event_set *function_table__findnew_set(struct function_table *table,
					      const char *const *events, unsigned int nr_events,
					      enum function_source source)
{
	struct event_set **sets, *set;
	unsigned int i;

	for (i = 0; i < table->nr_sets; i++) {
		int order = compare_events(table->sets[i], events, nr_events, source);

		if (!order)
			return table->sets[i];
		if (order > 0)
			break;
	}

	sets = realloc(table->sets, (table->nr_sets + 1) * sizeof(*sets));
	if (!sets)
		return NULL;
	table->sets = sets;

	set = event_set__new(events, nr_events);
	if (!set)
		return NULL;
	set->source = source;

	memmove(sets + i + 1, sets + i, (table->nr_sets - i) * sizeof(*sets));
	sets[i] = set;
	table->nr_sets++;
	return set;
}

/* Returns the set of a table that has the events of another table's set. */
static struct event_set *findnew_same_set(struct function_table *table,
					  const struct event_set *from)
{
	return function_table__findnew_set(table, (const char *const *)from->events,
					   from->nr_events, from->source);
}

static int compare_u64(u64 a, u64 b)
{
	return a < b ? -1 : a > b;
}

static int compare_descs(const void *one, const void *other)
{
	const struct function_group_desc *a = one, *b = other;

	return compare_u64(a->share, b->share) ?:
	       compare_u64(a->sample_period, b->sample_period) ?:
	       compare_u64(a->sample_freq, b->sample_freq) ?:
	       compare_u64(a->alternative_sample_period, b->alternative_sample_period) ?:
	       compare_u64(a->alternative_sample_count, b->alternative_sample_count) ?:
	       compare_u64(a->jitter_alternate_period, b->jitter_alternate_period) ?:
	       compare_u64(a->inherit, b->inherit);
}

/**
 * event_set__add_desc - describe a group whose windows are summed up in a set
 * @set: the set
 * @desc: how the group was recorded
 *
 * Return: 0, or -ENOMEM.
 */
int event_set__add_desc(struct event_set *set, const struct function_group_desc *desc)
{
	struct function_group_desc *descs;

	for (unsigned int i = 0; i < set->nr_descs; i++) {
		if (!compare_descs(&set->descs[i], desc))
			return 0;
	}

	descs = realloc(set->descs, (set->nr_descs + 1) * sizeof(*descs));
	if (!descs)
		return -ENOMEM;

	set->descs = descs;
	descs[set->nr_descs++] = *desc;
	return 0;
}

/**
 * event_set__add_skids - add how late windows have ended
 * @set: the set
 * @skids: how many events of the leader were counted after each overflow
 * @nr: their number
 *
 * Return: 0, or -ENOMEM.
 */
int event_set__add_skids(struct event_set *set, const u64 *skids, unsigned int nr)
{
	u64 *all;

	nr = min(nr, FUNCTION_MOST_SKIDS - set->nr_skids);
	if (!nr)
		return 0;
	all = realloc(set->skids, (set->nr_skids + nr) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	set->skids = all;
	memcpy(all + set->nr_skids, skids, nr * sizeof(*all));
	set->nr_skids += nr;
	return 0;
}

/**
 * function_table__add_cpu - add a kind of CPU that has counted
 * @table: the table
 * @cpu: as perf_env__describe_cpu() describes it
 *
 * Return: 0, or -ENOMEM. The table keeps its CPUs sorted.
 */
int function_table__add_cpu(struct function_table *table, const char *cpu)
{
	/* Messages print it. */
	char *printable = function_text__printable(cpu), **cpus;
	unsigned int i;
	int order = -1;

	if (!printable)
		return -ENOMEM;
	for (i = 0; i < table->nr_cpus; i++) {
		order = strcmp(printable, table->cpus[i]);
		if (order <= 0)
			break;
	}
	if (i < table->nr_cpus && !order) {
		free(printable);
		return 0;
	}

	cpus = realloc(table->cpus, (table->nr_cpus + 1) * sizeof(*cpus));
	if (!cpus) {
		free(printable);
		return -ENOMEM;
	}
	table->cpus = cpus;
	memmove(cpus + i + 1, cpus + i, (table->nr_cpus - i) * sizeof(*cpus));
	cpus[i] = printable;
	table->nr_cpus++;
	return 0;
}

/* Returns the vendors of a table's CPUs, as bits. */
static unsigned int vendors_of(const struct function_table *table)
{
	unsigned int vendors = 0;

	for (unsigned int i = 0; i < table->nr_cpus; i++)
		vendors |= 1 << fn_cpu__vendor(table->cpus[i]);
	return vendors & ~(1 << FN_VENDOR_UNKNOWN);
}

/**
 * function_table__vendor - say whose CPUs have counted
 * @table: the table
 *
 * Return: the vendor, FN_VENDOR_UNKNOWN if there are several.
 */
enum fn_vendor function_table__vendor(const struct function_table *table)
{
	const unsigned int vendors = vendors_of(table);

	return is_power_of_2(vendors) ? (enum fn_vendor)ilog2(vendors) :
					FN_VENDOR_UNKNOWN;
}

static int add_text(struct strlist **list, const char *text)
{
	int err;

	*list = *list ?: strlist__new(NULL, NULL);
	err = *list ? strlist__add(*list, text) : -ENOMEM;
	return err == -EEXIST ? 0 : err;
}

/**
 * function_table__add_scarce - add an event that has too few samples for the number of threads
 * @table: the table
 * @event: name of the event
 *
 * Return: 0, or -ENOMEM.
 */
int function_table__add_scarce(struct function_table *table, const char *event)
{
	return add_text(&table->scarce, event);
}

/**
 * function_table__add_build - add the build of a file with rows
 * @table: the table
 * @build: the path, a tab, and the build-id
 *
 * Return: 0, or -ENOMEM.
 */
int function_table__add_build(struct function_table *table, const char *build)
{
	return add_text(&table->builds, build);
}

static void function_sums__delete(struct function_sums *sums)
{
	free(sums->symbol);
	free(sums->dso);
	free(sums);
}

/**
 * function_table__add_sums - begin the sums of a function
 * @table: the table
 * @set: the events, a set of the table
 * @symbol: name of the function, "" if it has none
 * @dso: path of its DSO, "" if it is not known
 * @address: its address in the DSO, NULL if it needs none
 *
 * Return: sums of 0 windows, NULL without memory.
 */
struct function_sums *function_table__add_sums(struct function_table *table,
					       const struct event_set *set, const char *symbol,
					       const char *dso, const u64 *address)
{
	struct function_sums *sums;

	if (table->nr_sums == table->allocated) {
		size_t allocated = table->allocated ? 2 * table->allocated : 64;
		struct function_sums **all = realloc(table->sums, allocated * sizeof(*all));

		if (!all)
			return NULL;
		table->sums = all;
		table->allocated = allocated;
	}

	sums = zalloc(sizeof(*sums) + event_set__nr_row_values(set) * sizeof(*sums->values));
	if (!sums)
		return NULL;

	sums->set = set;
	sums->symbol = strdup(symbol);
	sums->dso = strdup(dso);
	sums->has_address = address;
	sums->address = address ? *address : 0;
	if (!sums->symbol || !sums->dso) {
		function_sums__delete(sums);
		return NULL;
	}
	table->sums[table->nr_sums++] = sums;
	return sums;
}

static int sums_compare_functions(const struct function_sums *a, const struct function_sums *b)
{
	return strcmp(a->symbol, b->symbol) ?: strcmp(a->dso, b->dso) ?:
	       compare_u64(a->address, b->address) ?:
	       (int)a->has_address - (int)b->has_address;
}

/**
 * function_sums__is_root - say whether sums are of a root of call chains
 * @sums: the sums, of a table by FUNCTION_BY_CHILDREN
 * @root: FUNCTION_ALL or FUNCTION_CUT
 *
 * Return: true or false. A function of this name has a DSO.
 */
bool function_sums__is_root(const struct function_sums *sums, const char *root)
{
	return !strcmp(sums->symbol, root) && !*sums->dso && !sums->has_address;
}

/**
 * function_sums__same_function - say whether two sums are of one function
 * @a: one
 * @b: the other
 *
 * Return: true or false.
 */
bool function_sums__same_function(const struct function_sums *a, const struct function_sums *b)
{
	return !sums_compare_functions(a, b);
}

static int compare_sums(const void *one, const void *other)
{
	const struct function_sums *a = *(struct function_sums *const *)one;
	const struct function_sums *b = *(struct function_sums *const *)other;

	return sums_compare_functions(a, b) ?: compare_sets(a->set, b->set);
}

static bool sums_add_values(struct u192 *values, const struct u192 *others, unsigned int nr)
{
	bool fits = true;

	for (unsigned int i = 0; i < nr; i++)
		fits = u192__add(&values[i], &others[i]) && fits;
	return fits;
}

/**
 * function_sums__inside - count the windows that begin and end in a function, of those that count
 * @sums: the sums of the function
 *
 * Return: their number.
 */
u64 function_sums__inside(const struct function_sums *sums)
{
	return event_set__counts_all(sums->set) ? sums->begun : sums->matched;
}

/**
 * function_sums__add - add the windows of other sums
 * @sums: the sums
 * @other: the added sums, of the same events
 *
 * Return: false if they are too many.
 */
bool function_sums__add(struct function_sums *sums, const struct function_sums *other)
{
	bool fits = !check_add_overflow(sums->opened, other->opened, &sums->opened);
	const unsigned int begun = event_set__nr_values(sums->set);

	/* A row never has more matched windows than samples. */
	fits = !check_add_overflow(sums->samples, other->samples, &sums->samples) && fits;
	sums->matched += other->matched;
	sums->bursts += other->bursts;
	fits = !check_add_overflow(sums->begun, other->begun, &sums->begun) && fits;
	sums->begun_bursts += other->begun_bursts;
	if (other->opened) {
		fits = u192__add(&sums->weight, &other->weight) && fits;
		fits = u192__add(&sums->squares, &other->squares) && fits;
	}
	/* The sums over no windows are 0. */
	if (other->matched)
		fits = sums_add_values(sums->values, other->values, begun) && fits;
	if (other->begun || other->begun_bursts)
		fits = sums_add_values(sums->values + begun, other->values + begun, begun) && fits;
	return fits;
}

static bool sums_add_intervals(const struct event_set *set, struct function_intervals *intervals,
			       const struct function_intervals *other)
{
	bool fits = !check_add_overflow(intervals->number, other->number, &intervals->number);

	return sums_add_values(intervals->values, other->values, event_set__nr_values(set)) && fits;
}

/* Adds the totals of all intervals. */
static bool event_set__add(struct event_set *set, const struct event_set *other)
{
	bool fits = sums_add_intervals(set, &set->windows, &other->windows);

	set->precise &= other->precise;
	zfree(&set->effects);
	return sums_add_intervals(set, &set->longs, &other->longs) && fits;
}

/* Returns true if each row is less than the next one. */
static bool is_sorted(const struct function_table *table)
{
	for (size_t i = 1; i < table->nr_sums; i++) {
		if (compare_sums(&table->sums[i - 1], &table->sums[i]) >= 0)
			return false;
	}
	return true;
}

/**
 * function_table__sort - sort a table and add up equal rows
 * @table: the table
 *
 * Return: 0, or -ERANGE if sums are too large to be added.
 */
int function_table__sort(struct function_table *table)
{
	size_t nr = 0;
	int err = 0;

	for (unsigned int i = 0; i < table->nr_sets; i++) {
		qsort(table->sets[i]->descs, table->sets[i]->nr_descs,
		      sizeof(*table->sets[i]->descs), compare_descs);
	}

	if (is_sorted(table))
		return 0;

	qsort(table->sums, table->nr_sums, sizeof(*table->sums), compare_sums);
	for (size_t i = 1; i < table->nr_sums; i++) {
		if (compare_sums(&table->sums[nr], &table->sums[i])) {
			table->sums[++nr] = table->sums[i];
		} else {
			if (!function_sums__add(table->sums[nr], table->sums[i]))
				err = -ERANGE;
			function_sums__delete(table->sums[i]);
		}
	}
	table->nr_sums = nr + 1;
	return err;
}

/**
 * function_table__cut_chains - keep the outermost functions of call chains
 * @table: the table, by FUNCTION_BY_CALLCHAIN
 * @depth: the number of functions, 0 to add up all chains
 *
 * Return: 0, -ENOMEM, or -ERANGE if sums are too large to be added.
 */
int function_table__cut_chains(struct function_table *table, unsigned int depth)
{
	for (size_t i = 0; i < table->nr_sums; i++) {
		struct function_sums *sums = table->sums[i];
		const char *begin = sums->symbol + strlen(sums->symbol);
		unsigned int left = depth;
		char *cut;

		while (depth && begin > sums->symbol && (begin[-1] != ';' || --left))
			begin--;
		cut = strdup(depth ? begin : FUNCTION_ALL);
		if (!cut)
			return -ENOMEM;
		free(sums->symbol);
		sums->symbol = cut;
		*sums->dso = '\0';
		sums->has_address = false;
		sums->address = 0;
	}
	return function_table__sort(table);
}

/* Returns the place of the first sums that are not less than those of the function. */
static size_t sums_find_place(const struct function_table *table,
			      const struct function_sums *function)
{
	size_t first = 0, end = table->nr_sums;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (sums_compare_functions(table->sums[middle], function) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

static int compare_base_names(const void *one, const void *other)
{
	const struct function_sums *a = *(struct function_sums *const *)one;
	const struct function_sums *b = *(struct function_sums *const *)other;

	return strcmp(a->symbol, b->symbol) ?:
	       strcmp(function_text__base_name(a->dso), function_text__base_name(b->dso));
}

/* Returns the sums of a table that have a symbol without an address, by file name. */
static struct function_sums **without_address(const struct function_table *table, size_t *nr)
{
	struct function_sums **all = calloc(table->nr_sums ?: 1, sizeof(*all));

	*nr = 0;
	for (size_t i = 0; all && i < table->nr_sums; i++) {
		if (!table->sums[i]->has_address)
			all[(*nr)++] = table->sums[i];
	}
	if (all)
		qsort(all, *nr, sizeof(*all), compare_base_names);
	return all;
}

/**
 * function_table__drop_addresses - drop addresses that another table lacks
 * @table: the table, sorted
 * @other: a sorted table that it will be compared with
 *
 * Where @other has one function of a name in a DSO, without an address, it may be any
 * of those in @table, so these get one row. If @other has no DSO of this path, one with
 * the same file name counts.
 *
 * Return: 0, -ENOMEM, or -ERANGE if sums are too large to be added.
 */
int function_table__drop_addresses(struct function_table *table,
				   const struct function_table *other)
{
	size_t nr;
	struct function_sums **plain = without_address(other, &nr);

	if (!plain)
		return -ENOMEM;
	for (size_t i = 0; i < table->nr_sums; i++) {
		struct function_sums *sums = table->sums[i];
		struct function_sums first = { .symbol = sums->symbol, .dso = sums->dso };
		size_t place;
		bool is_there;

		if (!sums->has_address || !*sums->symbol)
			continue;
		place = sums_find_place(other, &first);
		is_there = place < other->nr_sums &&
			   !strcmp(other->sums[place]->symbol, sums->symbol) &&
			   !strcmp(other->sums[place]->dso, sums->dso);
		/* Sums without an address come first. */
		if (is_there ? !other->sums[place]->has_address :
			       !!bsearch(&sums, plain, nr, sizeof(*plain), compare_base_names)) {
			sums->has_address = false;
			sums->address = 0;
		}
	}
	free(plain);
	return function_table__sort(table);
}

/**
 * function_table__drop_empty - remove the sums of no sample
 * @table: the table
 */
void function_table__drop_empty(struct function_table *table)
{
	size_t nr = 0;

	for (size_t i = 0; i < table->nr_sums; i++) {
		const struct function_sums *sums = table->sums[i];

		if (sums->samples || sums->opened || sums->begun)
			table->sums[nr++] = table->sums[i];
		else
			function_sums__delete(table->sums[i]);
	}
	table->nr_sums = nr;
}

/**
 * function_table__has_share - say whether windows of a table were chosen in a share mode
 * @table: the table
 * @share: the share mode
 *
 * Return: true or false.
 */
bool function_table__has_share(const struct function_table *table, enum function_share share)
{
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		if (event_set__has_share(table->sets[i], share))
			return true;
	}
	return false;
}

static void clear_intervals(const struct event_set *set, struct function_intervals *intervals)
{
	intervals->number = 0;
	memset(intervals->values, 0, event_set__nr_values(set) * sizeof(*intervals->values));
}

/**
 * function_table__discard - turn sums of share mode auto into those of discard
 * @table: the table
 *
 * The matched windows are the same in both modes.
 */
void function_table__discard(struct function_table *table)
{
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		struct event_set *set = table->sets[i];
		unsigned int nr = 0;

		for (unsigned int j = 0; j < set->nr_descs; j++) {
			if (set->descs[j].share == FUNCTION_SHARE_AUTO)
				set->descs[j].share = FUNCTION_SHARE_DISCARD;
		}
		qsort(set->descs, set->nr_descs, sizeof(*set->descs), compare_descs);
		/* Groups that differed only in the mode are now the same. */
		for (unsigned int j = 0; j < set->nr_descs; j++) {
			if (!nr || compare_descs(&set->descs[nr - 1], &set->descs[j]))
				set->descs[nr++] = set->descs[j];
		}
		set->nr_descs = nr;
		clear_intervals(set, &set->windows);
		clear_intervals(set, &set->longs);
	}
	for (size_t i = 0; i < table->nr_sums; i++) {
		struct function_sums *sums = table->sums[i];
		unsigned int begun = event_set__nr_values(sums->set);

		if (event_set__counts_all(sums->set) ||
		    sums->set->source != FUNCTION_SOURCE_WINDOWS)
			continue;
		sums->opened = 0;
		sums->weight = (struct u192){};
		sums->squares = (struct u192){};
		sums->begun = 0;
		sums->begun_bursts = 0;
		memset(sums->values + begun, 0,
		       (event_set__nr_row_values(sums->set) - begun) * sizeof(*sums->values));
	}
	function_table__drop_empty(table);
}

/**
 * function_table__has_window - say whether a table has any window
 * @table: the table
 *
 * Return: true or false.
 */
bool function_table__has_window(const struct function_table *table)
{
	for (size_t i = 0; i < table->nr_sums; i++) {
		if (table->sums[i]->samples)
			return true;
	}
	return false;
}

/**
 * function_table__has_source - say whether a table has counts of a source
 * @table: the table
 * @source: the source
 *
 * Return: true or false.
 */
bool function_table__has_source(const struct function_table *table, enum function_source source)
{
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		if (table->sets[i]->source == source)
			return true;
	}
	return false;
}

/**
 * function_table__choose_source - keep the sums of one source
 * @table: the table
 * @source: the source
 *
 * Return: 0, or -ENOENT if the table has no event of it.
 */
int function_table__choose_source(struct function_table *table, enum function_source source)
{
	unsigned int nr = 0;

	if (source == FUNCTION_SOURCE_BEST)
		return 0;
	for (size_t i = 0; i < table->nr_sums; i++) {
		if (table->sums[i]->set->source == source)
			continue;
		table->sums[i]->samples = 0;
		table->sums[i]->opened = 0;
		table->sums[i]->begun = 0;
	}
	function_table__drop_empty(table);
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		if (table->sets[i]->source == source)
			table->sets[nr++] = table->sets[i];
		else
			event_set__delete(table->sets[i]);
	}
	table->nr_sets = nr;
	return nr ? 0 : -ENOENT;
}

/**
 * function_table__mark_left - note that many windows leave a function
 * @table: the table, sorted
 * @function: its sums in this table or another one
 */
void function_table__mark_left(struct function_table *table, const struct function_sums *function)
{
	for (size_t i = sums_find_place(table, function);
	     i < table->nr_sums && !sums_compare_functions(table->sums[i], function); i++)
		table->sums[i]->is_left = true;
}

/* Windows chosen in different modes do not add up, but auto chooses like discard. */
static bool event_set__same_share(const struct event_set *a, const struct event_set *b)
{
	return event_set__has_share(a, FUNCTION_SHARE_NONE) ==
	       event_set__has_share(b, FUNCTION_SHARE_NONE) &&
	       (event_set__has_share(a, FUNCTION_SHARE_AUTO) ||
		event_set__has_share(a, FUNCTION_SHARE_DISCARD)) ==
	       (event_set__has_share(b, FUNCTION_SHARE_AUTO) ||
		event_set__has_share(b, FUNCTION_SHARE_DISCARD));
}

/* A group without samples is not in a table, so one table may have more groups than the other. */
static const char *check_same_sets(const struct function_table *a, const struct function_table *b)
{
	const struct function_table *less = a->nr_sets <= b->nr_sets ? a : b;
	const struct function_table *more = less == a ? b : a;

	if (strcmp(a->by, b->by) || a->inlines != b->inlines)
		return "its rows are of another kind (--by, --children, --inline)";

	for (unsigned int i = 0; i < less->nr_sets; i++) {
		const struct event_set *set = less->sets[i];
		unsigned int j = 0;

		while (j < more->nr_sets && compare_sets(more->sets[j], set))
			j++;
		if (j == more->nr_sets)
			return "it has other events or sources (name one with all groups first)";
		if (!event_set__same_share(more->sets[j], set))
			return "its windows have another share mode";
	}
	return NULL;
}

static bool has_event(const struct function_table *table, const char *name)
{
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		if (event_set__find(table->sets[i], name) >= 0)
			return true;
	}
	return false;
}

/* Events of one name may count different things on the CPUs of two vendors. */
static const char *check_vendors(const struct function_table *a, const struct function_table *b)
{
	bool differs = false;

	for (unsigned int i = 0; i < b->nr_sets; i++) {
		const struct event_set *set = b->sets[i];

		for (unsigned int j = 0; j < set->nr_events; j++)
			differs |= !fn_event__is_portable(set->events[j]) &&
				   has_event(a, set->events[j]);
	}
	if (!differs || hweight32(vendors_of(a) | vendors_of(b)) < 2)
		return NULL;
	return "an event of the same name counts something else on the CPU of another vendor";
}

static int add_descs(struct event_set *set, const struct event_set *from)
{
	for (unsigned int i = 0; i < from->nr_descs; i++) {
		if (event_set__add_desc(set, &from->descs[i]))
			return -ENOMEM;
	}
	return 0;
}

/* Begins sums of a function of another table. */
static struct function_sums *begin_same_sums(struct function_table *table,
					     const struct function_sums *from)
{
	const u64 *address = from->has_address ? &from->address : NULL;
	struct event_set *set = findnew_same_set(table, from->set);

	return set ? function_table__add_sums(table, set, from->symbol, from->dso, address) : NULL;
}

/**
 * function_table__add_part - add the sums of another part of the same recording
 * @table: the table, sorted
 * @other: the added table, sorted
 *
 * Each may lack groups: they are known from their first sample on.
 *
 * Return: NULL, or why they do not add up.
 */
const char *function_table__add_part(struct function_table *table,
				     const struct function_table *other)
{
	const size_t nr = table->nr_sums;
	struct str_node *build;
	bool fits = true;

	if (!table->nr_sets) {
		memcpy(table->by, other->by, sizeof(table->by));
		table->inlines = other->inlines;
	}

	for (unsigned int i = 0; i < other->nr_cpus; i++) {
		if (function_table__add_cpu(table, other->cpus[i]))
			return "not enough memory";
	}
	for (build = other->builds ? strlist__first(other->builds) : NULL; build;
	     build = strlist__next(build)) {
		if (function_table__add_build(table, build->s))
			return "not enough memory";
	}
	for (build = other->scarce ? strlist__first(other->scarce) : NULL; build;
	     build = strlist__next(build)) {
		if (function_table__add_scarce(table, build->s))
			return "not enough memory";
	}
	table->is_scaled |= other->is_scaled;
	for (unsigned int i = 0; i < other->nr_sets; i++) {
		const struct event_set *from = other->sets[i];
		struct event_set *set = findnew_same_set(table, from);

		if (!set || add_descs(set, from) ||
		    event_set__add_skids(set, from->skids, from->nr_skids))
			return "not enough memory";
		fits = event_set__add(set, from) && fits;
	}

	/* Rows that only the other table has come after those of this one until they are sorted. */
	for (size_t i = 0, own = 0; i < other->nr_sums; i++) {
		const struct function_sums *from = other->sums[i];
		struct function_sums *sums;
		int order = 1;

		while (own < nr && (order = compare_sums(&table->sums[own], &from)) < 0)
			own++;
		sums = order ? begin_same_sums(table, from) : table->sums[own];
		if (!sums)
			return "not enough memory";
		fits = function_sums__add(sums, from) && fits;
	}
	table->lost = add_saturated(table->lost, other->lost);
	table->throttled = add_saturated(table->throttled, other->throttled);
	table->was_mixed |= other->was_mixed;
	table->lacks_children |= other->lacks_children;
	table->unmapped = table->unmapped ?: other->unmapped;
	if (function_table__sort(table) || !fits)
		return "the sums become too large";
	if (function_table__has_share(table, FUNCTION_SHARE_AUTO) &&
	    function_table__has_share(table, FUNCTION_SHARE_DISCARD)) {
		function_table__discard(table);
		table->was_mixed = true;
	}
	return NULL;
}

/* Notes the sources that only one of two tables has. An input without windows lacks nothing. */
static void note_partial(struct function_table *table, const struct function_table *other)
{
	const bool is_first = !function_table__has_window(table);

	for (int source = 0; function_table__has_window(other) && source < FUNCTION_SOURCE_BEST;
	     source++)
		table->is_partial[source] |= other->is_partial[source] ||
			(!is_first && function_table__has_source(table, source) !=
				      function_table__has_source(other, source));
}

/**
 * function_table__add - add the sums of one table to those of another
 * @table: the table
 * @other: the added table
 *
 * Return: NULL, or why they do not add up.
 */
const char *function_table__add(struct function_table *table, const struct function_table *other)
{
	const char *reason = table->nr_sets ? check_same_sets(table, other) ?:
					      check_vendors(table, other) : NULL;

	if (!reason)
		note_partial(table, other);
	return reason ?: function_table__add_part(table, other);
}

/**
 * function_table__exit - free what a table holds
 * @table: the table, empty afterwards
 */
void function_table__exit(struct function_table *table)
{
	for (unsigned int i = 0; i < table->nr_sets; i++)
		event_set__delete(table->sets[i]);
	for (size_t i = 0; i < table->nr_sums; i++)
		function_sums__delete(table->sums[i]);
	for (unsigned int i = 0; i < table->nr_cpus; i++)
		free(table->cpus[i]);
	free(table->cpus);
	strlist__delete(table->builds);
	strlist__delete(table->scarce);
	free(table->sets);
	free(table->sums);
	memset(table, 0, sizeof(*table));
}
