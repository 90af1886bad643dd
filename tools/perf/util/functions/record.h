/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_RECORD_H
#define __PERF_FUNCTIONS_RECORD_H

struct option;

/* The arguments of perf record, and those of them that are to be freed. */
struct function_record {
	int argc;
	const char **argv;
	char *group;
	/* The command that records the same without alternate periods. */
	char *plain;
	char **parsed;
	int nr_parsed;
};

int function_record__init(struct function_record *record, struct option *options,
			  int argc, const char **argv);
void function_record__exit(struct function_record *record);

#endif /* __PERF_FUNCTIONS_RECORD_H */
