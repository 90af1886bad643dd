// SPDX-License-Identifier: GPL-2.0
/*
 * Event samples: a sample stands for its period of its event, in the function of its address, or of
 * its last branch record. With call chains it counts for each function of its chain.
 */
#include <errno.h>
#include <string.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>

#include "../branch.h"
#include "../event.h"
#include "../evlist.h"
#include "../evsel.h"
#include "../sample.h"
#include "../session.h"
#include "session.h"

/* With more, most of what a short process has counted is not sampled. */
#define MOST_SCALE	2

/*
 * Finds the row in which the event of a sample has happened: behind the last branch before the
 * overflow, or at this branch. Leaves it at the address of the sample if the last record is not
 * known.
 */
static int find_origin(struct fn_session *session, struct fn_sample *sample, struct fn_row **row)
{
	const struct branch_entry *last = fn_sample__last_branch(sample->sample);
	const struct perf_event_attr *attr = &sample->evsel->core.attr;
	const struct fn_evsel *own = sample->own;
	u64 address;

	if (!last || sample->sample->misc & PERF_RECORD_MISC_EXACT_IP)
		return 0;
	address = fn_event__is_branch(own->name) &&
		  (!strstr(own->name, "mis") || last->flags.mispred) ? last->from : last->to;
	if (!address || (fn_is_in_kernel(sample->place.machine, address) ? attr->exclude_kernel :
									   attr->exclude_user))
		return 0;
	return fn_session__find_row(session, sample, address, /*must_be_mapped=*/true, row);
}

/* Moves the mean of recent periods, 0 before the first. */
static void move_mean(double *mean, double period)
{
	*mean += *mean ? (period - *mean) / 16 : period;
}

/* Returns how many events a sample stands for. */
static double weigh(const struct fn_sample *sample)
{
	const struct perf_event_attr *attr = &sample->evsel->core.attr;
	const u64 window = attr->alternative_sample_period;
	struct fn_evsel *own = sample->own;
	double period = sample->sample->period;

	/* Without a period in the sample, only the counts tell. */
	if ((window || attr->freq) && !(attr->sample_type & PERF_SAMPLE_PERIOD) &&
	    sample->ends_interval && own->windows)
		period = sample->stream->length;
	/* Jitter draws the first interval of each thread: its sample stands for a whole period. */
	if (!attr->inherit || !attr->jitter_alternate_period || sample->order > 1)
		return period;
	if (sample->order) {
		if (!window)
			move_mean(&own->second, period);
		return period;
	}
	if (!attr->freq)
		return attr->sample_period +
		       (double)window * max(attr->alternative_sample_count, 1U);
	/* Of a frequency, only the kernel knows the period that it has drawn the first one from. */
	move_mean(&own->first, period);
	return fmax(own->second ?: 2 * own->first, 1);
}

static int observe(struct fn_table *table, const struct fn_evsel *own, struct fn_row *row,
		   double weight, unsigned int distance)
{
	const struct fn_set *set = own->samples;
	struct fn_sums *sums = fn_row__findnew_sums(table, row, set);
	double *value;

	if (!sums)
		return -ENOMEM;
	sums->number++;
	sums->independent++;
	value = &sums->values[own->event];
	value[0] += weight;
	value[set->nr_events] += weight * weight;
	value[2 * set->nr_events]++;
	if (distance < FN_FAR)
		value[(3 + DIV_ROUND_UP(distance, 4)) * set->nr_events] += weight;
	return 0;
}

static int take_sample(struct fn_session *session, struct fn_sample *sample)
{
	const struct fn_chains *chains = session->has_chains ? &session->chains : NULL;
	struct fn_table *table = session->table;
	struct fn_evsel *own = sample->own;
	struct fn_row *origin = sample->place.row;
	const double weight = weigh(sample);
	const bool is_exact = own->samples->events[own->event].is_precise ||
			      sample->sample->misc & PERF_RECORD_MISC_EXACT_IP;
	int err = own->has_records ? find_origin(session, sample, &origin) : 0;

	if (err || sample->is_outside)
		return err;
	own->periods += weight;
	own->number++;
	if ((origin == sample->place.row && sample->place.is_filtered) || !origin)
		return 0;
	/* Each function of a call chain has an observation; a recursion counts once. */
	table->stamp++;
	for (unsigned int i = 0; !err && i < (chains ? chains->nr : 1); i++) {
		struct fn_row *row = chains ? chains->frames[i] : origin;

		if (row->stamp == table->stamp)
			continue;
		row->stamp = table->stamp;
		err = observe(table, own, row, weight, is_exact ? FN_FAR : sample->place.distance);
	}
	return err;
}

/* Returns what an event has counted, as a multiple of its sum of periods; 0: not known. */
static double scale_of(const struct fn_evsel *own)
{
	return own->counted > 0 && own->periods > 0 ? own->counted / own->periods : 0;
}

/* Returns the part of the time in which an event that samples itself has counted. */
static double stretch_of(const struct fn_evsel *own)
{
	const double *times = (own->sampler ?: own)->times;

	return times[1] > 0 && times[0] > times[1] ? times[0] / times[1] : 1;
}

/* Multiplies the sums of an event. */
static void multiply(struct fn_table *table, const struct fn_set *set, unsigned int event,
		     double factor)
{
	set->windows->values[event] *= factor;
	for (size_t i = 0; factor != 1 && i < table->nr_rows; i++) {
		struct fn_sums *sums = fn_row__sums(table->rows[i], set);
		const unsigned int nr = set->nr_events;

		if (!sums)
			continue;
		sums->values[event] *= factor;
		sums->values[nr + event] *= factor * factor;
		for (unsigned int bin = 0; bin < FN_NR_BINS; bin++)
			sums->values[(3 + bin) * nr + event] *= factor;
	}
}

/* Returns the number of the PMU that counts an event; 0: not named. */
static u32 pmu_of(const struct perf_event_attr *attr)
{
	return fn_event__core(attr) ?: attr->type >= PERF_TYPE_MAX ? attr->type : 0;
}

/* Returns true if events of one name count the same: modes of the CPU, and the kind of core. */
static bool are_same(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	const u32 one = pmu_of(a), other = pmu_of(b);

	return a->exclude_user == b->exclude_user && a->exclude_kernel == b->exclude_kernel &&
	       a->exclude_hv == b->exclude_hv && a->exclude_guest == b->exclude_guest &&
	       a->exclude_host == b->exclude_host && (one == other || !one || !other);
}

/* The set that counts an event: that of its group, where all that sample share @even. */
static const struct fn_set *counting_set(const struct evsel *evsel, const char *name,
					 const struct fn_set *even)
{
	const struct fn_evsel *own = evsel->priv;

	if (!own || !own->samples || strcmp(own->name, name) || (even && own->samples != even))
		return NULL;
	return even && own->sampler ? own->sampler->windows : own->samples;
}

/* Returns how many sets have counted each event: of user space, say, and as many of the kernel. */
static double nr_copies(const struct fn_session *session, const char *name,
			const struct fn_set *even)
{
	/* Each group, or option -e, has counted all of it. */
	const bool all_count = even && !fn_session__has_cgroups(session);
	struct evlist *evlist = session->session->evlist;
	unsigned int nr = 0, nr_kinds = 0;
	struct evsel *a, *b;

	evlist__for_each_entry(evlist, a) {
		const struct fn_set *set = counting_set(a, name, even), *other;
		bool is_new = set, is_new_kind = set;

		evlist__for_each_entry(evlist, b) {
			if (a == b || !is_new)
				break;
			other = counting_set(b, name, even);
			if (!other || !are_same(&a->core.attr, &b->core.attr))
				continue;
			is_new_kind = false;
			is_new = other != set || all_count;
		}
		nr += is_new;
		nr_kinds += is_new_kind;
	}
	return nr_kinds ? (double)nr / nr_kinds : 1;
}

/* Returns true if an event has few samples for the number of new threads. */
static bool is_scarce(const struct fn_evsel *own, u64 nr_tasks)
{
	const struct perf_event_attr *attr = &own->evsel->core.attr;
	/* A frequency begins with a period that only the kernel knows. */
	const bool is_random = attr->jitter_alternate_period && !attr->freq;

	return attr->inherit && !is_random && (attr->freq || attr->sample_period > 1) &&
	       own->number < FN_FEW_PER_THREAD * nr_tasks;
}

/*
 * Several events of a recording may be the same one: they add up, as those of user space and the
 * kernel, or of cgroups. But each of several groups with other events has counted all of it.
 */
static void scale_event(struct fn_session *session, u64 nr_tasks, struct fn_set *set,
			unsigned int place)
{
	struct fn_event *event = &set->events[place];
	/* Of all samples; what they stand for, and what is to be added up. */
	double periods = 0, once = 0, counted = 0, factor;
	bool is_known = false;
	struct evsel *evsel;

	evlist__for_each_entry(session->session->evlist, evsel) {
		const struct fn_evsel *own = evsel->priv;
		double scale, stretch;

		if (!own || own->samples != set || own->event != place)
			continue;
		scale = scale_of(own);
		stretch = stretch_of(own);
		periods += own->periods;
		once += own->periods * stretch;
		counted += (scale ?: 1) * (own->periods * stretch);
		is_known |= scale > 0;
		event->is_scarce |= is_scarce(own, nr_tasks);
		event->is_stretched |= stretch >= FN_LEAST_TURNS;
	}
	/* Also those that a filter has left out. */
	set->windows->values[place] = periods;
	event->copies = nr_copies(session, event->name, NULL);
	factor = counted / periods / nr_copies(session, event->name, set);
	if (isfinite(factor) && factor > 0)
		multiply(session->table, set, place, factor);
	factor = counted / once;
	if (!is_known || !isfinite(factor))
		return;
	event->scale = factor;
	event->is_scarce |= nr_tasks && factor > MOST_SCALE;
}

/*
 * Scales the sums of events that sample themselves to what the events have counted, as far as the
 * recording tells, and to the time in which they were to count. Marks the events whose samples miss
 * most of that, and those that have few samples in each new thread: threads end before the next
 * one, and where jitter does not draw the first interval, all processes of a program are sampled at
 * the same places. Of a live recording, idle streams are forgotten, so their counts are not known.
 */
void fn_samples__scale(struct fn_session *session)
{
	const bool is_live = session->options->is_due;

	if (!is_live)
		fn_streams__count(session->streams);
	fn_table__for_each_set(session->table, set) {
		for (unsigned int j = 0; set->source == &fn_samples && j < set->nr_events; j++)
			scale_event(session, is_live ? 0 : session->nr_tasks, set, j);
	}
}

const struct fn_source fn_samples = {
	.name		= "samples",
	.title		= "event samples",
	.bit		= 2,
	.is_even	= true,
	.sample		= take_sample,
	.interval	= fn_value__count_interval,
};
