// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: intervals of a group that begin and end in one function and thread.
 *
 * - With alternate periods an interval is a window if it is nearer to the longest window than to
 *   the shortest long interval. Without, each one is a window.
 * - Nothing may be throttled or lost in it, and no other event of the group may have sampled. A
 *   sample at address 0 is in no known function.
 * - Windows of a burst in one function are adjacent and so not independent: they are one
 *   observation.
 * - All windows and all long intervals, in whatever function, tell what the interrupt adds that
 *   begins each.
 */
#include <errno.h>
#include <string.h>
#include <linux/kernel.h>

#include "../evlist.h"
#include "../evsel.h"
#include "../sample.h"
#include "../session.h"
#include "session.h"

/* The least part of a function's windows that must also end in it. */
#define STAYS		0.9
/* The first and the last window of a program may have one end elsewhere. */
#define FEW_LEAVE	3
/* Rates of windows that differ more from those of long intervals are those of interrupts, too. */
#define MOST_ADDED	0.1

/* Adds the burst to its row. */
static int flush(void *data, struct fn_stream *stream)
{
	struct fn_table *table = data;
	int err = stream->burst ? fn_set__observe(table, stream->owner->windows, stream->burst,
						  stream->sums, stream->windows) : 0;

	stream->burst = NULL;
	return err;
}

int fn_windows__end_bursts(struct fn_session *session)
{
	return fn_streams__for_each(session->streams, flush, session->table);
}

/* Begins a burst in a row, or goes on with it. */
static int add_window(struct fn_table *table, struct fn_stream *stream, struct fn_row *row)
{
	double *counts = stream->counts;
	int err;

	if (row == stream->burst && stream->owner->alternates) {
		for (unsigned int i = 0; i < stream->nr_counts; i++)
			stream->sums[i] += counts[i];
		stream->windows++;
		return 0;
	}
	err = flush(table, stream);
	stream->counts = stream->sums;
	stream->sums = counts;
	stream->windows = 1;
	stream->burst = row;
	return err;
}

/* Counts where a window begins and ends; NULL: nobody wants to see it. */
static int add_ends(struct fn_table *table, const struct fn_set *set, struct fn_row *begin,
		    struct fn_row *end)
{
	struct fn_sums *first = begin ? fn_row__findnew_sums(table, begin, set) : NULL;
	struct fn_sums *last = end == begin ? first :
			       end ? fn_row__findnew_sums(table, end, set) : NULL;

	if ((begin && !first) || (end && !last))
		return -ENOMEM;
	if (first)
		first->begun++;
	if (last)
		last->ended++;
	return 0;
}

static int add_to_row(struct fn_table *table, struct fn_stream *stream, struct fn_sample *sample,
		      bool is_same)
{
	const struct fn_place *place = &sample->place;
	struct fn_row *begin = is_same ? stream->last_row : NULL;
	const bool is_matched = begin == place->row && !place->is_nowhere && !place->is_filtered;
	int err = is_matched ? add_window(table, stream, place->row) : flush(table, stream);

	return err ?: add_ends(table, stream->owner->windows, stream->last_filtered ? NULL : begin,
			       place->is_filtered ? NULL : place->row);
}

/*
 * A counter continues after its overflow until the handler reads it. The next interval is shorter
 * by these events, unless nothing would remain of it.
 */
static void note_late(struct fn_stream *stream, const struct fn_sample *sample, bool is_window)
{
	const double period = sample->sample->period;
	struct fn_set *set = stream->owner->windows;

	/* The periods of lost samples are unknown. */
	stream->has_no_late |= !period || (stream->seen && sample->is_broken) ||
			       !(sample->evsel->core.attr.sample_type & PERF_SAMPLE_PERIOD);
	if (stream->has_no_late)
		return;
	if (stream->late >= period)
		stream->late = 0;
	stream->late += stream->length - period;
	if (!is_window || sample->is_outside || stream->late < 0)
		return;
	set->late += stream->late;
	set->nr_late++;
}

/* Of long intervals, nobody asks how much they vary. */
static void add_to_all(struct fn_stream *stream, bool is_window)
{
	struct fn_set *set = stream->owner->windows;

	if (is_window) {
		fn_sums__observe(set, set->windows, stream->counts, 1);
		return;
	}
	set->longs->number++;
	set->longs->independent++;
	for (unsigned int i = 0; i < stream->nr_counts; i++)
		set->longs->values[i] += stream->counts[i];
}

static int take_sample(struct fn_session *session, struct fn_sample *sample)
{
	struct fn_table *table = session->table;
	struct fn_stream *stream = sample->stream;
	const struct fn_evsel *sampler = stream->owner;
	/* The interval of the first sample is unknown. */
	const bool is_window = stream->seen &&
			       (!sampler->alternates || stream->length < sampler->limit);
	const bool counts_here = is_window && !stream->is_interrupted && !sample->is_outside;
	const bool is_same = !sample->is_broken && stream->last_thread == sample->place.thread;
	int err;

	if (sampler->alternates)
		note_late(stream, sample, is_window);
	/* An interrupt adds the same to an interval, whichever function is at its end. */
	if (!sample->is_broken && !sample->is_outside && !sample->place.is_foreign &&
	    (!is_window || counts_here))
		add_to_all(stream, is_window);
	err = counts_here ? add_to_row(table, stream, sample, is_same) : flush(table, stream);
	stream->last_row = sample->place.is_nowhere ? NULL : sample->place.row;
	stream->last_filtered = sample->place.is_filtered;
	stream->last_thread = sample->place.thread;
	return err;
}

/*
 * Scales the sums of groups that took turns on the counters to the time in which they should count.
 * Where windows are only a part of what was counted, they are as good without it.
 */
void fn_windows__stretch(struct fn_session *session)
{
	struct fn_table *table = session->table;
	struct evsel *evsel;

	fn_table__for_each_set(table, set) {
		double times[2] = {};

		evlist__for_each_entry(session->session->evlist, evsel) {
			const struct fn_evsel *own = evsel->priv;

			if (own && own->windows == set) {
				times[0] += own->times[0];
				times[1] += own->times[1];
			}
		}
		if (!set->is_complete || !(times[1] > 0) || times[0] <= times[1])
			continue;
		for (unsigned int j = 0; j < set->nr_events; j++)
			set->events[j].is_stretched |= times[0] >= FN_LEAST_TURNS * times[1];
		fn_table__for_each_row(table, row) {
			struct fn_sums *sums = fn_row__sums(row, set);

			for (size_t k = 0; sums && k < fn_set__nr_values(set); k++)
				sums->values[k] *= k < set->nr_events ? times[0] / times[1] :
						   pow(times[0] / times[1], 2);
		}
	}
}

/* Returns true if windows have no length of their own, or more than twice the longest one. */
static bool are_long(const struct fn_set *set)
{
	const struct fn_sums *windows = set->windows;
	u64 longest = 0;

	for (unsigned int i = 0; i < set->nr_groups; i++)
		longest = max(longest, set->groups[i].window);
	return !longest || windows->values[0] > 2.0 * longest * windows->number;
}

/*
 * Returns how often a function is left in a window. A window begins and ends in a function by
 * chance, with the function's part p of the samples. If calls begin and end at random times, a part
 * p + (1 - p) k of the windows has both ends in the function. There k is the probability that
 * nothing changed between the ends, and the function is left -(1 - p) log k times in a window.
 */
static double exits_in_window(const struct fn_set *set, const struct fn_sums *sums)
{
	double p = sums->ended / set->total->ended, k;

	if (sums->begun - sums->number < FEW_LEAVE || p >= 1)
		return 0;
	k = fmax(sums->number / sums->begun - p, 0.5 / sums->begun) / (1 - p);
	return (p - 1) * log(fmin(k, 1));
}

double fn_windows__exits(const struct fn_table *table, const struct fn_row *row, double *late)
{
	fn_table__for_each_set(table, set) {
		const struct fn_sums *sums = fn_row__sums(row, set);

		if (set->source != &fn_windows || !set->nr_late || !set->windows->number)
			continue;
		*late = set->late / set->nr_late;
		return sums ? exits_in_window(set, sums) * set->windows->number /
			      set->windows->values[0] : 0;
	}
	return NAN;
}

/* The value of the column DIS: windows that end in a row, and did not begin in it. */
struct fn_value fn_windows__discarded(const struct fn_column *column, const struct fn_table *table,
				      const struct fn_row *row)
{
	struct fn_value value = fn_undefined;
	double ended = 0, matched = 0;

	fn_table__for_each_set(table, set) {
		const struct fn_sums *sums = fn_row__sums(row, set);

		if (set->source != &fn_windows || set->is_hidden || !sums)
			continue;
		ended += sums->ended;
		matched += sums->number;
	}
	if (ended)
		value.value = column->scale * (ended - matched) / ended;
	return value;
}

/* Returns true if rates of all windows differ from those of the long intervals. */
static bool are_disturbed(const struct fn_set *set, int y, int x)
{
	const struct fn_sums *all = set->windows, *longs = set->longs;
	const double n = all->number, r = all->values[y] / all->values[x];
	const double expected = longs->values[y] / longs->values[x];
	double squares;

	/* What comes in bursts, such as page faults at the start, may be in no window. */
	if (n < 2 || !(expected > 0) || !isfinite(r) || !all->values[y])
		return false;
	squares = fn_sums__product(set, all, y, y) - 2 * r * fn_sums__product(set, all, y, x) +
		  r * r * fn_sums__product(set, all, x, x);
	/* Of a rare event, the windows may have few by chance. */
	squares = fmax(squares * n / (n - 1), expected * all->values[x]);
	return fabs(r - expected) > fmax(MOST_ADDED * expected, 3 * sqrt(squares) / all->values[x]);
}

static const char *doubt(const struct fn_row *row, const struct fn_set *set, int y, int x)
{
	const struct fn_sums *sums = fn_row__sums(row, set);

	if (!sums)
		return NULL;
	if (sums->number < STAYS * sums->begun)
		return "leaves";
	if (row && are_long(set) && exits_in_window(set, sums) > -log(STAYS))
		return "long";
	return are_disturbed(set, y, x) ? "interrupt" : NULL;
}

const struct fn_source fn_windows = {
	.name		= "windows",
	.title		= "windows",
	.bit		= 1,
	.is_joint	= true,
	.sample		= take_sample,
	.interval	= fn_value__ratio_interval,
	.doubt		= doubt,
};
