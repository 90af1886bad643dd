// SPDX-License-Identifier: GPL-2.0
/*
 * The arguments of perf functions record, and those of perf record made of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <subcmd/parse-options.h>

#include "../debug.h"
#include "groups.h"
#include "record.h"

static const struct option *find_option(const struct option *options, const char *name,
					size_t length, int short_name)
{
	for (const struct option *opt = options; opt->type != OPTION_END; opt++) {
		if (short_name ? opt->short_name == short_name :
		    opt->long_name && !strncmp(opt->long_name, name, length) &&
		    !opt->long_name[length])
			return opt;
	}
	return NULL;
}

static bool takes_argument(const struct option *opt)
{
	return opt && opt->type >= OPTION_STRING &&
	       !(opt->flags & (PARSE_OPT_NOARG | PARSE_OPT_OPTARG));
}

/*
 * Look for -e and -v among the options of perf record, which end where the
 * command begins.
 */
static void scan_options(const struct option *options, int argc, const char **argv,
			 bool *has_events, bool *is_verbose)
{
	for (int i = 0; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
		const char *arg = argv[i] + 1;

		if (*arg == '-') {
			size_t length = strcspn(++arg, "=");

			*has_events |= length == strlen("event") && strstarts(arg, "event");
			*is_verbose |= !strcmp(arg, "verbose");
			i += !arg[length] && takes_argument(find_option(options, arg, length, 0));
			continue;
		}
		for (; *arg; arg++) {
			const struct option *opt = find_option(options, NULL, 0, *arg);

			*has_events |= *arg == 'e';
			*is_verbose |= *arg == 'v';
			if (opt && opt->flags & PARSE_OPT_OPTARG)
				break;
			if (takes_argument(opt)) {
				i += !arg[1];
				break;
			}
		}
	}
}

/*
 * Take -M, which perf record has not, out of its options. Returns 0, or -EINVAL
 * if there is nothing behind it.
 */
static int take_metrics(const struct option *options, int *argc, const char **argv,
			const char **metrics)
{
	static const char *const names[] = { "-M", "--metrics=", "--metrics" };

	for (int i = 1; i < *argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
		const struct option *opt = NULL;
		const char *arg = argv[i];
		size_t name = 0, length;
		int nr = 1;

		while (name < ARRAY_SIZE(names) && !strstarts(arg, names[name]))
			name++;
		if (name == ARRAY_SIZE(names)) {
			length = strcspn(arg + 1, "=");
			if (arg[1] == '-')
				opt = find_option(options, arg + 2, length - 1, 0);
			else if (length == 1)
				opt = find_option(options, NULL, 0, arg[1]);
			i += opt && !arg[1 + length] && takes_argument(opt);
			continue;
		}
		*metrics = arg + strlen(names[name]);
		if (!**metrics && !strchr(arg, '=')) {
			*metrics = i + 1 < *argc ? argv[i + 1] : NULL;
			nr = 2;
		}
		if (!*metrics || !**metrics) {
			pr_err("perf functions: -M takes names of metrics or groups: see perf list metric\n");
			return -EINVAL;
		}
		memmove(argv + i, argv + i + nr, (*argc - i - nr) * sizeof(*argv));
		*argc -= nr;
		i--;
	}
	return 0;
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
 * @argv: these arguments; -M is taken out of them
 *
 * Prints the command with -v or -M, and what is wrong.
 *
 * Return: 0, or -1.
 */
int function_record__init(struct function_record *record, const struct option *options,
			  int argc, const char **argv)
{
	bool has_events = false, is_verbose = verbose > 0;
	const char *metrics = NULL;
	int nr = 0;

	record->group = NULL;
	record->argv = calloc(argc + 5, sizeof(*record->argv));
	if (!record->argv || take_metrics(options, &argc, argv, &metrics))
		return -1;

	record->argv[nr++] = "record";
	record->argv[nr++] = "-T";
	record->argv[nr++] = "--sample-cpu";
	scan_options(options, argc - 1, argv + 1, &has_events, &is_verbose);
	if (has_events && metrics) {
		pr_err("perf functions: -M chooses the events, so it does not go with -e\n");
		return -1;
	}
	if (!has_events) {
		record->group = metrics ? function_groups__of_metrics(metrics) :
					  function_groups__default();
		if (!record->group)
			return -1;
		record->argv[nr++] = "-e";
		record->argv[nr++] = record->group;
	}
	for (int i = 1; i < argc; i++)
		record->argv[nr++] = argv[i];
	record->argc = nr;

	if (is_verbose) {
		pr_info("calling: perf");
		for (int i = 0; i < nr; i++)
			pr_info(" %s", record->argv[i]);
		pr_info("\n");
	}
	if (metrics)
		print_command(nr, record->argv);
	return 0;
}

/**
 * function_record__exit - free what the arguments hold
 * @record: the arguments
 */
void function_record__exit(struct function_record *record)
{
	free(record->group);
	free(record->argv);
}
