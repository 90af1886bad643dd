/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_GROUPS_H
#define __PERF_FUNCTIONS_GROUPS_H

struct fn_groups;

int fn_metrics__add_groups(struct fn_groups *groups, const char *names);

#endif /* __PERF_FUNCTIONS_GROUPS_H */
