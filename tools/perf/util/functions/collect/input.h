/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_INPUT_H
#define __PERF_FUNCTIONS_INPUT_H

#include <stdbool.h>

struct function_table;
struct recording;
struct recording_options;

/* Options for one input, a recording or a sums file. */
struct function_input_options {
	struct recording_options *recording;
	bool has_rows;		/* the user has chosen the rows: no sums of others */
	const char *sums;	/* the sums file to write, which may not replace an input */
};

int function_input__read(const char *path, const struct function_input_options *options,
			 struct function_table *table, struct recording **kept);
int function_input__refuse_sum(const char *path, const char *reason);
void function_input__note_empty(const char *path, const struct recording_options *options);

#endif /* __PERF_FUNCTIONS_INPUT_H */
