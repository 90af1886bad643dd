/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of the fuzzers of perf functions: it prints tables in all forms, checks the output,
 * and draws the random numbers of mutations.
 */
#ifndef FUZZ_FUNCTIONS_H
#define FUZZ_FUNCTIONS_H

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/types.h>
#include "util/color.h"
#include "util/debug.h"
#include "util/functions/estimate/columns.h"
#include "util/functions/estimate/diff.h"
#include "util/functions/show/diff-print.h"
#include "util/functions/show/json.h"
#include "util/functions/show/print.h"
#include "util/functions/collect/sums-file.h"
#include "util/functions/collect/sums.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof(*(array)))

int fuzz_initialize(int *argc, char ***argv);
int fuzz_one_input(const u8 *data, size_t size);
size_t fuzz_mutate(u8 *data, size_t size, size_t most, unsigned int seed);
size_t fuzz_mutate_bytes(u8 *data, size_t size, size_t most);

static void fail(const char *what, const char *text)
{
	dprintf(STDERR_FILENO, "fuzz: %s:\n%s\n", what, text);
	abort();
}

/* Returns the end of a UTF-8 character by the table of RFC 3629, or NULL. */
static const char *utf8_end(const char *text)
{
	static const struct {
		u8 first[2], second[2];
		int more;
	} forms[] = {
		{ { 0x00, 0x7f }, {}, -1 },
		{ { 0xc2, 0xdf }, { 0x80, 0xbf }, 0 },
		{ { 0xe0, 0xe0 }, { 0xa0, 0xbf }, 1 },
		{ { 0xe1, 0xec }, { 0x80, 0xbf }, 1 },
		{ { 0xed, 0xed }, { 0x80, 0x9f }, 1 },
		{ { 0xee, 0xef }, { 0x80, 0xbf }, 1 },
		{ { 0xf0, 0xf0 }, { 0x90, 0xbf }, 2 },
		{ { 0xf1, 0xf3 }, { 0x80, 0xbf }, 2 },
		{ { 0xf4, 0xf4 }, { 0x80, 0x8f }, 2 },
	};
	const u8 *byte = (const u8 *)text;

	for (size_t i = 0; i < ARRAY_LENGTH(forms); i++) {
		if (*byte < forms[i].first[0] || *byte > forms[i].first[1])
			continue;
		if (forms[i].more < 0)
			return text + 1;
		if (byte[1] < forms[i].second[0] || byte[1] > forms[i].second[1])
			return NULL;
		for (int j = 0; j < forms[i].more; j++) {
			if (byte[2 + j] < 0x80 || byte[2 + j] > 0xbf)
				return NULL;
		}
		return text + 2 + forms[i].more;
	}
	return NULL;
}

/* Checks for UTF-8 without control characters other than newlines. */
static void check_text(const char *text)
{
	for (const char *c = text, *end; *c; c = end) {
		end = utf8_end(c);
		if (!end)
			fail("not UTF-8", text);
		if (((u8)*c < 0x20 && *c != '\n') || *c == 0x7f ||
		    ((u8)*c == 0xc2 && (u8)c[1] < 0xa0))
			fail("a control character", text);
	}
}

/* The captured output. */
struct output {
	FILE *fp;
	char *text;
	size_t size;
};

static FILE *begin(struct output *output)
{
	*output = (struct output){};
	output->fp = open_memstream(&output->text, &output->size);
	return output->fp;
}

static void end(struct output *output, void (*check)(const char *text))
{
	fclose(output->fp);
	if (check)
		check(output->text);
	free(output->text);
}

/* Returns all columns in their order; the caller frees them. */
static int *all_fields(unsigned int nr)
{
	int *fields = calloc(nr + 1, sizeof(*fields));

	for (unsigned int i = 0; i < nr; i++)
		fields[i] = i;
	return fields;
}

static void print_table(const struct function_table *table, struct function_columns *columns,
			bool intervals)
{
	int *fields = all_fields(columns->nr_columns);
	const struct function_print print = {
		.table = table, .columns = columns, .fields = fields, .intervals = intervals,
		.nr_fields = columns->nr_columns, .nr_rows = columns->nr_rows,
	};
	struct output output;

	function_print__table(&print, begin(&output));
	end(&output, check_text);
	function_print__csv(&print, ",", begin(&output));
	end(&output, NULL);
	function_print__json(&print, begin(&output));
	end(&output, check_text);
	free(fields);
}

static void print_diff(const struct function_table *before, const struct function_table *after,
		       struct function_columns *old, struct function_columns *new)
{
	/* One side has one run and the other has two. */
	struct function_table tables[] = { *before, *after };
	struct function_columns columns[] = { *old, *new };
	const struct function_runs runs[] = {
		{ .nr = 2, .tables = tables, .columns = columns, .table = *before, .all = *old },
		{
			.nr = 1, .tables = tables + 1, .columns = columns + 1,
			.table = *after, .all = *new,
		},
	};
	struct function_diff diff = {};
	struct function_diff_print print = {
		.diff = &diff, .before = &runs[0], .after = &runs[1], .intervals = true,
	};
	struct function_limit limit = { .column = (char *)"DIS", .number = 5, .is_relative = true };
	struct output output;
	int *fields;

	if (!function_diff__init(&diff, &runs[0], &runs[1], /*is_single=*/true)) {
		fields = all_fields(diff.columns.nr_columns);
		print.fields = fields;
		print.nr_fields = diff.columns.nr_columns;
		print.nr_rows = diff.nr_rows;
		function_diff__sort(&diff, function_columns__default_sort(&diff.columns));
		function_diff_print__table(&print, begin(&output));
		end(&output, check_text);
		function_diff_print__csv(&print, ";", begin(&output));
		end(&output, NULL);
		function_diff_print__json(&print, begin(&output));
		end(&output, check_text);
		function_diff_print__exceeded(&print, &limit, 1, begin(&output));
		end(&output, check_text);
		free(fields);
	}
	function_diff__exit(&diff);
}

/* Prints a table in the form that choice selects, or the changes from it to another one. */
static void print_all(const struct function_table *table, const struct function_table *other,
		      unsigned int choice)
{
	const struct function_reading_options options = {
		.is_corrected = choice % 2, .is_compared = choice % 3 == 0,
	};
	struct function_runs before = { .table = *table }, after = { .table = *other };
	struct function_columns columns = {}, others = {};

	if (options.is_compared && function_runs__choose_windows(&before, &after))
		return;
	if (!function_columns__init(&columns, table, &options)) {
		function_columns__sort(&columns, function_columns__default_sort(&columns));
		if (choice % 3)
			print_table(table, &columns, /*intervals=*/choice % 3 == 1);
		else if (!function_columns__init(&others, other, &options))
			print_diff(table, other, &columns, &others);
	}
	function_columns__exit(&others);
	function_columns__exit(&columns);
}

/* Returns the text of a sums file; the caller frees it. */
static char *write_table(const struct function_table *table)
{
	struct output output;

	if (function_table__write(table, begin(&output)))
		fail("cannot be written", "");
	fclose(output.fp);
	return output.text;
}

/* Reads the output of write_table(), which must be readable. */
static void read_back(struct function_table *table, const char *text)
{
	FILE *fp = fmemopen((char *)text, strlen(text), "r");
	char msg[128];

	if (function_table__read(table, fp, msg, sizeof(msg)))
		fail(msg, text);
	fclose(fp);
}

/* Checks that a table is read as it was written. */
static void check_round_trip(const struct function_table *table, struct function_table *again)
{
	char *text = write_table(table), *other;

	read_back(again, text);
	other = write_table(again);
	if (strcmp(text, other))
		fail("reads as something else", text);
	free(text);
	free(other);
}

static u64 random_state;

static u64 random_below(u64 limit)
{
	/* xorshift64* */
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL % limit;
}

static void random_begin(unsigned int seed)
{
	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
}

static int initialize(void)
{
	verbose = -1;
	perf_use_color_default = 0;
	return 0;
}

#endif /* FUZZ_FUNCTIONS_H */
