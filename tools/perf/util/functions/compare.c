// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the runs of two builds, and finds the changes that chance does not explain.
 *
 * - The interval of a change is made of the sides of both intervals that face each other (MOVER:
 *   Zou and Donner, Statistics in Medicine 27, 2008), with the degrees of freedom of Welch and
 *   Satterthwaite. These cover the places of samples in a run.
 * - Runs differ, too. With few runs the variance of a function is shrunk to what is usual in its
 *   column, the median, which counts as much as PRIOR_FREEDOM runs (Smyth, Statistical Applications
 *   in Genetics 3, 2004). A function whose runs differ by more has its own variance, and one whose
 *   runs differ by far more its own degrees of freedom, too.
 * - A change is significant if it is among those of the table of which 5 % are expected to be false
 *   (Benjamini and Hochberg, J. R. Statist. Soc. B 57, 1995).
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <subcmd/pager.h>

#include "../debug.h"
#include "functions.h"

#define FALSE_DISCOVERIES	0.05
#define PRIOR_FREEDOM		4
/* Rarely the squares of runs are as much more than usual by chance. */
#define FAR			5
#define STATUS_EXCEEDED		2

enum { BEFORE = FN_BEFORE, AFTER = FN_AFTER, NR_SIDES };
static const char *const side_names[] = { "before", "after" };

/* A table with its values. */
struct run {
	struct fn_table table;
	struct fn_columns columns;
	/* Of the column that is being compared: its place, -1: none, and a row without samples. */
	int place;
	const struct fn_source *source;
	struct fn_value absent;
};

struct side {
	struct run *runs;		/* the first one is all of them together */
	unsigned int nr;
};

struct change {
	struct fn_value values[NR_SIDES];
	struct fn_value value;			/* after - before */
	/* How much runs of a side differ, relative to the value. */
	double variance, freedom;
	double chance_of_run;			/* the part of chance in the variance of a run */
	double chances[NR_SIDES];
	double weights[NR_SIDES];		/* sums of the squares of the runs' parts */
	double between[NR_SIDES];		/* variance that runs add to each value */
	double chance;				/* that chance alone makes it */
	bool is_found;				/* significant, or beyond a limit */
};

enum rank { RANK_SIGNIFICANT, RANK_BOTH, RANK_APPEARED, RANK_VANISHED, RANK_SMALL };

/* A function in both tables, NULL: it is not there. */
struct pair {
	const struct fn_row *rows[NR_SIDES];
	struct change *changes;			/* by column */
	enum rank rank;				/* in the order of the table */
	double size;
};

struct limit {
	char *text;
	int column;
	bool is_decrease, is_relative;
	double number;
};

struct comparison {
	const struct fn_report *report;
	struct side sides[NR_SIDES];
	const struct fn_columns *columns;	/* those after */
	struct pair *pairs;
	size_t nr_pairs;
	struct change *changes;			/* by pair, then by column */
	size_t nr_changes;
	double *deviations;			/* by column: what runs usually differ by */
	double *work;				/* space for a number of each change */
	int *fields;
	unsigned int nr_fields;
	bool has_several_runs, has_other_vendor, has_other_source;
	size_t nr_compared;			/* values of the table with an interval */
	struct limit *limits;
	unsigned int nr_limits;
};

static const struct fn_column *column_of(const struct comparison *comparison, unsigned int field)
{
	return &comparison->columns->columns[comparison->fields[field]];
}

static const struct change *change_of(const struct comparison *comparison,
				      const struct pair *pair, unsigned int field)
{
	return &pair->changes[comparison->fields[field]];
}

/*
 * What changes in a name with each build says nothing of a function: what LLVM and GCC add to
 * copies and parts of one, and the hashes of Rust, in its old and new names, mangled or not.
 */
#define SUFFIX	"\\.(llvm\\.[0-9A-Fa-f]+|(lto_priv|__uniq|constprop|isra|part|cold)\\.[0-9]+)"
#define CHANGES	"( \\[clone " SUFFIX "\\]|" SUFFIX "|"					\
		"::h[0-9a-f]{16}|17h[0-9a-f]{16}|\\[[0-9a-f]{16}\\])([^0-9a-z]|$)"
#define RUST_CHANGES	"(Cs[0-9A-Za-z]+_)"

/* Removes each match from a name, which does not begin with one. */
static void remove_matches(const regex_t *regex, char *name)
{
	regmatch_t match[2];

	for (char *at = name + !!*name; !regexec(regex, at, ARRAY_SIZE(match), match, 0);) {
		char *end = at + match[1].rm_eo;

		at += match[1].rm_so;
		memmove(at, end, strlen(end) + 1);
	}
}

/* Functions of one name are one: which of them is which says nothing in another build. */
static int normalise_names(struct fn_table *table)
{
	regex_t changes, rust;

	if (regcomp(&changes, CHANGES, REG_EXTENDED))
		return -ENOMEM;
	if (regcomp(&rust, RUST_CHANGES, REG_EXTENDED)) {
		regfree(&changes);
		return -ENOMEM;
	}
	fn_table__for_each_row(table, row) {
		remove_matches(&changes, row->symbol);
		if (strstr(row->symbol, "_R"))
			remove_matches(&rust, row->symbol);
		if (*row->symbol) {
			row->has_address = false;
			row->address = 0;
		}
	}
	regfree(&changes);
	regfree(&rust);
	return fn_table__settle(table);
}

/*
 * Reading
 */

static void run__exit(struct run *run)
{
	fn_columns__exit(&run->columns);
	fn_table__exit(&run->table);
}

static void side__exit(struct side *side)
{
	for (unsigned int i = 0; i < side->nr; i++)
		run__exit(&side->runs[i]);
	free(side->runs);
}

/* A run without samples has no values to compare. */
static int read_run(struct side *side, const char *path, struct fn_options *options)
{
	struct run *run = &side->runs[side->nr++];
	const char *reason = NULL;
	int err;

	/* The reason has been printed. */
	if (fn_input__read(path, options, /*sums=*/NULL, &run->table))
		return -EINVAL;
	err = normalise_names(&run->table);
	if (!err)
		reason = fn_table__add(&side->runs->table, &run->table);
	if (reason) {
		fn_err("%s: %s", path, reason);
		return -EINVAL;
	}
	err = err ?: fn_table__settle(&side->runs->table);
	if (err || !fn_table__is_empty(&run->table))
		return err;
	if (fn_options__filter(options))
		fn_input__note_empty(path, options);
	run__exit(&side->runs[--side->nr]);
	return 0;
}

static int read_side(struct side *sides, enum fn_side s, struct fn_report *report)
{
	struct side *side = &sides[s];
	int err = 0;

	side->runs = calloc(report->nr_inputs + 1, sizeof(*side->runs));
	if (!side->runs)
		return -ENOMEM;
	side->nr = 1;
	for (unsigned int i = 0; !err && i < report->nr_inputs; i++) {
		if (report->inputs[i].side == s)
			err = read_run(side, report->inputs[i].path, &report->options);
	}
	err = err ?: fn_table__settle(&side->runs->table);
	for (unsigned int i = 0; !err && i < side->nr; i++) {
		struct run *run = &side->runs[i];

		err = fn_report__init_columns(report, &run->table, &run->columns, /*is_silent=*/i);
	}
	return err ?: fn_table__set_labels(&side->runs->table, report->json ? INT_MAX : 0);
}

/*
 * Pairs of rows
 */

/* What two rows have in common. */
enum likeness { LIKE_SYMBOL, LIKE_FILE, LIKE_PATH };

static int compare_rows(const struct fn_row *a, const struct fn_row *b, enum likeness likeness)
{
	int ret = strcmp(a->symbol, b->symbol);

	if (!ret && likeness >= LIKE_FILE)
		ret = strcmp(function_text__base_name(a->dso), function_text__base_name(b->dso));
	if (!ret && likeness == LIKE_PATH)
		ret = strcmp(a->dso, b->dso) ?:
		      (a->address < b->address ? -1 : a->address > b->address);
	return ret;
}

static const struct fn_row *row_of(const struct pair *pair)
{
	return pair->rows[AFTER] ?: pair->rows[BEFORE];
}

static int compare_names(const void *one, const void *other)
{
	return compare_rows(row_of(one), row_of(other), LIKE_PATH);
}

/* Joins the rows of both sides that are alike, if no other one is. */
static void join(struct comparison *comparison, enum likeness likeness)
{
	struct pair *pairs = comparison->pairs;
	size_t to = 0, next;

	for (size_t i = 0; i < comparison->nr_pairs; i = next) {
		struct pair *alone[NR_SIDES] = {};
		unsigned int nr[NR_SIDES] = {};

		for (next = i; next < comparison->nr_pairs; next++) {
			const int side = pairs[next].rows[AFTER] ? AFTER : BEFORE;

			if (compare_rows(row_of(&pairs[i]), row_of(&pairs[next]), likeness))
				break;
			if (pairs[next].rows[!side])
				continue;
			alone[side] = &pairs[next];
			nr[side]++;
		}
		/* Without a symbol, the address is the name. */
		if (nr[BEFORE] == 1 && nr[AFTER] == 1 &&
		    (likeness == LIKE_PATH || *row_of(&pairs[i])->symbol)) {
			alone[AFTER]->rows[BEFORE] = alone[BEFORE]->rows[BEFORE];
			alone[BEFORE]->rows[BEFORE] = NULL;
		}
		for (; i < next; i++) {
			if (row_of(&pairs[i]))
				pairs[to++] = pairs[i];
		}
	}
	comparison->nr_pairs = to;
}

/*
 * Pairs the functions: those of one name and DSO first; then those whose DSOs only have the file
 * name in common, because builds lie in different places; then those with the same symbol.
 */
static int find_pairs(struct comparison *comparison)
{
	const unsigned int nr_columns = comparison->columns->nr;
	size_t nr = 0;

	for (int side = BEFORE; side < NR_SIDES; side++)
		nr += comparison->sides[side].runs->table.nr_rows;
	comparison->pairs = calloc(nr + 1, sizeof(*comparison->pairs));
	if (!comparison->pairs)
		return -ENOMEM;
	for (int side = BEFORE; side < NR_SIDES; side++) {
		const struct fn_table *table = &comparison->sides[side].runs->table;

		fn_table__for_each_row(table, row)
			comparison->pairs[comparison->nr_pairs++].rows[side] = row;
	}
	qsort(comparison->pairs, nr, sizeof(*comparison->pairs), compare_names);
	for (int likeness = LIKE_PATH; likeness >= LIKE_SYMBOL; likeness--)
		join(comparison, likeness);

	comparison->nr_changes = comparison->nr_pairs * nr_columns;
	comparison->changes = calloc(comparison->nr_changes + 1, sizeof(*comparison->changes));
	comparison->work = calloc(comparison->nr_changes + 1, sizeof(*comparison->work));
	comparison->deviations = calloc(nr_columns + 1, sizeof(*comparison->deviations));
	if (!comparison->changes || !comparison->work || !comparison->deviations)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->nr_pairs; i++)
		comparison->pairs[i].changes = &comparison->changes[nr_columns * i];
	return 0;
}

/*
 * Changes
 */

/* Returns the variance of a value, as one side of its interval has it. */
static double variance_of(const struct fn_value *value, bool above)
{
	const double side = above ? value->high - value->value : value->value - value->low;

	return pow(side / fn_student__quantile(value->freedom), 2);
}

/*
 * Returns the standard error of after - factor x before on one side (@up: towards more), with its
 * degrees of freedom.
 */
static double error_of(const struct change *change, double factor, bool up, double *freedom)
{
	const struct fn_value *before = &change->values[BEFORE], *after = &change->values[AFTER];
	const double new = variance_of(after, up), square = factor * factor;
	const double old = square * variance_of(before, up == (factor < 0));
	const double sum = new + old + change->between[AFTER] + square * change->between[BEFORE];
	double per = 0;

	if (after->freedom > 0)
		per += new * new / after->freedom;
	if (before->freedom > 0)
		per += old * old / before->freedom;
	*freedom = per > 0 ? sum * sum / per : change->freedom;
	if (change->freedom)
		*freedom = fmin(*freedom, change->freedom);
	return sqrt(sum);
}

/*
 * Returns the probability that chance alone makes a change of this size, or with a limit, makes it
 * go so far beyond.
 */
static double chance_of(const struct change *change, const struct limit *limit)
{
	const double before = change->values[BEFORE].value, after = change->values[AFTER].value;
	const bool is_less = limit ? limit->is_decrease : after < before;
	double factor = 1, excess, freedom, error;

	if (limit && limit->is_relative)
		factor += copysign(0.01, before) * limit->number;
	excess = after - factor * before - (limit && !limit->is_relative ? limit->number : 0);
	/* The side towards the limit has the relevant error. */
	error = error_of(change, factor, is_less, &freedom);
	if (is_less ? excess >= 0 : excess <= 0)
		return 1;
	return error ? fn_student__tail(excess / error, freedom) : 0;
}

static void set_change(struct change *change, bool has_error)
{
	const struct fn_value *before = &change->values[BEFORE], *after = &change->values[AFTER];
	struct fn_value *value = &change->value;
	double freedom, error;

	value->value = after->value - before->value;
	if (has_error && fn_value__has_interval(before) && fn_value__has_interval(after)) {
		error = error_of(change, 1, /*up=*/false, &freedom);
		value->low = value->value - fn_student__quantile(freedom) * error;
		error = error_of(change, 1, /*up=*/true, &freedom);
		value->high = value->value + fn_student__quantile(freedom) * error;
	}
	fn_value__drop_infinite(value);
}

static bool is_weak(const struct change *change)
{
	return change->values[BEFORE].mark == FN_WEAK || change->values[AFTER].mark == FN_WEAK;
}

/*
 * The variance between runs
 */

/* Finds a column in a run, and its value of a function without samples: a share of 0. */
static void run__find(struct run *run, const struct fn_column *column)
{
	const struct fn_columns *columns = &run->columns;
	struct fn_value *absent = &run->absent;

	*absent = fn_undefined;
	run->place = fn_columns__find(columns, column->title);
	run->source = run->place < 0 ? NULL : columns->columns[run->place].source;
	if (run->place < 0 || !fn_column__is_share(column))
		return;
	/* A share has the number of observations in all rows. */
	for (size_t i = 0; !(absent->number > 0) && i < run->table.nr_rows; i++)
		absent->number = fn_columns__value(columns, run->table.rows[i], run->place)->number;
	if (absent->number > 0) {
		absent->value = 0;
		fn_value__share_interval(absent, column->scale, absent->number);
	}
}

static struct fn_value run__value(const struct run *run, const struct fn_row *row)
{
	struct fn_value value = run->absent;

	if (row && run->place >= 0)
		value = *fn_columns__value(&run->columns, row, run->place);
	return fn_value__is_defined(&value) ? value : fn_undefined;
}

/*
 * Returns the change of a value per relative change of what is measured: a share near 1 can change
 * only as much as the rest.
 */
static double unit_of(const struct fn_column *column, const struct fn_value *value)
{
	const double rest = fn_column__is_share(column) ? 1 - value->value / column->scale : 1;

	return value->error >= 0 ? fabs(value->value * rest) : 0;
}

/* Adds how far the runs of a side differ in a row. Returns how many do. */
static unsigned int add_side(struct change *change, const struct fn_column *column,
			     const struct side *side, const struct fn_row *row, int s)
{
	const struct fn_value *all = &change->values[s];
	const double unit = unit_of(column, all);
	double mean = 0, squares = 0, sizes = 0, sizes2 = 0, per_size = 0;
	unsigned int nr = 0;

	for (unsigned int i = 1; unit > 0 && i < side->nr; i++) {
		const struct run *run = &side->runs[i];
		const struct fn_value value =
			run__value(run, row ? fn_table__find_row(&run->table, row) : NULL);
		const double excess = value.value / unit - mean;

		/* Values of another source differ by more. */
		if (run->source != side->runs->source || !(value.number > 0))
			continue;
		mean += excess / ++nr;
		squares += excess * (value.value / unit - mean);
		sizes += value.number;
		sizes2 += value.number * value.number;
		per_size += 1 / value.number;
	}
	/* The numbers of a crafted file may be infinite. */
	if (!nr || !isfinite(squares) || !isfinite(sizes2))
		return 0;
	change->weights[s] = sizes2 / (sizes * sizes);
	change->chances[s] = pow(all->error / unit, 2) * sizes * per_size / nr;
	change->variance += squares;	/* to be divided by the freedom */
	change->freedom += nr - 1;
	return nr;
}

static int compare_numbers(const void *one, const void *other)
{
	const double *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

/*
 * Returns the usual variance between runs beyond chance: half of all rows have less. Sets @nr_rows
 * to the number of rows that tell it.
 */
static double usual_variance(const struct comparison *comparison, unsigned int c, size_t *nr_rows)
{
	double *all = comparison->work;
	size_t nr = 0;

	for (size_t i = 0; i < comparison->nr_pairs; i++) {
		const struct change *change = &comparison->pairs[i].changes[c];

		/* The median of chi squared / freedom (Wilson and Hilferty). */
		if (change->freedom)
			all[nr++] = change->variance / pow(1 - 2 / (9 * change->freedom), 3) -
				    change->chance_of_run;
	}
	*nr_rows = nr;
	if (!nr)
		return 0;
	qsort(all, nr, sizeof(*all), compare_numbers);
	return fmax((all[(nr - 1) / 2] + all[nr / 2]) / 2, 0);
}

/* Sets what runs add to the variance of a change, as far as it is known. */
static void set_between(struct change *change, const struct fn_column *column, double usual,
			size_t nr_rows)
{
	const double freedom = change->freedom;
	const double prior_freedom = fmin(nr_rows - !!freedom, PRIOR_FREEDOM);
	const double own = change->variance, prior = change->chance_of_run + usual;
	double variance;

	if (!(freedom + prior_freedom))
		return;
	variance = fmax(own, (freedom * own + prior_freedom * prior) / (freedom + prior_freedom));
	if (!freedom || own <= FAR * prior)
		change->freedom += prior_freedom;
	for (int side = BEFORE; side < NR_SIDES; side++)
		change->between[side] = fmax(variance - change->chances[side], 0) *
					change->weights[side] *
					pow(unit_of(column, &change->values[side]), 2);
}

/* Returns true if a column means the same on both sides. */
static bool is_comparable(const struct comparison *comparison, const struct fn_column *column)
{
	const char *per = fn_column__is_share(column) ? NULL : column->per;
	const struct side *sides = comparison->sides;

	/* Numbers are those of all runs together. */
	if (column->is_count && !column->unit && sides[BEFORE].nr != sides[AFTER].nr)
		return false;
	return !comparison->has_other_vendor ||
	       (column->event && fn_event__is_portable(column->event) &&
		(!per || fn_event__is_portable(per)));
}

static void compare_column(struct comparison *comparison, unsigned int c)
{
	const struct fn_column *column = &comparison->columns->columns[c];
	struct side *sides = comparison->sides;
	bool is_same, has_error;
	size_t nr_rows;
	double usual;

	for (int side = BEFORE; side < NR_SIDES; side++) {
		for (unsigned int i = 0; i < sides[side].nr; i++)
			run__find(&sides[side].runs[i], column);
	}
	/* The errors of two sources differ by more than their intervals. */
	is_same = sides[BEFORE].runs->source == sides[AFTER].runs->source;
	has_error = is_same && !column->is_count;
	comparison->has_other_source |= !is_same && sides[BEFORE].runs->place >= 0;
	for (size_t i = 0; i < comparison->nr_pairs; i++) {
		const struct pair *pair = &comparison->pairs[i];
		struct change *change = &pair->changes[c];
		unsigned int nr[NR_SIDES];

		change->value = fn_undefined;
		for (int s = BEFORE; s < NR_SIDES; s++) {
			change->values[s] = run__value(sides[s].runs, pair->rows[s]);
			nr[s] = add_side(change, column, &sides[s], pair->rows[s], s);
		}
		if (change->freedom)
			change->variance /= change->freedom;
		if (nr[BEFORE] + nr[AFTER])
			change->chance_of_run = (change->chances[BEFORE] * nr[BEFORE] +
						 change->chances[AFTER] * nr[AFTER]) /
						(nr[BEFORE] + nr[AFTER]);
	}
	usual = usual_variance(comparison, c, &nr_rows);
	comparison->deviations[c] = has_error && nr_rows ? sqrt(usual) : NAN;
	for (size_t i = 0; is_comparable(comparison, column) && i < comparison->nr_pairs; i++) {
		struct change *change = &comparison->pairs[i].changes[c];

		if (comparison->has_several_runs)
			set_between(change, column, usual, nr_rows);
		set_change(change, has_error &&
			   (change->freedom || !comparison->has_several_runs));
	}
}

/*
 * Finds the changes of which a part of @level is expected to be false: those that are not chance,
 * or with a limit, those of its column that are beyond it.
 */
static void find_true_changes(struct comparison *comparison, const struct limit *limit,
			      double level)
{
	const size_t first = limit ? limit->column : 0;
	const size_t step = limit ? comparison->columns->nr : 1;
	double *chances = comparison->work, greatest = -1;
	size_t nr = 0;

	for (size_t i = first; i < comparison->nr_changes; i += step) {
		struct change *change = &comparison->changes[i];

		change->chance = NAN;
		if (!fn_value__has_interval(&change->value))
			continue;
		change->chance = chance_of(change, limit);
		chances[nr++] = change->chance;
	}
	qsort(chances, nr, sizeof(*chances), compare_numbers);
	for (size_t i = 0; i < nr; i++) {
		if (chances[i] <= level * (i + 1) / nr)
			greatest = chances[i];
	}
	for (size_t i = first; i < comparison->nr_changes; i += step)
		comparison->changes[i].is_found = comparison->changes[i].chance <= greatest;
	comparison->nr_compared = nr;
}

/*
 * --fail-on
 */

/* Returns true, after a message, if no change can be beyond a limit. */
static bool refuse_limit(const struct comparison *comparison, const struct limit *limit)
{
	const struct fn_columns *before = &comparison->sides[BEFORE].runs->columns;
	const struct fn_column *column = &comparison->columns->columns[limit->column];
	const int old = fn_columns__find(before, column->title);
	const char *text = limit->text;

	if (comparison->has_other_vendor)
		fn_err("--fail-on %s: the CPUs before and after are of different vendors, so a change is not one of the program: compare runs on CPUs of one vendor",
		       text);
	else if (old < 0)
		fn_err("--fail-on %s: the runs before have no value of it: record the same events before and after, for long enough",
		       text);
	else if (column->is_count)
		fn_err("--fail-on %s: a number has no 95 %% interval: take another column", text);
	else if (before->columns[old].source != column->source)
		fn_err("--fail-on %s: its values come from other sources before than after: record both alike, or choose a --source that both have",
		       text);
	else if (!comparison->has_several_runs && !comparison->report->single_run)
		fn_err("--fail-on %s: one run of each build cannot tell a change from what runs differ by: record each several times for --before old*.data --after new*.data, or insist with --single-run",
		       text);
	else
		return false;
	return true;
}

/* Reads a limit as in CPI>5%, CPI>0.1 or IPC<-5%. */
static int read_limit(const struct comparison *comparison, struct limit *limit)
{
	const size_t length = strcspn(limit->text, "<>");
	char *name = strndup(limit->text, length), *number = limit->text + length, *end = number;

	if (!name)
		return -ENOMEM;
	limit->is_decrease = *number == '<';
	if (*number)
		limit->number = strtod(++number, &end);
	limit->is_relative = *skip_spaces(end) == '%';
	if (end == number || !isfinite(limit->number) || !*strim(name) ||
	    (limit->is_decrease ? limit->number > 0 : limit->number < 0) ||
	    *skip_spaces(skip_spaces(end) + limit->is_relative)) {
		fn_err("cannot read --fail-on %s: write COLUMN>NUMBER, or COLUMN<-NUMBER for a decrease, with a %% if it is relative to the value before",
		       limit->text);
		limit->column = -1;
	} else {
		/* Columns are named as for --sort, which explains what is wrong. */
		limit->column = fn_sort__find(comparison->columns, strim(name), /*may_lack=*/false);
	}
	free(name);
	return limit->column < 0 || refuse_limit(comparison, limit) ? -EINVAL : 0;
}

static int read_limits(struct comparison *comparison)
{
	char *rest = comparison->report->fail_on, *text;
	int err = 0;

	while (!err && (text = strsep(&rest, ",")) != NULL) {
		struct limit *limits = realloc(comparison->limits, (comparison->nr_limits + 1) *
					       sizeof(*limits));

		if (!limits)
			return -ENOMEM;
		comparison->limits = limits;
		limits[comparison->nr_limits] = (struct limit){ .text = strim(text) };
		err = read_limit(comparison, &limits[comparison->nr_limits++]);
	}
	return err;
}

static void print_exceeded(const struct comparison *comparison, const struct pair *pair,
			   const struct limit *limit, bool counts)
{
	const struct fn_column *column = &comparison->columns->columns[limit->column];
	const struct change *change = &pair->changes[limit->column];
	const double before = change->values[BEFORE].value;
	const int digits = column->digits + 1;

	fprintf(stderr, "perf functions: %s of %s from %.*f to %.*f", column->title,
		row_of(pair)->label, digits, before, digits, change->values[AFTER].value);
	if (before)
		fprintf(stderr, ", %+.1f %%", 100 * change->value.value / fabs(before));
	fprintf(stderr, " (95 %%: %+.*f..%+.*f), beyond %s%s\n", digits, change->value.low, digits,
		change->value.high, limit->text, counts ? "" : ", not counted: a value is weak");
}

/*
 * Prints the changes beyond a limit, all of them: --limit is about the table. Returns true if one
 * counts: a weak rate is not to be relied on, a share is weak if it only is small.
 */
static bool find_exceeded(struct comparison *comparison, const struct limit *limit)
{
	const bool is_share = fn_column__is_share(&comparison->columns->columns[limit->column]);
	bool found = false;

	/* Chance alone exceeds one of all limits in 5 % of comparisons. */
	find_true_changes(comparison, limit, FALSE_DISCOVERIES / comparison->nr_limits);
	for (size_t i = 0; i < comparison->nr_pairs; i++) {
		const struct change *change = &comparison->pairs[i].changes[limit->column];
		const bool counts = is_share || !is_weak(change);

		if (change->is_found)
			print_exceeded(comparison, &comparison->pairs[i], limit, counts);
		found |= change->is_found && counts;
	}
	return found;
}

/*
 * The table
 */

static void rank(const struct comparison *comparison, struct pair *pair, int column)
{
	const double least = comparison->report->percent_limit;
	const struct change *change = &pair->changes[max(column, 0)];
	bool is_small = least;

	pair->rank = !pair->rows[BEFORE] ? RANK_APPEARED :
		     !pair->rows[AFTER] ? RANK_VANISHED : RANK_BOTH;
	for (unsigned int c = 0; c < comparison->columns->nr; c++) {
		if (pair->changes[c].is_found)
			pair->rank = RANK_SIGNIFICANT;
	}
	for (int side = BEFORE; is_small && side < NR_SIDES; side++)
		is_small = !pair->rows[side] ||
			   fn_columns__is_small(&comparison->sides[side].runs->columns,
						pair->rows[side], least);
	if (is_small)
		pair->rank = RANK_SMALL;
	pair->size = -1;
	if (column >= 0 && fn_value__is_defined(&change->value))
		pair->size = fabs(change->value.value);
	else if (column >= 0)
		pair->size = fmax(fmax(change->values[BEFORE].value, change->values[AFTER].value),
				  -1);
}

static int compare_pairs(const void *one, const void *other)
{
	const struct pair *a = one, *b = other;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return compare_names(a, b);
}

/* Sorts the functions. Returns how many to print. */
static size_t sort_pairs(struct comparison *comparison, int column)
{
	const size_t limit = comparison->report->limit;
	size_t nr = comparison->nr_pairs;

	for (size_t i = 0; i < nr; i++)
		rank(comparison, &comparison->pairs[i], column);
	qsort(comparison->pairs, nr, sizeof(*comparison->pairs), compare_pairs);
	while (nr && comparison->pairs[nr - 1].rank == RANK_SMALL)
		nr--;
	return limit ? min(limit, nr) : nr;
}

static const char *status_of(const struct pair *pair)
{
	return !pair->rows[BEFORE] ? "appeared" : !pair->rows[AFTER] ? "vanished" : "both";
}

static bool has_ci(const struct comparison *comparison, unsigned int field)
{
	return comparison->report->with_ci && !column_of(comparison, field)->is_count;
}

/* Adds the value after (before if the function vanished), its change, and the change's interval. */
static void add_cells(const struct comparison *comparison, struct fn_text *text,
		      const struct pair *pair, unsigned int field)
{
	const struct fn_column *column = column_of(comparison, field);
	const struct change *change = change_of(comparison, pair, field);
	const struct fn_value *before = &change->values[BEFORE], *after = &change->values[AFTER];
	struct fn_value value = pair->rows[AFTER] || fn_value__is_defined(after) ? *after : *before;
	char buf[FN_CELL_SIZE];

	value.mark = max(before->mark, after->mark);
	fn_text__cell(text, FN_PLAIN, "%s", fn_view__cell(column, &value, buf));
	fn_text__cell(text, change->is_found ? FN_BOLD : FN_PLAIN,
		      fn_value__is_defined(&change->value) ? "%s%s" : "-",
		      fn_number(column, change->value.value, /*sign=*/true, buf),
		      change->is_found ? "*" : "");
	if (has_ci(comparison, field))
		fn_text__interval(text, column, &change->value, /*sign=*/true);
}

static int print_table(const struct comparison *comparison, size_t nr_shown)
{
	struct fn_text text = {};
	int err;

	fn_text__cell(&text, FN_PLAIN, "%s", comparison->columns->table->by);
	for (unsigned int f = 0; f < comparison->nr_fields; f++) {
		fn_text__cell(&text, FN_PLAIN, "%s", column_of(comparison, f)->title);
		fn_text__cell(&text, FN_PLAIN, "change");
		if (has_ci(comparison, f))
			fn_text__cell(&text, FN_PLAIN, "95 %%");
	}
	fn_text__cell(&text, FN_PLAIN, "%s", "");
	text.nr_columns = text.nr;
	for (size_t i = 0; i < nr_shown; i++) {
		const struct pair *pair = &comparison->pairs[i];
		const bool is_both = pair->rows[BEFORE] && pair->rows[AFTER];

		fn_text__cell(&text, FN_PLAIN, "%s", row_of(pair)->label);
		for (unsigned int f = 0; f < comparison->nr_fields; f++)
			add_cells(comparison, &text, pair, f);
		fn_text__cell(&text, FN_PLAIN, "%s", is_both ? "" : status_of(pair));
	}
	err = fn_text__print(&text, /*width=*/0, stdout);
	fn_text__exit(&text);
	return err;
}

/* Says which changes of rates no row would have shown, for chance makes them. */
static void print_unseen(const struct comparison *comparison)
{
	const double chance = FALSE_DISCOVERIES / comparison->nr_compared;
	const char *begin = "# changes of";

	for (unsigned int f = 0; comparison->has_several_runs && f < comparison->nr_fields; f++) {
		double least = INFINITY, least_freedom = 0, errors = 1;

		for (size_t i = 0; i < comparison->nr_pairs; i++) {
			const struct change *change = change_of(comparison, &comparison->pairs[i],
								f);
			double freedom, error = error_of(change, 1, false, &freedom) /
						change->values[BEFORE].value;

			if (fn_value__has_interval(&change->value) && error > 0 && error < least) {
				least = error;
				least_freedom = freedom;
			}
		}
		if (isinf(least) || fn_column__is_share(column_of(comparison, f)))
			continue;
		while (fn_student__tail(errors, least_freedom) > chance)
			errors *= 1.001;
		least *= 100 * errors;
		printf("%s %s below %.*f %%", begin, column_of(comparison, f)->title, least < 10,
		       least);
		begin = ",";
	}
	if (*begin == ',')
		puts(" would not be seen");
}

static int print_csv(const struct comparison *comparison, size_t nr_shown)
{
	static const char *const titles[] = {
		"before", "after", "change", "low", "high", "significant", "weak"
	};
	const char *by = comparison->columns->table->by;
	struct fn_text text = {};
	int err;

	fn_text__cell(&text, FN_PLAIN, "%s", by);
	fn_text__cell(&text, FN_PLAIN, fn_by__is(by, FN_BY_DSO) ? "path" : "dso");
	fn_text__cell(&text, FN_PLAIN, "status");
	for (size_t i = 0; i < comparison->nr_fields * ARRAY_SIZE(titles); i++)
		fn_text__cell(&text, FN_PLAIN, "%s %s",
			      column_of(comparison, i / ARRAY_SIZE(titles))->title,
			      titles[i % ARRAY_SIZE(titles)]);
	text.nr_columns = text.nr;
	for (size_t i = 0; i < nr_shown; i++) {
		const struct pair *pair = &comparison->pairs[i];

		fn_text__names(&text, row_of(pair));
		fn_text__cell(&text, FN_PLAIN, "%s", status_of(pair));
		for (unsigned int f = 0; f < comparison->nr_fields; f++) {
			const struct change *change = change_of(comparison, pair, f);

			fn_text__number(&text, change->values[BEFORE].value);
			fn_text__number(&text, change->values[AFTER].value);
			fn_text__number(&text, change->value.value);
			fn_text__number(&text, change->value.low);
			fn_text__number(&text, change->value.high);
			fn_text__number(&text, change->is_found);
			fn_text__number(&text, is_weak(change));
		}
	}
	err = fn_text__print_csv(&text, 0, comparison->report->separator, stdout);
	fn_text__exit(&text);
	return err;
}

static void json_pair(struct fn_json *json, const struct comparison *comparison,
		      const struct pair *pair)
{
	fn_json__begin(json, NULL, '{');
	fn_json__names(json, row_of(pair));
	fn_json__string(json, "status", status_of(pair));
	fn_json__begin(json, "metrics", '{');
	for (unsigned int f = 0; f < comparison->nr_fields; f++) {
		const struct change *change = change_of(comparison, pair, f);

		fn_json__begin(json, column_of(comparison, f)->title, '{');
		for (int side = BEFORE; side < NR_SIDES; side++)
			fn_json__value(json, side_names[side], &change->values[side]);
		fn_json__value(json, "change", &change->value);
		fn_json__bool(json, "significant", change->is_found);
		fn_json__end(json, '}');
	}
	fn_json__end(json, '}');
	fn_json__end(json, '}');
}

static void print_json(const struct comparison *comparison, size_t nr_shown)
{
	struct fn_json json = { .fp = stdout };

	fn_json__head(&json, comparison->columns->table);
	for (int side = BEFORE; side < NR_SIDES; side++) {
		fn_json__begin(&json, side_names[side], '{');
		fn_json__number(&json, "runs", comparison->sides[side].nr - 1);
		fn_json__recorded(&json, &comparison->sides[side].runs->table);
		fn_json__end(&json, '}');
	}
	fn_json__columns(&json, comparison->columns, comparison->fields, comparison->nr_fields);
	fn_json__begin(&json, "run_deviations", '{');
	for (unsigned int f = 0; f < comparison->nr_fields; f++) {
		const double deviation = comparison->deviations[comparison->fields[f]];

		if (!isnan(deviation))
			fn_json__number(&json, column_of(comparison, f)->title, deviation);
	}
	fn_json__end(&json, '}');
	fn_json__begin(&json, "functions", '[');
	for (size_t i = 0; i < nr_shown; i++)
		json_pair(&json, comparison, &comparison->pairs[i]);
	fn_json__end(&json, ']');
	fn_json__end(&json, '}');
}

static void print_notes(const struct comparison *comparison)
{
	static const char *const vendors[] = { "unknown", "Arm", "Intel", "AMD" };
	const struct run *before = comparison->sides[BEFORE].runs;
	const struct run *after = comparison->sides[AFTER].runs;

	fn_notes__print("before: ", &before->columns, &comparison->report->options);
	fn_notes__print("after: ", &after->columns, &comparison->report->options);
	if (!comparison->has_several_runs)
		fn_warn("with one run of each build, %s: compare several runs with --before A... --after B...%s",
			comparison->report->single_run ?
			"a * holds for these two runs only" :
			"no change is marked, as runs of one build differ, too",
			comparison->report->single_run ? "" : ", or insist with --single-run");
	if (comparison->has_other_vendor)
		fn_warn("the CPU before is %s's and the one after %s's, so changes are not those of the program alone, and events that count something else there are not compared",
			vendors[fn_table__vendor(&before->table)],
			vendors[fn_table__vendor(&after->table)]);
	if (comparison->has_other_source)
		fn_warn("some values come from other sources before than after, so their changes have no 95 %% interval: record both alike, or choose a --source that both have");
}

static int print_comparison(struct comparison *comparison, int sort)
{
	const size_t nr_shown = sort_pairs(comparison, sort);
	int err = 0;

	print_notes(comparison);
	setup_pager();
	if (comparison->report->json) {
		print_json(comparison, nr_shown);
	} else if (comparison->report->separator) {
		err = print_csv(comparison, nr_shown);
	} else {
		err = print_table(comparison, nr_shown);
		print_unseen(comparison);
	}
	return err ?: fn_flush();
}

static int compare_sides(struct comparison *comparison)
{
	const struct side *before = &comparison->sides[BEFORE], *after = &comparison->sides[AFTER];
	const struct fn_table *old = &before->runs->table, *new = &after->runs->table;
	const enum fn_vendor vendors[] = { fn_table__vendor(old), fn_table__vendor(new) };
	bool is_exceeded = false;
	int err, sort;

	/* Then nothing was measured, which is no change, and --fail-on must not pass. */
	if (before->nr == 1 || after->nr == 1) {
		fn_err("no samples %s: there is nothing to compare with",
		       side_names[before->nr == 1 ? BEFORE : AFTER]);
		return -EINVAL;
	}
	if (strcmp(old->by, new->by) || old->inlines != new->inlines) {
		fn_err("%s: its rows are of another kind than those before: use the same --by, --children and --inline for both",
		       comparison->report->options.name);
		return -EINVAL;
	}
	comparison->columns = &after->runs->columns;
	comparison->has_several_runs = before->nr + after->nr > 4;
	comparison->has_other_vendor = vendors[BEFORE] != FN_VENDOR_UNKNOWN &&
				       vendors[AFTER] != FN_VENDOR_UNKNOWN &&
				       vendors[BEFORE] != vendors[AFTER];
	comparison->fields = fn_fields__find(comparison->columns, comparison->report->fields,
					     /*has_metrics=*/false, /*may_lack=*/false,
					     &comparison->nr_fields);
	sort = fn_sort__find(comparison->columns, comparison->report->sort, /*may_lack=*/false);
	if (!comparison->fields || sort < -1)
		return -EINVAL;
	err = read_limits(comparison) ?: find_pairs(comparison);
	if (err)
		return err;
	for (unsigned int c = 0; c < comparison->columns->nr; c++)
		compare_column(comparison, c);
	if (comparison->has_several_runs || comparison->report->single_run)
		find_true_changes(comparison, /*limit=*/NULL, FALSE_DISCOVERIES);
	err = print_comparison(comparison, sort);
	for (unsigned int i = 0; !err && i < comparison->nr_limits; i++)
		is_exceeded |= find_exceeded(comparison, &comparison->limits[i]);
	return err ?: is_exceeded ? STATUS_EXCEEDED : 0;
}

int fn_compare(struct fn_report *report)
{
	struct comparison comparison = { .report = report };
	struct side *sides = comparison.sides;
	int err;

	err = read_side(sides, FN_BEFORE, report) ?: read_side(sides, FN_AFTER, report) ?:
	      compare_sides(&comparison);
	side__exit(&sides[BEFORE]);
	side__exit(&sides[AFTER]);
	free(comparison.pairs);
	free(comparison.changes);
	free(comparison.work);
	free(comparison.deviations);
	free(comparison.fields);
	free(comparison.limits);
	return err;
}
