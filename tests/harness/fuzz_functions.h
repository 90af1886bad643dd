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
#include "util/functions/functions.h"

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

/* Prints a table in all forms, with intervals or without. */
static void print_all(const struct fn_table *table, unsigned int choice)
{
	struct fn_columns columns = {};
	struct fn_view view = { .table = table, .columns = &columns, .with_ci = choice % 2 };
	struct output output;
	int *fields;

	if (!fn_columns__init(&columns, table)) {
		fields = calloc(columns.nr + 1, sizeof(*fields));
		for (unsigned int i = 0; i < columns.nr; i++)
			fields[i] = i;
		view.fields = fields;
		view.nr_fields = columns.nr;
		if (!fn_view__init_rows(&view, fn_columns__default_sort(&columns), 0, SIZE_MAX)) {
			fn_view__print(&view, begin(&output));
			end(&output, check_text);
			fn_view__print_csv(&view, ",", begin(&output));
			end(&output, NULL);
			fn_view__print_json(&view, begin(&output));
			end(&output, check_text);
		}
		fn_view__exit(&view);
		free(fields);
	}
	fn_columns__exit(&columns);
}

/* Writes a table into a file in this folder, and reads it back, which must work. */
static char *round_trip(const struct fn_table *table, struct fn_table *again)
{
	static const char path[] = "table.sums";
	struct output text;
	char msg[128];
	FILE *fp;

	if (fn_table__write_sums(path, table))
		fail("cannot be written", "");
	fp = fopen(path, "r");
	begin(&text);
	for (int c; (c = fgetc(fp)) != EOF; )
		fputc(c, text.fp);
	fclose(text.fp);
	rewind(fp);
	fn_table__init(again);
	if (fn_table__read_sums(again, fp, msg, sizeof(msg)))
		fail(msg, text.text);
	fclose(fp);
	return text.text;
}

/* Checks that a table is read as it was written. */
static void check_round_trip(const struct fn_table *table, struct fn_table *again)
{
	struct fn_table third;
	char *text = round_trip(table, again), *other = round_trip(again, &third);

	if (strcmp(text, other))
		fail("reads as something else", text);
	fn_table__exit(&third);
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
