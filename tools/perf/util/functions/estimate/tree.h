/* SPDX-License-Identifier: GPL-2.0 */
#ifndef __PERF_FUNCTIONS_TREE_H
#define __PERF_FUNCTIONS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct function_columns;
struct function_row;
struct function_table;

/* A metric of a tree. The texts belong to perf's tables, which are constant. */
struct function_tree_node {
	int column;
	const char *name;
	const char *pmu;
	const char *unit;
	const char *threshold;	/* an expression, NULL if the vendor gives none */
	double scale;		/* factor from the threshold's unit to the value's */
	bool is_root;
	bool is_hidden;		/* needed for thresholds of others only */
	bool is_recorded;	/* some part of it was recorded */
	char *parts;		/* the groups that its parts are in, NULL if it has none */
};

/* The metrics of -M and their parts. */
struct function_tree {
	struct function_tree_node *nodes;
	unsigned int nr;
	bool has_parts;		/* also of parts that the user did not name */
	bool opens_all;
	bool *is_part;		/* nr x nr: the second is a part of the first */
	/* For each row, by place in the table: whether each metric is above its threshold. */
	enum function_above { FUNCTION_NO_THRESHOLD, FUNCTION_BELOW, FUNCTION_ABOVE } *above;
};

/* A metric of a row, in the order in which a tree is printed. */
struct function_tree_line {
	const struct function_tree_node *node;
	unsigned int depth;
	enum function_above above;
	bool is_open;		/* its parts follow, as far as they were recorded */
};

int function_tree__add(struct function_tree *tree, const struct function_tree_node *node);
int function_tree__judge(struct function_tree *tree, const struct function_table *table,
			 const struct function_columns *columns);
void function_tree__exit(struct function_tree *tree);
struct function_tree_line *function_tree__lines(const struct function_tree *tree,
						const struct function_table *table,
						const struct function_row *row, unsigned int *nr);

#endif /* __PERF_FUNCTIONS_TREE_H */
