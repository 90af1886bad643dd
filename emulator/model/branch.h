/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Branch prediction: gshare, last targets, a stack of return addresses. */
#ifndef MODEL_BRANCH_H
#define MODEL_BRANCH_H

#include <stdbool.h>
#include <stdint.h>

#define RETURN_STACK 16

/**
 * struct predictor - what a core has learnt of its branches
 * @bits: log2 of the number of two-bit counters
 * @history_bits: how many outcomes select a counter, with the address
 * @counters: 0 and 1 predict that a conditional branch is not taken, 2 and 3 that it is
 * @history: outcomes of the last conditional branches, the last one in bit 0
 * @target_bits: log2 of the number of targets
 * @targets: where indirect branches have gone the last time
 * @returns: where the last calls return to, as a ring
 * @depth: number of the calls
 */
struct predictor {
	unsigned int bits, history_bits, target_bits;
	uint8_t *counters;
	uint64_t history;
	uint64_t *targets;
	uint64_t returns[RETURN_STACK];
	unsigned int depth;
};

void predictor_init(struct predictor *p, unsigned int bits, unsigned int history_bits,
		    unsigned int target_bits);
void predictor_destroy(struct predictor *p);

/**
 * predict_conditional() - predict a conditional branch, then learn from it
 * @p: the predictor
 * @pc: address of the branch
 * @taken: where it went
 *
 * Return: whether the prediction was right.
 */
bool predict_conditional(struct predictor *p, uint64_t pc, bool taken);

/* The same for an indirect branch, which went to @target. */
bool predict_indirect(struct predictor *p, uint64_t pc, uint64_t target);

/* Note that a call will return to @next. */
void predict_call(struct predictor *p, uint64_t next);

/* The same for a return, which went to @target. */
bool predict_return(struct predictor *p, uint64_t target);

#endif
