/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_DIFF_H
#define __PERF_FUNCTIONS_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "columns.h"

/* How a metric of a function has changed, with its 95 % interval. */
struct function_change {
	const struct function_value *before;	/* NULL: not recorded */
	const struct function_value *after;
	bool is_defined;
	bool has_interval;
	bool is_significant;
	double change;
	double low;
	double high;
	/* How often chance alone does as much. */
	double chance;
};

/* A function, as it was and is; one of them is NULL if it vanished or appeared. */
struct function_diff_row {
	const struct function_row *before;
	const struct function_row *after;
	struct function_change *changes;	/* by column */
	bool is_significant;			/* one of them */
};

struct function_diff {
	/* The columns of both, without rows. */
	struct function_columns columns;
	struct function_diff_row *rows;
	size_t nr_rows;
	struct function_change *changes;
};

/* What is printed of it, and in which order. */
struct function_diff_print {
	const struct function_diff *diff;
	const struct function_table *before;
	const struct function_table *after;
	const int *fields;
	unsigned int nr_fields;
	size_t nr_rows;
	bool intervals;
};

/* A change that is too much. */
struct function_limit {
	char *column;
	bool is_decrease;
	bool is_relative;
	double number;
};

int function_diff__init(struct function_diff *diff, const struct function_columns *before,
			const struct function_columns *after);
void function_diff__exit(struct function_diff *diff);
void function_diff__sort(struct function_diff *diff, int column);

const char *function_diff_row__status(const struct function_diff_row *row);
const struct function_sums *function_diff_row__sums(const struct function_diff_row *row);

const char *function_limit__parse(struct function_limit *limit, const char *str);
bool function_limit__is_exceeded(const struct function_limit *limit,
				 const struct function_change *change);

int function_diff_print__table(const struct function_diff_print *print, FILE *fp);
void function_diff_print__csv(const struct function_diff_print *print, const char *separator,
			      FILE *fp);
int function_diff_print__exceeded(const struct function_diff_print *print,
				  const struct function_limit *limit, FILE *fp);

#endif /* __PERF_FUNCTIONS_DIFF_H */
