// SPDX-License-Identifier: GPL-2.0-or-later
#include <glib.h>

#include "cache.h"

bool cache_init(struct cache *cache, uint64_t lines, uint64_t ways)
{
	uint64_t sets = ways ? lines / ways : 0;

	if (!sets || sets & (sets - 1) || lines % ways)
		return false;
	*cache = (struct cache){sets, ways, g_new0(uint64_t, lines)};
	return true;
}

bool cache_reorder(const struct cache *cache, uint64_t *keys, uint64_t key)
{
	uint64_t shifted = key;

	for (uint64_t way = 0; way < cache->ways; way++) {
		uint64_t here = keys[way];

		keys[way] = shifted;
		if (here == key)
			return true;
		shifted = here;
	}
	return false;
}

void cache_destroy(struct cache *cache)
{
	g_free(cache->keys);
}
