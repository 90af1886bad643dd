/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of perf functions share. An observation is a function and a vector of counts.
 *
 *   session.c    reads a recording: which events count together (sets.c), who (thread, CPU),
 *                where (rows.c), which stream
 *     -> fn_source  branches.c, operations.c, samples.c, windows.c: makes observations of a
 *                   sample, with what session.h has
 *     -> table.c    the sums of rows, to which they add them
 *   columns.c    fn_columns: which rates and shares a table has
 *   estimate.c   their values with intervals and marks, from the sums of a table
 *   print.c      text and csv; json.c, the browser: all print a fn_view
 *
 * What returns an int returns 0 or a negative error;
 * a pointer that is returned is NULL without memory.
 */
#ifndef __PERF_FUNCTIONS_H
#define __PERF_FUNCTIONS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <linux/compiler.h>
#include <linux/types.h>

struct addr_location;
struct branch_entry;
struct dso;
struct evlist;
struct evsel;
struct fn_column;
struct fn_options;
struct fn_pair;
struct fn_sample;
struct fn_session;
struct perf_env;
struct perf_event_attr;
struct perf_sample;
struct pmu_metric;
struct pmu_metrics_table;
struct thread;

/* Messages: one line on stderr. Names from files go through function_text__printable() first. */
#define fn_err(fmt, ...) pr_err("perf functions: " fmt "\n", ##__VA_ARGS__)
#define fn_warn(fmt, ...) pr_warning("perf functions: " fmt "\n", ##__VA_ARGS__)

#define FN_MOST_EVENTS	64	/* more than any group has */
/* Events that were to count for more than this times the time in which they did took turns. */
#define FN_LEAST_TURNS	1.05
/* Rows of --children: the roots of chains that are complete, and of those that were cut. */
#define FN_ALL		"[all]"
#define FN_CUT		"[cut]"
/* The DSO of all code of JITs, and its function without a name. */
#define FN_JIT		"[JIT]"
#define FN_UNNAMED	"[unnamed JIT code]"

/* text.c: for text from a file, which may contain any bytes */
int function_text__character(const char *text, bool *is_control);
int function_text__width(const char *text);
char *function_text__printable(const char *text);
char *function_text__lower(const char *text);
const char *function_text__base_name(const char *path);
int function_text__u64(const char *str, int base, u64 *value);

/*
 * events.c: what an event counts. @cpu is of perf_env__describe_cpu(), or NULL.
 */
enum fn_vendor { FN_VENDOR_UNKNOWN, FN_VENDOR_ARM, FN_VENDOR_INTEL, FN_VENDOR_AMD };

char *fn_event__name(const struct perf_event_attr *attr, const char *name, const char *own_pmu,
		     const char *cpu);
bool fn_event__differs(const struct perf_event_attr *attr, const struct perf_event_attr *other,
		       const char *cpu);
bool fn_event__is_portable(const char *name);	/* the same on the CPUs of all vendors */
bool fn_event__is_clock(const char *name);	/* of the kernel: it counts nanoseconds */
bool fn_event__is_time(const char *name);	/* a delay of all samples changes no share of it */
bool fn_event__is_branch(const char *name);
bool fn_event__config(const char *terms, enum fn_vendor vendor, u64 *config);
u32 fn_event__core(const struct perf_event_attr *attr);	/* its PMU's number, 0: not named */
enum fn_vendor fn_cpu__vendor(const char *cpu);

/* A CPU as perf's tables spell it: without its version, and with it. */
struct fn_cpu {
	const char *arch;
	char id[64], full[64];
};

const struct pmu_events_table *fn_cpu__events(struct fn_cpu *id, const char *cpu);

/*
 * table.c: sums of rows. There is one table from the first sample to the print; tables of several
 * inputs add up.
 */

/* An event of a set. Marks hold for all values that need the event. */
struct fn_event {
	const char *name;	/* canonical */
	bool is_precise;	/* its samples are where it was */
	bool is_throttled;	/* samples are missing */
	bool is_stretched;	/* it took turns on the counters, and its counts are scaled */
	bool is_scarce;		/* few samples for the number of new threads */
	double scale;		/* of its sums by what it has counted in all; 1: none, or unknown */
	double copies;		/* how often all sets of its source have counted it, 0: unknown */
};

/* How a group was recorded. Recordings that add up may differ. */
struct fn_group {
	u64 period;		/* 0 with a frequency */
	u64 freq;
	u64 window;		/* the alternate period, 0: none; of branches: the horizon */
	u32 burst;		/* windows in a row; of branches: the guard */
	u32 jitter;
	bool inherit;
};

/*
 * Sums of observations of one row, or of all. If the source counts the events of a set together,
 * the values are the totals by event, then the products of events a <= b. Else each observation has
 * one event: arrays by event of the totals, squares, numbers of observations, and the parts of the
 * totals that were sampled close to an entry or a return site: FN_NR_BINS of them.
 */
#define FN_NR_BINS	4	/* 0, up to 4, up to 8, and up to 12 instructions */
#define FN_FAR		13	/* a distance in none of them */

struct fn_sums {
	double number;
	double independent;	/* a burst of windows is one */
	/*
	 * Windows: those that begin here, wherever they end, and those that end here. Branch
	 * records: the weights of the observations, and their squares.
	 */
	double begun, ended;
	double values[];
};

/* Events that are counted by the same observations. */
struct fn_set {
	const struct fn_source *source;
	unsigned int index;		/* of fn_row.sums */
	struct fn_event *events;	/* the leader, then by name */
	unsigned int nr_events;
	struct fn_group *groups;
	unsigned int nr_groups;
	/*
	 * The set whose sums of the leader are drawn evenly, so that they tell its shares: itself,
	 * or for windows that of the leader's own samples. NULL: unknown.
	 */
	struct fn_set *even;
	bool is_complete;		/* each period is a window: all that was counted */
	bool is_recorded;		/* samples lie in the function of the last branch record */
	bool is_hidden;			/* has no columns, but others need it: --source */
	bool is_dropped;		/* not at all: fn_table__settle() deletes it */
	struct fn_sums *total;		/* of all rows, see fn_table__settle() */
	/*
	 * Windows in all functions, and the long intervals: what interrupts add. Of samples and
	 * operations, "windows" has the totals of all, also of those that a filter leaves out.
	 */
	struct fn_sums *windows, *longs;
	/* How late windows have ended in all, in events of the leader, and how many tell. */
	double late, nr_late;
};

/* A row of the table: its name has a part for each key of --by. */
struct fn_row {
	char *symbol;			/* "": none, then the address stands for it */
	char *dso;			/* path, "": none */
	u64 address;			/* in the DSO */
	bool has_address;		/* it tells functions of one name apart, within a table */
	size_t index;			/* in fn_table.rows after fn_table__settle() */
	char *label;			/* see fn_table__set_labels() */
	struct fn_row **parts;		/* with several keys: a row of each */
	struct fn_sums **sums;		/* by set, NULL: none */
	unsigned int nr_sums;
	u64 stamp;			/* of the last observation: a recursion counts once */
};

struct fn_table {
	char by[80];			/* keys, separated by commas; "children" */
	bool inlines;
	struct fn_set **sets;
	unsigned int nr_sets;
	struct fn_row **rows;		/* sorted by symbol, DSO, address once it is settled */
	size_t nr_rows, nr_allocated;
	u64 allocated;			/* bytes of all sums */
	u64 stamp;			/* see fn_row.stamp */
	u64 lost, throttled;
	bool lacks_children;		/* tasks do not inherit these events */
	u32 is_partial;			/* bits by fn_source.bit: some inputs have it, others not */
	int unmapped;			/* a process whose JIT has no map; 0: none */
	char **cpus;			/* of perf_env__describe_cpu(), sorted */
	unsigned int nr_cpus;
};

#define fn_table__for_each_set(table, set)						\
	for (struct fn_set *set, **set##_at = (table)->sets;				\
	     set##_at && set##_at < (table)->sets + (table)->nr_sets && (set = *set##_at); \
	     set##_at++)

#define fn_table__for_each_row(table, row)						\
	for (struct fn_row *row, **row##_at = (table)->rows;				\
	     row##_at && row##_at < (table)->rows + (table)->nr_rows && (row = *row##_at); \
	     row##_at++)

/* Begin with a zeroed table. */
void fn_table__exit(struct fn_table *table);
/* Both copy the events; the first one is the leader. @group may be NULL. */
struct fn_set *fn_table__findnew_set(struct fn_table *table, const struct fn_source *source,
				     const struct fn_group *group, const struct fn_event *events,
				     unsigned int nr_events);
struct fn_set *fn_table__new_set(struct fn_table *table, const struct fn_source *source,
				 const struct fn_group *group, const struct fn_event *events,
				 unsigned int nr_events);
int fn_set__add_group(struct fn_set *set, const struct fn_group *group);
/* @address NULL: the names say enough. fn_table__settle() merges rows that are the same. */
struct fn_row *fn_table__new_row(struct fn_table *table, const char *symbol, const char *dso,
				 const u64 *address);
/* The same row in a settled table, NULL: none. */
struct fn_row *fn_table__find_row(const struct fn_table *table, const struct fn_row *other);
/*
 * Sorts the rows, merges those of one name, drops addresses that tell nothing, and makes the totals
 * (--children: those of FN_ALL). To be called before values are made, and again after changes.
 */
int fn_table__settle(struct fn_table *table);
/* Adds a settled table, and is to be settled then. Returns NULL, or why it cannot be added. */
const char *fn_table__add(struct fn_table *table, const struct fn_table *other);
void fn_table__clear(struct fn_table *table);	/* forgets all sums, but not the rows */
/* Whether there are observations of a source; with @event, whether they are of this event. */
bool fn_table__has_source(const struct fn_table *table, const struct fn_source *source,
			  const char *event);
bool fn_table__has_event(const struct fn_table *table, const char *name);
bool fn_table__is_empty(const struct fn_table *table);
/* The number of observations in a row (NULL: in all), from a source (NULL: from any). */
double fn_table__number(const struct fn_table *table, const struct fn_row *row,
			const struct fn_source *source);
enum fn_vendor fn_table__vendor(const struct fn_table *table);
int fn_table__add_cpu(struct fn_table *table, const char *cpu);
static inline bool fn_row__is(const struct fn_row *row, const char *root)
{
	return !*row->dso && !strcmp(row->symbol, root);
}

void fn_event__merge(struct fn_event *event, const struct fn_event *other);
int fn_set__find(const struct fn_set *set, const char *event);	/* place, -1: none */
size_t fn_set__nr_values(const struct fn_set *set);
struct fn_sums *fn_row__new_sums(struct fn_table *table, struct fn_row *row,
				 const struct fn_set *set);
/* @row NULL: all. */
static inline struct fn_sums *fn_row__sums(const struct fn_row *row, const struct fn_set *set)
{
	if (!row)
		return set->total;
	return set->index < row->nr_sums ? row->sums[set->index] : NULL;
}

static inline struct fn_sums *fn_row__findnew_sums(struct fn_table *table, struct fn_row *row,
						   const struct fn_set *set)
{
	return fn_row__sums(row, set) ?: fn_row__new_sums(table, row, set);
}

static inline void fn_sums__observe(const struct fn_set *set, struct fn_sums *sums,
				    const double *counts, double number)
{
	const unsigned int nr = set->nr_events;
	double *product = sums->values + nr;

	sums->number += number;
	sums->independent++;
	for (unsigned int i = 0; i < nr; i++) {
		const double count = counts[i];

		sums->values[i] += count;
		for (unsigned int j = i; j < nr; j++)
			*product++ += count * counts[j];
	}
}

/* Adds an observation of @number windows that count all events of a set. */
int fn_set__observe(struct fn_table *table, const struct fn_set *set, struct fn_row *row,
		    const double *counts, double number);
double fn_sums__product(const struct fn_set *set, const struct fn_sums *sums, unsigned int a,
			unsigned int b);

/*
 * rows.c: where a sample belongs
 */
enum fn_key {
	FN_BY_SYMBOL, FN_BY_DSO, FN_BY_COMM, FN_BY_THREAD, FN_BY_PROCESS, FN_BY_CPU, FN_BY_PMU,
	FN_BY_SRCLINE, FN_BY_CALLCHAIN, FN_BY_CGROUP,
	FN_BY_CHILDREN,		/* functions, each with all its callees */
	FN_NR_KEYS,
};

const char *fn_key__name(enum fn_key key);
/* Returns the number of keys, or -1 with the wrong word in @wrong, if not NULL. */
int fn_by__parse(const char *by, enum fn_key keys[FN_NR_KEYS], char wrong[32]);
bool fn_by__has(const char *by, enum fn_key key);
bool fn_by__is(const char *by, enum fn_key key);	/* that key alone */

struct fn_rows *fn_rows__new(struct fn_table *table, const char *by, bool inlines);
void fn_rows__delete(struct fn_rows *rows);
/* The option of perf record that the samples of an event lack, NULL: none. */
const char *fn_rows__lacks(const struct fn_rows *rows, struct evsel *evsel);
bool fn_rows__needs_sample(const struct fn_rows *rows);	/* thread and address do not tell a row */
bool fn_rows__is_nowhere(const struct fn_rows *rows, const struct perf_sample *sample);
u64 fn_rows__thread(struct fn_rows *rows, struct thread *thread);	/* unique, from 1 */
struct fn_row *fn_rows__find(struct fn_rows *rows, struct evsel *evsel, struct perf_sample *sample,
			     struct addr_location *al);
struct fn_row *fn_rows__function(struct fn_rows *rows, struct addr_location *al, u64 ip);
struct fn_row *fn_rows__named(struct fn_rows *rows, enum fn_key kind, const char *name);
int fn_rows__finish(struct fn_rows *rows);	/* before fn_table__settle(): threads have names */
bool fn_sample__is_in_guest(const struct perf_sample *sample);	/* that perf knows nothing of */
bool fn_dso__is_jit(const struct dso *dso);

/*
 * chains.c: call chains of --children
 */

struct fn_chains {
	/* The rows of the sample at hand, the root (FN_ALL, or FN_CUT alone) last. */
	struct fn_row **frames;
	unsigned int nr, allocated;
	unsigned int deepest;		/* chain of an event without a limit of its own */
	/* Of stitched LBRs: the threads whose last chain lacks callers. */
	struct intlist *cut;
};

void fn_chains__exit(struct fn_chains *chains);
const char *fn_chains__lacks(const struct fn_options *options, struct evsel *evsel);
int fn_chains__find(struct fn_session *session, const struct fn_sample *sample);

/*
 * session.c: perf's session, to samples that know their row
 */

struct fn_options {
	const char *name;		/* of the input, for messages */
	const struct fn_source *source;	/* NULL: the best for each column */
	const char *by;
	bool has_by;			/* the user has chosen it, and sums have to be like that */
	const char *time;		/* spans, NULL: all */
	struct perf_cpu_map *cpus;	/* NULL: all */
	bool inlines, stitch_lbr, force;
	u64 span;			/* ns, 0: all is one table */
	/* With spans, or @is_due: takes the table of a span. An error ends the reading. */
	int (*take)(void *data, struct fn_table *table, u64 begin, u64 end);
	bool (*is_due)(void *data);	/* a live recording: whether @take wants the sums so far */
	void *data;
};

/*
 * Reads a recording into a zeroed table, which is settled then. With spans, @take gets the
 * table of each, and @table is the sum; live, @table stays empty. Errors are printed.
 */
int fn_session__read(const char *path, const struct fn_options *options, struct fn_table *table);
/* The name of the first option that leaves out samples, NULL: none. */
const char *fn_options__filter(const struct fn_options *options);

/* input.c: a recording or a sums file. @sums: the file to be written, NULL: none. */
int fn_input__read(const char *path, struct fn_options *options, const char *sums,
		   struct fn_table *table);
void fn_input__note_empty(const char *path, const struct fn_options *options);

/*
 * What the sources share: streams.c reads the counts of groups, session.c finds rows.
 */

/* evsel->priv: what the samples of an event are for. */
struct fn_evsel {
	struct evsel *evsel;
	char *name;			/* canonical */
	/* Of its group, if samples have counts: the event whose samples end its intervals. */
	struct fn_evsel *sampler;
	unsigned int member;		/* of the sampler's, which is the first one */
	unsigned int slot;		/* in the sampler's windows */
	double counted;			/* see fn_streams__count() */
	/* Of a sampler alone: */
	struct fn_set *windows;
	struct fn_evsel **members;
	unsigned int nr_members;
	bool alternates;		/* else each interval is a window */
	u64 limit;			/* shorter intervals are windows */

	struct fn_set *samples;		/* its own samples are observations of an event of it */
	unsigned int event;
	struct fn_paths *paths;		/* of its samples' branch records */
	struct fn_operations *operations;	/* that its samples tell, or parts of them */
	bool has_records;		/* the last one tells the row of a sample */
	double first, second;		/* mean periods of the first samples of recent streams */
	double periods, number;		/* of all samples */
	double times[2];		/* enabled and running; in a group, the sampler has them */
};

/* A member of a group in a stream. */
struct fn_member {
	u64 id;				/* 0: none yet */
	u64 counted, before;		/* up to the last sample of all, and before the recording */
	unsigned int slot;		/* of fn_stream.counts */
	unsigned int nr_samples;	/* of itself so far, up to 2 */
};

/* The counts of a group in a thread, or on a CPU. */
struct fn_stream {
	u64 id;
	u64 thread;			/* 0: of a CPU */
	struct fn_evsel *owner;		/* the sampler, or an event without counts */
	u64 times[2];			/* enabled and running, at the last sample of all */
	struct fn_member *members;	/* of the sampler, or the event itself */
	double *counts;			/* by event of the set, since the last interval */
	unsigned int nr_counts;
	double length;			/* what the sampler has counted since then */
	u64 seen;			/* the last sample of the sampler, among all; 0: none */
	bool is_interrupted;		/* another event has sampled since then */
	bool has_no_late;
	double late;			/* events since the last overflow */
	/* windows.c: where the last sample was, and the burst so far: one observation. */
	u64 last_thread;
	struct fn_row *last_row;	/* NULL: not known */
	bool last_filtered;
	struct fn_row *burst;		/* NULL: none */
	double windows;
	double *sums;			/* of the burst, by event of the set */
};

/* An address in a thread at which samples were taken, and its row. */
struct fn_place {
	struct machine *machine;
	u64 ip;
	u32 pid, tid;
	u64 thread;		/* see fn_rows__thread() */
	struct fn_row *row;
	/* fn_session.nr_changes when it was looked up; 0: another sample there may differ. */
	u32 change;
	u8 cpumode;
	u8 distance;		/* see fn_site__distance() */
	bool is_mapped;
	bool is_filtered;	/* the user does not want to see it */
	bool is_foreign;	/* nor any of its stream */
	bool is_nowhere;	/* in no known function */
};

/* A sample that knows its row. */
struct fn_sample {
	struct evsel *evsel;
	struct fn_evsel *own;
	struct perf_sample *sample;
	struct fn_place place;		/* a copy */
	struct fn_stream *stream;	/* NULL: no counts */
	bool ends_interval;		/* the counts of the stream are those of an interval */
	bool is_broken;			/* in which something was lost or throttled */
	unsigned int order;		/* samples of the event before it in the stream, up to 2 */
	bool is_outside;		/* of the spans of time */
	bool is_of_task;		/* its event is, not that of a CPU */
};

struct fn_streams *fn_streams__new(void);
void fn_streams__delete(struct fn_streams *streams);
/*
 * Sets the stream of a sample, ends_interval, is_broken and order. Returns 0, -ENOMEM, or -EINVAL
 * if the values are of another group.
 */
int fn_streams__read(struct fn_streams *streams, struct evlist *evlist, struct fn_sample *sample);
/* After its sources have taken a sample of the sampler. */
void fn_streams__see(struct fn_streams *streams, struct fn_stream *stream);
/* An event is throttled, or no longer. Inherited ones end with @tid, which is 0 of others. */
int fn_streams__throttle(struct fn_streams *streams, u64 id, u32 tid, bool begins);
void fn_streams__lose(struct fn_streams *streams);
void fn_streams__end_thread(struct fn_streams *streams, u32 tid);
int fn_streams__for_each(struct fn_streams *streams,
			 int (*call)(void *data, struct fn_stream *stream), void *data);
void fn_streams__forget_idle(struct fn_streams *streams);
void fn_streams__restart(struct fn_streams *streams);	/* a new span: nothing was counted */
void fn_streams__count(struct fn_streams *streams);	/* sets fn_evsel.counted */
/* Takes the times of an event in a thread that has ended. */
int fn_streams__read_times(struct fn_streams *streams, struct fn_evsel *own, u64 id, u64 thread,
			   u64 enabled, u64 running);

/* The part of a session that sources need. */
/*
 * Finds the row of an address in the thread of a sample. Sets @row to NULL if nobody wants to see
 * it; leaves it if @must_be_mapped and it is not.
 */
int fn_session__find_row(struct fn_session *session, const struct fn_sample *sample, u64 address,
			 bool must_be_mapped, struct fn_row **row);
/* The same, whoever wants to see it, or an error. @mode: PERF_RECORD_MISC_USER or _KERNEL. */
const struct fn_place *fn_session__place_at(struct fn_session *session,
					    const struct fn_sample *sample, u64 address, u8 mode);
/* The name of a PMU by its number, as the recording has it; NULL: not known. */
const char *fn_env__pmu(const struct perf_env *env, u32 type);
/* The name of the PMU of an event, or of the event; "" if it is none of a PMU. */
const char *fn_evsel__pmu(struct evsel *evsel);

/* What sessions ask of the sources. */
int fn_windows__end_bursts(struct fn_session *session);
void fn_windows__stretch(struct fn_session *session);
/* How often a row is left in an event of the leader, NAN: unknown; and how late samples are. */
double fn_windows__exits(const struct fn_table *table, const struct fn_row *row, double *late);
struct fn_value fn_windows__discarded(const struct fn_column *column, const struct fn_table *table,
				      const struct fn_row *row);
void fn_samples__scale(struct fn_session *session);
/* Returns the newest record of the path of a sample, or NULL. */
const struct branch_entry *fn_sample__last_branch(struct perf_sample *sample);
/* To be freed with its event. */
struct fn_paths *fn_paths__new(struct fn_session *session, const struct evsel *evsel);
void fn_paths__choose(struct fn_paths *paths);	/* shows the sums of one horizon of each */
void fn_paths__restart(struct fn_paths *paths);
void fn_paths__note(const struct fn_paths *paths, const char *name);	/* what is amiss */

/* operations.c */
#define FN_OPERATIONS	"operations"
#define FN_CHOSEN	"chosen-operations"	/* only some were recorded */

/* With fewer samples of an event for each new thread, its values are weak. */
#define FN_FEW_PER_THREAD	5
/* Whether the samples of an event are operations, or parts of them. */
bool fn_operations__are(struct evsel *evsel);
/* Lets the samples of an event be that. */
int fn_operations__add(struct fn_session *session, struct evsel *evsel);
void fn_operations__delete(struct fn_operations *all);
int fn_operations__end(struct fn_operations *all, struct fn_session *session);
void fn_operations__mark(struct fn_operations *all, u64 nr_tasks);
void fn_operations__throttle(struct fn_operations *own);	/* some are missing */
void fn_operations__note(const struct fn_operations *all, const char *name);	/* what is amiss */
/* How many operations an instruction has, of the whole table; NAN: unknown. */
double fn_operations__per_instruction(const struct fn_table *table);
/* The event that counts operations; NULL: none. */
const char *fn_operations__base(const struct fn_table *table);
/*
 * sites.c: the instructions between an address and the entry of its function, or the return of the
 * call that is executed straight before it; FN_FAR: more, or not known.
 */
unsigned int fn_site__distance(const struct addr_location *al, struct machine *machine,
			       const char *arch);

/* A source: a new one is a file with one of these, and an entry in fn_sources[]. */
struct fn_source {
	const char *name;	/* as --source and JSON say it */
	const char *title;	/* "event samples" */
	unsigned int bit;
	bool is_joint;		/* an observation counts all events of its set */
	bool is_even;		/* observations are drawn evenly: shares are sums over totals */
	double error;		/* a part of each rate, however many observations there are */
	int (*sample)(struct fn_session *session, struct fn_sample *sample);
	/* Sets the interval of a rate: exact where numbers are small. */
	void (*interval)(const struct fn_pair *pair, struct fn_value *value);
	/* Why not to rely on the rates y / x of a row (NULL: of all); NULL: no such reason. */
	const char *(*doubt)(const struct fn_row *row, const struct fn_set *set, int y, int x);
};

extern const struct fn_source fn_windows, fn_samples, fn_branches, fn_operations;
extern const struct fn_source *const fn_sources[];	/* the most exact first */
const struct fn_source *fn_source__find(const char *name);	/* NULL: none */

/*
 * columns.c, estimate.c, interval.c: values
 */
enum fn_mark { FN_SURE, FN_ROUGH, FN_WEAK };

/* A value with its 95 % interval. NAN: not defined, or not known. */
struct fn_value {
	double value, low, high;
	double error;		/* standard error */
	double freedom;		/* degrees of freedom, 0: no limit */
	double number;		/* of independent observations behind it; of a share: of all rows */
	double samples;		/* of observations in the row, for the column # */
	double skid;		/* that samples of other rows may have, and its own of others */
	enum fn_mark mark;
	const char *doubt;	/* the reason of FN_WEAK, in a word: "few", "wide", "skid", ... */
};

extern const struct fn_value fn_undefined;

static inline bool fn_value__is_defined(const struct fn_value *value)
{
	return !isnan(value->value);
}

static inline bool fn_value__has_interval(const struct fn_value *value)
{
	return !isnan(value->low);
}

static inline double fn_value__half_width(const struct fn_value *value)
{
	return (value->high - value->low) / 2;
}

/* Adds an independent error to the interval of a value. */
static inline void fn_value__widen(struct fn_value *value, double below, double above)
{
	value->low = value->value - hypot(value->value - value->low, below);
	value->high = value->value + hypot(value->high - value->value, above);
}

/* An event in the observations of a row. */
struct fn_count {
	double total, squares;
	double number;		/* of independent observations */
	double effective;	/* of equal ones with the same information */
	double crowd;		/* what an observation counts that has any, of all rows */
};

/* y per x. Of sets without a common event, x is scaled: @per is of the same exposure as y. */
struct fn_pair {
	struct fn_count y, x;
	double per;
	double scale;
};

/* A column: scale x event / per. A metric of -M has a value() of its own. */
struct fn_column {
	const char *title, *meaning;
	const char *event;	/* NULL: of value() */
	const char *per;	/* FN_TOTAL: a share */
	double scale;		/* FN_PERCENT: of a part of something, which is at most 100 */
	unsigned int digits;
	const char *unit;	/* for JSON: "%", "1/KI", ... ; NULL: none */
	const struct fn_source *source;	/* of its values; NULL for counts */
	const struct fn_source *per_source;	/* of what it is divided by; NULL: the same */
	bool is_count;		/* a number: no interval, no mark */
	bool is_apart;		/* its events have nothing in common: no values */
	/* Of top-down metrics: "slots" or "cycles" on the first level; what it is a part of. */
	const char *divides, *parent;
	struct fn_value (*value)(const struct fn_column *column, const struct fn_table *table,
				 const struct fn_row *row);
	struct fn_metric *metric;	/* of -M; NULL: none */
	struct fn_value *values;	/* by row->index */
};

#define FN_TOTAL	"total"
#define FN_PERCENT	100

static inline bool fn_column__is_share(const struct fn_column *column)
{
	return column->per && !strcmp(column->per, FN_TOTAL);
}

/* The columns of a settled table, and their values. */
struct fn_columns {
	const struct fn_table *table;
	const char *fields, *sort;	/* of the user, or NULL */
	struct fn_column *columns;
	unsigned int nr;
};

/*
 * @fields and @sort: of the user, or NULL. They may name events, to have their numbers. Returns 0,
 * -ENOMEM, -EOVERFLOW (too many events), or -E2BIG (too many values).
 */
int fn_columns__init(struct fn_columns *columns, const struct fn_table *table, const char *fields,
		     const char *sort);
void fn_columns__exit(struct fn_columns *columns);
/* Adds a column with value(), and its values; takes the metric. */
int fn_columns__add(struct fn_columns *columns, const struct fn_column *column);
int fn_columns__find(const struct fn_columns *columns, const char *title);	/* -1: none */
/* A title that no other column has: with a prefix if need be; to be freed. */
char *fn_columns__new_title(const struct fn_columns *columns, const char *prefix,
			    const char *format, const char *name);
/* %CY, %CLK, %TCLK, %I, another share or # */
int fn_columns__default_sort(const struct fn_columns *columns);
static inline struct fn_value *fn_columns__value(const struct fn_columns *columns,
						 const struct fn_row *row, unsigned int column)
{
	return &columns->columns[column].values[row->index];
}

/* Whether a source has values of a column. */
bool fn_column__has_values(const struct fn_table *table, const struct fn_source *source,
			   const struct fn_column *column);
/* Computes the values of the columns from @first on for all rows. */
int fn_columns__set_values(struct fn_columns *columns, unsigned int first);

/*
 * The counts of events in a row (NULL: in all) that compare with each other, from one source: those
 * of sets without a common event are taken relative to one that they share. @covariances is a
 * matrix by event, or NULL. Returns false if one lacks.
 */
bool fn_row__counts(const struct fn_table *table, const struct fn_row *row,
		    const struct fn_source *source, const char *const *events, unsigned int nr,
		    double *counts, double *covariances, double *number);
/* What the recording has counted of an event in a row, an estimate with its error. */
struct fn_value fn_row__events(const struct fn_table *table, const struct fn_row *row,
			       const char *event);
/* Why not to rely on the rate of two events, whatever its interval; NULL: no reason. */
const char *fn_row__doubt(const struct fn_table *table, const struct fn_row *row,
			  const struct fn_source *source, const char *event, const char *per);

void fn_value__drop_infinite(struct fn_value *value);	/* numbers of a crafted file */
double fn_student__tail(double t, double freedom);	/* of both sides */
double fn_student__quantile(double freedom);		/* 95 % */
void fn_value__ratio_interval(const struct fn_pair *pair, struct fn_value *value);
void fn_value__count_interval(const struct fn_pair *pair, struct fn_value *value);
void fn_value__part_interval(struct fn_value *value, double whole, double samples);
void fn_value__share_interval(struct fn_value *value, double whole, double number);
void fn_value__log_interval(struct fn_value *value);
void fn_value__plain_interval(struct fn_value *value);	/* value +- t x error */

/*
 * print.c, json.c, notes.c, ui/browsers/functions.c
 */
struct fn_view {
	const struct fn_table *table;
	const struct fn_columns *columns;
	const int *fields;		/* numbers of columns */
	unsigned int nr_fields;
	const struct fn_row **rows;	/* in the order to print */
	size_t nr_rows;
	bool with_ci;
	const char *time;		/* BEGIN,END in seconds, NULL: all */
	int width;			/* of the screen, 0: none */
	int sort;			/* the column that has sorted the rows, -1: their names */
};

void fn_view__sort(struct fn_view *view, int sort);

#define FN_CELL_SIZE	40

/* A cell as text: ~ before a rough value, ? after a weak one; "-" if it is not defined. */
const char *fn_view__cell(const struct fn_column *column, const struct fn_value *value,
			  char buf[FN_CELL_SIZE]);
const char *fn_number(const struct fn_column *column, double value, bool sign,
		      char buf[FN_CELL_SIZE]);
const char *fn_shortest(double value, char buf[FN_CELL_SIZE]);	/* reads back as the same double */
/* Sets the labels of all rows: with the DSO or address where names clash; @most: width, or 0. */
int fn_table__set_labels(const struct fn_table *table, int most);

/* Text: lines of cells. The first line has titles. */
enum fn_color { FN_PLAIN, FN_GREY, FN_GREEN, FN_RED, FN_BOLD };

struct fn_cell {
	char *text;
	enum fn_color color;
};

struct fn_text {
	struct fn_cell *cells;
	size_t nr, allocated;
	unsigned int nr_columns;
	int *widths;		/* by column, without marks */
	bool *marked;		/* a cell of the column ends with a mark */
	bool has_failed;	/* it lacks cells, without memory */
};

void fn_text__exit(struct fn_text *text);
void __printf(3, 4) fn_text__cell(struct fn_text *text, enum fn_color color, const char *fmt, ...);
void fn_text__number(struct fn_text *text, double number);	/* with all digits */
void fn_text__interval(struct fn_text *text, const struct fn_column *column,
		       const struct fn_value *value, bool sign);
void fn_text__names(struct fn_text *text, const struct fn_row *row);	/* and its DSO */
int fn_text__lay_out(struct fn_text *text);	/* sets widths, after the last cell */
/* Sets the blanks before and after a cell. */
void fn_text__align(const struct fn_text *text, unsigned int column, const struct fn_cell *cell,
		    int *before, int *after);
/* @width: of the screen, or 0. */
int fn_text__print(struct fn_text *text, int width, FILE *fp);
int fn_text__print_csv(const struct fn_text *text, size_t first, const char *separator, FILE *fp);

int fn_view__add_text(const struct fn_view *view, struct fn_text *text);
int fn_view__print_json(const struct fn_view *view, FILE *fp);
/* Whether --percent-limit leaves out a row. */
bool fn_columns__is_small(const struct fn_columns *columns, const struct fn_row *row,
			  double percent);

/*
 * The columns to print, NULL after a message about a wrong name, which @may_lack allows. Without
 * names, all, or the metrics of -M.
 */
int *fn_fields__find(const struct fn_columns *columns, const char *names, bool has_metrics,
		     bool may_lack, unsigned int *nr_fields);
/* Whether a name is that of the rows' key, as 'symbol'. */
bool fn_fields__is_key(const struct fn_columns *columns, const char *name, size_t length);
/* The column of --sort: -1 by name, -EINVAL after a message. */
int fn_sort__find(const struct fn_columns *columns, const char *name, bool may_lack);
int fn_flush(void);		/* checks stdout */

enum fn_side { FN_BEFORE, FN_AFTER, FN_NO_SIDE };

struct fn_input {
	const char *path;
	enum fn_side side;
};

/* The options of report and top, and what they print. */
struct fn_report {
	struct fn_options options;
	struct fn_input *inputs;
	unsigned int nr_inputs;
	enum fn_side side;		/* of the inputs that follow */
	const char *source, *by_name, *cpus, *fields, *metrics, *sort, *separator, *sums;
	char by[80];
	char *fail_on;			/* limits, which are cut apart */
	unsigned int limit;
	double percent_limit, interval;
	bool children, json, with_ci, diff, single_run, stdio, tui, wants_tui;
	/* Of top: seconds from one table to the next, and that it covers, 0: all. */
	double delay, last;
	unsigned int count;		/* of tables, 0: no end */
	struct fn_record *record;
	/*
	 * Records to stdout until there is a signal, in a process of its own, with messages to the
	 * file @said. A command of it must not touch the screen if there is one.
	 */
	int (*call_record)(struct fn_report *report, int said, bool has_screen);

	int (*browse)(struct fn_view *view, const char *notes);	/* NULL: print */
	const char *time;		/* of a table of a part */
	struct fn_text before;		/* the table before, of values with separators */
	unsigned int nr_tables;
	/* Where top prints, NULL: to stdout. */
	FILE *fp;
	int width;			/* 0: there is no screen */
	unsigned int nr_lines;		/* 0: all */
	/* Messages that a screen would cover. */
	FILE *held;
	char *messages;
	size_t messages_size;
};

void fn_report__exit(struct fn_report *report);
int fn_report__init_columns(const struct fn_report *report, const struct fn_table *table,
			    struct fn_columns *columns, bool is_silent);
int fn_report__print(struct fn_report *report, const struct fn_table *table);
/* Prints the table of a span for a struct fn_report, with its times as --time has them. */
int fn_report__print_span(void *data, struct fn_table *table, u64 begin, u64 end);
void fn_report__hold_messages(struct fn_report *report);
const char *fn_report__release_messages(struct fn_report *report);	/* what was held */
int fn_explain(int err);	/* says what is too large, if that is the error */

/*
 * The writer of JSON. Begin with a zeroed structure and its @fp. Members of objects have a @key;
 * for elements of arrays it is NULL. A number that is not finite, and a value without one, is null.
 */
struct fn_json {
	FILE *fp;
	int depth;
	bool has_item;
};

void fn_json__begin(struct fn_json *json, const char *key, char bracket);	/* { or [ */
void fn_json__end(struct fn_json *json, char bracket);
void fn_json__string(struct fn_json *json, const char *key, const char *text);
void fn_json__bool(struct fn_json *json, const char *key, bool value);
void fn_json__number(struct fn_json *json, const char *key, double value);
void fn_json__value(struct fn_json *json, const char *key, const struct fn_value *value);
void fn_json__head(struct fn_json *json, const struct fn_table *table);	/* begins the object */
void fn_json__recorded(struct fn_json *json, const struct fn_table *table);
void fn_json__columns(struct fn_json *json, const struct fn_columns *columns, const int *fields,
		      unsigned int nr);
void fn_json__names(struct fn_json *json, const struct fn_row *row);

/* Notes about a table. @side: "", "before: ", "after: ". */
void fn_notes__print(const char *side, const struct fn_columns *columns,
		     const struct fn_options *options);
int fn_notes__print_all(const struct fn_table *table, const struct fn_options *options);

/* sums-file.c */
#define FN_SUMS_MAGIC	"perf-function-sums "
int fn_table__write_sums(const char *path, struct fn_table *table);
int fn_table__read_sums(const char *path, struct fn_table *table, FILE *fp);

/*
 * metrics.c: -M
 */
int fn_metrics__add(struct fn_columns *columns, const char *names, bool is_silent);
extern char *fn_metrics__cpu;	/* the user's choice; NULL: the recorded one */

/* A metric of perf's tables. */
struct fn_metric *fn_metric__new(const struct pmu_metrics_table *table,
				 const struct pmu_metric *pmu_metric);
void fn_metric__delete(struct fn_metric *metric);
const char *fn_metric__event(const struct fn_metric *metric, unsigned int i); /* NULL: no more */
const char *fn_metric__lacks(const struct fn_metric *metric);	/* why it has no values, or NULL */
double fn_metric__evaluate(const struct fn_metric *metric, const double *counts);

/* Events to record: groups which the counters can hold, each led by cycles. */
struct fn_groups {
	struct strlist **group;
	unsigned int nr;
	const char *modifiers;		/* as in cycles:u */
};

int fn_metrics__add_groups(struct fn_groups *groups, const char *names);
bool fn_groups__can_count(const struct fn_groups *groups, const struct strlist *events);

/*
 * record.c: how to call perf record
 */

/* How to call cmd_record(). */
struct fn_record {
	/* Of the command that records; all but @usage may be NULL. */
	const char *const *usage;
	const struct option *own;	/* take names away from the options of perf record */
	const char *const *without;	/* options of perf record that it refuses */
	/* Arguments to add before and after those of the user. */
	const char *const *defaults, *const *arguments;

	int argc;
	const char **argv;
	struct option *options;		/* those of perf record, and own ones without an effect */
	char *events;
	char count[24];			/* of --period */
	const char *metrics;		/* of -M, NULL: none */
};

int fn_record__init(struct fn_record *record, const struct option *options, int argc,
		    const char **argv);
void fn_record__explain(const struct fn_record *record);
void fn_record__exit(struct fn_record *record);

/* compare.c: --diff. Returns the status: 0, 2 if a change is beyond --fail-on, or negative. */
int fn_compare(struct fn_report *report);

/* ui/browsers/functions.c */
#ifdef HAVE_SLANG_SUPPORT
int fn_view__browse(struct fn_view *view, const char *notes);
#else
static inline int fn_view__browse(struct fn_view *view __maybe_unused,
				  const char *notes __maybe_unused)
{
	return 0;
}
#endif

/*
 * top.c: tables of what runs now
 */
#define FN_TOP_LEAST_DELAY	0.1
#define FN_TOP_MOST_SECONDS	1e6
#define FN_TOP_MOST_ROWS	1e6

/* Returns the exit status of the command that perf record has run or its own, or -1. */
int fn_top__run(struct fn_report *report, const int control[2]);

#endif /* __PERF_FUNCTIONS_H */
