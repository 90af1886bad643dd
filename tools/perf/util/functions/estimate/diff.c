// SPDX-License-Identifier: GPL-2.0
/*
 * Compares two tables of functions, and finds the changes that are significant.
 *
 * The interval of a change is made of those of both values, which may be longer
 * on one side: the squares of their sides that face each other add up (MOVER:
 * Zou and Donner, Construction of confidence limits about effect measures,
 * Statistics in Medicine 27, 2008), with the degrees of freedom of Welch and
 * Satterthwaite.
 *
 * These intervals cover the random places of windows in a run. Runs differ, too:
 * a value of a run is off by a factor whose variance t all functions share. Of
 * k runs with the shares a_i of the windows, the value of all windows together
 * has the relative variance t sum a_i^2 on top. Where the windows of a function
 * leave the variance v_i to the value of each run, the squares of the k runs
 * around their mean are expected to be (k - 1) (mean v_i + t). So t is the mean
 * of squares / (k - 1) - mean v_i over functions, with weights that make it most
 * certain if runs differ by 1 % or more. A function whose own runs differ by more
 * has the variance of these.
 *
 * How certain t is depends on whether functions differ together. The runs' sums
 * of products over functions show it: their squares, relative to the square of the
 * trace, give the number of independent functions (as in John's test of sphericity,
 * Biometrika 58, 1971).
 *
 * If thousands of functions are compared, chance alone makes 5 % of the
 * intervals miss 0. So a change is called significant only if it is among those
 * of its column of which 5 % are expected to be false (Benjamini and Hochberg,
 * Controlling the false discovery rate, J. R. Statist. Soc. B 57, 1995).
 *
 * With one run on each side, t is not known, and no change is called significant.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../text.h"
#include "../events.h"
#include "../collect/sums.h"
#include "columns.h"
#include "diff.h"
#include "interval.h"

#define FALSE_DISCOVERIES	0.05
/* Below this variance by chance (1 %, squared) all functions have the same weight. */
#define LEAST_RUN_VARIANCE	0.0001

/* Returns the variance of a value, computed from one side of its interval. */
static double variance(const struct function_value *value, bool above)
{
	double side = above ? value->high - value->value : value->value - value->low;

	return pow(side / student_t__quantile(value->freedom), 2);
}

/*
 * Returns the standard error of after - factor x before on one side (up: towards more), with its
 * degrees of freedom.
 */
static double error_of(const struct function_change *change, double factor, bool up,
		       double *freedom)
{
	const struct function_run_variance *runs = change->runs;
	double after = variance(change->after, up);
	double before = factor * factor * variance(change->before, up == (factor < 0));
	double unit = change->unit_after + factor * factor * change->unit_before;
	/* The uncertainty of the variance between runs always remains. */
	double sum = fmax(after + before + change->between * unit, unit * sqrt(runs->variance));
	double per = unit * unit * runs->variance / 2;

	if (change->after->freedom > 0)
		per += after * after / change->after->freedom;
	if (change->before->freedom > 0)
		per += before * before / change->before->freedom;
	*freedom = per > 0 ? sum * sum / per : 0;
	return sqrt(sum);
}

/* Returns how far the interval of a change reaches on one side. */
static double reach(const struct function_change *change, bool up)
{
	double freedom, error = error_of(change, 1, up, &freedom);

	return student_t__quantile(freedom) * error;
}

/*
 * Returns the probability that chance alone makes after - factor x before at least as much larger
 * than number, or smaller if is_less.
 */
static double chance_of(const struct function_change *change, double factor, double number,
			bool is_less)
{
	double excess = change->after->value - factor * change->before->value - number;
	double freedom, error = error_of(change, factor, is_less, &freedom);

	/* The side towards number has the relevant error. */
	if (is_less ? excess >= 0 : excess <= 0)
		return 1;
	return error ? student_t__tail(excess / error, freedom) : 0;
}

static void set_change(struct function_change *change)
{
	const struct function_value *before = change->before, *after = change->after;

	if (!before || !after || !before->is_defined || !after->is_defined)
		return;
	change->change = after->value - before->value;
	change->is_defined = isfinite(change->change);
	if (!before->has_interval || !after->has_interval || !change->runs->is_known)
		return;
	change->low = change->change - reach(change, false);
	change->high = change->change + reach(change, true);
	/* The numbers of a crafted file may be infinite. */
	change->has_interval = isfinite(change->low) && isfinite(change->high);
}

static int compare_numbers(const void *one, const void *other)
{
	const double *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

/*
 * Finds the significant changes of a column: after differs from before, or with a limit, exceeds
 * it.
 */
static int find_significant(const struct function_diff *diff, unsigned int column,
			    const struct function_limit *limit, double level, bool *significant)
{
	double *chances = calloc(2 * diff->nr_rows + 1, sizeof(*chances));
	double *sorted = chances + diff->nr_rows, greatest = -1;
	size_t nr = 0;

	if (!chances)
		return -ENOMEM;
	for (size_t i = 0; i < diff->nr_rows; i++) {
		const struct function_change *change = &diff->rows[i].changes[column];
		double factor = 1;

		if (!change->has_interval)
			continue;
		if (limit && limit->is_relative)
			factor += copysign(0.01, change->before->value) * limit->number;
		chances[i] = chance_of(change, factor,
				       limit && !limit->is_relative ? limit->number : 0,
				       limit ? limit->is_decrease : change->change < 0);
		sorted[nr++] = chances[i];
	}
	qsort(sorted, nr, sizeof(*sorted), compare_numbers);
	for (size_t i = 0; i < nr; i++) {
		if (sorted[i] <= level * (i + 1) / nr)
			greatest = sorted[i];
	}
	for (size_t i = 0; i < diff->nr_rows; i++)
		significant[i] = diff->rows[i].changes[column].has_interval &&
				 chances[i] <= greatest;
	free(chances);
	return 0;
}

typedef int (*compare_rows_t)(const struct function_row *a, const struct function_row *b);

static int compare_symbols(const struct function_row *a, const struct function_row *b)
{
	return strcmp(function_of(a)->symbol, function_of(b)->symbol);
}

static int diff_compare_names(const struct function_row *a, const struct function_row *b)
{
	return compare_symbols(a, b) ?:
	       strcmp(function_text__base_name(function_of(a)->dso),
		      function_text__base_name(function_of(b)->dso));
}

static int diff_compare_functions(const struct function_row *a, const struct function_row *b)
{
	const struct function_sums *x = function_of(a), *y = function_of(b);

	return diff_compare_names(a, b) ?: strcmp(x->dso, y->dso) ?:
	       (x->address < y->address ? -1 : x->address > y->address);
}

static int compare_pointers(const void *one, const void *other)
{
	return diff_compare_functions(*(const struct function_row *const *)one,
				      *(const struct function_row *const *)other);
}

/* Rows of one table that have no counterpart in the other table yet. */
struct side {
	const struct function_row **rows;
	size_t nr;
};

static int side__init(struct side *side, const struct function_columns *columns)
{
	side->rows = calloc(columns->nr_rows ?: 1, sizeof(*side->rows));
	side->nr = columns->nr_rows;
	if (!side->rows)
		return -ENOMEM;
	for (size_t i = 0; i < side->nr; i++)
		side->rows[i] = &columns->rows[i];
	qsort(side->rows, side->nr, sizeof(*side->rows), compare_pointers);
	return 0;
}

static size_t side__count_alike(const struct side *side, size_t from, compare_rows_t compare)
{
	size_t nr = 1;

	while (from + nr < side->nr && !compare(side->rows[from], side->rows[from + nr]))
		nr++;
	return nr;
}

static void side__close_gaps(struct side *side)
{
	size_t nr = 0;

	for (size_t i = 0; i < side->nr; i++) {
		if (side->rows[i])
			side->rows[nr++] = side->rows[i];
	}
	side->nr = nr;
}

static void add_row(struct function_diff *diff, const struct function_row *before,
		    const struct function_row *after)
{
	struct function_diff_row *row = &diff->rows[diff->nr_rows++];

	row->before = before;
	row->after = after;
}

/* Pairs equal rows in order, if both sides have the same number of them, and not too many. */
static void pair(struct function_diff *diff, struct side *before, struct side *after,
		 compare_rows_t compare, size_t most)
{
	size_t i = 0, j = 0;

	while (i < before->nr && j < after->nr) {
		int order = compare(before->rows[i], after->rows[j]);
		size_t nr = order <= 0 ? side__count_alike(before, i, compare) : 0;
		size_t nr_after = order >= 0 ? side__count_alike(after, j, compare) : 0;
		/* Rows without symbols can be compared by address only. */
		bool is_known = compare == diff_compare_functions ||
				*function_of(before->rows[i])->symbol;

		for (size_t k = 0; is_known && nr == nr_after && nr <= most && k < nr; k++) {
			add_row(diff, before->rows[i + k], after->rows[j + k]);
			before->rows[i + k] = NULL;
			after->rows[j + k] = NULL;
		}
		i += nr;
		j += nr_after;
	}
	side__close_gaps(before);
	side__close_gaps(after);
}

/*
 * Pairs the functions of both tables: identical ones first; then those with the same symbol and
 * short DSO name, because builds lie in different places, in the order of their addresses if there
 * are several; then those with the same symbol, if it is unique.
 */
static int diff_add_rows(struct function_diff *diff, const struct function_columns *before,
			 const struct function_columns *after)
{
	struct side old = {}, new = {};
	int err = -ENOMEM;

	diff->rows = calloc(before->nr_rows + after->nr_rows + 1, sizeof(*diff->rows));
	if (!diff->rows || side__init(&old, before) || side__init(&new, after))
		goto out;

	pair(diff, &old, &new, diff_compare_functions, 1);
	pair(diff, &old, &new, diff_compare_names, SIZE_MAX);
	pair(diff, &old, &new, compare_symbols, 1);
	for (size_t i = 0; i < old.nr; i++)
		add_row(diff, old.rows[i], NULL);
	for (size_t i = 0; i < new.nr; i++)
		add_row(diff, NULL, new.rows[i]);
	err = 0;
out:
	free(old.rows);
	free(new.rows);
	return err;
}

static int find_column(const struct function_columns *columns, const char *name)
{
	return function_columns__find(columns, name, strlen(name));
}

/* Adds the columns of the table after, then those that only the table before has. */
static int diff_add_columns(struct function_diff *diff, const struct function_columns *before,
			    const struct function_columns *after)
{
	struct function_columns *all = &diff->columns;

	all->columns = calloc(before->nr_columns + after->nr_columns + 1, sizeof(*all->columns));
	if (!all->columns)
		return -ENOMEM;
	for (unsigned int i = 0; i < after->nr_columns; i++)
		all->columns[all->nr_columns++] = after->columns[i];
	for (unsigned int i = 0; i < before->nr_columns; i++) {
		if (find_column(after, before->columns[i].name) < 0)
			all->columns[all->nr_columns++] = before->columns[i];
	}
	return 0;
}

enum { BEFORE, AFTER, NR_SIDES };

/* The differences of a function's metric between the runs of one side, relative to its value. */
struct spread {
	unsigned int nr;	/* runs that have a value */
	double squares;		/* of their deviations from their mean */
	double within;		/* the variance of one value due to its windows */
};

/* The data of a comparison, for one column at a time. */
struct comparison {
	struct function_diff *diff;
	const struct function_runs *sides[NR_SIDES];
	unsigned int nr_runs;			/* runs of both sides */
	double *windows;			/* by run: of all functions */
	int *places;				/* by run: of the column, -1 if it has none */
	const struct function_row **rows;	/* by row and run, NULL: it is not there */
	double *deviations;			/* by row and run */
	struct spread *spreads;			/* by row and side */
};

/* Windows that end in a function. */
static double windows_of(const struct function_row *row)
{
	double windows = 0;

	for (size_t i = 0; i < row->nr_sums; i++)
		windows += row->sums[i]->samples;
	return windows;
}

/* Windows from which the rates of a function come, or samples. */
static double windows_of_rates(const struct function_row *row, enum function_source source)
{
	const struct function_row part = function_row__part(row, source);
	double windows = 0;

	for (size_t i = 0; i < part.nr_sums; i++)
		windows += function_row__read(&part, part.sums[i]).windows;
	return windows;
}

static void comparison__exit(struct comparison *comparison)
{
	free(comparison->windows);
	free(comparison->places);
	free(comparison->rows);
	free(comparison->deviations);
	free(comparison->spreads);
}

/* Finds the functions of a side's table in one of its runs. */
static int comparison__add_run(struct comparison *comparison, unsigned int side,
			       const struct function_columns *columns, unsigned int run)
{
	const struct function_diff *diff = comparison->diff;
	/* With callers a window is in several rows, and one row has all windows. */
	bool has_callers = function_by__is(comparison->sides[side]->table.by,
					  FUNCTION_BY_CHILDREN);
	struct side all = {};

	if (side__init(&all, columns))
		return -ENOMEM;
	for (size_t i = 0; i < all.nr; i++) {
		if (!has_callers || function_sums__is_root(function_of(all.rows[i]), FUNCTION_ALL))
			comparison->windows[run] += windows_of(all.rows[i]);
	}
	for (size_t r = 0; r < diff->nr_rows; r++) {
		const struct function_row *row = side == BEFORE ? diff->rows[r].before :
								  diff->rows[r].after;
		const struct function_row **found = !row ? NULL :
			bsearch(&row, all.rows, all.nr, sizeof(*all.rows), compare_pointers);

		comparison->rows[comparison->nr_runs * r + run] = found ? *found : NULL;
	}
	free(all.rows);
	return 0;
}

static int comparison__init(struct comparison *comparison, struct function_diff *diff,
			    const struct function_runs *before, const struct function_runs *after)
{
	size_t nr_runs = before->nr + after->nr, nr = diff->nr_rows * nr_runs + 1;
	unsigned int run = 0;

	*comparison = (struct comparison){
		.diff		= diff,
		.sides		= { before, after },
		.nr_runs	= nr_runs,
		.windows	= calloc(nr_runs, sizeof(*comparison->windows)),
		.places		= calloc(nr_runs, sizeof(*comparison->places)),
		.rows		= calloc(nr, sizeof(*comparison->rows)),
		.deviations	= calloc(nr, sizeof(*comparison->deviations)),
		.spreads	= calloc(NR_SIDES * diff->nr_rows + 1,
					 sizeof(*comparison->spreads)),
	};
	if (!comparison->windows || !comparison->places || !comparison->rows ||
	    !comparison->deviations || !comparison->spreads)
		return -ENOMEM;
	for (unsigned int side = 0; side < NR_SIDES; side++) {
		for (unsigned int i = 0; i < comparison->sides[side]->nr; i++) {
			if (comparison__add_run(comparison, side,
						&comparison->sides[side]->columns[i], run++))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Returns true for a percentage of the windows that end in a function. */
static bool is_part_of_windows(const struct function_column *column)
{
	return column->per && !strcmp(column->per, FUNCTION_SAMPLES);
}

/*
 * Returns the change of a value per relative change of the metric: a share near 1 can change only
 * as much as the rest.
 */
static double diff_unit_of(const struct function_column *column, const struct function_value *value)
{
	bool is_part = function_column__is_share(column) || is_part_of_windows(column);

	return fabs(value->value * (is_part ? 1 - value->value / column->scale : 1));
}

/*
 * Finds the spread of a function over the runs of a side. Returns the variance of the value of all
 * windows together if the variance between runs were 1.
 */
static double spread__init(struct spread *spread, const struct comparison *comparison,
			   unsigned int side, size_t row, const struct function_column *column,
			   const struct function_value *all)
{
	const struct function_runs *runs = comparison->sides[side];
	unsigned int first = side == BEFORE ? 0 : comparison->sides[BEFORE]->nr;
	bool is_share = function_column__is_share(column);
	double *deviations = &comparison->deviations[comparison->nr_runs * row + first];
	double unit, mean = 0, sum = 0, squares = 0, inverses = 0;

	memset(spread, 0, sizeof(*spread));
	memset(deviations, 0, runs->nr * sizeof(*deviations));
	if (!all || !all->is_defined || !all->has_error)
		return 0;
	unit = diff_unit_of(column, all);
	if (!unit)
		return 0;

	for (unsigned int i = 0; i < runs->nr; i++) {
		const struct function_row *in_run =
			comparison->rows[comparison->nr_runs * row + first + i];
		int place = comparison->places[first + i];
		double windows;

		deviations[i] = NAN;
		if (place < 0 || (!in_run && !is_share) ||
		    (in_run && !in_run->values[place].is_defined))
			continue;
		windows = is_share ? comparison->windows[first + i] :
			  is_part_of_windows(column) ? windows_of(in_run) :
			  windows_of_rates(in_run, runs->columns[i].columns[place].source);
		deviations[i] = in_run ? in_run->values[place].value / unit : 0;
		mean += deviations[i];
		sum += windows;
		squares += windows * windows;
		inverses += 1 / windows;
		spread->nr++;
	}
	/* The two groups of a linked ratio may be in different runs. */
	if (!spread->nr) {
		memset(deviations, 0, runs->nr * sizeof(*deviations));
		return 0;
	}
	for (unsigned int i = 0; i < runs->nr; i++) {
		deviations[i] = isnan(deviations[i]) ? 0 : deviations[i] - mean / spread->nr;
		spread->squares += deviations[i] * deviations[i];
	}
	spread->within = pow(all->error / unit, 2) * sum * inverses / spread->nr;
	/* The numbers of a crafted file may be infinite. */
	if (!isfinite(spread->squares) || !isfinite(spread->within)) {
		memset(spread, 0, sizeof(*spread));
		memset(deviations, 0, runs->nr * sizeof(*deviations));
	}
	return unit * unit * squares / (sum * sum);
}

/* Returns the weight of a spread in the estimate of the variance between runs. */
static double weight_of(const struct spread *spread, double between)
{
	return spread->nr < 2 ? 0 : 1 / (spread->within + fmax(between, LEAST_RUN_VARIANCE));
}

/* Estimates the variance between runs; 0 if no function has values of several. */
static double estimate_variance(const struct spread *spreads, size_t nr)
{
	double between = 0;

	/* Iterate, because the weights depend on the result. */
	for (int step = 0; step < 10; step++) {
		double sum = 0, weights = 0;

		for (size_t i = 0; i < nr; i++) {
			const struct spread *spread = &spreads[i];
			double weight = pow(weight_of(spread, between), 2);

			if (!weight)
				continue;
			sum += weight * (spread->squares - (spread->nr - 1) * spread->within);
			weights += weight * (spread->nr - 1);
		}
		if (!weights)
			break;
		between = fmax(sum / weights, 0);
	}
	return between;
}

/* Returns the variance between runs of one function, 0 if unknown. */
static double own_variance(const struct spread spreads[NR_SIDES])
{
	double sum = 0;
	unsigned int nr = 0;

	for (unsigned int i = 0; i < NR_SIDES; i++) {
		if (spreads[i].nr < 2)
			continue;
		sum += spreads[i].squares - (spreads[i].nr - 1) * spreads[i].within;
		nr += spreads[i].nr - 1;
	}
	return nr ? sum / nr : 0;
}

/* Adds up products of the weighted deviations of each two runs, over functions. */
static void add_products(const struct comparison *comparison, double between, double *products)
{
	unsigned int nr = comparison->nr_runs, nr_before = comparison->sides[BEFORE]->nr;

	for (size_t r = 0; r < comparison->diff->nr_rows; r++) {
		const double *deviations = &comparison->deviations[nr * r];
		const struct spread *spreads = &comparison->spreads[NR_SIDES * r];
		const double weights[] = {
			weight_of(&spreads[BEFORE], between), weight_of(&spreads[AFTER], between)
		};

		for (unsigned int i = 0; i < nr; i++) {
			double one = weights[i >= nr_before] * deviations[i];

			for (unsigned int j = 0; one && j < nr; j++)
				products[nr * i + j] += one * weights[j >= nr_before] *
							deviations[j];
		}
	}
}

/*
 * Estimates the variance of the variance between runs. It is at least that of independent
 * functions, and larger if functions differ together.
 */
static int estimate_uncertainty(const struct comparison *comparison,
				struct function_run_variance *variance)
{
	unsigned int nr = comparison->nr_runs, freedom = 0;
	double *products = calloc(nr * nr, sizeof(*products));
	double weights = 0, least = 0, trace = 0, squares = 0, alike = 1;

	if (!products)
		return -ENOMEM;
	for (size_t i = 0; i < NR_SIDES * comparison->diff->nr_rows; i++) {
		const struct spread *spread = &comparison->spreads[i];
		double weight = weight_of(spread, variance->value);

		if (!weight)
			continue;
		weights += weight * weight * (spread->nr - 1);
		least += 2 * pow(weight, 4) * (spread->nr - 1) *
			 pow(spread->within + variance->value, 2);
	}
	add_products(comparison, variance->value, products);
	for (unsigned int i = 0; i < nr; i++)
		trace += products[nr * i + i];
	for (unsigned int i = 0; i < nr * nr; i++)
		squares += products[i] * products[i];
	free(products);

	for (unsigned int side = 0; side < NR_SIDES; side++)
		freedom += comparison->sides[side]->nr - 1;
	/* The inverse of the number of independent functions; two runs do not give it. */
	if (trace && freedom > 1) {
		double ratio = squares / (trace * trace);

		alike = (freedom * ratio - 1) / (freedom + 1 - 2 * ratio);
	}
	if (weights)
		variance->variance = fmax(2 * trace * trace * alike / freedom, least) /
				     (weights * weights);
	return 0;
}

/* Sets the value for functions that a side lacks: a share of 0 with an interval. */
static void set_absent(struct function_value *absent, const struct function_columns *all,
		       const struct function_column *column, int place)
{
	double windows = 0;

	if (!function_column__is_share(column) || place < 0)
		return;
	for (size_t i = 0; i < all->nr_rows; i++)
		windows = fmax(windows, all->rows[i].values[place].windows);
	if (!windows)
		return;
	absent->is_defined = true;
	function_value__share_interval(absent, column->scale, windows);
}

static const struct function_value *diff_value_of(const struct function_row *row, int column,
						  const struct function_value *absent)
{
	if (row)
		return column < 0 ? NULL : &row->values[column];
	return absent->is_defined ? absent : NULL;
}

/* A run whose values come from another source than those of its side says nothing about them. */
static void find_places(struct comparison *comparison, const char *column,
			const enum function_source sources[NR_SIDES])
{
	int *place = comparison->places;

	for (unsigned int side = 0; side < NR_SIDES; side++) {
		for (unsigned int i = 0; i < comparison->sides[side]->nr; i++, place++) {
			const struct function_columns *run = &comparison->sides[side]->columns[i];

			*place = find_column(run, column);
			if (*place >= 0 && run->columns[*place].source != sources[side])
				*place = -1;
		}
	}
}

/* Returns true if an event of a column means the same on both sides. */
static bool is_comparable(const struct function_diff *diff, const struct function_column *column)
{
	return !diff->has_other_vendor ||
	       (column->event && fn_event__is_portable(column->event) &&
		(!column->per || fn_event__is_portable(column->per)));
}

static int compare_column(struct comparison *comparison, unsigned int number)
{
	struct function_diff *diff = comparison->diff;
	const struct function_column *column = &diff->columns.columns[number];
	struct function_run_variance *variance = &diff->variances[number];
	const struct function_columns *old = &comparison->sides[BEFORE]->all;
	const struct function_columns *new = &comparison->sides[AFTER]->all;
	struct function_value *absent = &diff->absent[NR_SIDES * number];
	int old_column = find_column(old, column->name);
	int new_column = find_column(new, column->name);
	const enum function_source sources[] = {
		old_column < 0 ? column->source : old->columns[old_column].source,
		new_column < 0 ? column->source : new->columns[new_column].source,
	};

	set_absent(&absent[BEFORE], old, column, old_column);
	set_absent(&absent[AFTER], new, column, new_column);
	find_places(comparison, column->name, sources);
	for (size_t r = 0; r < diff->nr_rows; r++) {
		struct function_diff_row *row = &diff->rows[r];
		struct function_change *change = &row->changes[number];
		struct spread *spreads = &comparison->spreads[NR_SIDES * r];

		change->runs = variance;
		change->before = diff_value_of(row->before, old_column, &absent[BEFORE]);
		change->after = diff_value_of(row->after, new_column, &absent[AFTER]);
		change->is_weak = (change->before && change->before->is_weak) ||
				  (change->after && change->after->is_weak);
		change->unit_before = spread__init(&spreads[BEFORE], comparison, BEFORE, r, column,
						   change->before);
		change->unit_after = spread__init(&spreads[AFTER], comparison, AFTER, r, column,
						  change->after);
	}
	/* The errors of two sources differ by more than their intervals. */
	variance->is_known = sources[BEFORE] == sources[AFTER];
	if (variance->is_known && diff->has_several_runs) {
		variance->value = estimate_variance(comparison->spreads, NR_SIDES * diff->nr_rows);
		if (estimate_uncertainty(comparison, variance))
			return -ENOMEM;
		variance->is_known = isfinite(variance->value) && isfinite(variance->variance);
	}
	for (size_t r = 0; is_comparable(diff, column) && r < diff->nr_rows; r++) {
		struct function_change *change = &diff->rows[r].changes[number];

		change->between = fmax(variance->value,
				       own_variance(&comparison->spreads[NR_SIDES * r]));
		set_change(change);
	}
	return 0;
}

/* Compares column by column, and marks significant changes. */
static int compare_columns(struct function_diff *diff, const struct function_runs *before,
			   const struct function_runs *after)
{
	bool *is_significant = calloc(diff->nr_rows ?: 1, sizeof(*is_significant));
	struct comparison comparison;
	int err;

	err = comparison__init(&comparison, diff, before, after);
	if (!is_significant)
		err = -ENOMEM;
	for (unsigned int i = 0; !err && i < diff->columns.nr_columns; i++) {
		err = compare_column(&comparison, i) ?:
		      find_significant(diff, i, NULL, FALSE_DISCOVERIES, is_significant);
		for (size_t r = 0; !err && r < diff->nr_rows; r++) {
			is_significant[r] &= diff->has_several_runs || diff->is_single;
			diff->rows[r].changes[i].is_significant = is_significant[r];
			diff->rows[r].is_significant |= is_significant[r];
		}
	}
	comparison__exit(&comparison);
	free(is_significant);
	return err;
}

/* Returns true if both sides are known to have counted on CPUs of one vendor, but not the same. */
static bool differ_in_vendor(const struct function_runs *before, const struct function_runs *after)
{
	const enum fn_vendor old = function_table__vendor(&before->table);
	const enum fn_vendor new = function_table__vendor(&after->table);

	return old != FN_VENDOR_UNKNOWN && new != FN_VENDOR_UNKNOWN && old != new;
}

/**
 * function_diff__init - compare the runs of two sides
 * @diff: set to what has changed
 * @before: runs of one side, to be kept as long as @diff
 * @after: those of the other
 * @is_single: changes may be significant although each side has one run
 *
 * Return: 0, or -ENOMEM.
 */
int function_diff__init(struct function_diff *diff, const struct function_runs *before,
			const struct function_runs *after, bool is_single)
{
	unsigned int nr;

	memset(diff, 0, sizeof(*diff));
	if (diff_add_columns(diff, &before->all, &after->all) ||
	    diff_add_rows(diff, &before->all, &after->all))
		return -ENOMEM;
	nr = diff->columns.nr_columns;
	diff->has_several_runs = before->nr + after->nr > NR_SIDES;
	diff->is_single = is_single;
	diff->has_other_vendor = differ_in_vendor(before, after);
	diff->changes = calloc(nr * diff->nr_rows + 1, sizeof(*diff->changes));
	diff->variances = calloc(nr + 1, sizeof(*diff->variances));
	diff->absent = calloc(NR_SIDES * nr + 1, sizeof(*diff->absent));
	if (!diff->changes || !diff->variances || !diff->absent)
		return -ENOMEM;
	for (size_t r = 0; r < diff->nr_rows; r++)
		diff->rows[r].changes = &diff->changes[nr * r];
	return compare_columns(diff, before, after);
}

/**
 * function_diff__exit - free what a comparison holds
 * @diff: the comparison
 */
void function_diff__exit(struct function_diff *diff)
{
	free(diff->columns.columns);
	free(diff->rows);
	free(diff->changes);
	free(diff->variances);
	free(diff->absent);
}

static int diff_drop_addresses(struct function_runs *runs, const struct function_table *other)
{
	int err = function_table__drop_addresses(&runs->table, other);

	for (unsigned int i = 0; i < runs->nr && !err; i++)
		err = function_table__drop_addresses(&runs->tables[i], other);
	return err;
}

/**
 * function_runs__unify_names - let functions of one name share a row on both sides
 * @before: runs of one side
 * @after: those of the other
 *
 * Where a run has only one of several functions of a name, its row has no address.
 * Then no row of this name can have one.
 *
 * Return: 0, or -ERANGE if sums are too large to be added.
 */
int function_runs__unify_names(struct function_runs *before, struct function_runs *after)
{
	/* The sums of a side have an address only if all of its runs do. */
	return diff_drop_addresses(before, &after->table) ?: diff_drop_addresses(after,
										 &before->table) ?:
	       diff_drop_addresses(before, &before->table) ?: diff_drop_addresses(after,
										  &after->table);
}

static void mark_left(struct function_runs *runs, const struct function_row *row)
{
	if (!row)
		return;
	function_table__mark_left(&runs->table, row->sums[0]);
	for (unsigned int i = 0; i < runs->nr; i++)
		function_table__mark_left(&runs->tables[i], row->sums[0]);
}

/**
 * function_runs__choose_windows - choose the windows for the rates of each function
 * @before: runs of one side, to be marked before their columns are made
 * @after: those of the other
 *
 * Rates from the matched windows and from all windows that begin in a function
 * differ, so all runs need the same ones. If many windows leave the function on
 * one side, the rates come from all windows that begin in it.
 *
 * Return: 0, or -ENOMEM.
 */
int function_runs__choose_windows(struct function_runs *before, struct function_runs *after)
{
	struct function_columns old, new = {};
	struct function_diff diff = {};
	int err;

	err = function_columns__init_rows(&old, &before->table) ?:
	      function_columns__init_rows(&new, &after->table) ?: diff_add_rows(&diff, &old, &new);
	for (size_t r = 0; !err && r < diff.nr_rows; r++) {
		const struct function_diff_row *row = &diff.rows[r];

		if ((row->before && row->before->is_left) || (row->after && row->after->is_left)) {
			mark_left(before, row->before);
			mark_left(after, row->after);
		}
	}
	function_diff__exit(&diff);
	function_columns__exit(&new);
	function_columns__exit(&old);
	return err;
}

/**
 * function_runs__exit - free the runs of a side
 * @runs: the runs
 */
void function_runs__exit(struct function_runs *runs)
{
	function_columns__exit(&runs->all);
	function_table__exit(&runs->table);
	for (unsigned int i = 0; i < runs->nr; i++) {
		function_columns__exit(&runs->columns[i]);
		function_table__exit(&runs->tables[i]);
	}
	free(runs->columns);
	free(runs->tables);
}

/* Returns the rank in the order: significant changes, others, appeared, vanished functions. */
static int rank_of(const struct function_diff_row *row)
{
	return row->is_significant ? 0 : !row->before ? 2 : !row->after ? 3 : 1;
}

static double size_of(const struct function_diff_row *row, int column)
{
	const struct function_change *change = &row->changes[column];
	const struct function_value *only = row->after ? change->after : change->before;

	if (change->is_defined)
		return fabs(change->change);
	return row->before && row->after ? -1 : only && only->is_defined ? only->value : -1;
}

static int compare_diff_rows(const void *one, const void *other, void *arg)
{
	const struct function_diff_row *a = one, *b = other;
	const int column = *(const int *)arg;
	double x = 0, y = 0;

	if (rank_of(a) != rank_of(b))
		return rank_of(a) - rank_of(b);
	if (column >= 0) {
		x = size_of(a, column);
		y = size_of(b, column);
	}
	if (x != y)
		return x > y ? -1 : 1;
	return diff_compare_functions(a->after ?: a->before, b->after ?: b->before);
}

/**
 * function_diff__sort - sort the rows
 * @diff: the comparison
 * @column: sort by its change, largest first, or -1: by name
 *
 * Functions with significant changes come first, then the others, then those of
 * one side only.
 */
void function_diff__sort(struct function_diff *diff, int column)
{
	qsort_r(diff->rows, diff->nr_rows, sizeof(*diff->rows), compare_diff_rows, &column);
}

static bool is_small(const struct function_diff_row *row)
{
	return (!row->before || row->before->is_small) && (!row->after || row->after->is_small);
}

/**
 * function_diff__move_small - move rows behind all others that are small on both sides
 * @diff: the comparison, whose order is kept otherwise
 *
 * Return: the number of the others, or -ENOMEM.
 */
int function_diff__move_small(struct function_diff *diff)
{
	struct function_diff_row *small = calloc(diff->nr_rows ?: 1, sizeof(*small));
	size_t nr = 0, nr_small = 0;

	if (!small)
		return -ENOMEM;
	for (size_t i = 0; i < diff->nr_rows; i++) {
		if (is_small(&diff->rows[i]))
			small[nr_small++] = diff->rows[i];
		else
			diff->rows[nr++] = diff->rows[i];
	}
	memcpy(diff->rows + nr, small, nr_small * sizeof(*small));
	free(small);
	return nr;
}

/**
 * function_diff_row__status - say in which tables a function is
 * @row: the function
 *
 * Return: "appeared", "vanished" or "both".
 */
const char *function_diff_row__status(const struct function_diff_row *row)
{
	return !row->before ? "appeared" : !row->after ? "vanished" : "both";
}

/**
 * function_diff_row__sums - find the name of a function
 * @row: the function
 *
 * Return: its sums after, or before if it vanished, which have its name.
 */
const struct function_sums *function_diff_row__sums(const struct function_diff_row *row)
{
	return (row->after ?: row->before)->sums[0];
}

/**
 * function_limit__parse - read a limit as in CPI>5%, CPI>0.1 or IPC<-5%
 * @limit: the result; its column is to be freed
 * @str: the text
 *
 * Return: the rest of the text behind the limit, NULL if it is none.
 */
const char *function_limit__parse(struct function_limit *limit, const char *str)
{
	size_t length;
	char *end;

	str = skip_spaces(str);
	length = strcspn(str, "<>");
	if (!length || !str[length])
		return NULL;
	limit->is_decrease = str[length] == '<';
	limit->number = strtod(str + length + 1, &end);
	if (end == str + length + 1 || !isfinite(limit->number) ||
	    (limit->is_decrease ? limit->number > 0 : limit->number < 0))
		return NULL;
	end = skip_spaces(end);
	limit->is_relative = *end == '%';
	end = skip_spaces(end + limit->is_relative);
	if (*end && *end != ',')
		return NULL;

	while (isspace(str[length - 1]))
		length--;
	limit->column = strndup(str, length);
	return limit->column ? end + (*end == ',') : NULL;
}

/**
 * function_diff__find_exceeded - find the changes beyond a limit
 * @diff: the comparison
 * @column: the limit's column
 * @limit: the limit
 * @nr_limits: how many there are, all of which chance alone exceeds in 5 % of comparisons
 * @is_exceeded: set by row: whether the change's interval is beyond the limit
 *
 * Return: 0, or -ENOMEM.
 */
int function_diff__find_exceeded(const struct function_diff *diff, unsigned int column,
				 const struct function_limit *limit, unsigned int nr_limits,
				 bool *is_exceeded)
{
	return find_significant(diff, column, limit, FALSE_DISCOVERIES / nr_limits, is_exceeded);
}
