// SPDX-License-Identifier: GPL-2.0
/* Until the files of others are here. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include "functions.h"
#include "record/events.h"

#ifndef HAVE_FN_EVENTS
char *fn_event__name(const struct perf_event_attr *attr, const char *name, const char *cpu)
{
	return function_event_name(attr, name, cpu);
}
bool fn_event__differs(const struct perf_event_attr *attr, const struct perf_event_attr *other,
		       const char *cpu)
{
	return function_event_differs(attr, other, cpu);
}
bool fn_event__is_portable(const char *name)
{
	return function_event_is_portable(name);
}
bool fn_event__is_time(const char *name)
{
	return !strcmp(name, "cycles") || !strcmp(name, "cpu-clock") || !strcmp(name, "task-clock");
}
bool fn_event__is_branch(const char *name)
{
	return function_event_is_branch(name);
}
u32 fn_event__core(const struct perf_event_attr *attr)
{
	return function_event_core(attr);
}
enum fn_vendor fn_cpu__vendor(const char *cpu)
{
	return (enum fn_vendor)function_cpu_vendor(cpu);
}
const char *fn_vendor__name(enum fn_vendor vendor)
{
	return function_vendor__name((enum function_vendor)vendor);
}
#endif
#ifndef HAVE_FN_METRICS
int fn_metrics__add(struct fn_columns *columns, const char *names, bool is_silent) { return 0; }
#endif
