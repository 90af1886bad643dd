/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_COUNTS_H
#define __PERF_FUNCTIONS_COUNTS_H

struct function_columns;
struct function_table;

/* An estimated number of events, and its variance. */
struct function_count {
	double value;
	double variance;
};

/* The events of a recording, divided among its rows. */
struct function_counts {
	const char **events;
	unsigned int nr_events;
	struct function_count *counts;	/* by place in the table, then by event */
};

int function_counts__init(struct function_counts *counts, const struct function_table *table,
			  const struct function_columns *columns);
void function_counts__exit(struct function_counts *counts);
const char *function_counts__width(const struct function_counts *counts,
				   const struct function_table *table,
				   const struct function_columns *columns);

#endif /* __PERF_FUNCTIONS_COUNTS_H */
