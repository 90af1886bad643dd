// SPDX-License-Identifier: GPL-2.0
/*
 * Reads recordings. The way of a sample:
 *
 * 1. perf's session calls take_sample() with it, in the order of time.
 * 2. The first sample of an event adds the event and its group: sets.c chooses their sets.
 * 3. find_place() looks up its thread and address, and rows.c the row.
 * 4. fn_streams__read() reads the counts of its group since the sample before: an interval.
 * 5. With --children, chains.c finds the rows of its callers.
 * 6. Each source that wants it takes it once: samples.c its period, branches.c its records,
 *    windows.c its interval. They make observations: a row, and counts.
 * 7. table.c adds each observation to the sums of the row in its set, and forgets it.
 * 8. At the end, or the end of a span, sums are scaled, rows are named, and the table is settled.
 */
#include <byteswap.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <linux/err.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/zalloc.h>
#include <perf/cpumap.h>

#include "../addr_location.h"
#include "../callchain.h"
#include "../debug.h"
#include "../dso.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../header.h"
#include "../hist.h"
#include "../machine.h"
#include "../map.h"
#include "../session.h"
#include "../strlist.h"
#include "../symbol.h"
#include "../thread.h"
#include "../time-utils.h"
#include "../util.h"
#include "session.h"

/* In a live recording, a stream may be forgotten after this many ns without a sample. */
#define FORGET_AFTER	(60 * NSEC_PER_SEC)
/* CPUs have at least this number of counters. */
#define LEAST_COUNTERS	4

/* Returns true if a sample is outside of the spans of time that the user wants to see. */
static bool is_outside(const struct fn_session *session, const struct perf_sample *sample)
{
	return perf_time__ranges_skip_sample(session->ranges, session->range_num, sample->time);
}

/* Returns true if a sample is on a CPU that the user does not want to see. */
static bool is_elsewhere(const struct fn_session *session, const struct perf_sample *sample)
{
	const struct perf_cpu_map *cpus = session->options->cpus;
	const struct perf_cpu cpu = { .cpu = sample->cpu };

	return cpus && ((u32)cpu.cpu != sample->cpu || !perf_cpu_map__has(cpus, cpu));
}

/* Looks up the row at a sample. Not inline, because most places are known. */
static noinline int look_up(struct fn_session *session, struct machine *machine,
			    struct evsel *evsel, struct perf_sample *sample, struct fn_place *place)
{
	struct addr_location al;
	int err = -ENOMEM;

	addr_location__init(&al);
	if (machine__resolve(machine, &al, sample) < 0) {
		fn_err("a sample has no thread: the file is damaged, record again");
		err = -EINVAL;
		goto out;
	}
	/* The DSOs of JITs are one row. */
	if (symbol_conf.dso_list && al.map && fn_dso__is_jit(map__dso(al.map)) &&
	    strlist__has_entry(symbol_conf.dso_list, FN_JIT))
		al.filtered &= ~BIT(HIST_FILTER__DSO);
	*place = (struct fn_place){
		.machine	= machine,
		.ip		= sample->ip,
		.pid		= sample->pid,
		.tid		= sample->tid,
		.thread		= fn_rows__thread(session->rows, al.thread),
		.cpumode	= sample->cpumode,
		.is_foreign	= thread__is_filtered(al.thread),
		/* The rows of guests whose programs are not known are known. */
		.is_filtered	= al.filtered & ~BIT(HIST_FILTER__GUEST),
		.is_nowhere	= fn_rows__is_nowhere(session->rows, sample),
		.change		= fn_rows__needs_sample(session->rows) ? 0 : session->nr_changes,
		.row		= fn_rows__find(session->rows, evsel, sample, &al),
		.is_mapped	= al.map,
	};
	place->distance = session->wants_sites ?
			  fn_site__distance(&al, machine,
					    perf_env__arch(&session->session->header.env)) : FN_FAR;
	err = place->row ? 0 : -ENOMEM;
out:
	addr_location__exit(&al);
	return err;
}

/* Returns the place of a sample, or an error. */
static const struct fn_place *find_place(struct fn_session *session, struct machine *machine,
					 struct evsel *evsel, struct perf_sample *sample)
{
	struct fn_place *place = &session->places[hash_64(sample->ip ^ sample->tid, PLACES_BITS)];
	int err;

	if (place->change == session->nr_changes && place->ip == sample->ip &&
	    place->tid == sample->tid && place->pid == sample->pid &&
	    place->cpumode == sample->cpumode && place->machine == machine)
		return place;
	err = look_up(session, machine, evsel, sample, place);
	return err ? ERR_PTR(err) : place;
}

const struct fn_place *fn_session__place_at(struct fn_session *session,
					    const struct fn_sample *sample, u64 address, u8 mode)
{
	struct perf_sample other = *sample->sample;

	other.ip = address;
	other.cpumode = mode;
	return find_place(session, sample->place.machine, sample->evsel, &other);
}

int fn_session__find_row(struct fn_session *session, const struct fn_sample *sample, u64 address,
			 bool must_be_mapped, struct fn_row **row)
{
	const u8 mode = fn_is_in_kernel(sample->place.machine, address) ?
			PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	const struct fn_place *place = fn_session__place_at(session, sample, address, mode);

	if (IS_ERR(place))
		return PTR_ERR(place);
	if (must_be_mapped && !place->is_mapped)
		return 0;
	*row = place->is_filtered || place->is_nowhere || is_elsewhere(session, sample->sample) ?
	       NULL : place->row;
	return 0;
}

static bool has_times(const struct evsel *evsel)
{
	const u64 both = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

	return (evsel->core.attr.read_format & both) == both;
}

/* Returns the number of the PMU of a kind of cores; 0: none is named. */
static u32 core_of(struct evsel *evsel)
{
	const u32 core = fn_event__core(&evsel->core.attr);
	const char *pmu = fn_evsel__pmu(evsel);

	if (!fn_evsel__is_sampler(evsel) || core)
		return fn_evsel__is_sampler(evsel) ? core : 0;
	return strstarts(pmu, "cpu_") || strstarts(pmu, "armv") || strstarts(pmu, "apple_") ?
	       evsel->core.attr.type : 0;
}

/* Adds the CPU to the table. If several kinds of cores have counted, each is a CPU. */
static int add_cpus(struct fn_session *session, struct fn_table *table)
{
	u32 first = 0, core;
	bool several = false;
	struct evsel *evsel;
	int err = 0;

	if (!session->cpu)
		return 0;
	evlist__for_each_entry(session->session->evlist, evsel) {
		core = core_of(evsel);
		first = first ?: core;
		several |= core && core != first;
	}
	if (!several)
		return fn_table__add_cpu(table, session->cpu);
	evlist__for_each_entry(session->session->evlist, evsel) {
		char *kind;

		core = core_of(evsel);
		if (!core || err)
			continue;
		if (asprintf(&kind, "%s pmu=%u", session->cpu, core) < 0)
			return -ENOMEM;
		err = fn_table__add_cpu(table, kind);
		free(kind);
	}
	return err;
}

/*
 * Returns true if the recording lacks the threads and children that a task has started, unless the
 * user has named the threads to record. Events that begin with a program are of it alone: it may
 * have an option -t of its own.
 */
static bool lacks_children(const struct fn_session *session)
{
	const struct perf_env *env = &session->session->header.env;
	bool lacks = false, begins_with_program = false;
	struct evsel *evsel;

	evlist__for_each_entry(session->session->evlist, evsel) {
		lacks |= fn_evsel__is_sampler(evsel) && !evsel->core.attr.inherit;
		begins_with_program |= evsel->core.attr.enable_on_exec;
	}
	for (int i = 0; !begins_with_program && env->cmdline_argv && i < env->nr_cmdline &&
	     strcmp(env->cmdline_argv[i], "--"); i++) {
		if (strstarts(env->cmdline_argv[i], "-t") ||
		    strstarts(env->cmdline_argv[i], "--tid"))
			return false;
	}
	return lacks && session->is_of_tasks;
}

/* Makes the table of what was added so far; @lost is the number of samples lost in all. */
static int finish(struct fn_session *session, u64 lost)
{
	struct fn_table *table = session->table;
	int err = fn_windows__end_bursts(session) ?:
		  fn_operations__end(session->operations, session);

	fn_operations__mark(session->operations, session->nr_tasks);
	fn_paths__choose(session->paths);
	fn_samples__scale(session);
	fn_windows__stretch(session);
	err = err ?: fn_rows__finish(session->rows);
	table->lost = lost - session->told_lost;
	table->lacks_children = lacks_children(session);
	scnprintf(table->by, sizeof(table->by), "%s", session->options->by);
	table->inlines = session->options->inlines;
	return err ?: add_cpus(session, table);
}

static void restart_event(struct fn_evsel *own)
{
	if (!own)
		return;
	own->periods = 0;
	own->number = 0;
	own->counted = 0;
	memset(own->times, 0, sizeof(own->times));
}

/*
 * Ends a span of time: passes on its table, adds it to those before, and begins the next one
 * without sums.
 */
static int end_span(struct fn_session *session, u64 lost, u64 end)
{
	const struct fn_options *options = session->options;
	int err = finish(session, lost);
	const char *reason = NULL;
	struct fn_table own = {};
	struct evsel *evsel;

	if (!err && fn_table__add(&own, &session->span))
		err = -ENOMEM;
	err = err ?: fn_table__settle(&own);
	if (!err && (options->is_due || !fn_table__is_empty(&own)) &&
	    options->take(options->data, &own, session->begin, end))
		err = -EINVAL;
	/* A live recording may continue forever. */
	if (!err && !options->is_due)
		reason = fn_table__add(session->all, &own);
	if (reason) {
		fn_err("cannot add up the intervals: %s", reason);
		err = -EINVAL;
	}
	fn_table__exit(&own);
	fn_table__clear(&session->span);
	fn_paths__restart(session->paths);
	fn_streams__restart(session->streams);
	evlist__for_each_entry(session->session->evlist, evsel)
		restart_event(evsel->priv);
	session->told_lost = lost;
	session->nr_tasks = 0;
	return err ?: fn_table__settle(session->all);
}

/* Passes on the sums so far of a live recording. */
static int end_part(struct fn_session *session, u64 lost)
{
	int err;

	if (!session->last_time)
		return 0;
	/* The span may have no sample. */
	err = end_span(session, lost, max(session->last_time, session->begin));
	if (session->last_time - session->forgot > FORGET_AFTER) {
		fn_streams__forget_idle(session->streams);
		session->forgot = session->last_time;
	}
	session->begin = session->last_time + 1;
	return err;
}

/* Called before each sample: ends the span of time if the sample lies beyond it. */
static int follow_spans(struct fn_session *session, u64 time)
{
	const u64 span = session->options->span;
	int err;

	if (!span && !session->options->is_due)
		return 0;
	if (!session->last_time) {
		session->begin = time;
		session->forgot = time;
	}
	if (!span || time < session->begin || time - session->begin < span)
		return 0;
	err = end_span(session, session->lost_records, session->begin + span - 1);
	session->begin += (time - session->begin) / span * span;
	return err;
}

/* Lets each source that wants a sample take it. */
static int add_to_sources(struct fn_session *session, struct fn_sample *sample)
{
	const struct fn_evsel *own = sample->own;
	struct fn_stream *stream = sample->stream;
	int err = 0;

	if (own->samples)
		err = fn_samples.sample(session, sample);
	if (!err && own->paths)
		err = fn_branches.sample(session, sample);
	if (!err && own->operations)
		err = fn_operations.sample(session, sample);
	if (!err && stream && sample->ends_interval && !own->sampler->windows->is_dropped)
		err = fn_windows.sample(session, sample);
	if (stream && (sample->ends_interval || !own->sampler))
		fn_streams__see(session->streams, stream);
	return err;
}

static int add_sample(struct fn_session *session, struct evsel *evsel, struct perf_sample *sample,
		      struct machine *machine)
{
	const bool is_unwanted = is_elsewhere(session, sample);
	const struct fn_place *place;
	struct fn_evsel *priv;
	struct fn_sample own;
	int err = 0;

	if (sample->deferred_callchain && symbol_conf.use_callchain) {
		fn_err("deferred call chains are not supported: record without ',defer' in --call-graph");
		return -EINVAL;
	}
	if (!evsel->priv) {
		err = fn_session__add_events(session, evsel, sample);
		if (err)
			return err;
		callchain_param_setup(evsel->core.attr.sample_type,
				      perf_session__e_machine(session->session, /*e_flags=*/NULL));
	}
	priv = evsel->priv;
	if (!priv->sampler && !priv->samples && !priv->paths && !priv->operations)
		return 0;
	err = follow_spans(session, sample->time);
	if (err)
		return err;
	session->last_time = max(session->last_time, sample->time);
	place = find_place(session, machine, evsel, sample);
	if (IS_ERR(place))
		return PTR_ERR(place);
	own = (struct fn_sample){
		.evsel = evsel, .own = priv, .sample = sample, .place = *place,
		.is_outside = is_outside(session, sample),
		.is_of_task = session->is_of_tasks || evsel->core.attr.inherit,
	};
	own.place.is_filtered |= is_unwanted;
	/* The stream of a CPU has intervals of several threads. */
	own.place.is_foreign = is_unwanted || (evsel->core.attr.inherit && place->is_foreign);
	if (priv->sampler || evsel->core.attr.jitter_alternate_period)
		err = fn_streams__read(session->streams, session->session->evlist, &own);
	if (err)
		return err == -EINVAL ? fn_evsel__refuse_values(evsel) : err;
	/* Its frames may take the place. */
	if (session->has_chains)
		err = fn_chains__find(session, &own);
	return err ?: add_to_sources(session, &own);
}

static int take_sample(const struct perf_tool *tool, union perf_event *event __maybe_unused,
		       struct perf_sample *sample, struct machine *machine)
{
	struct fn_session *session = container_of(tool, struct fn_session, tool);
	int err = add_sample(session, sample->evsel, sample, machine);

	/* After an error, perf's session would print a message of its own. */
	if (err) {
		session->err = err;
		session_done = 1;
	}
	return 0;
}

static int process_side_event(const struct perf_tool *tool, union perf_event *event,
			      struct perf_sample *sample, struct machine *machine)
{
	struct fn_session *session = container_of(tool, struct fn_session, tool);

	session->nr_changes++;
	/* What perf record writes about threads that run already has no time. */
	session->nr_tasks += event->header.type == PERF_RECORD_FORK && sample->time &&
			     !is_outside(session, sample);
	if (event->header.type == PERF_RECORD_EXIT)
		fn_streams__end_thread(session->streams, event->fork.tid);
	return machine__process_event(machine, event, sample);
}

static int process_round(const struct perf_tool *tool, union perf_event *event,
			 struct ordered_events *oe)
{
	struct fn_session *session = container_of(tool, struct fn_session, tool);
	const struct fn_options *options = session->options;
	int err = perf_event__process_finished_round(tool, event, oe);

	if (err || session->err || !options->is_due(options->data))
		return err;
	session->err = end_part(session, session->lost_records);
	if (session->err)
		session_done = 1;
	return 0;
}

/* Since Linux 6.16 all of a group stand still, and the leader is named, whichever event samples. */
static void mark_throttled(struct evlist *evlist, const struct evsel *named)
{
	struct evsel *evsel;

	evlist__for_each_entry(evlist, evsel) {
		const struct fn_evsel *own = evsel->priv;

		if (!own || (evsel != named && evsel__leader(evsel) != named))
			continue;
		if (own->samples)
			own->samples->events[own->event].is_throttled = true;
		if (own->operations)
			fn_operations__throttle(own->operations);
	}
}

static int process_throttle(const struct perf_tool *tool, union perf_event *event,
			    struct perf_sample *sample, struct machine *machine __maybe_unused)
{
	struct fn_session *session = container_of(tool, struct fn_session, tool);
	struct evsel *evsel = evlist__id2evsel_strict(session->session->evlist, event->throttle.id);
	const struct fn_evsel *own = evsel ? evsel->priv : NULL;
	const bool begins = event->header.type == PERF_RECORD_THROTTLE;

	if (begins && !is_outside(session, sample)) {
		session->table->throttled++;
		mark_throttled(session->session->evlist, evsel);
	}
	if (own && own->sampler && own->sampler != own && evsel__is_group_leader(evsel)) {
		fn_streams__lose(session->streams);
		return 0;
	}
	return fn_streams__throttle(session->streams, event->throttle.id,
				    evsel && evsel->core.attr.inherit ? sample->tid : 0, begins);
}

/* Adds numbers, up to the largest one. */
static u64 add_up(u64 a, u64 b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* With --stat, perf record writes the times of threads that have ended. */
static int process_read(const struct perf_tool *tool, union perf_event *event,
			struct perf_sample *sample, struct machine *machine)
{
	struct fn_session *session = container_of(tool, struct fn_session, tool);
	struct evsel *evsel = evlist__id2evsel_strict(session->session->evlist, sample->id);
	struct fn_evsel *own = evsel ? evsel->priv : NULL;
	const struct perf_record_read *read = &event->read;
	struct thread *thread;
	int err;

	if (!own || !own->samples || fn_evsel__has_counts(evsel) || !has_times(evsel) ||
	    event->header.size < offsetof(struct perf_record_read, id))
		return 0;
	/* Its number may be that of a thread before. */
	thread = machine__findnew_thread(machine, read->pid, read->tid);
	if (!thread)
		return -ENOMEM;
	err = fn_streams__read_times(session->streams, own, sample->id,
				     fn_rows__thread(session->rows, thread), read->time_enabled,
				     read->time_running);
	thread__put(thread);
	return err;
}

/*
 * The kernel writes a record where a loss happens (with the id of an event). perf record reports
 * lost samples once more at the end (without id and time).
 */
static int process_lost(const struct perf_tool *tool, union perf_event *event,
			struct perf_sample *sample, struct machine *machine __maybe_unused)
{
	struct fn_session *session = container_of(tool, struct fn_session, tool);
	const bool are_records = event->header.type == PERF_RECORD_LOST && event->lost.id;
	u64 *lost = are_records ? &session->lost_records : &session->lost_samples;

	/* Samples that a BPF filter drops are unwanted, so they are not lost. */
	if (event->header.type == PERF_RECORD_LOST_SAMPLES &&
	    event->header.misc & PERF_RECORD_MISC_LOST_SAMPLES_BPF)
		return 0;
	if (!is_outside(session, sample))
		*lost = add_up(*lost, event->header.type == PERF_RECORD_LOST ?
			       event->lost.lost : event->lost_samples.lost);
	if (sample->time)
		fn_streams__lose(session->streams);
	return 0;
}

static int process_feature(const struct perf_tool *tool, struct perf_session *session,
			   union perf_event *event)
{
	struct fn_session *own = container_of(session->tool, struct fn_session, tool);
	/* HEADER_LAST_FEATURE marks the end of the features. */
	int err = event->feat.feat_id < HEADER_LAST_FEATURE ?
		  perf_event__process_feature(tool, session, event) : 0;

	own->is_newer |= event->feat.feat_id > HEADER_LAST_FEATURE;
	/* In a pipe, a feature tells the CPU. */
	free(own->cpu);
	own->cpu = perf_env__describe_cpu(&session->header.env);
	return err;
}

/* Pieces of AUX data: the hardware tells where operations are missing, but not how many. */
static int process_aux(const struct perf_tool *tool, union perf_event *event,
		       struct perf_sample *sample __maybe_unused,
		       struct machine *machine __maybe_unused)
{
	struct fn_session *session = container_of(tool, struct fn_session, tool);
	const u64 flags = event->aux.flags;

	session->nr_aux++;
	session->nr_cut += !!(flags & (PERF_AUX_FLAG_TRUNCATED | PERF_AUX_FLAG_PARTIAL));
	session->nr_collided += !!(flags & PERF_AUX_FLAG_COLLISION);
	return 0;
}

/* perf record puts an event of AUX data first, and so its header lets it lead the next group. */
static void take_from_groups(struct evlist *evlist, const struct evsel *aux)
{
	struct evsel *evsel, *leader = NULL;

	evlist__for_each_entry(evlist, evsel) {
		if (evsel == aux || evsel__leader(evsel) != aux)
			continue;
		leader = leader ?: evsel;
		evsel__set_leader(evsel, leader);
		leader->core.nr_members++;
	}
}

/* Lets perf make samples of SPE's records: all events of each, and then itself. */
static int process_auxtrace_info(const struct perf_tool *tool __maybe_unused,
				 struct perf_session *perf, union perf_event *event)
{
	struct fn_session *session = container_of(perf->tool, struct fn_session, tool);
	const struct fn_options *options = session->options;
	struct evsel *evsel;

	session->has_aux = true;
	evlist__for_each_entry(perf->evlist, evsel) {
		if (fn_evsel__is_of_aux(evsel))
			take_from_groups(perf->evlist, evsel);
	}
	if (event->auxtrace_info.type != PERF_AUXTRACE_ARM_SPE ||
	    (options->source && options->source != &fn_operations))
		return 0;
	if (options->is_due || session->has_chains || fn_by__has(options->by, FN_BY_CALLCHAIN)) {
		fn_warn("%s: operations (arm_spe) are left out: %s", session->name,
			options->is_due ? "top cannot show them, but report can" :
					  "they have no call chains");
		return 0;
	}
	/* perf takes the CPU, its clock and the ids for granted. */
	evlist__for_each_entry(perf->evlist, evsel) {
		if (evsel->core.attr.type >= PERF_TYPE_MAX && !evsel->core.ids)
			return 0;
	}
	if (!session->cpu || !perf->time_conv.time_mult)
		return 0;
	session->itrace = (struct itrace_synth_opts){
		.set = true, .flc = true, .llc = true, .tlb = true, .branches = true,
		.instructions = true, .period = 1,
		.period_type = PERF_ITRACE_PERIOD_INSTRUCTIONS,
	};
	perf->itrace_synth_opts = &session->itrace;
	session->tool.auxtrace = perf_event__process_auxtrace;
	return perf_event__process_auxtrace_info(&session->tool, perf, event);
}

/* CPU-wide events have a thread map with the pid -1. */
static int process_thread_map(const struct perf_tool *tool __maybe_unused,
			      struct perf_session *session, union perf_event *event)
{
	struct fn_session *own = container_of(session->tool, struct fn_session, tool);
	const struct perf_record_thread_map *threads = &event->thread_map;

	if (event->header.size >= sizeof(*threads) + sizeof(threads->entries[0]) && threads->nr)
		own->is_of_tasks |= threads->entries[0].pid != (u64)-1;
	return 0;
}

static void init_tool(struct perf_tool *tool, bool is_live)
{
	perf_tool__init(tool, /*ordered_events=*/true);
	tool->sample		= take_sample;
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
	tool->lost_samples	= process_lost;
	tool->attr		= perf_event__process_attr;
	tool->event_update	= perf_event__process_event_update;
	tool->feature		= process_feature;
	tool->aux		= process_aux;
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

static void delete_session(struct fn_session *session)
{
	struct evsel *evsel;

	fn_streams__delete(session->streams);
	fn_chains__exit(&session->chains);
	fn_rows__delete(session->rows);
	fn_operations__delete(session->operations);
	fn_table__exit(&session->span);
	if (!IS_ERR_OR_NULL(session->session)) {
		evlist__for_each_entry(session->session->evlist, evsel) {
			struct fn_evsel *own = evsel->priv;

			if (!own)
				continue;
			free(own->members);
			free(own->name);
			free(own->paths);
			zfree(&evsel->priv);
		}
		perf_session__delete(session->session);
	}
	strlist__delete(session->ignored);
	free(session->ranges);
	free(session->cpu);
	free(session);
}

/*
 * Returns true if the file ends within its events, which perf would map nevertheless, or within the
 * features of its header, which follow them.
 */
static bool is_cut(const struct perf_session *session)
{
	const struct perf_header *header = &session->header;
	const unsigned int nr = bitmap_weight(header->adds_features, HEADER_FEAT_BITS);
	u64 at = add_up(header->data_offset, header->data_size);
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
		if (add_up(section.offset, section.size) > (u64)st.st_size)
			return true;
		at += sizeof(section);
	}
	return false;
}

static struct fn_session *new_session(const struct fn_options *options, struct fn_table *table)
{
	struct fn_session *session = zalloc(sizeof(*session));

	if (!session)
		return NULL;
	session->options = options;
	session->all = table;
	session->table = options->span || options->is_due ? &session->span : table;
	session->nr_changes = 1;
	session->ignored = strlist__new(NULL, NULL);
	session->streams = fn_streams__new();
	session->rows = fn_rows__new(session->table, options->by, options->inlines);
	session->has_chains = fn_by__is(options->by, FN_BY_CHILDREN);
	if (!session->ignored || !session->streams || !session->rows) {
		delete_session(session);
		return NULL;
	}
	init_tool(&session->tool, options->is_due);
	return session;
}

/* Returns true if a newer perf has written records or features that this one does not know. */
static bool is_newer(const struct fn_session *session)
{
	/* Features from 128 on are those of simpleperf. */
	return session->is_newer || session->session->has_unknown ||
	       find_next_bit(session->session->header.adds_features, 128,
			     HEADER_LAST_FEATURE) < 128;
}

static int refuse_newer(const struct fn_session *session)
{
	const char *recorded = session->session->header.env.version;
	char *version = recorded ? function_text__printable(recorded) : NULL;

	fn_err("%s: written by a newer perf%s%s: read it with that one", session->name,
	       version ? ", version " : "", version ?: "");
	free(version);
	return -EINVAL;
}

/* Returns true, after a message, if nothing that was asked for is in the recording. */
static bool refuse_kinds(const struct fn_session *session)
{
	const bool is_empty = strlist__empty(session->ignored);
	const struct fn_source *source = session->options->source;

	if (!session->has_set && (is_empty ? session->has_aux : !session->has_event)) {
		fn_err("%s: only %s counts: record with perf functions record, or -e cycles,instructions,branch-misses",
		       session->name, is_empty ?
		       "AUX data (intel_pt, arm_spe), which has no" :
		       "tracepoints, which have no");
		return true;
	}
	if (source == &fn_branches && !session->paths) {
		fn_err("%s: no cycles with records of all branches: record with perf functions record -b, or perf record -b -e cycles",
		       session->name);
		return true;
	}
	if (source == &fn_operations && !session->operations) {
		fn_err("%s: no operations: record with perf functions record on a CPU with SPE or IBS, or perf record -e arm_spe_0// (ibs_op/cnt_ctl=1/)",
		       session->name);
		return true;
	}
	if (!session->has_set) {
		fn_err("%s: no counter group%s: record with perf functions record, or -e cycles,instructions,branch-misses",
		       session->name, source == &fn_windows ? "" :
		       ", and no event that samples by itself and tells its period");
		return true;
	}
	return false;
}

/*
 * Returns true if perf record had a single buffer: the file has its records in the order in which
 * they were written, so perf need not sort them. But perf inject --jit, which needs recordings with
 * -k mono, writes all code of a JIT where the JIT begins.
 */
static bool has_one_buffer(const struct perf_session *perf)
{
	struct evsel *evsel;

	if (perf->header.env.nr_cpus_online != 1 || perf_data__is_pipe(perf->data) ||
	    perf_data__is_dir(perf->data))
		return false;
	evlist__for_each_entry(perf->evlist, evsel) {
		const struct perf_event_attr *attr = &evsel->core.attr;

		if (evsel->core.ids != 1 || attr->write_backward || fn_evsel__is_of_aux(evsel) ||
		    (attr->use_clockid && attr->clockid == CLOCK_MONOTONIC))
			return false;
	}
	return true;
}

static int process(struct fn_session *session)
{
	const struct fn_options *options = session->options;
	struct perf_session *perf = session->session;
	struct evsel *evsel;
	int err;

	/* From a pipe, the events come with the samples. */
	evlist__for_each_entry(perf->evlist, evsel) {
		if (fn_session__takes(session, evsel) && fn_session__refuses(session, evsel))
			return -EINVAL;
	}
	if (symbol__init(&perf->header.env) < 0)
		return -1;
	/* perf takes a function f for an address, and no name. */
	if (symbol_conf.sym_list_str) {
		strlist__delete(symbol_conf.sym_list);
		symbol_conf.sym_list = strlist__new(symbol_conf.sym_list_str, NULL);
		if (!symbol_conf.sym_list)
			return -ENOMEM;
	}
	if (options->time &&
	    perf_time__parse_for_ranges(options->time, perf, &session->ranges, &session->range_size,
					&session->range_num) < 0) {
		fn_err("cannot read --time %s: write START,STOP in seconds, one of them may be missing, or a part such as 10%%/2",
		       options->time);
		return -1;
	}
	session->tool.ordered_events &= !has_one_buffer(perf);
	err = is_cut(perf) ? -EINVAL : perf_session__process_events(perf);
	if (!err && !session->err)
		session->err = fn_session__add_idle_events(session);
	if (session->err || err == -ENOMEM)
		return session->err ?: err;
	if ((err && !is_cut(perf) && is_newer(session)) || perf->has_unknown)
		return refuse_newer(session);
	/* If perf record was killed, top has what came before. */
	if (err || (perf->is_cut && !options->is_due)) {
		fn_err("%s: cannot be read to its end: the %s is cut short or damaged, record again",
		       session->name, perf_data__is_pipe(perf->data) ? "pipe" : "file");
		return -EINVAL;
	}
	/* A live recording may end before the first sample. */
	if (options->is_due && strlist__empty(session->ignored))
		return 0;
	return refuse_kinds(session) ? -EINVAL : 0;
}

static bool may_take_turns(struct evsel *evsel)
{
	const struct fn_evsel *own = evsel->priv;

	return own && own->samples && fn_evsel__is_alone(evsel) && !own->times[0] &&
	       evsel->core.attr.type != PERF_TYPE_SOFTWARE;
}

/*
 * Says how many events may have taken turns on the counters. Those of one name do not count side by
 * side: they are of other kinds of cores, or of other cgroups.
 */
static void note_turns(const struct fn_session *session)
{
	struct strlist *names = strlist__new(NULL, NULL);
	unsigned int nr_alone;
	struct evsel *evsel;

	evlist__for_each_entry(session->session->evlist, evsel) {
		if (names && may_take_turns(evsel))
			strlist__add(names, ((struct fn_evsel *)evsel->priv)->name);
	}
	nr_alone = names ? strlist__nr_entries(names) : 0;
	strlist__delete(names);
	if (nr_alone > LEAST_COUNTERS)
		fn_warn("%s: %u events sample without a group, and nothing tells whether they took turns on the counters, which would make their counts too small: record them as a group ('{...}'), or fewer of them",
			session->name, nr_alone);
}

static void note_ignored(struct fn_session *session)
{
	const char *separator = "";
	struct str_node *name;

	if (strlist__empty(session->ignored))
		return;
	pr_warning("perf functions: ignored: ");
	strlist__for_each_entry(name, session->ignored) {
		pr_warning("%s%s", separator, name->s);
		separator = ", ";
	}
	pr_warning("\n");
}

/* Says once that a file of this machine is not what was recorded, and once that the kernel is. */
static int note_unnamed(struct dso *dso, struct machine *machine __maybe_unused, void *data)
{
	const bool is_kernel = dso__kernel(dso) && !dso__is_kmod(dso);
	const enum dso_load_errno reason = *dso__load_errno(dso);
	struct fn_session *session = data;
	char *file;

	if (dso__binary_type(dso) != DSO_BINARY_TYPE__NOT_FOUND || session->noted & BIT(is_kernel))
		return 0;
	if (reason != DSO_LOAD_ERRNO__MISMATCHING_BUILDID && reason != DSO_LOAD_ERRNO__OTHER_ARCH &&
	    reason != DSO_LOAD_ERRNO__CANNOT_READ_BUILDID && reason != DSO_LOAD_ERRNO__OTHER_HOST &&
	    reason != DSO_LOAD_ERRNO__OTHER_KERNEL)
		return 0;
	session->noted |= BIT(is_kernel);
	file = function_text__printable(dso__long_name(dso));
	fn_warn("%s: %s %s, so its functions are addresses (others may be, too): %s",
		session->name, file ?: "a file",
		reason == DSO_LOAD_ERRNO__OTHER_HOST || reason == DSO_LOAD_ERRNO__OTHER_ARCH ?
		"may be one of another host" : "is another build here", is_kernel ?
		"name its symbols with --kallsyms or --vmlinux" :
		"name the folder of the recorded files with --symfs");
	free(file);
	return 0;
}

const char *fn_options__filter(const struct fn_options *options)
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

static void note_operations(const struct fn_session *session)
{
	const u64 missing = max(session->nr_cut, session->nr_collided);

	fn_operations__note(session->operations, session->name);
	if (session->operations && missing)
		fn_warn("%s: operations are missing in %llu of %llu pieces of AUX data: %llu were cut, and %llu have collisions%s",
			session->name, (unsigned long long)missing,
			(unsigned long long)session->nr_aux, (unsigned long long)session->nr_cut,
			(unsigned long long)session->nr_collided,
			missing * 100 < session->nr_aux ? "" :
			"; those that wait long are missing more often: record with a longer period (--operations), and a larger buffer (-m ,16M)");
}

/* Makes the table of all that was read, or the last span. */
static int end_session(struct fn_session *session)
{
	const struct fn_options *options = session->options;
	u64 lost = session->lost_records;
	int err;

	note_ignored(session);
	note_turns(session);
	machine__for_each_dso(&session->session->machines.host, note_unnamed, session);
	note_operations(session);
	fn_paths__note(session->paths, session->name);
	/* Those that perf record reports have no time. */
	if (!session->ranges)
		lost = max(lost, session->lost_samples);
	if (options->is_due)
		return end_part(session, lost);
	err = options->span ? end_span(session, lost, session->begin + options->span - 1) :
			      finish(session, lost);
	return err ?: fn_table__settle(session->all);
}

int fn_session__read(const char *path, const struct fn_options *options, struct fn_table *table)
{
	struct fn_session *session = new_session(options, table);
	int err;

	if (!session) {
		fn_err("%s: not enough memory", options->name ?: path);
		return -ENOMEM;
	}
	session->name = options->name ?: path;
	/* A missing addr2line must neither end perf by a signal nor be told for each file. */
	if (options->inlines || fn_by__has(options->by, FN_BY_SRCLINE)) {
		signal(SIGPIPE, SIG_IGN);
		symbol_conf.addr2line_disable_warn = true;
	}
	session->data = (struct perf_data){
		.path = path, .mode = PERF_DATA_MODE_READ, .force = options->force,
	};
	session->session = perf_session__new(&session->data, &session->tool);
	if (IS_ERR(session->session)) {
		/* The error has been printed. */
		err = PTR_ERR(session->session);
	} else {
		session->cpu = perf_env__describe_cpu(&session->session->header.env);
		err = process(session) ?: end_session(session);
		if (err == -ENOMEM)
			fn_err("%s: not enough memory", session->name);
	}
	delete_session(session);
	return err;
}
