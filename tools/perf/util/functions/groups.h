/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_GROUPS_H
#define __PERF_FUNCTIONS_GROUPS_H

char *function_groups__default(const char *leader, const char *other, const char *modifiers);
char *function_groups__of_metrics(const char *leader, const char *other, const char *modifiers,
				  const char *names);

#endif /* __PERF_FUNCTIONS_GROUPS_H */
