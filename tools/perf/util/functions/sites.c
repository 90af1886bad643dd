// SPDX-License-Identifier: GPL-2.0
/*
 * Tells which samples may belong to a neighbour: the interrupt of an imprecise event comes late, so
 * soon after a function is entered, or returned to, a sample may be that of the function before. An
 * instruction in a loop that begins there was executed mostly after others of the loop.
 */
#include <string.h>
#include <linux/kernel.h>

#include "../addr_location.h"
#include "../dso.h"
#include "../intel-pt-decoder/intel-pt-insn-decoder.h"
#include "../map.h"
#include "../symbol.h"
#include "functions.h"

/* The ends of longer loops do not matter. */
#define MOST_AHEAD	64
/* Of x86, whose code can only be read forwards, from the entry. */
#define MOST_CODE	4096

struct insn {
	int length;
	bool is_call;
	bool ends_block;	/* code does not go on behind it */
	bool has_target;
	s64 target;		/* of a branch, from its own address on */
};

/* What an instruction of 4 bytes does: -1, code does not go on behind it; 1, it is a call. */
static int kind_of(const char *arch, u32 code)
{
	if (!strcmp(arch, "arm64")) {
		if ((code & 0xfc000000) == 0x94000000 || (code & 0xfffffc1f) == 0xd63f0000)
			return 1;	/* bl, blr */
		return (code & 0xfc000000) == 0x14000000 || (code & 0xffdffc1f) == 0xd61f0000 ||
		       (code & 0xfffffc1f) == 0xd65f0000 ? -1 : 0;	/* b, br, ret */
	}
	if (!strcmp(arch, "powerpc")) {
		if ((code & 0xfc000003) == 0x48000001 || code == 0x4e800421 || code == 0x4e800021)
			return 1;	/* bl, bctrl, blrl */
		return (code & 0xfc000003) == 0x48000000 || code == 0x4e800420 ||
		       code == 0x4e800020 ? -1 : 0;			/* b, bctr, blr */
	}
	return 0;
}

/* How many instructions on an instruction of arm64 branches, 0: it does not. */
static int branch_of(u32 code)
{
	if ((code & 0xff000010) == 0x54000000 || (code & 0x7e000000) == 0x34000000)
		return (int)(code << 8) >> 13;		/* b.cond, cbz, cbnz */
	if ((code & 0x7e000000) == 0x36000000)
		return (int)(code << 13) >> 18;		/* tbz, tbnz */
	return (code & 0xfc000000) == 0x14000000 ? (int)(code << 6) >> 6 : 0;	/* b */
}

static bool decode(const char *arch, bool is_64_bit, const u8 *code, s64 size, struct insn *insn)
{
	struct intel_pt_insn x86;
	u32 word;

	if (!strcmp(arch, "x86")) {
		if (intel_pt_get_insn(code, size, is_64_bit, &x86) || x86.length <= 0)
			return false;
		*insn = (struct insn){
			.length = x86.length, .is_call = x86.op == INTEL_PT_OP_CALL,
			.ends_block = x86.op == INTEL_PT_OP_RET ||
				      x86.branch == INTEL_PT_BR_UNCONDITIONAL ||
				      (x86.op == INTEL_PT_OP_JMP &&
				       x86.branch == INTEL_PT_BR_INDIRECT),
			.has_target = x86.branch != INTEL_PT_BR_NO_BRANCH &&
				      x86.branch != INTEL_PT_BR_INDIRECT,
			.target = x86.length + x86.rel,
		};
		return true;
	}
	if (size < 4)
		return false;
	memcpy(&word, code, sizeof(word));
	*insn = (struct insn){
		.length = 4, .is_call = kind_of(arch, word) > 0,
		.ends_block = kind_of(arch, word) < 0,
	};
	if (!strcmp(arch, "arm64"))
		insn->target = 4 * branch_of(word);
	insn->has_target = insn->target;
	return true;
}

/* Whether a loop without a call goes back from behind @at to a place from the site to @at. */
static bool is_in_loop(const char *arch, bool is_64_bit, const u8 *code, s64 site, s64 at, s64 size)
{
	const s64 last = at;
	struct insn insn;

	for (; at < size; at += insn.length) {
		if (!decode(arch, is_64_bit, code + at, size - at, &insn) || insn.is_call)
			return false;
		if (insn.has_target && at + insn.target <= last && at + insn.target >= site)
			return true;
		if (insn.ends_block)
			return false;
	}
	return false;
}

unsigned int fn_site__distance(const struct addr_location *al, struct machine *machine,
			       const char *arch)
{
	struct dso *dso = al->map ? map__dso(al->map) : NULL;
	const u64 since = dso && al->sym ? al->addr - al->sym->start : 0;
	unsigned int distance = FN_FAR, from_entry = FN_FAR;
	u64 back = since;	/* where to begin to read */
	s64 site = 0, size;
	u8 code[MOST_CODE];
	struct insn insn;
	bool is_64_bit;

	if (!dso || !al->sym || !*al->sym->name || al->addr < al->sym->start)
		return FN_FAR;
	if (!since || !arch)
		return since ? FN_FAR : 0;
	if (!strcmp(arch, "x86")) {
		distance = 0;
	} else {
		from_entry = min_t(u64, since / 4, FN_FAR);
		back = 4 * from_entry;
	}
	size = min(al->sym->end - al->addr + back, back + 4 * MOST_AHEAD);
	if (size > MOST_CODE || dso__data(dso)->status == DSO_DATA_STATUS_ERROR)
		return from_entry;
	size = dso__data_read_offset(dso, machine, al->addr - back, code, size);
	if (size < (s64)back)
		return from_entry;
	is_64_bit = dso__is_64_bit(dso);
	/* Count the instructions since the last call. */
	for (s64 at = 0; at < (s64)back; at += insn.length) {
		if (!decode(arch, is_64_bit, code + at, size - at, &insn))
			return FN_FAR;
		if (insn.is_call) {
			distance = 0;
			site = at + insn.length;
		} else if (insn.ends_block) {
			distance = FN_FAR;
		} else if (distance < FN_FAR) {
			distance++;
		}
	}
	distance = min(distance, from_entry);
	return distance < FN_FAR && is_in_loop(arch, is_64_bit, code, site, back, size) ?
	       FN_FAR : distance;
}
