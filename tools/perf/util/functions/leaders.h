/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_LEADERS_H
#define __PERF_FUNCTIONS_LEADERS_H

#include <stdbool.h>
#include <linux/types.h>

struct option;

/* How perf functions record samples, as far as the terms of an event do not say it. */
struct function_sampling {
	u64 period;		/* 0: -c or -F say it */
	u64 window;		/* 0: no alternate period */
	u32 jitter;
	u32 burst;
	/* What the user asked for: events with terms of their own get that, too. */
	bool has_window;
	bool has_jitter;
	bool has_burst;
	/* The events are those of -e. */
	bool has_events;
	/* Children of the command, or of the process, are expected in the profile. */
	bool with_children;
};

int function_leaders__sample(struct option *options, const struct function_sampling *sampling);
void function_leaders__explain(const char *plain);

#endif /* __PERF_FUNCTIONS_LEADERS_H */
