/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTION_EVENTS_H
#define __PERF_FUNCTION_EVENTS_H

struct perf_event_attr;

char *function_event_name(const struct perf_event_attr *attr, const char *name,
			  const char *cpu);

#endif /* __PERF_FUNCTION_EVENTS_H */
