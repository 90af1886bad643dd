// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes the reader of recordings with libFuzzer.
 *
 * An input is a byte that chooses options, and a recording as perf record writes it to a pipe. It
 * is read at once or live. The table of the recording is printed in each form. Written as a sums
 * file and read again, it must be the same.
 *
 * Inputs are well formed in what perf itself reads before perf functions does: the size of records
 * and attrs, the end of strings, features, and whose code is mapped. The order of records and all
 * numbers, ids, names and groups are random.
 *
 * Two of three mutations change whole records or their words of 64 bits. functionsfuzz.py builds
 * this and writes the first inputs.
 */
#include <sys/mman.h>
#include <linux/perf_event.h>

#include "fuzz_functions.h"
#include "util/symbol.h"
#include "util/symbol_conf.h"

#define HEADER_SIZE	16
#define ATTR		64
#define FEATURE		80
#define MAX_RECORDS	256
/* The sample types that the command reads. */
#define SAMPLE_TYPES	((u64)(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
			 PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | \
			 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID | \
			 PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_IDENTIFIER))

/* Names leaks to ignore; LeakSanitizer calls this. perf 6.12 has them in every tool. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	/* A thread without maps leaks at its second fork. */
	return "leak:maps__copy_from\n";
}

/* The records of features, as perf writes them. */
static u8 features[1 << 16];
static size_t features_size;

int fuzz_initialize(int *argc, char ***argv)
{
	FILE *fp;

	(void)argc;
	(void)argv;
	/* Do not use this machine's kernel: the recording is of another one. */
	symbol_conf.priv_size = sizeof(struct fn_row *);
	symbol_conf.try_vmlinux_path = false;
	symbol_conf.ignore_vmlinux = true;
	symbol_conf.ignore_vmlinux_buildid = true;
	symbol_conf.kallsyms_name = "/dev/null";
	symbol_conf.symfs = "/nowhere";
	fp = fopen(getenv("FUZZ_FEATURES") ?: "/dev/null", "r");
	features_size = fread(features, 1, sizeof(features), fp);
	fclose(fp);
	return initialize();
}

/* Can perf take the record as one of its own? */
static bool is_well_formed(const u8 *record, const struct perf_event_header *header)
{
	/* The least size of a record by type, and where its string begins. */
	static const struct {
		u16 size, string;
	} forms[128] = {
		[PERF_RECORD_LOST]	= { 24, 0 },
		[PERF_RECORD_COMM]	= { 24, 16 },
		[PERF_RECORD_EXIT]	= { 32, 0 },
		[PERF_RECORD_THROTTLE]	= { 32, 0 },
		[PERF_RECORD_UNTHROTTLE] = { 32, 0 },
		[PERF_RECORD_FORK]	= { 32, 0 },
		[PERF_RECORD_SAMPLE]	= { 16, 0 },
		[PERF_RECORD_MMAP2]	= { 80, 72 },
		[PERF_RECORD_LOST_SAMPLES] = { 16, 0 },
		[ATTR]			= { 176, 0 },
		[68]			= { 8, 0 },	/* finished round */
		[FEATURE]		= { 16, 0 },
	};
	u16 least, string;
	u64 sample_type;
	u32 attr_size;

	if (header->type >= ARRAY_LENGTH(forms))
		return false;
	least = forms[header->type].size;
	string = forms[header->type].string;
	/* The kernel's records end with up to 48 bytes that tell where they come from. */
	if (header->type < ATTR && header->type != PERF_RECORD_SAMPLE && least)
		least = least > 56 ? least : 56;
	if (!least || header->size < least || header->size % 8)
		return false;
	/* The string must end before the bytes that tell where the sample was taken. */
	if (string && !memchr(record + string, 0, header->size - string))
		return false;
	/* perf 6.12 clones the map of a kernel among those of a program, and copies too much. */
	if (header->type == PERF_RECORD_MMAP2 &&
	    (header->misc != PERF_RECORD_MISC_USER || record[string] != '/'))
		return false;
	/* perf puts the reference to a thread -1 once too often. */
	if (header->type == PERF_RECORD_FORK && memmem(record + 8, 16, "\xff\xff\xff\xff", 4))
		return false;
	if (header->type == ATTR) {
		memcpy(&attr_size, record + 12, sizeof(attr_size));
		memcpy(&sample_type, record + 32, sizeof(sample_type));
		return attr_size == 160 && !(sample_type & ~SAMPLE_TYPES);
	}
	return header->type != FEATURE || memmem(features, features_size, record, header->size);
}

/* Leaves out what perf cannot take; returns the size of the rest. */
static size_t keep_well_formed(u8 *data, size_t size)
{
	size_t to = HEADER_SIZE;
	struct perf_event_header header;

	for (size_t from = HEADER_SIZE; from + sizeof(header) <= size; from += header.size) {
		memcpy(&header, data + from, sizeof(header));
		if (header.size < sizeof(header) || header.size > size - from)
			break;
		if (!is_well_formed(data + from, &header))
			continue;
		memmove(data + to, data + from, header.size);
		to += header.size;
	}
	return to;
}

static bool is_due(void *data)
{
	(void)data;
	return true;
}

/* Adds up the parts of a live recording. */
static int take(void *data, struct fn_table *table, u64 begin, u64 end)
{
	(void)begin;
	(void)end;
	return fn_table__add(data, table) ? -EINVAL : 0;
}

static void read_recording(const u8 *data, size_t size, struct fn_options *options,
			   struct fn_table *table)
{
	struct fn_table live;
	struct fn_session *kept = NULL;
	int fd = memfd_create("recording", 0);
	char path[32];

	if (write(fd, data, size) != (ssize_t)size)
		fail("no memory", "");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	options->name = "recording";
	options->data = table;
	fn_table__init(&live);
	if (fn_session__read(path, options, options->is_due ? &live : table, &kept)) {
		fn_table__exit(table);
		fn_table__init(table);
	} else if (options->is_due && fn_table__settle(table)) {
		fail("no memory", "");
	}
	fn_table__exit(&live);
	fn_sessions__delete(kept);
	close(fd);
}

int fuzz_one_input(const u8 *data, size_t size)
{
	/* Not srcline: perf would run addr2line for each line. */
	static const char *const keys[] = {
		"symbol", "dso", "comm", "thread", "cpu", "callchain", "children",
		"thread,process,pmu,cgroup,callchain",
	};
	struct fn_table table, again;
	struct fn_options options = { .force = true };
	u8 *copy;

	if (size < 1 + HEADER_SIZE)
		return 0;
	copy = malloc(size);
	memcpy(copy, data, size);
	memcpy(copy + 1, "PERFILE2\x10\0\0\0\0\0\0", HEADER_SIZE);
	options.by = keys[data[0] % ARRAY_LENGTH(keys)];
	/* The last one is none: the best for each column. */
	options.source = fn_sources[(FN_NR_SOURCES + data[0] / 8) % (FN_NR_SOURCES + 1)];
	if (data[0] / 32 % 2) {
		options.is_due = is_due;
		options.take = take;
	}
	symbol_conf.use_callchain = fn_by__has(options.by, FN_BY_CALLCHAIN);
	fn_table__init(&table);
	fn_table__init(&again);
	read_recording(copy + 1, keep_well_formed(copy + 1, size - 1), &options, &table);
	free(copy);
	if (table.nr_sets) {
		check_round_trip(&table, &again);
		print_all(&again, size);
	}
	fn_table__exit(&again);
	fn_table__exit(&table);
	return 0;
}

static const u64 words[] = {
	0, 1, 2, 100, 300, 10000, 10300, 0x1000, 0xffffffff, 1ULL << 32, 1ULL << 62, 1ULL << 63,
	UINT64_MAX - 1, UINT64_MAX, (u64)-512,
};

static u16 size_of(const u8 *record)
{
	struct perf_event_header header;

	memcpy(&header, record, sizeof(header));
	return header.size;
}

/* Sets a word to a special value or to another word. */
static void change_word(u8 *record, size_t size, const u8 *data, size_t data_size)
{
	size_t nr = size / sizeof(u64);
	u64 word;

	if (nr < 2)
		return;
	if (random_below(3))
		word = words[random_below(ARRAY_LENGTH(words))];
	else
		memcpy(&word, data + 1 + random_below(data_size - sizeof(word)), sizeof(word));
	memcpy(record + sizeof(word) * (1 + random_below(nr - 1)), &word, sizeof(word));
}

/* Changes the type, the size or the flags. */
static void change_header(u8 *record)
{
	static const u32 types[] = { 1, 2, 3, 4, 5, 6, 7, 9, 10, 13, 64, 68, 70, 74, 78, 80 };
	struct perf_event_header header;

	memcpy(&header, record, sizeof(header));
	if (random_below(2))
		header.type = types[random_below(ARRAY_LENGTH(types))];
	else if (random_below(2))
		header.misc = random_below(8);
	else
		header.size = 8 * random_below(1 + header.size / 8);
	memcpy(record, &header, sizeof(header));
}

static size_t mutate_records(u8 *data, size_t size, size_t most)
{
	size_t places[MAX_RECORDS], place = 1 + HEADER_SIZE, length, target;
	unsigned int nr = 0;
	u8 *copy;

	for (; nr < MAX_RECORDS && place + sizeof(struct perf_event_header) <= size; nr++) {
		places[nr] = place;
		length = size_of(data + place);
		if (length < sizeof(struct perf_event_header) || place + length > size)
			break;
		place += length;
	}
	if (!nr)
		return size;
	place = places[random_below(nr)];
	target = places[random_below(nr)];
	length = size_of(data + place);
	if (place + length > size)
		length = size - place;
	switch (random_below(5)) {
	case 0:			/* insert a copy elsewhere */
		if (size + length > most)
			return size;
		copy = malloc(length + 1);
		memcpy(copy, data + place, length);
		memmove(data + target + length, data + target, size - target);
		memcpy(data + target, copy, length);
		free(copy);
		return size + length;
	case 1:			/* remove it */
		memmove(data + place, data + place + length, size - place - length);
		return size - length;
	case 2:
		change_header(data + place);
		return size;
	default:
		change_word(data + place, length, data, size - 1);
		return size;
	}
}

size_t fuzz_mutate(u8 *data, size_t size, size_t most, unsigned int seed)
{
	random_begin(seed);
	if (size < 64 || !random_below(3))
		return fuzz_mutate_bytes(data, size, most);
	for (int i = 1 + random_below(3); i && size >= 64; i--)
		size = mutate_records(data, size, most);
	return size;
}
