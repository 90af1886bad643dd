/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Set-associative memories with LRU replacement: caches and TLBs. */
#ifndef MODEL_CACHE_H
#define MODEL_CACHE_H

#include <stdbool.h>
#include <stdint.h>

/* Line addresses of users are below this bit; the space uses the bits above. */
#define CACHE_SPACE_SHIFT 42

/**
 * struct cache - which lines (pages, for a TLB) are there
 * @sets: number of sets, a power of two
 * @ways: lines of each set
 * @keys: @sets * @ways keys, each set from the most recently used one on
 */
struct cache {
	uint64_t sets, ways;
	uint64_t *keys;
};

/**
 * cache_init() - make an empty cache
 * @cache: the cache
 * @lines: how many lines it holds
 * @ways: how many of them are in each set
 *
 * Return: false unless @lines / @ways is a power of two.
 */
bool cache_init(struct cache *cache, uint64_t lines, uint64_t ways);

void cache_destroy(struct cache *cache);

/* Move @key to the front of a set. Return: whether it was there. */
bool cache_reorder(const struct cache *cache, uint64_t *keys, uint64_t key);

/**
 * cache_access() - look for a line, and put it there
 * @cache: the cache
 * @line: what selects the set: the address of the line, in lines
 * @space: whose address that is; its lines are not those of other spaces
 *
 * Return: whether the line was there.
 */
static inline bool cache_access(struct cache *cache, uint64_t line, uint64_t space)
{
	uint64_t *keys = &cache->keys[(line & (cache->sets - 1)) * cache->ways];
	/* 0 is an empty place */
	uint64_t key = (line ^ space << CACHE_SPACE_SHIFT) + 1;

	return *keys == key || cache_reorder(cache, keys, key);
}

#endif
