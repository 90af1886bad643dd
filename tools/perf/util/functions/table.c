// SPDX-License-Identifier: GPL-2.0
/* The table of perf functions: rows, and the sums of their observations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bitops.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#include "../debug.h"
#include "functions.h"

/* Sums of more than a million functions, each with five events; a crafted recording has more. */
#define MOST_MEMORY	(4ULL << 30)

const struct fn_source *const fn_sources[] = {
	&fn_branches, &fn_operations, &fn_samples, &fn_windows, NULL,
};

const struct fn_source *fn_source__find(const char *name)
{
	for (int i = 0; fn_sources[i]; i++) {
		if (!strcmp(fn_sources[i]->name, name))
			return fn_sources[i];
	}
	return NULL;
}

/* Rows without an address come first. */
static int compare_rows(const struct fn_row *a, const struct fn_row *b)
{
	return strcmp(a->symbol, b->symbol) ?: strcmp(a->dso, b->dso) ?:
	       a->has_address - b->has_address ?:
	       (a->address < b->address ? -1 : a->address > b->address);
}

static void free_set(struct fn_set *set)
{
	for (unsigned int i = 0; i < set->nr_events; i++)
		free((void *)set->events[i].name);
	free(set->events);
	free(set->groups);
	free(set->total);
	free(set->windows);
	free(set->longs);
	free(set);
}

static void free_row(struct fn_row *row)
{
	for (unsigned int i = 0; i < row->nr_sums; i++)
		free(row->sums[i]);
	free(row->sums);
	free(row->symbol);
	free(row->dso);
	free(row->label);
	free(row->parts);
	free(row);
}

void fn_table__exit(struct fn_table *table)
{
	fn_table__for_each_set(table, set)
		free_set(set);
	fn_table__for_each_row(table, row)
		free_row(row);
	for (unsigned int i = 0; i < table->nr_cpus; i++)
		free(table->cpus[i]);
	free(table->sets);
	free(table->rows);
	free(table->cpus);
	*table = (struct fn_table){};
}

/* Keeps them sorted, each once. */
int fn_table__add_cpu(struct fn_table *table, const char *cpu)
{
	char **cpus = realloc(table->cpus, (table->nr_cpus + 1) * sizeof(*cpus));
	char *own = strdup(cpu);
	unsigned int i = 0;

	table->cpus = cpus ?: table->cpus;
	while (i < table->nr_cpus && strcmp(table->cpus[i], cpu) < 0)
		i++;
	if (!cpus || !own || (i < table->nr_cpus && !strcmp(cpus[i], cpu))) {
		free(own);
		return cpus && own ? 0 : -ENOMEM;
	}
	memmove(cpus + i + 1, cpus + i, (table->nr_cpus++ - i) * sizeof(*cpus));
	cpus[i] = own;
	return 0;
}

/* Returns a bit for each vendor whose CPUs have counted. */
static unsigned int vendors_of(const struct fn_table *table)
{
	unsigned int vendors = 0;

	for (unsigned int i = 0; i < table->nr_cpus; i++)
		vendors |= BIT(fn_cpu__vendor(table->cpus[i]));
	return vendors & ~BIT(FN_VENDOR_UNKNOWN);
}

enum fn_vendor fn_table__vendor(const struct fn_table *table)
{
	const unsigned int vendors = vendors_of(table);

	return hweight32(vendors) == 1 ? ffs(vendors) - 1 : FN_VENDOR_UNKNOWN;
}

int fn_set__find(const struct fn_set *set, const char *event)
{
	for (unsigned int i = 0; i < set->nr_events; i++) {
		const char *name = set->events[i].name;

		if (name == event || (*name == *event && !strcmp(name, event)))
			return i;
	}
	return -1;
}

size_t fn_set__nr_values(const struct fn_set *set)
{
	const size_t nr = set->nr_events;

	return set->source->is_joint ? nr + nr * (nr + 1) / 2 : (3 + FN_NR_BINS) * nr;
}

static size_t sums_size(const struct fn_set *set)
{
	return sizeof(struct fn_sums) + fn_set__nr_values(set) * sizeof(double);
}

double fn_sums__product(const struct fn_set *set, const struct fn_sums *sums, unsigned int a,
			unsigned int b)
{
	const unsigned int nr = set->nr_events, first = min(a, b), second = max(a, b);

	/* nr totals; then a row of nr products, one of nr - 1, ... */
	if (set->source->is_joint)
		return sums->values[nr + first * nr - first * (first + 1) / 2 + second];
	return a == b ? sums->values[nr + a] : 0;
}

int fn_set__add_group(struct fn_set *set, const struct fn_group *group)
{
	struct fn_group *groups;

	for (unsigned int i = 0; i < set->nr_groups; i++) {
		const struct fn_group *own = &set->groups[i];

		if (own->period == group->period && own->freq == group->freq &&
		    own->window == group->window && own->burst == group->burst &&
		    own->jitter == group->jitter && own->inherit == group->inherit)
			return 0;
	}
	groups = realloc(set->groups, (set->nr_groups + 1) * sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	set->groups = groups;
	groups[set->nr_groups++] = *group;
	return 0;
}

static int compare_events(const void *one, const void *other)
{
	const struct fn_event *a = one, *b = other;

	return strcmp(a->name, b->name);
}

void fn_event__merge(struct fn_event *event, const struct fn_event *other)
{
	event->is_precise &= other->is_precise;
	event->is_throttled |= other->is_throttled;
	event->is_stretched |= other->is_stretched;
	event->is_scarce |= other->is_scarce;
	if (fabs(other->scale - 1) > fabs(event->scale - 1))
		event->scale = other->scale;
}

struct fn_set *fn_table__new_set(struct fn_table *table, const struct fn_source *source,
				 const struct fn_group *group, const struct fn_event *events,
				 unsigned int nr_events)
{
	struct fn_set **sets = realloc(table->sets, (table->nr_sets + 1) * sizeof(*sets));
	struct fn_set *set = zalloc(sizeof(*set));

	if (sets)
		table->sets = sets;
	if (!sets || !set) {
		free(set);
		return NULL;
	}
	set->source = source;
	set->index = table->nr_sets;
	set->is_complete = true;
	set->is_recorded = true;
	set->even = source->is_even ? set : NULL;
	sets[table->nr_sets++] = set;
	set->events = calloc(nr_events, sizeof(*events));
	for (; set->events && set->nr_events < nr_events; set->nr_events++) {
		struct fn_event *event = &set->events[set->nr_events];

		*event = events[set->nr_events];
		event->name = strdup(event->name);
		if (!event->name)
			return NULL;
	}
	set->total = zalloc(sums_size(set));
	set->windows = zalloc(sums_size(set));
	set->longs = zalloc(sums_size(set));
	if (!set->events || !set->total || !set->windows || !set->longs)
		return NULL;
	return group && fn_set__add_group(set, group) ? NULL : set;
}

static struct fn_set *find_set(const struct fn_table *table, const struct fn_source *source,
			       const struct fn_event *events, unsigned int nr_events)
{
	fn_table__for_each_set(table, set) {
		unsigned int nr = 0;

		if (set->is_dropped || set->source != source || set->nr_events != nr_events)
			continue;
		while (nr < nr_events && !strcmp(set->events[nr].name, events[nr].name))
			nr++;
		if (nr == nr_events)
			return set;
	}
	return NULL;
}

struct fn_set *fn_table__findnew_set(struct fn_table *table, const struct fn_source *source,
				     const struct fn_group *group, const struct fn_event *events,
				     unsigned int nr_events)
{
	struct fn_event sorted[FN_MOST_EVENTS];
	struct fn_set *set;

	memcpy(sorted, events, nr_events * sizeof(*events));
	qsort(sorted + 1, nr_events - 1, sizeof(*sorted), compare_events);
	set = find_set(table, source, sorted, nr_events);
	if (!set)
		return fn_table__new_set(table, source, group, sorted, nr_events);
	for (unsigned int i = 0; i < nr_events; i++)
		fn_event__merge(&set->events[i], &sorted[i]);
	return group && fn_set__add_group(set, group) ? NULL : set;
}

struct fn_row *fn_table__new_row(struct fn_table *table, const char *symbol, const char *dso,
				 const u64 *address)
{
	struct fn_row *row = zalloc(sizeof(*row)), **rows = table->rows;

	if (table->nr_rows == table->nr_allocated) {
		const size_t nr = table->nr_allocated ? 2 * table->nr_allocated : 64;

		rows = realloc(table->rows, nr * sizeof(*rows));
		if (rows) {
			table->rows = rows;
			table->nr_allocated = nr;
		}
	}
	if (row) {
		row->symbol = strdup(symbol);
		row->dso = strdup(dso);
		row->has_address = address;
		row->address = address ? *address : 0;
	}
	if (!row || !rows || !row->symbol || !row->dso) {
		if (row)
			free_row(row);
		return NULL;
	}
	rows[table->nr_rows++] = row;
	return row;
}

struct fn_sums *fn_row__new_sums(struct fn_table *table, struct fn_row *row,
				 const struct fn_set *set)
{
	const unsigned int nr = max(row->nr_sums, set->index + 1);
	struct fn_sums **all = row->sums;

	table->allocated += sums_size(set);
	if (table->allocated > MOST_MEMORY) {
		fn_err("the sums of all rows would take more than 4 GB: choose fewer rows (--by dso, --by comm), or record fewer events");
		return NULL;
	}
	if (nr > row->nr_sums) {
		all = realloc(row->sums, nr * sizeof(*all));
		if (!all)
			return NULL;
		row->sums = all;
		while (row->nr_sums < nr)
			all[row->nr_sums++] = NULL;
	}
	all[set->index] = zalloc(sums_size(set));
	return all[set->index];
}

int fn_set__observe(struct fn_table *table, const struct fn_set *set, struct fn_row *row,
		    const double *counts, double number)
{
	struct fn_sums *sums = fn_row__findnew_sums(table, row, set);

	if (!sums)
		return -ENOMEM;
	fn_sums__observe(set, sums, counts, number);
	return 0;
}

static void add_sums(const struct fn_set *set, struct fn_sums *sums, const struct fn_sums *other)
{
	const size_t nr = fn_set__nr_values(set);

	sums->number += other->number;
	sums->independent += other->independent;
	sums->begun += other->begun;
	sums->ended += other->ended;
	for (size_t i = 0; i < nr; i++)
		sums->values[i] += other->values[i];
}

static bool is_empty(const struct fn_row *row)
{
	for (unsigned int i = 0; i < row->nr_sums; i++) {
		const struct fn_sums *sums = row->sums[i];

		if (sums && (sums->number || sums->begun || sums->ended))
			return false;
	}
	return true;
}

bool fn_table__is_empty(const struct fn_table *table)
{
	fn_table__for_each_row(table, row) {
		if (!is_empty(row))
			return false;
	}
	return true;
}

double fn_table__number(const struct fn_table *table, const struct fn_row *row,
			const struct fn_source *source)
{
	double number = 0;

	fn_table__for_each_set(table, set) {
		const struct fn_sums *sums = fn_row__sums(row, set);

		if (sums && (!source || (set->source == source && !set->is_hidden)))
			number += sums->number;
	}
	return number;
}

static bool is_shown(const struct fn_set *set)
{
	return !set->is_hidden && !set->is_dropped;
}

bool fn_table__has_source(const struct fn_table *table, const struct fn_source *source,
			  const char *event)
{
	fn_table__for_each_set(table, set) {
		if (set->source == source && is_shown(set) &&
		    (!event || fn_set__find(set, event) >= 0))
			return true;
	}
	return false;
}

static int sort_rows(const void *one, const void *other)
{
	return compare_rows(*(struct fn_row *const *)one, *(struct fn_row *const *)other);
}

struct fn_row *fn_table__find_row(const struct fn_table *table, const struct fn_row *other)
{
	struct fn_row **found = bsearch(&other, table->rows, table->nr_rows, sizeof(*table->rows),
					sort_rows);

	return found ? *found : NULL;
}

static int add_row(struct fn_table *table, struct fn_row *row, const struct fn_row *other,
		   struct fn_set *const *sets)
{
	for (unsigned int i = 0; i < other->nr_sums; i++) {
		struct fn_sums *sums;

		if (!other->sums[i] || !sets[i])
			continue;
		sums = fn_row__findnew_sums(table, row, sets[i]);
		if (!sums)
			return -ENOMEM;
		add_sums(sets[i], sums, other->sums[i]);
	}
	return 0;
}

/* A name that is unique in its DSO needs no address. */
static void drop_addresses(struct fn_table *table)
{
	struct fn_row **rows = table->rows;

	for (size_t i = 0, next; i < table->nr_rows; i = next) {
		for (next = i + 1; next < table->nr_rows; next++) {
			if (strcmp(rows[i]->symbol, rows[next]->symbol) ||
			    strcmp(rows[i]->dso, rows[next]->dso))
				break;
		}
		if (next == i + 1 && *rows[i]->symbol) {
			rows[i]->has_address = false;
			rows[i]->address = 0;
		}
	}
}

/* Frees rows that are the same as another one, which gets their sums. */
static int merge_rows(struct fn_table *table)
{
	size_t nr = 0;
	int err = 0;

	fn_table__for_each_row(table, row) {
		struct fn_row *last = nr ? table->rows[nr - 1] : NULL;

		if (last && !compare_rows(last, row))
			err = err ?: add_row(table, last, row, table->sets);
		else
			table->rows[nr++] = row;
		if (nr && table->rows[nr - 1] != row)
			free_row(row);
	}
	table->nr_rows = nr;
	return err;
}

/* Deletes the sets that are not wanted, and their sums. */
static void drop_sets(struct fn_table *table)
{
	unsigned int nr = 0;

	fn_table__for_each_set(table, set) {
		if (set->even && set->even->is_dropped)
			set->even = NULL;
	}
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		struct fn_set *set = table->sets[i];

		fn_table__for_each_row(table, row) {
			struct fn_sums *sums = i < row->nr_sums ? row->sums[i] : NULL;

			if (i < row->nr_sums)
				row->sums[i] = NULL;
			if (set->is_dropped)
				free(sums);
			else if (sums)
				row->sums[nr] = sums;
		}
		if (set->is_dropped) {
			free_set(set);
			continue;
		}
		set->index = nr;
		table->sets[nr++] = set;
	}
	table->nr_sets = nr;
	fn_table__for_each_row(table, row)
		row->nr_sums = min(row->nr_sums, nr);
}

int fn_table__settle(struct fn_table *table)
{
	const bool has_root = fn_by__is(table->by, FN_BY_CHILDREN);
	size_t nr = 0;
	int err;

	drop_sets(table);
	if (table->nr_rows)
		qsort(table->rows, table->nr_rows, sizeof(*table->rows), sort_rows);
	err = merge_rows(table);
	drop_addresses(table);
	fn_table__for_each_set(table, set)
		memset(set->total, 0, sums_size(set));
	table->allocated = 0;
	fn_table__for_each_row(table, row) {
		if (is_empty(row)) {
			free_row(row);
			continue;
		}
		row->index = nr;
		table->rows[nr++] = row;
		fn_table__for_each_set(table, set) {
			const struct fn_sums *sums = fn_row__sums(row, set);

			table->allocated += sums ? sums_size(set) : 0;
			if (sums && (!has_root || fn_row__is(row, FN_ALL)))
				add_sums(set, set->total, sums);
		}
	}
	table->nr_rows = nr;
	return err;
}

void fn_table__clear(struct fn_table *table)
{
	fn_table__for_each_set(table, set) {
		for (unsigned int j = 0; j < set->nr_events; j++) {
			struct fn_event *event = &set->events[j];

			*event = (struct fn_event){
				.name = event->name, .is_precise = event->is_precise, .scale = 1,
			};
		}
		memset(set->windows, 0, sums_size(set));
		memset(set->longs, 0, sums_size(set));
		set->late = 0;
		set->nr_late = 0;
		fn_table__for_each_row(table, row) {
			struct fn_sums *sums = fn_row__sums(row, set);

			if (sums && (sums->number || sums->begun || sums->ended))
				memset(sums, 0, sums_size(set));
		}
	}
	table->lost = 0;
	table->throttled = 0;
}

bool fn_table__has_event(const struct fn_table *table, const char *name)
{
	fn_table__for_each_set(table, set) {
		if (fn_set__find(set, name) >= 0)
			return true;
	}
	return false;
}

/* Events of one name may count different things on the CPUs of two vendors. */
static bool differ_by_vendor(const struct fn_table *a, const struct fn_table *b)
{
	if (hweight32(vendors_of(a) | vendors_of(b)) < 2)
		return false;
	fn_table__for_each_set(b, set) {
		for (unsigned int j = 0; j < set->nr_events; j++) {
			if (!fn_event__is_portable(set->events[j].name) &&
			    fn_table__has_event(a, set->events[j].name))
				return true;
		}
	}
	return false;
}

/* Returns true if a table has a set, or one of the source with more events, or with less. */
static bool has_set(const struct fn_table *table, const struct fn_set *set)
{
	fn_table__for_each_set(table, other) {
		unsigned int nr = 0;

		for (unsigned int j = 0; other->source == set->source && j < set->nr_events; j++)
			nr += fn_set__find(other, set->events[j].name) >= 0;
		if (nr && nr == min(set->nr_events, other->nr_events))
			return true;
	}
	return false;
}

/* A group without samples is not in a table, so one table may have more groups than the other. */
static const char *refuse(const struct fn_table *a, const struct fn_table *b)
{
	const struct fn_table *less = a->nr_sets <= b->nr_sets ? a : b;
	const struct fn_table *more = less == a ? b : a;

	if (strcmp(a->by, b->by) || a->inlines != b->inlines)
		return "its rows are of another kind (--by, --children, --inline)";
	fn_table__for_each_set(less, set) {
		if (!set->is_dropped && !has_set(more, set))
			return "it has other events or sources (name one with all groups first)";
	}
	if (differ_by_vendor(a, b))
		return "an event of one name counts something else on the CPU of another vendor";
	return NULL;
}

/* One input may have counted an event twice, and the other once. Before their totals are added. */
static void merge_copies(struct fn_set *set, const struct fn_set *other)
{
	for (unsigned int j = 0; j < set->nr_events; j++) {
		const double own = set->windows->values[j], more = other->windows->values[j];
		double *copies = &set->events[j].copies;

		if (own > 0 && more > 0)
			*copies = (own + more) / (own / *copies + more / other->events[j].copies);
		else if (more > 0)
			*copies = other->events[j].copies;
	}
}

static struct fn_set *copy_set(struct fn_table *table, const struct fn_set *other)
{
	const bool is_new = !find_set(table, other->source, other->events, other->nr_events);
	struct fn_set *set = fn_table__findnew_set(table, other->source, other->groups,
						   other->events, other->nr_events);

	for (unsigned int i = 1; set && i < other->nr_groups; i++) {
		if (fn_set__add_group(set, &other->groups[i]))
			return NULL;
	}
	if (!set)
		return NULL;
	set->is_complete &= other->is_complete;
	set->is_recorded &= other->is_recorded;
	set->is_hidden = other->is_hidden && (is_new || set->is_hidden);
	merge_copies(set, other);
	add_sums(set, set->windows, other->windows);
	add_sums(set, set->longs, other->longs);
	set->late += other->late;
	set->nr_late += other->nr_late;
	return set;
}

/* The sources that @other lacks, or for which other events sample. */
static u32 lacks(const struct fn_table *other, const struct fn_table *table)
{
	u32 bits = 0;

	fn_table__for_each_set(table, set) {
		for (unsigned int j = 0; is_shown(set) && j < set->nr_events; j++) {
			const char *event = set->source->is_joint ? NULL : set->events[j].name;

			if (!fn_table__has_source(other, set->source, event))
				bits |= set->source->bit;
		}
	}
	return bits;
}

static int add_table(struct fn_table *table, const struct fn_table *other)
{
	struct fn_set **sets = calloc(other->nr_sets ?: 1, sizeof(*sets));
	int err = sets ? 0 : -ENOMEM;

	for (unsigned int i = 0; !err && i < other->nr_cpus; i++)
		err = fn_table__add_cpu(table, other->cpus[i]);
	for (unsigned int i = 0; !err && i < other->nr_sets; i++) {
		if (other->sets[i]->is_dropped)
			continue;
		sets[i] = copy_set(table, other->sets[i]);
		err = sets[i] ? 0 : -ENOMEM;
	}
	for (unsigned int i = 0; !err && i < other->nr_sets; i++) {
		if (sets[i] && other->sets[i]->even)
			sets[i]->even = sets[other->sets[i]->even->index];
	}
	for (size_t i = 0; !err && i < other->nr_rows; i++) {
		const struct fn_row *from = other->rows[i];
		const u64 *address = from->has_address ? &from->address : NULL;
		struct fn_row *row = fn_table__new_row(table, from->symbol, from->dso, address);

		err = row ? add_row(table, row, from, sets) : -ENOMEM;
	}
	free(sets);
	table->lost += other->lost;
	table->throttled += other->throttled;
	table->lacks_children |= other->lacks_children;
	table->unmapped = table->unmapped ?: other->unmapped;
	return err;
}

const char *fn_table__add(struct fn_table *table, const struct fn_table *other)
{
	const char *reason = table->nr_sets && other->nr_sets ? refuse(table, other) : NULL;

	if (reason)
		return reason;
	if (table->nr_sets && other->nr_sets)
		table->is_partial |= lacks(table, other) | lacks(other, table);
	table->is_partial |= other->is_partial;
	if (!table->nr_sets) {
		memcpy(table->by, other->by, sizeof(table->by));
		table->inlines = other->inlines;
	}
	return add_table(table, other) ? "not enough memory" : NULL;
}
