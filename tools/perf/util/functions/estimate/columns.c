// SPDX-License-Identifier: GPL-2.0
/* Makes the columns of a table of functions from their sums. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#include "../../strlist.h"
#include "../text.h"
#include "../events.h"
#include "../collect/sums.h"
#include "../collect/u192.h"
#include "columns.h"
#include "effect.h"
#include "interval.h"

/* function_column.scale of a part of something, which cannot be more than 100. */
#define PERCENT		100
/* Values from fewer windows are weak. */
#define FEW_WINDOWS	20
/*
 * The least part of a function's windows that must also end in it. With fewer, the matched windows
 * represent its long runs better than its short ones.
 */
#define STAYS		0.9
/* The first and the last window of a program may have one end elsewhere. */
#define FEW_LEAVE	3

/* With more returns per window than this, the counts of callees are in the caller's windows. */
#define MOST_RETURNS	0.01

/* If a larger part of a function's time is just before it is left, all its events may be there. */
#define MOST_LOST	0.25

/* The part of a rate by which branch records miss it where there are many, see results/. */
#define PATH_ERROR	0.05

/* More than all metrics of a CPU need; a crafted sums file has more. */
#define MOST_COLUMNS	500

/* columns_place_of() returns these for a name that is no event of the set. */
enum {
	PLACE_NONE = -1,	/* event_set__find() returns it, too */
	PLACE_SAMPLES = -2,
	PLACE_MATCHED = -3,
	PLACE_DISCARDED = -4,
};

static const struct function_column known_columns[] = {
#define FUNCTION_METRIC(...) { __VA_ARGS__, FUNCTION_SOURCE_WINDOWS, NULL, false },
#include "metrics.h"
#undef FUNCTION_METRIC
};

/*
 * The kernel's cache-references and cache-misses are those of another cache on the CPUs of each
 * vendor: titles and meanings of their shares, and of the rate and the ratio.
 */
static const struct {
	const char *share_title, *share, *rate;
} cache_columns[][2] = {
	[FN_VENDOR_ARM] = {
		{ "%L1DA", "share of the L1D accesses" },
		{ "%L1DM", "share of the L1D misses", "L1D misses per 1000 instructions" },
	},
	[FN_VENDOR_INTEL] = {
		{ "%LLA", "share of the accesses to the last-level cache" },
		{ "%LLM", "share of the last-level cache misses",
		  "last-level cache misses per 1000 instructions" },
	},
	[FN_VENDOR_AMD] = {
		{ "%L2A", "share of the L2 accesses" },
		{ "%L2M", "share of the L2 misses", "L2 misses per 1000 instructions" },
	},
};

/**
 * function_row__part - find the sums of a row from one source
 * @row: the row
 * @source: the source
 *
 * Return: the row with these sums only, which may be none.
 */
struct function_row function_row__part(const struct function_row *row, enum function_source source)
{
	struct function_row part = *row;

	/* Windows come first. */
	while (part.nr_sums && part.sums[0]->set->source != source) {
		part.sums++;
		part.nr_sums--;
	}
	while (part.nr_sums && part.sums[part.nr_sums - 1]->set->source != source)
		part.nr_sums--;
	return part;
}

/*
 * Two events in the windows of one function or of all: the number of windows, of matched windows,
 * and of independent ones among these.
 */
struct pair_sums {
	double samples, matched, number;
	/* Of branch records: the weights of their samples, and the squares of these. */
	double weight, squares;
	struct u192 y, x, yy, xy, xx;
	/* The part of y and x that interrupts have added, and its variance. */
	double added_y, added_x, unsure_y, unsure_x;
};

/* Returns the PLACE of a number of windows. */
static int place_of_windows(const char *name)
{
	if (equal_names(name, FUNCTION_SAMPLES))
		return PLACE_SAMPLES;
	if (equal_names(name, FUNCTION_MATCHED))
		return PLACE_MATCHED;
	return equal_names(name, FUNCTION_DISCARDED) ? PLACE_DISCARDED : PLACE_NONE;
}

static bool is_windows(const char *name)
{
	return place_of_windows(name) != PLACE_NONE;
}

/* Returns the place of an event in a set, or a PLACE. */
static int columns_place_of(const struct event_set *set, const char *name)
{
	int place = place_of_windows(name);

	return place == PLACE_NONE ? event_set__find(set, name) : place;
}

static bool columns_set_has(const struct event_set *set, const char *name)
{
	return columns_place_of(set, name) != PLACE_NONE;
}

static bool is_auto(const struct function_sums *sums)
{
	return event_set__has_share(sums->set, FUNCTION_SHARE_AUTO);
}

static bool is_of_branches(const struct function_sums *sums)
{
	return sums->set->source == FUNCTION_SOURCE_BRANCHES;
}

/* The path of a sample has the weight of the sample. */
static struct function_reading read_matched(const struct function_sums *sums)
{
	return (struct function_reading){
		.windows = sums->matched,
		.bursts = sums->bursts,
		.values = sums->values +
			  (is_of_branches(sums) ? event_set__nr_values(sums->set) : 0),
	};
}

static struct function_reading read_begun(const struct function_sums *sums)
{
	if (!is_auto(sums))	/* Only share mode auto counts these windows. */
		return read_matched(sums);
	return (struct function_reading){
		.windows = sums->begun,
		.bursts = sums->begun_bursts,
		.values = sums->values + event_set__nr_values(sums->set),
	};
}

/**
 * function_row__read - find the windows for the rates of a row
 * @row: the row
 * @sums: sums of it
 *
 * Return: its matched windows of the set, or those that begin in it.
 */
struct function_reading function_row__read(const struct function_row *row,
					   const struct function_sums *sums)
{
	return row->is_left ? read_begun(sums) : read_matched(sums);
}

static struct u192 sum_of(const struct function_sums *sums,
			  const struct function_reading *reading, int place)
{
	switch (place) {
	case PLACE_SAMPLES:
		return (struct u192){ { is_of_branches(sums) ? sums->opened : sums->samples } };
	case PLACE_MATCHED:
		return (struct u192){ { reading->windows } };
	case PLACE_DISCARDED:
		return (struct u192){ { sums->samples - function_sums__inside(sums) } };
	default:
		return reading->values[place];
	}
}

/* The product of two events, over windows. */
static struct u192 product_of(const struct function_sums *sums,
			      const struct function_reading *reading, int a, int b)
{
	/* The number of windows is its own square: each window counts 0 or 1. */
	if (b < 0)
		return sum_of(sums, reading, a);
	if (a < 0)
		return sum_of(sums, reading, b);
	return reading->values[event_set__product(sums->set, min(a, b), max(a, b))];
}

/* The number of windows of equal weight that carry the same information (Kish's effective size). */
static double effective_windows(const struct u192 *total, const struct u192 *squares)
{
	double x = u192__double(total);

	return x > 0 ? x * x / u192__double(squares) : 0;
}

/*
 * Returns how many of the independent windows of a function carry the same information if all have
 * the same weight: what weights change in the effective size by the leader's event.
 */
static double effective_number(const struct function_sums *sums,
			       const struct function_reading *reading)
{
	const unsigned int square = event_set__product(sums->set, 0, 0);
	double plain, weighted;

	if (!is_of_branches(sums))
		return reading->bursts;
	plain = effective_windows(&sums->values[0], &sums->values[square]);
	weighted = effective_windows(&reading->values[0], &reading->values[square]);
	return plain > 0 ? reading->bursts * fmin(weighted / plain, 1) : reading->bursts;
}

/* Adds the windows of a function in a set. */
static void pair_sums__add(struct pair_sums *pair, const struct function_sums *sums,
			   const struct function_reading *reading, int y, int x,
			   bool is_corrected)
{
	struct u192 number;

	pair->samples += sums->samples;
	pair->matched += reading->windows;
	pair->number += effective_number(sums, reading);
	if (is_of_branches(sums)) {
		pair->weight += u192__double(&sums->weight);
		pair->squares += u192__double(&sums->squares);
	}
	number = sum_of(sums, reading, y);
	u192__add(&pair->y, &number);
	number = sum_of(sums, reading, x);
	u192__add(&pair->x, &number);
	number = product_of(sums, reading, y, y);
	u192__add(&pair->yy, &number);
	number = product_of(sums, reading, y, x);
	u192__add(&pair->xy, &number);
	number = product_of(sums, reading, x, x);
	u192__add(&pair->xx, &number);
	if (is_corrected) {
		pair->added_y += function_effect__on(sums->set, reading->windows, y,
						     &pair->unsure_y);
		pair->added_x += function_effect__on(sums->set, reading->windows, x,
						     &pair->unsure_x);
	}
}

/* Adds up the sets that have both y and x. */
static struct pair_sums pool(const struct function_row *row, const char *y, const char *x)
{
	struct pair_sums pair = {};

	for (size_t i = 0; i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];
		struct function_reading reading = function_row__read(row, sums);
		int at_y = columns_place_of(sums->set, y), at_x = columns_place_of(sums->set, x);

		if (at_y != PLACE_NONE && at_x != PLACE_NONE)
			pair_sums__add(&pair, sums, &reading, at_y, at_x,
				       row->options.is_corrected);
	}
	return pair;
}

/*
 * Returns scale x y / x with the error of a ratio estimator (Cochran, Sampling Techniques, 2.11): n
 * / (n - 1) x sum (y_i - R x_i)^2 / x^2, squared. The events that interrupts have added are
 * subtracted equally from all windows.
 */
static struct function_value ratio(const struct pair_sums *sums, double number, unsigned int scale)
{
	double y = u192__double(&sums->y) - sums->added_y;
	double x = u192__double(&sums->x) - sums->added_x, r = y / x, squares;
	struct function_value value = { .is_defined = x > 0 };

	if (!value.is_defined)
		return value;

	/* The estimate of the added events may be larger than the count. */
	value.value = scale * fmax(y, 0) / x;
	if (number < 2)
		return value;

	/* If all y_i are R x_i, rounding may give a number below 0. */
	squares = u192__double(&sums->yy) - 2 * r * u192__double(&sums->xy) +
		  r * r * u192__double(&sums->xx) -
		  pow(sums->added_y - r * sums->added_x, 2) / number;
	value.has_error = true;
	value.error = scale * sqrt(number / (number - 1) * fmax(squares, 0) + sums->unsure_y +
				   r * r * sums->unsure_x) / x;
	value.freedom = number - 1;
	return value;
}

/*
 * Returns y / link of some sets times link / x of others. They have no windows in common, so the
 * squares of the relative errors add up, and so do the degrees of freedom (Welch, Satterthwaite).
 */
static struct function_value linked_ratio(const struct pair_sums *one,
					  const struct pair_sums *other, unsigned int scale)
{
	double y = (u192__double(&one->y) - one->added_y) *
		   (u192__double(&other->x) - other->added_x);
	double x = (u192__double(&one->x) - one->added_x) *
		   (u192__double(&other->y) - other->added_y);
	struct function_value value = { .is_defined = x > 0 }, first, second;
	double a, b;

	if (!value.is_defined)
		return value;
	value.value = scale * fmax(y, 0) / x;
	first = ratio(one, one->number, 1);
	second = ratio(other, other->number, 1);
	if (!first.has_error || !second.has_error)
		return value;

	a = first.value ? first.error / first.value : 0;
	b = second.error / second.value;
	value.has_error = true;
	value.error = value.value * sqrt(a * a + b * b);
	value.freedom = a || b ? pow(a * a + b * b, 2) /
			(pow(a, 4) / first.freedom + pow(b, 4) / second.freedom) : first.freedom;
	return value;
}

static bool in_sets_with(struct function_sums *const *total, size_t nr_total, const char *event,
			 const char *with)
{
	for (size_t i = 0; i < nr_total; i++) {
		if (columns_set_has(total[i]->set, with) && event_set__find(total[i]->set,
									    event) >= 0)
			return true;
	}
	return false;
}

/*
 * Returns an event that both a set with one and a set with other have: cycles, or the first by
 * name, or else FUNCTION_MATCHED, which is none. Returns NULL if a set has both.
 */
static const char *common_event(struct function_sums *const *total, size_t nr_total,
				const char *one, const char *other)
{
	const char *common = FUNCTION_MATCHED;

	for (size_t i = 0; i < nr_total; i++) {
		const struct event_set *set = total[i]->set;

		if (columns_set_has(set, one) && columns_set_has(set, other))
			return NULL;
		if (!columns_set_has(set, one))
			continue;
		for (unsigned int j = 0; j < set->nr_events; j++) {
			const char *event = set->events[j];

			if (!in_sets_with(total, nr_total, event, other) ||
			    !strcmp(common, "cycles"))
				continue;
			if (!strcmp(event, "cycles") || !strcmp(common, FUNCTION_MATCHED) ||
			    strcmp(event, common) < 0)
				common = event;
		}
	}
	return common;
}

/* Returns the period of a random event. */
static double columns_crowd_of(const struct u192 *periods, const struct u192 *squares)
{
	return u192__double(squares) / u192__double(periods);
}

/*
 * Returns how many samples of equal periods carry the same information, but not more than there
 * were if each had the usual period. Without a sample this is 0.
 */
static double effective_samples(const struct u192 *periods, const struct u192 *squares,
				const struct u192 *all, const struct u192 *all_squares)
{
	double sum = u192__double(periods);

	return sum > 0 ? sum / fmax(columns_crowd_of(periods, squares),
				    columns_crowd_of(all, all_squares)) : 0;
}

/* Returns a share of the total, or of the windows if x is their number. */
static struct function_value share(const struct pair_sums *own, double number, unsigned int scale)
{
	struct function_value value = ratio(own, number, scale);

	value.windows = effective_windows(&own->x, &own->xx);
	if (value.is_defined)
		function_value__share_interval(&value, scale, value.windows);
	return value;
}

/* Returns a share of the total of an event that samples itself. */
static struct function_value sampled_share(const struct pair_sums *own, double number,
					   unsigned int scale)
{
	struct function_value value = ratio(own, number, scale);
	double samples = effective_windows(&own->x, &own->xx);

	value.windows = samples;
	if (!value.is_defined)
		return value;
	if (value.has_error && value.error > 0)
		samples = fmin(samples, value.value * (scale - value.value) /
			       (value.error * value.error) * number / (number - 1));
	function_value__part_interval(&value, scale, samples);
	return value;
}

static double rate_of(const struct pair_sums *pair)
{
	/* The estimate of the added events may be larger than the count. */
	return fmax(u192__double(&pair->y) - pair->added_y, 0) /
	       (u192__double(&pair->x) - pair->added_x);
}

/* Returns the sums of all windows but some. */
static struct pair_sums without(const struct pair_sums *all, const struct pair_sums *some)
{
	struct pair_sums pair = *all;

	pair.number -= some->number;
	u192__subtract(&pair.y, &some->y);
	u192__subtract(&pair.x, &some->x);
	u192__subtract(&pair.yy, &some->yy);
	u192__subtract(&pair.xy, &some->xy);
	u192__subtract(&pair.xx, &some->xx);
	return pair;
}

/* Returns the square of the standard error of y / x; 0 with fewer than two windows. */
static double square_error(const struct pair_sums *pair)
{
	struct function_value value = ratio(pair, pair->number, 1);

	return value.has_error ? value.error * value.error : 0;
}

/*
 * Returns the share of a function and all that it calls: p r / R, where p is the part of the
 * samples with the function in their chains, whether their windows are matched or not, and r and R
 * are the rates per event of the leader in its windows and in all. R is the mean of its windows,
 * with the weight p, and of the others. Each part has an error of p and one of its rate.
 */
static struct function_value inclusive_share(const struct function_row *row,
					     const struct function_row *total, const char *event,
					     unsigned int scale)
{
	struct function_value value = {};
	double n, p, r, rest, whole, s, variance;
	const char *leader = NULL;
	struct pair_sums own, all, others;

	if (!row->nr_sums)
		return value;
	for (size_t i = 0; i < total->nr_sums && !leader; i++) {
		if (columns_set_has(total->sums[i]->set, event))
			leader = total->sums[i]->set->events[0];
	}
	own = pool(row, event, leader);
	all = pool(total, event, leader);
	n = all.samples;
	p = own.samples / n;
	r = strcmp(event, leader) ? rate_of(&own) : 1;
	whole = strcmp(event, leader) ? rate_of(&all) : 1;
	s = p * r / whole;
	/* FUNCTION_CUT is not part of the whole; neither are other rows of a crafted file. */
	value.is_defined = p <= 1 && isfinite(s) &&
			   !function_sums__is_root(*row->sums, FUNCTION_CUT);
	if (!value.is_defined)
		return value;
	/* The rates come from other windows, so the result may exceed the whole. */
	s = fmin(s, 1);
	value.value = scale * s;

	others = without(&all, &own);
	rest = others.x.w[0] || others.x.w[1] || others.x.w[2] ? rate_of(&others) : 0;
	if (!all.matched)
		return value;
	/* The windows of a burst count as one. */
	n *= fmin(effective_windows(&all.x, &all.xx) / all.matched, 1);
	variance = pow(1 - s, 2) * (p * r * r / n + p * p * square_error(&own)) +
		   s * s * ((1 - p) * rest * rest / n + pow(1 - p, 2) * square_error(&others));
	value.has_error = n >= 2 && isfinite(variance);
	value.error = scale * sqrt(variance) / whole;
	value.freedom = n - 1;
	value.windows = strcmp(event, leader) ? effective_windows(&all.y, &all.yy) : n;
	function_value__share_interval(&value, scale, n);
	return value;
}

/* Counts with weights are those of windows that have the weight @unit. */
static struct window_counts counts_of(double windows, const struct u192 *total,
				      const struct u192 *squares, double unit)
{
	return (struct window_counts){
		.windows = windows,
		.total = u192__double(total) / unit,
		.squares = u192__double(squares) / (unit * unit),
	};
}

/*
 * Returns one event per another, directly or through an event that both sets have, without an
 * interval.
 */
static struct function_value plain_rate(const struct function_column *column, const char *link,
					const struct function_row *row)
{
	struct pair_sums own = pool(row, column->event, link ?: column->per), other;

	if (!link)
		return ratio(&own, own.number, column->scale);
	other = pool(row, column->per, link);
	return linked_ratio(&own, &other, column->scale);
}

/* Returns true if interrupts have added more than the interval. */
static bool columns_is_disturbed(const struct function_column *column, const char *link,
				 const struct function_row *row, const struct function_value *value)
{
	struct function_row corrected_row = *row;
	struct function_value corrected;

	if (row->options.is_corrected || !value->has_interval)
		return false;
	corrected_row.options.is_corrected = true;
	corrected = plain_rate(column, link, &corrected_row);
	return corrected.is_defined &&
	       (corrected.value < value->low || corrected.value > value->high);
}

/* Returns one event per another with its interval; own and whole are sums of the row and of all. */
static struct function_value rate(const struct function_column *column, const char *link,
				  const struct function_row *row, const struct pair_sums *own,
				  const struct pair_sums *whole)
{
	double unit = whole->weight > 0 ? whole->squares / whole->weight : 1;
	double crowd = u192__double(&whole->yy) / u192__double(&whole->y) / unit;
	struct window_counts event = counts_of(own->number, &own->y, &own->yy, unit);
	struct window_counts below = counts_of(own->number, &own->x, &own->xx, unit);
	struct function_value value = {};
	double x = below.total;

	if (link) {
		struct pair_sums other = pool(row, column->per, link);

		value = linked_ratio(own, &other, column->scale);
		below = counts_of(other.number, &other.y, &other.yy, unit);
		x *= below.total * unit / u192__double(&other.x);
	} else {
		value = ratio(own, own->number, column->scale);
	}
	if (!value.is_defined)
		return value;
	value.windows = fmin(event.windows, below.windows);
	if (own->unsure_y || own->unsure_x)
		function_value__corrected_interval(&value, column->scale / x, &event, crowd);
	else
		function_value__rate_interval(&value, column->scale / x, &event, &below, crowd);
	/* The event is a part of the one that it is divided by. */
	if (column->scale == PERCENT)
		value.high = fmin(value.high, fmax(value.value, PERCENT));
	value.is_disturbed = columns_is_disturbed(column, link, row, &value);
	return value;
}

/* Returns how many samples carry the information of two independent numbers of samples. */
static double linked_samples(double one, double other)
{
	return one && other ? 1 / (1 / one + 1 / other) : 0;
}

static bool is_apart(const char *link)
{
	return link && equal_names(link, FUNCTION_MATCHED);
}

/*
 * Returns true if both events of a rate without a common event are known in full, so that their
 * sums compare.
 */
static bool sums_compare(const struct function_column *column, const struct function_row *total)
{
	for (size_t i = 0; i < total->nr_sums; i++) {
		const struct event_set *set = total->sums[i]->set;

		if (set->source != FUNCTION_SOURCE_SAMPLES && !event_set__is_complete(set) &&
		    (columns_set_has(set, column->event) || columns_set_has(set, column->per)))
			return false;
	}
	return true;
}

/* Like pool(). For an event alone, complete windows have the first periods, too. */
static struct pair_sums pool_all(const struct function_row *row, const char *event,
				 const char *with)
{
	struct pair_sums pair = pool(row, event, with);

	for (size_t i = 0; equal_names(event, with) && i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];
		const struct function_reading first = {
			.windows = sums->begun_bursts,
			.bursts = sums->begun_bursts,
			.values = sums->values + event_set__nr_values(sums->set),
		};
		int place = event_set__find(sums->set, event);

		if (place >= 0 && sums->set->source == FUNCTION_SOURCE_WINDOWS &&
		    event_set__is_complete(sums->set))
			pair_sums__add(&pair, sums, &first, place, place, false);
	}
	return pair;
}

/*
 * Returns one event per another where each samples itself, so that their samples are independent
 * draws. Events of different groups without a common event are assumed to have counted always, as
 * windows that are complete have.
 */
static struct function_value sampled_rate(const struct function_column *column, const char *link,
					  const struct function_row *row,
					  const struct function_row *total)
{
	const bool has_link = link && !is_apart(link);
	const char *y_link = is_apart(link) ? column->event : link ?: column->per;
	const char *x_link = has_link ? link : column->per;
	struct pair_sums y = pool_all(row, column->event, y_link);
	struct pair_sums x = pool_all(row, column->per, x_link);
	struct pair_sums all_y = pool_all(total, column->event, y_link);
	struct pair_sums all_x = pool_all(total, column->per, x_link);
	double crowd = columns_crowd_of(&all_y.y, &all_y.yy), per = u192__double(&x.y);
	double events = effective_samples(&y.y, &y.yy, &all_y.y, &all_y.yy);
	double below = effective_samples(&x.y, &x.yy, &all_x.y, &all_x.yy);
	struct function_value value = { .is_defined = per > 0 };

	if (has_link) {
		double one = effective_samples(&y.x, &y.xx, &all_y.x, &all_y.xx);
		double other = effective_samples(&x.x, &x.xx, &all_x.x, &all_x.xx);

		events = linked_samples(events, one);
		below = linked_samples(below, other);
		per *= u192__double(&y.x) / u192__double(&x.x);
		value.is_defined &= per > 0;
	}
	if (!value.is_defined)
		return value;
	value.value = column->scale * u192__double(&y.y) / per;
	value.has_error = events >= 2 && below >= 2;
	value.error = events ? value.value * sqrt(1 / events + 1 / below) : 0;
	value.windows = events ? fmin(events, below) : below;
	function_value__count_interval(&value, column->scale * crowd / per, events, below);
	if (column->scale == PERCENT)
		value.high = fmin(value.high, fmax(value.value, PERCENT));
	return value;
}

static double sampled_of(const struct function_row *row, const char *event)
{
	struct pair_sums own = pool(row, event, event);

	return u192__double(&own.y);
}

/*
 * Returns true if skid changes the counts of an event: its samples may be late, and it does not
 * measure time, of which a delay moves every boundary alike.
 */
static bool has_skid(const struct function_row *total, const char *event)
{
	if (equal_names(event, "cycles") || equal_names(event, "cpu-clock") ||
	    equal_names(event, "task-clock"))
		return false;
	for (size_t i = 0; i < total->nr_sums; i++) {
		const struct event_set *set = total->sums[i]->set;
		int place = event_set__find(set, event);

		if (place >= 0 && !(set->precise & 1ULL << place))
			return true;
	}
	return false;
}

/*
 * Returns a value that a function may have although it has no event: that of all functions. Of the
 * whole it would then have its part of the leader's event.
 */
static double expected_value(const struct function_column *column, const struct function_row *row,
			     const struct function_row *total)
{
	if (function_column__is_share(column))
		return column->scale * sampled_of(row, row->leader) /
		       sampled_of(total, row->leader);
	return column->scale * sampled_of(total, column->event) / sampled_of(total, column->per);
}

/*
 * Widens the interval of a value from event samples by what skid may have moved into the function
 * or out of it: what it counts while an interrupt is late, as often as it is left; and of branches
 * one each time, because a call or a return is sampled where it goes to. Skid and chance are
 * independent. Precise samples are where the event was. A function without a sample may have as
 * many events as others.
 */
static void widen_by_exits(struct function_value *value, const struct function_column *column,
			   const struct function_row *row, const struct function_row *total)
{
	const bool is_share = function_column__is_share(column);
	double moved, part, whole;

	if (!value->has_interval || !row->exits ||
	    (!has_skid(total, column->event) && (is_share || !has_skid(total, column->per))))
		return;
	part = fmin(row->exits * row->late, 1);
	moved = value->value * part;
	if (!value->value)
		moved = expected_value(column, row, total) * (part < MOST_LOST ? part : 1);
	if (!isfinite(moved))
		return;
	if (fn_event__is_branch(column->event) && has_skid(total, column->event)) {
		whole = is_share ? sampled_of(total, column->event) : sampled_of(row, column->per);
		moved = fmax(moved, column->scale / whole * row->exits *
				    sampled_of(row, row->leader));
	}
	value->low = fmax(value->value - hypot(value->value - value->low, moved), 0);
	value->high = value->value + hypot(value->high - value->value, moved);
	if (column->scale == PERCENT)
		value->high = fmin(value->high, fmax(value->value, PERCENT));
}

/*
 * Widens the interval of a rate from branch records: the code that a sample hits after a horizon
 * is not quite that of all times. More samples do not make this error smaller.
 */
static struct function_value widened_by_path(struct function_value value)
{
	if (value.has_interval) {
		value.low = value.value - hypot(value.value - value.low, PATH_ERROR * value.value);
		value.high = value.value + hypot(value.high - value.value,
						 PATH_ERROR * value.value);
	}
	return value;
}

/* Adds up what a column needs: its event, and what that is divided by. */
static struct pair_sums pool_column(const struct function_column *column, const char *link,
				    const struct function_row *row)
{
	struct function_row matched = *row;

	if (!function_column__is_share(column))
		return pool(row, column->event, link ?: column->per ?: column->event);
	/* Each matched window counts for one function. */
	matched.is_left = false;
	return pool(&matched, column->event, column->event);
}

/* Returns the value of a column for a row; total is the row of all functions, whole its sums. */
static struct function_value column_value(const struct function_column *column,
					  const char *link, const struct function_row *row,
					  const struct function_row *total,
					  const struct pair_sums *whole)
{
	struct pair_sums own = pool_column(column, link, row);
	const bool is_sampled = column->source == FUNCTION_SOURCE_SAMPLES;
	struct function_value value;

	if (!column->per)
		return (struct function_value){
			.is_defined = true,
			.value = column->scale * u192__double(&own.y),
		};
	if (function_column__is_share(column) && total->is_inclusive && !is_sampled)
		return inclusive_share(row, total, column->event, column->scale);
	if (is_sampled && total->is_inclusive && row->nr_sums &&
	    function_sums__is_root(row->sums[0], FUNCTION_CUT) && function_column__is_share(column))
		return (struct function_value){};
	if (function_column__is_share(column)) {
		/* A window of another function has y_i = 0. */
		own.x = whole->x;
		own.xx = whole->xx;
		if (!is_sampled)
			return share(&own, whole->number, column->scale);
		value = sampled_share(&own, whole->number, column->scale);
	} else {
		if (is_windows(column->event))
			return share(&own, u192__double(&own.x), column->scale);
		if (column->is_apart)
			return (struct function_value){};
		if (is_apart(link) && !is_sampled)
			return sampled_rate(column, link, row, total);
		if (column->source == FUNCTION_SOURCE_BRANCHES)
			return widened_by_path(rate(column, link, row, &own, whole));
		if (!is_sampled)
			return rate(column, link, row, &own, whole);
		value = sampled_rate(column, link, row, total);
	}
	widen_by_exits(&value, column, row, total);
	return value;
}

/*
 * A share in share mode auto is s = p r / S: p is the function's part of the weights w of the
 * samples that end a long interval, r the rate in events per event of the leader, S the sum of all
 * p r. The variance is (sum over the functions g of (1[g = f] - s)^2 v_g) / S^2 = ((1 - 2 s) v +
 * s^2 V) / S^2, where v = r^2 x (sum of w^2 in the function) / (sum of all w)^2 + p^2 x (standard
 * error of r)^2, and V is the sum of all v.
 */
struct opened_share {
	double p;
	double variance;	/* of p */
	struct function_value rate;	/* not defined: no window of the function has it */
	double hit;	/* what one event more would add to the rate */
};

/* Returns true if the set of sums has this leader. */
static bool is_led(const struct function_sums *sums, const char *leader)
{
	return equal_names(sums->set->events[0], leader);
}

/* Returns the leader whose samples give the shares of an event, NULL if there is none. */
static const char *opening_leader(const struct function_row *total, const char *event)
{
	const char *found = NULL;

	for (size_t i = 0; i < total->nr_sums; i++) {
		const char *leader = total->sums[i]->set->events[0];

		if (!total->sums[i]->opened || event_set__find(total->sums[i]->set, event) < 0)
			continue;
		if (!found || !strcmp(leader, "cycles") ||
		    (strcmp(found, "cycles") && strcmp(leader, found) < 0))
			found = leader;
	}
	return found;
}

/* The sums of the weights of the samples that end a long interval, and of their squares. */
struct opened_weight {
	double sum, squares;
};

static struct opened_weight opened_of(const struct function_row *row, const char *leader)
{
	struct opened_weight opened = {};

	for (size_t i = 0; i < row->nr_sums; i++) {
		if (!is_led(row->sums[i], leader))
			continue;
		opened.sum += u192__double(&row->sums[i]->weight);
		opened.squares += u192__double(&row->sums[i]->squares);
	}
	return opened;
}

/* The number of samples of equal weight that carry the same information. */
static double effective_opened(const struct opened_weight *opened)
{
	return opened->sum * opened->sum / opened->squares;
}

/* Adds up matched or begun windows of the sets that have this leader and the event. */
static struct pair_sums pool_led(const struct function_row *row, const char *leader,
				 const char *event, bool is_begun)
{
	struct pair_sums pair = {};

	for (size_t i = 0; i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];
		struct function_reading reading = is_begun ? read_begun(sums) : read_matched(sums);
		int place = event_set__find(sums->set, event);

		/* The leader comes first. */
		if (place >= 0 && is_led(sums, leader))
			pair_sums__add(&pair, sums, &reading, place, 0,
				       row->options.is_corrected);
	}
	return pair;
}

/*
 * Returns the rate in the windows that begin in a function. Its error is unknown, so it is set to
 * the whole rate.
 */
static struct function_value rate_of_begun(const struct function_row *row, const char *leader,
					   const char *event)
{
	struct pair_sums pair = pool_led(row, leader, event, /*is_begun=*/true);
	struct function_value rate = {};

	rate.is_defined = u192__double(&pair.x) > pair.added_x;
	rate.value = rate.is_defined ? rate_of(&pair) : 0;
	rate.error = rate.value;
	return rate;
}

/*
 * Returns an event per event of its leader: in the matched windows; if these are fewer than 3, in
 * all that begin in the function; and if there are none, in the windows of all functions. Matched
 * windows contain more stalls, but in all functions alike, and a share is relative to all
 * functions.
 */
static struct function_value rate_of_leader(const struct function_row *row,
					    const struct function_row *total,
					    const struct pair_sums *own, const char *leader,
					    const char *event)
{
	struct function_value rate = { .is_defined = true, .value = 1 };

	if (equal_names(event, leader))
		return rate;
	rate = ratio(own, own->number, 1);
	if (rate.is_defined && own->number >= 3)
		return rate;
	rate = rate_of_begun(row, leader, event);
	if (!rate.is_defined) {
		rate = rate_of_begun(total, leader, event);
		rate.is_defined = false;
	}
	return rate;
}

static struct opened_share opened_share(const struct function_row *row,
					const struct function_row *total,
					const struct pair_sums *whole,
					double opened, const char *leader,
					const char *event)
{
	const struct opened_weight weight = opened_of(row, leader);
	struct opened_share share = { .p = weight.sum / opened };
	struct pair_sums own = pool_led(row, leader, event, /*is_begun=*/false);

	share.variance = weight.squares / (opened * opened);
	share.rate = rate_of_leader(row, total, &own, leader, event);
	share.hit = fmax(u192__double(&whole->yy) / u192__double(&whole->y), 1) /
		    fmax(u192__double(&own.x), 1);
	return share;
}

/* The terms of a function in the variance of all shares: one for p, one for the rate. */
struct share_variance {
	double opened, rate;
	double per_freedom;	/* the square of rate by its degrees of freedom */
};

static struct share_variance variance_of(const struct opened_share *share)
{
	const struct function_value *rate = &share->rate;
	struct share_variance variance = {
		.opened = share->variance * rate->value * rate->value,
		.rate = pow(share->p * rate->error, 2),
	};

	if (rate->freedom)
		variance.per_freedom = pow(variance.rate, 2) / rate->freedom;
	return variance;
}

/*
 * Returns the share of a function. sum is the sum of all p r, whole has the variances of all
 * functions, and windows is the number of windows with the event.
 */
static struct function_value value_of_share(const struct opened_share *share, double sum,
					    double number,
					    const struct share_variance *whole,
					    unsigned int scale, double windows)
{
	struct share_variance own = variance_of(share);
	double freedom = fmax(number - 1, 1);
	double s = share->p * share->rate.value / sum, hit = share->rate.value / number;
	double opened = (1 - 2 * s) * own.opened + s * s * whole->opened;
	double variance = opened + (1 - 2 * s) * own.rate + s * s * whole->rate;
	/* Welch and Satterthwaite. */
	double per_freedom = opened * opened / freedom +
			     (pow(1 - s, 4) - pow(s, 4)) * own.per_freedom +
			     pow(s, 4) * whole->per_freedom;
	struct function_value value = {
		.is_defined = share->rate.is_defined && sum > 0,
		.has_error = number >= 2,
		.value = scale * s,
		.error = scale * sqrt(fmax(variance, 0)) / sum,
		.freedom = per_freedom > 0 ? variance * variance / per_freedom : 0,
		.windows = windows,
	};

	if (!value.is_defined)
		return (struct function_value){};
	/* Three more samples, or if there was no event, three windows with events. */
	if (!share->rate.value)
		hit = fmax(share->p, 1 / number) * share->hit;
	function_value__share_interval(&value, scale, sum / hit);
	return value;
}

/*
 * Returns how often the leader has counted in the windows of all rows. The totals of a set are also
 * of windows in functions that the user does not want to see.
 */
static double counts_in_windows(const struct function_row *total, const char *leader)
{
	double counts = 0;

	for (size_t i = 0; i < total->nr_sums; i++) {
		const struct function_sums *sums = total->sums[i];
		const struct function_intervals *windows = &sums->set->windows;

		if (is_led(sums, leader) && windows->number)
			counts += u192__double(&windows->values[0]) / windows->number *
				  sums->samples;
	}
	return counts;
}

/*
 * Returns the part of all samples that skid may have moved into a function or out of it: samples as
 * late as windows are, just before a function is entered or left. Windows, in which the leader has
 * counted @counts events, tell how often that happens.
 */
static double moved_by_skid(const struct function_row *row, const char *leader, double skid,
			    double counts)
{
	double left = 0, entered = 0;

	for (size_t i = 0; i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];

		/* The leader comes first. */
		if (!is_led(sums, leader) || !is_auto(sums) || sums->set->precise & 1)
			continue;
		left += fmax((double)sums->begun - sums->matched, 0);
		entered += sums->samples - sums->matched;
	}
	return counts > 0 ? fmin(skid * fmax(left, entered) / counts, 1) : 0;
}

static double set_skid(const struct event_set *set)
{
	double sum = 0;

	for (unsigned int i = 0; i < set->nr_skids; i++)
		sum += set->skids[i];
	return sum / set->nr_skids;
}

/* Returns by how many events the windows of a leader have ended late in the mean. */
static double mean_skid(const struct function_row *total, const char *leader)
{
	double sum = 0, number = 0;

	for (size_t i = 0; i < total->nr_sums; i++) {
		const struct event_set *set = total->sums[i]->set;

		if (!is_led(total->sums[i], leader))
			continue;
		if (set->nr_skids)
			sum += set_skid(set) * set->nr_skids;
		number += set->nr_skids;
	}
	return number ? sum / number : 0;
}

static void widen_by_skid(struct function_value *value, double moved, unsigned int scale)
{
	/* fmax() and fmin() take the limit for NaN. */
	if (!value->has_interval || isnan(value->low) || isnan(value->high))
		return;
	value->low = fmax(value->low - scale * moved, 0);
	value->high = fmin(value->high + scale * moved, scale);
}

/*
 * Divides an event among the rows by the samples of its leader. Sets @shares by row, and @whole to
 * the variances of all. Returns the sum of all p r.
 */
static double divide_by_samples(const struct function_columns *columns,
				const struct function_row *total, const char *leader,
				const char *event, enum function_source source,
				struct opened_share *shares, struct share_variance *whole)
{
	struct pair_sums all = pool_led(total, leader, event, /*is_begun=*/false);
	double opened = opened_of(total, leader).sum, sum = 0;

	memset(whole, 0, sizeof(*whole));
	for (size_t i = 0; i < columns->nr_rows; i++) {
		struct function_row row = function_row__part(&columns->rows[i], source);
		struct share_variance own;

		shares[i] = opened_share(&row, total, &all, opened, leader, event);
		own = variance_of(&shares[i]);
		whole->opened += own.opened;
		whole->rate += own.rate;
		whole->per_freedom += own.per_freedom;
		sum += shares[i].p * shares[i].rate.value;
	}
	return sum;
}

/* Sets the values of a column of shares in share mode auto. */
static int set_opened_shares(struct function_columns *columns, unsigned int c,
			     const struct function_row *total, const char *leader)
{
	const struct function_column *column = &columns->columns[c];
	struct opened_share *shares = calloc(columns->nr_rows ?: 1, sizeof(*shares));
	struct pair_sums all = pool_led(total, leader, column->event, /*is_begun=*/false);
	const struct opened_weight weight = opened_of(total, leader);
	double opened = effective_opened(&weight);
	double windows = opened, counts = counts_in_windows(total, leader), sum;
	double skid = columns->options.is_compared ? 0 : mean_skid(total, leader);
	struct share_variance whole;

	if (!shares)
		return -ENOMEM;
	if (strcmp(column->event, leader))
		windows = effective_windows(&all.y, &all.yy);
	sum = divide_by_samples(columns, total, leader, column->event, column->source, shares,
				&whole);
	for (size_t i = 0; i < columns->nr_rows; i++) {
		struct function_row row = function_row__part(&columns->rows[i], column->source);
		double moved = moved_by_skid(&row, leader, skid, counts);

		row.values[c] = value_of_share(&shares[i], sum, opened, &whole, column->scale,
					       windows);
		widen_by_skid(&row.values[c], moved * shares[i].rate.value / sum, column->scale);
	}
	free(shares);
	return 0;
}

/**
 * function_columns__divide - divide an event among the rows
 * @columns: rows
 * @total: the row of all
 * @event: the event
 * @source: the origin of its counts
 * @parts: set, by row: of windows in share mode auto, parts of 1, as shares are made (without any
 *	   window that has the event, by the leader's samples alone); else the counts of the
 *	   windows or samples that count. Each has its error.
 *
 * Return: 0, or -ENOMEM.
 */
int function_columns__divide(const struct function_columns *columns,
			     const struct function_row *total, const char *event,
			     enum function_source source, struct function_value *parts)
{
	const struct function_column column = { .event = event, .per = FUNCTION_TOTAL };
	const struct function_row whole_row = function_row__part(total, source);
	const char *leader = opening_leader(&whole_row, event);
	struct pair_sums all = pool_column(&column, NULL, &whole_row);
	struct opened_share *shares = calloc(columns->nr_rows ?: 1, sizeof(*shares));
	double sum = u192__double(&all.y), n = all.number;
	struct share_variance whole = {};

	if (!shares)
		return -ENOMEM;
	if (leader)
		sum = divide_by_samples(columns, &whole_row, leader, event, source, shares, &whole);
	for (size_t i = 0; i < columns->nr_rows; i++) {
		struct function_row row = function_row__part(&columns->rows[i], source);
		struct pair_sums own = pool_column(&column, NULL, &row);
		struct share_variance terms = variance_of(&shares[i]);
		double s = u192__double(&own.y) / sum, variance;

		if (leader && sum > 0) {
			s = shares[i].p * shares[i].rate.value / sum;
			variance = (1 - 2 * s) * (terms.opened + terms.rate) +
				   s * s * (whole.opened + whole.rate);
			parts[i].value = s;
			parts[i].error = sqrt(fmax(variance, 0)) / sum;
		} else if (leader) {
			parts[i].value = shares[i].p;
			parts[i].error = shares[i].p;
		} else {
			variance = (1 - 2 * s) * u192__double(&own.yy) +
				   s * s * u192__double(&all.yy);
			parts[i].value = u192__double(&own.y);
			parts[i].error = n > 1 ? sqrt(n / (n - 1) * fmax(variance, 0)) :
						 parts[i].value;
		}
	}
	free(shares);
	return 0;
}

/*
 * Returns true if few windows support a value (for a share: few windows of all functions with the
 * event), or if its interval is not narrower than the value. The intervals of event samples hold
 * for few samples, too, so there a value is weak if half or twice of it is in its interval. A
 * value of 0 is weak if it may be as large as the value of all functions.
 */
static bool is_weak(const struct function_value *value, const struct function_value *whole,
		    bool is_sampled)
{
	if (!value->is_defined)
		return false;
	if (!value->has_interval)
		return true;
	if (value->value && is_sampled)
		return value->low < value->value / 2 || value->high > 2 * value->value;
	if (round(value->windows) < FEW_WINDOWS)
		return true;
	if (value->value)
		return value->high - value->low >= fabs(value->value);
	return whole->is_defined && whole->value && value->high >= fabs(whole->value);
}

/* Values from a crafted file may exceed a double. */
static void drop_infinite(struct function_value *value)
{
	value->is_defined = value->is_defined && isfinite(value->value);
	value->has_error = value->has_error && isfinite(value->error);
	value->has_interval = value->has_interval && isfinite(value->low) &&
			      isfinite(value->high);
}

/**
 * event_set__has_long_windows - say whether windows are longer than they were asked to be
 * @set: the set
 *
 * Return: true if they have no length of their own, or more than twice the longest one.
 */
bool event_set__has_long_windows(const struct event_set *set)
{
	u64 longest = 0;

	for (unsigned int i = 0; i < set->nr_descs; i++)
		longest = max(longest, set->descs[i].alternative_sample_period);
	return !longest || (set->windows.number && u192__double(&set->windows.values[0]) >
						   2.0 * longest * set->windows.number);
}

/*
 * Returns true if windows with other functions in them make the values of a column wrong. Shares of
 * a leader come from the number of samples, unless windows are discarded. Other shares depend less
 * on windows that are as short as they were asked to be.
 */
static bool needs_own_windows(const struct function_column *column,
			      const struct function_row *total)
{
	if (is_windows(column->event) || column->source != FUNCTION_SOURCE_WINDOWS)
		return false;
	for (size_t i = 0; function_column__is_share(column) && i < total->nr_sums; i++) {
		const struct event_set *set = total->sums[i]->set;

		if (event_set__find(set, column->event) < 0)
			continue;
		if (!event_set__has_long_windows(set))
			return false;
		if (equal_names(set->events[0], column->event) &&
		    (total->is_inclusive || !event_set__has_share(set, FUNCTION_SHARE_DISCARD)))
			return false;
	}
	return true;
}

/* Sets what follows from the values of a column: whether they are finite, weak or disturbed. */
static void finish_values(struct function_columns *columns, unsigned int column,
			  const struct function_value *whole, bool needs_own)
{
	const bool is_sampled = columns->columns[column].source == FUNCTION_SOURCE_SAMPLES;

	for (size_t i = 0; i < columns->nr_rows; i++) {
		struct function_value *value = &columns->rows[i].values[column];

		if (!value->has_interval)
			function_value__plain_interval(value);
		drop_infinite(value);
		value->is_weak = !function_column__is_count(&columns->columns[column]) &&
				 (is_weak(value, whole, is_sampled) || value->is_disturbed ||
				  (value->is_defined && needs_own &&
				   (columns->rows[i].is_left || columns->rows[i].has_calls)));
	}
}

/**
 * function_column__is_count - say whether a column's values are integers
 * @column: the column
 *
 * Return: true or false.
 */
bool function_column__is_count(const struct function_column *column)
{
	return !column->per;
}

/**
 * function_column__is_share - say whether a column's values are shares
 * @column: the column
 *
 * Return: true or false.
 */
bool function_column__is_share(const struct function_column *column)
{
	return column->per && equal_names(column->per, FUNCTION_TOTAL);
}

static bool is_recorded(const struct function_row *total, const char *name)
{
	for (size_t i = 0; i < total->nr_sums; i++) {
		if (columns_set_has(total->sums[i]->set, name))
			return true;
	}
	return false;
}

static int columns_add_column(struct function_columns *columns,
			      const struct function_column *column)
{
	struct function_column *all = realloc(columns->columns,
					      (columns->nr_columns + 1) * sizeof(*all));

	if (!all)
		return -ENOMEM;
	columns->columns = all;
	all[columns->nr_columns++] = *column;
	return 0;
}

/* Returns true if branch records have what a column needs, which no other source has as well. */
static bool is_of_paths(const struct function_column *column, const struct function_row *paths,
			const struct function_row *total)
{
	const char *last = function_column__is_share(column) ? column->event : column->per;

	if (!last)
		return paths->nr_sums == total->nr_sums;
	/* Without cycles, or code, they have no instructions. */
	return equal_names(last, paths->sums[0]->set->events[0]) ||
	       pool(paths, last, last).matched > 0;
}

/* Says of which cache the column of an event is. */
static void set_cache(const struct function_columns *columns, struct function_column *column)
{
	const bool is_miss = equal_names(column->event, "cache-misses");
	const enum fn_vendor vendor = columns->vendor;

	if ((!is_miss && !equal_names(column->event, "cache-references")) ||
	    vendor == FN_VENDOR_UNKNOWN)
		return;
	if (function_column__is_share(column)) {
		column->name = cache_columns[vendor][is_miss].share_title;
		column->meaning = cache_columns[vendor][is_miss].share;
	} else if (equal_names(column->per, "instructions") && is_miss) {
		column->meaning = cache_columns[vendor][is_miss].rate;
	}
}

/* Returns true if the title or the meaning of a column is not to be freed. */
static bool is_known_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_columns); i++) {
		if (name == known_columns[i].name)
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(cache_columns); i++) {
		if (name == cache_columns[i][0].share_title ||
		    name == cache_columns[i][1].share_title)
			return true;
	}
	return false;
}

/* Adds a column if a source has what it needs: branch records before samples before windows. */
static int add_recorded(struct function_columns *columns, struct function_column column,
			const struct function_row *total)
{
	int source = columns->options.only_windows ? FUNCTION_SOURCE_WINDOWS :
						     FUNCTION_SOURCE_BRANCHES;

	for (; source >= FUNCTION_SOURCE_WINDOWS; source--) {
		const struct function_row part = function_row__part(total, source);

		if (!is_recorded(&part, column.event) ||
		    (column.per && !function_column__is_share(&column) &&
		     !is_recorded(&part, column.per)))
			continue;
		if (source == FUNCTION_SOURCE_BRANCHES && !is_of_paths(&column, &part, total))
			continue;
		column.source = source;
		set_cache(columns, &column);
		/* On Arm, cache-misses are L1-dcache-load-misses. */
		if (function_columns__find(columns, column.name, strlen(column.name)) >= 0)
			return 0;
		if (equal_names(column.event, FUNCTION_SAMPLES) &&
		    source != FUNCTION_SOURCE_WINDOWS)
			column.meaning = source == FUNCTION_SOURCE_SAMPLES ?
					 "samples of all events" :
					 "samples whose last branch led to the function";
		return columns_add_column(columns, &column);
	}
	return 0;
}

static bool is_of(const struct function_column *column, const char *event, bool is_share)
{
	return !strcmp(column->event, event) &&
	       (!is_share || function_column__is_share(column));
}

static bool columns_has_column(const struct function_columns *columns, const char *event,
			       bool is_share)
{
	for (unsigned int i = 0; i < columns->nr_columns; i++) {
		if (is_of(&columns->columns[i], event, is_share))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(known_columns); i++) {
		/* Unless another event has its title */
		if (is_of(&known_columns[i], event, is_share) &&
		    function_columns__find(columns, known_columns[i].name,
					   strlen(known_columns[i].name)) < 0)
			return true;
	}
	return false;
}

/* Returns a title, or a longer one if another column has it. */
static char *columns_title_of(const struct function_columns *columns, const char *format,
			      const char *event)
{
	char *title, *longer;

	if (asprintf(&title, format, event) < 0)
		return NULL;
	while (function_columns__find(columns, title, strlen(title)) >= 0) {
		if (asprintf(&longer, "event:%s", title) < 0)
			longer = NULL;
		free(title);
		if (!longer)
			return NULL;
		title = longer;
	}
	return title;
}

/* An event without a short name. */
static int add_other_column(struct function_columns *columns, const char *event,
			    const struct function_row *total, bool is_share)
{
	struct function_column column = {
		.event = event, .per = is_share ? FUNCTION_TOTAL : "instructions",
		.scale = is_share ? PERCENT : 1000, .digits = is_share ? 1 : 3,
	};
	char *printable = function_text__printable(event), *name = NULL, *meaning = NULL;
	const unsigned int nr = columns->nr_columns;

	if (printable)
		name = columns_title_of(columns, is_share ? "%%%s" : "%s/KI", printable);
	if (!name || asprintf(&meaning, is_share ? "share of %s" : "%s per 1000 instructions",
			      printable) < 0)
		meaning = NULL;
	free(printable);
	column.name = name;
	column.meaning = meaning;
	if (meaning && !add_recorded(columns, column, total) && columns->nr_columns > nr)
		return 0;
	free(name);
	free(meaning);
	return meaning && columns->nr_columns == nr ? 0 : -ENOMEM;
}

/* Adds columns for all events that have none: shares only of events that sample themselves. */
static int add_other_columns(struct function_columns *columns, const struct function_row *total,
			     bool is_share)
{
	for (size_t i = 0; i < total->nr_sums; i++) {
		const struct event_set *set = total->sums[i]->set;

		for (unsigned int j = 0; j < set->nr_events; j++) {
			if ((is_share && set->source != FUNCTION_SOURCE_SAMPLES) ||
			    columns_has_column(columns, set->events[j], is_share))
				continue;
			if (columns->nr_columns == MOST_COLUMNS)
				return -EOVERFLOW;
			if (add_other_column(columns, set->events[j], total, is_share))
				return -ENOMEM;
		}
	}
	return 0;
}

/* Adds the columns whose events were recorded. DIS, the last one, is about windows. */
static int columns_add_columns(struct function_columns *columns, const struct function_row *total)
{
	const struct function_row sampled = function_row__part(total, FUNCTION_SOURCE_SAMPLES);
	const unsigned int nr = ARRAY_SIZE(known_columns) - 1;
	const struct function_row paths = function_row__part(total, FUNCTION_SOURCE_BRANCHES);
	bool has_windows = !sampled.nr_sums && !paths.nr_sums;
	int err = 0;

	/* A source may have no event. */
	if (!total->nr_sums)
		err = columns_add_column(columns, &known_columns[0]);
	for (unsigned int i = 0; !err && i < nr; i++)
		err = add_recorded(columns, known_columns[i], total);
	if (!err && is_recorded(total, "instructions"))
		err = add_other_columns(columns, total, /*is_share=*/false);
	err = err ?: add_other_columns(columns, total, /*is_share=*/true);
	for (unsigned int i = 0; i < columns->nr_columns; i++)
		has_windows |= columns->columns[i].source == FUNCTION_SOURCE_WINDOWS;
	return err || !has_windows ? err : columns_add_column(columns, &known_columns[nr]);
}

/*
 * Adds up all functions, by set, as the sums of one function with all windows. With
 * FUNCTION_BY_CHILDREN there is such a row already. A table without rows has the columns of all
 * its sets.
 */
static int columns_add_up(const struct function_table *table, struct function_table *total)
{
	for (unsigned int i = 0; !table->nr_sums && i < table->nr_sets; i++) {
		if (!function_table__add_sums(total, table->sets[i], "", "", NULL))
			return -ENOMEM;
	}
	for (size_t i = 0; i < table->nr_sums; i++) {
		const struct function_sums *from = table->sums[i];
		struct function_sums *sums = NULL;

		for (size_t j = 0; j < total->nr_sums && !sums; j++) {
			if (total->sums[j]->set == from->set)
				sums = total->sums[j];
		}
		if (!sums)
			sums = function_table__add_sums(total, from->set, "", "", NULL);
		if (!sums)
			return -ENOMEM;
		if (function_by__is(table->by, FUNCTION_BY_CHILDREN) &&
		    !function_sums__is_root(from, FUNCTION_ALL))
			continue;
		if (!function_sums__add(sums, from))
			return -ERANGE;
	}
	return function_table__sort(total);
}

/* Returns the place of the event that counts returns, by its name at Arm, Intel or AMD; or -1. */
static int find_returns(const struct event_set *set)
{
	static const char *const names[] = {
		"br_return_retired", "br_inst_retired.near_return", "ex_ret_near_ret",
	};
	int place = -1;

	for (size_t i = 0; i < ARRAY_SIZE(names) && place < 0; i++)
		place = event_set__find(set, names[i]);
	return place;
}

/* Returns true if other functions return in many of the windows that begin and end in this one. */
static bool has_calls(const struct function_row *row)
{
	double returns = 0, windows = 0;

	for (size_t i = 0; i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];
		int place = find_returns(sums->set);

		if (place < 0)
			continue;
		returns += u192__double(&sums->values[place]);
		windows += sums->matched;
	}
	return returns > MOST_RETURNS * windows;
}

/* The windows of a row, and those that begin and end in it. */
struct row_windows {
	double all;
	double inside;
	double samples;
};

static struct row_windows count_windows(const struct function_row *row)
{
	struct row_windows windows = {};

	for (size_t i = 0; i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];

		windows.inside += function_sums__inside(sums);
		windows.samples += sums->samples;
		if (is_auto(sums))
			windows.all += sums->begun;
		else
			windows.all += event_set__has_share(sums->set, FUNCTION_SHARE_NONE) ?
				       sums->matched : sums->samples;
	}
	return windows;
}

/* Returns true if many of the windows of a function have one end elsewhere. */
static bool is_left(const struct function_row *row)
{
	struct row_windows windows = count_windows(row);

	return windows.inside < STAYS * windows.all;
}

/*
 * Returns how often a function is left in a window; all is the number of window samples of all
 * functions. A window begins and ends in a function by chance, with the function's share p of the
 * samples. If calls begin and end at random times, a part p + (1 - p) k of the windows has both
 * ends in the function. There k is the probability that nothing changed between the ends, and the
 * function is left -(1 - p) log k times in a window.
 */
static double exits_in_window(const struct function_row *row, double all)
{
	struct row_windows windows = count_windows(row);
	double p = windows.samples / all, k;

	if (windows.all - windows.inside < FEW_LEAVE || p >= 1)
		return 0;
	k = fmax(windows.inside / windows.all - p, 0.5 / windows.all) / (1 - p);
	return (p - 1) * log(fmin(k, 1));
}

/*
 * Returns true if windows are so long that other functions run in many of them, although both ends
 * are in this one.
 */
static bool is_visited(const struct function_row *row, double all)
{
	bool is_long = false;

	for (size_t i = 0; i < row->nr_sums; i++)
		is_long |= event_set__has_long_windows(row->sums[i]->set);
	return is_long && exits_in_window(row, all) > -log(STAYS);
}

/* Returns the first set whose windows tell how late they end, NULL if none does. */
static const struct event_set *find_late(const struct function_table *table)
{
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		if (table->sets[i]->nr_skids && table->sets[i]->windows.number)
			return table->sets[i];
	}
	return NULL;
}

static int columns_add_rows(struct function_columns *columns, const struct function_table *table,
			    const struct function_reading_options *options)
{
	bool is_inclusive = function_by__is(table->by, FUNCTION_BY_CHILDREN);
	const struct event_set *set = is_inclusive ? NULL : find_late(table);
	double samples = 0, late = set ? set_skid(set) : 0, length = 0;
	size_t nr_rows = 0;

	if (set)
		length = u192__double(&set->windows.values[0]) / set->windows.number;

	for (size_t i = 0; i < table->nr_sums; i++)
		nr_rows += !i || !function_sums__same_function(table->sums[i - 1], table->sums[i]);
	if (nr_rows * columns->nr_columns > FUNCTION_MOST_VALUES)
		return -E2BIG;
	columns->rows = calloc(nr_rows ?: 1, sizeof(*columns->rows));
	if (!columns->rows)
		return -ENOMEM;

	for (size_t i = 0; i < table->nr_sums; i++) {
		struct function_row *row = &columns->rows[columns->nr_rows];

		if (i && function_sums__same_function(table->sums[i - 1], table->sums[i])) {
			row[-1].nr_sums++;
			continue;
		}
		row->sums = &table->sums[i];
		row->nr_sums = 1;
		row->options = *options;
		row->values = calloc(columns->nr_columns ?: 1, sizeof(*row->values));
		if (!row->values)
			return -ENOMEM;
		columns->nr_rows++;
	}
	for (size_t i = 0; i < table->nr_sums; i++) {
		if (table->sums[i]->set->source == FUNCTION_SOURCE_WINDOWS &&
		    (!is_inclusive || function_sums__is_root(table->sums[i], FUNCTION_ALL)))
			samples += table->sums[i]->samples;
	}
	for (size_t i = 0; i < columns->nr_rows; i++) {
		struct function_row *row = &columns->rows[i];
		struct function_row windows = function_row__part(row, FUNCTION_SOURCE_WINDOWS);

		if (!windows.nr_sums)
			continue;
		row->is_left = options->is_compared ? row->sums[0]->is_left : is_left(&windows);
		row->has_calls = (!is_inclusive && has_calls(&windows)) ||
				 is_visited(&windows, samples);
		/* Branch records tell where an event was before its sample was late. */
		if (!set || options->is_compared ||
		    !function_table__has_share(table, FUNCTION_SHARE_SAMPLES))
			continue;
		row->leader = set->events[0];
		row->exits = exits_in_window(&windows, samples) / length;
		row->late = late;
	}
	return 0;
}

/**
 * function_columns__init_rows - make the rows of a table without values
 * @columns: set to them, without columns
 * @table: sums, sorted, to be kept as long as @columns
 *
 * Return: 0 or -ENOMEM.
 */
int function_columns__init_rows(struct function_columns *columns,
				const struct function_table *table)
{
	memset(columns, 0, sizeof(*columns));
	return columns_add_rows(columns, table, &columns->options);
}

/* Sets the values of a column; total is the row of all functions. */
static int set_values(struct function_columns *columns, unsigned int c,
		      const struct function_row *all)
{
	struct function_column *column = &columns->columns[c];
	const struct function_row part = function_row__part(all, column->source), *total = &part;
	bool is_share = function_column__is_share(column);
	const char *link = NULL, *leader = NULL;
	struct function_value value;
	struct pair_sums whole;

	if (is_share && !total->is_inclusive)
		leader = opening_leader(total, column->event);
	if (leader && set_opened_shares(columns, c, total, leader))
		return -ENOMEM;
	if (column->per && !is_share)
		link = common_event(total->sums, total->nr_sums, column->event, column->per);
	column->is_apart = is_apart(link) && !sums_compare(column, total);
	whole = pool_column(column, link, total);
	for (size_t i = 0; !leader && i < columns->nr_rows; i++) {
		struct function_row row = function_row__part(&columns->rows[i], column->source);

		row.values[c] = column_value(column, link, &row, total, &whole);
	}
	value = column_value(column, link, total, total, &whole);
	finish_values(columns, c, &value, needs_own_windows(column, total));
	return 0;
}

/* Marks the values of event samples that are too few for the number of threads. */
static void mark_scarce(struct function_columns *columns, const struct function_table *table)
{
	for (unsigned int i = 0; table->scarce && i < columns->nr_columns; i++) {
		const struct function_column *column = &columns->columns[i];

		if (column->source != FUNCTION_SOURCE_SAMPLES || !column->per ||
		    (!strlist__has_entry(table->scarce, column->event) &&
		     !strlist__has_entry(table->scarce, column->per)))
			continue;
		for (size_t r = 0; r < columns->nr_rows; r++)
			columns->rows[r].values[i].is_weak |= columns->rows[r].values[i].is_defined;
	}
}

/**
 * function_columns__init - make the columns and rows of a table
 * @columns: set to them
 * @table: sums, sorted, to be kept as long as @columns
 * @options: how values are made of them
 *
 * Return: 0, -ENOMEM, -EOVERFLOW if there are too many events, -E2BIG if there are too many rows
 * for their columns, or -ERANGE if the sums of all functions are too large to add up.
 */
int function_columns__init(struct function_columns *columns, const struct function_table *table,
			   const struct function_reading_options *options)
{
	struct function_table total = {};
	struct function_row all, windows;
	int err;

	memset(columns, 0, sizeof(*columns));
	columns->options = *options;
	columns->vendor = function_table__vendor(table);
	err = function_table__set_effects(table) ?: columns_add_up(table, &total);
	all = (struct function_row){
		.sums = total.sums, .nr_sums = total.nr_sums,
		.is_inclusive = function_by__is(table->by, FUNCTION_BY_CHILDREN),
		.options = columns->options,
	};
	err = err ?: columns_add_columns(columns, &all) ?: columns_add_rows(columns, table,
									    &columns->options);
	windows = function_row__part(&all, FUNCTION_SOURCE_WINDOWS);
	all.is_left = is_left(&windows);
	all.has_calls = !all.is_inclusive && has_calls(&windows);
	for (unsigned int i = 0; !err && i < columns->nr_columns; i++)
		err = set_values(columns, i, &all);
	if (!err)
		mark_scarce(columns, table);
	function_table__exit(&total);
	return err;
}

/**
 * function_columns__add - add a column, after those that there are
 * @columns: columns with rows
 * @column: the column, whose name and meaning will be freed
 * @values: its values, by row
 *
 * Return: 0, or -ENOMEM.
 */
int function_columns__add(struct function_columns *columns, const struct function_column *column,
			  const struct function_value *values)
{
	unsigned int nr = columns->nr_columns;

	for (size_t i = 0; i < columns->nr_rows; i++) {
		struct function_row *row = &columns->rows[i];
		struct function_value *all = realloc(row->values, (nr + 1) * sizeof(*all));

		if (!all)
			return -ENOMEM;
		row->values = all;
		all[nr] = values[i];
	}
	if (columns_add_column(columns, column))
		return -ENOMEM;

	finish_values(columns, nr, &(struct function_value){},
		      column->source == FUNCTION_SOURCE_WINDOWS);
	return 0;
}

/**
 * function_columns__exit - free columns and rows
 * @columns: the columns and rows
 */
void function_columns__exit(struct function_columns *columns)
{
	for (unsigned int i = 0; i < columns->nr_columns; i++) {
		struct function_column *column = &columns->columns[i];

		if (!is_known_name(column->name)) {
			free((char *)column->name);
			free((char *)column->meaning);
		}
	}
	free(columns->columns);
	for (size_t i = 0; i < columns->nr_rows; i++)
		free(columns->rows[i].values);
	free(columns->rows);
}

/**
 * function_columns__find - find a column
 * @columns: the columns
 * @name: its name, in upper or lower case
 * @length: of @name
 *
 * Return: the number of the column, -1 if there is none.
 */
int function_columns__find(const struct function_columns *columns, const char *name, size_t length)
{
	for (unsigned int i = 0; i < columns->nr_columns; i++) {
		if (!strncasecmp(columns->columns[i].name, name, length) &&
		    !columns->columns[i].name[length])
			return i;
	}
	return -1;
}

/**
 * function_columns__default_sort - choose the column to sort by
 * @columns: the columns
 *
 * Return: the first of %CY, %CLK and %TCLK that there is, or the number of samples.
 */
int function_columns__default_sort(const struct function_columns *columns)
{
	static const char *const shares[] = { "%CY", "%CLK", "%TCLK" };

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		int column = function_columns__find(columns, shares[i], strlen(shares[i]));

		if (column >= 0)
			return column;
	}
	return 0;
}

static int compare_rows(const void *one, const void *other, void *arg)
{
	const struct function_row *a = one, *b = other;
	const int column = *(const int *)arg;
	const struct function_value *x = &a->values[column], *y = &b->values[column];

	if (x->is_defined != y->is_defined)
		return x->is_defined ? -1 : 1;
	if (x->is_defined && x->value != y->value)
		return x->value > y->value ? -1 : 1;
	/* Rows were in the order of the table, by name. */
	return a->sums < b->sums ? -1 : a->sums > b->sums;
}

/**
 * function_columns__sort - sort the rows
 * @columns: columns with rows
 * @column: the key: largest first, undefined last, equal ones by name
 */
void function_columns__sort(struct function_columns *columns, int column)
{
	qsort_r(columns->rows, columns->nr_rows, sizeof(*columns->rows), compare_rows, &column);
}

/**
 * function_columns__mark_small - mark the rows of a small share
 * @columns: columns with rows
 * @table: the table of the rows
 * @percent: the least share that is not small: of the column that rows are sorted by if
 *	     nothing else is asked for, or where that has no shares, of the windows
 */
void function_columns__mark_small(struct function_columns *columns,
				  const struct function_table *table, double percent)
{
	const int column = function_columns__default_sort(columns);
	double whole = 0;

	for (size_t i = 0; i < columns->nr_rows; i++) {
		const struct function_row *row = &columns->rows[i];

		/* Other rows include the windows of their callees. */
		if (!function_by__is(table->by, FUNCTION_BY_CHILDREN) ||
		    function_sums__is_root(row->sums[0], FUNCTION_ALL))
			whole += row->values[column].value;
	}
	if (function_column__is_share(&columns->columns[column]))
		whole = 100;
	for (size_t i = 0; i < columns->nr_rows; i++) {
		const struct function_value *value = &columns->rows[i].values[column];

		columns->rows[i].is_small = !value->is_defined ||
					    100 * value->value < percent * whole;
	}
}

/**
 * function_columns__drop_small - remove the rows that are marked as small
 * @columns: columns with rows
 */
void function_columns__drop_small(struct function_columns *columns)
{
	size_t nr = 0;

	for (size_t i = 0; i < columns->nr_rows; i++) {
		if (columns->rows[i].is_small)
			free(columns->rows[i].values);
		else
			columns->rows[nr++] = columns->rows[i];
	}
	columns->nr_rows = nr;
}
