/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_READ_DELTA_H
#define __PERF_READ_DELTA_H

#include <linux/types.h>

struct hashmap;

struct hashmap *read_deltas__new(void);
void read_deltas__delete(struct hashmap *deltas);
int read_deltas__next(struct hashmap *deltas, u32 machine_pid, u32 tid, u64 id, u64 value,
		      u64 *delta);
void read_deltas__forget(struct hashmap *deltas, u32 machine_pid, u32 tid);

#endif /* __PERF_READ_DELTA_H */
