// SPDX-License-Identifier: GPL-2.0
/* Prints a table of functions as text and as values with separators. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <subcmd/pager.h>

#include "../../color.h"
#include "../../strbuf.h"
#include "../text.h"
#include "../collect/sums.h"
#include "../estimate/columns.h"
#include "print.h"

#define LEAST_LABEL	20
#define COLOR_GREY	"\033[90m"

/* Returns the n-th character. */
static char *character(char *text, int n)
{
	while (*text && (n || (*text & 0xc0) == 0x80)) {
		n -= (*text & 0xc0) != 0x80;
		text++;
	}
	return text;
}

/* Cuts the middle out of a long text. */
static void shorten(char *text, int most)
{
	const int half = (most - 3) / 2, width = function_text__width(text);
	char *end;

	if (width <= most)
		return;

	end = character(text, width - half);
	text = character(text, half);
	*text++ = '.';
	*text++ = '.';
	*text++ = '.';
	memmove(text, end, strlen(end) + 1);
}

/*
 * Returns the name to print, with the DSO if several have the symbol: its short name if that is
 * unique, else the path.
 */
static char *print_label(const struct function_sums *function, unsigned int nr_dsos,
			 bool has_own_short_name, int most)
{
	const char *dso = function->dso;
	char address[FUNCTION_CELL_SIZE] = "", *label, *printable;
	bool with_symbol = *function->symbol;
	int ret;

	if (function->has_address)
		scnprintf(address, sizeof(address), "%s0x%llx", with_symbol ? " " : "",
			  (unsigned long long)function->address);
	if (!with_symbol || has_own_short_name)
		dso = function_text__base_name(dso);
	/* dso__synthesize_symbol() names a function without a name by its range. */
	if (!with_symbol || nr_dsos > 1 || (*dso && strstarts(function->symbol, "0x"))) {
		ret = asprintf(&label, "%s%s [%s]", function->symbol, address,
			       *dso ? dso : "unknown");
	} else {
		ret = asprintf(&label, "%s%s", function->symbol, address);
	}
	if (ret < 0)
		return NULL;
	printable = function_text__printable(label);
	free(label);
	if (printable)
		shorten(printable, most);
	return printable;
}

static int compare_short_names(const void *one, const void *other)
{
	return strcmp(function_text__base_name(*(const char *const *)one),
		      function_text__base_name(*(const char *const *)other));
}

/* Returns true if the short name is unique among the sorted paths. */
static bool is_short_unique(const char *const *paths, unsigned int nr, const char *path)
{
	const char *const *found = bsearch(&path, paths, nr, sizeof(*paths), compare_short_names);

	return (found == paths || compare_short_names(found - 1, found)) &&
	       (found == paths + nr - 1 || compare_short_names(found, found + 1));
}

/*
 * Sets the labels of the functions of one symbol, by their places in the table, which is sorted by
 * symbol, then by DSO.
 */
static int label_symbol(const struct function_table *table, size_t from, size_t to, int most,
			char **labels)
{
	const char **paths = calloc(to - from, sizeof(*paths));
	unsigned int nr = 0;
	int err = paths ? 0 : -ENOMEM;

	for (size_t i = from; !err && i < to; i++) {
		if (!nr || strcmp(paths[nr - 1], table->sums[i]->dso))
			paths[nr++] = table->sums[i]->dso;
	}
	if (!err)
		qsort(paths, nr, sizeof(*paths), compare_short_names);

	for (size_t i = from; !err && i < to; i++) {
		const struct function_sums *function = table->sums[i];

		labels[i] = print_label(function, nr, is_short_unique(paths, nr, function->dso),
					most);
		if (!labels[i])
			err = -ENOMEM;
	}
	free(paths);
	return err;
}

/**
 * function_table__labels - name the rows of a table
 * @table: the table
 * @most: the middle of longer names is cut out
 *
 * Return: the names, by place in the table, NULL without memory.
 */
char **function_table__labels(const struct function_table *table, int most)
{
	char **labels = calloc(table->nr_sums ?: 1, sizeof(*labels));

	for (size_t i = 0, next; labels && i < table->nr_sums; i = next) {
		next = i + 1;
		while (next < table->nr_sums &&
		       !strcmp(table->sums[i]->symbol, table->sums[next]->symbol))
			next++;
		if (label_symbol(table, i, next, most, labels)) {
			while (next--)
				free(labels[next]);
			zfree(&labels);
		}
	}
	return labels;
}

/**
 * function_table__free_labels - free the names of rows
 * @table: the table
 * @labels: its names, may be NULL
 */
void function_table__free_labels(const struct function_table *table, char **labels)
{
	for (size_t i = 0; labels && i < table->nr_sums; i++)
		free(labels[i]);
	free(labels);
}

/**
 * function_print__number - format a number with the digits that its column has
 * @column: the column
 * @value: the number
 * @sign: write a + before it if it is not negative
 * @buf: the output buffer
 *
 * From 10^16 on, where a double has no more digits, a number has an exponent, so
 * that each one fits into a cell.
 *
 * Return: @buf.
 */
const char *function_print__number(const struct function_column *column, double value,
				   bool sign, char buf[FUNCTION_CELL_SIZE])
{
	bool has_exponent = fabs(value) >= 1e16 && !function_column__is_count(column);

	scnprintf(buf, FUNCTION_CELL_SIZE, has_exponent ? "%s%.*e" : "%s%.*f",
		  sign && !signbit(value) ? "+" : "", column->digits, value);
	return buf;
}

/**
 * function_print__cell - format a value
 * @print: the output
 * @row: the row
 * @field: the field
 * @buf: the output buffer
 *
 * Return: @buf.
 */
const char *function_print__cell(const struct function_print *print,
				 const struct function_row *row, unsigned int field,
				 char buf[FUNCTION_CELL_SIZE])
{
	int column = print->fields[field];

	if (!row->values[column].is_defined)
		return memcpy(buf, "-", sizeof("-"));
	return function_print__number(&print->columns->columns[column], row->values[column].value,
				      /*sign=*/false, buf);
}

/**
 * function_print__interval - format the interval of a value
 * @print: the output
 * @row: the row
 * @field: the field
 * @buf: the output buffer
 *
 * Return: @buf, or a constant.
 */
const char *function_print__interval(const struct function_print *print,
				     const struct function_row *row, unsigned int field,
				     char buf[FUNCTION_INTERVAL_SIZE])
{
	const struct function_column *column = &print->columns->columns[print->fields[field]];
	const struct function_value *value = &row->values[print->fields[field]];
	char low[FUNCTION_CELL_SIZE], high[FUNCTION_CELL_SIZE];

	if (!value->is_defined || !value->has_interval)
		return "-";
	scnprintf(buf, FUNCTION_INTERVAL_SIZE, "%s..%s",
		  function_print__number(column, value->low, /*sign=*/false, low),
		  function_print__number(column, value->high, /*sign=*/false, high));
	return buf;
}

/* Returns true if a field has intervals to print. */
static bool has_intervals(const struct function_print *print, unsigned int field)
{
	return print->intervals &&
	       !function_column__is_count(&print->columns->columns[print->fields[field]]);
}

/* Returns true if a field to print has a weak value. */
static bool has_weak(const struct function_print *print, unsigned int field)
{
	for (size_t r = 0; r < print->nr_rows; r++) {
		if (print->columns->rows[r].values[print->fields[field]].is_weak)
			return true;
	}
	return false;
}

/* A table that is printed to memory goes to stdout later. */
static bool is_terminal(FILE *fp)
{
	int fd = fileno(fp);

	return isatty(fd < 0 ? STDOUT_FILENO : fd) || pager_in_use();
}

static bool uses_color(FILE *fp)
{
	return perf_use_color_default < 0 ? is_terminal(fp) : perf_use_color_default;
}

/* Returns the room of a field with the blank before it. */
static int width_of(const struct function_layout *layout, unsigned int field)
{
	const int interval = layout->interval_widths[field];

	return 1 + layout->widths[field] + layout->marked[field] + (interval ? 1 + interval : 0);
}

/* Cuts names so that the columns fit on the screen. A column that still does not is left out. */
static void fit(struct function_layout *layout)
{
	const struct function_print *print = layout->print;
	int width = layout->key_width, most;

	for (unsigned int i = 0; i < print->nr_fields; i++)
		width += width_of(layout, i);
	most = max(layout->key_width - (width - print->width), LEAST_LABEL);
	if (width > print->width && most < layout->key_width) {
		layout->key_width = max_t(int, most, strlen(layout->key));
		for (size_t i = 0; i < print->table->nr_sums; i++)
			shorten(layout->labels[i], layout->key_width);
	}
	width = layout->key_width;
	layout->nr_fields = 0;
	while (layout->nr_fields < print->nr_fields &&
	       (width += width_of(layout, layout->nr_fields)) <= print->width)
		layout->nr_fields++;
}

/**
 * function_layout__init - lay a table out in columns
 * @layout: the layout
 * @print: the output
 * @fp: the output file, NULL for a screen that shows weak values by their colour
 *
 * Return: 0, or -ENOMEM.
 */
int function_layout__init(struct function_layout *layout, const struct function_print *print,
			  FILE *fp)
{
	char buf[FUNCTION_INTERVAL_SIZE];
	size_t nr_cells = 0;

	layout->print = print;
	layout->key = print->table->by;
	layout->key_width = strlen(layout->key);
	layout->widths = calloc(print->nr_fields ?: 1, sizeof(*layout->widths));
	layout->interval_widths = calloc(print->nr_fields ?: 1, sizeof(*layout->interval_widths));
	layout->marked = calloc(print->nr_fields ?: 1, sizeof(*layout->marked));
	layout->nr_fields = print->nr_fields;
	layout->labels = function_table__labels(print->table, FUNCTION_LABEL_WIDTH);
	layout->cells = calloc(print->nr_rows * print->nr_fields + 1, sizeof(*layout->cells));
	if (!layout->widths || !layout->interval_widths || !layout->marked || !layout->labels ||
	    !layout->cells) {
		function_layout__exit(layout);
		return -ENOMEM;
	}

	for (unsigned int i = 0; i < print->nr_fields; i++) {
		layout->widths[i] = function_text__width(function_layout__title(layout, i));
		if (has_intervals(print, i))
			layout->interval_widths[i] = strlen(FUNCTION_INTERVAL_TITLE);
		/* The screen of perf functions top has no colours. */
		layout->marked[i] = fp && (print->width || !uses_color(fp)) && has_weak(print, i);
	}
	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_row *row = &print->columns->rows[r];

		layout->key_width = max(layout->key_width,
					function_text__width(function_layout__label(layout, row)));
		for (unsigned int i = 0; i < print->nr_fields; i++) {
			const char *text = function_print__cell(print, row, i,
								layout->cells[nr_cells++]);

			layout->widths[i] = max(layout->widths[i], function_text__width(text));
			if (!layout->interval_widths[i])
				continue;
			text = function_print__interval(print, row, i, buf);
			layout->interval_widths[i] = max(layout->interval_widths[i],
							 function_text__width(text));
		}
	}
	if (print->width)
		fit(layout);
	return 0;
}

/**
 * function_layout__exit - free what a layout holds
 * @layout: the layout
 */
void function_layout__exit(struct function_layout *layout)
{
	function_table__free_labels(layout->print->table, layout->labels);
	layout->labels = NULL;
	zfree(&layout->widths);
	zfree(&layout->interval_widths);
	zfree(&layout->marked);
	zfree(&layout->cells);
}

/**
 * function_layout__label - name a row
 * @layout: the layout
 * @row: the row
 *
 * Return: its name.
 */
const char *function_layout__label(const struct function_layout *layout,
				   const struct function_row *row)
{
	return layout->labels[row->sums - layout->print->table->sums];
}

/**
 * function_layout__title - name a field
 * @layout: the layout
 * @field: the field
 *
 * Return: its name.
 */
const char *function_layout__title(const struct function_layout *layout, unsigned int field)
{
	return layout->print->columns->columns[layout->print->fields[field]].name;
}

static const char *color_of(const struct function_print *print, unsigned int field,
			    const struct function_value *value)
{
	if (!value->is_defined)
		return PERF_COLOR_NORMAL;
	if (value->is_weak)
		return COLOR_GREY;
	return function_column__is_share(&print->columns->columns[print->fields[field]]) ?
		get_percent_color(value->value) : PERF_COLOR_NORMAL;
}

/* Weak values are grey, or without colours, marked. */
static void print_row(const struct function_layout *layout, const struct function_row *row,
		      FILE *fp)
{
	const struct function_print *print = layout->print;
	const char *label = function_layout__label(layout, row);
	const size_t first = (row - print->columns->rows) * print->nr_fields;
	char buf[FUNCTION_INTERVAL_SIZE];

	fprintf(fp, "%s%*s", label, layout->key_width - function_text__width(label), "");
	for (unsigned int i = 0; i < layout->nr_fields; i++) {
		const struct function_value *value = &row->values[print->fields[i]];

		color_fprintf(fp, color_of(print, i, value), " %*s", layout->widths[i],
			      layout->cells[first + i]);
		if (layout->marked[i])
			fputs(value->is_weak ? "?" : i + 1 < layout->nr_fields ? " " : "", fp);
		if (layout->interval_widths[i])
			fprintf(fp, " %*s", layout->interval_widths[i],
				function_print__interval(print, row, i, buf));
	}
	fputc('\n', fp);
}

/* Prints the columns from a source after its name. */
static void print_columns_of(const struct function_print *print, enum function_source source,
			     const char *name, FILE *fp)
{
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		const struct function_column *column = &print->columns->columns[print->fields[i]];

		if (column->source != source)
			continue;
		fprintf(fp, "%s%s", name ?: ", ", column->name);
		name = NULL;
	}
}

/* Says which cycles before a sample count. Recordings that are added up may differ. */
static void print_horizons(const struct function_table *table, FILE *fp)
{
	const char *begin = "# CPI of branch records: from the ";

	for (unsigned int i = 0; i < table->nr_sets; i++) {
		const struct event_set *set = table->sets[i];

		for (unsigned int j = 0; j < set->nr_descs; j++) {
			const struct function_group_desc *desc = &set->descs[j];

			if (set->source != FUNCTION_SOURCE_BRANCHES ||
			    !desc->alternative_sample_period)
				continue;
			fprintf(fp, "%s%llu cycles that end %u before the overflow", begin,
				(unsigned long long)desc->alternative_sample_period,
				desc->alternative_sample_count);
			begin = ", or the ";
		}
	}
	if (*begin == ',')
		fputs("; nearly all samples have them\n", fp);
}

/* Says where values come from if that is not the windows. */
static void print_sources(const struct function_print *print, FILE *fp)
{
	bool has[FUNCTION_SOURCE_MAX] = {};

	for (unsigned int i = 0; i < print->nr_fields; i++)
		has[print->columns->columns[print->fields[i]].source] = true;
	if (!has[FUNCTION_SOURCE_SAMPLES] && !has[FUNCTION_SOURCE_BRANCHES])
		return;
	fputs("# source: ", fp);
	if (has[FUNCTION_SOURCE_SAMPLES])
		fputs("event samples (# is their number)", fp);
	if (has[FUNCTION_SOURCE_SAMPLES] &&
	    function_table__has_share(print->table, FUNCTION_SHARE_RECORDED))
		fputs(", each in the function of the last branch record", fp);
	if (has[FUNCTION_SOURCE_BRANCHES])
		print_columns_of(print, FUNCTION_SOURCE_BRANCHES,
				 has[FUNCTION_SOURCE_SAMPLES] ? "; branch records: " :
								"branch records: ", fp);
	print_columns_of(print, FUNCTION_SOURCE_WINDOWS, "; windows: ", fp);
	fputc('\n', fp);
	if (has[FUNCTION_SOURCE_BRANCHES])
		print_horizons(print->table, fp);
}

/**
 * function_print__table - print aligned columns
 * @print: the output
 * @fp: the output file
 *
 * Return: 0, or -ENOMEM.
 */
int function_print__table(const struct function_print *print, FILE *fp)
{
	struct function_layout layout;

	if (function_layout__init(&layout, print, fp))
		return -ENOMEM;
	if (print->time)
		fprintf(fp, "# --time %s\n", print->time);
	if (print->intervals)
		fputs("# " FUNCTION_INTERVAL_NOTE "\n", fp);
	fprintf(fp, "%-*s", layout.key_width, layout.key);
	for (unsigned int i = 0; i < layout.nr_fields; i++) {
		const char *name = function_layout__title(&layout, i);

		fprintf(fp, " %*s%s",
			layout.widths[i] + layout.marked[i] - function_text__width(name), "", name);
		if (layout.interval_widths[i])
			fprintf(fp, " %*s", layout.interval_widths[i], FUNCTION_INTERVAL_TITLE);
	}
	fputc('\n', fp);
	for (size_t r = 0; r < print->nr_rows; r++)
		print_row(&layout, &print->columns->rows[r], fp);
	print_sources(print, fp);

	function_layout__exit(&layout);
	return 0;
}

/**
 * function_print__shortest - format as few digits as give the same number when
 *			      they are read
 * @value: the number
 * @buf: the output buffer
 *
 * Return: @buf.
 */
const char *function_print__shortest(double value, char buf[FUNCTION_CELL_SIZE])
{
	int digits, exponent;

	for (digits = 1; digits < 17; digits++) {
		scnprintf(buf, FUNCTION_CELL_SIZE, "%.*e", digits - 1, value);
		if (strtod(buf, NULL) == value)
			break;
	}
	scnprintf(buf, FUNCTION_CELL_SIZE, "%.*e", digits - 1, value);
	exponent = atoi(strchr(buf, 'e') + 1);
	if (exponent >= -4 && exponent < 16)
		scnprintf(buf, FUNCTION_CELL_SIZE, "%.*f", max(digits - 1 - exponent, 1), value);
	return buf;
}

/**
 * function_print__full - format a value with all its digits
 * @column: its column
 * @value: the value
 * @buf: the output buffer
 *
 * Return: @buf.
 */
const char *function_print__full(const struct function_column *column, double value,
				 char buf[FUNCTION_CELL_SIZE])
{
	if (!function_column__is_count(column))
		return function_print__shortest(value, buf);
	scnprintf(buf, FUNCTION_CELL_SIZE, "%.0f", value);
	return buf;
}

/* A program gets the bytes of names as they are, a terminal does not. */
static void print_quoted(const char *text, const char *separator, FILE *fp)
{
	char *printable = is_terminal(fp) ? function_text__printable(text) : NULL;

	text = printable ?: text;
	if (!strstr(text, separator) && !strpbrk(text, "\"\r\n")) {
		fputs(text, fp);
		goto out;
	}

	fputc('"', fp);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', fp);
		fputc(*text, fp);
	}
	fputc('"', fp);
out:
	free(printable);
}

/**
 * function_print__csv_title - print the title of a further value of a column
 * @name: the name of the column
 * @what: the kind of the value
 * @separator: the text between values
 * @fp: the output file
 */
void function_print__csv_title(const char *name, const char *what, const char *separator,
			       FILE *fp)
{
	char *title;

	fputs(separator, fp);
	if (asprintf(&title, "%s %s", name, what) >= 0) {
		print_quoted(title, separator, fp);
		free(title);
	}
}

/**
 * function_print__csv_key - print the titles of the parts of names
 * @table: the table
 * @separator: the text between values
 * @fp: the output file
 */
void function_print__csv_key(const struct function_table *table, const char *separator, FILE *fp)
{
	print_quoted(table->by, separator, fp);
	fprintf(fp, "%s%s", separator,
		function_by__is(table->by, FUNCTION_BY_DSO) ? "path" : "dso");
}

/**
 * function_print__csv_name - print the parts of a name
 * @function: the function
 * @separator: the text between values
 * @fp: the output file
 */
void function_print__csv_name(const struct function_sums *function, const char *separator,
			      FILE *fp)
{
	char *name;

	if (!function->has_address) {
		print_quoted(function->symbol, separator, fp);
	} else if (asprintf(&name, "%s%s0x%llx", function->symbol, *function->symbol ? " " : "",
			    (unsigned long long)function->address) >= 0) {
		print_quoted(name, separator, fp);
		free(name);
	}
	fputs(separator, fp);
	print_quoted(function->dso, separator, fp);
}

static void csv_titles(const struct function_print *print, const char *separator, FILE *fp)
{
	const struct function_columns *columns = print->columns;

	if (print->time)
		fprintf(fp, "time%s", separator);
	function_print__csv_key(print->table, separator, fp);
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		const char *name = columns->columns[print->fields[i]].name;

		fputs(separator, fp);
		print_quoted(name, separator, fp);
		if (has_intervals(print, i)) {
			function_print__csv_title(name, "low", separator, fp);
			function_print__csv_title(name, "high", separator, fp);
		}
	}
	fprintf(fp, "%sweak\n", separator);
}

/* Prints the names of the weak values, with semicolons between them. */
static void print_weak(const struct function_print *print, const struct function_row *row,
		       const char *separator, FILE *fp)
{
	struct strbuf names = STRBUF_INIT;
	int err = 0;

	for (unsigned int i = 0; !err && i < print->nr_fields; i++) {
		if (row->values[print->fields[i]].is_weak)
			err = strbuf_addf(&names, "%s%s", names.len ? ";" : "",
					  print->columns->columns[print->fields[i]].name);
	}
	print_quoted(names.buf, separator, fp);
	strbuf_release(&names);
}

/**
 * function_print__csv - print values with all their digits
 * @print: the output
 * @separator: the text between values
 * @fp: the output file
 */
void function_print__csv(const struct function_print *print, const char *separator, FILE *fp)
{
	const struct function_columns *columns = print->columns;
	char buf[FUNCTION_CELL_SIZE];

	if (!print->is_continued)
		csv_titles(print, separator, fp);
	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_row *row = &columns->rows[r];

		if (print->time)
			fprintf(fp, "%.*s%s", (int)strcspn(print->time, ","), print->time,
				separator);
		function_print__csv_name(function_of(row), separator, fp);
		for (unsigned int i = 0; i < print->nr_fields; i++) {
			const struct function_value *value = &row->values[print->fields[i]];
			const struct function_column *column = &columns->columns[print->fields[i]];

			fprintf(fp, "%s%s", separator, !value->is_defined ? "-" :
				function_print__full(column, value->value, buf));
			if (has_intervals(print, i)) {
				fprintf(fp, "%s%s", separator, !value->has_interval ? "-" :
					function_print__shortest(value->low, buf));
				fprintf(fp, "%s%s", separator, !value->has_interval ? "-" :
					function_print__shortest(value->high, buf));
			}
		}
		fputs(separator, fp);
		print_weak(print, row, separator, fp);
		fputc('\n', fp);
	}
}
