/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_RESOLVE_H
#define __PERF_FUNCTIONS_RESOLVE_H

#include <stdbool.h>
#include <sys/types.h>
#include <linux/types.h>

#include "sums.h"

struct addr_location;
struct dso;
struct evsel;
struct function_chain;
struct function_finder;
struct window_collector;
struct machine;
struct collect_function;
struct perf_sample;
struct thread;

struct function_finder *function_finder__new(struct window_collector *metrics, const char *by,
					     bool inlines, bool stitch_lbr);
void function_finder__delete(struct function_finder *finder);

bool function_finder__needs_sample(const struct function_finder *finder);
bool function_finder__is_nowhere(const struct function_finder *finder,
				 const struct perf_sample *sample);
const char *function_finder__lacks(const struct function_finder *finder, struct evsel *evsel);
u64 function_finder__thread(struct function_finder *finder, struct thread *thread);
struct collect_function *function_finder__find(struct function_finder *finder, struct evsel *evsel,
					       struct perf_sample *sample,
					       struct addr_location *al);
int function_finder__chain(struct function_finder *finder, struct evsel *evsel,
			   struct perf_sample *sample, struct machine *machine, u64 thread,
			   struct collect_function *function, struct function_chain *chain);
bool function_dso__is_jit(const struct dso *dso);
pid_t function_finder__unmapped(const struct function_finder *finder);
int function_finder__name_rows(struct function_finder *finder);
void function_finder__forget(struct function_finder *finder);

#endif /* __PERF_FUNCTIONS_RESOLVE_H */
