// SPDX-License-Identifier: GPL-2.0
/*
 * Estimates the events that the interrupt before a window adds to the window's counts.
 *
 * The handler displaces lines of the program in the caches and branches in the
 * predictors, and a window begins in this state. So does a long interval, which is so
 * long that it hardly matters. For the same work, the program's own events are in
 * proportion to its instructions. So if x are the instructions and y the events of an
 * interval, and if both kinds of intervals have the same a added,
 *
 *	mean y = a + b x mean x,	for windows and for long intervals,
 *
 * two equations with two unknown numbers. b is the rate of the program by itself.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <linux/kernel.h>

#include "../text.h"
#include "../collect/sums.h"
#include "../collect/u192.h"
#include "columns.h"
#include "effect.h"

/* Smaller effects, relative to the counts of windows, are not reported. */
#define LEAST_PART	0.01

/* Returns the variance of the mean of events - b x instructions of an interval. */
static double variance_of_mean(const struct event_set *set,
			       const struct function_intervals *intervals, int y, int x, double b)
{
	const int first = min(x, y), second = max(x, y);
	const struct u192 *values = intervals->values;
	double yy = u192__double(&values[event_set__product(set, y, y)]);
	double xx = u192__double(&values[event_set__product(set, x, x)]);
	double xy = u192__double(&values[event_set__product(set, first, second)]);
	double n = intervals->number;
	double sum = u192__double(&values[y]) - b * u192__double(&values[x]);

	return fmax(yy - 2 * b * xy + b * b * xx - sum * sum / n, 0) / (n * (n - 1));
}

static struct function_effect effect_of(const struct event_set *set, int event, int instructions)
{
	const struct function_intervals *windows = &set->windows, *longs = &set->longs;
	double x = u192__double(&windows->values[instructions]) / windows->number;
	double y = u192__double(&windows->values[event]) / windows->number;
	double other_x = u192__double(&longs->values[instructions]) / longs->number;
	double other_y = u192__double(&longs->values[event]) / longs->number;
	double b = (other_y - y) / (other_x - x), k = x / (other_x - x);
	struct function_effect effect = { .mean = y };

	if (event == instructions || other_x <= x)
		return effect;
	effect.added = y - b * x;
	/* The error of y - b x plus k times its difference to long intervals. */
	effect.error = sqrt(pow(1 + k, 2) * variance_of_mean(set, windows, event, instructions, b) +
			    k * k * variance_of_mean(set, longs, event, instructions, b));
	if (!isfinite(effect.added) || !isfinite(effect.error))
		effect = (struct function_effect){ .mean = y };
	return effect;
}

/**
 * function_effect__is_known - say whether a recording tells what interrupts add
 * @set: the events of a group
 *
 * Return: true or false.
 */
bool function_effect__is_known(const struct event_set *set)
{
	return event_set__find(set, "instructions") >= 0 && set->windows.number > 1 &&
	       set->longs.number > 1;
}

static int set_effects(struct event_set *set)
{
	int instructions = event_set__find(set, "instructions");

	if (set->effects)
		return 0;
	set->effects = calloc(set->nr_events, sizeof(*set->effects));
	if (!set->effects)
		return -ENOMEM;
	if (!function_effect__is_known(set))
		return 0;
	for (unsigned int i = 0; i < set->nr_events; i++)
		set->effects[i] = effect_of(set, i, instructions);
	return 0;
}

static int compare_skids(const void *one, const void *other)
{
	const u64 *a = one, *b = other;

	return *a < *b ? -1 : *a > *b;
}

/**
 * function_table__skid - say how late the windows of the next leader have ended
 * @table: the table
 * @next: the number of the leader's first set, 0 for the first leader; set to that of
 *	  the leader after it
 * @skid: set to the delays; nr is 0 if none is known: of sums files, or without
 *	  periods in the samples
 *
 * Return: 0, -ENOENT if there is no further leader, or -ENOMEM.
 */
int function_table__skid(const struct function_table *table, unsigned int *next,
			 struct function_skid *skid)
{
	u64 *all = NULL, *more;
	double total = 0;

	if (*next >= table->nr_sets)
		return -ENOENT;
	*skid = (struct function_skid){ .leader = table->sets[*next]->events[0] };
	/* Sets are sorted by their leaders. */
	for (; *next < table->nr_sets; (*next)++) {
		const struct event_set *set = table->sets[*next];

		if (strcmp(set->events[0], skid->leader))
			break;
		if (!set->nr_skids)
			continue;
		more = realloc(all, (skid->nr + set->nr_skids) * sizeof(*all));
		if (!more) {
			free(all);
			return -ENOMEM;
		}
		all = more;
		memcpy(all + skid->nr, set->skids, set->nr_skids * sizeof(*all));
		skid->nr += set->nr_skids;
	}
	if (!skid->nr)
		return 0;
	qsort(all, skid->nr, sizeof(*all), compare_skids);
	for (unsigned int i = 0; i < skid->nr; i++)
		total += all[i];
	skid->mean = total / skid->nr;
	skid->median = all[skid->nr / 2];
	skid->percentile_95 = all[(size_t)skid->nr * 95 / 100];
	free(all);
	return 0;
}

/**
 * function_table__set_effects - find what interrupts add to the windows of each group
 * @table: the sums
 *
 * It is found once, until more sums are added to the table. It is 0 where it is not known, see
 * function_effect__is_known().
 *
 * Return: 0, or -ENOMEM.
 */
int function_table__set_effects(const struct function_table *table)
{
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		int err = set_effects(table->sets[i]);

		if (err)
			return err;
	}
	return 0;
}

/**
 * function_effect__is_seen - say whether interrupts add to an event more than chance does
 * @set: the set, whose effects are set
 * @event: place of the event
 *
 * Return: true if they do: by more than three standard errors, and a hundredth of the mean.
 */
bool function_effect__is_seen(const struct event_set *set, unsigned int event)
{
	const struct function_effect *effect = &set->effects[event];

	return fabs(effect->added) > 3 * effect->error &&
	       fabs(effect->added) > LEAST_PART * effect->mean;
}

/**
 * function_effect__on - say what interrupts have added to some windows of a function
 * @set: the set, whose effects are set
 * @windows: how many
 * @event: place of the event, -1 if it is none
 * @unsure: the variance of what is returned is added to this
 *
 * The number differs between functions, but it is unknown by how much: assume a uniform
 * distribution between nothing and twice the mean.
 *
 * Return: how many events; 0 if none are seen.
 */
double function_effect__on(const struct event_set *set, u64 windows, int event, double *unsure)
{
	double added;

	if (event < 0 || !set->effects || !function_effect__is_seen(set, event))
		return 0;
	added = windows * set->effects[event].added;
	*unsure += added * added / 3 + pow(windows * set->effects[event].error, 2);
	return added;
}

/**
 * function_effect__describe - say what interrupts add to a window
 * @set: the set
 *
 * Return: the events that they add, with numbers: to be freed. NULL if none is seen, if
 * the effects are not set, or without memory.
 */
char *function_effect__describe(const struct event_set *set)
{
	char *text = NULL;

	for (unsigned int i = 0; set->effects && i < set->nr_events; i++) {
		const struct function_effect *effect = &set->effects[i];
		char *name, *before = text;

		if (!function_effect__is_seen(set, i))
			continue;
		name = function_text__printable(set->events[i]);
		if (!name || asprintf(&text, "%s%s%.3g of %.3g %s", before ?: "",
				      before ? ", " : "", effect->added, effect->mean, name) < 0)
			text = NULL;
		free(name);
		free(before);
		if (!text)
			break;
	}
	return text;
}
