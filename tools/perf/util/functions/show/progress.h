/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_PROGRESS_H
#define __PERF_FUNCTIONS_PROGRESS_H

#include <linux/types.h>

void function_progress__begin(const char *path, const u64 *samples);
void function_progress__end(void);

#endif /* __PERF_FUNCTIONS_PROGRESS_H */
