/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_COLUMNS_H
#define __PERF_FUNCTIONS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "../collect/sums.h"

/* A million rows with 60 columns have as many values, of 4 GB. */
#define FUNCTION_MOST_VALUES	60000000

/*
 * scale x event / per, where per is an event, the event's total over all
 * functions or nothing. "samples" and "discarded" count windows, or samples of events.
 */
struct function_column {
	const char *name;
	const char *meaning;
	const char *event;
	const char *per;
	unsigned int scale;	/* 100: the value is a percentage, of whatever it is made */
	unsigned int digits;
	enum function_source source;
	/* Of a vendor's metric on the first level of top-down analysis: what is divided. */
	const char *divided;
	/* No value: its events are in groups without a common event, which miss some counts. */
	bool is_apart;
};

/*
 * A value, its standard error with degrees of freedom (0: no limit), its 95 % interval, and the
 * number of windows that support it, or of samples of the event. For a share these are the windows
 * of all functions, or their samples, or those that end a long interval. A weak value is not
 * supported by the data. A disturbed value is weak because interrupts have added more than its
 * interval.
 */
struct function_value {
	bool is_defined;
	bool has_error;
	bool has_interval;
	bool is_weak;
	bool is_disturbed;
	double value;
	double error;
	double freedom;
	double low;
	double high;
	double windows;
};

/* Options of the computation of values from sums. */
struct function_reading_options {
	bool is_corrected;	/* what interrupts add is subtracted from all windows */
	bool only_windows;	/* no values from event samples */
	/* For a comparison: skid moves shares alike, and function_sums.is_left is set. */
	bool is_compared;
};

/* A function and the values of its columns. */
struct function_row {
	struct function_sums *const *sums;	/* one per set */
	size_t nr_sums;
	/* True for the row of all functions by their callees: windows also count for callers. */
	bool is_inclusive;
	/*
	 * Many windows leave the function, so the matched ones are no fair sample. Its rates then
	 * come from all windows that begin in it, if these were counted. In a comparison this is
	 * so in all runs or in none.
	 */
	bool is_left;
	/* Other functions run in many of its windows, even if these begin and end in it. */
	bool has_calls;
	/* How often it is left per event of a leader, and how late windows end; 0: not known. */
	const char *leader;
	double exits;
	double late;
	struct function_reading_options options;
	bool is_small;		/* its share is small, see function_columns__mark_small() */
	struct function_value *values;
};

/* Any of the sums of a row has the name of its function. */
static inline const struct function_sums *function_of(const struct function_row *row)
{
	return row->sums[0];
}

/* The windows of a set from which the rates of a row come, with totals and products. */
struct function_reading {
	u64 windows;
	u64 bursts;
	const struct u192 *values;
};

struct function_row function_row__part(const struct function_row *row,
				       enum function_source source);
struct function_reading function_row__read(const struct function_row *row,
					   const struct function_sums *sums);

struct function_columns {
	struct function_column *columns;
	unsigned int nr_columns;
	struct function_row *rows;
	size_t nr_rows;
	struct function_reading_options options;
	enum fn_vendor vendor;	/* of the CPUs that counted */
};

bool event_set__has_long_windows(const struct event_set *set);
bool function_column__is_count(const struct function_column *column);
bool function_column__is_share(const struct function_column *column);

int function_columns__init(struct function_columns *columns, const struct function_table *table,
			   const struct function_reading_options *options);
int function_columns__init_rows(struct function_columns *columns,
				const struct function_table *table);
int function_columns__divide(const struct function_columns *columns,
			     const struct function_row *total, const char *event,
			     enum function_source source, struct function_value *parts);
int function_columns__add(struct function_columns *columns, const struct function_column *column,
			  const struct function_value *values);
void function_columns__exit(struct function_columns *columns);
int function_columns__find(const struct function_columns *columns, const char *name, size_t length);
int function_columns__default_sort(const struct function_columns *columns);
void function_columns__sort(struct function_columns *columns, int column);
void function_columns__mark_small(struct function_columns *columns,
				  const struct function_table *table, double percent);
void function_columns__drop_small(struct function_columns *columns);

#endif /* __PERF_FUNCTIONS_COLUMNS_H */
