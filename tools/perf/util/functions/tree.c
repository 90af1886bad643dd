// SPDX-License-Identifier: GPL-2.0
/*
 * Vendors' metrics as a tree, which shows what each function waits for, and why. It opens the
 * metrics above their thresholds, level by level.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>
#include <subcmd/pager.h>

#include "../color.h"
#include "../debug.h"
#include "../expr.h"
#include "columns.h"
#include "print.h"
#include "sums.h"
#include "text.h"
#include "tree.h"

/* Room before the name of a metric, with a > if it is above its threshold. */
#define MARK_WIDTH	2

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

static size_t place_of(const struct function_table *table, const struct function_row *row)
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

		err = judge_row(tree, row, tree->above + place_of(table, row) * tree->nr);
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

static const struct function_value *value_of(const struct walk *walk, unsigned int node)
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
		    !tree->nodes[i].parts || !value_of(walk, i)->is_defined)
			continue;
		if (found < 0 || value_of(walk, i)->value > value_of(walk, found)->value)
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
		.above = tree->above + place_of(table, row) * tree->nr,
		.opened = calloc(tree->nr ?: 1, sizeof(*walk.opened)),
		.lines = calloc(1, sizeof(*walk.lines)),
	};

	if (!walk.opened || !walk.lines || add_parts(&walk, -1, 0))
		zfree(&walk.lines);
	free(walk.opened);
	*nr = walk.nr;
	return walk.lines;
}

/* The widths of the parts of lines. */
struct widths {
	int name;
	int value;
	int interval;
};

/* State for printing functions with their trees. */
struct tree_print {
	const struct function_tree *tree;
	const struct function_print *print;
	char **labels;
	struct widths widths;
	FILE *fp;
};

/* Returns a print whose only field is the metric of a line. */
static struct function_print print_of(const struct tree_print *tree, const int *column)
{
	struct function_print print = *tree->print;

	print.fields = column;
	print.nr_fields = 1;
	return print;
}

/* With several kinds of cores, the column's name begins with the kind. */
static const char *name_of(const struct tree_print *tree, const struct function_tree_line *line)
{
	return tree->print->columns->columns[line->node->column].name;
}

typedef void (*visit_line)(struct tree_print *tree, const struct function_row *row,
			   const struct function_tree_line *line);

static int visit_lines(struct tree_print *tree, const struct function_row *row, visit_line visit)
{
	unsigned int nr;
	struct function_tree_line *lines = function_tree__lines(tree->tree, tree->print->table,
								row, &nr);

	if (!lines)
		return -ENOMEM;
	for (unsigned int i = 0; i < nr; i++)
		visit(tree, row, &lines[i]);
	free(lines);
	return 0;
}

static int indent_of(const struct function_tree_line *line)
{
	return MARK_WIDTH * (line->depth + 2);
}

static void measure(struct tree_print *tree, const struct function_row *row,
		    const struct function_tree_line *line)
{
	const struct function_print print = print_of(tree, &line->node->column);
	struct widths *widths = &tree->widths;
	int name = strlen(name_of(tree, line)), value, interval;
	char buf[FUNCTION_INTERVAL_SIZE];

	value = strlen(function_print__cell(&print, row, 0, buf));
	interval = strlen(function_print__interval(&print, row, 0, buf));
	widths->name = max(widths->name, indent_of(line) + name);
	widths->value = max(widths->value, value);
	widths->interval = max(widths->interval, interval);
}

static void print_line(struct tree_print *tree, const struct function_row *row,
		       const struct function_tree_line *line)
{
	const struct function_print print = print_of(tree, &line->node->column);
	const struct function_value *value = &row->values[line->node->column];
	char buf[FUNCTION_INTERVAL_SIZE];
	int indent = indent_of(line);

	color_fprintf(tree->fp,
		      line->above == FUNCTION_ABOVE ? PERF_COLOR_RED : PERF_COLOR_NORMAL,
		      "%*s%-*s %*s", indent, line->above == FUNCTION_ABOVE ? "> " : "",
		      tree->widths.name - indent, name_of(tree, line), tree->widths.value,
		      function_print__cell(&print, row, 0, buf));
	fputc(value->is_weak ? '?' : ' ', tree->fp);
	if (tree->print->intervals)
		fprintf(tree->fp, " %*s", tree->widths.interval,
			function_print__interval(&print, row, 0, buf));
	if (value->is_defined && line->node->unit && *line->node->unit)
		fprintf(tree->fp, " %s", line->node->unit);
	fputc('\n', tree->fp);
}

/* Prints a function, and its part of the program. */
static void print_function(const struct tree_print *tree, const struct function_row *row)
{
	const struct function_columns *columns = tree->print->columns;
	const int share = function_columns__default_sort(columns);
	const struct function_print print = print_of(tree, &share);
	char buf[FUNCTION_CELL_SIZE];

	fprintf(tree->fp, "%s  %s %s\n", tree->labels[place_of(tree->print->table, row)],
		columns->columns[share].name, function_print__cell(&print, row, 0, buf));
}

/* Prints a note for each metric that would open if its parts had been recorded. */
static int note_parts(const struct tree_print *tree)
{
	bool *noted = calloc(tree->tree->nr ?: 1, sizeof(*noted));

	for (size_t r = 0; noted && r < tree->print->nr_rows; r++) {
		const struct function_row *row = &tree->print->columns->rows[r];
		unsigned int nr;
		struct function_tree_line *lines =
			function_tree__lines(tree->tree, tree->print->table, row, &nr);

		for (unsigned int i = 0; lines && i < nr; i++) {
			unsigned int node = lines[i].node - tree->tree->nodes;

			if (!lines[i].is_open || noted[node] || lines[i].node->is_recorded)
				continue;
			noted[node] = true;
			pr_warning("perf functions: the parts of %s were not recorded: record them with perf functions record -M %s\n",
				   lines[i].node->name, lines[i].node->parts);
		}
		free(lines);
	}
	free(noted);
	return noted ? 0 : -ENOMEM;
}

/**
 * function_tree__print - print functions, each with its tree
 * @tree: the tree
 * @print: the output
 * @fp: the output file
 *
 * Return: 0, or -ENOMEM.
 */
int function_tree__print(const struct function_tree *tree, const struct function_print *print,
			 FILE *fp)
{
	struct tree_print out = {
		.tree = tree, .print = print, .fp = fp,
		.labels = function_table__labels(print->table),
	};
	int err = out.labels ? 0 : -ENOMEM;

	for (size_t r = 0; !err && r < print->nr_rows; r++)
		err = visit_lines(&out, &print->columns->rows[r], measure);
	if (!err && !print->is_continued)
		err = note_parts(&out);
	if (!err && print->time)
		fprintf(fp, "# --time %s\n", print->time);
	if (!err && print->intervals)
		fputs("# " FUNCTION_INTERVAL_NOTE "\n", fp);
	for (size_t r = 0; !err && r < print->nr_rows; r++) {
		print_function(&out, &print->columns->rows[r]);
		err = visit_lines(&out, &print->columns->rows[r], print_line);
	}
	function_table__free_labels(print->table, out.labels);
	return err;
}
