/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_EFFECT_H
#define __PERF_FUNCTIONS_EFFECT_H

#include <stdbool.h>
#include <linux/types.h>

struct event_set;
struct function_table;

/*
 * The counts that the interrupt before an interval adds to it: the mean of an event in
 * windows, the part of it that is added, and the standard error of that part.
 */
struct function_effect {
	double mean;
	double added;
	double error;
};

/* How late windows of a leader have ended, in events of it. */
struct function_skid {
	const char *leader;
	unsigned int nr;	/* of windows for which this is known */
	double mean;
	u64 median;
	u64 percentile_95;
};

int function_table__skid(const struct function_table *table, unsigned int *set,
			 struct function_skid *skid);
int function_table__set_effects(const struct function_table *table);
bool function_effect__is_known(const struct event_set *set);
bool function_effect__is_seen(const struct event_set *set, unsigned int event);
double function_effect__on(const struct event_set *set, u64 windows, int event, double *unsure);
char *function_effect__describe(const struct event_set *set);

#endif /* __PERF_FUNCTIONS_EFFECT_H */
