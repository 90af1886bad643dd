/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_DIFF_H
#define __PERF_FUNCTIONS_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "../collect/sums.h"
#include "columns.h"

/* The runs of one side, each with its columns, and all windows together. */
struct function_runs {
	unsigned int nr;
	struct function_table *tables;
	struct function_columns *columns;
	struct function_table table;
	struct function_columns all;
};

/* The variance of a metric between runs, relative to its value; 0 if there is one run a side. */
struct function_run_variance {
	bool is_known;
	double value;
	double variance;	/* of the variance */
};

/* The change of a metric of a function, with its 95 % interval. */
struct function_change {
	const struct function_value *before;	/* NULL: not recorded */
	const struct function_value *after;
	/* Relative variance between runs, and both values' variances if it were 1. */
	double between;
	double unit_before;
	double unit_after;
	const struct function_run_variance *runs;
	bool is_defined;
	bool has_interval;
	bool is_significant;
	bool is_weak;		/* one of the values is */
	double change;
	double low;
	double high;
};

/* A function, as it was and is; one of them is NULL if it vanished or appeared. */
struct function_diff_row {
	const struct function_row *before;
	const struct function_row *after;
	struct function_change *changes;	/* by column */
	bool is_significant;			/* a change in any column is significant */
};

struct function_diff {
	/* The columns that at least one side has, without rows. */
	struct function_columns columns;
	struct function_diff_row *rows;
	size_t nr_rows;
	struct function_change *changes;
	bool has_several_runs;			/* at least one side has several */
	bool is_single;				/* changes of one run a side are significant, too */
	bool has_other_vendor;			/* on one side are the CPUs of another */
	struct function_run_variance *variances;	/* by column */
	struct function_value *absent;		/* by column and side: for missing functions */
};

/* A limit for a change. */
struct function_limit {
	char *column;
	bool is_decrease;
	bool is_relative;
	double number;
};

int function_runs__unify_names(struct function_runs *before, struct function_runs *after);
int function_runs__choose_windows(struct function_runs *before, struct function_runs *after);
void function_runs__exit(struct function_runs *runs);

int function_diff__init(struct function_diff *diff, const struct function_runs *before,
			const struct function_runs *after, bool is_single);
void function_diff__exit(struct function_diff *diff);
void function_diff__sort(struct function_diff *diff, int column);
int function_diff__move_small(struct function_diff *diff);

const char *function_diff_row__status(const struct function_diff_row *row);
const struct function_sums *function_diff_row__sums(const struct function_diff_row *row);

const char *function_limit__parse(struct function_limit *limit, const char *str);
int function_diff__find_exceeded(const struct function_diff *diff, unsigned int column,
				 const struct function_limit *limit, unsigned int nr_limits,
				 bool *is_exceeded);

#endif /* __PERF_FUNCTIONS_DIFF_H */
