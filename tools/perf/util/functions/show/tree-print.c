// SPDX-License-Identifier: GPL-2.0
/* Prints functions, each with the tree of its metrics. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>

#include "../../color.h"
#include "../../debug.h"
#include "../collect/sums.h"
#include "../estimate/columns.h"
#include "../estimate/tree.h"
#include "print.h"
#include "tree-print.h"

/* Room before the name of a metric, with a > if it is above its threshold. */
#define MARK_WIDTH	2

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

	fprintf(tree->fp, "%s  %s %s\n", tree->labels[row->sums - tree->print->table->sums],
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
		.labels = function_table__labels(print->table, FUNCTION_LABEL_WIDTH),
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
