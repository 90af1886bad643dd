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

/* Return sites that are farther back do not matter. */
#define MOST_BACK	9
/* Nor do the ends of longer loops. */
#define MOST_AHEAD	64
/* Of x86, whose code can only be read forwards, from the entry. */
#define MOST_CODE	4096

static bool read_code(struct dso *dso, struct machine *machine, u64 address, void *code,
		      ssize_t size)
{
	return dso__data(dso)->status != DSO_DATA_STATUS_ERROR &&
	       dso__data_read_offset(dso, machine, address, code, size) == size;
}

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

/* Whether a loop without a call goes back to an address, or up to @distance instructions before. */
static bool is_in_loop(struct dso *dso, struct machine *machine, const char *arch, u64 address,
		       u64 end, unsigned int distance)
{
	const int nr = min_t(u64, (end - address) / 4, MOST_AHEAD);
	u32 code[MOST_AHEAD];

	if (strcmp(arch, "arm64") || nr <= 0 || !read_code(dso, machine, address, code, 4 * nr))
		return false;
	for (int i = 0; i < nr; i++) {
		const int branch = branch_of(code[i]);

		if (branch < 0 && i + branch <= 0 && i + branch >= -(int)distance)
			return true;
		if (kind_of(arch, code[i]))
			return false;
	}
	return false;
}

/* Goes back from an address to the call before it. */
static unsigned int walk_back(struct dso *dso, struct machine *machine, const char *arch,
			      u64 start, u64 address)
{
	const unsigned int nr = min_t(u64, (address - start) / 4, MOST_BACK);
	u32 code[MOST_BACK];

	if (!nr || !read_code(dso, machine, address - 4 * nr, code, 4 * nr))
		return FN_FAR;
	for (unsigned int i = 0; i < nr; i++) {
		const int kind = kind_of(arch, code[nr - 1 - i]);

		if (kind)
			return kind > 0 ? i : FN_FAR;
	}
	return FN_FAR;
}

static bool ends_block(const struct intel_pt_insn *insn)
{
	return insn->op == INTEL_PT_OP_RET || insn->branch == INTEL_PT_BR_UNCONDITIONAL ||
	       (insn->op == INTEL_PT_OP_JMP && insn->branch == INTEL_PT_BR_INDIRECT);
}

/* Like is_in_loop(), in code of x86 with the address at 0 and the site @back bytes before. */
static bool loops_back(const u8 *code, u64 size, u64 back, bool is_64_bit)
{
	struct intel_pt_insn insn;

	for (u64 at = 0; at < size; at += insn.length) {
		s64 target;

		if (intel_pt_get_insn(code + at, size - at, is_64_bit, &insn) ||
		    insn.length <= 0 || insn.op == INTEL_PT_OP_CALL)
			return false;
		target = (s64)at + insn.length + insn.rel;
		if (insn.branch != INTEL_PT_BR_NO_BRANCH && insn.branch != INTEL_PT_BR_INDIRECT &&
		    target <= 0 && target >= -(s64)back)
			return true;
		if (ends_block(&insn))
			return false;
	}
	return false;
}

/* Goes from the entry to an address, and counts the instructions since the last call. */
static unsigned int walk(struct dso *dso, struct machine *machine, u64 start, u64 address, u64 end)
{
	const u64 size = address - start, all = min_t(u64, end - start, size + 4 * MOST_AHEAD);
	const bool is_64_bit = dso__is_64_bit(dso);
	unsigned int distance = 0;
	struct intel_pt_insn insn;
	u8 code[MOST_CODE];
	u64 site = 0;

	if (all > MOST_CODE || !read_code(dso, machine, start, code, all))
		return FN_FAR;
	for (u64 at = 0; at < size; at += insn.length) {
		if (intel_pt_get_insn(code + at, size - at, is_64_bit, &insn) || insn.length <= 0)
			return FN_FAR;
		if (insn.op == INTEL_PT_OP_CALL) {
			distance = 0;
			site = at + insn.length;
		} else if (ends_block(&insn)) {
			distance = FN_FAR;
		} else if (distance < FN_FAR) {
			distance++;
		}
	}
	return distance < FN_FAR && site <= size &&
	       loops_back(code + size, all - size, size - site, is_64_bit) ? FN_FAR : distance;
}

unsigned int fn_site__distance(const struct addr_location *al, struct machine *machine,
			       const char *arch)
{
	struct dso *dso = al->map ? map__dso(al->map) : NULL;
	const u64 since = dso && al->sym ? al->addr - al->sym->start : 0;
	unsigned int distance;

	if (!dso || !al->sym || !*al->sym->name || al->addr < al->sym->start)
		return FN_FAR;
	if (!since || !arch)
		return since ? FN_FAR : 0;
	if (!strcmp(arch, "x86"))
		return min_t(unsigned int, FN_FAR,
			     walk(dso, machine, al->sym->start, al->addr, al->sym->end));
	distance = min_t(u64, walk_back(dso, machine, arch, al->sym->start, al->addr), since / 4);
	return distance >= FN_FAR ||
	       is_in_loop(dso, machine, arch, al->addr, al->sym->end, distance) ? FN_FAR : distance;
}
