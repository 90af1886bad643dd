// SPDX-License-Identifier: GPL-2.0
/*
 * Prints a table of functions, and the changes between two, as JSON by the schema
 * tools/perf/Documentation/perf-functions.schema.json.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "../text.h"
#include "../collect/sums.h"
#include "../estimate/columns.h"
#include "../estimate/counts.h"
#include "../estimate/diff.h"
#include "../estimate/effect.h"
#include "../estimate/tree.h"
#include "diff-print.h"
#include "json.h"
#include "print.h"

/* Raise it when a member changes its meaning or is removed, not when one is added. */
#define JSON_VERSION	2

/* Prints a string. A byte that is not UTF-8 becomes \xNN. */
static void json_string(const char *text, FILE *fp)
{
	fputc('"', fp);
	for (int length; *text; text += length ?: 1) {
		bool is_control;

		length = function_text__character(text, &is_control);
		if (!length)
			fprintf(fp, "\\\\x%02x", (u8)*text);
		else if (is_control)	/* The last byte of the character is its number. */
			fprintf(fp, "\\u%04x", (u8)text[length - 1]);
		else if (*text == '"' || *text == '\\')
			fprintf(fp, "\\%c", *text);
		else
			fwrite(text, 1, length, fp);
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

/* Prints an integer, as a string if a double, and so JavaScript, would round it. */
static void json_number(const char *before, u64 number, FILE *fp)
{
	fprintf(fp, number < 1ULL << 53 ? "%s%llu" : "%s\"%llu\"", before,
		(unsigned long long)number);
}

/* Prints how a table was recorded, as members of an object. */
static void json_recorded(const struct function_table *table, FILE *fp)
{
	const char *comma = "";

	fputs(" \"groups\": [", fp);
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		for (unsigned int j = 0; j < table->sets[i]->nr_descs; j++) {
			const struct function_group_desc *desc = &table->sets[i]->descs[j];

			fprintf(fp, "%s\n  {", comma);
			json_events(table->sets[i], fp);
			fprintf(fp, ", \"share\": \"%s\"", function_share__name(desc->share));
			json_number(", \"sample_period\": ", desc->sample_period, fp);
			json_number(", \"sample_freq\": ", desc->sample_freq, fp);
			json_number(", \"alternative_sample_period\": ",
				    desc->alternative_sample_period, fp);
			json_number(", \"alternative_sample_count\": ",
				    desc->alternative_sample_count, fp);
			json_number(", \"jitter_alternate_period\": ",
				    desc->jitter_alternate_period, fp);
			fprintf(fp, ", \"inherit\": %s}", desc->inherit ? "true" : "false");
			comma = ",";
		}
	}
	json_number("\n ],\n \"throttled\": ", table->throttled, fp);
	json_number(",\n \"lost\": ", table->lost, fp);
	fprintf(fp, ",\n \"lacks_children\": %s", table->lacks_children ? "true" : "false");
}

/* Prints how late windows have ended, if recordings tell. */
static void json_skids(const struct function_table *table, FILE *fp)
{
	const char *begin = ",\n \"skid\": [\n  {";
	struct function_skid skid;
	unsigned int next = 0;
	bool has_any = false;

	while (!function_table__skid(table, &next, &skid)) {
		if (!skid.nr)
			continue;
		fputs(begin, fp);
		fputs("\"leader\": ", fp);
		json_string(skid.leader, fp);
		json_number(", \"windows\": ", skid.nr, fp);
		fprintf(fp, ", \"mean\": %.17g", skid.mean);
		json_number(", \"median\": ", skid.median, fp);
		json_number(", \"percentile_95\": ", skid.percentile_95, fp);
		fputc('}', fp);
		begin = ",\n  {";
		has_any = true;
	}
	if (has_any)
		fputs("\n ]", fp);
}

/* Prints the events that the interrupt before a window of a group adds to it. */
static void json_added(const struct event_set *set, FILE *fp)
{
	const char *comma = "";

	fputs("\n  {", fp);
	json_events(set, fp);
	fputs(",\n   \"added\": {", fp);
	for (unsigned int i = 0; i < set->nr_events; i++) {
		const struct function_effect *effect = &set->effects[i];

		fprintf(fp, "%s\n    ", comma);
		json_string(set->events[i], fp);
		fprintf(fp, ": {\"mean\": %.17g, \"added\": %.17g, \"error\": %.17g, \"seen\": %s}",
			effect->mean, effect->added, effect->error,
			function_effect__is_seen(set, i) ? "true" : "false");
		comma = ",";
	}
	fputs("\n   }}", fp);
}

static void json_interrupts(const struct function_table *table, FILE *fp)
{
	const char *comma = "";

	fputs(",\n \"interrupts\": [", fp);
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		if (!function_effect__is_known(table->sets[i]))
			continue;
		fputs(comma, fp);
		json_added(table->sets[i], fp);
		comma = ",";
	}
	fputs("\n ]", fp);
}

/*
 * Prints the numbers of windows of some sums, and of samples of events that sample themselves, or
 * else with branch records, as members of an object. With @is_inclusive, callers have those of what
 * they call: two rows have all.
 */
static void json_windows(struct function_sums *const *sums, size_t nr, bool is_inclusive, FILE *fp)
{
	u64 opened = 0, samples = 0, matched = 0, inside = 0, own = 0, paths = 0;

	for (size_t i = 0; i < nr; i++) {
		if (is_inclusive && !function_sums__is_root(sums[i], FUNCTION_ALL) &&
		    !function_sums__is_root(sums[i], FUNCTION_CUT))
			continue;
		if (sums[i]->set->source == FUNCTION_SOURCE_SAMPLES)
			own = add_saturated(own, sums[i]->samples);
		if (sums[i]->set->source == FUNCTION_SOURCE_BRANCHES)
			paths = add_saturated(paths, sums[i]->opened);
		if (sums[i]->set->source != FUNCTION_SOURCE_WINDOWS)
			continue;
		opened = add_saturated(opened, sums[i]->opened);
		samples = add_saturated(samples, sums[i]->samples);
		matched = add_saturated(matched, sums[i]->matched);
		inside = add_saturated(inside, function_sums__inside(sums[i]));
	}
	json_number("\"windows\": {\"opened\": ", opened, fp);
	json_number(", \"samples\": ", samples, fp);
	json_number(", \"matched\": ", matched, fp);
	json_number(", \"discarded\": ", samples - inside, fp);
	json_number("}, \"samples\": ", own ?: paths, fp);
}

/* Prints the events of all groups with their units, and the one for the widths of flame graphs. */
static void json_all_events(const struct function_print *print,
			    const struct function_counts *counts, FILE *fp)
{
	const char *width = function_counts__width(counts, print->table, print->columns);

	fputs(" \"events\": [", fp);
	for (unsigned int i = 0; i < counts->nr_events; i++) {
		const char *event = counts->events[i];

		fputs(i ? ", {\"name\": " : "{\"name\": ", fp);
		json_string(event, fp);
		fprintf(fp, ", \"unit\": \"%s\"}", strcmp(event, "cpu-clock") &&
			strcmp(event, "task-clock") ? "events" : "nanoseconds");
	}
	fputs("],\n \"width\": ", fp);
	if (width)
		json_string(width, fp);
	else
		fputs("null", fp);
	fputs(",\n", fp);
}

/* Prints the events of the recording that belong to a row. */
static void json_counts(const struct function_print *print, const struct function_counts *counts,
			const struct function_row *row, FILE *fp)
{
	const struct function_count *count = counts->counts +
		(row->sums - print->table->sums) * counts->nr_events;
	char buf[FUNCTION_CELL_SIZE];

	fputs(",\n   \"events\": {", fp);
	for (unsigned int i = 0; i < counts->nr_events; i++) {
		fputs(i ? ", " : "", fp);
		json_string(counts->events[i], fp);
		fprintf(fp, ": {\"count\": %.0f, \"variance\": %s}", count[i].value,
			function_print__shortest(count[i].variance, buf));
	}
	fputc('}', fp);
}

enum json_part { JSON_METRICS, JSON_ERRORS, JSON_INTERVALS };

static void json_value(const struct function_column *column, const struct function_value *value,
		       enum json_part part, FILE *fp)
{
	char buf[FUNCTION_CELL_SIZE];

	if (part == JSON_ERRORS) {
		fputs(function_print__shortest(value->error, buf), fp);
	} else if (part == JSON_INTERVALS) {
		fprintf(fp, "[%s, ", function_print__shortest(value->low, buf));
		fprintf(fp, "%s]", function_print__shortest(value->high, buf));
	} else if (value->is_defined) {
		fputs(function_print__full(column, value->value, buf), fp);
	} else {
		fputs("null", fp);
	}
}

static void json_values(const struct function_print *print, const struct function_row *row,
			enum json_part part, FILE *fp)
{
	const char *comma = "";

	fputc('{', fp);
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		const struct function_column *column = &print->columns->columns[print->fields[i]];
		const struct function_value *value = &row->values[print->fields[i]];

		if ((part == JSON_ERRORS && !value->has_error) ||
		    (part == JSON_INTERVALS && !value->has_interval))
			continue;
		fputs(comma, fp);
		json_string(column->name, fp);
		fputs(": ", fp);
		json_value(column, value, part, fp);
		comma = ", ";
	}
	fputc('}', fp);
}

static void json_weak(const struct function_print *print, const struct function_row *row, FILE *fp)
{
	const char *comma = "";

	fputc('[', fp);
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		if (!row->values[print->fields[i]].is_weak)
			continue;
		fputs(comma, fp);
		json_string(print->columns->columns[print->fields[i]].name, fp);
		comma = ", ";
	}
	fputc(']', fp);
}

/* Begins an object with its format and version. */
static void json_begin(FILE *fp)
{
	fprintf(fp, "{\n \"version\": %d,\n \"program\": \"perf functions\",\n", JSON_VERSION);
}

/* Prints the tree of a function, as a member of an object. Each metric contains its parts. */
static void json_tree(const struct function_print *print, const struct function_row *row,
		      FILE *fp)
{
	static const char *const above[] = {
		[FUNCTION_NO_THRESHOLD] = "null",
		[FUNCTION_BELOW] = "false",
		[FUNCTION_ABOVE] = "true",
	};
	unsigned int nr;
	struct function_tree_line *lines = function_tree__lines(print->tree, print->table, row,
								&nr);

	fputs(",\n   \"tree\": [", fp);
	for (unsigned int i = 0; lines && i < nr; i++) {
		unsigned int next = i + 1 < nr ? lines[i + 1].depth : 0;

		fputs("\n    {\"metric\": ", fp);
		json_string(print->columns->columns[lines[i].node->column].name, fp);
		fprintf(fp, ", \"above\": %s, \"parts\": [", above[lines[i].above]);
		for (unsigned int depth = next; depth <= lines[i].depth; depth++)
			fputs("]}", fp);
		if (next <= lines[i].depth && i + 1 < nr)
			fputc(',', fp);
	}
	fputc(']', fp);
	free(lines);
}

static const char *role_of(const struct function_column *column)
{
	if (function_column__is_count(column))
		return "count";
	if (function_column__is_share(column))
		return "share";
	return column->divided ?: strcmp(column->event, "discarded") ? "rate" : "discarded";
}

static const char *json_unit_of(const struct function_column *column)
{
	if (function_column__is_count(column))
		return column->source == FUNCTION_SOURCE_WINDOWS ? "windows" : "samples";
	switch (column->scale) {
	case 100:
		return "percent";
	case 1000:
		return "events per 1000 instructions";
	default:	/* That of a vendor's metric is part of its meaning. */
		return *column->event ? "cycles per instruction" : "other";
	}
}

/* Prints the metric that a column is a part of, as a member of an object. */
static void json_parent(const struct function_columns *columns, const struct function_tree *tree,
			int column, FILE *fp)
{
	for (unsigned int i = 0; tree && i < tree->nr * tree->nr; i++) {
		if (!tree->is_part[i] || tree->nodes[i % tree->nr].column != column)
			continue;
		fputs(", \"parent\": ", fp);
		json_string(columns->columns[tree->nodes[i / tree->nr].column].name, fp);
		return;
	}
}

/* Prints a list of columns, as a member of an object. */
static void json_columns(const struct function_columns *columns, const struct function_tree *tree,
			 const int *fields, unsigned int nr_fields, FILE *fp)
{
	fputs(" \"columns\": [", fp);
	for (unsigned int i = 0; i < nr_fields; i++) {
		const struct function_column *column = &columns->columns[fields[i]];

		fputs(i ? ",\n  {\"name\": " : "\n  {\"name\": ", fp);
		json_string(column->name, fp);
		fputs(", \"meaning\": ", fp);
		json_string(column->meaning, fp);
		fprintf(fp, ", \"unit\": \"%s\", \"role\": \"%s\", \"source\": \"%s\"",
			json_unit_of(column), role_of(column),
			function_source__name(column->source));
		fprintf(fp, ", \"digits\": %u", column->digits);
		json_parent(columns, tree, fields[i], fp);
		fputc('}', fp);
	}
	fputs("\n ],\n", fp);
}

/* Prints the name of a function, as members of an object. */
static void json_name(const char *label, const struct function_sums *function, FILE *fp)
{
	fputs("\"label\": ", fp);
	json_string(label, fp);
	fputs(", \"symbol\": ", fp);
	json_string(function->symbol, fp);
	fputs(", \"dso\": ", fp);
	json_string(function->dso, fp);
	if (function->has_address)
		json_number(", \"address\": ", function->address, fp);
	else
		fputs(", \"address\": null", fp);
}

static void json_row(const struct function_print *print, const struct function_counts *counts,
		     const char *label, const struct function_row *row, FILE *fp)
{
	fputs("\n  {", fp);
	json_name(label, row->sums[0], fp);
	fputs(",\n   ", fp);
	json_windows(row->sums, row->nr_sums, /*is_inclusive=*/false, fp);
	json_counts(print, counts, row, fp);
	fputs(",\n   \"metrics\": ", fp);
	json_values(print, row, JSON_METRICS, fp);
	fputs(",\n   \"errors\": ", fp);
	json_values(print, row, JSON_ERRORS, fp);
	fputs(",\n   \"intervals\": ", fp);
	json_values(print, row, JSON_INTERVALS, fp);
	fputs(",\n   \"weak\": ", fp);
	json_weak(print, row, fp);
	if (print->tree && print->tree->has_parts)
		json_tree(print, row, fp);
	fputc('}', fp);
}

/**
 * function_print__json - print an object: groups, columns, functions with their windows, events,
 *			  values, standard errors, intervals and which values are weak
 * @print: the output
 * @fp: the output file
 *
 * Return: 0, or -ENOMEM.
 */
int function_print__json(const struct function_print *print, FILE *fp)
{
	const struct function_table *table = print->table;
	char **labels = function_table__labels(table, INT_MAX);
	struct function_counts counts;
	int err = function_counts__init(&counts, table, print->columns);

	err = err ?: labels ? 0 : -ENOMEM;
	if (err)
		goto out;
	json_begin(fp);
	if (print->time)
		fprintf(fp, " \"time\": [%s],\n", print->time);
	fprintf(fp, " \"by\": \"%s\",\n \"inline\": %s,\n", table->by,
		table->inlines ? "true" : "false");
	json_recorded(table, fp);
	json_interrupts(table, fp);
	json_skids(table, fp);
	fprintf(fp, ",\n \"corrected\": %s,\n ",
		print->columns->options.is_corrected ? "true" : "false");
	json_windows(table->sums, table->nr_sums,
		     function_by__is(table->by, FUNCTION_BY_CHILDREN), fp);
	fputs(",\n", fp);
	json_all_events(print, &counts, fp);
	json_columns(print->columns, print->tree, print->fields, print->nr_fields, fp);
	fputs(" \"functions\": [", fp);
	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_row *row = &print->columns->rows[r];

		fputs(r ? "," : "", fp);
		json_row(print, &counts, labels[row->sums - table->sums], row, fp);
	}
	fputs("\n ]\n}\n", fp);
out:
	function_counts__exit(&counts);
	function_table__free_labels(table, labels);
	return err;
}

static void json_change_value(const char *name, const struct function_column *column,
			      const struct function_value *value, FILE *fp)
{
	char buf[FUNCTION_CELL_SIZE];

	fprintf(fp, "\"%s\": %s, ", name, value && value->is_defined ?
		function_print__full(column, value->value, buf) : "null");
}

static void json_change(const struct function_column *column,
			const struct function_change *change, FILE *fp)
{
	char buf[FUNCTION_CELL_SIZE];

	json_string(column->name, fp);
	fputs(": {", fp);
	json_change_value("before", column, change->before, fp);
	json_change_value("after", column, change->after, fp);
	fprintf(fp, "\"change\": %s, ", change->is_defined ?
		function_print__full(column, change->change, buf) : "null");
	if (change->has_interval) {
		fprintf(fp, "\"interval\": [%s, ", function_print__shortest(change->low, buf));
		fprintf(fp, "%s], ", function_print__shortest(change->high, buf));
	} else {
		fputs("\"interval\": null, ", fp);
	}
	fprintf(fp, "\"significant\": %s, \"weak\": %s}",
		change->is_significant ? "true" : "false", change->is_weak ? "true" : "false");
}

static void json_diff_row(const struct function_diff_print *print,
			  const char *label, const struct function_diff_row *row, FILE *fp)
{
	fputs("\n  {", fp);
	json_name(label, function_diff_row__sums(row), fp);
	fprintf(fp, ", \"status\": \"%s\",\n   \"metrics\": {", function_diff_row__status(row));
	for (unsigned int i = 0; i < print->nr_fields; i++) {
		fputs(i ? ",\n    " : "\n    ", fp);
		json_change(&print->diff->columns.columns[print->fields[i]],
			    &row->changes[print->fields[i]], fp);
	}
	fputs("}}", fp);
}

/* Prints how the runs of a side were recorded, as a member of an object. */
static void json_side(const char *name, const struct function_runs *runs, FILE *fp)
{
	fprintf(fp, " \"%s\": {\n \"runs\": %u,\n", name, runs->nr);
	json_recorded(&runs->table, fp);
	fputs("},\n", fp);
}

/* Prints the relative standard deviations between runs, as a member of an object. */
static void json_deviations(const struct function_diff_print *print, FILE *fp)
{
	const struct function_diff *diff = print->diff;
	const char *comma = "";
	char buf[FUNCTION_CELL_SIZE];

	fputs(" \"run_deviations\": {", fp);
	for (unsigned int i = 0; diff->has_several_runs && i < print->nr_fields; i++) {
		const struct function_column *column = &diff->columns.columns[print->fields[i]];
		const struct function_run_variance *runs = &diff->variances[print->fields[i]];

		if (function_column__is_count(column) || !runs->is_known)
			continue;
		fputs(comma, fp);
		json_string(column->name, fp);
		fprintf(fp, ": %s", function_print__shortest(sqrt(runs->value), buf));
		comma = ", ";
	}
	fputs("},\n", fp);
}

/**
 * function_diff_print__json - print an object: how both were recorded, columns,
 *			       deviations between runs, changes of functions
 * @print: the output
 * @fp: the output file
 *
 * Return: 0, or -ENOMEM.
 */
int function_diff_print__json(const struct function_diff_print *print, FILE *fp)
{
	const struct function_table *before = &print->before->table, *table = &print->after->table;
	char **labels = function_table__labels(table, INT_MAX);
	char **labels_before = function_table__labels(before, INT_MAX);
	int err = labels && labels_before ? 0 : -ENOMEM;

	if (err)
		goto out;
	json_begin(fp);
	fprintf(fp, " \"by\": \"%s\",\n \"inline\": %s,\n", table->by,
		table->inlines ? "true" : "false");
	json_side("before", print->before, fp);
	json_side("after", print->after, fp);
	json_columns(&print->diff->columns, NULL, print->fields, print->nr_fields, fp);
	json_deviations(print, fp);
	fputs(" \"functions\": [", fp);
	for (size_t r = 0; r < print->nr_rows; r++) {
		const struct function_diff_row *row = &print->diff->rows[r];

		fputs(r ? "," : "", fp);
		json_diff_row(print, row->after ? labels[row->after->sums - table->sums] :
			      labels_before[row->before->sums - before->sums], row, fp);
	}
	fputs("\n ]\n}\n", fp);
out:
	function_table__free_labels(table, labels);
	function_table__free_labels(before, labels_before);
	return err;
}
