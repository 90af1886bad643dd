// SPDX-License-Identifier: GPL-2.0
/*
 * Which sets the events of a recording make. The first sample of an event adds its whole group, and
 * events that are alone are one group: what counts together is a set of windows, and what samples
 * is a set of event samples, of branch records or of operations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>

#include "../debug.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../sample.h"
#include "../session.h"
#include "../strlist.h"
#include "session.h"

/* simpleperf has this period for events that do not sample. */
#define NEVER		BIT_ULL(62)

static const char too_large[] = "is in too large a group: record fewer events";

static bool is_tracepoint(const struct evsel *evsel)
{
	return evsel->core.attr.type == PERF_TYPE_TRACEPOINT;
}

/* Returns true if the samples of an event have counts. */
bool fn_evsel__has_counts(const struct evsel *evsel)
{
	return !is_tracepoint(evsel) && evsel->core.attr.sample_type & PERF_SAMPLE_READ;
}

bool fn_evsel__is_sampler(const struct evsel *evsel)
{
	const struct fn_evsel *own = evsel->priv;

	return own && (own->samples || own->windows);
}

static bool is_aux_pmu(const char *name)
{
	static const char *const pmus[] = {
		"intel_pt", "intel_bts", "cs_etm", "arm_spe", "hisi_ptt",
	};

	for (size_t i = 0; i < ARRAY_SIZE(pmus); i++) {
		if (strstarts(name, pmus[i]))
			return true;
	}
	return false;
}

const char *fn_env__pmu(const struct perf_env *env, u32 type)
{
	const char *mapping = env ? env->pmu_mappings : NULL;
	char *colon;

	for (int i = 0; mapping && i < env->nr_pmu_mappings; i++) {
		if (strtoul(mapping, &colon, 10) == type && *colon)
			return colon + 1;
		mapping += strlen(mapping) + 1;
	}
	return NULL;
}

const char *fn_evsel__pmu(struct evsel *evsel)
{
	const u32 type = evsel->core.attr.type;

	if (type < PERF_TYPE_RAW)
		return "";
	/* A pipe may lack the mapping. */
	return fn_env__pmu(evsel__env(evsel), type) ?: evsel__name(evsel);
}

/* Returns true if an event is one of AUX data, which has no samples; they may be stripped. */
bool fn_evsel__is_of_aux(struct evsel *evsel)
{
	return evsel->core.attr.type >= PERF_TYPE_MAX &&
	       (is_aux_pmu(evsel__name(evsel)) || is_aux_pmu(fn_evsel__pmu(evsel)));
}

/* Returns true if the samples of an event are operations. Call chains have none. */
static bool takes_operations(struct fn_session *session, struct evsel *evsel)
{
	const struct fn_source *source = session->options->source;

	return (!source || source == &fn_operations) && fn_operations__are(evsel);
}

/* An event that perf inject has made of AUX data: its samples have periods, and it has none. */
static bool is_synthesized(struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;

	return !attr->sample_period && attr->sample_type & PERF_SAMPLE_PERIOD &&
	       !fn_evsel__has_counts(evsel) && evsel->core.nr_members <= 1 &&
	       evsel__is_group_leader(evsel);
}

/* Returns true if an event ends the intervals of its group. */
static bool ends_intervals(struct evsel *evsel)
{
	return evsel__is_group_leader(evsel) && fn_evsel__has_counts(evsel) &&
	       evsel->core.attr.sample_period;
}

/* Returns true if the samples of an event tell how often it has happened. */
static bool has_periods(struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;

	/* Without a period, the counts of the group tell. */
	if (is_tracepoint(evsel) || attr->sample_period >= NEVER ||
	    fn_evsel__is_of_aux(evsel) ||
	    (attr->freq && !(attr->sample_type & PERF_SAMPLE_PERIOD) && !ends_intervals(evsel)))
		return false;
	if (attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_DUMMY ||
						 attr->config == PERF_COUNT_SW_BPF_OUTPUT))
		return false;
	return attr->sample_period || is_synthesized(evsel);
}

/* Returns true if the samples of an event count: for windows, those of the leader tell shares. */
static bool wants_samples(struct fn_session *session, struct evsel *evsel)
{
	const struct fn_source *source = session->options->source;
	const struct fn_evsel *own = evsel->priv;
	const bool is_leading = ends_intervals(evsel) || (own && own->windows);

	return source != &fn_branches && !takes_operations(session, evsel) &&
	       has_periods(evsel) && (source != &fn_windows || is_leading);
}

bool fn_session__takes(struct fn_session *session, struct evsel *evsel)
{
	return wants_samples(session, evsel) || ends_intervals(evsel) ||
	       takes_operations(session, evsel);
}

int fn_evsel__refuse(struct evsel *evsel, const char *reason)
{
	char *name = function_text__printable(evsel__name(evsel));

	fn_err("%s %s", name ?: "an event", reason);
	free(name);
	return -EINVAL;
}

bool fn_session__refuses(struct fn_session *session, struct evsel *evsel)
{
	const char *lacks = session->has_chains ? fn_chains__lacks(session->options, evsel) :
						  fn_rows__lacks(session->rows, evsel);
	char reason[256];

	if (session->options->cpus && !(evsel->core.attr.sample_type & PERF_SAMPLE_CPU))
		lacks = "--sample-cpu";
	if (session->options->span && !(evsel->core.attr.sample_type & PERF_SAMPLE_TIME))
		lacks = "-T";
	if (!lacks)
		return false;
	scnprintf(reason, sizeof(reason), "lacks data that these options need: use %s%s",
		  session->options->is_due ? "" : "perf functions record ", lacks);
	fn_evsel__refuse(evsel, reason);
	return true;
}

static int ignore_event(struct fn_session *session, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	char *name, *text = NULL;
	int err;

	/* perf record adds a dummy; SPE's records are samples of other events. */
	if ((attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_DUMMY) ||
	    (session->itrace.set && fn_evsel__is_of_aux(evsel)))
		return 0;
	name = function_text__printable(evsel__name(evsel));
	if (name && asprintf(&text, "%s (%s)", name, is_tracepoint(evsel) ? "a tracepoint" :
			     attr->type == PERF_TYPE_SOFTWARE &&
			     attr->config == PERF_COUNT_SW_BPF_OUTPUT ?
			     "written by BPF: time off the CPU, for example" :
			     "in no counter group") < 0)
		text = NULL;
	err = text ? strlist__add(session->ignored, text) : -ENOMEM;
	free(text);
	free(name);
	session->has_event |= !is_tracepoint(evsel);
	return err == -EEXIST ? 0 : err;
}

/* Returns true if the samples of an event have records of all branches, where it counts. */
static bool has_records(struct fn_session *session, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	const u64 levels = attr->branch_sample_type & PERF_SAMPLE_BRANCH_PLM_ALL;
	const char *by = session->options->by;

	return !session->has_chains && !fn_by__has(by, FN_BY_CALLCHAIN) &&
	       has_periods(evsel) && attr->sample_type & PERF_SAMPLE_BRANCH_STACK &&
	       attr->branch_sample_type & PERF_SAMPLE_BRANCH_ANY &&
	       !evsel__has_branch_callstack(evsel) &&
	       (!levels || ((attr->exclude_user || levels & PERF_SAMPLE_BRANCH_USER) &&
			    (attr->exclude_kernel || levels & PERF_SAMPLE_BRANCH_KERNEL)));
}

/* Returns true if an event is not known to be in a group. */
bool fn_evsel__is_alone(struct evsel *evsel)
{
	return !fn_evsel__has_counts(evsel) && evsel__leader(evsel)->core.nr_members <= 1;
}

/* Returns true if the events of both sample in one set. */
static bool are_together(struct fn_session *session, struct evsel *a, struct evsel *b)
{
	return a->core.leader == b->core.leader ||
	       (fn_evsel__is_alone(a) && fn_evsel__is_alone(b) &&
		fn_event__core(&a->core.attr) == fn_event__core(&b->core.attr) &&
		a->core.attr.sample_period && b->core.attr.sample_period &&
		!takes_operations(session, a) && !takes_operations(session, b));
}

/*
 * Returns true if branch records tell the functions of the samples of all events of a group: both
 * sides of a rate need the same place. Software events are not late. A branch does not tell the
 * line of the event.
 */
static bool all_have_records(struct fn_session *session, struct evsel *const *evsels,
			     unsigned int nr)
{
	bool found = false;

	if (fn_by__has(session->options->by, FN_BY_SRCLINE))
		return false;
	for (unsigned int i = 0; i < nr; i++) {
		if (has_records(session, evsels[i]))
			found = true;
		else if (evsels[i]->core.attr.type != PERF_TYPE_SOFTWARE)
			return false;
	}
	return found;
}

bool fn_session__has_cgroups(const struct fn_session *session)
{
	const struct perf_env *env = &session->session->header.env;

	/* perf record takes cgroups with -a only; the options of a program may look alike. */
	if (session->is_of_tasks)
		return false;
	for (int i = 0; env->cmdline_argv && i < env->nr_cmdline; i++) {
		const char *word = env->cmdline_argv[i];

		if (strstarts(word, "--cg") || strstarts(word, "--for-each") ||
		    (word[0] == '-' && word[1] != '-' && strchr(word, 'G')))
			return true;
	}
	return !env->cmdline_argv;
}

/*
 * Returns true if two events of one name that count at the same time have counts in common. Those
 * of cgroups are alike, and count one after the other.
 */
static bool are_repeated(const struct fn_session *session, const struct evsel *one,
			 const struct evsel *other)
{
	const struct perf_event_attr *a = &one->core.attr, *b = &other->core.attr;

	/* Kinds of cores, modes of the CPU. */
	if ((a->type >= PERF_TYPE_RAW && b->type >= PERF_TYPE_RAW && a->type != b->type) ||
	    ((a->exclude_user || b->exclude_user) && (a->exclude_kernel || b->exclude_kernel)) ||
	    ((a->exclude_host || b->exclude_host) && (a->exclude_guest || b->exclude_guest)))
		return false;
	return a->type != b->type || a->config != b->config || a->config1 != b->config1 ||
	       a->config2 != b->config2 || a->exclude_user != b->exclude_user ||
	       a->exclude_kernel != b->exclude_kernel || a->sample_period != b->sample_period ||
	       a->precise_ip != b->precise_ip || one->core.leader == other->core.leader ||
	       !fn_session__has_cgroups(session);
}

/* Returns true if an event must not have this name: another one has it, and is not to be added. */
static bool is_taken(struct fn_session *session, struct evsel *evsel, const char *name)
{
	struct evsel *other;

	evlist__for_each_entry(session->session->evlist, other) {
		const struct fn_evsel *own = other->priv;

		if (name && own && own->name && !strcmp(own->name, name) &&
		    (fn_event__differs(&evsel->core.attr, &other->core.attr, session->cpu) ||
		     (are_together(session, evsel, other) && are_repeated(session, evsel, other))))
			return true;
	}
	return false;
}

/*
 * Names an event by what it counts. If another one of the name counts something else, or the same
 * once more, it has perf's name, with a number if the other one has that, too.
 */
static int name_event(struct fn_session *session, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	char *name = is_synthesized(evsel) ? strdup(evsel__name(evsel)) :
		     fn_event__name(attr, evsel__name(evsel),
				    fn_env__pmu(evsel__env(evsel), attr->type), session->cpu);

	for (unsigned int nr = 1; is_taken(session, evsel, name); nr++) {
		free(name);
		if (asprintf(&name, nr > 1 ? "%s#%u" : "%s", evsel__name(evsel), nr) < 0)
			name = NULL;
	}
	((struct fn_evsel *)evsel->priv)->name = name;
	return name ? 0 : -ENOMEM;
}

struct fn_group fn_evsel__group(const struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;

	return (struct fn_group){
		.period	= attr->freq ? 0 : attr->sample_period,
		.freq	= attr->freq ? attr->sample_freq : 0,
		.inherit = attr->inherit,
	};
}

/* Finds or makes the set of events, in which those of one name are one event; or an error. */
static struct fn_set *make_set(struct fn_session *session, const struct fn_source *source,
			       struct evsel *const *evsels, unsigned int nr, bool is_recorded)
{
	const struct perf_event_attr *attr = &evsels[0]->core.attr;
	struct fn_group group = fn_evsel__group(evsels[0]);
	struct fn_event events[FN_MOST_EVENTS];
	unsigned int nr_events = 0;

	group.window = attr->alternative_sample_period;
	group.burst = attr->alternative_sample_count;
	group.jitter = attr->jitter_alternate_period;
	for (unsigned int i = 0; i < nr; i++) {
		const struct fn_evsel *own = evsels[i]->priv;
		const bool is_precise = is_recorded || is_synthesized(evsels[i]) ||
					evsels[i]->core.attr.precise_ip;
		unsigned int j = 0;

		while (j < nr_events && strcmp(events[j].name, own->name))
			j++;
		if (j < nr_events) {
			events[j].is_precise &= is_precise;
			continue;
		}
		if (nr_events == FN_MOST_EVENTS)
			return ERR_PTR(fn_evsel__refuse(evsels[0], too_large));
		events[nr_events++] = (struct fn_event){
			.name = own->name, .is_precise = is_precise, .scale = 1,
		};
	}
	return fn_table__findnew_set(session->table, source, &group, events, nr_events) ?:
	       ERR_PTR(-ENOMEM);
}

/* Returns the largest change of an interval by jitter. */
static u64 jitter_of(u32 width, u64 period)
{
	const u32 bits = min(width, 63U);

	return bits ? min_t(u64, 1ULL << bits, period / 2) : 0;
}

/* Sets which intervals of a group are windows. */
static void set_limit(struct fn_evsel *sampler)
{
	const struct perf_event_attr *attr = &sampler->evsel->core.attr;
	const u64 window = attr->alternative_sample_period;
	/*
	 * With a frequency the long period changes, and only the kernel knows it. A window is meant
	 * to be at most a quarter of it. An interval that is as short as a window is as useful,
	 * whichever of the two it was.
	 */
	const u64 period = attr->freq ? 4 * min_t(u64, window, UINT64_MAX / 4) :
					attr->sample_period;
	u64 longest = window + min(jitter_of(attr->jitter_alternate_period, window),
				   UINT64_MAX - window);
	u64 shortest = period - jitter_of(attr->jitter_alternate_period, period);

	/* Equal periods mean one period with jitter. */
	sampler->alternates = window && window != period;
	sampler->limit = shortest / 2 + longest / 2 + ((shortest | longest) & 1);
}

/* Makes an event the sampler of its group, and the first of the members. */
static int add_sampler(struct fn_session *session, struct evsel *evsel)
{
	const struct fn_source *source = session->options->source;
	struct evsel *members[FN_MOST_EVENTS] = { evsel }, *pos;
	struct fn_evsel *sampler = evsel->priv;
	unsigned int nr = 1;

	for_each_group_evsel(pos, evsel__leader(evsel)) {
		/* A tracepoint counts nothing that a metric needs. */
		if (pos == evsel || is_tracepoint(pos))
			continue;
		if (nr == FN_MOST_EVENTS)
			return fn_evsel__refuse(pos, too_large);
		members[nr++] = pos;
	}
	sampler->members = calloc(nr, sizeof(*sampler->members));
	sampler->windows = make_set(session, &fn_windows, members, nr, /*is_recorded=*/false);
	if (!sampler->members || IS_ERR(sampler->windows))
		return -ENOMEM;
	set_limit(sampler);
	sampler->nr_members = nr;
	sampler->windows->is_complete &= !sampler->alternates;
	/* A window would be of the functions that were on the stack from its start to its end. */
	sampler->windows->is_dropped = session->has_chains || (source && source != &fn_windows);
	for (unsigned int i = 0; i < nr; i++) {
		struct fn_evsel *own = members[i]->priv;

		own->sampler = sampler;
		own->member = i;
		own->slot = fn_set__find(sampler->windows, own->name);
		sampler->members[i] = own;
	}
	session->has_set |= !sampler->windows->is_dropped;
	return 0;
}

static void add_sample_event(struct fn_session *session, struct fn_set *set, struct evsel *evsel,
			     bool is_recorded)
{
	struct fn_evsel *own = evsel->priv;

	own->samples = set;
	own->event = fn_set__find(set, own->name);
	own->has_records = is_recorded;
	session->wants_sites |= !session->has_chains && !set->events[own->event].is_precise;
	if (own->windows)
		own->windows->even = set;
}

/* Lets the samples of some events be observations: of a group, or of all that are alone. */
static int add_samples(struct fn_session *session, struct evsel *first)
{
	struct evlist *evlist = session->session->evlist;
	struct evsel **evsels = calloc(evlist->core.nr_entries, sizeof(*evsels)), *pos;
	struct fn_set *set = NULL;
	unsigned int nr = 0;
	bool is_recorded;
	int err = evsels ? 0 : -ENOMEM;

	evlist__for_each_entry(evlist, pos) {
		if (err || !are_together(session, first, pos) || !wants_samples(session, pos))
			continue;
		evsels[nr++] = pos;
		err = fn_session__refuses(session, pos) ? -EINVAL : 0;
	}
	if (!err && nr) {
		is_recorded = all_have_records(session, evsels, nr);
		set = make_set(session, &fn_samples, evsels, nr, is_recorded);
		err = PTR_ERR_OR_ZERO(set);
	}
	if (!err && nr) {
		set->is_recorded &= is_recorded;
		set->is_complete = false;
		/* What operations are divided by. */
		set->is_hidden = session->options->source == &fn_windows ||
				 session->options->source == &fn_operations;
		session->has_set = true;
		for (unsigned int i = 0; i < nr; i++)
			add_sample_event(session, set, evsels[i], is_recorded);
	}
	free(evsels);
	return err;
}

/*
 * Lets the branch records of cycles count: their samples are taken at times that do not depend on
 * what the program does.
 */
static int add_paths(struct fn_session *session, struct evsel *evsel)
{
	const struct fn_source *source = session->options->source;
	struct fn_evsel *own = evsel->priv;

	if ((source && source != &fn_branches) || !has_records(session, evsel) ||
	    strcmp(own->name, "cycles"))
		return 0;
	own->paths = fn_paths__new(session, evsel);
	if (!own->paths)
		return -ENOMEM;
	session->has_set = true;
	return 0;
}

static int add_operations(struct fn_session *session, struct evsel *evsel)
{
	if (!takes_operations(session, evsel))
		return 0;
	if (session->has_chains || fn_by__has(session->options->by, FN_BY_CALLCHAIN)) {
		if (!session->options->source)
			return 0;
		return fn_evsel__refuse(evsel,
					"has operations, which have no call chains: leave out --children");
	}
	if (fn_session__refuses(session, evsel))
		return -EINVAL;
	session->has_set = true;
	return fn_operations__add(session, evsel);
}

/* perf record does not write this. */
int fn_evsel__refuse_values(struct evsel *evsel)
{
	return fn_evsel__refuse(evsel,
				"has a sample with the values of another event: the file is damaged, record again");
}

/*
 * Makes a group of the events that a sample has values of, the leader's first: not every header
 * describes the groups. Without a sample, only the header is known.
 */
static int group_by_ids(struct fn_session *session, struct evsel *evsel,
			const struct perf_sample *sample)
{
	const u64 read_format = evsel->core.attr.read_format;
	struct evsel *leader = NULL, *last = NULL, *member, *pos;
	struct sample_read_value *v;

	if (!sample || !fn_evsel__has_counts(evsel) || !(read_format & PERF_FORMAT_GROUP))
		return 0;
	v = sample->read.group.values;
	sample_read_group__for_each(v, sample->read.group.nr, read_format) {
		member = evlist__id2evsel_strict(session->session->evlist, v->id);
		leader = leader ?: member;
		if (!member || member->core.leader == leader->core.leader)
			continue;
		/* Samples before may have been those of another group. */
		if (member->priv || leader->priv || !evsel__is_group_leader(leader) ||
		    !evsel__is_group_leader(member) || member->core.nr_members > 1)
			return fn_evsel__refuse_values(evsel);
		if (!last) {
			for_each_group_evsel(pos, leader)
				last = pos;
		}
		evsel__set_leader(member, leader);
		leader->core.nr_members = max(leader->core.nr_members, 1) + 1;
		list_move(&member->core.node, &last->core.node);
		last = member;
	}
	return 0;
}

/*
 * Adds an event with its whole group, when its first sample comes; NULL: there is no sample. Events
 * that are alone are one group, as if their counters always ran.
 */
int fn_session__add_events(struct fn_session *session, struct evsel *evsel,
			   const struct perf_sample *sample)
{
	int err = group_by_ids(session, evsel, sample);
	struct evlist *evlist = session->session->evlist;
	struct evsel *leader, *sampler, *pos;

	if (err)
		return err;
	leader = evsel__leader(evsel);
	evlist__for_each_entry(evlist, pos) {
		if (!are_together(session, evsel, pos))
			continue;
		if (pos->priv)
			return fn_evsel__refuse_values(evsel);
		pos->priv = zalloc(sizeof(struct fn_evsel));
		if (!pos->priv || name_event(session, pos))
			return -ENOMEM;
		((struct fn_evsel *)pos->priv)->evsel = pos;
	}
	/* A leader without a period, of AUX data for example, lets another member sample. */
	sampler = fn_evsel__has_counts(leader) && leader->core.attr.sample_period ? leader : evsel;
	if (fn_evsel__has_counts(sampler) && !takes_operations(session, sampler)) {
		if (fn_session__refuses(session, sampler))
			return -EINVAL;
		err = add_sampler(session, sampler);
	}
	err = err ?: add_samples(session, sampler);
	evlist__for_each_entry(evlist, pos) {
		const struct fn_evsel *own = pos->priv;

		if (err || !are_together(session, evsel, pos))
			continue;
		err = add_paths(session, pos) ?: add_operations(session, pos);
		if (!err && !own->samples && !own->sampler && !own->paths && !own->operations)
			err = ignore_event(session, pos);
	}
	return err;
}

int fn_session__add_idle_events(struct fn_session *session)
{
	struct evsel *evsel;
	int err = 0;

	if (session->has_set)
		return 0;
	evlist__for_each_entry(session->session->evlist, evsel) {
		if (!err && !evsel->priv && fn_session__takes(session, evsel) &&
		    !is_synthesized(evsel))
			err = fn_session__add_events(session, evsel, NULL);
	}
	return err;
}
