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

void cache_destroy(struct cache *cache)
{
	g_free(cache->keys);
}
