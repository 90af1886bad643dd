/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_GROUPS_H
#define __PERF_FUNCTIONS_GROUPS_H

#include <stdbool.h>

char *function_groups__default(const char *leader, const char *modifiers, bool is_verbose);
char *function_groups__of_metrics(const char *leader, const char *modifiers, const char *names);

#endif /* __PERF_FUNCTIONS_GROUPS_H */
