/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_RECORD_H
#define __PERF_FUNCTIONS_RECORD_H

#include <stdbool.h>

struct fn_groups;
struct option;

/* The command that records. */
struct fn_recorder {
	const char *const *usage;
	/* Its own options, NULL if none. They take names away from those of perf record. */
	const struct option *options;
	/* Options of perf record that it refuses; NULL: none. */
	const char *const *without;
	/* Arguments to add before and after those of the user; NULL: none. */
	const char *const *defaults;
	const char *const *arguments;
	/* Adds the events of -M; prints a message if there are none. */
	int (*add_metrics)(struct fn_groups *groups, const char *names);
};

/* How to call cmd_record(). */
struct fn_record {
	int argc;
	const char **argv;
	/* Those of perf record, and of this command, which have no effect any more. */
	struct option *options;
	char *events;
	bool has_own_events;		/* of -e */
	char count[24];			/* of --period */
	const char *metrics;		/* of -M, NULL: none */
	const char *output;		/* NULL: a pipe of the command's own */
};

int fn_record__init(struct fn_record *record, const struct option *options,
		    const struct fn_recorder *recorder, int argc, const char **argv);
void fn_record__explain(const struct fn_record *record);
void fn_record__exit(struct fn_record *record);

#endif /* __PERF_FUNCTIONS_RECORD_H */
