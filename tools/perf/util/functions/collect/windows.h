/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_WINDOWS_H
#define __PERF_FUNCTIONS_WINDOWS_H

#include <stdbool.h>
#include <linux/types.h>

#include "sums.h"

struct function_metrics;
struct metrics_function;
struct metrics_group;
struct metrics_stream;
struct perf_event_attr;

/* A function that runs or waits for its callee, and the address in it. */
struct function_frame {
	struct metrics_function *function;
	u64 ip;
};

/* The frames of a sample, the root first. */
struct function_chain {
	struct function_frame *frames;
	unsigned int nr;
	unsigned int allocated;
};

int function_chain__add(struct function_chain *chain, struct metrics_function *function, u64 ip);

/* The name of a function, see function_metrics__add_function(). */
struct function_name {
	const char *symbol;
	const char *dso;
	u64 address;
};

/* The value of an event in the last sample of a stream that has one. */
struct metrics_value {
	u64 id;		/* of the event, 0 before its first value */
	u64 value;
};

/* A sample of a group: the end of an interval. */
struct metrics_sample {
	u64 thread;			/* a unique number of the thread */
	struct metrics_function *function;
	const struct function_chain *chain;	/* if not NULL, each of its functions is a row */
	const u64 *counts;		/* by slot, since the sample before; of a group only */
	u64 period;			/* elapsed period, 0 if unknown */
	bool filtered;			/* the user does not want to see it */
	bool foreign;			/* the user wants no sample of its stream */
	bool outside;			/* it is outside of the requested spans of time */
	bool nowhere;			/* the sample has address 0, which is in no function */
};

struct function_metrics *function_metrics__new(enum function_share share);
void function_metrics__delete(struct function_metrics *metrics);

struct metrics_group *function_metrics__add_group(struct function_metrics *metrics,
						  const struct perf_event_attr *leader);
int metrics_group__add_event(struct metrics_group *group, const struct perf_event_attr *attr,
			     const char *name, const char *cpu);
unsigned int metrics_group__nr_events(const struct metrics_group *group);
bool metrics_group__alternates(const struct metrics_group *group);
struct metrics_group *function_metrics__add_samples(struct function_metrics *metrics,
						    const struct perf_event_attr *first);
struct metrics_function *function_metrics__add_function(struct function_metrics *metrics,
							const char *symbol, const char *dso,
							u64 address);
struct metrics_function *function_metrics__find(const struct function_metrics *metrics,
						const struct function_sums *sums);
struct function_name metrics_function__name(const struct metrics_function *function);
int metrics_function__rename(struct metrics_function *function, const char *symbol);

struct metrics_stream *function_metrics__findnew_stream(struct function_metrics *metrics,
							struct metrics_group *group, u64 id,
							u64 thread, struct metrics_value **values);
int function_metrics__sample(struct function_metrics *metrics, struct metrics_stream *stream,
			     const struct metrics_sample *sample);
int metrics_group__event_sample(struct metrics_group *group, unsigned int slot,
				const struct metrics_sample *sample);
void metrics_stream__interrupt(struct metrics_stream *stream);
void function_metrics__throttle(struct function_metrics *metrics, u64 id);
void function_metrics__restart(struct function_metrics *metrics);
void function_metrics__forget_idle(struct function_metrics *metrics);
void function_metrics__lost(struct function_metrics *metrics);

int function_metrics__table(const struct function_metrics *metrics, struct function_table *table);

#endif /* __PERF_FUNCTIONS_WINDOWS_H */
