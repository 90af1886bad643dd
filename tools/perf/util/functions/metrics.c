// SPDX-License-Identifier: GPL-2.0
/*
 * The metrics that vendors define for their CPUs (pmu-events/), of each row: -M. metricgroup.c and
 * expr.c find their events and evaluate them. This file knows the CPU of a recording, asks for the
 * counts of a row, and finds out which events to record.
 *
 * The error of a metric is that of a function of totals, by the delta method (Cochran, Sampling
 * Techniques, 6.5 and 6.19): the derivative of the metric by each event, and the covariances of
 * their counts.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../debug.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../expr.h"
#include "../hashmap.h"
#include "../header.h"
#include "../metricgroup.h"
#include "../pmu.h"
#include "../rblist.h"
#include "../smt.h"
#include "../string2.h"
#include "../strlist.h"
#include "functions.h"
#include "pmu-events/pmu-events.h"

/* Relative to a total: the step of a numerical derivative. */
#define STEP		(1.0 / (1 << 17))
/* More metrics that lack something are only counted. */
#define MOST_TOLD	8

/* A metric of perf's tables: the vendor's expression of counts. */
struct fn_metric {
	struct pmu_metric metric;
	struct evlist *evlist;
	struct rblist metric_events;
	const struct metric_expr *expr;
	char **names;		/* of its events, as tables know them */
	unsigned int nr;
	const char *unit;
	double scale;
	char *lacks;		/* why it has no values, NULL if it has some */
	const struct fn_source *source;
	const struct fn_columns *columns;	/* its own is one of them */
};

char *fn_metrics__cpu;

/*
 * The CPU that was recorded
 */

static struct {
	const char *description;	/* of perf_env__describe_cpu() */
	struct fn_cpu id;
	double slots, smt_on;		/* literals, NAN if not known */
	const struct pmu_metrics_table *metrics;
	struct hashmap *events;		/* of its table: name to terms */
	char unknown[32];		/* a literal that was asked for and is not known */
} cpu;

static int add_event(const struct pmu_event *event,
		     const struct pmu_events_table *table __maybe_unused, void *data)
{
	struct hashmap *events = data;
	char *name, *terms;

	/* Events of other PMUs are not of a core, and not counted in functions. */
	if (!event->event || (strcmp(event->pmu, "default_core") && !strstarts(event->pmu, "cpu")))
		return 0;
	name = function_text__lower(event->name);
	terms = strdup(event->event);
	if (!name || !terms || hashmap__add(events, name, terms)) {
		/* Another kind of core has an event of this name. */
		free(name);
		free(terms);
	}
	return 0;
}

/* Returns the value of a literal. The number of CPUs and the like do not apply to a function. */
static double cpu_literal(const char *literal)
{
	double value = NAN;

	if (!strcasecmp(literal, "#slots"))
		value = cpu.slots;
	else if (!strcasecmp(literal, "#smt_on"))
		value = cpu.smt_on;
	else if (!strcasecmp(literal, "#core_wide"))
		value = cpu.smt_on == 0;	/* counts are those of a thread */
	if (!isnan(value))
		return value;
	scnprintf(cpu.unknown, sizeof(cpu.unknown), "%s", literal);
	return 1;
}

/* Compares like strcmp_cpuid_str() of arm64 and of others. */
static double cpu_is(const char *id)
{
	struct fn_cpu wanted;

	if (strcmp(cpu.id.arch, "arm64"))
		return !strcmp_cpuid_str(id, cpu.id.full);
	fn_cpu__events(&wanted, id);
	return !strcmp(wanted.id, cpu.id.id) &&
	       strtoull(cpu.id.full, NULL, 16) >= strtoull(id, NULL, 16);
}

static double cpu_has_event(const char *id)
{
	char *name = function_text__lower(id);
	double has = name && hashmap__find(cpu.events, name, NULL);

	free(name);
	return has;
}

static const struct expr_machine cpu_machine = {
	.literal		= cpu_literal,
	.strcmp_cpuid_str	= cpu_is,
	.has_event		= cpu_has_event,
};

/* Sets the CPU by its description. Returns an error after a message if perf has no tables of it. */
static int set_cpu(const char *description)
{
	const struct pmu_events_table *events;

	memset(&cpu, 0, sizeof(cpu));
	cpu.description = description;
	cpu.slots = NAN;
	cpu.smt_on = NAN;
	for (const char *word = strchr(description, ' '); word; word = strchr(word + 1, ' ')) {
		if (strstarts(word, " slots="))
			cpu.slots = strtoul(strchr(word, '=') + 1, NULL, 0);
		if (strstarts(word, " smt_on="))
			cpu.smt_on = strtoul(strchr(word, '=') + 1, NULL, 0);
	}

	events = fn_cpu__events(&cpu.id, description);
	cpu.metrics = events ? find_core_metrics_table(cpu.id.arch, cpu.id.id) : NULL;
	if (!cpu.metrics) {
		fn_err("-M: perf has no metrics of the CPU %s: choose another with PERF_CPUID=",
		       cpu.id.full);
		return -ENOENT;
	}
	cpu.events = ids__new();
	if (!cpu.events)
		return -ENOMEM;
	expr__set_machine(&cpu_machine);
	return pmu_events_table__for_each_event(events, NULL, add_event, cpu.events);
}

/*
 * A metric, and its events by what they count
 */

/* Adds terms to those of an event, in place of those with the same name. */
static int add_terms(struct strlist *terms, const char *list)
{
	char *copy = strdup(list), *rest = copy, *term;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (term = strsep(&rest, ",")) != NULL) {
		const size_t length = strcspn(term, "=") + 1;
		struct str_node *other, *next;
		const char *known;

		/* The kernel has this name for it. */
		if (!strcmp(term, "slots") && fn_cpu__vendor(cpu.description) == FN_VENDOR_INTEL)
			term = (char *)"topdown.slots";
		if (cpu.events && hashmap__find(cpu.events, term, &known)) {
			err = add_terms(terms, known);
			continue;
		}
		strlist__for_each_entry_safe(other, next, terms) {
			if (!strncmp(other->s, term, length) && term[length - 1])
				strlist__remove(terms, other);
		}
		err = strlist__add(terms, term) == -ENOMEM ? -ENOMEM : 0;
	}
	free(copy);
	return err;
}

/*
 * Finds the number of an event that perf's tables name, such as UOPS_EXECUTED.CORE,cmask=1. Returns
 * false if there is more to it than a number.
 */
static bool find_config(const char *event, u64 *config)
{
	struct strlist *terms = strlist__new(NULL, NULL);
	struct str_node *term;
	char all[256] = "";
	size_t size = 0;
	bool is_found = terms && !add_terms(terms, event);

	if (is_found) {
		strlist__for_each_entry(term, terms)
			size += scnprintf(all + size, sizeof(all) - size, ",%s", term->s);
		is_found = *all && fn_event__config(all + 1, fn_cpu__vendor(cpu.description),
						    config);
	}
	strlist__delete(terms);
	return is_found;
}

/* Converts an event of a metric to the syntax of perf record -e: from pmu@event@ to pmu/event/. */
static char *event_of(const struct evsel *evsel)
{
	return strreplace_chars('@', evsel__metric_id(evsel), "/");
}

/* Names an event of a metric as tables do, by what it counts. */
static char *name_of(const struct evsel *evsel)
{
	struct perf_event_attr attr = evsel->core.attr;
	char *event = event_of(evsel), *lower, *terms, *name = NULL;
	u64 config;

	lower = event ? function_text__lower(event) : NULL;
	terms = lower;
	if (attr.type > PERF_TYPE_SOFTWARE && attr.type != PERF_TYPE_HW_CACHE && lower) {
		/* Without its PMU, and modifiers */
		strsep(&terms, "/");
		terms = terms ?: lower;
		terms[strcspn(terms, "/:")] = '\0';
		memset(&attr, 0, sizeof(attr));
		attr.type = PERF_TYPE_RAW;
		/* Else its name is all that is known. */
		attr.config = find_config(terms, &config) ? config : ~0ULL;
	}
	if (lower)
		name = fn_event__name(&attr, event, NULL, cpu.description);
	free(lower);
	free(event);
	return name;
}

/* Several metrics may share a name, for kinds of cores that this machine lacks. */
static const struct metric_expr *find_expr(struct rblist *metric_events,
					   const struct pmu_metric *metric)
{
	for (unsigned int i = 0; i < rblist__nr_entries(metric_events); i++) {
		struct rb_node *node = rblist__entry(metric_events, i);
		struct metric_event *event = container_of(node, struct metric_event, nd);
		struct metric_expr *expr;

		list_for_each_entry(expr, &event->head, nd) {
			if (!strcmp(expr->metric_name, metric->metric_name) &&
			    !strcmp(expr->metric_expr, metric->metric_expr))
				return expr;
		}
	}
	return NULL;
}

void fn_metric__delete(struct fn_metric *metric)
{
	if (!metric)
		return;
	if (metric->metric_events.nr_entries)
		metricgroup__rblist_exit(&metric->metric_events);
	evlist__put(metric->evlist);
	for (unsigned int i = 0; metric->names && i < metric->nr; i++)
		free(metric->names[i]);
	free(metric->names);
	free(metric->lacks);
	free(metric);
}

const char *fn_metric__event(const struct fn_metric *metric, unsigned int i)
{
	return i < metric->nr ? evsel__metric_id(metric->expr->metric_events[i]) : NULL;
}

const char *fn_metric__lacks(const struct fn_metric *metric)
{
	return metric->lacks;
}

static int find_events(struct fn_metric *metric)
{
	int err = 0;

	if (*cpu.unknown && asprintf(&metric->lacks, "%s of the recorded machine is not known",
				     cpu.unknown) < 0)
		return -ENOMEM;
	while (metric->expr->metric_events[metric->nr])
		metric->nr++;
	metric->names = calloc(metric->nr + 1, sizeof(*metric->names));
	if (!metric->names)
		return -ENOMEM;
	for (unsigned int i = 0; !err && i < metric->nr; i++) {
		const struct evsel *evsel = metric->expr->metric_events[i];

		metric->names[i] = name_of(evsel);
		err = metric->names[i] ? 0 : -ENOMEM;
		/* Counts of the kernel alone are not those of a function. */
		if (!metric->lacks && (evsel__is_tool(evsel) || evsel->core.attr.exclude_user) &&
		    asprintf(&metric->lacks, "%s is not counted per function",
			     fn_metric__event(metric, i)) < 0)
			err = -ENOMEM;
	}
	return err;
}

struct fn_metric *fn_metric__new(const struct pmu_metrics_table *table,
				 const struct pmu_metric *pmu_metric)
{
	struct fn_metric *metric = zalloc(sizeof(*metric));
	char *unit = NULL;
	int err;

	if (!metric)
		return NULL;
	metric->metric = *pmu_metric;
	metric->scale = 1;
	if (pmu_metric->unit && !perf_pmu__convert_scale(pmu_metric->unit, &unit, &metric->scale))
		metric->unit = unit;
	*cpu.unknown = '\0';
	metric->evlist = evlist__new();
	err = metric->evlist ? metricgroup__parse_metric(metric->evlist, table, pmu_metric,
							 &metric->metric_events) : -ENOMEM;
	if (!err)
		metric->expr = find_expr(&metric->metric_events, pmu_metric);
	if (!metric->expr || find_events(metric)) {
		fn_metric__delete(metric);
		return NULL;
	}
	return metric;
}

double fn_metric__evaluate(const struct fn_metric *metric, const double *counts)
{
	struct expr_parse_ctx *ctx = expr__ctx_new();
	double value = NAN;

	if (!ctx)
		return NAN;
	ctx->sctx.runtime = metric->expr->runtime;
	for (unsigned int i = 0; i < metric->nr; i++) {
		char *id = strdup(fn_metric__event(metric, i));

		if (!id || expr__add_id_val(ctx, id, counts[i]))
			free(id);
	}
	for (struct metric_ref *ref = metric->expr->metric_refs; ref && ref->metric_name; ref++)
		expr__add_ref(ctx, ref);
	if (expr__parse(&value, ctx, metric->expr->metric_expr))
		value = NAN;
	expr__ctx_free(ctx);
	return metric->scale * value;
}

/*
 * Values of rows
 */

/* Finds the source of a metric. Sets what it lacks if there is none. */
static int find_source(struct fn_metric *metric, const struct fn_table *table)
{
	double counts[metric->nr + 1], number;

	if (metric->lacks)
		return 0;
	for (int i = 0; fn_sources[i]; i++) {
		if (fn_table__has_source(table, fn_sources[i], NULL) &&
		    fn_row__counts(table, NULL, fn_sources[i], (const char *const *)metric->names,
				   metric->nr, counts, NULL, &number)) {
			metric->source = fn_sources[i];
			return 0;
		}
	}
	for (unsigned int i = 0; i < metric->nr; i++) {
		if (!fn_table__has_event(table, metric->names[i]))
			return asprintf(&metric->lacks, "%s was not recorded",
					fn_metric__event(metric, i)) < 0 ? -ENOMEM : 0;
	}
	metric->lacks = strdup("groups with different leaders have its events");
	return metric->lacks ? 0 : -ENOMEM;
}

/* Returns the numerical derivative of a metric by an event. */
static double slope(const struct fn_metric *metric, double *counts, unsigned int i)
{
	const double count = counts[i], step = STEP * count;
	double above, below;

	/* Nothing has counted it. */
	if (!count)
		return 0;
	counts[i] = count + step;
	above = fn_metric__evaluate(metric, counts);
	counts[i] = count - step;
	below = fn_metric__evaluate(metric, counts);
	counts[i] = count;
	return (above - below) / (2 * step);
}

/* Returns what late samples may have moved of an event, as a part: that of its share. */
static double skid_of(const struct fn_metric *metric, const struct fn_row *row, const char *event)
{
	for (unsigned int i = 0; row && i < metric->columns->nr; i++) {
		const struct fn_column *column = &metric->columns->columns[i];
		const struct fn_value *share = fn_columns__value(metric->columns, row, i);

		if (column->source == metric->source && fn_column__is_share(column) &&
		    !strcmp(column->event, event))
			return share->value > 0 ? share->skid / share->value : 0;
	}
	return 0;
}

static struct fn_value value_of(const struct fn_column *column, const struct fn_table *table,
				const struct fn_row *row)
{
	const struct fn_metric *metric = column->metric;
	const unsigned int nr = metric->nr;
	double counts[nr + 1], slopes[nr + 1], covariances[nr * nr + 1], number, variance = 0;
	double moved = 0;
	struct fn_value value = fn_undefined;

	if (!metric->source ||
	    !fn_row__counts(table, row, metric->source, (const char *const *)metric->names, nr,
			    counts, covariances, &number))
		return value;
	value.value = fn_metric__evaluate(metric, counts);
	if (!isfinite(value.value) || !(number > 0)) {
		value.value = NAN;
		return value;
	}
	for (unsigned int i = 0; i < nr; i++) {
		slopes[i] = slope(metric, counts, i);
		moved = fmax(moved, fabs(slopes[i] * counts[i]) *
			     fmax(skid_of(metric, row, metric->names[i]), metric->source->error));
	}
	for (unsigned int i = 0; i < nr * nr; i++)
		variance += slopes[i / nr] * slopes[i % nr] * covariances[i];
	value.number = number;
	value.samples = number;
	for (unsigned int i = 0; !value.doubt && i < nr; i++)
		value.doubt = fn_row__doubt(table, row, metric->source, metric->names[i], FN_TOTAL);
	if (number > 1) {
		value.freedom = number - 1;
		value.error = sqrt(fmax(variance, 0) * number / (number - 1));
		fn_value__plain_interval(&value);
		fn_value__widen(&value, moved, moved);
	}
	return value;
}

/*
 * The metrics that were asked for
 */

/* The metrics of one CPU; only one may exist at a time. */
struct metrics {
	struct fn_metric **all;
	unsigned int nr;
	unsigned int nr_found;	/* of all names, also those that cannot be parsed */
	const char *name;	/* to look for */
	bool (*matches)(const struct pmu_metric *metric, const char *name);
	bool has_all;		/* of all metrics of the CPU */
	bool is_silent;
};

/* Semicolons separate the groups of a metric. */
static bool is_in_group(const struct pmu_metric *metric, const char *group)
{
	const size_t length = strlen(group);

	for (const char *own = metric->metric_group; own && *own; own = strchr(own, ';')) {
		own += *own == ';';
		if (strcspn(own, ";") == length && !strncasecmp(own, group, length))
			return true;
	}
	return false;
}

static bool is_named(const struct pmu_metric *metric, const char *name)
{
	return !strcasecmp(metric->metric_name, name) || !strcasecmp(name, "all") ||
	       is_in_group(metric, name);
}

static bool is_in_group_like(const struct pmu_metric *metric, const char *name)
{
	return metric->metric_group && strcasestr(metric->metric_group, name);
}

/* Adds a metric if it matches, and is not there yet. */
static int find_metric(const struct pmu_metric *pmu_metric,
		       const struct pmu_metrics_table *table, void *data)
{
	struct metrics *metrics = data;
	struct fn_metric *metric, **all;

	if (!metrics->matches(pmu_metric, metrics->name))
		return 0;
	metrics->nr_found++;
	for (unsigned int i = 0; i < metrics->nr; i++) {
		if (!strcmp(metrics->all[i]->metric.metric_name, pmu_metric->metric_name) &&
		    !strcmp(metrics->all[i]->metric.pmu, pmu_metric->pmu))
			return 0;
	}
	metric = fn_metric__new(table, pmu_metric);
	if (!metric) {
		if (!metrics->is_silent)
			fn_warn("the metric %s is left out: this perf cannot parse it",
				pmu_metric->metric_name);
		return 0;
	}
	all = realloc(metrics->all, (metrics->nr + 1) * sizeof(*all));
	if (!all) {
		fn_metric__delete(metric);
		return -ENOMEM;
	}
	metrics->all = all;
	all[metrics->nr++] = metric;
	return 0;
}

/* Returns whether there are metrics of a name. */
static bool find_by(struct metrics *metrics, const char *name,
		    bool (*matches)(const struct pmu_metric *metric, const char *name))
{
	const unsigned int nr_before = metrics->nr_found;

	metrics->name = name;
	metrics->matches = matches;
	pmu_metrics_table__for_each_metric(cpu.metrics, find_metric, metrics);
	return metrics->nr_found > nr_before;
}

/* Finds metrics and groups like perf stat, or else groups whose names contain the word. */
static int find_metrics(struct metrics *metrics, const char *names)
{
	char *copy = strdup(names), *rest = copy, *name;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (name = strsep(&rest, ",")) != NULL) {
		metrics->has_all |= !strcasecmp(name, "all");
		if (!*name || find_by(metrics, name, is_named) ||
		    find_by(metrics, name, is_in_group_like))
			continue;
		/* Older Arm CPUs without slots have the first level in another group. */
		if (!strcasecmp(name, "TopdownL1") &&
		    find_by(metrics, "Cycle_Accounting", is_named)) {
			if (!metrics->is_silent)
				fn_warn("the top-down level 1 of the CPU %s is Cycle_Accounting",
					cpu.id.id);
			continue;
		}
		fn_err("no metric or group %s for the CPU %s: see PERF_CPUID=%s perf list metric",
		       name, cpu.id.id, cpu.id.id);
		err = -EINVAL;
	}
	free(copy);
	if (!err && !metrics->nr_found) {
		fn_err("-M takes names of metrics or groups: see PERF_CPUID=%s perf list metric",
		       cpu.id.id);
		err = -EINVAL;
	}
	return err;
}

static void metrics__exit(struct metrics *metrics)
{
	for (unsigned int i = 0; i < metrics->nr; i++)
		fn_metric__delete(metrics->all[i]);
	free(metrics->all);
	expr__set_machine(NULL);
	ids__free(cpu.events);
	memset(&cpu, 0, sizeof(cpu));
}

/* Returns 0, or an error after a message. To be freed even then. */
static int metrics__init(struct metrics *metrics, const char *description, const char *names)
{
	return set_cpu(description) ?: find_metrics(metrics, names);
}

/* Returns the CPU whose metrics are used: the recorded one or the user's choice. */
static char *choose_cpu(const struct fn_table *table)
{
	const char *chosen = fn_metrics__cpu, *literals = NULL;
	const char *recorded = table->nr_cpus == 1 ? table->cpus[0] : NULL;
	char *both;

	if (!chosen && !recorded && table->nr_cpus)
		fn_err("-M: these are sums of several kinds of CPUs (%s, %s): choose one with PERF_CPUID=",
		       table->cpus[0], table->cpus[1]);
	else if (!chosen && !recorded)
		fn_err("-M: the recording does not tell its CPU: choose one with PERF_CPUID=");
	if (!chosen)
		return recorded ? strdup(recorded) : NULL;
	if (recorded && !strchr(chosen, ' '))
		literals = strchr(recorded, ' ');
	return asprintf(&both, "%s%s", chosen, literals ?: "") < 0 ? NULL : both;
}

/* Takes the metric. */
static int add_column(struct fn_columns *columns, struct fn_metric *metric)
{
	const char *unit = metric->unit ?: "", *desc = metric->metric.desc ?: "";
	const bool is_percent = strstarts(unit, "percent") || *unit == '%';
	const char *divides = NULL;
	char *meaning, *title = fn_columns__new_title(columns, metric->metric.pmu, "%s",
						      metric->metric.metric_name);
	int err = -ENOMEM;

	if (is_percent && (is_in_group(&metric->metric, "TopdownL1") ||
			   is_in_group(&metric->metric, "PipelineL1")))
		divides = "slots";
	else if (is_percent && is_in_group(&metric->metric, "Cycle_Accounting"))
		divides = "cycles";
	if (asprintf(&meaning, *unit ? "%s (%s)" : "%s", desc, unit) < 0)
		meaning = NULL;
	metric->columns = columns;
	if (title && meaning)
		err = fn_columns__add(columns, &(struct fn_column){
			.title = title, .meaning = meaning, .scale = is_percent ? 100 : 1,
			.digits = is_percent ? 1 : 3, .unit = metric->unit,
			.source = metric->source, .value = value_of, .metric = metric,
			.divides = divides,
		});
	free(title);
	free(meaning);
	if (err)
		fn_metric__delete(metric);
	return err;
}

/* A metric in the group of another one is a part of it. */
static void link_parts(struct fn_columns *columns, unsigned int first)
{
	for (unsigned int i = first; i < columns->nr; i++) {
		struct fn_column *part = &columns->columns[i];
		const struct fn_metric *metric = part->metric;

		for (unsigned int j = first; j < columns->nr; j++) {
			char group[128];

			scnprintf(group, sizeof(group), "%s_group", columns->columns[j].title);
			if (i != j && is_in_group(&metric->metric, group))
				part->parent = columns->columns[j].title;
		}
	}
}

static void print_lacks(const struct metrics *metrics)
{
	const char *separator = "perf functions: no value (-) for";
	unsigned int nr = 0;

	for (unsigned int i = 0; i < metrics->nr; i++) {
		if (!metrics->all[i]->lacks || nr++ >= MOST_TOLD)
			continue;
		pr_warning("%s %s (%s)", separator, metrics->all[i]->metric.metric_name,
			   metrics->all[i]->lacks);
		separator = ",";
	}
	if (nr > MOST_TOLD)
		pr_warning(" and %u more", nr - MOST_TOLD);
	if (nr)
		pr_warning("\n");
}

int fn_metrics__add(struct fn_columns *columns, const char *names, bool is_silent)
{
	const unsigned int first = columns->nr;
	char *description = choose_cpu(columns->table);
	struct metrics metrics = { .is_silent = is_silent };
	int err = description ? metrics__init(&metrics, description, names) : -EINVAL;

	for (unsigned int i = 0; !err && i < metrics.nr; i++)
		err = find_source(metrics.all[i], columns->table);
	if (!err && !metrics.has_all && !is_silent)
		print_lacks(&metrics);
	for (unsigned int i = 0; !err && i < metrics.nr; i++) {
		struct fn_metric *metric = metrics.all[i];

		/* Of all metrics, those that have values. */
		if (metrics.has_all && metric->lacks)
			continue;
		metrics.all[i] = NULL;
		err = add_column(columns, metric);
	}
	if (!err)
		link_parts(columns, first);
	metrics__exit(&metrics);
	free(description);
	return err;
}

/*
 * Groups of events to record. The events of a metric go together if there are enough counters.
 */

/* Returns the events of both lists; NULL without memory. */
static struct strlist *join(const struct strlist *one, const struct strlist *other)
{
	struct strlist *both = strlist__new(NULL, NULL);
	struct str_node *event;
	int err = 0;

	strlist__for_each_entry(event, (struct strlist *)one)
		err |= both ? strlist__add(both, event->s) == -ENOMEM : 1;
	strlist__for_each_entry(event, (struct strlist *)other)
		err |= both ? strlist__add(both, event->s) == -ENOMEM : 1;
	if (!err)
		return both;
	strlist__delete(both);
	return NULL;
}

/*
 * Adds events, which go together, to the first group that has room for them, or to a new one.
 * Returns 0, -E2BIG if the counters cannot hold them, -ENOMEM.
 */
static int add_together(struct fn_groups *groups, struct strlist *events)
{
	struct strlist **all = realloc(groups->group, (groups->nr + 1) * sizeof(*all));

	if (!all)
		return -ENOMEM;
	groups->group = all;
	for (unsigned int i = 0; i <= groups->nr; i++) {
		struct strlist *group = i < groups->nr ? all[i] : NULL;
		struct strlist *both = join(group ?: events, events);

		if (!both)
			return -ENOMEM;
		if ((group && strlist__nr_entries(both) == strlist__nr_entries(group)) ||
		    fn_groups__can_count(groups, both)) {
			all[i] = both;
			strlist__delete(group);
			groups->nr += !group;
			return 0;
		}
		strlist__delete(both);
	}
	return -E2BIG;
}

/* Adds the events of a metric, apart if it needs more counters than there are. */
static int add_events(struct fn_groups *groups, const struct fn_metric *metric,
		      struct strlist *events)
{
	struct str_node *event;
	int err = add_together(groups, events);

	if (err != -E2BIG)
		return err;
	strlist__for_each_entry(event, events) {
		/* strlist__new() alone would take the commas of an event for separators. */
		struct strlist *one = strlist__new(NULL, NULL);

		err = one && !strlist__add(one, event->s) ? add_together(groups, one) : -ENOMEM;
		strlist__delete(one);
		if (err == -E2BIG)
			fn_warn("the metric %s is left out: this machine does not count %s in a group led by cycles",
				metric->metric.metric_name, event->s);
		if (err)
			return err == -E2BIG ? 0 : err;
	}
	return 0;
}

static int add_metric(struct fn_groups *groups, const struct fn_metric *metric)
{
	struct strlist *events;
	int err = 0;

	if (metric->lacks) {
		fn_warn("the metric %s is left out: %s", metric->metric.metric_name, metric->lacks);
		return 0;
	}
	events = strlist__new(NULL, NULL);
	for (unsigned int i = 0; events && !err && i < metric->nr; i++) {
		char *event = event_of(metric->expr->metric_events[i]);

		/* The leader is there already. */
		if (!event || (strcmp(metric->names[i], "cycles") &&
			       strlist__add(events, event) == -ENOMEM))
			err = -ENOMEM;
		free(event);
	}
	err = err ?: events ? add_events(groups, metric, events) : -ENOMEM;
	strlist__delete(events);
	return err;
}

/* Metrics with many events come first, so that others find their events in these groups. */
static int compare_metrics(const void *one, const void *other)
{
	const struct fn_metric *a = *(const struct fn_metric *const *)one;
	const struct fn_metric *b = *(const struct fn_metric *const *)other;

	return a->nr != b->nr ? (int)b->nr - (int)a->nr :
	       strcmp(a->metric.metric_name, b->metric.metric_name);
}

/* Returns this machine's CPU, or the user's choice. */
static char *own_cpu(void)
{
	char *id = get_cpuid_allow_env_override((struct perf_cpu){-1}), *own = NULL;
	double slots = tool_pmu__cpu_slots_per_cycle();

	if (!id)
		fn_err("-M: the CPU of this machine is not known: choose one with PERF_CPUID=, see perf list metric");
	/* A metric needs the same events, however many slots there are. */
	else if (asprintf(&own, "%s slots=%g smt_on=%d", id, slots >= 1 ? slots : 1,
			  smt_on()) < 0)
		own = NULL;
	free(id);
	return own;
}

int fn_metrics__add_groups(struct fn_groups *groups, const char *names)
{
	struct metrics metrics = {};
	char *own = own_cpu();
	int err = own ? metrics__init(&metrics, own, names) : -EINVAL;

	/* Recording is about this machine. */
	expr__set_machine(NULL);
	if (!err)
		qsort(metrics.all, metrics.nr, sizeof(*metrics.all), compare_metrics);
	for (unsigned int i = 0; !err && i < metrics.nr; i++)
		err = add_metric(groups, metrics.all[i]);
	if (!err && !groups->nr) {
		err = -ENOENT;
		fn_err("-M %s: this machine does not count its events in a group led by cycles: choose another metric, see perf list metric",
		       names);
	} else if (err == -ENOMEM) {
		fn_err("-M %s: not enough memory", names);
	}
	metrics__exit(&metrics);
	free(own);
	return err;
}
