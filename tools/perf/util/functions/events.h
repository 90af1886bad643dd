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
enum fn_vendor {
	FN_VENDOR_UNKNOWN,
	FN_VENDOR_ARM,
	FN_VENDOR_INTEL,
	FN_VENDOR_AMD,
};

enum fn_vendor fn_cpu__vendor(const char *cpu);
const char *fn_vendor__name(enum fn_vendor vendor);

bool fn_event__is_reserved(const char *name);
char *fn_event__name(const struct perf_event_attr *attr, const char *name, const char *cpu);
bool fn_event__differs(const struct perf_event_attr *attr, const struct perf_event_attr *other,
		       const char *cpu);
bool fn_event__is_portable(const char *name);
bool fn_event__is_time(const char *name);
bool fn_event__is_branch(const char *name);
bool fn_event__config(const char *terms, enum fn_vendor vendor, u64 *config);
u32 fn_event__core(const struct perf_event_attr *attr);

#endif /* __PERF_FUNCTIONS_EVENTS_H */
