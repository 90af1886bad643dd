// SPDX-License-Identifier: GPL-2.0-or-later
#include <glib.h>

#include "a64.h"

static const struct {
	uint32_t mask, value;
	enum insn_kind kind;
	/* position of a branch's offset */
	uint8_t offset_lsb, offset_bits;
} table[] = {
	{0xfc000000, 0x14000000, INSN_DIRECT, 0, 26},			/* b */
	{0xfc000000, 0x94000000, INSN_CALL, 0, 26},			/* bl */
	{0xff00000e, 0x5400000e, INSN_DIRECT, 5, 19},			/* b.al, b.nv */
	{0xff000000, 0x54000000, INSN_CONDITIONAL, 5, 19},		/* b.cond, bc.cond */
	{0x7e000000, 0x34000000, INSN_CONDITIONAL, 5, 19},		/* cbz, cbnz */
	{0x7e000000, 0x36000000, INSN_CONDITIONAL, 5, 14},		/* tbz, tbnz */
	{0xfefff000, 0xd61f0000, INSN_INDIRECT},			/* br, braa ... */
	{0xfefff000, 0xd63f0000, INSN_INDIRECT_CALL},			/* blr, blraa ... */
	{0xfffff000, 0xd65f0000, INSN_RETURN},				/* ret, retaa ... */
	{0xfffff000, 0xd69f0000, INSN_EXCEPTION_RETURN},		/* eret, eretaa ... */
	{0x7fe0f800, 0x1ac00800, INSN_INTEGER_DIVIDE},			/* udiv, sdiv */
	{0xff20fc00, 0x1e201800, INSN_FLOAT_DIVIDE},			/* fdiv */
	{0xff3ffc00, 0x1e21c000, INSN_FLOAT_DIVIDE},			/* fsqrt */
	{0xbfa0fc00, 0x2e20fc00, INSN_FLOAT_DIVIDE},			/* fdiv of vectors */
	{0xbfbffc00, 0x2ea1f800, INSN_FLOAT_DIVIDE},			/* fsqrt of vectors */
	{0xbfe0fc00, 0x2e403c00, INSN_FLOAT_DIVIDE},			/* fdiv of short vectors */
	{0xbffffc00, 0x2ef9f800, INSN_FLOAT_DIVIDE},			/* fsqrt of short vectors */
	{0x7f20fc00, 0x1e200000, INSN_CONVERT},				/* fcvtzs, fmov ... */
	{0xfffff0ff, 0xd50330df, INSN_ISB},
	{0xffffffe0, 0xd518d020, INSN_SET_THREAD},			/* msr contextidr_el1 */
	{0xffffffe0, 0xd5182000, INSN_SET_SPACE},			/* msr ttbr0_el1 */
	{0xffffffe0, 0xd518c000, INSN_SET_VECTORS},			/* msr vbar_el1 */
};

enum insn_kind a64_decode(uint32_t word, uint64_t pc, uint64_t *target)
{
	*target = 0;
	for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
		if ((word & table[i].mask) != table[i].value)
			continue;
		if (table[i].offset_bits) {
			uint32_t top = word << (32 - table[i].offset_lsb - table[i].offset_bits);

			*target = pc + ((int32_t)top >> (32 - table[i].offset_bits)) * 4LL;
		}
		return table[i].kind;
	}
	return INSN_OTHER;
}

bool a64_accesses_memory(uint32_t word)
{
	return (word & 0x0a000000) == 0x08000000 ||
	       (word & 0xfffff000) == 0xd50b7000; /* dc zva, ic ivau ... */
}

unsigned int a64_register(uint32_t word)
{
	return word & 0x1f;
}
