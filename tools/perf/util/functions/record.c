// SPDX-License-Identifier: GPL-2.0
/*
 * The arguments of perf functions record, and those of perf record made of them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <subcmd/parse-options.h>

#include "../debug.h"
#include "groups.h"
#include "record.h"

static const char *const record_usage[] = {
	"perf functions record [-M <metrics>] [--burst <n>] [<perf record options>] [--] <command>",
	NULL
};

/* What options were given: arguments for perf record, save those of this command. */
struct parsed {
	char **argv;
	int argc;
	bool has_events;
	bool has_rate;
	bool is_verbose;
	const char *metrics;
	unsigned int burst;
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

/* An option of perf record, with what parse_options() has found to be its argument. */
static int take_option(const struct option *opt, const char *arg, int unset)
{
	const char *name = opt->long_name;
	struct parsed *parsed = opt->value;

	parsed->has_events |= opt->short_name == 'e';
	parsed->has_rate |= opt->short_name == 'c' || opt->short_name == 'F';
	parsed->is_verbose |= opt->short_name == 'v' && !unset;
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

/* Whether an option of perf record never has an argument. */
static bool has_no_argument(const struct option *opt)
{
	return opt->type == OPTION_BOOLEAN || opt->type == OPTION_INCR ||
	       opt->type == OPTION_BIT || opt->type == OPTION_SET_UINT ||
	       opt->type == OPTION_SET_PTR;
}

/* The options of this command and those of perf record, which take_option() takes. */
static struct option *own_options(const struct option *options, struct parsed *parsed)
{
	const struct option ours[] = {
		OPT_STRING('M', "metrics", &parsed->metrics, "metric or group[,...]",
			   "record what these metrics of this CPU take (see perf list metric)"),
		OPT_UINTEGER(0, "burst", &parsed->burst,
			     "windows after each long interval, 1 to 255"),
	};
	struct option *own;
	unsigned int nr = 0;

	while (options[nr].type != OPTION_END)
		nr++;
	own = calloc(ARRAY_SIZE(ours) + nr + 1, sizeof(*own));
	if (!own)
		return NULL;

	memcpy(own, ours, sizeof(ours));
	memcpy(own + ARRAY_SIZE(ours), options, (nr + 1) * sizeof(*own));
	for (struct option *opt = own + ARRAY_SIZE(ours); opt->type != OPTION_END; opt++) {
		if (opt->type == OPTION_GROUP)
			continue;
		if (has_no_argument(opt))
			opt->flags |= PARSE_OPT_NOARG;
		opt->type = OPTION_CALLBACK;
		opt->callback = take_option;
		opt->value = parsed;
		opt->set = NULL;
	}
	return own;
}

/* The events to record where -e does not say, NULL if there are none. */
static char *events_of(const struct parsed *parsed)
{
	char count[32] = "", leader[64];

	if (parsed->burst > 1)
		scnprintf(count, sizeof(count), ",alt-period-count=%u", parsed->burst);
	/* The terms of an event are stronger than -c and -F. */
	scnprintf(leader, sizeof(leader), "cycles/%salt-period=300%s/",
		  parsed->has_rate ? "" : "period=999700,", count);
	return parsed->metrics ? function_groups__of_metrics(leader, parsed->metrics) :
				 function_groups__default(leader);
}

/* As a shell reads it. */
static void print_command(int nr, const char **argv)
{
	fputs("perf", stderr);
	for (int i = 0; i < nr; i++) {
		const char *arg = argv[i];

		if (*arg && !arg[strcspn(arg, " \t\n'\"\\|&;<>(){}$`*?[]#~!")]) {
			fprintf(stderr, " %s", arg);
			continue;
		}
		fputs(" '", stderr);
		for (; *arg; arg++)
			fprintf(stderr, "%s%c", *arg == '\'' ? "'\\'" : "", *arg);
		fputc('\'', stderr);
	}
	fputc('\n', stderr);
}

/**
 * function_record__init - make the arguments of perf record
 * @record: the arguments, to be freed by function_record__exit() in any case
 * @options: those of perf record
 * @argc: number of the arguments of perf functions record
 * @argv: these arguments
 *
 * Prints the command with -v or -M, and what is wrong.
 *
 * Return: 0, or -1.
 */
int function_record__init(struct function_record *record, const struct option *options,
			  int argc, const char **argv)
{
	struct parsed parsed = { .burst = 1, };
	struct option *own = own_options(options, &parsed);
	int nr = 0;

	*record = (struct function_record){};
	if (!own)
		return -1;
	argc = parse_options(argc, argv, own, record_usage,
			     PARSE_OPT_STOP_AT_NON_OPTION | PARSE_OPT_KEEP_DASHDASH);
	free(own);
	record->parsed = parsed.argv;
	record->nr_parsed = parsed.argc;
	record->argv = calloc(parsed.argc + argc + 6, sizeof(*record->argv));
	if (!record->argv)
		return -1;

	if (parsed.metrics && !*parsed.metrics) {
		pr_err("perf functions: -M takes names of metrics or groups: see perf list metric\n");
		return -1;
	}
	if (parsed.has_events && parsed.metrics) {
		pr_err("perf functions: -M chooses the events, so it does not go with -e\n");
		return -1;
	}
	if (!parsed.burst || parsed.burst > 255) {
		pr_err("perf functions: --burst takes a number from 1 to 255\n");
		return -1;
	}
	if (parsed.has_events && parsed.burst > 1) {
		pr_err("perf functions: --burst does not go with -e, but 'alt-period-count' in it does\n");
		return -1;
	}
	record->argv[nr++] = "record";
	record->argv[nr++] = "-T";
	record->argv[nr++] = "--sample-cpu";
	if (!parsed.has_events) {
		record->group = events_of(&parsed);
		if (!record->group)
			return -1;
		record->argv[nr++] = "-e";
		record->argv[nr++] = record->group;
	}
	for (int i = 0; i < parsed.argc; i++)
		record->argv[nr++] = parsed.argv[i];
	for (int i = 0; i < argc; i++)
		record->argv[nr++] = argv[i];
	record->argc = nr;

	if (parsed.is_verbose) {
		pr_info("calling: perf");
		for (int i = 0; i < nr; i++)
			pr_info(" %s", record->argv[i]);
		pr_info("\n");
	}
	if (parsed.metrics)
		print_command(nr, record->argv);
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
	free(record->argv);
}
