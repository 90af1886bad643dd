/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An in-order core: its stalls, and the events that its PMU counts. */
#ifndef MODEL_CORE_H
#define MODEL_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "a64.h"
#include "branch.h"
#include "cache.h"

/*
 * The events of the model. Each access to a cache is one to its TLB, and all predicted branches
 * retire: so two events of the architecture are one here.
 */
enum core_event {
	L1I_CACHE,
	L1I_CACHE_REFILL,
	L1I_TLB_REFILL,
	L1D_CACHE,
	L1D_CACHE_REFILL,
	L1D_TLB_REFILL,
	L2D_CACHE,
	L2D_CACHE_REFILL,
	BR_RETIRED,
	BR_RETURN_RETIRED,
	BR_MIS_PRED,
	INST_SPEC,
	STALL_FRONTEND,
	STALL_BACKEND,
	STALL,
	NR_CORE_EVENTS,
};

/**
 * struct core_event_info - an event that the model counts
 * @name: its name
 * @numbers: common events of the Arm architecture; 0 if there is no second one
 */
extern const struct core_event_info {
	const char *name;
	uint8_t numbers[2];
} core_events[NR_CORE_EVENTS];

/**
 * struct core_config - a core, as the arguments of the plugin describe it
 *
 * Each member is one argument: see emulator/README.md for what it means.
 * Sizes are in KiB, latencies in cycles.
 */
struct core_config {
	uint64_t l1i, l1i_ways, l1d, l1d_ways, l2, l2_ways;
	uint64_t itlb, itlb_ways, dtlb, dtlb_ways;
	uint64_t predictor_bits, history_bits, target_bits;
	uint64_t l2_latency, memory_latency, walk_latency, mispredict_latency;
	uint64_t integer_divide, float_divide, convert, isb;
	uint64_t store_buffer, wrong_path;
};

/**
 * core_configure() - change a core by one argument
 * @config: the core
 * @name: the argument
 * @value: its value; "preset" is small or large, all others are numbers
 *
 * Return: NULL, or what is wrong.
 */
const char *core_configure(struct core_config *config, const char *name, const char *value);

extern const struct core_config core_small, core_large;

/**
 * struct core_counts - events that have happened on a core
 * @count: how often
 * @due: from which count on core.due is set
 */
struct core_counts {
	uint64_t count[NR_CORE_EVENTS];
	uint64_t due[NR_CORE_EVENTS];
};

/**
 * struct core - the state of a core
 * @config: how it is made
 * @counts: what its PMU counts
 * @due: an event has reached counts->due
 * @context: passed to core_record()
 * @space: tells the addresses of processes apart, below 2^20
 * @cycles: its time: instructions and stalls
 * @drained: when the store buffer is empty
 * @fetched: the line that instructions come from
 * @followed: the instruction whose events are counted on their own, or NULL
 * @events: these counts
 */
struct core {
	const struct core_config *config;
	struct core_counts *counts;
	bool due;
	void *context;
	uint64_t space, cycles, drained, fetched;
	struct cache l1i, l1d, l2, itlb, dtlb;
	struct predictor predictor;
	void *followed;
	uint64_t events[NR_CORE_EVENTS];
};

/**
 * core_init() - a core that has executed nothing yet
 * @core: the core; the caller sets counts and context
 * @config: how it is made
 *
 * Return: NULL, or what is wrong with @config.
 */
const char *core_init(struct core *core, const struct core_config *config);

void core_destroy(struct core *core);

/**
 * core_record() - is told which instruction each event belongs to
 * @context: core.context
 * @insn: the instruction
 * @event: the event
 * @n: how often it has happened
 *
 * Whoever uses this header defines it. It is not told what follows from how often
 * the instruction was executed, INST_SPEC (but for that of a wrong path),
 * BR_RETIRED and BR_RETURN_RETIRED, nor STALL, the sum of two others.
 */
void core_record(void *context, void *insn, enum core_event event, uint64_t n);

/* Count the events of the next execution of @insn on their own; NULL ends that. */
void core_follow(struct core *core, void *insn);

/* Count @instructions that the core begins to execute. */
void core_execute(struct core *core, uint64_t instructions);

/*
 * Predict a branch at @pc, to @target if that is known, which goes to @next. Returns whether the
 * prediction was wrong.
 */
bool core_misses(struct core *core, enum insn_kind kind, uint64_t pc, uint64_t target,
		 uint64_t next);

/*
 * Each of the following functions is one action of an instruction. It returns how many cycles the
 * core waits. @insn is passed to core_record() only.
 */

/* Fetch instructions from the line of @address. */
uint64_t core_fetch(struct core *core, void *insn, uint64_t address);

/* Access @size bytes of memory. */
uint64_t core_access(struct core *core, void *insn, uint64_t address, unsigned int size,
		     bool store);

/*
 * End a branch that was @missed or not. The cycles that it loses belong to @next_insn, the next
 * instruction: samples and branch records show them there.
 */
uint64_t core_branch(struct core *core, void *insn, void *next_insn, enum insn_kind kind,
		     bool missed);

/* Use a unit that takes longer than a cycle. */
uint64_t core_unit(struct core *core, void *insn, enum insn_kind kind);

#endif
