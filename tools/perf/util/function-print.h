/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTION_PRINT_H
#define __PERF_FUNCTION_PRINT_H

#include <stddef.h>
#include <stdio.h>

struct function_columns;
struct function_row;
struct function_table;

#define FUNCTION_CELL_SIZE	32

/* What is printed of a table, and in which order. */
struct function_print {
	const struct function_table *table;
	const struct function_columns *columns;
	const int *fields;		/* numbers of columns */
	unsigned int nr_fields;
	size_t nr_rows;
};

/* How wide the columns are, and what the rows are called. */
struct function_layout {
	const struct function_print *print;
	const char *key;
	int key_width;
	int *widths;		/* by field */
	char **labels;		/* by place in the table */
};

int function_text_width(const char *text);
const char *function_print__cell(const struct function_print *print,
				 const struct function_row *row, unsigned int field,
				 char buf[FUNCTION_CELL_SIZE]);
int function_layout__init(struct function_layout *layout, const struct function_print *print);
void function_layout__exit(struct function_layout *layout);
const char *function_layout__label(const struct function_layout *layout,
				   const struct function_row *row);
const char *function_layout__title(const struct function_layout *layout, unsigned int field);

int function_print__table(const struct function_print *print, FILE *fp);
void function_print__csv(const struct function_print *print, const char *separator, FILE *fp);
void function_print__json(const struct function_print *print, FILE *fp);

#endif /* __PERF_FUNCTION_PRINT_H */
