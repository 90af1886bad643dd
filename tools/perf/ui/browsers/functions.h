/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _PERF_UI_BROWSERS_FUNCTIONS_H_
#define _PERF_UI_BROWSERS_FUNCTIONS_H_

#include <linux/compiler.h>

struct function_columns;
struct function_print;
struct function_sums;

/* Show the code of a function, or say why not. */
typedef const char *(*function_annotate_t)(void *data, const struct function_sums *sums);

#ifdef HAVE_SLANG_SUPPORT
int function_print__browse(const struct function_print *print, struct function_columns *columns,
			   const char *notes, function_annotate_t annotate, void *data);
#else
static inline int function_print__browse(const struct function_print *print __maybe_unused,
					 struct function_columns *columns __maybe_unused,
					 const char *notes __maybe_unused,
					 function_annotate_t annotate __maybe_unused,
					 void *data __maybe_unused)
{
	return 0;
}
#endif

#endif /* _PERF_UI_BROWSERS_FUNCTIONS_H_ */
