// SPDX-License-Identifier: GPL-2.0-or-later
#include <glib.h>

#include "cache.h"

/* Lines are addresses without at least these bits, so that a space fits above. */
#define SPACE_SHIFT 42

bool cache_init(struct cache *cache, uint64_t lines, uint64_t ways)
{
	uint64_t sets = ways ? lines / ways : 0;

	if (!sets || sets & (sets - 1) || lines % ways)
		return false;
	*cache = (struct cache){sets, ways, g_new0(uint64_t, lines)};
	return true;
}

void cache_destroy(struct cache *cache)
{
	g_free(cache->keys);
}

bool cache_access(struct cache *cache, uint64_t line, uint64_t space)
{
	uint64_t *keys = &cache->keys[(line & (cache->sets - 1)) * cache->ways];
	/* 0 is an empty place */
	uint64_t key = (line ^ space << SPACE_SHIFT) + 1, shifted = key;

	for (uint64_t way = 0; way < cache->ways; way++) {
		uint64_t here = keys[way];

		keys[way] = shifted;
		if (here == key)
			return true;
		shifted = here;
	}
	return false;
}
