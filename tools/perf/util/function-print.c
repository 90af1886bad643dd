// SPDX-License-Identifier: GPL-2.0
/*
 * A table of functions as text, as values with separators and as JSON, as
 * scripts/python/generate-function-metrics.py prints it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "color.h"
#include "function-columns.h"
#include "function-print.h"
#include "function-sums.h"

#define LABEL_WIDTH	60

/**
 * function_text_width - count characters in UTF-8, for columns to be straight
 * @text: the text
 */
int function_text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

/* The n-th character. */
static char *character(char *text, int n)
{
	while (*text && (n || (*text & 0xc0) == 0x80)) {
		n -= (*text & 0xc0) != 0x80;
		text++;
	}
	return text;
}

/* Cut the middle out of a long text. */
static void shorten(char *text)
{
	const int half = (LABEL_WIDTH - 3) / 2, width = function_text_width(text);
	char *end;

	if (width <= LABEL_WIDTH)
		return;

	end = character(text, width - half);
	text = character(text, half);
	*text++ = '.';
	*text++ = '.';
	*text++ = '.';
	memmove(text, end, strlen(end) + 1);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static const struct function_sums *function_of(const struct function_row *row)
{
	return row->sums[0];
}

/*
 * The name to print, with the DSO where the same symbol is in several: its
 * short name if this is enough, else the path.
 */
static char *label_of(const struct function_sums *function, unsigned int nr_dsos,
		      bool is_short_unique)
{
	const char *dso = function->dso;
	char address[FUNCTION_CELL_SIZE] = "", *label;
	bool with_symbol = *function->symbol;
	int ret;

	if (function->has_address)
		scnprintf(address, sizeof(address), "%s0x%llx", with_symbol ? " " : "",
			  (unsigned long long)function->address);
	if (!with_symbol || is_short_unique)
		dso = base_name(dso);
	/* dso__synthesize_symbol() names a function without a name by its range. */
	if (!with_symbol || nr_dsos > 1 || (*dso && strstarts(function->symbol, "0x"))) {
		ret = asprintf(&label, "%s%s [%s]", function->symbol, address,
			       *dso ? dso : "unknown");
	} else {
		ret = asprintf(&label, "%s%s", function->symbol, address);
	}
	if (ret < 0)
		return NULL;
	shorten(label);
	return label;
}

/*
 * Labels of the functions of one symbol, by their places in the table. The
 * table is sorted by symbol, then by DSO.
 */
static int label_symbol(const struct function_table *table, size_t from, size_t to, char **labels)
{
	unsigned int nr_dsos = 0;

	for (size_t i = from; i < to; i++)
		nr_dsos += i == from || strcmp(table->sums[i - 1]->dso, table->sums[i]->dso);

	for (size_t i = from; i < to; i++) {
		const struct function_sums *function = table->sums[i];
		unsigned int nr_same = 0;

		/* Without symbol there may be many, and their short names will do. */
		for (size_t j = from; *function->symbol && j < to; j++) {
			if (j > from && !strcmp(table->sums[j - 1]->dso, table->sums[j]->dso))
				continue;
			nr_same += !strcmp(base_name(table->sums[j]->dso),
					   base_name(function->dso));
		}
		labels[i] = label_of(function, nr_dsos, nr_same == 1);
		if (!labels[i])
			return -ENOMEM;
	}
	return 0;
}

static char **label_functions(const struct function_table *table)
{
	char **labels = calloc(table->nr_sums ?: 1, sizeof(*labels));

	for (size_t i = 0, next; labels && i < table->nr_sums; i = next) {
		next = i + 1;
		while (next < table->nr_sums &&
		       !strcmp(table->sums[i]->symbol, table->sums[next]->symbol))
			next++;
		if (label_symbol(table, i, next, labels)) {
			while (next--)
				free(labels[next]);
			zfree(&labels);
		}
	}
	return labels;
}

/**
 * function_print__cell - format a value
 * @print: what is printed
 * @row: the row
 * @field: the field
 * @buf: where to
 */
const char *function_print__cell(const struct function_print *print,
				 const struct function_row *row, unsigned int field,
				 char buf[FUNCTION_CELL_SIZE])
{
	int column = print->fields[field];

	if (!row->values[column].is_defined)
		return "-";
	scnprintf(buf, FUNCTION_CELL_SIZE, "%.*f", print->columns->columns[column].digits,
		  row->values[column].value);
	return buf;
}

/**
 * function_layout__init - lay a table out in columns
 * @layout: the layout
 * @print: what is printed
 *
 * Return: 0, or -ENOMEM.
 */
int function_layout__init(struct function_layout *layout, const struct function_print *print)
{
	char buf[FUNCTION_CELL_SIZE];

	layout->print = print;
	layout->key = function_by__name(print->table->by);
	layout->key_width = strlen(layout->key);
	layout->widths = calloc(print->nr_fields ?: 1, sizeof(*layout->widths));
	layout->labels = label_functions(print->table);
	if (!layout->widths || !layout->labels) {
		function_layout__exit(layout);
		return -ENOMEM;
	}

	for (unsigned int i = 0; i < print->nr_fields; i++)
		layout->widths[i] = function_text_width(function_layout__title(layout, i));
	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_row *row = &print->columns->rows[r];

		layout->key_width = max(layout->key_width,
					function_text_width(function_layout__label(layout, row)));
		for (unsigned int i = 0; i < print->nr_fields; i++) {
			const char *text = function_print__cell(print, row, i, buf);

			layout->widths[i] = max(layout->widths[i], function_text_width(text));
		}
	}
	return 0;
}

/**
 * function_layout__exit - free what a layout holds
 * @layout: the layout
 */
void function_layout__exit(struct function_layout *layout)
{
	for (size_t i = 0; layout->labels && i < layout->print->table->nr_sums; i++)
		free(layout->labels[i]);
	zfree(&layout->labels);
	zfree(&layout->widths);
}

/**
 * function_layout__label - name a row
 * @layout: the layout
 * @row: the row
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
 */
const char *function_layout__title(const struct function_layout *layout, unsigned int field)
{
	return layout->print->columns->columns[layout->print->fields[field]].name;
}

/**
 * function_print__table - print aligned columns
 * @print: what is printed
 * @fp: where to
 *
 * Return: 0, or -ENOMEM.
 */
int function_print__table(const struct function_print *print, FILE *fp)
{
	const struct function_columns *columns = print->columns;
	struct function_layout layout;
	char buf[FUNCTION_CELL_SIZE];

	if (function_layout__init(&layout, print))
		return -ENOMEM;

	fprintf(fp, "%-*s", layout.key_width, layout.key);
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		const char *name = function_layout__title(&layout, i);

		fprintf(fp, " %*s%s", layout.widths[i] - function_text_width(name), "", name);
	}
	fputc('\n', fp);

	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_row *row = &columns->rows[r];
		const char *label = function_layout__label(&layout, row);

		fprintf(fp, "%s%*s", label, layout.key_width - function_text_width(label), "");
		for (unsigned int i = 0; i < print->nr_fields; i++) {
			const struct function_column *column = &columns->columns[print->fields[i]];
			const struct function_value *value = &row->values[print->fields[i]];
			const char *color = function_column__is_share(column) && value->is_defined ?
					    get_percent_color(value->value) : PERF_COLOR_NORMAL;

			color_fprintf(fp, color, " %*s", layout.widths[i],
				      function_print__cell(print, row, i, buf));
		}
		fputc('\n', fp);
	}
	function_layout__exit(&layout);
	return 0;
}

/* As few digits as give the same number when they are read. */
static const char *shortest(double value, char buf[FUNCTION_CELL_SIZE])
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

static const char *full_value(const struct function_column *column, double value,
			      char buf[FUNCTION_CELL_SIZE])
{
	if (!function_column__is_count(column))
		return shortest(value, buf);
	scnprintf(buf, FUNCTION_CELL_SIZE, "%.0f", value);
	return buf;
}

static void print_quoted(const char *text, const char *separator, FILE *fp)
{
	if (!strstr(text, separator) && !strpbrk(text, "\"\r\n")) {
		fputs(text, fp);
		return;
	}

	fputc('"', fp);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', fp);
		fputc(*text, fp);
	}
	fputc('"', fp);
}

/**
 * function_print__csv - print values with all their digits
 * @print: what is printed
 * @separator: what is between the values
 * @fp: where to
 */
void function_print__csv(const struct function_print *print, const char *separator, FILE *fp)
{
	const struct function_columns *columns = print->columns;
	char buf[FUNCTION_CELL_SIZE];

	fprintf(fp, "%s%s%s", function_by__name(print->table->by), separator,
		print->table->by == FUNCTION_BY_DSO ? "path" : "dso");
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		fputs(separator, fp);
		print_quoted(columns->columns[print->fields[i]].name, separator, fp);
	}
	fputc('\n', fp);

	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_row *row = &columns->rows[r];
		const struct function_sums *function = function_of(row);
		char *name;

		if (!function->has_address) {
			print_quoted(function->symbol, separator, fp);
		} else if (asprintf(&name, "%s%s0x%llx", function->symbol,
				    *function->symbol ? " " : "",
				    (unsigned long long)function->address) >= 0) {
			print_quoted(name, separator, fp);
			free(name);
		}
		fputs(separator, fp);
		print_quoted(function->dso, separator, fp);
		for (unsigned int i = 0; i < print->nr_fields; i++) {
			const struct function_value *value = &row->values[print->fields[i]];
			const struct function_column *column = &columns->columns[print->fields[i]];

			fprintf(fp, "%s%s", separator, !value->is_defined ? "-" :
				full_value(column, value->value, buf));
		}
		fputc('\n', fp);
	}
}

static void json_string(const char *text, FILE *fp)
{
	fputc('"', fp);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(fp, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(fp, "\\u%04x", *text);
		else
			fputc(*text, fp);
	}
	fputc('"', fp);
}

static void json_events(const struct event_set *set, FILE *fp)
{
	fputs("\"events\": [", fp);
	for (unsigned int i = 0; i < set->nr_events; i++) {
		fputs(i ? ", " : "", fp);
		json_string(set->events[i], fp);
	}
	fputc(']', fp);
}

static void json_number(const char *before, u64 number, FILE *fp)
{
	fprintf(fp, "%s%llu", before, (unsigned long long)number);
}

static void json_groups(const struct function_table *table, FILE *fp)
{
	const char *comma = "";

	fprintf(fp, "{\n \"by\": \"%s\",\n \"inline\": %s,\n \"groups\": [",
		function_by__name(table->by), table->inlines ? "true" : "false");
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		for (unsigned int j = 0; j < table->sets[i]->nr_descs; j++) {
			const struct function_group_desc *desc = &table->sets[i]->descs[j];

			fprintf(fp, "%s\n  {", comma);
			json_events(table->sets[i], fp);
			fprintf(fp, ", \"share\": \"%s\"", desc->discard ? "discard" : "none");
			json_number(", \"sample_period\": ", desc->sample_period, fp);
			json_number(", \"alternative_sample_period\": ",
				    desc->alternative_sample_period, fp);
			json_number(", \"jitter_alternate_period\": ",
				    desc->jitter_alternate_period, fp);
			fprintf(fp, ", \"inherit\": %s}", desc->inherit ? "true" : "false");
			comma = ",";
		}
	}
	json_number("\n ],\n \"throttled\": ", table->throttled, fp);
	json_number(",\n \"lost\": ", table->lost, fp);
	fputs(",\n", fp);
}

static void json_sums(const struct function_sums *sums, FILE *fp)
{
	const struct event_set *set = sums->set;
	char buf[U192_DECIMAL_SIZE];

	fputs("\n    {", fp);
	json_events(set, fp);
	json_number(", \"samples\": ", sums->samples, fp);
	json_number(", \"matched\": ", sums->matched, fp);
	json_number(", \"discarded\": ", sums->samples - sums->matched, fp);
	fputs(",\n     \"totals\": {", fp);
	for (unsigned int i = 0; i < set->nr_events; i++) {
		fputs(i ? ", " : "", fp);
		json_string(set->events[i], fp);
		fprintf(fp, ": %s", u192__decimal(&sums->values[i], buf));
	}
	fputs("},\n     \"products\": {", fp);
	for (unsigned int i = 0; i < set->nr_events; i++) {
		for (unsigned int j = i; j < set->nr_events; j++) {
			/* The leader is first in the set; in a pair, the first by name. */
			bool in_order = strcmp(set->events[i], set->events[j]) <= 0;
			unsigned int product = event_set__product(set, i, j);
			char *pair;

			if (asprintf(&pair, "%s*%s", set->events[in_order ? i : j],
				     set->events[in_order ? j : i]) < 0)
				continue;
			fputs(j ? ", " : "", fp);
			json_string(pair, fp);
			fprintf(fp, ": %s", u192__decimal(&sums->values[product], buf));
			free(pair);
		}
	}
	fputs("}}", fp);
}

static void json_values(const struct function_print *print, const struct function_row *row,
			bool errors, FILE *fp)
{
	const char *comma = "";
	char buf[FUNCTION_CELL_SIZE];

	fputc('{', fp);
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		const struct function_column *column = &print->columns->columns[print->fields[i]];
		const struct function_value *value = &row->values[print->fields[i]];

		if (errors && !value->has_error)
			continue;
		fputs(comma, fp);
		json_string(column->name, fp);
		fputs(": ", fp);
		if (errors)
			fputs(shortest(value->error, buf), fp);
		else if (value->is_defined)
			fputs(full_value(column, value->value, buf), fp);
		else
			fputs("null", fp);
		comma = ", ";
	}
	fputc('}', fp);
}

/**
 * function_print__json - print an object: groups, functions with sums, values
 *			  and standard errors
 * @print: what is printed
 * @fp: where to
 */
void function_print__json(const struct function_print *print, FILE *fp)
{
	json_groups(print->table, fp);
	fputs(" \"functions\": [", fp);
	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_row *row = &print->columns->rows[r];
		const struct function_sums *function = function_of(row);

		fputs(r ? ",\n  {\"symbol\": " : "\n  {\"symbol\": ", fp);
		json_string(function->symbol, fp);
		fputs(", \"dso\": ", fp);
		json_string(function->dso, fp);
		if (function->has_address)
			json_number(", \"address\": ", function->address, fp);
		else
			fputs(", \"address\": null", fp);
		fputs(",\n   \"sums\": [", fp);
		for (size_t i = 0; i < row->nr_sums; i++) {
			fputs(i ? "," : "", fp);
			json_sums(row->sums[i], fp);
		}
		fputs("],\n   \"metrics\": ", fp);
		json_values(print, row, /*errors=*/false, fp);
		fputs(",\n   \"errors\": ", fp);
		json_values(print, row, /*errors=*/true, fp);
		fputc('}', fp);
	}
	fputs("\n ]\n}\n", fp);
}
