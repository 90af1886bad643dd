// SPDX-License-Identifier: GPL-2.0
/*
 * Branch records: the path that a program took before a long period ended, which no interrupt has
 * disturbed. A sample is an observation for each function of its path.
 *
 * - A part of the path leads from the target of one record to the source of the next one, whose
 *   cycles it took. Its instructions follow from the addresses, or from the code between them.
 * - Only the cycles from a guard on up to a horizon count. A fixed number of records would look
 *   farther back where code is slow. The last cycles are those of the code that a sample hits.
 * - The guard begins at the overflow, which came some cycles after the last record: how many is
 *   drawn from the parts that begin where this record leads. Otherwise the path would always begin
 *   before a long part, in step with it.
 * - A horizon suits if the records of nearly all samples reach it: the others are those with many
 *   branches, so they cannot be left out. Sums are made for several horizons, and the table gets
 *   the first one that suits. A long recording needs one only: its first samples choose it.
 * - The last record's target is where the sample hit, before the interrupt was late: shares.
 * - A path has the period of its sample as weight.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>

#include "../branch.h"
#include "../debug.h"
#include "../event.h"
#include "../evsel.h"
#include "../intel-pt-decoder/intel-pt-insn-decoder.h"
#include "../machine.h"
#include "../sample.h"
#include "../session.h"
#include "../thread.h"
#include "session.h"

/* An interrupt does not affect branch records any more after this number of cycles. */
#define LEAST_UNDISTURBED	3000
/* Percentage of the samples that have to reach a horizon. */
#define REACHED		99
/* This number of samples chooses the horizon. */
#define CHOOSE_AFTER	10000
/* No compiler leaves more bytes without a branch; a damaged record does. */
#define LONGEST		16384
#define BLOCKS_BITS	14
/* Cycles of a record that the kernel could not tell, or not in full. */
#define MOST_CYCLES	0xffff
/* The part of a rate by which branch records miss it where there are many, see results/. */
#define PATH_ERROR	0.05

/* The cycles that count, and those between them and the overflow; the last: shares only. */
static const struct {
	unsigned int horizon, guard;
} spans[] = {
	{ 200, 100 }, { 150, 50 }, { 100, 50 }, { 50, 50 }, { 25, 25 }, { 0, 0 },
};

#define NR_SPANS	ARRAY_SIZE(spans)
#define FARTHEST	(200 + 100)

/* A part of a path, and the function in which it begins. */
struct path_part {
	struct fn_row *row;
	u64 cycles, instructions;
	bool begins_again;	/* where the last record leads */
};

/* Code between two addresses of a process. */
struct code_block {
	struct machine *machine;
	u64 begin, end;
	u32 pid;
	u32 change;	/* 0: none */
	int instructions;
};

struct fn_paths {
	struct fn_paths *next;
	struct fn_set *sets[NR_SPANS];
	struct fn_set *ends;
	/* Length of an instruction, 0 if each has its own, as on x86. */
	unsigned int length;
	bool is_x86;
	bool has_cycles;
	u64 deepest;		/* the most records of a sample */
	u64 nr_samples;
	/* Samples with code that cannot be read, and those that have nothing to hide. */
	u64 nr_unread, nr_whole;
	u64 nr_reached[NR_SPANS];
	/* Spans whose sums are made: all, or the chosen one. */
	unsigned int first_span, end_span;
	/* Each has a cycle or more. */
	struct path_part parts[FARTHEST];
	u8 code[LONGEST + INTEL_PT_INSN_BUF_SZ];
	struct code_block blocks[1 << BLOCKS_BITS];
};

struct fn_paths *fn_paths__new(struct fn_session *session, const struct evsel *evsel)
{
	static const struct fn_event events[] = {
		{ .name = "cycles", .is_precise = true, .scale = 1 },
		{ .name = "instructions", .is_precise = true, .scale = 1 },
	};
	const char *arch = perf_env__arch(&session->session->header.env);
	struct fn_table *table = session->table;
	struct fn_paths *paths = zalloc(sizeof(*paths));
	struct fn_group group = fn_evsel__group(evsel);

	if (!paths)
		return NULL;
	paths->is_x86 = arch && !strcmp(arch, "x86");
	paths->length = arch && !strcmp(arch, "arm64") ? 4 : 0;
	paths->ends = fn_table__new_set(table, &fn_branches, &group, events, 1);
	for (size_t i = 0; paths->ends && i < NR_SPANS; i++) {
		group.window = spans[i].horizon;
		group.burst = spans[i].guard;
		paths->sets[i] = fn_table__new_set(table, &fn_branches, &group, events,
						   ARRAY_SIZE(events));
		if (!paths->sets[i])
			break;
		paths->sets[i]->even = paths->ends;
	}
	if (!paths->sets[NR_SPANS - 1]) {
		free(paths);
		return NULL;
	}
	paths->ends->even = paths->ends;
	paths->end_span = NR_SPANS;
	paths->next = session->paths;
	session->paths = paths;
	return paths;
}

/* Returns the number of x86 instructions from one address to that at another one, or -1. */
static int decode(struct fn_paths *paths, const struct fn_sample *sample, u64 begin, u64 end)
{
	const u64 last = end - begin;
	struct thread *thread = machine__findnew_thread(sample->place.machine, sample->sample->pid,
							sample->sample->tid);
	bool is_64_bit = false;
	int size = thread ? thread__memcpy(thread, sample->place.machine, paths->code, begin,
					   last + INTEL_PT_INSN_BUF_SZ, &is_64_bit) : -1;
	struct intel_pt_insn insn;
	int nr = 1;

	thread__put(thread);
	for (u64 at = 0; at < last; at += insn.length, nr++) {
		if (size < 0 || at >= (u64)size ||
		    intel_pt_get_insn(paths->code + at, size - at, is_64_bit, &insn) ||
		    insn.length <= 0 || at + insn.length > last)
			return -1;
	}
	/* The branch itself is not decoded, so it has to be there. */
	return size > 0 && last < (u64)size ? nr : -1;
}

/* Returns the number of instructions from one address to the branch at another one, or -1. */
static int count_instructions(struct fn_paths *paths, const struct fn_sample *sample, u32 change,
			      u64 begin, u64 end)
{
	const u32 pid = sample->sample->pid;
	struct code_block *block;

	if (end < begin || end - begin > LONGEST)
		return -1;
	if (paths->length)
		return (end - begin) / paths->length + 1;
	if (!paths->is_x86)
		return -1;
	block = &paths->blocks[hash_64(begin ^ end << 20 ^ pid, BLOCKS_BITS)];
	if (block->change != change || block->begin != begin || block->end != end ||
	    block->pid != pid || block->machine != sample->place.machine)
		*block = (struct code_block){
			.machine = sample->place.machine, .begin = begin, .end = end, .pid = pid,
			.change = change, .instructions = decode(paths, sample, begin, end),
		};
	return block->instructions;
}

/*
 * Returns how many cycles the last record was before the overflow. The sample has hit a part that
 * begins where this record leads, a long one more often than a short one.
 */
static u64 since_last(const struct fn_paths *paths, unsigned int nr)
{
	u64 all = 0, at;

	for (unsigned int i = 0; i < nr; i++)
		all += paths->parts[i].begins_again ? paths->parts[i].cycles : 0;
	/* The golden ratio spreads the samples evenly. */
	at = all * (u16)(paths->nr_samples * 40503) >> 16;
	for (unsigned int i = 0; i < nr; i++) {
		if (!paths->parts[i].begins_again)
			continue;
		if (at < paths->parts[i].cycles)
			return at;
		at -= paths->parts[i].cycles;
	}
	return 0;
}

/* Records of AMD's CPUs include branches of wrong guesses, which led nowhere. */
const struct branch_entry *fn_sample__last_branch(struct perf_sample *sample)
{
	const struct branch_entry *entries = perf_sample__branch_entries(sample);

	/* The functions of a guest are not those at these addresses here. */
	if (fn_sample__is_in_guest(sample))
		return NULL;
	for (u64 i = 0; sample->branch_stack && i < sample->branch_stack->nr; i++) {
		if (entries[i].flags.spec != PERF_BR_SPEC_WRONG_PATH)
			return &entries[i];
	}
	return NULL;
}

/* Adds an observation with a weight to a row. The number of equal weights follows from the sums. */
static int observe(struct fn_table *table, struct fn_set *set, const struct path_part *sum,
		   double weight)
{
	const double counts[] = { sum->cycles * weight, sum->instructions * weight };
	struct fn_sums *sums = fn_row__findnew_sums(table, sum->row, set);

	if (!sums)
		return -ENOMEM;
	fn_sums__observe(set, sums, counts, 1);
	sums->begun += weight;
	sums->ended += weight * weight;
	return 0;
}

/*
 * Adds the parts within a span to the sums of their functions. Of a part that is cut, the rounded
 * counts of both pieces add up to its own.
 */
static int add_span(struct fn_paths *paths, struct fn_table *table, unsigned int span,
		    unsigned int nr, u64 since, double weight)
{
	const u64 first = spans[span].guard - min_t(u64, spans[span].guard, since);
	const u64 end = first + spans[span].horizon;
	struct path_part sums[FARTHEST];
	unsigned int nr_sums = 0;
	int err = 0;

	for (u64 i = 0, at = 0; i < nr && at < end; at += paths->parts[i++].cycles) {
		const struct path_part *part = &paths->parts[i];
		const u64 cycles = part->cycles, half = cycles / 2;
		/* From the oldest instruction on. */
		const u64 from = at + cycles - min(at + cycles, end);
		const u64 to = at + cycles - max(at, first);
		unsigned int own = 0;

		if (at + cycles <= first || !part->row)
			continue;
		while (own < nr_sums && sums[own].row != part->row)
			own++;
		if (own == nr_sums)
			sums[nr_sums++] = (struct path_part){ .row = part->row };
		sums[own].cycles += to - from;
		sums[own].instructions += (part->instructions * to + half) / cycles -
					  (part->instructions * from + half) / cycles;
	}
	for (unsigned int i = 0; !err && i < nr_sums; i++)
		err = observe(table, paths->sets[span], &sums[i], weight);
	return err;
}

/* Returns the first span that suits. */
static unsigned int find_span(const struct fn_paths *paths)
{
	unsigned int i = paths->first_span;

	while (i < paths->end_span - 1 &&
	       (!paths->nr_whole || paths->nr_reached[i] * 100 < paths->nr_whole * REACHED))
		i++;
	return i;
}

/*
 * Returns true if a record is the return from the kernel, where the event does not count. Its
 * cycles are those of the kernel. BRBE has no address there.
 */
static bool is_return(const struct fn_sample *sample, const struct branch_entry *entry)
{
	return sample->evsel->core.attr.exclude_kernel &&
	       (!entry->from || fn_is_in_kernel(sample->place.machine, entry->from));
}

/*
 * Makes parts of the records of a sample, the last ones first. Returns the cycles that they reach
 * back, or a negative error. Sets @is_whole to false if records break off.
 */
static s64 find_parts(struct fn_paths *paths, struct fn_session *session, struct fn_sample *sample,
		      unsigned int *nr_parts, bool *is_whole)
{
	const struct branch_entry *entry = perf_sample__branch_entries(sample->sample);
	const u64 nr = sample->sample->branch_stack->nr, last = entry->to;
	s64 reach = 0;
	u64 i = 1;
	int err;

	/* Skylake may record the last branch twice. A branch forwards cannot follow itself. */
	if (nr > 1 && entry->from < last && entry[1].from == entry->from && entry[1].to == last) {
		entry++;
		i++;
	}
	for (; i < nr && reach < FARTHEST; i++, entry++) {
		struct path_part *part = &paths->parts[*nr_parts];
		const u64 cycles = entry->flags.cycles;
		struct fn_row *row = NULL;
		int instructions;

		paths->has_cycles |= cycles;
		if (is_return(sample, entry)) {
			*part = (struct path_part){ .cycles = cycles ?: 1 };
			reach += part->cycles;
			++*nr_parts;
			continue;
		}
		/* There was an interrupt, or more than the counter holds. */
		if (!cycles || cycles == MOST_CYCLES) {
			*is_whole = false;
			break;
		}
		/* This also loads the symbols, without which no code is read. */
		err = fn_session__find_row(session, sample, entry[1].to, /*must_be_mapped=*/false,
					   &row);
		if (err)
			return err;
		instructions = count_instructions(paths, sample, session->nr_changes, entry[1].to,
						  entry->from);
		if (instructions < 0) {
			paths->nr_unread++;
			*is_whole = false;
			break;
		}
		*part = (struct path_part){
			.row = row, .cycles = cycles, .instructions = instructions,
			.begins_again = entry[1].to == last,
		};
		reach += cycles;
		++*nr_parts;
	}
	return reach;
}

/* Takes the branch records of a sample. Soon after another interrupt they are disturbed. */
static int take_sample(struct fn_session *session, struct fn_sample *sample)
{
	const struct branch_stack *stack = sample->sample->branch_stack;
	const struct perf_event_attr *attr = &sample->evsel->core.attr;
	/* Jitter changes a fixed period by chance, whatever runs. */
	const double weight = attr->freq ? sample->sample->period : attr->sample_period;
	struct fn_table *table = session->table;
	struct fn_paths *paths = sample->own->paths;
	const struct branch_entry *last = fn_sample__last_branch(sample->sample);
	const u64 nr = stack ? stack->nr : 0;
	double elapsed = sample->sample->period;
	struct path_part end = { .cycles = 1 };
	unsigned int nr_parts = 0;
	bool is_whole;
	s64 reach;
	u64 since;
	int err;

	if (sample->own->sampler)
		elapsed = sample->ends_interval ? sample->stream->counts[sample->own->slot] : 0;
	if (elapsed < LEAST_UNDISTURBED || sample->is_outside)
		return 0;
	/* It still has a part of the cycles, where the interrupt came. */
	if (!last) {
		end.row = sample->place.is_filtered || sample->place.is_nowhere ?
			  NULL : sample->place.row;
		return end.row ? observe(table, paths->ends, &end, weight) : 0;
	}
	paths->nr_samples++;
	is_whole = nr >= paths->deepest;
	paths->deepest = max(paths->deepest, nr);
	err = fn_session__find_row(session, sample, last->to, /*must_be_mapped=*/false, &end.row);
	if (!err && end.row)
		err = observe(table, paths->ends, &end, weight);
	reach = err ?: find_parts(paths, session, sample, &nr_parts, &is_whole);
	if (reach < 0)
		return reach;
	is_whole |= reach >= FARTHEST;
	paths->nr_whole += is_whole;
	since = since_last(paths, nr_parts);
	for (unsigned int i = paths->first_span; !err && i < paths->end_span; i++) {
		if (reach < spans[i].guard + spans[i].horizon)
			continue;
		paths->nr_reached[i] += is_whole;
		err = add_span(paths, table, i, nr_parts, since, weight);
	}
	if (paths->nr_samples == CHOOSE_AFTER) {
		paths->first_span = find_span(paths);
		paths->end_span = paths->first_span + 1;
	}
	return err;
}

void fn_paths__choose(struct fn_paths *paths)
{
	for (; paths; paths = paths->next) {
		const unsigned int span = find_span(paths);

		for (unsigned int i = 0; i < NR_SPANS; i++)
			paths->sets[i]->is_dropped = !paths->nr_samples || i != span;
		paths->ends->is_dropped = !paths->nr_samples;
		paths->ends->is_hidden = true;
	}
}

void fn_paths__restart(struct fn_paths *paths)
{
	for (; paths; paths = paths->next) {
		paths->nr_samples = 0;
		paths->nr_unread = 0;
		paths->nr_whole = 0;
		memset(paths->nr_reached, 0, sizeof(paths->nr_reached));
		paths->first_span = 0;
		paths->end_span = NR_SPANS;
	}
}

void fn_paths__note(const struct fn_paths *paths, const char *name)
{
	const char *reason = NULL;

	while (paths && !paths->nr_samples)
		paths = paths->next;
	if (!paths)
		return;
	if (!paths->has_cycles)
		reason = "they have no cycles, as those of AMD, powerpc and old Intel CPUs";
	else if (!paths->length && !paths->is_x86)
		reason = "instructions between them are not known on this architecture";
	else if (paths->nr_whole && find_span(paths) == NR_SPANS - 1)
		reason = "more than 1 % of the samples reach back less than 50 cycles";
	else if (paths->nr_unread == paths->nr_samples)
		reason = "the code of all samples cannot be read: name its folder with --symfs";
	if (reason)
		fn_warn("%s: branch records tell shares, but no CPI: %s", name, reason);
	else if (paths->nr_unread * 10 > paths->nr_samples)
		fn_warn("%s: the code of %llu %% of the samples with branch records cannot be read, so the CPI is that of the others: name the folder of the recorded files with --symfs",
			name, (unsigned long long)(100 * paths->nr_unread / paths->nr_samples));
}

/*
 * The code that a sample hits after a horizon is not quite that of all times. More samples do not
 * make this error smaller.
 */
static void set_interval(const struct fn_pair *pair, struct fn_value *value)
{
	const double error = PATH_ERROR * value->value;

	fn_value__ratio_interval(pair, value);
	fn_value__widen(value, error, error);
}

const struct fn_source fn_branches = {
	.name		= "branches",
	.title		= "branch records",
	.bit		= 4,
	.is_joint	= true,
	.error		= PATH_ERROR,
	.sample		= take_sample,
	.interval	= set_interval,
};
