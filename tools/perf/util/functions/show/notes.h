/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_NOTES_H
#define __PERF_FUNCTIONS_NOTES_H

#include <stdbool.h>

#include "../estimate/diff.h"

/* The notes depend on these options, too. */
struct function_notes {
	bool is_corrected;
	bool wants_lines;	/* rows need addr2line */
	const char *share;	/* the share mode that the user has named, or NULL */
};

bool function_notes__has_addr2line(void);
void function_notes__print(const struct function_notes *notes, const struct function_table *table,
			   const struct function_columns *columns);
void function_notes__print_sides(const struct function_notes *notes,
				 const struct function_runs *before,
				 const struct function_runs *after,
				 const struct function_diff *diff);

#endif /* __PERF_FUNCTIONS_NOTES_H */
