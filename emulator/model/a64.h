/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The properties of A64 instructions that the model needs. */
#ifndef MODEL_A64_H
#define MODEL_A64_H

#include <stdbool.h>
#include <stdint.h>

/**
 * enum insn_kind - what an instruction is to the model
 * @INSN_OTHER: one cycle, and what its memory accesses take
 * @INSN_DIRECT: a branch that always goes to its target
 * @INSN_CONDITIONAL: a branch that goes there or on
 * @INSN_INDIRECT: a branch to the address in a register
 * @INSN_CALL: INSN_DIRECT, and will return
 * @INSN_INDIRECT_CALL: INSN_INDIRECT, and will return
 * @INSN_RETURN: a return
 * @INSN_INTEGER_DIVIDE: a division of integers
 * @INSN_FLOAT_DIVIDE: a division or square root of floating point numbers
 * @INSN_CONVERT: a scalar move or conversion between integer and floating point registers, but
 *		  not of fixed-point numbers
 * @INSN_ISB: waits until the pipeline is empty
 * @INSN_EXCEPTION_RETURN: goes back to where an exception was taken
 * @INSN_SET_THREAD: writes CONTEXTIDR_EL1, where Linux keeps the number of the thread
 * @INSN_SET_SPACE: writes TTBR0_EL1, the page table of the process
 * @INSN_SET_VECTORS: writes VBAR_EL1
 */
enum insn_kind {
	INSN_OTHER,
	INSN_DIRECT,
	INSN_CONDITIONAL,
	INSN_INDIRECT,
	INSN_CALL,
	INSN_INDIRECT_CALL,
	INSN_RETURN,
	INSN_INTEGER_DIVIDE,
	INSN_FLOAT_DIVIDE,
	INSN_CONVERT,
	INSN_ISB,
	INSN_EXCEPTION_RETURN,
	INSN_SET_THREAD,
	INSN_SET_SPACE,
	INSN_SET_VECTORS,
};

static inline bool is_branch(enum insn_kind kind)
{
	return kind >= INSN_DIRECT && kind <= INSN_RETURN;
}

/**
 * a64_decode() - what kind of instruction is this?
 * @word: the instruction
 * @pc: its address
 * @target: where a direct or conditional branch goes; else 0
 */
enum insn_kind a64_decode(uint32_t word, uint64_t pc, uint64_t *target);

/* Does an instruction load or store, or maintain caches by address? Then it may fault. */
bool a64_accesses_memory(uint32_t word);

/* The register that an INSN_SET instruction reads: 31 is 0. */
unsigned int a64_register(uint32_t word);

#endif
