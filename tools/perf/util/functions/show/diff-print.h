/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_DIFF_PRINT_H
#define __PERF_FUNCTIONS_DIFF_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct function_diff;
struct function_limit;
struct function_runs;

/* The printed part of a comparison, and its order. */
struct function_diff_print {
	const struct function_diff *diff;
	const struct function_runs *before;
	const struct function_runs *after;
	const int *fields;
	unsigned int nr_fields;
	size_t nr_rows;
	bool intervals;
};

int function_diff_print__table(const struct function_diff_print *print, FILE *fp);
void function_diff_print__csv(const struct function_diff_print *print, const char *separator,
			      FILE *fp);
int function_diff_print__exceeded(const struct function_diff_print *print,
				  const struct function_limit *limits, unsigned int nr_limits,
				  FILE *fp);

#endif /* __PERF_FUNCTIONS_DIFF_PRINT_H */
