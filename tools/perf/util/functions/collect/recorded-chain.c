// SPDX-License-Identifier: GPL-2.0
/*
 * The call chain of a sample as it was recorded: nothing is unwound, and each frame has
 * the address at which it goes on, which tells two calls of one function apart.
 */
#include <string.h>
#include <linux/bits.h>
#include <linux/perf_event.h>

#include "../../env.h"
#include "../../event.h"
#include "../../evsel.h"
#include "../../perf_regs.h"
#include "recorded-chain.h"
#include "../../sample.h"

/* The number of the register with the return address in arm64's PERF_SAMPLE_REGS_USER. */
#define ARM64_LR	30

/*
 * Returns the return address of the function at the end of the user's chain, 0 if unknown. An arm64
 * function without a frame has it in a register only. The chain then begins with this function and
 * its caller's caller; perf record records the register.
 */
static u64 link_register(struct evsel *evsel, struct perf_sample *sample)
{
	const struct perf_event_attr *attr = &evsel->core.attr;
	struct regs_dump *regs;
	const char *arch;
	u64 address;

	if (!(attr->sample_type & PERF_SAMPLE_REGS_USER) ||
	    !(attr->sample_regs_user & BIT_ULL(ARM64_LR)))
		return 0;
	arch = perf_env__arch(evsel__env(evsel));
	if (!arch || strcmp(arch, "arm64"))
		return 0;
	regs = perf_sample__user_regs(sample);
	if (!regs || !regs->regs || regs->abi != PERF_SAMPLE_REGS_ABI_64 ||
	    perf_reg_value(&address, regs, ARM64_LR))
		return 0;
	return address;
}

/* Returns the mode of the addresses that follow in a call chain. */
static u8 cpumode_of(u64 context)
{
	switch (context) {
	case PERF_CONTEXT_HV:
		return PERF_RECORD_MISC_HYPERVISOR;
	case PERF_CONTEXT_KERNEL:
		return PERF_RECORD_MISC_KERNEL;
	case PERF_CONTEXT_USER:
		return PERF_RECORD_MISC_USER;
	default:
		return PERF_RECORD_MISC_CPUMODE_UNKNOWN;
	}
}

/**
 * recorded_chain__begin - begin before the first frame
 * @chain: the chain
 * @evsel: the event of the sample
 * @sample: the sample
 */
void recorded_chain__begin(struct recorded_chain *chain, struct evsel *evsel,
			   struct perf_sample *sample)
{
	*chain = (struct recorded_chain){
		.evsel		= evsel,
		.sample		= sample,
		.cpumode	= PERF_RECORD_MISC_USER,
	};
}

/**
 * recorded_chain__next - go on to the next frame
 * @chain: the chain
 *
 * An address of 0 is no frame: it is in no function.
 *
 * Return: whether there is one.
 */
bool recorded_chain__next(struct recorded_chain *chain)
{
	const struct ip_callchain *callchain = chain->sample->callchain;

	chain->is_register = chain->link_register;
	if (chain->is_register) {
		chain->ip = chain->link_register;
		chain->link_register = 0;
		return true;
	}

	while (callchain && chain->next < callchain->nr) {
		const u64 i = chain->next++;

		chain->ip = callchain->ips[i];
		if (chain->ip >= PERF_CONTEXT_MAX) {
			chain->cpumode = cpumode_of(chain->ip);
			continue;
		}
		chain->nr++;
		if (!chain->ip)
			continue;
		if (i && callchain->ips[i - 1] == PERF_CONTEXT_USER)
			chain->link_register = link_register(chain->evsel, chain->sample);
		/*
		 * After a call the register has an address in the function itself, which is in the
		 * chain.
		 */
		if (i + 1 < callchain->nr && callchain->ips[i + 1] == chain->link_register)
			chain->link_register = 0;
		return true;
	}
	return false;
}

/**
 * recorded_chain__is_cut - say whether callers may be missing
 * @chain: the chain, after its last frame
 *
 * Return: true if it has as many addresses as the kernel writes at most.
 */
bool recorded_chain__is_cut(const struct recorded_chain *chain)
{
	return chain->nr >= (chain->evsel->core.attr.sample_max_stack ?: PERF_MAX_STACK_DEPTH);
}
