// SPDX-License-Identifier: GPL-2.0
/* Reads and writes sums files: tools/perf/Documentation/perf-functions.txt, SUMS FILE. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#include "../debug.h"
#include "functions.h"
#include "text.h"

#define SUMS_VERSION	6

/* A sum of 2^64 products of two counts. Sums of these are finite, too. */
#define MOST_SUM	1e60

/* Each one is compared with those before it. */
#define MOST_GROUPS	1000
#define MOST_CPUS	1000

/* Fields are separated by tabs and lines by newlines, so names have neither. */
static void write_name(const char *name, FILE *fp)
{
	fputc('\t', fp);
	for (; *name; name++) {
		const char *at = strchr("\\\t\n", *name);

		if (at)
			fputc('\\', fp);
		fputc(!at || *name == '\\' ? *name : *name == '\t' ? 't' : 'n', fp);
	}
}

static void write_number(double number, FILE *fp)
{
	char buf[FN_CELL_SIZE];

	fputc('\t', fp);
	fputs(fn_shortest(number, buf), fp);
}

static void write_sums(const struct fn_set *set, const struct fn_sums *sums, FILE *fp)
{
	const size_t nr = fn_set__nr_values(set);

	write_number(sums->number, fp);
	write_number(sums->independent, fp);
	write_number(sums->begun, fp);
	write_number(sums->ended, fp);
	for (size_t i = 0; i < nr; i++)
		write_number(sums->values[i], fp);
	fputc('\n', fp);
}

static void write_set(const struct fn_set *set, FILE *fp)
{
	fprintf(fp, "set\t%s\t%u\t%d\t%d\t%d", set->source->name,
		set->even ? set->even->index + 1 : 0, set->is_complete, set->is_recorded,
		set->is_hidden);
	for (unsigned int i = 0; i < set->nr_events; i++)
		write_name(set->events[i].name, fp);
	fputc('\n', fp);
	for (unsigned int i = 0; i < set->nr_groups; i++) {
		const struct fn_group *group = &set->groups[i];

		fprintf(fp, "group\t%llu\t%llu\t%llu\t%u\t%u\t%d\n",
			(unsigned long long)group->period, (unsigned long long)group->freq,
			(unsigned long long)group->window, group->burst, group->jitter,
			group->inherit);
	}
	for (unsigned int i = 0; i < set->nr_events; i++) {
		const struct fn_event *event = &set->events[i];

		fputs("event", fp);
		write_name(event->name, fp);
		fprintf(fp, "\t%d\t%d\t%d\t%d", !event->is_precise, event->is_throttled,
			event->is_stretched, event->is_scarce);
		write_number(event->scale, fp);
		fputc('\n', fp);
	}
	fputs("windows", fp);
	write_sums(set, set->windows, fp);
	fputs("longs", fp);
	write_sums(set, set->longs, fp);
	if (set->nr_late) {
		fputs("late", fp);
		write_number(set->nr_late, fp);
		write_number(set->late, fp);
		fputc('\n', fp);
	}
}

static void write_row(const struct fn_set *set, const struct fn_row *row, FILE *fp)
{
	const struct fn_sums *sums = fn_row__sums(row, set);

	if (!sums)
		return;
	fputs("row", fp);
	write_name(row->symbol, fp);
	write_name(row->dso, fp);
	if (row->has_address)
		fprintf(fp, "\t0x%llx", (unsigned long long)row->address);
	else
		fputs("\t-", fp);
	write_sums(set, sums, fp);
}

static int write_table(const struct fn_table *table, FILE *fp)
{
	fprintf(fp, FN_SUMS_MAGIC "%d\n", SUMS_VERSION);
	fprintf(fp, "by\t%s\t%d\n", table->by, table->inlines);
	fprintf(fp, "lost\t%llu\n", (unsigned long long)table->lost);
	fprintf(fp, "throttled\t%llu\n", (unsigned long long)table->throttled);
	fprintf(fp, "flags\t%d\t%d\t%u\n", table->lacks_children, table->is_scaled,
		table->is_partial);
	for (unsigned int i = 0; i < table->nr_cpus; i++) {
		fputs("cpu", fp);
		write_name(table->cpus[i], fp);
		fputc('\n', fp);
	}
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		write_set(table->sets[i], fp);
		for (size_t j = 0; j < table->nr_rows; j++)
			write_row(table->sets[i], table->rows[j], fp);
	}
	fputs("end\n", fp);
	errno = 0;
	return fflush(fp) || ferror(fp) ? -(errno ?: EIO) : 0;
}

static int write_to(int fd, const struct fn_table *table)
{
	FILE *fp = fd < 0 ? NULL : fdopen(fd, "w");
	int err;

	if (!fp)
		return -errno;
	err = write_table(table, fp);
	return fclose(fp) && !err ? -errno : err;
}

/* Writes a file, to which @path may link, under another name until it is complete. */
static int replace(const char *path, const struct stat *old, const struct fn_table *table)
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

int fn_table__write_sums(const char *path, const struct fn_table *table)
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

/* What has been read so far, and the fields of the line at hand. */
struct reader {
	struct fn_table *table;
	char **fields;
	unsigned int nr, allocated;
	/* The set at hand, which the first line of a group adds to the table, and all sets. */
	struct fn_set own, *set;
	struct fn_set *sets[MOST_GROUPS];
	u32 even[MOST_GROUPS];
	unsigned int nr_sets, nr_groups;
};

static int unescape(char *name)
{
	char *to = name;

	for (; *name; name++, to++) {
		*to = *name;
		if (*name != '\\')
			continue;
		name++;
		if (!*name || !strchr("\\tn", *name))
			return -EINVAL;
		*to = *name == 't' ? '\t' : *name == 'n' ? '\n' : '\\';
	}
	*to = '\0';
	return 0;
}

static int split(struct reader *reader, char *line)
{
	char *field;

	for (reader->nr = 0; (field = strsep(&line, "\t")) != NULL; reader->nr++) {
		if (reader->nr == reader->allocated) {
			const unsigned int allocated = reader->allocated + 64;
			char **all = realloc(reader->fields, allocated * sizeof(*all));

			if (!all)
				return -ENOMEM;
			reader->fields = all;
			reader->allocated = allocated;
		}
		if (unescape(field))
			return -EINVAL;
		reader->fields[reader->nr] = field;
	}
	return 0;
}

static int parse_sum(const char *field, double *number)
{
	char *end;

	*number = strtod(field, &end);
	return isdigit(*field) && !*end && *number <= MOST_SUM ? 0 : -EINVAL;
}

static int parse_u32(const char *field, u32 *number)
{
	u64 value;
	int err = function_text__u64(field, 10, &value);

	*number = value;
	return err ?: value > UINT32_MAX ? -EINVAL : 0;
}

static int parse_flag(const char *field, bool *flag)
{
	*flag = *field == '1';
	return (*field == '0' || *field == '1') && !field[1] ? 0 : -EINVAL;
}

/* Reads all fields but the first one: s text, l u64, u u32, b flag, d sum. */
static int scan(const struct reader *reader, const char *types, ...)
{
	char **fields = reader->fields + 1;
	int err = reader->nr == strlen(types) + 1 ? 0 : -EINVAL;
	va_list values;

	va_start(values, types);
	for (; !err && *types; types++, fields++) {
		if (*types == 's')
			*va_arg(values, const char **) = *fields;
		else if (*types == 'l')
			err = function_text__u64(*fields, 10, va_arg(values, u64 *));
		else if (*types == 'u')
			err = parse_u32(*fields, va_arg(values, u32 *));
		else if (*types == 'b')
			err = parse_flag(*fields, va_arg(values, bool *));
		else
			err = parse_sum(*fields, va_arg(values, double *));
	}
	va_end(values);
	return err;
}

/* NUMBER INDEPENDENT BEGUN ENDED VALUE..., which are added to @sums */
static int read_sums(struct reader *reader, struct fn_sums *sums, unsigned int first)
{
	double *const numbers[] = {
		&sums->number, &sums->independent, &sums->begun, &sums->ended,
	};
	const size_t nr = ARRAY_SIZE(numbers) + fn_set__nr_values(reader->set);
	char **fields = reader->fields + first;

	if (reader->nr != first + nr)
		return -EINVAL;
	for (size_t i = 0; i < nr; i++) {
		double number, *sum = i < ARRAY_SIZE(numbers) ? numbers[i] :
				      &sums->values[i - ARRAY_SIZE(numbers)];

		if (parse_sum(fields[i], &number) || *sum + number > MOST_SUM)
			return -EINVAL;
		*sum += number;
	}
	return sums->independent <= sums->number ? 0 : -EINVAL;
}

/* row SYMBOL DSO ADDRESS and numbers */
static int read_row(struct reader *reader)
{
	const unsigned int names = 4;
	char **fields = reader->fields;
	struct fn_sums *sums = NULL;
	struct fn_row *row;
	bool has_address;
	u64 address = 0;

	if (!reader->set || reader->nr <= names)
		return -EINVAL;
	has_address = strcmp(fields[3], "-");
	if (has_address && function_text__u64(fields[3], 16, &address))
		return -EINVAL;
	row = fn_table__findnew_row(reader->table, fields[1], fields[2],
				    has_address ? &address : NULL);
	if (row)
		sums = fn_row__findnew_sums(reader->table, row, reader->set);
	return sums ? read_sums(reader, sums, names) : -ENOMEM;
}

static void drop_events(struct reader *reader)
{
	for (unsigned int i = 0; i < reader->own.nr_events; i++)
		free(reader->own.events[i].name);
	zfree(&reader->own.events);
	reader->own.nr_events = 0;
}

/* set SOURCE EVEN COMPLETE RECORDED HIDDEN EVENT... */
static int read_set(struct reader *reader)
{
	const unsigned int nr = reader->nr, names = 6;
	struct fn_set *own = &reader->own;
	const char *source;

	drop_events(reader);
	reader->set = NULL;
	if (reader->nr_sets == MOST_GROUPS)
		return -E2BIG;
	reader->nr = min(nr, names);
	if (scan(reader, "subbb", &source, &reader->even[reader->nr_sets], &own->is_complete,
		 &own->is_recorded, &own->is_hidden) ||
	    nr == names || nr > names + FN_MOST_EVENTS)
		return -EINVAL;
	own->source = fn_source__find(source);
	own->events = calloc(nr - names, sizeof(*own->events));
	if (!own->source || !own->events)
		return own->source ? -ENOMEM : -EINVAL;
	for (unsigned int i = names; i < nr; i++) {
		const char *name = reader->fields[i];

		if (!*name || !strcmp(name, FN_TOTAL) || fn_set__find(own, name) >= 0)
			return -EINVAL;
		own->events[own->nr_events].scale = 1;
		own->events[own->nr_events].name = strdup(name);
		if (!own->events[own->nr_events++].name)
			return -ENOMEM;
	}
	return 0;
}

/* group PERIOD FREQ WINDOW BURST JITTER INHERIT: of the set at hand, which the first one makes */
static int read_group(struct reader *reader)
{
	struct fn_set *own = &reader->own;
	struct fn_group group;

	if (++reader->nr_groups > MOST_GROUPS)
		return -E2BIG;
	if (scan(reader, "llluub", &group.period, &group.freq, &group.window, &group.burst,
		 &group.jitter, &group.inherit))
		return -EINVAL;
	if (reader->set)
		return fn_set__add_group(reader->set, &group);
	if (!own->nr_events)
		return -EINVAL;
	reader->set = fn_table__findnew_set(reader->table, own->source, &group, own->events,
					    own->nr_events);
	own->events = NULL;
	own->nr_events = 0;
	if (!reader->set)
		return -ENOMEM;
	reader->set->is_complete &= own->is_complete;
	reader->set->is_recorded &= own->is_recorded;
	reader->set->is_hidden = own->is_hidden;
	reader->sets[reader->nr_sets++] = reader->set;
	return 0;
}

/* event NAME LATE THROTTLED STRETCHED SCARCE SCALE */
static int read_event(struct reader *reader)
{
	const int place = reader->set && reader->nr > 1 ?
			  fn_set__find(reader->set, reader->fields[1]) : -1;
	struct fn_event *event;
	const char *name;
	bool is_late;

	if (place < 0)
		return -EINVAL;
	event = &reader->set->events[place];
	if (scan(reader, "sbbbbd", &name, &is_late, &event->is_throttled, &event->is_stretched,
		 &event->is_scarce, &event->scale))
		return -EINVAL;
	event->is_precise = !is_late;
	return 0;
}

/* by KEY[,KEY...] INLINES */
static int read_by(struct reader *reader)
{
	struct fn_table *table = reader->table;
	enum fn_key keys[FN_NR_KEYS];
	size_t length = 0;
	const char *by;
	int nr = scan(reader, "sb", &by, &table->inlines) ? -1 : fn_by__parse(by, keys, NULL);

	for (int i = 0; i < nr; i++)
		length += scnprintf(table->by + length, sizeof(table->by) - length, "%s%s",
				    i ? "," : "", fn_key__name(keys[i]));
	return nr < 0 ? -EINVAL : 0;
}

static int read_cpu(struct reader *reader)
{
	const char *cpu;

	if (reader->table->nr_cpus == MOST_CPUS)
		return -E2BIG;
	return scan(reader, "s", &cpu) ?: fn_table__add_cpu(reader->table, cpu);
}

/* late NUMBER EVENTS */
static int read_late(struct reader *reader)
{
	double late, nr;
	int err = reader->set ? scan(reader, "dd", &nr, &late) : -EINVAL;

	if (err)
		return err;
	reader->set->nr_late += nr;
	reader->set->late += late;
	return 0;
}

/* Returns 1 for the last line. */
static int read_line(struct reader *reader)
{
	static const struct {
		const char *word;
		int (*read)(struct reader *reader);
	} lines[] = {
		{ "row", read_row }, { "set", read_set }, { "event", read_event },
		{ "group", read_group }, { "by", read_by }, { "cpu", read_cpu },
		{ "late", read_late },
	};
	struct fn_table *table = reader->table;
	const char *word = reader->fields[0];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (!strcmp(word, lines[i].word))
			return lines[i].read(reader);
	}
	if (reader->set && !strcmp(word, "windows"))
		return read_sums(reader, reader->set->windows, 1);
	if (reader->set && !strcmp(word, "longs"))
		return read_sums(reader, reader->set->longs, 1);
	if (!strcmp(word, "lost"))
		return scan(reader, "l", &table->lost);
	if (!strcmp(word, "throttled"))
		return scan(reader, "l", &table->throttled);
	if (!strcmp(word, "flags"))
		return scan(reader, "bbu", &table->lacks_children, &table->is_scaled,
			    &table->is_partial);
	return scan(reader, "") ?: strcmp(word, "end") ? -EINVAL : 1;
}

/* Sets are known by their places in the file, from 1. */
static int set_even(struct reader *reader)
{
	for (unsigned int i = 0; i < reader->nr_sets; i++) {
		const u32 even = reader->even[i];

		if (!even)
			continue;
		if (even > reader->nr_sets ||
		    fn_set__find(reader->sets[even - 1], reader->sets[i]->events[0].name) < 0)
			return -EINVAL;
		reader->sets[i]->even = reader->sets[even - 1];
	}
	return reader->nr_sets ? 0 : -EINVAL;
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

int fn_table__read_sums(struct fn_table *table, FILE *fp, char *msg, size_t size)
{
	struct reader *reader = zalloc(sizeof(*reader));
	char *line = NULL;
	size_t allocated = 0;
	const char *reason = getline(&line, &allocated, fp) < 0 ? refuse("") : refuse(line);
	int ret = reason ? -EINVAL : reader ? 0 : -ENOMEM;
	unsigned int nr = 1;

	if (reader)
		reader->table = table;
	scnprintf(table->by, sizeof(table->by), "%s", fn_key__name(FN_BY_SYMBOL));
	while (!ret) {
		ssize_t length = getline(&line, &allocated, fp);

		nr++;
		if (length <= 0 || line[length - 1] != '\n') {
			reason = "the sums file is cut short: write it again";
			ret = -EINVAL;
			break;
		}
		line[length - 1] = '\0';
		/* A NUL in the line would cut off a name. */
		ret = strlen(line) < (size_t)length - 1 ? -EINVAL : split(reader, line);
		ret = ret ?: read_line(reader);
	}
	if (ret > 0)
		ret = getline(&line, &allocated, fp) >= 0 ? -EINVAL :
		      set_even(reader) ?: fn_table__settle(table);
	if (reason)
		scnprintf(msg, size, "%s", reason);
	else if (ret == -ENOMEM)
		scnprintf(msg, size, "not enough memory");
	else if (ret == -E2BIG)
		scnprintf(msg, size, "it has more than %d groups or CPUs: add up fewer files",
			  MOST_GROUPS);
	else if (ret)
		scnprintf(msg, size, "line %u is damaged: write the file again with --sums", nr);
	if (reader) {
		drop_events(reader);
		free(reader->fields);
	}
	free(reader);
	free(line);
	return ret;
}
