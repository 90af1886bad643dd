// SPDX-License-Identifier: GPL-2.0
/* Opens the inputs of perf functions report: recordings and sums files, also from pipes. */
#include <byteswap.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/zalloc.h>

#include "../debug.h"
#include "../header.h"
#include "functions.h"

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
static int read_recording(const char *path, int pipe, const struct fn_options *options,
			  struct fn_table *table)
{
	int own_stdin = -1, err;

	if (pipe >= 0) {
		own_stdin = dup(STDIN_FILENO);
		if (dup2(pipe, STDIN_FILENO) < 0) {
			fn_err("%s: %s", path, strerror(errno));
			return -1;
		}
		path = "-";
	}
	err = fn_session__read(path, options, table);
	if (own_stdin >= 0) {
		dup2(own_stdin, STDIN_FILENO);
		close(own_stdin);
	}
	return err;
}

/* Drops the sets of other sources. Returns false if nothing is left. */
static bool choose_source(struct fn_table *table, const struct fn_source *source)
{
	if (!fn_table__has_source(table, source, NULL))
		return false;
	fn_table__for_each_set(table, set) {
		bool is_needed = set->source == source;

		fn_table__for_each_set(table, other)
			is_needed |= other->source == source && other->even == set;
		/* CPI is that of samples over operations. */
		is_needed |= source == &fn_operations && set->source == &fn_samples &&
			     fn_table__number(table, NULL, source);
		set->is_dropped = !is_needed;
		set->is_hidden |= set->source != source;
		fn_table__for_each_row(table, row) {
			struct fn_sums *sums = fn_row__sums(row, set);

			/* Only samples of the leader tell shares. */
			if (sums && set->is_hidden && source == &fn_windows && !sums->values[0])
				zfree(&row->sums[set->index]);
		}
	}
	return true;
}

static int read_sums(const char *path, int fd, const struct fn_options *options,
		     struct fn_table *table)
{
	const char *filter = options->span ? "interval" : fn_options__filter(options);
	FILE *fp;
	int err;

	if (filter) {
		fn_err("%s: --%s needs a recording, and this is a sums file: give --%s the recording",
		       path, filter, filter);
		return -EINVAL;
	}
	fp = fdopen(dup(fd), "r");
	if (!fp) {
		fn_err("%s: %m", path);
		return -1;
	}
	err = fn_table__read_sums(path, table, fp);
	fclose(fp);
	if (!err && options->source && !choose_source(table, options->source)) {
		fn_err("%s: no sums of --source %s: leave it out", path, options->source->name);
		err = -EINVAL;
	}
	return err ?: fn_table__settle(table);
}

/* Returns true, after a message, if --sums would replace the recording that it is made of. */
static bool refuse_output(const char *path, const struct stat *recording, const char *sums)
{
	struct stat st;

	if (!sums || !strcmp(sums, "-") || !S_ISREG(recording->st_mode) || stat(sums, &st) ||
	    st.st_dev != recording->st_dev || st.st_ino != recording->st_ino)
		return false;
	fn_err("%s: --sums would replace this recording: give the sums another name", path);
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
	return offset + size < offset || offset + size > (u64)st->st_size;
}

/* Returns true if @bytes are, as far as they go, those that a file begins with. */
static bool begins_with(const struct perf_pipe_file_header *header, ssize_t bytes,
			const char *magic)
{
	return bytes > 0 && !memcmp(header, magic, min_t(size_t, bytes, sizeof(header->magic)));
}

/* Returns why an input that is no sums file cannot be a recording, or NULL. */
static const char *refuse_file(int fd, const struct stat *st,
			       const struct perf_pipe_file_header *header, ssize_t bytes)
{
	const u64 pipe_size = sizeof(*header);
	/* In the other byte order, a small number is large. */
	bool is_swapped = header->size > UINT32_MAX;
	bool is_whole = bytes == sizeof(*header);

	if (!bytes)
		return "there is no data: see perf functions record";
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

void fn_input__note_empty(const char *path, const struct fn_options *options)
{
	const char *filter = fn_options__filter(options);

	if (filter)
		fn_warn("%s: no sample matches --%s: leave it out to see all rows", path, filter);
	else if (options->source == &fn_branches)
		fn_warn("%s: no branch records that tell a CPI: record for longer, or with a period of more than 3000 cycles",
			path);
	else
		fn_warn("%s: no samples that count: record for longer, or with a shorter period",
			path);
}

int fn_input__read(const char *path, struct fn_options *options, const char *sums,
		   struct fn_table *table)
{
	const char *file = strcmp(path, "-") ? path : "/dev/stdin", *reason = NULL;
	int fd = open(file, O_RDONLY | O_CLOEXEC), err = -EINVAL;
	struct perf_pipe_file_header header = {};
	struct stat st = {};
	bool is_pipe = fd >= 0 && !fstat(fd, &st) && S_ISFIFO(st.st_mode), is_sums;
	ssize_t bytes = is_pipe ? peek(fd, &header, sizeof(header)) :
				  pread(fd, &header, sizeof(header), 0);

	options->name = path;
	if (bytes >= 0)
		reason = refuse_file(fd, &st, &header, bytes);
	is_sums = begins_with(&header, bytes, FN_SUMS_MAGIC);
	if (is_sums)
		err = read_sums(path, fd, options, table);
	else if (reason)
		fn_err("%s: %s", path, reason);
	/* perf reads a socket on stdin, which has no name to open. */
	else if (fd < 0 && strcmp(path, "-") && stat(path, &st))
		fn_err("%s: %m: name a file that perf functions record has written", path);
	else if (!refuse_output(path, &st, sums))
		err = read_recording(fd < 0 ? path : file, is_pipe ? fd : -1, options, table);
	if (fd >= 0)
		close(fd);
	/* addr2line makes perf ignore this, but `| head` must end the command silently. */
	signal(SIGPIPE, SIG_DFL);
	if (!err && options->has_by && strcmp(table->by, options->by)) {
		fn_err("%s: these are sums %s%s: leave out --by and --children, or write sums anew from the recording",
		       path, fn_by__is(table->by, FN_BY_CHILDREN) ? "of --" : "by ", table->by);
		err = -EINVAL;
	}
	if (!err && is_sums && options->inlines && !table->inlines) {
		fn_err("%s: these sums have no inlined functions: leave out --inline, or write sums anew from the recording",
		       path);
		err = -EINVAL;
	}
	/* Sums that become part of others were noted when they were made of recordings. */
	if (!err && !(is_sums && sums) && !fn_options__filter(options) && fn_table__is_empty(table))
		fn_input__note_empty(path, options);
	return err;
}
