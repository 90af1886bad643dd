/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PERF_UI_BROWSERS_FUNCTIONS_H_
#define _PERF_UI_BROWSERS_FUNCTIONS_H_

/* Of the old engine, until that is deleted: its table is not browsed any more. */
#include <linux/compiler.h>

struct function_columns;
struct function_print;
struct function_sums;

typedef const char *(*function_annotate_t)(void *data, const struct function_sums *sums);

static inline int function_print__browse(const struct function_print *print __maybe_unused,
					 struct function_columns *columns __maybe_unused,
					 const char *notes __maybe_unused,
					 function_annotate_t annotate __maybe_unused,
					 void *data __maybe_unused)
{
	return 0;
}

#endif /* _PERF_UI_BROWSERS_FUNCTIONS_H_ */
