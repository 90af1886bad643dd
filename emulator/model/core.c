// SPDX-License-Identifier: GPL-2.0-or-later
#include <glib.h>
#include <stddef.h>
#include <string.h>

#include "core.h"

#define LINE 64
#define PAGE 4096

const struct core_event_info core_events[NR_CORE_EVENTS] = {
	[L1I_CACHE] = {"L1I_CACHE", {0x14, 0x26}},
	[L1I_CACHE_REFILL] = {"L1I_CACHE_REFILL", {0x01}},
	[L1I_TLB_REFILL] = {"L1I_TLB_REFILL", {0x02}},
	[L1D_CACHE] = {"L1D_CACHE", {0x04, 0x25}},
	[L1D_CACHE_REFILL] = {"L1D_CACHE_REFILL", {0x03}},
	[L1D_TLB_REFILL] = {"L1D_TLB_REFILL", {0x05}},
	[L2D_CACHE] = {"L2D_CACHE", {0x16}},
	[L2D_CACHE_REFILL] = {"L2D_CACHE_REFILL", {0x17}},
	[BR_RETIRED] = {"BR_RETIRED", {0x21, 0x12}},
	[BR_RETURN_RETIRED] = {"BR_RETURN_RETIRED", {0x0e}},
	[BR_MIS_PRED] = {"BR_MIS_PRED", {0x10, 0x22}},
	[INST_SPEC] = {"INST_SPEC", {0x1b}},
	[STALL_FRONTEND] = {"STALL_FRONTEND", {0x23}},
	[STALL_BACKEND] = {"STALL_BACKEND", {0x24}},
	[STALL] = {"STALL", {0x3c}},
};

/* A small core that executes in order: caches and latencies like a Cortex-A53's. */
const struct core_config core_small = {
	.l1i = 32, .l1i_ways = 2, .l1d = 32, .l1d_ways = 4, .l2 = 256, .l2_ways = 8,
	.itlb = 32, .itlb_ways = 4, .dtlb = 64, .dtlb_ways = 4,
	.predictor_bits = 12, .history_bits = 8, .target_bits = 8,
	.l2_latency = 10, .memory_latency = 90, .walk_latency = 20, .mispredict_latency = 12,
	.integer_divide = 10, .float_divide = 15, .convert = 3, .isb = 20,
	.store_buffer = 4, .wrong_path = 8,
};

/* Caches and latencies like a Neoverse-N1's, but the core executes in order. */
const struct core_config core_large = {
	.l1i = 64, .l1i_ways = 4, .l1d = 64, .l1d_ways = 4, .l2 = 1024, .l2_ways = 8,
	.itlb = 64, .itlb_ways = 4, .dtlb = 1024, .dtlb_ways = 8,
	.predictor_bits = 15, .history_bits = 12, .target_bits = 12,
	.l2_latency = 11, .memory_latency = 120, .walk_latency = 30, .mispredict_latency = 11,
	.integer_divide = 8, .float_divide = 10, .convert = 3, .isb = 15,
	.store_buffer = 16, .wrong_path = 24,
};

/* The arguments, which README.md explains. */
#define OPTION(name, most) {#name, offsetof(struct core_config, name), most}
static const struct {
	const char *name;
	size_t offset;
	uint64_t most;
} options[] = {
	OPTION(l1i, 1 << 20), OPTION(l1i_ways, 1024), OPTION(l1d, 1 << 20), OPTION(l1d_ways, 1024),
	OPTION(l2, 1 << 20), OPTION(l2_ways, 1024), OPTION(itlb, 1 << 20), OPTION(itlb_ways, 1024),
	OPTION(dtlb, 1 << 20), OPTION(dtlb_ways, 1024), OPTION(predictor_bits, 24),
	OPTION(history_bits, 24), OPTION(target_bits, 24), OPTION(l2_latency, 100000),
	OPTION(memory_latency, 100000), OPTION(walk_latency, 100000),
	OPTION(mispredict_latency, 100000), OPTION(integer_divide, 100000),
	OPTION(float_divide, 100000), OPTION(convert, 100000), OPTION(isb, 100000),
	OPTION(store_buffer, 1024), OPTION(wrong_path, 1024),
};

const char *core_configure(struct core_config *config, const char *name, const char *value)
{
	if (!strcmp(name, "preset")) {
		if (strcmp(value, "small") && strcmp(value, "large"))
			return "the presets are small and large";
		*config = *value == 's' ? core_small : core_large;
		return NULL;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(options); i++) {
		if (!strcmp(name, options[i].name)) {
			uint64_t *option = (uint64_t *)((char *)config + options[i].offset);

			return g_ascii_string_to_unsigned(value, 10, 0, options[i].most, option,
							  NULL) ?
				       NULL : "it is not a number, or too large";
		}
	}
	return "there is no such argument";
}

const char *core_init(struct core *core, const struct core_config *config)
{
	*core = (struct core){.config = config, .fetched = UINT64_MAX};
	if (!cache_init(&core->l1i, config->l1i * 1024 / LINE, config->l1i_ways) ||
	    !cache_init(&core->l1d, config->l1d * 1024 / LINE, config->l1d_ways) ||
	    !cache_init(&core->l2, config->l2 * 1024 / LINE, config->l2_ways) ||
	    !cache_init(&core->itlb, config->itlb, config->itlb_ways) ||
	    !cache_init(&core->dtlb, config->dtlb, config->dtlb_ways)) {
		core_destroy(core);
		return "each cache and TLB needs a power of two of sets";
	}
	predictor_init(&core->predictor, config->predictor_bits, config->history_bits,
		       config->target_bits);
	return NULL;
}

void core_destroy(struct core *core)
{
	cache_destroy(&core->l1i);
	cache_destroy(&core->l1d);
	cache_destroy(&core->l2);
	cache_destroy(&core->itlb);
	cache_destroy(&core->dtlb);
	predictor_destroy(&core->predictor);
}

static void count(struct core *core, enum core_event event, uint64_t n)
{
	struct core_counts *counts = core->counts;

	counts->count[event] += n;
	if (counts->count[event] >= counts->due[event])
		core->due = true;
}

static void record(struct core *core, void *insn, enum core_event event, uint64_t n)
{
	count(core, event, n);
	if (G_UNLIKELY(insn == core->followed))
		core->events[event] += n;
	core_record(core->context, insn, event, n);
}

static uint64_t stall(struct core *core, void *insn, enum core_event side, uint64_t cycles)
{
	if (cycles) {
		record(core, insn, side, cycles);
		count(core, STALL, cycles);
		core->cycles += cycles;
	}
	return cycles;
}

/* Addresses of the kernel are the same in all processes. */
static uint64_t space(const struct core *core, uint64_t address)
{
	return address >> 63 ? 0 : core->space;
}

static uint64_t walk(struct core *core, void *insn, struct cache *tlb, enum core_event refill,
		     uint64_t address)
{
	if (cache_access(tlb, address / PAGE, space(core, address)))
		return 0;
	record(core, insn, refill, 1);
	return core->config->walk_latency;
}

static uint64_t lookup(struct core *core, void *insn, struct cache *l1, enum core_event refill,
		       uint64_t address)
{
	if (cache_access(l1, address / LINE, space(core, address)))
		return 0;
	record(core, insn, refill, 1);
	record(core, insn, L2D_CACHE, 1);
	if (cache_access(&core->l2, address / LINE, space(core, address)))
		return core->config->l2_latency;
	record(core, insn, L2D_CACHE_REFILL, 1);
	return core->config->memory_latency;
}

void core_follow(struct core *core, void *insn)
{
	core->followed = insn;
	memset(core->events, 0, sizeof(core->events));
}

void core_execute(struct core *core, uint64_t instructions)
{
	core->cycles += instructions;
	count(core, INST_SPEC, instructions);
}

uint64_t core_fetch(struct core *core, void *insn, uint64_t address)
{
	uint64_t wait;

	if (address / LINE == core->fetched)
		return 0;
	core->fetched = address / LINE;
	record(core, insn, L1I_CACHE, 1);
	wait = walk(core, insn, &core->itlb, L1I_TLB_REFILL, address);
	wait += lookup(core, insn, &core->l1i, L1I_CACHE_REFILL, address);
	return stall(core, insn, STALL_FRONTEND, wait);
}

uint64_t core_access(struct core *core, void *insn, uint64_t address, unsigned int size,
		     bool store)
{
	uint64_t last = (address + size - 1) / LINE, wait = 0, room;

	for (uint64_t line = address / LINE; line <= last; line++) {
		record(core, insn, L1D_CACHE, 1);
		wait += walk(core, insn, &core->dtlb, L1D_TLB_REFILL, line * LINE);
		wait += lookup(core, insn, &core->l1d, L1D_CACHE_REFILL, line * LINE);
	}
	if (store && wait) {
		/* stores drain one by one, and the core goes on as long as there is room */
		core->drained = MAX(core->drained, core->cycles) + wait;
		room = core->config->store_buffer * core->config->memory_latency;
		wait = core->drained - core->cycles;
		wait -= MIN(wait, room);
	}
	return stall(core, insn, STALL_BACKEND, wait);
}

bool core_misses(struct core *core, enum insn_kind kind, uint64_t pc, uint64_t target,
		 uint64_t next)
{
	struct predictor *predictor = &core->predictor;

	switch (kind) {
	case INSN_CONDITIONAL:
		return !predict_conditional(predictor, pc, next == target);
	case INSN_INDIRECT_CALL:
		predict_call(predictor, pc + 4);
		G_GNUC_FALLTHROUGH;
	case INSN_INDIRECT:
		return !predict_indirect(predictor, pc, next);
	case INSN_CALL:
		predict_call(predictor, pc + 4);
		return false;
	case INSN_RETURN:
		return !predict_return(predictor, next);
	default:
		return false;
	}
}

uint64_t core_branch(struct core *core, void *insn, void *next_insn, enum insn_kind kind,
		     bool missed)
{
	count(core, BR_RETIRED, 1);
	if (kind == INSN_RETURN)
		count(core, BR_RETURN_RETIRED, 1);
	if (!missed)
		return 0;
	record(core, insn, BR_MIS_PRED, 1);
	record(core, insn, INST_SPEC, core->config->wrong_path);
	return stall(core, next_insn, STALL_FRONTEND, core->config->mispredict_latency);
}

uint64_t core_unit(struct core *core, void *insn, enum insn_kind kind)
{
	switch (kind) {
	case INSN_INTEGER_DIVIDE:
		return stall(core, insn, STALL_BACKEND, core->config->integer_divide);
	case INSN_FLOAT_DIVIDE:
		return stall(core, insn, STALL_BACKEND, core->config->float_divide);
	case INSN_CONVERT:
		return stall(core, insn, STALL_BACKEND, core->config->convert);
	case INSN_ISB:
		return stall(core, insn, STALL_FRONTEND, core->config->isb);
	default:
		return 0;
	}
}
