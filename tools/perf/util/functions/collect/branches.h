/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_BRANCHES_H
#define __PERF_FUNCTIONS_BRANCHES_H

#include <stddef.h>
#include <linux/types.h>

struct branch_paths;
struct collect_function;
struct machine;
struct perf_event_attr;
struct perf_sample;
struct window_collector;

/* What the addresses of a sample's branch records mean. */
struct branch_context {
	struct machine *machine;
	const struct perf_sample *sample;
	/* How many cycles it stands for. */
	u64 weight;
	/* Number of changes of threads and maps so far. */
	u32 change;
	/* Sets the function at an address: NULL if the user does not want to see it. */
	int (*find)(void *data, u64 address, struct collect_function **function);
	void *data;
};

struct branch_paths *branch_paths__new(struct window_collector *metrics,
				       const struct perf_event_attr *cycles, const char *arch,
				       struct branch_paths *next);
int branch_paths__add_counter(struct branch_paths *paths, const struct perf_event_attr *attr,
			      const char *name, const char *cpu, unsigned int width);
void branch_paths__delete(struct branch_paths *paths);
int branch_paths__sample(struct branch_paths *paths, const struct branch_context *context);
void branch_paths__choose(struct branch_paths *paths);
void branch_paths__restart(struct branch_paths *paths);
void branch_paths__describe(const struct branch_paths *paths, char *text, size_t size);

#endif /* __PERF_FUNCTIONS_BRANCHES_H */
