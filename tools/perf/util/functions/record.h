/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_RECORD_H
#define __PERF_FUNCTIONS_RECORD_H

struct option;

/* The arguments of perf record, and the group that is one of them. */
struct function_record {
	int argc;
	const char **argv;
	char *group;
};

int function_record__init(struct function_record *record, const struct option *options,
			  int argc, const char **argv);
void function_record__exit(struct function_record *record);

#endif /* __PERF_FUNCTIONS_RECORD_H */
