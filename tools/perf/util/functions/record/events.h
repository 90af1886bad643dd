/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_EVENTS_H
#define __PERF_FUNCTIONS_EVENTS_H

#include <stdbool.h>
#include <linux/types.h>

struct perf_event_attr;

/* Words that columns use beside names of events: no event has such a name. */
#define FUNCTION_SAMPLES	"samples"
#define FUNCTION_MATCHED	"matched"
#define FUNCTION_DISCARDED	"discarded"
#define FUNCTION_TOTAL		"total"

/* Whose numbers of events a CPU has. */
enum function_vendor {
	FUNCTION_VENDOR_UNKNOWN,
	FUNCTION_VENDOR_ARM,
	FUNCTION_VENDOR_INTEL,
	FUNCTION_VENDOR_AMD,
};

enum function_vendor function_cpu_vendor(const char *cpu);
const char *function_vendor__name(enum function_vendor vendor);

bool function_event_is_reserved(const char *name);
char *function_event_name(const struct perf_event_attr *attr, const char *name,
			  const char *cpu);
bool function_event_differs(const struct perf_event_attr *attr,
			    const struct perf_event_attr *other, const char *cpu);
bool function_event_is_portable(const char *name);
bool function_event_is_branch(const char *name);
u32 function_event_core(const struct perf_event_attr *attr);

#endif /* __PERF_FUNCTIONS_EVENTS_H */
