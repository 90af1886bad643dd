// SPDX-License-Identifier: GPL-2.0
/*
 * Gives files to perf functions report, the command, in one process, for libFuzzer.
 *
 * An input is a byte that chooses options, and a sums file or a recording as perf record writes it
 * to a pipe. Its sums, read again, must be the same sums, and its tables must be UTF-8 without
 * control characters.
 *
 * Recordings are well formed in what perf itself reads before perf functions does: the size of
 * records and attrs, the end of strings, features, and whose code is mapped. The order of records
 * and all numbers, ids, names and groups are random. functionsfuzz.py builds this and writes the
 * first inputs.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include "builtin.h"
#include "util/debug.h"
#include "util/session.h"
#include "util/symbol_conf.h"

#define HEADER_SIZE	16
#define ATTR		64
#define FEATURE		80
#define AUXTRACE_INFO	70
#define AUXTRACE	71
#define TIME_CONV	79
/* The sample types that the command reads. */
#define SAMPLE_TYPES	((u64)(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
			 PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID | \
			 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID | \
			 PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_RAW | \
			 PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC))

static const char magic[HEADER_SIZE] = "PERFILE2\x10";

size_t (fuzz_mutate_bytes)(u8 *data, size_t size, size_t most);
const char *__lsan_default_suppressions(void);

/* Names leaks to ignore; LeakSanitizer calls this. */
const char *__lsan_default_suppressions(void)
{
	/*
	 * perf 6.12, in every tool: a thread without maps leaks at its second fork; PMUs of this
	 * machine make room for those of a pipe.
	 */
	return "leak:maps__copy_from\nleak:perf_env__read_pmu_mappings\n";
}

/* The records of features, as perf writes them. */
static u8 features[1 << 16];
static size_t features_size;

/* Files in memory, and their paths. */
enum { INPUT = 100, SUMS };

#define INPUT_PATH " /proc/self/fd/100"
#define SUMS_PATH " /proc/self/fd/101"

int fuzz_initialize(int *argc __maybe_unused, char ***argv __maybe_unused)
{
	FILE *fp = fopen(getenv("FUZZ_FEATURES"), "r");

	features_size = fread(features, 1, sizeof(features), fp);
	fclose(fp);
	setlocale(LC_ALL, "C.UTF-8");
	/* Do not use this machine's kernel: the recording is of another one. */
	symbol_conf.try_vmlinux_path = false;
	symbol_conf.ignore_vmlinux = true;
	symbol_conf.ignore_vmlinux_buildid = true;
	symbol_conf.kallsyms_name = "/dev/null";
	symbol_conf.symfs = "/proc/sys";	/* has no programs */
	verbose = -1;
	dup2(memfd_create("input", 0), INPUT);
	dup2(memfd_create("sums", 0), SUMS);
	dup2(memfd_create("output", 0), STDOUT_FILENO);
	return 0;
}

static void fail(const char *what, const char *text)
{
	dprintf(STDERR_FILENO, "fuzz: %s:\n%s\n", what, text);
	abort();
}

static void put(int file, const void *data, size_t size)
{
	if (ftruncate(file, 0) || pwrite(file, data, size, 0) != (ssize_t)size)
		fail("no memory", "");
}

/* Returns what the command prints with these words, or NULL if it fails; the caller frees it. */
static char *printed_by(const char *words)
{
	char command[512], *text;
	const char *argv[64];
	int argc = 0;
	off_t size;

	snprintf(command, sizeof(command), "functions report %s", words);
	for (char *word = strtok(command, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	/* What a command before this one has left. */
	symbol_conf.use_callchain = false;
	session_done = 0;
	rewind(stdout);
	if (ftruncate(STDOUT_FILENO, 0) || cmd_functions(argc, argv) < 0)
		return NULL;
	fflush(stdout);
	size = lseek(STDOUT_FILENO, 0, SEEK_END);
	text = calloc(1, size + 1);
	if (pread(STDOUT_FILENO, text, size, 0) != size)
		fail("no output", "");
	return text;
}

/* Checks for UTF-8 without control characters other than newlines. */
static void check_text(const char *text)
{
	size_t left = strlen(text), length;
	mbstate_t state = {};
	wchar_t letter;

	for (const char *at = text; left; at += length, left -= length) {
		length = mbrtowc(&letter, at, left, &state);
		if (length > left)
			fail("not UTF-8", text);
		if (iswcntrl(letter) && letter != '\n')
			fail("a control character", text);
	}
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
		[PERF_RECORD_AUX]	= { 32, 0 },
		[AUXTRACE_INFO]		= { 32, 0 },
		[AUXTRACE]		= { 48, 0 },
		[TIME_CONV]		= { 56, 0 },
	};
	u16 least, string;
	u64 period, window, sample_type, branches;
	u32 attr_size;

	if (header->type >= ARRAY_SIZE(forms))
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
		memcpy(&period, record + 24, sizeof(period));
		memcpy(&window, record + 152, sizeof(window));
		memcpy(&sample_type, record + 32, sizeof(sample_type));
		memcpy(&branches, record + 80, sizeof(branches));
		/* perf compares the names of events with counters, which may have none. */
		return attr_size == 160 && (period || !window) &&
		       !(sample_type & ~SAMPLE_TYPES) && !(branches & (1 << 19));
	}
	return header->type != FEATURE || memmem(features, features_size, record, header->size);
}

/* Leaves out what perf cannot take; returns the size of the rest. */
static size_t keep_well_formed(u8 *data, size_t size)
{
	size_t to = HEADER_SIZE;
	struct perf_event_header header;
	u64 data_size;

	for (size_t from = HEADER_SIZE; from + sizeof(header) <= size; from += header.size) {
		memcpy(&header, data + from, sizeof(header));
		if (header.size < sizeof(header) || header.size > size - from)
			break;
		/* AUX data follow: take what is there, up to 64 KB. */
		data_size = 0;
		if (header.type == AUXTRACE && header.size >= 48) {
			memcpy(&data_size, data + from + 8, sizeof(data_size));
			data_size = min(data_size & 0xffff, (u64)(size - from - header.size));
			memcpy(data + from + 8, &data_size, sizeof(data_size));
		}
		if (!is_well_formed(data + from, &header))
			continue;
		memmove(data + to, data + from, header.size + data_size);
		to += header.size + data_size;
		from += data_size;
	}
	return to;
}

int fuzz_one_input(const u8 *data, size_t size)
{
	/* Not srcline: perf would run addr2line for each line. */
	static const char *const rows[] = {
		"", "--by dso", "--by comm", "--by thread --source windows",
		"--by cpu", "--by callchain", "--children", "--source branches",
		"--by thread,process,pmu,cgroup,callchain", "--source samples",
	};
	static const char *const tables[] = {
		"-j" SUMS_PATH, "--ci" SUMS_PATH, "-x ," SUMS_PATH,
		"-j --before" SUMS_PATH " --after" SUMS_PATH,
		"--ci --before" SUMS_PATH SUMS_PATH " --after" SUMS_PATH,
	};
	char options[256], *text, *again;
	u8 *copy;

	if (size < 1 + HEADER_SIZE)
		return 0;
	copy = malloc(size);
	memcpy(copy, data + 1, size - 1);
	if (!memcmp(copy, magic, HEADER_SIZE))
		put(INPUT, copy, keep_well_formed(copy, size - 1));
	else
		put(INPUT, copy, size - 1);
	free(copy);
	snprintf(options, sizeof(options), "%s --sums -" INPUT_PATH,
		 rows[*data % ARRAY_SIZE(rows)]);
	text = printed_by(options);
	if (!text || !strstr(text, "\ngroup\t")) {
		free(text);
		return 0;
	}
	put(SUMS, text, strlen(text));
	again = printed_by("--sums -" SUMS_PATH);
	if (!again || strcmp(text, again))
		fail("the sums are other sums when they are read again", text);
	free(text);
	free(again);
	text = printed_by(tables[size % ARRAY_SIZE(tables)]);
	if (text)
		check_text(text);
	free(text);
	free(printed_by("-j --interval 0.001" INPUT_PATH));
	return 0;
}

/* Half of the mutations copy or remove a whole record or line. */
size_t fuzz_mutate(u8 *data, size_t size, size_t most, unsigned int seed)
{
	bool is_recording = size > 64 && !memcmp(data + 1, magic, HEADER_SIZE);
	size_t place = 1 + (is_recording ? HEADER_SIZE : 0), length = 0, moved = seed / 2 % 61;
	const u8 *end;
	u8 *copy;

	if (seed % 2 || size < 64)
		return fuzz_mutate_bytes(data, size, most);
	/* Seek the unit with this number, or the last one. */
	for (;; place += length) {
		end = memchr(data + place, '\n', size - place);
		length = end ? end + 1 - (data + place) : size - place;
		if (is_recording && place + 8 <= size)
			length = data[place + 6] | data[place + 7] << 8;
		if (!length || length >= size - place || !moved--)
			break;
	}
	length = min(length, size - place);
	if (seed / 128 % 2 && size + length <= most) {
		copy = malloc(length + 1);
		memcpy(copy, data + place, length);
		memmove(data + place + length, data + place, size - place);
		memcpy(data + place, copy, length);
		free(copy);
		return fuzz_mutate_bytes(data, size + length, most);
	}
	memmove(data + place, data + place + length, size - place - length);
	return size - length;
}
