/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_PRINT_H
#define __PERF_FUNCTIONS_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct function_column;
struct function_columns;
struct function_row;
struct function_sums;
struct function_table;
struct function_tree;

#define FUNCTION_LABEL_WIDTH	60
#define FUNCTION_CELL_SIZE	32
#define FUNCTION_INTERVAL_SIZE	(2 * FUNCTION_CELL_SIZE)
#define FUNCTION_INTERVAL_TITLE	"95 %"

/* What intervals are about. */
#define FUNCTION_INTERVAL_NOTE \
	"95 % intervals are about this run alone: compare several runs with --before and --after"

/* The printed part of a table, and its order. */
struct function_print {
	const struct function_table *table;
	const struct function_columns *columns;
	const struct function_tree *tree;	/* tree of the metrics, NULL if they are columns */
	const int *fields;		/* numbers of columns */
	unsigned int nr_fields;
	size_t nr_rows;
	bool intervals;			/* print intervals, too */
	const char *time;		/* BEGIN,END of a span in seconds, NULL if it is all */
	bool is_continued;		/* it has the same columns as the span before */
	int width;			/* of the screen, to cut names for it; 0: no screen */
};

/* The widths of the columns and the labels of the rows. */
struct function_layout {
	const struct function_print *print;
	const char *key;
	int key_width;
	int *widths;		/* by field */
	int *interval_widths;	/* by field, 0 where there is none */
	bool *marked;		/* by field: a mark follows weak values */
	unsigned int nr_fields;	/* that fit on the screen */
	char **labels;		/* by place in the table */
	char (*cells)[FUNCTION_CELL_SIZE];	/* by row and field */
};

const char *function_print__cell(const struct function_print *print,
				 const struct function_row *row, unsigned int field,
				 char buf[FUNCTION_CELL_SIZE]);
const char *function_print__interval(const struct function_print *print,
				     const struct function_row *row, unsigned int field,
				     char buf[FUNCTION_INTERVAL_SIZE]);
int function_layout__init(struct function_layout *layout, const struct function_print *print,
			  FILE *fp);
void function_layout__exit(struct function_layout *layout);
const char *function_layout__label(const struct function_layout *layout,
				   const struct function_row *row);
const char *function_layout__title(const struct function_layout *layout, unsigned int field);

char **function_table__labels(const struct function_table *table, int most);
void function_table__free_labels(const struct function_table *table, char **labels);

int function_print__table(const struct function_print *print, FILE *fp);
void function_print__csv(const struct function_print *print, const char *separator, FILE *fp);

const char *function_print__number(const struct function_column *column, double value,
				   bool sign, char buf[FUNCTION_CELL_SIZE]);
const char *function_print__shortest(double value, char buf[FUNCTION_CELL_SIZE]);
const char *function_print__full(const struct function_column *column, double value,
				 char buf[FUNCTION_CELL_SIZE]);
void function_print__csv_title(const char *name, const char *what, const char *separator,
			       FILE *fp);
void function_print__csv_key(const struct function_table *table, const char *separator, FILE *fp);
void function_print__csv_name(const struct function_sums *function, const char *separator,
			      FILE *fp);

#endif /* __PERF_FUNCTIONS_PRINT_H */
