/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_TREE_PRINT_H
#define __PERF_FUNCTIONS_TREE_PRINT_H

#include <stdio.h>

struct function_print;
struct function_tree;

int function_tree__print(const struct function_tree *tree, const struct function_print *print,
			 FILE *fp);

#endif /* __PERF_FUNCTIONS_TREE_PRINT_H */
