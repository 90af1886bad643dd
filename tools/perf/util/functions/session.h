/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The state of a session, for session.c, sets.c and the sources, and what these ask sets.c.
 */
#ifndef __PERF_FUNCTIONS_SESSION_H
#define __PERF_FUNCTIONS_SESSION_H

#include "../auxtrace.h"
#include "../data.h"
#include "../machine.h"
#include "../tool.h"
#include "functions.h"

struct perf_session;
struct perf_time_interval;

#define PLACES_BITS	14

struct fn_session {
	struct perf_tool tool;
	struct perf_data data;
	struct perf_session *session;
	const struct fn_options *options;
	const char *name;
	struct fn_table *all, span;
	struct fn_table *table;		/* what observations are added to: one of both */
	struct fn_rows *rows;
	struct fn_streams *streams;
	struct fn_chains chains;
	bool has_chains;		/* with --children */
	struct fn_paths *paths;
	struct fn_operations *operations;
	struct itrace_synth_opts itrace;	/* what perf makes of SPE's records */
	u64 nr_aux, nr_cut, nr_collided;	/* pieces of AUX data */
	char *cpu;
	/* A cache of places by hash, because samples gather at few and a lookup takes long. */
	struct fn_place places[1 << PLACES_BITS];
	u32 nr_changes;			/* of threads and maps, from 1 */
	bool has_set, has_aux, has_event, wants_sites;
	bool is_newer;			/* it has what only a newer perf knows */
	int err;			/* of a sample, printed unless it is -ENOMEM */
	u32 noted;			/* see note_unnamed() */
	struct strlist *ignored;
	u64 lost_records, lost_samples, told_lost;
	u64 nr_tasks;			/* that began during the recording */
	bool is_of_tasks;		/* its events are those of tasks, not of CPUs */
	u64 begin, forgot;	/* spans */
	u64 last_time;			/* of all samples */
	struct perf_time_interval *ranges;
	int range_size, range_num;
};

/* The kernel's modules may lie before it, as on arm64. */
static inline bool fn_is_in_kernel(struct machine *machine, u64 address)
{
	return address >> 63 || machine__kernel_ip(machine, address);
}

/* Adds an event with its whole group, when its first sample comes. */
int fn_session__add_events(struct fn_session *session, struct evsel *evsel,
			   const struct perf_sample *sample);
/* The groups of a recording without samples are known from its header. */
int fn_session__add_idle_events(struct fn_session *session);
bool fn_session__takes(struct fn_session *session, struct evsel *evsel);	/* its samples */
/* Print why events cannot be read. */
int fn_evsel__refuse(struct evsel *evsel, const char *reason);
int fn_evsel__refuse_values(struct evsel *evsel);
/* Returns true, after a message, if the samples of an event lack what was requested. */
bool fn_session__refuses(struct fn_session *session, struct evsel *evsel);
bool fn_evsel__has_counts(const struct evsel *evsel);	/* in its samples */
/* Whether events may be of several cgroups: their attrs do not tell. */
bool fn_session__has_cgroups(const struct fn_session *session);
bool fn_evsel__is_alone(struct evsel *evsel);		/* in no group that is known */
bool fn_evsel__is_sampler(const struct evsel *evsel);
bool fn_evsel__is_of_aux(struct evsel *evsel);
struct fn_group fn_evsel__group(const struct evsel *evsel);	/* without windows */

#endif /* __PERF_FUNCTIONS_SESSION_H */
