// SPDX-License-Identifier: GPL-2.0
/*
 * Reads and writes sums files: tools/perf/Documentation/perf-functions.txt, SUMS FILE. The fields
 * of a line are described once, by a function that writes them, or reads them.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#include "../debug.h"
#include "functions.h"

#define SUMS_VERSION	6

/* A sum of 2^64 products of two counts. Sums of these are finite, too. */
#define MOST_SUM	1e60

/* Each one is compared with those before it. */
#define MOST_GROUPS	1000
#define MOST_CPUS	1000

/* A line that is being written or read. */
struct line {
	FILE *fp;		/* NULL: read */
	char *rest;		/* the fields that are left to read, NULL: none */
	int err;		/* the first one */
};

static void fail(struct line *line, int err)
{
	line->err = line->err ?: err;
}

/* Each of these writes a value, or returns what it reads. */

static const char *text(struct line *line, const char *text)
{
	/* Fields are separated by tabs and lines by newlines, so names have neither. */
	static const char plain[] = "\\\t\n", escaped[] = "\\tn";
	const char *at;
	char *field, *to;

	if (line->fp) {
		fputc('\t', line->fp);
		for (const char *from = text; *from; from++) {
			at = strchr(plain, *from);
			if (at)
				fputc('\\', line->fp);
			fputc(at ? escaped[at - plain] : *from, line->fp);
		}
		return text;
	}
	field = strsep(&line->rest, "\t");
	if (!field)
		fail(line, -EINVAL);
	for (char *from = to = field; from && *from; from++) {
		at = *from == '\\' && from[1] ? strchr(escaped, *++from) : NULL;
		if (*from == '\\' && !at)
			fail(line, -EINVAL);
		*to++ = at ? plain[at - escaped] : *from;
	}
	if (field)
		*to = '\0';
	return field ?: "";
}

static u64 integer(struct line *line, u64 number, u64 most)
{
	if (line->fp)
		fprintf(line->fp, "\t%llu", (unsigned long long)number);
	else if (function_text__u64(text(line, NULL), 10, &number) || number > most)
		fail(line, -EINVAL);
	return number;
}

static double sum(struct line *line, double number)
{
	char buf[FN_CELL_SIZE], *end;
	const char *field;

	if (line->fp) {
		fprintf(line->fp, "\t%s", fn_shortest(number, buf));
		return number;
	}
	field = text(line, NULL);
	number = strtod(field, &end);
	if (!isdigit(*field) || *end || !(number <= MOST_SUM))
		fail(line, -EINVAL);
	return number;
}

/*
 * The lines
 */

/* NUMBER INDEPENDENT BEGUN ENDED VALUE...; what is read is added. */
static void sums_fields(struct line *line, const struct fn_set *set, struct fn_sums *sums)
{
	double *const numbers[] = {
		&sums->number, &sums->independent, &sums->begun, &sums->ended,
	};
	const size_t nr = ARRAY_SIZE(numbers) + fn_set__nr_values(set);

	for (size_t i = 0; !line->err && i < nr; i++) {
		double *own = i < ARRAY_SIZE(numbers) ? numbers[i] :
			      &sums->values[i - ARRAY_SIZE(numbers)];
		const double number = sum(line, *own);

		if (!line->fp)
			*own += number;
		if (*own > MOST_SUM)
			fail(line, -EINVAL);
	}
	if (sums->independent > sums->number)
		fail(line, -EINVAL);
}

/* SOURCE EVEN COMPLETE RECORDED HIDDEN, before the names of the events */
static void set_fields(struct line *line, struct fn_set *set, u64 *even)
{
	set->source = fn_source__find(text(line, set->source ? set->source->name : NULL));
	*even = integer(line, *even, MOST_GROUPS);
	set->is_complete = integer(line, set->is_complete, 1);
	set->is_recorded = integer(line, set->is_recorded, 1);
	set->is_hidden = integer(line, set->is_hidden, 1);
}

/* PERIOD FREQ WINDOW BURST JITTER INHERIT */
static void group_fields(struct line *line, struct fn_group *group)
{
	group->period = integer(line, group->period, UINT64_MAX);
	group->freq = integer(line, group->freq, UINT64_MAX);
	group->window = integer(line, group->window, UINT64_MAX);
	group->burst = integer(line, group->burst, UINT32_MAX);
	group->jitter = integer(line, group->jitter, UINT32_MAX);
	group->inherit = integer(line, group->inherit, 1);
}

/* LATE THROTTLED STRETCHED SCARCE SCALE COPIES, after the name */
static void event_fields(struct line *line, struct fn_event *event)
{
	event->is_precise = !integer(line, !event->is_precise, 1);
	event->is_throttled = integer(line, event->is_throttled, 1);
	event->is_stretched = integer(line, event->is_stretched, 1);
	event->is_scarce = integer(line, event->is_scarce, 1);
	event->scale = sum(line, event->scale);
	event->copies = sum(line, event->copies);
}

/*
 * Writing
 */

static void write_set(struct line *line, struct fn_set *set)
{
	u64 even = set->even ? set->even->index + 1 : 0;

	fputs("set", line->fp);
	set_fields(line, set, &even);
	for (unsigned int i = 0; i < set->nr_events; i++)
		text(line, set->events[i].name);
	for (unsigned int i = 0; i < set->nr_groups; i++) {
		fputs("\ngroup", line->fp);
		group_fields(line, &set->groups[i]);
	}
	for (unsigned int i = 0; i < set->nr_events; i++) {
		fputs("\nevent", line->fp);
		text(line, set->events[i].name);
		event_fields(line, &set->events[i]);
	}
	fputs("\nwindows", line->fp);
	sums_fields(line, set, set->windows);
	fputs("\nlongs", line->fp);
	sums_fields(line, set, set->longs);
	fputs("\nlate", line->fp);
	sum(line, set->nr_late);
	sum(line, set->late);
	fputc('\n', line->fp);
}

static void write_row(struct line *line, const struct fn_set *set, const struct fn_row *row)
{
	struct fn_sums *sums = fn_row__sums(row, set);
	char address[24] = "-";

	if (!sums)
		return;
	if (row->has_address)
		scnprintf(address, sizeof(address), "0x%llx", (unsigned long long)row->address);
	fputs("row", line->fp);
	text(line, row->symbol);
	text(line, row->dso);
	text(line, address);
	sums_fields(line, set, sums);
	fputc('\n', line->fp);
}

static int write_table(struct fn_table *table, FILE *fp)
{
	struct line line = { .fp = fp };

	fprintf(fp, FN_SUMS_MAGIC "%d\nby\t%s\t%d\nlost\t%llu\nthrottled\t%llu\npartial\t%u\n",
		SUMS_VERSION, table->by, table->inlines, (unsigned long long)table->lost,
		(unsigned long long)table->throttled, table->is_partial);
	if (table->lacks_children)
		fputs("lacks-children\n", fp);
	for (unsigned int i = 0; i < table->nr_cpus; i++) {
		fputs("cpu", fp);
		text(&line, table->cpus[i]);
		fputc('\n', fp);
	}
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		write_set(&line, table->sets[i]);
		for (size_t j = 0; j < table->nr_rows; j++)
			write_row(&line, table->sets[i], table->rows[j]);
	}
	fputs("end\n", fp);
	errno = 0;
	return fflush(fp) || ferror(fp) ? -(errno ?: EIO) : 0;
}

static int write_to(int fd, struct fn_table *table)
{
	FILE *fp = fd < 0 ? NULL : fdopen(fd, "w");
	int err;

	if (!fp)
		return -errno;
	err = write_table(table, fp);
	return fclose(fp) && !err ? -errno : err;
}

/* Writes a file, to which @path may link, under another name until it is complete. */
static int replace(const char *path, const struct stat *old, struct fn_table *table)
{
	char *target = realpath(path, NULL), *new;
	int err, fd;

	if (asprintf(&new, "%s.%d.new", target ?: path, getpid()) < 0) {
		free(target);
		return -ENOMEM;
	}
	unlink(new);	/* of a process that was killed */
	fd = open(new, O_WRONLY | O_CREAT | O_EXCL, old ? 0600 : 0666);
	if (fd >= 0 && old)
		fchmod(fd, old->st_mode & 0777);
	err = write_to(fd, table);
	if (!err && rename(new, target ?: path))
		err = -errno;
	if (err)
		unlink(new);
	free(new);
	free(target);
	return err;
}

int fn_table__write_sums(const char *path, struct fn_table *table)
{
	struct stat st;
	int err;

	if (!strcmp(path, "-"))
		err = write_table(table, stdout);
	else if (stat(path, &st))
		err = replace(path, NULL, table);
	else if (!S_ISREG(st.st_mode))
		err = write_to(open(path, O_WRONLY), table);	/* for example a pipe */
	else if (!(st.st_mode & 0222) || access(path, W_OK))	/* even root keeps such a file */
		err = -EROFS;
	else
		err = replace(path, &st, table);
	if (err == -EROFS)
		fn_err("%s: is read-only: name another file, or make it writable", path);
	else if (err)
		fn_err("%s: %s: name another file", path, strerror(-err));
	return err;
}

/*
 * Reading
 */

struct reader {
	struct line line;
	struct fn_table *table;
	struct fn_set *set;		/* at hand */
	u64 even[MOST_GROUPS];		/* by set: the number of another one, from 1 */
	unsigned int nr_groups, nr;	/* of the line */
};

static void read_row(struct reader *reader)
{
	const char *symbol = text(&reader->line, NULL), *dso = text(&reader->line, NULL);
	const char *field = text(&reader->line, NULL);
	const bool has_address = strcmp(field, "-");
	struct fn_sums *sums = NULL;
	struct fn_row *row;
	u64 address;

	if (reader->line.err || (has_address && function_text__u64(field, 16, &address))) {
		fail(&reader->line, -EINVAL);
		return;
	}
	row = fn_table__new_row(reader->table, symbol, dso, has_address ? &address : NULL);
	if (row)
		sums = fn_row__findnew_sums(reader->table, row, reader->set);
	if (sums)
		sums_fields(&reader->line, reader->set, sums);
	else
		fail(&reader->line, -ENOMEM);
}

static void read_set(struct reader *reader)
{
	const unsigned int nr_sets = reader->table->nr_sets;
	struct fn_event events[FN_MOST_EVENTS];
	struct fn_set own = { .events = events };
	struct line *line = &reader->line;

	if (nr_sets == MOST_GROUPS) {
		fail(line, -E2BIG);
		return;
	}
	set_fields(line, &own, &reader->even[nr_sets]);
	do {
		const char *name = text(line, NULL);

		if (!*name || !strcmp(name, FN_TOTAL) || fn_set__find(&own, name) >= 0)
			fail(line, -EINVAL);
		events[own.nr_events++] = (struct fn_event){ .name = name, .scale = 1 };
	} while (own.nr_events < FN_MOST_EVENTS && line->rest);
	/* Each event with branch records has a set. */
	reader->set = (own.source == &fn_branches ? fn_table__new_set : fn_table__findnew_set)
		(reader->table, own.source ?: &fn_samples, /*group=*/NULL, events, own.nr_events);
	if (!reader->set || !own.source || reader->table->nr_sets == nr_sets) {
		fail(line, reader->set ? -EINVAL : -ENOMEM);
		return;
	}
	reader->set->is_complete = own.is_complete;
	reader->set->is_recorded = own.is_recorded;
	reader->set->is_hidden = own.is_hidden;
}

static void read_group(struct reader *reader)
{
	struct fn_group group = {};

	group_fields(&reader->line, &group);
	if (++reader->nr_groups > MOST_GROUPS)
		fail(&reader->line, -E2BIG);
	else if (!reader->line.err && fn_set__add_group(reader->set, &group))
		fail(&reader->line, -ENOMEM);
}

static void read_event(struct reader *reader)
{
	const int place = fn_set__find(reader->set, text(&reader->line, NULL));

	if (place < 0)
		fail(&reader->line, -EINVAL);
	else
		event_fields(&reader->line, &reader->set->events[place]);
}

static void read_by(struct reader *reader)
{
	struct fn_table *table = reader->table;
	const char *by = text(&reader->line, NULL);
	enum fn_key keys[FN_NR_KEYS];

	if (fn_by__parse(by, keys, NULL) < 0)
		fail(&reader->line, -EINVAL);
	scnprintf(table->by, sizeof(table->by), "%s", by);
	table->inlines = integer(&reader->line, 0, 1);
}

static void read_cpu(struct reader *reader)
{
	const char *cpu = text(&reader->line, NULL);

	if (reader->table->nr_cpus == MOST_CPUS)
		fail(&reader->line, -E2BIG);
	else if (fn_table__add_cpu(reader->table, cpu))
		fail(&reader->line, -ENOMEM);
}

static void find_even_sets(struct reader *reader)
{
	const struct fn_table *table = reader->table;

	for (unsigned int i = 0; i < table->nr_sets; i++) {
		const u64 even = reader->even[i];
		struct fn_set *set = table->sets[i];

		if (!set->nr_groups || even > table->nr_sets ||
		    (even && fn_set__find(table->sets[even - 1], set->events[0].name) < 0))
			fail(&reader->line, -EINVAL);
		else if (even)
			set->even = table->sets[even - 1];
	}
	if (!table->nr_sets)
		fail(&reader->line, -EINVAL);
}

/* Returns true for the last line. */
static bool read_line(struct reader *reader, char *text)
{
	struct fn_table *table = reader->table;
	struct fn_set *set = reader->set;
	struct line *line = &reader->line;
	const char *word = strsep(&text, "\t");
	const bool is_last = !strcmp(word, "end");

	line->rest = text;
	if (!strcmp(word, "by")) {
		read_by(reader);
	} else if (!strcmp(word, "lost")) {
		table->lost = integer(line, 0, UINT64_MAX);
	} else if (!strcmp(word, "throttled")) {
		table->throttled = integer(line, 0, UINT64_MAX);
	} else if (!strcmp(word, "partial")) {
		table->is_partial = integer(line, 0, UINT32_MAX);
		table->seconds = NAN;
	} else if (!strcmp(word, "lacks-children")) {
		table->lacks_children = true;
	} else if (!strcmp(word, "cpu")) {
		read_cpu(reader);
	} else if (!strcmp(word, "set")) {
		read_set(reader);
	} else if (!set) {
		fail(line, -EINVAL);
	} else if (!strcmp(word, "row")) {
		read_row(reader);
	} else if (!strcmp(word, "group")) {
		read_group(reader);
	} else if (!strcmp(word, "event")) {
		read_event(reader);
	} else if (!strcmp(word, "windows")) {
		sums_fields(line, set, set->windows);
	} else if (!strcmp(word, "longs")) {
		sums_fields(line, set, set->longs);
	} else if (!strcmp(word, "late")) {
		set->nr_late += sum(line, 0);
		set->late += sum(line, 0);
	} else if (is_last) {
		find_even_sets(reader);
	} else {
		fail(line, -EINVAL);
	}
	if (line->rest)
		fail(line, -EINVAL);
	return is_last;
}

/* Returns why the first line is none of a sums file that can be read, NULL if it is. */
static const char *refuse(const char *line)
{
	unsigned long version;
	char end;

	if (sscanf(line, FN_SUMS_MAGIC "%lu%c", &version, &end) != 2 || end != '\n')
		return "it is not a sums file: write one with --sums";
	if (version < SUMS_VERSION)
		return "these are sums of an older perf: write them anew from the recording";
	return version > SUMS_VERSION ? "these are sums of a newer perf: use that one" : NULL;
}

/* Returns why the file cannot be read, NULL if no reason but the error of a line is known. */
static const char *read_lines(struct reader *reader, FILE *fp, char **line)
{
	size_t allocated = 0;
	const char *reason = getline(line, &allocated, fp) < 0 ? refuse("") : refuse(*line);

	for (reader->nr = 2; !reason; reader->nr++) {
		const ssize_t length = getline(line, &allocated, fp);
		bool is_last = false;

		if (length <= 0 || (*line)[length - 1] != '\n')
			return "the sums file is cut short: write it again";
		(*line)[length - 1] = '\0';
		/* A NUL in the line would cut off a name. */
		if (strlen(*line) < (size_t)length - 1)
			fail(&reader->line, -EINVAL);
		else
			is_last = read_line(reader, *line);
		if (is_last && getc(fp) != EOF)
			fail(&reader->line, -EINVAL);
		if (is_last || reader->line.err)
			break;
	}
	return reason;
}

int fn_table__read_sums(const char *path, struct fn_table *table, FILE *fp)
{
	struct reader *reader = zalloc(sizeof(*reader));
	const char *reason = NULL;
	char *line = NULL;
	int err = -ENOMEM;

	scnprintf(table->by, sizeof(table->by), "%s", fn_key__name(FN_BY_SYMBOL));
	if (reader) {
		reader->table = table;
		reason = read_lines(reader, fp, &line);
		err = reason ? -EINVAL : reader->line.err ?: fn_table__settle(table);
	}
	if (reason)
		fn_err("%s: %s", path, reason);
	else if (err == -ENOMEM)
		fn_err("%s: not enough memory", path);
	else if (err == -E2BIG)
		fn_err("%s: it has more than %d groups or CPUs: add up fewer files", path,
		       MOST_GROUPS);
	else if (err)
		fn_err("%s: line %u is damaged: write the file again with --sums", path,
		       reader->nr);
	free(reader);
	free(line);
	return err;
}
