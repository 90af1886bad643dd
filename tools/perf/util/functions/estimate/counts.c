// SPDX-License-Identifier: GPL-2.0
/*
 * Divides the events of a recording among the rows of its table. Those of all rows add up to what
 * was counted: in share mode auto in all intervals, else in the windows that count.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#include "../collect/sums.h"
#include "../collect/u192.h"
#include "columns.h"
#include "counts.h"

static int counts_find_event(const struct function_counts *counts, const char *event)
{
	for (unsigned int i = 0; i < counts->nr_events; i++) {
		if (equal_names(counts->events[i], event))
			return i;
	}
	return -1;
}

/*
 * Returns what a set has counted of an event. The intervals of share mode auto are also those of
 * functions that the user does not want to see; windows tell which part.
 */
static double recorded_in(const struct function_table *table, const struct event_set *set,
			  int event)
{
	const struct u192 *windows = &set->windows.values[event];
	const struct u192 *longs = &set->longs.values[event];
	double samples = 0, counted = 0;

	for (size_t i = 0; i < table->nr_sums; i++) {
		if (table->sums[i]->set != set)
			continue;
		samples += table->sums[i]->samples;
		counted += u192__double(&table->sums[i]->values[event]);
	}
	if (!event_set__has_share(set, FUNCTION_SHARE_AUTO))
		return counted;
	return (u192__double(windows) + u192__double(longs)) *
	       (set->windows.number ? fmin(samples / set->windows.number, 1) : 1);
}

/*
 * Returns the origin of the counts of an event: its own samples, if there are any. Branch records
 * have a small part of what happened.
 */
static enum function_source source_of(const struct function_table *table, const char *event)
{
	enum function_source source = FUNCTION_SOURCE_BRANCHES;

	for (unsigned int i = 0; i < table->nr_sets; i++) {
		const enum function_source own = table->sets[i]->source;

		if (own != FUNCTION_SOURCE_BRANCHES && event_set__find(table->sets[i], event) >= 0)
			source = own;
	}
	return source;
}

/*
 * Divides an event among the rows. Each row has the part of the whole up to it less the part up to
 * the one before, in whole events, so nothing is lost by rounding.
 */
static int divide(struct function_counts *counts, unsigned int event,
		  const struct function_table *table, const struct function_columns *columns,
		  const struct function_row *total)
{
	struct function_value *parts = calloc(columns->nr_rows ?: 1, sizeof(*parts));
	struct function_sums **own = calloc(total->nr_sums ?: 1, sizeof(*own));
	struct function_row whole = { .sums = own, .options = total->options };
	const char *name = counts->events[event];
	const enum function_source source = source_of(table, name);
	double all = 0, sum = 0, until = 0, before = 0;

	for (unsigned int i = 0; i < table->nr_sets; i++) {
		const struct event_set *set = table->sets[i];
		int place = event_set__find(set, name);

		if (place >= 0 && set->source == source)
			all += recorded_in(table, set, place);
	}
	/* The sums of each function are in the order of sources. */
	for (size_t i = 0; own && i < total->nr_sums; i++) {
		if (total->sums[i]->set->source == source)
			own[whole.nr_sums++] = total->sums[i];
	}
	if (!parts || !own || function_columns__divide(columns, &whole, name, source, parts)) {
		free(own);
		free(parts);
		return -ENOMEM;
	}
	free(own);
	for (size_t i = 0; i < columns->nr_rows; i++)
		sum += parts[i].value;
	for (size_t i = 0; sum > 0 && i < columns->nr_rows; i++) {
		size_t row = columns->rows[i].sums - table->sums;
		struct function_count *count = &counts->counts[row * counts->nr_events + event];
		double end;

		until += parts[i].value;
		end = round(all * (until / sum));
		count->value = end - before;
		count->variance = pow(parts[i].error * all / sum, 2);
		before = end;
	}
	free(parts);
	return 0;
}

static int counts_add_events(struct function_counts *counts, const struct function_table *table)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < table->nr_sets; i++)
		nr += table->sets[i]->nr_events;
	counts->events = calloc(nr ?: 1, sizeof(*counts->events));
	if (!counts->events)
		return -ENOMEM;
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		/* Branch records have a small part of the events. They come last. */
		if (table->sets[i]->source == FUNCTION_SOURCE_BRANCHES && counts->nr_events)
			break;
		for (unsigned int j = 0; j < table->sets[i]->nr_events; j++) {
			if (counts_find_event(counts, table->sets[i]->events[j]) < 0)
				counts->events[counts->nr_events++] = table->sets[i]->events[j];
		}
	}
	if (counts->nr_events && table->nr_sums > FUNCTION_MOST_VALUES / counts->nr_events)
		return -E2BIG;
	counts->counts = calloc(table->nr_sums * counts->nr_events ?: 1, sizeof(*counts->counts));
	return counts->counts ? 0 : -ENOMEM;
}

/**
 * function_counts__init - divide the events of a recording among the rows of its table
 * @counts: set to the events of each row
 * @table: the table
 * @columns: columns of the table, from which rows may have been removed
 *
 * Return: 0, -ENOMEM, or -E2BIG if there are too many rows for so many events.
 */
int function_counts__init(struct function_counts *counts, const struct function_table *table,
			  const struct function_columns *columns)
{
	struct function_row total = {
		.sums = table->sums, .nr_sums = table->nr_sums, .options = columns->options,
	};
	struct function_columns all;
	int err;

	memset(counts, 0, sizeof(*counts));
	err = function_columns__init_rows(&all, table) ?: counts_add_events(counts, table);
	for (size_t i = 0; !err && i < all.nr_rows; i++) {
		all.rows[i].options = columns->options;
		if (function_by__is(table->by, FUNCTION_BY_CHILDREN) &&
		    function_sums__is_root(all.rows[i].sums[0], FUNCTION_ALL))
			total = all.rows[i];
	}
	for (unsigned int i = 0; !err && i < counts->nr_events; i++)
		err = divide(counts, i, table, &all, &total);
	function_columns__exit(&all);
	return err;
}

/**
 * function_counts__exit - free counts
 * @counts: the counts
 */
void function_counts__exit(struct function_counts *counts)
{
	zfree(&counts->events);
	zfree(&counts->counts);
}

/**
 * function_counts__width - choose the event whose counts are widths in a flame graph
 * @counts: the events of the table
 * @table: the table
 * @columns: its columns
 *
 * Return: the event of the share that rows are sorted by if nothing else is asked for, which stands
 *	   for time. If there is no such share, the first leader; of those that open windows, if
 *	   there are any. NULL if the table is empty.
 */
const char *function_counts__width(const struct function_counts *counts,
				   const struct function_table *table,
				   const struct function_columns *columns)
{
	const struct function_column *share =
		&columns->columns[function_columns__default_sort(columns)];
	bool is_auto = function_table__has_share(table, FUNCTION_SHARE_AUTO);

	if (function_column__is_share(share) && counts_find_event(counts, share->event) >= 0)
		return share->event;
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		if (!is_auto || event_set__has_share(table->sets[i], FUNCTION_SHARE_AUTO))
			return table->sets[i]->events[0];
	}
	return NULL;
}
