/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_GROUPS_H
#define __PERF_FUNCTIONS_GROUPS_H

#include <stdbool.h>

char *function_groups__choose(const char *leader, const char *modifiers, const char *metrics,
			      bool is_verbose);

#endif /* __PERF_FUNCTIONS_GROUPS_H */
