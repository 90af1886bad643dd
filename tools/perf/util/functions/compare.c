// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the runs of two builds, and finds the changes that chance does not explain.
 *
 * The interval of a change is made of those of both values, which may be longer on one side: the
 * squares of their sides that face each other add up (MOVER: Zou and Donner, Construction of
 * confidence limits about effect measures, Statistics in Medicine 27, 2008), with the degrees of
 * freedom of Welch and Satterthwaite.
 *
 * These intervals cover the places of samples in a run. Runs differ, too. With few runs the
 * variance of a function says little, so it is shrunk to what is usual in its column: what chance
 * leaves to its own runs, and the median over all functions of what their runs differ by beyond
 * that. The median counts as much as PRIOR_FREEDOM runs (Smyth, Linear models and empirical Bayes
 * methods, Statistical Applications in Genetics 3, 2004). A function whose runs differ by more has
 * its own variance, and one whose runs differ by far more has its own degrees of freedom, too: the
 * median is not about it.
 *
 * Of thousands of values, chance alone changes some by a lot. So a change is significant only if it
 * is among those of the table of which 5 % are expected to be false (Benjamini and Hochberg,
 * Controlling the false discovery rate, J. R. Statist. Soc. B 57, 1995).
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <subcmd/pager.h>

#include "../color.h"
#include "../debug.h"
#include "functions.h"
#include "text.h"

#define FALSE_DISCOVERIES	0.05
#define PRIOR_FREEDOM		4
/* Rarely the squares of runs are as much more than usual by chance. */
#define FAR			5
#define STATUS_EXCEEDED		2
#define RANK_SMALL		4

enum { BEFORE, AFTER, NR_SIDES };
static const char *const side_names[] = { "before", "after" };

/* A table with its values: of one run, or of all runs of a side together. */
struct run {
	struct fn_table table;
	struct fn_columns columns;
	/* The place of the column that is being compared, -1: none. */
	int place;
	struct fn_value *absent;	/* by column: the value of a function without samples */
};

struct side {
	struct run all, *runs;
	unsigned int nr;
	char **labels;
};

/* How much the values of a row differ between runs, relative to the value. */
struct spread {
	double squares;			/* of the differences to the means of both sides */
	unsigned int nr, freedom;	/* of runs */
	double chance;			/* the part of chance in the variance of a run */
	struct {
		double unit;		/* what a relative difference of 1 is */
		double weight;		/* sum of the squares of the runs' parts in it */
		double chance;
	} sides[NR_SIDES];
};

/* after - before. */
struct change {
	const struct fn_value *values[NR_SIDES];	/* NULL: none */
	double value, low, high;		/* NAN: not defined, or no interval */
	double between[NR_SIDES];		/* variance that runs add to each value */
	double freedom;				/* of it; 0: no limit */
	double chance;				/* that chance alone makes it */
	bool is_found;				/* significant, or beyond a limit */
};

/* A function in both tables, NULL: it is not there. */
struct pair {
	const struct fn_row *rows[NR_SIDES];
	struct change *changes;			/* by column */
	bool is_significant;
	int rank;				/* in the order of the table */
	double size;
};

struct limit {
	int column;
	bool is_decrease, is_relative;
	double number;
	const char *text;
	int length;
};

struct comparison {
	const struct fn_compare_options *options;
	struct side sides[NR_SIDES];
	struct fn_columns columns;	/* of both sides, without values */
	struct pair *pairs;
	size_t nr_pairs;
	struct change *changes;
	double *deviations;		/* by column: what runs usually differ by */
	int *fields;
	unsigned int nr_fields;
	bool has_several_runs, has_other_vendor, has_other_source;
	struct limit *limits;
	unsigned int nr_limits;
	size_t nr_compared;		/* values of the table with an interval */
};

static const struct fn_column *column_of(const struct comparison *comparison, unsigned int field)
{
	return &comparison->columns.columns[comparison->fields[field]];
}

static const struct change *change_of(const struct comparison *comparison,
				      const struct pair *pair, unsigned int field)
{
	return &pair->changes[comparison->fields[field]];
}

static const struct fn_value none = { .value = NAN, .low = NAN, .high = NAN, .error = NAN };

/*
 * Names: what changes with each build says nothing of a function
 */

#define DIGITS	"0123456789"
#define HEX	DIGITS "abcdef"
#define BASE62	HEX "ghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* What compilers add: LLVM and GCC to copies and parts of a function, Rust to its names. */
static const struct {
	const char *begin, *set, *end;
	size_t length;		/* of what is of @set, 0: any */
	size_t drops;		/* bytes of @end */
	bool is_rust;		/* only in mangled names of Rust */
} patterns[] = {
	{ ".llvm.", HEX "ABCDEF", "", 0, 0, false },
	{ ".lto_priv.", DIGITS, "", 0, 0, false },
	{ ".__uniq.", DIGITS, "", 0, 0, false },
	{ ".constprop.", DIGITS, "", 0, 0, false },
	{ ".isra.", DIGITS, "", 0, 0, false },
	{ ".part.", DIGITS, "", 0, 0, false },
	{ ".cold.", DIGITS, "", 0, 0, false },
	{ "::h", HEX, "", 16, 0, false },
	{ "17h", HEX, "E", 16, 0, false },
	{ "[", HEX, "]::", 16, 1, false },
	{ "Cs", BASE62, "_", 0, 1, true },
};

/* Returns how many bytes at the begin of a text change with each build. */
static size_t length_of_build(const char *text, bool is_rust)
{
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		const size_t begin = strlen(patterns[i].begin);
		const char *end;
		size_t length;

		if (!strstarts(text, patterns[i].begin) || (patterns[i].is_rust && !is_rust))
			continue;
		length = strspn(text + begin, patterns[i].set);
		end = text + begin + length;
		if (length && (!patterns[i].length || length == patterns[i].length) &&
		    strstarts(end, patterns[i].end) && (*patterns[i].end || !isalnum(*end)))
			return begin + length + patterns[i].drops;
	}
	return 0;
}

static void normalise(char *name)
{
	const bool is_rust = strstr(name, "_R");
	char *to = name;

	for (const char *from = name; *from; ) {
		/* No name begins with it. */
		const size_t length = to == name ? 0 : length_of_build(from, is_rust);

		from += length;
		if (!length)
			*to++ = *from++;
	}
	*to = '\0';
}

/* Functions of one name are one: which of them is which says nothing in another build. */
static int normalise_names(struct fn_table *table)
{
	for (size_t i = 0; i < table->nr_rows; i++) {
		struct fn_row *row = table->rows[i];

		normalise(row->symbol);
		if (*row->symbol) {
			row->has_address = false;
			row->address = 0;
		}
	}
	return fn_table__settle(table);
}

/*
 * Reading
 */

static void run__exit(struct run *run)
{
	free(run->absent);
	fn_columns__exit(&run->columns);
	fn_table__exit(&run->table);
}

static void side__exit(struct side *side)
{
	fn_table__free_labels(&side->all.table, side->labels);
	for (unsigned int i = 0; i < side->nr; i++)
		run__exit(&side->runs[i]);
	run__exit(&side->all);
	free(side->runs);
}

static int make_columns(struct run *run, const struct fn_compare_options *options, bool is_silent)
{
	int err = fn_columns__init(&run->columns, &run->table, options->fields, options->sort);

	return err ?: options->metrics ? fn_metrics__add(&run->columns, options->metrics,
							 is_silent) : 0;
}

/* A run without samples has no values to compare. */
static int read_run(struct side *side, const char *path, bool has_by, struct fn_options *options)
{
	struct run *run = &side->runs[side->nr++];
	const char *reason = NULL, *filter = fn_options__filter(options);
	int err;

	fn_table__init(&run->table);
	err = fn_input__read(path, options, has_by, /*sums=*/NULL, &run->table, /*kept=*/NULL) ?:
	      normalise_names(&run->table);
	if (!err)
		reason = fn_table__add(&side->all.table, &run->table);
	if (reason) {
		function_error(path, reason);
		return -EINVAL;
	}
	if (err || !fn_table__is_empty(&run->table))
		return err;
	if (filter)
		fn_warn("%s: %s leaves no samples", path, filter);
	run__exit(&side->runs[--side->nr]);
	return 0;
}

static int read_side(struct side *side, const char *const *paths, unsigned int nr,
		     const struct fn_compare_options *compare, struct fn_options *options)
{
	int err = 0;

	fn_table__init(&side->all.table);
	side->runs = calloc(nr, sizeof(*side->runs));
	if (!side->runs)
		return -ENOMEM;
	for (unsigned int i = 0; !err && i < nr; i++)
		err = read_run(side, paths[i], compare->has_by, options);
	err = err ?: fn_table__settle(&side->all.table) ?:
	      make_columns(&side->all, compare, /*is_silent=*/false);
	for (unsigned int i = 0; !err && i < side->nr; i++)
		err = make_columns(&side->runs[i], compare, /*is_silent=*/true);
	if (!err)
		side->labels = fn_table__labels(&side->all.table, compare->json ? INT_MAX : 0);
	return err ?: side->labels ? 0 : -ENOMEM;
}

/*
 * Pairs of rows, and columns of both sides
 */

typedef int (*compare_rows_t)(const struct fn_row *a, const struct fn_row *b);

static int compare_symbols(const struct fn_row *a, const struct fn_row *b)
{
	return strcmp(a->symbol, b->symbol);
}

static int compare_files(const struct fn_row *a, const struct fn_row *b)
{
	return compare_symbols(a, b) ?: strcmp(function_text__base_name(a->dso),
					       function_text__base_name(b->dso));
}

static int compare_names(const struct fn_row *a, const struct fn_row *b)
{
	return compare_files(a, b) ?: strcmp(a->dso, b->dso) ?:
	       (a->address < b->address ? -1 : a->address > b->address);
}

static const struct fn_row *row_of(const struct pair *pair)
{
	return pair->rows[AFTER] ?: pair->rows[BEFORE];
}

static int sort_names(const void *one, const void *other)
{
	return compare_names(row_of(one), row_of(other));
}

/* Joins the rows of both sides that are alike, if no other one is. */
static void join(struct comparison *comparison, compare_rows_t compare)
{
	struct pair *pairs = comparison->pairs;
	size_t to = 0, next;

	for (size_t i = 0; i < comparison->nr_pairs; i = next) {
		/* Without a symbol, the address is the name. */
		const bool is_named = compare == compare_names || *row_of(&pairs[i])->symbol;
		size_t alone[NR_SIDES] = {}, nr[NR_SIDES] = {};

		for (next = i; next < comparison->nr_pairs; next++) {
			if (compare(row_of(&pairs[i]), row_of(&pairs[next])))
				break;
			for (int side = BEFORE; side < NR_SIDES; side++) {
				if (!pairs[next].rows[!side])
					alone[side] = next;
				nr[side] += !pairs[next].rows[!side];
			}
		}
		if (is_named && nr[BEFORE] == 1 && nr[AFTER] == 1) {
			pairs[alone[AFTER]].rows[BEFORE] = pairs[alone[BEFORE]].rows[BEFORE];
			pairs[alone[BEFORE]].rows[BEFORE] = NULL;
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
	const size_t nr = comparison->sides[BEFORE].all.table.nr_rows +
			  comparison->sides[AFTER].all.table.nr_rows;

	comparison->pairs = calloc(nr + 1, sizeof(*comparison->pairs));
	if (!comparison->pairs)
		return -ENOMEM;
	for (int side = BEFORE; side < NR_SIDES; side++) {
		const struct fn_table *table = &comparison->sides[side].all.table;

		for (size_t i = 0; i < table->nr_rows; i++)
			comparison->pairs[comparison->nr_pairs++].rows[side] = table->rows[i];
	}
	qsort(comparison->pairs, nr, sizeof(*comparison->pairs), sort_names);
	join(comparison, compare_names);
	join(comparison, compare_files);
	join(comparison, compare_symbols);
	return 0;
}

static int find_title(const struct fn_columns *columns, const char *title)
{
	return fn_columns__find(columns, title, strlen(title));
}

/* Makes the columns of the table after, and those that only the table before has. */
static int find_columns(struct comparison *comparison)
{
	const struct fn_columns *before = &comparison->sides[BEFORE].all.columns;
	const struct fn_columns *after = &comparison->sides[AFTER].all.columns;
	struct fn_columns *all = &comparison->columns;

	all->table = after->table;
	all->columns = calloc(before->nr + after->nr + 1, sizeof(*all->columns));
	if (!all->columns)
		return -ENOMEM;
	for (unsigned int i = 0; i < after->nr; i++)
		all->columns[all->nr++] = after->columns[i];
	for (unsigned int i = 0; i < before->nr; i++) {
		if (find_title(after, before->columns[i].title) < 0)
			all->columns[all->nr++] = before->columns[i];
	}
	for (int side = BEFORE; side < NR_SIDES; side++) {
		for (unsigned int i = 0; i <= comparison->sides[side].nr; i++) {
			struct run *run = i ? &comparison->sides[side].runs[i - 1] :
					      &comparison->sides[side].all;

			run->absent = calloc(all->nr + 1, sizeof(*run->absent));
			if (!run->absent)
				return -ENOMEM;
		}
	}
	comparison->fields = fn_fields__find(all, comparison->options->fields,
					     &comparison->nr_fields);
	return comparison->fields ? 0 : -EINVAL;
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
	const struct fn_value *before = change->values[BEFORE], *after = change->values[AFTER];
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
	const double before = change->values[BEFORE]->value, after = change->values[AFTER]->value;
	bool is_less = limit ? limit->is_decrease : after < before;
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

static bool has_interval(const struct change *change)
{
	return !isnan(change->low);
}

/* Returns how far the interval of a change reaches on one side. */
static double reach(const struct change *change, bool up)
{
	double freedom, error = error_of(change, 1, up, &freedom);

	return fn_student__quantile(freedom) * error;
}

static void set_change(struct change *change, bool has_error)
{
	const struct fn_value *before = change->values[BEFORE], *after = change->values[AFTER];

	if (!before || !after)
		return;
	/* The numbers of a crafted file may be infinite. */
	change->value = after->value - before->value;
	if (!isfinite(change->value))
		change->value = NAN;
	if (isnan(change->value) || !has_error || !fn_value__has_interval(before) ||
	    !fn_value__has_interval(after))
		return;
	change->low = change->value - reach(change, false);
	change->high = change->value + reach(change, true);
	if (!isfinite(change->low) || !isfinite(change->high)) {
		change->low = NAN;
		change->high = NAN;
	}
}

static bool is_weak(const struct change *change)
{
	return (change->values[BEFORE] && change->values[BEFORE]->mark == FN_WEAK) ||
	       (change->values[AFTER] && change->values[AFTER]->mark == FN_WEAK);
}

/*
 * The variance between runs
 */

/* Finds a column in a run, and its value of a function without samples: a share of 0. */
static void run__find(struct run *run, const struct comparison *comparison, unsigned int c)
{
	const struct fn_column *column = &comparison->columns.columns[c];
	struct fn_value *absent = &run->absent[c];
	const struct fn_columns *columns = &run->columns;

	*absent = none;
	run->place = find_title(columns, column->title);
	if (run->place < 0 || !fn_column__is_share(column))
		return;
	for (size_t i = 0; i < run->table.nr_rows; i++) {
		const struct fn_value *value = fn_columns__value(columns, run->table.rows[i],
								 run->place);

		if (!fn_value__is_defined(value) || !(value->number > 0))
			continue;
		absent->value = 0;
		absent->number = value->number;
		fn_value__share_interval(absent, column->scale, value->number);
		return;
	}
}

/* Returns NULL if there is no value. */
static const struct fn_value *run__value(const struct run *run, unsigned int c,
					 const struct fn_row *row)
{
	const struct fn_value *value = &run->absent[c];

	if (row && run->place >= 0)
		value = fn_columns__value(&run->columns, row, run->place);
	return fn_value__is_defined(value) ? value : NULL;
}

static const struct fn_source *run__source(const struct run *run)
{
	return run->place < 0 ? NULL : run->columns.columns[run->place].source;
}

/*
 * Returns the change of a value per relative change of what is measured: a share near 1 can change
 * only as much as the rest.
 */
static double unit_of(const struct fn_column *column, const struct fn_value *value)
{
	const double rest = fn_column__is_share(column) ? 1 - value->value / column->scale : 1;

	return fabs(value->value * rest);
}

/* Adds how far the runs of a side differ in a row. */
static void spread__add(struct spread *spread, const struct comparison *comparison, int s,
			unsigned int c, const struct pair *pair)
{
	const struct side *side = &comparison->sides[s];
	const struct fn_row *row = pair->rows[s];
	const struct fn_value *all = pair->changes[c].values[s];
	const double unit = all && all->error >= 0 ?
			    unit_of(&comparison->columns.columns[c], all) : 0;
	double mean = 0, squares = 0, sizes = 0, sizes2 = 0, per_size = 0;
	unsigned int nr = 0;

	for (unsigned int i = 0; unit && i < side->nr; i++) {
		const struct run *run = &side->runs[i];
		const struct fn_value *value;
		double one;

		/* Values of another source differ by more. */
		if (run__source(run) != run__source(&side->all))
			continue;
		value = run__value(run, c, row ? fn_table__find_row(&run->table, row) : NULL);
		if (!value || !(value->number > 0))
			continue;
		one = value->value / unit - mean;
		mean += one / ++nr;
		squares += one * (value->value / unit - mean);
		sizes += value->number;
		sizes2 += value->number * value->number;
		per_size += 1 / value->number;
	}
	/* The numbers of a crafted file may be infinite. */
	if (!nr || !isfinite(squares) || !isfinite(sizes2))
		return;
	spread->sides[s].unit = unit;
	spread->sides[s].weight = sizes2 / (sizes * sizes);
	spread->sides[s].chance = pow(all->error / unit, 2) * sizes * per_size / nr;
	spread->chance = (spread->chance * spread->nr + spread->sides[s].chance * nr) /
			 (spread->nr + nr);
	spread->nr += nr;
	spread->squares += squares;
	spread->freedom += nr - 1;
}

static double own_variance(const struct spread *spread)
{
	return spread->freedom ? spread->squares / spread->freedom : 0;
}

static int compare_numbers(const void *one, const void *other)
{
	const double *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

/*
 * Returns the usual variance between runs beyond chance: half of all rows have less. Sets @nr_rows
 * to the number of rows that tell it; @work has space for each.
 */
static double usual_variance(const struct spread *spreads, size_t nr_pairs, double *work,
			     size_t *nr_rows)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_pairs; i++) {
		const double freedom = spreads[i].freedom;

		/* The median of chi squared / freedom (Wilson and Hilferty). */
		if (freedom)
			work[nr++] = own_variance(&spreads[i]) / pow(1 - 2 / (9 * freedom), 3) -
				     spreads[i].chance;
	}
	*nr_rows = nr;
	if (!nr)
		return 0;
	qsort(work, nr, sizeof(*work), compare_numbers);
	return fmax((work[(nr - 1) / 2] + work[nr / 2]) / 2, 0);
}

/* Sets what runs add to the variance of a change. Returns false if it is not known. */
static bool set_between(struct change *change, const struct spread *spread, double usual,
			size_t nr_others)
{
	const double prior_freedom = fmin(nr_others, PRIOR_FREEDOM);
	const double own = own_variance(spread), prior = spread->chance + usual;
	double variance;

	change->freedom = spread->freedom + prior_freedom;
	if (!change->freedom)
		return false;
	variance = fmax(own, (spread->freedom * own + prior_freedom * prior) / change->freedom);
	if (spread->freedom && own > FAR * prior)
		change->freedom = spread->freedom;
	for (int side = BEFORE; side < NR_SIDES; side++)
		change->between[side] = fmax(variance - spread->sides[side].chance, 0) *
					spread->sides[side].weight *
					pow(spread->sides[side].unit, 2);
	return true;
}

/* Returns true if an event of a column means the same on both sides. */
static bool is_comparable(const struct comparison *comparison, const struct fn_column *column)
{
	const char *per = fn_column__is_share(column) ? NULL : column->per;

	return !comparison->has_other_vendor ||
	       (column->event && fn_event__is_portable(column->event) &&
		(!per || fn_event__is_portable(per)));
}

static void compare_column(struct comparison *comparison, unsigned int c, struct spread *spreads,
			   double *work)
{
	const struct fn_column *column = &comparison->columns.columns[c];
	struct side *sides = comparison->sides;
	bool is_same, has_error;
	size_t nr_rows;
	double usual;

	for (int side = BEFORE; side < NR_SIDES; side++) {
		run__find(&sides[side].all, comparison, c);
		for (unsigned int i = 0; i < sides[side].nr; i++)
			run__find(&sides[side].runs[i], comparison, c);
	}
	/* The errors of two sources differ by more than their intervals. */
	is_same = run__source(&sides[BEFORE].all) == run__source(&sides[AFTER].all);
	has_error = is_same && !column->is_count;
	comparison->has_other_source |= !is_same && sides[BEFORE].all.place >= 0 &&
					sides[AFTER].all.place >= 0;
	for (size_t i = 0; i < comparison->nr_pairs; i++) {
		struct pair *pair = &comparison->pairs[i];
		struct change *change = &pair->changes[c];

		*change = (struct change){ .value = NAN, .low = NAN, .high = NAN };
		spreads[i] = (struct spread){};
		for (int side = BEFORE; side < NR_SIDES; side++) {
			change->values[side] = run__value(&sides[side].all, c, pair->rows[side]);
			spread__add(&spreads[i], comparison, side, c, pair);
		}
	}
	usual = usual_variance(spreads, comparison->nr_pairs, work, &nr_rows);
	comparison->deviations[c] = has_error && nr_rows ? sqrt(usual) : NAN;
	for (size_t i = 0; is_comparable(comparison, column) && i < comparison->nr_pairs; i++) {
		struct change *change = &comparison->pairs[i].changes[c];

		set_change(change, has_error && (!comparison->has_several_runs ||
						 set_between(change, &spreads[i], usual,
							     nr_rows - !!spreads[i].freedom)));
	}
}

/* Of all columns. */
static int find_changes(struct comparison *comparison)
{
	const unsigned int nr = comparison->columns.nr;
	struct spread *spreads = calloc(comparison->nr_pairs + 1, sizeof(*spreads));
	double *work = calloc(comparison->nr_pairs + 1, sizeof(*work));

	comparison->changes = calloc(nr * comparison->nr_pairs + 1, sizeof(*comparison->changes));
	comparison->deviations = calloc(nr + 1, sizeof(*comparison->deviations));
	if (spreads && work && comparison->changes && comparison->deviations) {
		for (size_t i = 0; i < comparison->nr_pairs; i++)
			comparison->pairs[i].changes = &comparison->changes[nr * i];
		for (unsigned int c = 0; c < nr; c++)
			compare_column(comparison, c, spreads, work);
	}
	free(spreads);
	free(work);
	return comparison->changes && comparison->deviations ? 0 : -ENOMEM;
}

/*
 * Significance
 */

/*
 * Finds the changes in @nr columns of which a part of @level is expected to be false: those that
 * are not chance, or with a limit, that are beyond it.
 */
static int find_changes_in(struct comparison *comparison, unsigned int first, unsigned int nr,
			   const struct limit *limit, double level)
{
	double *chances = calloc(comparison->nr_pairs * nr + 1, sizeof(*chances));
	double greatest = -1;
	size_t nr_chances = 0;

	if (!chances)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->nr_pairs * nr; i++) {
		struct change *change = &comparison->pairs[i / nr].changes[first + i % nr];

		if (!has_interval(change))
			continue;
		change->chance = chance_of(change, limit);
		chances[nr_chances++] = change->chance;
	}
	qsort(chances, nr_chances, sizeof(*chances), compare_numbers);
	for (size_t i = 0; i < nr_chances; i++) {
		if (chances[i] <= level * (i + 1) / nr_chances)
			greatest = chances[i];
	}
	free(chances);
	for (size_t i = 0; i < comparison->nr_pairs * nr; i++) {
		struct pair *pair = &comparison->pairs[i / nr];
		struct change *change = &pair->changes[first + i % nr];

		change->is_found = has_interval(change) && change->chance <= greatest;
		pair->is_significant |= change->is_found;
	}
	comparison->nr_compared = nr_chances;
	return 0;
}

/*
 * --fail-on
 */

/* Reads a limit as in CPI>5%, CPI>0.1 or IPC<-5%. Returns what follows it, NULL if it is none. */
static const char *parse_limit(struct limit *limit, const char *text)
{
	char *end;

	limit->text = skip_spaces(text);
	limit->length = strcspn(limit->text, "<>");
	text = limit->text + limit->length;
	if (!limit->length || !*text)
		return NULL;
	limit->is_decrease = *text == '<';
	limit->number = strtod(++text, &end);
	if (end == text || !isfinite(limit->number) ||
	    (limit->is_decrease ? limit->number > 0 : limit->number < 0))
		return NULL;
	end = skip_spaces(end);
	limit->is_relative = *end == '%';
	end = skip_spaces(end + limit->is_relative);
	while (isspace(limit->text[limit->length - 1]))
		limit->length--;
	return *end && *end != ',' ? NULL : end + (*end == ',');
}

/* Returns true if changes can be beyond a limit, else prints why not. */
static bool check_limit(const struct comparison *comparison, const struct limit *limit)
{
	const struct fn_columns *before = &comparison->sides[BEFORE].all.columns;
	const struct fn_columns *after = &comparison->sides[AFTER].all.columns;
	const int old = fn_columns__find(before, limit->text, limit->length);
	const int new = fn_columns__find(after, limit->text, limit->length);
	const char *text = limit->text;

	if (comparison->has_other_vendor)
		fn_err("--fail-on %.*s: the CPUs before and after are of different vendors, so a change is not one of the program: compare runs on CPUs of one vendor",
			 limit->length, text);
	else if (old < 0 || new < 0)
		fn_err("--fail-on %.*s: the runs %s have no value of it: record the same events before and after, for long enough",
			 limit->length, text, side_names[old < 0 ? BEFORE : AFTER]);
	else if (after->columns[new].is_count)
		fn_err("--fail-on %.*s: a number has no 95 %% interval: take another column",
			 limit->length, text);
	else if (before->columns[old].source != after->columns[new].source)
		fn_err("--fail-on %.*s: values before come from %s, those after from %s: record both alike, or choose a --source that both have",
			 limit->length, text, before->columns[old].source->name,
			 after->columns[new].source->name);
	else if (!comparison->has_several_runs && !comparison->options->single_run)
		fn_err("--fail-on %.*s: one run of each build cannot tell a change from what runs differ by: record each several times for --before old*.data --after new*.data, or insist with --single-run",
			 limit->length, text);
	else
		return true;
	return false;
}

static int read_limits(struct comparison *comparison)
{
	for (const char *rest = comparison->options->fail_on; rest && *rest; ) {
		struct limit *limits = realloc(comparison->limits, (comparison->nr_limits + 1) *
					       sizeof(*limits)), *limit;
		const char *text = rest;
		char *name;

		if (!limits)
			return -ENOMEM;
		comparison->limits = limits;
		limit = &limits[comparison->nr_limits++];
		rest = parse_limit(limit, text);
		if (!rest) {
			fn_err("cannot read --fail-on %s: write COLUMN>NUMBER, or COLUMN<-NUMBER for a decrease, with a %% if it is relative to the value before",
			       text);
			return -EINVAL;
		}
		name = strndup(limit->text, limit->length);
		if (!name)
			return -ENOMEM;
		/* Columns are named as for --sort, which explains what is wrong. */
		limit->column = fn_sort__find(&comparison->columns, name);
		free(name);
		if (limit->column < 0 || !check_limit(comparison, limit))
			return -EINVAL;
	}
	return 0;
}

static const char *label_of(const struct comparison *comparison, const struct pair *pair)
{
	const int side = pair->rows[AFTER] ? AFTER : BEFORE;

	return comparison->sides[side].labels[pair->rows[side]->index];
}

static void print_exceeded(const struct comparison *comparison, const struct pair *pair,
			   const struct limit *limit, bool counts)
{
	const struct fn_column *column = &comparison->columns.columns[limit->column];
	const struct change *change = &pair->changes[limit->column];
	const double before = change->values[BEFORE]->value;
	const int digits = column->digits + 1;

	fprintf(stderr, "perf functions: %s of %s from %.*f to %.*f", column->title,
		label_of(comparison, pair), digits, before, digits, change->values[AFTER]->value);
	if (before)
		fprintf(stderr, ", %+.1f %%", 100 * change->value / fabs(before));
	fprintf(stderr, " (95 %%: %+.*f..%+.*f), beyond %.*s%c%g%s%s\n", digits, change->low,
		digits, change->high, limit->length, limit->text, limit->is_decrease ? '<' : '>',
		limit->number, limit->is_relative ? "%" : "",
		counts ? "" : ", not counted: a value is weak");
}

/*
 * Prints the changes beyond a limit, all of them: --limit is about the table. Returns how many
 * count, or -ENOMEM: a weak rate is not to be relied on, a share is weak if it only is small.
 */
static int find_exceeded(struct comparison *comparison, const struct limit *limit)
{
	const bool is_share = fn_column__is_share(&comparison->columns.columns[limit->column]);
	int found = 0, err;

	/* Chance alone exceeds one of all limits in 5 % of comparisons. */
	err = find_changes_in(comparison, limit->column, 1, limit,
			      FALSE_DISCOVERIES / comparison->nr_limits);
	for (size_t i = 0; !err && i < comparison->nr_pairs; i++) {
		const struct change *change = &comparison->pairs[i].changes[limit->column];
		const bool counts = is_share || !is_weak(change);

		if (!change->is_found)
			continue;
		found += counts;
		print_exceeded(comparison, &comparison->pairs[i], limit, counts);
	}
	return err ?: found;
}

/*
 * The table
 */

/*
 * Ranks a function: significant changes come first, then others, those that appeared, those that
 * vanished, and those that are small on both sides, which are not printed.
 */
static void rank(struct comparison *comparison, struct pair *pair, int column)
{
	const double least = comparison->options->percent_limit;
	const struct change *change = column < 0 ? NULL : &pair->changes[column];
	const struct fn_value *only = NULL;
	bool is_small = least;

	if (change && !(pair->rows[BEFORE] && pair->rows[AFTER]))
		only = change->values[pair->rows[AFTER] ? AFTER : BEFORE];
	for (int side = BEFORE; is_small && side < NR_SIDES; side++)
		is_small = !pair->rows[side] ||
			   fn_columns__is_small(&comparison->sides[side].all.columns,
						pair->rows[side], least);
	pair->rank = is_small ? RANK_SMALL : pair->is_significant ? 0 : !pair->rows[BEFORE] ? 2 :
		     !pair->rows[AFTER] ? 3 : 1;
	pair->size = -1;
	if (change && !isnan(change->value))
		pair->size = fabs(change->value);
	else if (only)
		pair->size = only->value;
}

static int compare_pairs(const void *one, const void *other)
{
	const struct pair *a = one, *b = other;

	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return compare_names(row_of(a), row_of(b));
}

/* Sorts the functions. Returns how many to print, or an error after a message. */
static int sort_pairs(struct comparison *comparison, size_t *nr_shown)
{
	const struct fn_compare_options *options = comparison->options;
	int column = fn_sort__find(&comparison->columns, options->sort);
	size_t nr = comparison->nr_pairs;

	if (column < -1)
		return column;
	for (size_t i = 0; i < nr; i++)
		rank(comparison, &comparison->pairs[i], column);
	qsort(comparison->pairs, nr, sizeof(*comparison->pairs), compare_pairs);
	while (nr && comparison->pairs[nr - 1].rank == RANK_SMALL)
		nr--;
	*nr_shown = options->limit ? min_t(size_t, options->limit, nr) : nr;
	return 0;
}

static const char *status_of(const struct pair *pair)
{
	return !pair->rows[BEFORE] ? "appeared" : !pair->rows[AFTER] ? "vanished" : "";
}

static bool has_ci(const struct comparison *comparison, unsigned int field)
{
	return comparison->options->with_ci && !column_of(comparison, field)->is_count;
}

/* Adds the value after (before if the function vanished), its change, and the change's interval. */
static int add_cells(const struct comparison *comparison, struct fn_text *text,
		     const struct pair *pair, unsigned int field)
{
	const struct fn_column *column = column_of(comparison, field);
	const struct change *change = change_of(comparison, pair, field);
	const struct fn_value *before = change->values[BEFORE], *after = change->values[AFTER];
	struct fn_value value = after || pair->rows[AFTER] ? after ? *after : none :
				before ? *before : none;
	char buf[2 * FN_CELL_SIZE] = "-", low[FN_CELL_SIZE], high[FN_CELL_SIZE];
	int err;

	value.mark = max(before ? before->mark : FN_SURE, after ? after->mark : FN_SURE);
	if (!isnan(change->value))
		scnprintf(buf, sizeof(buf), "%s%s", fn_number(column, change->value, true, low),
			  change->is_found ? "*" : "");
	err = fn_text__cell(text, fn_view__cell(column, &value, low), NULL) ?:
	      fn_text__cell(text, buf, change->is_found ? PERF_COLOR_BOLD : NULL);
	if (err || !has_ci(comparison, field))
		return err;
	scnprintf(buf, sizeof(buf), has_interval(change) ? "%s..%s" : "-",
		  fn_number(column, change->low, true, low),
		  fn_number(column, change->high, true, high));
	return fn_text__cell(text, buf, NULL);
}

/* Returns the change that is found with this chance, in standard errors. */
static double found_at(double chance, double freedom)
{
	double low = 0, high = 1e6;

	for (int i = 0; i < 100; i++) {
		const double middle = (low + high) / 2;

		if (fn_student__tail(middle, freedom) > chance)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* Says which changes of rates no row would have shown, for chance makes them. */
static void print_unseen(const struct comparison *comparison)
{
	const char *begin = "# changes of";

	for (unsigned int f = 0; comparison->has_several_runs && f < comparison->nr_fields; f++) {
		double least = INFINITY, least_freedom = 0;

		for (size_t i = 0; i < comparison->nr_pairs; i++) {
			const struct pair *pair = &comparison->pairs[i];
			const struct change *change = change_of(comparison, pair, f);
			double error, freedom;

			if (!has_interval(change) || !(change->values[BEFORE]->value > 0))
				continue;
			error = error_of(change, 1, false, &freedom);
			error /= change->values[BEFORE]->value;
			if (error < least) {
				least = error;
				least_freedom = freedom;
			}
		}
		if (isinf(least) || fn_column__is_share(column_of(comparison, f)))
			continue;
		least *= found_at(FALSE_DISCOVERIES / comparison->nr_compared, least_freedom);
		printf("%s %s below %.*f %%", begin, column_of(comparison, f)->title,
		       100 * least < 10, 100 * least);
		begin = ",";
	}
	if (*begin == ',')
		puts(" would not be seen");
}

static int print_table(const struct comparison *comparison, size_t nr_shown)
{
	unsigned int nr = 1 + 2 * comparison->nr_fields;
	struct fn_text *text;
	bool has_status = false;
	int err;

	for (unsigned int f = 0; f < comparison->nr_fields; f++)
		nr += has_ci(comparison, f);
	for (size_t i = 0; i < nr_shown; i++)
		has_status |= *status_of(&comparison->pairs[i]);
	text = fn_text__new(nr + has_status, /*width=*/0);
	if (!text)
		return -ENOMEM;
	err = fn_text__cell(text, comparison->columns.table->by, NULL);
	for (unsigned int f = 0; !err && f < comparison->nr_fields; f++) {
		err = fn_text__cell(text, column_of(comparison, f)->title, NULL) ?:
		      fn_text__cell(text, "change", NULL);
		if (!err && has_ci(comparison, f))
			err = fn_text__cell(text, "95 %", NULL);
	}
	if (!err && has_status)
		err = fn_text__cell(text, "", NULL);
	for (size_t i = 0; !err && i < nr_shown; i++) {
		const struct pair *pair = &comparison->pairs[i];

		err = fn_text__cell(text, label_of(comparison, pair), NULL);
		for (unsigned int f = 0; !err && f < comparison->nr_fields; f++)
			err = add_cells(comparison, text, pair, f);
		if (!err && has_status)
			err = fn_text__cell(text, status_of(pair), NULL);
	}
	if (!err) {
		fn_text__print(text, stdout);
		print_unseen(comparison);
	}
	fn_text__delete(text);
	return err;
}

static void csv_number(double number, const char *separator)
{
	char buf[FN_CELL_SIZE];

	printf("%s%s", separator, isnan(number) ? "-" : fn_shortest(number, buf));
}

static void print_csv(const struct comparison *comparison, size_t nr_shown)
{
	static const char *const titles[] = {
		"before", "after", "change", "low", "high", "significant", "weak"
	};
	const char *separator = comparison->options->separator;
	const char *by = comparison->columns.table->by;
	char title[256];

	fn_csv__text(by, separator, stdout);
	printf("%s%s%sstatus", separator, fn_by__is(by, FN_BY_DSO) ? "path" : "dso", separator);
	for (size_t i = 0; i < comparison->nr_fields * ARRAY_SIZE(titles); i++) {
		scnprintf(title, sizeof(title), "%s %s",
			  column_of(comparison, i / ARRAY_SIZE(titles))->title,
			  titles[i % ARRAY_SIZE(titles)]);
		fputs(separator, stdout);
		fn_csv__text(title, separator, stdout);
	}
	putchar('\n');
	for (size_t i = 0; i < nr_shown; i++) {
		const struct pair *pair = &comparison->pairs[i];

		fn_csv__name(row_of(pair), separator, stdout);
		printf("%s%s", separator, *status_of(pair) ? status_of(pair) : "both");
		for (unsigned int f = 0; f < comparison->nr_fields; f++) {
			const struct change *change = change_of(comparison, pair, f);

			csv_number((change->values[BEFORE] ?: &none)->value, separator);
			csv_number((change->values[AFTER] ?: &none)->value, separator);
			csv_number(change->value, separator);
			csv_number(change->low, separator);
			csv_number(change->high, separator);
			printf("%s%d%s%d", separator, change->is_found, separator, is_weak(change));
		}
		putchar('\n');
	}
}

static void json_change(struct fn_json *json, const struct fn_column *column,
			const struct change *change)
{
	const struct fn_value value = {
		.value = change->value, .low = change->low, .high = change->high,
	};

	fn_json__begin(json, column->title, '{');
	for (int side = BEFORE; side < NR_SIDES; side++)
		fn_json__value(json, side_names[side], change->values[side] ?: &none);
	fn_json__value(json, "change", &value);
	fn_json__bool(json, "significant", change->is_found);
	fn_json__end(json, '}');
}

static void print_json(const struct comparison *comparison, size_t nr_shown)
{
	struct fn_json json = { .fp = stdout };

	fn_json__head(&json, comparison->columns.table);
	for (int side = BEFORE; side < NR_SIDES; side++) {
		fn_json__begin(&json, side_names[side], '{');
		fn_json__number(&json, "runs", comparison->sides[side].nr);
		fn_json__recorded(&json, &comparison->sides[side].all.table);
		fn_json__end(&json, '}');
	}
	fn_json__columns(&json, &comparison->columns, comparison->fields, comparison->nr_fields);
	fn_json__begin(&json, "run_deviations", '{');
	for (unsigned int f = 0; f < comparison->nr_fields; f++) {
		const double deviation = comparison->deviations[comparison->fields[f]];

		if (!isnan(deviation))
			fn_json__number(&json, column_of(comparison, f)->title, deviation);
	}
	fn_json__end(&json, '}');
	fn_json__begin(&json, "functions", '[');
	for (size_t i = 0; i < nr_shown; i++) {
		const struct pair *pair = &comparison->pairs[i];

		fn_json__begin(&json, NULL, '{');
		fn_json__names(&json, label_of(comparison, pair), row_of(pair));
		fn_json__string(&json, "status", *status_of(pair) ? status_of(pair) : "both");
		fn_json__begin(&json, "metrics", '{');
		for (unsigned int f = 0; f < comparison->nr_fields; f++)
			json_change(&json, column_of(comparison, f),
				    change_of(comparison, pair, f));
		fn_json__end(&json, '}');
		fn_json__end(&json, '}');
	}
	fn_json__end(&json, ']');
	fn_json__end(&json, '}');
}

static void print_notes(const struct comparison *comparison, const struct fn_options *options)
{
	const struct run *before = &comparison->sides[BEFORE].all;
	const struct run *after = &comparison->sides[AFTER].all;

	fn_notes__print("before: ", &before->table, &before->columns, options);
	fn_notes__print("after: ", &after->table, &after->columns, options);
	if (!comparison->has_several_runs && comparison->options->single_run)
		fn_warn("with one run of each build, a * holds for these two runs only: compare several runs with --before A... --after B...");
	else if (!comparison->has_several_runs)
		fn_warn("with one run of each build, no change is marked, as runs of one build differ, too: compare several runs with --before A... --after B..., or insist with --single-run");
	if (comparison->has_other_vendor)
		fn_warn("the CPU before is %s's and the one after %s's, so changes are not those of the program alone, and events that count something else there are not compared",
			fn_vendor__name(fn_table__vendor(&before->table)),
			fn_vendor__name(fn_table__vendor(&after->table)));
	if (comparison->has_other_source)
		fn_warn("some values come from other sources before than after, so their changes have no 95 %% interval: record both alike, or choose a --source that both have");
}

static int print_comparison(struct comparison *comparison, const struct fn_options *options)
{
	size_t nr_shown;
	int found = 0, err = sort_pairs(comparison, &nr_shown);

	if (err)
		return err;
	print_notes(comparison, options);
	setup_pager();
	if (comparison->options->json)
		print_json(comparison, nr_shown);
	else if (comparison->options->separator)
		print_csv(comparison, nr_shown);
	else
		err = print_table(comparison, nr_shown);
	err = err ?: fn_flush();
	for (unsigned int i = 0; !err && i < comparison->nr_limits; i++) {
		int nr = find_exceeded(comparison, &comparison->limits[i]);

		err = nr < 0 ? nr : 0;
		found += nr;
	}
	return err ?: found ? STATUS_EXCEEDED : 0;
}

static int compare_sides(struct comparison *comparison, const struct fn_options *options)
{
	const struct side *before = &comparison->sides[BEFORE], *after = &comparison->sides[AFTER];
	const struct fn_table *old = &before->all.table, *new = &after->all.table;
	const enum fn_vendor vendors[] = { fn_table__vendor(old), fn_table__vendor(new) };
	int err;

	/* Then nothing was measured, which is no change, and --fail-on must not pass. */
	if (!before->nr || !after->nr) {
		fn_err("no samples %s: there is nothing to compare with",
		       side_names[before->nr ? AFTER : BEFORE]);
		return -EINVAL;
	}
	if (strcmp(old->by, new->by) || old->inlines != new->inlines) {
		function_error(comparison->options->after[0],
			       "its rows are of another kind than those before: use the same --by, --children and --inline for both");
		return -EINVAL;
	}
	comparison->has_several_runs = before->nr + after->nr > NR_SIDES;
	comparison->has_other_vendor = vendors[BEFORE] != FN_VENDOR_UNKNOWN &&
				       vendors[AFTER] != FN_VENDOR_UNKNOWN &&
				       vendors[BEFORE] != vendors[AFTER];
	err = find_columns(comparison) ?: read_limits(comparison) ?: find_pairs(comparison) ?:
	      find_changes(comparison);
	if (!err && (comparison->has_several_runs || comparison->options->single_run))
		err = find_changes_in(comparison, 0, comparison->columns.nr, /*limit=*/NULL,
				      FALSE_DISCOVERIES);
	return err ?: print_comparison(comparison, options);
}

int fn_compare(const struct fn_compare_options *compare, struct fn_options *options)
{
	struct comparison comparison = { .options = compare };
	struct side *sides = comparison.sides;
	int err;

	err = read_side(&sides[BEFORE], compare->before, compare->nr_before, compare, options) ?:
	      read_side(&sides[AFTER], compare->after, compare->nr_after, compare, options);
	if (!err) {
		/* perf ignores SIGPIPE for addr2line, but `| head` must end the command. */
		signal(SIGPIPE, SIG_DFL);
		err = compare_sides(&comparison, options);
	}
	side__exit(&sides[BEFORE]);
	side__exit(&sides[AFTER]);
	free(comparison.columns.columns);
	free(comparison.pairs);
	free(comparison.changes);
	free(comparison.deviations);
	free(comparison.fields);
	free(comparison.limits);
	return err;
}
