// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the reader of sums files with libFuzzer.
 *
 * An input is the text of a sums file. If it can be read, the table is written, read again, added
 * to itself, and printed.
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
	struct fn_table table, again;
	FILE *fp = size ? fmemopen((void *)data, size, "r") : NULL;
	char msg[128] = "";

	if (!fp)
		return 0;
	fn_table__init(&table);
	fn_table__init(&again);
	if (fn_table__read_sums(&table, fp, msg, sizeof(msg))) {
		if (!*msg)
			fail("no message", "");
		check_text(msg);
	} else {
		check_round_trip(&table, &again);
		if (fn_table__add(&again, &table))
			fail("does not add to itself", (const char *)data);
		if (fn_table__settle(&again))
			fail("no memory", "");
		print_all(&again, size);
	}
	fclose(fp);
	fn_table__exit(&table);
	fn_table__exit(&again);
	return 0;
}

static const char *const numbers[] = {
	"0", "1", "2", "3", "10", "300", "4294967295", "4294967296", "9007199254740993",
	"9223372036854775808", "18446744073709551614", "18446744073709551615",
	"18446744073709551616", "340282366920938463463374607431768211455", "1e60", "1.1e60", "0.5",
	"1e-300", "1e400", "inf", "nan", "-1", "+1", "1e3", "0x10", "-", "", " 1", "00007",
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

/* A number with these digits, or sometimes another one. */
static const char *number_near(const char *digits)
{
	return random_below(16) ? digits : some_number();
}

static void write_sums(FILE *fp, unsigned int nr_values)
{
	unsigned int few = 1 + random_below(3);

	fprintf(fp, "\t%s\t%s", number_near("3"), number_near("2"));
	for (unsigned int i = 0; i < 2 + nr_values; i++)
		fprintf(fp, "\t%s", random_below(8) ? numbers[random_below(4 * few)] : "0");
	fputc('\n', fp);
}

/* Returns the number of values of a set of events. */
static unsigned int nr_values_of(const char *source, unsigned int nr_events)
{
	return *source == 's' ? (3 + FN_NR_BINS) * nr_events :
				nr_events + nr_events * (nr_events + 1) / 2;
}

static void write_row(FILE *fp, unsigned int nr_values)
{
	fprintf(fp, "row\t%s\t%s\t%s", some_name(), some_name(), random_below(2) ? "-" : "0x10");
	write_sums(fp, nr_values);
}

static unsigned int write_set(FILE *fp)
{
	static const char *const sources[] = { "windows", "samples", "branches", "samples" };
	const char *source = sources[random_below(ARRAY_LENGTH(sources))];
	unsigned int nr = 1 + random_below(4);

	fprintf(fp, "set\t%s\t%s\t%u\t%u\t0", source, numbers[random_below(3)],
		(unsigned int)random_below(2), (unsigned int)random_below(2));
	for (unsigned int i = 0; i < nr; i++)
		fprintf(fp, "\t%s", names[(random_below(8) + 8 * i) % ARRAY_LENGTH(names)]);
	fprintf(fp, "\ngroup\t%s\t%s\t%s\t%s\t%s\t%u\n", some_number(), numbers[random_below(9)],
		numbers[random_below(9)], numbers[random_below(7)], numbers[random_below(7)],
		(unsigned int)random_below(2));
	return nr_values_of(source, nr);
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

/* Returns the number of values of a set, or that of the set before for other lines. */
static unsigned int values_of(const char *line, size_t length, unsigned int before)
{
	unsigned int tabs = 0;

	if (length < 5 || memcmp(line, "set\t", 4))
		return before;
	for (size_t i = 0; i < length; i++)
		tabs += line[i] == '\t';
	return nr_values_of(line + 4, tabs > 5 ? tabs - 5 : 1);
}

static void mutate_lines(FILE *fp, const char *text, size_t size)
{
	const char *lines[MAX_LINES + 1];
	unsigned int nr = 0, which, values = 5, kind = random_below(8);

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
		values = values_of(lines[i], length, values);
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
			values = write_set(fp);
		if (i == which && kind >= 4)
			write_row(fp, values);
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
