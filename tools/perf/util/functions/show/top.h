/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_TOP_H
#define __PERF_FUNCTIONS_TOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

struct function_table;
struct function_top;

#define FUNCTION_TOP_DELAY		2
#define FUNCTION_TOP_LEAST_DELAY	0.1
#define FUNCTION_TOP_LAST		30
#define FUNCTION_TOP_MOST_SECONDS	1e6

/* One table of many: where it is printed, and which time it covers. */
struct function_view {
	FILE *fp;
	/* Size of the screen; 0 if there is none, then all rows are printed. */
	unsigned int nr_rows;
	int width;
	/* The time that the table covers, in ns of the recording. */
	u64 begin;
	u64 end;
};

/* The user's options, and the functions that record, read and print. */
struct function_top_options {
	double delay;		/* seconds from one table to the next */
	double last;		/* seconds that a table covers, 0: all */
	unsigned int count;	/* of tables, 0: no end */
	bool stdio;
	const char *filter;	/* an option that chooses windows, NULL: none */
	/* Record to stdout, until there is a signal: run in a process of its own. */
	int (*record)(void *data);
	/* Read what is recorded from stdin, with function_top__is_due(), function_top__take(). */
	int (*read)(void *data, struct function_top *top);
	int (*print)(void *data, const struct function_table *table,
		     const struct function_view *view);
	/* Print the notes about the last table. */
	void (*note)(void *data, const struct function_table *table);
	/* Make the choice of a key. Returns NULL, or the reason why not, to be freed. */
	char *(*choose)(void *data, const struct function_table *table, char key,
			const char *text);
	void *data;
};

bool function_top__is_due(void *data);
int function_top__take(void *data, const struct function_table *table, u64 begin, u64 end);
int function_top__run(const struct function_top_options *options, const int control[2]);

#endif /* __PERF_FUNCTIONS_TOP_H */
