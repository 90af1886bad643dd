/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_WINDOWS_H
#define __PERF_FUNCTIONS_WINDOWS_H

#include <stdbool.h>
#include <linux/types.h>

#include "sums.h"

struct window_collector;
struct collect_function;
struct collect_group;
struct collect_stream;
struct perf_event_attr;

/* A function that runs or waits for its callee, and the address in it. */
struct function_frame {
	struct collect_function *function;
	u64 ip;
};

/* The frames of a sample, the root first. */
struct function_chain {
	struct function_frame *frames;
	unsigned int nr;
	unsigned int allocated;
};

int function_chain__add(struct function_chain *chain, struct collect_function *function, u64 ip);

/* The name of a function, see window_collector__add_function(). */
struct function_name {
	const char *symbol;
	const char *dso;
	u64 address;
};

/* The value of an event in the last sample of a stream that has one. */
struct collect_value {
	u64 id;		/* of the event, 0 before its first value */
	u64 value;
};

/* The interval that a sample of a group ends: what was counted. */
struct collect_interval {
	u64 thread;			/* a unique number of the thread */
	const u64 *counts;		/* by slot, since the sample before */
	u64 period;			/* elapsed period, 0 if unknown */
	unsigned int place;		/* 0 for the first sample of its event in the stream, ... */
	/* Set by collect_stream__measure(). */
	bool is_window;
	bool is_interrupted;		/* it is one, but another event has sampled in it */
	bool is_broken;			/* something was throttled or lost in it */
	bool is_same;			/* it is whole, and of one thread */
};

/* The place of a sample: for whom it counts. */
struct collect_sample {
	struct collect_function *function;
	const struct function_chain *chain;	/* if not NULL, each of its functions is a row */
	bool filtered;			/* the user does not want to see it */
	bool foreign;			/* the user wants no sample of its stream */
	bool outside;			/* it is outside of the requested spans of time */
	bool nowhere;			/* the sample has address 0, which is in no function */
};

struct window_collector *window_collector__new(enum function_share share);
void window_collector__delete(struct window_collector *metrics);

struct collect_group *window_collector__add_group(struct window_collector *metrics,
						  const struct perf_event_attr *leader);
int collect_group__add_event(struct collect_group *group, const struct perf_event_attr *attr,
			     const char *name, const char *cpu);
unsigned int collect_group__nr_events(const struct collect_group *group);
const char *collect_group__event(const struct collect_group *group, unsigned int slot);
bool collect_group__alternates(const struct collect_group *group);
struct collect_group *window_collector__add_samples(struct window_collector *metrics,
						    const struct perf_event_attr *first,
						    enum function_share share);
struct collect_group *window_collector__add_paths(struct window_collector *metrics,
						  const struct perf_event_attr *cycles,
						  unsigned int horizon, unsigned int guard);
void collect_group__hide(struct collect_group *group, bool is_hidden);
struct collect_function *window_collector__add_function(struct window_collector *metrics,
							const char *symbol, const char *dso,
							u64 address);
struct collect_function *window_collector__find(const struct window_collector *metrics,
						const struct function_sums *sums);
struct function_name collect_function__name(const struct collect_function *function);
int collect_function__rename(struct collect_function *function, const char *symbol);

struct collect_stream *window_collector__findnew_stream(struct window_collector *metrics,
							struct collect_group *group, u64 id,
							u64 thread, struct collect_value **values);
int collect_stream__add_member(struct collect_stream *stream, u64 id);
int collect_stream__measure(struct collect_stream *stream, struct collect_interval *interval);
int collect_stream__sample(struct collect_stream *stream, const struct collect_interval *interval,
			   const struct collect_sample *sample);
int collect_group__event_sample(struct collect_group *group, unsigned int slot, u64 period,
				const struct collect_sample *sample);
int collect_group__path(struct collect_group *group, struct collect_function *function,
			const u64 *counts, u64 weight);
int collect_group__path_end(struct collect_group *group, struct collect_function *function,
			    u64 weight);
int collect_group__run(struct collect_group *group, unsigned int slot, u64 id, u64 thread,
		       u64 enabled, u64 running);
double collect_group__stretch(const struct collect_group *group, unsigned int slot);
void collect_stream__interrupt(struct collect_stream *stream);
unsigned int collect_stream__place(struct collect_stream *stream, unsigned int slot);
u64 *collect_stream__counted(struct collect_stream *stream);
void collect_stream__begin_late(struct collect_stream *stream);
void window_collector__count(struct window_collector *metrics);
double collect_group__counted(const struct collect_group *group, unsigned int slot);
int collect_group__scale(struct collect_group *group, unsigned int slot, double scale);
int window_collector__throttle(struct window_collector *metrics, u64 id, u32 thread,
			       bool is_throttled);
int window_collector__exit(struct window_collector *metrics, u32 thread);
void window_collector__restart(struct window_collector *metrics);
void window_collector__forget_idle(struct window_collector *metrics);
bool window_collector__is_full(const struct window_collector *metrics);
void window_collector__lost(struct window_collector *metrics);

int window_collector__table(const struct window_collector *metrics, struct function_table *table);

#endif /* __PERF_FUNCTIONS_WINDOWS_H */
