/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_RECORDING_H
#define __PERF_FUNCTIONS_RECORDING_H

#include <stdbool.h>
#include <stdio.h>

#include "sums.h"
#include "windows.h"

/* An interrupt does not affect branch records any more after this number of cycles. */
#define RECORDING_LEAST_UNDISTURBED	3000

struct perf_cpu_map;
struct recording;

/* Takes the sums of the span of a recording from @begin to @end; an error ends the reading. */
typedef int (*recording_take_t)(void *data, const struct function_table *table, u64 begin,
				u64 end);

/* Selects the windows of a recording that count, and their rows. */
struct recording_options {
	const char *name;	/* for messages, NULL: the path */
	enum function_share share;
	enum function_source source;
	const char *by;		/* names of keys, separated by commas */
	const char *time;	/* spans of time, NULL: all */
	struct perf_cpu_map *cpus;	/* NULL: all */
	bool inlines;
	bool stitch_lbr;
	bool force;
	u64 span;		/* ns, 0: all is one */
	recording_take_t take;	/* with spans: called for each one with windows */
	/*
	 * For a pipe to which perf record writes meanwhile, else NULL. Called after each round of
	 * it; returns true if @take is to get the sums since its last call.
	 */
	bool (*is_due)(void *data);
	void *data;		/* for @take and @is_due */
	/* Told when the reading begins, with its number of samples so far, and ends; or NULL. */
	void (*begin)(const char *name, const u64 *samples);
	void (*end)(void);
	FILE *header;		/* output for the recording's header, NULL: none */
	bool annotate;		/* keep the recording, to show the code of functions */
};

int recording__read(const char *path, const struct recording_options *options,
		    struct function_table *table, struct recording **kept);
void recordings__delete(struct recording *recordings);
const char *recordings__annotate(struct recording *recordings, const struct function_sums *sums);
bool recording_options__need_lines(const struct recording_options *options);
const char *recording_options__filter(const struct recording_options *options);

#endif /* __PERF_FUNCTIONS_RECORDING_H */
