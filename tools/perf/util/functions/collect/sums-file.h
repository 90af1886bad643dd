/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_SUMS_FILE_H
#define __PERF_FUNCTIONS_SUMS_FILE_H

#include <stddef.h>
#include <stdio.h>

struct function_table;

#define FUNCTION_SUMS_MAGIC	"perf-function-sums"
#define FUNCTION_SUMS_VERSION	5
/* The oldest version that can be read. It has no event samples. */
#define FUNCTION_SUMS_OLDEST	4

int function_table__write(const struct function_table *table, FILE *fp);
int function_table__read(struct function_table *table, FILE *fp, char *msg, size_t size);

#endif /* __PERF_FUNCTIONS_SUMS_FILE_H */
