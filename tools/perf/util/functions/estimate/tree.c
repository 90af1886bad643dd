// SPDX-License-Identifier: GPL-2.0
/*
 * Vendors' metrics as a tree, which shows what each function waits for, and why. The metrics above
 * their thresholds are open, level by level.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#include "../../debug.h"
#include "../../expr.h"
#include "../text.h"
#include "../collect/sums.h"
#include "columns.h"
#include "tree.h"

/**
 * function_tree__add - add a metric
 * @tree: the tree
 * @node: the metric, whose parts the tree frees
 *
 * Return: 0, or -ENOMEM.
 */
int function_tree__add(struct function_tree *tree, const struct function_tree_node *node)
{
	struct function_tree_node *nodes = realloc(tree->nodes, (tree->nr + 1) * sizeof(*nodes));

	if (!nodes) {
		free(node->parts);
		return -ENOMEM;
	}
	tree->nodes = nodes;
	nodes[tree->nr++] = *node;
	return 0;
}

/**
 * function_tree__exit - free what a tree holds
 * @tree: the tree
 */
void function_tree__exit(struct function_tree *tree)
{
	for (unsigned int i = 0; i < tree->nr; i++)
		free(tree->nodes[i].parts);
	zfree(&tree->nodes);
	zfree(&tree->is_part);
	zfree(&tree->above);
	tree->nr = 0;
}

static size_t tree_place_of(const struct function_table *table, const struct function_row *row)
{
	return row->sums - table->sums;
}

/*
 * Thresholds use metrics by name, with the values of their expressions. This judges those of one
 * kind of cores: each kind has metrics of the same names.
 */
static int judge_kind(const struct function_tree *tree, const struct function_row *row,
		      const char *pmu, enum function_above *above)
{
	struct expr_parse_ctx *ctx = expr__ctx_new();
	int err = ctx ? 0 : -ENOMEM;

	for (unsigned int i = 0; !err && i < tree->nr; i++) {
		const struct function_tree_node *node = &tree->nodes[i];
		const struct function_value *value = &row->values[node->column];
		char *name;

		if (!value->is_defined || strcmp(node->pmu, pmu))
			continue;
		name = strdup(node->name);
		err = name ? expr__add_id_val(ctx, name, value->value / node->scale) : -ENOMEM;
		if (err)
			free(name);
	}
	for (unsigned int i = 0; !err && i < tree->nr; i++) {
		const struct function_tree_node *node = &tree->nodes[i];
		double is_above;

		if (!node->threshold || !row->values[node->column].is_defined ||
		    strcmp(node->pmu, pmu))
			continue;
		/* A metric without a value is not above its threshold. */
		if (expr__parse(&is_above, ctx, node->threshold) || isnan(is_above))
			is_above = 0;
		above[i] = is_above ? FUNCTION_ABOVE : FUNCTION_BELOW;
	}
	expr__ctx_free(ctx);
	return err;
}

static int judge_row(const struct function_tree *tree, const struct function_row *row,
		     enum function_above *above)
{
	int err = 0;

	for (unsigned int i = 0; !err && i < tree->nr; i++) {
		const char *pmu = tree->nodes[i].pmu;
		unsigned int first = 0;

		while (strcmp(tree->nodes[first].pmu, pmu))
			first++;
		if (first == i)
			err = judge_kind(tree, row, pmu, above);
	}
	return err;
}

/**
 * function_tree__judge - find which metrics are above their thresholds
 * @tree: the tree
 * @table: the table of the rows
 * @columns: the values
 *
 * Return: 0, or -ENOMEM.
 */
int function_tree__judge(struct function_tree *tree, const struct function_table *table,
			 const struct function_columns *columns)
{
	int err = 0;

	tree->above = calloc(table->nr_sums * tree->nr ?: 1, sizeof(*tree->above));
	if (!tree->above)
		return -ENOMEM;
	for (size_t r = 0; !err && r < columns->nr_rows; r++) {
		const struct function_row *row = &columns->rows[r];

		err = judge_row(tree, row, tree->above + tree_place_of(table, row) * tree->nr);
	}
	return err;
}

/* The state of a walk through the tree of a row. */
struct walk {
	const struct function_tree *tree;
	const struct function_row *row;
	const enum function_above *above;
	bool *opened;		/* each metric once, even if it has several parents */
	struct function_tree_line *lines;
	unsigned int nr;
};

static const struct function_value *tree_value_of(const struct walk *walk, unsigned int node)
{
	return &walk->row->values[walk->tree->nodes[node].column];
}

static bool is_child(const struct function_tree *tree, int parent, unsigned int node)
{
	return parent < 0 ? tree->nodes[node].is_root : tree->is_part[parent * tree->nr + node];
}

/* Returns the largest metric with parts among those without thresholds, -1 if there is none. */
static int largest(const struct walk *walk, int parent)
{
	const struct function_tree *tree = walk->tree;
	int found = -1;

	for (unsigned int i = 0; i < tree->nr; i++) {
		if (!is_child(tree, parent, i) || tree->nodes[i].threshold ||
		    !tree->nodes[i].parts || !tree_value_of(walk, i)->is_defined)
			continue;
		if (found < 0 || tree_value_of(walk, i)->value > tree_value_of(walk, found)->value)
			found = i;
	}
	return found;
}

static int add_parts(struct walk *walk, int parent, unsigned int depth)
{
	const struct function_tree *tree = walk->tree;
	const int first = largest(walk, parent);

	for (unsigned int i = 0; i < tree->nr; i++) {
		struct function_tree_line *lines;
		bool opens;
		int err;

		if (!is_child(tree, parent, i))
			continue;
		lines = realloc(walk->lines, (walk->nr + 1) * sizeof(*lines));
		if (!lines)
			return -ENOMEM;
		walk->lines = lines;
		opens = tree->nodes[i].parts && !walk->opened[i] &&
			(tree->opens_all || (int)i == first || walk->above[i] == FUNCTION_ABOVE);
		lines[walk->nr++] = (struct function_tree_line) {
			.node = &tree->nodes[i], .depth = depth, .above = walk->above[i],
			.is_open = opens,
		};
		if (!opens)
			continue;
		walk->opened[i] = true;
		err = add_parts(walk, i, depth + 1);
		if (err)
			return err;
	}
	return 0;
}

/**
 * function_tree__lines - open the tree of a function
 * @tree: the tree
 * @table: the table of the row
 * @row: the function
 * @nr: set to the number of lines
 *
 * Return: the metrics to print, to be freed, NULL without memory.
 */
struct function_tree_line *function_tree__lines(const struct function_tree *tree,
						const struct function_table *table,
						const struct function_row *row, unsigned int *nr)
{
	struct walk walk = {
		.tree = tree, .row = row,
		.above = tree->above + tree_place_of(table, row) * tree->nr,
		.opened = calloc(tree->nr ?: 1, sizeof(*walk.opened)),
		.lines = calloc(1, sizeof(*walk.lines)),
	};

	if (!walk.opened || !walk.lines || add_parts(&walk, -1, 0))
		zfree(&walk.lines);
	free(walk.opened);
	*nr = walk.nr;
	return walk.lines;
}
