// SPDX-License-Identifier: GPL-2.0
/*
 * builtin-functions.c - what the counters say about each function
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/zalloc.h>
#include <subcmd/pager.h>
#include <subcmd/parse-options.h>

#include "builtin.h"
#include "util/addr_location.h"
#include "util/annotate.h"
#include "util/callchain.h"
#include "util/cache.h"
#include "util/data.h"
#include "util/debug.h"
#include "util/event.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/functions/columns.h"
#include "util/functions/diff.h"
#include "util/functions/events.h"
#include "util/functions/vendor-metrics.h"
#include "util/functions/resolve.h"
#include "util/functions/groups.h"
#include "util/functions/windows.h"
#include "util/functions/print.h"
#include "util/functions/progress.h"
#include "util/functions/sums.h"
#include "util/hashmap.h"
#include "util/header.h"
#include "util/hist.h"
#include "util/machine.h"
#include "util/map.h"
#include "util/map_symbol.h"
#include "util/record.h"
#include "util/session.h"
#include "util/srcline.h"
#include "util/strlist.h"
#include "util/symbol.h"
#include "util/thread.h"
#include "util/time-utils.h"
#include "util/tool.h"
#include "util/util.h"

#include "arch/common.h"
#include "ui/browsers/functions.h"
#include "ui/ui.h"

/* Exit status: with --fail-on, a change is beyond a limit. */
#define STATUS_EXCEEDED	2

#define EXAMPLE_GROUP "{cycles/period=999700,alt-period=300/,instructions,branch-misses}:uS"

static const char *const functions_subcommands[] = { "record", "report", NULL };

static const char *const report_usage[] = {
	"perf functions report [<options>] [<recording or sums file>...]",
	"perf functions report [<options>] --diff <before> <after>",
	"",
	"Examples:",
	"perf functions report --sort CPI --limit 20",
	"perf functions report --ci -F '#,CPI,%CY' --dso libc.so.6",
	"perf functions report --by callchain --symbol memcpy",
	"perf functions report --diff before.data after.data --fail-on 'CPI>5%'",
	"perf functions report host1.data --sums host1.sums",
	"perf functions report host1.sums host2.sums -x , > functions.csv",
	NULL
};

struct report_options {
	const char *share_name;
	const char *by_name;
	enum function_share share;
	enum function_by by;
	const char *fields;
	const char *metrics;
	const char *sort;
	const char *separator;
	const char *sums;
	const char *time;
	const char *objdump;
	unsigned int limit;
	bool json;
	bool intervals;
	bool diff;
	const char *fail_on;
	bool inlines;
	bool stitch_lbr;
	bool force;
	bool stdio;
	bool tui;
	/* Those whose functions can be annotated, in the order of the inputs. */
	struct recording *recordings, **last_recording;
};

/* An address in a thread where samples were taken, and the function there. */
struct place {
	struct machine *machine;
	u64 ip;
	u32 pid;
	u32 tid;
	u8 cpumode;
	bool filtered;
	/* recording.nr_changes when it was looked up. */
	u32 change;
	u64 thread;
	struct metrics_function *function;
};

#define PLACES_BITS	12

/* A recording that is being read. */
struct recording {
	struct recording *next;
	struct perf_tool tool;
	struct perf_data data;
	struct perf_session *session;
	struct function_metrics *metrics;
	struct function_finder *finder;
	/* Counts of the sample at hand, for each event of its group. */
	u64 *counts;
	unsigned int nr_counts;
	/* Places by hash: samples gather at few, and to look one up takes long. */
	struct place *places;
	/* Threads and maps have changed so often, beginning with 1. */
	u32 nr_changes;
	bool has_group;
	/* By function where there is code to annotate, NULL if that is not wanted. */
	struct hashmap *symbols;
	/* Why it cannot be read has been said. */
	bool is_refused;
	struct strlist *ignored;
	u64 lost_records;
	u64 lost_samples;
	u64 throttled;
	struct perf_time_interval *ranges;
	int range_size;
	int range_num;
};

/* evsel->priv: the place of an event's counts. */
struct functions_evsel {
	struct metrics_group *group;	/* NULL: not in a group, not counted */
	unsigned int slot;
};

static void report_error(const char *path, const char *reason)
{
	pr_err("perf functions: %s: %s\n", path, reason);
}

static bool is_tracepoint(const struct evsel *evsel)
{
	return evsel->core.attr.type == PERF_TYPE_TRACEPOINT;
}

static bool is_leader(struct evsel *evsel)
{
	return evsel__is_group_leader(evsel) && !is_tracepoint(evsel) &&
	       evsel->core.attr.sample_type & PERF_SAMPLE_READ;
}

/* Returns false if its samples tell what is asked for, else says why not. */
static bool refuse_leader(struct recording *recording, struct evsel *leader)
{
	const char *lacks = function_finder__lacks(recording->finder, leader);

	if (!lacks)
		return false;
	pr_err("perf functions: %s was recorded without what this takes: perf record %s\n",
	       evsel__name(leader), lacks);
	recording->is_refused = true;
	return true;
}

/* The events that the samples of a leader count, NULL if it is no leader. */
static struct metrics_group *new_group(struct recording *recording, struct evsel *leader)
{
	const struct perf_event_attr *attr = &leader->core.attr;

	if (!is_leader(leader))
		return NULL;
	recording->has_group = true;
	if (refuse_leader(recording, leader))
		return ERR_PTR(-EINVAL);
	callchain_param_setup(attr->sample_type,
			      perf_session__e_machine(recording->session, /*e_flags=*/NULL));
	return function_metrics__add_group(recording->metrics, attr) ?: ERR_PTR(-ENOMEM);
}

static int add_event(struct recording *recording, struct metrics_group *group,
		     struct evsel *evsel)
{
	struct functions_evsel *event = zalloc(sizeof(*event));
	int slot, err;
	char *cpu;

	if (!event)
		return -ENOMEM;
	evsel->priv = event;

	/* A script sees no tracepoint among the members. */
	if (!group || is_tracepoint(evsel)) {
		err = strlist__add(recording->ignored, evsel__name(evsel));
		return err == -EEXIST ? 0 : err;
	}

	if (!evsel__is_group_leader(evsel) && evsel->core.attr.sample_period &&
	    metrics_group__alternates(group)) {
		pr_err("perf functions: %s samples by itself, which splits the intervals of its group: record it without a period\n",
		       evsel__name(evsel));
		recording->is_refused = true;
		return -EINVAL;
	}

	cpu = perf_env__describe_cpu(&recording->session->header.env);
	slot = metrics_group__add_event(group, &evsel->core.attr, evsel__name(evsel), cpu);
	free(cpu);
	if (slot < 0)
		return slot;
	event->group = group;
	event->slot = slot;

	if (metrics_group__nr_events(group) > recording->nr_counts) {
		recording->nr_counts = metrics_group__nr_events(group);
		free(recording->counts);
		recording->counts = calloc(recording->nr_counts, sizeof(*recording->counts));
		if (!recording->counts)
			return -ENOMEM;
	}
	return 0;
}

/* Before the first sample of an event: take it up with its whole group. */
static int add_events(struct recording *recording, struct evsel *evsel)
{
	struct evsel *leader = evsel__leader(evsel), *pos;
	struct metrics_group *group = new_group(recording, leader);

	if (IS_ERR(group))
		return PTR_ERR(group);

	for_each_group_evsel(pos, leader) {
		int err = pos->priv ? 0 : add_event(recording, group, pos);

		if (err)
			return err;
	}
	return evsel->priv ? 0 : -EINVAL;
}

/* What each event counted since the sample before. */
static int read_counts(struct recording *recording, const struct functions_evsel *leader,
		       struct evsel *evsel, struct perf_sample *sample)
{
	u64 read_format = evsel->core.attr.read_format, delta;
	struct sample_read_value *v = sample->read.group.values;
	struct functions_evsel *event;

	memset(recording->counts, 0,
	       metrics_group__nr_events(leader->group) * sizeof(*recording->counts));
	recording->counts[leader->slot] = sample->period;
	if (!(read_format & PERF_FORMAT_GROUP))
		return 0;

	for (u64 i = 1; i < sample->read.group.nr; i++) {
		struct evsel *member;

		v = next_sample_read_value(v, read_format);
		member = evlist__read_member_delta(recording->session->evlist, evsel, sample, v,
						   &delta);
		if (IS_ERR(member))
			return PTR_ERR(member);
		if (!member)
			continue;
		/* The groups are told in the header, which is missing if the file is cut. */
		if (evsel__leader(member) != evsel) {
			pr_err("perf functions: %s is not in the group of %s, is the file cut short?\n",
			       evsel__name(member), evsel__name(evsel));
			return -EINVAL;
		}
		event = member->priv;
		if (event && event->group)
			recording->counts[event->slot] = delta;
	}
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

/* Note where the code of a function is. */
static int note_symbol(struct recording *recording, const struct metrics_function *function,
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
 * What the members counted in the interval goes to the instruction at its end,
 * as perf annotate has it.
 */
static int annotate_sample(struct recording *recording, struct evsel *leader,
			   struct perf_sample *sample, struct addr_location *al)
{
	struct addr_map_symbol ams = {
		.ms		= { .thread = al->thread, .map = al->map, .sym = al->sym },
		.addr		= sample->ip,
		.al_addr	= al->addr,
		.al_level	= al->level,
	};
	struct evsel *evsel;

	if (!al->map || !al->sym || !*al->sym->name)
		return 0;

	for_each_group_evsel(evsel, leader) {
		struct functions_evsel *event = evsel->priv;
		struct perf_sample part = *sample;
		struct hists *hists = evsel__hists(evsel);
		int err;

		if (!event || !event->group || !recording->counts[event->slot])
			continue;
		part.evsel = evsel;
		part.period = recording->counts[event->slot];
		hists__inc_nr_samples(hists, /*filtered=*/false);
		hists->stats.total_period += part.period;
		err = addr_map_symbol__inc_samples(&ams, &part);
		if (err && err != -ERANGE)
			return err;
	}
	return 0;
}

/* Whether a sample is not in the spans of time that the user wants to see. */
static bool is_outside(const struct recording *recording, const struct perf_sample *sample)
{
	return perf_time__ranges_skip_sample(recording->ranges, recording->range_num,
					     sample->time);
}

/* Look up thread and function of a sample. */
static int look_up(struct recording *recording, struct machine *machine, struct evsel *evsel,
		   struct perf_sample *sample, struct place *place)
{
	struct addr_location al;
	int err = -EINVAL;

	addr_location__init(&al);
	if (machine__resolve(machine, &al, sample) < 0) {
		pr_err("perf functions: a sample of no thread\n");
		goto out;
	}

	*place = (struct place){
		.machine	= machine,
		.ip		= sample->ip,
		.pid		= sample->pid,
		.tid		= sample->tid,
		.cpumode	= sample->cpumode,
		.filtered	= al.filtered,
		.change		= recording->nr_changes,
		.thread		= function_finder__thread(recording->finder, al.thread),
		.function	= function_finder__find(recording->finder, evsel, sample, &al),
	};
	err = place->function ? 0 : -ENOMEM;
	if (!err && recording->symbols) {
		err = note_symbol(recording, place->function, &al);
		if (!err && !al.filtered && !is_outside(recording, sample))
			err = annotate_sample(recording, evsel, sample, &al);
	}
out:
	addr_location__exit(&al);
	return err;
}

/* Where a sample was taken, NULL with a message if that cannot be said. */
static const struct place *find_place(struct recording *recording, struct machine *machine,
				      struct evsel *evsel, struct perf_sample *sample)
{
	struct place *place = &recording->places[hash_64(sample->ip ^ sample->tid, PLACES_BITS)];

	if (!recording->symbols && !function_finder__needs_sample(recording->finder) &&
	    place->change == recording->nr_changes && place->ip == sample->ip &&
	    place->tid == sample->tid && place->pid == sample->pid &&
	    place->cpumode == sample->cpumode && place->machine == machine)
		return place;

	return look_up(recording, machine, evsel, sample, place) ? NULL : place;
}

static int process_side_event(const struct perf_tool *tool, union perf_event *event,
			      struct perf_sample *sample, struct machine *machine)
{
	struct recording *recording = container_of(tool, struct recording, tool);

	recording->nr_changes++;
	return machine__process_event(machine, event, sample);
}

static int process_sample(const struct perf_tool *tool, union perf_event *event __maybe_unused,
			  struct perf_sample *sample, struct machine *machine)
{
	struct evsel *evsel = sample->evsel;
	struct recording *recording = container_of(tool, struct recording, tool);
	const struct place *place;
	struct metrics_sample metrics_sample;
	struct functions_evsel *leader;
	int err;

	function_progress__count();
	if (sample->deferred_callchain && symbol_conf.use_callchain) {
		pr_err("perf functions: samples without their call chains, which come later: record without 'defer'\n");
		return -EINVAL;
	}
	if (!evsel->priv) {
		err = add_events(recording, evsel);
		if (err)
			return err;
	}
	leader = evsel->priv;
	if (!leader->group)
		return 0;
	err = read_counts(recording, leader, evsel, sample);
	if (err)
		return err;

	place = find_place(recording, machine, evsel, sample);
	if (!place)
		return -EINVAL;

	metrics_sample = (struct metrics_sample){
		.id = sample->id,
		.thread = place->thread,
		.function = place->function,
		.counts = recording->counts,
		.filtered = place->filtered,
		.outside = is_outside(recording, sample),
		.nowhere = function_finder__is_nowhere(recording->finder, sample),
	};
	return function_metrics__sample(recording->metrics, leader->group, &metrics_sample);
}

static int process_throttle(const struct perf_tool *tool, union perf_event *event,
			    struct perf_sample *sample __maybe_unused,
			    struct machine *machine __maybe_unused)
{
	struct recording *recording = container_of(tool, struct recording, tool);

	recording->throttled += event->header.type == PERF_RECORD_THROTTLE;
	function_metrics__throttle(recording->metrics, event->throttle.id);
	return 0;
}

/*
 * The kernel tells of a loss where it happens (with the id of an event), perf
 * record tells the samples among them once more at the end (without id and time).
 */
static void count_loss(struct recording *recording, const struct perf_sample *sample, u64 id,
		       u64 number)
{
	if (id)
		recording->lost_records += number;
	else
		recording->lost_samples += number;
	if (sample->time)
		function_metrics__lost(recording->metrics);
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

	/* What a BPF filter has dropped was not wanted, so it is not lost. */
	if (!(event->header.misc & PERF_RECORD_MISC_LOST_SAMPLES_BPF))
		count_loss(recording, sample, 0, event->lost_samples.lost);
	return perf_event__process_lost_samples(tool, event, sample, machine);
}

static int process_feature(const struct perf_tool *tool, struct perf_session *session,
			   union perf_event *event)
{
	/* HEADER_LAST_FEATURE says that there are no more. */
	return event->feat.feat_id < HEADER_LAST_FEATURE ?
	       perf_event__process_feature(tool, session, event) : 0;
}

static void recording__init_tool(struct perf_tool *tool)
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
	tool->lost		= process_lost;
	tool->lost_samples	= process_lost_samples;
	tool->attr		= perf_event__process_attr;
	tool->event_update	= perf_event__process_event_update;
	tool->feature		= process_feature;
	tool->build_id		= perf_event__process_build_id;
	tool->id_index		= perf_event__process_id_index;
#ifdef HAVE_LIBTRACEEVENT
	tool->tracing_data	= perf_event__process_tracing_data;
#endif
	tool->ordering_requires_timestamps = true;
	tool->dont_split_sample_group = true;
	/* A sample which waits for its call chain comes after later ones. */
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
	function_metrics__delete(recording->metrics);
	strlist__delete(recording->ignored);
	free(recording->places);
	free(recording->counts);
	free(recording->ranges);
	free(recording);
}

static int recording__process(struct recording *recording, const char *path,
			      const struct report_options *options)
{
	struct perf_session *session = recording->session;
	struct evsel *evsel;
	int err;

	/* From a pipe, the events come with the samples. */
	evlist__for_each_entry(session->evlist, evsel) {
		if (is_leader(evsel) && refuse_leader(recording, evsel))
			return -EINVAL;
	}

	if (symbol__init(&session->header.env) < 0)
		return -1;

	if (options->time &&
	    perf_time__parse_for_ranges(options->time, session, &recording->ranges,
					&recording->range_size, &recording->range_num) < 0)
		return -1;

	function_progress__begin(path);
	err = perf_session__process_events(session);
	function_progress__end();
	if (err) {
		if (!recording->is_refused)
			report_error(path, "cannot be read to its end");
		return err;
	}

	if (!recording->has_group) {
		report_error(path, strlist__empty(recording->ignored) ? "no samples" :
			     "no counter group: record with -e '" EXAMPLE_GROUP "'");
		return -EINVAL;
	}
	return 0;
}

static void recording__note_ignored(struct recording *recording)
{
	const char *separator = "";
	struct str_node *name;

	if (strlist__empty(recording->ignored))
		return;
	pr_warning("perf functions: not in a counter group, or a tracepoint, and so ignored: ");
	strlist__for_each_entry(name, recording->ignored) {
		pr_warning("%s%s", separator, name->s);
		separator = ", ";
	}
	pr_warning("\n");
}

/* Whether each row is in one function. */
static bool has_code(enum function_by by)
{
	return by == FUNCTION_BY_SYMBOL || by == FUNCTION_BY_SRCLINE || by == FUNCTION_BY_CALLCHAIN;
}

static struct recording *recording__new(const struct report_options *options)
{
	struct recording *recording = zalloc(sizeof(*recording));

	if (!recording)
		return NULL;

	recording->nr_changes = 1;
	recording->ignored = strlist__new(NULL, NULL);
	recording->places = calloc(1 << PLACES_BITS, sizeof(struct place));
	recording->metrics = function_metrics__new(options->share);
	if (recording->metrics) {
		recording->finder = function_finder__new(recording->metrics, options->by,
							 options->inlines,
							 options->stitch_lbr);
	}
	if (options->tui && has_code(options->by))
		recording->symbols = hashmap__new(hash_function, equal_functions, NULL);
	if (!recording->finder || !recording->ignored || !recording->places ||
	    IS_ERR(recording->symbols)) {
		recording__delete(recording);
		return NULL;
	}
	recording__init_tool(&recording->tool);
	return recording;
}

/* The PMU of the kind of core that counted a group, 0 if none is named. */
static u32 core_of(struct evsel *evsel)
{
	const struct functions_evsel *event = evsel->priv;

	return event && event->group && evsel__is_group_leader(evsel) ?
	       function_event_core(&evsel->core.attr) : 0;
}

/* Tell of the CPU. Where several kinds of cores have counted, each is one. */
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

static int read_recording(const char *path, struct report_options *options,
			  struct function_table *table)
{
	struct recording *recording = recording__new(options);
	int err;

	if (!recording) {
		report_error(path, "not enough memory");
		return -ENOMEM;
	}

	recording->data = (struct perf_data){
		.path	= path,
		.mode	= PERF_DATA_MODE_READ,
		.force	= options->force,
	};
	recording->session = perf_session__new(&recording->data, &recording->tool);
	if (IS_ERR(recording->session)) {
		/* What is wrong has been printed. */
		err = PTR_ERR(recording->session);
		goto out;
	}

	err = recording__process(recording, path, options);
	if (err)
		goto out;

	recording__note_ignored(recording);
	err = function_metrics__table(recording->metrics, table);
	table->lost = max(recording->lost_records, recording->lost_samples);
	table->throttled = recording->throttled;
	table->by = options->by;
	table->inlines = options->inlines;
	if (!err)
		err = add_cpus(recording, table);
out:
	if (err || !options->tui) {
		recording__delete(recording);
	} else {
		*options->last_recording = recording;
		options->last_recording = &recording->next;
	}
	return err;
}

static int read_sums(const char *path, struct function_table *table)
{
	FILE *fp = fopen(path, "r");
	char msg[128];
	int err;

	if (!fp) {
		report_error(path, strerror(errno));
		return -1;
	}
	err = function_table__read(table, fp, msg, sizeof(msg));
	if (err)
		report_error(path, msg);
	fclose(fp);
	return err;
}

/* The first option that chooses windows, or NULL. */
static const char *find_filter(const struct report_options *options)
{
	const struct {
		const char *name, *value;
	} filters[] = {
		{ "comm", symbol_conf.comm_list_str }, { "dso", symbol_conf.dso_list_str },
		{ "pid", symbol_conf.pid_list_str }, { "tid", symbol_conf.tid_list_str },
		{ "symbol", symbol_conf.sym_list_str }, { "time", options->time },
	};

	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		if (filters[i].value)
			return filters[i].name;
	}
	return NULL;
}

/* Whether sums were asked for something that only a recording tells; a message if so. */
static bool refuse_choice(const char *path, const struct report_options *options,
			  const struct function_table *table)
{
	const char *filter = find_filter(options);

	if (filter) {
		pr_err("perf functions: %s: --%s chooses windows of a recording, and this has sums\n",
		       path, filter);
		return true;
	}
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		bool discard = table->sets[i]->descs->discard;

		if (options->share == (discard ? FUNCTION_SHARE_NONE : FUNCTION_SHARE_DISCARD)) {
			pr_err("perf functions: %s: these are sums of --share %s\n", path,
			       discard ? "discard" : "none");
			return true;
		}
	}
	return false;
}

static void print_no_window(const char *path, const struct report_options *options)
{
	const char *filter = find_filter(options);

	if (filter)
		pr_err("perf functions: %s: no window is one that --%s chooses\n", path, filter);
	else
		report_error(path, "the recording has no window: too few samples");
}

static int read_input(const char *path, struct report_options *options,
		      struct function_table *table)
{
	struct function_table own = {};
	const char *reason;
	int err;

	if (is_function_sums_file(path))
		err = read_sums(path, &own) ?: refuse_choice(path, options, &own) ? -EINVAL : 0;
	else
		err = read_recording(path, options, &own);

	if (!err && options->by_name && own.by != options->by) {
		pr_err("perf functions: %s: these are sums by %s\n", path,
		       function_by__name(own.by));
		err = -EINVAL;
	}
	if (!err) {
		reason = function_table__merge(table, &own);
		if (reason) {
			pr_err("perf functions: %s: does not add up with those before it: %s\n",
			       path, reason);
			err = -EINVAL;
		}
	}
	function_table__exit(&own);
	return err;
}

static bool same_periods(const struct function_group_desc *a, const struct function_group_desc *b)
{
	return a->sample_period == b->sample_period &&
	       a->alternative_sample_period == b->alternative_sample_period;
}

/* Whether windows of one leader's event stand for different periods. */
static bool has_several_periods(const struct function_table *table)
{
	for (unsigned int i = 0; i < table->nr_sets; i++) {
		const struct event_set *set = table->sets[i];
		unsigned int first = 0;

		while (strcmp(table->sets[first]->events[0], set->events[0]))
			first++;
		for (unsigned int j = 0; j < set->nr_descs; j++) {
			if (!same_periods(&set->descs[j], table->sets[first]->descs))
				return true;
		}
	}
	return false;
}

static void print_notes(const struct function_table *table)
{
	u64 samples = 0, without_symbol = 0;

	if (table->nr_cpus > 1)
		pr_warning("perf functions: counts of several kinds of CPUs (%s, %s) are added up (record one kind: taskset -c)\n",
			   table->cpus[0], table->cpus[1]);
	if (has_several_periods(table))
		pr_warning("perf functions: recorded with several periods: functions weigh more where they are shorter\n");
	if (table->lost)
		pr_warning("perf functions: %llu records were lost: windows over a loss are discarded (larger buffers: perf record -m)\n",
			   (unsigned long long)table->lost);
	if (table->throttled)
		pr_warning("perf functions: throttled %llu times: windows over it are discarded (longer periods, or raise sysctl kernel.perf_event_max_sample_rate)\n",
			   (unsigned long long)table->throttled);

	for (size_t i = 0; i < table->nr_sums; i++) {
		samples += table->sums[i]->samples;
		if (!*table->sums[i]->symbol)
			without_symbol += table->sums[i]->samples;
	}
	if (samples && 10 * without_symbol >= samples)
		pr_warning("perf functions: %.0f %% of the window samples have no symbol: are the debug symbols installed?\n",
			   100.0 * without_symbol / samples);
}

static void print_no_column(const struct function_columns *columns, enum function_by by,
			    const char *name, size_t length)
{
	pr_err("perf functions: no column %.*s in this recording, there are: %s", (int)length,
	       name, function_by__name(by));
	for (unsigned int i = 0; i < columns->nr_columns; i++)
		pr_err(" %s", columns->columns[i].name);
	pr_err("\n");
}

/* The column that a list of names begins with, -1 if none. A name may have commas, too. */
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

/* Numbers of the columns to print, NULL with a message if there is a wrong name. */
static int *find_fields(const struct function_columns *columns, enum function_by by,
			const char *names, unsigned int *nr_fields)
{
	const size_t most = names ? strlen(names) + 1 : columns->nr_columns;
	int *fields = calloc(most, sizeof(*fields));
	size_t length;

	if (!fields)
		return NULL;
	for (*nr_fields = 0; !names && *nr_fields < most; ++*nr_fields)
		fields[*nr_fields] = *nr_fields;

	while (names) {
		int field = find_field(columns, names, &length);

		if (field < 0) {
			print_no_column(columns, by, names, strcspn(names, ","));
			free(fields);
			return NULL;
		}
		fields[(*nr_fields)++] = field;
		names = names[length] ? names + length + 1 : NULL;
	}
	return fields;
}

/* With -M: the windows, and the metrics, which begin at column first. */
static int *metric_fields(const struct function_columns *columns, unsigned int first,
			  unsigned int *nr_fields)
{
	unsigned int nr = columns->nr_columns - first;
	int *fields = calloc(nr + 2, sizeof(*fields));

	if (!fields)
		return NULL;
	fields[0] = function_columns__find(columns, "#", 1);
	for (unsigned int i = 0; i < nr; i++)
		fields[1 + i] = first + i;
	fields[1 + nr] = function_columns__find(columns, "DIS", 3);
	*nr_fields = nr + 2;
	return fields;
}

/* The number of the column to sort by, -1 if that is the first, -EINVAL with a message. */
static int find_sort(const struct function_columns *columns, enum function_by by,
		     const char *name)
{
	int column;

	if (!name)
		return function_columns__default_sort(columns);
	if (!strcasecmp(name, "symbol") || !strcmp(name, function_by__name(by)))
		return -1;
	column = function_columns__find(columns, name, strlen(name));
	if (column < 0) {
		print_no_column(columns, by, name, strlen(name));
		return -EINVAL;
	}
	return column;
}

static int sort_rows(struct function_columns *columns, enum function_by by, const char *name)
{
	int column = find_sort(columns, by, name);

	if (column >= 0)
		function_columns__sort(columns, column);
	return column < -1 ? column : 0;
}

/* Returns why a function cannot be annotated. */
static const char *annotate_function(void *data, const struct function_sums *sums)
{
	const struct report_options *options = data;
	struct metrics_function *function;
	struct hist_entry hist_entry = {};
	struct map_symbol *ms = NULL;
	struct recording *recording;
	struct evsel *evsel;

	if (!options->recordings)
		return "sums files have no code to annotate";
	for (recording = options->recordings; recording; recording = recording->next) {
		function = function_metrics__find(recording->metrics, sums);
		if (function && recording->symbols &&
		    hashmap__find(recording->symbols, function, &ms))
			break;
	}
	if (!ms)
		return "not one function with a symbol, whose code could be annotated";
	if (!symbol__annotation(ms->sym)->src)
		return "no samples that are to be annotated";

	if (!annotate_opts.objdump_path &&
	    perf_env__lookup_objdump(&recording->session->header.env,
				     &annotate_opts.objdump_path))
		return "no objdump for the recorded architecture";

	evlist__for_each_entry(recording->session->evlist, evsel) {
		struct functions_evsel *event = evsel->priv;

		if (event && event->group)
			break;
	}
	hist_entry.hists = evsel__hists(evsel);
	hist_entry.thread = ms->thread;
	hist_entry.ms = *ms;
	__hist_entry__tui_annotate(&hist_entry, ms, evsel, NULL, NO_ADDR);
	return NULL;
}

static int browse(const struct function_print *print, struct function_columns *columns,
		  struct report_options *options)
{
	int ret;

	annotation_options__init();
	annotation_config__init();
	if (options->objdump)
		annotate_opts.objdump_path = strdup(options->objdump);
	ret = function_print__browse(print, columns, annotate_function, options);
	annotation_options__exit();
	return ret;
}

static int flush_table(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	report_error("cannot write the table", strerror(errno));
	return -EIO;
}

static int print_report(struct report_options *options, const struct function_table *table)
{
	struct function_columns columns;
	struct function_print print = {
		.table = table, .columns = &columns, .intervals = options->intervals,
	};
	int *fields = NULL, err;
	unsigned int first;

	err = function_columns__init(&columns, table);
	first = columns.nr_columns;
	if (!err && options->metrics)
		err = function_exprs__add_columns(&columns, table, options->metrics);
	if (!err)
		err = sort_rows(&columns, table->by, options->sort);
	if (err)
		goto out;

	err = -EINVAL;
	if (options->metrics && !options->fields)
		fields = metric_fields(&columns, first, &print.nr_fields);
	else
		fields = find_fields(&columns, table->by, options->fields, &print.nr_fields);
	if (!fields)
		goto out;

	print.fields = fields;
	print.nr_rows = columns.nr_rows;
	if (options->limit && options->limit < print.nr_rows)
		print.nr_rows = options->limit;

	print_notes(table);
	if (options->tui) {
		use_browser = 1;
		setup_browser(true);
	} else {
		setup_pager();
	}
	err = 0;
	if (use_browser == 1)
		err = browse(&print, &columns, options);
	else if (options->json)
		function_print__json(&print, stdout);
	else if (options->separator)
		function_print__csv(&print, options->separator, stdout);
	else
		err = function_print__table(&print, stdout);
	if (!err)
		err = flush_table();
out:
	free(fields);
	function_columns__exit(&columns);
	return err;
}

/* How recordings differ, whose numbers are compared. */
static void print_diff_notes(const struct function_table *before,
			     const struct function_table *after)
{
	print_notes(before);
	print_notes(after);
	for (unsigned int i = 0; i < before->nr_sets; i++) {
		const struct event_set *old = before->sets[i];

		for (unsigned int j = 0; j < after->nr_sets; j++) {
			const struct event_set *new = after->sets[j];

			if (strcmp(old->events[0], new->events[0]))
				continue;
			if (old->descs->discard == new->descs->discard &&
			    same_periods(old->descs, new->descs))
				return;
			pr_warning("perf functions: recorded with other periods or share modes, which move the shares\n");
			return;
		}
	}
}

/* Print what is beyond the limits of --fail-on. Returns how many changes are. */
static int print_exceeded(const struct function_diff_print *print, const char *limits)
{
	int total = 0;

	while (limits && *limits) {
		struct function_limit limit = {};
		int nr;

		limits = function_limit__parse(&limit, limits);
		nr = function_diff_print__exceeded(print, &limit, stderr);
		free(limit.column);
		if (nr < 0)
			return nr;
		total += nr;
	}
	return total;
}

/* Whether changes of a column are significant ever; a message if they are not. */
static bool check_limited(const struct function_columns *columns, enum function_by by,
			  const char *name)
{
	int column = function_columns__find(columns, name, strlen(name));

	if (column < 0) {
		print_no_column(columns, by, name, strlen(name));
		return false;
	}
	if (function_column__is_count(&columns->columns[column])) {
		pr_err("perf functions: --fail-on %s: a number of windows has no interval, take a column that has one\n",
		       name);
		return false;
	}
	return true;
}

/* Whether the limits of --fail-on can be understood; a message if they cannot. */
static bool check_limits(const char *limits, const struct function_columns *columns,
			 enum function_by by)
{
	bool is_good = true;

	if (!limits)
		return true;
	do {
		struct function_limit limit = {};
		const char *rest = function_limit__parse(&limit, limits);

		if (!rest) {
			pr_err("perf functions: cannot read --fail-on %s: a limit is COLUMN>NUMBER, or <-NUMBER for a decrease, with %% if relative to the value before\n",
			       limits);
			is_good = false;
		} else if (columns) {
			is_good = check_limited(columns, by, limit.column);
		}
		free(limit.column);
		limits = rest;
	} while (is_good && *limits);
	return is_good;
}

static int print_changes(const struct report_options *options, struct function_diff *diff,
			 struct function_diff_print *print)
{
	int column = find_sort(&diff->columns, print->after->by, options->sort), err = 0;

	if (column < -1)
		return column;
	function_diff__sort(diff, column);
	print->nr_rows = diff->nr_rows;
	if (options->limit && options->limit < print->nr_rows)
		print->nr_rows = options->limit;

	print_diff_notes(print->before, print->after);
	setup_pager();
	if (options->json)
		function_diff_print__json(print, stdout);
	else if (options->separator)
		function_diff_print__csv(print, options->separator, stdout);
	else
		err = function_diff_print__table(print, stdout);
	err = err ?: flush_table();
	if (!err)
		err = print_exceeded(print, options->fail_on);
	return err > 0 ? STATUS_EXCEEDED : err;
}

static int print_diff(const struct report_options *options, const struct function_table *before,
		      const struct function_table *after)
{
	struct function_columns old = {}, new = {};
	struct function_diff diff = {};
	struct function_diff_print print = {
		.diff = &diff, .before = before, .after = after, .intervals = options->intervals,
	};
	int *fields = NULL, err;

	err = function_columns__init(&old, before) ?: function_columns__init(&new, after);
	if (!err && options->metrics)
		err = function_exprs__add_columns(&old, before, options->metrics) ?:
		      function_exprs__add_columns(&new, after, options->metrics);
	err = err ?: function_diff__init(&diff, &old, &new);
	if (err)
		goto out;

	err = -EINVAL;
	fields = find_fields(&diff.columns, after->by, options->fields, &print.nr_fields);
	print.fields = fields;
	if (fields && check_limits(options->fail_on, &diff.columns, after->by))
		err = print_changes(options, &diff, &print);
out:
	free(fields);
	function_diff__exit(&diff);
	function_columns__exit(&new);
	function_columns__exit(&old);
	return err;
}

static int report_diff(struct report_options *options, const char **inputs)
{
	struct function_table before = {}, after = {};
	int err;

	err = read_input(inputs[0], options, &before) ?: read_input(inputs[1], options, &after);
	if (err)
		goto out;

	signal(SIGPIPE, SIG_DFL);
	err = -EINVAL;
	if (!before.nr_sums || !after.nr_sums)
		print_no_window(inputs[before.nr_sums != 0], options);
	else if (before.by != after.by || before.inlines != after.inlines)
		report_error(inputs[1], "its rows are of another kind than those before");
	else
		err = print_diff(options, &before, &after);
out:
	function_table__exit(&after);
	function_table__exit(&before);
	return err;
}

static int write_sums_to(const char *path, const struct function_table *table)
{
	FILE *fp = fopen(path, "w");
	int err;

	if (!fp)
		return -errno;
	err = function_table__write(table, fp);
	if (fclose(fp) && !err)
		err = -errno;
	return err;
}

/* Replace a sums file when the new one is whole. */
static int replace_sums(const char *path, const struct function_table *table)
{
	char *new;
	int err;

	if (asprintf(&new, "%s.new", path) < 0)
		return -ENOMEM;
	err = write_sums_to(new, table);
	if (!err && rename(new, path))
		err = -errno;
	if (err)
		unlink(new);
	free(new);
	return err;
}

static int write_sums(const char *path, const struct function_table *table)
{
	struct stat st;
	int err;

	if (!strcmp(path, "-"))
		err = function_table__write(table, stdout);
	else if (lstat(path, &st) || S_ISREG(st.st_mode))
		err = replace_sums(path, table);
	else
		err = write_sums_to(path, table);	/* a pipe, say */
	if (err)
		report_error(path, strerror(-err));
	return err;
}

static int parse_share(const char *name, enum function_share *share)
{
	static const char *const names[] = {
		[FUNCTION_SHARE_AUTO]		= "auto",
		[FUNCTION_SHARE_NONE]		= "none",
		[FUNCTION_SHARE_DISCARD]	= "discard",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i])) {
			*share = i;
			return 0;
		}
	}
	pr_err("perf functions: no share mode %s, there are: auto none discard\n", name);
	return -EINVAL;
}

static int parse_by(const char *name, enum function_by *by)
{
	int found = function_by__find(name);

	if (found < 0) {
		pr_err("perf functions: no --by %s, there are:", name);
		for (int i = 0; i < FUNCTION_BY_MAX; i++)
			pr_err(" %s", function_by__name(i));
		pr_err("\n");
		return -EINVAL;
	}
	*by = found;
	return 0;
}

static int report_functions(struct report_options *options, int argc, const char **argv)
{
	const char *const default_input[] = { input_name ?: "perf.data" };
	struct function_table table = {};
	int err;

	if (parse_share(options->share_name, &options->share) ||
	    parse_by(options->by_name ?: "symbol", &options->by))
		return -1;
	if (options->inlines && options->by != FUNCTION_BY_SYMBOL &&
	    options->by != FUNCTION_BY_CALLCHAIN) {
		pr_err("perf functions: --inline goes with --by symbol and --by callchain\n");
		return -1;
	}
	if (options->stitch_lbr && options->by != FUNCTION_BY_CALLCHAIN) {
		pr_err("perf functions: --stitch-lbr goes with --by callchain\n");
		return -1;
	}

	if (options->diff && (argc != 2 || input_name || options->sums)) {
		pr_err("perf functions: --diff takes two recordings or sums files, before and after, and prints\n");
		return -1;
	}
	if (options->fail_on && !options->diff) {
		pr_err("perf functions: --fail-on goes with --diff\n");
		return -1;
	}
	if (!check_limits(options->fail_on, NULL, options->by))
		return -1;

	/* No browser to be left as long as there is none. */
	options->tui &= !options->json && !options->separator && !options->sums &&
			!options->diff;
	options->last_recording = &options->recordings;

	/* A place for the function in each symbol. */
	symbol_conf.priv_size = sizeof(struct metrics_function *);
	if (options->tui && (hists__init() < 0 || symbol__annotation_init() < 0))
		return -1;
	symbol_conf.use_callchain = options->by == FUNCTION_BY_CALLCHAIN;

	if (options->diff) {
		err = report_diff(options, argv);
		goto out;
	}
	if (!argc || input_name) {
		err = read_input(default_input[0], options, &table);
		if (err)
			goto out;
	}
	for (int i = 0; i < argc; i++) {
		err = read_input(argv[i], options, &table);
		if (err)
			goto out;
	}

	/* To ask addr2line is to ignore it: `| head` ends this silently all the same. */
	if (!options->tui)
		signal(SIGPIPE, SIG_DFL);

	/* Those of no window are still a part of the sums of several recordings. */
	if (!table.nr_sums && !options->sums) {
		print_no_window(argc > 1 ? "the recordings" : argc ? argv[0] : default_input[0],
				options);
		err = -EINVAL;
	} else if (options->sums) {
		print_notes(&table);
		err = write_sums(options->sums, &table);
	} else {
		err = print_report(options, &table);
	}
out:
	function_table__exit(&table);
	while (options->recordings) {
		struct recording *recording = options->recordings;

		options->recordings = recording->next;
		recording__delete(recording);
	}
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

static int cmd_functions_report(int argc, const char **argv, bool tui_is_default)
{
	struct report_options report = { .share_name = "auto" };
	int err;
	const struct option options[] = {
	OPT_STRING('i', "input", &input_name, "file", "input file name"),
	OPT_BOOLEAN('f', "force", &report.force, "don't complain, do it"),
	OPT_INCR('v', "verbose", &verbose, "be more verbose"),
	OPT_STRING(0, "share", &report.share_name, "auto|none|discard",
		   "which windows count: all, or those in one function (default: auto)"),
	OPT_STRING(0, "by", &report.by_name, "symbol|dso|comm|thread|cpu|srcline|callchain",
		   "what rows are, and both ends of a window have in common (default: symbol)"),
	OPT_BOOLEAN(0, "inline", &report.inlines,
		    "tell inlined functions from those which they are in"),
	OPT_BOOLEAN(0, "stitch-lbr", &report.stitch_lbr,
		    "with --by callchain: enable LBR callgraph stitching approach"),
	OPT_STRING('s', "sort", &report.sort, "column",
		   "sort by this column, or symbol (default: %CY, else #)"),
	OPT_STRING('F', "fields", &report.fields, "column[,column...]",
		   "print these columns only, in this order"),
	OPT_BOOLEAN(0, "ci", &report.intervals, "print the 95 % interval of each metric, too"),
	OPT_STRING('M', "metrics", &report.metrics, "metric or group[,...]",
		   "print these metrics of the recorded CPU (see perf list metric)"),
	OPT_UINTEGER(0, "limit", &report.limit, "print this number of functions only"),
	OPT_BOOLEAN(0, "tui", &report.tui, "use the TUI interface"),
	OPT_BOOLEAN(0, "stdio", &report.stdio, "use the stdio interface, which is the default"),
	OPT_STRING(0, "objdump", &report.objdump, "path",
		   "objdump binary to use for disassembly"),
	OPT_STRING_NOEMPTY('x', "field-separator", &report.separator, "separator",
			   "print values with all their digits and this separator"),
	OPT_BOOLEAN('j', "json", &report.json,
		    "print an object with sums, metrics, their standard errors and intervals"),
	OPT_STRING(0, "sums", &report.sums, "file",
		   "write the sums to this file (- for stdout) instead of printing metrics"),
	OPT_BOOLEAN(0, "diff", &report.diff,
		    "print what has changed from the first input to the second"),
	OPT_CALLBACK(0, "fail-on", &report.fail_on, "limit[,...]",
		     "with --diff: exit status 2 if a function has changed by more than 'column>number[%]' or 'column<-number[%]'",
		     add_limits),
	OPT_STRING(0, "comm", &symbol_conf.comm_list_str, "comm[,comm...]",
		   "only count windows in these comms"),
	OPT_STRING(0, "dso", &symbol_conf.dso_list_str, "dso[,dso...]",
		   "only count windows in these DSOs"),
	OPT_STRING(0, "pid", &symbol_conf.pid_list_str, "pid[,pid...]",
		   "only count windows in these processes"),
	OPT_STRING(0, "tid", &symbol_conf.tid_list_str, "tid[,tid...]",
		   "only count windows in these threads"),
	OPT_STRING(0, "symbol", &symbol_conf.sym_list_str, "symbol[,symbol...]",
		   "only count windows in these symbols"),
	OPT_STRING(0, "time", &report.time, "start,stop",
		   "only count windows in this span of time"),
	OPT_STRING('k', "vmlinux", &symbol_conf.vmlinux_name, "file", "vmlinux pathname"),
	OPT_STRING(0, "kallsyms", &symbol_conf.kallsyms_name, "file", "kallsyms pathname"),
	OPT_CALLBACK(0, "symfs", NULL, "directory",
		     "Look for files with symbols relative to this directory",
		     symbol__config_symfs),
	OPT_STRING(0, "addr2line", &symbol_conf.addr2line_path, "path",
		   "addr2line binary to use for line numbers and inlined functions"),
	OPT_BOOLEAN(0, "full-source-path", &srcline_full_filename,
		    "Show full source file name path for source lines"),
	OPT_BOOLEAN(0, "demangle", &symbol_conf.demangle,
		    "demangle symbol names, which is the default"),
	OPT_END()
	};

	argc = parse_options(argc, argv, options, report_usage, 0);
	report.tui = report.tui || (tui_is_default && !report.stdio);
	if (report.separator && !strcmp(report.separator, "\\t"))
		report.separator = "\t";
	err = report_functions(&report, argc, argv);
	free((char *)report.fail_on);
	return err;
}

static const struct option *find_record_option(const char *name, size_t length, int short_name)
{
	for (const struct option *opt = record_options; opt->type != OPTION_END; opt++) {
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
static void scan_record_options(int argc, const char **argv, bool *has_events, bool *is_verbose)
{
	for (int i = 0; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--"); i++) {
		const char *arg = argv[i] + 1;

		if (*arg == '-') {
			size_t length = strcspn(++arg, "=");

			*has_events |= length == strlen("event") && strstarts(arg, "event");
			*is_verbose |= !strcmp(arg, "verbose");
			i += !arg[length] && takes_argument(find_record_option(arg, length, 0));
			continue;
		}
		for (; *arg; arg++) {
			const struct option *opt = find_record_option(NULL, 0, *arg);

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
static int take_metrics(int *argc, const char **argv, const char **metrics)
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
				opt = find_record_option(arg + 2, length - 1, 0);
			else if (length == 1)
				opt = find_record_option(NULL, 0, arg[1]);
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

static int cmd_functions_record(int argc, const char **argv)
{
	const char **rec_argv = calloc(argc + 5, sizeof(*rec_argv));
	bool has_events = false, is_verbose = verbose > 0;
	const char *metrics = NULL;
	char *group = NULL;
	int nr = 0, ret = -1;

	if (!rec_argv)
		return -1;
	if (take_metrics(&argc, argv, &metrics))
		goto out;

	rec_argv[nr++] = "record";
	rec_argv[nr++] = "-T";
	rec_argv[nr++] = "--sample-cpu";
	scan_record_options(argc - 1, argv + 1, &has_events, &is_verbose);
	if (has_events && metrics) {
		pr_err("perf functions: -M chooses the events, so it does not go with -e\n");
		goto out;
	}
	if (!has_events) {
		group = metrics ? function_groups__of_metrics(metrics) :
				  function_groups__default();
		if (!group)
			goto out;
		rec_argv[nr++] = "-e";
		rec_argv[nr++] = group;
	}
	for (int i = 1; i < argc; i++)
		rec_argv[nr++] = argv[i];

	if (is_verbose) {
		pr_info("calling: perf");
		for (int i = 0; i < nr; i++)
			pr_info(" %s", rec_argv[i]);
		pr_info("\n");
	}
	if (metrics)
		print_command(nr, rec_argv);

	ret = cmd_record(nr, rec_argv);
out:
	free(group);
	free(rec_argv);
	return ret;
}

int cmd_functions(int argc, const char **argv)
{
	const char *functions_usage[2] = {};
	const struct option options[] = {
	OPT_INCR('v', "verbose", &verbose, "be more verbose"),
	OPT_END()
	};
	/* As perf config has it. What is said before there is a browser goes to stderr. */
	bool tui_is_default = use_browser == 1;
	int ret = -1;

	use_browser = 0;
	argc = parse_options_subcommand(argc, argv, options, functions_subcommands, functions_usage,
					PARSE_OPT_STOP_AT_NON_OPTION);
	if (argc && strlen(argv[0]) > 2 && strstarts("record", argv[0]))
		ret = cmd_functions_record(argc, argv);
	else if (argc && strlen(argv[0]) > 2 && strstarts("report", argv[0]))
		ret = cmd_functions_report(argc, argv, tui_is_default);
	else
		usage_with_options(functions_usage, options);

	/* free usage string allocated by parse_options_subcommand */
	free((void *)functions_usage[0]);
	return ret;
}
