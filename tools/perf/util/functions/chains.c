// SPDX-License-Identifier: GPL-2.0
/*
 * The call chain of a sample for --children, as it was recorded: nothing is unwound.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/bits.h>
#include <linux/err.h>
#include <linux/kernel.h>
#include <linux/perf_event.h>
#include <linux/zalloc.h>

#include "../addr_location.h"
#include "../branch.h"
#include "../callchain.h"
#include "../env.h"
#include "../event.h"
#include "../evsel.h"
#include "../intlist.h"
#include "../machine.h"
#include "../map.h"
#include "../perf_regs.h"
#include "../sample.h"
#include "../thread.h"
#include "session.h"

/* The number of the register with the return address in arm64's PERF_SAMPLE_REGS_USER. */
#define ARM64_LR	30

void fn_chains__exit(struct fn_chains *chains)
{
	intlist__delete(chains->cut);
	free(chains->frames);
}

const char *fn_chains__lacks(const struct fn_options *options, struct evsel *evsel)
{
	/* Without these, perf leaves the chains as they are, and says nothing. */
	if (options->stitch_lbr)
		return evsel__has_branch_callstack(evsel) && evsel__has_branch_hw_idx(evsel) &&
		       evsel__env(evsel) && evsel__env(evsel)->max_branches ? NULL :
		       "--call-graph lbr";
	/* Other chains end with the copy of the stack or with the LBRs, and do not say so. */
	return !evsel__has_callchain(evsel) || evsel__has_branch_callstack(evsel) ||
	       evsel->core.attr.sample_type & PERF_SAMPLE_STACK_USER ? "--call-graph fp" : NULL;
}

static int add_frame(struct fn_chains *chains, struct fn_row *row)
{
	if (chains->nr == chains->allocated) {
		const unsigned int allocated = chains->allocated ? 2 * chains->allocated : 64;
		struct fn_row **frames = realloc(chains->frames, allocated * sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		chains->frames = frames;
		chains->allocated = allocated;
	}
	chains->frames[chains->nr++] = row;
	return 0;
}

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

/*
 * Returns true if a chain of this many addresses may lack callers: the kernel writes no more. Where
 * the event has no limit of its own, that of the system is 127, or unknown if a chain was longer.
 */
static bool is_cut(struct fn_chains *chains, const struct evsel *evsel, unsigned int nr)
{
	if (evsel->core.attr.sample_max_stack)
		return nr >= evsel->core.attr.sample_max_stack;
	chains->deepest = max(chains->deepest, nr);
	return nr == PERF_MAX_STACK_DEPTH && chains->deepest == nr;
}

/* Adds the frames, callees first. Returns whether callers may be missing, or -ENOMEM. */
static int add_recorded(struct fn_session *session, const struct fn_sample *sample)
{
	struct fn_chains *chains = &session->chains;
	const struct ip_callchain *recorded = sample->sample->callchain;
	u8 mode = PERF_RECORD_MISC_USER;
	unsigned int nr = 0;

	for (u64 i = 0; recorded && i < recorded->nr; i++) {
		const u64 ip = recorded->ips[i];
		const struct fn_place *place;
		u64 link;

		if (ip >= PERF_CONTEXT_MAX) {
			mode = ip == PERF_CONTEXT_KERNEL ? PERF_RECORD_MISC_KERNEL :
							   PERF_RECORD_MISC_USER;
			continue;
		}
		nr++;
		if (!ip)	/* in no function */
			continue;
		place = fn_session__place_at(session, sample, ip, mode);
		if (IS_ERR(place) || add_frame(chains, place->row))
			return -ENOMEM;
		if (!i || recorded->ips[i - 1] != PERF_CONTEXT_USER)
			continue;
		/* After a call, it is an address in the function itself, which is in the chain. */
		link = link_register(sample->evsel, sample->sample);
		if (!link || (i + 1 < recorded->nr && recorded->ips[i + 1] == link))
			continue;
		place = fn_session__place_at(session, sample, link, mode);
		/* The register may hold something else. */
		if (IS_ERR(place) || (place->is_mapped && add_frame(chains, place->row)))
			return -ENOMEM;
	}
	return is_cut(chains, sample->evsel, nr);
}

/*
 * Adds the frames of an LBR call stack, which perf lengthens by that of the sample before. Callers
 * are missing if the LBRs are full, and no sample since the thread began tells what was in them
 * before. Returns whether they are, or -ENOMEM.
 */
static int add_stitched(struct fn_session *session, const struct fn_sample *own)
{
	struct fn_chains *chains = &session->chains;
	struct perf_sample *sample = own->sample;
	struct thread *owner = machine__findnew_thread(own->place.machine, sample->pid,
						       sample->tid);
	const u64 nr = sample->branch_stack ? sample->branch_stack->nr : 0;
	struct callchain_cursor *cursor = get_tls_callchain_cursor();
	struct callchain_cursor_node *node;
	struct int_node *cut;
	int err = -ENOMEM;
	u64 nr_user = 0;
	bool lacks;

	if (!owner)
		return err;
	chains->cut = chains->cut ?: intlist__new(NULL);
	if (!chains->cut)
		goto out;
	cut = intlist__find(chains->cut, own->place.thread);
	thread__set_lbr_stitch_enable(owner, true);
	if (!cursor || thread__resolve_sample_callchain(owner, cursor, own->evsel, sample,
							PERF_MAX_STACK_DEPTH))
		goto out;
	for (callchain_cursor_commit(cursor); (node = callchain_cursor_current(cursor)) != NULL;
	     callchain_cursor_advance(cursor)) {
		struct addr_location al = {
			.thread	= owner,
			.map	= node->ms.map,
			.sym	= node->ms.sym,
			.addr	= node->ms.map ? map__map_ip(node->ms.map, node->ip) : node->ip,
		};
		struct fn_row *row = fn_rows__function(session->rows, &al, node->ip);

		if (!row || add_frame(chains, row))
			goto out;
		/* Only x86 has LBRs. */
		nr_user += !(node->ip >> 63);
	}
	/* A chain that is longer than the LBRs ends as the one before. */
	lacks = nr >= evsel__env(own->evsel)->max_branches &&
		(nr_user <= nr + 1 || cut);
	if (!lacks && cut)
		intlist__remove(chains->cut, cut);
	err = lacks && !cut && intlist__add(chains->cut, own->place.thread) ? -ENOMEM : lacks;
out:
	thread__put(owner);
	return err;
}

int fn_chains__find(struct fn_session *session, const struct fn_sample *sample)
{
	struct fn_chains *chains = &session->chains;
	struct fn_row *root;
	int lacks = 0;

	chains->nr = 0;
	/* A chain of user space (--user-callchains) lacks the function of a kernel sample. */
	if (sample->sample->ip && add_frame(chains, sample->place.row))
		return -ENOMEM;
	/* A guest is one row. */
	if (!fn_sample__is_in_guest(sample->sample))
		lacks = session->options->stitch_lbr ? add_stitched(session, sample) :
						       add_recorded(session, sample);
	if (lacks < 0)
		return -ENOMEM;
	if (lacks)
		chains->nr = 0;
	root = fn_rows__named(session->rows, FN_BY_CHILDREN, lacks ? FN_CUT : FN_ALL);
	return root ? add_frame(chains, root) : -ENOMEM;
}
