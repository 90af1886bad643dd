// SPDX-License-Identifier: GPL-2.0
/*
 * Evaluates the metrics that vendors define for their CPUs (pmu-events/), per function.
 * metricgroup.c and expr.c find the events and evaluate. This file provides the CPU of a recording
 * and the sums over the windows of a function.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "../../debug.h"
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../expr.h"
#include "../../hashmap.h"
#include "../../header.h"
#include "../../metricgroup.h"
#include "../../pmu.h"
#include "../../strbuf.h"
#include "../../strlist.h"
#include "../text.h"
#include "../events.h"
#include "../collect/sums.h"
#include "../collect/u192.h"
#include "effect.h"
#include "interval.h"
#include "tree.h"
#include "vendor-metrics.h"

/* Relative to a total: the step of a numerical derivative. */
#define STEP		(1.0 / (1 << 17))

/* The part of an Arm CPU's identification (MIDR) that distinguishes its versions. */
#define MIDR_REVISION	0xfULL
#define MIDR_VARIANT	0xf00000ULL

/* The CPU that was recorded. */
static struct {
	char id[64];		/* as the tables write it */
	char full_id[64];	/* the same with its version */
	bool is_arm;
	double slots;		/* literals, NAN if not known */
	double smt_on;
	const struct pmu_metrics_table *metrics;
	struct hashmap *events;	/* of its table: name to terms */
	char unknown[32];	/* a literal that was asked for and is not known */
} cpu;

static int vendor_add_event(const struct pmu_event *event,
			    const struct pmu_events_table *table __maybe_unused, void *data)
{
	struct hashmap *events = data;
	char *name, *terms;

	/* Events of other PMUs are not of a core, and not counted in windows. */
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
		value = cpu.smt_on == 0;	/* a window is of one thread */
	if (!isnan(value))
		return value;
	scnprintf(cpu.unknown, sizeof(cpu.unknown), "%s", literal);
	return 1;
}

/* Compares like strcmp_cpuid_str() of arm64 and of others. */
static double cpu_is(const char *id)
{
	u64 wanted, recorded;

	if (!cpu.is_arm)
		return !strcmp_cpuid_str(id, cpu.full_id);
	wanted = strtoull(id, NULL, 16);
	recorded = strtoull(cpu.full_id, NULL, 16);
	return !((wanted ^ recorded) & ~(MIDR_VARIANT | MIDR_REVISION)) && recorded >= wanted;
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

/* Converts a header's identification of a CPU to the spelling of the tables. */
static const char *identify_cpu(const char *recorded)
{
	unsigned int family, model, stepping;
	char vendor[32], *end;
	u64 midr;

	scnprintf(cpu.full_id, sizeof(cpu.full_id), "%s", recorded);
	scnprintf(cpu.id, sizeof(cpu.id), "%s", recorded);
	midr = strtoull(recorded, &end, 16);
	cpu.is_arm = strstarts(recorded, "0x") && !*end;
	if (cpu.is_arm) {
		scnprintf(cpu.id, sizeof(cpu.id), "0x%016llx",
			  (unsigned long long)(midr & ~(MIDR_VARIANT | MIDR_REVISION)));
		return "arm64";
	}
	if (strstarts(recorded, "0x"))
		return "riscv";
	if (sscanf(recorded, "%31[A-Za-z],%u,%u,%u", vendor, &family, &model, &stepping) == 4) {
		scnprintf(cpu.id, sizeof(cpu.id), "%s-%u-%X-%X", vendor, family, model, stepping);
		memcpy(cpu.full_id, cpu.id, sizeof(cpu.id));
		return "x86";
	}
	return strchr(recorded, '-') ? "x86" : strstarts(recorded, "IBM") ? "s390" : "powerpc";
}

/* Tables name x86 CPUs with their stepping or without. */
static const struct pmu_events_table *find_tables(const char *arch)
{
	const struct pmu_events_table *events;
	char *dash;

	/* perf on arm64 takes all CPUs of other architectures for the same. */
	if (find_core_events_table(arch, "none-0-0-0"))
		return NULL;
	events = find_core_events_table(arch, cpu.id);
	dash = strrchr(cpu.id, '-');
	if (!events && dash && !strcmp(arch, "x86")) {
		*dash = '\0';
		events = find_core_events_table(arch, cpu.id);
	}
	cpu.metrics = events ? find_core_metrics_table(arch, cpu.id) : NULL;
	return events;
}

/* Returns -ENOENT if perf has no tables for a CPU as perf_env__describe_cpu() gives it. */
static int find_cpu(const char *description)
{
	const struct pmu_events_table *events;
	char id[64];

	memset(&cpu, 0, sizeof(cpu));
	cpu.slots = NAN;
	cpu.smt_on = NAN;
	scnprintf(id, sizeof(id), "%.*s", (int)strcspn(description, " "), description);
	for (const char *word = strchr(description, ' '); word; word = strchr(word + 1, ' ')) {
		if (strstarts(word, " slots="))
			cpu.slots = strtoul(strchr(word, '=') + 1, NULL, 0);
		if (strstarts(word, " smt_on="))
			cpu.smt_on = strtoul(strchr(word, '=') + 1, NULL, 0);
	}

	events = find_tables(identify_cpu(id));
	if (!cpu.metrics)
		return -ENOENT;
	cpu.events = ids__new();
	if (!cpu.events)
		return -ENOMEM;
	expr__set_machine(&cpu_machine);
	return pmu_events_table__for_each_event(events, NULL, vendor_add_event, cpu.events);
}

static void unset_cpu(void)
{
	expr__set_machine(NULL);
	ids__free(cpu.events);
	cpu.events = NULL;
}

/*
 * The events that the kernel counts for names without a vendor. events.c also calls
 * BR_MIS_PRED_RETIRED "branch-misses".
 */
static const char *const arm_names[][2] = {
	{ "cycles", "cpu_cycles" },
	{ "instructions", "inst_retired" },
	{ "cache-references", "l1d_cache" },
	{ "cache-misses", "l1d_cache_refill" },
	{ "dTLB-load-misses", "l1d_tlb_refill" },
	{ "branches", "br_retired" },
	{ "branch-misses", "br_mis_pred" },
	{ "bus-cycles", "bus_cycles" },
	{ "stalled-cycles-frontend", "stall_frontend" },
	{ "stalled-cycles-backend", "stall_backend" },
};

static const char *const intel_names[][2] = {
	{ "cycles", "cpu_clk_unhalted.thread" },
	{ "instructions", "inst_retired.any" },
	{ "branches", "br_inst_retired.all_branches" },
	{ "branch-misses", "br_misp_retired.all_branches" },
	{ "ref-cycles", "cpu_clk_unhalted.ref_tsc" },
	{ "slots", "topdown.slots" },
};

static const char *const amd_names[][2] = {
	{ "cycles", "ls_not_halted_cyc" },
	{ "instructions", "ex_ret_instr" },
	{ "branches", "ex_ret_brn" },
	{ "branch-misses", "ex_ret_brn_misp" },
};

static const char *vendor_name(const char *name)
{
	const char *const (*names)[2] = NULL;
	size_t nr = 0;

	if (cpu.is_arm) {
		names = arm_names;
		nr = ARRAY_SIZE(arm_names);
	} else if (strstarts(cpu.id, "GenuineIntel")) {
		names = intel_names;
		nr = ARRAY_SIZE(intel_names);
	} else if (strstarts(cpu.id, "AuthenticAMD")) {
		names = amd_names;
		nr = ARRAY_SIZE(amd_names);
	}
	for (size_t i = 0; i < nr; i++) {
		if (!strcasecmp(names[i][0], name))
			return names[i][1];
	}
	return name;
}

/* Sets a term of an event in place of one with the same name. */
static int set_term(struct strlist *terms, char *term)
{
	char *value = strchr(term, '='), *text;
	unsigned long long number = 1;
	struct str_node *other, *next;
	int err;

	if (value) {
		*value = '\0';
		number = strtoull(value + 1, NULL, 0);
	}
	if (!*term || !strcmp(term, "period"))
		return 0;
	strlist__for_each_entry_safe(other, next, terms) {
		if (!strncmp(other->s, term, strlen(term)) && other->s[strlen(term)] == '=')
			strlist__remove(terms, other);
	}
	if (!number)
		return 0;
	if (asprintf(&text, "%s=%llx", term, number) < 0)
		return -ENOMEM;
	err = strlist__add(terms, text);
	free(text);
	return err;
}

static int set_terms(struct strlist *terms, const char *list)
{
	char *copy = strdup(list), *rest = copy, *term;
	const char *known;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (term = strsep(&rest, ",")) != NULL) {
		known = vendor_name(term);
		if (!strchr(term, '=') && cpu.events && hashmap__find(cpu.events, known, &known))
			err = set_terms(terms, known);
		else
			err = set_term(terms, term);
	}
	free(copy);
	return err;
}

/**
 * function_exprs__event_key - identify the event of a name
 * @name: the event, in any spelling
 *
 * Return: the terms that the CPU's table has for it, to be freed, NULL without memory: from
 * INST_RETIRED, r8, event=0x8, instructions or armv8_pmuv3_0@event=8@ to event=8.
 */
char *function_exprs__event_key(const char *name)
{
	struct strlist *terms = strlist__new(NULL, NULL);
	char *key = function_text__lower(name), *begin = key, *end, *result = NULL;
	struct strbuf text = STRBUF_INIT;
	struct str_node *term;
	char raw[32];

	if (!key || !terms)
		goto out;
	end = strrchr(key, '@');
	if (end) {
		*end = '\0';
		begin = strchr(key, '@') ?: key;
		begin += *begin == '@';
	} else {
		end = strchr(key, ':');
		if (end)
			*end = '\0';
	}
	if (cpu.is_arm && *begin == 'r' && begin[1] &&
	    !begin[1 + strspn(begin + 1, "0123456789abcdef")]) {
		scnprintf(raw, sizeof(raw), "event=0x%s", begin + 1);
		begin = raw;
	}
	if (set_terms(terms, begin))
		goto out;
	strlist__for_each_entry(term, terms) {
		if (strbuf_addf(&text, "%s,", term->s))
			goto out;
	}
	result = strbuf_detach(&text, NULL);
out:
	strbuf_release(&text);
	strlist__delete(terms);
	free(key);
	return result;
}

/* Returns the event of a set that a metric means, -1 if there is none. */
static int vendor_find_event(const struct event_set *set, struct evsel *evsel)
{
	const char *id = evsel__metric_id(evsel);
	char *key, *other;
	int place = -1;

	for (unsigned int i = 0; i < set->nr_events; i++) {
		if (!strcasecmp(set->events[i], id))
			return i;
	}
	/* Counts of the kernel alone do not match an event without modifiers. */
	if (evsel->core.attr.exclude_user)
		return -1;

	key = function_exprs__event_key(id);
	for (unsigned int i = 0; key && i < set->nr_events && place < 0; i++) {
		other = function_exprs__event_key(set->events[i]);
		if (other && !strcmp(other, key))
			place = i;
		free(other);
	}
	if (place < 0 && cpu.is_arm && key && !strcmp(key, "event=22,"))
		place = event_set__find(set, "branch-misses");
	free(key);
	return place;
}

/**
 * function_expr__id - name an event as a metric does
 * @expr: the metric
 * @i: number of the event
 *
 * Return: the name of the event, as the metric has it.
 */
const char *function_expr__id(const struct function_expr *expr, unsigned int i)
{
	return evsel__metric_id(expr->expr->metric_events[i]);
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

/**
 * function_expr__init - parse a metric
 * @expr: set to it
 * @metrics: the table that the metric is in
 * @metric: the metric
 *
 * Return: 0, or -errno if perf cannot parse it.
 */
int function_expr__init(struct function_expr *expr, const struct pmu_metrics_table *metrics,
			const struct pmu_metric *metric)
{
	char *unit = NULL;
	int err;

	memset(expr, 0, sizeof(*expr));
	expr->metric = *metric;
	expr->scale = 1;
	if (metric->unit && !perf_pmu__convert_scale(metric->unit, &unit, &expr->scale))
		expr->unit = unit;

	*cpu.unknown = '\0';
	expr->evlist = evlist__new();
	if (!expr->evlist)
		return -ENOMEM;
	err = metricgroup__parse_metric(expr->evlist, metrics, metric, &expr->metric_events);
	if (!err) {
		expr->expr = find_expr(&expr->metric_events, metric);
		err = expr->expr ? 0 : -EINVAL;
	}
	if (err) {
		function_expr__exit(expr);
		return err;
	}
	while (expr->expr->metric_events[expr->nr_ids])
		expr->nr_ids++;

	if (*cpu.unknown && asprintf(&expr->lacks, "%s of the recorded machine is not known",
				     cpu.unknown) < 0)
		return -ENOMEM;
	for (unsigned int i = 0; i < expr->nr_ids && !expr->lacks; i++) {
		if (evsel__is_tool(expr->expr->metric_events[i]) &&
		    asprintf(&expr->lacks, "%s is not counted per function",
			     function_expr__id(expr, i)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/**
 * function_expr__exit - free a metric
 * @expr: the metric
 */
void function_expr__exit(struct function_expr *expr)
{
	if (expr->metric_events.nr_entries)
		metricgroup__rblist_exit(&expr->metric_events);
	evlist__put(expr->evlist);
	free(expr->places);
	free(expr->lacks);
	memset(expr, 0, sizeof(*expr));
}

static int *places_in(const struct function_expr *expr, size_t set)
{
	return expr->places + set * expr->nr_ids;
}

/* Finds the events in the sets of a source. Returns the name of one that is not there, or NULL. */
static const char *find_in_source(struct function_expr *expr, enum function_source source,
				  bool *has_full_set)
{
	const struct function_table *table = expr->table;
	const char *lacks = NULL;

	expr->source = source;
	*has_full_set = false;
	for (unsigned int set = 0; set < table->nr_sets; set++) {
		unsigned int found = 0;

		for (unsigned int i = 0; i < expr->nr_ids; i++) {
			int place = table->sets[set]->source != source ? -1 :
				    vendor_find_event(table->sets[set],
						      expr->expr->metric_events[i]);

			places_in(expr, set)[i] = place;
			found += place >= 0;
		}
		*has_full_set |= found == expr->nr_ids;
	}
	for (unsigned int i = 0; i < expr->nr_ids && !lacks; i++) {
		bool is_recorded = false;

		for (unsigned int set = 0; set < table->nr_sets; set++)
			is_recorded |= places_in(expr, set)[i] >= 0;
		if (!is_recorded)
			lacks = function_expr__id(expr, i);
	}
	return lacks;
}

static bool vendor_set_has(const struct event_set *set, const char *name)
{
	return !strcmp(name, FUNCTION_MATCHED) || event_set__find(set, name) >= 0;
}

/* Returns true if each event of a metric is in a set with this one. */
static bool links_all(const struct function_expr *expr, const char *link)
{
	for (unsigned int i = 0; i < expr->nr_ids; i++) {
		bool is_linked = false;

		for (unsigned int set = 0; set < expr->table->nr_sets && !is_linked; set++) {
			is_linked = places_in(expr, set)[i] >= 0 &&
				    vendor_set_has(expr->table->sets[set], link);
		}
		if (!is_linked)
			return false;
	}
	return true;
}

/*
 * Returns the event that relates sets to each other: cycles, or the first by name, or
 * FUNCTION_MATCHED, which is none.
 */
static const char *find_link(const struct function_expr *expr)
{
	const char *link = FUNCTION_MATCHED;

	if (links_all(expr, "cycles"))
		return "cycles";
	for (unsigned int set = 0; set < expr->table->nr_sets; set++) {
		for (unsigned int i = 0; i < expr->table->sets[set]->nr_events; i++) {
			const char *event = expr->table->sets[set]->events[i];

			if ((!strcmp(link, FUNCTION_MATCHED) || strcmp(event, link) < 0) &&
			    links_all(expr, event))
				link = event;
		}
	}
	return link;
}

/* Returns true if the events of a metric are in sets without a common event. */
static bool is_apart(const struct function_expr *expr)
{
	return expr->link && !strcmp(expr->link, FUNCTION_MATCHED);
}

/* Returns true if the sets with events of a metric have all that was counted. */
static bool sums_are_complete(const struct function_expr *expr)
{
	for (unsigned int set = 0; set < expr->table->nr_sets; set++) {
		for (unsigned int i = 0; i < expr->nr_ids; i++) {
			if (places_in(expr, set)[i] >= 0 &&
			    expr->source != FUNCTION_SOURCE_SAMPLES &&
			    !event_set__is_complete(expr->table->sets[set]))
				return false;
		}
	}
	return true;
}

/**
 * function_expr__find_events - find the events of a metric in a table
 * @expr: the metric; says what it lacks if they are not all there
 * @table: the table
 *
 * Return: 0, or -ENOMEM.
 */
int function_expr__find_events(struct function_expr *expr, const struct function_table *table)
{
	const char *lacks;
	bool has_full_set;

	if (expr->lacks)
		return 0;
	expr->table = table;
	expr->places = calloc(table->nr_sets * expr->nr_ids ?: 1, sizeof(*expr->places));
	if (!expr->places)
		return -ENOMEM;
	lacks = find_in_source(expr, FUNCTION_SOURCE_SAMPLES, &has_full_set);
	if (lacks)
		lacks = find_in_source(expr, FUNCTION_SOURCE_WINDOWS, &has_full_set);
	if (lacks)
		return asprintf(&expr->lacks, "%s was not recorded", lacks) < 0 ? -ENOMEM : 0;
	expr->link = has_full_set ? NULL : find_link(expr);
	if (is_apart(expr) && !sums_are_complete(expr) &&
	    asprintf(&expr->lacks, "groups with different leaders have its events") < 0)
		return -ENOMEM;
	return 0;
}

/* Returns perf's value of a metric for these totals, NAN if it has none. */
static double evaluate(const struct function_expr *expr, const double *totals)
{
	struct expr_parse_ctx *ctx = expr__ctx_new();
	double value = NAN;

	if (!ctx)
		return NAN;
	ctx->sctx.runtime = expr->expr->runtime;
	for (unsigned int i = 0; i < expr->nr_ids; i++) {
		char *id = strdup(function_expr__id(expr, i));

		if (!id || expr__add_id_val(ctx, id, totals[i]))
			free(id);
	}
	for (struct metric_ref *ref = expr->expr->metric_refs; ref && ref->metric_name; ref++)
		expr__add_ref(ctx, ref);
	if (expr__parse(&value, ctx, expr->expr->metric_expr))
		value = NAN;
	expr__ctx_free(ctx);
	return expr->scale * value;
}

/* Returns the numerical derivative of a metric by an event. */
static double slope(const struct function_expr *expr, double *totals, unsigned int i)
{
	double total = totals[i], step = STEP * total, above, below;

	/* No window has counted it. */
	if (!total)
		return 0;
	totals[i] = total + step;
	above = evaluate(expr, totals);
	totals[i] = total - step;
	below = evaluate(expr, totals);
	totals[i] = total;
	return (above - below) / (2 * step);
}

static unsigned int number_of(const struct function_table *table, const struct event_set *set)
{
	unsigned int i = 0;

	while (table->sets[i] != set)
		i++;
	return i;
}

/*
 * Returns the place of an event in a set whose windows are used for it, else -1. They are used if
 * the set has all events of the metric, or the event that links sets.
 */
static int place_in(const struct function_expr *expr, const struct function_sums *sums,
		    unsigned int i)
{
	const int *places = places_in(expr, number_of(expr->table, sums->set));

	if (expr->link)
		return vendor_set_has(sums->set, expr->link) ? places[i] : -1;
	for (unsigned int j = 0; j < expr->nr_ids; j++) {
		if (places[j] < 0)
			return -1;
	}
	return places[i];
}

/* Returns the place of the event that links a set to other sets, -1 if there is none. */
static int place_of_link(const struct function_expr *expr, const struct function_sums *sums)
{
	return expr->link ? event_set__find(sums->set, expr->link) : -1;
}

/* The totals of a metric's events for a function. */
struct totals {
	double *events;
	/*
	 * Factors that scale events of other sets to the first one's windows, by the linking event.
	 */
	double *scales;
	double link;
};

/* Returns the total of an event in all windows of a function, without the interrupts' part. */
static double total_of(const struct function_row *row, const struct function_sums *sums, int place)
{
	struct function_reading reading = function_row__read(row, sums);
	double total = u192__double(&reading.values[place]), unsure = 0;

	if (row->options.is_corrected)
		total -= function_effect__on(sums->set, reading.windows, place, &unsure);
	/* The estimate of the added events may be larger than the count. */
	return fmax(total, 0);
}

static bool vendor_add_up(const struct function_expr *expr, const struct function_row *row,
			  struct totals *totals)
{
	for (unsigned int i = 0; i < expr->nr_ids; i++) {
		double total = 0, linked = 0;

		for (size_t s = 0; s < row->nr_sums; s++) {
			const struct function_sums *sums = row->sums[s];
			struct function_reading reading = function_row__read(row, sums);
			int place = place_in(expr, sums, i), link = place_of_link(expr, sums);

			if (place < 0)
				continue;
			total += total_of(row, sums, place);
			linked += link < 0 ? reading.windows : total_of(row, sums, link);
		}
		if (!linked)
			return false;
		totals->link = i ? totals->link : linked;
		/* The numbers of samples, or of windows, are no common measure. */
		totals->scales[i] = is_apart(expr) ? 1 : totals->link / linked;
		totals->events[i] = total * totals->scales[i];
	}
	return true;
}

/* A linear combination of counts, over windows. */
struct spread {
	double sum;
	double squares;
	u64 number;
	u64 windows;
	double unsure;	/* the variance of the subtracted events, over all windows */
};

static void add_windows(struct spread *spread, const struct function_row *row,
			const struct function_sums *sums, const double *weights)
{
	struct function_reading reading = function_row__read(row, sums);
	unsigned int nr = sums->set->nr_events;

	spread->windows += reading.windows;
	spread->number += reading.bursts;
	for (unsigned int i = 0; i < nr; i++) {
		double unsure = 0;

		spread->sum += weights[i] * u192__double(&reading.values[i]);
		if (row->options.is_corrected)
			function_effect__on(sums->set, reading.windows, i, &unsure);
		spread->unsure += weights[i] * weights[i] * unsure;
		for (unsigned int j = i; j < nr; j++) {
			unsigned int product = event_set__product(sums->set, i, j);

			spread->squares += (i == j ? 1 : 2) * weights[i] * weights[j] *
					   u192__double(&reading.values[product]);
		}
	}
}

/*
 * Sets weights of counts: how much a metric changes with the counts of one window, to the first
 * order. Returns true if the window is used for the metric.
 */
static bool weigh(const struct function_expr *expr, const struct function_sums *sums,
		  const struct totals *totals, const double *slopes, double *weights)
{
	int link = place_of_link(expr, sums);
	bool is_taken = false;

	memset(weights, 0, sums->set->nr_events * sizeof(*weights));
	for (unsigned int i = 0; i < expr->nr_ids; i++) {
		double rate = totals->events[i] / totals->link;
		int place = place_in(expr, sums, i);

		/* The windows of other events are scaled to those of the first event. */
		if (link >= 0 && place_in(expr, sums, 0) >= 0)
			weights[link] += slopes[i] * rate;
		if (place < 0)
			continue;
		is_taken = true;
		weights[place] += slopes[i] * totals->scales[i];
		if (link >= 0)
			weights[link] -= slopes[i] * totals->scales[i] * rate;
	}
	return is_taken;
}

/*
 * Adds the error of a function of totals, by the delta method (Cochran, Sampling Techniques, 6.5
 * and 6.19). Its square is n / (n - 1) x sum (z_w - z/n)^2 over the windows w, where
 * z is the sum over the events of weight x count. Different sets have no windows in common,
 * so their errors add up, and so do the degrees of freedom (Welch, Satterthwaite).
 */
static void add_error(const struct function_expr *expr, const struct function_row *row,
		      const struct totals *totals, struct function_value *value)
{
	double slopes[expr->nr_ids ?: 1], variance = 0, per_freedom = 0;
	struct spread spread = {};

	value->windows = INFINITY;
	for (unsigned int i = 0; i < expr->nr_ids; i++)
		slopes[i] = slope(expr, totals->events, i);
	for (size_t s = 0; s < row->nr_sums; s++) {
		const struct function_sums *sums = row->sums[s];
		double weights[sums->set->nr_events], part;

		if (weigh(expr, sums, totals, slopes, weights))
			add_windows(&spread, row, sums, weights);
		/* Windows which have all events are of one kind. */
		if (!spread.windows || (!expr->link && s + 1 < row->nr_sums))
			continue;
		/* Without a common event, chance also decides how many windows there are. */
		part = spread.number < 2 ? NAN :
		       spread.number / (spread.number - 1.0) *
		       fmax(spread.squares - (is_apart(expr) ? 0 :
					      spread.sum * spread.sum / spread.number), 0);
		variance += part + spread.unsure;
		per_freedom += part * part / (spread.number - 1.0);
		value->windows = fmin(value->windows, spread.number);
		memset(&spread, 0, sizeof(spread));
	}
	/* The error is infinite if there is only one window of a kind. */
	value->has_error = isfinite(variance);
	value->error = sqrt(variance);
	value->freedom = per_freedom ? variance * variance / per_freedom : 0;
}

/* Returns true if interrupts have added more than the interval. */
static bool vendor_is_disturbed(const struct function_expr *expr, const struct function_row *row,
				const struct function_value *value)
{
	struct function_row corrected = *row;
	double events[expr->nr_ids + 1], scales[expr->nr_ids + 1], now;
	struct totals totals = { .events = events, .scales = scales };

	corrected.options.is_corrected = true;
	now = vendor_add_up(expr, &corrected, &totals) ? evaluate(expr, events) : NAN;
	return value->has_interval && (now < value->low || now > value->high);
}

/**
 * function_expr__value - evaluate a metric
 * @expr: the metric, whose events were found in the table of the row
 * @row: the function
 *
 * Return: the value, not defined if the metric lacks something.
 */
struct function_value function_expr__value(const struct function_expr *expr,
					   const struct function_row *row)
{
	double events[expr->nr_ids + 1], scales[expr->nr_ids + 1];
	struct totals totals = { .events = events, .scales = scales };
	struct function_value value = {};

	if (expr->lacks || !vendor_add_up(expr, row, &totals))
		return value;
	value.value = evaluate(expr, events);
	value.is_defined = isfinite(value.value);
	if (!value.is_defined)
		return value;
	add_error(expr, row, &totals, &value);
	function_value__plain_interval(&value);
	value.is_disturbed = !row->options.is_corrected && vendor_is_disturbed(expr, row, &value);
	return value;
}

/* The metrics that were asked for. */
struct selection {
	const char *name;
	bool (*matches)(const struct pmu_metric *metric, const char *name);
	struct pmu_metric *metrics;
	unsigned int nr;
	unsigned int nr_matches;	/* of the current name */
	bool has_all;
	bool is_silent;
};

/* Returns true if a metric is in one of the groups, which are separated by semicolons. */
static bool is_in_group(const struct pmu_metric *metric, const char *groups)
{
	for (size_t length; *groups; groups += length, groups += *groups == ';') {
		const char *own = metric->metric_group;

		length = strcspn(groups, ";");
		for (; own && *own; own += strcspn(own, ";"), own += *own == ';') {
			if (strcspn(own, ";") == length && !strncasecmp(own, groups, length))
				return true;
		}
	}
	return false;
}

static bool is_named(const struct pmu_metric *metric, const char *name)
{
	return !strcasecmp(metric->metric_name, name) || !strcasecmp(name, "all") ||
	       is_in_group(metric, name);
}

/* The next level in Arm's top-down method, which the tables lack. */
static const char *const arm_parts[][2] = {
#define FRONTEND \
	"Branch_Effectiveness;ITLB_Effectiveness;L1I_Cache_Effectiveness;L2_Cache_Effectiveness;LL_Cache_Effectiveness"
#define BACKEND	\
	"DTLB_Effectiveness;L1D_Cache_Effectiveness;L2_Cache_Effectiveness;LL_Cache_Effectiveness;Operation_Mix"
	{ "frontend_bound", FRONTEND },
	{ "frontend_stalled_cycles", FRONTEND },
	{ "backend_bound", BACKEND },
	{ "backend_stalled_cycles", BACKEND },
	{ "bad_speculation", "Branch_Effectiveness" },
	{ "retiring", "Operation_Mix" },
};

/* Returns the groups of a metric's parts, to be freed; NULL without memory. */
static char *parts_of(const char *name)
{
	char *groups;

	for (size_t i = 0; cpu.is_arm && i < ARRAY_SIZE(arm_parts); i++) {
		if (!strcasecmp(arm_parts[i][0], name))
			return strdup(arm_parts[i][1]);
	}
	return asprintf(&groups, "%s_group", name) < 0 ? NULL : groups;
}

static bool vendor_is_part(const struct pmu_metric *metric, const char *name)
{
	char *groups = parts_of(name);
	bool is = groups && is_in_group(metric, groups);

	free(groups);
	return is;
}

static bool is_in_group_like(const struct pmu_metric *metric, const char *name)
{
	return metric->metric_group && strcasestr(metric->metric_group, name);
}

static bool is_named_like(const struct pmu_metric *metric, const char *name)
{
	return strcasestr(metric->metric_name, name);
}

static int select_metric(const struct pmu_metric *metric,
			 const struct pmu_metrics_table *table __maybe_unused, void *data)
{
	struct selection *selection = data;
	struct pmu_metric *metrics;

	if (!selection->matches(metric, selection->name))
		return 0;
	selection->nr_matches++;
	for (unsigned int i = 0; i < selection->nr; i++) {
		if (!strcmp(selection->metrics[i].metric_name, metric->metric_name) &&
		    !strcmp(selection->metrics[i].pmu, metric->pmu))
			return 0;
	}
	metrics = realloc(selection->metrics, (selection->nr + 1) * sizeof(*metrics));
	if (!metrics)
		return -ENOMEM;
	selection->metrics = metrics;
	metrics[selection->nr++] = *metric;
	return 0;
}

static unsigned int select_by(struct selection *selection, const char *name,
			      bool (*matches)(const struct pmu_metric *metric, const char *name))
{
	selection->name = name;
	selection->matches = matches;
	selection->nr_matches = 0;
	pmu_metrics_table__for_each_metric(cpu.metrics, select_metric, selection);
	return selection->nr_matches;
}

/* Returns true if the expression of a threshold uses the metric. */
static bool is_judged(const struct pmu_metric *metric, const char *threshold)
{
	const char *name = metric->metric_name;
	size_t length = strlen(name);

	for (const char *at = threshold; (at = strstr(at, name)) != NULL; at += length) {
		bool begins = at == threshold || !(isalnum(at[-1]) || at[-1] == '_');

		if (begins && !isalnum(at[length]) && at[length] != '_')
			return true;
	}
	return false;
}

static int vendor_compare_names(const void *one, const void *other)
{
	const struct pmu_metric *a = one, *b = other;

	return strcmp(a->metric_name, b->metric_name);
}

/* Adds the parts of metrics, and their parts; then the metrics of their thresholds. */
static void select_parts(struct selection *selection, unsigned int *nr_parts)
{
	const unsigned int nr_named = selection->nr;

	for (unsigned int i = 0; i < selection->nr; i++)
		select_by(selection, selection->metrics[i].metric_name, vendor_is_part);
	*nr_parts = selection->nr;
	if (selection->nr > nr_named)
		qsort(selection->metrics + nr_named, selection->nr - nr_named,
		      sizeof(*selection->metrics), vendor_compare_names);
	for (unsigned int i = 0; i < *nr_parts; i++) {
		const char *threshold = selection->metrics[i].metric_threshold;

		if (threshold)
			select_by(selection, threshold, is_judged);
	}
}

static void print_unknown(const char *name)
{
	struct selection like = {};

	pr_err("perf functions: no metric or group %s for the CPU %s", name, cpu.id);
	if (select_by(&like, name, is_named_like)) {
		pr_err(", but");
		for (unsigned int i = 0; i < min(like.nr, 10U); i++)
			pr_err(" %s", like.metrics[i].metric_name);
	}
	pr_err(": see PERF_CPUID=%s perf list metric\n", cpu.id);
	free(like.metrics);
}

/* Selects metrics and groups like perf stat, or else groups whose names contain the word. */
static int select_metrics(struct selection *selection, const char *names)
{
	char *copy = strdup(names), *rest = copy, *name;
	int err = copy ? 0 : -ENOMEM;

	while (!err && (name = strsep(&rest, ",")) != NULL) {
		selection->has_all |= !strcasecmp(name, "all");
		if (!*name || select_by(selection, name, is_named) ||
		    select_by(selection, name, is_in_group_like))
			continue;
		/*
		 * Older Arm CPUs without slots have the first level of top-down in another group.
		 */
		if (!strcasecmp(name, "TopdownL1") &&
		    select_by(selection, "Cycle_Accounting", is_named)) {
			if (!selection->is_silent)
				pr_warning("perf functions: the top-down level 1 of the CPU %s is Cycle_Accounting\n",
					   cpu.id);
			continue;
		}
		print_unknown(name);
		err = -EINVAL;
	}
	free(copy);
	if (!err && !selection->nr) {
		pr_err("perf functions: -M takes names of metrics or groups: see PERF_CPUID=%s perf list metric\n",
		       cpu.id);
		err = -EINVAL;
	}
	return err;
}

/* Returns the CPU whose metrics are used: the recorded one or the user's choice. */
static char *choose_cpu(const struct function_table *table)
{
	static char *chosen;
	const char *recorded = NULL;
	char *both;

	/* perf would complain about PERF_CPUID for the events of this machine. */
	if (!chosen && getenv("PERF_CPUID"))
		chosen = strdup(getenv("PERF_CPUID"));
	unsetenv("PERF_CPUID");

	if (table->nr_cpus == 1)
		recorded = table->cpus[0];
	if (!chosen && !recorded) {
		if (table->nr_cpus)
			pr_err("perf functions: -M: these are sums of several kinds of CPUs (%s, %s): choose one with PERF_CPUID=\n",
			       table->cpus[0], table->cpus[1]);
		else
			pr_err("perf functions: -M: the recording does not tell its CPU: choose one with PERF_CPUID=\n");
		return NULL;
	}
	if (!chosen)
		return strdup(recorded);
	if (strchr(chosen, ' ') || !recorded || !strchr(recorded, ' '))
		both = strdup(chosen);
	else if (asprintf(&both, "%s%s", chosen, strchr(recorded, ' ')) < 0)
		both = NULL;
	return both;
}

/**
 * function_exprs__exit - free metrics
 * @exprs: the metrics
 */
void function_exprs__exit(struct function_exprs *exprs)
{
	for (unsigned int i = 0; i < exprs->nr; i++)
		function_expr__exit(&exprs->expr[i]);
	free(exprs->expr);
	unset_cpu();
}

/**
 * function_exprs__init - parse metrics of a CPU
 * @exprs: set to them, to be freed even after an error; only one may exist at a time
 * @description: the CPU, as perf_env__describe_cpu() gives it
 * @names: names of metrics and groups
 * @with_parts: add their parts, too
 * @is_silent: print errors only, because the same warnings were printed before
 *
 * Return: 0, or an error after a message.
 */
int function_exprs__init(struct function_exprs *exprs, const char *description, const char *names,
			 bool with_parts, bool is_silent)
{
	unsigned int nr_named, nr_parts;
	struct selection selection = { .is_silent = is_silent };
	int err = find_cpu(description);

	memset(exprs, 0, sizeof(*exprs));
	if (err == -ENOENT)
		pr_err("perf functions: -M: perf has no metrics of the CPU %s: choose another with PERF_CPUID=\n",
		       cpu.full_id);
	if (!err)
		err = select_metrics(&selection, names);
	exprs->has_all = selection.has_all;
	nr_named = selection.nr;
	nr_parts = selection.nr;
	if (!err && with_parts)
		select_parts(&selection, &nr_parts);
	if (!err)
		exprs->expr = calloc(selection.nr, sizeof(*exprs->expr));
	if (!err && !exprs->expr)
		err = -ENOMEM;
	for (unsigned int i = 0; !err && i < selection.nr; i++) {
		err = function_expr__init(&exprs->expr[exprs->nr], cpu.metrics,
					  &selection.metrics[i]);
		if (!err) {
			exprs->expr[exprs->nr].is_part = i >= nr_named;
			exprs->expr[exprs->nr++].is_hidden = i >= nr_parts;
		}
		if (err != -EINVAL)
			continue;
		if (!is_silent)
			pr_warning("perf functions: the metric %s is left out: this perf cannot parse it\n",
				   selection.metrics[i].metric_name);
		err = 0;
	}
	free(selection.metrics);
	return err;
}

/* Returns a title that no other column has. */
static char *vendor_title_of(const struct function_columns *columns,
			     const struct pmu_metric *metric)
{
	char *title;

	if (function_columns__find(columns, metric->metric_name,
				   strlen(metric->metric_name)) < 0)
		return strdup(metric->metric_name);
	return asprintf(&title, "%s:%s", metric->pmu, metric->metric_name) < 0 ? NULL : title;
}

static int vendor_add_column(struct function_columns *columns, const struct function_expr *expr)
{
	const char *unit = expr->unit ?: "", *desc = expr->metric.desc ?: "";
	struct function_value *values = calloc(columns->nr_rows ?: 1, sizeof(*values));
	bool is_percent = strstarts(unit, "percent") || *unit == '%';
	struct function_column column = {
		.event = "", .per = "", .scale = is_percent ? 100 : 1, .digits = is_percent ? 1 : 3,
		.source = expr->source,
	};
	char *meaning = NULL;
	int err = -ENOMEM;

	if (is_percent && is_in_group(&expr->metric, "TopdownL1;PipelineL1"))
		column.divided = "slots";
	else if (is_percent && is_in_group(&expr->metric, "Cycle_Accounting"))
		column.divided = "cycles";
	column.name = vendor_title_of(columns, &expr->metric);
	if (asprintf(&meaning, *unit ? "%s (%s)" : "%s", desc, unit) < 0)
		meaning = NULL;
	column.meaning = meaning;
	if (values && column.name && column.meaning) {
		for (size_t i = 0; i < columns->nr_rows; i++)
			values[i] = function_expr__value(expr, &columns->rows[i]);
		err = function_columns__add(columns, &column, values);
	}
	if (err) {
		free((char *)column.name);
		free(meaning);
	}
	free(values);
	return err;
}

static bool has_part(const struct function_exprs *exprs, const struct function_expr *expr)
{
	for (unsigned int i = 0; i < exprs->nr; i++) {
		if (vendor_is_part(&exprs->expr[i].metric, expr->metric.metric_name))
			return true;
	}
	return false;
}

static int add_node(struct function_tree *tree, const struct function_exprs *exprs,
		    const struct function_expr *expr, int column)
{
	struct function_tree_node node = {
		.column = column,
		.name = expr->metric.metric_name,
		.pmu = expr->metric.pmu,
		.unit = expr->unit,
		.threshold = expr->metric.metric_threshold,
		.scale = expr->scale,
		.is_root = !expr->is_part,
		.is_hidden = expr->is_hidden,
	};

	if (has_part(exprs, expr)) {
		node.parts = parts_of(node.name);
		if (!node.parts)
			return -ENOMEM;
		strreplace(node.parts, ';', ',');
	}
	return function_tree__add(tree, &node);
}

/* Links metrics to their parts. A part is no root. */
static int link_parts(struct function_tree *tree, const struct function_exprs *exprs)
{
	tree->is_part = calloc(tree->nr * tree->nr ?: 1, sizeof(*tree->is_part));
	if (!tree->is_part)
		return -ENOMEM;
	for (unsigned int i = 0; i < tree->nr; i++) {
		struct function_tree_node *part = &tree->nodes[i];
		const struct pmu_metric *metric = NULL;

		for (unsigned int j = 0; j < exprs->nr; j++) {
			if (!strcmp(exprs->expr[j].metric.metric_name, part->name) &&
			    !strcmp(exprs->expr[j].metric.pmu, part->pmu))
				metric = &exprs->expr[j].metric;
		}
		for (unsigned int j = 0; metric && j < tree->nr; j++) {
			struct function_tree_node *node = &tree->nodes[j];

			if (i == j || part->is_hidden || node->is_hidden ||
			    strcmp(node->pmu, part->pmu) || !vendor_is_part(metric, node->name))
				continue;
			tree->is_part[j * tree->nr + i] = true;
			node->is_recorded = true;
			part->is_root = false;
		}
	}
	return 0;
}

static void print_lacks(const struct function_exprs *exprs)
{
	const char *separator = "perf functions: no value (-) for";
	unsigned int nr = 0;

	for (unsigned int i = 0; i < exprs->nr; i++) {
		if (!exprs->expr[i].lacks || exprs->expr[i].is_part || nr++ >= 8)
			continue;
		pr_warning("%s %s (%s)", separator, exprs->expr[i].metric.metric_name,
			   exprs->expr[i].lacks);
		separator = ",";
	}
	if (nr > 8)
		pr_warning(" and %u more", nr - 8);
	if (nr)
		pr_warning("\n");
}

/**
 * function_exprs__add_columns - add the columns of metrics
 * @columns: columns with rows, in the order of the table
 * @table: the table of the columns
 * @names: names of metrics and groups
 * @tree: set to these metrics and their parts, to be freed; or NULL
 * @is_silent: print errors only, because the same warnings were printed before
 *
 * Return: 0, or an error after a message.
 */
int function_exprs__add_columns(struct function_columns *columns,
				const struct function_table *table, const char *names,
				struct function_tree *tree, bool is_silent)
{
	char *description = choose_cpu(table);
	struct function_exprs exprs = {};
	int err = -EINVAL;

	if (description)
		err = function_exprs__init(&exprs, description, names,
					   tree && tree->has_parts, is_silent);

	for (unsigned int i = 0; !err && i < exprs.nr; i++) {
		struct function_expr *expr = &exprs.expr[i];

		err = function_expr__find_events(expr, table);
		/* Metrics without values are shown only if the user has named them. */
		if (err || ((exprs.has_all || expr->is_part) && expr->lacks))
			continue;
		err = vendor_add_column(columns, expr);
		if (!err && tree)
			err = add_node(tree, &exprs, expr, columns->nr_columns - 1);
	}
	if (!err && tree)
		err = link_parts(tree, &exprs);
	if (!err && tree)
		err = function_tree__judge(tree, table, columns);
	if (!err && !exprs.has_all && !is_silent)
		print_lacks(&exprs);
	function_exprs__exit(&exprs);
	free(description);
	return err;
}
