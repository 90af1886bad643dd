// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of what runs now: perf record writes to a pipe, and this process reads it.
 *
 * - perf record writes when a buffer is half full, or when a word comes through its control pipe:
 *   this process sends it one for each part of the time from one table to the next.
 * - The main thread reads. After a round of perf record it leaves the sums of what has come since
 *   the round before, as a slice of time, if these are not too recent.
 * - The other thread adds up the slices that a table covers, prints, and waits for keys and
 *   signals. It does not touch the session that is being read.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
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

#include "../debug.h"
#include "../mutex.h"
#include "../term.h"
#include "../time-utils.h"
#include "functions.h"

/* This word goes through perf record's control pipe. It need not answer. */
#define WORD		"ping\n"
#define PARTS		4	/* from one table to the next */
/* The newest slice grows until it covers one of this number of parts of the time of a table. */
#define MOST_SLICES	16
#define LINE_SIZE	64
/* Size of the pipe from perf record in bytes: the most that each user may have, see pipe(7). */
#define PIPE_SIZE	1048576
/* If perf record and its command have not ended after this time, they are killed. */
#define MOST_TO_END	(10 * NSEC_PER_SEC)
/* timeout(1) sends its signal twice. Within this time, the second one does not count. */
#define SAME_STOP	(NSEC_PER_SEC / 2)

/* Without the cursor, and lines end at the margin. */
#define ENTER_SCREEN	"\033[?1049h\033[?25l\033[?7l"
#define LEAVE_SCREEN	"\033[?7h\033[?25h\033[?1049l"
#define HOME		"\033[H"
#define ERASE_LINE	"\033[K"
#define ERASE_BELOW	"\033[J"
#define REVERSE		"\033[7m"
#define NORMAL		"\033[m"
#define KEY_ESCAPE	0x1b
#define KEY_DELETE	0x7f

/* The keys and their actions. */
static const struct command {
	char key;
	bool asks;	/* for an answer to this */
	const char *text;
	double least, most;	/* of a number; 0, 0: it is none */
} commands[] = {
	{ 'd', true, "seconds from one table to the next", FN_TOP_LEAST_DELAY,
	  FN_TOP_MOST_SECONDS },
	{ 'l', true, "seconds that a table covers (0: all since the start or since z)", 0,
	  FN_TOP_MOST_SECONDS },
	{ 'z', false, "forget what was counted so far", 0, 0 },
	{ 's', true, "column to sort by", 0, 0 },
	{ 'e', true, "number of rows (0: all that fit)", 0, FN_TOP_MOST_ROWS },
	{ 'f', true, "least share of a function, in percent", 0, 100 },
	{ 'h', false, "these keys", 0, 0 },
	{ 'q', false, "quit (or Q)", 0, 0 },
};

struct slice {
	struct list_head node;
	struct fn_table table;
	u64 begin, end;
};

struct fn_top {
	struct fn_report *report;
	pid_t child;		/* perf record */
	int control;		/* its control pipe */
	int event;		/* all has ended */
	int signals;
	int keys;		/* the keyboard, -1: none */
	bool has_screen;
	FILE *said;		/* by perf record */
	const char *filter;	/* the option that chooses samples, NULL: none */

	/* Between the two threads; delay and last of the report, too. */
	struct mutex mutex;
	struct list_head slices;
	u64 taken;		/* when the last sums were */
	bool is_zeroed;		/* what comes next is older */
	bool has_news;		/* since the table before */
	bool is_unreadable;	/* what perf record writes */

	struct fn_table total;
	u64 begin, end;
	unsigned int nr_tables;
	u64 next_table, next_word;
	u64 stopped;		/* when it was first to end, 0: not yet */
	bool is_finished;	/* nothing more is to be printed */
	bool has_told;		/* that nothing was chosen */
	bool has_help;
	int err;
	const struct command *asking;	/* at the bottom of the screen */
	char answer[LINE_SIZE], sort[LINE_SIZE], message[2 * LINE_SIZE];
	/* What is being written where there is no screen. */
	char *text, *rest;
};

/* For a process that ends in the middle of it. */
static struct {
	int fd;
	pid_t pid;
	bool is_changed, has_screen;
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

static void set_terminal(const struct fn_top *top)
{
	struct termios silent;

	if (top->keys >= 0 && !tcgetattr(top->keys, &silent)) {
		if (!terminal.is_changed)
			terminal.before = silent;
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
 * Slices: the main thread adds them, the other one adds them up.
 */

static bool is_due(void *data)
{
	struct fn_top *top = data;
	bool has_come;

	mutex_lock(&top->mutex);
	/* The word that has made this round may be early. */
	has_come = rdclock() - top->taken >= top->report->delay * NSEC_PER_SEC / (2 * PARTS);
	mutex_unlock(&top->mutex);
	return has_come;
}

static int add_table(struct fn_table *table, const struct fn_table *part)
{
	const char *reason = fn_table__add(table, part);

	if (reason)
		fn_err("top cannot go on: %s: start it again, with a shorter --last", reason);
	return reason ? -EINVAL : 0;
}

static void drop_slice(struct slice *slice)
{
	list_del(&slice->node);
	fn_table__exit(&slice->table);
	free(slice);
}

static void forget(struct fn_top *top)
{
	struct slice *slice, *next;

	list_for_each_entry_safe(slice, next, &top->slices, node)
		drop_slice(slice);
	fn_table__exit(&top->total);
}

/* Keeps a part, and drops slices that are too old. */
static int add_slice(struct fn_top *top, struct fn_table *part, u64 begin, u64 end)
{
	const u64 last = top->report->last * NSEC_PER_SEC;
	struct slice *newest = NULL, *slice, *next;

	if (!list_empty(&top->slices))
		newest = list_last_entry(&top->slices, struct slice, node);
	if (newest && (!last || newest->end - newest->begin < last / MOST_SLICES)) {
		newest->end = end;
		return add_table(&newest->table, part) ?: fn_table__settle(&newest->table);
	}
	newest = malloc(sizeof(*newest));
	if (!newest)
		return -ENOMEM;
	newest->table = *part;
	newest->begin = begin;
	newest->end = end;
	*part = (struct fn_table){};
	list_add_tail(&newest->node, &top->slices);
	list_for_each_entry_safe(slice, next, &top->slices, node) {
		/* A slice is in the table with its greater part. */
		u64 middle = slice->begin + (slice->end - slice->begin) / 2;

		if (!last || slice == newest || end - middle <= last)
			break;
		drop_slice(slice);
	}
	return 0;
}

static int take(void *data, struct fn_table *table, u64 begin, u64 end)
{
	struct fn_top *top = data;
	int err = 0;

	mutex_lock(&top->mutex);
	top->taken = rdclock();
	if (!top->is_zeroed) {
		top->has_news |= !fn_table__is_empty(table);
		err = add_slice(top, table, begin, end);
		top->is_unreadable |= err;
	}
	top->is_zeroed = false;
	mutex_unlock(&top->mutex);
	return err;
}

/* Makes the table of all slices. Sets @has_news if there is something new since the last time. */
static int add_up(struct fn_top *top, bool *has_news)
{
	struct slice *slice;
	int err = 0;

	fn_table__exit(&top->total);
	mutex_lock(&top->mutex);
	*has_news = top->has_news;
	top->has_news = false;
	if (!list_empty(&top->slices))
		top->begin = list_first_entry(&top->slices, struct slice, node)->begin;
	list_for_each_entry(slice, &top->slices, node) {
		top->end = slice->end;
		err = err ?: add_table(&top->total, &slice->table);
	}
	mutex_unlock(&top->mutex);
	/* A part that lacks a source only has no sample of it. */
	top->total.is_partial = 0;
	return err ?: fn_table__settle(&top->total);
}

/*
 * The screen
 */

/* Returns true if there are samples, but none that the user has chosen. */
static bool lacks_chosen(const struct fn_top *top)
{
	return top->filter && top->end && fn_table__is_empty(&top->total);
}

/* Prints the line above the table. */
static void print_status(const struct fn_top *top)
{
	const struct fn_table *table = &top->total;
	const struct fn_source *source = &fn_samples;
	double nr = fn_table__number(table, NULL, source);

	for (int i = 0; !nr && fn_sources[i]; i++) {
		source = fn_sources[i];
		nr = fn_table__number(table, NULL, source);
	}
	printf(REVERSE "perf functions top: ");
	if (lacks_chosen(top))
		printf("no sample matches --%s yet", top->filter);
	else if (!top->end)
		printf("no samples yet");
	else
		printf("%.1f s, %.0f %s", (top->end - top->begin) / (double)NSEC_PER_SEC, nr,
		       source->title);
	if (nr && top->filter)
		printf(" by --%s", top->filter);
	if (table->lost)
		printf(", %llu records lost", (unsigned long long)table->lost);
	if (table->throttled)
		printf(", throttled %llu times", (unsigned long long)table->throttled);
	if (top->stopped)
		printf("  ending");
	if (top->keys >= 0)
		printf(top->stopped ? "  q: at once" : "  h: help  q: quit");
	printf(NORMAL "\n");
}

/* Prints the table to a memory of its own. Returns NULL after an error. */
static char *make_text(struct fn_top *top, const struct winsize *size)
{
	struct fn_report *report = top->report;
	char *text = NULL;
	size_t length;

	report->width = size ? size->ws_col : 0;
	report->nr_lines = size ? max(size->ws_row - 3, 1) : 0;
	report->fp = open_memstream(&text, &length);
	if (!report->fp) {
		top->err = -ENOMEM;
		return NULL;
	}
	top->err = report->width ? fn_report__print(report, &top->total) :
		   fn_report__print_span(report, &top->total, top->begin, top->end);
	fclose(report->fp);
	if (top->err)
		zfree(&text);
	return text;
}

/* Draws the screen: the status, then the help or the table, and a question. */
static void draw(struct fn_top *top)
{
	char *table = NULL, *line;
	struct winsize size;

	get_term_dimensions(&size);
	if (!top->has_help && !fn_table__is_empty(&top->total)) {
		table = make_text(top, &size);
		if (!table)
			return;
	}
	printf(HOME ERASE_LINE);
	print_status(top);
	for (size_t i = 0; top->has_help && i < ARRAY_SIZE(commands); i++)
		printf(ERASE_LINE "%c  %s\n", commands[i].key, commands[i].text);
	line = table;
	for (int i = 1; line && *line && i < size.ws_row - 1; i++) {
		const size_t length = strcspn(line, "\n");

		printf(ERASE_LINE "%.*s\n", (int)length, line);
		line += length + !!line[length];
	}
	printf(ERASE_BELOW);
	if (top->asking || *top->message)
		printf("\033[%u;1H" ERASE_LINE, size.ws_row);
	if (top->asking)
		printf("%s: %s_", top->asking->text, top->answer);
	else
		printf("%s", top->message);
	fflush(stdout);
	free(table);
}

/* Prepares a table where there is no screen, unless it is the same as before. */
static void print(struct fn_top *top, bool has_news)
{
	if (lacks_chosen(top) && !top->has_told) {
		fprintf(stderr,
			"perf functions: no sample matches --%s yet: leave it out to see all rows\n",
			top->filter);
		top->has_told = true;
	}
	if (!has_news || top->err)
		return;
	top->text = make_text(top, NULL);
	top->rest = top->text;
}

static void cannot_write(struct fn_top *top, int err)
{
	fn_err("cannot write the table: %s: send the output elsewhere", strerror(err));
	top->err = -err;
	zfree(&top->text);
}

/* Writes a part that a pipe takes at once, so that signals are seen even if nobody reads. */
static void write_part(struct fn_top *top)
{
	size_t left = strlen(top->rest);
	ssize_t written = write(STDOUT_FILENO, top->rest, min_t(size_t, left, PIPE_BUF));

	if (written < 0 && errno != EINTR)
		cannot_write(top, errno);
	if (written <= 0)
		return;
	top->rest += written;
	if ((size_t)written == left)
		zfree(&top->text);
}

static void end_child(const struct fn_top *top, int sig)
{
	/* It may have ended already. */
	if (top->child > 0)
		kill(top->child, sig);
}

/* Ends perf record, which ends its command. If that takes too long, both are killed. */
static void stop(struct fn_top *top)
{
	const u64 now = rdclock();

	if (!top->stopped) {
		top->stopped = now;
		end_child(top, SIGINT);
	} else if (now - top->stopped >= SAME_STOP) {
		end_child(top, SIGKILL);
	}
}

/* Draws the screen. After an error, top ends. */
static void show(struct fn_top *top)
{
	if (top->has_screen && !top->err && !top->is_finished)
		draw(top);
	if (top->err && !top->stopped)
		stop(top);
}

/*
 * Keys and signals
 */

static bool has_column(const struct fn_top *top, const char *name)
{
	struct fn_report report = *top->report;
	struct fn_columns columns;
	bool found;

	report.sort = name;
	found = !fn_report__init_columns(&report, &top->total, &columns, /*is_silent=*/true) &&
		(fn_fields__is_key(&columns, name, strlen(name)) ||
		 fn_columns__find(&columns, name) >= 0);
	fn_columns__exit(&columns);
	return found;
}

static void choose_column(struct fn_top *top)
{
	if (!top->total.nr_rows) {
		scnprintf(top->message, sizeof(top->message),
			  "no columns yet: try again when the table has rows");
	} else if (!has_column(top, top->answer)) {
		scnprintf(top->message, sizeof(top->message),
			  "there is no column %s: type the title of one", top->answer);
	} else {
		scnprintf(top->sort, sizeof(top->sort), "%s", top->answer);
		top->report->sort = top->sort;
	}
}

/* Applies a number; sets a message if it is out of range. */
static void choose_number(struct fn_top *top, const struct command *command)
{
	struct fn_report *report = top->report;
	double value;
	char *end;

	value = strtod(top->answer, &end);
	if (*end || !(value >= command->least && value <= command->most)) {
		scnprintf(top->message, sizeof(top->message), "this takes a number from %g to %g",
			  command->least, command->most);
		return;
	}
	mutex_lock(&top->mutex);
	if (command->key == 'd')
		report->delay = value;
	else if (command->key == 'l')
		report->last = value;
	else if (command->key == 'e')
		report->limit = value;
	else
		report->percent_limit = value;
	mutex_unlock(&top->mutex);
	top->next_table = min_t(u64, top->next_table,
				rdclock() + (u64)(report->delay * NSEC_PER_SEC));
	top->next_word = min(top->next_word, top->next_table);
}

/* Handles a character of an answer. */
static void take_character(struct fn_top *top, char c)
{
	const struct command *command = top->asking;
	size_t length = strlen(top->answer);

	if (c == '\n' || c == '\r') {
		top->asking = NULL;
		if (length && command->most)
			choose_number(top, command);
		else if (length)
			choose_column(top);
	} else if (c == KEY_ESCAPE) {
		top->asking = NULL;
	} else if (c == '\b' || c == KEY_DELETE) {
		top->answer[max_t(size_t, length, 1) - 1] = '\0';
	} else if (c >= ' ' && length + 1 < sizeof(top->answer)) {
		top->answer[length] = c;
		top->answer[length + 1] = '\0';
	}
}

static void zero(struct fn_top *top)
{
	mutex_lock(&top->mutex);
	forget(top);
	top->end = 0;
	top->is_zeroed = true;
	top->taken = 0;
	mutex_unlock(&top->mutex);
	top->next_word = 0;
}

static void take_key(struct fn_top *top, char key)
{
	bool had_help = top->has_help;

	top->message[0] = '\0';
	if (top->asking) {
		take_character(top, key);
		return;
	}
	top->has_help = !had_help && (key == 'h' || key == '?');
	if (key == 'q' || key == 'Q')
		stop(top);
	else if (key == 'z')
		zero(top);
	for (size_t i = 0; !had_help && i < ARRAY_SIZE(commands); i++) {
		if (commands[i].key == key && commands[i].asks) {
			top->asking = &commands[i];
			top->answer[0] = '\0';
		}
	}
}

static void read_keys(struct fn_top *top, short events)
{
	char keys[LINE_SIZE];
	ssize_t size = read(top->keys, keys, sizeof(keys));

	/* A shell may have read what was typed while this was stopped. */
	if (size <= 0 && !(events & POLLHUP) && (!size || errno != EIO))
		return;
	if (size <= 0) {
		/* The terminal is gone. */
		top->keys = -1;
		if (!top->stopped)
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

static void read_signal(struct fn_top *top)
{
	struct signalfd_siginfo info;

	if (read(top->signals, &info, sizeof(info)) != sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGWINCH:
		show(top);
		break;
	case SIGTSTP:
		restore_terminal();
		raise(SIGSTOP);
		break;
	case SIGCONT:
		/* Whatever has stopped it, a shell may have changed the terminal. */
		if (top->has_screen && !top->is_finished)
			set_terminal(top);
		show(top);
		break;
	default:
		stop(top);
		show(top);
		break;
	}
}

/*
 * Time
 */

/* Lets perf record write what it has. */
static void send_word(struct fn_top *top, u64 now)
{
	/* If the pipe is full it has enough to read. */
	if (write(top->control, WORD, strlen(WORD)) < 0)
		pr_debug("no word to perf record: %m\n");
	top->next_word = now + top->report->delay * NSEC_PER_SEC / PARTS;
}

static void make_table(struct fn_top *top, u64 now)
{
	const u64 delay = top->report->delay * NSEC_PER_SEC;
	bool has_news;

	top->next_table = max(top->next_table + delay, now + delay / PARTS);
	top->err = add_up(top, &has_news);
	if (!top->has_screen)
		print(top, has_news);
	show(top);
	top->nr_tables += has_news;
	if (top->nr_tables && top->nr_tables == top->report->count && !top->stopped) {
		top->is_finished = !top->has_screen;
		stop(top);
		show(top);
	}
}

/* Makes the last table, which stays on the screen. */
static void finish(struct fn_top *top)
{
	struct winsize size;
	bool has_news;
	char *text;

	if (top->is_finished || top->err)
		return;
	top->is_finished = true;
	top->err = add_up(top, &has_news);
	if (top->err)
		return;
	if (!top->has_screen) {
		/* Writing has as much time as the end before. */
		if (top->stopped)
			top->stopped = rdclock();
		print(top, has_news);
		return;
	}
	restore_terminal();
	if (fn_table__is_empty(&top->total))
		return;
	get_term_dimensions(&size);
	text = make_text(top, &size);
	fputs(text ?: "", stdout);
	fflush(stdout);
	free(text);
}

static int milliseconds_to(u64 time, u64 now)
{
	return time > now ? (int)((time - now) / NSEC_PER_MSEC) + 1 : 0;
}

/* Does what is due. Returns the milliseconds until the next thing is, or -1. */
static int keep_time(struct fn_top *top)
{
	const u64 now = rdclock(), end = top->stopped + MOST_TO_END;

	if (top->stopped && now < end)
		return milliseconds_to(end, now);
	if (top->stopped) {
		end_child(top, SIGKILL);
		if (!top->text)
			return -1;
		cannot_write(top, ETIMEDOUT);
		return 0;
	}
	if (now >= top->next_word)
		send_word(top, now);
	if (top->text)
		return milliseconds_to(top->next_word, now);
	if (now >= top->next_table)
		make_table(top, now);
	return milliseconds_to(min(top->next_word, top->next_table), now);
}

static void *show_tables(void *data)
{
	struct fn_top *top = data;
	bool has_ended = false;
	u64 number;

	top->next_word = rdclock();
	top->next_table = top->next_word + top->report->delay * NSEC_PER_SEC;
	show(top);
	while (!has_ended || top->text) {
		struct pollfd fds[] = {
			{ .fd = top->event, .events = POLLIN },
			{ .fd = top->signals, .events = POLLIN },
			{ .fd = top->keys, .events = POLLIN },
			{ .fd = STDOUT_FILENO, .events = POLLOUT },
		};
		int timeout = keep_time(top);

		if (!top->text)
			fds[3].fd = -1;
		if (poll(fds, ARRAY_SIZE(fds), timeout) <= 0)
			continue;
		if (fds[3].revents)
			write_part(top);
		has_ended |= fds[0].revents && read(top->event, &number, sizeof(number)) > 0;
		/* First the keys: after a signal that stops this process, a shell may read them. */
		if (fds[2].revents)
			read_keys(top, fds[2].revents);
		if (fds[1].revents)
			read_signal(top);
		if (has_ended && !top->text)
			finish(top);
	}
	return NULL;
}

/*
 * perf record
 */

static int start_child(struct fn_top *top, const int control[2], const sigset_t *mask)
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
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		sigprocmask(SIG_SETMASK, mask, NULL);
		close(top->control);
		if (dup2(data[1], STDOUT_FILENO) < 0)
			exit(EXIT_FAILURE);
		close(data[0]);
		close(data[1]);
		exit(top->report->call_record(top->report, fileno(top->said), top->has_screen));
	}
	close(data[1]);
	/* perf reads pipes from there only. */
	if (dup2(data[0], STDIN_FILENO) < 0)
		return -errno;
	close(data[0]);
	return 0;
}

/* Prints the messages of perf record, except how much it has written. */
static void print_said(struct fn_top *top)
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

/* Returns the exit status of perf record, which is that of the command that it ran. */
static int wait_for_child(struct fn_top *top)
{
	int status;

	while (waitpid(top->child, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	top->child = 0;		/* its number may be that of another process soon */
	if (top->stopped || top->is_unreadable)
		return 0;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fn_err("top has ended, because perf record was killed: %s: start it again",
	       strsignal(WTERMSIG(status)));
	return 128 + WTERMSIG(status);
}

/* Returns true if perf record ends within a second, unless it cannot write any more. */
static bool has_failed(const struct fn_top *top)
{
	siginfo_t info = {};

	for (int tries = 0; tries < 100 && !info.si_pid; tries++) {
		if (waitid(P_PID, top->child, &info, WEXITED | WNOHANG | WNOWAIT))
			return true;
		if (!info.si_pid)
			usleep(USEC_PER_SEC / 100);
	}
	return info.si_pid && (info.si_code != CLD_KILLED || info.si_status != SIGPIPE);
}

/*
 * All together
 */

static void catch_signals(sigset_t *signals, sigset_t *before)
{
	static const int all[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };

	sigemptyset(signals);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		sigaddset(signals, all[i]);
	sigprocmask(SIG_BLOCK, signals, before);
}

static int begin(struct fn_top *top, const int control[2])
{
	const struct fn_report *report = top->report;
	const char *term = getenv("TERM");
	sigset_t signals, before;
	int said;

	top->has_screen = !report->stdio && !report->json && !report->separator &&
			  isatty(STDOUT_FILENO) && term && strcmp(term, "dumb");
	if (top->has_screen && isatty(STDIN_FILENO))
		top->keys = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	said = memfd_create("perf record", MFD_CLOEXEC);
	top->said = said < 0 ? NULL : fdopen(said, "w+");
	top->event = eventfd(0, EFD_CLOEXEC);
	catch_signals(&signals, &before);
	top->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	fcntl(control[1], F_SETFL, O_NONBLOCK);
	if (!top->said || top->event < 0 || top->signals < 0)
		return -errno;
	return start_child(top, control, &before);
}

static void cannot_start(int err)
{
	fn_err("cannot start: %s: `ulimit -a` shows the limits", strerror(-err));
}

/* Reads what is recorded from stdin. */
static int read_samples(struct fn_top *top)
{
	struct fn_options options = top->report->options;
	struct fn_table table = {};
	int err;

	options.is_due = is_due;
	options.take = take;
	options.data = top;
	err = fn_session__read("-", &options, &table);
	fn_table__exit(&table);
	return err;
}

static int read_all(struct fn_top *top)
{
	static char screen[65536];
	const u64 one = 1;
	siginfo_t info;
	pthread_t thread;
	int err;

	if (top->has_screen) {
		terminal.pid = getpid();
		atexit(restore_terminal);
		signal(SIGSEGV, restore_and_die);
		signal(SIGBUS, restore_and_die);
		signal(SIGABRT, restore_and_die);
		/* A screen is drawn at once. */
		setvbuf(stdout, screen, _IOFBF, sizeof(screen));
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
	fn_report__hold_messages(top->report);
	/* This closes stdin. A file that the other thread opens may then have its number. */
	err = read_samples(top);
	/* Nobody reads what perf record writes. */
	top->is_unreadable |= err && !has_failed(top);
	if (top->is_unreadable)
		end_child(top, SIGINT);
	while (waitid(P_PID, top->child, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	if (write(top->event, &one, sizeof(one)) < 0)
		pr_debug("no end: %m\n");
	pthread_join(thread, NULL);
	restore_terminal();
	fn_report__release_messages(top->report);
	return err;
}

int fn_top__run(struct fn_report *report, const int control[2])
{
	struct fn_top top = {
		.report = report, .filter = fn_options__filter(&report->options), .keys = -1,
	};
	int err, read_err, status;

	INIT_LIST_HEAD(&top.slices);
	mutex_init(&top.mutex);
	err = begin(&top, control);
	if (err) {
		cannot_start(err);
		return -1;
	}
	read_err = read_all(&top);
	status = wait_for_child(&top);
	err = top.err;
	print_said(&top);
	/* A recording that the user has ended may be cut. */
	if (top.stopped && !top.is_unreadable)
		read_err = 0;
	/* If perf record has failed, it has said why. */
	if (err || (read_err && !status))
		fputs(report->messages ?: "", stderr);
	if (!err && !status)
		err = read_err;
	fn_notes__print_all(&top.total, &report->options);

	forget(&top);
	mutex_destroy(&top.mutex);
	fclose(top.said);
	/* Until here it has a reader: to write to it is no error if perf record has ended. */
	close(control[0]);
	close(control[1]);
	close(top.event);
	close(top.signals);
	return err ? -1 : status;
}
