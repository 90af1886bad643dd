/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_TEXT_H
#define __PERF_FUNCTIONS_TEXT_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/types.h>

/* For text from a file, which may contain any bytes. */
int function_text__character(const char *text, bool *is_control);
int function_text__width(const char *text);
char *function_text__printable(const char *text);
char *function_text__lower(const char *text);
const char *function_text__base_name(const char *path);
int function_text__u64(const char *str, int base, u64 *value);

#endif /* __PERF_FUNCTIONS_TEXT_H */
