// SPDX-License-Identifier: GPL-2.0
/*
 * Chooses the events that perf functions records, and how they sample; the rest of the command
 * line is that of perf record. What the kernel and the PMU can do is found out by opening events.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <api/fs/fs.h>
#include <subcmd/parse-options.h>

#include "../debug.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../header.h"
#include "../parse-events.h"
#include "../pmu.h"
#include "../pmus.h"
#include "../record.h"
#include "../strbuf.h"
#include "../strlist.h"
#include "../thread_map.h"
#include "../util.h"
#include "functions.h"

/* Events of the leader. The second one is with --windows-only, the third one without windows. */
#define PERIOD		4999700
#define LONE_PERIOD	999700
#define PLAIN_PERIOD	1000
#define WINDOW		300
/*
 * Breaks the resonance with loops as long as the period and the window together, or a fraction of
 * that: 2^N >= PERIOD / 4.
 */
#define JITTER		21
#define LONE_JITTER	18
/* Samples a second of all events on a CPU. At 5 GHz, windows of the leader take 2,000 of them. */
#define RATE		4000
#define RATE_BESIDE	1600
/* One event needs no more. */
#define MOST_RATE	1000
/* Operations from one that is followed to the next: RATE at 4 GHz, and the least. */
#define OPERATIONS	1000000
#define LEAST_OPERATIONS	4096
/* Page faults come in bursts, and a frequency would follow these late. */
#define FAULTS		"page-faults"
#define FAULTS_PERIOD	"period=7"
/* The most arguments that are added to the user's. */
#define MOST_ARGUMENTS	20

/* An option that takes a number. */
struct number {
	u64 value;
	bool is_given;
};

/* The command line. */
struct parsed {
	/* The arguments of perf record's options by their letters, "" if they have none. */
	const char *given[UCHAR_MAX + 1];
	struct strbuf events;		/* of -e */
	bool is_of_cpus;
	bool kernel;
	bool windows_only;
	bool alt_period;		/* of perf record */
	bool branches;
	bool has_branches;		/* -b or --no-branches was given */
	const char *metrics;
	struct number period;
	struct number window;
	struct number jitter;
	struct number operations;
	bool has_raw;			/* operations are in raw data */
};

/* How the events of the groups are sampled. */
struct sampling {
	const char *leader;
	const char *modifiers;		/* of each group */
	u64 period;			/* of a leader without a rate */
	u64 jitter;
	int rate;			/* of the samples of any other event, a second */
	bool has_pmu;
	bool has_windows;
	bool has_counts;		/* members are read with samples of the leader */
	bool members_sample;
	struct strlist *samplers;	/* the members that can */
	bool is_precise;		/* the PMU has precise events, which have no jitter */
	bool has_jitter;		/* events with a frequency can have it */
	bool has_branches;
};

static struct evlist *parse(const char *events, bool says_why)
{
	struct evlist *evlist = evlist__new();
	struct parse_events_error error;

	if (!evlist)
		return NULL;
	parse_events_error__init(&error);
	if (parse_events(evlist, events, &error)) {
		if (says_why)
			parse_events_error__print(&error, events);
		evlist__put(evlist);
		evlist = NULL;
	}
	parse_events_error__exit(&error);
	return evlist;
}

/* Opens an event on this thread, in the group of its leader. Returns 0 or a negative errno. */
static int open_event(struct evsel *evsel, bool alone)
{
	struct perf_thread_map *threads = thread_map__new_by_tid(0);
	struct evsel *leader = evsel__leader(evsel);
	int err = -ENOMEM;

	if (alone)
		evsel__set_leader(evsel, evsel);
	if (threads)
		err = evsel__open(evsel, NULL, threads);
	evsel__set_leader(evsel, leader);
	perf_thread_map__put(threads);
	return err;
}

/* Opens events as perf record would. Returns 0, or a negative errno and the event. */
static int open_events(struct evlist *evlist, bool inherits, struct evsel **failed)
{
	struct record_opts opts = {
		.freq = 1, .user_freq = UINT_MAX, .user_interval = ULLONG_MAX,
	};
	struct evsel *evsel;
	int err = 0;

	evlist__config(evlist, &opts, NULL);
	evlist__for_each_entry(evlist, evsel) {
		evsel->core.attr.inherit = inherits;
		err = open_event(evsel, false);
		*failed = evsel;
		if (err)
			break;
	}
	evlist__for_each_entry(evlist, evsel)
		evsel__close(evsel);
	return err;
}

/* Returns 0, or a negative errno of the first event that does not open. */
static int __printf(1, 2) try_events(const char *format, ...)
{
	struct evlist *evlist = NULL;
	struct evsel *failed;
	int err = -ENOMEM;
	char *events;
	va_list args;

	va_start(args, format);
	if (vasprintf(&events, format, args) >= 0) {
		evlist = parse(events, false);
		err = evlist ? open_events(evlist, false, &failed) : -EINVAL;
		free(events);
	}
	va_end(args);
	evlist__put(evlist);
	return err;
}

/* Before Linux 6.12 children cannot inherit an event whose samples have counts. */
static bool can_inherit_counts(void)
{
	struct evlist *evlist = parse("cpu-clock:uS", false);
	struct evsel *failed;

	if (evlist)
		open_events(evlist, true, &failed);
	evlist__put(evlist);
	return !perf_missing_features.inherit_sample_read;
}

/* Returns true if this thread can open events in a group that cycles lead. */
bool fn_groups__can_count(const struct fn_groups *groups, const struct strlist *events)
{
	struct strbuf text = STRBUF_INIT;
	struct str_node *event;
	int err;

	strlist__for_each_entry(event, (struct strlist *)events)
		strbuf_addf(&text, ",%s", event->s);
	err = try_events("{cycles%s}:%sS", text.buf, groups->modifiers);
	strbuf_release(&text);
	return !err;
}

/*
 * The usual members, as far as this machine counts them together. Without a PMU, page faults go
 * with the clock.
 */
static int add_default_members(struct fn_groups *groups, bool has_pmu, bool is_verbose)
{
	static const char *const members[] = {
		"instructions", "branch-misses", "cache-references", "cache-misses", FAULTS,
	};
	const size_t first = has_pmu ? 0 : ARRAY_SIZE(members) - 1;
	const size_t end = ARRAY_SIZE(members) - has_pmu;
	struct strlist *group = strlist__new(NULL, NULL);

	groups->group = calloc(1, sizeof(*groups->group));
	if (!groups->group || !group) {
		strlist__delete(group);
		return -ENOMEM;
	}
	groups->group[groups->nr++] = group;
	for (size_t i = first; i < end; i++) {
		struct str_node *node;

		if (strlist__add(group, members[i]))
			return -ENOMEM;
		if (!has_pmu || fn_groups__can_count(groups, group))
			continue;
		node = strlist__find(group, members[i]);
		strlist__remove(group, node);
		if (is_verbose)
			fprintf(stderr, "not counted on this machine: %s\n", members[i]);
	}
	return 0;
}

/* Adds an event with more terms, and with modifiers if it has terms. */
static void add_event(struct strbuf *text, const char *event, const char *terms,
		      const char *modifiers)
{
	size_t length = strlen(event);
	bool has_terms = length && event[length - 1] == '/';

	if (!terms) {
		strbuf_addstr(text, event);
		return;
	}
	strbuf_add(text, event, length - has_terms);
	strbuf_addf(text, "%s%s/%s", has_terms ? "," : "/", terms, modifiers);
}

/* Finds the members that can sample, and divides the rate among the events that do. */
static int choose_samplers(struct sampling *sampling, const struct fn_groups *groups)
{
	int nr = sampling->has_windows ? 0 : groups->nr, most;
	struct str_node *event;

	sampling->samplers = strlist__new(NULL, NULL);
	if (!sampling->samplers)
		return -ENOMEM;
	for (unsigned int i = 0; i < groups->nr; i++) {
		strlist__for_each_entry(event, groups->group[i]) {
			if (!sampling->members_sample ||
			    try_events("%s:%s", event->s, sampling->modifiers)) {
				sampling->has_counts = true;
				continue;
			}
			if (strlist__add(sampling->samplers, event->s) == -ENOMEM)
				return -ENOMEM;
			nr++;
		}
	}
	if (sysctl__read_int("kernel/perf_event_max_sample_rate", &most) || most > MOST_RATE)
		most = MOST_RATE;
	sampling->rate = (sampling->has_windows ? RATE_BESIDE : RATE) / max(nr, 1);
	sampling->rate = max(min(sampling->rate, most), 1);
	return 0;
}

static void add_term(struct strbuf *terms, const char *name, u64 value)
{
	if (value)
		strbuf_addf(terms, "%s%s=%llu", terms->len ? "," : "", name,
			    (unsigned long long)value);
}

/* Returns how leaders, or members that sample, do it; NULL: nothing to say. */
static char *terms_of(const struct sampling *sampling, const struct parsed *parsed, bool is_leader)
{
	struct strbuf terms = STRBUF_INIT;
	bool has_own = is_leader && (parsed->period.is_given || parsed->given['F']);
	bool has_rate = !is_leader || !(sampling->has_windows || !parsed->window.value);

	if (has_rate) {
		add_term(&terms, "freq", has_own ? 0 : sampling->rate);
		add_term(&terms, "alt-period-jitter", sampling->has_jitter ? sampling->jitter : 0);
	} else {
		add_term(&terms, "period", has_own ? 0 : sampling->period);
		add_term(&terms, "alt-period", parsed->window.value);
		add_term(&terms, "alt-period-jitter", sampling->has_windows ? sampling->jitter : 0);
	}
	if (sampling->has_branches && (is_leader || !sampling->is_precise))
		strbuf_addf(&terms, "%sbranch_type=any", terms.len ? "," : "");
	return strbuf_detach(&terms, NULL);
}

/* Returns the groups as perf record -e takes them. */
static char *events_of(const struct sampling *sampling, const struct fn_groups *groups,
		       const struct parsed *parsed)
{
	char *leader = terms_of(sampling, parsed, true);
	char *member = terms_of(sampling, parsed, false);
	struct strbuf text = STRBUF_INIT;
	struct str_node *event;

	for (unsigned int i = 0; i < groups->nr; i++) {
		strbuf_addstr(&text, i ? ",{" : "{");
		add_event(&text, sampling->leader, leader, "");
		strlist__for_each_entry(event, groups->group[i]) {
			const char *terms = strcmp(event->s, FAULTS) ? member : FAULTS_PERIOD;

			strbuf_addch(&text, ',');
			add_event(&text, event->s,
				  strlist__has_entry(sampling->samplers, event->s) ? terms : NULL,
				  sampling->has_pmu ? "P" : "");
		}
		strbuf_addf(&text, "}:%s%s", sampling->modifiers, sampling->has_counts ? "S" : "");
	}
	free(leader);
	free(member);
	return strbuf_detach(&text, NULL);
}

/* Returns true if the PMU has branch records with cycles. */
static bool has_branch_records(struct perf_pmu *pmu)
{
	char *cpu = get_cpuid_allow_env_override((struct perf_cpu){ -1 });
	bool is_amd = cpu && strstarts(cpu, "AuthenticAMD");
	char path[PATH_MAX];
	int records = 0;

	free(cpu);
	return !is_amd && pmu &&
	       perf_pmu__pathname_scnprintf(path, sizeof(path), pmu->name, "caps/branches") &&
	       !filename__read_int(path, &records) && records > 0;
}

/* Returns true, after a message, in a root without what perf record reads CPUs and tasks from. */
static bool lacks_file_systems(void)
{
	if (procfs__mountpoint() && sysfs__mountpoint())
		return false;
	fn_err("no /proc or no /sys here, and recording needs both: mount -t proc none /proc; mount -t sysfs none /sys");
	return true;
}

/* Says why no event can be recorded, and what helps. */
static int refuse_rights(const struct parsed *parsed)
{
	int most = parsed->is_of_cpus ? 0 : parsed->kernel ? 1 : 2;

	if (perf_event_paranoid_check(most))
		return 0;
	fn_err("no right to record%s: run as root, with CAP_PERFMON, or with sysctl kernel.perf_event_paranoid=%d",
	       parsed->is_of_cpus ? " all programs" : parsed->kernel ? " the kernel" : "", most);
	return -EACCES;
}

/* Returns true if an event did not open because there is no PMU, or none that interrupts. */
static bool lacks_pmu(int err)
{
	return err == -ENOENT || err == -ENODEV || err == -ENXIO || err == -EOPNOTSUPP;
}

/* Finds out whether there is a PMU, and how the leader can be sampled. */
static int choose_sampling(struct sampling *sampling, const struct parsed *parsed)
{
	struct perf_pmu *pmu = perf_pmus__scan_core(NULL);
	const bool wants_windows = parsed->window.is_given || parsed->windows_only ||
				   (parsed->jitter.is_given && parsed->jitter.value);
	const bool is_lone = parsed->windows_only || !parsed->window.value;
	int err;

	*sampling = (struct sampling){
		.leader		= "cycles",
		/* No guests: their functions are unknown here, and they may have the counters. */
		.modifiers	= parsed->kernel ? "H" : "uH",
		.period		= !parsed->window.value ? PLAIN_PERIOD :
				  is_lone ? LONE_PERIOD : PERIOD,
		.jitter		= parsed->jitter.is_given ? parsed->jitter.value :
				  is_lone ? LONE_JITTER : JITTER,
		.has_pmu	= true,
		.has_windows	= parsed->window.value,
		.members_sample	= !is_lone,
		.is_precise	= pmu && pmu->max_precise > 0,
		.has_branches	= parsed->branches,
	};
	err = try_events("cycles:%s", sampling->modifiers);
	if (err == -EACCES || err == -EPERM) {
		fn_err("no right to record: a container or a sandbox needs CAP_PERFMON (docker run --cap-add=PERFMON), and a seccomp profile that allows perf_event_open");
		return err;
	}
	if (lacks_pmu(err)) {
		if (wants_windows || is_lone || parsed->metrics || parsed->branches) {
			fn_err("this machine has no PMU, like many virtual machines: windows, -b and -M need one");
			return err;
		}
		fn_warn("this machine has no PMU, like many virtual machines: recording the clock and page faults (CPI and misses can be had on real hardware, or in the machine of make demo)");
		sampling->leader = "cpu-clock";
		sampling->has_pmu = false;
		sampling->has_windows = false;
		sampling->is_precise = false;
	}
	if (is_lone) {
		sampling->has_counts = true;
		return 0;
	}
	if (sampling->has_windows && !wants_windows)
		sampling->has_windows = !try_events("cycles/period=%u,alt-period=%u/%s", PERIOD,
						    WINDOW, sampling->modifiers);
	sampling->has_counts = sampling->has_windows;
	sampling->has_jitter = sampling->jitter && !sampling->is_precise &&
			       !try_events("%s/freq=1,alt-period-jitter=%llu/%s", sampling->leader,
					   (unsigned long long)sampling->jitter,
					   sampling->modifiers);
	return 0;
}

static void warn_of_children(const struct parsed *parsed, bool has_counts)
{
	if (has_counts && !parsed->is_of_cpus && !parsed->given['t'] && !parsed->given['i'] &&
	    !parsed->given['q'] && !can_inherit_counts())
		fn_warn("children and new threads of the program are not in this profile, because before Linux 6.12 they do not inherit a group with counts in its samples: record with -a to include them");
}

/* Says why operations are not followed, where the CPU can. */
static void explain_operations(const char *pmu, bool has_kernel, int err)
{
	if (pmu && (err == -EACCES || err == -EPERM))
		fn_warn("no right to follow operations (%s), so they are left out: run as root, with CAP_PERFMON, or with sysctl kernel.perf_event_paranoid=%d (--no-operations: without this line)",
			pmu, has_kernel ? 1 : 2);
	else if (pmu)
		fn_warn("operations are left out, because %s does not open (%s): bare metal has it, most virtual machines do not (--no-operations: without this line)",
			pmu, strerror(-err));
	else if (!access("/sys/bus/platform/devices/arm,spe-v1", F_OK))
		fn_warn("operations are left out, because this kernel does not use the CPU's Statistical Profiling Extension: boot with kpti=off, and load arm_spe_pmu (--no-operations: without this line)");
}

/* Adds the event that follows operations, if there is one. */
static void add_operations(struct strbuf *events, struct parsed *parsed)
{
	struct perf_pmu *spe = perf_pmus__find("arm_spe_0");
	struct perf_pmu *ibs = spe ? NULL : perf_pmus__find("ibs_op");
	const bool has_filter = ibs && perf_pmu__has_format(ibs, "swfilt");
	const bool has_kernel = parsed->kernel || (ibs && !has_filter);
	const char *modifier = has_kernel ? "" : "u";
	unsigned long long period = parsed->operations.value, least = LEAST_OPERATIONS;
	char *text = NULL, size[40];
	int err = -ENOENT;

	if (spe && perf_pmu__scan_file(spe, "caps/min_interval", "%llu", &least) == 1)
		least = max(least, (unsigned long long)LEAST_OPERATIONS);
	period = max(period ?: OPERATIONS, least);
	if (spe && asprintf(&text, "%s/jitter=1,event_filter=2,period=%llu/%s", spe->name, period,
			    modifier) < 0)
		return;
	/* Its interval is a multiple of 16. */
	if (parsed->operations.value)
		scnprintf(size, sizeof(size), "period=%llu", period & ~15ULL);
	else
		scnprintf(size, sizeof(size), "freq=%d", MOST_RATE);
	if (ibs && asprintf(&text, "%s/cnt_ctl=1%s,%s/%s", ibs->name,
			    has_filter && !parsed->kernel ? ",swfilt=1" : "", size, modifier) < 0)
		return;
	if (text)
		err = try_events("%s", text);
	if (err)
		explain_operations(spe ? spe->name : ibs ? ibs->name : NULL, has_kernel, err);
	else
		strbuf_addf(events, ",%s", text);
	parsed->has_raw = ibs && !err;
	free(text);
}

/* Returns the events to record without -e, NULL after a message or without memory. */
static char *choose_events(const struct fn_record *record, struct parsed *parsed)
{
	/* Options of perf record may choose branches. A live table cannot take all of them. */
	const bool may_branch = !parsed->has_branches && !parsed->windows_only &&
				!record->arguments && !parsed->given['j'] && !parsed->given['b'];
	struct fn_groups groups = {};
	struct sampling sampling;
	char *events = NULL;
	int err;

	if (choose_sampling(&sampling, parsed))
		return NULL;
	groups.modifiers = sampling.modifiers;
	err = parsed->metrics ? fn_metrics__add_groups(&groups, parsed->metrics) :
				add_default_members(&groups, sampling.has_pmu, parsed->given['v']);
	if (err || choose_samplers(&sampling, &groups))
		goto out;
	if (may_branch && sampling.has_pmu && has_branch_records(perf_pmus__scan_core(NULL))) {
		/* They may need counters. */
		sampling.has_branches = true;
		events = events_of(&sampling, &groups, parsed);
		if (!try_events("%s", events))
			goto out;
		sampling.has_branches = false;
		free(events);
	}
	events = events_of(&sampling, &groups, parsed);
out:
	if (events)
		warn_of_children(parsed, sampling.has_counts);
	/* A live table cannot take AUX data. */
	if (events && !record->arguments && sampling.has_pmu && !parsed->windows_only &&
	    (parsed->operations.value || !parsed->operations.is_given)) {
		struct strbuf all = STRBUF_INIT;

		strbuf_addstr(&all, events);
		add_operations(&all, parsed);
		free(events);
		events = strbuf_detach(&all, NULL);
	}
	for (unsigned int i = 0; i < groups.nr; i++)
		strlist__delete(groups.group[i]);
	free(groups.group);
	strlist__delete(sampling.samplers);
	return events;
}

/* Checks the events of -e, which are recorded as they are. */
static char *check_events(struct parsed *parsed)
{
	struct evlist *evlist = parse(parsed->events.buf, true);
	bool has_counts = false, has_cycles = false;
	struct evsel *evsel;

	if (!evlist)
		return NULL;
	evlist__for_each_entry(evlist, evsel) {
		has_counts |= evsel->sample_read;
		has_cycles |= evsel__match(evsel, HARDWARE, HW_CPU_CYCLES);
	}
	evlist__put(evlist);
	if (has_cycles && lacks_pmu(try_events("cycles:u")))
		fn_warn("this machine has no PMU, like many virtual machines: perf record takes the clock for cycles");
	warn_of_children(parsed, has_counts);
	return strbuf_detach(&parsed->events, NULL);
}

/* Errors are reported when all options are known. */
static int take_number(const struct option *opt, const char *arg, int unset)
{
	struct number *number = opt->value;

	number->is_given = true;
	number->value = 0;
	if (!unset && function_text__u64(arg, 10, &number->value))
		number->value = ULLONG_MAX;
	return 0;
}

/* Notes an option of perf record, whose letter is in defval. */
static int note_option(const struct option *opt, const char *arg, int unset)
{
	const char *name = opt->long_name ?: "";
	struct parsed *parsed = opt->value;

	if (opt->defval == 'c')
		return take_number(&(struct option){ .value = &parsed->period }, arg, unset);
	if (opt->defval == 'e' && arg)
		strbuf_addf(&parsed->events, "%s%s", parsed->events.len ? "," : "", arg);
	if (opt->defval)
		parsed->given[opt->defval] = unset ? NULL : arg ?: "";
	else if (!strcmp(name, "per-thread"))
		parsed->given['t'] = unset ? NULL : "";
	else if (!strcmp(name, "alt-period"))
		parsed->alt_period = !unset;
	else if (!strcmp(name, "call-graph") && arg && strstarts(arg, "lbr"))
		parsed->given['j'] = arg;
	return 0;
}

/* Lets note_option() take an option of perf record, which is not in the help. */
static void redirect(struct option *opt, struct parsed *parsed, int letter)
{
	if (opt->type == OPTION_GROUP)
		return;
	if (opt->type == OPTION_BOOLEAN || opt->type == OPTION_INCR || opt->type == OPTION_BIT ||
	    opt->type == OPTION_SET_UINT || opt->type == OPTION_SET_PTR)
		opt->flags |= PARSE_OPT_NOARG;
	opt->flags |= PARSE_OPT_HIDDEN;
	opt->type = OPTION_CALLBACK;
	opt->callback = note_option;
	opt->value = parsed;
	opt->defval = letter;
	opt->set = NULL;
}

static unsigned int nr_options(const struct option *options)
{
	unsigned int nr = 0;

	while (options && options[nr].type != OPTION_END)
		nr++;
	return nr;
}

/* Takes the names of earlier options away from one. Returns true if nothing is left of it. */
static bool is_replaced(struct option *opt, const struct option *first, const char *const *without)
{
	for (; opt->long_name && without && *without; without++) {
		if (!strcmp(opt->long_name, *without))
			return true;
	}
	for (; first < opt; first++) {
		if (opt->short_name && opt->short_name == first->short_name)
			opt->short_name = 0;
		if (opt->long_name && first->long_name &&
		    !strcmp(opt->long_name, first->long_name))
			opt->long_name = NULL;
	}
	return !opt->short_name && !opt->long_name && opt->type != OPTION_GROUP;
}

/*
 * Returns the options of the command and those of perf record (@options), to be parsed twice: those
 * of the command have the same effect again in cmd_record(), where first those of perf record have
 * an effect, too (!@is_own).
 */
static struct option *join_options(const struct option *options,
				   const struct fn_record *record, struct parsed *parsed,
				   bool is_own)
{
	const struct option ours[] = {
		OPT_GROUP("What to count:"),
		OPT_STRING('M', "metrics", &parsed->metrics, "metric or group[,...]",
			   "record the events of these metrics of this CPU (see perf list metric)"),
		OPT_BOOLEAN(0, "kernel", &parsed->kernel, "count the kernel, too"),
		OPT_GROUP("How to sample:"),
		OPT_CALLBACK(0, "period", &parsed->period, "n",
			     "events in a long period, as -c (default: 4999700, --windows-only: 999700)",
			     take_number),
		OPT_CALLBACK(0, "window", &parsed->window, "n",
			     "events of the leader in a window (default: 300; --no-window: a plain period, default 1000)",
			     take_number),
		OPT_BOOLEAN(0, "windows-only", &parsed->windows_only,
			    "let only leaders sample; members are read"),
		OPT_CALLBACK(0, "jitter", &parsed->jitter, "n",
			     "vary each period by up to 2^n events, at most by half (default: 21, --windows-only: 18; --no-jitter: none)",
			     take_number),
		OPT_CALLBACK(0, "operations", &parsed->operations, "n",
			     "follow one operation in n, where the CPU can: Arm's SPE, AMD's IBS (default: SPE 1000000, IBS 1000 a second; --no-operations: none)",
			     take_number),
		OPT_BOOLEAN_SET('b', "branches", &parsed->branches, &parsed->has_branches,
				"sample the last branches, too (default: if they have cycles)"),
		OPT_GROUP("All options of perf record, too: see perf record -h"),
	};
	const unsigned int nr_more = nr_options(record->own);
	struct option *all, *opt;

	all = calloc(nr_more + ARRAY_SIZE(ours) + nr_options(options) + 1, sizeof(*all));
	if (!all)
		return NULL;
	if (nr_more)
		memcpy(all, record->own, nr_more * sizeof(*all));
	memcpy(all + nr_more, ours, sizeof(ours));
	for (opt = all + nr_more + ARRAY_SIZE(ours); options->type != OPTION_END; options++) {
		*opt = *options;
		if (is_replaced(opt, all, is_own ? record->without : NULL))
			continue;
		if (is_own)
			redirect(opt, parsed, options->short_name);
		opt++;
	}
	*opt = *options;
	return all;
}

/* Returns true, after a message, if the number of an option is not in its range. */
static bool refuse_number(const char *name, const struct number *number, u64 least, u64 most)
{
	if (!number->is_given || (number->value >= least && number->value <= most))
		return false;
	fn_err("--%s takes a number from %llu to %llu", name,
	       (unsigned long long)least, (unsigned long long)most);
	return true;
}

/* Returns true, after a message, if options contradict each other. */
static bool refuse_options(const struct parsed *parsed)
{
	u64 period = parsed->period.is_given ? parsed->period.value :
		     parsed->given['F'] ? ULLONG_MAX : parsed->windows_only ? LONE_PERIOD : PERIOD;
	const char *name = parsed->metrics ? "-M" : parsed->kernel ? "--kernel" :
			   parsed->window.is_given ? "--window" :
			   parsed->jitter.is_given ? "--jitter" :
			   parsed->windows_only ? "--windows-only" :
			   parsed->operations.is_given ? "--operations" : NULL;

	if (refuse_number("period (-c)", &parsed->period, 1, LLONG_MAX) ||
	    refuse_number("window", &parsed->window, 0, LLONG_MAX) ||
	    refuse_number("jitter", &parsed->jitter, 0, 30) ||
	    refuse_number("operations", &parsed->operations, 0, UINT_MAX))
		return true;
	if (parsed->metrics && !*parsed->metrics)
		fn_err("-M takes names of metrics or groups: see perf list metric");
	else if (parsed->events.len && name)
		fn_err("%s does not go with -e, whose events are recorded as they are: use their terms and modifiers (perf list)",
		       name);
	else if (!parsed->events.len && parsed->alt_period)
		fn_err("--alt-period is of perf record and alternates members, too: use --window");
	else if (!parsed->window.value && parsed->jitter.value)
		fn_err("--jitter needs windows: leave --no-window out");
	else if (parsed->period.is_given && parsed->given['F'])
		fn_err("-c sets a period and -F a frequency: leave out one of them");
	else if (!parsed->events.len && parsed->window.value > period)
		fn_err("a window of %llu is longer than the period: take a shorter one (--window), or a plain period (--no-window)",
		       (unsigned long long)parsed->window.value);
	else
		return false;
	return true;
}

static void add_arguments(struct fn_record *record, const char *const *arguments)
{
	while (arguments && *arguments)
		record->argv[record->argc++] = *arguments++;
}

/* Returns 0, or -1 after a message; fn_record__exit() frees what is there in any case. */
int fn_record__init(struct fn_record *record, const struct option *options, int argc,
		    const char **argv)
{
	/* cmd_record() parses the options again. */
	static struct parsed parsed = { .events = STRBUF_INIT, .window.value = WINDOW };
	struct option *own = join_options(options, record, &parsed, true);
	const char **all = memdup(argv, argc * sizeof(*argv));
	int nr = argc, err = -1;
	bool has_events;

	record->argv = calloc(argc + MOST_ARGUMENTS, sizeof(*record->argv));
	record->options = join_options(options, record, &parsed, false);
	if (!own || !all || !record->argv || !record->options)
		goto out;
	argc = parse_options(argc, argv, own, record->usage,
			     PARSE_OPT_STOP_AT_NON_OPTION | PARSE_OPT_KEEP_DASHDASH);
	parsed.is_of_cpus = parsed.given['a'] || parsed.given['C'] ||
			    (argc == (argc && !strcmp(argv[0], "--")) && !parsed.given['p'] &&
			     !parsed.given['t'] && !parsed.given['u']);
	if (refuse_options(&parsed) || lacks_file_systems() || refuse_rights(&parsed))
		goto out;
	record->metrics = parsed.metrics;
	has_events = parsed.events.len;
	record->events = has_events ? check_events(&parsed) : choose_events(record, &parsed);
	if (!record->events)
		goto out;

	add_arguments(record, (const char *[]){ "record", "-T", "--sample-cpu", NULL });
	if (parsed.has_raw)
		add_arguments(record, (const char *[]){ "-R", NULL });
	if (!has_events) {
		add_arguments(record, (const char *[]){ "-e", record->events, NULL });
		if (parsed.given['v'] || (parsed.metrics && !record->arguments))
			fprintf(stderr, "perf record -T --sample-cpu -e '%s'\n", record->events);
	} else if (parsed.branches) {
		add_arguments(record, (const char *[]){ "--branch-any", NULL });
	}
	add_arguments(record, record->defaults);
	for (int i = 1; i < nr - argc; i++)
		record->argv[record->argc++] = all[i];
	if (parsed.period.is_given) {
		scnprintf(record->count, sizeof(record->count), "%llu",
			  (unsigned long long)parsed.period.value);
		add_arguments(record, (const char *[]){ "-c", record->count, NULL });
	}
	add_arguments(record, record->arguments);
	add_arguments(record, argv);
	err = 0;
out:
	strbuf_release(&parsed.events);
	free(all);
	free(own);
	return err;
}

/* Says what perf record has not said of events that did not open. */
void fn_record__explain(const struct fn_record *record)
{
	struct evlist *evlist = parse(record->events, false);
	struct evsel *failed;
	int err = evlist ? open_events(evlist, false, &failed) : 0;

	if (err && !evsel__is_group_leader(failed) && !open_event(failed, true)) {
		fn_warn("no counter is left for %s in its group: record fewer events in a group, or several groups",
			evsel__name(failed));
	} else if (err == -EOPNOTSUPP && !failed->core.attr.exclude_guest) {
		failed->core.attr.exclude_guest = 1;
		if (!open_event(failed, true))
			fn_warn("a virtual machine has the counters while it runs (mediated vPMU, since Linux 7.0), so no event may count guests: add the modifier H, as in :uHS");
	}
	evlist__put(evlist);
}

void fn_record__exit(struct fn_record *record)
{
	free(record->argv);
	free(record->options);
	free(record->events);
}
