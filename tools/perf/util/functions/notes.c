// SPDX-License-Identifier: GPL-2.0
/* Says what a reader of a table has to know about its data. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <linux/compiler.h>

#include "../debug.h"
#include "../strbuf.h"
#include "functions.h"

/* Sums of event samples that differ by more from what was counted are worth a message. */
#define MOST_DIFFERENCE	0.05

/* Prints a note, with names from files in it. */
static void __printf(2, 3) note(const char *side, const char *fmt, ...)
{
	char *text, *printable;
	va_list values;
	int length;

	va_start(values, fmt);
	length = vasprintf(&text, fmt, values);
	va_end(values);
	if (length < 0)
		return;
	printable = function_text__printable(text);
	if (printable)
		fn_warn("%s%s", side, printable);
	free(printable);
	free(text);
}

/* Returns true if values come from a source. */
static bool uses(const struct fn_columns *columns, const struct fn_source *source)
{
	for (unsigned int i = 0; i < columns->nr; i++) {
		if (columns->columns[i].source == source)
			return true;
	}
	return false;
}

/* Returns true if only their PMUs differ: they are cores of one kind of machine. */
static bool are_cores(const struct fn_table *table)
{
	const char *pmu = strstr(table->cpus[0], " pmu=");

	for (unsigned int i = 1; pmu && i < table->nr_cpus; i++) {
		if (strncmp(table->cpus[0], table->cpus[i], pmu + 5 - table->cpus[0]))
			pmu = NULL;
	}
	return pmu;
}

static void note_recording(const char *side, const struct fn_columns *columns)
{
	const struct fn_table *table = columns->table;

	if (table->nr_cpus > 1 && !are_cores(table))
		note(side,
		     "counts of several kinds of CPUs (%s, %s) are added up: report each recording separately",
		     table->cpus[0], table->cpus[1]);
	else if (table->nr_cpus > 1 && !fn_by__has(table->by, FN_BY_PMU))
		note(side,
		     "counts of several kinds of cores are added up: --by pmu,symbol tells them apart");
	for (int i = 0; fn_sources[i]; i++) {
		if (table->is_partial & fn_sources[i]->bit && uses(columns, fn_sources[i]))
			note(side,
			     "only some inputs have %s%s, so values that come from them leave out the other inputs: report these separately, or choose a --source that all have",
			     fn_sources[i]->title,
			     fn_sources[i]->is_joint ? "" : " of all these events");
	}
	if (table->lacks_children)
		note(side,
		     "new threads and children are not in this recording, because they do not inherit these events (before Linux 6.12, or with --no-inherit): record with -a to include them");
	if (table->lost)
		note(side,
		     "%llu records were lost, and counts with them: record with larger buffers (-m)",
		     (unsigned long long)table->lost);
	if (table->throttled)
		note(side,
		     "events were throttled %llu times, and their counts in these times are missing: use longer periods, or raise sysctl kernel.perf_event_max_sample_rate",
		     (unsigned long long)table->throttled);
}

/* What makes values of some events doubtful, or has changed them. */
static void note_events(const char *side, const struct fn_table *table)
{
	struct strbuf scales = STRBUF_INIT;
	const struct fn_event *scarce = NULL, *stretched = NULL;	/* the first ones */

	fn_table__for_each_set(table, set) {
		for (unsigned int j = 0; j < set->nr_events; j++) {
			const struct fn_event *event = &set->events[j];

			if (fabs(event->scale - 1) > MOST_DIFFERENCE)
				strbuf_addf(&scales, "%s %s by %.2f", scales.len ? "," : "",
					    event->name, event->scale);
			if (!scarce && event->is_scarce)
				scarce = event;
			if (!stretched && event->is_stretched)
				stretched = event;
		}
	}
	if (scales.len)
		note(side,
		     "samples do not add up to what was counted, as with short processes, so their sums were scaled:%s",
		     scales.buf);
	strbuf_release(&scales);
	if (scarce)
		note(side,
		     "there are few samples of events such as %s for each new thread, which miss the ends of threads or are taken at the same places, so values are weak: record with -a if processes are short",
		     scarce->name);
	if (stretched)
		note(side,
		     "the counts of events such as %s were scaled, because they took turns on the counters, so values are weak: record fewer events",
		     stretched->name);
}

/* Events without a common event. */
static void note_apart(const char *side, const struct fn_columns *columns)
{
	for (unsigned int i = 0; i < columns->nr; i++) {
		const struct fn_column *column = &columns->columns[i];

		if (!column->is_apart)
			continue;
		note(side,
		     "columns such as %s have no values, because %s and %s are %s", column->title,
		     column->event, column->per, columns->table->is_partial ?
		     "counted apart, and not in all inputs: report those that have both" :
		     "in groups without a common event, whose windows are parts of what was counted: record both in one group, or let each event sample");
		break;
	}
}

/* Windows that are long should nevertheless lie in one function. */
static void note_lengths(const char *side, const struct fn_table *table)
{
	fn_table__for_each_set(table, set) {
		const char *leader = set->events[0].name;
		double all = 0, mixed = 0;

		if (set->source != &fn_windows || set->is_hidden || !set->windows->number)
			continue;
		fn_table__for_each_row(table, row) {
			const struct fn_sums *sums = fn_row__sums(row, set);

			if (!sums)
				continue;
			all += sums->ended;
			if (fn_windows.doubt(row, set, 0, 0))
				mixed += sums->ended;
		}
		if (2 * mixed > all)
			note(side,
			     "windows have %.0f %s on average, more than most calls, and %.0f %% of them end in functions that they often leave, whose values are weak: let the events sample, or record with a shorter period",
			     set->windows->values[0] / set->windows->number,
			     fn_event__is_clock(leader) ? "ns" : leader, 100 * mixed / all);
	}
}

/* Finds a column that is marked because all windows differ from the long intervals. */
static const struct fn_column *find_disturbed(const struct fn_columns *columns)
{
	for (unsigned int i = 0; i < columns->nr; i++) {
		fn_table__for_each_row(columns->table, row) {
			const char *doubt = fn_columns__value(columns, row, i)->doubt;

			if (doubt && !strcmp(doubt, "interrupt") && columns->columns[i].event)
				return &columns->columns[i];
		}
	}
	return NULL;
}

static void note_interrupts(const char *side, const struct fn_columns *columns)
{
	const struct fn_column *column = find_disturbed(columns);

	if (!column)
		return;
	fn_table__for_each_set(columns->table, set) {
		const int y = fn_set__find(set, column->event);
		const int x = fn_set__find(set, column->per);
		char short_ones[FN_CELL_SIZE], long_ones[FN_CELL_SIZE];

		if (set->source != &fn_windows || y < 0 || x < 0 ||
		    !fn_windows.doubt(NULL, set, y, x))
			continue;
		note(side,
		     "the %s of all windows is %s, and that of the long intervals between them %s, because each window has counts of the interrupt that opened it: such values are weak; let the events sample instead",
		     column->title,
		     fn_number(column, column->scale * set->windows->values[y] /
			       set->windows->values[x], false, short_ones),
		     fn_number(column, column->scale * set->longs->values[y] /
			       set->longs->values[x], false, long_ones));
		return;
	}
}

/* A row that is named by a line, such as file.c:12, or that has an inlined function. */
static bool has_line(const struct fn_row *row)
{
	for (const char *colon = row->symbol; (colon = strchr(colon, ':')) != NULL; colon++) {
		if (colon[1] >= '1' && colon[1] <= '9')
			return true;
	}
	return strstr(row->symbol, "(inlined)");
}

static void note_names(const char *side, const struct fn_table *table,
		       const struct fn_options *options)
{
	const bool has_root = fn_by__is(table->by, FN_BY_CHILDREN);
	double all = 0, cut = 0, unnamed = 0, without = 0;
	bool has_lines = false;

	fn_table__for_each_row(table, row) {
		const double number = fn_table__number(table, row, NULL);
		const bool is_cut = fn_row__is(row, FN_CUT);

		has_lines |= has_line(row);
		all += !has_root || is_cut || fn_row__is(row, FN_ALL) ? number : 0;
		cut += is_cut ? number : 0;
		unnamed += strstr(row->symbol, FN_UNNAMED) ? number : 0;
		without += *row->symbol ? 0 : number;
	}
	/* Percentages of the observations */
	all = all ?: INFINITY;
	cut = 100 * cut / all;
	unnamed = 100 * unnamed / all;
	without = 100 * without / all;

	if ((options->inlines || fn_by__has(options->by, FN_BY_SRCLINE)) && table->nr_rows &&
	    !has_lines)
		note(side,
		     "no line or inlined function is known: install debug symbols, and binutils for addr2line, or name that with --addr2line");
	if (cut)
		note(side,
		     "%.1f %% of the observations have longer call chains than were recorded, and are in the row [cut] only: record with --call-graph fp, and beyond 127 frames with --call-graph fp,N and a higher sysctl kernel.perf_event_max_stack",
		     cut);
	if (without >= 10 && !fn_by__is(table->by, FN_BY_CHILDREN))
		note(side,
		     "%.0f %% of the samples have no symbol: install debug symbols, or name their folder with --symfs",
		     without);
	if (unnamed >= 10 && table->unmapped)
		note(side,
		     "%.0f %% of the samples are in JIT code without a name, because there is no /tmp/perf-%d.map: let the program write this map (node --perf-basic-prof) and report before it is removed, or record a jitdump with -k mono and run perf inject --jit",
		     unnamed, table->unmapped);
	else if (unnamed >= 10)
		note(side,
		     "%.0f %% of the samples are in JIT code without a name: record a jitdump with -k mono and run perf inject --jit",
		     unnamed);
}

void fn_notes__print(const char *side, const struct fn_columns *columns,
		     const struct fn_options *options)
{
	note_recording(side, columns);
	note_events(side, columns->table);
	note_apart(side, columns);
	if (uses(columns, &fn_windows)) {
		note_interrupts(side, columns);
		note_lengths(side, columns->table);
	}
	note_names(side, columns->table, options);
}

/* The notes about a table that is not printed. */
int fn_notes__print_all(const struct fn_table *table, const struct fn_options *options)
{
	struct fn_columns columns;
	int err = fn_columns__init(&columns, table, NULL, NULL);

	if (!err)
		fn_notes__print("", &columns, options);
	fn_columns__exit(&columns);
	return err;
}
