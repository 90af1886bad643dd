/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_RECORDED_FILE_H
#define __PERF_RECORDED_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct dso;
struct machine;

bool machine__is_running(struct machine *machine);
bool dso__refuses_file(struct dso *dso, const char *path);
bool dso__has_own_file(struct dso *dso);
const char *dso__own_perf_map(struct dso *dso, const char *path, char *buf, size_t size);

#endif /* __PERF_RECORDED_FILE_H */
