// SPDX-License-Identifier: GPL-2.0
/*
 * Reads the branch records of samples: the path that a program took before a long period ended,
 * which no interrupt has disturbed.
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
 * - The last record's target is where the sample hit, before the interrupt was late.
 * - Intel's counters of a record tell how often events of the group happened in its part.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/hash.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>

#include "../../addr_location.h"
#include "../../branch.h"
#include "../../dso.h"
#include "../../event.h"
#include "../../intel-pt-decoder/intel-pt-insn-decoder.h"
#include "../../machine.h"
#include "../../map.h"
#include "../../sample.h"
#include "../../thread.h"
#include "../events.h"
#include "branches.h"
#include "windows.h"

/* Percentage of the samples that have to reach a horizon. */
#define REACHED		99
/* This number of samples chooses the horizon. */
#define CHOOSE_AFTER	10000
/* No compiler leaves more bytes without a branch; a damaged record does. */
#define LONGEST		16384
#define BLOCKS_BITS	14
/* Cycles of a record that the kernel could not tell, or not in full. */
#define MOST_CYCLES	0xffff

/* The cycles that count, and those between them and the overflow; the last: shares only. */
static const struct {
	unsigned int horizon, guard;
} spans[] = {
	{ 200, 100 }, { 150, 50 }, { 100, 50 }, { 50, 50 }, { 25, 25 }, { 0, 0 },
};

#define NR_SPANS	ARRAY_SIZE(spans)
#define FARTHEST	(200 + 100)

/* Counters of a record that are read; Intel's have four. */
#define MOST_COUNTERS	8

enum path_slot {
	PATH_CYCLES,
	PATH_INSTRUCTIONS,
	PATH_COUNTERS,		/* the first one */
	MOST_PATH_SLOTS = PATH_COUNTERS + MOST_COUNTERS,
};

/* A part of a path, and the function in which it begins. */
struct path_part {
	struct collect_function *function;
	u64 counts[MOST_PATH_SLOTS];
	bool begins_again;	/* where the last record leads */
};

/* Code between two addresses of a process. */
struct code_block {
	struct machine *machine;
	u64 begin;
	u64 end;
	u32 pid;
	u32 change;	/* 0: none */
	int instructions;
};

struct branch_paths {
	struct branch_paths *next;
	struct collect_group *groups[NR_SPANS];
	/* Length of an instruction, 0 if each has its own, as on x86. */
	unsigned int length;
	bool is_x86;
	/* By place in a record, the slots of counters; 0: not used. */
	unsigned int counters[MOST_COUNTERS];
	unsigned int nr_counters;
	unsigned int width;	/* of each, in bits */
	unsigned int nr_slots;
	/* Counters that are not 0, and those of them that may have missed events. */
	u64 nr_counted;
	u64 nr_full;
	u64 deepest;		/* the most records of a sample */
	bool has_cycles;
	u64 nr_samples;
	/* Samples with code that cannot be read, and those that have nothing to hide. */
	u64 nr_unread;
	u64 nr_whole;
	u64 nr_reached[NR_SPANS];
	/* Spans whose sums are made: all, or the chosen one. */
	unsigned int first_span;
	unsigned int end_span;
	/* Each has a cycle or more. */
	struct path_part parts[FARTHEST];
	u8 code[LONGEST + INTEL_PT_INSN_BUF_SZ];
	struct code_block blocks[1 << BLOCKS_BITS];
};

/**
 * branch_paths__new - begin to read branch records
 * @metrics: gets their sums
 * @cycles: attr of the event whose samples have the records
 * @arch: the architecture, as perf_env__arch() gives it
 * @next: a list of readers, to which this one is added, may be NULL
 *
 * Return: the reader, NULL without memory.
 */
struct branch_paths *branch_paths__new(struct window_collector *metrics,
				       const struct perf_event_attr *cycles, const char *arch,
				       struct branch_paths *next)
{
	struct branch_paths *paths = zalloc(sizeof(*paths));

	if (!paths)
		return NULL;
	paths->is_x86 = arch && !strcmp(arch, "x86");
	paths->length = arch && !strcmp(arch, "arm64") ? 4 : 0;
	paths->nr_slots = PATH_COUNTERS;
	for (size_t i = 0; i < NR_SPANS; i++) {
		paths->groups[i] = window_collector__add_paths(metrics, cycles, spans[i].horizon,
							       spans[i].guard);
		if (!paths->groups[i]) {
			free(paths);
			return NULL;
		}
	}
	paths->end_span = NR_SPANS;
	paths->next = next;
	return paths;
}

/**
 * branch_paths__add_counter - read another counter of each record
 * @paths: the reader, before its first sample
 * @attr: attr of the event that is counted
 * @name: name that perf gave it
 * @cpu: the CPU as perf_env__describe_cpu() gives it, or NULL
 * @width: of each counter, in bits
 *
 * Return: 0, or -ENOMEM.
 */
int branch_paths__add_counter(struct branch_paths *paths, const struct perf_event_attr *attr,
			      const char *name, const char *cpu, unsigned int width)
{
	const unsigned int place = paths->nr_counters;
	char *own;
	bool is_known;

	if (place == MOST_COUNTERS || !width || width > 16 || (place + 1) * width > 64)
		return 0;
	own = fn_event__name(attr, name, cpu);
	if (!own)
		return -ENOMEM;
	/* These are known without a counter, which is soon full. */
	is_known = !strcmp(own, "cycles") || !strcmp(own, "instructions");
	free(own);
	for (size_t i = 0; !is_known && i < NR_SPANS; i++) {
		int slot = collect_group__add_event(paths->groups[i], attr, name, cpu);

		if (slot < 0)
			return slot;
		paths->counters[place] = slot;
		paths->nr_slots = slot + 1;
	}
	paths->nr_counters++;
	paths->width = width;
	return 0;
}

/**
 * branch_paths__delete - free readers
 * @paths: the list of readers, may be NULL
 */
void branch_paths__delete(struct branch_paths *paths)
{
	while (paths) {
		struct branch_paths *next = paths->next;

		free(paths);
		paths = next;
	}
}

/* Reads the code from one address to the instruction at another one. Returns its bytes, or -1. */
static ssize_t read_code(u8 *code, size_t size, const struct branch_context *context, u64 begin,
			 bool *is_64_bit)
{
	const u8 cpumode = machine__kernel_ip(context->machine, begin) ?
			   PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
	struct thread *thread = machine__findnew_thread(context->machine, context->sample->pid,
							context->sample->tid);
	struct addr_location al;
	ssize_t read = -1;

	addr_location__init(&al);
	if (thread && thread__find_map(thread, cpumode, begin, &al) &&
	    dso__data(map__dso(al.map))->status != DSO_DATA_STATUS_ERROR) {
		/* This finds out whether it is 64-bit code. */
		map__load(al.map);
		*is_64_bit = dso__is_64_bit(map__dso(al.map));
		read = dso__data_read_offset(map__dso(al.map), context->machine,
					     map__map_ip(al.map, begin), code, size);
	}
	addr_location__exit(&al);
	thread__put(thread);
	return read;
}

/* Returns the number of x86 instructions from one address to that at another one, or -1. */
static int decode(struct branch_paths *paths, const struct branch_context *context, u64 begin,
		  u64 end)
{
	const u64 last = end - begin;
	bool is_64_bit;
	ssize_t size = read_code(paths->code, last + INTEL_PT_INSN_BUF_SZ, context, begin,
				 &is_64_bit);
	struct intel_pt_insn insn;
	int nr = 1;

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
static int count_instructions(struct branch_paths *paths, const struct branch_context *context,
			      u64 begin, u64 end)
{
	const u32 pid = context->sample->pid;
	struct code_block *block;

	if (end < begin || end - begin > LONGEST)
		return -1;
	if (paths->length)
		return (end - begin) / paths->length + 1;
	if (!paths->is_x86)
		return -1;
	block = &paths->blocks[hash_64(begin ^ end << 20 ^ pid, BLOCKS_BITS)];
	if (block->change != context->change || block->begin != begin || block->end != end ||
	    block->pid != pid || block->machine != context->machine)
		*block = (struct code_block){
			.machine = context->machine, .begin = begin, .end = end, .pid = pid,
			.change = context->change,
			.instructions = decode(paths, context, begin, end),
		};
	return block->instructions;
}

/* Sets the counts of a part by its record's counters. */
static void read_counters(struct branch_paths *paths, struct path_part *part, u64 counters)
{
	const u64 most = (1ULL << paths->width) - 1;

	for (unsigned int i = 0; i < paths->nr_counters; i++, counters >>= paths->width) {
		const u64 count = counters & most;

		if (!paths->counters[i])
			continue;
		part->counts[paths->counters[i]] = count;
		paths->nr_counted += count > 0;
		paths->nr_full += count == most;
	}
}

/*
 * Returns how many cycles the last record was before the overflow. The sample has hit a part that
 * begins where this record leads, a long one more often than a short one.
 */
static u64 since_last(const struct branch_paths *paths, unsigned int nr)
{
	u64 all = 0, at;

	for (unsigned int i = 0; i < nr; i++)
		all += paths->parts[i].begins_again ? paths->parts[i].counts[PATH_CYCLES] : 0;
	/* The golden ratio spreads the samples evenly. */
	at = all * (u16)(paths->nr_samples * 40503) >> 16;
	for (unsigned int i = 0; i < nr; i++) {
		if (!paths->parts[i].begins_again)
			continue;
		if (at < paths->parts[i].counts[PATH_CYCLES])
			return at;
		at -= paths->parts[i].counts[PATH_CYCLES];
	}
	return 0;
}

/*
 * Adds the parts within a span to the sums of their functions. Of a part that is cut, the rounded
 * counts of both pieces add up to its own.
 */
static int add_span(struct branch_paths *paths, unsigned int span, unsigned int nr, u64 since,
		    u64 weight)
{
	const u64 first = spans[span].guard - min_t(u64, spans[span].guard, since);
	const u64 end = first + spans[span].horizon;
	struct path_part sums[FARTHEST];
	unsigned int nr_sums = 0;
	int err = 0;

	for (u64 i = 0, at = 0; i < nr && at < end; at += paths->parts[i++].counts[PATH_CYCLES]) {
		const struct path_part *part = &paths->parts[i];
		const u64 cycles = part->counts[PATH_CYCLES];
		/* From the oldest instruction on. */
		const u64 from = at + cycles - min(at + cycles, end);
		const u64 to = at + cycles - max(at, first);
		unsigned int own = 0;

		if (at + cycles <= first || !part->function)
			continue;
		while (own < nr_sums && sums[own].function != part->function)
			own++;
		if (own == nr_sums)
			sums[nr_sums++] = (struct path_part){ .function = part->function };
		for (unsigned int slot = 0; slot < paths->nr_slots; slot++) {
			const u64 count = part->counts[slot];

			sums[own].counts[slot] += to - from == cycles ? count :
						  (count * to + cycles / 2) / cycles -
						  (count * from + cycles / 2) / cycles;
		}
	}
	for (unsigned int i = 0; !err && i < nr_sums; i++)
		err = collect_group__path(paths->groups[span], sums[i].function, sums[i].counts,
					  weight);
	return err;
}

/* Notes that a sample has hit a function. */
static int add_end(struct branch_paths *paths, const struct branch_context *context, u64 target)
{
	struct collect_function *function;
	int err = context->find(context->data, target, &function);

	for (unsigned int i = paths->first_span; !err && function && i < paths->end_span; i++)
		err = collect_group__path_end(paths->groups[i], function, context->weight);
	return err;
}

/* Returns the first span that suits. */
static unsigned int find_span(const struct branch_paths *paths)
{
	unsigned int i = paths->first_span;

	while (i < paths->end_span - 1 &&
	       (!paths->nr_whole || paths->nr_reached[i] * 100 < paths->nr_whole * REACHED))
		i++;
	return i;
}

/**
 * branch_paths__sample - take the branch records of a sample
 * @paths: the reader
 * @context: the sample, which ends a long period
 *
 * Return: 0, or a negative error.
 */
int branch_paths__sample(struct branch_paths *paths, const struct branch_context *context)
{
	const struct branch_stack *stack = context->sample->branch_stack;
	const struct branch_entry *entry =
		perf_sample__branch_entries((struct perf_sample *)context->sample);
	const u64 *counters = context->sample->branch_stack_cntr;
	const u64 nr = stack ? stack->nr : 0;
	const u64 last = nr ? entry->to : 0;
	bool is_whole = nr >= paths->deepest;
	unsigned int nr_parts = 0;
	u64 reach = 0, since;
	int err;

	if (!nr)
		return 0;
	paths->nr_samples++;
	paths->deepest = max(paths->deepest, nr);
	err = add_end(paths, context, last);
	for (u64 i = 1; !err && i < nr && reach < FARTHEST; i++, entry++) {
		struct path_part *part = &paths->parts[nr_parts];
		const u64 cycles = entry->flags.cycles;
		int instructions;

		paths->has_cycles |= cycles;
		/* There was an interrupt, or more than the counter holds. */
		if (!cycles || cycles == MOST_CYCLES) {
			is_whole = false;
			break;
		}
		instructions = count_instructions(paths, context, entry[1].to, entry->from);
		if (instructions < 0) {
			paths->nr_unread++;
			is_whole = false;
			break;
		}
		part->begins_again = entry[1].to == last;
		part->counts[PATH_CYCLES] = cycles;
		part->counts[PATH_INSTRUCTIONS] = instructions;
		read_counters(paths, part, counters ? counters[i - 1] : 0);
		err = context->find(context->data, entry[1].to, &part->function);
		reach += cycles;
		nr_parts++;
	}
	is_whole |= reach >= FARTHEST;
	paths->nr_whole += is_whole;
	since = since_last(paths, nr_parts);
	for (unsigned int i = paths->first_span; !err && i < paths->end_span; i++) {
		if (reach < spans[i].guard + spans[i].horizon)
			continue;
		paths->nr_reached[i] += is_whole;
		err = add_span(paths, i, nr_parts, since, context->weight);
	}
	if (paths->nr_samples == CHOOSE_AFTER) {
		paths->first_span = find_span(paths);
		paths->end_span = paths->first_span + 1;
	}
	return err;
}

/**
 * branch_paths__choose - let the table have the sums of one horizon of each reader
 * @paths: the list of readers, may be NULL
 */
void branch_paths__choose(struct branch_paths *paths)
{
	for (; paths; paths = paths->next) {
		const unsigned int span = find_span(paths);

		for (unsigned int i = 0; i < NR_SPANS; i++)
			collect_group__hide(paths->groups[i], !paths->nr_samples || i != span);
	}
}

/**
 * branch_paths__restart - begin to count anew
 * @paths: the list of readers, may be NULL
 */
void branch_paths__restart(struct branch_paths *paths)
{
	for (; paths; paths = paths->next) {
		paths->nr_counted = 0;
		paths->nr_full = 0;
		paths->nr_samples = 0;
		paths->nr_unread = 0;
		paths->nr_whole = 0;
		memset(paths->nr_reached, 0, sizeof(paths->nr_reached));
		paths->first_span = 0;
		paths->end_span = NR_SPANS;
	}
}

/**
 * branch_paths__describe - say why records tell less than they could
 * @paths: the list of readers, may be NULL
 * @text: set to the reason, "" if there is none
 * @size: size of @text in bytes
 */
void branch_paths__describe(const struct branch_paths *paths, char *text, size_t size)
{
	*text = '\0';
	while (paths && !paths->nr_samples)
		paths = paths->next;
	if (!paths)
		return;
	if (!paths->has_cycles)
		scnprintf(text, size,
			  "branch records without cycles, as those of AMD, powerpc and old Intel CPUs: they tell shares, but no CPI");
	else if (!paths->length && !paths->is_x86)
		scnprintf(text, size,
			  "instructions between branches are not known on this architecture: branch records tell shares, but no CPI");
	else if (paths->nr_unread * 10 > paths->nr_samples)
		scnprintf(text, size,
			  "the code of %llu %% of the samples with branch records cannot be read, so the CPI is that of the others: name the folder of the recorded files with --symfs",
			  (unsigned long long)(100 * paths->nr_unread / paths->nr_samples));
	else if (paths->nr_whole && find_span(paths) == NR_SPANS - 1)
		scnprintf(text, size,
			  "branch records of more than 1 %% of the samples reach back less than 50 cycles: they tell shares, but no CPI");
	else if (paths->nr_full * 100 > paths->nr_counted * (100 - REACHED))
		scnprintf(text, size,
			  "%llu %% of the branch counters that are not 0 are full, so the rates of their events may be too small",
			  (unsigned long long)(100 * paths->nr_full / paths->nr_counted));
}
