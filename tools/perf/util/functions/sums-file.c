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

#include "../debug.h"
#include "functions.h"

#define SUMS_VERSION	7

/* A sum of 2^64 products of two counts. Sums of these are finite, too. */
#define MOST_SUM	1e60

/* Each one is compared with those before it. */
#define MOST_GROUPS	1000
#define MOST_CPUS	1000

/* A file that is being written or read, and what the line at hand is about. */
struct line {
	FILE *fp;			/* NULL: read */
	char *rest;			/* the fields that are left to read, NULL: none */
	int err;			/* the first one */
	struct fn_table *table;
	struct fn_set *set;
	unsigned int place;		/* of a CPU, group or event, to be written */
	struct fn_row *row;		/* to be written; NULL: read */
	u64 even[MOST_GROUPS];		/* by set that is read: the number of another one, from 1 */
	unsigned int nr_groups, nr;	/* of lines that are read */
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

/* Writes a sum, or adds what it reads. */
static void add(struct line *line, double *own)
{
	const double number = sum(line, *own);

	if (!line->fp)
		*own += number;
	if (*own > MOST_SUM)
		fail(line, line->fp ? -ERANGE : -EINVAL);
}

/*
 * The lines, for both directions
 */

/* KEYS INLINES */
static void by_fields(struct line *line)
{
	struct fn_table *table = line->table;
	const char *by = text(line, table->by);
	enum fn_key keys[FN_NR_KEYS];

	if (fn_by__parse(by, keys, NULL) < 0)
		fail(line, -EINVAL);
	if (!line->fp)
		scnprintf(table->by, sizeof(table->by), "%s", by);
	table->inlines = integer(line, table->inlines, 1);
}

static void cpu_field(struct line *line)
{
	const char *cpu = text(line, line->fp ? line->table->cpus[line->place] : NULL);

	if (line->fp)
		return;
	if (line->table->nr_cpus == MOST_CPUS)
		fail(line, -E2BIG);
	else if (fn_table__add_cpu(line->table, cpu))
		fail(line, -ENOMEM);
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

static void write_set(struct line *line)
{
	u64 even = line->set->even ? line->set->even->index + 1 : 0;

	set_fields(line, line->set, &even);
	for (unsigned int i = 0; i < line->set->nr_events; i++)
		text(line, line->set->events[i].name);
}

static void read_set(struct line *line)
{
	const unsigned int nr_sets = line->table->nr_sets;
	struct fn_event events[FN_MOST_EVENTS];
	struct fn_set own = { .events = events };

	if (nr_sets == MOST_GROUPS) {
		fail(line, -E2BIG);
		return;
	}
	set_fields(line, &own, &line->even[nr_sets]);
	do {
		const char *name = text(line, NULL);

		if (!*name || !strcmp(name, FN_TOTAL) || fn_set__find(&own, name) >= 0)
			fail(line, -EINVAL);
		events[own.nr_events++] = (struct fn_event){ .name = name, .scale = 1 };
	} while (own.nr_events < FN_MOST_EVENTS && line->rest);
	/* Each event with branch records has a set. */
	line->set = (own.source == &fn_branches ? fn_table__new_set : fn_table__findnew_set)
		(line->table, own.source ?: &fn_samples, /*group=*/NULL, events, own.nr_events);
	if (!line->set || !own.source || line->table->nr_sets == nr_sets) {
		fail(line, line->set ? -EINVAL : -ENOMEM);
		return;
	}
	line->set->is_complete = own.is_complete;
	line->set->is_recorded = own.is_recorded;
	line->set->is_hidden = own.is_hidden;
}

/* PERIOD FREQ WINDOW BURST JITTER INHERIT */
static void group_fields(struct line *line)
{
	struct fn_group group = {};

	if (line->fp)
		group = line->set->groups[line->place];
	group.period = integer(line, group.period, UINT64_MAX);
	group.freq = integer(line, group.freq, UINT64_MAX);
	group.window = integer(line, group.window, UINT64_MAX);
	group.burst = integer(line, group.burst, UINT32_MAX);
	group.jitter = integer(line, group.jitter, UINT32_MAX);
	group.inherit = integer(line, group.inherit, 1);
	if (line->fp)
		return;
	if (++line->nr_groups > MOST_GROUPS)
		fail(line, -E2BIG);
	else if (!line->err && fn_set__add_group(line->set, &group))
		fail(line, -ENOMEM);
}

/* NAME LATE THROTTLED STRETCHED SCARCE SCALE COPIES */
static void event_fields(struct line *line)
{
	const char *name = text(line, line->fp ? line->set->events[line->place].name : NULL);
	const int place = fn_set__find(line->set, name);
	struct fn_event *event = &line->set->events[place];

	if (place < 0) {
		fail(line, -EINVAL);
		return;
	}
	event->is_precise = !integer(line, !event->is_precise, 1);
	event->is_throttled = integer(line, event->is_throttled, 1);
	event->is_stretched = integer(line, event->is_stretched, 1);
	event->is_scarce = integer(line, event->is_scarce, 1);
	event->scale = sum(line, event->scale);
	event->copies = sum(line, event->copies);
}

/* NUMBER INDEPENDENT BEGUN ENDED VALUE... */
static void sums_fields(struct line *line, struct fn_sums *sums)
{
	const size_t nr = fn_set__nr_values(line->set);

	add(line, &sums->number);
	add(line, &sums->independent);
	add(line, &sums->begun);
	add(line, &sums->ended);
	for (size_t i = 0; !line->err && i < nr; i++)
		add(line, &sums->values[i]);
	if (sums->independent > sums->number)
		fail(line, -EINVAL);
}

/* SYMBOL DSO ADDRESS, before the sums */
static void row_fields(struct line *line)
{
	struct fn_row *row = line->row;
	const char *symbol = text(line, row ? row->symbol : NULL);
	const char *dso = text(line, row ? row->dso : NULL), *field;
	struct fn_sums *sums = NULL;
	char buf[24] = "-";
	bool has_address;
	u64 address;

	if (row && row->has_address)
		scnprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)row->address);
	field = text(line, buf);
	has_address = strcmp(field, "-");
	if (line->err || (has_address && function_text__u64(field, 16, &address))) {
		fail(line, -EINVAL);
		return;
	}
	row = row ?: fn_table__new_row(line->table, symbol, dso, has_address ? &address : NULL);
	if (row)
		sums = fn_row__findnew_sums(line->table, row, line->set);
	if (sums)
		sums_fields(line, sums);
	else
		fail(line, -ENOMEM);
}

static void find_even_sets(struct line *line)
{
	const struct fn_table *table = line->table;

	for (unsigned int i = 0; i < table->nr_sets; i++) {
		const u64 even = line->even[i];
		struct fn_set *set = table->sets[i];

		if (!set->nr_groups || even > table->nr_sets ||
		    (even && fn_set__find(table->sets[even - 1], set->events[0].name) < 0))
			fail(line, -EINVAL);
		else if (even)
			set->even = table->sets[even - 1];
	}
	if (!table->nr_sets)
		fail(line, -EINVAL);
}

/* Writes or reads what follows the first word of a line. */
static void fields(struct line *line, const char *word)
{
	struct fn_table *table = line->table;
	struct fn_set *set = line->set;

	if (!strcmp(word, "by")) {
		by_fields(line);
	} else if (!strcmp(word, "lost")) {
		table->lost = integer(line, table->lost, UINT64_MAX);
	} else if (!strcmp(word, "throttled")) {
		table->throttled = integer(line, table->throttled, UINT64_MAX);
	} else if (!strcmp(word, "partial")) {
		table->is_partial = integer(line, table->is_partial, UINT32_MAX);
	} else if (!strcmp(word, "lacks-children")) {
		table->lacks_children = true;
	} else if (!strcmp(word, "cpu")) {
		cpu_field(line);
	} else if (!strcmp(word, "set")) {
		(line->fp ? write_set : read_set)(line);
	} else if (!set) {
		fail(line, -EINVAL);
	} else if (!strcmp(word, "row")) {
		row_fields(line);
	} else if (!strcmp(word, "group")) {
		group_fields(line);
	} else if (!strcmp(word, "event")) {
		event_fields(line);
	} else if (!strcmp(word, "windows")) {
		sums_fields(line, set->windows);
	} else if (!strcmp(word, "longs")) {
		sums_fields(line, set->longs);
	} else if (!strcmp(word, "late")) {
		add(line, &set->nr_late);
		add(line, &set->late);
	} else if (strcmp(word, "end")) {
		fail(line, -EINVAL);
	} else if (!line->fp) {
		find_even_sets(line);
	}
}

/*
 * Writing
 */

static void write_line(struct line *line, const char *word)
{
	fputs(word, line->fp);
	fields(line, word);
	fputc('\n', line->fp);
}

static void write_set_lines(struct line *line, struct fn_set *set)
{
	line->set = set;
	write_line(line, "set");
	for (line->place = 0; line->place < set->nr_groups; line->place++)
		write_line(line, "group");
	for (line->place = 0; line->place < set->nr_events; line->place++)
		write_line(line, "event");
	write_line(line, "windows");
	write_line(line, "longs");
	write_line(line, "late");
	fn_table__for_each_row(line->table, row) {
		line->row = row;
		if (fn_row__sums(row, set))
			write_line(line, "row");
	}
}

static int write_table(struct fn_table *table, FILE *fp)
{
	struct line line = { .fp = fp, .table = table };

	fprintf(fp, FN_SUMS_MAGIC "%d\n", SUMS_VERSION);
	write_line(&line, "by");
	write_line(&line, "lost");
	write_line(&line, "throttled");
	write_line(&line, "partial");
	if (table->lacks_children)
		write_line(&line, "lacks-children");
	for (line.place = 0; line.place < table->nr_cpus; line.place++)
		write_line(&line, "cpu");
	fn_table__for_each_set(table, set)
		write_set_lines(&line, set);
	write_line(&line, "end");
	errno = 0;
	if (fflush(fp) || ferror(fp))
		fail(&line, -(errno ?: EIO));
	return line.err;
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
	else if (err == -ERANGE)
		fn_err("%s: no program counts so much: an input is damaged, record again", path);
	else if (err)
		fn_err("%s: %s: name another file", path, strerror(-err));
	return err;
}

/*
 * Reading
 */

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
static const char *read_lines(struct line *line, FILE *fp, char **text)
{
	size_t allocated = 0;
	const char *reason = getline(text, &allocated, fp) < 0 ? refuse("") : refuse(*text);

	for (line->nr = 2; !reason; line->nr++) {
		const ssize_t length = getline(text, &allocated, fp);
		const char *word;
		bool is_last;

		if (length <= 0 || (*text)[length - 1] != '\n')
			return "the sums file is cut short: write it again";
		(*text)[length - 1] = '\0';
		/* A NUL in the line would cut off a name. */
		if (strlen(*text) < (size_t)length - 1)
			fail(line, -EINVAL);
		line->rest = *text;
		word = strsep(&line->rest, "\t");
		fields(line, word);
		is_last = !strcmp(word, "end");
		if (line->rest || (is_last && getc(fp) != EOF))
			fail(line, -EINVAL);
		if (is_last || line->err)
			break;
	}
	return reason;
}

int fn_table__read_sums(const char *path, struct fn_table *table, FILE *fp)
{
	struct line line = { .table = table };
	const char *reason;
	char *text = NULL;
	int err;

	scnprintf(table->by, sizeof(table->by), "%s", fn_key__name(FN_BY_SYMBOL));
	reason = read_lines(&line, fp, &text);
	err = reason ? -EINVAL : line.err ?: fn_table__settle(table);
	if (reason)
		fn_err("%s: %s", path, reason);
	else if (err == -ENOMEM)
		fn_err("%s: not enough memory", path);
	else if (err == -E2BIG)
		fn_err("%s: it has more than %d groups or CPUs: add up fewer files", path,
		       MOST_GROUPS);
	else if (err)
		fn_err("%s: line %u is damaged: write the file again with --sums", path, line.nr);
	free(text);
	return err;
}
