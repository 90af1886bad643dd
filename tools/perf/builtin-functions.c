// SPDX-License-Identifier: GPL-2.0
/*
 * builtin-functions.c - metrics of functions from the counts of groups
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <perf/cpumap.h>
#include <subcmd/pager.h>
#include <subcmd/parse-options.h>

#include "builtin.h"
#include "util/cap.h"
#include "util/debug.h"
#include "util/functions/functions.h"
#include "util/record.h"
#include "util/srcline.h"
#include "util/symbol.h"
#include "util/util.h"

#include "ui/ui.h"

static const char *const functions_subcommands[] = { "record", "report", "top", NULL };

static const char *const functions_record_usage[] = {
	"perf functions record [-M <metrics>] [<options>] [<perf record options>] [--] <command>",
	"perf functions record [-e <events>] [<options>] [<perf record options>] [--] <command>",
	"",
	"Examples:",
	"perf functions record -- make -j4",
	"perf functions record --window 200 -a -- sleep 10",
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

static int browse(struct fn_view *view, const char *notes)
{
	use_browser = 1;
	setup_browser(true);
	return fn_view__browse(view, notes);
}

/* Returns true if values may contain a character of the separator. */
static bool is_in_values(const char *separator)
{
	for (const char *c = separator; c && *c; c++) {
		if (isalnum(*c) || strchr(".-+~\"'\n", *c))
			return true;
	}
	return false;
}

/* Returns true if the user has named a file that cannot be read. */
static bool is_unreadable(const char *path)
{
	/* Other names are relative to --symfs. */
	return path && (*path == '/' || !*symbol_conf.symfs) && access(path, R_OK);
}

/* Sets the keys of the rows. Returns true, after a message, if they are invalid. */
static bool refuse_by(struct fn_report *report)
{
	const char *by = report->by_name ?: fn_key__name(FN_BY_SYMBOL);
	enum fn_key keys[FN_NR_KEYS];
	char wrong[32] = "children";
	int nr = fn_by__parse(by, keys, wrong), length = 0;

	if (nr > 0 && keys[0] != FN_BY_CHILDREN) {
		for (int i = 0; i < nr; i++)
			length += scnprintf(report->by + length, sizeof(report->by) - length,
					    "%s%s", i ? "," : "", fn_key__name(keys[i]));
		report->options.by = report->by;
		return false;
	}
	pr_err("perf functions: no --by %s, there are, each once:", wrong);
	for (int key = 0; key < FN_BY_CHILDREN; key++)
		pr_err(" %s", fn_key__name(key));
	pr_err("\n");
	return true;
}

/* Without --before and --after, two inputs are before and after. */
static bool find_sides(struct fn_report *report)
{
	unsigned int nr[FN_NO_SIDE + 1] = {};

	if (input_name || report->sums)
		return false;
	for (unsigned int i = 0; i < report->nr_inputs; i++)
		nr[report->inputs[i].side]++;
	if (nr[FN_NO_SIDE] != 2 || report->nr_inputs != 2)
		return !nr[FN_NO_SIDE] && nr[FN_BEFORE] && nr[FN_AFTER];
	report->inputs[0].side = FN_BEFORE;
	report->inputs[1].side = FN_AFTER;
	return true;
}

/* Returns true, after a message, if an option is invalid, or contradicts another one. */
static bool refuse_options(struct fn_report *report)
{
	const struct fn_options *options = &report->options;
	const bool has_form = report->json || report->separator;

	if (report->cpus && !options->cpus)
		fn_err("cannot read --cpu %s: write numbers of CPUs, as in 0,2-4", report->cpus);
	else if (report->source && !options->source && strcmp(report->source, "best"))
		fn_err("no source %s, there are: windows samples branches operations best",
		       report->source);
	else if (report->separator && report->json)
		fn_err("-j and -x choose the form of the output: leave out one of them");
	else if (is_in_values(report->separator))
		fn_err("-x %s: values may contain it: take another separator, such as , or \\t",
		       report->separator);
	else if (*symbol_conf.symfs && access(symbol_conf.symfs, X_OK))
		fn_err("--symfs %s: %m: name a folder with the recorded files", symbol_conf.symfs);
	else if (is_unreadable(symbol_conf.vmlinux_name))
		fn_err("--vmlinux %s: %m: name a file with symbols of the kernel",
		       symbol_conf.vmlinux_name);
	else if (is_unreadable(symbol_conf.kallsyms_name))
		fn_err("--kallsyms %s: %m: name a file with symbols of the kernel",
		       symbol_conf.kallsyms_name);
	else if (options->stitch_lbr && !report->children)
		fn_err("--stitch-lbr lengthens call chains: add --children");
	else if (report->children && (!fn_by__is(options->by, FN_BY_SYMBOL) || options->inlines))
		fn_err("--children has rows of functions: leave out --by and --inline");
	else if (report->children && options->source == &fn_windows)
		fn_err("--children has no windows, which may lie in several calls: leave out --source");
	else if (options->inlines && !fn_by__has(options->by, FN_BY_SYMBOL) &&
		 !fn_by__has(options->by, FN_BY_CALLCHAIN))
		fn_err("--inline needs rows of functions: use --by symbol or --by callchain");
	else if (report->diff && !find_sides(report))
		fn_err("--diff needs two recordings or sums files, before and after: name both, or several of each with --before A... --after B..., and leave out -i and --sums");
	else if (report->interval && (report->diff || report->sums || report->wants_tui ||
				      report->nr_inputs + !!input_name > 1))
		fn_err("--interval needs one recording, and prints tables, -j or -x: leave out other inputs, --tui, --sums and comparisons");
	else if (report->fail_on && !report->diff)
		fn_err("--fail-on checks a comparison: add --diff, or --before and --after");
	else if (report->single_run && !report->diff)
		fn_err("--single-run is about a comparison: add --diff, or --before and --after");
	else if (report->sums && (has_form || report->fields || report->metrics || report->sort ||
				  report->limit || report->percent_limit || report->with_ci))
		fn_err("--sums writes no values: leave out -j, -x, -F, -M, --sort, --limit, --percent-limit and --ci, and give them when you report the sums");
	else if (report->wants_tui && (has_form || report->sums || report->diff))
		fn_err("--tui browses a table: leave out -j, -x, --sums and comparisons");
	else
		return false;
	return true;
}

/* Prepares for what the options choose; prints a message if they are invalid. */
static int prepare(struct fn_report *report)
{
	struct fn_options *options = &report->options;

	if (report->cpus && *report->cpus)
		options->cpus = perf_cpu_map__new(report->cpus);
	if (report->source)
		options->source = fn_source__find(report->source);
	if (report->separator && !strcmp(report->separator, "\\t"))
		report->separator = "\t";
	if (refuse_by(report) || refuse_options(report))
		return -1;
	if (report->children)
		options->by = fn_key__name(FN_BY_CHILDREN);
	options->has_by = report->by_name || report->children;
	/* Room for the row in each symbol. */
	symbol_conf.priv_size = sizeof(struct fn_row *);
	symbol_conf.use_callchain = report->children || fn_by__has(options->by, FN_BY_CALLCHAIN);
	if (report->interval) {
		options->span = report->interval * NSEC_PER_SEC + 0.5;
		options->take = fn_report__print_span;
		options->data = report;
	}
	/* The browser shows one table of functions and no other output. */
	if (report->tui && !report->json && !report->separator && !report->sums && !report->diff &&
	    !report->interval && isatty(STDOUT_FILENO))
		report->browse = browse;
	if (report->browse && verbose <= 0)
		fn_report__hold_messages(report);
	return 0;
}

static int add_input(struct fn_report *report, const char *path, struct fn_table *table)
{
	struct fn_table own = {};
	const char *reason;
	int err;

	/* The first one is the table. */
	if (!table->nr_sets)
		return fn_input__read(path, &report->options, report->sums, table);
	err = fn_input__read(path, &report->options, report->sums, &own);
	reason = err ? NULL : fn_table__add(table, &own);
	if (reason) {
		fn_err("%s: cannot be added to the inputs before it: %s: report it separately",
		       path, reason);
		err = -EINVAL;
	}
	fn_table__exit(&own);
	return err ?: fn_table__settle(table);
}

static int report_table(struct fn_report *report)
{
	const unsigned int nr = report->nr_inputs;
	struct fn_table table = {};
	int err = 0;

	if (!nr || input_name)
		err = add_input(report, input_name ?: "perf.data", &table);
	for (unsigned int i = 0; !err && i < nr; i++)
		err = add_input(report, report->inputs[i].path, &table);
	if (!err && fn_table__is_empty(&table) && fn_options__filter(&report->options))
		fn_input__note_empty(nr > 1 ? "the recordings" : report->options.name,
				     &report->options);
	if (!err && (report->interval || report->sums)) {
		err = fn_notes__print_all(&table, &report->options);
		/* The table of sums may be too large. */
		err = report->sums ? 0 : fn_explain(err);
	}
	if (!err && report->sums)
		err = fn_table__write_sums(report->sums, &table);
	else if (!err && !report->interval)
		err = fn_report__print(report, &table);
	fn_table__exit(&table);
	return err;
}

/* --fail-on may be given more than once. */
static int add_limits(const struct option *opt, const char *str, int unset __maybe_unused)
{
	char **limits = opt->value, *all;

	if (asprintf(&all, "%s%s%s", *limits ?: "", *limits ? "," : "", str) < 0)
		return -ENOMEM;
	free(*limits);
	*limits = all;
	return 0;
}

/* The least and the most of the numbers of options. */
static double percents[] = { 0, 100 };
static double spans[] = { 1.0 / NSEC_PER_SEC, NSEC_PER_SEC };
static double delays[] = { FN_TOP_LEAST_DELAY, FN_TOP_MOST_SECONDS };
static double lasts[] = { 0, FN_TOP_MOST_SECONDS };

/* Reads the number of an option; prints a message with its name if it is out of range. */
static int parse_number(const struct option *opt, const char *str, int unset __maybe_unused)
{
	const double *range = opt->data;
	double *number = opt->value;
	char *end;

	*number = strtod(str, &end);
	if (end != str && !*end && *number >= range[0] && *number <= range[1])
		return 0;
	fn_err("--%s takes a number from %g to %g", opt->long_name, range[0], range[1]);
	return -EINVAL;
}

static void add_path(struct fn_report *report, const char *path)
{
	report->inputs[report->nr_inputs++] = (struct fn_input){ path, report->side };
}

/* --before and --after */
static int add_to_side(const struct option *opt, const char *path, int unset __maybe_unused)
{
	struct fn_report *report = opt->value;

	report->diff = true;
	report->side = strcmp(opt->long_name, "before") ? FN_AFTER : FN_BEFORE;
	add_path(report, path);
	return 0;
}

/* Inputs belong to the --before or --after that they follow. */
static void parse_report(struct fn_report *report, const struct option *options, int argc,
			 const char **argv)
{
	const int flags = PARSE_OPT_STOP_AT_NON_OPTION | PARSE_OPT_KEEP_DASHDASH;

	while ((argc = parse_options(argc, argv, options, functions_report_usage, flags)) &&
	       strcmp(argv[0], "--"))
		add_path(report, argv[0]);
	for (int i = 1; i < argc; i++)
		add_path(report, argv[i]);
}

/* An option with a value, which has no form --no-NAME. */
#define OPT_VALUE(s, l, v, a, h, f, d)						\
	{ .type = OPTION_CALLBACK, .short_name = (s), .long_name = (l), .value = (v),	\
	  .argh = (a), .help = (h), .callback = (f), .data = (d), .flags = PARSE_OPT_NONEG }

/* Left out of -h, which fits on a screen. */
static const char *const only_in_manual[] = {
	"addr2line", "demangle", "force", "full-source-path", "kallsyms", "stdio",
	"verbose", NULL
};

static const char *const only_of_top[] = { "count", "delay", "last", NULL };

/* Of top, perf record has some of these names. */
static const char *const only_of_report[] = {
	"after", "before", "cpu", "diff", "fail-on", "force", "input", "interval", "metrics",
	"pid", "single-run", "sums", "tid", "time", "tui", "verbose", NULL
};

static bool has_word(const char *const *words, const char *word)
{
	while (word && *words && strcmp(*words, word))
		words++;
	return word && *words;
}

/* Returns the options of report or top, without groups that are empty; NULL without memory. */
static struct option *choose_options(const struct option *options, size_t nr, bool is_top)
{
	struct option *chosen = calloc(nr, sizeof(*chosen)), *to = chosen;

	for (size_t i = 0; chosen && i < nr; i++) {
		const char *name = options[i].long_name;

		if (has_word(is_top ? only_of_report : only_of_top, name))
			continue;
		if (to > chosen && to[-1].type == OPTION_GROUP && !name)
			to--;
		*to = options[i];
		if (has_word(only_in_manual, name))
			to->flags |= PARSE_OPT_HIDDEN;
		/* -c belongs to perf record, and -d is a delay. */
		if (is_top && (to->value == &symbol_conf.comm_list_str ||
			       to->value == &symbol_conf.dso_list_str))
			to->short_name = 0;
		to++;
	}
	return chosen;
}

static struct option *make_options(struct fn_report *report, bool is_top)
{
	const struct option options[] = {
	OPT_GROUP("Tables:"),
	OPT_VALUE('d', "delay", &report->delay, "seconds",
		  "seconds from one table to the next (default: 2)", parse_number, delays),
	OPT_VALUE(0, "last", &report->last, "seconds",
		  "seconds that a table covers (default: 30; 0: all since the start)", parse_number,
		  lasts),
	OPT_UINTEGER(0, "count", &report->count, "end after this number of tables"),
	OPT_GROUP("Input:"),
	OPT_STRING('i', "input", &input_name, "file", "input file name"),
	OPT_BOOLEAN('f', "force", &report->options.force, "don't do ownership validation"),
	OPT_GROUP("Samples and windows:"),
	OPT_STRING(0, "pid", &symbol_conf.pid_list_str, "pids",
		   "count only samples and windows in these processes"),
	OPT_STRING(0, "tid", &symbol_conf.tid_list_str, "tids",
		   "count only samples and windows in these threads"),
	OPT_STRING('C', "cpu", &report->cpus, "cpus",
		   "count only samples and windows on these CPUs"),
	OPT_STRING(0, "time", &report->options.time, "span",
		   "count only samples and windows in this span of time"),
	/* As perf report has them. --comm, --dso and --symbol abbreviate them. */
	OPT_STRING('c', "comms", &symbol_conf.comm_list_str, "comms",
		   "count only samples and windows in these comms"),
	OPT_STRING('d', "dsos", &symbol_conf.dso_list_str, "dsos",
		   "count only samples and windows in these DSOs"),
	OPT_STRING('S', "symbols", &symbol_conf.sym_list_str, "names",
		   "count only samples and windows in these symbols"),
	OPT_STRING(0, "source", &report->source, "name",
		   "windows, samples, branches, operations or best (default)"),
	OPT_GROUP("Rows:"),
	OPT_VALUE(0, "interval", &report->interval, "s",
		  "print a table for each span of this number of seconds", parse_number, spans),
	OPT_STRING(0, "by", &report->by_name, "keys",
		   "symbol, dso, comm, thread, process, cpu, pmu, srcline, callchain or cgroup"),
	OPT_BOOLEAN(0, "children", &report->children,
		    "count for a function all that it calls, too (record with --call-graph fp)"),
	OPT_BOOLEAN(0, "stitch-lbr", &report->options.stitch_lbr,
		    "with --children: lengthen call chains of LBRs by those of earlier samples"),
	OPT_BOOLEAN(0, "inline", &report->options.inlines,
		    "give inlined functions rows of their own"),
	OPT_STRING('s', "sort", &report->sort, "column",
		   "sort by this column, or by symbol (default: %CY, else another share or #)"),
	OPT_UINTEGER(0, "limit", &report->limit, "print only this number of functions"),
	OPT_VALUE(0, "percent-limit", &report->percent_limit, "%",
		  "leave out functions with a smaller share", parse_number, percents),
	OPT_GROUP("Columns and metrics:"),
	OPT_STRING('M', "metrics", &report->metrics, "list",
		   "print these metrics of the recorded CPU (see perf list metric)"),
	OPT_STRING('F', "fields", &report->fields, "list",
		   "print only these columns, in this order; events by name are their numbers"),
	OPT_GROUP("Uncertainty:"),
	OPT_BOOLEAN(0, "ci", &report->with_ci, "print the 95 % interval of each metric"),
	OPT_GROUP("Comparison:"),
	OPT_BOOLEAN(0, "diff", &report->diff,
		    "print what has changed from the first input to the second"),
	OPT_VALUE(0, "before", report, "files",
		  "compare several runs: those before a change", add_to_side, NULL),
	OPT_VALUE(0, "after", report, "files", "compare several runs: those after the change",
		  add_to_side, NULL),
	OPT_VALUE(0, "fail-on", &report->fail_on, "threshold",
		  "exit status 2 if the 95 % interval says that a metric has risen more, as in CPI>5%, or fallen, as in CPI<-5%",
		  add_limits, NULL),
	OPT_BOOLEAN(0, "single-run", &report->single_run,
		    "mark and check changes although there is one run of each side"),
	OPT_GROUP("Output:"),
	OPT_STRING(0, "sums", &report->sums, "file",
		   "write the sums to this file (- for stdout) and print no metrics"),
	OPT_BOOLEAN(0, "stdio", &report->stdio,
		    "print text: without a screen, one table after the other"),
	OPT_BOOLEAN(0, "tui", &report->tui, "browse the table"),
	OPT_INCR('v', "verbose", &verbose, "be more verbose"),
	OPT_STRING_NOEMPTY('x', "field-separator", &report->separator, "separator",
			   "print values with all their digits and this separator"),
	OPT_BOOLEAN('j', "json", &report->json,
		    "print JSON with all events, metrics and 95 % intervals"),
	OPT_GROUP("Symbols and code (perf-functions(1) has more options):"),
	OPT_STRING('k', "vmlinux", &symbol_conf.vmlinux_name, "file", "vmlinux pathname"),
	OPT_STRING(0, "kallsyms", &symbol_conf.kallsyms_name, "file", "kallsyms pathname"),
	OPT_VALUE(0, "symfs", NULL, "folder",
		  "look for files with symbols relative to this folder", symbol__config_symfs,
		  NULL),
	OPT_STRING(0, "addr2line", &symbol_conf.addr2line_path, "path",
		   "path to addr2line, for lines and inlined functions"),
	OPT_BOOLEAN(0, "full-source-path", &srcline_full_filename,
		    "print the full path of source files"),
	OPT_BOOLEAN(0, "demangle", &symbol_conf.demangle,
		    "demangle symbol names, which is the default"),
	OPT_END()
	};

	return choose_options(options, ARRAY_SIZE(options), is_top);
}

static int cmd_functions_report(int argc, const char **argv, bool tui_is_default)
{
	struct fn_report report = { .side = FN_NO_SIDE };
	struct option *options = make_options(&report, /*is_top=*/false);
	int err = -1;

	report.inputs = calloc(argc + 1, sizeof(*report.inputs));
	if (!options || !report.inputs)
		goto out;
	parse_report(&report, options, argc, argv);
	/* perf takes it for the CPU of this machine, and its tables of events may not have it. */
	if (getenv("PERF_CPUID")) {
		fn_metrics__cpu = strdup(getenv("PERF_CPUID"));
		unsetenv("PERF_CPUID");
	}
	report.wants_tui = report.tui && !report.stdio;
	report.tui = (report.tui || tui_is_default) && !report.stdio;
	err = prepare(&report);
	if (!err)
		err = report.diff ? fn_explain(fn_compare(&report)) : report_table(&report);
	fputs(fn_report__release_messages(&report), stderr);
	free(fn_metrics__cpu);
out:
	fn_report__exit(&report);
	free(options);
	return err < 0 ? -1 : err;
}

/* Calls perf record. It returns -1 if an event does not open (and seldom for another reason). */
static int call_record(const struct fn_record *record)
{
	int ret;

	record_options = record->options;
	ret = cmd_record(record->argc, record->argv);
	if (ret == -1)
		fn_record__explain(record);
	return ret;
}

/* The streams of the program that perf record runs for top. It does not outlive perf record. */
static struct {
	int in, err;
} streams = { -1, -1 };

static void separate_program(void)
{
	if (streams.in >= 0)
		dup2(streams.in, STDIN_FILENO);
	dup2(streams.err, STDERR_FILENO);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* This process is perf record, so what it forks is the program. */
static int record_for_top(struct fn_report *report, int said, bool has_screen)
{
	streams.err = has_screen ? open("/dev/null", O_RDWR | O_CLOEXEC) :
				   fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	streams.in = has_screen ? streams.err : -1;
	if (streams.err < 0 || pthread_atfork(NULL, NULL, separate_program) ||
	    dup2(said, STDERR_FILENO) < 0)
		return -1;
	return call_record(report->record);
}

/* Pipes must not get the number of a stream that is closed. Returns false, after a message. */
static bool prepare_streams(void)
{
	int fd;

	if (fcntl(STDOUT_FILENO, F_GETFD) < 0) {
		fn_err("cannot write the table: %s: send the output elsewhere", strerror(errno));
		return false;
	}
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	close(fd);
	return true;
}

static int run_top(struct fn_report *report, int argc, const char **argv,
		   const struct option *own)
{
	/*
	 * perf record wakes up when a buffer is half full. Without the right to lock as much memory
	 * as this takes, each buffer is as large as the user may have it.
	 */
	static const char *const buffers[] = { "-m", "1M", NULL };
	struct fn_record *record = report->record;
	char control[32];
	const char *const arguments[] = { "-B", "-o", "-", control, NULL };
	int fds[2];

	if (!prepare_streams())
		return -1;
	if (pipe2(fds, O_CLOEXEC)) {
		fn_err("cannot start: %m: `ulimit -a` shows the limits");
		return -1;
	}
	scnprintf(control, sizeof(control), "--control=fd:%d", fds[0]);
	record->own = own;
	record->defaults = perf_cap__capable(CAP_IPC_LOCK) ? buffers : NULL;
	record->arguments = arguments;
	if (fn_record__init(record, record_options, argc, argv))
		return -1;
	report->metrics = record->metrics;
	if (prepare(report))
		return -1;
	return fn_top__run(report, fds);
}

static int cmd_functions_top(int argc, const char **argv)
{
	struct fn_record record = { .usage = functions_top_usage, .without = not_of_top };
	struct fn_report report = {
		.delay = 2, .last = 30, .record = &record, .call_record = record_for_top,
	};
	struct option *own = make_options(&report, /*is_top=*/true);
	int ret = own ? run_top(&report, argc, argv, own) : -1;

	fn_report__exit(&report);
	fn_record__exit(&record);
	free(own);
	return ret;
}

static int cmd_functions_record(int argc, const char **argv)
{
	struct fn_record record = { .usage = functions_record_usage };
	int ret = fn_record__init(&record, record_options, argc, argv);

	if (!ret)
		ret = call_record(&record);
	fn_record__exit(&record);
	return ret;
}

static void print_no_command(const char *name)
{
	char *printable = function_text__printable(name);

	fn_err("unknown command '%s': %s", printable ?: "", !strcmp(name, "diff") ?
	       "compare with perf functions report --diff BEFORE AFTER" :
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
