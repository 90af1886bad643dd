// SPDX-License-Identifier: GPL-2.0
/*
 * Sets how perf functions record samples the leaders of groups, and explains why they may not open.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/compiler.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <api/fs/fs.h>
#include <subcmd/parse-options.h>

#include "../../debug.h"
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../evsel_config.h"
#include "../../header.h"
#include "../../parse-events.h"
#include "../../pmu.h"
#include "../../../perf-sys.h"
#include "events.h"
#include "leaders.h"

/* A window that each PMU which alternates takes. */
#define PROBE_WINDOW	1000
/* A frequency that suffices. */
#define MOST_RATE	1000

/* An event that perf record opens, without its periods. */
struct opened_event {
	/* The window of a leader that alternates is PROBE_WINDOW. */
	struct perf_event_attr attr;
	bool is_leader;		/* its members follow */
	char *name;
};

/* State for the callback of perf record's option -e. */
static struct {
	int (*parse)(const struct option *opt, const char *arg, int unset);
	struct function_sampling sampling;
	const struct function_ways *ways;
	struct opened_event *events;
	unsigned int nr;
	bool told_of_children;
	bool told_of_windows;
	bool has_windows;	/* some leader alternates */
	/* Terms whose frequency depends on the number of all these events. */
	struct evsel_config_term **rates;
	unsigned int nr_rates;
} leaders;

/* Returns true if the user has written the term; an alias only has weak terms. */
static bool has_term(struct evsel *evsel, enum evsel_term_type type)
{
	const struct evsel_config_term *term = __evsel__get_config_term(evsel, type);

	return term && !term->weak;
}

static int add_term(struct evsel *evsel, enum evsel_term_type type, u64 value)
{
	struct evsel_config_term *term = zalloc(sizeof(*term));

	if (!term)
		return -ENOMEM;
	term->type = type;
	if (type == EVSEL__CONFIG_TERM_PERIOD)
		term->val.period = value;
	else if (type == EVSEL__CONFIG_TERM_FREQ)
		term->val.freq = value;
	else if (type == EVSEL__CONFIG_TERM_ALT_PERIOD)
		term->val.alt_period = value;
	else if (type == EVSEL__CONFIG_TERM_ALT_PERIOD_JITTER)
		term->val.alt_period_jitter = value;
	else
		term->val.alt_period_count = value;
	list_add_tail(&term->list, &evsel->config_terms);
	return 0;
}

static bool has_rate(struct evsel *evsel)
{
	return has_term(evsel, EVSEL__CONFIG_TERM_PERIOD) ||
	       has_term(evsel, EVSEL__CONFIG_TERM_FREQ);
}

/* Gives each event its part of the samples that leaders which alternate leave. */
static void divide_rate(void)
{
	const u64 rate = leaders.has_windows ? function_sampling__members(&leaders.sampling) :
					       leaders.sampling.rate;

	for (unsigned int i = 0; i < leaders.nr_rates; i++)
		leaders.rates[i]->val.freq =
			min_t(u64, max_t(u64, rate / leaders.nr_rates, 1), MOST_RATE);
}

/* Lets an event sample at a part of the rate. */
static int add_rate(struct evsel *evsel)
{
	struct evsel_config_term **rates = realloc(leaders.rates, (leaders.nr_rates + 1) *
						   sizeof(*rates));
	int err = rates ? add_term(evsel, EVSEL__CONFIG_TERM_FREQ, 0) : -ENOMEM;

	leaders.rates = rates ?: leaders.rates;
	if (err)
		return err;
	rates[leaders.nr_rates++] = list_last_entry(&evsel->config_terms,
						    struct evsel_config_term, list);
	divide_rate();
	return 0;
}

/*
 * Sets the sampling of a leader. Terms that say how it is sampled stay as they are; the user's
 * other options are added.
 */
static int sample_leader(struct evsel *evsel, const struct function_sampling *sampling)
{
	bool has_own_rate = has_rate(evsel);
	bool has_window = has_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD);
	bool is_bare = !has_own_rate && !has_window;
	bool wants_window = sampling->window && (is_bare || sampling->has_window ||
						 sampling->has_jitter || sampling->has_burst);
	int err = 0;

	if (!has_own_rate && sampling->period)
		err = add_term(evsel, EVSEL__CONFIG_TERM_PERIOD, sampling->period);
	if (!err && !has_window && wants_window)
		err = add_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD, sampling->window);
	if (!has_window && !wants_window)
		return err;

	if (!err && sampling->jitter && (is_bare || sampling->has_jitter) &&
	    !has_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD_JITTER))
		err = add_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD_JITTER, sampling->jitter);
	if (!err && sampling->burst > 1 &&
	    !has_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD_COUNT))
		err = add_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD_COUNT, sampling->burst);
	return err;
}

static int open_here(struct perf_event_attr attr, int group)
{
	return sys_perf_event_open(&attr, /*pid=*/0, /*cpu=*/-1, group, PERF_FLAG_FD_CLOEXEC);
}

/*
 * Returns the errno of opening an event on this thread, 0 if it opens. Like perf record, leaves out
 * the kernel if the user may not count it.
 */
static int try_open(struct perf_event_attr attr)
{
	int fd = open_here(attr, /*group=*/-1);

	if (fd < 0 && errno == EACCES && !attr.exclude_kernel) {
		attr.exclude_kernel = 1;
		fd = open_here(attr, /*group=*/-1);
	}
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static bool lacks_pmu(const struct perf_event_attr *attr)
{
	int err = attr->type == PERF_TYPE_HARDWARE ? try_open(*attr) : 0;

	return err == ENOENT || err == ENODEV || err == ENXIO;
}

/* Returns the attr with which the event is opened to find out why perf record could not. */
static struct perf_event_attr probe_of(const struct perf_event_attr *leader)
{
	struct perf_event_attr attr = *leader;

	attr.freq = 0;
	attr.sample_period = 1000000;
	attr.alternative_sample_period = 0;
	attr.read_format = 0;
	attr.disabled = 1;
	return attr;
}

/* perf record would print its usage if an option could not be parsed. */
static void give_up(void) __noreturn;
static void give_up(void)
{
	exit(255);
}

static void print_no_pmu(const char *way)
{
	fprintf(stderr,
		"perf functions: this machine has no PMU for this event, like many virtual machines: record by the clock, whose periods are nanoseconds:\n    %s\n",
		way);
}

/*
 * Ends perf record, after a message, if a leader cannot be sampled as the user wants. Without
 * a PMU, perf record would silently take a clock for cycles.
 */
static void check_leader(struct evsel *evsel, bool has_own_window)
{
	const struct evsel_config_term *period = evsel__get_config_term(evsel, PERIOD);
	const struct evsel_config_term *window = evsel__get_config_term(evsel, ALT_PERIOD);
	struct perf_event_attr attr = probe_of(&evsel->core.attr);

	if (period && window && !has_own_window &&
	    window->val.alt_period > period->val.period)
		fprintf(stderr,
			"perf functions: a window of %llu is longer than the period of %llu: take a shorter one (--window), or a plain period (--no-window)\n",
			(unsigned long long)window->val.alt_period,
			(unsigned long long)period->val.period);
	else if (!window && lacks_pmu(&attr))
		print_no_pmu(leaders.ways->plain_clock);
	else
		return;
	give_up();
}

/* Returns true if the kernel and the PMU are able to alternate, or if that cannot be found out. */
static bool can_alternate(const struct perf_event_attr *plain)
{
	struct perf_event_attr alternate = *plain;
	int err;

	alternate.alternative_sample_period = PROBE_WINDOW;
	err = try_open(alternate);
	return err != E2BIG && (err != EOPNOTSUPP || try_open(*plain));
}

static bool can_sample(const struct evsel *evsel)
{
	return evsel->core.attr.type != PERF_TYPE_TRACEPOINT &&
	       !try_open(probe_of(&evsel->core.attr));
}

/*
 * Returns true if the kernel draws the first interval of each thread. Otherwise all processes of a
 * program are sampled at the same places. A precise event has no jitter.
 */
static bool can_jitter(struct evsel *evsel, u32 jitter)
{
	const struct perf_pmu *pmu = evsel__find_pmu(evsel);
	struct perf_event_attr attr = probe_of(&evsel->core.attr);

	attr.jitter_alternate_period = jitter;
	return jitter && (!pmu || pmu->max_precise < 1) && !try_open(attr);
}

/* Lets a member sample itself, as precisely as the PMU is able to. */
static int sample_member(struct evsel *evsel, u32 jitter)
{
	int err = 0;

	if (has_rate(evsel))
		return 0;
	if (can_jitter(evsel, jitter) && !has_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD_JITTER))
		err = add_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD_JITTER, jitter);
	evsel->precise_max = evsel->core.attr.type != PERF_TYPE_SOFTWARE;
	return err ?: add_rate(evsel);
}

/*
 * Sets the sampling of a group whose members sample, too. Windows need the counts of a group.
 * Without windows these are not needed, unless some member cannot sample.
 */
static int sample_group(struct evsel *leader, const struct function_sampling *sampling)
{
	bool wants_window = sampling->has_window || sampling->has_jitter || sampling->has_burst ||
			    has_term(leader, EVSEL__CONFIG_TERM_ALT_PERIOD);
	struct perf_event_attr plain = probe_of(&leader->core.attr);
	bool has_windows = wants_window || (leader->sample_read && can_alternate(&plain));
	bool all_sample = true, has_counts = leader->sample_read;
	struct evsel *evsel;
	int err = 0;

	if (!has_windows && lacks_pmu(&plain)) {
		print_no_pmu(can_alternate(&plain) ? leaders.ways->clock :
						     leaders.ways->plain_clock);
		give_up();
	}
	leaders.has_windows |= has_windows;
	divide_rate();
	if (has_windows)
		err = sample_leader(leader, sampling);
	else if (!has_rate(leader) && sampling->period)
		err = add_rate(leader);
	for_each_group_member(evsel, leader) {
		bool samples = can_sample(evsel);

		if (!err && samples)
			err = sample_member(evsel, sampling->jitter);
		all_sample &= samples;
	}
	if (has_windows || !has_counts)
		return err;
	for_each_group_evsel(evsel, leader)
		evsel->sample_read &= !all_sample;
	if (!leaders.told_of_windows)
		fprintf(stderr,
			"perf functions: this kernel or PMU has no alternate periods: the recording has samples of each event%s, and no windows\n",
			all_sample ? "" : " that can sample");
	leaders.told_of_windows = true;
	return err;
}

/* Before Linux 6.12 children cannot inherit an event whose samples have counts. */
static bool can_inherit_counts(void)
{
	struct perf_event_attr attr = {
		.type		= PERF_TYPE_SOFTWARE,
		.config		= PERF_COUNT_SW_CPU_CLOCK,
		.size		= sizeof(attr),
		.sample_period	= 1000000,
		.sample_type	= PERF_SAMPLE_TID | PERF_SAMPLE_READ,
		.disabled	= 1,
		.inherit	= 1,
		.exclude_kernel	= 1,
		.exclude_hv	= 1,
	};

	if (try_open(attr) != EINVAL)
		return true;
	attr.inherit = 0;
	return try_open(attr) != 0;
}

static void warn_of_children(const struct evsel *evsel)
{
	if (leaders.told_of_children || !leaders.sampling.with_children || !evsel->sample_read ||
	    can_inherit_counts())
		return;
	leaders.told_of_children = true;
	fprintf(stderr,
		"perf functions: children and new threads of the program are not in this profile, because before Linux 6.12 they do not inherit a group with counts in its samples: record with -a to include them\n");
}

static void sample_branches(struct perf_event_attr *attr)
{
	attr->sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr->branch_sample_type = PERF_SAMPLE_BRANCH_ANY;
}

/*
 * Returns true if the samples of an event need branch records: those of a leader, and of a member
 * on its PMU that cannot be precise.
 */
static bool needs_branches(struct evsel *evsel)
{
	struct perf_pmu *pmu = evsel__find_pmu(evsel);

	return evsel__is_group_leader(evsel) ||
	       (has_rate(evsel) && pmu && pmu == evsel__find_pmu(evsel__leader(evsel)) &&
		pmu->max_precise < 1);
}

/* Returns true if the PMU of cycles has branch records, which leave counters for the members. */
static bool can_record_branches(struct evsel *leader)
{
	struct perf_event_attr attr = probe_of(&leader->core.attr);
	struct perf_pmu *pmu = evsel__find_pmu(leader);
	char *cpu = get_cpuid_allow_env_override((struct perf_cpu){ -1 });
	char *name = function_event_name(&attr, evsel__name(leader), cpu);
	/* Records of AMD have no cycles. */
	const bool suits = name && !strcmp(name, "cycles") &&
			   !(cpu && strstarts(cpu, "AuthenticAMD"));
	int records = 0, *fds, nr = 0;
	struct evsel *member;
	char path[PATH_MAX];
	bool fits;

	free(name);
	free(cpu);
	if (!suits || !pmu ||
	    !perf_pmu__pathname_scnprintf(path, sizeof(path), pmu->name, "caps/branches") ||
	    filename__read_int(path, &records) || records < 1)
		return false;
	fds = calloc(max(leader->core.nr_members, 1), sizeof(*fds));
	if (!fds)
		return false;
	sample_branches(&attr);
	fits = (fds[nr++] = open_here(attr, /*group=*/-1)) >= 0;
	for_each_group_member(member, leader) {
		attr = probe_of(&member->core.attr);
		if (needs_branches(member))
			sample_branches(&attr);
		if (fits)
			fits = (fds[nr++] = open_here(attr, fds[0])) >= 0;
	}
	while (nr--) {
		if (fds[nr] >= 0)
			close(fds[nr]);
	}
	free(fds);
	return fits;
}

/* Lets the samples of a group have the last branches before them. */
static int add_branches(struct evsel *leader)
{
	struct evsel_config_term *term;
	struct evsel *evsel;

	if (leaders.sampling.branches == FUNCTION_BRANCHES_NONE ||
	    has_term(leader, EVSEL__CONFIG_TERM_BRANCH) ||
	    (leaders.sampling.branches == FUNCTION_BRANCHES_AUTO && !can_record_branches(leader)))
		return 0;
	for_each_group_evsel(evsel, leader) {
		if (!needs_branches(evsel))
			continue;
		term = zalloc(sizeof(*term));
		if (!term)
			return -ENOMEM;
		term->type = EVSEL__CONFIG_TERM_BRANCH;
		term->free_str = true;
		term->val.str = strdup("any");
		list_add_tail(&term->list, &evsel->config_terms);
		if (!term->val.str)
			return -ENOMEM;
	}
	return 0;
}

static int leaders_add_event(struct evsel *evsel)
{
	struct opened_event *events = realloc(leaders.events, (leaders.nr + 1) * sizeof(*events));
	struct opened_event *event;

	if (!events)
		return -ENOMEM;
	leaders.events = events;
	event = &events[leaders.nr++];
	*event = (struct opened_event){
		.attr		= evsel->core.attr,
		.is_leader	= evsel__is_group_leader(evsel),
		.name		= strdup(evsel__name(evsel)),
	};
	/* The term gets into evsel's attr later. */
	event->attr.alternative_sample_period =
		has_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD) ? PROBE_WINDOW : 0;
	if (has_term(evsel, EVSEL__CONFIG_TERM_BRANCH))
		sample_branches(&event->attr);
	return event->name ? 0 : -ENOMEM;
}

/* Parses -e like perf record, and sets the sampling of its leaders. */
static int parse_events_of_leaders(const struct option *opt, const char *arg, int unset)
{
	const struct parse_events_option_args *args = opt->value;
	struct evlist *evlist = *args->evlistp;
	int known = 0, err;
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel)
		known++;
	/* The reason has been printed. */
	if (leaders.parse(opt, arg, unset))
		give_up();
	evlist__for_each_entry(evlist, evsel) {
		bool has_own_window = has_term(evsel, EVSEL__CONFIG_TERM_ALT_PERIOD);

		if (known-- > 0 || evsel__is_dummy_event(evsel) || evsel__is_aux_event(evsel))
			continue;
		if (evsel__is_group_leader(evsel)) {
			err = leaders.sampling.rate ? sample_group(evsel, &leaders.sampling) :
						      sample_leader(evsel, &leaders.sampling);
			err = err ?: add_branches(evsel);
			if (err)
				return err;
			warn_of_children(evsel);
		}
		err = leaders_add_event(evsel);
		if (err)
			return err;
		if (evsel__is_group_leader(evsel))
			check_leader(evsel, has_own_window);
	}
	return 0;
}

/**
 * function_leaders__sample - let perf record sample as this command does
 * @options: those of perf record, whose -e is changed
 * @sampling: for leaders whose terms do not say how they are sampled
 * @ways: what to do if this fails, to be filled before the options are parsed
 *
 * Return: 0, or -EINVAL if @options have no -e.
 */
int function_leaders__sample(struct option *options, const struct function_sampling *sampling,
			     const struct function_ways *ways)
{
	for (; options->type != OPTION_END; options++) {
		if (options->short_name != 'e')
			continue;
		leaders.parse = options->callback;
		leaders.sampling = *sampling;
		leaders.ways = ways;
		options->callback = parse_events_of_leaders;
		return 0;
	}
	return -EINVAL;
}

static bool any_lacks_pmu(void)
{
	struct perf_event_attr attr;

	for (unsigned int i = 0; i < leaders.nr; i++) {
		if (!leaders.events[i].is_leader)
			continue;
		attr = probe_of(&leaders.events[i].attr);
		if (lacks_pmu(&attr))
			return true;
	}
	return false;
}

/* Explains the error of this leader; returns true if there is an explanation. */
static bool explain_leader(const struct perf_event_attr *leader)
{
	struct perf_event_attr attr = probe_of(leader), alternate = attr, host = attr;
	int err = try_open(attr);

	alternate.alternative_sample_period = leader->alternative_sample_period;
	host.exclude_guest = 1;

	if (!err && try_open(alternate) == EOPNOTSUPP) {
		fprintf(stderr,
			"perf functions: this PMU cannot alternate: record with a short plain period, with an interrupt for each window:\n    %s\n",
			leaders.ways->plain);
	} else if (err == EBUSY) {
		fprintf(stderr,
			"perf functions: another program, or a virtual machine (mediated vPMU, since Linux 7.0), has the counters of this machine: end it, or record in the virtual machine\n");
	} else if (err == EOPNOTSUPP && !attr.exclude_guest && !try_open(host)) {
		fprintf(stderr,
			"perf functions: a virtual machine has the counters while it runs (mediated vPMU, since Linux 7.0), so no event may count guests: add the modifier H, as in :uHS\n");
	} else if (lacks_pmu(&attr)) {
		print_no_pmu(leaders.ways->clock);
	} else {
		return false;
	}
	return true;
}

/* Returns the first member that opens alone, but not in its group; NULL if there is none. */
static const struct opened_event *find_surplus(const struct opened_event *leader)
{
	const struct opened_event *end = leaders.events + leaders.nr, *surplus = NULL, *member;
	int *fds = calloc(leaders.nr, sizeof(*fds)), nr = 0;

	if (!fds)
		return NULL;
	fds[nr++] = open_here(probe_of(&leader->attr), /*group=*/-1);
	for (member = leader + 1; fds[0] >= 0 && member < end && !member->is_leader; member++) {
		fds[nr] = open_here(member->attr, fds[0]);
		if (fds[nr] < 0) {
			surplus = try_open(member->attr) ? NULL : member;
			break;
		}
		nr++;
	}
	while (nr--) {
		if (fds[nr] >= 0)
			close(fds[nr]);
	}
	free(fds);
	return surplus;
}

/* Returns true, after an explanation, if a group is too large. */
static bool explain_group(const struct opened_event *leader)
{
	const struct opened_event *surplus = find_surplus(leader);

	if (surplus)
		fprintf(stderr,
			"perf functions: no counter is left for %s in its group: record fewer events in a group, or several groups\n",
			surplus->name);
	return surplus;
}

/**
 * function_leaders__explain - say how to record where perf record could not
 *
 * perf record has said what failed. Nothing is printed if that had another reason
 * than the kernel and the machine.
 */
void function_leaders__explain(void)
{
	if (perf_missing_features.alternative_sample_period) {
		if (any_lacks_pmu())
			print_no_pmu(leaders.ways->plain_clock);
		else
			fprintf(stderr,
				"perf functions: this kernel has no alternate periods: record with a short plain period, with an interrupt for each window:\n    %s\n",
				leaders.ways->plain);
		return;
	}
	for (unsigned int i = 0; i < leaders.nr; i++) {
		const struct opened_event *event = &leaders.events[i];

		if (event->is_leader && (explain_leader(&event->attr) || explain_group(event)))
			return;
	}
}
