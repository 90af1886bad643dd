// SPDX-License-Identifier: GPL-2.0
/* Reads the inputs of perf functions report: recordings and sums files, also from pipes. */
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/kernel.h>

#include "../../debug.h"
#include "../../header.h"
#include "../text.h"
#include "input.h"
#include "recording.h"
#include "sums-file.h"
#include "sums.h"

static int input_read_sums(const char *path, int fd, struct function_table *table)
{
	int own = dup(fd), err;
	FILE *fp = own < 0 ? NULL : fdopen(own, "r");
	char msg[128];

	if (!fp) {
		function_error(path, strerror(errno));
		if (own >= 0)
			close(own);
		return -1;
	}
	err = function_table__read(table, fp, msg, sizeof(msg));
	if (err)
		function_error(path, msg);
	fclose(fp);
	return err;
}

/* Returns true, after a message, if there is nothing of this name to read. */
static bool refuse_name(const char *path, int fd)
{
	struct stat st;

	/* perf reads a socket on stdin, which has no name to open. */
	if (fd >= 0 || !strcmp(path, "-") || !stat(path, &st))
		return false;
	pr_err("perf functions: %s: %m: name a file that perf functions record has written\n",
	       path);
	return true;
}

/* Reads the first bytes of a pipe without removing them. Returns their number, or -1. */
static ssize_t peek(int fd, void *bytes, size_t most)
{
	int copy[2];
	ssize_t size;

	if (pipe(copy))
		return -1;
	size = tee(fd, copy[1], most, 0);
	if (size > 0)
		size = read(copy[0], bytes, size);
	close(copy[0]);
	close(copy[1]);
	return size;
}

/* perf reads pipes from stdin only. */
static int read_recording(const char *path, int pipe, struct recording_options *options,
			  struct function_table *table, struct recording **kept)
{
	int own_stdin = -1, err;

	if (pipe >= 0) {
		own_stdin = dup(STDIN_FILENO);
		if (dup2(pipe, STDIN_FILENO) < 0) {
			function_error(path, strerror(errno));
			return -1;
		}
		path = "-";
	}
	err = recording__read(path, options, table, kept);
	if (own_stdin >= 0) {
		dup2(own_stdin, STDIN_FILENO);
		close(own_stdin);
	}
	return err;
}

/* Returns true, after a message, if an option for sums needs a recording. */
static bool refuse_choice(const char *path, const struct recording_options *options,
			  const struct function_table *table)
{
	const bool wants_none = options->share == FUNCTION_SHARE_NONE;
	const char *filter = recording_options__filter(options);

	if (filter) {
		pr_err("perf functions: %s: --%s needs a recording, and this is a sums file: give --%s when you write it with --sums\n",
		       path, filter, filter);
		return true;
	}
	if (options->share == FUNCTION_SHARE_AUTO)
		return false;
	/* auto has the same windows as discard. */
	for (int share = 0; share < FUNCTION_SHARE_CHOICES; share++) {
		bool is_none = share == FUNCTION_SHARE_NONE;

		if (wants_none == is_none || !function_table__has_share(table, share))
			continue;
		pr_err("perf functions: %s: these are sums of --share %s: leave --share out, or write them anew from the recording\n",
		       path, function_share__name(share));
		return true;
	}
	return false;
}

static int read_chosen_sums(const char *path, int fd, const struct recording_options *options,
			    struct function_table *table)
{
	int err;

	if (options->span) {
		function_error(path, "a sums file has no times: give the recording to --interval");
		return -EINVAL;
	}
	err = input_read_sums(path, fd, table);
	if (!err && function_table__choose_source(table, options->source)) {
		pr_err("perf functions: %s: no sums of --source %s: leave it out\n", path,
		       function_source__name(options->source));
		err = -EINVAL;
	}
	if (!err && refuse_choice(path, options, table))
		err = -EINVAL;
	if (!err && options->share == FUNCTION_SHARE_DISCARD)
		function_table__discard(table);
	return err;
}

/* Returns true, after a message, if --sums would replace the recording that it is made of. */
static bool refuse_output(const char *path, const struct stat *recording, const char *sums)
{
	struct stat st;

	if (!sums || !strcmp(sums, "-") || !S_ISREG(recording->st_mode) || stat(sums, &st) ||
	    st.st_dev != recording->st_dev || st.st_ino != recording->st_ino)
		return false;
	function_error(path, "--sums would replace this recording: give the sums another name");
	return true;
}

/* Returns true if a file ends before the events that its header describes. */
static bool lacks_events(int fd, const struct stat *st, bool is_swapped)
{
	struct perf_file_header header;
	u64 offset, size;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header))
		return true;
	offset = is_swapped ? bswap_64(header.attrs.offset) : header.attrs.offset;
	size = is_swapped ? bswap_64(header.attrs.size) : header.attrs.size;
	return add_saturated(offset, size) > (u64)st->st_size;
}

/* Returns true if @bytes are, as far as they go, those that a file begins with. */
static bool begins_with(const struct perf_pipe_file_header *header, ssize_t bytes,
			const char *magic)
{
	return bytes > 0 && !memcmp(header, magic, min_t(size_t, bytes, sizeof(header->magic)));
}

/* Returns how to unpack an input that is packed, or NULL. */
static const char *find_packer(const struct perf_pipe_file_header *header, ssize_t bytes)
{
	static const struct {
		const char *magic, *advice;
	} packers[] = {
		{ "\x1f\x8b", "packed by gzip: unpack it with gunzip" },
		{ "\x28\xb5\x2f\xfd", "packed by zstd: unpack it with unzstd" },
		{ "\xfd\x37zXZ", "packed by xz: unpack it with unxz" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(packers); i++) {
		const size_t size = strlen(packers[i].magic);

		if (bytes >= (ssize_t)size && !memcmp(header, packers[i].magic, size))
			return packers[i].advice;
	}
	return NULL;
}

/* Returns why an input that is no sums file cannot be a recording, or NULL. */
static const char *refuse_file(int fd, const struct stat *st,
			       const struct perf_pipe_file_header *header, ssize_t bytes)
{
	const u64 pipe_size = sizeof(*header);
	/* In the other byte order, a small number is large. */
	bool is_swapped = header->size > UINT32_MAX;
	bool is_whole = bytes == sizeof(*header);
	const char *packer = find_packer(header, bytes);

	if (!bytes)
		return "there is no data: see perf functions record";
	if (packer)
		return packer;
	if (!begins_with(header, bytes, "PERFILE2") && !begins_with(header, bytes, "2ELIFREP") &&
	    !begins_with(header, bytes, "PERFFILE"))
		return "neither a recording nor a sums file: see perf functions record";
	if (is_whole && header->size == (is_swapped ? bswap_64(pipe_size) : pipe_size))
		return NULL;
	if (is_whole && S_ISFIFO(st->st_mode))
		return "in a pipe, a recording must come from perf record -o -: copy it to a file";
	if (S_ISREG(st->st_mode) && lacks_events(fd, st, is_swapped))
		return "the file is cut short: record again";
	return NULL;
}

/**
 * function_input__read - read a recording or a sums file
 * @path: its name, "-" for stdin
 * @options: what the user wants of it
 * @table: empty; its sums
 * @kept: list of recordings whose code can be shown, see recording__read()
 *
 * Why it cannot be read is printed.
 *
 * Return: 0, or a negative number.
 */
int function_input__read(const char *path, const struct function_input_options *options,
			 struct function_table *table, struct recording **kept)
{
	struct recording_options *recording = options->recording;
	const char *file = strcmp(path, "-") ? path : "/dev/stdin", *reason = NULL;
	int fd = open(file, O_RDONLY | O_CLOEXEC), err = -EINVAL;
	struct perf_pipe_file_header header = {};
	struct stat st = {};
	bool is_pipe = fd >= 0 && !fstat(fd, &st) && S_ISFIFO(st.st_mode), is_sums;
	ssize_t bytes = is_pipe ? peek(fd, &header, sizeof(header)) :
				  pread(fd, &header, sizeof(header), 0);

	recording->name = path;
	if (bytes >= 0)
		reason = refuse_file(fd, &st, &header, bytes);
	is_sums = begins_with(&header, bytes, FUNCTION_SUMS_MAGIC);
	if (is_sums)
		err = read_chosen_sums(path, fd, recording, table);
	else if (reason)
		function_error(path, reason);
	else if (!refuse_name(path, fd) && !refuse_output(path, &st, options->sums))
		err = read_recording(fd < 0 ? path : file, is_pipe ? fd : -1, recording, table,
				     kept);
	if (fd >= 0)
		close(fd);

	if (!err && options->has_rows && strcmp(table->by, recording->by)) {
		pr_err("perf functions: %s: these are sums %s%s: leave out --by and --children, or write sums anew from the recording\n",
		       path, function_by__is(table->by, FUNCTION_BY_CHILDREN) ? "of --" : "by ",
		       table->by);
		err = -EINVAL;
	}
	if (!err && is_sums && recording->inlines && !table->inlines) {
		function_error(path,
			       "these sums have no inlined functions: leave out --inline, or write sums anew from the recording");
		err = -EINVAL;
	}
	/* Sums that become part of others were noted when they were made of recordings. */
	if (!err && !(is_sums && options->sums) && !recording_options__filter(recording) &&
	    !function_table__has_window(table))
		function_input__note_empty(path, recording);
	return err;
}

/**
 * function_input__refuse_sum - say that an input cannot be added to those before
 * @path: its name
 * @reason: why not
 *
 * Return: -EINVAL
 */
int function_input__refuse_sum(const char *path, const char *reason)
{
	pr_err("perf functions: %s: cannot be added to the inputs before it: %s: report it separately\n",
	       path, reason);
	return -EINVAL;
}

/**
 * function_input__note_empty - say that an input has no window
 * @path: its name
 * @options: the choice of windows
 *
 * function_input__read() does so itself if the user has chosen no windows.
 */
void function_input__note_empty(const char *path, const struct recording_options *options)
{
	const char *filter = recording_options__filter(options);

	if (filter)
		pr_warning("perf functions: %s: no window matches --%s: leave it out to see all rows\n",
			   path, filter);
	else if (options->source == FUNCTION_SOURCE_BRANCHES)
		pr_warning("perf functions: %s: no branch records that tell a CPI: record for longer, or with a period of more than %d cycles\n",
			   path, RECORDING_LEAST_UNDISTURBED);
	else
		pr_warning("perf functions: %s: no samples that end a window: record for longer, or with a shorter period\n",
			   path);
}
