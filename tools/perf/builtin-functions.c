// SPDX-License-Identifier: GPL-2.0
/*
 * builtin-functions.c - metrics of functions from the counts of groups
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <perf/cpumap.h>
#include <subcmd/pager.h>
#include <subcmd/parse-options.h>

#include "builtin.h"
#include "util/annotate.h"
#include "util/cache.h"
#include "util/cap.h"
#include "util/debug.h"
#include "util/functions/estimate/columns.h"
#include "util/functions/show/diff-print.h"
#include "util/functions/estimate/diff.h"
#include "util/functions/estimate/groups.h"
#include "util/functions/collect/input.h"
#include "util/functions/show/json.h"
#include "util/functions/show/notes.h"
#include "util/functions/show/print.h"
#include "util/functions/show/progress.h"
#include "util/functions/collect/recording.h"
#include "util/functions/collect/sums-file.h"
#include "util/functions/collect/sums.h"
#include "util/functions/record.h"
#include "util/functions/text.h"
#include "util/functions/show/top.h"
#include "util/functions/show/tree-print.h"
#include "util/functions/estimate/tree.h"
#include "util/functions/estimate/vendor-metrics.h"
#include "util/hist.h"
#include "util/record.h"
#include "util/srcline.h"
#include "util/symbol.h"
#include "util/util.h"

#include "ui/browsers/functions.h"
#include "ui/ui.h"

/* Exit status: with --fail-on, a change is beyond a limit. */
#define STATUS_EXCEEDED	2

static const char *const functions_subcommands[] = { "record", "report", "top", NULL };

static const char *const functions_record_usage[] = {
	"perf functions record [-M <metrics>] [<options>] [<perf record options>] [--] <command>",
	"perf functions record [-e <events>] [<options>] [<perf record options>] [--] <command>",
	"",
	"Examples:",
	"perf functions record -- make -j4",
	"perf functions record -a -- sleep 10",
	"perf functions record -e cycles:u,instructions:u,dTLB-load-misses:u -p 1234",
	"perf functions record -M TopdownL1 --kernel -- make -j4",
	NULL
};

static const char *const functions_report_usage[] = {
	"perf functions report [<options>] [<recording or sums file>...]",
	"perf functions report [<options>] --diff <before> <after>",
	"perf functions report [<options>] --before <before>... --after <after>...",
	"",
	"Examples:",
	"perf functions report --sort CPI --percent-limit 1",
	"perf functions report --ci -F '#,CPI,%CY' --dsos libc.so.6",
	"perf functions report --before old*.data --after new*.data --fail-on 'CPI>5%'",
	NULL
};

static const char *const functions_top_usage[] = {
	"perf functions top [<options>] [<perf record options>] [[--] <command>]",
	"",
	"Examples:",
	"perf functions top",
	"perf functions top -p 1234 --last 0",
	"perf functions top --sort CPI --percent-limit 1 -- make -j4",
	"perf functions top -a -j --delay 10 --last 10 > metrics.json",
	NULL
};

/* Options about a file, which perf functions top does not write. */
static const char *const not_of_top[] = {
	"aio", "compression-level", "control", "dry-run", "max-size", "output", "overwrite",
	"quiet", "snapshot", "switch-max-files", "switch-output", "switch-output-event",
	"tail-synthesize", "threads", "timestamp-filename", NULL
};

/* The side to which the following inputs belong. */
enum side { SIDE_NONE, SIDE_BEFORE, SIDE_AFTER, NR_SIDES };

struct inputs {
	const char **paths;
	unsigned int nr;
};

/* Messages that the browser would cover, printed when it ends. */
struct held_messages {
	FILE *fp;
	char *text;
	size_t size;
};

struct report_options {
	struct inputs inputs[NR_SIDES];
	enum side side;
	const char *share_name;
	const char *source_name;
	const char *by_name;
	char by[FUNCTION_BY_SIZE];
	bool children;
	struct recording_options recording;
	const char *cpus;
	const char *fields;
	const char *metrics;
	bool tree;
	bool tree_is_all;
	const char *sort;
	const char *separator;
	const char *sums;
	const char *objdump;
	unsigned int limit;
	double percent_limit;
	bool json;
	bool with_ci;
	struct function_reading_options reading;
	bool header;
	bool diff;
	double interval;
	unsigned int depth;	/* of call chains; UINT_MAX: all of them */
	/* With --interval: the times of the table, and data printed once for all tables. */
	const char *time;
	/* For perf functions top: one of its tables. */
	const struct function_view *view;
	char *titles;
	unsigned int nr_tables;
	const char *fail_on;
	bool single_run;
	struct function_limit *limits;
	unsigned int nr_limits;
	bool stdio;
	bool tui;
	bool wants_tui;		/* not only by perf config */
	struct held_messages messages;
	/* The text of recording.header. */
	char *headers;
	size_t headers_size;
	/* Freed after the table: the last one; with --tui all, in the order of the inputs. */
	struct recording *recordings;
};

static void held_messages__begin(struct held_messages *messages)
{
	messages->fp = open_memstream(&messages->text, &messages->size);
	if (messages->fp)
		debug_set_file(messages->fp);
}

static void held_messages__end(struct held_messages *messages)
{
	if (!messages->fp)
		return;
	debug_set_file(stderr);
	fclose(messages->fp);
	messages->fp = NULL;
	if (messages->text)
		fputs(messages->text, stderr);
}

static void print_no_column(const struct function_columns *columns, const char *by,
			    const char *name, size_t length)
{
	pr_err("perf functions: no column %.*s in this recording, there are: %s", (int)length,
	       name, by);
	for (unsigned int i = 0; i < columns->nr_columns; i++)
		pr_err(" %s", columns->columns[i].name);
	pr_err("\n");
}

/* Returns the column at the beginning of a list of names, -1 if none. A name may have commas. */
static int find_field(const struct function_columns *columns, const char *names, size_t *length)
{
	for (const char *end = names;; end++) {
		int column;

		end = strchrnul(end, ',');
		*length = end - names;
		column = function_columns__find(columns, names, *length);
		if (column >= 0 || !*end)
			return column;
	}
}

/*
 * Returns the numbers of the columns to print, NULL after a message about a wrong name. If
 * @may_lack allows columns to be missing, the others are kept, at least the windows.
 */
static int *find_fields(const struct function_columns *columns, const char *by,
			const char *names, bool may_lack, unsigned int *nr_fields)
{
	const size_t most = names ? strlen(names) + 1 : columns->nr_columns;
	int *fields = calloc(most, sizeof(*fields));
	unsigned int i;
	size_t length;
	bool is_new;

	if (!fields)
		return NULL;
	for (*nr_fields = 0; !names && *nr_fields < most; ++*nr_fields)
		fields[*nr_fields] = *nr_fields;

	while (names) {
		int field = find_field(columns, names, &length);

		if (field < 0 && !may_lack) {
			print_no_column(columns, by, names, strcspn(names, ","));
			free(fields);
			return NULL;
		}
		if (field < 0)
			length = strcspn(names, ",");
		/* Take each column once: an object has no two members of one name. */
		for (is_new = field >= 0, i = 0; i < *nr_fields; i++)
			is_new &= fields[i] != field;
		if (is_new)
			fields[(*nr_fields)++] = field;
		names = names[length] ? names + length + 1 : NULL;
	}
	if (!*nr_fields)
		fields[(*nr_fields)++] = function_columns__find(columns, "#", 1);
	return fields;
}

/* Returns the columns for -M: the windows, and the metrics from column first on. */
static int *metric_fields(const struct function_columns *columns, unsigned int first,
			  unsigned int *nr_fields)
{
	unsigned int nr = columns->nr_columns - first;
	int discarded = function_columns__find(columns, "DIS", 3);
	int *fields = calloc(nr + 2, sizeof(*fields));

	if (!fields)
		return NULL;
	fields[0] = function_columns__find(columns, "#", 1);
	for (unsigned int i = 0; i < nr; i++)
		fields[1 + i] = first + i;
	*nr_fields = 1 + nr;
	/* Event samples have none. */
	if (discarded >= 0)
		fields[(*nr_fields)++] = discarded;
	return fields;
}

/*
 * Returns the number of the column to sort by, -1 for the first, -EINVAL after a message. If
 * @may_lack allows the column to be missing, the usual one replaces it.
 */
static int find_sort(const struct function_columns *columns, const char *by,
		     const char *name, bool may_lack)
{
	int column;

	if (!name)
		return function_columns__default_sort(columns);
	if (!strcasecmp(name, "symbol") || !strcmp(name, by))
		return -1;
	column = function_columns__find(columns, name, strlen(name));
	if (column >= 0)
		return column;
	if (may_lack)
		return function_columns__default_sort(columns);
	print_no_column(columns, by, name, strlen(name));
	return -EINVAL;
}

static int sort_rows(struct function_columns *columns, const char *by, const char *name,
		     bool may_lack)
{
	int column = find_sort(columns, by, name, may_lack);

	if (column >= 0)
		function_columns__sort(columns, column);
	return column < -1 ? column : 0;
}

static const char *annotate_function(void *data, const struct function_sums *sums)
{
	const struct report_options *options = data;

	return recordings__annotate(options->recordings, sums);
}

/* Prints headers with control characters escaped. */
static int print_headers(const struct report_options *options)
{
	char *line, *rest, *printable;

	if (!options->recording.header)
		return 0;
	if (fflush(options->recording.header))
		return -ENOMEM;
	for (rest = options->headers; (line = strsep(&rest, "\n")) != NULL && rest;) {
		printable = function_text__printable(line);
		if (!printable)
			return -ENOMEM;
		printf("%s\n", printable);
		free(printable);
	}
	return 0;
}

static int browse(const struct function_print *print, struct function_columns *columns,
		  struct report_options *options)
{
	int ret;

	annotation_options__init();
	annotation_config__init();
	if (options->objdump)
		annotate_opts.objdump_path = strdup(options->objdump);
	ret = function_print__browse(print, columns, options->messages.text, annotate_function,
				     options);
	annotation_options__exit();
	return ret;
}

static struct function_notes notes_of(const struct report_options *options)
{
	return (struct function_notes){
		.is_corrected = options->reading.is_corrected,
		.wants_lines = recording_options__need_lines(&options->recording),
		.share = strcmp(options->share_name, "auto") ? options->share_name : NULL,
	};
}

static void print_notes(const struct function_table *table, const struct function_columns *columns,
			const struct report_options *options)
{
	const struct function_notes notes = notes_of(options);

	function_notes__print(&notes, table, columns);
}

/* Returns true if a table is one of many. */
static bool functions_is_part(const struct report_options *options)
{
	return options->time || options->view;
}

static int flush_table(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	function_error_of_output(errno);
	return -EIO;
}

/* Says what is too large, if that is the error. */
static int function_explain_size(int err)
{
	if (err == -EOVERFLOW)
		pr_err("perf functions: more events than a table can have columns: record fewer\n");
	else if (err == -ERANGE || err == -E2BIG || err == -ENOMEM)
		pr_err("perf functions: %s: report fewer files at once\n",
		       err == -ERANGE ? "the sums of all functions are too large to add up" :
		       err == -E2BIG ? "too many rows for their columns (--by dso has fewer)" :
		       "not enough memory");
	return err;
}

/* If @is_silent, prints errors only. */
static int add_metrics(struct function_columns *columns, const struct function_table *table,
		       const struct report_options *options, struct function_tree *tree,
		       bool is_silent)
{
	if (!options->metrics)
		return 0;
	return function_exprs__add_columns(columns, table, options->metrics, tree, is_silent);
}

static int make_all_columns(struct function_columns *columns, const struct function_table *table,
			    const struct report_options *options, bool is_silent)
{
	return function_columns__init(columns, table, &options->reading) ?:
	       add_metrics(columns, table, options, NULL, is_silent);
}

static int drop_small(struct function_columns *columns, const struct function_table *table,
		      const struct report_options *options)
{
	function_columns__mark_small(columns, table, options->percent_limit);
	function_columns__drop_small(columns);
	if (columns->nr_rows || !table->nr_sums || functions_is_part(options))
		return 0;
	pr_err("perf functions: no row has a share of %g %%: take a smaller --percent-limit\n",
	       options->percent_limit);
	return -EINVAL;
}

/* Returns true if the columns are those of the previous table, whose titles are kept. */
static bool is_continued(struct report_options *options, const struct function_print *print)
{
	char *titles = NULL, *longer;
	bool is_same;

	for (unsigned int i = 0; i < print->nr_fields; i++) {
		if (asprintf(&longer, "%s\n%s", titles ?: "",
			     print->columns->columns[print->fields[i]].name) < 0)
			break;
		free(titles);
		titles = longer;
	}
	is_same = titles && options->titles && !strcmp(titles, options->titles);
	free(options->titles);
	options->titles = titles;
	return is_same;
}

/* Prints one of the tables of a recording; common headers are printed once. */
static int print_table(struct report_options *options, const struct function_print *print,
		       FILE *fp)
{
	int err = options->nr_tables ? 0 : print_headers(options);

	if (options->nr_tables && !print->width)
		fputc('\n', fp);
	if (err || print->tree)
		return err ?: function_tree__print(print->tree, print, fp);
	return function_print__table(print, fp);
}

static int print_report(struct report_options *options, const struct function_table *table)
{
	struct function_tree tree = {
		.has_parts = options->tree, .opens_all = options->tree_is_all,
	};
	const bool has_tree = options->tree || (options->metrics && options->json);
	struct function_columns columns;
	struct function_print print = {
		.table = table, .columns = &columns, .tree = has_tree ? &tree : NULL,
		.intervals = options->with_ci,
		.time = options->time,
		.width = options->view ? options->view->width : 0,
	};
	FILE *fp = options->view ? options->view->fp : stdout;
	/* A part may have no window of some groups, and then lacks their columns. */
	const bool may_lack = functions_is_part(options) && options->nr_tables;
	int *fields = NULL, err;
	unsigned int first;

	err = function_columns__init(&columns, table, &options->reading);
	first = columns.nr_columns;
	/* The same warnings were printed for the previous table. */
	if (!err)
		err = add_metrics(&columns, table, options, has_tree ? &tree : NULL,
				  options->nr_tables);
	if (!err && options->percent_limit)
		err = drop_small(&columns, table, options);
	if (!err)
		err = sort_rows(&columns, table->by, options->sort, may_lack);
	if (err)
		goto out;

	err = -EINVAL;
	if (options->metrics && !options->fields)
		fields = metric_fields(&columns, first, &print.nr_fields);
	else
		fields = find_fields(&columns, table->by, options->fields, may_lack,
				     &print.nr_fields);
	if (!fields)
		goto out;

	/* There is nothing to browse. */
	options->tui &= columns.nr_rows > 0;
	print.fields = fields;
	print.nr_rows = columns.nr_rows;
	if (options->limit && options->limit < print.nr_rows)
		print.nr_rows = options->limit;
	if (options->view && options->view->nr_rows)
		print.nr_rows = min_t(size_t, options->view->nr_rows, print.nr_rows);

	/* With --interval, the notes about all are printed at the end. */
	if (!functions_is_part(options))
		print_notes(table, &columns, options);
	held_messages__end(&options->messages);
	if (functions_is_part(options))
		print.is_continued = is_continued(options, &print);
	if (options->tui) {
		use_browser = 1;
		setup_browser(true);
	} else if (!options->view) {
		setup_pager();
	}
	err = 0;
	if (use_browser == 1)
		err = browse(&print, &columns, options);
	else if (options->json)
		err = function_print__json(&print, fp);
	else if (options->separator)
		function_print__csv(&print, options->separator, fp);
	else
		err = print_table(options, &print, fp);
	options->nr_tables++;
	if (!err && !options->view)
		err = flush_table();
out:
	free(fields);
	function_tree__exit(&tree);
	function_columns__exit(&columns);
	return function_explain_size(err);
}

/* Formats a span for the option --time. */
static int print_span(struct report_options *options, const struct function_table *table,
		      u64 begin, u64 end)
{
	char time[64];
	int err;

	scnprintf(time, sizeof(time), "%llu.%09llu,%llu.%09llu",
		  (unsigned long long)(begin / NSEC_PER_SEC),
		  (unsigned long long)(begin % NSEC_PER_SEC),
		  (unsigned long long)(end / NSEC_PER_SEC),
		  (unsigned long long)(end % NSEC_PER_SEC));
	options->time = time;
	err = print_report(options, table);
	options->time = NULL;
	return err;
}

/* Print the table of one interval. */
static int print_part(void *data, const struct function_table *table, u64 begin, u64 end)
{
	/* perf ignores SIGPIPE for addr2line, but `| head` must end the command. */
	sighandler_t before = signal(SIGPIPE, SIG_DFL);
	int err = print_span(data, table, begin, end);

	signal(SIGPIPE, before);
	return err;
}

/* Returns true if changes of a column can be significant, else prints a message. */
static bool check_limited(const struct function_diff_print *print, const char *name)
{
	const struct function_columns *all = &print->diff->columns;
	const struct function_columns *before = &print->before->all, *after = &print->after->all;
	const size_t length = strlen(name);
	int column = function_columns__find(all, name, length);
	int old = function_columns__find(before, name, length);
	int new = function_columns__find(after, name, length);

	if (column < 0) {
		print_no_column(all, print->after->table.by, name, length);
		return false;
	}
	if (print->diff->has_other_vendor) {
		pr_err("perf functions: --fail-on %s: the CPU before is %s's and the one after %s's, so a change is not one of the program: compare runs on CPUs of one vendor\n",
		       name, fn_vendor__name(function_table__vendor(&print->before->table)),
		       fn_vendor__name(function_table__vendor(&print->after->table)));
		return false;
	}
	if (old < 0 || new < 0) {
		pr_err("perf functions: --fail-on %s: the runs %s have no value of it: record the same events before and after, for long enough\n",
		       name, old < 0 ? "before" : "after");
		return false;
	}
	if (before->columns[old].source != after->columns[new].source) {
		pr_err("perf functions: --fail-on %s: values before come from %s, those after from %s: record both alike, or choose a --source that both have\n",
		       name, function_source__name(before->columns[old].source),
		       function_source__name(after->columns[new].source));
		return false;
	}
	if (function_column__is_count(&all->columns[column])) {
		pr_err("perf functions: --fail-on %s: a number of windows has no 95 %% interval: take another column\n",
		       name);
		return false;
	}
	return true;
}

/* Reads --fail-on; prints a message if it is wrong. */
static int parse_limits(struct report_options *options)
{
	const char *rest = options->fail_on;

	if (!rest)
		return 0;
	do {
		struct function_limit *limits = realloc(options->limits, (options->nr_limits + 1) *
							sizeof(*limits));
		const char *limit = rest;

		if (!limits)
			return -ENOMEM;
		options->limits = limits;
		rest = function_limit__parse(&limits[options->nr_limits], limit);
		if (!rest) {
			pr_err("perf functions: cannot read --fail-on %s: write COLUMN>NUMBER, or COLUMN<-NUMBER for a decrease, with a %% if it is relative to the value before\n",
			       limit);
			return -EINVAL;
		}
		options->nr_limits++;
	} while (*rest);
	return 0;
}

/* Returns true if the columns of all limits are there, else prints a message. */
static bool check_limits(const struct report_options *options,
			 const struct function_diff_print *print)
{
	for (unsigned int i = 0; i < options->nr_limits; i++) {
		if (!check_limited(print, options->limits[i].column))
			return false;
	}
	if (options->nr_limits && !print->diff->has_several_runs && !options->single_run) {
		pr_err("perf functions: --fail-on: one run of each build cannot tell a change from what runs differ by: record each several times (perf functions record -o new1.data, -o new2.data, ...) for --before old*.data --after new*.data, or insist with --single-run\n");
		return false;
	}
	return true;
}

static int print_changes(const struct report_options *options, struct function_diff *diff,
			 struct function_diff_print *print)
{
	const struct function_notes notes = notes_of(options);
	int column = find_sort(&diff->columns, print->after->table.by, options->sort,
			       /*may_lack=*/false);
	int err;

	if (column < -1)
		return column;
	function_diff__sort(diff, column);
	err = function_diff__move_small(diff);
	if (err < 0)
		return err;
	print->nr_rows = err;
	if (options->limit && options->limit < print->nr_rows)
		print->nr_rows = options->limit;

	function_notes__print_sides(&notes, print->before, print->after, diff);
	err = 0;
	setup_pager();
	if (options->json)
		err = function_diff_print__json(print, stdout);
	else if (options->separator)
		function_diff_print__csv(print, options->separator, stdout);
	else
		err = function_diff_print__table(print, stdout);
	err = err ?: flush_table();
	if (!err)
		err = function_diff_print__exceeded(print, options->limits, options->nr_limits,
						    stderr);
	return err > 0 ? STATUS_EXCEEDED : err;
}

static int print_diff(const struct report_options *options, const struct function_runs *before,
		      const struct function_runs *after)
{
	struct function_diff diff = {};
	struct function_diff_print print = {
		.diff = &diff, .before = before, .after = after, .intervals = options->with_ci,
	};
	const char *by = after->table.by;
	int *fields = NULL, err;

	err = function_diff__init(&diff, before, after, options->single_run);
	if (err)
		goto out;

	err = -EINVAL;
	fields = find_fields(&diff.columns, by, options->fields, /*may_lack=*/false,
			     &print.nr_fields);
	print.fields = fields;
	if (fields && check_limits(options, &print))
		err = print_changes(options, &diff, &print);
out:
	free(fields);
	function_diff__exit(&diff);
	return function_explain_size(err);
}

static int read_input(const char *path, struct report_options *options,
		      struct function_table *table)
{
	const struct function_input_options input = {
		.recording = &options->recording, .sums = options->sums,
		.has_rows = options->by_name || options->children,
	};

	return function_input__read(path, &input, table, &options->recordings);
}

/* A run without windows has no values to compare. */
static int read_run(const char *path, struct report_options *options, struct function_runs *runs)
{
	struct function_table *table = &runs->tables[runs->nr];
	const char *reason;
	int err = read_input(path, options, table);

	reason = err ? NULL : function_table__add(&runs->table, table);
	if (reason)
		err = function_input__refuse_sum(path, reason);
	if (!err && function_table__has_window(table)) {
		runs->nr++;
		return 0;
	}
	if (!err && recording_options__filter(&options->recording))
		function_input__note_empty(path, &options->recording);
	function_table__exit(table);
	return err;
}

/* Reads the recordings of one side. */
static int read_runs(const struct inputs *inputs, struct report_options *options,
		     struct function_runs *runs)
{
	int err = 0;

	runs->tables = calloc(inputs->nr, sizeof(*runs->tables));
	runs->columns = calloc(inputs->nr, sizeof(*runs->columns));
	if (!runs->tables || !runs->columns)
		return -ENOMEM;
	for (unsigned int i = 0; !err && i < inputs->nr; i++)
		err = read_run(inputs->paths[i], options, runs);
	return err;
}

/* auto and discard compute shares differently from the same windows: compare those of discard. */
static void unify_shares(struct function_runs *before, struct function_runs *after)
{
	struct function_runs *sides[] = { before, after };
	bool is_auto = function_table__has_share(&before->table, FUNCTION_SHARE_AUTO) ||
		       function_table__has_share(&after->table, FUNCTION_SHARE_AUTO);
	bool is_discard = function_table__has_share(&before->table, FUNCTION_SHARE_DISCARD) ||
			  function_table__has_share(&after->table, FUNCTION_SHARE_DISCARD);

	if (!is_discard)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sides); i++) {
		function_table__discard(&sides[i]->table);
		for (unsigned int j = 0; j < sides[i]->nr; j++)
			function_table__discard(&sides[i]->tables[j]);
	}
	if (is_auto)
		pr_warning("perf functions: some inputs have share mode auto, others discard, so the shares are those of discard: use one mode for all inputs\n");
}

static int make_columns_of_runs(const struct report_options *options, struct function_runs *runs)
{
	int err = make_all_columns(&runs->all, &runs->table, options, false);

	if (!err && options->percent_limit)
		function_columns__mark_small(&runs->all, &runs->table, options->percent_limit);
	for (unsigned int i = 0; !err && i < runs->nr; i++)
		err = make_all_columns(&runs->columns[i], &runs->tables[i], options, true);
	return err;
}

static int report_diff(struct report_options *options, const struct inputs *before_inputs,
		       const struct inputs *after_inputs)
{
	struct function_runs before = {}, after = {};
	int err;

	err = read_runs(before_inputs, options, &before) ?:
	      read_runs(after_inputs, options, &after);
	/* Then nothing was measured, which is no change, and --fail-on must not pass. */
	if (!err && (!before.nr || !after.nr)) {
		pr_err("perf functions: no windows %s: there is nothing to compare with\n",
		       before.nr ? "after" : "before");
		err = -EINVAL;
	}
	if (err)
		goto out;
	unify_shares(&before, &after);
	err = function_runs__unify_names(&before, &after);
	if (err) {
		pr_err("perf functions: %s: report fewer files at once\n",
		       err == -ERANGE ? "the sums are too large to add up" : "not enough memory");
		goto out;
	}
	err = function_runs__choose_windows(&before, &after) ?:
	      make_columns_of_runs(options, &before) ?: make_columns_of_runs(options, &after);
	if (err) {
		function_explain_size(err);
		goto out;
	}

	signal(SIGPIPE, SIG_DFL);
	err = -EINVAL;
	if (strcmp(before.table.by, after.table.by) || before.table.inlines != after.table.inlines)
		function_error(after_inputs->paths[0],
			       "its rows are of another kind than those before: use the same --by, --children and --inline for both");
	else
		err = print_diff(options, &before, &after);
out:
	function_runs__exit(&after);
	function_runs__exit(&before);
	return err;
}

static int write_sums_to(int fd, const struct function_table *table)
{
	FILE *fp = fd < 0 ? NULL : fdopen(fd, "w");
	int err;

	if (!fp)
		return -errno;
	err = function_table__write(table, fp);
	if (fclose(fp) && !err)
		err = -errno;
	return err;
}

/*
 * Writes a sums file, to which @path may link, under another name until it is complete. @old is
 * the file that it replaces, or NULL.
 */
static int replace_sums(const char *path, const struct stat *old,
			const struct function_table *table)
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
	err = write_sums_to(fd, table);
	if (!err && rename(new, target ?: path))
		err = -errno;
	if (err)
		unlink(new);
	free(new);
	free(target);
	return err;
}

/* Another file could take the place of one that must not be written, even by root. */
static bool is_read_only(const char *path, const struct stat *st)
{
	return !(st->st_mode & 0222) || access(path, W_OK);
}

static int functions_write_sums(const char *path, const struct function_table *table)
{
	struct stat st;
	int err;

	if (!strcmp(path, "-"))
		err = function_table__write(table, stdout);
	else if (stat(path, &st))
		err = replace_sums(path, NULL, table);
	else if (S_ISREG(st.st_mode) && is_read_only(path, &st))
		err = -EROFS;
	else if (S_ISREG(st.st_mode))
		err = replace_sums(path, &st, table);
	else
		err = write_sums_to(open(path, O_WRONLY), table);	/* for example a pipe */
	if (err == -EROFS)
		pr_err("perf functions: %s: is read-only: name another file, or make it writable\n",
		       path);
	else if (err)
		pr_err("perf functions: %s: %s: name another file\n", path, strerror(-err));
	return err;
}

static int parse_share(const char *name, enum function_share *share)
{
	int found = function_share__find(name);

	if (found < 0 || found >= FUNCTION_SHARE_CHOICES) {
		pr_err("perf functions: no share mode %s, there are: auto none discard\n", name);
		return -EINVAL;
	}
	*share = found;
	return 0;
}

static int parse_source(const char *name, enum function_source *source)
{
	int found = name ? function_source__find(name) : FUNCTION_SOURCE_BEST;

	if (found < 0) {
		pr_err("perf functions: no source %s, there are: windows samples branches best\n",
		       name);
		return -EINVAL;
	}
	*source = found;
	return 0;
}

static int parse_cpus(const char *list, struct perf_cpu_map **cpus)
{
	if (!list)
		return 0;
	*cpus = *list ? perf_cpu_map__new(list) : NULL;
	if (*cpus)
		return 0;
	pr_err("perf functions: cannot read --cpu %s: write numbers of CPUs, as in 0,2-4\n", list);
	return -EINVAL;
}

/* Returns true, after a message, if an option does not have a list of numbers. */
static bool functions_refuse_numbers(const char *name, const char *list)
{
	if (!list || !list[strspn(list, "0123456789,-")])
		return false;
	pr_err("perf functions: cannot read --%s %s: write numbers, as in 100,102\n", name, list);
	return true;
}

/* Returns true, after a message, if the user has named a file that cannot be read. */
static bool refuse_symbols(const char *name, const char *path)
{
	/* Other names are relative to --symfs. */
	if (!path || (*path != '/' && *symbol_conf.symfs) || !access(path, R_OK))
		return false;
	pr_err("perf functions: --%s %s: %m: name a file with symbols of the kernel\n", name,
	       path);
	return true;
}

/* Returns true, after a message, if values could not be told apart. */
static bool refuse_separator(const struct report_options *options)
{
	const char *separator = options->separator;

	if (separator && options->json) {
		pr_err("perf functions: -j and -x choose the form of the output: leave out one of them\n");
		return true;
	}
	for (const char *c = separator; c && *c; c++) {
		if (!isalnum(*c) && !strchr(".-+\"'\n", *c))
			continue;
		pr_err("perf functions: -x %s: values may contain it: take another separator, such as , or \\t\n",
		       separator);
		return true;
	}
	return false;
}

/* Sets the keys of the rows. Returns true, after a message, if they are invalid. */
static bool refuse_by(struct report_options *options)
{
	const char *by = options->by_name ?: function_by__name(FUNCTION_BY_SYMBOL);
	enum function_by keys[FUNCTION_BY_MAX];
	int nr = function_by__parse(by, keys);

	if (nr > 0 && keys[0] != FUNCTION_BY_CHILDREN) {
		function_by__write(options->by, keys, nr);
		options->recording.by = options->by;
		return false;
	}
	pr_err("perf functions: no --by %s, there are:", by);
	for (int key = 0; key < FUNCTION_BY_CHILDREN; key++)
		pr_err(" %s", function_by__name(key));
	pr_err("\n");
	return true;
}

/* Returns true, after a message, if --children contradicts another option. */
static bool refuse_with_children(struct report_options *options)
{
	if (!function_by__is(options->recording.by, FUNCTION_BY_SYMBOL) ||
	    options->recording.inlines) {
		pr_err("perf functions: --children has rows of functions: leave out --by and --inline\n");
		return true;
	}
	if (options->recording.share == FUNCTION_SHARE_NONE) {
		pr_err("perf functions: --children does not go with --share none: leave out one of them\n");
		return true;
	}
	options->recording.by = function_by__name(FUNCTION_BY_CHILDREN);
	options->recording.share = FUNCTION_SHARE_DISCARD;
	return false;
}

/* Without --before and --after, two inputs are before and after. */
static bool find_sides(struct report_options *options)
{
	struct inputs *inputs = options->inputs;

	if (input_name || options->sums)
		return false;
	if (!inputs[SIDE_NONE].nr)
		return inputs[SIDE_BEFORE].nr && inputs[SIDE_AFTER].nr;
	if (inputs[SIDE_NONE].nr != 2 || inputs[SIDE_BEFORE].nr || inputs[SIDE_AFTER].nr)
		return false;
	for (int i = 0; i < 2; i++) {
		struct inputs *side = &inputs[SIDE_BEFORE + i];

		side->paths[side->nr++] = inputs[SIDE_NONE].paths[i];
	}
	return true;
}

/* Checks the choice of windows and rows; prints a message if it is invalid. */
static int choose_rows(struct report_options *options)
{
	bool has_chain;

	if (options->separator && !strcmp(options->separator, "\\t"))
		options->separator = "\t";
	if (parse_cpus(options->cpus, &options->recording.cpus) ||
	    parse_share(options->share_name, &options->recording.share) ||
	    parse_source(options->source_name, &options->recording.source) ||
	    refuse_by(options) || refuse_separator(options) ||
	    functions_refuse_numbers("pid", symbol_conf.pid_list_str) ||
	    functions_refuse_numbers("tid", symbol_conf.tid_list_str) ||
	    refuse_symbols("vmlinux", symbol_conf.vmlinux_name) ||
	    refuse_symbols("kallsyms", symbol_conf.kallsyms_name))
		return -1;
	if (options->recording.stitch_lbr && !options->children) {
		pr_err("perf functions: --stitch-lbr lengthens call chains: add --children\n");
		return -1;
	}
	if (options->children && refuse_with_children(options))
		return -1;
	has_chain = function_by__has(options->recording.by, FUNCTION_BY_CALLCHAIN);
	if (options->recording.inlines && !has_chain &&
	    !function_by__has(options->recording.by, FUNCTION_BY_SYMBOL)) {
		pr_err("perf functions: --inline needs rows of functions: use --by symbol or --by callchain\n");
		return -1;
	}
	if (symbol_conf.addr2line_path && !function_notes__has_addr2line()) {
		pr_err("perf functions: --addr2line %s: there is no such program: name the one of binutils\n",
		       symbol_conf.addr2line_path);
		return -1;
	}
	/* Room for the function in each symbol. */
	symbol_conf.priv_size = sizeof(struct collect_function *);
	symbol_conf.use_callchain = has_chain || options->children;
	return 0;
}

/* Checks and completes the choice of what is done; prints a message if it is invalid. */
static int choose_report(struct report_options *options)
{
	const unsigned int nr_inputs = options->inputs[SIDE_NONE].nr + !!input_name;

	options->diff |= options->inputs[SIDE_BEFORE].nr || options->inputs[SIDE_AFTER].nr;
	if (options->tree && (!options->metrics || options->fields || options->diff ||
			      options->separator || options->sums)) {
		pr_err("perf functions: --tree prints the metrics of -M, as text or with -j: add -M, and leave out --fields, -x, --sums and comparisons\n");
		return -EINVAL;
	}
	if (options->diff && !find_sides(options)) {
		pr_err("perf functions: --diff needs two recordings or sums files, before and after: name both, or several of each with --before A... --after B..., and leave out -i and --sums\n");
		return -EINVAL;
	}
	options->reading.is_compared = options->diff;
	if (options->depth < UINT_MAX && (options->diff || options->interval)) {
		pr_err("perf functions: --depth goes with a table of call chains: leave out --interval and comparisons\n");
		return -EINVAL;
	}
	if (options->interval &&
	    (options->diff || options->sums || options->wants_tui || nr_inputs > 1)) {
		pr_err("perf functions: --interval needs one recording, and prints tables, -j or -x: leave out other inputs, --tui, --sums and comparisons\n");
		return -EINVAL;
	}
	if ((options->fail_on || options->single_run) && !options->diff) {
		pr_err("perf functions: --%s a comparison: add --diff, or --before and --after\n",
		       options->fail_on ? "fail-on checks" : "single-run is about");
		return -EINVAL;
	}
	if (options->header &&
	    (options->diff || options->json || options->separator || options->sums)) {
		pr_err("perf functions: --header goes with a table: leave out -j, -x, --sums and comparisons\n");
		return -EINVAL;
	}
	if (options->sums && (options->json || options->separator || options->fields ||
			      options->metrics || options->sort || options->limit ||
			      options->percent_limit || options->with_ci ||
			      options->reading.is_corrected)) {
		pr_err("perf functions: --sums writes no values: leave out -j, -x, -F, -M, --sort, --limit, --percent-limit, --ci and --correct, and give them when you report the sums\n");
		return -EINVAL;
	}
	if (options->wants_tui && (options->json || options->separator || options->sums ||
				   options->tree || options->diff)) {
		pr_err("perf functions: --tui browses a table: leave out -j, -x, --sums, --tree and comparisons\n");
		return -EINVAL;
	}
	/* The browser shows one table of functions and no other output. */
	options->tui &= !options->json && !options->separator && !options->sums &&
			!options->tree && !options->diff && !options->interval;
	return parse_limits(options);
}

/* Prepares for what the options choose. */
static int prepare_report(struct report_options *options)
{
	struct recording_options *recording = &options->recording;

	if (options->interval) {
		recording->span = options->interval * NSEC_PER_SEC + 0.5;
		recording->take = print_part;
		recording->data = options;
	} else {	/* a line of progress would mix with tables */
		recording->begin = function_progress__begin;
		recording->end = function_progress__end;
	}
	if (options->header) {
		recording->header = open_memstream(&options->headers, &options->headers_size);
		if (!recording->header)
			return -ENOMEM;
	}
	recording->annotate = options->tui;
	if (options->tui && (hists__init() < 0 || symbol__annotation_init() < 0))
		return -ENOMEM;
	if (options->tui && verbose <= 0)
		held_messages__begin(&options->messages);
	return 0;
}

static int add_up_input(const char *path, struct report_options *options,
			struct function_table *table)
{
	struct function_table own = {};
	int err = read_input(path, options, &own);
	const char *reason;

	if (!err && !table->nr_sets) {
		*table = own;
		return 0;
	}
	reason = err ? NULL : function_table__add(table, &own);
	if (reason)
		err = function_input__refuse_sum(path, reason);
	function_table__exit(&own);
	return err;
}

static int cut_chains(struct function_table *table, unsigned int depth)
{
	int err;

	if (depth == UINT_MAX)
		return 0;
	if (!function_by__is(table->by, FUNCTION_BY_CALLCHAIN)) {
		pr_err("perf functions: --depth cuts call chains: add --by callchain\n");
		return -EINVAL;
	}
	err = function_table__cut_chains(table, depth);
	if (err)
		pr_err("perf functions: %s: report fewer files at once\n", err == -ERANGE ?
		       "the sums are too large to add up" : "not enough memory");
	return err;
}

static int report_table(struct report_options *options)
{
	const struct inputs *inputs = &options->inputs[SIDE_NONE];
	const char *default_input = input_name ?: "perf.data";
	struct function_table table = {};
	int err = 0;

	if (!inputs->nr || input_name)
		err = add_up_input(default_input, options, &table);
	for (unsigned int i = 0; !err && i < inputs->nr; i++)
		err = add_up_input(inputs->paths[i], options, &table);
	err = err ?: cut_chains(&table, options->depth);
	if (err)
		goto out;

	/* addr2line makes perf ignore SIGPIPE, but `| head` must end the command silently. */
	if (!options->tui)
		signal(SIGPIPE, SIG_DFL);

	if (!function_table__has_window(&table) && recording_options__filter(&options->recording))
		function_input__note_empty(inputs->nr > 1 ? "the recordings" :
					   inputs->nr ? inputs->paths[0] : default_input,
					   &options->recording);
	if (options->interval) {
		print_notes(&table, NULL, options);
	} else if (options->sums) {
		print_notes(&table, NULL, options);
		err = functions_write_sums(options->sums, &table);
	} else {
		err = print_report(options, &table);
	}
out:
	function_table__exit(&table);
	return err;
}

static int report_functions(struct report_options *options)
{
	int err = choose_rows(options) ?: choose_report(options) ?: prepare_report(options);

	if (!err)
		err = options->diff ? report_diff(options, &options->inputs[SIDE_BEFORE],
						  &options->inputs[SIDE_AFTER]) :
				      report_table(options);
	/* The table is out, whatever happens when threads, maps and symbols are freed. */
	fflush(stdout);
	recordings__delete(options->recordings);
	held_messages__end(&options->messages);
	free(options->messages.text);
	return err < 0 ? -1 : err;
}

/* --fail-on may be given more than once. */
static int add_limits(const struct option *opt, const char *str, int unset __maybe_unused)
{
	const char **limits = opt->value;
	char *all;

	if (asprintf(&all, "%s%s%s", *limits ?: "", *limits ? "," : "", str) < 0)
		return -ENOMEM;
	free((char *)*limits);
	*limits = all;
	return 0;
}

/* --tree[=all] */
static int parse_tree(const struct option *opt, const char *str, int unset)
{
	struct report_options *report = opt->value;

	report->tree = !unset;
	report->tree_is_all = str && !strcmp(str, "all");
	if (!str || report->tree_is_all)
		return 0;
	pr_err("perf functions: --tree=%s: write --tree, or --tree=all\n", str);
	return -EINVAL;
}

/* Reads the number of an option; prints a message with its name if it is out of range. */
static int parse_number(const struct option *opt, const char *str, double least, double most)
{
	double *number = opt->value;
	char *end;

	*number = strtod(str, &end);
	if (end != str && !*end && *number >= least && *number <= most)
		return 0;
	pr_err("perf functions: --%s takes a number from %g to %g\n", opt->long_name, least, most);
	return -EINVAL;
}

static int parse_percent(const struct option *opt, const char *str, int unset __maybe_unused)
{
	return parse_number(opt, str, 0, 100);
}

static int parse_seconds(const struct option *opt, const char *str, int unset __maybe_unused)
{
	return parse_number(opt, str, 1.0 / NSEC_PER_SEC, NSEC_PER_SEC);
}

static void add_input(struct report_options *report, const char *path)
{
	struct inputs *inputs = &report->inputs[report->side];

	inputs->paths[inputs->nr++] = path;
}

/* --before and --after */
static int add_to_side(const struct option *opt, const char *path, int unset __maybe_unused)
{
	struct report_options *report = opt->value;

	report->side = strcmp(opt->long_name, "before") ? SIDE_AFTER : SIDE_BEFORE;
	add_input(report, path);
	return 0;
}

/* Inputs belong to the --before or --after that they follow. */
static void parse_report(struct report_options *report, const struct option *options, int argc,
			 const char **argv)
{
	const int flags = PARSE_OPT_STOP_AT_NON_OPTION | PARSE_OPT_KEEP_DASHDASH;

	while ((argc = parse_options(argc, argv, options, functions_report_usage, flags)) &&
	       strcmp(argv[0], "--"))
		add_input(report, argv[0]);
	for (int i = 1; i < argc; i++)
		add_input(report, argv[i]);
}

/* An option with a value, which has no form --no-NAME. */
#define OPT_VALUE(s, l, v, a, h, f)						\
	{ .type = OPTION_CALLBACK, .short_name = (s), .long_name = (l), .value = (v),	\
	  .argh = (a), .help = (h), .callback = (f), .flags = PARSE_OPT_NONEG }

/* The same, of a name with a default. */
#define OPT_NAME(l, v, a, h)							\
	{ .type = OPTION_STRING, .long_name = (l), .value = (v), .argh = (a), .help = (h),	\
	  .flags = PARSE_OPT_NONEG }

/* Groups of options, in the help and in the manual. */
#define GROUP_INPUT		"Input:"
#define GROUP_WINDOWS		"Windows:"
#define GROUP_ROWS		"Rows:"
#define GROUP_COLUMNS		"Columns and metrics:"
#define GROUP_UNCERTAINTY	"Uncertainty:"
#define GROUP_COMPARISON	"Comparison:"
#define GROUP_OUTPUT		"Output:"
#define GROUP_SYMBOLS		"Symbols and code (perf-functions(1) has more options):"

/* Left out of -h, which fits on a screen. */
static const char *const only_in_manual[] = {
	"addr2line", "demangle", "depth", "force", "full-source-path", "header", "kallsyms",
	"objdump", "stdio", "verbose",
};

/* The options of report and top: what rows and columns there are, and how they are printed. */
static struct option *table_options(struct report_options *report)
{
	const struct option options[] = {
	OPT_GROUP(GROUP_WINDOWS),
	/* As perf report has them. --comm, --dso and --symbol abbreviate them. */
	OPT_STRING('c', "comms", &symbol_conf.comm_list_str, "comms",
		   "count only windows and samples in these comms"),
	OPT_STRING('d', "dsos", &symbol_conf.dso_list_str, "dsos",
		   "count only windows and samples in these DSOs"),
	OPT_STRING('S', "symbols", &symbol_conf.sym_list_str, "names",
		   "count only windows and samples in these symbols"),
	OPT_NAME("share", &report->share_name, "mode",
		 "which windows count: auto, none or discard (default: auto)"),
	OPT_STRING(0, "source", &report->source_name, "name",
		   "windows, samples, branches or best (default): where values come from"),
	OPT_GROUP(GROUP_ROWS),
	OPT_STRING(0, "by", &report->by_name, "keys",
		   "symbol, dso, comm, thread, process, cpu, pmu, srcline, callchain or cgroup"),
	OPT_BOOLEAN(0, "children", &report->children,
		    "count for a function all that it calls, too (record with --call-graph fp)"),
	OPT_BOOLEAN(0, "stitch-lbr", &report->recording.stitch_lbr,
		    "with --children: lengthen call chains of LBRs by those of earlier samples"),
	OPT_BOOLEAN(0, "inline", &report->recording.inlines,
		    "give inlined functions rows of their own"),
	OPT_STRING('s', "sort", &report->sort, "column",
		   "sort by this column, or by symbol (default: %CY, or else %CLK, %TCLK or #)"),
	OPT_UINTEGER(0, "limit", &report->limit, "print only this number of functions"),
	OPT_VALUE(0, "percent-limit", &report->percent_limit, "%",
		  "leave out functions with a smaller share", parse_percent),
	OPT_GROUP(GROUP_COLUMNS),
	OPT_STRING('F', "fields", &report->fields, "list",
		   "print only these columns, in this order"),
	OPT_GROUP(GROUP_UNCERTAINTY),
	OPT_BOOLEAN(0, "ci", &report->with_ci, "print the 95 % interval of each metric"),
	OPT_BOOLEAN(0, "correct", &report->reading.is_corrected,
		    "subtract what interrupts add, the same from all windows"),
	OPT_GROUP(GROUP_OUTPUT),
	OPT_STRING_NOEMPTY('x', "field-separator", &report->separator, "separator",
			   "print values with all their digits and this separator"),
	OPT_BOOLEAN('j', "json", &report->json,
		    "print JSON with all windows, events, metrics and 95 % intervals"),
	OPT_GROUP(GROUP_SYMBOLS),
	OPT_STRING('k', "vmlinux", &symbol_conf.vmlinux_name, "file", "vmlinux pathname"),
	OPT_STRING(0, "kallsyms", &symbol_conf.kallsyms_name, "file", "kallsyms pathname"),
	OPT_VALUE(0, "symfs", NULL, "folder",
		  "look for files with symbols relative to this folder", symbol__config_symfs),
	OPT_STRING(0, "addr2line", &symbol_conf.addr2line_path, "path",
		   "path to addr2line, for lines and inlined functions"),
	OPT_BOOLEAN(0, "full-source-path", &srcline_full_filename,
		    "print the full path of source files"),
	OPT_BOOLEAN(0, "demangle", &symbol_conf.demangle,
		    "demangle symbol names, which is the default"),
	OPT_END()
	};

	return memdup(options, sizeof(options));
}

static const struct option *end_of_group(const struct option *group)
{
	do
		group++;
	while (group->type != OPTION_GROUP && group->type != OPTION_END);
	return group;
}

/* Returns the first group with the same title as @other, NULL if there is none. */
static const struct option *find_group(const struct option *options, const struct option *other)
{
	for (; options->type != OPTION_END; options = end_of_group(options)) {
		if (!strcmp(options->help, other->help))
			return options;
	}
	return NULL;
}

static struct option *copy_options(struct option *to, const struct option *begin,
				   const struct option *end)
{
	memcpy(to, begin, (end - begin) * sizeof(*to));
	return to + (end - begin);
}

/*
 * Joins two arrays of options, all of which are in groups. In groups that both have, the
 * second's options follow those of the first. Returns NULL without memory.
 */
static struct option *join_options(const struct option *first, const struct option *second)
{
	const struct option *group, *same;
	unsigned int nr = 0;
	struct option *both, *end;

	for (group = first; group->type != OPTION_END; group++)
		nr++;
	for (group = second; group->type != OPTION_END; group++)
		nr++;
	both = calloc(nr + 1, sizeof(*both));
	if (!both)
		return NULL;

	end = both;
	for (group = first; group->type != OPTION_END; group = end_of_group(group)) {
		end = copy_options(end, group, end_of_group(group));
		same = find_group(second, group);
		if (same)
			end = copy_options(end, same + 1, end_of_group(same));
	}
	for (group = second; group->type != OPTION_END; group = end_of_group(group)) {
		if (!find_group(first, group))
			end = copy_options(end, group, end_of_group(group));
	}
	*end = (struct option)OPT_END();
	for (end = both; end->type != OPTION_END; end++) {
		for (size_t i = 0; end->long_name && i < ARRAY_SIZE(only_in_manual); i++) {
			if (!strcmp(end->long_name, only_in_manual[i]))
				end->flags |= PARSE_OPT_HIDDEN;
		}
	}
	return both;
}

static int cmd_functions_report(int argc, const char **argv, bool tui_is_default)
{
	struct report_options report = { .share_name = "auto", .depth = UINT_MAX };
	struct option *shared = table_options(&report), *all = NULL;
	int err = -1;
	const struct option options[] = {
	OPT_GROUP(GROUP_INPUT),
	OPT_STRING('i', "input", &input_name, "file", "input file name"),
	OPT_BOOLEAN('f', "force", &report.recording.force, "don't do ownership validation"),
	OPT_GROUP(GROUP_WINDOWS),
	OPT_STRING(0, "pid", &symbol_conf.pid_list_str, "pids",
		   "count only windows and samples in these processes"),
	OPT_STRING(0, "tid", &symbol_conf.tid_list_str, "tids",
		   "count only windows and samples in these threads"),
	OPT_STRING('C', "cpu", &report.cpus, "cpus",
		   "count only windows and samples on these CPUs"),
	OPT_STRING(0, "time", &report.recording.time, "span",
		   "count only windows and samples in this span of time"),
	OPT_GROUP(GROUP_ROWS),
	OPT_VALUE(0, "interval", &report.interval, "s",
		  "print a table for each span of this number of seconds", parse_seconds),
	OPT_UINTEGER(0, "depth", &report.depth,
		     "with --by callchain: keep this number of outer functions (0: add up all)"),
	OPT_GROUP(GROUP_COLUMNS),
	OPT_STRING('M', "metrics", &report.metrics, "list",
		   "print these metrics of the recorded CPU (see perf list metric)"),
	OPT_CALLBACK_OPTARG(0, "tree", &report, NULL, "all",
			    "with -M: print a tree of the metrics of each function, or open all of it",
			    parse_tree),
	OPT_GROUP(GROUP_UNCERTAINTY),
	OPT_GROUP(GROUP_COMPARISON),
	OPT_BOOLEAN(0, "diff", &report.diff,
		    "print what has changed from the first input to the second"),
	OPT_VALUE(0, "before", &report, "files",
		  "compare several runs: those before a change", add_to_side),
	OPT_VALUE(0, "after", &report, "files", "compare several runs: those after it",
		  add_to_side),
	OPT_VALUE(0, "fail-on", &report.fail_on, "limit",
		  "exit status 2 if the 95 % interval says that a metric has risen more, as in CPI>5%, or fallen, as in CPI<-5%",
		  add_limits),
	OPT_BOOLEAN(0, "single-run", &report.single_run,
		    "mark and check changes although there is one run of each side"),
	OPT_GROUP(GROUP_OUTPUT),
	OPT_STRING(0, "sums", &report.sums, "file",
		   "write the sums to this file (- for stdout) and print no metrics"),
	OPT_BOOLEAN(0, "header", &report.header,
		    "print the headers of recordings before the table"),
	OPT_BOOLEAN(0, "stdio", &report.stdio, "print text, which is the default"),
	OPT_BOOLEAN(0, "tui", &report.tui, "browse the table"),
	OPT_INCR('v', "verbose", &verbose, "be more verbose"),
	OPT_GROUP(GROUP_SYMBOLS),
	OPT_STRING(0, "objdump", &report.objdump, "path",
		   "path to objdump, for the code that --tui annotates"),
	OPT_END()
	};

	all = shared ? join_options(options, shared) : NULL;
	if (!all)
		goto out;
	for (int i = 0; i < NR_SIDES; i++) {
		report.inputs[i].paths = calloc(argc + 1, sizeof(*report.inputs[i].paths));
		if (!report.inputs[i].paths)
			goto out;
	}
	parse_report(&report, all, argc, argv);
	report.wants_tui = report.tui && !report.stdio;
	report.tui = (report.tui || tui_is_default) && !report.stdio;
	err = report_functions(&report);
	free((char *)report.fail_on);
	for (unsigned int i = 0; i < report.nr_limits; i++)
		free(report.limits[i].column);
	free(report.limits);
	perf_cpu_map__put(report.recording.cpus);
	if (report.recording.header)
		fclose(report.recording.header);
	free(report.headers);
	free(report.titles);
out:
	for (int i = 0; i < NR_SIDES; i++)
		free(report.inputs[i].paths);
	free(all);
	free(shared);
	return err;
}

/* State of perf functions top. */
struct top_command {
	struct report_options report;
	struct fn_record record;
	/* The choices made with keys. */
	char *sort;
};

/* Returns true, after a message, if nothing more can be written, which perf record may not say. */
static bool is_device_full(const char *output)
{
	struct statvfs st;

	if (!output || statvfs(output, &st) || (geteuid() ? st.f_bavail : st.f_bfree) ||
	    !st.f_blocks)
		return false;
	function_error(output, "no space left on the device: name a file elsewhere with -o");
	return true;
}

/*
 * Calls perf record. It returns -1 if an event does not open (and seldom for another reason),
 * other negative numbers for other errors, or the exit status of the command that it ran.
 */
static int call_record(const struct fn_record *record)
{
	int ret;

	record_options = record->options;
	ret = cmd_record(record->argc, record->argv);
	if (ret < 0 && !is_device_full(record->output) && ret == -1)
		fn_record__explain(record);
	return ret;
}

static int record_for_top(void *data)
{
	struct top_command *command = data;

	return call_record(&command->record);
}

static int read_for_top(void *data, struct function_top *top)
{
	struct top_command *command = data;
	struct recording_options *recording = &command->report.recording;
	struct function_table table = {};
	int err;

	recording->is_due = function_top__is_due;
	recording->take = function_top__take;
	recording->data = top;
	err = recording__read("-", recording, &table, NULL);
	function_table__exit(&table);
	return err;
}

static int print_for_top(void *data, const struct function_table *table,
			 const struct function_view *view)
{
	struct top_command *command = data;
	struct report_options *report = &command->report;
	int err;

	report->view = view;
	err = view->width ? print_report(report, table) :
			    print_span(report, table, view->begin, view->end);
	report->view = NULL;
	return err;
}

static void note_for_top(void *data, const struct function_table *table)
{
	struct top_command *command = data;

	print_notes(table, NULL, &command->report);
}

/* Returns true if a table has a column; all have the first one. */
static bool functions_has_column(const struct report_options *report,
				 const struct function_table *table,
				 const char *name)
{
	struct function_columns columns;
	bool is_there;

	if (!strcasecmp(name, "symbol") || !strcmp(name, table->by))
		return true;
	is_there = !make_all_columns(&columns, table, report, true) &&
		   function_columns__find(&columns, name, strlen(name)) >= 0;
	function_columns__exit(&columns);
	return is_there;
}

/* Handles the keys e, s and f. */
static char *choose_for_top(void *data, const struct function_table *table, char key,
			    const char *text)
{
	struct top_command *command = data;
	struct report_options *report = &command->report;
	char *message = NULL, *end, *copy;
	unsigned long long rows;
	double percent;

	if (key == 'e') {
		rows = strtoull(text, &end, 10);
		if (!isdigit(*text) || *end || rows > UINT_MAX)
			return strdup("this takes a whole number of rows, or 0");
		report->limit = rows;
		return NULL;
	}
	if (key == 's') {
		if (!table->nr_sums)
			return strdup("no columns yet: try again when the table has rows");
		if (!functions_has_column(report, table, text))
			return asprintf(&message, "there is no column %s: type the title of one",
					text) < 0 ? NULL : message;
		copy = strdup(text);
		if (!copy)
			return NULL;
		free(command->sort);
		command->sort = copy;
		report->sort = copy;
		return NULL;
	}
	percent = strtod(text, &end);
	if (*end || !(percent >= 0 && percent <= 100))
		return strdup("this takes a number from 0 to 100");
	report->percent_limit = percent;
	return NULL;
}

static int parse_delay(const struct option *opt, const char *str, int unset __maybe_unused)
{
	return parse_number(opt, str, FUNCTION_TOP_LEAST_DELAY, FUNCTION_TOP_MOST_SECONDS);
}

static int parse_last(const struct option *opt, const char *str, int unset __maybe_unused)
{
	return parse_number(opt, str, 0, FUNCTION_TOP_MOST_SECONDS);
}

/*
 * perf record wakes up when a buffer is half full. Without the right to lock as much
 * memory as this takes, each buffer is as large as the user may have it.
 */
static const char *const buffers_of_top[] = { "-m", "1M", NULL };

/* Pipes must not get the number of a stream that is closed. Returns false, after a message. */
static bool prepare_streams(void)
{
	int fd;

	if (fcntl(STDOUT_FILENO, F_GETFD) < 0) {
		function_error_of_output(errno);
		return false;
	}
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	return true;
}

static int run_top(struct top_command *command, struct function_top_options *top, int argc,
		   const char **argv, const struct option *options)
{
	struct report_options *report = &command->report;
	char control[32];
	const char *const arguments[] = { "-B", "-o", "-", control, NULL };
	const struct fn_recorder recorder = {
		.usage = functions_top_usage, .options = options,
		.add_metrics = fn_metrics__add_groups,
		.without = not_of_top, .arguments = arguments,
		.defaults = perf_cap__capable(CAP_IPC_LOCK) ? buffers_of_top : NULL,
	};
	int fds[2];

	if (!prepare_streams())
		return -1;
	if (pipe2(fds, O_CLOEXEC)) {
		pr_err("perf functions: cannot start: %m: `ulimit -a` shows the limits\n");
		return -1;
	}
	scnprintf(control, sizeof(control), "--control=fd:%d", fds[0]);
	if (fn_record__init(&command->record, record_options, &recorder, argc, argv))
		return -1;
	report->metrics = command->record.metrics;
	top->stdio |= report->json || report->separator;
	if (choose_rows(report))
		return -1;
	top->filter = recording_options__filter(&report->recording);
	return function_top__run(top, fds);
}

static int cmd_functions_top(int argc, const char **argv)
{
	struct top_command command = { .report = { .share_name = "auto" } };
	struct function_top_options top = {
		.delay = FUNCTION_TOP_DELAY, .last = FUNCTION_TOP_LAST,
		.record = record_for_top, .read = read_for_top, .print = print_for_top,
		.note = note_for_top, .choose = choose_for_top, .data = &command,
	};
	struct option *shared = table_options(&command.report), *all = NULL;
	const struct option options[] = {
	OPT_GROUP("Tables:"),
	OPT_VALUE('d', "delay", &top.delay, "seconds",
		  "seconds from one table to the next (default: 2)", parse_delay),
	OPT_VALUE(0, "last", &top.last, "seconds",
		  "seconds that a table covers (default: 30; 0: all since the start)", parse_last),
	OPT_UINTEGER(0, "count", &top.count, "end after this number of tables"),
	OPT_BOOLEAN(0, "stdio", &top.stdio,
		    "print one table after the other, as without a terminal"),
	OPT_END()
	};
	int ret = -1;

	/* -c belongs to perf record, and -d is a delay. */
	for (struct option *opt = shared; opt && opt->type != OPTION_END; opt++) {
		if (opt->short_name == 'c' || opt->short_name == 'd')
			opt->short_name = 0;
	}
	all = shared ? join_options(options, shared) : NULL;
	if (all)
		ret = run_top(&command, &top, argc, argv, all);
	perf_cpu_map__put(command.report.recording.cpus);
	fn_record__exit(&command.record);
	free(command.report.titles);
	free(command.sort);
	free(all);
	free(shared);
	return ret;
}

static int cmd_functions_record(int argc, const char **argv)
{
	const struct fn_recorder recorder = {
		.usage = functions_record_usage,
		.add_metrics = fn_metrics__add_groups,
	};
	struct fn_record arguments;
	int ret = fn_record__init(&arguments, record_options, &recorder, argc, argv);

	if (!ret)
		ret = call_record(&arguments);
	fn_record__exit(&arguments);
	return ret;
}

static void print_no_command(const char *name)
{
	char *printable = function_text__printable(name);
	bool is_diff = !strcmp(name, "diff");

	pr_err("perf functions: unknown command '%s': %s\n", printable ?: "",
	       is_diff ? "compare with perf functions report --diff BEFORE AFTER" :
			 "there are record, report and top, see perf functions -h");
	free(printable);
}

int cmd_functions(int argc, const char **argv)
{
	/* The first one is made of the subcommands. */
	const char *functions_usage[7 + 1] = {
		NULL,
		"",
		"Examples:",
		"perf functions record -- make -j4   # record a command",
		"perf functions report               # print the metrics of each function",
		"perf functions top                  # show the metrics of what runs now",
		"perf functions record -h            # list the options (report -h, top -h)",
		NULL
	};
	const struct option options[] = {
	OPT_INCR('v', "verbose", &verbose, "be more verbose"),
	OPT_END()
	};
	/* Follows perf config. Messages before the browser starts go to stderr. */
	bool tui_is_default = use_browser == 1;
	int ret = -1;

	use_browser = 0;
	argc = parse_options_subcommand(argc, argv, options, functions_subcommands, functions_usage,
					PARSE_OPT_STOP_AT_NON_OPTION);
	if (argc && strlen(argv[0]) > 2 && strstarts("record", argv[0]))
		ret = cmd_functions_record(argc, argv);
	else if (argc && strlen(argv[0]) > 2 && strstarts("report", argv[0]))
		ret = cmd_functions_report(argc, argv, tui_is_default);
	else if (argc && !strcmp("top", argv[0]))
		ret = cmd_functions_top(argc, argv);
	else if (argc)
		print_no_command(argv[0]);
	else
		usage_with_options(functions_usage, options);

	/* free usage string allocated by parse_options_subcommand */
	free((void *)functions_usage[0]);
	return ret;
}
