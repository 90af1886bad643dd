// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of what runs now: perf record writes to a pipe, and this process reads it.
 *
 * - perf record writes when a buffer is half full, or when something comes through its
 *   control pipe. So this process sends it a word four times from one table to the next.
 * - The main thread reads. After a round of perf record it hands over the sums, if a
 *   table is due. The other thread adds them up, prints, and waits for keys and
 *   signals. It does not touch the session that is being read.
 * - Time is divided into slices. A table covers the last ones. It adds up two sums: the
 *   first old slice has the sums of all old slices, and @recent those of all others. When
 *   a slice has to be dropped and none is old, all but the newest become old.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <internal/lib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "../../debug.h"
#include "../../mutex.h"
#include "../../term.h"
#include "../../time-utils.h"
#include "../text.h"
#include "../collect/sums.h"
#include "top.h"

/* This word goes through perf record's control pipe. It need not answer. */
#define WORD		"ping\n"
#define WORDS		4	/* from one table to the next */
/* The newest slice grows until it covers one of this number of parts of the time of a table. */
#define MOST_SLICES	32
#define LINE_SIZE	64
/* Size of the pipe from perf record in bytes: the most that each user may have, see pipe(7). */
#define PIPE_SIZE	1048576
/* If perf record and its command have not ended after this time, they are killed. */
#define MOST_TO_END	(10 * NSEC_PER_SEC)
/* timeout(1) sends its signal twice. Within this time, the second one does not count. */
#define SAME_STOP	(NSEC_PER_SEC / 2)

#define ENTER_SCREEN	"\033[?1049h\033[?25l"
#define LEAVE_SCREEN	"\033[?25h\033[?1049l"
#define HOME		"\033[H"
#define ERASE_LINE	"\033[K"
#define ERASE_BELOW	"\033[J"
#define REVERSE		"\033[7m"
#define NORMAL		"\033[m"
#define KEY_ESCAPE	0x1b
#define KEY_DELETE	0x7f

/* The keys and their actions. */
static const struct {
	char key;
	bool asks;	/* for an answer to this */
	const char *text;
} commands[] = {
	{ 'd', true, "seconds from one table to the next" },
	{ 'l', true, "seconds that a table covers (0: all since the start or since z)" },
	{ 'z', false, "forget what was counted so far" },
	{ 's', true, "column to sort by" },
	{ 'e', true, "number of rows (0: all that fit)" },
	{ 'f', true, "least share of a function, in percent" },
	{ 'h', false, "these keys" },
	{ 'q', false, "quit (or Q)" },
};

struct slice {
	struct list_head node;
	struct function_table table;
	bool is_old;		/* the table has the sums of the later old slices, too */
	u64 begin;
	u64 end;
};

/* A question to the user at the bottom of the screen. */
struct prompt {
	char key;	/* 0: nothing */
	const char *text;
	char line[LINE_SIZE];
};

struct function_top {
	struct function_top_options options;
	/* perf record, and its control pipe. */
	pid_t child;
	int control;
	/* The main thread has something to say. */
	int event;
	int signals;
	/* The keyboard, -1: none. */
	int keys;
	bool has_screen;
	FILE *said;		/* by perf record */

	/* Between the two threads. */
	struct mutex mutex;
	bool is_due;
	bool is_handed;
	bool is_unreadable;	/* what perf record writes */
	bool is_unable;		/* to add up the sums */
	bool has_ended;
	struct slice *handed;

	struct list_head slices;
	unsigned int nr_slices;
	struct function_table recent;	/* of the slices that are not old */
	struct function_table total;
	u64 begin;
	u64 end;
	unsigned int nr_tables;
	u64 next_table;
	u64 next_word;
	bool is_stopping;
	u64 stopped;		/* when it was first to end */
	bool is_asked;		/* for a table */
	bool has_news;		/* since the table before */
	bool has_told;		/* that nothing was chosen */
	bool is_counted;	/* all that were wanted are printed */
	bool is_zeroed;		/* what comes next is older */
	bool has_help;
	int err;
	struct prompt prompt;
	char *message;
	/* Messages, until there is no screen, which they would be written over. */
	FILE *notes;
	char *noted;
	size_t noted_size;
};

/* For a process that ends in the middle of it. */
static struct {
	int fd;
	pid_t pid;
	bool is_changed;
	bool has_screen;
	struct termios before;
} terminal;

static void restore_terminal(void)
{
	if (terminal.pid != getpid())
		return;
	if (terminal.has_screen)
		writen(STDOUT_FILENO, LEAVE_SCREEN, strlen(LEAVE_SCREEN));
	if (terminal.is_changed)
		tcsetattr(terminal.fd, TCSANOW, &terminal.before);
	terminal.has_screen = false;
	terminal.is_changed = false;
}

static void restore_and_die(int sig)
{
	restore_terminal();
	signal(sig, SIG_DFL);
	raise(sig);
}

static void set_terminal(const struct function_top *top)
{
	struct termios silent;

	if (top->keys >= 0 &&
	    (terminal.is_changed || !tcgetattr(top->keys, &terminal.before))) {
		silent = terminal.before;
		silent.c_lflag &= ~(ICANON | ECHO);
		silent.c_cc[VMIN] = 0;
		silent.c_cc[VTIME] = 0;
		terminal.fd = top->keys;
		terminal.is_changed = !tcsetattr(top->keys, TCSANOW, &silent);
	}
	terminal.has_screen = true;
	writen(STDOUT_FILENO, ENTER_SCREEN, strlen(ENTER_SCREEN));
}

/*
 * The recorded program has a stderr of its own, and no keyboard that it would share. It does
 * not outlive perf record.
 */
static struct {
	int in;
	int err;
} workload = { -1, -1 };

static void separate_workload(void)
{
	if (workload.in >= 0)
		dup2(workload.in, STDIN_FILENO);
	dup2(workload.err, STDERR_FILENO);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int set_workload(const struct function_top *top)
{
	if (top->has_screen) {
		workload.in = open("/dev/null", O_RDWR | O_CLOEXEC);
		workload.err = workload.in;
	} else {
		workload.err = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	}
	return workload.err < 0 ? -errno : pthread_atfork(NULL, NULL, separate_workload);
}

static void run_child(struct function_top *top, int out, const sigset_t *mask) __noreturn;
static void run_child(struct function_top *top, int out, const sigset_t *mask)
{
	const struct function_top_options *options = &top->options;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (set_workload(top) || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(fileno(top->said), STDERR_FILENO) < 0)
		exit(EXIT_FAILURE);
	close(out);
	close(top->control);
	exit(options->record(options->data));
}

static void slice__delete(struct slice *slice)
{
	if (!slice)
		return;
	function_table__exit(&slice->table);
	free(slice);
}

/**
 * function_top__is_due - say whether sums are wanted
 * @data: struct function_top
 *
 * Return: true if function_top__take() is to be called.
 */
bool function_top__is_due(void *data)
{
	struct function_top *top = data;
	bool is_due;

	mutex_lock(&top->mutex);
	is_due = top->is_due;
	mutex_unlock(&top->mutex);
	return is_due;
}

static void wake(struct function_top *top)
{
	const u64 one = 1;

	if (write(top->event, &one, sizeof(one)) < 0)
		pr_debug("no wakeup: %m\n");
}

/* Return: whether it worked. If not, it has said why. */
static bool top_add_part(struct function_table *table, const struct function_table *part)
{
	const char *reason = function_table__add_part(table, part);

	if (reason)
		pr_err("perf functions: top cannot go on: %s (start it again, with a shorter --last if it has run for long)\n",
		       reason);
	return !reason;
}

/**
 * function_top__take - take sums
 * @data: struct function_top
 * @table: the sums of all functions since the call before
 * @begin: their first time, ns
 * @end: their last time
 *
 * Return: 0, or -EINVAL with a message.
 */
int function_top__take(void *data, const struct function_table *table, u64 begin, u64 end)
{
	struct function_top *top = data;
	int err = 0;

	mutex_lock(&top->mutex);
	if (!top->handed) {
		top->handed = zalloc(sizeof(*top->handed));
		if (top->handed)
			top->handed->begin = begin;
		else
			pr_err("perf functions: top cannot go on: not enough memory (count fewer events, or use --symbols)\n");
	}
	if (!top->handed || !top_add_part(&top->handed->table, table)) {
		top->is_unable = true;
		err = -EINVAL;
	} else {
		top->handed->end = end;
	}
	top->is_due = false;
	top->is_handed = true;
	mutex_unlock(&top->mutex);
	wake(top);
	return err;
}

static void drop_slice(struct function_top *top, struct slice *slice)
{
	list_del(&slice->node);
	slice__delete(slice);
	top->nr_slices--;
}

static void forget(struct function_top *top)
{
	struct slice *slice, *next;

	list_for_each_entry_safe(slice, next, &top->slices, node)
		drop_slice(top, slice);
	function_table__exit(&top->recent);
	function_table__exit(&top->total);
}

/* Make all slices but the newest, which may grow, old ones. */
static int make_old(struct function_top *top)
{
	struct slice *newest = list_last_entry(&top->slices, struct slice, node);
	struct slice *slice = newest, *later = NULL;

	list_for_each_entry_continue_reverse(slice, &top->slices, node) {
		if (later && !top_add_part(&slice->table, &later->table))
			return -EINVAL;
		slice->is_old = true;
		later = slice;
	}
	function_table__exit(&top->recent);
	return top_add_part(&top->recent, &newest->table) ? 0 : -EINVAL;
}

/* Make the table of all slices. */
static int top_add_up(struct function_top *top)
{
	struct slice *first = list_first_entry(&top->slices, struct slice, node);

	top->begin = first->begin;
	top->end = list_last_entry(&top->slices, struct slice, node)->end;
	function_table__exit(&top->total);
	if (first->is_old && !top_add_part(&top->total, &first->table))
		return -EINVAL;
	return top_add_part(&top->total, &top->recent) ? 0 : -EINVAL;
}

/* Take what was handed over, and drop what is too old. */
static int take_up(struct function_top *top)
{
	const u64 last = top->options.last * NSEC_PER_SEC;
	struct slice *newest = NULL, *slice, *next;
	bool is_added;

	mutex_lock(&top->mutex);
	slice = top->handed;
	top->handed = NULL;
	top->is_handed = false;
	mutex_unlock(&top->mutex);
	top->has_news = false;
	if (!slice)
		return 0;
	if (top->is_zeroed) {
		top->is_zeroed = false;
		slice__delete(slice);
		return 0;
	}
	top->has_news = function_table__has_window(&slice->table);

	if (top->nr_slices)
		newest = list_last_entry(&top->slices, struct slice, node);
	if (newest && (!last || newest->end - newest->begin < last / MOST_SLICES)) {
		newest->end = slice->end;
		is_added = top_add_part(&newest->table, &slice->table) &&
			   top_add_part(&top->recent, &slice->table);
		slice__delete(slice);
	} else {
		list_add_tail(&slice->node, &top->slices);
		top->nr_slices++;
		newest = slice;
		is_added = top_add_part(&top->recent, &slice->table);
	}
	if (!is_added)
		return -EINVAL;
	list_for_each_entry_safe(slice, next, &top->slices, node) {
		/* A slice is in it with its greater part. */
		u64 middle = slice->begin + (slice->end - slice->begin) / 2;

		if (!last || slice == newest || newest->end - middle <= last)
			break;
		if (!slice->is_old && make_old(top))
			return -EINVAL;
		drop_slice(top, slice);
	}
	return top_add_up(top);
}

static u64 nr_windows(const struct function_table *table)
{
	u64 nr = 0;

	for (size_t i = 0; i < table->nr_sums; i++)
		nr = add_saturated(nr, table->sums[i]->samples);
	return nr;
}

/* Returns true if there are samples, but no window that the user has chosen. */
static bool lacks_chosen(const struct function_top *top)
{
	return top->options.filter && top->nr_slices && !function_table__has_window(&top->total);
}

/* Print the line above the table. */
static void print_status(const struct function_top *top, FILE *fp)
{
	const struct function_table *table = &top->total;

	fprintf(fp, REVERSE "perf functions top: ");
	if (!top->nr_slices)
		fprintf(fp, "no samples yet");
	else if (lacks_chosen(top))
		fprintf(fp, "no window matches --%s yet", top->options.filter);
	else
		fprintf(fp, "%.1f s, %llu %s", (top->end - top->begin) / (double)NSEC_PER_SEC,
			(unsigned long long)nr_windows(table),
			function_table__has_source(table, FUNCTION_SOURCE_SAMPLES) ? "samples" :
										     "windows");
	if (table->lost)
		fprintf(fp, ", %llu records lost", (unsigned long long)table->lost);
	if (table->throttled)
		fprintf(fp, ", throttled %llu times", (unsigned long long)table->throttled);
	if (top->is_stopping)
		fprintf(fp, "  ending");
	if (top->keys >= 0)
		fprintf(fp, top->is_stopping ? "  q: at once" : "  h: help  q: quit");
	fprintf(fp, NORMAL "\n");
}

/* Add a text, its lines cut at the end of those of the screen. Colours take no room. */
static unsigned int add_lines(FILE *screen, const char *text, const struct winsize *size,
			      unsigned int most)
{
	unsigned int nr = 0;

	for (; *text && nr < most; nr++) {
		int room = size->ws_col;

		fputs(ERASE_LINE, screen);
		for (; *text && *text != '\n'; text++) {
			if (*text == KEY_ESCAPE) {
				while (text[1] && *text != 'm')
					putc_unlocked(*text++, screen);
				putc_unlocked('m', screen);
				continue;
			}
			room -= (*text & 0xc0) != 0x80;
			if (room >= 0)
				putc_unlocked(*text, screen);
		}
		text += *text == '\n';
		fputs(NORMAL "\r\n", screen);
	}
	return nr;
}

/* Replace the last line by the question or the message. */
static void add_bottom(const struct function_top *top, FILE *screen, const struct winsize *size)
{
	char line[2 * LINE_SIZE];

	if (!top->prompt.key && !top->message)
		return;
	scnprintf(line, sizeof(line), "%s: %s_", top->prompt.text, top->prompt.line);
	fprintf(screen, "\033[%u;1H", size->ws_row);
	add_lines(screen, top->prompt.key ? line : top->message, size, 1);
	/* No line after the last one. */
}

/* Print a table to a memory of its own, NULL if that cannot be. */
static char *make_text(struct function_top *top, const struct winsize *size)
{
	struct function_view view = { .begin = top->begin, .end = top->end };
	char *text = NULL;
	size_t length;

	if (size) {
		view.width = size->ws_col;
		view.nr_rows = max(size->ws_row - 3, 1);
	}
	view.fp = open_memstream(&text, &length);
	if (!view.fp)
		return NULL;
	top->err = top->options.print(top->options.data, &top->total, &view);
	fclose(view.fp);
	if (top->err)
		zfree(&text);
	return text;
}

static void add_help(FILE *fp)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(fp, "%c  %s\n", commands[i].key, commands[i].text);
}

/* Makes what the screen shows: the status, then the help or the table. */
static char *make_screen(struct function_top *top, const struct winsize *size)
{
	char *text = NULL, *table = NULL;
	size_t length;
	FILE *fp;

	if (!top->has_help && function_table__has_window(&top->total)) {
		table = make_text(top, size);
		if (!table)
			return NULL;
	}
	fp = open_memstream(&text, &length);
	if (fp) {
		print_status(top, fp);
		if (top->has_help)
			add_help(fp);
		fputs(table ?: "", fp);
		fclose(fp);
	}
	free(table);
	return text;
}

static int draw(struct function_top *top)
{
	struct winsize size;
	char *text, *all = NULL;
	size_t length;
	FILE *screen;

	get_term_dimensions(&size);
	text = make_screen(top, &size);
	screen = text ? open_memstream(&all, &length) : NULL;
	if (screen) {
		fputs(HOME, screen);
		add_lines(screen, text, &size, max(size.ws_row - 1, 1));
		fputs(ERASE_BELOW, screen);
		add_bottom(top, screen, &size);
		fclose(screen);
		writen(STDOUT_FILENO, all, length);
	}
	free(all);
	free(text);
	return text ? 0 : top->err ?: -ENOMEM;
}

static void read_signal(struct function_top *top);

static int milliseconds_to(u64 time, u64 now)
{
	return time > now ? (int)((time - now) / NSEC_PER_MSEC) + 1 : 0;
}

/* Returns the milliseconds until all has to end, or -1. */
static int time_to_end(const struct function_top *top)
{
	return top->is_stopping ? milliseconds_to(top->stopped + MOST_TO_END, rdclock()) : -1;
}

/*
 * Writes text in parts that a pipe takes at once, so that a signal is seen even if nobody reads.
 * Then the reader has as long to go on as perf record has to end.
 */
static int write_text(struct function_top *top, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		struct pollfd fds[] = {
			{ .fd = STDOUT_FILENO, .events = POLLOUT },
			{ .fd = top->signals, .events = POLLIN },
		};
		int ready = poll(fds, ARRAY_SIZE(fds), time_to_end(top));
		ssize_t written = min(ready, 0);

		if (!ready)
			return -ETIMEDOUT;
		if (ready > 0 && fds[1].revents)
			read_signal(top);
		if (ready > 0 && fds[0].revents)
			written = write(STDOUT_FILENO, text, min_t(size_t, left, PIPE_BUF));
		if (written < 0 && errno != EINTR)
			return -errno;
		written = max_t(ssize_t, written, 0);
		text += written;
		left -= written;
	}
	return 0;
}

/* Print a table where there is no screen, unless it is the same as before. */
static int print(struct function_top *top)
{
	char *text;
	int err;

	if (lacks_chosen(top) && !top->has_told) {
		fprintf(stderr,
			"perf functions: no window matches --%s yet: leave it out to see all rows\n",
			top->options.filter);
		top->has_told = true;
	}
	if (!top->has_news)
		return 0;
	text = make_text(top, NULL);
	if (!text)
		return top->err ?: -ENOMEM;
	err = write_text(top, text);
	free(text);
	if (err)
		function_error_of_output(-err);
	return err;
}

/* It may have ended already. */
static void end_child(const struct function_top *top, int sig)
{
	if (top->child > 0)
		kill(top->child, sig);
}

/* End perf record, which ends its command. If that takes too long, both are killed. */
static void stop(struct function_top *top)
{
	const u64 now = rdclock();

	if (!top->is_stopping) {
		top->is_stopping = true;
		top->stopped = now;
		end_child(top, SIGINT);
	} else if (now - top->stopped >= SAME_STOP) {
		end_child(top, SIGKILL);
	}
}

/* Draws the screen, or prints a table. After an error, top ends. */
static void show(struct function_top *top)
{
	if (top->err || (top->is_stopping && !top->has_screen))
		return;
	if (top->has_screen)
		top->err = draw(top);
	else
		top->err = print(top);
	if (top->err && !top->is_stopping)
		stop(top);
}

static void stop_and_show(struct function_top *top)
{
	stop(top);
	show(top);
}

/* Applies the answer to a prompt; sets a message if it is invalid. */
static void choose(struct function_top *top, char key, const char *text)
{
	struct function_top_options *options = &top->options;
	const double least = key == 'd' ? FUNCTION_TOP_LEAST_DELAY : 0;
	double *number = key == 'd' ? &options->delay : &options->last, value;
	char *end;

	if (key != 'd' && key != 'l') {
		top->message = options->choose(options->data, &top->total, key, text);
		return;
	}
	value = strtod(text, &end);
	if (end != text && !*end && value >= least && value <= FUNCTION_TOP_MOST_SECONDS)
		*number = value;
	else if (asprintf(&top->message, "this takes a number of seconds from %g on", least) < 0)
		top->message = NULL;
	top->next_table = min_t(u64, top->next_table,
				rdclock() + (u64)(options->delay * NSEC_PER_SEC));
	top->next_word = min(top->next_word, top->next_table);
}

static void ask(struct function_top *top, char key)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (commands[i].key == key && commands[i].asks)
			top->prompt = (struct prompt){ .key = key, .text = commands[i].text };
	}
}

/* Handles a character of the answer to a prompt. */
static void take_character(struct function_top *top, char c)
{
	struct prompt *prompt = &top->prompt;
	size_t length = strlen(prompt->line);

	if (c == '\n' || c == '\r') {
		if (length)
			choose(top, prompt->key, prompt->line);
		prompt->key = 0;
	} else if (c == KEY_ESCAPE) {
		prompt->key = 0;
	} else if (c == '\b' || c == KEY_DELETE) {
		prompt->line[max_t(size_t, length, 1) - 1] = '\0';
	} else if (c >= ' ' && length + 1 < sizeof(prompt->line)) {
		prompt->line[length] = c;
		prompt->line[length + 1] = '\0';
	}
}

static void take_key(struct function_top *top, char key)
{
	bool had_help = top->has_help;

	zfree(&top->message);
	if (top->prompt.key) {
		take_character(top, key);
		return;
	}
	top->has_help = !had_help && (key == 'h' || key == '?');
	switch (key) {
	case 'q':
	case 'Q':
		stop(top);
		break;
	case 'z':
		forget(top);
		top->is_zeroed = true;
		top->next_table = min_t(u64, top->next_table, rdclock());
		break;
	default:
		if (!had_help)
			ask(top, key);
		break;
	}
}

static void read_keys(struct function_top *top, short events)
{
	char keys[LINE_SIZE];
	ssize_t size = read(top->keys, keys, sizeof(keys));

	/* A shell may have read what was typed while this was stopped. */
	if (size ? size < 0 && (errno == EINTR || errno == EAGAIN) : !(events & POLLHUP))
		return;
	/* The terminal is gone. */
	if (size <= 0) {
		top->keys = -1;
		if (!top->is_stopping)
			stop(top);
		return;
	}
	/* One key, such as an arrow, may be a sequence. */
	if (size > 1 && keys[0] == KEY_ESCAPE)
		size = 0;
	for (ssize_t i = 0; i < size; i++)
		take_key(top, keys[i]);
	show(top);
}

static void read_signal(struct function_top *top)
{
	struct signalfd_siginfo info;

	if (read(top->signals, &info, sizeof(info)) != sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGWINCH:
		if (top->has_screen)
			show(top);
		break;
	case SIGTSTP:
		restore_terminal();
		raise(SIGSTOP);
		break;
	case SIGCONT:
		/* Whatever has stopped it, a shell may have changed the terminal. */
		if (top->has_screen) {
			set_terminal(top);
			show(top);
		}
		break;
	default:
		stop_and_show(top);
		break;
	}
}

/* Let perf record write what it has. */
static void send_word(struct function_top *top, u64 now)
{
	/* If the pipe is full it has enough to read. */
	if (write(top->control, WORD, strlen(WORD)) < 0)
		pr_debug("no word to perf record: %m\n");
	top->next_word = now + top->options.delay * NSEC_PER_SEC / WORDS;
}

/* Sends a word or prints a table if it is time. Returns the time of the next one. */
static u64 make_tables(struct function_top *top, u64 now)
{
	const u64 delay = top->options.delay * NSEC_PER_SEC;
	bool is_handed;

	if (now >= top->next_word)
		send_word(top, now);
	if (!top->is_asked && now >= top->next_table) {
		mutex_lock(&top->mutex);
		top->is_due = true;
		top->is_handed = false;
		mutex_unlock(&top->mutex);
		top->is_asked = true;
		send_word(top, now);
	}
	mutex_lock(&top->mutex);
	is_handed = top->is_handed;
	mutex_unlock(&top->mutex);
	/* While nothing runs, perf record has nothing to write, so do not wait for it. */
	if (top->is_asked && (is_handed || now >= top->next_table + delay / WORDS)) {
		top->is_asked = false;
		top->next_table = max(top->next_table + delay, now + delay / WORDS);
		top->err = take_up(top);
		if (top->err)
			stop(top);
		show(top);
		top->nr_tables += top->has_news;
		if (top->nr_tables && top->nr_tables == top->options.count && !top->is_stopping) {
			top->is_counted = true;
			stop_and_show(top);
		}
	}
	return min(top->next_word, top->is_asked ? top->next_table + delay / WORDS :
						   top->next_table);
}

/* Does what is due. Returns the milliseconds until the next thing is, or -1. */
static int keep_time(struct function_top *top)
{
	const u64 now = rdclock();
	u64 next = top->is_stopping ? 0 : make_tables(top, now);
	int left = time_to_end(top);

	if (!left)
		end_child(top, SIGKILL);
	if (top->is_stopping)
		return left ?: -1;
	return milliseconds_to(next, now);
}

static void *show_tables(void *data)
{
	struct function_top *top = data;
	bool has_ended = false, is_unreadable;
	u64 number;

	top->next_word = rdclock();
	top->next_table = top->next_word + top->options.delay * NSEC_PER_SEC;
	if (top->has_screen)
		show(top);
	while (!has_ended) {
		struct pollfd fds[] = {
			{ .fd = top->event, .events = POLLIN },
			{ .fd = top->signals, .events = POLLIN },
			{ .fd = top->keys, .events = POLLIN },
		};

		if (poll(fds, ARRAY_SIZE(fds), keep_time(top)) <= 0)
			continue;
		if (fds[0].revents && read(top->event, &number, sizeof(number)) > 0) {
			mutex_lock(&top->mutex);
			has_ended = top->has_ended;
			is_unreadable = top->is_unreadable;
			mutex_unlock(&top->mutex);
			/* Nobody reads what perf record writes. */
			if (is_unreadable && !top->is_stopping)
				stop_and_show(top);
		}
		/* First the keys: after a signal that stops this process, a shell may read them. */
		if (fds[2].revents)
			read_keys(top, fds[2].revents);
		if (fds[1].revents)
			read_signal(top);
	}
	return NULL;
}

/* Prints the messages of perf record, except how much it has written. */
static void print_said(struct function_top *top)
{
	size_t size = 0;
	char *line = NULL;

	rewind(top->said);
	while (getline(&line, &size, top->said) >= 0) {
		if (!strstarts(line, "[ perf record: "))
			fputs(line, stderr);
	}
	free(line);
}

/* Prints the last table, which stays on the screen. */
static int finish(struct function_top *top)
{
	int err = take_up(top);
	struct winsize size;
	char *text;

	if (err || top->err || (top->is_counted && !top->has_screen))
		return err ?: top->err;
	if (!top->has_screen)
		return print(top);
	if (!function_table__has_window(&top->total))
		return 0;
	get_term_dimensions(&size);
	text = make_text(top, &size);
	fputs(text ?: "", stdout);
	free(text);
	return text ? 0 : top->err ?: -ENOMEM;
}

/* Returns the exit status of perf record, which is that of the command that it ran. */
static int wait_for_child(struct function_top *top)
{
	int status;

	while (waitpid(top->child, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	top->child = 0;		/* its number may be that of another process soon */
	if (top->is_stopping)
		return 0;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	pr_err("perf functions: top has ended, because perf record was killed: %s: start it again\n",
	       strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

static int start_child(struct function_top *top, const int control[2], const sigset_t *mask)
{
	int data[2];

	if (pipe2(data, O_CLOEXEC))
		return -errno;
	/* With a large pipe, perf record rarely waits for this process. A small one works, too. */
	fcntl(data[1], F_SETPIPE_SZ, PIPE_SIZE);
	fflush(stdout);
	fflush(stderr);
	top->control = control[1];
	top->child = fork();
	if (top->child < 0)
		return -errno;
	if (!top->child) {
		close(data[0]);
		run_child(top, data[1], mask);
	}
	close(data[1]);
	/* perf reads pipes from there only. */
	if (dup2(data[0], STDIN_FILENO) < 0)
		return -errno;
	close(data[0]);
	return 0;
}

static void catch_signals(sigset_t *signals, sigset_t *before)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP,
				   SIGCONT, SIGWINCH };

	sigemptyset(signals);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		sigaddset(signals, all[i]);
	sigprocmask(SIG_BLOCK, signals, before);
}

static int begin(struct function_top *top, const int control[2])
{
	sigset_t signals, before;
	const char *term = getenv("TERM");
	int said;

	top->has_screen = !top->options.stdio && isatty(STDOUT_FILENO) && term &&
			  strcmp(term, "dumb");
	top->keys = top->has_screen && isatty(STDIN_FILENO) ?
		    fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : -1;
	said = memfd_create("perf record", MFD_CLOEXEC);
	top->said = said < 0 ? NULL : fdopen(said, "w+");
	top->notes = open_memstream(&top->noted, &top->noted_size);
	top->event = eventfd(0, EFD_CLOEXEC);
	catch_signals(&signals, &before);
	top->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	fcntl(control[1], F_SETFL, O_NONBLOCK);
	if (!top->said || !top->notes || top->event < 0 || top->signals < 0)
		return -errno;
	return start_child(top, control, &before);
}

/* Returns true if reading failed because perf record has ended by itself. */
static bool has_ended_soon(const struct function_top *top)
{
	const struct timespec while_ending = { .tv_nsec = NSEC_PER_SEC / 100 };

	for (int tries = 0; tries < 100; tries++) {
		siginfo_t info = {};

		if (waitid(P_PID, top->child, &info, WEXITED | WNOHANG | WNOWAIT))
			return true;
		/* SIGPIPE ends perf record if it writes after this process has closed the pipe. */
		if (info.si_pid)
			return info.si_code != CLD_KILLED || info.si_status != SIGPIPE;
		nanosleep(&while_ending, NULL);
	}
	return false;
}

static void tell(struct function_top *top, bool *what)
{
	mutex_lock(&top->mutex);
	*what = true;
	mutex_unlock(&top->mutex);
	wake(top);
}

static void cannot_start(int err)
{
	pr_err("perf functions: cannot start: %s: `ulimit -a` shows the limits\n", strerror(-err));
}

static int read_all(struct function_top *top)
{
	siginfo_t info;
	pthread_t thread;
	int err;

	if (top->has_screen) {
		terminal.pid = getpid();
		atexit(restore_terminal);
		signal(SIGSEGV, restore_and_die);
		signal(SIGBUS, restore_and_die);
		signal(SIGABRT, restore_and_die);
		set_terminal(top);
	}
	err = -pthread_create(&thread, NULL, show_tables, top);
	if (err) {
		restore_terminal();
		cannot_start(err);
		top->err = err;
		/* perf record would wait for a reader. */
		close(STDIN_FILENO);
		stop(top);
		return err;
	}
	debug_set_file(top->notes);
	/* This closes stdin. A file that the other thread opens may then have its number. */
	err = top->options.read(top->options.data, top);
	if (err && !has_ended_soon(top))
		tell(top, &top->is_unreadable);
	/* The other thread ends perf record. */
	while (waitid(P_PID, top->child, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	tell(top, &top->has_ended);
	pthread_join(thread, NULL);
	restore_terminal();
	debug_set_file(stderr);
	return err;
}

/**
 * function_top__run - print tables of what runs
 * @options: the user's and the command's choice
 * @control: pipe of which perf record has the end that is read
 *
 * Return: 0, the exit status of the command that perf record has run or its own, or -1.
 */
int function_top__run(const struct function_top_options *options, const int control[2])
{
	struct function_top top = { .options = *options, .keys = -1 };
	int err, read_err = 0, status = 0;

	INIT_LIST_HEAD(&top.slices);
	mutex_init(&top.mutex);
	err = begin(&top, control);
	if (err) {
		cannot_start(err);
		return -1;
	}
	read_err = read_all(&top);
	status = wait_for_child(&top);
	err = finish(&top);
	print_said(&top);
	fclose(top.notes);
	/* A recording that the user has ended may be cut. */
	if (top.is_stopping && !top.is_unreadable && !top.is_unable)
		read_err = 0;
	/* If perf record has failed, it has said why. */
	if (err || (read_err && !status))
		fputs(top.noted, stderr);
	if (!err && !status)
		err = read_err;
	options->note(options->data, &top.total);

	forget(&top);
	slice__delete(top.handed);
	mutex_destroy(&top.mutex);
	fclose(top.said);
	free(top.noted);
	free(top.message);
	/* Until here it has a reader: to write to it is no error if perf record has ended. */
	close(control[0]);
	close(control[1]);
	close(top.event);
	close(top.signals);
	return err ? -1 : status;
}
