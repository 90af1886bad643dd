// SPDX-License-Identifier: GPL-2.0
/*
 * Makes groups of events to record for metrics of functions. The events of a metric go together if
 * there are enough counters. Only the kernel knows which events the counters can count together, so
 * groups are opened to find out.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>

#include "../../debug.h"
#include "../../evsel.h"
#include "../../expr.h"
#include "../../header.h"
#include "../../metricgroup.h"
#include "../../pmu.h"
#include "../../pmus.h"
#include "../../smt.h"
#include "../../strlist.h"
#include "../record.h"
#include "groups.h"
#include "vendor-metrics.h"

/* Converts an event to the syntax of perf record -e: from pmu@event@ to pmu/event/. */
static char *event_of(const char *id)
{
	char *event = strdup(id);

	for (char *c = event; c && *c; c++) {
		if (*c == '@')
			*c = '/';
	}
	return event;
}

/* Adds copies of events; returns false without memory. */
static bool add_all(struct strlist *list, const struct strlist *events)
{
	struct str_node *event;
	int err = 0;

	strlist__for_each_entry(event, (struct strlist *)events)
		err |= strlist__add(list, event->s) == -ENOMEM;
	return !err;
}

/*
 * Adds events, which go together, to the first group that has room for them, or to a new one.
 * Returns 0, -E2BIG if the counters cannot hold them, -ENOMEM.
 */
static int groups_add_events(struct fn_groups *groups, const struct strlist *events)
{
	struct strlist **group = groups->group, **end = group + groups->nr, *both;

	for (; group < end; group++) {
		both = strlist__new(NULL, NULL);
		if (!both || !add_all(both, *group) || !add_all(both, events)) {
			strlist__delete(both);
			return -ENOMEM;
		}
		if (strlist__nr_entries(both) == strlist__nr_entries(*group) ||
		    fn_groups__can_count(groups, both)) {
			strlist__delete(*group);
			*group = both;
			return 0;
		}
		strlist__delete(both);
	}
	if (!fn_groups__can_count(groups, events))
		return -E2BIG;
	group = realloc(groups->group, (groups->nr + 1) * sizeof(*group));
	if (!group)
		return -ENOMEM;
	groups->group = group;
	group += groups->nr;
	*group = strlist__new(NULL, NULL);
	if (!*group)
		return -ENOMEM;
	groups->nr++;
	return add_all(*group, events) ? 0 : -ENOMEM;
}

/* strlist__new() alone would take the commas of an event for separators. */
static struct strlist *one_event(const char *event)
{
	struct strlist *one = strlist__new(NULL, NULL);

	if (one && strlist__add(one, event)) {
		strlist__delete(one);
		one = NULL;
	}
	return one;
}

/* Adds events of a metric that needs more counters than there are, each to any group. */
static int add_apart(struct fn_groups *groups, struct strlist *events)
{
	struct str_node *event;
	int err = 0;

	strlist__for_each_entry(event, events) {
		struct strlist *one = one_event(event->s);

		err = err ?: one ? groups_add_events(groups, one) : -ENOMEM;
		strlist__delete(one);
	}
	return err;
}

/* Returns the events of a metric without the leader's. */
static struct strlist *groups_events_of(const struct function_expr *expr)
{
	struct strlist *events = strlist__new(NULL, NULL);
	char *leader = function_exprs__event_key("cycles");

	for (unsigned int i = 0; events && i < expr->nr_ids; i++) {
		char *key = function_exprs__event_key(function_expr__id(expr, i));
		char *event = event_of(function_expr__id(expr, i));

		if (key && event && leader && strcmp(key, leader))
			strlist__add(events, event);
		free(event);
		free(key);
	}
	free(leader);
	return events;
}

/* Metrics with many events come first, so that others find their events in these groups. */
static int compare_exprs(const void *one, const void *other)
{
	const struct function_expr *a = one, *b = other;

	return a->nr_ids != b->nr_ids ? (int)b->nr_ids - (int)a->nr_ids :
	       strcmp(a->metric.metric_name, b->metric.metric_name);
}

/* Returns the first event that this machine cannot count even alone, else NULL. */
static const char *uncountable(const struct fn_groups *groups, struct strlist *events)
{
	struct str_node *event;

	strlist__for_each_entry(event, events) {
		struct strlist *one = one_event(event->s);
		bool is_counted = one && fn_groups__can_count(groups, one);

		strlist__delete(one);
		if (!is_counted)
			return event->s;
	}
	return NULL;
}

static int add_metric(struct fn_groups *groups, const struct function_expr *expr)
{
	const char *name = expr->metric.metric_name, *missing;
	struct strlist *events = groups_events_of(expr);
	int err = 0;

	if (!events)
		return -ENOMEM;
	for (unsigned int i = 0; i < expr->nr_ids; i++) {
		struct evsel *evsel = expr->expr->metric_events[i];

		if (evsel__is_tool(evsel) || evsel->core.attr.exclude_user) {
			pr_warning("perf functions: the metric %s is left out: %s is not counted per function\n",
				   name, function_expr__id(expr, i));
			goto out;
		}
	}
	missing = uncountable(groups, events);
	if (missing) {
		pr_warning("perf functions: the metric %s is left out: this machine does not count %s in a group led by cycles\n",
			   name, missing);
		goto out;
	}
	err = fn_groups__can_count(groups, events) ? groups_add_events(groups, events) :
						     add_apart(groups, events);
out:
	strlist__delete(events);
	return err;
}

/* Returns this machine's CPU, or the user's choice. */
static char *own_cpu(void)
{
	char *id = get_cpuid_allow_env_override((struct perf_cpu){-1}), *own = NULL;
	double slots = tool_pmu__cpu_slots_per_cycle();

	if (!id)
		pr_err("perf functions: -M: the CPU of this machine is not known: choose one with PERF_CPUID=, see perf list metric\n");
	/* A metric needs the same events, however many slots there are. */
	else if (asprintf(&own, "%s slots=%g smt_on=%d", id, slots >= 1 ? slots : 1,
			  smt_on()) < 0)
		own = NULL;
	free(id);
	return own;
}

/**
 * fn_metrics__add_groups - add the events of metrics
 * @groups: empty groups, with modifiers
 * @names: names of metrics and groups of metrics
 *
 * Return: 0, or a negative errno after a message.
 */
int fn_metrics__add_groups(struct fn_groups *groups, const char *names)
{
	char *own = own_cpu();
	struct function_exprs exprs = {};
	int err = own ? function_exprs__init(&exprs, own, names, /*with_parts=*/false,
					     /*is_silent=*/false) :
		  -EINVAL;

	/* Recording is about this machine. */
	expr__set_machine(NULL);
	if (!err)
		qsort(exprs.expr, exprs.nr, sizeof(*exprs.expr), compare_exprs);
	for (unsigned int i = 0; !err && i < exprs.nr; i++)
		err = add_metric(groups, &exprs.expr[i]);
	if (!err && !groups->nr) {
		err = -ENOENT;
		pr_err("perf functions: -M %s: this machine does not count its events in a group led by cycles: choose another metric, see perf list metric\n",
		       names);
	}
	if (err == -E2BIG)
		pr_err("perf functions: -M %s: another program has taken counters: try again\n",
		       names);
	else if (err == -ENOMEM)
		pr_err("perf functions: -M %s: not enough memory\n", names);
	function_exprs__exit(&exprs);
	free(own);
	return err;
}
