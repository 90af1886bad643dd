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
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../expr.h"
#include "../../header.h"
#include "../../metricgroup.h"
#include "../../parse-events.h"
#include "../../pmu.h"
#include "../../pmus.h"
#include "../../smt.h"
#include "../../strbuf.h"
#include "../../strlist.h"
#include "../../thread_map.h"
#include "groups.h"
#include "vendor-metrics.h"

/* The events of metrics, in groups that fit into the counters of this machine. */
struct event_groups {
	struct strlist **group;
	unsigned int nr;
	/* The modifiers, as in cycles:u. */
	const char *modifiers;
};

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

static char *group_string(const char *leader, const struct strlist *events, const char *modifiers)
{
	struct strbuf text = STRBUF_INIT;
	struct str_node *event;

	strbuf_addf(&text, "{%s", leader);
	strlist__for_each_entry(event, (struct strlist *)events)
		strbuf_addf(&text, ",%s", event->s);
	strbuf_addf(&text, "}:%s", modifiers);
	return strbuf_detach(&text, NULL);
}

/* Returns true if the kernel can count cycles and these events in one group. */
static bool is_countable(const struct strlist *events, const char *modifiers)
{
	struct perf_thread_map *threads = thread_map__new_by_tid(0);
	char *group = group_string("cycles", events, modifiers);
	struct parse_events_error error;
	struct evlist *evlist = evlist__new();
	bool is_countable = false;
	struct evsel *evsel;

	parse_events_error__init(&error);
	if (threads && group && evlist && !parse_events(evlist, group, &error)) {
		is_countable = true;
		evlist__for_each_entry(evlist, evsel) {
			evsel->core.attr.disabled = 1;
			is_countable = is_countable && !evsel__open(evsel, NULL, threads);
		}
		evlist__for_each_entry(evlist, evsel)
			evsel__close(evsel);
	}
	parse_events_error__exit(&error);
	evlist__put(evlist);
	perf_thread_map__put(threads);
	free(group);
	return is_countable;
}

/* Adds missing events to a group if all can be counted together. */
static bool fits(struct strlist **group, struct strlist *events, const char *modifiers)
{
	struct strlist *both = strlist__new(NULL, NULL);
	struct str_node *event;
	bool fits;

	if (!both)
		return false;
	strlist__for_each_entry(event, *group)
		strlist__add(both, event->s);
	strlist__for_each_entry(event, events)
		strlist__add(both, event->s);
	fits = strlist__nr_entries(both) == strlist__nr_entries(*group) ||
	       is_countable(both, modifiers);
	strlist__delete(fits ? *group : both);
	if (fits)
		*group = both;
	return fits;
}

static int groups_add_events(struct event_groups *groups, struct strlist *events)
{
	struct strlist **group;

	for (unsigned int i = 0; i < groups->nr; i++) {
		if (fits(&groups->group[i], events, groups->modifiers))
			return 0;
	}
	group = realloc(groups->group, (groups->nr + 1) * sizeof(*group));
	if (!group)
		return -ENOMEM;
	groups->group = group;
	group += groups->nr;
	*group = strlist__new(NULL, NULL);
	if (!*group)
		return -ENOMEM;
	groups->nr++;
	return fits(group, events, groups->modifiers) ? 0 : -E2BIG;
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
static int add_apart(struct event_groups *groups, struct strlist *events)
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
static const char *uncountable(struct strlist *events, const char *modifiers)
{
	struct str_node *event;

	strlist__for_each_entry(event, events) {
		struct strlist *one = one_event(event->s);
		bool is_counted = one && is_countable(one, modifiers);

		strlist__delete(one);
		if (!is_counted)
			return event->s;
	}
	return NULL;
}

static int add_metric(struct event_groups *groups, const struct function_expr *expr)
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
	missing = uncountable(events, groups->modifiers);
	if (missing) {
		pr_warning("perf functions: the metric %s is left out: this machine does not count %s in a group led by cycles\n",
			   name, missing);
		goto out;
	}
	err = is_countable(events, groups->modifiers) ? groups_add_events(groups, events) :
							add_apart(groups, events);
out:
	strlist__delete(events);
	return err;
}

static void add_groups(struct strbuf *text, const char *leader, const struct event_groups *groups)
{
	for (unsigned int i = 0; i < groups->nr; i++) {
		char *group = group_string(leader, groups->group[i], groups->modifiers);

		/* With S the members are read with each sample. */
		strbuf_addf(text, "%s%sS", text->len ? "," : "", group ?: "");
		free(group);
	}
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

/* Returns a group of those members that this machine counts together, NULL without memory. */
static char *default_group(const char *leader, const char *modifiers, bool is_verbose)
{
	static const char *const members[] = {
		"instructions", "branch-misses", "cache-references", "cache-misses",
	};
	struct strlist *group = strlist__new(NULL, NULL);
	struct strbuf events = STRBUF_INIT, text = STRBUF_INIT;

	for (size_t i = 0; group && i < ARRAY_SIZE(members); i++) {
		struct strlist *one = one_event(members[i]);

		if (one && fits(&group, one, modifiers))
			strbuf_addf(&events, ",%s", members[i]);
		else if (is_verbose)
			pr_info("not counted on this machine: %s\n", members[i]);
		strlist__delete(one);
	}
	strbuf_addf(&text, "{%s%s}:%sS", leader, events.buf, modifiers);
	strbuf_release(&events);
	strlist__delete(group);
	return strbuf_detach(&text, NULL);
}

/* Returns the groups that metrics take on this machine, NULL after a message. */
static char *groups_of_metrics(const char *leader, const char *modifiers, const char *names)
{
	struct strbuf text = STRBUF_INIT;
	char *own = own_cpu();
	struct event_groups groups = { .modifiers = modifiers, };
	struct function_exprs exprs = {};
	int err = own ? function_exprs__init(&exprs, own, names, /*with_parts=*/false,
					       /*is_silent=*/false) :
		  -EINVAL;

	/* Recording is about this machine. */
	expr__set_machine(NULL);
	if (!err)
		qsort(exprs.expr, exprs.nr, sizeof(*exprs.expr), compare_exprs);
	for (unsigned int i = 0; !err && i < exprs.nr; i++)
		err = add_metric(&groups, &exprs.expr[i]);
	if (!err)
		add_groups(&text, leader, &groups);
	if (!err && !groups.nr)
		pr_err("perf functions: -M %s: this machine does not count its events in a group led by cycles: choose another metric, see perf list metric\n",
		       names);
	if (err == -E2BIG)
		pr_err("perf functions: -M %s: another program has taken counters: try again\n",
		       names);
	else if (err == -ENOMEM)
		pr_err("perf functions: -M %s: not enough memory\n", names);
	for (unsigned int i = 0; i < groups.nr; i++)
		strlist__delete(groups.group[i]);
	free(groups.group);
	function_exprs__exit(&exprs);
	free(own);
	return text.len ? strbuf_detach(&text, NULL) : NULL;
}

/**
 * function_groups__choose - choose the events to record
 * @leader: cycles, with the terms of its periods
 * @modifiers: what is counted, "uH" for user space of the host
 * @metrics: names of metrics and groups that need the events, NULL: the default metrics
 * @is_verbose: print which events of the default metrics are left out
 *
 * Return: an event list for perf record, to be freed; NULL if there is none, after a message, or
 * without memory.
 */
char *function_groups__choose(const char *leader, const char *modifiers, const char *metrics,
			      bool is_verbose)
{
	return metrics ? groups_of_metrics(leader, modifiers, metrics) :
			 default_group(leader, modifiers, is_verbose);
}
