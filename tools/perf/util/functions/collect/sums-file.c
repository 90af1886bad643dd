// SPDX-License-Identifier: GPL-2.0
/* Reads and writes sums files: tools/perf/Documentation/perf-functions.txt, SUMS FILE. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>

#include "../../strlist.h"
#include "../text.h"
#include "../events.h"
#include "sums-file.h"
#include "sums.h"
#include "u192.h"

/* Fields are separated by tabs and lines by newlines, so names have neither. */
static void write_name(const char *name, FILE *fp)
{
	fputc('\t', fp);
	for (; *name; name++) {
		switch (*name) {
		case '\\':
			fputs("\\\\", fp);
			break;
		case '\t':
			fputs("\\t", fp);
			break;
		case '\n':
			fputs("\\n", fp);
			break;
		default:
			fputc(*name, fp);
		}
	}
}

static void write_set(const struct event_set *set, FILE *fp)
{
	for (unsigned int i = 0; i < set->nr_descs; i++) {
		const struct function_group_desc *desc = &set->descs[i];

		fprintf(fp, "group\t%s\t%llu\t%llu\t%llu\t%u\t%u\t%d",
			function_share__name(desc->share),
			(unsigned long long)desc->sample_period,
			(unsigned long long)desc->sample_freq,
			(unsigned long long)desc->alternative_sample_period,
			desc->alternative_sample_count, desc->jitter_alternate_period,
			desc->inherit);
		for (unsigned int j = 0; j < set->nr_events; j++)
			write_name(set->events[j], fp);
		fputc('\n', fp);
	}
}

static void write_values(const struct u192 *values, unsigned int nr, FILE *fp)
{
	char buf[U192_DECIMAL_SIZE];

	for (unsigned int i = 0; i < nr; i++)
		fprintf(fp, "\t%s", u192__decimal(&values[i], buf));
	fputc('\n', fp);
}

/* Only share mode auto has these lines. */
static void write_intervals(const struct event_set *set, FILE *fp)
{
	if (!event_set__has_share(set, FUNCTION_SHARE_AUTO))
		return;
	fprintf(fp, "windows\t%llu", (unsigned long long)set->windows.number);
	write_values(set->windows.values, event_set__nr_values(set), fp);
	fprintf(fp, "long\t%llu", (unsigned long long)set->longs.number);
	write_values(set->longs.values, event_set__nr_values(set), fp);
}

/* Returns true if samples of a set have weights, see function_sums.opened. */
static bool has_weights(const struct event_set *set)
{
	return set->source == FUNCTION_SOURCE_BRANCHES ||
	       event_set__has_share(set, FUNCTION_SHARE_AUTO);
}

/* Returns the period of all groups of a set, which is then the weight of all samples; else 0. */
static u64 only_period(const struct event_set *set)
{
	const u64 period = set->descs->sample_period;

	for (unsigned int i = 1; i < set->nr_descs; i++) {
		if (set->descs[i].sample_period != period)
			return 0;
	}
	return period;
}

static void sums_file_write(const struct function_sums *sums, FILE *fp)
{
	const unsigned int nr = event_set__nr_values(sums->set);
	const bool has_first = event_set__counts_all(sums->set);
	const bool is_implied = sums->set->source == FUNCTION_SOURCE_BRANCHES &&
				only_period(sums->set);
	const struct u192 weights[] = { sums->weight, sums->squares };
	char buf[U192_DECIMAL_SIZE];

	fputs("sums", fp);
	write_name(sums->symbol, fp);
	write_name(sums->dso, fp);
	if (sums->has_address)
		fprintf(fp, "\t0x%llx", (unsigned long long)sums->address);
	else
		fputs("\t-", fp);
	fprintf(fp, "\t%llu\t%llu\t%llu\t%llu", (unsigned long long)sums->opened,
		(unsigned long long)sums->samples, (unsigned long long)sums->matched,
		(unsigned long long)sums->bursts);
	fprintf(fp, "\t%llu\t%llu", is_implied ? 0 : (unsigned long long)sums->begun,
		is_implied || has_first ? 0 : (unsigned long long)sums->begun_bursts);
	for (unsigned int i = 0; i < 2 * nr; i++)
		fprintf(fp, "\t%s", i >= nr && (is_implied || has_first) ? "0" :
			u192__decimal(&sums->values[i], buf));
	fputc('\n', fp);
	if (has_weights(sums->set) && !only_period(sums->set)) {
		fputs("weights", fp);
		write_values(weights, ARRAY_SIZE(weights), fp);
	}
	if (has_first && sums->begun_bursts) {
		fprintf(fp, "first\t%llu", (unsigned long long)sums->begun_bursts);
		write_values(sums->values + nr, nr, fp);
	}
}

/**
 * function_table__write - write a sums file
 * @table: the table, sorted
 * @fp: the output file
 *
 * Return: 0, or -errno.
 */
int function_table__write(const struct function_table *table, FILE *fp)
{
	struct str_node *event;

	fprintf(fp, "%s %d\n", FUNCTION_SUMS_MAGIC, FUNCTION_SUMS_VERSION);
	fprintf(fp, "by\t%s\t%d\n", table->by, table->inlines);
	fprintf(fp, "lost\t%llu\n", (unsigned long long)table->lost);
	fprintf(fp, "throttled\t%llu\n", (unsigned long long)table->throttled);
	if (table->lacks_children)
		fputs("lacks-children\n", fp);
	for (event = table->scarce ? strlist__first(table->scarce) : NULL; event;
	     event = strlist__next(event)) {
		fputs("scarce", fp);
		write_name(event->s, fp);
		fputc('\n', fp);
	}
	for (int source = 0; source < FUNCTION_SOURCE_BEST; source++) {
		if (table->is_partial[source])
			fprintf(fp, "partial\t%s\n", function_source__name(source));
	}
	for (unsigned int i = 0; i < table->nr_cpus; i++) {
		fputs("cpu", fp);
		write_name(table->cpus[i], fp);
		fputc('\n', fp);
	}
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		write_set(table->sets[i], fp);
		write_intervals(table->sets[i], fp);
		for (size_t j = 0; j < table->nr_sums; j++) {
			if (table->sums[j]->set == table->sets[i])
				sums_file_write(table->sums[j], fp);
		}
	}
	fputs("end\n", fp);
	errno = 0;
	return fflush(fp) || ferror(fp) ? -(errno ?: EIO) : 0;
}

/* The fields of a line of a sums file. */
struct fields {
	char **field;
	unsigned int nr;
	unsigned int allocated;
};

static int unescape(char *name)
{
	char *to = name;

	for (; *name; name++, to++) {
		*to = *name;
		if (*name != '\\')
			continue;
		switch (*++name) {
		case '\\':
			break;
		case 't':
			*to = '\t';
			break;
		case 'n':
			*to = '\n';
			break;
		default:
			return -EINVAL;
		}
	}
	*to = '\0';
	return 0;
}

static int fields__split(struct fields *fields, char *line)
{
	char *field;

	for (fields->nr = 0; (field = strsep(&line, "\t")) != NULL; fields->nr++) {
		if (fields->nr == fields->allocated) {
			unsigned int allocated = fields->allocated + 64;
			char **all = realloc(fields->field, allocated * sizeof(*all));

			if (!all)
				return -ENOMEM;
			fields->field = all;
			fields->allocated = allocated;
		}
		if (unescape(field))
			return -EINVAL;
		fields->field[fields->nr] = field;
	}
	return 0;
}

/* group SHARE PERIOD FREQ ALTERNATE COUNT JITTER INHERIT LEADER MEMBER... */
static int read_group(struct function_table *table, struct fields *fields,
		      struct event_set **set)
{
	struct function_group_desc desc = {};
	u64 count, jitter, inherit;
	const struct {
		u64 *value, most;
	} numbers[] = {
		{ &desc.sample_period, UINT64_MAX },
		{ &desc.sample_freq, UINT64_MAX },
		{ &desc.alternative_sample_period, UINT64_MAX },
		{ &count, UINT32_MAX },
		{ &jitter, UINT32_MAX },
		{ &inherit, 1 },
	};
	const unsigned int events = 2 + ARRAY_SIZE(numbers);
	char **field = fields->field + 2;
	int share;

	if (fields->nr <= events || fields->nr > events + FUNCTION_MAX_EVENTS)
		return -EINVAL;
	share = function_share__find(fields->field[1]);
	if (share < 0)
		return -EINVAL;
	for (unsigned int i = events; i < fields->nr; i++) {
		if (fn_event__is_reserved(fields->field[i]))
			return -EINVAL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (function_text__u64(*field++, 10, numbers[i].value) ||
		    *numbers[i].value > numbers[i].most)
			return -EINVAL;
	}

	desc.share = share;
	desc.alternative_sample_count = count;
	desc.jitter_alternate_period = jitter;
	desc.inherit = inherit;
	*set = function_table__findnew_set(table, (const char *const *)field, fields->nr - events,
					   function_share__source(share));
	return *set ? event_set__add_desc(*set, &desc) : -ENOMEM;
}

/* Returns true if all values are 0, as without windows. */
static bool is_zero(const struct u192 *values, unsigned int nr)
{
	static const struct u192 zero;

	for (unsigned int i = 0; i < nr; i++) {
		if (memcmp(&values[i], &zero, sizeof(zero)))
			return false;
	}
	return true;
}

static int parse_values(struct u192 *values, char *const *field, unsigned int nr)
{
	for (unsigned int i = 0; i < nr; i++) {
		int err = u192__parse(&values[i], field[i]);

		if (err)
			return err;
	}
	return 0;
}

/* N VALUE... */
static int read_intervals(const struct event_set *set, struct function_intervals *intervals,
			  struct fields *fields)
{
	const unsigned int nr = event_set__nr_values(set);

	if (fields->nr != 2 + nr || intervals->number ||
	    function_text__u64(fields->field[1], 10, &intervals->number) ||
	    parse_values(intervals->values, fields->field + 2, nr) ||
	    (!intervals->number && !is_zero(intervals->values, nr)))
		return -EINVAL;
	return 0;
}

/*
 * Returns true if the numbers of a function's windows are consistent, matched ones or begun ones.
 */
static bool is_reading(const struct event_set *set, u64 windows, u64 bursts,
		       const struct u192 *values)
{
	return bursts <= windows && !bursts == !windows &&
	       (windows || is_zero(values, event_set__nr_values(set)));
}

/* Returns true if the numbers of the windows that begin in a function are consistent. */
static bool is_begun(const struct function_sums *sums)
{
	const struct event_set *set = sums->set;
	const struct u192 *values = sums->values + event_set__nr_values(set);

	if (event_set__has_share(set, FUNCTION_SHARE_AUTO))
		return is_reading(set, sums->begun, sums->begun_bursts, values);
	if (set->source == FUNCTION_SOURCE_BRANCHES)
		return sums->begun == sums->matched && sums->begun_bursts == sums->bursts &&
		       is_reading(set, sums->begun, sums->begun_bursts, values);
	return !sums->opened && !sums->begun_bursts && is_zero(values, event_set__nr_values(set)) &&
	       sums->begun <= (event_set__counts_all(set) ? sums->matched : 0);
}

/*
 * Returns the weight of a sample in a file that does not have it: the period, or where an older
 * perf has written it, the mean long interval. 0: it is not known.
 */
static double mean_weight(const struct event_set *set)
{
	if (only_period(set) || set->source == FUNCTION_SOURCE_BRANCHES)
		return only_period(set);
	return set->longs.number && !is_zero(set->longs.values, 1) ?
	       u192__double(&set->longs.values[0]) / set->longs.number : 1;
}

/* Sets what does not stand in the line of a function. Another line may tell other weights. */
static int set_weights(struct function_sums *sums)
{
	const unsigned int nr = event_set__nr_values(sums->set);
	const double weight = mean_weight(sums->set);

	if (!has_weights(sums->set))
		return 0;
	sums->weight = (struct u192){ { sums->opened } };
	sums->squares = sums->weight;
	u192__stretch(&sums->weight, weight);
	u192__stretch(&sums->squares, weight * weight);
	if (sums->set->source != FUNCTION_SOURCE_BRANCHES || sums->begun || !sums->matched)
		return 0;
	if (!weight || sums->begun_bursts || !is_zero(sums->values + nr, nr))
		return -EINVAL;
	sums->begun = sums->matched;
	sums->begun_bursts = sums->bursts;
	for (unsigned int i = 0; i < nr; i++) {
		sums->values[nr + i] = sums->values[i];
		u192__stretch(&sums->values[nr + i],
			      i < sums->set->nr_events ? weight : weight * weight);
	}
	return 0;
}

/* OPENED SAMPLES MATCHED BURSTS BEGUN BEGUN_BURSTS VALUE... */
static int read_numbers(struct function_sums *sums, char *const *field)
{
	u64 *const counts[] = {
		&sums->opened, &sums->samples, &sums->matched, &sums->bursts,
		&sums->begun, &sums->begun_bursts,
	};
	const struct event_set *set = sums->set;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		if (function_text__u64(field[i], 10, counts[i]))
			return -EINVAL;
	}
	if (parse_values(sums->values, field + ARRAY_SIZE(counts), event_set__nr_row_values(set)) ||
	    set_weights(sums) ||
	    sums->matched > sums->samples ||
	    !is_reading(set, sums->matched, sums->bursts, sums->values) || !is_begun(sums))
		return -EINVAL;
	return 0;
}

/* sums SYMBOL DSO ADDRESS and numbers */
static int sums_file_read(struct function_table *table, struct fields *fields,
			  const struct event_set *set)
{
	const unsigned int names = 4;
	char **field = fields->field;
	struct function_sums *sums;
	bool has_address;
	u64 address = 0;

	if (fields->nr != names + 6 + event_set__nr_row_values(set))
		return -EINVAL;
	has_address = strcmp(field[3], "-");
	if (has_address && function_text__u64(field[3], 16, &address))
		return -EINVAL;

	sums = function_table__add_sums(table, set, field[1], field[2],
					has_address ? &address : NULL);
	if (!sums)
		return -ENOMEM;
	return read_numbers(sums, field + names);
}

/* weights WEIGHT SQUARES, of the function in the line before */
static int read_weights(struct function_sums *sums, struct fields *fields)
{
	if (!has_weights(sums->set) || fields->nr != 3 ||
	    u192__parse(&sums->weight, fields->field[1]) ||
	    u192__parse(&sums->squares, fields->field[2]) ||
	    !sums->opened != is_zero(&sums->weight, 1) ||
	    !sums->opened != is_zero(&sums->squares, 1))
		return -EINVAL;
	return 0;
}

/* first N VALUE..., of the function in the line before */
static int read_first(struct function_sums *sums, struct fields *fields)
{
	const unsigned int nr = event_set__nr_values(sums->set);

	if (!event_set__counts_all(sums->set) || fields->nr != 2 + nr || sums->begun_bursts ||
	    function_text__u64(fields->field[1], 10, &sums->begun_bursts) || !sums->begun_bursts)
		return -EINVAL;
	return parse_values(sums->values + nr, fields->field + 2, nr);
}

/* by KEY[,KEY...] INLINES */
static int read_by(struct function_table *table, struct fields *fields)
{
	enum function_by keys[FUNCTION_BY_MAX];
	u64 inlines;
	int nr;

	if (fields->nr != 3 || function_text__u64(fields->field[2], 10, &inlines) || inlines > 1)
		return -EINVAL;
	nr = function_by__parse(fields->field[1], keys);
	if (nr < 0)
		return -EINVAL;
	function_by__write(table->by, keys, nr);
	table->inlines = inlines;
	return 0;
}

/* Each one is compared with those before it. */
#define MOST_GROUPS	1000
#define MOST_CPUS	1000

/* The lines that may follow. In share mode auto, the intervals of a set precede its sums. */
enum expected {
	EXPECT_GROUP,
	EXPECT_WINDOWS,
	EXPECT_LONG,
	EXPECT_SUMS,
};

struct reader {
	struct function_table *table;
	struct event_set *set;	/* the set of the last group line */
	struct function_sums *sums;	/* the last ones of it */
	enum expected expected;
	unsigned int nr_groups;
};

static int read_group_line(struct reader *reader, struct fields *fields)
{
	struct event_set *before = reader->set;
	int err;

	reader->sums = NULL;
	if (reader->expected == EXPECT_LONG)
		return -EINVAL;
	err = read_group(reader->table, fields, &reader->set);
	if (err || (reader->expected == EXPECT_WINDOWS && reader->set != before))
		return err ?: -EINVAL;
	reader->expected = event_set__has_share(reader->set, FUNCTION_SHARE_AUTO) ?
			   EXPECT_WINDOWS : EXPECT_SUMS;
	return 0;
}

/* Returns 1 for the last line. */
static int read_line(struct reader *reader, struct fields *fields)
{
	struct function_table *table = reader->table;
	const char *word = fields->field[0];
	struct event_set *set = reader->set;

	if (!strcmp(word, "group"))
		return reader->nr_groups++ < MOST_GROUPS ? read_group_line(reader, fields) : -E2BIG;
	if (reader->expected == EXPECT_WINDOWS) {
		reader->expected = EXPECT_LONG;
		return strcmp(word, "windows") ? -EINVAL :
		       read_intervals(set, &set->windows, fields);
	}
	if (reader->expected == EXPECT_LONG) {
		reader->expected = EXPECT_SUMS;
		return strcmp(word, "long") ? -EINVAL :
		       read_intervals(set, &set->longs, fields);
	}
	if (!strcmp(word, "sums") && reader->expected == EXPECT_SUMS) {
		int err = sums_file_read(table, fields, set);

		reader->sums = err ? NULL : table->sums[table->nr_sums - 1];
		return err;
	}
	if (!strcmp(word, "weights") && reader->sums)
		return read_weights(reader->sums, fields);
	if (!strcmp(word, "first") && reader->sums)
		return read_first(reader->sums, fields);
	if (!strcmp(word, "by"))
		return read_by(table, fields);
	if (fields->nr == 2 && !strcmp(word, "lost"))
		return function_text__u64(fields->field[1], 10, &table->lost);
	if (fields->nr == 2 && !strcmp(word, "throttled"))
		return function_text__u64(fields->field[1], 10, &table->throttled);
	if (fields->nr == 1 && !strcmp(word, "lacks-children")) {
		table->lacks_children = true;
		return 0;
	}
	if (fields->nr == 2 && !strcmp(word, "scarce"))
		return function_table__add_scarce(table, fields->field[1]);
	if (fields->nr == 2 && !strcmp(word, "partial")) {
		int source = function_source__find(fields->field[1]);

		if (source < 0 || source == FUNCTION_SOURCE_BEST)
			return -EINVAL;
		table->is_partial[source] = true;
		return 0;
	}
	if (fields->nr == 2 && !strcmp(word, "cpu"))
		return table->nr_cpus < MOST_CPUS ?
		       function_table__add_cpu(table, fields->field[1]) : -E2BIG;
	return fields->nr == 1 && !strcmp(word, "end") ? 1 : -EINVAL;
}

/* Returns true if the weights of samples are unknown: of a frequency, without their line. */
static bool lacks_weights(const struct function_table *table)
{
	for (size_t i = 0; i < table->nr_sums; i++) {
		if (table->sums[i]->opened && is_zero(&table->sums[i]->weight, 1))
			return true;
	}
	return false;
}

/**
 * function_table__read - read a sums file
 * @table: empty; set to the content of the file
 * @fp: the file
 * @msg: set to what is wrong with the file
 * @size: size of @msg in bytes
 *
 * Return: 0, or -errno.
 */
int function_table__read(struct function_table *table, FILE *fp, char *msg, size_t size)
{
	struct reader reader = { .table = table };
	struct fields fields = {};
	char *line = NULL;
	size_t allocated = 0;
	unsigned int nr = 1;
	int ret = -EINVAL;
	unsigned long version;
	char number[24], end;

	if (getline(&line, &allocated, fp) < 0 ||
	    sscanf(line, FUNCTION_SUMS_MAGIC " %23[0-9]%c", number, &end) != 2 || end != '\n') {
		scnprintf(msg, size, "it is not a sums file: write one with --sums");
		goto out;
	}
	version = strtoul(number, NULL, 10);
	if (version < FUNCTION_SUMS_OLDEST || version > FUNCTION_SUMS_VERSION) {
		scnprintf(msg, size,
			  "a sums file of version %s, this perf reads versions %d to %d: write it again with this perf's --sums",
			  number, FUNCTION_SUMS_OLDEST, FUNCTION_SUMS_VERSION);
		goto out;
	}

	scnprintf(table->by, sizeof(table->by), "%s", function_by__name(FUNCTION_BY_SYMBOL));
	for (ret = 0; !ret; ) {
		ssize_t length = getline(&line, &allocated, fp);

		nr++;
		if (length <= 0 || line[length - 1] != '\n') {
			scnprintf(msg, size, "the sums file is cut short: write it again");
			ret = -EINVAL;
			goto out;
		}
		line[length - 1] = '\0';
		/* A NUL in the line would cut off a name. */
		ret = strlen(line) < (size_t)length - 1 ? -EINVAL : fields__split(&fields, line);
		if (!ret)
			ret = read_line(&reader, &fields);
	}
	if (ret > 0 && getline(&line, &allocated, fp) >= 0) {
		nr++;
		ret = -EINVAL;
	}
	if (ret > 0 && lacks_weights(table))
		ret = -EINVAL;
	if (ret < 0) {
		if (ret == -ENOMEM)
			scnprintf(msg, size, "not enough memory");
		else if (ret == -E2BIG)
			scnprintf(msg, size,
				  "it has more than %d groups or CPUs: add up fewer files",
				  MOST_GROUPS);
		else
			scnprintf(msg, size,
				  "line %u is damaged: write the file again with --sums", nr);
		goto out;
	}
	/* A table without sets would be compatible with any other. */
	ret = table->nr_sets ? function_table__sort(table) : -EINVAL;
	if (ret)
		scnprintf(msg, size, ret == -EINVAL ? "the sums file has no group: write it again" :
			  "the sums of a function are too large to add up: report fewer files at once");
out:
	free(fields.field);
	free(line);
	return ret;
}
