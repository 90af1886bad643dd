// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzes perf's parser of events with libFuzzer, as perf record uses it.
 *
 * The first byte of an input chooses the options of perf record, the rest are the events.
 * parserfuzz.py builds this with clang and perf's own objects, and renames the two functions for
 * libFuzzer. It also makes the sysfs and the tracefs that the parser reads.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util/debug.h"
#include "util/evlist.h"
#include "util/evsel.h"
#include "util/parse-events.h"
#include "util/perf_api_probe.h"
#include "util/record.h"

#define PERIOD 1000
#define FREQUENCY 99

static FILE *sink;

/* These functions replace perf's own: no event is opened here. */
bool perf_can_comm_exec(void)
{
	return true;
}

bool perf_can_sample_identifier(void)
{
	return true;
}

static int print(FILE *file, const char *name, const char *value, void *priv)
{
	(void)priv;
	return fprintf(file, "%s%s", name, value);
}

static void fail(const char *what)
{
	dprintf(STDERR_FILENO, "fuzz_parse_events: %s\n", what);
	abort();
}

/* The parser must refuse attrs that perf_event_open(2) would refuse. */
static void check(const struct perf_event_attr *attr)
{
	if (attr->alternative_sample_period > LLONG_MAX)
		fail("alternate period is too long");
	if (attr->jitter_alternate_period > 30)
		fail("jitter is too wide");
	if (attr->alternative_sample_count > 255)
		fail("burst is too long");
	if ((attr->jitter_alternate_period || attr->alternative_sample_count) &&
	    !attr->alternative_sample_period)
		fail("jitter or burst without an alternate period");
	if (!attr->alternative_sample_period)
		return;
	if (!attr->sample_period)
		fail("alternate period without a period");
	if (!(attr->sample_type & PERF_SAMPLE_PERIOD))
		fail("alternate period without the samples' periods");
}

static void configure(struct evlist *evlist, int options)
{
	struct record_opts opts = {
		.freq = 4000,
		.user_freq = options & 1 ? FREQUENCY : UINT_MAX,
		.user_interval = options & 2 ? PERIOD : ULLONG_MAX,
		.no_inherit = options & 4,
	};
	struct evsel *evsel;

	if (opts.user_interval != ULLONG_MAX) {
		opts.default_interval = opts.user_interval;
		opts.freq = 0;
	} else {
		opts.default_interval = opts.freq;
	}
	evlist__config(evlist, &opts, /*callchain=*/NULL);
	if (evlist__check_alt_period(evlist, &opts))
		return;
	evlist__for_each_entry(evlist, evsel)
		check(&evsel->core.attr);
	evlist__for_each_entry(evlist, evsel) {
		fputs(evsel__name(evsel), sink);
		perf_event_attr__fprintf(sink, &evsel->core.attr, print, NULL);
	}
}

int fuzz_initialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	verbose = -1;
	sink = fopen("/dev/null", "w");
	if (!sink)
		return -1;
	/* Discard perf's messages about most inputs; the sanitizers use the descriptor. */
	stderr = sink;
	return 0;
}

int fuzz_one_input(const unsigned char *data, size_t size)
{
	struct parse_events_error error;
	struct evlist *evlist;
	char *events;

	if (!size)
		return 0;
	events = strndup((const char *)data + 1, size - 1);
	evlist = evlist__new();
	if (!events || !evlist)
		abort();

	parse_events_error__init(&error);
	if (__parse_events(evlist, events, /*pmu_filter=*/NULL, &error, /*fake_pmu=*/false,
			   /*warn_if_reordered=*/true, /*fake_tp=*/true))
		parse_events_error__print(&error, events);
	else
		configure(evlist, data[0]);
	parse_events_error__exit(&error);

	evlist__delete(evlist);
	free(events);
	return 0;
}
