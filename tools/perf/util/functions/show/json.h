/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_JSON_H
#define __PERF_FUNCTIONS_JSON_H

#include <stdio.h>

struct function_diff_print;
struct function_print;

int function_print__json(const struct function_print *print, FILE *fp);
int function_diff_print__json(const struct function_diff_print *print, FILE *fp);

#endif /* __PERF_FUNCTIONS_JSON_H */
