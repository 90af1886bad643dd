// SPDX-License-Identifier: GPL-2.0
/*
 * The columns of a table of functions: what is made of their sums.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "columns.h"
#include "interval.h"
#include "sums.h"
#include "text.h"

/* What every set has besides its events. */
#define SAMPLES		"samples"
#define MATCHED		"matched"
#define DISCARDED	"discarded"
/* function_column.per of a share. */
#define TOTAL		"total"
/* function_column.scale of a part of something: no more is true. */
#define PERCENT		100
/* Values from fewer windows are weak. */
#define FEW_WINDOWS	20
/*
 * The part of the windows that begin in a function which also end in it. Where it is
 * smaller, the matched ones tell more of its long runs than of the rest.
 */
#define STAYS		0.9

static const struct function_column known_columns[] = {
#define FUNCTION_METRIC(...) { __VA_ARGS__ },
#include "../../scripts/python/Perf-Trace-Util/lib/Perf/Trace/FunctionMetrics.h"
};

/**
 * u192__double - round a number
 * @number: the number
 *
 * Return: the nearest double.
 */
double u192__double(const struct u192 *number)
{
	const u64 *w = number->w;
	unsigned int top = w[2] ? 2 : w[1] ? 1 : 0, shift;
	u64 bits = w[top];

	if (!top)
		return bits;

	/* The first 64 bits, the last of which stands for all that follow. */
	shift = __builtin_clzll(bits);
	if (shift)
		bits = bits << shift | w[top - 1] >> (64 - shift);
	bits |= w[top - 1] << shift || (top == 2 && w[0]);
	return ldexp(bits, 64 * top - shift);
}

/*
 * What the windows of one function or of all counted of two events: how many there
 * are, how many of them matched, and how many of these do not depend on each other.
 */
struct pair_sums {
	double samples, matched, number;
	struct u192 y, x, yy, xy, xx;
};

static bool is_windows(const char *name)
{
	return !strcmp(name, SAMPLES) || !strcmp(name, MATCHED) || !strcmp(name, DISCARDED);
}

static bool set_has(const struct event_set *set, const char *name)
{
	return is_windows(name) || event_set__find(set, name) >= 0;
}

static bool is_auto(const struct function_sums *sums)
{
	return event_set__has_share(sums->set, FUNCTION_SHARE_AUTO);
}

static struct function_reading read_matched(const struct function_sums *sums)
{
	return (struct function_reading){
		.windows = sums->matched, .bursts = sums->bursts, .values = sums->values,
	};
}

static struct function_reading read_begun(const struct function_sums *sums)
{
	if (!is_auto(sums))	/* These windows were not counted. */
		return read_matched(sums);
	return (struct function_reading){
		.windows = sums->begun,
		.bursts = sums->begun_bursts,
		.values = sums->values + event_set__begun(sums->set),
	};
}

/**
 * function_row__read - find the windows that the rates of a row are made of
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
			  const struct function_reading *reading, const char *name)
{
	struct u192 number = {};

	if (!strcmp(name, SAMPLES))
		number.w[0] = sums->samples;
	else if (!strcmp(name, MATCHED))
		number.w[0] = reading->windows;
	else if (!strcmp(name, DISCARDED))
		number.w[0] = sums->samples - sums->matched;
	else
		number = reading->values[event_set__find(sums->set, name)];
	return number;
}

static struct u192 product_of(const struct function_sums *sums,
			      const struct function_reading *reading, const char *a,
			      const char *b)
{
	int first, second;

	/* A window counts for 1, if at all. */
	if (is_windows(b))
		return sum_of(sums, reading, a);
	if (is_windows(a))
		return sum_of(sums, reading, b);
	first = event_set__find(sums->set, a);
	second = event_set__find(sums->set, b);
	return reading->values[event_set__product(sums->set, min(first, second),
						  max(first, second))];
}

/* As many windows of equal weight would tell as much (Kish's effective size). */
static double effective_windows(const struct u192 *total, const struct u192 *squares)
{
	double x = u192__double(total);

	return x > 0 ? x * x / u192__double(squares) : 0;
}

static void pair_sums__add(struct pair_sums *pair, const struct function_sums *sums,
			   const struct function_reading *reading, const char *y, const char *x)
{
	struct u192 number;

	pair->samples += sums->samples;
	pair->matched += reading->windows;
	pair->number += reading->bursts;
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
}

/* The sums of those sets which have both y and x. */
static struct pair_sums pool(const struct function_row *row, const char *y, const char *x)
{
	struct pair_sums pair = {};

	for (size_t i = 0; i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];
		struct function_reading reading = function_row__read(row, sums);

		if (set_has(sums->set, y) && set_has(sums->set, x))
			pair_sums__add(&pair, sums, &reading, y, x);
	}
	return pair;
}

/*
 * scale x y / x. The error is that of a ratio estimator (Cochran, Sampling
 * Techniques, 2.11): n / (n - 1) x sum (y_i - R x_i)^2 / x^2, squared.
 */
static struct function_value ratio(const struct pair_sums *sums, double number, unsigned int scale)
{
	double y = u192__double(&sums->y), x = u192__double(&sums->x), r = y / x, squares;
	struct function_value value = { .is_defined = x > 0 };

	if (!value.is_defined)
		return value;

	value.value = scale * y / x;
	if (number < 2)
		return value;

	/* Not exactly 0 where all y_i are R x_i, but then less than 0, maybe. */
	squares = u192__double(&sums->yy) - 2 * r * u192__double(&sums->xy) +
		  r * r * u192__double(&sums->xx);
	value.has_error = true;
	value.error = scale * sqrt(number / (number - 1) * fmax(squares, 0)) / x;
	value.freedom = number - 1;
	return value;
}

/*
 * y / link of some sets times link / x of others. As they have no windows in
 * common, the squares of the relative errors add up, and so do the degrees of
 * freedom (Welch, Satterthwaite).
 */
static struct function_value linked_ratio(const struct pair_sums *one,
					  const struct pair_sums *other, unsigned int scale)
{
	double y = u192__double(&one->y) * u192__double(&other->x);
	double x = u192__double(&one->x) * u192__double(&other->y);
	struct function_value value = { .is_defined = x > 0 }, first, second;
	double a, b;

	if (!value.is_defined)
		return value;
	value.value = scale * y / x;
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
		if (set_has(total[i]->set, with) && event_set__find(total[i]->set, event) >= 0)
			return true;
	}
	return false;
}

/*
 * An event that both a set with one and a set with other have: cycles, or the
 * first by name, or else the matched windows. NULL if a set has both.
 */
static const char *common_event(struct function_sums *const *total, size_t nr_total,
				const char *one, const char *other)
{
	const char *common = MATCHED;

	for (size_t i = 0; i < nr_total; i++) {
		const struct event_set *set = total[i]->set;

		if (set_has(set, one) && set_has(set, other))
			return NULL;
		if (!set_has(set, one))
			continue;
		for (unsigned int j = 0; j < set->nr_events; j++) {
			const char *event = set->events[j];

			if (!in_sets_with(total, nr_total, event, other) ||
			    !strcmp(common, "cycles"))
				continue;
			if (!strcmp(event, "cycles") || !strcmp(common, MATCHED) ||
			    strcmp(event, common) < 0)
				common = event;
		}
	}
	return common;
}

/* A share of the total, or of the windows: of what is weighed by x. */
static struct function_value share(const struct pair_sums *own, double number, unsigned int scale)
{
	struct function_value value = ratio(own, number, scale);

	value.windows = effective_windows(&own->x, &own->xx);
	if (value.is_defined)
		function_value__share_interval(&value, scale, value.windows);
	return value;
}

static double rate_of(const struct pair_sums *pair)
{
	return u192__double(&pair->y) / u192__double(&pair->x);
}

static void subtract(struct u192 *number, const struct u192 *other)
{
	bool borrow = false;

	for (size_t i = 0; i < ARRAY_SIZE(number->w); i++) {
		u64 word = number->w[i] - borrow;

		borrow = word > number->w[i];
		borrow |= word < other->w[i];
		number->w[i] = word - other->w[i];
	}
	/* Not of windows, but a crafted file may have a part that is more than the whole. */
	if (borrow)
		memset(number, 0, sizeof(*number));
}

/* The sums of windows that are not among some of them. */
static struct pair_sums without(const struct pair_sums *all, const struct pair_sums *some)
{
	struct pair_sums pair = *all;

	pair.number -= some->number;
	subtract(&pair.y, &some->y);
	subtract(&pair.x, &some->x);
	subtract(&pair.yy, &some->yy);
	subtract(&pair.xy, &some->xy);
	subtract(&pair.xx, &some->xx);
	return pair;
}

/* The square of the standard error of y / x; 0 where one window or none tells. */
static double square_error(const struct pair_sums *pair)
{
	struct function_value value = ratio(pair, pair->number, 1);

	return value.has_error ? value.error * value.error : 0;
}

/*
 * The share of a function and all that it calls: p r / R, where p is the part of the
 * samples that have it in their chains, whatever became of their windows, and r and R are
 * the rates per event of the leader in its windows and in all. All are those windows, with
 * the weight p, and the others. Each part has an error of p and one of its rate.
 */
static struct function_value inclusive_share(const struct function_row *row,
					     const struct function_row *total, const char *event,
					     unsigned int scale)
{
	struct function_value value = {};
	double n, p, r, rest, whole, s, variance;
	const char *leader = NULL;
	struct pair_sums own, all, others;

	for (size_t i = 0; i < total->nr_sums && !leader; i++) {
		if (set_has(total->sums[i]->set, event))
			leader = total->sums[i]->set->events[0];
	}
	own = pool(row, event, leader);
	all = pool(total, event, leader);
	n = all.samples;
	p = own.samples / n;
	r = strcmp(event, leader) ? rate_of(&own) : 1;
	whole = strcmp(event, leader) ? rate_of(&all) : 1;
	s = p * r / whole;
	/* FUNCTION_CUT is no part of the whole, and a crafted file may have more such rows. */
	value.is_defined = p <= 1 && isfinite(s) &&
			   !function_sums__is_root(*row->sums, FUNCTION_CUT);
	if (!value.is_defined)
		return value;
	/* Rates of other windows may say that it has more than all. */
	s = fmin(s, 1);
	value.value = scale * s;

	others = without(&all, &own);
	rest = others.x.w[0] || others.x.w[1] || others.x.w[2] ? rate_of(&others) : 0;
	if (!all.matched)
		return value;
	/* Windows of a burst are one. */
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

static struct window_counts counts_of(double windows, const struct u192 *total,
				      const struct u192 *squares)
{
	return (struct window_counts){
		.windows = windows,
		.total = u192__double(total),
		.squares = u192__double(squares),
	};
}

/* One event by another, directly or through an event that both sets have. */
static struct function_value rate(const struct function_column *column, const char *link,
				  const struct function_row *row, const struct function_row *total)
{
	const char *per = link ?: column->per;
	struct pair_sums own = pool(row, column->event, per);
	struct pair_sums whole = pool(total, column->event, per);
	struct window_counts event = counts_of(own.number, &own.y, &own.yy);
	struct window_counts below = counts_of(own.number, &own.x, &own.xx);
	double x = below.total;
	struct function_value value;

	if (link) {
		struct pair_sums other = pool(row, column->per, link);

		value = linked_ratio(&own, &other, column->scale);
		below = counts_of(other.number, &other.y, &other.yy);
		x *= below.total / u192__double(&other.x);
	} else {
		value = ratio(&own, own.number, column->scale);
	}
	if (!value.is_defined)
		return value;

	value.windows = fmin(event.windows, below.windows);
	function_value__rate_interval(&value, column->scale / x, &event, &below,
				      u192__double(&whole.yy) / u192__double(&whole.y));
	/* A part of what it is taken by. */
	if (column->scale == PERCENT)
		value.high = fmin(value.high, fmax(value.value, PERCENT));
	return value;
}

/* The value of a column for a row, where total is the row of all functions. */
static struct function_value column_value(const struct function_column *column,
					  const char *link, const struct function_row *row,
					  const struct function_row *total)
{
	const char *event = column->event;
	struct pair_sums own, whole;

	if (!column->per) {
		own = pool(row, event, event);
		return (struct function_value){
			.is_defined = true,
			.value = column->scale * u192__double(&own.y),
		};
	}
	if (function_column__is_share(column) && total->is_inclusive)
		return inclusive_share(row, total, event, column->scale);
	if (function_column__is_share(column)) {
		struct function_row matched = *row, all = *total;

		/* Each matched window counts for one function. */
		matched.is_left = false;
		all.is_left = false;
		own = pool(&matched, event, event);
		whole = pool(&all, event, event);
		/* A window of another function has y_i = 0. */
		own.x = whole.x;
		own.xx = whole.xx;
		return share(&own, whole.number, column->scale);
	}
	if (is_windows(event)) {
		own = pool(row, event, column->per);
		return share(&own, u192__double(&own.x), column->scale);
	}
	return rate(column, link, row, total);
}

/*
 * Shares in share mode auto. Of the N samples that end a long interval, p lie in the
 * function: that is its share of the leader's counts, whatever became of the window
 * after it. The share of another event is that times its rate, r events for each one
 * of the leader's:
 *
 *	s = p r / S, where S is the sum of all functions' p r
 *	variance of s = (sum over the functions g of (1[g = f] - s)^2 v_g) / S^2
 *	v = p r^2 / N + p^2 x (standard error of r)^2
 *
 * which is ((1 - 2 s) v + s^2 V) / S^2, where V is the sum of all v.
 */
struct opened_share {
	double p;
	struct function_value rate;	/* not defined: no window of the function has it */
	double hit;	/* what one event more would add to the rate */
};

/* Whether a leader leads the set of sums, which has an event. */
static bool is_led(const struct function_sums *sums, const char *leader, const char *event)
{
	return !strcmp(sums->set->events[0], leader) && event_set__find(sums->set, event) >= 0;
}

/* The leader whose samples tell the shares of an event, NULL if there are none. */
static const char *opening_leader(const struct function_row *total, const char *event)
{
	const char *found = NULL;

	for (size_t i = 0; i < total->nr_sums; i++) {
		const char *leader = total->sums[i]->set->events[0];

		if (!total->sums[i]->opened || !is_led(total->sums[i], leader, event))
			continue;
		if (!found || !strcmp(leader, "cycles") ||
		    (strcmp(found, "cycles") && strcmp(leader, found) < 0))
			found = leader;
	}
	return found;
}

static double opened_of(const struct function_row *row, const char *leader)
{
	double opened = 0;

	for (size_t i = 0; i < row->nr_sums; i++) {
		if (is_led(row->sums[i], leader, leader))
			opened += row->sums[i]->opened;
	}
	return opened;
}

/* Matched or begun windows of those sets which a leader leads and which have the event. */
static struct pair_sums pool_led(const struct function_row *row, const char *leader,
				 const char *event, bool is_begun)
{
	struct pair_sums pair = {};

	for (size_t i = 0; i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];
		struct function_reading reading = is_begun ? read_begun(sums) : read_matched(sums);

		if (is_led(sums, leader, event))
			pair_sums__add(&pair, sums, &reading, event, leader);
	}
	return pair;
}

/* The rate in the windows that begin in a function. How far it is off is not known: all of it. */
static struct function_value rate_of_begun(const struct function_row *row, const char *leader,
					   const char *event)
{
	struct pair_sums pair = pool_led(row, leader, event, /*is_begun=*/true);
	struct function_value rate = {};

	rate.is_defined = u192__double(&pair.x) > 0;
	rate.value = rate.is_defined ? rate_of(&pair) : 0;
	rate.error = rate.value;
	return rate;
}

/*
 * An event by its leader: in the matched windows; where they are fewer than 3, in all that
 * begin in the function; and where there are none, in those of all functions. The matched ones
 * are those of stalls, but of all functions alike, and a share is relative to all functions.
 */
static struct opened_share opened_share(const struct function_row *row,
					const struct function_row *total,
					const struct pair_sums *whole, double number,
					const char *leader, const char *event)
{
	struct opened_share share = { .p = opened_of(row, leader) / number };
	struct pair_sums own;

	if (!strcmp(event, leader)) {
		share.rate = (struct function_value){ .is_defined = true, .value = 1 };
		return share;
	}
	own = pool_led(row, leader, event, /*is_begun=*/false);
	share.hit = fmax(u192__double(&whole->yy) / u192__double(&whole->y), 1) /
		    fmax(u192__double(&own.x), 1);
	share.rate = ratio(&own, own.number, 1);
	if (share.rate.is_defined && own.number >= 3)
		return share;

	share.rate = rate_of_begun(row, leader, event);
	if (!share.rate.is_defined) {
		share.rate = rate_of_begun(total, leader, event);
		share.rate.is_defined = false;
	}
	return share;
}

/* What a function brings into the variance of all shares: of its p, of its rate. */
struct share_variance {
	double opened, rate;
	double per_freedom;	/* the square of rate by its degrees of freedom */
};

static struct share_variance variance_of(const struct opened_share *share, double number)
{
	const struct function_value *rate = &share->rate;
	struct share_variance variance = {
		.opened = share->p * rate->value * rate->value / number,
		.rate = pow(share->p * rate->error, 2),
	};

	if (rate->freedom)
		variance.per_freedom = pow(variance.rate, 2) / rate->freedom;
	return variance;
}

/*
 * The share of a function, where sum is that of p r, and whole the variances of all, and
 * as many windows tell of the event as windows says.
 */
static struct function_value value_of_share(const struct opened_share *share, double sum,
					    double number, const struct share_variance *whole,
					    unsigned int scale, double windows)
{
	struct share_variance own = variance_of(share, number);
	double s = share->p * share->rate.value / sum, hit = share->rate.value / number;
	double opened = (1 - 2 * s) * own.opened + s * s * whole->opened;
	double variance = opened + (1 - 2 * s) * own.rate + s * s * whole->rate;
	/* Welch and Satterthwaite. */
	double per_freedom = opened * opened / fmax(number - 1, 1) +
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
	/* Three samples more, or where there was no event, three windows with some. */
	if (!share->rate.value)
		hit = fmax(share->p, 1 / number) * share->hit;
	function_value__share_interval(&value, scale, sum / hit);
	return value;
}

/* Set the values of a column that is a share in share mode auto. */
static int set_opened_shares(struct function_columns *columns, unsigned int c,
			     const struct function_row *total, const char *leader)
{
	const struct function_column *column = &columns->columns[c];
	struct opened_share *shares = calloc(columns->nr_rows ?: 1, sizeof(*shares));
	struct pair_sums all = pool_led(total, leader, column->event, /*is_begun=*/false);
	double number = opened_of(total, leader), windows = number, sum = 0;
	struct share_variance whole = {};

	if (!shares)
		return -ENOMEM;
	if (strcmp(column->event, leader))
		windows = effective_windows(&all.y, &all.yy);
	for (size_t i = 0; i < columns->nr_rows; i++) {
		struct share_variance own;

		shares[i] = opened_share(&columns->rows[i], total, &all, number, leader,
					 column->event);
		own = variance_of(&shares[i], number);
		whole.opened += own.opened;
		whole.rate += own.rate;
		whole.per_freedom += own.per_freedom;
		sum += shares[i].p * shares[i].rate.value;
	}
	for (size_t i = 0; i < columns->nr_rows; i++)
		columns->rows[i].values[c] = value_of_share(&shares[i], sum, number, &whole,
							    column->scale, windows);
	free(shares);
	return 0;
}

/*
 * A value is weak if few windows tell of it (of a share: few of all functions'
 * that have the event), or if its interval is not narrower than the value itself;
 * 0, if it is not even known to be less than the value of all functions.
 */
static bool is_weak(const struct function_value *value, const struct function_value *whole)
{
	if (!value->is_defined)
		return false;
	if (!value->has_interval || round(value->windows) < FEW_WINDOWS)
		return true;
	if (value->value)
		return value->high - value->low >= fabs(value->value);
	return whole->is_defined && whole->value && value->high >= fabs(whole->value);
}

/* A crafted file has numbers of which too large ones for a double are made. */
static void drop_infinite(struct function_value *value)
{
	value->is_defined = value->is_defined && isfinite(value->value);
	value->has_error = value->has_error && isfinite(value->error);
	value->has_interval = value->has_interval && isfinite(value->low) &&
			      isfinite(value->high);
}

/* What a column's values say of themselves, whatever made them. */
static void finish_values(struct function_columns *columns, unsigned int column,
			  const struct function_value *whole, bool is_rate)
{
	for (size_t i = 0; i < columns->nr_rows; i++) {
		struct function_value *value = &columns->rows[i].values[column];

		if (!value->has_interval)
			function_value__plain_interval(value);
		drop_infinite(value);
		value->is_weak = !function_column__is_count(&columns->columns[column]) &&
				 (is_weak(value, whole) ||
				  (value->is_defined && is_rate && columns->rows[i].is_left));
	}
}

/**
 * function_column__is_count - say whether a column's values are integers
 * @column: the column
 *
 * Return: true if so.
 */
bool function_column__is_count(const struct function_column *column)
{
	return !column->per;
}

/**
 * function_column__is_share - say whether a column's values are shares
 * @column: the column
 *
 * Return: true if so.
 */
bool function_column__is_share(const struct function_column *column)
{
	return column->per && !strcmp(column->per, TOTAL);
}

static bool is_recorded(struct function_sums *const *total, size_t nr_total, const char *name)
{
	for (size_t i = 0; i < nr_total; i++) {
		if (set_has(total[i]->set, name))
			return true;
	}
	return false;
}

static int add_column(struct function_columns *columns, const struct function_column *column)
{
	struct function_column *all = realloc(columns->columns,
					      (columns->nr_columns + 1) * sizeof(*all));

	if (!all)
		return -ENOMEM;
	columns->columns = all;
	all[columns->nr_columns++] = *column;
	return 0;
}

static bool has_column(const struct function_columns *columns, const char *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_columns); i++) {
		if (!strcmp(known_columns[i].event, event))
			return true;
	}
	for (unsigned int i = 0; i < columns->nr_columns; i++) {
		if (!strcmp(columns->columns[i].event, event))
			return true;
	}
	return false;
}

/* An event without a short name: NAME/KI. */
static int add_other_column(struct function_columns *columns, const char *event)
{
	struct function_column column = {
		.event = event, .per = "instructions", .scale = 1000, .digits = 3,
	};
	char *printable = function_text__printable(event), *name = NULL, *meaning = NULL;

	if (!printable || asprintf(&name, "%s/KI", printable) < 0)
		name = NULL;
	if (!name || asprintf(&meaning, "%s per 1000 instructions", printable) < 0)
		meaning = NULL;
	free(printable);
	column.name = name;
	column.meaning = meaning;
	if (meaning && !add_column(columns, &column))
		return 0;
	free(name);
	free(meaning);
	return -ENOMEM;
}

/* Those of all events that have none. */
static int add_other_columns(struct function_columns *columns, struct function_sums *const *total,
			     size_t nr_total)
{
	for (size_t i = 0; i < nr_total; i++) {
		const struct event_set *set = total[i]->set;

		for (unsigned int j = 0; j < set->nr_events; j++) {
			if (!has_column(columns, set->events[j]) &&
			    add_other_column(columns, set->events[j]))
				return -ENOMEM;
		}
	}
	return 0;
}

/* The columns whose events were recorded. */
static int add_columns(struct function_columns *columns, struct function_sums *const *total,
		       size_t nr_total)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_columns); i++) {
		const struct function_column *column = &known_columns[i];

		if (i == ARRAY_SIZE(known_columns) - 1 &&
		    is_recorded(total, nr_total, "instructions") &&
		    add_other_columns(columns, total, nr_total))
			return -ENOMEM;
		if (is_recorded(total, nr_total, column->event) &&
		    (!column->per || function_column__is_share(column) ||
		     is_recorded(total, nr_total, column->per)) &&
		    add_column(columns, column))
			return -ENOMEM;
	}
	return 0;
}

/*
 * The sums over all functions, by set: those of one function with all windows. With
 * FUNCTION_BY_CHILDREN there is such a row.
 */
static int add_up(const struct function_table *table, struct function_table *total)
{
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

/* Choose the windows that a row's rates are made of. */
static void choose_reading(struct function_row *row)
{
	double matched = 0, windows = 0;

	for (size_t i = 0; i < row->nr_sums; i++) {
		const struct function_sums *sums = row->sums[i];

		if (event_set__has_share(sums->set, FUNCTION_SHARE_NONE))
			continue;
		matched += sums->matched;
		windows += is_auto(sums) ? sums->begun : sums->samples;
	}
	row->is_left = matched < STAYS * windows;
}

static int add_rows(struct function_columns *columns, const struct function_table *table)
{
	columns->rows = calloc(table->nr_sums ?: 1, sizeof(*columns->rows));
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
		row->values = calloc(columns->nr_columns, sizeof(*row->values));
		if (!row->values)
			return -ENOMEM;
		columns->nr_rows++;
	}
	for (size_t i = 0; i < columns->nr_rows; i++)
		choose_reading(&columns->rows[i]);
	return 0;
}

/* Set the values of a column, where total is the row of all functions. */
static int set_values(struct function_columns *columns, unsigned int c,
		      const struct function_row *total)
{
	const struct function_column *column = &columns->columns[c];
	bool is_share = function_column__is_share(column);
	const char *link = NULL, *leader = NULL;
	struct function_value whole;

	if (is_share && !total->is_inclusive)
		leader = opening_leader(total, column->event);
	if (leader && set_opened_shares(columns, c, total, leader))
		return -ENOMEM;
	if (column->per && !is_share)
		link = common_event(total->sums, total->nr_sums, column->event, column->per);
	for (size_t i = 0; !leader && i < columns->nr_rows; i++)
		columns->rows[i].values[c] = column_value(column, link, &columns->rows[i], total);
	whole = column_value(column, link, total, total);
	finish_values(columns, c, &whole, !is_share && !is_windows(column->event));
	return 0;
}

/**
 * function_columns__init - make the columns and rows of a table
 * @columns: set to them
 * @table: sums, sorted, to be kept as long as @columns
 *
 * Return: 0, -ENOMEM, or -ERANGE if the sums of all functions are too large to add up.
 */
int function_columns__init(struct function_columns *columns, const struct function_table *table)
{
	struct function_table total = {};
	struct function_row all;
	int err;

	memset(columns, 0, sizeof(*columns));
	err = add_up(table, &total) ?: add_columns(columns, total.sums, total.nr_sums) ?:
	      add_rows(columns, table);
	all = (struct function_row){
		.sums = total.sums, .nr_sums = total.nr_sums,
		.is_inclusive = function_by__is(table->by, FUNCTION_BY_CHILDREN),
	};
	choose_reading(&all);
	for (unsigned int i = 0; !err && i < columns->nr_columns; i++)
		err = set_values(columns, i, &all);
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
	if (add_column(columns, column))
		return -ENOMEM;

	finish_values(columns, nr, &(struct function_value){}, true);
	return 0;
}

/**
 * function_columns__exit - free columns and rows
 * @columns: what is freed
 */
void function_columns__exit(struct function_columns *columns)
{
	for (unsigned int i = 0; i < columns->nr_columns; i++) {
		struct function_column *column = &columns->columns[i];
		bool is_known = false;

		for (size_t j = 0; j < ARRAY_SIZE(known_columns); j++)
			is_known |= column->name == known_columns[j].name;
		if (!is_known) {
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
 * function_columns__default_sort - the column to sort by
 * @columns: the columns
 *
 * Return: the share of what is mostly a leader, or the number of samples.
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
 * @column: by which one: largest first, undefined last, equal ones by name
 */
void function_columns__sort(struct function_columns *columns, int column)
{
	qsort_r(columns->rows, columns->nr_rows, sizeof(*columns->rows), compare_rows, &column);
}

/**
 * function_columns__mark_small - mark the rows of a small share
 * @columns: columns with rows
 * @table: what they are of
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

		/* The others of these have windows of what they call. */
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
