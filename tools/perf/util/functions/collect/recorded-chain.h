/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_RECORDED_CHAIN_H
#define __PERF_RECORDED_CHAIN_H

#include <stdbool.h>
#include <linux/types.h>

struct evsel;
struct perf_sample;

/* The call chain of a sample as it was recorded, callees first, and the frame at hand. */
struct recorded_chain {
	struct evsel *evsel;
	struct perf_sample *sample;
	u64 ip;
	u8 cpumode;
	/* The address comes from a register, which may hold something else. */
	bool is_register;
	/* The next address, and the number of addresses recorded up to here. */
	u64 link_register;
	u64 next;
	unsigned int nr;
};

void recorded_chain__begin(struct recorded_chain *chain, struct evsel *evsel,
			   struct perf_sample *sample);
bool recorded_chain__next(struct recorded_chain *chain);
bool recorded_chain__is_cut(const struct recorded_chain *chain);

#endif /* __PERF_RECORDED_CHAIN_H */
