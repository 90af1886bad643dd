/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_PROGRESS_H
#define __PERF_FUNCTIONS_PROGRESS_H

void function_progress__begin(const char *path);
void function_progress__count(void);
void function_progress__end(void);

#endif /* __PERF_FUNCTIONS_PROGRESS_H */
