// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "late.h"

#define SEED 1

enum late_kind {
	CYCLES,
	INSTRUCTIONS,
	BRANCH_MISSES,
	CACHE_MISSES,
	TLB_MISSES,
	NR_KINDS,
};

/* perf's name, and how many make a sample on average */
static const struct {
	const char *name;
	uint32_t period;
} kinds[NR_KINDS] = {
	{"cycles", 4000}, {"instructions", 3000}, {"branch-misses", 20},
	{"cache-misses", 20}, {"dTLB-load-misses", 2},
};

static const uint64_t delays[] = {0, 10, 30, 80};

/**
 * struct late - what a late PMU knows of an image
 * @cycles: how long it has run
 * @pc: what it executes
 * @left: how many events are left until the next sample
 * @samples: those that are not logged yet
 */
struct late {
	uint64_t cycles, pc;
	uint64_t left[NR_KINDS];
	GArray *samples;
};

struct sample {
	enum late_kind kind;
	uint64_t cycles, pc, block, late[G_N_ELEMENTS(delays)];
	bool waits;
	unsigned int done;
};

static FILE *file;
static GRand *dice;

const char *late_start(const char *path)
{
	file = fopen(path, "w");
	dice = g_rand_new_with_seed(SEED);
	return file ? NULL : strerror(errno);
}

bool late_is_on(void)
{
	return file;
}

/* No program is in step with a period between half of the mean and the rest. */
static uint64_t draw(enum late_kind kind)
{
	uint32_t period = kinds[kind].period;

	return g_rand_int_range(dice, period / 2, period + period / 2 + 1);
}

static struct late *late_of(struct image *image)
{
	if (!image->late) {
		image->late = g_new0(struct late, 1);
		image->late->samples = g_array_new(FALSE, TRUE, sizeof(struct sample));
		for (int kind = 0; kind < NR_KINDS; kind++)
			image->late->left[kind] = draw(kind);
	}
	return image->late;
}

static void count(struct late *late, enum late_kind kind, uint64_t n, uint64_t cycles, uint64_t pc)
{
	bool waits = kind > INSTRUCTIONS || n > 1;

	for (; n >= late->left[kind]; late->left[kind] = draw(kind)) {
		struct sample sample = {.kind = kind, .pc = pc, .waits = waits};

		n -= late->left[kind];
		/* the last cycle is the latest one */
		sample.cycles = cycles - (kind == CYCLES ? n : 0);
		g_array_append_val(late->samples, sample);
	}
	late->left[kind] -= n;
}

static void log_sample(const struct image *image, const struct sample *sample)
{
	fprintf(file, "%u %u %s %u %" PRIx64 " %" PRIx64, image->thread, image->number,
		kinds[sample->kind].name, kinds[sample->kind].period, sample->pc, sample->block);
	for (size_t i = 0; i < G_N_ELEMENTS(delays); i++)
		fprintf(file, " %" PRIx64, sample->late[i]);
	putc('\n', file);
}

void late_step(struct image *image, uint64_t cycles, uint64_t pc, bool begins_block)
{
	struct late *late;

	if (!file)
		return;
	late = late_of(image);
	/* what an exception has stopped was taken off again */
	if (late->pc && cycles > late->cycles) {
		count(late, CYCLES, cycles - late->cycles, cycles, late->pc);
		count(late, INSTRUCTIONS, 1, cycles, late->pc);
	}
	late->cycles = cycles;
	late->pc = pc;
	for (guint i = 0; i < late->samples->len; i++) {
		struct sample *sample = &g_array_index(late->samples, struct sample, i);

		while (sample->done < G_N_ELEMENTS(delays) &&
		       cycles >= sample->cycles + delays[sample->done])
			sample->late[sample->done++] = pc;
		if (!sample->block && (begins_block || !sample->waits))
			sample->block = pc;
		if (sample->block && sample->done == G_N_ELEMENTS(delays)) {
			log_sample(image, sample);
			g_array_remove_index(late->samples, i--);
		}
	}
}

void late_event(struct image *image, enum core_event event, uint64_t pc)
{
	static const enum late_kind logged[NR_CORE_EVENTS] = {
		[BR_MIS_PRED] = BRANCH_MISSES,
		[L1D_CACHE_REFILL] = CACHE_MISSES,
		[L1D_TLB_REFILL] = TLB_MISSES,
	};

	if (file && logged[event])
		count(late_of(image), logged[event], 1, image->core->cycles, pc);
}
