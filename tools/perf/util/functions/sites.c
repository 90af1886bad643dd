// SPDX-License-Identifier: GPL-2.0
/*
 * Tells which samples may belong to a neighbour: the interrupt of an imprecise event comes late, so
 * soon after a function is entered, or returned to, a sample may be that of the function before.
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

/* Goes from the entry to an address, and counts the instructions since the last call. */
static unsigned int walk(struct dso *dso, struct machine *machine, u64 start, u64 address)
{
	const u64 size = address - start;
	unsigned int distance = 0;
	struct intel_pt_insn insn;
	u8 code[MOST_CODE];

	if (size > MOST_CODE || !read_code(dso, machine, start, code, size))
		return FN_FAR;
	for (u64 at = 0; at < size; at += insn.length) {
		if (intel_pt_get_insn(code + at, size - at, dso__is_64_bit(dso), &insn) ||
		    insn.length <= 0)
			return FN_FAR;
		if (insn.op == INTEL_PT_OP_CALL)
			distance = 0;
		else if (insn.op == INTEL_PT_OP_RET ||
			 insn.branch == INTEL_PT_BR_UNCONDITIONAL ||
			 (insn.op == INTEL_PT_OP_JMP && insn.branch == INTEL_PT_BR_INDIRECT))
			distance = FN_FAR;
		else if (distance < FN_FAR)
			distance++;
	}
	return distance;
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
	distance = !strcmp(arch, "x86") ? walk(dso, machine, al->sym->start, al->addr) :
		   walk_back(dso, machine, arch, al->sym->start, al->addr);
	if (strcmp(arch, "x86"))
		distance = min_t(u64, distance, since / 4);
	return min_t(unsigned int, distance, FN_FAR);
}
