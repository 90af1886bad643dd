/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The truth: every event of every instruction of every thread. core_record() passes events, of a
 * struct image and a struct insn.
 */
#ifndef MODEL_TRUTH_H
#define MODEL_TRUTH_H

#include <glib.h>
#include <stdint.h>
#include <stdio.h>

#include "a64.h"
#include "core.h"

/**
 * struct insn - an instruction that has been translated
 * @owner: the image that @events are of
 * @events: where that image counts the events of this instruction
 * @pc: its address
 * @kind: what it is to the model
 * @accesses_memory: it loads or stores, or maintains caches by address
 * @accesses_simd: registers of vectors or floating point numbers
 *
 * The first two are there to be fast: few instructions change their image often.
 */
struct insn {
	struct image *owner;
	uint64_t *events;
	uint64_t pc;
	enum insn_kind kind;
	bool accesses_memory, accesses_simd;
};

/**
 * struct block - instructions in a row, of which the last one may be a branch
 * @pc: address of the first one
 * @n: how many
 * @branch: what the last one is, if it is a branch; else INSN_OTHER
 * @target: where a direct or conditional branch goes
 * @owner: the image that executes the block
 * @executions: how often it has begun to, since it is the owner
 * @insns: the instructions
 *
 * What each execution needs comes first: most of the time goes to waiting for it.
 */
struct block {
	uint64_t pc;
	uint32_t n;
	enum insn_kind branch;
	uint64_t target;
	struct image *owner;
	uint64_t executions;
	struct insn insns[];
};

/**
 * struct image - a thread, from one program that it executes to the next
 * @thread: its number
 * @number: how many images the thread has had before
 * @space: the page table of its process
 * @branch: what it executed last, if that ended with a branch and the kernel came
 *	    then; see interrupt_block()
 * @missed: whether that branch was predicted wrongly
 * @core: what it executes on, if that is a core of its own
 * @late: its samples of a late PMU
 * @blocks: executions of each struct block, but for those that its owner counts
 * @insns: events of each struct insn
 */
struct image {
	uint32_t thread, number;
	uint64_t space;
	struct block *branch;
	bool missed;
	struct core *core;
	struct late *late;
	GHashTable *blocks, *insns;
};

/**
 * truth_block() - the one description of a block of instructions
 * @pc: address of the first one
 * @words: the instructions
 * @n: how many
 */
struct block *truth_block(uint64_t pc, const uint32_t *words, uint64_t n);

/**
 * truth_image() - what a thread executes
 * @thread: its number
 * @space: the page table of its process; 0 while it is in the kernel
 *
 * A thread whose page table has changed executes another program: it gets a new
 * image.
 */
struct image *truth_image(uint32_t thread, uint64_t space);

/* Start counting: before this call the counting functions do nothing. */
void truth_start(void);

/* Begin to execute a block. */
void truth_execute(struct image *image, struct block *block);

/* An exception has come before the instructions from number @first on. */
void truth_abort(struct image *image, struct block *block, uint64_t first);

/**
 * truth_write() - write all counts as a table
 * @file: where to
 *
 * A line of names, then one for each instruction of each image, separated by
 * blanks: the number of the thread, that of its image from 0 on, the address,
 * how often the instruction was executed, and its events in their order.
 *
 * Return: 0, or what fprintf() has set errno to.
 */
int truth_write(FILE *file);

#endif
