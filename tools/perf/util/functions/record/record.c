// SPDX-License-Identifier: GPL-2.0
/* Turns the arguments of perf functions record into arguments of perf record. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <subcmd/parse-options.h>

#include "../../debug.h"
#include "../../strbuf.h"
#include "../../event.h"
#include "../text.h"
#include "leaders.h"
#include "record.h"

#define DEFAULT_PERIOD	999700
#define DEFAULT_WINDOW	300
/* If members sample, too: of all events on a CPU. At 5 GHz the leader takes half of them. */
#define DEFAULT_RATE	4000
#define DEFAULT_SAMPLED_PERIOD	4999700
/* Without windows, each interval counts as one. */
#define PLAIN_PERIOD	1000
/* The shortest window or interval that suits a clock, in ns. */
#define CLOCK_WINDOW	20000
/*
 * Breaks the resonance with loops as long as the default period and window together, or a fraction
 * of that: 2^N >= 1,000,000 / 4.
 */
#define DEFAULT_JITTER	18
#define DEFAULT_SAMPLED_JITTER	21
/* The most arguments that are added to the user's. */
#define MOST_ARGUMENTS	20

/* An option that takes a number. */
struct number {
	u64 value;
	u64 least;
	u64 most;
	bool is_given;
	bool is_wrong;
};

/* The parsed options: arguments for perf record, without those of this command. */
struct parsed {
	char **argv;
	int argc;
	bool has_events;
	bool has_target;
	bool is_of_cpus;
	bool is_of_threads;
	bool no_inherit;
	bool is_verbose;
	bool is_quiet;
	bool kernel;
	bool windows_only;
	bool alt_period;
	bool branches;
	bool has_branches;	/* the user has chosen them, or not to have them */
	bool has_filter;	/* other options of perf record choose branches */
	const char *metrics;
	/* --period or -c, and -F, which the command without alternate periods does not get. */
	const char *count;
	const char *freq;
	const char *output;
	struct number window;
	struct number jitter;
	struct number burst;
};

static int add_argument(struct parsed *parsed, const char *format, ...)
{
	char **argv = realloc(parsed->argv, (parsed->argc + 1) * sizeof(*argv));
	va_list args;
	int ret;

	if (!argv)
		return -ENOMEM;
	parsed->argv = argv;
	va_start(args, format);
	ret = vasprintf(&argv[parsed->argc], format, args);
	va_end(args);
	if (ret < 0)
		return -ENOMEM;
	parsed->argc++;
	return 0;
}

static void note_option(struct parsed *parsed, const struct option *opt, int unset)
{
	const char *name = opt->long_name ?: "";

	switch (opt->short_name) {
	case 'a':
	case 'C':
		parsed->is_of_cpus |= !unset;
		break;
	case 'e':
		parsed->has_events = true;
		break;
	case 'i':
		parsed->no_inherit = !unset;
		break;
	case 'p':
	case 'u':
		parsed->has_target = true;
		break;
	case 'q':
		parsed->is_quiet = !unset;
		break;
	case 't':
		parsed->is_of_threads = true;
		break;
	case 'v':
		parsed->is_verbose = !unset;
		break;
	default:
		if (!strcmp(name, "per-thread"))
			parsed->is_of_threads = !unset;
		else if (!strcmp(name, "alt-period"))
			parsed->alt_period = !unset;
		break;
	}
}

/* Stores an option of perf record, with the argument that parse_options() has found. */
static int take_option(const struct option *opt, const char *arg, int unset)
{
	const char *name = opt->long_name;
	struct parsed *parsed = opt->value;

	note_option(parsed, opt, unset);
	parsed->has_filter |= opt->short_name == 'j' || (name && !strcmp(name, "branch-any")) ||
			      (name && !strcmp(name, "call-graph") && arg && strstarts(arg, "lbr"));
	if (opt->short_name == 'o')
		parsed->output = arg;
	if (opt->short_name == 'c' && arg) {
		parsed->count = arg;
		return 0;
	}
	if (name && !strcmp(name, "freq") && arg) {
		parsed->freq = arg;
		return 0;
	}
	if (unset)
		return strstarts(name, "no-") ? add_argument(parsed, "--%s", name + 3) :
						add_argument(parsed, "--no-%s", name);
	if (!opt->short_name || (arg && name && opt->flags & PARSE_OPT_OPTARG))
		return add_argument(parsed, "--%s%s%s", name, arg ? "=" : "", arg ?: "");
	if (arg && opt->flags & PARSE_OPT_OPTARG)
		return add_argument(parsed, "-%c%s", opt->short_name, arg);
	return add_argument(parsed, "-%c", opt->short_name) ?:
	       (arg ? add_argument(parsed, "%s", arg) : 0);
}

/* Errors are reported when all options are known. */
static int take_number(const struct option *opt, const char *arg, int unset)
{
	struct number *number = opt->value;

	number->is_given = true;
	if (unset) {
		number->is_wrong = false;
		number->value = number->least;
		return 0;
	}
	number->is_wrong = function_text__u64(arg, 10, &number->value) ||
			   number->value < number->least || number->value > number->most;
	return 0;
}

/* Returns true if an option of perf record never has an argument. */
static bool has_no_argument(const struct option *opt)
{
	return opt->type == OPTION_BOOLEAN || opt->type == OPTION_INCR ||
	       opt->type == OPTION_BIT || opt->type == OPTION_SET_UINT ||
	       opt->type == OPTION_SET_PTR;
}

static unsigned int nr_options(const struct option *options)
{
	unsigned int nr = 0;

	while (options && options[nr].type != OPTION_END)
		nr++;
	return nr;
}

/* Removes the names of an option of perf record that earlier options have. */
static void drop_names(struct option *opt, const struct option *first)
{
	for (; first < opt; first++) {
		if (opt->short_name && opt->short_name == first->short_name)
			opt->short_name = 0;
		if (opt->long_name && first->long_name &&
		    !strcmp(opt->long_name, first->long_name))
			opt->long_name = NULL;
	}
}

static bool is_among(const char *name, const char *const *names)
{
	for (; name && names && *names; names++) {
		if (!strcmp(name, *names))
			return true;
	}
	return false;
}

/* Returns the options of the command, with those of perf record, which take_option() takes. */
static struct option *own_options(const struct option *options,
				  const struct function_recorder *recorder, struct parsed *parsed)
{
	const struct option ours[] = {
		OPT_GROUP("What to count:"),
		OPT_STRING('M', "metrics", &parsed->metrics, "metric or group[,...]",
			   "record the events of these metrics of this CPU (see perf list metric)"),
		OPT_BOOLEAN(0, "kernel", &parsed->kernel, "count the kernel, too"),
		OPT_GROUP("How to sample:"),
		{ .type = OPTION_STRING, .long_name = "period", .value = &parsed->count,
		  .argh = "n", .flags = PARSE_OPT_NONEG,
		  .help =
		  "events in a long period, as -c (default: 4999700, --windows-only: 999700)" },
		OPT_CALLBACK(0, "window", &parsed->window, "n",
			     "events of the leader in a window (default: 300; --no-window: a plain period, default 1000)",
			     take_number),
		OPT_BOOLEAN(0, "windows-only", &parsed->windows_only,
			    "let only leaders sample; members are read"),
		OPT_CALLBACK(0, "jitter", &parsed->jitter, "n",
			     "vary each period by up to 2^n events, at most by half (default: 21, --windows-only: 18; --no-jitter: none)",
			     take_number),
		OPT_CALLBACK(0, "burst", &parsed->burst, "n",
			     "windows after each long period, 1 to 255 (default: 1)",
			     take_number),
		OPT_BOOLEAN_SET('b', "branches", &parsed->branches, &parsed->has_branches,
				"sample the last branches, too (default: if they have cycles)"),
		OPT_GROUP("All options of perf record, too: see perf record -h"),
	};
	const unsigned int nr_more = nr_options(recorder->options);
	struct option *own, *opt;

	own = calloc(nr_more + ARRAY_SIZE(ours) + nr_options(options) + 1, sizeof(*own));
	if (!own)
		return NULL;

	if (nr_more)
		memcpy(own, recorder->options, nr_more * sizeof(*own));
	memcpy(own + nr_more, ours, sizeof(ours));
	for (opt = own + nr_more + ARRAY_SIZE(ours); options->type != OPTION_END; options++) {
		*opt = *options;
		if (opt->type != OPTION_GROUP) {
			/* For example, -P loses its long name. */
			drop_names(opt, own);
			if ((!opt->short_name && !opt->long_name) ||
			    is_among(opt->long_name, recorder->without))
				continue;
			if (has_no_argument(opt))
				opt->flags |= PARSE_OPT_NOARG;
			opt->flags |= PARSE_OPT_HIDDEN;
			opt->type = OPTION_CALLBACK;
			opt->callback = take_option;
			opt->value = parsed;
			opt->set = NULL;
		}
		opt++;
	}
	*opt = *options;
	return own;
}

/* Returns true, after a message, if an option has an invalid value. */
static bool record_refuse_numbers(const struct parsed *parsed)
{
	const struct {
		const char *name;
		const struct number *number;
	} numbers[] = {
		{ "window", &parsed->window }, { "jitter", &parsed->jitter },
		{ "burst", &parsed->burst },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		const struct number *number = numbers[i].number;

		if (!number->is_wrong)
			continue;
		pr_err("perf functions: --%s takes a number from %llu to %llu\n", numbers[i].name,
		       (unsigned long long)number->least, (unsigned long long)number->most);
		return true;
	}
	return false;
}

/* Returns true if members sample, too. */
static bool has_samples(const struct parsed *parsed)
{
	return parsed->window.value && !parsed->windows_only;
}

/* Returns true if the user has asked for windows, or for plain periods that are as short. */
static bool wants_windows(const struct parsed *parsed)
{
	return !has_samples(parsed) || parsed->window.is_given || parsed->burst.is_given ||
	       (parsed->jitter.is_given && parsed->jitter.value);
}

static u64 default_period(const struct parsed *parsed)
{
	return has_samples(parsed) ? DEFAULT_SAMPLED_PERIOD :
	       parsed->window.value ? DEFAULT_PERIOD : PLAIN_PERIOD;
}

/* Returns true, after a message, if options contradict each other. */
static bool refuse_options(const struct parsed *parsed)
{
	u64 period = parsed->freq || parsed->has_events ? 0 : default_period(parsed);

	if (record_refuse_numbers(parsed))
		return true;
	if (parsed->count && (function_text__u64(parsed->count, 10, &period) || !period ||
			      period > INT64_MAX)) {
		pr_err("perf functions: --period (-c) takes a number from 1 to %llu\n",
		       (unsigned long long)INT64_MAX);
		return true;
	}
	if (parsed->alt_period) {
		pr_err("perf functions: --alt-period is of perf record and alternates members, too: use --window\n");
		return true;
	}
	if (parsed->metrics && !*parsed->metrics) {
		pr_err("perf functions: -M takes names of metrics or groups: see perf list metric\n");
		return true;
	}
	if (parsed->has_events && parsed->metrics) {
		pr_err("perf functions: -M chooses the events, so it does not go with -e: leave out one of them\n");
		return true;
	}
	if (parsed->has_events && parsed->kernel) {
		pr_err("perf functions: --kernel does not go with -e: leave out --kernel, and the modifier u of the events\n");
		return true;
	}
	if (!parsed->window.value && ((parsed->jitter.is_given && parsed->jitter.value) ||
				      parsed->burst.value > 1)) {
		pr_err("perf functions: --jitter and --burst need windows: leave --no-window out\n");
		return true;
	}
	if (parsed->count && parsed->freq) {
		pr_err("perf functions: -c sets a period and -F a frequency: leave out one of them\n");
		return true;
	}
	if (period && parsed->window.value > period) {
		pr_err("perf functions: a window of %llu is longer than the period: take a shorter one (--window), or a plain period (--no-window)\n",
		       (unsigned long long)parsed->window.value);
		return true;
	}
	if (parsed->kernel && !perf_event_paranoid_check(1)) {
		pr_err("perf functions: --kernel needs more rights: run as root, or set sysctl kernel.perf_event_paranoid=1\n");
		return true;
	}
	return false;
}

static struct function_sampling sampling_of(const struct parsed *parsed, bool has_command,
					    bool is_live)
{
	const struct number *window = &parsed->window, *jitter = &parsed->jitter;
	const bool has_long_jitter = has_samples(parsed) && !jitter->is_given;

	return (struct function_sampling){
		.period		= parsed->count || parsed->freq ? 0 : default_period(parsed),
		.rate		= has_samples(parsed) ? DEFAULT_RATE : 0,
		.window		= window->value,
		.jitter		= !window->value ? 0 :
				  has_long_jitter ? DEFAULT_SAMPLED_JITTER : jitter->value,
		.burst		= parsed->burst.value,
		.branches	= parsed->branches ? FUNCTION_BRANCHES_ALL :
				  parsed->has_branches || parsed->has_filter || is_live ||
				  parsed->windows_only ?
				  FUNCTION_BRANCHES_NONE : FUNCTION_BRANCHES_AUTO,
		.has_window	= window->is_given,
		.has_jitter	= parsed->jitter.is_given && parsed->jitter.value,
		.has_burst	= parsed->burst.is_given,
		.with_children	= (has_command || parsed->has_target) && !parsed->is_of_cpus &&
				  !parsed->is_of_threads && !parsed->no_inherit &&
				  !parsed->is_quiet,
	};
}

/* Returns the sampling as terms of an event. */
static char *terms_of(const struct function_sampling *sampling)
{
	const struct {
		const char *name;
		u64 value;
	} all[] = {
		/* The terms of an event take precedence over -c and -F. */
		{ "period", sampling->period },
		{ "alt-period", sampling->window },
		{ "alt-period-jitter", sampling->jitter },
		{ "alt-period-count", sampling->burst > 1 ? sampling->burst : 0 },
	};
	struct strbuf terms = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].value)
			strbuf_addf(&terms, "%s%s=%llu", terms.len ? "," : "", all[i].name,
				    (unsigned long long)all[i].value);
	}
	return terms.len ? strbuf_detach(&terms, NULL) : strdup("");
}

static char *leader_of(const struct function_sampling *sampling)
{
	/* If members sample, function_leaders__sample() sets what the kernel is able to do. */
	char *terms = sampling->rate ? strdup("") : terms_of(sampling), *leader = NULL;

	if (terms && asprintf(&leader, *terms ? "cycles/%s/" : "cycles%s", terms) < 0)
		leader = NULL;
	free(terms);
	return leader;
}

/* Returns the events to record without -e, NULL if there are none. */
static char *record_events_of(const struct function_recorder *recorder, const struct parsed *parsed,
			      const struct function_sampling *sampling)
{
	/* No guests: their functions are unknown here, and they may have the counters. */
	const char *modifiers = parsed->kernel ? "H" : "uH";
	char *leader = leader_of(sampling), *events = NULL;

	if (leader)
		events = recorder->groups(leader, modifiers, parsed->metrics, parsed->is_verbose);
	free(leader);
	return events;
}

/* Adds a word, quoted for a shell. */
static void quote(struct strbuf *text, const char *word)
{
	if (*word && !word[strcspn(word, " \t\n'\"\\|&;<>(){}$`*?[]#~!")]) {
		strbuf_addf(text, " %s", word);
		return;
	}
	strbuf_addstr(text, " '");
	for (; *word; word++) {
		if (*word == '\'')
			strbuf_addstr(text, "'\\'");
		strbuf_addch(text, *word);
	}
	strbuf_addch(text, '\'');
}

static char *quote_all(const char *program, int nr, const char *const *argv)
{
	struct strbuf text = STRBUF_INIT;

	strbuf_addstr(&text, program);
	for (int i = 0; i < nr; i++)
		quote(&text, argv[i]);
	return strbuf_detach(&text, NULL);
}

/* Returns true if a leader among the events of -e is a clock. */
static bool has_clock(const char *events)
{
	bool is_leader = true, in_group = false, in_terms = false;

	for (; *events; events++) {
		if (is_leader && (strstarts(events, "cpu-clock") ||
				  strstarts(events, "task-clock")))
			return true;
		in_terms ^= *events == '/';
		in_group = *events == '{' || (in_group && *events != '}');
		is_leader = *events == '{' || (*events == ',' && !in_group && !in_terms);
	}
	return false;
}

/* Adds the events of -e with @period instead of their terms for periods and frequencies. */
static void add_plain_events(struct strbuf *text, const char *events, unsigned int period)
{
	bool has_period = false;

	while (*events) {
		size_t length = strcspn(events, ",/");
		bool is_rate = strstarts(events, "period=") || strstarts(events, "freq=") ||
			       strstarts(events, "alt-period");

		if (!is_rate)
			strbuf_add(text, events, length);
		else if (!has_period)
			strbuf_addf(text, "period=%u", period);
		else if (text->len)
			strbuf_setlen(text, text->len - 1);	/* a comma */
		events += length;
		has_period = (has_period || is_rate) && *events != '/';
		if (*events)
			strbuf_addch(text, *events++);
	}
}

/* Adds the options for perf record, with the events in a plain form, or without them. */
static void add_options(struct strbuf *text, const struct parsed *parsed, bool has_events,
			unsigned int period)
{
	for (int i = 0; i < parsed->argc; i++) {
		bool is_events = !strcmp(parsed->argv[i], "-e") && i + 1 < parsed->argc;
		struct strbuf events = STRBUF_INIT;

		if (!is_events || has_events)
			quote(text, parsed->argv[i]);
		if (!is_events)
			continue;
		add_plain_events(&events, parsed->argv[++i], period);
		if (has_events)
			quote(text, events.buf);
		strbuf_release(&events);
	}
}

/*
 * Returns a command that records without alternate periods, by the clock, or both. With both, each
 * event samples itself, unless the user has asked for windows.
 */
static char *way_of(const struct function_recorder *recorder, const struct parsed *parsed, int argc,
		    const char **argv, bool is_plain, bool by_clock)
{
	unsigned int period = by_clock ? CLOCK_WINDOW : PLAIN_PERIOD;
	bool has_periods = !is_plain || !by_clock || wants_windows(parsed);
	struct strbuf text = STRBUF_INIT;

	for (int i = 0; i + 1 < parsed->argc; i++) {
		if (strcmp(parsed->argv[i], "-e"))
			continue;
		if (has_clock(parsed->argv[i + 1]))
			period = CLOCK_WINDOW;
		has_periods |= !!strstr(parsed->argv[i + 1], "alt-period=");
	}
	strbuf_addf(&text, "perf functions %s", recorder->name);
	if (has_periods)
		strbuf_addf(&text, " %s %u", is_plain ? "--no-window --period" : "--window",
			    period);
	if (by_clock)
		strbuf_addf(&text, " -e '{cpu-clock,page-faults}:%sS'", parsed->kernel ? "" : "u");
	else if (parsed->kernel)
		strbuf_addstr(&text, " --kernel");
	if (parsed->has_branches && !by_clock)
		strbuf_addstr(&text, parsed->branches ? " -b" : " --no-branches");
	if (parsed->metrics && !by_clock) {
		strbuf_addstr(&text, " -M");
		quote(&text, parsed->metrics);
	}
	add_options(&text, parsed, !by_clock, period);
	for (int i = 0; i < argc; i++)
		quote(&text, argv[i]);
	return strbuf_detach(&text, NULL);
}

/* Adds the arguments of perf record; the command to run comes last. */
static void add_arguments(struct function_record *record, const struct parsed *parsed,
			  const struct function_recorder *recorder, int argc, const char **argv)
{
	const char *const *first = recorder->defaults, *const *last = recorder->arguments;
	int nr = 0;

	record->argv[nr++] = "record";
	record->argv[nr++] = "-T";
	record->argv[nr++] = "--sample-cpu";
	if (record->group) {
		record->argv[nr++] = "-e";
		record->argv[nr++] = record->group;
	}
	while (first && *first)
		record->argv[nr++] = *first++;
	for (int i = 0; i < parsed->argc; i++)
		record->argv[nr++] = parsed->argv[i];
	if (parsed->count) {
		record->argv[nr++] = "-c";
		record->argv[nr++] = parsed->count;
	}
	if (parsed->freq) {
		record->argv[nr++] = "-F";
		record->argv[nr++] = parsed->freq;
	}
	while (last && *last)
		record->argv[nr++] = *last++;
	for (int i = 0; i < argc; i++)
		record->argv[nr++] = argv[i];
	record->argc = nr;
}

/**
 * function_record__init - make the arguments of perf record
 * @record: the arguments, to be freed by function_record__exit() in any case
 * @options: those of perf record, whose -e is changed: see function_leaders__sample()
 * @recorder: the command
 * @argc: number of its arguments
 * @argv: these arguments
 *
 * Prints the command with -v, or with -M unless it has @recorder->arguments, and what is wrong.
 *
 * Return: 0, or -1.
 */
int function_record__init(struct function_record *record, struct option *options,
			  const struct function_recorder *recorder, int argc, const char **argv)
{
	struct parsed parsed = {
		.window = { .value = DEFAULT_WINDOW, .most = INT64_MAX },
		.jitter = { .value = DEFAULT_JITTER, .most = 30 },
		.burst	= { .value = 1, .least = 1, .most = 255 },
	};
	struct option *own = own_options(options, recorder, &parsed);
	struct function_sampling sampling;
	bool shows_metrics;
	char *command;

	*record = (struct function_record){};
	if (!own)
		return -1;
	argc = parse_options(argc, argv, own, recorder->usage,
			     PARSE_OPT_STOP_AT_NON_OPTION | PARSE_OPT_KEEP_DASHDASH);
	free(own);
	record->parsed = parsed.argv;
	record->nr_parsed = parsed.argc;
	record->metrics = parsed.metrics;
	if (!recorder->arguments)
		record->output = parsed.output ?: "perf.data";
	record->argv = calloc(parsed.argc + argc + MOST_ARGUMENTS, sizeof(*record->argv));
	if (!record->argv || refuse_options(&parsed))
		return -1;

	sampling = sampling_of(&parsed, argc > (argc && !strcmp(argv[0], "--")),
			       recorder->arguments);
	if (function_leaders__sample(options, &sampling, &record->ways))
		return -1;
	if (!parsed.has_events) {
		record->group = record_events_of(recorder, &parsed, &sampling);
		if (!record->group)
			return -1;
	}
	record->ways = (struct function_ways){
		.plain = way_of(recorder, &parsed, argc, argv, true, false),
		.clock = way_of(recorder, &parsed, argc, argv, false, true),
		.plain_clock = way_of(recorder, &parsed, argc, argv, true, true),
	};
	add_arguments(record, &parsed, recorder, argc, argv);
	command = quote_all("perf", record->argc, record->argv);
	shows_metrics = parsed.metrics && !recorder->arguments;
	if (parsed.is_verbose)
		pr_info("calling: %s\n", command);
	if (shows_metrics)
		fprintf(stderr, "%s\n", command);
	if ((parsed.is_verbose && parsed.has_events) ||
	    ((parsed.is_verbose || shows_metrics) && sampling.rate)) {
		char *terms = terms_of(&sampling);

		if (terms && *terms)
			fprintf(stderr, "leaders without periods of their own have: %s\n", terms);
		if (sampling.rate)
			fprintf(stderr,
				"events that sample share %llu samples a second, %llu if a leader alternates\n",
				(unsigned long long)sampling.rate,
				(unsigned long long)function_sampling__members(&sampling));
		free(terms);
	}
	free(command);
	return 0;
}

/**
 * function_record__exit - free what the arguments hold
 * @record: the arguments
 */
void function_record__exit(struct function_record *record)
{
	for (int i = 0; i < record->nr_parsed; i++)
		free(record->parsed[i]);
	free(record->parsed);
	free(record->group);
	free(record->ways.plain);
	free(record->ways.clock);
	free(record->ways.plain_clock);
	free(record->argv);
}
