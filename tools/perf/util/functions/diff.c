// SPDX-License-Identifier: GPL-2.0
/*
 * What has changed between two tables of functions, and whether it is more than
 * chance.
 *
 * The interval of a change is made of those of both values, which may be longer
 * on one side: the squares of their sides that face each other add up (MOVER:
 * Zou and Donner, Construction of confidence limits about effect measures,
 * Statistics in Medicine 27, 2008), with the degrees of freedom of Welch and
 * Satterthwaite.
 *
 * Where thousands of functions are compared, chance alone makes 5 % of the
 * intervals miss 0. So a change is called significant only if it is among those
 * of its column of which 5 % are expected to be false (Benjamini and Hochberg,
 * Controlling the false discovery rate, J. R. Statist. Soc. B 57, 1995).
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "columns.h"
#include "diff.h"
#include "interval.h"
#include "sums.h"

#define FALSE_DISCOVERIES	0.05

static const struct function_sums *function_of(const struct function_row *row)
{
	return row->sums[0];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Variance of a value, as one side of its interval shows it. */
static double variance(const struct function_value *value, bool above)
{
	double side = above ? value->high - value->value : value->value - value->low;

	return pow(side / student_t__quantile(value->freedom), 2);
}

/* Degrees of freedom of a sum of variances, 0 if there is no limit. */
static double freedom_of(double one, double freedom_one, double other, double freedom_other)
{
	double per = (freedom_one > 0 ? one * one / freedom_one : 0) +
		     (freedom_other > 0 ? other * other / freedom_other : 0);

	return per > 0 ? (one + other) * (one + other) / per : 0;
}

/* How far an interval of change reaches on one side, where @up is that of more. */
static double reach(struct function_change *change, bool up)
{
	double after = variance(change->after, up), before = variance(change->before, !up);
	double error = sqrt(after + before);
	double freedom = freedom_of(after, change->after->freedom, before,
				    change->before->freedom);
	bool is_less = change->change < 0;

	/* The side towards 0 tells whether there is a change at all. */
	if (change->change && is_less == up)
		change->chance = error ? student_t__tail(change->change / error, freedom) : 0;
	return student_t__quantile(freedom) * error;
}

static void set_change(struct function_change *change)
{
	const struct function_value *before = change->before, *after = change->after;

	change->chance = 1;
	if (!before || !after || !before->is_defined || !after->is_defined)
		return;
	change->change = after->value - before->value;
	change->is_defined = isfinite(change->change);
	if (!before->has_interval || !after->has_interval)
		return;
	change->low = change->change - reach(change, false);
	change->high = change->change + reach(change, true);
	/* Not of numbers that no recording has. */
	change->has_interval = isfinite(change->low) && isfinite(change->high);
}

static int compare_numbers(const void *one, const void *other)
{
	const double *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

/* Tell the changes of a column that are more than chance. */
static int find_significant(struct function_diff *diff, unsigned int column)
{
	double *chances = calloc(diff->nr_rows ?: 1, sizeof(*chances)), limit = -1;
	size_t nr = 0;

	if (!chances)
		return -ENOMEM;
	for (size_t i = 0; i < diff->nr_rows; i++) {
		if (diff->rows[i].changes[column].has_interval)
			chances[nr++] = diff->rows[i].changes[column].chance;
	}
	qsort(chances, nr, sizeof(*chances), compare_numbers);
	for (size_t i = 0; i < nr; i++) {
		if (chances[i] <= FALSE_DISCOVERIES * (i + 1) / nr)
			limit = chances[i];
	}
	free(chances);

	for (size_t i = 0; i < diff->nr_rows; i++) {
		struct function_change *change = &diff->rows[i].changes[column];

		change->is_significant = change->has_interval && change->chance <= limit;
		diff->rows[i].is_significant |= change->is_significant;
	}
	return 0;
}

typedef int (*compare_rows_t)(const struct function_row *a, const struct function_row *b);

static int compare_symbols(const struct function_row *a, const struct function_row *b)
{
	return strcmp(function_of(a)->symbol, function_of(b)->symbol);
}

static int compare_names(const struct function_row *a, const struct function_row *b)
{
	return compare_symbols(a, b) ?: strcmp(base_name(function_of(a)->dso),
					       base_name(function_of(b)->dso));
}

static int compare_functions(const struct function_row *a, const struct function_row *b)
{
	const struct function_sums *x = function_of(a), *y = function_of(b);

	return compare_names(a, b) ?: strcmp(x->dso, y->dso) ?:
	       (x->address < y->address ? -1 : x->address > y->address);
}

static int compare_pointers(const void *one, const void *other)
{
	return compare_functions(*(const struct function_row *const *)one,
				 *(const struct function_row *const *)other);
}

/* Rows of one table that have no counterpart in the other one yet. */
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

/* Pair what is alike, in order, if there are as many on either side, and not too many. */
static void pair(struct function_diff *diff, struct side *before, struct side *after,
		 compare_rows_t compare, size_t most)
{
	size_t i = 0, j = 0;

	while (i < before->nr && j < after->nr) {
		int order = compare(before->rows[i], after->rows[j]);
		size_t nr = order <= 0 ? side__count_alike(before, i, compare) : 0;
		size_t nr_after = order >= 0 ? side__count_alike(after, j, compare) : 0;
		/* Without symbols there is nothing but the address. */
		bool is_known = compare == compare_functions ||
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
 * The functions of both: the same ones; those with symbol and short name of the
 * DSO in common, as builds are in other places, in the order of their addresses
 * if there are several; those with the symbol in common, if no other has it.
 */
static int add_rows(struct function_diff *diff, const struct function_columns *before,
		    const struct function_columns *after)
{
	struct side old = {}, new = {};
	int err = -ENOMEM;

	diff->rows = calloc(before->nr_rows + after->nr_rows + 1, sizeof(*diff->rows));
	if (!diff->rows || side__init(&old, before) || side__init(&new, after))
		goto out;

	pair(diff, &old, &new, compare_functions, 1);
	pair(diff, &old, &new, compare_names, SIZE_MAX);
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

/* The columns of the table after, then those that only the one before has. */
static int add_columns(struct function_diff *diff, const struct function_columns *before,
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

/**
 * function_diff__init - compare two tables
 * @diff: set to what has changed
 * @before: columns of one table, to be kept as long as @diff
 * @after: those of the other
 *
 * Return: 0, or -ENOMEM.
 */
int function_diff__init(struct function_diff *diff, const struct function_columns *before,
			const struct function_columns *after)
{
	unsigned int nr;

	memset(diff, 0, sizeof(*diff));
	if (add_columns(diff, before, after) || add_rows(diff, before, after))
		return -ENOMEM;
	nr = diff->columns.nr_columns;
	diff->changes = calloc(nr * diff->nr_rows + 1, sizeof(*diff->changes));
	if (!diff->changes)
		return -ENOMEM;

	for (size_t r = 0; r < diff->nr_rows; r++)
		diff->rows[r].changes = &diff->changes[nr * r];
	for (unsigned int i = 0; i < nr; i++) {
		int old = find_column(before, diff->columns.columns[i].name);
		int new = find_column(after, diff->columns.columns[i].name);

		for (size_t r = 0; r < diff->nr_rows; r++) {
			struct function_diff_row *row = &diff->rows[r];
			struct function_change *change = &row->changes[i];

			change->before = row->before && old >= 0 ? &row->before->values[old] : NULL;
			change->after = row->after && new >= 0 ? &row->after->values[new] : NULL;
			set_change(change);
		}
		if (find_significant(diff, i))
			return -ENOMEM;
	}
	return 0;
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
}

/* What comes first: significant changes, others, functions that appeared, and vanished. */
static int rank_of(const struct function_diff_row *row)
{
	return !row->before ? 2 : !row->after ? 3 : !row->is_significant;
}

static double size_of(const struct function_diff_row *row, int column)
{
	const struct function_change *change = &row->changes[column];
	const struct function_value *value = change->before ?: change->after;

	if (row->before && row->after)
		return change->is_defined ? fabs(change->change) : -1;
	return value && value->is_defined ? value->value : -1;
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
	return compare_functions(a->after ?: a->before, b->after ?: b->before);
}

/**
 * function_diff__sort - sort the rows
 * @diff: the comparison
 * @column: by the change of which one, largest first, or -1: by name
 *
 * Functions with significant changes come first, then the others, then those
 * that appeared or vanished.
 */
void function_diff__sort(struct function_diff *diff, int column)
{
	qsort_r(diff->rows, diff->nr_rows, sizeof(*diff->rows), compare_diff_rows, &column);
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
 * @limit: set to it; its column is to be freed
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
 * function_limit__is_exceeded - say whether a change is significant and too much
 * @limit: the limit
 * @change: a change of its column
 *
 * Return: true if so.
 */
bool function_limit__is_exceeded(const struct function_limit *limit,
				 const struct function_change *change)
{
	double number = change->change;

	if (!change->is_significant)
		return false;
	/* From 0 it is infinite. */
	if (limit->is_relative)
		number *= 100 / fabs(change->before->value);
	return limit->is_decrease ? number < limit->number : number > limit->number;
}
