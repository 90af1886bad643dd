// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <glib.h>
#include <inttypes.h>
#include <string.h>

#include "late.h"
#include "truth.h"

/* An additional event: the instruction was not executed. */
#define ABORTED NR_CORE_EVENTS
#define NR_EVENTS (NR_CORE_EVENTS + 1)

static bool counting;
static GPtrArray *images;
static GHashTable *last_images, *all_blocks;

/* Blocks: found again by address and instructions */

struct block_key {
	uint64_t pc, n;
	uint32_t words[];
};

static guint key_hash(gconstpointer p)
{
	const struct block_key *key = p;
	uint64_t hash = key->pc * 0x9e3779b97f4a7c15ULL;

	for (uint64_t i = 0; i < key->n; i++)
		hash = (hash ^ key->words[i]) * 0x100000001b3ULL;
	return hash >> 32 ^ hash;
}

static gboolean key_equal(gconstpointer p, gconstpointer q)
{
	const struct block_key *a = p, *b = q;

	return a->pc == b->pc && a->n == b->n &&
	       !memcmp(a->words, b->words, a->n * sizeof(*a->words));
}

struct block *truth_block(uint64_t pc, const uint32_t *words, uint64_t n)
{
	struct block_key *key = g_malloc(sizeof(*key) + n * sizeof(*words));
	struct block *block;

	if (!all_blocks)
		all_blocks = g_hash_table_new(key_hash, key_equal);
	key->pc = pc;
	key->n = n;
	memcpy(key->words, words, n * sizeof(*words));
	block = g_hash_table_lookup(all_blocks, key);
	if (block) {
		g_free(key);
		return block;
	}
	block = g_malloc0(sizeof(*block) + n * sizeof(struct insn));
	block->pc = pc;
	block->n = n;
	for (uint64_t i = 0; i < n; i++) {
		struct insn *insn = &block->insns[i];

		insn->pc = pc + i * 4;
		insn->kind = a64_decode(words[i], insn->pc, &block->target);
		insn->accesses_memory = a64_accesses_memory(words[i]);
		insn->accesses_simd = insn->accesses_memory && words[i] & 1 << 26;
		block->branch = is_branch(insn->kind) ? insn->kind : INSN_OTHER;
	}
	g_hash_table_insert(all_blocks, key, block);
	return block;
}

/* Images */

static struct image *new_image(uint32_t thread, uint32_t number, uint64_t space)
{
	struct image *image = g_new0(struct image, 1);

	*image = (struct image){
		.thread = thread, .number = number, .space = space,
		.blocks = g_hash_table_new(NULL, NULL), .insns = g_hash_table_new(NULL, NULL),
	};
	g_ptr_array_add(images, image);
	g_hash_table_insert(last_images, GUINT_TO_POINTER(thread), image);
	return image;
}

struct image *truth_image(uint32_t thread, uint64_t space)
{
	struct image *image;

	if (!last_images) {
		last_images = g_hash_table_new(NULL, NULL);
		images = g_ptr_array_new();
	}
	image = g_hash_table_lookup(last_images, GUINT_TO_POINTER(thread));
	if (!image)
		return new_image(thread, 0, space);
	/* until now the thread was in the kernel */
	if (!image->space)
		image->space = space;
	return !space || image->space == space ? image :
		       new_image(thread, image->number + 1, space);
}

/* Counting */

static uint64_t *counts_of(GHashTable *table, void *key, size_t n)
{
	uint64_t *counts = g_hash_table_lookup(table, key);

	if (!counts) {
		counts = g_new0(uint64_t, n);
		g_hash_table_insert(table, key, counts);
	}
	return counts;
}

static void change_owner(struct block *block, struct image *image)
{
	if (block->owner)
		*counts_of(block->owner->blocks, block, 1) += block->executions;
	block->owner = image;
	block->executions = 0;
}

void truth_start(void)
{
	counting = true;
}

void truth_execute(struct image *image, struct block *block)
{
	if (!counting)
		return;
	if (block->owner != image)
		change_owner(block, image);
	block->executions++;
}

static void count(struct image *image, struct insn *insn, unsigned int event, uint64_t n)
{
	if (!counting)
		return;
	if (insn->owner != image) {
		insn->owner = image;
		insn->events = counts_of(image->insns, insn, NR_EVENTS);
	}
	insn->events[event] += n;
}

void core_record(void *image, void *insn, enum core_event event, uint64_t n)
{
	count(image, insn, event, n);
	late_event(image, event, ((struct insn *)insn)->pc);
}

void truth_abort(struct image *image, struct block *block, uint64_t first)
{
	for (uint64_t i = first; i < block->n; i++)
		count(image, &block->insns[i], ABORTED, 1);
}

/* Output */

/* The counts of an image at an instruction: its events, or how often its block began. */
struct part {
	const struct insn *insn;
	uint64_t executions;
	const uint64_t *events;
};

struct line {
	uint64_t executed, events[NR_CORE_EVENTS];
};

static gint by_address(gconstpointer a, gconstpointer b)
{
	const struct part *x = a, *y = b;

	return (x->insn->pc > y->insn->pc) - (x->insn->pc < y->insn->pc);
}

/* Returns the parts in the order of their addresses. An address may be in several blocks. */
static GArray *parts_of(struct image *image)
{
	GArray *parts = g_array_new(FALSE, FALSE, sizeof(struct part));
	GHashTableIter iter;
	gpointer key, value;

	g_hash_table_iter_init(&iter, image->blocks);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		const struct block *block = key;

		for (uint64_t i = 0; i < block->n; i++) {
			struct part part = {&block->insns[i], *(uint64_t *)value, NULL};

			g_array_append_val(parts, part);
		}
	}
	g_hash_table_iter_init(&iter, image->insns);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		struct part part = {key, 0, value};

		g_array_append_val(parts, part);
	}
	g_array_sort(parts, by_address);
	return parts;
}

static void add_part(struct line *line, const struct part *part)
{
	uint64_t executed = part->executions - (part->events ? part->events[ABORTED] : 0);

	/* events for which core_record() is not called; other parts may be other instructions */
	line->executed += executed;
	line->events[INST_SPEC] += part->executions;
	if (is_branch(part->insn->kind))
		line->events[BR_RETIRED] += executed;
	if (part->insn->kind == INSN_RETURN)
		line->events[BR_RETURN_RETIRED] += executed;
	for (int event = 0; part->events && event < NR_CORE_EVENTS; event++)
		line->events[event] += part->events[event];
}

/* Writes a blank and a number; fprintf() is too slow for many millions of them. */
static char *put_count(char *at, uint64_t count)
{
	char digits[20], *digit = digits;

	*at++ = ' ';
	do {
		*digit++ = '0' + count % 10;
		count /= 10;
	} while (count);
	while (digit > digits)
		*at++ = *--digit;
	return at;
}

static void write_line(FILE *file, const struct image *image, const struct insn *insn,
		       struct line *line)
{
	char counts[(1 + NR_CORE_EVENTS) * 21], *end;

	line->events[STALL] = line->events[STALL_FRONTEND] + line->events[STALL_BACKEND];

	end = put_count(counts, line->executed);
	for (int event = 0; event < NR_CORE_EVENTS; event++)
		end = put_count(end, line->events[event]);
	fprintf(file, "%u %u %" PRIx64 "%.*s\n", image->thread, image->number, insn->pc,
		(int)(end - counts), counts);
}

static void write_image(FILE *file, struct image *image)
{
	GArray *parts = parts_of(image);
	struct line line = {0};

	for (guint i = 0; i < parts->len; i++) {
		const struct part *part = &g_array_index(parts, struct part, i);

		add_part(&line, part);
		if (i + 1 < parts->len && part[1].insn->pc == part->insn->pc)
			continue;
		write_line(file, image, part->insn, &line);
		line = (struct line){0};
	}
	g_array_free(parts, TRUE);
}

int truth_write(FILE *file)
{
	GHashTableIter iter;
	gpointer block;

	if (all_blocks) {
		g_hash_table_iter_init(&iter, all_blocks);
		while (g_hash_table_iter_next(&iter, NULL, &block))
			change_owner(block, NULL);
	}
	fprintf(file, "thread image address INST_RETIRED");
	for (int event = 0; event < NR_CORE_EVENTS; event++)
		fprintf(file, " %s", core_events[event].name);
	putc('\n', file);
	for (guint i = 0; images && i < images->len; i++)
		write_image(file, images->pdata[i]);
	return ferror(file) ? errno ?: EIO : 0;
}
