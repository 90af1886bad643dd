/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_VENDOR_METRICS_H
#define __PERF_FUNCTIONS_VENDOR_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "../../rblist.h"
#include "columns.h"
#include "pmu-events/pmu-events.h"

struct evlist;
struct function_table;
struct function_tree;
struct metric_expr;

/* A metric of perf's tables: the vendor's expression of counts. */
struct function_expr {
	struct pmu_metric metric;
	struct evlist *evlist;
	struct rblist metric_events;
	const struct metric_expr *expr;
	unsigned int nr_ids;	/* events, by their names in the expression */
	const char *unit;
	double scale;
	bool is_part;		/* part of another metric, not requested itself */
	bool is_hidden;		/* needed for a threshold only */
	char *lacks;		/* why it has no values, NULL if it has some */
	/* For a table: the places of the events in its sets, and the event that relates sets. */
	const struct function_table *table;
	int *places;
	const char *link;
	enum function_source source;
};

/* The requested metrics of one CPU. */
struct function_exprs {
	struct function_expr *expr;
	unsigned int nr;
	bool has_all;	/* all metrics of the CPU */
};

int function_expr__init(struct function_expr *expr, const struct pmu_metrics_table *metrics,
			const struct pmu_metric *metric);
void function_expr__exit(struct function_expr *expr);
const char *function_expr__id(const struct function_expr *expr, unsigned int i);
int function_expr__find_events(struct function_expr *expr, const struct function_table *table);
struct function_value function_expr__value(const struct function_expr *expr,
					   const struct function_row *row);

int function_exprs__init(struct function_exprs *exprs, const char *description, const char *names,
			 bool with_parts, bool is_silent);
void function_exprs__exit(struct function_exprs *exprs);
char *function_exprs__event_key(const char *name);
int function_exprs__add_columns(struct function_columns *columns,
				const struct function_table *table, const char *names,
				struct function_tree *tree, bool is_silent);

#endif /* __PERF_FUNCTIONS_VENDOR_METRICS_H */
