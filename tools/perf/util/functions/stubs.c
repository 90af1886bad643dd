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
#ifndef HAVE_FN_RECORD
bool fn_groups__can_count(const struct fn_groups *groups, const struct strlist *events) { return true; }
#endif
#ifndef HAVE_FN_EVENT_CONFIG
bool fn_event__config(const char *terms, enum fn_vendor vendor, u64 *config)
{
	static const struct {
		const char *name;
		int shift;
	} fields[] = {
		{ "event=", 0 }, { "umask=", 8 }, { "edge=", 18 }, { "any=", 21 },
		{ "inv=", 23 }, { "cmask=", 24 },
	};

	*config = 0;
	for (const char *term = terms; term && *term; term = strchr(term, ',')) {
		bool is_known;
		u64 value;

		term += *term == ',';
		is_known = !strncmp(term, "period=", 7);
		for (size_t i = 0; !is_known && i < ARRAY_SIZE(fields); i++) {
			if (strncmp(term, fields[i].name, strlen(fields[i].name)))
				continue;
			is_known = true;
			value = strtoull(strchr(term, '=') + 1, NULL, 0);
			if (!i && vendor == FN_VENDOR_AMD)
				value = (value & 0xff) | (value & 0xf00) << 24;
			*config |= value << fields[i].shift;
		}
		if (!is_known)
			return false;
	}
	return true;
}
#endif
