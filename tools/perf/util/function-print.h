/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTION_PRINT_H
#define __PERF_FUNCTION_PRINT_H

#include <stddef.h>
#include <stdio.h>

struct function_columns;
struct function_table;

/* What is printed of a table, and in which order. */
struct function_print {
	const struct function_table *table;
	const struct function_columns *columns;
	const int *fields;		/* numbers of columns */
	unsigned int nr_fields;
	size_t nr_rows;
};

int function_print__table(const struct function_print *print, FILE *fp);
void function_print__csv(const struct function_print *print, const char *separator, FILE *fp);
void function_print__json(const struct function_print *print, FILE *fp);

#endif /* __PERF_FUNCTION_PRINT_H */
