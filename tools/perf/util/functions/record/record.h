/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_RECORD_H
#define __PERF_FUNCTIONS_RECORD_H

#include <stdbool.h>

#include "leaders.h"

struct option;

/* The command that records. */
struct function_recorder {
	const char *name;
	const char *const *usage;
	/* Chooses the events, see function_groups__choose(). */
	char *(*groups)(const char *leader, const char *modifiers, const char *metrics,
			bool is_verbose);
	/* Its own options, NULL if none. They take names away from those of perf record. */
	const struct option *options;
	/* Options of perf record that it refuses; NULL: none. */
	const char *const *without;
	/* Arguments to add before and after those of the user; NULL: none. */
	const char *const *defaults;
	const char *const *arguments;
};

/* The arguments of perf record, and the allocated ones among them. */
struct function_record {
	int argc;
	const char **argv;
	char *group;
	/* The argument of -M, NULL: none. */
	const char *metrics;
	/* The file, NULL: a pipe of the command's own. */
	const char *output;
	struct function_ways ways;
	char **parsed;
	int nr_parsed;
};

int function_record__init(struct function_record *record, struct option *options,
			  const struct function_recorder *recorder, int argc, const char **argv);
void function_record__exit(struct function_record *record);

#endif /* __PERF_FUNCTIONS_RECORD_H */
