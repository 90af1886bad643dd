// SPDX-License-Identifier: GPL-2.0
/* JSON by the schema tools/perf/Documentation/perf-functions.schema.json, and its writer. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>

#include "functions.h"

/* Raise it when a member changes its meaning or is removed, not when one is added. */
#define JSON_VERSION	3

/* Returns how many bytes of a text stand for themselves. */
static size_t plain_length(const char *text)
{
	size_t length = 0;

	while ((u8)text[length] >= ' ' && (u8)text[length] < 0x7f && text[length] != '"' &&
	       text[length] != '\\')
		length++;
	return length;
}

/* A byte that is not UTF-8 becomes \xNN. */
static void write_text(const char *text, FILE *fp)
{
	fputc('"', fp);
	for (int length; *text; text += length ?: 1) {
		bool is_control;

		length = plain_length(text);
		if (length) {
			fwrite(text, 1, length, fp);
			continue;
		}
		length = function_text__character(text, &is_control);
		if (!length)
			fprintf(fp, "\\\\x%02x", (u8)*text);
		else if (is_control)	/* The last byte of the character is its number. */
			fprintf(fp, "\\u%04x", (u8)text[length - 1]);
		else if (length == 1)
			fprintf(fp, "\\%c", *text);
		else
			fwrite(text, 1, length, fp);
	}
	fputc('"', fp);
}

/* Begins an item: what is not deep has a line of its own. */
static void begin_item(struct fn_json *json, const char *key)
{
	if (json->has_item)
		fputc(',', json->fp);
	if (json->depth && json->depth <= 2)
		fprintf(json->fp, "\n%*s", json->depth, "");
	else if (json->has_item)
		fputc(' ', json->fp);
	json->has_item = true;
	if (key) {
		write_text(key, json->fp);
		fputs(": ", json->fp);
	}
}

void fn_json__begin(struct fn_json *json, const char *key, char bracket)
{
	begin_item(json, key);
	fputc(bracket, json->fp);
	json->depth++;
	json->has_item = false;
}

void fn_json__end(struct fn_json *json, char bracket)
{
	json->depth--;
	if (json->depth < 2 && json->has_item)
		fprintf(json->fp, "\n%*s", json->depth, "");
	fputc(bracket, json->fp);
	if (!json->depth)
		fputc('\n', json->fp);
	json->has_item = json->depth;
}

void fn_json__string(struct fn_json *json, const char *key, const char *text)
{
	begin_item(json, key);
	write_text(text, json->fp);
}

void fn_json__bool(struct fn_json *json, const char *key, bool value)
{
	begin_item(json, key);
	fputs(value ? "true" : "false", json->fp);
}

void fn_json__number(struct fn_json *json, const char *key, double value)
{
	char buf[FN_CELL_SIZE];

	begin_item(json, key);
	fputs(isfinite(value) ? fn_shortest(value, buf) : "null", json->fp);
}

/* What tells how certain a value is has no more than nine digits, which take less time. */
static void write_rounded(struct fn_json *json, const char *key, double value)
{
	begin_item(json, key);
	fprintf(json->fp, isfinite(value) ? "%.9g" : "null", value);
}

void fn_json__value(struct fn_json *json, const char *key, const struct fn_value *value)
{
	if (!fn_value__is_defined(value)) {
		fn_json__number(json, key, NAN);
		return;
	}
	fn_json__begin(json, key, '{');
	fn_json__number(json, "value", value->value);
	if (fn_value__has_interval(value)) {
		write_rounded(json, "low", value->low);
		write_rounded(json, "high", value->high);
	}
	if (value->error > 0)
		write_rounded(json, "error", value->error);
	if (value->mark != FN_SURE)
		fn_json__string(json, "mark", value->mark == FN_WEAK ? "weak" : "rough");
	if (value->mark == FN_WEAK && value->doubt)
		fn_json__string(json, "doubt", value->doubt);
	fn_json__end(json, '}');
}

static void write_set(struct fn_json *json, const struct fn_set *set)
{
	fn_json__begin(json, NULL, '{');
	fn_json__string(json, "source", set->source->name);
	fn_json__begin(json, "events", '[');
	for (unsigned int i = 0; i < set->nr_events; i++) {
		const struct fn_event *event = &set->events[i];

		fn_json__begin(json, NULL, '{');
		fn_json__string(json, "name", event->name);
		fn_json__bool(json, "precise", event->is_precise);
		fn_json__number(json, "scale", event->scale);
		fn_json__end(json, '}');
	}
	fn_json__end(json, ']');
	fn_json__begin(json, "groups", '[');
	for (unsigned int i = 0; i < set->nr_groups; i++) {
		const struct fn_group *group = &set->groups[i];

		fn_json__begin(json, NULL, '{');
		fn_json__number(json, "period", group->period);
		fn_json__number(json, "freq", group->freq);
		fn_json__number(json, "window", group->window);
		fn_json__number(json, "burst", group->burst);
		fn_json__number(json, "jitter", group->jitter);
		fn_json__bool(json, "inherit", group->inherit);
		fn_json__end(json, '}');
	}
	fn_json__end(json, ']');
	fn_json__end(json, '}');
}

void fn_json__head(struct fn_json *json, const struct fn_table *table)
{
	fn_json__begin(json, NULL, '{');
	fn_json__number(json, "version", JSON_VERSION);
	fn_json__string(json, "program", "perf functions");
	fn_json__string(json, "by", table->by);
	fn_json__bool(json, "inline", table->inlines);
}

void fn_json__recorded(struct fn_json *json, const struct fn_table *table)
{
	fn_json__begin(json, "sets", '[');
	fn_table__for_each_set(table, set) {
		if (!set->is_hidden)
			write_set(json, set);
	}
	fn_json__end(json, ']');
	fn_json__begin(json, "cpus", '[');
	for (unsigned int i = 0; i < table->nr_cpus; i++)
		fn_json__string(json, NULL, table->cpus[i]);
	fn_json__end(json, ']');
	fn_json__number(json, "lost", table->lost);
	fn_json__number(json, "throttled", table->throttled);
	fn_json__bool(json, "lacks_children", table->lacks_children);
}

void fn_json__columns(struct fn_json *json, const struct fn_columns *columns, const int *fields,
		      unsigned int nr)
{
	fn_json__begin(json, "columns", '[');
	for (unsigned int i = 0; i < nr; i++) {
		const struct fn_column *column = &columns->columns[fields[i]];

		fn_json__begin(json, NULL, '{');
		fn_json__string(json, "name", column->title);
		fn_json__string(json, "meaning", column->meaning);
		fn_json__string(json, "role", column->is_count ? "count" :
				fn_column__is_share(column) ? "share" : "rate");
		fn_json__string(json, "unit", column->unit ?: "");
		fn_json__number(json, "digits", column->digits);
		if (column->source)
			fn_json__string(json, "source", column->source->name);
		if (column->divides)
			fn_json__string(json, "divides", column->divides);
		if (column->parent)
			fn_json__string(json, "parent", column->parent);
		fn_json__end(json, '}');
	}
	fn_json__end(json, ']');
}

void fn_json__names(struct fn_json *json, const struct fn_row *row)
{
	char address[20];

	fn_json__string(json, "label", row->label);
	fn_json__string(json, "symbol", row->symbol);
	fn_json__string(json, "dso", row->dso);
	if (!row->has_address)
		return;
	/* A number of JSON has 53 bits only. */
	scnprintf(address, sizeof(address), "0x%llx",
		  (unsigned long long)row->address);
	fn_json__string(json, "address", address);
}

/* The number of observations in a row by source; NULL: in all rows. */
static void write_observations(struct fn_json *json, const struct fn_table *table,
			       const struct fn_row *row)
{
	fn_json__begin(json, "observations", '{');
	for (int i = 0; fn_sources[i]; i++) {
		if (fn_table__has_source(table, fn_sources[i], NULL))
			fn_json__number(json, fn_sources[i]->name,
					fn_table__number(table, row, fn_sources[i]));
	}
	fn_json__end(json, '}');
}

/* Writes all events, and the one that the widths of a flame graph stand for. */
static void write_events(struct fn_json *json, const struct fn_columns *columns,
			 const char *const *events, unsigned int nr)
{
	const char *width = columns->columns[fn_columns__default_sort(columns)].event;

	fn_json__begin(json, "events", '[');
	for (unsigned int i = 0; i < nr; i++) {
		fn_json__begin(json, NULL, '{');
		fn_json__string(json, "name", events[i]);
		fn_json__string(json, "unit",
				fn_event__is_clock(events[i]) ? "nanoseconds" : "events");
		fn_json__end(json, '}');
	}
	fn_json__end(json, ']');
	width = width ?: nr ? events[0] : NULL;
	if (width)
		fn_json__string(json, "width", width);
}

static void write_row(struct fn_json *json, const struct fn_view *view, const struct fn_row *row,
		      const char *const *events, unsigned int nr_events)
{
	fn_json__begin(json, NULL, '{');
	fn_json__names(json, row);
	write_observations(json, view->table, row);
	fn_json__begin(json, "events", '{');
	for (unsigned int i = 0; i < nr_events; i++) {
		const struct fn_value value = fn_row__events(view->table, row, events[i]);

		fn_json__value(json, events[i], &value);
	}
	fn_json__end(json, '}');
	fn_json__begin(json, "metrics", '{');
	for (unsigned int i = 0; i < view->nr_fields; i++) {
		fn_json__value(json, view->columns->columns[view->fields[i]].title,
			       fn_columns__value(view->columns, row, view->fields[i]));
	}
	fn_json__end(json, '}');
	fn_json__end(json, '}');
}

/* Returns the names of all events, the leaders first, to be freed; NULL without memory. */
static const char **find_events(const struct fn_table *table, unsigned int *nr)
{
	const char **events;
	unsigned int most = 1;

	fn_table__for_each_set(table, set)
		most += set->nr_events;
	events = calloc(most, sizeof(*events));
	*nr = 0;
	for (unsigned int i = 0; events && i < table->nr_sets; i++) {
		const struct fn_set *set = table->sets[i];

		for (unsigned int j = 0; !set->is_hidden && j < set->nr_events; j++) {
			unsigned int k = 0;

			while (k < *nr && strcmp(events[k], set->events[j].name))
				k++;
			if (k == *nr)
				events[(*nr)++] = set->events[j].name;
		}
	}
	return events;
}

int fn_view__print_json(const struct fn_view *view, FILE *fp)
{
	const struct fn_table *table = view->table;
	struct fn_json json = { .fp = fp };
	unsigned int nr_events;
	const char **events = find_events(table, &nr_events);

	if (!events || fn_table__set_labels(table, INT_MAX)) {
		free(events);
		return -ENOMEM;
	}
	fn_json__head(&json, table);
	if (view->time) {
		begin_item(&json, "time");
		fprintf(fp, "[%s]", view->time);
	}
	fn_json__recorded(&json, table);
	write_observations(&json, table, NULL);
	write_events(&json, view->columns, events, nr_events);
	fn_json__columns(&json, view->columns, view->fields, view->nr_fields);
	fn_json__begin(&json, "functions", '[');
	for (size_t i = 0; i < view->nr_rows; i++)
		write_row(&json, view, view->rows[i], events, nr_events);
	fn_json__end(&json, ']');
	fn_json__end(&json, '}');
	free(events);
	return 0;
}
