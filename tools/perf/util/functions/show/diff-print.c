// SPDX-License-Identifier: GPL-2.0
/* Prints the changes between two tables of functions, as text and as values with separators. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../../color.h"
#include "../text.h"
#include "../collect/sums.h"
#include "../estimate/diff.h"
#include "diff-print.h"
#include "print.h"

/* Returns the value after; if the function vanished and has none, the value before. */
static const struct function_value *diff_print_value_of(const struct function_diff_row *row,
							unsigned int column)
{
	const struct function_change *change = &row->changes[column];

	return row->after || change->after ? change->after : change->before;
}

enum cell { CELL_VALUE, CELL_CHANGE, CELL_INTERVAL, NR_CELLS };

static const char *const cell_titles[] = {
	[CELL_CHANGE]	= "change",
	[CELL_INTERVAL]	= FUNCTION_INTERVAL_TITLE,
};

static const char *cell_text(const struct function_diff_print *print,
			     const struct function_diff_row *row, unsigned int field,
			     enum cell cell, char buf[FUNCTION_INTERVAL_SIZE])
{
	const struct function_column *column = &print->diff->columns.columns[print->fields[field]];
	const struct function_change *change = &row->changes[print->fields[field]];
	const struct function_value *value = diff_print_value_of(row, print->fields[field]);
	char low[FUNCTION_CELL_SIZE], high[FUNCTION_CELL_SIZE];

	if (cell == CELL_VALUE && value && value->is_defined)
		return function_print__number(column, value->value, /*sign=*/false, buf);
	if (cell == CELL_CHANGE && change->is_defined)
		return function_print__number(column, change->change, /*sign=*/true, buf);
	if (cell != CELL_INTERVAL || !change->has_interval)
		return "-";
	scnprintf(buf, FUNCTION_INTERVAL_SIZE, "%s..%s",
		  function_print__number(column, change->low, /*sign=*/true, low),
		  function_print__number(column, change->high, /*sign=*/true, high));
	return buf;
}

/* A table that is being printed. */
struct layout {
	const struct function_diff_print *print;
	char **before;		/* labels, by place in the table */
	char **after;
	int key_width;
	int (*widths)[NR_CELLS];	/* by field */
	bool *has_mark;
	bool *has_weak;
};

static const char *diff_print_label(const struct layout *layout,
				    const struct function_diff_row *row)
{
	if (row->after)
		return layout->after[row->after->sums - layout->print->after->table.sums];
	return layout->before[row->before->sums - layout->print->before->table.sums];
}

static const struct function_column *column_of(const struct layout *layout, unsigned int field)
{
	const struct function_diff_print *print = layout->print;

	return &print->diff->columns.columns[print->fields[field]];
}

static bool has_cell(const struct layout *layout, unsigned int field, enum cell cell)
{
	return cell != CELL_INTERVAL ||
	       (layout->print->intervals && !function_column__is_count(column_of(layout, field)));
}

static const char *diff_print_title_of(const struct layout *layout, unsigned int field,
				       enum cell cell)
{
	return cell_titles[cell] ?: column_of(layout, field)->name;
}

static void layout__exit(struct layout *layout)
{
	function_table__free_labels(&layout->print->before->table, layout->before);
	function_table__free_labels(&layout->print->after->table, layout->after);
	free(layout->widths);
	free(layout->has_mark);
	free(layout->has_weak);
}

/* Widens the columns for a row. */
static void layout__fit(struct layout *layout, const struct function_diff_row *row)
{
	const struct function_diff_print *print = layout->print;
	char buf[FUNCTION_INTERVAL_SIZE];

	layout->key_width = max(layout->key_width, function_text__width(diff_print_label(layout,
											 row)));
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		for (enum cell cell = 0; cell < NR_CELLS; cell++) {
			const char *text = cell_text(print, row, i, cell, buf);

			layout->widths[i][cell] = max(layout->widths[i][cell],
						      function_text__width(text));
		}
		layout->has_mark[i] |= row->changes[print->fields[i]].is_significant;
		layout->has_weak[i] |= row->changes[print->fields[i]].is_weak;
	}
}

static int layout__init(struct layout *layout, const struct function_diff_print *print)
{
	*layout = (struct layout){
		.print		= print,
		.before		= function_table__labels(&print->before->table,
							 FUNCTION_LABEL_WIDTH),
		.after		= function_table__labels(&print->after->table,
							 FUNCTION_LABEL_WIDTH),
		.key_width	= strlen(print->after->table.by),
		.widths		= calloc(print->nr_fields ?: 1, sizeof(*layout->widths)),
		.has_mark	= calloc(print->nr_fields ?: 1, sizeof(*layout->has_mark)),
		.has_weak	= calloc(print->nr_fields ?: 1, sizeof(*layout->has_weak)),
	};
	if (!layout->before || !layout->after || !layout->widths || !layout->has_mark ||
	    !layout->has_weak) {
		layout__exit(layout);
		return -ENOMEM;
	}

	for (unsigned int i = 0; i < print->nr_fields; i++) {
		for (enum cell cell = 0; cell < NR_CELLS; cell++)
			layout->widths[i][cell] =
				function_text__width(diff_print_title_of(layout, i, cell));
	}
	for (size_t r = 0; r < print->nr_rows; r++)
		layout__fit(layout, &print->diff->rows[r]);
	return 0;
}

static void diff_print_row(const struct layout *layout, const struct function_diff_row *row,
			   FILE *fp)
{
	const struct function_diff_print *print = layout->print;
	const char *label = diff_print_label(layout, row);
	char buf[FUNCTION_INTERVAL_SIZE];

	fprintf(fp, "%s%*s", label, layout->key_width - function_text__width(label), "");
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		const struct function_change *change = &row->changes[print->fields[i]];
		bool is_significant = change->is_significant;

		for (enum cell cell = 0; cell < NR_CELLS; cell++) {
			if (has_cell(layout, i, cell))
				color_fprintf(fp, cell == CELL_CHANGE && is_significant ?
					      PERF_COLOR_BOLD : PERF_COLOR_NORMAL, " %*s",
					      layout->widths[i][cell],
					      cell_text(print, row, i, cell, buf));
			if (cell == CELL_VALUE && layout->has_weak[i])
				fputc(change->is_weak ? '?' : ' ', fp);
			if (cell == CELL_CHANGE && layout->has_mark[i])
				fputc(is_significant ? '*' : ' ', fp);
		}
	}
	if (!row->before || !row->after)
		fprintf(fp, " %s", function_diff_row__status(row));
	fputc('\n', fp);
}

/**
 * function_diff_print__table - print aligned columns; significant changes have a *, and weak
 *				values, before or after, a ?
 * @print: the output
 * @fp: the output file
 *
 * Return: 0, or -ENOMEM.
 */
int function_diff_print__table(const struct function_diff_print *print, FILE *fp)
{
	struct layout layout;

	if (layout__init(&layout, print))
		return -ENOMEM;

	fprintf(fp, "%-*s", layout.key_width, print->after->table.by);
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		for (enum cell cell = 0; cell < NR_CELLS; cell++) {
			const char *title = diff_print_title_of(&layout, i, cell);

			if (has_cell(&layout, i, cell))
				fprintf(fp, " %*s%s", layout.widths[i][cell] -
					function_text__width(title), "", title);
			if ((cell == CELL_VALUE && layout.has_weak[i]) ||
			    (cell == CELL_CHANGE && layout.has_mark[i]))
				fputc(' ', fp);
		}
	}
	fputc('\n', fp);
	for (size_t r = 0; r < print->nr_rows; r++)
		diff_print_row(&layout, &print->diff->rows[r], fp);
	layout__exit(&layout);
	return 0;
}

static const char *csv_value(const struct function_column *column,
			     const struct function_value *value, char buf[FUNCTION_CELL_SIZE])
{
	return value && value->is_defined ? function_print__full(column, value->value, buf) : "-";
}

/**
 * function_diff_print__csv - print values with all their digits
 * @print: the output
 * @separator: the text between values
 * @fp: the output file
 */
void function_diff_print__csv(const struct function_diff_print *print, const char *separator,
			      FILE *fp)
{
	static const char *const titles[] = {
		"before", "after", "change", "low", "high", "significant", "weak"
	};
	const struct function_column *columns = print->diff->columns.columns;
	char buf[FUNCTION_CELL_SIZE];

	function_print__csv_key(&print->after->table, separator, fp);
	fprintf(fp, "%sstatus", separator);
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(titles); j++)
			function_print__csv_title(columns[print->fields[i]].name, titles[j],
						  separator, fp);
	}
	fputc('\n', fp);

	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_diff_row *row = &print->diff->rows[r];

		function_print__csv_name(function_diff_row__sums(row), separator, fp);
		fprintf(fp, "%s%s", separator, function_diff_row__status(row));
		for (unsigned int i = 0; i < print->nr_fields; i++) {
			const struct function_column *column = &columns[print->fields[i]];
			const struct function_change *change = &row->changes[print->fields[i]];
			bool has_interval = change->has_interval;

			fprintf(fp, "%s%s", separator, csv_value(column, change->before, buf));
			fprintf(fp, "%s%s", separator, csv_value(column, change->after, buf));
			fprintf(fp, "%s%s", separator, !change->is_defined ? "-" :
				function_print__full(column, change->change, buf));
			fprintf(fp, "%s%s", separator, !has_interval ? "-" :
				function_print__shortest(change->low, buf));
			fprintf(fp, "%s%s", separator, !has_interval ? "-" :
				function_print__shortest(change->high, buf));
			fprintf(fp, "%s%d%s%d", separator, change->is_significant, separator,
				change->is_weak);
		}
		fputc('\n', fp);
	}
}

/*
 * Prints a line for each change beyond a limit. Returns how many of them count, or -ENOMEM: a
 * marked rate is not to be relied on, but a share is marked if it only is small.
 */
static int print_exceeded(const struct layout *layout, const struct function_limit *limit,
			  unsigned int nr_limits, FILE *fp)
{
	const struct function_diff *diff = layout->print->diff;
	int column = function_columns__find(&diff->columns, limit->column, strlen(limit->column));
	int digits = diff->columns.columns[column].digits + 1, nr = 0, err;
	bool is_share = function_column__is_share(&diff->columns.columns[column]);
	bool *is_exceeded = calloc(diff->nr_rows ?: 1, sizeof(*is_exceeded));

	if (!is_exceeded)
		return -ENOMEM;
	err = function_diff__find_exceeded(diff, column, limit, nr_limits, is_exceeded);
	for (size_t r = 0; !err && r < diff->nr_rows; r++) {
		const struct function_change *change = &diff->rows[r].changes[column];

		if (!is_exceeded[r])
			continue;
		nr += is_share || !change->is_weak;
		fprintf(fp, "perf functions: %s of %s from %.*f to %.*f",
			diff->columns.columns[column].name, diff_print_label(layout,
									     &diff->rows[r]),
			digits, change->before->value, digits, change->after->value);
		if (change->before->value)
			fprintf(fp, ", %+.1f %%", 100 * change->change /
				fabs(change->before->value));
		fprintf(fp, " (95 %%: %+.*f..%+.*f), beyond %s%c%g%s%s\n", digits, change->low,
			digits, change->high, limit->column, limit->is_decrease ? '<' : '>',
			limit->number, limit->is_relative ? "%" : "",
			!is_share && change->is_weak ? ", not counted: a value is weak" : "");
	}
	free(is_exceeded);
	return err ?: nr;
}

/**
 * function_diff_print__exceeded - print a line for each change beyond a limit
 * @print: the output; its number of rows is no limit here
 * @limits: the limits, of columns that are there
 * @nr_limits: how many limits there are
 * @fp: the output file
 *
 * Return: the number of such changes that count, or -ENOMEM.
 */
int function_diff_print__exceeded(const struct function_diff_print *print,
				  const struct function_limit *limits, unsigned int nr_limits,
				  FILE *fp)
{
	struct layout layout = {};
	int total = 0, err = nr_limits ? layout__init(&layout, print) : 0;

	if (err || !nr_limits)
		return err;
	for (unsigned int i = 0; !err && i < nr_limits; i++) {
		int nr = print_exceeded(&layout, &limits[i], nr_limits, fp);

		if (nr < 0)
			err = nr;
		else
			total += nr;
	}
	layout__exit(&layout);
	return err ?: total;
}
