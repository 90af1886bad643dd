/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_RECORD_H
#define __PERF_FUNCTIONS_RECORD_H

struct option;

/* The command that records. */
struct function_recorder {
	const char *name;
	const char *const *usage;
	/* Its own ones, which take the names from those of perf record; NULL: none. */
	const struct option *options;
	/* Those of perf record that it does not take, and what this gets besides; NULL: none. */
	const char *const *without;
	const char *const *arguments;
};

/* The arguments of perf record, and those of them that are to be freed. */
struct function_record {
	int argc;
	const char **argv;
	char *group;
	/* Of -M, NULL: none. */
	const char *metrics;
	/* The command that records the same without alternate periods. */
	char *plain;
	char **parsed;
	int nr_parsed;
};

int function_record__init(struct function_record *record, struct option *options,
			  const struct function_recorder *recorder, int argc, const char **argv);
void function_record__exit(struct function_record *record);

#endif /* __PERF_FUNCTIONS_RECORD_H */
