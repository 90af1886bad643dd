// SPDX-License-Identifier: GPL-2.0
/* Reads recordings of groups and adds up the counts of their samples by function. */
#include <byteswap.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>

#include "../../addr_location.h"
#include "../../annotate.h"
#include "../../build-id.h"
#include "../../callchain.h"
#include "../../data.h"
#include "../../debug.h"
#include "../../dso.h"
#include "../../event.h"
#include "../../evlist.h"
#include "../../evsel.h"
#include "../../hashmap.h"
#include "../../header.h"
#include "../../hist.h"
#include "../../machine.h"
#include "../../map.h"
#include "../../map_symbol.h"
#include "../../session.h"
#include "../../strlist.h"
#include "../../symbol.h"
#include "../../thread.h"
#include "../../time-utils.h"
#include "../../tool.h"
#include "../../util.h"
#include "../../../arch/common.h"
#include "../text.h"
#include "../events.h"
#include "branches.h"
#include "recording.h"
#include "resolve.h"
#include "sums.h"
#include "windows.h"

#define EXAMPLE_EVENTS "cycles,instructions,branch-misses"

/* An address in a thread at which samples were taken, and its function. */
struct place {
	struct machine *machine;
	u64 ip;
	u32 pid;
	u32 tid;
	u8 cpumode;
	bool filtered;
	bool nowhere;
	/* recording.nr_changes when it was looked up; 0: another sample there may differ. */
	u32 change;
	struct collect_function *function;
	/* Valid until the next record: the map or NULL, the address in it, and its symbol. */
	struct map *map;
	struct symbol *sym;
	u64 addr;
};

/* A thread in which samples were taken. */
struct known_thread {
	struct machine *machine;
	u32 pid;
	u32 tid;
	u32 change;		/* recording.nr_changes when it was looked up */
	bool filtered;		/* the user does not want to see it */
	u64 number;
};

/* simpleperf has this period for events that do not sample. */
#define NEVER		BIT_ULL(62)

/* Sums of event samples that differ by more from what was counted are worth a message. */
#define MOST_DIFFERENCE	0.05
/* With more, most of what a short process has counted is not sampled. */
#define MOST_SCALE	2
/* With fewer samples for each new thread, the ends of threads and their places matter. */
#define FEW_PER_THREAD	5

#define PLACES_BITS	12
#define THREADS_BITS	6

/* In a live recording, a stream may be forgotten after this many ns without a sample. */
#define FORGET_AFTER	(60 * NSEC_PER_SEC)

/* A recording that is being read. */
struct recording {
	struct recording *next;
	struct perf_tool tool;
	struct perf_data data;
	struct perf_session *session;
	struct window_collector *metrics;
	struct function_finder *finder;
	struct branch_paths *paths;	/* of all events with branch records so far */
	/* Counts of the current sample, for each event of its group. */
	u64 *counts;
	unsigned int nr_counts;
	/* With FUNCTION_BY_CHILDREN, the call chain of the current sample. */
	struct function_chain chain;
	bool has_chain;
	/* A cache of places by hash, because samples gather at few and a lookup takes long. */
	struct place *places;
	struct known_thread threads[1 << THREADS_BITS];
	/* Number of changes of threads and maps, from 1. */
	u32 nr_changes;
	bool has_group;
	bool has_aux;		/* data */
	/* Some ignored event is no tracepoint. */
	bool has_event;
	/* It has what only a newer perf knows. */
	bool is_newer;
	/* Its events are those of tasks, not of CPUs. */
	bool is_of_tasks;
	/* Symbols by function, to annotate their code; NULL if not requested. */
	struct hashmap *symbols;
	/* The reason why it cannot be read has been printed. */
	bool is_refused;
	struct strlist *ignored;
	u64 nr_samples;
	u64 lost_records;
	u64 lost_outside;	/* of the spans of time that the user wants to see */
	u64 lost_samples;
	u64 throttled;
	u64 nr_tasks;		/* that began during the recording */
	/* All sums; with spans of time, the sums of the finished spans. */
	struct function_table *table;
	const struct recording_options *options;
	bool has_begun;
	u64 begin;
	u64 last;		/* sample, if it is live */
	u64 forgot;		/* when idle streams were last searched */
	u64 told_lost;
	struct perf_time_interval *ranges;
	int range_size;
	int range_num;
};

/* evsel->priv: the place of an event's counts. */
struct functions_evsel {
	struct collect_group *group;	/* NULL: not in a group, not counted */
	struct collect_group *samples;	/* NULL: its own samples do not count */
	unsigned int sample_slot;
	bool has_records;		/* the last one tells the function of a sample */
	bool is_branch;			/* it is one, or a mispredicted one */
	bool is_miss;
	struct branch_paths *paths;	/* of its samples' branch records; NULL: not used */
	struct evsel *sampler;		/* the event of the group that has its windows */
	unsigned int slot;		/* 0 for the sampler */
	unsigned int nr_slots;		/* of the group, if it is the sampler */
	/* The mean periods of the first and second samples of recent streams, 0: none yet. */
	double first;
	double second;
	/* Of all samples that it has taken itself. */
	double periods;
	u64 nr_samples;
};

static bool is_tracepoint(const struct evsel *evsel)
{
	return evsel->core.attr.type == PERF_TYPE_TRACEPOINT;
}

/* Returns true if the samples of an event have counts. */
static bool has_counts(const struct evsel *evsel)
{
	return !is_tracepoint(evsel) && evsel->core.attr.sample_type & PERF_SAMPLE_READ;
}

static bool is_sampler(const struct evsel *evsel)
{
	const struct functions_evsel *event = evsel->priv;

	return event && (event->samples || (event->group && event->sampler == evsel));
}

/* Returns true if an event is one of AUX data, though they may have been stripped. */
static bool has_aux_pmu(struct evsel *evsel)
{
	static const char *const pmus[] = { "intel_pt/", "intel_bts/", "cs_etm/", "arm_spe_" };
	const char *name = evsel__name(evsel);

	for (size_t i = 0; i < ARRAY_SIZE(pmus); i++) {
		if (strstarts(name, pmus[i]))
			return true;
	}
	return false;
}

/* Returns true if the samples of an event tell how often it has happened. */
static bool has_periods(const struct recording *recording, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;

	if (!attr->sample_period || attr->sample_period >= NEVER || is_tracepoint(evsel) ||
	    (attr->freq && !(attr->sample_type & PERF_SAMPLE_PERIOD)))
		return false;
	if (attr->type == PERF_TYPE_SOFTWARE)
		return attr->config != PERF_COUNT_SW_DUMMY &&
		       attr->config != PERF_COUNT_SW_BPF_OUTPUT;
	/* AUX data come from a PMU of their own, which has no samples. */
	return attr->type < PERF_TYPE_MAX || (!recording->has_aux && !has_aux_pmu(evsel));
}

/*
 * Returns true if the samples of an event count. By default they do unless each event that samples
 * does so for a whole group, whose windows then are what was recorded.
 */
static bool wants_samples(const struct recording *recording, struct evsel *evsel)
{
	const enum function_source source = recording->options->source;
	struct evsel *pos;

	if (source == FUNCTION_SOURCE_WINDOWS || !has_periods(recording, evsel))
		return false;
	if (source == FUNCTION_SOURCE_SAMPLES)
		return true;
	evlist__for_each_entry(recording->session->evlist, pos) {
		struct evsel *leader = evsel__leader(pos);

		if (has_periods(recording, pos) &&
		    (!has_counts(pos) ||
		     (pos != leader && has_counts(leader) && leader->core.attr.sample_period)))
			return true;
	}
	return false;
}

/* Returns true if the header says that the samples of an event, or their counts, are used. */
static bool takes_samples(const struct recording *recording, struct evsel *evsel)
{
	return wants_samples(recording, evsel) ||
	       (evsel__is_group_leader(evsel) && has_counts(evsel) &&
		evsel->core.attr.sample_period);
}

/* Prints why events cannot be read. Escapes their names: they come from a file. */
static int refuse(struct recording *recording, struct evsel *evsel, const char *reason)
{
	char *name = function_text__printable(evsel__name(evsel));

	pr_err("perf functions: %s %s\n", name ?: "an event", reason);
	free(name);
	recording->is_refused = true;
	return -EINVAL;
}

/* Returns true, after a message, if the samples of an event lack what was requested. */
static bool refuse_sampler(struct recording *recording, struct evsel *sampler)
{
	const char *lacks = function_finder__lacks(recording->finder, sampler);
	char reason[256];

	if (recording->options->cpus && !(sampler->core.attr.sample_type & PERF_SAMPLE_CPU))
		lacks = "--sample-cpu";
	if (recording->options->span && !(sampler->core.attr.sample_type & PERF_SAMPLE_TIME))
		lacks = "-T";
	if (!lacks)
		return false;
	scnprintf(reason, sizeof(reason),
		  "lacks data that these options need: use %s%s",
		  recording->options->is_due ? "" : "perf functions record ", lacks);
	refuse(recording, sampler, reason);
	return true;
}

/* Returns the events that the samples of an event count, NULL if there are none. */
static struct collect_group *new_group(struct recording *recording, struct evsel *sampler)
{
	const struct perf_event_attr *attr = &sampler->core.attr;
	struct collect_group *group;

	callchain_param_setup(attr->sample_type,
			      perf_session__e_machine(recording->session, /*e_flags=*/NULL));
	if (!has_counts(sampler))
		return NULL;
	if (refuse_sampler(recording, sampler))
		return ERR_PTR(-EINVAL);
	group = window_collector__add_group(recording->metrics, attr);
	if (!group)
		return ERR_PTR(-ENOMEM);
	/* Event samples need what the group has counted, not its windows. */
	if (recording->options->source == FUNCTION_SOURCE_SAMPLES)
		collect_group__hide(group, true);
	else
		recording->has_group = true;
	return group;
}

static int ignore_event(struct recording *recording, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	char *name = function_text__printable(evsel__name(evsel)), *text = NULL;
	int err;

	if (name && asprintf(&text, "%s (%s)", name, is_tracepoint(evsel) ? "a tracepoint" :
			     attr->type == PERF_TYPE_SOFTWARE &&
			     attr->config == PERF_COUNT_SW_BPF_OUTPUT ?
			     "written by BPF: time off the CPU, for example" :
			     "in no counter group") < 0)
		text = NULL;
	err = text ? strlist__add(recording->ignored, text) : -ENOMEM;
	free(text);
	free(name);
	recording->has_event |= !is_tracepoint(evsel);
	return err == -EEXIST ? 0 : err;
}

/* Returns true if thread and address of a sample do not suffice. */
static bool needs_sample(const struct recording *recording)
{
	return recording->symbols || function_finder__needs_sample(recording->finder);
}

/* Returns true if the samples of an event have records of all branches, where it counts. */
static bool has_records(const struct recording *recording, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	const char *by = recording->options->by;
	const u64 levels = attr->branch_sample_type & PERF_SAMPLE_BRANCH_PLM_ALL;

	return !function_by__has(by, FUNCTION_BY_CALLCHAIN) &&
	       !function_by__has(by, FUNCTION_BY_CHILDREN) && has_periods(recording, evsel) &&
	       attr->sample_type & PERF_SAMPLE_BRANCH_STACK &&
	       attr->branch_sample_type & PERF_SAMPLE_BRANCH_ANY &&
	       !evsel__has_branch_callstack(evsel) &&
	       (!levels || ((attr->exclude_user || levels & PERF_SAMPLE_BRANCH_USER) &&
			    (attr->exclude_kernel || levels & PERF_SAMPLE_BRANCH_KERNEL)));
}

/*
 * Returns true if the branches before the samples of an event count: the samples are taken at times
 * that do not depend on what the program does.
 */
static bool has_paths(const struct recording *recording, struct evsel *evsel)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	const enum function_source source = recording->options->source;
	char *name, *cpu;
	bool is_cycles;

	if (source == FUNCTION_SOURCE_WINDOWS || source == FUNCTION_SOURCE_SAMPLES ||
	    !has_records(recording, evsel))
		return false;
	cpu = perf_env__describe_cpu(&recording->session->header.env);
	name = fn_event__name(attr, evsel__name(evsel), cpu);
	free(cpu);
	is_cycles = name && !strcmp(name, "cycles");
	free(name);
	return is_cycles;
}

/* Lets the branch counters of a group count, which are in the order of its events. */
static int add_counters(struct recording *recording, struct evsel *leader)
{
	struct perf_env *env = &recording->session->header.env;
	unsigned int width;
	struct evsel *pos;
	char *cpu;
	int err = 0;

	if (!env->cpu_pmu_caps && !env->pmu_caps)
		return 0;
	perf_env__find_br_cntr_info(env, NULL, &width);
	cpu = perf_env__describe_cpu(env);
	for_each_group_evsel(pos, leader) {
		if (!err && pos->core.attr.branch_sample_type & PERF_SAMPLE_BRANCH_COUNTERS)
			err = branch_paths__add_counter(recording->paths, &pos->core.attr,
							evsel__name(pos), cpu, width);
	}
	free(cpu);
	return err;
}

/* Lets the branch records of an event count. */
static int add_paths(struct recording *recording, struct evsel *evsel)
{
	const char *arch = perf_env__arch(&recording->session->header.env);
	struct functions_evsel *event = evsel->priv;

	if (!has_paths(recording, evsel))
		return 0;
	event->paths = branch_paths__new(recording->metrics, &evsel->core.attr, arch,
					 recording->paths);
	if (!event->paths)
		return -ENOMEM;
	recording->paths = event->paths;
	return add_counters(recording, evsel__leader(evsel));
}

/* Returns the slot of an event in a group, or an error. */
static int add_to_group(struct recording *recording, struct collect_group *group,
			struct evsel *evsel)
{
	char *cpu = perf_env__describe_cpu(&recording->session->header.env);
	int slot = collect_group__add_event(group, &evsel->core.attr, evsel__name(evsel), cpu);

	free(cpu);
	if (slot == -E2BIG)
		return refuse(recording, evsel, "is in too large a group: record fewer events");
	return slot;
}

/* Returns true if an event is not known to be in a group. */
static bool is_alone(struct evsel *evsel)
{
	return !has_counts(evsel) && evsel__leader(evsel)->core.nr_members <= 1;
}

static bool same_core(const struct evsel *a, const struct evsel *b)
{
	return fn_event__core(&a->core.attr) == fn_event__core(&b->core.attr);
}

/*
 * Returns true if branch records tell the functions of the samples of an event, and of all events
 * of its group: both sides of a rate need the same place. Software events are not late. A branch
 * does not tell the line of the event.
 */
static bool all_have_records(const struct recording *recording, struct evsel *evsel)
{
	bool found = false;
	struct evsel *pos;

	if (function_by__has(recording->options->by, FUNCTION_BY_SRCLINE))
		return false;
	evlist__for_each_entry(recording->session->evlist, pos) {
		if ((pos->core.leader != evsel->core.leader &&
		     (!is_alone(pos) || !is_alone(evsel) || !same_core(pos, evsel))) ||
		    !wants_samples(recording, pos))
			continue;
		if (has_records(recording, pos))
			found = true;
		else if (pos->core.attr.type != PERF_TYPE_SOFTWARE)
			return false;
	}
	return found;
}

/* Lets the samples of an event count, in the group @samples, which the first event begins. */
static int add_samples(struct recording *recording, struct collect_group **samples,
		       struct evsel *evsel)
{
	struct functions_evsel *event = evsel->priv;
	const char *name;
	int slot;

	if (refuse_sampler(recording, evsel))
		return -EINVAL;
	recording->has_group = true;
	event->has_records = all_have_records(recording, evsel);
	if (!*samples)
		*samples = window_collector__add_samples(recording->metrics, &evsel->core.attr,
							 event->has_records ?
							 FUNCTION_SHARE_RECORDED :
							 FUNCTION_SHARE_SAMPLES);
	slot = *samples ? add_to_group(recording, *samples, evsel) : -ENOMEM;
	if (slot < 0)
		return slot;
	name = collect_group__event(*samples, slot);
	event->is_branch = fn_event__is_branch(name);
	event->is_miss = strstr(name, "mis");
	event->samples = *samples;
	event->sample_slot = slot;
	return 0;
}

static int recording_add_event(struct recording *recording, struct collect_group *group,
			       struct collect_group **samples, struct evsel *sampler,
			       struct evsel *evsel)
{
	struct functions_evsel *event = zalloc(sizeof(*event));
	int slot, err;

	if (!event)
		return -ENOMEM;
	evsel->priv = event;

	err = wants_samples(recording, evsel) ? add_samples(recording, samples, evsel) : 0;
	err = err ?: add_paths(recording, evsel);
	if (err)
		return err;
	/* A tracepoint counts nothing that a metric needs. */
	if (!group || is_tracepoint(evsel))
		return event->samples ? 0 : ignore_event(recording, evsel);

	slot = add_to_group(recording, group, evsel);
	if (slot < 0)
		return slot;
	event->group = group;
	event->sampler = sampler;
	event->slot = slot;

	if (collect_group__nr_events(group) > recording->nr_counts) {
		recording->nr_counts = collect_group__nr_events(group);
		free(recording->counts);
		recording->counts = calloc(recording->nr_counts, sizeof(*recording->counts));
		if (!recording->counts)
			return -ENOMEM;
	}
	return 0;
}

/* perf record does not write this: earlier samples belonged to another group. */
static int refuse_late(struct recording *recording, struct evsel *evsel)
{
	return refuse(recording, evsel,
		      "has come into its group after the first samples: record again");
}

/* In a damaged file, the values may be of an event that reads them in another form. */
static bool has_values(const union perf_event *event, const struct perf_sample *sample,
		       u64 read_format)
{
	const size_t begin = (size_t)sample->read.group.values - (size_t)event;
	const u64 nr = sample->read.group.nr;

	return begin <= event->header.size && nr <= event->header.size &&
	       begin + nr * sample_read_value_size(read_format) <= event->header.size;
}

/*
 * Makes a group of the events that a sample has values of, the leader's first: not every header
 * describes the groups. Without a sample, only the header is known.
 */
static int group_by_ids(struct recording *recording, struct evsel *evsel,
			const union perf_event *event, const struct perf_sample *sample)
{
	const u64 read_format = evsel->core.attr.read_format;
	struct evsel *leader = NULL, *last = NULL, *member, *pos;
	struct sample_read_value *v;

	if (!event || !has_counts(evsel) || !(read_format & PERF_FORMAT_GROUP) ||
	    !has_values(event, sample, read_format))
		return 0;
	v = sample->read.group.values;
	sample_read_group__for_each(v, sample->read.group.nr, read_format) {
		member = evlist__id2evsel_strict(recording->session->evlist, v->id);
		leader = leader ?: member;
		if (!member || member->core.leader == leader->core.leader)
			continue;
		if (member->priv || leader->priv)
			return refuse_late(recording, member);
		if (!evsel__is_group_leader(leader) || !evsel__is_group_leader(member) ||
		    member->core.nr_members > 1)
			return refuse(recording, member,
				      "is not in the group that counts it: the file is damaged, record again");
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

/* Returns the first event of its group in the header: recordings of the same events add up. */
static struct evsel *first_alone(const struct recording *recording, struct evsel *evsel)
{
	struct evsel *pos;

	if (!is_alone(evsel) || !wants_samples(recording, evsel))
		return evsel;
	evlist__for_each_entry(recording->session->evlist, pos) {
		if (!pos->priv && is_alone(pos) && wants_samples(recording, pos) &&
		    same_core(evsel, pos))
			return pos;
	}
	return evsel;
}

/*
 * Adds an event with its whole group, when its first sample comes; NULL: there is no sample. Events
 * that are alone are one group, as if their counters always ran.
 */
static int recording_add_events(struct recording *recording, struct evsel *evsel,
				const union perf_event *event, const struct perf_sample *sample)
{
	int err = group_by_ids(recording, evsel, event, sample);
	struct evsel *leader, *sampler, *pos;
	struct collect_group *group, *samples = NULL;
	struct functions_evsel *own;

	if (err)
		return err;
	evsel = first_alone(recording, evsel);
	leader = evsel__leader(evsel);
	for_each_group_evsel(pos, leader) {
		if (pos->priv)
			return refuse_late(recording, evsel);
	}

	/* A leader without a period, of AUX data for example, lets another member sample. */
	sampler = has_counts(leader) && leader->core.attr.sample_period ? leader : evsel;
	group = new_group(recording, sampler);
	if (IS_ERR(group))
		return PTR_ERR(group);
	err = recording_add_event(recording, group, &samples, sampler, sampler);
	for_each_group_evsel(pos, leader) {
		if (!err && pos != sampler)
			err = recording_add_event(recording, group, &samples, sampler, pos);
	}
	evlist__for_each_entry(recording->session->evlist, pos) {
		if (!err && !pos->priv && samples && is_alone(evsel) && is_alone(pos) &&
		    wants_samples(recording, pos) && same_core(evsel, pos))
			err = recording_add_event(recording, NULL, &samples, pos, pos);
	}
	if (err)
		return err;
	own = sampler->priv;
	if (group)
		own->nr_slots = collect_group__nr_events(group);
	return evsel->priv ? 0 : -EINVAL;
}

/* Returns the slot of a member of a group, -ENOENT if it has none, or -EINVAL after a message. */
static int find_slot(struct recording *recording, struct evsel *sampler, u64 id)
{
	struct evsel *member = evlist__id2evsel_strict(recording->session->evlist, id);
	const struct functions_evsel *event, *own = sampler->priv;

	if (!member)
		return -ENOENT;
	if (member->core.leader != sampler->core.leader)
		return refuse_late(recording, member);
	event = member->priv;
	if (!event || !event->group)
		return -ENOENT;
	if (event->group != own->group)
		return refuse_late(recording, member);
	return event->slot;
}

/* Returns the id of the sampler, though another member may sample; 0 if it has no value. */
static u64 find_sampler_id(const struct recording *recording, const struct evsel *evsel,
			   const union perf_event *event, const struct perf_sample *sample)
{
	const u64 read_format = evsel->core.attr.read_format;
	const u64 ids = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID;
	const struct functions_evsel *own = evsel->priv;
	struct sample_read_value *v = sample->read.group.values;

	if (!(read_format & PERF_FORMAT_GROUP) ||
	    (own->sampler == evsel && evsel->core.attr.sample_type & ids))
		return sample->id;
	if (!has_values(event, sample, read_format))
		return 0;
	sample_read_group__for_each(v, sample->read.group.nr, read_format) {
		if (evlist__id2evsel_strict(recording->session->evlist, v->id) == own->sampler)
			return v->id;
	}
	return 0;
}

/* Returns what an event has counted since the previous sample; value is the last one. */
static inline u64 count_since(struct collect_value *last, u64 value)
{
	/* A value below the one before belongs to a new thread. */
	u64 count = value < last->value ? value : value - last->value;

	last->value = value;
	return count;
}

static int refuse_values(struct recording *recording, struct evsel *evsel)
{
	return refuse(recording, evsel,
		      "has a sample with the values of another event: the file is damaged, record again");
}

/*
 * Sets the counts of each event since the previous sample of the stream. Returns 0, a negative
 * error, or 1 if the sampler, whose id is @id, has counted nothing.
 */
static int read_counts(struct recording *recording, struct collect_stream *stream,
		       struct collect_value *values, struct evsel *evsel, u64 id,
		       const union perf_event *event, struct perf_sample *sample)
{
	const u64 read_format = evsel->core.attr.read_format;
	const struct functions_evsel *own = evsel->priv, *sampler = own->sampler->priv;
	const unsigned int nr_slots = sampler->nr_slots;
	struct sample_read_value *v = sample->read.group.values;
	u64 *counts = recording->counts, *count = counts, nr = sample->read.group.nr, left;
	struct collect_value *next = values, *end = values + min_t(u64, nr, nr_slots);
	unsigned int slot;

	if (!(read_format & PERF_FORMAT_GROUP)) {
		if (read_format & PERF_FORMAT_ID && sample->read.one.id != id)
			return refuse_values(recording, evsel);
		memset(counts, 0, nr_slots * sizeof(*counts));
		counts[own->slot] = count_since(&values[0], sample->read.one.value);
		return counts[own->slot] ? 0 : 1;
	}
	if (!nr)
		return -EINVAL;
	left = has_values(event, sample, read_format) ? nr : 0;
	while (left && v->id != id) {
		v = next_sample_read_value(v, read_format);
		left--;
	}
	if (!left)
		return refuse_values(recording, evsel);
	if (v->value == values[0].value)
		return 1;
	v = sample->read.group.values;

	/* Most samples have all events, in the order of their slots. */
	for (; next < end && v->id && v->id == next->id; next++) {
		*count++ = count_since(next, v->value);
		v = next_sample_read_value(v, read_format);
	}
	slot = next - values;
	if (slot < nr_slots)
		memset(count, 0, (nr_slots - slot) * sizeof(*count));
	for (nr -= slot; nr; nr--, v = next_sample_read_value(v, read_format)) {
		if (slot >= nr_slots || !v->id || values[slot].id != v->id) {
			int found = find_slot(recording, own->sampler, v->id);

			if (found == -ENOENT)
				continue;
			if (found < 0)
				return found;
			slot = found;
			if (values[slot].id != v->id) {
				values[slot] = (struct collect_value){ .id = v->id };
				if (collect_stream__add_member(stream, v->id))
					return -ENOMEM;
			}
		}
		counts[slot] = count_since(&values[slot], v->value);
		slot++;
	}
	return 0;
}

/* A stream that begins with the recording has counted less than this before its first sample. */
#define MOST_BEFORE_SAMPLE	1000000

/*
 * Notes what the events of a group have counted up to a sample, be it of the leader or of a member.
 * Returns 0, or a negative error.
 */
static int note_counts(struct recording *recording, struct collect_stream *stream,
		       struct collect_value *values, struct evsel *evsel,
		       const union perf_event *event, struct perf_sample *sample)
{
	const u64 read_format = evsel->core.attr.read_format;
	const struct functions_evsel *own = evsel->priv, *sampler = own->sampler->priv;
	struct sample_read_value *v = sample->read.group.values;
	u64 *counted = collect_stream__counted(stream);
	const bool is_first = !counted[own->slot];
	unsigned int slot = 0;

	if (!(read_format & PERF_FORMAT_GROUP) || !has_values(event, sample, read_format))
		return 0;
	sample_read_group__for_each(v, sample->read.group.nr, read_format) {
		if (slot >= sampler->nr_slots || !v->id || values[slot].id != v->id) {
			int found = find_slot(recording, own->sampler, v->id);

			if (found == -ENOENT)
				continue;
			if (found < 0)
				return found;
			slot = found;
			if (!values[slot].id) {
				values[slot].id = v->id;
				if (collect_stream__add_member(stream, v->id))
					return -ENOMEM;
			}
		}
		counted[slot++] = v->value;
	}
	/* The recording of a process that runs may be one of several files. */
	if (is_first && counted[own->slot] / 2 > sample->period &&
	    counted[own->slot] - sample->period > MOST_BEFORE_SAMPLE)
		collect_stream__begin_late(stream);
	return 0;
}

static size_t hash_function(long key, void *ctx __maybe_unused)
{
	return hash_long(key, BITS_PER_LONG);
}

static bool equal_functions(long key1, long key2, void *ctx __maybe_unused)
{
	return key1 == key2;
}

/* Notes the symbol of a function, to find its code. */
static int note_symbol(struct recording *recording, const struct collect_function *function,
		       const struct addr_location *al)
{
	struct map_symbol *ms;

	if (!al->map || !al->sym || !*al->sym->name ||
	    hashmap__find(recording->symbols, function, NULL))
		return 0;

	ms = zalloc(sizeof(*ms));
	if (!ms)
		return -ENOMEM;
	ms->thread = thread__get(al->thread);
	ms->map = map__get(al->map);
	ms->sym = al->sym;
	if (hashmap__add(recording->symbols, function, ms)) {
		map_symbol__exit(ms);
		free(ms);
		return -ENOMEM;
	}
	return 0;
}

/*
 * Like perf annotate, assigns the counts of the interval, or the period of an event that samples
 * itself, to the instruction at its end.
 */
static int annotate_sample(struct recording *recording, struct evsel *sampler,
			   const struct perf_sample *sample, const struct place *place)
{
	const struct functions_evsel *own = sampler->priv;
	struct addr_map_symbol ams = {
		.ms		= { .map = place->map, .sym = place->sym },
		.addr		= sample->ip,
		.al_addr	= place->addr,
	};
	struct evsel *evsel;
	int err;

	if (!place->map || !place->sym || !*place->sym->name)
		return 0;
	for_each_group_evsel(evsel, evsel__leader(sampler)) {
		struct functions_evsel *event = evsel->priv;
		struct perf_sample part = *sample;
		struct hists *hists = evsel__hists(evsel);

		if (own->samples ? evsel != sampler :
		    (!event || !event->group || !recording->counts[event->slot]))
			continue;
		part.evsel = evsel;
		part.period = own->samples ? sample->period : recording->counts[event->slot];
		hists__inc_nr_samples(hists, /*filtered=*/false);
		hists->stats.total_period += part.period;
		err = addr_map_symbol__inc_samples(&ams, &part);
		if (err && err != -ERANGE)
			return err;
	}
	return 0;
}

/* Returns true if a sample is outside of the spans of time that the user wants to see. */
static bool is_outside(const struct recording *recording, const struct perf_sample *sample)
{
	return recording->ranges &&
	       perf_time__ranges_skip_sample(recording->ranges, recording->range_num, sample->time);
}

/* Returns true if a sample is on a CPU that the user does not want to see. */
static bool is_elsewhere(const struct recording *recording, const struct perf_sample *sample)
{
	const struct perf_cpu_map *cpus = recording->options->cpus;
	const struct perf_cpu cpu = { .cpu = sample->cpu };

	return cpus && ((u32)cpu.cpu != sample->cpu || !perf_cpu_map__has(cpus, cpu));
}

/* Returns the thread of a sample, or an error. */
static const struct known_thread *find_thread(struct recording *recording, struct machine *machine,
					      const struct perf_sample *sample)
{
	struct known_thread *known = &recording->threads[hash_32(sample->tid, THREADS_BITS)];
	struct thread *thread;

	if (known->change == recording->nr_changes && known->tid == sample->tid &&
	    known->pid == sample->pid && known->machine == machine)
		return known;

	thread = machine__findnew_thread(machine, sample->pid, sample->tid);
	if (!thread) {
		pr_err("perf functions: a sample has no thread: the file is damaged, record again\n");
		recording->is_refused = true;
		return ERR_PTR(-EINVAL);
	}
	*known = (struct known_thread){
		.machine	= machine,
		.pid		= sample->pid,
		.tid		= sample->tid,
		.change		= recording->nr_changes,
		.filtered	= thread__is_filtered(thread),
		.number		= function_finder__thread(recording->finder, thread),
	};
	thread__put(thread);
	return known;
}

/* Looks up the function at a sample. Not inline, because most places are known. */
static noinline int look_up(struct recording *recording, struct machine *machine,
			    struct evsel *evsel, struct perf_sample *sample, struct place *place)
{
	struct addr_location al;
	int err = -ENOMEM;

	addr_location__init(&al);
	if (machine__resolve(machine, &al, sample) < 0)
		goto out;
	/* The DSOs of JITs are one row. */
	if (symbol_conf.dso_list && al.map && function_dso__is_jit(map__dso(al.map)) &&
	    strlist__has_entry(symbol_conf.dso_list, FUNCTION_JIT))
		al.filtered &= ~BIT(HIST_FILTER__DSO);

	*place = (struct place){
		.machine	= machine,
		.ip		= sample->ip,
		.pid		= sample->pid,
		.tid		= sample->tid,
		.cpumode	= sample->cpumode,
		/* The rows of guests whose programs are not known are known. */
		.filtered	= al.filtered & ~BIT(HIST_FILTER__GUEST),
		.nowhere	= function_finder__is_nowhere(recording->finder, sample),
		.change		= needs_sample(recording) ? 0 : recording->nr_changes,
		.function	= function_finder__find(recording->finder, evsel, sample, &al),
		.map		= al.map,
		.sym		= al.sym,
		.addr		= al.addr,
	};
	err = place->function ? 0 : -ENOMEM;
	if (!err && recording->symbols)
		err = note_symbol(recording, place->function, &al);
out:
	addr_location__exit(&al);
	return err;
}

/* Returns the place of a sample, or an error. */
static const struct place *recording_find_place(struct recording *recording,
						struct machine *machine,
						struct evsel *evsel, struct perf_sample *sample)
{
	struct place *place = &recording->places[hash_64(sample->ip ^ sample->tid, PLACES_BITS)];
	int err;

	if (place->change == recording->nr_changes && place->ip == sample->ip &&
	    place->tid == sample->tid && place->pid == sample->pid &&
	    place->cpumode == sample->cpumode && place->machine == machine)
		return place;

	err = look_up(recording, machine, evsel, sample, place);
	return err ? ERR_PTR(err) : place;
}

/* The sample whose branch records are read, for find_branch(). */
struct branch_sample {
	struct recording *recording;
	struct evsel *evsel;
	struct machine *machine;
	struct perf_sample sample;
};

static const struct place *find_branch_place(struct branch_sample *own, u64 address)
{
	own->sample.ip = address;
	own->sample.cpumode = machine__kernel_ip(own->machine, address) ?
			      PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	return recording_find_place(own->recording, own->machine, own->evsel, &own->sample);
}

static int find_branch(void *data, u64 address, struct collect_function **function)
{
	const struct place *place = find_branch_place(data, address);

	if (IS_ERR(place))
		return PTR_ERR(place);
	*function = place->filtered || place->nowhere ? NULL : place->function;
	return 0;
}

/*
 * Returns the place where the event of a sample has happened: behind the last branch before the
 * overflow, or this branch. Returns NULL if its last record is not known, or an error.
 */
static const struct place *find_origin(struct recording *recording, struct machine *machine,
				       struct evsel *evsel, struct perf_sample *sample)
{
	const struct functions_evsel *event = evsel->priv;
	const struct perf_event_attr *attr = &evsel->core.attr;
	struct branch_sample own = { .recording = recording, .evsel = evsel, .machine = machine };
	const struct branch_entry *last;
	const struct place *place;
	u64 address;

	if (!event->has_records || !sample->branch_stack || !sample->branch_stack->nr ||
	    sample->misc & PERF_RECORD_MISC_EXACT_IP || !machine__is_host(machine))
		return NULL;
	last = perf_sample__branch_entries(sample);
	address = event->is_branch && (!event->is_miss || last->flags.mispred) ?
		  last->from : last->to;
	if (!address ||
	    (machine__kernel_ip(machine, address) ? attr->exclude_kernel : attr->exclude_user))
		return NULL;
	own.sample = *sample;
	place = find_branch_place(&own, address);
	return IS_ERR(place) || place->map ? place : NULL;
}

/* Takes the branch records of a sample. Soon after another interrupt they are disturbed. */
static int add_path(struct recording *recording, struct machine *machine, struct evsel *evsel,
		    const struct perf_sample *sample, u64 elapsed)
{
	const struct functions_evsel *event = evsel->priv;
	struct branch_sample own = {
		.recording = recording, .evsel = evsel, .machine = machine, .sample = *sample,
	};
	const struct perf_event_attr *attr = &evsel->core.attr;
	const struct branch_context context = {
		.machine = machine, .sample = sample, .change = recording->nr_changes,
		/* Jitter changes a fixed period by chance, whatever runs. */
		.weight = attr->freq ? sample->period : attr->sample_period,
		.find = find_branch, .data = &own,
	};

	if (elapsed < RECORDING_LEAST_UNDISTURBED || !machine__is_host(machine))
		return 0;
	return branch_paths__sample(event->paths, &context);
}

static int process_side_event(const struct perf_tool *tool, union perf_event *event,
			      struct perf_sample *sample, struct machine *machine)
{
	struct recording *recording = container_of(tool, struct recording, tool);

	recording->nr_changes++;
	/* What perf record writes about threads that run already has no time. */
	recording->nr_tasks += event->header.type == PERF_RECORD_FORK && sample->time;
	function_finder__forget(recording->finder);
	if (event->header.type == PERF_RECORD_EXIT &&
	    window_collector__exit(recording->metrics, event->fork.tid))
		return -ENOMEM;
	return machine__process_event(machine, event, sample);
}

/* Returns the PMU of the kind of core that counted a group, 0 if none is named. */
static u32 core_of(struct evsel *evsel)
{
	return is_sampler(evsel) ? fn_event__core(&evsel->core.attr) : 0;
}

/* Adds the CPU to the table. If several kinds of cores have counted, each is a CPU. */
static int add_cpus(const struct recording *recording, struct function_table *table)
{
	char *cpu = perf_env__describe_cpu(&recording->session->header.env), *kind;
	u32 first = 0, core;
	bool several = false;
	struct evsel *evsel;
	int err = 0;

	if (!cpu)
		return 0;
	evlist__for_each_entry(recording->session->evlist, evsel) {
		core = core_of(evsel);
		first = first ?: core;
		several |= core && core != first;
	}
	if (!several)
		err = function_table__add_cpu(table, cpu);

	evlist__for_each_entry(recording->session->evlist, evsel) {
		core = core_of(evsel);
		if (!several || !core || err)
			continue;
		if (asprintf(&kind, "%s pmu=%u", cpu, core) < 0) {
			err = -ENOMEM;
			continue;
		}
		err = function_table__add_cpu(table, kind);
		free(kind);
	}
	free(cpu);
	return err;
}

static int add_build(struct dso *dso, struct machine *machine __maybe_unused, void *data)
{
	char *path, *build = NULL, id[2 * BUILD_ID_SIZE + 1] = "";
	int err = -ENOMEM;

	/* perf loads a file to find the functions of samples in it. */
	if (!dso__loaded(dso) || !dso__has_build_id(dso))
		return 0;
	for (size_t i = 0; i < min_t(size_t, dso__bid(dso)->size, BUILD_ID_SIZE); i++)
		sprintf(id + 2 * i, "%02x", dso__bid(dso)->data[i]);
	path = function_text__printable(dso__long_name(dso));
	if (path && asprintf(&build, "%s\t%s", path, id) >= 0)
		err = function_table__add_build(data, build);
	free(build);
	free(path);
	return err;
}

/*
 * Returns true if the user has named the threads to record. Events that begin with a program are
 * of it alone: it may have an option -t of its own.
 */
static bool has_named_threads(const struct recording *recording)
{
	const struct perf_env *env = &recording->session->header.env;
	struct evsel *evsel;

	evlist__for_each_entry(recording->session->evlist, evsel) {
		if (evsel->core.attr.enable_on_exec)
			return false;
	}
	for (int i = 0; env->cmdline_argv && i < env->nr_cmdline &&
	     strcmp(env->cmdline_argv[i], "--"); i++) {
		if (strstarts(env->cmdline_argv[i], "-t") ||
		    strstarts(env->cmdline_argv[i], "--tid"))
			return true;
	}
	return false;
}

/* Returns true if the recording lacks the threads and children that a task has started. */
static bool lacks_children(const struct recording *recording)
{
	struct evsel *evsel;

	if (has_named_threads(recording))
		return false;
	evlist__for_each_entry(recording->session->evlist, evsel) {
		if (is_sampler(evsel) && !evsel->core.attr.inherit)
			return recording->is_of_tasks;
	}
	return false;
}

/* Returns what an event has counted, as a multiple of its sum of periods; 0: not known. */
static double scale_of(const struct functions_evsel *event)
{
	double counted = event->group ? collect_group__counted(event->group, event->slot) : 0;

	return counted > 0 && event->periods > 0 ? counted / event->periods : 0;
}

/*
 * Scales the sums of events that sample themselves to what the events have counted, as far as the
 * samples tell. Notes the events whose samples miss most of that, and those that have few samples
 * in each new thread: threads end before the next one, and where jitter does not draw the first
 * interval, all processes of a program are sampled at the same places.
 */
static int scale_samples(struct recording *recording, struct function_table *table)
{
	struct evsel *evsel;
	int err = 0;

	/* Idle streams of a live recording are forgotten. */
	if (recording->options->is_due)
		return 0;
	window_collector__count(recording->metrics);
	evlist__for_each_entry(recording->session->evlist, evsel) {
		const struct perf_event_attr *attr = &evsel->core.attr;
		const struct functions_evsel *own = evsel->priv;
		bool is_scarce, is_random;
		double scale;

		if (err || !own || !own->samples)
			continue;
		scale = scale_of(own);
		/* A frequency begins each process with a period that only the kernel knows. */
		is_random = attr->jitter_alternate_period && !attr->freq;
		is_scarce = attr->inherit && !is_random &&
			    (attr->freq || attr->sample_period > 1) &&
			    own->nr_samples < FEW_PER_THREAD * recording->nr_tasks;
		if (scale) {
			err = collect_group__scale(own->samples, own->sample_slot, scale);
			table->is_scaled |= fabs(scale - 1) > MOST_DIFFERENCE;
			is_scarce |= recording->nr_tasks && scale > MOST_SCALE;
		}
		if (!err && is_scarce)
			err = function_table__add_scarce(table,
							 collect_group__event(own->samples,
									      own->sample_slot));
	}
	return err;
}

/* Says whose sums were scaled by much. */
static void recording__note_scales(struct recording *recording, const char *name)
{
	const char *separator = "";
	char text[256] = "";
	struct evsel *evsel;
	int length = 0;

	evlist__for_each_entry(recording->session->evlist, evsel) {
		const struct functions_evsel *own = evsel->priv;
		double scale = own && own->samples ? scale_of(own) : 0;
		char *event;

		if (!scale || fabs(scale - 1) <= MOST_DIFFERENCE)
			continue;
		event = function_text__printable(collect_group__event(own->samples,
								      own->sample_slot));
		length += scnprintf(text + length, sizeof(text) - length, "%s%s by %.2f", separator,
				    event ?: "an event", scale);
		free(event);
		separator = ", ";
	}
	if (length)
		pr_warning("perf functions: %s: samples do not add up to what was counted, as with short processes, so their sums were scaled: %s\n",
			   name, text);
}

/* Makes the sums of this span; @lost is the number of samples lost so far. */
static int make_table(struct recording *recording, u64 lost, struct function_table *table)
{
	int err = function_finder__name_rows(recording->finder);

	branch_paths__choose(recording->paths);
	err = err ?: scale_samples(recording, table);
	err = err ?: window_collector__table(recording->metrics, table);
	if (!err && recording->options->source == FUNCTION_SOURCE_BRANCHES)
		function_table__choose_source(table, FUNCTION_SOURCE_BRANCHES);
	table->lost = lost - recording->told_lost;
	table->throttled = recording->throttled;
	table->lacks_children = lacks_children(recording);
	table->unmapped = function_finder__unmapped(recording->finder);
	scnprintf(table->by, sizeof(table->by), "%s", recording->options->by);
	table->inlines = recording->options->inlines;
	err = err ?: add_cpus(recording, table);
	/* One perf record sees the same files, so top need not look. */
	if (!err && !recording->options->is_due)
		err = machine__for_each_dso(&recording->session->machines.host, add_build, table);
	if (err)
		pr_err("perf functions: cannot make the table: %s\n", err == -ERANGE ?
		       "the counts are too large to add up: record for a shorter time" :
		       "not enough memory");
	return err;
}

/* Passes on the sums of a span, and begins the next one without any. */
static int hand_over(struct recording *recording, u64 lost, u64 end, struct function_table *own)
{
	const struct recording_options *options = recording->options;
	int err = make_table(recording, lost, own);

	if (!err && (options->is_due || function_table__has_window(own)))
		err = options->take(options->data, own, recording->begin, end);
	window_collector__restart(recording->metrics);
	branch_paths__restart(recording->paths);
	recording->told_lost = lost;
	recording->throttled = 0;
	return err;
}

/* Ends a span of time and adds its sums to those before. */
static int end_span(struct recording *recording, u64 lost)
{
	u64 end = add_saturated(recording->begin, recording->options->span - 1);
	struct function_table own = {};
	int err = hand_over(recording, lost, end, &own);
	const char *reason;

	reason = err ? NULL : function_table__add_part(recording->table, &own);
	if (reason) {
		pr_err("perf functions: cannot add up the intervals: %s\n", reason);
		err = -EINVAL;
	}
	function_table__exit(&own);
	return err;
}

/* Passes on the sums so far of a live recording, which may continue forever. */
static int end_part(struct recording *recording, u64 lost)
{
	struct function_table own = {};
	int err;

	if (!recording->has_begun)
		return 0;
	/* The span may have no sample. */
	err = hand_over(recording, lost, max(recording->last, recording->begin), &own);
	function_table__exit(&own);
	if (recording->last - recording->forgot > FORGET_AFTER) {
		window_collector__forget_idle(recording->metrics);
		recording->forgot = recording->last;
	}
	recording->begin = recording->last + 1;
	return err;
}

/* Called before each sample: ends the span of time if the sample lies beyond it. */
static int follow_spans(struct recording *recording, u64 time)
{
	const u64 span = recording->options->span;
	int err = 0;

	if (!span && !recording->options->is_due)
		return 0;
	if (!recording->has_begun) {
		recording->has_begun = true;
		recording->begin = time;
		recording->forgot = time;
	}
	recording->last = max(recording->last, time);
	if (!span || time < recording->begin || time - recording->begin < span)
		return 0;
	err = end_span(recording, recording->lost_records);
	recording->begin += (time - recording->begin) / span * span;
	/* The reason has been printed. */
	recording->is_refused = err;
	return err;
}

static bool has_times(const struct evsel *evsel)
{
	const u64 both = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

	return (evsel->core.attr.read_format & both) == both;
}

/* Notes how long an event was to count until a sample, and has counted. */
static int add_times(struct collect_group *group, unsigned int slot, struct evsel *evsel,
		     const struct perf_sample *sample)
{
	return !has_counts(evsel) || !has_times(evsel) ? 0 :
	       collect_group__run(group, slot, sample->id, sample->tid,
				  sample->read.time_enabled, sample->read.time_running);
}

/*
 * Measures the interval that a sample of a group ends. Returns its stream, NULL if it ends none, or
 * an error.
 */
static struct collect_stream *end_interval(struct recording *recording, struct evsel *evsel,
					   const union perf_event *event,
					   struct perf_sample *sample,
					   struct collect_interval *interval)
{
	const struct functions_evsel *own = evsel->priv;
	const u64 id = find_sampler_id(recording, evsel, event, sample);
	struct collect_stream *stream;
	struct collect_value *values;
	int err;

	stream = window_collector__findnew_stream(recording->metrics, own->group, id,
						  interval->thread, &values);
	if (!stream)
		return ERR_PTR(-ENOMEM);
	interval->place = collect_stream__place(stream, own->slot);
	err = own->samples ? note_counts(recording, stream, values, evsel, event, sample) : 0;
	if (err)
		return ERR_PTR(err);
	if (own->sampler != evsel && collect_group__alternates(own->group)) {
		collect_stream__interrupt(stream);
		return NULL;
	}
	err = add_times(own->group, 0, evsel, sample) ?:
	      read_counts(recording, stream, values, evsel, id, event, sample) ?:
	      collect_stream__measure(stream, interval);
	if (err < 0)
		return ERR_PTR(err);
	return err ? NULL : stream;
}

/*
 * Returns true if jitter draws the first interval of each thread. Its sample then stands for the
 * whole period.
 */
static bool has_random_first(const struct perf_event_attr *attr)
{
	return attr->inherit && attr->jitter_alternate_period;
}

/* Moves the mean of recent periods, 0 before the first. */
static void move_mean(double *mean, u64 period)
{
	*mean += *mean ? (period - *mean) / 16 : period;
}

/*
 * Returns how many events a sample stands for. Place is the number of those before it in its
 * stream. Of a frequency, only the kernel knows the period from which it has drawn the first one.
 */
static u64 weigh(struct functions_evsel *event, const struct perf_event_attr *attr, u64 period,
		 unsigned int place)
{
	const u64 window = attr->alternative_sample_period;

	if (!has_random_first(attr) || place > 1)
		return period;
	if (place) {
		if (!window)
			move_mean(&event->second, period);
		return period;
	}
	if (!attr->freq)
		return add_saturated(attr->sample_period,
				     window * max(attr->alternative_sample_count, 1U));
	move_mean(&event->first, period);
	return max(event->second ?: 2 * event->first, 1.0);
}

static int add_event_sample(struct recording *recording, struct machine *machine,
			    struct evsel *evsel, struct perf_sample *sample, unsigned int place,
			    struct collect_sample own)
{
	struct functions_evsel *event = evsel->priv;
	const u64 weight = weigh(event, &evsel->core.attr, sample->period, place);
	const struct place *origin = find_origin(recording, machine, evsel, sample);

	if (IS_ERR(origin))
		return PTR_ERR(origin);
	if (origin) {
		own.function = origin->function;
		own.filtered = origin->filtered || is_elsewhere(recording, sample);
	}
	event->periods += weight;
	event->nr_samples++;
	return add_times(event->samples, event->sample_slot, evsel, sample) ?:
	       collect_group__event_sample(event->samples, event->sample_slot, weight, &own);
}

/*
 * Looks up the function of a sample, and adds the sample to it: as one of its event, its branch
 * records, and the interval of @stream; NULL: it ends none.
 */
static int add_to_function(struct recording *recording, struct machine *machine,
			   struct evsel *evsel, struct perf_sample *sample,
			   const struct known_thread *thread, struct collect_stream *stream,
			   const struct collect_interval *interval)
{
	const bool elsewhere = is_elsewhere(recording, sample);
	const struct functions_evsel *own = evsel->priv;
	struct collect_sample collect_sample;
	const struct place *place;
	int err = 0;

	place = recording_find_place(recording, machine, evsel, sample);
	if (IS_ERR(place))
		return PTR_ERR(place);
	if (recording->has_chain) {
		err = function_finder__chain(recording->finder, evsel, sample, machine,
					     thread->number, place->function, &recording->chain);
	}
	collect_sample = (struct collect_sample){
		.function = place->function,
		.chain = recording->has_chain ? &recording->chain : NULL,
		.filtered = place->filtered || elsewhere,
		/* The stream of a CPU has intervals of several threads. */
		.foreign = elsewhere || (evsel->core.attr.inherit && thread->filtered),
		.outside = is_outside(recording, sample),
		.nowhere = place->nowhere,
	};
	if (!err && recording->symbols && !collect_sample.filtered && !collect_sample.outside)
		err = annotate_sample(recording, evsel, sample, place);
	if (!err && own->samples)
		err = add_event_sample(recording, machine, evsel, sample, interval->place,
				       collect_sample);
	if (!err && own->paths && !elsewhere && !collect_sample.outside &&
	    (stream || !own->group))
		err = add_path(recording, machine, evsel, sample,
			       stream ? recording->counts[own->slot] : sample->period);
	if (!err && stream)
		err = collect_stream__sample(stream, interval, &collect_sample);
	return err;
}

/* Finds the place of a sample of an event without counts in its stream. */
static int find_place(struct recording *recording, struct evsel *evsel,
		      const struct perf_sample *sample, u64 thread,
		      struct collect_interval *interval)
{
	const struct functions_evsel *own = evsel->priv;
	struct collect_stream *stream;
	struct collect_value *values;

	stream = window_collector__findnew_stream(recording->metrics, own->samples, sample->id,
						  thread, &values);
	if (!stream)
		return -ENOMEM;
	interval->place = collect_stream__place(stream, own->sample_slot);
	return 0;
}

/* The way of a sample: its thread, its stream, the counts of its interval, and its function. */
static int add_sample(struct recording *recording, struct evsel *evsel, union perf_event *event,
		      struct perf_sample *sample, struct machine *machine)
{
	struct collect_interval interval = {};
	struct collect_stream *stream = NULL;
	const struct known_thread *thread;
	struct functions_evsel *own;
	int err;

	recording->nr_samples++;
	if (sample->deferred_callchain && symbol_conf.use_callchain) {
		pr_err("perf functions: deferred call chains are not supported: record without ',defer' in --call-graph\n");
		recording->is_refused = true;
		return -EINVAL;
	}
	if (!evsel->priv) {
		err = recording_add_events(recording, evsel, event, sample);
		if (err)
			return err;
	}
	own = evsel->priv;
	if (!own->group && !own->samples)
		return 0;
	err = follow_spans(recording, sample->time);
	if (err)
		return err;

	thread = find_thread(recording, machine, sample);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	if (own->group) {
		interval.thread = thread->number;
		interval.counts = recording->counts;
		if (evsel->core.attr.sample_type & PERF_SAMPLE_PERIOD)
			interval.period = sample->period;
		stream = end_interval(recording, evsel, event, sample, &interval);
	}
	if (IS_ERR(stream))
		return PTR_ERR(stream);
	if (!own->group && has_random_first(&evsel->core.attr) &&
	    find_place(recording, evsel, sample, thread->number, &interval))
		return -ENOMEM;
	if (!stream && !own->samples)
		return 0;
	return add_to_function(recording, machine, evsel, sample, thread, stream, &interval);
}

static int take_sample(struct recording *recording, struct evsel *evsel, union perf_event *event,
		       struct perf_sample *sample, struct machine *machine)
{
	int err = add_sample(recording, evsel, event, sample, machine);

	if (err == -ENOMEM && !recording->is_refused) {
		if (window_collector__is_full(recording->metrics))
			pr_err("perf functions: the sums of all rows would take more than 4 GB: choose fewer rows (--by dso, --by comm), or record fewer events\n");
		else
			pr_err("perf functions: not enough memory\n");
		recording->is_refused = true;
	}
	if (!recording->is_refused)
		return err;
	/* After an error, the session would print a message of its own. */
	session_done = 1;
	return 0;
}

static int process_sample(const struct perf_tool *tool, union perf_event *event,
			  struct perf_sample *sample, struct machine *machine)
{
	struct recording *recording = container_of(tool, struct recording, tool);

	return take_sample(recording, sample->evsel, event, sample, machine);
}

static int process_round(const struct perf_tool *tool, union perf_event *event,
			 struct ordered_events *oe)
{
	struct recording *recording = container_of(tool, struct recording, tool);
	const struct recording_options *options = recording->options;
	int err = perf_event__process_finished_round(tool, event, oe);

	if (err || recording->is_refused || !options->is_due(options->data))
		return err;
	/* The reason has been printed. */
	recording->is_refused = end_part(recording, recording->lost_records);
	if (recording->is_refused)
		session_done = 1;
	return 0;
}

/* Returns true if a loss is in another span of time. One without a time is in the first. */
static bool is_loss_outside(const struct recording *recording, const struct perf_sample *sample)
{
	return sample->time ? is_outside(recording, sample) :
			      recording->ranges && recording->ranges->start;
}

static int process_throttle(const struct perf_tool *tool, union perf_event *event,
			    struct perf_sample *sample,
			    struct machine *machine __maybe_unused)
{
	struct recording *recording = container_of(tool, struct recording, tool);
	struct evsel *evsel = evlist__id2evsel_strict(recording->session->evlist,
						      event->throttle.id);
	const struct functions_evsel *own = evsel ? evsel->priv : NULL;

	recording->throttled += event->header.type == PERF_RECORD_THROTTLE &&
				!is_loss_outside(recording, sample);
	/* Since Linux 6.16 the leader is named, whichever event samples. */
	if (own && own->group && own->sampler != evsel && evsel__is_group_leader(evsel)) {
		window_collector__lost(recording->metrics);
		return 0;
	}
	/* An inherited event ends with its thread, that of a CPU counts on. */
	return window_collector__throttle(recording->metrics, event->throttle.id,
					  evsel && evsel->core.attr.inherit ? sample->tid : 0,
					  event->header.type == PERF_RECORD_THROTTLE);
}

/*
 * The kernel writes a record where a loss happens (with the id of an event). perf record reports
 * lost samples once more at the end (without id and time).
 */
static void count_loss(struct recording *recording, const struct perf_sample *sample, u64 id,
		       u64 number)
{
	u64 *lost = is_loss_outside(recording, sample) ? &recording->lost_outside :
							 &recording->lost_records;

	if (id)
		*lost = add_saturated(*lost, number);
	else
		recording->lost_samples = add_saturated(recording->lost_samples, number);
	if (sample->time)
		window_collector__lost(recording->metrics);
}

/* With --stat, perf record writes the counts of threads that end, and the times. */
static int process_read(const struct perf_tool *tool, union perf_event *event,
			struct perf_sample *sample, struct machine *machine __maybe_unused)
{
	struct recording *recording = container_of(tool, struct recording, tool);
	struct evsel *evsel = evlist__id2evsel_strict(recording->session->evlist, sample->id);
	const struct functions_evsel *own = evsel ? evsel->priv : NULL;
	const struct perf_record_read *read = &event->read;

	if (!own || !own->samples || has_counts(evsel) || !has_times(evsel) ||
	    event->header.size < offsetof(struct perf_record_read, id))
		return 0;
	return collect_group__run(own->samples, own->sample_slot, sample->id, read->tid,
				  read->time_enabled, read->time_running);
}

static int process_lost(const struct perf_tool *tool, union perf_event *event,
			struct perf_sample *sample, struct machine *machine)
{
	struct recording *recording = container_of(tool, struct recording, tool);

	count_loss(recording, sample, event->lost.id, event->lost.lost);
	return perf_event__process_lost(tool, event, sample, machine);
}

static int process_lost_samples(const struct perf_tool *tool, union perf_event *event,
				struct perf_sample *sample, struct machine *machine)
{
	struct recording *recording = container_of(tool, struct recording, tool);

	/* Samples that a BPF filter drops are unwanted, so they are not lost. */
	if (!(event->header.misc & PERF_RECORD_MISC_LOST_SAMPLES_BPF))
		count_loss(recording, sample, 0, event->lost_samples.lost);
	return perf_event__process_lost_samples(tool, event, sample, machine);
}

static int process_feature(const struct perf_tool *tool, struct perf_session *session,
			   union perf_event *event)
{
	struct recording *recording = container_of(session->tool, struct recording, tool);

	recording->is_newer |= event->feat.feat_id > HEADER_LAST_FEATURE;
	/* HEADER_LAST_FEATURE marks the end of the features. */
	return event->feat.feat_id < HEADER_LAST_FEATURE ?
	       perf_event__process_feature(tool, session, event) : 0;
}

static int process_auxtrace_info(const struct perf_tool *tool __maybe_unused,
				 struct perf_session *session,
				 union perf_event *event __maybe_unused)
{
	struct recording *recording = container_of(session->tool, struct recording, tool);

	recording->has_aux = true;
	return 0;
}

/* CPU-wide events have a thread map with the pid -1. */
static int process_thread_map(const struct perf_tool *tool __maybe_unused,
			      struct perf_session *session, union perf_event *event)
{
	struct recording *recording = container_of(session->tool, struct recording, tool);
	const struct perf_record_thread_map *threads = &event->thread_map;

	if (event->header.size < sizeof(*threads) + sizeof(threads->entries[0]) || !threads->nr)
		return 0;
	recording->is_of_tasks |= threads->entries[0].pid != (u64)-1;
	return 0;
}

static void recording__init_tool(struct perf_tool *tool, bool is_live)
{
	perf_tool__init(tool, /*ordered_events=*/true);
	tool->sample		= process_sample;
	tool->mmap		= process_side_event;
	tool->mmap2		= process_side_event;
	tool->comm		= process_side_event;
	tool->namespaces	= process_side_event;
	tool->cgroup		= process_side_event;
	tool->fork		= process_side_event;
	tool->exit		= process_side_event;
	tool->ksymbol		= process_side_event;
	tool->throttle		= process_throttle;
	tool->unthrottle	= process_throttle;
	tool->read		= process_read;
	tool->lost		= process_lost;
	tool->lost_samples	= process_lost_samples;
	tool->attr		= perf_event__process_attr;
	tool->event_update	= perf_event__process_event_update;
	tool->feature		= process_feature;
	tool->auxtrace_info	= process_auxtrace_info;
	tool->thread_map	= process_thread_map;
	tool->build_id		= perf_event__process_build_id;
	tool->id_index		= perf_event__process_id_index;
#ifdef HAVE_LIBTRACEEVENT
	tool->tracing_data	= perf_event__process_tracing_data;
#endif
	if (is_live)
		tool->finished_round	= process_round;
	tool->ordering_requires_timestamps = true;
	tool->dont_split_sample_group = true;
	/* A sample that waits for its call chain would come after later ones. */
	tool->merge_deferred_callchains = false;
	tool->count_lost = true;
	tool->count_lost_samples = true;
}

static void recording__delete(struct recording *recording)
{
	struct hashmap_entry *entry;
	struct evsel *evsel;
	size_t bucket;

	if (!IS_ERR_OR_NULL(recording->symbols)) {
		hashmap__for_each_entry(recording->symbols, entry, bucket) {
			map_symbol__exit(entry->pvalue);
			free(entry->pvalue);
		}
		hashmap__free(recording->symbols);
	}
	if (!IS_ERR_OR_NULL(recording->session)) {
		evlist__for_each_entry(recording->session->evlist, evsel)
			zfree(&evsel->priv);
		perf_session__delete(recording->session);
	}
	function_finder__delete(recording->finder);
	branch_paths__delete(recording->paths);
	window_collector__delete(recording->metrics);
	strlist__delete(recording->ignored);
	free(recording->chain.frames);
	free(recording->places);
	free(recording->counts);
	free(recording->ranges);
	free(recording);
}

/*
 * Returns true if the file ends within its events, which perf would map nevertheless, or within the
 * features of its header, which follow them.
 */
static bool is_cut(const struct perf_session *session)
{
	const struct perf_header *header = &session->header;
	const unsigned int nr = bitmap_weight(header->adds_features, HEADER_FEAT_BITS);
	u64 at = add_saturated(header->data_offset, header->data_size);
	int fd = perf_data__fd(session->data);
	struct stat st;

	if (perf_data__is_pipe(session->data) || fstat(fd, &st))
		return false;
	if (at > (u64)st.st_size)
		return true;
	for (unsigned int i = 0; i < nr; i++) {
		struct perf_file_section section;

		if (pread(fd, &section, sizeof(section), at) != sizeof(section))
			return true;
		if (header->needs_swap) {
			section.offset = bswap_64(section.offset);
			section.size = bswap_64(section.size);
		}
		if (add_saturated(section.offset, section.size) > (u64)st.st_size)
			return true;
		at += sizeof(section);
	}
	return false;
}

/* Returns true if a newer perf has written records or features that this one does not know. */
static bool is_newer(const struct recording *recording)
{
	/* Features from 128 on are those of simpleperf. */
	return recording->is_newer || recording->session->has_unknown ||
	       find_next_bit(recording->session->header.adds_features, 128,
			     HEADER_LAST_FEATURE) < 128;
}

static int refuse_newer(const struct recording *recording, const char *name)
{
	const char *recorded = recording->session->header.env.version;
	char *version = recorded ? function_text__printable(recorded) : NULL;

	pr_err("perf functions: %s: written by a newer perf%s%s: read it with that one\n", name,
	       version ? ", version " : "", version ?: "");
	free(version);
	return -EINVAL;
}

/* Returns true, after a message, if no sample can have counts. */
static bool refuse_kinds(const struct recording *recording, const char *name)
{
	const bool is_empty = strlist__empty(recording->ignored);

	if (recording->has_group || (is_empty ? !recording->has_aux : recording->has_event))
		return false;
	pr_err("perf functions: %s: only %s counts: record with perf functions record, or -e "
	       EXAMPLE_EVENTS "\n", name, is_empty ?
	       "AUX data (intel_pt, arm_spe), which has no" : "tracepoints, which have no");
	return true;
}

/* Returns the bracket that closes the one at @open, NULL if there is none. */
static const char *closing_bracket(const char *open)
{
	static const char opening[] = "(<[{", closing[] = ")>]}";
	const char *kind = strchr(opening, *open);
	int depth = 0;

	for (const char *c = open; kind && *c; c++) {
		depth += *c == *open;
		if (*c == closing[kind - opening] && !--depth)
			return c;
	}
	return NULL;
}

/*
 * Divides a list of names again, because perf takes the commas of f(int, int) for separators. One
 * name may have other commas, too.
 */
static int divide_names(struct strlist **list, const char *names)
{
	const char *begin = names, *end;
	char *name;
	int err;

	if (!names || !strchr(names, ',') || strstarts(names, "file://"))
		return 0;
	strlist__delete(*list);
	*list = strlist__new(NULL, NULL);
	err = *list ? strlist__add(*list, names) : -ENOMEM;
	for (; !err && *begin; begin = end + !!*end) {
		for (end = begin; *end && *end != ','; end++)
			end = closing_bracket(end) ?: end;
		name = strndup(begin, end - begin);
		err = name ? strlist__add(*list, name) : -ENOMEM;
		free(name);
		err = err == -EEXIST ? 0 : err;
	}
	return err;
}

/* The groups of a recording without samples are known from its header. */
static int add_idle_groups(struct recording *recording)
{
	struct evsel *evsel;
	int err = 0;

	if (recording->has_group || recording->is_refused)
		return 0;
	evlist__for_each_entry(recording->session->evlist, evsel) {
		if (!err && !evsel->priv && takes_samples(recording, evsel))
			err = recording_add_events(recording, evsel, NULL, NULL);
	}
	return err;
}

static int recording__process(struct recording *recording, const char *name)
{
	const struct recording_options *options = recording->options;
	struct perf_session *session = recording->session;
	struct evsel *evsel;
	int err;

	/* From a pipe, the events come with the samples. */
	evlist__for_each_entry(session->evlist, evsel) {
		if (takes_samples(recording, evsel) && refuse_sampler(recording, evsel))
			return -EINVAL;
	}

	if (symbol__init(&session->header.env) < 0)
		return -1;
	if (divide_names(&symbol_conf.sym_list, symbol_conf.sym_list_str) ||
	    divide_names(&symbol_conf.comm_list, symbol_conf.comm_list_str) ||
	    divide_names(&symbol_conf.dso_list, symbol_conf.dso_list_str)) {
		pr_err("perf functions: %s: not enough memory\n", name);
		return -ENOMEM;
	}

	if (options->time &&
	    perf_time__parse_for_ranges(options->time, session, &recording->ranges,
					&recording->range_size, &recording->range_num) < 0) {
		pr_err("perf functions: cannot read --time %s: write START,STOP in seconds, one of them may be missing, or a part such as 10%%/2\n",
		       options->time);
		return -1;
	}

	if (options->begin)
		options->begin(name, &recording->nr_samples);
	err = is_cut(session) ? -EINVAL : perf_session__process_events(session);
	err = err ?: add_idle_groups(recording);
	if (options->end)
		options->end();
	if (recording->is_refused)
		return -EINVAL;
	if (err == -ENOMEM) {
		pr_err("perf functions: %s: not enough memory\n", name);
		return err;
	}
	if ((err && !is_cut(session) && is_newer(recording)) || session->has_unknown)
		return refuse_newer(recording, name);
	/* If perf record was killed, top has what came before. */
	if (err || (session->is_cut && !options->is_due)) {
		pr_err("perf functions: %s: cannot be read to its end: the %s is cut short or damaged, record again\n",
		       name, perf_data__is_pipe(session->data) ? "pipe" : "file");
		return -EINVAL;
	}

	/* The recording may end before the first sample. */
	if (options->is_due && strlist__empty(recording->ignored))
		return 0;
	if (refuse_kinds(recording, name))
		return -EINVAL;
	if (options->source == FUNCTION_SOURCE_BRANCHES && !recording->paths) {
		pr_err("perf functions: %s: no cycles with records of all branches: record with perf functions record -b, or perf record -b -e cycles\n",
		       name);
		return -EINVAL;
	}
	if (!recording->has_group) {
		pr_err("perf functions: %s: no counter group%s: record with perf functions record, or -e "
		       EXAMPLE_EVENTS "\n", name,
		       options->source == FUNCTION_SOURCE_WINDOWS ? "" :
		       ", and no event that samples by itself and tells its period");
		return -EINVAL;
	}
	return 0;
}

static void recording__note_branches(const struct recording *recording, const char *name)
{
	char text[256];

	branch_paths__describe(recording->paths, text, sizeof(text));
	if (*text)
		pr_warning("perf functions: %s: %s\n", name, text);
}

/* CPUs have at least this number of counters. */
#define LEAST_COUNTERS	4

/* Says which events have taken turns on the counters, or may have. */
static void recording__note_turns(const struct recording *recording, const char *name)
{
	unsigned int nr_alone = 0;
	struct evsel *evsel;

	evlist__for_each_entry(recording->session->evlist, evsel) {
		const struct functions_evsel *own = evsel->priv;
		double scale = 1;
		char *event;

		if (own && own->samples)
			scale = collect_group__stretch(own->samples, own->sample_slot);
		else if (own && own->group && own->sampler == evsel)
			scale = collect_group__stretch(own->group, 0);
		if (own && own->samples && scale == 1 && is_alone(evsel) && !has_times(evsel) &&
		    evsel->core.attr.type != PERF_TYPE_SOFTWARE)
			nr_alone++;
		/* Less than half a percent. */
		if (scale < 1.005)
			continue;
		event = function_text__printable(evsel__name(evsel));
		pr_warning("perf functions: %s: %s%s counted during %.0f %% of the time, so its counts are scaled: record fewer events\n",
			   name, event ?: "an event",
			   evsel->core.nr_members > 1 && !own->samples ? " with its group" : "",
			   100 / scale);
		free(event);
	}
	if (nr_alone > LEAST_COUNTERS)
		pr_warning("perf functions: %s: %u events sample without a group, and nothing tells whether they took turns on the counters, which would make their counts too small: record them as a group ('{...}'), or fewer of them\n",
			   name, nr_alone);
}

static void recording__note_ignored(struct recording *recording)
{
	const char *separator = "";
	struct str_node *name;

	if (strlist__empty(recording->ignored))
		return;
	pr_warning("perf functions: ignored: ");
	strlist__for_each_entry(name, recording->ignored) {
		pr_warning("%s%s", separator, name->s);
		separator = ", ";
	}
	pr_warning("\n");
}

/* A DSO whose functions stay addresses, for the same reason as those of others. */
struct unnamed_dso {
	enum dso_load_errno reason;
	bool is_kernel;
	struct dso *first;
	unsigned int others;
};

static int note_unnamed(struct dso *dso, struct machine *machine __maybe_unused, void *data)
{
	struct unnamed_dso *unnamed = data;
	const int reason = *dso__load_errno(dso);
	const bool is_kernel = dso__kernel(dso) && !dso__is_kmod(dso);

	if (dso__binary_type(dso) != DSO_BINARY_TYPE__NOT_FOUND ||
	    is_kernel != unnamed->is_kernel ||
	    (reason != unnamed->reason &&
	     (reason != DSO_LOAD_ERRNO__CANNOT_READ_BUILDID ||
	      unnamed->reason != DSO_LOAD_ERRNO__MISMATCHING_BUILDID)))
		return 0;
	if (unnamed->first)
		unnamed->others++;
	else
		unnamed->first = dso;
	return 0;
}

/* Says which files of this machine are not what was recorded. */
static void recording__note_unnamed(struct recording *recording, const char *name)
{
	static const struct {
		enum dso_load_errno reason;
		const char *text;
	} reasons[] = {
		{ DSO_LOAD_ERRNO__MISMATCHING_BUILDID, "is another build here" },
		{ DSO_LOAD_ERRNO__OTHER_ARCH, "is for another architecture here" },
		{ DSO_LOAD_ERRNO__OTHER_HOST,
		  "was recorded on another host, without its build-id" },
		{ DSO_LOAD_ERRNO__OTHER_KERNEL,
		  "was recorded without its build-id, and is not known to be the running one" },
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(reasons); i++) {
		struct unnamed_dso unnamed = {
			.reason = reasons[i / 2].reason, .is_kernel = i % 2,
		};
		char *file, others[32] = "";
		const char *what_helps;

		machine__for_each_dso(&recording->session->machines.host, note_unnamed, &unnamed);
		if (!unnamed.first)
			continue;
		if (unnamed.others)
			scnprintf(others, sizeof(others), " (like %u more)", unnamed.others);
		what_helps = unnamed.is_kernel ?
			"name its symbols with --kallsyms or --vmlinux" :
			"name the folder of the recorded files with --symfs";
		file = function_text__printable(dso__long_name(unnamed.first));
		pr_warning("perf functions: %s: %s%s %s, so its functions are addresses: %s\n",
			   name, file ?: "a file", others, reasons[i / 2].text, what_helps);
		free(file);
	}
}

/* Returns true if each row is in one function. */
static bool has_code(const char *by)
{
	return function_by__has(by, FUNCTION_BY_SYMBOL) ||
	       function_by__has(by, FUNCTION_BY_SRCLINE) ||
	       function_by__has(by, FUNCTION_BY_CALLCHAIN) ||
	       function_by__is(by, FUNCTION_BY_CHILDREN);
}

static void recording__print_header(struct recording *recording, const char *name, FILE *fp)
{
	/* In a pipe the parts of the header come with the samples. */
	if (perf_data__is_pipe(&recording->data)) {
		pr_warning("perf functions: %s: a pipe has no header to print: record to a file for --header\n",
			   name);
		return;
	}
	fprintf(fp, "# recording: %s\n", name);
	perf_session__fprintf_info(recording->session, fp, /*full=*/false);
}

/**
 * recording_options__need_lines - say whether rows may need addr2line
 * @options: the options
 *
 * Return: true or false.
 */
bool recording_options__need_lines(const struct recording_options *options)
{
	return options->inlines || function_by__has(options->by, FUNCTION_BY_SRCLINE);
}

/* A missing addr2line must neither end perf by a signal nor be told for each file. */
static void prepare_lines(const struct recording_options *options)
{
	if (!recording_options__need_lines(options))
		return;
	signal(SIGPIPE, SIG_IGN);
	symbol_conf.addr2line_disable_warn = true;
}

/**
 * recording_options__filter - find an option that leaves out windows
 * @options: the options
 *
 * Return: the name of the first one, or NULL.
 */
const char *recording_options__filter(const struct recording_options *options)
{
	const struct {
		const char *name, *value;
	} filters[] = {
		{ "comms", symbol_conf.comm_list_str }, { "dsos", symbol_conf.dso_list_str },
		{ "pid", symbol_conf.pid_list_str }, { "tid", symbol_conf.tid_list_str },
		{ "symbols", symbol_conf.sym_list_str }, { "time", options->time },
	};

	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		if (filters[i].value)
			return filters[i].name;
	}
	return options->cpus ? "cpu" : NULL;
}

static struct recording *recording__new(const struct recording_options *options)
{
	struct recording *recording = zalloc(sizeof(*recording));

	if (!recording)
		return NULL;

	recording->options = options;
	recording->has_chain = function_by__is(options->by, FUNCTION_BY_CHILDREN);
	recording->nr_changes = 1;
	recording->ignored = strlist__new(NULL, NULL);
	recording->places = calloc(1 << PLACES_BITS, sizeof(struct place));
	recording->metrics = window_collector__new(options->share);
	if (recording->metrics) {
		recording->finder = function_finder__new(recording->metrics, options->by,
							 options->inlines,
							 options->stitch_lbr);
	}
	if (options->annotate && has_code(options->by))
		recording->symbols = hashmap__new(hash_function, equal_functions, NULL);
	if (!recording->finder || !recording->ignored || !recording->places ||
	    IS_ERR(recording->symbols)) {
		recording__delete(recording);
		return NULL;
	}
	recording__init_tool(&recording->tool, options->is_due);
	return recording;
}

/**
 * recording__read - read a recording
 * @path: its file, "-" for stdin
 * @options: the windows that count, and their rows
 * @table: empty; the sums of the functions
 * @kept: list to add this recording to, NULL if nothing is printed later; without
 *	  @options->annotate it replaces those before
 *
 * With spans of time, @options->take has the sums of each one before @table has all. With
 * @options->is_due it has all, and @table has none.
 * Why a recording cannot be read is printed.
 *
 * Return: 0, or a negative number.
 */
int recording__read(const char *path, const struct recording_options *options,
		    struct function_table *table, struct recording **kept)
{
	struct recording *recording = recording__new(options);
	const char *name = options->name ?: path;
	u64 lost;
	int err;

	if (!recording) {
		pr_err("perf functions: %s: not enough memory\n", name);
		return -ENOMEM;
	}

	prepare_lines(options);
	recording->table = table;
	recording->data = (struct perf_data){
		.path	= path,
		.mode	= PERF_DATA_MODE_READ,
		.force	= options->force,
	};
	recording->session = perf_session__new(&recording->data, &recording->tool);
	if (IS_ERR(recording->session)) {
		/* The error has been printed. */
		err = PTR_ERR(recording->session);
		goto out;
	}

	if (options->header)
		recording__print_header(recording, name, options->header);
	err = recording__process(recording, name);
	if (err)
		goto out;

	recording__note_ignored(recording);
	recording__note_turns(recording, name);
	recording__note_unnamed(recording, name);
	recording__note_branches(recording, name);
	lost = recording->lost_records;
	if (!recording->ranges || !recording->ranges->start)
		lost = max(lost, recording->lost_samples - min(recording->lost_samples,
							       recording->lost_outside));
	if (options->is_due)
		err = end_part(recording, lost);
	else
		err = options->span ? end_span(recording, lost) :
				      make_table(recording, lost, table);
	if (!err)
		recording__note_scales(recording, name);
out:
	if (err || !kept) {
		recording__delete(recording);
		return err;
	}
	if (!options->annotate) {
		recordings__delete(*kept);
		*kept = NULL;
	}
	while (*kept)
		kept = &(*kept)->next;
	*kept = recording;
	return 0;
}

/**
 * recordings__delete - free recordings
 * @recordings: the list of them, may be NULL
 */
void recordings__delete(struct recording *recordings)
{
	while (recordings) {
		struct recording *next = recordings->next;

		recording__delete(recordings);
		recordings = next;
	}
}

/**
 * recordings__annotate - show the code of a function
 * @recordings: the list of recordings, may be NULL
 * @sums: the sums of the function
 *
 * Return: NULL, or why its code cannot be shown.
 */
const char *recordings__annotate(struct recording *recordings, const struct function_sums *sums)
{
	struct collect_function *function;
	struct hist_entry hist_entry = {};
	struct map_symbol *ms = NULL;
	struct recording *recording;
	struct evsel *evsel;

	if (!recordings)
		return "a sums file has no code to annotate: open the recording";
	for (recording = recordings; recording; recording = recording->next) {
		function = window_collector__find(recording->metrics, sums);
		if (function && recording->symbols &&
		    hashmap__find(recording->symbols, function, &ms) &&
		    symbol__annotation(ms->sym)->src)
			break;
	}
	if (!ms)
		return "this row is not one function with a symbol: choose another one";
	if (!recording)
		return "no samples in this function: choose another one";

	if (!annotate_opts.objdump_path &&
	    perf_env__lookup_objdump(&recording->session->header.env,
				     &annotate_opts.objdump_path))
		return "no objdump for the recorded architecture: name one with --objdump";

	evlist__for_each_entry(recording->session->evlist, evsel) {
		struct functions_evsel *event = evsel->priv;

		if (event && (event->group || event->samples))
			break;
	}
	hist_entry.hists = evsel__hists(evsel);
	hist_entry.thread = ms->thread;
	hist_entry.ms = *ms;
	__hist_entry__tui_annotate(&hist_entry, ms, evsel, NULL, NO_ADDR);
	return NULL;
}
