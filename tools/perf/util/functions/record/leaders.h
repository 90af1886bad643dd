/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_LEADERS_H
#define __PERF_FUNCTIONS_LEADERS_H

#include <stdbool.h>
#include <linux/types.h>

struct option;

/* Whether samples have the last branches. */
enum function_branches {
	FUNCTION_BRANCHES_NONE,
	FUNCTION_BRANCHES_AUTO,	/* where the PMU records them with cycles, beside this group */
	FUNCTION_BRANCHES_ALL,
};

/* The sampling by perf functions record of events whose terms do not give it. */
struct function_sampling {
	u64 period;		/* 0: -c or -F sets it */
	u64 rate;		/* of samples a second, if members sample, too; else 0 */
	u64 window;		/* 0: no alternate period */
	u32 jitter;
	u32 burst;
	enum function_branches branches;
	/* The user's explicit choices, which also apply to events with terms of their own. */
	bool has_window;
	bool has_jitter;
	bool has_burst;
	/* Children of the command, or of the process, are expected in the profile. */
	bool with_children;
};

/* The samples a second of all other events together, beside a leader that alternates. */
static inline u64 function_sampling__members(const struct function_sampling *sampling)
{
	return sampling->rate * 2 / 5;
}

/* Commands to copy, which record what the user wants in another way. */
struct function_ways {
	char *plain;		/* the same without alternate periods */
	char *clock;		/* by the clock instead of a PMU */
	char *plain_clock;	/* both; events sample themselves, unless windows were asked for */
};

int function_leaders__sample(struct option *options, const struct function_sampling *sampling,
			     const struct function_ways *ways);
void function_leaders__explain(void);

#endif /* __PERF_FUNCTIONS_LEADERS_H */
