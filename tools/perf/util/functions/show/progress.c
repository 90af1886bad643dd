// SPDX-License-Identifier: GPL-2.0
/*
 * Shows the progress of reading a recording: a line at the terminal, which disappears before the
 * table is printed. Without a terminal there is none.
 */
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <linux/types.h>

#include "../../../ui/progress.h"
#include "../../debug.h"
#include "../../time-utils.h"
#include "progress.h"

/* Nobody can read a line that is shown for less time. */
#define QUIET_NS	(NSEC_PER_SEC / 5)
#define BETWEEN_NS	(NSEC_PER_SEC / 10)
#define DELETE_LINE	"\033[K"

static struct {
	const char *path;
	struct ui_progress_ops *before;
	const u64 *samples;
	u64 begin;		/* of the whole file */
	u64 start;		/* of the part that the estimate uses */
	u64 shown;
} progress;

static void progress__init(struct ui_progress *p)
{
	p->step = p->total / 1000 ?: 1;
	p->next = p->step;
	progress.start = rdclock();
}

static void progress__update(struct ui_progress *p)
{
	u64 now = rdclock(), left;

	if (now - progress.begin < QUIET_NS || now - progress.shown < BETWEEN_NS)
		return;
	progress.shown = now;
	fprintf(stderr, "%s: %llu samples", progress.path,
		(unsigned long long)*progress.samples);
	/* The size of a pipe is unknown. */
	if (p->total && p->curr && p->curr <= p->total) {
		left = (now - progress.start) * (double)(p->total - p->curr) / p->curr;
		fprintf(stderr, ", %.0f %%, %llu s left", 100.0 * p->curr / p->total,
			(unsigned long long)DIV_ROUND_UP(left, NSEC_PER_SEC));
	}
	/* A message overwrites the line. */
	fputs(DELETE_LINE "\r", stderr);
}

static void progress__finish(void)
{
	if (progress.shown)
		fputs(DELETE_LINE, stderr);
	progress.shown = 0;
}

static struct ui_progress_ops progress_ops = {
	.init	= progress__init,
	.update	= progress__update,
	.finish	= progress__finish,
};

/**
 * function_progress__begin - begin to show how far the reading of a file has come
 * @path: the file
 * @samples: the number of samples read so far, until function_progress__end()
 */
void function_progress__begin(const char *path, const u64 *samples)
{
	progress.before = NULL;
	/* Debug messages would mix with the line. */
	if (verbose > 0 || !isatty(STDERR_FILENO))
		return;
	progress.path = path;
	progress.samples = samples;
	progress.shown = 0;
	progress.begin = rdclock();
	progress.before = ui_progress__ops;
	ui_progress__ops = &progress_ops;
}

/**
 * function_progress__end - remove the line, the file is read
 */
void function_progress__end(void)
{
	if (!progress.before)
		return;
	progress__finish();
	ui_progress__ops = progress.before;
}
