// SPDX-License-Identifier: GPL-2.0-or-later
#include <glib.h>

#include "branch.h"

static uint64_t mask(unsigned int bits)
{
	return (1ULL << bits) - 1;
}

void predictor_init(struct predictor *p, unsigned int bits, unsigned int history_bits,
		    unsigned int target_bits)
{
	*p = (struct predictor){
		.bits = bits,
		.history_bits = history_bits,
		.target_bits = target_bits,
		.counters = g_new0(uint8_t, 1ULL << bits),
		.targets = g_new0(uint64_t, 1ULL << target_bits),
	};
}

void predictor_destroy(struct predictor *p)
{
	g_free(p->counters);
	g_free(p->targets);
}

bool predict_conditional(struct predictor *p, uint64_t pc, bool taken)
{
	uint8_t *counter = &p->counters[((pc >> 2) ^ p->history) & mask(p->bits)];
	bool right = taken == (*counter >= 2);

	if (taken && *counter < 3)
		(*counter)++;
	else if (!taken && *counter > 0)
		(*counter)--;
	p->history = (p->history << 1 | taken) & mask(p->history_bits);
	return right;
}

bool predict_indirect(struct predictor *p, uint64_t pc, uint64_t target)
{
	uint64_t *last = &p->targets[(pc >> 2) & mask(p->target_bits)];
	bool right = *last == target;

	*last = target;
	return right;
}

void predict_call(struct predictor *p, uint64_t next)
{
	p->returns[p->depth++ % RETURN_STACK] = next;
}

bool predict_return(struct predictor *p, uint64_t target)
{
	return p->returns[--p->depth % RETURN_STACK] == target;
}
