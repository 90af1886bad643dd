// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/types.h>
#include <perf/cpumap.h>
#include <perf/evlist.h>

#include "debug.h"
#include "evlist.h"
#include "evsel.h"
#include "expr.h"
#include "metricgroup.h"
#include "pmu.h"
#include "pmu-events/pmu-events.h"
#include "rblist.h"
#include "stat.h"
#include "tests.h"
#include "util/functions/functions.h"

/* A machine whose literals are all known, so that each metric has a value. */
static double literal(const char *name)
{
	return name[1] ? 3 : NAN;
}

static double yes(const char *id __maybe_unused)
{
	return 1;
}

static const struct expr_machine machine = {
	.literal = literal, .strcmp_cpuid_str = yes, .has_event = yes,
};

struct comparison {
	unsigned int nr;
	unsigned int compared;
	unsigned int undefined;		/* a division by 0 in both */
	unsigned int different;
};

/* Returns a count that depends on the event, but not on its spelling. */
static u64 count_of(const char *event)
{
	u64 count = 12345;

	for (; *event; event++)
		count = count * 6364136223846793005ULL + toupper(*event);
	return 1 + (count >> 24) % 1000000007;
}

static const struct metric_expr *find_expr(struct rblist *metric_events, struct evlist *evlist,
					   const struct pmu_metric *metric)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		struct metric_event *event = metricgroup__lookup(metric_events, evsel, false);
		struct metric_expr *expr;

		if (!event)
			continue;
		list_for_each_entry(expr, &event->head, nd) {
			if (!strcmp(expr->metric_name, metric->metric_name) &&
			    !strcmp(expr->metric_expr, metric->metric_expr))
				return expr;
		}
	}
	return NULL;
}

/* Returns the value of perf stat for the counts. */
static int value_of_stat(const struct pmu_metrics_table *table, const struct pmu_metric *metric,
			 double *value)
{
	struct perf_cpu_map *cpus = perf_cpu_map__new("0");
	struct evlist *evlist = evlist__new();
	const struct metric_expr *expr;
	double scale = 1;
	struct evsel *evsel;
	char *unit;
	int err = -ENOMEM;

	if (!cpus || !evlist)
		goto out;
	perf_evlist__set_maps(&evlist->core, cpus, NULL);
	err = metricgroup__parse_groups_test(evlist, table, metric->metric_name,
					     /*cputype_filter=*/false) ?:
	      evlist__alloc_stats(/*config=*/NULL, evlist, /*alloc_raw=*/false);
	if (err)
		goto out;
	evlist__alloc_aggr_stats(evlist, 1);
	evlist__for_each_entry(evlist, evsel) {
		evsel->supported = true;
		evsel->stats->aggr->counts.val = count_of(evsel__metric_id(evsel));
		evsel->stats->aggr->counts.run = 1;
	}
	expr = find_expr(evlist__metric_events(evlist), evlist, metric);
	err = expr ? 0 : -ENOENT;
	if (expr && expr->metric_unit)
		perf_pmu__convert_scale(expr->metric_unit, &unit, &scale);
	if (expr)
		*value = scale * test_generic_metric((struct metric_expr *)expr, 0);
out:
	if (evlist)
		evlist__free_stats(evlist);
	perf_cpu_map__put(cpus);
	evlist__put(evlist);
	return err;
}

/* Returns the value of a function with the same counts. */
static double value_of_function(const struct fn_metric *metric)
{
	unsigned int nr = 0;
	double *counts, value;

	while (fn_metric__event(metric, nr))
		nr++;
	counts = calloc(nr + 1, sizeof(*counts));
	for (unsigned int i = 0; counts && i < nr; i++)
		counts[i] = count_of(fn_metric__event(metric, i));
	value = counts ? fn_metric__evaluate(metric, counts) : NAN;
	free(counts);
	return value;
}

static int compare(const struct pmu_metric *pmu_metric, const struct pmu_metrics_table *table,
		   void *data)
{
	struct comparison *comparison = data;
	struct fn_metric *metric = fn_metric__new(table, pmu_metric);
	double stat = NAN, value;
	int err = value_of_stat(table, pmu_metric, &stat);

	comparison->nr++;
	/* perf stat cannot parse it either, or it is of time or the like, which functions lack. */
	if (metric ? !!fn_metric__lacks(metric) : err)
		goto out;
	value = metric ? value_of_function(metric) : NAN;
	if (!err && value == stat) {
		comparison->compared++;
	} else if (!err && !isfinite(value) && !isfinite(stat)) {
		comparison->undefined++;
		pr_debug("%s: undefined, %.17g in perf stat\n", pmu_metric->metric_name, stat);
	} else {
		comparison->different++;
		pr_debug("%s: %.17g instead of %.17g (%d)\n", pmu_metric->metric_name, value, stat,
			 err);
	}
out:
	fn_metric__delete(metric);
	return 0;
}

/* Each metric of each CPU in the tables must have the same value as in perf stat -M. */
static int test__stat(struct test_suite *test __maybe_unused, int subtest __maybe_unused)
{
	struct comparison comparison = {};

	expr__set_machine(&machine);
	pmu_for_each_core_metric(compare, &comparison);
	expr__set_machine(NULL);
	pr_debug("metrics: %u, the same: %u, undefined in both: %u, different: %u\n",
		 comparison.nr, comparison.compared, comparison.undefined, comparison.different);
	TEST_ASSERT_EQUAL("different", (int)comparison.different, 0);
	TEST_ASSERT_VAL("nothing compared", comparison.compared);
	TEST_ASSERT_VAL("many undefined", comparison.undefined <= comparison.nr / 100);
	return TEST_OK;
}

static struct test_case function_exprs_tests[] = {
	TEST_CASE("Function metrics: vendors' metrics as in perf stat", stat),
	{ .name = NULL, }
};

struct test_suite suite__function_exprs = {
	.desc = "Vendors' metrics of functions",
	.test_cases = function_exprs_tests,
};
