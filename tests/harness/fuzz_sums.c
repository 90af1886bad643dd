// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the reader of sums files with libFuzzer.
 *
 * An input is the text of a sums file. If it can be read, the table is written, read again, added
 * to itself, and printed or compared.
 *
 * Half of the mutations change whole lines or fields, so that most inputs get as far as the
 * numbers. functionsfuzz.py builds this.
 */
#include "fuzz_functions.h"

#define MAX_LINES 64

int fuzz_initialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return initialize();
}

int fuzz_one_input(const u8 *data, size_t size)
{
	struct function_table table = {}, again = {}, once = {};
	FILE *fp = size ? fmemopen((void *)data, size, "r") : NULL;
	char msg[128] = "";

	if (!fp)
		return 0;
	if (function_table__read(&table, fp, msg, sizeof(msg))) {
		if (!*msg)
			fail("no message", "");
		check_text(msg);
		goto out;
	}
	check_round_trip(&table, &again);
	check_round_trip(&table, &once);
	/* Add the table to itself, if the sums fit. */
	if (once.nr_sums)
		print_all(&once, function_table__add(&table, &again) ? &again : &table, size);
out:
	fclose(fp);
	function_table__exit(&table);
	function_table__exit(&again);
	function_table__exit(&once);
	return 0;
}

static const char *const numbers[] = {
	"0", "1", "2", "3", "10", "300", "4294967295", "4294967296", "9007199254740993",
	"9223372036854775808", "18446744073709551614", "18446744073709551615",
	"18446744073709551616", "340282366920938463463374607431768211455",
	"340282366920938463463374607431768211456",
	"3138550867693340381917894711603833208051177722232017256448",
	"6277101735386680763835789423207666416102355444464034512895",
	"6277101735386680763835789423207666416102355444464034512896",
	"9999999999999999999999999999999999999999999999999999999999", "-1", "+1", "1e3", "0x10",
	"-", "", " 1", "0000000000000000000000000000000000000000000000000000000000000000000007",
};

static const char *const names[] = {
	"", "f", "g", "main", "0x1000", "0x1000-0x2000", "/x", "/y/x", "a/b/c", "unknown",
	"cycles", "instructions", "branch-misses", "cache-misses", "cache-references",
	"page-faults", "samples", "matched", "discarded", "total", "cycles/KI", "\x1b[2J",
	"\xc2\x9b", "\x80\xff", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\\\\", "\\t",
	"\\n", "\\x", "\"", ",", "\xe2\x80\xa8", "-", "Cpu pmu=4",
	"a name with more than sixty characters, the middle of which is to be left out of it",
};

static const char *some_number(void)
{
	return numbers[random_below(ARRAY_LENGTH(numbers))];
}

static const char *some_name(void)
{
	return names[random_below(ARRAY_LENGTH(names))];
}

/* A range of numbers[]: valid and small ones, or those near a limit. */
struct range {
	unsigned int first, length;
};

static void write_values(FILE *fp, unsigned int nr, bool is_none, struct range range)
{
	/* Mostly write 0 where there are no windows. */
	for (unsigned int i = 0; i < nr; i++)
		fprintf(fp, "\t%s", is_none && random_below(8) ? "0" :
			numbers[range.first + random_below(range.length)]);
}

static struct range some_range(void)
{
	return (struct range){ .first = random_below(2) ? 0 : 6, .length = 6 + random_below(8) };
}

/* The lines of all intervals, which a group in share mode auto has. */
static void write_intervals(FILE *fp, unsigned int nr_events)
{
	unsigned int nr = nr_events + nr_events * (nr_events + 1) / 2;
	struct range range = some_range();

	for (int is_long = 0; is_long < 2; is_long++) {
		const char *number = numbers[random_below(12)];

		fprintf(fp, "%s\t%s", is_long ? "long" : "windows", number);
		write_values(fp, nr, *number == '0', range);
		fputc('\n', fp);
	}
}

static void write_sums_line(FILE *fp, unsigned int nr_events)
{
	unsigned int pairs = nr_events * (nr_events + 1) / 2;
	const char *windows[2];
	struct range range = some_range();

	for (int begun = 0; begun < 2; begun++)
		windows[begun] = numbers[random_below(3)];
	fprintf(fp, "sums\t%s\t%s\t%s\t%s\t%s", some_name(), some_name(),
		random_below(2) ? "-" : "0x10", numbers[random_below(12)],
		numbers[3 + random_below(9)]);
	for (int begun = 0; begun < 2; begun++)
		fprintf(fp, "\t%s\t%s", windows[begun],
			*windows[begun] == '2' ? "1" : windows[begun]);
	for (int begun = 0; begun < 2; begun++)
		write_values(fp, nr_events + pairs, *windows[begun] == '0', range);
	fputc('\n', fp);
}

static unsigned int write_group_line(FILE *fp)
{
	static const char *const shares[] = { "auto", "auto", "discard", "none" };
	unsigned int nr = 1 + random_below(4), share = random_below(4);

	fprintf(fp, "group\t%s\t%s\t%s\t%s\t%s\t%s\t%u", shares[share],
		numbers[random_below(12)], numbers[random_below(12)], numbers[random_below(12)],
		numbers[random_below(7)], numbers[random_below(7)],
		(unsigned int)random_below(2));
	for (unsigned int i = 0; i < nr; i++)
		fprintf(fp, "\t%s", some_name());
	fputc('\n', fp);
	if (share < 2 && random_below(8))
		write_intervals(fp, nr);
	return nr;
}

/* Writes a line with one field changed. */
static void write_with_other_field(FILE *fp, const char *line, size_t length)
{
	size_t nr = 1, which;

	for (size_t i = 0; i < length; i++)
		nr += line[i] == '\t';
	which = random_below(nr);
	for (size_t i = 0; i <= length; i++) {
		const char *tab = memchr(line + i, '\t', length - i);
		size_t end = tab ? (size_t)(tab - line) : length;

		if (which--)
			fwrite(line + i, 1, end - i, fp);
		else
			fputs(random_below(3) ? some_number() : some_name(), fp);
		if (tab)
			fputc('\t', fp);
		i = end;
	}
	fputc('\n', fp);
}

/* Returns the number of events of a group line, or before for other lines. */
static unsigned int events_of(const char *line, size_t length, unsigned int before)
{
	unsigned int tabs = 0;

	if (length < 6 || memcmp(line, "group\t", 6))
		return before;
	for (size_t i = 0; i < length; i++)
		tabs += line[i] == '\t';
	return tabs > 7 ? tabs - 7 : 1;
}

static void mutate_lines(FILE *fp, const char *text, size_t size)
{
	const char *lines[MAX_LINES + 1];
	unsigned int nr = 0, which, events = 1, kind = random_below(8);

	for (const char *c = text; c < text + size && nr < MAX_LINES; nr++) {
		lines[nr] = c;
		c = memchr(c, '\n', text + size - c) ?: text + size - 1;
		c++;
	}
	lines[nr] = text + size;
	which = nr ? random_below(nr) : 0;
	for (unsigned int i = 0; i < nr; i++) {
		size_t length = lines[i + 1] - lines[i];

		length -= length && lines[i][length - 1] == '\n';
		events = events_of(lines[i], length, events);
		if (i == which && kind == 0)
			continue;
		if (i == which && kind == 1)
			write_with_other_field(fp, lines[i], length);
		else
			fprintf(fp, "%.*s\n", (int)length, lines[i]);
		if (i == which && kind == 2)
			fprintf(fp, "%.*s\n", (int)length, lines[i]);
		else if (i == which && kind == 3)
			fprintf(fp, "%.*s\n", (int)length, lines[random_below(i + 1)]);
		else if (i == which && kind == 4)
			events = write_group_line(fp);
		else if (i == which && kind == 7)
			write_intervals(fp, events);
		if (i == which && kind >= 4)
			write_sums_line(fp, events);
	}
}

size_t fuzz_mutate(u8 *data, size_t size, size_t most, unsigned int seed)
{
	struct output output;

	random_begin(seed);
	if (!random_below(4))
		return fuzz_mutate_bytes(data, size, most);
	begin(&output);
	mutate_lines(output.fp, (const char *)data, size);
	fclose(output.fp);
	if (output.size <= most) {
		size = output.size;
		memcpy(data, output.text, size);
	}
	free(output.text);
	return size;
}
