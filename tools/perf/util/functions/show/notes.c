// SPDX-License-Identifier: GPL-2.0
/* Says what a reader of a table has to know about its data. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/kernel.h>

#include "../../debug.h"
#include "../../strlist.h"
#include "../../symbol_conf.h"
#include "../text.h"
#include "../collect/sums.h"
#include "../collect/u192.h"
#include "../estimate/effect.h"
#include "notes.h"

#define SHORT_WINDOW	1000	/* a period that may be as short as calls */

/* @side is "before: " or "after: " in a comparison. */
#define note(side, fmt, ...) pr_warning("perf functions: %s" fmt "\n", side, ##__VA_ARGS__)

static bool same_periods(const struct function_group_desc *a, const struct function_group_desc *b)
{
	return a->sample_period == b->sample_period && a->sample_freq == b->sample_freq &&
	       a->alternative_sample_period == b->alternative_sample_period;
}

/* In share mode auto shares come from samples, which have their periods as weights. */
static bool weigh_the_same(const struct function_group_desc *a,
			   const struct function_group_desc *b)
{
	return (a->share == FUNCTION_SHARE_AUTO && b->share == FUNCTION_SHARE_AUTO) ||
	       same_periods(a, b);
}

/* Returns true if windows of one leader's event stand for different periods. */
static bool has_several_periods(const struct function_table *table)
{
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		const struct event_set *set = table->sets[i];
		unsigned int first = 0;

		if (set->source != FUNCTION_SOURCE_WINDOWS)
			continue;
		while (strcmp(table->sets[first]->events[0], set->events[0]))
			first++;
		for (unsigned int j = 0; j < set->nr_descs; j++) {
			if (!weigh_the_same(&set->descs[j], table->sets[first]->descs))
				return true;
		}
	}
	return false;
}

/* Returns true if a row may have counts of several kinds of CPUs. */
static bool has_mixed_cpus(const struct function_table *table)
{
	const char *first, *pmu;
	bool is_one = true;

	if (table->nr_cpus < 2 || !function_by__has(table->by, FUNCTION_BY_PMU))
		return table->nr_cpus > 1;
	/* Kinds of cores of one machine differ by their PMUs only. */
	first = strstr(table->cpus[0], " pmu=");
	for (unsigned int i = 1; i < table->nr_cpus; i++) {
		pmu = strstr(table->cpus[i], " pmu=");
		is_one &= first && pmu && pmu - table->cpus[i] == first - table->cpus[0] &&
			  !strncmp(table->cpus[i], table->cpus[0], first - table->cpus[0]);
	}
	return !is_one;
}

/* Functions of a name may have other code in another build of the file. */
static void note_builds(const char *side, const struct function_table *table)
{
	struct str_node *build, *before = NULL;
	const char *first = NULL;
	unsigned int others = 0;
	char *file;

	if (!table->builds)
		return;
	strlist__for_each_entry(build, table->builds) {
		const size_t size = strcspn(build->s, "\t") + 1;

		if (before && !strncmp(before->s, build->s, size)) {
			others += first && strncmp(first, build->s, size);
			first = first ?: build->s;
		}
		before = build;
	}
	file = first ? strndup(first, strcspn(first, "\t")) : NULL;
	if (file && others)
		note(side,
		     "several builds of %s and %u other files are added up: report each build separately, or compare them with --before and --after",
		     file, others);
	else if (file)
		note(side,
		     "several builds of %s are added up: report each build separately, or compare them with --before and --after",
		     file);
	free(file);
}

/* Returns true if values come from a source. Without columns, those of the whole table would. */
static bool uses(const struct function_table *table, const struct function_columns *columns,
		 enum function_source source)
{
	for (unsigned int i = 0; columns && i < columns->nr_columns; i++) {
		if (columns->columns[i].source == source &&
		    !function_column__is_count(&columns->columns[i]))
			return true;
	}
	return !columns && function_table__has_source(table, source);
}

static void note_recording(const char *side, const struct function_table *table,
			   const struct function_columns *columns)
{
	const bool uses_windows = uses(table, columns, FUNCTION_SOURCE_WINDOWS);
	const bool uses_samples = uses(table, columns, FUNCTION_SOURCE_SAMPLES);
	static const char *const names[FUNCTION_SOURCE_BEST] = {
		[FUNCTION_SOURCE_WINDOWS]	= "windows",
		[FUNCTION_SOURCE_SAMPLES]	= "event samples",
		[FUNCTION_SOURCE_BRANCHES]	= "branch records",
	};

	if (has_mixed_cpus(table))
		note(side,
		     "counts of several kinds of CPUs (%s, %s) are added up: report each recording separately, or separate the cores of one machine with --by pmu",
		     table->cpus[0], table->cpus[1]);
	note_builds(side, table);
	if (uses_windows && has_several_periods(table))
		note(side,
		     "the recordings have different periods, so functions weigh more where periods are shorter: report the recordings of each period separately");
	if (uses_windows && table->was_mixed)
		note(side,
		     "some inputs have share mode auto, others discard, so the shares are those of discard: use one mode for all inputs");
	for (int source = 0; source < FUNCTION_SOURCE_BEST; source++) {
		if (table->is_partial[source] && uses(table, columns, source))
			note(side,
			     "only some inputs have %s, so values that come from them leave out the other inputs: report these separately, or choose a --source that all have",
			     names[source]);
	}
	if (table->scarce && uses_samples) {
		char *event = function_text__printable(strlist__entry(table->scarce, 0)->s);

		note(side,
		     "there are few samples of %s for each new thread, which miss the ends of threads or are taken at the same places, so values are marked: record with -a if processes are short",
		     event ?: "an event");
		free(event);
	}
	if (table->lacks_children)
		note(side,
		     "new threads and children are not in this recording, because they do not inherit these events (before Linux 6.12, or with --no-inherit): record with -a to include them");
	if (table->lost)
		note(side,
		     "%llu records were lost%s%s: record with larger buffers (-m)",
		     (unsigned long long)table->lost,
		     uses_windows ? ", and windows over a loss are discarded" : "",
		     uses_samples ? ", and samples may be missing" : "");
	if (table->throttled)
		note(side,
		     "events were throttled %llu times%s%s: use longer periods, or raise sysctl kernel.perf_event_max_sample_rate",
		     (unsigned long long)table->throttled,
		     uses_windows ? ", and windows during these times are discarded" : "",
		     uses_samples ? ", and samples of these events are missing" : "");
}

/* Windows of groups with different leaders stand for different lengths. */
static void note_apart(const char *side, const struct function_columns *columns)
{
	const struct function_column *first = NULL;
	char *event, *per, more[32] = "";
	unsigned int others = 0;

	for (unsigned int i = 0; columns && i < columns->nr_columns; i++) {
		if (!columns->columns[i].is_apart)
			continue;
		others += !!first;
		first = first ?: &columns->columns[i];
	}
	if (!first)
		return;
	event = function_text__printable(first->event);
	per = function_text__printable(first->per);
	if (others)
		scnprintf(more, sizeof(more), " (like %u more)", others);
	if (event && per)
		note(side,
		     "%s%s has no values, because %s and %s are in groups without a common event, whose windows are parts of what was counted: record both in one group, or let each event sample (perf functions record without --windows-only)",
		     first->name, more, event, per);
	free(event);
	free(per);
}

/* Returns the number of samples of windows of a leader in functions that they do not fit into. */
static double samples_in_mixtures(const struct function_columns *columns, const char *leader,
				  double *all)
{
	double mixed = 0;

	*all = 0;
	for (size_t r = 0; r < columns->nr_rows; r++) {
		const struct function_row *row = &columns->rows[r];

		for (size_t i = 0; i < row->nr_sums; i++) {
			if (row->sums[i]->set->source != FUNCTION_SOURCE_WINDOWS ||
			    strcmp(row->sums[i]->set->events[0], leader))
				continue;
			*all += row->sums[i]->samples;
			if (row->is_left || row->has_calls)
				mixed += row->sums[i]->samples;
		}
	}
	return mixed;
}

/* Returns the mean number of events in the windows of a leader. */
static double mean_length(const struct function_table *table, const char *leader)
{
	double total = 0, windows = 0;

	for (size_t i = 0; i < table->nr_sums; i++) {
		const struct function_sums *sums = table->sums[i];

		if (sums->set->source != FUNCTION_SOURCE_WINDOWS ||
		    strcmp(sums->set->events[0], leader))
			continue;
		total += u192__double(&sums->values[0]);
		windows += sums->matched;
	}
	return windows ? total / windows : 0;
}

/* Says nothing of windows that are long enough. */
static void note_skids(const char *side, const struct function_table *table)
{
	struct function_skid skid;
	unsigned int next = 0;

	while (!function_table__skid(table, &next, &skid)) {
		char *leader = function_text__printable(skid.leader);

		if (leader && 10 * skid.percentile_95 > mean_length(table, skid.leader))
			note(side,
			     "windows of %s end %.1f events late on average, and one in 20 ends %llu or more late, maybe in another function: choose a --window that is much longer than this",
			     leader, skid.mean, (unsigned long long)skid.percentile_95);
		free(leader);
	}
}

static bool is_clock(const char *event)
{
	return !strcmp(event, "cpu-clock") || !strcmp(event, "task-clock");
}

/* Returns what shortens windows of a leader, or does without them. */
static const char *way_to_shorten(const char *leader, double length)
{
	/* The kernel has no timer below 10,000 ns. */
	if (is_clock(leader))
		return "use event samples: perf functions record -e cpu-clock,page-faults";
	return length > 2 * SHORT_WINDOW ?
	       "record with perf functions record, or with a shorter period such as -c 1000" :
	       "record with perf functions record";
}

/* Windows that are long should nevertheless lie in one function. */
static void note_lengths(const char *side, const struct function_table *table)
{
	struct function_columns columns;

	if (function_columns__init_rows(&columns, table))
		goto out;
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		const char *leader = table->sets[i]->events[0];
		double all, mixed = samples_in_mixtures(&columns, leader, &all);
		double length = mean_length(table, leader);
		char *name;

		/* Sets are sorted by their leaders. */
		if (table->sets[i]->source != FUNCTION_SOURCE_WINDOWS || 2 * mixed <= all ||
		    (i && !strcmp(table->sets[i - 1]->events[0], leader)) ||
		    !event_set__has_long_windows(table->sets[i]))
			continue;
		name = function_text__printable(leader);
		note(side,
		     "windows have %.0f %s on average, more than most calls, so %.0f %% of them have counts of several functions, whose values are marked: %s",
		     length, is_clock(leader) ? "ns" : name ?: "events", 100 * mixed / all,
		     way_to_shorten(leader, length));
		free(name);
	}
out:
	function_columns__exit(&columns);
}

/* Returns true if two intervals do not meet, even if they are widened to 99.7 % and more. */
static bool is_apart(const struct function_value *a, const struct function_value *b)
{
	const double wide = 1.5;

	return a->has_interval && b->has_interval && !a->is_weak && !b->is_weak &&
	       (a->value - wide * (a->value - a->low) > b->value + wide * (b->high - b->value) ||
		b->value - wide * (b->value - b->low) > a->value + wide * (a->high - a->value));
}

/* A value for which the sources differ, and how many such values there are. */
struct difference {
	unsigned int nr;
	const struct function_column *column;
	const struct function_row *row;
	double samples, windows;
};

/*
 * Windows and event samples of a function that keeps its windows measure the same. The rows of both
 * are those of the table.
 */
static void compare_sources(struct difference *difference, const struct function_columns *samples,
			    const struct function_columns *windows, unsigned int c)
{
	const struct function_column *column = &samples->columns[c];
	int other = function_columns__find(windows, column->name, strlen(column->name));

	if (other < 0 || column->source != FUNCTION_SOURCE_SAMPLES)
		return;
	for (size_t r = 0; r < samples->nr_rows; r++) {
		const struct function_row *row = &samples->rows[r];
		const struct function_value *a = &row->values[c];
		const struct function_value *b = &windows->rows[r].values[other];

		if (row->is_left || row->has_calls || !is_apart(a, b) ||
		    !function_row__part(row, FUNCTION_SOURCE_WINDOWS).nr_sums ||
		    difference->nr++)
			continue;
		difference->column = column;
		difference->row = row;
		difference->samples = a->value;
		difference->windows = b->value;
	}
}

static void note_sources(const char *side, const struct function_table *table)
{
	struct function_reading_options options = { .is_corrected = true };
	struct function_columns samples, windows = {};
	struct difference found = {};
	char *name = NULL;

	if (!function_table__has_source(table, FUNCTION_SOURCE_SAMPLES) ||
	    !function_table__has_source(table, FUNCTION_SOURCE_WINDOWS))
		return;
	if (function_columns__init(&samples, table, &options))
		goto out;
	options.only_windows = true;
	if (function_columns__init(&windows, table, &options))
		goto out;
	for (unsigned int i = 0; i < samples.nr_columns; i++)
		compare_sources(&found, &samples, &windows, i);
	if (found.nr)
		name = function_text__printable(function_of(found.row)->symbol);
	if (name)
		note(side,
		     "event samples and windows differ in %u value%s by more than their intervals, such as the %s of %s, %.*f and %.*f: %s (see EVENT SAMPLES in perf-functions(1))",
		     found.nr, found.nr > 1 ? "s" : "", found.column->name,
		     *name ? name : "unnamed code", found.column->digits, found.samples,
		     found.column->digits, found.windows,
		     table->is_scaled ?
		     "they had to be scaled, so rely on neither: record with -a" :
		     "believe the event samples if the function has short calls or many misses");
	free(name);
out:
	function_columns__exit(&windows);
	function_columns__exit(&samples);
}

static void note_effects(const char *side, const struct function_table *table,
			 const struct function_columns *columns, bool is_corrected)
{
	const bool uses_windows = uses(table, columns, FUNCTION_SOURCE_WINDOWS);
	bool is_known = false;

	if (function_table__set_effects(table))
		return;
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		char *added = uses_windows ? function_effect__describe(table->sets[i]) : NULL;

		if (added && !is_corrected)
			note(side,
			     "each window has counts of the interrupt that opened it, on average %s: subtract them with --correct",
			     added);
		else if (added)
			note(side,
			     "--correct has subtracted the counts of interrupts from each window, on average %s: rely only on values without a mark",
			     added);
		free(added);
		is_known |= function_effect__is_known(table->sets[i]);
	}
	if (uses_windows)
		note_skids(side, table);
	if (is_corrected && !uses_windows &&
	    function_table__has_source(table, FUNCTION_SOURCE_WINDOWS))
		note(side,
		     "--correct changes windows, but no value comes from them: leave it out, or add --source windows");
	else if (is_corrected && !is_known)
		note(side,
		     "--correct has changed nothing, because it needs share mode auto, a group that counts instructions, and several windows: use perf functions record, and record for longer");
}

/* Returns true if a row is named by a line, such as file.c:12, or has an inlined function. */
static bool has_line(const char *row)
{
	for (const char *colon = row; (colon = strchr(colon, ':')) != NULL; colon++) {
		if (colon[1] >= '1' && colon[1] <= '9')
			return true;
	}
	return strstr(row, "(inlined)");
}

/* Returns true if there is such a program, in PATH if it has no folder. */
static bool is_program(const char *name)
{
	const char *folders = getenv("PATH") ?: "";
	char path[PATH_MAX];
	int length;

	if (strchr(name, '/'))
		return !access(name, X_OK);
	for (; *folders; folders += length + (folders[length] == ':')) {
		length = strcspn(folders, ":");
		if (snprintf(path, sizeof(path), "%.*s/%s", length, folders, name) <
		    (int)sizeof(path) && !access(path, X_OK))
			return true;
	}
	return false;
}

/**
 * function_notes__has_addr2line - say whether there is a program to find lines with
 *
 * Return: true or false.
 */
bool function_notes__has_addr2line(void)
{
	return is_program(symbol_conf.addr2line_path ?: "addr2line");
}

/* perf may find lines without addr2line, so this looks for them first. */
static void note_lines(const char *side, const struct function_table *table)
{
	if (function_notes__has_addr2line())
		return;
	for (size_t i = 0; i < table->nr_sums; i++) {
		if (has_line(table->sums[i]->symbol))
			return;
	}
	note(side,
	     "lines and inlined functions are unknown without addr2line: install binutils, or name it with --addr2line");
}

static void note_chains(const char *side, const struct function_table *table)
{
	double cut = 0, whole = 0;

	for (size_t i = 0; i < table->nr_sums; i++) {
		if (function_sums__is_root(table->sums[i], FUNCTION_CUT))
			cut += table->sums[i]->samples;
		if (function_sums__is_root(table->sums[i], FUNCTION_ALL))
			whole += table->sums[i]->samples;
	}
	if (cut)
		note(side,
		     "%.0f of %.0f windows have longer call chains than were recorded, and are in the row [cut] only: record with --call-graph fp, and beyond 127 frames with --call-graph fp,N and a higher sysctl kernel.perf_event_max_stack",
		     cut, cut + whole);
}

static void note_symbols(const char *side, const struct function_table *table)
{
	double samples = 0, without = 0;

	for (size_t i = 0; i < table->nr_sums; i++) {
		samples += table->sums[i]->samples;
		if (!*table->sums[i]->symbol)
			without += table->sums[i]->samples;
	}
	if (samples && 10 * without >= samples)
		note(side,
		     "%.0f %% of the samples have no symbol: install debug symbols, or name their folder with --symfs",
		     100 * without / samples);
}

/* A map has the functions of a JIT by address. The program writes it, and may remove it. */
static void note_jit(const char *side, const struct function_table *table)
{
	double samples = 0, unnamed = 0;

	for (size_t i = 0; i < table->nr_sums; i++) {
		samples += table->sums[i]->samples;
		if (strstr(table->sums[i]->symbol, FUNCTION_UNNAMED))
			unnamed += table->sums[i]->samples;
	}
	if (!samples || 10 * unnamed < samples)
		return;
	if (table->unmapped)
		note(side,
		     "%.0f %% of the samples are in JIT code without a name, because there is no /tmp/perf-%d.map: let the program write this map (node --perf-basic-prof) and report before it is removed, or record a jitdump with -k mono and run perf inject --jit",
		     100 * unnamed / samples, table->unmapped);
	else
		note(side,
		     "%.0f %% of the samples are in JIT code without a name: record a jitdump with -k mono and run perf inject --jit",
		     100 * unnamed / samples);
}

static void print_side(const struct function_notes *notes, const char *side,
		       const struct function_table *table, const struct function_columns *columns)
{
	note_recording(side, table, columns);
	note_apart(side, columns);
	note_effects(side, table, columns, notes->is_corrected);
	/* Event samples need no windows. */
	if (!function_table__has_source(table, FUNCTION_SOURCE_SAMPLES))
		note_lengths(side, table);
	note_sources(side, table);
	if (notes->share && function_table__has_window(table) &&
	    !uses(table, columns, FUNCTION_SOURCE_WINDOWS))
		note(side,
		     "--share %s chooses windows, but no value comes from them: leave it out%s",
		     notes->share, function_table__has_source(table, FUNCTION_SOURCE_WINDOWS) ?
		     ", or add --source windows" : "");
	if (notes->wants_lines)
		note_lines(side, table);
	if (function_by__is(table->by, FUNCTION_BY_CHILDREN))
		note_chains(side, table);
	else
		note_symbols(side, table);
	note_jit(side, table);
}

/**
 * function_notes__print - print the notes about a table
 * @notes: what they depend on
 * @table: the table
 * @columns: its columns, NULL if it is not printed
 */
void function_notes__print(const struct function_notes *notes, const struct function_table *table,
			   const struct function_columns *columns)
{
	print_side(notes, "", table, columns);
}

/* Returns true if both sides have recorded a source alike, as far as shares depend on it. */
static bool has_same_source(const struct function_table *before, const struct function_table *after,
			    enum function_source source)
{
	for (unsigned int i = 0; i < before->nr_sets; i++) {
		const struct event_set *old = before->sets[i];

		for (unsigned int j = 0; j < after->nr_sets; j++) {
			const struct event_set *new = after->sets[j];

			/* Samples have the weight of their period. */
			if (old->source == source && new->source == source &&
			    !strcmp(old->events[0], new->events[0]))
				return old->descs->share == new->descs->share &&
				       (source != FUNCTION_SOURCE_WINDOWS ||
					same_periods(old->descs, new->descs));
		}
	}
	return true;
}

/* Returns true if values of both sides come from the same sources, which were recorded alike. */
static bool is_alike(const struct function_runs *before, const struct function_runs *after)
{
	for (unsigned int i = 0; i < before->all.nr_columns; i++) {
		const struct function_column *column = &before->all.columns[i];
		int other = function_columns__find(&after->all, column->name, strlen(column->name));

		if (other >= 0 && after->all.columns[other].source != column->source)
			return false;
	}
	for (int source = 0; source < FUNCTION_SOURCE_BEST; source++) {
		if (uses(&before->table, &before->all, source) &&
		    !has_same_source(&before->table, &after->table, source))
			return false;
	}
	return true;
}

/**
 * function_notes__print_sides - print the notes about a comparison
 * @notes: what they depend on
 * @before: the runs of one side
 * @after: the runs of the other side
 * @diff: the comparison
 */
void function_notes__print_sides(const struct function_notes *notes,
				 const struct function_runs *before,
				 const struct function_runs *after,
				 const struct function_diff *diff)
{
	print_side(notes, "before: ", &before->table, &before->all);
	print_side(notes, "after: ", &after->table, &after->all);
	if (!diff->has_several_runs && diff->is_single)
		note("",
		     "with one run of each build, a * holds for these two runs only: compare several runs with --before A... --after B...");
	else if (!diff->has_several_runs)
		note("",
		     "with one run of each build, no change is marked, as runs of one build differ, too: compare several runs with --before A... --after B..., or insist with --single-run");
	if (diff->has_other_vendor)
		note("",
		     "the CPU before is %s's and the one after %s's, so changes are not those of the program alone, and rates and shares of events that differ (all but cycles, instructions, branches, mispredicts and software events) are not compared",
		     fn_vendor__name(function_table__vendor(&before->table)),
		     fn_vendor__name(function_table__vendor(&after->table)));
	if (!is_alike(before, after))
		note("",
		     "the sides were recorded with different periods, share modes or sources, which changes the shares, and values from different sources have no 95 %% interval: record both alike, or choose a --source that both have");
}
