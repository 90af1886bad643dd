// SPDX-License-Identifier: GPL-2.0
/*
 * Values of rows. A rate is the ratio of the totals of two events in the observations of a row. A
 * share is the total of an event in the even observations of a row, divided by that of all rows; of
 * an event that is only counted together with its leader, it is the leader's share times the rate.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>

#include "functions.h"

/* Values from fewer windows or paths are weak, and those of any source from fewer observations. */
#define FEW		20
#define FEWEST		5
/* So are shares if functions without a rate have a larger part of the leader's events. */
#define MOST_UNKNOWN	0.1
/* The half of the width of an interval, relative to the value. */
#define ROUGH		0.25
#define WIDE		0.5
/*
 * How late samples are where no windows tell, in cycles. Of both events of a CPI, hardly any sample
 * lies so close to an entry that it shows.
 */
#define USUAL_LATE	10
#define LATE_OF_CPI	25
/* The part of the events in the delay that a value has lost or gained. */
#define MOVED_BY_DELAY	0.5

/* Sums of two events over the sets of a source that have both, in a row or in all. */
struct pool {
	double y, x, yy, xy, xx;
	double number;			/* of independent observations */
	double number_y, number_x;	/* of observations */
	double weight, squares;		/* branch records */
	unsigned int nr_sets;
	double copies;			/* how often all have counted y, 0: unknown */
	double once;			/* of y, if each had counted it once */
};

/* Hidden samples have no columns, but operations are related to them. */
static bool is_of(const struct fn_set *set, const struct fn_source *source)
{
	return set->source == source && (!set->is_hidden || source == &fn_samples);
}

/* Where two events are in a set. */
struct place {
	const struct fn_set *set;
	int y, x;
};

/* Where they are in the sets of a source that have both. */
struct places {
	struct place *at;
	unsigned int nr;
};

static void add_to_pool(struct pool *pool, const struct place *at, const struct fn_sums *sums)
{
	const struct fn_set *set = at->set;
	const unsigned int nr = set->nr_events;
	const int y = at->y, x = at->x;
	const double *values;

	pool->nr_sets++;
	pool->copies = set->events[y].copies;
	if (!sums)
		return;
	values = sums->values;
	pool->y += values[y];
	pool->once += values[y] / (pool->copies ?: 1);
	pool->x += values[x];
	pool->yy += fn_sums__product(set, sums, y, y);
	pool->xy += fn_sums__product(set, sums, y, x);
	pool->xx += fn_sums__product(set, sums, x, x);
	if (!set->source->is_joint) {
		pool->number_y += values[2 * nr + y];
		pool->number_x += values[2 * nr + x];
		pool->number += values[2 * nr + y] + (y == x ? 0 : values[2 * nr + x]);
		return;
	}
	pool->number_y += sums->number;
	pool->number_x += sums->number;
	if (set->source == &fn_branches) {
		pool->weight += sums->begun;
		pool->squares += sums->ended;
		pool->number += sums->ended > 0 ? sums->begun * sums->begun / sums->ended : 0;
	} else {
		pool->number += sums->independent;
	}
}

/*
 * Each set of samples has counted all that its recording has, and each set of operations its own.
 */
static double copies_of(const struct pool *pool, const struct fn_source *source)
{
	if (source == &fn_operations)
		return 1;
	return !pool->copies ? pool->nr_sets : pool->y ? pool->y / pool->once : pool->copies;
}

static void add_place(struct places *places, const struct fn_set *set, int y, int x)
{
	struct place *at = realloc(places->at, (places->nr + 1) * sizeof(*at));

	/* Without memory there is no value. */
	if (!at)
		return;
	at[places->nr++] = (struct place){ set, y, x };
	places->at = at;
}

/* @x NULL: the leader of each set. */
static struct places find_places(const struct fn_table *table, const struct fn_source *source,
				 const char *y, const char *x)
{
	struct places places = {};

	fn_table__for_each_set(table, set) {
		int at_y = is_of(set, source) ? fn_set__find(set, y) : -1;
		int at_x = !x ? 0 : at_y < 0 || x == y ? at_y : fn_set__find(set, x);

		if (at_y >= 0 && at_x >= 0)
			add_place(&places, set, at_y, at_x);
	}
	return places;
}

static struct pool pool_at(const struct places *places, const struct fn_row *row)
{
	struct pool pool = {};

	for (unsigned int i = 0; i < places->nr; i++)
		add_to_pool(&pool, &places->at[i], fn_row__sums(row, places->at[i].set));
	return pool;
}

static struct pool pool_of(const struct fn_table *table, const struct fn_row *row,
			   const struct fn_source *source, const char *y, const char *x)
{
	struct places places = find_places(table, source, y, x);
	const struct pool pool = pool_at(&places, row);

	free(places.at);
	return pool;
}

/* The same with y and x exchanged. */
static struct pool turned(struct pool pool)
{
	return (struct pool){
		.y = pool.x, .x = pool.y, .yy = pool.xx, .xy = pool.xy, .xx = pool.yy,
		.number = pool.number, .number_y = pool.number_x, .number_x = pool.number_y,
	};
}

/* Counts with weights are those of observations that have the weight @unit. */
static struct fn_count count_of(const struct fn_source *source, struct pool pool,
				struct pool all, double unit)
{
	struct fn_count count = {
		.total = pool.y / unit, .squares = pool.yy / (unit * unit), .number = pool.number,
		.crowd = all.y > 0 ? all.yy / all.y / unit : 1,
	};

	/* Not more samples than there were if each had the usual period. */
	count.effective = source->is_joint ? pool.number :
			  pool.y > 0 ? pool.y / fmax(pool.yy / pool.y, count.crowd) : 0;
	return count;
}

static void cap_percentage(const struct fn_column *column, struct fn_value *value)
{
	/* The event is a part of the one that it is divided by. */
	if (column->scale == FN_PERCENT)
		value->high = fmin(value->high, fmax(value->value, FN_PERCENT));
}

/*
 * Sets scale x y / x with the error of a ratio estimator (Cochran, Sampling Techniques, 2.11): n /
 * (n - 1) x sum (y_i - R x_i)^2 / x^2, squared. Of event samples, xy is 0.
 */
static void set_ratio(struct fn_value *value, double scale, const struct pool *pool, double number)
{
	const double r = pool->y / pool->x;
	double squares;

	value->value = scale * r;
	if (number < 2)
		return;
	/* If all y_i are R x_i, rounding may give a number below 0. */
	squares = pool->yy - 2 * r * pool->xy + r * r * pool->xx;
	value->error = scale * sqrt(number / (number - 1) * fmax(squares, 0)) / pool->x;
	value->freedom = number - 1;
}

/* Returns an event that both a set with one and a set with other have: cycles, or the first. */
static const char *find_link(const struct fn_table *table, const struct fn_source *source,
			     const char *one, const char *other)
{
	const char *link = NULL;

	fn_table__for_each_set(table, set) {
		if (!is_of(set, source) || fn_set__find(set, one) < 0)
			continue;
		for (unsigned int j = 0; j < set->nr_events; j++) {
			const char *event = set->events[j].name;

			if ((link && (!strcmp(link, "cycles") ||
				      (strcmp(event, "cycles") && strcmp(event, link) >= 0))) ||
			    !pool_of(table, NULL, source, event, other).nr_sets)
				continue;
			link = event;
		}
	}
	return link;
}

/* Even samples of the leaders of all sets of a source that have an event. */
static struct places find_even(const struct fn_table *table, const struct fn_source *source,
			       const char *event)
{
	struct places places = {};

	fn_table__for_each_set(table, set) {
		bool is_known = false;
		int place;

		if (!is_of(set, source) || fn_set__find(set, event) < 0)
			continue;
		place = set->even ? fn_set__find(set->even, set->events[0].name) : -1;
		/* Groups may share the set of their leaders. */
		for (unsigned int j = 0; j < places.nr; j++)
			is_known |= places.at[j].set == set->even;
		if (place >= 0 && !is_known)
			add_place(&places, set->even, place, place);
	}
	return places;
}

/*
 * An estimate of what was counted of an event in a row, from sets that count it with their leader:
 * the leader's even samples times the rate. Returns false if the row has no rate.
 */
static bool estimate_count(const struct places *evens, const struct places *leds,
			   const struct fn_row *row, struct fn_value *count)
{
	const struct pool even = pool_at(evens, row), led = pool_at(leds, row);
	const double samples = even.yy > 0 ? even.y * even.y / even.yy : 0;
	struct fn_value rate = fn_undefined;
	double relative = 0;

	*count = fn_undefined;
	count->number = led.number;
	count->samples = led.number_y;
	if (even.nr_sets && !even.y) {
		count->value = 0;
		count->error = 0;
		return true;
	}
	if (!(led.x > 0) || !samples)
		return false;
	set_ratio(&rate, 1, &led, led.number);
	/* The groups of each leader have counted it. */
	count->value = even.y / even.nr_sets * rate.value;
	if (rate.value > 0)
		relative = rate.error / rate.value;
	count->error = count->value * sqrt(1 / samples + relative * relative);
	count->freedom = rate.freedom;
	return true;
}

/* Whether each period of the sets with an event is a window. */
static bool is_complete(const struct places *places)
{
	for (unsigned int i = 0; i < places->nr; i++) {
		if (!places->at[i].set->is_complete || !places->at[i].set->even)
			return false;
	}
	return places->nr;
}

/* What a column needs for the values of all rows. */
struct context {
	const struct fn_table *table;
	const struct fn_column *column;
	const struct fn_source *source;
	const struct fn_source *per_source;	/* of what it is divided by */
	const char *link;		/* of a rate of several sets */
	bool is_apart;			/* they have no event in common */
	/* Of the event and its divisor; of that alone; of the event that measures time, or work. */
	struct places own, per, time, work;
	/* Of estimates by the leader, whose even samples are @own and @per. */
	struct places led, led_per;
	struct pool all, all_per;	/* of all rows */
	double sum, variance;		/* of a share by the leader: of all estimates */
	double unknown;			/* the leader's events in rows that have none */
	bool is_late;			/* samples of the event are */
	double all_time;
	struct fn_value whole;		/* of all rows */
};

/* A rate of windows whose sets have nothing in common, but all that was counted. */
static struct fn_value counted_rate(const struct context *context, const struct fn_row *row)
{
	const struct fn_column *column = context->column;
	struct fn_value y, x, value = fn_undefined;

	if (!estimate_count(&context->own, &context->led, row, &y) ||
	    !estimate_count(&context->per, &context->led_per, row, &x) || !(x.value > 0))
		return value;
	value.value = column->scale * y.value / x.value;
	value.error = y.value ? value.value * hypot(y.error / y.value, x.error / x.value) : NAN;
	value.freedom = fmin(y.freedom, x.freedom);
	value.number = fmin(y.number, x.number);
	value.samples = fmin(y.samples, x.samples);
	fn_value__log_interval(&value);
	return value;
}

/* The error of a rate of windows or paths that are in different sets. */
static void set_linked_error(struct fn_value *value, const struct pool *y, const struct pool *x)
{
	struct fn_value first = fn_undefined, second = fn_undefined;

	set_ratio(&first, 1, y, y->number);
	set_ratio(&second, 1, x, x->number);
	first.error = first.value > 0 ? first.error / first.value : 0;
	value->error = value->value * hypot(first.error, second.error / second.value);
	value->freedom = fmin(first.freedom, second.freedom);
}

/* y per x of the observations of a row, or of two pools that may have an event in common. */
static struct fn_value rate_of(const struct context *context, const struct fn_row *row)
{
	const struct fn_column *column = context->column;
	const struct fn_source *source = context->source;
	const struct pool all_y = context->all, all_x = context->all_per;
	const double unit = all_y.weight > 0 ? all_y.squares / all_y.weight : 1;
	struct fn_value value = fn_undefined;
	struct fn_pair pair = { .scale = column->scale };
	struct pool y, x;

	if (column->is_apart)
		return value;
	if (context->is_apart && source->is_joint)
		return counted_rate(context, row);
	y = pool_at(&context->own, row);
	x = context->per.nr ? pool_at(&context->per, row) : turned(y);
	pair.y = count_of(source, y, all_y, unit);
	pair.x = count_of(source, x, all_x, unit);
	pair.per = pair.x.total;
	if (context->link)
		pair.per *= y.x / x.x;
	else if (context->is_apart)
		pair.per *= copies_of(&y, source) / copies_of(&x, context->per_source);
	if (!(pair.per > 0))
		return value;
	set_ratio(&value, column->scale, &y, y.number);
	if (context->per.nr) {
		value.value = column->scale * pair.y.total / pair.per;
		set_linked_error(&value, &y, &x);
	}
	value.number = fmin(y.number, x.number);
	value.samples = fmin(y.number_y, x.number_y) ?: x.number_y;
	if (!source->is_joint) {
		double events = pair.y.effective, per = pair.x.effective;

		if (context->link) {
			/* Independent draws. */
			events = 1 / (1 / events +
				      1 / count_of(source, turned(y), turned(all_y), 1).effective);
			per = 1 / (1 / per +
				   1 / count_of(source, turned(x), turned(all_x), 1).effective);
		}
		value.number = fmin(events, per) ?: per;
		value.error = value.value * sqrt(1 / events + 1 / per);
		if (!context->per.nr && fmin(events, per) < 2)
			value.error = NAN;
		value.freedom = 0;
		pair.y.effective = events;
		pair.x.effective = per;
	}
	source->interval(&pair, &value);
	cap_percentage(column, &value);
	return value;
}

/* A share of the total of even observations. */
static struct fn_value even_share(double scale, struct pool own, const struct pool *all)
{
	struct fn_value value = fn_undefined;
	const double n = all->number_y;
	double samples = all->y * all->y / all->yy;

	if (!(all->y > 0))
		return value;
	/* An observation of another row has y_i = 0. */
	own.x = all->y;
	own.xx = all->yy;
	own.xy = own.yy;
	set_ratio(&value, scale, &own, n);
	value.freedom = 0;
	value.number = samples;
	value.samples = own.number_y;
	if (value.error > 0)
		samples = fmin(samples, value.value * (scale - value.value) /
			       (value.error * value.error) * n / (n - 1));
	fn_value__part_interval(&value, scale, samples);
	return value;
}

/* Whether the leader of all sets with an event is the event itself. */
static bool is_leader(const struct fn_table *table, const struct fn_source *source,
		      const char *event)
{
	fn_table__for_each_set(table, set) {
		if (is_of(set, source) && fn_set__find(set, event) > 0)
			return false;
	}
	return true;
}

static struct fn_value share_of(const struct context *context, const struct fn_row *row)
{
	const struct fn_column *column = context->column;
	struct fn_value value, count;
	double part, others;

	/* Chains that were cut are not part of the whole. */
	if (row && fn_by__is(context->table->by, FN_BY_CHILDREN) && fn_row__is(row, FN_CUT))
		return fn_undefined;
	if (!context->led.nr)
		return even_share(column->scale, pool_at(&context->own, row), &context->all);
	if (!estimate_count(&context->own, &context->led, row, &count) || !(context->sum > 0))
		return fn_undefined;
	value = count;
	part = fmin(count.value / context->sum, 1);
	/* The other rows are as uncertain as this one. */
	others = fmax(context->variance - count.error * count.error, 0);
	value.value = column->scale * part;
	value.error = column->scale / context->sum *
		      hypot((1 - part) * count.error, part * sqrt(others));
	fn_value__share_interval(&value, column->scale, context->all.y * context->all.y /
				 context->all.yy);
	return value;
}

/* What holds of an event in any set of a source. */
static struct fn_event marks_of(const struct fn_table *table, const struct fn_source *source,
				const char *event)
{
	struct fn_event marks = { .is_precise = true };

	fn_table__for_each_set(table, set) {
		int place = is_of(set, source) ? fn_set__find(set, event) : -1;

		if (place >= 0)
			fn_event__merge(&marks, &set->events[place]);
	}
	return marks;
}

static const char *mark_of(const struct fn_table *table, const struct fn_source *source,
			   const char *event)
{
	const struct fn_event marks = marks_of(table, source, event);

	if (marks.is_throttled && source->is_even)
		return "throttled";
	return marks.is_stretched ? "turns" : marks.is_scarce ? "scarce" : NULL;
}

const char *fn_row__doubt(const struct fn_table *table, const struct fn_row *row,
			  const struct fn_source *source, const char *event, const char *per)
{
	const bool is_share = !strcmp(per, FN_TOTAL);
	const char *doubt = mark_of(table, source, event);

	if (!doubt && !is_share)
		doubt = mark_of(table, source, per);
	for (unsigned int i = 0; !doubt && source->doubt && i < table->nr_sets; i++) {
		const struct fn_set *set = table->sets[i];
		int y = is_of(set, source) ? fn_set__find(set, event) : -1;
		int x = y < 0 ? -1 : is_share ? 0 : fn_set__find(set, per);

		if (y >= 0 && x >= 0 && (y != x || source->is_even))
			doubt = source->doubt(row, set, y, x);
	}
	return doubt;
}

/* The part of an event that was sampled close to an entry. */
static double near(const struct places *places, const struct fn_row *row, bool is_per,
		   unsigned int nr_bins)
{
	double sum = 0;

	for (unsigned int i = 0; i < places->nr; i++) {
		const struct place *at = &places->at[i];
		const struct fn_sums *sums = fn_row__sums(row, at->set);
		const unsigned int event = is_per ? at->x : at->y;

		for (unsigned int bin = 0; sums && bin < nr_bins; bin++)
			sum += sums->values[(3 + bin) * at->set->nr_events + event];
	}
	return sum;
}

static bool is_late(const struct fn_table *table, const struct fn_source *source,
		    const char *event)
{
	return !marks_of(table, source, event).is_precise;
}

/* A delay of all samples of time alone does little to a rate. */
static bool is_misplaced(const struct fn_table *table, const struct fn_source *source,
			 const char *event)
{
	return !fn_event__is_time(event) && is_late(table, source, event);
}

static void widen(struct fn_value *value, double below, double above)
{
	if (!isfinite(below) || !isfinite(above))
		return;
	fn_value__widen(value, below, above);
	value->low = fmax(value->low, 0);
	value->skid = fmax(below, above);
}

/* The interval also holds what the samples that are not close to an entry say. */
static const char *join_deep(const struct context *context, const struct fn_row *row,
			     struct fn_value *value, struct pool own, unsigned int nr_bins)
{
	const struct fn_column *column = context->column;
	const double y = own.y - near(&context->own, row, /*is_per=*/false, nr_bins);
	const double x = own.x - near(&context->own, row, /*is_per=*/true, nr_bins);
	struct fn_pair pair = { .scale = column->scale, .per = x };
	struct fn_value deep = *value;

	if (own.y <= 0)
		return NULL;
	pair.y = count_of(context->source, (struct pool){ .y = y, .yy = own.yy * y / own.y },
			  context->all, 1);
	pair.x = count_of(context->source, (struct pool){ .y = x, .yy = own.xx * x / own.x },
			  context->all_per, 1);
	/* Less than half of a sample is none. */
	if (fmin(pair.y.effective, pair.x.effective) < 0.5)
		return "skid";
	deep.value = column->scale * y / x;
	context->source->interval(&pair, &deep);
	value->low = fmin(value->low, deep.low);
	value->high = fmax(value->high, deep.high);
	return NULL;
}

/*
 * Skid: samples of an imprecise event are late. So samples close to an entry or a return site may
 * belong to the function before. A function may have lost its part of such samples in all rows: the
 * part that it has of the instructions there, or of time, if samples of instructions are not late.
 * Windows tell how late samples are, and how often a function is left. Without windows, samples of
 * time close to its entry tell how often it is left. Nothing tells then how late samples are, so a
 * longer distance is close to an entry.
 *
 * Widens an interval by what skid may have moved. Returns the doubt, if nothing is left.
 */
static const char *widen_by_skid(const struct context *context, const struct fn_row *row,
				 struct fn_value *value)
{
	const struct fn_column *column = context->column;
	const bool is_share = fn_column__is_share(column);
	const struct places *places = &context->own;
	double late = fn_event__is_time(column->event) && !is_share ? LATE_OF_CPI : USUAL_LATE;
	double exits, all, part, unit, left, moved;
	unsigned int nr_bins = FN_NR_BINS, nr_moved;
	const char *doubt = NULL;
	struct pool own, time;

	if (!fn_value__has_interval(value) || !context->is_late || !context->time.nr)
		return NULL;
	time = pool_at(&context->time, row);
	/* Per cycle */
	exits = fn_windows__exits(context->table, row, &late);
	if (isnan(exits))
		exits = time.y > 0 ?
			near(&context->time, row, /*is_per=*/false, 2) / time.y / 10 : 0;
	else
		nr_bins--;	/* @late has what is farther behind */
	/* The part of the work close to entries in all functions. */
	all = near(&context->work, NULL, /*is_per=*/false, nr_bins);
	part = all > 0 ? near(&context->work, row, /*is_per=*/false, nr_bins) / all : 0;
	own = pool_at(places, row);
	unit = own.y > 0 ? value->value / own.y :
			   column->scale / (is_share ? context->all.y : own.x);
	left = exits * late;
	moved = MOVED_BY_DELAY * left * value->value;
	/* If half of the time is elsewhere, there may be as much as in all functions. */
	if (!value->value)
		moved = fmin(2 * left, 1) * (is_share ? column->scale * time.y /
						       context->all_time : context->whole.value);
	/* A mispredicted call, for one, is sampled in the callee. */
	if (fn_event__is_branch(column->event))
		moved = fmax(moved, exits * time.y * unit);
	/* A constant delay moves every boundary of time alike, and both sides of a rate. */
	nr_moved = fn_event__is_time(column->event) ? 1 : nr_bins;
	widen(value, hypot(moved, unit * near(places, row, /*is_per=*/false, nr_moved)),
	      hypot(moved, unit * part * near(places, NULL, /*is_per=*/false, nr_moved)));
	if (!is_share && own.nr_sets && !context->is_apart && !context->link)
		doubt = join_deep(context, row, value, own, nr_bins);
	cap_percentage(column, value);
	return doubt;
}

/* The one predicate: sets the mark of a value that has its interval. */
static void set_mark(const struct context *context, struct fn_value *value, const char *doubt)
{
	const double size = fabs(value->value ?: context->whole.value);
	const struct fn_source *source = context->source;
	/* Operations are counted exactly. */
	const double few = source->is_joint && !source->is_even ? FEW : FEWEST;

	if (!doubt && (!fn_value__has_interval(value) || value->number < few))
		doubt = "few";
	if (!doubt && fn_value__half_width(value) > WIDE * size)
		doubt = "wide";
	value->doubt = doubt;
	if (doubt)
		value->mark = FN_WEAK;
	else if (fn_value__half_width(value) > ROUGH * size)
		value->mark = FN_ROUGH;
}

/* Values from a crafted file may exceed a double. */
void fn_value__drop_infinite(struct fn_value *value)
{
	if (!isfinite(value->value))
		*value = fn_undefined;
	if (!isfinite(value->error))
		value->error = NAN;
	if (!isfinite(value->low) || !isfinite(value->high)) {
		value->low = NAN;
		value->high = NAN;
	}
}

static void begin_share(struct context *context)
{
	const struct fn_table *table = context->table;
	const struct fn_source *source = context->source;
	const char *event = context->column->event;
	struct fn_value count;

	context->own = source->is_even ? find_places(table, source, event, event) :
					 find_even(table, source, event);
	context->all = pool_at(&context->own, NULL);
	if (source->is_even || is_leader(table, source, event))
		return;
	context->led = find_places(table, source, event, NULL);
	fn_table__for_each_row(table, row) {
		if (estimate_count(&context->own, &context->led, row, &count)) {
			context->sum += count.value;
			context->variance += isnan(count.error) ? 0 : count.error * count.error;
		} else {
			context->unknown += pool_at(&context->own, row).y;
		}
	}
}

static void begin_rate(struct context *context)
{
	const struct fn_table *table = context->table;
	const struct fn_source *source = context->source;
	const char *event = context->column->event, *per = context->column->per;

	context->own = find_places(table, source, event, per);
	context->all = pool_at(&context->own, NULL);
	context->all_per = turned(context->all);
	if (context->own.nr)
		return;
	context->link = context->per_source == source ? find_link(table, source, event, per) : NULL;
	context->is_apart = !context->link;
	if (context->is_apart && source->is_joint) {
		context->own = find_even(table, source, event);
		context->per = find_even(table, source, per);
		context->led = find_places(table, source, event, NULL);
		context->led_per = find_places(table, source, per, NULL);
		return;
	}
	context->own = find_places(table, source, event, context->link ?: event);
	context->per = find_places(table, context->per_source, per, context->link ?: per);
	context->all = pool_at(&context->own, NULL);
	context->all_per = pool_at(&context->per, NULL);
}

/* Finds what the values of all rows have in common. */
static void begin_column(struct context *context, const struct fn_table *table,
			 struct fn_column *column)
{
	static const char *const events[] = { "instructions", "cycles", "cpu-clock", "task-clock" };
	const struct fn_source *source = column->source;

	*context = (struct context){
		.table = table, .column = column, .source = source,
		.per_source = column->per_source ?: source,
	};
	if (column->value)
		return;
	if (fn_column__is_share(column))
		begin_share(context);
	else
		begin_rate(context);
	context->is_late = !source->is_joint && !fn_by__is(table->by, FN_BY_CHILDREN) &&
			   (fn_column__is_share(column) ?
			    is_late(table, source, column->event) :
			    context->per_source != source ||
			    is_misplaced(table, source, column->event) ||
			    is_misplaced(table, source, column->per));
	for (size_t i = 0; context->is_late && i < ARRAY_SIZE(events); i++) {
		if (!context->work.nr && is_late(table, source, events[i]))
			context->work = find_places(table, source, events[i], events[i]);
		if (!context->time.nr && i > 0)
			context->time = find_places(table, source, events[i], events[i]);
	}
	context->all_time = pool_at(&context->time, NULL).y;
	/* Sums compare if both are of all inputs, and are all that was counted. */
	column->is_apart = context->is_apart &&
			   (table->is_partial ||
			    (source->is_joint && !(is_complete(&context->led) &&
						   is_complete(&context->led_per))));
}

static void end_column(struct context *context)
{
	struct places *all[] = {
		&context->own, &context->per, &context->time, &context->work, &context->led,
		&context->led_per,
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		free(all[i]->at);
}

/* Why not to rely on a value, NULL: no reason. Widens its interval by what skid may have moved. */
static const char *doubt_of(const struct context *context, const struct fn_row *row,
			    struct fn_value *value)
{
	const struct fn_column *column = context->column;
	const char *skid = widen_by_skid(context, row, value), *doubt = NULL;

	if (context->unknown > MOST_UNKNOWN * context->all.y)
		return "few";
	if (context->per_source != context->source)
		doubt = fn_row__doubt(context->table, row, context->per_source, column->per,
				      column->per);
	return doubt ?: fn_row__doubt(context->table, row, context->source, column->event,
				      column->per) ?: skid;
}

static struct fn_value value_of(const struct context *context, const struct fn_row *row)
{
	const struct fn_column *column = context->column;
	struct fn_value value;

	if (column->value)
		value = column->value(column, context->table, row);
	else if (fn_column__is_share(column))
		value = share_of(context, row);
	else
		value = rate_of(context, row);
	fn_value__drop_infinite(&value);
	if (row && !column->is_count && fn_value__is_defined(&value))
		set_mark(context, &value,
			 column->value ? value.doubt : doubt_of(context, row, &value));
	return value;
}

int fn_columns__set_values(struct fn_columns *columns, unsigned int first)
{
	const struct fn_table *table = columns->table;
	const unsigned int nr = columns->nr - first;
	struct context *contexts = calloc(nr, sizeof(*contexts));

	if (!contexts)
		return -ENOMEM;
	for (unsigned int i = 0; i < nr; i++) {
		begin_column(&contexts[i], table, &columns->columns[first + i]);
		contexts[i].whole = value_of(&contexts[i], NULL);
	}
	/* All values of a row at once, while its sums are in a cache. */
	fn_table__for_each_row(table, row) {
		for (unsigned int j = 0; j < nr; j++)
			*fn_columns__value(columns, row, first + j) = value_of(&contexts[j], row);
	}
	for (unsigned int i = 0; i < nr; i++)
		end_column(&contexts[i]);
	free(contexts);
	return 0;
}

bool fn_column__has_values(const struct fn_table *table, const struct fn_source *source,
			   const struct fn_column *column)
{
	const struct pool all = pool_of(table, NULL, source, column->event, column->event);
	const bool is_share = fn_column__is_share(column);
	struct places even;

	if (!all.nr_sets ||
	    (!is_share && !pool_of(table, NULL, source, column->per, column->per).nr_sets))
		return false;
	even = find_even(table, source, column->event);
	free(even.at);
	if (is_share && (!even.nr || is_leader(table, source, column->event)))
		return even.nr;
	/* Without cycles, or code, branch records have no instructions. */
	return source != &fn_branches || all.number > 0;
}

struct fn_value fn_row__events(const struct fn_table *table, const struct fn_row *row,
			       const char *event)
{
	const struct fn_source *source = &fn_samples;
	struct fn_value count = fn_undefined;
	struct pool own = {};

	if (fn_table__has_source(table, source, NULL))
		own = pool_of(table, row, source, event, event);
	if (!own.nr_sets) {
		source = &fn_operations;
		own = pool_of(table, row, source, event, event);
	}
	if (own.nr_sets) {
		/* Each group in which the event samples has counted it. */
		count.value = own.y / copies_of(&own, source);
		count.error = sqrt(own.yy) / copies_of(&own, source);
		return count;
	}
	for (int i = 0; fn_sources[i]; i++) {
		struct places even = find_even(table, fn_sources[i], event);
		struct places led = find_places(table, fn_sources[i], event, NULL);
		const bool is_there = !fn_sources[i]->is_even && led.nr;

		if (is_there)
			estimate_count(&even, &led, row, &count);
		/* Each of several events with records has counted all cycles, or a part of them. */
		if (is_there && fn_sources[i] == &fn_branches &&
		    fn_table__has_source(table, &fn_samples, "cycles")) {
			const double factor = fn_row__events(table, NULL, "cycles").value *
					      even.nr / pool_at(&even, NULL).y;

			count.value *= factor;
			count.error *= factor;
		}
		free(even.at);
		free(led.at);
		if (is_there)
			break;
	}
	return count;
}

/* Of a whole recording, whatever a filter has left of it. */
static double total_of(const struct fn_table *table, const struct fn_source *source,
		       const char *event)
{
	const struct places places = find_places(table, source, event, event);
	struct pool pool = {};

	for (unsigned int i = 0; i < places.nr; i++) {
		const struct place *at = &places.at[i];
		const struct fn_sums *all = at->set->windows;

		/* Sums files may lack it. */
		add_to_pool(&pool, at, all->values[at->y] ? all : at->set->total);
	}
	free(places.at);
	return pool.y / copies_of(&pool, source);
}

double fn_operations__per_instruction(const struct fn_table *table)
{
	double operations = total_of(table, &fn_operations, FN_OPERATIONS);
	double instructions = total_of(table, &fn_samples, "instructions");

	/* Windows have instructions only of what a filter has left. */
	if (!(instructions > 0)) {
		operations = fn_row__events(table, NULL, FN_OPERATIONS).value;
		instructions = fn_row__events(table, NULL, "instructions").value;
	}
	return !table->is_partial && instructions > 0 && operations > 0 ?
	       operations / instructions : NAN;
}

/* Whether rates of operations are of all of them, of chosen ones, or of none (NULL). */
const char *fn_operations__base(const struct fn_table *table)
{
	if (total_of(table, &fn_operations, FN_OPERATIONS) > 0)
		return FN_OPERATIONS;
	return total_of(table, &fn_operations, FN_CHOSEN) > 0 ? FN_CHOSEN : NULL;
}

/* The sum of an event in a set, times a weight. */
struct term {
	const struct fn_set *set;
	int place;
	double weight;
};

/*
 * A count of fn_row__counts(), to the first order: that of an event, and if another event relates
 * its set to the main one, those of this event in both sets.
 */
struct counted {
	struct term terms[3];
	unsigned int nr;
};

static void add_term(struct counted *counted, const struct fn_set *set, int place, double weight)
{
	counted->terms[counted->nr++] = (struct term){ set, place, weight };
}

static double covariance(const struct fn_row *row, const struct counted *a,
			 const struct counted *b)
{
	double sum = 0;

	for (unsigned int i = 0; i < a->nr * b->nr; i++) {
		const struct term *one = &a->terms[i / b->nr], *other = &b->terms[i % b->nr];
		const struct fn_sums *sums = fn_row__sums(row, one->set);

		if (sums && one->set == other->set)
			sum += one->weight * other->weight *
			       fn_sums__product(one->set, sums, one->place, other->place);
	}
	return sum;
}

/* Returns the set of a source that has most of some events. */
static const struct fn_set *find_main_set(const struct fn_table *table,
					  const struct fn_source *source,
					  const char *const *events, unsigned int nr)
{
	const struct fn_set *found = NULL;
	unsigned int most = 0;

	fn_table__for_each_set(table, set) {
		unsigned int has = 0;

		for (unsigned int j = 0; is_of(set, source) && j < nr; j++)
			has += fn_set__find(set, events[j]) >= 0;
		if (has > most) {
			most = has;
			found = set;
		}
	}
	return found;
}

/* Finds another set with an event, and what relates it to the main one. */
static bool find_counted(const struct fn_table *table, const struct fn_row *row,
			 const struct fn_set *main, const char *event, struct counted *counted)
{
	fn_table__for_each_set(table, set) {
		const struct fn_sums *own = fn_row__sums(row, set);
		const struct fn_sums *other = fn_row__sums(row, main);
		int place = is_of(set, main->source) ? fn_set__find(set, event) : -1;
		double factor;

		if (place < 0)
			continue;
		for (unsigned int j = 0; j < set->nr_events; j++) {
			int link = fn_set__find(main, set->events[j].name);

			if (link < 0)
				continue;
			if (!own || !other || !(own->values[j] > 0) || !(other->values[link] > 0))
				return true;
			factor = other->values[link] / own->values[j];
			add_term(counted, set, place, factor);
			add_term(counted, set, j, -own->values[place] / own->values[j] * factor);
			add_term(counted, main, link, own->values[place] / own->values[j]);
			return true;
		}
		add_term(counted, set, place, 1);
		return !set->source->is_joint && !table->is_partial;
	}
	return false;
}

bool fn_row__counts(const struct fn_table *table, const struct fn_row *row,
		    const struct fn_source *source, const char *const *events, unsigned int nr,
		    double *counts, double *covariances, double *number)
{
	const struct fn_set *main = find_main_set(table, source, events, nr);
	struct counted *all = calloc(nr ?: 1, sizeof(*all));
	bool are_known = main && all;

	*number = INFINITY;
	for (unsigned int i = 0; are_known && i < nr; i++) {
		const int place = fn_set__find(main, events[i]);
		const struct term *term = &all[i].terms[0];
		const struct fn_sums *sums;
		double samples = 0;

		if (place >= 0)
			add_term(&all[i], main, place, 1);
		else
			are_known = find_counted(table, row, main, events[i], &all[i]);
		sums = all[i].nr ? fn_row__sums(row, term->set) : NULL;
		counts[i] = sums ? sums->values[term->place] * term->weight : 0;
		if (sums)
			samples = source->is_joint ? sums->independent :
				  sums->values[2 * term->set->nr_events + term->place];
		*number = fmin(*number, samples);
	}
	for (unsigned int i = 0; covariances && are_known && i < nr * nr; i++)
		covariances[i] = covariance(row, &all[i / nr], &all[i % nr]);
	free(all);
	return are_known;
}
